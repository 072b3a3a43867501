/* The ops that only move elements (backends/copies.h), and views. */
#include <stdio.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/copy.cl";

/* `values` of the copy's dimensions as the last components of a vector of `width`, `other` before them. */
static void launch_vector(clt_lowering *l, const int64_t *values, int rank, int width, int64_t other) {
    int64_t vector[CLT_MAX_RANK];
    for (int i = 0; i < width; i++) vector[i] = i < width - rank ? other : values[i - (width - rank)];
    clt_launch_indices(l, vector, width, width);
}

void clt_reference_copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy) {
    clt_dtype stored = y->dtype == CLT_I32 ? CLT_F32 : y->dtype; /* as large */
    clt_copy c = clt_copy_collapsed(copy);
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

/* The result has the memory of the operand. */
static void lower_view(clt_lowering *l, const clt_tensor *node) {
    (void)l;
    (void)node;
}

/* The own part; the others' come from the other ranks. */
static void lower_all_gather(clt_lowering *l, const clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    const clt_tensor *part = node->inputs[0];
    int64_t count = clt_tensor_elements(part);
    clt_copy copy = {.rank = 1, .size = {count}, .x_stride = {1}, .y_stride = {1}, .y_offset = at->rank * count};
    clt_reference_copy(l, part, node, &copy);
}

static const clt_copier copier = {clt_reference_copy, clt_reference_fill};
CLT_COPIES_LOWER(permute, &copier)
CLT_COPIES_LOWER(slice, &copier)
CLT_COPIES_LOWER(slice_grad, &copier)
CLT_COPIES_LOWER(concat, &copier)
CLT_COPIES_LOWER(pad, &copier)
CLT_COPIES_LOWER(expand, &copier)
CLT_COPIES_LOWER(pack, &copier)

#define ROW(op_suffix, function) {CLT_REFERENCE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .lower = function}
/* By a command, not by a kernel: bytes as they lie. */
#define CARRY(op_suffix) {CLT_REFERENCE(op_suffix), .types = CLT_ANY_FLOAT, .large = true, .any_layout = true, .lower = lower_view}
const clt_backend_row clt_reference_copy_rows[] = {
    ROW(reshape, lower_view),
    ROW(permute, lower_permute),
    ROW(slice, lower_slice),
    ROW(slice_grad, lower_slice_grad),
    ROW(concat, lower_concat),
    ROW(pad, lower_pad),
    ROW(expand, lower_expand),
    ROW(pack, lower_pack),
    ROW(flat_part, lower_view),
    CARRY(from_host),
    CARRY(to_host),
    ROW(all_reduce, lower_view),
    ROW(reduce_scatter, lower_view),
    ROW(all_gather, lower_all_gather),
    ROW(all_gather_in_place, lower_view),
    ROW(shard, lower_view),
    {0},
};
