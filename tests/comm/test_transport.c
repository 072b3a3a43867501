#define _GNU_SOURCE
#include "tests/support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/comm/ranks.h"

static const size_t sizes[] = {
    0, 1, 3, 64, 4097, CLT_EAGER_BYTES, CLT_EAGER_BYTES + 1, 100001, CLT_FRAME_BYTES, (1 << 20) + 7};
enum { SIZES = CLT_COUNT_OF(sizes) };

static uint8_t byte_of(size_t i, int from, int to, uint64_t slot) {
    return (uint8_t)((i * 2654435761u >> 15) + (unsigned)from * 31u + (unsigned)to * 7u + slot * 13u);
}

static void *make_data(size_t bytes, int from, int to, uint64_t slot) {
    uint8_t *data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++) data[i] = byte_of(i, from, to, slot);
    return data;
}

static bool is_data(const uint8_t *data, size_t bytes, int from, int to, uint64_t slot) {
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != byte_of(i, from, to, slot)) return false;
    return true;
}

/* ---- everybody with everybody, all sizes, both ways at once ---- */

static void exchange_all(rank_thread *self) {
    enum { MOST = 2 * SIZES * RANKS_MOST };
    static _Thread_local clt_transfer transfers[MOST];
    memset(transfers, 0, sizeof transfers);
    size_t n = 0;
    for (int peer = 0; peer < self->size; peer++) {
        for (size_t k = 0; k < SIZES && peer != self->rank; k++) {
            /* Some ask before, some after. */
            clt_transfer *send = &transfers[n++], *receive = &transfers[n++];
            *send = (clt_transfer){.peer = peer,
                                   .slot = k,
                                   .type = 7,
                                   .bytes = sizes[k],
                                   .ready = sizes[k],
                                   .data = make_data(sizes[k], self->rank, peer, k)};
            *receive = (clt_transfer){
                .peer = peer, .slot = k, .type = 7, .bytes = sizes[k], .data = malloc(sizes[k] + 1)};
            bool receive_first = (k + (size_t)peer) % 2;
            if (receive_first) CHECK(self, clt_transport_receive(self->transport, receive) == CLT_OK);
            CHECK(self, clt_transport_send(self->transport, send) == CLT_OK);
            if (!receive_first) CHECK(self, clt_transport_receive(self->transport, receive) == CLT_OK);
        }
    }
    CHECK(self, rank_finish(self, transfers, n) == CLT_OK);
    for (size_t i = 0; i < n; i += 2) {
        const clt_transfer *receive = &transfers[i + 1];
        CHECK(self, receive->done == receive->bytes && transfers[i].done == receive->bytes);
        CHECK(self, is_data(receive->data, receive->bytes, receive->peer, self->rank, receive->slot));
        free(transfers[i].data), free(receive->data);
    }
    size_t all = 0;
    for (size_t k = 0; k < SIZES; k++) all += sizes[k] * (size_t)(self->size - 1);
    clt_transport_counts counts = clt_transport_get_counts(self->transport);
    CHECK(self, counts.bytes_sent == all && counts.bytes_received == all);
}

static void test_everybody(void **state) {
    (void)state;
    for (int level = CLT_SECURITY_TLS; level <= CLT_SECURITY_NONE; level++)
        for (int channels = 1; channels <= 3; channels += 2)
            ranks_run(
                &(rank_group){.size = 3, .channels = channels, .level = level, .body = exchange_all});
    ranks_run(&(rank_group){.size = 1, .level = CLT_SECURITY_NONE, .body = exchange_all});
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_TLS, .body = exchange_all});
    ranks_run(&(rank_group){.size = 8, .level = CLT_SECURITY_TLS, .body = exchange_all});
}

/* ---- small messages that nobody has asked for ---- */

static void send_unasked(rank_thread *self) {
    enum { MANY = 2000, BYTES = 12000 }; /* several times what is kept */
    int other = 1 - self->rank;
    static _Thread_local clt_transfer transfers[MANY];
    memset(transfers, 0, sizeof transfers);
    if (self->rank == 0) {
        for (int i = 0; i < MANY; i++) {
            transfers[i] = (clt_transfer){.peer = other,
                                          .slot = (uint64_t)i,
                                          .bytes = BYTES,
                                          .ready = BYTES,
                                          .data = make_data(BYTES, 0, 1, (uint64_t)i)};
            CHECK(self, clt_transport_send(self->transport, &transfers[i]) == CLT_OK);
        }
        CHECK(self,
              transfers[0].active == false && transfers[MANY - 1].active); /* its limit is reached */
        CHECK(self, rank_finish(self, transfers, MANY) == CLT_OK);
        for (int i = 0; i < MANY; i++) free(transfers[i].data);
        return;
    }
    double until = clt_seconds() + 0.3;
    while (clt_seconds() < until) CHECK(self, clt_transport_progress(self->transport, 0.1) == CLT_OK);
    static _Thread_local uint8_t got[BYTES];
    for (int i = 0; i < MANY; i++) {
        /* Out of order, among those that are there. */
        uint64_t slot = (uint64_t)(i ^ 1);
        clt_transfer receive = {.peer = other, .slot = slot, .bytes = BYTES, .data = got};
        CHECK(self, clt_transport_receive(self->transport, &receive) == CLT_OK);
        CHECK(self, rank_finish(self, &receive, 1) == CLT_OK);
        CHECK(self, is_data(got, BYTES, 0, 1, slot));
    }
}

