/*
 * Collectives of gradients begin as soon as these are there. The step's graph packs gradients when all of them are made; here
 * each pack, what else leads from it to a collective, and the collective move up to the last of the gradients they need.
 *
 * All ranks move them alike, since this looks at the graph alone, before passes that look at the device. No collective moves
 * before another that was made before it: ranks whose graphs differ, in the batch size or for want of any samples, agree on
 * the order of their making. But a collective of what was exchanged stays where it is, for the host would wait for the first
 * in the midst of backward; those that move do so before it, on all ranks.
 *
 * A flat tensor that is made in the step, and of which a part is kept when it has been exchanged (clt_shard), is there from the first of its gradients
 * on, and until a few packs behind its own, so that there is time for the exchange: then its memory is free for others.
 */
#include "runtime/exec/passes/passes.h"

/* What a collective needs and a pack begins. */
static void mark(const clt_graph *graph, const clt_tensor *node, size_t first, bool *marks) {
    if ((size_t)node->index < first || marks[node->index]) return;
    marks[node->index] = true;
    for (int k = 0; k < node->n_inputs; k++) mark(graph, node->inputs[k], first, marks);
}

/* by node: whether it is a collective of gradients, or needs one. */
static void find_followers(const clt_graph *graph, size_t first, size_t n, bool *follows) {
    for (size_t i = first; i < n; i++) {
        const clt_tensor *node = graph->nodes[i];
        follows[i] = clt_is_collective(node);
        for (int k = 0; k < node->n_inputs; k++) follows[i] |= follows[node->inputs[k]->index];
    }
}

static bool is_first(const clt_tensor *node, const bool *follows) {
    bool first = clt_is_collective(node);
    for (int k = 0; k < node->n_inputs; k++) first &= !follows[node->inputs[k]->index];
    return first;
}

static bool is_pack(const clt_tensor *node) {
    return node->kind == CLT_NODE_OP && node->op == &clt_op_pack;
}

static size_t first_pack(const clt_graph *graph, size_t n) {
    size_t i = 0;
    while (i < n && !is_pack(graph->nodes[i])) i++;
    return i;
}

/* States are there from the beginning, whenever their nodes were made. */
static int64_t key_of(clt_pass *pass, const clt_tensor *input) {
    if (input->kind == CLT_NODE_OUTPUT) return key_of(pass, input->inputs[0]);
    if (input->kind == CLT_NODE_STATE) pass->keys[input->index] = 0;
    return pass->keys[input->index];
}

static void move_up(clt_pass *pass, size_t first, const bool *marks) {
    int64_t last = 0; /* the key of the collective before */
    for (size_t i = first; i < pass->n; i++) {
        const clt_tensor *node = pass->graph->nodes[i];
        if (!marks[i] || node->kind != CLT_NODE_OP || node->segment > 0) continue;
        int64_t key = 0;
        for (int k = 0; k < node->n_inputs; k++) key = CLT_MAX(key, key_of(pass, node->inputs[k]));
        if (clt_is_collective(node)) last = key = CLT_MAX(key, last);
        pass->keys[i] = key; /* those with equal keys keep their order */
    }
}

/* ---- flat tensors that are made in the step ---- */

static bool is_made(const clt_tensor *pack) {
    return is_pack(pack) && pack->inputs[0]->kind == CLT_NODE_OP;
}

static const clt_tensor *maker_of(const clt_tensor *t) {
    while (t->kind == CLT_NODE_OUTPUT || (t->kind == CLT_NODE_OP && t->op->is_view && !t->op->writes)) t = t->inputs[0];
    return t;
}

/* In front of the first of its gradients. */
static void place_flats(clt_pass *pass) {
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *pack = pass->graph->nodes[i];
        if (!pass->live[i] || !is_made(pack)) continue;
        int64_t *key = &pass->keys[pack->inputs[0]->index];
        for (int k = 1; k < pack->n_inputs; k++) *key = CLT_MIN(*key, key_of(pass, maker_of(pack->inputs[k])) - 1);
        for (int k = 0; k < pack->inputs[0]->n_inputs; k++) key_of(pass, pack->inputs[0]->inputs[k]); /* states, which it may come before */
    }
}

/* The one that is so many behind another; NULL: there is none. */
static const clt_tensor *pack_behind(const clt_pass *pass, const clt_tensor *pack, int n) {
    for (size_t i = (size_t)pack->index + 1; i < pass->n; i++)
        if (pass->live[i] && is_made(pass->graph->nodes[i]) && --n == 0) return pass->graph->nodes[i];
    return NULL;
}

/* In front of the pack that is so many behind their own. */
static void place_kept_parts(clt_pass *pass) {
    enum { UNDER_WAY = 2 };
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *node = pass->graph->nodes[i], *shard = node->kind == CLT_NODE_OP && node->n_inputs ? node->inputs[0] : NULL;
        if (!pass->live[i] || !shard || !clt_is_collective(shard) || !is_made(shard->inputs[0])) continue;
        const clt_tensor *later = pack_behind(pass, shard->inputs[0], UNDER_WAY);
        if (later) pass->keys[i] = CLT_MAX(pass->keys[later->index] - 1, pass->keys[shard->index]);
    }
}

clt_status clt_pass_overlap(clt_pass *pass) {
    clt_graph *graph = pass->graph;
    size_t first = first_pack(graph, pass->n);
    bool *marks = clt_calloc(pass->n + 1, sizeof *marks), *follows = clt_calloc(pass->n + 1, sizeof *follows);
    clt_status status = marks && follows ? CLT_OK : clt_fail_memory(pass->n);
    place_flats(pass);
    if (status == CLT_OK) find_followers(graph, first, pass->n, follows);
    for (size_t i = first; status == CLT_OK && i < pass->n; i++)
        if (pass->live[i] && is_first(graph->nodes[i], follows)) mark(graph, graph->nodes[i], first, marks);
    for (size_t i = first; status == CLT_OK && i < pass->n; i++)
        if (pass->live[i] && is_made(graph->nodes[i])) marks[graph->nodes[i]->inputs[0]->index] = false; /* it has its place */
    if (status == CLT_OK) move_up(pass, first, marks);
    place_kept_parts(pass);
    clt_free(marks);
    clt_free(follows);
    return status;
}
