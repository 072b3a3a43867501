/*
 * A run: trainer and loaders, the loop over steps, tests, checkpoints.
 */
#ifndef CLTRAIN_TRAIN_RUN_H
#define CLTRAIN_TRAIN_RUN_H

#include "data_spec.h"
#include "ranks.h"
#include "report.h"
#include "task.h"

#define DIVERGED "Training diverged; a smaller --lr, --clip-norm 1 or a --warmup may help"

/* Trains as the options say, which must be complete, and fills in what came of it. All arguments are
 * borrowed; `each_share` of the options and `group` change with the ranks that there are. Returns 0, EXIT_FAILED after saying why, RANKS_MEET_ANEW, or EXIT_SIGNAL + the signal that ended it early.
 */
int run_training(report *report, const options *options, const data_parts *data, const task *made,
                 clt_device *device, ranks *group);

#endif
