/* Sequences of several lengths in one trainer: the bits of graphs that are built for each. */
#include "tests/support.h"

#include <cltrain/cltrain.h>

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/graph/graph.h"

enum { SAMPLES = 3, LONGEST = 12, WORDS = 11, WIDTH = 8, HEADS = 2, MOST_VALUES = 2000 };

static clt_device *device;
static int32_t text[SAMPLES * (LONGEST + 1)];
static float waves[LONGEST][WIDTH], mask[LONGEST][LONGEST];

static int open_device(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 3, 0);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) text[i] = (int32_t)clt_random_below(&random, WORDS);
    for (int t = 0; t < LONGEST; t++)
        for (int i = 0; i < LONGEST; i++) {
            if (i < WIDTH) waves[t][i] = (float)clt_random_normal(&random);
            mask[t][i] = i > t ? -1e9f : 0;
        }
    assert_ok(clt_device_open(&device, NULL));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

/* ---- a GPT with tied embedding, positions as a fixed input and a mask as a constant, both of the longest length ---- */

typedef struct model {
    clt_graph *graph;
    clt_tensor *logits, *loss;
    clt_trainer *trainer;
} model;

static clt_tensor *heads_of(clt_tensor *x, const char *name) {
    return clt_transpose(clt_reshape(clt_linear(x, name, WIDTH), CLT_SHAPE(0, 0, HEADS, -1)), 1, 2);
}

/* `end`: of slices along the length. */
static clt_tensor *attention(clt_tensor *x, int64_t end) {
    clt_array values = {CLT_F32, CLT_SHAPE(LONGEST, LONGEST), mask};
    clt_tensor *hidden = clt_slice(clt_slice(clt_constant(x->graph, "mask", &values), 0, 0, end, 1), 1, 0, end, 1);
    clt_tensor *q = heads_of(x, "q"), *k = heads_of(x, "k"), *v = heads_of(x, "v");
    clt_tensor *scores = clt_mul_scalar(clt_matmul_with(q, k, (clt_matmul_options){.transpose_b = true}), 0.5f);
    clt_tensor *y = clt_matmul(clt_softmax(clt_add(scores, hidden), 3), v);
    return clt_linear(clt_reshape(clt_transpose(y, 1, 2), CLT_SHAPE(0, 0, -1)), "projection", WIDTH);
}

/* `length` 0: sequences of up to LONGEST; else of that length alone. */
static model make(int64_t length, bool with_mask) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_shape shape = CLT_SHAPE(SAMPLES, length ? length : LONGEST);
    int64_t end = length ? length : CLT_LENGTH;
    clt_tensor *tokens = length ? clt_input(m.graph, "tokens", CLT_I32, shape) : clt_sequence_input(m.graph, "tokens", CLT_I32, shape, 1);
    clt_tensor *next = length ? clt_input(m.graph, "next", CLT_I32, shape) : clt_sequence_input(m.graph, "next", CLT_I32, shape, 1);
    clt_tensor *words = clt_parameter(m.graph, "words", CLT_SHAPE(WORDS, WIDTH), (clt_init){CLT_INIT_NORMAL, .value = 0.3f});
    clt_tensor *places = clt_slice(clt_fixed_input(m.graph, "waves", CLT_F32, CLT_SHAPE(LONGEST, WIDTH)), 0, 0, end, 1);
    clt_tensor *x = clt_add(clt_embedding_op(tokens, words), places);
    if (with_mask) x = clt_add(x, attention(clt_layer_norm(x, "norm", 1), end));
    m.logits = clt_linear_op(clt_layer_norm(x, "last", 1), words, NULL);
    m.loss = clt_cross_entropy(clt_reshape(m.logits, CLT_SHAPE(-1, WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 0.5f, .momentum = 0.9f, .output = m.logits};
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, &options));
    assert_ok(clt_trainer_set_input(m.trainer, "waves", &(clt_array){CLT_F32, CLT_SHAPE(LONGEST, WIDTH), waves}));
    return m;
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
}

static int32_t tokens_of[SAMPLES * LONGEST], next_of[SAMPLES * LONGEST];

/* The first `length` tokens of the first texts. */
static clt_batch batch_of(int64_t samples, int64_t length) {
    for (int64_t s = 0; s < samples; s++)
        for (int64_t t = 0; t < length; t++) {
            tokens_of[s * length + t] = text[s * (LONGEST + 1) + t];
            next_of[s * length + t] = text[s * (LONGEST + 1) + t + 1];
        }
    return (clt_batch){.samples = samples,
                       .n_fields = 2,
                       .fields = {{CLT_I32, CLT_SHAPE(samples, length), tokens_of}, {CLT_I32, CLT_SHAPE(samples, length), next_of}}};
}

