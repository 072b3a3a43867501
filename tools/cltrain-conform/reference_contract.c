#include "tools/cltrain-conform/reference.h"

#include <string.h>

/* ---- matrix products ---- */

/* Batch dimensions of an operand of rank 2 or more. */
static clt_shape batch_of(const clt_shape *shape) {
    return shape_of(shape->rank - 2, shape->dims);
}

/* Where the matrix of a batch index begins. */
static int64_t matrix_place(const array *a, const clt_shape *batch, const int64_t *index) {
    int rank = a->shape.rank - 2;
    int64_t place = 0;
    for (int d = 0; d < rank; d++)
        place = place * a->shape.dims[d] + (a->shape.dims[d] == 1 ? 0 : index[batch->rank - rank + d]);
    return place * a->shape.dims[rank] * a->shape.dims[rank + 1];
}

double reference_matmul(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    const array *a = &x[0], *b = &x[1];
    const int64_t *da = a->shape.dims + a->shape.rank - 2, *db = b->shape.dims + b->shape.rank - 2;
    bool ta = at->matmul.transpose_a, tb = at->matmul.transpose_b;
    int64_t rows = da[ta], depth = da[!ta], columns = db[!tb], index[CLT_MAX_RANK] = {0}, place = 0;
    clt_shape batch_a = batch_of(&a->shape), batch_b = batch_of(&b->shape),
              batch = shape_broadcast(&batch_a, &batch_b);
    clt_shape shape = batch;
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    array_resize(y, shape);
    do {
        const double *pa = a->values + matrix_place(a, &batch, index), *pb = b->values + matrix_place(b, &batch, index);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += pa[ta ? k * rows + i : i * depth + k] * pb[tb ? j * depth + k : k * columns + j];
                y->values[place++] = sum;
            }
    } while (index_next(&batch, index));
    return (double)place * (double)depth;
}

static void clear(array *a, clt_shape shape) {
    array_resize(a, shape);
    for (int64_t i = 0; i < array_count(a); i++) a->values[i] = 0;
}

/* One product's share: da += dy b^T, or db += a^T dy, as the operands lie. */
static void matmul_gradient(const double *a, const double *b, const double *dy, double *dx, bool by_a,
                            const int64_t *sizes, const clt_matmul_options *o) {
    int64_t rows = sizes[0], depth = sizes[1], columns = sizes[2];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < columns; j++) {
                int64_t at_a = o->transpose_a ? k * rows + i : i * depth + k;
                int64_t at_b = o->transpose_b ? j * depth + k : k * columns + j;
                dx[by_a ? at_a : at_b] += dy[i * columns + j] * (by_a ? b[at_b] : a[at_a]);
            }
}

void reference_matmul_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    const array *a = &x[0], *b = &x[1];
    const int64_t *da = a->shape.dims + a->shape.rank - 2, *db = b->shape.dims + b->shape.rank - 2;
    bool ta = at->matmul.transpose_a, tb = at->matmul.transpose_b;
    const int64_t sizes[] = {da[ta], da[!ta], db[!tb]};
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    clt_shape batch = batch_of(&dy->shape);
    clear(dx, x[i].shape);
    do {
        matmul_gradient(a->values + matrix_place(a, &batch, index), b->values + matrix_place(b, &batch, index),
                        dy->values + place, dx->values + matrix_place(dx, &batch, index), i == 0, sizes, &at->matmul);
        place += sizes[0] * sizes[2];
    } while (index_next(&batch, index));
}

/* The product of two, and a third of its shape. */
double reference_matmul_add(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    double work = reference_matmul(x, n, y, at, evaluation);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] += x[2].values[i];
    return work;
}

void reference_matmul_add_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    if (i < 2) {
        reference_matmul_gradient(x, i, dy, dx, at);
        return;
    }
    array_resize(dx, dy->shape);
    memcpy(dx->values, dy->values, (size_t)array_count(dy) * sizeof *dx->values);
}

