/* Pooling of channels-last images. */
#include "backends/native/cpu/cpu.h"

enum { CHANNELS = 64 }; /* CPU_POOL_CHANNELS of cl/native/cpu/pool2d.cl */

static bool supports(const clt_candidate *c) {
    bool all = clt_tensor_channels_last(c->node);
    for (int i = 0; i < c->node->n_inputs; i++) all &= clt_tensor_channels_last(c->node->inputs[i]);
    return clt_cpu_fits(c->device) && all;
}

/* All kernels begin with their tensors, then have the geometry. x and y are of the forward pass. */
static void launch(clt_lowering *l, const char *kernel, int64_t items, const clt_tensor *node, const clt_shape *x,
                   const clt_shape *y) {
    const clt_pool2d_attributes *at = node->attributes;
    clt_launch_begin(l, "native/cpu/pool2d.cl", kernel, items, 1);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, x->dims, 4, 4);
    clt_launch_ints(l, y->dims + 2, 2, 2);
    clt_launch_ints(l,
                    (int64_t[]){at->kernel_h, at->stride_h, at->padding_h, at->kernel_w, at->stride_w, at->padding_w},
                    6, 8);
}

static void lower_max_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_shape *y = &node->shape;
    launch(l, "cpu_max_pool2d", y->dims[0] * y->dims[2], node, &node->inputs[0]->shape, y);
}

static void lower_max_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_shape *x = &node->shape;
    launch(l, "cpu_max_pool2d_grad", x->dims[0] * clt_cpu_divide_up(x->dims[1], CHANNELS), node, x,
           &node->inputs[1]->shape);
}

static void lower_avg_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_shape *y = &node->shape;
    launch(l, "cpu_avg_pool2d", y->dims[0] * y->dims[2], node, &node->inputs[0]->shape, y);
    clt_launch_int(l, at->exclude_padding);
}

static void lower_avg_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_shape *x = &node->shape;
    launch(l, "cpu_avg_pool2d_grad", x->dims[0] * x->dims[2], node, x, &node->inputs[0]->shape);
    clt_launch_int(l, at->exclude_padding);
}

const clt_backend_row clt_cpu_pool2d_rows[] = {
    {CLT_NATIVE(max_pool2d), .any_layout = true, .supports = supports, .lower = lower_max_pool2d},
    {CLT_NATIVE(max_pool2d_grad), .any_layout = true, .supports = supports, .lower = lower_max_pool2d_grad},
    {CLT_NATIVE(avg_pool2d), .any_layout = true, .supports = supports, .lower = lower_avg_pool2d},
    {CLT_NATIVE(avg_pool2d_grad), .any_layout = true, .supports = supports, .lower = lower_avg_pool2d_grad},
    {0},
};
