/*
 * The transport from inside: what the files of this folder share.
 *
 *   create.c    the address, the first barrier, parting
 *   connect.c   connections with all
 *   strangers.c who connected and has not yet shown who it is
 *   control.c   control connections: queues, reading, what each kind of frame does
 *   messages.c  sends and receives, and who fits whom
 *   data.c      data connections: frames of large messages
 *   progress.c  moving, waiting, timers
 *   failure.c   the end of a group, and the news of it
 */
#ifndef CLT_COMM_TRANSPORT_PARTS_H
#define CLT_COMM_TRANSPORT_PARTS_H

#include <poll.h>

#include "comm/transport/frame.h"
#include "comm/transport/transport.h"

enum {
    CLT_PROTOCOL_VERSION = 2,
    CLT_CONTROL_BYTES = 2 * (CLT_HEADER_BYTES + CLT_EAGER_BYTES), /* of input: a whole message always fits */
    CLT_ALIGNMENT = 16,            /* of the parts that a consumer gets: whole elements of any type */
    CLT_EAGER_COST = 64,           /* what an early message takes beside its bytes */
    CLT_EAGER_LIMIT = 4 << 20,     /* of early messages a peer */
    CLT_NOTICE_LIMIT = 4096        /* of ready notices a peer whose sends are not there yet */
};

/* While ranks come together: so often is looked at what else is going on. */
#define CLT_LOOK_SECONDS 0.05

/* A small message that nobody has asked for yet. */
typedef struct clt_early {
    struct clt_early *next;
    uint64_t slot;
    uint32_t type, bytes;
    _Alignas(CLT_ALIGNMENT) unsigned char data[];
} clt_early;

typedef struct clt_control {
    clt_socket *socket;
    unsigned char *in; /* CLT_CONTROL_BYTES: read and not yet understood */
    size_t in_start, in_end;
    unsigned char *out; /* to be sent when the other end takes it */
    size_t out_start, out_end, out_capacity;
    bool mute;  /* nothing can be written any more: what it still had to say is to be read */
    bool ended;
} clt_control;

/* A data connection. */
typedef struct clt_link {
    clt_socket *socket;
    bool ended;

    unsigned char in_header[CLT_HEADER_BYTES];
    size_t in_header_got;
    clt_frame frame;       /* once its header is whole */
    clt_transfer *into;    /* that takes the frame; NULL: its turn has not come */
    size_t in_left;        /* of its payload */
    unsigned char carry[CLT_ALIGNMENT]; /* of an element that has not come whole */
    size_t carried;

    unsigned char out_header[CLT_HEADER_BYTES];
    size_t out_header_left;
    clt_transfer *from; /* whose frame is on its way */
    size_t out_at, out_left;
} clt_link;

typedef struct clt_transfers {
    clt_transfer *first, **end;
} clt_transfers;

typedef struct clt_peer {
    int rank;
    clt_control control;
    clt_link *links; /* one a channel; NULL: this rank itself */
    clt_transfers sends, receives;
    clt_early *early, **early_end;
    size_t early_bytes;
    uint64_t owed;     /* cost of small messages sent to it and not yet taken, as far as it told */
    uint64_t taken;    /* cost of small messages of its that were taken, and it was not told */
    clt_frame *notices; /* ready notices whose sends are not there yet */
    size_t n_notices, notice_capacity;
    uint32_t tickets; /* given out */
    size_t n_ready;   /* large receives that it was told of, and that have not ended */
    bool holds_back;  /* there are more, that it will be told of */
    bool goodbye, arrived; /* arrived: at the first barrier */
    bool closed;           /* without a good-bye */
    double heard, spoke;   /* when something came from it, went to it */
    double broken_since;   /* when a data connection ended without a word; 0: none has */
    char broken[200];
} clt_peer;

typedef struct clt_stranger {
    clt_socket *socket;
    double since;
    unsigned char hello[CLT_HELLO_BYTES];
    size_t got;
} clt_stranger;

struct clt_transport {
    int rank, size, channels;
    int64_t generation;
    char job[CLT_HASH_TEXT];
    const clt_security *security;
    double heartbeat_seconds;
    void (*describe)(uint32_t type, size_t bytes, char *text, size_t text_bytes);
    void (*describe_slot)(uint64_t slot, char *text, size_t text_bytes);
    clt_peer *peers; /* one a rank */

    int listener, waker; /* -1: none */
    char address[64];    /* HOST:PORT of the listener */
    double deaf_until;   /* no descriptor was left to accept with */
    clt_stranger *strangers;
    int n_strangers, most_strangers;
    bool made;     /* its memory is all there: what parting and failing look at */
    bool complete; /* all are connected: strangers are turned away */
    bool released; /* the first barrier is over */

    clt_status status;
    char detail[CLT_REASON_BYTES + 100];
    bool *lost;

