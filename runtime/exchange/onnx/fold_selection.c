/* Parts of what is known, and sums over it. */
#include <string.h>

#include "runtime/exchange/onnx/fold.h"

/* A place from -n to n - 1 as one from 0. */
static clt_status place_in(int64_t index, int64_t n, int64_t *place) {
    if (index < -n || index >= n) return clt_fail(CLT_E_FORMAT, "index %lld of %lld places", (long long)index, (long long)n);
    *place = index < 0 ? index + n : index;
    return CLT_OK;
}

/* Elements before and behind an axis. */
static void around(const clt_shape *shape, int axis, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int d = 0; d < shape->rank; d++)
        if (d != axis) *(d < axis ? outer : inner) *= shape->dims[d];
}

static clt_status need_indices(const clt_onnx_folding *f, const clt_literal **x, const clt_literal **indices) {
    CLT_TRY(clt_fold_need(f, 0, x));
    CLT_TRY(clt_fold_need(f, 1, indices));
    return (*indices)->type != CLT_ONNX_FLOAT ? CLT_OK : clt_fail(CLT_E_FORMAT, "its indices are not integers");
}

static clt_status fold_gather(const clt_onnx_folding *f) {
    const clt_literal *x, *indices;
    clt_shape shape = {0};
    int axis;
    int64_t outer, inner, from = 0;
    CLT_TRY(need_indices(f, &x, &indices));
    CLT_TRY(clt_fold_axis(clt_fold_int(f, "axis", 0), x->shape.rank, &axis));
    if (x->shape.rank - 1 + indices->shape.rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "its result has more than %d dimensions", CLT_MAX_RANK);
    for (int d = 0; d < axis; d++) shape.dims[shape.rank++] = x->shape.dims[d];
    for (int d = 0; d < indices->shape.rank; d++) shape.dims[shape.rank++] = indices->shape.dims[d];
    for (int d = axis + 1; d < x->shape.rank; d++) shape.dims[shape.rank++] = x->shape.dims[d];
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    around(&x->shape, axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < indices->elements; i++) {
            CLT_TRY(place_in(indices->integers[i], x->shape.dims[axis], &from));
            for (int64_t e = 0; e < inner; e++)
                clt_fold_copy(f->out[0], (o * indices->elements + i) * inner + e, x, (o * x->shape.dims[axis] + from) * inner + e);
        }
    return CLT_OK;
}

static clt_status fold_gather_elements(const clt_onnx_folding *f) {
    const clt_literal *x, *indices;
    int axis;
    int64_t own[CLT_MAX_RANK], from;
    CLT_TRY(need_indices(f, &x, &indices));
    CLT_TRY(clt_fold_axis(clt_fold_int(f, "axis", 0), x->shape.rank, &axis));
    if (indices->shape.rank != x->shape.rank) return clt_fail(CLT_E_SHAPE, "indices of %d dimensions, not of %d", indices->shape.rank, x->shape.rank);
    for (int d = 0; d < x->shape.rank; d++)
        if (d != axis && indices->shape.dims[d] > x->shape.dims[d]) return clt_fail(CLT_E_SHAPE, "more indices than places along axis %d", d);
    CLT_TRY(clt_literal_new(f->arena, x->type, &indices->shape, f->out));
    clt_shape_strides(&x->shape, own);
    for (int64_t e = 0; e < indices->elements; e++) {
        int64_t rest = e, at = 0;
        for (int d = x->shape.rank; d-- > 0; rest /= indices->shape.dims[d]) {
            from = rest % indices->shape.dims[d];
            if (d == axis) CLT_TRY(place_in(indices->integers[e], x->shape.dims[d], &from));
            at += from * own[d];
        }
        clt_fold_copy(f->out[0], e, x, at);
    }
    return CLT_OK;
}

