/*
 * The ops that only move elements: each is one or more copies of boxes with strides.
 */
#ifndef CLT_BACKENDS_COPIES_H
#define CLT_BACKENDS_COPIES_H

#include "backends/backend.h"

/* Element i of `size` (row-major over `rank` dimensions) goes from x[x_offset + sum i_d x_stride_d] to y[y_offset + sum i_d y_stride_d]. */
typedef struct clt_copy {
    int rank;
    int64_t size[CLT_MAX_RANK], x_stride[CLT_MAX_RANK], y_stride[CLT_MAX_RANK];
    int64_t x_offset, y_offset;
} clt_copy;

/* The same with dimensions of 1 left out and those that lie behind each other on both sides merged. */
clt_copy clt_copy_collapsed(const clt_copy *copy);

/* Of a box whose neighbours along its last dimension lie side by side in y, but not in x: the dimension along which they do in x; -1 if there is none, or
 * either is shorter than `narrow`. */
int clt_copy_across(const clt_copy *copy, int64_t narrow);
/* Tiles of side x side, or less at edges, in all planes of those two dimensions. */
int64_t clt_copy_tiles(const clt_copy *copy, int across, int64_t side);
/* Arguments of a kernel: x, y, the box's sizes and strides in x and in y as int8, behind 1s and 0s for dimensions that are not there, and both offsets. */
void clt_copy_launch(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy);
/* The same of the box that counts the planes, and of each plane as int4: sizes of the last dimension and of `across`, stride in x of the last, in y of the other. */
void clt_copy_launch_planes(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy, int across);
/* The bits of an element; of a half twice. */
int32_t clt_copy_bits(clt_dtype dtype, float value);

/* How a backend does it. */
typedef struct clt_copier {
    void (*copy)(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy);
    void (*fill)(clt_lowering *l, const clt_tensor *y, float value); /* all elements of y */
} clt_copier;

void clt_copies_permute(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_slice(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_slice_grad(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_concat(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_pad(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_expand(clt_lowering *l, const clt_tensor *node, const clt_copier *how);
void clt_copies_pack(clt_lowering *l, const clt_tensor *node, const clt_copier *how);

/* A row's lowering by clt_copies_OP and a copier. */
#define CLT_COPIES_LOWER(op_suffix, copier)                                  \
    static void lower_##op_suffix(clt_lowering *l, const clt_tensor *node) { \
        clt_copies_##op_suffix(l, node, copier);                             \
    }

#endif
