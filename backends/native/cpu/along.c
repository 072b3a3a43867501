/* What goes along contiguous rows: softmax, cross-entropy and layer normalization with their gradients. */
#include "backends/native/along.h"
#include "backends/native/cpu/cpu.h"

static const char path[] = "native/cpu/along.cl";

/* Rows of a work-item: enough to be worth its start, by the shape alone. */
static int64_t each_of(const clt_rows *rows) {
    enum { ELEMENTS = 4096 };
    return clt_cpu_divide_up(ELEMENTS, rows->n);
}

/* Rows of fewer than a vector are for the reference, which takes a work-item each, and so are those whose passes, at
 * most 3, are too long a loop (cl/prelude.cl). */
static bool supports(const clt_candidate *c) {
    enum { ROUNDS = 32768, PASSES = 3 };
    int width = clt_device_vector_width(c->device);
    clt_rows rows;
    return clt_cpu_fits(c->device) && clt_rows_of(c->node, &rows) && rows.n >= width && clt_cpu_divide_up(rows.n, width) * PASSES <= ROUNDS;
}

static void begin(clt_lowering *l, const clt_tensor *node, int n_inputs, const clt_tensor *result) {
    clt_rows rows;
    clt_rows_of(node, &rows);
    int64_t each = each_of(&rows);
    clt_cpu_begin_as(l, &(clt_cpu_variant){.storage = node->inputs[0]->dtype}, path, l->row->data, clt_cpu_divide_up(rows.count, each));
    for (int i = 0; i < n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, result);
    clt_launch_ints(l, (int64_t[]){rows.count, rows.n}, 2, 2);
    clt_launch_int(l, each);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_lower_along(l, node, begin);
}

/* The data is the kernel's name. */
#define ALONG_ROW(op_suffix, kernel) \
    {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .data = kernel, .supports = supports, .lower = lower}
const clt_backend_row clt_cpu_along_rows[] = {
    ALONG_ROW(softmax, "cpu_softmax"),
    ALONG_ROW(softmax_grad, "cpu_softmax_grad"),
    ALONG_ROW(log_softmax, "cpu_softmax"),
    ALONG_ROW(log_softmax_grad, "cpu_softmax_grad"),
    ALONG_ROW(cross_entropy, "cpu_cross_entropy"),
    ALONG_ROW(cross_entropy_grad, "cpu_cross_entropy_grad"),
    ALONG_ROW(layer_norm, "cpu_layer_norm_stats"),
    ALONG_ROW(layer_norm_grad_input, "cpu_layer_norm_grad_input"),
    {0},
};
