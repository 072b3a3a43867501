#define _GNU_SOURCE
#include "tests/support.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/secure/socket.h"
#include "comm/secure/secure.h"
#include "runtime/base/thread.h"

static const char token[] = "the token of this test";

static clt_security *make_security(clt_comm_security level, const char *secret) {
    clt_security *security;
    assert_ok(clt_security_create(&security, level, secret, NULL, NULL, NULL));
    return security;
}

/* ---- two ends: one accepts on a thread of its own ---- */

typedef struct ends {
    const clt_security *security;
    int listener;
    char text[64];
    clt_socket *socket; /* the accepting end */
    clt_status status;
    char detail[400];
    clt_thread thread;
} ends;

static void *accept_one(void *argument) {
    ends *e = argument;
    struct pollfd one = {e->listener, POLLIN, 0};
    poll(&one, 1, 10000);
    int descriptor = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
    e->status = clt_socket_accepted(&e->socket, e->security, descriptor);
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    while (e->status == CLT_OK && (e->status = clt_socket_handshake(e->socket)) == CLT_END) {
        struct pollfd wait = {descriptor, clt_socket_events(e->socket, true, false), 0};
        if (clt_seconds() > deadline) break;
        poll(&wait, 1, 100);
        e->status = CLT_OK;
    }
    if (e->status != CLT_OK) snprintf(e->detail, sizeof e->detail, "%s", clt_error_detail());
    /* Who was refused gets to know it. */
    if (e->status != CLT_OK) clt_socket_destroy(e->socket), e->socket = NULL;
    return NULL;
}

static void start(ends *e, const clt_security *security, const char *network) {
    *e = (ends){.security = security};
    assert_ok(clt_listen(network, NULL, NULL, &e->listener, e->text));
    assert_ok(clt_thread_start(&e->thread, accept_one, e));
}

static clt_status finish(ends *e, const clt_security *security, clt_socket **connecting) {
    struct sockaddr_storage address;
    socklen_t bytes;
    assert_ok(clt_resolve(e->text, clt_seconds() + 30, &address, &bytes));
    clt_status status =
        clt_socket_connect(connecting, security, (struct sockaddr *)&address, bytes, clt_seconds() + WATCHDOG_SECONDS);
    clt_thread_join(e->thread);
    return status;
}

static void stop(ends *e, clt_socket *connecting) {
    clt_socket_destroy(connecting);
    clt_socket_destroy(e->socket);
    close(e->listener);
}

/* A connected plain socket that knows no protocol. */
static int connect_raw(const char *text) {
    struct sockaddr_storage address;
    socklen_t bytes;
    assert_ok(clt_resolve(text, clt_seconds() + 30, &address, &bytes));
    int s = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s, (struct sockaddr *)&address, bytes), 0);
    return s;
}

/* ---- bytes both ways ---- */

enum { MOST = 3000000 };

static uint8_t byte_at(size_t i, int end) {
    return (uint8_t)((i * 2654435761u >> 13) + (unsigned)end);
}

/* Writes and reads at once until all has gone and come. */
static void exchange(clt_socket *a, clt_socket *b, size_t bytes) {
    clt_socket *both[] = {a, b};
    uint8_t *sent[2], *got[2];
    size_t out[2] = {0}, in[2] = {0};
    for (int k = 0; k < 2; k++) {
        sent[k] = malloc(bytes + 1), got[k] = malloc(bytes + 1);
        for (size_t i = 0; i < bytes; i++) sent[k][i] = byte_at(i, k);
    }
    double deadline = clt_seconds() + WATCHDOG_SECONDS;
    while (in[0] < bytes || in[1] < bytes) {
        assert_true(clt_seconds() < deadline);
        for (int k = 0; k < 2; k++) {
            size_t moved, head = CLT_MIN(bytes - out[k], out[k] % 7);
            struct iovec pieces[] = {{sent[k] + out[k], head},
                                     {sent[k] + out[k] + head, bytes - out[k] - head}};
            assert_ok(clt_socket_write(both[k], pieces, 2, &moved));
            out[k] += moved;
            assert_ok(clt_socket_read(both[k], got[k] + in[k], CLT_MIN(bytes - in[k], 70001), &moved));
            in[k] += moved;
        }
    }
    for (int k = 0; k < 2; k++) {
        assert_memory_equal(got[k], sent[1 - k], bytes);
        free(got[k]);
    }
    free(sent[0]), free(sent[1]);
}

