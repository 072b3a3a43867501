/*
 * --config FILE: options as a JSON object, by their long names; or the log of a run, which has them.
 */
#ifndef CLTRAIN_TRAIN_CONFIG_H
#define CLTRAIN_TRAIN_CONFIG_H

#include <jansson.h>

#include "options.h"

/* What is given, as such a file; the reference is the caller's. */
json_t *config_write(const options *given);

/* Reads the file that --config names among the arguments, if any, into `into`: what the command line has besides goes over it. The texts live as long as the
 * program. Returns 0, or EXIT_USAGE after saying what is wrong. */
int config_read(options *into, int argc, char **argv);

#endif
