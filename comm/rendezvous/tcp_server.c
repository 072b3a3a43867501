/*
 * The tcp store's server: one thread, one poll. Who has not yet spoken as a client should is a stranger: there may be few of those, and none
 * for long, so that they do not keep the ranks out.
 */
#define _GNU_SOURCE /* accept4, pipe2 */
#include "comm/rendezvous/tcp_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/bytes.h"
#include "runtime/base/thread.h"

enum { MOST_CLIENTS = 8192, MOST_STRANGERS = 128, LONGEST_WAIT_MS = 10000 };
static const double stranger_seconds = 10, close_seconds = 2, accept_pause = 0.1;

typedef struct client {
    clt_socket *socket;
    bool shaking, known; /* its handshake is under way; it has made a request */
    bool waiting;        /* for the key of its request */
    bool gone;
    double since, until; /* when it came; for how long it waits */
    size_t received, to_send, sent;
    unsigned char request[CLT_TCP_REQUEST_BYTES], answer[CLT_TCP_ANSWER_BYTES];
} client;

struct clt_tcp_server {
    const clt_security *security;
    int listener, wake[2];
    char address[64];
    atomic_bool stopping;
    clt_thread thread;
    bool started;
    /* The thread's: */
    clt_tcp_table *table;
    client **clients;
    struct pollfd *polled;
    size_t n_clients, clients_capacity, polled_capacity;
    double accept_after; /* no accepting before: descriptors had run out */
    double end;          /* once it is stopping */
};

/* ---- heads ---- */

void clt_tcp_write_head(const clt_tcp_head *head, unsigned char bytes[CLT_TCP_HEAD_BYTES]) {
    clt_bytes_put(bytes, CLT_TCP_MAGIC, 4);
    clt_bytes_put(bytes + 4, head->code, 2);
    clt_bytes_put(bytes + 6, head->key_bytes, 2);
    clt_bytes_put(bytes + 8, head->value_bytes, 4);
    clt_bytes_put(bytes + 12, head->milliseconds, 4);
}

bool clt_tcp_read_head(clt_tcp_head *head, const unsigned char bytes[CLT_TCP_HEAD_BYTES]) {
    uint32_t code = (uint32_t)clt_bytes_get(bytes + 4, 2);
    *head = (clt_tcp_head){(uint8_t)code, (uint16_t)clt_bytes_get(bytes + 6, 2), (uint32_t)clt_bytes_get(bytes + 8, 4),
                           (uint32_t)clt_bytes_get(bytes + 12, 4)};
    return clt_bytes_get(bytes, 4) == CLT_TCP_MAGIC && code >= 1 && code <= CLT_TCP_REMOVE && head->key_bytes <= CLT_STORE_KEY_BYTES &&
           head->value_bytes <= CLT_RENDEZVOUS_VALUE_BYTES;
}

/* ---- answers ---- */

static void drop(clt_tcp_server *s, client *c, const char *why) {
    if (why) clt_log_refusal(s->security, clt_socket_peer(c->socket), why);
    c->gone = true;
}

static void send_more(clt_tcp_server *s, client *c) {
    struct iovec piece = {c->answer + c->sent, c->to_send - c->sent};
    size_t moved;
    if (clt_socket_write(c->socket, &piece, piece.iov_len > 0, &moved) < 0) {
        drop(s, c, NULL);
        return;
    }
    c->sent += moved;
    if (c->sent == c->to_send) c->sent = c->to_send = 0;
}

static void answer(clt_tcp_server *s, client *c, clt_tcp_answer code, const void *value, size_t bytes) {
    clt_tcp_write_head(&(clt_tcp_head){.code = (uint8_t)code, .value_bytes = (uint32_t)bytes}, c->answer);
    if (bytes) memcpy(c->answer + CLT_TCP_HEAD_BYTES, value, bytes);
    c->sent = 0;
    c->to_send = CLT_TCP_HEAD_BYTES + bytes;
    c->received = 0;
    c->waiting = false;
    send_more(s, c);
}

static const char *key_of(const client *c) {
    return (const char *)c->request + CLT_TCP_HEAD_BYTES;
}

/* Answers with the value, if there is one. */
static bool answer_value(clt_tcp_server *s, client *c, size_t key_bytes) {
    size_t bytes = 0;
    const void *value = clt_tcp_table_find(s->table, key_of(c), key_bytes, &bytes);
    if (value) answer(s, c, CLT_TCP_OK, value, bytes);
    return value;
}

