/* Times of problems: what is told of others by them, and their text. Nothing is measured here. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/measure/times.h"

static const clt_peaks peaks = {.fma_flops = 1e11, .copy_bytes = 1e10};

static clt_timing make(const char *problem, const char *row, double us, double flops, double bytes) {
    clt_timing t = {.us = us, .spread = 0.01, .own = 0.02, .degrees = 5, .flops = flops, .bytes = bytes, .launches = 1};
    snprintf(t.problem, sizeof t.problem, "%s", problem);
    snprintf(t.row, sizeof t.row, "%s", row);
    return t;
}

/* A product of so many samples. */
static clt_timing product(int n, int width, const char *row, double us) {
    char problem[128];
    snprintf(problem, sizeof problem, "matmul %dx80 %dx80^T -> %dx%d then:relu:2", n, width, n, width);
    return make(problem, row, us, 2.0 * 80 * n * width, 4.0 * (80 * n + 80 * width + n * width));
}

static void put(clt_timings *list, clt_timing t) {
    assert_ok(clt_timings_put(list, &t));
}

static clt_estimate estimate(const clt_timings *list, clt_timing wanted) {
    return clt_timings_estimate(list, &wanted, &peaks, CLT_TIMES_MEASURED, NULL);
}

#define NEAR(a, b) assert_true(fabs((a) / (b) - 1) < 1e-6)

/* ---- which problems are the same at another batch size ---- */

static void ratio_is(const char *a, const char *b, double wanted) {
    double ratio;
    uint64_t which;
    bool same = clt_tune_ratio(a, b, &ratio, &which);
    if (same) assert_true((ratio == 1) == (which == 0));
    if (same != (wanted > 0) || (same && fabs(ratio - wanted) > 1e-12)) fail_msg("%s | %s: %d %g", a, b, same, ratio);
}

static void ratios(void **state) {
    (void)state;
    ratio_is("matmul 32x80 64x80^T -> 32x64", "matmul 32x80 64x80^T -> 32x64", 1);
    ratio_is("matmul 32x80 64x80^T -> 32x64", "matmul 48x80 64x80^T -> 48x64", 1.5);
    ratio_is("matmul 32x80 64x80^T -> 32x64", "matmul 8x80 64x80^T -> 8x64", 0.25);
    ratio_is("matmul 3x80 64x80^T -> 3x64", "matmul 7x80 64x80^T -> 7x64", 7.0 / 3);
    ratio_is("matmul 32x80 64x80^T -> 32x64", "matmul 64x80 32x80^T -> 64x32", 0);
    ratio_is("matmul 32x80 64x80^T -> 32x64", "matmul 64x80 64x80^T -> 32x64 ", 0);
    ratio_is("conv2d k3 s1 p1 d1 g1 4x16x8x8:nhwc 8x16x3x3 -> 4x8x8x8", "conv2d k5 s1 p1 d1 g1 4x16x8x8:nhwc 8x16x3x3 -> 4x8x8x8", 0);
    ratio_is("reduce r0 a1 64 -> 1", "reduce r0 a2 64 -> 1", 0);
    ratio_is("feed 1000", "feed 4000", 4);
    ratio_is("feed 0", "feed 4000", 0);
    ratio_is("", "", 1);
}

/* ---- estimates ---- */

static void itself(void **state) {
    (void)state;
    clt_timings list = {0};
    clt_timing with_gap = product(32, 64, "native", 100);
    with_gap.gap_us = 7;
    put(&list, with_gap);
    put(&list, product(32, 64, "reference", 900));
    clt_estimate e = estimate(&list, product(32, 64, "native", 0));
    assert_int_equal(e.source, CLT_TIMES_MEASURED);
    NEAR(e.us, 107);
    NEAR(estimate(&list, product(32, 64, "reference", 0)).us, 900);
    /* What moves other bytes is another problem: a pack whose parts lie elsewhere. */
    clt_timing other = product(32, 64, "native", 0);
    other.bytes *= 2;
    assert_int_not_equal(estimate(&list, other).source, CLT_TIMES_MEASURED);
    put(&list, product(32, 64, "native", 120)); /* newer */
    assert_int_equal(list.n, 2);
    NEAR(estimate(&list, product(32, 64, "native", 0)).us, 120);
    clt_timings_free(&list);
}

