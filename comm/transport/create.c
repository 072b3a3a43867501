/*
 * A group comes together: each rank listens, writes its address into the store, and is connected with
 * all others; and it parts.
 */
#define _GNU_SOURCE /* eventfd, TCP_USER_TIMEOUT */
#include "comm/transport/parts.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GREETING_SECONDS 1.0
#define PARTING_SECONDS  2.0
#define PUBLISH_SECONDS  2.0 /* an attempt */

enum { MOST_RANKS = 65536, MOST_CHANNELS = 16, STRANGERS = 64 };

/* ---- the first barrier ---- */

static bool all_arrived(const clt_transport *t) {
    for (int r = 0; r < t->size; r++)
        if (r != t->rank && !t->peers[r].arrived) return false;
    return true;
}

static void remove_addresses(const clt_transport *t, clt_rendezvous *rendezvous) {
    double deadline = clt_seconds() + GREETING_SECONDS;
    for (int r = 0; r < t->size; r++) {
        char key[CLT_RENDEZVOUS_KEY_BYTES];
        clt_transport_address_key(key, t->generation, r);
        if (clt_rendezvous_remove(rendezvous, key, deadline) < 0) return; /* they only lie about */
    }
}

static clt_status reach_barrier(clt_transport *t, const clt_transport_options *o, double deadline) {
    const clt_frame here = {.kind = CLT_FRAME_BARRIER};
    if (t->rank != 0) clt_control_send(t, &t->peers[0], &here, NULL);
    /* What ends the group after the barrier, if only just, is for who uses it to meet. */
    while (!(t->rank == 0 ? all_arrived(t) : t->released)) {
        CLT_TRY(clt_transport_state(t));
        CLT_TRY(clt_transport_check_lost(o));
        double left = deadline - clt_seconds();
        if (left <= 0)
            return clt_fail(CLT_E_TIMEOUT, "rank %d of %d: not all ranks found each other in time",
                            t->rank, t->size);
        clt_transport_poll(t, CLT_MIN(left, CLT_LOOK_SECONDS));
    }
    /* Before the others go on: from then on they take this rank's silence for its loss. */
    if (t->rank == 0) remove_addresses(t, o->rendezvous);
    for (int r = 1; t->rank == 0 && r < t->size; r++) clt_control_send(t, &t->peers[r], &here, NULL);
    double now = clt_seconds();
    for (int r = 0; r < t->size; r++) t->peers[r].heard = now;
    t->released = true;
    return CLT_OK;
}

/* ---- creating ---- */

static clt_status check_options(const clt_transport_options *o) {
    if (o->size < 1 || o->size > MOST_RANKS)
        return clt_fail(CLT_E_INVALID, "a job of %d ranks: 1 to %d", o->size, MOST_RANKS);
    if (o->rank < 0 || o->rank >= o->size)
        return clt_fail(CLT_E_INVALID, "rank %d of %d: there is none", o->rank, o->size);
    if (o->channels < 1 || o->channels > MOST_CHANNELS)
        return clt_fail(CLT_E_INVALID, "%d channels: 1 to %d", o->channels, MOST_CHANNELS);
    if (!(o->heartbeat_seconds >= 0.2) || !(o->connect_seconds > 0))
        return clt_fail(CLT_E_INVALID, "heartbeat %g, at least 0.2, connect time %g: seconds",
                        o->heartbeat_seconds, o->connect_seconds);
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
    if (!t->peers || !t->lost || !t->strangers || !t->polled || !t->scratch)
        return clt_fail_memory(size * sizeof *t->peers);
    for (int r = 0; r < t->size; r++) CLT_TRY(make_peer(t, r));
    t->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return t->waker >= 0 ? CLT_OK : clt_fail(CLT_E_SYSTEM, "no event descriptor could be made");
}

/* Who says that a rank is lost is the heartbeat, and no sooner the system. */
static void be_patient(const clt_transport *t, const clt_socket *socket) {
    int milliseconds = (int)(1000 * CLT_MIN(CLT_MAX(2 * t->heartbeat_seconds, 20), 86400));
    setsockopt(clt_socket_descriptor(socket), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
               sizeof milliseconds);
}

static clt_status publish(const clt_transport *t, const clt_transport_options *o, double deadline) {
    char key[CLT_RENDEZVOUS_KEY_BYTES];
    clt_transport_address_key(key, t->generation, t->rank);
    for (;;) {
        double soon = CLT_MIN(deadline, clt_seconds() + PUBLISH_SECONDS);
        clt_status status = clt_rendezvous_set(o->rendezvous, key, t->address, strlen(t->address), soon);
        if (status != CLT_E_NETWORK || clt_seconds() >= deadline) return status;
        CLT_TRY(clt_transport_check_lost(o));
    }
}

static clt_status come_together(clt_transport *t, const clt_transport_options *o) {
    double deadline = clt_seconds() + o->connect_seconds;
    CLT_TRY(clt_listen(o->network, o->towards, o->ports, &t->listener, t->address));
    CLT_TRY(publish(t, o, deadline));
    CLT_TRY(clt_transport_connect(t, o, deadline));
    double now = clt_seconds();
    for (int r = 0; r < t->size; r++) {
        t->peers[r].heard = t->peers[r].spoke = now;
        if (r == t->rank) continue;
        be_patient(t, t->peers[r].control.socket);
        for (int c = 0; c < t->channels; c++) be_patient(t, t->peers[r].links[c].socket);
    }
    CLT_TRY(reach_barrier(t, o, deadline));
    t->complete = true;
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
    t->describe_slot = options->describe_slot;
    t->listener = t->waker = -1;
    clt_status status = make(t, options);
    t->made = status == CLT_OK;
    if (status == CLT_OK && t->size > 1) status = come_together(t, options);
    if (status == CLT_OK) {
        *out = t;
        return CLT_OK;
    }
    char detail[CLT_REASON_BYTES];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    if (t->made) clt_transport_fail(t, status, detail); /* those who are there need not wait */
    clt_transport_destroy(t);
    return clt_fail_again(status, detail);
}

const char *clt_transport_address(const clt_transport *t) {
    return t->address;
}

/* ---- parting ---- */

/* Whether all that was written has arrived at the other host: closing with unread input would else
 * throw it away. */
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
        bool unsent = control->out_start < control->out_end ||
                      clt_socket_events(control->socket, false, false) != 0;
        said = said && (control->mute || (!unsent && has_arrived(control->socket)));
        for (int c = 0; c < t->channels; c++) {
            clt_link *link = &peer->links[c];
            size_t moved;
            if (!link->socket || link->ended) continue;
            if (clt_socket_write(link->socket, NULL, 0, &moved) < 0) link->ended = true;
            else if (clt_socket_events(link->socket, false, false) != 0 || !has_arrived(link->socket))
                said = false;
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
    while (!is_said(t) && clt_seconds() < deadline) clt_transport_pause(0.001);
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
    if (t->made) part(t);
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
