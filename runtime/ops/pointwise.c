/*
 * Pointwise ops. Each is a row of the table below: its value, and its gradient
 * for each operand, as OpenCL C expressions. The code generator of the backends
 * makes kernels of them, so a new pointwise op is a new row and a builder.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/ops.h"

typedef struct clt_pointwise_function {
    const char *name;
    const char *operands; /* letters of the inputs: "a", "ab", "abc" */
    const char *value;
    /* Of each operand: over a, b, c, y (the result) and g (its gradient). Those used
     * are told by grad_operands. NULL: none goes to it. */
    const char *grad_operands[3], *grad[3];
    enum { OF_FLOATS, OF_NUMBERS, COMPARES, SELECTS, OF_F32 } takes; /* all but OF_FLOATS and OF_F32, which stays f32 in mixed precision, take whole numbers, too */
} function;

/* Derivatives: any calculus text; the value at a kink is PyTorch's. */
static const function functions[] = {
    {"add", "ab", "a + b", {"g", "g"}, {"g", "g"}, OF_NUMBERS},
    {"sub", "ab", "a - b", {"g", "g"}, {"g", "-g"}, OF_NUMBERS},
    {"mul", "ab", "a * b", {"gb", "ga"}, {"g * b", "g * a"}, OF_NUMBERS},
    {"div", "ab", "a / b", {"gb", "gby"}, {"g / b", "-g * y / b"}},
    {"pow", "ab", "clt_pow(a, b)", {"abg", "abyg"},
     {"b == 0.0f ? 0.0f : g * b * clt_pow(a, b - 1.0f)",
      "a == 0.0f && b >= 0.0f ? 0.0f : g * y * log(a)"}, OF_F32},
    {"add_scalar", "a", "a + s0", {"g"}, {"g"}},
    {"mul_scalar", "a", "a * s0", {"g"}, {"g * s0"}},
    {"pow_scalar", "a", "clt_pow(a, s0)", {"ag"}, {"s0 == 0.0f ? 0.0f : g * s0 * clt_pow(a, s0 - 1.0f)"}, OF_F32},
    {"square", "a", "a * a", {"ag"}, {"2.0f * a * g"}},
    {"neg", "a", "-a", {"g"}, {"-g"}},
    {"abs", "a", "fabs(a)", {"ag"}, {"a > 0.0f ? g : a < 0.0f ? -g : 0.0f"}},
    {"exp", "a", "exp(a)", {"yg"}, {"g * y"}, OF_F32},
    {"log", "a", "log(a)", {"ag"}, {"g / a"}, OF_F32},
    {"sqrt", "a", "sqrt(a)", {"yg"}, {"0.5f * g / y"}},
    {"clip", "a", "a < s0 ? s0 : a > s1 ? s1 : a", {"ag"}, {"a >= s0 && a <= s1 ? g : 0.0f"}},
    {"relu", "a", "a < 0.0f ? 0.0f : a", {"yg"}, {"y <= 0.0f ? 0.0f : g"}},
    {"gelu", "a", "clt_gelu(a)", {"ag"}, {"g * clt_gelu_slope(a)"}},
    {"gelu_tanh", "a", "clt_gelu_tanh(a)", {"ag"}, {"g * clt_gelu_tanh_slope(a)"}},
    {"leaky_relu", "a", "a < 0.0f ? s0 * a : a", {"ag"}, {"a > 0.0f ? g : s0 * g"}},
    {"elu", "a", "a > 0.0f ? a : s0 * expm1(a)", {"ag"}, {"a > 0.0f ? g : g * s0 * exp(a)"}},
    {"softplus", "a", "fmax(a, 0.0f) + log1p(exp(-fabs(a)))", {"ag"}, {"g / (1.0f + exp(-a))"}, OF_F32},
    {"hard_sigmoid", "a", "a <= -3.0f ? 0.0f : a >= 3.0f ? 1.0f : a / 6.0f + 0.5f", {"ag"}, {"a > -3.0f && a < 3.0f ? g / 6.0f : 0.0f"}},
    {"hard_swish", "a", "a <= -3.0f ? 0.0f : a >= 3.0f ? a : a * (a + 3.0f) / 6.0f", {"ag"},
     {"a <= -3.0f ? 0.0f : a < 3.0f ? g * (a / 3.0f + 0.5f) : g"}},
    {"erf", "a", "erf(a)", {"ag"}, {"g * 1.1283791670955126f * exp(-a * a)"}},
    {"sin", "a", "sin(a)", {"ag"}, {"g * cos(a)"}},
    {"cos", "a", "cos(a)", {"ag"}, {"-g * sin(a)"}},
    /* NaN stays; equal ones share the gradient. */
    {"maximum", "ab", "a > b ? a : a <= b ? b : a + b", {"abg", "abg"}, {"a > b ? g : a == b ? 0.5f * g : 0.0f", "a < b ? g : a == b ? 0.5f * g : 0.0f"}, OF_NUMBERS},
    {"minimum", "ab", "a < b ? a : a >= b ? b : a + b", {"abg", "abg"}, {"a < b ? g : a == b ? 0.5f * g : 0.0f", "a > b ? g : a == b ? 0.5f * g : 0.0f"}, OF_NUMBERS},
    {"where", "abc", "a != 0.0f ? b : c", {NULL, "ag", "ag"}, {NULL, "a != 0.0f ? g : 0.0f", "a != 0.0f ? 0.0f : g"}, SELECTS},
    {"equal", "ab", "a == b ? 1.0f : 0.0f", {0}, {0}, COMPARES},
    {"greater", "ab", "a > b ? 1.0f : 0.0f", {0}, {0}, COMPARES},
    {"greater_equal", "ab", "a >= b ? 1.0f : 0.0f", {0}, {0}, COMPARES},
    {"less", "ab", "a < b ? 1.0f : 0.0f", {0}, {0}, COMPARES},
    {"less_equal", "ab", "a <= b ? 1.0f : 0.0f", {0}, {0}, COMPARES},
    {"tanh", "a", "tanh(a)", {"yg"}, {"g * (1.0f - y * y)"}},
    {"sigmoid", "a", "1.0f / (1.0f + exp(-a))", {"yg"}, {"g * y * (1.0f - y)"}},
    {"silu", "a", "a / (1.0f + exp(-a))", {"ag"},
     {"g * (1.0f + a * (1.0f - 1.0f / (1.0f + exp(-a)))) / (1.0f + exp(-a))"}},
    {"bce_with_logits", "ab", "fmax(a, 0.0f) - a * b + log1p(exp(-fabs(a)))", {"abg", "ag"},
     {"g * (1.0f / (1.0f + exp(-a)) - b)", "-g * a"}, OF_F32},
    {"l1_loss", "ab", "fabs(a - b)", {"abg", "abg"}, {"a > b ? g : a < b ? -g : 0.0f", "a > b ? -g : a < b ? g : 0.0f"}, OF_F32},
    {"huber_loss", "ab", "fabs(a - b) <= s0 ? 0.5f * (a - b) * (a - b) : s0 * (fabs(a - b) - 0.5f * s0)", {"abg", "abg"},
     {"a - b > s0 ? s0 * g : b - a > s0 ? -s0 * g : g * (a - b)", "a - b > s0 ? -s0 * g : b - a > s0 ? s0 * g : g * (b - a)"}, OF_F32},
    {"kl_div_loss", "ab", "b == 0.0f ? 0.0f : b * (log(b) - a)", {"bg", "abg"}, {"-g * b", "b == 0.0f ? 0.0f : g * (log(b) - a + 1.0f)"}, OF_F32},
    {"mse_loss", "ab", "(a - b) * (a - b)", {"abg", "abg"},
     {"2.0f * g * (a - b)", "-2.0f * g * (a - b)"}, OF_F32},
};

