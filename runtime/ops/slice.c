#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    char text[CLT_SHAPE_TEXT];
    if (at->axis >= x->shape.rank || at->start < 0 || at->count < 1 || at->step < 1 ||
        at->start + (at->count - 1) * at->step >= x->shape.dims[at->axis])
        return clt_fail(CLT_E_SHAPE, "%lld elements from %lld by %lld along axis %d of %s", (long long)at->count,
                        (long long)at->start, (long long)at->step, at->axis, clt_shape_text(&x->shape, text));
    node->shape = x->shape;
    node->shape.dims[at->axis] = at->count;
    node->dtype = x->dtype;
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    node->shape = ((const clt_slice_attributes *)node->attributes)->source;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_slice_attributes at = *(const clt_slice_attributes *)node->attributes;
    at.source = node->inputs[0]->shape;
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_slice_grad, &at, &dy, 1);
}

/* All of dimension 0, if it was the batch, stays all of it. */
static void rebatch(clt_tensor *node, int64_t new_batch, int64_t old_batch) {
    clt_slice_attributes *at = node->attributes;
    if (at->axis == 0 && at->start == 0 && at->step == 1 && at->count == old_batch &&
        node->inputs[0]->shape.dims[0] == new_batch)
        at->count = new_batch;
}

const clt_op clt_op_slice = {
    .name = "slice",
    .attributes_bytes = sizeof(clt_slice_attributes),
    .infer = infer,
    .gradient = gradient,
    .rebatch = rebatch,
};
const clt_op clt_op_slice_grad = {
    .name = "slice_grad",
    .attributes_bytes = sizeof(clt_slice_attributes),
    .infer = infer_grad,
};

clt_tensor *clt_slice(clt_tensor *x, int axis, int64_t start, int64_t stop, int64_t step) {
    if (!clt_tensor_valid(x)) return x;
    int at = clt_shape_axis(&x->shape, axis);
    char text[CLT_SHAPE_TEXT];
    int64_t size = at >= 0 ? x->shape.dims[at] : 0;
    if (start < 0) start += size;
    if (stop < 0) stop += size;
    stop = CLT_MIN(stop, size);
    if (at < 0 || step < 1 || start < 0 || start >= stop)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "slice: axis %d of %s from %lld to %lld by %lld is empty or out of range",
                                                 axis, clt_shape_text(&x->shape, text), (long long)start,
                                                 (long long)stop, (long long)step));
    int64_t count = (stop - start - 1) / step + 1;
    clt_slice_attributes attributes = {.axis = at, .start = start, .count = count, .step = count > 1 ? step : 1};
    return clt_node(NULL, &clt_op_slice, &attributes, &x, 1);
}
