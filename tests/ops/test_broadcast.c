/* Pointwise ops of two operands, over the ways in which shapes stretch. */
#include "tests/ops/harness.h"

#include <math.h>
#include <stdio.h>

/* ---- definitions ---- */

typedef struct binary {
    const char *name;
    clt_tensor *(*build)(clt_tensor *a, clt_tensor *b);
    double (*value)(double a, double b);
    double low_a, low_b; /* values come from [low, low + 2.5) */
} binary;

static double value_add(double a, double b) {
    return a + b;
}

static double value_sub(double a, double b) {
    return a - b;
}

static double value_mul(double a, double b) {
    return a * b;
}

static double value_div(double a, double b) {
    return a / b;
}

static const binary ops[] = {
    {"add", clt_add, value_add, -1, -1},    {"sub", clt_sub, value_sub, -1, -1},
    {"mul", clt_mul, value_mul, -1, -1},    {"div", clt_div, value_div, -1, 0.5},
    {"pow", clt_pow, pow, 0.25, -1},
};

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return ((const binary *)context)->build(inputs[0], inputs[1]);
}

static void reference(const array *inputs, array *y, const void *context) {
    const binary *op = context;
    clt_shape shape = shape_broadcast(&inputs[0].shape, &inputs[1].shape);
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, i = 0;
    do
        y->values[i++] = op->value(array_broadcast_at(&inputs[0], &shape, index),
                                   array_broadcast_at(&inputs[1], &shape, index));
    while (index_next(&shape, index));
}

/* ---- cases: the product with every pair of shapes, other ops with every fourth ---- */

static const clt_shape pairs[][2] = {
    {OP_SHAPE(3, 4, 5), OP_SHAPE(3, 4, 5)},
    {OP_SHAPE(2, 3, 4, 5), OP_SHAPE(3, 1, 1)}, /* a bias on channels */
    {OP_SHAPE(2, 3, 4, 5), OP_SHAPE(1, 3, 1, 1)},
    {OP_SHAPE(3, 4, 5), OP_SHAPE(1)},
    {OP_SHAPE(3, 4), {0}},
    {{0}, {0}},
    {OP_SHAPE(6, 5), OP_SHAPE(5)},
    {OP_SHAPE(6, 5), OP_SHAPE(6, 1)},
    {OP_SHAPE(7, 1), OP_SHAPE(1, 6)}, /* both stretch */
    {OP_SHAPE(3, 1, 5), OP_SHAPE(1, 4, 1)},
    {OP_SHAPE(2, 3, 4, 5), OP_SHAPE(2, 1, 1, 5)}, /* stretched in the middle */
    {OP_SHAPE(2, 3, 4, 5), OP_SHAPE(2, 1, 4, 1)},
    {OP_SHAPE(2, 1, 3, 1, 2, 1, 2, 1), OP_SHAPE(1, 2, 1, 2, 1, 3, 1, 2)},
    {OP_SHAPE(2, 1, 2, 3, 1, 1, 2, 5), OP_SHAPE(2, 5)},
    {OP_SHAPE(1, 6), OP_SHAPE(6)}, /* the same elements, another rank */
    {OP_SHAPE(5), OP_SHAPE(4, 3, 5)}, /* the first stretches */
    {OP_SHAPE(1), OP_SHAPE(1, 1, 1)},
    {OP_SHAPE(1, 257, 1), OP_SHAPE(3, 1, 2)},
};

enum { N_OPS = CLT_COUNT_OF(ops), N_PAIRS = CLT_COUNT_OF(pairs), MOST = N_OPS * N_PAIRS };

static op_case cases[MOST];
static char names[MOST][160];

static op_case case_of(const binary *op, const clt_shape *pair, char name[160]) {
    char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
    snprintf(name, 160, "%s %.60s %.60s", op->name, clt_shape_text(&pair[0], a), clt_shape_text(&pair[1], b));
    return (op_case){
        .name = name,
        .n_inputs = 2,
        .inputs = {{.shape = pair[0], .low = op->low_a, .high = op->low_a + 2.5},
                   {.shape = pair[1], .low = op->low_b, .high = op->low_b + 2.5}},
        .build = build,
        .reference = reference,
        .context = op,
        .samples = 40,
    };
}

static size_t make_cases(void) {
    size_t n = 0;
    for (int o = 0; o < N_OPS; o++)
        for (int p = 0; p < N_PAIRS; p += ops[o].build == clt_mul ? 1 : 4, n++)
            cases[n] = case_of(&ops[o], pairs[p], names[n]);
    return n;
}

/* ---- powers where a logarithm is none ---- */

#define POWER(label, base, exponent, ...)                                  \
    {.name = label,                                                        \
     .n_inputs = 2,                                                        \
     .inputs = {{.shape = OP_SHAPE(4), .values = base},                    \
                {.shape = OP_SHAPE(4), .values = exponent, __VA_ARGS__}},  \
     .build = build,                                                       \
     .reference = reference,                                               \
     .context = &ops[4],                                                   \
     .seed = (const float[]){1, 1, 1, 1}}

static void power_of_negatives(void **state) {
    (void)state;
    static const float base[] = {-2, -0.5f, -3, -1.5f}, exponent[] = {2, 3, -1, 0};
    op_expect(&(op_case)POWER("negative bases", base, exponent, .constant = true),
              (double[]){4, -0.125, -1 / 3.0, 1}, (const double *[]){(double[]){-4, 0.75, -1 / 9.0, 0}, NULL});
}

static void power_of_zero(void **state) {
    (void)state;
    static const float base[] = {0, 0, 0, 2}, exponent[] = {0, 1, 2, 3};
    op_expect(&(op_case)POWER("zero bases", base, exponent), (double[]){1, 0, 0, 8},
              (const double *[]){(double[]){0, 1, 0, 12}, (double[]){0, 0, 0, 8 * log(2)}});
}

/* x used twice, as both operands. */
static clt_tensor *build_square(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_mul(inputs[0], inputs[0]);
}

static void both_operands_the_same(void **state) {
    (void)state;
    static const float x[] = {-2, 0, 1, 3};
    op_expect(&(op_case){.name = "x x",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(4), .values = x}},
                         .build = build_square,
                         .seed = (const float[]){1, 1, 1, 1}},
              (double[]){4, 0, 1, 9}, (const double *[]){(double[]){-4, 0, 2, 6}});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_of_negatives),
        cmocka_unit_test(power_of_zero),
        cmocka_unit_test(both_operands_the_same),
    };
    size_t n = make_cases();
    return op_main("broadcast", cases, n, tests, CLT_COUNT_OF(tests));
}
