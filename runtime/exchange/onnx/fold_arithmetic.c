/* Element by element, operands stretched to one another. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/fold.h"

/* ---- types ---- */

static int64_t narrowed(int64_t type, int64_t value) {
    switch (type) {
    case CLT_ONNX_INT32: return (int32_t)(uint32_t)(uint64_t)value;
    case CLT_ONNX_UINT8: return (uint8_t)(uint64_t)value;
    case CLT_ONNX_BOOL: return value != 0;
    default: return value;
    }
}

/* Towards zero, as C does it; of what does not fit nothing is said anywhere: the nearest that does. NaN becomes 0. */
static int64_t integer_of(float value, int64_t type) {
    int64_t least = type == CLT_ONNX_INT32 ? INT32_MIN : type == CLT_ONNX_UINT8 ? 0 : INT64_MIN;
    int64_t most = type == CLT_ONNX_INT32 ? INT32_MAX : type == CLT_ONNX_UINT8 ? UINT8_MAX : INT64_MAX;
    if (isnan(value)) return 0;
    if (value <= (double)least) return least;
    if (value >= (double)most) return most;
    return (int64_t)value;
}

static clt_status convert(const clt_onnx_folding *f, const clt_literal *a, int64_t type) {
    CLT_TRY(clt_literal_new(f->arena, type, &a->shape, f->out));
    clt_literal *y = f->out[0];
    bool from_floats = a->type == CLT_ONNX_FLOAT;
    for (int64_t i = 0; i < a->elements; i++) {
        if (type == CLT_ONNX_FLOAT) y->floats[i] = from_floats ? a->floats[i] : (float)a->integers[i];
        else if (type == CLT_ONNX_BOOL) y->integers[i] = from_floats ? a->floats[i] != 0 : a->integers[i] != 0;
        else y->integers[i] = from_floats ? integer_of(a->floats[i], type) : narrowed(type, a->integers[i]);
    }
    return CLT_OK;
}

static clt_status fold_cast(const clt_onnx_folding *f) {
    const clt_literal *a;
    CLT_TRY(clt_fold_need(f, 0, &a));
    int64_t to = clt_fold_int(f, "to", 0);
    return convert(f, a, clt_onnx_computed_type(to));
}

static clt_status fold_cast_like(const clt_onnx_folding *f) {
    const clt_literal *a, *like;
    CLT_TRY(clt_fold_need(f, 0, &a));
    CLT_TRY(clt_fold_need(f, 1, &like));
    return convert(f, a, like->type);
}

/* ---- two operands ---- */

typedef struct operation {
    const char *op;
    float (*of_floats)(float a, float b);           /* NULL: there is none for that type */
    int64_t (*of_integers)(int64_t a, int64_t b);
    bool (*compares_floats)(float a, float b);      /* the result is a BOOL, as that of the next */
    bool (*compares_integers)(int64_t a, int64_t b);
    bool divides; /* integers by what must not be 0 */
} operation;

/* Integers wrap around, as they do where ONNX is otherwise run. */
#define WRAPPED(name, sign) \
    static int64_t name(int64_t a, int64_t b) { return (int64_t)((uint64_t)a sign (uint64_t)b); }
#define FLOATS(name, expression) \
    static float name(float a, float b) { return expression; }
#define INTEGERS(name, expression) \
    static int64_t name(int64_t a, int64_t b) { return expression; }
#define COMPARES(name, sign)                                       \
    static bool name##_floats(float a, float b) { return a sign b; } \
    static bool name##_integers(int64_t a, int64_t b) { return a sign b; }

WRAPPED(add_integers, +)
WRAPPED(sub_integers, -)
WRAPPED(mul_integers, *)
FLOATS(add_floats, a + b)
FLOATS(sub_floats, a - b)
FLOATS(mul_floats, a * b)
FLOATS(div_floats, a / b)
FLOATS(pow_floats, powf(a, b))
FLOATS(max_floats, a > b || isnan(a) ? a : b)
FLOATS(min_floats, a < b || isnan(a) ? a : b)
/* The least integer by -1 wraps around, too. */
INTEGERS(div_integers, b == -1 ? (int64_t)-(uint64_t)a : a / b)
INTEGERS(max_integers, a > b ? a : b)
INTEGERS(min_integers, a < b ? a : b)
INTEGERS(and_integers, a && b)
INTEGERS(or_integers, a || b)
INTEGERS(xor_integers, !a != !b)
COMPARES(equal, ==)
COMPARES(less, <)
COMPARES(less_equal, <=)
COMPARES(greater, >)
COMPARES(greater_equal, >=)

