/* All stores through the same cases. */
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/rendezvous/tcp_server.h"
#include "runtime/base/thread.h"

/* A store under test: how to open it once more, as another process would. */
typedef struct fixture {
    const char *name;
    clt_status (*open)(clt_rendezvous **rendezvous, const char *job);
    bool (*begin)(void); /* false: not here */
    void (*end)(void);
} fixture;

static double soon(void) {
    return clt_seconds() + WATCHDOG_SECONDS;
}

static clt_rendezvous *open_store(const fixture *f, const char *job) {
    clt_rendezvous *rendezvous;
    assert_ok(f->open(&rendezvous, job));
    return rendezvous;
}

static void assert_value(clt_rendezvous *r, const char *key, const char *wanted) {
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(clt_rendezvous_get(r, key, value, &bytes, soon()));
    assert_int_equal(bytes, strlen(wanted));
    assert_memory_equal(value, wanted, bytes);
}

static void set(clt_rendezvous *r, const char *key, const char *value) {
    assert_ok(clt_rendezvous_set(r, key, value, strlen(value), soon()));
}

/* ---- the cases ---- */

static void case_set_get_remove(const fixture *f) {
    clt_rendezvous *a = open_store(f, "basic"), *b = open_store(f, "basic");
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_int_equal(clt_rendezvous_look(b, "x", value, &bytes, soon()), CLT_END);
    set(a, "x", "one");
    assert_value(b, "x", "one");
    set(b, "x", "two, longer");
    assert_value(a, "x", "two, longer");
    set(a, "x", "");
    assert_value(b, "x", "");
    assert_ok(clt_rendezvous_look(b, "x", value, &bytes, soon()));
    assert_ok(clt_rendezvous_remove(b, "x", soon()));
    assert_ok(clt_rendezvous_remove(b, "x", soon()));
    assert_int_equal(clt_rendezvous_look(a, "x", value, &bytes, soon()), CLT_END);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
}