static void check_level(clt_comm_security level, const char *network) {
    clt_security *security = make_security(level, token);
    assert_int_equal(clt_security_level(security), level);
    ends e;
    clt_socket *connecting;
    start(&e, security, network);
    assert_ok(finish(&e, security, &connecting));
    assert_int_equal(e.status, CLT_OK);
    assert_string_equal(clt_socket_peer(connecting), e.text);
    exchange(connecting, e.socket, 1);
    exchange(connecting, e.socket, 2047);
    exchange(connecting, e.socket, MOST);
    char word[5] = "";
    assert_ok(clt_socket_write_all(connecting, "word", 5, clt_seconds() + WATCHDOG_SECONDS));
    assert_ok(clt_socket_read_all(e.socket, word, 5, clt_seconds() + WATCHDOG_SECONDS));
    assert_string_equal(word, "word");
    stop(&e, connecting);
    clt_security_destroy(security);
}

static void test_levels(void **state) {
    (void)state;
    check_level(CLT_SECURITY_TLS, NULL);
    check_level(CLT_SECURITY_AUTH, NULL);
    check_level(CLT_SECURITY_NONE, NULL);
    check_level(CLT_SECURITY_TLS, "lo");
}

static void test_ipv6(void **state) {
    (void)state;
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool there = probe >= 0 && bind(probe, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (probe >= 0) close(probe);
    if (!there) skip();
    check_level(CLT_SECURITY_TLS, "::1");
}

/* A whole conversation goes over many keys. */
static void test_keys_are_renewed(void **state) {
    (void)state;
    clt_security *security = make_security(CLT_SECURITY_TLS, token);
    security->rekey_bytes = 100000;
    ends e;
    clt_socket *connecting;
    start(&e, security, NULL);
    assert_ok(finish(&e, security, &connecting));
    exchange(connecting, e.socket, MOST);
    assert_true(connecting->keyed_bytes < 120000 && e.socket->keyed_bytes < 120000);
    stop(&e, connecting);
    clt_security_destroy(security);
}

/* What level tls sends cannot be read by the way, what level auth sends can. */
static bool travels_in_the_clear(clt_comm_security level) {
    static const char words[] = "words that only the other end should read";
    clt_security *security = make_security(level, token);
    ends e;
    clt_socket *connecting;
    start(&e, security, NULL);
    assert_ok(finish(&e, security, &connecting));
    assert_ok(clt_socket_write_all(connecting, words, sizeof words, clt_seconds() + WATCHDOG_SECONDS));
    char wire[400];
    ssize_t got = 0;
    for (int i = 0; i < 1000 && got < (ssize_t)sizeof words; i++) {
        got = recv(clt_socket_descriptor(e.socket), wire, sizeof wire, MSG_PEEK);
        usleep(1000);
    }
    assert_true(got >= (ssize_t)sizeof words);
    bool clear = memmem(wire, (size_t)got, words, 20) != NULL;
    stop(&e, connecting);
    clt_security_destroy(security);
    return clear;
}

static void test_encryption(void **state) {
    (void)state;
    assert_false(travels_in_the_clear(CLT_SECURITY_TLS));
    assert_true(travels_in_the_clear(CLT_SECURITY_AUTH));
}

/* ---- who is not let in ---- */

static void check_wrong_token(clt_comm_security level) {
    clt_security *right = make_security(level, token),
                 *wrong = make_security(level, "another token of 16");
    ends e;
    clt_socket *connecting;
    start(&e, right, NULL);
    assert_status(finish(&e, wrong, &connecting), CLT_E_DENIED);
    assert_detail(e.text);
    assert_null(connecting);
    assert_int_equal(e.status, CLT_E_DENIED);
    assert_non_null(strstr(e.detail, "127.0.0.1:"));
    stop(&e, connecting);
    clt_security_destroy(right), clt_security_destroy(wrong);
}

static void test_wrong_token(void **state) {
    (void)state;
    check_wrong_token(CLT_SECURITY_TLS);
    check_wrong_token(CLT_SECURITY_AUTH);
}

/* Sends bytes, perhaps closes, and tells how the accepting end took it. */
static clt_status accept_bytes(const clt_security *security, const void *bytes, size_t length,
                               char detail[400]) {
    ends e;
    start(&e, security, NULL);
    int raw = connect_raw(e.text);
    assert_int_equal(send(raw, bytes, length, MSG_NOSIGNAL), length);
    shutdown(raw, SHUT_WR);
    clt_thread_join(e.thread);
    close(raw);
    stop(&e, NULL);
    memcpy(detail, e.detail, 400);
    return e.status;
}

static void test_strangers(void **state) {
    (void)state;
    clt_security *security = make_security(CLT_SECURITY_TLS, token);
    char detail[400], garbage[3000];
    for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (char)byte_at(i, 3);
    assert_int_equal(accept_bytes(security, garbage, sizeof garbage, detail), CLT_E_DENIED);
    assert_int_equal(accept_bytes(security, "GET / HTTP/1.0\r\n\r\n", 18, detail), CLT_E_DENIED);
    assert_int_equal(accept_bytes(security, "", 0, detail), CLT_E_NETWORK);
    assert_non_null(strstr(detail, "closed"));
    /* A record's header that promises more than comes. */
    assert_int_equal(accept_bytes(security, "\x16\x03\x01\x40\x00xx", 7, detail), CLT_E_NETWORK);
    clt_security_destroy(security);
}

/* Somebody who speaks TLS but has neither token nor certificate. */
static void test_tls_without_a_key(void **state) {
    (void)state;
    clt_security *security = make_security(CLT_SECURITY_TLS, token);
    ends e;
    start(&e, security, NULL);
    int raw = connect_raw(e.text);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, raw);
    assert_true(SSL_connect(ssl) <= 0);
    clt_thread_join(e.thread);
    assert_int_equal(e.status, CLT_E_DENIED);
    SSL_free(ssl), SSL_CTX_free(context), close(raw);
    stop(&e, NULL);
    clt_security_destroy(security);
}

