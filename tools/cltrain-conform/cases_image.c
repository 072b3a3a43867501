/* Pooling and normalization. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

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
BUILD(batch_norm, clt_batch_norm_with(x[0], "w", at->norm))
BUILD(layer_norm, clt_layer_norm_with(x[0], "w", at->axis, at->norm))

static const operation max_pool = {.name = "max_pool2d",
                                   .builders = "clt_max_pool2d_with",
                                   .build = build_max_pool2d,
                                   .reference = reference_max_pool2d,
                                   .ulp = 1};
/* The gradient goes to the first of equals. */
static const operation max_pool_ties = {.name = "max_pool2d",
                                        .builders = "clt_max_pool2d_with",
                                        .build = build_max_pool2d,
                                        .reference = reference_max_pool2d,
                                        .gradient = reference_max_pool2d_gradient,
                                        .ulp = 1};
static const operation avg_pool = {.name = "avg_pool2d",
                                   .builders = "clt_avg_pool2d_with",
                                   .build = build_avg_pool2d,
                                   .reference = reference_avg_pool2d};
static const operation max_pool_last = {.name = "max_pool2d",
                                        .builders = "clt_max_pool2d_with clt_conv2d_op",
                                        .build = build_max_pool2d_last,
                                        .reference = reference_max_pool2d_last};
static const operation avg_pool_last = {.name = "avg_pool2d",
                                        .builders = "clt_avg_pool2d_with clt_conv2d_op",
                                        .build = build_avg_pool2d_last,
                                        .reference = reference_avg_pool2d_last};
static const operation global_pool = {.name = "global_avg_pool2d",
                                      .builders = "clt_global_avg_pool2d",
                                      .build = build_global_avg_pool2d,
                                      .reference = reference_global_avg_pool2d};
/* Gradients of norms are what is left when terms about 1 cancel: all of them, with two values to a mean. */
const operation operation_batch_norm = {.name = "batch_norm",
                                        .builders = "clt_batch_norm_with",
                                        .build = build_batch_norm,
                                        .reference = reference_batch_norm,
                                        .buffer_after = reference_batch_norm_buffers,
                                        .tolerance = 1e-4,
                                        .floor = 1e-2};
/* NaN or infinity in a channel: its running statistics stay as they are. */
static const operation batch_norm_nan = {.name = "batch_norm",
                                         .builders = "clt_batch_norm_with",
                                         .build = build_batch_norm,
                                         .reference = reference_batch_norm,
                                         .buffer_after = reference_batch_norm_buffers,
                                         .no_gradient = true,
                                         .tolerance = 1e-4};
/* A mean of 1000 is known to some 1e-4 when it is summed in single precision, and so is what lies about it; but the mean of
 * squares to 0.1. */
static const operation batch_norm_mean = {.name = "batch_norm",
                                          .builders = "clt_batch_norm_with",
                                          .build = build_batch_norm,
                                          .reference = reference_batch_norm,
                                          .buffer_after = reference_batch_norm_buffers,
                                          .tolerance = 1e-3,
                                          .floor = 1e-1};
const operation operation_layer_norm = {.name = "layer_norm",
                                        .builders = "clt_layer_norm_with",
                                        .build = build_layer_norm,
                                        .reference = reference_layer_norm,
                                        .tolerance = 1e-4,
                                        .floor = 1e-2};
static const operation layer_norm_mean = {.name = "layer_norm",
                                          .builders = "clt_layer_norm_with",
                                          .build = build_layer_norm,
                                          .reference = reference_layer_norm,
                                          .tolerance = 1e-3,
                                          .floor = 1e-1};

static void add_pools(case_list *list, bool full, const char *variant, clt_shape image, clt_pool2d_options o) {
    operand x = {.shape = image, .distinct = true};
    test_case *c = case_add(list, &max_pool, variant, &x, 1);
    c->at.pool = o;
    c->full = full;
    c->large = clt_shape_elements(&image) > 20000;
    c = case_add(list, &avg_pool, variant, &x, 1);
    c->at.pool = o;
    c->full = full;
    c->large = clt_shape_elements(&image) > 20000;
    o.exclude_padding = true;
    if (!o.padding && !o.padding_h) return;
    c = case_add(list, &avg_pool, "inside", &x, 1);
    c->at.pool = o;
    c->full = full;
    c->large = clt_shape_elements(&image) > 20000;
}

