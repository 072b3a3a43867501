/* Values and attributes as the rules of ops see them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/name.h"
#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* Variables are found by name, one by one. */
enum { MOST_VARIABLES = 16384 };

/* ---- faces of a value ---- */

bool clt_onnx_is_weight(const clt_onnx_value *value) {
    const clt_onnx_tensor *t = value->initializer;
    return t && clt_onnx_computed_type(t->type) == CLT_ONNX_FLOAT && t->rank > 0 && strcmp(value->kind, "constant") != 0;
}

bool clt_onnx_is_same(const clt_onnx_value *value) {
    bool same = true;
    for (int s = 1; s < CLT_ONNX_SIZES; s++) same &= !value->literals[s] || value->literals[s] == value->literals[0];
    return same;
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

bool clt_onnx_is_wanted(const clt_onnx_call *c, size_t i) {
    return i < c->node->n_outputs && *c->node->outputs[i] && c->onnx->needed_outputs[c->out[i]];
}

int64_t clt_onnx_type_of(const clt_onnx_call *c, size_t i) {
    const clt_onnx_value *value = &c->onnx->values[c->in[i]];
    return clt_onnx_computed_type(value->type ? value->type : value->initializer ? value->initializer->type : 0);
}

/* Names that variables must not have are told apart. */
static const char *variable_name(const char *name, char *text, size_t size) {
    if (clt_variable_name_check(name) == CLT_OK) return name;
    snprintf(text, size, "onnx.%s", name);
    return text;
}

static clt_status read_doubles(const clt_onnx_value *value, int64_t first, int64_t count, float *values) {
    enum { PIECE = 512 };
    double piece[PIECE];
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = CLT_MIN(count - at, PIECE);
        CLT_TRY(clt_onnx_data_read(value->file, value->initializer, first + at, n, piece));
        for (int64_t i = 0; i < n; i++) values[at + i] = (float)piece[i];
    }
    return CLT_OK;
}

static clt_status read_weight(void *user, int64_t first, int64_t count, float *values) {
    const clt_onnx_value *value = user;
    return value->initializer->type == CLT_ONNX_DOUBLE ? read_doubles(value, first, count, values) : clt_onnx_data_read(value->file, value->initializer, first, count, values);
}

static clt_status make_weight(clt_onnx_call *c, clt_onnx_value *value, bool buffer) {
    const clt_onnx_tensor *t = value->initializer;
    clt_shape shape = {.rank = (int)t->rank};
    clt_init init = {.kind = CLT_INIT_READ, .read = read_weight, .user = value};
    char name[CLT_SHOWN_TEXT];
    if (t->external) CLT_TRY(clt_onnx_data_check(&c->onnx->file, t)); /* else whoever reads them tells, when the graph is long built */
    if (t->rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "weight \"%s\" has more than %d dimensions", clt_show(value->name, name), CLT_MAX_RANK);
    if (c->graph->n_variables >= MOST_VARIABLES) return clt_fail(CLT_E_RANGE, "more than %d weights", MOST_VARIABLES);
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = t->dims[d];
    const char *called = variable_name(value->name, name, sizeof name);
    value->tensor = buffer || !strcmp(value->kind, "buffer") ? clt_buffer(c->graph, called, shape, init) : clt_parameter(c->graph, called, shape, init);
    value->type = CLT_ONNX_FLOAT;
    return clt_graph_status(c->graph);
}

/* What is at[s] at size s, where it is there; *kind: what it follows. */
static int64_t follow(clt_graph *graph, const int64_t at[CLT_ONNX_SIZES], const bool there[CLT_ONNX_SIZES], clt_onnx_kind *kind) {
    clt_size_point points[CLT_ONNX_SIZES] = {{graph->batch, graph->length, at[0]}};
    clt_multiple m;
    int n = 1;
    for (int s = 1; s < CLT_ONNX_SIZES; s++)
        if (there[s] && clt_graph_trial(graph, s - 1, &points[n].batch, &points[n].length)) points[n++].dim = at[s];
    *kind = CLT_ONNX_OPEN;
    if (!clt_multiple_through(points, n, &m)) return -1;
    *kind = m.of_batch || m.of_length ? CLT_ONNX_FOLLOWS : CLT_ONNX_NUMBER;
    return clt_multiple_dim(m);
}

