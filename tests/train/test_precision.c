/* Mixed precision: what becomes of a network whose products and convolutions take and give bf16. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>
#include <cltrain/experimental/predict.h>
#include <cltrain/models.h>

#include "comm/local/local.h"
#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/train/trainer.h"

enum { BATCH = 32, STEPS = 120, CLASSES = 4, SIDE = 8, PIXELS = SIDE * SIDE, MOST = 20000 };

SUPPORT_DEVICE

/* ---- networks ---- */

typedef clt_tensor *network(clt_tensor *x);

static clt_tensor *layers(clt_tensor *x) {
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(x), "fc1", 64));
    return clt_linear(clt_gelu(clt_linear(h, "fc2", 64)), "fc3", CLASSES);
}

static clt_tensor *convolutions(clt_tensor *x) {
    clt_tensor *h = clt_relu(clt_batch_norm(clt_conv2d(x, "conv1", 8, .kernel = 3, .padding = 1), "norm1"));
    h = clt_max_pool2d(h, .kernel = 2);
    h = clt_add(h, clt_relu(clt_batch_norm(clt_conv2d(h, "conv2", 8, .kernel = 3, .padding = 1), "norm2")));
    return clt_linear(clt_flatten(clt_avg_pool2d(h, .kernel = 2)), "fc", CLASSES);
}

/* Rows of an image are the tokens. */
static clt_tensor *attention(clt_tensor *x) {
    clt_tensor *h = clt_linear(clt_reshape(x, CLT_SHAPE(0, SIDE, SIDE)), "embed", 16);
    clt_tensor *n = clt_layer_norm(h, "norm1", 1);
    clt_tensor *q = clt_transpose(clt_reshape(clt_linear(n, "q", 16), CLT_SHAPE(0, 0, 2, 8)), 1, 2);
    clt_tensor *k = clt_transpose(clt_reshape(clt_linear(n, "k", 16), CLT_SHAPE(0, 0, 2, 8)), 1, 2);
    clt_tensor *a = clt_reshape(clt_transpose(clt_attention(q, k, k, .causal = true), 1, 2), CLT_SHAPE(0, 0, 16));
    h = clt_add(h, clt_linear(clt_dropout(a, 0.1f), "project", 16));
    return clt_linear(clt_mean(clt_rms_norm(h, "norm2", 1), CLT_AXES(1)), "head", CLASSES);
}

typedef struct model {
    clt_graph *graph;
    clt_tensor *logits;
    clt_trainer *trainer;
} model;

static model make_with(network *n, clt_train_options options) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE)), *y = clt_input(m.graph, "y", CLT_I32, CLT_SHAPE(BATCH));
    m.logits = n(x);
    options.output = m.logits;
    options.seed = 3;
    if (clt_trainer_create(&m.trainer, device, clt_cross_entropy(m.logits, y), &options) < 0) fail_msg("%s", clt_error_detail());
    return m;
}

static model make(network *n, clt_precision precision) {
    clt_train_options options = {.optimizer = CLT_ADAMW, .lr = 5e-3f, .clip_norm = 1, .precision = precision};
    if (precision == CLT_PRECISION_F16) options.on_nonfinite = CLT_NONFINITE_SKIP;
    return make_with(n, options);
}

static void destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
}

/* A bar in each image lies in one of four places, on noise. */
static clt_batch draw(uint64_t number) {
    static float x[BATCH][PIXELS];
    static int32_t y[BATCH];
    clt_random random;
    clt_random_init(&random, 11, number);
    for (int i = 0; i < BATCH; i++) {
        y[i] = (int32_t)clt_random_below(&random, CLASSES);
        for (int k = 0; k < PIXELS; k++) x[i][k] = (float)clt_random_normal(&random) + (k / SIDE / 2 == y[i] ? 1.5f : 0);
    }
    return (clt_batch){.samples = BATCH, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE), x}, {CLT_I32, CLT_SHAPE(BATCH), y}}};
}

static size_t values_of(const model *m, float *values) {
    size_t n;
    float *all = support_parameters(m->trainer, m->graph, &n);
    assert_true(n <= MOST);
    memcpy(values, all, n * sizeof *values);
    free(all);
    return n;
}