/* ---- rules ---- */

static bool is_cast(const clt_pointwise_attributes *at) {
    return !strcmp(at->name, "cast");
}

bool clt_node_casts(const clt_tensor *node) {
    return node->op == &clt_op_pointwise && is_cast(node->attributes);
}

static bool takes_integers(const clt_tensor *node, int i) {
    const clt_pointwise_attributes *at = node->attributes;
    return is_cast(at) || (at->function && at->function->takes != OF_FLOATS && at->function->takes != OF_F32 && (at->function->takes != SELECTS || i > 0));
}

/* Operands of different types are promoted to f32, as PyTorch does. A condition has no say; of a comparison 1 and 0 are floats. */
static clt_dtype common_dtype(const clt_tensor *node) {
    const function *f = ((const clt_pointwise_attributes *)node->attributes)->function;
    int first = f && f->takes == SELECTS;
    clt_dtype dtype = node->n_inputs ? node->inputs[first]->dtype : CLT_F32;
    for (int i = first + 1; i < node->n_inputs; i++)
        if (node->inputs[i]->dtype != dtype) return CLT_F32;
    return f && f->takes == COMPARES && !clt_dtype_is_float(dtype) ? CLT_F32 : dtype;
}

static clt_status infer(clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    clt_shape shape = at->shape;
    CLT_TRY(clt_graph_resolve(node->graph, &shape));
    for (int i = 0; i < node->n_inputs; i++) {
        const clt_tensor *x = node->inputs[i];
        if (!takes_integers(node, i)) CLT_TRY(clt_check_float(node, i));
        if (i == 0) shape = x->shape;
        else if (!clt_shape_broadcast(&shape, &x->shape, &shape)) {
            char text[CLT_PAIR_TEXT];
            return clt_fail(CLT_E_SHAPE, "%s do not broadcast", clt_pair_text(node->inputs[0], x, text));
        }
    }
    node->shape = shape;
    node->dtype = is_cast(at) ? at->dtype : common_dtype(node);
    return CLT_OK;
}

