/*
 * Halving and doubling (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005): in lg n
 * steps each rank halves what it reduces, with partners at half the distance each time, and goes the same way back. Fewer steps than the ring, as
 * many bytes. Ranks beyond a power of two give their data to one within it first and get the result last.
 */
#include "comm/algorithms/algorithms.h"

typedef struct place {
    clt_network *network;
    const clt_operation *operation;
    size_t element;
    unsigned part; /* of the slot: counted alike by both sides of a step */
} place;

static clt_status trade(place *p, int partner, size_t out, size_t out_count, size_t in, size_t in_count, bool reduce) {
    char *data = p->operation->data;
    clt_flight flight;
    clt_flight_begin(&flight, p->network, p->operation, 2);
    if (reduce) clt_flight_receive_reduced(&flight, partner, p->part, data + in * p->element, in_count * p->element);
    else clt_flight_receive(&flight, partner, p->part, data + in * p->element, in_count * p->element);
    clt_flight_send(&flight, partner, p->part, data + out * p->element, out_count * p->element, out_count * p->element);
    p->part++;
    return clt_flight_land(&flight);
}

/* Among the first `ranks`, a power of two. At depth d the rank works on [starts[d], ends[d]). */
static clt_status halve_and_double(place *p, int ranks) {
    size_t starts[32], ends[32];
    int depth = 0, rank = p->network->rank;
    starts[0] = 0, ends[0] = p->operation->count;
    for (int distance = ranks / 2; distance > 0; distance /= 2, depth++) {
        size_t start = starts[depth], end = ends[depth], middle = start + (end - start) / 2;
        bool upper = rank & distance;
        starts[depth + 1] = upper ? middle : start;
        ends[depth + 1] = upper ? end : middle;
        size_t out = upper ? start : middle, out_end = upper ? middle : end;
        CLT_TRY(trade(p, rank ^ distance, out, out_end - out, starts[depth + 1], ends[depth + 1] - starts[depth + 1], true));
    }
    for (int distance = 1; distance < ranks; distance *= 2, depth--) {
        size_t start = starts[depth], end = ends[depth];
        bool upper = rank & distance;
        size_t in = upper ? starts[depth - 1] : end, in_end = upper ? start : ends[depth - 1];
        CLT_TRY(trade(p, rank ^ distance, start, end - start, in, in_end - in, false));
    }
    return CLT_OK;
}

clt_status clt_halving_doubling_all_reduce(clt_network *network, clt_operation *o) {
    place p = {.network = network, .operation = o, .element = clt_dtype_bytes(o->dtype), .part = 2};
    int ranks = 1, rank = network->rank;
    while (2 * ranks <= network->size) ranks *= 2;
    place beyond = p;
    if (rank >= ranks) {
        beyond.part = 1;
        CLT_TRY(trade(&beyond, rank - ranks, 0, o->count, 0, 0, false));
        beyond.part = 0x8000;
        return trade(&beyond, rank - ranks, 0, 0, 0, o->count, false);
    }
    bool doubled = rank + ranks < network->size;
    beyond.part = 1;
    if (doubled) CLT_TRY(trade(&beyond, rank + ranks, 0, 0, 0, o->count, true));
    CLT_TRY(halve_and_double(&p, ranks));
    beyond.part = 0x8000;
    return doubled ? trade(&beyond, rank + ranks, 0, o->count, 0, 0, false) : CLT_OK;
}