/* The mean loss of the last third, whose parameters are left in `values`; how many these are. */
static size_t train(const model *m, int steps, double *loss, float *values) {
    clt_metrics metrics;
    for (int s = 0; s < steps; s++) {
        if (s == 2 * steps / 3) assert_ok(clt_trainer_train_metrics(m->trainer, &metrics, true));
        clt_batch batch = draw((uint64_t)s);
        assert_ok(clt_trainer_step(m->trainer, &batch));
    }
    assert_ok(clt_trainer_train_metrics(m->trainer, &metrics, true));
    *loss = metrics.loss;
    assert_true(metrics.accuracy > 0 && metrics.accuracy <= 1);
    return values_of(m, values);
}

static network *const networks[] = {layers, convolutions, attention};

static void networks_learn_as_in_f32(void **state) {
    static float values[3][MOST];
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof networks / sizeof *networks); i++) {
        double loss[3];
        size_t n = 0;
        for (int k = 0; k < 3; k++) {
            model m = make(networks[i / 2], !k ? CLT_PRECISION_F32 : i % 2 ? CLT_PRECISION_F16 : CLT_PRECISION_BF16);
            n = train(&m, STEPS, &loss[k], values[k]);
            destroy(&m);
        }
        assert_true(loss[0] < 0.5 && fabs(loss[1] - loss[0]) < 0.05 + 0.1 * loss[0]);
        assert_memory_equal(values[1], values[2], n * sizeof **values);     /* the same bits each time */
        assert_memory_not_equal(values[0], values[1], n * sizeof **values); /* but not those of f32 */
        int apart = 0;
        for (size_t k = 0; k < n; k++) apart += fabsf(values[0][k] - values[1][k]) > 0.1f + 0.1f * fabsf(values[0][k]);
        assert_true(apart < (int)(n / 10));
    }
}

/* ---- what is in 16 bits, and what is not ---- */

static float to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* A product of rounded factors, rounded; its loss and the gradient of f32. */
static void products_are_rounded(void **state) {
    enum { N = 5, K = 3 };
    (void)state;
    clt_graph *g;
    clt_trainer *t;
    static const float x[N][K] = {{1.001f, -2.3f, 0.7f}, {0.1f, 0.2f, 0.3f}, {-1.7f, 3.3f, 1e-3f}, {2, 4, 8}, {0.333f, -0.111f, 5.5f}}, w[K] = {0.501f, -1.003f, 2.0007f};
    static const float target[N] = {0};
    float y[N], gradient[K];
    assert_ok(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, K)), *truth = clt_input(g, "t", CLT_F32, CLT_SHAPE(N, 1));
    clt_tensor *out = clt_linear(in, "fc", 1, .no_bias = true);
    assert_ok(clt_trainer_create(&t, device, clt_mse_loss(out, truth), &(clt_train_options){.lr = 1e-3f, .output = out, .precision = CLT_PRECISION_BF16}));
    assert_ok(clt_trainer_set(t, "fc.weight", w, K));
    clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, K), x}, {CLT_F32, CLT_SHAPE(N, 1), target}}};
    assert_ok(clt_trainer_predict(t, out, &batch, y, N));
    double mse = 0;
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += to_bf16(x[i][k]) * to_bf16(w[k]);
        assert_true(y[i] == to_bf16(sum));
        mse += (double)y[i] * (double)y[i] / N;
    }
    clt_metrics metrics;
    assert_ok(clt_trainer_step(t, &batch));
    assert_ok(clt_trainer_train_metrics(t, &metrics, true));
    assert_true(fabs(metrics.loss - mse) < 1e-6 * mse);
    assert_ok(clt_trainer_get_gradient(t, "fc.weight", gradient, K));
    for (int k = 0; k < K; k++) {
        double sum = 0, size = 0;
        for (int i = 0; i < N; i++) sum += (double)to_bf16(2 * y[i] / N) * (double)to_bf16(x[i][k]), size += fabs((double)y[i] * (double)x[i][k]);
        assert_true(fabs((double)gradient[k] - sum) < 0.01 * size);
        assert_true(gradient[k] == to_bf16(gradient[k])); /* a product, too */
    }
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
}

