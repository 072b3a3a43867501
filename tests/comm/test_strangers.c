/* Who does not belong to the job and connects all the same: while its ranks find each other, and while
 * they work. */
#define _GNU_SOURCE
#include "tests/support.h"

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/transport/parts.h"
#include "tests/comm/ranks.h"

/* ---- the log ---- */

static struct {
    clt_mutex lock;
    int refusals;
    bool address, handshake, complete;
} logged;

static void keep_log(clt_log_level level, const char *message, void *user) {
    (void)user;
    if (level > CLT_LOG_WARNING || !strstr(message, "refused a connection from")) return;
    clt_mutex_lock(&logged.lock);
    logged.refusals++;
    logged.address = logged.address || strstr(message, "from 127.0.0.1:");
    logged.handshake =
        logged.handshake || strstr(message, "TLS handshake") || strstr(message, "not let in");
    logged.complete = logged.complete || strstr(message, "all ranks are connected already");
    clt_mutex_unlock(&logged.lock);
}

static bool told_complete(void) {
    clt_mutex_lock(&logged.lock);
    bool complete = logged.complete;
    clt_mutex_unlock(&logged.lock);
    return complete;
}

/* ---- the ranks ---- */

static atomic_bool over; /* the attack is */
static atomic_int working;

/* Adds up numbers with the other rank, again and again; every result is looked at. */
static void work(rank_thread *self) {
    enum { NUMBERS = 50000 };
    static _Thread_local uint32_t out[NUMBERS], in[NUMBERS];
    char more = 1, theirs = 1;
    atomic_fetch_add(&working, 1);
    for (uint32_t round = 0; more && theirs; round++) {
        for (uint32_t i = 0; i < NUMBERS; i++) out[i] = i * 3 + round + (uint32_t)self->rank;
        more = !atomic_load(&over);
        int other = 1 - self->rank;
        clt_transfer all[] = {
            {.peer = other,
             .slot = 2 * (uint64_t)round,
             .bytes = sizeof out,
             .ready = sizeof out,
             .data = out},
            {.peer = other, .slot = 2 * (uint64_t)round, .bytes = sizeof in, .data = in},
            {.peer = other, .slot = 2 * (uint64_t)round + 1, .bytes = 1, .ready = 1, .data = &more},
            {.peer = other, .slot = 2 * (uint64_t)round + 1, .bytes = 1, .data = &theirs},
        };
        for (int i = 0; i < 4; i++)
            CHECK(self, (i % 2 ? clt_transport_receive : clt_transport_send)(self->transport, &all[i]) ==
                            CLT_OK);
        CHECK(self, rank_finish(self, all, 4) == CLT_OK);
        for (uint32_t i = 0; i < NUMBERS; i++) CHECK(self, in[i] == i * 3 + round + (uint32_t)other);
    }
}

static void *be_rank(void *argument) {
    rank_thread *self = argument;
    if (rank_open(self) == CLT_OK) self->group->body(self);
    else rank_note(self, "rank_open", __FILE__, __LINE__);
    rank_close(self);
    return NULL;
}

static void start_rank(rank_thread *self, const rank_group *group, int rank, const char *url) {
    *self = (rank_thread){.group = group, .rank = rank, .size = group->size};
    snprintf(self->url, sizeof self->url, "%s", url);
    assert_ok(clt_thread_start(&self->thread, be_rank, self));
}

static void read_address(const char *url, char address[CLT_RENDEZVOUS_VALUE_BYTES + 1]) {
    clt_rendezvous *store;
    size_t length;
    clt_rendezvous_options options = {.url = url, .job = "test", .connect_seconds = 20};
    assert_ok(clt_rendezvous_open(&store, &options));
    assert_ok(clt_rendezvous_get(store, "address/0/0", address, &length, clt_seconds() + 20));
    address[length] = '\0';
    clt_rendezvous_close(store);
}

/* ---- the strangers ---- */