clt_status clt_onnx_constant_array(clt_onnx_call *c, const clt_array *values, clt_tensor **tensor) {
    char name[64];
    if (c->graph->n_variables >= MOST_VARIABLES) return clt_fail(CLT_E_RANGE, "more than %d constants", MOST_VARIABLES);
    for (size_t n = c->graph->n_variables;; n++) { /* a weight may be called so */
        snprintf(name, sizeof name, "onnx.constant.%zu", n);
        if (!clt_graph_find(c->graph, name)) break;
    }
    *tensor = clt_constant(c->graph, name, values);
    return clt_graph_status(c->graph);
}

clt_status clt_onnx_constant_stored(clt_onnx_call *c, const clt_onnx_tensor *stored, clt_tensor **tensor) {
    clt_array array = {.shape = {0}}, narrow;
    int32_t *integers = NULL;
    clt_status status = clt_onnx_array_read(&array, &c->onnx->file, stored);
    if (status == CLT_OK && array.dtype == CLT_I64) {
        integers = clt_calloc((size_t)stored->elements, sizeof *integers);
        status = integers ? clt_narrow_i64(array.data, integers, stored->elements, "a constant") : clt_fail_memory((size_t)stored->elements * sizeof *integers);
    }
    narrow = integers ? (clt_array){CLT_I32, array.shape, integers} : array;
    if (status == CLT_OK) status = clt_onnx_constant_array(c, &narrow, tensor);
    clt_free(integers);
    clt_onnx_tensor_free(&array);
    return status;
}

/* As a device has it: floats, i32, and u8, as which it has booleans. */
clt_status clt_onnx_constant(clt_onnx_call *c, const clt_literal *l, clt_tensor **tensor) {
    void *data;
    if (l->elements == 0) return clt_fail(CLT_E_UNSUPPORTED, "a tensor without elements");
    clt_dtype dtype = l->type == CLT_ONNX_FLOAT ? CLT_F32 : l->type == CLT_ONNX_BOOL || l->type == CLT_ONNX_UINT8 ? CLT_U8 : CLT_I32;
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)l->elements, sizeof(float), &data));
    if (dtype == CLT_F32) memcpy(data, l->floats, (size_t)l->elements * sizeof(float));
    else if (dtype == CLT_I32) CLT_TRY(clt_narrow_i64(l->integers, data, l->elements, "a constant"));
    else
        for (int64_t i = 0; i < l->elements; i++) ((unsigned char *)data)[i] = (unsigned char)l->integers[i];
    return clt_onnx_constant_array(c, &(clt_array){dtype, l->shape, data}, tensor);
}

/* Whether all places along an axis are the same. */
static bool is_same_along(const clt_literal *l, int axis) {
    int64_t strides[CLT_MAX_RANK];
    clt_shape first = l->shape;
    first.dims[axis] = 1;
    clt_fold_strides(&first, &l->shape, strides);
    int64_t own[CLT_MAX_RANK];
    clt_shape_strides(&l->shape, own);
    for (int d = 0; d < l->shape.rank; d++)
        if (strides[d]) strides[d] = own[d]; /* places in l, and not in what is left of it */
    for (int64_t e = 0; e < l->elements; e++) {
        int64_t at = clt_fold_place(&l->shape, e, strides);
        if (l->type == CLT_ONNX_FLOAT ? l->floats[at] != l->floats[e] : l->integers[at] != l->integers[e]) return false;
    }
    return true;
}

/* The part at the beginning of a literal. */
static clt_status beginning_of(clt_arena *arena, const clt_literal *l, const clt_shape *shape, clt_literal **part) {
    int64_t own[CLT_MAX_RANK];
    clt_shape_strides(&l->shape, own);
    CLT_TRY(clt_literal_new(arena, l->type, shape, part));
    for (int64_t e = 0; e < (*part)->elements; e++) clt_fold_copy(*part, e, l, clt_fold_place(shape, e, own));
    return CLT_OK;
}

