/*
 * Arrays of doubles, with which is computed what a device should give: plainly, from each op's definition. The suite and the tests
 * of the ops both do.
 */
#ifndef CONFORM_ARRAY_H
#define CONFORM_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/tensor.h>

typedef struct array {
    clt_shape shape;
    double *values; /* row-major */
    size_t capacity;
} array;

/* Gives the array another shape; what it holds is undefined then. Begins with {0}. Without memory the
 * process ends. */
void array_resize(array *a, clt_shape shape);
/* The same, and fills it with zeros. */
void array_clear(array *a, clt_shape shape);
void array_free(array *a);
int64_t array_count(const array *a);

/* ---- 16-bit floats, by arithmetic and not by bits, unlike the library ---- */

/* The largest relative error of rounding to a floating-point type: 2^-11 of f16, 2^-8 of bf16, 0 of f32, to which all values are drawn. */
double float_roundoff(clt_dtype dtype);
/* The nearest value of the type, ties to even; infinite if it is too large. Of other types the nearest f32. */
double float_round(double value, clt_dtype dtype);
/* A value of f16 or bf16 to its bits and back; all NaNs are one. */
uint16_t half_bits(double value, clt_dtype dtype);
double half_value(uint16_t bits, clt_dtype dtype);

clt_shape shape_of(int rank, const int64_t *dims);
/* The next index in row-major order; false behind the last. Begins with zeros. */
bool index_next(const clt_shape *shape, int64_t index[CLT_MAX_RANK]);
/* The place of an index in memory. */
int64_t index_place(const clt_shape *shape, const int64_t *index);
/* NumPy's broadcasting. */
clt_shape shape_broadcast(const clt_shape *a, const clt_shape *b);
double array_broadcast_at(const array *a, const clt_shape *result, const int64_t *index);

/* log(sum(exp(values[i * stride]))) of n values, without overflow. */
double log_sum_exp(const double *values, int64_t n, int64_t stride);

/* What a device gave beside what it should have. */
typedef struct comparison {
    double error_squared, want_squared; /* summed, of what is finite */
    double scale;                       /* the largest that is wanted */
    double ulp;                         /* the largest error in units of the last place of f32 */
    int64_t worst;
    double worst_error; /* infinite where one is not a number and the other is, or so with infinity */
} comparison;
/* Over the n elements at `places`, or the first n if that is NULL. */
comparison array_compare(const array *got, const array *want, const int64_t *places, int64_t n);

/* Random numbers: splitmix64 (Steele, Lea, Flood 2014). */
typedef struct random_stream {
    uint64_t state;
} random_stream;
random_stream random_of(const char *text); /* a stream that a name selects */
uint64_t random_bits(random_stream *r);
double random_uniform(random_stream *r); /* in [0, 1) */
int64_t random_below(random_stream *r, int64_t limit);

#endif
