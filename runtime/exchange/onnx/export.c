/* Networks of graphs as ONNX files. */
#include <stdio.h>
#include <string.h>

#include <cltrain/version.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/exchange/onnx/onnx.h"
#include "runtime/exchange/onnx/writer.h"
#include "runtime/train/preprocessing.h"
#include "runtime/train/trainer.h"

/* ONNX IR version 8 came with opset 17 (https://github.com/onnx/onnx/blob/main/docs/Versioning.md). */
enum { IR_VERSION = 8, OPSET = 17 };

typedef struct exported {
    clt_trainer *trainer;
    clt_tensor *const *outputs;
    int n_outputs;
    const char *location; /* of weights in a file of their own; NULL: they are in the model's */
    bool *marks;          /* by node: it is part of the network */
    clt_onnx_writer w;
} exported;

/* ---- names ---- */

static bool has_prefix(const clt_graph *graph, const char *prefix) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->name && !strncmp(graph->nodes[i]->name, prefix, strlen(prefix))) return true;
    return false;
}

/* Outputs that have no name of their own are "output", "output_1" and so on; `next` is the number of the first that may be free. */
static clt_status name_output(exported *e, int k, int *next, const char **name) {
    char *made;
    enum { BYTES = 32 };
    const clt_tensor *output = e->outputs[k];
    *name = output->name;
    if (!clt_tensor_is_leaf(output) && output->name) return CLT_OK;
    CLT_TRY(clt_arena_take(&e->w.arena, BYTES, 1, &made));
    *name = made;
    do {
        snprintf(made, BYTES, *next ? "output_%d" : "output", *next);
        ++*next;
    } while (clt_graph_find(e->w.graph, made));
    return CLT_OK;
}

/* Inputs, weights and results with names keep them. */
static clt_status name_values(exported *e) {
    const clt_graph *graph = e->w.graph;
    do clt_text_add(&e->w.prefix, "/");
    while (e->w.prefix.status == CLT_OK && has_prefix(graph, e->w.prefix.data));
    CLT_TRY(e->w.prefix.status);
    CLT_TRY(clt_arena_take(&e->w.arena, graph->n_nodes, sizeof *e->w.names, &e->w.names));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        e->w.names[i] = graph->nodes[i]->name;
        if (e->marks[i] && e->w.names[i]) CLT_TRY(clt_json_check_text(e->w.names[i]));
    }
    return CLT_OK;
}

/* ---- the network ---- */

static clt_status write_nodes(exported *e) {
    const clt_graph *graph = e->w.graph;
    for (size_t i = 0; i < graph->n_nodes && e->w.status == CLT_OK; i++) {
        const clt_tensor *node = graph->nodes[i];
        const char **in;
        if (!e->marks[i] || clt_tensor_is_leaf(node)) continue;
        CLT_TRY(clt_arena_take(&e->w.arena, (size_t)node->n_inputs, sizeof *in, &in));
        for (int k = 0; k < node->n_inputs; k++) in[k] = e->w.names[node->inputs[k]->index];
        e->w.names[i] = clt_onnx_write_node(&e->w, node, in, e->w.names[i]);
    }
    return e->w.status;
}

/* Whether a dimension follows the batch or the length. */
static bool varies(const clt_tensor *t, int d) {
    bool all = true;
    for (int k = 0; t->follows && k < CLT_TRIALS; k++) all &= t->other[k].rank < 0 || t->other[k].dims[d] == t->shape.dims[d];
    return !all;
}

/* ValueInfoProto: name, and the type: TypeProto.Tensor with its element's, and dimensions that are a number (1) or have a name (2). */
static void put_info(clt_text *to, uint32_t number, const clt_tensor *t, const char *name) {
    clt_text info = {0}, type = {0}, tensor = {0}, shape = {0};
    clt_shape extent = clt_tensor_extent(t);
    for (int d = 0; d < t->shape.rank; d++) {
        clt_text dim = {0};
        if (extent.dims[d] == CLT_BATCH) clt_wire_put_text(&dim, 2, "batch");
        else if (extent.dims[d] == CLT_LENGTH) clt_wire_put_text(&dim, 2, "length");
        else if (!varies(t, d)) clt_wire_put_int(&dim, 1, t->shape.dims[d]);
        clt_wire_put_message(&shape, 1, &dim);
    }
    clt_wire_put_int(&tensor, 1, clt_onnx_type_of_dtype(t->dtype));
    clt_wire_put_message(&tensor, 2, &shape);
    clt_wire_put_message(&type, 1, &tensor);
    clt_wire_put_text(&info, 1, name);
    clt_wire_put_message(&info, 2, &type);
    clt_wire_put_message(to, number, &info);
}

static bool is_input(const clt_tensor *t) {
    return t->kind == CLT_NODE_INPUT || (t->kind == CLT_NODE_VARIABLE && t->variable->is_input);
}

static bool is_weight(const clt_tensor *t) {
    return t->kind == CLT_NODE_VARIABLE && !t->variable->is_input;
}

