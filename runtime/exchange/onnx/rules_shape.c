/* The same elements in other places. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

static bool is_number(int64_t dim) {
    return dim >= 0;
}

/* Dimensions that follow the batch are told so, not by number: the one that cannot be told is what remains. In a file that was made for one
 * batch, a number may be the batch. */
static clt_status map_reshape(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    clt_onnx_list list;
    clt_shape shape = {0};
    bool keeps_zero = clt_onnx_int(c, "allowzero", 0), named = false;
    int n_open = 0;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_onnx_list_of(c, 1, &list));
    clt_shape extent = clt_tensor_extent(x);
    shape.rank = list.n;
    for (int d = 0; d < shape.rank; d++) {
        bool number = list.kinds[d] == CLT_ONNX_NUMBER;
        if (number && list.at[d] < -1) return clt_fail(CLT_E_SHAPE, "a dimension of %lld", (long long)list.at[d]);
        if (number && list.at[d] == 0 && keeps_zero) return clt_fail(CLT_E_UNSUPPORTED, "a dimension of 0");
        if (number && list.at[d] == 0 && d >= extent.rank) return clt_fail(CLT_E_SHAPE, "dimension %d is to be kept, of %d", d, extent.rank);
        shape.dims[d] = list.at[d];
        n_open += shape.dims[d] == -1;
        named |= !number || (list.at[d] == 0 && !is_number(extent.dims[d]));
    }
    if (n_open > 1) return clt_fail(CLT_E_UNSUPPORTED, "two dimensions follow the batch in a way that is not known");
    out[0] = named || !c->onnx->fixed_batch ? clt_reshape_to(x, shape) : clt_reshape(x, shape);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* Dimensions before and behind the axis become one each. */
static clt_status map_flatten(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int64_t axis = clt_onnx_int(c, "axis", 1), numbers[2] = {1, 1};
    clt_shape shape = CLT_SHAPE(1, 1);
    int follows[2] = {0};
    CLT_TRY(clt_onnx_any(c, 0, &x));
    clt_shape extent = clt_tensor_extent(x);
    if (axis < 0) axis += extent.rank;
    if (axis < 0 || axis > extent.rank) return clt_fail(CLT_E_SHAPE, "axis %lld of %d dimensions", (long long)axis, extent.rank);
    for (int d = 0; d < extent.rank; d++) {
        int side = d >= axis;
        if (is_number(extent.dims[d])) numbers[side] *= extent.dims[d];
        else if (follows[side]++ == 0) shape.dims[side] = extent.dims[d];
    }
    for (int side = 0; side < 2; side++) {
        if (!follows[side]) shape.dims[side] = numbers[side];
        else if (follows[side] > 1 || numbers[side] != 1) shape.dims[side] = -1;
    }
    if (shape.dims[0] == -1 && shape.dims[1] == -1) return clt_fail(CLT_E_UNSUPPORTED, "both dimensions follow the batch in a way that is not known");
    out[0] = clt_reshape_to(x, shape);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_transpose(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "perm", CLT_ONNX_A_INTS);
    int order[CLT_MAX_RANK];
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (a && a->n != (size_t)x->shape.rank) return clt_fail(CLT_E_SHAPE, "an order of %zu dimensions, of %d", a->n, x->shape.rank);
    for (int d = 0; d < x->shape.rank; d++) {
        order[d] = x->shape.rank - 1 - d;
        if (a) CLT_TRY(clt_fold_axis(a->ints[d], x->shape.rank, &order[d]));
    }
    out[0] = clt_permute(x, order);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_unsqueeze(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "axes", CLT_ONNX_A_INTS);
    const clt_literal *list = NULL;
    int axes[CLT_MAX_RANK], n;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (!a) CLT_TRY(clt_onnx_known(c, 1, &list));
    if (!a && !list) return clt_fail(CLT_E_FORMAT, "it has no axes");
    int64_t rank = x->shape.rank + (a ? (int64_t)a->n : list->elements);
    if (rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%lld dimensions, more than %d", (long long)rank, CLT_MAX_RANK);
    CLT_TRY(clt_onnx_axes(c, "axes", 1, (int)rank, axes, &n));
    for (int d = 0; d < rank; d++) /* from the first on, so that each counts in what is there by then */
        for (int i = 0; i < n; i++)
            if (axes[i] == d) x = clt_unsqueeze(x, d);
    out[0] = x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_squeeze(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int axes[CLT_MAX_RANK], n;
    bool dropped[CLT_MAX_RANK] = {0};
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_onnx_axes(c, "axes", 1, x->shape.rank, axes, &n));
    for (int i = 0; i < n; i++) dropped[axes[i]] = true;
    clt_shape extent = clt_tensor_extent(x);
    for (int d = extent.rank; d-- > 0;)
        if (n < 0 ? extent.dims[d] == 1 : dropped[d]) x = clt_squeeze(x, d);
    out[0] = x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_concat(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor **xs;
    int axis;
    CLT_TRY(clt_arena_take(&c->onnx->build, c->node->n_inputs, sizeof *xs, &xs));
    for (size_t i = 0; i < c->node->n_inputs; i++) CLT_TRY(clt_onnx_any(c, i, &xs[i]));
    if (c->node->n_inputs == 0 || c->node->n_inputs > INT32_MAX) return clt_fail(CLT_E_FORMAT, "%zu operands", c->node->n_inputs);
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), xs[0]->shape.rank, &axis));
    out[0] = c->node->n_inputs == 1 ? xs[0] : clt_concat(xs, (int)c->node->n_inputs, axis);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status list_of(clt_onnx_call *c, const char *name, size_t i, clt_onnx_list *list) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_INTS);
    if (!a) return clt_onnx_list_of(c, i, list);
    if (a->n > CLT_MAX_RANK) return clt_fail(CLT_E_SHAPE, "%zu %s", a->n, name);
    *list = (clt_onnx_list){.n = (int)a->n};
    for (size_t k = 0; k < a->n; k++) list->at[k] = a->ints[k];
    return CLT_OK;
}

