/*
 * A group whose ranks are threads of one process: the same queue as everywhere, over shared memory in the network's place. Results are added in the
 * order of ranks, and have the bits of any other engine that adds so.
 */
#include "comm/local/local.h"

#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/reduce.h"
#include "runtime/base/thread.h"

enum { MOST = CLT_LOCAL_RANKS };

typedef struct message {
    clt_operation *operation;
    int owner;
    bool matched;
    struct message *next;
} message;

/* All that is below the mutex is guarded by it. */
typedef struct group {
    clt_mutex mutex;
    clt_condition changed;
    int n, references;
    int64_t generation;
    double timeout_seconds;
    clt_status ended;
    char detail[1024];
    bool lost[MOST], left[MOST]; /* died; said good-bye, which ends the group for who needs that rank yet */

    clt_operation *operations[MOST]; /* what each rank called */
    void *parts[MOST];               /* of a reduction, what each rank has made of its part */
    bool arrived[MOST];
    uint64_t meetings;
    int reading; /* of the ranks that have met: those that may read yet what others gave */
    message *messages;

    bool shrinking[MOST];
    clt_comm *survivors[MOST]; /* by old rank */
    bool shrunk;
} group;

typedef struct member {
    group *group;
    int rank;
    bool woken;
    bool mortal; /* it is lost after so many more collectives */
    int life;
    clt_transport_counts counts;
} member;

/* ---- failing ---- */

static void end_group(group *g, clt_status status, const char *detail) {
    if (g->ended != CLT_OK) return;
    g->ended = status;
    snprintf(g->detail, sizeof g->detail, "%s", detail);
    clt_condition_wake_all(&g->changed);
}

static clt_status state_of(const group *g) {
    return g->ended == CLT_OK ? CLT_OK : clt_fail_again(g->ended, g->detail);
}

static void end_by_leaver(group *g, int rank) {
    char text[64];
    snprintf(text, sizeof text, "rank %d left", rank);
    end_group(g, CLT_E_PEER, text);
}

static clt_status late(const group *g, const clt_operation *o) {
    char text[CLT_OPERATION_TEXT], ranks[256] = "";
    int n = 0;
    for (int r = 0; r < g->n; r++)
        if (!g->arrived[r]) snprintf(ranks + strlen(ranks), sizeof ranks - strlen(ranks), "%s %d", n++ ? "," : "", r);
    return clt_fail(CLT_E_TIMEOUT, "%s: not done within %g s: waited for rank%s%s", clt_operation_text(o, text), g->timeout_seconds, n == 1 ? "" : "s", ranks);
}

/* ---- collectives ---- */

static bool all_arrived(const group *g) {
    for (int r = 0; r < g->n; r++)
        if (!g->arrived[r]) return false;
    return true;
}

static clt_status await_others(member *m, const clt_operation *o, uint64_t meeting) {
    group *g = m->group;
    while (g->meetings == meeting) {
        for (int r = 0; r < g->n; r++)
            if (g->left[r] && !g->arrived[r]) end_by_leaver(g, r);
        CLT_TRY(state_of(g));
        if (atomic_load(o->interrupted)) return clt_fail(CLT_E_ABORTED, "interrupted");
        if (clt_seconds() >= o->deadline) return late(g, o);
        clt_condition_wait_until(&g->changed, &g->mutex, o->deadline);
    }
    return CLT_OK;
}

/* Returns when all ranks are here. Each of them then counts as reading, from that moment and not from when its thread goes on, until it says
 * done_reading. Who goes before is not waited with. */
static clt_status meet(member *m, const clt_operation *o) {
    group *g = m->group;
    g->arrived[m->rank] = true;
    if (!all_arrived(g)) {
        clt_status status = await_others(m, o, g->meetings);
        if (status < 0) g->arrived[m->rank] = false;
        return status;
    }
    memset(g->arrived, 0, sizeof g->arrived);
    g->reading = g->n;
    g->meetings++;
    clt_condition_wake_all(&g->changed);
    return CLT_OK;
}

static void done_reading(group *g) {
    if (--g->reading == 0) clt_condition_wake_all(&g->changed);
}

