/*
 * Progress on stderr: on a terminal a bar that is overwritten, elsewhere plain lines.
 */
#ifndef CLTRAIN_TRAIN_PROGRESS_H
#define CLTRAIN_TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "report.h"

typedef struct progress {
    bool terminal, wanted;
    int64_t first_step, total_steps; /* from where time is taken, and the end */
    int64_t epochs;                  /* of the whole run; 0 where it is counted in steps */
    double interval;                 /* seconds between looks at the metrics */
    double start, next_look, next_line;
} progress;

/* `logged`: looks are wanted for --log even where nothing is shown. */
void progress_start(progress *progress, int64_t first_step, int64_t total_steps, int64_t epochs,
                    bool logged);

/* The time left is reckoned from here: the first step, which builds kernels, is no measure, nor is an epoch with it. */
void progress_settle(progress *progress, int64_t step);

/* Is it time for a look at the metrics? Looks wait for the device: a few a second at most. */
bool progress_due(const progress *progress);

/* Shows a look and sets the time of the next; `train`: of the epoch so far. */
void progress_show(progress *progress, const report *report, const clt_metrics *train, double samples_per_second);

/* An epoch's line, which stays. */
void progress_epoch(const progress *progress, const report *report);

/* A line of --test-every; `train`: of the epoch so far. */
void progress_test(const progress *progress, const report *report, const clt_metrics *train);

/* "0:42", "3:05:10" */
void progress_time_text(double seconds, char *text, int bytes);

#endif
