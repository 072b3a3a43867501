/*
 * The transport: messages between the ranks of one generation of a job, over authenticated TCP connections.
 *
 * Between each two ranks there is a control connection (small messages, notices that a receiver is
 * ready, heartbeats, the news that somebody failed) and one or more data connections (large messages,
 * in frames, round robin).
 *
 * A message has a slot, a number that both sides agree on. Messages of the same slot between two ranks
 * fit in the order in which they are posted, if all of them are small or all large. Small ones
 * (CLT_EAGER_BYTES at most) are sent at once and kept by the receiver, up to a limit, until asked for.
 * A larger one is sent when the receiver has said that it is ready for it. What a frame says (slot,
 * offset, length, whole size, type) is compared with what the receiver wants before a byte of it goes
 * to a buffer. So a data connection never stands still behind something that nobody asked for.
 *
 * Nobody else moves a message: things happen inside clt_transport_progress, on the thread that calls
 * it. While no operation runs, the communicator's own thread calls it now and then (it beats, listens,
 * and sees who died).
 *
 * Threads: one at a time, whoever holds the communicator's lock; clt_transport_wake may be called by any.
 */
#ifndef CLT_COMM_TRANSPORT_H
#define CLT_COMM_TRANSPORT_H

#include "comm/rendezvous/rendezvous.h"
#include "comm/secure/secure.h"
#include "runtime/base/base.h"

typedef struct clt_transport clt_transport;

enum { CLT_EAGER_BYTES = 16384, CLT_FRAME_BYTES = 128 * 1024 };

typedef struct clt_transport_options {
    int rank, size;
    int64_t generation;
    clt_rendezvous *rendezvous;  /* borrowed while connecting */
    const clt_security *security; /* borrowed for the transport's life */
    const char *job;              /* NULL: "" */
    const char *network, *ports;  /* as in clt_comm_options; NULL: default */
    const char *towards;          /* HOST or HOST:PORT that the default network routes to; NULL: this host */
    int channels;
    double connect_seconds, heartbeat_seconds;
    /* While ranks come together: one that is known, from elsewhere, to be lost; -1: none is. NULL: nobody knows. */
    int (*find_lost)(void *context);
    void *context;
    /* What a transfer's type and size mean, for errors about two that differ. NULL: told as numbers. */
    void (*describe)(uint32_t type, size_t bytes, char *text, size_t text_bytes);
    /* Likewise what a slot is. NULL: "message SLOT". */
    void (*describe_slot)(uint64_t slot, char *text, size_t text_bytes);
} clt_transport_options;

/* Listens, publishes its address, connects to all and waits for all. CLT_E_PEER if one of them is lost meanwhile. */
clt_status clt_transport_create(clt_transport **transport, const clt_transport_options *options);
/* Says good-bye to those that are there, closes and frees. Transfers under way are forgotten. NULL is
 * fine. */
void clt_transport_destroy(clt_transport *transport);

/* Takes in `bytes` of arrived data: destination, the next of the transfer's data, becomes
 * f(destination, source). Called by progress, in order from the start; bytes are a multiple of 16, but
 * for the last, and CLT_FRAME_BYTES at most. It may raise the `ready` of transfers, and posts none. */
typedef void clt_consume(void *destination, const void *source, size_t bytes, void *context);

/* A message under way. The caller fills in the upper part (all else zero) and keeps it, and the data,
 * where they are until it is done or cancelled. */
typedef struct clt_transfer {
    int peer;
    uint64_t slot;
    uint32_t type;         /* compared by the receiver: what the bytes are, such as a dtype; 0 for bytes */
    void *data;            /* not written when sending */
    size_t bytes;
    clt_consume *consume;  /* receiving: NULL copies */
    void *context;
    size_t ready;          /* sending: bytes from the start that may go out; the caller raises it up to `bytes` */

    size_t done;           /* bytes from the start that were sent, or have come and been consumed */
    bool active;           /* between post and the end */

    struct clt_transfer *next, **link; /* the transport's */
    size_t queued;
    uint32_t ticket;
    bool announced;
} clt_transfer;

/* Begin to send or receive. A receive whose size or type is not what the sender has ends the group with
 * CLT_E_MISMATCH, and both learn which slot, sizes and types. */
clt_status clt_transport_send(clt_transport *transport, clt_transfer *transfer);
clt_status clt_transport_receive(clt_transport *transport, clt_transfer *transfer);
/* Forgets a transfer that is not done (after an error, before its memory goes). */
void clt_transport_cancel(clt_transport *transport, clt_transfer *transfer);

/* Moves what can be moved. If nothing can, waits until something can, clt_transport_wake is called, or
 * `seconds` are over (0: does not wait). CLT_E_PEER, once and for ever, when a rank is lost or said
 * that one is: the detail names it. */
clt_status clt_transport_progress(clt_transport *transport, double seconds);
/* Ends a wait in progress, now or the next one. Any thread. */
void clt_transport_wake(clt_transport *transport);

/* Ends the group with this error, unless it has ended, and tells all ranks: theirs ends with CLT_E_PEER
 * (CLT_E_ABORTED and CLT_E_MISMATCH: with that) and the detail "rank R: …". */
void clt_transport_fail(clt_transport *transport, clt_status status, const char *detail);
/* CLT_OK while the group stands, else its error, with the detail set on this thread. */
clt_status clt_transport_state(const clt_transport *transport);
bool clt_transport_is_lost(const clt_transport *transport, int rank);
/* What progress has seen of a rank so far, also after the end: connections stay, and ranks beat, until the transport is destroyed. */
clt_presence clt_transport_presence(const clt_transport *transport, int rank);

/* Where this rank listens, HOST:PORT as numbers. */
const char *clt_transport_address(const clt_transport *transport);

typedef struct clt_transport_counts {
    uint64_t bytes_sent, bytes_received;
} clt_transport_counts;
clt_transport_counts clt_transport_get_counts(const clt_transport *transport);

#endif
