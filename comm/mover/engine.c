/*
 * First contact, deadlines, news of an end, and sums in the order of ranks over a mover: so bits, types of 16 bits and errors are the same over any library.
 *
 * What was begun and given up may be read and written for ever: nothing but memory of the engine's own is ever given to a mover, and that is left behind
 * then.
 */
#include "comm/mover/engine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "comm/reduce.h"

enum { PIECE_BYTES = 16 << 20, MOST_RANKS = 1024, LOOK_EACH = 64, LOOK_MICROSECONDS = 2000, YIELDS = 2000 };
static const double telling_seconds = 2; /* after which the end of a rank is known where it made something else fail */
static const double leaving_seconds = 1; /* for which what is under way to who left may still come */

/* What a rank tells all others: its end, or that it leaves. */
typedef struct news {
    int64_t group; /* of those that one process was in, libraries may mix up what was never received */
    int32_t leaves, status;
    int32_t lost; /* 1 + the rank whose end it is; 0: none's */
    uint64_t collectives; /* in which it took part before it left */
    char detail[1000];
} news;

typedef struct peer {
    news heard;
    clt_request listening;
    bool told, left, lost;
    bool silent; /* there is no hearing from it any more */
    double left_at;
} peer;

typedef struct posted {
    clt_operation *operation;
    uint64_t head[2]; /* type and count */
    void *body;
    clt_request requests[2];
    bool pending[2];
    bool announced; /* of a receive: its body is to begin */
    struct posted *next;
} posted;

typedef struct engine_state {
    clt_engine engine; /* of the mover's name */
    const clt_mover *mover;
    void *group;
    int rank, size;
    clt_transport_counts counts;
    uint64_t collectives;
    int64_t id; /* of the group, the same on all ranks */
    double timeout_seconds;
    atomic_bool woken;
    bool stuck; /* something was given up */
    clt_status ended;
    char detail[1024];
    int found; /* 1 + the rank that was found to be lost here; 0: none, or others told it */
    void *scratch;
    size_t scratch_bytes;
    posted *messages;
    int *out_bytes, *in_bytes;
    size_t *parts;
    peer *peers; /* kept where something was given up */
} engine_state;

/* ---- what is given up ---- */

typedef struct kept {
    void *memory;
    struct kept *next;
} kept;

static _Atomic(kept *) all_kept;

/* Memory that a mover may use for ever: it stays, and can be found. */
static void keep(void *memory) {
    kept *k = memory ? clt_alloc(sizeof *k) : NULL;
    if (!k) return;
    *k = (kept){memory, atomic_load(&all_kept)};
    while (!atomic_compare_exchange_weak(&all_kept, &k->next, k)) {}
}

/* ---- failing ---- */

static clt_status fail_words(const engine_state *e, const char *what) {
    return clt_fail(CLT_E_NETWORK, "%s: %s: %s", e->mover->name, what, e->mover->words());
}

/* What cannot be begun, or fails later, may be the end of a rank, which is known by listening to it. */
static clt_status fail_moving(engine_state *e, const char *what);

#define TRY_MOVER(e, what, call)                   \
    do {                                           \
        if (call) return fail_moving(e, what);     \
    } while (0)

static clt_status state_of(const engine_state *e) {
    return e->ended == CLT_OK ? CLT_OK : clt_fail_again(e->ended, e->detail);
}

static void note_end(engine_state *e, clt_status status, const char *detail) {
    if (e->ended != CLT_OK) return;
    e->ended = status;
    snprintf(e->detail, sizeof e->detail, "%s", detail);
}

/* ---- news ---- */

static clt_status listen_to(engine_state *e, int r) {
    peer *p = &e->peers[r];
    bool failed = e->mover->message(e->group, false, CLT_LANE_NEWS, &p->heard, (int)sizeof p->heard, r, 0, &p->listening);
    return failed ? fail_words(e, "listening") : CLT_OK;
}

