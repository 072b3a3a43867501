/* What all communicators share: the queue, the thread, waiting, the end of a group. */
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/thread.h"

struct clt_work {
    clt_operation operation;
    clt_comm *comm;
    clt_status status;
    bool done;
    clt_work *next;
    size_t counts[];
};

typedef struct work_list {
    clt_work *first, **end;
} work_list;

/* Everything below `mutex` is guarded by it, but the engine, which belongs to who set `driving`. */
struct clt_comm {
    const clt_engine *engine;
    void *state;
    int rank, size;
    int64_t generation;
    double timeout_seconds, idle_seconds;
    const clt_comm_part *part; /* NULL: it is a whole */
    int parts; /* that were split off */
    atomic_bool interrupted; /* an operation under way is to end */

    clt_mutex mutex;
    clt_condition changed; /* anything that somebody waits for */
    work_list queue, posted; /* not begun; messages that are under way */
    bool driving, idling;  /* somebody is in the engine; and will be out of it at once */
    bool threaded, closing, told;
    clt_thread thread;
    int awaiting_turn; /* threads that wait for `driving` to end */
    int references;    /* the user's, and one for each work */
    uint64_t collectives;
    double driven; /* when the engine was left last */

    clt_status ended; /* what ended the group; never changes again */
    char detail[1024];
    clt_comm_stats stats;
    bool lost[]; /* as of when the engine was left last */
};

int clt_comm_rank(const clt_comm *comm) {
    return comm ? comm->rank : 0;
}

int clt_comm_size(const clt_comm *comm) {
    return comm ? comm->size : 1;
}

int64_t clt_comm_generation(const clt_comm *comm) {
    return comm ? comm->generation : 0;
}

const char *clt_comm_engine(const clt_comm *comm) {
    return comm ? comm->engine->name : "self";
}

unsigned clt_comm_abilities(const clt_comm *comm) {
    if (comm && comm->part) return clt_comm_abilities(comm->part->whole) & ~(unsigned)CLT_CAN_SHRINK;
    return comm ? comm->engine->abilities | (comm->engine->shrink ? CLT_CAN_SHRINK : 0) : 0;
}

void *clt_comm_engine_state(const clt_comm *comm) {
    return comm->state;
}

/* ---- lists ---- */

static void append(work_list *list, clt_work *work) {
    if (!list->first) list->end = &list->first;
    work->next = NULL;
    *list->end = work;
    list->end = &work->next;
}

static clt_work *take_first(work_list *list) {
    clt_work *work = list->first;
    list->first = work->next;
    return work;
}

static bool is_message(const clt_operation *o) {
    return o->kind == CLT_OP_SEND || o->kind == CLT_OP_RECEIVE;
}

/* ---- the end of a group ---- */

static void note_end(clt_comm *comm, clt_status status, const char *detail) {
    if (comm->ended != CLT_OK) return;
    comm->ended = status;
    snprintf(comm->detail, sizeof comm->detail, "%s", detail);
    atomic_store(&comm->interrupted, true);
}

static clt_status ended(const clt_comm *comm) {
    return comm->ended == CLT_OK ? CLT_OK : clt_fail_again(comm->ended, comm->detail);
}

/* ---- driving: called, and left, with the mutex held ---- */

static void enter(clt_comm *comm) {
    comm->driving = true;
    clt_mutex_unlock(&comm->mutex);
}

/* Also learns what others may want to know of the engine. */
static void leave(clt_comm *comm) {
    clt_transport_counts counts = comm->engine->counts(comm->state);
    clt_mutex_lock(&comm->mutex);
    comm->stats.bytes_sent = counts.bytes_sent;
    comm->stats.bytes_received = counts.bytes_received;
    for (int r = 0; r < comm->size && comm->ended != CLT_OK; r++)
        comm->lost[r] = comm->engine->is_lost(comm->state, r);
    comm->driven = clt_seconds();
    comm->driving = false;
    if (comm->awaiting_turn) clt_condition_wake_all(&comm->changed);
}

/* The turn may be another's by then. */
static void await_turn(clt_comm *comm) {
    comm->awaiting_turn++;
    clt_condition_wait(&comm->changed, &comm->mutex);
    comm->awaiting_turn--;
}

static void finish(clt_work *work, clt_status status) {
    work->status = status;
    work->done = true;
}

static void finish_all(work_list *list, clt_status status) {
    while (list->first) finish(take_first(list), status);
}

/* After the end: tells the others, and ends what was started. */
static void settle(clt_comm *comm) {
    bool tell = !comm->told;
    comm->told = true;
    enter(comm);
    if (tell) comm->engine->end(comm->state, comm->ended, comm->detail);
    for (clt_work *work = comm->posted.first; work; work = work->next)
        comm->engine->cancel(comm->state, &work->operation);
    leave(comm);
    finish_all(&comm->posted, comm->ended);
    finish_all(&comm->queue, comm->ended);
    clt_condition_wake_all(&comm->changed);
}

