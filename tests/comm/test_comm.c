/* The queue, waiting, the end of a group: over threads in one process, and a group of one. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/comm.h>

#include "runtime/base/thread.h"
#include "comm/local/local.h"

enum { RANKS = 3 };

typedef struct rank {
    clt_comm *comm;
    int index;
    void (*body)(clt_comm *comm, int rank);
    clt_thread thread;
} rank;

static void *run_body(void *argument) {
    rank *r = argument;
    r->body(r->comm, r->index);
    return NULL;
}

/* cmocka's asserts are for the main thread: the bodies abort. */
#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, clt_error_detail()); \
            abort();                                                                                 \
        }                                                                                            \
    } while (0)

static void with_ranks(void (*body)(clt_comm *, int), double timeout) {
    clt_comm *comms[RANKS];
    rank ranks[RANKS];
    assert_ok(clt_comm_create_local(comms, RANKS, timeout));
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (rank){.comm = comms[i], .index = i, .body = body};
        assert_ok(clt_thread_start(&ranks[i].thread, run_body, &ranks[i]));
    }
    for (int i = 0; i < RANKS; i++) clt_thread_join(ranks[i].thread);
    for (int i = 0; i < RANKS; i++) clt_comm_destroy(comms[i]);
}

/* ---- a group of one ---- */

static void test_one_rank(void **state) {
    (void)state;
    clt_comm *comm;
    clt_work *work;
    float data[3] = {1, 2, 3};
    size_t counts[1] = {3};
    assert_ok(clt_comm_create_self(&comm));
    assert_int_equal(clt_comm_rank(comm), 0);
    assert_int_equal(clt_comm_size(comm), 1);
    assert_ok(clt_comm_all_reduce(comm, data, 3, CLT_F32, CLT_REDUCE_SUM, NULL));
    assert_ok(clt_comm_reduce_scatter(comm, data, counts, CLT_F32, CLT_REDUCE_SUM, NULL));
    assert_ok(clt_comm_all_gather(comm, data, counts, CLT_F32, &work));
    assert_ok(clt_work_wait(work));
    assert_ok(clt_comm_broadcast(comm, data, 3, CLT_F32, 0, NULL));
    assert_ok(clt_comm_barrier(comm, NULL));
    assert_true(data[0] == 1 && data[2] == 3);
    assert_int_equal(clt_comm_get_stats(comm).operations, 5);
    assert_string_equal(clt_comm_algorithm(comm, 100), "self");
    clt_comm_destroy(comm);
    clt_comm_destroy(NULL);
}

static void test_arguments(void **state) {
    (void)state;
    clt_comm *comm;
    clt_work *work = (clt_work *)&comm;
    float data[2] = {1, 2};
    size_t huge[1] = {SIZE_MAX / 2};
    assert_ok(clt_comm_create_self(&comm));
    assert_status(clt_comm_all_reduce(NULL, data, 2, CLT_F32, CLT_REDUCE_SUM, NULL), CLT_E_INVALID);
    assert_status(clt_comm_all_reduce(comm, NULL, 2, CLT_F32, CLT_REDUCE_SUM, &work), CLT_E_INVALID);
    assert_null(work);
    assert_status(clt_comm_all_reduce(comm, data, 2, (clt_dtype)99, CLT_REDUCE_SUM, NULL), CLT_E_DTYPE);
    assert_status(clt_comm_all_reduce(comm, data, 2, CLT_F32, (clt_reduction)9, NULL), CLT_E_INVALID);
    assert_status(clt_comm_all_reduce(comm, data, SIZE_MAX / 2, CLT_F32, CLT_REDUCE_SUM, NULL), CLT_E_INVALID);
    assert_status(clt_comm_all_gather(comm, data, NULL, CLT_F32, NULL), CLT_E_INVALID);
    assert_status(clt_comm_all_gather(comm, data, huge, CLT_F32, NULL), CLT_E_INVALID);
    assert_status(clt_comm_broadcast(comm, data, 2, CLT_F32, 1, NULL), CLT_E_INVALID);
    assert_detail("no rank 1");
    assert_status(clt_comm_broadcast(comm, data, 2, CLT_F32, -1, NULL), CLT_E_INVALID);
    assert_status(clt_comm_send(comm, data, 2, CLT_F32, 0, 7, NULL), CLT_E_INVALID);
    assert_status(clt_work_wait(NULL), CLT_E_INVALID);
    assert_ok(clt_comm_all_reduce(comm, NULL, 0, CLT_F32, CLT_REDUCE_SUM, NULL));
    assert_ok(clt_comm_state(comm));
    clt_comm_destroy(comm);
}

