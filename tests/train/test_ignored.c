/* Targets that stand for none. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include <cltrain/cltrain.h>

enum { N = 6, WIDTH = 3, CLASSES = 4 };
static const float x_values[N * WIDTH] = {1, 0, 2, -1, 3, 1, 0.5f, 0.5f, -2, 2, 2, 2, -1, -1, 0, 4, -3, 1};

SUPPORT_DEVICE

typedef struct model {
    clt_graph *graph;
    clt_trainer *trainer;
} model;

static model make(const int32_t *ignored, bool embeds) {
    model m;
    assert_ok(clt_graph_create(&m.graph));
    clt_tensor *x = clt_input(m.graph, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), *y = clt_input(m.graph, "y", CLT_I32, CLT_SHAPE(N));
    clt_tensor *logits = clt_linear(x, "fc", CLASSES);
    if (embeds) logits = clt_add(logits, clt_embedding(y, "table", CLASSES, CLASSES));
    clt_tensor *loss = clt_cross_entropy_with(logits, clt_reshape(y, CLT_SHAPE(-1)), (clt_cross_entropy_options){.ignore_index = ignored});
    assert_ok(clt_trainer_create(&m.trainer, device, loss, &(clt_train_options){.lr = 0.5f, .seed = 4, .output = logits}));
    return m;
}

static void destroy(model m) {
    clt_trainer_destroy(m.trainer);
    clt_graph_destroy(m.graph);
}

static clt_batch batch_of(int64_t samples, const float *x, const void *labels, clt_dtype dtype) {
    return (clt_batch){samples, 2, {{CLT_F32, CLT_SHAPE(samples, WIDTH), x}, {dtype, CLT_SHAPE(samples), labels}}};
}

/* What is left out might as well not be there: the same loss, accuracy and step. */
static void leaves_them_out(void **state) {
    (void)state;
    static const int32_t ignored[] = {-100, 0, 3};
    for (int k = 0; k < 3; k++) {
        const int32_t labels[N] = {1, ignored[k], 2, 2, ignored[k], 1}, kept[4] = {1, 2, 2, 1};
        const int64_t wide[N] = {1, ignored[k], 2, 2, ignored[k], 1};
        float few[4 * WIDTH], weights[3][CLASSES * WIDTH];
        const int rows[4] = {0, 2, 3, 5};
        clt_metrics metrics[3];
        for (int r = 0; r < 4; r++) memcpy(few + r * WIDTH, x_values + rows[r] * WIDTH, WIDTH * sizeof *few);
        const clt_batch batches[3] = {batch_of(4, few, kept, CLT_I32), batch_of(N, x_values, labels, CLT_I32), batch_of(N, x_values, wide, CLT_I64)};
        for (int i = 0; i < 3; i++) {
            model m = make(i ? &ignored[k] : NULL, false);
            for (int step = 0; step < 3; step++) {
                assert_ok(clt_trainer_step(m.trainer, &batches[i]));
                assert_ok(clt_trainer_train_metrics(m.trainer, &metrics[i], step < 2));
            }
            assert_ok(clt_trainer_get(m.trainer, "fc.weight", weights[i], CLASSES * WIDTH));
            clt_metrics evaluated;
            assert_ok(clt_trainer_evaluate(m.trainer, &batches[i]));
            assert_ok(clt_trainer_eval_metrics(m.trainer, &evaluated, true));
            assert_true(evaluated.accuracy >= 0 && evaluated.accuracy <= 1);
            assert_int_equal(metrics[i].samples, i ? N : 4);
            assert_float_equal(metrics[i].loss, metrics[0].loss, 1e-6);
            assert_float_equal(metrics[i].accuracy, metrics[0].accuracy, 0);
            for (int w = 0; w < CLASSES * WIDTH; w++) assert_float_equal(weights[i][w], weights[0][w], 1e-6);
            destroy(m);
        }
    }
}

/* The likeliest class is the one that is ignored: that is no hit. */
static void counts_no_hits_among_them(void **state) {
    (void)state;
    const int32_t ignored = 0, labels[N] = {0, 0, 0, 0, 0, 1};
    model m = make(&ignored, false);
    const float bias[CLASSES] = {1000, 0, 0, 0};
    clt_metrics metrics;
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    assert_ok(clt_trainer_set(m.trainer, "fc.bias", bias, CLASSES));
    assert_ok(clt_trainer_evaluate(m.trainer, &batch));
    assert_ok(clt_trainer_eval_metrics(m.trainer, &metrics, true));
    assert_float_equal(metrics.accuracy, 0, 0);
    destroy(m);
}