static clt_status carry_out(clt_comm *comm, clt_operation *o) {
    enter(comm);
    double begun = clt_seconds();
    o->deadline = begun + comm->timeout_seconds;
    clt_status status = comm->engine->run(comm->state, o);
    double seconds = clt_seconds() - begun;
    leave(comm);
    comm->stats.busy_seconds += seconds;
    comm->stats.operations++;
    if (status >= 0) return CLT_OK;
    note_end(comm, status, clt_error_detail());
    settle(comm);
    return ended(comm);
}

/* ---- messages ---- */

static void post(clt_comm *comm, clt_work *work) {
    enter(comm);
    work->operation.deadline = clt_seconds() + comm->timeout_seconds;
    clt_status status = comm->engine->post(comm->state, &work->operation);
    leave(comm);
    append(&comm->posted, work);
    if (status < 0) note_end(comm, status, clt_error_detail());
}

/* Some may be finished by collectives in between. */
static bool collect_finished(clt_comm *comm) {
    bool any = false;
    work_list all = comm->posted;
    comm->posted.first = NULL;
    while (all.first) {
        clt_work *work = take_first(&all);
        if (!comm->engine->is_finished(comm->state, &work->operation)) {
            append(&comm->posted, work);
            continue;
        }
        finish(work, CLT_OK);
        comm->stats.operations++;
        any = true;
    }
    return any;
}

static void note_late(clt_comm *comm, const clt_operation *o) {
    char text[CLT_OPERATION_TEXT], detail[CLT_OPERATION_TEXT + 64];
    snprintf(detail, sizeof detail, "%s: not done within %g s", clt_operation_text(o, text), comm->timeout_seconds);
    note_end(comm, CLT_E_TIMEOUT, detail);
}

static void progress_messages(clt_comm *comm) {
    double begun = clt_seconds(), wait = 1;
    if (collect_finished(comm)) return;
    for (const clt_work *work = comm->posted.first; work; work = work->next) {
        wait = CLT_MIN(wait, work->operation.deadline - begun);
        if (work->operation.deadline > begun) continue;
        note_late(comm, &work->operation);
        return;
    }
    enter(comm);
    clt_status status = comm->engine->progress(comm->state, wait);
    leave(comm);
    comm->stats.busy_seconds += clt_seconds() - begun;
    collect_finished(comm);
    if (status < 0) note_end(comm, status, clt_error_detail());
}

/* ---- the communicator's thread ---- */

static void idle(clt_comm *comm) {
    comm->idling = true;
    enter(comm);
    clt_status status = comm->engine->idle(comm->state);
    leave(comm);
    comm->idling = false;
    if (status < 0) note_end(comm, status, clt_error_detail());
}

static void wait_for_change(clt_comm *comm) {
    if (comm->idle_seconds <= 0) clt_condition_wait(&comm->changed, &comm->mutex);
    else clt_condition_wait_until(&comm->changed, &comm->mutex, comm->driven + comm->idle_seconds);
}

static bool idle_is_due(const clt_comm *comm) {
    return comm->idle_seconds > 0 && clt_seconds() >= comm->driven + comm->idle_seconds;
}

static void do_next(clt_comm *comm) {
    bool unsettled = !comm->told || comm->queue.first || comm->posted.first;
    if (comm->ended != CLT_OK && unsettled) {
        settle(comm);
    } else if (comm->queue.first) {
        clt_work *work = take_first(&comm->queue);
        if (is_message(&work->operation)) post(comm, work);
        else finish(work, carry_out(comm, &work->operation));
        clt_condition_wake_all(&comm->changed);
    } else if (comm->posted.first) {
        progress_messages(comm);
        clt_condition_wake_all(&comm->changed);
    } else if (idle_is_due(comm)) {
        idle(comm);
    } else {
        wait_for_change(comm);
    }
}

static void *thread_main(void *argument) {
    clt_comm *comm = argument;
    clt_mutex_lock(&comm->mutex);
    while (!comm->closing)
        if (comm->driving) await_turn(comm);
        else do_next(comm);
    clt_mutex_unlock(&comm->mutex);
    return NULL;
}

static clt_status start_thread(clt_comm *comm) {
    if (comm->threaded) return CLT_OK;
    CLT_TRY(clt_thread_start(&comm->thread, thread_main, comm));
    comm->threaded = true;
    return CLT_OK;
}

/* ---- starting and waiting ---- */

