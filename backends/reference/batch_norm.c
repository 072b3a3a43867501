#include <math.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/batch_norm.cl";

static int64_t values_per_channel(const clt_tensor *x) {
    return clt_tensor_elements(x) / x->shape.dims[1];
}

static void launch_size(clt_lowering *l, const clt_tensor *x) {
    int64_t images = x->shape.dims[0];
    clt_launch_ints(l, (int64_t[]){images, x->shape.dims[1], values_per_channel(x) / images}, 3, 4);
}

/* A work-item a channel. `inputs`: bit i: input i is an argument. */
static void begin_channels(clt_lowering *l, const char *kernel, const clt_tensor *node, unsigned inputs) {
    clt_launch_begin_typed(l, path, node->inputs[0]->dtype, kernel, node->inputs[0]->shape.dims[1], CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++)
        if (inputs >> i & 1) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node->op->more_outputs ? node->outputs[0] : node);
    launch_size(l, node->inputs[0]);
}

static void lower_batch_norm_moments(clt_lowering *l, const clt_tensor *node) {
    begin_channels(l, "ref_batch_norm_moments", node, 1);
}

static void lower_batch_norm_combine(clt_lowering *l, const clt_tensor *node) {
    const clt_batch_norm_attributes *at = node->attributes;
    int64_t channels = node->shape.dims[1], ranks = clt_tensor_elements(node->inputs[1]);
    clt_launch_begin(l, path, "ref_batch_norm_combine", channels, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[3]);
    clt_launch_tensor(l, node->inputs[4]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, channels);
    clt_launch_int(l, ranks);
    clt_launch_int(l, at->inner);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static void batch_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_batch_norm_attributes *at = node->attributes;
    begin_channels(l, "ref_batch_norm_stats", node, 1 | 1 << 1 | 1 << 2);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

void clt_reference_running_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_batch_norm_attributes *at = node->attributes;
    int64_t channels = node->shape.dims[1];
    clt_launch_begin(l, path, "ref_batch_norm_running_stats", channels, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node->outputs[0]);
    clt_launch_int(l, channels);
    clt_launch_float(l, at->eps);
}

/* The statistics; y is made of them by its form (exec/passes/split.c). */
static void lower_batch_norm(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    if (!l->training) {
        clt_reference_running_stats(l, node);
    } else if (values_per_channel(x) >= 2) {
        batch_stats(l, node);
    } else {
        char text[CLT_SHAPE_TEXT], label[64]; /* the running mean's name tells which layer */
        clt_lower_fail(
            l, clt_fail(CLT_E_SHAPE,
                        "with %s: training needs more than one value per channel, input %s has one",
                        clt_tensor_label(node->inputs[1], label), clt_shape_text(&x->shape, text)));
    }
}

/* The sums; dx is made of them by its form. */
static void lower_batch_norm_grad(clt_lowering *l, const clt_tensor *node) {
    begin_channels(l, "ref_batch_norm_grad_sums", node, 1 | 1 << 1 | 1 << 3);
}

/* Two passes over a channel. */
static bool supports_sums(const clt_candidate *c) {
    return clt_reference_may_loop(c, 2 * values_per_channel(c->node->inputs[0]));
}

/* The kernels know one storage type. */
static bool supports_grad(const clt_candidate *c) {
    return supports_sums(c) && c->node->inputs[0]->dtype == c->node->inputs[3]->dtype;
}

const clt_backend_row clt_reference_batch_norm_rows[] = {
    {CLT_REFERENCE(batch_norm), .types = CLT_ANY_FLOAT, .supports = supports_sums, .lower = lower_batch_norm},
    {CLT_REFERENCE(batch_norm_grad), .types = CLT_ANY_FLOAT, .supports = supports_grad, .lower = lower_batch_norm_grad},
    {CLT_REFERENCE(batch_norm_moments), .types = CLT_ANY_FLOAT, .supports = supports_sums, .lower = lower_batch_norm_moments},
    {CLT_REFERENCE(batch_norm_combine), .lower = lower_batch_norm_combine},
    {0},
};
