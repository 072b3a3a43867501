#include "backends/reference/reference.h"

static void lower_dropout(clt_lowering *l, const clt_tensor *node) {
    const clt_dropout_attributes *at = node->attributes;
    int64_t count = clt_tensor_elements(node);
    if (!l->training) {
        clt_copy all = {.rank = 1, .size = {count}, .x_stride = {1}, .y_stride = {1}};
        clt_reference_copy(l, node->inputs[0], node, &all);
        return;
    }
    clt_launch_begin_typed(l, "reference/dropout.cl", node->dtype, "ref_dropout", (count + 3) / 4, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, at->site);
    clt_launch_float(l, at->p);
    clt_launch_float(l, (float)(1 / (1 - (double)at->p)));
}

const clt_backend_row clt_reference_dropout_rows[] = {
    {CLT_REFERENCE(dropout), .types = CLT_ANY_FLOAT, .lower = lower_dropout},
    {0},
};