static clt_status compare(const group *g) {
    char first[CLT_OPERATION_TEXT], other[CLT_OPERATION_TEXT];
    const clt_operation *a = g->operations[0];
    for (int r = 1; r < g->n; r++) {
        const clt_operation *b = g->operations[r];
        bool same = strcmp(clt_operation_text(a, first), clt_operation_text(b, other)) == 0;
        for (int k = 0; same && a->counts && k < g->n; k++) same = a->counts[k] == b->counts[k];
        if (!same) return clt_fail(CLT_E_MISMATCH, "rank 0 called %s, rank %d %s", first, r, other);
    }
    return CLT_OK;
}

/* Where a rank's part of the operation's data begins, in elements, and how many it has: as it was told, or as equal as can be. */
static size_t part_of(const group *g, const clt_operation *o, int rank, size_t *count) {
    size_t start = 0, each = o->count / (size_t)g->n, more = o->count % (size_t)g->n;
    for (int r = 0; r <= rank; r++) {
        start += r ? *count : 0;
        *count = o->counts ? o->counts[r] : each + ((size_t)r < more);
    }
    return start;
}

/* The first half: what all ranks gave is read, and nobody changes it. A rank reduces its own part alone, into memory of its own. */
static void read_all(member *m, clt_operation *o) {
    const group *g = m->group;
    size_t element = clt_dtype_bytes(o->dtype), count = 0, start = part_of(g, o, m->rank, &count);
    bool root = o->peer == m->rank;
    const void *pieces[MOST];
    for (int r = 0; r < g->n; r++) pieces[r] = (const char *)g->operations[r]->data + start * element;
    switch (o->kind) {
    case CLT_OP_ALL_REDUCE:
    case CLT_OP_REDUCE_SCATTER:
        if (count) clt_reduce_many(g->parts[m->rank], pieces, g->n, count, o->dtype, o->reduction);
        m->counts.bytes_received += (size_t)(g->n - 1) * count * element;
        m->counts.bytes_sent += (o->count - count) * element;
        break;
    case CLT_OP_BROADCAST:
        if (!root && o->count) memcpy(o->data, g->operations[o->peer]->data, o->count * element);
        *(root ? &m->counts.bytes_sent : &m->counts.bytes_received) += (root ? (size_t)(g->n - 1) : 1) * o->count * element;
        break;
    case CLT_OP_ALL_GATHER:
        for (int r = 0; r < g->n; r++) {
            size_t at = part_of(g, o, r, &count) * element;
            if (r != m->rank && count) memcpy((char *)o->data + at, (const char *)g->operations[r]->data + at, count * element);
            m->counts.bytes_received += r != m->rank ? count * element : 0;
            m->counts.bytes_sent += r == m->rank ? (size_t)(g->n - 1) * count * element : 0;
        }
        break;
    default: break;
    }
}

/* The second: nobody reads what the ranks gave any more. */
static void write_own(member *m, clt_operation *o) {
    const group *g = m->group;
    size_t element = clt_dtype_bytes(o->dtype), count = 0;
    for (int r = 0; r < g->n; r++) {
        bool own = r == m->rank;
        if (!own && o->kind == CLT_OP_REDUCE_SCATTER) continue;
        size_t at = part_of(g, o, r, &count) * element;
        if (count) memcpy((char *)o->data + at, g->parts[r], count * element);
        if (o->kind == CLT_OP_ALL_REDUCE) *(own ? &m->counts.bytes_sent : &m->counts.bytes_received) += (own ? (size_t)(g->n - 1) : 1) * count * element;
    }
}

static void lose(member *m) {
    char text[64];
    snprintf(text, sizeof text, "rank %d was lost", m->rank);
    m->group->lost[m->rank] = true;
    end_group(m->group, CLT_E_PEER, text);
    clt_condition_wake_all(&m->group->changed);
}

/* Without the mutex. */
static void work_apart(member *m, clt_operation *o, void (*work)(member *, clt_operation *)) {
    clt_mutex_unlock(&m->group->mutex);
    work(m, o);
    clt_mutex_lock(&m->group->mutex);
}

