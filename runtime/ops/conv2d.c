#include <math.h>

#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

/* ---- rules ---- */

/* Pixels of the result along one dimension; below 1 if the kernel does not fit. */
static int64_t result_size(int64_t size, int kernel, int stride, int padding, int dilation) {
    int64_t span = size + 2 * (int64_t)padding - (int64_t)dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
}

static clt_status check_operands(const clt_tensor *node) {
    CLT_TRY(clt_check_floats(node, 2));
    for (int i = 0; i < 2; i++) CLT_TRY(clt_check_rank(node, i, 4, 4));
    return CLT_OK;
}

/* The convolution of x and w. */
static clt_status convolve(const clt_tensor *node, const clt_shape *x, const clt_shape *w, clt_shape *y) {
    const clt_conv2d_attributes *at = node->attributes;
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
    *y = CLT_SHAPE(x->dims[0], w->dims[0], h, width);
    return CLT_OK;
}

static clt_status infer(clt_tensor *node) {
    CLT_TRY(check_operands(node));
    CLT_TRY(clt_check_sides(node));
    node->dtype = node->inputs[0]->dtype;
    return convolve(node, &node->inputs[0]->shape, &node->inputs[1]->shape, &node->shape);
}

/* The fewest pixels that a window has so many places in. */
static int64_t least_size(int64_t places, int kernel, int stride, int padding, int dilation) {
    return (places - 1) * stride - 2 * (int64_t)padding + (int64_t)dilation * (kernel - 1) + 1;
}

void clt_conv2d_least_image(const clt_conv2d_attributes *at, const clt_shape *y, int64_t *height, int64_t *width) {
    *height = least_size(y->dims[2], at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
    *width = least_size(y->dims[3], at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
}

/* What is not told of the result: with y, it is the gradient's, or a layer's. */
static clt_status complete_result(clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *y = &node->inputs[1]->shape;
    int64_t *dims = node->shape.dims;
    if (dims[0] < 0) dims[0] = y->dims[0];
    if (node->shape.rank != 4 || dims[2] != 0 || dims[3] != 0) return CLT_OK;
    clt_conv2d_least_image(at, y, &dims[2], &dims[3]);
    dims[2] += at->more_h;
    dims[3] += at->more_w;
    char text[CLT_PAIR_TEXT];
    if (dims[2] >= 1 && dims[3] >= 1) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "of %s nothing is left by a padding of %d and %d", clt_pair_text(node->inputs[1], node->inputs[0], text), at->padding_h, at->padding_w);
}

/* The gradient of x or w, given which of x, w and y the op's operands and result are. */
static clt_status infer_gradient(clt_tensor *node, const clt_shape *x, const clt_shape *w, const clt_shape *y) {
    clt_shape found;
    char text[CLT_PAIR_TEXT];
    CLT_TRY(check_operands(node));
    node->shape = ((const clt_conv2d_attributes *)node->attributes)->result;
    CLT_TRY(complete_result(node));
    node->dtype = node->inputs[0]->dtype;
    if (node->shape.rank == 4) CLT_TRY(convolve(node, x, w, &found));
    if (node->shape.rank == 4 && clt_shape_equal(&found, y)) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "%s are not of a convolution whose gradient has this shape",
                    clt_pair_text(node->inputs[0], node->inputs[1], text));
}

static clt_status infer_grad_input(clt_tensor *node) {
    return infer_gradient(node, &node->shape, &node->inputs[0]->shape, &node->inputs[1]->shape);
}

static clt_status infer_grad_weight(clt_tensor *node) {
    return infer_gradient(node, &node->inputs[0]->shape, &node->shape, &node->inputs[1]->shape);
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

/* Where the gradient of an image is itself a layer's result. */
static void gradient_of_grad_input(clt_tensor *node, clt_tensor *d, const bool *wanted, clt_tensor **dx) {
    clt_conv2d_attributes at = *(const clt_conv2d_attributes *)node->attributes;
    clt_tensor *weight = node->inputs[0], *dy = node->inputs[1];
    at.result = (clt_shape){0};
    at.more_h = at.more_w = 0;
    if (wanted[1]) dx[1] = clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){d, weight}, 2);
    at.result = weight->shape;
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_conv2d_grad_weight, &at, (clt_tensor *[]){d, dy}, 2);
}