/* Between forward and backward activations are kept in half the bytes. */
static void activations_need_half_the_memory(void **state) {
    enum { N = 4096, WIDTH = 64, LAYERS = 12 };
    (void)state;
    uint64_t peak[2];
    for (int k = 0; k < 2; k++) {
        clt_device *own;
        clt_graph *g;
        clt_trainer *t;
        assert_ok(clt_device_open(&own, NULL));
        assert_ok(clt_graph_create(&g));
        clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), *truth = clt_input(g, "t", CLT_F32, CLT_SHAPE(N, WIDTH)), *h = x;
        for (int i = 0; i < LAYERS; i++) {
            char name[8] = {'f', (char)('a' + i)};
            h = clt_relu(clt_linear(h, name, WIDTH));
        }
        static float values[N * WIDTH];
        clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, WIDTH), values}, {CLT_F32, CLT_SHAPE(N, WIDTH), values}}};
        assert_ok(clt_trainer_create(&t, own, clt_mse_loss(h, truth), &(clt_train_options){.precision = k ? CLT_PRECISION_BF16 : CLT_PRECISION_F32}));
        assert_ok(clt_trainer_step(t, &batch));
        peak[k] = clt_device_peak_bytes(own);
        clt_trainer_destroy(t);
        clt_graph_destroy(g);
        clt_device_close(own);
    }
    assert_true((double)peak[1] < 0.75 * (double)peak[0]);
}

/* Of scores as they are stored, of which many are equal, the first of the largest counts. */
static void hits_are_of_rounded_scores(void **state) {
    enum { N = 96, WIDTH = 24, KINDS = 37 };
    static float x[N * WIDTH], scores[N * KINDS];
    int32_t label[N], hits = 0;
    clt_random random;
    clt_metrics m;
    clt_graph *g;
    clt_trainer *t;
    (void)state;
    assert_ok(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), *truth = clt_input(g, "t", CLT_I32, CLT_SHAPE(N)), *out = clt_linear(in, "fc", KINDS);
    clt_train_options o = {.output = out, .precision = CLT_PRECISION_BF16};
    assert_ok(clt_trainer_create(&t, device, clt_cross_entropy(out, truth), &o));
    clt_random_init(&random, 5, 0);
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)clt_random_normal(&random);
    clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, WIDTH), x}, {CLT_I32, CLT_SHAPE(N), label}}};
    for (int i = 0; i < N; i++) label[i] = i % KINDS;
    assert_ok(clt_trainer_predict(t, out, &batch, scores, (size_t)N * KINDS));
    for (int i = 0; i < N; i++) {
        int best = 0;
        for (int k = 1; k < KINDS; k++)
            if (scores[i * KINDS + k] > scores[i * KINDS + best]) best = k;
        label[i] = i % 3 ? best : (best + 1) % KINDS;
        hits += label[i] == best;
    }
    assert_ok(clt_trainer_evaluate(t, &batch));
    assert_ok(clt_trainer_eval_metrics(t, &m, true));
    assert_true(hits == 64 && fabs(m.accuracy * N - hits) < 1e-3);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
}

