/* Cross-entropy, binary cross-entropy with logits, and the mean squared error. */
#include "tests/ops/harness.h"

#include <math.h>

/* ---- definitions ---- */

static clt_tensor *build_cross_entropy(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_cross_entropy(inputs[0], inputs[1]);
}

static void cross_entropy(const array *inputs, array *y, const void *context) {
    (void)context;
    int64_t n = inputs[0].shape.dims[0], classes = inputs[0].shape.dims[1];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = inputs[0].values + i * classes;
        sum += log_sum_exp(row, classes, 1) - row[(int64_t)inputs[1].values[i]];
    }
    array_resize(y, (clt_shape){0});
    y->values[0] = sum / (double)n;
}

static clt_tensor *build_bce(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_bce_with_logits(inputs[0], inputs[1]);
}

/* -log of the sigmoid, in long double: right for any logit that f32 tests reach. */
static double minus_log_sigmoid(double a) {
    return a < 0 ? (double)(-a + log1pl(expl(a))) : (double)log1pl(expl(-a));
}

static void bce(const array *inputs, array *y, const void *context) {
    (void)context;
    double sum = 0;
    for (int64_t i = 0; i < array_count(&inputs[0]); i++) {
        double logit = inputs[0].values[i], target = inputs[1].values[i];
        sum += target * minus_log_sigmoid(logit) + (1 - target) * minus_log_sigmoid(-logit);
    }
    array_resize(y, (clt_shape){0});
    y->values[0] = sum / (double)array_count(&inputs[0]);
}

static clt_tensor *build_mse(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_mse_loss(inputs[0], inputs[1]);
}

static void mse(const array *inputs, array *y, const void *context) {
    (void)context;
    double sum = 0;
    for (int64_t i = 0; i < array_count(&inputs[0]); i++)
        sum += pow(inputs[0].values[i] - inputs[1].values[i], 2);
    array_resize(y, (clt_shape){0});
    y->values[0] = sum / (double)array_count(&inputs[0]);
}

/* ---- cases ---- */

static const float classes_of_3[] = {2, 0, 2}, large_logits[] = {1e4f, -1e4f, 9999, -1e4f, 1e4f, 0, 5000, 5000, 5000};
static const float far_logits[] = {-200, -80, -20, 0, 20, 80, 200};
static const float targets[] = {0, 1, 0.25f, 0.5f, 1, 0, 1};

#define CROSS_ENTROPY(label, n, classes, ...)                                        \
    {.name = "cross_entropy, " label,                                                \
     .n_inputs = 2,                                                                  \
     .inputs = {{.shape = OP_SHAPE(n, classes), __VA_ARGS__},                        \
                {.dtype = CLT_I32, .shape = OP_SHAPE(n), .high = classes}},          \
     .build = build_cross_entropy,                                                   \
     .reference = cross_entropy,                                                     \
     .floor = 1e-4,                                                                  \
     .samples = 100}
#define PAIR(label, size, builder, definition, ...)                                  \
    {.name = label,                                                                  \
     .n_inputs = 2,                                                                  \
     .inputs = {{.shape = size}, {.shape = size, __VA_ARGS__}},                      \
     .build = builder,                                                               \
     .reference = definition,                                                        \
     .floor = 1e-4}
static const op_case cases[] = {
    CROSS_ENTROPY("10 classes", 9, 10),
    CROSS_ENTROPY("2 classes", 17, 2),
    CROSS_ENTROPY("1 class", 4, 1),
    CROSS_ENTROPY("1 row", 1, 7),
    CROSS_ENTROPY("1 row, 1 class", 1, 1),
    CROSS_ENTROPY("1031 classes", 3, 1031),
    CROSS_ENTROPY("523 rows", 523, 5),
    CROSS_ENTROPY("logits of thousands", 5, 6, .low = -1e4, .high = 1e4),
    {.name = "cross_entropy, given large logits",
     .n_inputs = 2,
     .inputs = {{.shape = OP_SHAPE(3, 3), .values = large_logits},
                {.dtype = CLT_I32, .shape = OP_SHAPE(3), .values = classes_of_3}},
     .build = build_cross_entropy,
     .reference = cross_entropy},
    PAIR("bce_with_logits", OP_SHAPE(5, 7), build_bce, bce, .low = 0.01, .high = 1),
    PAIR("bce_with_logits, rank 1", OP_SHAPE(1), build_bce, bce, .low = 0.01, .high = 1),
    {.name = "bce_with_logits, large logits",
     .n_inputs = 2,
     .inputs = {{.shape = OP_SHAPE(7), .values = far_logits}, {.shape = OP_SHAPE(7), .values = targets}},
     .build = build_bce,
     .reference = bce},
    PAIR("mse_loss", OP_SHAPE(5, 7), build_mse, mse, .low = -2, .high = 3),
    PAIR("mse_loss, one element", OP_SHAPE(1, 1), build_mse, mse, .low = -2, .high = 3),
    PAIR("mse_loss, rank 8", OP_SHAPE(1, 2, 1, 3, 1, 2, 1, 2), build_mse, mse, .low = -2, .high = 3),
    PAIR("mse_loss, many elements", OP_SHAPE(1031, 3), build_mse, mse, .low = -2, .high = 3),
};

/* ---- targets out of range ---- */

static void target_out_of_range_gives_nan(void **state) {
    (void)state;
    static const float logits[] = {1, 2, 3, 4, 5, 6};
    static const float bad[][2] = {{0, 3}, {-1, 1}, {2000000000, 0}, {0, -2147483648.0f}};
    for (int i = 0; i < 4; i++)
        op_expect(&(op_case){.name = "target out of range",
                             .n_inputs = 2,
                             .inputs = {{.shape = OP_SHAPE(2, 3), .values = logits},
                                        {.dtype = CLT_I32, .shape = OP_SHAPE(2), .values = bad[i]}},
                             .build = build_cross_entropy,
                             .no_gradient = true},
                  (double[]){NAN}, NULL);
}

/* Infinite logits other than +inf are rare but legal: a class that was ruled out. */
static void classes_ruled_out(void **state) {
    (void)state;
    static const float logits[] = {0, -INFINITY, 0}, target[] = {2};
    op_expect(&(op_case){.name = "a logit of -inf",
                         .n_inputs = 2,
                         .inputs = {{.shape = OP_SHAPE(1, 3), .values = logits},
                                    {.dtype = CLT_I32, .shape = OP_SHAPE(1), .values = target}},
                         .build = build_cross_entropy,
                         .seed = (const float[]){1}},
              (double[]){log(2)}, (const double *[]){(double[]){0.5, 0, -0.5}, NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(target_out_of_range_gives_nan),
        cmocka_unit_test(classes_ruled_out),
    };
    return op_main("losses", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
