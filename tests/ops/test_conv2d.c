/* Two-dimensional convolution (cross-correlation, as everywhere in the field). */
#include "tests/ops/harness.h"

#include <stdio.h>

/* y[n, o, i, j] = bias[o] + sum over c, p, q of
 *     weight[o, c, p, q] x[n, group(o) C/groups + c, i stride + p dilation - padding, ...] */
static void reference(const array *inputs, array *y, const void *context) {
    const clt_conv2d_options *o = context;
    const array *x = &inputs[0], *weight = &inputs[1];
    int64_t channels = weight->shape.dims[1], kh = weight->shape.dims[2], kw = weight->shape.dims[3];
    int64_t span_h = o->dilation_h * (kh - 1) + 1, span_w = o->dilation_w * (kw - 1) + 1;
    clt_shape shape = x->shape;
    shape.dims[1] = weight->shape.dims[0];
    shape.dims[2] = (x->shape.dims[2] + 2 * o->padding_h - span_h) / o->stride_h + 1;
    shape.dims[3] = (x->shape.dims[3] + 2 * o->padding_w - span_w) / o->stride_w + 1;
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do {
        int64_t n = index[0], out = index[1], top = index[2] * o->stride_h - o->padding_h,
                left = index[3] * o->stride_w - o->padding_w;
        int64_t first = out / (shape.dims[1] / o->groups) * channels;
        double sum = o->no_bias ? 0 : inputs[2].values[out];
        for (int64_t c = 0; c < channels; c++)
            for (int64_t p = 0; p < kh; p++)
                for (int64_t q = 0; q < kw; q++)
                    sum += ref_at4(weight, out, c, p, q) *
                           ref_pixel(x, n, first + c, top + p * o->dilation_h, left + q * o->dilation_w, 0);
        y->values[at++] = sum;
    } while (index_next(&shape, index));
}

static clt_tensor *build_op(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const clt_conv2d_options *options = context;
    return clt_conv2d_op(inputs[0], inputs[1], options->no_bias ? NULL : inputs[2], *options);
}

static clt_tensor *build_layer(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_conv2d_with(inputs[0], "conv", *(const clt_conv2d_options *)context);
}

/* ---- cases ---- */

typedef struct size {
    const char *name;
    int64_t n, c, h, w, out;
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
    bool no_bias;
} size;

static const size sizes[] = {
    {"1x1", 2, 3, 5, 7, 4, 1, 1, 1, 1, 0, 0, 1, 1, 1, false},
    {"1x1 on one pixel", 3, 5, 1, 1, 2, 1, 1, 1, 1, 0, 0, 1, 1, 1, false},
    {"1x1, one of everything", 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, false},
    {"1x1 stride 2", 2, 4, 7, 6, 3, 1, 1, 2, 2, 0, 0, 1, 1, 1, true},
    {"3x3 padded", 2, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, false},
    {"3x3 padded, no bias", 2, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, true},
    {"3x3 unpadded", 1, 2, 5, 6, 3, 3, 3, 1, 1, 0, 0, 1, 1, 1, false},
    {"3x3 stride 2", 2, 3, 9, 8, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, false},
    {"3x3 stride 3 leaves pixels out", 1, 2, 8, 10, 2, 3, 3, 3, 3, 0, 0, 1, 1, 1, false},
    {"2x2 stride 3 skips pixels", 1, 2, 8, 8, 3, 2, 2, 3, 3, 0, 0, 1, 1, 1, false},
    {"3x3 dilation 2", 2, 2, 9, 8, 3, 3, 3, 1, 1, 2, 2, 2, 2, 1, false},
    {"3x3 dilation 2 stride 2", 1, 2, 11, 9, 3, 3, 3, 2, 2, 1, 1, 2, 2, 1, false},
    {"5x5 padded", 1, 3, 8, 7, 2, 5, 5, 1, 1, 2, 2, 1, 1, 1, false},
    {"5x5, more padding than needed", 1, 1, 3, 3, 2, 5, 5, 1, 1, 4, 4, 1, 1, 1, false},
    {"7x7 stride 2", 1, 3, 13, 11, 2, 7, 7, 2, 2, 3, 3, 1, 1, 1, true},
    {"2 groups", 2, 4, 6, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 2, false},
    {"3 groups stride 2", 1, 6, 7, 7, 3, 3, 3, 2, 2, 1, 1, 1, 1, 3, false},
    {"depthwise", 2, 5, 6, 7, 5, 3, 3, 1, 1, 1, 1, 1, 1, 5, false},
    {"depthwise, two results a channel", 1, 3, 5, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 3, false},
    {"1x3, padding 0x1", 2, 2, 5, 6, 3, 1, 3, 1, 1, 0, 1, 1, 1, 1, false},
    {"3x1, stride 2x1", 2, 2, 7, 5, 3, 3, 1, 2, 1, 1, 0, 1, 1, 1, false},
    {"2x4, stride 1x3, padding 1x2, dilation 2x1", 1, 3, 7, 9, 2, 2, 4, 1, 3, 1, 2, 2, 1, 1, false},
    {"stride and padding as large as they may be", 1, 2, 8, 6, 3, 1, 1, 32767, 32767, 32767, 32767, 1, 1, 1, false},
    {"stride and dilation as large as they may be", 1, 2, 4, 3, 3, 2, 2, 32767, 32767, 32766, 32766, 32766, 32767, 1, false},
    {"as large as the image", 2, 3, 4, 6, 5, 4, 6, 1, 1, 0, 0, 1, 1, 1, false},
    {"as large as the padded image", 1, 2, 3, 3, 2, 5, 5, 1, 1, 1, 1, 1, 1, 1, false},
    {"many channels to sum, a large kernel", 1, 220, 17, 17, 2, 17, 17, 1, 1, 0, 0, 1, 1, 1, false},
    {"many results of a large kernel", 1, 1, 17, 17, 220, 17, 17, 1, 1, 0, 0, 1, 1, 1, false},
    {"many channels and images", 5, 33, 7, 6, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, false},
    {"many channels", 1, 33, 5, 5, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, false},
};

