/*
 * Ops that are computed while a graph is built: what exporters write to make sizes, axes and pads of shapes and constants.
 * The semantics are those of ONNX's operators (https://github.com/onnx/onnx/blob/main/docs/Operators.md), floats of f32,
 * integers that wrap around.
 */
#ifndef CLT_EXCHANGE_ONNX_FOLD_H
#define CLT_EXCHANGE_ONNX_FOLD_H

#include "runtime/exchange/onnx/literal.h"

typedef struct clt_onnx_folding {
    clt_arena *arena;
    clt_onnx_file *file; /* for tensors in attributes */
    const clt_onnx_node *node;
    int64_t opset;         /* of the node's domain */
    clt_literal *const *in; /* one for each input of the node; NULL where that is left out */
    clt_literal **out;      /* one for each of its outputs, to be set */
} clt_onnx_folding;

/* Errors do not name the node: who calls does. CLT_E_SHAPE, CLT_E_RANGE, CLT_E_UNSUPPORTED, CLT_E_NO_MEMORY. */
typedef clt_status clt_onnx_fold(const clt_onnx_folding *f);

/* What computes the op; NULL: nothing does. */
clt_onnx_fold *clt_onnx_fold_of(const char *op);

/* Shape and Size, of a tensor that is not a literal. */
clt_status clt_onnx_fold_shape_of(const clt_onnx_folding *f, const clt_shape *shape);

/* ---- for the rows of the tables below ---- */

typedef struct clt_onnx_fold_row {
    const char *op;
    clt_onnx_fold *fold;
} clt_onnx_fold_row;

/* Each ends with {0}. */
extern const clt_onnx_fold_row clt_onnx_fold_arithmetic[], clt_onnx_fold_shapes[], clt_onnx_fold_selection[];

/* Input i; NULL where it is left out. */
static inline const clt_literal *clt_fold_in(const clt_onnx_folding *f, size_t i) {
    return i < f->node->n_inputs ? f->in[i] : NULL;
}

/* The same of one that must be there. */
clt_status clt_fold_need(const clt_onnx_folding *f, size_t i, const clt_literal **literal);
/* And be a list of integers, or one. */
clt_status clt_fold_integers(const clt_onnx_folding *f, size_t i, const clt_literal **literal);

/* Attributes, or what they are where they are left out. */
int64_t clt_fold_int(const clt_onnx_folding *f, const char *name, int64_t otherwise);

/* An axis from -rank to rank - 1 as one from 0. */
clt_status clt_fold_axis(int64_t axis, int rank, int *to);

/* Axes from an attribute, or, where the node has no such attribute, from input i; *n is -1 if there are none. */
clt_status clt_fold_axes(const clt_onnx_folding *f, const char *name, size_t i, int rank, int axes[CLT_MAX_RANK], int *n);

/* Strides of an operand whose dimensions of 1 are stretched to those of a result. */
void clt_fold_strides(const clt_shape *operand, const clt_shape *result, int64_t strides[CLT_MAX_RANK]);
/* The place of a result's element in such an operand. */
int64_t clt_fold_place(const clt_shape *result, int64_t element, const int64_t strides[CLT_MAX_RANK]);

/* One element, whatever the type, which both have. */
void clt_fold_copy(clt_literal *to, int64_t at, const clt_literal *from, int64_t from_at);

#endif
