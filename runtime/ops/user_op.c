/* An op that the caller brings, with OpenCL C of its own. */
#include <math.h>
#include <string.h>

#include "runtime/ops/ops.h"

/* ---- the definition, shared by the nodes that use it ---- */

static void definition_release(clt_user_definition *d) {
    if (!d || --d->references > 0) return;
    clt_free(d->name);
    clt_free(d->source);
    clt_free(d->forward);
    for (int i = 0; i < CLT_USER_OP_MAX_INPUTS; i++) clt_free(d->backward[i]);
    clt_free(d);
}

static clt_status definition_new(const clt_user_op *op, clt_user_definition **definition) {
    clt_user_definition *d = clt_calloc(1, sizeof *d);
    if (!d) return clt_fail_memory(sizeof *d);
    d->references = 1;
    d->n_inputs = op->n_inputs;
    d->shape = op->shape;
    d->user = op->user;
    d->name = clt_strdup(op->name);
    d->source = clt_strdup(op->source);
    d->forward = clt_strdup(op->forward);
    bool whole = d->name && d->source && d->forward;
    for (int i = 0; i < op->n_inputs && whole; i++)
        if (op->backward[i]) whole = (d->backward[i] = clt_strdup(op->backward[i])) != NULL;
    if (!whole) {
        definition_release(d);
        return clt_fail_memory(strlen(op->source));
    }
    *definition = d;
    return CLT_OK;
}

static void attributes_free(void *attributes) {
    definition_release(((clt_user_attributes *)attributes)->definition);
}

static clt_status attributes_copy(void *attributes) {
    ((clt_user_attributes *)attributes)->definition->references++;
    return CLT_OK;
}

/* ---- rules ---- */

static clt_status infer(clt_tensor *node) {
    const clt_user_definition *d = ((const clt_user_attributes *)node->attributes)->definition;
    clt_shape shapes[CLT_USER_OP_MAX_INPUTS], result = node->inputs[0]->shape;
    for (int i = 0; i < node->n_inputs; i++) {
        CLT_TRY(clt_check_dtype(node, i, CLT_F32));
        shapes[i] = node->inputs[i]->shape;
    }
    if (d->shape) {
        result.rank = -1;
        clt_fail(CLT_E_SHAPE, "its shape rule refused the operands");
        CLT_TRY(d->shape(shapes, node->n_inputs, &result, d->user));
    }
    node->shape = result;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    const clt_user_attributes *at = node->attributes;
    node->shape = node->inputs[at->input]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_user_attributes *at = node->attributes;
    clt_tensor *inputs[CLT_USER_OP_MAX_INPUTS + 2];
    memcpy(inputs, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
    inputs[node->n_inputs] = node;
    inputs[node->n_inputs + 1] = dy;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!wanted[i]) continue;
        if (!at->definition->backward[i]) {
            clt_graph_fail(node->graph, clt_fail(CLT_E_UNSUPPORTED, "%s has no gradient for operand %d",
                                                 at->definition->name, i));
            return;
        }
        clt_user_attributes grad = *at;
        grad.input = i;
        dx[i] = clt_node(NULL, &clt_op_user_grad, &grad, inputs, node->n_inputs + 2);
    }
}

static const char *label(const clt_tensor *node) {
    return ((const clt_user_attributes *)node->attributes)->definition->name;
}

/* All that the kernels are made of, of their source the hash; that the shape rules are the same is the caller's. */
static void write_definition(const void *value, clt_text *text) {
    const clt_user_definition *d = *(clt_user_definition *const *)value;
    char hash[CLT_HASH_TEXT] = "";
    if (!d) return;
    clt_hash_add(hash, d->source, strlen(d->source));
    clt_text_add(text, "%s %d %s ", d->name, d->n_inputs, d->forward);
    for (int i = 0; i < d->n_inputs; i++) clt_text_add(text, "%s ", d->backward[i] ? d->backward[i] : "-");
    clt_text_add(text, "%s", hash);
}

static void write_scalars(const void *value, clt_text *text) {
    const float *scalars = value;
    for (int i = 0; i < CLT_USER_OP_MAX_SCALARS; i++) clt_text_add(text, "%.9g ", (double)scalars[i]);
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_user_attributes, scalars, OPAQUE, .write = write_scalars),
    CLT_ATTRIBUTE(clt_user_attributes, n_scalars, INT),
    CLT_ATTRIBUTE(clt_user_attributes, definition, OPAQUE, .write = write_definition),
    CLT_ATTRIBUTE(clt_user_attributes, input, INT),
    {0},
};

const clt_op clt_op_user = {
    .name = "user_op",
    .autocast = CLT_AUTOCAST_F32,
    .attributes_bytes = sizeof(clt_user_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .attributes_free = attributes_free,
    .attributes_copy = attributes_copy,
    .label = label,
};
const clt_op clt_op_user_grad = {
    .name = "user_op_grad",
    .attributes_bytes = sizeof(clt_user_attributes),
    .schema = schema,
    .infer = infer_grad,
    .attributes_free = attributes_free,
    .attributes_copy = attributes_copy,
    .label = label,
};

/* ---- builder ---- */

static clt_status check(const clt_user_op *op, const float *scalars, int n_scalars) {
    if (!op->name || !op->source || !op->forward)
        return clt_fail(CLT_E_INVALID, "clt_apply: name, source or forward is NULL");
    if (op->n_inputs < 1 || op->n_inputs > CLT_USER_OP_MAX_INPUTS)
        return clt_fail(CLT_E_INVALID, "%s: %d inputs; 1 to %d are allowed", op->name, op->n_inputs,
                        CLT_USER_OP_MAX_INPUTS);
    if (n_scalars < 0 || n_scalars > CLT_USER_OP_MAX_SCALARS || (n_scalars > 0 && !scalars))
        return clt_fail(CLT_E_INVALID, "%s: %d scalars; 0 to %d are allowed", op->name, n_scalars,
                        CLT_USER_OP_MAX_SCALARS);
    return CLT_OK;
}

clt_tensor *clt_apply(const clt_user_op *op, clt_tensor *const *inputs, const float *scalars, int n_scalars) {
    if (!op || !inputs || !inputs[0]) return NULL;
    if (!clt_tensor_valid(inputs[0])) return inputs[0];
    clt_graph *graph = inputs[0]->graph;
    clt_user_attributes at = {.n_scalars = n_scalars};
    clt_status status = check(op, scalars, n_scalars);
    if (status == CLT_OK) status = definition_new(op, &at.definition);
    if (status < 0) return clt_graph_fail(graph, status);
    if (n_scalars) memcpy(at.scalars, scalars, (size_t)n_scalars * sizeof *scalars);
    clt_tensor *node = clt_node(NULL, &clt_op_user, &at, inputs, op->n_inputs);
    definition_release(at.definition); /* the node holds its own reference */
    return node;
}
