#include "runtime/exec/collective.h"

#include "runtime/exec/storage.h"
#include "runtime/ops/ops.h"

static clt_comm *comm_of(const clt_collectives *x, const clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    return x->comms[at->among];
}

clt_status clt_collectives_add(clt_collectives *collectives, const clt_tensor *node, size_t begin) {
    if (!comm_of(collectives, node))
        return clt_fail(CLT_E_INVALID, "%s: the plan has no communicator", clt_node_name(node));
    CLT_TRY(clt_grow(&collectives->items, &collectives->capacity, collectives->n, sizeof *collectives->items));
    collectives->items[collectives->n++] = (clt_collective){.node = node, .begin = begin};
    return CLT_OK;
}

const clt_tensor *clt_collective_whole(const clt_collective *e) {
    return e->node->op == &clt_op_all_gather ? e->node : e->node->inputs[0];
}

bool clt_collective_touches(const clt_collective *e, const clt_tensor *node) {
    const clt_tensor *root = clt_storage_of(e->node);
    for (int k = 0; k < node->n_inputs; k++)
        if (clt_storage_of(node->inputs[k]) == root) return true;
    return false;
}

void clt_collectives_free(clt_collectives *collectives) {
    clt_collectives_abandon(collectives, CLT_E_STATE, "the plan is gone");
    for (size_t i = 0; i < collectives->n; i++) {
        clt_transit_destroy(collectives->items[i].transit);
        clt_free(collectives->items[i].counts);
    }
    clt_free(collectives->items);
    *collectives = (clt_collectives){0};
}

/* ---- what goes there and back ---- */

typedef struct byte_range {
    size_t offset, bytes;
} byte_range;

static byte_range whole_of(const clt_collective *e) {
    return (byte_range){0, clt_tensor_bytes(clt_collective_whole(e))};
}

static byte_range own_shard_of(const clt_collective *e) {
    const clt_collective_attributes *at = e->node->attributes;
    size_t bytes = whole_of(e).bytes / (size_t)at->size;
    return (byte_range){(size_t)at->rank * bytes, bytes};
}

static bool gathers(const clt_collective *e) {
    return e->node->op == &clt_op_all_gather || e->node->op == &clt_op_all_gather_in_place;
}

static clt_status make_counts(clt_collective *e) {
    const clt_collective_attributes *at = e->node->attributes;
    e->counts = clt_alloc((size_t)at->size * sizeof *e->counts);
    if (!e->counts) return clt_fail_memory((size_t)at->size * sizeof *e->counts);
    for (int r = 0; r < at->size; r++) e->counts[r] = own_shard_of(e).bytes / clt_dtype_bytes(e->node->dtype);
    return CLT_OK;
}

clt_status clt_collective_bind(clt_collective *e, clt_device *device, clt_memory *memory) {
    if (e->node->op != &clt_op_all_reduce) CLT_TRY(make_counts(e));
    return clt_transit_create(device, memory, whole_of(e).bytes, &e->transit);
}

/* ---- steps ---- */

static clt_status begin(clt_collective *e) {
    byte_range range = gathers(e) ? own_shard_of(e) : whole_of(e);
    CLT_TRY(clt_transit_begin(e->transit, range.offset, range.bytes));
    e->begun = true;
    return CLT_OK;
}

/* Waits until the memory is on the host, and gives it to the communicator. */
static clt_status submit(clt_comm *comm, clt_collective *e) {
    const clt_collective_attributes *at = e->node->attributes;
    void *data;
    CLT_TRY(clt_transit_wait(e->transit, &data));
    clt_dtype dtype = e->node->dtype;
    if (gathers(e)) return clt_comm_all_gather(comm, data, e->counts, dtype, &e->work);
    if (e->counts) return clt_comm_reduce_scatter(comm, data, e->counts, dtype, at->reduction, &e->work);
    return clt_comm_all_reduce(comm, data, (size_t)clt_tensor_elements(e->node), dtype, at->reduction, &e->work);
}

