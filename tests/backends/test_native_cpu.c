#define _POSIX_C_SOURCE 200809L /* setenv */
/* The native backend for CPUs against the reference rows, over shapes that it cuts in different ways. */
#include "tests/backends/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/native/cpu/cpu.h"

static clt_device *device;

static void check(const compare_test *test) {
    compare_check(device, test, compare_row(device, test, "native"), NULL, 1e-10);
}

/* ---- matrix product ---- */

static void matmul_sizes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 1, 9000},    {1, 10000, 1},  {10000, 1, 1}, {6, 16, 256},   {7, 17, 257},   {5, 15, 255},
        {12, 32, 512},   {100, 10, 784}, {33, 129, 70}, {128, 128, 7},  {150, 40, 520}, {64, 3, 3000},
        {300, 300, 300}, {3, 500, 1030}, {2, 2, 8000},  {500, 270, 33},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) {
            compare_test test = compare_matmul(sizes[i][0], sizes[i][1], sizes[i][2], t & 1, t & 2);
            check(&test);
        }
}

static void matmul_batches(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 1, 0);
    for (int i = 0; i < 60; i++) {
        int64_t m = compare_between(&random, 1, 40), n = compare_between(&random, 1, 40), k = 1;
        while (m * n * k < 8192) k += compare_between(&random, 1, 300);
        compare_test test = compare_batched(&random, m, n, k);
        check(&test);
    }
}

/* Batches of which one operand or both are stretched, large enough that b is put into panels. */
static void matmul_batches_in_panels(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        compare_test test = {.op = &clt_op_matmul, .matmul = {t & 1, false}};
        test.a = t & 1 ? CLT_SHAPE(t & 2 ? 3 : 1, 2, 30, 440) : CLT_SHAPE(t & 2 ? 3 : 1, 2, 440, 30);
        test.b = CLT_SHAPE(3, t & 2 ? 2 : 1, 30, 259);
        check(&test);
    }
}

/* ---- convolution ---- */

static void check_convolution(const compare_window *window) {
    for (int direction = 0; direction < 3; direction++) {
        compare_test test = compare_convolution(window, direction);
        check(&test);
    }
}

static void convolution_sizes(void **state) {
    (void)state;
    static const compare_window windows[] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},    /* one of everything */
        {2, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* whole tiles, blocks and lines */
        {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},  /* one more of each */
        {2, 15, 7, 8, 15, 3, 3, 2, 2, 1, 1, 1, 1, 1},  /* one less */
        {2, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* a first layer */
        {2, 20, 9, 10, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1}, /* one tap */
        {2, 20, 9, 10, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1}, /* one tap, of which most pixels are not read */
        {2, 20, 9, 10, 24, 1, 1, 3, 2, 1, 2, 1, 1, 1}, /* and with padding */
        {1, 6, 21, 23, 10, 7, 7, 2, 2, 3, 3, 1, 1, 1}, /* ResNet's first */
        {2, 5, 12, 11, 7, 5, 5, 1, 1, 2, 2, 1, 1, 1},  /* 5 x 5 */
        {1, 4, 13, 14, 6, 3, 3, 1, 1, 2, 2, 2, 2, 1},  /* dilated */
        {1, 4, 13, 14, 6, 3, 3, 2, 2, 2, 2, 2, 2,
         1}, /* stride and dilation not coprime: pixels without taps */
        {1, 4, 15, 14, 6, 3, 2, 4, 3, 2, 2, 2, 2, 1}, /* stride 4, 3 */
        {2, 1, 9, 9, 1, 3, 3, 1, 1, 1, 1, 1, 1, 24},  /* depthwise */
        {2, 18, 6, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 2},  /* groups */
        {2, 3, 4, 5, 4, 2, 3, 1, 1, 5, 6, 1, 1, 1},   /* more padding than kernel */
        {1, 2, 30, 1, 3, 3, 1, 1, 1, 1, 0, 1, 1, 1},  /* a column */
        {1, 2, 1, 30, 3, 1, 3, 1, 2, 0, 1, 1, 1, 1},  /* a row */
        {1, 2, 2, 2, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1},   /* one pixel of the result */
        {1, 2, 3, 9, 3, 2, 2, 4, 4, 0, 0, 1, 1, 1},   /* image rows that no tap reads */
        {8, 4, 24, 24, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1}, /* pixels in several splits */
    };
    for (size_t i = 0; i < CLT_COUNT_OF(windows); i++) check_convolution(&windows[i]);
}

static void convolution_at_random(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 2, 0);
    for (int i = 0; i < 80; i++) {
        compare_window window = compare_random_window(&random);
        check_convolution(&window);
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
    float *y = compare_run(device, &test, compare_row(device, &test, "native"), NULL);
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
    compare_test large = compare_matmul(64, 64, 64, false, false);
    assert_string_equal(compare_chosen(device, &large), "native");
    compare_test wide = {.op = &clt_op_conv2d_grad_input,
                    .a = CLT_SHAPE(4, 4, 3, 3),
                    .b = CLT_SHAPE(1, 4, 3, 3),
                    .conv2d = {3, 3, 5, 5, 0, 0, 1, 1, 1, CLT_SHAPE(1, 4, 13, 13)}};
    assert_string_equal(compare_chosen(device, &wide), "reference");
    wide.conv2d.stride_h = wide.conv2d.stride_w = 4;
    wide.conv2d.result = CLT_SHAPE(1, 4, 11, 11);
    assert_string_equal(compare_chosen(device, &wide), "native");
}

/* Pixels past 32-bit indices once packed, though no tensor is so large. */
static void sizes_past_the_index_are_not_served(void **state) {
    (void)state;
    compare_test padded = {.op = &clt_op_conv2d,
                      .a = CLT_SHAPE(1, 16, 2, 2),
                      .b = CLT_SHAPE(1, 16, 20001, 1),
                      .conv2d = {20001, 1, 1, 1, 10000, 10000, 1, 1, 1, {0}}};
    assert_string_equal(compare_chosen(device, &padded), "reference");
}

static int open_device(void) {
    if (clt_device_open(&device, NULL) == CLT_OK) return 0;
    print_error("no device: %s\n", clt_error_detail());
    return -1;
}

/* On another class of device the reference serves all, and only that is tested. */
static void other_devices_are_left_alone(void **state) {
    (void)state;
    compare_test large = compare_matmul(64, 64, 64, false, false);
    assert_string_equal(compare_chosen(device, &large), "reference");
}

int main(void) {
    const struct CMUnitTest others[] = {cmocka_unit_test(other_devices_are_left_alone)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_sizes),
        cmocka_unit_test(matmul_batches),
        cmocka_unit_test(matmul_batches_in_panels),
        cmocka_unit_test(convolution_sizes),
        cmocka_unit_test(convolution_at_random),
        cmocka_unit_test(not_finite_values_stay_in_their_row),
        cmocka_unit_test(rows_give_way),
        cmocka_unit_test(sizes_past_the_index_are_not_served),
    };
    setenv("CLTRAIN_CLASS", "cpu", 1);
    if (open_device() < 0) return 1;
    int failed = clt_cpu_fits(device) ? cmocka_run_group_tests_name("native", tests, NULL, NULL)
                                         : cmocka_run_group_tests_name("native", others, NULL, NULL);
    clt_device_close(device);
    return failed;
}