/* All parameters of m; `into` NULL: only how many there are. */
static size_t values_of(const model *m, float *values) {
    size_t n = 0;
    for (size_t i = 0; i < m->graph->n_variables; i++) {
        const clt_variable *v = m->graph->variables[i];
        size_t count = (size_t)clt_shape_elements(&v->shape);
        if (!v->trained) continue;
        assert_true(n + count <= MOST_VALUES);
        assert_ok(clt_trainer_get(m->trainer, v->name, values + n, count));
        n += count;
    }
    return n;
}

static void give_values(const model *m, const float *values) {
    size_t n = 0;
    for (size_t i = 0; i < m->graph->n_variables; i++) {
        const clt_variable *v = m->graph->variables[i];
        if (!v->trained) continue;
        assert_ok(clt_trainer_set(m->trainer, v->name, values + n, (size_t)clt_shape_elements(&v->shape)));
        n += (size_t)clt_shape_elements(&v->shape);
    }
}

/* ---- tests ---- */

/* Labels and indices that are computed are no longer the input's: each of these is valid. */
static void computed_indices_are_not_the_inputs(void **state) {
    (void)state;
    enum { N = 4, C = 5 };
    const int32_t one = 1, four = 4, from_one[N] = {1, 5, 3, 2}, far[N] = {9, 0, 4, 77};
    float logits[N * C] = {0.5f, -1, 2}, first = 0;
    for (int i = 0; i < 4; i++) {
        clt_graph *g;
        clt_trainer *t;
        clt_metrics metrics;
        assert_ok(clt_graph_create(&g));
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, C)), *y = clt_input(g, "y", CLT_I32, CLT_SHAPE(N));
        clt_array values = {CLT_I32, CLT_SHAPE(1), i == 1 ? &four : &one};
        clt_tensor *number = clt_constant(g, "number", &values), *w = clt_parameter(g, "w", CLT_SHAPE(C), (clt_init){CLT_INIT_CONSTANT, .value = 1});
        clt_tensor *target = i == 0 ? clt_sub(y, number) : i == 1 ? clt_minimum(y, number) : clt_sub(clt_add(y, number), clt_add(number, number));
        if (i == 3) target = clt_argmax(clt_stack((clt_tensor *[]){y, clt_add(y, number)}, 2, 1), 1);
        assert_ok(clt_trainer_create(&t, device, clt_cross_entropy(clt_mul(x, w), target), NULL));
        clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, C), logits}, {CLT_I32, CLT_SHAPE(N), i == 1 || i == 3 ? far : from_one}}};
        assert_ok(clt_trainer_step(t, &batch));
        assert_ok(clt_trainer_train_metrics(t, &metrics, true));
        assert_true(isfinite(metrics.loss));
        if (i == 0) first = (float)metrics.loss;
        if (i == 2) assert_true((float)metrics.loss == first);
        clt_trainer_destroy(t);
        clt_graph_destroy(g);
    }
}

/* Momentum is that of one step alone: the other trainer's first. */
static void each_length_has_the_bits_of_its_own_graph(void **state) {
    (void)state;
    static const struct {
        int64_t samples, length;
    } sizes[] = {{3, 12}, {3, 5}, {2, 8}, {3, 1}, {1, 12}, {3, 5}};
    static float before[MOST_VALUES], after[MOST_VALUES], own[MOST_VALUES], seen[SAMPLES * LONGEST * WORDS], alone[SAMPLES * LONGEST * WORDS];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        model all = make(0, true), one = make(sizes[i].length, true);
        clt_metrics metrics[2];
        /* The plans of other lengths are there. */
        for (size_t k = 0; k < i; k++) {
            clt_batch other = batch_of(sizes[k].samples, sizes[k].length);
            assert_ok(clt_trainer_predict(all.trainer, all.logits, &other, seen, (size_t)(sizes[k].samples * sizes[k].length * WORDS)));
        }
        clt_batch batch = batch_of(sizes[i].samples, sizes[i].length);
        size_t n = values_of(&all, before), n_logits = (size_t)(sizes[i].samples * sizes[i].length * WORDS);
        give_values(&one, before);
        assert_ok(clt_trainer_predict(all.trainer, all.logits, &batch, seen, n_logits));
        assert_ok(clt_trainer_predict(one.trainer, one.logits, &batch, alone, n_logits));
        assert_memory_equal(seen, alone, n_logits * sizeof *seen);
        for (int step = 0; step < 3; step++) {
            assert_ok(clt_trainer_step(all.trainer, &batch));
            assert_ok(clt_trainer_step(one.trainer, &batch));
        }
        assert_ok(clt_trainer_train_metrics(all.trainer, &metrics[0], true));
        assert_ok(clt_trainer_train_metrics(one.trainer, &metrics[1], true));
        assert_true(metrics[0].loss == metrics[1].loss && metrics[0].accuracy == metrics[1].accuracy);
        assert_int_equal(values_of(&one, own), n);
        values_of(&all, after);
        assert_memory_equal(after, own, n * sizeof *own);
        assert_memory_not_equal(after, before, n * sizeof *own);
        destroy(&all);
        destroy(&one);
    }
}