static void test_unasked(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = send_unasked});
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_TLS, .body = send_unasked});
}

/* Messages of one slot come in order. */
static void reuse_slot(rank_thread *self) {
    enum { MANY = 20 };
    for (size_t bytes = 100; bytes <= 300000; bytes *= 3000) {
        clt_transfer transfers[MANY] = {0};
        for (int i = 0; i < MANY; i++) {
            clt_transfer *one = &transfers[i];
            *one = (clt_transfer){.peer = 1 - self->rank,
                                  .slot = 5,
                                  .bytes = bytes,
                                  .ready = bytes,
                                  .data = make_data(bytes, 0, 0, (uint64_t)i)};
            if (self->rank) memset(one->data, 0, bytes);
            CHECK(self, (self->rank ? clt_transport_receive : clt_transport_send)(self->transport,
                                                                                  one) == CLT_OK);
        }
        CHECK(self, rank_finish(self, transfers, MANY) == CLT_OK);
        for (int i = 0; i < MANY; i++) {
            CHECK(self, is_data(transfers[i].data, bytes, 0, 0, (uint64_t)i));
            free(transfers[i].data);
        }
    }
}

static void test_slots(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = reuse_slot});
    ranks_run(&(rank_group){.size = 2, .channels = 4, .level = CLT_SECURITY_NONE, .body = reuse_slot});
}

/* ---- what differs ---- */

typedef struct difference {
    size_t sent, expected;
    uint32_t sent_type, expected_type;
} difference;

static void differ(rank_thread *self) {
    const difference *d = self->group->context;
    static _Thread_local char data[1 << 20];
    char words[200];
    memset(data, 0x55, sizeof data);
    clt_transfer one = {.peer = 1 - self->rank, .slot = 77, .data = data};
    one.bytes = one.ready = self->rank ? d->expected : d->sent;
    one.type = self->rank ? d->expected_type : d->sent_type;
    clt_status status = (self->rank ? clt_transport_receive : clt_transport_send)(self->transport, &one);
    CHECK(self, status == CLT_OK || status == CLT_E_MISMATCH);
    CHECK(self, rank_wait_end(self) == CLT_E_MISMATCH);
    snprintf(
        words, sizeof words,
        "message 77 from rank 0 to rank 1: sent is %zu bytes of type %u, expected %zu bytes of type %u",
        d->sent, (unsigned)d->sent_type, d->expected, (unsigned)d->expected_type);
    CHECK(self, strstr(clt_error_detail(), words));
    for (size_t i = 0; self->rank && i < sizeof data; i++)
        CHECK(self, data[i] == 0x55); /* nothing was written */
    CHECK(self, clt_transport_state(self->transport) == CLT_E_MISMATCH);
    clt_transport_cancel(self->transport, &one);
}

static void test_differences(void **state) {
    (void)state;
    difference all[] = {{4, 8, 0, 0},           {8, 4, 0, 0},           {100, 100, 1, 2},
                        {0, 4, 0, 0},           {100000, 100016, 0, 0}, {100016, 100000, 0, 0},
                        {100000, 100000, 3, 4}, {100, 100000, 0, 0},    {100000, 100, 0, 0},
                        {100000, 0, 0, 0}};
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++)
        ranks_run(
            &(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = differ, .context = &all[i]});
}

/* ---- ready step by step, consumed on the way ---- */

typedef struct sum {
    size_t calls, bytes;
    bool whole;
} sum;

static void add_u32(void *destination, const void *source, size_t bytes, void *context) {
    sum *s = context;
    uint32_t *to = destination;
    const uint32_t *from = source;
    for (size_t i = 0; i < bytes / 4; i++) to[i] += from[i];
    s->calls++;
    s->bytes += bytes;
    s->whole = s->whole && bytes % 4 == 0 && bytes > 0 && bytes <= CLT_FRAME_BYTES;
}

enum { NUMBERS = 300007 };

