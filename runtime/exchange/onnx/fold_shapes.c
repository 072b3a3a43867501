/* Constants, sizes, and elements that stay as they are in another shape or order. */
#include <string.h>

#include "runtime/exchange/onnx/fold.h"

static clt_status fold_constant(const clt_onnx_folding *f) {
    for (size_t i = 0; i < f->node->n_attributes; i++) {
        const clt_onnx_attribute *a = &f->node->attributes[i];
        if (!strcmp(a->name, "value") && a->tensor) return clt_literal_of_tensor(f->arena, f->file, a->tensor, f->out);
        if (!strcmp(a->name, "value_int")) return clt_literal_integers(f->arena, &a->i, -1, f->out);
        if (!strcmp(a->name, "value_ints")) return clt_literal_integers(f->arena, a->ints, (int64_t)a->n, f->out);
        if (!strcmp(a->name, "value_float")) return clt_literal_floats(f->arena, &a->f, -1, f->out);
        if (!strcmp(a->name, "value_floats")) return clt_literal_floats(f->arena, a->floats, (int64_t)a->n, f->out);
    }
    return clt_fail(CLT_E_UNSUPPORTED, "a constant that is neither a tensor nor a list of numbers");
}

static clt_status fold_shape(const clt_onnx_folding *f) {
    const clt_literal *x;
    CLT_TRY(clt_fold_need(f, 0, &x));
    return clt_onnx_fold_shape_of(f, &x->shape);
}

/* Of a tensor nothing but the shape has to be known. Bounds may lie outside of it, and are then brought back. */
clt_status clt_onnx_fold_shape_of(const clt_onnx_folding *f, const clt_shape *shape) {
    if (!strcmp(f->node->op, "Size")) {
        int64_t elements = clt_shape_elements(shape);
        return clt_literal_integers(f->arena, &elements, -1, f->out);
    }
    int64_t start = clt_fold_int(f, "start", 0), end = clt_fold_int(f, "end", shape->rank);
    if (start < 0) start += shape->rank;
    if (end < 0) end += shape->rank;
    start = CLT_MAX(CLT_MIN(start, shape->rank), 0);
    end = CLT_MAX(CLT_MIN(end, shape->rank), start);
    return clt_literal_integers(f->arena, shape->dims + start, end - start, f->out);
}

/* ---- the same elements in another shape ---- */

static clt_status in_shape(const clt_onnx_folding *f, const clt_literal *x, const clt_shape *shape) {
    char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
    if (clt_shape_elements(shape) != x->elements)
        return clt_fail(CLT_E_SHAPE, "%s cannot become %s", clt_shape_text(&x->shape, from), clt_shape_text(shape, to));
    CLT_TRY(clt_literal_new(f->arena, x->type, shape, f->out));
    for (int64_t i = 0; i < x->elements; i++) clt_fold_copy(f->out[0], i, x, i);
    return CLT_OK;
}

/* A list of sizes as a shape; of them -1 and 0 may mean something. */
static clt_status shape_of_list(const clt_literal *list, int64_t least, clt_shape *shape) {
    if (list->elements > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%lld dimensions, more than %d", (long long)list->elements, CLT_MAX_RANK);
    shape->rank = (int)list->elements;
    for (int d = 0; d < shape->rank; d++) {
        shape->dims[d] = list->integers[d];
        if (shape->dims[d] < least) return clt_fail(CLT_E_SHAPE, "a dimension of %lld", (long long)shape->dims[d]);
    }
    return CLT_OK;
}

static clt_status fold_reshape(const clt_onnx_folding *f) {
    const clt_literal *x, *list;
    clt_shape shape;
    int64_t known = 1;
    int open = -1;
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_integers(f, 1, &list));
    CLT_TRY(shape_of_list(list, -1, &shape));
    for (int d = 0; d < shape.rank; d++) {
        if (shape.dims[d] == 0 && !clt_fold_int(f, "allowzero", 0)) {
            if (d >= x->shape.rank) return clt_fail(CLT_E_SHAPE, "dimension %d is to be kept, of %d", d, x->shape.rank);
            shape.dims[d] = x->shape.dims[d];
        }
        if (shape.dims[d] == -1 && open >= 0) return clt_fail(CLT_E_SHAPE, "two dimensions are -1");
        if (shape.dims[d] == -1) open = d;
        else if (__builtin_mul_overflow(known, shape.dims[d], &known)) return clt_fail(CLT_E_SHAPE, "the product of the dimensions is too large");
    }
    if (open >= 0) shape.dims[open] = known ? x->elements / known : 0;
    return in_shape(f, x, &shape);
}

