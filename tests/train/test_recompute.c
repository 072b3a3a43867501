/* Recomputation: the same bits in less memory, within a limit that is kept. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/device/cl.h"

enum { BATCH = 16, SIDE = 16, CLASSES = 4, STEPS = 3 };

/* ---- networks; parameters' names tell the blocks ---- */

typedef clt_tensor *network(clt_tensor *x);

static char *name_of(int block, const char *what) {
    static char names[16][32];
    static int next;
    char *name = names[next++ % 16];
    snprintf(name, sizeof names[0], "h.%d.%s", block, what);
    return name;
}

static clt_tensor *convolutions(clt_tensor *x) {
    clt_tensor *h = clt_conv2d(x, "stem", 8, .kernel = 3, .padding = 1);
    for (int i = 0; i < 6; i++) {
        clt_tensor *y = clt_relu(clt_batch_norm(clt_conv2d(h, name_of(i, "conv1"), 8, .kernel = 3, .padding = 1), name_of(i, "norm1")));
        y = clt_batch_norm(clt_conv2d(y, name_of(i, "conv2"), 8, .kernel = 3, .padding = 1), name_of(i, "norm2"));
        h = clt_relu(clt_add(h, clt_dropout(y, 0.2f)));
    }
    return clt_linear(clt_flatten(clt_max_pool2d(h, .kernel = 4)), "fc", CLASSES);
}

static clt_tensor *heads(clt_tensor *x) {
    return clt_transpose(clt_reshape(x, CLT_SHAPE(0, 0, 2, 16)), 1, 2);
}

/* Rows of an image are the tokens. */
static clt_tensor *transformer(clt_tensor *x) {
    clt_tensor *h = clt_linear(clt_reshape(x, CLT_SHAPE(0, SIDE, SIDE)), "embed", 32);
    for (int i = 0; i < 6; i++) {
        clt_tensor *n = clt_layer_norm(h, name_of(i, "norm1"), 1);
        clt_tensor *q = heads(clt_linear(n, name_of(i, "q"), 32)), *k = heads(clt_linear(n, name_of(i, "k"), 32)), *v = heads(clt_linear(n, name_of(i, "v"), 32));
        clt_tensor *a = clt_reshape(clt_transpose(clt_attention(q, k, v, .causal = true, .dropout = 0.1f), 1, 2), CLT_SHAPE(0, 0, 32));
        h = clt_add(h, clt_dropout(clt_linear(a, name_of(i, "project"), 32), 0.1f));
        n = clt_gelu(clt_linear(clt_rms_norm(h, name_of(i, "norm2"), 1), name_of(i, "up"), 128));
        h = clt_add(h, clt_linear(n, name_of(i, "down"), 32));
    }
    return clt_linear(clt_mean(h, CLT_AXES(1)), "head", CLASSES);
}

/* No numbers, and what the encoder makes is read far behind. */
static clt_tensor *skipping(clt_tensor *x) {
    clt_tensor *a = clt_relu(clt_conv2d(x, "down.a", 8, .kernel = 3, .padding = 1));
    clt_tensor *b = clt_relu(clt_group_norm(clt_conv2d(clt_max_pool2d(a, .kernel = 2), "down.b", 16, .kernel = 3, .padding = 1), "down.norm", 4));
    clt_tensor *c = clt_relu(clt_conv2d(clt_max_pool2d(b, .kernel = 2), "middle", 16, .kernel = 3, .padding = 1));
    b = clt_relu(clt_conv2d(clt_concat((clt_tensor *[]){b, clt_upsample_nearest2d(c, 2)}, 2, 1), "up.b", 8, .kernel = 3, .padding = 1));
    a = clt_relu(clt_conv2d(clt_concat((clt_tensor *[]){a, clt_upsample_nearest2d(b, 2)}, 2, 1), "up.a", 8, .kernel = 3, .padding = 1));
    return clt_linear(clt_flatten(clt_avg_pool2d(a, .kernel = 4)), "fc", CLASSES);
}

/* Every layer is a block, by its name; or every third one is the last of one. */
static clt_tensor *layers(clt_tensor *h, bool marked) {
    for (int i = 0; i < 12; i++) {
        const char name[] = {'c', (char)('a' + i), 0};
        h = clt_relu(clt_conv2d(h, name, 8, .kernel = 3, .padding = 1));
        if (marked && i % 3 == 2) h = clt_checkpoint_boundary(h);
    }
    return clt_linear(clt_flatten(clt_max_pool2d(h, .kernel = 4)), "fc", CLASSES);
}

