/* Tokens drawn by their logits, against the probabilities that follow from the definitions. */
#include "tests/data/files.h"

#include <math.h>
#include <stdbool.h>

#include <cltrain/text.h>

enum { N = 6, DRAWS = 20000 };

static const float logits[N] = {0.5f, 2, -1, 2, 0, -3};

static void count(const clt_sampling_options *options, double share[N]) {
    for (int i = 0; i < N; i++) share[i] = 0;
    for (uint64_t step = 0; step < DRAWS; step++) {
        int32_t token = -1;
        assert_ok(clt_sample_token(logits, N, options, step, &token));
        assert_in_range(token, 0, N - 1);
        share[token] += 1.0 / DRAWS;
    }
}

/* Of the tokens of `kept`, at a temperature. Four standard deviations of 20,000 draws. */
static void expect_shares(clt_sampling_options options, const bool kept[N]) {
    double share[N], wanted[N], sum = 0;
    count(&options, share);
    for (int i = 0; i < N; i++) sum += wanted[i] = kept[i] ? exp((double)logits[i] / (double)options.temperature) : 0;
    for (int i = 0; i < N; i++) {
        double p = wanted[i] / sum, deviation = sqrt(p * (1 - p) / DRAWS);
        if (!(fabs(share[i] - p) <= 4 * deviation + 1e-9)) fail_msg("token %d: %g, not %g", i, share[i], p);
    }
}

static void draws_by_probability(void **state) {
    (void)state;
    static const bool all[N] = {true, true, true, true, true, true};
    expect_shares((clt_sampling_options){.temperature = 1}, all);
    expect_shares((clt_sampling_options){.temperature = 3, .seed = 8}, all);
    expect_shares((clt_sampling_options){.temperature = 1, .top_p = 1}, all);
    expect_shares((clt_sampling_options){.temperature = 1, .top_k = N + 3}, all);
}

static void leaves_the_unlikely_out(void **state) {
    (void)state;
    /* Of equal ones the first is likelier. */
    expect_shares((clt_sampling_options){.temperature = 1, .top_k = 3}, (const bool[N]){true, true, false, true});
    expect_shares((clt_sampling_options){.temperature = 1, .top_k = 1}, (const bool[N]){false, true});
    /* Probabilities: .095, .427, .021, .427, .058, .003. */
    expect_shares((clt_sampling_options){.temperature = 1, .top_p = 0.4f}, (const bool[N]){false, true});
    expect_shares((clt_sampling_options){.temperature = 1, .top_p = 0.5f}, (const bool[N]){false, true, false, true});
    expect_shares((clt_sampling_options){.temperature = 1, .top_p = 0.9f}, (const bool[N]){true, true, false, true});
    expect_shares((clt_sampling_options){.temperature = 1, .top_p = 0.001f}, (const bool[N]){false, true});
    /* top_p is of those that top_k leaves: .1 of three is more than the third has. */
    expect_shares((clt_sampling_options){.temperature = 1, .top_k = 3, .top_p = 0.89f}, (const bool[N]){false, true, false, true});
    /* At a high temperature the same share needs more of them. */
    expect_shares((clt_sampling_options){.temperature = 10, .top_p = 0.9f}, (const bool[N]){true, true, true, true, true, true});
}

static void is_the_same_each_time(void **state) {
    (void)state;
    clt_sampling_options options = {.temperature = 1, .seed = 3}, other = {.temperature = 1, .seed = 4};
    int different = 0;
    for (uint64_t step = 0; step < 100; step++) {
        int32_t a, b, c;
        assert_ok(clt_sample_token(logits, N, &options, step, &a));
        assert_ok(clt_sample_token(logits, N, &options, step, &b));
        assert_ok(clt_sample_token(logits, N, &other, step, &c));
        assert_int_equal(a, b);
        different += a != c;
    }
    assert_true(different > 20);
}

static void greedy_takes_the_first_of_the_largest(void **state) {
    (void)state;
    int32_t token;
    assert_ok(clt_sample_token(logits, N, &(clt_sampling_options){.top_k = 2}, 7, &token));
    assert_int_equal(token, 1);
    assert_ok(clt_sample_token(&logits[5], 1, &(clt_sampling_options){.temperature = 2}, 0, &token));
    assert_int_equal(token, 0);
    /* Logits of any size. */
    const float large[] = {-3e38f, 3e38f, 3e38f};
    assert_ok(clt_sample_token(large, 3, &(clt_sampling_options){.temperature = 0.01f, .top_p = 0.1f}, 0, &token));
    assert_int_equal(token, 1);
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    int32_t token;
    const float bad[] = {0, NAN, 1}, infinite[] = {0, INFINITY};
    const clt_sampling_options wrong[] = {{.temperature = -1}, {.temperature = NAN}, {.temperature = INFINITY}, {.top_k = -1}, {.top_p = -0.1f}, {.top_p = 1.1f}, {.top_p = NAN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_status(clt_sample_token(logits, N, &wrong[i], 0, &token), CLT_E_INVALID);
    assert_status(clt_sample_token(bad, 3, &(clt_sampling_options){0}, 0, &token), CLT_E_NONFINITE);
    assert_detail("the logit of token 1 is");
    assert_status(clt_sample_token(infinite, 2, &(clt_sampling_options){0}, 0, &token), CLT_E_NONFINITE);
    assert_status(clt_sample_token(logits, 0, &(clt_sampling_options){0}, 0, &token), CLT_E_INVALID);
    assert_status(clt_sample_token(NULL, 1, &(clt_sampling_options){0}, 0, &token), CLT_E_INVALID);
    assert_status(clt_sample_token(logits, 1, NULL, 0, &token), CLT_E_INVALID);
    assert_status(clt_sample_token(logits, 1, &(clt_sampling_options){0}, 0, NULL), CLT_E_INVALID);
}

static void survives_failing_memory(void **state) {
    (void)state;
    int32_t token;
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        watch_begin(at);
        status = clt_sample_token(logits, N, &(clt_sampling_options){.temperature = 1, .top_k = 2}, 0, &token);
        watch_end();
        assert_true(status == CLT_OK || status == CLT_E_NO_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_by_probability),
        cmocka_unit_test(leaves_the_unlikely_out),
        cmocka_unit_test(is_the_same_each_time),
        cmocka_unit_test(greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