static void stream_out(rank_thread *self, clt_transfer *send) {
    static const size_t steps[] = {1, 15, 17, 4000, 33, 200000, 50001};
    CHECK(self, clt_transport_send(self->transport, send) == CLT_OK);
    for (size_t i = 0; send->active; i++) {
        CHECK(self, clt_transport_progress(self->transport, 0) == CLT_OK);
        CHECK(self, send->done <= send->ready);
        send->ready = CLT_MIN(send->bytes, send->ready + steps[i % CLT_COUNT_OF(steps)]);
        if (i % 8 == 0) usleep(500);
    }
}

static void stream(rank_thread *self) {
    uint32_t *numbers = malloc(NUMBERS * sizeof *numbers);
    sum s = {.whole = true};
    for (uint32_t i = 0; i < NUMBERS; i++) numbers[i] = self->rank ? 5 * i : i * i;
    clt_transfer one = {.peer = 1 - self->rank,
                        .slot = 1,
                        .bytes = NUMBERS * 4,
                        .data = numbers,
                        .consume = add_u32,
                        .context = &s};
    if (self->rank == 0) {
        one.consume = NULL;
        stream_out(self, &one);
        free(numbers);
        return;
    }
    CHECK(self, clt_transport_receive(self->transport, &one) == CLT_OK);
    while (one.active) {
        CHECK(self, clt_transport_progress(self->transport, 1) == CLT_OK);
        CHECK(self, one.done == s.bytes);
    }
    CHECK(self, s.whole && s.bytes == one.bytes && s.calls > 3);
    for (uint32_t i = 0; i < NUMBERS; i++) CHECK(self, numbers[i] == 5 * i + i * i);
    free(numbers);
}

static void test_stream(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = stream});
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_TLS, .body = stream});
    ranks_run(&(rank_group){.size = 2, .channels = 3, .level = CLT_SECURITY_AUTH, .body = stream});
}

/* What is not all ready goes out as far as it is, and no further. */
static void stop_half_way(rank_thread *self) {
    enum { BYTES = 1 << 20, HALF = (1 << 19) + 48 };
    static _Thread_local uint8_t data[BYTES];
    if (self->rank == 0) memset(data, 1, sizeof data);
    clt_transfer one = {.peer = 1 - self->rank, .slot = 1, .bytes = BYTES, .data = data, .ready = HALF};
    CHECK(self,
          (self->rank ? clt_transport_receive : clt_transport_send)(self->transport, &one) == CLT_OK);
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    while (one.done < HALF && clt_seconds() < deadline)
        CHECK(self, clt_transport_progress(self->transport, 1) == CLT_OK);
    for (int i = 0; i < 5; i++) CHECK(self, clt_transport_progress(self->transport, 0.02) == CLT_OK);
    CHECK(self, one.done == HALF && one.active);
    if (self->rank) CHECK(self, data[HALF - 1] == 1 && data[HALF] == 0);
    clt_transfer word = {.peer = 1 - self->rank, .slot = 2}; /* the receiver has looked */
    CHECK(self,
          (self->rank ? clt_transport_send : clt_transport_receive)(self->transport, &word) == CLT_OK);
    CHECK(self, rank_finish(self, &word, 1) == CLT_OK);
    one.ready = BYTES;
    CHECK(self, rank_finish(self, &one, 1) == CLT_OK);
    CHECK(self, data[BYTES - 1] == 1);
}

static void test_half_way(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_TLS, .body = stop_half_way});
}

/* ---- waiting ---- */

static void *wake_later(void *transport) {
    usleep(50000);
    clt_transport_wake(transport);
    return NULL;
}

static void wait_and_wake(rank_thread *self) {
    clt_thread thread;
    CHECK(self, clt_transport_progress(self->transport, 0) == CLT_OK);
    CHECK(self, clt_thread_start(&thread, wake_later, self->transport) == CLT_OK);
    CHECK(self, clt_transport_progress(self->transport, FOREVER_SECONDS) == CLT_OK);
    clt_thread_join(thread);
    /* A wake before the wait counts. */
    clt_transport_wake(self->transport);
    CHECK(self, clt_transport_progress(self->transport, FOREVER_SECONDS) == CLT_OK);
    /* All leave at once: who waits on must not take that for a loss. */
    for (int i = 0; i < 5; i++) CHECK(self, clt_transport_progress(self->transport, 0.01) == CLT_OK);
}

static void test_wake(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = wait_and_wake});
}