/* Nor is there a copy in f32 of a language model's scores, its largest tensor, on the way to the loss and to the metrics. */
static void scores_need_half_the_memory(void **state) {
    enum { N = 8, T = 64, WORDS = 4096 };
    clt_step_memory memory[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        clt_graph *g;
        assert_ok(clt_graph_create(&g));
        clt_tensor *tokens = clt_input(g, "tokens", CLT_I32, CLT_SHAPE(N, T)), *next = clt_input(g, "next", CLT_I32, CLT_SHAPE(N, T));
        clt_tensor *scores = clt_model_gpt2(tokens, .vocabulary = WORDS, .positions = T, .width = 64, .layers = 2, .heads = 2);
        clt_tensor *loss = clt_cross_entropy(clt_reshape(scores, CLT_SHAPE(-1, WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
        clt_train_options o = {.output = scores, .precision = k ? CLT_PRECISION_BF16 : CLT_PRECISION_F32};
        assert_ok(clt_predict_memory(device, loss, &o, 0, &memory[k]));
        clt_graph_destroy(g);
    }
    assert_true((double)memory[1].activations < 0.8 * (double)memory[0].activations); /* on CPUs half is what a product packs, as f32 */
}

static void a_checkpoint_goes_on_with_the_same_bits(void **state) {
    static float whole[MOST], resumed[MOST];
    double loss;
    (void)state;
    model a = make(convolutions, CLT_PRECISION_BF16), b = make(convolutions, CLT_PRECISION_BF16), c = make(convolutions, CLT_PRECISION_BF16);
    size_t n = train(&a, 12, &loss, whole);
    for (int s = 0; s < 5; s++) {
        clt_batch batch = draw((uint64_t)s);
        assert_ok(clt_trainer_step(b.trainer, &batch));
    }
    assert_ok(clt_checkpoint_save(b.trainer, NULL, support_path("half.safetensors")));
    assert_ok(clt_checkpoint_load(c.trainer, NULL, support_path("half.safetensors")));
    for (int s = 5; s < 12; s++) {
        clt_batch batch = draw((uint64_t)s);
        assert_ok(clt_trainer_step(c.trainer, &batch));
    }
    assert_int_equal(values_of(&c, resumed), n);
    assert_memory_equal(whole, resumed, n * sizeof *whole);
    destroy(&a), destroy(&b), destroy(&c);
}

/* Whether updates keep a copy of the parameters in 16 bits. */
static bool keeps_copy(const clt_trainer *t) {
    size_t bytes;
    return clt_state_store_find(t->store, "parameters16.0", &bytes) != NULL;
}

static void step_on(const model *m, uint64_t number, bool broken) {
    clt_batch batch = draw(number);
    if (broken) ((float *)(uintptr_t)batch.fields[0].data)[7] = NAN;
    assert_ok(clt_trainer_step(m->trainer, &batch));
}

/* Steps, between which others change the parameters, one of them left out: all that is told on the way, and the parameters at the end. */
static size_t train_and_meddle(const model *m, float *values) {
    float bias[64];
    clt_metrics metrics;
    size_t n = 0;
    const char *file = support_path("meddled.safetensors");
    for (uint64_t s = 0; s < 12; s++) {
        if (s == 3) assert_ok(clt_checkpoint_save(m->trainer, NULL, file));
        if (s == 5) {
            for (int i = 0; i < 64; i++) bias[i] = 0.01f * (float)i;
            assert_ok(clt_trainer_set(m->trainer, "fc2.bias", bias, 64));
        }
        if (s == 9) assert_ok(clt_checkpoint_load(m->trainer, NULL, file));
        step_on(m, s, s == 7);
        clt_batch other = draw(1000 + s);
        assert_ok(clt_trainer_evaluate(m->trainer, &other));
        assert_ok(clt_trainer_eval_metrics(m->trainer, &metrics, true));
        values[n++] = (float)metrics.loss;
    }
    return n + values_of(m, values + n);
}

/* Parameters in the host's memory are cast on their way; those on the device have a copy in 16 bits, which is theirs whatever happens to them. */
static void compare_copies(clt_train_options options, const char *backends, const char *device_class) {
    static const clt_offload offloads[] = {CLT_OFFLOAD_PARAMETERS, CLT_OFFLOAD_NONE, CLT_OFFLOAD_OPTIMIZER};
    static float values[3][MOST];
    size_t n = 0;
    options.on_nonfinite = CLT_NONFINITE_SKIP;
    options.backends = backends;
    clt_device_override(device, &(clt_settings){.device_class = device_class});
    for (int k = 0; k < 3; k++) {
        options.offload = offloads[k];
        model m = make_with(layers, options);
        n = train_and_meddle(&m, values[k]);
        assert_int_equal(keeps_copy(m.trainer), k > 0);
        destroy(&m);
    }
    clt_device_override(device, &(clt_settings){.device_class = ""});
    assert_memory_equal(values[0], values[1], n * sizeof **values);
    assert_memory_equal(values[0], values[2], n * sizeof **values);
}

static void the_copy_is_that_of_the_parameters(void **state) {
    const clt_train_options sgd = {.optimizer = CLT_SGD, .lr = 0.05f}, adam = {.optimizer = CLT_ADAMW, .lr = 5e-3f, .weight_decay = 0.1f};
    clt_train_options all[] = {sgd, sgd, adam};
    (void)state;
    all[1].momentum = 0.9f;
    for (int i = 0; i < 6; i++) {
        clt_train_options options = all[i / 2];
        options.precision = i % 2 ? CLT_PRECISION_F16 : CLT_PRECISION_BF16;
        compare_copies(options, NULL, "");
        if (i / 2 == i % 2) compare_copies(options, "reference", "");
        if (i / 2 == 2 - i % 2) compare_copies(options, NULL, "gpu");
    }
}

static void refuses_what_there_is_not(void **state) {
    (void)state;
    clt_graph *g;
    clt_trainer *t;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(2, 3));
    clt_tensor *loss = clt_mean(clt_linear(x, "fc", 1), (clt_reduce_options){.n_axes = 0});
    assert_status(clt_trainer_create(&t, device, loss, &(clt_train_options){.precision = (clt_precision)7}), CLT_E_INVALID);
    assert_detail("option precision");
    assert_status(clt_trainer_create(&t, device, loss, &(clt_train_options){.precision = CLT_PRECISION_F16}), CLT_E_INVALID);
    assert_detail("needs on_nonfinite skip");
    clt_graph_destroy(g);
}

/* ---- the scale of the loss ---- */

static float scale_of(const model *m) {
    float scale;
    assert_ok(clt_trainer_loss_scale(m->trainer, &scale));
    return scale;
}

/* A loss whose gradients overflow f16 at the first scales: updates are left out until they do not, and the trace is that of
 * torch.amp.GradScaler(init_scale = 65536). */
static void the_scale_follows_overflows(void **state) {
    (void)state;
    clt_graph *g;
    model m = {NULL, NULL, NULL};
    static float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, target[4][1] = {{1e4f}, {-1e4f}, {2e4f}, {0}};
    float before[2], after[2], gradient[2];
    assert_ok(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 2)), *truth = clt_input(g, "t", CLT_F32, CLT_SHAPE(4, 1));
    clt_tensor *out = clt_linear(in, "fc", 1, .no_bias = true);
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 1e-9f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP};
    assert_ok(clt_trainer_create(&m.trainer, device, clt_mse_loss(out, truth), &options));
    clt_batch batch = {.samples = 4, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(4, 2), x}, {CLT_F32, CLT_SHAPE(4, 1), target}}};
    assert_true(scale_of(&m) == 65536);
    float expected = 65536;
    int skipped = 0;
    for (int s = 0; s < 40; s++) {
        /* d loss / d y is 2/4 (y - t), y is small: the largest is 1e4, times the scale; and the weight's gradient is a sum of products of these, too. */
        bool overflows = 1e4f * expected > 65504 || (0.5f * (1e4f * 2 - 1e4f * 4 + 2e4f * 6)) * expected > 65504;
        assert_ok(clt_trainer_get(m.trainer, "fc.weight", before, 2));
        assert_ok(clt_trainer_step(m.trainer, &batch));
        assert_ok(clt_trainer_get(m.trainer, "fc.weight", after, 2));
        if (overflows) expected /= 2, skipped++;
        assert_true(scale_of(&m) == expected);
        assert_true((before[0] == after[0] && before[1] == after[1]) == overflows);
        if (overflows) continue;
        assert_ok(clt_trainer_get_gradient(m.trainer, "fc.weight", gradient, 2));
        assert_true(fabsf(gradient[1] + 0.5f * (1e4f * 2 - 1e4f * 4 + 2e4f * 6)) < 0.01f * 5e4f); /* not that of a loss that was scaled */
    }
    clt_metrics metrics;
    assert_ok(clt_trainer_train_metrics(m.trainer, &metrics, true));
    assert_true(skipped > 10 && metrics.skipped == skipped && metrics.loss_scale == expected);
    assert_ok(clt_checkpoint_save(m.trainer, NULL, support_path("scaled.safetensors")));
    clt_trainer_destroy(m.trainer);
    assert_ok(clt_trainer_create(&m.trainer, device, clt_mse_loss(out, truth), &options));
    assert_ok(clt_checkpoint_load(m.trainer, NULL, support_path("scaled.safetensors")));
    assert_true(scale_of(&m) == expected);
    assert_ok(clt_trainer_step(m.trainer, &batch));
    assert_true(scale_of(&m) == expected);
    clt_trainer_destroy(m.trainer);
    clt_graph_destroy(g);
}

