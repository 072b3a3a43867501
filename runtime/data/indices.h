/*
 * Which samples, in which order: 4 bytes each, or 8 where there are more than these can tell apart.
 */
#ifndef CLT_DATA_INDICES_H
#define CLT_DATA_INDICES_H

#include <stdint.h>

#include "runtime/base/base.h"
#include "runtime/base/random.h"

typedef struct clt_indices {
    uint32_t *narrow; /* or */
    int64_t *wide;    /* both NULL: there are none */
} clt_indices;

/* n of them, not initialized, each to be in [0, limit). */
static inline clt_status clt_indices_create(clt_indices *x, int64_t n, int64_t limit) {
    bool narrow = limit <= (int64_t)UINT32_MAX;
    size_t bytes;
    if (!clt_mul_size((size_t)n, narrow ? sizeof *x->narrow : sizeof *x->wide, &bytes)) return clt_fail_memory(SIZE_MAX);
    *x = (clt_indices){0};
    if (narrow) x->narrow = clt_alloc(bytes);
    else x->wide = clt_alloc(bytes);
    return x->narrow || x->wide ? CLT_OK : clt_fail_memory(bytes);
}

static inline void clt_indices_free(clt_indices *x) {
    clt_free(x->narrow);
    clt_free(x->wide);
    *x = (clt_indices){0};
}

static inline bool clt_indices_there(const clt_indices *x) {
    return x->narrow || x->wide;
}

/* i itself where there are none. */
static inline int64_t clt_indices_at(const clt_indices *x, int64_t i) {
    return x->narrow ? (int64_t)x->narrow[i] : x->wide ? x->wide[i] : i;
}

static inline void clt_indices_set(clt_indices *x, int64_t i, int64_t index) {
    if (x->narrow) x->narrow[i] = (uint32_t)index;
    else x->wide[i] = index;
}

/* x[i] = of[order[i]], i < count; `of` may be none, of n samples. */
static inline clt_status clt_indices_compose(clt_indices *x, const clt_indices *of, int64_t n, const int64_t *order, int64_t count) {
    CLT_TRY(clt_indices_create(x, count, of->wide ? INT64_MAX : of->narrow ? 0 : n));
    for (int64_t i = 0; i < count; i++) clt_indices_set(x, i, clt_indices_at(of, order[i]));
    return CLT_OK;
}

/* A random permutation of 0 … n - 1 (Fisher and Yates, in Durstenfeld's form). */
static inline void clt_indices_permute(clt_indices *x, int64_t n, clt_random *random) {
    for (int64_t i = 0; i < n; i++) clt_indices_set(x, i, i);
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)clt_random_below(random, (uint64_t)i + 1), kept = clt_indices_at(x, i);
        clt_indices_set(x, i, clt_indices_at(x, j));
        clt_indices_set(x, j, kept);
    }
}

#endif
