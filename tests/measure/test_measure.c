/* Limits, facts and checks of a device: plausible, and consistent with one another. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/measure.h>

#include "runtime/device/device.h"

static clt_device *device;

static double least(const clt_measurement *m) {
    double best = m->seconds[0];
    for (int i = 1; i < m->n; i++) best = CLT_MIN(best, m->seconds[i]);
    return best;
}

static double value(clt_limit limit) {
    clt_measurement m;
    clt_status status = clt_measure_limit(device, limit, &(clt_measure_options){.seconds = 0.05}, &m);
    if (status == CLT_E_UNSUPPORTED) {
        print_message("%-18s %s\n", clt_limit_name(limit), clt_error_detail());
        return 0;
    }
    assert_ok(status);
    assert_false(m.wrong);
    assert_true(m.n >= 1 && m.n <= CLT_MOST_SAMPLES);
    for (int i = 0; i < m.n; i++) assert_true(m.seconds[i] > 0 && m.seconds[i] < 60);
    bool is_time = !strcmp(clt_limit_unit(limit), "seconds");
    assert_true(is_time == (m.amount == 0));
    print_message("%-18s %12.4g %s, %d samples\n", clt_limit_name(limit), is_time ? least(&m) : m.amount / least(&m),
                  clt_limit_unit(limit), m.n);
    return is_time ? least(&m) : m.amount / least(&m);
}

static void all_limits(void **state) {
    (void)state;
    double values[CLT_LIMIT_COUNT_];
    for (int i = 0; i < CLT_LIMIT_COUNT_; i++) values[i] = value((clt_limit)i);
    assert_true(values[CLT_LIMIT_FMA_F32] > 1e4 && values[CLT_LIMIT_COPY] > 1e4);
    assert_true(!values[CLT_LIMIT_FMA_F64] == !clt_device_has(device, CLT_CAP_FP64));
    assert_true(!values[CLT_LIMIT_FMA_F16] == !clt_device_has(device, CLT_CAP_FP16));
}

static bool within(double a, double b, double factor) {
    return a > b / factor && a < b * factor;
}

/* Counts that are wrong by a factor show: reading, copying and the triad are limited by the same memory. The best of several, for
 * a machine that is busy shows any of them too low. */
static void same_memory(void **state) {
    (void)state;
    double read = 0, copy = 0, triad = 0;
    for (int i = 0; i < 20 && !(i && read < 20 * copy && within(triad, copy, 6)); i++) {
        read = CLT_MAX(read, value(CLT_LIMIT_READ));
        copy = CLT_MAX(copy, value(CLT_LIMIT_COPY));
        triad = CLT_MAX(triad, value(CLT_LIMIT_TRIAD));
    }
    assert_true(read < 20 * copy);
    assert_true(within(triad, copy, 6));
}

/* The same limits, measured by other code with counts of its own: the best of both, for a machine that is busy shows either
 * too low. */
static void as_peaks(void **state) {
    (void)state;
    clt_peaks best = {0}, peaks;
    double fma = 0, copy = 0;
    for (int i = 0; i < 12 && !(i && within(fma, best.fma_flops, 2) && within(copy, best.copy_bytes, 2.5)); i++) {
        double value_now = value(CLT_LIMIT_FMA_F32), copy_now = value(CLT_LIMIT_COPY);
        assert_ok(clt_device_measure_peaks(device, &peaks));
        fma = CLT_MAX(fma, value_now);
        copy = CLT_MAX(copy, copy_now);
        best.fma_flops = CLT_MAX(best.fma_flops, peaks.fma_flops);
        best.copy_bytes = CLT_MAX(best.copy_bytes, peaks.copy_bytes);
    }
    assert_true(within(fma, best.fma_flops, 3));
    assert_true(within(copy, best.copy_bytes, 4));
}

static void arguments(void **state) {
    (void)state;
    clt_measurement m;
    assert_int_equal(clt_measure_limit(device, CLT_LIMIT_COUNT_, NULL, &m), CLT_E_INVALID);
    assert_int_equal(clt_measure_limit(NULL, CLT_LIMIT_COPY, NULL, &m), CLT_E_INVALID);
    const clt_measure_options wrong[] = {{.seconds = NAN}, {.seconds = -1}, {.most_samples = -1}, {.spread = NAN}};
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++)
        assert_int_equal(clt_measure_limit(device, CLT_LIMIT_COPY, &wrong[i], &m), CLT_E_INVALID);
    assert_int_equal(clt_check_memory(device, 1 << 20, 1, NULL), CLT_E_INVALID);
    assert_string_equal(clt_limit_name(CLT_LIMIT_COUNT_), "?");
}

static void facts(void **state) {
    (void)state;
    clt_device_facts f;
    bool wrong = true;
    assert_ok(clt_device_get_facts(device, &f, &wrong));
    assert_false(wrong);
    assert_true(f.vector_width_f32 >= 1 && f.vector_width_f32 <= 64);
    assert_true((f.sub_group_size > 0) == clt_device_has(device, CLT_CAP_SUBGROUPS));
    assert_non_null(strstr(f.cl_c_version, "OpenCL C"));
}

static void memory_and_arithmetic(void **state) {
    (void)state;
    const uint64_t most = (uint64_t)24 << 20;
    clt_check_report r = {0};
    assert_ok(clt_check_memory(device, most, 12345, &r));
    assert_true(r.errors == 0 && r.first[0] == 0);
    assert_true(r.together_bytes <= most && r.together_bytes >= most / 2 && r.largest_bytes <= r.together_bytes);
    assert_true(r.checked_bytes == 2 * r.together_bytes);
    assert_ok(clt_check_arithmetic(device, 99, &r));
    assert_true(r.errors == 0 && r.values == 65536);
    assert_int_equal(clt_check_memory(device, 1000, 1, &r), CLT_E_DEVICE_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_limits), cmocka_unit_test(same_memory), cmocka_unit_test(as_peaks),
                                       cmocka_unit_test(arguments), cmocka_unit_test(facts), cmocka_unit_test(memory_and_arithmetic)};
    assert_ok(clt_device_open(&device, NULL));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clt_device_close(device);
    return failed;
}
