/*
 * A group comes together: each rank listens, writes its address into the store, and is connected by those with higher ranks;
 * to the lower ones it connects, on a thread of its own, while it lets the others in.
 */
#define _GNU_SOURCE /* eventfd */
#include "comm/transport/parts.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/thread.h"

#define ATTEMPT_SECONDS 3.0 /* to connect to an address, which may be of a run before */
#define FIRST_PAUSE_SECONDS 0.002
#define LONGEST_PAUSE_SECONDS 0.1
#define GREETING_SECONDS 1.0
#define PARTING_SECONDS 2.0

enum { MOST_RANKS = 65536, MOST_CHANNELS = 16, STRANGERS = 64 };

static void pause_for(double seconds) {
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
    char last[400]; /* why the last attempt failed */
    clt_thread thread;
} connector;

static void address_key(char key[CLT_RENDEZVOUS_KEY_BYTES], int64_t generation, int rank) {
    snprintf(key, CLT_RENDEZVOUS_KEY_BYTES, "address/%" PRId64 "/%d", generation, rank);
}

static clt_status read_address(connector *c, int rank, struct sockaddr_storage *address, socklen_t *bytes) {
    char key[CLT_RENDEZVOUS_KEY_BYTES], value[CLT_RENDEZVOUS_VALUE_BYTES + 1];
    size_t length = 0;
    address_key(key, c->transport->generation, rank);
    clt_status status = clt_rendezvous_look(c->options->rendezvous, key, value, &length, c->deadline);
    if (status == CLT_END) return clt_fail(CLT_E_NOT_FOUND, "it has not written its address into the store");
    CLT_TRY(status);
    if (length == 0 || length >= 64 || memchr(value, '\0', length))
        return clt_fail(CLT_E_FORMAT, "%s: no address in the store", key);
    value[length] = '\0';
    return clt_resolve(value, address, bytes);
}

static clt_status greet(connector *c, clt_socket *socket, int rank, int channel, double deadline) {
    const clt_transport *t = c->transport;
    clt_hello hello = {CLT_PROTOCOL_VERSION, (uint32_t)t->size,    (uint32_t)t->rank, (uint32_t)rank,
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
    return clt_fail(CLT_E_DENIED, "%s: turned away: %s", clt_socket_peer(socket), clt_answer_reason(answer));
}

static clt_status connect_channel(connector *c, clt_socket **socket, const struct sockaddr_storage *address,
                                  socklen_t bytes, int rank, int channel) {
    double deadline = CLT_MIN(c->deadline, clt_seconds() + ATTEMPT_SECONDS);
    CLT_TRY(clt_socket_connect(socket, c->options->security, (const struct sockaddr *)address, bytes, deadline));
    return greet(c, *socket, rank, channel, deadline);
}

/* One attempt at all connections to a rank: to one and the same process, so that none outlives the attempt. */
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
        if (missing > 0) pause_for(pause);
        pause = CLT_MIN(2 * pause, LONGEST_PAUSE_SECONDS);
    }
    atomic_store(&c->finished, true);
    clt_transport_wake(c->transport);
    return NULL;
}

/* ---- waiting for higher ones ---- */

bool clt_peer_is_there(const clt_transport *t, const clt_peer *peer) {
    bool there = peer->control.socket != NULL;
    for (int c = 0; c < t->channels; c++) there = there && peer->links[c].socket;
    return there;
}

static int count_missing(const clt_transport *t, int first) {
    int missing = 0;
    for (int r = first; r < t->size; r++) missing += r != t->rank && !clt_peer_is_there(t, &t->peers[r]);
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
        at[2 + i] = (struct pollfd){clt_socket_descriptor(socket), clt_socket_events(socket, true, false), 0};
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

static clt_status fail_missing(const clt_transport *t, const clt_transport_options *options, const connector *c) {
    clt_text ranks = {0};
    int missing = 0;
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank || clt_peer_is_there(t, &t->peers[r])) continue;
        if (missing++ < 32) clt_text_add(&ranks, "%s%d", missing > 1 ? ", " : "", r);
    }
    clt_status status = clt_fail(CLT_E_TIMEOUT, "rank %d of %d: rank%s %s%s did not come within %g seconds%s%s%s", t->rank,
                                 t->size, missing == 1 ? "" : "s", clt_text_data(&ranks), missing > 32 ? " …" : "",
                                 options->connect_seconds, c->last[0] ? " (" : "", c->last, c->last[0] ? ")" : "");
    clt_text_free(&ranks);
    return status;
}

static clt_status meet(clt_transport *t, const clt_transport_options *options, connector *c) {
    CLT_TRY(clt_thread_start(&c->thread, connect_all, c));
    while (clt_seconds() < c->deadline && (!atomic_load(&c->finished) || count_missing(t, t->rank + 1)))
        let_in(t, CLT_MIN(0.1, CLT_MAX(c->deadline - clt_seconds(), 0)));
    atomic_store(&c->stop, true);
    clt_thread_join(c->thread);
    adopt(t, c);
    return count_missing(t, 0) ? fail_missing(t, options, c) : CLT_OK;
}

