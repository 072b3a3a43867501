#include "comm/transport/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- lists ---- */

void clt_transfers_add(clt_transfers *list, clt_transfer *transfer) {
    transfer->next = NULL;
    transfer->link = list->end;
    *list->end = transfer;
    list->end = &transfer->next;
}

static void take_out(clt_transfers *list, clt_transfer *transfer) {
    *transfer->link = transfer->next;
    if (transfer->next) transfer->next->link = transfer->link;
    else list->end = transfer->link;
    transfer->next = NULL;
    transfer->link = NULL;
}

clt_transfer *clt_transfers_find(const clt_transfers *list, uint64_t slot) {
    clt_transfer *one = list->first;
    while (one && one->slot != slot) one = one->next;
    return one;
}

/* Tells the sender that a large message may come. */
static void say_ready(clt_transport *t, clt_peer *peer, clt_transfer *transfer) {
    transfer->announced = true;
    transfer->ticket = ++peer->tickets;
    peer->n_ready++;
    clt_control_send(t, peer,
                     &(clt_frame){.kind = CLT_FRAME_READY, .type = transfer->type, .ticket = transfer->ticket,
                                  .slot = transfer->slot, .total = transfer->bytes},
                     NULL);
}

/* Those whose turn to say so has come, many at once. Whoever sends another first offers it: see clt_message_offered. */
static void say_next_ready(clt_transport *t, clt_peer *peer) {
    if (!peer->holds_back || peer->n_ready > CLT_NOTICE_LIMIT / 2 || t->status < 0) return;
    clt_transfer *one = peer->receives.first;
    for (; one && peer->n_ready < CLT_NOTICE_LIMIT; one = one->next)
        if (!one->announced && one->bytes > CLT_EAGER_BYTES) say_ready(t, peer, one);
    peer->holds_back = one != NULL;
}

void clt_transfer_end(clt_transport *t, clt_peer *peer, clt_transfer *transfer, bool sending) {
    take_out(sending ? &peer->sends : &peer->receives, transfer);
    transfer->active = false;
    t->ended_transfers++;
    if (sending || !transfer->announced) return;
    peer->n_ready--;
    say_next_ready(t, peer);
}

/* ---- receiving ---- */

static void describe(const clt_transport *t, uint32_t type, uint64_t bytes, char text[200]) {
    if (t->describe) t->describe(type, (size_t)bytes, text, 200);
    else snprintf(text, 200, "%" PRIu64 " bytes of type %u", bytes, type);
}

static void fail_difference(clt_transport *t, uint64_t slot, int from, int to, uint64_t sent, uint32_t sent_type,
                            uint64_t expected, uint32_t expected_type) {
    char text[CLT_REASON_BYTES], what[100], there[200], here[200];
    if (t->describe_slot) t->describe_slot(slot, what, sizeof what);
    else snprintf(what, sizeof what, "message %" PRIu64, slot);
    describe(t, sent_type, sent, there);
    describe(t, expected_type, expected, here);
    snprintf(text, sizeof text, "%s from rank %d to rank %d: sent is %s, expected %s", what, from, to, there, here);
    clt_transport_end(t, CLT_E_MISMATCH, text, text, -1);
}

bool clt_transfer_agrees(clt_transport *t, const clt_peer *peer, const clt_transfer *own,
                         const clt_frame *frame, bool theirs_is_sender) {
    if (own->bytes == frame->total && own->type == frame->type) return true;
    if (theirs_is_sender)
        fail_difference(t, own->slot, peer->rank, t->rank, frame->total, frame->type, own->bytes,
                        own->type);
    else
        fail_difference(t, own->slot, t->rank, peer->rank, own->bytes, own->type, frame->total,
                        frame->type);
    return false;
}

void clt_transfer_take(clt_transfer *transfer, const void *source, size_t bytes) {
    char *destination = (char *)transfer->data + transfer->done;
    if (bytes && transfer->consume) transfer->consume(destination, source, bytes, transfer->context);
    else if (bytes) memcpy(destination, source, bytes);
    transfer->done += bytes;
}

/* Lets the sender have more small messages under way. */
static void give_credit(clt_transport *t, clt_peer *peer, size_t bytes) {
    peer->taken += bytes + CLT_EAGER_COST;
    if (peer->taken < CLT_EAGER_LIMIT / 4) return;
    clt_control_send(t, peer, &(clt_frame){.kind = CLT_FRAME_CREDIT, .total = peer->taken}, NULL);
    peer->taken = 0;
}

/* payload: aligned for any type. */
static void receive_small(clt_transport *t, clt_peer *peer, clt_transfer *transfer,
                          const clt_frame *frame, const void *payload) {
    if (!clt_transfer_agrees(t, peer, transfer, frame, true)) return;
    clt_transfer_take(transfer, payload, frame->length);
    t->counts.bytes_received += frame->length;
    clt_transfer_end(t, peer, transfer, false);
    give_credit(t, peer, frame->length);
}