static clt_tensor *plain_layers(clt_tensor *x) {
    return layers(x, false);
}

static clt_tensor *marked_layers(clt_tensor *x) {
    return layers(x, true);
}

static network *const networks[] = {convolutions, transformer, skipping};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* ---- training ---- */

typedef struct outcome {
    float *values;
    size_t n;
    uint64_t peak;
} outcome;

static clt_batch draw(uint64_t number) {
    static float x[BATCH][SIDE * SIDE];
    static int32_t y[BATCH];
    clt_random random;
    clt_random_init(&random, 12, number);
    for (int i = 0; i < BATCH; i++) {
        y[i] = (int32_t)clt_random_below(&random, CLASSES);
        for (int k = 0; k < SIDE * SIDE; k++) x[i][k] = (float)clt_random_normal(&random);
    }
    return (clt_batch){.samples = BATCH, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE), x}, {CLT_I32, CLT_SHAPE(BATCH), y}}};
}

static bool apart; /* as where host and device have memory of their own: transfers have a queue of theirs */

/* Some steps, with an evaluation between them, which takes memory of its own. `limit`: NULL, or of the device. */
static clt_status train(network *n, clt_train_options options, const char *limit, outcome *o) {
    clt_device *device;
    clt_graph *g;
    clt_trainer *t = NULL;
    *o = (outcome){.n = 0};
    assert_ok(clt_device_open_with(&device, &(clt_settings){.memory_limit = limit}));
    if (apart) device->info.unified_memory = false;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, SIDE, SIDE)), *y = clt_input(g, "y", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *logits = n(x);
    options.optimizer = CLT_ADAMW;
    options.seed = 3;
    options.output = logits;
    clt_status status = clt_trainer_create(&t, device, clt_cross_entropy(logits, y), &options);
    for (uint64_t s = 0; status == CLT_OK && s < STEPS; s++) {
        clt_batch batch = draw(s);
        status = clt_trainer_step(t, &batch);
        if (status == CLT_OK && s == 1) status = clt_trainer_evaluate(t, &batch);
    }
    if (status == CLT_OK) o->values = support_parameters(t, g, &o->n);
    o->peak = clt_device_peak_bytes(device);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
    clt_device_close(device);
    return status;
}

static void bits_are_the_same(void **state) {
    static const clt_recompute ways[] = {CLT_RECOMPUTE_BLOCKS, CLT_RECOMPUTE_ALL};
    (void)state;
    for (int i = 0; i < NETWORKS; i++)
        for (int precision = CLT_PRECISION_F32; precision <= CLT_PRECISION_BF16; precision++) {
            outcome want, got;
            clt_train_options options = {.recompute = CLT_RECOMPUTE_NONE, .precision = (clt_precision)precision, .accumulate = 1 + i % 2};
            assert_ok(train(networks[i], options, NULL, &want));
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                options.recompute = ways[w];
                assert_ok(train(networks[i], options, NULL, &got));
                assert_int_equal(got.n, want.n);
                assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
                assert_true(got.peak < want.peak);
                free(got.values);
            }
            free(want.values);
        }
}

/* Between what all takes and what the least takes: the bits are the same, and no more is ever allocated. */
static void a_limit_is_kept(void **state) {
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        outcome want, least, got;
        char limit[32];
        assert_ok(train(networks[i], (clt_train_options){.recompute = CLT_RECOMPUTE_NONE}, NULL, &want));
        assert_ok(train(networks[i], (clt_train_options){.recompute = CLT_RECOMPUTE_ALL}, NULL, &least));
        for (uint64_t k = 0; k < 4; k++) {
            snprintf(limit, sizeof limit, "%llu", (unsigned long long)(least.peak + (want.peak - least.peak) * k / 4));
            assert_ok(train(networks[i], (clt_train_options){.recompute = CLT_RECOMPUTE_AUTO}, limit, &got));
            assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
            assert_true(got.peak <= clt_settings_bytes(limit));
            free(got.values);
        }
        snprintf(limit, sizeof limit, "%llu", (unsigned long long)least.peak / 10);
        assert_status(train(networks[i], (clt_train_options){.recompute = CLT_RECOMPUTE_AUTO}, limit, &got), CLT_E_DEVICE_MEMORY);
        assert_true(got.peak <= clt_settings_bytes(limit));
        free(got.values);
        free(want.values);
        free(least.values);
    }
}

