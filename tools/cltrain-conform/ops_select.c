/* What chooses by places, gives places, or goes along them. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The rows of x along an axis: element k of row r is at place_of(r, k). */
typedef struct rows {
    int64_t count, n, inner;
} rows;

static rows rows_of(const clt_shape *shape, int axis) {
    rows r = {1, shape->dims[axis], 1};
    for (int d = 0; d < shape->rank; d++)
        if (d != axis) r.count *= shape->dims[d];
    for (int d = axis + 1; d < shape->rank; d++) r.inner *= shape->dims[d];
    return r;
}

static int64_t place_of(const rows *r, int64_t row, int64_t k) {
    return row / r->inner * r->n * r->inner + row % r->inner + k * r->inner;
}

static int axis_of(const clt_shape *shape, int axis) {
    return axis < 0 ? axis + shape->rank : axis;
}

static double reference_argmax(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int axis = axis_of(&x->shape, at->axis);
    rows r = rows_of(&x->shape, axis);
    clt_shape shape = {0};
    for (int d = 0; d < x->shape.rank; d++)
        if (d != axis) shape.dims[shape.rank++] = x->shape.dims[d];
    array_resize(y, shape);
    for (int64_t row = 0; row < r.count; row++) {
        int64_t best = 0;
        for (int64_t k = 1; k < r.n; k++) { /* the first of equals; NaN is larger than anything */
            double own = x->values[place_of(&r, row, k)], most = x->values[place_of(&r, row, best)];
            if (!isnan(most) && (isnan(own) || own > most)) best = k;
        }
        y->values[row] = (double)best;
    }
    return (double)array_count(x);
}

static double reference_cumsum(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    rows r = rows_of(&x->shape, axis_of(&x->shape, at->axis));
    array_resize(y, x->shape);
    for (int64_t row = 0; row < r.count; row++) {
        double sum = 0;
        for (int64_t k = 0; k < r.n; k++) y->values[place_of(&r, row, k)] = sum += x->values[place_of(&r, row, k)];
    }
    return (double)r.n * (double)array_count(x);
}

static double reference_one_hot(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    shape.dims[shape.rank++] = at->first;
    array_clear(y, shape);
    for (int64_t i = 0; i < array_count(x); i++) {
        double index = x->values[i];
        if (index >= 0 && index < (double)at->first) y->values[i * at->first + (int64_t)index] = 1;
    }
    return (double)array_count(y);
}

/* x[0] at the places x[1] along an axis. */
static double reference_index_select(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    int axis = axis_of(&shape, at->axis);
    shape.dims[axis] = x[1].shape.dims[0];
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        memcpy(from, index, sizeof from);
        from[axis] = (int64_t)x[1].values[index[axis]];
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

/* ---- cases ---- */

BUILD(argmax, clt_argmax(x[0], at->axis))
BUILD(cumsum, clt_cumsum(x[0], at->axis))
BUILD(one_hot, clt_one_hot(x[0], at->first))
BUILD(index_select, clt_index_select(x[0], at->axis, x[1]))

static const operation argmax = OPERATION("argmax", "clt_argmax", argmax, argmax, .no_gradient = true),
                       cumsum = OPERATION("cumsum", "clt_cumsum", cumsum, cumsum),
                       cumsum_integers = OPERATION("cumsum", "clt_cumsum", cumsum, cumsum, .no_gradient = true, .ulp = 0), one_hot = OPERATION("one_hot", "clt_one_hot", one_hot, one_hot, .ulp = 1),
                       index_select = OPERATION("index_select", "clt_index_select", index_select, index_select, .ulp = 1);

/* Both along an axis. */
static void add_along(case_list *list, const char *variant, clt_shape shape, int axis, bool full) {
    operand x = {.shape = shape}, whole = {.shape = shape, .whole = true};
    const operation *ops[] = {&argmax, &argmax, &cumsum};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", variant, i == 1 ? (variant[0] ? "-ties" : "ties") : "");
        test_case *c = case_add(list, ops[i], name, i == 1 ? &whole : &x, 1);
        c->at.axis = axis;
        c->full = full;
        c->large = clt_shape_elements(&shape) > 20000;
    }
}

static void add_select(case_list *list, const char *variant, clt_shape shape, int axis, int n) {
    int at = axis < 0 ? axis + shape.rank : axis;
    operand x[] = {{.shape = shape}, {.dtype = CLT_I32, .shape = SHAPE(n), .low = 0, .high = (double)shape.dims[at], .constant = true}};
    case_add(list, &index_select, variant, x, 2)->at.axis = axis;
}

void cases_select(case_list *list) {
    add_along(list, "", (clt_shape)SHAPE(5, 7, 3), 1, false);
    add_along(list, "first", (clt_shape)SHAPE(9, 4), 0, false);
    add_along(list, "last", (clt_shape)SHAPE(4, 33), -1, false);
    add_along(list, "one", (clt_shape)SHAPE(3, 1, 2), 1, false);
    add_along(list, "row", (clt_shape)SHAPE(65), 0, false);
    add_along(list, "long", (clt_shape)SHAPE(2, 8193, 2), 1, false); /* more than one launch takes */
    operand whole = {.dtype = CLT_I32, .shape = SHAPE(3, 70, 2), .low = -3e7, .high = 3e7}; /* f32 has not all of their sums */
    case_add(list, &cumsum_integers, "integers", &whole, 1)->at.axis = 1;
    operand close = {.dtype = CLT_I32, .shape = SHAPE(4, 9, 3), .low = 1 << 28, .high = (1 << 28) + 12}; /* of which f32 has one */
    case_add(list, &argmax, "integers", &close, 1)->at.axis = 1;
    static const double ruled_out[] = {-INFINITY}, unknown[] = {1, NAN, 3, NAN};
    operand special = {.shape = SHAPE(6, 5), .special = {NAN, INFINITY, -INFINITY}, .n_special = 3}, none = {.shape = SHAPE(2, 3), .values = ruled_out, .n_values = 1};
    case_add(list, &argmax, "not-finite", &special, 1)->at.axis = 1;
    case_add(list, &argmax, "ruled-out", &none, 1)->at.axis = 1;
    operand unknowns = {.shape = SHAPE(2, 4), .values = unknown, .n_values = 4};
    case_add(list, &argmax, "nan", &unknowns, 1)->at.axis = 1;

    const int classes[] = {1, 5, 300};
    const char *const variants[] = {"one", "few", "many"};
    for (int i = 0; i < 3; i++) {
        operand x = {.dtype = CLT_I32, .shape = SHAPE(4, 3), .low = i ? -1 : 0, .high = classes[i] + (i > 0)}; /* some are no class */
        case_add(list, &one_hot, variants[i], &x, 1)->at.first = classes[i];
    }
    add_select(list, "", (clt_shape)SHAPE(4, 6, 3), 1, 5);
    add_select(list, "first", (clt_shape)SHAPE(7, 3), 0, 4);
    add_select(list, "last", (clt_shape)SHAPE(3, 2, 5), -1, 9); /* some twice */
    add_select(list, "one", (clt_shape)SHAPE(6), 0, 1);
}
