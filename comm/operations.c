/* The operations as they are called: checked here, once, so that engines need not. */
#include <stdio.h>

#include "comm/comm.h"

static const char *kind_name(clt_operation_kind kind) {
    static const char *const names[] = {
        [CLT_OP_ALL_REDUCE] = "all_reduce", [CLT_OP_REDUCE_SCATTER] = "reduce_scatter",
        [CLT_OP_ALL_GATHER] = "all_gather", [CLT_OP_BROADCAST] = "broadcast",
        [CLT_OP_BARRIER] = "barrier",       [CLT_OP_SEND] = "send",
        [CLT_OP_RECEIVE] = "receive",
    };
    return (size_t)kind < CLT_COUNT_OF(names) && names[kind] ? names[kind] : "unknown operation";
}

const char *clt_operation_text(const clt_operation *o, char text[CLT_OPERATION_TEXT]) {
    static const char *const reductions[] = {"sum", "max", "min"};
    const char *name = kind_name(o->kind), *dtype = clt_dtype_name(o->dtype);
    switch (o->kind) {
    case CLT_OP_BARRIER: snprintf(text, CLT_OPERATION_TEXT, "%s", name); break;
    case CLT_OP_ALL_GATHER: snprintf(text, CLT_OPERATION_TEXT, "%s of %zu %s", name, o->count, dtype); break;
    case CLT_OP_BROADCAST:
        snprintf(text, CLT_OPERATION_TEXT, "%s of %zu %s from rank %d", name, o->count, dtype, o->peer);
        break;
    case CLT_OP_SEND:
    case CLT_OP_RECEIVE:
        snprintf(text, CLT_OPERATION_TEXT, "%s of %zu %s %s rank %d, tag %u", name, o->count, dtype,
                 o->kind == CLT_OP_SEND ? "to" : "from", o->peer, (unsigned)o->tag);
        break;
    default:
        snprintf(text, CLT_OPERATION_TEXT, "%s %s of %zu %s", name,
                 (size_t)o->reduction < CLT_COUNT_OF(reductions) ? reductions[o->reduction] : "?", o->count, dtype);
    }
    return text;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

uint64_t clt_operation_hash(const clt_operation *o, int size) {
    uint64_t hash = mix(mix(mix(mix(mix(1, (uint64_t)o->kind), (uint64_t)o->dtype), (uint64_t)o->reduction), (uint64_t)o->peer), o->count);
    for (int r = 0; o->counts && r < size; r++) hash = mix(hash, o->counts[r]);
    return hash;
}

size_t clt_operation_parts(const clt_operation *o, int size, size_t *parts) {
    size_t n = (size_t)size, most = 0;
    for (size_t r = 0; r < n; r++) {
        parts[r] = o->counts ? o->counts[r] : o->count / n + (r < o->count % n);
        most = CLT_MAX(most, parts[r]);
    }
    return most;
}

/* ---- engines without messages: the checks below leave none through to them ---- */

clt_status clt_engine_refuse(void *state, clt_operation *operation) {
    (void)state, (void)operation;
    return clt_fail(CLT_E_INVALID, "a group of one rank has no other rank to send to");
}

bool clt_engine_is_finished(void *state, const clt_operation *operation) {
    (void)state, (void)operation;
    return true;
}

void clt_engine_cancel(void *state, clt_operation *operation) {
    (void)state, (void)operation;
}

clt_status clt_engine_progress(void *state, double seconds) {
    (void)state, (void)seconds;
    return CLT_OK;
}

clt_status clt_engine_idle(void *state) {
    (void)state;
    return CLT_OK;
}

/* ---- checks ---- */

static clt_status check(const clt_comm *comm, const clt_operation *o) {
    size_t bytes = 0;
    const char *name = kind_name(o->kind);
    if (!comm) return clt_fail(CLT_E_INVALID, "%s: comm is NULL", name);
    if (!clt_dtype_bytes(o->dtype)) return clt_fail(CLT_E_DTYPE, "%s: %d is not a data type", name, (int)o->dtype);
    if (!clt_mul_size(o->count, clt_dtype_bytes(o->dtype), &bytes) || bytes > PTRDIFF_MAX)
        return clt_fail(CLT_E_INVALID, "%s: %zu elements are more than memory has", name, o->count);
    if (o->count && !o->data) return clt_fail(CLT_E_INVALID, "%s: data is NULL", name);
    if (o->reduction != CLT_REDUCE_SUM && o->reduction != CLT_REDUCE_MAX && o->reduction != CLT_REDUCE_MIN)
        return clt_fail(CLT_E_INVALID, "%s: %d is not a reduction", name, (int)o->reduction);
    if (o->peer < 0 || o->peer >= clt_comm_size(comm))
        return clt_fail(CLT_E_INVALID, "%s: there is no rank %d among %d", name, o->peer, clt_comm_size(comm));
    return CLT_OK;
}

static clt_status start(clt_comm *comm, const clt_operation *o, clt_work **work) {
    if (work) *work = NULL;
    CLT_TRY(check(comm, o));
    return clt_comm_start(comm, o, work);
}

/* The whole of the parts. */
static clt_status add_counts(const clt_comm *comm, clt_operation *o) {
    const char *name = kind_name(o->kind);
    if (!comm) return clt_fail(CLT_E_INVALID, "%s: comm is NULL", name);
    if (!o->counts) return clt_fail(CLT_E_INVALID, "%s: counts is NULL", name);
    for (int r = 0; r < clt_comm_size(comm); r++) {
        if (o->counts[r] > SIZE_MAX - o->count)
            return clt_fail(CLT_E_INVALID, "%s: the counts are more than memory has", name);
        o->count += o->counts[r];
    }
    return CLT_OK;
}

static clt_status start_parts(clt_comm *comm, clt_operation *o, clt_work **work) {
    if (work) *work = NULL;
    CLT_TRY(add_counts(comm, o));
    return start(comm, o, work);
}

static clt_status start_message(clt_comm *comm, const clt_operation *o, clt_work **work) {
    if (work) *work = NULL;
    CLT_TRY(check(comm, o));
    if (o->peer == clt_comm_rank(comm))
        return clt_fail(CLT_E_INVALID, "%s: rank %d is this rank itself", kind_name(o->kind), o->peer);
    return clt_comm_start(comm, o, work);
}

/* ---- the calls ---- */

clt_status clt_comm_all_reduce(clt_comm *comm, void *data, size_t count, clt_dtype dtype, clt_reduction reduction,
                               clt_work **work) {
    clt_operation o = {.kind = CLT_OP_ALL_REDUCE, .data = data, .count = count, .dtype = dtype, .reduction = reduction};
    return start(comm, &o, work);
}

clt_status clt_comm_reduce_scatter(clt_comm *comm, void *data, const size_t *counts, clt_dtype dtype,
                                   clt_reduction reduction, clt_work **work) {
    clt_operation o = {.kind = CLT_OP_REDUCE_SCATTER, .data = data, .counts = counts, .dtype = dtype,
                       .reduction = reduction};
    return start_parts(comm, &o, work);
}

clt_status clt_comm_all_gather(clt_comm *comm, void *data, const size_t *counts, clt_dtype dtype, clt_work **work) {
    clt_operation o = {.kind = CLT_OP_ALL_GATHER, .data = data, .counts = counts, .dtype = dtype};
    return start_parts(comm, &o, work);
}

clt_status clt_comm_broadcast(clt_comm *comm, void *data, size_t count, clt_dtype dtype, int root, clt_work **work) {
    clt_operation o = {.kind = CLT_OP_BROADCAST, .data = data, .count = count, .dtype = dtype, .peer = root};
    return start(comm, &o, work);
}

clt_status clt_comm_barrier(clt_comm *comm, clt_work **work) {
    clt_operation o = {.kind = CLT_OP_BARRIER, .dtype = CLT_U8};
    return start(comm, &o, work);
}

clt_status clt_comm_send(clt_comm *comm, const void *data, size_t count, clt_dtype dtype, int to, uint32_t tag,
                         clt_work **work) {
    clt_operation o = {.kind = CLT_OP_SEND, .data = (void *)data, .count = count, .dtype = dtype, .peer = to, .tag = tag};
    return start_message(comm, &o, work);
}

clt_status clt_comm_receive(clt_comm *comm, void *data, size_t count, clt_dtype dtype, int from, uint32_t tag,
                            clt_work **work) {
    clt_operation o = {.kind = CLT_OP_RECEIVE, .data = data, .count = count, .dtype = dtype, .peer = from, .tag = tag};
    return start_message(comm, &o, work);
}