/* A bound of a dimension that is a number is brought back into it, as NumPy does it. Of one that follows the batch or the length only those are taken that
 * mean the same at every size: from the begin, from the end, and all of it. */
static clt_status bound_of(const clt_onnx_list *list, int k, int64_t extent, int64_t size, bool is_stop, int64_t *bound) {
    int64_t at = list->at[k];
    bool number = is_number(extent);
    bool follows = list->kinds[k] == CLT_ONNX_FOLLOWS;
    if (is_stop && follows && at == extent) at = INT64_MAX;
    else if (is_stop && follows && clt_dim_is_length(at)) return *bound = at, CLT_OK;
    else if (list->kinds[k] != CLT_ONNX_NUMBER) return clt_fail(CLT_E_UNSUPPORTED, "bounds that follow the batch or the length");
    if (number) {
        if (at < 0) at = CLT_MAX(at + size, 0);
        *bound = is_stop ? at >= size ? INT64_MAX : at : CLT_MIN(at, size);
        return is_stop && at == 0 ? clt_fail(CLT_E_UNSUPPORTED, "a part without elements") : CLT_OK;
    }
    *bound = at;
    if (is_stop && at > INT32_MAX) return *bound = INT64_MAX, CLT_OK;
    if (at >= size || at < -size) return clt_fail(CLT_E_UNSUPPORTED, "the bound %lld of %lld places, of which there may be more or fewer", (long long)at, (long long)size);
    return is_stop && at == 0 ? clt_fail(CLT_E_UNSUPPORTED, "a part without elements") : CLT_OK;
}

enum { MOST_PLACES = 1 << 22 };

/* Room for so many places along an axis of x, each to be given one of those that x has there now; not along what follows the batch or the length. */
static clt_status begin_places(clt_onnx_call *c, const clt_tensor *x, int axis, int64_t n, const char *what, int32_t **places) {
    if (clt_tensor_extent(x).dims[axis] != x->shape.dims[axis]) return clt_fail(CLT_E_UNSUPPORTED, "%s along the batch or the length", what);
    if (n < 1 || n > MOST_PLACES) return clt_fail(CLT_E_UNSUPPORTED, "%s with %lld places: expected 1 to %d", what, (long long)n, MOST_PLACES);
    return clt_arena_take(&c->onnx->build, (size_t)n, sizeof **places, places);
}

static clt_status select_places(clt_onnx_call *c, clt_tensor **x, int axis, int64_t n, const int32_t *places) {
    clt_tensor *indices;
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, CLT_SHAPE(n), places}, &indices));
    *x = clt_index_select(*x, axis, indices);
    return clt_graph_status(c->graph);
}

