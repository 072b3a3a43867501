#include <stdio.h>
#include <string.h>

#include "comm/algorithms/algorithms.h"
#include "comm/reduce.h"

enum { SLOT_COLLECTIVE = 1 };

uint64_t clt_flight_slot(const clt_operation *o, unsigned part) {
    return (uint64_t)SLOT_COLLECTIVE << 60 | (o->number & 0xfffffffffff) << 16 | (part & 0xffff);
}

uint64_t clt_flight_number(uint64_t slot) {
    return slot >> 60 == SLOT_COLLECTIVE ? slot >> 16 & 0xfffffffffff : UINT64_MAX;
}

static clt_status reserve(clt_network *network, int n) {
    if (n <= network->n_transfers) return CLT_OK;
    size_t bytes = (size_t)n * sizeof *network->transfers;
    clt_transfer *more = clt_realloc(network->transfers, bytes);
    if (!more) return clt_fail_memory(bytes);
    network->transfers = more;
    network->n_transfers = n;
    return CLT_OK;
}

void clt_flight_begin(clt_flight *flight, clt_network *network, const clt_operation *operation, int transfers) {
    *flight = (clt_flight){.network = network, .operation = operation, .capacity = transfers};
    flight->status = reserve(network, CLT_MAX(transfers, 1));
    flight->transfers = network->transfers;
    flight->type = network->type;
}

static clt_transfer *add(clt_flight *flight, clt_transfer transfer) {
    static _Thread_local clt_transfer none; /* after an error: for who looks at it */
    if (flight->status == CLT_OK && flight->n == flight->capacity)
        flight->status = clt_fail(CLT_E_STATE, "an algorithm has more transfers than it said");
    if (flight->status < 0) {
        none = (clt_transfer){0};
        return &none;
    }
    clt_transfer *t = &flight->transfers[flight->n++];
    *t = transfer;
    t->type = flight->type;
    return t;
}

clt_transfer *clt_flight_send(clt_flight *flight, int to, unsigned part, const void *data, size_t bytes, size_t ready) {
    clt_transfer *t = add(flight, (clt_transfer){.peer = to, .slot = clt_flight_slot(flight->operation, part),
                                                 .data = (void *)data, .bytes = bytes, .ready = ready});
    if (flight->status == CLT_OK && bytes) flight->status = clt_transport_send(flight->network->transport, t);
    return t;
}

/* `data` of a transfer is where its first byte goes; what arrives is whole elements. */
static void reduce(void *destination, const void *source, size_t bytes, void *context) {
    const clt_operation *o = context;
    clt_reduce(destination, source, bytes / clt_dtype_bytes(o->dtype), o->dtype, o->reduction);
}

static clt_transfer *receive(clt_flight *flight, int from, unsigned part, void *data, size_t bytes, clt_consume *consume) {
    clt_transfer *t = add(flight, (clt_transfer){.peer = from, .slot = clt_flight_slot(flight->operation, part), .data = data,
                                                 .bytes = bytes, .consume = consume,
                                                 .context = (void *)flight->operation});
    if (flight->status == CLT_OK && bytes) flight->status = clt_transport_receive(flight->network->transport, t);
    return t;
}

clt_transfer *clt_flight_receive(clt_flight *flight, int from, unsigned part, void *data, size_t bytes) {
    return receive(flight, from, part, data, bytes, NULL);
}

clt_transfer *clt_flight_receive_reduced(clt_flight *flight, int from, unsigned part, void *data, size_t bytes) {
    return receive(flight, from, part, data, bytes, reduce);
}

bool clt_flight_is_over(const clt_flight *flight) {
    for (int i = 0; i < flight->n; i++)
        if (flight->transfers[i].active) return false;
    return true;
}

static bool is_waited_for(const clt_flight *flight, int rank) {
    const clt_contact *contact = &flight->network->contact;
    if (contact->pending && contact->receive.peer == rank) return true;
    if (flight->also && flight->also->active && flight->also->peer == rank) return true;
    for (int i = 0; i < flight->n; i++)
        if (flight->transfers[i].active && flight->transfers[i].peer == rank) return true;
    return false;
}

static clt_status late(const clt_flight *flight) {
    char text[CLT_OPERATION_TEXT], ranks[256] = "";
    size_t length = 0;
    int n = 0;
    for (int r = 0; r < flight->network->size && length + 16 < sizeof ranks; r++)
        if (is_waited_for(flight, r))
            length += (size_t)snprintf(ranks + length, sizeof ranks - length, "%s %d", n++ ? "," : "", r);
    return clt_fail(CLT_E_TIMEOUT, "%s: not done within %g s: waited for rank%s%s",
                    clt_operation_text(flight->operation, text), flight->network->timeout_seconds, n == 1 ? "" : "s", ranks);
}

clt_status clt_flight_step(clt_flight *flight) {
    if (flight->status < 0) return flight->status;
    double left = flight->operation->deadline - clt_seconds();
    if (atomic_load_explicit(flight->operation->interrupted, memory_order_acquire))
        flight->status = clt_fail(CLT_E_ABORTED, "%s", flight->operation->reason);
    else if (left <= 0) flight->status = late(flight);
    else flight->status = clt_transport_progress(flight->network->transport, left);
    /* Also after the transport found something that does not fit: a contact says more. */
    if (flight->status == CLT_OK || flight->status == CLT_E_MISMATCH) {
        clt_status contact = clt_contact_check(flight->network);
        if (contact < 0) flight->status = contact;
    }
    return flight->status;
}

/* The others are told why before they learn of messages that were given up. */
clt_status clt_flight_abandon(clt_flight *flight) {
    char detail[1024];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    clt_transport_fail(flight->network->transport, flight->status, detail);
    for (int i = 0; i < flight->n; i++)
        if (flight->transfers[i].active) clt_transport_cancel(flight->network->transport, &flight->transfers[i]);
    return clt_fail_again(flight->status, detail);
}

clt_status clt_flight_land(clt_flight *flight) {
    while (flight->status == CLT_OK && !clt_flight_is_over(flight)) clt_flight_step(flight);
    return flight->status < 0 ? clt_flight_abandon(flight) : CLT_OK;
}

size_t clt_part_start(size_t count, int r, int n) {
    size_t each = count / (size_t)n, more = count % (size_t)n;
    return each * (size_t)r + CLT_MIN((size_t)r, more);
}