static clt_status fold_flatten(const clt_onnx_folding *f) {
    const clt_literal *x;
    clt_shape shape = CLT_SHAPE(1, 1);
    int64_t axis = clt_fold_int(f, "axis", 1);
    CLT_TRY(clt_fold_need(f, 0, &x));
    if (axis < 0) axis += x->shape.rank;
    if (axis < 0 || axis > x->shape.rank) return clt_fail(CLT_E_SHAPE, "axis %lld of %d dimensions", (long long)axis, x->shape.rank);
    for (int d = 0; d < x->shape.rank; d++) shape.dims[d >= axis] *= x->shape.dims[d];
    return in_shape(f, x, &shape);
}

static clt_status fold_unsqueeze(const clt_onnx_folding *f) {
    const clt_literal *x, *list;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, "axes", CLT_ONNX_A_INTS);
    clt_shape shape = {0};
    bool added[CLT_MAX_RANK] = {0};
    int axes[CLT_MAX_RANK], n, next = 0;
    CLT_TRY(clt_fold_need(f, 0, &x));
    if (!a) CLT_TRY(clt_fold_integers(f, 1, &list));
    int64_t rank = x->shape.rank + (a ? (int64_t)a->n : list->elements); /* of the result, from which axes count */
    if (rank > CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "%lld dimensions, more than %d", (long long)rank, CLT_MAX_RANK);
    CLT_TRY(clt_fold_axes(f, "axes", 1, (int)rank, axes, &n));
    for (int i = 0; i < n; i++) added[axes[i]] = true;
    shape.rank = (int)rank;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = added[d] ? 1 : x->shape.dims[next++];
    return in_shape(f, x, &shape);
}

static clt_status fold_squeeze(const clt_onnx_folding *f) {
    const clt_literal *x;
    clt_shape shape = {0};
    bool dropped[CLT_MAX_RANK] = {0};
    int axes[CLT_MAX_RANK], n;
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_axes(f, "axes", 1, x->shape.rank, axes, &n));
    for (int i = 0; i < n; i++) dropped[axes[i]] = true;
    for (int d = 0; d < x->shape.rank; d++) {
        if (n < 0 ? x->shape.dims[d] == 1 : dropped[d]) continue;
        shape.dims[shape.rank++] = x->shape.dims[d];
    }
    return in_shape(f, x, &shape); /* refuses dimensions of more than 1 */
}

/* ---- in another order, or several times ---- */

static clt_status fold_transpose(const clt_onnx_folding *f) {
    const clt_literal *x;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, "perm", CLT_ONNX_A_INTS);
    clt_shape shape = {0};
    int64_t own[CLT_MAX_RANK], strides[CLT_MAX_RANK];
    bool seen[CLT_MAX_RANK] = {0};
    CLT_TRY(clt_fold_need(f, 0, &x));
    shape.rank = x->shape.rank;
    if (a && a->n != (size_t)shape.rank) return clt_fail(CLT_E_SHAPE, "an order of %zu dimensions, of %d", a->n, shape.rank);
    clt_shape_strides(&x->shape, own);
    for (int d = 0; d < shape.rank; d++) {
        int64_t from = a ? a->ints[d] : shape.rank - 1 - d;
        if (from < 0 || from >= shape.rank || seen[from]) return clt_fail(CLT_E_SHAPE, "the order of the dimensions is none");
        seen[from] = true;
        shape.dims[d] = x->shape.dims[from];
        strides[d] = own[from];
    }
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    for (int64_t e = 0; e < x->elements; e++) clt_fold_copy(f->out[0], e, x, clt_fold_place(&shape, e, strides));
    return CLT_OK;
}

