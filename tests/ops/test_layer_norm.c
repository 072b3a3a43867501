/* Layer normalization over the last dimensions. */
#include "tests/ops/harness.h"

#include <math.h>

typedef struct norm {
    int dims;
    clt_norm_options options;
} norm;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const norm *n = context;
    return clt_layer_norm_with(inputs[0], "ln", n->dims, n->options);
}

static clt_tensor *build_plain(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_layer_norm(inputs[0], "ln", ((const norm *)context)->dims);
}

/* Operands: x, weight, bias; the last two have the shape of what is normalized. */
static void reference(const array *inputs, array *y, const void *context) {
    const norm *n = context;
    double eps = n->options.eps > 0 ? n->options.eps : 1e-5f;
    int64_t length = array_count(&inputs[1]);
    array_resize(y, inputs[0].shape);
    for (int64_t first = 0; first < array_count(y); first += length) {
        const double *row = inputs[0].values + first;
        long double mean = 0, variance = 0;
        for (int64_t i = 0; i < length; i++) mean += row[i] / (long double)length;
        for (int64_t i = 0; i < length; i++) variance += (row[i] - mean) * (row[i] - mean) / length;
        for (int64_t i = 0; i < length; i++)
            y->values[first + i] =
                (double)((row[i] - mean) / sqrtl(variance + eps)) * inputs[1].values[i] + inputs[2].values[i];
    }
}

static const norm one = {1, {0}}, two = {2, {0}}, three = {3, {0}}, wide = {1, {.eps = 0.5f}};

#define NORM(label, builder, size, inner, options, ...)             \
    {.name = label,                                                 \
     .n_inputs = 3,                                                 \
     .inputs = {{.shape = size, __VA_ARGS__},                       \
                {.variable = "ln.weight", .shape = inner},          \
                {.variable = "ln.bias", .shape = inner}},           \
     .build = builder,                                              \
     .reference = reference,                                        \
     .context = &(options),                                         \
     .samples = 100}

static op_case cases[] = {
    NORM("last of 2", build_plain, OP_SHAPE(5, 7), OP_SHAPE(7), one),
    NORM("last of 3", build_plain, OP_SHAPE(2, 3, 9), OP_SHAPE(9), one),
    NORM("last 2 of 3", build_plain, OP_SHAPE(4, 3, 5), OP_SHAPE(3, 5), two),
    NORM("last 3 of 4", build_plain, OP_SHAPE(3, 2, 3, 5), OP_SHAPE(2, 3, 5), three),
    NORM("all of 3", build_plain, OP_SHAPE(2, 3, 5), OP_SHAPE(2, 3, 5), three),
    NORM("all of 1", build_plain, OP_SHAPE(11), OP_SHAPE(11), one),
    NORM("eps given", build, OP_SHAPE(3, 6), OP_SHAPE(6), wide),
    NORM("two elements a row", build, OP_SHAPE(3, 2), OP_SHAPE(2), wide),
    NORM("long rows", build_plain, OP_SHAPE(3, 1031), OP_SHAPE(1031), one),
    NORM("many rows", build_plain, OP_SHAPE(517, 3), OP_SHAPE(3), one),
    NORM("many long rows", build_plain, OP_SHAPE(301, 129), OP_SHAPE(129), one),
    NORM("mean far from 0", build_plain, OP_SHAPE(4, 64), OP_SHAPE(64), one, .low = 1000, .high = 1002),
};

/* A row of one element, or of equal ones, is normalized to 0. */
static void no_variance(void **state) {
    (void)state;
    static const float x[] = {4, -2, 0}, weight[] = {3}, bias[] = {0.5f};
    op_expect(&(op_case){.name = "one element a row",
                         .n_inputs = 3,
                         .inputs = {{.shape = OP_SHAPE(3, 1), .values = x},
                                    {.variable = "ln.weight", .shape = OP_SHAPE(1), .values = weight},
                                    {.variable = "ln.bias", .shape = OP_SHAPE(1), .values = bias}},
                         .build = build,
                         .context = &one,
                         .seed = (const float[]){1, 2, 3}},
              (double[]){0.5, 0.5, 0.5}, (const double *[]){(double[3]){0}, (double[]){0}, (double[]){6}});
}

int main(void) {
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++)
        if (cases[i].inputs[0].low == 1000) cases[i].tolerance = 2e-3;
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_variance)};
    return op_main("layer_norm", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
