#include "backends/reference/reference.h"

static bool supports(const clt_candidate *c) {
    return clt_reference_may_loop(c, 3 * c->node->inputs[0]->shape.dims[1]);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    const int64_t *x = node->inputs[0]->shape.dims;
    clt_launch_begin_typed(l, "reference/cross_entropy.cl", node->inputs[0]->dtype, l->row->data, x[0], CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, x[0]);
    clt_launch_int(l, x[1]);
}

/* The data is the kernel's name. */
const clt_backend_row clt_reference_cross_entropy_rows[] = {
    {CLT_REFERENCE(cross_entropy), .types = CLT_ANY_FLOAT, .data = "ref_cross_entropy", .supports = supports, .lower = lower},
    {CLT_REFERENCE(cross_entropy_grad), .types = CLT_ANY_FLOAT, .data = "ref_cross_entropy_grad", .supports = supports, .lower = lower},
    {0},
};
