/* Matrix products, and layers of them. */
#include "tools/cltrain-conform/cases.h"

#include <stdio.h>
#include <string.h>

/* ---- matrix products ---- */

/* Batch dimensions of an operand of rank 2 or more. */
static clt_shape batch_of(const clt_shape *shape) {
    return shape_of(shape->rank - 2, shape->dims);
}

/* Where the matrix of a batch index begins. */
static int64_t matrix_place(const array *a, const clt_shape *batch, const int64_t *index) {
    int rank = a->shape.rank - 2;
    int64_t place = 0;
    for (int d = 0; d < rank; d++)
        place = place * a->shape.dims[d] + (a->shape.dims[d] == 1 ? 0 : index[batch->rank - rank + d]);
    return place * a->shape.dims[rank] * a->shape.dims[rank + 1];
}

static double reference_matmul(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    const array *a = &x[0], *b = &x[1];
    const int64_t *da = a->shape.dims + a->shape.rank - 2, *db = b->shape.dims + b->shape.rank - 2;
    bool ta = at->matmul.transpose_a, tb = at->matmul.transpose_b;
    int64_t rows = da[ta], depth = da[!ta], columns = db[!tb], index[CLT_MAX_RANK] = {0}, place = 0;
    clt_shape batch_a = batch_of(&a->shape), batch_b = batch_of(&b->shape),
              batch = shape_broadcast(&batch_a, &batch_b);
    clt_shape shape = batch;
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    array_resize(y, shape);
    do {
        const double *pa = a->values + matrix_place(a, &batch, index), *pb = b->values + matrix_place(b, &batch, index);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += pa[ta ? k * rows + i : i * depth + k] * pb[tb ? j * depth + k : k * columns + j];
                y->values[place++] = sum;
            }
    } while (index_next(&batch, index));
    return (double)place * (double)depth;
}

/* One product's share: da += dy b^T, or db += a^T dy, as the operands lie. */
static void matmul_gradient(const double *a, const double *b, const double *dy, double *dx, bool by_a,
                            const int64_t *sizes, const clt_matmul_options *o) {
    int64_t rows = sizes[0], depth = sizes[1], columns = sizes[2];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < columns; j++) {
                int64_t at_a = o->transpose_a ? k * rows + i : i * depth + k;
                int64_t at_b = o->transpose_b ? j * depth + k : k * columns + j;
                dx[by_a ? at_a : at_b] += dy[i * columns + j] * (by_a ? b[at_b] : a[at_a]);
            }
}

static void reference_matmul_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    const array *a = &x[0], *b = &x[1];
    const int64_t *da = a->shape.dims + a->shape.rank - 2, *db = b->shape.dims + b->shape.rank - 2;
    bool ta = at->matmul.transpose_a, tb = at->matmul.transpose_b;
    const int64_t sizes[] = {da[ta], da[!ta], db[!tb]};
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    clt_shape batch = batch_of(&dy->shape);
    array_clear(dx, x[i].shape);
    do {
        matmul_gradient(a->values + matrix_place(a, &batch, index), b->values + matrix_place(b, &batch, index),
                        dy->values + place, dx->values + matrix_place(dx, &batch, index), i == 0, sizes, &at->matmul);
        place += sizes[0] * sizes[2];
    } while (index_next(&batch, index));
}

/* The product of two, and a third of its shape. */
static double reference_matmul_add(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    double work = reference_matmul(x, n, y, at, evaluation);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] += x[2].values[i];
    return work;
}

static void reference_matmul_add_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    if (i < 2) {
        reference_matmul_gradient(x, i, dy, dx, at);
        return;
    }
    array_resize(dx, dy->shape);
    memcpy(dx->values, dy->values, (size_t)array_count(dy) * sizeof *dx->values);
}

/* x, weight [out, in], bias [out] if there are three. */
static double reference_linear(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)at, (void)evaluation;
    int64_t in = x[1].shape.dims[1], out = x[1].shape.dims[0], rows = array_count(&x[0]) / in;
    clt_shape shape = x[0].shape;
    shape.dims[shape.rank - 1] = out;
    array_resize(y, shape);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < out; j++) {
            double sum = n == 3 ? x[2].values[j] : 0;
            for (int64_t k = 0; k < in; k++) sum += x[0].values[i * in + k] * x[1].values[j * in + k];
            y->values[i * out + j] = sum;
        }
    return (double)(rows * out) * (double)in;
}

