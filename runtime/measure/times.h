/*
 * How long problems took on a device, and what that tells of others.
 *
 * A timing is of a problem in its place in a training step: with the row that served it, the layouts, and the caches as
 * the step leaves them. Times of another batch size are interpolated between those of the same problem; what was never
 * measured is scaled from what is nearest, or by the device's peaks.
 */
#ifndef CLT_MEASURE_TIMES_H
#define CLT_MEASURE_TIMES_H

#include <cltrain/experimental/predict.h>

#include "backends/tune/tune.h"
#include "runtime/exec/plan.h"

enum { CLT_TIMES_ROW = 96, CLT_TIMES_MOST = 4096 };

typedef struct clt_timing {
    char problem[CLT_TUNE_KEY]; /* "conv2d k3 … -> …", "feed 393344" for what lies between two steps that are fed so much */
    char row[CLT_TIMES_ROW];    /* "native block=12"; "" for a feed */
    double us;                  /* its launches, on the device */
    double gap_us;              /* between them and what ran before */
    /* How far from `us` it may be another time, as standard deviations and as parts: with the whole step, as a machine that
     * is slower for a while makes it, and of one run by itself; and how many degrees of freedom they were taken with. */
    double spread, own, degrees;
    double flops, bytes, launches; /* arithmetic that the row's algorithm does; 0: none, or it is not known */
} clt_timing;

/* The oldest first. */
typedef struct clt_timings {
    clt_timing *items;
    size_t n, capacity;
    size_t skipped; /* lines that were read and make no sense */
} clt_timings;

void clt_timings_free(clt_timings *list);
/* All but the times. */
void clt_timing_of(const clt_plan_item *item, clt_timing *timing);
void clt_timing_of_feed(uint64_t bytes, clt_timing *timing);
bool clt_timing_same(const clt_timing *a, const clt_timing *b);
/* In the place of one of the same problem and row; the oldest of too many is dropped. */
clt_status clt_timings_put(clt_timings *list, const clt_timing *timing);

/* JSON, one object a line; what is none, or makes no sense, is skipped, and counted. */
clt_status clt_timings_write(const clt_timings *list, clt_text *text);
clt_status clt_timings_read(clt_timings *list, const char *text, size_t length);

/* ---- estimate.c ---- */

typedef struct clt_estimate {
    clt_times_source source;
    double us; /* with the gaps */
    const clt_timing *from; /* what it was taken or scaled from; NULL: no single one */
} clt_estimate;

/* How long `wanted`, whose own times are not looked at, would take. `first`: the best source that may be used; `except`
 * (or NULL): an item of the list to leave out. */
clt_estimate clt_timings_estimate(const clt_timings *list, const clt_timing *wanted, const clt_peaks *peaks,
                                  clt_times_source first, const clt_timing *except);

/* ---- settle.c ---- */

/* Steps that were timed. */
typedef struct clt_records {
    const clt_timing *parts; /* the problems of a step, */
    const int *counts;       /* how often each is run in it, */
    size_t n_parts;
    const double *us; /* and of each record (a mean of steps that ran together), of each part, in sum over its runs: microseconds on
                       * the device, and before it */
    size_t n;
    double steps, sum_us, sum_square; /* of single steps */
} clt_records;

/* Puts the times of the parts. The records from the first to the third quartile count, by what they took as a whole: a disturbed
 * one is left out whole, not launch by launch, whose medians would not add up to a step's.
 *
 * With t[k][i] of record k and part i, w[i] the part's share of the step, v[i] the variance of t[.][i] and V that of the
 * sums, both relative to their means, the single-index model (Sharpe, "A simplified model for portfolio analysis", 1963)
 *     t[k][i] = mean[i] (1 + common[k] + own[k][i]),  all independent,
 * gives V = c + sum w[i]^2 (v[i] - c), from which c, the variance of what is common, and v[i] - c follow. Variances of 16 records
 * and more are Winsorized as the mean is trimmed, with as many degrees of freedom as records are kept, less one (Tukey and McLaughlin, "Less vulnerable
 * confidence and significance procedures for location based on a single sample", 1963); times 1 + 1 / records kept, they are
 * those of a further record from the mean. Of fewer than 4 records what single steps differ by is common. */
clt_status clt_timings_settle(clt_timings *list, const clt_records *records);

/* ---- band.c ---- */

/* Of each source the error of its estimates, as a part of these: what each item is estimated at without itself is off by no
 * more in nine cases of ten, weighed by time. That of a source which cannot be tried so is that of the next worse;
 * NAN if there is none; 0 of CLT_TIMES_MEASURED. */
void clt_timings_errors(const clt_timings *list, const clt_peaks *peaks, double errors[CLT_TIMES_SOURCES_]);

/* By how much the sum of estimates e[i], each run counts[i] times in a step, may be off, as a part of it, in nine steps of ten:
 *     t sqrt((sum w[i] spread[i])^2 + sum (w[i] own[i])^2 / counts[i]) + sum over sources of share[s] error[s]
 * The first sums are over what was measured, w its shares of the step: what is common adds up, what is each launch's own cancels in
 * part. t is Student's quantile for 90 %. An estimate of a variance V of d degrees of freedom is off by V sqrt(2 / d); they are
 * of the same records, so these add up, which gives the degrees of the sum (of independent ones the squares would: Satterthwaite, "An
 * approximate distribution of estimates of variance components", 1946). What was not measured is off by the error of its source, and all of it to the same side,
 * since nothing says otherwise: quantiles of sums that go together add up (Dhaene et al., "The concept of comonotonicity in
 * actuarial science and finance", 2002). NAN: nothing is known of a source, or the sum is nothing. */
double clt_timings_band(const clt_timings *list, const clt_peaks *peaks, const clt_estimate *e, const int *counts, size_t n);

#endif
