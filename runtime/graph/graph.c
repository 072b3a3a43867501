#include "runtime/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/name.h"

/* ---- nodes ---- */

static void tensor_free(clt_tensor *tensor) {
    if (!tensor) return;
    if (tensor->attributes && tensor->op->attributes_free) tensor->op->attributes_free(tensor->attributes);
    clt_free(tensor->attributes);
    clt_free(tensor->epilogue);
    clt_free(tensor->inputs);
    clt_free(tensor->name);
    clt_free(tensor);
}

/* Before the graph has it. */
static void node_free(clt_tensor *node) {
    for (int k = 0; k < CLT_MORE_OUTPUTS; k++) tensor_free(node->outputs[k]);
    tensor_free(node);
}

/* Gives the tensor to the graph, which frees it from then on; on error it is freed. */
static clt_status graph_adopt(clt_graph *graph, clt_tensor *tensor) {
    clt_status status = clt_grow(&graph->nodes, &graph->nodes_capacity, graph->n_nodes, sizeof *graph->nodes);
    if (status < 0) {
        tensor_free(tensor);
        return status;
    }
    tensor->graph = graph;
    tensor->segment = graph->segment;
    tensor->stage = graph->stage;
    tensor->backward = graph->backward;
    tensor->index = (int)graph->n_nodes;
    graph->nodes[graph->n_nodes++] = tensor;
    return CLT_OK;
}

static clt_tensor *tensor_new(clt_tensor_kind kind, const char *name) {
    clt_tensor *tensor = clt_calloc(1, sizeof *tensor);
    if (!tensor) return NULL;
    tensor->kind = kind;
    if (name && !(tensor->name = clt_strdup(name))) {
        clt_free(tensor);
        return NULL;
    }
    return tensor;
}

clt_tensor *clt_graph_fail(clt_graph *graph, clt_status status) {
    if (graph->status == CLT_OK) {
        graph->status = status;
        graph->error = clt_strdup(clt_error_detail());
    }
    return graph->invalid;
}

static clt_status copy_inputs(clt_tensor *tensor, clt_tensor *const *inputs, int n) {
    tensor->inputs = clt_alloc((size_t)n * sizeof *inputs);
    if (!tensor->inputs) return clt_fail_memory((size_t)n * sizeof *inputs);
    if (n) memcpy(tensor->inputs, inputs, (size_t)n * sizeof *inputs);
    tensor->n_inputs = n;
    return CLT_OK;
}

static clt_status copy_attributes(clt_tensor *tensor, const clt_op *op, const void *attributes) {
    void *copy = clt_alloc(op->attributes_bytes);
    if (!copy) return clt_fail_memory(op->attributes_bytes);
    memcpy(copy, attributes, op->attributes_bytes);
    clt_status status = op->attributes_copy ? op->attributes_copy(copy) : CLT_OK;
    if (status < 0) clt_free(copy);
    else tensor->attributes = copy;
    return status;
}

static clt_status make_outputs(clt_tensor *node) {
    for (int k = 0; k < node->op->more_outputs; k++) {
        clt_tensor *output = node->outputs[k] = tensor_new(CLT_NODE_OUTPUT, NULL);
        if (!output) return clt_fail_memory(sizeof *output);
        CLT_TRY(copy_inputs(output, &node, 1));
        output->follows = node->follows;
    }
    return CLT_OK;
}

static clt_status node_new(const clt_op *op, const void *attributes, clt_tensor *const *inputs, int n,
                           clt_tensor **node) {
    clt_tensor *tensor = tensor_new(CLT_NODE_OP, NULL);
    if (!tensor) return clt_fail_memory(sizeof *tensor);
    tensor->op = op;
    tensor->follows = attributes && clt_attributes_follow(op->schema, attributes);
    for (int i = 0; i < n; i++) tensor->follows |= inputs[i]->follows;
    clt_status status = copy_inputs(tensor, inputs, n);
    if (status == CLT_OK && attributes) status = copy_attributes(tensor, op, attributes);
    if (status == CLT_OK) status = make_outputs(tensor);
    if (status < 0) {
        node_free(tensor);
        return status;
    }
    *node = tensor;
    return CLT_OK;
}

static clt_status check_count(const clt_op *op, int n) {
    int most = CLT_MAX(op->least_inputs, op->most_inputs);
    if (!op->least_inputs || (n >= op->least_inputs && n <= most)) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "it takes %d operands%s, not %d", op->least_inputs, op->most_inputs ? " or more" : "", n);
}

