/*
 * Algorithms: ways to carry a collective out over the transport. A table, of which the first that is allowed and fits serves: all ranks
 * choose alike, since they ask with the same sizes.
 *
 * First contact: whatever an algorithm does, rank r sends a message in slot part 0 to rank r + 1 and receives one from r - 1. Its type tells
 * the operation and the algorithm, so two neighbours that do not do the same learn it, and with them all. Where an algorithm's own first message
 * is not that, a contact goes beside it, which tells sizes too.
 */
#ifndef CLT_COMM_ALGORITHMS_H
#define CLT_COMM_ALGORITHMS_H

#include "comm/network.h"

typedef struct clt_algorithm {
    const char *name;
    uint32_t number;       /* travels between ranks: never renumbered; 1 to 63 */
    unsigned kinds;        /* bits 1 << clt_operation_kind */
    size_t least, most;    /* bytes of the operation for which it is chosen, if not forced */
    bool to_all;           /* each rank sends all to all: `most` holds for 2, and goes down with the square of their number */
    bool contacts;         /* makes the first contact itself */
    /* Whether it can do this at all; NULL: always. */
    bool (*supports)(const clt_network *network, const clt_operation *operation);
    clt_status (*run)(clt_network *network, clt_operation *operation);
} clt_algorithm;

/* The one that serves; there always is one. */
const clt_algorithm *clt_algorithm_choose(const clt_network *network, const clt_operation *operation);
/* CLT_E_INVALID names what is in the list and not in the table; CLT_E_UNSUPPORTED: Gloo is named and its plugin is missing. NULL is fine. */
clt_status clt_algorithm_check_list(const char *list);
/* First contact, if need be, and the algorithm. */
clt_status clt_algorithm_run(clt_network *network, clt_operation *operation);

/* The type of a message from rank to rank. */
uint32_t clt_algorithm_message_type(clt_dtype dtype);
/* What a transfer's type and size tell, in words, for errors about two that differ. */
void clt_algorithm_describe(uint32_t type, size_t bytes, char *text, size_t text_bytes);

/* Tells all ranks which host this one is on, unless that is known; `operation`: the one it precedes. */
clt_status clt_hosts_learn(clt_network *network, const clt_operation *operation);

/* Looks at what the neighbour told, once it has come. */
clt_status clt_contact_check(clt_network *network);

clt_status clt_direct_all_reduce(clt_network *network, clt_operation *operation);
clt_status clt_shards_all_reduce(clt_network *network, clt_operation *operation);
clt_status clt_direct_reduce_scatter(clt_network *network, clt_operation *operation);
clt_status clt_direct_all_gather(clt_network *network, clt_operation *operation);
clt_status clt_ring_all_reduce(clt_network *network, clt_operation *operation);
clt_status clt_ring_reduce_scatter(clt_network *network, clt_operation *operation);
clt_status clt_ring_all_gather(clt_network *network, clt_operation *operation);
clt_status clt_halving_doubling_all_reduce(clt_network *network, clt_operation *operation);
clt_status clt_hierarchy_all_reduce(clt_network *network, clt_operation *operation);
clt_status clt_chain_broadcast(clt_network *network, clt_operation *operation);
clt_status clt_tree_broadcast(clt_network *network, clt_operation *operation);
clt_status clt_dissemination_barrier(clt_network *network, clt_operation *operation);
/* Gloo's own (gloo.c), where its plugin is. */
clt_status clt_gloo_row_ring(clt_network *network, clt_operation *operation);
clt_status clt_gloo_row_bcube(clt_network *network, clt_operation *operation);
clt_status clt_gloo_row_all_gather(clt_network *network, clt_operation *operation);
clt_status clt_gloo_row_broadcast(clt_network *network, clt_operation *operation);
clt_status clt_gloo_row_barrier(clt_network *network, clt_operation *operation);
void clt_gloo_rows_destroy(clt_gloo_rows *rows); /* NULL is fine */

/* ---- transfers of one operation (flight.c) ---- */

typedef struct clt_flight {
    clt_network *network;
    const clt_operation *operation;
    uint32_t type;
    clt_transfer *transfers;
    int n, capacity;
    const clt_transfer *also; /* one of the caller's own that is waited for; NULL: none */
    clt_status status; /* the first error sticks: later calls do nothing */
} clt_flight;

/* Of a collective's transfers; `part` below 65536. */
uint64_t clt_flight_slot(const clt_operation *operation, unsigned part);
/* The collective, counted from 0, that a slot is of; UINT64_MAX: of none. */
uint64_t clt_flight_number(uint64_t slot);

/* For so many transfers. One flight at a time a network. */
void clt_flight_begin(clt_flight *flight, clt_network *network, const clt_operation *operation, int transfers);

/* Begin one; `part` of the slot, the same on both sides. Without bytes nothing is sent: such a transfer is done. Returns it for
 * looking at `done` and raising `ready`; valid until the next begin; never NULL. */
clt_transfer *clt_flight_send(clt_flight *flight, int to, unsigned part, const void *data, size_t bytes, size_t ready);
clt_transfer *clt_flight_receive(clt_flight *flight, int from, unsigned part, void *data, size_t bytes);
/* Reduces what arrives into data. */
clt_transfer *clt_flight_receive_reduced(clt_flight *flight, int from, unsigned part, void *data, size_t bytes);

bool clt_flight_is_over(const clt_flight *flight);
/* Moves something, or fails: interrupted, late, the group has ended. */
clt_status clt_flight_step(clt_flight *flight);
/* Steps until all is done. On an error, here or before, all is cancelled. */
clt_status clt_flight_land(clt_flight *flight);
/* After an error: cancels what is under way. Returns the error. */
clt_status clt_flight_abandon(clt_flight *flight);

/* ---- reductions as pieces arrive (direct.c) ---- */

/* Of n pieces of `bytes`, in their order, into `own`, which is one of them; it goes on as far as all have come. */
typedef struct clt_reducer {
    const clt_operation *operation;
    char *own;
    size_t bytes, done;
    const clt_transfer *receives[CLT_MOST_RANKS]; /* what brings each; NULL: the own */
    int n;
} clt_reducer;

/* Reduces what has come; the own is there up to `available`. */
void clt_reducer_advance(clt_reducer *reducer, size_t available);

/* Where part r of n of `count` elements begins, the parts as equal as can be. */
size_t clt_part_start(size_t count, int r, int n);

static inline int clt_ring_rank(int rank, int size) {
    return (rank % size + size) % size;
}

#endif
