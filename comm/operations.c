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
