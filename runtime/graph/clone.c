/* Copies of a graph, possibly for another batch size and length. */
#include <string.h>

#include "runtime/graph/graph.h"

static clt_status copy_leaf(clt_graph *clone, const clt_tensor *node, clt_sizes sizes, clt_tensor **copy) {
    clt_shape shape = node->shape;
    switch (node->kind) {
    case CLT_NODE_INPUT:
        if (sizes.batch > 0 && shape.rank > 0) shape.dims[0] = sizes.batch;
        if (sizes.length > 0 && node->length_axis) shape.dims[node->length_axis] = sizes.length;
        if (node->length_axis) *copy = clt_sequence_input(clone, node->name, node->dtype, shape, node->length_axis);
        else *copy = clt_input(clone, node->name, node->dtype, shape);
        break;
    case CLT_NODE_RECEIVED: *copy = clt_received(clone, node->name, node->dtype, shape); break;
    case CLT_NODE_STATE:
        *copy = clt_state(clone, node->name, node->dtype, shape);
        if (clt_tensor_valid(*copy)) (*copy)->in_host = node->in_host;
        break;
    default: /* a variable: the copy is a state until it is bound to the shared one */
        *copy = clt_state(clone, node->name, node->dtype, shape);
        if (clt_tensor_valid(*copy)) {
            (*copy)->kind = CLT_NODE_VARIABLE;
            (*copy)->variable = node->variable;
        }
    }
    return clt_graph_status(clone);
}

static clt_status copy_name(const clt_tensor *node, clt_tensor *copy) {
    if (node->name && !(copy->name = clt_strdup(node->name))) return clt_fail_memory(strlen(node->name) + 1);
    return CLT_OK;
}

/* A table of the graph's own batch or length does not fit another one, which its op's shape rule tells, but of a size of one, which
 * would be stretched to it. */
static clt_status check_size_one(const clt_tensor *node, const clt_tensor *copy) {
    int rank = copy->shape.rank, own = node->op->stretches == CLT_STRETCH_BATCHES ? 2 : 0;
    for (int i = 0; node->op->stretches != CLT_STRETCH_NONE && i < node->n_inputs; i++) {
        const clt_shape *built = &node->inputs[i]->shape, *shape = &copy->inputs[i]->shape;
        for (int d = 0; d < shape->rank - own; d++) {
            int64_t size = copy->shape.dims[rank - shape->rank + d];
            if (shape->dims[d] != 1 || built->dims[d] == 1 || size == 1) continue;
            return clt_fail(CLT_E_SHAPE, "%s: dimension %d of operand %d is 1, and was %lld where the graph was built: it is not stretched to %lld", clt_node_name(node), d, i, (long long)built->dims[d], (long long)size);
        }
    }
    return CLT_OK;
}

static clt_status copy_op(clt_graph *clone, const clt_tensor *node, clt_tensor *const *map, clt_tensor **copy) {
    clt_tensor **inputs = clt_alloc((size_t)node->n_inputs * sizeof *inputs);
    if (!inputs) return clt_fail_memory((size_t)node->n_inputs * sizeof *inputs);
    for (int i = 0; i < node->n_inputs; i++) inputs[i] = map[node->inputs[i]->index];
    *copy = clt_node(clone, node->op, node->attributes, inputs, node->n_inputs);
    clt_free(inputs);
    CLT_TRY(clt_graph_status(clone));
    CLT_TRY(check_size_one(node, *copy));
    CLT_TRY(clt_tensor_check_told(node, *copy));
    for (int k = 0; k < node->op->more_outputs; k++) CLT_TRY(clt_tensor_check_told(node->outputs[k], (*copy)->outputs[k]));
    CLT_TRY(copy_name(node, *copy));
    for (int k = 0; k < node->op->more_outputs; k++) CLT_TRY(copy_name(node->outputs[k], (*copy)->outputs[k]));
    return CLT_OK;
}

static clt_status copy_nodes(const clt_graph *graph, const bool *marks, clt_sizes sizes, clt_graph *clone,
                             clt_tensor **map) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        /* All inputs stay, so that they match the batch's fields in order. */
        bool wanted = marks[i] || node->kind == CLT_NODE_INPUT;
        if (!wanted || node->kind == CLT_NODE_INVALID || node->kind == CLT_NODE_OUTPUT) continue;
        if (node->kind == CLT_NODE_OP) CLT_TRY(copy_op(clone, node, map, &map[i]));
        else CLT_TRY(copy_leaf(clone, node, sizes, &map[i]));
        map[i]->layout = node->layout;
        map[i]->segment = node->segment;
        map[i]->stage = node->stage;
        map[i]->backward = node->backward;
        map[i]->unread = node->unread;
        map[i]->boundary = node->boundary;
        for (int k = 0; node->op && k < node->op->more_outputs; k++) {
            clt_tensor *output = map[node->outputs[k]->index] = map[i]->outputs[k];
            output->segment = node->segment;
            output->stage = node->stage;
            output->backward = node->backward;
        }
    }
    return CLT_OK;
}

clt_status clt_graph_clone(const clt_graph *graph, clt_tensor *const *targets, int n_targets,
                           clt_sizes sizes, clt_graph **clone, clt_tensor ***map) {
    clt_graph *copy = NULL;
    clt_tensor **copies = clt_calloc(graph->n_nodes, sizeof *copies);
    bool *marks = clt_calloc(graph->n_nodes, sizeof *marks);
    clt_status status = CLT_OK;
    if (!copies || !marks) {
        status = clt_fail_memory(graph->n_nodes * sizeof *copies);
        goto fail;
    }
    CLT_TRY_GOTO(clt_graph_create(&copy));
    copy->origin = graph->origin ? graph->origin : graph;
    clt_graph_mark(graph, targets, n_targets, marks);
    CLT_TRY_GOTO(copy_nodes(graph, marks, sizes, copy, copies));
    if (graph->rng) copy->rng = copies[graph->rng->index];
    copy->n_random_sites = graph->n_random_sites;
    copy->segment = graph->segment;
    copy->stage = graph->stage;
    copy->backward = graph->backward;
    clt_free(marks);
    *clone = copy;
    *map = copies;
    return CLT_OK;
fail:
    clt_free(marks);
    clt_free(copies);
    clt_graph_destroy(copy);
    return status;
}
