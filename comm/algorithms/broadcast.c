/*
 * Broadcasts, in ranks counted from the root. Chain: each hands on what it has got so far; all links carry the data once, whole bandwidth. Tree: lg n
 * steps, for what is small.
 */
#include "comm/algorithms/algorithms.h"

static int real_rank(const clt_network *network, const clt_operation *o, int place) {
    return clt_ring_rank(o->peer + place, network->size);
}

clt_status clt_chain_broadcast(clt_network *network, clt_operation *o) {
    int place = clt_ring_rank(network->rank - o->peer, network->size);
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    clt_transfer *in = NULL, *out = NULL;
    clt_flight flight;
    clt_flight_begin(&flight, network, o, 2);
    if (place > 0) in = clt_flight_receive(&flight, real_rank(network, o, place - 1), 1, o->data, bytes);
    if (place + 1 < network->size)
        out = clt_flight_send(&flight, real_rank(network, o, place + 1), 1, o->data, bytes, in ? 0 : bytes);
    while (in && out && flight.status == CLT_OK) {
        out->ready = in->done; /* which may be all, if it came before it was asked for */
        if (out->ready == bytes) break;
        clt_flight_step(&flight);
    }
    return clt_flight_land(&flight);
}

clt_status clt_tree_broadcast(clt_network *network, clt_operation *o) {
    int place = clt_ring_rank(network->rank - o->peer, network->size), distance = 1;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    clt_flight flight;
    while (distance < network->size && !(place & distance)) distance *= 2;
    if (place > 0) {
        clt_flight_begin(&flight, network, o, 1);
        clt_flight_receive(&flight, real_rank(network, o, place - distance), 1, o->data, bytes);
        CLT_TRY(clt_flight_land(&flight));
    }
    clt_flight_begin(&flight, network, o, 32);
    for (distance /= 2; distance > 0; distance /= 2)
        if (place + distance < network->size)
            clt_flight_send(&flight, real_rank(network, o, place + distance), 1, o->data, bytes, bytes);
    return clt_flight_land(&flight);
}
