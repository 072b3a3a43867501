/* Pointwise ops: one operand or two, which broadcast; and conversions. */
#include "tools/cltrain-conform/cases.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef double (*formula)(double a, double b, double s, double t);

/* What f32 does not reach is infinite. */
static double in_range(double value) {
    return fabs(value) > (double)FLT_MAX ? copysign(INFINITY, value) : value;
}

static double apply(formula f, const array *x, int n, array *y, const attributes *at) {
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_resize(y, n == 2 ? shape_broadcast(&x[0].shape, &x[1].shape) : x[0].shape);
    do {
        double b = n == 2 ? array_broadcast_at(&x[1], &y->shape, index) : 0;
        double a = array_broadcast_at(&x[0], &y->shape, index);
        y->values[place++] = in_range(f(a, b, (double)at->s[0], (double)at->s[1]));
    } while (index_next(&y->shape, index));
    return 4.0 * (double)place;
}

/* An op: its builder, and its value of operands a and b with scalars s and t. */
#define POINTWISE(name, builder, value)                                                                 \
    BUILD(name, builder)                                                                                \
    static double value_##name(double a, double b, double s, double t) {                                \
        return (void)a, (void)b, (void)s, (void)t, (value);                                             \
    }                                                                                                   \
    static double reference_##name(const array *x, int n, array *y, const attributes *at, bool evaluation) { \
        return (void)evaluation, apply(value_##name, x, n, y, at);                                      \
    }
POINTWISE(add, clt_add(x[0], x[1]), a + b)
POINTWISE(sub, clt_sub(x[0], x[1]), a - b)
POINTWISE(mul, clt_mul(x[0], x[1]), a * b)
POINTWISE(div, clt_div(x[0], x[1]), a / b)
POINTWISE(pow, clt_pow(x[0], x[1]), pow(a, b))
POINTWISE(add_scalar, clt_add_scalar(x[0], at->s[0]), a + s)
POINTWISE(mul_scalar, clt_mul_scalar(x[0], at->s[0]), a * s)
POINTWISE(pow_scalar, clt_pow_scalar(x[0], at->s[0]), pow(a, s))
POINTWISE(neg, clt_neg(x[0]), -a)
POINTWISE(abs, clt_abs(x[0]), fabs(a))
POINTWISE(exp, clt_exp(x[0]), exp(a))
POINTWISE(log, clt_log(x[0]), log(a))
POINTWISE(sqrt, clt_sqrt(x[0]), sqrt(a))
POINTWISE(clip, clt_clip(x[0], at->s[0], at->s[1]), a < s ? s : a > t ? t : a)
POINTWISE(relu, clt_relu(x[0]), a < 0 ? 0 : a)
POINTWISE(gelu_tanh, clt_gelu_tanh(x[0]), a / (1 + exp(-2 * sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a))))
POINTWISE(gelu, clt_gelu(x[0]), 0.5 * a * erfc(-a * sqrt(0.5)))
POINTWISE(tanh, clt_tanh(x[0]), tanh(a))
POINTWISE(sigmoid, clt_sigmoid(x[0]), 1 / (1 + exp(-a)))
POINTWISE(silu, clt_silu(x[0]), a / (1 + exp(-a)))

POINTWISE(leaky_relu, clt_leaky_relu(x[0], at->s[0]), a < 0 ? s *a : a)
POINTWISE(elu, clt_elu(x[0], at->s[0]), a > 0 ? a : s *expm1(a))
POINTWISE(softplus, clt_softplus(x[0]), fmax(a, 0) + log1p(exp(-fabs(a))))
POINTWISE(hard_sigmoid, clt_hard_sigmoid(x[0]), isnan(a) ? a : fmin(fmax(a / 6 + 0.5, 0), 1))
POINTWISE(hard_swish, clt_hard_swish(x[0]), a * fmin(fmax(a / 6 + 0.5, 0), 1))
POINTWISE(erf, clt_erf(x[0]), erf(a))
POINTWISE(sin, clt_sin(x[0]), sin(a))
POINTWISE(cos, clt_cos(x[0]), cos(a))
POINTWISE(maximum, clt_maximum(x[0], x[1]), isnan(a) || isnan(b) ? NAN : fmax(a, b))
POINTWISE(minimum, clt_minimum(x[0], x[1]), isnan(a) || isnan(b) ? NAN : fmin(a, b))
POINTWISE(equal, clt_equal(x[0], x[1]), a == b)
POINTWISE(greater, clt_greater(x[0], x[1]), a > b)
POINTWISE(greater_equal, clt_greater_equal(x[0], x[1]), a >= b)
POINTWISE(less, clt_less(x[0], x[1]), a < b)
POINTWISE(less_equal, clt_less_equal(x[0], x[1]), a <= b)

