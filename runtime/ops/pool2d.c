#include "runtime/ops/ops.h"

/* ---- rules ---- */

static clt_status check_padding(const clt_pool2d_attributes *at) {
    if (at->padding_h <= at->kernel_h / 2 && at->padding_w <= at->kernel_w / 2) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "padding %dx%d is more than half of the kernel %dx%d", at->padding_h, at->padding_w,
                    at->kernel_h, at->kernel_w);
}

/* What becomes of images x. */
static clt_status pooled(const clt_pool2d_attributes *at, const clt_shape *x, clt_shape *y) {
    char text[CLT_SHAPE_TEXT];
    CLT_TRY(check_padding(at));
    int64_t h = x->dims[2] + 2 * (int64_t)at->padding_h - at->kernel_h;
    int64_t w = x->dims[3] + 2 * (int64_t)at->padding_w - at->kernel_w;
    if (h < 0 || w < 0)
        return clt_fail(CLT_E_SHAPE, "the %dx%d window is larger than the padded image of %s", at->kernel_h,
                        at->kernel_w, clt_shape_text(x, text));
    *y = CLT_SHAPE(x->dims[0], x->dims[1], h / at->stride_h + 1, w / at->stride_w + 1);
    return CLT_OK;
}

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_float(node, 0));
    CLT_TRY(clt_check_rank(node, 0, 4, 4));
    CLT_TRY(clt_check_sides(node));
    node->dtype = node->inputs[0]->dtype;
    return pooled(node->attributes, &node->inputs[0]->shape, &node->shape);
}

static clt_status infer_gradient(clt_tensor *node, const clt_tensor *dy, clt_shape x) {
    clt_shape y;
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    node->shape = x;
    node->dtype = dy->dtype;
    if (x.rank == 4) CLT_TRY(pooled(node->attributes, &x, &y));
    if (x.rank == 4 && clt_shape_equal(&y, &dy->shape)) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "%s is not the gradient of what %s is pooled to", clt_shape_text(&dy->shape, a), clt_shape_text(&x, b));
}

static clt_status infer_max_grad(clt_tensor *node) {
    return infer_gradient(node, node->inputs[1], node->inputs[0]->shape);
}

static clt_status infer_avg_grad(clt_tensor *node) {
    return infer_gradient(node, node->inputs[0], ((const clt_pool2d_attributes *)node->attributes)->result);
}

static void max_gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_max_pool2d_grad, node->attributes,
                         (clt_tensor *[]){node->inputs[0], dy}, 2);
}

static void avg_gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_pool2d_attributes at = *(const clt_pool2d_attributes *)node->attributes;
    at.result = node->inputs[0]->shape;
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_avg_pool2d_grad, &at, &dy, 1);
}

/* The window of each value of the smaller side. */
static clt_cost cost(const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    int64_t smaller = clt_tensor_elements(node);
    for (int i = 0; i < node->n_inputs; i++) smaller = CLT_MIN(smaller, clt_tensor_elements(node->inputs[i]));
    return (clt_cost){(double)smaller * at->kernel_h * at->kernel_w, clt_node_bytes(node)};
}

#define WINDOW(field, letter, ...) CLT_ATTRIBUTE(clt_pool2d_attributes, field, INT, .key = letter, .most = CLT_MAX_WINDOW, __VA_ARGS__)
static const clt_attribute schema[] = {
    WINDOW(kernel_h, "k", .usual = 1, .least = 1),
    WINDOW(kernel_w, "k", .usual = 1, .least = 1),
    WINDOW(stride_h, "s", .usual = 1, .least = 1),
    WINDOW(stride_w, "s", .usual = 1, .least = 1),
    WINDOW(padding_h, "p", .least = 0),
    WINDOW(padding_w, "p", .least = 0),
    CLT_ATTRIBUTE(clt_pool2d_attributes, exclude_padding, BOOL, .key = "inside"),
    CLT_ATTRIBUTE(clt_pool2d_attributes, result, RESULT),
    {0},
};

#define POOL_OP(op_name, inputs, infer_rule, gradient_rule) \
    {.name = op_name,                               \
     .attributes_bytes = sizeof(clt_pool2d_attributes), \
     .schema = schema,                              \
     .least_inputs = inputs,                        \
     .infer = infer_rule,                           \
     .gradient = gradient_rule,                     \
     .cost = cost,                                  \
     .tuned = true}
const clt_op clt_op_max_pool2d = POOL_OP("max_pool2d", 1, infer, max_gradient);
const clt_op clt_op_max_pool2d_grad = POOL_OP("max_pool2d_grad", 2, infer_max_grad, NULL);
const clt_op clt_op_avg_pool2d = POOL_OP("avg_pool2d", 1, infer, avg_gradient);
const clt_op clt_op_avg_pool2d_grad = POOL_OP("avg_pool2d_grad", 1, infer_avg_grad, NULL);

/* ---- builders ---- */

static clt_tensor *pool(const clt_op *op, clt_tensor *x, const clt_pool2d_options *o) {
    clt_pool2d_attributes at = {
        .kernel_h = o->kernel_h ? o->kernel_h : o->kernel,
        .kernel_w = o->kernel_w ? o->kernel_w : o->kernel,
        .padding_h = o->padding_h ? o->padding_h : o->padding,
        .padding_w = o->padding_w ? o->padding_w : o->padding,
        .exclude_padding = o->exclude_padding,
    };
    at.stride_h = o->stride_h ? o->stride_h : o->stride ? o->stride : at.kernel_h;
    at.stride_w = o->stride_w ? o->stride_w : o->stride ? o->stride : at.kernel_w;
    return clt_node(NULL, op, &at, &x, 1);
}

clt_tensor *clt_max_pool2d_with(clt_tensor *x, clt_pool2d_options options) {
    return pool(&clt_op_max_pool2d, x, &options);
}

clt_tensor *clt_avg_pool2d_with(clt_tensor *x, clt_pool2d_options options) {
    return pool(&clt_op_avg_pool2d, x, &options);
}

clt_tensor *clt_global_avg_pool2d(clt_tensor *x) {
    if (clt_tensor_valid(x) && x->shape.rank != 4) {
        char text[CLT_SHAPE_TEXT];
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "global_avg_pool2d: input %s must have 4 dimensions",
                                                 clt_shape_text(&x->shape, text)));
    }
    clt_reduce_options axes = CLT_AXES(2, 3);
    axes.keep_dims = true;
    return clt_mean(x, axes);
}
