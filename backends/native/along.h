/*
 * Softmax, cross-entropy, accuracy and layer normalization, with their gradients, and reductions of what is computed on the way, as what goes along the rows of matrices.
 */
#ifndef CLT_BACKENDS_NATIVE_ALONG_H
#define CLT_BACKENDS_NATIVE_ALONG_H

#include "backends/codegen.h"
#include "backends/native/native.h"

/* x is [count, n], contiguous. */
typedef struct clt_rows {
    const clt_tensor *x;
    int64_t count, n;
} clt_rows;

/* The rows of such a node. False: elements of a row are apart. */
bool clt_rows_of(const clt_tensor *node, clt_rows *rows);

/* Lowers such a node to a kernel of its first n inputs, the result, what `begin` adds, and the op's own arguments: whether a softmax is the log form, or
 * eps. Of layer normalization that is the statistics, of which its form makes y; the gradients of weight and bias are sums down columns. */
typedef void clt_begin_along(clt_lowering *l, const clt_tensor *node, int n_inputs, const clt_tensor *result);
void clt_lower_along(clt_lowering *l, const clt_tensor *node, clt_begin_along *begin);

/* The chain of a fused_reduce. False: it reads something otherwise than along with the rows, or one element. */
bool clt_code_along(const clt_tensor *node, clt_code *code);

#endif