static void keep_early(clt_transport *t, clt_peer *peer, const clt_frame *frame,
                       const unsigned char *payload) {
    size_t cost = frame->length + CLT_EAGER_COST;
    if (peer->early_bytes + peer->taken + cost > CLT_EAGER_LIMIT) {
        clt_transport_accuse(t, peer->rank, "more small messages than it may send unasked");
        return;
    }
    clt_early *early = clt_alloc(sizeof *early + frame->length);
    if (!early) {
        clt_transport_fail(t, CLT_E_NO_MEMORY, "no memory for a message that arrived");
        return;
    }
    *early = (clt_early){.slot = frame->slot, .type = frame->type, .bytes = frame->length};
    memcpy(early->data, payload, frame->length);
    *peer->early_end = early;
    peer->early_end = &early->next;
    peer->early_bytes += cost;
}

void clt_message_arrived(clt_transport *t, clt_peer *peer, const clt_frame *frame,
                         const unsigned char *payload) {
    if (t->status < 0) return;
    if (frame->total != frame->length) {
        clt_transport_accuse(t, peer->rank, "a small message of two lengths");
        return;
    }
    clt_transfer *transfer = clt_transfers_find(&peer->receives, frame->slot);
    if (!transfer) {
        keep_early(t, peer, frame, payload);
        return;
    }
    memcpy(t->scratch, payload, frame->length);
    receive_small(t, peer, transfer, frame, t->scratch);
}

/* Gives a message that came before it was asked for. */
static bool take_early(clt_transport *t, clt_peer *peer, clt_transfer *transfer) {
    clt_early **at = &peer->early;
    while (*at && (*at)->slot != transfer->slot) at = &(*at)->next;
    clt_early *early = *at;
    if (!early) return false;
    *at = early->next;
    if (!early->next) peer->early_end = at;
    peer->early_bytes -= early->bytes + (size_t)CLT_EAGER_COST;
    clt_frame frame = {
        .type = early->type, .length = early->bytes, .slot = early->slot, .total = early->bytes};
    receive_small(t, peer, transfer, &frame, early->data);
    clt_free(early);
    return true;
}

void clt_message_offered(clt_transport *t, clt_peer *peer, const clt_frame *frame) {
    clt_transfer *transfer = clt_transfers_find(&peer->receives, frame->slot);
    if (t->status < 0 || !transfer || !clt_transfer_agrees(t, peer, transfer, frame, true)) return;
    /* It was held back, behind others that may wait for this one. */
    if (!transfer->announced && transfer->bytes > CLT_EAGER_BYTES) say_ready(t, peer, transfer);
}

static clt_status check_post(clt_transport *t, const clt_transfer *transfer) {
    CLT_TRY(clt_transport_state(t));
    if (transfer->peer < 0 || transfer->peer >= t->size || transfer->peer == t->rank)
        return clt_fail(CLT_E_INVALID, "a message of rank %d to or from rank %d: no other rank of %d",
                        t->rank, transfer->peer, t->size);
    return transfer->active ? clt_fail(CLT_E_STATE, "a message is begun that is under way") : CLT_OK;
}

clt_status clt_transport_receive(clt_transport *t, clt_transfer *transfer) {
    CLT_TRY(check_post(t, transfer));
    clt_peer *peer = &t->peers[transfer->peer];
    bool first = !clt_transfers_find(&peer->receives, transfer->slot);
    transfer->done = transfer->queued = 0;
    transfer->announced = false;
    transfer->active = true;
    clt_transfers_add(&peer->receives, transfer);
    if (first && take_early(t, peer, transfer)) return clt_transport_state(t);
    if (transfer->bytes > CLT_EAGER_BYTES && peer->n_ready < CLT_NOTICE_LIMIT && !peer->holds_back) say_ready(t, peer, transfer);
    else if (transfer->bytes > CLT_EAGER_BYTES) peer->holds_back = true;
    clt_peer_check_left(t, peer);
    return clt_transport_state(t);
}

/* ---- sending ---- */

/* The first large message of a slot whose receiver has not spoken. */
static clt_transfer *find_unannounced(const clt_peer *peer, uint64_t slot) {
    clt_transfer *one = peer->sends.first;
    while (one && (one->slot != slot || one->announced || one->bytes <= CLT_EAGER_BYTES))
        one = one->next;
    return one;
}

static bool announce(clt_transport *t, clt_peer *peer, const clt_frame *frame) {
    clt_transfer *transfer = find_unannounced(peer, frame->slot);
    if (!transfer) return false;
    transfer->announced = clt_transfer_agrees(t, peer, transfer, frame, false);
    transfer->ticket = frame->ticket;
    return true;
}

