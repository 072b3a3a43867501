/* Low-rank adapters: what a graph computes with them, what is trained, and PEFT's files, which are a stranger's. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cltrain/cltrain.h>

#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/graph/graph.h"
#include "runtime/train/safetensors.h"

enum { N = 3, IN = 6, WIDE = 8, OUT = 4, RANK = 2 };

static clt_device *device;
static float xs[N * IN];

static int open_device(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 5, 0);
    for (int i = 0; i < N * IN; i++) xs[i] = (float)clt_random_normal(&random);
    return clt_device_open(&device, NULL) < 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

/* fc1 is a linear layer, [out, in]; turned.weight lies [in, out], as GPT-2's. */
typedef struct net {
    clt_graph *graph;
    clt_tensor *output, *loss;
    clt_trainer *trainer;
} net;

static void build(net *n) {
    assert_ok(clt_graph_create(&n->graph));
    clt_tensor *x = clt_input(n->graph, "x", CLT_F32, CLT_SHAPE(N, IN)), *y = clt_input(n->graph, "y", CLT_F32, CLT_SHAPE(N, OUT));
    clt_tensor *turned = clt_parameter(n->graph, "turned.weight", CLT_SHAPE(WIDE, OUT), (clt_init){CLT_INIT_NORMAL, .value = 0.3f});
    x = clt_relu(clt_linear(x, "fc1", WIDE));
    n->output = clt_matmul(x, turned);
    n->loss = clt_mse_loss(n->output, y);
}

static void train_on(net *n) {
    assert_ok(clt_trainer_create(&n->trainer, device, n->loss, &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 0.05f, .output = n->output, .seed = 9}));
}

static const clt_lora_options narrow = {.rank = RANK, .alpha = 3};

static void adapt(net *n) {
    assert_ok(clt_graph_set_trained(n->graph, "*", false));
    assert_ok(clt_graph_add_lora(n->graph, "*.weight", &narrow));
}

static void free_net(net *n) {
    clt_trainer_destroy(n->trainer);
    clt_graph_destroy(n->graph);
    *n = (net){0};
}

static const clt_batch *batch_of(void) {
    static float ys[N * OUT];
    static clt_batch batch;
    for (int i = 0; i < N * OUT; i++) ys[i] = (float)(i % 3) - 1;
    batch = (clt_batch){N, 2, {{CLT_F32, CLT_SHAPE(N, IN), xs}, {CLT_F32, CLT_SHAPE(N, OUT), ys}}};
    return &batch;
}

static void predict(net *n, float values[N * OUT]) {
    assert_ok(clt_trainer_predict(n->trainer, n->output, batch_of(), values, N * OUT));
}

static void step(net *n, int steps) {
    for (int i = 0; i < steps; i++) assert_ok(clt_trainer_step(n->trainer, batch_of()));
}

static void assert_near(const float *a, const float *b, int n) {
    for (int i = 0; i < n; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-5f * (1 + fabsf(b[i])));
}

static void begins_as_the_model_was(void **state) {
    (void)state;
    net plain = {0}, adapted = {0};
    float a[N * OUT], b[N * OUT];
    build(&plain);
    build(&adapted);
    int64_t all = clt_graph_parameter_count(plain.graph);
    adapt(&adapted);
    assert_ok(clt_graph_status(adapted.graph));
    assert_int_equal(clt_graph_parameter_count(adapted.graph), RANK * (IN + WIDE) + RANK * (WIDE + OUT));
    assert_int_equal(all, WIDE * IN + WIDE + WIDE * OUT);
    assert_true(clt_shape_equal(&(clt_shape){2, {RANK, IN}}, &clt_graph_find(adapted.graph, "fc1.lora_A.weight")->shape));
    assert_true(clt_shape_equal(&(clt_shape){2, {OUT, RANK}}, &clt_graph_find(adapted.graph, "turned.lora_B.weight")->shape));
    train_on(&plain);
    train_on(&adapted);
    predict(&plain, a);
    predict(&adapted, b);
    assert_near(b, a, N * OUT);
    float drawn[RANK * IN], bound = 1 / sqrtf(IN), zeros[OUT * RANK];
    assert_ok(clt_trainer_get(adapted.trainer, "fc1.lora_A.weight", drawn, RANK * IN));
    assert_ok(clt_trainer_get(adapted.trainer, "turned.lora_B.weight", zeros, OUT * RANK));
    for (int i = 0; i < RANK * IN; i++) assert_true(fabsf(drawn[i]) <= bound && drawn[i] != 0);
    for (int i = 0; i < OUT * RANK; i++) assert_true(zeros[i] == 0);
    free_net(&plain);
    free_net(&adapted);
}

