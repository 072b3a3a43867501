/* Softmax and its logarithm along an axis. */
#include "tests/ops/harness.h"

#include <math.h>

typedef struct softmax {
    int axis; /* as given to the builder */
    bool log;
} softmax;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const softmax *s = context;
    return s->log ? clt_log_softmax(inputs[0], s->axis) : clt_softmax(inputs[0], s->axis);
}

/* A line of n elements along the axis, from its first. */
static void line(const double *x, double *y, int64_t n, int64_t stride, bool logarithm) {
    double total = log_sum_exp(x, n, stride);
    for (int64_t i = 0; i < n; i++) y[i * stride] = logarithm ? x[i * stride] - total : exp(x[i * stride] - total);
}

static void reference(const array *inputs, array *y, const void *context) {
    const softmax *s = context;
    const array *x = &inputs[0];
    int axis = s->axis < 0 ? s->axis + x->shape.rank : s->axis;
    int64_t stride = 1, index[CLT_MAX_RANK] = {0}, at = 0;
    for (int d = axis + 1; d < x->shape.rank; d++) stride *= x->shape.dims[d];
    array_resize(y, x->shape);
    do {
        if (index[axis] == 0) line(x->values + at, y->values + at, x->shape.dims[axis], stride, s->log);
        at++;
    } while (index_next(&x->shape, index));
}

/* ---- cases: each as softmax and as log_softmax ---- */

static const struct {
    const char *names[2];
    clt_shape shape;
    int axis;
    double range;
} sizes[] = {
    {{"softmax, axis 0 of 4", "log_softmax, axis 0 of 4"}, OP_SHAPE(3, 4, 5, 7), 0, 3},
    {{"softmax, axis 1 of 4", "log_softmax, axis 1 of 4"}, OP_SHAPE(3, 4, 5, 7), 1, 3},
    {{"softmax, axis 2 of 4", "log_softmax, axis 2 of 4"}, OP_SHAPE(3, 4, 5, 7), 2, 3},
    {{"softmax, axis 3 of 4", "log_softmax, axis 3 of 4"}, OP_SHAPE(3, 4, 5, 7), 3, 3},
    {{"softmax, axis -1", "log_softmax, axis -1"}, OP_SHAPE(9, 10), -1, 3},
    {{"softmax, axis -2", "log_softmax, axis -2"}, OP_SHAPE(3, 4, 5), -2, 3},
    {{"softmax, rank 1", "log_softmax, rank 1"}, OP_SHAPE(11), 0, 3},
    {{"softmax of one element", "log_softmax of one element"}, OP_SHAPE(5, 1), 1, 3},
    {{"softmax of one element on axis 0", "log_softmax of one element on axis 0"}, OP_SHAPE(1, 5), 0, 3},
    {{"softmax, long rows", "log_softmax, long rows"}, OP_SHAPE(2, 1031), 1, 3},
    {{"softmax, long columns", "log_softmax, long columns"}, OP_SHAPE(517, 3), 0, 3},
    {{"softmax, many rows", "log_softmax, many rows"}, OP_SHAPE(523, 3), 1, 3},
    {{"softmax, large values", "log_softmax, large values"}, OP_SHAPE(3, 7), 1, 1e4},
    {{"softmax, rank 8", "log_softmax, rank 8"}, OP_SHAPE(2, 1, 3, 1, 5, 2, 1, 2), 4, 3},
};

enum { N_CASES = 2 * CLT_COUNT_OF(sizes) };
static softmax contexts[N_CASES];

static op_case case_of(int k) {
    contexts[k] = (softmax){sizes[k / 2].axis, k % 2};
    return (op_case){
        .name = sizes[k / 2].names[k % 2],
        .n_inputs = 1,
        .inputs = {{.shape = sizes[k / 2].shape, .low = -sizes[k / 2].range, .high = sizes[k / 2].range}},
        .build = build,
        .reference = reference,
        .context = &contexts[k],
        .samples = 60,
    };
}

/* ---- extremes ---- */

static const float large[] = {1e4f, -1e4f, 9999, 0, 1e4f, 1e4f, -1e4f, -9999.5f, -1e4f, 1e30f, 1, 1e30f};

/* Values that exp would not survive, ties among them. */
static void very_large_values(void **state) {
    (void)state;
    const double y[] = {1 / (1 + exp(-1)), 0, 1 / (1 + exp(1)), 0, 0.5, 0.5, 0, 0, 0, 0.5, 0, 0.5};
    op_expect(&(op_case){.name = "softmax of 1e4 and 1e30",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(3, 4), .values = large}},
                         .build = build,
                         .context = &(softmax){1, false}},
              y, NULL);
    /* -20000 and less: exactly representable, so nothing is lost. */
    static const float far[] = {1e4f, -1e4f, -1e4f, 1e4f};
    op_expect(&(op_case){.name = "log_softmax of 1e4",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(2, 2), .values = far}},
                         .build = build,
                         .context = &(softmax){1, true},
                         .seed = (const float[]){1, 1, 1, 1}},
              (double[]){0, -20000, -20000, 0}, (const double *[]){(double[]){-1, 1, 1, -1}});
}

/* Rows sum to 1 to rounding, whatever is in them. */
static void rows_sum_to_one(void **state) {
    (void)state;
    const op_case spec = {.name = "rows sum to 1",
                          .n_inputs = 1,
                          .inputs = {{.shape = OP_SHAPE(37, 129), .low = -20, .high = 20}},
                          .build = build,
                          .context = &(softmax){1, false},
                          .no_gradient = true};
    op_run run;
    array y = {0};
    op_open(&run, &spec);
    op_step(&run);
    op_read(&run, run.y, run.y, &y);
    for (int64_t row = 0; row < 37; row++) {
        double sum = 0;
        for (int64_t i = 0; i < 129; i++) {
            double value = y.values[row * 129 + i];
            assert_true(value >= 0 && value <= 1);
            sum += value;
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    array_free(&y);
    op_close(&run);
}

int main(void) {
    static op_case cases[N_CASES];
    for (int k = 0; k < N_CASES; k++) cases[k] = case_of(k);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_large_values),
        cmocka_unit_test(rows_sum_to_one),
    };
    return op_main("softmax", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