    unsigned char *scratch; /* CLT_FRAME_BYTES + CLT_ALIGNMENT */
    struct pollfd *polled;
    uint64_t ended_transfers;
    double next_timers, next_offers, last_poll;
    clt_transport_counts counts;
};

/* ---- connect.c ---- */

/* Connects with all others. CLT_E_TIMEOUT names those who did not come. */
clt_status clt_transport_connect(clt_transport *t, const clt_transport_options *options, double deadline);
/* The store's key for a rank's address. */
void clt_transport_address_key(char key[CLT_RENDEZVOUS_KEY_BYTES], int64_t generation, int rank);
void clt_transport_pause(double seconds);
/* CLT_E_PEER if a rank that is to come is lost. */
clt_status clt_transport_check_lost(const clt_transport_options *options);

/* ---- strangers.c ---- */

/* Takes connections in, a few at a time, and moves handshakes on. */
void clt_strangers_accept(clt_transport *t);
void clt_strangers_advance(clt_transport *t, int i);
/* Drops those who take too long. */
void clt_strangers_expire(clt_transport *t, double now);
void clt_strangers_drop_all(clt_transport *t);

/* ---- control.c ---- */

/* Sends a frame, or puts it into the queue. payload: frame->length bytes. */
void clt_control_send(clt_transport *t, clt_peer *peer, const clt_frame *frame, const void *payload);
/* Sends what is in the queue. Whether something moved. */
bool clt_control_flush(clt_transport *t, clt_peer *peer);
/* Reads what is there and acts on it. Whether something came. */
bool clt_control_read(clt_transport *t, clt_peer *peer);

/* ---- messages.c ---- */
void clt_transfers_add(clt_transfers *list, clt_transfer *transfer);
void clt_transfer_end(clt_transport *t, clt_peer *peer, clt_transfer *transfer, bool sending);
/* The first of a slot; NULL if there is none. */
clt_transfer *clt_transfers_find(const clt_transfers *list, uint64_t slot);
/* What frames of the control connection do. */
void clt_message_arrived(clt_transport *t, clt_peer *peer, const clt_frame *frame, const unsigned char *payload);
void clt_message_is_ready(clt_transport *t, clt_peer *peer, const clt_frame *frame);
void clt_message_offered(clt_transport *t, clt_peer *peer, const clt_frame *frame);
void clt_message_credit(clt_transport *t, clt_peer *peer, const clt_frame *frame);
/* Sends what small messages may go. Whether one did. */
bool clt_messages_send_small(clt_transport *t, clt_peer *peer);
/* Tells receivers of what waits for them. */
void clt_messages_offer(clt_transport *t, clt_peer *peer);
/* Whether a frame's size and type are the transfer's; the group ends if not. `sender`: whose frame it
 * is. */
bool clt_transfer_agrees(clt_transport *t, const clt_peer *peer, const clt_transfer *transfer, const clt_frame *frame,
                         bool theirs_is_sender);
/* Takes in the next bytes of a message. */
void clt_transfer_take(clt_transfer *transfer, const void *source, size_t bytes);

/* ---- data.c ---- */

/* Writes, or reads, about a frame's worth on a connection. Whether something moved. small: pieces that
 * are not worth a frame too. */
bool clt_link_write(clt_transport *t, clt_peer *peer, clt_link *link, bool small);
bool clt_link_read(clt_transport *t, clt_peer *peer, clt_link *link);
/* Whether a frame stands at its head whose turn has not come. */
bool clt_link_is_stalled(const clt_link *link);
bool clt_link_has_output(const clt_peer *peer, const clt_link *link);

/* ---- failure.c ---- */

/* Ends the group because a rank is lost; afterwards only notes it. */
void clt_transport_lose(clt_transport *t, int rank, const char *why);
/* Ends the group because a rank breaks the rules. */
void clt_transport_accuse(clt_transport *t, int rank, const char *format, ...) CLT_PRINTF(3, 4);
void clt_transport_told(clt_transport *t, clt_peer *peer, const clt_frame *frame, const unsigned char *payload);
/* A connection ended: closed after good-bye, or broken. */
void clt_control_ended(clt_transport *t, clt_peer *peer, const char *why);
void clt_link_ended(clt_transport *t, clt_peer *peer, clt_link *link, const char *why);
/* Ends the group if something is wanted of a rank that has left. */
void clt_peer_check_left(clt_transport *t, clt_peer *peer);
/* Ends the group with what is to be said here and elsewhere. */
void clt_transport_end(clt_transport *t, clt_status status, const char *here, const char *elsewhere, int lost);

/* ---- progress.c ---- */

/* Polls once over all connections, for at most so long, and moves what is ready. */
bool clt_transport_poll(clt_transport *t, double seconds);

#endif
