#include "comm/network.h"

#include <inttypes.h>
#include <stdio.h>

#include "comm/algorithms/algorithms.h"

enum { SLOT_MESSAGE = 2 };

clt_status clt_network_scratch(clt_network *network, size_t count, size_t bytes, void **scratch) {
    size_t wanted;
    if (!clt_mul_size(count, bytes, &wanted)) return clt_fail_memory(SIZE_MAX);
    if (wanted > network->scratch_bytes) {
        clt_free(network->scratch);
        network->scratch = clt_alloc(wanted);
        network->scratch_bytes = network->scratch ? wanted : 0;
        if (!network->scratch) return clt_fail_memory(wanted);
    }
    *scratch = network->scratch;
    return CLT_OK;
}

static clt_status run(void *state, clt_operation *operation) {
    return clt_algorithm_run(state, operation);
}

/* ---- messages ----
 *
 * Each between two ranks has a slot of its own: the tag, and how many with that tag went before. So those with one tag stay in order,
 * whatever way they take.
 */

static clt_message_counter *find_counter(clt_message_counter *counters, size_t capacity, uint64_t key) {
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15 >> 32) & (capacity - 1);
    while (counters[at].key && counters[at].key != key) at = (at + 1) & (capacity - 1);
    return &counters[at];
}

static clt_status grow_counters(clt_network *network) {
    size_t capacity = network->counters_capacity ? 2 * network->counters_capacity : 64;
    clt_message_counter *more = clt_calloc(capacity, sizeof *more);
    if (!more) return clt_fail_memory(capacity * sizeof *more);
    for (size_t i = 0; i < network->counters_capacity; i++) {
        const clt_message_counter *old = &network->counters[i];
        if (old->key) *find_counter(more, capacity, old->key) = *old;
    }
    clt_free(network->counters);
    network->counters = more;
    network->counters_capacity = capacity;
    return CLT_OK;
}

static clt_status message_slot(clt_network *network, const clt_operation *o, uint64_t *slot) {
    uint64_t direction = o->kind == CLT_OP_SEND, key = UINT64_C(1) << 63 | (uint64_t)o->peer << 33 | direction << 32 | o->tag;
    if (2 * (network->n_counters + 1) > network->counters_capacity) CLT_TRY(grow_counters(network));
    clt_message_counter *counter = find_counter(network->counters, network->counters_capacity, key);
    network->n_counters += !counter->key;
    counter->key = key;
    *slot = (uint64_t)SLOT_MESSAGE << 60 | (uint64_t)o->tag << 28 | (counter->count++ & 0xfffffff);
    return CLT_OK;
}

void clt_network_describe_slot(uint64_t slot, char *text, size_t text_bytes) {
    uint64_t number = clt_flight_number(slot);
    if (slot >> 60 == SLOT_MESSAGE)
        snprintf(text, text_bytes, "message %" PRIu64 " of tag %" PRIu64, slot & 0xfffffff, slot >> 28 & 0xffffffff);
    else if (number != UINT64_MAX) snprintf(text, text_bytes, "operation %" PRIu64, number);
    else snprintf(text, text_bytes, "an operation");
}

static clt_status post(void *state, clt_operation *o) {
    clt_network *network = state;
    bool sends = o->kind == CLT_OP_SEND;
    uint64_t slot;
    CLT_TRY(message_slot(network, o, &slot));
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    o->transfer = (clt_transfer){.peer = o->peer,
                                 .slot = slot,
                                 .type = clt_algorithm_message_type(o->dtype),
                                 .data = o->data,
                                 .bytes = bytes,
                                 .ready = sends ? bytes : 0};
    return sends ? clt_transport_send(network->transport, &o->transfer)
                 : clt_transport_receive(network->transport, &o->transfer);
}

static bool is_finished(void *state, const clt_operation *o) {
    (void)state;
    return !o->transfer.active;
}

static void cancel(void *state, clt_operation *o) {
    clt_network *network = state;
    if (o->transfer.active) clt_transport_cancel(network->transport, &o->transfer);
}

static clt_status progress(void *state, double seconds) {
    clt_network *network = state;
    return clt_transport_progress(network->transport, seconds);
}

/* ---- the rest ---- */

static clt_status idle(void *state) {
    return progress(state, 0);
}

static void wake(void *state) {
    clt_network *network = state;
    clt_transport_wake(network->transport);
}

static void end(void *state, clt_status status, const char *detail) {
    clt_network *network = state;
    clt_transport_fail(network->transport, status, detail);
}

static void destroy(void *state) {
    clt_network *network = state;
    clt_gloo_rows_destroy(network->gloo);
    clt_transport_destroy(network->transport);
    clt_network_leave_job(network);
    clt_free(network->hosts);
    clt_free(network->algorithms);
    clt_free(network->scratch);
    clt_free(network->transfers);
    clt_free(network->counters);
    clt_free(network);
}

static bool is_lost(void *state, int rank) {
    const clt_network *network = state;
    return clt_transport_is_lost(network->transport, rank);
}

static clt_transport_counts counts(void *state) {
    const clt_network *network = state;
    return clt_transport_get_counts(network->transport);
}

static const char *algorithm(void *state, size_t bytes) {
    clt_operation o = {.kind = CLT_OP_ALL_REDUCE, .dtype = CLT_F32, .count = bytes / 4};
    return clt_algorithm_choose(state, &o)->name;
}

const clt_engine clt_network_engine = {
    .name = "cltrain", .abilities = CLT_CAN_ENCRYPT | CLT_CAN_NAME_LOST, .run = run, .post = post, .is_finished = is_finished, .cancel = cancel, .progress = progress,
    .idle = idle, .wake = wake, .end = end, .destroy = destroy, .is_lost = is_lost, .counts = counts,
    .algorithm = algorithm, .shrink = clt_network_shrink,
};
