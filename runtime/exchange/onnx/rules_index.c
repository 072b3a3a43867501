/* Ops that read places by indices. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- views ---- */

/* Dimensions of x, one or some in a row, whose places are read: by indices, or by tuples of them for the last ones, with the first in common. */
typedef struct block {
    clt_tensor *x;
    int axis, n_axes, depth; /* of tuples; 0: there are none */
} block;

/* The places of a block that indices tell at size s, counted through it: *shape is how they lie, *n how many it has. NULL: there are none. */
static clt_status places_at(clt_onnx_call *c, block b, int s, clt_shape *shape, int64_t **places, int64_t *n) {
    const clt_literal *l = c->onnx->values[c->in[1]].literals[s];
    clt_shape x = clt_onnx_shape_at(b.x, s), within = {.rank = b.n_axes};
    int tuple = CLT_MAX(b.depth, 1), samples = b.n_axes - tuple;
    int64_t strides[CLT_MAX_RANK], in_front[CLT_MAX_RANK] = {0};
    *places = NULL;
    if (!l || x.rank < 0) return CLT_OK;
    for (int d = 0; d < b.n_axes; d++) within.dims[d] = x.dims[b.axis + d];
    clt_shape_strides(&within, strides);
    for (int d = 0; d < samples; d++) in_front[d] = strides[d];
    *n = clt_shape_elements(&within);
    *shape = l->shape;
    if (b.depth) shape->rank--;
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)(l->elements / tuple), sizeof **places, places));
    for (int64_t e = 0; e < l->elements / tuple; e++) {
        (*places)[e] = clt_fold_place(shape, e, in_front);
        for (int k = 0; k < tuple; k++) {
            int64_t at = l->integers[e * tuple + k], size = within.dims[samples + k];
            bool fits = at >= -size && at < size;
            if (!fits && s == 0) return clt_fail(CLT_E_RANGE, "index %lld of %lld places", (long long)at, (long long)size);
            if (fits) (*places)[e] += (at < 0 ? at + size : at) * strides[samples + k];
            else *n = -1; /* not so many */
        }
    }
    return CLT_OK;
}

typedef struct course {
    bool goes[CLT_MAX_RANK], stays[CLT_MAX_RANK]; /* along a dimension of the indices; neither where it is 1 */
} course;

/* Whether places are all n of a block in order, with dimensions along which they stay. */
static bool is_in_order(const clt_shape *shape, const int64_t *places, int64_t n, course *to) {
    int64_t own[CLT_MAX_RANK], strides[CLT_MAX_RANK] = {0}, elements = clt_shape_elements(shape), done = 1;
    if (elements < 1) return false;
    clt_shape_strides(shape, own);
    for (int d = shape->rank; d-- > 0;) {
        if (shape->dims[d] == 1) continue;
        strides[d] = places[own[d]] - places[0];
        *(strides[d] ? &to->goes[d] : &to->stays[d]) = true;
        if (strides[d] && strides[d] != done) return false;
        if (strides[d]) done *= shape->dims[d];
    }
    if (done != n) return false;
    for (int64_t e = 0; e < elements; e++)
        if (places[e] != clt_fold_place(shape, e, strides)) return false;
    return true;
}

/* Of indices that are known, and tell at all sizes all places in order, perhaps again and again, what they read is x with other dimensions: *y. NULL:
 * it is something else. Exporters write so the masks of attention. */
