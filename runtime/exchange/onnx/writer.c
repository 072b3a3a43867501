#include "runtime/exchange/onnx/writer.h"

#include <stdio.h>
#include <string.h>

void clt_onnx_writer_fail(clt_onnx_writer *w, clt_status status) {
    if (w->status == CLT_OK) w->status = status;
}

const char *clt_onnx_name_new(clt_onnx_writer *w, const char *word) {
    char *name;
    size_t bytes = strlen(clt_text_data(&w->prefix)) + strlen(word) + 24;
    clt_status status = clt_arena_take(&w->arena, bytes, 1, &name);
    if (status < 0) {
        clt_onnx_writer_fail(w, status);
        return "";
    }
    snprintf(name, bytes, "%s%s_%lld", clt_text_data(&w->prefix), word, (long long)w->n_values++);
    return name;
}

/* ---- attributes: AttributeProto's name is field 1, its type field 20 ---- */

static void put_attribute(clt_onnx_writer *w, const char *name, clt_onnx_attribute_type type, clt_text *value) {
    clt_wire_put_text(value, 1, name);
    clt_wire_put_int(value, 20, type);
    clt_wire_put_message(&w->attributes, 5, value);
}

void clt_onnx_put_int(clt_onnx_writer *w, const char *name, int64_t value) {
    clt_text field = {0};
    clt_wire_put_int(&field, 3, value);
    put_attribute(w, name, CLT_ONNX_A_INT, &field);
}

void clt_onnx_put_float(clt_onnx_writer *w, const char *name, float value) {
    clt_text field = {0};
    clt_wire_put_float(&field, 2, value);
    put_attribute(w, name, CLT_ONNX_A_FLOAT, &field);
}

void clt_onnx_put_text(clt_onnx_writer *w, const char *name, const char *value) {
    clt_text field = {0};
    clt_wire_put_text(&field, 4, value);
    put_attribute(w, name, CLT_ONNX_A_STRING, &field);
}

void clt_onnx_put_ints(clt_onnx_writer *w, const char *name, const int64_t *values, int n) {
    clt_text field = {0};
    clt_wire_put_ints(&field, 8, values, (size_t)n);
    put_attribute(w, name, CLT_ONNX_A_INTS, &field);
}

/* ---- nodes: NodeProto's inputs are field 1, results 2, name 3, op 4, attributes 5 ---- */

const char *clt_onnx_put(clt_onnx_writer *w, const char *op, const char *y, const char *const *inputs, int n) {
    clt_text node = {0};
    if (!y) y = clt_onnx_name_new(w, op);
    for (int i = 0; i < n; i++) clt_wire_put_text(&node, 1, inputs[i]);
    clt_wire_put_text(&node, 2, y);
    clt_wire_put_text(&node, 3, y);
    clt_wire_put_text(&node, 4, op);
    if (w->attributes.length) clt_text_add_bytes(&node, w->attributes.data, w->attributes.length);
    if (w->attributes.status < 0) clt_onnx_writer_fail(w, w->attributes.status);
    w->attributes.length = 0;
    clt_wire_put_message(&w->nodes, 1, &node);
    if (w->nodes.status < 0) clt_onnx_writer_fail(w, w->nodes.status);
    return y;
}

/* ---- constants and sizes ---- */

const char *clt_onnx_put_scalar(clt_onnx_writer *w, float value) {
    clt_onnx_put_float(w, "value_float", value);
    return clt_onnx_put(w, "Constant", NULL, NULL, 0);
}

const char *clt_onnx_put_list(clt_onnx_writer *w, const int64_t *values, int n) {
    clt_onnx_put_ints(w, "value_ints", values, n);
    return clt_onnx_put(w, "Constant", NULL, NULL, 0);
}

const char *clt_onnx_put_whole(clt_onnx_writer *w, int64_t value) {
    return clt_onnx_put_list(w, &value, 1);
}

/* A dimension of a value, i64 [1]. */
static const char *put_dimension_of(clt_onnx_writer *w, const char *value, int d) {
    clt_onnx_put_int(w, "start", d);
    clt_onnx_put_int(w, "end", d + 1);
    return CLT_ONNX_PUT(w, "Shape", NULL, value);
}

/* The batch or the length, i64 [1]. */
static const char *size_of(clt_onnx_writer *w, int which) {
    const clt_tensor *input = w->sized[which];
    if (w->sizes[which]) return w->sizes[which];
    if (!input) {
        clt_onnx_writer_fail(w, clt_fail(CLT_E_UNSUPPORTED, "the %s is part of a shape, but no input of the network tells it", which == CLT_SIZE_BATCH ? "batch" : "length"));
        return "";
    }
    return w->sizes[which] = put_dimension_of(w, input->name, which == CLT_SIZE_BATCH ? 0 : input->length_axis);
}

/* One dimension, i64 [1]. */
static const char *put_dimension(clt_onnx_writer *w, int64_t dim, const char *x) {
    int k;
    if (clt_dim_is_of(dim, &k)) return put_dimension_of(w, x, k);
    clt_multiple m;
    if (!clt_dim_multiple(dim, &m)) return clt_onnx_put_whole(w, dim);
    const char *size = size_of(w, m.of_length ? CLT_SIZE_LENGTH : CLT_SIZE_BATCH);
    if (m.times > 1) size = CLT_ONNX_PUT(w, "Mul", NULL, size, clt_onnx_put_whole(w, m.times));
    if (m.more) size = CLT_ONNX_PUT(w, "Add", NULL, size, clt_onnx_put_whole(w, m.more));
    return m.of_batch && m.of_length ? CLT_ONNX_PUT(w, "Mul", NULL, size, size_of(w, CLT_SIZE_BATCH)) : size;
}

const char *clt_onnx_put_shape(clt_onnx_writer *w, const clt_shape *shape, const char *x) {
    const char *dims[CLT_MAX_RANK];
    bool known = true;
    for (int d = 0; d < shape->rank; d++) known &= shape->dims[d] >= -1;
    if (known) return clt_onnx_put_list(w, shape->dims, shape->rank);
    for (int d = 0; d < shape->rank; d++) dims[d] = put_dimension(w, shape->dims[d], x);
    if (shape->rank == 1) return dims[0];
    clt_onnx_put_int(w, "axis", 0);
    return clt_onnx_put(w, "Concat", NULL, dims, shape->rank);
}

const char *clt_onnx_put_cast(clt_onnx_writer *w, const char *y, const char *x, clt_onnx_type type) {
    clt_onnx_put_int(w, "to", type);
    return CLT_ONNX_PUT(w, "Cast", y, x);
}

clt_onnx_type clt_onnx_type_of_dtype(clt_dtype dtype) {
    switch (dtype) {
    case CLT_F32: return CLT_ONNX_FLOAT;
    case CLT_I32: return CLT_ONNX_INT32;
    case CLT_U8: return CLT_ONNX_UINT8;
    default: return (clt_onnx_type)0;
    }
}
