/*
 * Exchanges of gradients begin as soon as these are there. The step's graph packs gradients when all of them are made; here
 * each pack, what else leads from it to an exchange, and the exchange move up to the last of the gradients they need.
 *
 * All ranks move them alike, since this looks at the graph alone, before passes that look at the device. No exchange moves
 * before another that was made before it: ranks whose graphs differ, in the batch size or for want of any samples, agree on
 * the order of their making. But an exchange of what was exchanged stays where it is, for the host would wait for the first
 * in the midst of backward; those that move do so before it, on all ranks.
 */
#include "runtime/exec/passes/passes.h"

/* What an exchange needs and a pack begins. */
static void mark(const clt_graph *graph, const clt_tensor *node, size_t first, bool *marks) {
    if ((size_t)node->index < first || marks[node->index]) return;
    marks[node->index] = true;
    for (int k = 0; k < node->n_inputs; k++) mark(graph, node->inputs[k], first, marks);
}

/* by node: whether it is an exchange of gradients, or needs one. */
static void find_followers(const clt_graph *graph, size_t first, size_t n, bool *follows) {
    for (size_t i = first; i < n; i++) {
        const clt_tensor *node = graph->nodes[i];
        follows[i] = clt_is_exchange(node);
        for (int k = 0; k < node->n_inputs; k++) follows[i] |= follows[node->inputs[k]->index];
    }
}

static bool is_first(const clt_tensor *node, const bool *follows) {
    bool first = clt_is_exchange(node);
    for (int k = 0; k < node->n_inputs; k++) first &= !follows[node->inputs[k]->index];
    return first;
}

static size_t first_pack(const clt_graph *graph, size_t n) {
    size_t i = 0;
    while (i < n && graph->nodes[i]->op != &clt_op_pack) i++;
    return i;
}

/* States and the like are there from the beginning. */
static int64_t early_key(const clt_pass *pass, const clt_tensor *node, int64_t *last) {
    int64_t key = 0;
    if (node->kind != CLT_NODE_OP) return key;
    for (int k = 0; k < node->n_inputs; k++) key = CLT_MAX(key, pass->keys[node->inputs[k]->index]);
    if (clt_is_exchange(node)) *last = key = CLT_MAX(key, *last);
    return key;
}

clt_status clt_pass_overlap(clt_pass *pass) {
    clt_graph *graph = pass->graph;
    size_t first = first_pack(graph, pass->n);
    bool *marks = clt_calloc(pass->n + 1, sizeof *marks), *follows = clt_calloc(pass->n + 1, sizeof *follows);
    clt_status status = marks && follows ? CLT_OK : clt_fail_memory(pass->n);
    if (status == CLT_OK) find_followers(graph, first, pass->n, follows);
    for (size_t i = first; status == CLT_OK && i < pass->n; i++)
        if (pass->live[i] && is_first(graph->nodes[i], follows)) mark(graph, graph->nodes[i], first, marks);
    int64_t last = 0; /* the key of the exchange before */
    /* The flat tensor of the first pack was made just before it. */
    for (size_t i = first; status == CLT_OK && i < pass->n; i++) {
        const clt_tensor *node = graph->nodes[i];
        for (int k = 0; marks[i] && k < node->n_inputs; k++)
            if (node->inputs[k]->kind != CLT_NODE_OP) pass->keys[node->inputs[k]->index] = 0;
        if (marks[i] && node->part != CLT_PART_SECOND) pass->keys[i] = early_key(pass, node, &last);
    }
    clt_free(marks);
    clt_free(follows);
    return status;
}
