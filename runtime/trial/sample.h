/*
 * Samples of a run's time.
 */
#ifndef CLT_TRIAL_SAMPLE_H
#define CLT_TRIAL_SAMPLE_H

#include <cltrain/experimental/measure.h>

#include "runtime/base/base.h"

/* Does a thing so many times, waits for it, and gives the mean time of one. */
typedef clt_status (*clt_sample_run)(void *user, int times, double *seconds);

/* Warms up, chooses how many times make a sample that the clock sees, and takes samples as `options` say (NULL:
 * the usual). */
clt_status clt_sample_times(clt_sample_run run, void *user, const clt_measure_options *options,
                      clt_measurement *measurement);

#endif
