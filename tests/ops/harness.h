/*
 * What the tests of ops and graphs share: a device, and graphs computed on it. Values and gradients of ops are not checked here:
 * the portability suite has a case for each (tools/cltrain-conform/ops_*.c, run by conform/quick).
 */
#ifndef CLT_TESTS_OPS_HARNESS_H
#define CLT_TESTS_OPS_HARNESS_H

#include "tests/support.h"

#include <cltrain/ops.h>

#include "runtime/exec/plan.h"

/* The device of the program's tests, opened by op_main. */
clt_device *op_device(void);

/* A plan of the targets for that device; the store is made for it. Fails the test on any error. */
clt_plan *op_compile(clt_graph *graph, clt_tensor *const *targets, int n, bool training, clt_state_store **store);
/* What y is when x has the values. */
void op_compute(clt_tensor *y, const clt_tensor *x, const float *values, float *result);

void op_variable_write(clt_state_store *store, const clt_tensor *variable, const float *values);

/* A main(). */
int op_main(const char *group, const struct CMUnitTest *tests, size_t n_tests);
#define OP_MAIN(group, ...)                                                                             \
    int main(void) {                                                                                    \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                \
        return op_main(group, tests, CLT_COUNT_OF(tests));                                              \
    }

#endif
