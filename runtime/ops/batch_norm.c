/*
 * Batch normalization (Ioffe, Szegedy 2015). Its further result are the statistics: of the
 * batch in training, the running ones in evaluation.
 *
 * With xhat = (x - mean) istd and M elements a channel, in training:
 *   dbias = sum dy,  dweight = sum dy xhat,
 *   dx = weight istd (dy - (dbias + xhat dweight) / M).
 *
 * Synchronized over ranks, the statistics are those of all ranks' images, and so are M and the sums in dx; dbias and
 * dweight stay the rank's own, for they are added up with all other gradients.
 */
#include <math.h>

#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

/* Statistics, whatever type the values have. */
static void set_result(clt_tensor *t, clt_shape shape) {
    t->shape = shape;
    t->dtype = CLT_F32;
}

static void set_values(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
}

static clt_status infer_moments(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_rank(node, 0, 2, CLT_MAX_RANK));
    set_result(node, CLT_SHAPE(2, node->inputs[0]->shape.dims[1]));
    return CLT_OK;
}

static clt_status infer_combined(clt_tensor *node) {
    set_result(node, CLT_SHAPE(2, node->inputs[3]->shape.dims[0]));
    return CLT_OK;
}

/* Operands `from` on are wanted[0] and after. */
static clt_status check_shapes(const clt_tensor *node, int from, const clt_shape *const *wanted) {
    char text[CLT_PAIR_TEXT];
    for (int i = from; i < node->n_inputs; i++)
        if (!clt_shape_equal(&node->inputs[i]->shape, wanted[i - from]))
            return clt_fail(CLT_E_SHAPE, "%s do not go together", clt_pair_text(node->inputs[0], node->inputs[i], text));
    return CLT_OK;
}

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_float(node, 0));
    for (int i = 1; i < node->n_inputs; i++) CLT_TRY(clt_check_dtype(node, i, CLT_F32));
    CLT_TRY(clt_check_rank(node, 0, 2, CLT_MAX_RANK));
    const clt_shape x = node->inputs[0]->shape, row = CLT_SHAPE(x.dims[1]), statistics = CLT_SHAPE(2, x.dims[1]);
    CLT_TRY(check_shapes(node, 1, (const clt_shape *[]){&row, &row, &row, &row, &statistics}));
    set_values(node);
    set_result(node->outputs[0], statistics);
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    CLT_TRY(clt_check_rank(node, 0, 2, CLT_MAX_RANK));
    const clt_shape x = node->inputs[0]->shape, row = CLT_SHAPE(x.dims[1]), statistics = CLT_SHAPE(2, x.dims[1]);
    CLT_TRY(check_shapes(node, 1, (const clt_shape *[]){&statistics, &row, &x, &statistics}));
    set_values(node);
    set_result(node->outputs[0], statistics);
    return CLT_OK;
}

/* Of what stands in forward: dx below is the whole derivative, through the statistics too. */
static void no_gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    (void)node, (void)dy, (void)wanted, (void)dx;
}

/* The sums over all ranks, to be divided by the own number of values as if they were that. The rank's own stay as they are. */
static clt_tensor *sums_of_all(clt_tensor *sums, const clt_tensor *combine) {
    clt_tensor *copy = clt_mul_scalar(sums, 1.0f);
    return clt_mul(clt_all_reduce(copy, CLT_REDUCE_SUM), combine->inputs[2]);
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    bool synchronized = node->n_inputs > 5;
    clt_tensor *weight = node->inputs[3], *stats = synchronized ? node->inputs[5] : node->outputs[0];
    clt_tensor *inputs[] = {node->inputs[0], stats, weight, dy, NULL};
    clt_tensor *grad = clt_node(NULL, &clt_op_batch_norm_grad, NULL, inputs, 4);
    if (!clt_tensor_valid(grad)) return;
    clt_tensor *sums = grad->outputs[0];
    if (wanted[0] && synchronized) {
        inputs[4] = sums_of_all(sums, stats);
        grad = clt_node(NULL, &clt_op_batch_norm_grad, NULL, inputs, 5);
    }
    if (wanted[0]) dx[0] = grad;
    if (wanted[3]) dx[3] = clt_layer_row(sums, 1, weight->shape);
    if (wanted[4]) dx[4] = clt_layer_row(sums, 0, weight->shape);
}