/* Who has found a rank to be lost says so, and ends too: of several that are silent the lost one is that of which the others told. */
static void note_silent(engine_state *e, const char *words) {
    char detail[sizeof e->detail];
    int r = 0;
    while (r < e->size && (!e->peers[r].silent || e->peers[r].told)) r++;
    if (r == e->size || e->ended != CLT_OK) return;
    snprintf(detail, sizeof detail, "rank %d was lost: %s: %.900s", r, e->mover->name, words);
    note_end(e, CLT_E_PEER, detail);
    e->peers[r].lost = true;
    e->found = r + 1;
}

static clt_status hear(engine_state *e) {
    char words[900] = "";
    for (int r = 0; e->id && r < e->size; r++) {
        peer *p = &e->peers[r];
        bool done = false;
        if (r == e->rank || p->told || p->silent) continue;
        if (e->mover->test(&p->listening, &done)) {
            p->silent = true;
            if (!words[0]) snprintf(words, sizeof words, "%s", e->mover->words());
            continue;
        }
        if (!done) continue;
        if (p->heard.group != e->id) {
            CLT_TRY(listen_to(e, r));
            continue;
        }
        p->told = true;
        p->heard.detail[sizeof p->heard.detail - 1] = 0;
        if (p->heard.lost > 0 && p->heard.lost <= e->size) e->peers[p->heard.lost - 1].lost = true;
        if (p->heard.leaves) p->left = true, p->left_at = clt_seconds();
        else note_end(e, p->heard.status < 0 ? (clt_status)p->heard.status : CLT_E_PEER, p->heard.detail);
    }
    if (words[0]) note_silent(e, words);
    return CLT_OK;
}

static bool all_done(engine_state *e, clt_request *requests, const bool *begun) {
    bool all = true;
    for (int r = 0; r < e->size; r++) {
        bool done = !begun[r];
        all &= done || (!e->mover->test(&requests[r], &done) && done);
    }
    return all;
}

/* Waits a little, so that it is on its way when this process ends. */
static void tell_all(engine_state *e, const news *told) {
    news *sent = clt_alloc(sizeof *sent);
    clt_request *requests = clt_calloc((size_t)e->size, sizeof *requests);
    bool *begun = clt_calloc((size_t)e->size, sizeof *begun), done = false;
    double until = clt_seconds() + leaving_seconds;
    if (sent) *sent = *told, sent->group = e->id;
    for (int r = 0; sent && requests && begun && r < e->size; r++) {
        if (r == e->rank || e->peers[r].left || e->peers[r].silent || e->peers[r].lost) continue;
        begun[r] = !e->mover->message(e->group, true, CLT_LANE_NEWS, sent, (int)sizeof *sent, r, 0, &requests[r]);
    }
    while (sent && requests && begun && !done && clt_seconds() < until) {
        done = all_done(e, requests, begun);
        if (!done) sched_yield();
    }
    clt_free(begun);
    if (done) {
        clt_free(sent);
        clt_free(requests);
        return;
    }
    keep(sent); /* it arrives when the others look */
    keep(requests);
}

/* ---- waiting ---- */

static clt_status look_around(engine_state *e, const clt_operation *o) {
    char text[CLT_OPERATION_TEXT];
    CLT_TRY(hear(e));
    CLT_TRY(state_of(e));
    for (int r = 0; r < e->size; r++)
        if (e->peers[r].left && e->peers[r].heard.collectives <= o->number) return clt_fail(CLT_E_PEER, "rank %d left", r);
    if (atomic_load(o->interrupted)) return clt_fail(CLT_E_ABORTED, "interrupted");
    if (clt_seconds() >= o->deadline)
        return clt_fail(CLT_E_TIMEOUT, "%s: not done within %g s: waited for ranks that %s does not name", clt_operation_text(o, text), e->timeout_seconds, e->mover->name);
    return CLT_OK;
}

