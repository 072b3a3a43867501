/*
 * Batch normalization (Ioffe, Szegedy 2015), as two nodes: the statistics (of the
 * batch in training, the running ones in evaluation) and their application.
 *
 * With xhat = (x - mean) istd and M elements a channel, in training:
 *   dbias = sum dy,  dweight = sum dy xhat,
 *   dx = weight istd (dy - (dbias + xhat dweight) / M).
 *
 * Synchronized over ranks, the statistics are those of all ranks' images, and so are M and the sums in dx; dbias and
 * dweight stay the rank's own, for they are added up with all other gradients.
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

static clt_status infer_combined(clt_tensor *node) {
    node->shape = CLT_SHAPE(2, node->inputs[3]->shape.dims[0]);
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

/* The sums over all ranks, to be divided by the own number of values as if they were that. The rank's own stay as they are. */
static clt_tensor *sums_of_all(clt_tensor *sums, const clt_tensor *combine) {
    clt_tensor *copy = clt_mul_scalar(sums, 1.0f);
    return clt_mul(clt_all_reduce(copy, CLT_REDUCE_SUM), combine->inputs[2]);
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_tensor *x = node->inputs[0], *stats = node->inputs[1], *weight = node->inputs[2];
    clt_tensor *sums =
        clt_node(NULL, &clt_op_batch_norm_grad_stats, NULL, (clt_tensor *[]){x, stats, dy}, 3);
    clt_tensor *all = stats->op == &clt_op_batch_norm_combine ? sums_of_all(sums, stats) : sums;
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_batch_norm_grad_input, NULL, (clt_tensor *[]){x, stats, weight, all, dy}, 5);
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
const clt_op clt_op_batch_norm_moments = {
    .name = "batch_norm_moments", .infer = infer_stats, .gradient = stats_gradient};
const clt_op clt_op_batch_norm_combine = {
    .name = "batch_norm_combine",
    .attributes_bytes = sizeof(clt_norm_attributes),
    .infer = infer_combined,
    .gradient = stats_gradient,
    .writes = 1u << 3 | 1u << 4,
};
const clt_op clt_op_batch_norm = {.name = "batch_norm", .infer = infer_like_input, .gradient = gradient, .form = form};
const clt_op clt_op_batch_norm_grad_stats = {.name = "batch_norm_grad_stats", .infer = infer_grad_stats};
const clt_op clt_op_batch_norm_grad_input = {.name = "batch_norm_grad_input", .infer = infer_like_input, .form = grad_input_form};

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
    clt_norm_attributes at = {.eps = options.eps ? options.eps : 1e-5f,
                              .momentum = options.momentum ? options.momentum : 0.1f};
    clt_tensor *stats = clt_node(NULL, &clt_op_batch_norm_stats, &at, (clt_tensor *[]){x, mean, var}, 3);
    return clt_node(NULL, &clt_op_batch_norm, NULL, (clt_tensor *[]){x, stats, weight, bias}, 4);
}

/* ---- synchronized ---- */

static clt_status synchronize(clt_tensor *stats, clt_tensor *images, clt_tensor *share, int rank, int size) {
    clt_norm_attributes at = *(const clt_norm_attributes *)stats->attributes;
    clt_tensor *x = stats->inputs[0];
    int64_t channels = x->shape.dims[1];
    at.inner = clt_tensor_elements(x) / channels / x->shape.dims[0];
    clt_tensor *moments = clt_node(NULL, &clt_op_batch_norm_moments, NULL, &x, 1);
    clt_tensor *all = clt_all_gather(clt_reshape(moments, CLT_SHAPE(2 * channels)), rank, size);
    CLT_TRY(clt_graph_status(stats->graph));
    clt_tensor *inputs[] = {all, images, share, stats->inputs[1], stats->inputs[2]};
    return clt_node_become(stats, &clt_op_batch_norm_combine, &at, inputs, 5);
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
        if (graph->nodes[i]->op != &clt_op_batch_norm_stats) continue;
        CLT_TRY(synchronize(graph->nodes[i], images, share, rank, size));
        for (; made < graph->n_nodes; made++) keys[made] = 2 * (int64_t)i - 1;
    }
    return clt_graph_sort(graph, keys);
}

clt_status clt_batch_norms_synchronize(clt_graph *graph, clt_tensor *images, int rank, int size) {
    enum { MOST_NEW = 4 }; /* nodes for each one that there is */
    size_t bytes = (graph->n_nodes + 1) * (MOST_NEW + 1) * sizeof(int64_t);
    int64_t *keys = clt_alloc(bytes);
    if (!keys) return clt_fail_memory(bytes);
    clt_status status = synchronize_all(graph, images, rank, size, keys);
    clt_free(keys);
    return status;
}
