/* Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"; names and first values of Hugging Face's PEFT. */
#include <cltrain/lora.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/name.h"
#include "runtime/ops/layer.h"
#include "runtime/ops/ops.h"

/* ---- which products ---- */

/* The second operand of a product, if it is a parameter [out, in] or [in, out]. */
static clt_tensor *factor_of(const clt_tensor *node) {
    if (node->kind != CLT_NODE_OP || node->op != &clt_op_matmul) return NULL;
    const clt_matmul_attributes *at = node->attributes;
    clt_tensor *weight = node->inputs[1];
    bool is_weight = weight->kind == CLT_NODE_VARIABLE && weight->shape.rank == 2 && clt_variable_is_parameter(weight->variable);
    return is_weight && !at->transpose_a && node->inputs[0] != weight ? weight : NULL;
}

/* Else what is merged into it would change more than products. */
static bool is_factor_alone(const clt_tensor *weight) {
    const clt_graph *graph = weight->graph;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++)
            if (graph->nodes[i]->inputs[k] == weight && factor_of(graph->nodes[i]) != weight) return false;
    return true;
}

static clt_tensor *weight_of(const clt_tensor *node, const char *pattern) {
    clt_tensor *weight = factor_of(node);
    return weight && clt_name_matches(weight->name, pattern) && is_factor_alone(weight) ? weight : NULL;
}

/* ---- one adapter ---- */

typedef struct adapted {
    clt_tensor *a, *b;
    clt_adapter *of;
} adapted;

static clt_status find_adapted(const clt_tensor *weight, adapted *found) {
    clt_adapter *of = weight->variable->adapter;
    *found = (adapted){clt_graph_find(weight->graph, of->a->name), clt_graph_find(weight->graph, of->b->name), of};
    return found->a && found->b ? CLT_OK : clt_fail(CLT_E_INVALID, "\"%s\" has an adapter already", weight->name);
}

static clt_status make_adapted(clt_tensor *weight, const clt_lora_options *o, bool turned, adapted *made) {
    clt_graph *graph = weight->graph;
    int64_t in = weight->shape.dims[turned ? 0 : 1], out = weight->shape.dims[turned ? 1 : 0];
    clt_text layer = {0};
    clt_text_add(&layer, "%.*s", (int)clt_layer_name_length(weight->name), weight->name);
    const char *name = clt_text_data(&layer);
    made->a = clt_layer_parameter(graph, name, "lora_A.weight", CLT_SHAPE(o->rank, in), clt_layer_init(in));
    made->b = clt_layer_parameter(graph, name, "lora_B.weight", CLT_SHAPE(out, o->rank), (clt_init){CLT_INIT_ZEROS});
    clt_text_free(&layer);
    CLT_TRY(layer.status);
    CLT_TRY(clt_graph_status(graph));
    made->of = clt_calloc(1, sizeof *made->of);
    if (!made->of) return clt_fail_memory(sizeof *made->of);
    *made->of = (clt_adapter){made->a->variable, made->b->variable, o->alpha, o->dropout, turned};
    made->a->variable->adapts = made->b->variable->adapts = true;
    weight->variable->adapter = made->of;
    weight->variable->trained = false;
    return CLT_OK;
}

/* The node becomes the sum of its product and the adapter's. */
static clt_status adapt(clt_tensor *node, const adapted *by) {
    const clt_adapter *of = by->of;
    clt_tensor *x = node->inputs[0];
    clt_tensor *product = clt_node(NULL, &clt_op_matmul, node->attributes, node->inputs, 2);
    clt_tensor *read = of->dropout > 0 ? clt_dropout(x, of->dropout) : x;
    clt_tensor *thin = clt_matmul_with(read, by->a, (clt_matmul_options){.transpose_b = true});
    clt_tensor *added = clt_matmul_with(thin, by->b, (clt_matmul_options){.transpose_b = true});
    float scale = clt_adapter_scale(of);
    if (scale != 1) added = clt_mul_scalar(added, scale);
    clt_tensor *sum = clt_add(product, added);
    CLT_TRY(clt_graph_status(node->graph));
    return clt_node_become(node, sum->op, sum->attributes, (clt_tensor *[]){product, added}, 2);
}