/* Those who waited for a key that has come. */
static void answer_waiting(clt_tcp_server *s) {
    for (size_t i = 0; i < s->n_clients; i++) {
        client *c = s->clients[i];
        clt_tcp_head head;
        if (c->waiting && !c->gone && clt_tcp_read_head(&head, c->request)) answer_value(s, c, head.key_bytes);
    }
}

static void set_value(clt_tcp_server *s, client *c, const clt_tcp_head *head) {
    clt_status status = clt_tcp_table_set(s->table, key_of(c), head->key_bytes, key_of(c) + head->key_bytes, head->value_bytes);
    if (status < 0) {
        clt_log_message(CLT_LOG_WARNING, "the store at %s: %s: %s", s->address, clt_socket_peer(c->socket), clt_error_detail());
        answer(s, c, CLT_TCP_FULL, NULL, 0);
        return;
    }
    if (head->code == CLT_TCP_SET) answer(s, c, CLT_TCP_OK, NULL, 0);
    else answer_value(s, c, head->key_bytes);
    answer_waiting(s);
}

static void carry_out(clt_tcp_server *s, client *c, const clt_tcp_head *head) {
    switch (head->code) {
    case CLT_TCP_SET: set_value(s, c, head); return;
    case CLT_TCP_SET_ONCE:
        if (!answer_value(s, c, head->key_bytes)) set_value(s, c, head);
        return;
    case CLT_TCP_LOOK:
    case CLT_TCP_WAIT:
        if (answer_value(s, c, head->key_bytes)) return;
        c->waiting = head->code == CLT_TCP_WAIT && head->milliseconds > 0;
        c->until = clt_seconds() + CLT_MIN(head->milliseconds, LONGEST_WAIT_MS) * 1e-3;
        if (!c->waiting) answer(s, c, CLT_TCP_NONE, NULL, 0);
        return;
    case CLT_TCP_REMOVE: clt_tcp_table_remove(s->table, key_of(c), head->key_bytes); break;
    default: break;
    }
    answer(s, c, CLT_TCP_OK, NULL, 0);
}

/* ---- requests ---- */

/* One request, or a part of it. A client that sends before its answer is none. */
static void receive(clt_tcp_server *s, client *c) {
    size_t moved;
    unsigned char *at = c->request + c->received, extra;
    bool early = c->waiting || c->to_send;
    clt_tcp_head head;
    clt_status status = early ? clt_socket_read(c->socket, &extra, 1, &moved)
                              : clt_socket_read(c->socket, at, sizeof c->request - c->received, &moved);
    if (status < 0 || (early && moved)) {
        drop(s, c, status < 0 ? NULL : "sent more than a request to the store");
        return;
    }
    if (early) return;
    c->received += moved;
    if (c->received < CLT_TCP_HEAD_BYTES) return;
    if (!clt_tcp_read_head(&head, c->request)) {
        drop(s, c, "what it sent is not a request to the store");
        return;
    }
    size_t whole = (size_t)CLT_TCP_HEAD_BYTES + head.key_bytes + head.value_bytes;
    if (c->received < whole) return;
    if (c->received > whole) {
        drop(s, c, "sent more than a request to the store");
        return;
    }
    c->known = true;
    carry_out(s, c, &head);
}

static void shake(clt_tcp_server *s, client *c) {
    clt_status status = clt_socket_handshake(c->socket);
    if (status < 0) drop(s, c, clt_error_detail());
    else c->shaking = status == CLT_END;
}

static void serve(clt_tcp_server *s, client *c) {
    if (c->shaking) shake(s, c);
    if (c->shaking || c->gone) return;
    if (c->to_send || (clt_socket_events(c->socket, false, false) & POLLOUT)) send_more(s, c);
    if (!c->gone) receive(s, c);
}

/* ---- clients come and go ---- */

static void free_client(client *c) {
    clt_socket_destroy(c->socket);
    clt_free(c);
}

static void sweep(clt_tcp_server *s, double now) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n_clients; i++) {
        client *c = s->clients[i];
        if (c->waiting && now >= c->until) answer(s, c, CLT_TCP_NONE, NULL, 0);
        if (!c->known && !c->gone && now > c->since + stranger_seconds) drop(s, c, "said nothing to the store for too long");
        if (c->gone) free_client(c);
        else s->clients[kept++] = c;
    }
    s->n_clients = kept;
}