static void case_values(const fixture *f) {
    clt_rendezvous *r = open_store(f, "values");
    char value[CLT_RENDEZVOUS_VALUE_BYTES + 1], back[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    for (size_t i = 0; i < sizeof value; i++) value[i] = (char)(i * 7); /* zeros too */
    assert_ok(clt_rendezvous_set(r, "full", value, CLT_RENDEZVOUS_VALUE_BYTES, soon()));
    assert_ok(clt_rendezvous_get(r, "full", back, &bytes, soon()));
    assert_int_equal(bytes, CLT_RENDEZVOUS_VALUE_BYTES);
    assert_memory_equal(value, back, bytes);
    assert_status(clt_rendezvous_set(r, "full", value, CLT_RENDEZVOUS_VALUE_BYTES + 1, soon()), CLT_E_INVALID);
    assert_detail("4097 bytes");
    assert_status(clt_rendezvous_set_once(r, "other", value, CLT_RENDEZVOUS_VALUE_BYTES + 1, NULL, NULL, soon()), CLT_E_INVALID);
    clt_rendezvous_close(r);
}

/* Names that a folder or a protocol might trip over are keys like others, and no two are one. */
static void case_keys(const fixture *f) {
    clt_rendezvous *r = open_store(f, "../ä /%2F*");
    char longest[2][CLT_RENDEZVOUS_KEY_BYTES + 2];
    memset(longest, '/', sizeof longest);
    longest[0][CLT_RENDEZVOUS_KEY_BYTES] = longest[1][CLT_RENDEZVOUS_KEY_BYTES] = 0;
    longest[1][CLT_RENDEZVOUS_KEY_BYTES - 1] = 'x';
    const char *const keys[] = {".", "..", "../x", "/", "//", "a/b", "a+b", "a b", "a%2Fb", "a\r\nb", "\x01\xff", "A", "a", "*", "?",
                                longest[0], longest[1]};
    for (size_t i = 0; i < CLT_COUNT_OF(keys); i++) set(r, keys[i], keys[i]);
    for (size_t i = 0; i < CLT_COUNT_OF(keys); i++) assert_value(r, keys[i], keys[i]);
    assert_status(clt_rendezvous_set(r, "", "x", 1, soon()), CLT_E_INVALID);
    longest[0][CLT_RENDEZVOUS_KEY_BYTES] = 'x';
    longest[0][CLT_RENDEZVOUS_KEY_BYTES + 1] = 0;
    assert_status(clt_rendezvous_set(r, longest[0], "x", 1, soon()), CLT_E_INVALID);
    clt_rendezvous_close(r);
}

static void case_jobs_are_apart(const fixture *f) {
    clt_rendezvous *a = open_store(f, "job"), *b = open_store(f, "job/x"), *c = open_store(f, NULL);
    char value[CLT_RENDEZVOUS_VALUE_BYTES], name[CLT_STORE_JOB_BYTES + 2];
    size_t bytes;
    set(a, "x/y", "a");
    assert_int_equal(clt_rendezvous_look(b, "y", value, &bytes, soon()), CLT_END);
    assert_int_equal(clt_rendezvous_look(c, "x/y", value, &bytes, soon()), CLT_END);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
    clt_rendezvous_close(c);
    memset(name, '/', sizeof name);
    name[CLT_STORE_JOB_BYTES + 1] = 0;
    assert_status(f->open(&a, name), CLT_E_INVALID);
    assert_detail("the job's name has 128 characters");
    name[CLT_STORE_JOB_BYTES] = 0;
    assert_ok(f->open(&a, name));
    set(a, "x", "long");
    assert_value(a, "x", "long");
    clt_rendezvous_close(a);
}

static void case_set_once(const fixture *f) {
    clt_rendezvous *a = open_store(f, "once"), *b = open_store(f, "once");
    char stands[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes = 99;
    assert_ok(clt_rendezvous_set_once(a, "k", "first", 5, stands, &bytes, soon()));
    assert_int_equal(bytes, 5);
    assert_memory_equal(stands, "first", 5);
    assert_ok(clt_rendezvous_set_once(b, "k", "second!", 7, stands, &bytes, soon()));
    assert_int_equal(bytes, 5);
    assert_memory_equal(stands, "first", 5);
    assert_ok(clt_rendezvous_set_once(b, "k", "third", 5, NULL, NULL, soon()));
    assert_value(b, "k", "first");
    assert_ok(clt_rendezvous_set_once(a, "empty", "", 0, stands, &bytes, soon()));
    assert_int_equal(bytes, 0);
    assert_ok(clt_rendezvous_set_once(b, "empty", "x", 1, stands, &bytes, soon()));
    assert_int_equal(bytes, 0);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
}

static void case_get_waits(const fixture *f) {
    clt_rendezvous *r = open_store(f, "waits");
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    double begin = clt_seconds();
    assert_status(clt_rendezvous_get(r, "never", value, &bytes, begin + 0.3), CLT_E_TIMEOUT);
    assert_detail("never");
    assert_true(clt_seconds() - begin >= 0.29);
    set(r, "there", "x"); /* and the store is still of use */
    assert_value(r, "there", "x");
    clt_rendezvous_close(r);
}

/* ---- several threads, each as a process of its own ---- */

enum { RACERS = 6, ROUNDS = 40 };

typedef struct racer {
    const fixture *f;
    int number;
    clt_status status;
    char won[ROUNDS], saw[ROUNDS];
    clt_thread thread;
} racer;

static clt_status race(racer *me, clt_rendezvous *r) {
    for (int i = 0; i < ROUNDS; i++) {
        char key[32], own[2] = {(char)('a' + me->number), (char)i}, stands[CLT_RENDEZVOUS_VALUE_BYTES], got[CLT_RENDEZVOUS_VALUE_BYTES];
        size_t bytes, got_bytes;
        snprintf(key, sizeof key, "race/%d", i);
        CLT_TRY(clt_rendezvous_set_once(r, key, own, 2, stands, &bytes, soon()));
        if (bytes != 2 || stands[1] != (char)i) return clt_fail(CLT_E_MISMATCH, "round %d: a value that nobody wrote", i);
        me->won[i] = stands[0] == own[0];
        me->saw[i] = stands[0];
        CLT_TRY(clt_rendezvous_get(r, key, got, &got_bytes, soon()));
        if (got_bytes != 2 || got[0] != stands[0]) return clt_fail(CLT_E_MISMATCH, "round %d: the value changed", i);
    }
    return CLT_OK;
}

static void *run_racer(void *argument) {
    racer *me = argument;
    clt_rendezvous *r;
    me->status = me->f->open(&r, "race");
    if (me->status < 0) return NULL;
    me->status = race(me, r);
    clt_rendezvous_close(r);
    return NULL;
}

static void case_race(const fixture *f) {
    static racer racers[RACERS];
    memset(racers, 0, sizeof racers);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (racer){.f = f, .number = i};
        assert_ok(clt_thread_start(&racers[i].thread, run_racer, &racers[i]));
    }
    for (int i = 0; i < RACERS; i++) clt_thread_join(racers[i].thread);
    for (int i = 0; i < RACERS; i++) assert_int_equal(racers[i].status, CLT_OK);
    for (int round = 0; round < ROUNDS; round++) {
        int winners = 0;
        for (int i = 0; i < RACERS; i++) {
            winners += racers[i].won[round];
            assert_int_equal(racers[i].saw[round], racers[0].saw[round]);
        }
        assert_int_equal(winners, 1);
    }
}

typedef struct giver {
    const fixture *f;
    clt_status status;
} giver;

static void *give_late(void *argument) {
    giver *g = argument;
    clt_rendezvous *r;
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    g->status = g->f->open(&r, "late");
    if (g->status < 0) return NULL;
    g->status = clt_rendezvous_set(r, "gift", "here", 4, soon());
    clt_rendezvous_close(r);
    return NULL;
}

static void case_get_what_comes_later(const fixture *f) {
    clt_rendezvous *r = open_store(f, "late");
    giver g = {.f = f};
    clt_thread thread;
    assert_ok(clt_thread_start(&thread, give_late, &g));
    assert_value(r, "gift", "here");
    clt_thread_join(thread);
    assert_int_equal(g.status, CLT_OK);
    clt_rendezvous_close(r);
}

/* A reader that looks while a writer replaces never sees a part of a value. */
static void *replace_often(void *argument) {
    giver *g = argument;
    clt_rendezvous *r;
    static char value[CLT_RENDEZVOUS_VALUE_BYTES];
    g->status = g->f->open(&r, "whole");
    for (int i = 1; g->status == CLT_OK && i <= 150; i++) {
        memset(value, i, sizeof value);
        g->status = clt_rendezvous_set(r, "v", value, sizeof value / (size_t)(i % 3 + 1), soon());
    }
    if (g->status == CLT_OK) g->status = clt_rendezvous_set(r, "done", "", 0, soon());
    clt_rendezvous_close(r);
    return NULL;
}

static void case_values_are_whole(const fixture *f) {
    clt_rendezvous *r = open_store(f, "whole");
    giver g = {.f = f};
    clt_thread thread;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(clt_thread_start(&thread, replace_often, &g));
    while (clt_rendezvous_look(r, "done", value, &bytes, soon()) == CLT_END) {
        clt_status status = clt_rendezvous_look(r, "v", value, &bytes, soon());
        if (status == CLT_END) continue;
        assert_ok(status);
        assert_int_equal(bytes, sizeof value / (size_t)((unsigned char)value[0] % 3 + 1));
        for (size_t i = 1; i < bytes; i++) assert_int_equal(value[i], value[0]);
    }
    clt_thread_join(thread);
    assert_int_equal(g.status, CLT_OK);
    clt_rendezvous_close(r);
}

static void run_cases(const fixture *f) {
    static void (*const cases[])(const fixture *) = {
        case_set_get_remove, case_values, case_keys, case_jobs_are_apart, case_set_once, case_get_waits, case_race,
        case_get_what_comes_later, case_values_are_whole};
    if (f->begin && !f->begin()) skip();
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) cases[i](f);
    if (f->end) f->end();
}

