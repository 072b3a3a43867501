/*
 * The graph for a model and a data set: classification where the truth is a label, else regression.
 */
#ifndef CLTRAIN_TRAIN_TASK_H
#define CLTRAIN_TRAIN_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/cltrain.h>

#include "data_spec.h"
#include "options.h"

typedef struct task {
    bool classification;
    clt_graph *graph;
    clt_tensor *output, *loss;
} task;

/* Does the model want a table's label as a number? */
bool task_wants_regression(const options *options);

/* Builds the graph for the batch of `options`, which must be complete. Returns 0; EXIT_USAGE after
 * saying what the model expects if the data does not suit it; EXIT_FAILED. */
int task_build(task *made, const options *options, const data_parts *data);
void task_free(task *made);

/* What a sample was understood to be: "4 features, 3 classes". */
void task_describe(const data_parts *data, char *text, size_t bytes);

#endif
