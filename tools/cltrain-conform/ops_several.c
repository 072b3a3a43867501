/* Ops that share operands: gradients are summed over the ways to a tensor. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

/* exp(x) tanh(x) + x */
BUILD(diamond, clt_add(clt_mul(clt_exp(x[0]), clt_tanh(x[0])), x[0]))
static double reference_diamond(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = exp(x->values[i]) * tanh(x->values[i]) + x->values[i];
    return 50.0 * (double)array_count(y);
}

/* Both operands of one op. */
BUILD(same, clt_mul(x[0], x[0]))
static double reference_same(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = x->values[i] * x->values[i];
    return (double)array_count(y);
}

/* Overlapping parts of one tensor. */
BUILD(parts, clt_mul(clt_slice(x[0], 0, 0, 36, 1), clt_slice(x[0], 0, 1, 37, 1)))
static double reference_parts(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, (clt_shape)SHAPE(36));
    for (int64_t i = 0; i < 36; i++) y->values[i] = x->values[i] * x->values[i + 1];
    return 36;
}

/* Parts that cover one tensor, a third each: their gradients are joined. */
static clt_tensor *third(clt_tensor *x, int which) {
    int64_t size = clt_tensor_shape(x).dims[1] / 3;
    return clt_slice(x, 1, which * size, (which + 1) * size, 1);
}
BUILD(thirds, clt_add(clt_mul(third(x[0], 2), third(x[0], 0)), clt_tanh(third(x[0], 1))))
static double reference_thirds(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t rows = x->shape.dims[0], size = x->shape.dims[1] / 3;
    array_resize(y, (clt_shape)SHAPE(rows, size));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < size; j++) {
            const double *row = x->values + i * 3 * size + j;
            y->values[i * size + j] = row[2 * size] * row[0] + tanh(row[size]);
        }
    return 30.0 * (double)array_count(y);
}

/* Columns 6 and 7, 0 and 1, and 3 and 4 of nine, in this order: there are zeros between them, and the whole is read once more. */
BUILD(gaps, clt_add(clt_add(clt_mul(clt_slice(x[0], 1, 6, 8, 1), clt_slice(x[0], 1, 0, 2, 1)), clt_slice(x[0], 1, 3, 5, 1)),
                    clt_mean(x[0], (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true})))
static double reference_gaps(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, (clt_shape)SHAPE(x->shape.dims[0], 2));
    for (int64_t i = 0; i < array_count(y); i++) {
        const double *row = x->values + i / 2 * 9;
        y->values[i] = row[6 + i % 2] * row[i % 2] + row[3 + i % 2];
        for (int j = 0; j < 9; j++) y->values[i] += row[j] / 9;
    }
    return 20.0 * (double)array_count(y);
}

/* Two rows, and two columns turned. */
BUILD(crossing, clt_mul(clt_slice(x[0], 0, 1, 3, 1), clt_transpose(clt_slice(x[0], 1, 2, 4, 1), 0, 1)))
static double reference_crossing(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t size = x->shape.dims[0];
    array_resize(y, (clt_shape)SHAPE(2, size));
    for (int64_t i = 0; i < 2 * size; i++) y->values[i] = x->values[(1 + i / size) * size + i % size] * x->values[i % size * size + 2 + i / size];
    return (double)array_count(y);
}

/* h = x w; h h + the sum of each row of h: h has three users, two of them one op. */
static clt_tensor *shared(clt_tensor *h) {
    return clt_add(clt_mul(h, h), clt_sum(h, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true}));
}
BUILD(shared, shared(clt_matmul(x[0], x[1])))
static double reference_shared(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t rows = x[0].shape.dims[0], depth = x[0].shape.dims[1], columns = x[1].shape.dims[1];
    array_resize(y, (clt_shape)SHAPE(rows, columns));
    for (int64_t i = 0; i < rows; i++) {
        double row = 0;
        for (int64_t j = 0; j < columns; j++) {
            double h = 0;
            for (int64_t k = 0; k < depth; k++) h += x[0].values[i * depth + k] * x[1].values[k * columns + j];
            y->values[i * columns + j] = h * h;
            row += h;
        }
        for (int64_t j = 0; j < columns; j++) y->values[i * columns + j] += row;
    }
    return (double)(rows * depth * columns);
}

/* Twenty doublings: 2^20 ways, which must be summed and not walked. */
static clt_tensor *ladder(clt_tensor *x) {
    x = clt_mul_scalar(x, 0x1p-20f);
    for (int i = 0; i < 20; i++) x = clt_add(x, x);
    return clt_tanh(x);
}
BUILD(ladder, ladder(x[0]))
static double reference_ladder(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = tanh(x->values[i]);
    return 30.0 * (double)array_count(y);
}

/* One parameter in two layers, the second on rows 0 and 2 of the first's result, through a view. */
BUILD(tied, clt_matmul(clt_slice(clt_reshape(clt_tanh(clt_matmul(x[0], x[1])), CLT_SHAPE(4, 3)), 0, 0, 3, 2), x[1]))
static double reference_tied(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_clear(y, (clt_shape)SHAPE(2, 3));
    for (int row = 0; row < 2; row++)
        for (int k = 0; k < 3; k++) {
            double h = 0;
            for (int l = 0; l < 3; l++) h += x[0].values[6 * row + l] * x[1].values[3 * l + k];
            for (int j = 0; j < 3; j++) y->values[3 * row + j] += tanh(h) * x[1].values[3 * k + j];
        }
    return 400;
}

static const operation diamond = OPERATION("several", "clt_exp clt_tanh clt_mul clt_add", diamond, diamond);
static const operation same = OPERATION("several", "clt_mul", same, same);
static const operation parts = OPERATION("several", "clt_slice clt_mul", parts, parts);
static const operation thirds = OPERATION("several", "clt_slice clt_mul clt_tanh clt_add", thirds, thirds);
static const operation gaps = OPERATION("several", "clt_slice clt_mul clt_mean clt_add", gaps, gaps);
static const operation crossing = OPERATION("several", "clt_slice clt_transpose clt_mul", crossing, crossing);
static const operation shared_users = OPERATION("several", "clt_matmul clt_mul clt_sum clt_add", shared, shared);
static const operation doublings = OPERATION("several", "clt_add clt_tanh", ladder, ladder);
static const operation tied = OPERATION("several", "clt_matmul clt_tanh clt_reshape clt_slice", tied, tied);

void cases_several(case_list *list) {
    case_add(list, &diamond, "diamond", X(F(3, 5)));
    case_add(list, &same, "same-operands", X(F(37)));
    case_add(list, &parts, "overlapping-slices", X(F(37)));
    case_add(list, &thirds, "slices-of-all", X(F(5, 21)));
    case_add(list, &gaps, "slices-apart", X(F(3, 9)));
    case_add(list, &crossing, "slices-of-two-axes", X(F(7, 7)));
    case_add(list, &shared_users, "three-users", X(F(3, 5), F(5, 4)));
    case_add(list, &doublings, "doublings", X(F(7)));
    case_add(list, &tied, "tied-weights", X(F(2, 2, 3), F(3, 3)));
}
