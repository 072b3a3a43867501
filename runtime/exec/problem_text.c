#include "runtime/exec/problem_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/ops.h"

enum { MOST_TENSORS = CLT_PROBLEM_MOST_INPUTS + 1, MOST_ATTRIBUTES = 8 };

typedef struct operand {
    clt_shape shape;
    clt_dtype dtype;
    bool transposed, channels_last;
} operand;

typedef struct attribute {
    char letter;
    int64_t values[2]; /* the second is the first where there is one only */
    bool hex;
} attribute;

/* The text, taken apart. */
typedef struct words {
    char op[64];
    attribute attributes[MOST_ATTRIBUTES];
    int n_attributes;
    operand operands[MOST_TENSORS]; /* the result is the last */
    int n_operands;                 /* without the result */
} words;

/* ---- words ---- */

static clt_status malformed(const char *text, const char *why) {
    return clt_fail(CLT_E_FORMAT, "problem \"%.120s\": %s", text, why);
}

/* A whole number from 0 to what an int holds; *text behind it. */
static bool read_number(const char **text, int64_t *number) {
    char *end;
    if (!isdigit((unsigned char)**text)) return false;
    long long value = strtoll(*text, &end, 10);
    if (end - *text > 10 || value > INT32_MAX) return false;
    *text = end;
    *number = value;
    return true;
}

/* "64x3x8x8:nhwc", "1024x3072^T", "64:i32", "scalar" */
static bool read_operand(const char *word, operand *o) {
    double elements = 1;
    *o = (operand){.dtype = CLT_F32};
    bool scalar = strncmp(word, "scalar", 6) == 0;
    if (scalar) word += 6;
    while (!scalar) {
        int64_t size;
        if (o->shape.rank == CLT_MAX_RANK || !read_number(&word, &size) || size < 1) return false;
        o->shape.dims[o->shape.rank++] = size;
        elements *= (double)size;
        if (*word != 'x') break;
        word++;
    }
    if (elements > INT32_MAX) return false;
    if (strncmp(word, "^T", 2) == 0 && o->shape.rank >= 2) o->transposed = true, word += 2;
    if (strncmp(word, ":nhwc", 5) == 0 && o->shape.rank == 4) o->channels_last = true, word += 5;
    if (strncmp(word, ":i32", 4) == 0) o->dtype = CLT_I32, word += 4;
    return *word == 0;
}

/* "k3", "s1,2"; of a reduction "ad": the axes, in hexadecimal. */
static bool read_attribute(const char *word, bool hex, attribute *a) {
    char *end;
    *a = (attribute){.letter = *word++};
    if (hex && a->letter == 'a') {
        if (!isxdigit((unsigned char)*word)) return false;
        a->values[0] = (int64_t)strtoul(word, &end, 16);
        return *end == 0 && end - word < 6;
    }
    if (!read_number(&word, &a->values[0])) return false;
    a->values[1] = a->values[0];
    if (*word == ',' && (word++, !read_number(&word, &a->values[1]))) return false;
    return *word == 0;
}

static clt_status add_word(words *w, const char *text, const char *word, bool *arrow) {
    bool first = w->op[0] == 0, shape = isdigit((unsigned char)*word) || !strncmp(word, "scalar", 6);
    if (first) {
        if (shape) return malformed(text, "it does not begin with an op");
        snprintf(w->op, sizeof w->op, "%s", word);
        return CLT_OK;
    }
    if (!strcmp(word, "->")) {
        if (*arrow) return malformed(text, "it has two arrows");
        *arrow = true;
        return CLT_OK;
    }
    if (!shape) {
        if (w->n_operands || w->n_attributes == MOST_ATTRIBUTES) return malformed(text, "an attribute is out of place");
        if (!read_attribute(word, !strcmp(w->op, "reduce"), &w->attributes[w->n_attributes++]))
            return malformed(text, "an attribute makes no sense");
        return CLT_OK;
    }
    if (w->n_operands == MOST_TENSORS) return malformed(text, "it has too many operands");
    return read_operand(word, &w->operands[w->n_operands++]) ? CLT_OK : malformed(text, "a shape makes no sense");
}

static clt_status take_apart(const char *text, words *w) {
    char word[64];
    bool arrow = false;
    int behind = 0; /* the arrow */
    *w = (words){.n_operands = 0};
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " \t");
        if (length >= sizeof word) return malformed(text, "a word is too long");
        memcpy(word, at, length);
        word[length] = 0;
        if (length) {
            int before = w->n_operands;
            CLT_TRY(add_word(w, text, word, &arrow));
            behind += arrow && w->n_operands > before;
        }
        at += length + (at[length] != 0);
    }
    if (!arrow || behind != 1) return malformed(text, "one shape is expected behind an arrow");
    w->n_operands--;
    return w->n_operands > 0 ? CLT_OK : malformed(text, "it has no operands");
}

static int pair(const words *w, char letter, int which, int standard) {
    for (int i = 0; i < w->n_attributes; i++)
        if (w->attributes[i].letter == letter) return (int)w->attributes[i].values[which];
    return standard;
}

