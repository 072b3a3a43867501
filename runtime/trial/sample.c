#include "runtime/trial/sample.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_FOR_SPREAD = 9, MOST_TIMES = 500 };
static const double most_first_seconds = 5; /* a first run that takes as long tells enough, on a simulator */
static const double sample_seconds = 2e-3; /* so that waiting for the device is not what is timed */

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double spread(const clt_measurement *m) {
    double sorted[CLT_MOST_SAMPLES];
    memcpy(sorted, m->seconds, (size_t)m->n * sizeof *sorted);
    qsort(sorted, (size_t)m->n, sizeof *sorted, ascending);
    return (sorted[m->n * 9 / 10] - sorted[m->n / 10]) / CLT_MAX(sorted[m->n / 2], 1e-12);
}

static clt_measure_options resolve(const clt_measure_options *given) {
    clt_measure_options o = given ? *given : (clt_measure_options){0};
    if (!(o.seconds > 0)) o.seconds = 0.25;
    if (o.most_samples < 1 || o.most_samples > CLT_MOST_SAMPLES) o.most_samples = CLT_MOST_SAMPLES;
    return o;
}

/* The first run may compile something; the second tells how long one takes. */
clt_status clt_sample_times(clt_sample_run run, void *user, const clt_measure_options *options, clt_measurement *m) {
    clt_measure_options o = resolve(options);
    double seconds;
    m->n = 0;
    CLT_TRY(run(user, 1, &seconds));
    if (seconds < most_first_seconds) CLT_TRY(run(user, 1, &seconds));
    /* One that takes all its time once is not run again. */
    if (seconds > 4 * o.seconds) {
        m->seconds[m->n++] = seconds;
        return CLT_OK;
    }
    int times = (int)CLT_MAX(1, CLT_MIN(sample_seconds / CLT_MAX(seconds, 1e-9), MOST_TIMES));
    if (times > 1) CLT_TRY(run(user, times, &seconds));
    double start = clt_seconds();
    while (m->n < o.most_samples) {
        CLT_TRY(run(user, times, &m->seconds[m->n]));
        seconds = m->seconds[m->n++] * times;
        if (clt_seconds() - start + seconds > o.seconds) break;
        if (m->n >= LEAST_FOR_SPREAD && spread(m) < o.spread) break;
    }
    return CLT_OK;
}