/* Losses whose elements stay apart. */
#define APART ((clt_loss_options){CLT_LOSS_NONE})
POINTWISE(mse_loss_with, clt_mse_loss_with(x[0], x[1], APART), (a - b) * (a - b))
POINTWISE(l1_loss_with, clt_l1_loss_with(x[0], x[1], APART), fabs(a - b))
POINTWISE(huber_loss_with, clt_huber_loss_with(x[0], x[1], at->s[0], APART), fabs(a - b) <= s ? 0.5 * (a - b) * (a - b) : s * (fabs(a - b) - 0.5 * s))
POINTWISE(bce_with_logits_with, clt_bce_with_logits_with(x[0], x[1], APART), fmax(a, 0) - a * b + log1p(exp(-fabs(a))))

/* Of a condition that is a comparison: through it goes no gradient. */
BUILD(where, clt_where(clt_less(x[0], x[1]), x[1], clt_mul(x[0], x[0])))
static double value_where(double a, double b, double s, double t) {
    return (void)s, (void)t, a < b ? b : a * a;
}
static double reference_where(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)evaluation, apply(value_where, x, n, y, at);
}

/* ---- gradients where there is no derivative, as PyTorch has them; operands have one shape ---- */

static double slope_relu(double a, double b, const attributes *at) { return (void)b, (void)at, a > 0; }
static double slope_abs(double a, double b, const attributes *at) { return (void)b, (void)at, (a > 0) - (a < 0); }
static double slope_clip(double a, double b, const attributes *at) {
    return (void)b, a >= (double)at->s[0] && a <= (double)at->s[1];
}
static double slope_base(double a, double b, const attributes *at) {
    return (void)at, b == 0 ? 0 : b * pow(a, b - 1);
}
static double slope_exponent(double a, double b, const attributes *at) {
    return (void)at, a == 0 && b >= 0 ? 0 : pow(a, b) * log(a);
}
static double slope_power(double a, double b, const attributes *at) {
    return (void)b, slope_base(a, (double)at->s[0], at);
}

static double slope_leaky_relu(double a, double b, const attributes *at) { return (void)b, a > 0 ? 1 : (double)at->s[0]; }
static double slope_elu(double a, double b, const attributes *at) { return (void)b, a > 0 ? 1 : (double)at->s[0] * exp(a); }
static double slope_hard_sigmoid(double a, double b, const attributes *at) { return (void)b, (void)at, fabs(a) < 3 ? 1.0 / 6 : 0; }
static double slope_hard_swish(double a, double b, const attributes *at) {
    return (void)b, (void)at, a <= -3 ? 0 : a < 3 ? a / 3 + 0.5 : 1;
}
static double slope_larger(double a, double b, const attributes *at) { return (void)at, a > b ? 1 : a == b ? 0.5 : 0; }
static double slope_smaller(double a, double b, const attributes *at) { return (void)at, a < b ? 1 : a == b ? 0.5 : 0; }
static double slope_if_less(double a, double b, const attributes *at) { return (void)at, a < b; }
static double slope_square_else(double a, double b, const attributes *at) { return (void)at, a < b ? 0 : 2 * a; }
static double slope_none(double a, double b, const attributes *at) { return (void)a, (void)b, (void)at, 0; }

static void chain(double (*slope)(double a, double b, const attributes *at), const array *x, bool two, const array *dy,
                  array *dx, const attributes *at) {
    for (int64_t k = 0; k < array_count(x); k++)
        dx->values[k] = dy->values[k] * slope(x[0].values[k], two ? x[1].values[k] : 0, at);
}

static void reference_relu_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_relu, x, false, dy, dx, at);
}
static void reference_abs_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_abs, x, false, dy, dx, at);
}
static void reference_clip_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_clip, x, false, dy, dx, at);
}
static void reference_pow_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    chain(i ? slope_exponent : slope_base, x, true, dy, dx, at);
}
static void reference_pow_scalar_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_power, x, false, dy, dx, at);
}

