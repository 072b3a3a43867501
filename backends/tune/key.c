/* Problems as text, and back: both by the ops' schemas. */
#include "backends/tune/tune.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

/* A text of fixed size; one that does not fit is not a key. */
typedef struct key_text {
    char *text;
    int length;
} key_text;

static void add(key_text *key, const char *format, ...) CLT_PRINTF(2, 3);
static void add(key_text *key, const char *format, ...) {
    va_list arguments;
    if (key->length >= CLT_TUNE_KEY) return;
    va_start(arguments, format);
    int n = vsnprintf(key->text + key->length, (size_t)(CLT_TUNE_KEY - key->length), format, arguments);
    va_end(arguments);
    key->length += n < 0 ? CLT_TUNE_KEY : n;
}

/* Whether an attribute is shown at operand `input`, as "^T". */
static bool is_mark_of(const clt_attribute *a, int input) {
    return a->key && a->key[0] == '^' && a->key[1] - '0' == input;
}

static bool is_word(const clt_attribute *a) {
    return a->key && a->key[0] != '^';
}

/* The second of two that are one word: "k3,5", or "k3" where they are the same. */
static bool continues(const clt_attribute *schema, const clt_attribute *a) {
    return a > schema && a->key && a[-1].key && !strcmp(a->key, a[-1].key);
}

static void add_number(key_text *key, const clt_attribute *schema, const clt_attribute *a, const void *attributes) {
    long long value = (long long)clt_attribute_number(a, attributes);
    if (!continues(schema, a)) add(key, " %s%lld", a->key, value);
    else if (value != (long long)clt_attribute_number(a - 1, attributes)) add(key, ",%lld", value);
}

static void add_attribute(key_text *key, const clt_tensor *node, const clt_attribute *a) {
    const void *value = clt_attribute_value(a, node->attributes);
    switch (a->type) {
    case CLT_ATTRIBUTE_BOOL:
        if (*(const bool *)value) add(key, " %s", a->key);
        break;
    case CLT_ATTRIBUTE_AXES:
        add(key, " %s%x", a->key, *(const unsigned *)value);
        break;
    case CLT_ATTRIBUTE_ORDER:
        add(key, " %s", a->key);
        for (int i = 0; i < node->shape.rank; i++) add(key, "%d", ((const int *)value)[i]);
        break;
    default:
        add_number(key, node->op->schema, a, node->attributes);
    }
}

/* " 64x3x8x8:nhwc", " 1024x3072^T", " 64:i32" */
static void add_shape(key_text *key, const clt_tensor *tensor, bool marked) {
    add(key, tensor->shape.rank ? " " : " scalar");
    for (int d = 0; d < tensor->shape.rank; d++)
        add(key, "%s%lld", d ? "x" : "", (long long)tensor->shape.dims[d]);
    if (marked) add(key, "^T");
    if (!clt_tensor_contiguous(tensor)) add(key, ":nhwc");
    if (tensor->dtype != CLT_F32) add(key, ":%s", clt_dtype_name(tensor->dtype));
}

static void add_input(key_text *key, const clt_tensor *node, int input) {
    bool marked = false;
    for (const clt_attribute *a = node->op->schema; a && a->name; a++)
        marked |= is_mark_of(a, input) && clt_attribute_number(a, node->attributes) != 0;
    add_shape(key, node->inputs[input], marked);
}

/* False if it is too long. */
static bool describe(const clt_tensor *node, const char *name, char key[CLT_TUNE_KEY]) {
    key_text text = {.text = key};
    add(&text, "%s", name);
    for (const clt_attribute *a = node->op->schema; a && a->name; a++)
        if (is_word(a)) add_attribute(&text, node, a);
    for (int i = 0; i < clt_own_inputs(node); i++) add_input(&text, node, i);
    add(&text, " ->");
    clt_tensor result = *node;
    if (node->epilogue) result.dtype = node->inputs[0]->dtype; /* its own, which the epilogue begins with */
    if (node->unread) add(&text, " -");
    else add_shape(&text, &result, false);
    for (int k = 0; k < node->op->more_outputs; k++) add_shape(&text, node->outputs[k], false);
    return text.length < CLT_TUNE_KEY;
}

bool clt_tune_key(const clt_tensor *node, char key[CLT_TUNE_KEY]) {
    return node->op->tuned && describe(node, node->op->name, key);
}

void clt_tune_words(const clt_tensor *node, char text[CLT_TUNE_KEY]) {
    describe(node, node->op->tuned ? node->op->name : clt_node_name(node), text);
}

bool clt_tune_key_valid(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~') return false;
    return length > 0 && length < CLT_TUNE_KEY;
}

/* ---- reading: the text, taken apart ---- */

enum { MOST_TENSORS = 8, MOST_WORDS = 8 };

typedef struct operand {
    clt_shape shape;
    clt_dtype dtype;
    bool marked, channels_last, unread;
} operand;

typedef struct words {
    const char *text;
    char op[64];
    char attributes[MOST_WORDS][24];
    int n_attributes;
    operand operands[MOST_TENSORS];
    int n_operands;
    operand results[1 + CLT_MORE_OUTPUTS];
    int n_results;
} words;

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

