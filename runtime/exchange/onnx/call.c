/* Values and attributes as the rules of ops see them. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/name.h"
#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* Variables are found by name, one by one. */
enum { MOST_VARIABLES = 16384 };

/* ---- faces of a value ---- */

bool clt_onnx_is_weight(const clt_onnx_value *value) {
    return value->initializer && value->initializer->type == CLT_ONNX_FLOAT && value->initializer->rank > 0;
}

void clt_onnx_set_literal(clt_onnx_value *value, clt_literal *literal) {
    for (int s = 0; s < CLT_ONNX_SIZES; s++) value->literals[s] = literal;
    value->type = literal->type;
}

clt_status clt_onnx_load_literal(clt_onnx *o, clt_onnx_value *value) {
    clt_literal *literal;
    if (value->literals[0] || !value->initializer || !clt_literal_takes(value->initializer)) return CLT_OK;
    CLT_TRY(clt_literal_of_tensor(&o->build, &o->file, value->initializer, &literal));
    clt_onnx_set_literal(value, literal);
    return CLT_OK;
}

static clt_status check_there(const clt_onnx_call *c, size_t i) {
    return clt_onnx_has(c, i) ? CLT_OK : clt_fail(CLT_E_FORMAT, "input %zu is missing", i);
}

bool clt_onnx_has(const clt_onnx_call *c, size_t i) {
    return i < c->node->n_inputs && c->in[i] >= 0;
}

int64_t clt_onnx_type_of(const clt_onnx_call *c, size_t i) {
    const clt_onnx_value *value = &c->onnx->values[c->in[i]];
    return value->type ? value->type : value->initializer ? value->initializer->type : 0;
}

/* Names that variables must not have are told apart. */
static const char *variable_name(const char *name, char *text, size_t size) {
    if (clt_variable_name_check(name) == CLT_OK) return name;
    snprintf(text, size, "onnx.%s", name);
    return text;
}

static clt_status read_weight(void *user, int64_t first, int64_t count, float *values) {
    const clt_onnx_value *value = user;
    return clt_onnx_data_read(value->file, value->initializer, first, count, values);
}

static clt_status make_weight(clt_onnx_call *c, clt_onnx_value *value, bool buffer) {
    const clt_onnx_tensor *t = value->initializer;
    clt_shape shape = {.rank = (int)t->rank};
    clt_init init = {.kind = CLT_INIT_READ, .read = read_weight, .user = value};
    char name[CLT_SHOWN_TEXT];
    if (t->rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "weight \"%s\" has more than %d dimensions", clt_show(value->name, name), CLT_MAX_RANK);
    if (c->graph->n_variables >= MOST_VARIABLES) return clt_fail(CLT_E_RANGE, "more than %d weights", MOST_VARIABLES);
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = t->dims[d];
    const char *called = variable_name(value->name, name, sizeof name);
    value->tensor = buffer ? clt_buffer(c->graph, called, shape, init) : clt_parameter(c->graph, called, shape, init);
    value->type = CLT_ONNX_FLOAT;
    return clt_graph_status(c->graph);
}

/* A number at all sizes, as a dimension of an extent. */
static int64_t extent_of(const clt_graph *graph, const int64_t at[CLT_ONNX_SIZES], int64_t open) {
    bool follows[CLT_SIZES] = {0}, plainly[CLT_SIZES] = {true, true};
    for (int s = 1; s < CLT_ONNX_SIZES; s++) {
        int which = (s - 1) / CLT_OTHERS;
        int64_t size = clt_graph_other_size((clt_graph *)(uintptr_t)graph, which, (s - 1) % CLT_OTHERS);
        follows[which] |= at[s] != at[0];
        plainly[which] &= at[s] - at[0] == size - (which == CLT_SIZE_BATCH ? graph->batch : graph->length);
    }
    if (!follows[CLT_SIZE_BATCH] && !follows[CLT_SIZE_LENGTH]) return at[0];
    if (!follows[CLT_SIZE_LENGTH] && plainly[CLT_SIZE_BATCH] && at[0] == graph->batch) return CLT_BATCH;
    if (!follows[CLT_SIZE_BATCH] && plainly[CLT_SIZE_LENGTH]) return CLT_LENGTH + at[0] - graph->length;
    return open;
}