/* ---- cases ---- */

BUILD(matmul, clt_matmul_with(x[0], x[1], at->matmul))
BUILD(matmul_add, clt_add(clt_matmul_with(x[0], x[1], at->matmul), x[2]))
BUILD(matmul_plain, clt_matmul(x[0], x[1]))
BUILD(linear, clt_linear_with(x[0], "w", (clt_linear_options){.out_features = at->first, .no_bias = at->flag}))

static const operation matmul = OPERATION("matmul", "clt_matmul_with", matmul, matmul);
const operation operation_matmul_exact = OPERATION("matmul", "clt_matmul_with", matmul, matmul,
    .gradient = reference_matmul_gradient);
const operation operation_matmul_add = OPERATION("matmul", "clt_matmul_with clt_add", matmul_add,
    matmul_add, .gradient = reference_matmul_add_gradient);
static const operation plain = OPERATION("matmul", "clt_matmul", matmul_plain, matmul);
static const operation linear = OPERATION("linear", "clt_linear_with clt_linear_op", linear, linear);

static void add_matmul(case_list *list, bool full, int m, int k, int n, bool ta, bool tb) {
    operand x[2] = {F(m, k), F(k, n)};
    if (ta) x[0].shape = (clt_shape)SHAPE(k, m);
    if (tb) x[1].shape = (clt_shape)SHAPE(n, k);
    char variant[8];
    snprintf(variant, sizeof variant, "%s%s", ta ? "t" : "n", tb ? "t" : "n");
    test_case *c = case_add(list, &matmul, variant, x, 2);
    c->at.matmul = (clt_matmul_options){ta, tb};
    c->full = full;
    c->large = (double)m * n * k > 2e5;
}

static void add_matmuls(case_list *list) {
    add_matmul(list, false, 1, 1, 1, false, false);
    add_matmul(list, false, 5, 7, 3, false, true);
    add_matmul(list, false, 17, 1, 19, true, false);
    add_matmul(list, false, 1, 31, 1, true, true);
    add_matmul(list, false, 33, 65, 37, false, false);
    add_matmul(list, true, 64, 64, 64, true, false);
    add_matmul(list, true, 1, 257, 129, false, false);
    add_matmul(list, true, 131, 13, 1, false, true);
    add_matmul(list, true, 127, 67, 131, true, true);
    add_matmul(list, true, 96, 300, 100, false, true);
    add_matmul(list, false, 8, 1100, 9, false, false); /* a long sum, and few of them: cut into parts */
    case_add(list, &plain, "batch", X(F(3, 5, 7), F(3, 7, 4)));
    case_add(list, &plain, "batch", X(F(3, 17, 33), F(3, 33, 21))); /* 4096 products, from which on the kernels for GPUs serve */
    case_add(list, &plain, "broadcast", X(F(2, 1, 5, 7), F(3, 7, 4)))->full = true;
    case_add(list, &plain, "broadcast", X(F(5, 7), F(4, 7, 3)))->full = true;
    /* Each dimension of a batch has its own place and stride: all six that there may be. */
    case_add(list, &plain, "broadcast", X(F(2, 3, 1, 2, 5, 7), F(3, 2, 1, 7, 4)));
    case_add(list, &plain, "broadcast", X(F(2, 3, 1, 2, 9, 17), F(3, 2, 1, 17, 13)))->full = true;
    case_add(list, &plain, "broadcast", X(F(2, 1, 2, 1, 2, 3, 2, 3), F(2, 2, 1, 2, 1, 3, 3, 2)))->full = true;
    case_add(list, &plain, "batch", X(F(2, 2, 1, 3, 2, 2, 2, 3), F(2, 2, 1, 3, 2, 2, 3, 1)))->full = true;
}

/* Either operand with dimensions of a batch in front, as it lies and transposed. */
static void add_transposes(case_list *list, clt_shape batch_a, clt_shape batch_b, int m, int k, int n) {
    for (int t = 0; t < 4; t++) {
        bool ta = t & 1, tb = t & 2;
        operand x[2] = {{.shape = batch_a}, {.shape = batch_b}};
        const int sizes[2][2] = {{ta ? k : m, ta ? m : k}, {tb ? n : k, tb ? k : n}};
        for (int i = 0; i < 2; i++)
            for (int d = 0; d < 2; d++) x[i].shape.dims[x[i].shape.rank++] = sizes[i][d];
        char variant[16];
        snprintf(variant, sizeof variant, "all-%s%s", ta ? "t" : "n", tb ? "t" : "n");
        case_add(list, &matmul, variant, x, 2)->at.matmul = (clt_matmul_options){ta, tb};
    }
}