static clt_status fold_gather_nd(const clt_onnx_folding *f) {
    const clt_literal *x, *indices;
    clt_shape shape = {0};
    int64_t own[CLT_MAX_RANK], batch = clt_fold_int(f, "batch_dims", 0), from = 0;
    CLT_TRY(need_indices(f, &x, &indices));
    int rank = indices->shape.rank;
    int64_t depth = rank ? indices->shape.dims[rank - 1] : 0;
    if (batch < 0 || batch >= rank || depth < 1 || batch + depth > x->shape.rank) return clt_fail(CLT_E_SHAPE, "its indices do not fit what they index");
    for (int d = 0; d < rank - 1; d++) shape.dims[shape.rank++] = indices->shape.dims[d];
    if (shape.rank + x->shape.rank - batch - depth > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "its result has more than %d dimensions", CLT_MAX_RANK);
    for (int d = (int)(batch + depth); d < x->shape.rank; d++) shape.dims[shape.rank++] = x->shape.dims[d];
    int64_t inner = 1, outer = 1, samples = 1;
    for (int d = 0; d < batch; d++) {
        if (indices->shape.dims[d] != x->shape.dims[d]) return clt_fail(CLT_E_SHAPE, "batch dimension %d differs", d);
        samples *= x->shape.dims[d];
    }
    for (int d = (int)(batch + depth); d < x->shape.rank; d++) inner *= x->shape.dims[d];
    for (int d = (int)batch; d < rank - 1; d++) outer *= indices->shape.dims[d];
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    clt_shape_strides(&x->shape, own);
    for (int64_t o = 0; o < samples * outer; o++) {
        int64_t at = samples ? o / outer * (x->elements / samples) : 0;
        for (int64_t k = 0; k < depth; k++) {
            CLT_TRY(place_in(indices->integers[o * depth + k], x->shape.dims[batch + k], &from));
            at += from * own[batch + k];
        }
        for (int64_t e = 0; e < inner; e++) clt_fold_copy(f->out[0], o * inner + e, x, at + e);
    }
    return CLT_OK;
}

/* ---- slices ---- */

typedef struct range {
    int64_t start, step, count;
} range;

/* Start and end are brought back into the dimension, as NumPy does it. */
static clt_status range_of(int64_t start, int64_t end, int64_t step, int64_t n, range *to) {
    if (step == 0) return clt_fail(CLT_E_FORMAT, "a step of 0");
    if (start < 0) start = start < -n ? (step < 0 ? -1 : 0) : start + n;
    if (end < 0) end = end < -n ? -1 : end + n;
    if (step > 0) {
        start = CLT_MIN(start, n);
        end = CLT_MIN(CLT_MAX(end, 0), n);
    } else {
        start = CLT_MIN(start, n - 1);
        end = CLT_MIN(end, n - 1);
    }
    int64_t span = step > 0 ? end - start : start - end;
    uint64_t size = step > 0 ? (uint64_t)step : -(uint64_t)step;
    *to = (range){start, step, span > 0 ? (int64_t)(((uint64_t)span - 1) / size) + 1 : 0};
    return CLT_OK;
}

/* Starts, ends, axes and steps: inputs from opset 10 on, attributes before. */
static clt_status ranges_of(const clt_onnx_folding *f, const clt_shape *shape, range ranges[CLT_MAX_RANK]) {
    const clt_literal *starts, *ends, *steps = clt_fold_in(f, 4);
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, "starts", CLT_ONNX_A_INTS), *b = clt_onnx_attribute_of(f->node, "ends", CLT_ONNX_A_INTS);
    int axes[CLT_MAX_RANK], n_axes;
    CLT_TRY(clt_fold_axes(f, "axes", 3, shape->rank, axes, &n_axes));
    if (!a) CLT_TRY(clt_fold_integers(f, 1, &starts));
    if (!b) CLT_TRY(clt_fold_integers(f, 2, &ends));
    if (steps) CLT_TRY(clt_fold_integers(f, 4, &steps));
    int64_t n = a ? (int64_t)a->n : starts->elements;
    if (n != (b ? (int64_t)b->n : ends->elements) || (steps && steps->elements != n) || n > (n_axes < 0 ? shape->rank : n_axes))
        return clt_fail(CLT_E_SHAPE, "starts, ends, axes and steps of different lengths");
    for (int d = 0; d < shape->rank; d++) ranges[d] = (range){0, 1, shape->dims[d]};
    for (int i = 0; i < n; i++) {
        int axis = n_axes < 0 ? i : axes[i];
        CLT_TRY(range_of(a ? a->ints[i] : starts->integers[i], b ? b->ints[i] : ends->integers[i], steps ? steps->integers[i] : 1, shape->dims[axis], &ranges[axis]));
    }
    return CLT_OK;
}

static clt_status fold_slice(const clt_onnx_folding *f) {
    const clt_literal *x;
    range ranges[CLT_MAX_RANK];
    int64_t own[CLT_MAX_RANK];
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(ranges_of(f, &x->shape, ranges));
    clt_shape shape = x->shape;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = ranges[d].count;
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    clt_shape_strides(&x->shape, own);
    for (int64_t e = 0; e < f->out[0]->elements; e++) {
        int64_t rest = e, at = 0;
        for (int d = shape.rank; d-- > 0; rest /= shape.dims[d]) at += (ranges[d].start + rest % shape.dims[d] * ranges[d].step) * own[d];
        clt_fold_copy(f->out[0], e, x, at);
    }
    return CLT_OK;
}

