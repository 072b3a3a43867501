/*
 * How long problems took on a device, and what that tells of others.
 *
 * A timing is of a problem in its place in a training step: with the row that served it, the layouts, and the caches as
 * the step leaves them. Times of another batch size are interpolated between those of the same problem; what was never
 * measured is scaled from what is nearest, or by the device's roofs.
 */
#ifndef CLT_EXEC_TIMES_H
#define CLT_EXEC_TIMES_H

#include <cltrain/probe.h>

#include "backends/tune/tune.h"
#include "runtime/exec/plan.h"

enum { CLT_TIMES_ROW = 96, CLT_TIMES_MOST = 4096 };

typedef struct clt_timing {
    char problem[CLT_TUNE_KEY]; /* "conv2d k3 … -> …", "feed 393344" for what lies between two steps that are fed so much */
    char row[CLT_TIMES_ROW];    /* "native block=12"; "" for a feed */
    double us;                  /* its launches, on the device */
    double gap_us;              /* between them and what ran before */
    double spread;              /* of steps from one another, as a part */
    double flops, bytes, launches;
} clt_timing;

/* The oldest first. */
typedef struct clt_timings {
    clt_timing *items;
    size_t n, capacity;
} clt_timings;

void clt_timings_free(clt_timings *list);
/* All but the times. */
void clt_timing_of(const clt_plan_item *item, clt_timing *timing);
void clt_timing_of_feed(uint64_t bytes, clt_timing *timing);
bool clt_timing_same(const clt_timing *a, const clt_timing *b);
/* In the place of one of the same problem and row; the oldest of too many is dropped. */
clt_status clt_timings_put(clt_timings *list, const clt_timing *timing);

/* JSON, one object a line; what is none, or makes no sense, is skipped. */
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
clt_estimate clt_timings_estimate(const clt_timings *list, const clt_timing *wanted, const clt_roofs *roofs,
                                  clt_times_source first, const clt_timing *except);

/* Of each source the error of its estimates as a part, weighed by time: what each item is estimated at without itself. That of a
 * source which cannot be tried so is that of the next worse; NAN if there is none. */
void clt_timings_errors(const clt_timings *list, const clt_roofs *roofs, double errors[CLT_TIMES_SOURCES_]);

#endif
