/*
 * Where a model is cut into the stages of a pipeline.
 */
#ifndef CLT_PIPELINE_SPLIT_H
#define CLT_PIPELINE_SPLIT_H

#include "runtime/base/base.h"

/* A model as a row of pieces, of which each stage gets some that follow one another. Arrays of stages and pieces have those of a stage side by side. */
typedef struct clt_pipeline_split {
    int pieces, stages;
    const double *seconds;       /* [stages, pieces]: of a piece on the device of a stage, for a micro-batch, forward and backward */
    const double *send;          /* [pieces + 1]: of what crosses in front of a piece, there and back */
    const uint64_t *kept;        /* [pieces]: bytes of weights, their gradients and the optimizer's state; NULL: memory is no matter */
    const uint64_t *activations; /* [pieces]: bytes that forward keeps for backward, of a micro-batch */
    const int *in_flight;        /* [stages]: micro-batches of which a stage keeps them at once */
    const uint64_t *limits;      /* [stages]: bytes of each stage's device */
} clt_pipeline_split;

/* The cuts: stage s has the pieces from cuts[s] to before cuts[s + 1] (stages + 1 of them). Each stage has a piece at least. Of all that fit into memory, one whose slowest stage,
 * with what it sends and receives, takes the least time; and of those, one that sends least in all. *slowest: that stage's seconds. By dynamic programming: stages times
 * pieces squared. CLT_E_INVALID: there are fewer pieces than stages; CLT_E_DEVICE_MEMORY: nothing fits. */
clt_status clt_pipeline_find_split(const clt_pipeline_split *split, int *cuts, double *slowest);

#endif
