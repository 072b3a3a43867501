/*
 * Scores of a class with their labels, and the areas under curves of them: all of them, or counts in bins.
 */
#ifndef CLT_OBSERVE_SCORES_H
#define CLT_OBSERVE_SCORES_H

#include "runtime/base/base.h"

enum { CLT_SCORE_BINS = 8192 };

typedef struct clt_score {
    float score;
    uint32_t positive; /* of how many samples with this score, which are one unless it is a bin */
    uint32_t negative;
} clt_score;

/* The bin of a probability: the order of bins is that of probabilities, and they are narrow near 0 and near 1. */
int clt_score_bin(double probability);

typedef struct clt_areas {
    double roc, precision; /* NaN without both kinds of samples, or without positive ones */
} clt_areas;

/* Sorts them by their scores; samples of the same score are one step of the curves. */
clt_areas clt_score_areas(clt_score *scores, size_t n);

#endif