static void test_deadline(void **state) {
    (void)state;
    clt_security *security = make_security(CLT_SECURITY_TLS, token);
    int listener;
    char text[64];
    struct sockaddr_storage address;
    socklen_t bytes;
    clt_socket *connecting;
    assert_ok(clt_listen(NULL, NULL, NULL, &listener, text));
    assert_ok(clt_resolve(text, clt_seconds() + 30, &address, &bytes));
    assert_status( /* nobody accepts */
        clt_socket_connect(&connecting, security, (struct sockaddr *)&address, bytes, clt_seconds() + 0.3),
        CLT_E_TIMEOUT);
    assert_detail(text);
    close(listener);
    assert_status(
        clt_socket_connect(&connecting, security, (struct sockaddr *)&address, bytes, clt_seconds() + WATCHDOG_SECONDS),
        CLT_E_NETWORK);
    assert_detail(text);
    clt_security_destroy(security);
}

/* One in the middle who copies all bytes on and keeps those of the client. */
typedef struct relay {
    int listener;
    char text[64], *towards;
    uint8_t kept[20000];
    size_t length;
} relay;

static void *run_relay(void *argument) {
    relay *r = argument;
    struct pollfd one = {r->listener, POLLIN, 0};
    poll(&one, 1, 10000);
    int sides[] = {accept4(r->listener, NULL, NULL, SOCK_CLOEXEC), connect_raw(r->towards)};
    for (bool open = true; open;) {
        struct pollfd both[] = {{sides[0], POLLIN, 0}, {sides[1], POLLIN, 0}};
        open = poll(both, 2, 10000) > 0;
        for (int k = 0; k < 2; k++) {
            uint8_t data[4000];
            ssize_t got = both[k].revents ? recv(sides[k], data, sizeof data, 0) : -1;
            if (got == 0) open = false;
            if (got > 0) send(sides[1 - k], data, (size_t)got, MSG_NOSIGNAL);
            for (ssize_t i = 0; k == 0 && i < got && r->length < sizeof r->kept; i++)
                r->kept[r->length++] = data[i];
        }
    }
    close(sides[0]), close(sides[1]);
    return NULL;
}

