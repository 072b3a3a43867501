/* Ranks as processes that are killed, stopped, leave, fail, or break the rules. */
#define _GNU_SOURCE
#include "tests/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cltrain/allocator.h>

#include "comm/transport/parts.h"
#include "tests/comm/ranks.h"

/* What a process tells of its rank's end. */
typedef struct report {
    clt_status status;
    bool lost[RANKS_MOST];
    char detail[400], failure[400];
} report;

typedef struct process {
    pid_t id;
    int pipe;
} process;

enum { BEGUN = 'b' };

/* The body says what it wants to; its end is reported. */
static void run_child(const rank_group *group, int rank, const char *store, int out) {
    rank_thread self = {.group = group, .rank = rank, .size = group->size};
    report r = {0};
    snprintf(self.url, sizeof self.url, "%s", store);
    r.status = rank_open(&self);
    char begun = BEGUN;
    if (write(out, &begun, 1) != 1) _exit(1);
    if (r.status == CLT_OK) {
        group->body(&self);
        r.status = clt_transport_state(self.transport);
        for (int k = 0; k < group->size; k++) r.lost[k] = clt_transport_is_lost(self.transport, k);
    }
    snprintf(r.detail, sizeof r.detail, "%s", r.status < 0 ? clt_error_detail() : "");
    snprintf(r.failure, sizeof r.failure, "%.399s", self.failure);
    rank_close(&self); /* at once: nobody may take it for the cause */
    if (write(out, &r, sizeof r) != sizeof r) _exit(1);
    _exit(0);
}

static void start_processes(const rank_group *group, process *processes) {
    const char *store = ranks_new_store();
    for (int r = 0; r < group->size; r++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        processes[r].id = fork();
        if (processes[r].id == 0) run_child(group, r, store, ends[1]);
        close(ends[1]);
        processes[r].pipe = ends[0];
    }
    for (int r = 0; r < group->size; r++) {
        char begun;
        assert_int_equal(read(processes[r].pipe, &begun, 1), 1);
    }
}

/* The report of a process that ends by itself. */
static report end_of(process *p) {
    report r = {0};
    struct pollfd one = {p->pipe, POLLIN, 0};
    int ready = poll(&one, 1, 1000 * WATCHDOG_SECONDS);
    ssize_t got = ready > 0 ? read(p->pipe, &r, sizeof r) : -1;
    if (got != sizeof r) kill(p->id, SIGKILL);
    int status;
    waitpid(p->id, &status, 0);
    close(p->pipe);
    assert_int_equal(got, sizeof r);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(r.failure, "");
    return r;
}

static void bury(process *p) {
    kill(p->id, SIGKILL);
    waitpid(p->id, NULL, 0);
    close(p->pipe);
}

/* ---- bodies ---- */

/* Large and small messages with all others until the group ends. */
static void talk(rank_thread *self) {
    enum { BYTES = 700000 };
    static char out[BYTES], in[RANKS_MOST][BYTES];
    for (uint64_t round = 0; clt_transport_state(self->transport) == CLT_OK; round++) {
        clt_transfer transfers[4 * RANKS_MOST] = {0};
        size_t n = 0;
        for (int peer = 0; peer < self->size; peer++) {
            for (uint64_t k = 0; k < 2 && peer != self->rank; k++) {
                size_t bytes = k ? BYTES : 100;
                clt_transfer *send = &transfers[n++], *receive = &transfers[n++];
                *send = (clt_transfer){
                    .peer = peer, .slot = 2 * round + k, .bytes = bytes, .ready = bytes, .data = out};
                *receive = (clt_transfer){
                    .peer = peer, .slot = 2 * round + k, .bytes = bytes, .data = in[peer]};
                clt_transport_send(self->transport, send);
                clt_transport_receive(self->transport, receive);
            }
        }
        clt_status status = rank_finish(self, transfers, n);
        for (size_t i = 0; i < n; i++) clt_transport_cancel(self->transport, &transfers[i]);
        CHECK(self, status == CLT_OK || status == CLT_E_PEER);
    }
}

