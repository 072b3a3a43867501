/* Conversions between f32 and the 16-bit types, against their definition. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "runtime/base/halves.h"

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

/* By arithmetic on doubles instead of bits: the nearest multiple of the last place, ties to even. */
static uint16_t rounded(float value, int digits, int least, int bias) {
    double size = fabs((double)value), most = ldexp(2, bias) - ldexp(1, bias - digits);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent = ilogb(size);
    if (size == 0) return sign;
    exponent = exponent < least ? least : exponent;
    double steps = nearbyint(ldexp(size, digits - exponent)), nearest = ldexp(steps, exponent - digits);
    if (nearest > most) return (uint16_t)(sign | (2 * bias + 1) << digits);
    if (steps < ldexp(1, digits)) return (uint16_t)(sign | (int)steps); /* subnormal */
    exponent = ilogb(nearest);
    return (uint16_t)(sign | (exponent + bias) << digits | ((int)ldexp(nearest, digits - exponent) & ((1 << digits) - 1)));
}

/* Floats of all magnitudes: their bits are drawn. */
static void test_random_floats(void **state) {
    enum { BLOCK = 4096, BLOCKS = 700 };
    static float values[BLOCK], back[BLOCK];
    static uint16_t f16[BLOCK], bf16[BLOCK];
    (void)state;
    uint32_t bits = 1;
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < BLOCK; i++) {
            bits = bits * 1664525u + 1013904223u; /* Numerical Recipes' ranqd1: a full period of 2^32 */
            /* Each second block has the magnitudes of f16. */
            values[i] = float_of(b % 2 ? bits : (bits & 0x8fffffff) | 0x30000000 | (bits >> 3 & 0x0f000000));
        }
        clt_float_narrow(f16, values, CLT_F16, BLOCK);
        clt_float_narrow(bf16, values, CLT_BF16, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            if (isnan(values[i])) {
                assert_true((f16[i] & 0x7fff) > 0x7c00 && (bf16[i] & 0x7fff) > 0x7f80);
                continue;
            }
            bool infinite = isinf(values[i]);
            uint16_t sign = signbit(values[i]) ? 0x8000 : 0;
            assert_int_equal(f16[i], infinite ? sign | 0x7c00 : rounded(values[i], 10, -14, 15));
            assert_int_equal(bf16[i], infinite ? sign | 0x7f80 : rounded(values[i], 7, -126, 127));
        }
        clt_float_narrow(back, values, CLT_F32, BLOCK);
        assert_memory_equal(back, values, sizeof back);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_widens),
        cmocka_unit_test(test_f16_narrows),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_random_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