static void pause_after(const engine_state *e, long turns) {
    if (turns < YIELDS && !e->mover->wait) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static clt_status fail_moving(engine_state *e, const char *what) {
    clt_status status = fail_words(e, what);
    char detail[sizeof e->detail];
    double until = clt_seconds() + telling_seconds;
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    while (clt_seconds() < until) {
        CLT_TRY(hear(e));
        CLT_TRY(state_of(e));
        sched_yield();
    }
    return clt_fail_again(status, detail);
}

static clt_status await(engine_state *e, const clt_operation *o, clt_request request) {
    for (long turns = 1;; turns++) {
        bool done = false;
        if (e->mover->test(&request, &done)) return fail_moving(e, "waiting");
        if (done) return CLT_OK;
        if (turns % LOOK_EACH == 0 || e->mover->wait) CLT_TRY(look_around(e, o));
        if (e->mover->wait) e->mover->wait(&request, LOOK_MICROSECONDS);
        else pause_after(e, turns);
    }
}

/* Waits for what was begun; what is given up keeps its memory. */
static clt_status finish(engine_state *e, const clt_operation *o, clt_request request) {
    clt_status status = await(e, o, request);
    if (status == CLT_OK) return CLT_OK;
    e->stuck = true;
    keep(e->scratch);
    keep((void *)(uintptr_t)request.word);
    e->scratch = NULL;
    e->scratch_bytes = 0;
    return status;
}

/* NULL: CLT_E_NO_MEMORY. Until the next call. */
static void *scratch(engine_state *e, size_t bytes) {
    if (e->scratch && bytes <= e->scratch_bytes) return e->scratch;
    clt_free(e->scratch);
    e->scratch = clt_alloc(CLT_MAX(bytes, 1));
    e->scratch_bytes = e->scratch ? bytes : 0;
    if (!e->scratch) clt_fail_memory(bytes);
    return e->scratch;
}

/* ---- first contact ---- */

static clt_status tell_difference(engine_state *e, const clt_operation *o) {
    clt_request request;
    size_t bytes = (size_t)e->size * CLT_OPERATION_TEXT;
    char *texts = scratch(e, bytes);
    if (!texts) return CLT_E_NO_MEMORY;
    memset(texts, 0, bytes);
    clt_operation_text(o, texts + (size_t)e->rank * CLT_OPERATION_TEXT);
    for (int r = 0; r < e->size; r++) e->in_bytes[r] = CLT_OPERATION_TEXT;
    TRY_MOVER(e, "first contact", e->mover->gather(e->group, texts, e->in_bytes, &request));
    CLT_TRY(finish(e, o, request));
    int other = 1;
    for (int r = e->size - 1; r > 0; r--)
        if (strncmp(texts, texts + (size_t)r * CLT_OPERATION_TEXT, CLT_OPERATION_TEXT)) other = r;
    return clt_fail(CLT_E_MISMATCH, "rank 0 called %.127s, rank %d %.127s", texts, other, texts + (size_t)other * CLT_OPERATION_TEXT);
}

/* Returns when all ranks are here with the same operation. */
static clt_status contact(engine_state *e, const clt_operation *o) {
    clt_request request;
    int64_t *values = scratch(e, 2 * sizeof *values);
    if (!values) return CLT_E_NO_MEMORY;
    values[0] = (int64_t)(clt_operation_hash(o, e->size) >> 2);
    values[1] = -values[0];
    TRY_MOVER(e, "first contact", e->mover->largest(e->group, values, 2, &request));
    CLT_TRY(finish(e, o, request));
    return values[0] == -values[1] ? CLT_OK : tell_difference(e, o);
}

/* ---- collectives: parts of the ranks, in pieces ---- */

typedef struct piece {
    size_t at, most; /* elements from the beginning of each part, and how many */
    size_t element;  /* bytes */
} piece;

static size_t piece_of(const engine_state *e, const piece *p, int rank) {
    size_t whole = e->parts[rank];
    return p->at >= whole ? 0 : CLT_MIN(whole - p->at, p->most);
}

static size_t start_of(const engine_state *e, int rank) {
    size_t start = 0;
    for (int r = 0; r < rank; r++) start += e->parts[r];
    return start;
}

static clt_status reduce_piece(engine_state *e, const clt_operation *o, const piece *p) {
    size_t own = piece_of(e, p, e->rank), all = 0, place = 0;
    const void **pieces;
    clt_request request;
    for (int r = 0; r < e->size; r++) all += piece_of(e, p, r);
    size_t received = (size_t)e->size * own * p->element;
    char *memory = scratch(e, all * p->element + received), *data = o->data;
    if (!memory) return CLT_E_NO_MEMORY;
    char *in = memory + all * p->element;
    for (int r = 0; r < e->size; r++) {
        size_t bytes = piece_of(e, p, r) * p->element;
        if (bytes) memcpy(memory + place, data + (start_of(e, r) + p->at) * p->element, bytes);
        place += bytes;
        e->out_bytes[r] = (int)bytes;
        e->in_bytes[r] = (int)(own * p->element);
    }
    TRY_MOVER(e, "exchanging", e->mover->exchange(e->group, memory, e->out_bytes, in, e->in_bytes, &request));
    CLT_TRY(finish(e, o, request));
    pieces = clt_alloc((size_t)e->size * sizeof *pieces);
    if (!pieces) return clt_fail_memory((size_t)e->size * sizeof *pieces);
    for (int r = 0; r < e->size; r++) pieces[r] = in + (size_t)r * own * p->element;
    if (own) clt_reduce_many(data + (start_of(e, e->rank) + p->at) * p->element, pieces, e->size, own, o->dtype, o->reduction);
    clt_free(pieces);
    e->counts.bytes_sent += (all - own) * p->element;
    e->counts.bytes_received += received - own * p->element;
    return CLT_OK;
}

static clt_status gather_piece(engine_state *e, const clt_operation *o, const piece *p) {
    size_t own = piece_of(e, p, e->rank), all = 0, place = 0;
    clt_request request;
    for (int r = 0; r < e->size; r++) all += piece_of(e, p, r);
    char *memory = scratch(e, all * p->element), *data = o->data;
    if (!memory) return CLT_E_NO_MEMORY;
    for (int r = 0; r < e->size; r++) {
        e->in_bytes[r] = (int)(piece_of(e, p, r) * p->element);
        if (r == e->rank && own) memcpy(memory + place, data + (start_of(e, r) + p->at) * p->element, own * p->element);
        place += (size_t)e->in_bytes[r];
    }
    TRY_MOVER(e, "gathering", e->mover->gather(e->group, memory, e->in_bytes, &request));
    CLT_TRY(finish(e, o, request));
    place = 0;
    for (int r = 0; r < e->size; place += (size_t)e->in_bytes[r++])
        if (r != e->rank && e->in_bytes[r]) memcpy(data + (start_of(e, r) + p->at) * p->element, memory + place, (size_t)e->in_bytes[r]);
    e->counts.bytes_sent += (size_t)(e->size - 1) * own * p->element;
    e->counts.bytes_received += (all - own) * p->element;
    return CLT_OK;
}

static clt_status each_piece(engine_state *e, const clt_operation *o, clt_status (*move)(engine_state *, const clt_operation *, const piece *)) {
    size_t element = clt_dtype_bytes(o->dtype), most = clt_operation_parts(o, e->size, e->parts);
    piece p = {.most = CLT_MAX(PIECE_BYTES / element / (size_t)e->size, 1), .element = element};
    for (; p.at < most; p.at += p.most) CLT_TRY(move(e, o, &p));
    return CLT_OK;
}

static clt_status broadcast(engine_state *e, const clt_operation *o) {
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    bool root = o->peer == e->rank;
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t n = CLT_MIN(bytes - at, (size_t)PIECE_BYTES);
        clt_request request;
        void *memory = scratch(e, n);
        if (!memory) return CLT_E_NO_MEMORY;
        if (root) memcpy(memory, (char *)o->data + at, n);
        TRY_MOVER(e, "broadcasting", e->mover->broadcast(e->group, memory, (int)n, o->peer, &request));
        CLT_TRY(finish(e, o, request));
        if (!root) memcpy((char *)o->data + at, memory, n);
    }
    *(root ? &e->counts.bytes_sent : &e->counts.bytes_received) += (root ? (size_t)(e->size - 1) : 1) * bytes;
    return CLT_OK;
}

