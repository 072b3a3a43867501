/*
 * The ops' definitions in double precision: straightforward loops over what <cltrain/ops.h> says. Each gives y
 * its shape and values, and returns about how many operations that took.
 */
#ifndef CONFORM_REFERENCE_H
#define CONFORM_REFERENCE_H

#include "tools/cltrain-conform/suite.h"

#define POINTWISE(DO)                                                                                   \
    DO(add)                                                                                             \
    DO(sub) DO(mul) DO(div) DO(pow) DO(add_scalar) DO(mul_scalar) DO(pow_scalar) DO(neg) DO(abs)        \
        DO(exp) DO(log) DO(sqrt) DO(clip) DO(relu) DO(tanh) DO(sigmoid) DO(silu) DO(gelu)
#define OTHERS(DO)                                                                                      \
    DO(cast)                                                                                            \
    DO(matmul) DO(linear) DO(conv2d) DO(max_pool2d) DO(avg_pool2d) DO(max_pool2d_last) DO(avg_pool2d_last) DO(global_avg_pool2d) DO(batch_norm) \
        DO(batch_norm_conv) DO(matmul_add)                                                              \
        DO(layer_norm) DO(sum) DO(mean) DO(max) DO(softmax) DO(log_softmax) DO(cross_entropy)           \
            DO(bce_with_logits) DO(mse_loss) DO(reshape) DO(permute) DO(concat) DO(slice) DO(pad)       \
                DO(expand) DO(dropout) DO(dropout_twice) DO(embedding) DO(user)

#define DECLARE(name)                                                                                   \
    double reference_##name(const array *x, int n, array *y, const attributes *at, bool evaluation);
POINTWISE(DECLARE)
OTHERS(DECLARE)
#undef DECLARE

void reference_max_pool2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
#define WITH_KINKS(DO) DO(relu) DO(abs) DO(clip) DO(pow) DO(pow_scalar)
#define DECLARE(name) \
    void reference_##name##_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
WITH_KINKS(DECLARE)
#undef DECLARE
void reference_cross_entropy_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
void reference_embedding_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
/* Sums of products: what each operand gets of dy, element by element. */
void reference_matmul_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
void reference_matmul_add_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
void reference_conv2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at);
void reference_batch_norm_conv_buffers(const array *x, int i, array *after, const attributes *at);
void reference_batch_norm_buffers(const array *x, int i, array *after, const attributes *at);

/* Whether element i is kept by the dropout that is number `site` of its graph. */
bool reference_dropout_keeps(int64_t i, int site, uint64_t step, uint64_t seed, double p);

#endif
