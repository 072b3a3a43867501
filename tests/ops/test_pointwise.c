/* Ops of one operand, and powers: values, gradients, kinks and extremes. */
#include "tests/ops/harness.h"

#include <math.h>

/* ---- definitions ---- */

typedef struct unary {
    clt_tensor *(*build)(clt_tensor *a, const float *s);
    double (*value)(double a, const float *s);
    float s[2];
} unary;

static clt_tensor *build_unary(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const unary *u = context;
    return u->build(inputs[0], u->s);
}

static void reference_unary(const array *inputs, array *y, const void *context) {
    const unary *u = context;
    array_resize(y, inputs[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = u->value(inputs[0].values[i], u->s);
}

/* OP(name, formula): the builder's and the formula's functions, and the pair. */
#define PLAIN(name, formula)                                       \
    static clt_tensor *build_##name(clt_tensor *a, const float *s) { \
        (void)s;                                                   \
        return clt_##name(a);                                      \
    }                                                              \
    static double value_##name(double a, const float *s) {         \
        (void)s;                                                   \
        return formula;                                            \
    }                                                              \
    static const unary op_##name = {build_##name, value_##name, {0}};
#define SCALAR(name, formula)                                        \
    static clt_tensor *build_##name(clt_tensor *a, const float *s) { \
        return clt_##name(a, s[0]);                                  \
    }                                                                \
    static double value_##name(double a, const float *s) {           \
        return formula;                                              \
    }
PLAIN(neg, -a)
PLAIN(abs, fabs(a))
PLAIN(exp, exp(a))
PLAIN(log, log(a))
PLAIN(sqrt, sqrt(a))
PLAIN(relu, fmax(a, 0))
PLAIN(gelu, a / 2 * (1 + erf(a / sqrt(2))))
PLAIN(tanh, tanh(a))
PLAIN(sigmoid, 1 / (1 + exp(-a)))
PLAIN(silu, a / (1 + exp(-a)))
SCALAR(add_scalar, a + s[0])
SCALAR(mul_scalar, a * s[0])
SCALAR(pow_scalar, pow(a, s[0]))

static clt_tensor *build_clip(clt_tensor *a, const float *s) {
    return clt_clip(a, s[0], s[1]);
}

static double value_clip(double a, const float *s) {
    return fmin(fmax(a, s[0]), s[1]);
}

static const unary op_clip = {build_clip, value_clip, {-0.5f, 1.25f}};
static const unary op_clip_point = {build_clip, value_clip, {0.5f, 0.5f}};
static const unary op_add = {build_add_scalar, value_add_scalar, {0.3f}};
static const unary op_mul = {build_mul_scalar, value_mul_scalar, {-1.7f}};
static const unary op_mul_zero = {build_mul_scalar, value_mul_scalar, {0}};
static const unary op_square = {build_pow_scalar, value_pow_scalar, {2}};
static const unary op_cube = {build_pow_scalar, value_pow_scalar, {3}};
static const unary op_root = {build_pow_scalar, value_pow_scalar, {0.5f}};
static const unary op_inverse = {build_pow_scalar, value_pow_scalar, {-1}};
static const unary op_power_zero = {build_pow_scalar, value_pow_scalar, {0}};
static const unary op_power_one = {build_pow_scalar, value_pow_scalar, {1}};

/* ---- cases ---- */

static const float extremes[] = {-200, -80, -40, -20, -5, -1, 0, 1, 5, 20, 40, 80, 200};
static const float negatives[] = {-3, -2.5f, -1, -0.5f, -0.125f, 0.125f, 2, 3};

#define UNARY(label, op, size, ...)                          \
    {.name = label,                                          \
     .n_inputs = 1,                                          \
     .inputs = {{.shape = size, __VA_ARGS__}},               \
     .build = build_unary,                                   \
     .reference = reference_unary,                           \
     .context = &(op)}
#define ODD OP_SHAPE(3, 5, 7)
#define ONE OP_SHAPE(1)
#define LONG OP_SHAPE(1031)