static clt_status carry_out(engine_state *e, const clt_operation *o) {
    CLT_TRY(contact(e, o));
    switch (o->kind) {
    case CLT_OP_ALL_REDUCE:
        CLT_TRY(each_piece(e, o, reduce_piece));
        return each_piece(e, o, gather_piece);
    case CLT_OP_REDUCE_SCATTER: return each_piece(e, o, reduce_piece);
    case CLT_OP_ALL_GATHER: return each_piece(e, o, gather_piece);
    case CLT_OP_BROADCAST: return broadcast(e, o);
    default: return CLT_OK;
    }
}

static clt_status run(void *state, clt_operation *o) {
    engine_state *e = state;
    CLT_TRY(state_of(e));
    clt_status status = carry_out(e, o);
    if (status == CLT_OK) e->collectives = o->number + 1;
    return status;
}

/* ---- messages: a head, which tells what comes, and the body ---- */

static clt_status begin_part(engine_state *e, posted *m, int part) {
    bool sends = m->operation->kind == CLT_OP_SEND;
    size_t bytes = part ? m->operation->count * clt_dtype_bytes(m->operation->dtype) : sizeof m->head;
    if (bytes > INT32_MAX) return clt_fail(CLT_E_UNSUPPORTED, "%s: a message of %zu bytes; at most %d are moved", e->mover->name, bytes, INT32_MAX);
    TRY_MOVER(e, "a message", e->mover->message(e->group, sends, part ? CLT_LANE_BODY : CLT_LANE_HEAD, part ? m->body : m->head, (int)bytes, m->operation->peer,
                                                m->operation->tag, &m->requests[part]));
    m->pending[part] = true;
    return CLT_OK;
}