/* ---- files ---- */

static clt_status open_url(clt_rendezvous **rendezvous, const char *url, const char *job) {
    return clt_rendezvous_open(rendezvous, &(clt_rendezvous_options){.url = url, .job = job, .connect_seconds = WATCHDOG_SECONDS});
}

static char folder_url[8300];

static clt_status open_file(clt_rendezvous **rendezvous, const char *job) {
    return open_url(rendezvous, folder_url, job);
}

static void name_folder(const char *name) {
    snprintf(folder_url, sizeof folder_url, "file://%s", support_path(name));
}

static void test_file(void **state) {
    (void)state;
    name_folder("deep/er/st%6Fre");
    run_cases(&(fixture){.name = "file", .open = open_file});
    assert_int_equal(access(support_path("deep/er/store"), F_OK), 0);
}

/* What others lay into the folder neither blocks, nor is followed, nor fills the memory. */
static void test_hostile_folder(void **state) {
    (void)state;
    name_folder("hostile");
    clt_rendezvous *r;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(open_file(&r, "j"));
    support_write(support_path("secret"), "secret", 6);
    assert_int_equal(symlink(support_path("secret"), support_path("hostile/k.j+link")), 0);
    assert_status(clt_rendezvous_look(r, "link", value, &bytes, soon()), CLT_E_IO);
    assert_int_equal(mkfifo(support_path("hostile/k.j+fifo"), 0600), 0);
    assert_status(clt_rendezvous_look(r, "fifo", value, &bytes, soon()), CLT_E_IO);
    assert_detail("not a regular file");
    assert_int_equal(mkdir(support_path("hostile/k.j+folder"), 0700), 0);
    assert_status(clt_rendezvous_look(r, "folder", value, &bytes, soon()), CLT_E_IO);
    static char large[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    support_write(support_path("hostile/k.j+large"), large, sizeof large);
    assert_status(clt_rendezvous_look(r, "large", value, &bytes, soon()), CLT_E_FORMAT);
    assert_detail("hostile/k.j+large: more than the 4096 bytes");
    assert_status(clt_rendezvous_set_once(r, "large", "x", 1, value, &bytes, soon()), CLT_E_FORMAT);
    clt_rendezvous_set(r, "link", "x", 1, soon()); /* replaces the link, not what it names */
    assert_value(r, "link", "x");
    struct stat facts;
    assert_int_equal(stat(support_path("secret"), &facts), 0);
    assert_int_equal(facts.st_size, 6);
    clt_rendezvous_close(r);
}

static void test_urls(void **state) {
    (void)state;
    clt_rendezvous *r;
    assert_status(open_url(&r, NULL, "j"), CLT_E_INVALID);
    assert_detail("no store is named");
    assert_status(open_url(&r, "http://user:secret@x", "j"), CLT_E_INVALID);
    assert_detail("begins with 'http': expected tcp://, file:// or redis://");
    assert_null(strstr(clt_error_detail(), "secret"));
    assert_status(open_url(&r, "file://relative", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///tmp/%zz", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///tmp/%00", "j"), CLT_E_INVALID);
    assert_status(open_url(&r, "file:///dev/null", "j"), CLT_E_IO);
    assert_detail("/dev/null");
    assert_status(open_url(&r, "file:///dev/null/x", "j"), CLT_E_IO);
    clt_rendezvous_close(NULL);
    char text[8] = "a%41%2f";
    assert_ok(clt_url_decode(text));
    assert_string_equal(text, "aA/");
    char out[8];
    assert_true(clt_url_encode("a b_", out, 7));
    assert_string_equal(out, "a%20b_");
    assert_false(clt_url_encode("a b_", out, 6));
}

/* ---- sockets, for those below ---- */

static int listen_anywhere(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s >= 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(s, 16), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &bytes), 0);
    *port = ntohs(address.sin_port);
    return s;
}

static int connect_raw(int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s >= 0);
    assert_int_equal(connect(s, (struct sockaddr *)&address, sizeof address), 0);
    struct timeval limit = {6, 0}; /* less than any stranger has */
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return s;
}

