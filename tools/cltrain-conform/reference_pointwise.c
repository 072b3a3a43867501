#include "tools/cltrain-conform/reference.h"

#include <float.h>
#include <math.h>

typedef double (*function)(double a, double b, double s0, double s1);

static double f_add(double a, double b, double s, double t) { return (void)s, (void)t, a + b; }
static double f_sub(double a, double b, double s, double t) { return (void)s, (void)t, a - b; }
static double f_mul(double a, double b, double s, double t) { return (void)s, (void)t, a * b; }
static double f_div(double a, double b, double s, double t) { return (void)s, (void)t, a / b; }
static double f_pow(double a, double b, double s, double t) { return (void)s, (void)t, pow(a, b); }
static double f_add_scalar(double a, double b, double s, double t) { return (void)b, (void)t, a + s; }
static double f_mul_scalar(double a, double b, double s, double t) { return (void)b, (void)t, a * s; }
static double f_pow_scalar(double a, double b, double s, double t) { return (void)b, (void)t, pow(a, s); }
static double f_neg(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, -a; }
static double f_abs(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, fabs(a); }
static double f_exp(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, exp(a); }
static double f_log(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, log(a); }
static double f_sqrt(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, sqrt(a); }
static double f_clip(double a, double b, double s, double t) { return (void)b, a < s ? s : a > t ? t : a; }
static double f_relu(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, a < 0 ? 0 : a; }
static double f_tanh(double a, double b, double s, double t) { return (void)b, (void)s, (void)t, tanh(a); }
static double f_sigmoid(double a, double b, double s, double t) {
    return (void)b, (void)s, (void)t, 1 / (1 + exp(-a));
}
static double f_silu(double a, double b, double s, double t) {
    return (void)b, (void)s, (void)t, a / (1 + exp(-a));
}
static double f_gelu(double a, double b, double s, double t) {
    return (void)b, (void)s, (void)t, 0.5 * a * erfc(-a * sqrt(0.5));
}

/* What f32 does not reach is infinite. */
static double in_range(double value) {
    return fabs(value) > (double)FLT_MAX ? copysign(INFINITY, value) : value;
}

static double apply(function f, const array *x, int n, array *y, const attributes *at) {
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_resize(y, n == 2 ? shape_broadcast(&x[0].shape, &x[1].shape) : x[0].shape);
    do {
        double b = n == 2 ? array_broadcast_at(&x[1], &y->shape, index) : 0;
        double a = array_broadcast_at(&x[0], &y->shape, index);
        y->values[place++] = in_range(f(a, b, (double)at->s[0], (double)at->s[1]));
    } while (index_next(&y->shape, index));
    return 4.0 * (double)place;
}

#define DEFINE(name)                                                                                        \
    double reference_##name(const array *x, int n, array *y, const attributes *at, bool evaluation) {       \
        return (void)evaluation, apply(f_##name, x, n, y, at);                                              \
    }
POINTWISE(DEFINE)

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

static void chain(double (*slope)(double a, double b, const attributes *at), const array *x, bool two, const array *dy,
                  array *dx, const attributes *at) {
    for (int64_t k = 0; k < array_count(x); k++)
        dx->values[k] = dy->values[k] * slope(x[0].values[k], two ? x[1].values[k] : 0, at);
}

void reference_relu_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_relu, x, false, dy, dx, at);
}
void reference_abs_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_abs, x, false, dy, dx, at);
}
void reference_clip_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_clip, x, false, dy, dx, at);
}
void reference_pow_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    chain(i ? slope_exponent : slope_base, x, true, dy, dx, at);
}
void reference_pow_scalar_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, chain(slope_power, x, false, dy, dx, at);
}

static double cast_to(double value, clt_dtype dtype) {
    double low = dtype == CLT_I32 ? INT32_MIN : 0, high = dtype == CLT_I32 ? INT32_MAX : UINT8_MAX;
    return dtype == CLT_F32 ? value : fmin(fmax(trunc(value), low), high);
}

double reference_cast(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    array_resize(y, x[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = cast_to(x[0].values[i], at->dtype);
    return (double)array_count(y);
}
