/* Where a row is largest. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_softmax_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    CLT_TRY(clt_check_f32_or_i32(node, 0));
    if (at->axis >= x->rank) return clt_fail(CLT_E_SHAPE, "axis %d is beyond the %d dimensions of the input", at->axis, x->rank);
    if (x->dims[at->axis] > INT32_MAX) return clt_fail(CLT_E_SHAPE, "axis %d has more places than an i32 counts", at->axis);
    node->shape = (clt_shape){0};
    for (int d = 0; d < x->rank; d++)
        if (d != at->axis) node->shape.dims[node->shape.rank++] = x->dims[d];
    node->dtype = CLT_I32;
    return CLT_OK;
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_softmax_attributes, axis, INT, .key = "a", .least = 0, .most = CLT_MAX_RANK - 1), {0}};

const clt_op clt_op_argmax = {
    .name = "argmax", .least_inputs = 1, .attributes_bytes = sizeof(clt_softmax_attributes), .schema = schema, .infer = infer, .operations = 1, .computes_integers = true};

clt_tensor *clt_argmax(clt_tensor *x, int axis) {
    if (!clt_tensor_valid(x)) return x;
    clt_softmax_attributes at = {clt_shape_axis(&x->shape, axis)};
    char text[CLT_SHAPE_TEXT];
    if (at.axis < 0) return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "argmax: axis %d of %s", axis, clt_shape_text(&x->shape, text)));
    return clt_node(NULL, &clt_op_argmax, &at, &x, 1);
}
