/*
 * The native convolutions for GPU-class devices against the reference rows, whatever the device at hand is:
 * CLTRAIN_CLASS has it taken as one of that class.
 */
#include "tests/backends/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/native/gpu/gpu.h"

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

static const int fours[CLT_MAX_TUNABLES] = {16, 16, 8, 4, 4, 4, 0};
static const int ones[CLT_MAX_TUNABLES] = {16, 16, 8, 4, 4, 1, 0};
static const int others[][CLT_MAX_TUNABLES] = {
    {32, 16, 16, 8, 4, 4, 2}, {32, 32, 8, 4, 8, 4, 1}, {64, 64, 8, 8, 8, 4, 1}, {64, 128, 8, 8, 8, 1, 2},
};

static const compare_window windows[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},    /* one of everything */
    {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* whole tiles and fours */
    {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* one more of each */
    {2, 15, 7, 8, 15, 3, 3, 2, 2, 1, 1, 1, 1, 1},  /* one less */
    {2, 3, 16, 16, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* a first layer */
    {2, 20, 6, 6, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1},  /* pointwise, by fours */
    {2, 20, 9, 5, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1},  /* pointwise, not */
    {2, 20, 9, 10, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1}, /* one tap, of which most pixels are not read */
    {2, 20, 9, 10, 24, 1, 1, 3, 2, 1, 2, 1, 1, 1}, /* and with padding */
    {1, 6, 21, 23, 10, 7, 7, 2, 2, 3, 3, 1, 1, 1}, /* ResNet's first */
    {1, 4, 13, 14, 6, 3, 3, 1, 1, 2, 2, 2, 2, 1},  /* dilated */
    {1, 4, 13, 14, 6, 3, 3, 2, 2, 2, 2, 2, 2, 1},  /* stride and dilation not coprime: pixels without taps */
    {1, 4, 15, 14, 6, 3, 2, 4, 3, 2, 2, 2, 2, 1},  /* stride 4, 3 */
    {2, 1, 9, 9, 1, 3, 3, 1, 1, 1, 1, 1, 1, 24},   /* depthwise */
    {2, 18, 6, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 2},   /* groups */
    {2, 3, 4, 5, 4, 2, 3, 1, 1, 5, 6, 1, 1, 1},    /* more padding than kernel */
    {1, 2, 30, 1, 3, 3, 1, 1, 1, 1, 0, 1, 1, 1},   /* a column */
    {1, 2, 1, 30, 3, 1, 3, 1, 2, 0, 1, 1, 1, 1},   /* a row */
    {1, 2, 3, 9, 3, 2, 2, 4, 4, 0, 0, 1, 1, 1},    /* image rows that no tap reads */
    {8, 4, 24, 24, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* pixels in several splits */
};

static void check_directions(const compare_window *window, const int *parameters) {
    for (int direction = 0; direction < 3; direction++) {
        compare_test test = compare_convolution(window, direction);
        check(&test, parameters);
    }
}

static void all_windows(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(windows) - (simulated ? 1 : 0); i++) {
        if (!simulated || i % 3 == 0) check_directions(&windows[i], ones);
        for (size_t v = 0; all && v < CLT_COUNT_OF(others); v++) check_directions(&windows[i], others[v]);
        if (all) check_directions(&windows[i], NULL);
        if (all) check_directions(&windows[i], fours);
    }
}

static void loads_by_four(void **state) {
    (void)state;
    check_directions(&windows[1], fours);
    check_directions(&windows[5], fours);
}

static void by_the_shape(void **state) {
    (void)state;
    if (!simulated) check_directions(&windows[CLT_COUNT_OF(windows) - 1], NULL);
}

static void at_random(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 2, 0);
    for (int i = 0; i < (simulated ? 2 : 60); i++) {
        compare_window v = compare_random_window(&random);
        check_directions(&v, ones);
    }
}

static void rows_give_way(void **state) {
    (void)state;
    compare_window v = {1, 4, 33, 33, 4, 3, 3, 4, 4, 0, 0, 1, 1, 1};
    compare_test strided = compare_convolution(&v, 1);
    assert_string_equal(compare_chosen(device, &strided), "native");
    v.sh = v.sw = 5; /* more phases than are worth a launch each */
    strided = compare_convolution(&v, 1);
    assert_string_equal(compare_chosen(device, &strided), "reference");
    compare_window pixel = {1, 64, 1, 1, 64, 1, 1, 2, 2, 0, 0, 1, 1, 1}; /* phases without pixels */
    compare_test empty = compare_convolution(&pixel, 1);
    assert_string_equal(compare_chosen(device, &empty), "native");
    check(&empty, NULL);
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
        cmocka_unit_test(all_windows),
        cmocka_unit_test(loads_by_four),
        cmocka_unit_test(by_the_shape),
        cmocka_unit_test(at_random),
        cmocka_unit_test(rows_give_way),
    };
    all = argc > 1 && !strcmp(argv[1], "all");
    if (open_device() < 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
