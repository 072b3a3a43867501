#include "tools/cltrain-conform/reference.h"

#include <math.h>

/* ---- pooling ---- */

typedef struct window {
    int64_t size[2], stride[2], padding[2];
} window;

static window window_of(const clt_pool2d_options *o) {
    window w = {{o->kernel_h ? o->kernel_h : o->kernel, o->kernel_w ? o->kernel_w : o->kernel}, {0}, {0}};
    w.stride[0] = o->stride_h ? o->stride_h : o->stride ? o->stride : w.size[0];
    w.stride[1] = o->stride_w ? o->stride_w : o->stride ? o->stride : w.size[1];
    w.padding[0] = o->padding_h ? o->padding_h : o->padding;
    w.padding[1] = o->padding_w ? o->padding_w : o->padding;
    return w;
}

typedef struct pooled {
    double most, sum;
    int64_t inside, place; /* of the first that is the most */
} pooled;

static pooled pool_one(const array *x, const window *w, const int64_t *y) {
    pooled p = {-INFINITY, 0, 0, 0};
    for (int64_t i = 0; i < w->size[0]; i++)
        for (int64_t j = 0; j < w->size[1]; j++) {
            int64_t row = y[2] * w->stride[0] - w->padding[0] + i,
                    column = y[3] * w->stride[1] - w->padding[1] + j;
            if (row < 0 || row >= x->shape.dims[2] || column < 0 || column >= x->shape.dims[3]) continue;
            int64_t place = index_place(&x->shape, (int64_t[]){y[0], y[1], row, column});
            double value = x->values[place];
            /* NaN is larger than any number. */
            if (p.inside == 0 || value > p.most || (isnan(value) && !isnan(p.most))) p.most = value, p.place = place;
            p.sum += value;
            p.inside++;
        }
    return p;
}

static double pool(const array *x, array *y, const attributes *at, bool maximum) {
    window w = window_of(&at->pool);
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int d = 0; d < 2; d++)
        shape.dims[2 + d] = (x->shape.dims[2 + d] + 2 * w.padding[d] - w.size[d]) / w.stride[d] + 1;
    array_resize(y, shape);
    do {
        pooled p = pool_one(x, &w, index);
        int64_t divisor = at->pool.exclude_padding ? p.inside : w.size[0] * w.size[1];
        y->values[place++] = maximum ? p.most : p.sum / (double)divisor;
    } while (index_next(&shape, index));
    return 3.0 * (double)place * (double)(w.size[0] * w.size[1]);
}

double reference_max_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool(x, y, at, true);
}

void reference_max_pool2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i;
    window w = window_of(&at->pool);
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_resize(dx, x->shape);
    for (int64_t k = 0; k < array_count(dx); k++) dx->values[k] = 0;
    do dx->values[pool_one(x, &w, index).place] += dy->values[place++];
    while (index_next(&dy->shape, index));
}

double reference_avg_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool(x, y, at, false);
}

/* Of the convolution of x by x[1]; then that by x[2]. */
static double pool_last(const array *x, array *y, const attributes *at, bool maximum) {
    array image = {.values = NULL}, both[2] = {{.values = NULL}, x[2]};
    double work = reference_conv2d(x, 2, &image, at, false);
    work += pool(&image, &both[0], at, maximum);
    work += reference_conv2d(both, 2, y, at, false);
    array_free(&image), array_free(&both[0]);
    return work;
}

double reference_max_pool2d_last(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool_last(x, y, at, true);
}

double reference_avg_pool2d_last(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool_last(x, y, at, false);
}

double reference_global_avg_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t planes = x->shape.dims[0] * x->shape.dims[1], pixels = array_count(x) / planes;
    array_resize(y, (clt_shape){4, {x->shape.dims[0], x->shape.dims[1], 1, 1}});
    for (int64_t p = 0; p < planes; p++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += x->values[p * pixels + i];
        y->values[p] = sum / (double)pixels;
    }
    return (double)array_count(x);
}

