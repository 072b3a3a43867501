/*
 * The native matrix product with all its parameters against the reference row: sizes that those cut in different ways, transposes
 * and batches.
 */
#include "tests/backends/compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/native/cpu/cpu.h"
#include "runtime/base/halves.h"

static clt_device *device;

static const double bound = 1e-11;

static const clt_backend_row *row_of(const compare_test *test) {
    assert_string_equal(compare_chosen(device, test), "native");
    return compare_row(device, test, "native");
}

static void first(const clt_tunable *tunables, int *parameters) {
    for (int i = 0; tunables[i].name; i++) parameters[i] = tunables[i].values[0];
}

/* The next combination of all values, valid or not; false after the last. */
static bool next(const clt_tunable *tunables, int *at, int *parameters) {
    for (int i = 0; tunables[i].name; i++) {
        at[i] = (at[i] + 1) % tunables[i].n;
        parameters[i] = tunables[i].values[at[i]];
        if (at[i]) return true;
    }
    return false;
}

/* All variants of the text built at once: none may take another's names. */
static void variants_share_programs(void **state) {
    (void)state;
    compare_test test = compare_matmul(50, 60, 70, false, false);
    clt_choice choice = {.row = row_of(&test)};
    clt_lowering l = {.device = device, .training = true};
    int at[CLT_MAX_TUNABLES] = {0};
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *y = clt_matmul(clt_input(graph, "a", CLT_F32, test.a), clt_input(graph, "b", CLT_F32, test.b));
    first(choice.row->tunables, choice.parameters);
    do
        if (clt_backend_valid(&choice, y, device)) assert_ok(clt_backend_lower_with(&l, y, &choice));
    while (next(choice.row->tunables, at, choice.parameters));
    assert_true(l.n_modules >= 6);
    assert_ok(clt_device_build(device, l.modules, (int)l.n_modules));
    clt_lowering_free(&l);
    clt_graph_destroy(graph);
}

static void check_all_parameters(const compare_test *test) {
    const clt_backend_row *row = row_of(test);
    int at[CLT_MAX_TUNABLES] = {0}, parameters[CLT_MAX_TUNABLES], checked = 0;
    first(row->tunables, parameters);
    do {
        if (!compare_valid(device, test, row, parameters)) continue;
        compare_check(device, test, row, parameters, bound);
        checked++;
    } while (next(row->tunables, at, parameters));
    assert_true(checked > 50);
}

static void all_parameters(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        compare_test deep = compare_matmul(37, 70, 600, t & 1, t & 2), tall = compare_matmul(100, 33, 150, t & 1, t & 2);
        check_all_parameters(&deep);
        check_all_parameters(&tall);
    }
}

/* Blocks of more than the tiles there are, of one, and those that leave one over, in a stretched batch. */
static void all_parameters_in_batches(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        compare_test test = {.op = &clt_op_matmul,
                             .a = t & 1 ? CLT_SHAPE(3, 1, 130, 29) : CLT_SHAPE(3, 1, 29, 130),
                             .b = t & 2 ? CLT_SHAPE(2, 49, 130) : CLT_SHAPE(2, 130, 49),
                             .matmul = {t & 1, t & 2}};
        check_all_parameters(&test);
    }
}

static void check_transposes(int64_t m, int64_t n, int64_t k) {
    for (int t = 0; t < 4; t++) {
        compare_test test = compare_matmul(m, n, k, t & 1, t & 2);
        compare_check(device, &test, row_of(&test), NULL, bound);
    }
}

static void odd_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 5, 11, 12, 13, 31, 33}, sums[] = {1, 17, 300};
    for (size_t m = 0; m < CLT_COUNT_OF(sizes); m++)
        for (size_t n = 0; n < CLT_COUNT_OF(sizes); n++)
            for (size_t k = 0; k < CLT_COUNT_OF(sums); k++) check_transposes(sizes[m], sizes[n], sums[k]);
}

