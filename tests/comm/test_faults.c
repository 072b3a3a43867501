/* What goes wrong between processes: calls that differ, ranks that are late, abort, die, hang; and going on with who is left. */
#define _GNU_SOURCE /* kill, raise */
#include "tests/support.h"

#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "comm/algorithms/algorithms.h"
#include "comm/plugins/plugins.h"
#include "runtime/base/base.h"
#include "runtime/base/thread.h"
#include "tests/comm/jobs.h"

enum { MANY = 100000 };

static _Thread_local float data[MANY]; /* ranks may be threads */

static void nap(double seconds) {
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))}, NULL);
}

static void run(int ranks, void (*body)(clt_comm *, void *), void *argument, const clt_comm_options *options, int killed) {
    support_run_job(&(support_job){.ranks = ranks, .options = options, .body = body, .argument = argument, .killed = killed});
}

static void run_needing(unsigned needs, int ranks, void (*body)(clt_comm *, void *), void *argument, const clt_comm_options *options, int killed) {
    support_run_job(&(support_job){.ranks = ranks, .options = options, .body = body, .argument = argument, .killed = killed, .needs = needs});
}

static const clt_comm_options open_job = {.security = CLT_SECURITY_NONE};

/* Two hosts with two ranks each, which exchange what is large by a hierarchy. */
static void run_on_hosts(void (*body)(clt_comm *, void *), void *argument, const clt_comm_options *options, int killed) {
    support_run_job(&(support_job){.ranks = 4, .hosts = "abab", .options = options, .body = body, .argument = argument, .killed = killed});
}

/* Other engines do not name who is late, and say of messages what was called. */
static bool is_own(const clt_comm *comm) {
    return !strcmp(clt_comm_engine(comm), "cltrain");
}

/* ---- calls that differ: rank 1 does something else ---- */

