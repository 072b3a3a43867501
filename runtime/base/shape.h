/* Shapes: as text, compared, broadcast. */
#ifndef CLT_BASE_SHAPE_H
#define CLT_BASE_SHAPE_H

#include <cltrain/tensor.h>

#include "runtime/base/base.h"

/* True of the types that a tensor of floats may be stored in. */
static inline bool clt_dtype_is_float(clt_dtype dtype) {
    return dtype == CLT_F32 || dtype == CLT_F16 || dtype == CLT_BF16;
}

/* Whether it is CLT_LENGTH, plus or minus what an i32 holds: then `dim - CLT_LENGTH` is that. */
static inline bool clt_dim_is_length(int64_t dim) {
    return dim >= CLT_LENGTH - INT32_MAX && dim <= CLT_LENGTH + INT32_MAX;
}

/* A dimension that is `times` the batch or the length, plus a number, or the batch times such a multiple of the length, as one number beside CLT_BATCH and
 * CLT_LENGTH: what extents have, and no caller gives. */
typedef struct clt_multiple {
    bool of_batch, of_length; /* one or both */
    int64_t times, more; /* from 1 to CLT_MOST_TIMES; what an i32 holds */
} clt_multiple;
enum { CLT_MOST_TIMES = 1 << 20 };
int64_t clt_multiple_dim(clt_multiple m);
bool clt_dim_multiple(int64_t dim, clt_multiple *m);
int64_t clt_multiple_size(clt_multiple m, int64_t batch, int64_t length); /* 0: more than an i64 holds */

/* What a dimension is at a batch and a length. */
typedef struct clt_size_point {
    int64_t batch, length, dim;
} clt_size_point;
/* The multiple, of what `m` says, that n points are on; false if they are on none. Some must have another size than the first. */
bool clt_multiple_through(const clt_size_point *points, int n, clt_multiple *m);

#define CLT_SHAPE_TEXT 160
/* "[64, 1, 28, 28]" into `text`, which is returned. */
const char *clt_shape_text(const clt_shape *shape, char text[CLT_SHAPE_TEXT]);
bool clt_shape_equal(const clt_shape *a, const clt_shape *b);
/* The common shape of two under broadcasting, or false. */
bool clt_shape_broadcast(const clt_shape *a, const clt_shape *b, clt_shape *result);
/* A rank from -rank..rank-1 to 0..rank-1; -1 if out of range. */
int clt_shape_axis(const clt_shape *shape, int axis);
/* Row-major strides in elements. */
void clt_shape_strides(const clt_shape *shape, int64_t strides[CLT_MAX_RANK]);
/* Refuses a rank out of range, dimensions below 1, and products that do not fit; `what` names it. */
clt_status clt_shape_check(const clt_shape *shape, const char *what);

/* i64 values as i32; CLT_E_RANGE for one that does not fit: "WHAT: value 3000000000 (element 5) does not fit in i32". */
clt_status clt_narrow_i64(const int64_t *from, int32_t *to, int64_t n, const char *what);

#endif
