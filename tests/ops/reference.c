#include "tests/support.h"

#include <math.h>
#include <stdlib.h>

#include "tests/ops/reference.h"

void ref_resize(ref_array *array, clt_shape shape) {
    size_t count = (size_t)clt_shape_elements(&shape);
    if (count > array->capacity) {
        array->values = realloc(array->values, count * sizeof *array->values);
        assert_non_null(array->values);
        array->capacity = count;
    }
    array->shape = shape;
}

void ref_free(ref_array *array) {
    free(array->values);
    *array = (ref_array){0};
}

int64_t ref_count(const ref_array *array) {
    return clt_shape_elements(&array->shape);
}

bool ref_next(const clt_shape *shape, int64_t index[CLT_MAX_RANK]) {
    for (int d = shape->rank - 1; d >= 0; d--) {
        if (++index[d] < shape->dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

int64_t ref_offset(const clt_shape *shape, const int64_t *index) {
    int64_t offset = 0;
    for (int d = 0; d < shape->rank; d++) offset = offset * shape->dims[d] + index[d];
    return offset;
}

clt_shape ref_broadcast_shape(const clt_shape *a, const clt_shape *b) {
    clt_shape result = a->rank >= b->rank ? *a : *b;
    const clt_shape *other = a->rank >= b->rank ? b : a;
    for (int back = 1; back <= other->rank; back++) {
        int64_t size = other->dims[other->rank - back];
        if (size != 1) result.dims[result.rank - back] = size;
    }
    return result;
}

double ref_broadcast_at(const ref_array *array, const clt_shape *result, const int64_t *index) {
    int64_t own[CLT_MAX_RANK];
    int lead = result->rank - array->shape.rank;
    for (int d = 0; d < array->shape.rank; d++) own[d] = array->shape.dims[d] == 1 ? 0 : index[lead + d];
    return array->values[ref_offset(&array->shape, own)];
}

double ref_at4(const ref_array *array, int64_t n, int64_t c, int64_t h, int64_t w) {
    return array->values[ref_offset(&array->shape, (int64_t[]){n, c, h, w})];
}

double ref_pixel(const ref_array *array, int64_t n, int64_t c, int64_t h, int64_t w, double outside) {
    bool inside = h >= 0 && h < array->shape.dims[2] && w >= 0 && w < array->shape.dims[3];
    return inside ? ref_at4(array, n, c, h, w) : outside;
}

double ref_log_sum_exp(const double *values, int64_t n, int64_t stride) {
    double most = values[0];
    for (int64_t i = 1; i < n; i++) most = fmax(most, values[i * stride]);
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += expl((long double)values[i * stride] - most);
    return (double)(most + logl(sum));
}

uint64_t ref_random_bits(ref_random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double ref_random_uniform(ref_random *random) {
    return (double)(ref_random_bits(random) >> 11) * 0x1p-53;
}

int64_t ref_random_below(ref_random *random, int64_t limit) {
    return (int64_t)(ref_random_bits(random) % (uint64_t)limit);
}