static void test_nothing(void **state) {
    (void)state;
    clt_store *store = NULL;
    clt_comm_options options = {.store = "tcp://127.0.0.1:0", .job = "nothing", .security = CLT_SECURITY_NONE};
    char value[CLT_STORE_TEXT_BYTES];
    assert_int_equal(clt_comm_rank(NULL), 0);
    assert_int_equal(clt_comm_size(NULL), 1);
    assert_int_equal(clt_comm_generation(NULL), 0);
    assert_int_equal(clt_comm_get_stats(NULL).operations, 0);
    assert_string_equal(clt_comm_algorithm(NULL, 4), "none");
    assert_null(clt_store_url(NULL));
    assert_status(clt_store_open(NULL, &options, true), CLT_E_INVALID);
    assert_status(clt_store_open(&store, NULL, true), CLT_E_INVALID);
    assert_ok(clt_store_open(&store, &options, true));
    assert_status(clt_store_set(NULL, "a", "b", 1), CLT_E_INVALID);
    assert_status(clt_store_set(store, NULL, "b", 1), CLT_E_INVALID);
    assert_status(clt_store_set(store, "a", NULL, 1), CLT_E_INVALID);
    assert_status(clt_store_set_once(NULL, "a", "b", value, 1), CLT_E_INVALID);
    assert_status(clt_store_set_once(store, NULL, "b", value, 1), CLT_E_INVALID);
    assert_status(clt_store_set_once(store, "a", NULL, value, 1), CLT_E_INVALID);
    assert_status(clt_store_set_once(store, "a", "b", NULL, 1), CLT_E_INVALID);
    assert_status(clt_store_get(NULL, "a", value, 0), CLT_E_INVALID);
    assert_status(clt_store_get(store, NULL, value, 0), CLT_E_INVALID);
    assert_status(clt_store_get(store, "a", NULL, 0), CLT_E_INVALID);
    clt_store_close(store);
}

static void test_failures_have_names(void **state) {
    (void)state;
    clt_comm *comm;
    assert_ok(clt_comm_create_self(&comm));
    clt_comm_fail(comm, (clt_status)77, NULL);
    assert_status(clt_comm_state(comm), CLT_E_STATE);
    assert_detail("CLT_E_STATE");
    clt_comm_destroy(comm);
}

/* ---- operations between threads ---- */

