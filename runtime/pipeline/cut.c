#include "runtime/pipeline/cut.h"

#include <stdio.h>

/* ---- stages of forward ---- */

/* What the caller gives to each stage. */
static bool is_given(const clt_tensor *node) {
    const clt_variable *variable = node->kind == CLT_NODE_VARIABLE ? node->variable : NULL;
    return variable && (variable->is_input || variable->values);
}

static bool is_any(const clt_tensor *node) {
    return node->kind == CLT_NODE_INPUT || node->kind == CLT_NODE_STATE || node->stage == CLT_STAGE_ANY;
}

/* What a tensor is made of: nothing but constants, and fixed inputs; weights, and these; or what follows the batch. */
typedef enum origin { CONSTANT, WEIGHT, ACTIVATION } origin;

static origin origin_of(const clt_tensor *node, const origin *origins) {
    origin made = is_given(node) ? CONSTANT : node->kind == CLT_NODE_VARIABLE ? WEIGHT : clt_tensor_is_leaf(node) ? ACTIVATION : CONSTANT;
    for (int k = 0; k < node->n_inputs; k++) made = CLT_MAX(made, origins[node->inputs[k]->index]);
    return made;
}

static int stage_at(clt_tensor *const *begins, int stages, int index) {
    int stage = 0;
    while (stage < stages - 1 && index >= begins[stage]->index) stage++;
    return stage;
}

/* Weights, and what is made of them alone, come to the first stage that reads them. */
static void assign(clt_graph *graph, clt_tensor *const *begins, int stages, const origin *origins) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        bool computed = origins[i] == ACTIVATION && !clt_tensor_is_leaf(node);
        node->stage = computed ? stage_at(begins, stages, node->kind == CLT_NODE_OUTPUT ? node->inputs[0]->index : (int)i) : origins[i] == WEIGHT ? stages : CLT_STAGE_ANY;
    }
    for (size_t i = graph->n_nodes; i-- > 0;)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++) {
            clt_tensor *input = graph->nodes[i]->inputs[k];
            if (origins[input->index] == WEIGHT) input->stage = CLT_MIN(input->stage, graph->nodes[i]->stage);
        }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        if (node->stage == stages) node->stage = CLT_STAGE_ANY; /* nobody reads it */
        if (node->kind == CLT_NODE_OUTPUT) node->stage = node->inputs[0]->stage;
    }
}

clt_status clt_stages_assign(clt_graph *graph, clt_tensor *const *begins, int stages) {
    origin *origins = clt_calloc(graph->n_nodes, sizeof *origins);
    if (!origins) return clt_fail_memory(graph->n_nodes * sizeof *origins);
    for (size_t i = 0; i < graph->n_nodes; i++) origins[i] = origin_of(graph->nodes[i], origins);
    assign(graph, begins, stages, origins);
    clt_free(origins);
    return CLT_OK;
}

/* ---- edges ---- */

/* To that rank. */
static clt_edge *find_edge(const clt_edges *edges, const clt_tensor *tensor, int rank, int ranks) {
    for (size_t i = 0; i < edges->n; i++)
        if (edges->items[i].tensor == tensor && edges->items[i].to % ranks == rank) return &edges->items[i];
    return NULL;
}

static clt_status add_edge(clt_edges *edges, clt_tensor *tensor, int to, int ranks) {
    clt_edge *known = find_edge(edges, tensor, to % ranks, ranks);
    if (known) { /* backward goes through the stages from the last on */
        known->to = tensor->backward ? CLT_MAX(known->to, to) : CLT_MIN(known->to, to);
        return CLT_OK;
    }
    CLT_TRY(clt_grow(&edges->items, &edges->capacity, edges->n, sizeof *edges->items));
    edges->items[edges->n++] = (clt_edge){.tensor = tensor, .from = tensor->stage, .to = to};
    return CLT_OK;
}

static clt_status add_edges(clt_edges *edges, const clt_tensor *node, int ranks) {
    for (int k = 0; k < node->n_inputs; k++) {
        clt_tensor *input = node->inputs[k];
        if (!is_any(input) && !is_any(node) && input->stage % ranks != node->stage % ranks) CLT_TRY(add_edge(edges, input, node->stage, ranks));
    }
    return CLT_OK;
}

static clt_status find_edges(const clt_graph *graph, clt_tensor *const *targets, int n_targets, int ranks, clt_edges *edges) {
    bool *marks = clt_calloc(graph->n_nodes, sizeof *marks);
    clt_status status = marks ? CLT_OK : clt_fail_memory(graph->n_nodes);
    if (marks) clt_graph_mark(graph, targets, n_targets, marks);
    for (size_t i = 0; status == CLT_OK && i < graph->n_nodes; i++)
        if (marks[i]) status = add_edges(edges, graph->nodes[i], ranks);
    clt_free(marks);
    return status;
}

