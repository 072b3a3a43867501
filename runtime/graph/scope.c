#include "runtime/graph/scope.h"

#include <string.h>

size_t clt_scope_length(const clt_variable *variable) {
    const char *dot = strrchr(variable->name, '.');
    return dot ? (size_t)(dot - variable->name) : strlen(variable->name);
}

bool clt_scope_same(const clt_variable *a, const clt_variable *b) {
    size_t length = clt_scope_length(a);
    return a == b || (length == clt_scope_length(b) && memcmp(a->name, b->name, length) == 0);
}

/* Operands come before it. */
static clt_scope scope_of(const clt_tensor *node, const clt_scope *scopes) {
    clt_scope own = {.fixed = node->kind == CLT_NODE_VARIABLE || node->n_inputs > 0};
    if (node->kind == CLT_NODE_VARIABLE && clt_variable_is_parameter(node->variable)) own.variable = node->variable;
    for (int k = 0; k < node->n_inputs; k++) own.fixed &= scopes[node->inputs[k]->index].fixed;
    for (int k = 0; k < node->n_inputs; k++) {
        const clt_scope *of = &scopes[node->inputs[k]->index];
        if (!of->variable || own.reads || (own.variable && !of->fixed)) continue;
        own.variable = of->variable;
        own.reads = of->fixed && !own.fixed;
    }
    return own;
}

clt_status clt_graph_scopes(const clt_graph *graph, clt_scope **scopes) {
    clt_scope *all = clt_calloc(graph->n_nodes, sizeof *all);
    if (!all) return clt_fail_memory(graph->n_nodes * sizeof *all);
    for (size_t i = 0; i < graph->n_nodes; i++) all[i] = scope_of(graph->nodes[i], all);
    *scopes = all;
    return CLT_OK;
}