/* A client's bytes, sent again by somebody else: without the key they lead nowhere. */
static void test_replay(void **state) {
    (void)state;
    clt_security *security = make_security(CLT_SECURITY_TLS, token);
    ends e;
    clt_socket *connecting;
    clt_thread thread;
    char own[64], detail[400];
    start(&e, security, NULL);
    memcpy(own, e.text, sizeof own);
    relay r = {.towards = own};
    assert_ok(clt_listen(NULL, NULL, NULL, &r.listener, r.text));
    assert_ok(clt_thread_start(&thread, run_relay, &r));
    memcpy(e.text, r.text, sizeof own);
    assert_ok(finish(&e, security, &connecting));
    assert_ok(clt_socket_write_all(connecting, "a secret order", 14, clt_seconds() + WATCHDOG_SECONDS));
    char order[14];
    assert_ok(clt_socket_read_all(e.socket, order, 14, clt_seconds() + WATCHDOG_SECONDS));
    stop(&e, connecting);
    clt_thread_join(thread);
    close(r.listener);
    assert_true(r.length > 100);
    assert_int_equal(accept_bytes(security, r.kept, r.length, detail), CLT_E_DENIED);
    clt_security_destroy(security);
}

/* Writing to who has gone is an error, not a signal. */
static void check_gone(clt_comm_security level) {
    clt_security *security = make_security(level, token);
    ends e;
    clt_socket *connecting;
    start(&e, security, NULL);
    assert_ok(finish(&e, security, &connecting));
    clt_socket_destroy(e.socket);
    e.socket = NULL;
    static const char much[100000];
    struct iovec piece = {(void *)(uintptr_t)much, sizeof much};
    clt_status status = CLT_OK;
    size_t moved;
    for (int i = 0; i < 100 && status == CLT_OK; i++, usleep(1000))
        status = clt_socket_write(connecting, &piece, 1, &moved);
    assert_int_equal(status, CLT_E_NETWORK);
    assert_detail(e.text);
    assert_status(clt_socket_read(connecting, &moved, 1, &moved), CLT_E_NETWORK);
    stop(&e, connecting);
    clt_security_destroy(security);
}

static void test_gone(void **state) {
    (void)state;
    check_gone(CLT_SECURITY_TLS);
    check_gone(CLT_SECURITY_AUTH);
    check_gone(CLT_SECURITY_NONE);
}

/* ---- certificates ---- */

typedef struct authority {
    EVP_PKEY *key;
    X509 *certificate;
} authority;

static X509 *sign(EVP_PKEY *key, const char *name, const authority *by, EVP_PKEY *with) {
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), by ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(x, by ? X509_get_subject_name(by->certificate) : X509_get_subject_name(x));
    X509_EXTENSION *basic =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, by ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(x, basic, -1);
    X509_EXTENSION_free(basic);
    assert_true(X509_sign(x, with, EVP_sha256()) > 0);
    return x;
}

static void write_certificate(const char *path, X509 *x) {
    FILE *file = fopen(path, "w");
    assert_int_equal(PEM_write_X509(file, x), 1);
    fclose(file);
}

