/*
 * CLBlast's products against the reference, and that they serve only where they are asked for.
 */
#include "tests/backends/compare.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/exec/plan.h"

static clt_device *device;
static const double bound = 1e-10;

static void check(compare_test test) {
    compare_check(device, &test, compare_row(device, &test, "clblast"), NULL, bound);
}

static void products(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{33, 47, 70}, {1, 300, 20}, {128, 64, 32}, {257, 3, 100}};
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) check(compare_matmul(sizes[i][0], sizes[i][1], sizes[i][2], t & 1, t & 2));
}

static void batches(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        compare_test test = {.op = &clt_op_matmul, .matmul = {t & 1, t & 2}};
        test.a = t & 1 ? CLT_SHAPE(3, 2, 17, 30) : CLT_SHAPE(3, 2, 30, 17);
        test.b = t & 2 ? CLT_SHAPE(3, 2, 19, 17) : CLT_SHAPE(3, 2, 17, 19);
        check(test);
        test.b = t & 2 ? CLT_SHAPE(19, 17) : CLT_SHAPE(17, 19); /* one for all */
        check(test);
    }
}

static void what_is_served(void **state) {
    (void)state;
    compare_test whole = {.op = &clt_op_matmul, .a = CLT_SHAPE(3, 2, 30, 17), .b = CLT_SHAPE(3, 2, 17, 19)};
    compare_test uneven = {.op = &clt_op_matmul, .a = CLT_SHAPE(3, 1, 30, 17), .b = CLT_SHAPE(3, 2, 17, 19)};
    assert_string_equal(compare_chosen(device, &whole), "clblast");
    assert_string_not_equal(compare_chosen(device, &uneven), "clblast"); /* a's steps are not even */
    clt_device_override(device, &(clt_settings){.backends = ""});
    assert_string_not_equal(compare_chosen(device, &whole), "clblast");
    clt_device_override(device, &(clt_settings){.device_class = "gpu"});
    assert_string_not_equal(compare_chosen(device, &whole), "clblast"); /* a tuner may choose it, no other */
    compare_row(device, &whole, "clblast");
    clt_device_override(device, &(clt_settings){.device_class = ""});
    clt_device_override(device, &(clt_settings){.backends = "reference,native,clblast"});
}

/* In a plan, whose input lies elsewhere in every other run. */
static void in_a_plan(void **state) {
    (void)state;
    enum { N = 40 };
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    float a[N * N], b[N * N], y[N * N];
    assert_ok(clt_graph_create(&graph));
    clt_tensor *inputs[] = {clt_input(graph, "a", CLT_F32, CLT_SHAPE(N, N)),
                            clt_input(graph, "b", CLT_F32, CLT_SHAPE(N, N))};
    clt_tensor *result = clt_matmul(inputs[0], inputs[1]);
    assert_ok(clt_state_store_create(device, &store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device,
                                                          .store = store,
                                                          .graph = graph,
                                                          .targets = &result,
                                                          .n_targets = 1,
                                                          .training = true}));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N * N; i++) a[i] = (float)((i + round) % 5), b[i] = (float)(i % 3 + round);
        assert_ok(clt_plan_feed(plan, inputs[0], a));
        assert_ok(clt_plan_feed(plan, inputs[1], b));
        assert_ok(clt_plan_run(plan));
        assert_ok(clt_plan_read(plan, result, y, sizeof y));
        for (int m = 0; m < N; m++)
            for (int n = 0; n < N; n++) {
                float sum = 0; /* of small integers: exact */
                for (int k = 0; k < N; k++) sum += a[m * N + k] * b[k * N + n];
                assert_true(y[m * N + n] == sum);
            }
    }
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(graph);
}

/* A library built without CLBlast has no row of that name, and nothing is tested. */
static bool is_there(void) {
    return clt_clblast_rows[0].op != NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(batches),
        cmocka_unit_test(what_is_served),
        cmocka_unit_test(in_a_plan),
    };
    if (!is_there()) return print_message("built without CLBlast\n"), 0;
    if (clt_device_open_with(&device, &(clt_settings){.backends = "reference,native,clblast"}) < 0) return print_error("no device: %s\n", clt_error_detail()), 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
