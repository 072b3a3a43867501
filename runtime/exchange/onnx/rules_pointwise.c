/* Ops that go element by element. Formulas: https://github.com/onnx/onnx/blob/main/docs/Operators.md */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- one operand ---- */

static clt_tensor *reciprocal(clt_tensor *x) {
    return clt_pow_scalar(x, -1);
}
static clt_tensor *softsign(clt_tensor *x) {
    return clt_div(x, clt_add_scalar(clt_abs(x), 1));
}
static clt_tensor *mish(clt_tensor *x) {
    return clt_mul(x, clt_tanh(clt_softplus(x)));
}

/* 1 above 0, -1 below; the whole number towards zero leaves those that are not whole to be moved. No gradient goes through them. */
static clt_tensor *zero_of(clt_tensor *x) {
    return clt_fill(x->graph, (clt_shape){0}, 0);
}
static clt_tensor *sign(clt_tensor *x) { /* NaN is different from itself, and stays */
    return clt_tensor_valid(x) ? clt_where(clt_equal(x, x), clt_sub(clt_greater(x, zero_of(x)), clt_less(x, zero_of(x))), x) : x;
}
static clt_tensor *truncated(clt_tensor *x) { /* from 2^23 on all are whole */
    return clt_tensor_valid(x) ? clt_where(clt_less(clt_abs(x), clt_fill(x->graph, (clt_shape){0}, 8388608)), clt_cast(clt_cast(x, CLT_I32), CLT_F32), x) : x;
}
static clt_tensor *floor_of(clt_tensor *x) {
    clt_tensor *whole = truncated(x);
    return clt_sub(whole, clt_greater(whole, x));
}
static clt_tensor *ceil_of(clt_tensor *x) {
    return clt_neg(floor_of(clt_neg(x)));
}

static const struct {
    const char *op;
    clt_tensor *(*build)(clt_tensor *x);
} functions[] = {
    {"Sign", sign}, {"Floor", floor_of}, {"Ceil", ceil_of},
    {"Relu", clt_relu}, {"Tanh", clt_tanh}, {"Sigmoid", clt_sigmoid}, {"Exp", clt_exp}, {"Log", clt_log}, {"Sqrt", clt_sqrt}, {"Abs", clt_abs},
    {"Neg", clt_neg}, {"Erf", clt_erf}, {"Sin", clt_sin}, {"Cos", clt_cos}, {"Softplus", clt_softplus}, {"HardSwish", clt_hard_swish},
    {"Reciprocal", reciprocal}, {"Softsign", softsign}, {"Mish", mish},
};

static clt_status map_function(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    size_t i = 0;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    while (strcmp(functions[i].op, c->node->op)) i++;
    out[0] = functions[i].build(x);
    return CLT_OK;
}

static clt_status map_gelu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = strcmp(clt_onnx_text(c, "approximate", "none"), "tanh") ? clt_gelu(x) : clt_gelu_tanh(x);
    return CLT_OK;
}

static clt_status map_leaky_relu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = clt_leaky_relu(x, clt_onnx_float_attribute(c, "alpha", 0.01f));
    return CLT_OK;
}

static clt_status map_elu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = clt_elu(x, clt_onnx_float_attribute(c, "alpha", 1));
    return CLT_OK;
}

static clt_status map_selu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float alpha = clt_onnx_float_attribute(c, "alpha", 1.67326319217681884765625f), gamma = clt_onnx_float_attribute(c, "gamma", 1.05070102214813232421875f);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = clt_mul_scalar(clt_elu(x, alpha), gamma);
    return CLT_OK;
}

/* max(0, x) + min(0, alpha (exp(x / alpha) - 1)) */
static clt_status map_celu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float alpha = clt_onnx_float_attribute(c, "alpha", 1);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    if (!(alpha > 0)) return clt_fail(CLT_E_UNSUPPORTED, "alpha of %g", (double)alpha);
    out[0] = clt_mul_scalar(clt_elu(clt_mul_scalar(x, 1 / alpha), 1), alpha);
    return CLT_OK;
}