static float largest(const float *values, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(values[i]));
    return most;
}

/* x W + alpha / rank (x A^T) B^T in f64. */
static void layer(const double *x, int in, int out, const float *w, bool turned, const float *a, const float *b, const float *bias, double *y) {
    for (int n = 0; n < N; n++)
        for (int o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int i = 0; i < in; i++) sum += x[n * in + i] * (double)w[turned ? i * out + o : o * in + i];
            for (int r = 0; r < RANK; r++) {
                double thin = 0;
                for (int i = 0; i < in; i++) thin += x[n * in + i] * (double)a[r * in + i];
                sum += 3.0 / RANK * thin * (double)b[o * RANK + r];
            }
            y[n * out + o] = sum;
        }
}

static void computes_the_sum_of_both_products(void **state) {
    (void)state;
    net n = {0};
    float w1[WIDE * IN], bias[WIDE], a1[RANK * IN], b1[WIDE * RANK], w2[WIDE * OUT], a2[RANK * WIDE], b2[OUT * RANK], got[N * OUT];
    double x[N * IN], hidden[N * WIDE], wanted[N * OUT];
    build(&n);
    adapt(&n);
    train_on(&n);
    step(&n, 5);
    predict(&n, got);
    assert_ok(clt_trainer_get(n.trainer, "fc1.weight", w1, WIDE * IN));
    assert_ok(clt_trainer_get(n.trainer, "fc1.bias", bias, WIDE));
    assert_ok(clt_trainer_get(n.trainer, "fc1.lora_A.weight", a1, RANK * IN));
    assert_ok(clt_trainer_get(n.trainer, "fc1.lora_B.weight", b1, WIDE * RANK));
    assert_ok(clt_trainer_get(n.trainer, "turned.weight", w2, WIDE * OUT));
    assert_ok(clt_trainer_get(n.trainer, "turned.lora_A.weight", a2, RANK * WIDE));
    assert_ok(clt_trainer_get(n.trainer, "turned.lora_B.weight", b2, OUT * RANK));
    for (int i = 0; i < N * IN; i++) x[i] = xs[i];
    layer(x, IN, WIDE, w1, false, a1, b1, bias, hidden);
    for (int i = 0; i < N * WIDE; i++) hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
    layer(hidden, WIDE, OUT, w2, true, a2, b2, NULL, wanted);
    for (int i = 0; i < N * OUT; i++) assert_true(fabs(got[i] - wanted[i]) < 1e-5);
    assert_true(largest(b1, WIDE * RANK) > 1e-2f && largest(b2, OUT * RANK) > 1e-2f); /* they have been trained */
    free_net(&n);
}

