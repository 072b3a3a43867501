/* Running sums: y[i] = x[0] + ... + x[i] along an axis, or, reversed, x[i] + ... + x[n - 1]; each is the other's gradient. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_cumsum_attributes *at = node->attributes;
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    CLT_TRY(clt_check_f32_or_i32(node, 0));
    if (at->axis < node->shape.rank) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "axis %d is beyond the %d dimensions of the input", at->axis, node->shape.rank);
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_cumsum_attributes at = *(const clt_cumsum_attributes *)node->attributes;
    at.reverse = !at.reverse;
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_cumsum, &at, &dy, 1);
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_cumsum_attributes, axis, INT, .key = "a", .least = 0, .most = CLT_MAX_RANK - 1),
    CLT_ATTRIBUTE(clt_cumsum_attributes, reverse, BOOL, .key = "r"),
    {0},
};

const clt_op clt_op_cumsum = {.name = "cumsum", .least_inputs = 1, .attributes_bytes = sizeof(clt_cumsum_attributes), .schema = schema,
                              .infer = infer, .gradient = gradient, .operations = 1, .computes_integers = true};

clt_tensor *clt_cumsum(clt_tensor *x, int axis) {
    if (!clt_tensor_valid(x)) return x;
    clt_cumsum_attributes at = {.axis = clt_shape_axis(&x->shape, axis)};
    char text[CLT_SHAPE_TEXT];
    if (at.axis < 0) return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "cumsum: axis %d of %s", axis, clt_shape_text(&x->shape, text)));
    return clt_node(NULL, &clt_op_cumsum, &at, &x, 1);
}
