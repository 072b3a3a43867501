/* What depends on nothing that changes is computed once, when the plan is made. */
#include "runtime/exec/passes/passes.h"

static bool is_constant(const clt_tensor *node) {
    bool constant = node->kind == CLT_NODE_OP && node->op->writes == 0;
    for (int k = 0; k < node->n_inputs; k++) constant &= node->inputs[k]->segment == CLT_SEGMENT_ONCE;
    return constant;
}

clt_status clt_pass_hoist(clt_pass *pass) {
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        if (!pass->live[i] || !is_constant(node)) continue;
        node->segment = CLT_SEGMENT_ONCE;
        for (int k = 0; k < node->op->more_outputs; k++) node->outputs[k]->segment = CLT_SEGMENT_ONCE;
        pass->keys[i] = -1;
    }
    return CLT_OK;
}