/* Places from the end, as of a flip; bounds as the file has them. */
static clt_status slice_back(clt_onnx_call *c, clt_tensor **x, int axis, int64_t start, int64_t stop, int64_t step) {
    int64_t size = (*x)->shape.dims[axis], by = -CLT_MAX(step, -size);
    int32_t *places;
    start = CLT_MIN(start < 0 ? CLT_MAX(start, -size - 1) + size : start, size - 1);
    stop = CLT_MIN(CLT_MAX(stop < 0 ? CLT_MAX(stop, -size - 1) + size : stop, -1), size);
    int64_t n = start > stop ? (start - stop + by - 1) / by : 0;
    CLT_TRY(begin_places(c, *x, axis, n, "a step backwards", &places));
    for (int64_t i = 0; i < n; i++) places[i] = (int32_t)(start - i * by);
    return select_places(c, x, axis, n, places);
}

static clt_status map_slice(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    clt_onnx_list starts, ends, steps = {.n = 0};
    int axes[CLT_MAX_RANK], n;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(list_of(c, "starts", 1, &starts));
    CLT_TRY(list_of(c, "ends", 2, &ends));
    CLT_TRY(clt_onnx_axes(c, "axes", 3, x->shape.rank, axes, &n));
    if (clt_onnx_has(c, 4)) CLT_TRY(clt_onnx_list_of(c, 4, &steps));
    if (starts.n != ends.n || (steps.n && steps.n != starts.n) || starts.n > (n < 0 ? x->shape.rank : n))
        return clt_fail(CLT_E_SHAPE, "starts, ends, axes and steps of different lengths");
    for (int i = 0; i < starts.n; i++) {
        int axis = n < 0 ? i : axes[i];
        int64_t start, stop, step = steps.n ? steps.at[i] : 1, extent = clt_tensor_extent(x).dims[axis], size = x->shape.dims[axis];
        bool numbers = starts.kinds[i] == CLT_ONNX_NUMBER && ends.kinds[i] == CLT_ONNX_NUMBER && (!steps.n || steps.kinds[i] == CLT_ONNX_NUMBER);
        if (step < 0 && numbers) {
            CLT_TRY(slice_back(c, &x, axis, starts.at[i], ends.at[i], step));
            continue;
        }
        if (step < 1 || (steps.n && steps.kinds[i] != CLT_ONNX_NUMBER)) return clt_fail(CLT_E_UNSUPPORTED, "a step of %lld", (long long)step);
        CLT_TRY(bound_of(&starts, i, extent, size, false, &start));
        CLT_TRY(bound_of(&ends, i, extent, size, true, &stop));
        if (start == 0 && stop == INT64_MAX && step == 1) continue;
        x = clt_slice(x, axis, start, stop, step);
    }
    out[0] = x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* Takes a part of size from what is left of the places. */
static clt_status take_part(int64_t size, int64_t whole, int64_t *done) {
    if (size < 1 || size > whole - *done) return clt_fail(CLT_E_UNSUPPORTED, "a part of %lld places, of %lld", (long long)size, (long long)whole);
    *done += size;
    return CLT_OK;
}

static clt_status map_split(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "split", CLT_ONNX_A_INTS);
    const clt_literal *known = NULL;
    int axis;
    int64_t n = (int64_t)c->node->n_outputs, *sizes;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (!a) CLT_TRY(clt_onnx_known(c, 1, &known));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    if (n < 1 || n > INT32_MAX || (a && (int64_t)a->n != n) || (known && (known->elements != n || known->type == CLT_ONNX_FLOAT)))
        return clt_fail(CLT_E_SHAPE, "its sizes are not as many as its outputs");
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)n, sizeof *sizes, &sizes));
    int64_t whole = x->shape.dims[axis], equal = (whole + n - 1) / n, done = 0;
    for (int64_t i = 0; i < n; i++) {
        sizes[i] = a ? a->ints[i] : known ? known->integers[i] : CLT_MIN(equal, whole - done);
        CLT_TRY(take_part(sizes[i], whole, &done));
    }
    clt_split(x, axis, sizes, (int)n, out);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* Sizes of parts: a number for all, a list, or, with neither, 1. */
static clt_status part_sizes(clt_onnx_call *c, int64_t whole, int64_t **sizes, int64_t *n) {
    const clt_literal *known;
    CLT_TRY(clt_onnx_known(c, 1, &known));
    if (known && (known->type == CLT_ONNX_FLOAT || known->shape.rank > 1)) return clt_fail(CLT_E_FORMAT, "its sizes are not integers");
    bool listed = known && known->shape.rank == 1;
    int64_t each = known && !listed ? known->integers[0] : 1, done = 0;
    if (each < 1) return clt_fail(CLT_E_SHAPE, "parts of %lld places", (long long)each);
    *n = listed ? known->elements : (whole + each - 1) / each;
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)*n, sizeof **sizes, sizes));
    for (int64_t i = 0; i < *n; i++) {
        (*sizes)[i] = listed ? known->integers[i] : CLT_MIN(each, whole - done);
        CLT_TRY(take_part((*sizes)[i], whole, &done));
    }
    return done == whole ? CLT_OK : clt_fail(CLT_E_SHAPE, "parts of %lld places in all, of %lld", (long long)done, (long long)whole);
}