static clt_status read_and_write(member *m, clt_operation *o, bool writes) {
    group *g = m->group;
    clt_status status = compare(g);
    if (status == CLT_OK) work_apart(m, o, read_all);
    else end_group(g, status, clt_error_detail());
    done_reading(g);
    if (status < 0) return status;
    CLT_TRY(meet(m, o)); /* also of a barrier: others compare what it called */
    if (writes) work_apart(m, o, write_own);
    done_reading(g);
    return CLT_OK;
}

/* Who leaves, for whatever reason, waits until nobody reads its memory any more. */
static clt_status exchange(member *m, clt_operation *o, void *part) {
    group *g = m->group;
    if (m->mortal && m->life-- == 0) lose(m);
    CLT_TRY(state_of(g));
    g->operations[m->rank] = o;
    g->parts[m->rank] = part;
    CLT_TRY(meet(m, o));
    clt_status status = read_and_write(m, o, part != NULL);
    while (g->reading) clt_condition_wait(&g->changed, &g->mutex);
    return status;
}

static clt_status run(void *state, clt_operation *o) {
    member *m = state;
    size_t count = 0;
    void *part = NULL;
    if (o->count && (o->kind == CLT_OP_ALL_REDUCE || o->kind == CLT_OP_REDUCE_SCATTER)) {
        part_of(m->group, o, m->rank, &count);
        part = clt_alloc(count * clt_dtype_bytes(o->dtype));
        if (!part) return clt_fail_memory(count * clt_dtype_bytes(o->dtype));
    }
    clt_mutex_lock(&m->group->mutex);
    clt_status status = exchange(m, o, part);
    clt_mutex_unlock(&m->group->mutex);
    clt_free(part);
    return status;
}

/* ---- messages ---- */

static bool belong_together(const message *waiting, const member *m, const clt_operation *o) {
    const clt_operation *w = waiting->operation;
    return !waiting->matched && waiting->owner == o->peer && w->peer == m->rank && w->tag == o->tag && w->kind != o->kind;
}

static clt_status move(member *m, message *waiting, clt_operation *o) {
    clt_operation *w = waiting->operation;
    char one[CLT_OPERATION_TEXT], two[CLT_OPERATION_TEXT];
    if (w->count != o->count || w->dtype != o->dtype)
        return clt_fail(CLT_E_MISMATCH, "rank %d called %s, rank %d %s", m->rank, clt_operation_text(o, one),
                        waiting->owner, clt_operation_text(w, two));
    clt_operation *from = o->kind == CLT_OP_SEND ? o : w, *to = o->kind == CLT_OP_SEND ? w : o;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    if (bytes) memcpy(to->data, from->data, bytes);
    *(o == from ? &m->counts.bytes_sent : &m->counts.bytes_received) += bytes;
    waiting->matched = o->finished = true;
    clt_condition_wake_all(&m->group->changed);
    return CLT_OK;
}

static clt_status match_or_wait(member *m, clt_operation *o) {
    CLT_TRY(state_of(m->group));
    message **end = &m->group->messages;
    for (; *end; end = &(*end)->next)
        if (belong_together(*end, m, o)) return move(m, *end, o);
    if (m->group->left[o->peer]) end_by_leaver(m->group, o->peer);
    CLT_TRY(state_of(m->group));
    message *waiting = clt_calloc(1, sizeof *waiting);
    if (!waiting) return clt_fail_memory(sizeof *waiting);
    *waiting = (message){.operation = o, .owner = m->rank};
    *end = waiting;
    return CLT_OK;
}

static clt_status post(void *state, clt_operation *o) {
    member *m = state;
    clt_mutex_lock(&m->group->mutex);
    clt_status status = match_or_wait(m, o);
    clt_mutex_unlock(&m->group->mutex);
    return status;
}

