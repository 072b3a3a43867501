#include "backends/attention.h"

#include "runtime/device/kernel_source.h"

bool clt_attention_is_of_one_type(const clt_tensor *node) {
    enum { DY = 5 };
    bool all = true;
    for (int i = 0; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        bool stored = i < 3 || (i == DY && node->op != &clt_op_attention);
        all &= stored ? x->dtype == node->dtype : x->dtype == CLT_F32 || !clt_dtype_is_float(x->dtype);
    }
    return all;
}

void clt_attention_add_text(clt_text *text, const clt_device *device, const char *path) {
    clt_text_add(text, "%s%s", clt_kernel_source_find(device, "reference/scores.cl"), clt_kernel_source_find(device, path));
}

static void launch_or_any(clt_lowering *l, const clt_tensor *node, const clt_tensor *tensor) {
    clt_launch_tensor(l, tensor ? tensor : node->inputs[0]);
}

void clt_attention_launch_options(clt_lowering *l, const clt_tensor *node) {
    launch_or_any(l, node, clt_attention_mask(node));
    launch_or_any(l, node, clt_attention_position_ids(node));
    launch_or_any(l, node, clt_attention_rng(node));
}

void clt_attention_launch_scalars(clt_lowering *l, const clt_tensor *node) {
    const clt_attention_attributes *at = node->attributes;
    const clt_tensor *mask = clt_attention_mask(node);
    int64_t strides[4];
    clt_attention_mask_strides(node, strides);
    clt_launch_ints(l, strides, 4, 4);
    clt_launch_int(l, clt_attention_position_ids(node) ? 2 : at->causal);
    clt_launch_int(l, !mask ? 0 : mask->dtype == CLT_F32 ? 1 : 2);
    clt_launch_int(l, at->site);
    clt_launch_float(l, clt_attention_scale(node));
    clt_launch_float(l, l->training && clt_attention_rng(node) ? at->dropout : 0);
}

void clt_attention_launch_all(clt_lowering *l, const clt_tensor *node) {
    clt_attention_size z = clt_attention_sizes(node);
    for (int i = 0; i < node->op->least_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_attention_launch_options(l, node);
    clt_launch_tensor(l, node);
    for (int i = 0; i < node->op->more_outputs; i++) clt_launch_tensor(l, node->outputs[i]);
    clt_launch_ints(l, (int64_t[]){z.n * z.heads, z.key_heads, z.t, z.s, z.d, z.heads}, 6, 8);
    clt_attention_launch_scalars(l, node);
}
