/* Problems from their text: refused where they make no sense, else measured and right. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/experimental/trial.h>

static clt_device *device;

static void refused(const char *text, clt_status wanted) {
    clt_status status = clt_problem_check(text);
    if (status != wanted) print_message("%s: %s: %s\n", text, clt_status_name(status), clt_error_detail());
    assert_int_equal(status, wanted);
}

static void nonsense(void **state) {
    (void)state;
    refused("", CLT_E_FORMAT);
    refused("4x4", CLT_E_FORMAT);
    refused("matmul", CLT_E_FORMAT);
    refused("matmul 4x4 4x4", CLT_E_FORMAT);
    refused("matmul 4x4 4x4 -> -> 4x4", CLT_E_FORMAT);
    refused("matmul 4x4 4x4 -> 4x4 4x4", CLT_E_FORMAT);
    refused("matmul 4x4 -> 4x4", CLT_E_FORMAT);
    refused("matmul 4x0 0x4 -> 4x4", CLT_E_FORMAT);
    refused("matmul 4x99999999999999999999 4x4 -> 4x4", CLT_E_FORMAT);
    refused("matmul 65536x65536 65536x65536 -> 65536x65536", CLT_E_FORMAT);
    refused("matmul 4x4: 4x4 -> 4x4", CLT_E_FORMAT);
    refused("matmul 4x5 4x5 -> 4x4", CLT_E_SHAPE);
    refused("matmul 4x5 5x6 -> 4x5", CLT_E_SHAPE);
    refused("conv3d 4x4 4x4 -> 4x4", CLT_E_FORMAT);
    refused("conv2d k3 s0 p1 d1 g1 2x3x8x8 4x3x3x3 -> 2x4x8x8", CLT_E_INVALID);
    refused("conv2d k3 s1 p1 d1 g1 2x3x8x8^T 4x3x3x3 -> 2x4x8x8", CLT_E_FORMAT);
    refused("conv2d kk s1 p1 d1 g1 2x3x8x8 4x3x3x3 -> 2x4x8x8", CLT_E_FORMAT);
    /* The ops' own rules believe what gradients say of their shapes. */
    refused("conv2d_grad_input k3 s1 p1 d1 g1 4x3x3x3 2x4x8x8 -> 2x3x800x8", CLT_E_SHAPE);
    refused("conv2d_grad_weight k3 s1 p1 d1 g1 2x3x8x8 2x4x8x8 -> 4x3x5x5", CLT_E_SHAPE);
    refused("max_pool2d_grad k2 s2 p0 2x3x8x8 2x3x9x9 -> 2x3x8x8", CLT_E_SHAPE);
    refused("batch_norm_grad 2x3x8x8 2x4 3 2x3x8x8 -> - 2x3", CLT_E_SHAPE);
    refused("batch_norm_grad 2x3x8x8 2x3 3 2x3x8x8 -> - 2x4", CLT_E_SHAPE);
    refused("batch_norm_grad 2x3x8x8 2x3 3 2x3x8x8 -> 2x3x8x8 2x3", CLT_E_FORMAT);
    refused("batch_norm_grad 2x3x8x8 2x3 3 2x3x8x8 -> -", CLT_E_FORMAT);
    refused("batch_norm_grad 2x3x8x8 2x3 3 2x3x8x8 -> - -", CLT_E_FORMAT);
    refused("matmul 4x4 4x4 -> -", CLT_E_FORMAT);
    refused("sgd 100 101 8 scalar -> 100", CLT_E_SHAPE);
    refused("sgd 100 100 4 scalar -> 100", CLT_E_SHAPE);
    refused("adam 100 100 8 scalar 100 99 -> 100", CLT_E_SHAPE);
    refused("reduce r0 af 4x4 -> scalar", CLT_E_SHAPE);
    char longest[4096];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    refused(longest, CLT_E_FORMAT);
}

