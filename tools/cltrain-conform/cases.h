/* What the files of cases share. */
#ifndef CONFORM_CASES_H
#define CONFORM_CASES_H

#include "tools/cltrain-conform/suite.h"

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

/* The operation that build_BUILT puts into a graph and reference_DEFINED computes in double precision: straightforward loops over
 * what <cltrain/ops.h> says. Further members of `operation` follow. */
#define OPERATION(op, of, built, defined, ...)                                                          \
    {.name = op, .builders = of, .build = build_##built, .reference = reference_##defined, __VA_ARGS__}

/* Operations of which more than one file has cases. Those that are exact have gradients from sums of products, not differences. */
extern const operation operation_matmul_exact, operation_matmul_add;             /* ops_matmul.c */
extern const operation operation_conv2d_exact, operation_conv2d_inside_exact;    /* ops_conv2d.c */
extern const operation operation_batch_norm, operation_batch_norm_conv, operation_layer_norm; /* ops_norm.c */
extern const operation operation_sum;                                            /* ops_reduce.c */

/* Definitions of which others are made. */
double reference_conv2d(const array *x, int n, array *y, const attributes *at, bool evaluation);
double reference_batch_norm(const array *x, int n, array *y, const attributes *at, bool evaluation);
void reference_batch_norm_buffers(const array *x, int i, array *after, const attributes *at);
/* Whether the weight of query i of a head, counted over all samples, and key j is kept by the dropout of attention that is number `site`; seed and step are 0. */
bool reference_attention_keeps(int64_t head, int64_t i, int64_t j, int site, double p);
/* Whether element i is kept by the dropout that is number `site` of its graph. */
bool reference_dropout_keeps(int64_t i, int site, uint64_t step, uint64_t seed, double p);

#endif