static clt_status begin_message(engine_state *e, posted *m) {
    const clt_operation *o = m->operation;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    bool sends = o->kind == CLT_OP_SEND;
    if (bytes && !(m->body = clt_alloc(bytes))) return clt_fail_memory(bytes);
    if (sends && bytes) memcpy(m->body, o->data, bytes);
    m->head[0] = sends ? (uint64_t)o->dtype : 0;
    m->head[1] = sends ? o->count : 0;
    CLT_TRY(begin_part(e, m, 0));
    return sends && bytes ? begin_part(e, m, 1) : CLT_OK;
}

/* What is under way keeps its memory for ever. */
static void forget(engine_state *e, posted *m) {
    bool under_way = false;
    for (int part = 0; part < 2; part++)
        under_way |= m->pending[part] && !e->mover->cancel(&m->requests[part]);
    e->stuck |= under_way;
    if (under_way) {
        keep(m->body);
        keep(m);
        return;
    }
    clt_free(m->body);
    clt_free(m);
}

static clt_status post(void *state, clt_operation *o) {
    engine_state *e = state;
    posted **end = &e->messages, *m = clt_calloc(1, sizeof *m);
    if (!m) return clt_fail_memory(sizeof *m);
    m->operation = o;
    o->finished = false;
    while (*end) end = &(*end)->next;
    *end = m;
    CLT_TRY(state_of(e));
    return begin_message(e, m);
}

static bool is_finished(void *state, const clt_operation *o) {
    (void)state;
    return o->finished;
}

static void cancel(void *state, clt_operation *o) {
    engine_state *e = state;
    for (posted **at = &e->messages; *at; at = &(*at)->next) {
        posted *here = *at;
        if (here->operation != o) continue;
        *at = here->next;
        forget(e, here);
        return;
    }
}

