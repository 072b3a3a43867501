/* Matrix products, layers of them, and convolutions. */
#include "tools/cltrain-conform/cases.h"

#include <stdio.h>

BUILD(matmul, clt_matmul_with(x[0], x[1], at->matmul))
BUILD(matmul_plain, clt_matmul(x[0], x[1]))
BUILD(linear, clt_linear_with(x[0], "w", (clt_linear_options){.out_features = at->first, .no_bias = at->flag}))
BUILD(conv2d, clt_conv2d_with(x[0], "w", at->conv))
BUILD(conv2d_inside, clt_neg(clt_conv2d_with(clt_neg(x[0]), "w", at->conv)))
BUILD(conv2d_op, clt_conv2d_op(x[0], x[1], n == 3 ? x[2] : NULL, at->conv))

static const operation matmul = {.name = "matmul",
                                 .builders = "clt_matmul_with",
                                 .build = build_matmul,
                                 .reference = reference_matmul};
static const operation plain = {.name = "matmul",
                                .builders = "clt_matmul",
                                .build = build_matmul_plain,
                                .reference = reference_matmul};
static const operation linear = {.name = "linear",
                                 .builders = "clt_linear_with",
                                 .build = build_linear,
                                 .reference = reference_linear};
static const operation conv2d = {.name = "conv2d",
                                 .builders = "clt_conv2d_with",
                                 .build = build_conv2d,
                                 .reference = reference_conv2d};
/* Between other ops a plan lays images as a convolution's rows want them; without bias, it is the same convolution. */
static const operation conv2d_inside = {.name = "conv2d",
                                        .builders = "clt_conv2d_with",
                                        .build = build_conv2d_inside,
                                        .reference = reference_conv2d};
static const operation conv2d_op = {.name = "conv2d",
                                    .builders = "clt_conv2d_op",
                                    .build = build_conv2d_op,
                                    .reference = reference_conv2d};

static void add_matmul(case_list *list, bool full, int m, int k, int n, bool ta, bool tb) {
    operand x[2] = {F(m, k), F(k, n)};
    if (ta) x[0].shape = (clt_shape)SHAPE(k, m);
    if (tb) x[1].shape = (clt_shape)SHAPE(n, k);
    char variant[8];
    snprintf(variant, sizeof variant, "%s%s", ta ? "t" : "n", tb ? "t" : "n");
    test_case *c = case_add(list, &matmul, variant, x, 2);
    c->at.matmul = (clt_matmul_options){ta, tb};
    c->full = full;
    c->large = (double)m * n * k > 2e5;
}

static void add_matmuls(case_list *list) {
    add_matmul(list, false, 1, 1, 1, false, false);
    add_matmul(list, false, 5, 7, 3, false, true);
    add_matmul(list, false, 17, 1, 19, true, false);
    add_matmul(list, false, 1, 31, 1, true, true);
    add_matmul(list, false, 33, 65, 37, false, false);
    add_matmul(list, true, 64, 64, 64, true, false);
    add_matmul(list, true, 1, 257, 129, false, false);
    add_matmul(list, true, 131, 13, 1, false, true);
    add_matmul(list, true, 127, 67, 131, true, true);
    add_matmul(list, true, 96, 300, 100, false, true);
    add_matmul(list, false, 8, 1100, 9, false, false); /* a long sum, and few of them: cut into parts */
    case_add(list, &plain, "batch", X(F(3, 5, 7), F(3, 7, 4)));
    case_add(list, &plain, "batch", X(F(3, 17, 33), F(3, 33, 21))); /* 4096 products, from which on the kernels for GPUs serve */
    case_add(list, &plain, "broadcast", X(F(2, 1, 5, 7), F(3, 7, 4)))->full = true;
    case_add(list, &plain, "broadcast", X(F(5, 7), F(4, 7, 3)))->full = true;
    /* Each dimension of a batch has its own place and stride: all six that there may be. */
    case_add(list, &plain, "broadcast", X(F(2, 3, 1, 2, 5, 7), F(3, 2, 1, 7, 4)));
    case_add(list, &plain, "broadcast", X(F(2, 3, 1, 2, 9, 17), F(3, 2, 1, 17, 13)))->full = true;
    case_add(list, &plain, "broadcast", X(F(2, 1, 2, 1, 2, 3, 2, 3), F(2, 2, 1, 2, 1, 3, 3, 2)))->full = true;
    case_add(list, &plain, "batch", X(F(2, 2, 1, 3, 2, 2, 2, 3), F(2, 2, 1, 3, 2, 2, 3, 1)))->full = true;
}