/* ---- ops ---- */

typedef struct rule {
    const clt_op *op;
    int least_inputs, most_inputs;
    /* Fills the attributes in; NULL: there are none. */
    clt_status (*attributes)(const words *w, void *attributes);
    /* Looks at what the op's own rule does not; NULL: that rule looks at all. */
    clt_status (*check)(const words *w, const void *attributes);
} rule;

static clt_status misfit(const words *w) {
    return clt_fail(CLT_E_SHAPE, "the shapes of this %s do not fit one another", w->op);
}

static const clt_shape *shape_of(const words *w, int i) {
    return &w->operands[i].shape;
}

static clt_status matmul_attributes(const words *w, void *attributes) {
    *(clt_matmul_attributes *)attributes =
        (clt_matmul_options){.transpose_a = w->operands[0].transposed, .transpose_b = w->operands[1].transposed};
    return CLT_OK;
}

static clt_status conv2d_attributes(const words *w, void *attributes) {
    *(clt_conv2d_attributes *)attributes = (clt_conv2d_attributes){
        pair(w, 'k', 0, 1), pair(w, 'k', 1, 1), pair(w, 's', 0, 1), pair(w, 's', 1, 1), pair(w, 'p', 0, 0),
        pair(w, 'p', 1, 0), pair(w, 'd', 0, 1), pair(w, 'd', 1, 1), pair(w, 'g', 0, 1), *shape_of(w, w->n_operands)};
    return CLT_OK;
}

static clt_status pool2d_attributes(const words *w, void *attributes) {
    *(clt_pool2d_attributes *)attributes = (clt_pool2d_attributes){
        .kernel_h = pair(w, 'k', 0, 1), .kernel_w = pair(w, 'k', 1, 1), .stride_h = pair(w, 's', 0, 1),
        .stride_w = pair(w, 's', 1, 1), .padding_h = pair(w, 'p', 0, 0), .padding_w = pair(w, 'p', 1, 0),
        .result = *shape_of(w, w->n_operands)};
    return CLT_OK;
}

static clt_status reduce_attributes(const words *w, void *attributes) {
    int reduction = pair(w, 'r', 0, 0), axes = pair(w, 'a', 0, 0);
    if (reduction > CLT_AXES_MAX || axes >> shape_of(w, 0)->rank) return misfit(w);
    *(clt_reduce_attributes *)attributes = (clt_reduce_attributes){
        (clt_axes_reduction)reduction, (unsigned)axes, shape_of(w, 0)->rank == shape_of(w, 1)->rank};
    return CLT_OK;
}

/* As a run has them by default. */
static clt_status update_attributes(const words *w, void *attributes) {
    bool is_adam = w->op[0] == 'a';
    *(clt_update_attributes *)attributes =
        (clt_update_attributes){.clip = {1, INFINITY, INFINITY}, .momentum = is_adam ? 0.0f : 0.9f, .beta1 = 0.9f,
                                .beta2 = 0.999f, .eps = 1e-8f};
    if (!is_adam && w->n_operands == 4) ((clt_update_attributes *)attributes)->momentum = 0;
    return CLT_OK;
}

/* The forward op on these shapes gives that one. */
static clt_status check_forward(const clt_op *op, const void *attributes, const clt_shape *x, const clt_shape *weight,
                                const clt_shape *y) {
    clt_graph *graph;
    CLT_TRY(clt_graph_create(&graph));
    clt_tensor *inputs[2] = {clt_input(graph, "x", CLT_F32, *x), NULL};
    if (weight) inputs[1] = clt_input(graph, "w", CLT_F32, *weight);
    clt_tensor *node = clt_node(graph, op, attributes, inputs, weight ? 2 : 1);
    clt_status status = clt_graph_status(graph);
    if (status == CLT_OK && !clt_shape_equal(&node->shape, y))
        status = clt_fail(CLT_E_SHAPE, "the shapes of this gradient of %s do not fit one another", op->name);
    clt_graph_destroy(graph);
    return status;
}

static clt_status check_grad_input(const words *w, const void *attributes) {
    return check_forward(&clt_op_conv2d, attributes, shape_of(w, 2), shape_of(w, 0), shape_of(w, 1));
}

static clt_status check_grad_weight(const words *w, const void *attributes) {
    return check_forward(&clt_op_conv2d, attributes, shape_of(w, 0), shape_of(w, 2), shape_of(w, 1));
}

static clt_status check_pool_grad(const words *w, const void *attributes) {
    return check_forward(&clt_op_max_pool2d, attributes, shape_of(w, 0), NULL, shape_of(w, 1));
}