/* A server of something else: answers every connection with the same bytes, `NULL` with none, and keeps it open. */
typedef struct other_server {
    int listener, port;
    const char *says;
    size_t bytes;
    clt_thread thread;
} other_server;

static void *run_other(void *argument) {
    other_server *o = argument;
    int held[64], n = 0;
    char byte;
    for (int s; n < 64 && (s = accept(o->listener, NULL, NULL)) >= 0; held[n++] = s) {
        if (!o->says || recv(s, &byte, 1, 0) != 1) continue;
        if (send(s, o->says, o->bytes, MSG_NOSIGNAL) < 0) continue;
    }
    while (n) close(held[--n]);
    return NULL;
}

static void begin_other(other_server *o, const char *says, size_t bytes) {
    *o = (other_server){.says = says, .bytes = bytes};
    o->listener = listen_anywhere(&o->port);
    assert_ok(clt_thread_start(&o->thread, run_other, o));
}

static void end_other(other_server *o) {
    shutdown(o->listener, SHUT_RDWR);
    clt_thread_join(o->thread);
    close(o->listener);
}

/* ---- tcp ---- */

static clt_security *security;
static clt_rendezvous *serving;
static char tcp_url[100];

static clt_status open_tcp_with(clt_rendezvous **rendezvous, const char *job, const clt_security *with, const char *url, bool serve,
                                double seconds) {
    return clt_rendezvous_open(rendezvous, &(clt_rendezvous_options){.url = url, .job = job, .security = with, .serve = serve,
                                                                     .connect_seconds = seconds});
}