/* Gradients of 1e-9 are zeros in f16, but for their scale; after 2000 updates it is doubled. */
static void what_would_vanish_is_trained(void **state) {
    (void)state;
    clt_graph *g;
    model m = {NULL, NULL, NULL};
    static float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    float gradient[2];
    assert_ok(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 2));
    clt_tensor *loss = clt_mul_scalar(clt_mean(clt_linear(in, "fc", 1, .no_bias = true), (clt_reduce_options){.n_axes = 0}), 1e-9f);
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 1, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP};
    assert_ok(clt_trainer_create(&m.trainer, device, loss, &options));
    clt_batch batch = {.samples = 4, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(4, 2), x}}};
    for (int s = 0; s < 2000; s++) {
        assert_ok(clt_trainer_step(m.trainer, &batch));
        if (s == 1998) assert_true(scale_of(&m) == 65536);
    }
    assert_true(scale_of(&m) == 131072);
    assert_ok(clt_trainer_get_gradient(m.trainer, "fc.weight", gradient, 2));
    assert_true(fabsf(gradient[0] - 4e-9f) < 5e-11f && fabsf(gradient[1] - 5e-9f) < 5e-11f);
    clt_trainer_destroy(m.trainer);
    clt_graph_destroy(g);
}

/* One of several ranks, or a process alone, whose batches are all the same. */
typedef struct scaled_rank {
    clt_comm *comm;
    clt_compression compression;
    clt_status status;
    char detail[256];
    float scales[24], gradient[2];
} scaled_rank;

