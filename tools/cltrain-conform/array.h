/*
 * Arrays of doubles, with which is computed what a device should give: plainly, from each op's definition.
 */
#ifndef CONFORM_ARRAY_H
#define CONFORM_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cltrain/tensor.h>

typedef struct array {
    clt_shape shape;
    double *at; /* row-major */
    size_t capacity;
} array;

/* Gives the array another shape; what it holds is undefined then. Begins with {0}. Ends the process without memory: it is a child. */
void array_resize(array *a, clt_shape shape);
void array_free(array *a);
int64_t array_count(const array *a);

clt_shape shape_of(int rank, const int64_t *dims);
/* The next index in row-major order; false behind the last. Begins with zeros. */
bool index_next(const clt_shape *shape, int64_t index[CLT_MAX_RANK]);
/* The place of an index in memory. */
int64_t index_place(const clt_shape *shape, const int64_t *index);
/* NumPy's broadcasting. */
clt_shape shape_broadcast(const clt_shape *a, const clt_shape *b);
double array_broadcast_at(const array *a, const clt_shape *result, const int64_t *index);

/* Random numbers: splitmix64 (Steele, Lea, Flood 2014). */
typedef struct random_stream {
    uint64_t state;
} random_stream;
random_stream random_of(const char *text); /* a stream that a name selects */
uint64_t random_bits(random_stream *r);
double random_uniform(random_stream *r); /* in [0, 1) */
int64_t random_below(random_stream *r, int64_t limit);

#endif
