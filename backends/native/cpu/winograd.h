/*
 * Winograd's convolution in the native backend: what its directions share.
 */
#ifndef CLT_BACKENDS_NATIVE_CPU_WINOGRAD_H
#define CLT_BACKENDS_NATIVE_CPU_WINOGRAD_H

#include "backends/native/cpu/conv2d.h"

enum { CLT_WINOGRAD_POINTS = 36, CLT_WINOGRAD_MOST_KIB = 16384 /* of a chunk: of the tunable */ };

/* How much of a convolution lies between its transforms and its products at a time. */
extern const clt_tunable clt_winograd_tunables[];
/* How a row begins. F(4x4, 3x3) multiplies 36 pairs where the direct sum multiplies 16 x 9. */
#define CLT_WINOGRAD(op_suffix)                                        \
    .op = &clt_op_##op_suffix, .name = "winograd", .any_layout = true, \
    .tunables = clt_winograd_tunables, .arithmetic = 36.0 / (16 * 9)

/* A set of matrices, one a point, whose rows are tiles and whose columns are channels of an image. */
typedef struct clt_winograd_matrices {
    int64_t columns; /* rounded up */
    int64_t point;   /* elements from point to point */
    int scratch;
} clt_winograd_matrices;

/* An image's tiles of 4 x 4 pixels, and how many of them are taken at a time. */
typedef struct clt_winograd_tiles {
    int64_t down, across; /* of an image */
    int64_t all, chunk;
} clt_winograd_tiles;

/* Those of an image as y, for matrices of so many columns together, with about `kib` KiB a chunk. */
clt_winograd_tiles clt_winograd_tiles_of(const clt_shape *y, int64_t columns, int kib);

/* Reserves a chunk's matrices of so many columns. */
clt_winograd_matrices clt_winograd_reserve(clt_lowering *l, const clt_winograd_tiles *tiles,
                                           int64_t columns);

/* The transform of the patches of x for the chunk of tiles that begins with `first`. */
void clt_winograd_launch_input(clt_lowering *l, const clt_tensor *x, const clt_winograd_matrices *v,
                               const clt_winograd_tiles *tiles, int64_t first, int padding_h,
                               int padding_w);

/* The tiles of a chunk: fewer in the last. */
int64_t clt_winograd_count(const clt_winograd_tiles *tiles, int64_t first);

/* True if the convolution is of the kind that there is an algorithm for, on these images. */
bool clt_winograd_applies(const clt_tensor *node, const clt_device *device, const clt_tensor *x,
                          const clt_tensor *weight, const clt_tensor *y);

/* True if it should take less time than the direct sum, for an image as y, or if the setting `backends` names it. */
bool clt_winograd_wins(const clt_device *device, const clt_shape *y, const clt_winograd_tiles *tiles, int64_t channels,
                       int64_t results);

/* clt_cpu_begin with what Winograd's kernels share in front of the text. */
void clt_winograd_begin(clt_lowering *l, const char *path, const char *kernel, int64_t count);

#endif
