#include <limits.h>

#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    int axis = ((const clt_concat_attributes *)node->attributes)->axis;
    const clt_tensor *first = node->inputs[0];
    clt_shape shape = first->shape;
    if (axis >= shape.rank) return clt_fail(CLT_E_SHAPE, "axis %d is beyond the %d dimensions of the first", axis, shape.rank);
    for (int i = 1; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        CLT_TRY(clt_check_dtype(node, i, first->dtype));
        bool fits = x->shape.rank == shape.rank;
        for (int d = 0; fits && d < shape.rank; d++) fits = d == axis || x->shape.dims[d] == shape.dims[d];
        char text[CLT_PAIR_TEXT];
        if (!fits)
            return clt_fail(CLT_E_SHAPE, "%s do not join along axis %d", clt_pair_text(first, x, text), axis);
        if (__builtin_add_overflow(shape.dims[axis], x->shape.dims[axis], &shape.dims[axis]))
            return clt_fail(CLT_E_SHAPE, "the sum of axis %d does not fit", axis);
    }
    node->shape = shape;
    node->dtype = first->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    int axis = ((const clt_concat_attributes *)node->attributes)->axis;
    int64_t start = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        int64_t stop = start + node->inputs[i]->shape.dims[axis];
        if (wanted[i]) dx[i] = clt_slice(dy, axis, start, stop, 1);
        start = stop;
    }
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_concat_attributes, axis, INT, .key = "a", .least = 0, .most = CLT_MAX_RANK - 1), {0}};

const clt_op clt_op_concat = {
    .name = "concat",
    .attributes_bytes = sizeof(clt_concat_attributes),
    .schema = schema,
    .least_inputs = 1,
    .most_inputs = INT_MAX,
    .infer = infer,
    .gradient = gradient,
};

clt_tensor *clt_stack(clt_tensor *const *xs, int count, int axis) {
    if (!xs || !xs[0] || count < 1) return clt_concat(xs, count, axis);
    clt_tensor **apart = clt_calloc((size_t)count, sizeof *apart);
    if (!apart) return clt_graph_fail(xs[0]->graph, clt_fail_memory((size_t)count * sizeof *apart));
    for (int i = 0; i < count; i++) apart[i] = clt_unsqueeze(xs[i], axis);
    clt_tensor *y = clt_concat(apart, count, axis);
    clt_free(apart);
    return y;
}

clt_tensor *clt_concat(clt_tensor *const *xs, int count, int axis) {
    if (!xs || !xs[0]) return NULL;
    if (clt_tensor_valid(xs[0]) && count < 1)
        return clt_graph_fail(xs[0]->graph, clt_fail(CLT_E_INVALID, "concat: %d tensors", count));
    for (int i = 0; i < count; i++)
        if (!clt_tensor_valid(xs[i])) return xs[i];
    clt_concat_attributes at = {clt_shape_axis(&xs[0]->shape, axis)};
    char text[CLT_SHAPE_TEXT];
    if (at.axis < 0)
        return clt_graph_fail(xs[0]->graph, clt_fail(CLT_E_INVALID, "concat: axis %d of %s", axis,
                                                     clt_shape_text(&xs[0]->shape, text)));
    return clt_node(NULL, &clt_op_concat, &at, xs, count);
}
