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

/* A dimension that is `times` the batch or the length, plus a number, or the batch times such a multiple of the length; or the number alone. */
typedef struct clt_multiple {
    bool of_batch, of_length;
    int64_t times, more; /* from 1 to CLT_MOST_TIMES; what an i32 holds. Of neither: 0, and any number */
} clt_multiple;
enum { CLT_MOST_TIMES = 1 << 20 };
/* As one number: CLT_BATCH, CLT_LENGTH plus or minus a number, or one beside them, which extents have and no caller gives. */
int64_t clt_multiple_dim(clt_multiple m);
/* The way back, of what is not a number. */
bool clt_dim_multiple(int64_t dim, clt_multiple *m);
/* `by`, from 1 to CLT_MOST_TIMES, such dimensions in one; -1 where it is -1, or has no such number. */
int64_t clt_dim_times(int64_t dim, int64_t by);
int64_t clt_multiple_size(clt_multiple m, int64_t batch, int64_t length); /* 0: more than an i64 holds */

/* What a dimension is at a batch and a length. */
typedef struct clt_size_point {
    int64_t batch, length, dim;
} clt_size_point;
enum { CLT_MOST_POINTS = 29 };
/* The multiple that up to CLT_MOST_POINTS points are on; false: they are on none, or it follows from too few. What follows the batch or the length is
 * seen at two others of it, and what follows both also where both are others. */
bool clt_multiple_through(const clt_size_point *points, int n, clt_multiple *m);

/* In the place of a dimension of a reshaped tensor x: dimension k of x, whatever that follows. No caller gives it. */
#define CLT_DIM_OF(k) (INT64_MIN + (int64_t)(k))
static inline bool clt_dim_is_of(int64_t dim, int *k) {
    bool is = dim < INT64_MIN + CLT_MAX_RANK;
    *k = is ? (int)(dim - INT64_MIN) : 0;
    return is;
}

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