static clt_tensor *operand(clt_tensor *node, clt_tensor *dy, char letter) {
    switch (letter) {
    case 'a': return node->inputs[0];
    case 'b': return node->inputs[1];
    case 'c': return node->inputs[2];
    case 'y': return node;
    default: return dy;
    }
}

/* To what has no formula or a whole-number type there is no gradient. */
static bool has_gradient(const clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    return is_cast(at) ? clt_dtype_is_float(node->dtype) && clt_dtype_is_float(node->inputs[0]->dtype) : at->function != NULL;
}

/* A condition is constant but where it changes. */
static bool passes_gradient(const clt_tensor *node, int i) {
    const clt_pointwise_attributes *at = node->attributes;
    return is_cast(at) || at->function->grad[i];
}

/* Of operand i before sums and casts. */
static clt_tensor *gradient_term(clt_tensor *node, clt_tensor *dy, int i) {
    const clt_pointwise_attributes *at = node->attributes;
    if (is_cast(at) || !strcmp(at->function->grad[i], "g")) return dy;
    clt_pointwise_attributes grad = {.name = at->name,
                                     .expression = at->function->grad[i],
                                     .operands = at->function->grad_operands[i],
                                     .s = {at->s[0], at->s[1]}};
    clt_tensor *inputs[4];
    int n = 0;
    for (const char *c = grad.operands; *c; c++) inputs[n++] = operand(node, dy, *c);
    return clt_node(node->graph, &clt_op_pointwise, &grad, inputs, n);
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    for (int i = 0; i < node->n_inputs; i++) {
        if (!wanted[i]) continue;
        if (!has_gradient(node)) {
            clt_graph_fail(node->graph, clt_fail(CLT_E_UNSUPPORTED, "%s has no gradient", clt_node_name(node)));
            return;
        }
        clt_tensor *x = node->inputs[i];
        if (passes_gradient(node, i)) dx[i] = clt_cast(clt_sum_to(gradient_term(node, dy, i), &x->shape), x->dtype);
    }
}

static clt_autocast autocast_of(const clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    return at->function && at->function->takes == OF_F32 ? CLT_AUTOCAST_F32 : CLT_AUTOCAST_WIDEST;
}

static const char *label(const clt_tensor *node) {
    return ((const clt_pointwise_attributes *)node->attributes)->name;
}

static bool form(const clt_tensor *node, bool training, clt_form *form) {
    const clt_pointwise_attributes *at = node->attributes;
    (void)training;
    *form = (clt_form){.name = at->name, .expression = at->expression, .s = {at->s[0], at->s[1]}};
    for (int i = 0; i < node->n_inputs; i++) clt_form_read(form, at->operands[i], i, CLT_READ_BROADCAST, 0);
    return true;
}