/* x, statistics [2, C], [weight [C], sums [2, C],] dy */
static clt_status check_norm(const words *w, const void *attributes) {
    const clt_shape *x = shape_of(w, 0);
    (void)attributes;
    if (x->rank < 2) return misfit(w);
    clt_shape pair_shape = CLT_SHAPE(2, x->dims[1]), row = CLT_SHAPE(x->dims[1]);
    bool fits = clt_shape_equal(shape_of(w, 1), &pair_shape) && clt_shape_equal(shape_of(w, w->n_operands - 1), x);
    if (w->n_operands == 5) fits &= clt_shape_equal(shape_of(w, 2), &row) && clt_shape_equal(shape_of(w, 3), &pair_shape);
    return fits ? CLT_OK : misfit(w);
}

/* params, grads, hyper, factor, states */
static clt_status check_update(const words *w, const void *attributes) {
    (void)attributes;
    const clt_shape hyper = CLT_SHAPE(CLT_HYPER_COUNT), *params = shape_of(w, 0);
    bool fits = params->rank == 1 && clt_shape_equal(shape_of(w, 2), &hyper) && shape_of(w, 3)->rank == 0;
    for (int i = 1; i < w->n_operands; i += i == 1 ? 3 : 1) fits &= clt_shape_equal(shape_of(w, i), params);
    return fits && (w->op[0] != 'a' || w->n_operands == 6) ? CLT_OK : misfit(w);
}

static const rule rules[] = {
    {&clt_op_matmul, 2, 2, matmul_attributes, NULL},
    {&clt_op_conv2d, 2, 2, conv2d_attributes, NULL},
    {&clt_op_conv2d_grad_input, 2, 2, conv2d_attributes, check_grad_input},
    {&clt_op_conv2d_grad_weight, 2, 2, conv2d_attributes, check_grad_weight},
    {&clt_op_max_pool2d, 1, 1, pool2d_attributes, NULL},
    {&clt_op_max_pool2d_grad, 2, 2, pool2d_attributes, check_pool_grad},
    {&clt_op_reduce, 1, 1, reduce_attributes, NULL},
    {&clt_op_batch_norm_grad_stats, 3, 3, NULL, check_norm},
    {&clt_op_batch_norm_grad_input, 5, 5, NULL, check_norm},
    {&clt_op_sgd, 4, 5, update_attributes, check_update},
    {&clt_op_adam, 6, 6, update_attributes, check_update},
};

static const rule *find_rule(const words *w) {
    for (size_t i = 0; i < CLT_COUNT_OF(rules); i++)
        if (!strcmp(rules[i].op->name, w->op)) return &rules[i];
    return NULL;
}

/* ---- the node ---- */

static clt_tensor *make_input(clt_graph *graph, const rule *r, const words *w, int i) {
    char name[16];
    const operand *o = &w->operands[i];
    snprintf(name, sizeof name, "x%d", i);
    /* What is written in place, and what is set, outlives a run. */
    bool state = r->op->writes && (r->op->writes >> i & 1 || i == 2);
    clt_tensor *x = state ? clt_state(graph, name, o->dtype, o->shape) : clt_input(graph, name, o->dtype, o->shape);
    if (clt_tensor_valid(x) && o->channels_last) x->layout = CLT_LAYOUT_CHANNELS_LAST;
    return x;
}

static clt_status make_node(clt_graph *graph, const rule *r, const words *w, clt_tensor **node) {
    clt_tensor *inputs[MOST_TENSORS];
    union {
        clt_matmul_attributes matmul;
        clt_conv2d_attributes conv2d;
        clt_pool2d_attributes pool2d;
        clt_reduce_attributes reduce;
        clt_update_attributes update;
    } attributes;
    memset(&attributes, 0, sizeof attributes);
    if (r->attributes) CLT_TRY(r->attributes(w, &attributes));
    if (r->check) CLT_TRY(r->check(w, &attributes));
    for (int i = 0; i < w->n_operands; i++) inputs[i] = make_input(graph, r, w, i);
    *node = clt_node(graph, r->op, r->attributes ? &attributes : NULL, inputs, w->n_operands);
    CLT_TRY(clt_graph_status(graph));
    const operand *result = &w->operands[w->n_operands];
    if (!clt_shape_equal(&(*node)->shape, &result->shape) || (*node)->dtype != result->dtype) return misfit(w);
    if (result->channels_last) (*node)->layout = CLT_LAYOUT_CHANNELS_LAST;
    return CLT_OK;
}

clt_status clt_problem_parse(const char *text, clt_graph *graph, clt_tensor **node, bool *marked) {
    words w;
    CLT_TRY(take_apart(text, &w));
    const rule *r = find_rule(&w);
    if (!r) return clt_fail(CLT_E_FORMAT, "problem \"%.120s\": no op that is measured by its text", text);
    if (w.n_operands < r->least_inputs || w.n_operands > r->most_inputs)
        return malformed(text, "it has another number of operands");
    *marked = false;
    for (int i = 0; i <= w.n_operands; i++) {
        *marked |= w.operands[i].channels_last;
        if (w.operands[i].transposed && (r->op != &clt_op_matmul || i > 1)) return malformed(text, "what is transposed?");
        if (w.operands[i].dtype != CLT_F32) return malformed(text, "only f32 is measured");
    }
    return make_node(graph, r, &w, node);
}