static void reference_leaky_relu_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_leaky_relu, x, false, dy, dx, at);
}
static void reference_elu_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_elu, x, false, dy, dx, at);
}
static void reference_hard_sigmoid_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_hard_sigmoid, x, false, dy, dx, at);
}
static void reference_hard_swish_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_hard_swish, x, false, dy, dx, at);
}
static void reference_maximum_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    chain(i ? slope_smaller : slope_larger, x, true, dy, dx, at);
}
static void reference_minimum_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    chain(i ? slope_larger : slope_smaller, x, true, dy, dx, at);
}
static void reference_where_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    chain(i ? slope_if_less : slope_square_else, x, true, dy, dx, at);
}
static void reference_none_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_none, x, true, dy, dx, at);
}

/* Of an integer to a smaller one the low bits are left; else it saturates. */
static double cast_to(double value, clt_dtype dtype, bool wraps) {
    if (wraps) return (uint8_t)(int64_t)value;
    double low = dtype == CLT_I32 ? INT32_MIN : 0, high = dtype == CLT_I32 ? INT32_MAX : UINT8_MAX;
    return dtype != CLT_I32 && dtype != CLT_U8 ? float_round(value, dtype) : fmin(fmax(trunc(value), low), high);
}

static double reference_cast(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    array_resize(y, x[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = cast_to(x[0].values[i], at->dtype, at->flag);
    return (double)array_count(y);
}

/* What was rounded has no derivative, but a gradient as if it had not been. */
static void reference_cast_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, (void)at;
    for (int64_t k = 0; k < array_count(x); k++) dx->values[k] = dy->values[k];
}

/* ---- cases ---- */

BUILD(cast, clt_cast(x[0], at->dtype))

/* Errors in units of the last place are what OpenCL 1.2 allows for the function (7.4), one more for what is done around it. */
#define OP(word, most_ulp) OPERATION(#word, "clt_" #word, word, word, .ulp = most_ulp)

typedef struct function {
    operation op;
    operand x[2];
    int n;
    float s[2];
} function;

static const function functions[] = {
    {OP(add, 1), {{0}, {0}}, 2, {0}},
    {OP(sub, 1), {{0}, {0}}, 2, {0}},
    {OP(mul, 1), {{0}, {0}}, 2, {0}},
    {OP(div, 3.5), {{0}, {.low = 0.5, .high = 2}}, 2, {0}},
    {OP(pow, 17), {{.low = 0.2, .high = 2}, {0}}, 2, {0}},
    {OP(add_scalar, 1), {{0}}, 1, {0.7f}},
    {OP(mul_scalar, 1), {{0}}, 1, {-1.3f}},
    {OP(pow_scalar, 17), {{.low = 0.2, .high = 2}}, 1, {1.5f}},
    {OP(neg, 1), {{0}}, 1, {0}},
    {OP(abs, 1), {{.kinks = {0}, .n_kinks = 1}}, 1, {0}},
    {OP(exp, 4), {{.low = -4, .high = 4}}, 1, {0}},
    {OP(log, 4), {{.low = 0.1, .high = 4}}, 1, {0}},
    {OP(sqrt, 4), {{.low = 0.1, .high = 4}}, 1, {0}},
    {OP(clip, 1), {{.kinks = {-0.5, 1}, .n_kinks = 2}}, 1, {-0.5f, 1}},
    {OP(relu, 1), {{.kinks = {0}, .n_kinks = 1}}, 1, {0}},
    {OP(gelu, 0), {{.low = -4, .high = 4}}, 1, {0}},
    {OP(gelu_tanh, 0), {{.low = -4, .high = 4}}, 1, {0}},
    {OP(leaky_relu, 1), {{.kinks = {0}, .n_kinks = 1}}, 1, {0.1f}},
    {OP(elu, 4), {{.low = -4, .high = 4, .kinks = {0}, .n_kinks = 1}}, 1, {0.7f}},
    {OP(softplus, 0), {{.low = -6, .high = 6}}, 1, {0}},
    {OP(hard_sigmoid, 0), {{.low = -6, .high = 6, .kinks = {-3, 3}, .n_kinks = 2}}, 1, {0}},
    {OP(hard_swish, 0), {{.low = -6, .high = 6, .kinks = {-3, 3}, .n_kinks = 2}}, 1, {0}},
    {OP(erf, 17), {{.low = -3, .high = 3}}, 1, {0}},
    {OP(sin, 0), {{.low = -7, .high = 7}}, 1, {0}},
    {OP(cos, 0), {{.low = -7, .high = 7}}, 1, {0}},
    {OP(maximum, 1), {{.low = 1, .high = 3}, {.low = -1, .high = 0.9}}, 2, {0}},
    {OP(minimum, 1), {{.low = 1, .high = 3}, {.low = -1, .high = 0.9}}, 2, {0}},
    {OP(tanh, 6), {{.low = -4, .high = 4}}, 1, {0}},
    {OP(sigmoid, 0), {{.low = -6, .high = 6}}, 1, {0}},
    {OP(silu, 0), {{.low = -6, .high = 6}}, 1, {0}},
};

/* Scalars for which an op has a form, or a gradient, of its own. */
static const struct {
    const char *variant;
    function f;
} forms[] = {
    {"square", {OP(pow_scalar, 1), {{0}}, 1, {2}}},
    {"cube", {OP(pow_scalar, 17), {{0}}, 1, {3}}},
    {"root", {OP(pow_scalar, 17), {{.low = 0.05, .high = 4}}, 1, {0.5f}}},
    {"inverse", {OP(pow_scalar, 17), {{.low = -4, .high = -0.25}}, 1, {-1}}},
    {"one", {OP(pow_scalar, 17), {{0}}, 1, {1}}},
    {"constant", {OP(pow_scalar, 17), {{0}}, 1, {0}}},
    {"zero", {OP(mul_scalar, 1), {{0}}, 1, {0}}},
    {"point", {OP(clip, 1), {{.kinks = {0.5}, .n_kinks = 1}}, 1, {0.5f, 0.5f}}},
};
/* Losses do not broadcast. */
static const function apart[] = {
    {OP(mse_loss_with, 0), {{0}, {0}}, 2, {0}},
    {OP(l1_loss_with, 0), {{.low = 1, .high = 3}, {.low = -1, .high = 0.9}}, 2, {0}},
    {OP(huber_loss_with, 0), {{.low = -4, .high = 4}, {.low = -1, .high = 1}}, 2, {1.5f}},
    {OP(bce_with_logits_with, 0), {{.low = -6, .high = 6}, {.low = 0, .high = 1}}, 2, {0}},
};
static const operation cast = OPERATION("cast", "clt_cast", cast, cast, .no_gradient = true, .ulp = 1);
/* To a type with fewer digits; the gradient's way back is exact. */
static const operation cast_float = OPERATION("cast", "clt_cast", cast, cast, .gradient = reference_cast_gradient, .exact = true, .ulp = 1e-3);

/* ---- operands that are large, tiny or no number, and where there is no derivative ---- */

typedef struct extreme {
    const char *op, *variant;
    const double *a, *b; /* b NULL: one operand */
    int n;
    float s[2];
    bool full;
    bool smooth; /* gradients are asked for, of operands that are all numbers */
} extreme;

/* Nothing lies below f32's normal range, neither here nor in the results: devices may take that for zero. */
#define LIST(name, ...) static const double name[] = {__VA_ARGS__};
#define OF(list) (list), NULL, (int)(sizeof(list) / sizeof *(list))
#define OF_PAIRS(list) list##_a, list##_b, (int)(sizeof list##_a / sizeof *list##_a)
LIST(any, 0, -0.0, 1, -1, 1e-30, -1e-30, 1e30, -1e30, 3e38, -3e38, INFINITY, -INFINITY, NAN)
LIST(powers_of_e, 0, -0.0, 1, -1, 5.5, -5.5, 20, -20, 50, -50, 88, -87, 89, 100, -110, 1000, -1000, INFINITY, -INFINITY, NAN)
LIST(roots, 0, -0.0, -1, 1, 1.5, 10, 1e-37, 3e38, INFINITY, -INFINITY, NAN)
LIST(sigmoids, 0, -0.0, 1, -1, 5.5, -5.5, 20, -20, 80, -80, 89, -89, 100, -100, 200, -200, INFINITY, -INFINITY, NAN)
LIST(gates, 0, -0.0, 1, -1, 5.5, -5.5, 20, -20, 80, -80, 89, -89, 100, -100, 200, -200, INFINITY, NAN) /* 0 x -inf is none */
LIST(far, -200, -100, -89, -88, -80, -20, -8, -5.5, -1, 0, 1, 5.5, 8, 20, 80, 88, 89, 100, 200)
LIST(sum_a, 1, INFINITY, INFINITY, -INFINITY, 2e38, -2e38, 1e30, 1e30, 0, NAN, 1, 1)
LIST(sum_b, INFINITY, INFINITY, -INFINITY, -1, 2e38, -2e38, -1e30, 1, -0.0, 1, NAN, 1e-30)
LIST(product_a, 0, 1, -1, 0, 1, INFINITY, -INFINITY, 3e38, 1e30, 1e30, 1e-30, 1e-30, NAN, 1)
LIST(product_b, 0, 0, 0, INFINITY, INFINITY, INFINITY, -2, 1, 1e30, 1e-30, 1e30, 1e-30, 1, NAN)
LIST(power_a, 0, 0, 0, 0, -2, -2, -2, -2, -2, 10, 10, INFINITY, INFINITY, NAN, 3)
LIST(power_b, 0, 2, 0.5, -1, 0, 2, 3, -1, 0.5, 39, -60, 2, -1, 2, 1)
LIST(powers, 0, -2, -0.5, 2, 1e20, -1e20, INFINITY, NAN)

static const extreme extremes[] = {
    {"add", "extreme", OF_PAIRS(sum), {0}, true},
    {"sub", "extreme", OF_PAIRS(sum), {0}, true},
    {"mul", "extreme", OF_PAIRS(product), {0}, true},
    {"div", "extreme", OF_PAIRS(product), {0}, true},
    {"pow", "extreme", OF_PAIRS(power), {0}},
    {"add_scalar", "extreme", OF(any), {0.7f}, true},
    {"mul_scalar", "extreme", OF(any), {-1.3f}, true},
    {"pow_scalar", "extreme-cube", OF(powers), {3}, true},
    {"pow_scalar", "extreme-inverse", OF(powers), {-1}, true},
    {"pow_scalar", "extreme-root", OF(roots), {0.5f}, true},
    {"neg", "extreme", OF(any), {0}, true},
    {"abs", "extreme", OF(any), {0}, true},
    {"exp", "extreme", OF(powers_of_e), {0}},
    {"log", "extreme", OF(roots), {0}},
    {"sqrt", "extreme", OF(roots), {0}, true},
    {"clip", "extreme", OF(any), {-0.5f, 1}},
    {"relu", "extreme", OF(any), {0}},
    {"gelu", "extreme", OF(gates), {0}, true},
    {"maximum", "extreme", OF_PAIRS(sum), {0}, true},
    {"minimum", "extreme", OF_PAIRS(sum), {0}, true},
    {"leaky_relu", "extreme", OF(any), {0.1f}, true},
    {"elu", "extreme", OF(powers_of_e), {0.7f}, true},
    {"softplus", "extreme", OF(sigmoids), {0}, true},
    {"hard_sigmoid", "extreme", OF(any), {0}, true},
    {"erf", "extreme", OF(sigmoids), {0}, true},
    {"tanh", "extreme", OF(sigmoids), {0}, true},
    {"sigmoid", "extreme", OF(sigmoids), {0}, true},
    {"silu", "extreme", OF(gates), {0}, true},
    {"gelu", "far", OF(far), {0}, false, true},
    {"gelu_tanh", "far", OF(far), {0}, false, true},
    {"softplus", "far", OF(far), {0}, false, true},
    {"tanh", "far", OF(far), {0}, false, true},
    {"sigmoid", "far", OF(far), {0}, false, true},
    {"silu", "far", OF(far), {0}, false, true},
};

#define AT_KINK(word, most_ulp) \
    OPERATION(#word, "clt_" #word, word, word, .gradient = reference_##word##_gradient, .ulp = most_ulp)

typedef struct kink {
    operation op;
    const char *variant;
    const double *a, *b;
    int n;
    float s[2];
    bool full;
} kink;

LIST(zero, 0, -0.0, 1, -1, 0.5, -3)
LIST(threes, -3, 3, 0, -3.5, 3.5, 1)
LIST(tie_a, 1, 2, -1, 0, 0.5, -3, 7)
LIST(tie_b, 1, 1, 3, -0.0, 0.75, -3, -7)
LIST(limits, -0.5, 1, 0, -1, 2)
LIST(zeros, 0, 3)
LIST(signs, -1, 0, -0.0, 1)
LIST(negative_a, -2, -0.5, -3, -1.5)
LIST(negative_b, 2, 3, -1, 0)
LIST(fractions, -2.7, -1, -0.5, 0.5, 2.7, 255.9, 300, 1e20, -1e20, 16777216)
/* Half way between two, beside that, too large, and the least that there is, of f16 and bf16. */
LIST(roundings, 2049, 2051, 2049.0001220703125, 65504, 65519.99609375, 65520, -1e6, 0x1p-14, 0x1.ffp-15, 0x1p-24, 0x1p-25, 0x1.8p-24, 0x1.000002p-25,
     257, 259, 0x1.01p0, 0x1.03p0, 0x1.010002p0, 0x1.fffffep127, -0x1.fep127, 0x1p-126, INFINITY, -INFINITY, NAN, -0.0)
LIST(zero_power_a, 0, 0, 0, 0, 0.5, 2, 3)
LIST(zero_power_b, 0, 1, 2, 3, 0, 2, -1)

#define COMPARISON(word, ...) OPERATION(#word, "clt_" #word, word, word, .ulp = 0, __VA_ARGS__)

/* Of which f32 has not all: 2^24 + 1 is 2^24 there. */
LIST(whole_a, 16777216, 16777217, -16777217, 0, -1, 2147483647, -2147483648, 5)
LIST(whole_b, 16777217, 16777217, -16777216, 0, 1, 2147483646, -2147483648, 5)
static const operation comparisons[] = {COMPARISON(equal, .no_gradient = true), COMPARISON(greater, .no_gradient = true), COMPARISON(greater_equal, .no_gradient = true),
                                        COMPARISON(less, .no_gradient = true), COMPARISON(less_equal, .no_gradient = true)};

BUILD(select, clt_where(clt_less(x[0], x[1]), x[1], x[0]))
static double value_select(double a, double b, double s, double t) {
    return (void)s, (void)t, a < b ? b : a;
}
static double reference_select(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)evaluation, apply(value_select, x, n, y, at);
}
static const operation select_integers = OPERATION("where", "clt_where", select, select, .no_gradient = true, .ulp = 0);

/* Of which f32 has not all either; sums, products and differences are i32s. */
LIST(number_a, 16777216, 16777217, -16777217, 0, -1, 2147480000, -46341, 5)
LIST(number_b, 3, 101, -57, 7, 2147483647, 3647, 46340, -3)
#define OF_INTEGERS(word) OPERATION(#word, "clt_" #word, word, word, .no_gradient = true, .ulp = 0)
static const operation of_integers[] = {OF_INTEGERS(add), OF_INTEGERS(sub), OF_INTEGERS(maximum), OF_INTEGERS(minimum)}, product_of_integers = OF_INTEGERS(mul);

static const kink kinks[] = {
    {AT_KINK(relu, 1), "kink", OF(zero), {0}, true},
    {AT_KINK(relu, 1), "kink", OF(signs), {0}},
    {AT_KINK(abs, 1), "kink", OF(zero), {0}},
    {AT_KINK(clip, 1), "kink", OF(limits), {-0.5f, 1}},
    {AT_KINK(leaky_relu, 1), "kink", OF(zero), {0.1f}},
    {AT_KINK(elu, 4), "kink", OF(zero), {0.7f}},
    {AT_KINK(hard_sigmoid, 2), "kink", OF(threes), {0}},
    {AT_KINK(hard_swish, 2), "kink", OF(threes), {0}},
    {AT_KINK(maximum, 1), "ties", OF_PAIRS(tie), {0}},
    {AT_KINK(minimum, 1), "ties", OF_PAIRS(tie), {0}},
    {AT_KINK(where, 1), "both", OF_PAIRS(tie), {0}},
    {COMPARISON(equal, .gradient = reference_none_gradient), "ties", OF_PAIRS(tie), {0}},
    {COMPARISON(greater, .gradient = reference_none_gradient), "ties", OF_PAIRS(tie), {0}},
    {COMPARISON(greater_equal, .gradient = reference_none_gradient), "ties", OF_PAIRS(tie), {0}},
    {COMPARISON(less, .gradient = reference_none_gradient), "ties", OF_PAIRS(tie), {0}},
    {COMPARISON(less_equal, .gradient = reference_none_gradient), "ties", OF_PAIRS(tie), {0}},
    {AT_KINK(pow, 17), "kink", OF_PAIRS(zero_power), {0}},
    {AT_KINK(pow_scalar, 17), "kink-0", OF(signs), {0}},
    {AT_KINK(pow_scalar, 17), "kink-1", OF(signs), {1}},
    {AT_KINK(pow_scalar, 17), "kink-2", OF(signs), {2}},
    {AT_KINK(pow_scalar, 17), "kink-3", OF(signs), {3}},
    {AT_KINK(pow_scalar, 17), "kink-0", OF(zeros), {0}, true},
    {AT_KINK(pow_scalar, 17), "kink-1", OF(zeros), {1}, true},
    {AT_KINK(pow_scalar, 17), "kink-2", OF(zero), {2}, true},
    {AT_KINK(pow_scalar, 17), "kink-3", OF(zero), {3}, true},
};

static const function *function_of(const char *name) {
    size_t i = 0;
    while (strcmp(functions[i].op.name, name)) i++;
    return &functions[i];
}

static const operation *operation_of(const char *name) {
    return &function_of(name)->op;
}

static test_case *add_values(case_list *list, const operation *op, const char *variant, const double *a, const double *b,
                             int n, const float s[2]) {
    operand x[] = {{.shape = SHAPE(n), .values = a, .n_values = n}, {.shape = SHAPE(n), .values = b, .n_values = n}};
    test_case *c = case_add(list, op, variant, x, b ? 2 : 1);
    c->at.s[0] = s[0];
    c->at.s[1] = s[1];
    return c;
}

static void add_extremes(case_list *list) {
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        const extreme *e = &extremes[i];
        test_case *c = add_values(list, operation_of(e->op), e->variant, e->a, e->b, e->n, e->s);
        c->x[0].constant = c->x[1].constant = !e->smooth;
        c->full = e->full;
    }
    for (size_t i = 0; i < sizeof kinks / sizeof kinks[0]; i++) {
        const kink *k = &kinks[i];
        add_values(list, &k->op, k->variant, k->a, k->b, k->n, k->s)->full = k->full;
    }
    /* By the exponent there is none. */
    add_values(list, operation_of("pow"), "negative", negative_a, negative_b, 4, (float[2]){0})->x[1].constant = true;
}

