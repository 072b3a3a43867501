#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/data/indices.h"

/* Random123's kat_vectors, philox4x32 with 10 rounds: counter, key, result. */
static void known_answers(void **state) {
    static const struct {
        uint64_t counter, stream, seed;
        uint32_t words[4];
    } answers[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88,
         0x0370734413198a2e,
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int a = 0; a < 3; a++) {
        clt_random random;
        clt_random_init(&random, answers[a].seed, answers[a].stream);
        random.counter = answers[a].counter;
        for (int i = 0; i < 4; i++) assert_int_equal(clt_random_u32(&random), answers[a].words[i]);
    }
    (void)state;
}

static void streams_and_seeds_differ(void **state) {
    clt_random a, b, c, again;
    clt_random_init(&a, 7, 0);
    clt_random_init(&b, 7, 1);
    clt_random_init(&c, 8, 0);
    clt_random_init(&again, 7, 0);
    int same_stream = 0, same_seed = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t value = clt_random_u32(&a);
        same_stream += value == clt_random_u32(&b);
        same_seed += value == clt_random_u32(&c);
        assert_int_equal(value, clt_random_u32(&again));
    }
    assert_true(same_stream < 3 && same_seed < 3);
    (void)state;
}

static void uniform_is_in_its_interval(void **state) {
    clt_random random;
    clt_random_init(&random, 1, 2);
    double sum = 0, square = 0;
    enum { N = 200000 };
    for (int i = 0; i < N; i++) {
        double u = clt_random_uniform(&random);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square += u * u;
    }
    /* 5 standard errors: 5 sqrt(1/12 / N), 5 sqrt(4/45 / N) */
    assert_true(fabs(sum / N - 0.5) < 0.0033);
    assert_true(fabs(square / N - 1.0 / 3) < 0.0034);
    (void)state;
}

/* The library has its own logarithm and cosine: the C library's must agree to rounding. */
static void normal_is_box_muller(void **state) {
    clt_random normal, uniform;
    clt_random_init(&normal, 3, 4);
    clt_random_init(&uniform, 3, 4);
    for (int i = 0; i < 100000; i++) {
        double radius = sqrt(-2 * log(1 - clt_random_uniform(&uniform)));
        double angle = 2 * acos(-1) * clt_random_uniform(&uniform);
        assert_true(fabs(clt_random_normal(&normal) - radius * cos(angle)) < 1e-14);
        assert_true(fabs(clt_random_normal(&normal) - radius * sin(angle)) < 1e-14);
    }
    (void)state;
}

static void normal_has_its_moments(void **state) {
    clt_random random;
    clt_random_init(&random, 5, 0);
    double moments[5] = {0};
    enum { N = 400000 };
    for (int i = 0; i < N; i++) {
        double x = clt_random_normal(&random);
        for (int k = 1; k <= 4; k++) moments[k] += pow(x, k) / N;
    }
    /* 5 standard errors: variances of x, x^2, x^3, x^4 are 1, 2, 15, 96 */
    assert_true(fabs(moments[1]) < 0.008);
    assert_true(fabs(moments[2] - 1) < 0.0112);
    assert_true(fabs(moments[3]) < 0.031);
    assert_true(fabs(moments[4] - 3) < 0.078);
    (void)state;
}

/* 3 x 2^62 does not divide 2^64: taken modulo, the lower third would be twice as frequent. */
static void below_has_no_modulo_bias(void **state) {
    clt_random random;
    clt_random_init(&random, 9, 0);
    uint64_t n = (uint64_t)3 << 62;
    int third[3] = {0};
    for (int i = 0; i < 30000; i++) {
        uint64_t value = clt_random_below(&random, n);
        assert_true(value < n);
        third[value >> 62]++;
    }
    for (int i = 0; i < 3; i++) assert_in_range(third[i], 9592, 10408); /* 5 standard deviations */
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) count[clt_random_below(&random, 7)]++;
    for (int i = 0; i < 7; i++) assert_in_range(count[i], 9537, 10463);
    assert_int_equal(clt_random_below(&random, 0), 0);
    assert_int_equal(clt_random_below(&random, 1), 0);
    (void)state;
}

static void permutations_are_uniform(void **state) {
    clt_random random;
    clt_random_init(&random, 11, 0);
    int count[27] = {0};
    for (int i = 0; i < 60000; i++) {
        int64_t order[3];
        clt_indices_permute(&(clt_indices){.wide = order}, 3, &random);
        assert_int_equal(1 << order[0] | 1 << order[1] | 1 << order[2], 7);
        count[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    int seen = 0;
    for (int i = 0; i < 27; i++) {
        if (!count[i]) continue;
        seen++;
        assert_in_range(count[i], 9543, 10457);
    }
    assert_int_equal(seen, 6);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(streams_and_seeds_differ),
        cmocka_unit_test(uniform_is_in_its_interval),
        cmocka_unit_test(normal_is_box_muller),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(below_has_no_modulo_bias),
        cmocka_unit_test(permutations_are_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