clt_status clt_onnx_extent(const clt_onnx_call *c, const clt_onnx_value *value, clt_shape *extent) {
    *extent = value->literals[0]->shape;
    for (int d = 0; d < extent->rank; d++) {
        int64_t at[CLT_ONNX_SIZES] = {0};
        bool there[CLT_ONNX_SIZES] = {0};
        clt_onnx_kind ignored;
        for (int s = 0; s < CLT_ONNX_SIZES; s++) {
            there[s] = value->literals[s] != NULL;
            if (!there[s]) continue;
            if (value->literals[s]->shape.rank != extent->rank) return clt_fail(CLT_E_UNSUPPORTED, "the rank of a tensor follows the batch");
            at[s] = value->literals[s]->shape.dims[d];
        }
        extent->dims[d] = follow(c->graph, at, there, &ignored);
    }
    return CLT_OK;
}

/* The dimensions of a value at all sizes as an extent; *rest: what is kept of it, one place of those along which all are the same. */
static clt_status read_following(clt_onnx_call *c, const clt_onnx_value *value, clt_shape *extent, clt_shape *rest) {
    const clt_literal *base = value->literals[0];
    CLT_TRY(clt_onnx_extent(c, value, extent));
    *rest = base->shape;
    for (int d = 0; d < extent->rank; d++) {
        if (extent->dims[d] == -1) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch in a way that is not known");
        if (extent->dims[d] != rest->dims[d] && is_same_along(base, d)) rest->dims[d] = 1;
        else if (extent->dims[d] != rest->dims[d] && !clt_dim_is_length(extent->dims[d])) return clt_fail(CLT_E_UNSUPPORTED, "values that differ with the batch, and along it, are used as data");
    }
    return CLT_OK;
}

/* Of shorter sequences the beginning; and what is the same for all samples is stretched to as many as there are. */
static clt_status make_following(clt_onnx_call *c, clt_onnx_value *value) {
    clt_shape extent, rest;
    clt_literal *kept, *part;
    clt_tensor *tensor;
    CLT_TRY(read_following(c, value, &extent, &rest));
    CLT_TRY(beginning_of(&c->onnx->build, value->literals[0], &rest, &kept));
    for (int s = 1; s < CLT_ONNX_SIZES; s++) {
        const clt_literal *other = value->literals[s];
        if (!other) continue;
        clt_shape shape = other->shape, stretched;
        for (int d = 0; d < shape.rank; d++) {
            if (rest.dims[d] == 1 && extent.dims[d] < 0) shape.dims[d] = 1;
            if (shape.dims[d] > rest.dims[d]) return clt_fail(CLT_E_UNSUPPORTED, "values that grow with the batch are used as data");
        }
        CLT_TRY(beginning_of(&c->onnx->build, kept, &shape, &part));
        int64_t strides[CLT_MAX_RANK];
        stretched = other->shape;
        clt_fold_strides(&shape, &stretched, strides);
        for (int64_t e = 0; e < other->elements; e++) {
            int64_t at = clt_fold_place(&stretched, e, strides);
            if (other->type == CLT_ONNX_FLOAT ? other->floats[e] != part->floats[at] : other->integers[e] != part->integers[at])
                return clt_fail(CLT_E_UNSUPPORTED, "values that differ with the batch or the length are used as data");
        }
    }
    CLT_TRY(clt_onnx_constant(c, kept, &tensor));
    for (int d = 0; d < extent.rank; d++)
        if (clt_dim_is_length(extent.dims[d]) && rest.dims[d] != 1) tensor = clt_slice(tensor, d, 0, extent.dims[d], 1);
    value->tensor = clt_expand(tensor, extent);
    return clt_graph_status(c->graph);
}

/* The axis along which integers grow by a step a sample, and *step; -1: they do not. */
static int counts_along(const clt_onnx_value *value, const clt_shape *extent, int64_t *step) {
    const clt_literal *more = value->literals[1]; /* of two samples or more */
    int64_t strides[CLT_MAX_RANK];
    if (more->type != CLT_ONNX_INT64 && more->type != CLT_ONNX_INT32) return -1;
    clt_shape_strides(&more->shape, strides);
    for (int d = 0; d < extent->rank && more->elements > 0; d++) {
        if (extent->dims[d] != CLT_BATCH) continue;
        if (!__builtin_sub_overflow(more->integers[strides[d]], more->integers[0], step) && *step) return d;
    }
    return -1;
}

