/*
 * Gloo's algorithms as rows of the table: the calls of Gloo's plugin over the transport. Gloo names a message by a slot and relies on the order of those that
 * share one; here each has a slot of its own.
 */
#include <stdio.h>

#include "comm/algorithms/algorithms.h"
#include "comm/plugins/plugins.h"
#include "comm/reduce.h"

enum { SLOT_GLOO = 3, MOST_STREAMS = 4 * CLT_MOST_RANKS };

/* How many messages there were between two ranks with one of Gloo's slots. */
typedef struct stream {
    int peer;
    bool sends;
    uint64_t slot;
    uint32_t count;
} stream;

struct clt_gloo_rows {
    clt_network *network;
    clt_operation *operation;
    const clt_gloo_functions *gloo;
    clt_gloo *context;
    clt_gloo_calls calls;
    stream *streams;
    size_t n_streams, capacity;
    clt_status failed; /* what beginning a message came to, which Gloo is told of as an exception */
};

static stream *find_stream(clt_gloo_rows *rows, int peer, bool sends, uint64_t slot) {
    for (size_t i = 0; i < rows->n_streams; i++) {
        stream *s = &rows->streams[i];
        if (s->peer == peer && s->sends == sends && s->slot == slot) return s;
    }
    if (rows->n_streams == MOST_STREAMS) return NULL;
    if (clt_grow(&rows->streams, &rows->capacity, rows->n_streams, sizeof *rows->streams) < 0) return NULL;
    rows->streams[rows->n_streams] = (stream){.peer = peer, .sends = sends, .slot = slot};
    return &rows->streams[rows->n_streams++];
}

/* A message of nothing still tells that somebody is there: a byte goes in its place. */
static uint8_t nothing;

static clt_transfer *new_message(clt_gloo_rows *rows, int peer, bool sends, uint64_t slot, void *data, size_t bytes) {
    stream *s = find_stream(rows, peer, sends, slot);
    clt_transfer *t = s ? clt_calloc(1, sizeof *t) : NULL;
    if (!t) {
        rows->failed = clt_fail_memory(sizeof *t);
        return NULL;
    }
    t->peer = peer;
    t->slot = (uint64_t)SLOT_GLOO << 60 | (rows->operation->number & 0xffff) << 44 | (slot & 0xff) << 36 | s->count++;
    t->type = rows->network->type;
    t->data = bytes ? data : &nothing;
    t->bytes = bytes ? bytes : 1;
    t->ready = sends ? t->bytes : 0;
    return t;
}

static void give_up(void *context, void *message) {
    clt_gloo_rows *rows = context;
    clt_transfer *t = message;
    if (t->active) clt_transport_cancel(rows->network->transport, t);
    clt_free(t);
}

/* What fails at once may be among those under way all the same. */
static clt_transfer *begun(clt_gloo_rows *rows, clt_transfer *t, clt_status status) {
    if (status == CLT_OK) return t;
    give_up(rows, t);
    rows->failed = status;
    return NULL;
}

static void *begin_send(void *context, int to, uint64_t slot, const void *data, size_t bytes) {
    clt_gloo_rows *rows = context;
    clt_transfer *t = new_message(rows, to, true, slot, (void *)data, bytes);
    return t ? begun(rows, t, clt_transport_send(rows->network->transport, t)) : NULL;
}

static void *begin_receive(void *context, int from, uint64_t slot, void *data, size_t bytes) {
    clt_gloo_rows *rows = context;
    clt_transfer *t = new_message(rows, from, false, slot, data, bytes);
    return t ? begun(rows, t, clt_transport_receive(rows->network->transport, t)) : NULL;
}

static clt_status wait_for(void *context, void *message) {
    clt_gloo_rows *rows = context;
    clt_transfer *t = message;
    clt_flight none;
    clt_flight_begin(&none, rows->network, rows->operation, 0);
    none.also = t;
    while (none.status == CLT_OK && t->active) clt_flight_step(&none);
    clt_status status = none.status < 0 ? clt_flight_abandon(&none) : CLT_OK;
    give_up(context, t);
    return status;
}

static void reduce(void *context, void *into, const void *a, const void *b, size_t count) {
    const clt_operation *o = ((clt_gloo_rows *)context)->operation;
    if (into == a) clt_reduce(into, b, count, o->dtype, o->reduction);
    else clt_reduce_many(into, (const void *[]){a, b}, 2, count, o->dtype, o->reduction);
}

/* ---- rows ---- */

static clt_status begin(clt_network *network, clt_operation *o) {
    clt_gloo_rows *rows = network->gloo;
    if (!rows) {
        rows = network->gloo = clt_calloc(1, sizeof *rows);
        if (!rows) return clt_fail_memory(sizeof *rows);
        rows->network = network;
        rows->calls = (clt_gloo_calls){rows, begin_send, begin_receive, wait_for, give_up, reduce};
    }
    if (!rows->gloo) CLT_TRY(clt_plugin_gloo(&rows->gloo));
    if (!rows->context) rows->context = rows->gloo->create(network->rank, network->size, &rows->calls);
    if (!rows->context) return clt_fail(CLT_E_NO_MEMORY, "Gloo's context could not be made");
    rows->operation = o;
    rows->n_streams = 0;
    rows->failed = CLT_OK;
    return CLT_OK;
}

static clt_status end(const clt_network *network, clt_status status, const char *words) {
    if (status < 0 && network->gloo->failed < 0) return network->gloo->failed;
    return words[0] ? clt_fail(status, "Gloo: %s", words) : status;
}

static clt_status all_reduce(clt_network *network, clt_operation *o, clt_gloo_algorithm algorithm) {
    char words[CLT_GLOO_WORDS] = "";
    CLT_TRY(begin(network, o));
    return end(network, network->gloo->gloo->all_reduce(network->gloo->context, o->data, o->count, clt_dtype_bytes(o->dtype), algorithm, words), words);
}

clt_status clt_gloo_row_ring(clt_network *network, clt_operation *o) {
    return all_reduce(network, o, CLT_GLOO_RING);
}

clt_status clt_gloo_row_bcube(clt_network *network, clt_operation *o) {
    return all_reduce(network, o, CLT_GLOO_BCUBE);
}

clt_status clt_gloo_row_all_gather(clt_network *network, clt_operation *o) {
    char words[CLT_GLOO_WORDS] = "";
    CLT_TRY(begin(network, o));
    return end(network, network->gloo->gloo->all_gather(network->gloo->context, o->data, o->counts, clt_dtype_bytes(o->dtype), words), words);
}

clt_status clt_gloo_row_broadcast(clt_network *network, clt_operation *o) {
    char words[CLT_GLOO_WORDS] = "";
    CLT_TRY(begin(network, o));
    return end(network, network->gloo->gloo->broadcast(network->gloo->context, o->data, o->count * clt_dtype_bytes(o->dtype), o->peer, words), words);
}

clt_status clt_gloo_row_barrier(clt_network *network, clt_operation *o) {
    char words[CLT_GLOO_WORDS] = "";
    CLT_TRY(begin(network, o));
    return end(network, network->gloo->gloo->barrier(network->gloo->context, words), words);
}

void clt_gloo_rows_destroy(clt_gloo_rows *rows) {
    if (!rows) return;
    if (rows->context) rows->gloo->destroy(rows->context);
    clt_free(rows->streams);
    clt_free(rows);
}