static clt_status connect_group(clt_transport *t, const clt_transport_options *options, double deadline) {
    connector c = {.transport = t, .options = options, .deadline = deadline};
    size_t lower = (size_t)t->rank + 1;
    c.sockets = clt_calloc(lower * (size_t)(1 + t->channels), sizeof *c.sockets);
    c.connected = clt_calloc(lower, sizeof *c.connected);
    clt_status status = c.sockets && c.connected ? meet(t, options, &c) : clt_fail_memory(lower * sizeof *c.sockets);
    clt_free(c.sockets);
    clt_free(c.connected);
    return status;
}

/* ---- the first barrier ---- */

static bool all_arrived(const clt_transport *t) {
    for (int r = 0; r < t->size; r++)
        if (r != t->rank && !t->peers[r].arrived) return false;
    return true;
}

static clt_status reach_barrier(clt_transport *t, double deadline) {
    const clt_frame here = {.kind = CLT_FRAME_BARRIER};
    if (t->rank != 0) clt_control_send(t, &t->peers[0], &here, NULL);
    /* What ends the group after the barrier, if only just, is for who uses it to meet. */
    while (!(t->rank == 0 ? all_arrived(t) : t->released)) {
        CLT_TRY(clt_transport_state(t));
        double left = deadline - clt_seconds();
        if (left <= 0)
            return clt_fail(CLT_E_TIMEOUT, "rank %d of %d: not all ranks found each other in time", t->rank, t->size);
        clt_transport_poll(t, left);
    }
    for (int r = 1; t->rank == 0 && r < t->size; r++) clt_control_send(t, &t->peers[r], &here, NULL);
    double now = clt_seconds();
    for (int r = 0; r < t->size; r++) t->peers[r].heard = now;
    t->released = true;
    return CLT_OK;
}

/* ---- creating ---- */

static clt_status check_options(const clt_transport_options *o) {
    if (o->size < 1 || o->size > MOST_RANKS) return clt_fail(CLT_E_INVALID, "a job of %d ranks: 1 to %d", o->size, MOST_RANKS);
    if (o->rank < 0 || o->rank >= o->size) return clt_fail(CLT_E_INVALID, "rank %d of %d: there is none", o->rank, o->size);
    if (o->channels < 1 || o->channels > MOST_CHANNELS)
        return clt_fail(CLT_E_INVALID, "%d channels: 1 to %d", o->channels, MOST_CHANNELS);
    if (!(o->heartbeat_seconds >= 0.2) || !(o->connect_seconds > 0))
        return clt_fail(CLT_E_INVALID, "heartbeat %g, at least 0.2, connect time %g: seconds", o->heartbeat_seconds,
                        o->connect_seconds);
    return CLT_OK;
}

static clt_status make_peer(clt_transport *t, int rank) {
    clt_peer *peer = &t->peers[rank];
    peer->rank = rank;
    peer->sends.end = &peer->sends.first;
    peer->receives.end = &peer->receives.first;
    peer->early_end = &peer->early;
    if (rank == t->rank) return CLT_OK;
    peer->links = clt_calloc((size_t)t->channels, sizeof *peer->links);
    peer->control.in = clt_alloc(CLT_CONTROL_BYTES);
    return peer->links && peer->control.in ? CLT_OK : clt_fail_memory(CLT_CONTROL_BYTES);
}

static clt_status make(clt_transport *t, const clt_transport_options *o) {
    size_t size = (size_t)t->size;
    t->most_strangers = STRANGERS + 2 * t->size;
    size_t polled = 2 + (size_t)t->most_strangers + size * (size_t)(1 + t->channels);
    clt_hash_text(o->job ? o->job : "", o->job ? strlen(o->job) : 0, t->job);
    t->peers = clt_calloc(size, sizeof *t->peers);
    t->lost = clt_calloc(size, sizeof *t->lost);
    t->strangers = clt_calloc((size_t)t->most_strangers, sizeof *t->strangers);
    t->polled = clt_calloc(polled, sizeof *t->polled);
    t->scratch = clt_alloc(CLT_FRAME_BYTES + CLT_ALIGNMENT);
    if (!t->peers || !t->lost || !t->strangers || !t->polled || !t->scratch) return clt_fail_memory(size * sizeof *t->peers);
    for (int r = 0; r < t->size; r++) CLT_TRY(make_peer(t, r));
    t->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return t->waker >= 0 ? CLT_OK : clt_fail(CLT_E_SYSTEM, "no event descriptor could be made");
}

