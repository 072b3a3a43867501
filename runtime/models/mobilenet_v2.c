/* Sandler et al. 2018, "MobileNetV2", table 2; names of torchvision.models.mobilenetv2. */
#include "runtime/models/models.h"

/* Channels after scaling: the nearest multiple of 8 that is not more than 10% below. */
static int64_t scaled(int64_t channels, float width) {
    float wanted = (float)channels * width;
    int64_t rounded = (int64_t)(wanted + 4) / 8 * 8;
    if (rounded < 8) rounded = 8;
    return (float)rounded < 0.9f * wanted ? rounded + 8 : rounded;
}

static clt_tensor *conv_norm(clt_tensor *x, const char *conv, const char *norm, clt_conv2d_options options) {
    options.no_bias = true;
    return clt_batch_norm(clt_conv2d_with(x, conv, options), norm);
}

/* "PREFIX.0" and "PREFIX.1", then ReLU6 */
static clt_tensor *conv_norm_relu6(clt_tensor *x, const char *prefix, clt_conv2d_options options) {
    return clt_clip(conv_norm(x, CLT_NAMED("%s.0", prefix), CLT_NAMED("%s.1", prefix), options), 0, 6);
}

/* An inverted residual: a 1x1 convolution that expands, a 3x3 one for each channel, a 1x1 one that narrows. */
static clt_tensor *inverted_residual(clt_tensor *x, int index, int64_t channels, int stride, int expand) {
    int64_t in = clt_tensor_shape(x).dims[1], wide = in * expand;
    int part = 0;
    clt_tensor *y = x;
    if (expand > 1)
        y = conv_norm_relu6(y, CLT_NAMED("features.%d.conv.%d", index, part++), (clt_conv2d_options){wide, .kernel = 1});
    y = conv_norm_relu6(y, CLT_NAMED("features.%d.conv.%d", index, part++),
                        (clt_conv2d_options){wide, .kernel = 3, .padding = 1, .stride = stride, .groups = (int)wide});
    y = conv_norm(y, CLT_NAMED("features.%d.conv.%d", index, part), CLT_NAMED("features.%d.conv.%d", index, part + 1),
                  (clt_conv2d_options){channels, .kernel = 1});
    return stride == 1 && in == channels ? clt_add(x, y) : y;
}

clt_tensor *clt_model_mobilenet_v2_with(clt_tensor *x, clt_mobilenet_v2_options options) {
    static const struct {
        int expand, channels, count, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    float width = options.width > 0 ? options.width : 1;
    float dropout = options.dropout < 0 ? 0 : clt_or_default(options.dropout, 0.2f);
    int64_t outputs = options.outputs ? options.outputs : 1000;
    int index = 1;
    if (!clt_tensor_valid(x)) return x;
    x = conv_norm_relu6(x, "features.0", (clt_conv2d_options){scaled(32, width), .kernel = 3, .stride = 2, .padding = 1});
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++)
        for (int i = 0; i < stages[s].count; i++)
            x = inverted_residual(x, index++, scaled(stages[s].channels, width), i == 0 ? stages[s].stride : 1, stages[s].expand);
    x = conv_norm_relu6(x, CLT_NAMED("features.%d", index), (clt_conv2d_options){scaled(1280, width > 1 ? width : 1), .kernel = 1});
    x = clt_flatten(clt_global_avg_pool2d(x));
    return clt_linear(dropout > 0 ? clt_dropout(x, dropout) : x, "classifier.1", outputs);
}
