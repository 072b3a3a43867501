/*
 * Whether the ranks of a job train the same: each reads a command line and data of its own.
 */
#ifndef CLTRAIN_TRAIN_AGREEMENT_H
#define CLTRAIN_TRAIN_AGREEMENT_H

#include "data_spec.h"
#include "options.h"
#include "ranks.h"

/* Before anything depends on them: all have the same data and --shares, and options->each_batch becomes every rank's own --batch.
 * Returns 0; EXIT_USAGE after saying what two ranks differ in; RANKS_MEET_ANEW; EXIT_FAILED after saying why. */
int agreement_begin(options *options, const data_parts *data, ranks *group);

/* All options that must be the same are. They must be complete. CLT_E_MISMATCH was said already. */
clt_status agreement_check(const options *options, const ranks *group);

#endif