static bool is_uniform(const clt_literal *x) {
    for (int64_t e = 1; e < x->elements; e++)
        if (x->type == CLT_ONNX_FLOAT ? x->floats[e] != x->floats[0] : x->integers[e] != x->integers[0]) return false;
    return x->elements > 0;
}

/* The first state of a recurrent layer, [1, N, H], is of the batch that the file was exported at, where that has no name: one number throughout, of which
 * there are as many at another batch. */
static bool is_of_another_batch(const clt_literal *x, const clt_shape *asked) {
    int others = 0;
    for (int d = 0; d < x->shape.rank && x->shape.rank == asked->rank; d++) others += x->shape.dims[d] != asked->dims[d] && x->shape.dims[d] != 1;
    return others == 1 && is_uniform(x);
}

static clt_status fold_expand(const clt_onnx_folding *f) {
    const clt_literal *x, *list;
    clt_shape asked, shape;
    int64_t strides[CLT_MAX_RANK];
    char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_integers(f, 1, &list));
    CLT_TRY(shape_of_list(list, 0, &asked));
    if (!clt_shape_broadcast(&x->shape, &asked, &shape)) {
        if (!is_of_another_batch(x, &asked))
            return clt_fail(CLT_E_SHAPE, "%s cannot be stretched to %s", clt_shape_text(&x->shape, from), clt_shape_text(&asked, to));
        CLT_TRY(clt_literal_new(f->arena, x->type, &asked, f->out));
        for (int64_t e = 0; e < f->out[0]->elements; e++) clt_fold_copy(f->out[0], e, x, 0);
        return CLT_OK;
    }
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    clt_fold_strides(&x->shape, &shape, strides);
    for (int64_t e = 0; e < f->out[0]->elements; e++) clt_fold_copy(f->out[0], e, x, clt_fold_place(&shape, e, strides));
    return CLT_OK;
}

static clt_status fold_tile(const clt_onnx_folding *f) {
    const clt_literal *x, *times;
    clt_shape shape;
    int64_t own[CLT_MAX_RANK];
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(clt_fold_integers(f, 1, &times));
    shape = x->shape;
    if (times->elements != shape.rank) return clt_fail(CLT_E_SHAPE, "%lld numbers of repetitions, of %d dimensions", (long long)times->elements, shape.rank);
    for (int d = 0; d < shape.rank; d++)
        if (times->integers[d] < 0 || __builtin_mul_overflow(shape.dims[d], times->integers[d], &shape.dims[d]))
            return clt_fail(CLT_E_SHAPE, "%lld repetitions", (long long)times->integers[d]);
    CLT_TRY(clt_literal_new(f->arena, x->type, &shape, f->out));
    clt_shape_strides(&x->shape, own);
    for (int64_t e = 0; e < f->out[0]->elements; e++) {
        int64_t rest = e, place = 0;
        for (int d = shape.rank; d-- > 0; rest /= shape.dims[d]) place += rest % shape.dims[d] % x->shape.dims[d] * own[d];
        clt_fold_copy(f->out[0], e, x, place);
    }
    return CLT_OK;
}