static void measured(void **state) {
    (void)state;
    static const char *const problems[] = {
        "matmul 48x80 64x80^T -> 48x64",
        "matmul 48x80^T 48x32 -> 80x32",
        "reduce r0 a1 64x10 -> 1x10",
        "reduce r2 a2 64x10 -> 64",
        "matmul 3x16x24 3x24x8 -> 3x16x8",
        "conv2d k3 s1 p1 d1 g1 4x16x12x12 32x16x3x3 -> 4x32x12x12",
        "conv2d k3,1 s2,1 p1,0 d1 g1 2x8x12x12 16x8x3x1 -> 2x16x6x12",
        "conv2d_grad_input k3 s1 p1 d1 g1 32x16x3x3 4x32x12x12 -> 4x16x12x12",
        "conv2d_grad_weight k3 s1 p1 d1 g1 4x16x12x12 4x32x12x12 -> 32x16x3x3",
        "max_pool2d k2 s2 p0 4x16x12x12 -> 4x16x6x6",
        "max_pool2d_grad k2 s2 p0 4x16x12x12 4x16x6x6 -> 4x16x12x12",
        "reduce r0 ad 4x16x12x12 -> 16",
        "batch_norm_grad 4x16x12x12 2x16 16 4x16x12x12 -> - 2x16",
        "layer_norm n1 40x96 96 96 -> - 2x40",
        "sgd 10000 10000 8 scalar -> 10000",
        "sgd 10000 10000 8 scalar 10000 -> 10000",
        "adam 300 300 8 scalar 300 300 -> 300",
    };
    clt_problem_options options = {.measure = {.seconds = 0.01, .most_samples = 3}};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        clt_problem_measurement m;
        clt_status status = clt_measure_problem(device, problems[i], &options, &m);
        print_message("%-90s %-10s %8.1f us, %.1e %.1e\n", m.problem, m.backend, m.time.n ? 1e6 * m.time.seconds[0] : 0,
                      m.nmse, m.nmse_after);
        assert_ok(status);
        assert_true(m.time.n >= 1 && m.time.n <= 3 && !m.time.wrong);
        assert_true(m.done_flops <= m.flops && (m.done_flops == m.flops || !strncmp(m.backend, "winograd", 8)));
        assert_true(m.bytes > 0 && m.nmse >= 0 && m.nmse_after >= 0 && m.backend[0]);
    }
}

/* Layouts are exactly those of the text if it is asked for, or if one is marked. */
static void layouts(void **state) {
    (void)state;
    clt_problem_measurement m;
    clt_problem_options options = {.measure = {.seconds = 1e-3, .most_samples = 1}, .exact_layouts = true};
    const char *plain = "conv2d k3 s1 p1 d1 g1 4x16x12x12 32x16x3x3 -> 4x32x12x12";
    assert_ok(clt_measure_problem(device, plain, &options, &m));
    assert_string_equal(m.problem, plain);
    const char *marked = "max_pool2d k2 s2 p0 4x16x12x12:nhwc -> 4x16x6x6:nhwc";
    clt_status status = clt_measure_problem(device, marked, NULL, &m);
    assert_string_equal(m.problem, marked);
    assert_true(status == CLT_OK || status == CLT_E_UNSUPPORTED);
}

/* Any backend that can serves on request; what cannot says why. */
static void backends(void **state) {
    (void)state;
    static const char *const problems[] = {"matmul 64x80 96x80^T -> 64x96", "conv2d k3 s1 p1 d1 g1 4x16x12x12 32x16x3x3 -> 4x32x12x12",
                                           "adam 300 300 8 scalar 300 300 -> 300"};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        clt_problem_measurement m;
        clt_problem_options options = {.measure = {.seconds = 1e-3, .most_samples = 1}, .backend = "reference"};
        assert_ok(clt_measure_problem(device, problems[i], &options, &m));
        assert_string_equal(m.backend, "reference");
        options.backend = "no-such-one";
        assert_int_equal(clt_measure_problem(device, problems[i], &options, &m), CLT_E_UNSUPPORTED);
        assert_non_null(strstr(clt_error_detail(), "no-such-one has no row for"));
        options.backend = "native"; /* its rows are for some devices, and for some problems */
        clt_status status = clt_measure_problem(device, problems[i], &options, &m);
        assert_true(status == CLT_OK ? !strncmp(m.backend, "native", 6) : status == CLT_E_UNSUPPORTED && strstr(clt_error_detail(), "native"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nonsense), cmocka_unit_test(measured), cmocka_unit_test(layouts),
                                       cmocka_unit_test(backends)};
    assert_ok(clt_device_open(&device, NULL));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