/* Sizes: an attribute before opset 13, an input from then on; equal ones where neither is there, the last smaller from 18 on. */
static clt_status fold_split(const clt_onnx_folding *f) {
    const clt_literal *x, *sizes = clt_fold_in(f, 1);
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, "split", CLT_ONNX_A_INTS);
    int64_t n = (int64_t)f->node->n_outputs, done = 0, outer, inner;
    int axis;
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_axis(clt_fold_int(f, "axis", 0), x->shape.rank, &axis));
    if (sizes) CLT_TRY(clt_fold_integers(f, 1, &sizes));
    if (n < 1 || (a && (int64_t)a->n != n) || (sizes && sizes->elements != n)) return clt_fail(CLT_E_SHAPE, "its sizes are not as many as its outputs");
    int64_t whole = x->shape.dims[axis], equal = (whole + n - 1) / n;
    around(&x->shape, axis, &outer, &inner);
    for (int64_t i = 0; i < n; i++) {
        clt_shape shape = x->shape;
        int64_t size = a ? a->ints[i] : sizes ? sizes->integers[i] : CLT_MIN(equal, whole - done);
        if (size < 0 || size > whole - done) return clt_fail(CLT_E_SHAPE, "a part of %lld of %lld places", (long long)size, (long long)whole);
        shape.dims[axis] = size;
        CLT_TRY(clt_literal_new(f->arena, x->type, &shape, &f->out[i]));
        for (int64_t o = 0; o < outer; o++)
            for (int64_t e = 0; e < size * inner; e++) clt_fold_copy(f->out[i], o * size * inner + e, x, (o * whole + done) * inner + e);
        done += size;
    }
    return done == whole ? CLT_OK : clt_fail(CLT_E_SHAPE, "parts of %lld places in all, of %lld", (long long)done, (long long)whole);
}

/* ---- along axes ---- */

static clt_status fold_cumsum(const clt_onnx_folding *f) {
    const clt_literal *x, *at;
    int axis;
    int64_t outer, inner;
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_integers(f, 1, &at));
    if (at->elements != 1) return clt_fail(CLT_E_FORMAT, "%lld axes, not one", (long long)at->elements);
    CLT_TRY(clt_fold_axis(at->integers[0], x->shape.rank, &axis));
    CLT_TRY(clt_literal_new(f->arena, x->type, &x->shape, f->out));
    bool exclusive = clt_fold_int(f, "exclusive", 0), reverse = clt_fold_int(f, "reverse", 0);
    int64_t n = x->shape.dims[axis];
    around(&x->shape, axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t e = 0; e < inner; e++) {
            float floats = 0;
            uint64_t integers = 0;
            for (int64_t k = 0; k < n; k++) {
                int64_t i = (o * n + (reverse ? n - 1 - k : k)) * inner + e;
                float kept_floats = floats;
                uint64_t kept = integers;
                if (x->type == CLT_ONNX_FLOAT) floats += x->floats[i];
                else integers += (uint64_t)x->integers[i];
                if (x->type == CLT_ONNX_FLOAT) f->out[0]->floats[i] = exclusive ? kept_floats : floats;
                else f->out[0]->integers[i] = (int64_t)(exclusive ? kept : integers);
            }
        }
    return CLT_OK;
}

static clt_status fold_trilu(const clt_onnx_folding *f) {
    const clt_literal *x, *of = clt_fold_in(f, 1);
    bool upper = clt_fold_int(f, "upper", 1);
    int64_t k = 0;
    CLT_TRY(clt_fold_need(f, 0, &x));
    if (of) CLT_TRY(clt_fold_integers(f, 1, &of));
    if (of && of->elements == 1) k = CLT_MAX(CLT_MIN(of->integers[0], (int64_t)CLT_ONNX_MOST_LITERAL), -(int64_t)CLT_ONNX_MOST_LITERAL);
    if (x->shape.rank < 2) return clt_fail(CLT_E_SHAPE, "no matrix");
    int64_t rows = x->shape.dims[x->shape.rank - 2], columns = x->shape.dims[x->shape.rank - 1];
    CLT_TRY(clt_literal_new(f->arena, x->type, &x->shape, f->out));
    for (int64_t e = 0; e < x->elements; e++) {
        int64_t row = e / columns % rows, column = e % columns;
        if (upper ? column >= row + k : column <= row + k) clt_fold_copy(f->out[0], e, x, e);
    }
    return CLT_OK;
}

