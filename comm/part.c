/*
 * A part of a group: an engine whose collectives are messages of the whole, which any engine has. Sums are made in the order of ranks. What ends a part ends the whole, whose
 * deadlines and heartbeats find who is lost.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/reduce.h"

enum { PIECE_BYTES = 16 << 20 };

typedef struct part_state {
    clt_comm_part part;
    int rank, size;
    atomic_bool running;
    clt_transport_counts counts;
    size_t *parts;     /* elements of each rank's */
    uint64_t *heads;   /* by rank: what it does */
    clt_work **works;  /* two a rank */
    char *scratch;
    size_t scratch_bytes;
    int members[];
} part_state;

/* ---- messages ---- */

/* Between this rank and each other one. */
typedef struct bundle {
    void *data;
    size_t bytes;
} bundle;

static clt_status begin(part_state *s, bool sends, bundle what, int peer, clt_work **work) {
    const clt_comm_part *p = &s->part;
    uint32_t tag = p->tag + CLT_PART_TAGS_EACH / 2;
    if (!what.bytes) return CLT_OK;
    *(sends ? &s->counts.bytes_sent : &s->counts.bytes_received) += what.bytes;
    return sends ? clt_comm_send(p->whole, what.data, what.bytes, CLT_U8, s->members[peer], tag, work)
                 : clt_comm_receive(p->whole, what.data, what.bytes, CLT_U8, s->members[peer], tag, work);
}

/* Sends out(r) to each rank r, and receives in(r) from it. Where one fails the whole has ended, and so have all. */
static clt_status exchange(part_state *s, const void *context, bundle (*out)(part_state *, const void *, int), bundle (*in)(part_state *, const void *, int)) {
    clt_status status = CLT_OK;
    char detail[1024] = "";
    memset(s->works, 0, 2 * (size_t)s->size * sizeof *s->works);
    for (int i = 1; i < s->size && status == CLT_OK; i++) {
        int to = (s->rank + i) % s->size, from = (s->rank + s->size - i) % s->size;
        status = begin(s, false, in(s, context, from), from, &s->works[2 * i]);
        if (status == CLT_OK) status = begin(s, true, out(s, context, to), to, &s->works[2 * i + 1]);
    }
    if (status < 0) snprintf(detail, sizeof detail, "%s", clt_error_detail());
    for (int i = 2; i < 2 * s->size; i++) {
        clt_status one = s->works[i] ? clt_work_wait(s->works[i]) : CLT_OK;
        if (status < 0 || one == CLT_OK) continue;
        status = one;
        snprintf(detail, sizeof detail, "%s", clt_error_detail());
    }
    return status < 0 ? clt_fail_again(status, detail) : CLT_OK;
}

static void *scratch(part_state *s, size_t bytes) {
    if (s->scratch && bytes <= s->scratch_bytes) return s->scratch;
    clt_free(s->scratch);
    s->scratch = clt_alloc(CLT_MAX(bytes, 1));
    s->scratch_bytes = s->scratch ? bytes : 0;
    if (!s->scratch) clt_fail_memory(bytes);
    return s->scratch;
}

/* ---- first contact ---- */

static bundle own_head(part_state *s, const void *context, int r) {
    (void)context, (void)r;
    return (bundle){&s->heads[s->rank], sizeof *s->heads};
}

static bundle head_of(part_state *s, const void *context, int r) {
    (void)context;
    return (bundle){&s->heads[r], sizeof *s->heads};
}

static bundle own_text(part_state *s, const void *context, int r) {
    (void)context, (void)r;
    return (bundle){s->scratch + (size_t)s->rank * CLT_OPERATION_TEXT, CLT_OPERATION_TEXT};
}

static bundle text_of(part_state *s, const void *context, int r) {
    (void)context;
    return (bundle){s->scratch + (size_t)r * CLT_OPERATION_TEXT, CLT_OPERATION_TEXT};
}

static clt_status tell_difference(part_state *s, const clt_operation *o) {
    int other = 1;
    char *texts = scratch(s, (size_t)s->size * CLT_OPERATION_TEXT);
    if (!texts) return CLT_E_NO_MEMORY;
    clt_operation_text(o, texts + (size_t)s->rank * CLT_OPERATION_TEXT);
    CLT_TRY(exchange(s, NULL, own_text, text_of));
    while (other < s->size - 1 && s->heads[other] == s->heads[0]) other++;
    return clt_fail(CLT_E_MISMATCH, "rank %d called %.127s, rank %d %.127s", s->members[0], texts, s->members[other], texts + (size_t)other * CLT_OPERATION_TEXT);
}