static clt_status call_counts(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, odd ? 3 : 4, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_large_counts(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, odd ? MANY - 1 : MANY, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_small_and_large(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, odd ? 10 : MANY, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_reductions(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, 4, CLT_F32, odd ? CLT_REDUCE_MAX : CLT_REDUCE_SUM, NULL);
}

static clt_status call_dtypes(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, MANY / 2, odd ? CLT_I32 : CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_roots(clt_comm *comm, bool odd) {
    return clt_comm_broadcast(comm, data, MANY, CLT_F32, odd ? 1 : 0, NULL);
}

static clt_status call_small_roots(clt_comm *comm, bool odd) {
    return clt_comm_broadcast(comm, data, 5, CLT_F32, odd ? 1 : 0, NULL);
}

static clt_status call_parts(clt_comm *comm, bool odd) {
    size_t even[4] = {5, 5, 5, 5}, other[4] = {4, 6, 5, 5};
    return clt_comm_all_gather(comm, data, odd ? other : even, CLT_F32, NULL);
}

static clt_status call_kinds(clt_comm *comm, bool odd) {
    return odd ? clt_comm_barrier(comm, NULL) : clt_comm_all_reduce(comm, data, MANY, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_small_kinds(clt_comm *comm, bool odd) {
    return odd ? clt_comm_broadcast(comm, data, 4, CLT_F32, 2, NULL)
               : clt_comm_all_reduce(comm, data, 4, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status call_nothing(clt_comm *comm, bool odd) {
    return clt_comm_all_reduce(comm, data, odd ? 0 : 6, CLT_F32, CLT_REDUCE_SUM, NULL);
}

static clt_status (*const calls[])(clt_comm *, bool) = {
    call_counts, call_large_counts, call_small_and_large, call_reductions, call_dtypes,  call_roots,
    call_small_roots, call_parts,   call_kinds,           call_small_kinds, call_nothing,
};

/* Ranks whose neighbours agree with them may be done before they learn of it: then the next call fails. Or they learn of it in
 * the call before. */
static void differ(clt_comm *comm, void *argument) {
    clt_status status = clt_comm_barrier(comm, NULL); /* all have joined */
    if (status == CLT_OK) status = (*(clt_status(**)(clt_comm *, bool))argument)(comm, clt_comm_rank(comm) == 1);
    if (status == CLT_OK) status = clt_comm_barrier(comm, NULL);
    CHECK(status == CLT_E_MISMATCH);
    CHECK(strstr(clt_error_detail(), "rank 1"));
    CHECK(clt_comm_barrier(comm, NULL) == CLT_E_MISMATCH);
}

static void test_calls_that_differ(void **state) {
    (void)state;
    for (size_t i = 0; i < CLT_COUNT_OF(calls); i++) {
        for (int n = 2; n <= 4; n += 2)
            if (!(calls[i] == call_small_kinds && n == 2)) /* which needs a rank 2 */
                run(n, differ, (void *)&calls[i], &open_job, -1);
        run_on_hosts(differ, (void *)&calls[i], &open_job, -1);
    }
}

/* Rank 0 comes when the others' messages are there: what differs is found when its own begins, not while it waits. */
static void differ_late(clt_comm *comm, void *argument) {
    clt_status status = clt_comm_barrier(comm, NULL);
    if (clt_comm_rank(comm) == 0) nap(0.03);
    if (status == CLT_OK) status = (*(clt_status(**)(clt_comm *, bool))argument)(comm, clt_comm_rank(comm) == 1);
    if (status == CLT_OK) status = clt_comm_barrier(comm, NULL);
    CHECK(status == CLT_E_MISMATCH);
    CHECK(strstr(clt_error_detail(), "rank 1"));
}

static void test_calls_of_gloo_that_differ(void **state) {
    (void)state;
    static const char *const lists[] = {"gloo_ring", "gloo"};
    if (clt_algorithm_check_list("gloo_ring") < 0) skip(); /* built without */
    for (size_t k = 0; k < CLT_COUNT_OF(lists); k++) {
        const clt_comm_options options = {.security = CLT_SECURITY_NONE, .algorithms = lists[k]};
        for (size_t i = 0; i < CLT_COUNT_OF(calls); i++)
            if (calls[i] != call_small_kinds) run(2, differ_late, (void *)&calls[i], &options, -1);
    }
}

static void tell_both(clt_comm *comm, void *argument) {
    (void)argument;
    CHECK(call_large_counts(comm, clt_comm_rank(comm) == 1) == CLT_E_MISMATCH);
    CHECK(strstr(clt_error_detail(), clt_comm_rank(comm) == 1 ? "all_reduce sum of 99999 f32" : "all_reduce sum of 100000 f32"));
    CHECK(!strstr(clt_error_detail(), "message 1"));
}

static void test_what_differs_is_told(void **state) {
    (void)state;
    run(2, tell_both, NULL, &open_job, -1);
}

static void message_sizes(clt_comm *comm, void *argument) {
    (void)argument;
    clt_status status = clt_comm_rank(comm) == 0 ? clt_comm_send(comm, data, MANY, CLT_F32, 1, 1, NULL)
                                                 : clt_comm_receive(comm, data, 7, CLT_I32, 0, 1, NULL);
    CHECK(status == CLT_E_MISMATCH && strstr(clt_error_detail(), "7 i32") && strstr(clt_error_detail(), "100000 f32"));
    if (is_own(comm)) CHECK(strstr(clt_error_detail(), "message 0 of tag 1 from rank 0 to rank 1"));
}

static void test_messages_that_differ(void **state) {
    (void)state;
    run(2, message_sizes, NULL, &open_job, -1);
}

/* ---- words that come when a group has closed ---- */

static void await(const clt_mover *mover, clt_request *request) {
    double until = clt_seconds() + WATCHDOG_SECONDS;
    bool done = false;
    while (!done && clt_seconds() < until) CHECK(!mover->test(request, &done));
    CHECK(done);
}

/* A word from rank 1 to rank 0, or back. Returns what arrived, or was sent. */
static int say(const clt_mover *mover, void *group, bool sends, int peer, int word) {
    clt_request request;
    CHECK(!mover->message(group, sends, CLT_LANE_NEWS, &word, sizeof word, peer, 0, &request));
    await(mover, &request);
    return word;
}

static void test_late_words(void **state) {
    enum { FIRST, BESIDE, SECOND, GROUPS };
    const clt_mover *mover;
    void *groups[GROUPS];
    int rank, size;
    (void)state;
    if (!getenv("CLTRAIN_TEST_MPI")) skip();
    CHECK(clt_plugin_mover(&mover, "mpi") == CLT_OK);
    for (int i = FIRST; i < SECOND; i++) CHECK(!mover->open(&groups[i], &(clt_mover_options){.most_ranks = 4}, &rank, &size));
    if (rank == 1) {
        say(mover, groups[BESIDE], false, 0, 0); /* rank 0 has closed */
        say(mover, groups[FIRST], true, 0, 1);
    }
    mover->close(groups[FIRST], true);
    if (rank == 0) {
        say(mover, groups[BESIDE], true, 1, 0);
        say(mover, groups[BESIDE], false, 1, 0);
    } else if (rank == 1) say(mover, groups[BESIDE], true, 0, 0);
    CHECK(!mover->open(&groups[SECOND], &(clt_mover_options){.most_ranks = 4}, &rank, &size));
    if (rank == 1) say(mover, groups[SECOND], true, 0, 2);
    if (rank == 0) CHECK(say(mover, groups[SECOND], false, 1, 0) == 2);
    mover->close(groups[SECOND], true);
    mover->close(groups[BESIDE], true);
}

/* ---- late ---- */

/* Until the others have given up, however long that takes them. Other engines may not tell it: then well past the deadline of 0.3 s. */
static void await_deadline(clt_comm *comm) {
    double now = clt_seconds(), until = now + (is_own(comm) ? WATCHDOG_SECONDS : 3);
    while (clt_comm_state(comm) == CLT_OK && clt_seconds() < until) nap(0.01);
}

static void rank_1_is_late(clt_comm *comm, void *argument) {
    size_t count = *(size_t *)argument;
    if (clt_comm_rank(comm) == 1) await_deadline(comm);
    clt_status status = clt_comm_all_reduce(comm, data, count, CLT_F32, CLT_REDUCE_SUM, NULL);
    if (clt_comm_rank(comm) == 1) { /* of other engines its own deadline may come before the news */
        CHECK(status == CLT_E_PEER || (!is_own(comm) && status == CLT_E_TIMEOUT));
        return;
    }
    CHECK(status == CLT_E_TIMEOUT || status == CLT_E_PEER); /* the own deadline, or the news of another's */
    CHECK(strstr(clt_error_detail(), "not done within 0.3 s") && strstr(clt_error_detail(), "waited for rank"));
    if (clt_comm_size(comm) == 2 && is_own(comm)) CHECK(status == CLT_E_TIMEOUT && strstr(clt_error_detail(), "rank 1"));
    CHECK(clt_comm_state(comm) == status);
}

static void test_timeouts(void **state) {
    (void)state;
    clt_comm_options options = {.security = CLT_SECURITY_NONE, .timeout_seconds = 0.3};
    size_t counts[] = {1, MANY};
    for (int i = 0; i < 2; i++) {
        run(2, rank_1_is_late, &counts[i], &options, -1);
        run(4, rank_1_is_late, &counts[i], &options, -1);
        run_on_hosts(rank_1_is_late, &counts[i], &options, -1);
    }
}

static void nobody_receives(clt_comm *comm, void *argument) {
    (void)argument;
    if (clt_comm_rank(comm) == 1) await_deadline(comm);
    else {
        CHECK(clt_comm_send(comm, data, MANY, CLT_F32, 1, 77, NULL) == CLT_E_TIMEOUT);
        CHECK(strstr(clt_error_detail(), "send of 100000 f32 to rank 1, tag 77"));
    }
}

static void test_message_timeout(void **state) {
    (void)state;
    run(2, nobody_receives, NULL, &(clt_comm_options){.security = CLT_SECURITY_NONE, .timeout_seconds = 0.3}, -1);
}

/* ---- aborted ---- */

static void *abort_soon(void *comm) {
    nap(0.1);
    clt_comm_abort(comm, "somebody pulled the plug");
    return NULL;
}

static void abort_in_the_middle(clt_comm *comm, void *argument) {
    size_t count = *(size_t *)argument;
    clt_thread thread;
    clt_status status = CLT_OK;
    bool aborts = clt_comm_rank(comm) == 0;
    if (aborts) CHECK(clt_thread_start(&thread, abort_soon, comm) == CLT_OK);
    if (clt_comm_rank(comm) == 2) nap(0.5); /* so that the others wait */
    while (status == CLT_OK) status = clt_comm_all_reduce(comm, data, count, CLT_F32, CLT_REDUCE_MAX, NULL);
    CHECK(status == CLT_E_ABORTED);
    CHECK(strstr(clt_error_detail(), "somebody pulled the plug"));
    if (aborts) clt_thread_join(thread);
}

static void test_abort(void **state) {
    (void)state;
    size_t counts[] = {1, MANY};
    for (int i = 0; i < 2; i++) {
        run(3, abort_in_the_middle, &counts[i], &open_job, -1);
        run_on_hosts(abort_in_the_middle, &counts[i], &open_job, -1);
    }
}

/* ---- lost ---- */

static void check_survivors(clt_comm *comm, int lost) {
    clt_comm *rest;
    int n = clt_comm_size(comm);
    CHECK(clt_comm_is_lost(comm, lost));
    CHECK(clt_comm_shrink(comm, &rest) == CLT_OK);
    CHECK(clt_comm_size(rest) == n - 1 && clt_comm_generation(rest) == 1);
    CHECK(clt_comm_rank(rest) == clt_comm_rank(comm) - (clt_comm_rank(comm) > lost));
    float sums[3] = {1, 2, (float)clt_comm_rank(comm)};
    CHECK(clt_comm_all_reduce(rest, sums, 3, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    CHECK(sums[0] == (float)(n - 1) && sums[2] == (float)(n * (n - 1) / 2 - lost));
    for (int i = 0; i < MANY; i++) data[i] = 1;
    CHECK(clt_comm_all_reduce(rest, data, MANY, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    CHECK(data[0] == (float)(n - 1) && data[MANY - 1] == (float)(n - 1));
    clt_comm_destroy(rest);
}

static void rank_1_dies(clt_comm *comm, void *argument) {
    size_t count = *(size_t *)argument;
    clt_status status = CLT_OK;
    for (int i = 0; status == CLT_OK; i++) {
        if (clt_comm_rank(comm) == 1 && i == 20) raise(SIGKILL);
        status = clt_comm_all_reduce(comm, data, count, CLT_F32, CLT_REDUCE_MAX, NULL);
    }
    CHECK(status == CLT_E_PEER && strstr(clt_error_detail(), "rank 1 was lost"));
    if (clt_comm_abilities(comm) & CLT_CAN_SHRINK) check_survivors(comm, 1);
    else CHECK(clt_comm_is_lost(comm, 1));
}

static void test_death(void **state) {
    (void)state;
    size_t counts[] = {1, MANY};
    for (int i = 0; i < 2; i++) {
        run(3, rank_1_dies, &counts[i], &(clt_comm_options){.security = CLT_SECURITY_NONE, .heartbeat_seconds = FOREVER_SECONDS}, 1);
        run(4, rank_1_dies, &counts[i], &(clt_comm_options){.security = CLT_SECURITY_TLS, .heartbeat_seconds = FOREVER_SECONDS}, 1);
        run_on_hosts(rank_1_dies, &counts[i], &(clt_comm_options){.security = CLT_SECURITY_NONE, .heartbeat_seconds = FOREVER_SECONDS}, 1);
    }
}

/* Nobody is told, and no connection closes: the silence alone shows it. Woken up again, it is not let in. */
static void rank_0_stops(clt_comm *comm, void *argument) {
    (void)argument;
    int32_t self[1] = {getpid()}, all[3];
    size_t counts[3] = {1, 1, 1};
    all[clt_comm_rank(comm)] = self[0];
    CHECK(clt_comm_all_gather(comm, all, counts, CLT_I32, NULL) == CLT_OK);
    if (clt_comm_rank(comm) == 0) {
        clt_comm *rest;
        raise(SIGSTOP);
        clt_status late = CLT_OK; /* the first finds what the others sent in time */
        for (int i = 0; i < 2 && late == CLT_OK; i++) late = clt_comm_all_reduce(comm, data, 9, CLT_F32, CLT_REDUCE_SUM, NULL);
        CHECK(late == CLT_E_PEER);
        CHECK(clt_comm_shrink(comm, &rest) == CLT_E_FENCED && !rest);
        return;
    }
    clt_status status = clt_comm_all_reduce(comm, data, 9, CLT_F32, CLT_REDUCE_SUM, NULL);
    CHECK(status == CLT_E_PEER && strstr(clt_error_detail(), "rank 0 was lost"));
    check_survivors(comm, 0);
    kill(all[0], SIGCONT);
}

static void test_silence_and_fencing(void **state) {
    (void)state;
    clt_comm_options options = {.security = CLT_SECURITY_NONE, .heartbeat_seconds = 2};
    run_needing(SUPPORT_DEATHS | SUPPORT_SILENCE | SUPPORT_SURVIVORS, 3, rank_0_stops, NULL, &options, -1);
}

/* ---- more than one ---- */

static void *die_soon(void *seconds) {
    nap(*(double *)seconds);
    raise(SIGKILL);
    return NULL;
}

/* Goes on until a group of so many stands: others may be lost meanwhile. `comm` is still to be destroyed. */
static clt_status shrink_to(clt_comm *comm, int size) {
    clt_comm *group = comm, *rest = NULL;
    clt_status status;
    for (;;) {
        float sum = 1;
        CLT_TRY_GOTO(clt_comm_shrink(group, &rest));
        if (group != comm) clt_comm_destroy(group);
        group = rest;
        status = clt_comm_all_reduce(group, &sum, 1, CLT_F32, CLT_REDUCE_SUM, NULL);
        if (status == CLT_OK && sum == (float)size) break;
    }
fail:
    if (group != comm) clt_comm_destroy(group);
    return status;
}

/* Rank 1 dies, and rank 3 so long after it has heard of that: at once, or while all come together anew. */
static void two_die(clt_comm *comm, void *argument) {
    clt_thread thread;
    clt_status status = CLT_OK;
    for (int i = 0; status == CLT_OK; i++) {
        if (clt_comm_rank(comm) == 1 && i == 20) raise(SIGKILL);
        status = clt_comm_all_reduce(comm, data, 9, CLT_F32, CLT_REDUCE_MAX, NULL);
    }
    CHECK(status == CLT_E_PEER);
    if (clt_comm_rank(comm) == 3) CHECK(clt_thread_start(&thread, die_soon, argument) == CLT_OK);
    status = shrink_to(comm, 2);
    CHECK(status == CLT_OK);
}

static void test_second_death(void **state) {
    (void)state;
    clt_comm_options options = {.security = CLT_SECURITY_TLS, .connect_seconds = FOREVER_SECONDS};
    double after[] = {0, 0.003, 0.006, 0.01, 0.015, 0.025, 0.05};
    for (size_t i = 0; i < CLT_COUNT_OF(after); i++)
        support_run_job(&(support_job){.ranks = 4, .options = &options, .body = two_die,
                                       .argument = &after[i], .killed = 1, .killed_too = 3});
}

/* A barrier that all ranks have behind them when it returns on the doomed one: they tell it. */
static void meet_before_death(clt_comm *comm, int doomed) {
    int32_t word = 0;
    int rank = clt_comm_rank(comm);
    CHECK(clt_comm_barrier(comm, NULL) == CLT_OK);
    if (rank != doomed) CHECK(clt_comm_send(comm, &word, 1, CLT_I32, doomed, 0, NULL) == CLT_OK);
    for (int r = 0; rank == doomed && r < clt_comm_size(comm); r++)
        if (r != doomed) CHECK(clt_comm_receive(comm, &word, 1, CLT_I32, r, 0, NULL) == CLT_OK);
}

/* One dies while another hangs, which is known only when the group has ended. */
static void one_dies_one_hangs(clt_comm *comm, void *argument) {
    (void)argument;
    meet_before_death(comm, 1);
    if (clt_comm_rank(comm) == 1) raise(SIGKILL);
    if (clt_comm_rank(comm) == 2) raise(SIGSTOP);
    CHECK(clt_comm_barrier(comm, NULL) == CLT_E_PEER);
    CHECK(shrink_to(comm, 2) == CLT_OK);
}

static void test_death_and_silence(void **state) {
    (void)state;
    clt_comm_options options = {.security = CLT_SECURITY_NONE, .heartbeat_seconds = 2, .connect_seconds = FOREVER_SECONDS};
    support_run_job(&(support_job){.ranks = 4, .options = &options, .body = one_dies_one_hangs, .killed = 2, .killed_too = 1, .needs = SUPPORT_SILENCE | SUPPORT_SURVIVORS});
}

/* Rank 0 serves the store and dies: the others are told at once that they cannot go on, and why. */
static void server_dies(clt_comm *comm, void *argument) {
    clt_comm *rest;
    (void)argument;
    meet_before_death(comm, 0);
    if (clt_comm_rank(comm) == 0) raise(SIGKILL);
    CHECK(clt_comm_barrier(comm, NULL) == CLT_E_PEER);
    CHECK(clt_comm_shrink(comm, &rest) == CLT_E_NETWORK && strstr(clt_error_detail(), "was served by the job's rank 0"));
}

/* A port that was free just now. */
static int free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    close(listener);
    return ntohs(address.sin_port);
}

static void test_store_dies(void **state) {
    (void)state;
    char url[64];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", free_port());
    run(3, server_dies, NULL, &(clt_comm_options){.security = CLT_SECURITY_TLS, .store = url, .connect_seconds = FOREVER_SECONDS}, 0);
}

/* While nobody calls anything the beats go on, and a loss is noticed. */
static void idle_ranks(clt_comm *comm, void *argument) {
    (void)argument;
    nap(3);
    CHECK(clt_comm_state(comm) == CLT_OK);
    meet_before_death(comm, 1);
    if (clt_comm_rank(comm) == 1) raise(SIGKILL);
    double until = clt_seconds() + WATCHDOG_SECONDS;
    while (clt_comm_state(comm) == CLT_OK && clt_seconds() < until) nap(0.01);
    CHECK(clt_comm_state(comm) == CLT_E_PEER && clt_comm_is_lost(comm, 1));
}

static void test_idle(void **state) {
    (void)state;
    run(2, idle_ranks, NULL, &(clt_comm_options){.security = CLT_SECURITY_NONE, .heartbeat_seconds = 2}, 1);
}

/* ---- parts of a group ---- */

static void parts_that_differ(clt_comm *comm, void *argument) {
    clt_comm *half;
    int rank = clt_comm_rank(comm);
    float value = 1;
    (void)argument;
    CHECK(clt_comm_split(comm, rank % 2, &half) == CLT_OK);
    clt_status status = clt_comm_all_reduce(half, &value, 1, CLT_F32, rank == 2 ? CLT_REDUCE_MAX : CLT_REDUCE_SUM, NULL);
    if (rank % 2 == 0) CHECK(status == CLT_E_MISMATCH && strstr(clt_error_detail(), "rank 0 called all_reduce sum") && strstr(clt_error_detail(), "rank 2 all_reduce max"));
    status = clt_comm_barrier(comm, NULL); /* the whole has ended, too */
    CHECK(status == CLT_E_MISMATCH && clt_comm_state(half) == CLT_E_MISMATCH && clt_comm_barrier(half, NULL) == CLT_E_MISMATCH);
    clt_comm_destroy(half);
}

/* While an operation of a part is under way. */
static void parts_that_are_aborted(clt_comm *comm, void *argument) {
    clt_comm *half;
    clt_work *work;
    int rank = clt_comm_rank(comm);
    float value = 1;
    (void)argument;
    CHECK(clt_comm_split(comm, rank % 2, &half) == CLT_OK);
    for (int r = 1; r < clt_comm_size(comm) && !rank; r++) CHECK(clt_comm_receive(comm, &value, 1, CLT_F32, r, 3, NULL) == CLT_OK); /* all have split */
    if (rank) CHECK(clt_comm_send(comm, &value, 1, CLT_F32, 0, 3, NULL) == CLT_OK);
    if (rank == 0) CHECK(clt_comm_all_reduce(half, &value, 1, CLT_F32, CLT_REDUCE_SUM, &work) == CLT_OK);
    if (rank == 0) clt_comm_abort(half, "enough");
    if (rank == 0) CHECK(clt_work_wait(work) == CLT_E_ABORTED && strstr(clt_error_detail(), "enough"));
    CHECK(clt_comm_barrier(comm, NULL) == CLT_E_ABORTED);
    clt_comm_destroy(half);
}

static void test_parts(void **state) {
    (void)state;
    support_run_job(&(support_job){.ranks = 4, .body = parts_that_differ, .killed = -1});
    support_run_job(&(support_job){.ranks = 4, .body = parts_that_are_aborted, .killed = -1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_that_differ),
        cmocka_unit_test(test_calls_of_gloo_that_differ),
        cmocka_unit_test(test_what_differs_is_told),
        cmocka_unit_test(test_messages_that_differ),
        cmocka_unit_test(test_late_words),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_message_timeout),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_silence_and_fencing),
        cmocka_unit_test(test_second_death),
        cmocka_unit_test(test_death_and_silence),
        cmocka_unit_test(test_store_dies),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