/* As a device has it: floats, i32, and booleans as u8. */
clt_status clt_onnx_constant(clt_onnx_call *c, const clt_literal *l, clt_tensor **tensor) {
    char name[64];
    void *data;
    if (l->elements == 0) return clt_fail(CLT_E_UNSUPPORTED, "a tensor without elements");
    if (c->graph->n_variables >= MOST_VARIABLES) return clt_fail(CLT_E_RANGE, "more than %d constants", MOST_VARIABLES);
    clt_dtype dtype = l->type == CLT_ONNX_FLOAT ? CLT_F32 : l->type == CLT_ONNX_BOOL ? CLT_U8 : CLT_I32;
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)l->elements, sizeof(float), &data));
    if (dtype == CLT_F32) memcpy(data, l->floats, (size_t)l->elements * sizeof(float));
    else if (dtype == CLT_I32) CLT_TRY(clt_narrow_i64(l->integers, data, l->elements, "a constant"));
    else
        for (int64_t i = 0; i < l->elements; i++) ((unsigned char *)data)[i] = l->integers[i] != 0;
    snprintf(name, sizeof name, "onnx.constant.%zu", c->graph->n_variables);
    *tensor = clt_constant(c->graph, name, &(clt_array){dtype, l->shape, data});
    return clt_graph_status(c->graph);
}

/* A literal with one place along each of some axes, along which all places must be the same; *one is NULL where they are not. */
static clt_status one_of_each(clt_arena *arena, const clt_literal *l, const bool along[CLT_MAX_RANK], clt_literal **one) {
    clt_shape shape = l->shape;
    int64_t strides[CLT_MAX_RANK];
    bool *begun;
    for (int d = 0; d < shape.rank; d++)
        if (along[d]) shape.dims[d] = 1;
    CLT_TRY(clt_literal_new(arena, l->type, &shape, one));
    CLT_TRY(clt_arena_take(arena, (size_t)(*one)->elements, sizeof *begun, &begun));
    clt_fold_strides(&shape, &l->shape, strides);
    for (int64_t e = 0; e < l->elements; e++) {
        int64_t at = clt_fold_place(&l->shape, e, strides);
        bool same = l->type == CLT_ONNX_FLOAT ? (*one)->floats[at] == l->floats[e] : (*one)->integers[at] == l->integers[e];
        if (begun[at] && !same) return *one = NULL, CLT_OK;
        clt_fold_copy(*one, at, l, e);
        begun[at] = true;
    }
    return CLT_OK;
}

/* What is the same for all samples, and at all places, is a constant that is stretched to as many as there are. */
static clt_status make_following(clt_onnx_call *c, clt_onnx_value *value) {
    clt_shape extent = value->literals[0]->shape;
    bool along[CLT_MAX_RANK] = {0};
    clt_literal *first = NULL, *one;
    clt_tensor *constant;
    for (int d = 0; d < extent.rank; d++) {
        int64_t at[CLT_ONNX_SIZES];
        for (int s = 0; s < CLT_ONNX_SIZES; s++) {
            if (value->literals[s]->shape.rank != extent.rank) return clt_fail(CLT_E_UNSUPPORTED, "the rank of a tensor follows the batch");
            at[s] = value->literals[s]->shape.dims[d];
            along[d] |= at[s] != at[0];
        }
        extent.dims[d] = extent_of(c->graph, at, INT64_MIN);
        if (extent.dims[d] == INT64_MIN) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch in a way that is not known");
    }
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        CLT_TRY(one_of_each(&c->onnx->build, value->literals[s], along, &one));
        if (!one || (first && !clt_literal_equal(first, one)))
            return clt_fail(CLT_E_UNSUPPORTED, "values that differ with the batch or the length, and along it, are used as data");
        if (!first) first = one;
    }
    CLT_TRY(clt_onnx_constant(c, first, &constant));
    value->tensor = clt_expand(constant, extent);
    return clt_graph_status(c->graph);
}