/* A layer of a drawn network; `end` as of attention. */
static clt_tensor *drawn_layer(clt_random *random, clt_tensor *x, int number, int64_t end) {
    char name[16];
    clt_tensor *two[2];
    snprintf(name, sizeof name, "layer%d", number);
    switch (clt_random_below(random, 8)) {
    case 0: return clt_add(x, clt_gelu(clt_linear_op(x, clt_graph_find(x->graph, "tied"), NULL)));
    case 1: return clt_rms_norm(x, name, 1);
    case 2: return clt_add(x, clt_slice(clt_graph_find(x->graph, "waves"), 0, 0, end, 1));
    case 3:
        two[0] = clt_slice(x, 2, 0, WIDTH / 2, 1);
        two[1] = clt_slice(x, 2, WIDTH / 2, WIDTH, 1);
        return clt_concat((clt_tensor *[]){two[1], clt_mul(two[0], two[1])}, 2, 2);
    case 4: return clt_sub(x, clt_reshape(clt_mean(x, CLT_AXES(1)), CLT_SHAPE(0, 1, WIDTH))); /* of the sequence */
    case 5: return clt_mul(x, clt_softmax(clt_linear(x, name, WIDTH), 1)); /* along it */
    case 6:
        x = clt_rotary(clt_reshape(clt_linear(x, name, WIDTH), CLT_SHAPE(0, 0, HEADS, -1)));
        x = clt_transpose(x, 1, 2);
        return clt_reshape(clt_transpose(clt_attention(x, x, x, .causal = true), 1, 2), CLT_SHAPE(0, 0, -1));
    default: return clt_add(x, clt_linear(clt_tanh(x), name, WIDTH));
    }
}