/* Takes this rank's messages off the list: those that were matched, or the one of `only`. */
static bool take(member *m, const clt_operation *only) {
    bool any = false;
    for (message **at = &m->group->messages; *at;) {
        message *here = *at;
        if (here->owner != m->rank || (only ? here->operation != only : !here->matched)) {
            at = &here->next;
            continue;
        }
        here->operation->finished = here->matched;
        size_t bytes = here->matched ? here->operation->count * clt_dtype_bytes(here->operation->dtype) : 0;
        *(here->operation->kind == CLT_OP_SEND ? &m->counts.bytes_sent : &m->counts.bytes_received) += bytes;
        *at = here->next;
        clt_free(here);
        any = true;
    }
    return any;
}

static bool is_finished(void *state, const clt_operation *o) {
    (void)state;
    return o->finished;
}

static void cancel(void *state, clt_operation *o) {
    member *m = state;
    clt_mutex_lock(&m->group->mutex);
    take(m, o);
    clt_mutex_unlock(&m->group->mutex);
}

/* What waits for a rank that has left waits in vain. */
static void look_for_leavers(const member *m) {
    group *g = m->group;
    for (const message *here = g->messages; here; here = here->next)
        if (here->owner == m->rank && !here->matched && g->left[here->operation->peer]) end_by_leaver(g, here->operation->peer);
}

static clt_status progress(void *state, double seconds) {
    member *m = state;
    group *g = m->group;
    double until = clt_seconds() + seconds;
    clt_mutex_lock(&g->mutex);
    while (look_for_leavers(m), !take(m, NULL) && g->ended == CLT_OK && !m->woken && clt_seconds() < until)
        clt_condition_wait_until(&g->changed, &g->mutex, until);
    m->woken = false;
    clt_status status = state_of(g);
    clt_mutex_unlock(&g->mutex);
    return status;
}

/* ---- the rest of the engine ---- */

static clt_status idle(void *state) {
    return progress(state, 0);
}

static void wake(void *state) {
    member *m = state;
    clt_mutex_lock(&m->group->mutex);
    m->woken = true;
    clt_condition_wake_all(&m->group->changed);
    clt_mutex_unlock(&m->group->mutex);
}

static void end(void *state, clt_status status, const char *detail) {
    member *m = state;
    char text[1024];
    snprintf(text, sizeof text, "rank %d: %.900s", m->rank, detail);
    clt_mutex_lock(&m->group->mutex);
    end_group(m->group, status == CLT_E_ABORTED || status == CLT_E_MISMATCH ? status : CLT_E_PEER, text);
    clt_mutex_unlock(&m->group->mutex);
}

static void drop(group *g) {
    clt_mutex_lock(&g->mutex);
    bool last = --g->references == 0;
    clt_mutex_unlock(&g->mutex);
    if (!last) return;
    clt_condition_destroy(&g->changed);
    clt_mutex_destroy(&g->mutex);
    clt_free(g);
}

static void destroy(void *state) {
    member *m = state;
    clt_mutex_lock(&m->group->mutex);
    m->group->left[m->rank] = true;
    clt_condition_wake_all(&m->group->changed);
    clt_mutex_unlock(&m->group->mutex);
    drop(m->group);
    clt_free(m);
}

static bool is_lost(void *state, int rank) {
    member *m = state;
    clt_mutex_lock(&m->group->mutex);
    bool lost = m->group->lost[rank];
    clt_mutex_unlock(&m->group->mutex);
    return lost;
}

static clt_transport_counts counts(void *state) {
    return ((const member *)state)->counts;
}

static const char *algorithm(void *state, size_t bytes) {
    (void)state, (void)bytes;
    return "local";
}

/* ---- groups ---- */

static clt_status shrink(void *state, clt_comm **survivors);

static const clt_engine engine = {
    .name = "local", .abilities = CLT_CAN_NAME_LOST, .run = run, .post = post, .is_finished = is_finished, .cancel = cancel, .progress = progress, .idle = idle, .wake = wake,
    .end = end, .destroy = destroy, .is_lost = is_lost, .counts = counts, .algorithm = algorithm, .shrink = shrink,
};

