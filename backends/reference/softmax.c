#include "backends/reference/reference.h"

/* What a row's data is. */
typedef struct form {
    const char *kernel;
    bool log;
} form;

static int64_t length_of(const clt_tensor *node) {
    return node->shape.rank ? node->shape.dims[((const clt_softmax_attributes *)node->attributes)->axis] : 1;
}

static bool supports(const clt_candidate *c) {
    return clt_reference_may_loop(c, 3 * length_of(c->node));
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const form *f = l->row->data;
    int64_t n = length_of(node), rows = clt_tensor_elements(node) / n, inner = 1;
    for (int d = ((const clt_softmax_attributes *)node->attributes)->axis + 1; d < node->shape.rank; d++)
        inner *= node->shape.dims[d];
    clt_launch_begin_typed(l, "reference/softmax.cl", node->dtype, f->kernel, rows, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_index(l, rows);
    clt_launch_index(l, n);
    clt_launch_index(l, inner);
    clt_launch_int(l, f->log);
}

#define ROW(op_suffix, kernel, is_log) \
    {CLT_REFERENCE(op_suffix), .data = &(const form){kernel, is_log}, .types = CLT_ANY_FLOAT, .large = true, .supports = supports, .lower = lower}
const clt_backend_row clt_reference_softmax_rows[] = {
    ROW(softmax, "ref_softmax", false),
    ROW(softmax_grad, "ref_softmax_grad", false),
    ROW(log_softmax, "ref_softmax", true),
    ROW(log_softmax_grad, "ref_softmax_grad", true),
    {0},
};