static void batches(void **state) {
    (void)state;
    clt_timings list = {0};
    put(&list, product(32, 64, "native", 50 + 2 * 32));
    put(&list, product(128, 64, "native", 50 + 2 * 128));
    clt_estimate e = estimate(&list, product(64, 64, "native", 0));
    assert_int_equal(e.source, CLT_TIMES_BATCHES);
    NEAR(e.us, 50 + 2 * 64);
    NEAR(estimate(&list, product(48, 64, "native", 0)).us, 50 + 2 * 48);
    NEAR(estimate(&list, product(256, 64, "native", 0)).us, 50 + 2 * 256);
    NEAR(estimate(&list, product(24, 64, "native", 0)).us, 50 + 2 * 24);
    /* The nearest on either side count. */
    put(&list, product(96, 64, "native", 1000));
    NEAR(estimate(&list, product(48, 64, "native", 0)).us, 114 + (1000 - 114) / 4.0);
    clt_timings_free(&list);
}

/* A wider layer is no larger batch: no line goes through both. */
static void two_dimensions(void **state) {
    (void)state;
    clt_timings list = {0};
    put(&list, product(32, 64, "native", 114));
    put(&list, product(48, 128, "native", 1e6));
    clt_estimate e = estimate(&list, product(48, 64, "native", 0));
    assert_int_equal(e.source, CLT_TIMES_BATCH);
    put(&list, product(24, 64, "native", 98));
    e = estimate(&list, product(48, 64, "native", 0));
    assert_int_equal(e.source, CLT_TIMES_BATCHES);
    NEAR(e.us, 146);
    clt_timings_free(&list);
}

static void beyond_reason(void **state) {
    (void)state;
    clt_timings list = {0};
    put(&list, product(32, 64, "native", 10)); /* disturbed: the line falls, or rises too steeply */
    put(&list, product(40, 64, "native", 100));
    double far = estimate(&list, product(400, 64, "native", 0)).us, small = estimate(&list, product(4, 64, "native", 0)).us;
    assert_true(far <= 1.4 * 1000 + 1e-6 && far >= 100);
    assert_true(small > 0 && small <= 14);
    clt_timings_free(&list);
}

static void one_batch(void **state) {
    (void)state;
    clt_timings list = {0};
    put(&list, product(3200, 64, "native", 500));
    put(&list, product(6400, 64, "other", 9000));
    clt_estimate e = estimate(&list, product(6400, 64, "native", 0));
    assert_int_equal(e.source, CLT_TIMES_BATCH);
    assert_string_equal(e.from->problem, "matmul 3200x80 64x80^T -> 3200x64 then:relu:2");
    assert_true(e.us > 900 && e.us < 1000);
    clt_timings_free(&list);
}

static void nearest(void **state) {
    (void)state;
    clt_timings list = {0};
    put(&list, product(3200, 64, "native", 500));
    put(&list, product(3200, 512, "native", 3000));
    put(&list, make("matmul 3200x80 64x80^T -> 3200x64", "native", 1, 1, 1));
    clt_estimate e = estimate(&list, product(4800, 50, "native", 0)); /* 1.2 times the products of the first */
    assert_int_equal(e.source, CLT_TIMES_NEAREST);
    assert_string_equal(e.from->row, "native");
    assert_non_null(strstr(e.from->problem, "3200x64 then"));
    assert_true(e.us > 550 && e.us < 760);
    clt_timings_free(&list);
}

static void roof(void **state) {
    (void)state;
    clt_timings list = {0};
    /* Nothing known: the roofline itself. */
    NEAR(estimate(&list, make("softmax a1 100x100 -> 100x100", "reference", 0, 1, 1e6)).us, 100);
    put(&list, make("softmax a1 7x7x7 -> 7x7x7", "reference", 300, 1, 1e6)); /* 3 times its roofline */
    put(&list, make("relu 9 -> 9", "reference", 5000, 1, 1e6));
    clt_estimate e = estimate(&list, make("softmax a1 100x100 -> 100x100", "reference", 0, 1, 4e6));
    assert_int_equal(e.source, CLT_TIMES_ROOFLINE);
    NEAR(e.us, 1200);
    e = estimate(&list, make("gelu 100x100 -> 100x100", "reference", 0, 1, 1e6)); /* of the others: 26.5 times */
    assert_int_equal(e.source, CLT_TIMES_OTHERS);
    NEAR(e.us, 2650);
    clt_timings_free(&list);
}

