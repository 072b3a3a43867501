/* What a network is made of, layer by layer. */
#include "runtime/graph/scope.h"
#include "runtime/ops/ops.h"

typedef struct walk {
    const clt_graph *graph;
    clt_scope *scopes;
    bool *reached;          /* what the result depends on */
    bool *counted;          /* parameters */
    const clt_variable *of; /* the layer that is being added up; NULL: none yet */
    double most;            /* arithmetic of one of its nodes: that one names its op */
    clt_layer layer;
    clt_text name;
} walk;

static bool is_parameter(const walk *w, const clt_tensor *node) {
    return node->kind == CLT_NODE_VARIABLE && w->reached[node->index] && clt_variable_is_parameter(node->variable);
}

static void count(clt_layer *layer, const clt_tensor *parameter) {
    layer->parameters += clt_tensor_elements(parameter);
    if (parameter->variable->trained) layer->trained += clt_tensor_elements(parameter);
}

/* Those of the layer's name, which are counted once, though several layers may read them. */
static void count_parameters(walk *w) {
    for (size_t i = 0; i < w->graph->n_nodes; i++) {
        const clt_tensor *node = w->graph->nodes[i];
        if (!is_parameter(w, node) || w->counted[i] || !clt_scope_same(node->variable, w->of)) continue;
        count(&w->layer, node);
        w->counted[i] = true;
    }
}

static bool end_layer(walk *w, bool (*visit)(const clt_layer *layer, void *user), void *user) {
    if (!w->of) return true;
    w->layer.name = clt_text_data(&w->name);
    return !visit || visit(&w->layer, user);
}

static void begin_layer(walk *w, const clt_variable *of) {
    w->of = of;
    w->most = -1;
    w->layer = (clt_layer){0};
    w->name.length = 0;
    clt_text_add(&w->name, "%.*s", (int)clt_scope_length(of), of->name);
    count_parameters(w);
}

static void add_node(walk *w, const clt_tensor *node, double flops) {
    w->layer.flops += flops;
    w->layer.shape = node->shape;
    if (flops > w->most) w->most = flops, w->layer.op = clt_node_name(node);
}

static void add_up(const walk *w, const clt_tensor *result, clt_layer *total) {
    *total = (clt_layer){.name = "", .op = clt_node_name(result), .shape = result->shape};
    for (int i = 0; i <= result->index; i++) {
        const clt_tensor *node = w->graph->nodes[i];
        if (w->reached[i]) total->flops += clt_node_cost(node).flops;
        if (is_parameter(w, node)) count(total, node);
    }
}

static bool walk_nodes(walk *w, const clt_tensor *result, bool (*visit)(const clt_layer *layer, void *user), void *user) {
    for (int i = 0; i <= result->index; i++) {
        const clt_tensor *node = w->graph->nodes[i];
        const clt_scope *scope = &w->scopes[i];
        if (!w->reached[i] || node->kind != CLT_NODE_OP || !scope->reads) continue;
        if (!w->of || !clt_scope_same(w->of, scope->variable)) {
            if (!end_layer(w, visit, user)) return false;
            begin_layer(w, scope->variable);
        }
        add_node(w, node, clt_node_cost(node).flops);
    }
    return end_layer(w, visit, user);
}

clt_status clt_graph_layers(const clt_tensor *result, bool (*visit)(const clt_layer *layer, void *user), void *user, clt_layer *total) {
    if (!result) return clt_fail(CLT_E_INVALID, "clt_graph_layers: result is NULL");
    CLT_TRY(clt_graph_status(result->graph));
    clt_tensor *const *target = &result->graph->nodes[result->index];
    size_t nodes = result->graph->n_nodes;
    walk w = {.graph = result->graph, .reached = clt_calloc(nodes, sizeof *w.reached), .counted = clt_calloc(nodes, sizeof *w.counted)};
    clt_status status = w.reached && w.counted ? clt_graph_scopes(w.graph, &w.scopes) : clt_fail_memory(nodes);
    if (status == CLT_OK) {
        clt_graph_mark(w.graph, target, 1, w.reached);
        walk_nodes(&w, result, visit, user);
        if (total) add_up(&w, result, total);
        status = w.name.status;
    }
    clt_text_free(&w.name);
    clt_free(w.scopes);
    clt_free(w.counted);
    clt_free(w.reached);
    return status;
}