/* x, mean, istd, weight: what the forms of y and of dx begin with. */
static void read_normalized(clt_form *f, const clt_tensor *node, int stats, int weight) {
    int64_t channels = node->shape.dims[1];
    clt_form_read(f, 'a', 0, CLT_READ_BROADCAST, 0);
    clt_form_read(f, 'm', stats, CLT_READ_CHANNEL, 0);
    clt_form_read(f, 'r', stats, CLT_READ_CHANNEL, channels);
    clt_form_read(f, 'w', weight, CLT_READ_CHANNEL, 0);
}

/* Input 5 is the own statistics, or those that are given. */
static bool form(const clt_tensor *node, bool training, clt_form *f) {
    (void)training;
    *f = (clt_form){.name = "batch_norm", .expression = "(a - m) * r * w + b"};
    read_normalized(f, node, 5, 3);
    clt_form_read(f, 'b', 4, CLT_READ_CHANNEL, 0);
    return true;
}

/* Input 4 is the own sums, or those that are given. In evaluation the statistics do not depend on x. */
static bool grad_form(const clt_tensor *node, bool training, clt_form *f) {
    int64_t channels = node->shape.dims[1], count = clt_tensor_elements(node) / channels;
    *f = (clt_form){.name = "batch_norm_grad",
                    .expression = "w * r * (g - (p + (a - m) * r * q) * s0)",
                    .s = {training ? (float)(1.0 / (double)count) : 0}};
    read_normalized(f, node, 1, 2);
    clt_form_read(f, 'p', 4, CLT_READ_CHANNEL, 0);
    clt_form_read(f, 'q', 4, CLT_READ_CHANNEL, channels);
    clt_form_read(f, 'g', 3, CLT_READ_BROADCAST, 0);
    return true;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_batch_norm_attributes, eps, FLOAT, .usual = 1e-5, .least = 0, .most = INFINITY),
    CLT_ATTRIBUTE(clt_batch_norm_attributes, momentum, FLOAT, .usual = 0.1, .least = 0, .most = 1),
    CLT_ATTRIBUTE(clt_batch_norm_attributes, inner, INT64),
    {0},
};

const clt_op clt_op_batch_norm = {
    .name = "batch_norm",
    .attributes_bytes = sizeof(clt_batch_norm_attributes),
    .schema = schema,
    .more_outputs = 1,
    .least_inputs = 5, .most_inputs = 6,
    .infer = infer,
    .gradient = gradient,
    .form = form,
    .writes = 1u << 1 | 1u << 2,
    .f32_inputs = ~1u,
    .operations = 4,
};
const clt_op clt_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .more_outputs = 1,
    .least_inputs = 4, .most_inputs = 5,
    .infer = infer_grad,
    .form = grad_form,
    .operations = 4,
    .tuned = true,
};
const clt_op clt_op_batch_norm_moments = {
    .name = "batch_norm_moments", .infer = infer_moments, .gradient = no_gradient};
const clt_op clt_op_batch_norm_combine = {
    .name = "batch_norm_combine",
    .attributes_bytes = sizeof(clt_batch_norm_attributes),
    .schema = schema,
    .infer = infer_combined,
    .gradient = no_gradient,
    .writes = 1u << 3 | 1u << 4,
};

clt_tensor *clt_batch_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_tensor *running_mean,
                              clt_tensor *running_var, clt_norm_options options) {
    clt_tensor *running[] = {running_mean, running_var};
    for (int i = 0; i < 2; i++)
        if (clt_tensor_valid(running[i]) && !(running[i]->variable && running[i]->variable->is_buffer))
            return clt_graph_fail(running[i]->graph, clt_fail(CLT_E_INVALID, "batch_norm: the running statistics must be buffers; %s is none",
                                                              clt_tensor_name(running[i])));
    clt_batch_norm_attributes at = {.eps = clt_or_default(options.eps, 1e-5f), .momentum = clt_or_default(options.momentum, 0.1f)};
    return clt_node(NULL, &clt_op_batch_norm, &at, (clt_tensor *[]){x, running_mean, running_var, weight, bias}, 5);
}

