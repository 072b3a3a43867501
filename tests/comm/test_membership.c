/* Who belongs to the next generation: the store is a folder, the ranks are threads. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/rendezvous/rendezvous.h"
#include "runtime/base/thread.h"

enum { MOST = 8 };

typedef struct survivor {
    int rank, size;
    int64_t generation;
    bool lost[MOST];             /* silent from the beginning */
    clt_presence soon[MOST];     /* what is known `after` so many seconds */
    double after, begun, grace, late;
    clt_status status;
    int members[MOST], n_members;
    clt_thread thread;
} survivor;

static clt_rendezvous *open_store(void) {
    static char url[8300];
    snprintf(url, sizeof url, "file://%s", support_path("store"));
    clt_rendezvous *rendezvous;
    assert_ok(clt_rendezvous_open(&rendezvous, &(clt_rendezvous_options){.url = url, .job = "members", .connect_seconds = WATCHDOG_SECONDS}));
    return rendezvous;
}

static void put(const char *key, const char *value) {
    clt_rendezvous *rendezvous = open_store();
    assert_ok(clt_rendezvous_set(rendezvous, key, value, strlen(value), clt_seconds() + WATCHDOG_SECONDS));
    clt_rendezvous_close(rendezvous);
}

static clt_status watch(void *context, bool unreachable, clt_presence *ranks) {
    const survivor *s = context;
    (void)unreachable;
    for (int r = 0; r < s->size; r++) {
        ranks[r] = s->lost[r] ? CLT_SILENT : CLT_PRESENT;
        if (clt_seconds() >= s->begun + s->after && s->soon[r]) ranks[r] = s->soon[r];
    }
    return CLT_OK;
}

static void agree(survivor *s, clt_rendezvous *rendezvous) {
    s->begun = clt_seconds();
    const clt_membership m = {.generation = s->generation, .rank = s->rank, .size = s->size, .grace_seconds = s->grace,
                              .deadline = s->begun + WATCHDOG_SECONDS, .watch = watch, .context = s};
    s->status = clt_membership_agree(rendezvous, &m, s->members, &s->n_members);
}

static char store_url[8300];

static void *run(void *argument) {
    survivor *s = argument;
    struct timespec span = {(time_t)s->late, (long)((s->late - (double)(time_t)s->late) * 1e9)};
    nanosleep(&span, NULL);
    clt_rendezvous *rendezvous;
    s->status = clt_rendezvous_open(&rendezvous,
                                    &(clt_rendezvous_options){.url = store_url, .job = "members", .connect_seconds = WATCHDOG_SECONDS});
    if (s->status < 0) return NULL;
    agree(s, rendezvous);
    clt_rendezvous_close(rendezvous);
    return NULL;
}

static void run_all(survivor *all, int n) {
    snprintf(store_url, sizeof store_url, "file://%s", support_path("store"));
    for (int i = 0; i < n; i++) assert_ok(clt_thread_start(&all[i].thread, run, &all[i]));
    for (int i = 0; i < n; i++) clt_thread_join(all[i].thread);
}

static void assert_members(const survivor *s, const char *wanted) {
    if (s->status < 0) fail_msg("rank %d: %s", s->rank, clt_status_name(s->status));
    char text[64] = "";
    for (int i = 0; i < s->n_members; i++) sprintf(text + strlen(text), "%d ", s->members[i]);
    assert_string_equal(text, wanted);
}

/* All that are left come, and nobody waits for the dead. */
static void test_all_come(void **state) {
    (void)state;
    survivor all[] = {{.rank = 0, .size = 4, .generation = 1, .lost = {[2] = true}, .grace = FOREVER_SECONDS},
                      {.rank = 1, .size = 4, .generation = 1, .lost = {[2] = true}, .grace = FOREVER_SECONDS},
                      {.rank = 3, .size = 4, .generation = 1, .lost = {[2] = true}, .grace = FOREVER_SECONDS}};
    run_all(all, 3);
    for (int i = 0; i < 3; i++) assert_members(&all[i], "0 1 3 ");
}

