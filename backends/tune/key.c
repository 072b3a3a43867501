/* Problems as text. */
#include "backends/tune/tune.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text of fixed size; one that does not fit is no key. */
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

/* "s1", or "s1,2" where height and width differ. */
static void add_pair(key_text *key, char letter, int h, int w) {
    add(key, " %c%d", letter, h);
    if (w != h) add(key, ",%d", w);
}

/* ---- attributes: what matters to speed ---- */

static void add_conv2d(key_text *key, const clt_tensor *node) {
    const clt_conv2d_attributes *at = node->attributes;
    add_pair(key, 'k', at->kernel_h, at->kernel_w);
    add_pair(key, 's', at->stride_h, at->stride_w);
    add_pair(key, 'p', at->padding_h, at->padding_w);
    add_pair(key, 'd', at->dilation_h, at->dilation_w);
    add(key, " g%d", at->groups);
}

static void add_pool2d(key_text *key, const clt_tensor *node) {
    const clt_pool2d_attributes *at = node->attributes;
    add_pair(key, 'k', at->kernel_h, at->kernel_w);
    add_pair(key, 's', at->stride_h, at->stride_w);
    add_pair(key, 'p', at->padding_h, at->padding_w);
    if (at->exclude_padding) add(key, " inside");
}

static void add_norm(key_text *key, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    if (at->dims) add(key, " n%d", at->dims);
}

static void add_reduce(key_text *key, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    add(key, " r%d a%x", (int)at->reduction, at->axes);
}

static void add_softmax(key_text *key, const clt_tensor *node) {
    const clt_softmax_attributes *at = node->attributes;
    add(key, " a%d", clt_shape_axis(&node->shape, at->axis));
}

static void add_permute(key_text *key, const clt_tensor *node) {
    const clt_permute_attributes *at = node->attributes;
    add(key, " o");
    for (int i = 0; i < node->shape.rank; i++) add(key, "%d", at->order[i]);
}

static void add_nothing(key_text *key, const clt_tensor *node) {
    (void)key, (void)node;
}

typedef struct words {
    const clt_op *op;
    void (*add)(key_text *key, const clt_tensor *node);
} words;

static const words all_words[] = {
    {&clt_op_matmul, add_nothing}, /* transposition is shown at the operands */
    {&clt_op_conv2d, add_conv2d},
    {&clt_op_conv2d_grad_input, add_conv2d},
    {&clt_op_conv2d_grad_weight, add_conv2d},
    {&clt_op_max_pool2d, add_pool2d},
    {&clt_op_max_pool2d_grad, add_pool2d},
    {&clt_op_avg_pool2d, add_pool2d},
    {&clt_op_avg_pool2d_grad, add_pool2d},
    {&clt_op_batch_norm, add_nothing},
    {&clt_op_batch_norm_grad_stats, add_nothing},
    {&clt_op_batch_norm_grad_input, add_nothing},
    {&clt_op_layer_norm_stats, add_norm},
    {&clt_op_layer_norm, add_norm},
    {&clt_op_layer_norm_grad_input, add_norm},
    {&clt_op_layer_norm_grad_weight, add_norm},
    {&clt_op_reduce, add_reduce},
    {&clt_op_permute, add_permute},
    {&clt_op_softmax, add_softmax},
    {&clt_op_softmax_grad, add_softmax},
    {&clt_op_log_softmax, add_softmax},
    {&clt_op_log_softmax_grad, add_softmax},
    {&clt_op_cross_entropy, add_nothing},
    {&clt_op_cross_entropy_grad, add_nothing},
    {&clt_op_embedding, add_nothing},
    {&clt_op_embedding_grad, add_nothing},
};

/* ---- shapes ---- */

static bool transposed(const clt_tensor *node, int input) {
    if (node->op != &clt_op_matmul) return false;
    const clt_matmul_attributes *at = node->attributes;
    return input == 0 ? at->transpose_a : at->transpose_b;
}

/* " 64x3x8x8:nhwc", " 1024x3072^T", " 64:i32" */
static void add_shape(key_text *key, const clt_tensor *tensor, bool transpose) {
    add(key, tensor->shape.rank ? " " : " scalar");
    for (int d = 0; d < tensor->shape.rank; d++)
        add(key, "%s%lld", d ? "x" : "", (long long)tensor->shape.dims[d]);
    if (transpose) add(key, "^T");
    if (!clt_tensor_contiguous(tensor)) add(key, ":nhwc");
    if (tensor->dtype != CLT_F32) add(key, ":%s", clt_dtype_name(tensor->dtype));
}

static const words *find_words(const clt_op *op) {
    for (size_t i = 0; i < CLT_COUNT_OF(all_words); i++)
        if (all_words[i].op == op) return &all_words[i];
    return NULL;
}

/* False if it is too long. */
static bool describe(const clt_tensor *node, const words *found, char key[CLT_TUNE_KEY]) {
    key_text text = {.text = key};
    add(&text, "%s", found ? node->op->name : clt_node_name(node));
    if (found) found->add(&text, node);
    for (int i = 0; i < clt_own_inputs(node); i++) add_shape(&text, node->inputs[i], transposed(node, i));
    add(&text, " ->");
    add_shape(&text, node, false);
    return text.length < CLT_TUNE_KEY;
}

bool clt_tune_key(const clt_tensor *node, char key[CLT_TUNE_KEY]) {
    const words *found = find_words(node->op);
    return found && describe(node, found, key);
}

void clt_tune_words(const clt_tensor *node, char text[CLT_TUNE_KEY]) {
    describe(node, find_words(node->op), text);
}

bool clt_tune_key_valid(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~') return false;
    return length > 0 && length < CLT_TUNE_KEY;
}

/* ---- distance ---- */

static bool is_digit(char c) {
    return isdigit((unsigned char)c) != 0;
}

/* Goes over both texts at once: words that begin with a digit are shapes, whose numbers may differ. */
double clt_tune_distance(const char *a, const char *b) {
    double sum = 0;
    bool shape = false, begins = true;
    while (*a && *b) {
        if (begins) shape = is_digit(*a) && is_digit(*b);
        if (shape && is_digit(*a) && is_digit(*b)) {
            char *end_a, *end_b;
            long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
            if (x < 1 || y < 1) return INFINITY;
            double ratio = log2((double)x / (double)y);
            sum += ratio * ratio;
            a = end_a, b = end_b;
            begins = false;
            continue;
        }
        if (*a != *b) return INFINITY;
        if (*a == '^' || *a == ':') shape = false; /* digits behind are no dimensions */
        begins = *a == ' ';
        a++, b++;
    }
    return *a == *b ? sqrt(sum) : INFINITY;
}

bool clt_tune_ratio(const char *a, const char *b, double *ratio, uint64_t *which) {
    bool shape = false, begins = true;
    uint64_t bit = 1;
    *ratio = 1;
    *which = 0;
    while (*a && *b) {
        if (begins) shape = is_digit(*a) && is_digit(*b);
        if (shape && is_digit(*a) && is_digit(*b)) {
            char *end_a, *end_b;
            long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
            double here = x > 0 ? (double)y / (double)x : 0;
            if (x < 1 || y < 1 || (x != y && *ratio != 1 && fabs(here / *ratio - 1) > 1e-9)) return false;
            if (x != y) *ratio = here, *which |= bit;
            bit = bit << 1 | bit >> 63;
            a = end_a, b = end_b;
            begins = false;
            continue;
        }
        if (*a != *b) return false;
        if (*a == '^' || *a == ':') shape = false; /* digits behind are no dimensions */
        begins = *a == ' ';
        a++, b++;
    }
    return *a == *b;
}