static clt_status map_hard_sigmoid(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float alpha = clt_onnx_float_attribute(c, "alpha", 0.2f), beta = clt_onnx_float_attribute(c, "beta", 0.5f);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    bool plain = fabsf(alpha - 1.0f / 6) < 1e-6f && beta == 0.5f;
    out[0] = plain ? clt_hard_sigmoid(x) : clt_clip(clt_add_scalar(clt_mul_scalar(x, alpha), beta), 0, 1);
    return CLT_OK;
}

static clt_status map_swish(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float alpha = clt_onnx_float_attribute(c, "alpha", 1);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = alpha == 1 ? clt_silu(x) : clt_mul(x, clt_sigmoid(clt_mul_scalar(x, alpha)));
    return CLT_OK;
}

static clt_status clip_integers(clt_onnx_call *c, clt_tensor *x, clt_tensor **out) {
    clt_tensor *low = NULL, *high = NULL;
    if (clt_onnx_has(c, 1)) CLT_TRY(clt_onnx_comparable(c, 1, &low));
    if (clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_comparable(c, 2, &high));
    if (low) x = clt_maximum(x, low);
    out[0] = high ? clt_minimum(x, high) : x;
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* Bounds are attributes before opset 11, inputs from then on. */
static clt_status map_clip(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (x->dtype == CLT_I32) return clip_integers(c, x, out);
    float low = clt_onnx_float_attribute(c, "min", -INFINITY), high = clt_onnx_float_attribute(c, "max", INFINITY);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_known_float(c, 1, low, &low));
    CLT_TRY(clt_onnx_known_float(c, 2, high, &high));
    out[0] = low > high ? clt_add_scalar(clt_mul_scalar(x, 0), high) : low == -INFINITY && high == INFINITY ? x : clt_clip(x, low, high);
    return CLT_OK;
}

/* x above alpha, else 0. */
static clt_status map_thresholded(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    clt_tensor *alpha = clt_fill(c->graph, (clt_shape){0}, clt_onnx_float_attribute(c, "alpha", 1));
    out[0] = clt_where(clt_greater(x, alpha), x, zero_of(x));
    return CLT_OK;
}

/* x + bias below -lambd, x - bias above lambd, else 0. */
static clt_status map_shrink(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    float bias = clt_onnx_float_attribute(c, "bias", 0), bound = clt_onnx_float_attribute(c, "lambd", 0.5f);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    clt_tensor *above = clt_greater(x, clt_fill(c->graph, (clt_shape){0}, bound)), *below = clt_less(x, clt_fill(c->graph, (clt_shape){0}, -bound));
    out[0] = clt_where(above, clt_add_scalar(x, -bias), clt_where(below, clt_add_scalar(x, bias), zero_of(x)));
    return CLT_OK;
}

static clt_status map_is_inf(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    bool positive = clt_onnx_int(c, "detect_positive", 1), negative = clt_onnx_int(c, "detect_negative", 1);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    clt_tensor *most = clt_fill(c->graph, (clt_shape){0}, 3.402823466e38f), *of = positive && negative ? clt_abs(x) : negative ? clt_neg(x) : x;
    out[0] = positive || negative ? clt_greater(of, most) : clt_greater(clt_neg(clt_abs(x)), zero_of(x));
    c->out_type = CLT_ONNX_BOOL;
    return CLT_OK;
}

/* A slope for each channel, before opset 7; from then on it is stretched. */
static clt_status map_prelu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *slope;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &slope));
    if (c->opset < 7 && slope->shape.rank == 1 && slope->shape.dims[0] > 1) {
        clt_shape shape = {.rank = CLT_MAX(x->shape.rank - 1, 1), .dims = {slope->shape.dims[0]}};
        for (int d = 1; d < shape.rank; d++) shape.dims[d] = 1;
        slope = clt_reshape_to(slope, shape);
    }
    out[0] = clt_where(clt_less(x, clt_fill(c->graph, (clt_shape){0}, 0)), clt_mul(slope, x), x);
    return CLT_OK;
}

