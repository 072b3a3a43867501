/*
 * softmax:     y = exp(x - max) / sum exp(x - max);   dx = y (dy - sum(dy y))
 * log_softmax: y = x - max - log sum exp(x - max);    dx = dy - exp(y) sum(dy)
 */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    for (int i = 0; i < node->n_inputs; i++) CLT_TRY(clt_check_dtype(node, i, CLT_F32));
    node->shape = node->inputs[0]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_op *grad = node->op == &clt_op_softmax ? &clt_op_softmax_grad : &clt_op_log_softmax_grad;
    if (wanted[0]) dx[0] = clt_node(NULL, grad, node->attributes, (clt_tensor *[]){node, dy}, 2);
}

#define SOFTMAX_OP(op_name, gradient_rule)               \
    {.name = op_name,                                    \
     .attributes_bytes = sizeof(clt_softmax_attributes), \
     .infer = infer,                                     \
     .gradient = gradient_rule}
const clt_op clt_op_softmax = SOFTMAX_OP("softmax", gradient);
const clt_op clt_op_softmax_grad = SOFTMAX_OP("softmax_grad", NULL);
const clt_op clt_op_log_softmax = SOFTMAX_OP("log_softmax", gradient);
const clt_op clt_op_log_softmax_grad = SOFTMAX_OP("log_softmax_grad", NULL);

static clt_tensor *build(const clt_op *op, clt_tensor *x, int axis) {
    if (!clt_tensor_valid(x)) return x;
    clt_softmax_attributes at = {clt_shape_axis(&x->shape, axis)};
    char text[CLT_SHAPE_TEXT];
    if (at.axis < 0)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "%s: axis %d of %s", op->name, axis,
                                                 clt_shape_text(&x->shape, text)));
    return clt_node(NULL, op, &at, &x, 1);
}

clt_tensor *clt_softmax(clt_tensor *x, int axis) { return build(&clt_op_softmax, x, axis); }
clt_tensor *clt_log_softmax(clt_tensor *x, int axis) { return build(&clt_op_log_softmax, x, axis); }
