/*
 * The native matrix product for GPU-class devices against the reference row, whatever the device at hand is:
 * CLTRAIN_CLASS has it taken as one of that class.
 */
#include "tests/backends/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/gpu/gpu.h"
#include "runtime/exec/plan.h"

static clt_device *device;
static bool simulated; /* slowly, by a device that checks each access: fewer and smaller tests */
static bool all; /* with the argument "all": each tile; a program each, so not by default */

static const double bound = 1e-10;

/* Below what the rows take for themselves, the contraction is tested all the same: straight. */
static const clt_backend_row *row_of(const clt_op *op) {
    for (const clt_backend_row *row = NULL; (row = clt_backend_next(op, row));)
        if (row->lower == clt_gpu_lower) return row;
    return NULL;
}

static void check(const compare_test *test, const int *parameters) {
    compare_check(device, test, row_of(test->op), parameters, bound);
}

/* Loads by four where they can be, and one by one. */
static const int fours[CLT_MAX_TUNABLES] = {16, 16, 8, 4, 4, 4, 0};
static const int ones[CLT_MAX_TUNABLES] = {16, 16, 8, 4, 4, 1, 0};
/* Other tiles, and splits. */
static const int others[][CLT_MAX_TUNABLES] = {
    {32, 16, 16, 8, 4, 4, 2}, {32, 32, 8, 8, 4, 4, 1}, {32, 16, 16, 4, 4, 4, 1},  {16, 32, 16, 4, 8, 1, 1},
    {64, 32, 8, 8, 4, 4, 1},  {64, 64, 8, 8, 8, 4, 1}, {128, 64, 8, 8, 8, 4, 1},  {64, 128, 8, 8, 8, 4, 2},
    {64, 64, 16, 4, 4, 4, 3}, {32, 32, 32, 4, 4, 4, 4}, {128, 128, 16, 8, 8, 1, 1},
};

static bool can(const int *parameters) {
    clt_gpu_tile tile = clt_gpu_tile_of(parameters);
    return clt_gpu_can(device, &tile);
}

/* ---- matrix product ---- */

typedef struct product {
    int64_t m, n, k;
} product;

static void check_all(const product *sizes, size_t n, const int *parameters) {
    for (size_t i = 0; i < n; i++)
        for (int t = 0; t < 4; t++) {
            compare_test test = compare_matmul(sizes[i].m, sizes[i].n, sizes[i].k, t & 1, t & 2);
            if (!simulated || (i + (size_t)t) % 3 == 0) check(&test, parameters);
        }
}

static const product whole[] = {{16, 16, 16}, {4, 100, 36}, {20, 36, 8}, {64, 32, 300}};
static const product odd[] = {{1, 1, 1}, {1, 1, 701}, {1, 91, 1}, {91, 1, 1}, {17, 15, 9}, {31, 33, 7}, {65, 63, 17}};
static const product mixed[] = {{17, 16, 20}, {16, 17, 21}, {20, 16, 17}};

static void loads_by_four(void **state) {
    (void)state;
    check_all(whole, CLT_COUNT_OF(whole), fours);
}

static void loads_one_by_one(void **state) {
    (void)state;
    check_all(whole, CLT_COUNT_OF(whole), ones);
    check_all(odd, CLT_COUNT_OF(odd), ones);
    check_all(odd, CLT_COUNT_OF(odd), fours); /* not allowed to them: the same kernels */
}

static void other_tiles(void **state) {
    (void)state;
    for (size_t v = 0; v < (all ? CLT_COUNT_OF(others) : 1); v++) {
        check_all(whole, all ? CLT_COUNT_OF(whole) : 1, others[v]);
        if (!all) continue;
        check_all(odd, CLT_COUNT_OF(odd), others[v]);
        check_all(mixed, CLT_COUNT_OF(mixed), others[v]);
    }
}

/* What the rows choose by themselves: large tiles, thin shapes with splits of their own. Of small
 * integers, so that long sums are exact, in any order. */
static void by_the_shape(void **state) {
    (void)state;
    static const product sizes[] = {{1, 1, 40000},  {260, 300, 132}, {10, 128, 1500},
                                    {128, 10, 784}, {600, 2, 300},   {3, 1000, 64}};
    size_t most = simulated ? 1 : all ? CLT_COUNT_OF(sizes) : 4;
    for (size_t i = 0; i < most; i++)
        for (int t = 0; t < (all ? 4 : 1); t++) {
            compare_test test = compare_matmul(sizes[i].m, sizes[i].n, sizes[i].k, t & 1, t & 2);
            test.integers = true;
            compare_check(device, &test, row_of(test.op), NULL, 0);
        }
}

static void batches(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 1, 0);
    for (int i = 0; i < (simulated ? 4 : 60); i++) {
        compare_test test = compare_batched(&random, compare_between(&random, 1, 40),
                                            compare_between(&random, 1, 40), compare_between(&random, 1, 60));
        check(&test, all ? fours : ones);
    }
}