static void all_operations(clt_comm *comm, int r) {
    float sum[4] = {(float)r, 1, 2, 3};
    CHECK(clt_comm_all_reduce(comm, sum, 4, CLT_F32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    CHECK(sum[0] == 3 && sum[1] == 3 && sum[3] == 9);
    int32_t most[2] = {r, -r};
    CHECK(clt_comm_all_reduce(comm, most, 2, CLT_I32, CLT_REDUCE_MAX, NULL) == CLT_OK);
    CHECK(most[0] == 2 && most[1] == 0);
    uint8_t least[2] = {(uint8_t)(5 + r), (uint8_t)(9 - r)};
    CHECK(clt_comm_all_reduce(comm, least, 2, CLT_U8, CLT_REDUCE_MIN, NULL) == CLT_OK);
    CHECK(least[0] == 5 && least[1] == 7);

    size_t counts[RANKS] = {2, 0, 1};
    int32_t parts[3] = {0, 0, 0};
    if (r == 0) parts[0] = 10, parts[1] = 11;
    if (r == 2) parts[2] = 12;
    CHECK(clt_comm_all_gather(comm, parts, counts, CLT_I32, NULL) == CLT_OK);
    CHECK(parts[0] == 10 && parts[1] == 11 && parts[2] == 12);
    CHECK(clt_comm_reduce_scatter(comm, parts, counts, CLT_I32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    if (r == 0) CHECK(parts[0] == 30 && parts[1] == 33);
    if (r == 2) CHECK(parts[2] == 36);

    double word = r == 1 ? 3.25 : 0;
    CHECK(clt_comm_broadcast(comm, &word, sizeof word, CLT_U8, 1, NULL) == CLT_OK);
    CHECK(word == 3.25);
    CHECK(clt_comm_barrier(comm, NULL) == CLT_OK);
}

static void test_operations(void **state) {
    (void)state;
    with_ranks(all_operations, 0);
}

/* Started in one order and waited for in the other; numbers tell which is which. */
static void many_works(clt_comm *comm, int r) {
    enum { WORKS = 50 };
    int32_t values[WORKS];
    clt_work *works[WORKS];
    for (int i = 0; i < WORKS; i++) {
        values[i] = 100 * i + r;
        CHECK(clt_comm_all_reduce(comm, &values[i], 1, CLT_I32, CLT_REDUCE_SUM, &works[i]) == CLT_OK);
    }
    int32_t last = r;
    CHECK(clt_comm_all_reduce(comm, &last, 1, CLT_I32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    for (int i = 0; i < WORKS; i++) CHECK(clt_work_done(works[i])); /* they were before it */
    for (int i = WORKS - 1; i >= 0; i--) CHECK(clt_work_wait(works[i]) == CLT_OK);
    for (int i = 0; i < WORKS; i++) CHECK(values[i] == 300 * i + 3);
    CHECK(last == 3);
    CHECK(clt_comm_get_stats(comm).operations == WORKS + 1);
}

static void test_works_in_order(void **state) {
    (void)state;
    with_ranks(many_works, 0);
}

/* Both receive before they send: messages must not wait for each other. */
static void messages(clt_comm *comm, int r) {
    int next = (r + 1) % RANKS, before = (r + RANKS - 1) % RANKS;
    int32_t out[2] = {10 * r, 10 * r + 1}, in[2] = {-1, -1};
    clt_work *works[4];
    CHECK(clt_comm_receive(comm, &in[1], 1, CLT_I32, before, 6, &works[0]) == CLT_OK);
    CHECK(clt_comm_receive(comm, &in[0], 1, CLT_I32, before, 5, &works[1]) == CLT_OK);
    CHECK(clt_comm_send(comm, &out[0], 1, CLT_I32, next, 5, &works[2]) == CLT_OK);
    CHECK(clt_comm_send(comm, &out[1], 1, CLT_I32, next, 6, &works[3]) == CLT_OK);
    CHECK(clt_comm_barrier(comm, NULL) == CLT_OK); /* others go on meanwhile */
    for (int i = 0; i < 4; i++) CHECK(clt_work_wait(works[i]) == CLT_OK);
    CHECK(in[0] == 10 * before && in[1] == 10 * before + 1);
}

static void test_messages(void **state) {
    (void)state;
    with_ranks(messages, 0);
}

/* ---- faults ---- */

static void mismatch(clt_comm *comm, int r) {
    float data[4] = {0};
    clt_status status = clt_comm_all_reduce(comm, data, r == 1 ? 3 : 4, CLT_F32, CLT_REDUCE_SUM, NULL);
    CHECK(status == CLT_E_MISMATCH);
    CHECK(strstr(clt_error_detail(), "of 4 f32") && strstr(clt_error_detail(), "of 3 f32"));
    CHECK(clt_comm_barrier(comm, NULL) == CLT_E_MISMATCH); /* it has ended for good */
    CHECK(clt_comm_state(comm) == CLT_E_MISMATCH);
}

static void test_mismatch(void **state) {
    (void)state;
    with_ranks(mismatch, 0);
}

static void one_is_missing(clt_comm *comm, int r) {
    if (r == 1) return;
    clt_status status = clt_comm_barrier(comm, NULL);
    CHECK(status == CLT_E_TIMEOUT || status == CLT_E_PEER); /* the own deadline, or the other's news of it */
    CHECK(strstr(clt_error_detail(), "barrier: not done within 0.1 s: waited for rank") && strstr(clt_error_detail(), " 1")); /* and for another one that is late, too */
}

static void test_timeout(void **state) {
    (void)state;
    with_ranks(one_is_missing, 0.1);
}

static void message_nobody_takes(clt_comm *comm, int r) {
    int32_t value = 1;
    if (r == 0) {
        CHECK(clt_comm_send(comm, &value, 1, CLT_I32, 1, 3, NULL) == CLT_E_TIMEOUT);
        CHECK(strstr(clt_error_detail(), "send of 1 i32 to rank 1, tag 3"));
    }
}

static void test_message_timeout(void **state) {
    (void)state;
    with_ranks(message_nobody_takes, 0.1);
}

/* One thread waits on each rank; rank 2 aborts. */
static void abort_while_waiting(clt_comm *comm, int r) {
    int32_t value = 1;
    clt_work *barrier, *receive;
    if (r == 2) {
        clt_comm_abort(comm, "enough of this");
    } else {
        CHECK(clt_comm_receive(comm, &value, 1, CLT_I32, 2, 1, &receive) == CLT_OK || clt_comm_state(comm) != CLT_OK);
        if (receive) CHECK(clt_work_wait(receive) == CLT_E_ABORTED);
    }
    CHECK(clt_comm_barrier(comm, &barrier) == CLT_E_ABORTED);
    CHECK(!barrier);
    CHECK(strstr(clt_error_detail(), "enough of this"));
}

static void test_abort(void **state) {
    (void)state;
    with_ranks(abort_while_waiting, 0);
}

typedef struct helper {
    clt_comm *comm;
    clt_status status;
} helper;

static void *wait_in_barrier(void *argument) {
    helper *h = argument;
    h->status = clt_comm_barrier(h->comm, NULL);
    return NULL;
}

static void test_abort_of_a_blocked_thread(void **state) {
    (void)state;
    clt_comm *comms[2];
    assert_ok(clt_comm_create_local(comms, 2, 0));
    helper h = {.comm = comms[0]};
    clt_thread thread;
    assert_ok(clt_thread_start(&thread, wait_in_barrier, &h));
    while (clt_comm_get_stats(comms[0]).operations == 0 && clt_comm_state(comms[0]) == CLT_OK) {
        clt_comm_abort(comms[0], "by another thread"); /* before or while it waits */
    }
    clt_thread_join(thread);
    assert_int_equal(h.status, CLT_E_ABORTED);
    assert_status(clt_comm_barrier(comms[1], NULL), CLT_E_ABORTED);
    assert_detail("rank 0: by another thread");
    clt_comm_destroy(comms[0]);
    clt_comm_destroy(comms[1]);
}

static void test_destroy_ends_works(void **state) {
    (void)state;
    clt_comm *comms[2];
    clt_work *works[3];
    int32_t value = 0;
    assert_ok(clt_comm_create_local(comms, 2, 0));
    assert_ok(clt_comm_receive(comms[0], &value, 1, CLT_I32, 1, 1, &works[0]));
    assert_ok(clt_comm_barrier(comms[0], &works[1]));
    assert_ok(clt_comm_barrier(comms[0], &works[2]));
    clt_comm_destroy(comms[0]);
    for (int i = 0; i < 3; i++) assert_status(clt_work_wait(works[i]), CLT_E_ABORTED);
    clt_comm_destroy(comms[1]);
}

static void survive(clt_comm *comm, int r) {
    int32_t value = r;
    clt_comm *rest;
    if (r == 1) {
        clt_local_lose(comm);
        CHECK(clt_comm_shrink(comm, &rest) == CLT_E_FENCED);
        return;
    }
    clt_status status;
    while ((status = clt_comm_all_reduce(comm, &value, 1, CLT_I32, CLT_REDUCE_SUM, NULL)) == CLT_OK) {}
    CHECK(status == CLT_E_PEER && strstr(clt_error_detail(), "rank 1 was lost"));
    CHECK(clt_comm_is_lost(comm, 1) && !clt_comm_is_lost(comm, 0));
    CHECK(clt_comm_shrink(comm, &rest) == CLT_OK);
    CHECK(clt_comm_size(rest) == 2 && clt_comm_rank(rest) == (r == 2) && clt_comm_generation(rest) == 1);
    value = r;
    CHECK(clt_comm_all_reduce(rest, &value, 1, CLT_I32, CLT_REDUCE_SUM, NULL) == CLT_OK);
    CHECK(value == 2);
    clt_comm_destroy(rest);
}

static void test_loss_and_shrink(void **state) {
    (void)state;
    with_ranks(survive, 0);
}

/* Nobody calls: the communicator's thread notices. */
static void test_state_without_operations(void **state) {
    (void)state;
    clt_comm *comms[2];
    assert_ok(clt_comm_create_local(comms, 2, 0));
    assert_ok(clt_comm_state(comms[0]));
    clt_local_lose(comms[1]);
    double until = clt_seconds() + 30;
    while (clt_comm_state(comms[0]) == CLT_OK && clt_seconds() < until) {}
    assert_status(clt_comm_state(comms[0]), CLT_E_PEER);
    assert_detail("rank 1 was lost");
    clt_comm_destroy(comms[0]);
    clt_comm_destroy(comms[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_failures_have_names),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_works_in_order),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_message_timeout),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_abort_of_a_blocked_thread),
        cmocka_unit_test(test_destroy_ends_works),
        cmocka_unit_test(test_loss_and_shrink),
        cmocka_unit_test(test_state_without_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