static void listen_only(rank_thread *self) {
    rank_wait_end(self);
}

static void check_survivors(process *processes, int size, int victim) {
    char words[60];
    snprintf(words, sizeof words, "rank %d was lost: ", victim);
    for (int r = 0; r < size; r++) {
        if (r == victim) continue;
        report end = end_of(&processes[r]);
        if (!strstr(end.detail, words)) print_error("rank %d: %d %s\n", r, end.status, end.detail);
        assert_int_equal(end.status, CLT_E_PEER);
        assert_memory_equal(end.detail, words, strlen(words));
        for (int k = 0; k < size; k++) assert_int_equal(end.lost[k], k == victim);
    }
}

static void kill_one(int size, int victim, clt_comm_security level, void (*body)(rank_thread *),
                     useconds_t after) {
    process processes[RANKS_MOST];
    rank_group group = {.size = size, .level = level, .body = body, .heartbeat_seconds = FOREVER_SECONDS}; /* the connection tells it, not silence */
    start_processes(&group, processes);
    usleep(after);
    bury(&processes[victim]);
    check_survivors(processes, size, victim);
}

static void test_killed(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++)
        kill_one(3 + i % 2, i % 3, i % 2 ? CLT_SECURITY_TLS : CLT_SECURITY_NONE, talk,
                 (useconds_t)(i * 7919 % 20000));
    kill_one(4, 0, CLT_SECURITY_TLS, listen_only, 1000);
    kill_one(2, 1, CLT_SECURITY_AUTH, listen_only, 1000);
}

/* A stopped process keeps its connections: its silence gives it away; awake again, it learns what
 * became of it. */
static void test_stopped(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        process processes[3];
        rank_group group = {.size = 3,
                            .level = CLT_SECURITY_TLS,
                            .heartbeat_seconds = 3,
                            .body = i ? listen_only : talk};
        start_processes(&group, processes);
        usleep(3600000); /* longer than the limit: beats keep all alive */
        kill(processes[1].id, SIGSTOP);
        check_survivors(processes, 3, 1);
        kill(processes[1].id, SIGCONT);
        report end = end_of(&processes[1]);
        assert_int_equal(end.status, CLT_E_PEER);
    }
}

/* ---- leaving ---- */

/* Rank 2 sends something and goes; the others go on, and take what it sent when it is long gone. */
static void leave_early(rank_thread *self) {
    enum { BYTES = 60000 };
    static char data[BYTES];
    clt_transfer small = {
        .peer = self->rank == 2 ? 0 : 2, .slot = 1, .bytes = 5, .ready = 5, .data = data};
    if (self->rank == 2) {
        memcpy(data, "taken", 5);
        CHECK(self, clt_transport_send(self->transport, &small) == CLT_OK);
        CHECK(self, rank_finish(self, &small, 1) == CLT_OK);
        return;
    }
    double until = clt_seconds() + 3;
    for (uint64_t round = 0;; round++) {
        clt_transfer two[2] = {
            {.peer = 1 - self->rank, .slot = round, .bytes = BYTES, .ready = BYTES, .data = data}};
        two[1] = two[0];
        two[1].data = malloc(BYTES);
        CHECK(self, clt_transport_send(self->transport, &two[0]) == CLT_OK);
        CHECK(self, clt_transport_receive(self->transport, &two[1]) == CLT_OK);
        CHECK(self, rank_finish(self, two, 2) == CLT_OK);
        free(two[1].data);
        /* The last round is agreed upon: both stop together. */
        char more = clt_seconds() < until, theirs = 0;
        clt_transfer agree[2] = {
            {.peer = 1 - self->rank, .slot = ~round, .bytes = 1, .ready = 1, .data = &more}};
        agree[1] = agree[0];
        agree[1].data = &theirs;
        CHECK(self, clt_transport_send(self->transport, &agree[0]) == CLT_OK);
        CHECK(self, clt_transport_receive(self->transport, &agree[1]) == CLT_OK);
        CHECK(self, rank_finish(self, agree, 2) == CLT_OK);
        if (!more || !theirs) break;
    }
    CHECK(self,
          clt_transport_state(self->transport) == CLT_OK && !clt_transport_is_lost(self->transport, 2));
    if (self->rank != 0) return;
    CHECK(self, clt_transport_receive(self->transport, &small) == CLT_OK);
    CHECK(self, rank_finish(self, &small, 1) == CLT_OK && memcmp(data, "taken", 5) == 0);
    while (!self->transport->peers[1].goodbye) /* whom the end of the group should not meet */
        CHECK(self, clt_transport_progress(self->transport, 1) == CLT_OK);
    /* More is wanted than it left. */
    small.slot = 2;
    clt_transport_receive(self->transport, &small);
    CHECK(self, rank_wait_end(self) == CLT_E_PEER);
    CHECK(self, strstr(clt_error_detail(), "rank 2 was lost: it has left"));
    CHECK(self, clt_transport_is_lost(self->transport, 2));
    clt_transport_cancel(self->transport, &small);
}

