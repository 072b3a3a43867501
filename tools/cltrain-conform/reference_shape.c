#include "tools/cltrain-conform/reference.h"

#include <math.h>
#include <string.h>

double reference_reshape(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    array_resize(y, at->shape);
    memcpy(y->values, x->values, (size_t)array_count(y) * sizeof *y->values);
    return (double)array_count(y);
}

double reference_permute(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, from[CLT_MAX_RANK], place = 0;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->shape.dims[at->order[d]];
    array_resize(y, shape);
    do {
        for (int d = 0; d < shape.rank; d++) from[at->order[d]] = index[d];
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

double reference_concat(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int i = 1; i < n; i++) shape.dims[at->axis] += x[i].shape.dims[at->axis];
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        int which = 0;
        memcpy(from, index, sizeof from);
        while (from[at->axis] >= x[which].shape.dims[at->axis])
            from[at->axis] -= x[which++].shape.dims[at->axis];
        y->values[place++] = x[which].values[index_place(&x[which].shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

double reference_slice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0, size = x->shape.dims[at->axis];
    int64_t first = at->first < 0 ? at->first + size : at->first,
            last = at->last < 0 ? at->last + size : at->last;
    shape.dims[at->axis] = (last - first + at->step - 1) / at->step;
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        memcpy(from, index, sizeof from);
        from[at->axis] = first + index[at->axis] * at->step;
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

double reference_pad(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] += at->before[d] + at->after[d];
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        bool inside = true;
        for (int d = 0; d < shape.rank; d++) {
            from[d] = index[d] - at->before[d];
            inside &= from[d] >= 0 && from[d] < x->shape.dims[d];
        }
        y->values[place++] = inside ? x->values[index_place(&x->shape, from)] : (double)at->s[0];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

double reference_expand(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_resize(y, at->shape);
    do y->values[place++] = array_broadcast_at(x, &y->shape, index);
    while (index_next(&y->shape, index));
    return 8.0 * (double)place;
}

/* weight [count, width], after the indices. */
double reference_embedding(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t width = x[1].shape.dims[1], count = array_count(x);
    clt_shape shape = x[0].shape;
    shape.dims[shape.rank++] = width;
    array_resize(y, shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = (int64_t)x[0].values[i];
        bool inside = row >= 0 && row < x[1].shape.dims[0];
        for (int64_t k = 0; k < width; k++) y->values[i * width + k] = inside ? x[1].values[row * width + k] : NAN;
    }
    return (double)array_count(y);
}

/* Of the table. */
void reference_embedding_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, (void)at;
    int64_t rows = x[1].shape.dims[0], width = x[1].shape.dims[1];
    for (int64_t k = 0; k < rows * width; k++) dx->values[k] = 0;
    for (int64_t p = 0; p < array_count(x); p++) {
        int64_t row = (int64_t)x[0].values[p];
        for (int64_t k = 0; k < width && row >= 0 && row < rows; k++)
            dx->values[row * width + k] += dy->values[p * width + k];
    }
}

/* ---- dropout: Philox4x32-10 (Salmon et al. 2011) ---- */

static void philox(uint32_t counter[4], uint32_t k0, uint32_t k1) {
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter[0], b = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter[3] ^ k1, (uint32_t)a};
        memcpy(counter, next, sizeof next);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

bool reference_dropout_keeps(int64_t i, int site, uint64_t step, uint64_t seed, double p) {
    uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)site, (uint32_t)step, (uint32_t)(step >> 32)};
    philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (double)counter[i % 4] >= p * 4294967296.0;
}

/* Site after site of a graph, with seed and step 0. */
static double drop_out(const array *x, array *y, const attributes *at, bool evaluation, int sites) {
    array_resize(y, x->shape);
    double p = evaluation ? 0 : (double)at->s[0];
    for (int64_t i = 0; i < array_count(y); i++) {
        y->values[i] = x->values[i];
        for (int site = 0; site < sites; site++)
            y->values[i] = reference_dropout_keeps(i, site, 0, 0, p) ? y->values[i] / (1 - p) : 0;
    }
    return 40.0 * sites * (double)array_count(y);
}

double reference_dropout(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, drop_out(x, y, at, evaluation, 1);
}
double reference_dropout_twice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, drop_out(x, y, at, evaluation, 2);
}

/* y = s0 a b + b^2, by kernels of the caller's. */
double reference_user(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++)
        y->values[i] = (double)at->s[0] * x[0].values[i] * x[1].values[i] + x[1].values[i] * x[1].values[i];
    return 4.0 * (double)array_count(y);
}