/* A sequence is nothing by itself: its parts are what SequenceAt takes of it. */
static clt_status map_split_to_sequence(clt_onnx_call *c, clt_tensor **out) {
    (void)out;
    clt_tensor *x;
    int axis;
    int64_t *sizes = NULL, n = 0;
    clt_onnx_value *value = clt_onnx_value_at(c->onnx, c->out[0]);
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    CLT_TRY(part_sizes(c, x->shape.dims[axis], &sizes, &n));
    if (!value || n < 1 || n > INT32_MAX) return clt_fail(CLT_E_SHAPE, "%lld parts", (long long)n);
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)n, sizeof *value->parts, &value->parts));
    clt_split(x, axis, sizes, (int)n, value->parts);
    for (int64_t i = 0; i < n && !clt_onnx_has(c, 1) && !clt_onnx_int(c, "keepdims", 1); i++) value->parts[i] = clt_squeeze(value->parts[i], axis);
    value->n_parts = n;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_sequence_at(clt_onnx_call *c, clt_tensor **out) {
    const clt_literal *at;
    const clt_onnx_value *value = clt_onnx_has(c, 0) ? clt_onnx_value_at(c->onnx, c->in[0]) : NULL;
    if (!value || !value->parts) return clt_fail(CLT_E_UNSUPPORTED, "of a sequence that is not a split");
    CLT_TRY(clt_onnx_known(c, 1, &at));
    if (!at || at->type == CLT_ONNX_FLOAT || at->elements != 1) return clt_fail(CLT_E_UNSUPPORTED, "at a place that is not known");
    int64_t place = at->integers[0] < 0 ? at->integers[0] + value->n_parts : at->integers[0];
    if (place < 0 || place >= value->n_parts) return clt_fail(CLT_E_RANGE, "part %lld of %lld", (long long)at->integers[0], (long long)value->n_parts);
    out[0] = value->parts[place];
    c->out_type = value->type;
    return CLT_OK;
}

/* The place of n that comes to `at`, before the first one or behind the last, too. */
static int64_t mirrored(int64_t at, int64_t n) {
    int64_t period = CLT_MAX(2 * (n - 1), 1), place = (at % period + period) % period;
    return place < n ? place : period - place;
}
static int64_t clamped(int64_t at, int64_t n) {
    return CLT_MIN(CLT_MAX(at, 0), n - 1);
}
static int64_t wrapped(int64_t at, int64_t n) {
    return (at % n + n) % n;
}

static const struct {
    const char *mode;
    int64_t (*place)(int64_t at, int64_t n);
} pad_modes[] = {{"reflect", mirrored}, {"edge", clamped}, {"wrap", wrapped}};

/* Padding by x's own places, which are selected. */
static clt_status pad_by_places(clt_onnx_call *c, clt_tensor *x, const char *mode, const int64_t *before, const int64_t *after, clt_tensor **out) {
    size_t k = 0;
    while (k < CLT_COUNT_OF(pad_modes) && strcmp(pad_modes[k].mode, mode)) k++;
    if (k == CLT_COUNT_OF(pad_modes)) return clt_fail(CLT_E_UNSUPPORTED, "mode %.40s", mode);
    for (int d = 0; d < x->shape.rank; d++) {
        int64_t n = x->shape.dims[d], all = n + CLT_MIN(before[d], MOST_PLACES) + CLT_MIN(after[d], MOST_PLACES);
        int32_t *places;
        if (all == n) continue;
        CLT_TRY(begin_places(c, x, d, all, "such padding", &places));
        for (int64_t i = 0; i < all; i++) places[i] = (int32_t)pad_modes[k].place(i - before[d], n);
        CLT_TRY(select_places(c, &x, d, all, places));
    }
    *out = x;
    return CLT_OK;
}

