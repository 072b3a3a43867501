#include <string.h>

#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_pad_attributes *at = node->attributes;
    CLT_TRY(clt_check_float(node, 0));
    clt_shape shape = node->inputs[0]->shape;
    for (int i = 0; i < shape.rank; i++) {
        if (at->before[i] < 0 || at->after[i] < 0 || at->before[i] > INT32_MAX || at->after[i] > INT32_MAX)
            return clt_fail(CLT_E_INVALID, "%lld before and %lld after dimension %d", (long long)at->before[i],
                            (long long)at->after[i], i);
        shape.dims[i] += at->before[i] + at->after[i];
    }
    node->shape = shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_pad_attributes *at = node->attributes;
    clt_tensor *crop = dy;
    for (int i = 0; i < node->shape.rank; i++)
        if (at->before[i] || at->after[i])
            crop = clt_slice(crop, i, at->before[i], node->shape.dims[i] - at->after[i], 1);
    if (wanted[0]) dx[0] = crop;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_pad_attributes, before, SIZES),
    CLT_ATTRIBUTE(clt_pad_attributes, after, SIZES),
    CLT_ATTRIBUTE(clt_pad_attributes, value, FLOAT),
    {0},
};

const clt_op clt_op_pad = {
    .name = "pad", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_pad_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
};

clt_tensor *clt_pad(clt_tensor *x, const int64_t *before, const int64_t *after, float value) {
    if (!clt_tensor_valid(x)) return x;
    clt_pad_attributes at = {.value = value};
    if (!before || !after) return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "pad: before or after is NULL"));
    memcpy(at.before, before, (size_t)x->shape.rank * sizeof *before);
    memcpy(at.after, after, (size_t)x->shape.rank * sizeof *after);
    return clt_node(NULL, &clt_op_pad, &at, &x, 1);
}
