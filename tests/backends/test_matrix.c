/*
 * Contractions by matrix units without the hardware: the kernels and the capability's test as they
 * are, the instruction alone emulated. With small integers, which every format holds, results are
 * the reference's bit by bit, or a lane holds the wrong element.
 */
#include "tests/backends/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/matrix/matrix.h"
#include "runtime/device/kernel_source.h"

static clt_device *device;
static bool simulated; /* by a device that checks each access: fewer tests */
static bool all;       /* with the argument "all": all formats of all units, a program each */

/* ---- a row that emulates ---- */

static const clt_matrix_unit *unit;
static clt_matrix_unit in_plain_code;

static clt_backend_row row_of(const clt_op *op) {
    in_plain_code = *unit;
    in_plain_code.emulated = true;
    return (clt_backend_row){.op = op,
                             .name = unit->name,
                             .data = &in_plain_code,
                             .lower = clt_matrix_lower,
                             .tunables = clt_matrix_tunables,
                             .defaults = clt_matrix_defaults,
                             .valid = clt_matrix_valid};
}

static void check_exact(compare_test test, const int *parameters) {
    clt_backend_row row = row_of(test.op);
    test.integers = true;
    compare_check(device, &test, &row, parameters, 0);
}

/* Each layout of words in one format, if not all; for contractions, each unit once. */
static bool skipped(int i) {
    static const bool chosen[] = {true, true, false, false, true, true, true, false, false, true, true, false};
    unit = &clt_matrix_units[i];
    return !all && (!chosen[i] || (simulated && i > 4));
}

static bool skipped_contraction(int i) {
    return skipped(i) || (!all && (i == 1 || i == 4 || i == 5));
}

/* ---- tests ---- */

static const int tile[CLT_MAX_TUNABLES] = {32, 32, 2, 1, 1, 0};

static void products(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{32, 32, 32}, {1, 1, 1}, {33, 31, 17}, {16, 40, 70}, {65, 5, 33}};
    for (int i = 0; i < clt_matrix_n_units; i++) {
        if (skipped_contraction(i)) continue;
        for (size_t k = 0; k < (simulated ? 3 : CLT_COUNT_OF(sizes)); k++)
            for (int t = 0; t < (all ? 4 : 1); t++)
                check_exact(compare_matmul(sizes[k][0], sizes[k][1], sizes[k][2], t & 1, t & 2), tile);
    }
}

/* Several sub-groups in a group, vector loads, splits, batches, what is chosen by the shape. */
static void cuts(void **state) {
    (void)state;
    static const int large[CLT_MAX_TUNABLES] = {64, 32, 2, 1, 4, 3}, small[CLT_MAX_TUNABLES] = {32, 32, 2, 2, 4, 3};
    clt_random random;
    clt_random_init(&random, 3, 0);
    for (int i = 0; i < clt_matrix_n_units; i++) {
        if (skipped(i) || (!all && i != 0)) continue;
        check_exact(compare_matmul(68, 36, 200, false, true), clt_matrix_can(device, &clt_matrix_units[i], large) ? large : small);
        if (all) check_exact(compare_matmul(68, 36, 200, false, true), NULL);
        for (int k = 0; all && k < 5; k++) check_exact(compare_batched(&random, 20, 35, 50), tile);
        if (all) check_exact(compare_matmul(200, 150, 300, true, true), NULL);
    }
}

static void convolutions(void **state) {
    (void)state;
    static const compare_window windows[] = {
        {2, 5, 9, 7, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1},
        {2, 5, 8, 9, 11, 3, 2, 2, 3, 1, 0, 1, 2, 2},
    };
    for (int i = 0; i < clt_matrix_n_units; i++) {
        if (skipped(i) || (!all && i != 0)) continue;
        for (size_t k = 0; k < CLT_COUNT_OF(windows); k++)
            for (int direction = 0; direction < 3; direction += all ? 1 : 2)
                check_exact(compare_convolution(&windows[k], direction), tile);
    }
}

/* Results are finished where they are stored, by the sum of parts too; in several tiles, groups, and phases of a stride. */
static void epilogues(void **state) {
    (void)state;
    static const int cut[CLT_MAX_TUNABLES] = {32, 32, 2, 2, 4, 3};
    static const compare_window window = {2, 5, 8, 9, 11, 3, 2, 2, 3, 1, 0, 1, 2, 2};
    for (int i = 0; i < clt_matrix_n_units; i++) {
        if (skipped(i) || (!all && i != 0)) continue;
        compare_test tests[] = {compare_matmul(68, 36, 200, false, true), compare_matmul(33, 35, 70, false, false),
                                compare_convolution(&window, 0), compare_convolution(&window, 1)};
        for (size_t k = 0; k < CLT_COUNT_OF(tests); k++) {
            tests[k].finished = true;
            check_exact(tests[k], k == 0 ? cut : tile);
        }
    }
}

