/*
 * Schedules of pipelines: in which order each stage computes the parts of a step's micro-batches, as data.
 *
 * A model is cut into stages, one a rank, and a batch into micro-batches. A turn is one micro-batch's forward or backward on one chunk of the model; where
 * backward is in two parts, gradients of activations, which the stage before waits for, are a turn, and those of weights another. With several chunks a
 * rank, rank r has the parts r, r + ranks, r + 2 ranks ... of the model.
 */
#ifndef CLT_PIPELINE_SCHEDULE_H
#define CLT_PIPELINE_SCHEDULE_H

#include <cltrain/pipeline.h>

#include "runtime/base/base.h"

enum { CLT_PIPELINE_KINDS = CLT_PIPELINE_INTERLEAVED + 1 };

/* "1f1b", "gpipe", "zb-h1", "interleaved". */
extern const char *const clt_pipeline_names[CLT_PIPELINE_KINDS];

typedef enum clt_turn_kind {
    CLT_TURN_FORWARD,
    CLT_TURN_BACKWARD, /* all of it, or with CLT_PIPELINE_ZB_H1 the gradients of activations */
    CLT_TURN_WEIGHTS,  /* the gradients of weights, with CLT_PIPELINE_ZB_H1 */
    CLT_TURN_KINDS
} clt_turn_kind;

typedef struct clt_turn {
    clt_turn_kind kind;
    int micro; /* which micro-batch, from 0 */
    int chunk; /* of the rank's, from 0 */
} clt_turn;

typedef struct clt_pipeline {
    int kind; /* of clt_pipeline_schedule */
    int ranks, micros;
    int chunks; /* of each rank: 1 but with CLT_PIPELINE_INTERLEAVED and CLT_PIPELINE_GPIPE */
} clt_pipeline;

/* CLT_E_INVALID: a number is below 1; chunks are more than 1 in a schedule that knows one; or the micro-batches of an interleaved one are no multiple of the
 * ranks. */
clt_status clt_pipeline_check(const clt_pipeline *pipeline);

/* How many turns each rank has, and those of one, in order. */
size_t clt_pipeline_length(const clt_pipeline *pipeline);
void clt_pipeline_turns(const clt_pipeline *pipeline, int rank, clt_turn *turns);

/* ---- simulate.c: when each turn is, where times are known ---- */

typedef struct clt_stage_times {
    double seconds[CLT_TURN_KINDS]; /* of a turn; of CLT_TURN_BACKWARD without the gradients of weights, which are added where they are no turn of their own */
    double send;                    /* what crosses to the next stage, and back: each way */
} clt_stage_times;

typedef struct clt_simulation {
    double seconds; /* until the last turn ends */
    double bubble;  /* of ranks times seconds, the share in which a rank waits */
    int in_flight;  /* the most micro-batches, times chunks, whose activations a rank keeps at once */
} clt_simulation;

/* The times are by part of the model, ranks times chunks of them. `starts` (of rank r, turn i: starts[r * length + i]) may be NULL. Sends take none of the rank's time.
 * CLT_E_STATE: the schedule waits for itself. */
clt_status clt_pipeline_simulate(const clt_pipeline *pipeline, const clt_stage_times *times, double *starts, clt_simulation *result);

#endif