static clt_status open_tcp(clt_rendezvous **rendezvous, const char *job) {
    return open_tcp_with(rendezvous, job, security, tcp_url, false, 10);
}

static bool begin_tcp_at(clt_comm_security level) {
    assert_ok(clt_security_create(&security, level, "a token of this test alone", NULL, NULL, NULL));
    assert_ok(open_tcp_with(&serving, "server", security, "tcp://127.0.0.1:0", true, 10));
    snprintf(tcp_url, sizeof tcp_url, "%s", clt_rendezvous_url(serving));
    assert_string_not_equal(tcp_url, "tcp://127.0.0.1:0");
    return true;
}

static bool begin_tls(void) {
    return begin_tcp_at(CLT_SECURITY_TLS);
}

static bool begin_plain(void) {
    return begin_tcp_at(CLT_SECURITY_NONE);
}

static void end_tcp(void) {
    clt_rendezvous_close(serving);
    clt_security_destroy(security);
    serving = NULL;
    security = NULL;
}

static int tcp_port(void) {
    return atoi(strrchr(tcp_url, ':') + 1);
}

static void test_tcp(void **state) {
    (void)state;
    run_cases(&(fixture){.name = "tcp", .open = open_tcp, .begin = begin_tls, .end = end_tcp});
}

static void test_tcp_in_the_clear(void **state) {
    (void)state;
    run_cases(&(fixture){.name = "tcp", .open = open_tcp, .begin = begin_plain, .end = end_tcp});
}

static void test_tcp_token(void **state) {
    (void)state;
    begin_tls();
    clt_security *other;
    clt_rendezvous *r;
    assert_ok(clt_security_create(&other, CLT_SECURITY_TLS, "another token of this test", NULL, NULL, NULL));
    assert_status(open_tcp_with(&r, "j", other, tcp_url, false, FOREVER_SECONDS), CLT_E_DENIED); /* not tried again and again */
    assert_detail(tcp_url);
    clt_security_destroy(other);
    assert_ok(open_tcp(&r, "j"));
    set(r, "x", "still served");
    clt_rendezvous_close(r);
    end_tcp();
}

static void test_tcp_places(void **state) {
    (void)state;
    begin_tls();
    clt_rendezvous *r;
    char url[100];
    assert_status(open_tcp_with(&r, "j", security, tcp_url, true, 5), CLT_E_INVALID); /* taken */
    assert_detail(tcp_url);
    snprintf(url, sizeof url, "tcp://198.51.100.7:%d", tcp_port());
    assert_status(open_tcp_with(&r, "j", security, url, true, 5), CLT_E_INVALID); /* not of this host */
    assert_detail("198.51.100.7");
    assert_status(open_tcp_with(&r, "j", security, "tcp://127.0.0.1", false, 0.2), CLT_E_INVALID);
    assert_status(open_tcp_with(&r, "j", security, "tcp://127.0.0.1:x", true, 0.2), CLT_E_INVALID);
    assert_status(open_tcp_with(&r, "j", NULL, tcp_url, false, 0.2), CLT_E_INVALID);
    assert_ok(clt_rendezvous_open(&r, &(clt_rendezvous_options){.url = "tcp://localhost:0", .security = security, .serve = true,
                                                                .network = "lo", .connect_seconds = WATCHDOG_SECONDS}));
    clt_rendezvous_close(r);
    end_tcp();
}

/* It goes and comes back: who asked meanwhile gets the answer. */
static void *come_back(void *argument) {
    nanosleep(&(struct timespec){0, 500000000}, NULL);
    return open_tcp_with(argument, "server", security, tcp_url, true, 20) < 0 ? argument : NULL;
}