/* What takes no launch takes no time, whatever is known. */
static void nothing_to_do(void **state) {
    (void)state;
    clt_timings list = {0};
    clt_timing none = make("pack 10 -> 10", "reference", 0, 0, 0);
    none.launches = 0;
    put(&list, product(32, 64, "native", 100));
    assert_true(estimate(&list, none).us == 0);
    clt_timings_free(&list);
}

/* ---- text ---- */

static void text_there_and_back(void **state) {
    (void)state;
    clt_timings list = {0}, back = {0};
    clt_text text = {0};
    put(&list, product(1, 1, "native", 1234.5));
    put(&list, make("feed 123456789", "", 3, 0, 246913578));
    put(&list, product(4099, 61, "native block=12", 3.25));
    assert_ok(clt_timings_write(&list, &text));
    for (size_t length = 0; length <= text.length; length++) {
        clt_timings_free(&back);
        assert_ok(clt_timings_read(&back, text.data, length)); /* cut off anywhere */
    }
    assert_int_equal(back.n, list.n);
    for (size_t i = 0; i < list.n; i++) {
        assert_true(clt_timing_same(&list.items[i], &back.items[i]));
        assert_true(fabs(list.items[i].us / back.items[i].us - 1) < 1e-3);
        assert_true(list.items[i].flops == back.items[i].flops);
        assert_true(back.items[i].spread == 0.01 && back.items[i].own == 0.02 && back.items[i].degrees == 5);
    }
    clt_text_free(&text);
    clt_timings_free(&list);
    clt_timings_free(&back);
}

static void hostile_text(void **state) {
    (void)state;
    static const char *const lines[] = {
        "", "{", "[]", "null", "{\"problem\":3}", "\xff\xfe",
        "{\"problem\":\"\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\\u0001\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":-1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":1e11,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":\"1\",\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":-1,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":0,\"flops\":1,\"bytes\":1,\"launches\":1}",
        "{\"problem\":\"a\",\"problem\":\"b\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}",
    };
    clt_timings list = {0};
    for (size_t i = 0; i < CLT_COUNT_OF(lines); i++) {
        char line[512];
        snprintf(line, sizeof line, "%s\n", lines[i]);
        assert_ok(clt_timings_read(&list, line, strlen(line)));
        if (list.n) fail_msg("taken: %s", lines[i]);
        assert_int_equal(list.skipped, i + 1);
    }
    clt_text text = {0};
    clt_text_add(&text, "{\"problem\":\"%0400d\",\"row\":\"r\",\"us\":1,\"gap_us\":0,\"spread\":0,\"own\":0,\"degrees\":1,\"flops\":1,\"bytes\":1,\"launches\":1}\n", 0);
    assert_ok(clt_timings_read(&list, text.data, text.length));
    assert_int_equal(list.n, 0);
    clt_text_free(&text);
    clt_timings_free(&list);
}

/* The oldest go. */
static void too_many(void **state) {
    (void)state;
    clt_timings list = {0};
    char problem[64];
    for (int i = 0; i < CLT_TIMES_MOST + 10; i++) {
        snprintf(problem, sizeof problem, "feed %d", i + 1);
        put(&list, make(problem, "", 1, 0, i));
    }
    assert_int_equal(list.n, CLT_TIMES_MOST);
    assert_string_equal(list.items[0].problem, "feed 11");
    clt_timings_free(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios),      cmocka_unit_test(itself),  cmocka_unit_test(batches),
        cmocka_unit_test(beyond_reason), cmocka_unit_test(two_dimensions), cmocka_unit_test(one_batch), cmocka_unit_test(nearest),
        cmocka_unit_test(roof),        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(text_there_and_back), cmocka_unit_test(hostile_text), cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
