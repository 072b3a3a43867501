#include "tests/comm/threads.h"

#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/reduce.h"
#include "runtime/base/thread.h"

enum { MOST = 64 };

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
    bool lost[MOST];

    clt_operation *operations[MOST]; /* what each rank called */
    bool arrived[MOST];
    uint64_t meetings;
    int computing; /* ranks that read what others gave */
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

static clt_status late(const group *g, const clt_operation *o) {
    char text[CLT_OPERATION_TEXT], ranks[256] = "";
    for (int r = 0; r < g->n; r++)
        if (!g->arrived[r]) snprintf(ranks + strlen(ranks), sizeof ranks - strlen(ranks), " %d", r);
    return clt_fail(CLT_E_TIMEOUT, "%s: waited for rank%s", clt_operation_text(o, text), ranks);
}

/* ---- collectives ---- */

static bool all_arrived(const group *g) {
    for (int r = 0; r < g->n; r++)
        if (!g->arrived[r]) return false;
    return true;
}

/* Returns when all ranks are here. */
static clt_status meet(member *m, const clt_operation *o) {
    group *g = m->group;
    uint64_t meeting = g->meetings;
    g->arrived[m->rank] = true;
    if (all_arrived(g)) {
        memset(g->arrived, 0, sizeof g->arrived);
        g->meetings++;
        clt_condition_wake_all(&g->changed);
        return state_of(g);
    }
    while (g->meetings == meeting) {
        CLT_TRY(state_of(g));
        if (atomic_load(o->interrupted)) return clt_fail(CLT_E_ABORTED, "interrupted");
        if (clt_seconds() >= o->deadline) return late(g, o);
        clt_condition_wait_until(&g->changed, &g->mutex, o->deadline);
    }
    return CLT_OK;
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

static clt_status reduce_all(const group *g, const clt_operation *o, void *result) {
    const void *pieces[MOST];
    for (int r = 0; r < g->n; r++) pieces[r] = g->operations[r]->data;
    clt_reduce_many(result, pieces, g->n, o->count, o->dtype, o->reduction);
    return CLT_OK;
}

static void gather(const group *g, const clt_operation *o, char *result) {
    size_t at = 0;
    for (int r = 0; r < g->n; r++) {
        size_t bytes = o->counts[r] * clt_dtype_bytes(o->dtype);
        if (bytes) memcpy(result + at, (const char *)g->operations[r]->data + at, bytes);
        at += bytes;
    }
}

/* Reads what all ranks gave, which nobody changes before all have read. */
static void compute(const group *g, const clt_operation *o, void *result, size_t bytes) {
    if (!bytes) return;
    if (o->kind == CLT_OP_ALL_REDUCE || o->kind == CLT_OP_REDUCE_SCATTER) reduce_all(g, o, result);
    if (o->kind == CLT_OP_BROADCAST) memcpy(result, g->operations[o->peer]->data, bytes);
    if (o->kind == CLT_OP_ALL_GATHER) gather(g, o, result);
}

static void lose(member *m) {
    char text[64];
    snprintf(text, sizeof text, "rank %d was lost", m->rank);
    m->group->lost[m->rank] = true;
    end_group(m->group, CLT_E_PEER, text);
    clt_condition_wake_all(&m->group->changed);
}

static clt_status exchange(member *m, clt_operation *o, void *result, size_t bytes) {
    group *g = m->group;
    if (m->mortal && m->life-- == 0) lose(m);
    CLT_TRY(state_of(g));
    g->operations[m->rank] = o;
    CLT_TRY(meet(m, o));
    CLT_TRY(state_of(g)); /* who leaves takes along what could be compared */
    clt_status status = compare(g);
    if (status < 0) {
        end_group(g, status, clt_error_detail());
        return status;
    }
    g->computing++;
    clt_mutex_unlock(&g->mutex);
    compute(g, o, result, bytes);
    clt_mutex_lock(&g->mutex);
    g->computing--;
    clt_condition_wake_all(&g->changed);
    status = meet(m, o);
    while (g->computing) clt_condition_wait(&g->changed, &g->mutex);
    return status;
}

static clt_status run(void *state, clt_operation *o) {
    member *m = state;
    size_t bytes = o->count * clt_dtype_bytes(o->dtype);
    void *result = clt_alloc(bytes);
    if (!result) return clt_fail_memory(bytes);
    clt_mutex_lock(&m->group->mutex);
    clt_status status = exchange(m, o, result, bytes);
    clt_mutex_unlock(&m->group->mutex);
    if (status == CLT_OK && bytes) memcpy(o->data, result, bytes);
    clt_free(result);
    return status;
}

/* ---- messages ---- */

static bool belong_together(const message *waiting, const member *m, const clt_operation *o) {
    const clt_operation *w = waiting->operation;
    return !waiting->matched && waiting->owner == o->peer && w->peer == m->rank && w->tag == o->tag && w->kind != o->kind;
}

static clt_status move(const member *m, message *waiting, clt_operation *o) {
    clt_operation *w = waiting->operation;
    char one[CLT_OPERATION_TEXT], two[CLT_OPERATION_TEXT];
    if (w->count != o->count || w->dtype != o->dtype)
        return clt_fail(CLT_E_MISMATCH, "rank %d called %s, rank %d %s", m->rank, clt_operation_text(o, one),
                        waiting->owner, clt_operation_text(w, two));
    clt_operation *from = o->kind == CLT_OP_SEND ? o : w, *to = o->kind == CLT_OP_SEND ? w : o;
    if (o->count) memcpy(to->data, from->data, o->count * clt_dtype_bytes(o->dtype));
    waiting->matched = o->finished = true;
    clt_condition_wake_all(&m->group->changed);
    return CLT_OK;
}

static clt_status match_or_wait(member *m, clt_operation *o) {
    CLT_TRY(state_of(m->group));
    message **end = &m->group->messages;
    for (; *end; end = &(*end)->next)
        if (belong_together(*end, m, o)) return move(m, *end, o);
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

static clt_status progress(void *state, double seconds) {
    member *m = state;
    group *g = m->group;
    double until = clt_seconds() + seconds;
    clt_mutex_lock(&g->mutex);
    while (!take(m, NULL) && g->ended == CLT_OK && !m->woken && clt_seconds() < until)
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
    char text[64];
    snprintf(text, sizeof text, "rank %d left", m->rank);
    clt_mutex_lock(&m->group->mutex);
    end_group(m->group, CLT_E_PEER, text);
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
    (void)state;
    return (clt_transport_counts){0};
}

static const char *algorithm(void *state, size_t bytes) {
    (void)state, (void)bytes;
    return "threads";
}

/* ---- groups ---- */

static clt_status shrink(void *state, clt_comm **survivors);

static const clt_engine engine = {
    .name = "threads", .run = run, .post = post, .is_finished = is_finished, .cancel = cancel, .progress = progress, .idle = idle, .wake = wake,
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

clt_status clt_test_group(clt_comm **comms, int n, double timeout_seconds) {
    if (n < 1 || n > MOST) return clt_fail(CLT_E_INVALID, "a group of %d threads", n);
    return new_group(comms, n, timeout_seconds > 0 ? timeout_seconds : 300, 0);
}

void clt_test_group_lose(clt_comm *comm) {
    member *m = clt_comm_engine_state(comm);
    clt_mutex_lock(&m->group->mutex);
    lose(m);
    clt_mutex_unlock(&m->group->mutex);
}

void clt_test_group_lose_after(clt_comm *comm, int collectives) {
    member *m = clt_comm_engine_state(comm);
    clt_mutex_lock(&m->group->mutex);
    m->mortal = true;
    m->life = collectives;
    clt_mutex_unlock(&m->group->mutex);
}

static bool all_survivors_there(const group *g) {
    for (int r = 0; r < g->n; r++)
        if (!g->lost[r] && !g->shrinking[r]) return false;
    return true;
}

static clt_status make_survivors(group *g) {
    clt_comm *comms[MOST];
    int n = 0;
    for (int r = 0; r < g->n; r++) n += !g->lost[r];
    CLT_TRY(new_group(comms, n, g->timeout_seconds, g->generation + 1));
    for (int r = 0, k = 0; r < g->n; r++)
        if (!g->lost[r]) g->survivors[r] = comms[k++];
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
