/* Pointwise ops as nodes of ONNX. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exchange/onnx/writer.h"
#include "runtime/ops/ops.h"

/*
 * The nodes of each, separated by ";", of which the last one gives the result: an op of ONNX, then its operands: a, b, c are the inputs, s and t
 * the numbers s0 and s1 of the node, a digit what that node gives, the first of which is 0, and #1 the number 1. "name=number": an attribute.
 */
static const struct formula {
    const char *name, *nodes;
} formulas[] = {
    {"add", "Add a b"},
    {"sub", "Sub a b"},
    {"mul", "Mul a b"},
    {"div", "Div a b"},
    {"pow", "Pow a b"},
    {"add_scalar", "Add a s"},
    {"mul_scalar", "Mul a s"},
    {"pow_scalar", "Pow a s"},
    {"square", "Mul a a"},
    {"neg", "Neg a"},
    {"abs", "Abs a"},
    {"exp", "Exp a"},
    {"log", "Log a"},
    {"sqrt", "Sqrt a"},
    {"clip", "Clip a s t"},
    {"relu", "Relu a"},
    {"gelu", "Div a #1.4142135623730951;Erf 0;Add 1 #1;Mul a 2;Mul 3 #0.5"},
    {"gelu_tanh", "Mul a a;Mul a 0;Mul 1 #0.044715;Add a 2;Mul 3 #0.7978845608028654;Tanh 4;Add 5 #1;Mul a 6;Mul 7 #0.5"},
    {"leaky_relu", "LeakyRelu a alpha=s"},
    {"elu", "Elu a alpha=s"},
    {"softplus", "Softplus a"},
    {"hard_sigmoid", "HardSigmoid a alpha=0.16666667 beta=0.5"},
    {"hard_swish", "HardSwish a"},
    {"erf", "Erf a"},
    {"sin", "Sin a"},
    {"cos", "Cos a"},
    {"maximum", "Max a b"},
    {"minimum", "Min a b"},
    {"where", "Cast a to=9;Where 0 b c"},
    {"greater", "Greater a b;Cast 0 to=1"},
    {"greater_equal", "GreaterOrEqual a b;Cast 0 to=1"},
    {"less", "Less a b;Cast 0 to=1"},
    {"less_equal", "LessOrEqual a b;Cast 0 to=1"},
    {"equal", "Equal a b;Cast 0 to=1"},
    {"tanh", "Tanh a"},
    {"sigmoid", "Sigmoid a"},
    {"silu", "Sigmoid a;Mul a 0"},
    {"bce_with_logits", "Relu a;Mul a b;Sub 0 1;Abs a;Neg 3;Softplus 4;Add 2 5"},
    {"l1_loss", "Sub a b;Abs 0"},
    {"mse_loss", "Sub a b;Mul 0 0"},
    {"huber_loss", "Sub a b;Abs 0;LessOrEqual 1 s;Mul 0 0;Mul 3 #0.5;Mul s #0.5;Sub 1 5;Mul s 6;Where 2 4 7"},
    {"kl_div_loss", "Equal b #0;Log b;Sub 1 a;Mul b 2;Where 0 #0 3"},
};

enum { MOST_NODES = 10 };

typedef struct operands {
    const char *const *in;
    const float *s;
    const char *made[MOST_NODES];
} operands;

static float number_of(const char *word, const float *s) {
    return word[0] == 's' ? s[0] : word[0] == 't' ? s[1] : strtof(word, NULL);
}

static const char *value_of(clt_onnx_writer *w, const char *word, const operands *o) {
    if (isdigit((unsigned char)word[0])) return o->made[word[0] - '0'];
    if (word[0] == '#' || word[0] == 's' || word[0] == 't') return clt_onnx_put_scalar(w, number_of(word + (word[0] == '#'), o->s));
    return o->in[word[0] - 'a'];
}

/* One of the nodes, which ends with ";" or the text. */
static const char *put_step(clt_onnx_writer *w, const char *text, const operands *o, const char *y) {
    char op[24], word[32];
    const char *inputs[3];
    struct {
        char name[16], value[16];
    } attributes[2];
    int n = 0, n_attributes = 0, taken = 0;
    sscanf(text, "%23[^ ;]%n", op, &taken);
    for (text += taken; sscanf(text, " %31[^ ;]%n", word, &taken) == 1; text += taken) {
        if (strchr(word, '=')) sscanf(word, "%15[^=]=%15s", attributes[n_attributes].name, attributes[n_attributes].value), n_attributes++;
        else inputs[n++] = value_of(w, word, o);
    }
    for (int i = 0; i < n_attributes; i++) {
        float value = number_of(attributes[i].value, o->s);
        if (!strcmp(attributes[i].name, "to")) clt_onnx_put_int(w, attributes[i].name, (int64_t)value);
        else clt_onnx_put_float(w, attributes[i].name, value);
    }
    return clt_onnx_put(w, op, y, inputs, n);
}

static const char *put_formula(clt_onnx_writer *w, const char *text, operands *o, const char *y) {
    for (int i = 0;; i++) {
        const char *end = strchr(text, ';');
        o->made[i] = put_step(w, text, o, end ? NULL : y);
        if (!end) return o->made[i];
        text = end + 1;
    }
}

/* Operands of different types become what they are computed in: here they may differ, in ONNX not. A condition is left as it is. */
static void unify(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *out[3]) {
    int first = !strcmp(((const clt_pointwise_attributes *)node->attributes)->name, "where");
    bool same = true, floats = node->dtype == CLT_F32 && first;
    for (int i = 0; i < node->n_inputs; i++) out[i] = in[i];
    for (int i = first; i < node->n_inputs; i++) {
        same &= node->inputs[i]->dtype == node->inputs[first]->dtype;
        floats |= node->inputs[i]->dtype == CLT_F32;
    }
    for (int i = first; i < node->n_inputs && !same; i++)
        if (node->inputs[i]->dtype != (floats ? CLT_F32 : CLT_I32)) out[i] = clt_onnx_put_cast(w, NULL, in[i], floats ? CLT_ONNX_FLOAT : CLT_ONNX_INT32);
}

/* To bytes it saturates here; there nothing is said of floats that do not fit. */
static const char *write_cast(clt_onnx_writer *w, const clt_tensor *node, const char *x, const char *y) {
    if (node->dtype == CLT_U8 && node->inputs[0]->dtype == CLT_F32) x = CLT_ONNX_PUT(w, "Clip", NULL, x, clt_onnx_put_scalar(w, 0), clt_onnx_put_scalar(w, 255));
    return clt_onnx_put_cast(w, y, x, clt_onnx_type_of_dtype(node->dtype));
}

const char *clt_onnx_write_pointwise(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_pointwise_attributes *at = node->attributes;
    if (!strcmp(at->name, "cast")) return write_cast(w, node, in[0], y);
    if (!strcmp(at->name, "fill")) return CLT_ONNX_PUT(w, "Expand", y, clt_onnx_put_scalar(w, at->s[0]), clt_onnx_put_shape(w, &at->shape, NULL));
    const char *unified[3];
    unify(w, node, in, unified);
    operands o = {.in = unified, .s = at->s};
    for (size_t i = 0; i < CLT_COUNT_OF(formulas); i++)
        if (!strcmp(formulas[i].name, at->name)) return put_formula(w, formulas[i].nodes, &o, y);
    clt_onnx_writer_fail(w, clt_fail(CLT_E_UNSUPPORTED, "ONNX has no counterpart of %s", at->name));
    return "";
}