/* The number of a sample, as positions in the batch are told: what is left without step times it, from 1 up, is the same for all. */
static clt_status make_counting(clt_onnx_call *c, clt_onnx_value *value, const clt_shape *extent, int axis, int64_t step) {
    clt_onnx_value rest = {.name = value->name, .type = value->type};
    clt_shape count = {.rank = extent->rank};
    int32_t narrow;
    clt_tensor *steps;
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        const clt_literal *l = value->literals[s];
        int64_t along[CLT_MAX_RANK] = {0};
        if (!l) continue;
        along[axis] = 1;
        CLT_TRY(clt_literal_new(&c->onnx->build, l->type, &l->shape, &rest.literals[s]));
        for (int64_t e = 0; e < l->elements; e++) {
            int64_t counted;
            if (__builtin_mul_overflow(clt_fold_place(&l->shape, e, along) + 1, step, &counted) || __builtin_sub_overflow(l->integers[e], counted, &rest.literals[s]->integers[e]))
                return clt_fail(CLT_E_RANGE, "the number of a sample times %lld", (long long)step);
        }
    }
    CLT_TRY(make_following(c, &rest));
    CLT_TRY(clt_narrow_i64(&step, &narrow, 1, "a step"));
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, {0}, &narrow}, &steps));
    for (int d = 0; d < count.rank; d++) count.dims[d] = d == axis ? CLT_BATCH : 1;
    value->tensor = clt_add(rest.tensor, clt_cumsum(clt_expand(steps, count), axis));
    return clt_graph_status(c->graph);
}

/* Dimensions that are some times the batch are two, of which the first is it; -1: there are none. */
static int repeats_along(const clt_shape *extent, int64_t *times) {
    for (int d = 0; d < extent->rank && extent->rank < CLT_MAX_RANK; d++) {
        clt_multiple m;
        *times = clt_dim_multiple(extent->dims[d], &m) && m.of_batch && !m.of_length && !m.more ? m.times : 1;
        if (*times > 1) return d;
    }
    return -1;
}

/* As windows of an image have masks: some in a row, and again for each sample. */
static clt_status make_repeating(clt_onnx_call *c, clt_onnx_value *value, const clt_shape *extent, int axis, int64_t times) {
    clt_onnx_value rest = {.name = value->name, .type = value->type};
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        clt_literal *l;
        if (!value->literals[s]) continue;
        CLT_TRY(clt_arena_take(&c->onnx->build, 1, sizeof *l, &l));
        *l = *value->literals[s];
        for (int d = l->shape.rank++; d > axis; d--) l->shape.dims[d] = l->shape.dims[d - 1];
        l->shape.dims[axis] /= times;
        l->shape.dims[axis + 1] = times;
        rest.literals[s] = l;
    }
    CLT_TRY(make_following(c, &rest));
    value->tensor = clt_reshape_to(rest.tensor, *extent);
    return clt_graph_status(c->graph);
}

/* A dimension as an i32 scalar: the last of ones that are counted, where it is not a number. */
static clt_status count_of(clt_onnx_call *c, int64_t dim, clt_tensor **count) {
    int32_t number = dim < 0 ? 1 : (int32_t)dim;
    if (dim > INT32_MAX) return clt_fail(CLT_E_RANGE, "more places than an i32 counts");
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, {0}, &number}, count));
    if (dim < 0) *count = clt_squeeze(clt_slice(clt_cumsum(clt_expand(*count, CLT_SHAPE(dim)), 0), 0, -1, INT64_MAX, 1), 0);
    return CLT_OK;
}

/* The one element of a literal; false: there are more, or it is not a whole number. */
static bool is_whole(const clt_literal *l, int64_t *value) {
    bool floats = l->type == CLT_ONNX_FLOAT, integers = l->type == CLT_ONNX_INT64 || l->type == CLT_ONNX_INT32;
    if (l->elements != 1 || (!floats && !integers)) return false;
    if (floats && !(fabsf(l->floats[0]) <= (float)INT32_MAX && l->floats[0] == truncf(l->floats[0]))) return false;
    *value = floats ? (int64_t)l->floats[0] : l->integers[0];
    return true;
}