static clt_status node_infer(clt_tensor *node) {
    clt_status status = check_count(node->op, node->n_inputs);
    if (status == CLT_OK && node->attributes) status = clt_attributes_check(node->op->schema, node->attributes);
    /* A label is made of attributes, which are not to be trusted here. */
    if (status < 0) return clt_fail_context(status, "%s: ", node->op->name);
    status = node->op->infer(node);
    if (status == CLT_OK) status = clt_shape_check(&node->shape, "its result");
    for (int k = 0; status == CLT_OK && k < node->op->more_outputs; k++)
        status = clt_shape_check(&node->outputs[k]->shape, "a further result");
    return status < 0 ? clt_fail_context(status, "%s: ", clt_node_name(node)) : CLT_OK;
}

/* ---- what follows the batch and the length ---- */

/* Batches may grow, lengths shrink. Next to a size are some that show strides and pairs; parts of it are sizes of what takes blocks; few and very many
 * show the smaller of two sizes, and sizes where both differ show what follows one by a factor that follows the other. */
bool clt_graph_trial(const clt_graph *graph, int k, int64_t *batch, int64_t *length) {
    int64_t b = graph->batch, l = graph->length, twice = b == 1 ? 3 : 2 * b, part = l - l / 3;
    const int64_t sizes[CLT_TRIALS][2] = {{b + 1, l}, {twice, l}, {b + 16, l}, {b == 1 ? 5 : 3 * b, l}, {1, l}, {257, l}, {65537, l},
                                          {b, l - 1}, {b, l - 2}, {b, l - 3}, {b, l - 4}, {b, l - 6}, {b, l - 8}, {b, l - l / 4}, {b, part}, {b, l / 3},
                                          {b, l - l / 5}, {b, l - 2 * (l / 5)}, {b, l / 2}, {b, l / 4}, {b, l > 8 ? 8 : 0}, {b, l > 5 ? 5 : 0}, {b, l > 3 ? 3 : 0}, {b, l > 2 ? 2 : 0}, {b, 1}, {b + 1, l - 1}, {twice, l / 2}, {twice, part}};
    *batch = b ? sizes[k][0] : 0;
    *length = l ? sizes[k][1] : 0;
    return !l || *length > 0;
}

/* Changes the shapes of the operands for those at trial k, or back. An operand that is there twice is changed once. */
static void exchange_shapes(clt_tensor *node, int k, bool there) {
    for (int i = 0; i < node->n_inputs; i++) {
        clt_tensor *x = node->inputs[i];
        clt_shape shape = x->shape;
        if (x->exchanged == there) continue;
        x->exchanged = there;
        x->shape = x->other[k];
        x->other[k] = shape;
    }
}

/* Infers once more, with operands of other sizes, as in a clone. What its shape rule refuses there, nobody knows. */
static void infer_at(clt_tensor *node, int k) {
    clt_tensor *results[1 + CLT_MORE_OUTPUTS] = {node};
    clt_shape shapes[1 + CLT_MORE_OUTPUTS];
    clt_graph *graph = node->graph, own = *graph;
    int64_t other_batch, other_length;
    int n = 1 + node->op->more_outputs;
    bool known = clt_graph_trial(graph, k, &other_batch, &other_length);
    for (int i = 0; i < node->n_inputs; i++) known &= node->inputs[i]->other[k].rank >= 0;
    for (int r = 0; r < n; r++) {
        if (r) results[r] = node->outputs[r - 1];
        shapes[r] = results[r]->shape;
    }
    if (known) {
        exchange_shapes(node, k, true);
        graph->batch = other_batch;
        graph->length = other_length;
        graph->origin = &own;
        known = node->op->infer(node) == CLT_OK;
        graph->batch = own.batch;
        graph->length = own.length;
        graph->origin = NULL;
        exchange_shapes(node, k, false);
    }
    for (int r = 0; r < n; r++) {
        clt_shape *shape = &results[r]->shape;
        for (int d = 0; known && d < shape->rank; d++) known &= shape->dims[d] > 0;
    }
    for (int r = 0; r < n; r++) {
        results[r]->other[k] = known ? results[r]->shape : (clt_shape){.rank = -1};
        results[r]->shape = shapes[r];
    }
}

