/*
 * Direct: every rank sends to every other, and adds what it got in the order of ranks. One step, so the least latency; and the way to sum f16 and
 * bf16 in f32 with one rounding.
 */
#include <string.h>

#include "comm/algorithms/algorithms.h"
#include "comm/reduce.h"

/* Each sends all it has to all: for small data. */
clt_status clt_direct_all_reduce(clt_network *network, clt_operation *o) {
    int n = network->size;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    const void *pieces[CLT_MOST_RANKS];
    void *scratch;
    clt_flight flight;
    CLT_TRY(clt_network_scratch(network, (size_t)n, bytes, &scratch));
    clt_flight_begin(&flight, network, o, 2 * n);
    for (int i = 1; i < n; i++) clt_flight_send(&flight, clt_ring_rank(network->rank + i, n), 0, o->data, bytes, bytes);
    for (int r = 0; r < n; r++) {
        char *piece = (char *)scratch + (size_t)r * bytes;
        pieces[r] = r == network->rank ? o->data : piece;
        if (r != network->rank) clt_flight_receive(&flight, r, 0, piece, bytes);
    }
    CLT_TRY(clt_flight_land(&flight));
    clt_reduce_many(o->data, pieces, n, o->count, o->dtype, o->reduction);
    return CLT_OK;
}

/* ---- by shares ---- */

typedef struct share {
    size_t start, count;
} share;

static share share_of(const clt_network *network, const clt_operation *o, int r) {
    size_t start = 0;
    if (!o->counts) {
        start = clt_part_start(o->count, r, network->size);
        return (share){start, clt_part_start(o->count, r + 1, network->size) - start};
    }
    for (int i = 0; i < r; i++) start += o->counts[i];
    return (share){start, o->counts[r]};
}

void clt_reducer_advance(clt_reducer *r, size_t available) {
    const clt_operation *o = r->operation;
    size_t element = clt_dtype_bytes(o->dtype), until = CLT_MIN(r->bytes, available);
    const void *pieces[CLT_MOST_RANKS];
    for (int i = 0; i < r->n; i++)
        if (r->receives[i]) until = CLT_MIN(until, r->receives[i]->done);
    until -= until % element;
    if (until <= r->done) return;
    for (int i = 0; i < r->n; i++) pieces[i] = (r->receives[i] ? (char *)r->receives[i]->data : r->own) + r->done;
    clt_reduce_many(r->own + r->done, pieces, r->n, (until - r->done) / element, o->dtype, o->reduction);
    r->done = until;
}

/* Sends everybody their share and receives all pieces of the own. */
static clt_status begin_reduction(clt_flight *flight, clt_reducer *r, unsigned part) {
    clt_network *network = flight->network;
    const clt_operation *o = flight->operation;
    int n = network->size;
    size_t element = clt_dtype_bytes(o->dtype);
    share own = share_of(network, o, network->rank);
    void *scratch;
    *r = (clt_reducer){.operation = o, .n = n, .own = (char *)o->data + own.start * element, .bytes = own.count * element};
    CLT_TRY(clt_network_scratch(network, (size_t)n, r->bytes, &scratch));
    for (int i = 1; i < n; i++) {
        int to = clt_ring_rank(network->rank + i, n), from = clt_ring_rank(network->rank - i, n);
        share theirs = share_of(network, o, to);
        r->receives[from] = clt_flight_receive(flight, from, part, (char *)scratch + (size_t)from * r->bytes,
                                                     r->bytes);
        clt_flight_send(flight, to, part, (char *)o->data + theirs.start * element, theirs.count * element,
                        theirs.count * element);
    }
    return flight->status;
}

clt_status clt_direct_reduce_scatter(clt_network *network, clt_operation *o) {
    clt_flight flight;
    clt_reducer r;
    clt_flight_begin(&flight, network, o, 2 * network->size);
    clt_status status = begin_reduction(&flight, &r, 1);
    if (status < 0) {
        flight.status = status;
        return clt_flight_abandon(&flight);
    }
    CLT_TRY(clt_flight_land(&flight));
    clt_reducer_advance(&r, SIZE_MAX);
    return CLT_OK;
}

/* Every rank reduces a share and tells it to all, as it goes. */
clt_status clt_shards_all_reduce(clt_network *network, clt_operation *o) {
    int n = network->size;
    size_t element = clt_dtype_bytes(o->dtype);
    clt_flight flight;
    clt_reducer r;
    clt_flight_begin(&flight, network, o, 4 * n);
    flight.status = begin_reduction(&flight, &r, 1);
    int first = flight.n;
    for (int i = 1; i < n; i++) {
        int to = clt_ring_rank(network->rank + i, n), from = clt_ring_rank(network->rank - i, n);
        share theirs = share_of(network, o, from);
        clt_flight_send(&flight, to, 2, r.own, r.bytes, 0);
        clt_flight_receive(&flight, from, 2, (char *)o->data + theirs.start * element, theirs.count * element);
    }
    while (flight.status == CLT_OK) { /* some may have come before they were asked for */
        clt_reducer_advance(&r, SIZE_MAX);
        for (int i = first; i < flight.n; i += 2) flight.transfers[i].ready = r.done;
        if (r.done == r.bytes) break;
        clt_flight_step(&flight);
    }
    return clt_flight_land(&flight);
}

clt_status clt_direct_all_gather(clt_network *network, clt_operation *o) {
    int n = network->size;
    size_t element = clt_dtype_bytes(o->dtype);
    share own = share_of(network, o, network->rank);
    clt_flight flight;
    clt_flight_begin(&flight, network, o, 2 * n);
    for (int i = 1; i < n; i++) {
        int to = clt_ring_rank(network->rank + i, n), from = clt_ring_rank(network->rank - i, n);
        share theirs = share_of(network, o, from);
        clt_flight_receive(&flight, from, 1, (char *)o->data + theirs.start * element, theirs.count * element);
        clt_flight_send(&flight, to, 1, (char *)o->data + own.start * element, own.count * element, own.count * element);
    }
    return clt_flight_land(&flight);
}