/* The batch or the length itself, or a multiple, as a number to compute with; value->tensor NULL: it is none. */
static clt_status make_size(clt_onnx_call *c, clt_onnx_value *value) {
    const clt_literal *base = value->literals[0];
    int64_t at[CLT_ONNX_SIZES] = {0};
    bool there[CLT_ONNX_SIZES] = {0};
    clt_onnx_kind kind;
    clt_shape ones = base->shape;
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        there[s] = value->literals[s] != NULL;
        if (there[s] && !is_whole(value->literals[s], &at[s])) return CLT_OK;
    }
    int64_t size = follow(c->graph, at, there, &kind);
    if (kind != CLT_ONNX_FOLLOWS) return CLT_OK;
    CLT_TRY(count_of(c, size, &value->tensor));
    if (base->type == CLT_ONNX_FLOAT) value->tensor = clt_cast(value->tensor, CLT_F32);
    value->tensor = clt_reshape_to(value->tensor, ones);
    return clt_graph_status(c->graph);
}

static clt_status make_constant(clt_onnx_call *c, clt_onnx_value *value) {
    clt_shape extent;
    int64_t step, times;
    value->type = value->literals[0]->type;
    if (clt_onnx_is_same(value)) return clt_onnx_constant(c, value->literals[0], &value->tensor);
    CLT_TRY(make_size(c, value));
    if (value->tensor) return CLT_OK;
    CLT_TRY(clt_onnx_extent(c, value, &extent));
    int axis = counts_along(value, &extent, &step), place = repeats_along(&extent, &times);
    if (axis >= 0) return make_counting(c, value, &extent, axis, step);
    return place < 0 ? make_following(c, value) : make_repeating(c, value, &extent, place, times);
}

clt_status clt_onnx_any(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(check_there(c, i));
    clt_onnx_value *value = &c->onnx->values[c->in[i]];
    if (!value->tensor && clt_onnx_is_weight(value)) CLT_TRY(make_weight(c, value, false));
    if (!value->tensor && value->initializer) CLT_TRY(clt_onnx_load_literal(c->onnx, value));
    if (!value->tensor && value->literals[0]) CLT_TRY(make_constant(c, value));
    if (!value->tensor && value->initializer) {
        value->type = value->initializer->type;
        CLT_TRY(clt_onnx_constant_stored(c, value->initializer, &value->tensor));
    }
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

clt_status clt_onnx_integers(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    return (*tensor)->dtype == CLT_I32 ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "input %zu is not of integers", i);
}

clt_status clt_onnx_number(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    int64_t type = clt_onnx_type_of(c, i);
    if (type != CLT_ONNX_FLOAT && type != CLT_ONNX_BOOL) return clt_fail(CLT_E_UNSUPPORTED, "input %zu is of type %s", i, clt_onnx_type_name(type));
    if ((*tensor)->dtype != CLT_F32) *tensor = clt_cast(*tensor, CLT_F32);
    return CLT_OK;
}

clt_status clt_onnx_comparable(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    return clt_onnx_type_of(c, i) == CLT_ONNX_BOOL ? clt_onnx_number(c, i, tensor) : CLT_OK;
}

clt_status clt_onnx_statistics(clt_onnx_call *c, size_t i, clt_tensor **tensor, bool *buffer) {
    CLT_TRY(check_there(c, i));
    clt_onnx_value *value = &c->onnx->values[c->in[i]];
    if (!value->tensor && clt_onnx_is_weight(value)) CLT_TRY(make_weight(c, value, true));
    CLT_TRY(clt_onnx_float(c, i, tensor));
    *buffer = (*tensor)->variable && (*tensor)->variable->is_buffer;
    return CLT_OK;
}

clt_status clt_onnx_from_start(clt_onnx_call *c, clt_tensor **indices, int64_t dim) {
    const clt_tensor *source = *indices;
    clt_tensor *n;
    int32_t zero = 0;
    while (clt_tensor_valid(source) && source->kind == CLT_NODE_OP && source->op->is_view) source = source->inputs[0];
    if (dim == -1 || !clt_tensor_valid(source) || clt_tensor_is_leaf(source) || (*indices)->dtype != CLT_I32) return CLT_OK;
    CLT_TRY(count_of(c, dim, &n));
    clt_tensor *none;
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, {0}, &zero}, &none));
    *indices = clt_add(*indices, clt_mul(n, clt_cast(clt_less(*indices, none), CLT_I32)));
    return clt_graph_status(c->graph);
}