static double thread_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Who waits sleeps, whatever TLS has read ahead: frames, small messages, headers of which nothing is left. */
static void sleep_after(rank_thread *self) {
    for (uint64_t k = 1; k < SIZES; k += 3) {
        clt_transfer two[2] = {
            {.peer = 1 - self->rank, .slot = k, .bytes = sizes[k], .ready = sizes[k]}};
        two[1] = two[0];
        two[0].data = make_data(sizes[k], self->rank, 1 - self->rank, k);
        two[1].data = malloc(sizes[k] + 1);
        CHECK(self, clt_transport_send(self->transport, &two[0]) == CLT_OK);
        CHECK(self, clt_transport_receive(self->transport, &two[1]) == CLT_OK);
        CHECK(self, rank_finish(self, two, 2) == CLT_OK);
        free(two[0].data), free(two[1].data);
        double before = thread_seconds(), until = clt_seconds() + 0.3;
        while (clt_seconds() < until)
            CHECK(self, clt_transport_progress(self->transport, until - clt_seconds()) == CLT_OK);
        CHECK(self, thread_seconds() - before < 0.1); /* of the processor: who spins takes all */
    }
}

static void test_sleep(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_TLS, .body = sleep_after});
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = sleep_after});
}

/* ---- misuse ---- */

static void misuse(rank_thread *self) {
    clt_transfer one = {.peer = self->rank};
    CHECK(self, clt_transport_send(self->transport, &one) == CLT_E_INVALID);
    one.peer = self->size;
    CHECK(self, clt_transport_receive(self->transport, &one) == CLT_E_INVALID);
    one.peer = -1;
    CHECK(self, clt_transport_receive(self->transport, &one) == CLT_E_INVALID);
    one = (clt_transfer){.peer = 1 - self->rank, .bytes = 4, .ready = 5};
    CHECK(self, clt_transport_send(self->transport, &one) == CLT_E_INVALID);
    /* A receive that nothing came for is forgotten without harm. */
    char byte;
    one = (clt_transfer){.peer = 1 - self->rank, .slot = 9, .bytes = 1, .data = &byte};
    CHECK(self, clt_transport_receive(self->transport, &one) == CLT_OK);
    CHECK(self, clt_transport_receive(self->transport, &one) == CLT_E_STATE);
    clt_transport_cancel(self->transport, &one);
    CHECK(self, !one.active);
    CHECK(self, clt_transport_state(self->transport) == CLT_OK);
}

static void test_misuse(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = misuse});
    clt_transport *transport;
    clt_transport_options wrong[] = {
        {.rank = 0, .size = 0, .channels = 1, .connect_seconds = 1, .heartbeat_seconds = 1},
        {.rank = 2, .size = 2, .channels = 1, .connect_seconds = 1, .heartbeat_seconds = 1},
        {.rank = 0, .size = 1, .channels = 0, .connect_seconds = 1, .heartbeat_seconds = 1},
        {.rank = 0, .size = 1, .channels = 1, .connect_seconds = 0, .heartbeat_seconds = 1},
        {.rank = 0, .size = 1, .channels = 1, .connect_seconds = 1, .heartbeat_seconds = 0.1}};
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++) {
        assert_status(clt_transport_create(&transport, &wrong[i]), CLT_E_INVALID);
        assert_null(transport);
    }
    clt_transport_destroy(NULL);
}

/* ---- more large receives at once than a sender is told of; it begins with the one that was posted last ---- */

static void many_receives(rank_thread *self) {
    enum { MANY = 9000, BYTES = CLT_EAGER_BYTES + 16 };
    clt_transfer *all = calloc(MANY, sizeof *all);
    char *data = calloc(1, BYTES);
    CHECK(self, all && data);
    bool receives = self->rank == 0;
    for (int i = 0; i < MANY; i++)
        all[i] = (clt_transfer){.peer = 1 - self->rank, .slot = (uint64_t)i, .bytes = BYTES, .ready = receives ? 0 : BYTES, .data = data};
    for (int i = 0; receives && i < MANY; i++) CHECK(self, clt_transport_receive(self->transport, &all[i]) == CLT_OK);
    CHECK(self, rank_gather(self, 1) == CLT_OK);
    if (!receives) {
        CHECK(self, clt_transport_send(self->transport, &all[MANY - 1]) == CLT_OK);
        CHECK(self, rank_finish(self, &all[MANY - 1], 1) == CLT_OK);
    }
    for (int i = 0; !receives && i < MANY - 1; i++) CHECK(self, clt_transport_send(self->transport, &all[i]) == CLT_OK);
    CHECK(self, rank_finish(self, all, MANY) == CLT_OK);
    free(all);
    free(data);
}

static void test_many_receives(void **state) {
    (void)state;
    ranks_run(&(rank_group){.size = 2, .level = CLT_SECURITY_NONE, .body = many_receives});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody), cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_slots),     cmocka_unit_test(test_differences),
        cmocka_unit_test(test_stream),    cmocka_unit_test(test_half_way),
        cmocka_unit_test(test_wake),      cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_misuse),    cmocka_unit_test(test_many_receives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