/* Integers, as labels are: what is added is joined to them. */
static clt_status pad_integers(clt_onnx_call *c, clt_tensor *x, const int64_t *before, const int64_t *after, clt_tensor **out) {
    const clt_literal *value;
    clt_literal *one;
    clt_tensor *filler;
    CLT_TRY(clt_onnx_known(c, 2, &value));
    if (value && (value->elements != 1 || value->type == CLT_ONNX_FLOAT)) return clt_fail(CLT_E_FORMAT, "a value that is not one integer");
    const int64_t number = value ? value->integers[0] : 0;
    CLT_TRY(clt_literal_integers(&c->onnx->build, &number, 1, &one));
    one->shape.rank = x->shape.rank;
    for (int d = 0; d < x->shape.rank; d++) one->shape.dims[d] = 1;
    CLT_TRY(clt_onnx_constant(c, one, &filler));
    for (int d = 0; d < x->shape.rank && clt_tensor_valid(x); d++) {
        clt_shape extent = clt_tensor_extent(x);
        clt_tensor *parts[3];
        int n = 0;
        for (int other = 0; other < extent.rank; other++)
            if (other != d && extent.dims[other] == -1) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch in a way that is not known");
        if (before[d]) extent.dims[d] = before[d], parts[n++] = clt_expand(filler, extent);
        parts[n++] = x;
        if (after[d]) extent.dims[d] = after[d], parts[n++] = clt_expand(filler, extent);
        if (n > 1) x = clt_concat(parts, n, d);
    }
    *out = x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

static clt_status map_pad(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const char *mode = clt_onnx_text(c, "mode", "constant");
    clt_shape pads = {0};
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "pads", CLT_ONNX_A_INTS);
    const clt_literal *known = NULL;
    int axes[CLT_MAX_RANK], n;
    int64_t before[CLT_MAX_RANK] = {0}, after[CLT_MAX_RANK] = {0};
    float value = clt_onnx_float_attribute(c, "value", 0);
    bool integers = clt_onnx_type_of(c, 0) == CLT_ONNX_INT64 || clt_onnx_type_of(c, 0) == CLT_ONNX_INT32, constant = !strcmp(mode, "constant");
    CLT_TRY(integers && constant ? clt_onnx_integers(c, 0, &x) : clt_onnx_float(c, 0, &x));
    if (!a) CLT_TRY(clt_onnx_known(c, 1, &known));
    if (!integers) CLT_TRY(clt_onnx_known_float(c, 2, value, &value));
    CLT_TRY(clt_onnx_axes(c, "axes", 3, x->shape.rank, axes, &n));
    int64_t count = a ? (int64_t)a->n : known ? known->elements : 0;
    if (n < 0)
        for (n = 0; n < x->shape.rank; n++) axes[n] = n;
    if (count != 2 * (int64_t)n || (known && known->type == CLT_ONNX_FLOAT)) return clt_fail(CLT_E_SHAPE, "%lld pads for %d axes", (long long)count, n);
    const int64_t *values = a ? a->ints : known ? known->integers : pads.dims;
    for (int i = 0; i < n; i++) {
        int64_t first = values[i], last = values[n + i];
        if (first < -INT32_MAX || last < -INT32_MAX) return clt_fail(CLT_E_SHAPE, "a pad of %lld", (long long)CLT_MIN(first, last));
        if (first < 0 || last < 0) x = clt_slice(x, axes[i], CLT_MAX(-first, 0), last < 0 ? last : INT64_MAX, 1);
        before[axes[i]] = CLT_MAX(first, 0);
        after[axes[i]] = CLT_MAX(last, 0);
    }
    if (!constant) return pad_by_places(c, x, mode, before, after, out);
    if (integers) return pad_integers(c, x, before, after, out);
    out[0] = clt_pad(x, before, after, value);
    return CLT_OK;
}

