/* Which tensors of a plan lie in others' memory. */
#include "runtime/exec/storage.h"

#include "backends/codegen.h"
#include "runtime/ops/ops.h"

typedef struct storage {
    clt_graph *graph;
    const bool *marks; /* by node: part of the plan */
} storage;

/* The tensor whose memory `t` really is, and t's place in it in elements. */
static clt_tensor *storage_root(clt_tensor *t, int64_t *offset) {
    *offset = 0;
    while (t->storage) {
        *offset += t->storage_offset;
        t = t->storage;
    }
    return t;
}

/* Whether t's memory is `root`'s. */
static bool lies_in(const clt_tensor *t, const clt_tensor *root) {
    while (t && t != root) t = t->storage;
    return t != NULL;
}

/* The place in the graph of the collective that puts something else where this was packed; the number of nodes if there is
 * none. */
static size_t collective_of(const storage *s, const clt_tensor *pack) {
    size_t i = (size_t)pack->index;
    while (i < s->graph->n_nodes && !(s->marks[i] && clt_is_collective(s->graph->nodes[i]) && s->graph->nodes[i]->inputs[0] == pack)) i++;
    return i;
}

static bool is_read_after(const storage *s, const clt_tensor *root, size_t index) {
    for (size_t i = index + 1; i < s->graph->n_nodes; i++) {
        const clt_tensor *node = s->graph->nodes[i];
        bool reads = s->marks[i] && node->kind == CLT_NODE_OP && !(node->op->is_view && !node->op->writes);
        for (int k = 0; reads && k < node->n_inputs; k++)
            if (lies_in(node->inputs[k], root)) return true;
    }
    return false;
}

/* A gradient that nothing else owns is written straight into its place in the flat tensor; so is not one that others still
 * read when that place becomes the sum of all ranks' gradients. */
static void place_parts(const storage *s, clt_tensor *pack) {
    const clt_pack_attributes *at = pack->attributes;
    size_t exchange = collective_of(s, pack);
    const clt_tensor *flat = pack->inputs[0]; /* a state, or made in the step, and there from then on */
    for (int i = 0; i < at->n; i++) {
        int64_t offset;
        clt_tensor *part = pack->inputs[i + 1], *root = storage_root(part, &offset);
        bool movable = root->kind == CLT_NODE_OP && root->op->writes == 0 && offset == 0 && root->segment == pack->segment;
        if (!movable || clt_tensor_elements(root) != clt_tensor_elements(part)) continue;
        if (is_read_after(s, root, exchange) || (flat->kind == CLT_NODE_OP && flat->index > root->index)) continue;
        root->storage = pack->inputs[0];
        root->storage_offset = at->offsets[i];
    }
}

/* Views and packed gradients lie in others' memory. */
static void place_views(const storage *s) {
    clt_graph *graph = s->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        node->storage = node->kind == CLT_NODE_OP && node->op->is_view ? node->inputs[0] : NULL;
        node->storage_offset = node->storage && node->op->view_offset ? node->op->view_offset(node) : 0;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (s->marks[i] && graph->nodes[i]->op == &clt_op_pack) place_parts(s, graph->nodes[i]);
}

/* Each node's storage becomes the tensor whose memory it really is. */
static void resolve_storage(const storage *s) {
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        clt_tensor *node = s->graph->nodes[i];
        int64_t offset;
        clt_tensor *root = storage_root(node, &offset);
        if (root == node) continue;
        node->storage = root;
        node->storage_offset = offset;
    }
}

/* by root: the last node that uses its memory */
static void find_last_uses(const storage *s, int *last) {
    int n = (int)s->graph->n_nodes;
    for (int i = 0; i < n; i++) {
        const clt_tensor *node = s->graph->nodes[i];
        if (!s->marks[i]) continue;
        for (int k = -1; k < node->n_inputs; k++) {
            int *at = &last[clt_storage_of(k < 0 ? node : node->inputs[k])->index];
            *at = CLT_MAX(*at, k < 0 && node->kept ? n : CLT_MAX(i, node->until));
        }
    }
}

/* Whether the node may write where input k lies: it reads each element before it writes that one, and nobody needs
 * the input any more. */
static bool may_overwrite(const storage *s, const clt_tensor *node, const clt_code *code, int k, const int *last) {
    const clt_tensor *root = clt_storage_of(node->inputs[k]);
    if (root->kind != CLT_NODE_OP || root->storage || root->segment != node->segment || last[root->index] != node->index ||
        clt_tensor_bytes(root) != clt_tensor_bytes(node))
        return false;
    for (int r = 0; r < code->n_reads; r++)
        if (clt_storage_of(node->inputs[code->reads[r].input]) == root && !clt_code_is_same(code, r)) return false;
    return s->marks[root->index];
}

static void place_in_place(const storage *s, bool training, int *last) {
    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        clt_tensor *node = s->graph->nodes[i];
        clt_code code;
        if (!s->marks[i] || node->kind != CLT_NODE_OP || node->storage || node->epilogue) continue;
        if (!clt_code_of(node, training, &code)) continue;
        for (int k = 0; k < node->n_inputs && !node->storage; k++) {
            if (!may_overwrite(s, node, &code, k, last)) continue;
            const clt_tensor *root = clt_storage_of(node->inputs[k]);
            node->storage = (clt_tensor *)(uintptr_t)root;
            last[root->index] = CLT_MAX(last[i], (int)i);
        }
    }
}

clt_status clt_storage_assign(clt_graph *graph, const bool *marks, bool training) {
    const storage s = {graph, marks};
    int *last = clt_calloc(graph->n_nodes, sizeof *last);
    if (!last) return clt_fail_memory(graph->n_nodes * sizeof *last);
    place_views(&s);
    resolve_storage(&s);
    find_last_uses(&s, last);
    place_in_place(&s, training, last);
    resolve_storage(&s);
    clt_free(last);
    return CLT_OK;
}