static clt_status make_constant(clt_onnx_call *c, clt_onnx_value *value) {
    bool same = true;
    value->type = value->literals[0]->type;
    for (int s = 1; s < CLT_ONNX_SIZES; s++) same &= value->literals[s] == value->literals[0];
    return same ? clt_onnx_constant(c, value->literals[0], &value->tensor) : make_following(c, value);
}

clt_status clt_onnx_any(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(check_there(c, i));
    clt_onnx_value *value = &c->onnx->values[c->in[i]];
    if (!value->tensor && clt_onnx_is_weight(value)) CLT_TRY(make_weight(c, value, false));
    if (!value->tensor && value->initializer) CLT_TRY(clt_onnx_load_literal(c->onnx, value));
    if (!value->tensor && value->literals[0]) CLT_TRY(make_constant(c, value));
    if (!value->tensor && value->initializer)
        return clt_fail(CLT_E_UNSUPPORTED, "constants of type %s with %lld elements", clt_onnx_type_name(value->initializer->type), (long long)value->initializer->elements);
    if (!value->tensor) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is an output that is not computed here", i);
    *tensor = value->tensor;
    return CLT_OK;
}

clt_status clt_onnx_float(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    int64_t type = clt_onnx_type_of(c, i);
    if (type != CLT_ONNX_FLOAT) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is of type %s", i, clt_onnx_type_name(type));
    return CLT_OK;
}

clt_status clt_onnx_number(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    int64_t type = clt_onnx_type_of(c, i);
    if (type != CLT_ONNX_FLOAT && type != CLT_ONNX_BOOL) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is of type %s", i, clt_onnx_type_name(type));
    if ((*tensor)->dtype != CLT_F32) *tensor = clt_cast(*tensor, CLT_F32);
    return CLT_OK;
}

clt_status clt_onnx_statistics(clt_onnx_call *c, size_t i, clt_tensor **tensor, bool *buffer) {
    CLT_TRY(check_there(c, i));
    clt_onnx_value *value = &c->onnx->values[c->in[i]];
    if (!value->tensor && clt_onnx_is_weight(value)) CLT_TRY(make_weight(c, value, true));
    CLT_TRY(clt_onnx_float(c, i, tensor));
    *buffer = (*tensor)->variable && (*tensor)->variable->is_buffer;
    return CLT_OK;
}

/* ---- values that must be known ---- */

static clt_status known_value(clt_onnx_call *c, size_t i, clt_onnx_value **value) {
    *value = &c->onnx->values[c->in[i]];
    CLT_TRY(clt_onnx_load_literal(c->onnx, *value));
    if (!(*value)->literals[0]) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is computed from data, and must be known before", i);
    return CLT_OK;
}

clt_status clt_onnx_known(clt_onnx_call *c, size_t i, const clt_literal **literal) {
    clt_onnx_value *value;
    *literal = NULL;
    if (!clt_onnx_has(c, i)) return CLT_OK;
    CLT_TRY(known_value(c, i, &value));
    for (int s = 1; s < CLT_ONNX_SIZES; s++)
        if (value->literals[s] != value->literals[0]) return clt_fail(CLT_E_UNSUPPORTED, "input %zu follows the batch or the length", i);
    *literal = value->literals[0];
    return CLT_OK;
}

