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
    if (!m.of_batch && !m.of_length) return m.more;
    if (m.times == 1 && !m.of_length && !m.more) return CLT_BATCH;
    if (m.times == 1 && !m.of_batch) return CLT_LENGTH + m.more;
    int64_t kind = !m.of_batch ? 0 : m.of_length ? 2 : 1;
    return CLT_LENGTH + kind * batches + m.times * range + m.more;
}

bool clt_dim_multiple(int64_t dim, clt_multiple *m) {
    *m = (clt_multiple){.of_batch = dim == CLT_BATCH, .of_length = clt_dim_is_length(dim), .times = 1};
    if (m->of_length) m->more = dim - CLT_LENGTH;
    if (m->of_batch || m->of_length) return true;
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

int64_t clt_dim_times(int64_t dim, int64_t by) {
    clt_multiple m;
    if (dim >= 0) return __builtin_mul_overflow(dim, by, &dim) ? -1 : dim;
    if (!clt_dim_multiple(dim, &m)) return -1;
    m.times *= by;
    m.more *= by;
    return m.times <= CLT_MOST_TIMES && m.more >= -INT32_MAX && m.more <= INT32_MAX ? clt_multiple_dim(m) : -1;
}

int64_t clt_multiple_size(clt_multiple m, int64_t batch, int64_t length) {
    int64_t size = m.of_length ? length : batch, dim;
    if (!m.of_batch && !m.of_length) return m.more;
    if (__builtin_mul_overflow(m.times, size, &dim) || __builtin_add_overflow(dim, m.more, &dim)) return 0;
    return m.of_batch && m.of_length && __builtin_mul_overflow(dim, batch, &dim) ? 0 : dim;
}

/* How many other batches, or lengths, there are among points at which nothing else differs from the first; *differs: the dimension does at some. */
static int others_of(const clt_size_point *points, int n, bool length, bool *differs) {
    int64_t others[CLT_MOST_POINTS];
    int n_others = 0;
    *differs = false;
    for (int i = 1; i < n; i++) {
        int64_t size = length ? points[i].length : points[i].batch;
        bool again = length ? points[i].batch != points->batch || size == points->length : points[i].length != points->length || size == points->batch;
        for (int j = 0; j < n_others && !again; j++) again = size == others[j];
        if (again) continue;
        others[n_others++] = size;
        *differs |= points[i].dim != points->dim;
    }
    return n_others;
}

/* The times and the number that lead through the first two points. */
static bool fit(const clt_size_point *points, int n, clt_multiple *m) {
    bool both = m->of_batch && m->of_length;
    int64_t size = m->of_length ? points->length : points->batch, at = points->dim / (both ? points->batch : 1), change;
    m->times = 0;
    for (int i = 1; i < n && !m->times; i++) {
        int64_t step = (m->of_length ? points[i].length : points[i].batch) - size;
        if (__builtin_sub_overflow(points[i].dim / (both ? points[i].batch : 1), at, &change)) return false;
        if (step) m->times = change / step;
    }
    return m->times >= 1 && m->times <= CLT_MOST_TIMES && !__builtin_mul_overflow(m->times, size, &m->more) && !__builtin_sub_overflow(at, m->more, &m->more) &&
           m->more >= -INT32_MAX && m->more <= INT32_MAX;
}

bool clt_multiple_through(const clt_size_point *points, int n, clt_multiple *m) {
    enum { SHORT = 4 }; /* such lengths are all tried */
    int n_batches = others_of(points, n, false, &m->of_batch), n_lengths = others_of(points, n, true, &m->of_length);
    bool enough = (!m->of_batch || n_batches > 1) && (!m->of_length || n_lengths > 1 || points->length <= SHORT), both = !m->of_batch || !m->of_length;
    for (int i = 1; i < n; i++) both |= points[i].batch != points->batch && points[i].length != points->length;
    m->more = points->dim;
    if (!enough || !both || ((m->of_batch || m->of_length) && !fit(points, n, m))) return false;
    for (int i = 0; i < n; i++)
        if (points[i].dim != clt_multiple_size(*m, points[i].batch, points[i].length)) return false;
    return true;
}

const char *clt_shape_text(const clt_shape *shape, char text[CLT_SHAPE_TEXT]) {
    size_t length = 0;
    text[length++] = '[';
    for (int i = 0; i < shape->rank && i < CLT_MAX_RANK && length < CLT_SHAPE_TEXT - 24; i++) {
        int64_t dim = shape->dims[i];
        const char *comma = i ? ", " : "";
        char *to = text + length;
        size_t room = CLT_SHAPE_TEXT - length;
        clt_multiple m;
        int k;
        if (clt_dim_is_of(dim, &k)) length += (size_t)snprintf(to, room, "%sx[%d]", comma, k);
        else if (!clt_dim_multiple(dim, &m)) length += (size_t)snprintf(to, room, "%s%lld", comma, (long long)dim);
        else if (dim == CLT_BATCH || dim == CLT_LENGTH) length += (size_t)snprintf(to, room, "%s%s", comma, m.of_batch ? "batch" : "length");
        else if (clt_dim_is_length(dim)) length += (size_t)snprintf(to, room, "%slength%+lld", comma, (long long)m.more);
        else {
            bool both = m.of_batch && m.of_length;
            length += (size_t)snprintf(to, room, "%s%s%lld %s%+lld%s", comma, both ? "batch (" : "", (long long)m.times, m.of_length ? "length" : "batch", (long long)m.more,
                                       both ? ")" : "");
        }
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
