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

static void reference(const ref_array *inputs, ref_array *y, const void *context) {
    const softmax *s = context;
    const ref_array *x = &inputs[0];
    int axis = s->axis < 0 ? s->axis + x->shape.rank : s->axis;
    int64_t n = x->shape.dims[axis], stride = 1, index[CLT_MAX_RANK] = {0}, at = 0;
    for (int d = axis + 1; d < x->shape.rank; d++) stride *= x->shape.dims[d];
    ref_resize(y, x->shape);
    do {
        double total = ref_log_sum_exp(x->values + at - index[axis] * stride, n, stride);
        double value = x->values[at] - total;
        y->values[at++] = s->log ? value : exp(value);
    } while (ref_next(&x->shape, index));
}

/* Each case as softmax and as log_softmax. */
#define ONE(label, size, along, logarithm, ...)        \
    {.name = label,                                    \
     .n_inputs = 1,                                    \
     .inputs = {{.shape = size, __VA_ARGS__}},         \
     .build = build,                                   \
     .reference = reference,                           \
     .context = &(softmax){along, logarithm},          \
     .samples = 60}
#define BOTH(label, size, along, ...)                            \
    ONE("softmax, " label, size, along, false, __VA_ARGS__),     \
        ONE("log_softmax, " label, size, along, true, __VA_ARGS__)

static const float large[] = {1e4f, -1e4f, 9999, 0, 1e4f, 1e4f, -1e4f, -9999.5f, -1e4f, 1e30f, 1, 1e30f};

static const op_case cases[] = {
    BOTH("axis 0 of 4", OP_SHAPE(3, 4, 5, 7), 0, .low = -3, .high = 3),
    BOTH("axis 1 of 4", OP_SHAPE(3, 4, 5, 7), 1, .low = -3, .high = 3),
    BOTH("axis 2 of 4", OP_SHAPE(3, 4, 5, 7), 2, .low = -3, .high = 3),
    BOTH("axis 3 of 4", OP_SHAPE(3, 4, 5, 7), 3, .low = -3, .high = 3),
    BOTH("axis -1", OP_SHAPE(9, 10), -1, .low = -3, .high = 3),
    BOTH("axis -2", OP_SHAPE(3, 4, 5), -2, .low = -3, .high = 3),
    BOTH("rank 1", OP_SHAPE(11), 0, .low = -3, .high = 3),
    BOTH("of one element", OP_SHAPE(5, 1), 1, .low = -3, .high = 3),
    BOTH("of one element on axis 0", OP_SHAPE(1, 5), 0, .low = -3, .high = 3),
    BOTH("long rows", OP_SHAPE(2, 1031), 1, .low = -3, .high = 3),
    BOTH("many rows", OP_SHAPE(523, 3), 1, .low = -3, .high = 3),
    BOTH("large values", OP_SHAPE(3, 7), 1, .low = -1e4, .high = 1e4),
    BOTH("rank 8", OP_SHAPE(2, 1, 3, 1, 5, 2, 1, 2), 4, .low = -3, .high = 3),
};

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
    const op_case spec = ONE("rows sum to 1", OP_SHAPE(37, 129), 1, false, .low = -20, .high = 20);
    op_run run;
    ref_array y = {0};
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
    ref_free(&y);
    op_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_large_values),
        cmocka_unit_test(rows_sum_to_one),
    };
    return op_main("softmax", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
