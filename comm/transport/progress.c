#define _GNU_SOURCE /* eventfd */
#include "comm/transport/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BROKEN_SECONDS 0.5 /* for the word that explains a closed data connection to arrive */
#define OFFER_SECONDS  1.0
#define POLL_SECONDS   0.002 /* while data flow, so often is everything else looked at */
enum { MOST_ROUNDS = 16 };   /* of about a frame each way: then the caller has its turn */

/* ---- timers ---- */

static void check_peer(clt_transport *t, clt_peer *peer, double now) {
    if (peer->control.ended || t->lost[peer->rank]) return;
    if (peer->broken_since > 0 && !peer->goodbye && now - peer->broken_since > BROKEN_SECONDS) {
        clt_transport_lose(t, peer->rank, peer->broken);
        return;
    }
    bool owes_nothing = peer->goodbye && !peer->sends.first && !peer->receives.first;
    if (t->released && !owes_nothing && now - peer->heard > t->heartbeat_seconds) {
        char why[100];
        snprintf(why, sizeof why, "it has been silent for %.3g seconds", now - peer->heard);
        clt_transport_lose(t, peer->rank, why);
        return;
    }
    if (now - peer->spoke >= t->heartbeat_seconds / 4)
        clt_control_send(t, peer, &(clt_frame){.kind = CLT_FRAME_BEAT}, NULL);
}

static void run_timers(clt_transport *t, double now) {
    if (now < t->next_timers) return;
    bool offers = now >= t->next_offers;
    double step = CLT_MIN(t->heartbeat_seconds / 16, 0.1);
    t->next_timers = now + step;
    if (offers) t->next_offers = now + OFFER_SECONDS;
    clt_strangers_expire(t, now);
    /* After the end, too: the survivors want to know who is left. */
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank) continue;
        check_peer(t, &t->peers[r], now);
        if (offers) clt_messages_offer(t, &t->peers[r]);
    }
}

/* ---- waiting ---- */

static void add(clt_transport *t, int *n, int descriptor, short events) {
    t->polled[(*n)++] = (struct pollfd){descriptor, events, 0};
}

/* In an order that move_ready follows: -1 is passed over. */
static int gather(clt_transport *t, double now) {
    int n = 0;
    add(t, &n, t->waker, POLLIN);
    add(t, &n, now < t->deaf_until ? -1 : t->listener, POLLIN);
    for (int i = 0; i < t->n_strangers; i++)
        add(t, &n, clt_socket_descriptor(t->strangers[i].socket),
            clt_socket_events(t->strangers[i].socket, true, false));
    for (int r = 0; r < t->size; r++) {
        clt_peer *peer = &t->peers[r];
        const clt_control *control = &peer->control;
        bool queued = control->out_start < control->out_end;
        if (r == t->rank || !control->socket || control->ended) add(t, &n, -1, 0);
        else
            add(t, &n, clt_socket_descriptor(control->socket),
                clt_socket_events(control->socket, true, queued));
        for (int c = 0; r != t->rank && c < t->channels; c++) {
            const clt_link *link = &peer->links[c];
            if (!link->socket || link->ended) add(t, &n, -1, 0);
            else if (clt_link_is_stalled(link) && !clt_link_has_output(peer, link)) add(t, &n, -1, 0);
            else
                add(t, &n, clt_socket_descriptor(link->socket),
                    clt_socket_events(link->socket, !clt_link_is_stalled(link),
                                      clt_link_has_output(peer, link)));
        }
    }
    return n;
}

/* Bytes that TLS has read ahead do not show in poll. */
static bool control_is_pending(const clt_peer *peer) {
    const clt_control *control = &peer->control;
    return control->socket && !control->ended && clt_socket_pending(control->socket);
}

static bool link_is_pending(const clt_link *link) {
    return link->socket && !link->ended && !clt_link_is_stalled(link) &&
           clt_socket_pending(link->socket);
}

static bool is_pending(const clt_transport *t) {
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank) continue;
        if (control_is_pending(&t->peers[r])) return true;
        for (int c = 0; c < t->channels; c++)
            if (link_is_pending(&t->peers[r].links[c])) return true;
    }
    return false;
}

static bool move_link(clt_transport *t, clt_peer *peer, clt_link *link) {
    bool moved = clt_link_read(t, peer, link), wrote = clt_link_write(t, peer, link, true);
    if (link->ended || wrote || clt_socket_events(link->socket, false, false) == 0)
        return moved || wrote;
    size_t sent; /* what TLS holds back */
    if (clt_socket_write(link->socket, NULL, 0, &sent) < 0)
        clt_link_ended(t, peer, link, clt_error_detail());
    return moved;
}

