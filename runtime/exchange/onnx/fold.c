#include "runtime/exchange/onnx/fold.h"

#include <string.h>

clt_onnx_fold *clt_onnx_fold_of(const char *op) {
    const clt_onnx_fold_row *const tables[] = {clt_onnx_fold_arithmetic, clt_onnx_fold_shapes, clt_onnx_fold_selection};
    for (size_t t = 0; t < CLT_COUNT_OF(tables); t++)
        for (const clt_onnx_fold_row *row = tables[t]; row->op; row++)
            if (!strcmp(row->op, op)) return row->fold;
    return NULL;
}

clt_status clt_fold_need(const clt_onnx_folding *f, size_t i, const clt_literal **literal) {
    *literal = clt_fold_in(f, i);
    return *literal ? CLT_OK : clt_fail(CLT_E_FORMAT, "input %zu is missing", i);
}

clt_status clt_fold_integers(const clt_onnx_folding *f, size_t i, const clt_literal **literal) {
    CLT_TRY(clt_fold_need(f, i, literal));
    if ((*literal)->type == CLT_ONNX_FLOAT || (*literal)->shape.rank > 1)
        return clt_fail(CLT_E_FORMAT, "input %zu is not a list of integers", i);
    return CLT_OK;
}

int64_t clt_fold_int(const clt_onnx_folding *f, const char *name, int64_t otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, name, CLT_ONNX_A_INT);
    return a ? a->i : otherwise;
}

clt_status clt_fold_axis(int64_t axis, int rank, int *to) {
    if (axis < -rank || axis >= rank) return clt_fail(CLT_E_SHAPE, "axis %lld of %d dimensions", (long long)axis, rank);
    *to = (int)(axis < 0 ? axis + rank : axis);
    return CLT_OK;
}

clt_status clt_fold_axes(const clt_onnx_folding *f, const char *name, size_t i, int rank, int axes[CLT_MAX_RANK], int *n) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, name, CLT_ONNX_A_INTS);
    const clt_literal *list = clt_fold_in(f, i);
    const int64_t *values = a ? a->ints : NULL;
    size_t count = a ? a->n : 0;
    *n = -1;
    if (!a && !list) return CLT_OK;
    if (!a) {
        CLT_TRY(clt_fold_integers(f, i, &list));
        values = list->integers;
        count = (size_t)list->elements;
    }
    if (count > CLT_MAX_RANK) return clt_fail(CLT_E_SHAPE, "%zu axes of %d dimensions", count, rank);
    bool seen[CLT_MAX_RANK] = {0};
    *n = (int)count;
    for (int k = 0; k < *n; k++) {
        CLT_TRY(clt_fold_axis(values[k], rank, &axes[k]));
        if (seen[axes[k]]) return clt_fail(CLT_E_SHAPE, "axis %d is named twice", axes[k]);
        seen[axes[k]] = true;
    }
    return CLT_OK;
}

void clt_fold_strides(const clt_shape *operand, const clt_shape *result, int64_t strides[CLT_MAX_RANK]) {
    int64_t own[CLT_MAX_RANK];
    int leading = result->rank - operand->rank;
    clt_shape_strides(operand, own);
    for (int d = 0; d < result->rank; d++) strides[d] = d < leading || operand->dims[d - leading] == 1 ? 0 : own[d - leading];
}

int64_t clt_fold_place(const clt_shape *result, int64_t element, const int64_t strides[CLT_MAX_RANK]) {
    int64_t place = 0;
    for (int d = result->rank; d-- > 0; element /= result->dims[d]) place += element % result->dims[d] * strides[d];
    return place;
}

void clt_fold_copy(clt_literal *to, int64_t at, const clt_literal *from, int64_t from_at) {
    if (to->type == CLT_ONNX_FLOAT) to->floats[at] = from->floats[from_at];
    else to->integers[at] = from->integers[from_at];
}