/* ---- all ---- */

static test_case *add_function(case_list *list, const function *f, const char *variant, const clt_shape *a,
                               const clt_shape *b) {
    operand x[2] = {f->x[0], f->x[1]};
    x[0].shape = *a;
    x[1].shape = *b;
    test_case *c = case_add(list, &f->op, variant, x, f->n);
    c->at.s[0] = f->s[0];
    c->at.s[1] = f->s[1];
    return c;
}

static void add_cast(case_list *list, clt_dtype from, clt_dtype to, double low, double high,
                     const clt_shape *shape) {
    operand x = {.dtype = from, .shape = *shape, .low = low, .high = high, .constant = true};
    char variant[16];
    snprintf(variant, sizeof variant, "%s-to-%s", clt_dtype_name(from), clt_dtype_name(to));
    test_case *c = case_add(list, &cast, variant, &x, 1);
    c->at.dtype = to;
    c->at.flag = from == CLT_I32 && to == CLT_U8;
}

static void add_cast_float(case_list *list, clt_dtype from, clt_dtype to, const clt_shape *shape) {
    operand x = {.dtype = from, .shape = *shape, .low = -40, .high = 40};
    char variant[16];
    snprintf(variant, sizeof variant, "%s-to-%s", clt_dtype_name(from), clt_dtype_name(to));
    case_add(list, &cast_float, variant, &x, 1)->at.dtype = to;
}