/* What is kept lies in the host's memory between forward and backward, alone or with the rest computed again. */
static void activations_lie_in_the_host(void **state) {
    static const clt_train_options ways[] = {{.recompute = CLT_RECOMPUTE_NONE}, {.recompute = CLT_RECOMPUTE_ALL}, {.recompute = CLT_RECOMPUTE_BLOCKS, .precision = CLT_PRECISION_BF16, .accumulate = 2}};
    (void)state;
    for (int i = 0; i < NETWORKS; i++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            outcome want, got;
            clt_train_options options = ways[w];
            options.offload = CLT_OFFLOAD_NONE;
            assert_ok(train(networks[i], options, NULL, &want));
            options.offload = w == 0 ? CLT_OFFLOAD_ACTIVATIONS : CLT_OFFLOAD_ALL;
            for (int k = 0; k < 2; k++) {
                apart = k == 1;
                assert_ok(train(networks[i], options, NULL, &got));
                assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
                assert_true(got.peak < want.peak);
                free(got.values);
            }
            apart = false;
            free(want.values);
        }
}

/* Nothing is computed again, and what is kept does not fit. */
static void what_does_not_fit_lies_in_the_host(void **state) {
    outcome want, least, got;
    clt_train_options options = {.recompute = CLT_RECOMPUTE_NONE, .offload = CLT_OFFLOAD_NONE};
    char limit[32];
    (void)state;
    assert_ok(train(convolutions, options, NULL, &want));
    options.offload = CLT_OFFLOAD_ACTIVATIONS;
    assert_ok(train(convolutions, options, NULL, &least));
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)(want.peak + least.peak) / 2);
    options.offload = CLT_OFFLOAD_AUTO;
    assert_ok(train(convolutions, options, limit, &got));
    assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
    assert_true(got.peak <= clt_settings_bytes(limit));
    free(got.values);
    options.offload = CLT_OFFLOAD_NONE;
    assert_status(train(convolutions, options, limit, &got), CLT_E_DEVICE_MEMORY);
    /* Nor does it where all that can be is computed again. */
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)least.peak);
    assert_status(train(convolutions, (clt_train_options){.offload = CLT_OFFLOAD_NONE}, limit, &got), CLT_E_DEVICE_MEMORY);
    assert_ok(train(convolutions, (clt_train_options){.offload = CLT_OFFLOAD_AUTO}, limit, &got));
    assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
    assert_true(got.peak <= clt_settings_bytes(limit));
    free(got.values), free(want.values), free(least.values);
}

static void marks_end_blocks(void **state) {
    outcome want, plain, marked;
    (void)state;
    assert_ok(train(plain_layers, (clt_train_options){.recompute = CLT_RECOMPUTE_NONE}, NULL, &want));
    assert_ok(train(plain_layers, (clt_train_options){.recompute = CLT_RECOMPUTE_BLOCKS}, NULL, &plain));
    assert_ok(train(marked_layers, (clt_train_options){.recompute = CLT_RECOMPUTE_BLOCKS}, NULL, &marked));
    assert_memory_equal(plain.values, want.values, want.n * sizeof *want.values);
    assert_memory_equal(marked.values, want.values, want.n * sizeof *want.values);
    assert_true(marked.peak < plain.peak);
    free(want.values), free(plain.values), free(marked.values);
    assert_null(clt_checkpoint_boundary(NULL));
}

static void an_unknown_way_is_refused(void **state) {
    (void)state;
    clt_device *device;
    clt_graph *g;
    clt_trainer *t;
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_graph_create(&g));
    clt_tensor *loss = clt_mean(clt_linear(clt_input(g, "x", CLT_F32, CLT_SHAPE(2, 3)), "fc", 1), CLT_AXES(0, 1));
    assert_status(clt_trainer_create(&t, device, loss, &(clt_train_options){.recompute = (clt_recompute)4}), CLT_E_INVALID);
    assert_detail("option recompute = 4: it must be one of clt_recompute");
    clt_graph_destroy(g);
    clt_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same),
        cmocka_unit_test(a_limit_is_kept),
        cmocka_unit_test(activations_lie_in_the_host),
        cmocka_unit_test(what_does_not_fit_lies_in_the_host),
        cmocka_unit_test(marks_end_blocks),
        cmocka_unit_test(an_unknown_way_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
