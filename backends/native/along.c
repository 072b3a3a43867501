#include "backends/native/along.h"

static bool is_log_softmax(const clt_tensor *node) {
    return node->op == &clt_op_log_softmax || node->op == &clt_op_log_softmax_grad;
}

static bool is_softmax(const clt_tensor *node) {
    return is_log_softmax(node) || node->op == &clt_op_softmax || node->op == &clt_op_softmax_grad;
}

/* 0: what is behind the axis is more than one element. */
static int64_t softmax_length(const clt_tensor *node) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    int64_t inner = 1;
    for (int d = axis + 1; d < node->shape.rank; d++) inner *= node->shape.dims[d];
    return node->shape.rank > 0 && inner == 1 ? node->shape.dims[axis] : 0;
}

static int64_t length_of(const clt_tensor *node) {
    if (node->op == &clt_op_layer_norm || node->op == &clt_op_layer_norm_grad_input) return clt_layer_norm_length(node);
    if (node->op == &clt_op_cross_entropy || node->op == &clt_op_cross_entropy_grad) return node->inputs[0]->shape.dims[1];
    if (node->op == &clt_op_metric_correct) return node->inputs[1]->shape.dims[1];
    return softmax_length(node);
}

bool clt_rows_of(const clt_tensor *node, clt_rows *rows) {
    rows->n = length_of(node);
    rows->x = node->inputs[node->op == &clt_op_metric_correct];
    rows->count = rows->n ? clt_tensor_elements(rows->x) / rows->n : 0;
    return rows->n > 0;
}

void clt_lower_along(clt_lowering *l, const clt_tensor *node, clt_begin_along *begin) {
    bool statistics = node->op == &clt_op_layer_norm;
    begin(l, node, statistics ? 1 : node->n_inputs, statistics ? node->outputs[0] : node);
    if (statistics) clt_launch_float(l, ((const clt_layer_norm_attributes *)node->attributes)->eps);
    if (is_softmax(node)) clt_launch_int(l, is_log_softmax(node));
}

static bool is_one(const clt_code *code, int read) {
    for (int d = 0; d < code->rank; d++)
        if (clt_code_stride(code, read, d)) return false;
    return true;
}

bool clt_code_along(const clt_tensor *node, clt_code *code) {
    const clt_fused_reduce *at = node->attributes;
    bool all = clt_code_of_chain(&at->chain, node->inputs, code) && !code->large;
    for (int k = 0; all && k < code->n_reads; k++) all = clt_code_is_same(code, k) || is_one(code, k);
    return all;
}
