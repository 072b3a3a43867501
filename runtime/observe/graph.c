/* Graphs, as TensorBoard's plugin of that name reads them: a GraphDef of TensorFlow, whose nodes lie in boxes by the slashes in their names. */
#include "runtime/observe/observe.h"

#include <string.h>

#include "runtime/graph/scope.h"

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSION_PRODUCER = 1, PRODUCER = 22 }; /* of the ops' names: any will do */
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTRIBUTE = 5, ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, VALUE_LIST = 1, LIST_SHAPE = 7 };

typedef struct drawing {
    clt_text *to;
    const clt_scope *scopes;
    clt_text name; /* of a node; its memory is kept */
} drawing;

/* "layer1.0" as "layer1/0" */
static void add_parts(clt_text *to, const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) clt_text_add_bytes(to, name[i] == '.' ? "/" : &name[i], 1);
}

static int output_number(const clt_tensor *result) {
    const clt_tensor *node = result->inputs[0];
    int k = 0;
    while (k < node->op->more_outputs && node->outputs[k] != result) k++;
    return k + 1;
}

/* A further result is the node's that makes it: "split:1". */
static void add_name(drawing *d, const clt_tensor *tensor) {
    const clt_tensor *node = tensor->kind == CLT_NODE_OUTPUT ? tensor->inputs[0] : tensor;
    const clt_variable *of = d->scopes[node->index].variable;
    if (node->kind != CLT_NODE_OP) {
        add_parts(&d->name, node->name, strlen(node->name));
        return;
    }
    if (of) {
        add_parts(&d->name, of->name, clt_scope_length(of));
        clt_text_add(&d->name, "/");
    }
    clt_text_add(&d->name, "%s_%d", clt_node_name(node), node->index);
    if (tensor != node) clt_text_add(&d->name, ":%d", output_number(tensor));
}

static void put_name(drawing *d, int field, const clt_tensor *tensor) {
    d->name.length = 0;
    add_name(d, tensor);
    if (d->name.status < 0) d->to->status = d->name.status;
    else clt_proto_bytes(d->to, field, d->name.data, d->name.length);
}

static void put_shape(clt_text *to, const clt_shape *shape) {
    size_t message = clt_proto_begin(to, LIST_SHAPE);
    for (int i = 0; i < shape->rank; i++) {
        size_t dim = clt_proto_begin(to, SHAPE_DIM);
        clt_proto_varint(to, DIM_SIZE, (uint64_t)shape->dims[i]);
        clt_proto_end(to, dim);
    }
    clt_proto_end(to, message);
}

static void put_shapes(clt_text *to, const clt_tensor *node) {
    size_t attribute = clt_proto_begin(to, NODE_ATTRIBUTE);
    clt_proto_text(to, ATTRIBUTE_KEY, "_output_shapes");
    size_t value = clt_proto_begin(to, ATTRIBUTE_VALUE), list = clt_proto_begin(to, VALUE_LIST);
    put_shape(to, &node->shape);
    for (int k = 0; node->kind == CLT_NODE_OP && k < node->op->more_outputs; k++) put_shape(to, &node->outputs[k]->shape);
    clt_proto_end(to, list);
    clt_proto_end(to, value);
    clt_proto_end(to, attribute);
}

static const char *kind_name(const clt_tensor *node) {
    if (node->kind == CLT_NODE_OP) return clt_node_name(node);
    if (node->kind != CLT_NODE_VARIABLE) return "input";
    return node->variable->values ? "constant" : node->variable->is_input ? "input" : node->variable->is_buffer ? "buffer" : "parameter";
}

static void put_node(drawing *d, const clt_tensor *node) {
    size_t message = clt_proto_begin(d->to, GRAPH_NODE);
    put_name(d, NODE_NAME, node);
    clt_proto_text(d->to, NODE_OP, kind_name(node));
    for (int k = 0; k < node->n_inputs; k++) put_name(d, NODE_INPUT, node->inputs[k]);
    put_shapes(d->to, node);
    clt_proto_end(d->to, message);
}

static void put_nodes(drawing *d, const clt_graph *graph, const bool *reached) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (reached[i] && graph->nodes[i]->kind != CLT_NODE_OUTPUT) put_node(d, graph->nodes[i]);
    size_t versions = clt_proto_begin(d->to, GRAPH_VERSIONS);
    clt_proto_varint(d->to, VERSION_PRODUCER, PRODUCER);
    clt_proto_end(d->to, versions);
}

/* Of inputs, and of what is made for them: nobody has looked at those. */
static clt_status check_names(const clt_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->kind != CLT_NODE_OP && graph->nodes[i]->name) CLT_TRY(clt_event_check_name("a tensor's name", graph->nodes[i]->name));
    return CLT_OK;
}

static clt_status write_graph(clt_events *events, const clt_tensor *result, bool *reached) {
    const clt_graph *graph = result->graph;
    clt_scope *scopes;
    CLT_TRY(check_names(graph));
    CLT_TRY(clt_graph_scopes(graph, &scopes));
    clt_text content = {0};
    drawing d = {&content, scopes, {0}};
    clt_graph_mark(graph, &graph->nodes[result->index], 1, reached);
    put_nodes(&d, graph, reached);
    clt_event_open(events);
    if (content.status < 0) events->record.status = content.status;
    clt_proto_bytes(&events->record, EVENT_GRAPH, clt_text_data(&content), content.length);
    clt_status status = clt_event_write(events);
    clt_text_free(&d.name);
    clt_text_free(&content);
    clt_free(scopes);
    return status;
}

clt_status clt_events_graph(clt_events *events, const clt_tensor *result) {
    if (!events || !result) return clt_fail(CLT_E_INVALID, "clt_events_graph: an argument is NULL");
    CLT_TRY(clt_graph_status(result->graph));
    bool *reached = clt_calloc(result->graph->n_nodes, sizeof *reached);
    if (!reached) return clt_fail_memory(result->graph->n_nodes);
    clt_status status = write_graph(events, result, reached);
    clt_free(reached);
    return status < 0 ? clt_fail_context(status, "clt_events_graph: ") : CLT_OK;
}