static void add_linear(case_list *list, bool full, clt_shape in, int out, bool no_bias) {
    operand x[3] = {{.shape = in}, {.variable = "w.weight", .shape = SHAPE(out, in.dims[in.rank - 1])},
                    {.variable = "w.bias", .shape = SHAPE(out)}};
    test_case *c = case_add(list, &linear, no_bias ? "no-bias" : "", x, no_bias ? 2 : 3);
    c->at.first = out;
    c->at.flag = no_bias;
    c->full = full;
}

static void add_conv(case_list *list, const operation *op, bool full, const char *variant,
                     clt_shape image, clt_conv2d_options o) {
    int groups = o.groups ? o.groups : 1, kh = o.kernel_h ? o.kernel_h : o.kernel,
        kw = o.kernel_w ? o.kernel_w : o.kernel;
    bool layer = op != &conv2d_op;
    operand x[3] = {{.shape = image},
                    {.variable = layer ? "w.weight" : NULL,
                     .shape = SHAPE(o.out_channels, image.dims[1] / groups, kh, kw)},
                    {.variable = layer ? "w.bias" : NULL, .shape = SHAPE(o.out_channels)}};
    test_case *c = case_add(list, op, variant, x, o.no_bias ? 2 : 3);
    c->at.conv = o;
    c->full = full;
    c->large = clt_shape_elements(&image) > 5000;
}

#define CONV(full, variant, image, ...) \
    add_conv(list, &conv2d, full, variant, (clt_shape)image, (clt_conv2d_options){__VA_ARGS__})
#define CONV_INSIDE(full, variant, image, ...) \
    add_conv(list, &conv2d_inside, full, variant, (clt_shape)image, (clt_conv2d_options){__VA_ARGS__, .no_bias = true})

