/* Schedules: each turn once and after what it needs, the bubbles that papers promise, and no more micro-batches in flight than they say. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/pipeline/schedule.h"

static clt_simulation simulate(clt_pipeline s, double forward, double backward, double weights, double send) {
    clt_simulation result;
    clt_stage_times *times = calloc((size_t)(s.ranks * s.chunks), sizeof *times);
    assert_non_null(times);
    for (int i = 0; i < s.ranks * s.chunks; i++) times[i] = (clt_stage_times){.seconds = {forward, backward, weights}, .send = send};
    assert_ok(clt_pipeline_simulate(&s, times, NULL, &result));
    free(times);
    return result;
}

/* Of a rank: each micro-batch's turns, once each, forward first and weights last; backward in the order of the micro-batches, in which gradients are added up. */
static void assert_complete(const clt_pipeline *s, int rank) {
    size_t length = clt_pipeline_length(s);
    int kinds = s->kind == CLT_PIPELINE_ZB_H1 ? 3 : 2, *done = calloc((size_t)(s->micros * s->chunks), sizeof *done), *last = calloc((size_t)s->chunks, sizeof *last);
    clt_turn *turns = calloc(length, sizeof *turns);
    assert_true(done && last && turns);
    clt_pipeline_turns(s, rank, turns);
    for (size_t i = 0; i < length; i++) {
        assert_in_range(turns[i].micro, 0, s->micros - 1);
        assert_in_range(turns[i].chunk, 0, s->chunks - 1);
        assert_int_equal(done[turns[i].micro * s->chunks + turns[i].chunk]++, turns[i].kind);
        if ((int)turns[i].kind + 1 == kinds) assert_int_equal(last[turns[i].chunk]++, turns[i].micro);
    }
    assert_int_equal(length, s->micros * s->chunks * kinds);
    for (int i = 0; i < s->micros * s->chunks; i++) assert_int_equal(done[i], kinds);
    free(done);
    free(last);
    free(turns);
}

static void every_turn_is_there_once(void **state) {
    for (int kind = 0; kind < CLT_PIPELINE_KINDS; kind++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int micros = 1; micros <= 12; micros++)
                for (int chunks = 1; chunks <= 3; chunks++) {
                    clt_pipeline s = {kind, ranks, micros, chunks};
                    if (clt_pipeline_check(&s) < 0) continue;
                    for (int r = 0; r < ranks; r++) assert_complete(&s, r);
                    double seconds = simulate(s, 1, 1, 1, 0).seconds;
                    assert_true(seconds >= 3 * micros * chunks);
                    assert_true(simulate(s, 1, 1, 1, 0.5).seconds >= seconds + (ranks - 1)); /* there and back */
                }
    (void)state;
}

/* (p - 1) / (m + p - 1), which is less with chunks; and a third of what 1F1B waits with turns of equal length. */
static void bubbles_are_those_of_the_papers(void **state) {
    for (int p = 2; p <= 8; p++)
        for (int m = p; m <= 4 * p; m += p) {
            double expected = (p - 1.0) / (m + p - 1.0);
            assert_float_equal(simulate((clt_pipeline){CLT_PIPELINE_GPIPE, p, m, 1}, 1, 1, 1, 0).bubble, expected, 1e-9);
            clt_simulation one = simulate((clt_pipeline){CLT_PIPELINE_1F1B, p, m, 1}, 1, 1, 1, 0);
            assert_float_equal(one.bubble, expected, 1e-9);
            for (int v = 2; v <= 3; v++)
                assert_float_equal(simulate((clt_pipeline){CLT_PIPELINE_INTERLEAVED, p, m, v}, 1, 1, 1, 0).bubble, (p - 1.0) / (v * m + p - 1.0), 1e-9);
            assert_float_equal(simulate((clt_pipeline){CLT_PIPELINE_GPIPE, p, m, 2}, 1, 1, 1, 0).bubble, (p - 1.0) / (2 * m + p - 1.0), 1e-9);
            clt_simulation zero = simulate((clt_pipeline){CLT_PIPELINE_ZB_H1, p, m, 1}, 1, 1, 1, 0);
            if (m >= 2 * p - 1) assert_float_equal(zero.seconds - 3 * m, p - 1, 1e-9);
            assert_true(zero.bubble < one.bubble / 2);
        }
    (void)state;
}

