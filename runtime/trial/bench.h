/*
 * One problem on the bench: a plan of a single node, on random values, for each
 * candidate.
 */
#ifndef CLT_TRIAL_BENCH_H
#define CLT_TRIAL_BENCH_H

#include "backends/backend.h"
#include "runtime/trial/sample.h"

typedef struct clt_bench clt_bench;

/* A problem like that of `node`. The reference's result is computed on the way: of parts of it only, where the whole is more
 * work than `sample_work` operations: of a sum of all images or rows, and of some from all over. CLT_E_UNSUPPORTED if the
 * reference does not serve the problem, or even the smallest part is much more work. */
clt_status clt_bench_create(clt_bench **bench, clt_device *device, const clt_tensor *node, double work,
                            double sample_work);
void clt_bench_destroy(clt_bench *bench);

/* How long the reference may take for the whole problem, by what its part took. */
double clt_bench_reference_us(const clt_bench *bench);

typedef struct clt_bench_result {
    double nmse; /* squared error over the square of the reference's; of all parts looked at, the worst */
    double us;   /* the median run; 0 where nmse is above CLT_BENCH_MOST_NMSE */
} clt_bench_result;

#define CLT_BENCH_MOST_NMSE 1e-7

/* Builds and runs a candidate, compares, and times it for at most about `seconds`; one that takes longer than
 * `give_up_us` once, or than `seconds`, is not run again. A status below zero is the candidate's own failure. */
clt_status clt_bench_run(clt_bench *bench, const clt_choice *choice, double seconds, double give_up_us,
                         clt_bench_result *result);

/* The same, with samples of its time; what the timed runs left is compared too. Where *nmse or *nmse_after is above
 * CLT_BENCH_MOST_NMSE, or no number, the samples are worth nothing. Of runs among the timed ones, at random places, it is seen
 * whether they ran (witness.h): CLT_E_DEVICE, and measurement->wrong, if one did not. */
clt_status clt_bench_sample(clt_bench *bench, const clt_choice *choice, const clt_measure_options *options,
                            clt_measurement *measurement, double *nmse, double *nmse_after);

/* Both in turn for about `seconds`: a's time over b's, in the median of the rounds or in the best of each, whichever
 * speaks less for a. What else the machine is at only adds time: it hides a gain rather than makes one. */
clt_status clt_bench_duel(clt_bench *bench, const clt_choice *a, const clt_choice *b, double seconds,
                          double *ratio);

#endif