/* Operators and calls in the expression. */
static clt_cost cost(const clt_tensor *node) {
    const clt_pointwise_attributes *at = node->attributes;
    double operations = 0;
    for (const char *c = at->expression; *c; c++) {
        bool called = *c == '(' && c > at->expression && (isalnum((unsigned char)c[-1]) || c[-1] == '_');
        operations += called || strchr("+-*/<>?", *c) != NULL;
    }
    return (clt_cost){operations * (double)clt_tensor_elements(node), clt_node_bytes(node)};
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_pointwise_attributes, name, TEXT),
    CLT_ATTRIBUTE(clt_pointwise_attributes, expression, TEXT),
    CLT_ATTRIBUTE(clt_pointwise_attributes, operands, TEXT),
    CLT_ATTRIBUTE(clt_pointwise_attributes, function, OPAQUE), /* goes with the name and the expression */
    CLT_ATTRIBUTE(clt_pointwise_attributes, s[0], FLOAT),
    CLT_ATTRIBUTE(clt_pointwise_attributes, s[1], FLOAT),
    CLT_ATTRIBUTE(clt_pointwise_attributes, dtype, DTYPE),
    CLT_ATTRIBUTE(clt_pointwise_attributes, shape, RESULT),
    {0},
};

const clt_op clt_op_pointwise = {
    .name = "pointwise",
    .attributes_bytes = sizeof(clt_pointwise_attributes),
    .schema = schema,
    .cost = cost,
    .infer = infer,
    .stretches = CLT_STRETCH_ALL,
    .computes_integers = true,
    .gradient = gradient,
    .label = label,
    .form = form,
    .autocast_of = autocast_of,
};

/* ---- builders ---- */

/* An integer with an operand of another type is f32, as a node of its own: gradients are of floats alone. */
static clt_tensor *alike(clt_tensor *x, const clt_tensor *other) {
    bool whole = clt_tensor_valid(x) && clt_tensor_valid(other) && x->dtype != other->dtype && !clt_dtype_is_float(x->dtype);
    return whole ? clt_cast(x, CLT_F32) : x;
}

static clt_tensor *apply(const function *f, clt_tensor *const *x, float s0, float s1) {
    clt_tensor *both[] = {x[0], f->takes == OF_NUMBERS ? x[1] : NULL};
    if (f->takes == OF_NUMBERS) both[0] = alike(x[0], x[1]), both[1] = alike(x[1], x[0]), x = both;
    clt_pointwise_attributes at = {.name = f->name,
                                   .expression = f->value,
                                   .operands = f->operands,
                                   .function = f,
                                   .s = {s0, s1}};
    return clt_node(NULL, &clt_op_pointwise, &at, x, (int)strlen(f->operands));
}

static const function *function_of(const char *name) {
    size_t i = 0;
    while (strcmp(functions[i].name, name)) i++;
    return &functions[i];
}

static clt_tensor *apply_named(const char *name, clt_tensor *a, clt_tensor *b, float s0, float s1) {
    return apply(function_of(name), (clt_tensor *[]){a, b}, s0, s1);
}