static void adapters_alone_are_trained(void **state) {
    (void)state;
    net n = {0};
    float w[2][WIDE * IN], bias[2][WIDE];
    clt_metrics first, last;
    build(&n);
    adapt(&n);
    train_on(&n);
    for (int i = 0; i < 2; i++) {
        assert_ok(clt_trainer_get(n.trainer, "fc1.weight", w[i], WIDE * IN));
        assert_ok(clt_trainer_get(n.trainer, "fc1.bias", bias[i], WIDE));
        if (i) break;
        step(&n, 1);
        assert_ok(clt_trainer_train_metrics(n.trainer, &first, true));
        step(&n, 100);
        assert_ok(clt_trainer_train_metrics(n.trainer, &last, true));
        step(&n, 1);
        assert_ok(clt_trainer_train_metrics(n.trainer, &last, true));
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(bias[0], bias[1], sizeof bias[0]);
    assert_true(last.loss < 0.5 * first.loss);
    free_net(&n);
}

/* ---- files ---- */

static void exported_weights_have_the_adapters_merged(void **state) {
    (void)state;
    net adapted = {0}, plain = {0};
    float a[N * OUT], b[N * OUT];
    const char *path = support_path("merged.safetensors");
    build(&adapted);
    adapt(&adapted);
    train_on(&adapted);
    step(&adapted, 20);
    predict(&adapted, a);
    assert_ok(clt_weights_save(adapted.trainer, path));
    build(&plain);
    train_on(&plain);
    assert_ok(clt_weights_load(plain.trainer, path)); /* no tensor is left over */
    predict(&plain, b);
    assert_near(b, a, N * OUT);
    free_net(&plain);
    free_net(&adapted);
}

static void checkpoints_hold_both(void **state) {
    (void)state;
    net one = {0}, two = {0}, plain = {0};
    float a[N * OUT], b[N * OUT], base[N * OUT];
    char path[512], weights[512];
    snprintf(path, sizeof path, "%s", support_path("both.safetensors"));
    snprintf(weights, sizeof weights, "%s", support_path("base.safetensors"));
    build(&one);
    adapt(&one);
    train_on(&one);
    step(&one, 7);
    assert_ok(clt_checkpoint_save(one.trainer, NULL, path));
    step(&one, 5);
    predict(&one, a);
    build(&two);
    adapt(&two);
    train_on(&two);
    assert_ok(clt_checkpoint_load(two.trainer, NULL, path));
    step(&two, 5);
    predict(&two, b);
    assert_memory_equal(a, b, sizeof a);
    /* Weights without adapters leave those that there are. */
    build(&plain);
    train_on(&plain);
    step(&plain, 3);
    predict(&plain, base);
    assert_ok(clt_weights_save(plain.trainer, weights));
    free_net(&two);
    build(&two);
    adapt(&two);
    train_on(&two);
    assert_ok(clt_weights_load(two.trainer, weights));
    predict(&two, b);
    assert_near(b, base, N * OUT);
    assert_status(clt_weights_load(plain.trainer, path), CLT_E_MISMATCH);
    free_net(&one);
    free_net(&two);
    free_net(&plain);
}

static void a_folder_goes_both_ways(void **state) {
    (void)state;
    net one = {0}, two = {0};
    float a[N * OUT], b[N * OUT];
    char folder[512], base[512];
    snprintf(folder, sizeof folder, "%s", support_path("adapter/of/fc"));
    snprintf(base, sizeof base, "%s", support_path("before.safetensors"));
    build(&one);
    train_on(&one);
    assert_ok(clt_weights_save(one.trainer, base));
    assert_status(clt_lora_save(one.trainer, folder), CLT_E_STATE);
    free_net(&one);
    build(&one);
    adapt(&one);
    train_on(&one);
    step(&one, 9);
    assert_ok(clt_lora_save(one.trainer, folder));
    predict(&one, a);
    build(&two);
    assert_ok(clt_graph_add_lora_of(two.graph, folder));
    assert_ok(clt_graph_status(two.graph));
    train_on(&two);
    assert_ok(clt_weights_load(two.trainer, base));
    assert_ok(clt_lora_load(two.trainer, folder));
    predict(&two, b);
    assert_memory_equal(a, b, sizeof a);
    clt_predictor *p;
    assert_ok(clt_predictor_create(&p, device, two.output, &(clt_predictor_options){.weights = base}));
    assert_ok(clt_predictor_load_lora(p, folder));
    assert_ok(clt_predictor_run(p, batch_of(), b, N * OUT));
    assert_memory_equal(a, b, sizeof a);
    clt_predictor_destroy(p);
    free_net(&one);
    free_net(&two);
}

/* Weights are the whole model: what its adapters had learned is merged into them, and is not added once more. */
static void weights_take_the_place_of_adapters(void **state) {
    (void)state;
    net n = {0}, other = {0};
    float a[N * OUT], b[N * OUT];
    char weights[512], checkpoint[512];
    snprintf(weights, sizeof weights, "%s", support_path("round.safetensors"));
    snprintf(checkpoint, sizeof checkpoint, "%s", support_path("alpha.safetensors"));
    build(&n);
    adapt(&n);
    train_on(&n);
    step(&n, 20);
    predict(&n, a);
    assert_ok(clt_weights_save(n.trainer, weights));
    assert_ok(clt_checkpoint_save(n.trainer, NULL, checkpoint));
    assert_ok(clt_weights_load(n.trainer, weights));
    predict(&n, b);
    assert_near(b, a, N * OUT);
    build(&other);
    assert_ok(clt_graph_set_trained(other.graph, "*", false));
    assert_ok(clt_graph_add_lora(other.graph, "*.weight", &(clt_lora_options){.rank = RANK, .alpha = 64}));
    train_on(&other);
    assert_status(clt_checkpoint_load(other.trainer, NULL, checkpoint), CLT_E_MISMATCH);
    assert_detail("was trained with adapters of alpha 3, not 64");
    assert_status(clt_weights_load(other.trainer, checkpoint), CLT_E_MISMATCH);
    free_net(&n);
    free_net(&other);
    /* The checkpoint tells its adapters. */
    clt_predictor *p;
    build(&other);
    assert_status(clt_graph_add_lora_in(other.graph, weights), CLT_E_NOT_FOUND);
    assert_status(clt_graph_add_lora_in(other.graph, support_path("nowhere")), CLT_E_IO);
    assert_ok(clt_graph_add_lora_in(other.graph, checkpoint));
    assert_ok(clt_predictor_create(&p, device, other.output, &(clt_predictor_options){.weights = checkpoint}));
    assert_ok(clt_predictor_run(p, batch_of(), b, N * OUT));
    assert_near(b, a, N * OUT);
    clt_predictor_destroy(p);
    free_net(&other);
    clt_graph *stranger;
    assert_ok(clt_graph_create(&stranger));
    clt_linear(clt_input(stranger, "x", CLT_F32, CLT_SHAPE(2, 3)), "head", 4);
    assert_status(clt_graph_add_lora_in(stranger, checkpoint), CLT_E_MISMATCH);
    assert_detail("which is of no linear layer of the model");
    assert_status(clt_graph_status(stranger), CLT_E_MISMATCH);
    clt_graph_destroy(stranger);
}

/* ---- a weight that serves twice, sequences of any length, dropout ---- */

static void a_language_model_is_adapted(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trainer *trainer;
    static int32_t ids[2 * 8] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7};
    assert_ok(clt_graph_create(&graph));
    clt_tensor *tokens = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(2, 8), 1), *truth = clt_sequence_input(graph, "truth", CLT_I32, CLT_SHAPE(2, 8), 1);
    clt_tensor *logits = clt_model_gpt2(tokens, .vocabulary = 11, .positions = 8, .width = 8, .layers = 2, .heads = 2, .dropout = 0.1f);
    clt_tensor *loss = clt_cross_entropy(clt_reshape(logits, CLT_SHAPE(-1, 11)), clt_reshape(truth, CLT_SHAPE(-1)));
    assert_ok(clt_graph_set_trained(graph, "*", false));
    assert_ok(clt_graph_add_lora(graph, "*.c_attn.weight", &(clt_lora_options){.rank = 3, .alpha = 6, .dropout = 0.2f}));
    assert_status(clt_graph_add_lora(graph, "transformer.w?e.weight", NULL), CLT_E_NOT_FOUND); /* the head is the embedding, too */
    assert_ok(clt_graph_add_lora(graph, "*.mlp.c_proj.weight", &(clt_lora_options){.rank = 1}));
    assert_int_equal(clt_graph_parameter_count(graph), 2 * 3 * (8 + 24) + 2 * 1 * (32 + 8));
    assert_ok(clt_trainer_create(&trainer, device, loss, &(clt_train_options){.optimizer = CLT_ADAMW, .lr = 0.01f}));
    for (int i = 0; i < 6; i++) {
        int64_t length = i % 2 ? 8 : 5;
        clt_batch batch = {2, 2, {{CLT_I32, CLT_SHAPE(2, length), ids}, {CLT_I32, CLT_SHAPE(2, length), ids}}};
        assert_ok(clt_trainer_step(trainer, &batch));
    }
    assert_ok(clt_trainer_wait(trainer));
    assert_status(clt_lora_save(trainer, support_path("mixed")), CLT_E_UNSUPPORTED);
    assert_detail("differ in rank");
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