static void test_leaving(void **state) {
    (void)state;
    ranks_run(&(rank_group){
        .size = 3, .level = CLT_SECURITY_TLS, .body = leave_early, .heartbeat_seconds = 1});
    ranks_run(&(rank_group){
        .size = 3, .level = CLT_SECURITY_NONE, .body = leave_early, .heartbeat_seconds = 1});
}

/* ---- failing on purpose ---- */

static void fail_on_purpose(rank_thread *self) {
    const clt_status *status = self->group->context;
    CHECK(self, rank_gather(self, 1) == CLT_OK);
    if (self->rank == 1) clt_transport_fail(self->transport, *status, "enough");
    clt_status wanted = self->rank == 1            ? *status
                        : *status == CLT_E_ABORTED ? CLT_E_ABORTED
                                                   : CLT_E_PEER;
    CHECK(self, rank_wait_end(self) == wanted);
    CHECK(self, strcmp(clt_error_detail(), self->rank == 1 ? "enough" : "rank 1: enough") == 0);
    for (int r = 0; r < self->size; r++) CHECK(self, !clt_transport_is_lost(self->transport, r));
    clt_transport_fail(self->transport, CLT_E_INVALID, "too late: the first counts");
    CHECK(self, clt_transport_state(self->transport) == wanted);
    clt_transfer one = {.peer = self->rank ? 0 : 1};
    CHECK(self, clt_transport_send(self->transport, &one) == wanted && !one.active);
}

static void test_failing(void **state) {
    (void)state;
    clt_status statuses[] = {CLT_E_ABORTED, CLT_E_TIMEOUT};
    for (size_t i = 0; i < CLT_COUNT_OF(statuses); i++)
        ranks_run(&(rank_group){
            .size = 4, .level = CLT_SECURITY_NONE, .body = fail_on_purpose, .context = &statuses[i]});
}

/* ---- a rank that holds the token and breaks the rules ---- */

/* Speaks as rank 1 of 2, by hand. */
typedef struct outlaw {
    clt_security *security;
    clt_rendezvous *store;
    clt_socket *sockets[2]; /* control, data */
    char url[400];
} outlaw;

static clt_status send_frame(clt_socket *socket, const clt_frame *frame, const void *payload) {
    unsigned char header[CLT_HEADER_BYTES];
    clt_frame_encode(frame, header);
    CLT_TRY(clt_socket_write_all(socket, header, sizeof header, clt_seconds() + WATCHDOG_SECONDS));
    return clt_socket_write_all(socket, payload, frame->length, clt_seconds() + WATCHDOG_SECONDS);
}