/* Builders ask for it, which a clone has behind it. */
static void infer_others(clt_tensor *node) {
    bool asked = node->follows && !node->graph->origin;
    for (int k = 0; k < CLT_TRIALS; k++) {
        if (asked) infer_at(node, k);
        else node->other[k] = node->shape;
        for (int r = 0; !asked && r < node->op->more_outputs; r++) node->outputs[r]->other[k] = node->outputs[r]->shape;
    }
}

static clt_status adopt_node(clt_graph *graph, clt_tensor *node) {
    int more = node->op->more_outputs;
    clt_status status = clt_grow(&graph->nodes, &graph->nodes_capacity, graph->n_nodes + (size_t)more, sizeof *graph->nodes);
    if (status < 0) {
        node_free(node);
        return status;
    }
    graph_adopt(graph, node); /* there is room */
    for (int k = 0; k < more; k++) graph_adopt(graph, node->outputs[k]);
    return CLT_OK;
}

clt_tensor *clt_node(clt_graph *graph, const clt_op *op, const void *attributes,
                     clt_tensor *const *inputs, int n_inputs) {
    for (int i = 0; i < n_inputs; i++) {
        if (!inputs[i]) return NULL;
        if (!graph) graph = inputs[i]->graph;
    }
    if (!graph) return NULL;
    for (int i = 0; i < n_inputs; i++) {
        if (!clt_tensor_valid(inputs[i])) return graph->invalid;
        if (inputs[i]->graph != graph) {
            clt_tensor probe = {.kind = CLT_NODE_OP, .op = op, .attributes = (void *)(uintptr_t)attributes};
            return clt_graph_fail(graph, clt_fail(CLT_E_INVALID, "%s: operand %d belongs to another graph",
                                                  clt_node_name(&probe), i));
        }
    }
    clt_tensor *node = NULL;
    clt_status status = node_new(op, attributes, inputs, n_inputs, &node);
    if (status < 0) return clt_graph_fail(graph, status);
    node->graph = graph;
    status = node_infer(node);
    if (status == CLT_OK) infer_others(node);
    if (status < 0) node_free(node);
    else status = adopt_node(graph, node);
    return status < 0 ? clt_graph_fail(graph, status) : node;
}

clt_status clt_node_become(clt_tensor *node, const clt_op *op, const void *attributes, clt_tensor *const *inputs,
                           int n_inputs) {
    clt_tensor *other = NULL, kept = *node;
    CLT_TRY(node_new(op, attributes, inputs, n_inputs, &other));
    node->op = op;
    node->attributes = other->attributes;
    node->inputs = other->inputs;
    node->n_inputs = n_inputs;
    /* What the node had goes the way of the other. */
    other->op = kept.op;
    other->attributes = kept.attributes;
    other->inputs = kept.inputs;
    node_free(other);
    return CLT_OK;
}

/* ---- graphs ---- */

clt_status clt_graph_create(clt_graph **graph) {
    if (!graph) return clt_fail(CLT_E_INVALID, "clt_graph_create: graph is NULL");
    clt_graph *g = clt_calloc(1, sizeof *g);
    if (!g) return clt_fail_memory(sizeof *g);
    clt_tensor *invalid = tensor_new(CLT_NODE_INVALID, "invalid");
    if (!invalid || graph_adopt(g, invalid) < 0) {
        clt_free(g);
        return clt_fail_memory(sizeof *invalid);
    }
    invalid->shape.rank = -1;
    g->invalid = invalid;
    *graph = g;
    return CLT_OK;
}

void clt_graph_destroy(clt_graph *graph) {
    if (!graph) return;
    for (size_t i = 0; i < graph->n_nodes; i++) tensor_free(graph->nodes[i]);
    for (size_t i = 0; i < graph->n_variables; i++) {
        clt_free(graph->variables[i]->name);
        clt_free(graph->variables[i]->values);
        clt_free(graph->variables[i]->adapter);
        clt_free(graph->variables[i]);
    }
    clt_free(graph->variables);
    clt_free(graph->nodes);
    clt_free(graph->error);
    clt_free(graph);
}

clt_status clt_graph_status(const clt_graph *graph) {
    if (!graph) return clt_fail(CLT_E_INVALID, "clt_graph_status: graph is NULL");
    if (graph->status == CLT_OK) return CLT_OK;
    return clt_fail_again(graph->status, graph->error ? graph->error : "out of memory");
}

clt_variable *clt_graph_find_variable(const clt_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n_variables; i++)
        if (!strcmp(graph->variables[i]->name, name)) return graph->variables[i];
    return NULL;
}