/* Each value of the convolution's result is the sum of one filter's products. */
static clt_cost cost_of(const clt_tensor *node, const clt_tensor *weight, const clt_tensor *y) {
    double products = (double)clt_tensor_elements(weight) / (double)weight->shape.dims[0];
    return (clt_cost){2 * (double)clt_tensor_elements(y) * products, clt_node_bytes(node)};
}

static clt_cost cost(const clt_tensor *node) {
    return cost_of(node, node->inputs[1], node);
}

static clt_cost cost_grad_input(const clt_tensor *node) {
    return cost_of(node, node->inputs[0], node->inputs[1]);
}

static clt_cost cost_grad_weight(const clt_tensor *node) {
    return cost_of(node, node, node->inputs[1]);
}

/* Images, each by itself; of the weight's gradient filters. */
static bool linear(const clt_tensor *node, clt_linear *part) {
    (void)node;
    *part = (clt_linear){0, 0, 0};
    return true;
}

static bool linear_grad_input(const clt_tensor *node, clt_linear *part) {
    (void)node;
    *part = (clt_linear){1, 0, 0};
    return true;
}

static bool linear_grad_weight(const clt_tensor *node, clt_linear *part) {
    *part = (clt_linear){1, 1, 0};
    return ((const clt_conv2d_attributes *)node->attributes)->groups == 1;
}

#define WINDOW(field, letter, ...) CLT_ATTRIBUTE(clt_conv2d_attributes, field, INT, .key = letter, .most = CLT_MAX_WINDOW, __VA_ARGS__)
static const clt_attribute schema[] = {
    WINDOW(kernel_h, "k", .usual = 1, .least = 1),
    WINDOW(kernel_w, "k", .usual = 1, .least = 1),
    WINDOW(stride_h, "s", .usual = 1, .least = 1),
    WINDOW(stride_w, "s", .usual = 1, .least = 1),
    WINDOW(padding_h, "p", .least = 0),
    WINDOW(padding_w, "p", .least = 0),
    WINDOW(dilation_h, "d", .usual = 1, .least = 1),
    WINDOW(dilation_w, "d", .usual = 1, .least = 1),
    CLT_ATTRIBUTE(clt_conv2d_attributes, groups, INT, .key = "g", .usual = 1, .least = 1, .most = INFINITY),
    CLT_ATTRIBUTE(clt_conv2d_attributes, more_h, INT, .least = 0, .most = CLT_MAX_WINDOW),
    CLT_ATTRIBUTE(clt_conv2d_attributes, more_w, INT, .least = 0, .most = CLT_MAX_WINDOW),
    CLT_ATTRIBUTE(clt_conv2d_attributes, result, RESULT),
    {0},
};

#define CONV2D(op_name, ...)                                                                                          \
    {                                                                                                                 \
        .name = op_name, .attributes_bytes = sizeof(clt_conv2d_attributes), .schema = schema, .channels_last = true, \
        .least_inputs = 2, .tuned = true, .autocast = CLT_AUTOCAST_LOW, __VA_ARGS__                                   \
    }
const clt_op clt_op_conv2d = CONV2D("conv2d", .infer = infer, .gradient = gradient, .cost = cost, .weights = 1u << 1,
                                    .epilogue = CLT_EPILOGUE_CHANNELS, .linear = linear);
const clt_op clt_op_conv2d_grad_input = CONV2D("conv2d_grad_input", .infer = infer_grad_input, .gradient = gradient_of_grad_input, .cost = cost_grad_input,
                                               .weights = 1u << 0, .epilogue = CLT_EPILOGUE_CHANNELS,
                                               .linear = linear_grad_input);
const clt_op clt_op_conv2d_grad_weight = CONV2D("conv2d_grad_weight", .infer = infer_grad_weight, .cost = cost_grad_weight,
                                                .gives_weight = true, .linear = linear_grad_weight);

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
    clt_status status = clt_attributes_check(schema, &at);
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
