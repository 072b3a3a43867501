/*
 * The tcp store's client. A connection that breaks is made anew, and the request repeated, until the deadline: repeating one does no harm, since
 * a value that was set once stands whoever of us asked twice.
 */
#include "comm/rendezvous/tcp_server.h"

#include <stdio.h>
#include <string.h>

/* How long a wait may be silent at the server, and an answer be under way. */
static const double wait_seconds = 1, answer_seconds = 2, look_seconds = 0.5;

typedef struct tcp_store {
    char *where; /* HOST:PORT */
    const clt_security *security;
    clt_tcp_server *server; /* NULL: another process serves */
    clt_socket *socket;     /* NULL: to be connected */
} tcp_store;

typedef struct request {
    clt_tcp_request code;
    const char *key;
    const void *value;
    size_t bytes;
    uint32_t milliseconds;
    void *answer; /* NULL: none is expected */
    size_t *answer_bytes;
} request;

static void disconnect(tcp_store *s) {
    clt_socket_destroy(s->socket);
    s->socket = NULL;
}

/* ---- one exchange ---- */

static clt_status send_request(tcp_store *s, const request *q, double deadline) {
    unsigned char bytes[CLT_TCP_REQUEST_BYTES];
    size_t key_bytes = strlen(q->key);
    clt_tcp_write_head(&(clt_tcp_head){(uint8_t)q->code, (uint16_t)key_bytes, (uint32_t)q->bytes, q->milliseconds}, bytes);
    memcpy(bytes + CLT_TCP_HEAD_BYTES, q->key, key_bytes);
    if (q->bytes) memcpy(bytes + CLT_TCP_HEAD_BYTES + key_bytes, q->value, q->bytes);
    return clt_socket_write_all(s->socket, bytes, CLT_TCP_HEAD_BYTES + key_bytes + q->bytes, deadline);
}

static clt_status receive_answer(tcp_store *s, const request *q, double deadline) {
    unsigned char bytes[CLT_TCP_HEAD_BYTES];
    clt_tcp_head head;
    CLT_TRY(clt_socket_read_all(s->socket, bytes, sizeof bytes, deadline));
    if (!clt_tcp_read_head(&head, bytes) || head.code > CLT_TCP_FULL || head.key_bytes || (head.value_bytes && !q->answer))
        return clt_fail(CLT_E_FORMAT, "the store at tcp://%s: what answers there is no store", s->where);
    if (head.value_bytes) CLT_TRY(clt_socket_read_all(s->socket, q->answer, head.value_bytes, deadline));
    if (head.code == CLT_TCP_FULL) return clt_fail(CLT_E_RANGE, "the store at tcp://%s is full", s->where);
    if (q->answer_bytes) *q->answer_bytes = head.value_bytes;
    return head.code == CLT_TCP_NONE ? CLT_END : CLT_OK;
}

static clt_status exchange(tcp_store *s, const request *q, double deadline) {
    CLT_TRY(send_request(s, q, deadline));
    return receive_answer(s, q, deadline);
}

/* Also says hello: so a server of something else is found out before it is told anything. */
static clt_status connect_once(tcp_store *s, double deadline) {
    struct sockaddr_storage address;
    socklen_t bytes;
    CLT_TRY(clt_resolve(s->where, deadline, &address, &bytes));
    CLT_TRY(clt_socket_connect(&s->socket, s->security, (struct sockaddr *)&address, bytes, deadline));
    return exchange(s, &(request){.code = CLT_TCP_HELLO, .key = ""}, deadline);
}

static bool may_pass(clt_status status) {
    return status == CLT_E_NETWORK || status == CLT_E_TIMEOUT;
}