/* x, weight [out, in], bias [out] if there are three. */
double reference_linear(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)at, (void)evaluation;
    int64_t in = x[1].shape.dims[1], out = x[1].shape.dims[0], rows = array_count(&x[0]) / in;
    clt_shape shape = x[0].shape;
    shape.dims[shape.rank - 1] = out;
    array_resize(y, shape);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < out; j++) {
            double sum = n == 3 ? x[2].values[j] : 0;
            for (int64_t k = 0; k < in; k++) sum += x[0].values[i * in + k] * x[1].values[j * in + k];
            y->values[i * out + j] = sum;
        }
    return (double)(rows * out) * (double)in;
}

/* ---- convolution ---- */

typedef struct filter {
    int64_t stride[2], padding[2], dilation[2], groups;
} filter;

static int64_t either(int own, int both, int standard) {
    return own ? own : both ? both : standard;
}

static filter filter_of(const clt_conv2d_options *o) {
    return (filter){{either(o->stride_h, o->stride, 1), either(o->stride_w, o->stride, 1)},
                    {either(o->padding_h, o->padding, 0), either(o->padding_w, o->padding, 0)},
                    {either(o->dilation_h, o->dilation, 1), either(o->dilation_w, o->dilation, 1)},
                    o->groups ? o->groups : 1};
}

/* Where tap (i, j) of pixel y is in a channel of its image; -1: outside. */
static inline int64_t tap_place(const int64_t *in, const filter *f, const int64_t *y, int64_t channel, int64_t i, int64_t j) {
    int64_t row = y[2] * f->stride[0] - f->padding[0] + i * f->dilation[0];
    int64_t column = y[3] * f->stride[1] - f->padding[1] + j * f->dilation[1];
    bool inside = row >= 0 && row < in[2] && column >= 0 && column < in[3];
    return inside ? ((y[0] * in[1] + channel) * in[2] + row) * in[3] + column : -1;
}

static double one_pixel(const array *x, const array *w, const filter *f, const int64_t *y) {
    const int64_t *k = w->shape.dims;
    int64_t group = y[1] / (k[0] / f->groups), weight = y[1] * k[1] * k[2] * k[3];
    double sum = 0;
    for (int64_t c = 0; c < k[1]; c++)
        for (int64_t i = 0; i < k[2]; i++)
            for (int64_t j = 0; j < k[3]; j++, weight++) {
                int64_t from = tap_place(x->shape.dims, f, y, group * k[1] + c, i, j);
                if (from >= 0) sum += x->values[from] * w->values[weight];
            }
    return sum;
}

/* Adds what one pixel, whose gradient is dy, gives the gradient of the image, or of the weight. */
static void one_gradient(const array *x, const array *w, const filter *f, const int64_t *y, double dy, bool by_image,
                         array *dx) {
    const int64_t *k = w->shape.dims;
    int64_t group = y[1] / (k[0] / f->groups), weight = y[1] * k[1] * k[2] * k[3];
    for (int64_t c = 0; c < k[1]; c++)
        for (int64_t i = 0; i < k[2]; i++)
            for (int64_t j = 0; j < k[3]; j++, weight++) {
                int64_t from = tap_place(x->shape.dims, f, y, group * k[1] + c, i, j);
                if (from >= 0 && by_image) dx->values[from] += dy * w->values[weight];
                else if (from >= 0) dx->values[weight] += dy * x->values[from];
            }
}

/* x, weight [out, in / groups, kh, kw], bias [out] if there are three. */
double reference_conv2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    filter f = filter_of(&at->conv);
    const int64_t *k = x[1].shape.dims;
    clt_shape shape = {4, {x[0].shape.dims[0], k[0]}};
    for (int d = 0; d < 2; d++)
        shape.dims[2 + d] =
            (x[0].shape.dims[2 + d] + 2 * f.padding[d] - f.dilation[d] * (k[2 + d] - 1) - 1) / f.stride[d] + 1;
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    do y->values[place++] = one_pixel(&x[0], &x[1], &f, index) + (n == 3 ? x[2].values[index[1]] : 0);
    while (index_next(&shape, index));
    return 3.0 * (double)place * (double)(k[1] * k[2] * k[3]);
}

void reference_conv2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    filter f = filter_of(&at->conv);
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    clear(dx, x[i].shape);
    do {
        double value = dy->values[place++];
        if (i == 2) dx->values[index[1]] += value;
        else one_gradient(&x[0], &x[1], &f, index, value, i == 0, dx);
    } while (index_next(&dy->shape, index));
}