static void test_tcp_server_gone(void **state) {
    (void)state;
    begin_tls();
    clt_rendezvous *r;
    char value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(open_tcp(&r, "j"));
    set(r, "x", "before");
    clt_rendezvous_close(serving); /* waits for r, but not for long */
    assert_status(clt_rendezvous_set(r, "x", "", 0, clt_seconds() + 0.5), CLT_E_NETWORK);
    assert_detail("cannot be reached");
    assert_detail(tcp_url);
    assert_status(clt_rendezvous_get(r, "x", value, &bytes, clt_seconds() + 0.5), CLT_E_NETWORK);
    clt_thread thread;
    assert_ok(clt_thread_start(&thread, come_back, &serving));
    set(r, "x", "after");
    clt_thread_join(thread);
    assert_value(r, "x", "after");
    clt_rendezvous_close(r);
    end_tcp();
}

/* Whether the other end closes, or says something, rather than waits for more. */
static void assert_dropped(int s) {
    char bytes[256];
    ssize_t n;
    while ((n = recv(s, bytes, sizeof bytes, 0)) > 0) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) fail_msg("the stranger was not dropped");
    close(s);
}

static void send_raw(int s, const void *bytes, size_t n) {
    if (send(s, bytes, n, MSG_NOSIGNAL) < 0) assert_true(errno == EPIPE || errno == ECONNRESET);
}

static void send_head(int s, uint8_t code, uint16_t key_bytes, uint32_t value_bytes, const char *rest) {
    unsigned char head[CLT_TCP_HEAD_BYTES];
    clt_tcp_write_head(&(clt_tcp_head){code, key_bytes, value_bytes, 60000}, head);
    send_raw(s, head, sizeof head);
    send_raw(s, rest, strlen(rest));
}

static void assert_serves(void) {
    clt_rendezvous *r;
    assert_ok(open_tcp(&r, "j"));
    set(r, "after strangers", "x");
    assert_value(r, "after strangers", "x");
    clt_rendezvous_close(r);
}

static void send_garbage(void) {
    unsigned char garbage[3000];
    for (int i = 0; i < 60; i++) {
        int s = connect_raw(tcp_port());
        srand((unsigned)i);
        for (size_t k = 0; k < sizeof garbage; k++) garbage[k] = (unsigned char)(rand() >> 4);
        if (i % 3 == 0) memcpy(garbage, "GET / HTTP/1.1\r\n\r\n", 18);
        send_raw(s, garbage, i % 2 ? sizeof garbage : 64);
        if (i % 5 == 0) close(s);
        else assert_dropped(s);
    }
}

static void test_tcp_strangers(void **state) {
    (void)state;
    begin_tls();
    send_garbage();
    int held[200]; /* more than there may be: the first ones go, and not only when their time is up */
    for (int i = 0; i < 200; i++) held[i] = connect_raw(tcp_port());
    assert_serves();
    assert_dropped(held[0]);
    for (int i = 1; i < 200; i++) close(held[i]);
    assert_serves();
    end_tcp();
}

/* Without security a stranger is a client that does not speak well. */
static void test_tcp_bad_requests(void **state) {
    (void)state;
    begin_plain();
    send_garbage();
    static const struct {
        uint8_t code;
        uint16_t key_bytes;
        uint32_t value_bytes;
        const char *rest;
    } bad[] = {{0, 0, 0, ""},
               {7, 0, 0, ""},
               {CLT_TCP_SET, CLT_STORE_KEY_BYTES + 1, 0, ""},
               {CLT_TCP_SET, 1, CLT_RENDEZVOUS_VALUE_BYTES + 1, ""},
               {CLT_TCP_SET, 1, 0xffffffff, ""},
               {CLT_TCP_LOOK, 1, 0, "ab"},      /* a byte too many */
               {CLT_TCP_WAIT, 1, 0, "never"}};  /* and while it waits */
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) {
        int s = connect_raw(tcp_port());
        send_head(s, bad[i].code, bad[i].key_bytes, bad[i].value_bytes, bad[i].rest);
        assert_dropped(s);
    }
    int s = connect_raw(tcp_port()); /* one that goes in the middle, one that waits for ever */
    send_head(s, CLT_TCP_SET, 10, 10, "half");
    int waiting = connect_raw(tcp_port());
    send_head(waiting, CLT_TCP_WAIT, 1, 0, "z");
    close(s);
    assert_serves();
    close(waiting);
    assert_serves();
    end_tcp();
}

