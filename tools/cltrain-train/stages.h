/*
 * Devices of a pipeline's stages.
 */
#ifndef CLTRAIN_TRAIN_STAGES_H
#define CLTRAIN_TRAIN_STAGES_H

#include <stdio.h>

#include <cltrain/cltrain.h>

#include "ranks.h"

/* What the devices of all ranks can do, measured or as it is known, if they are not all alike; *peaks is to be freed, and NULL where they are, or where one
 * cannot be measured, which is told. Called by all ranks. */
clt_status stages_measure(const ranks *group, clt_device *device, clt_peaks **peaks);

/* A step, turn by turn. */
typedef struct stage_times {
    clt_pipeline_options options;
    clt_turn *turns; /* [stages, n]; NULL: none was timed */
    size_t n;
} stage_times;

/* The last step's turns of all ranks, where they were timed. Called by all ranks. */
clt_status stages_gather(const ranks *group, const clt_trainer *trainer, const clt_pipeline_options *pipeline, stage_times *times);

/* Prints how long each stage's turns take, how long the stages wait, and how long they would, by these times; and writes the turns as a Chrome trace. Returns 0 or
 * EXIT_FAILED. */
int stages_report(const stage_times *times, const char *trace, FILE *file);

#endif