static clt_status trace_scales(scaled_rank *r, clt_device *own, clt_graph *g, clt_trainer **t) {
    enum { N = 64 };
    float x[N][2], target[N][1];
    for (int i = 0; i < N; i++) x[i][0] = 1 + (float)(i % 3), x[i][1] = (float)(i % 5), target[i][0] = i % 2 ? 1e4f : -2e4f;
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(N, 2)), *truth = clt_input(g, "t", CLT_F32, CLT_SHAPE(N, 1));
    clt_tensor *out = clt_linear(in, "fc", 1, .no_bias = true);
    clt_train_options options = {.optimizer = CLT_SGD, .lr = 1e-9f, .precision = CLT_PRECISION_F16, .on_nonfinite = CLT_NONFINITE_SKIP,
                                 .comm = r->comm, .compress.method = r->comm ? r->compression : CLT_COMPRESS_NONE};
    CLT_TRY(clt_trainer_create(t, own, clt_mse_loss(out, truth), &options));
    clt_batch batch = {.samples = N, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(N, 2), x}, {CLT_F32, CLT_SHAPE(N, 1), target}}};
    for (size_t s = 0; s < CLT_COUNT_OF(r->scales); s++) {
        CLT_TRY(clt_trainer_step(*t, &batch));
        CLT_TRY(clt_trainer_loss_scale(*t, &r->scales[s]));
    }
    return options.compress.method ? CLT_OK : clt_trainer_get_gradient(*t, "fc.weight", r->gradient, 2);
}

static void *run_scaled(void *argument) {
    scaled_rank *r = argument;
    clt_device *own = NULL;
    clt_graph *g = NULL;
    clt_trainer *t = NULL;
    r->status = clt_device_open(&own, NULL);
    if (r->status == CLT_OK) r->status = clt_graph_create(&g);
    if (r->status == CLT_OK) r->status = trace_scales(r, own, g, &t);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
    clt_device_close(own);
    clt_comm_destroy(r->comm);
    return NULL;
}

/* What ranks add up are sums over samples; their losses are scaled as one process scales its mean nevertheless. */
static void the_scale_is_the_same_with_ranks(void **state) {
    static const clt_compression compressions[] = {CLT_COMPRESS_NONE, CLT_COMPRESS_F16, CLT_COMPRESS_INT8};
    scaled_rank alone = {0};
    (void)state;
    run_scaled(&alone);
    assert_int_equal(alone.status, CLT_OK);
    assert_true(alone.scales[23] < 65536 && alone.scales[23] > 0.25f);
    for (size_t c = 0; c < CLT_COUNT_OF(compressions); c++) {
        scaled_rank ranks[2];
        clt_comm *comms[2];
        clt_thread threads[2];
        assert_ok(clt_comm_create_local(comms, 2, 60));
        for (int i = 0; i < 2; i++) {
            ranks[i] = (scaled_rank){.comm = comms[i], .compression = compressions[c]};
            assert_ok(clt_thread_start(&threads[i], run_scaled, &ranks[i]));
        }
        for (int i = 0; i < 2; i++) clt_thread_join(threads[i]);
        for (int i = 0; i < 2; i++) {
            if (ranks[i].status < 0) fail_msg("rank %d: %s", i, ranks[i].detail);
            assert_memory_equal(ranks[i].scales, alone.scales, sizeof alone.scales);
            for (int k = 0; !c && k < 2; k++) assert_true(fabsf(ranks[i].gradient[k] - alone.gradient[k]) <= 1e-3f * fabsf(alone.gradient[k]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_learn_as_in_f32),
        cmocka_unit_test(products_are_rounded),
        cmocka_unit_test(activations_need_half_the_memory),
        cmocka_unit_test(scores_need_half_the_memory),
        cmocka_unit_test(hits_are_of_rounded_scores),
        cmocka_unit_test(a_checkpoint_goes_on_with_the_same_bits),
        cmocka_unit_test(the_copy_is_that_of_the_parameters),
        cmocka_unit_test(the_scale_follows_overflows),
        cmocka_unit_test(what_would_vanish_is_trained),
        cmocka_unit_test(the_scale_is_the_same_with_ranks),
        cmocka_unit_test(refuses_what_there_is_not),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