clt_status clt_onnx_check_numbers(const clt_tensor *x, int first, int end) {
    clt_shape extent = clt_tensor_extent(x);
    for (int d = first; d < end; d++)
        if (extent.dims[d] != x->shape.dims[d]) return clt_fail(CLT_E_UNSUPPORTED, "along a dimension that follows the batch or the length");
    return CLT_OK;
}

clt_tensor *clt_onnx_move_axis(clt_tensor *x, int from, int to) {
    int order[CLT_MAX_RANK], next = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        if (next == from) next++;
        order[d] = d == to ? from : next++;
    }
    return clt_permute(x, order);
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
    if (!clt_onnx_is_same(value)) return clt_fail(CLT_E_UNSUPPORTED, "input %zu follows the batch or the length", i);
    *literal = value->literals[0];
    return CLT_OK;
}

clt_status clt_onnx_list_of(clt_onnx_call *c, size_t i, clt_onnx_list *list) {
    clt_onnx_value *value;
    CLT_TRY(check_there(c, i));
    CLT_TRY(known_value(c, i, &value));
    const clt_literal *l = value->literals[0];
    if (l->type == CLT_ONNX_FLOAT || l->shape.rank > 1) return clt_fail(CLT_E_FORMAT, "input %zu is not a list of integers", i);
    if (l->elements > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%lld dimensions, more than %d", (long long)l->elements, CLT_MAX_RANK);
    for (int s = 1; s < CLT_ONNX_SIZES; s++)
        if (value->literals[s] && !clt_shape_equal(&value->literals[s]->shape, &l->shape)) return clt_fail(CLT_E_UNSUPPORTED, "the length of input %zu follows the batch", i);
    list->n = (int)l->elements;
    for (int d = 0; d < list->n; d++) {
        int64_t at[CLT_ONNX_SIZES] = {0};
        bool there[CLT_ONNX_SIZES] = {0};
        for (int s = 0; s < CLT_ONNX_SIZES; s++) {
            there[s] = value->literals[s] != NULL;
            if (there[s]) at[s] = value->literals[s]->integers[d];
        }
        list->at[d] = follow(c->graph, at, there, &list->kinds[d]);
    }
    return CLT_OK;
}

bool clt_onnx_is_zero(clt_onnx_call *c, size_t i) {
    clt_onnx_value *v = clt_onnx_has(c, i) ? &c->onnx->values[c->in[i]] : NULL;
    if (!v || clt_onnx_is_weight(v) || clt_onnx_load_literal(c->onnx, v) < 0 || !v->literals[0] || v->type != CLT_ONNX_FLOAT) return false;
    for (int s = 0; s < CLT_ONNX_SIZES; s++)
        for (int64_t k = 0; v->literals[s] && k < v->literals[s]->elements; k++)
            if (v->literals[s]->floats[k] != 0) return false;
    return true;
}

bool clt_onnx_is_scalar(clt_onnx_call *c, size_t i, float *value) {
    clt_onnx_value *v = clt_onnx_has(c, i) ? &c->onnx->values[c->in[i]] : NULL;
    if (!v || clt_onnx_is_weight(v) || clt_onnx_load_literal(c->onnx, v) < 0 || !v->literals[0]) return false;
    if (!clt_onnx_is_same(v)) return false;
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

clt_status clt_onnx_axes(clt_onnx_call *c, const char *name, size_t i, int rank, int axes[CLT_MAX_RANK], int *n) {
    const clt_literal *list = NULL, *in[CLT_MAX_RANK] = {0};
    if (!clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_INTS)) CLT_TRY(clt_onnx_known(c, i, &list));
    if (i < CLT_MAX_RANK) in[i] = list;
    clt_onnx_folding f = {.arena = &c->onnx->build, .node = c->node, .opset = c->opset, .in = (clt_literal *const *)in};
    return clt_fold_axes(&f, name, i, rank, axes, n);
}

int64_t clt_onnx_int(const clt_onnx_call *c, const char *name, int64_t otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_INT);
    return a ? a->i : otherwise;
}

float clt_onnx_float_attribute(const clt_onnx_call *c, const char *name, float otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_FLOAT);
    return a ? a->f : otherwise;
}

const char *clt_onnx_text(const clt_onnx_call *c, const char *name, const char *otherwise) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_STRING);
    return a ? a->s : otherwise;
}