/* GraphProto's inputs are field 11, outputs 12. An output that is an input or a weight itself has another name behind it. */
static clt_status write_ends(exported *e, const char *const *names) {
    clt_text *to = &e->w.nodes;
    for (int k = 0; k < e->n_outputs; k++) {
        const char *made = e->w.names[e->outputs[k]->index];
        if (strcmp(made, names[k])) CLT_ONNX_PUT(&e->w, "Identity", names[k], made);
        put_info(to, 12, e->outputs[k], names[k]);
    }
    clt_wire_put_text(to, 2, CLT_ONNX_PRODUCER);
    for (int samples = 1; samples >= 0; samples--) /* the first input tells which dimension is the batch */
        for (size_t i = 0; i < e->w.graph->n_nodes; i++) {
            const clt_tensor *t = e->w.graph->nodes[i];
            if (e->marks[i] && is_input(t) && (t->kind == CLT_NODE_INPUT) == samples) put_info(to, 11, t, t->name);
        }
    return to->status < 0 ? to->status : e->w.status;
}

/* ---- weights: TensorProto ---- */

static void put_pair(clt_text *to, uint32_t number, const char *key, const char *value) {
    clt_text pair = {0};
    clt_wire_put_text(&pair, 1, key);
    clt_wire_put_text(&pair, 2, value);
    clt_wire_put_message(to, number, &pair);
}

static void put_place(clt_text *tensor, uint32_t number, const char *key, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_pair(tensor, number, key, text);
}

/* What is in front of a weight's values; with a location they are in that file, at an offset. */
static clt_status put_front(const exported *e, const clt_variable *v, uint64_t offset, clt_text *front) {
    clt_text tensor = {0};
    uint64_t bytes = clt_variable_bytes(v);
    if (v->shape.rank) clt_wire_put_ints(&tensor, 1, v->shape.dims, (size_t)v->shape.rank);
    clt_wire_put_int(&tensor, 2, clt_onnx_type_of_dtype(v->dtype));
    clt_wire_put_text(&tensor, 8, v->name);
    if (v->values || v->is_buffer) put_pair(&tensor, 16, CLT_ONNX_KIND_KEY, v->values ? "constant" : "buffer");
    if (e->location) {
        put_pair(&tensor, 13, "location", e->location);
        put_place(&tensor, 13, "offset", offset);
        put_place(&tensor, 13, "length", bytes);
        clt_wire_put_int(&tensor, 14, 1);
        clt_wire_put_message(front, 5, &tensor);
        return front->status;
    }
    clt_wire_put_front(&tensor, 9, bytes);
    clt_wire_put_front(front, 5, tensor.length + bytes);
    if (tensor.length) clt_text_add_bytes(front, tensor.data, tensor.length);
    clt_status status = tensor.status < 0 ? tensor.status : front->status;
    clt_text_free(&tensor);
    return status;
}

static clt_status write_values(exported *e, const clt_variable *v, clt_file_writer *file) {
    return v->values ? clt_file_writer_write(file, v->values, clt_variable_bytes(v)) : clt_onnx_write_weight(file, e->trainer, v);
}

/* What is to be done for each weight: its bytes are counted, or written to a file. */
typedef struct weight_visit {
    clt_file_writer *fronts, *values; /* NULL: nothing is written there */
    uint64_t bytes;                   /* of the model's file */
} weight_visit;

static clt_status visit_weights(exported *e, weight_visit *visit) {
    uint64_t offset = 0;
    clt_status status = CLT_OK;
    for (size_t i = 0; i < e->w.graph->n_nodes && status == CLT_OK; i++) {
        const clt_tensor *t = e->w.graph->nodes[i];
        clt_text front = {0};
        if (!e->marks[i] || !is_weight(t)) continue;
        status = put_front(e, t->variable, offset, &front);
        visit->bytes += front.length + (e->location ? 0 : clt_variable_bytes(t->variable));
        if (status == CLT_OK && visit->fronts) status = clt_file_writer_write(visit->fronts, front.data, front.length);
        if (status == CLT_OK && visit->values) status = write_values(e, t->variable, visit->values);
        offset += clt_variable_bytes(t->variable);
        clt_text_free(&front);
    }
    return status;
}

/* ---- the file: ModelProto ---- */

static void put_opset(clt_text *head) {
    clt_text opset = {0};
    clt_wire_put_text(&opset, 1, "");
    clt_wire_put_int(&opset, 2, OPSET);
    clt_wire_put_message(head, 8, &opset);
}

/* Up to the nodes of the graph, which is the last field. */
static void put_head(const exported *e, uint64_t weights, clt_text *head) {
    clt_wire_put_int(head, 1, IR_VERSION);
    clt_wire_put_text(head, 2, CLT_ONNX_PRODUCER);
    clt_wire_put_text(head, 3, CLT_VERSION);
    put_opset(head);
    if (e->trainer->preprocessing_text) put_pair(head, 14, clt_preprocessing_key, e->trainer->preprocessing_text);
    clt_wire_put_front(head, 7, e->w.nodes.length + weights);
}

