/*
 * Reverse-mode automatic differentiation, as a transformation of the graph: the
 * nodes between `wrt` and the loss are walked backward, and each op's gradient
 * rule appends the nodes that compute its inputs' gradients. A tensor with
 * several users gets the sum of what they contribute, in a fixed order.
 */
#include "runtime/ops/ops.h"

/* needed[i]: node i depends on a tensor of wrt. */
static void mark_dependents(const clt_graph *graph, size_t n_nodes, bool *needed) {
    for (size_t i = 0; i < n_nodes; i++)
        for (int k = 0; !needed[i] && k < graph->nodes[i]->n_inputs; k++)
            needed[i] = needed[graph->nodes[i]->inputs[k]->index];
}

static clt_status accumulate(clt_tensor **sum, clt_tensor *term) {
    *sum = *sum ? clt_add(*sum, term) : term;
    return clt_tensor_valid(*sum) ? CLT_OK : clt_graph_status(term->graph);
}

static clt_status differentiate_node(clt_tensor *node, const bool *needed, clt_tensor **grads) {
    enum { MOST = 256 };
    clt_tensor *dx[MOST] = {0};
    bool wanted[MOST];
    if (!node->op->gradient)
        return clt_fail(CLT_E_UNSUPPORTED, "%s has no gradient, but the loss depends on a parameter through it",
                        clt_node_name(node));
    if (node->n_inputs > MOST)
        return clt_fail(CLT_E_UNSUPPORTED, "%s: more than %d operands", clt_node_name(node), MOST);
    for (int k = 0; k < node->n_inputs; k++) wanted[k] = needed[node->inputs[k]->index];
    node->op->gradient(node, grads[node->index], wanted, dx);
    CLT_TRY(clt_graph_status(node->graph));
    for (int k = 0; k < node->n_inputs; k++)
        if (wanted[k] && dx[k]) CLT_TRY(accumulate(&grads[node->inputs[k]->index], dx[k]));
    return CLT_OK;
}

static clt_status differentiate(clt_tensor *loss, clt_tensor *seed, clt_tensor *const *wrt, int n,
                                bool *needed, clt_tensor **grads) {
    clt_graph *graph = loss->graph;
    size_t n_nodes = graph->n_nodes;
    for (int i = 0; i < n; i++) needed[wrt[i]->index] = true;
    mark_dependents(graph, n_nodes, needed);
    grads[loss->index] = seed;
    for (int i = loss->index; i >= 0; i--) {
        clt_tensor *node = graph->nodes[i];
        if (grads[i] && needed[i] && node->kind == CLT_NODE_OUTPUT)
            return clt_fail(CLT_E_UNSUPPORTED, "a further result of %s has no gradient", clt_node_name(node));
        if (grads[i] && needed[i] && node->kind == CLT_NODE_OP)
            CLT_TRY(differentiate_node(node, needed, grads));
    }
    return CLT_OK;
}

clt_status clt_gradients(clt_tensor *loss, clt_tensor *seed, clt_tensor *const *wrt, int n,
                         clt_tensor **grads) {
    if (!clt_shape_equal(&loss->shape, &seed->shape)) {
        char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "gradient of %s seeded with %s", clt_shape_text(&loss->shape, a),
                        clt_shape_text(&seed->shape, b));
    }
    size_t n_nodes = loss->graph->n_nodes;
    bool *needed = clt_calloc(n_nodes, sizeof *needed);
    clt_tensor **all = clt_calloc(n_nodes, sizeof *all);
    clt_status status;
    if (!needed || !all) status = clt_fail_memory(n_nodes * sizeof *all);
    else status = differentiate(loss, seed, wrt, n, needed, all);
    for (int i = 0; status == CLT_OK && i < n; i++) grads[i] = all[wrt[i]->index];
    clt_free(needed);
    clt_free(all);
    return status;
}