/* ---- normalization ---- */

static double eps_of(const attributes *at) {
    return at->norm.eps > 0 ? (double)at->norm.eps : (double)1e-5f;
}

typedef struct moments {
    double mean, variance; /* of the n values, not corrected */
    int64_t n;
} moments;

/* x [N, C, rest]. */
static moments moments_of_channel(const array *x, int64_t c) {
    int64_t channels = x->shape.dims[1], samples = x->shape.dims[0], rest = array_count(x) / channels / samples;
    moments m = {0, 0, samples * rest};
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        for (int64_t s = 0; s < samples; s++)
            for (int64_t i = 0; i < rest; i++) {
                double v = x->values[(s * channels + c) * rest + i] - m.mean;
                sum += pass ? v * v : v;
            }
        if (pass) m.variance = sum / (double)m.n;
        else m.mean = sum / (double)m.n;
    }
    return m;
}

/* x, weight, bias, running mean, running variance. */
double reference_batch_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n;
    int64_t channels = x->shape.dims[1], rest = array_count(x) / channels / x->shape.dims[0];
    array_resize(y, x->shape);
    for (int64_t c = 0; c < channels; c++) {
        moments m = evaluation ? (moments){x[3].values[c], x[4].values[c], 0} : moments_of_channel(x, c);
        double scale = x[1].values[c] / sqrt(m.variance + eps_of(at));
        for (int64_t s = 0; s < x->shape.dims[0]; s++)
            for (int64_t i = 0; i < rest; i++) {
                int64_t place = (s * channels + c) * rest + i;
                y->values[place] = (x->values[place] - m.mean) * scale + x[2].values[c];
            }
    }
    return 6.0 * (double)array_count(x);
}

void reference_batch_norm_buffers(const array *x, int i, array *after, const attributes *at) {
    double momentum = at->norm.momentum > 0 ? (double)at->norm.momentum : (double)0.1f;
    array_resize(after, x[i].shape);
    for (int64_t c = 0; c < array_count(after); c++) {
        moments m = moments_of_channel(x, c);
        after->values[c] = x[i].values[c];
        if (!isfinite(m.mean) || !isfinite(m.variance)) continue;
        double unbiased = m.variance * (double)m.n / (double)(m.n > 1 ? m.n - 1 : 1);
        after->values[c] = (1 - momentum) * x[i].values[c] + momentum * (i == 3 ? m.mean : unbiased);
    }
}

/* The same of the convolution of x by x[1], whose other operands follow. */
static double norm_operands(const array *x, array *image, array operands[5], const attributes *at) {
    double work = reference_conv2d(x, 2, image, at, false);
    operands[0] = *image;
    for (int i = 1; i < 5; i++) operands[i] = x[i + 1];
    return work;
}

double reference_batch_norm_conv(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    array image = {.values = NULL}, operands[5];
    double work = norm_operands(x, &image, operands, at);
    work += reference_batch_norm(operands, n - 1, y, at, evaluation);
    array_free(&image);
    return work;
}

void reference_batch_norm_conv_buffers(const array *x, int i, array *after, const attributes *at) {
    array image = {.values = NULL}, operands[5];
    norm_operands(x, &image, operands, at);
    reference_batch_norm_buffers(operands, i - 1, after, at);
    array_free(&image);
}

/* x, weight, bias, over the dimensions of the weight. */
double reference_layer_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t width = array_count(&x[1]), rows = array_count(x) / width;
    array_resize(y, x->shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *from = x->values + r * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += from[i] / (double)width;
        for (int64_t i = 0; i < width; i++) variance += (from[i] - mean) * (from[i] - mean) / (double)width;
        double scale = 1 / sqrt(variance + eps_of(at));
        for (int64_t i = 0; i < width; i++)
            y->values[r * width + i] = (from[i] - mean) * scale * x[1].values[i] + x[2].values[i];
    }
    return 6.0 * (double)array_count(x);
}
