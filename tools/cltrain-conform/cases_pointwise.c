/* Pointwise ops: one operand or two, which broadcast. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

BUILD(add, clt_add(x[0], x[1]))
BUILD(sub, clt_sub(x[0], x[1]))
BUILD(mul, clt_mul(x[0], x[1]))
BUILD(div, clt_div(x[0], x[1]))
BUILD(pow, clt_pow(x[0], x[1]))
BUILD(add_scalar, clt_add_scalar(x[0], at->s[0]))
BUILD(mul_scalar, clt_mul_scalar(x[0], at->s[0]))
BUILD(pow_scalar, clt_pow_scalar(x[0], at->s[0]))
BUILD(neg, clt_neg(x[0]))
BUILD(abs, clt_abs(x[0]))
BUILD(exp, clt_exp(x[0]))
BUILD(log, clt_log(x[0]))
BUILD(sqrt, clt_sqrt(x[0]))
BUILD(clip, clt_clip(x[0], at->s[0], at->s[1]))
BUILD(relu, clt_relu(x[0]))
BUILD(gelu, clt_gelu(x[0]))
BUILD(tanh, clt_tanh(x[0]))
BUILD(sigmoid, clt_sigmoid(x[0]))
BUILD(silu, clt_silu(x[0]))
BUILD(cast, clt_cast(x[0], at->dtype))

/* Errors in units of the last place are what OpenCL 1.2 allows for the function (7.4), one more for what is done around it. */
#define OP(word, most_ulp)                                                                              \
    {                                                                                                   \
        .name = #word, .builders = "clt_" #word, .build = build_##word, .reference = reference_##word,  \
        .ulp = most_ulp                                                                                 \
    }

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
    {OP(tanh, 6), {{.low = -4, .high = 4}}, 1, {0}},
    {OP(sigmoid, 0), {{.low = -6, .high = 6}}, 1, {0}},
    {OP(silu, 0), {{.low = -6, .high = 6}}, 1, {0}},
};

/* A square is a form of its own. */
static const function square = {OP(pow_scalar, 1), {{0}}, 1, {2}};
static const operation cast = {.name = "cast",
                               .builders = "clt_cast",
                               .build = build_cast,
                               .reference = reference_cast,
                               .no_gradient = true,
                               .ulp = 1};

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
    {"tanh", "extreme", OF(sigmoids), {0}, true},
    {"sigmoid", "extreme", OF(sigmoids), {0}, true},
    {"silu", "extreme", OF(gates), {0}, true},
    {"gelu", "far", OF(far), {0}, false, true},
    {"tanh", "far", OF(far), {0}, false, true},
    {"sigmoid", "far", OF(far), {0}, false, true},
    {"silu", "far", OF(far), {0}, false, true},
};

#define AT_KINK(word, most_ulp)                                                                         \
    {                                                                                                   \
        .name = #word, .builders = "clt_" #word, .build = build_##word, .reference = reference_##word,  \
        .gradient = reference_##word##_gradient, .ulp = most_ulp                                        \
    }

typedef struct kink {
    operation op;
    const char *variant;
    const double *a, *b;
    int n;
    float s[2];
    bool full;
} kink;

LIST(zero, 0, -0.0, 1, -1, 0.5, -3)
LIST(limits, -0.5, 1, 0, -1, 2)
LIST(zeros, 0, 3)
LIST(zero_power_a, 0, 0, 0, 0, 0.5, 2, 3)
LIST(zero_power_b, 0, 1, 2, 3, 0, 2, -1)

static const kink kinks[] = {
    {AT_KINK(relu, 1), "kink", OF(zero), {0}, true},
    {AT_KINK(abs, 1), "kink", OF(zero), {0}},
    {AT_KINK(clip, 1), "kink", OF(limits), {-0.5f, 1}},
    {AT_KINK(pow, 17), "kink", OF_PAIRS(zero_power), {0}},
    {AT_KINK(pow_scalar, 17), "kink-0", OF(zeros), {0}, true},
    {AT_KINK(pow_scalar, 17), "kink-1", OF(zeros), {1}, true},
    {AT_KINK(pow_scalar, 17), "kink-2", OF(zero), {2}, true},
    {AT_KINK(pow_scalar, 17), "kink-3", OF(zero), {3}, true},
};

static const operation *operation_of(const char *name) {
    size_t i = 0;
    while (strcmp(functions[i].op.name, name)) i++;
    return &functions[i].op;
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
}

void cases_pointwise(case_list *list) {
    static const clt_shape same[] = {SHAPE(1), SHAPE(2, 3, 5, 7, 11)};
    static const clt_shape wide[][2] = {{SHAPE(5, 7), SHAPE(7)},
                                        {SHAPE(5, 1), SHAPE(1, 7)},
                                        {SHAPE(1), SHAPE(3, 257)},
                                        {SHAPE(2, 3, 1, 5), SHAPE(3, 4, 1)}};
    static const clt_shape group = SHAPE(1031), large = SHAPE(3, 21863);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        add_function(list, f, "", &group, &group);
        for (int k = 0; k < 2; k++) add_function(list, f, "", &same[k], &same[k])->full = k != 0 || f->n == 1;
        test_case *c = add_function(list, f, "", &large, &large);
        c->full = c->large = true;
        for (int k = 0; f->n == 2 && k < 4; k++)
            add_function(list, f, "", &wide[k][0], &wide[k][1])->full = k < 3 && i > 0;
    }
    add_function(list, &square, "square", &group, &group);
    add_extremes(list);
    add_cast(list, CLT_F32, CLT_I32, -4e9, 4e9, &group);
    add_cast(list, CLT_F32, CLT_U8, -300, 600, &group);
    add_cast(list, CLT_I32, CLT_F32, -1e9, 1e9, &group);
    add_cast(list, CLT_U8, CLT_F32, 0, 256, &group);
    add_cast(list, CLT_U8, CLT_I32, 0, 256, &same[0]);
    add_cast(list, CLT_I32, CLT_U8, -300, 600, &same[1]);
}
