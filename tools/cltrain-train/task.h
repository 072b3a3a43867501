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
    clt_onnx *onnx; /* of FILE.onnx; else NULL */
    clt_tensor *output, *loss;
    bool mixes; /* batches are those of clt_dataset_mix */
    const float *class_weights; /* [classes], of the loss; while the graph is built; NULL: all 1 */
} task;

/* What a data set has of each sample. */
typedef struct task_field {
    clt_dtype dtype;
    clt_shape sample;
} task_field;

/* Does the model want a table's label as a number? */
bool task_wants_regression(const options *options);

/* Builds the graph for the batch of `options`, which must be complete. Returns 0; EXIT_USAGE after
 * saying what the model expects if the data does not suit it; EXIT_FAILED. */
int task_build(task *made, const options *options, const data_parts *data);
void task_free(task *made);

/* Adds the model, "mlp:128", and its loss to the empty graph of `made`: for batches of x with the truth y, which is one of so many
 * classes, or, with classes 0, numbers. What does not fit sticks in the graph; of FILE.onnx it is told, and an exit code returned. */
int task_add_model(task *made, const char *model, int64_t batch, const task_field *x, const task_field *y, int64_t classes);

bool task_same_shape(clt_shape a, clt_shape b);
/* "[3, 32, 32]" */
void task_shape_text(clt_shape shape, char *text, size_t bytes);

/* What a sample was understood to be: "4 features, 3 classes". */
void task_describe(const data_parts *data, char *text, size_t bytes);

#endif