/* The sign is the divisor's, as Python's; with fmod = 1 the dividend's. */
static int64_t mod_integers(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t fmod_integers(int64_t a, int64_t b) {
    return b == -1 ? 0 : a % b;
}
static float fmod_floats(float a, float b) {
    return fmodf(a, b);
}

static int64_t pow_integers(int64_t a, int64_t b) {
    uint64_t result = 1, base = (uint64_t)a;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b; b >>= 1, base *= base)
        if (b & 1) result *= base;
    return (int64_t)result;
}

static const operation operations[] = {
    {.op = "Add", .of_floats = add_floats, .of_integers = add_integers},
    {.op = "Sub", .of_floats = sub_floats, .of_integers = sub_integers},
    {.op = "Mul", .of_floats = mul_floats, .of_integers = mul_integers},
    {.op = "Div", .of_floats = div_floats, .of_integers = div_integers, .divides = true},
    {.op = "Pow", .of_floats = pow_floats, .of_integers = pow_integers},
    {.op = "Max", .of_floats = max_floats, .of_integers = max_integers},
    {.op = "Min", .of_floats = min_floats, .of_integers = min_integers},
    {.op = "And", .of_integers = and_integers},
    {.op = "Or", .of_integers = or_integers},
    {.op = "Xor", .of_integers = xor_integers},
    {.op = "Equal", .compares_floats = equal_floats, .compares_integers = equal_integers},
    {.op = "Less", .compares_floats = less_floats, .compares_integers = less_integers},
    {.op = "LessOrEqual", .compares_floats = less_equal_floats, .compares_integers = less_equal_integers},
    {.op = "Greater", .compares_floats = greater_floats, .compares_integers = greater_integers},
    {.op = "GreaterOrEqual", .compares_floats = greater_equal_floats, .compares_integers = greater_equal_integers},
};
static const operation mod_rows[] = {
    {.op = "Mod", .of_integers = mod_integers, .divides = true},
    {.op = "Mod", .of_floats = fmod_floats, .of_integers = fmod_integers, .divides = true},
};

static clt_status compute(clt_arena *arena, const operation *row, const clt_literal *a, const clt_literal *b, clt_literal **out) {
    clt_shape shape;
    int64_t of_a[CLT_MAX_RANK], of_b[CLT_MAX_RANK];
    char first[CLT_SHAPE_TEXT], second[CLT_SHAPE_TEXT];
    bool floats = a->type == CLT_ONNX_FLOAT, compares = row->compares_integers;
    if (a->type != b->type) return clt_fail(CLT_E_FORMAT, "operands of type %s and %s", clt_onnx_type_name(a->type), clt_onnx_type_name(b->type));
    if (floats ? !row->of_floats && !row->compares_floats : !row->of_integers && !compares)
        return clt_fail(CLT_E_UNSUPPORTED, "it is not computed of type %s", clt_onnx_type_name(a->type));
    if (!clt_shape_broadcast(&a->shape, &b->shape, &shape))
        return clt_fail(CLT_E_SHAPE, "operands of %s and %s", clt_shape_text(&a->shape, first), clt_shape_text(&b->shape, second));
    CLT_TRY(clt_literal_new(arena, compares ? CLT_ONNX_BOOL : a->type, &shape, out));
    clt_literal *y = *out;
    clt_fold_strides(&a->shape, &shape, of_a);
    clt_fold_strides(&b->shape, &shape, of_b);
    for (int64_t e = 0; e < y->elements; e++) {
        int64_t i = clt_fold_place(&shape, e, of_a), j = clt_fold_place(&shape, e, of_b);
        if (!floats && row->divides && b->integers[j] == 0) return clt_fail(CLT_E_FORMAT, "an integer is divided by 0");
        if (compares) y->integers[e] = floats ? row->compares_floats(a->floats[i], b->floats[j]) : row->compares_integers(a->integers[i], b->integers[j]);
        else if (floats && row->of_floats) y->floats[e] = row->of_floats(a->floats[i], b->floats[j]);
        else if (row->of_integers) y->integers[e] = narrowed(y->type, row->of_integers(a->integers[i], b->integers[j]));
    }
    return CLT_OK;
}

