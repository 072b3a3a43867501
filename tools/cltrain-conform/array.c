#include "tools/cltrain-conform/array.h"

#include <math.h>
#include <stdlib.h>

void array_resize(array *a, clt_shape shape) {
    size_t count = (size_t)clt_shape_elements(&shape);
    if (count > a->capacity) {
        free(a->values);
        a->values = malloc(count * sizeof *a->values);
        if (!a->values) exit(3);
        a->capacity = count;
    }
    a->shape = shape;
}

void array_clear(array *a, clt_shape shape) {
    array_resize(a, shape);
    for (int64_t i = 0; i < array_count(a); i++) a->values[i] = 0;
}

void array_free(array *a) {
    free(a->values);
    *a = (array){.values = NULL};
}

int64_t array_count(const array *a) {
    return clt_shape_elements(&a->shape);
}

/* ---- 16-bit floats ---- */

typedef struct half_format {
    int digits, bias; /* behind the point, and of the exponent */
} half_format;

static half_format format_of(clt_dtype dtype) {
    return dtype == CLT_F16 ? (half_format){10, 15} : (half_format){7, 127};
}

double float_roundoff(clt_dtype dtype) {
    return dtype == CLT_F16 || dtype == CLT_BF16 ? ldexp(1, -format_of(dtype).digits - 1) : 0;
}

double float_round(double value, clt_dtype dtype) {
    half_format f = format_of(dtype);
    int exponent, least = 1 - f.bias;
    if (float_roundoff(dtype) == 0 || !isfinite(value) || value == 0) return (double)(float)value;
    frexp(value, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    double nearest = ldexp(nearbyint(ldexp(value, f.digits - exponent)), exponent - f.digits);
    return fabs(nearest) >= ldexp(2, f.bias) ? copysign(INFINITY, value) : nearest;
}

uint16_t half_bits(double value, clt_dtype dtype) {
    half_format f = format_of(dtype);
    uint16_t sign = signbit(value) ? 0x8000 : 0, infinite = (uint16_t)((2 * f.bias + 1) << f.digits);
    double rounded = fabs(float_round(value, dtype));
    int exponent, least = 1 - f.bias;
    if (isnan(value)) return (uint16_t)(infinite | 1 << (f.digits - 1));
    if (isinf(rounded)) return sign | infinite;
    frexp(rounded, &exponent);
    if (rounded == 0 || exponent - 1 < least) return (uint16_t)(sign | (int)ldexp(rounded, f.digits - least));
    return (uint16_t)(sign | (exponent - 2 + f.bias) << f.digits) + (uint16_t)ldexp(rounded, f.digits - exponent + 1);
}

double half_value(uint16_t bits, clt_dtype dtype) {
    half_format f = format_of(dtype);
    int exponent = (bits & 0x7fff) >> f.digits, fraction = bits & ((1 << f.digits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 2 * f.bias + 1) return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp((1 << f.digits) + fraction, exponent - f.bias - f.digits) : ldexp(fraction, 1 - f.bias - f.digits));
}

clt_shape shape_of(int rank, const int64_t *dims) {
    clt_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) shape.dims[d] = dims[d];
    return shape;
}

bool index_next(const clt_shape *shape, int64_t index[CLT_MAX_RANK]) {
    for (int d = shape->rank - 1; d >= 0; d--) {
        if (++index[d] < shape->dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

int64_t index_place(const clt_shape *shape, const int64_t *index) {
    int64_t place = 0;
    for (int d = 0; d < shape->rank; d++) place = place * shape->dims[d] + index[d];
    return place;
}

clt_shape shape_broadcast(const clt_shape *a, const clt_shape *b) {
    clt_shape result = a->rank >= b->rank ? *a : *b;
    const clt_shape *other = a->rank >= b->rank ? b : a;
    for (int back = 1; back <= other->rank; back++) {
        int64_t size = other->dims[other->rank - back];
        if (size != 1) result.dims[result.rank - back] = size;
    }
    return result;
}

double array_broadcast_at(const array *a, const clt_shape *result, const int64_t *index) {
    int64_t own[CLT_MAX_RANK];
    int lead = result->rank - a->shape.rank;
    for (int d = 0; d < a->shape.rank; d++) own[d] = a->shape.dims[d] == 1 ? 0 : index[lead + d];
    return a->values[index_place(&a->shape, own)];
}

double log_sum_exp(const double *values, int64_t n, int64_t stride) {
    double most = values[0];
    for (int64_t i = 1; i < n; i++) most = fmax(most, values[i * stride]);
    long double sum = expl((long double)values[0] - most);
    for (int64_t i = 1; i < n; i++) sum += expl((long double)values[i * stride] - most);
    return (double)(most + logl(sum));
}

/* ---- comparing ---- */

static double error_of(double got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isinf(want) || !isfinite(got)) return got == want ? 0 : INFINITY;
    return fabs(got - want);
}

/* The distance of f32 values about there; below the normal ones it does not get smaller. */
static double ulp_at(double value) {
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

comparison array_compare(const array *got, const array *want, const int64_t *places, int64_t n) {
    comparison c = {.worst_error = -1};
    for (int64_t k = 0; k < n; k++) {
        int64_t i = places ? places[k] : k;
        double error = error_of(got->values[i], want->values[i]);
        if (error > c.worst_error) {
            c.worst_error = error;
            c.worst = i;
        }
        c.error_squared += error * error;
        if (!isfinite(want->values[i])) continue;
        c.want_squared += want->values[i] * want->values[i];
        c.scale = fmax(c.scale, fabs(want->values[i]));
        c.ulp = fmax(c.ulp, error / ulp_at(want->values[i]));
    }
    return c;
}

/* ---- random numbers ---- */

random_stream random_of(const char *text) {
    random_stream r = {0xcbf29ce484222325u}; /* FNV-1a */
    for (const char *c = text; *c; c++) r.state = (r.state ^ (unsigned char)*c) * 0x100000001b3u;
    return r;
}

uint64_t random_bits(random_stream *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double random_uniform(random_stream *r) {
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

int64_t random_below(random_stream *r, int64_t limit) {
    return (int64_t)(random_bits(r) % (uint64_t)limit);
}