static void few_micro_batches_are_in_flight(void **state) {
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 20; m++) {
            assert_int_equal(simulate((clt_pipeline){CLT_PIPELINE_GPIPE, p, m, 1}, 1, 1, 1, 0).in_flight, m);
            assert_int_equal(simulate((clt_pipeline){CLT_PIPELINE_1F1B, p, m, 1}, 1, 1, 1, 0).in_flight, CLT_MIN(m, p));
            assert_int_equal(simulate((clt_pipeline){CLT_PIPELINE_ZB_H1, p, m, 1}, 1, 1, 1, 0).in_flight, CLT_MIN(m, p));
        }
    (void)state;
}

/* A stage that takes three times as long bounds the step: it is never idle once it has begun. */
static void the_slowest_stage_bounds_a_step(void **state) {
    clt_simulation result;
    clt_stage_times times[4] = {{{1, 1, 1}, 0}, {{3, 3, 3}, 0}, {{1, 1, 1}, 0}, {{1, 1, 1}, 0}};
    clt_pipeline s = {CLT_PIPELINE_1F1B, 4, 16, 1};
    clt_turn turns[4 * 32];
    assert_ok(clt_pipeline_simulate(&s, times, turns, &result));
    assert_true(result.seconds >= 16 * 9 && result.seconds <= 16 * 9 + 12);
    assert_float_equal(turns[0].begin, 0, 0);
    assert_float_equal(turns[32].begin, 1, 0); /* behind the first forward of the stage before */
    assert_float_equal(turns[32].seconds, 3, 0);
    (void)state;
}

static void what_is_no_pipeline_is_refused(void **state) {
    clt_stage_times times[8] = {0};
    clt_simulation result;
    assert_status(clt_pipeline_check(&(clt_pipeline){CLT_PIPELINE_1F1B, 0, 1, 1}), CLT_E_INVALID);
    assert_status(clt_pipeline_check(&(clt_pipeline){CLT_PIPELINE_1F1B, 1, 0, 1}), CLT_E_INVALID);
    assert_detail("0 micro-batches");
    assert_status(clt_pipeline_check(&(clt_pipeline){CLT_PIPELINE_ZB_H1, 2, 4, 2}), CLT_E_INVALID);
    assert_detail("zb-h1 has one chunk a stage, found 2");
    assert_status(clt_pipeline_simulate(&(clt_pipeline){CLT_PIPELINE_INTERLEAVED, 2, 5, 2}, times, NULL, &result), CLT_E_INVALID);
    assert_detail("a multiple of its 2 stages");
    (void)state;
}

static void the_public_functions_have_defaults_and_limits(void **state) {
    clt_simulation a, b;
    clt_stage_times times[8];
    for (int i = 0; i < 8; i++) times[i] = (clt_stage_times){{1, 1, 1}, 0.5};
    clt_pipeline_options o = {.stages = 4, .schedule = CLT_PIPELINE_INTERLEAVED};
    assert_int_equal(clt_simulate_turns(&o), 8 * 2 * 2);
    assert_ok(clt_simulate_pipeline(&o, times, NULL, &a));
    assert_ok(clt_pipeline_simulate(&(clt_pipeline){CLT_PIPELINE_INTERLEAVED, 4, 8, 2}, times, NULL, &b));
    assert_true(a.seconds == b.seconds && a.bubble == b.bubble && a.in_flight == b.in_flight);
    times[7].send = -1;
    assert_status(clt_simulate_pipeline(&o, times, NULL, &a), CLT_E_INVALID);
    assert_detail("times of stage 7");
    times[7].send = NAN;
    assert_status(clt_simulate_pipeline(&o, times, NULL, &a), CLT_E_INVALID);
    assert_status(clt_simulate_pipeline(NULL, times, NULL, &a), CLT_E_INVALID);
    assert_status(clt_simulate_pipeline(&o, NULL, NULL, &a), CLT_E_INVALID);
    const clt_pipeline_options wrong[] = {{.stages = 0}, {.stages = -1}, {.stages = 4, .microbatches = -2}, {.stages = 1 << 17}, {.stages = 1 << 16, .microbatches = 1 << 20},
                                          {.stages = 4, .chunks = 2}, {.stages = 4, .schedule = (clt_pipeline_schedule)9}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(clt_simulate_turns(&wrong[i]), 0);
        assert_status(clt_simulate_pipeline(&wrong[i], times, NULL, &a), CLT_E_INVALID);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_turn_is_there_once),        cmocka_unit_test(bubbles_are_those_of_the_papers), cmocka_unit_test(few_micro_batches_are_in_flight),
        cmocka_unit_test(the_slowest_stage_bounds_a_step), cmocka_unit_test(what_is_no_pipeline_is_refused),
        cmocka_unit_test(the_public_functions_have_defaults_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
