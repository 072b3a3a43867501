/*
 * Layer normalization (Ba, Kiros, Hinton 2016). With xhat = (x - mean) istd over a
 * row of D elements and g = dy weight:
 *   dx = istd (g - (sum g + xhat sum(g xhat)) / D).
 */
#include <math.h>

#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

int64_t clt_layer_norm_length(const clt_tensor *node) {
    const clt_layer_norm_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    int64_t length = 1;
    for (int i = x->rank - at->dims; i < x->rank; i++) length *= x->dims[i];
    return length;
}

/* weight and bias are as x's trailing dimensions. */
static clt_status infer(clt_tensor *node) {
    const clt_layer_norm_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    char text[CLT_PAIR_TEXT];
    CLT_TRY(clt_check_float(node, 0));
    for (int i = 1; i < 3; i++) CLT_TRY(clt_check_dtype(node, i, CLT_F32));
    CLT_TRY(clt_check_rank(node, 0, at->dims, CLT_MAX_RANK));
    clt_shape row = {.rank = at->dims};
    for (int i = 0; i < at->dims; i++) row.dims[i] = x->dims[x->rank - at->dims + i];
    for (int i = 1; i < 3; i++)
        if (!clt_shape_equal(&node->inputs[i]->shape, &row))
            return clt_fail(CLT_E_SHAPE, "%s do not go together", clt_pair_text(node->inputs[0], node->inputs[i], text));
    node->shape = *x;
    node->outputs[0]->shape = CLT_SHAPE(2, clt_tensor_elements(node->inputs[0]) / clt_layer_norm_length(node));
    node->dtype = node->inputs[0]->dtype;
    node->outputs[0]->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad_input(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static clt_status infer_grad_weight(clt_tensor *node) {
    node->shape = CLT_SHAPE(2, clt_layer_norm_length(node));
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_tensor *x = node->inputs[0], *stats = node->outputs[0], *weight = node->inputs[1];
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_layer_norm_grad_input, node->attributes,
                         (clt_tensor *[]){x, stats, weight, dy}, 4);
    if (!wanted[1] && !wanted[2]) return;
    clt_tensor *sums = clt_node(NULL, &clt_op_layer_norm_grad_weight, node->attributes,
                                (clt_tensor *[]){x, stats, dy}, 3);
    if (wanted[1]) dx[1] = clt_layer_row(sums, 1, weight->shape);
    if (wanted[2]) dx[2] = clt_layer_row(sums, 0, weight->shape);
}

static bool form(const clt_tensor *node, bool training, clt_form *f) {
    const clt_layer_norm_attributes *at = node->attributes;
    (void)training;
    *f = (clt_form){.name = "layer_norm", .expression = "(a - m) * r * w + b"};
    clt_form_read(f, 'a', 0, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'm', 3, CLT_READ_ROW, 0);
    clt_form_read(f, 'r', 3, CLT_READ_ROW, clt_tensor_elements(node) / clt_layer_norm_length(node));
    clt_form_read(f, 'w', 1, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'b', 2, CLT_READ_BROADCAST, 0);
    f->operands[1].dims = f->operands[2].dims = at->dims;
    return true;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_layer_norm_attributes, eps, FLOAT, .usual = 1e-5, .least = 0, .most = INFINITY),
    CLT_ATTRIBUTE(clt_layer_norm_attributes, dims, INT, .key = "n", .usual = 1, .least = 1, .most = CLT_MAX_RANK),
    {0},
};

#define NORM_OP(op_name, inputs, infer_rule, ...)              \
    {.name = op_name,                                          \
     .attributes_bytes = sizeof(clt_layer_norm_attributes),    \
     .schema = schema,                                         \
     .least_inputs = inputs,                                   \
     .infer = infer_rule,                                      \
     .tuned = true,                                            \
     .autocast = CLT_AUTOCAST_F32,                             \
     __VA_ARGS__}
const clt_op clt_op_layer_norm = NORM_OP("layer_norm", 3, infer, .more_outputs = 1, .gradient = gradient, .form = form, .operations = 4);
const clt_op clt_op_layer_norm_grad_input = NORM_OP("layer_norm_grad_input", 4, infer_grad_input, .operations = 9);
const clt_op clt_op_layer_norm_grad_weight = NORM_OP("layer_norm_grad_weight", 3, infer_grad_weight, .operations = 4);

clt_tensor *clt_layer_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    if (!clt_tensor_valid(weight) || !clt_tensor_valid(bias)) return clt_tensor_valid(weight) ? bias : weight;
    clt_layer_norm_attributes at = {.eps = clt_or_default(options.eps, 1e-5f), .dims = weight->shape.rank};
    return clt_node(NULL, &clt_op_layer_norm, &at, (clt_tensor *[]){x, weight, bias}, 3);
}

clt_tensor *clt_layer_norm_with(clt_tensor *x, const char *name, int dims, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    clt_graph *graph = x->graph;
    char text[CLT_SHAPE_TEXT];
    if (dims < 1 || dims > x->shape.rank || !(options.eps >= 0))
        return clt_graph_fail(graph, clt_fail(CLT_E_SHAPE, "layer_norm \"%s\": the last %d dimensions of %s, eps %g",
                                              name ? name : "", dims, clt_shape_text(&x->shape, text),
                                              (double)options.eps));
    clt_shape shape = {.rank = dims};
    for (int i = 0; i < dims; i++) shape.dims[i] = x->shape.dims[x->shape.rank - dims + i];
    clt_init zeros = {0}, ones = {.kind = CLT_INIT_CONSTANT, .value = 1};
    clt_tensor *weight = clt_layer_parameter(graph, name, "weight", shape, ones);
    clt_tensor *bias = clt_layer_parameter(graph, name, "bias", shape, zeros);
    return clt_layer_norm_op(x, weight, bias, options);
}