#define POOL(full, variant, image, ...) \
    add_pools(list, full, variant, (clt_shape)image, (clt_pool2d_options){__VA_ARGS__})

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

static test_case *add_norm(case_list *list, bool full, const char *variant, bool evaluation, clt_shape shape,
                           clt_norm_options o) {
    int64_t c = shape.dims[1];
    operand x[] = {
        {.shape = shape, .low = -1, .high = 3},
        {.variable = "w.weight", .shape = SHAPE(c)},
        {.variable = "w.bias", .shape = SHAPE(c)},
        {.variable = "w.running_mean", .shape = SHAPE(c), .constant = true},
        {.variable = "w.running_var", .shape = SHAPE(c), .low = 0.5, .high = 2, .constant = true}};
    test_case *made = case_add(list, &operation_batch_norm, variant, x, 5);
    made->at.norm = o;
    made->evaluation = evaluation;
    made->full = full;
    made->large = clt_shape_elements(&shape) > 20000;
    return made;
}

static test_case *add_layer_norm(case_list *list, bool full, const char *variant, clt_shape shape, int dims) {
    operand x[] = {{.shape = shape, .low = -1, .high = 3}, {.variable = "w.weight"}, {.variable = "w.bias"}};
    x[1].shape = x[2].shape = shape_of(dims, shape.dims + shape.rank - dims);
    test_case *c = case_add(list, &operation_layer_norm, variant, x, 3);
    c->at.axis = dims;
    c->full = full;
    c->large = clt_shape_elements(&shape) > 20000;
    return c;
}

static void add_hard_norms(case_list *list) {
    clt_shape shape = SHAPE(4, 3, 5, 7);
    test_case *c = add_norm(list, false, "mean-1000", false, shape, (clt_norm_options){0});
    c->operation = &batch_norm_mean;
    c->x[0].low = 999, c->x[0].high = 1001;
    c = add_norm(list, true, "mean-1000", false, (clt_shape)SHAPE(5003, 3), (clt_norm_options){0}); /* long sums of an item */
    c->operation = &batch_norm_mean;
    c->x[0].low = 999, c->x[0].high = 1001;
    for (int i = 0; i < 2; i++) {
        c = add_layer_norm(list, i, "mean-1000", i ? (clt_shape)SHAPE(3, 16387) : (clt_shape)SHAPE(5, 67), 1);
        c->operation = &layer_norm_mean;
        c->x[0].low = 999, c->x[0].high = 1001;
    }
    /* Variances about eps, and of what is the same everywhere. */
    c = add_norm(list, false, "evaluation-small-variance", true, shape, (clt_norm_options){0});
    c->x[4].low = 1e-6, c->x[4].high = 3e-5;
    c = add_norm(list, false, "small-variance", false, shape, (clt_norm_options){0});
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_layer_norm(list, false, "small-variance", (clt_shape)SHAPE(131, 37), 1);
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_norm(list, true, "small-variance", false, (clt_shape)SHAPE(37, 5), (clt_norm_options){0});
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_layer_norm(list, true, "small-variance", (clt_shape)SHAPE(4, 7), 1);
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_norm(list, true, "constant", false, shape, (clt_norm_options){0});
    c->x[0].low = 1, c->x[0].high = 2, c->x[0].whole = true;
    c = add_layer_norm(list, true, "constant", (clt_shape)SHAPE(131, 37), 1);
    c->x[0].low = 1, c->x[0].high = 2, c->x[0].whole = true;
    for (int i = 0; i < 2; i++) {
        c = add_norm(list, false, i ? "infinite" : "not-finite", false, shape, (clt_norm_options){0});
        c->operation = &batch_norm_nan;
        c->x[0].special[0] = i ? INFINITY : NAN, c->x[0].n_special = 1;
    }
}