static const operation *operation_of(const clt_onnx_folding *f) {
    if (!strcmp(f->node->op, "Mod")) return &mod_rows[clt_fold_int(f, "fmod", 0) != 0];
    size_t i = 0;
    while (strcmp(operations[i].op, f->node->op)) i++;
    return &operations[i];
}

static clt_status fold_two(const clt_onnx_folding *f) {
    const clt_literal *a, *b;
    CLT_TRY(clt_fold_need(f, 0, &a));
    CLT_TRY(clt_fold_need(f, 1, &b));
    if (b->type != a->type && !strcmp(f->node->op, "Pow")) { /* whose exponent may be of another type */
        CLT_TRY(convert(f, b, a->type));
        b = f->out[0];
    }
    return compute(f->arena, operation_of(f), a, b, f->out);
}

/* Max and Min take one operand or more. */
static clt_status fold_any_number(const clt_onnx_folding *f) {
    const clt_literal *a, *b;
    CLT_TRY(clt_fold_need(f, 0, &a));
    CLT_TRY(compute(f->arena, operation_of(f), a, a, f->out));
    for (size_t i = 1; i < f->node->n_inputs; i++) {
        CLT_TRY(clt_fold_need(f, i, &b));
        CLT_TRY(compute(f->arena, operation_of(f), f->out[0], b, f->out));
    }
    return CLT_OK;
}

/* ---- one operand ---- */

typedef struct function {
    const char *op;
    float (*of_floats)(float a);
    int64_t (*of_integers)(int64_t a);
} function;

static int64_t neg_integers(int64_t a) {
    return (int64_t)-(uint64_t)a;
}
static int64_t abs_integers(int64_t a) {
    return a < 0 ? neg_integers(a) : a;
}
static int64_t not_integers(int64_t a) {
    return !a;
}
static int64_t sign_integers(int64_t a) {
    return (a > 0) - (a < 0);
}
static float neg_floats(float a) {
    return -a;
}
static float sign_floats(float a) {
    return (float)((a > 0) - (a < 0));
}
static float reciprocal_floats(float a) {
    return 1 / a;
}

static const function functions[] = {
    {"Neg", neg_floats, neg_integers}, {"Abs", fabsf, abs_integers},   {"Sign", sign_floats, sign_integers}, {"Not", NULL, not_integers},
    {"Floor", floorf, NULL},           {"Ceil", ceilf, NULL},          {"Round", rintf, NULL},               {"Sqrt", sqrtf, NULL},
    {"Exp", expf, NULL},               {"Log", logf, NULL},            {"Sin", sinf, NULL},                  {"Cos", cosf, NULL},
    {"Reciprocal", reciprocal_floats, NULL},
};

static clt_status fold_one(const clt_onnx_folding *f) {
    const clt_literal *a;
    const function *row = functions;
    CLT_TRY(clt_fold_need(f, 0, &a));
    while (strcmp(row->op, f->node->op)) row++;
    if (a->type == CLT_ONNX_FLOAT ? !row->of_floats : !row->of_integers)
        return clt_fail(CLT_E_UNSUPPORTED, "it is not computed of type %s", clt_onnx_type_name(a->type));
    CLT_TRY(clt_literal_new(f->arena, a->type, &a->shape, f->out));
    for (int64_t i = 0; i < a->elements; i++) {
        if (a->type == CLT_ONNX_FLOAT) f->out[0]->floats[i] = row->of_floats(a->floats[i]);
        else f->out[0]->integers[i] = narrowed(a->type, row->of_integers(a->integers[i]));
    }
    return CLT_OK;
}

static clt_status fold_identity(const clt_onnx_folding *f) {
    const clt_literal *a;
    CLT_TRY(clt_fold_need(f, 0, &a));
    CLT_TRY(clt_literal_new(f->arena, a->type, &a->shape, f->out));
    for (int64_t i = 0; i < a->elements; i++) clt_fold_copy(f->out[0], i, a, i);
    return CLT_OK;
}

