#include <math.h>

#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    int64_t size = at->axis < x->shape.rank ? x->shape.dims[at->axis] : 0, start = clt_slice_start(at, size), stop = at->stop;
    bool by_length = clt_dim_is_length(stop);
    char text[CLT_SHAPE_TEXT];
    CLT_TRY(clt_graph_resolve_length(node->graph, &stop));
    if (by_length && stop > size)
        return clt_fail(CLT_E_SHAPE, "axis %d of %s has fewer places than the length asked for, %lld", at->axis, clt_shape_text(&x->shape, text), (long long)stop);
    if (node->graph->origin && !by_length && stop != INT64_MAX && stop > size) /* it was within, at the size that the graph was made for */
        return clt_fail(CLT_E_SHAPE, "axis %d of %s has no %lld places: a stop that is to follow the length is CLT_LENGTH, or that minus a number", at->axis,
                        clt_shape_text(&x->shape, text), (long long)stop);
    stop = CLT_MIN(stop < 0 && !by_length ? stop + size : stop, size);
    if (start < 0 || start >= stop)
        return clt_fail(CLT_E_SHAPE, "axis %d of %s from %lld to %lld by %lld is empty or out of range", at->axis,
                        clt_shape_text(&x->shape, text), (long long)start, (long long)stop, (long long)at->step);
    node->shape = x->shape;
    node->shape.dims[at->axis] = (stop - start - 1) / at->step + 1;
    node->dtype = x->dtype;
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    node->shape = ((const clt_slice_attributes *)node->attributes)->result;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_slice_attributes at = *(const clt_slice_attributes *)node->attributes;
    at.result = node->inputs[0]->shape;
    if (wanted[0]) dx[0] = clt_node(NULL, &clt_op_slice_grad, &at, &dy, 1);
}

static clt_cost cost(const clt_tensor *node) {
    return (clt_cost){0, 2 * clt_tensor_cost_bytes(node)};
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_slice_attributes, axis, INT, .least = 0, .most = CLT_MAX_RANK - 1),
    CLT_ATTRIBUTE(clt_slice_attributes, start, INT64),
    CLT_ATTRIBUTE(clt_slice_attributes, stop, INT64),
    CLT_ATTRIBUTE(clt_slice_attributes, step, INT64, .least = 1, .most = INFINITY),
    CLT_ATTRIBUTE(clt_slice_attributes, result, RESULT),
    {0},
};

const clt_op clt_op_slice = {
    .name = "slice", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_slice_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
};
const clt_op clt_op_slice_grad = {
    .name = "slice_grad", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_slice_attributes),
    .schema = schema,
    .infer = infer_grad,
};

clt_tensor *clt_slice(clt_tensor *x, int axis, int64_t start, int64_t stop, int64_t step) {
    if (!clt_tensor_valid(x)) return x;
    int at = clt_shape_axis(&x->shape, axis);
    char text[CLT_SHAPE_TEXT];
    if (at < 0 || step < 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "slice: axis %d of %s by %lld is out of range", axis, clt_shape_text(&x->shape, text),
                                                 (long long)step));
    int64_t size = x->shape.dims[at];
    clt_slice_attributes attributes = {.axis = at, .start = start, .stop = stop > 0 && stop >= size ? INT64_MAX : stop, .step = step};
    return clt_node(NULL, &clt_op_slice, &attributes, &x, 1);
}

void clt_split(clt_tensor *x, int axis, const int64_t *sizes, int n, clt_tensor **parts) {
    if (!parts || n < 1) {
        if (clt_tensor_valid(x)) clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "split: into %d parts%s", n, parts ? "" : ", and parts is NULL"));
        return;
    }
    for (int i = 0; i < n; i++) parts[i] = x;
    if (!clt_tensor_valid(x)) return;
    int at = clt_shape_axis(&x->shape, axis);
    char text[CLT_SHAPE_TEXT];
    int64_t size = at < 0 ? 0 : x->shape.dims[at], sum = 0;
    for (int i = 0; i < n && sum <= size; i++) sum += !sizes ? size / n : sizes[i] > 0 && sizes[i] <= size ? sizes[i] : size + 1;
    bool fits = at >= 0 && sum == size && size >= n && clt_tensor_extent(x).dims[at] == size;
    if (!fits) {
        parts[0] = clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "split: axis %d of %s into %d parts: expected sizes that add up to it, and a dimension that is neither "
                                                     "the batch nor the length", axis, clt_shape_text(&x->shape, text), n));
        for (int i = 1; i < n; i++) parts[i] = parts[0];
        return;
    }
    for (int64_t i = 0, begin = 0; i < n; i++) {
        int64_t end = begin + (sizes ? sizes[i] : size / n);
        parts[i] = clt_slice(x, at, begin, end, 1);
        begin = end;
    }
}

clt_tensor *clt_slice_like(clt_tensor *table, clt_tensor *x, int axis) {
    if (!clt_tensor_valid(table) || !clt_tensor_valid(x)) return table && x ? x->graph->invalid : NULL;
    int at = clt_shape_axis(&x->shape, axis);
    char text[CLT_SHAPE_TEXT], rows[CLT_SHAPE_TEXT];
    if (at < 0 || table->shape.rank < 1 || table->shape.dims[0] < x->shape.dims[at])
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "slice_like: expected a table with as many rows as %s has places along axis %d, got %s",
                                                 clt_shape_text(&x->shape, text), axis, clt_shape_text(&table->shape, rows)));
    int64_t size = x->shape.dims[at], stop = clt_tensor_extent(x).dims[at];
    if (stop < 0 && !clt_dim_is_length(stop))
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "slice_like: axis %d of %s is neither the length, but for a number, nor always of one size", axis,
                                                 clt_shape_text(&x->shape, text)));
    return stop == size && table->shape.dims[0] == size ? table : clt_slice(table, 0, 0, stop, 1);
}
