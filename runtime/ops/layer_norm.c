/*
 * Layer normalization (Ba, Kiros, Hinton 2016). With xhat = (x - mean) istd over a
 * row of D elements and g = dy weight:
 *   dx = istd (g - (sum g + xhat sum(g xhat)) / D).
 */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

int64_t clt_layer_norm_length(const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    int64_t length = 1;
    for (int i = x->rank - at->dims; i < x->rank; i++) length *= x->dims[i];
    return length;
}

static clt_status infer_stats(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    node->shape = CLT_SHAPE(2, clt_tensor_elements(node->inputs[0]) / clt_layer_norm_length(node));
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_like_input(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad_weight(clt_tensor *node) {
    node->shape = CLT_SHAPE(2, clt_layer_norm_length(node));
    node->dtype = CLT_F32;
    return CLT_OK;
}

/* As with batch norm: dx is the whole derivative. */
static void stats_gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    (void)node, (void)dy, (void)wanted, (void)dx;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_tensor *x = node->inputs[0], *stats = node->inputs[1], *weight = node->inputs[2];
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_layer_norm_grad_input, node->attributes,
                         (clt_tensor *[]){x, stats, weight, dy}, 4);
    if (!wanted[2] && !wanted[3]) return;
    clt_tensor *sums = clt_node(NULL, &clt_op_layer_norm_grad_weight, node->attributes,
                                (clt_tensor *[]){x, stats, dy}, 3);
    if (wanted[2]) dx[2] = clt_layer_row(sums, 1, weight->shape);
    if (wanted[3]) dx[3] = clt_layer_row(sums, 0, weight->shape);
}

static bool form(const clt_tensor *node, bool training, clt_form *f) {
    const clt_norm_attributes *at = node->attributes;
    (void)training;
    *f = (clt_form){.name = "layer_norm", .expression = "(a - m) * r * w + b"};
    clt_form_read(f, 'a', 0, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'm', 1, CLT_READ_ROW, 0);
    clt_form_read(f, 'r', 1, CLT_READ_ROW, clt_tensor_elements(node) / clt_layer_norm_length(node));
    clt_form_read(f, 'w', 2, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'b', 3, CLT_READ_BROADCAST, 0);
    f->operands[1].dims = f->operands[2].dims = at->dims;
    return true;
}

#define NORM_OP(op_name, infer_rule, gradient_rule, form_rule) \
    {.name = op_name,                                          \
     .attributes_bytes = sizeof(clt_norm_attributes),          \
     .infer = infer_rule,                                      \
     .gradient = gradient_rule,                                \
     .form = form_rule}
const clt_op clt_op_layer_norm_stats = NORM_OP("layer_norm_stats", infer_stats, stats_gradient, NULL);
const clt_op clt_op_layer_norm = NORM_OP("layer_norm", infer_like_input, gradient, form);
const clt_op clt_op_layer_norm_grad_input = NORM_OP("layer_norm_grad_input", infer_like_input, NULL, NULL);
const clt_op clt_op_layer_norm_grad_weight = NORM_OP("layer_norm_grad_weight", infer_grad_weight, NULL, NULL);

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
    clt_norm_attributes at = {.eps = options.eps ? options.eps : 1e-5f, .dims = dims};
    clt_tensor *stats = clt_node(NULL, &clt_op_layer_norm_stats, &at, &x, 1);
    return clt_node(NULL, &clt_op_layer_norm, &at, (clt_tensor *[]){x, stats, weight, bias}, 4);
}