/* ---- three operands ---- */

static clt_status fold_where(const clt_onnx_folding *f) {
    const clt_literal *of[3];
    int64_t strides[3][CLT_MAX_RANK];
    clt_shape shape;
    for (size_t i = 0; i < 3; i++) CLT_TRY(clt_fold_need(f, i, &of[i]));
    if (of[0]->type != CLT_ONNX_BOOL || of[1]->type != of[2]->type)
        return clt_fail(CLT_E_FORMAT, "a condition of type %s, choices of %s and %s", clt_onnx_type_name(of[0]->type), clt_onnx_type_name(of[1]->type),
                        clt_onnx_type_name(of[2]->type));
    if (!clt_shape_broadcast(&of[0]->shape, &of[1]->shape, &shape) || !clt_shape_broadcast(&shape, &of[2]->shape, &shape))
        return clt_fail(CLT_E_SHAPE, "its operands cannot be stretched to one another");
    CLT_TRY(clt_literal_new(f->arena, of[1]->type, &shape, f->out));
    for (int i = 0; i < 3; i++) clt_fold_strides(&of[i]->shape, &shape, strides[i]);
    for (int64_t e = 0; e < f->out[0]->elements; e++) {
        int chosen = of[0]->integers[clt_fold_place(&shape, e, strides[0])] ? 1 : 2;
        clt_fold_copy(f->out[0], e, of[chosen], clt_fold_place(&shape, e, strides[chosen]));
    }
    return CLT_OK;
}

/* Bounds are attributes before opset 11. */
static clt_status fold_clip(const clt_onnx_folding *f) {
    static const char *const names[] = {"min", "max"};
    const clt_literal *x, *bounds[2] = {clt_fold_in(f, 1), clt_fold_in(f, 2)};
    CLT_TRY(clt_fold_need(f, 0, &x));
    CLT_TRY(convert(f, x, x->type));
    clt_literal *y = f->out[0];
    for (int k = 0; k < 2; k++) { /* the upper one wins */
        const clt_onnx_attribute *a = clt_onnx_attribute_of(f->node, names[k], CLT_ONNX_A_FLOAT);
        bool floats = x->type == CLT_ONNX_FLOAT;
        if (bounds[k] && (bounds[k]->elements != 1 || bounds[k]->type != x->type)) return clt_fail(CLT_E_FORMAT, "a bound that is not one number of its type");
        if (!bounds[k] && !(a && floats)) continue;
        float f32 = floats ? bounds[k] ? bounds[k]->floats[0] : a->f : 0;
        int64_t whole = floats ? 0 : bounds[k]->integers[0];
        for (int64_t i = 0; i < y->elements; i++) {
            if (floats && (k ? y->floats[i] > f32 : y->floats[i] < f32)) y->floats[i] = f32;
            if (!floats && (k ? y->integers[i] > whole : y->integers[i] < whole)) y->integers[i] = whole;
        }
    }
    return CLT_OK;
}

const clt_onnx_fold_row clt_onnx_fold_arithmetic[] = {
    {"Add", fold_two}, {"Sub", fold_two}, {"Mul", fold_two}, {"Div", fold_two}, {"Mod", fold_two}, {"Pow", fold_two}, {"And", fold_two}, {"Or", fold_two},
    {"Xor", fold_two}, {"Equal", fold_two}, {"Less", fold_two}, {"LessOrEqual", fold_two}, {"Greater", fold_two}, {"GreaterOrEqual", fold_two},
    {"Max", fold_any_number}, {"Min", fold_any_number}, {"Clip", fold_clip},
    {"Neg", fold_one}, {"Abs", fold_one}, {"Sign", fold_one}, {"Not", fold_one}, {"Floor", fold_one}, {"Ceil", fold_one}, {"Round", fold_one},
    {"Sqrt", fold_one}, {"Exp", fold_one}, {"Log", fold_one}, {"Sin", fold_one}, {"Cos", fold_one}, {"Reciprocal", fold_one},
    {"Identity", fold_identity}, {"Cast", fold_cast}, {"CastLike", fold_cast_like}, {"Where", fold_where}, {0},
};
