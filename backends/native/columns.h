/*
 * Reductions as sums down the columns of matrices.
 */
#ifndef CLT_BACKENDS_NATIVE_COLUMNS_H
#define CLT_BACKENDS_NATIVE_COLUMNS_H

#include "backends/native/native.h"

/* [count, rows, columns], summed up over rows. */
typedef struct clt_columns {
    int64_t count, rows, columns;
} clt_columns;

/* A `reduce` node as such: what it reduces lies together in memory, with more than one element behind it, and what it keeps stays in order. False: it is none. */
bool clt_columns_of(const clt_tensor *node, clt_columns *columns);

#endif
