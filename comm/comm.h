/*
 * Inside a communicator: the queue of operations, which is the same for all (comm.c), and the engine below it
 * that carries them out: `self`, the network, or a test's.
 *
 * One thread at a time drives the engine: whoever calls an operation that is waited for at once, if nothing else is
 * going on, else the communicator's own thread. While nothing is going on, that thread calls `idle` now and then.
 */
#ifndef CLT_COMM_COMM_H
#define CLT_COMM_COMM_H

#include <stdatomic.h>

#include <cltrain/comm.h>

#include "comm/transport/transport.h"
#include "runtime/base/base.h"

/* Values travel between ranks: never renumbered. */
typedef enum clt_operation_kind {
    CLT_OP_ALL_REDUCE = 1,
    CLT_OP_REDUCE_SCATTER,
    CLT_OP_ALL_GATHER,
    CLT_OP_BROADCAST,
    CLT_OP_BARRIER,
    CLT_OP_SEND,
    CLT_OP_RECEIVE
} clt_operation_kind;

/* A checked call of an operation. */
typedef struct clt_operation {
    clt_operation_kind kind;
    clt_dtype dtype;
    clt_reduction reduction;
    int peer;             /* the root; the other end of a message; else 0 */
    uint32_t tag;         /* of a message */
    void *data;           /* not written by a send */
    size_t count;         /* elements of the whole; its bytes fit a size_t */
    const size_t *counts; /* of each rank's part, where there are parts; else NULL */
    uint64_t number;      /* of the collective, counted from 0 on every rank */

    double deadline;                /* set when its turn comes (clt_seconds) */
    const atomic_bool *interrupted; /* set from outside when it should end early */
    const char *reason;             /* why, once that is set */

    clt_transfer transfer; /* the network's, of a message */
    bool finished;         /* a test engine's */
} clt_operation;

/* "all_reduce sum of 10 f32", for errors. */
enum { CLT_OPERATION_TEXT = 128 };
const char *clt_operation_text(const clt_operation *operation, char text[CLT_OPERATION_TEXT]);

/* Of all that ranks must agree in: other calls have other numbers. size: of the group. */
uint64_t clt_operation_hash(const clt_operation *operation, int size);

/* The ranks' parts, in elements: as they were told, or as equal as can be. Returns the largest. */
size_t clt_operation_parts(const clt_operation *operation, int size, size_t *parts);

/* What carries operations out. One thread at a time calls these, but for `wake`. Any error that one of them returns ends
 * the group: the details must say enough to be read alone. */
typedef struct clt_engine {
    const char *name;
    unsigned abilities; /* of clt_comm_ability, but for shrinking, which `shrink` shows */

    /* Carries a collective out, by its deadline. Returns soon after *interrupted, with CLT_E_ABORTED. */
    clt_status (*run)(void *state, clt_operation *operation);

    /* A message from rank to rank: begins it and returns at once. Its memory stays where it is until it is finished or
     * cancelled. */
    clt_status (*post)(void *state, clt_operation *operation);
    bool (*is_finished)(void *state, const clt_operation *operation);
    void (*cancel)(void *state, clt_operation *operation);
    /* Moves what was posted: waits until something moved, `wake`, or so many seconds. */
    clt_status (*progress)(void *state, double seconds);
    /* Does what needs doing while no operation is under way, without waiting. */
    clt_status (*idle)(void *state);

    /* Ends a wait in run or progress, now or the next one. Any thread. */
    void (*wake)(void *state);
    /* The group has ended here with this error: tells the others, if they do not know. */
    void (*end)(void *state, clt_status status, const char *detail);
    /* Says good-bye and frees. */
    void (*destroy)(void *state);

    bool (*is_lost)(void *state, int rank);
    clt_transport_counts (*counts)(void *state);
    /* Of an all-reduce; static storage. Any thread. */
    const char *(*algorithm)(void *state, size_t bytes);
    /* clt_comm_shrink; NULL: not possible. */
    clt_status (*shrink)(void *state, clt_comm **survivors);
} clt_engine;

/* An engine that never gets a message, and does nothing between operations. */
clt_status clt_engine_refuse(void *state, clt_operation *operation);
bool clt_engine_is_finished(void *state, const clt_operation *operation);
void clt_engine_cancel(void *state, clt_operation *operation);
clt_status clt_engine_progress(void *state, double seconds);
clt_status clt_engine_idle(void *state);
#define CLT_ENGINE_WITHOUT_MESSAGES \
    .post = clt_engine_refuse, .is_finished = clt_engine_is_finished, .cancel = clt_engine_cancel, .progress = clt_engine_progress, .idle = clt_engine_idle

/* A part of a group: its messages are those of the whole, between other ranks and with other tags. */
typedef struct clt_comm_part {
    clt_comm *whole;
    const int *members; /* by rank of the part: the rank in the whole */
    uint32_t tag;       /* of its messages, from this on */
} clt_comm_part;

/* Tags below CLT_PART_TAGS are a group's own; of these each part has CLT_PART_TAGS_EACH, the upper half for its collectives. MPI has 31 bits of them. */
enum { CLT_PART_TAGS = 1 << 30, CLT_PART_TAGS_EACH = 1 << 22, CLT_MOST_PARTS = CLT_PART_TAGS / CLT_PART_TAGS_EACH };

typedef struct clt_comm_setup {
    const clt_engine *engine;
    void *state; /* belongs to the communicator from now on, also if opening it fails */
    const clt_comm_part *part; /* in the state; NULL: it is a whole */
    int rank, size;
    int64_t generation;
    double timeout_seconds, idle_seconds; /* 0: `idle` is never called */
} clt_comm_setup;
clt_status clt_comm_open(clt_comm **comm, const clt_comm_setup *setup);

/* A group of one (self.c). */
clt_status clt_comm_open_self(clt_comm **comm, int64_t generation);

/* Counts the groups that were split off: *number is the next one's. CLT_E_UNSUPPORTED: there were too many, or this is a part itself. */
clt_status clt_comm_count_part(clt_comm *comm, int *number);

/* For tests: what the setup gave. */
void *clt_comm_engine_state(const clt_comm *comm);

/* Queues a checked operation, or carries it out at once if that can be (work NULL); sets its number. */
clt_status clt_comm_start(clt_comm *comm, const clt_operation *operation, clt_work **work);

#endif