static clt_status fold_concat(const clt_onnx_folding *f) {
    const clt_literal *x, *first;
    clt_shape shape;
    int axis;
    CLT_TRY(clt_fold_need(f, 0, &first));
    CLT_TRY(clt_fold_axis(clt_fold_int(f, "axis", 0), first->shape.rank, &axis));
    shape = first->shape;
    shape.dims[axis] = 0;
    for (size_t i = 0; i < f->node->n_inputs; i++) {
        CLT_TRY(clt_fold_need(f, i, &x));
        clt_shape other = x->shape;
        if (x->type != first->type || other.rank != shape.rank) return clt_fail(CLT_E_SHAPE, "operands of different types or ranks");
        if (__builtin_add_overflow(shape.dims[axis], other.dims[axis], &shape.dims[axis])) return clt_fail(CLT_E_SHAPE, "its result is too large");
        other.dims[axis] = first->shape.dims[axis];
        if (!clt_shape_equal(&other, &first->shape)) return clt_fail(CLT_E_SHAPE, "operands that differ beside axis %d", axis);
    }
    CLT_TRY(clt_literal_new(f->arena, first->type, &shape, f->out));
    int64_t inner = 1, outer = 1, done = 0;
    for (int d = 0; d < shape.rank; d++) *(d < axis ? &outer : &inner) *= d == axis ? 1 : shape.dims[d];
    for (size_t i = 0; i < f->node->n_inputs; i++) {
        const clt_literal *part = f->in[i];
        int64_t run = part->shape.dims[axis] * inner;
        for (int64_t o = 0; o < outer; o++)
            for (int64_t e = 0; e < run; e++) clt_fold_copy(f->out[0], o * shape.dims[axis] * inner + done + e, part, o * run + e);
        done += run;
    }
    return CLT_OK;
}

/* ---- made of sizes ---- */

static clt_status fold_constant_of_shape(const clt_onnx_folding *f) {
    const clt_literal *list;
    const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, "value", CLT_ONNX_A_TENSOR);
    clt_literal *value = NULL;
    clt_shape shape;
    CLT_TRY(clt_fold_integers(f, 0, &list));
    CLT_TRY(shape_of_list(list, 0, &shape));
    if (a && a->tensor) CLT_TRY(clt_literal_of_tensor(f->arena, f->file, a->tensor, &value));
    if (value && value->elements != 1) return clt_fail(CLT_E_FORMAT, "a value of %lld elements, not of one", (long long)value->elements);
    CLT_TRY(clt_literal_new(f->arena, value ? value->type : CLT_ONNX_FLOAT, &shape, f->out));
    for (int64_t i = 0; value && i < f->out[0]->elements; i++) clt_fold_copy(f->out[0], i, value, 0);
    return CLT_OK;
}

static clt_status fold_range(const clt_onnx_folding *f) {
    const clt_literal *of[3];
    for (size_t i = 0; i < 3; i++) {
        CLT_TRY(clt_fold_need(f, i, &of[i]));
        if (of[i]->elements != 1 || of[i]->type != of[0]->type) return clt_fail(CLT_E_FORMAT, "start, limit and step are not of one element and type");
    }
    bool floats = of[0]->type == CLT_ONNX_FLOAT;
    double start = floats ? of[0]->floats[0] : (double)of[0]->integers[0], limit = floats ? of[1]->floats[0] : (double)of[1]->integers[0],
           step = floats ? of[2]->floats[0] : (double)of[2]->integers[0];
    double count = step == 0 ? NAN : ceil((limit - start) / step);
    if (!(count <= CLT_ONNX_MOST_LITERAL)) return clt_fail(CLT_E_RANGE, "from %g to %g by %g", start, limit, step);
    clt_shape shape = CLT_SHAPE(count > 0 ? (int64_t)count : 0);
    CLT_TRY(clt_literal_new(f->arena, of[0]->type, &shape, f->out));
    for (int64_t i = 0; i < f->out[0]->elements; i++) {
        if (floats) f->out[0]->floats[i] = of[0]->floats[0] + (float)i * of[2]->floats[0];
        else f->out[0]->integers[i] = (int64_t)((uint64_t)of[0]->integers[0] + (uint64_t)i * (uint64_t)of[2]->integers[0]);
    }
    return CLT_OK;
}

const clt_onnx_fold_row clt_onnx_fold_shapes[] = {
    {"Constant", fold_constant}, {"Shape", fold_shape}, {"Size", fold_shape}, {"Reshape", fold_reshape}, {"Flatten", fold_flatten},
    {"Unsqueeze", fold_unsqueeze}, {"Squeeze", fold_squeeze}, {"Transpose", fold_transpose}, {"Expand", fold_expand}, {"Tile", fold_tile},
    {"Concat", fold_concat}, {"ConstantOfShape", fold_constant_of_shape}, {"Range", fold_range}, {0},
};
