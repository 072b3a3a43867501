/*
 * Images, for what the tests compute an op should give: plainly, from its definition, element by element.
 */
#ifndef CLT_TESTS_OPS_REFERENCE_H
#define CLT_TESTS_OPS_REFERENCE_H

#include "tools/cltrain-conform/array.h"

/* The element of an array of rank 4. */
double ref_at4(const array *x, int64_t n, int64_t c, int64_t h, int64_t w);
/* x[n, c, h, w], or `outside` where h or w lie beyond the image. */
double ref_pixel(const array *x, int64_t n, int64_t c, int64_t h, int64_t w, double outside);

#endif
