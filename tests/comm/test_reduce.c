#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "comm/halves.h"
#include "comm/reduce.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* By the definition, in double precision; NaNs as NaN. */
static double f16_value(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

static void test_f16_widens(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        float fast, portable;
        clt_f16_to_f32(&fast, &half, 1);
        clt_f16_to_f32_portable(&portable, &half, 1);
        assert_int_equal(bits_of(fast), bits_of(portable));
        double wanted = f16_value(half);
        if (isnan(wanted)) assert_true(isnan(fast));
        else assert_true((double)fast == wanted && !signbit(fast) == !signbit(wanted));
    }
}

static void check_narrow(float value) {
    uint16_t fast[9], portable;
    float many[9] = {value, value, value, value, value, value, value, value, value};
    clt_f32_to_f16(fast, many, 9); /* vector and rest */
    clt_f32_to_f16_portable(&portable, &value, 1);
    assert_int_equal(fast[0], portable);
    assert_int_equal(fast[8], portable);
    if (isnan(value)) {
        assert_true((portable & 0x7c00) == 0x7c00 && (portable & 0x3ff));
        return;
    }
    /* No neighbour is nearer, and of two as near the even one is taken. */
    double got = f16_value(portable), here = (double)value;
    if (isinf(got)) {
        assert_true(fabs(here) >= 65520 && (got > 0) == (here > 0));
        return;
    }
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(portable + step);
        if ((other ^ portable) & 0x8000) continue;
        double there = isinf(f16_value(other)) ? copysign(65536, here) : f16_value(other);
        double error = fabs(got - here), other_error = fabs(there - here);
        assert_true(error < other_error || (error == other_error && (portable & 1) == 0));
    }
}

/* Every f16, what lies half way between two, and the floats beside that. */
static void test_f16_narrows(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i, next = (uint16_t)(i + 1);
        float value, above;
        clt_f16_to_f32(&value, &half, 1);
        clt_f16_to_f32(&above, &next, 1);
        check_narrow(value);
        uint16_t back;
        clt_f32_to_f16(&back, &value, 1);
        if (!isnan(value)) assert_int_equal(back, half);
        if (isnan(value) || isnan(above) || isinf(value) || isinf(above)) continue;
        float middle = (value + above) / 2;
        check_narrow(middle);
        check_narrow(nextafterf(middle, INFINITY));
        check_narrow(nextafterf(middle, -INFINITY));
    }
    const float others[] = {65519.99f, 65520, 65536, 1e30f, -1e30f, INFINITY, 1e-30f, -0.0f, 1e-8f, 2.98e-8f, 2.99e-8f};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_narrow(others[i]);
    check_narrow(float_of(0x7f800001)); /* a signalling NaN */
    check_narrow(float_of(0xffc01234));
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i, back;
        float value;
        clt_bf16_to_f32(&value, &half, 1);
        assert_int_equal(bits_of(value), i << 16);
        clt_f32_to_bf16(&back, &value, 1);
        if (isnan(value)) assert_int_equal(back, half | 0x40);
        else assert_int_equal(back, half);
    }
    static const struct {
        uint32_t from;
        uint16_t to;
    } cases[] = {{0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81},
                 {0x7f7fffff, 0x7f80}, {0x7f800001, 0x7fc0}, {0x00008000, 0x0000}, {0x80008001, 0x8001}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float value = float_of(cases[i].from);
        uint16_t got;
        clt_f32_to_bf16(&got, &value, 1);
        assert_int_equal(got, cases[i].to);
    }
}

static void test_reductions(void **state) {
    (void)state;
    float a[5] = {1, -2, NAN, 4, 0}, b[5] = {0.5f, 3, 1, NAN, 0};
    clt_reduce(a, b, 5, CLT_F32, CLT_REDUCE_MAX);
    assert_true(a[0] == 1 && a[1] == 3 && isnan(a[2]) && isnan(a[3]));
    float c[3] = {1, NAN, 2}, d[3] = {-1, 0, NAN};
    clt_reduce(c, d, 3, CLT_F32, CLT_REDUCE_MIN);
    assert_true(c[0] == -1 && isnan(c[1]) && isnan(c[2]));
    int32_t i[3] = {INT32_MAX, -5, 7}, j[3] = {1, 2, -9};
    clt_reduce(i, j, 3, CLT_I32, CLT_REDUCE_SUM);
    assert_true(i[0] == INT32_MIN && i[1] == -3 && i[2] == -2);
    clt_reduce(i, j, 3, CLT_I32, CLT_REDUCE_MAX);
    assert_true(i[0] == 1 && i[1] == 2 && i[2] == -2);
    uint8_t u[2] = {200, 3}, v[2] = {100, 4};
    clt_reduce(u, v, 2, CLT_U8, CLT_REDUCE_SUM);
    assert_true(u[0] == 44 && u[1] == 7);
    clt_reduce(u, v, 2, CLT_U8, CLT_REDUCE_MIN);
    assert_true(u[0] == 44 && u[1] == 4);
}

/* 2048 + 1 is 2048 in f16, so rounding each time would lose all ones. */
static void test_halves_are_rounded_once(void **state) {
    (void)state;
    enum { N = 3000, PIECES = 9 };
    static uint16_t data[PIECES][N];
    const void *pieces[PIECES];
    for (int p = 0; p < PIECES; p++) {
        for (int i = 0; i < N; i++) {
            float value = p ? 1 : (float)(2048 + 8 * (i % 4));
            clt_f32_to_f16(&data[p][i], &value, 1);
        }
        pieces[p] = data[p];
    }
    clt_reduce_many(data[3], pieces, PIECES, N, CLT_F16, CLT_REDUCE_SUM); /* into one of them */
    for (int i = 0; i < N; i++) {
        float value;
        clt_f16_to_f32(&value, &data[3][i], 1);
        assert_true(value == (float)(2056 + 8 * (i % 4)));
    }
}

static void test_many_is_in_order(void **state) {
    (void)state;
    enum { N = 2500 };
    static float data[3][N], wanted[N];
    for (int i = 0; i < N; i++) {
        data[0][i] = 1e8f, data[1][i] = 1, data[2][i] = -1e8f + (float)i;
        wanted[i] = (data[0][i] + data[1][i]) + data[2][i];
    }
    clt_reduce_many(data[2], (const void *[]){data[0], data[1], data[2]}, 3, N, CLT_F32, CLT_REDUCE_SUM);
    assert_memory_equal(data[2], wanted, sizeof wanted);
    clt_reduce_many(data[0], (const void *[]){data[1]}, 1, N, CLT_F32, CLT_REDUCE_SUM);
    assert_memory_equal(data[0], data[1], sizeof data[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_widens),
        cmocka_unit_test(test_f16_narrows),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_halves_are_rounded_once),
        cmocka_unit_test(test_many_is_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
