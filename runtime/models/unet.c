/* Ronneberger, Fischer, Brox 2015, with batch norm and padding, so that images keep their size; names of milesial's Pytorch-UNet. */
#include "runtime/models/models.h"

enum { LEVELS = 4 };

/* Twice a 3x3 convolution, to `middle` channels and then `channels`, batch norm and ReLU: "PREFIX.double_conv.0", ".1", ".3" and ".4". */
static clt_tensor *double_conv(clt_tensor *x, const char *prefix, int64_t middle, int64_t channels) {
    for (int i = 0; i < 2; i++) {
        x = clt_conv2d(x, CLT_NAMED("%s.double_conv.%d", prefix, 3 * i), i ? channels : middle, .kernel = 3, .padding = 1, .no_bias = true);
        x = clt_relu(clt_batch_norm(x, CLT_NAMED("%s.double_conv.%d", prefix, 3 * i + 1)));
    }
    return x;
}

/* Zeros around x, where halves were rounded down, up to the size of `like`. */
static clt_tensor *pad_like(clt_tensor *x, const clt_tensor *like) {
    if (!clt_tensor_valid(x) || !clt_tensor_valid(like)) return x;
    int64_t before[4] = {0}, after[4] = {0};
    for (int d = 2; d < 4; d++) {
        int64_t missing = like->shape.dims[d] - x->shape.dims[d];
        before[d] = missing / 2;
        after[d] = missing - missing / 2;
    }
    return before[2] + after[2] + before[3] + after[3] ? clt_pad(x, before, after, 0) : x;
}

/* Twice as large, beside what was there before it was made smaller. */
static clt_tensor *up(clt_tensor *x, clt_tensor *skip, int level, int64_t channels, bool bilinear) {
    if (!clt_tensor_valid(x)) return x;
    const int64_t *dims = x->shape.dims;
    x = bilinear ? clt_upsample_bilinear2d(x, 2 * dims[2], 2 * dims[3])
                 : clt_conv_transpose2d(x, CLT_NAMED("up%d.up", level), dims[1] / 2, .kernel = 2, .stride = 2);
    clt_tensor *both[] = {skip, pad_like(x, skip)};
    x = clt_concat(both, 2, 1);
    return double_conv(x, CLT_NAMED("up%d.conv", level), bilinear ? clt_tensor_shape(x).dims[1] / 2 : channels, channels);
}

clt_tensor *clt_model_unet_with(clt_tensor *x, clt_unet_options o) {
    int64_t width = o.width ? o.width : 64, outputs = o.outputs ? o.outputs : 2;
    clt_tensor *skips[LEVELS];
    char text[CLT_SHAPE_TEXT];
    if (!clt_tensor_valid(x)) return x;
    const int64_t *dims = x->shape.dims;
    if (x->shape.rank != 4 || dims[2] < 1 << LEVELS || dims[3] < 1 << LEVELS || width < 1 || width > INT32_MAX / 32 || outputs < 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "unet: expected images [N, C, H, W] of at least %dx%d pixels, width and outputs 1 or more, got %s, %lld and %lld",
                                                 1 << LEVELS, 1 << LEVELS, clt_shape_text(&x->shape, text), (long long)width, (long long)outputs));
    x = double_conv(x, "inc", width, width);
    for (int i = 0; i < LEVELS; i++) {
        int64_t channels = width << (o.bilinear && i + 1 == LEVELS ? i : i + 1);
        skips[i] = x;
        x = double_conv(clt_max_pool2d(x, .kernel = 2), CLT_NAMED("down%d.maxpool_conv.1", i + 1), channels, channels);
    }
    for (int i = 1; i <= LEVELS; i++) {
        int64_t channels = width << (LEVELS - i);
        x = up(x, skips[LEVELS - i], i, o.bilinear && i < LEVELS ? channels / 2 : channels, o.bilinear);
    }
    return clt_conv2d(x, "outc.conv", outputs, .kernel = 1);
}
