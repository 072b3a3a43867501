/*
 * Metrics of a test beside loss and accuracy: precision, recall, F1, AUC of classes; errors of numbers.
 */
#ifndef CLTRAIN_TRAIN_SCORES_H
#define CLTRAIN_TRAIN_SCORES_H

#include <jansson.h>
#include <stdio.h>

#include <cltrain/cltrain.h>

/* More classes, as of a vocabulary, have none. */
enum { SCORES_MOST_CLASSES = 4096, SCORES_MOST_CONFUSED = 100, SCORES_WORST = 10, SCORES_KEY = 64 };

/* A sample that the model is most wrong about. */
typedef struct worst_sample {
    int64_t index; /* in what is tested; in a report, in the data that this was split from */
    int64_t line;  /* of a table, from 1, in a report; 0: there is none */
    const char *name; /* in a report; NULL: it has none */
    double loss, truth, predicted; /* classes, or a number each */
} worst_sample;

/* A test with its scores. */
typedef struct scores {
    clt_evaluator *evaluator;
    float *output; /* of a batch */
    int64_t width; /* classes, or numbers a sample */
    double mean, deviation; /* of numbers that were standardized */
    worst_sample worst[SCORES_WORST]; /* by falling losses, of equal ones by rising indices */
    int n_worst;
} scores;

/* The place of the largest of so many, the first of equals. */
int64_t scores_best(const float *logits, int64_t width);
/* The sum of exp(logit - largest). */
double scores_sum(const float *logits, int64_t width, int64_t best);

/* `width` as above, of up to `batch` samples. Release with scores_end, also after an error. */
clt_status scores_begin(scores *s, bool classes, int64_t width, int64_t batch, const clt_preprocessing *preprocessing);
/* Evaluates a batch of a loader, and counts it; one that is empty, too. */
clt_status scores_add(scores *s, clt_trainer *trainer, const clt_batch *batch);
/* A collective of the ranks, if there are any. */
clt_status scores_result(scores *s, clt_comm *comm, clt_evaluation *result);
/* Keeps the sample if it is one of the worst. */
void scores_keep_worst(scores *s, worst_sample sample);
/* The confusion matrix, to be freed; NULL: numbers, or more classes than SCORES_MOST_CONFUSED. */
int64_t *scores_confusion(const scores *s, bool classes);
void scores_end(scores *s);

/* What --monitor may name. */
extern const char *const scores_monitored[];
enum { MONITOR_LOSS };
/* Whether the last test alone, without scores, tells it. */
bool scores_monitor_is_counted(int monitor);
/* Its value; `sign`: 1 where lower is better, -1 where higher is. NaN: there is none. */
double scores_monitor(int monitor, const clt_metrics *test, const clt_evaluation *scores, int *sign);

/* "test_loss", "best_f1" */
const char *scores_key(char key[SCORES_KEY], const char *part, const char *name);
/* "test_precision" ... of what there is. */
void scores_put_json(json_t *object, const char *part, const clt_evaluation *result);
/* "test_confusion": rows are what samples are, columns what they were taken for; and "classes": their names, if they have any. NULL: nothing. */
void scores_put_confusion(json_t *object, const int64_t *confusion, int classes, const clt_preprocessing *preprocessing);
/* ", F1 0.9812, AUC 0.9990" or ", R2 0.91" */
void scores_print(FILE *file, const clt_evaluation *result);

#endif
