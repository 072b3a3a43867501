/*
 * The header of a .npy file:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef CLT_DATA_NPY_HEADER_H
#define CLT_DATA_NPY_HEADER_H

#include <cltrain/tensor.h>

#include "runtime/base/source.h"

/* B1: 0 and 1. */
typedef enum clt_npy_type { CLT_NPY_F2, CLT_NPY_F4, CLT_NPY_F8, CLT_NPY_B1, CLT_NPY_I1, CLT_NPY_U1, CLT_NPY_I2, CLT_NPY_U2, CLT_NPY_I4, CLT_NPY_U4, CLT_NPY_I8 } clt_npy_type;

typedef struct clt_npy_header {
    clt_npy_type type;
    clt_shape shape;  /* rank 1 at least, no dimension 0 */
    int64_t elements; /* its product */
} clt_npy_header;

typedef struct clt_npy_kind {
    size_t bytes; /* of an item */
    clt_convert *to_f32, *to_f64, *to_label; /* to_f64: NULL for what f32 has exactly; to_label: NULL for floats */
} clt_npy_kind;

/* By type. */
extern const clt_npy_kind clt_npy_kinds[];

/* Of one sample: [n, ...] without n; of numbers [n] that is [1]. */
clt_shape clt_npy_sample(const clt_npy_header *header, bool numbers);

/* CLT_E_SHAPE unless y is labels [n] or targets [n] or [n, k], of as many samples as x. */
clt_status clt_npy_check_pair(const char *x_path, const clt_npy_header *x, const char *y_path, const clt_npy_header *y);

/* Reads up to the first byte of data. CLT_E_FORMAT, CLT_E_SHAPE or CLT_E_UNSUPPORTED (a type or
 * an order that is not read) name the file. */
clt_status clt_npy_read_header(clt_source *source, clt_npy_header *header);

#endif