int64_t clt_graph_parameter_count(const clt_graph *graph) {
    int64_t count = 0;
    for (size_t i = 0; graph && i < graph->n_variables; i++)
        if (graph->variables[i]->trained) count += clt_shape_elements(&graph->variables[i]->shape);
    return count;
}

const char *clt_graph_parameter(const clt_graph *graph, int64_t index, clt_shape *shape) {
    for (size_t i = 0; graph && index >= 0 && i < graph->n_variables; i++) {
        if (!graph->variables[i]->trained || index-- > 0) continue;
        if (shape) *shape = graph->variables[i]->shape;
        return graph->variables[i]->name;
    }
    return NULL;
}

void clt_graph_next_segment(clt_graph *graph) {
    graph->segment++;
}

/* Where nobody knows what follows the batch, dimension 0 does. */
static clt_shape extent_of(const clt_tensor *tensor) {
    clt_graph *graph = tensor->graph;
    clt_shape extent = tensor->shape;
    clt_size_point points[1 + CLT_TRIALS] = {{graph->batch, graph->length, 0}};
    const clt_shape *shapes[1 + CLT_TRIALS] = {&tensor->shape};
    int n = 1, batches = 0;
    for (int k = 0; tensor->follows && k < CLT_TRIALS; k++) {
        if (!clt_graph_trial(graph, k, &points[n].batch, &points[n].length) || tensor->other[k].rank != extent.rank) continue;
        shapes[n] = &tensor->other[k];
        batches += points[n++].batch != graph->batch;
    }
    for (int d = 0; d < extent.rank && tensor->follows; d++) {
        clt_multiple m;
        for (int i = 0; i < n; i++) points[i].dim = shapes[i]->dims[d];
        if (!batches && d == 0 && extent.dims[0] == graph->batch) extent.dims[0] = CLT_BATCH;
        else extent.dims[d] = clt_multiple_through(points, n, &m) ? clt_multiple_dim(m) : -1;
    }
    return extent;
}

clt_shape clt_tensor_extent(const clt_tensor *tensor) {
    ((clt_tensor *)(uintptr_t)tensor)->told = true;
    return extent_of(tensor);
}

clt_status clt_tensor_check_told(const clt_tensor *tensor, const clt_tensor *copy) {
    char is[CLT_SHAPE_TEXT], was[CLT_SHAPE_TEXT], label[64];
    bool as_told = true;
    if (!tensor->told || !tensor->follows || tensor->graph->origin) return CLT_OK;
    clt_shape extent = extent_of(tensor), there = extent;
    CLT_TRY(clt_graph_resolve(copy->graph, &there));
    for (int d = 0; d < extent.rank; d++) as_told &= extent.dims[d] == -1 || there.dims[d] == copy->shape.dims[d];
    if (as_told) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "%s is %s at this batch and length, where %s was expected from those that were tried: build the graph for this length or batch",
                    clt_tensor_label(tensor, label), clt_shape_text(&copy->shape, is), clt_shape_text(&extent, was));
}

/* ---- leaves ---- */

clt_status clt_graph_resolve_length(const clt_graph *graph, int64_t *dim) {
    if (!clt_dim_is_length(*dim)) return CLT_OK;
    if (!graph->length) return clt_fail(CLT_E_SHAPE, "CLT_LENGTH before the graph has a sequence input");
    *dim += graph->length - CLT_LENGTH;
    return CLT_OK;
}

clt_status clt_graph_resolve(const clt_graph *graph, clt_shape *shape) {
    for (int i = 0; i < shape->rank && i < CLT_MAX_RANK; i++) {
        int64_t *dim = &shape->dims[i];
        if (*dim == CLT_BATCH && !graph->batch) return clt_fail(CLT_E_SHAPE, "CLT_BATCH before the graph has an input with dimensions");
        clt_multiple m;
        if (clt_dim_is_length(*dim)) CLT_TRY(clt_graph_resolve_length(graph, dim));
        else if (clt_dim_multiple(*dim, &m)) *dim = clt_multiple_size(m, graph->batch, graph->length);
    }
    return CLT_OK;
}

static clt_tensor *leaf(clt_graph *graph, clt_tensor_kind kind, const char *name, clt_dtype dtype,
                        clt_shape shape) {
    clt_tensor *tensor = tensor_new(kind, name);
    if (!tensor) return clt_graph_fail(graph, clt_fail_memory(sizeof *tensor));
    tensor->dtype = dtype;
    tensor->shape = shape;
    for (int k = 0; k < CLT_TRIALS; k++) tensor->other[k] = shape;
    clt_status status = graph_adopt(graph, tensor);
    return status < 0 ? clt_graph_fail(graph, status) : tensor;
}