static clt_status introduce(outlaw *o, int channel, const char *address) {
    struct sockaddr_storage where;
    socklen_t bytes;
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    CLT_TRY(clt_resolve(address, clt_seconds() + 30, &where, &bytes));
    CLT_TRY(clt_socket_connect(&o->sockets[channel], o->security, (struct sockaddr *)&where, bytes,
                               deadline));
    clt_hello hello = {.version = CLT_PROTOCOL_VERSION,
                       .size = 2,
                       .from = 1,
                       .channel = (uint32_t)channel,
                       .channels = 1};
    clt_hash_text("", 0, hello.job);
    unsigned char text[CLT_HELLO_BYTES];
    clt_answer answer;
    clt_hello_encode(&hello, text);
    CLT_TRY(clt_socket_write_all(o->sockets[channel], text, sizeof text, deadline));
    CLT_TRY(clt_socket_read_all(o->sockets[channel], text, CLT_ANSWER_BYTES, deadline));
    return clt_answer_decode(&answer, text) && answer == CLT_WELCOME ? CLT_OK : CLT_E_DENIED;
}

static void outlaw_begin(outlaw *o, const char *url) {
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    size_t length;
    *o = (outlaw){0};
    assert_ok(
        clt_security_create(&o->security, CLT_SECURITY_TLS, "the token of the ranks", NULL, NULL, NULL));
    clt_rendezvous_options store = {
        .url = url, .job = "test", .security = o->security, .connect_seconds = WATCHDOG_SECONDS};
    assert_ok(clt_rendezvous_open(&o->store, &store));
    assert_ok(clt_rendezvous_get(o->store, "address/0/0", address, &length, clt_seconds() + 20));
    address[length] = '\0';
    assert_ok(introduce(o, 0, address));
    assert_ok(introduce(o, 1, address));
    assert_ok(send_frame(o->sockets[0], &(clt_frame){.kind = CLT_FRAME_BARRIER}, NULL));
}

static void outlaw_end(outlaw *o) {
    clt_socket_destroy(o->sockets[0]);
    clt_socket_destroy(o->sockets[1]);
    clt_rendezvous_close(o->store);
    clt_security_destroy(o->security);
}

/* Rank 0, which waits for a large message in slot 1. */
static uint8_t victim_data[100000];

static void suffer(rank_thread *self) {
    memset(victim_data, 0x55, sizeof victim_data);
    clt_transfer one = {.peer = 1, .slot = 1, .bytes = sizeof victim_data, .data = victim_data};
    clt_transport_receive(self->transport, &one);
    clt_status status = rank_wait_end(self);
    CHECK(self, status == CLT_E_PEER);
    CHECK(self, strstr(clt_error_detail(), "rank 1 was lost: it does not keep to the protocol"));
    for (size_t i = 0; i < sizeof victim_data; i++) CHECK(self, victim_data[i] == 0x55);
    clt_transport_cancel(self->transport, &one);
}

static void *be_victim(void *argument) {
    rank_thread *self = argument;
    if (rank_open(self) == CLT_OK) suffer(self);
    else rank_note(self, "rank_open", __FILE__, __LINE__);
    rank_close(self);
    return NULL;
}

static void break_rule(const clt_frame *frame, int channel, int times) {
    static uint8_t payload[CLT_FRAME_BYTES * 2];
    rank_group group = {.size = 2, .level = CLT_SECURITY_TLS};
    rank_thread victim = {.group = &group, .size = 2};
    outlaw o;
    snprintf(victim.url, sizeof victim.url, "%s", ranks_new_store());
    assert_ok(clt_thread_start(&victim.thread, be_victim, &victim));
    outlaw_begin(&o, victim.url);
    for (int i = 0; i < times; i++)
        if (send_frame(o.sockets[channel], frame, payload) < 0) break; /* it hung up */
    clt_thread_join(victim.thread);
    if (victim.failure[0])
        print_error("kind %d, length %u, %d times: %s\n", (int)frame->kind, (unsigned)frame->length,
                    times, victim.failure);
    assert_string_equal(victim.failure, "");
    outlaw_end(&o);
}

