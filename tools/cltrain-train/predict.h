/*
 * --predict and --test: a trained model on other data, by what its file tells of its use.
 */
#ifndef CLTRAIN_TRAIN_PREDICT_H
#define CLTRAIN_TRAIN_PREDICT_H

#include "options.h"

/* Returns 0, or an exit code after saying what went wrong. */
int predict_run(const options *given);

#endif