static clt_status check_leaf(const char *what, const char *name, const clt_shape *shape) {
    char label[128];
    if (!name || !name[0]) return clt_fail(CLT_E_INVALID, "%s without a name", what);
    snprintf(label, sizeof label, "%s \"%s\"", what, name);
    return clt_shape_check(shape, label);
}

/* Whatever has it: a name leads to one tensor. */
static clt_status check_name(const clt_graph *graph, const char *what, const char *name) {
    const clt_tensor *found = clt_graph_find(graph, name);
    if (!found && !clt_graph_find_variable(graph, name)) return CLT_OK;
    return clt_fail(CLT_E_INVALID, "%s \"%s\" exists already%s", what, name, found && found->kind == CLT_NODE_INPUT ? ", as an input" : "");
}

clt_tensor *clt_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape) {
    if (!graph) return NULL;
    clt_status status = CLT_OK;
    for (int d = 0; d < shape.rank && d < CLT_MAX_RANK; d++)
        if (clt_dim_is_length(shape.dims[d]))
            status = clt_fail(CLT_E_SHAPE, "input \"%s\": dimension %d is CLT_LENGTH: such an input is made by clt_sequence_input", name ? name : "", d);
    if (status == CLT_OK) status = clt_graph_resolve(graph, &shape);
    if (status == CLT_OK) status = check_leaf("input", name, &shape);
    if (status == CLT_OK) status = check_name(graph, "input", name);
    if (status < 0) return clt_graph_fail(graph, status);
    if (!clt_dtype_is_float(dtype) && dtype != CLT_I32 && dtype != CLT_U8)
        return clt_graph_fail(graph, clt_fail(CLT_E_DTYPE, "input \"%s\": %s is not supported; f32, f16, bf16, i32 and u8 are",
                                              name, clt_dtype_name(dtype)));
    int inputs = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) inputs += graph->nodes[i]->kind == CLT_NODE_INPUT;
    if (inputs == CLT_MAX_FIELDS)
        return clt_graph_fail(graph, clt_fail(CLT_E_UNSUPPORTED, "input \"%s\": a graph has at most %d inputs; what is the same for all samples can be a "
                                              "fixed input or a constant", name, CLT_MAX_FIELDS));
    if (!graph->batch && shape.rank > 0) graph->batch = shape.dims[0];
    clt_tensor *input = leaf(graph, CLT_NODE_INPUT, name, dtype, shape);
    if (!clt_tensor_valid(input)) return input;
    input->follows = true;
    for (int k = 0; shape.rank > 0 && k < CLT_TRIALS; k++) {
        int64_t length;
        clt_graph_trial(graph, k, &input->other[k].dims[0], &length);
    }
    return input;
}

clt_tensor *clt_sequence_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape, int axis) {
    if (!graph) return NULL;
    char text[CLT_SHAPE_TEXT];
    if (axis < 1 || axis >= shape.rank || shape.rank > CLT_MAX_RANK)
        return clt_graph_fail(graph, clt_fail(CLT_E_INVALID, "sequence input \"%s\": axis %d of %s; it must be in [1, %d]", name ? name : "", axis,
                                              clt_shape_text(&shape, text), shape.rank - 1));
    if (graph->length && shape.dims[axis] == CLT_LENGTH) shape.dims[axis] = graph->length;
    if (graph->length && shape.dims[axis] != graph->length)
        return clt_graph_fail(graph, clt_fail(CLT_E_SHAPE, "sequence input \"%s\": the length is %lld; that of the graph's others is %lld", name ? name : "",
                                              (long long)shape.dims[axis], (long long)graph->length));
    clt_tensor *input = clt_input(graph, name, dtype, shape);
    if (!clt_tensor_valid(input)) return input;
    input->length_axis = axis;
    graph->length = input->shape.dims[axis];
    for (int k = 0; k < CLT_TRIALS; k++) {
        int64_t batch;
        if (!clt_graph_trial(graph, k, &batch, &input->other[k].dims[axis])) input->other[k].rank = -1;
    }
    return input;
}

