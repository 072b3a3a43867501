/* A convolution of images that are one pixel high. */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

clt_tensor *clt_conv1d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_conv1d_options options) {
    char text[CLT_PAIR_TEXT];
    if (!x || !weight || !clt_tensor_valid(x)) return weight ? x : NULL;
    if (!clt_tensor_valid(weight)) return weight;
    if (x->shape.rank != 3 || weight->shape.rank != 3)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "conv1d: %s are not [N, C, L] and [out, C / groups, kernel]", clt_pair_text(x, weight, text)));
    clt_conv2d_options flat = {.kernel_h = 1, .stride_h = 1, .dilation_h = 1, .groups = options.groups, .stride_w = options.stride,
                               .padding_w = options.padding, .dilation_w = options.dilation};
    clt_tensor *image = clt_reshape(x, CLT_SHAPE(0, 0, 1, -1));
    clt_tensor *filter = clt_reshape(weight, CLT_SHAPE(weight->shape.dims[0], weight->shape.dims[1], 1, weight->shape.dims[2]));
    return clt_reshape(clt_conv2d_op(image, filter, bias, flat), CLT_SHAPE(0, 0, -1));
}

clt_tensor *clt_conv1d_with(clt_tensor *x, const char *name, clt_conv1d_options options) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    int groups = options.groups ? options.groups : 1;
    if (x->shape.rank != 3 || options.out_channels < 1 || options.kernel < 1 || groups < 1 || x->shape.dims[1] % groups)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "conv1d \"%s\": input %s to %lld channels by a kernel of %d in %d groups", name ? name : "",
                                                 clt_shape_text(&x->shape, text), (long long)options.out_channels, options.kernel, groups));
    int64_t channels = x->shape.dims[1] / groups;
    clt_init init = clt_layer_init(channels * options.kernel);
    clt_tensor *weight = clt_layer_parameter(x->graph, name, "weight", CLT_SHAPE(options.out_channels, channels, options.kernel), init);
    clt_tensor *bias = options.no_bias ? NULL : clt_layer_parameter(x->graph, name, "bias", CLT_SHAPE(options.out_channels), init);
    return clt_conv1d_op(x, weight, bias, options);
}