clt_tensor *clt_batch_norm_with(clt_tensor *x, const char *name, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    clt_graph *graph = x->graph;
    char text[CLT_SHAPE_TEXT];
    if (x->shape.rank < 2)
        return clt_graph_fail(graph, clt_fail(CLT_E_SHAPE, "batch_norm \"%s\": input %s is not [N, C, ...]",
                                              name ? name : "", clt_shape_text(&x->shape, text)));
    if (!(options.eps >= 0) || !(options.momentum >= 0 && options.momentum <= 1))
        return clt_graph_fail(graph, clt_fail(CLT_E_INVALID, "batch_norm \"%s\": eps %g is to be 0 or more, momentum %g in [0, 1]",
                                              name ? name : "", (double)options.eps, (double)options.momentum));
    clt_shape channels = CLT_SHAPE(x->shape.dims[1]);
    clt_init zeros = {0}, ones = {.kind = CLT_INIT_CONSTANT, .value = 1};
    clt_tensor *weight = clt_layer_parameter(graph, name, "weight", channels, ones);
    clt_tensor *bias = clt_layer_parameter(graph, name, "bias", channels, zeros);
    clt_tensor *mean = clt_layer_buffer(graph, name, "running_mean", channels, zeros);
    clt_tensor *var = clt_layer_buffer(graph, name, "running_var", channels, ones);
    return clt_batch_norm_op(x, weight, bias, mean, var, options);
}

/* ---- synchronized ---- */

static clt_status synchronize(clt_tensor *norm, clt_tensor *images, clt_tensor *share, int rank, int size) {
    clt_batch_norm_attributes at = *(const clt_batch_norm_attributes *)norm->attributes;
    clt_tensor *x = norm->inputs[0], *mean = norm->inputs[1], *var = norm->inputs[2];
    int64_t channels = x->shape.dims[1];
    at.inner = clt_tensor_elements(x) / channels / x->shape.dims[0];
    clt_tensor *moments = clt_node(NULL, &clt_op_batch_norm_moments, NULL, (clt_tensor *[]){clt_cast(x, CLT_F32)}, 1);
    clt_tensor *all = clt_all_gather(clt_reshape(moments, CLT_SHAPE(2 * channels)), rank, size);
    clt_tensor *stats = clt_node(NULL, &clt_op_batch_norm_combine, &at, (clt_tensor *[]){all, images, share, mean, var}, 5);
    CLT_TRY(clt_graph_status(norm->graph));
    clt_tensor *inputs[] = {x, mean, var, norm->inputs[3], norm->inputs[4], stats};
    return clt_node_become(norm, &clt_op_batch_norm, norm->attributes, inputs, 6);
}

/* What `node` depends on goes to the front. */
static void bring_forward(const clt_tensor *node, int64_t *keys) {
    keys[node->index] = -1;
    for (int k = 0; k < node->n_inputs; k++) bring_forward(node->inputs[k], keys);
}

/* New nodes go just before the one for which they were made. */
static clt_status synchronize_all(clt_graph *graph, clt_tensor *images, int rank, int size, int64_t *keys) {
    size_t n = graph->n_nodes, made = n;
    for (size_t i = 0; i < n; i++) keys[i] = 2 * (int64_t)i;
    bring_forward(images, keys);
    clt_tensor *total = clt_sum(images, (clt_reduce_options){.keep_dims = true});
    clt_tensor *share = clt_div(clt_slice(images, 0, rank, rank + 1, 1), total);
    for (; made < graph->n_nodes; made++) keys[made] = -1;
    for (size_t i = 0; i < n; i++) {
        if (graph->nodes[i]->op != &clt_op_batch_norm) continue;
        CLT_TRY(synchronize(graph->nodes[i], images, share, rank, size));
        for (; made < graph->n_nodes; made++) keys[made] = 2 * (int64_t)i - 1;
    }
    return clt_graph_sort(graph, keys);
}

clt_status clt_batch_norms_synchronize(clt_graph *graph, clt_tensor *images, int rank, int size) {
    enum { MOST_NEW = 6 }; /* nodes for each one that there is */
    size_t bytes = (graph->n_nodes + 1) * (MOST_NEW + 1) * sizeof(int64_t);
    int64_t *keys = clt_alloc(bytes);
    if (!keys) return clt_fail_memory(bytes);
    clt_status status = synchronize_all(graph, images, rank, size, keys);
    clt_free(keys);
    return status;
}
