/*
 * Pipelines in time: when each stage computes what, and how long a step takes, simulated, where the times of stages and links are known, or as it was.
 *
 *     clt_stage_times times[4] = {{{0.010, 0.010, 0.010}, 0.002}, …};
 *     clt_simulation result;
 *     clt_simulate_pipeline(&(clt_pipeline_options){.stages = 4, .microbatches = 16}, times, NULL, &result);
 *
 * Simulation needs no device, and may be called by any thread.
 *
 * Experimental: what is declared here may change in any release.
 */
#ifndef CLTRAIN_SIMULATE_H
#define CLTRAIN_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include <cltrain/export.h>
#include <cltrain/pipeline.h>
#include <cltrain/status.h>
#include <cltrain/train.h>

CLT_BEGIN_DECLS

typedef enum clt_turn_kind {
    CLT_TURN_FORWARD,
    CLT_TURN_BACKWARD, /* all of it, or with CLT_PIPELINE_ZB_H1 the gradients of activations */
    CLT_TURN_WEIGHTS,  /* the gradients of weights, with CLT_PIPELINE_ZB_H1 */
    CLT_TURN_KINDS
} clt_turn_kind;

/* What a rank does without a pause: a micro-batch's forward or backward through one of its chunks. */
typedef struct clt_turn {
    clt_turn_kind kind;
    int micro;             /* which micro-batch, from 0 */
    int chunk;             /* of the rank's, from 0 */
    double begin, seconds; /* when, after the step's begin, and how long, where that is simulated */
} clt_turn;

/* In seconds, of one micro-batch. */
typedef struct clt_stage_times {
    double seconds[CLT_TURN_KINDS]; /* of a turn; that of CLT_TURN_BACKWARD without the gradients of weights, which are added where they are no turn of their own */
    double send;                    /* what crosses to the next stage, and back: each way */
} clt_stage_times;

typedef struct clt_simulation {
    double seconds; /* until the last turn ends */
    double bubble;  /* of ranks times seconds, the share in which a rank waits */
    int in_flight;  /* the most micro-batches, times chunks, whose activations a rank keeps at once */
} clt_simulation;

/* How many turns each rank has in a step; 0 where the options are refused. */
CLT_API size_t clt_simulate_turns(const clt_pipeline_options *options);

/* Simulates a step. options: stages (at least 1), microbatches, schedule and chunks, with the defaults of training; split is not looked at. times: [stages * chunks], in the
 * order of the model. turns: [stages, clt_simulate_turns], of each rank in its order, or NULL. Sends take none of a rank's time. Errors: CLT_E_INVALID: an argument is
 * NULL, a number is negative, a time is negative or not finite, or the schedule has no such micro-batches or chunks; CLT_E_NO_MEMORY. */
CLT_API clt_status clt_simulate_pipeline(const clt_pipeline_options *options, const clt_stage_times *times, clt_turn *turns, clt_simulation *result);

/* From the next step on, whether each turn of this rank is timed, for which the ranks begin a step together, and the device is waited for at each turn's end. Called by
 * all ranks. CLT_E_INVALID: trainer is NULL, or not one of a
 * pipeline. */
CLT_API clt_status clt_trainer_time_turns(clt_trainer *trainer, bool timed);

/* This rank's turns in the last step, in order, if they were timed: their begin is when what they need had come. They are the trainer's, until the next
 * step. NULL, and *count 0: there are none. */
CLT_API const clt_turn *clt_trainer_turns(const clt_trainer *trainer, size_t *count);

CLT_END_DECLS

#endif
