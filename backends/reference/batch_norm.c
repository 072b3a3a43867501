#include "backends/reference/reference.h"

static int64_t values_per_channel(const clt_tensor *x) {
    return clt_tensor_elements(x) / x->shape.dims[1];
}

static void launch_size(clt_lowering *l, const clt_tensor *x) {
    int64_t images = x->shape.dims[0];
    clt_launch_ints(l, (int64_t[]){images, x->shape.dims[1], values_per_channel(x) / images}, 3, 4);
}

/* A work-item each element, or a work-group each channel; all inputs, then the node. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *node, int64_t items) {
    clt_launch_begin(l, "reference/batch_norm.cl", kernel, items, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    launch_size(l, node->inputs[0]);
}

static void running_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    int64_t channels = node->shape.dims[1];
    clt_launch_begin(l, "reference/batch_norm.cl", "ref_batch_norm_running_stats", channels, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, channels);
    clt_launch_float(l, at->eps);
}

void clt_reference_batch_norm_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    if (!l->training) {
        running_stats(l, node);
        return;
    }
    if (values_per_channel(x) < 2) {
        char text[CLT_SHAPE_TEXT], label[64];
        clt_lower_fail(l, clt_fail(CLT_E_SHAPE, "%s: training needs more than one value per channel; input %s has one",
                                   clt_tensor_label(node, label), clt_shape_text(&x->shape, text)));
        return;
    }
    begin(l, "ref_batch_norm_stats", node, x->shape.dims[1] * CLT_REFERENCE_GROUP);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

void clt_reference_batch_norm(clt_lowering *l, const clt_tensor *node) {
    begin(l, "ref_batch_norm", node, clt_tensor_elements(node));
}

void clt_reference_batch_norm_grad_stats(clt_lowering *l, const clt_tensor *node) {
    begin(l, "ref_batch_norm_grad_stats", node, node->shape.dims[1] * CLT_REFERENCE_GROUP);
}

void clt_reference_batch_norm_grad_input(clt_lowering *l, const clt_tensor *node) {
    begin(l, "ref_batch_norm_grad_input", node, clt_tensor_elements(node));
    clt_launch_float(l, l->training ? (float)(1.0 / (double)values_per_channel(node)) : 0.0f);
}