static void remove_addresses(const clt_transport *t, clt_rendezvous *rendezvous) {
    double deadline = clt_seconds() + GREETING_SECONDS;
    for (int r = 0; r < t->size; r++) {
        char key[CLT_RENDEZVOUS_KEY_BYTES];
        address_key(key, t->generation, r);
        if (clt_rendezvous_remove(rendezvous, key, deadline) < 0) return; /* they only lie about */
    }
}

static clt_status come_together(clt_transport *t, const clt_transport_options *o) {
    double deadline = clt_seconds() + o->connect_seconds;
    char text[64], key[CLT_RENDEZVOUS_KEY_BYTES];
    CLT_TRY(clt_listen(o->network, o->towards, o->ports, &t->listener, text));
    address_key(key, t->generation, t->rank);
    CLT_TRY(clt_rendezvous_set(o->rendezvous, key, text, strlen(text), deadline));
    CLT_TRY(connect_group(t, o, deadline));
    double now = clt_seconds();
    for (int r = 0; r < t->size; r++) t->peers[r].heard = t->peers[r].spoke = now;
    CLT_TRY(reach_barrier(t, deadline));
    t->complete = true;
    if (t->rank == 0) remove_addresses(t, o->rendezvous);
    return CLT_OK;
}

clt_status clt_transport_create(clt_transport **out, const clt_transport_options *options) {
    *out = NULL;
    CLT_TRY(check_options(options));
    clt_transport *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    t->rank = options->rank;
    t->size = options->size;
    t->channels = options->channels;
    t->generation = options->generation;
    t->security = options->security;
    t->heartbeat_seconds = options->heartbeat_seconds;
    t->describe = options->describe;
    t->listener = t->waker = -1;
    clt_status status = make(t, options);
    if (status == CLT_OK && t->size > 1) status = come_together(t, options);
    if (status == CLT_OK) {
        *out = t;
        return CLT_OK;
    }
    char detail[CLT_REASON_BYTES];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    if (t->peers) clt_transport_fail(t, status, detail); /* those who are there need not wait */
    clt_transport_destroy(t);
    return clt_fail_again(status, detail);
}

/* ---- parting ---- */

/* Whether all that was written has arrived at the other host: closing with unread input would else throw it away. */
static bool has_arrived(clt_socket *socket) {
    int unsent = 0;
    struct pollfd one = {clt_socket_descriptor(socket), 0, 0};
    if (poll(&one, 1, 0) > 0) return true; /* nobody is there any more */
    return ioctl(one.fd, SIOCOUTQ, &unsent) || unsent == 0;
}

static bool is_said(clt_transport *t) {
    bool said = true;
    for (int r = 0; r < t->size; r++) {
        clt_peer *peer = &t->peers[r];
        clt_control *control = &peer->control;
        if (r == t->rank || t->lost[r] || !control->socket || control->ended || control->mute) continue;
        clt_control_flush(t, peer);
        bool unsent = control->out_start < control->out_end || clt_socket_events(control->socket, false, false) != 0;
        said = said && (control->mute || (!unsent && has_arrived(control->socket)));
        for (int c = 0; c < t->channels; c++) {
            clt_link *link = &peer->links[c];
            size_t moved;
            if (!link->socket || link->ended) continue;
            if (clt_socket_write(link->socket, NULL, 0, &moved) < 0) link->ended = true;
            else if (clt_socket_events(link->socket, false, false) != 0 || !has_arrived(link->socket)) said = false;
        }
    }
    return said;
}

static void part(clt_transport *t) {
    for (int r = 0; r < t->size; r++) {
        clt_peer *peer = &t->peers[r];
        if (r == t->rank || !peer->control.socket) continue;
        clt_control_send(t, peer, &(clt_frame){.kind = CLT_FRAME_GOODBYE}, NULL);
    }
    double deadline = clt_seconds() + CLT_MIN(t->heartbeat_seconds, PARTING_SECONDS);
    while (!is_said(t) && clt_seconds() < deadline) pause_for(0.001);
}

static void free_peer(clt_transport *t, clt_peer *peer) {
    clt_socket_destroy(peer->control.socket);
    clt_free(peer->control.in);
    clt_free(peer->control.out);
    for (int c = 0; peer->links && c < t->channels; c++) clt_socket_destroy(peer->links[c].socket);
    clt_free(peer->links);
    clt_free(peer->notices);
    for (clt_early *early = peer->early, *next; early; early = next) {
        next = early->next;
        clt_free(early);
    }
}

void clt_transport_destroy(clt_transport *t) {
    if (!t) return;
    if (t->peers) part(t);
    clt_strangers_drop_all(t);
    for (int r = 0; t->peers && r < t->size; r++) free_peer(t, &t->peers[r]);
    if (t->listener >= 0) close(t->listener);
    if (t->waker >= 0) close(t->waker);
    clt_free(t->peers);
    clt_free(t->lost);
    clt_free(t->strangers);
    clt_free(t->polled);
    clt_free(t->scratch);
    clt_free(t);
}
