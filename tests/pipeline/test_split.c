/* Splits: the best of all that there are, on random models, unlike devices and small memories. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/pipeline/split.h"

enum { MOST_PIECES = 10, MOST_STAGES = 4 };

/* All cuts are tried. */
typedef struct brute {
    const clt_pipeline_split *split;
    int cuts[MOST_STAGES + 1];
    double slowest, sent;
} brute;

static double seconds_of(const clt_pipeline_split *s, const int *cuts, double *sent) {
    double slowest = 0;
    *sent = 0;
    for (int stage = 0; stage < s->stages; stage++) {
        double own = 0, crossing = (cuts[stage] ? s->send[cuts[stage]] : 0) + (cuts[stage + 1] < s->pieces ? s->send[cuts[stage + 1]] : 0);
        uint64_t bytes = 0;
        for (int i = cuts[stage]; i < cuts[stage + 1]; i++) {
            own += s->seconds[stage * s->pieces + i];
            if (s->kept) bytes += s->kept[i] + s->activations[i] * (uint64_t)s->in_flight[stage];
        }
        if (s->kept && bytes > s->limits[stage]) return INFINITY;
        slowest = fmax(slowest, own + crossing);
        *sent += crossing;
    }
    return slowest;
}

static void try_all(brute *b, int stage) {
    const clt_pipeline_split *s = b->split;
    double sent;
    if (stage == s->stages) {
        b->cuts[stage] = s->pieces;
        double slowest = seconds_of(s, b->cuts, &sent);
        if (slowest > b->slowest || (slowest == b->slowest && sent >= b->sent)) return;
        b->slowest = slowest;
        b->sent = sent;
        return;
    }
    for (b->cuts[stage] = b->cuts[stage - 1] + 1; b->cuts[stage] <= s->pieces - s->stages + stage; b->cuts[stage]++) try_all(b, stage + 1);
}

static uint64_t state_of_random = 1;
static int random_below(int n) {
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (int)((state_of_random >> 33) % (uint64_t)n);
}

/* Whole numbers, whose sums are exact in any order. */
static void the_best_of_all_is_found(void **state) {
    int found = 0, none = 0;
    for (int round = 0; round < 1000; round++) {
        double seconds[MOST_STAGES * MOST_PIECES], send[MOST_PIECES + 1], slowest, sent;
        uint64_t kept[MOST_PIECES], activations[MOST_PIECES], limits[MOST_STAGES];
        int stages = 1 + random_below(MOST_STAGES), pieces = stages + random_below(MOST_PIECES - stages + 1), in_flight[MOST_STAGES], cuts[MOST_STAGES + 1];
        bool limited = random_below(2);
        for (int i = 0; i < stages * pieces; i++) seconds[i] = random_below(20);
        for (int i = 0; i <= pieces; i++) send[i] = random_below(8);
        for (int i = 0; i < pieces; i++) kept[i] = (uint64_t)random_below(10), activations[i] = (uint64_t)random_below(5);
        for (int i = 0; i < stages; i++) limits[i] = (uint64_t)random_below(60), in_flight[i] = stages - i;
        clt_pipeline_split split = {.pieces = pieces, .stages = stages, .seconds = seconds, .send = send, .kept = limited ? kept : NULL, .activations = activations, .in_flight = in_flight, .limits = limits};
        brute b = {.split = &split, .slowest = INFINITY, .sent = INFINITY};
        try_all(&b, 1);
        clt_status status = clt_pipeline_find_split(&split, cuts, &slowest);
        if (isinf(b.slowest)) {
            none++;
            assert_status(status, CLT_E_DEVICE_MEMORY);
            continue;
        }
        found++;
        assert_ok(status);
        assert_true(slowest == b.slowest);
        assert_int_equal(cuts[0], 0);
        assert_int_equal(cuts[stages], pieces);
        for (int i = 0; i < stages; i++) assert_true(cuts[i] < cuts[i + 1]);
        assert_true(seconds_of(&split, cuts, &sent) == b.slowest);
        assert_true(sent == b.sent);
    }
    assert_true(found > 500 && none > 50);
    (void)state;
}

/* With a device that is three times slower it gets a third of what the other does, but for one piece. */
static void unlike_devices_get_unlike_parts(void **state) {
    enum { N = 40 };
    double seconds[2 * N], send[N + 1] = {0}, slowest;
    int cuts[3];
    for (int i = 0; i < N; i++) seconds[i] = 3, seconds[N + i] = 1;
    assert_ok(clt_pipeline_find_split(&(clt_pipeline_split){.pieces = N, .stages = 2, .seconds = seconds, .send = send}, cuts, &slowest));
    assert_int_equal(cuts[1], N / 4);
    assert_true(slowest == 30);
    (void)state;
}

static void what_cannot_be_split_is_refused(void **state) {
    double seconds[4] = {0}, send[3] = {0}, slowest;
    uint64_t kept[2] = {5, 5}, activations[2] = {1, 1}, limits[2] = {6, 5};
    int cuts[5], in_flight[2] = {1, 1};
    assert_status(clt_pipeline_find_split(&(clt_pipeline_split){.pieces = 2, .stages = 3, .seconds = seconds, .send = send}, cuts, &slowest), CLT_E_INVALID);
    assert_detail("3 stages of a model with 2 pieces");
    clt_pipeline_split small = {.pieces = 2, .stages = 2, .seconds = seconds, .send = send, .kept = kept, .activations = activations, .in_flight = in_flight, .limits = limits};
    assert_status(clt_pipeline_find_split(&small, cuts, &slowest), CLT_E_DEVICE_MEMORY);
    assert_detail("the model keeps 10 bytes and 2 more");
    limits[1] = 6;
    assert_ok(clt_pipeline_find_split(&small, cuts, &slowest));
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_all_is_found),
        cmocka_unit_test(unlike_devices_get_unlike_parts),
        cmocka_unit_test(what_cannot_be_split_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