/* One that is not known to be lost at first is found to be so, or to have left, while it is waited for. */
static void test_lost_meanwhile(void **state) {
    (void)state;
    static const clt_presence ways[] = {CLT_CLOSED, CLT_SILENT, CLT_LEFT};
    for (int i = 0; i < 3; i++) {
        survivor all[3];
        for (int r = 0; r < 3; r++)
            all[r] = (survivor){.rank = r, .size = 4, .generation = 50 + i, .soon = {[3] = ways[i]}, .after = 0.3, .grace = FOREVER_SECONDS};
        run_all(all, 3);
        for (int r = 0; r < 3; r++) assert_members(&all[r], "0 1 2 ");
    }
}

/* So is the one that decides. It had come: the group is formed in vain, rather than without somebody who lives. */
static void test_chief_dies_meanwhile(void **state) {
    (void)state;
    put("members/53/chief/0", "0");
    put("members/53/here/0", "3:0");
    survivor all[] = {{.rank = 1, .size = 3, .generation = 53, .soon = {CLT_CLOSED}, .after = 0.3, .grace = FOREVER_SECONDS},
                      {.rank = 2, .size = 3, .generation = 53, .soon = {CLT_CLOSED}, .after = 0.3, .grace = FOREVER_SECONDS}};
    run_all(all, 2);
    for (int i = 0; i < 2; i++) assert_members(&all[i], "0 1 2 ");
}

/* When most are lost, and their connections were closed, nobody doubts it for long. */
static void test_most_are_dead(void **state) {
    (void)state;
    survivor all[2];
    for (int i = 0; i < 2; i++) {
        all[i] = (survivor){.rank = 5 * i, .size = 6, .generation = 54, .grace = FOREVER_SECONDS, .late = 0.2 * i};
        for (int r = 1; r < 5; r++) all[i].soon[r] = CLT_CLOSED;
    }
    run_all(all, 2);
    for (int i = 0; i < 2; i++) assert_members(&all[i], "0 5 ");
}

static void test_again_and_again(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        survivor all[MOST];
        for (int i = 0; i < MOST; i++)
            all[i] = (survivor){.rank = i, .size = MOST, .generation = 100 + round, .grace = FOREVER_SECONDS};
        run_all(all, MOST);
        for (int i = 0; i < MOST; i++) assert_members(&all[i], "0 1 2 3 4 5 6 7 ");
    }
}

/* One that is not known to be lost, but does not come within the grace, is left out; when it comes, it hears so. */
static void test_late_rank_is_fenced(void **state) {
    (void)state;
    survivor all[] = {{.rank = 0, .size = 3, .generation = 2, .grace = 2},
                      {.rank = 1, .size = 3, .generation = 2, .grace = 2},
                      {.rank = 2, .size = 3, .generation = 2, .grace = 2}};
    run_all(all, 2);
    run_all(all + 2, 1);
    assert_members(&all[0], "0 1 ");
    assert_members(&all[1], "0 1 ");
    assert_int_equal(all[2].status, CLT_E_FENCED);
    clt_rendezvous *rendezvous = open_store();
    agree(&all[2], rendezvous); /* it may ask as often as it likes */
    assert_int_equal(all[2].status, CLT_E_FENCED);
    assert_detail("generation 2 was formed without rank 2");
    clt_rendezvous_close(rendezvous);
}

/* The first to say that it decides has died since: known to be lost, or hanging. */
static void test_dead_chief(void **state) {
    (void)state;
    put("members/3/chief/0", "0");
    survivor known[] = {{.rank = 1, .size = 3, .generation = 3, .lost = {true}, .grace = FOREVER_SECONDS},
                        {.rank = 2, .size = 3, .generation = 3, .lost = {true}, .grace = FOREVER_SECONDS}};
    run_all(known, 2);
    assert_members(&known[0], "1 2 ");
    assert_members(&known[1], "1 2 ");
    put("members/4/chief/0", "0");
    survivor silent[] = {{.rank = 1, .size = 3, .generation = 4, .grace = 1}, {.rank = 2, .size = 3, .generation = 4, .grace = 1}};
    run_all(silent, 2);
    assert_members(&silent[0], "1 2 ");
    assert_members(&silent[1], "1 2 ");
}