clt_tensor *clt_add(clt_tensor *a, clt_tensor *b) { return apply_named("add", a, b, 0, 0); }
clt_tensor *clt_sub(clt_tensor *a, clt_tensor *b) { return apply_named("sub", a, b, 0, 0); }
clt_tensor *clt_mul(clt_tensor *a, clt_tensor *b) { return apply_named("mul", a, b, 0, 0); }
clt_tensor *clt_div(clt_tensor *a, clt_tensor *b) { return apply_named("div", a, b, 0, 0); }
clt_tensor *clt_pow(clt_tensor *a, clt_tensor *b) { return apply_named("pow", a, b, 0, 0); }
clt_tensor *clt_add_scalar(clt_tensor *a, float s) { return apply_named("add_scalar", a, NULL, s, 0); }
clt_tensor *clt_mul_scalar(clt_tensor *a, float s) { return apply_named("mul_scalar", a, NULL, s, 0); }
clt_tensor *clt_neg(clt_tensor *a) { return apply_named("neg", a, NULL, 0, 0); }
clt_tensor *clt_abs(clt_tensor *a) { return apply_named("abs", a, NULL, 0, 0); }
clt_tensor *clt_exp(clt_tensor *a) { return apply_named("exp", a, NULL, 0, 0); }
clt_tensor *clt_log(clt_tensor *a) { return apply_named("log", a, NULL, 0, 0); }
clt_tensor *clt_sqrt(clt_tensor *a) { return apply_named("sqrt", a, NULL, 0, 0); }
clt_tensor *clt_relu(clt_tensor *a) { return apply_named("relu", a, NULL, 0, 0); }
clt_tensor *clt_gelu_tanh(clt_tensor *a) { return apply_named("gelu_tanh", a, NULL, 0, 0); }
clt_tensor *clt_gelu(clt_tensor *a) { return apply_named("gelu", a, NULL, 0, 0); }
clt_tensor *clt_tanh(clt_tensor *a) { return apply_named("tanh", a, NULL, 0, 0); }
clt_tensor *clt_sigmoid(clt_tensor *a) { return apply_named("sigmoid", a, NULL, 0, 0); }
clt_tensor *clt_silu(clt_tensor *a) { return apply_named("silu", a, NULL, 0, 0); }
clt_tensor *clt_leaky_relu(clt_tensor *a, float slope) { return apply_named("leaky_relu", a, NULL, slope, 0); }
clt_tensor *clt_elu(clt_tensor *a, float alpha) { return apply_named("elu", a, NULL, alpha, 0); }
clt_tensor *clt_softplus(clt_tensor *a) { return apply_named("softplus", a, NULL, 0, 0); }
clt_tensor *clt_hard_sigmoid(clt_tensor *a) { return apply_named("hard_sigmoid", a, NULL, 0, 0); }
clt_tensor *clt_hard_swish(clt_tensor *a) { return apply_named("hard_swish", a, NULL, 0, 0); }
clt_tensor *clt_erf(clt_tensor *a) { return apply_named("erf", a, NULL, 0, 0); }
clt_tensor *clt_sin(clt_tensor *a) { return apply_named("sin", a, NULL, 0, 0); }
clt_tensor *clt_cos(clt_tensor *a) { return apply_named("cos", a, NULL, 0, 0); }
clt_tensor *clt_maximum(clt_tensor *a, clt_tensor *b) { return apply_named("maximum", a, b, 0, 0); }
clt_tensor *clt_minimum(clt_tensor *a, clt_tensor *b) { return apply_named("minimum", a, b, 0, 0); }
clt_tensor *clt_equal(clt_tensor *a, clt_tensor *b) { return apply_named("equal", a, b, 0, 0); }

clt_tensor *clt_where(clt_tensor *condition, clt_tensor *a, clt_tensor *b) {
    return apply(function_of("where"), (clt_tensor *[]){condition, a, b}, 0, 0);
}

clt_tensor *clt_greater(clt_tensor *a, clt_tensor *b) { return apply_named("greater", a, b, 0, 0); }
clt_tensor *clt_greater_equal(clt_tensor *a, clt_tensor *b) { return apply_named("greater_equal", a, b, 0, 0); }
clt_tensor *clt_less(clt_tensor *a, clt_tensor *b) { return apply_named("less", a, b, 0, 0); }
clt_tensor *clt_less_equal(clt_tensor *a, clt_tensor *b) { return apply_named("less_equal", a, b, 0, 0); }

clt_tensor *clt_pow_scalar(clt_tensor *a, float exponent) {
    return apply_named(exponent == 2.0f ? "square" : "pow_scalar", a, NULL, exponent, 0);
}

clt_tensor *clt_clip(clt_tensor *a, float low, float high) {
    if (clt_tensor_valid(a) && !(low <= high))
        return clt_graph_fail(a->graph, clt_fail(CLT_E_INVALID, "clip: low %g is above high %g",
                                                 (double)low, (double)high));
    return apply_named("clip", a, NULL, low, high);
}

