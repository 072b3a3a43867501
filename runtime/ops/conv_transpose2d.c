/* The gradient of a convolution, as a layer: Zeiler et al. 2010. */
#include "runtime/ops/layer.h"
#include "runtime/ops/ops.h"

static int or_one(int value) {
    return value ? value : 1;
}

static clt_status check(const clt_tensor *x, const clt_conv_transpose2d_options *o) {
    char text[CLT_SHAPE_TEXT];
    if (x->shape.rank != 4 || x->shape.dims[1] % or_one(o->groups))
        return clt_fail(CLT_E_SHAPE, "input %s in %d groups: expected [N, C, H, W] with a multiple of as many channels", clt_shape_text(&x->shape, text), or_one(o->groups));
    if (o->stride < 0 || o->stride > CLT_MAX_WINDOW || o->padding < 0 || o->padding > CLT_MAX_WINDOW || o->dilation < 0 || o->dilation > CLT_MAX_WINDOW || o->groups < 0)
        return clt_fail(CLT_E_INVALID, "stride %d, padding %d, dilation %d, groups %d: expected 0 to %d", o->stride, o->padding, o->dilation, o->groups, CLT_MAX_WINDOW);
    if (o->output_padding < 0 || o->output_padding >= or_one(o->stride))
        return clt_fail(CLT_E_INVALID, "output_padding is %d: it must be less than the stride, %d", o->output_padding, or_one(o->stride));
    return CLT_OK;
}

clt_tensor *clt_conv_transpose2d_by(clt_tensor *x, clt_tensor *weight, clt_conv2d_attributes at) {
    char text[CLT_PAIR_TEXT];
    if (!clt_tensor_valid(x) || !clt_tensor_valid(weight)) return clt_tensor_valid(x) ? weight : x;
    const int64_t *w = weight->shape.dims;
    if (x->shape.rank != 4 || weight->shape.rank != 4 || w[0] != x->shape.dims[1] || w[2] > CLT_MAX_WINDOW || w[3] > CLT_MAX_WINDOW)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "conv_transpose2d: %s: expected a weight [C, out / groups, kernel, kernel]", clt_pair_text(x, weight, text)));
    at.kernel_h = (int)w[2];
    at.kernel_w = (int)w[3];
    int64_t height, width;
    clt_conv2d_least_image(&at, &x->shape, &height, &width);
    if (height + at.more_h < 1 || width + at.more_w < 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "conv_transpose2d: of %s nothing is left by a padding of %d", clt_pair_text(x, weight, text), at.padding_h));
    at.result = CLT_SHAPE(-1, w[1] * at.groups, 0, 0);
    return clt_node(NULL, &clt_op_conv2d_grad_input, &at, (clt_tensor *[]){weight, x}, 2);
}

clt_tensor *clt_conv_transpose2d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_conv_transpose2d_options o) {
    if (!x || !weight || !clt_tensor_valid(x)) return weight ? x : NULL;
    if (!clt_tensor_valid(weight)) return weight;
    clt_status status = check(x, &o);
    if (status < 0) return clt_graph_fail(x->graph, clt_fail_context(status, "conv_transpose2d: "));
    clt_tensor *y = clt_conv_transpose2d_by(x, weight, (clt_conv2d_attributes){.stride_h = or_one(o.stride), .stride_w = or_one(o.stride), .padding_h = o.padding,
                                                                               .padding_w = o.padding, .dilation_h = or_one(o.dilation), .dilation_w = or_one(o.dilation),
                                                                               .groups = or_one(o.groups), .more_h = o.output_padding, .more_w = o.output_padding});
    if (!bias || !clt_tensor_valid(y)) return y;
    return clt_add(y, clt_reshape(bias, CLT_SHAPE(y->shape.dims[1], 1, 1)));
}

clt_tensor *clt_conv_transpose2d_with(clt_tensor *x, const char *name, clt_conv_transpose2d_options o) {
    if (!clt_tensor_valid(x)) return x;
    clt_status status = check(x, &o);
    int64_t groups = or_one(o.groups);
    if (status == CLT_OK && (o.out_channels < 1 || o.out_channels % groups || o.kernel < 1 || o.kernel > CLT_MAX_WINDOW))
        status = clt_fail(CLT_E_SHAPE, "%lld channels by a kernel of %d in %lld groups", (long long)o.out_channels, o.kernel, (long long)groups);
    if (status < 0) return clt_graph_fail(x->graph, clt_fail_context(status, "conv_transpose2d \"%s\": ", name ? name : ""));
    int64_t each = o.out_channels / groups;
    clt_init init = clt_layer_init(each * o.kernel * o.kernel); /* as PyTorch, which takes the weight's second dimension */
    clt_tensor *weight = clt_layer_parameter(x->graph, name, "weight", CLT_SHAPE(x->shape.dims[1], each, o.kernel, o.kernel), init);
    clt_tensor *bias = o.no_bias ? NULL : clt_layer_parameter(x->graph, name, "bias", CLT_SHAPE(o.out_channels), init);
    return clt_conv_transpose2d_op(x, weight, bias, o);
}