static clt_status compare_heads(const engine_state *e, const posted *m) {
    const clt_operation *o = m->operation;
    char own[CLT_OPERATION_TEXT], other[CLT_OPERATION_TEXT];
    clt_operation theirs = {.kind = CLT_OP_SEND, .dtype = (clt_dtype)m->head[0], .count = (size_t)m->head[1], .peer = e->rank, .tag = o->tag};
    if (theirs.dtype == o->dtype && theirs.count == o->count) return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "rank %d called %s, rank %d %s", e->rank, clt_operation_text(o, own), o->peer, clt_operation_text(&theirs, other));
}

/* Bodies come in the order of their heads, which may be seen in another one. */
static bool is_next(const engine_state *e, const posted *m) {
    for (const posted *before = e->messages; before != m; before = before->next) {
        const clt_operation *o = before->operation;
        if (o->kind == CLT_OP_RECEIVE && o->peer == m->operation->peer && o->tag == m->operation->tag && (before->pending[0] || before->announced)) return false;
    }
    return true;
}

/* One step of a message; *over where it is done. */
static clt_status step_message(engine_state *e, posted *m, bool *over) {
    clt_operation *o = m->operation;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    bool sends = o->kind == CLT_OP_SEND;
    for (int part = 0; part < 2; part++) {
        bool done = false;
        if (!m->pending[part]) continue;
        TRY_MOVER(e, "a message", e->mover->test(&m->requests[part], &done));
        m->pending[part] = !done;
        if (!done || part || sends) continue;
        CLT_TRY(compare_heads(e, m));
        m->announced = bytes > 0;
    }
    if (m->announced && is_next(e, m)) {
        m->announced = false;
        CLT_TRY(begin_part(e, m, 1));
    }
    *over = !m->pending[0] && !m->pending[1] && !m->announced;
    if (!*over) return CLT_OK;
    if (!sends && bytes) memcpy(o->data, m->body, bytes);
    *(sends ? &e->counts.bytes_sent : &e->counts.bytes_received) += bytes;
    o->finished = true;
    return CLT_OK;
}

static clt_status step_all(engine_state *e, bool *moved) {
    for (posted **at = &e->messages; *at;) {
        posted *here = *at;
        bool over = false;
        CLT_TRY(step_message(e, here, &over));
        const peer *p = &e->peers[here->operation->peer];
        if (!over && p->left && clt_seconds() > p->left_at + leaving_seconds) return clt_fail(CLT_E_PEER, "rank %d left", here->operation->peer);
        if (!over) {
            at = &here->next;
            continue;
        }
        *moved = true;
        *at = here->next;
        forget(e, here);
    }
    return CLT_OK;
}

static clt_status progress(void *state, double seconds) {
    engine_state *e = state;
    double until = clt_seconds() + seconds;
    for (long turns = 0;; turns++) {
        bool moved = false;
        CLT_TRY(step_all(e, &moved));
        if (turns % LOOK_EACH == 0 || seconds <= 0) CLT_TRY(hear(e));
        CLT_TRY(state_of(e));
        if (moved || atomic_exchange(&e->woken, false) || clt_seconds() >= until) return CLT_OK;
        pause_after(e, turns);
    }
}

/* ---- the rest of the engine ---- */

static clt_status idle(void *state) {
    return progress(state, 0);
}

static void wake(void *state) {
    atomic_store(&((engine_state *)state)->woken, true);
}

static void end(void *state, clt_status status, const char *detail) {
    engine_state *e = state;
    news told = {.status = status == CLT_E_ABORTED || status == CLT_E_MISMATCH ? status : CLT_E_PEER, .lost = e->found};
    bool known = e->ended != CLT_OK && !e->found; /* another told it */
    note_end(e, status, detail);
    snprintf(told.detail, sizeof told.detail, "rank %d: %.900s", e->rank, detail);
    if (!known) tell_all(e, &told);
}

static void free_state(engine_state *e) {
    if (!e) return;
    while (e->messages) {
        posted *here = e->messages;
        e->messages = here->next;
        forget(e, here);
    }
    clt_free(e->scratch);
    clt_free(e->out_bytes);
    clt_free(e->in_bytes);
    clt_free(e->parts);
    if (e->stuck) keep(e->peers);
    else clt_free(e->peers);
    clt_free(e);
}

