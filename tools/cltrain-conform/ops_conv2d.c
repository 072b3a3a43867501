/* Convolutions. */
#include "tools/cltrain-conform/cases.h"

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

static void reference_conv2d_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    filter f = filter_of(&at->conv);
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_clear(dx, x[i].shape);
    do {
        double value = dy->values[place++];
        if (i == 2) dx->values[index[1]] += value;
        else one_gradient(&x[0], &x[1], &f, index, value, i == 0, dx);
    } while (index_next(&dy->shape, index));
}

/* ---- cases ---- */

/* The same of images of one row: x [N, C, L], weight [out, in / groups, k], bias. */
static double reference_conv1d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    array flat[3] = {x[0], x[1], x[2]};
    for (int i = 0; i < 2; i++) flat[i].shape = (clt_shape){4, {x[i].shape.dims[0], x[i].shape.dims[1], 1, x[i].shape.dims[2]}};
    attributes wide = *at;
    wide.conv = (clt_conv2d_options){.kernel_h = 1, .stride_w = at->conv.stride, .padding_w = at->conv.padding, .dilation_w = at->conv.dilation,
                                     .groups = at->conv.groups};
    double work = reference_conv2d(flat, n, y, &wide, evaluation);
    y->shape = (clt_shape){3, {y->shape.dims[0], y->shape.dims[1], y->shape.dims[3]}};
    return work;
}

static clt_conv1d_options in_one_dimension(const clt_conv2d_options *o) {
    return (clt_conv1d_options){o->out_channels, o->kernel, o->stride, o->padding, o->dilation, o->groups, o->no_bias};
}

/* Each pixel adds the weight times itself where a convolution would have read it. x [N, C, H, W], weight [C, out / groups, k, k]; first: output_padding. */
static double reference_conv_transpose2d(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    const clt_conv2d_options *o = &at->conv;
    const int64_t *in = x[0].shape.dims, *w = x[1].shape.dims;
    int64_t stride = o->stride ? o->stride : 1, dilation = o->dilation ? o->dilation : 1, groups = o->groups ? o->groups : 1, out = w[1] * groups;
    int64_t h = (in[2] - 1) * stride - 2 * o->padding + dilation * (w[2] - 1) + at->first + 1, width = (in[3] - 1) * stride - 2 * o->padding + dilation * (w[3] - 1) + at->first + 1;
    int64_t from[4], tap[4];
    array_clear(y, (clt_shape)SHAPE(in[0], out, h, width));
    for (int64_t i = 0; i < array_count(x); i++) {
        for (int64_t d = 3, rest = i; d >= 0; rest /= in[d--]) from[d] = rest % in[d];
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; k++) {
            for (int64_t d = 3, rest = k; d >= 1; rest /= w[d--]) tap[d] = rest % w[d];
            int64_t row = from[2] * stride - o->padding + tap[2] * dilation, column = from[3] * stride - o->padding + tap[3] * dilation;
            int64_t channel = from[1] / (in[1] / groups) * w[1] + tap[1];
            if (row < 0 || row >= h || column < 0 || column >= width) continue;
            y->values[((from[0] * out + channel) * h + row) * width + column] += x[0].values[i] * x[1].values[from[1] * w[1] * w[2] * w[3] + k];
        }
    }
    for (int64_t i = 0; n == 3 && i < array_count(y); i++) y->values[i] += x[2].values[i / (h * width) % out];
    return 2.0 * (double)(array_count(x) * w[1] * w[2] * w[3]);
}

static clt_tensor *build_conv_transpose2d(clt_graph *graph, clt_tensor *const *x, int n, const attributes *at) {
    (void)graph, (void)n;
    const clt_conv2d_options *o = &at->conv;
    return clt_conv_transpose2d_with(x[0], "w", (clt_conv_transpose2d_options){o->out_channels, o->kernel, o->stride, o->padding, (int)at->first, o->dilation, o->groups, o->no_bias});
}

BUILD(conv1d, clt_conv1d_with(x[0], "w", in_one_dimension(&at->conv)))
BUILD(conv2d, clt_conv2d_with(x[0], "w", at->conv))
BUILD(conv2d_inside, clt_neg(clt_conv2d_with(clt_neg(x[0]), "w", at->conv)))
BUILD(conv2d_op, clt_conv2d_op(x[0], x[1], n == 3 ? x[2] : NULL, at->conv))