/* Sizes that the defaults cut in different ways: splits, several blocks, panels. */
static void long_and_large(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{13, 31, 4500}, {1, 1, 9000}, {128, 10, 1024}, {128, 128, 4096},
                                       {900, 300, 65}, {300, 290, 257}, {10, 1024, 128}};
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++) check_transposes(sizes[i][0], sizes[i][1], sizes[i][2]);
}

/* So much of a that it is packed in several parts, the last of which is not whole; sums are the reference's in the rows on both sides of each cut. */
static void packed_in_parts(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        compare_test test = compare_matmul(9001, 20, 4100, t, !t);
        test.integers = true;
        test.finished = t;
        compare_check(device, &test, row_of(&test), (int[CLT_MAX_TUNABLES]){6, 256, 1, t, 24, 1}, bound);
    }
}

/* Sums of products of small integers are exact in f32, whatever is packed and split: in 16 bits the result is that, rounded once. */
static void check_rounded(const compare_test *test, const int *parameters) {
    compare_test wide = *test;
    wide.dtype = CLT_F32;
    if (!compare_valid(device, test, row_of(test), parameters)) return;
    size_t n = (size_t)compare_elements(test);
    float *got = compare_run(device, test, row_of(test), parameters), *want = compare_run(device, &wide, row_of(&wide), parameters);
    uint16_t *halves = malloc(n * sizeof *halves);
    assert_non_null(halves);
    clt_float_narrow(halves, want, test->dtype, n);
    clt_float_widen(want, halves, test->dtype, n);
    assert_memory_equal(got, want, n * sizeof *got);
    free(got), free(want), free(halves);
}

static void stored_in_16_bits(void **state) {
    enum { ROWS = 6, DEPTH = 256, BLOCK = 4 };
    static const int ways[][3] = {{0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 0, 3}, {1, 0, 3}, {1, 1, 3}}; /* pack_a, panels_b, splits */
    (void)state;
    for (int i = 0; i < 8; i++) {
        compare_test test = compare_matmul(37, 70, 600, i & 1, i & 2);
        test.integers = true;
        test.dtype = i & 4 ? CLT_F16 : CLT_BF16;
        for (size_t w = 0; w < CLT_COUNT_OF(ways); w++)
            check_rounded(&test, (int[CLT_MAX_TUNABLES]){ROWS, DEPTH, ways[w][0], ways[w][1], BLOCK, ways[w][2]});
    }
}

static void defaults_are_of_the_lists(void **state) {
    (void)state;
    for (int64_t k = 1; k < 20000; k += k / 2 + 1) {
        clt_graph *graph;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *y = clt_matmul(clt_input(graph, "a", CLT_F32, CLT_SHAPE(30, k)),
                                   clt_input(graph, "b", CLT_F32, CLT_SHAPE(k, 30)));
        clt_choice choice = clt_backend_choose(y, device);
        assert_string_equal(choice.row->name, "native");
        for (int i = 0; choice.row->tunables[i].name; i++) {
            bool there = false;
            for (int v = 0; v < choice.row->tunables[i].n; v++)
                there |= choice.row->tunables[i].values[v] == choice.parameters[i];
            assert_true(there);
        }
        clt_graph_destroy(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_share_programs), cmocka_unit_test(all_parameters),
        cmocka_unit_test(all_parameters_in_batches), cmocka_unit_test(odd_sizes),
        cmocka_unit_test(long_and_large), cmocka_unit_test(packed_in_parts), cmocka_unit_test(stored_in_16_bits), cmocka_unit_test(defaults_are_of_the_lists),
    };
    if (clt_device_open(&device, NULL) < 0) {
        print_error("no device: %s\n", clt_error_detail());
        return 1;
    }
    /* Other classes of device are served by the reference, whose products the portability suite has. */
    int failed = clt_cpu_fits(device) ? cmocka_run_group_tests_name("native matmul", tests, NULL, NULL) : 0;
    clt_device_close(device);
    return failed;
}
