/* Pointwise ops: one operand or two, which broadcast. */
#include "tools/cltrain-conform/cases.h"

#include <stdio.h>

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
    add_cast(list, CLT_F32, CLT_I32, -4e9, 4e9, &group);
    add_cast(list, CLT_F32, CLT_U8, -300, 600, &group);
    add_cast(list, CLT_I32, CLT_F32, -1e9, 1e9, &group);
    add_cast(list, CLT_U8, CLT_F32, 0, 256, &group);
    add_cast(list, CLT_U8, CLT_I32, 0, 256, &same[0]);
    add_cast(list, CLT_I32, CLT_U8, -300, 600, &same[1]);
}