static clt_status look_through(clt_onnx_call *c, block b, clt_tensor **y) {
    clt_onnx_value *value = &c->onnx->values[c->in[1]];
    clt_shape extent = clt_tensor_extent(b.x), of, shape, kept = {0}, whole;
    course to = {0};
    *y = NULL;
    if (!value->literals[0] || value->type == CLT_ONNX_FLOAT) return CLT_OK;
    CLT_TRY(clt_onnx_extent(c, value, &of));
    if (b.depth && of.dims[--of.rank] != b.depth) return CLT_OK;
    for (int s = 0; s < CLT_ONNX_SIZES; s++) {
        int64_t *places, n;
        CLT_TRY(places_at(c, b, s, &shape, &places, &n));
        if (places ? !is_in_order(&shape, places, n, &to) : s <= CLT_GREATER_BATCHES) return CLT_OK;
    }
    if (extent.rank - b.n_axes + of.rank > CLT_MAX_RANK) return CLT_OK;
    for (int d = 0; d < b.axis; d++) kept.dims[kept.rank++] = extent.dims[d];
    for (int d = 0; d < of.rank; d++) {
        if (to.goes[d] && to.stays[d]) return CLT_OK;
        kept.dims[kept.rank++] = to.goes[d] ? of.dims[d] : 1;
    }
    for (int d = b.axis + b.n_axes; d < extent.rank; d++) kept.dims[kept.rank++] = extent.dims[d];
    whole = kept;
    for (int d = 0; d < of.rank; d++) whole.dims[b.axis + d] = of.dims[d];
    *y = clt_reshape_to(b.x, kept);
    if (!clt_shape_equal(&kept, &whole)) *y = clt_expand(*y, whole);
    return CLT_OK;
}

/* ---- Gather ---- */

/* The slices of x along an axis that indices of any rank tell. Bytes are exact as floats. */
static clt_status gather(clt_tensor *x, int axis, clt_tensor *indices, clt_tensor **y) {
    clt_shape of = clt_tensor_extent(indices), extent = clt_tensor_extent(x), shape = {0};
    clt_dtype dtype = x->dtype;
    if (of.rank - 1 + extent.rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "its result has more than %d dimensions", CLT_MAX_RANK);
    if (dtype != CLT_F32 && dtype != CLT_U8) return clt_fail(CLT_E_UNSUPPORTED, "of type %s", clt_dtype_name(dtype));
    if (dtype == CLT_U8) x = clt_cast(x, CLT_F32);
    if (axis == 0 && extent.rank == 2) *y = clt_embedding_op(indices, x);
    else if (of.rank == 1) *y = clt_index_select(x, axis, indices);
    else { /* as a list, whose dimension is then what they were */
        for (int d = 0; d < axis; d++) shape.dims[shape.rank++] = extent.dims[d];
        for (int d = 0; d < of.rank; d++) shape.dims[shape.rank++] = of.dims[d];
        for (int d = axis + 1; d < extent.rank; d++) shape.dims[shape.rank++] = extent.dims[d];
        *y = clt_reshape_to(clt_index_select(x, axis, clt_reshape(indices, CLT_SHAPE(-1))), shape);
    }
    *y = clt_cast(*y, dtype);
    return CLT_OK;
}

/* Places from the end are told as such where they are known, of which look_through has seen that they are within x; indices that are data count from 0. */
static clt_status known_indices(clt_onnx_call *c, clt_tensor *x, int axis, clt_tensor **indices, bool *one, int64_t *place) {
    const clt_onnx_value *value = &c->onnx->values[c->in[1]];
    const clt_literal *l = value->literals[0];
    *one = false;
    if (!l || l->type == CLT_ONNX_FLOAT || !clt_onnx_is_same(value)) return clt_onnx_any(c, 1, indices);
    int64_t n = x->shape.dims[axis];
    CLT_TRY(clt_onnx_known(c, 1, &l));
    *one = l->shape.rank == 0;
    if (*one) return *place = l->integers[0], CLT_OK;
    bool follows = clt_tensor_extent(x).dims[axis] != n;
    for (int64_t i = 0; follows && i < l->elements; i++)
        if (l->integers[i]) return clt_fail(CLT_E_UNSUPPORTED, "index %lld along a dimension that follows the batch or the length", (long long)l->integers[i]);
    clt_literal *from_start;
    CLT_TRY(clt_literal_new(&c->onnx->build, CLT_ONNX_INT64, &l->shape, &from_start));
    for (int64_t i = 0; i < l->elements; i++) from_start->integers[i] = l->integers[i] < 0 ? l->integers[i] + n : l->integers[i];
    return clt_onnx_constant(c, from_start, indices);
}

