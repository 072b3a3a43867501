/*
 * Metrics of a test beside loss and accuracy: precision, recall, F1, AUC of classes; errors of numbers.
 */
#ifndef CLTRAIN_TRAIN_SCORES_H
#define CLTRAIN_TRAIN_SCORES_H

#include <jansson.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

/* A test with its scores. */
typedef struct scores {
    clt_evaluator *evaluator;
    float *output; /* of a batch */
    int64_t width; /* classes, or numbers a sample */
    double deviation; /* by which errors of standardized numbers are multiplied */
} scores;

/* More classes, as of a vocabulary, have none. */
enum { SCORES_MOST_CLASSES = 4096 };

/* `width` as above, of up to `batch` samples. Release with scores_end, also after an error. */
clt_status scores_begin(scores *s, bool classes, int64_t width, int64_t batch, const clt_preprocessing *preprocessing);
/* Evaluates a batch and counts it; one that is empty, too. */
clt_status scores_add(scores *s, clt_trainer *trainer, const clt_batch *batch);
/* A collective of the ranks, if there are any. */
clt_status scores_result(scores *s, clt_comm *comm, clt_evaluation *result);
void scores_end(scores *s);

/* "test_precision" ... of what there is. */
void scores_put_json(json_t *object, const char *part, const clt_evaluation *result);
/* ", F1 0.9812, AUC 0.9990" or ", R2 0.91" */
void scores_print(FILE *file, const clt_evaluation *result);

#endif