/* The ways in which a shape stretches to another: of the product all, of other ops every fourth. */
static void add_stretches(case_list *list) {
    static const clt_shape pairs[][2] = {
        {SHAPE(2, 1, 3, 1, 2, 1, 2, 1), SHAPE(1, 2, 1, 2, 1, 3, 1, 2)},
        {SHAPE(2, 3, 4, 5), SHAPE(3, 1, 1)}, /* a bias on channels */
        {SHAPE(2, 3, 4, 5), SHAPE(1, 3, 1, 1)},
        {SHAPE(3, 4, 5), SHAPE(1)},
        {SHAPE(3, 4), {0}},
        {SHAPE(6, 5), SHAPE(6, 1)},
        {SHAPE(3, 1, 5), SHAPE(1, 4, 1)},
        {SHAPE(2, 3, 4, 5), SHAPE(2, 1, 1, 5)}, /* stretched in the middle */
        {SHAPE(1), SHAPE(1, 1, 1)},
        {SHAPE(2, 3, 4, 5), SHAPE(2, 1, 4, 1)},
        {SHAPE(2, 1, 2, 3, 1, 1, 2, 5), SHAPE(2, 5)},
        {SHAPE(1, 6), SHAPE(6)}, /* the same elements, another rank */
        {SHAPE(5), SHAPE(4, 3, 5)}, /* the first stretches */
        {SHAPE(1, 257, 1), SHAPE(3, 1, 2)},
        {{0}, {0}},
    };
    static const char *const names[] = {"mul", "add", "sub", "div", "pow"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k += i ? 4 : 1)
            add_function(list, function_of(names[i]), "", &pairs[k][0], &pairs[k][1]);
}

