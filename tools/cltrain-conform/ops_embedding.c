/* Rows of a table, by index. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

/* weight [count, width], after the indices. */
static double reference_embedding(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t width = x[1].shape.dims[1], count = array_count(x);
    clt_shape shape = x[0].shape;
    shape.dims[shape.rank++] = width;
    array_resize(y, shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = (int64_t)x[0].values[i];
        bool inside = row >= 0 && row < x[1].shape.dims[0];
        for (int64_t k = 0; k < width; k++) y->values[i * width + k] = inside ? x[1].values[row * width + k] : NAN;
    }
    return (double)array_count(y);
}

/* Of the table. */
static void reference_embedding_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, (void)at;
    int64_t rows = x[1].shape.dims[0], width = x[1].shape.dims[1];
    array_clear(dx, x[1].shape);
    for (int64_t p = 0; p < array_count(x); p++) {
        int64_t row = (int64_t)x[0].values[p];
        for (int64_t k = 0; k < width && row >= 0 && row < rows; k++)
            dx->values[row * width + k] += dy->values[p * width + k];
    }
}

/* ---- cases ---- */

BUILD(embedding, clt_embedding(x[0], "w", at->first, at->last))

static const operation embedding = OPERATION("embedding", "clt_embedding clt_embedding_op", embedding, embedding, .ulp = 1);
/* An index that is no row gives NaN, and nothing to the table; a gradient that is NaN goes to its row alone. */
static const operation embedding_nan = OPERATION("embedding", "clt_embedding", embedding,
    embedding, .gradient = reference_embedding_gradient, .ulp = 1);

static test_case *add_embedding(case_list *list, const char *variant, clt_shape indices, int count,
                                int width, double low, double high) {
    operand x[] = {{.dtype = CLT_I32, .shape = indices, .low = low, .high = high},
                   {.variable = "w.weight", .shape = SHAPE(count, width)}};
    test_case *c = case_add(list, &embedding, variant, x, 2);
    c->at.first = count, c->at.last = width;
    return c;
}

void cases_embedding(case_list *list) {
    add_embedding(list, "", (clt_shape)SHAPE(37), 11, 5, 0, 11);
    add_embedding(list, "shares", (clt_shape)SHAPE(60), 70, 9, 0, 70); /* more than 32 rows */
    add_embedding(list, "repeated", (clt_shape)SHAPE(3, 129), 2, 7, 0, 2)->full = true;
    add_embedding(list, "one", (clt_shape)SHAPE(1), 1, 1, 0, 1)->full = true;
    add_embedding(list, "repeated", (clt_shape)SHAPE(6, 7), 3, 5, 0, 3);
    add_embedding(list, "repeated", (clt_shape)SHAPE(1031), 2, 3, 0, 2);
    add_embedding(list, "row", (clt_shape)SHAPE(9), 1, 7, 0, 1);
    add_embedding(list, "width-1", (clt_shape)SHAPE(2, 3), 6, 1, 0, 6);
    add_embedding(list, "index", (clt_shape){0}, 4, 3, 0, 4);
    add_embedding(list, "unread", (clt_shape)SHAPE(3, 1, 2), 301, 2, 0, 301);
    add_embedding(list, "", (clt_shape)SHAPE(1, 2, 1, 2, 1, 2, 1), 3, 2, 0, 3);
    /* More rounds than a work-item may make (see cl/prelude.cl). */
    test_case *many = add_embedding(list, "many", (clt_shape)SHAPE(70001), 5, 3, 0, 5);
    many->full = many->large = true;
    test_case *outside = add_embedding(list, "outside", (clt_shape)SHAPE(37), 11, 5, -3, 15);
    outside->operation = &embedding_nan;
    test_case *far_outside = add_embedding(list, "far-outside", (clt_shape)SHAPE(37), 11, 5, 0, 11);
    far_outside->operation = &embedding_nan;
    far_outside->x[0].special[0] = INT32_MIN, far_outside->x[0].special[1] = INT32_MAX, far_outside->x[0].n_special = 2;
    add_embedding(list, "wide", (clt_shape)SHAPE(37), 11, 259, 0, 11)->full = true;
    test_case *broken = add_embedding(list, "not-finite", (clt_shape)SHAPE(37), 11, 5, 0, 11);
    broken->operation = &embedding_nan;
    broken->seed_special = NAN;
}
