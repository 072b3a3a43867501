/*
 * The ops that only move elements: each is one or more copies with strides.
 */
#include <stdio.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/copy.cl";

/* The same copy with dimensions of 1 left out and those that lie behind each other on both sides merged. */
static clt_copy collapse(const clt_copy *copy) {
    clt_copy c = {.x_offset = copy->x_offset, .y_offset = copy->y_offset};
    for (int d = 0; d < copy->rank; d++) {
        int64_t size = copy->size[d], x_stride = copy->x_stride[d], y_stride = copy->y_stride[d];
        int last = c.rank - 1;
        if (size == 1) continue;
        if (last >= 0 && c.x_stride[last] == size * x_stride && c.y_stride[last] == size * y_stride) {
            size *= c.size[last];
            c.rank--;
        }
        c.size[c.rank] = size;
        c.x_stride[c.rank] = x_stride;
        c.y_stride[c.rank++] = y_stride;
    }
    return c;
}

/* `values` of the copy's dimensions as the last components of a vector of `width`, `other` before them. */
static void launch_vector(clt_lowering *l, const int64_t *values, int rank, int width, int64_t other) {
    int64_t vector[CLT_MAX_RANK];
    for (int i = 0; i < width; i++) vector[i] = i < width - rank ? other : values[i - (width - rank)];
    clt_launch_indices(l, vector, width, width);
}

void clt_reference_copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy) {
    clt_dtype stored = y->dtype == CLT_I32 ? CLT_F32 : y->dtype; /* as large */
    clt_copy c = collapse(copy);
    int64_t count = 1;
    for (int d = 0; d < c.rank; d++) count *= c.size[d];
    int width = c.rank <= 1 ? 1 : c.rank <= 4 ? 4 : 8;
    char kernel[32];
    snprintf(kernel, sizeof kernel, "ref_copy%d", width);
    clt_launch_begin_typed(l, path, stored, kernel, count, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, x);
    clt_launch_tensor(l, y);
    clt_launch_index(l, count);
    if (width > 1) launch_vector(l, c.size, c.rank, width, 1);
    launch_vector(l, c.x_stride, c.rank, width, 0);
    launch_vector(l, c.y_stride, c.rank, width, 0);
    clt_launch_index(l, c.x_offset);
    clt_launch_index(l, c.y_offset);
}

void clt_reference_fill(clt_lowering *l, const clt_tensor *y, float value) {
    int64_t count = clt_tensor_elements(y);
    clt_launch_begin_typed(l, path, y->dtype, "ref_fill", count, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, y);
    clt_launch_index(l, count);
    clt_launch_float(l, value);
}

/* ---- the ops ---- */

/* All of a box of the given shape, with the strides that x and y have when dense. */
static clt_copy copy_box(const clt_shape *box, const clt_shape *x, const clt_shape *y) {
    clt_copy copy = {.rank = box->rank};
    for (int d = 0; d < box->rank; d++) copy.size[d] = box->dims[d];
    clt_shape_strides(x, copy.x_stride);
    clt_shape_strides(y, copy.y_stride);
    return copy;
}

/* The result has the memory of the operand. */
static void lower_view(clt_lowering *l, const clt_tensor *node) {
    (void)l;
    (void)node;
}

static void lower_permute(clt_lowering *l, const clt_tensor *node) {
    const clt_permute_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&node->shape, &node->shape, &node->shape);
    int64_t strides[CLT_MAX_RANK];
    clt_shape_strides(&x->shape, strides);
    for (int d = 0; d < copy.rank; d++) copy.x_stride[d] = strides[at->order[d]];
    clt_reference_copy(l, x, node, &copy);
}

/* The own part; the others' come from the other ranks. */
static void lower_all_gather(clt_lowering *l, const clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    const clt_tensor *part = node->inputs[0];
    int64_t count = clt_tensor_elements(part);
    clt_copy copy = {.rank = 1, .size = {count}, .x_stride = {1}, .y_stride = {1}, .y_offset = at->rank * count};
    clt_reference_copy(l, part, node, &copy);
}

static void lower_slice(clt_lowering *l, const clt_tensor *node) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&node->shape, &x->shape, &node->shape);
    copy.x_offset = clt_slice_start(at, x->shape.dims[at->axis]) * copy.x_stride[at->axis];
    copy.x_stride[at->axis] *= CLT_MIN(at->step, x->shape.dims[at->axis]); /* a larger one takes one place */
    clt_reference_copy(l, x, node, &copy);
}

static void lower_slice_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *dy = node->inputs[0];
    clt_copy copy = copy_box(&dy->shape, &dy->shape, &node->shape);
    copy.y_offset = clt_slice_start(at, node->shape.dims[at->axis]) * copy.y_stride[at->axis];
    copy.y_stride[at->axis] *= CLT_MIN(at->step, node->shape.dims[at->axis]);
    clt_reference_fill(l, node, 0);
    clt_reference_copy(l, dy, node, &copy);
}

static void lower_concat(clt_lowering *l, const clt_tensor *node) {
    int axis = ((const clt_concat_attributes *)node->attributes)->axis;
    int64_t start = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        clt_copy copy = copy_box(&x->shape, &x->shape, &node->shape);
        copy.y_offset = start * copy.y_stride[axis];
        clt_reference_copy(l, x, node, &copy);
        start += x->shape.dims[axis];
    }
}

static void lower_pad(clt_lowering *l, const clt_tensor *node) {
    const clt_pad_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&x->shape, &x->shape, &node->shape);
    for (int d = 0; d < copy.rank; d++) copy.y_offset += at->before[d] * copy.y_stride[d];
    clt_reference_fill(l, node, at->value);
    clt_reference_copy(l, x, node, &copy);
}

static void lower_expand(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    int lead = node->shape.rank - x->shape.rank;
    clt_copy copy = copy_box(&node->shape, &node->shape, &node->shape);
    int64_t strides[CLT_MAX_RANK];
    clt_shape_strides(&x->shape, strides);
    for (int d = 0; d < copy.rank; d++)
        copy.x_stride[d] = d < lead || x->shape.dims[d - lead] == 1 ? 0 : strides[d - lead];
    clt_reference_copy(l, x, node, &copy);
}

#define ROW(op_suffix, function) {CLT_REFERENCE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .lower = function}
const clt_backend_row clt_reference_copy_rows[] = {
    ROW(reshape, lower_view),
    ROW(permute, lower_permute),
    ROW(slice, lower_slice),
    ROW(slice_grad, lower_slice_grad),
    ROW(concat, lower_concat),
    ROW(pad, lower_pad),
    ROW(expand, lower_expand),
    ROW(flat_part, lower_view),
    ROW(all_reduce, lower_view),
    ROW(reduce_scatter, lower_view),
    ROW(all_gather, lower_all_gather),
    ROW(all_gather_in_place, lower_view),
    ROW(shard, lower_view),
    {0},
};
