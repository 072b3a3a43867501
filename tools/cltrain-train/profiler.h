/*
 * --profile: some steps of the run, timed launch by launch.
 */
#ifndef CLTRAIN_TRAIN_PROFILER_H
#define CLTRAIN_TRAIN_PROFILER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

/* The steps that are profiled: up to so many after a run's first, which compiles, and of one epoch. */
#define PROFILER_STEPS 32

typedef struct profiler {
    bool wanted;
    bool done;
    clt_profile *profile; /* NULL: nothing was profiled */
    int64_t steps;
} profiler;

/* Around each step but the first; and when the steps are over. They do nothing where no profile is
 * wanted. Return 0 or EXIT_FAILED. */
int profiler_before_step(profiler *p, clt_device *device);
int profiler_after_step(profiler *p);
int profiler_stop(profiler *p);

/* Prints the table and writes the trace. Returns 0 or EXIT_FAILED. */
int profiler_report(const profiler *p, const char *trace, FILE *file);
void profiler_free(profiler *p);

#endif