static void add_apart(case_list *list) {
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        operand x[] = {apart[i].x[0], apart[i].x[1]};
        x[0].shape = x[1].shape = (clt_shape)SHAPE(37, 29);
        case_add(list, &apart[i].op, "", x, 2)->at.s[0] = apart[i].s[0];
    }
}

static void add_integers(case_list *list) {
    operand x[] = {{.dtype = CLT_I32, .shape = SHAPE(33, 8), .values = whole_a, .n_values = 8}, {.dtype = CLT_I32, .shape = SHAPE(8), .values = whole_b, .n_values = 8}};
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++) case_add(list, &comparisons[i], "integers", x, 2);
    case_add(list, &select_integers, "integers", x, 2);
    operand numbers[] = {{.dtype = CLT_I32, .shape = SHAPE(33, 8), .values = number_a, .n_values = 8}, {.dtype = CLT_I32, .shape = SHAPE(8), .values = number_b, .n_values = 8}};
    for (size_t i = 0; i < sizeof of_integers / sizeof of_integers[0]; i++) case_add(list, &of_integers[i], "integers", numbers, 2);
    operand bytes[] = {{.dtype = CLT_U8, .shape = SHAPE(37, 5), .low = 0, .high = 128}, {.dtype = CLT_U8, .shape = SHAPE(5), .low = 0, .high = 128}};
    case_add(list, &of_integers[0], "bytes", bytes, 2);
    operand mixed[] = {{.shape = SHAPE(4, 33)}, {.dtype = CLT_I32, .shape = SHAPE(33), .low = -9, .high = 9}};
    case_add(list, &functions[2].op, "mixed", mixed, 2);
    operand factors[] = {{.dtype = CLT_I32, .shape = SHAPE(33, 8), .low = -46340, .high = 46340}, {.dtype = CLT_I32, .shape = SHAPE(33, 1), .low = -46340, .high = 46340}};
    case_add(list, &product_of_integers, "integers", factors, 2);
}

