/*
 * The dissemination barrier (D. Hensgen, R. Finkel, U. Manber, 1988): in round k each rank tells the one 2^k after it. After lg n rounds everybody has
 * heard, through others, of everybody.
 */
#include "comm/algorithms/algorithms.h"

clt_status clt_dissemination_barrier(clt_network *network, clt_operation *o) {
    uint8_t out = 1, in;
    unsigned part = 0;
    for (int distance = 1; distance < network->size; distance *= 2, part++) {
        clt_flight flight;
        clt_flight_begin(&flight, network, o, 2);
        clt_flight_send(&flight, clt_ring_rank(network->rank + distance, network->size), part, &out, 1, 1);
        clt_flight_receive(&flight, clt_ring_rank(network->rank - distance, network->size), part, &in, 1);
        CLT_TRY(clt_flight_land(&flight));
    }
    return CLT_OK;
}