enum { N_SIZES = CLT_COUNT_OF(sizes) };

static clt_conv2d_options options_of(const size *s) {
    return (clt_conv2d_options){
        .out_channels = s->out,
        .kernel_h = s->kernel_h,
        .kernel_w = s->kernel_w,
        .stride_h = s->stride_h,
        .stride_w = s->stride_w,
        .padding_h = s->padding_h,
        .padding_w = s->padding_w,
        .dilation_h = s->dilation_h,
        .dilation_w = s->dilation_w,
        .groups = s->groups,
        .no_bias = s->no_bias,
    };
}

/* Fewer differences where the definition takes long: about as many products for each case. */
static int samples_for(const size *s) {
    int64_t products = s->n * s->out * s->h * s->w * s->c / s->groups * s->kernel_h * s->kernel_w / s->stride_h;
    return products > 100000 ? 6 : 60;
}

static op_case op_case_of(const size *s, const clt_conv2d_options *options) {
    return (op_case){
        .name = s->name,
        .n_inputs = s->no_bias ? 2 : 3,
        .inputs = {{.shape = {4, {s->n, s->c, s->h, s->w}}},
                   {.shape = {4, {s->out, s->c / s->groups, s->kernel_h, s->kernel_w}}},
                   {.shape = {1, {s->out}}}},
        .build = build_op,
        .reference = reference,
        .context = options,
        .samples = samples_for(s),
    };
}

/* The layer, where square options come in short. */
static const clt_conv2d_options square = {.out_channels = 4, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
static const clt_conv2d_options square_plain = {.out_channels = 4, .kernel = 3};

static clt_tensor *build_square(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)context;
    return build_layer(graph, inputs, &square);
}

static clt_tensor *build_plain(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)context;
    return build_layer(graph, inputs, &square_plain);
}

static const clt_conv2d_options square_spelled = {.stride_h = 2,
                                                  .stride_w = 2,
                                                  .padding_h = 1,
                                                  .padding_w = 1,
                                                  .dilation_h = 2,
                                                  .dilation_w = 2,
                                                  .groups = 1};
static const clt_conv2d_options plain_spelled = {
    .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1};

#define LAYER(label, builder, options)                                                                      \
    {                                                                                                       \
        .name = label, .n_inputs = 3, .build = builder, .reference = reference, .context = options,         \
        .samples = 60,                                                                                      \
        .inputs = {{.shape = OP_SHAPE(2, 3, 9, 8)},                                                         \
                   {.variable = "conv.weight", .shape = OP_SHAPE(4, 3, 3, 3)},                              \
                   {.variable = "conv.bias", .shape = OP_SHAPE(4)}},                                        \
    }
static const op_case layers[] = {
    LAYER("layer, one number for both dimensions", build_square, &square_spelled),
    LAYER("layer, defaults", build_plain, &plain_spelled),
};

int main(void) {
    static op_case cases[N_SIZES + CLT_COUNT_OF(layers)];
    static clt_conv2d_options options[N_SIZES];
    for (int k = 0; k < N_SIZES; k++) {
        options[k] = options_of(&sizes[k]);
        cases[k] = op_case_of(&sizes[k], &options[k]);
    }
    for (size_t k = 0; k < CLT_COUNT_OF(layers); k++) cases[N_SIZES + k] = layers[k];
    return op_main("conv2d", cases, CLT_COUNT_OF(cases), NULL, 0);
}