static clt_status map_identity(clt_onnx_call *c, clt_tensor **out) {
    CLT_TRY(clt_onnx_any(c, 0, &out[0]));
    c->out_type = clt_onnx_type_of(c, 0);
    return CLT_OK;
}

/* ---- two or more ---- */

static const struct {
    const char *op;
    clt_tensor *(*build)(clt_tensor *a, clt_tensor *b);
} pairs[] = {
    {"Add", clt_add}, {"Sub", clt_sub}, {"Mul", clt_mul}, {"Div", clt_div}, {"Pow", clt_pow}, {"Max", clt_maximum}, {"Min", clt_minimum},
    {"Sum", clt_add}, {"Mean", clt_add},
};

/* By a scalar that is known; NULL: there is no such op. */
static clt_tensor *by_scalar(const char *op, clt_tensor *x, float s) {
    if (!strcmp(op, "Add")) return clt_add_scalar(x, s);
    if (!strcmp(op, "Sub")) return clt_add_scalar(x, -s);
    if (!strcmp(op, "Mul")) return clt_mul_scalar(x, s);
    if (!strcmp(op, "Pow")) return clt_pow_scalar(x, s);
    return NULL;
}

/* Both are integers, of the ops that have them: *out is NULL where not. A graph's i64 are i32. */
static clt_status of_integers(clt_onnx_call *c, clt_tensor **out) {
    static const char *const ops[] = {"Add", "Sub", "Mul", "Max", "Min"};
    clt_tensor *a, *b;
    size_t i = 0, k = 0;
    while (i < CLT_COUNT_OF(ops) && strcmp(ops[i], c->node->op)) i++;
    int64_t type = i < CLT_COUNT_OF(ops) && clt_onnx_has(c, 0) ? clt_onnx_type_of(c, 0) : 0;
    if (type != CLT_ONNX_INT64 && type != CLT_ONNX_INT32 && type != CLT_ONNX_UINT8) return CLT_OK;
    while (strcmp(pairs[k].op, c->node->op)) k++;
    CLT_TRY(clt_onnx_comparable(c, 0, &a));
    for (size_t n = 1; n < c->node->n_inputs; n++) {
        CLT_TRY(clt_onnx_comparable(c, n, &b));
        if (clt_onnx_type_of(c, n) != type) return clt_fail(CLT_E_FORMAT, "input 0 is of type %s, and input %zu of %s", clt_onnx_type_name(type), n, clt_onnx_type_name(clt_onnx_type_of(c, n)));
        a = pairs[k].build(a, b);
    }
    *out = a;
    c->out_type = type;
    return CLT_OK;
}

/* Floats to the power of integers, which Pow may have since opset 12: *out is NULL where they are floats, too. */
static clt_status to_integers(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b;
    const clt_literal *known;
    int64_t type = !strcmp(c->node->op, "Pow") && clt_onnx_has(c, 1) ? clt_onnx_type_of(c, 1) : 0;
    if (type != CLT_ONNX_INT64 && type != CLT_ONNX_INT32) return CLT_OK;
    CLT_TRY(clt_onnx_float(c, 0, &a));
    CLT_TRY(clt_onnx_known(c, 1, &known));
    if (known && known->shape.rank == 0) {
        *out = clt_pow_scalar(a, (float)known->integers[0]);
        return CLT_OK;
    }
    CLT_TRY(clt_onnx_integers(c, 1, &b));
    *out = clt_pow(a, clt_cast(b, CLT_F32));
    return CLT_OK;
}