/* `like` is copied but for its name and index. */
static clt_status variable_new(clt_graph *graph, const char *name, const clt_variable *like, clt_variable **variable) {
    CLT_TRY(clt_grow(&graph->variables, &graph->variables_capacity, graph->n_variables,
                     sizeof *graph->variables));
    clt_variable *v = clt_calloc(1, sizeof *v);
    if (!v || !(v->name = clt_strdup(name))) {
        clt_free(v);
        return clt_fail_memory(sizeof *v);
    }
    char *own = v->name;
    *v = *like;
    v->name = own;
    v->index = (int)graph->n_variables;
    graph->variables[graph->n_variables++] = v;
    *variable = v;
    return CLT_OK;
}

static clt_status check_variable(const char *what, const char *name, const clt_shape *shape) {
    char text[CLT_SHAPE_TEXT];
    CLT_TRY(check_leaf(what, name, shape));
    /* They lie in flat tensors, whose kernels count with 32 bits. */
    if (clt_shape_elements(shape) > INT32_MAX)
        return clt_fail(CLT_E_SHAPE, "%s \"%s\": shape %s has more than 2^31 - 1 elements; split it into several", what, name,
                        clt_shape_text(shape, text));
    clt_status status = clt_variable_name_check(name);
    return status < 0 ? clt_fail_context(status, "the name of a %s: ", what) : CLT_OK;
}

/* `like` as above; its values are taken over, also on an error. */
static clt_tensor *add_variable(clt_graph *graph, const char *what, const char *name, const clt_variable *like) {
    clt_status status = check_variable(what, name, &like->shape);
    if (status == CLT_OK && graph->origin)
        status = clt_fail(CLT_E_STATE, "%s \"%s\": a clone shares its origin's variables", what, name);
    if (status == CLT_OK) status = check_name(graph, what, name);
    if (status == CLT_OK && (like->init.kind < CLT_INIT_ZEROS || like->init.kind > CLT_INIT_READ))
        status = clt_fail(CLT_E_INVALID, "%s \"%s\": unknown initializer %d", what, name, (int)like->init.kind);
    if (status == CLT_OK && like->init.kind == CLT_INIT_VALUES && !like->init.values)
        status = clt_fail(CLT_E_INVALID, "%s \"%s\": CLT_INIT_VALUES without values", what, name);
    if (status == CLT_OK && like->init.kind == CLT_INIT_READ && !like->init.read)
        status = clt_fail(CLT_E_INVALID, "%s \"%s\": CLT_INIT_READ without a function", what, name);
    clt_variable *variable = NULL;
    if (status == CLT_OK) status = variable_new(graph, name, like, &variable);
    if (status < 0) {
        clt_free(like->values);
        return clt_graph_fail(graph, status);
    }
    clt_tensor *tensor = leaf(graph, CLT_NODE_VARIABLE, name, like->dtype, like->shape);
    if (clt_tensor_valid(tensor)) tensor->variable = variable;
    return tensor;
}

clt_tensor *clt_parameter(clt_graph *graph, const char *name, clt_shape shape, clt_init init) {
    return graph ? add_variable(graph, "parameter", name, &(clt_variable){.dtype = CLT_F32, .shape = shape, .init = init, .trained = true}) : NULL;
}

clt_tensor *clt_buffer_with(clt_graph *graph, const char *name, clt_shape shape, clt_init init, clt_buffer_options options) {
    clt_variable like = {.dtype = CLT_F32, .shape = shape, .init = init, .is_buffer = true, .unsaved = options.unsaved};
    return graph ? add_variable(graph, "buffer", name, &like) : NULL;
}

clt_tensor *clt_buffer(clt_graph *graph, const char *name, clt_shape shape, clt_init init) {
    return clt_buffer_with(graph, name, shape, init, (clt_buffer_options){0});
}

static clt_status check_values(const char *what, const char *name, clt_dtype dtype, const clt_shape *shape) {
    if (!clt_dtype_is_float(dtype) && dtype != CLT_I32 && dtype != CLT_U8)
        return clt_fail(CLT_E_DTYPE, "%s \"%s\": %s is not supported; f32, f16, bf16, i32 and u8 are", what, name ? name : "", clt_dtype_name(dtype));
    return check_variable(what, name, shape);
}

static clt_status copy_values(const char *name, const clt_array *values, void **copy) {
    if (!values || !values->data) return clt_fail(CLT_E_INVALID, "constant \"%s\": it has no values", name ? name : "");
    CLT_TRY(check_values("constant", name, values->dtype, &values->shape));
    size_t bytes = (size_t)clt_shape_elements(&values->shape) * clt_dtype_bytes(values->dtype);
    *copy = clt_alloc(bytes);
    if (!*copy) return clt_fail_memory(bytes);
    memcpy(*copy, values->data, bytes);
    return CLT_OK;
}

