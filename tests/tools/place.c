/* Where a bench places its rows: what is held against which bound. Nothing is measured here. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "tools/cltrain-probe/bench.h"

const char program_name[] = "test_place";

enum { LIMITS = 4, ROWS = LIMITS + 1 };
static survey_device device = {.info = {.type = CLT_DEVICE_CPU, .compute_units = 8, .clock_mhz = 3000}};

static void set_limit(bench_row *row, clt_limit limit, double rate) {
    *row = (bench_row){.is_limit = true, .limit = limit, .amount = BENCH_LIMIT_AMOUNT, .status = "ok", .n = {1}};
    row->us[0][0] = 1e6 * BENCH_LIMIT_AMOUNT / rate;
}

/* What becomes of an op without arithmetic that moves so many bytes a second; local memory does 2e11, memory 1e10. */
static const char *placed(double bytes, double rate, uint64_t cache, clt_device_type type) {
    static bench_row rows[ROWS];
    bench b = {.device = &device, .rows = rows, .n_rows = ROWS, .cache_bytes = cache, .vector_width = 8};
    device.info.type = type;
    set_limit(&rows[0], CLT_LIMIT_FMA_F32, 2e11);
    set_limit(&rows[1], CLT_LIMIT_COPY, 1e10);
    set_limit(&rows[2], CLT_LIMIT_READ, 1e10);
    set_limit(&rows[3], CLT_LIMIT_LOCAL, 2e11);
    rows[4] = (bench_row){.status = "ok", .bytes = bytes, .backend = "native", .n = {1}};
    rows[4].us[0][0] = 1e6 * bytes / rate;
    bench_place(&b);
    return rows[4].status;
}

static void held_against_memory(void **state) {
    (void)state;
    assert_string_equal(placed(1e8, 1.1e10, 1 << 20, CLT_DEVICE_CPU), "ok");
    assert_string_equal(placed(1e8, 1.4e10, 1 << 20, CLT_DEVICE_CPU), "suspect");
}

/* Three times local memory's rate on a CPU, that of it on others; by a margin of a quarter. */
static void held_against_caches(void **state) {
    (void)state;
    assert_string_equal(placed(1e5, 7e11, 1 << 20, CLT_DEVICE_CPU), "ok");
    assert_string_equal(placed(1e5, 8e11, 1 << 20, CLT_DEVICE_CPU), "suspect");
    assert_string_equal(placed(1e5, 2.4e11, 1 << 20, CLT_DEVICE_GPU), "ok");
    assert_string_equal(placed(1e5, 2.6e11, 1 << 20, CLT_DEVICE_GPU), "suspect");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(held_against_memory), cmocka_unit_test(held_against_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