clt_tensor *clt_cast(clt_tensor *a, clt_dtype dtype) {
    if (!clt_tensor_valid(a) || a->dtype == dtype) return a;
    const char *byte = a->dtype == CLT_I32 ? "convert_uchar(a)" : "convert_uchar_sat(a)";
    const char *expression = dtype == CLT_I32 ? "convert_int_sat(a)" : dtype == CLT_U8 ? byte : "convert_float(a)";
    if (!clt_dtype_is_float(dtype) && dtype != CLT_I32 && dtype != CLT_U8)
        return clt_graph_fail(a->graph, clt_fail(CLT_E_DTYPE, "cast: %s is not supported; f32, f16, bf16, i32 and u8 are",
                                                 clt_dtype_name(dtype)));
    clt_pointwise_attributes at = {.name = "cast", .expression = expression, .operands = "a", .dtype = dtype};
    return clt_node(NULL, &clt_op_pointwise, &at, &a, 1);
}

clt_tensor *clt_fill(clt_graph *graph, clt_shape shape, float value) {
    clt_pointwise_attributes at = {
        .name = "fill", .expression = "s0", .operands = "", .s = {value}, .shape = shape};
    return clt_node(graph, &clt_op_pointwise, &at, NULL, 0);
}

/* ---- losses that are pointwise ops ---- */

static clt_tensor *loss_of(const char *name, clt_tensor *a, clt_tensor *b, float s, clt_loss_options options) {
    if (clt_tensor_valid(a) && clt_tensor_valid(b) && !clt_shape_equal(&a->shape, &b->shape)) {
        char text[CLT_PAIR_TEXT];
        return clt_graph_fail(a->graph, clt_fail(CLT_E_SHAPE, "%s: %s differ in shape", name,
                                                 clt_pair_text(a, b, text)));
    }
    return clt_reduce_losses(apply_named(name, a, b, s, 0), options);
}

clt_tensor *clt_bce_with_logits_with(clt_tensor *logits, clt_tensor *target, clt_loss_options options) {
    return loss_of("bce_with_logits", logits, target, 0, options);
}

clt_tensor *clt_mse_loss_with(clt_tensor *prediction, clt_tensor *target, clt_loss_options options) {
    return loss_of("mse_loss", prediction, target, 0, options);
}

clt_tensor *clt_l1_loss_with(clt_tensor *prediction, clt_tensor *target, clt_loss_options options) {
    return loss_of("l1_loss", prediction, target, 0, options);
}

clt_tensor *clt_huber_loss_with(clt_tensor *prediction, clt_tensor *target, float delta, clt_loss_options options) {
    if (clt_tensor_valid(prediction) && !(delta > 0 && delta < INFINITY))
        return clt_graph_fail(prediction->graph, clt_fail(CLT_E_INVALID, "huber_loss: delta is %g; it must be above 0", (double)delta));
    return loss_of("huber_loss", prediction, target, delta, options);
}

clt_tensor *clt_kl_div_loss_with(clt_tensor *log_p, clt_tensor *target, clt_loss_options options) {
    return loss_of("kl_div_loss", log_p, target, 0, options);
}

clt_tensor *clt_kl_div_loss(clt_tensor *log_p, clt_tensor *target) {
    return clt_kl_div_loss_with(log_p, target, (clt_loss_options){CLT_LOSS_MEAN});
}

clt_tensor *clt_l1_loss(clt_tensor *prediction, clt_tensor *target) {
    return clt_l1_loss_with(prediction, target, (clt_loss_options){CLT_LOSS_MEAN});
}

clt_tensor *clt_huber_loss(clt_tensor *prediction, clt_tensor *target, float delta) {
    return clt_huber_loss_with(prediction, target, delta, (clt_loss_options){CLT_LOSS_MEAN});
}

clt_tensor *clt_bce_with_logits(clt_tensor *logits, clt_tensor *target) {
    return clt_bce_with_logits_with(logits, target, (clt_loss_options){CLT_LOSS_MEAN});
}

clt_tensor *clt_mse_loss(clt_tensor *prediction, clt_tensor *target) {
    return clt_mse_loss_with(prediction, target, (clt_loss_options){CLT_LOSS_MEAN});
}