/* Who was cut off takes all others for lost and may be the first at the store: it does not get the group. */
static void test_cut_off_rank_comes_first(void **state) {
    (void)state;
    survivor all[] = {{.rank = 0, .size = 4, .generation = 5, .lost = {false, true, true, true}, .grace = 1.5},
                      {.rank = 1, .size = 4, .generation = 5, .lost = {true}, .grace = 1.5, .late = 0.2},
                      {.rank = 2, .size = 4, .generation = 5, .lost = {true}, .grace = 1.5, .late = 0.2},
                      {.rank = 3, .size = 4, .generation = 5, .lost = {true}, .grace = 1.5, .late = 0.2}};
    run_all(all, 4);
    assert_int_equal(all[0].status, CLT_E_FENCED);
    for (int i = 1; i < 4; i++) assert_members(&all[i], "1 2 3 ");
}

/* Two that cannot reach each other, with a third that reaches both: one of the two goes on. */
static void test_quarrel(void **state) {
    (void)state;
    survivor all[] = {{.rank = 0, .size = 3, .generation = 6, .lost = {[1] = true}, .grace = 1},
                      {.rank = 1, .size = 3, .generation = 6, .lost = {true}, .grace = 1},
                      {.rank = 2, .size = 3, .generation = 6, .grace = 1}};
    run_all(all, 3);
    int in = all[2].n_members;
    assert_int_equal(all[2].status, CLT_OK);
    assert_int_equal(in, 2);
    assert_int_equal((all[0].status == CLT_OK) + (all[1].status == CLT_OK), 1);
    assert_int_equal((all[0].status == CLT_E_FENCED) + (all[1].status == CLT_E_FENCED), 1);
}

static void test_one_rank(void **state) {
    (void)state;
    survivor alone[] = {{.rank = 0, .size = 1, .generation = 7, .grace = FOREVER_SECONDS}};
    run_all(alone, 1);
    assert_members(&alone[0], "0 ");
}

/* What the store holds is not believed. */
static void test_garbage_in_the_store(void **state) {
    (void)state;
    clt_rendezvous *rendezvous = open_store();
    static const char *const lists[] = {"", "3:", "3:g", "3:70", "4:7", "3:7\n", "-3:7", "99999999999999999999:7"};
    for (size_t i = 0; i < CLT_COUNT_OF(lists); i++) {
        survivor s = {.rank = 1, .size = 3, .generation = 20 + (int64_t)i, .grace = 0.1};
        char key[64];
        snprintf(key, sizeof key, "members/%d/list", (int)s.generation);
        put(key, lists[i]);
        agree(&s, rendezvous);
        assert_int_equal(s.status, CLT_E_FORMAT);
        assert_detail("is not a set of 3 ranks");
    }
    put("members/40/chief/0", "seven");
    put("members/40/chief/1", "99999999999999999999");
    put("members/40/here/0", "3:zzz");
    survivor s = {.rank = 1, .size = 3, .generation = 40, .lost = {[2] = true}, .grace = 0.1};
    agree(&s, rendezvous);
    assert_members(&s, "1 ");
    s.rank = 3;
    agree(&s, rendezvous);
    assert_int_equal(s.status, CLT_E_INVALID);
    clt_rendezvous_close(rendezvous);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_come),   cmocka_unit_test(test_again_and_again), cmocka_unit_test(test_late_rank_is_fenced),
        cmocka_unit_test(test_lost_meanwhile), cmocka_unit_test(test_chief_dies_meanwhile), cmocka_unit_test(test_most_are_dead),
        cmocka_unit_test(test_dead_chief), cmocka_unit_test(test_cut_off_rank_comes_first),
        cmocka_unit_test(test_quarrel),    cmocka_unit_test(test_one_rank),        cmocka_unit_test(test_garbage_in_the_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
