#include "runtime/exchange/onnx/literal.h"

#include <string.h>

#include "runtime/base/bytes.h"

static bool is_literal_type(int64_t type) {
    return type == CLT_ONNX_FLOAT || type == CLT_ONNX_INT64 || type == CLT_ONNX_INT32 || type == CLT_ONNX_UINT8 || type == CLT_ONNX_BOOL;
}

/* With a dimension of 0, too, the others must be small: strides are products of them. */
static bool is_small(const clt_shape *shape) {
    int64_t product = 1;
    if (shape->rank < 0 || shape->rank > CLT_MAX_RANK) return false;
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < 0 || shape->dims[d] > CLT_ONNX_MOST_LITERAL) return false;
        product *= CLT_MAX(shape->dims[d], 1);
        if (product > CLT_ONNX_MOST_LITERAL) return false;
    }
    return true;
}

clt_status clt_literal_new(clt_arena *arena, int64_t type, const clt_shape *shape, clt_literal **literal) {
    int64_t elements = clt_shape_elements(shape);
    clt_literal *l;
    if (!is_literal_type(type)) return clt_fail(CLT_E_UNSUPPORTED, "values of type %s are not computed", clt_onnx_type_name(type));
    if (!is_small(shape))
        return clt_fail(CLT_E_RANGE, "more than %d values, which are not computed while a graph is built", CLT_ONNX_MOST_LITERAL);
    CLT_TRY(clt_arena_take(arena, 1, sizeof *l, &l));
    *l = (clt_literal){.type = type, .shape = *shape, .elements = elements};
    if (type == CLT_ONNX_FLOAT) CLT_TRY(clt_arena_take(arena, (size_t)elements, sizeof *l->floats, &l->floats));
    else CLT_TRY(clt_arena_take(arena, (size_t)elements, sizeof *l->integers, &l->integers));
    *literal = l;
    return CLT_OK;
}

static clt_shape list_shape(int64_t n) {
    clt_shape shape = {.rank = n >= 0};
    shape.dims[0] = n;
    return shape;
}

clt_status clt_literal_integers(clt_arena *arena, const int64_t *values, int64_t n, clt_literal **literal) {
    clt_shape shape = list_shape(n);
    CLT_TRY(clt_literal_new(arena, CLT_ONNX_INT64, &shape, literal));
    if ((*literal)->elements) memcpy((*literal)->integers, values, (size_t)(*literal)->elements * sizeof *values);
    return CLT_OK;
}

clt_status clt_literal_floats(clt_arena *arena, const float *values, int64_t n, clt_literal **literal) {
    clt_shape shape = list_shape(n);
    CLT_TRY(clt_literal_new(arena, CLT_ONNX_FLOAT, &shape, literal));
    if ((*literal)->elements) memcpy((*literal)->floats, values, (size_t)(*literal)->elements * sizeof *values);
    return CLT_OK;
}

bool clt_literal_takes(const clt_onnx_tensor *tensor) {
    return is_literal_type(clt_onnx_computed_type(tensor->type)) && tensor->rank <= CLT_MAX_RANK && tensor->elements <= CLT_ONNX_MOST_LITERAL;
}

clt_status clt_literal_of_tensor(clt_arena *arena, clt_onnx_file *file, const clt_onnx_tensor *tensor, clt_literal **literal) {
    clt_shape shape = {(int)tensor->rank, {0}};
    char shown[CLT_SHOWN_TEXT];
    unsigned char *bytes;
    size_t element = clt_onnx_type_bytes(tensor->type);
    if (tensor->rank > CLT_MAX_RANK)
        return clt_fail(CLT_E_UNSUPPORTED, "tensor \"%s\": %zu dimensions, more than %d", clt_show(tensor->name, shown), tensor->rank, CLT_MAX_RANK);
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = tensor->dims[i];
    CLT_TRY(clt_literal_new(arena, clt_onnx_computed_type(tensor->type), &shape, literal));
    clt_literal *l = *literal;
    CLT_TRY(clt_arena_take(arena, (size_t)l->elements, element, &bytes));
    CLT_TRY(clt_onnx_data_read(file, tensor, 0, l->elements, bytes));
    for (int64_t i = 0; i < l->elements; i++) {
        uint64_t bits = clt_bytes_get(bytes + (size_t)i * element, (int)element);
        uint32_t low = (uint32_t)bits;
        double wide;
        switch (tensor->type) {
        case CLT_ONNX_FLOAT: memcpy(&l->floats[i], &low, sizeof low); break;
        case CLT_ONNX_DOUBLE: memcpy(&wide, &bits, sizeof bits), l->floats[i] = (float)wide; break;
        case CLT_ONNX_INT32: l->integers[i] = (int32_t)low; break;
        case CLT_ONNX_BOOL: l->integers[i] = bits != 0; break;
        default: l->integers[i] = (int64_t)bits; break;
        }
    }
    return CLT_OK;
}

bool clt_literal_equal(const clt_literal *a, const clt_literal *b) {
    if (a->type != b->type || a->shape.rank != b->shape.rank) return false;
    for (int i = 0; i < a->shape.rank; i++)
        if (a->shape.dims[i] != b->shape.dims[i]) return false;
    size_t bytes = (size_t)a->elements * (a->type == CLT_ONNX_FLOAT ? sizeof *a->floats : sizeof *a->integers);
    return bytes == 0 || !memcmp(a->type == CLT_ONNX_FLOAT ? (void *)a->floats : (void *)a->integers, b->type == CLT_ONNX_FLOAT ? (void *)b->floats : (void *)b->integers, bytes);
}