static clt_status map_gather(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *indices = NULL;
    int axis;
    bool one;
    int64_t place = 0;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (!clt_onnx_has(c, 1)) return clt_fail(CLT_E_FORMAT, "input 1 is missing");
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    c->out_type = clt_onnx_type_of(c, 0);
    CLT_TRY(look_through(c, (block){x, .axis = axis, .n_axes = 1}, out));
    if (*out) return CLT_OK;
    CLT_TRY(known_indices(c, x, axis, &indices, &one, &place));
    if (one) {
        out[0] = clt_squeeze(clt_slice(x, axis, place, place == -1 ? INT64_MAX : place + 1, 1), axis);
        return CLT_OK;
    }
    CLT_TRY(clt_onnx_from_start(c, &indices, clt_tensor_extent(x).dims[axis]));
    if (indices->dtype != CLT_I32) return clt_fail(CLT_E_UNSUPPORTED, "by %s", clt_dtype_name(indices->dtype));
    return gather(x, axis, indices, out);
}

/* ---- GatherND ---- */

/* Tuples of indices into the first dimensions of x, as places of all of these: i32. */
static clt_status places_of(clt_onnx_call *c, const clt_tensor *x, clt_tensor *tuples, clt_tensor **places) {
    int last = tuples->shape.rank - 1;
    clt_shape extent = clt_tensor_extent(x);
    int64_t stride = 1;
    *places = NULL;
    for (int64_t k = tuples->shape.dims[last]; k-- > 0; stride *= x->shape.dims[k]) {
        clt_tensor *at = clt_squeeze(clt_slice(tuples, last, k, k + 1, 1), last), *times;
        bool number = extent.dims[k] == x->shape.dims[k];
        if (k > 0 && !number) return clt_fail(CLT_E_UNSUPPORTED, "by dimension %lld, which follows the batch or the length", (long long)k);
        CLT_TRY(clt_onnx_from_start(c, &at, extent.dims[k]));
        if (stride > INT32_MAX / x->shape.dims[k]) return clt_fail(CLT_E_RANGE, "more places than an i32 counts");
        CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, {0}, &(int32_t){(int32_t)stride}}, &times));
        at = stride == 1 ? at : clt_mul(at, times);
        *places = *places ? clt_add(*places, at) : at;
    }
    return clt_graph_status(c->graph);
}

static clt_status map_gather_nd(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *tuples = NULL, *places;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (!clt_onnx_has(c, 1)) return clt_fail(CLT_E_FORMAT, "input 1 is missing");
    const clt_onnx_value *value = &c->onnx->values[c->in[1]];
    if (!value->literals[0]) CLT_TRY(clt_onnx_integers(c, 1, &tuples));
    clt_shape of = value->literals[0] ? value->literals[0]->shape : tuples->shape;
    int64_t samples = clt_onnx_int(c, "batch_dims", 0), depth = of.rank > 0 ? of.dims[of.rank - 1] : 0;
    if (samples < 0 || samples >= of.rank || depth < 1 || depth > x->shape.rank - samples) return clt_fail(CLT_E_SHAPE, "its indices do not fit what they index");
    c->out_type = clt_onnx_type_of(c, 0);
    CLT_TRY(look_through(c, (block){x, .n_axes = (int)(samples + depth), .depth = (int)depth}, out));
    if (*out) return CLT_OK;
    if (samples) return clt_fail(CLT_E_UNSUPPORTED, "batch_dims %lld", (long long)samples);
    CLT_TRY(clt_onnx_integers(c, 1, &tuples));
    CLT_TRY(places_of(c, x, tuples, &places));
    clt_shape extent = clt_tensor_extent(x), rows = CLT_SHAPE(-1);
    for (int d = (int)depth; d < extent.rank; d++) rows.dims[rows.rank++] = extent.dims[d];
    return gather(clt_reshape_to(x, rows), 0, places, out);
}