/* The one that has been a stranger for longest makes room for the next. */
static void limit_strangers(clt_tcp_server *s) {
    size_t strangers = 0, oldest = 0;
    for (size_t i = s->n_clients; i-- > 0;) {
        if (s->clients[i]->known || s->clients[i]->gone) continue;
        strangers++;
        oldest = i;
    }
    if (strangers > MOST_STRANGERS) drop(s, s->clients[oldest], "too many that have said nothing to the store");
}

static clt_status admit(clt_tcp_server *s, int descriptor) {
    clt_status status = clt_grow(&s->clients, &s->clients_capacity, s->n_clients, sizeof *s->clients);
    client *c = status == CLT_OK ? clt_calloc(1, sizeof *c) : NULL;
    if (!c) {
        close(descriptor);
        return status == CLT_OK ? clt_fail_memory(sizeof *c) : status;
    }
    *c = (client){.shaking = true, .since = clt_seconds()};
    status = clt_socket_accepted(&c->socket, s->security, descriptor);
    if (status < 0) {
        clt_free(c);
        return status;
    }
    s->clients[s->n_clients++] = c;
    shake(s, c);
    limit_strangers(s);
    return CLT_OK;
}

/* No more at once than strangers may be, for those that are too many are freed between the rounds; and clients are served. */
static void accept_some(clt_tcp_server *s) {
    for (int i = 0; i < MOST_STRANGERS; i++) {
        if (s->n_clients >= MOST_CLIENTS) break;
        int descriptor = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (descriptor < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (descriptor < 0 || admit(s, descriptor) < 0) break;
        if (i == MOST_STRANGERS - 1) return; /* the others next time */
    }
    s->accept_after = clt_seconds() + accept_pause; /* out of descriptors or memory: no use in trying at once */
}

/* ---- the thread ---- */

static double next_event(const clt_tcp_server *s, double now) {
    double next = now + 1;
    if (s->accept_after > now) next = CLT_MIN(next, s->accept_after);
    if (s->end) next = CLT_MIN(next, s->end);
    for (size_t i = 0; i < s->n_clients; i++) {
        const client *c = s->clients[i];
        if (c->waiting) next = CLT_MIN(next, c->until);
        if (!c->known) next = CLT_MIN(next, c->since + stranger_seconds);
    }
    return next;
}

static bool wait_for_events(clt_tcp_server *s) {
    double now = clt_seconds();
    while (s->polled_capacity < s->n_clients + 2)
        if (clt_grow(&s->polled, &s->polled_capacity, s->polled_capacity, sizeof *s->polled) < 0) return false;
    bool listening = now >= s->accept_after && s->n_clients < MOST_CLIENTS && !atomic_load(&s->stopping);
    s->polled[0] = (struct pollfd){s->wake[0], POLLIN, 0};
    s->polled[1] = (struct pollfd){listening ? s->listener : -1, POLLIN, 0};
    for (size_t i = 0; i < s->n_clients; i++) {
        const client *c = s->clients[i];
        s->polled[i + 2] = (struct pollfd){clt_socket_descriptor(c->socket), clt_socket_events(c->socket, true, c->to_send > 0), 0};
    }
    double wait = CLT_MAX(next_event(s, now) - now, 0);
    return poll(s->polled, s->n_clients + 2, (int)(wait * 1000) + 1) >= 0 || errno == EINTR;
}

static void begin_to_stop(clt_tcp_server *s) {
    char bytes[16];
    s->end = clt_seconds() + close_seconds;
    while (read(s->wake[0], bytes, sizeof bytes) > 0) continue;
}

static void serve_all(clt_tcp_server *s) {
    size_t n = s->n_clients;
    for (size_t i = 0; i < n; i++)
        if (s->polled[i + 2].revents || clt_socket_pending(s->clients[i]->socket)) serve(s, s->clients[i]);
    if (s->polled[1].revents) accept_some(s);
}

/* Until it is stopped, and then until the clients are gone or have had their time. */
static void *run(void *argument) {
    clt_tcp_server *s = argument;
    while (!s->end || (clt_seconds() < s->end && s->n_clients)) {
        if (wait_for_events(s)) serve_all(s);
        else clt_store_pause(accept_pause, clt_seconds() + 1);
        if (atomic_load(&s->stopping) && !s->end) begin_to_stop(s);
        if (s->end) /* strangers are not waited for */
            for (size_t i = 0; i < s->n_clients; i++) s->clients[i]->gone |= !s->clients[i]->known;
        sweep(s, clt_seconds());
    }
    for (size_t i = 0; i < s->n_clients; i++) free_client(s->clients[i]);
    s->n_clients = 0;
    return NULL;
}

/* ---- listening ---- */

/* The others are told HOST: if that is not where the interface is, they look for the store in vain. */
static void warn_of_another_address(const clt_tcp_server *s, const char *host_and_port) {
    struct sockaddr_storage told, served;
    socklen_t told_bytes, served_bytes;
    char a[NI_MAXHOST], b[NI_MAXHOST];
    double deadline = clt_seconds() + CLT_LOOK_UP_SECONDS;
    if (clt_resolve(host_and_port, deadline, &told, &told_bytes) < 0 || clt_resolve(s->address, deadline, &served, &served_bytes) < 0) return;
    if (getnameinfo((struct sockaddr *)&told, told_bytes, a, sizeof a, NULL, 0, NI_NUMERICHOST)) return;
    if (getnameinfo((struct sockaddr *)&served, served_bytes, b, sizeof b, NULL, 0, NI_NUMERICHOST)) return;
    if (strcmp(a, b))
        clt_log_message(CLT_LOG_WARNING, "the store is served at %s, the address of the interface, but ranks are told %s",
                        s->address, host_and_port);
}

/* The address of HOST, as numbers. */
static clt_status own_address(const char *host_and_port, char text[NI_MAXHOST]) {
    char host[300];
    struct sockaddr_storage address;
    socklen_t bytes;
    const char *colon = strrchr(host_and_port, ':');
    snprintf(host, sizeof host, "%.*s:1", colon ? (int)CLT_MIN(colon - host_and_port, 280) : 0, host_and_port);
    CLT_TRY(clt_resolve(host, clt_seconds() + CLT_LOOK_UP_SECONDS, &address, &bytes));
    int error = getnameinfo((struct sockaddr *)&address, bytes, text, NI_MAXHOST, NULL, 0, NI_NUMERICHOST);
    if (error) return clt_fail(CLT_E_NETWORK, "%s: %s", host, gai_strerror(error));
    /* Debian and others name the own host a loopback address, at which nobody else reaches it. */
    if (!strncmp(text, "127.", 4) && strncmp(host, "127.", 4) && strncmp(host, "localhost", 9))
        clt_log_message(CLT_LOG_WARNING, "the store is served at %s alone, which %.*s is here: name the interface for others to reach it",
                        text, (int)(colon - host_and_port), host_and_port);
    return CLT_OK;
}

static clt_status start_listening(clt_tcp_server *s, const char *host_and_port, const char *network) {
    char host[NI_MAXHOST];
    const char *colon = strrchr(host_and_port, ':');
    if (!colon || !colon[1]) return clt_fail(CLT_E_INVALID, "expected tcp://HOST:PORT");
    if (!network) CLT_TRY(own_address(host_and_port, host));
    const char *port = strcmp(colon + 1, "0") ? colon + 1 : NULL;
    CLT_TRY(clt_listen(network ? network : host, NULL, port, &s->listener, s->address));
    if (network) warn_of_another_address(s, host_and_port);
    return CLT_OK;
}

clt_status clt_tcp_server_start(clt_tcp_server **server, const char *host_and_port, const char *network,
                                const clt_security *security) {
    clt_tcp_server *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->security = security;
    s->listener = s->wake[0] = s->wake[1] = -1;
    clt_status status = start_listening(s, host_and_port, network);
    if (status < 0) {
        status = clt_fail_context(status, "serving the store tcp://%s: ", host_and_port);
        goto fail;
    }
    CLT_TRY_GOTO(clt_tcp_table_create(&s->table));
    if (pipe2(s->wake, O_CLOEXEC | O_NONBLOCK)) {
        status = clt_fail(CLT_E_SYSTEM, "a pipe could not be made: %s", strerror(errno));
        goto fail;
    }
    CLT_TRY_GOTO(clt_thread_start(&s->thread, run, s));
    s->started = true;
    *server = s;
    return CLT_OK;
fail:
    clt_tcp_server_stop(s);
    return status;
}

const char *clt_tcp_server_address(const clt_tcp_server *server) {
    return server->address;
}

void clt_tcp_server_stop(clt_tcp_server *server) {
    if (!server) return;
    if (server->started) {
        atomic_store(&server->stopping, true);
        while (write(server->wake[1], "", 1) < 0 && errno == EINTR) continue;
        clt_thread_join(server->thread);
    }
    if (server->listener >= 0) close(server->listener);
    if (server->wake[0] >= 0) close(server->wake[0]);
    if (server->wake[1] >= 0) close(server->wake[1]);
    clt_tcp_table_destroy(server->table);
    clt_free(server->clients);
    clt_free(server->polled);
    clt_free(server);
}