clt_tensor *clt_constant(clt_graph *graph, const char *name, const clt_array *values) {
    void *copy = NULL;
    if (!graph) return NULL;
    clt_status status = copy_values(name, values, &copy);
    if (status < 0) return clt_graph_fail(graph, status);
    return add_variable(graph, "constant", name, &(clt_variable){.dtype = values->dtype, .shape = values->shape, .values = copy});
}

clt_tensor *clt_fixed_input(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape) {
    if (!graph) return NULL;
    clt_status status = check_values("fixed input", name, dtype, &shape);
    if (status < 0) return clt_graph_fail(graph, status);
    return add_variable(graph, "fixed input", name, &(clt_variable){.dtype = dtype, .shape = shape, .is_input = true});
}

clt_tensor *clt_received(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape) {
    clt_status status = check_leaf("received tensor", name, &shape);
    return status < 0 ? clt_graph_fail(graph, status) : leaf(graph, CLT_NODE_RECEIVED, name, dtype, shape);
}

clt_tensor *clt_state(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape) {
    clt_status status = check_leaf("state", name, &shape);
    return status < 0 ? clt_graph_fail(graph, status) : leaf(graph, CLT_NODE_STATE, name, dtype, shape);
}

clt_status clt_parameter_set_trained(clt_tensor *parameter, bool trained) {
    if (!parameter) return clt_fail(CLT_E_INVALID, "clt_parameter_set_trained: parameter is NULL");
    if (!clt_tensor_valid(parameter)) return clt_graph_status(parameter->graph);
    if (parameter->kind != CLT_NODE_VARIABLE || !clt_variable_is_parameter(parameter->variable))
        return clt_fail(CLT_E_INVALID, "clt_parameter_set_trained: \"%s\" is not a parameter", clt_tensor_name(parameter));
    parameter->variable->trained = trained;
    return CLT_OK;
}

clt_status clt_graph_set_trained(clt_graph *graph, const char *pattern, bool trained) {
    bool any = false;
    char shown[CLT_SHOWN_TEXT];
    if (!graph || !pattern) return clt_fail(CLT_E_INVALID, "clt_graph_set_trained: graph or pattern is NULL");
    for (size_t i = 0; i < graph->n_variables; i++) {
        clt_variable *v = graph->variables[i];
        if (!clt_variable_is_parameter(v) || !clt_name_matches(v->name, pattern)) continue;
        v->trained = trained;
        any = true;
    }
    return any ? CLT_OK : clt_fail(CLT_E_NOT_FOUND, "no parameter's name matches \"%s\"", clt_show(pattern, shown));
}

/* ---- facts ---- */

clt_tensor *clt_graph_find(const clt_graph *graph, const char *name) {
    for (size_t i = 0; graph && name && i < graph->n_nodes; i++) {
        clt_tensor *node = graph->nodes[i];
        if (node->name && node->kind != CLT_NODE_STATE && clt_tensor_valid(node) && !strcmp(node->name, name)) return node;
    }
    return NULL;
}

clt_status clt_tensor_set_name(clt_tensor *tensor, const char *name) {
    char shown[CLT_SHOWN_TEXT];
    if (!tensor || !name || !name[0]) return clt_fail(CLT_E_INVALID, "clt_tensor_set_name: tensor is NULL, or name is NULL or empty");
    if (!clt_tensor_valid(tensor)) return clt_graph_status(tensor->graph);
    if (clt_tensor_is_leaf(tensor)) return clt_fail(CLT_E_INVALID, "clt_tensor_set_name: \"%s\" is not a result of an op: its name stays", clt_show(tensor->name, shown));
    clt_tensor *other = clt_graph_find(tensor->graph, name);
    if (other && other != tensor) return clt_fail(CLT_E_INVALID, "clt_tensor_set_name: the graph has a tensor \"%s\" already", clt_show(name, shown));
    char *copy = clt_strdup(name);
    if (!copy) return clt_fail_memory(strlen(name) + 1);
    clt_free(tensor->name);
    tensor->name = copy;
    return CLT_OK;
}

clt_tensor *clt_checkpoint_boundary(clt_tensor *tensor) {
    if (tensor && clt_tensor_valid(tensor)) tensor->boundary = true;
    return tensor;
}

