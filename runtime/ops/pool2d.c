#include "runtime/ops/ops.h"

/* ---- rules ---- */

static clt_status check_attributes(const clt_pool2d_attributes *at) {
    if (at->kernel_h < 1 || at->kernel_w < 1 || at->stride_h < 1 || at->stride_w < 1 || at->padding_h < 0 ||
        at->padding_w < 0 || at->padding_h > at->kernel_h / 2 || at->padding_w > at->kernel_w / 2)
        return clt_fail(CLT_E_INVALID, "kernel %dx%d, stride %dx%d, padding %dx%d make no sense", at->kernel_h,
                        at->kernel_w, at->stride_h, at->stride_w, at->padding_h, at->padding_w);
    if (!clt_windows_fit((int[]){at->kernel_h, at->kernel_w, at->stride_h, at->stride_w}, 4))
        return clt_fail(CLT_E_SHAPE, "kernel %dx%d, stride %dx%d: more than %d", at->kernel_h, at->kernel_w,
                        at->stride_h, at->stride_w, CLT_MAX_WINDOW);
    return CLT_OK;
}

static clt_status infer(clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_rank(node, 0, 4, 4));
    CLT_TRY(clt_check_sides(node));
    CLT_TRY(check_attributes(at));
    const clt_shape *x = &node->inputs[0]->shape;
    char text[CLT_SHAPE_TEXT];
    int64_t h = x->dims[2] + 2 * (int64_t)at->padding_h - at->kernel_h;
    int64_t w = x->dims[3] + 2 * (int64_t)at->padding_w - at->kernel_w;
    if (h < 0 || w < 0)
        return clt_fail(CLT_E_SHAPE, "the %dx%d window is larger than the padded image of %s", at->kernel_h,
                        at->kernel_w, clt_shape_text(x, text));
    node->shape = CLT_SHAPE(x->dims[0], x->dims[1], h / at->stride_h + 1, w / at->stride_w + 1);
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_max_grad(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_avg_grad(clt_tensor *node) {
    node->shape = ((const clt_pool2d_attributes *)node->attributes)->result;
    node->dtype = CLT_F32;
    return CLT_OK;
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

#define POOL_OP(op_name, infer_rule, gradient_rule) \
    {.name = op_name,                               \
     .attributes_bytes = sizeof(clt_pool2d_attributes), \
     .infer = infer_rule,                           \
     .gradient = gradient_rule}
const clt_op clt_op_max_pool2d = POOL_OP("max_pool2d", infer, max_gradient);
const clt_op clt_op_max_pool2d_grad = POOL_OP("max_pool2d_grad", infer_max_grad, NULL);
const clt_op clt_op_avg_pool2d = POOL_OP("avg_pool2d", infer, avg_gradient);
const clt_op clt_op_avg_pool2d_grad = POOL_OP("avg_pool2d_grad", infer_avg_grad, NULL);

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
