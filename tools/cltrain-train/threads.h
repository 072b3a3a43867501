/*
 * --devices: ranks that are threads of this process, each with a device of its own.
 */
#ifndef CLTRAIN_TRAIN_THREADS_H
#define CLTRAIN_TRAIN_THREADS_H

#include "ranks.h"

/* What a rank does with its own options and the data, which all share. Returns an exit code. */
typedef int rank_training(const options *given, const data_parts *data, ranks *group, clt_device *device);

/* Runs `train` on a thread for each device of given->devices, with its own copy of the options. No device may be there twice: drivers, of which
 * PoCL 3.1 is one, do not stand that. Returns the exit code of the first rank that did not end
 * well, or EXIT_USAGE after saying why there are no such ranks. */
int train_on_threads(const options *given, const data_parts *data, rank_training *train);

#endif
