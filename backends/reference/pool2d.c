#include "backends/reference/reference.h"

/* The arguments that all kernels share: sizes of image and result, and the window. */
static void launch_geometry(clt_lowering *l, const clt_pool2d_attributes *at, const clt_shape *x,
                            const clt_shape *y) {
    clt_launch_ints(l, (int64_t[]){x->dims[0] * x->dims[1], x->dims[2], x->dims[3]}, 3, 4);
    clt_launch_ints(l, (int64_t[]){y->dims[0] * y->dims[1], y->dims[2], y->dims[3]}, 3, 4);
    clt_launch_ints(l,
                    (int64_t[]){at->kernel_h, at->stride_h, at->padding_h, at->kernel_w, at->stride_w,
                                at->padding_w},
                    6, 8);
}

static void begin(clt_lowering *l, const char *kernel, const clt_tensor *over) {
    clt_launch_begin(l, "reference/pool2d.cl", kernel, clt_tensor_elements(over), CLT_REFERENCE_GROUP);
}

void clt_reference_max_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    begin(l, "ref_max_pool2d", node);
    clt_launch_tensor(l, x);
    clt_launch_tensor(l, node);
    launch_geometry(l, node->attributes, &x->shape, &node->shape);
}

/* First where each window's maximum is, then each pixel gathers from the windows that it won. */
void clt_reference_max_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0], *dy = node->inputs[1];
    int best = clt_lower_scratch(l, (size_t)clt_tensor_elements(dy) * sizeof(int32_t));
    begin(l, "ref_max_pool2d_places", dy);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, best);
    launch_geometry(l, node->attributes, &x->shape, &dy->shape);

    begin(l, "ref_max_pool2d_grad", node);
    clt_launch_scratch(l, best);
    clt_launch_tensor(l, dy);
    clt_launch_tensor(l, node);
    launch_geometry(l, node->attributes, &x->shape, &dy->shape);
}

void clt_reference_avg_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    begin(l, "ref_avg_pool2d", node);
    clt_launch_tensor(l, x);
    clt_launch_tensor(l, node);
    launch_geometry(l, at, &x->shape, &node->shape);
    clt_launch_int(l, at->exclude_padding);
}

void clt_reference_avg_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_tensor *dy = node->inputs[0];
    begin(l, "ref_avg_pool2d_grad", node);
    clt_launch_tensor(l, dy);
    clt_launch_tensor(l, node);
    launch_geometry(l, at, &node->shape, &dy->shape);
    clt_launch_int(l, at->exclude_padding);
}
