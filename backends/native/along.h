/*
 * Softmax, cross-entropy and layer normalization, with their gradients, as what goes along the rows of matrices.
 */
#ifndef CLT_BACKENDS_NATIVE_ALONG_H
#define CLT_BACKENDS_NATIVE_ALONG_H

#include "backends/native/native.h"

/* [count, n], contiguous. */
typedef struct clt_rows {
    int64_t count, n;
} clt_rows;

/* The rows of such a node. False: elements of a row are apart. */
bool clt_rows_of(const clt_tensor *node, clt_rows *rows);

/* Of a softmax or its gradient: whether it is the log form. */
bool clt_softmax_is_log(const clt_tensor *node);

#endif