static void test_tcp_is_something_else(void **state) {
    (void)state;
    clt_security *plain;
    clt_rendezvous *r;
    other_server other;
    char url[100];
    assert_ok(clt_security_create(&plain, CLT_SECURITY_NONE, NULL, NULL, NULL, NULL));
    static const char *const says[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "CtS1\x07\0\0\0\0\0\0\0\0\0\0\0", "CtS1\x01\0\0\0\xff\xff\0\0\0\0\0\0"};
    for (size_t i = 0; i < CLT_COUNT_OF(says); i++) {
        begin_other(&other, says[i], i ? 16 : strlen(says[i]));
        snprintf(url, sizeof url, "tcp://127.0.0.1:%d", other.port);
        assert_status(open_tcp_with(&r, "j", plain, url, false, 5), CLT_E_FORMAT);
        assert_detail(url);
        end_other(&other);
    }
    begin_other(&other, NULL, 0); /* silent */
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", other.port);
    assert_status(open_tcp_with(&r, "j", plain, url, false, 0.5), CLT_E_NETWORK);
    end_other(&other);
    clt_security_destroy(plain);
}

static void test_tcp_table_is_bounded(void **state) {
    (void)state;
    clt_tcp_table *table;
    char key[32];
    static char value[CLT_RENDEZVOUS_VALUE_BYTES];
    assert_ok(clt_tcp_table_create(&table));
    int n = 0;
    while (clt_tcp_table_set(table, key, (size_t)sprintf(key, "%d", n), value, sizeof value) == CLT_OK) n++;
    assert_true(n > 15000 && n < 16500); /* 64 MiB */
    assert_detail("the store is full");
    clt_tcp_table_remove(table, "7", 1);
    assert_ok(clt_tcp_table_set(table, "7", 1, value, sizeof value));
    for (int i = 0; i < n; i++) clt_tcp_table_remove(table, key, (size_t)sprintf(key, "%d", i));
    for (n = 0; clt_tcp_table_set(table, key, (size_t)sprintf(key, "%d", n), "", 0) == CLT_OK;) n++;
    assert_int_equal(n, 65536);
    size_t bytes;
    assert_non_null(clt_tcp_table_find(table, "65535", 5, &bytes));
    assert_null(clt_tcp_table_find(table, "65536", 5, &bytes));
    clt_tcp_table_destroy(table);
}

/* ---- Redis ---- */

static pid_t redis;
static int redis_port;
static const char *redis_login = "default:p%40ss%2Fw%3A%20rd@", *redis_database = "/3";

static clt_status open_redis(clt_rendezvous **rendezvous, const char *job) {
    char url[300];
    snprintf(url, sizeof url, "redis://%s127.0.0.1:%d%s", redis_login, redis_port, redis_database);
    return open_url(rendezvous, url, job);
}

/* Its own server on a port that was free a moment ago. */
static void start_redis(void) {
    char port[16];
    snprintf(port, sizeof port, "%d", redis_port);
    redis = fork();
    assert_true(redis >= 0);
    if (redis) return;
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
           support_folder(), "--requirepass", "p@ss/w: rd", (char *)NULL);
    _exit(127);
}

static void stop_redis(void) {
    kill(redis, SIGKILL);
    waitpid(redis, NULL, 0);
    redis = 0;
}

static bool begin_redis(void) {
    close(listen_anywhere(&redis_port));
    support_folder();
    start_redis();
    clt_rendezvous *r;
    clt_status status = open_redis(&r, "begin"); /* tries until it is there */
    if (status == CLT_OK) clt_rendezvous_close(r);
    else stop_redis();
    if (status == CLT_E_UNSUPPORTED || access("/usr/bin/redis-server", X_OK)) return false;
    assert_ok(status);
    return true;
}

static void test_redis(void **state) {
    (void)state;
    run_cases(&(fixture){.name = "redis", .open = open_redis, .begin = begin_redis, .end = stop_redis});
}