static bool read_dtype(const char *word, clt_dtype *dtype) {
    static const clt_dtype named[] = {CLT_I32, CLT_U8, CLT_F16, CLT_BF16};
    for (size_t i = 0; i < CLT_COUNT_OF(named); i++)
        if (!strcmp(word, clt_dtype_name(named[i]))) return *dtype = named[i], true;
    return false;
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
    if (strncmp(word, "^T", 2) == 0 && o->shape.rank >= 2) o->marked = true, word += 2;
    if (strncmp(word, ":nhwc", 5) == 0 && o->shape.rank == 4) o->channels_last = true, word += 5;
    if (*word == ':') return read_dtype(word + 1, &o->dtype);
    return *word == 0;
}

static clt_status add_result(words *w, const char *word) {
    if (w->n_results == CLT_COUNT_OF(w->results)) return malformed(w->text, "it has too many results");
    operand *result = &w->results[w->n_results++];
    *result = (operand){.unread = true};
    if (!strcmp(word, "-")) return w->n_results == 1 ? CLT_OK : malformed(w->text, "only the first result may be \"-\"");
    return read_operand(word, result) && !result->marked ? CLT_OK : malformed(w->text, "invalid shape");
}

static clt_status add_word(words *w, const char *word, bool *arrow) {
    bool first = w->op[0] == 0, shape = isdigit((unsigned char)*word) || !strncmp(word, "scalar", 6);
    if (first) {
        if (shape) return malformed(w->text, "it does not begin with an op");
        snprintf(w->op, sizeof w->op, "%s", word);
        return CLT_OK;
    }
    if (!strcmp(word, "->")) {
        if (*arrow) return malformed(w->text, "it has two arrows");
        *arrow = true;
        return CLT_OK;
    }
    if (*arrow) return add_result(w, word);
    if (!shape) {
        if (w->n_operands || w->n_attributes == MOST_WORDS || strlen(word) >= sizeof w->attributes[0])
            return malformed(w->text, "an attribute is out of place");
        memcpy(w->attributes[w->n_attributes++], word, strlen(word) + 1);
        return CLT_OK;
    }
    if (w->n_operands == MOST_TENSORS) return malformed(w->text, "it has too many operands");
    return read_operand(word, &w->operands[w->n_operands++]) ? CLT_OK : malformed(w->text, "invalid shape");
}

static clt_status take_apart(const char *text, words *w) {
    char word[64];
    bool arrow = false;
    *w = (words){.text = text};
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " \t");
        if (length >= sizeof word) return malformed(text, "a word is too long");
        memcpy(word, at, length);
        word[length] = 0;
        if (length) CLT_TRY(add_word(w, word, &arrow));
        at += length + (at[length] != 0);
    }
    if (!arrow || !w->n_results) return malformed(text, "a shape is expected after an arrow");
    return w->n_operands > 0 ? CLT_OK : malformed(text, "it has no operands");
}

/* ---- reading: attributes ---- */

static bool read_order(const char *digits, int rank, int *order) {
    for (int i = 0; i < rank; i++, digits++) {
        if (!isdigit((unsigned char)*digits)) return false;
        order[i] = *digits - '0';
    }
    return *digits == 0;
}

/* A word with the attribute's key in front of it, and with `n` attributes of that key in a row. */
static bool read_attribute(const clt_attribute *a, int n, const char *value, const clt_shape *result, void *attributes) {
    int64_t numbers[2];
    char *end;
    switch (a->type) {
    case CLT_ATTRIBUTE_BOOL:
        clt_attribute_set_number(a, attributes, 1);
        return *value == 0;
    case CLT_ATTRIBUTE_AXES:
        clt_attribute_set_number(a, attributes, (double)strtoul(value, &end, 16));
        return isxdigit((unsigned char)*value) && *end == 0 && end - value < 6;
    case CLT_ATTRIBUTE_ORDER:
        return read_order(value, result->rank, (int *)(void *)((char *)attributes + a->offset));
    default:
        if (!read_number(&value, &numbers[0])) return false;
        numbers[1] = numbers[0];
        if (n == 2 && *value == ',' && (value++, !read_number(&value, &numbers[1]))) return false;
        for (int i = 0; i < n; i++) clt_attribute_set_number(a + i, attributes, (double)numbers[i]);
        return *value == 0;
    }
}

static clt_status read_word(const words *w, const clt_op *op, const char *word, void *attributes) {
    for (const clt_attribute *a = op->schema; a && a->name; a++) {
        size_t length = is_word(a) ? strlen(a->key) : 0;
        if (!length || strncmp(word, a->key, length) || continues(op->schema, a)) continue;
        int n = a[1].name && continues(op->schema, a + 1) ? 2 : 1;
        if (read_attribute(a, n, word + length, &w->results[0].shape, attributes)) return CLT_OK;
    }
    return malformed(w->text, "invalid attribute");
}

