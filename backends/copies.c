#include "backends/copies.h"

#include <string.h>

#include "runtime/base/halves.h"

clt_copy clt_copy_collapsed(const clt_copy *copy) {
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

int clt_copy_across(const clt_copy *c, int64_t narrow) {
    int inner = c->rank - 1;
    if (inner < 0 || c->x_stride[inner] == 1 || c->y_stride[inner] != 1 || c->size[inner] < narrow) return -1;
    for (int d = 0; d < inner; d++)
        if (c->x_stride[d] == 1 && c->size[d] >= narrow) return d;
    return -1;
}

int64_t clt_copy_tiles(const clt_copy *c, int across, int64_t side) {
    int64_t tiles = 1;
    for (int d = 0; d < c->rank; d++) tiles *= d == across || d == c->rank - 1 ? (c->size[d] + side - 1) / side : c->size[d];
    return tiles;
}

void clt_copy_launch(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *c) {
    const int64_t *parts[] = {c->size, c->x_stride, c->y_stride};
    clt_launch_tensor(l, x);
    clt_launch_tensor(l, y);
    for (int p = 0; p < 3; p++) {
        int64_t values[CLT_MAX_RANK];
        for (int d = 0; d < CLT_MAX_RANK; d++) {
            int from = d - (CLT_MAX_RANK - c->rank);
            values[d] = from >= 0 ? parts[p][from] : p == 0;
        }
        clt_launch_ints(l, values, CLT_MAX_RANK, CLT_MAX_RANK);
    }
    clt_launch_int(l, c->x_offset);
    clt_launch_int(l, c->y_offset);
}

void clt_copy_launch_planes(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *c, int across) {
    clt_copy outer = {.x_offset = c->x_offset, .y_offset = c->y_offset};
    int inner = c->rank - 1;
    for (int d = 0; d < inner; d++) {
        if (d == across) continue;
        outer.size[outer.rank] = c->size[d];
        outer.x_stride[outer.rank] = c->x_stride[d];
        outer.y_stride[outer.rank++] = c->y_stride[d];
    }
    clt_copy_launch(l, x, y, &outer);
    clt_launch_ints(l, (int64_t[]){c->size[inner], c->size[across], c->x_stride[inner], c->y_stride[across]}, 4, 4);
}

int32_t clt_copy_bits(clt_dtype dtype, float value) {
    int32_t bits;
    uint16_t half = 0;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == CLT_F32) return bits;
    (dtype == CLT_F16 ? clt_f32_to_f16 : clt_f32_to_bf16)(&half, &value, 1);
    return (int32_t)((uint32_t)half << 16 | half);
}

/* All of a box of the given shape, with the strides that x and y have when dense. */
static clt_copy copy_box(const clt_shape *box, const clt_shape *x, const clt_shape *y) {
    clt_copy copy = {.rank = box->rank};
    for (int d = 0; d < box->rank; d++) copy.size[d] = box->dims[d];
    clt_shape_strides(x, copy.x_stride);
    clt_shape_strides(y, copy.y_stride);
    return copy;
}

void clt_copies_permute(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_permute_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&node->shape, &node->shape, &node->shape);
    int64_t strides[CLT_MAX_RANK];
    clt_shape_strides(&x->shape, strides);
    for (int d = 0; d < copy.rank; d++) copy.x_stride[d] = strides[at->order[d]];
    how->copy(l, x, node, &copy);
}

void clt_copies_slice(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&node->shape, &x->shape, &node->shape);
    copy.x_offset = clt_slice_start(at, x->shape.dims[at->axis]) * copy.x_stride[at->axis];
    copy.x_stride[at->axis] *= CLT_MIN(at->step, x->shape.dims[at->axis]); /* a larger one takes one place */
    how->copy(l, x, node, &copy);
}

void clt_copies_slice_grad(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_slice_attributes *at = node->attributes;
    const clt_tensor *dy = node->inputs[0];
    clt_copy copy = copy_box(&dy->shape, &dy->shape, &node->shape);
    copy.y_offset = clt_slice_start(at, node->shape.dims[at->axis]) * copy.y_stride[at->axis];
    copy.y_stride[at->axis] *= CLT_MIN(at->step, node->shape.dims[at->axis]);
    how->fill(l, node, 0);
    how->copy(l, dy, node, &copy);
}

void clt_copies_concat(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    int axis = ((const clt_concat_attributes *)node->attributes)->axis;
    int64_t start = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        clt_copy copy = copy_box(&x->shape, &x->shape, &node->shape);
        copy.y_offset = start * copy.y_stride[axis];
        how->copy(l, x, node, &copy);
        start += x->shape.dims[axis];
    }
}

void clt_copies_pad(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_pad_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_copy copy = copy_box(&x->shape, &x->shape, &node->shape);
    for (int d = 0; d < copy.rank; d++) copy.y_offset += at->before[d] * copy.y_stride[d];
    how->fill(l, node, at->value);
    how->copy(l, x, node, &copy);
}

void clt_copies_expand(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_tensor *x = node->inputs[0];
    int lead = node->shape.rank - x->shape.rank;
    clt_copy copy = copy_box(&node->shape, &node->shape, &node->shape);
    int64_t strides[CLT_MAX_RANK];
    clt_shape_strides(&x->shape, strides);
    for (int d = 0; d < copy.rank; d++)
        copy.x_stride[d] = d < lead || x->shape.dims[d - lead] == 1 ? 0 : strides[d - lead];
    how->copy(l, x, node, &copy);
}

/* Whether a part already lies where it is to go in the flat tensor. */
static bool in_place(const clt_tensor *part, const clt_tensor *flat, int64_t offset) {
    const clt_tensor *storage = flat->storage ? flat->storage : flat;
    return part->storage == storage && part->storage_offset == flat->storage_offset + offset;
}

void clt_copies_pack(clt_lowering *l, const clt_tensor *node, const clt_copier *how) {
    const clt_pack_attributes *at = node->attributes;
    const clt_tensor *flat = node->inputs[0];
    for (int i = 0; i < at->n; i++) {
        const clt_tensor *part = node->inputs[i + 1];
        clt_copy copy = {.rank = 1, .size = {clt_tensor_elements(part)}, .x_stride = {1}, .y_stride = {1}, .y_offset = at->offsets[i]};
        if (!in_place(part, flat, at->offsets[i])) how->copy(l, part, flat, &copy);
    }
}
