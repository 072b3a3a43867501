/* Pooling. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

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
    int64_t first[2], end[2];
    for (int d = 0; d < 2; d++) {
        int64_t start = y[2 + d] * w->stride[d] - w->padding[d], size = x->shape.dims[2 + d];
        first[d] = start < 0 ? 0 : start;
        end[d] = start + w->size[d] < size ? start + w->size[d] : size;
    }
    for (int64_t row = first[0]; row < end[0]; row++)
        for (int64_t column = first[1]; column < end[1]; column++) {
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

static double reference_max_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool(x, y, at, true);
}

static void reference_max_pool2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i;
    window w = window_of(&at->pool);
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_clear(dx, x->shape);
    do dx->values[pool_one(x, &w, index).place] += dy->values[place++];
    while (index_next(&dy->shape, index));
}

static double reference_avg_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
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

static double reference_max_pool2d_last(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool_last(x, y, at, true);
}

static double reference_avg_pool2d_last(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, pool_last(x, y, at, false);
}

static double reference_global_avg_pool2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
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

/* ---- cases ---- */

BUILD(max_pool2d, clt_max_pool2d_with(x[0], at->pool))

static clt_tensor *last_conv(clt_tensor *x, clt_tensor *weight, const attributes *at) {
    return clt_conv2d_op(x, weight, NULL, at->conv);
}
BUILD(max_pool2d_last,
      last_conv(clt_max_pool2d_with(clt_conv2d_op(x[0], x[1], NULL, at->conv), at->pool), x[2], at))
BUILD(avg_pool2d_last,
      last_conv(clt_avg_pool2d_with(clt_conv2d_op(x[0], x[1], NULL, at->conv), at->pool), x[2], at))
BUILD(avg_pool2d, clt_avg_pool2d_with(x[0], at->pool))
BUILD(global_avg_pool2d, clt_global_avg_pool2d(x[0]))

static const operation max_pool = OPERATION("max_pool2d", "clt_max_pool2d_with", max_pool2d, max_pool2d, .ulp = 1);
/* The gradient goes to the first of equals. */
static const operation max_pool_ties = OPERATION("max_pool2d", "clt_max_pool2d_with", max_pool2d,
    max_pool2d, .gradient = reference_max_pool2d_gradient, .ulp = 1);
static const operation avg_pool = OPERATION("avg_pool2d", "clt_avg_pool2d_with", avg_pool2d, avg_pool2d);
static const operation max_pool_last = OPERATION("max_pool2d", "clt_max_pool2d_with clt_conv2d_op",
    max_pool2d_last, max_pool2d_last);
static const operation avg_pool_last = OPERATION("avg_pool2d", "clt_avg_pool2d_with clt_conv2d_op",
    avg_pool2d_last, avg_pool2d_last);
static const operation global_pool = OPERATION("global_avg_pool2d", "clt_global_avg_pool2d",
    global_avg_pool2d, global_avg_pool2d);

static void add_pool(case_list *list, const operation *op, bool full, const char *variant, const operand *x, clt_pool2d_options o) {
    test_case *c = case_add(list, op, variant, x, 1);
    c->at.pool = o;
    c->full = full;
    c->large = clt_shape_elements(&x->shape) > 20000;
}

static void add_pools(case_list *list, bool full, const char *variant, const operand *x, clt_pool2d_options o) {
    add_pool(list, &max_pool, full, variant, x, o);
    add_pool(list, &avg_pool, full, variant, x, o);
    o.exclude_padding = true;
    if (o.padding || o.padding_h) add_pool(list, &avg_pool, full, "inside", x, o);
}

#define POOL(full, variant, image, ...) \
    add_pools(list, full, variant, &(operand){.shape = image, .distinct = true}, (clt_pool2d_options){__VA_ARGS__})
/* All below zero: padding that counted as 0 would be a maximum. */
#define POOL_BELOW_0(variant, image, ...)                                                               \
    add_pools(list, false, variant, &(operand){.shape = image, .distinct = true, .low = -3, .high = -1}, \
              (clt_pool2d_options){__VA_ARGS__})

/* Between convolutions images may lie channels-last, for which there are other kernels: loops over 64 channels. */
static void add_last_pool(case_list *list, const operation *op, const char *variant, const operand *x, int n,
                          clt_pool2d_options o) {
    test_case *c = case_add(list, op, variant, x, n);
    c->at.conv = (clt_conv2d_options){.padding = x[1].shape.dims[2] / 2, .no_bias = true};
    c->at.pool = o;
    c->classes = true;
    c->full = true;
}