/* `patience`: an answer may take until so long after the deadline, for waits end there on the server's side. */
static clt_status ask(tcp_store *s, const request *q, double deadline, double patience) {
    for (double pause = 10e-3;; pause = CLT_MIN(2 * pause, 0.5)) {
        clt_status status = s->socket ? CLT_OK : connect_once(s, deadline + patience);
        if (status == CLT_OK) status = exchange(s, q, deadline + patience);
        if (status >= 0) return status;
        disconnect(s);
        if (!may_pass(status)) return clt_fail_context(status, "the store tcp://%s: ", s->where);
        if (clt_seconds() + pause >= deadline)
            return clt_fail_context(CLT_E_NETWORK, "the store tcp://%s cannot be reached: ", s->where);
        clt_store_pause(pause, deadline);
    }
}

/* ---- the table ---- */

static void tcp_close(void *store) {
    tcp_store *s = store;
    disconnect(s);
    clt_tcp_server_stop(s->server);
    clt_free(s->where);
    clt_free(s);
}

static clt_status start(tcp_store *s, const char *rest, const clt_rendezvous_options *options, double deadline) {
    if (options->serve) CLT_TRY(clt_tcp_server_start(&s->server, rest, options->network, options->security));
    s->where = clt_strdup(s->server ? clt_tcp_server_address(s->server) : rest);
    if (!s->where) return clt_fail_memory(strlen(rest));
    return ask(s, &(request){.code = CLT_TCP_HELLO, .key = ""}, deadline, 0);
}

static clt_status tcp_open(void **store, const char *rest, const clt_rendezvous_options *options, double deadline) {
    if (!options->security) return clt_fail(CLT_E_INVALID, "the store tcp://%.200s: no security was made for it", rest);
    tcp_store *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->security = options->security;
    clt_status status = start(s, rest, options, deadline);
    if (status < 0) {
        tcp_close(s);
        return status;
    }
    *store = s;
    return CLT_OK;
}

static clt_status tcp_set(void *store, const char *key, const void *value, size_t bytes, double deadline) {
    clt_status status = ask(store, &(request){.code = CLT_TCP_SET, .key = key, .value = value, .bytes = bytes}, deadline, 0);
    return CLT_MIN(status, CLT_OK);
}

static clt_status tcp_set_once(void *store, const char *key, const void *value, size_t bytes, void *stands, size_t *stands_bytes,
                               double deadline) {
    return ask(store,
               &(request){.code = CLT_TCP_SET_ONCE, .key = key, .value = value, .bytes = bytes, .answer = stands,
                          .answer_bytes = stands_bytes},
               deadline, 0);
}

static clt_status tcp_look(void *store, const char *key, void *value, size_t *bytes, double deadline) {
    return ask(store, &(request){.code = CLT_TCP_LOOK, .key = key, .answer = value, .answer_bytes = bytes},
               CLT_MAX(deadline, clt_seconds() + look_seconds), 0);
}

/* In slices, each of which the server ends: so silence is noticed long before a late deadline. */
static clt_status tcp_wait(void *store, const char *key, void *value, size_t *bytes, double deadline) {
    for (;;) {
        double left = deadline - clt_seconds(), slice = CLT_MIN(CLT_MAX(left, 0), wait_seconds);
        request q = {.code = CLT_TCP_WAIT, .key = key, .answer = value, .answer_bytes = bytes,
                     .milliseconds = (uint32_t)(slice * 1000 + 0.5)};
        clt_status status = ask(store, &q, CLT_MIN(deadline, clt_seconds() + slice), answer_seconds);
        if (status == CLT_E_NETWORK && clt_seconds() < deadline) continue;
        if (status != CLT_END || clt_seconds() >= deadline) return status;
    }
}

static clt_status tcp_remove(void *store, const char *key, double deadline) {
    return ask(store, &(request){.code = CLT_TCP_REMOVE, .key = key}, deadline, 0);
}

static const char *tcp_served_at(void *store) {
    const tcp_store *s = store;
    return s->server ? clt_tcp_server_address(s->server) : NULL;
}

const clt_store_ops clt_store_tcp = {.scheme = "tcp://", .open = tcp_open, .close = tcp_close, .set = tcp_set,
                                     .set_once = tcp_set_once, .look = tcp_look, .wait = tcp_wait, .remove = tcp_remove,
                                     .served_at = tcp_served_at};