void cases_pointwise(case_list *list) {
    add_integers(list);
    add_apart(list);
    static const clt_shape same[] = {SHAPE(1), SHAPE(2, 3, 5, 7, 11)};
    static const clt_shape wide[][2] = {{SHAPE(5, 7), SHAPE(7)},
                                        {SHAPE(5, 1), SHAPE(1, 7)},
                                        {SHAPE(1), SHAPE(3, 257)},
                                        {SHAPE(2, 3, 1, 5), SHAPE(3, 4, 1)}};
    static const clt_shape group = SHAPE(1031), large = SHAPE(3, 21863), scalar = {0}, eight = SHAPE(2, 1, 3, 1, 2, 1, 5, 1);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        add_function(list, f, "", &group, &group);
        for (int k = 0; k < 2; k++) add_function(list, f, "", &same[k], &same[k])->full = k != 0 || f->n == 1;
        test_case *c = add_function(list, f, "", &large, &large);
        c->full = c->large = true;
        for (int k = 0; f->n == 2 && k < 4; k++)
            add_function(list, f, "", &wide[k][0], &wide[k][1])->full = k < 3 && i > 0;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        add_function(list, &forms[i].f, forms[i].variant, &group, &group);
    add_values(list, &cast, "fractions-to-i32", fractions, NULL, 10, (float[2]){0})->at.dtype = CLT_I32;
    add_values(list, &cast, "fractions-to-u8", fractions, NULL, 10, (float[2]){0})->at.dtype = CLT_U8;
    add_function(list, function_of("tanh"), "", &scalar, &scalar);
    add_function(list, function_of("tanh"), "", &eight, &eight);
    add_stretches(list);
    add_extremes(list);
    add_cast(list, CLT_F32, CLT_I32, -4e9, 4e9, &group);
    add_cast(list, CLT_F32, CLT_U8, -300, 600, &group);
    add_cast(list, CLT_I32, CLT_F32, -1e9, 1e9, &group);
    add_cast(list, CLT_U8, CLT_F32, 0, 256, &group);
    static const clt_dtype floats[] = {CLT_F32, CLT_F16, CLT_BF16};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (i != k) add_cast_float(list, floats[i], floats[k], &group);
    for (int k = 1; k < 3; k++) {
        test_case *c = add_values(list, &cast_float, k == 1 ? "roundings-to-f16" : "roundings-to-bf16", roundings, NULL,
                                  sizeof roundings / sizeof *roundings, (float[2]){0});
        c->x[0].constant = true;
        c->at.dtype = floats[k];
        add_cast(list, CLT_I32, floats[k], -2000, 2000, &group);
        add_cast(list, floats[k], CLT_I32, -70, 70, &group);
        add_cast(list, floats[k], CLT_U8, -300, 600, &group);
    }
    add_cast(list, CLT_U8, CLT_I32, 0, 256, &same[0]);
    add_cast(list, CLT_I32, CLT_U8, -300, 600, &same[1]);
}
