/*
 * Metrics of what a model predicts, beside the loss and the accuracy that a trainer counts (clt_metrics): counted on the host, batch by
 * batch, and the same with any number of ranks. Definitions are those of scikit-learn.
 */
#ifndef CLTRAIN_METRICS_H
#define CLTRAIN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include <cltrain/comm.h>
#include <cltrain/export.h>
#include <cltrain/status.h>

CLT_BEGIN_DECLS

typedef struct clt_evaluator_options {
    int classes;     /* of a classifier, 2 at least; 0: the model predicts numbers */
    int64_t outputs; /* numbers a sample, where there are no classes; default 1 */
    bool logits;     /* what the model predicts are logits, of which the softmax is taken in f64; default: probabilities */
    int64_t most_scores; /* that are kept, of all samples and classes: with more, AUC and average precision are computed of 8192 bins for each class, which are
                            narrow near 0 and near 1; default 2^24, 64 MiB; negative: bins from the first sample on */
} clt_evaluator_options;

/* Means over classes are macro averages, over those classes that are there in the truth or in the predictions; 0 stands for 0/0. The weighted ones weigh
 * each by its samples. Micro averages of single labels are the accuracy. NaN where there is nothing to tell. */
typedef struct clt_evaluation {
    int64_t samples; /* with a label that is a class */
    double accuracy;
    double top5;     /* fraction of samples whose class is among the five with the highest scores; NaN for fewer than 6 classes */
    double precision, recall, f1;
    double precision_weighted, recall_weighted, f1_weighted;
    double auc;               /* area under the ROC curve: of class 1 where there are two, else the mean of each class against the rest */
    double average_precision; /* in the same way */
    double calibration_error; /* expected, over 15 bins of the largest probability; Guo et al. 2017 */
    double mae, mse;          /* of numbers: means over samples and outputs */
    double r2;                /* mean over the outputs; 0 for one whose truth does not vary, 1 if it is met exactly */
    bool exact;               /* auc and average_precision are of all scores, not of bins */
} clt_evaluation;

/* One thread at a time. */
typedef struct clt_evaluator clt_evaluator;

/* CLT_E_INVALID for 1 or a negative number of classes or outputs. */
CLT_API clt_status clt_evaluator_create(clt_evaluator **evaluator, const clt_evaluator_options *options);
/* NULL is fine. */
CLT_API void clt_evaluator_destroy(clt_evaluator *evaluator);

/* Counts a batch. predicted: f32 [samples, classes] or [samples, outputs]; truth: i32 labels [samples], where those outside [0, classes) are left out,
 * or f32 [samples, outputs]. CLT_E_RANGE, and nothing is counted, for a prediction that is NaN. */
CLT_API clt_status clt_evaluator_add(clt_evaluator *evaluator, const float *predicted, const void *truth, int64_t samples);

/* Every rank gets what all have counted. A collective: all ranks call it, with evaluators of the same options. A communicator that is NULL does nothing. */
CLT_API clt_status clt_evaluator_gather(clt_evaluator *evaluator, clt_comm *comm);

CLT_API clt_status clt_evaluator_result(clt_evaluator *evaluator, clt_evaluation *result);

/* Samples of class `truth` that were predicted as `predicted`; 0 outside of the classes. */
CLT_API int64_t clt_evaluator_confusion(const clt_evaluator *evaluator, int truth, int predicted);

/* Begins anew. */
CLT_API void clt_evaluator_reset(clt_evaluator *evaluator);

CLT_END_DECLS

#endif
