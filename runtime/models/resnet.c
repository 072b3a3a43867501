/* He et al. 2015, "Deep Residual Learning for Image Recognition", table 1 and section 4.2; names of torchvision.models.resnet. */
#include "runtime/models/models.h"

/* A residual block: x, the name of the block with its dot, and its channels inside. */
typedef clt_tensor *block_builder(clt_tensor *x, const char *prefix, int64_t channels, int stride);

/* Convolution without bias, as the batch norm that follows has one. */
static clt_tensor *conv_norm(clt_tensor *x, const char *conv, const char *norm, clt_conv2d_options options) {
    options.no_bias = true;
    return clt_batch_norm(clt_conv2d_with(x, conv, options), norm);
}

/* The input of a block, through a 1x1 convolution where the shape changes. */
static clt_tensor *shortcut(clt_tensor *x, const char *prefix, int64_t channels, int stride) {
    if (stride == 1 && clt_tensor_shape(x).dims[1] == channels) return x;
    clt_conv2d_options options = {channels, .kernel = 1, .stride = stride};
    return conv_norm(x, CLT_NAMED("%sdownsample.0", prefix), CLT_NAMED("%sdownsample.1", prefix), options);
}

static clt_tensor *inner(clt_tensor *x, const char *prefix, int i, clt_conv2d_options options) {
    return conv_norm(x, CLT_NAMED("%sconv%d", prefix, i), CLT_NAMED("%sbn%d", prefix, i), options);
}

static clt_tensor *basic_block(clt_tensor *x, const char *prefix, int64_t channels, int stride) {
    clt_tensor *y = clt_relu(inner(x, prefix, 1, (clt_conv2d_options){channels, .kernel = 3, .padding = 1, .stride = stride}));
    y = inner(y, prefix, 2, (clt_conv2d_options){channels, .kernel = 3, .padding = 1});
    return clt_relu(clt_add(y, shortcut(x, prefix, channels, stride)));
}

static clt_tensor *bottleneck(clt_tensor *x, const char *prefix, int64_t channels, int stride) {
    clt_tensor *y = clt_relu(inner(x, prefix, 1, (clt_conv2d_options){channels, .kernel = 1}));
    y = clt_relu(inner(y, prefix, 2, (clt_conv2d_options){channels, .kernel = 3, .padding = 1, .stride = stride}));
    y = inner(y, prefix, 3, (clt_conv2d_options){4 * channels, .kernel = 1});
    return clt_relu(clt_add(y, shortcut(x, prefix, 4 * channels, stride)));
}

static const struct {
    int depth;
    block_builder *block;
    int counts[4];
} depths[] = {
    {18, basic_block, {2, 2, 2, 2}}, {34, basic_block, {3, 4, 6, 3}},  {50, bottleneck, {3, 4, 6, 3}},
    {101, bottleneck, {3, 4, 23, 3}}, {152, bottleneck, {3, 8, 36, 3}},
};

static clt_tensor *stem(clt_tensor *x, bool small_images) {
    if (small_images) return clt_relu(conv_norm(x, "conv1", "bn1", (clt_conv2d_options){64, .kernel = 3, .padding = 1}));
    x = clt_relu(conv_norm(x, "conv1", "bn1", (clt_conv2d_options){64, .kernel = 7, .padding = 3, .stride = 2}));
    return clt_max_pool2d(x, .kernel = 3, .stride = 2, .padding = 1);
}

clt_tensor *clt_model_resnet_with(clt_tensor *x, clt_resnet_options options) {
    int depth = options.depth ? options.depth : 18;
    int64_t outputs = options.outputs ? options.outputs : 1000;
    size_t i = 0, n = sizeof depths / sizeof depths[0];
    if (!clt_tensor_valid(x)) return x;
    while (i < n && depths[i].depth != depth) i++;
    if (i == n)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "clt_model_resnet: expected a depth of 18, 34, 50, 101 or 152, got %d", depth));
    x = stem(x, options.small_images);
    for (int layer = 0; layer < 4; layer++)
        for (int block = 0; block < depths[i].counts[layer]; block++)
            x = depths[i].block(x, CLT_NAMED("layer%d.%d.", layer + 1, block), (int64_t)64 << layer, layer > 0 && block == 0 ? 2 : 1);
    return clt_linear(clt_flatten(clt_global_avg_pool2d(x)), "fc", outputs);
}
