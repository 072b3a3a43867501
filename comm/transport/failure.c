/*
 * The end of a group: the first cause wins, and is told to all, who tell it to all in turn, so that it also
 * reaches those whose connection to the one who saw it is cut.
 */
#include "comm/transport/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOST_OFFSET = 1 };

static void tell_all(clt_transport *t, const char *text, int lost) {
    clt_frame frame = {.kind = CLT_FRAME_FAIL,
                       .type = (uint32_t)-t->status,
                       .length = (uint32_t)strnlen(text, CLT_REASON_BYTES),
                       .slot = (uint64_t)(lost + LOST_OFFSET)};
    for (int r = 0; r < t->size; r++)
        if (r != t->rank && !t->peers[r].control.ended) clt_control_send(t, &t->peers[r], &frame, text);
}

void clt_transport_end(clt_transport *t, clt_status status, const char *here, const char *elsewhere,
                       int lost) {
    if (lost >= 0) t->lost[lost] = true;
    if (t->status < 0) return;
    t->status = status;
    snprintf(t->detail, sizeof t->detail, "%s", here);
    clt_log_message(CLT_LOG_WARNING, "rank %d: the group ended: %s", t->rank, here);
    tell_all(t, elsewhere, lost);
}

void clt_transport_fail(clt_transport *t, clt_status status, const char *detail) {
    char told[CLT_REASON_BYTES];
    snprintf(told, sizeof told, "rank %d: %s", t->rank, detail);
    clt_transport_end(t, status < 0 ? status : CLT_E_ABORTED, detail, told, -1);
}

void clt_transport_lose(clt_transport *t, int rank, const char *why) {
    char text[CLT_REASON_BYTES];
    snprintf(text, sizeof text, "rank %d was lost: %.900s", rank, why);
    clt_transport_end(t, CLT_E_PEER, text, text, rank);
}

void clt_transport_accuse(clt_transport *t, int rank, const char *format, ...) {
    char why[CLT_REASON_BYTES / 2], text[CLT_REASON_BYTES / 2 + 100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "it does not keep to the protocol: %s", why);
    clt_transport_lose(t, rank, text);
}

/* What others report of their own errors is the loss of them to us; an end that somebody wanted, and a
 * difference between ranks, are what they are for all. */
static clt_status status_here(uint32_t told) {
    if (told == (uint32_t)-CLT_E_ABORTED) return CLT_E_ABORTED;
    if (told == (uint32_t)-CLT_E_MISMATCH) return CLT_E_MISMATCH;
    return CLT_E_PEER;
}

void clt_transport_told(clt_transport *t, clt_peer *peer, const clt_frame *frame,
                        const unsigned char *payload) {
    char text[CLT_REASON_BYTES + 1];
    if (frame->slot > (uint64_t)t->size) {
        clt_transport_accuse(t, peer->rank, "it reports the loss of a rank that there is none of");
        return;
    }
    /* What others say is put into logs: it is kept to printable characters. */
    for (uint32_t i = 0; i < frame->length; i++)
        text[i] = (char)(payload[i] < ' ' || payload[i] == 127 ? '?' : payload[i]);
    text[frame->length] = '\0';
    clt_transport_end(t, status_here(frame->type), text, text, (int)frame->slot - LOST_OFFSET);
}

void clt_control_ended(clt_transport *t, clt_peer *peer, const char *why) {
    peer->control.ended = true;
    peer->closed = !peer->goodbye && clt_socket_was_closed(peer->control.socket);
    if (peer->goodbye) clt_peer_check_left(t, peer);
    else clt_transport_lose(t, peer->rank, why);
}

void clt_link_ended(clt_transport *t, clt_peer *peer, clt_link *link, const char *why) {
    link->ended = true;
    if (peer->goodbye) {
        clt_peer_check_left(t, peer);
    } else if (peer->broken_since == 0) {
        /* A good-bye, or why it goes, may still be on its way on the control connection: see the timers. */
        peer->broken_since = clt_seconds();
        snprintf(peer->broken, sizeof peer->broken, "%s", why);
    }
}

void clt_peer_check_left(clt_transport *t, clt_peer *peer) {
    if (!peer->goodbye || t->status < 0) return;
    bool wanted = peer->sends.first != NULL, open = !peer->control.ended;
    for (int c = 0; c < t->channels; c++) open = open || !peer->links[c].ended;
    /* What it sent before it left is taken in first. */
    if (peer->receives.first && !open) wanted = true;
    if (wanted)
        clt_transport_lose(t, peer->rank, "it has left the group, while messages are exchanged with it");
}

clt_status clt_transport_state(const clt_transport *t) {
    return t->status < 0 ? clt_fail_again(t->status, t->detail) : CLT_OK;
}

clt_presence clt_transport_presence(const clt_transport *t, int rank) {
    const clt_peer *peer = &t->peers[rank];
    if (peer->closed) return CLT_CLOSED;
    if (t->lost[rank]) return CLT_SILENT;
    return peer->goodbye ? CLT_LEFT : CLT_PRESENT;
}

bool clt_transport_is_lost(const clt_transport *t, int rank) {
    return rank >= 0 && rank < t->size && t->lost[rank];
}