static clt_work *new_work(clt_comm *comm, const clt_operation *o) {
    size_t n = o->counts ? (size_t)comm->size : 0;
    clt_work *work = clt_calloc(1, sizeof *work + n * sizeof *work->counts);
    if (!work) return NULL;
    work->operation = *o;
    work->comm = comm;
    if (n) {
        memcpy(work->counts, o->counts, n * sizeof *work->counts);
        work->operation.counts = work->counts;
    }
    return work;
}

static clt_status enqueue(clt_comm *comm, const clt_operation *o, clt_work **work) {
    CLT_TRY(start_thread(comm));
    *work = new_work(comm, o);
    if (!*work) return clt_fail_memory(sizeof **work);
    comm->references++;
    append(&comm->queue, *work);
    clt_condition_wake_all(&comm->changed);
    /* Its thread may be waiting for what was posted. */
    if (comm->driving && comm->posted.first) comm->engine->wake(comm->state);
    return CLT_OK;
}

static clt_status start(clt_comm *comm, clt_operation *o, clt_work **work, bool wait) {
    while (comm->idling) await_turn(comm);
    if (comm->ended != CLT_OK) return ended(comm);
    o->interrupted = &comm->interrupted;
    o->reason = comm->detail;
    if (!is_message(o)) o->number = comm->collectives++;
    bool at_once = wait && !is_message(o) && !comm->driving && !comm->queue.first && !comm->posted.first;
    if (at_once) return carry_out(comm, o);
    clt_status status = enqueue(comm, o, work);
    if (status == CLT_OK) return CLT_OK;
    /* The others will wait for what cannot be started here. */
    note_end(comm, status, clt_error_detail());
    if (!comm->driving) settle(comm);
    return ended(comm);
}

/* The same message as one of the whole. */
static clt_status start_in_whole(const clt_comm *comm, clt_operation o, clt_work **work) {
    const clt_comm_part *part = comm->part;
    if (o.tag >= CLT_PART_TAGS_EACH / 2) return clt_fail(CLT_E_INVALID, "tag %u in a part of a group: expected less than %d", (unsigned)o.tag, CLT_PART_TAGS_EACH / 2);
    o.peer = part->members[o.peer];
    o.tag += part->tag;
    return clt_comm_start(part->whole, &o, work);
}

clt_status clt_comm_start(clt_comm *comm, const clt_operation *operation, clt_work **work) {
    clt_operation o = *operation;
    clt_work *started = NULL;
    if (comm->part && is_message(&o)) return start_in_whole(comm, o, work);
    clt_mutex_lock(&comm->mutex);
    clt_status status = start(comm, &o, &started, !work);
    clt_mutex_unlock(&comm->mutex);
    if (work) *work = started;
    else if (started) return clt_work_wait(started);
    return status;
}

/* With the mutex held, which is gone afterwards. */
static void release(clt_comm *comm) {
    bool last = --comm->references == 0;
    clt_mutex_unlock(&comm->mutex);
    if (!last) return;
    clt_condition_destroy(&comm->changed);
    clt_mutex_destroy(&comm->mutex);
    clt_free(comm);
}

clt_status clt_work_wait(clt_work *work) {
    if (!work) return clt_fail(CLT_E_INVALID, "clt_work_wait: work is NULL");
    clt_comm *comm = work->comm;
    clt_mutex_lock(&comm->mutex);
    while (!work->done) clt_condition_wait(&comm->changed, &comm->mutex);
    clt_status status = work->status;
    if (status < 0) clt_fail_again(status, comm->detail);
    release(comm);
    clt_free(work);
    return status;
}

bool clt_work_done(const clt_work *work) {
    if (!work) return true;
    clt_mutex_lock(&work->comm->mutex);
    bool done = work->done;
    clt_mutex_unlock(&work->comm->mutex);
    return done;
}

/* ---- creation and end ---- */

static clt_status fill_in(clt_comm *comm, const clt_comm_setup *setup) {
    comm->engine = setup->engine;
    comm->state = setup->state;
    comm->part = setup->part;
    comm->rank = setup->rank;
    comm->size = setup->size;
    comm->generation = setup->generation;
    comm->timeout_seconds = setup->timeout_seconds;
    comm->idle_seconds = setup->idle_seconds;
    comm->references = 1;
    comm->driven = clt_seconds();
    CLT_TRY(clt_mutex_init(&comm->mutex));
    clt_status status = clt_condition_init(&comm->changed);
    if (status < 0) clt_mutex_destroy(&comm->mutex);
    return status;
}

clt_status clt_comm_open(clt_comm **comm, const clt_comm_setup *setup) {
    *comm = NULL;
    clt_comm *c = clt_calloc(1, sizeof *c + (size_t)setup->size * sizeof *c->lost);
    clt_status status = c ? fill_in(c, setup) : clt_fail_memory(sizeof *c);
    if (status < 0) {
        setup->engine->destroy(setup->state);
        clt_free(c);
        return status;
    }
    clt_mutex_lock(&c->mutex);
    if (c->idle_seconds > 0) status = start_thread(c);
    clt_mutex_unlock(&c->mutex);
    if (status < 0) clt_comm_destroy(c);
    else *comm = c;
    return status;
}