static bool move_peer(clt_transport *t, clt_peer *peer, const struct pollfd *ready) {
    bool moved = false;
    if (ready[0].revents & POLLOUT) moved = clt_control_flush(t, peer);
    if (ready[0].revents & ~POLLOUT || control_is_pending(peer))
        moved = clt_control_read(t, peer) || moved;
    for (int c = 0; c < t->channels && t->status == CLT_OK; c++) {
        clt_link *link = &peer->links[c];
        if (!link->ended && (ready[1 + c].revents || link_is_pending(link)))
            moved = move_link(t, peer, link) || moved;
    }
    return moved;
}

static bool move_ready(clt_transport *t) {
    const struct pollfd *at = t->polled;
    bool moved = false;
    int strangers = t->n_strangers;
    if ((at++)->revents) {
        uint64_t count;
        moved = read(t->waker, &count, sizeof count) > 0;
    }
    const struct pollfd *listener = at++;
    /* From the last, for one that goes is replaced by the last. */
    for (int i = strangers - 1; i >= 0; i--)
        if (at[i].revents) clt_strangers_advance(t, i);
    at += strangers;
    for (int r = 0; r < t->size; r++) {
        if (r != t->rank) moved = move_peer(t, &t->peers[r], at) || moved;
        at += r == t->rank ? 1 : 1 + t->channels;
    }
    if (listener->revents) clt_strangers_accept(t);
    return moved;
}

bool clt_transport_poll(clt_transport *t, double seconds) {
    double now = clt_seconds(), wait = CLT_MAX(CLT_MIN(seconds, t->next_timers - now), 0);
    bool pending = is_pending(t);
    if (pending) wait = 0;
    int n = gather(t, now);
    int ready = poll(t->polled, (nfds_t)n, (int)(wait * 1000 + 0.999));
    bool moved = (ready > 0 || (ready == 0 && pending)) && move_ready(t);
    now = clt_seconds();
    t->last_poll = now;
    run_timers(t, now);
    return moved;
}

/* ---- moving what there is, without asking first whether it can ---- */

typedef struct expected {
    bool notice; /* on the control connection: a small message, or that a receiver is ready */
    bool data;
} expected;

static expected what_to_expect(const clt_peer *peer) {
    expected e = {0};
    for (const clt_transfer *one = peer->sends.first; one && !e.notice; one = one->next)
        e.notice = !one->announced;
    for (const clt_transfer *one = peer->receives.first; one && !(e.notice && e.data); one = one->next) {
        e.notice = e.notice || !one->announced;
        e.data = e.data || one->announced;
    }
    return e;
}

static bool move_busy_peer(clt_transport *t, clt_peer *peer) {
    bool moved = clt_messages_send_small(t, peer);
    expected e = what_to_expect(peer);
    if (e.notice && clt_control_read(t, peer)) moved = true;
    for (int c = 0; c < t->channels && t->status == CLT_OK; c++) {
        if (e.data && clt_link_read(t, peer, &peer->links[c])) moved = true;
        if (clt_link_write(t, peer, &peer->links[c], false)) moved = true;
    }
    return moved;
}

static bool is_busy(const clt_transport *t, int rank) {
    return rank != t->rank && (t->peers[rank].sends.first || t->peers[rank].receives.first);
}

static bool move_busy(clt_transport *t) {
    bool moved = false;
    for (int r = 0; r < t->size && t->status == CLT_OK; r++)
        if (is_busy(t, r) && move_busy_peer(t, &t->peers[r])) moved = true;
    return moved;
}

/* When nothing else moves, small pieces are worth their headers. */
static bool move_small_pieces(clt_transport *t) {
    bool moved = false;
    for (int r = 0; r < t->size && t->status == CLT_OK; r++)
        for (int c = 0; is_busy(t, r) && c < t->channels; c++)
            if (clt_link_write(t, &t->peers[r], &t->peers[r].links[c], true)) moved = true;
    return moved;
}

static clt_status progress_after_end(clt_transport *t) {
    /* The news goes out, and who else is lost is noted. */
    clt_transport_poll(t, 0);
    return clt_transport_state(t);
}

clt_status clt_transport_progress(clt_transport *t, double seconds) {
    if (t->status < 0) return progress_after_end(t);
    uint64_t ended = t->ended_transfers;
    bool moved = false;
    for (int i = 0; i < MOST_ROUNDS && t->ended_transfers == ended && t->status == CLT_OK; i++) {
        if (!move_busy(t) && !move_small_pieces(t)) break;
        moved = true;
    }
    double now = clt_seconds(), deadline = now + seconds;
    if (moved && now - t->last_poll < POLL_SECONDS) return clt_transport_state(t);
    if (moved) deadline = now;
    while (t->status == CLT_OK && !clt_transport_poll(t, deadline - now) &&
           t->ended_transfers == ended) {
        now = clt_seconds();
        if (now >= deadline) break;
    }
    return clt_transport_state(t);
}

void clt_transport_wake(clt_transport *t) {
    uint64_t one = 1;
    ssize_t written;
    do written = write(t->waker, &one, sizeof one);
    while (written < 0 && errno == EINTR); /* full: it will wake anyhow */
}

clt_transport_counts clt_transport_get_counts(const clt_transport *t) {
    return t->counts;
}
