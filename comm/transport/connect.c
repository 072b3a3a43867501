/*
 * A rank is connected by those with higher ranks; to the lower ones it connects itself, on a thread of
 * its own, while it lets the others in.
 */
#define _GNU_SOURCE
#include "comm/transport/parts.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/number.h"
#include "runtime/base/thread.h"

#define ATTEMPT_SECONDS       3.0 /* to connect to an address, which may be of a run before */
#define FIRST_PAUSE_SECONDS   0.002
#define LONGEST_PAUSE_SECONDS 0.1
#define LOST_SECONDS          0.5

void clt_transport_pause(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* ---- connecting to lower ranks ---- */

typedef struct connector {
    clt_transport *transport;
    const clt_transport_options *options;
    double deadline;
    clt_socket **sockets; /* 1 + channels for each lower rank */
    bool *connected;
    atomic_bool stop, finished;
    atomic_int lost; /* 1 + a rank that will not come; 0: none is known of */
    int lost_status; /* what it ended with; set before */
    double look_at;  /* when to ask for such a one next */
    char last[400]; /* why the last attempt failed */
    clt_thread thread;
} connector;

void clt_transport_address_key(char key[CLT_RENDEZVOUS_KEY_BYTES], int64_t generation, int rank) {
    snprintf(key, CLT_RENDEZVOUS_KEY_BYTES, "address/%" PRId64 "/%d", generation, rank);
}

static clt_status read_address(connector *c, int rank, struct sockaddr_storage *address,
                               socklen_t *bytes) {
    char key[CLT_RENDEZVOUS_KEY_BYTES], value[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    size_t length = 0;
    clt_transport_address_key(key, c->transport->generation, rank);
    /* For no longer than one attempt: this thread is waited for when the ranks are not to meet any more. */
    double deadline = CLT_MIN(c->deadline, clt_seconds() + ATTEMPT_SECONDS);
    clt_status status = clt_rendezvous_look(c->options->rendezvous, key, value, &length, deadline);
    if (status == CLT_END)
        return clt_fail(CLT_E_NOT_FOUND, "it has not written its address into the store");
    CLT_TRY(status);
    if (length == 0 || length >= 64 || memchr(value, '\0', length))
        return clt_fail(CLT_E_FORMAT, "%s: no address in the store", key);
    value[length] = '\0';
    return clt_resolve(value, c->deadline, address, bytes);
}

static clt_status greet(connector *c, clt_socket *socket, int rank, int channel, double deadline) {
    const clt_transport *t = c->transport;
    clt_hello hello = {CLT_PROTOCOL_VERSION, (uint32_t)t->size,     (uint32_t)t->rank, (uint32_t)rank,
                       (uint32_t)channel,    (uint32_t)t->channels, t->generation,     ""};
    memcpy(hello.job, t->job, sizeof hello.job);
    unsigned char bytes[CLT_HELLO_BYTES];
    clt_answer answer;
    clt_hello_encode(&hello, bytes);
    CLT_TRY(clt_socket_write_all(socket, bytes, CLT_HELLO_BYTES, deadline));
    CLT_TRY(clt_socket_read_all(socket, bytes, CLT_ANSWER_BYTES, deadline));
    if (!clt_answer_decode(&answer, bytes))
        return clt_fail(CLT_E_NETWORK, "%s: speaks another protocol", clt_socket_peer(socket));
    if (answer == CLT_WELCOME) return CLT_OK;
    return clt_fail(CLT_E_DENIED, "%s: turned away: %s", clt_socket_peer(socket),
                    clt_answer_reason(answer));
}

static clt_status connect_channel(connector *c, clt_socket **socket,
                                  const struct sockaddr_storage *address, socklen_t bytes, int rank,
                                  int channel) {
    double deadline = CLT_MIN(c->deadline, clt_seconds() + ATTEMPT_SECONDS);
    CLT_TRY(clt_socket_connect(socket, c->options->security, (const struct sockaddr *)address, bytes,
                               deadline));
    return greet(c, *socket, rank, channel, deadline);
}

/* One attempt at all connections to a rank: to one and the same process, so that none outlives the
 * attempt. */
static clt_status connect_rank(connector *c, int rank) {
    struct sockaddr_storage address;
    socklen_t bytes;
    int channels = c->transport->channels;
    clt_socket **sockets = c->sockets + (size_t)rank * (size_t)(1 + channels);
    CLT_TRY(read_address(c, rank, &address, &bytes));
    clt_status status = CLT_OK;
    for (int channel = 0; status == CLT_OK && channel <= channels; channel++)
        status = connect_channel(c, &sockets[channel], &address, bytes, rank, channel);
    for (int channel = 0; status < 0 && channel <= channels; channel++) {
        clt_socket_destroy(sockets[channel]);
        sockets[channel] = NULL;
    }
    return status;
}

/* ---- ranks that end before they come ---- */

/* "RANK STATUS", of one of `size` ranks; text is cut up. */
static bool read_lost(char *text, int size, int *rank, int *status) {
    uint64_t who, code;
    char *space = strchr(text, ' ');
    if (!space) return false;
    *space = '\0';
    bool negative = space[1] == '-';
    if (!clt_number_whole(text, (uint64_t)size - 1, &who) || !clt_number_whole(space + 1 + negative, INT32_MAX, &code)) return false;
    *rank = (int)who;
    *status = negative ? -(int)code : (int)code;
    return true;
}

/* What a launcher has written. By one thread at a time, the one that uses the rendezvous. Survivors of a group know better. */
static void look_for_lost(connector *c) {
    char key[CLT_RENDEZVOUS_KEY_BYTES], value[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    size_t length = 0;
    int rank, status;
    double now = clt_seconds();
    if (c->options->find_lost || now < c->look_at || atomic_load(&c->lost)) return;
    c->look_at = now + LOST_SECONDS;
    snprintf(key, sizeof key, "lost/%" PRId64, c->transport->generation);
    if (clt_rendezvous_look(c->options->rendezvous, key, value, &length, now + LOST_SECONDS) != CLT_OK) return;
    value[CLT_MIN(length, CLT_RENDEZVOUS_VALUE_BYTES)] = '\0';
    if (strlen(value) != length || !read_lost(value, c->transport->size, &rank, &status) || rank == c->transport->rank) return;
    c->lost_status = status;
    atomic_store(&c->lost, 1 + rank);
}

static clt_status check_lost(const connector *c) {
    int lost = atomic_load(&c->lost) - 1;
    if (lost < 0) return clt_transport_check_lost(c->options);
    return clt_fail(CLT_E_PEER, "rank %d ended with status %d before ranks 0 to %d had met", lost, c->lost_status, c->transport->size - 1);
}

static void *connect_all(void *argument) {
    connector *c = argument;
    int missing = c->transport->rank;
    double pause = FIRST_PAUSE_SECONDS;
    while (missing > 0 && !atomic_load(&c->stop) && clt_seconds() < c->deadline) {
        for (int rank = 0; rank < c->transport->rank && !atomic_load(&c->stop); rank++) {
            if (c->connected[rank]) continue;
            clt_status status = connect_rank(c, rank);
            c->connected[rank] = status == CLT_OK;
            missing -= status == CLT_OK;
            if (status < 0) snprintf(c->last, sizeof c->last, "rank %d: %s", rank, clt_error_detail());
        }
        if (missing > 0) {
            look_for_lost(c);
            clt_transport_pause(pause);
        }
        pause = CLT_MIN(2 * pause, LONGEST_PAUSE_SECONDS);
    }
    atomic_store(&c->finished, true);
    clt_transport_wake(c->transport);
    return NULL;
}

/* ---- waiting for higher ones ---- */

static bool is_there(const clt_transport *t, const clt_peer *peer) {
    bool there = peer->control.socket != NULL;
    for (int c = 0; c < t->channels; c++) there = there && peer->links[c].socket;
    return there;
}

static int count_missing(const clt_transport *t, int first) {
    int missing = 0;
    for (int r = first; r < t->size; r++) missing += r != t->rank && !is_there(t, &t->peers[r]);
    return missing;
}

/* Moves handshakes on; what connections say once they are taken in stays where it is. */
static void let_in(clt_transport *t, double seconds) {
    struct pollfd *at = t->polled;
    int n = t->n_strangers;
    double now = clt_seconds();
    at[0] = (struct pollfd){t->waker, POLLIN, 0};
    at[1] = (struct pollfd){now < t->deaf_until ? -1 : t->listener, POLLIN, 0};
    for (int i = 0; i < n; i++) {
        const clt_socket *socket = t->strangers[i].socket;
        at[2 + i] =
            (struct pollfd){clt_socket_descriptor(socket), clt_socket_events(socket, true, false), 0};
    }
    poll(at, (nfds_t)(n + 2), (int)(seconds * 1000) + 1);
    uint64_t count;
    if (at[0].revents && read(t->waker, &count, sizeof count) < 0) return;
    for (int i = n - 1; i >= 0; i--)
        if (at[2 + i].revents) clt_strangers_advance(t, i);
    clt_strangers_expire(t, clt_seconds());
    if (at[1].revents) clt_strangers_accept(t);
}

static void adopt(clt_transport *t, connector *c) {
    for (int r = 0; r < t->rank; r++) {
        clt_socket **sockets = c->sockets + (size_t)r * (size_t)(1 + t->channels);
        t->peers[r].control.socket = sockets[0];
        for (int k = 0; k < t->channels; k++) t->peers[r].links[k].socket = sockets[1 + k];
    }
}

static clt_status fail_missing(const clt_transport *t, const clt_transport_options *options,
                               const connector *c) {
    clt_text ranks = {0};
    int missing = 0;
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank || is_there(t, &t->peers[r])) continue;
        if (missing++ < 32) clt_text_add(&ranks, "%s%d", missing > 1 ? ", " : "", r);
    }
    clt_status status = clt_fail(
        CLT_E_TIMEOUT, "rank %d of %d: rank%s %s%s did not come within %g seconds%s%s%s", t->rank,
        t->size, missing == 1 ? "" : "s", clt_text_data(&ranks), missing > 32 ? " …" : "",
        options->connect_seconds, c->last[0] ? " (" : "", c->last, c->last[0] ? ")" : "");
    clt_text_free(&ranks);
    return status;
}

clt_status clt_transport_check_lost(const clt_transport_options *options) {
    int lost = options->find_lost ? options->find_lost(options->context) : -1;
    return lost < 0 ? CLT_OK : clt_fail(CLT_E_PEER, "rank %d was lost while ranks 0 to %d met", lost, options->size - 1);
}

static clt_status meet(clt_transport *t, const clt_transport_options *options, connector *c) {
    clt_status status = CLT_OK;
    CLT_TRY(clt_thread_start(&c->thread, connect_all, c));
    while (status == CLT_OK && clt_seconds() < c->deadline && (!atomic_load(&c->finished) || count_missing(t, t->rank + 1))) {
        let_in(t, CLT_MIN(CLT_LOOK_SECONDS, CLT_MAX(c->deadline - clt_seconds(), 0)));
        if (atomic_load(&c->finished)) look_for_lost(c);
        status = check_lost(c);
    }
    atomic_store(&c->stop, true);
    clt_thread_join(c->thread);
    adopt(t, c);
    CLT_TRY(status);
    return count_missing(t, 0) ? fail_missing(t, options, c) : CLT_OK;
}

clt_status clt_transport_connect(clt_transport *t, const clt_transport_options *options,
                                 double deadline) {
    connector c = {.transport = t, .options = options, .deadline = deadline, .look_at = clt_seconds() + LOST_SECONDS};
    size_t lower = (size_t)t->rank + 1;
    c.sockets = clt_calloc(lower * (size_t)(1 + t->channels), sizeof *c.sockets);
    c.connected = clt_calloc(lower, sizeof *c.connected);
    clt_status status =
        c.sockets && c.connected ? meet(t, options, &c) : clt_fail_memory(lower * sizeof *c.sockets);
    clt_free(c.sockets);
    clt_free(c.connected);
    return status;
}
