/*
 * Exchanges of gradients begin as soon as these are there. The step's graph packs gradients when all of them are made; here
 * each pack, what else leads from it to an exchange, and the exchange move up to the last of the gradients they need.
 *
 * All ranks move them alike, since this looks at the graph alone, before passes that look at the device. No exchange moves
 * before another that was made before it: ranks whose graphs differ, in the batch size or for want of any samples, agree on
 * the order of their making.
 */
#include "runtime/exec/passes/passes.h"

/* What an exchange needs and a pack begins. */
static void mark(const clt_graph *graph, const clt_tensor *node, size_t first, bool *marks) {
    if ((size_t)node->index < first || marks[node->index]) return;
    marks[node->index] = true;
    for (int k = 0; k < node->n_inputs; k++) mark(graph, node->inputs[k], first, marks);
}

static size_t first_pack(const clt_graph *graph, size_t n) {
    size_t i = 0;
    while (i < n && graph->nodes[i]->op != &clt_op_pack) i++;
    return i;
}

clt_status clt_pass_overlap(clt_pass *pass) {
    clt_graph *graph = pass->graph;
    size_t first = first_pack(graph, pass->n);
    bool *marks = clt_calloc(pass->n + 1, sizeof *marks);
    if (!marks) return clt_fail_memory(pass->n);
    for (size_t i = first; i < pass->n; i++)
        if (pass->live[i] && clt_is_exchange(graph->nodes[i])) mark(graph, graph->nodes[i], first, marks);
    int64_t last = 0; /* the key of the exchange before */
    for (size_t i = first; i < pass->n; i++) {
        const clt_tensor *node = graph->nodes[i];
        if (!marks[i] || node->kind != CLT_NODE_OP || node->part == CLT_PART_SECOND) continue;
        int64_t key = 0;
        for (int k = 0; k < node->n_inputs; k++) key = CLT_MAX(key, pass->keys[node->inputs[k]->index]);
        if (clt_is_exchange(node)) last = key = CLT_MAX(key, last);
        pass->keys[i] = key; /* those with equal keys keep their order */
    }
    clt_free(marks);
    return CLT_OK;
}
