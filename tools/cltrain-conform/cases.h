/* What the tables of cases share. */
#ifndef CONFORM_CASES_H
#define CONFORM_CASES_H

#include "tools/cltrain-conform/reference.h"

#define SHAPE(...) {(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}
/* An f32 operand of a shape. */
#define F(...) {.shape = SHAPE(__VA_ARGS__)}
/* The operands of a case. */
#define X(...) (operand[]){__VA_ARGS__}, (int)(sizeof((operand[]){__VA_ARGS__}) / sizeof(operand))

#define BUILD(name, expression)                                                                         \
    static clt_tensor *build_##name(clt_graph *graph, clt_tensor *const *x, int n,                      \
                                    const attributes *at) {                                             \
        return (void)graph, (void)n, (void)at, (expression);                                            \
    }

/* Operations of which more than one table has cases. */
extern const operation operation_sum;                              /* cases_reduce.c */
extern const operation operation_batch_norm, operation_layer_norm; /* cases_image.c */

#endif
