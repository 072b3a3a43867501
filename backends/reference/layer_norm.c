#include "backends/reference/reference.h"

static int64_t row_count(const clt_tensor *node) {
    return clt_tensor_elements(node->inputs[0]) / clt_layer_norm_length(node);
}

/* A kernel with all inputs, its result, and the size. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *node, int64_t items) {
    clt_launch_begin_typed(l, "reference/layer_norm.cl", node->inputs[0]->dtype, kernel, items, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_indices(l, (int64_t[]){row_count(node), clt_layer_norm_length(node)}, 2, 2);
}

/* The statistics; y is made of them by its form (exec/passes/split.c). */
static void lower_layer_norm(clt_lowering *l, const clt_tensor *node) {
    const clt_layer_norm_attributes *at = node->attributes;
    clt_launch_begin_typed(l, "reference/layer_norm.cl", node->dtype, "ref_layer_norm_stats", row_count(node), CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->outputs[0]);
    clt_launch_indices(l, (int64_t[]){row_count(node), clt_layer_norm_length(node)}, 2, 2);
    clt_launch_float(l, at->eps);
}

static void lower_layer_norm_grad_input(clt_lowering *l, const clt_tensor *node) {
    begin(l, "ref_layer_norm_grad_input", node, row_count(node));
}

static void lower_layer_norm_grad_weight(clt_lowering *l, const clt_tensor *node) {
    begin(l, "ref_layer_norm_grad_weight", node, clt_layer_norm_length(node));
}

/* Two passes along a row. */
static bool supports_rows(const clt_candidate *c) {
    return clt_reference_may_loop(c, 2 * clt_layer_norm_length(c->node));
}

static bool supports_columns(const clt_candidate *c) {
    return clt_reference_may_loop(c, row_count(c->node));
}

#define ROW(op_suffix, supports_rule)                                                                                 \
    {CLT_REFERENCE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .supports = supports_rule, .lower = lower_##op_suffix}
const clt_backend_row clt_reference_layer_norm_rows[] = {
    ROW(layer_norm, supports_rows),
    ROW(layer_norm_grad_input, supports_rows),
    ROW(layer_norm_grad_weight, supports_columns),
    {0},
};
