/*
 * Arrays of doubles, with which the tests compute what an op should give: plainly,
 * from its definition, element by element.
 */
#ifndef CLT_TESTS_OPS_REFERENCE_H
#define CLT_TESTS_OPS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include <cltrain/tensor.h>

typedef struct ref_array {
    clt_shape shape;
    double *values; /* row-major */
    size_t capacity;
} ref_array;

/* Gives the array another shape; what it holds is undefined then. Starts from {0}. */
void ref_resize(ref_array *array, clt_shape shape);
void ref_free(ref_array *array);
int64_t ref_count(const ref_array *array);

/* The next index in row-major order; false after the last. Starts from all zeros. */
bool ref_next(const clt_shape *shape, int64_t index[CLT_MAX_RANK]);
/* The place of an index in memory. */
int64_t ref_offset(const clt_shape *shape, const int64_t *index);

/* NumPy's broadcasting: the common shape, and what a result's element sees of an operand. */
clt_shape ref_broadcast_shape(const clt_shape *a, const clt_shape *b);
double ref_broadcast_at(const ref_array *array, const clt_shape *result, const int64_t *index);

/* The element of an array of rank 4. */
double ref_at4(const ref_array *array, int64_t n, int64_t c, int64_t h, int64_t w);
/* x[n, c, h, w], or `outside` where h or w lie beyond the image. */
double ref_pixel(const ref_array *array, int64_t n, int64_t c, int64_t h, int64_t w, double outside);

/* log(sum(exp(values[i * stride]))) of n values, without overflow. */
double ref_log_sum_exp(const double *values, int64_t n, int64_t stride);

/* A stream of random numbers of the tests' own: splitmix64 (Steele, Lea, Flood 2014). */
typedef struct ref_random {
    uint64_t state;
} ref_random;
uint64_t ref_random_bits(ref_random *random);
double ref_random_uniform(ref_random *random); /* in [0, 1) */
int64_t ref_random_below(ref_random *random, int64_t limit);

#endif
