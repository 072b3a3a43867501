/* Pooling for devices whose work-items are lanes (cl/native/gpu/pool2d.cl): each pool has kernels of its own, which know its sizes. */
#include <stdio.h>

#include "backends/native/gpu/gpu.h"

enum { ITEMS = 64, MOST_PLACES = 255 /* a byte each */, WIDEST = 16 /* a work-item has the pixels of a row at once */ };

/* x and y are of the forward pass, and results of the kernel lie in rows of `width`. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *over, const clt_shape *x, const clt_shape *y) {
    const clt_pool2d_attributes *at = l->node->attributes;
    char sizes[512];
    int vector = over->shape.dims[3] % 4 == 0 ? 4 : 1;
    snprintf(sizes, sizeof sizes,
             "#define GPU_VECTOR %d\n#define POOL_H %d\n#define POOL_W %d\n#define POOL_OH %d\n#define POOL_OW %d\n#define POOL_KH %d\n#define POOL_SH %d\n"
             "#define POOL_PH %d\n#define POOL_KW %d\n#define POOL_SW %d\n#define POOL_PW %d\n#define POOL_INSIDE %d\n",
             vector, (int)x->dims[2], (int)x->dims[3], (int)y->dims[2], (int)y->dims[3], at->kernel_h, at->stride_h,
             at->padding_h, at->kernel_w, at->stride_w, at->padding_w, at->exclude_padding ? 1 : 0);
    clt_gpu_begin(l, "native/gpu/pool2d.cl", l->node->dtype, sizes, kernel, clt_tensor_elements(over) / vector, ITEMS);
}

static void launch(clt_lowering *l, const char *kernel, const clt_tensor *node, const clt_shape *x, const clt_shape *y) {
    begin(l, kernel, node, x, y);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node));
}

static void lower_max_pool2d(clt_lowering *l, const clt_tensor *node) {
    launch(l, "gpu_max_pool2d", node, &node->inputs[0]->shape, &node->shape);
}

static void lower_avg_pool2d(clt_lowering *l, const clt_tensor *node) {
    launch(l, "gpu_avg_pool2d", node, &node->inputs[0]->shape, &node->shape);
}

static void lower_avg_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    launch(l, "gpu_avg_pool2d_grad", node, &node->shape, &node->inputs[0]->shape);
}

/* First where each window's maximum is, then each pixel gathers from the windows that it won. */
static void lower_max_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0], *dy = node->inputs[1];
    int places = clt_lower_scratch(l, (size_t)clt_tensor_elements(dy));
    begin(l, "gpu_max_pool2d_places", dy, &x->shape, &dy->shape);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, places);
    clt_launch_int(l, clt_tensor_elements(dy));
    begin(l, "gpu_max_pool2d_grad", node, &x->shape, &dy->shape);
    clt_launch_scratch(l, places);
    clt_launch_tensor(l, dy);
    clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node));
}

static bool supports(const clt_candidate *c) {
    const clt_pool2d_attributes *at = c->node->attributes;
    return clt_gpu_fits(c->device) && clt_node_has_one_type(c->node) && at->kernel_h * at->kernel_w <= MOST_PLACES && at->kernel_w <= WIDEST && at->stride_w <= WIDEST;
}

#define POOL_ROW(op_suffix) {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_##op_suffix}
const clt_backend_row clt_gpu_pool2d_rows[] = {POOL_ROW(max_pool2d), POOL_ROW(max_pool2d_grad), POOL_ROW(avg_pool2d), POOL_ROW(avg_pool2d_grad), {0}};
