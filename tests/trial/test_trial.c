/* A graph tried through the public face: values, gradients, rows, refusals; with and without red zones. */
#include "tests/support.h"

#include <string.h>

#include <cltrain/ops.h>
#include <cltrain/experimental/trial.h>

static clt_device *device;

static int open_device(void **state) {
    (void)state;
    assert_ok(clt_device_open(&device, NULL));
    return 0;
}

static int open_with_redzones(void **state) {
    open_device(state);
    assert_ok(clt_device_enable_redzones(device));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

/* y = (a b) w, so that dw = seed a b, da = seed b w. */
static clt_tensor *build(clt_graph **graph) {
    assert_ok(clt_graph_create(graph));
    clt_tensor *a = clt_input(*graph, "a", CLT_F32, CLT_SHAPE(5)),
               *b = clt_input(*graph, "b", CLT_F32, CLT_SHAPE(5));
    clt_tensor *w = clt_parameter(*graph, "w", CLT_SHAPE(5), (clt_init){0});
    return clt_mul(clt_mul(a, b), w);
}

static void values_and_gradients(void **state) {
    (void)state;
    const char *wrt[] = {"w", "a"};
    float a[5] = {1, 2, 3, 4, 5}, b[5] = {2, 3, 4, 5, 6}, w[5] = {-1, 1, -1, 1, -1},
          seed[5] = {1, 1, 1, 10, 10}, got[5];
    clt_graph *graph;
    clt_trial *trial;
    clt_tensor *y = build(&graph);
    assert_ok(clt_trial_create(&trial, device, y, &(clt_trial_options){.wrt = wrt, .n_wrt = 2}));
    assert_ok(clt_trial_set(trial, "a", a, sizeof a));
    assert_ok(clt_trial_set(trial, "b", b, sizeof b));
    assert_ok(clt_trial_set(trial, "w", w, sizeof w));
    assert_ok(clt_trial_set(trial, NULL, seed, sizeof seed));
    for (int run = 0; run < 3; run++) {
        assert_ok(clt_trial_run(trial));
        assert_ok(clt_trial_get(trial, NULL, got, sizeof got));
        for (int i = 0; i < 5; i++) assert_true(got[i] == a[i] * b[i] * w[i]);
        assert_ok(clt_trial_gradient(trial, "w", got, 5));
        for (int i = 0; i < 5; i++) assert_true(got[i] == seed[i] * a[i] * b[i]);
        assert_ok(clt_trial_gradient(trial, "a", got, 5));
        for (int i = 0; i < 5; i++) assert_true(got[i] == seed[i] * w[i] * b[i]);
    }
    assert_status(clt_trial_gradient(trial, "b", got, 5), CLT_E_NOT_FOUND);
    assert_status(clt_trial_set(trial, "a", a, 4), CLT_E_SHAPE);
    assert_status(clt_trial_set(trial, "c", a, sizeof a), CLT_E_NOT_FOUND);
    assert_ok(clt_trial_get(trial, "w", got, sizeof got));
    assert_memory_equal(got, w, sizeof w);
    clt_trial_destroy(trial);
    clt_graph_destroy(graph);
}

static bool count(const char *op, const char *backend, void *user) {
    assert_true(op[0] && backend[0]);
    ++*(int *)user;
    return true;
}

static void rows(void **state) {
    (void)state;
    clt_graph *graph;
    clt_trial *trial;
    int n = 0;
    clt_tensor *y = build(&graph);
    assert_status(clt_trial_create(&trial, device, y, &(clt_trial_options){.backend = "clfft"}),
                  CLT_E_UNSUPPORTED);
    assert_detail("clfft");
    assert_null(trial);
    assert_ok(clt_trial_create(&trial, device, y, NULL));
    assert_ok(clt_trial_rows(trial, count, &n));
    assert_true(n >= 1);
    clt_trial_destroy(trial);
    assert_status(clt_trial_create(&trial, device, y,
                                   &(clt_trial_options){.wrt = (const char *[]){"v"}, .n_wrt = 1}),
                  CLT_E_NOT_FOUND);
    assert_status(clt_trial_create(&trial, device, y, &(clt_trial_options){.n_wrt = 2}), CLT_E_INVALID);
    assert_detail("clt_trial_create: wrt is NULL");
    assert_status(clt_trial_create(&trial, device, y,
                                   &(clt_trial_options){.wrt = (const char *[]){"w", NULL}, .n_wrt = 2}),
                  CLT_E_INVALID);
    assert_detail("clt_trial_create: wrt[1] is NULL");
    assert_null(trial);
    clt_graph_destroy(graph);
}

static void kernel_writes(void **state) {
    (void)state;
    const char *source = "kernel void past(global const float *x, global float *y, int count) {\n"
                         "    int i = get_global_id(0);\n    if (i <= count) y[i] = 1.0f;\n}\n"
                         "kernel void short_(global const float *x, global float *y, int count) {\n"
                         "    int i = get_global_id(0);\n    if (i < count - 1) y[i] = 1.0f;\n}\n";
    clt_graph *graph;
    clt_trial *trial;
    float x[5] = {0}, first[5], second[5];
    assert_ok(clt_graph_create(&graph));
    clt_tensor *in = clt_input(graph, "x", CLT_F32, CLT_SHAPE(5));
    clt_user_op op = {.name = "past", .source = source, .n_inputs = 1, .forward = "past"};
    clt_tensor *y = clt_apply(&op, &in, NULL, 0);
    op.forward = "short_";
    clt_tensor *z = clt_apply(&op, &in, NULL, 0);
    assert_ok(clt_trial_create(&trial, device, y, NULL));
    assert_ok(clt_trial_set(trial, "x", x, sizeof x));
    assert_ok(clt_trial_run(trial));
    assert_status(clt_device_check_redzones(device), CLT_E_DEVICE);
    assert_detail("past");
    clt_trial_destroy(trial);
    clt_device_check_redzones(device);
    assert_ok(clt_trial_create(&trial, device, z, NULL));
    assert_ok(clt_trial_set(trial, "x", x, sizeof x));
    assert_ok(clt_trial_run(trial));
    assert_ok(clt_trial_get(trial, NULL, first, sizeof first));
    assert_true(first[4] != first[4]);
    assert_ok(clt_trial_run(trial));
    assert_ok(clt_trial_get(trial, NULL, second, sizeof second));
    assert_true(second[4] > 1e37f);
    clt_trial_destroy(trial);
    assert_ok(clt_device_check_redzones(device));
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest plain[] = {cmocka_unit_test(values_and_gradients), cmocka_unit_test(rows)};
    const struct CMUnitTest redzones_on[] = {cmocka_unit_test(values_and_gradients),
                                        cmocka_unit_test(kernel_writes)};
    int failed = cmocka_run_group_tests_name("plain", plain, open_device, close_device);
    return failed + cmocka_run_group_tests_name("redzones", redzones_on, open_with_redzones, close_device);
}