static clt_status add_member(group *g, clt_comm **comm, int rank) {
    member *m = clt_calloc(1, sizeof *m);
    if (!m) return clt_fail_memory(sizeof *m);
    *m = (member){.group = g, .rank = rank};
    g->references++;
    return clt_comm_open(comm, &(clt_comm_setup){.engine = &engine, .state = m, .rank = rank, .size = g->n,
                                                 .generation = g->generation, .idle_seconds = 0.02,
                                                 .timeout_seconds = g->timeout_seconds});
}

static clt_status new_group(clt_comm **comms, int n, double timeout_seconds, int64_t generation) {
    memset(comms, 0, (size_t)n * sizeof *comms);
    group *g = clt_calloc(1, sizeof *g);
    if (!g) return clt_fail_memory(sizeof *g);
    g->n = n;
    g->generation = generation;
    g->timeout_seconds = timeout_seconds;
    g->references = 1;
    clt_status status = clt_mutex_init(&g->mutex);
    if (status == CLT_OK) status = clt_condition_init(&g->changed);
    for (int r = 0; r < n && status == CLT_OK; r++) status = add_member(g, &comms[r], r);
    for (int r = 0; r < n && status < 0; r++) clt_comm_destroy(comms[r]), comms[r] = NULL;
    drop(g);
    return status;
}

clt_status clt_comm_create_local(clt_comm **comms, int n, double timeout_seconds) {
    if (!comms) return clt_fail(CLT_E_INVALID, "clt_comm_create_local: comms is NULL");
    if (n < 1 || n > MOST) return clt_fail(CLT_E_INVALID, "clt_comm_create_local: %d ranks; there may be 1 to %d", n, MOST);
    if (!(timeout_seconds >= 0)) return clt_fail(CLT_E_INVALID, "clt_comm_create_local: a timeout of %g s", timeout_seconds);
    return new_group(comms, n, timeout_seconds > 0 ? timeout_seconds : 300, 0);
}

void clt_local_lose(clt_comm *comm) {
    member *m = clt_comm_engine_state(comm);
    clt_mutex_lock(&m->group->mutex);
    lose(m);
    clt_mutex_unlock(&m->group->mutex);
}

void clt_local_lose_after(clt_comm *comm, int collectives) {
    member *m = clt_comm_engine_state(comm);
    clt_mutex_lock(&m->group->mutex);
    m->mortal = true;
    m->life = collectives;
    clt_mutex_unlock(&m->group->mutex);
}

static bool all_survivors_there(const group *g) {
    for (int r = 0; r < g->n; r++)
        if (!g->lost[r] && !g->left[r] && !g->shrinking[r]) return false;
    return true;
}

static clt_status make_survivors(group *g) {
    clt_comm *comms[MOST];
    int n = 0;
    for (int r = 0; r < g->n; r++) n += g->shrinking[r] && !g->lost[r];
    CLT_TRY(new_group(comms, n, g->timeout_seconds, g->generation + 1));
    for (int r = 0, k = 0; r < g->n; r++)
        if (g->shrinking[r] && !g->lost[r]) g->survivors[r] = comms[k++];
    g->shrunk = true;
    clt_condition_wake_all(&g->changed);
    return CLT_OK;
}

static clt_status shrink(void *state, clt_comm **survivors) {
    member *m = state;
    group *g = m->group;
    double deadline = clt_seconds() + g->timeout_seconds;
    clt_status status = CLT_OK;
    clt_mutex_lock(&g->mutex);
    g->shrinking[m->rank] = true;
    end_group(g, CLT_E_PEER, "the group was shrunk");
    while (status == CLT_OK && !g->shrunk && !g->lost[m->rank]) {
        if (all_survivors_there(g)) status = make_survivors(g);
        else if (clt_seconds() >= deadline) status = clt_fail(CLT_E_TIMEOUT, "not all survivors came");
        else clt_condition_wait_until(&g->changed, &g->mutex, deadline);
    }
    if (status < 0) g->shrinking[m->rank] = false; /* nobody takes its place in a group that others make */
    *survivors = g->survivors[m->rank];
    if (status == CLT_OK && !*survivors) status = clt_fail(CLT_E_FENCED, "rank %d is not in the new group", m->rank);
    clt_mutex_unlock(&g->mutex);
    return status;
}