static void add_last_pools(case_list *list) {
    clt_pool2d_options even = {.kernel = 3, .stride = 2, .padding = 1},
                       uneven = {.kernel_h = 3, .kernel_w = 4, .stride_h = 2, .stride_w = 3, .padding_h = 1, .padding_w = 2};
    const operation *ops[] = {&max_pool_last, &avg_pool_last};
    for (int i = 0; i < 2; i++) {
        add_last_pool(list, ops[i], "between-convs", X(F(2, 16, 9, 7), F(19, 16, 3, 3), F(17, 19, 3, 3)), even);
        add_last_pool(list, ops[i], "between-convs", X(F(1, 8, 5, 4), F(67, 8, 1, 1), F(9, 67, 1, 1)), even);
        add_last_pool(list, ops[i], "uneven-between-convs", X(F(2, 8, 9, 7), F(11, 8, 1, 1), F(9, 11, 1, 1)), uneven);
    }
    uneven.exclude_padding = true;
    add_last_pool(list, &avg_pool_last, "inside-between-convs", X(F(2, 8, 9, 7), F(11, 8, 1, 1), F(9, 11, 1, 1)), uneven);
}

/* One channel lies channels-last as well. */
static void add_ties(case_list *list, const char *variant, clt_shape image, clt_pool2d_options o, int n_special) {
    operand x = {.shape = image, .whole = true, .special = {NAN, NAN, INFINITY, -INFINITY}, .n_special = n_special};
    test_case *c = case_add(list, &max_pool_ties, variant, &x, 1);
    c->at.pool = o;
}

void cases_pool(case_list *list) {
    POOL(false, "k2", SHAPE(2, 3, 7, 9), .kernel = 2);
    POOL(false, "k2", SHAPE(2, 3, 6, 8), .kernel = 2); /* by fours, where there are kernels for that */
    POOL(false, "k3", SHAPE(2, 2, 6, 12), .kernel = 3);
    POOL(false, "k3-s2-p1", SHAPE(2, 5, 8, 7), .kernel = 3, .stride = 2, .padding = 1);
    POOL(true, "k1", SHAPE(1, 1, 1, 1), .kernel = 1);
    POOL(true, "k3-s1", SHAPE(1, 16, 6, 5), .kernel = 3, .stride = 1);
    POOL(true, "uneven", SHAPE(2, 3, 11, 8), .kernel_h = 4, .kernel_w = 2, .stride_h = 3, .stride_w = 1,
         .padding_h = 1);
    POOL(true, "whole", SHAPE(3, 17, 4, 5), .kernel_h = 4, .kernel_w = 5);
    POOL(true, "large", SHAPE(3, 13, 23, 19), .kernel = 2);
    POOL(false, "plane", SHAPE(3, 1, 8, 7), .kernel = 3, .stride = 2, .padding = 1);
    POOL_BELOW_0("k3-p1", SHAPE(1, 2, 6, 5), .kernel = 3, .stride = 1, .padding = 1);
    POOL_BELOW_0("k2x3-s1x2-p1x0", SHAPE(2, 1, 5, 7), .kernel_h = 2, .kernel_w = 3, .stride_h = 1, .stride_w = 2, .padding_h = 1);
    POOL_BELOW_0("k3x1-s1-p1x0", SHAPE(1, 3, 4, 3), .kernel_h = 3, .kernel_w = 1, .stride = 1, .padding_h = 1);
    POOL_BELOW_0("k1", SHAPE(2, 2, 3, 5), .kernel = 1);
    POOL_BELOW_0("k1-s2", SHAPE(1, 2, 5, 5), .kernel = 1, .stride = 2);
    POOL_BELOW_0("k2-s3", SHAPE(1, 2, 8, 7), .kernel = 2, .stride = 3);
    POOL_BELOW_0("whole", SHAPE(3, 2, 5, 4), .kernel_h = 5, .kernel_w = 4);
    POOL_BELOW_0("k4-p2", SHAPE(1, 1, 1, 1), .kernel = 4, .stride = 1, .padding = 2);
    POOL_BELOW_0("largest", SHAPE(1, 2, 3, 4), .kernel = 32767, .padding = 16383);
    /* More rounds than a work-item may make (see cl/prelude.cl). */
    POOL(false, "parts", SHAPE(1, 1, 132, 131), .kernel = 131, .stride = 1);
    POOL(true, "huge", SHAPE(1, 1, 261, 262), .kernel = 260, .stride = 1);
    POOL(true, "wide", SHAPE(1, 1, 4, 32768), .kernel_h = 3, .kernel_w = 32767, .stride_h = 1, .stride_w = 1);
    add_last_pools(list);
    add_ties(list, "equal", (clt_shape)SHAPE(5, 1, 8, 7), (clt_pool2d_options){.kernel = 3, .stride = 2, .padding = 1}, 0);
    add_ties(list, "not-finite", (clt_shape)SHAPE(5, 1, 7, 9), (clt_pool2d_options){.kernel = 3, .stride = 2}, 4);
    case_add(list, &global_pool, "", X(F(2, 3, 5, 7)));
    case_add(list, &global_pool, "", X(F(1, 17, 1, 1)))->full = true;
    case_add(list, &global_pool, "", X(F(3, 5, 19, 17)))->full = true;
}