static const operation conv1d = OPERATION("conv1d", "clt_conv1d_with clt_conv1d_op", conv1d, conv1d);
static const operation conv_transpose2d = OPERATION("conv_transpose2d", "clt_conv_transpose2d_with clt_conv_transpose2d_op", conv_transpose2d, conv_transpose2d);
static const operation conv2d = OPERATION("conv2d", "clt_conv2d_with", conv2d, conv2d);
/* Between other ops a plan lays images as a convolution's rows want them; without bias, it is the same convolution. */
static const operation conv2d_inside = OPERATION("conv2d", "clt_conv2d_with", conv2d_inside, conv2d);
const operation operation_conv2d_exact = OPERATION("conv2d", "clt_conv2d_with", conv2d, conv2d,
    .gradient = reference_conv2d_gradient);
const operation operation_conv2d_inside_exact = OPERATION("conv2d", "clt_conv2d_with", conv2d_inside,
    conv2d, .gradient = reference_conv2d_gradient);
static const operation conv2d_op = OPERATION("conv2d", "clt_conv2d_op", conv2d_op, conv2d, .roundings = 2);

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

static void add_conv1d(case_list *list, const char *variant, clt_shape shape, clt_conv2d_options o) {
    operand x[] = {{.shape = shape}, {.variable = "w.weight"}, {.variable = "w.bias", .shape = SHAPE(o.out_channels)}};
    x[1].shape = (clt_shape)SHAPE(o.out_channels, shape.dims[1] / (o.groups ? o.groups : 1), o.kernel);
    case_add(list, &conv1d, variant, x, 3)->at.conv = o;
}

static void add_transpose(case_list *list, const char *variant, clt_shape image, int output_padding, clt_conv2d_options o) {
    operand x[] = {{.shape = image}, {.variable = "w.weight"}, {.variable = "w.bias", .shape = SHAPE(o.out_channels)}};
    x[1].shape = (clt_shape)SHAPE(image.dims[1], o.out_channels / (o.groups ? o.groups : 1), o.kernel, o.kernel);
    test_case *c = case_add(list, &conv_transpose2d, variant, x, o.no_bias ? 2 : 3);
    c->at.conv = o;
    c->at.first = output_padding;
}

static void cases_transpose(case_list *list) {
    add_transpose(list, "k3", (clt_shape)SHAPE(2, 3, 5, 4), 0, (clt_conv2d_options){.out_channels = 4, .kernel = 3});
    add_transpose(list, "k2-s2", (clt_shape)SHAPE(2, 4, 3, 5), 0, (clt_conv2d_options){.out_channels = 3, .kernel = 2, .stride = 2}); /* U-Net's */
    add_transpose(list, "k4-s2-p1", (clt_shape)SHAPE(1, 2, 4, 4), 0, (clt_conv2d_options){.out_channels = 5, .kernel = 4, .stride = 2, .padding = 1}); /* DCGAN's */
    add_transpose(list, "k3-s2-p1-o1", (clt_shape)SHAPE(2, 2, 4, 3), 1, (clt_conv2d_options){.out_channels = 2, .kernel = 3, .stride = 2, .padding = 1});
    add_transpose(list, "k3-d2-g2", (clt_shape)SHAPE(1, 4, 3, 4), 0, (clt_conv2d_options){.out_channels = 6, .kernel = 3, .dilation = 2, .groups = 2});
    add_transpose(list, "k1-s3", (clt_shape)SHAPE(3, 1, 2, 2), 2, (clt_conv2d_options){.out_channels = 1, .kernel = 1, .stride = 3, .no_bias = true});
    add_transpose(list, "k2-s2", (clt_shape)SHAPE(1, 32, 9, 8), 0, (clt_conv2d_options){.out_channels = 32, .kernel = 2, .stride = 2}); /* fast rows */
}