static void add_all_transposes(case_list *list) {
    const clt_shape none = {0};
    add_transposes(list, none, none, 7, 13, 5);
    add_transposes(list, none, none, 33, 65, 17);
    add_transposes(list, none, none, 1, 9, 6);
    add_transposes(list, none, none, 9, 6, 1);
    add_transposes(list, none, none, 5, 1, 8);
    add_transposes(list, none, none, 64, 16, 32);
    add_transposes(list, none, none, 2, 8209, 3); /* sums that are long enough to be made in parts */
    add_transposes(list, (clt_shape)SHAPE(3), (clt_shape)SHAPE(3), 4, 5, 6);
    add_transposes(list, (clt_shape)SHAPE(2, 3), (clt_shape)SHAPE(2, 3), 3, 2, 5);
    add_transposes(list, (clt_shape)SHAPE(4), none, 3, 5, 2); /* one matrix for the whole batch */
    add_transposes(list, none, (clt_shape)SHAPE(4), 3, 5, 2);
    add_transposes(list, (clt_shape)SHAPE(2, 1), (clt_shape)SHAPE(1, 3), 2, 4, 3); /* both stretch */
    add_transposes(list, (clt_shape)SHAPE(2, 3), (clt_shape)SHAPE(3), 2, 3, 4);
    add_transposes(list, (clt_shape)SHAPE(1), (clt_shape)SHAPE(5), 1, 3, 1);
    add_transposes(list, (clt_shape)SHAPE(2, 1, 2, 1, 2, 1), (clt_shape)SHAPE(2, 2, 1, 1, 2, 2), 2, 3, 2);
}

/* Few rows, of one matrix or of several that share b: kernels of their own. Whole vectors and what is left of them, in sums and in columns. */
static void add_few(case_list *list) {
    for (int turned = 0; turned < 2; turned++)
        for (int m = 1; m <= 4; m++) {
            operand x[2] = {F(m, 70), {.shape = {2, {turned ? 133 : 70, turned ? 70 : 133}}}};
            test_case *c = case_add(list, &matmul, turned ? "few-turned" : "few", x, 2);
            c->at.matmul.transpose_b = turned;
            c->full = m == 2 || m == 3;
        }
    case_add(list, &plain, "few", X(F(2, 1, 33), F(33, 290)));
    case_add(list, &plain, "few", X(F(1, 5), F(5, 3)));
    case_add(list, &matmul, "few-turned", X(F(1, 2, 20), F(2100, 20)))->at.matmul.transpose_b = true;
}

static void add_linear(case_list *list, bool full, clt_shape in, int out, bool no_bias) {
    operand x[3] = {{.shape = in}, {.variable = "w.weight", .shape = SHAPE(out, in.dims[in.rank - 1])},
                    {.variable = "w.bias", .shape = SHAPE(out)}};
    test_case *c = case_add(list, &linear, no_bias ? "no-bias" : "", x, no_bias ? 2 : 3);
    c->at.first = out;
    c->at.flag = no_bias;
    c->full = full;
}

void cases_matmul(case_list *list) {
    add_few(list);
    add_linear(list, false, (clt_shape)SHAPE(2, 70), 133, false);
    add_matmuls(list);
    add_linear(list, false, (clt_shape)SHAPE(4, 6), 5, false);
    add_linear(list, false, (clt_shape)SHAPE(33, 47), 29, false);
    add_all_transposes(list);
    add_linear(list, false, (clt_shape)SHAPE(2, 3, 9), 6, false);
    add_linear(list, false, (clt_shape)SHAPE(2, 1, 3, 9), 6, false);
    add_linear(list, false, (clt_shape)SHAPE(1, 9), 6, false);
    add_linear(list, false, (clt_shape)SHAPE(5, 9), 6, true);
    add_linear(list, true, (clt_shape)SHAPE(3, 2, 7), 1, true);
    add_linear(list, true, (clt_shape)SHAPE(1, 1), 1, false);
    add_linear(list, true, (clt_shape)SHAPE(67, 130), 101, false);
    add_linear(list, true, (clt_shape)SHAPE(8, 1100), 12, false); /* in parts: the bias comes where they are added up */
}