void cases_image(case_list *list) {
    POOL(false, "k2", SHAPE(2, 3, 7, 9), .kernel = 2);
    POOL(false, "k3-s2-p1", SHAPE(2, 5, 8, 7), .kernel = 3, .stride = 2, .padding = 1);
    POOL(true, "k1", SHAPE(1, 1, 1, 1), .kernel = 1);
    POOL(true, "k3-s1", SHAPE(1, 16, 6, 5), .kernel = 3, .stride = 1);
    POOL(true, "uneven", SHAPE(2, 3, 11, 8), .kernel_h = 4, .kernel_w = 2, .stride_h = 3, .stride_w = 1,
         .padding_h = 1);
    POOL(true, "whole", SHAPE(3, 17, 4, 5), .kernel_h = 4, .kernel_w = 5);
    POOL(true, "large", SHAPE(3, 13, 23, 19), .kernel = 2);
    POOL(false, "plane", SHAPE(3, 1, 8, 7), .kernel = 3, .stride = 2, .padding = 1);
    /* More rounds than a work-item may make (see cl/prelude.cl). */
    POOL(true, "huge", SHAPE(1, 1, 261, 262), .kernel = 260, .stride = 1);
    POOL(true, "wide", SHAPE(1, 1, 4, 32768), .kernel_h = 3, .kernel_w = 32767, .stride_h = 1, .stride_w = 1);
    add_last_pools(list);
    add_ties(list, "equal", (clt_shape)SHAPE(5, 1, 8, 7), (clt_pool2d_options){.kernel = 3, .stride = 2, .padding = 1}, 0);
    add_ties(list, "not-finite", (clt_shape)SHAPE(5, 1, 7, 9), (clt_pool2d_options){.kernel = 3, .stride = 2}, 4);
    case_add(list, &global_pool, "", X(F(2, 3, 5, 7)));
    case_add(list, &global_pool, "", X(F(1, 17, 1, 1)))->full = true;
    case_add(list, &global_pool, "", X(F(3, 5, 19, 17)))->full = true;
    add_norm(list, false, "", false, (clt_shape)SHAPE(4, 3, 5, 7), (clt_norm_options){0});
    add_norm(list, false, "evaluation", true, (clt_shape)SHAPE(4, 3, 5, 7), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(37, 5), (clt_norm_options){0});
    add_norm(list, true, "eps-momentum", false, (clt_shape)SHAPE(3, 1, 4, 1),
             (clt_norm_options){.eps = 1e-3f, .momentum = 0.3f});
    add_norm(list, true, "", false, (clt_shape)SHAPE(8, 33, 9, 7), (clt_norm_options){0});
    add_norm(list, true, "", false, (clt_shape)SHAPE(2, 3, 257), (clt_norm_options){0});
    add_norm(list, true, "evaluation", true, (clt_shape)SHAPE(1, 19, 1, 1), (clt_norm_options){0});
    add_norm(list, true, "longest", false, (clt_shape)SHAPE(1, 2, 2053, 2051), (clt_norm_options){0}); /* as for pools */
    add_norm(list, true, "parts", false, (clt_shape)SHAPE(3, 3, 257, 307), (clt_norm_options){0});     /* 78899 values of an image */
    add_layer_norm(list, false, "", (clt_shape)SHAPE(4, 7), 1);
    add_layer_norm(list, false, "dims-2", (clt_shape)SHAPE(2, 3, 4, 5), 2);
    add_layer_norm(list, false, "", (clt_shape)SHAPE(131, 37), 1); /* 4096 elements of an item */
    add_layer_norm(list, true, "", (clt_shape)SHAPE(451, 37), 1);  /* 442 rows of a chunk */
    add_layer_norm(list, true, "", (clt_shape)SHAPE(3, 1031), 1);
    add_layer_norm(list, true, "", (clt_shape)SHAPE(131, 3), 1);
    add_layer_norm(list, true, "", (clt_shape)SHAPE(1, 2), 1);
    add_layer_norm(list, true, "longest", (clt_shape)SHAPE(1, 2200001), 1); /* more rounds than a work-item may make */
    add_layer_norm(list, true, "parts", (clt_shape)SHAPE(3, 530003), 1);    /* and several rows of several parts */
    add_hard_norms(list);
}