/* The error of operands rounded to nearest: a share of the format's step, and not none. */
static void rounding(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        if (skipped_contraction(i)) continue;
        compare_test test = compare_matmul(32, 32, 300, false, false);
        clt_backend_row row = row_of(test.op);
        int64_t n = compare_elements(&test);
        float *want = compare_run(device, &test, compare_row(device, &test, "reference"), NULL);
        float *got = compare_run(device, &test, &row, tile);
        double error = 0, square = 0, step = unit->capability == CLT_CAP_MMA_BF16 ? 1.0 / 256 : 1.0 / 2048;
        for (int64_t k = 0; k < n; k++) {
            error += ((double)got[k] - want[k]) * ((double)got[k] - want[k]);
            square += (double)want[k] * want[k];
        }
        /* Relative errors are even in -step .. step at the foot of a binade, half of that at its top:
         * variance 1/3 to 1/12 of step^2, for both operands. */
        assert_true(error < 0.7 * step * step * square && error > 0.1 * step * step * square);
        free(want);
        free(got);
    }
}

/* ---- capabilities ---- */

static char *test_text(const clt_matrix_unit *of, int emulated, size_t bytes) {
    char *text = malloc(bytes);
    assert_non_null(text);
    int length = snprintf(text, bytes, "#define UNIT %s\n#define UNIT_FORMAT %s\n#define UNIT_EMULATED %d\n%s%s",
                          of->name, of->format, emulated, clt_kernel_source_find(device, "matrix/unit.cl"),
                          clt_kernel_source_find(device, "matrix/test.cl"));
    assert_true(length > 0 && (size_t)length < bytes);
    return text;
}

/* The test that decides on hardware says yes to what follows the documents. */
static void the_test_passes(void **state) {
    (void)state;
    enum { BYTES = 65536 };
    for (int i = 0; i < clt_matrix_n_units; i++) {
        if (skipped(i)) continue;
        char *text = test_text(unit, 1, BYTES);
        clt_module module = {text, true, "matrix/test.cl"};
        clt_kernel *kernel;
        clt_memory *memory;
        float y = -1, x = 2.5f;
        size_t items = 2 * (size_t)unit->lanes;
        assert_ok(clt_device_build(device, &module, 1));
        assert_ok(clt_kernel_create(device, &module, "test", &kernel));
        assert_ok(clt_memory_create(device, sizeof y, &memory));
        assert_ok(clt_memory_write(memory, 0, &y, sizeof y));
        assert_ok(clt_kernel_set_memory(kernel, 0, memory));
        assert_ok(clt_kernel_set_value(kernel, 1, &x, sizeof x));
        assert_ok(clt_kernel_enqueue(kernel, 1, &items, &items));
        assert_ok(clt_memory_read(memory, 0, &y, sizeof y));
        if (y != 1) fail_msg("%s %s: %g", unit->name, unit->format, y);
        clt_memory_destroy(memory);
        clt_kernel_destroy(kernel);
        free(text);
    }
}

/* A driver that has not the instruction says so when it builds, and nothing worse. */
static void others_say_no(void **state) {
    (void)state;
    if (clt_device_get_info(device)->type != CLT_DEVICE_CPU && !simulated) skip();
    for (int i = 0; i < clt_matrix_n_units; i++) {
        unit = &clt_matrix_units[i];
        char *text = test_text(unit, 0, 65536);
        clt_module module = {text, true, "matrix/test.cl"};
        assert_status(clt_device_build(device, &module, 1), CLT_E_BUILD);
        assert_false(clt_device_has(device, unit->capability));
        free(text);
    }
}

/* f32 stays f32 unless asked for otherwise, and with no unit even then. */
static void off_by_default(void **state) {
    (void)state;
    compare_test test = compare_matmul(64, 64, 64, false, false);
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *inputs[] = {clt_input(graph, "a", CLT_F32, test.a), clt_input(graph, "b", CLT_F32, test.b)};
    clt_tensor *y = clt_matmul(inputs[0], inputs[1]);
    for (int i = 0; i < clt_matrix_n_units; i++) {
        unit = &clt_matrix_units[i];
        clt_candidate candidate = {&(clt_backend_row){.data = unit}, y, device};
        clt_device_override(device, &(clt_settings){.matmul_precision = ""});
        assert_false(clt_matrix_supports(&candidate));
        clt_device_override(device, &(clt_settings){.matmul_precision = unit->precision});
        assert_true(clt_matrix_supports(&candidate));
        if (!clt_device_has(device, unit->capability))
            assert_string_equal(compare_chosen(device, &test), "native");
        clt_device_override(device, &(clt_settings){.matmul_precision = "f32"});
        assert_false(clt_matrix_supports(&candidate));
    }
    clt_device_override(device, &(clt_settings){.matmul_precision = ""});
    clt_graph_destroy(graph);
}

/* Rows name their capability apart from the unit: both must be of one kind. */
static void rows_are_in_order(void **state) {
    (void)state;
    int n = 0;
    for (const clt_backend_row *row = clt_matrix_rows; row->op; row++, n++)
        assert_int_equal(row->requires, 1u << ((const clt_matrix_unit *)row->data)->capability);
    assert_int_equal(n, 4 * clt_matrix_n_units);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_test_passes), cmocka_unit_test(products),       cmocka_unit_test(cuts),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(epilogues),    cmocka_unit_test(rounding),       cmocka_unit_test(others_say_no),
        cmocka_unit_test(off_by_default),  cmocka_unit_test(rows_are_in_order),
    };
    all = argc > 1 && !strcmp(argv[1], "all");
    if (clt_device_open_with(&device, &(clt_settings){.device_class = "gpu"}) < 0) return print_error("no device: %s\n", clt_error_detail()), 1;
    simulated = strstr(clt_device_get_info(device)->platform, "Oclgrind") != NULL;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
