/*
 * The network's engine: collectives by algorithms over the transport.
 */
#ifndef CLT_COMM_NETWORK_H
#define CLT_COMM_NETWORK_H

#include "comm/comm.h"
#include "comm/transport/transport.h"

enum { CLT_MOST_RANKS = 1024 };

/* What two neighbours tell each other of an operation: see algorithms.h. */
typedef struct clt_contact {
    clt_transfer send, receive;
    uint64_t mine[3], theirs[3];
    bool pending; /* theirs has not been looked at */
} clt_contact;

/* How many messages went each way, by rank and tag: a hash table. */
typedef struct clt_message_counter {
    uint64_t key; /* 0: free */
    uint32_t count;
} clt_message_counter;

/* Which ranks share a host, in the order of its first rank. */
typedef struct clt_hosts {
    int n;
    int owners;           /* ranks on the host that has the fewest */
    int of[];             /* by rank */
} clt_hosts;

typedef struct clt_gloo_rows clt_gloo_rows;
typedef struct clt_job clt_job;

typedef struct clt_network {
    clt_transport *transport;
    int rank, size;
    double timeout_seconds;
    char *algorithms; /* names that may be chosen; NULL: all */
    clt_job *job;     /* what it came from: see create.c */
    int shrinks;      /* before it */
    int server;       /* the rank that serves the store; -1: none of these */

    /* Of the operation under way. */
    uint32_t type; /* of its transfers */
    clt_contact contact;

    /* Kept from one operation to the next. */
    void *scratch;
    size_t scratch_bytes;
    clt_transfer *transfers;
    int n_transfers;
    clt_gloo_rows *gloo; /* made when first used */
    _Atomic(clt_hosts *) hosts; /* learnt with the first operation of more than two ranks */

    clt_message_counter *counters;
    size_t n_counters, counters_capacity; /* a power of two */
} clt_network;

/* Memory for count * bytes at least, whose content is undefined. Until the next call. */
clt_status clt_network_scratch(clt_network *network, size_t count, size_t bytes, void **scratch);

/* What a slot of the transport is, for errors: "operation 3", "message 0 of tag 7". */
void clt_network_describe_slot(uint64_t slot, char *text, size_t text_bytes);

/* create.c: of the engine. */
clt_status clt_network_shrink(void *network, clt_comm **survivors);
void clt_network_leave_job(clt_network *network);

/* `state` of the setup is a clt_network, of which the engine takes hold. */
extern const clt_engine clt_network_engine;

#endif