static void add_convs(case_list *list) {
    CONV(false, "k3-p1", SHAPE(2, 3, 9, 7), 4, .kernel = 3, .padding = 1);
    CONV(false, "k1", SHAPE(3, 5, 7, 1), 3, .kernel = 1);
    CONV(false, "k5-s2-p2", SHAPE(1, 2, 11, 13), 3, .kernel = 5, .stride = 2, .padding = 2);
    CONV(false, "depthwise", SHAPE(2, 6, 8, 5), 6, .kernel = 3, .padding = 1, .groups = 6);
    CONV(false, "dilated", SHAPE(2, 3, 11, 9), 4, .kernel = 3, .dilation = 2, .padding = 1, .no_bias = true);
    CONV(false, "wide", SHAPE(2, 16, 12, 10), 24, .kernel = 3, .padding = 1);
    CONV(true, "one-pixel", SHAPE(1, 1, 1, 1), 1, .kernel = 3, .padding = 1);
    CONV(true, "whole", SHAPE(3, 2, 4, 5), 7, .kernel_h = 4, .kernel_w = 5);
    CONV(true, "uneven", SHAPE(2, 3, 10, 7), 5, .kernel_h = 3, .kernel_w = 1, .stride_h = 1,
         .stride_w = 2, .padding_h = 2, .padding_w = 0, .dilation_h = 2);
    CONV(true, "uneven-2", SHAPE(2, 4, 13, 17), 6, .kernel_h = 3, .kernel_w = 2, .stride_h = 2,
         .stride_w = 3, .padding_h = 1, .padding_w = 2, .dilation_h = 2, .dilation_w = 3, .groups = 2);
    CONV(true, "uneven-3", SHAPE(1, 3, 16, 11), 5, .kernel_h = 2, .kernel_w = 3, .stride_h = 3,
         .stride_w = 2, .padding_h = 2, .padding_w = 3, .dilation_h = 1, .dilation_w = 2);
    CONV(true, "uneven-wide", SHAPE(2, 32, 11, 13), 40, .kernel_h = 3, .kernel_w = 2, .stride_h = 1,
         .stride_w = 2, .padding_h = 2, .padding_w = 1, .dilation_h = 1, .dilation_w = 3, .no_bias = true);
    CONV(true, "s4-d2", SHAPE(1, 3, 15, 14), 5, .kernel = 3, .stride = 4, .padding = 2, .dilation = 2);
    CONV(true, "groups-2", SHAPE(2, 4, 7, 7), 10, .kernel = 3, .stride = 2, .padding = 1, .groups = 2);
    CONV(true, "k2-s3", SHAPE(2, 3, 8, 8), 5, .kernel = 2, .stride = 3);
    CONV(true, "k7-s2-p3", SHAPE(1, 3, 17, 19), 13, .kernel = 7, .stride = 2, .padding = 3);
    CONV(true, "k3-many", SHAPE(2, 32, 17, 15), 40, .kernel = 3, .padding = 1, .no_bias = true);
    /* Winograd's tiles of 4 x 4, whole and cut off at each edge. */
    CONV_INSIDE(false, "inside", SHAPE(2, 16, 12, 10), 24, .kernel = 3, .padding = 1);
    CONV_INSIDE(true, "inside-p0", SHAPE(1, 5, 6, 11), 7, .kernel = 3);
    CONV_INSIDE(true, "inside-p2", SHAPE(3, 3, 7, 5), 19, .kernel = 3, .padding = 2);
    CONV_INSIDE(true, "inside-k1", SHAPE(2, 13, 6, 7), 9, .kernel = 1);
    CONV_INSIDE(true, "inside-s2", SHAPE(2, 6, 9, 7), 11, .kernel = 3, .stride = 2, .padding = 1);
    CONV_INSIDE(true, "inside-uneven", SHAPE(2, 9, 7, 11), 13, .kernel_h = 3, .kernel_w = 2, .stride_h = 1,
                .stride_w = 2, .padding_h = 1, .padding_w = 2, .dilation_h = 1, .dilation_w = 3);
    CONV_INSIDE(true, "inside-k1-uneven", SHAPE(2, 13, 9, 7), 11, .kernel = 1, .stride_h = 2, .stride_w = 3,
                .padding_h = 1, .padding_w = 2);
    CONV_INSIDE(true, "inside-k1-groups", SHAPE(2, 22, 5, 4), 18, .kernel = 1, .groups = 2);
    CONV(true, "k1-wide", SHAPE(2, 37, 6, 7), 41, .kernel = 1);
    CONV(true, "k1-s2", SHAPE(2, 8, 7, 9), 16, .kernel = 1, .stride = 2, .no_bias = true);
    CONV(true, "large-filter", SHAPE(1, 2, 20, 21), 2, .kernel = 11, .padding = 5);
    add_conv(list, &conv2d_op, false, "op-k3", (clt_shape)SHAPE(2, 3, 6, 5),
             (clt_conv2d_options){4, .kernel = 3});
    add_conv(list, &conv2d_op, true, "op-s2", (clt_shape)SHAPE(1, 5, 7, 7),
             (clt_conv2d_options){3, .kernel = 3, .stride = 2, .padding = 1, .no_bias = true});
}

void cases_contract(case_list *list) {
    add_matmuls(list);
    add_linear(list, false, (clt_shape)SHAPE(4, 6), 5, false);
    add_linear(list, false, (clt_shape)SHAPE(33, 47), 29, false);
    add_linear(list, true, (clt_shape)SHAPE(3, 2, 7), 1, true);
    add_linear(list, true, (clt_shape)SHAPE(1, 1), 1, false);
    add_linear(list, true, (clt_shape)SHAPE(67, 130), 101, false);
    add_linear(list, true, (clt_shape)SHAPE(8, 1100), 12, false); /* in parts: the bias comes where they are added up */
    add_convs(list);
}
