/*
 * --summary: the layers of a model, and the memory that a step takes.
 */
#ifndef CLTRAIN_TRAIN_SUMMARY_H
#define CLTRAIN_TRAIN_SUMMARY_H

#include <cltrain/cltrain.h>

#include "options.h"
#include "task.h"

/* A table, or a JSON object on stdout or in a file, of the step that `training` describes. Returns 0, or EXIT_FAILED after saying why not. */
int summary_print(const options *given, const task *made, clt_device *device, const clt_train_options *training);

#endif