static int connect_raw(const char *text) {
    struct sockaddr_storage address;
    socklen_t bytes;
    if (clt_resolve(text, clt_seconds() + 30, &address, &bytes) < 0) _exit(1);
    int s = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s, (struct sockaddr *)&address, bytes) == 0) return s;
    close(s);
    return -1;
}

static struct {
    uint8_t bytes[8000];
    size_t length;
} recorded; /* what a member said */

typedef struct attack_order {
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    int tries; /* of everything */
    size_t length;
    uint8_t bytes[sizeof recorded.bytes];
} attack_order;

static void send_bytes(const char *address, const void *bytes, size_t length) {
    int s = connect_raw(address);
    if (s < 0) return;
    send(s, bytes, length, MSG_NOSIGNAL);
    shutdown(s, SHUT_WR);
    close(s);
}

static void hold_many(const char *address, int n) {
    int held[400];
    for (int i = 0; i < n; i++) held[i] = connect_raw(address);
    usleep(100000);
    for (int i = 0; i < n; i++)
        if (held[i] >= 0) close(held[i]);
}

static void try_wrong_token(const char *address, const clt_security *wrong) {
    struct sockaddr_storage where;
    socklen_t bytes;
    clt_socket *socket;
    clt_resolve(address, clt_seconds() + 30, &where, &bytes);
    if (clt_socket_connect(&socket, wrong, (struct sockaddr *)&where, bytes, clt_seconds() + 5) ==
        CLT_OK)
        _exit(2);
}

static void carry_out(const attack_order *order) {
    const char *address = order->address;
    clt_security *wrong;
    if (clt_security_create(&wrong, CLT_SECURITY_TLS, "not the token of ranks", NULL, NULL, NULL) < 0)
        _exit(3);
    uint8_t garbage[400];
    for (int i = 0; i < order->tries; i++) {
        for (size_t k = 0; k < sizeof garbage; k++)
            garbage[k] = (uint8_t)((size_t)(i + 1) * (k + 3) * 2654435761u >> 11);
        send_bytes(address, "", 0);
        send_bytes(address, garbage, 1 + (size_t)i % sizeof garbage);
        send_bytes(address, order->bytes, order->length);
        send_bytes(address, order->bytes, (size_t)i % (order->length + 1)); /* cut off anywhere */
        try_wrong_token(address, wrong);
        if (i % 200 == 100) hold_many(address, 200);
    }
    _exit(0);
}

/* A process of its own, so that what it holds does not count as the ranks'; forked while there are no threads, since what they
 * hold locked would stay so in it. It waits for its order, and goes if none comes. */
typedef struct attacker {
    pid_t id;
    int orders;
} attacker;

static attacker be_ready(void) {
    static attack_order order;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    attacker a = {fork(), ends[1]};
    assert_true(a.id >= 0);
    if (a.id == 0) {
        close(ends[1]);
        size_t done = 0;
        for (ssize_t got = 1; done < sizeof order && got > 0; done += (size_t)CLT_MAX(got, 0))
            got = read(ends[0], (char *)&order + done, sizeof order - done);
        if (done < sizeof order) _exit(4);
        carry_out(&order);
    }
    close(ends[0]);
    return a;
}

static void send_off(const attacker *a, const char *address, int tries) {
    static attack_order order;
    order.tries = tries;
    order.length = recorded.length;
    snprintf(order.address, sizeof order.address, "%s", address);
    memcpy(order.bytes, recorded.bytes, recorded.length);
    assert_int_equal(write(a->orders, &order, sizeof order), sizeof order);
    close(a->orders);
}