/* ---- the graph ---- */

/* Of the nodes that there were, each stays where it is, behind those that were made for it. */
static clt_status put_before(clt_graph *graph, size_t n_before, const int *user) {
    int64_t *keys = clt_calloc(graph->n_nodes, sizeof *keys);
    if (!keys) return clt_fail_memory(graph->n_nodes * sizeof *keys);
    for (size_t i = 0; i < graph->n_nodes; i++) keys[i] = i < n_before ? 2 * (int64_t)i + 1 : 2 * (int64_t)user[i - n_before];
    if (graph->rng) keys[graph->rng->index] = 1; /* it may have been made for a dropout behind: a leaf may stand first */
    clt_status status = clt_graph_sort(graph, keys);
    clt_free(keys);
    return status;
}

typedef struct adaption {
    const char *pattern;
    const clt_lora_options *options;
    int *user; /* of each new node */
    size_t n_users, capacity;
    int n;     /* products that were adapted */
} adaption;

static clt_status note_users(adaption *m, const clt_graph *graph, size_t n_before, int user) {
    while (n_before + m->n_users < graph->n_nodes) {
        CLT_TRY(clt_grow(&m->user, &m->capacity, m->n_users, sizeof *m->user));
        m->user[m->n_users++] = user;
    }
    return CLT_OK;
}

/* A weight that is multiplied by twice has one adapter. */
static clt_status adapt_node(adaption *m, clt_tensor *node, clt_tensor *weight, size_t n_before) {
    const clt_matmul_attributes *at = node->attributes;
    adapted by = {0};
    bool had = weight->variable->adapter != NULL;
    CLT_TRY(had ? find_adapted(weight, &by) : make_adapted(weight, m->options, !at->transpose_b, &by));
    if (had && (size_t)by.a->index < n_before) return clt_fail(CLT_E_INVALID, "\"%s\" is adapted already", weight->name);
    if (by.of->turned == at->transpose_b) return clt_fail(CLT_E_UNSUPPORTED, "\"%s\" is multiplied by as it lies and transposed: it cannot be adapted", weight->name);
    m->n++;
    return adapt(node, &by);
}

static clt_status adapt_all(adaption *m, clt_graph *graph) {
    size_t n = graph->n_nodes;
    for (size_t i = 0; i < n; i++) {
        clt_tensor *node = graph->nodes[i], *weight = weight_of(node, m->pattern);
        if (!weight) continue;
        CLT_TRY(adapt_node(m, node, weight, n));
        CLT_TRY(note_users(m, graph, n, (int)i));
    }
    return m->n ? put_before(graph, n, m->user) : CLT_OK;
}

static clt_status complete(clt_lora_options *o) {
    if (!o->rank) o->rank = 8;
    o->alpha = clt_or_default(o->alpha, (float)o->rank);
    if (o->rank < 1 || o->rank > CLT_LORA_MAX_RANK) return clt_fail(CLT_E_INVALID, "LoRA: rank %d: expected 1 to %d", o->rank, CLT_LORA_MAX_RANK);
    if (!isfinite(o->alpha)) return clt_fail(CLT_E_INVALID, "LoRA: alpha is not finite");
    return o->dropout >= 0 && o->dropout < 1 ? CLT_OK : clt_fail(CLT_E_INVALID, "LoRA: dropout %g: expected 0 or more, and less than 1", (double)o->dropout);
}

clt_status clt_graph_add_lora(clt_graph *graph, const char *pattern, const clt_lora_options *options) {
    char shown[CLT_SHOWN_TEXT];
    clt_lora_options o = options ? *options : (clt_lora_options){0};
    if (!graph || !pattern) return clt_fail(CLT_E_INVALID, "clt_graph_add_lora: graph or pattern is NULL");
    CLT_TRY(clt_graph_status(graph));
    CLT_TRY(complete(&o));
    adaption m = {.pattern = pattern, .options = &o};
    clt_status status = adapt_all(&m, graph);
    clt_free(m.user);
    if (status == CLT_OK && !m.n) return clt_fail(CLT_E_NOT_FOUND, "no weight of a linear layer matches \"%s\"", clt_show(pattern, shown));
    if (status < 0) clt_graph_fail(graph, status);
    return status;
}
