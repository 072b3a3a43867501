/*
 * A whole training as its options say: ranks and data come together, a model is made and trained, what came of it is printed.
 */
#ifndef CLTRAIN_TRAIN_JOB_H
#define CLTRAIN_TRAIN_JOB_H

#include "options.h"

/* Returns 0, EXIT_FAILED or EXIT_USAGE after saying why, or EXIT_SIGNAL + the signal that ended it early. */
int job_run(const options *given);

#endif
