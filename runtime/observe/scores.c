#include "runtime/observe/scores.h"

#include <math.h>
#include <stdlib.h>

/* Half of the bins for either side of 0.5, by the logarithm of what is left to the end: 128 for each power of 2. */
int clt_score_bin(double probability) {
    enum { HALF = CLT_SCORE_BINS / 2, EACH = 128 };
    double left = probability < 0.5 ? probability : 1 - probability;
    int exponent, bin = HALF - 1; /* the one nearest to the end */
    double mantissa = frexp(left, &exponent); /* in [0.5, 1) */
    if (left > 0 && -exponent < HALF / EACH) bin = -exponent * EACH + (int)((1 - mantissa) * 2 * EACH);
    bin = CLT_MIN(CLT_MAX(bin, 0), HALF - 1);
    return probability < 0.5 ? HALF - 1 - bin : HALF + bin;
}

static int compare(const void *a, const void *b) {
    float x = ((const clt_score *)a)->score, y = ((const clt_score *)b)->score;
    return (x < y) - (x > y); /* the highest first */
}

clt_areas clt_score_areas(clt_score *scores, size_t n) {
    double positive = 0, negative = 0, area = 0, precision = 0;
    if (n) qsort(scores, n, sizeof *scores, compare);
    for (size_t i = 0; i < n;) {
        double more_positive = 0, more_negative = 0;
        for (float score = scores[i].score; i < n && !(scores[i].score < score); i++) more_positive += scores[i].positive, more_negative += scores[i].negative;
        area += more_negative * (positive + more_positive / 2);
        positive += more_positive, negative += more_negative;
        if (more_positive > 0) precision += more_positive * positive / (positive + negative);
    }
    bool both = positive > 0 && negative > 0;
    return (clt_areas){.roc = both ? area / (positive * negative) : (double)NAN, .precision = positive > 0 ? precision / positive : (double)NAN};
}