static clt_status fold_non_zero(const clt_onnx_folding *f) {
    const clt_literal *x;
    int64_t own[CLT_MAX_RANK], n = 0;
    CLT_TRY(clt_fold_need(f, 0, &x));
#define IS_SET(e) (x->type == CLT_ONNX_FLOAT ? x->floats[e] != 0 : x->integers[e] != 0)
    for (int64_t e = 0; e < x->elements; e++) n += IS_SET(e);
    clt_shape shape = CLT_SHAPE(x->shape.rank, n);
    CLT_TRY(clt_literal_new(f->arena, CLT_ONNX_INT64, &shape, f->out));
    clt_shape_strides(&x->shape, own);
    for (int64_t e = 0, at = 0; e < x->elements; e++) {
        if (!IS_SET(e)) continue;
        for (int d = 0; d < x->shape.rank; d++) f->out[0]->integers[d * n + at] = e / own[d] % x->shape.dims[d];
        at++;
    }
#undef IS_SET
    return CLT_OK;
}

/* One element more into a sum, product, largest or least; the first is taken as it is. */
static void reduce_one(const char *op, clt_literal *y, int64_t to, const clt_literal *x, int64_t from, bool first) {
    bool sums = !strcmp(op, "ReduceSum") || !strcmp(op, "ReduceMean"), products = !strcmp(op, "ReduceProd"), largest = !strcmp(op, "ReduceMax");
    if (first) {
        clt_fold_copy(y, to, x, from);
    } else if (y->type == CLT_ONNX_FLOAT) {
        float *a = &y->floats[to], b = x->floats[from];
        *a = sums ? *a + b : products ? *a * b : (largest ? b > *a : b < *a) || b != b ? b : *a;
    } else {
        int64_t *a = &y->integers[to], b = x->integers[from];
        uint64_t sum = (uint64_t)*a + (uint64_t)b, product = (uint64_t)*a * (uint64_t)b;
        *a = sums ? (int64_t)sum : products ? (int64_t)product : (largest ? b > *a : b < *a) ? b : *a;
    }
}

static clt_status fold_reduce(const clt_onnx_folding *f) {
    const clt_literal *x;
    clt_shape stretched, shape = {0};
    int axes[CLT_MAX_RANK], n;
    int64_t strides[CLT_MAX_RANK], folded = 1;
    bool keeps = clt_fold_int(f, "keepdims", 1);
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_axes(f, "axes", 1, x->shape.rank, axes, &n));
    if (n <= 0 && clt_fold_int(f, "noop_with_empty_axes", 0)) return clt_onnx_fold_of("Identity")(f);
    stretched = x->shape;
    for (int i = 0; i < (n <= 0 ? x->shape.rank : n); i++) stretched.dims[n <= 0 ? i : axes[i]] = -1;
    for (int d = 0; d < x->shape.rank; d++) {
        bool gone = stretched.dims[d] < 0;
        if (gone) folded *= x->shape.dims[d];
        if (gone) stretched.dims[d] = 1;
        if (!gone || keeps) shape.dims[shape.rank++] = stretched.dims[d];
    }
    if (folded == 0) return clt_fail(CLT_E_UNSUPPORTED, "it is over no element");
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    clt_literal *y = f->out[0];
    bool *begun;
    CLT_TRY(clt_arena_take(f->arena, (size_t)y->elements, sizeof *begun, &begun));
    clt_fold_strides(&stretched, &x->shape, strides);
    for (int64_t e = 0; e < x->elements; e++) {
        int64_t to = clt_fold_place(&x->shape, e, strides);
        reduce_one(f->node->op, y, to, x, e, !begun[to]);
        begun[to] = true;
    }
    if (strcmp(f->node->op, "ReduceMean")) return CLT_OK;
    for (int64_t i = 0; i < y->elements; i++) {
        if (y->type == CLT_ONNX_FLOAT) y->floats[i] /= (float)folded;
        else y->integers[i] /= folded;
    }
    return CLT_OK;
}

const clt_onnx_fold_row clt_onnx_fold_selection[] = {
    {"Gather", fold_gather}, {"GatherElements", fold_gather_elements}, {"GatherND", fold_gather_nd}, {"Slice", fold_slice}, {"Split", fold_split},
    {"CumSum", fold_cumsum}, {"Trilu", fold_trilu}, {"NonZero", fold_non_zero}, {"ReduceSum", fold_reduce}, {"ReduceProd", fold_reduce},
    {"ReduceMax", fold_reduce}, {"ReduceMin", fold_reduce}, {"ReduceMean", fold_reduce}, {0},
};
