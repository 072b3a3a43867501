/* What goes along contiguous rows: softmax, cross-entropy and layer normalization with their gradients. */
#include "backends/native/cpu/cpu.h"

static const char path[] = "native/cpu/along.cl";

/* [rows, n], of which a work-item takes `each`: enough to be worth its start, by the shape alone. */
typedef struct rows {
    int64_t count, n, each;
} rows;

static rows rows_of(const clt_tensor *x, int64_t n) {
    enum { ELEMENTS = 4096 };
    return (rows){clt_tensor_elements(x) / n, n, clt_cpu_divide_up(ELEMENTS, n)};
}

/* Rows of fewer than a vector are for the reference, which takes a work-item each, and so are those whose passes, at
 * most 3, are too long a loop (cl/prelude.cl). */
static bool rows_fit(const clt_device *device, int64_t n) {
    enum { ROUNDS = 32768, PASSES = 3 };
    int width = clt_device_vector_width(device);
    return clt_cpu_fits(device) && n >= width && clt_cpu_divide_up(n, width) * PASSES <= ROUNDS;
}

static void begin_rows(clt_lowering *l, const char *kernel, const clt_tensor *const *inputs, int n, const clt_tensor *result, rows r) {
    clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = inputs[0]->dtype}, path, kernel, clt_cpu_divide_up(r.count, r.each));
    for (int i = 0; i < n; i++) clt_launch_tensor(l, inputs[i]);
    clt_launch_tensor(l, result);
    clt_launch_ints(l, (int64_t[]){r.count, r.n}, 2, 2);
    clt_launch_int(l, r.each);
}

/* A kernel with all of the node's inputs, its result, and the rows. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *node, rows r) {
    begin_rows(l, kernel, (const clt_tensor *const *)node->inputs, node->n_inputs, node, r);
}

/* ---- softmax ---- */

/* Rows are contiguous: what is behind the axis is one element. */
static bool along_last(const clt_tensor *node) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    int64_t inner = 1;
    for (int d = axis + 1; d < node->shape.rank; d++) inner *= node->shape.dims[d];
    return node->shape.rank > 0 && inner == 1;
}

static int64_t softmax_length(const clt_tensor *node) {
    return node->shape.dims[((const clt_softmax_attributes *)node->attributes)->axis];
}

static bool supports_softmax(const clt_candidate *c) {
    return along_last(c->node) && rows_fit(c->device, softmax_length(c->node));
}

static void lower_softmax(clt_lowering *l, const clt_tensor *node) {
    bool grad = node->n_inputs == 2;
    begin(l, grad ? "cpu_softmax_grad" : "cpu_softmax", node, rows_of(node, softmax_length(node)));
    clt_launch_int(l, node->op == &clt_op_log_softmax || node->op == &clt_op_log_softmax_grad);
}

/* ---- cross-entropy ---- */

static bool supports_cross_entropy(const clt_candidate *c) {
    return rows_fit(c->device, c->node->inputs[0]->shape.dims[1]);
}

static void lower_cross_entropy(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    begin(l, node->op == &clt_op_cross_entropy ? "cpu_cross_entropy" : "cpu_cross_entropy_grad", node,
          rows_of(x, x->shape.dims[1]));
}

/* ---- layer normalization; the gradients of weight and bias are sums down columns ---- */

static bool supports_layer_norm(const clt_candidate *c) {
    return rows_fit(c->device, clt_layer_norm_length(c->node));
}

/* The statistics; y is made of them by its form. */
static void lower_layer_norm(clt_lowering *l, const clt_tensor *node) {
    const clt_layer_norm_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    begin_rows(l, "cpu_layer_norm_stats", &x, 1, node->outputs[0], rows_of(x, clt_layer_norm_length(node)));
    clt_launch_float(l, at->eps);
}

static bool supports_layer_norm_grad_input(const clt_candidate *c) {
    return rows_fit(c->device, clt_layer_norm_length(c->node));
}

static void lower_layer_norm_grad_input(clt_lowering *l, const clt_tensor *node) {
    begin(l, "cpu_layer_norm_grad_input", node, rows_of(node, clt_layer_norm_length(node)));
}

const clt_backend_row clt_cpu_along_rows[] = {
    {CLT_NATIVE(softmax), .types = CLT_ANY_FLOAT, .supports = supports_softmax, .lower = lower_softmax},
    {CLT_NATIVE(softmax_grad), .types = CLT_ANY_FLOAT, .supports = supports_softmax, .lower = lower_softmax},
    {CLT_NATIVE(log_softmax), .types = CLT_ANY_FLOAT, .supports = supports_softmax, .lower = lower_softmax},
    {CLT_NATIVE(log_softmax_grad), .types = CLT_ANY_FLOAT, .supports = supports_softmax, .lower = lower_softmax},
    {CLT_NATIVE(cross_entropy), .types = CLT_ANY_FLOAT, .supports = supports_cross_entropy, .lower = lower_cross_entropy},
    {CLT_NATIVE(cross_entropy_grad), .types = CLT_ANY_FLOAT, .supports = supports_cross_entropy, .lower = lower_cross_entropy},
    {CLT_NATIVE(layer_norm), .types = CLT_ANY_FLOAT, .supports = supports_layer_norm, .lower = lower_layer_norm},
    {CLT_NATIVE(layer_norm_grad_input), .types = CLT_ANY_FLOAT, .supports = supports_layer_norm_grad_input, .lower = lower_layer_norm_grad_input},
    {0},
};