/* ---- GatherElements ---- */

/* y[.., i, ..] = x[.., indices[.., i, ..], ..]: the sums of rows with one of them, which of integers are running ones. */
static clt_status map_gather_elements(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *indices;
    int axis;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_onnx_integers(c, 1, &indices));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    if (indices->shape.rank != x->shape.rank || x->shape.rank == CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "indices of %d dimensions", indices->shape.rank);
    for (int d = 0; d < x->shape.rank; d++)
        if (d != axis && indices->shape.dims[d] != x->shape.dims[d]) return clt_fail(CLT_E_UNSUPPORTED, "fewer indices than places along axis %d", d);
    int64_t n = x->shape.dims[axis];
    CLT_TRY(clt_onnx_check_numbers(x, axis, axis + 1));
    CLT_TRY(clt_onnx_from_start(c, &indices, n));
    clt_dtype dtype = x->dtype;
    int last = x->shape.rank;
    if (dtype == CLT_U8) x = clt_cast(x, CLT_F32);
    clt_tensor *own = clt_one_hot(indices, n), *turned = clt_unsqueeze(clt_onnx_move_axis(x, axis, last - 1), axis);
    if (dtype == CLT_I32) out[0] = clt_squeeze(clt_slice(clt_cumsum(clt_mul(clt_cast(own, CLT_I32), turned), last), last, -1, INT64_MAX, 1), last);
    else out[0] = clt_cast(clt_sum(clt_where(own, turned, clt_fill(c->graph, (clt_shape){0}, 0)), CLT_AXES(-1)), dtype);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* ---- OneHot ---- */

static clt_status map_one_hot(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *indices;
    const clt_literal *depth, *values;
    int axis;
    CLT_TRY(clt_onnx_integers(c, 0, &indices));
    CLT_TRY(clt_onnx_known(c, 1, &depth));
    CLT_TRY(clt_onnx_known(c, 2, &values));
    if (!depth || depth->elements != 1 || !values || values->elements != 2) return clt_fail(CLT_E_UNSUPPORTED, "a depth that is not one number, or values that are not two");
    bool floats = values->type == CLT_ONNX_FLOAT;
    if (!floats && (values->integers[0] != 0 || values->integers[1] != 1)) return clt_fail(CLT_E_UNSUPPORTED, "values of integers that are not 0 and 1");
    double size = depth->type == CLT_ONNX_FLOAT ? (double)depth->floats[0] : (double)depth->integers[0];
    if (!(size >= 1 && size <= INT32_MAX)) return clt_fail(CLT_E_RANGE, "a depth of %g", size);
    if (indices->shape.rank == CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "its result has more than %d dimensions", CLT_MAX_RANK);
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", -1), indices->shape.rank + 1, &axis));
    CLT_TRY(clt_onnx_from_start(c, &indices, (int64_t)size));
    clt_tensor *y = clt_one_hot(indices, (int64_t)size);
    float off = floats ? values->floats[0] : 0, on = floats ? values->floats[1] : 1;
    if (!floats) y = clt_cast(y, values->type == CLT_ONNX_BOOL ? CLT_U8 : CLT_I32), c->out_type = values->type;
    if (clt_tensor_valid(y) && axis != y->shape.rank - 1) y = clt_onnx_move_axis(y, y->shape.rank - 1, axis);
    out[0] = off == 0 && on == 1 ? y : clt_where(y, clt_fill(c->graph, (clt_shape){0}, on), clt_fill(c->graph, (clt_shape){0}, off));
    return CLT_OK;
}

const clt_onnx_rule clt_onnx_index_rules[] = {
    {"Gather", map_gather}, {"GatherND", map_gather_nd}, {"GatherElements", map_gather_elements}, {"OneHot", map_one_hot}, {0},
};