/* An authority NAME.ca and a rank's NAME.crt and NAME.key of it. */
static void make_files(const char *name, char ca[300], char crt[300], char key[300]) {
    snprintf(ca, 300, "%s/%s.ca", support_folder(), name);
    snprintf(crt, 300, "%s/%s.crt", support_folder(), name);
    snprintf(key, 300, "%s/%s.key", support_folder(), name);
    authority own = {.key = EVP_EC_gen("P-256")};
    own.certificate = sign(own.key, name, NULL, own.key);
    EVP_PKEY *rank = EVP_EC_gen("P-256");
    X509 *x = sign(rank, "rank", &own, own.key);
    write_certificate(ca, own.certificate);
    write_certificate(crt, x);
    FILE *file = fopen(key, "w");
    assert_int_equal(PEM_write_PrivateKey(file, rank, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(x), X509_free(own.certificate), EVP_PKEY_free(rank), EVP_PKEY_free(own.key);
}

static void check_certificates(const clt_security *server, const clt_security *client,
                               clt_status wanted) {
    ends e;
    clt_socket *connecting;
    start(&e, server, NULL);
    assert_status(finish(&e, client, &connecting), wanted);
    assert_int_equal(e.status, wanted);
    if (wanted == CLT_OK) exchange(connecting, e.socket, 50000);
    stop(&e, connecting);
}

static void test_certificates(void **state) {
    (void)state;
    char ca[2][300], crt[2][300], key[2][300];
    make_files("ours", ca[0], crt[0], key[0]);
    make_files("theirs", ca[1], crt[1], key[1]);
    for (int level = CLT_SECURITY_TLS; level <= CLT_SECURITY_AUTH; level++) {
        clt_security *right, *wrong, *half, *with_token = make_security(level, token);
        assert_ok(clt_security_create(&right, level, NULL, crt[0], key[0], ca[0]));
        assert_ok(clt_security_create(&wrong, level, NULL, crt[1], key[1], ca[1]));
        assert_ok(
            clt_security_create(&half, level, NULL, crt[1], key[1], ca[0])); /* trusts us, is not ours */
        check_certificates(right, right, CLT_OK);
        check_certificates(right, wrong, CLT_E_DENIED);
        check_certificates(right, half, CLT_E_DENIED);
        check_certificates(half, right, CLT_E_DENIED);
        check_certificates(right, with_token, CLT_E_DENIED);
        check_certificates(with_token, right, CLT_E_DENIED);
        clt_security_destroy(right), clt_security_destroy(wrong);
        clt_security_destroy(half), clt_security_destroy(with_token);
    }
}

static void test_bad_options(void **state) {
    (void)state;
    clt_security *security;
    assert_status(clt_security_create(&security, CLT_SECURITY_TLS, NULL, NULL, NULL, NULL),
                  CLT_E_INVALID);
    assert_detail("CLTRAIN_COMM_TOKEN");
    assert_status(clt_security_create(&security, CLT_SECURITY_AUTH, "short", NULL, NULL, NULL),
                  CLT_E_INVALID);
    assert_detail("5 characters");
    assert_status(clt_security_create(&security, CLT_SECURITY_TLS, token, "a", NULL, NULL),
                  CLT_E_INVALID);
    assert_detail("no key");
    assert_status(
        clt_security_create(&security, CLT_SECURITY_TLS, NULL, "/no/file", "/no/file", "/no/file"),
        CLT_E_INVALID);
    assert_detail("/no/file");
    assert_status(clt_security_create(&security, CLT_SECURITY_DEFAULT, token, NULL, NULL, NULL),
                  CLT_E_INVALID);
    assert_null(security);
}

/* ---- the log ---- */

static struct {
    clt_mutex lock;
    int lines;
    char last[500];
} logged;

static void keep_log(clt_log_level level, const char *message, void *user) {
    (void)user;
    if (level > CLT_LOG_WARNING) return;
    clt_mutex_lock(&logged.lock);
    logged.lines++;
    snprintf(logged.last, sizeof logged.last, "%s", message);
    clt_mutex_unlock(&logged.lock);
}

static void test_log(void **state) {
    (void)state;
    assert_ok(clt_mutex_init(&logged.lock));
    clt_log_set(keep_log, CLT_LOG_WARNING, NULL);
    clt_security *security = make_security(CLT_SECURITY_NONE, NULL);
    assert_int_equal(logged.lines, 1);
    assert_non_null(strstr(logged.last, "NOT PROTECTED"));
    logged.lines = 0;
    for (int i = 0; i < 2000; i++) clt_log_refusal(security, "192.0.2.7:80", "no manners");
    assert_true(logged.lines >= 5 && logged.lines <= 50);
    clt_security_destroy(security);
    assert_non_null(strstr(logged.last, "192.0.2.7:80"));
    assert_non_null(strstr(logged.last, "more connections"));
    clt_log_set(NULL, CLT_LOG_WARNING, NULL);
    clt_mutex_destroy(&logged.lock);
}

/* ---- addresses ---- */

static unsigned port_of(const char *text) {
    return (unsigned)atoi(strrchr(text, ':') + 1);
}

static void test_listen(void **state) {
    (void)state;
    int a, b;
    char text[64], other[64], range[32];
    assert_ok(clt_listen(NULL, "127.0.0.1:80", NULL, &a, text));
    assert_memory_equal(text, "127.0.0.1:", 10);
    unsigned port = port_of(text);
    snprintf(range, sizeof range, "%u", port);
    assert_status(clt_listen(NULL, NULL, range, &b, other), CLT_E_INVALID); /* taken */
    assert_detail(range);
    snprintf(range, sizeof range, "%u-%u", port, CLT_MIN(port + 20, 65535));
    if (port < 65535) {
        assert_ok(clt_listen("127.0.0.1", NULL, range, &b, other));
        assert_true(port_of(other) > port && port_of(other) <= port + 20);
        close(b);
    }
    close(a);
    static const char *wrong[] = {"x", "1-", "-1", "0", "65536", "9-8", "1-2-3", "123456-123457", " 1"};
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++) {
        assert_status(clt_listen(NULL, NULL, wrong[i], &a, text), CLT_E_INVALID);
        assert_detail(wrong[i]);
    }
    assert_status(clt_listen("nosuch0", NULL, NULL, &a, text), CLT_E_INVALID);
    assert_detail("nosuch0");
    assert_detail(" lo");
    assert_status(clt_listen("192.0.2.77", NULL, NULL, &a, text), CLT_E_INVALID);
    assert_detail("192.0.2.77");
    assert_status(clt_listen("0.0.0.0", NULL, NULL, &a, text), CLT_E_INVALID);
}

static void test_resolve(void **state) {
    (void)state;
    struct sockaddr_storage address;
    socklen_t bytes;
    assert_ok(clt_resolve("127.0.0.1:80", clt_seconds() + 30, &address, &bytes));
    assert_int_equal(address.ss_family, AF_INET);
    assert_int_equal(ntohs(((struct sockaddr_in *)&address)->sin_port), 80);
    assert_ok(clt_resolve("[::1]:65535", clt_seconds() + 30, &address, &bytes));
    assert_int_equal(address.ss_family, AF_INET6);
    assert_ok(clt_resolve("localhost:1", clt_seconds() + 30, &address, &bytes));
    assert_status(clt_resolve("no.such.host.invalid:1", clt_seconds() + 30, &address, &bytes), CLT_E_NETWORK);
    assert_detail("no.such.host.invalid");
    static const char *wrong[] = {"",       ":",          "host", "host:",   ":80",
                                  "host:0", "host:70000", "[::1", "[::1]80", "::1"};
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++)
        assert_true(clt_resolve(wrong[i], clt_seconds() + 30, &address, &bytes) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_keys_are_renewed),
        cmocka_unit_test(test_encryption),
        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_tls_without_a_key),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_resolve),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    OPENSSL_thread_stop();
    return failed;
}
