#include "runtime/base/shape.h"

#include <stdio.h>
#include <string.h>

const char *clt_dtype_name(clt_dtype dtype) {
    switch (dtype) {
#define CASE(name, value, text, bytes) \
    case name:                         \
        return text;
        CLT_DTYPE_MAP(CASE)
#undef CASE
    }
    return "?";
}

size_t clt_dtype_bytes(clt_dtype dtype) {
    switch (dtype) {
#define CASE(name, value, text, bytes) \
    case name:                         \
        return bytes;
        CLT_DTYPE_MAP(CASE)
#undef CASE
    }
    return 0;
}

int64_t clt_shape_elements(const clt_shape *shape) {
    if (!shape || shape->rank < 0 || shape->rank > CLT_MAX_RANK) return -1;
    int64_t product = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return -1;
        if (__builtin_mul_overflow(product, shape->dims[i], &product)) return -1;
    }
    return product;
}

/* Codes lie behind those of CLT_LENGTH plus or minus a number: one such range for each multiple, of the batch and of both further behind. */
static const int64_t range = INT64_C(1) << 33, batches = INT64_C(1) << 60;

int64_t clt_multiple_dim(clt_multiple m) {
    int64_t kind = !m.of_batch ? 0 : m.of_length ? 2 : 1;
    return CLT_LENGTH + kind * batches + m.times * range + m.more;
}

bool clt_dim_multiple(int64_t dim, clt_multiple *m) {
    if (dim >= -1 || dim < CLT_LENGTH + range / 2) return false;
    int64_t code = dim - CLT_LENGTH;
    int64_t kind = (code + batches / 2) / batches;
    m->of_batch = kind > 0;
    m->of_length = kind != 1;
    code -= kind * batches;
    m->times = (code + range / 2) / range;
    m->more = code - m->times * range;
    return kind <= 2 && m->times >= 1 && m->times <= CLT_MOST_TIMES;
}

int64_t clt_multiple_size(clt_multiple m, int64_t batch, int64_t length) {
    int64_t size = m.of_length ? length : batch, dim;
    if (__builtin_mul_overflow(m.times, size, &dim) || __builtin_add_overflow(dim, m.more, &dim)) return 0;
    return m.of_batch && m.of_length && __builtin_mul_overflow(dim, batch, &dim) ? 0 : dim;
}

bool clt_multiple_through(const clt_size_point *points, int n, clt_multiple *m) {
    bool both = m->of_batch && m->of_length;
    int64_t size = m->of_length ? points->length : points->batch, samples = both ? points->batch : 1, at = points->dim / samples;
    m->times = 0;
    for (int i = 1; i < n && !m->times; i++) {
        int64_t step = (m->of_length ? points[i].length : points[i].batch) - size, change;
        if (__builtin_sub_overflow(points[i].dim / samples, at, &change)) return false;
        if (step) m->times = change / step;
    }
    if (m->times < 1 || m->times > CLT_MOST_TIMES) return false;
    if (__builtin_mul_overflow(m->times, size, &m->more) || __builtin_sub_overflow(at, m->more, &m->more)) return false;
    if (m->more < -INT32_MAX || m->more > INT32_MAX) return false;
    for (int i = 0; i < n; i++)
        if (points[i].dim != clt_multiple_size(*m, points[i].batch, points[i].length)) return false;
    return true;
}

const char *clt_shape_text(const clt_shape *shape, char text[CLT_SHAPE_TEXT]) {
    size_t length = 0;
    text[length++] = '[';
    for (int i = 0; i < shape->rank && i < CLT_MAX_RANK && length < CLT_SHAPE_TEXT - 24; i++) {
        int64_t dim = shape->dims[i];
        clt_multiple m;
        if (clt_dim_multiple(dim, &m)) {
            bool both = m.of_batch && m.of_length;
            length += (size_t)snprintf(text + length, CLT_SHAPE_TEXT - length, "%s%s%lld %s%+lld%s", i ? ", " : "", both ? "batch (" : "", (long long)m.times,
                                       m.of_length ? "length" : "batch", (long long)m.more, both ? ")" : "");
            continue;
        }
        bool is_length = clt_dim_is_length(dim);
        const char *symbol = dim == CLT_BATCH ? "batch" : is_length ? "length" : "";
        long long number = is_length ? dim - CLT_LENGTH : dim;
        length += (size_t)snprintf(text + length, CLT_SHAPE_TEXT - length, "%s%s", i ? ", " : "", symbol);
        if (!*symbol || (is_length && number)) length += (size_t)snprintf(text + length, CLT_SHAPE_TEXT - length, is_length ? "%+lld" : "%lld", number);
    }
    snprintf(text + length, CLT_SHAPE_TEXT - length, "]");
    return text;
}

bool clt_shape_equal(const clt_shape *a, const clt_shape *b) {
    return a->rank == b->rank &&
           (a->rank <= 0 || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]));
}

bool clt_shape_broadcast(const clt_shape *a, const clt_shape *b, clt_shape *result) {
    clt_shape out = {.rank = CLT_MAX(a->rank, b->rank)};
    for (int i = 0; i < out.rank; i++) {
        int ia = i - (out.rank - a->rank), ib = i - (out.rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1) return false;
        out.dims[i] = da == 1 ? db : da;
    }
    *result = out;
    return true;
}

int clt_shape_axis(const clt_shape *shape, int axis) {
    if (axis < 0) axis += shape->rank;
    return axis >= 0 && axis < shape->rank ? axis : -1;
}

void clt_shape_strides(const clt_shape *shape, int64_t strides[CLT_MAX_RANK]) {
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}

clt_status clt_shape_check(const clt_shape *shape, const char *what) {
    char text[CLT_SHAPE_TEXT];
    if (shape->rank < 0 || shape->rank > CLT_MAX_RANK)
        return clt_fail(CLT_E_SHAPE, "%s: rank %d is outside 0 to %d", what, shape->rank, CLT_MAX_RANK);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 1)
            return clt_fail(CLT_E_SHAPE, "%s: shape %s has a dimension below 1", what,
                            clt_shape_text(shape, text));
    /* Sizes and offsets in bytes fit 64 bits with room to spare; kernels that count with 32 refuse by themselves. */
    int64_t elements = clt_shape_elements(shape);
    if (elements < 0 || elements > (int64_t)1 << 40)
        return clt_fail(CLT_E_SHAPE, "%s: shape %s has more than 2^40 elements", what, clt_shape_text(shape, text));
    return CLT_OK;
}

clt_status clt_narrow_i64(const int64_t *from, int32_t *to, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++) {
        to[i] = (int32_t)from[i];
        if (to[i] != from[i])
            return clt_fail(CLT_E_RANGE, "%s: value %lld (element %lld) does not fit in i32", what, (long long)from[i], (long long)i);
    }
    return CLT_OK;
}
