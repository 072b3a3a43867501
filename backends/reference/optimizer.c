#include <math.h>
#include <stdio.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/optimizer.cl";

enum { CHUNK = 4096 }; /* of the norm, for one work-group */

static void launch_clip(clt_lowering *l, const clt_clip_attributes *clip) {
    clt_launch_float(l, clip->grad_scale);
    clt_launch_float(l, clip->clip_value);
}

static void lower_single(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    clt_launch_begin(l, path, kernel, 1, 1);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
}

static void lower_hyper_scale(clt_lowering *l, const clt_tensor *node) {
    lower_single(l, node, "ref_hyper_scale");
}

static void lower_hyper_unscale(clt_lowering *l, const clt_tensor *node) {
    lower_single(l, node, "ref_hyper_unscale");
}

static void lower_loss_scale(clt_lowering *l, const clt_tensor *node) {
    lower_single(l, node, "ref_loss_scale");
}

static void launch_total(clt_lowering *l, const clt_tensor *node, int partials, int64_t chunks) {
    clt_launch_begin(l, path, "ref_norm_total", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    clt_launch_scratch(l, partials);
    clt_launch_tensor(l, node);
    clt_launch_int(l, chunks);
}

/* Without clip_norm: a plain pass over the gradients' bits, where a work-item is a thread. */
static void check_finite(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *grads = node->inputs[0];
    int64_t count = clt_tensor_elements(grads), chunks = (count + CHUNK - 1) / CHUNK;
    int partials = chunks > 1 ? clt_lower_scratch(l, (size_t)chunks * sizeof(float)) : 0;
    clt_launch_begin(l, path, "ref_finite", chunks, 1);
    clt_launch_tensor(l, grads);
    if (chunks > 1) clt_launch_scratch(l, partials);
    else clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, chunks);
    clt_launch_int(l, CHUNK);
    if (chunks > 1) launch_total(l, node, partials, chunks);
}

static void lower_norm_squared(clt_lowering *l, const clt_tensor *node) {
    const clt_clip_attributes *at = node->attributes;
    bool only_checks = isinf(at->clip_norm);
    if (only_checks && clt_device_get_class(l->device) == CLT_CLASS_CPU) {
        check_finite(l, node);
        return;
    }
    const clt_tensor *grads = node->inputs[0];
    int64_t count = clt_tensor_elements(grads), chunks = (count + CHUNK - 1) / CHUNK;
    int partials = clt_lower_scratch(l, (size_t)chunks * sizeof(float));
    clt_launch_begin(l, path, "ref_norm_squared", chunks * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, grads);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_scratch(l, partials);
    clt_launch_int(l, count);
    clt_launch_int(l, chunks);
    clt_launch_int(l, CHUNK);
    launch_clip(l, at);
    clt_launch_int(l, only_checks ? 2 : at->guarded);

    launch_total(l, node, partials, chunks);
}

static void lower_clip_scale(clt_lowering *l, const clt_tensor *node) {
    const clt_clip_attributes *at = node->attributes;
    clt_launch_begin(l, path, "ref_clip_scale", 1, 1);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    clt_launch_float(l, at->clip_norm);
}

static void lower_guard(clt_lowering *l, const clt_tensor *node) {
    const clt_guard_attributes *at = node->attributes;
    clt_launch_begin(l, path, "ref_guard", 1, 1);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_float(l, at->clip_norm);
    clt_launch_float(l, at->rest1);
    clt_launch_float(l, at->rest2);
    clt_launch_int(l, at->stops);
}

static void launch_update(clt_lowering *l, const clt_update_attributes *at) {
    launch_clip(l, &at->clip);
    clt_launch_float(l, at->lr_factor);
    clt_launch_float(l, at->weight_decay);
}

static void launch_adam(clt_lowering *l, const clt_update_attributes *at) {
    launch_update(l, at);
    clt_launch_float(l, at->beta1);
    clt_launch_float(l, (float)(1 - (double)at->beta1));
    clt_launch_float(l, at->beta2);
    clt_launch_float(l, (float)(1 - (double)at->beta2));
    clt_launch_float(l, at->eps);
    clt_launch_int(l, at->decoupled);
}

void clt_reference_lower_flat(clt_lowering *l, const clt_tensor *node, int width) {
    const clt_update_attributes *update = node->attributes;
    bool updates = node->op == &clt_op_sgd || node->op == &clt_op_adam;
    const clt_tensor *copy = updates ? clt_update_copy(node) : NULL;
    bool momentum = node->op == &clt_op_sgd && clt_update_states(node) > 0;
    int64_t count = clt_tensor_elements(node) / width;
    char kernel[64];
    snprintf(kernel, sizeof kernel, "ref_%s%s", node->op->name, momentum ? "_momentum" : "");
    clt_launch_begin_floats(l, path, width, copy ? copy->dtype : CLT_F32, kernel, count, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_int(l, count);
    if (node->op == &clt_op_average) clt_launch_float(l, (float)(1 - (double)((const clt_average_attributes *)node->attributes)->decay));
    if (node->op == &clt_op_sgd) launch_update(l, update);
    if (node->op == &clt_op_adam) launch_adam(l, update);
    if (!momentum) return;
    clt_launch_float(l, update->momentum);
    clt_launch_int(l, update->nesterov);
}

static void lower_flat(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_flat(l, node, 1);
}

const clt_backend_row clt_reference_optimizer_rows[] = {
    {CLT_REFERENCE(accumulate), .lower = lower_flat},
    {CLT_REFERENCE(hyper_scale), .lower = lower_hyper_scale},
    {CLT_REFERENCE(hyper_unscale), .lower = lower_hyper_unscale},
    {CLT_REFERENCE(loss_scale), .lower = lower_loss_scale},
    {CLT_REFERENCE(norm_squared), .lower = lower_norm_squared},
    {CLT_REFERENCE(clip_scale), .lower = lower_clip_scale},
    {CLT_REFERENCE(guard), .lower = lower_guard},
    {CLT_REFERENCE(clear_if_skipped), .lower = lower_flat},
    {CLT_REFERENCE(average), .lower = lower_flat},
    {CLT_REFERENCE(sgd), .types = CLT_ANY_FLOAT, .lower = lower_flat},
    {CLT_REFERENCE(adam), .types = CLT_ANY_FLOAT, .lower = lower_flat},
    {0},
};
