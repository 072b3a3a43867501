/*
 * The ring: each rank sends to the next and receives from the one before. A chunk goes round once to be reduced and once more to be told to all;
 * 2 (n - 1) / n of the data cross each link, which no algorithm undercuts.
 *
 * All steps are begun at once, and the send of a step may go as far as the step before has received and reduced. So there is no waiting
 * between steps: the whole is one stream of bytes through the ranks.
 */
#include "comm/algorithms/algorithms.h"

/* The chunks of a ring, as places in the data; `counts` NULL: as equal as can be. */
typedef struct chunks {
    char *data;
    const clt_operation *operation;
    int n;
    size_t element;
} chunks;

typedef struct span {
    char *data;
    size_t bytes;
} span;

static span chunk(const chunks *c, int index) {
    const clt_operation *o = c->operation;
    int i = clt_ring_rank(index, c->n);
    size_t start = 0, count;
    if (o->counts) {
        for (int r = 0; r < i; r++) start += o->counts[r];
        count = o->counts[i];
    } else {
        start = clt_part_start(o->count, i, c->n);
        count = clt_part_start(o->count, i + 1, c->n) - start;
    }
    return (span){c->data + start * c->element, count * c->element};
}

/* Step s sends chunk first - s and receives the one before it, which the next step sends. The first `reducing` steps reduce. */
static clt_status run_ring(clt_network *network, const clt_operation *o, int first, int steps, int reducing) {
    chunks c = {.data = o->data, .operation = o, .n = network->size, .element = clt_dtype_bytes(o->dtype)};
    int to = clt_ring_rank(network->rank + 1, c.n), from = clt_ring_rank(network->rank - 1, c.n);
    clt_flight flight;
    clt_flight_begin(&flight, network, o, 2 * steps);
    clt_transfer *transfers = flight.transfers; /* 2 s: the receive of step s; 2 s + 1: its send */
    for (int s = 0; s < steps; s++) {
        span in = chunk(&c, first - s - 1), out = chunk(&c, first - s);
        if (s < reducing) clt_flight_receive_reduced(&flight, from, (unsigned)s + 1, in.data, in.bytes);
        else clt_flight_receive(&flight, from, (unsigned)s + 1, in.data, in.bytes);
        clt_flight_send(&flight, to, (unsigned)s + 1, out.data, out.bytes, s ? 0 : out.bytes);
    }
    int begun = 0; /* steps before this one are over */
    while (flight.status == CLT_OK && begun < steps) {
        for (int s = begun; s + 1 < steps; s++) transfers[2 * s + 3].ready = transfers[2 * s].done;
        while (begun < steps && !transfers[2 * begun].active && !transfers[2 * begun + 1].active) begun++;
        if (begun < steps) clt_flight_step(&flight);
    }
    return clt_flight_land(&flight);
}

clt_status clt_ring_all_reduce(clt_network *network, clt_operation *o) {
    return run_ring(network, o, network->rank, 2 * (network->size - 1), network->size - 1);
}

/* Begun one chunk earlier, so that the last one received is the own. */
clt_status clt_ring_reduce_scatter(clt_network *network, clt_operation *o) {
    return run_ring(network, o, network->rank - 1, network->size - 1, network->size - 1);
}

clt_status clt_ring_all_gather(clt_network *network, clt_operation *o) {
    return run_ring(network, o, network->rank, network->size - 1, 0);
}