static void destroy(void *state) {
    engine_state *e = state;
    if (e->ended == CLT_OK) tell_all(e, &(news){.leaves = 1, .collectives = e->collectives});
    for (int r = 0; r < e->size; r++)
        if (r != e->rank && !e->peers[r].told && !e->peers[r].silent && !e->mover->cancel(&e->peers[r].listening)) e->stuck = true;
    e->mover->close(e->group, !e->stuck);
    free_state(e);
}

static bool is_lost(void *state, int rank) {
    return ((const engine_state *)state)->peers[rank].lost;
}

static clt_transport_counts counts(void *state) {
    return ((const engine_state *)state)->counts;
}

static const char *algorithm(void *state, size_t bytes) {
    (void)bytes;
    return ((const engine_state *)state)->mover->name;
}

static const clt_engine engine = {
    .name = "mover", .run = run, .post = post, .is_finished = is_finished, .cancel = cancel, .progress = progress, .idle = idle, .wake = wake,
    .end = end, .destroy = destroy, .is_lost = is_lost, .counts = counts, .algorithm = algorithm,
};

static clt_status make_state(engine_state **out, const clt_mover *mover, void *group, int rank, int size) {
    engine_state *e = *out = clt_calloc(1, sizeof *e);
    size_t n = (size_t)size;
    if (!e) return clt_fail_memory(sizeof *e);
    *e = (engine_state){.engine = engine, .mover = mover, .group = group, .rank = rank, .size = size, .out_bytes = clt_calloc(n, sizeof *e->out_bytes),
                        .in_bytes = clt_calloc(n, sizeof *e->in_bytes), .parts = clt_calloc(n, sizeof *e->parts), .peers = clt_calloc(n, sizeof *e->peers)};
    e->engine.name = mover->name;
    e->engine.abilities = mover->names_lost ? CLT_CAN_NAME_LOST : 0;
    if (!e->out_bytes || !e->in_bytes || !e->parts || !e->peers) return clt_fail_memory(n * sizeof *e->peers);
    return CLT_OK;
}

/* All agree on a number that no group of theirs had before: the latest of their times. */
static clt_status meet(engine_state *e) {
    atomic_bool never = false;
    const clt_operation o = {.kind = CLT_OP_BARRIER, .dtype = CLT_U8, .deadline = clt_seconds() + e->timeout_seconds, .interrupted = &never};
    clt_request request;
    struct timespec now;
    int64_t *latest = scratch(e, sizeof *latest);
    if (!latest) return CLT_E_NO_MEMORY;
    clock_gettime(CLOCK_REALTIME, &now);
    *latest = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    TRY_MOVER(e, "meeting", e->mover->largest(e->group, latest, 1, &request));
    CLT_TRY(finish(e, &o, request));
    e->id = *latest;
    for (int r = 0; r < e->size; r++)
        if (r != e->rank) CLT_TRY(listen_to(e, r));
    return CLT_OK;
}

clt_status clt_mover_create(clt_comm **comm, const clt_mover *mover, const clt_mover_options *options, int64_t generation, double timeout_seconds) {
    clt_mover_options o = *options;
    void *group;
    int rank, size;
    engine_state *e;
    *comm = NULL;
    o.most_ranks = MOST_RANKS;
    if (mover->open(&group, &o, &rank, &size)) return clt_fail(CLT_E_NETWORK, "%s: %s", mover->name, mover->words());
    clt_status status = make_state(&e, mover, group, rank, size);
    if (status == CLT_OK) {
        e->timeout_seconds = CLT_MAX(options->connect_seconds, timeout_seconds); /* until all are there */
        status = meet(e);
        e->timeout_seconds = timeout_seconds;
    }
    if (status < 0) {
        mover->close(group, false);
        free_state(e);
        return status;
    }
    return clt_comm_open(comm, &(clt_comm_setup){.engine = &e->engine, .state = e, .rank = rank, .size = size, .generation = generation,
                                                 .timeout_seconds = timeout_seconds, .idle_seconds = 0.1});
}
