/* Pooling of channels-last images. */
#include "backends/native/cpu/cpu.h"

enum { CHANNELS = 64 }; /* CPU_POOL_CHANNELS of cl/native/cpu/pool2d.cl */

static bool supports(const clt_tensor *node, const clt_device *device) {
    bool all = clt_tensor_channels_last(node);
    for (int i = 0; i < node->n_inputs; i++) all &= clt_tensor_channels_last(node->inputs[i]);
    return clt_cpu_fits(device) && all;
}

#define SUPPORTS(name)                                                                  \
    bool clt_cpu_##name##_supports(const clt_tensor *node, const clt_device *device) {  \
        return supports(node, device);                                                  \
    }
SUPPORTS(max_pool2d)
SUPPORTS(max_pool2d_grad)
SUPPORTS(avg_pool2d)
SUPPORTS(avg_pool2d_grad)

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

void clt_cpu_max_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_shape *y = &node->shape;
    launch(l, "cpu_max_pool2d", y->dims[0] * y->dims[2], node, &node->inputs[0]->shape, y);
}

void clt_cpu_max_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_shape *x = &node->shape;
    launch(l, "cpu_max_pool2d_grad", x->dims[0] * clt_cpu_divide_up(x->dims[1], CHANNELS), node, x,
           &node->inputs[1]->shape);
}

void clt_cpu_avg_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_shape *y = &node->shape;
    launch(l, "cpu_avg_pool2d", y->dims[0] * y->dims[2], node, &node->inputs[0]->shape, y);
    clt_launch_int(l, at->exclude_padding);
}

void clt_cpu_avg_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_shape *x = &node->shape;
    launch(l, "cpu_avg_pool2d_grad", x->dims[0] * x->dims[2], node, x, &node->inputs[0]->shape);
    clt_launch_int(l, at->exclude_padding);
}