static model draw(uint64_t seed, int64_t length) {
    model m;
    clt_random random;
    clt_random_init(&random, seed, 0);
    assert_ok(clt_graph_create(&m.graph));
    clt_shape shape = CLT_SHAPE(SAMPLES, length ? length : LONGEST);
    clt_tensor *tokens = length ? clt_input(m.graph, "tokens", CLT_I32, shape) : clt_sequence_input(m.graph, "tokens", CLT_I32, shape, 1);
    clt_tensor *next = length ? clt_input(m.graph, "next", CLT_I32, shape) : clt_sequence_input(m.graph, "next", CLT_I32, shape, 1);
    clt_constant(m.graph, "waves", &(clt_array){CLT_F32, CLT_SHAPE(LONGEST, WIDTH), waves});
    clt_parameter(m.graph, "tied", CLT_SHAPE(WIDTH, WIDTH), (clt_init){CLT_INIT_NORMAL, .value = 0.3f});
    clt_tensor *x = clt_embedding(tokens, "words", WORDS, WIDTH);
    for (int i = 0, layers = 2 + (int)clt_random_below(&random, 4); i < layers; i++) {
        x = drawn_layer(&random, x, i, length ? length : CLT_LENGTH);
        if (clt_graph_status(m.graph) < 0) fail_msg("seed %d, layer %d: %s", (int)seed, i, clt_error_detail());
    }
    m.logits = clt_linear(x, "head", WORDS);
    m.loss = clt_cross_entropy(clt_reshape(m.logits, CLT_SHAPE(-1, WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, &(clt_train_options){.optimizer = CLT_SGD, .lr = 0.5f, .output = m.logits}));
    return m;
}

static void drawn_networks_have_the_bits_of_their_own_graphs(void **state) {
    (void)state;
    enum { NETWORKS = 12 };
    static float all_values[MOST_VALUES], own_values[MOST_VALUES];
    for (uint64_t seed = 0; seed < NETWORKS; seed++) {
        int64_t length = 1 + (int64_t)(seed * 5) % LONGEST, samples = 1 + (int64_t)seed % SAMPLES;
        model all = draw(seed, 0), own = draw(seed, length);
        clt_batch batch = batch_of(samples, length);
        assert_ok(clt_trainer_step(all.trainer, &batch));
        assert_ok(clt_trainer_step(own.trainer, &batch));
        size_t n = values_of(&all, all_values);
        assert_int_equal(values_of(&own, own_values), n);
        if (memcmp(all_values, own_values, n * sizeof(float))) fail_msg("seed %d, length %d: other bits", (int)seed, (int)length);
        destroy(&own);
        destroy(&all);
    }
}

/* A text is its own labels, as most programs have it: all tokens but the last, and all but the first. `length` as of make. */
static model of_library(bool llama, int64_t length) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_shape shape = CLT_SHAPE(SAMPLES, length ? length : LONGEST);
    clt_tensor *text_of = length ? clt_input(m.graph, "text", CLT_I32, shape) : clt_sequence_input(m.graph, "text", CLT_I32, shape, 1);
    clt_tensor *tokens = clt_slice(text_of, 1, 0, -1, 1), *next = clt_slice(text_of, 1, 1, INT64_MAX, 1);
    m.logits = llama ? clt_model_llama(tokens, .vocabulary = WORDS, .width = WIDTH, .hidden = 12, .layers = 2, .heads = 2, .key_heads = 1)
                     : clt_model_gpt2(tokens, .vocabulary = WORDS, .positions = LONGEST + 3, .width = WIDTH, .layers = 2, .heads = 2);
    m.loss = clt_cross_entropy(clt_reshape(m.logits, CLT_SHAPE(-1, WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
    assert_ok(clt_trainer_create(&m.trainer, device, m.loss, &(clt_train_options){.optimizer = CLT_SGD, .lr = 0.5f, .output = m.logits}));
    return m;
}

static void texts_are_their_own_labels(void **state) {
    (void)state;
    static float all_values[MOST_VALUES], own_values[MOST_VALUES];
    for (int llama = 0; llama <= 1; llama++)
        for (int64_t length = 2; length <= LONGEST; length += 5) {
            model all = of_library(llama, 0), own = of_library(llama, length);
            clt_batch batch = batch_of(SAMPLES, length);
            batch.n_fields = 1;
            for (int step = 0; step < 2; step++) {
                assert_ok(clt_trainer_step(all.trainer, &batch));
                assert_ok(clt_trainer_step(own.trainer, &batch));
            }
            size_t n = values_of(&all, all_values);
            assert_int_equal(values_of(&own, own_values), n);
            assert_memory_equal(all_values, own_values, n * sizeof(float));
            batch = batch_of(SAMPLES, 1); /* nothing is left of it */
            batch.n_fields = 1;
            assert_status(clt_trainer_step(all.trainer, &batch), CLT_E_SHAPE);
            destroy(&own);
            destroy(&all);
        }
}

/* Accuracy is over all labels, whatever the lengths of their batches. */
static void labels_of_all_lengths_are_counted(void **state) {
    (void)state;
    static const int64_t lengths[] = {12, 3, 7};
    static float logits[SAMPLES * LONGEST * WORDS];
    model m = make(0, true);
    clt_metrics metrics;
    int right = 0, labels = 0;
    for (size_t i = 0; i < 3; i++) {
        int64_t rows = SAMPLES * lengths[i];
        clt_batch batch = batch_of(SAMPLES, lengths[i]);
        for (int step = 0; step < 20 * (i == 0); step++) assert_ok(clt_trainer_step(m.trainer, &batch));
        assert_ok(clt_trainer_evaluate(m.trainer, &batch));
        assert_ok(clt_trainer_predict(m.trainer, m.logits, &batch, logits, (size_t)(rows * WORDS)));
        for (int64_t r = 0; r < rows; r++) {
            int best = 0;
            for (int c = 1; c < WORDS; c++)
                if (logits[r * WORDS + c] > logits[r * WORDS + best]) best = c;
            right += best == next_of[r];
        }
        labels += (int)rows;
    }
    assert_ok(clt_trainer_eval_metrics(m.trainer, &metrics, true));
    assert_int_equal(metrics.samples, 3 * SAMPLES);
    assert_true(right > 0 && right < labels);
    assert_true(metrics.accuracy == (double)right / labels);
    destroy(&m);
}

/* More sizes than plans are kept for: those that went are made anew. */
static void many_lengths_take_turns(void **state) {
    (void)state;
    model all = make(0, false);
    for (int round = 0; round < 2; round++)
        for (int64_t samples = 1; samples <= 2; samples++)
            for (int64_t length = 1; length <= LONGEST; length++) {
                clt_batch batch = batch_of(samples, length);
                assert_ok(clt_trainer_step(all.trainer, &batch));
            }
    assert_int_equal(clt_trainer_steps(all.trainer), 4 * LONGEST);
    destroy(&all);
}

static void other_lengths_are_refused(void **state) {
    (void)state;
    static int32_t many[SAMPLES * (LONGEST + 1)];
    model m = make(0, false);
    clt_batch batch = batch_of(SAMPLES, 4);
    batch.fields[0].shape.dims[1] = 3;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    assert_detail("field 1 of the batch is [3, 4]; input \"next\" wants [3, 3] for 3 samples");
    batch.fields[0] = batch.fields[1] = (clt_array){CLT_I32, CLT_SHAPE(SAMPLES, LONGEST + 1), many};
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    assert_detail("the batch has sequences of length 13; those of the graph are at most 12 long");
    assert_status(clt_trainer_evaluate(m.trainer, &batch), CLT_E_SHAPE);
    batch.fields[0].shape.dims[1] = 0;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    assert_detail("of length 0");
    batch.fields[0].shape = CLT_SHAPE(SAMPLES);
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_SHAPE);
    batch = batch_of(SAMPLES, 4);
    assert_ok(clt_trainer_step(m.trainer, &batch));
    destroy(&m);
}

/* A number that can only be the length follows it; one that may be a width, too, does not: the first batch of another length says so, and the trainer goes on. */
static void numbers_follow_or_are_refused(void **state) {
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        model m;
        assert_ok(clt_graph_create(&m.graph));
        clt_tensor *tokens = clt_sequence_input(m.graph, "tokens", CLT_I32, CLT_SHAPE(SAMPLES, LONGEST), 1);
        clt_tensor *next = clt_sequence_input(m.graph, "next", CLT_I32, CLT_SHAPE(SAMPLES, LONGEST), 1);
        clt_tensor *rows = clt_reshape(clt_embedding(tokens, "words", WORDS, LONGEST), flat ? CLT_SHAPE(-1) : CLT_SHAPE(-1, LONGEST));
        clt_tensor *x = clt_softmax(flat ? clt_reshape(rows, CLT_SHAPE(-1, LONGEST)) : clt_reshape(rows, CLT_SHAPE(SAMPLES, LONGEST, LONGEST)), -1);
        m.logits = clt_linear(x, "head", WORDS);
        m.loss = clt_cross_entropy(clt_reshape(m.logits, CLT_SHAPE(-1, WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
        assert_ok(clt_trainer_create(&m.trainer, device, m.loss, NULL));
        clt_batch batch = batch_of(SAMPLES, LONGEST / 2);
        assert_status(clt_trainer_step(m.trainer, &batch), flat ? CLT_E_SHAPE : CLT_OK);
        if (flat) assert_detail("training with 3 samples of length 6: reshape");
        batch = batch_of(SAMPLES, LONGEST);
        assert_ok(clt_trainer_step(m.trainer, &batch));
        destroy(&m);
    }
}

static clt_tensor *as_windows(clt_tensor *x) {
    return clt_reshape(clt_reshape(x, CLT_SHAPE(-1, WIDTH)), CLT_SHAPE(-1, LONGEST, 1, WIDTH)); /* the length, which it can only be */
}

static clt_tensor *all_but_the_last(clt_tensor *x) {
    return clt_slice(x, 1, 0, LONGEST - 1, 1);
}

static clt_tensor *first_four(clt_tensor *x) {
    return clt_slice(x, 1, 0, 4, 1);
}

/* Heads as a batch of products, told the longest length as a number: it is the length. */
static clt_tensor *heads_as_rows(clt_tensor *x) {
    clt_tensor *heads = clt_transpose(clt_reshape(x, CLT_SHAPE(CLT_BATCH, 0, 2, WIDTH / 2)), 1, 2);
    clt_tensor *rows = clt_reshape(heads, CLT_SHAPE(-1, LONGEST, WIDTH / 2));
    return clt_reshape(clt_softmax(rows, 1), CLT_SHAPE(CLT_BATCH, -1));
}

/* Their number is told, as PyTorch's programs have it, and the length remains. */
static clt_tensor *heads_by_count(clt_tensor *x) {
    clt_tensor *heads = clt_transpose(clt_reshape(x, CLT_SHAPE(CLT_BATCH, 0, 2, WIDTH / 2)), 1, 2);
    clt_tensor *rows = clt_reshape(heads, CLT_SHAPE(2 * SAMPLES, -1, WIDTH / 2));
    return clt_reshape(clt_softmax(rows, 1), CLT_SHAPE(CLT_BATCH, -1));
}

static clt_tensor *heads_by_numbers(clt_tensor *x) {
    clt_tensor *heads = clt_transpose(clt_reshape(x, CLT_SHAPE(CLT_BATCH, 0, 2, WIDTH / 2)), 1, 2);
    return clt_softmax(clt_reshape(heads, CLT_SHAPE(2 * SAMPLES, LONGEST, WIDTH / 2)), 1);
}

/* The length first, which remains. */
static clt_tensor *heads_by_time(clt_tensor *x) {
    clt_tensor *rows = clt_reshape(clt_transpose(x, 0, 1), CLT_SHAPE(-1, CLT_BATCH, 2, WIDTH / 2));
    return clt_reshape(clt_permute(clt_softmax(rows, 0), (int[]){1, 2, 0, 3}), CLT_SHAPE(CLT_BATCH, -1));
}

/* As PyTorch's programs write it: the length as a number, and the width of a head remains. */
static clt_tensor *heads_by_view(clt_tensor *x) {
    clt_tensor *heads = clt_transpose(clt_reshape(x, CLT_SHAPE(SAMPLES, LONGEST, 2, -1)), 1, 2);
    return clt_reshape(clt_softmax(heads, 2), CLT_SHAPE(CLT_BATCH, -1));
}

/* The length first, and heads of all samples by their number. */
static clt_tensor *heads_of_all(clt_tensor *x) {
    clt_tensor *rows = clt_softmax(clt_reshape(clt_transpose(x, 0, 1), CLT_SHAPE(-1, 2 * SAMPLES, WIDTH / 2)), 0);
    return clt_reshape(clt_permute(clt_reshape(rows, CLT_SHAPE(CLT_LENGTH, CLT_BATCH, 2, WIDTH / 2)), (int[]){1, 2, 0, 3}), CLT_SHAPE(CLT_BATCH, -1));
}

/* As many channels as the longest length, where x has them: which is which, its places tell. */
static clt_tensor *two_numbers(clt_tensor *x) {
    return clt_reshape(clt_transpose(clt_linear(x, "wide", LONGEST), 1, 2), CLT_SHAPE(-1, LONGEST, LONGEST));
}

/* Numbers of rows that hold the length, of what tells no place. */
static clt_tensor *rows_by_number(clt_tensor *x) {
    return clt_reshape(clt_reshape(x, CLT_SHAPE(-1)), CLT_SHAPE(SAMPLES * LONGEST, -1));
}

static clt_tensor *twice_as_long(clt_tensor *x) {
    return clt_upsample_nearest2d(clt_reshape(clt_transpose(x, 1, 2), CLT_SHAPE(CLT_BATCH, WIDTH, 1, -1)), 2);
}

/* Four tokens a row: of two samples where four do not divide the length. */
static clt_tensor *rows_of_four(clt_tensor *x) {
    return clt_reshape(x, CLT_SHAPE(-1, 4 * WIDTH));
}

/* `part` NULL: heads as they are. */
static void predict_rows(clt_tensor *(*part)(clt_tensor *), int64_t longest, int64_t samples, int64_t length, float *values, size_t count) {
    clt_graph *graph;
    clt_predictor *p;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *tokens = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(SAMPLES, longest), 1);
    clt_tensor *words = clt_embedding(tokens, "words", WORDS, WIDTH);
    clt_tensor *y = part ? part(words) : clt_reshape(clt_softmax(clt_transpose(clt_reshape(words, CLT_SHAPE(CLT_BATCH, 0, 2, WIDTH / 2)), 1, 2), 2), CLT_SHAPE(CLT_BATCH, -1));
    assert_ok(clt_predictor_create(&p, device, y, NULL));
    clt_batch batch = batch_of(samples, length);
    batch.n_fields = 1;
    assert_ok(clt_predictor_run(p, &batch, values, count));
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
}

static void heads_are_those_of_their_length(void **state) {
    (void)state;
    static float a[SAMPLES * LONGEST * WIDTH], b[SAMPLES * LONGEST * WIDTH];
    clt_tensor *(*const parts[])(clt_tensor *) = {heads_as_rows, heads_by_count, heads_by_time, heads_by_view, heads_of_all};
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        for (int64_t samples = 1; samples <= SAMPLES; samples++)
            for (int64_t length = 1; length < LONGEST; length++) {
                size_t count = (size_t)(samples * length * WIDTH);
                predict_rows(parts[part], LONGEST, samples, length, a, count);
                predict_rows(NULL, length, samples, length, b, count);
                for (size_t i = 0; i < count; i++)
                    if (!(fabsf(a[i] - b[i]) < 1e-6f)) fail_msg("way %d, %d samples of length %d", (int)part, (int)samples, (int)length);
            }
}

static clt_tensor *scores(clt_tensor *a, clt_tensor *b) {
    return clt_matmul_with(a, b, (clt_matmul_options){.transpose_b = true});
}

/* Two strides, and nothing at half the length. */
static clt_tensor *second_places(clt_tensor *x) {
    return clt_softmax(clt_unsqueeze(scores(clt_slice(x, 1, 5, INT64_MAX, 2), clt_slice(x, 1, 6, INT64_MAX, 2)), 1), -1);
}

/* No dimension but the batch is a multiple of the length. */
static clt_tensor *larger_halves(clt_tensor *x) {
    return clt_upsample_nearest2d(clt_unsqueeze(scores(clt_slice(x, 1, 0, INT64_MAX, 2), clt_slice(x, 1, 1, INT64_MAX, 3)), 1), 2);
}

static clt_tensor *convolved(clt_tensor *x, const char *name, int kernel) {
    return clt_transpose(clt_conv1d(clt_transpose(x, 1, 2), name, WIDTH, .kernel = kernel, .stride = 2), 1, 2);
}

static clt_tensor *wide_windows(clt_tensor *x) {
    return clt_linear(convolved(x, "windows", 5), "head", 2);
}

static clt_tensor *windows_of_windows(clt_tensor *x) {
    return clt_linear(convolved(convolved(x, "first", 3), "second", 3), "head", 2);
}

static clt_tensor *larger_scores(clt_tensor *x) {
    return clt_upsample_nearest2d(clt_unsqueeze(scores(x, x), 1), 2);
}

/* Windows of four places whose width is the longest length by chance: where four divide another length, only a width keeps the order. */
static clt_tensor *windows_as_wide_as_long(clt_tensor *x) {
    clt_tensor *windows = clt_reshape(clt_linear(x, "wide", LONGEST), CLT_SHAPE(-1, 4, LONGEST));
    return clt_reshape(clt_softmax(windows, 1), CLT_SHAPE(CLT_BATCH, -1));
}

static void widths_are_not_lengths(void **state) {
    (void)state;
    static float a[SAMPLES * LONGEST * LONGEST], b[SAMPLES * LONGEST * LONGEST];
    for (int64_t samples = 1; samples <= SAMPLES; samples++)
        for (int64_t length = 4; length < LONGEST; length += 4) {
            size_t count = (size_t)(samples * length * LONGEST);
            predict_rows(windows_as_wide_as_long, LONGEST, samples, length, a, count);
            predict_rows(windows_as_wide_as_long, length, samples, length, b, count);
            for (size_t i = 0; i < count; i++)
                if (!(fabsf(a[i] - b[i]) < 1e-6f)) fail_msg("%d samples of length %d", (int)samples, (int)length);
        }
}

static clt_tensor *transposed_convolutions(clt_tensor *x) {
    clt_tensor *image = clt_unsqueeze(clt_transpose(x, 1, 2), 2);
    image = clt_conv_transpose2d(image, "up", 4, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1);
    return clt_conv_transpose2d(clt_conv2d(clt_relu(image), "down", 2, .kernel = 2, .stride = 2), "again", 3, .kernel = 2, .stride = 2);
}

/* Lengths of which few are like the longest: half of it may be too short. */
static void strides_are_seen(void **state) {
    (void)state;
    static float a[SAMPLES * 4 * LONGEST * LONGEST], b[SAMPLES * 4 * LONGEST * LONGEST];
    static const struct {
        clt_tensor *(*part)(clt_tensor *);
        int64_t least;
    } cases[] = {{second_places, 7}, {wide_windows, 5}, {windows_of_windows, 7}, {larger_scores, 1}, {larger_halves, 2}, {transposed_convolutions, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t longest = cases[i].least + 1; longest <= LONGEST; longest++)
            for (int64_t length = cases[i].least; length < longest; length++) {
                int64_t samples = 1 + (longest + length) % SAMPLES;
                clt_graph *graph;
                assert_ok(clt_graph_create(&graph));
                clt_tensor *tokens = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(samples, length), 1);
                clt_shape shape = clt_tensor_shape(cases[i].part(clt_embedding(tokens, "words", WORDS, WIDTH)));
                size_t count = (size_t)clt_shape_elements(&shape);
                clt_graph_destroy(graph);
                predict_rows(cases[i].part, longest, samples, length, a, count);
                predict_rows(cases[i].part, length, samples, length, b, count);
                for (size_t k = 0; k < count; k++)
                    if (!(fabsf(a[k] - b[k]) < 1e-6f)) fail_msg("network %d for %d, at length %d", (int)i, (int)longest, (int)length);
            }
}

/* Features that are as many as the length says. */
static clt_tensor *linear_of_scores(clt_tensor *x) {
    return clt_linear(scores(x, x), "head", 3);
}

static clt_tensor *linear_of_half(clt_tensor *x) {
    clt_tensor *half = clt_slice(x, 1, 0, INT64_MAX, 2);
    return clt_linear(scores(half, half), "head", 3);
}

/* What would mix samples or leave out another token, without a word. */
static void numbers_do_not_mean_something_else_at_another_length(void **state) {
    (void)state;
    static const struct {
        clt_tensor *(*part)(clt_tensor *);
        int64_t length;
        clt_status status;
    } cases[] = {{as_windows, LONGEST, CLT_OK},       {as_windows, LONGEST / 2, CLT_OK}, {all_but_the_last, LONGEST, CLT_OK}, {all_but_the_last, LONGEST - 1, CLT_OK},
                 {all_but_the_last, LONGEST - 2, CLT_E_SHAPE}, {first_four, 5, CLT_OK},        {first_four, 4, CLT_OK},            {first_four, 3, CLT_E_SHAPE},
                 {rows_of_four, LONGEST, CLT_OK}, {rows_of_four, 8, CLT_OK}, {rows_of_four, 6, CLT_E_SHAPE}, {rows_of_four, 9, CLT_E_SHAPE},
                 {heads_by_numbers, LONGEST, CLT_OK}, {heads_by_numbers, LONGEST / 2, CLT_OK}, {two_numbers, LONGEST, CLT_OK}, {two_numbers, LONGEST / 3, CLT_OK},
                 {rows_by_number, LONGEST, CLT_OK}, {rows_by_number, 6, CLT_OK}, {twice_as_long, LONGEST, CLT_OK}, {twice_as_long, 5, CLT_OK},
                 {linear_of_scores, LONGEST, CLT_OK}, {linear_of_scores, 6, CLT_E_SHAPE},
                 {linear_of_half, LONGEST, CLT_OK}, {linear_of_half, LONGEST - 1, CLT_OK}, {linear_of_half, 6, CLT_E_SHAPE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clt_graph *graph;
        clt_trainer *trainer;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *tokens = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(SAMPLES, LONGEST), 1);
        clt_tensor *x = cases[i].part(clt_embedding(tokens, "words", WORDS, WIDTH));
        assert_ok(clt_trainer_create(&trainer, device, clt_mean(x, CLT_ALL_AXES), NULL));
        for (int64_t samples = 2; samples <= SAMPLES; samples++) {
            clt_batch batch = batch_of(samples, cases[i].length);
            batch.n_fields = 1;
            assert_status(clt_trainer_step(trainer, &batch), cases[i].status);
        }
        clt_trainer_destroy(trainer);
        clt_graph_destroy(graph);
    }
}

/* What is there before any input follows none. */
/* Classes that are places, and rows of the batch: as many as there are now. */
static void limits_of_indices_follow(void **state) {
    (void)state;
    clt_graph *g;
    clt_trainer *t;
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int32_t starts[] = {3, 1}, rows[] = {3, 0, 2, 1};
    assert_ok(clt_graph_create(&g));
    clt_tensor *in = clt_sequence_input(g, "x", CLT_F32, CLT_SHAPE(2, 4, 1), 1), *truth = clt_input(g, "start", CLT_I32, CLT_SHAPE(2));
    clt_tensor *w = clt_parameter(g, "w", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, .value = 1}), *scores = clt_reshape(clt_mul(in, w), CLT_SHAPE(CLT_BATCH, CLT_LENGTH));
    assert_ok(clt_trainer_create(&t, device, clt_cross_entropy(scores, truth), &(clt_train_options){.lr = 0.1f}));
    clt_batch batch = {.samples = 2, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(2, 4, 1), x}, {CLT_I32, CLT_SHAPE(2), starts}}};
    assert_ok(clt_trainer_step(t, &batch));
    batch.fields[0].shape = CLT_SHAPE(2, 2, 1);
    assert_status(clt_trainer_step(t, &batch), CLT_E_RANGE);
    assert_detail("input \"start\", sample 0 of the batch: 3 is outside [0, 2)");
    clt_trainer_destroy(t);
    clt_graph_destroy(g);

    assert_ok(clt_graph_create(&g));
    in = clt_input(g, "x", CLT_F32, CLT_SHAPE(2, 1));
    clt_tensor *ids = clt_input(g, "rows", CLT_I32, CLT_SHAPE(2));
    w = clt_parameter(g, "w", CLT_SHAPE(1), (clt_init){CLT_INIT_CONSTANT, .value = 1});
    assert_ok(clt_trainer_create(&t, device, clt_mean(clt_index_select(clt_mul(in, w), 0, ids), CLT_ALL_AXES), &(clt_train_options){.lr = 0.1f}));
    batch = (clt_batch){.samples = 4, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(4, 1), x}, {CLT_I32, CLT_SHAPE(4), rows}}};
    assert_ok(clt_trainer_step(t, &batch));
    batch = (clt_batch){.samples = 1, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(1, 1), x}, {CLT_I32, CLT_SHAPE(1), rows + 3}}};
    assert_status(clt_trainer_step(t, &batch), CLT_E_RANGE);
    assert_detail("1 is outside [0, 1)");
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
}

