#include "backends/reference/reference.h"

static const char path[] = "reference/pool2d.cl";

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

/* Loops are short (see cl/prelude.cl): so many rows of a box of rows and columns, neither more than 32767, are gone over in a
 * launch, from `row` on. */
typedef struct parts {
    int64_t rows, each, row;
} parts;

static parts parts_of(int64_t rows, int64_t columns) {
    enum { ROUNDS = 16384 };
    return (parts){rows, CLT_MAX(1, ROUNDS / columns), 0};
}

/* Of a window, of which no more than the image counts. */
static parts window_parts(const clt_pool2d_attributes *at, const clt_shape *x) {
    return parts_of(CLT_MIN(at->kernel_h, x->dims[2]), CLT_MIN(at->kernel_w, x->dims[3]));
}

/* Of the windows that hold a pixel. */
static parts pixel_parts(const clt_pool2d_attributes *at, const clt_shape *y) {
    return parts_of(CLT_MIN(y->dims[2], (at->kernel_h + at->stride_h - 1) / at->stride_h),
                    CLT_MIN(y->dims[3], (at->kernel_w + at->stride_w - 1) / at->stride_w));
}

/* The last part ends behind every window. */
static void launch_part(clt_lowering *l, const parts *p) {
    int64_t end = p->row + p->each;
    clt_launch_ints(l, (int64_t[]){p->row, end < p->rows ? end : CLT_MAX_WINDOW + 1}, 2, 2);
}

static bool next_part(parts *p) {
    p->row += p->each;
    return p->row < p->rows;
}

static void begin(clt_lowering *l, const char *kernel, const clt_tensor *over) {
    clt_launch_begin_typed(l, path, over->dtype, kernel, clt_tensor_elements(over), CLT_REFERENCE_GROUP);
}

/* Where each window's maximum is. Gives the scratch memory. */
static int launch_places(clt_lowering *l, const clt_pool2d_attributes *at, const clt_tensor *x, const clt_tensor *y) {
    int best = clt_lower_scratch(l, (size_t)clt_tensor_elements(y) * sizeof(int32_t));
    parts p = window_parts(at, &x->shape);
    do {
        begin(l, "ref_max_pool2d_places", y);
        clt_launch_tensor(l, x);
        clt_launch_scratch(l, best);
        launch_geometry(l, at, &x->shape, &y->shape);
        launch_part(l, &p);
    } while (next_part(&p));
    return best;
}

static void lower_max_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    parts p = window_parts(node->attributes, &x->shape);
    if (p.rows <= p.each) {
        begin(l, "ref_max_pool2d", node);
        clt_launch_tensor(l, x);
        clt_launch_tensor(l, node);
        launch_geometry(l, node->attributes, &x->shape, &node->shape);
        return;
    }
    int best = launch_places(l, node->attributes, x, node);
    begin(l, "ref_max_pool2d_take", node);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, best);
    clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node));
}

/* First where each window's maximum is, then each pixel gathers from the windows that it won. */
static void lower_max_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0], *dy = node->inputs[1];
    int best = launch_places(l, node->attributes, x, dy);
    parts p = pixel_parts(node->attributes, &dy->shape);
    do {
        begin(l, "ref_max_pool2d_grad", node);
        clt_launch_scratch(l, best);
        clt_launch_tensor(l, dy);
        clt_launch_tensor(l, node);
        launch_geometry(l, node->attributes, &x->shape, &dy->shape);
        launch_part(l, &p);
    } while (next_part(&p));
}

static void lower_avg_pool2d(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    parts p = window_parts(at, &x->shape);
    do {
        begin(l, "ref_avg_pool2d", node);
        clt_launch_tensor(l, x);
        clt_launch_tensor(l, node);
        launch_geometry(l, at, &x->shape, &node->shape);
        launch_part(l, &p);
        clt_launch_int(l, at->exclude_padding);
    } while (next_part(&p));
}

static void lower_avg_pool2d_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    const clt_tensor *dy = node->inputs[0];
    parts p = pixel_parts(at, &dy->shape);
    do {
        begin(l, "ref_avg_pool2d_grad", node);
        clt_launch_tensor(l, dy);
        clt_launch_tensor(l, node);
        launch_geometry(l, at, &node->shape, &dy->shape);
        launch_part(l, &p);
        clt_launch_int(l, at->exclude_padding);
    } while (next_part(&p));
}

/* One storage type; and parts of sums would be rounded. */
static bool supports(const clt_candidate *c) {
    const clt_tensor *node = c->node, *x = node->inputs[0];
    bool grad = node->op == &clt_op_max_pool2d_grad || node->op == &clt_op_avg_pool2d_grad;
    const clt_tensor *dy = node->inputs[node->n_inputs - 1];
    parts p = grad ? pixel_parts(node->attributes, &dy->shape) : window_parts(node->attributes, &x->shape);
    return clt_node_has_one_type(node) && (node->dtype == CLT_F32 || p.rows <= p.each);
}

const clt_backend_row clt_reference_pool2d_rows[] = {
    {CLT_REFERENCE(max_pool2d), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_max_pool2d},
    {CLT_REFERENCE(max_pool2d_grad), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_max_pool2d_grad},
    {CLT_REFERENCE(avg_pool2d), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_avg_pool2d},
    {CLT_REFERENCE(avg_pool2d_grad), .types = CLT_ANY_FLOAT, .supports = supports, .lower = lower_avg_pool2d_grad},
    {0},
};