static const op_case unary_cases[] = {
    UNARY("neg", op_neg, ODD),
    UNARY("abs", op_abs, ODD, .kinks = {0}, .n_kinks = 1),
    UNARY("exp", op_exp, ODD, .low = -5, .high = 5),
    UNARY("log", op_log, ODD, .low = 0.05, .high = 9),
    UNARY("sqrt", op_sqrt, ODD, .low = 0.05, .high = 9),
    UNARY("clip", op_clip, ODD, .kinks = {-0.5, 1.25}, .n_kinks = 2),
    UNARY("clip to a point", op_clip_point, ODD, .kinks = {0.5}, .n_kinks = 1),
    UNARY("relu", op_relu, ODD, .kinks = {0}, .n_kinks = 1),
    UNARY("gelu", op_gelu, ODD, .low = -4, .high = 4),
    UNARY("tanh", op_tanh, ODD, .low = -4, .high = 4),
    UNARY("sigmoid", op_sigmoid, ODD, .low = -6, .high = 6),
    UNARY("silu", op_silu, ODD, .low = -6, .high = 6),
    UNARY("add_scalar", op_add, ODD),
    UNARY("mul_scalar", op_mul, ODD),
    UNARY("mul_scalar by 0", op_mul_zero, ODD),
    UNARY("pow_scalar 2", op_square, ODD),
    UNARY("pow_scalar 3", op_cube, ODD),
    UNARY("pow_scalar 0.5", op_root, ODD, .low = 0.05, .high = 4),
    UNARY("pow_scalar -1", op_inverse, ODD, .low = 0.25, .high = 4),
    UNARY("pow_scalar 0", op_power_zero, ODD, .low = -2, .high = 2),
    UNARY("pow_scalar 1", op_power_one, ODD, .low = -2, .high = 2),
    UNARY("pow_scalar 2 of negatives", op_square, OP_SHAPE(8), .values = negatives),
    UNARY("pow_scalar 3 of negatives", op_cube, OP_SHAPE(8), .values = negatives),
    UNARY("pow_scalar -1 of negatives", op_inverse, OP_SHAPE(8), .values = negatives),
    UNARY("tanh, one element", op_tanh, ONE),
    UNARY("tanh, a scalar", op_tanh, {0}),
    UNARY("tanh, rank 8", op_tanh, OP_SHAPE(2, 1, 3, 1, 2, 1, 5, 1)),
    UNARY("silu, many elements", op_silu, LONG),
    UNARY("gelu of extremes", op_gelu, OP_SHAPE(13), .values = extremes),
    UNARY("silu of extremes", op_silu, OP_SHAPE(13), .values = extremes),
    UNARY("sigmoid of extremes", op_sigmoid, OP_SHAPE(13), .values = extremes),
    UNARY("tanh of extremes", op_tanh, OP_SHAPE(13), .values = extremes),
};

/* ---- what differences cannot tell: values at kinks ---- */

#define AT(label, op, n, given)                                                \
    {.name = label,                                                            \
     .n_inputs = 1,                                                            \
     .inputs = {{.shape = OP_SHAPE(n), .values = given}},                      \
     .build = build_unary,                                                     \
     .context = &(op),                                                         \
     .seed = (const float[]){2, 2, 2, 2, 2}}

static void gradient_at_kinks(void **state) {
    (void)state;
    static const float x[] = {-1, 0, -0.0f, 1, 0x1p-149f};
    const double twice[] = {0, 0, 0, 2, 2}, slope[] = {-2, 0, 0, 2, 2};
    /* Devices may take numbers below the normal range for zero: the last is left out. */
    op_expect(&(op_case)AT("relu at 0", op_relu, 4, x), (double[]){0, 0, 0, 1}, (const double *[]){twice});
    op_expect(&(op_case)AT("abs at 0", op_abs, 4, x), (double[]){1, 0, 0, 1}, (const double *[]){slope});
    static const float bounds[] = {-1, -0.5f, 0, 1.25f, 2};
    op_expect(&(op_case)AT("clip at its bounds", op_clip, 5, bounds), (double[]){-0.5, -0.5, 0, 1.25, 1.25},
              (const double *[]){(double[]){0, 2, 2, 2, 0}});
}

static void powers_of_zero(void **state) {
    (void)state;
    static const float x[] = {0, 3};
    op_expect(&(op_case)AT("0 to 2", op_square, 2, x), (double[]){0, 9}, (const double *[]){(double[]){0, 12}});
    op_expect(&(op_case)AT("0 to 3", op_cube, 2, x), (double[]){0, 27}, (const double *[]){(double[]){0, 54}});
    op_expect(&(op_case)AT("0 to 0", op_power_zero, 2, x), (double[]){1, 1}, (const double *[]){(double[]){0, 0}});
    op_expect(&(op_case)AT("0 to 1", op_power_one, 2, x), (double[]){0, 3}, (const double *[]){(double[]){2, 2}});
}

static void infinities(void **state) {
    (void)state;
    static const float x[] = {0, 1}, large[] = {100, -200};
    op_expect(&(op_case)AT("log of 0", op_log, 2, x), (double[]){-INFINITY, 0}, NULL);
    op_expect(&(op_case)AT("1/0", op_inverse, 2, x), (double[]){INFINITY, 1}, NULL);
    op_expect(&(op_case)AT("exp past the range", op_exp, 2, large), (double[]){INFINITY, 0}, NULL);
}

/* A diverged model must show it. */
static void not_a_number_passes(void **state) {
    (void)state;
    static const float x[] = {NAN, 1};
    const double same[] = {NAN, 1};
    op_expect(&(op_case)AT("relu of NaN", op_relu, 2, x), same, NULL);
    op_expect(&(op_case)AT("clip of NaN", op_clip, 2, x), same, NULL);
    op_expect(&(op_case)AT("abs of NaN", op_abs, 2, x), same, NULL);
    static const float negative[] = {-1, 1};
    op_expect(&(op_case)AT("log of -1", op_log, 2, negative), (double[]){NAN, 0}, NULL);
    op_expect(&(op_case)AT("sqrt of -1", op_sqrt, 2, negative), same, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_at_kinks),
        cmocka_unit_test(powers_of_zero),
        cmocka_unit_test(infinities),
        cmocka_unit_test(not_a_number_passes),
    };
    return op_main("pointwise", unary_cases, CLT_COUNT_OF(unary_cases), tests, CLT_COUNT_OF(tests));
}
