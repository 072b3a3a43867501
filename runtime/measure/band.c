/* By how much estimates of times may be off: formulas and their sources are in times.h. */
#include <math.h>
#include <stdlib.h>

#include "runtime/measure/times.h"

static const double covered = 0.9; /* of all cases */

/* ---- what is not measured: estimates of what is, without itself ---- */

enum { MOST_TRIED = 300 }; /* each is held against all others */

typedef struct trial_error {
    double error, us;
} trial_error;

static int by_error(const void *a, const void *b) {
    double x = ((const trial_error *)a)->error, y = ((const trial_error *)b)->error;
    return x < y ? -1 : x > y;
}

/* The error that no more than a tenth, by time, is above; NAN of none. */
static double most_error(trial_error *tried, size_t n) {
    double all = 0, sum = 0;
    for (size_t i = 0; i < n; i++) all += tried[i].us;
    qsort(tried, n, sizeof *tried, by_error);
    for (size_t i = 0; i < n; i++) {
        sum += tried[i].us;
        if (sum >= covered * all) return tried[i].error;
    }
    return NAN;
}

static double try_source(const clt_timings *list, const clt_peaks *peaks, clt_times_source source) {
    const double least_part = 1e-6; /* an estimate of nothing is off by more than anybody can tell */
    trial_error tried[MOST_TRIED];
    size_t n = 0, stride = list->n / MOST_TRIED + 1;
    for (size_t i = 0; i < list->n; i += stride) {
        const clt_timing *t = &list->items[i];
        double us = CLT_MAX(t->us + t->gap_us, 0);
        clt_estimate e = clt_timings_estimate(list, t, peaks, source, t);
        if (e.source != source || t->launches == 0 || us == 0) continue;
        tried[n++] = (trial_error){fabs(e.us - us) / CLT_MAX(e.us, least_part * us), us};
    }
    return most_error(tried, n);
}

void clt_timings_errors(const clt_timings *list, const clt_peaks *peaks, double errors[CLT_TIMES_SOURCES_]) {
    errors[CLT_TIMES_MEASURED] = 0;
    for (int s = CLT_TIMES_BATCHES; s < CLT_TIMES_SOURCES_; s++)
        errors[s] = list->n > 1 ? try_source(list, peaks, (clt_times_source)s) : NAN;
    for (int s = CLT_TIMES_SOURCES_ - 2; s >= CLT_TIMES_BATCHES; s--)
        if (isnan(errors[s])) errors[s] = errors[s + 1];
}

/* ---- what is measured ---- */

/* Student's quantile that 90 % lie within, of the normal one: Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5);
 * with one degree of freedom, where the series ends too soon, the value itself. */
static double student(double degrees) {
    const double z = 1.6448536, one = 6.3137515, z2 = z * z;
    double d = CLT_MAX(degrees, 1);
    double series = z * (1 + (z2 + 1) / (4 * d) + ((5 * z2 + 16) * z2 + 3) / (96 * d * d) +
                         (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * d * d * d));
    return d < 2 ? CLT_MAX(series, one - (d - 1) * (one - 2.9199856)) : series;
}

static double measured_band(const clt_estimate *e, const int *counts, size_t n, double total) {
    double common = 0, common_doubt = 0, own = 0, own_doubt = 0;
    for (size_t i = 0; i < n; i++) {
        const clt_timing *t = e[i].from;
        if (e[i].source != CLT_TIMES_MEASURED || !t || !(e[i].us > 0)) continue;
        double share = e[i].us * counts[i] / total, doubt = 1 / sqrt(CLT_MAX(t->degrees, 1)), alone = share * t->own;
        common += share * t->spread;
        common_doubt += share * t->spread * doubt;
        own += alone * alone / counts[i];
        own_doubt += alone * alone / counts[i] * doubt;
    }
    double variance = common * common + own, doubt = (common * common_doubt + own_doubt) / variance;
    return variance > 0 ? student(1 / (doubt * doubt)) * sqrt(variance) : 0;
}

double clt_timings_band(const clt_timings *list, const clt_peaks *peaks, const clt_estimate *e, const int *counts, size_t n) {
    double total = 0, shares[CLT_TIMES_SOURCES_] = {0}, errors[CLT_TIMES_SOURCES_] = {0};
    for (size_t i = 0; i < n; i++) total += e[i].us * counts[i], shares[e[i].source] += e[i].us * counts[i];
    if (!(total > 0)) return NAN;
    double band = measured_band(e, counts, n, total);
    if (shares[CLT_TIMES_MEASURED] < total) clt_timings_errors(list, peaks, errors);
    for (int s = CLT_TIMES_BATCHES; s < CLT_TIMES_SOURCES_; s++)
        if (shares[s] > 0) band += shares[s] / total * errors[s];
    return band;
}