/* ---- what is not finite ---- */

/* In a product, NaN and infinity reach their row or column and nothing else, edges of tiles included. */
static void not_finite_values_stay_in_their_row(void **state) {
    (void)state;
    enum { M = 31, N = 37, K = 19 };
    compare_test test = compare_matmul(M, N, K, false, false);
    float a[M * K], b[K * N];
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 7) - 3.5f;
    for (int i = 0; i < K * N; i++) b[i] = (float)(i % 5) - 2.5f;
    a[(M - 1) * K + 4] = NAN;
    b[3 * N + N - 1] = INFINITY;
    test.a_values = a;
    test.b_values = b;
    float *y = compare_run(device, &test, row_of(test.op), ones);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            if (m == M - 1) assert_true(isnan(y[m * N + n]));
            else if (n == N - 1) assert_true(isinf(y[m * N + n]));
            else assert_true(isfinite(y[m * N + n]));
        }
    free(y);
}

/* ---- what is served ---- */

static void rows_give_way(void **state) {
    (void)state;
    compare_test small = compare_matmul(4, 4, 4, false, false), large = compare_matmul(64, 64, 64, false, false);
    assert_string_equal(compare_chosen(device, &small), "reference");
    assert_string_equal(compare_chosen(device, &large), "native");
    clt_device_override(device, &(clt_settings){.device_class = "cpu"});
    assert_false(clt_gpu_fits(device));
    clt_device_override(device, &(clt_settings){.device_class = "gpu"});
}

static void tiles_that_do_not_go_together(void **state) {
    (void)state;
    static const int refused[CLT_MAX_TUNABLES] = {128, 128, 8, 4, 4, 4, 0}; /* 1024 items, 256 loads of four */
    static const int allowed[CLT_MAX_TUNABLES] = {16, 128, 8, 8, 8, 4, 0};
    assert_false(can(refused));
    assert_true(can(allowed));
}

static bool valid(int64_t m, int64_t n, int64_t k, int splits) {
    const int parameters[CLT_MAX_TUNABLES] = {64, 64, 8, 8, 8, 4, splits};
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *a = clt_input(graph, "a", CLT_F32, CLT_SHAPE(m, k));
    clt_tensor *b = clt_input(graph, "b", CLT_F32, CLT_SHAPE(k, n));
    bool is = clt_gpu_valid(&(clt_candidate){row_of(&clt_op_matmul), clt_matmul(a, b), device}, parameters);
    clt_graph_destroy(graph);
    return is;
}

/* The parts of a split sum are as large as so many results. */
static void large_results(void **state) {
    (void)state;
    compare_test large = compare_matmul(4096, 4096, 512, false, false);
    assert_string_equal(compare_chosen(device, &large), "native");
    assert_true(valid(4096, 4096, 512, 1));
    assert_true(valid(256, 4096, 512, 64));
    assert_false(valid(8192, 8192, 512, 64)); /* past 32-bit indices */
    compare_test huge = compare_matmul(40000, 40000, 1, false, false);
    assert_string_not_equal(compare_chosen(device, &huge), "native");
}

/* A whole plan, where the launch's group must stay as it is. */
static void plans_keep_the_group(void **state) {
    (void)state;
    enum { N = 72 };
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    float a[N * N], b[N * N], y[N * N];
    for (int i = 0; i < N * N; i++) a[i] = (float)(i % 5), b[i] = (float)(i % 3);
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
    assert_ok(clt_plan_feed(plan, inputs[0], a));
    assert_ok(clt_plan_feed(plan, inputs[1], b));
    /* Often, for programs are saved from the third run on, while they run. */
    for (int i = 0; i < (simulated ? 1 : 200); i++) assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, result, y, sizeof y));
    for (int m = 0; m < N; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0; /* of small integers: exact */
            for (int k = 0; k < N; k++) sum += a[m * N + k] * b[k * N + n];
            assert_true(y[m * N + n] == sum);
        }
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
    clt_graph_destroy(graph);
}

static int open_device(void) {
    if (clt_device_open_with(&device, &(clt_settings){.device_class = "gpu"}) < 0) {
        print_error("no device: %s\n", clt_error_detail());
        return -1;
    }
    simulated = strstr(clt_device_get_info(device)->platform, "Oclgrind") != NULL;
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_keep_the_group), /* first, while its program is the only one to be saved */
        cmocka_unit_test(loads_by_four),
        cmocka_unit_test(loads_one_by_one),
        cmocka_unit_test(other_tiles),
        cmocka_unit_test(by_the_shape),
        cmocka_unit_test(batches),
        cmocka_unit_test(not_finite_values_stay_in_their_row),
        cmocka_unit_test(rows_give_way),
        cmocka_unit_test(tiles_that_do_not_go_together),
        cmocka_unit_test(large_results),
    };
    all = argc > 1 && !strcmp(argv[1], "all");
    if (open_device() < 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