/* Returns when all ranks are here with the same operation. */
static clt_status contact(part_state *s, const clt_operation *o) {
    s->heads[s->rank] = clt_operation_hash(o, s->size);
    CLT_TRY(exchange(s, NULL, own_head, head_of));
    for (int r = 0; r < s->size; r++)
        if (s->heads[r] != s->heads[s->rank]) return tell_difference(s, o);
    return CLT_OK;
}

/* ---- collectives: parts of the ranks, in pieces ---- */

typedef struct piece {
    char *data;
    size_t at, most, element; /* elements from the beginning of each part, and how many; bytes */
    int root;                 /* of a broadcast */
} piece;

static bundle piece_of(part_state *s, const void *context, int rank) {
    const piece *p = context;
    size_t start = 0, whole = s->parts[rank];
    for (int r = 0; r < rank; r++) start += s->parts[r];
    size_t n = p->at >= whole ? 0 : CLT_MIN(whole - p->at, p->most);
    return (bundle){p->data + (start + p->at) * p->element, n * p->element};
}

static bundle own_piece(part_state *s, const void *context, int rank) {
    (void)rank;
    return piece_of(s, context, s->rank);
}

/* The own piece, as the rank has it. */
static bundle received_piece(part_state *s, const void *context, int rank) {
    bundle own = piece_of(s, context, s->rank);
    return (bundle){s->scratch + (size_t)rank * own.bytes, own.bytes};
}

static clt_status reduce_piece(part_state *s, const clt_operation *o, const piece *p) {
    bundle own = piece_of(s, p, s->rank);
    if (!scratch(s, (size_t)s->size * own.bytes)) return CLT_E_NO_MEMORY;
    CLT_TRY(exchange(s, p, piece_of, received_piece));
    if (!own.bytes) return CLT_OK;
    const void **pieces = clt_alloc((size_t)s->size * sizeof *pieces);
    if (!pieces) return clt_fail_memory((size_t)s->size * sizeof *pieces);
    for (int r = 0; r < s->size; r++) pieces[r] = r == s->rank ? own.data : received_piece(s, p, r).data;
    clt_reduce_many(own.data, pieces, s->size, own.bytes / p->element, o->dtype, o->reduction);
    clt_free(pieces);
    return CLT_OK;
}

static clt_status gather_piece(part_state *s, const clt_operation *o, const piece *p) {
    (void)o;
    return exchange(s, p, own_piece, piece_of);
}

static clt_status each_piece(part_state *s, const clt_operation *o, clt_status (*move)(part_state *, const clt_operation *, const piece *)) {
    size_t most = clt_operation_parts(o, s->size, s->parts);
    piece p = {.data = o->data, .element = clt_dtype_bytes(o->dtype)};
    p.most = CLT_MAX(PIECE_BYTES / p.element / (size_t)s->size, 1);
    for (; p.at < most; p.at += p.most) CLT_TRY(move(s, o, &p));
    return CLT_OK;
}

static bundle from_root(part_state *s, const void *context, int rank) {
    const piece *p = context;
    return (bundle){p->data + p->at, s->rank == p->root && rank != p->root ? p->most : 0};
}

static bundle to_others(part_state *s, const void *context, int rank) {
    const piece *p = context;
    return (bundle){p->data + p->at, rank == p->root && s->rank != p->root ? p->most : 0};
}

static clt_status broadcast(part_state *s, const clt_operation *o) {
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    piece p = {.data = o->data, .root = o->peer};
    for (; p.at < bytes; p.at += p.most) {
        p.most = CLT_MIN(bytes - p.at, (size_t)PIECE_BYTES);
        CLT_TRY(exchange(s, &p, from_root, to_others));
    }
    return CLT_OK;
}

static clt_status carry_out(part_state *s, const clt_operation *o) {
    CLT_TRY(contact(s, o));
    switch (o->kind) {
    case CLT_OP_ALL_REDUCE:
        CLT_TRY(each_piece(s, o, reduce_piece));
        return each_piece(s, o, gather_piece);
    case CLT_OP_REDUCE_SCATTER: return each_piece(s, o, reduce_piece);
    case CLT_OP_ALL_GATHER: return each_piece(s, o, gather_piece);
    case CLT_OP_BROADCAST: return broadcast(s, o);
    default: return CLT_OK;
    }
}