static clt_status map_two(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b;
    float s;
    CLT_TRY(of_integers(c, &out[0]));
    if (!out[0]) CLT_TRY(to_integers(c, &out[0]));
    if (out[0]) return CLT_OK;
    if (c->opset < 7 && clt_onnx_attribute_of(c->node, "axis", CLT_ONNX_A_INT)) return clt_fail(CLT_E_UNSUPPORTED, "stretching along an axis, of before opset 7");
    bool commutes = !strcmp(c->node->op, "Add") || !strcmp(c->node->op, "Mul");
    size_t i = 0;
    if (clt_onnx_is_scalar(c, 1, &s)) {
        CLT_TRY(clt_onnx_float(c, 0, &a));
        out[0] = by_scalar(c->node->op, a, s);
    } else if (commutes && clt_onnx_is_scalar(c, 0, &s)) {
        CLT_TRY(clt_onnx_float(c, 1, &b));
        out[0] = by_scalar(c->node->op, b, s);
    }
    if (out[0]) return CLT_OK;
    CLT_TRY(clt_onnx_float(c, 0, &a));
    CLT_TRY(clt_onnx_float(c, 1, &b));
    while (strcmp(pairs[i].op, c->node->op)) i++;
    out[0] = pairs[i].build(a, b);
    return CLT_OK;
}

static clt_status map_any_number(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b;
    size_t k = 0;
    CLT_TRY(of_integers(c, &out[0]));
    if (out[0]) return CLT_OK;
    CLT_TRY(clt_onnx_float(c, 0, &a));
    while (strcmp(pairs[k].op, c->node->op)) k++;
    for (size_t i = 1; i < c->node->n_inputs; i++) {
        CLT_TRY(clt_onnx_float(c, i, &b));
        a = pairs[k].build(a, b);
    }
    out[0] = strcmp(c->node->op, "Mean") ? a : clt_mul_scalar(a, 1 / (float)c->node->n_inputs);
    return CLT_OK;
}

/* ---- booleans: 0 and 1 ---- */

static clt_tensor *complement(clt_tensor *x) {
    return clt_add_scalar(clt_neg(x), 1);
}
static clt_tensor *differ(clt_tensor *a, clt_tensor *b) {
    return clt_abs(clt_sub(a, b));
}

static const struct {
    const char *op;
    bool of_booleans;
    clt_tensor *(*build)(clt_tensor *a, clt_tensor *b);
} relations[] = {
    {"Greater", false, clt_greater}, {"GreaterOrEqual", false, clt_greater_equal}, {"Less", false, clt_less}, {"LessOrEqual", false, clt_less_equal},
    {"Equal", false, clt_equal}, {"And", true, clt_mul}, {"Or", true, clt_maximum}, {"Xor", true, differ},
};

static clt_status map_relation(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b;
    if (c->opset < 7 && clt_onnx_attribute_of(c->node, "axis", CLT_ONNX_A_INT)) return clt_fail(CLT_E_UNSUPPORTED, "stretching along an axis, of before opset 7");
    size_t i = 0;
    while (strcmp(relations[i].op, c->node->op)) i++;
    CLT_TRY(relations[i].of_booleans ? clt_onnx_number(c, 0, &a) : clt_onnx_comparable(c, 0, &a));
    CLT_TRY(relations[i].of_booleans ? clt_onnx_number(c, 1, &b) : clt_onnx_comparable(c, 1, &b));
    out[0] = relations[i].build(a, b);
    c->out_type = CLT_ONNX_BOOL;
    return CLT_OK;
}

static clt_status map_not(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_number(c, 0, &x));
    out[0] = complement(x);
    c->out_type = CLT_ONNX_BOOL;
    return CLT_OK;
}

static clt_status map_is_nan(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    out[0] = complement(clt_equal(x, x));
    c->out_type = CLT_ONNX_BOOL;
    return CLT_OK;
}