static clt_status finish(clt_collective *e) {
    byte_range range = e->node->op == &clt_op_reduce_scatter ? own_shard_of(e) : whole_of(e);
    clt_work *work = e->work;
    e->work = NULL;
    clt_status status = clt_work_wait(work);
    if (status < 0) return clt_fail_context(status, "%s: ", clt_node_name(e->node));
    e->begun = false;
    e->arrived = true;
    return clt_transit_end(e->transit, range.offset, range.bytes);
}

/* The communicator works on one after the other, so all that have begun are given to it before the first is waited for. */
static clt_status submit_all(clt_collectives *x, size_t end) {
    for (size_t i = 0; i < end; i++)
        if (x->items[i].begun && !x->items[i].work) CLT_TRY(submit(comm_of(x, x->items[i].node), &x->items[i]));
    return CLT_OK;
}

/* Finishes those of the first `end` that are due before launch `index`, or before `next` begins. */
static clt_status finish_due(clt_collectives *x, size_t end, size_t index, const clt_tensor *next) {
    double since = 0; /* the own memory is on the host: what is waited for are the others */
    bool waits = false;
    for (size_t i = 0; i < end; i++) {
        clt_collective *e = &x->items[i];
        if (!e->begun || (e->finish > index && !(next && clt_collective_touches(e, next)))) continue;
        if (!waits) {
            CLT_TRY(submit_all(x, end));
            since = clt_seconds();
        }
        waits = true;
        CLT_TRY(finish(e));
    }
    if (waits) x->waited_seconds += clt_seconds() - since;
    return CLT_OK;
}

clt_status clt_collectives_step(clt_collectives *x, size_t index, int segment) {
    size_t end = 0;
    for (; end < x->n && x->items[end].begin <= index; end++) {
        clt_collective *e = &x->items[end];
        if (e->begin != index || e->node->segment != segment) continue;
        CLT_TRY(finish_due(x, end, index, e->node));
        CLT_TRY(begin(e));
    }
    return finish_due(x, end, index, NULL);
}

bool clt_collectives_await(clt_collectives *x, const clt_tensor *node, const char *row) {
    for (size_t i = 0; i < x->n; i++) {
        if (x->items[i].node != node) continue;
        x->items[i].awaited = row;
        x->items[i].arrived = false;
        return true;
    }
    return false;
}

const clt_tensor *clt_collectives_arrived(clt_collectives *x, const char **row) {
    for (size_t i = 0; i < x->n; i++) {
        clt_collective *e = &x->items[i];
        if (!e->awaited || !e->arrived) continue;
        *row = e->awaited;
        e->awaited = NULL;
        return e->node;
    }
    return NULL;
}

clt_status clt_collectives_finish(clt_collectives *x) {
    return finish_due(x, x->n, SIZE_MAX, NULL);
}

void clt_collectives_join(clt_collectives *x) {
    size_t last = x->n ? x->items[x->n - 1].begin : 0, first = SIZE_MAX;
    for (size_t i = 0; i < x->n; i++)
        if (x->items[i].finish >= last) first = CLT_MIN(first, x->items[i].finish);
    for (size_t i = 0; i < x->n; i++)
        if (x->items[i].finish >= last) x->items[i].finish = first;
}

void clt_collectives_abandon(clt_collectives *x, clt_status status, const char *reason) {
    void *host;
    for (size_t i = 0; i < x->n; i++)
        if (x->items[i].begun) clt_comm_fail(comm_of(x, x->items[i].node), status, reason);
    for (size_t i = 0; i < x->n; i++) {
        clt_collective *e = &x->items[i];
        if (e->work) clt_work_wait(e->work);
        e->work = NULL;
        e->awaited = NULL;
        if (e->begun && clt_transit_wait(e->transit, &host) == CLT_OK) clt_transit_end(e->transit, 0, 0);
        e->begun = false;
    }
}
