/*
 * Batch normalization (Ioffe, Szegedy 2015), as two nodes: the statistics (of the
 * batch in training, the running ones in evaluation) and their application.
 *
 * With xhat = (x - mean) istd and M elements a channel, in training:
 *   dbias = sum dy,  dweight = sum dy xhat,
 *   dx = weight istd (dy - (dbias + xhat dweight) / M).
 */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

static clt_status infer_stats(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_rank(node, 0, 2, CLT_MAX_RANK));
    const clt_shape *x = &node->inputs[0]->shape;
    node->shape = CLT_SHAPE(2, x->dims[1]);
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_like_input(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad_stats(clt_tensor *node) {
    node->shape = node->inputs[1]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

/* dx below is the whole derivative, through the statistics too: they need no gradient of their own. */
static void stats_gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    (void)node, (void)dy, (void)wanted, (void)dx;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_tensor *x = node->inputs[0], *stats = node->inputs[1], *weight = node->inputs[2];
    clt_tensor *sums =
        clt_node(NULL, &clt_op_batch_norm_grad_stats, NULL, (clt_tensor *[]){x, stats, dy}, 3);
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_batch_norm_grad_input, NULL,
                         (clt_tensor *[]){x, stats, weight, sums, dy}, 5);
    if (wanted[2]) dx[2] = clt_layer_row(sums, 1, weight->shape);
    if (wanted[3]) dx[3] = clt_layer_row(sums, 0, weight->shape);
}

/* x, mean, istd, weight: what the forms of y and of dx begin with. */
static void read_normalized(clt_form *f, const clt_tensor *node) {
    int64_t channels = node->shape.dims[1];
    clt_form_read(f, 'a', 0, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'm', 1, CLT_READ_CHANNEL, 0);
    clt_form_read(f, 'r', 1, CLT_READ_CHANNEL, channels);
    clt_form_read(f, 'w', 2, CLT_READ_CHANNEL, 0);
}

static bool form(const clt_tensor *node, bool training, clt_form *f) {
    (void)training;
    *f = (clt_form){.name = "batch_norm", .expression = "(a - m) * r * w + b"};
    read_normalized(f, node);
    clt_form_read(f, 'b', 3, CLT_READ_CHANNEL, 0);
    return true;
}

/* In evaluation the statistics do not depend on x. */
static bool grad_input_form(const clt_tensor *node, bool training, clt_form *f) {
    int64_t channels = node->shape.dims[1], count = clt_tensor_elements(node) / channels;
    *f = (clt_form){.name = "batch_norm_grad_input",
                    .expression = "w * r * (g - (p + (a - m) * r * q) * s0)",
                    .s = {training ? (float)(1.0 / (double)count) : 0}};
    read_normalized(f, node);
    clt_form_read(f, 'p', 3, CLT_READ_CHANNEL, 0);
    clt_form_read(f, 'q', 3, CLT_READ_CHANNEL, channels);
    clt_form_read(f, 'g', 4, CLT_READ_BROADCAST, 0);
    return true;
}

const clt_op clt_op_batch_norm_stats = {
    .name = "batch_norm_stats",
    .attributes_bytes = sizeof(clt_norm_attributes),
    .infer = infer_stats,
    .gradient = stats_gradient,
    .writes = 1u << 1 | 1u << 2,
};
const clt_op clt_op_batch_norm = {.name = "batch_norm", .infer = infer_like_input, .gradient = gradient, .form = form};
const clt_op clt_op_batch_norm_grad_stats = {.name = "batch_norm_grad_stats", .infer = infer_grad_stats};
const clt_op clt_op_batch_norm_grad_input = {.name = "batch_norm_grad_input", .infer = infer_like_input, .form = grad_input_form};

clt_tensor *clt_batch_norm_with(clt_tensor *x, const char *name, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    clt_graph *graph = x->graph;
    char text[CLT_SHAPE_TEXT];
    if (x->shape.rank < 2 || !(options.eps >= 0) || !(options.momentum >= 0 && options.momentum <= 1))
        return clt_graph_fail(graph, clt_fail(CLT_E_SHAPE, "batch_norm \"%s\": input %s, eps %g, momentum %g",
                                              name ? name : "", clt_shape_text(&x->shape, text),
                                              (double)options.eps, (double)options.momentum));
    clt_shape channels = CLT_SHAPE(x->shape.dims[1]);
    clt_init zeros = {0}, ones = {.kind = CLT_INIT_CONSTANT, .value = 1};
    clt_tensor *weight = clt_layer_parameter(graph, name, "weight", channels, ones);
    clt_tensor *bias = clt_layer_parameter(graph, name, "bias", channels, zeros);
    clt_tensor *mean = clt_layer_buffer(graph, name, "running_mean", channels, zeros);
    clt_tensor *var = clt_layer_buffer(graph, name, "running_var", channels, ones);
    clt_norm_attributes at = {.eps = options.eps ? options.eps : 1e-5f,
                              .momentum = options.momentum ? options.momentum : 0.1f};
    clt_tensor *stats = clt_node(NULL, &clt_op_batch_norm_stats, &at, (clt_tensor *[]){x, mean, var}, 3);
    return clt_node(NULL, &clt_op_batch_norm, NULL, (clt_tensor *[]){x, stats, weight, bias}, 4);
}