static void test_redis_logins(void **state) {
    (void)state;
    if (!begin_redis()) skip();
    clt_rendezvous *a, *b;
    char url[200], value[CLT_RENDEZVOUS_VALUE_BYTES];
    size_t bytes;
    assert_ok(open_redis(&a, "j"));
    snprintf(url, sizeof url, "redis://:p%%40ss%%2Fw%%3A%%20rd@localhost:%d", redis_port);
    assert_ok(open_url(&b, url, "j"));
    set(a, "x", "in database 3");
    assert_int_equal(clt_rendezvous_look(b, "x", value, &bytes, soon()), CLT_END);
    clt_rendezvous_close(a);
    clt_rendezvous_close(b);
    static const char *const denied[] = {"", ":wrong@", "default:wrong@", "nobody:p%40ss%2Fw%3A%20rd@"};
    for (size_t i = 0; i < CLT_COUNT_OF(denied); i++) {
        snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", denied[i], redis_port);
        assert_status(open_url(&a, url, "j"), CLT_E_DENIED);
        assert_detail("redis://127.0.0.1:");
        assert_null(strstr(clt_error_detail(), "wrong@"));
    }
    snprintf(url, sizeof url, "redis://%s127.0.0.1:%d/99", redis_login, redis_port);
    assert_status(open_url(&a, url, "j"), CLT_E_IO);
    stop_redis();
}

static void test_redis_urls(void **state) {
    (void)state;
    static const char *const bad[] = {"redis://", "redis://:80", "redis://user@host", "redis://a:%zz@host", "redis://host/x",
                                      "redis://host/1/2", "redis://host/99999999999", "redis://a:b@", "redis://@host"};
    clt_rendezvous *r;
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) {
        clt_status status = open_url(&r, bad[i], "j");
        assert_true(status == CLT_E_INVALID || status == CLT_E_UNSUPPORTED);
        assert_null(strstr(clt_error_detail(), "zz"));
    }
}

static void test_redis_gone(void **state) {
    (void)state;
    if (!begin_redis()) skip();
    clt_rendezvous *r;
    assert_ok(open_redis(&r, "j"));
    set(r, "x", "before");
    stop_redis();
    assert_status(clt_rendezvous_set(r, "x", "", 0, clt_seconds() + 0.5), CLT_E_NETWORK); /* and no SIGPIPE */
    assert_detail("cannot be reached");
    start_redis();
    set(r, "x", "after");
    assert_value(r, "x", "after");
    clt_rendezvous_close(r);
    stop_redis();
}

static void test_redis_is_something_else(void **state) {
    (void)state;
    static const char *const says[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "*1000000000\r\n", "+OK\r\n+OK\r\n", "$1000000000\r\nx", "$-5\r\n",
                                       ":abc\r\n", "\xff\xfe", "$3\r\nabcdef"};
    other_server other;
    clt_rendezvous *r;
    char url[100], endless[20000];
    for (size_t i = 0; i <= CLT_COUNT_OF(says); i++) {
        memset(endless, 'x', sizeof endless);
        endless[0] = '+';
        bool last = i == CLT_COUNT_OF(says);
        begin_other(&other, last ? endless : says[i], last ? sizeof endless : strlen(says[i]));
        snprintf(url, sizeof url, "redis://127.0.0.1:%d", other.port);
        clt_status status = clt_rendezvous_open(&r, &(clt_rendezvous_options){.url = url, .connect_seconds = 0.3});
        if (status == CLT_E_UNSUPPORTED) skip();
        /* Half a reply is waited for, in vain. */
        if (i == 3) assert_int_equal(status, CLT_E_NETWORK);
        else assert_status(status, CLT_E_FORMAT);
        assert_detail(url);
        end_other(&other);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),         cmocka_unit_test(test_hostile_folder),   cmocka_unit_test(test_urls),
        cmocka_unit_test(test_tcp),          cmocka_unit_test(test_tcp_in_the_clear), cmocka_unit_test(test_tcp_token),
        cmocka_unit_test(test_tcp_places),   cmocka_unit_test(test_tcp_server_gone),  cmocka_unit_test(test_tcp_strangers),
        cmocka_unit_test(test_tcp_bad_requests), cmocka_unit_test(test_tcp_is_something_else),
        cmocka_unit_test(test_tcp_table_is_bounded), cmocka_unit_test(test_redis),    cmocka_unit_test(test_redis_logins),
        cmocka_unit_test(test_redis_urls),   cmocka_unit_test(test_redis_gone),       cmocka_unit_test(test_redis_is_something_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
