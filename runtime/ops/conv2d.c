#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

/* ---- rules ---- */

/* Pixels of the result along one dimension; below 1 if the kernel does not fit. */
static int64_t result_size(int64_t size, int kernel, int stride, int padding, int dilation) {
    int64_t span = size + 2 * (int64_t)padding - (int64_t)dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

static clt_status check_attributes(const clt_conv2d_attributes *at) {
    if (at->kernel_h < 1 || at->kernel_w < 1 || at->stride_h < 1 || at->stride_w < 1 || at->padding_h < 0 ||
        at->padding_w < 0 || at->dilation_h < 1 || at->dilation_w < 1 || at->groups < 1)
        return clt_fail(CLT_E_INVALID,
                        "kernel %dx%d, stride %dx%d, padding %dx%d, dilation %dx%d, groups %d make no sense",
                        at->kernel_h, at->kernel_w, at->stride_h, at->stride_w, at->padding_h, at->padding_w,
                        at->dilation_h, at->dilation_w, at->groups);
    const int sizes[] = {at->kernel_h,  at->kernel_w,  at->stride_h,   at->stride_w,
                         at->padding_h, at->padding_w, at->dilation_h, at->dilation_w};
    if (!clt_windows_fit(sizes, CLT_COUNT_OF(sizes)))
        return clt_fail(CLT_E_SHAPE, "kernel %dx%d, stride %dx%d, padding %dx%d, dilation %dx%d: more than %d",
                        at->kernel_h, at->kernel_w, at->stride_h, at->stride_w, at->padding_h, at->padding_w,
                        at->dilation_h, at->dilation_w, CLT_MAX_WINDOW);
    return CLT_OK;
}

static clt_status infer(clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    CLT_TRY(check_attributes(at));
    for (int i = 0; i < 2; i++) {
        CLT_TRY(clt_check_dtype(node, i, CLT_F32));
        CLT_TRY(clt_check_rank(node, i, 4, 4));
    }
    CLT_TRY(clt_check_sides(node));
    const clt_shape *x = &node->inputs[0]->shape, *w = &node->inputs[1]->shape;
    char text[CLT_PAIR_TEXT];
    if (x->dims[1] != w->dims[1] * at->groups || w->dims[0] % at->groups || w->dims[2] != at->kernel_h ||
        w->dims[3] != at->kernel_w)
        return clt_fail(CLT_E_SHAPE, "channels of %s do not fit with %d groups",
                        clt_pair_text(node->inputs[0], node->inputs[1], text), at->groups);
    int64_t h = result_size(x->dims[2], at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
    int64_t width = result_size(x->dims[3], at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
    if (h < 1 || width < 1)
        return clt_fail(CLT_E_SHAPE, "the kernel of %s is larger than the padded image",
                        clt_pair_text(node->inputs[0], node->inputs[1], text));
    node->shape = CLT_SHAPE(x->dims[0], w->dims[0], h, width);
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_gradient(clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    node->shape = at->result;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_conv2d_attributes at = *(const clt_conv2d_attributes *)node->attributes;
    clt_tensor *x = node->inputs[0], *weight = node->inputs[1];
    if (wanted[0]) {
        at.result = x->shape;
        dx[0] = clt_node(NULL, &clt_op_conv2d_grad_input, &at, (clt_tensor *[]){weight, dy}, 2);
    }
    if (wanted[1]) {
        at.result = weight->shape;
        dx[1] = clt_node(NULL, &clt_op_conv2d_grad_weight, &at, (clt_tensor *[]){x, dy}, 2);
    }
}

const clt_op clt_op_conv2d = {
    .name = "conv2d",
    .attributes_bytes = sizeof(clt_conv2d_attributes),
    .infer = infer,
    .gradient = gradient,
};
const clt_op clt_op_conv2d_grad_input = {
    .name = "conv2d_grad_input",
    .attributes_bytes = sizeof(clt_conv2d_attributes),
    .infer = infer_gradient,
};
const clt_op clt_op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .attributes_bytes = sizeof(clt_conv2d_attributes),
    .infer = infer_gradient,
};

/* ---- builders ---- */

static int or_default(int value, int general, int otherwise) {
    return value ? value : general ? general : otherwise;
}

static clt_conv2d_attributes attributes_of(const clt_conv2d_options *o) {
    return (clt_conv2d_attributes){
        .kernel_h = or_default(o->kernel_h, o->kernel, 0),
        .kernel_w = or_default(o->kernel_w, o->kernel, 0),
        .stride_h = or_default(o->stride_h, o->stride, 1),
        .stride_w = or_default(o->stride_w, o->stride, 1),
        .padding_h = or_default(o->padding_h, o->padding, 0),
        .padding_w = or_default(o->padding_w, o->padding, 0),
        .dilation_h = or_default(o->dilation_h, o->dilation, 1),
        .dilation_w = or_default(o->dilation_w, o->dilation, 1),
        .groups = o->groups ? o->groups : 1,
    };
}

clt_tensor *clt_conv2d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_conv2d_options options) {
    clt_conv2d_attributes at = attributes_of(&options);
    if (clt_tensor_valid(weight) && weight->shape.rank == 4) {
        at.kernel_h = (int)weight->shape.dims[2];
        at.kernel_w = (int)weight->shape.dims[3];
    }
    clt_tensor *y = clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){x, weight}, 2);
    if (!bias || !clt_tensor_valid(y)) return y;
    return clt_add(y, clt_reshape(bias, CLT_SHAPE(y->shape.dims[1], 1, 1)));
}

clt_tensor *clt_conv2d_with(clt_tensor *x, const char *name, clt_conv2d_options options) {
    if (!clt_tensor_valid(x)) return x;
    clt_graph *graph = x->graph;
    clt_conv2d_attributes at = attributes_of(&options);
    char text[CLT_SHAPE_TEXT];
    clt_status status = check_attributes(&at);
    if (status == CLT_OK && (x->shape.rank != 4 || options.out_channels < 1 || x->shape.dims[1] % at.groups))
        status = clt_fail(CLT_E_SHAPE, "input %s to %lld channels in %d groups", clt_shape_text(&x->shape, text),
                          (long long)options.out_channels, at.groups);
    if (status < 0) return clt_graph_fail(graph, clt_fail_context(status, "conv2d \"%s\": ", name ? name : ""));
    int64_t channels = x->shape.dims[1] / at.groups;
    clt_init init = clt_layer_init(channels * at.kernel_h * at.kernel_w);
    clt_tensor *weight = clt_layer_parameter(
        graph, name, "weight", CLT_SHAPE(options.out_channels, channels, at.kernel_h, at.kernel_w), init);
    clt_tensor *bias = NULL;
    if (!options.no_bias)
        bias = clt_layer_parameter(graph, name, "bias", CLT_SHAPE(options.out_channels), init);
    return clt_conv2d_op(x, weight, bias, options);
}