static int descriptors(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

/* ---- a member's own bytes, recorded on the way ---- */

typedef struct recorder {
    int listener;
    const char *towards;
} recorder;

static void *record(void *argument) {
    const recorder *r = argument;
    struct pollfd one = {r->listener, POLLIN, 0};
    poll(&one, 1, 10000);
    int sides[] = {accept4(r->listener, NULL, NULL, SOCK_CLOEXEC), connect_raw(r->towards)};
    for (bool open = true; open;) {
        struct pollfd both[] = {{sides[0], POLLIN, 0}, {sides[1], POLLIN, 0}};
        open = poll(both, 2, 10000) > 0;
        for (int k = 0; k < 2; k++) {
            uint8_t data[2000];
            ssize_t got = both[k].revents ? recv(sides[k], data, sizeof data, 0) : -1;
            if (got == 0) open = false;
            if (got > 0) send(sides[1 - k], data, (size_t)got, MSG_NOSIGNAL);
            if (k == 0 && got > 0 && recorded.length + (size_t)got <= sizeof recorded.bytes) {
                memcpy(recorded.bytes + recorded.length, data, (size_t)got);
                recorded.length += (size_t)got;
            }
        }
    }
    close(sides[0]), close(sides[1]);
    return NULL;
}

static clt_hello right_hello(int size) {
    clt_hello hello = {
        .version = CLT_PROTOCOL_VERSION, .size = (uint32_t)size, .from = 1, .channels = 1};
    clt_hash_text("", 0, hello.job);
    return hello;
}

/* Says hello as somebody with the token; the answer, or -1. The connection stays in *kept, if that is
 * wanted. */
static int say_hello(const char *address, const clt_security *security, const clt_hello *hello,
                     clt_socket **kept) {
    struct sockaddr_storage where;
    socklen_t bytes;
    clt_socket *socket;
    unsigned char text[CLT_HELLO_BYTES];
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    assert_ok(clt_resolve(address, clt_seconds() + 30, &where, &bytes));
    assert_ok(clt_socket_connect(&socket, security, (struct sockaddr *)&where, bytes, deadline));
    clt_hello_encode(hello, text);
    assert_ok(clt_socket_write_all(socket, text, sizeof text, deadline));
    clt_answer answer;
    int said = -1;
    if (clt_socket_read_all(socket, text, CLT_ANSWER_BYTES, deadline) == CLT_OK &&
        clt_answer_decode(&answer, text))
        said = (int)answer;
    if (kept) *kept = socket;
    else clt_socket_destroy(socket);
    return said;
}

static void record_member(const char *address) {
    clt_security *security;
    clt_thread thread;
    char front[64];
    recorder r = {.towards = address};
    recorded.length = 0;
    assert_ok(
        clt_security_create(&security, CLT_SECURITY_TLS, "the token of the ranks", NULL, NULL, NULL));
    assert_ok(clt_listen(NULL, NULL, NULL, &r.listener, front));
    assert_ok(clt_thread_start(&thread, record, &r));
    clt_hello hello = right_hello(2);
    assert_int_equal(say_hello(front, security, &hello, NULL), CLT_WELCOME);
    clt_thread_join(thread);
    close(r.listener);
    clt_security_destroy(security);
    assert_true(recorded.length > 200);
}

/* `tries` of each kind by each of two processes at once, while rank 1 begins, if it is given. Returns the most descriptors that
 * were open. */
static int attack_and_look(const attacker two[2], const char *address, int tries, rank_thread *begin,
                           const rank_group *group, const char *url) {
    int status = 0, most = 0;
    for (int i = 0; i < 2; i++) send_off(&two[i], address, tries);
    if (begin) start_rank(begin, group, 1, url);
    for (int i = 0; i < 2; i++) {
        while (waitpid(two[i].id, &status, WNOHANG) == 0) {
            most = CLT_MAX(most, descriptors());
            usleep(2000);
        }
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return most;
}

/* A rank waits for another while it is attacked, and then they find each other and work while they are, without a pause. */
static void test_attack(void **state) {
    (void)state;
    rank_group group = {.size = 2, .level = CLT_SECURITY_TLS, .connect_seconds = 200, .body = work};
    rank_thread ranks[2];
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1], url[400];
    snprintf(url, sizeof url, "%s", ranks_new_store());
    assert_ok(clt_mutex_init(&logged.lock));
    clt_log_set(keep_log, CLT_LOG_WARNING, NULL);
    double before = clt_seconds();
    attacker attackers[4];
    for (int i = 0; i < 4; i++) attackers[i] = be_ready();
    start_rank(&ranks[0], &group, 0, url);
    read_address(url, address);
    record_member(address); /* which rank 0 takes for rank 1, until it goes */
    int quiet = descriptors(), most = attack_and_look(attackers, address, 500, NULL, NULL, NULL);
    assert_int_equal(atomic_load(&working), 0);
    most = CLT_MAX(most, attack_and_look(attackers + 2, address, 1000, &ranks[1], &group, url));
    assert_int_equal(atomic_load(&working), 2);
    usleep(1200000); /* so that the log has room for one more */
    send_bytes(address, "", 0);
    for (double until = clt_seconds() + WATCHDOG_SECONDS; !told_complete() && clt_seconds() < until;) usleep(2000);
    atomic_store(&over, true);
    for (int r = 0; r < 2; r++) {
        clt_thread_join(ranks[r].thread);
        assert_string_equal(ranks[r].failure, "");
    }
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
    clt_mutex_destroy(&logged.lock);
    assert_true(most < quiet + 200);
    assert_true(logged.address && logged.handshake && logged.complete);
    assert_true(logged.refusals < 6 * 2 * (clt_seconds() - before + 1));
}

/* ---- who holds the token and is not expected ---- */

typedef struct wrong_hello {
    uint32_t clt_hello_field; /* offset */
    uint32_t value;
    clt_answer answer;
} wrong_hello;

static void check_answers(const char *address, const clt_security *security) {
    static const wrong_hello all[] = {
        {offsetof(clt_hello, version), 99, CLT_OTHER_VERSION},
        {offsetof(clt_hello, size), 4, CLT_OTHER_SIZE},
        {offsetof(clt_hello, from), 0, CLT_WRONG_RANK},
        {offsetof(clt_hello, from), 3, CLT_WRONG_RANK},
        {offsetof(clt_hello, to), 1, CLT_WRONG_RANK},
        {offsetof(clt_hello, channel), 2, CLT_WRONG_CHANNEL},
        {offsetof(clt_hello, channels), 2, CLT_OTHER_SIZE},
        {offsetof(clt_hello, generation), 1, CLT_OTHER_GENERATION},
        {offsetof(clt_hello, job), 0x61616161, CLT_OTHER_JOB},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        clt_hello hello = right_hello(3);
        memcpy((char *)&hello + all[i].clt_hello_field, &all[i].value, 4);
        assert_int_equal(say_hello(address, security, &hello, NULL), all[i].answer);
    }
}

static void *fail_to_meet(void *argument) {
    rank_thread *self = argument;
    if (rank_open(self) != CLT_E_TIMEOUT ||
        !strstr(clt_error_detail(), "rank 0 of 3: ranks 1, 2 did not come within 8 seconds"))
        rank_note(self, "names who is missing", __FILE__, __LINE__);
    rank_close(self);
    return NULL;
}

static void test_hellos(void **state) {
    (void)state;
    rank_group group = {.size = 3, .level = CLT_SECURITY_TLS, .connect_seconds = 8};
    rank_thread self = {.group = &group, .size = 3};
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    clt_security *security;
    clt_socket *first;
    snprintf(self.url, sizeof self.url, "%s", ranks_new_store());
    assert_ok(
        clt_security_create(&security, CLT_SECURITY_TLS, "the token of the ranks", NULL, NULL, NULL));
    assert_ok(clt_thread_start(&self.thread, fail_to_meet, &self));
    read_address(self.url, address);
    check_answers(address, security);
    clt_hello hello = right_hello(3);
    assert_int_equal(say_hello(address, security, &hello, &first), CLT_WELCOME);
    assert_int_equal(say_hello(address, security, &hello, NULL), CLT_DUPLICATE);
    clt_socket_destroy(first);
    int said = CLT_DUPLICATE;
    for (int i = 0; i < 100 && said == CLT_DUPLICATE; i++)
        said = say_hello(address, security, &hello, NULL);
    assert_int_equal(said, CLT_WELCOME);
    clt_thread_join(self.thread);
    assert_string_equal(self.failure, "");
    clt_security_destroy(security);
}

/* ---- an address that a run before left in the store ---- */

static void quiet_work(rank_thread *self) {
    rank_gather(self, 0);
}

static void test_stale_address(void **state) {
    (void)state;
    char url[400], text[64];
    int listener;
    snprintf(url, sizeof url, "%s", ranks_new_store());
    clt_rendezvous *store;
    clt_rendezvous_options options = {.url = url, .job = "test", .connect_seconds = 20};
    assert_ok(clt_rendezvous_open(&store, &options));
    assert_ok(clt_listen(NULL, NULL, NULL, &listener, text));
    close(listener); /* nobody is there now */
    assert_ok(clt_rendezvous_set(store, "address/0/0", text, strlen(text), clt_seconds() + 10));
    rank_group group = {.size = 2, .level = CLT_SECURITY_TLS, .body = quiet_work};
    rank_thread ranks[2];
    start_rank(&ranks[1], &group, 1, url);
    usleep(200000);
    start_rank(&ranks[0], &group, 0, url);
    for (int r = 0; r < 2; r++) {
        clt_thread_join(ranks[r].thread);
        assert_string_equal(ranks[r].failure, "");
    }
    size_t length;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    assert_int_equal(clt_rendezvous_look(store, "address/0/0", value, &length, clt_seconds() + 10),
                     CLT_END);
    assert_int_equal(clt_rendezvous_look(store, "address/0/1", value, &length, clt_seconds() + 10),
                     CLT_END);
    clt_rendezvous_close(store);
}

/* ---- no descriptor is left ---- */

static double processor_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void *open_poor_rank(void *argument) {
    rank_thread *self = argument;
    if (rank_open(self) < 0) rank_note(self, "rank_open", __FILE__, __LINE__);
    return NULL;
}

/* Rank 0 of 2 in a process that has no descriptor left for two seconds, and few at all. Its exit status
 * tells. */
static void run_poor_rank(const char *url) {
    enum { FEW = 16 };
    rank_group group = {.size = 2, .level = CLT_SECURITY_TLS};
    rank_thread self = {.group = &group, .size = 2};
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    int taken[2 * FEW], n = 0;
    snprintf(self.url, sizeof self.url, "%s", url);
    struct rlimit limit = {(rlim_t)descriptors() + FEW, (rlim_t)descriptors() + FEW};
    setrlimit(RLIMIT_NOFILE, &limit);
    if (clt_thread_start(&self.thread, open_poor_rank, &self) < 0) _exit(1);
    read_address(url, address);
    while (n < 2 * FEW && (taken[n] = dup(0)) >= 0) n++;
    if (n == 2 * FEW) _exit(1);
    double before = processor_seconds();
    usleep(2000000);
    double used = processor_seconds() - before;
    while (n > 0) close(taken[--n]);
    clt_thread_join(self.thread);
    if (self.failure[0] || rank_gather(&self, 0) < 0) _exit(2);
    rank_close(&self);
    _exit(used > 0.3 ? 3 : 0); /* it slept */
}

static void test_no_descriptors(void **state) {
    (void)state;
    char address[CLT_RENDEZVOUS_VALUE_BYTES + 1], url[400];
    snprintf(url, sizeof url, "%s", ranks_new_store());
    pid_t poor = fork();
    if (poor == 0) run_poor_rank(url);
    read_address(url, address);
    int held[60], status;
    usleep(300000);
    for (int i = 0; i < 60; i++) held[i] = connect_raw(address);
    usleep(2000000);
    for (int i = 0; i < 30; i++)
        if (held[i] >= 0) close(held[i]); /* the others are still there when the rank comes */
    rank_group group = {.size = 2, .level = CLT_SECURITY_TLS, .body = quiet_work};
    rank_thread rank;
    start_rank(&rank, &group, 1, url);
    clt_thread_join(rank.thread);
    assert_string_equal(rank.failure, "");
    for (int i = 30; i < 60; i++)
        if (held[i] >= 0) close(held[i]);
    waitpid(poor, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attack),
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_stale_address),
        cmocka_unit_test(test_no_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
