/* What is kept between forward and backward: against all cuts and modes of small graphs, and by running backward on paper. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/keep.h"

enum { MOST = 40, READS = 2 };

/* ---- graphs: who reads whom, in forward ---- */

typedef struct drawn {
    int n, reads[MOST][READS]; /* -1: an input */
    clt_keep_node nodes[MOST];
} drawn;

static drawn draw(clt_random *random, int n) {
    drawn d = {.n = n};
    for (int i = 0; i < n; i++) {
        clt_keep_node *node = &d.nodes[i];
        *node = (clt_keep_node){.bytes = clt_random_below(random, 8), .cost = 1 + (double)clt_random_below(random, 9), .last = i};
        node->cheap = clt_random_below(random, 3) == 0;
        node->fixed = clt_random_below(random, 10) == 0;
        node->saved = clt_random_below(random, 3) != 0;
        node->block = clt_random_below(random, 2) ? 1 + i / 6 : 0;
        if (node->cheap) node->cost /= 16;
        for (int k = 0; k < READS; k++) {
            int back = 1 + (int)clt_random_below(random, 3);
            d.reads[i][k] = i - back < 0 || (k > 0 && clt_random_below(random, 2)) ? -1 : i - back;
            if (d.reads[i][k] >= 0) d.nodes[d.reads[i][k]].last = i;
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        d.nodes[i].wanted |= d.nodes[i].saved;
        for (int k = 0; d.nodes[i].cheap && d.nodes[i].wanted && k < READS; k++)
            if (d.reads[i][k] >= 0) d.nodes[d.reads[i][k]].wanted = true;
    }
    return d;
}

/* ---- backward on paper ---- */

typedef struct bill {
    uint64_t kept;
    double cost;
} bill;

/* Makes node i available once more. */
static void make(const drawn *d, int i, bool *again, bool *needed, bill *b) {
    if (i < 0 || again[i]) return;
    if (d->nodes[i].keep) {
        if (!needed[i]) b->kept += d->nodes[i].bytes;
        needed[i] = true;
        return;
    }
    assert_false(d->nodes[i].fixed);
    again[i] = true;
    b->cost += d->nodes[i].cost;
    for (int k = 0; k < READS; k++) make(d, d->reads[i][k], again, needed, b);
}

static bill run_backward(const drawn *d) {
    bool again[MOST] = {false}, needed[MOST] = {false};
    bill b = {0, 0};
    for (int i = d->n - 1; i >= 0; i--)
        if (d->nodes[i].saved) make(d, i, again, needed, &b);
    return b;
}

/* ---- all that there is to choose from ---- */

enum { ALL, DEAR, NONE, MODES };

static bool kept_by(const clt_keep_node *node, int end, int mode) {
    return node->fixed || node->last >= end || (mode == ALL && node->saved) || (mode == DEAR && node->wanted && !node->cheap);
}

/* The least cost of forward from `begin` on, with `kept` bytes of before; a large number: there is none. */
static double least(const drawn *d, int begin, uint64_t kept, uint64_t budget) {
    double best = begin == d->n ? 0 : 1e9;
    for (int end = begin + 1; end <= d->n; end++)
        for (int mode = 0; mode < MODES; mode++) {
            uint64_t stage = 0, again = 0;
            double cost = 0;
            for (int i = begin; i < end; i++) {
                const clt_keep_node *node = &d->nodes[i];
                if (kept_by(node, end, mode)) stage += node->saved || node->wanted || node->last > i ? node->bytes : 0;
                else if (mode == NONE || (mode == DEAR && node->wanted)) {
                    cost += node->cost;
                    uint64_t held = node->saved ? node->bytes : 0;
                    again = mode == NONE ? again + held : again > held ? again : held;
                }
            }
            if (kept + stage + again > budget) continue;
            double rest = least(d, end, kept + stage, budget);
            if (cost + rest < best) best = cost + rest;
        }
    return best;
}

static void the_cheapest_is_found(void **state) {
    clt_random random;
    int found = 0, cheaper = 0;
    (void)state;
    clt_random_init(&random, 5, 0);
    for (int round = 0; round < 600; round++) {
        drawn d = draw(&random, 1 + (int)clt_random_below(&random, 7));
        uint64_t budget = clt_random_below(&random, 16);
        double want = least(&d, 0, 0, budget);
        bool fits;
        assert_ok(clt_keep_within(d.nodes, d.n, budget, &fits));
        assert_int_equal(fits, want < 1e9);
        if (!fits) continue;
        bill b = run_backward(&d);
        assert_true(b.kept <= budget);
        assert_true(b.cost <= want + 1e-9);
        found++;
        cheaper += b.cost > 0;
    }
    assert_true(found > 200 && cheaper > 30);
}

/* Where all fits, nothing is computed again. */
static void a_large_budget_keeps_all(void **state) {
    clt_random random;
    (void)state;
    clt_random_init(&random, 6, 0);
    for (int round = 0; round < 50; round++) {
        drawn d = draw(&random, MOST);
        bool fits;
        assert_ok(clt_keep_within(d.nodes, d.n, 8 * MOST, &fits));
        assert_true(fits && run_backward(&d).cost == 0);
    }
}

/* Less than the least is not to be had, and the budget is the more work the smaller it is. */
static void the_least_is_the_limit(void **state) {
    clt_random random;
    (void)state;
    clt_random_init(&random, 7, 0);
    for (int round = 0; round < 20; round++) {
        drawn d = draw(&random, MOST);
        bool fits;
        double before = -1;
        assert_ok(clt_keep_least(d.nodes, d.n));
        bill least_bill = run_backward(&d);
        for (uint64_t budget = 8 * MOST; budget >= 7; budget -= 7) {
            assert_ok(clt_keep_within(d.nodes, d.n, budget, &fits));
            if (!fits) {
                assert_true(budget < least_bill.kept + 8 * MOST / 8);
                break;
            }
            bill b = run_backward(&d);
            assert_true(b.kept <= budget);
            before = b.cost > before ? b.cost : before;
        }
        assert_true(before >= 0);
    }
}

static int first_of(const drawn *d, int block) {
    int i = 0;
    while (i < d->n && d->nodes[i].block < block) i++;
    return i;
}

static int last_of(const drawn *d, int block) {
    int i = d->n - 1;
    while (i > 0 && (!d->nodes[i].block || d->nodes[i].block > block)) i--;
    return i;
}

/* Of all blocks but the last nothing is kept but what later blocks read. */
static void blocks_are_stages(void **state) {
    clt_random random;
    (void)state;
    clt_random_init(&random, 8, 0);
    for (int round = 0; round < 50; round++) {
        drawn d = draw(&random, MOST);
        assert_ok(clt_keep_blocks(d.nodes, d.n));
        int last = 0;
        for (int i = 0; i < d.n; i++) last = d.nodes[i].block > last ? d.nodes[i].block : last;
        for (int i = 0; i < d.n; i++) {
            clt_keep_node *node = &d.nodes[i];
            if (node->block && node->block < last && !node->fixed && node->last < last_of(&d, node->block)) assert_false(node->keep);
            if (node->block && node->last >= first_of(&d, node->block + 1)) assert_true(node->keep);
            if (node->block == last && node->saved) assert_true(node->keep);
        }
        run_backward(&d);
    }
}

/* Where nodes are marked, they end the blocks, whatever their numbers say. */
static void marks_end_blocks(void **state) {
    clt_random random;
    (void)state;
    clt_random_init(&random, 9, 0);
    for (int round = 0; round < 50; round++) {
        drawn d = draw(&random, MOST);
        int end[MOST], last = MOST;
        for (int i = 0; i < MOST; i++) d.nodes[i].ends = i % 7 == 3 || clt_random_below(&random, 5) == 0;
        for (int i = MOST - 1; i >= 0; i--) end[i] = last = d.nodes[i].ends ? i + 1 : last;
        assert_ok(clt_keep_blocks(d.nodes, d.n));
        for (int i = 0; i < MOST; i++) {
            clt_keep_node *node = &d.nodes[i];
            assert_int_equal(node->keep, node->fixed || node->last >= end[i] || (end[i] == MOST && node->saved));
        }
        run_backward(&d);
    }
}

/* Of a chain of n layers stages may be the longer the fewer are before them: B + (B - 1) + ... = n, B being all that is there at once. */
static void a_chain_takes_its_root(void **state) {
    enum { N = 400 };
    static clt_keep_node nodes[N];
    (void)state;
    for (int i = 0; i < N; i++) nodes[i] = (clt_keep_node){.bytes = 1000, .cost = 1, .last = i + 1 < N ? i + 1 : i, .saved = true, .wanted = true};
    assert_ok(clt_keep_least(nodes, N));
    int kept = 0, stage = 0, most = 0;
    for (int i = 0; i < N; i++) {
        kept += nodes[i].keep;
        stage = nodes[i].keep ? 0 : stage + 1;
        if (kept + stage > most) most = kept + stage;
    }
    assert_true(most <= 31);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_is_found), cmocka_unit_test(a_large_budget_keeps_all), cmocka_unit_test(the_least_is_the_limit),
        cmocka_unit_test(blocks_are_stages),     cmocka_unit_test(marks_end_blocks),
        cmocka_unit_test(a_chain_takes_its_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