static void a_weight_that_serves_twice_has_one_adapter(void **state) {
    (void)state;
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, IN));
    clt_tensor *w = clt_parameter(graph, "w", CLT_SHAPE(IN, IN), (clt_init){CLT_INIT_NORMAL, .value = 0.3f});
    clt_tensor *twice = clt_linear_op(clt_linear_op(x, w, NULL), w, NULL);
    assert_ok(clt_graph_add_lora(graph, "w", NULL));
    assert_int_equal(clt_graph_parameter_count(graph), 2 * 8 * IN);
    assert_non_null(clt_graph_find(graph, "w.lora_A.weight"));
    clt_trainer *trainer;
    assert_ok(clt_trainer_create(&trainer, device, clt_mse_loss(twice, x), NULL));
    clt_batch batch = {N, 1, {{CLT_F32, CLT_SHAPE(N, IN), xs}}};
    assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_wait(trainer));
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* The graph's random state is made for a dropout that stands behind the adapter's. */
static void adapters_drop_before_the_model_does(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trainer *trainer;
    static float ys[N * OUT];
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, IN)), *y = clt_input(graph, "y", CLT_F32, CLT_SHAPE(N, OUT));
    clt_tensor *loss = clt_mse_loss(clt_linear(clt_dropout(clt_linear(x, "fc1", WIDE), 0.25f), "fc2", OUT), y);
    assert_ok(clt_graph_add_lora(graph, "fc?.weight", &(clt_lora_options){.rank = 2, .dropout = 0.5f}));
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++) assert_true(graph->nodes[i]->inputs[k]->index < (int)i);
    assert_ok(clt_trainer_create(&trainer, device, loss, NULL));
    clt_batch batch = {N, 2, {{CLT_F32, CLT_SHAPE(N, IN), xs}, {CLT_F32, CLT_SHAPE(N, OUT), ys}}};
    for (int i = 0; i < 3; i++) assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_wait(trainer));
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

