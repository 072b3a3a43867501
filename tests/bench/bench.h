/*
 * The benchmark's worker: cases that are prepared once and then run again and again. The
 * other side, worker.py, has the same cases by the same words.
 */
#ifndef CLT_TESTS_BENCH_BENCH_H
#define CLT_TESTS_BENCH_BENCH_H

#include <jansson.h>

#include "runtime/base/base.h"
#include "runtime/device/device.h"
#include "runtime/exec/plan.h"

/* A case that is ready. */
typedef struct bench_case bench_case;
struct bench_case {
    /* Enqueues the work so often. */
    clt_status (*run)(bench_case *self, int repetitions);
    /* Adds to the answer what shows that the work was done right. */
    clt_status (*facts)(bench_case *self, json_t *answer);
    void (*close)(bench_case *self);
};

/* Each makes a case from what is asked for; it has run once. */
clt_status bench_gemm(clt_device *device, const json_t *asked, bench_case **made);  /* case_op.c */
clt_status bench_conv(clt_device *device, const json_t *asked, bench_case **made);
clt_status bench_rows(clt_device *device, const json_t *asked, bench_case **made);  /* case_rows.c */
clt_status bench_adamw(clt_device *device, const json_t *asked, bench_case **made); /* case_update.c */
clt_status bench_train(clt_device *device, const json_t *asked, bench_case **made); /* case_train.c */

/* "check" of a result: the sum of its values' sizes, and that of the values with other weights each, in their logical order. */
clt_status bench_sums(clt_plan *plan, const clt_tensor *result, json_t *answer); /* case_op.c */

/* A member of what is asked for. */
int64_t bench_whole(const json_t *asked, const char *key, int64_t standard);
double bench_real(const json_t *asked, const char *key, double standard);
const char *bench_text(const json_t *asked, const char *key, const char *standard);

/* values[i] in [-1, 1), a function of i and the stream: the same on both sides. */
void bench_values(float *values, size_t count, uint32_t stream);

#endif
