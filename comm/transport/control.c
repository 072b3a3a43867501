#include "comm/transport/parts.h"

#include <string.h>

enum { LEAST_QUEUE = 4096 };

/* ---- out ---- */

static bool append(clt_control *control, const void *bytes, size_t n) {
    if (n == 0) return true;
    if (control->out_capacity - control->out_end < n && control->out_start > 0) {
        memmove(control->out, control->out + control->out_start, control->out_end - control->out_start);
        control->out_end -= control->out_start;
        control->out_start = 0;
    }
    if (control->out_capacity - control->out_end < n) {
        size_t capacity = CLT_MAX(2 * (control->out_end + n), LEAST_QUEUE);
        unsigned char *grown = clt_realloc(control->out, capacity);
        if (!grown) return false;
        control->out = grown;
        control->out_capacity = capacity;
    }
    memcpy(control->out + control->out_end, bytes, n);
    control->out_end += n;
    return true;
}

/* Not to be written to any more. Why it broke is found by reading, after what it still had to say. */
static void silence(clt_control *control) {
    control->mute = true;
    control->out_start = control->out_end = 0;
}

void clt_control_send(clt_transport *t, clt_peer *peer, const clt_frame *frame, const void *payload) {
    clt_control *control = &peer->control;
    if (!control->socket || control->ended || control->mute) return;
    unsigned char header[CLT_HEADER_BYTES];
    clt_frame_encode(frame, header);
    size_t moved = 0;
    if (control->out_start == control->out_end) {
        struct iovec pieces[] = {{header, sizeof header}, {(void *)(uintptr_t)payload, frame->length}};
        if (clt_socket_write(control->socket, pieces, frame->length ? 2 : 1, &moved) < 0) {
            silence(control);
            return;
        }
        peer->spoke = clt_seconds();
    }
    size_t of_header = CLT_MIN(moved, sizeof header), of_payload = moved - of_header;
    if (append(control, header + of_header, sizeof header - of_header) &&
        (frame->length == 0 || append(control, (const char *)payload + of_payload, frame->length - of_payload)))
        return;
    silence(control); /* half a frame may be out: nothing can follow it */
    clt_transport_end(t, CLT_E_NO_MEMORY, "no memory for a message that waits to be sent",
                      "a rank has no memory for messages", -1);
}

bool clt_control_flush(clt_transport *t, clt_peer *peer) {
    clt_control *control = &peer->control;
    (void)t;
    if (control->ended || control->mute) return false;
    struct iovec piece = {NULL, control->out_end - control->out_start};
    if (piece.iov_len) piece.iov_base = control->out + control->out_start; /* else there may be no queue yet */
    size_t moved;
    if (clt_socket_write(control->socket, &piece, piece.iov_len > 0, &moved) < 0) {
        silence(control);
        return false;
    }
    control->out_start += moved;
    if (control->out_start == control->out_end) control->out_start = control->out_end = 0;
    if (moved) peer->spoke = clt_seconds();
    return moved > 0;
}

/* ---- in ---- */

static void reach_barrier(clt_transport *t, clt_peer *peer) {
    if (peer->arrived || (t->rank != 0 && peer->rank != 0)) {
        clt_transport_accuse(t, peer->rank, "a barrier is out of place");
        return;
    }
    peer->arrived = true;
    if (t->rank != 0) t->released = true;
}

static void act(clt_transport *t, clt_peer *peer, const clt_frame *frame, const unsigned char *payload) {
    switch (frame->kind) {
    case CLT_FRAME_EAGER:
        clt_message_arrived(t, peer, frame, payload);
        return;
    case CLT_FRAME_READY:
        clt_message_is_ready(t, peer, frame);
        return;
    case CLT_FRAME_OFFER:
        clt_message_offered(t, peer, frame);
        return;
    case CLT_FRAME_CREDIT:
        clt_message_credit(t, peer, frame);
        return;
    case CLT_FRAME_BEAT:
        return;
    case CLT_FRAME_FAIL:
        clt_transport_told(t, peer, frame, payload);
        return;
    case CLT_FRAME_GOODBYE:
        peer->goodbye = true;
        clt_peer_check_left(t, peer);
        return;
    case CLT_FRAME_BARRIER:
        reach_barrier(t, peer);
        return;
    case CLT_FRAME_DATA:
        break;
    }
    clt_transport_accuse(t, peer->rank, "data on the control connection");
}

/* Bytes that a frame of its kind may carry. */
static uint32_t most_payload(clt_frame_kind kind) {
    return kind == CLT_FRAME_EAGER ? CLT_EAGER_BYTES : kind == CLT_FRAME_FAIL ? CLT_REASON_BYTES : 0;
}

/* Acts on whole frames. false: what came is no frame. */
static bool understand(clt_transport *t, clt_peer *peer) {
    clt_control *control = &peer->control;
    while (control->in_end - control->in_start >= CLT_HEADER_BYTES) {
        const unsigned char *at = control->in + control->in_start;
        clt_frame frame;
        if (!clt_frame_decode(&frame, at) || frame.length > most_payload(frame.kind)) return false;
        if (control->in_end - control->in_start < CLT_HEADER_BYTES + (size_t)frame.length) break;
        control->in_start += CLT_HEADER_BYTES + (size_t)frame.length;
        act(t, peer, &frame, at + CLT_HEADER_BYTES);
    }
    size_t left = control->in_end - control->in_start;
    if (left && control->in_start) memmove(control->in, control->in + control->in_start, left);
    control->in_start = 0;
    control->in_end = left;
    return true;
}

bool clt_control_read(clt_transport *t, clt_peer *peer) {
    clt_control *control = &peer->control;
    bool came = false;
    while (!control->ended) {
        size_t moved, room = CLT_CONTROL_BYTES - control->in_end;
        if (clt_socket_read(control->socket, control->in + control->in_end, room, &moved) < 0) {
            clt_control_ended(t, peer, clt_error_detail());
            break;
        }
        if (moved == 0) break;
        came = true;
        control->in_end += moved;
        if (!understand(t, peer)) {
            control->ended = true;
            clt_transport_accuse(t, peer->rank, "a frame that there is none of");
            break;
        }
        if (moved < room) break; /* nothing more is there: one call of the system a message */
    }
    if (came) peer->heard = clt_seconds();
    return came;
}
