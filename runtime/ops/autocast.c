/*
 * Mixed precision, by the rules of PyTorch's autocast (Micikevicius et al. 2018, "Mixed precision training"): products and convolutions take and
 * give 16 bits; powers, logarithms, sums, norms and losses stay f32; all else is computed in the widest type of its operands. Parameters
 * stay f32, and are rounded where they are used; gradients come back through the same casts.
 */
#include "runtime/ops/ops.h"

typedef struct autocast {
    clt_graph *graph;
    clt_dtype low;
    int64_t *keys;
    size_t capacity;
} autocast;

static bool stays(const clt_tensor *node, int input) {
    return node->op->f32_inputs >> input & 1 || !clt_dtype_is_float(node->inputs[input]->dtype);
}

static clt_status cast(autocast *a, clt_tensor *node, int input, clt_dtype dtype) {
    clt_tensor *x = node->inputs[input];
    if (stays(node, input) || x->dtype == dtype) return CLT_OK;
    clt_tensor *other = clt_cast(x, dtype);
    CLT_TRY(clt_graph_status(a->graph));
    CLT_TRY(clt_grow(&a->keys, &a->capacity, (size_t)other->index, sizeof *a->keys));
    a->keys[other->index] = a->keys[node->index] - 1;
    other->segment = node->segment;
    other->stage = node->stage;
    node->inputs[input] = other;
    return CLT_OK;
}

static clt_status cast_all(autocast *a, clt_tensor *node, clt_dtype dtype) {
    for (int k = 0; k < node->n_inputs; k++) CLT_TRY(cast(a, node, k, dtype));
    return CLT_OK;
}

/* The widest of its operands; where these are stretched, of those that are as large as the result: a bias, or a statistic, would make all f32. */
static clt_dtype widest(const clt_tensor *node) {
    clt_dtype dtype = CLT_U8; /* none yet */
    for (int k = 0; k < node->n_inputs; k++) {
        const clt_tensor *x = node->inputs[k];
        bool counts = !stays(node, k) && (node->op->stretches != CLT_STRETCH_ALL || clt_tensor_elements(x) == clt_tensor_elements(node));
        if (counts) dtype = dtype == CLT_U8 || dtype == x->dtype ? x->dtype : CLT_F32;
    }
    return dtype;
}

static clt_status adapt(autocast *a, clt_tensor *node) {
    clt_autocast rule = node->op->autocast_of ? node->op->autocast_of(node) : node->op->autocast;
    clt_dtype dtype = rule == CLT_AUTOCAST_LOW ? a->low : rule == CLT_AUTOCAST_F32 ? CLT_F32 : widest(node);
    return dtype == CLT_U8 ? CLT_OK : cast_all(a, node, dtype);
}

static clt_status run(autocast *a) {
    size_t n = a->graph->n_nodes;
    CLT_TRY(clt_grow(&a->keys, &a->capacity, n, sizeof *a->keys));
    for (size_t i = 0; i < n; i++) a->keys[i] = 2 * (int64_t)i;
    for (size_t i = 0; i < n; i++) {
        clt_tensor *node = a->graph->nodes[i];
        if (node->kind != CLT_NODE_OP) continue;
        CLT_TRY(adapt(a, node));
        clt_status status = node->op->infer(node);
        if (status < 0) return clt_fail_context(status, "in mixed precision, %s: ", clt_node_name(node));
    }
    return clt_graph_sort(a->graph, a->keys);
}

clt_status clt_graph_autocast(clt_graph *graph, clt_dtype low) {
    autocast a = {.graph = graph, .low = low};
    clt_status status = run(&a);
    clt_free(a.keys);
    return status;
}