/* Sizes of 1 keep x's: stretching goes both ways. */
static clt_status map_expand(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    clt_onnx_list list;
    clt_shape shape = {0};
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_onnx_list_of(c, 1, &list));
    int more = CLT_MAX(x->shape.rank - list.n, 0);
    shape.rank = list.n + more;
    if (shape.rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%d dimensions, more than %d", shape.rank, CLT_MAX_RANK);
    for (int d = 0; d < shape.rank; d++) {
        bool own = d >= shape.rank - x->shape.rank;
        if (d < more) {
            shape.dims[d] = -1;
            continue;
        }
        if (list.kinds[d - more] == CLT_ONNX_OPEN) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch in a way that is not known");
        bool number = list.kinds[d - more] == CLT_ONNX_NUMBER;
        if (number && list.at[d - more] < 1) return clt_fail(CLT_E_UNSUPPORTED, "a size of %lld", (long long)list.at[d - more]);
        shape.dims[d] = number && list.at[d - more] == 1 && own ? -1 : list.at[d - more];
    }
    out[0] = clt_expand(x, shape);
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* One value, as many times as sizes say that follow the batch or the length. */
static clt_status map_constant_of_shape(clt_onnx_call *c, clt_tensor **out) {
    clt_onnx_list list;
    clt_shape shape = {0};
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "value", CLT_ONNX_A_TENSOR);
    clt_literal *value;
    CLT_TRY(clt_onnx_list_of(c, 0, &list));
    if (a && a->tensor) CLT_TRY(clt_literal_of_tensor(&c->onnx->build, &c->onnx->file, a->tensor, &value));
    else CLT_TRY(clt_literal_floats(&c->onnx->build, &(float){0}, 1, &value));
    if (value->elements != 1) return clt_fail(CLT_E_FORMAT, "a value of %lld elements, not of one", (long long)value->elements);
    value->shape = (clt_shape){.rank = list.n};
    for (int d = 0; d < list.n; d++) {
        value->shape.dims[d] = 1;
        if (list.kinds[d] == CLT_ONNX_OPEN) return clt_fail(CLT_E_UNSUPPORTED, "a size that follows the batch in a way that is not known");
        if (list.kinds[d] == CLT_ONNX_NUMBER && list.at[d] < 1) return clt_fail(CLT_E_UNSUPPORTED, "a size of %lld", (long long)list.at[d]);
        shape.dims[d] = list.at[d];
    }
    shape.rank = list.n;
    clt_tensor *one;
    CLT_TRY(clt_onnx_constant(c, value, &one));
    out[0] = clt_expand(one, shape);
    c->out_type = value->type;
    return CLT_OK;
}

/* As often as the batch or the length says where there is one, which is no copy; else a number of times. */
static clt_status map_tile(clt_onnx_call *c, clt_tensor **out) {
    enum { MOST_COPIES = 64 };
    clt_tensor *x, *copies[MOST_COPIES];
    clt_onnx_list times;
    clt_shape shape = {0};
    bool stretched = false;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    CLT_TRY(clt_onnx_list_of(c, 1, &times));
    if (times.n != x->shape.rank) return clt_fail(CLT_E_SHAPE, "its repetitions are not as many as its dimensions");
    shape.rank = times.n;
    for (int d = 0; d < times.n; d++) {
        bool number = times.kinds[d] == CLT_ONNX_NUMBER, one = clt_tensor_extent(x).dims[d] == 1;
        shape.dims[d] = one && !(number && times.at[d] == 1) ? times.at[d] : -1;
        if (number && times.at[d] >= 1 && (one || times.at[d] <= MOST_COPIES)) stretched |= shape.dims[d] != -1;
        else if (times.kinds[d] == CLT_ONNX_FOLLOWS && one) stretched = true;
        else return number ? clt_fail(CLT_E_UNSUPPORTED, "%lld repetitions", (long long)times.at[d])
                           : clt_fail(CLT_E_UNSUPPORTED, "repetitions of more than one place that follow the batch or the length");
    }
    if (stretched) x = clt_expand(x, shape);
    for (int d = 0; d < times.n; d++) {
        if (shape.dims[d] != -1) continue;
        for (int i = 0; i < times.at[d]; i++) copies[i] = x;
        if (times.at[d] > 1) x = clt_concat(copies, (int)times.at[d], d);
    }
    out[0] = x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* Those that are too large for literals. */
static clt_status map_constant(clt_onnx_call *c, clt_tensor **out) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "value", CLT_ONNX_A_TENSOR);
    if (!a || !a->tensor) return clt_fail(CLT_E_UNSUPPORTED, "a list of more than %d numbers", CLT_ONNX_MOST_LITERAL);
    c->out_type = a->tensor->type;
    return clt_onnx_constant_stored(c, a->tensor, &out[0]);
}

const clt_onnx_rule clt_onnx_shape_rules[] = {
    {"Reshape", map_reshape}, {"Flatten", map_flatten}, {"Transpose", map_transpose}, {"Unsqueeze", map_unsqueeze}, {"Squeeze", map_squeeze},
    {"Concat", map_concat}, {"Slice", map_slice}, {"Split", map_split}, {"SplitToSequence", map_split_to_sequence}, {"SequenceAt", map_sequence_at}, {"Pad", map_pad}, {"Expand", map_expand}, {"ConstantOfShape", map_constant_of_shape}, {"Tile", map_tile},
    {"Constant", map_constant}, {0},
};
