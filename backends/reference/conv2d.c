#include "backends/reference/reference.h"

enum { CONV2D_BLOCK = 8 }; /* as in cl/reference/conv2d.cl */

/* Work-items in which `channels` of each group are computed. */
static int64_t channel_blocks(int64_t channels, int groups) {
    return (channels + CONV2D_BLOCK - 1) / CONV2D_BLOCK * groups;
}

/* The arguments that all three kernels end with: sizes of x, weight and y, and the window. */
static void launch_geometry(clt_lowering *l, const clt_conv2d_attributes *at, const clt_shape *x,
                            const clt_shape *weight, const clt_shape *y) {
    clt_launch_ints(l, x->dims, 4, 4);
    clt_launch_ints(l, weight->dims, 4, 4);
    clt_launch_ints(l, y->dims, 4, 4);
    clt_launch_ints(l,
                    (int64_t[]){at->stride_h, at->padding_h, at->dilation_h, at->stride_w, at->padding_w,
                                at->dilation_w, at->groups},
                    7, 8);
}

/* Rounds of a work-item's loops in one launch, about: see cl/prelude.cl. */
enum { ROUNDS = 32768 };

/* Launches over the channels that are summed, `channels` in each group. */
static void launch_over_channels(clt_lowering *l, const char *kernel, const clt_tensor *node,
                                 const clt_shape *x, const clt_shape *weight, const clt_shape *y,
                                 int64_t items, int64_t channels) {
    int64_t taps = weight->dims[2] * (weight->dims[3] + 1) + 1;
    int64_t part = CLT_MAX(1, ROUNDS / taps);
    for (int64_t start = 0; start < channels; start += part) {
        clt_launch_begin(l, "reference/conv2d.cl", kernel, items, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node->inputs[1]);
        clt_launch_tensor(l, node);
        launch_geometry(l, node->attributes, x, weight, y);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + part, channels));
    }
}

static void lower_conv2d(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape, *y = &node->shape;
    int64_t items =
        y->dims[0] * channel_blocks(y->dims[1] / at->groups, at->groups) * y->dims[2] * y->dims[3];
    launch_over_channels(l, "ref_conv2d", node, x, weight, y, items, weight->dims[1]);
}

static void lower_conv2d_grad_input(clt_lowering *l, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *weight = &node->inputs[0]->shape, *y = &node->inputs[1]->shape, *x = &node->shape;
    int64_t items = x->dims[0] * channel_blocks(weight->dims[1], at->groups) * x->dims[2] * x->dims[3];
    launch_over_channels(l, "ref_conv2d_grad_input", node, x, weight, y, items, y->dims[1] / at->groups);
}

/* A weight is summed over all pixels, a small one by too few work-items to fill a device: so the rows of
 * pixels are cut into chunks, and those too long for a loop into parts. Their number depends on shapes alone,
 * for the same bits in each run. */
static void lower_conv2d_grad_weight(clt_lowering *l, const clt_tensor *node) {
    enum { ENOUGH_ITEMS = 16384 };
    const clt_conv2d_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0], *dy = node->inputs[1];
    const clt_shape *weight = &node->shape;
    int64_t count = clt_tensor_elements(node);
    int64_t items = channel_blocks(weight->dims[0] / at->groups, at->groups) * (count / weight->dims[0]);
    int64_t rows = dy->shape.dims[0] * dy->shape.dims[2];
    int64_t chunks = CLT_MIN(rows, (ENOUGH_ITEMS + items - 1) / items);
    int64_t part = CLT_MIN(dy->shape.dims[3], ROUNDS), parts = (dy->shape.dims[3] + part - 1) / part;
    int64_t most_rows = CLT_MAX(1, ROUNDS / (part + 1));
    int64_t chunk_rows = CLT_MIN(most_rows, (rows + chunks - 1) / chunks);
    chunks = (rows + chunk_rows - 1) / chunk_rows * parts;
    int partial = chunks > 1 ? clt_lower_scratch(l, (size_t)(chunks * count) * sizeof(float)) : -1;

    clt_launch_begin(l, "reference/conv2d.cl", "ref_conv2d_grad_weight", items * chunks,
                     CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, x);
    clt_launch_tensor(l, dy);
    if (chunks > 1) clt_launch_scratch(l, partial);
    else clt_launch_tensor(l, node);
    launch_geometry(l, at, &x->shape, weight, &dy->shape);
    clt_launch_ints(l, (int64_t[]){chunks, chunk_rows, parts, part}, 4, 4);
    if (chunks == 1) return;
    clt_launch_begin(l, "reference/conv2d.cl", "ref_conv2d_sum_chunks", count, CLT_REFERENCE_GROUP);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, chunks);
}

const clt_backend_row clt_reference_conv2d_rows[] = {
    {CLT_REFERENCE(conv2d), .lower = lower_conv2d},
    {CLT_REFERENCE(conv2d_grad_input), .lower = lower_conv2d_grad_input},
    {CLT_REFERENCE(conv2d_grad_weight), .lower = lower_conv2d_grad_weight},
    {0},
};
