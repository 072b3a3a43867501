/*
 * The native backend for GPU-class devices, whose work-items are lanes: one contraction
 * c[m, n] = sum over k of a[m, k] b[k, n], whose operands are found in memory in a few ways
 * (cl/native/gpu). Matrix products and the three directions of a convolution describe themselves so.
 */
#ifndef CLT_BACKENDS_NATIVE_GPU_H
#define CLT_BACKENDS_NATIVE_GPU_H

#include "backends/codegen.h"
#include "backends/native/native.h"

/* Where number i is, of rows, steps of a sum or columns: in pictures of `height` x `width` it is image
 * i / width / height, at origin + i's row and column there times step. (gpu_place in cl/native/gpu/shared.cl) */
typedef struct clt_gpu_place {
    int64_t height, width, image_step, step_h, step_w, origin_h, origin_w;
} clt_gpu_place;

typedef enum clt_gpu_source {
    CLT_GPU_STEPS_ADJACENT, /* row row_step + k */
    CLT_GPU_ROWS_ADJACENT,  /* row + k k_step */
    CLT_GPU_GATHER_ROWS,    /* by places; rows that follow one another are mostly neighbours */
    CLT_GPU_GATHER_STEPS    /* by places; steps that follow one another are mostly neighbours */
} clt_gpu_source;

/* How an operand lies in memory: element (row, k), row being m or n. */
typedef struct clt_gpu_operand {
    clt_gpu_source source;
    bool by_four;               /* neighbours come in aligned fours: never across one's end */
    clt_gpu_place rows, steps;  /* of linear sources, image_step alone */
    int64_t height, width;      /* of the pictures: nothing is read outside them */
} clt_gpu_operand;

typedef struct clt_gpu_contraction {
    const clt_tensor *a_tensor, *b_tensor;
    int64_t m, n, k, batch;
    clt_gpu_operand a, b;
    int64_t size[CLT_MAX_RANK], a_batch[CLT_MAX_RANK], b_batch[CLT_MAX_RANK]; /* of the batch */
    /* where the result is: element (m, column) of one of the batch */
    int64_t row_step, batch_step, pitch;
    clt_gpu_place columns;
    bool result_by_four;
} clt_gpu_contraction;

/* What a row may choose, in the order of clt_gpu_tunables. */
typedef struct clt_gpu_tile {
    int m, n, k;        /* of a work-group */
    int item_m, item_n; /* of a work-item */
    int vector;         /* floats a load, where alignment allows */
    int splits;         /* of the sum; 0: by the shapes */
} clt_gpu_tile;

extern const clt_tunable clt_gpu_tunables[];
int clt_gpu_items(const clt_gpu_tile *tile);
clt_gpu_tile clt_gpu_tile_of(const int *parameters);

/* A contraction's best guess of a tile on this device. */
void clt_gpu_guess(const clt_gpu_contraction *x, const clt_device *device, int *parameters);
/* True if the device can have such work-groups. */
bool clt_gpu_can(const clt_device *device, const clt_gpu_tile *tile);
/* Splits of the sum: as many parts as give a device enough to do, by the shapes alone. */
int64_t clt_gpu_splits(const clt_gpu_contraction *x, int tile_m, int tile_n, int tile_k, int wanted);

/* Fewer work-groups leave a device idle. */
enum { CLT_GPU_ENOUGH_GROUPS = 128 };

/* True if the device is one that these kernels are for. */
bool clt_gpu_fits(const clt_device *device);
/* Defines GPU_ITEMS and GPU_FIXED_GROUP. */
void clt_gpu_group_text(clt_text *text, const clt_device *device, int items);
/* Begins a kernel of an embedded file, behind the prelude for this storage type, GPU_ITEMS and GPU_FIXED_GROUP for groups of `items`, the definitions, and
 * fours.cl. */
void clt_gpu_begin(clt_lowering *l, const char *path, clt_dtype storage, const char *definitions, const char *kernel, int64_t count, int items);
/* Four values that lie side by side: "float4 z_ = …" of elements 4 i_ and after of the code's loop, behind fours.cl and clt_reference_element_parameters. */
void clt_gpu_code_four(clt_text *text, const clt_code *code, const clt_tensor *node);
/* What stands in front of all kernels: the prelude, for operands of their storage type, and how results of y are stored: with its epilogue, if this kernel finishes them
 * and no sum of parts does. */
void clt_gpu_result_text(clt_text *text, const clt_device *device, const clt_tensor *y, bool finishes);
/* Text of operand.cl for one side, with what it needs in front. `fours`: slots may be four rows. */
void clt_gpu_side_text(clt_text *text, const clt_device *device, const char *side, const clt_gpu_operand *operand, int tile,
                       int vector, bool fours);
/* How a contraction is cut into work-groups: splits of its sum, steps in each. */
typedef struct clt_gpu_cut {
    int64_t splits, split_k, groups;
} clt_gpu_cut;
clt_gpu_cut clt_gpu_cut_of(const clt_gpu_contraction *x, int tile_m, int tile_n, int tile_k, int splits);
/* True if the parts and all indices of such a cut fit in the device's buffers and in 32 bits. */
bool clt_gpu_holds(const clt_device *device, const clt_gpu_contraction *x, const clt_gpu_cut *cut);
/* Scratch for the parts of the sum; -1 if there is but one. */
int clt_gpu_parts(clt_lowering *l, const clt_gpu_contraction *x, const clt_gpu_cut *cut);
/* All arguments of a contraction's launch, and the launch that adds up its parts into y. */
void clt_gpu_arguments(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y, const clt_gpu_cut *cut,
                       int parts);
/* Launches a contraction into y, with the row's parameters. */
void clt_gpu_contract(clt_lowering *l, const clt_gpu_contraction *x, const clt_tensor *y);

/* ---- what the ops are ---- */

enum { CLT_GPU_MOST_PHASES = 16 };

/* matmul.c, conv2d.c: the contractions of a node, at most CLT_GPU_MOST_PHASES; their number, 0 if
 * there are more. */
int clt_gpu_describe(const clt_tensor *node, clt_gpu_contraction *x);
void clt_gpu_describe_matmul(const clt_tensor *node, clt_gpu_contraction *x);
void clt_gpu_describe_conv2d(const clt_tensor *node, clt_gpu_contraction *x);
int clt_gpu_describe_grad_input(const clt_tensor *node, clt_gpu_contraction *x);
void clt_gpu_describe_grad_weight(const clt_tensor *node, clt_gpu_contraction *x);

/* The rows' functions, for all four ops. */
bool clt_gpu_supports(const clt_candidate *c);
void clt_gpu_defaults(const clt_candidate *c, int *parameters);
bool clt_gpu_valid(const clt_candidate *c, const int *parameters);
void clt_gpu_lower(clt_lowering *l, const clt_tensor *node);

#endif