static void test_rules(void **state) {
    (void)state;
    const uint64_t total = sizeof victim_data;
    break_rule(&(clt_frame){.kind = 0}, 0, 1);
    break_rule(&(clt_frame){.kind = 77}, 0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_EAGER,
                            .length = CLT_EAGER_BYTES + 1,
                            .total = CLT_EAGER_BYTES + 1},
               0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_EAGER, .slot = 7, .length = 10, .total = 11}, 0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_BEAT, .length = 1}, 0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_BARRIER}, 0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_CREDIT, .total = 1}, 0, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_FAIL, .slot = 4}, 0, 1);
    break_rule(
        &(clt_frame){.kind = CLT_FRAME_DATA, .slot = 1, .ticket = 1, .length = 16, .total = total}, 0,
        1);
    /* More than may wait unasked, and more notices than may. */
    break_rule(&(clt_frame){.kind = CLT_FRAME_EAGER, .slot = 7, .length = 10000, .total = 10000}, 0,
               100000);
    break_rule(&(clt_frame){.kind = CLT_FRAME_READY, .slot = 7, .total = 1 << 20}, 0, 100000);
    /* On the data connection: what it is, for whom, and which part. */
    break_rule(&(clt_frame){.kind = CLT_FRAME_EAGER, .slot = 7, .length = 10, .total = 10}, 1, 1);
    break_rule(
        &(clt_frame){.kind = CLT_FRAME_DATA, .slot = 1, .ticket = 2, .length = 16, .total = total}, 1,
        1);
    break_rule(
        &(clt_frame){.kind = CLT_FRAME_DATA, .slot = 2, .ticket = 1, .length = 16, .total = total}, 1,
        1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_DATA, .slot = 1, .ticket = 1, .length = 0, .total = total},
               1, 1);
    break_rule(
        &(clt_frame){.kind = CLT_FRAME_DATA, .slot = 1, .ticket = 1, .length = 17, .total = total}, 1,
        1);
    break_rule(
        &(clt_frame){
            .kind = CLT_FRAME_DATA, .slot = 1, .ticket = 1, .offset = 16, .length = 16, .total = total},
        1, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_DATA,
                            .slot = 1,
                            .ticket = 1,
                            .offset = UINT64_MAX - 7,
                            .length = 16,
                            .total = total},
               1, 1);
    break_rule(&(clt_frame){.kind = CLT_FRAME_DATA,
                            .slot = 1,
                            .ticket = 1,
                            .length = CLT_FRAME_BYTES + 16,
                            .total = total},
               1, 1);
}

/* ---- an allocation that fails while ranks come together ---- */

static atomic_long requests, held;
static long fails; /* number of the request that does, from 0 */

static void *allocate(size_t bytes, void *user) {
    (void)user;
    if (requests++ == fails) return NULL;
    held++;
    return malloc(bytes);
}

static void *reallocate(void *memory, size_t bytes, void *user) {
    (void)user;
    if (requests++ == fails) return NULL;
    held += memory == NULL;
    return realloc(memory, bytes);
}

static void release(void *memory, void *user) {
    (void)user;
    held -= memory != NULL;
    free(memory);
}

/* Nobody else comes: what is made so far is freed, whatever of it is missing. */
static void test_memory(void **state) {
    (void)state;
    static const clt_allocator failing = {allocate, reallocate, release, NULL};
    const rank_group group = {.size = 2, .channels = 1, .level = CLT_SECURITY_NONE, .connect_seconds = 0.1};
    long met = 0;
    for (fails = 0; fails < 40; fails++) { /* from about the thirtieth on it looks for the others, over and over */
        rank_thread self = {.group = &group, .rank = 0, .size = 2};
        snprintf(self.url, sizeof self.url, "%s", ranks_new_store());
        requests = held = 0;
        assert_ok(clt_allocator_set(&failing));
        clt_status status = rank_open(&self);
        rank_close(&self);
        assert_ok(clt_allocator_set(NULL));
        assert_true(status < 0);
        assert_int_equal(held, 0);
        met += requests > fails;
    }
    assert_true(met > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_stopped), cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_failing), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
