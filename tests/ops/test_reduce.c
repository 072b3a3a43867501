/* Sums, means and maxima over axes. */
#include "tests/ops/harness.h"

#include <math.h>
#include <stdio.h>

typedef enum reduction { SUM, MEAN, MAXIMUM } reduction;

typedef struct reduce {
    reduction kind;
    clt_reduce_options options;
} reduce;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const reduce *r = context;
    if (r->kind == SUM) return clt_sum(inputs[0], r->options);
    return r->kind == MEAN ? clt_mean(inputs[0], r->options) : clt_max(inputs[0], r->options);
}

static bool reduced(const reduce *r, int rank, int d) {
    for (int i = 0; i < r->options.n_axes; i++) {
        int axis = r->options.axes[i];
        if ((axis < 0 ? axis + rank : axis) == d) return true;
    }
    return r->options.n_axes == 0;
}

/* With the reduced dimensions as 1; `place` counts them out of an index of x. */
static int64_t place_of(const reduce *r, const clt_shape *x, const int64_t *index) {
    int64_t place = 0;
    for (int d = 0; d < x->rank; d++)
        if (!reduced(r, x->rank, d)) place = place * x->dims[d] + index[d];
    return place;
}

static clt_shape reduced_shape(const reduce *r, const clt_shape *x) {
    clt_shape shape = {0};
    for (int d = 0; d < x->rank; d++) {
        if (!reduced(r, x->rank, d)) shape.dims[shape.rank++] = x->dims[d];
        else if (r->options.keep_dims) shape.dims[shape.rank++] = 1;
    }
    return shape;
}

static void reference(const array *inputs, array *y, const void *context) {
    const reduce *r = context;
    const array *x = &inputs[0];
    array_resize(y, reduced_shape(r, &x->shape));
    double share = (double)array_count(y) / (double)array_count(x);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = r->kind == MAXIMUM ? -INFINITY : 0;
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do {
        double *place = &y->values[place_of(r, &x->shape, index)], value = x->values[at++];
        *place = r->kind == MAXIMUM ? fmax(*place, value) : *place + (r->kind == MEAN ? value * share : value);
    } while (index_next(&x->shape, index));
}

/* ---- cases: each subset of the axes of a tensor of rank 4, with and without keep_dims ---- */

enum { N_SUBSETS = 3 * 2 * 16 };
static op_case cases[N_SUBSETS + 32];
static reduce reduces[N_SUBSETS];
static char names[N_SUBSETS][64];

/* The subset of none means all axes, as n_axes = 0 does. Odd ones are named from the end. */
static op_case subset_case(int k) {
    static const char *const kinds[] = {"sum", "mean", "max"};
    int subset = k % 16;
    reduce *r = &reduces[k];
    *r = (reduce){.kind = (reduction)(k / 32), .options = {.keep_dims = k / 16 % 2}};
    for (int d = 0; d < 4; d++)
        if (subset >> d & 1) r->options.axes[r->options.n_axes++] = d % 2 ? d - 4 : d;
    snprintf(names[k], sizeof names[k], "%s of axes %s%s%s%s%s%s", kinds[r->kind], subset & 1 ? "0" : "",
             subset & 2 ? "1" : "", subset & 4 ? "2" : "", subset & 8 ? "3" : "", subset ? "" : "all",
             r->options.keep_dims ? ", kept" : "");
    return (op_case){.name = names[k],
                     .n_inputs = 1,
                     .inputs = {{.shape = OP_SHAPE(3, 4, 5, 7), .distinct = true}},
                     .build = build,
                     .reference = reference,
                     .context = r,
                     .samples = 60};
}

#define REDUCE(label, which, size, n, ...)                                                                \
    {.name = label, .n_inputs = 1, .inputs = {{.shape = size, .distinct = true}}, .build = build,         \
     .reference = reference, .samples = n,                                                                \
     .context = &(reduce){which, {.axes = {__VA_ARGS__}, .n_axes = sizeof((int[]){__VA_ARGS__}) / sizeof(int)}}}
