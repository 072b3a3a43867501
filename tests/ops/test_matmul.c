/* Products of matrices, plain and batched, and the layer made of them. */
#include "tests/ops/harness.h"

#include <stdio.h>

/* ---- the definition ---- */

/* Element (i, j) of the matrix at `batch`, an index over the result's leading dimensions. */
static double element(const array *x, const clt_shape *result, const int64_t *batch, bool transposed,
                      int64_t i, int64_t j) {
    clt_shape stretched = {.rank = result->rank};
    int64_t index[CLT_MAX_RANK];
    for (int d = 0; d < result->rank - 2; d++) {
        stretched.dims[d] = result->dims[d];
        index[d] = batch[d];
    }
    index[result->rank - 2] = transposed ? j : i;
    index[result->rank - 1] = transposed ? i : j;
    /* The last two dimensions are x's own: nothing stretches there, unless they are 1 and so is the index. */
    return array_broadcast_at(x, &stretched, index);
}

static void multiply(const array *a, const array *b, bool ta, bool tb, array *y) {
    clt_shape batch_a = a->shape, batch_b = b->shape;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    clt_shape shape = shape_broadcast(&batch_a, &batch_b);
    int64_t inner = a->shape.dims[a->shape.rank - (ta ? 2 : 1)];
    shape.dims[shape.rank++] = a->shape.dims[a->shape.rank - (ta ? 1 : 2)];
    shape.dims[shape.rank++] = b->shape.dims[b->shape.rank - (tb ? 2 : 1)];
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do {
        int64_t i = index[shape.rank - 2], j = index[shape.rank - 1];
        double sum = 0;
        for (int64_t k = 0; k < inner; k++)
            sum += element(a, &shape, index, ta, i, k) * element(b, &shape, index, tb, k, j);
        y->values[at++] = sum;
    } while (index_next(&shape, index));
}

/* ---- matmul ---- */

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const clt_matmul_options *options = context;
    if (!options->transpose_a && !options->transpose_b) return clt_matmul(inputs[0], inputs[1]);
    return clt_matmul_with(inputs[0], inputs[1], *options);
}

static void reference(const array *inputs, array *y, const void *context) {
    const clt_matmul_options *options = context;
    multiply(&inputs[0], &inputs[1], options->transpose_a, options->transpose_b, y);
}

/* Leading dimensions of either operand, and M, K, N: each with all transposes. */
static const struct {
    clt_shape batch_a, batch_b;
    int64_t m, k, n;
} sizes[] = {
    {{0}, {0}, 1, 1, 1},
    {{0}, {0}, 7, 13, 5},
    {{0}, {0}, 33, 65, 17},
    {{0}, {0}, 1, 9, 6},
    {{0}, {0}, 9, 6, 1},
    {{0}, {0}, 5, 1, 8},
    {{0}, {0}, 64, 16, 32},
    {{0}, {0}, 2, 8209, 3}, /* sums that are long enough to be made in parts */
    {OP_SHAPE(3), OP_SHAPE(3), 4, 5, 6},
    {OP_SHAPE(2, 3), OP_SHAPE(2, 3), 3, 2, 5},
    {OP_SHAPE(4), {0}, 3, 5, 2},            /* one matrix for the whole batch */
    {{0}, OP_SHAPE(4), 3, 5, 2},
    {OP_SHAPE(2, 1), OP_SHAPE(1, 3), 2, 4, 3}, /* both stretch */
    {OP_SHAPE(2, 3), OP_SHAPE(3), 2, 3, 4},
    {OP_SHAPE(1), OP_SHAPE(5), 1, 3, 1},
    {OP_SHAPE(2, 1, 2, 1, 2, 1), OP_SHAPE(2, 2, 1, 1, 2, 2), 2, 3, 2}, /* rank 8 */
};

static const clt_matmul_options transposes[] = {{false, false}, {true, false}, {false, true}, {true, true}};