/* ---- errors ---- */

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    net n = {0};
    const clt_lora_options wrong[] = {{.rank = -1}, {.rank = CLT_LORA_MAX_RANK + 1}, {.alpha = NAN}, {.alpha = INFINITY}, {.dropout = 1}, {.dropout = -0.5f}, {.dropout = NAN}};
    build(&n);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_status(clt_graph_add_lora(n.graph, "fc1.weight", &wrong[i]), CLT_E_INVALID);
    assert_status(clt_graph_add_lora(n.graph, "*.bias", NULL), CLT_E_NOT_FOUND);
    assert_detail("no weight of a linear layer matches \"*.bias\"");
    assert_status(clt_graph_add_lora(NULL, "*", NULL), CLT_E_INVALID);
    assert_status(clt_graph_add_lora(n.graph, NULL, NULL), CLT_E_INVALID);
    assert_ok(clt_graph_status(n.graph)); /* nothing has changed */
    assert_null(clt_graph_find(n.graph, "fc1.lora_A.weight"));
    assert_ok(clt_graph_add_lora(n.graph, "fc1.weight", NULL));
    assert_status(clt_graph_add_lora(n.graph, "fc1.weight", NULL), CLT_E_INVALID);
    assert_detail("\"fc1.weight\" is adapted already");
    assert_status(clt_graph_status(n.graph), CLT_E_INVALID);
    free_net(&n);

    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, IN));
    clt_tensor *w = clt_parameter(graph, "w", CLT_SHAPE(IN, IN), (clt_init){CLT_INIT_ZEROS});
    clt_matmul(clt_linear_op(x, w, NULL), w);
    assert_status(clt_graph_add_lora(graph, "w", NULL), CLT_E_UNSUPPORTED);
    clt_graph_destroy(graph);

    assert_status(clt_lora_save(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_lora_load(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_predictor_load_lora(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_graph_add_lora_of(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_graph_add_lora_in(NULL, "x"), CLT_E_INVALID);
}

/* A folder of one tensor: its name, its shape, and the config's text. */
static void write_folder(const char *config, const char *tensor, int rows, int columns) {
    static const float zeros[64];
    const clt_safetensors_entry entry = {.name = tensor, .dtype = CLT_SAFETENSORS_F32, .shape = CLT_SHAPE(rows, columns)};
    clt_safetensors_writer *writer;
    assert_ok(clt_file_make_folder(support_path("stranger")));
    support_write(support_path("stranger/adapter_config.json"), config, strlen(config));
    assert_ok(clt_safetensors_writer_open(&writer, support_path("stranger/adapter_model.safetensors"), &entry, 1, NULL, 0));
    assert_ok(clt_safetensors_writer_write(writer, zeros, (size_t)(rows * columns) * sizeof *zeros));
    assert_ok(clt_safetensors_writer_commit(writer));
}

#define CONFIG(more) "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4" more "}"
#define A1 "base_model.model.fc1.lora_A.weight"

static void refuses_what_peft_has_besides(void **state) {
    (void)state;
    static const struct {
        const char *config, *tensor;
        int rows, columns;
        clt_status status;
        const char *words;
    } wrong[] = {
        {"{}", A1, 2, 6, CLT_E_FORMAT, "\"peft_type\" is missing"},
        {"[]", A1, 2, 6, CLT_E_FORMAT, "is not a JSON object"},
        {"{\"peft_type\":\"IA3\"}", A1, 2, 6, CLT_E_UNSUPPORTED, "\"peft_type\" is \"IA3\": expected LORA"},
        {CONFIG(",\"use_dora\":true"), A1, 2, 6, CLT_E_UNSUPPORTED, "\"use_dora\" is true: expected none"},
        {CONFIG(",\"use_rslora\":true"), A1, 2, 6, CLT_E_UNSUPPORTED, "\"use_rslora\""},
        {CONFIG(",\"bias\":\"all\""), A1, 2, 6, CLT_E_UNSUPPORTED, "\"bias\" is \"all\": expected none"},
        {CONFIG(",\"rank_pattern\":{\"x\":3}"), A1, 2, 6, CLT_E_UNSUPPORTED, "\"rank_pattern\""},
        {CONFIG(",\"modules_to_save\":[\"head\"]"), A1, 2, 6, CLT_E_UNSUPPORTED, "\"modules_to_save\" is [\"head\"]: expected none"},
        {CONFIG(",\"init_lora_weights\":\"pissa\""), A1, 2, 6, CLT_E_UNSUPPORTED, "\"init_lora_weights\" is \"pissa\": expected gaussian"},
        {CONFIG(",\"alora_invocation_tokens\":[9]"), A1, 2, 6, CLT_E_UNSUPPORTED, "\"alora_invocation_tokens\" is [9]: expected none"},
        {CONFIG(",\"lora_dropout\":1"), A1, 2, 6, CLT_E_INVALID, "dropout 1"},
        {"{\"peft_type\":\"LORA\",\"r\":0}", A1, 2, 6, CLT_E_RANGE, "\"r\" is 0"},
        {"{\"peft_type\":\"LORA\",\"r\":\"2\"}", A1, 2, 6, CLT_E_FORMAT, "\"r\" is not a whole number"},
        {"{\"peft_type\":\"LORA\",\"lora_alpha\":1e99}", A1, 2, 6, CLT_E_RANGE, "\"lora_alpha\" is too large"},
        {CONFIG(""), "base_model.model.fc1.lora_embedding_A", 2, 6, CLT_E_UNSUPPORTED, "lora_embedding_A"},
        {CONFIG(""), "base_model.model.fc9.lora_A.weight", 2, 6, CLT_E_MISMATCH, "which the model has not"},
        {CONFIG(""), "fc1.lora_A.weight", 2, 6, CLT_E_MISMATCH, "which the model has not"},
        {CONFIG(""), ".lora_A.weight", 2, 6, CLT_E_MISMATCH, "which the model has not"},
        {CONFIG(""), A1, 3, 6, CLT_E_MISMATCH, "does not adapt \"fc1.weight\" by rank 2"},
        {CONFIG(""), A1, 2, 5, CLT_E_MISMATCH, "does not adapt"},
        {CONFIG(""), "base_model.model.fc1.bias.lora_A.weight", 2, 6, CLT_E_MISMATCH, "does not adapt"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        net n = {0};
        build(&n);
        write_folder(wrong[i].config, wrong[i].tensor, wrong[i].rows, wrong[i].columns);
        assert_status(clt_graph_add_lora_of(n.graph, support_path("stranger")), wrong[i].status);
        assert_detail(wrong[i].words);
        free_net(&n);
    }
}

/* All that peft 0.21 writes beside what is used. */
static void takes_what_peft_writes(void **state) {
    (void)state;
    net n = {0};
    build(&n);
    write_folder("{\"alora_invocation_tokens\":null,\"alpha_pattern\":{},\"arrow_config\":null,\"auto_mapping\":{\"base_model_class\":\"GPT2LMHeadModel\"},"
                 "\"base_model_name_or_path\":\"gpt2\",\"bias\":\"none\",\"corda_config\":null,\"ensure_weight_tying\":false,\"eva_config\":null,\"exclude_modules\":null,"
                 "\"fan_in_fan_out\":true,\"inference_mode\":true,\"init_lora_weights\":true,\"layer_replication\":null,\"layers_pattern\":null,\"loftq_config\":{},"
                 "\"lora_alpha\":4,\"lora_bias\":false,\"lora_dropout\":0.05,\"megatron_core\":\"megatron.core\",\"modules_to_save\":null,\"peft_type\":\"LORA\","
                 "\"peft_version\":\"0.21.2\",\"qalora_group_size\":16,\"r\":2,\"rank_pattern\":{},\"revision\":null,\"target_modules\":[\"fc1\"],\"task_type\":\"CAUSAL_LM\","
                 "\"use_dora\":false,\"use_rslora\":false}", A1, RANK, IN);
    assert_ok(clt_graph_add_lora_of(n.graph, support_path("stranger")));
    assert_non_null(clt_graph_find(n.graph, "fc1.lora_A.weight"));
    free_net(&n);
}

/* All adapters of the graph, and no other; nothing is changed else. */
static void refuses_half_of_the_adapters(void **state) {
    (void)state;
    net n = {0};
    float a[N * OUT], b[N * OUT];
    build(&n);
    adapt(&n);
    train_on(&n);
    step(&n, 3);
    predict(&n, a);
    write_folder(CONFIG(""), A1, RANK, IN);
    assert_status(clt_lora_load(n.trainer, support_path("stranger")), CLT_E_MISMATCH);
    assert_detail("has no tensor \"base_model.model.fc1.lora_B.weight\"");
    predict(&n, b);
    assert_memory_equal(a, b, sizeof a);
    assert_status(clt_lora_load(n.trainer, support_path("nowhere")), CLT_E_IO);
    assert_status(clt_graph_add_lora_of(n.graph, support_path("nowhere")), CLT_E_IO);
    free_net(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_as_the_model_was),
        cmocka_unit_test(computes_the_sum_of_both_products),
        cmocka_unit_test(adapters_alone_are_trained),
        cmocka_unit_test(exported_weights_have_the_adapters_merged),
        cmocka_unit_test(checkpoints_hold_both),
        cmocka_unit_test(a_folder_goes_both_ways),
        cmocka_unit_test(weights_take_the_place_of_adapters),
        cmocka_unit_test(a_language_model_is_adapted),
        cmocka_unit_test(a_weight_that_serves_twice_has_one_adapter),
        cmocka_unit_test(adapters_drop_before_the_model_does),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(refuses_what_peft_has_besides),
        cmocka_unit_test(takes_what_peft_writes),
        cmocka_unit_test(refuses_half_of_the_adapters),
    };
    return cmocka_run_group_tests_name("lora", tests, open_device, close_device);
}