static const op_case others[] = {
    /* The sum is small beside its terms: what may be lost is a part of them, not of it. One after the
     * other in f32 would lose ten times as much. */
    {.name = "sum of a long row",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(1, 100003), .distinct = true}},
     .build = build,
     .reference = reference,
     .context = &(reduce){SUM, {.axes = {1}, .n_axes = 1}},
     .tolerance = 1e-3,
     .samples = 10},
    REDUCE("mean of a long row", MEAN, OP_SHAPE(1, 100003), 10, 1),
    REDUCE("max of a long row", MAXIMUM, OP_SHAPE(1, 100003), 10, 1),
    REDUCE("sum of a long column", SUM, OP_SHAPE(20011, 3), 10, 0),
    REDUCE("mean of a long column", MEAN, OP_SHAPE(20011, 3), 10, 0),
    REDUCE("max of a long column", MAXIMUM, OP_SHAPE(20011, 3), 10, 0),
    REDUCE("sum of many columns", SUM, OP_SHAPE(70, 4099), 10, 0),
    REDUCE("max of many columns", MAXIMUM, OP_SHAPE(70, 4099), 10, 0),
    REDUCE("mean of many long rows", MEAN, OP_SHAPE(257, 4099), 3, 1),
    REDUCE("max of many long rows", MAXIMUM, OP_SHAPE(257, 4099), 3, 1),
    REDUCE("sum of many short rows", SUM, OP_SHAPE(5003, 3), 10, 1),
    REDUCE("sum of rows of 64", SUM, OP_SHAPE(3, 64), 60, 1),
    REDUCE("sum of rows of 65", SUM, OP_SHAPE(3, 65), 60, 1),
    REDUCE("max of rows of 1", MAXIMUM, OP_SHAPE(9, 1), 60, 1),
    REDUCE("sum of one element", SUM, OP_SHAPE(1), 60, 0),
    REDUCE("mean of a middle axis", MEAN, OP_SHAPE(3, 257, 5), 60, 1),
    REDUCE("sum of outer and inner axes", SUM, OP_SHAPE(17, 3, 129), 60, 0, 2),
    REDUCE("max of outer and inner axes", MAXIMUM, OP_SHAPE(17, 3, 29), 60, 0, 2),
    REDUCE("sum of every second axis, rank 8", SUM, OP_SHAPE(2, 3, 2, 1, 2, 3, 1, 2), 60, 0, 2, 4, 6),
    REDUCE("sum of every second axis of 2", SUM, OP_SHAPE(2, 2, 2, 2, 2, 2, 2, 2), 60, 0, 2, 4, 6),
    REDUCE("max of every second axis of 2", MAXIMUM, OP_SHAPE(2, 2, 2, 2, 2, 2, 2, 2), 60, 1, 3, 5, 7),
    REDUCE("max of every second axis, rank 8", MAXIMUM, OP_SHAPE(2, 3, 2, 1, 2, 3, 1, 2), 60, 1, 3, 5, 7),
};

static clt_tensor *build_scalar(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_mean(clt_sum(clt_max(inputs[0], CLT_ALL_AXES), CLT_ALL_AXES), CLT_ALL_AXES);
}

static void reference_scalar(const array *inputs, array *y, const void *context) {
    (void)context;
    array_resize(y, inputs[0].shape);
    y->values[0] = inputs[0].values[0];
}

static const op_case scalar_case = {
    .name = "of a scalar", .n_inputs = 1, .build = build_scalar, .reference = reference_scalar};

/* ---- ties, negatives, NaN ---- */

#define GIVEN(label, which, size, given, ...)                                                             \
    &(op_case) {                                                                                          \
        .name = label, .n_inputs = 1, .inputs = {{.shape = size, .values = given}}, .build = build,       \
        .context = &(reduce){which, {.axes = {1}, .n_axes = 1}}, .seed = (const float[]){__VA_ARGS__},    \
    }

static void equals_share_the_gradient(void **state) {
    (void)state;
    static const float x[] = {1, 3, 3, 3, -2, -2, -2, -2, 0, 5, 4, 1};
    op_expect(GIVEN("max with ties", MAXIMUM, OP_SHAPE(3, 4), x, 3, 8, 1), (double[]){3, -2, 5},
              (const double *[]){(double[]){0, 1, 1, 1, 2, 2, 2, 2, 0, 1, 0, 0}});
}

static void largest_of_negatives(void **state) {
    (void)state;
    static const float x[] = {-5, -3, -9, -1e30f, -2e30f, -INFINITY};
    op_expect(GIVEN("max of negatives", MAXIMUM, OP_SHAPE(2, 3), x, 1, 1), (double[]){-3, (double)-1e30f}, NULL);
}

static void not_a_number_passes(void **state) {
    (void)state;
    static const float x[] = {1, NAN, 2, 3, 1, 2, 3, 4, NAN, 0, 0, 0};
    op_expect(GIVEN("sum with NaN", SUM, OP_SHAPE(3, 4), x, 1, 1, 1), (double[]){NAN, 10, NAN}, NULL);
    op_expect(GIVEN("max with NaN", MAXIMUM, OP_SHAPE(3, 4), x, 1, 1, 1), (double[]){NAN, 4, NAN}, NULL);
}

/* The same for rows that work-groups share: 129 elements, and 4,111 that are cut into chunks. */
static void extremes_of_long_rows(void **state) {
    (void)state;
    static float x[2 * 4111];
    static const clt_shape sizes[] = {OP_SHAPE(2, 129), OP_SHAPE(2, 4111)};
    for (int k = 0; k < 2; k++) {
        int64_t n = sizes[k].dims[1];
        for (int64_t i = 0; i < 2 * n; i++) x[i] = -5;
        x[n - 1] = -3;
        x[n + 70] = NAN;
        op_expect(GIVEN("max of a long row", MAXIMUM, sizes[k], x, 1, 1), (double[]){-3, NAN}, NULL);
        op_expect(GIVEN("sum of a long row", SUM, sizes[k], x, 1, 1), (double[]){2 - 5.0 * (double)n, NAN}, NULL);
    }
}

int main(void) {
    size_t n = 0;
    for (int k = 0; k < N_SUBSETS; k++) cases[n++] = subset_case(k);
    for (size_t k = 0; k < CLT_COUNT_OF(others); k++) cases[n++] = others[k];
    cases[n++] = scalar_case;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_share_the_gradient),
        cmocka_unit_test(largest_of_negatives),
        cmocka_unit_test(not_a_number_passes),
        cmocka_unit_test(extremes_of_long_rows),
    };
    return op_main("reduce", cases, n, tests, CLT_COUNT_OF(tests));
}