enum { N_SIZES = CLT_COUNT_OF(sizes), N_MATMUL = 4 * N_SIZES };

static clt_shape matrix(clt_shape batch, int64_t rows, int64_t columns, bool transposed) {
    batch.dims[batch.rank++] = transposed ? columns : rows;
    batch.dims[batch.rank++] = transposed ? rows : columns;
    return batch;
}

static op_case matmul_case(int k, char name[160]) {
    const clt_matmul_options *t = &transposes[k % 4];
    clt_shape a = matrix(sizes[k / 4].batch_a, sizes[k / 4].m, sizes[k / 4].k, t->transpose_a);
    clt_shape b = matrix(sizes[k / 4].batch_b, sizes[k / 4].k, sizes[k / 4].n, t->transpose_b);
    char text_a[CLT_SHAPE_TEXT], text_b[CLT_SHAPE_TEXT];
    snprintf(name, 160, "matmul %.60s%s %.60s%s", clt_shape_text(&a, text_a), t->transpose_a ? "^T" : "",
             clt_shape_text(&b, text_b), t->transpose_b ? "^T" : "");
    return (op_case){.name = name,
                     .n_inputs = 2,
                     .inputs = {{.shape = a}, {.shape = b}},
                     .build = build,
                     .reference = reference,
                     .context = t,
                     .samples = sizes[k / 4].m * sizes[k / 4].k * sizes[k / 4].n > 10000 ? 8 : 40};
}

/* ---- linear ---- */

static clt_tensor *build_linear(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_linear(inputs[0], "fc", 6);
}

static clt_tensor *build_linear_no_bias(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_linear(inputs[0], "fc", 6, .no_bias = true);
}

/* y[..., o] = sum over i of x[..., i] weight[o, i], and bias[o] */
static void reference_linear(const array *inputs, array *y, const void *context) {
    bool with_bias = context != NULL;
    clt_shape shape = inputs[0].shape;
    int64_t in = shape.dims[shape.rank - 1], out = inputs[1].shape.dims[0];
    shape.dims[shape.rank - 1] = out;
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t row = i / out, o = i % out;
        double sum = with_bias ? inputs[2].values[o] : 0;
        for (int64_t k = 0; k < in; k++) sum += inputs[0].values[row * in + k] * inputs[1].values[o * in + k];
        y->values[i] = sum;
    }
}

#define WEIGHT {.variable = "fc.weight", .shape = OP_SHAPE(6, 9)}
#define BIAS {.variable = "fc.bias", .shape = OP_SHAPE(6)}
#define LINEAR(label, size)                                      \
    {.name = label,                                              \
     .n_inputs = 3,                                              \
     .inputs = {{.shape = size}, WEIGHT, BIAS},                  \
     .build = build_linear,                                      \
     .reference = reference_linear,                              \
     .context = ""}
static const op_case linear_cases[] = {
    LINEAR("linear, rank 2", OP_SHAPE(5, 9)),
    LINEAR("linear, rank 3", OP_SHAPE(2, 3, 9)),
    LINEAR("linear, rank 4", OP_SHAPE(2, 1, 3, 9)),
    LINEAR("linear, one row", OP_SHAPE(1, 9)),
    {.name = "linear, no bias",
     .n_inputs = 2,
     .inputs = {{.shape = OP_SHAPE(5, 9)}, WEIGHT},
     .build = build_linear_no_bias,
     .reference = reference_linear},
};

enum { N_LINEAR = CLT_COUNT_OF(linear_cases) };

int main(void) {
    static op_case cases[N_MATMUL + N_LINEAR];
    static char names[N_MATMUL][160];
    for (int k = 0; k < N_MATMUL; k++) cases[k] = matmul_case(k, names[k]);
    for (int k = 0; k < N_LINEAR; k++) cases[N_MATMUL + k] = linear_cases[k];
    return op_main("matmul", cases, CLT_COUNT_OF(cases), NULL, 0);
}