clt_status clt_onnx_extent(clt_onnx_call *c, size_t i, int64_t open, clt_shape *extent) {
    clt_onnx_value *value;
    CLT_TRY(check_there(c, i));
    CLT_TRY(known_value(c, i, &value));
    const clt_literal *l = value->literals[0];
    if (l->type == CLT_ONNX_FLOAT || l->shape.rank > 1) return clt_fail(CLT_E_FORMAT, "input %zu is not a list of integers", i);
    if (l->elements > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%lld dimensions, more than %d", (long long)l->elements, CLT_MAX_RANK);
    for (int s = 1; s < CLT_ONNX_SIZES; s++)
        if (!clt_shape_equal(&value->literals[s]->shape, &l->shape)) return clt_fail(CLT_E_UNSUPPORTED, "the length of input %zu follows the batch", i);
    extent->rank = (int)l->elements;
    for (int d = 0; d < extent->rank; d++) {
        int64_t at[CLT_ONNX_SIZES];
        for (int s = 0; s < CLT_ONNX_SIZES; s++) at[s] = value->literals[s]->integers[d];
        extent->dims[d] = extent_of(c->graph, at, open);
    }
    return CLT_OK;
}

bool clt_onnx_is_zero(clt_onnx_call *c, size_t i) {
    clt_onnx_value *v = clt_onnx_has(c, i) ? &c->onnx->values[c->in[i]] : NULL;
    if (!v || clt_onnx_is_weight(v) || clt_onnx_load_literal(c->onnx, v) < 0 || !v->literals[0] || v->type != CLT_ONNX_FLOAT) return false;
    for (int s = 0; s < CLT_ONNX_SIZES; s++)
        for (int64_t k = 0; k < v->literals[s]->elements; k++)
            if (v->literals[s]->floats[k] != 0) return false;
    return true;
}

bool clt_onnx_is_scalar(clt_onnx_call *c, size_t i, float *value) {
    clt_onnx_value *v = clt_onnx_has(c, i) ? &c->onnx->values[c->in[i]] : NULL;
    if (!v || clt_onnx_is_weight(v) || clt_onnx_load_literal(c->onnx, v) < 0 || !v->literals[0]) return false;
    for (int s = 1; s < CLT_ONNX_SIZES; s++)
        if (v->literals[s] != v->literals[0]) return false;
    const clt_literal *l = v->literals[0];
    if (l->type != CLT_ONNX_FLOAT || l->shape.rank > 0) return false;
    *value = l->floats[0];
    return true;
}

clt_status clt_onnx_known_float(clt_onnx_call *c, size_t i, float otherwise, float *value) {
    const clt_literal *l;
    CLT_TRY(clt_onnx_known(c, i, &l));
    *value = otherwise;
    if (!l) return CLT_OK;
    if (l->elements != 1 || l->type != CLT_ONNX_FLOAT) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is not one float", i);
    *value = l->floats[0];
    return CLT_OK;
}

/* ---- attributes ---- */

clt_status clt_onnx_axis(const clt_onnx_call *c, int64_t axis, int rank, int *to) {
    (void)c;
    return clt_fold_axis(axis, rank, to);
}

clt_status clt_onnx_axes(clt_onnx_call *c, const char *name, size_t i, int rank, int axes[CLT_MAX_RANK], int *n) {
    const clt_literal *list = NULL, *in[CLT_MAX_RANK] = {0};
    if (!clt_onnx_attribute_of(c->node, name)) CLT_TRY(clt_onnx_known(c, i, &list));
    if (i < CLT_MAX_RANK) in[i] = list;
    clt_onnx_folding f = {.arena = &c->onnx->build, .node = c->node, .opset = c->opset, .in = (clt_literal *const *)in};
    return clt_fold_axes(&f, name, i, rank, axes, n);
}

int64_t clt_onnx_int(const clt_onnx_call *c, const char *name, int64_t otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name);
    return a ? a->i : otherwise;
}

float clt_onnx_float_attribute(const clt_onnx_call *c, const char *name, float otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name);
    return a ? a->f : otherwise;
}

const char *clt_onnx_text(const clt_onnx_call *c, const char *name, const char *otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name);
    return a ? a->s : otherwise;
}
