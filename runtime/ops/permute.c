#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_permute_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    unsigned seen = 0;
    clt_shape shape = {.rank = x->shape.rank};
    for (int i = 0; i < x->shape.rank; i++) {
        int from = at->order[i];
        if (from < 0 || from >= x->shape.rank || seen >> from & 1)
            return clt_fail(CLT_E_INVALID, "order[%d] = %d: not a permutation of %d dimensions", i, from,
                            x->shape.rank);
        seen |= 1u << from;
        shape.dims[i] = x->shape.dims[from];
    }
    node->shape = shape;
    node->dtype = x->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_permute_attributes *at = node->attributes;
    int inverse[CLT_MAX_RANK] = {0};
    for (int i = 0; i < node->shape.rank; i++) inverse[at->order[i]] = i;
    if (wanted[0]) dx[0] = clt_permute(dy, inverse);
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_permute_attributes, order, ORDER, .key = "o"), {0}};

const clt_op clt_op_permute = {
    .name = "permute", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_permute_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .tuned = true,
};

clt_tensor *clt_permute(clt_tensor *x, const int *order) {
    if (!clt_tensor_valid(x)) return x;
    clt_permute_attributes at = {{0}};
    if (!order) return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "permute: order is NULL"));
    for (int i = 0; i < x->shape.rank; i++) at.order[i] = order[i] < 0 ? order[i] + x->shape.rank : order[i];
    return clt_node(NULL, &clt_op_permute, &at, &x, 1);
}

clt_tensor *clt_transpose(clt_tensor *x, int axis_a, int axis_b) {
    if (!clt_tensor_valid(x)) return x;
    int a = clt_shape_axis(&x->shape, axis_a), b = clt_shape_axis(&x->shape, axis_b), order[CLT_MAX_RANK];
    char text[CLT_SHAPE_TEXT];
    if (a < 0 || b < 0)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "transpose: axes %d and %d of %s", axis_a, axis_b,
                                                 clt_shape_text(&x->shape, text)));
    for (int i = 0; i < x->shape.rank; i++) order[i] = i == a ? b : i == b ? a : i;
    return clt_permute(x, order);
}
