/* What depends on nothing that changes is computed once, when the plan is made. */
#include "runtime/exec/passes/passes.h"

static bool is_value(const clt_tensor *tensor) {
    return tensor->variable && tensor->variable->values;
}

static double bytes_of(const clt_tensor *tensor) {
    return (double)clt_tensor_elements(tensor) * (double)clt_dtype_bytes(tensor->dtype);
}

/* `of_values`: the user's constants are in it. What is made of them is kept for ever: it is to be no larger than what it is made of. */
static bool is_constant(const clt_tensor *node, bool of_values) {
    bool constant = node->kind == CLT_NODE_OP && node->op->writes == 0;
    double bytes = 0;
    for (int k = 0; k < node->n_inputs; k++) {
        constant &= node->inputs[k]->segment == CLT_SEGMENT_ONCE || is_value(node->inputs[k]);
        bytes += bytes_of(node->inputs[k]);
    }
    return constant && (!of_values || bytes_of(node) <= bytes);
}

clt_status clt_pass_hoist(clt_pass *pass) {
    bool *of_values = clt_calloc(pass->graph->n_nodes + 1, sizeof *of_values); /* by node; false for those made since */
    if (!of_values) return clt_fail_memory(pass->graph->n_nodes + 1);
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        of_values[i] = is_value(node);
        for (int k = 0; k < node->n_inputs; k++) of_values[i] |= of_values[node->inputs[k]->index];
        if (!pass->live[i] || !is_constant(node, of_values[i])) continue;
        node->segment = CLT_SEGMENT_ONCE;
        for (int k = 0; k < node->op->more_outputs; k++) node->outputs[k]->segment = CLT_SEGMENT_ONCE;
        pass->keys[i] = -1;
    }
    clt_free(of_values);
    return CLT_OK;
}