void clt_message_is_ready(clt_transport *t, clt_peer *peer, const clt_frame *frame) {
    if (t->status < 0 || announce(t, peer, frame)) return;
    /* A small message of that slot waits for credit, or for its bytes: the receiver expects a large one. */
    clt_transfer *small = clt_transfers_find(&peer->sends, frame->slot);
    if (small && !small->announced && !clt_transfer_agrees(t, peer, small, frame, false)) return;
    if (peer->n_notices >= CLT_NOTICE_LIMIT) {
        clt_transport_accuse(t, peer->rank, "it is ready for more messages than may be");
        return;
    }
    if (clt_grow(&peer->notices, &peer->notice_capacity, peer->n_notices, sizeof *peer->notices) < 0) {
        clt_transport_fail(t, CLT_E_NO_MEMORY, "no memory for a notice that arrived");
        return;
    }
    peer->notices[peer->n_notices++] = *frame;
}

/* A receiver that was ready before the sender. */
static void look_for_notice(clt_transport *t, clt_peer *peer, const clt_transfer *transfer) {
    for (size_t i = 0; i < peer->n_notices; i++) {
        if (peer->notices[i].slot != transfer->slot) continue;
        clt_frame frame = peer->notices[i];
        peer->n_notices--;
        memmove(&peer->notices[i], &peer->notices[i + 1], (peer->n_notices - i) * sizeof frame);
        if (!announce(t, peer, &frame)) clt_transfer_agrees(t, peer, transfer, &frame, false);
        return;
    }
}

void clt_message_credit(clt_transport *t, clt_peer *peer, const clt_frame *frame) {
    if (frame->total > peer->owed)
        clt_transport_accuse(t, peer->rank, "it took more messages than it was sent");
    else peer->owed -= frame->total;
}

static bool may_go(const clt_peer *peer, const clt_transfer *transfer) {
    return transfer->bytes <= CLT_EAGER_BYTES && transfer->ready >= transfer->bytes &&
           peer->owed + transfer->bytes + CLT_EAGER_COST <= CLT_EAGER_LIMIT &&
           clt_transfers_find(&peer->sends, transfer->slot) == transfer;
}

bool clt_messages_send_small(clt_transport *t, clt_peer *peer) {
    bool sent = false;
    for (clt_transfer *one = peer->sends.first, *next; one && t->status == CLT_OK; one = next) {
        next = one->next;
        if (!may_go(peer, one)) continue;
        clt_frame frame = {.kind = CLT_FRAME_EAGER,
                           .type = one->type,
                           .length = (uint32_t)one->bytes,
                           .slot = one->slot,
                           .total = one->bytes};
        peer->owed += one->bytes + CLT_EAGER_COST;
        clt_control_send(t, peer, &frame, one->data);
        one->done = one->bytes;
        t->counts.bytes_sent += one->bytes;
        clt_transfer_end(t, peer, one, true);
        sent = true;
    }
    return sent;
}

void clt_messages_offer(clt_transport *t, clt_peer *peer) {
    for (const clt_transfer *one = peer->sends.first; one && t->status == CLT_OK; one = one->next) {
        if (one->announced || one->bytes <= CLT_EAGER_BYTES) continue;
        clt_frame frame = {
            .kind = CLT_FRAME_OFFER, .type = one->type, .slot = one->slot, .total = one->bytes};
        clt_control_send(t, peer, &frame, NULL);
    }
}

clt_status clt_transport_send(clt_transport *t, clt_transfer *transfer) {
    CLT_TRY(check_post(t, transfer));
    if (transfer->ready > transfer->bytes)
        return clt_fail(CLT_E_INVALID, "more of a message is ready than there is");
    clt_peer *peer = &t->peers[transfer->peer];
    transfer->done = transfer->queued = 0;
    transfer->announced = false;
    transfer->active = true;
    clt_transfers_add(&peer->sends, transfer);
    look_for_notice(t, peer, transfer);
    clt_peer_check_left(t, peer);
    clt_messages_send_small(t, peer);
    return clt_transport_state(t);
}

void clt_transport_cancel(clt_transport *t, clt_transfer *transfer) {
    if (!transfer->active) return;
    clt_peer *peer = &t->peers[transfer->peer];
    bool begun = transfer->announced || transfer->queued || transfer->done, sending = false;
    for (const clt_transfer *one = peer->sends.first; one; one = one->next)
        sending = sending || one == transfer;
    /* The other end counts on what it was told. */
    if (begun && t->status == CLT_OK)
        clt_transport_fail(t, CLT_E_ABORTED, "a message that was under way was given up");
    for (int c = 0; c < t->channels; c++) {
        clt_link *link = &peer->links[c];
        if (link->into != transfer && link->from != transfer) continue;
        link->ended = true; /* the rest of its frame will never be sent, or has no place to go */
        link->into = link->from = NULL;
    }
    clt_transfer_end(t, peer, transfer, sending);
}