/* ---- the part of one rank ---- */

int clt_segment_of(clt_turn_kind kind, int chunk, int chunks) {
    return kind == CLT_TURN_FORWARD ? chunk : kind == CLT_TURN_BACKWARD ? 2 * chunks - 1 - chunk : 2 * chunks;
}

int clt_segment_of_update(int chunks) {
    return 2 * chunks + 1;
}

/* Before all else that is computed. */
static clt_status receive(clt_graph *graph, clt_edge *edge, size_t number, size_t n, const clt_cut *cut) {
    char name[48];
    snprintf(name, sizeof name, "pipeline.%zu", number);
    edge->received = clt_received(graph, name, edge->tensor->dtype, edge->tensor->shape);
    CLT_TRY(clt_graph_status(graph));
    edge->received->stage = edge->to;
    for (size_t i = 0; i < n; i++) {
        clt_tensor *node = graph->nodes[i];
        bool own = node->stage != CLT_STAGE_ANY && node->stage % cut->ranks == cut->own;
        for (int k = 0; own && k < node->n_inputs; k++)
            if (node->inputs[k] == edge->tensor) node->inputs[k] = edge->received;
    }
    return CLT_OK;
}

/* What is sent of backward, and with it all that it takes, is not of the gradients of weights alone. */
static void mark_waited_for(const clt_graph *graph, const clt_edges *edges, const clt_cut *cut, bool *marks) {
    for (size_t i = 0; i < edges->n; i++)
        if (edges->items[i].from % cut->ranks == cut->own && edges->items[i].tensor->backward) marks[edges->items[i].tensor->index] = true;
    for (size_t i = graph->n_nodes; i-- > 0;)
        for (int k = 0; marks[i] && k < graph->nodes[i]->n_inputs; k++) marks[graph->nodes[i]->inputs[k]->index] = true;
}

/* What any stage computes for itself is there from its first turn on. */
static int segment_of(const clt_tensor *node, bool waited_for, const clt_cut *cut) {
    clt_turn_kind kind = !node->backward ? CLT_TURN_FORWARD : cut->apart && !waited_for ? CLT_TURN_WEIGHTS : CLT_TURN_BACKWARD;
    int chunk = node->stage != CLT_STAGE_ANY ? node->stage / cut->ranks : kind == CLT_TURN_FORWARD ? 0 : cut->chunks - 1;
    return clt_segment_of(kind, chunk, cut->chunks);
}

/* By segment, and within it as they were; what is received comes first. */
static clt_status sort(clt_graph *graph, const bool *waited_for, const clt_cut *cut) {
    int64_t *keys = clt_calloc(graph->n_nodes, sizeof *keys);
    if (!keys) return clt_fail_memory(graph->n_nodes * sizeof *keys);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        node->segment = segment_of(node, waited_for[i], cut);
        keys[i] = node->kind == CLT_NODE_RECEIVED ? -1 : clt_tensor_is_leaf(node) ? 0 : node->segment + 1;
    }
    clt_status status = clt_graph_sort(graph, keys);
    clt_free(keys);
    return status;
}

static clt_status take_part(clt_graph *graph, const clt_cut *cut, clt_edges *edges) {
    size_t n = graph->n_nodes;
    for (size_t i = 0; i < edges->n; i++)
        if (edges->items[i].to % cut->ranks == cut->own) CLT_TRY(receive(graph, &edges->items[i], i, n, cut));
    bool *waited_for = clt_calloc(graph->n_nodes, sizeof *waited_for);
    if (!waited_for) return clt_fail_memory(graph->n_nodes);
    mark_waited_for(graph, edges, cut, waited_for);
    clt_turn_kind last = !graph->backward ? CLT_TURN_FORWARD : cut->apart ? CLT_TURN_WEIGHTS : CLT_TURN_BACKWARD;
    graph->segment = clt_segment_of(last, graph->backward ? 0 : cut->chunks - 1, cut->chunks);
    clt_status status = sort(graph, waited_for, cut);
    clt_free(waited_for);
    return status;
}

clt_status clt_stages_cut(clt_graph *graph, clt_tensor *const *targets, int n_targets, const clt_cut *cut, clt_edges *edges) {
    *edges = (clt_edges){0};
    CLT_TRY(find_edges(graph, targets, n_targets, cut->ranks, edges));
    return take_part(graph, cut, edges);
}