static clt_status write_model(exported *e, const char *path) {
    weight_visit visit = {0};
    clt_text head = {0};
    CLT_TRY(visit_weights(e, &visit));
    clt_file_writer *file;
    CLT_TRY(clt_file_writer_open(&file, path));
    put_head(e, visit.bytes, &head);
    clt_status status = head.status;
    if (status == CLT_OK) status = clt_file_writer_write(file, head.data, head.length);
    if (status == CLT_OK) status = clt_file_writer_write(file, e->w.nodes.data, e->w.nodes.length);
    if (status == CLT_OK) status = visit_weights(e, &(weight_visit){.fronts = file, .values = e->location ? NULL : file});
    clt_text_free(&head);
    return clt_file_writer_end(file, status);
}

static clt_status write_data(exported *e, const char *path) {
    clt_file_writer *file;
    CLT_TRY(clt_file_writer_open(&file, path));
    return clt_file_writer_end(file, visit_weights(e, &(weight_visit){.values = file}));
}

/* ---- all of it ---- */

static clt_status check(const clt_trainer *trainer, clt_tensor *const *outputs, int n) {
    if (n < 1) return clt_fail(CLT_E_INVALID, "clt_onnx_export: %d outputs; there must be 1 at least", n);
    for (int k = 0; k < n; k++) {
        if (!outputs[k]) return clt_fail(CLT_E_INVALID, "clt_onnx_export: output %d is NULL", k);
        if (outputs[k]->graph != trainer->graph) return clt_fail(CLT_E_INVALID, "clt_onnx_export: output %d is of another graph than the trainer's", k);
        CLT_TRY(clt_graph_status(outputs[k]->graph));
        if (!clt_onnx_type_of_dtype(outputs[k]->dtype)) return clt_fail(CLT_E_UNSUPPORTED, "clt_onnx_export: output %d is %s: f32 alone is exported of floats", k, clt_dtype_name(outputs[k]->dtype));
        for (int other = 0; other < k; other++)
            if (outputs[other] == outputs[k]) return clt_fail(CLT_E_INVALID, "clt_onnx_export: outputs %d and %d are the same", other, k);
    }
    return CLT_OK;
}

static void find_sizes(exported *e) {
    for (size_t i = e->w.graph->n_nodes; i-- > 0;) {
        const clt_tensor *t = e->w.graph->nodes[i];
        if (!e->marks[i] || t->kind != CLT_NODE_INPUT) continue;
        if (t->shape.rank) e->w.sized[CLT_SIZE_BATCH] = t;
        if (t->length_axis) e->w.sized[CLT_SIZE_LENGTH] = t;
    }
}

static clt_status build(exported *e) {
    const char **names;
    int next = 0;
    CLT_TRY(clt_arena_take(&e->w.arena, e->w.graph->n_nodes, sizeof *e->marks, &e->marks));
    CLT_TRY(clt_arena_take(&e->w.arena, (size_t)e->n_outputs, sizeof *names, &names));
    clt_graph_mark(e->w.graph, e->outputs, e->n_outputs, e->marks);
    find_sizes(e);
    CLT_TRY(name_values(e));
    for (int k = 0; k < e->n_outputs; k++) {
        CLT_TRY(name_output(e, k, &next, &names[k]));
        if (!clt_tensor_is_leaf(e->outputs[k])) e->w.names[e->outputs[k]->index] = names[k];
    }
    CLT_TRY(write_nodes(e));
    return write_ends(e, names);
}

/* Messages of protocol buffers have less than 2 GiB. */
static bool is_too_large(exported *e) {
    weight_visit visit = {0};
    return visit_weights(e, &visit) == CLT_OK && visit.bytes + e->w.nodes.length > INT32_MAX / 2;
}

static clt_status write_files(exported *e, const char *path, bool external) {
    clt_text data = {0};
    const char *slash = strrchr(path, '/');
    clt_text_add(&data, "%s.data", path);
    CLT_TRY(data.status);
    if (external || is_too_large(e)) e->location = data.data + (slash ? slash + 1 - path : 0);
    clt_status status = e->location ? write_data(e, data.data) : CLT_OK;
    if (status == CLT_OK) status = write_model(e, path);
    clt_text_free(&data);
    return status;
}

clt_status clt_onnx_export(clt_trainer *trainer, clt_tensor *const *outputs, int n, const char *path, const clt_onnx_export_options *options) {
    if (!trainer || !outputs || !path) return clt_fail(CLT_E_INVALID, "clt_onnx_export: trainer, outputs or path is NULL");
    CLT_TRY(check(trainer, outputs, n));
    exported e = {.trainer = trainer, .outputs = outputs, .n_outputs = n, .w = {.graph = trainer->graph, .arena = {.limit = SIZE_MAX}}};
    clt_status status = build(&e);
    if (status == CLT_OK) status = write_files(&e, path, options && options->external_data);
    clt_text_free(&e.w.prefix);
    clt_text_free(&e.w.nodes);
    clt_text_free(&e.w.attributes);
    clt_arena_free(&e.w.arena);
    return status;
}