static void weights_are_reshaped_before_inputs(void **state) {
    (void)state;
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *weight = clt_parameter(graph, "weight", CLT_SHAPE(6, 4), (clt_init){0});
    clt_shape shape = clt_tensor_shape(clt_reshape(clt_slice(clt_reshape(weight, CLT_SHAPE(-1, 3)), 0, 0, 6, 1), CLT_SHAPE(-1, 2)));
    assert_ok(clt_graph_status(graph));
    assert_true(clt_shape_equal(&shape, &CLT_SHAPE(9, 2)));
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_length_has_the_bits_of_its_own_graph),
        cmocka_unit_test(drawn_networks_have_the_bits_of_their_own_graphs),
        cmocka_unit_test(texts_are_their_own_labels),
        cmocka_unit_test(labels_of_all_lengths_are_counted),
        cmocka_unit_test(many_lengths_take_turns),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(numbers_follow_or_are_refused),
        cmocka_unit_test(heads_are_those_of_their_length),
        cmocka_unit_test(limits_of_indices_follow),
        cmocka_unit_test(weights_are_reshaped_before_inputs),
        cmocka_unit_test(computed_indices_are_not_the_inputs),
        cmocka_unit_test(strides_are_seen),
        cmocka_unit_test(widths_are_not_lengths),
        cmocka_unit_test(numbers_do_not_mean_something_else_at_another_length),
    };
    return cmocka_run_group_tests_name("length", tests, open_device, close_device);
}