static clt_status run(void *state, clt_operation *o) {
    part_state *s = state;
    atomic_store(&s->running, true);
    clt_status status = atomic_load(o->interrupted) ? clt_fail(CLT_E_ABORTED, "interrupted") : carry_out(s, o);
    atomic_store(&s->running, false);
    return status;
}

/* ---- the rest of the engine: messages are the whole's from their start on (comm.c) ---- */

/* What is under way waits for messages, which end with the whole alone. */
static void wake(void *state) {
    part_state *s = state;
    if (atomic_load(&s->running)) clt_comm_abort(s->part.whole, "a part of the group was ended");
}

static void end(void *state, clt_status status, const char *detail) {
    part_state *s = state;
    if (clt_comm_state(s->part.whole) == CLT_OK) clt_comm_fail(s->part.whole, status, detail);
}

static void destroy(void *state) {
    part_state *s = state;
    clt_free(s->parts);
    clt_free(s->heads);
    clt_free(s->works);
    clt_free(s->scratch);
    clt_free(s);
}

static bool is_lost(void *state, int rank) {
    const part_state *s = state;
    return clt_comm_is_lost(s->part.whole, s->members[rank]);
}

static clt_transport_counts counts(void *state) {
    return ((const part_state *)state)->counts;
}

static const char *algorithm(void *state, size_t bytes) {
    (void)state, (void)bytes;
    return "part";
}

static const clt_engine engine = {
    .name = "part", .run = run, CLT_ENGINE_WITHOUT_MESSAGES, .wake = wake, .end = end, .destroy = destroy, .is_lost = is_lost, .counts = counts, .algorithm = algorithm,
};

/* ---- splitting ---- */

static clt_status make_state(part_state **out, clt_comm *whole, const int32_t *colors, int color, int number) {
    int all = clt_comm_size(whole);
    part_state *s = *out = clt_calloc(1, sizeof *s + (size_t)all * sizeof *s->members);
    if (!s) return clt_fail_memory(sizeof *s);
    for (int r = 0; r < all; r++) {
        if (colors[r] != color) continue;
        if (r == clt_comm_rank(whole)) s->rank = s->size;
        s->members[s->size++] = r;
    }
    size_t n = (size_t)s->size;
    s->part = (clt_comm_part){whole, s->members, CLT_PART_TAGS + (uint32_t)number * CLT_PART_TAGS_EACH};
    s->parts = clt_calloc(n, sizeof *s->parts);
    s->heads = clt_calloc(n, sizeof *s->heads);
    s->works = clt_calloc(2 * n, sizeof *s->works);
    return s->parts && s->heads && s->works ? CLT_OK : clt_fail_memory(n * sizeof *s->works);
}

static clt_status open_part(clt_comm *whole, const int32_t *colors, int color, int number, clt_comm **part) {
    part_state *s;
    if (color < 0) return CLT_OK;
    clt_status status = make_state(&s, whole, colors, color, number);
    if (status < 0) {
        if (s) destroy(s);
        clt_comm_fail(whole, status, clt_error_detail()); /* the others will wait for it */
        return status;
    }
    return clt_comm_open(part, &(clt_comm_setup){.engine = &engine, .state = s, .part = &s->part, .rank = s->rank, .size = s->size,
                                                 .generation = clt_comm_generation(whole), .timeout_seconds = INFINITY});
}

clt_status clt_comm_split(clt_comm *comm, int color, clt_comm **part) {
    int number;
    if (part) *part = NULL;
    if (!comm || !part) return clt_fail(CLT_E_INVALID, "clt_comm_split: comm or part is NULL");
    if (color < -1) return clt_fail(CLT_E_INVALID, "clt_comm_split: color %d: expected a number from 0 on, or -1", color);
    CLT_TRY(clt_comm_count_part(comm, &number));
    size_t n = (size_t)clt_comm_size(comm), *counts = clt_calloc(n, sizeof *counts);
    int32_t *colors = clt_calloc(n, sizeof *colors);
    clt_status status = counts && colors ? CLT_OK : clt_fail_memory(n * sizeof *counts);
    for (size_t r = 0; counts && r < n; r++) counts[r] = 1;
    if (colors) colors[clt_comm_rank(comm)] = color;
    if (status < 0) clt_comm_fail(comm, status, clt_error_detail());
    else status = clt_comm_all_gather(comm, colors, counts, CLT_I32, NULL);
    if (status == CLT_OK) status = open_part(comm, colors, color, number, part);
    clt_free(counts);
    clt_free(colors);
    return status;
}