clt_shape clt_tensor_shape(const clt_tensor *tensor) {
    return tensor ? tensor->shape : (clt_shape){.rank = -1};
}

clt_dtype clt_tensor_dtype(const clt_tensor *tensor) {
    return tensor ? tensor->dtype : CLT_F32;
}

const char *clt_tensor_name(const clt_tensor *tensor) {
    if (!tensor) return "";
    return tensor->name ? tensor->name : clt_node_name(tensor);
}

void clt_tensor_order(const clt_tensor *tensor, int order[CLT_MAX_RANK]) {
    static const int channels_last[4] = {0, 2, 3, 1};
    for (int d = 0; d < tensor->shape.rank; d++)
        order[d] = tensor->layout == CLT_LAYOUT_CHANNELS_LAST ? channels_last[d] : d;
}

/* Rank 4 with one channel or one pixel: both layouts are the same bytes. */
static bool layouts_coincide(const clt_tensor *tensor) {
    const int64_t *dims = tensor->shape.dims;
    return tensor->shape.rank == 4 && (dims[1] == 1 || dims[2] * dims[3] == 1);
}

bool clt_tensor_channels_last(const clt_tensor *tensor) {
    return tensor->layout == CLT_LAYOUT_CHANNELS_LAST || layouts_coincide(tensor);
}

bool clt_tensor_contiguous(const clt_tensor *tensor) {
    return tensor->layout == CLT_LAYOUT_CONTIGUOUS || layouts_coincide(tensor);
}

const char *clt_node_name(const clt_tensor *node) {
    if (node->kind == CLT_NODE_OUTPUT) node = node->inputs[0];
    if (node->kind != CLT_NODE_OP) return node->name;
    return node->op->label ? node->op->label(node) : node->op->name;
}

const char *clt_tensor_label(const clt_tensor *tensor, char text[64]) {
    if (tensor->name) snprintf(text, 64, "\"%s\"", tensor->name);
    else snprintf(text, 64, "%s #%d", clt_node_name(tensor), tensor->index);
    return text;
}

/* Whatever a marked node depends on. */
static void mark_inputs(const clt_graph *graph, bool *marks) {
    for (size_t i = graph->n_nodes; i-- > 0;)
        for (int k = 0; marks[i] && k < graph->nodes[i]->n_inputs; k++)
            marks[graph->nodes[i]->inputs[k]->index] = true;
}

void clt_graph_mark(const clt_graph *graph, clt_tensor *const *targets, int n_targets, bool *marks) {
    for (int i = 0; i < n_targets; i++) marks[targets[i]->index] = true;
    mark_inputs(graph, marks);
}

void clt_graph_mark_kept(const clt_graph *graph, bool *marks) {
    for (size_t i = 0; i < graph->n_nodes; i++) marks[i] |= graph->nodes[i]->kept;
    mark_inputs(graph, marks);
}

/* ---- order ---- */

typedef struct keyed {
    clt_tensor *node;
    int64_t key;
} keyed;

/* Further results stay right behind their op. */
static const clt_tensor *maker_of(const clt_tensor *node) {
    return node->kind == CLT_NODE_OUTPUT ? node->inputs[0] : node;
}

static int by_key(const void *left, const void *right) {
    const keyed *a = left, *b = right;
    int x = maker_of(a->node)->index, y = maker_of(b->node)->index;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    if (x != y) return x < y ? -1 : 1;
    if (a->node == maker_of(a->node) || b->node == maker_of(b->node)) return a->node == maker_of(a->node) ? -1 : 1;
    return a->node->index < b->node->index ? -1 : a->node->index > b->node->index;
}

clt_status clt_graph_sort(clt_graph *graph, const int64_t *keys) {
    keyed *list = clt_alloc(graph->n_nodes * sizeof *list);
    if (!list) return clt_fail_memory(graph->n_nodes * sizeof *list);
    for (size_t i = 0; i < graph->n_nodes; i++) list[i] = (keyed){graph->nodes[i], keys[maker_of(graph->nodes[i])->index]};
    qsort(list, graph->n_nodes, sizeof *list, by_key);
    for (size_t i = 0; i < graph->n_nodes; i++) graph->nodes[i] = list[i].node;
    for (size_t i = 0; i < graph->n_nodes; i++) graph->nodes[i]->index = (int)i;
    clt_free(list);
    return CLT_OK;
}
