/*
 * softmax:     y = exp(x - max) / sum exp(x - max);   dx = y (dy - sum(dy y))
 * log_softmax: y = x - max - log sum exp(x - max);    dx = dy - exp(y) sum(dy)
 */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    CLT_TRY(clt_check_floats(node, node->n_inputs));
    if (axis > 0 && axis >= node->inputs[0]->shape.rank)
        return clt_fail(CLT_E_SHAPE, "axis %d is beyond the %d dimensions of the input", axis, node->inputs[0]->shape.rank);
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_op *grad = node->op == &clt_op_softmax ? &clt_op_softmax_grad : &clt_op_log_softmax_grad;
    if (wanted[0]) dx[0] = clt_node(NULL, grad, node->attributes, (clt_tensor *[]){node, dy}, 2);
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_softmax_attributes, axis, INT, .key = "a", .least = 0, .most = CLT_MAX_RANK - 1),
    {0},
};

#define SOFTMAX_OP(op_name, inputs, gradient_rule, each)        \
    {.name = op_name,                                    \
     .attributes_bytes = sizeof(clt_softmax_attributes), \
     .schema = schema,                                   \
     .least_inputs = inputs,                             \
     .infer = infer,                                     \
     .gradient = gradient_rule,                          \
     .operations = each,                                 \
     .autocast = CLT_AUTOCAST_F32,                       \
     .tuned = true}
const clt_op clt_op_softmax = SOFTMAX_OP("softmax", 1, gradient, 5);
const clt_op clt_op_softmax_grad = SOFTMAX_OP("softmax_grad", 2, NULL, 4);
const clt_op clt_op_log_softmax = SOFTMAX_OP("log_softmax", 1, gradient, 5);
const clt_op clt_op_log_softmax_grad = SOFTMAX_OP("log_softmax_grad", 2, NULL, 4);

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
