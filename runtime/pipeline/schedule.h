/*
 * Schedules of pipelines: in which order each stage computes the parts of a step's micro-batches, as data.
 *
 * A model is cut into stages, one a rank, and a batch into micro-batches. A turn is one micro-batch's forward or backward on one chunk of the model; where
 * backward is in two parts, gradients of activations, which the stage before waits for, are a turn, and those of weights another. With several chunks a
 * rank, rank r has the parts r, r + ranks, r + 2 ranks ... of the model.
 */
#ifndef CLT_PIPELINE_SCHEDULE_H
#define CLT_PIPELINE_SCHEDULE_H

#include <cltrain/experimental/simulate.h>

#include "runtime/base/base.h"

enum { CLT_PIPELINE_KINDS = CLT_PIPELINE_INTERLEAVED + 1 };

typedef struct clt_pipeline {
    clt_pipeline_schedule kind;
    int ranks, micros;
    int chunks; /* of each rank: 1 but with CLT_PIPELINE_INTERLEAVED and CLT_PIPELINE_GPIPE */
} clt_pipeline;

/* With the defaults filled in. */
clt_pipeline clt_pipeline_of(const clt_pipeline_options *options);

/* CLT_E_INVALID: a number is below 1; chunks are more than 1 in a schedule that knows one; or the micro-batches of an interleaved one are no multiple of the
 * ranks. */
clt_status clt_pipeline_check(const clt_pipeline *pipeline);

/* How many turns each rank has, and those of one, in order. */
size_t clt_pipeline_length(const clt_pipeline *pipeline);
void clt_pipeline_turns(const clt_pipeline *pipeline, int rank, clt_turn *turns);

/* ---- simulate.c ---- */

/* clt_simulate_pipeline of what is resolved. CLT_E_STATE: the schedule waits for itself. */
clt_status clt_pipeline_simulate(const clt_pipeline *pipeline, const clt_stage_times *times, clt_turn *turns, clt_simulation *result);

#endif