static clt_status read_attributes(const words *w, const clt_op *op, void *attributes) {
    clt_attributes_init(op->schema, attributes, op->attributes_bytes);
    for (const clt_attribute *a = op->schema; a && a->name; a++) {
        if (a->type == CLT_ATTRIBUTE_RESULT)
            memcpy((char *)attributes + a->offset, &w->results[0].shape, sizeof(clt_shape));
        if (a->key && !strcmp(a->key, "^="))
            clt_attribute_set_number(a, attributes, w->operands[0].shape.rank == w->results[0].shape.rank);
        for (int i = 0; i < w->n_operands; i++)
            if (is_mark_of(a, i)) clt_attribute_set_number(a, attributes, w->operands[i].marked);
    }
    for (int i = 0; i < w->n_attributes; i++) CLT_TRY(read_word(w, op, w->attributes[i], attributes));
    return CLT_OK;
}

/* ---- reading: the node ---- */

/* Whether a text tells all that the op needs to know. */
static bool is_told(const clt_op *op) {
    bool told = op->least_inputs > 0;
    for (const clt_attribute *a = op->schema; a && a->name; a++)
        told &= a->type != CLT_ATTRIBUTE_TEXT && a->type != CLT_ATTRIBUTE_OPAQUE;
    return told;
}

static const clt_op *find_op(const char *name) {
    for (int i = 0; clt_ops[i]; i++)
        if (!strcmp(clt_ops[i]->name, name)) return is_told(clt_ops[i]) ? clt_ops[i] : NULL;
    return NULL;
}

static bool takes_mark(const clt_op *op, int input) {
    for (const clt_attribute *a = op->schema; a && a->name; a++)
        if (is_mark_of(a, input)) return true;
    return false;
}

static clt_tensor *make_input(clt_graph *graph, const clt_op *op, const words *w, int i) {
    char name[16];
    const operand *o = &w->operands[i];
    snprintf(name, sizeof name, "x%d", i);
    /* What is written in place outlives a run. */
    clt_tensor *x = op->writes >> i & 1 ? clt_state(graph, name, o->dtype, o->shape) : clt_input(graph, name, o->dtype, o->shape);
    if (clt_tensor_valid(x) && o->channels_last) x->layout = CLT_LAYOUT_CHANNELS_LAST;
    return x;
}

static clt_status check_result(const words *w, const clt_tensor *made, const operand *told) {
    bool fits = told->unread || (clt_shape_equal(&made->shape, &told->shape) && made->dtype == told->dtype);
    return fits ? CLT_OK : clt_fail(CLT_E_SHAPE, "the shapes of this %s do not fit one another", w->op);
}

static clt_status make_node(clt_graph *graph, const clt_op *op, const words *w, const void *attributes, clt_tensor **node) {
    clt_tensor *inputs[MOST_TENSORS];
    for (int i = 0; i < w->n_operands; i++) inputs[i] = make_input(graph, op, w, i);
    *node = clt_node(graph, op, op->attributes_bytes ? attributes : NULL, inputs, w->n_operands);
    CLT_TRY(clt_graph_status(graph));
    CLT_TRY(check_result(w, *node, &w->results[0]));
    for (int k = 0; k < op->more_outputs; k++) CLT_TRY(check_result(w, (*node)->outputs[k], &w->results[1 + k]));
    (*node)->unread = w->results[0].unread;
    if (w->results[0].channels_last) (*node)->layout = CLT_LAYOUT_CHANNELS_LAST;
    return CLT_OK;
}

/* What has a form is computed by that, apart from the further results (exec/passes/split.c). */
static clt_status check_results(const words *w, const clt_op *op) {
    bool apart = op->more_outputs && op->form;
    if (w->n_results != 1 + op->more_outputs) return malformed(w->text, "it has another number of results");
    if (w->results[0].unread != apart)
        return malformed(w->text, apart ? "the first result is computed apart: it must be \"-\"" : "the result must be a shape");
    return CLT_OK;
}

clt_status clt_problem_parse(const char *text, clt_graph *graph, clt_tensor **node, bool *marked) {
    words w;
    CLT_TRY(take_apart(text, &w));
    const clt_op *op = find_op(w.op);
    if (!op) return clt_fail(CLT_E_FORMAT, "problem \"%.120s\": no op that is measured by its text", text);
    if (w.n_operands < op->least_inputs || w.n_operands > CLT_MAX(op->least_inputs, op->most_inputs))
        return malformed(text, "it has another number of operands");
    CLT_TRY(check_results(&w, op));
    *marked = w.results[0].channels_last;
    for (int i = 0; i < w.n_operands; i++) {
        *marked |= w.operands[i].channels_last;
        if (w.operands[i].marked && !takes_mark(op, i)) return malformed(text, "what is transposed?");
    }
    void *attributes = clt_alloc(CLT_MAX(op->attributes_bytes, 1));
    if (!attributes) return clt_fail_memory(op->attributes_bytes);
    clt_status status = read_attributes(&w, op, attributes);
    if (status == CLT_OK) status = make_node(graph, op, &w, attributes, node);
    clt_free(attributes);
    return status;
}