/* Also where the target is an index of its own besides, as of a decoder that is given it. */
static void counts_none_of_an_embedded_target(void **state) {
    (void)state;
    const int32_t ignored = 0, labels[N] = {0, 2, 0, 3, 0, 1};
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    clt_metrics metrics;
    float table[CLASSES * CLASSES] = {0};
    for (int i = 0; i < CLASSES; i++) table[i * CLASSES + i] = 1000;
    model m = make(&ignored, true);
    assert_ok(clt_trainer_set(m.trainer, "table.weight", table, CLASSES * CLASSES));
    assert_ok(clt_trainer_evaluate(m.trainer, &batch));
    assert_ok(clt_trainer_eval_metrics(m.trainer, &metrics, true));
    assert_float_equal(metrics.accuracy, 1, 0); /* 3 of 3 */
    destroy(m);
}

/* A class that is ruled out, in whose place an ignored target is read. */
static void takes_infinite_logits(void **state) {
    (void)state;
    const int32_t ignored = -1, labels[N] = {-1, 2, 3, -1, 1, 1};
    const float bias[CLASSES] = {-INFINITY, 0, 0, 0};
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    clt_metrics metrics;
    model m = make(&ignored, false);
    float weights[CLASSES * WIDTH];
    assert_ok(clt_trainer_set(m.trainer, "fc.bias", bias, CLASSES));
    assert_ok(clt_trainer_step(m.trainer, &batch));
    assert_ok(clt_trainer_train_metrics(m.trainer, &metrics, true));
    assert_true(isfinite(metrics.loss));
    assert_ok(clt_trainer_get(m.trainer, "fc.weight", weights, CLASSES * WIDTH));
    for (int i = 0; i < CLASSES * WIDTH; i++) assert_true(isfinite(weights[i]));
    destroy(m);
}

/* What clt_where puts another in the place of is nobody's index. */
static void takes_what_is_replaced(void **state) {
    (void)state;
    const int32_t minus = -100, zero = 0, labels[N] = {0, 1, 2, 3, -100, 1};
    clt_graph *graph;
    clt_trainer *trainer;
    clt_metrics metrics;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(N, WIDTH)), *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(N));
    clt_tensor *hidden = clt_equal(label, clt_constant(graph, "minus", &(clt_array){CLT_I32, CLT_SHAPE(1), &minus}));
    clt_tensor *target = clt_where(hidden, clt_constant(graph, "zero", &(clt_array){CLT_I32, CLT_SHAPE(1), &zero}), label);
    assert_ok(clt_trainer_create(&trainer, device, clt_cross_entropy(clt_linear(x, "fc", CLASSES), target), NULL));
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    assert_ok(clt_trainer_step(trainer, &batch));
    assert_ok(clt_trainer_train_metrics(trainer, &metrics, true));
    assert_true(isfinite(metrics.loss));
    clt_trainer_destroy(trainer);
    clt_graph_destroy(graph);
}

static void refuses_others(void **state) {
    (void)state;
    const int32_t ignored = -100;
    int32_t labels[N] = {0, 1, 2, 3, -100, 1};
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    model m = make(NULL, false);
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_RANGE);
    assert_detail("sample 4 of the batch: -100 is outside [0, 4)");
    destroy(m);
    m = make(&ignored, true); /* which the table has no row for */
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_RANGE);
    assert_detail("-100 is outside");
    destroy(m);
    m = make(&ignored, false);
    assert_ok(clt_trainer_step(m.trainer, &batch));
    labels[2] = -99;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_RANGE);
    assert_detail("sample 2 of the batch: -99 is outside [0, 4)");
    labels[2] = 4;
    assert_status(clt_trainer_step(m.trainer, &batch), CLT_E_RANGE);
    destroy(m);
}

static void has_no_mean_of_nothing(void **state) {
    (void)state;
    const int32_t ignored = -1, labels[N] = {-1, -1, -1, -1, -1, -1};
    clt_batch batch = batch_of(N, x_values, labels, CLT_I32);
    clt_metrics metrics;
    model m = make(&ignored, false);
    assert_ok(clt_trainer_evaluate(m.trainer, &batch));
    assert_ok(clt_trainer_eval_metrics(m.trainer, &metrics, true));
    assert_true(isnan(metrics.loss) && isnan(metrics.accuracy));
    destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_them_out),
        cmocka_unit_test(counts_no_hits_among_them),
        cmocka_unit_test(counts_none_of_an_embedded_target),
        cmocka_unit_test(takes_infinite_logits),
        cmocka_unit_test(takes_what_is_replaced),
        cmocka_unit_test(refuses_others),
        cmocka_unit_test(has_no_mean_of_nothing),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