void clt_comm_destroy(clt_comm *comm) {
    if (!comm) return;
    clt_mutex_lock(&comm->mutex);
    if (comm->ended == CLT_OK) {
        note_end(comm, CLT_E_ABORTED, "the communicator was destroyed");
        comm->told = true; /* a good-bye is no failure */
    }
    comm->closing = true;
    comm->engine->wake(comm->state);
    clt_condition_wake_all(&comm->changed);
    bool threaded = comm->threaded;
    clt_mutex_unlock(&comm->mutex);
    if (threaded) clt_thread_join(comm->thread);
    clt_mutex_lock(&comm->mutex);
    while (comm->driving) await_turn(comm);
    settle(comm);
    comm->engine->destroy(comm->state);
    release(comm);
}

static void end_here(clt_comm *comm, clt_status status, const char *reason) {
    clt_mutex_lock(&comm->mutex);
    note_end(comm, status, reason);
    if (comm->driving) comm->engine->wake(comm->state);
    else if (!comm->told) settle(comm);
    clt_condition_wake_all(&comm->changed);
    clt_mutex_unlock(&comm->mutex);
}

void clt_comm_abort(clt_comm *comm, const char *reason) {
    if (comm) end_here(comm, CLT_E_ABORTED, reason && *reason ? reason : "aborted");
}

void clt_comm_fail(clt_comm *comm, clt_status status, const char *reason) {
    clt_status why = status < 0 ? status : CLT_E_STATE;
    if (comm) end_here(comm, why, reason && *reason ? reason : clt_status_name(why));
}

clt_status clt_comm_shrink(clt_comm *comm, clt_comm **survivors) {
    if (survivors) *survivors = NULL;
    if (!comm || !survivors) return clt_fail(CLT_E_INVALID, "clt_comm_shrink: comm or survivors is NULL");
    if (!comm->engine->shrink && comm->size == 1) return clt_fail(CLT_E_INVALID, "clt_comm_shrink: a group of one has no survivors");
    if (!comm->engine->shrink) return clt_fail(CLT_E_UNSUPPORTED, "clt_comm_shrink: engine %s cannot go on without a rank that is lost", comm->engine->name);
    clt_mutex_lock(&comm->mutex);
    note_end(comm, CLT_E_ABORTED, "the group was shrunk");
    if (comm->driving) comm->engine->wake(comm->state);
    while (comm->driving) await_turn(comm);
    comm->told = true; /* the others call this too */
    settle(comm);
    enter(comm);
    clt_status status = comm->engine->shrink(comm->state, survivors);
    leave(comm);
    clt_mutex_unlock(&comm->mutex);
    return status;
}

/* ---- questions ---- */

clt_status clt_comm_state(const clt_comm *comm) {
    if (!comm) return clt_fail(CLT_E_INVALID, "clt_comm_state: comm is NULL");
    clt_comm *c = (clt_comm *)comm; /* for its mutex */
    clt_mutex_lock(&c->mutex);
    clt_status status = ended(c);
    clt_mutex_unlock(&c->mutex);
    return status == CLT_OK && comm->part ? clt_comm_state(comm->part->whole) : status;
}

clt_status clt_comm_count_part(clt_comm *comm, int *number) {
    if (comm->part) return clt_fail(CLT_E_UNSUPPORTED, "clt_comm_split: this group was split off itself; split the whole");
    clt_mutex_lock(&comm->mutex);
    *number = comm->parts < CLT_MOST_PARTS ? comm->parts++ : CLT_MOST_PARTS;
    clt_mutex_unlock(&comm->mutex);
    return *number < CLT_MOST_PARTS ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "clt_comm_split: a group can be split %d times", CLT_MOST_PARTS);
}

bool clt_comm_is_lost(const clt_comm *comm, int rank) {
    if (!comm || rank < 0 || rank >= comm->size) return false;
    clt_comm *c = (clt_comm *)comm;
    clt_mutex_lock(&c->mutex);
    bool lost = c->lost[rank];
    clt_mutex_unlock(&c->mutex);
    return lost;
}

clt_comm_stats clt_comm_get_stats(const clt_comm *comm) {
    clt_comm *c = (clt_comm *)comm;
    if (!c) return (clt_comm_stats){0};
    clt_mutex_lock(&c->mutex);
    clt_comm_stats stats = c->stats;
    clt_mutex_unlock(&c->mutex);
    return stats;
}

const char *clt_comm_algorithm(const clt_comm *comm, size_t bytes) {
    return comm ? comm->engine->algorithm(comm->state, bytes) : "none";
}