void cases_conv2d(case_list *list) {
    cases_transpose(list);
    add_conv1d(list, "k3-p1", (clt_shape)SHAPE(2, 3, 11), (clt_conv2d_options){5, .kernel = 3, .padding = 1});
    add_conv1d(list, "k5-s2-d2-g2", (clt_shape)SHAPE(3, 4, 23), (clt_conv2d_options){6, .kernel = 5, .stride = 2, .padding = 3, .dilation = 2, .groups = 2});
    add_conv1d(list, "k1", (clt_shape)SHAPE(1, 7, 1), (clt_conv2d_options){1, .kernel = 1});
    CONV(false, "k3-p1", SHAPE(2, 3, 9, 7), 4, .kernel = 3, .padding = 1);
    CONV(false, "k1", SHAPE(3, 5, 7, 1), 3, .kernel = 1);
    CONV(false, "k5-s2-p2", SHAPE(1, 2, 11, 13), 3, .kernel = 5, .stride = 2, .padding = 2);
    CONV(false, "depthwise", SHAPE(2, 6, 8, 5), 6, .kernel = 3, .padding = 1, .groups = 6);
    CONV(false, "dilated", SHAPE(2, 3, 11, 9), 4, .kernel = 3, .dilation = 2, .padding = 1, .no_bias = true);
    CONV(false, "wide", SHAPE(2, 16, 12, 10), 24, .kernel = 3, .padding = 1);
    CONV(false, "k3", SHAPE(1, 2, 5, 6), 3, .kernel = 3);
    CONV(false, "k1-one-pixel", SHAPE(3, 5, 1, 1), 2, .kernel = 1);
    CONV(false, "k1-one-of-all", SHAPE(1, 1, 1, 1), 1, .kernel = 1);
    CONV(false, "k1-s2", SHAPE(2, 4, 7, 6), 3, .kernel = 1, .stride = 2, .no_bias = true);
    CONV(false, "k3-s2-p1", SHAPE(2, 3, 9, 8), 4, .kernel = 3, .stride = 2, .padding = 1);
    CONV(false, "k3-s3", SHAPE(1, 2, 8, 10), 2, .kernel = 3, .stride = 3); /* leaves pixels out */
    CONV(false, "k2-s3", SHAPE(1, 2, 8, 8), 3, .kernel = 2, .stride = 3);
    CONV(false, "k3-s2-d2", SHAPE(1, 2, 11, 9), 3, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2);
    CONV(false, "k5-p4", SHAPE(1, 1, 3, 3), 2, .kernel = 5, .padding = 4); /* more padding than needed */
    CONV(false, "k7-s2-p3", SHAPE(1, 3, 13, 11), 2, .kernel = 7, .stride = 2, .padding = 3, .no_bias = true);
    CONV(false, "groups-2", SHAPE(2, 4, 6, 5), 6, .kernel = 3, .padding = 1, .groups = 2);
    CONV(false, "groups-3-s2", SHAPE(1, 6, 7, 7), 3, .kernel = 3, .stride = 2, .padding = 1, .groups = 3);
    CONV(false, "depthwise-twice", SHAPE(1, 3, 5, 5), 6, .kernel = 3, .padding = 1, .groups = 3);
    CONV(false, "k1x3-p0x1", SHAPE(2, 2, 5, 6), 3, .kernel_h = 1, .kernel_w = 3, .padding_w = 1);
    CONV(false, "k3x1-s2x1-p1x0", SHAPE(2, 2, 7, 5), 3, .kernel_h = 3, .kernel_w = 1, .stride_h = 2, .padding_h = 1);
    CONV(false, "k2x4-s1x3-p1x2-d2x1", SHAPE(1, 3, 7, 9), 2, .kernel_h = 2, .kernel_w = 4, .stride_h = 1, .stride_w = 3,
         .padding_h = 1, .padding_w = 2, .dilation_h = 2, .dilation_w = 1);
    CONV(false, "largest-stride", SHAPE(1, 2, 8, 6), 3, .kernel = 1, .stride = 32767, .padding = 32767);
    CONV(false, "largest-dilation", SHAPE(1, 2, 4, 3), 3, .kernel = 2, .stride = 32767, .padding = 32766, .dilation_h = 32766,
         .dilation_w = 32767);
    CONV(false, "whole", SHAPE(2, 3, 4, 6), 5, .kernel_h = 4, .kernel_w = 6);
    CONV(false, "whole-p1", SHAPE(1, 2, 3, 3), 2, .kernel = 5, .padding = 1);
    CONV(false, "long-sum", SHAPE(1, 220, 17, 17), 2, .kernel = 17);
    CONV(false, "long-sum", SHAPE(1, 1, 17, 17), 220, .kernel = 17);
    CONV(false, "channels", SHAPE(5, 33, 7, 6), 17, .kernel = 3, .padding = 1);
    CONV(false, "channels", SHAPE(1, 33, 5, 5), 17, .kernel = 3, .padding = 1);
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
    add_conv(list, &conv2d_op, false, "op-k1", (clt_shape)SHAPE(2, 13, 6, 7), (clt_conv2d_options){9, .kernel = 1});
    add_conv(list, &conv2d_op, false, "op-groups", (clt_shape)SHAPE(2, 6, 7, 5), (clt_conv2d_options){4, .kernel = 3, .stride = 2, .padding = 1, .groups = 2});
    add_conv(list, &conv2d_op, false, "op-wide", (clt_shape)SHAPE(2, 16, 12, 10), (clt_conv2d_options){24, .kernel = 3, .padding = 1, .no_bias = true});
    add_conv(list, &conv2d_op, true, "op-s2", (clt_shape)SHAPE(1, 5, 7, 7),
             (clt_conv2d_options){3, .kernel = 3, .stride = 2, .padding = 1, .no_bias = true});
}
