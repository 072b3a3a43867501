/*
 * What a node costs at least: its arithmetic, and the bytes that must be moved if every operand is read
 * once and every result written once. An estimate to hold times against; nothing depends on it.
 */
#include "runtime/ops/ops.h"

double clt_tensor_cost_bytes(const clt_tensor *t) {
    return (double)clt_tensor_elements(t) * (double)clt_dtype_bytes(t->dtype);
}

/* Operands that are the same tensor are read once; those written in place are also written. */
double clt_node_bytes(const clt_tensor *node) {
    double bytes = node->op->is_view || node->unread ? 0 : clt_tensor_cost_bytes(node);
    for (int k = 0; k < node->op->more_outputs; k++) bytes += clt_tensor_cost_bytes(node->outputs[k]);
    for (int i = 0; i < node->n_inputs; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= node->inputs[k] == node->inputs[i];
        if (!seen) bytes += clt_tensor_cost_bytes(node->inputs[i]);
        if (node->op->writes >> i & 1) bytes += clt_tensor_cost_bytes(node->inputs[i]);
    }
    return bytes;
}

clt_cost clt_node_cost(const clt_tensor *node) {
    if (node->kind != CLT_NODE_OP) return (clt_cost){0, 0};
    if (node->op->cost) return node->op->cost(node);
    int64_t most = clt_tensor_elements(node);
    for (int i = 0; i < node->n_inputs; i++) most = CLT_MAX(most, clt_tensor_elements(node->inputs[i]));
    return (clt_cost){node->op->operations * (double)most, clt_node_bytes(node)};
}
