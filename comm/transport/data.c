#include "comm/transport/parts.h"

#include <string.h>

enum { LEAST_PIECE = 32 * 1024 };

/* ---- out ---- */

/* Bytes of a message that may go now: whole elements, unless they are the last. */
static size_t available(const clt_transfer *transfer) {
    if (transfer->bytes <= CLT_EAGER_BYTES || !transfer->announced) return 0;
    size_t ready = transfer->ready;
    if (ready < transfer->bytes) ready -= ready % CLT_ALIGNMENT;
    return ready > transfer->queued ? ready - transfer->queued : 0;
}

static clt_transfer *pick(const clt_peer *peer, bool small) {
    for (clt_transfer *one = peer->sends.first; one; one = one->next) {
        size_t bytes = available(one);
        if (bytes && (small || bytes >= LEAST_PIECE || one->queued + bytes == one->bytes)) return one;
    }
    return NULL;
}

static void begin_frame(clt_link *link, clt_transfer *transfer) {
    clt_frame frame = {.kind = CLT_FRAME_DATA,
                       .type = transfer->type,
                       .length = (uint32_t)CLT_MIN(available(transfer), CLT_FRAME_BYTES),
                       .ticket = transfer->ticket,
                       .slot = transfer->slot,
                       .offset = transfer->queued,
                       .total = transfer->bytes};
    clt_frame_encode(&frame, link->out_header);
    link->out_header_left = CLT_HEADER_BYTES;
    link->from = transfer;
    link->out_at = transfer->queued;
    link->out_left = frame.length;
    transfer->queued += frame.length;
}

/* Sent from the start: what no connection still holds. */
static void count_sent(clt_transport *t, clt_peer *peer, clt_transfer *transfer) {
    size_t done = transfer->queued;
    for (int c = 0; c < t->channels; c++)
        if (peer->links[c].from == transfer) done = CLT_MIN(done, peer->links[c].out_at);
    transfer->done = done;
    if (done == transfer->bytes) clt_transfer_end(t, peer, transfer, true);
}

bool clt_link_write(clt_transport *t, clt_peer *peer, clt_link *link, bool small) {
    if (link->ended) return false;
    if (!link->from) {
        clt_transfer *next = pick(peer, small);
        if (!next) return false;
        begin_frame(link, next);
    }
    clt_transfer *from = link->from;
    struct iovec pieces[] = {
        {link->out_header + CLT_HEADER_BYTES - link->out_header_left, link->out_header_left},
        {(char *)from->data + link->out_at, link->out_left},
    };
    size_t moved;
    if (clt_socket_write(link->socket, pieces, 2, &moved) < 0) {
        clt_link_ended(t, peer, link, clt_error_detail());
        return false;
    }
    size_t of_header = CLT_MIN(moved, link->out_header_left), of_payload = moved - of_header;
    link->out_header_left -= of_header;
    link->out_at += of_payload;
    link->out_left -= of_payload;
    t->counts.bytes_sent += of_payload;
    if (link->out_left == 0 && link->out_header_left == 0) link->from = NULL;
    if (of_payload) count_sent(t, peer, from);
    return moved > 0;
}

bool clt_link_has_output(const clt_peer *peer, const clt_link *link) {
    return link->from || pick(peer, true);
}

/* ---- in ---- */

bool clt_link_is_stalled(const clt_link *link) {
    return link->in_header_got == CLT_HEADER_BYTES && !link->into;
}

/* Finds the message whose next part the frame is. Nothing of it is read before. */
static void match(clt_transport *t, clt_peer *peer, clt_link *link) {
    const clt_frame *frame = &link->frame;
    clt_transfer *transfer = peer->receives.first;
    while (transfer && (!transfer->announced || transfer->ticket != frame->ticket))
        transfer = transfer->next;
    if (!transfer || transfer->slot != frame->slot) {
        clt_transport_accuse(t, peer->rank, "unexpected data of message %llu",
                             (unsigned long long)frame->slot);
    } else if (frame->offset > frame->total || frame->length > frame->total - frame->offset ||
               (frame->length % CLT_ALIGNMENT && frame->offset + frame->length != frame->total)) {
        clt_transport_accuse(t, peer->rank, "a frame of a wrong length");
    } else if (frame->offset == transfer->done) {
        if (!clt_transfer_agrees(t, peer, transfer, frame, true)) return;
        link->into = transfer;
        link->in_left = frame->length;
        link->carried = 0;
    } else if (t->channels ==
               1) { /* else what comes before it may still be on its way on another connection */
        clt_transport_accuse(t, peer->rank, "a frame out of order");
    }
}

static bool read_header(clt_transport *t, clt_peer *peer, clt_link *link) {
    size_t moved;
    if (clt_socket_read(link->socket, link->in_header + link->in_header_got,
                        CLT_HEADER_BYTES - link->in_header_got, &moved) < 0) {
        clt_link_ended(t, peer, link, clt_error_detail());
        return false;
    }
    link->in_header_got += moved;
    if (link->in_header_got < CLT_HEADER_BYTES) return moved > 0;
    if (clt_frame_decode(&link->frame, link->in_header) && link->frame.kind == CLT_FRAME_DATA &&
        link->frame.length > 0 && link->frame.length <= CLT_FRAME_BYTES)
        return true;
    link->ended = true;
    clt_transport_accuse(t, peer->rank, "a frame that there is none of");
    return false;
}

/* Straight to where it belongs. */
static clt_status read_plain(clt_link *link, size_t *moved) {
    clt_transfer *into = link->into;
    CLT_TRY(clt_socket_read(link->socket, (char *)into->data + into->done, link->in_left, moved));
    into->done += *moved;
    return CLT_OK;
}

/* Through the scratch memory, which stays in the processor's cache; part of an element waits for its
 * rest. */
static clt_status read_consumed(clt_transport *t, clt_link *link, size_t *moved) {
    size_t before = link->carried;
    memcpy(t->scratch, link->carry, before);
    CLT_TRY(clt_socket_read(link->socket, t->scratch + before, link->in_left, moved));
    size_t there = before + *moved,
           whole = *moved == link->in_left ? there : there - there % CLT_ALIGNMENT;
    link->carried = there - whole;
    memcpy(link->carry, t->scratch + whole, link->carried);
    clt_transfer_take(link->into, t->scratch, whole);
    return CLT_OK;
}

static bool read_payload(clt_transport *t, clt_peer *peer, clt_link *link) {
    size_t moved;
    clt_transfer *into = link->into;
    clt_status status = into->consume ? read_consumed(t, link, &moved) : read_plain(link, &moved);
    if (status < 0) {
        clt_link_ended(t, peer, link, clt_error_detail());
        return false;
    }
    link->in_left -= moved;
    t->counts.bytes_received += moved;
    if (link->in_left == 0) {
        link->into = NULL;
        link->in_header_got = 0;
    }
    if (into->done == into->bytes) clt_transfer_end(t, peer, into, false);
    return moved > 0;
}

bool clt_link_read(clt_transport *t, clt_peer *peer, clt_link *link) {
    if (link->ended || t->status < 0) return false;
    if (link->in_header_got < CLT_HEADER_BYTES && !read_header(t, peer, link)) return false;
    if (link->in_header_got < CLT_HEADER_BYTES) return true;
    if (!link->into) match(t, peer, link);
    if (!link->into || link->ended) return false;
    if (read_payload(t, peer, link)) {
        peer->heard = clt_seconds();
        return true;
    }
    return false;
}
