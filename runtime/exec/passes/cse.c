/* Nodes that compute the same from the same become one. */
#include "runtime/exec/passes/passes.h"

/* What memory of others holds may change between two nodes that read it. */
static bool reads_state(const clt_tensor *node) {
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k]->kind == CLT_NODE_STATE) return true;
    return false;
}

static bool is_candidate(const clt_tensor *node) {
    for (int k = 0; node->kind == CLT_NODE_OP && k < node->op->more_outputs; k++)
        if (node->outputs[k]->kept) return false;
    return node->kind == CLT_NODE_OP && node->op->writes == 0 && !node->op->attributes_copy && !reads_state(node);
}

static bool same(const clt_tensor *a, const clt_tensor *b) {
    if (a->op != b->op || a->segment != b->segment || a->n_inputs != b->n_inputs || a->dtype != b->dtype) return false;
    if (!clt_shape_equal(&a->shape, &b->shape) || !a->attributes != !b->attributes) return false;
    for (int k = 0; k < a->n_inputs; k++)
        if (a->inputs[k] != b->inputs[k]) return false;
    return !a->attributes || clt_attributes_equal(a->op->schema, a->attributes, b->attributes);
}

clt_status clt_pass_cse(clt_pass *pass) {
    clt_tensor **nodes = pass->graph->nodes;
    for (size_t i = 0; i < pass->n; i++) {
        if (!pass->live[i] || nodes[i]->kept || !is_candidate(nodes[i])) continue;
        for (size_t j = 0; j < i; j++) {
            if (!pass->live[j] || !is_candidate(nodes[j]) || !same(nodes[j], nodes[i])) continue;
            clt_pass_replace(pass, nodes[i], nodes[j]);
            nodes[j]->boundary |= nodes[i]->boundary;
            for (int k = 0; k < nodes[i]->op->more_outputs; k++) clt_pass_replace(pass, nodes[i]->outputs[k], nodes[j]->outputs[k]);
            pass->live[i] = false;
            break;
        }
    }
    return CLT_OK;
}