static clt_status map_where(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *condition, *a, *b;
    CLT_TRY(clt_onnx_number(c, 0, &condition));
    CLT_TRY(clt_onnx_comparable(c, 1, &a));
    CLT_TRY(clt_onnx_comparable(c, 2, &b));
    out[0] = clt_where(condition, a, b);
    c->out_type = clt_onnx_type_of(c, 1);
    return CLT_OK;
}

/* ---- types ---- */

static clt_status convert(clt_onnx_call *c, int64_t to, clt_tensor **out) {
    clt_tensor *x;
    int64_t from = clt_onnx_type_of(c, 0);
    CLT_TRY(clt_onnx_any(c, 0, &x));
    c->out_type = to;
    bool to_integer = to == CLT_ONNX_INT64 || to == CLT_ONNX_INT32;
    if (to_integer) out[0] = x->dtype == CLT_I32 ? x : clt_cast(x, CLT_I32);
    else if (to == CLT_ONNX_UINT8) out[0] = x->dtype == CLT_U8 ? x : clt_cast(x, CLT_U8);
    else if (to == CLT_ONNX_FLOAT || (to == CLT_ONNX_BOOL && from == CLT_ONNX_BOOL)) out[0] = x->dtype == CLT_F32 ? x : clt_cast(x, CLT_F32);
    else if (to == CLT_ONNX_BOOL) {
        x = x->dtype == CLT_F32 ? x : clt_cast(x, CLT_F32); /* 0 alone becomes 0 */
        out[0] = complement(clt_equal(x, clt_fill(c->graph, (clt_shape){0}, 0)));
    } else return clt_fail(CLT_E_UNSUPPORTED, "to type %s", clt_onnx_type_name(to));
    return CLT_OK;
}

static clt_status map_cast(clt_onnx_call *c, clt_tensor **out) {
    int64_t to = clt_onnx_int(c, "to", 0);
    return convert(c, clt_onnx_computed_type(to), out);
}

static clt_status map_cast_like(clt_onnx_call *c, clt_tensor **out) {
    if (!clt_onnx_has(c, 1)) return clt_fail(CLT_E_FORMAT, "input 1 is missing");
    return convert(c, clt_onnx_type_of(c, 1), out);
}

const clt_onnx_rule clt_onnx_pointwise_rules[] = {
    {"Relu", map_function}, {"Tanh", map_function}, {"Sigmoid", map_function}, {"Exp", map_function}, {"Log", map_function}, {"Sqrt", map_function},
    {"Abs", map_function}, {"Neg", map_function}, {"Erf", map_function}, {"Sin", map_function}, {"Cos", map_function}, {"Softplus", map_function},
    {"HardSwish", map_function}, {"Reciprocal", map_function}, {"Softsign", map_function}, {"Mish", map_function}, {"Gelu", map_gelu},
    {"LeakyRelu", map_leaky_relu}, {"Elu", map_elu}, {"Selu", map_selu}, {"Celu", map_celu}, {"HardSigmoid", map_hard_sigmoid}, {"Swish", map_swish},
    {"Clip", map_clip}, {"ThresholdedRelu", map_thresholded}, {"Shrink", map_shrink}, {"IsInf", map_is_inf}, {"Sign", map_function}, {"Floor", map_function},
    {"Ceil", map_function}, {"PRelu", map_prelu}, {"Identity", map_identity},
    {"Add", map_two}, {"Sub", map_two}, {"Mul", map_two}, {"Div", map_two}, {"Pow", map_two}, {"Max", map_any_number}, {"Min", map_any_number},
    {"Sum", map_any_number}, {"Mean", map_any_number},
    {"Greater", map_relation}, {"GreaterOrEqual", map_relation}, {"Less", map_relation}, {"LessOrEqual", map_relation}, {"Equal", map_relation},
    {"And", map_relation}, {"Or", map_relation}, {"Xor", map_relation}, {"Not", map_not}, {"IsNaN", map_is_nan}, {"Where", map_where},
    {"Cast", map_cast}, {"CastLike", map_cast_like}, {0},
};
