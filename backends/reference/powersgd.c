#include "backends/reference/reference.h"

static const char path[] = "reference/powersgd.cl";

static void begin_flat(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    int64_t n = clt_tensor_elements(node);
    clt_launch_begin(l, path, kernel, n, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_int(l, n);
}

void clt_reference_feedback_add(clt_lowering *l, const clt_tensor *node) {
    begin_flat(l, node, "ref_feedback_add");
}

void clt_reference_feedback_subtract(clt_lowering *l, const clt_tensor *node) {
    const clt_feedback_attributes *at = node->attributes;
    begin_flat(l, node, "ref_feedback_subtract");
    clt_launch_float(l, at->scale);
}

void clt_reference_seed_factor(clt_lowering *l, const clt_tensor *node) {
    const clt_feedback_attributes *at = node->attributes;
    begin_flat(l, node, "ref_seed_factor");
    clt_launch_int(l, at->seed);
}

/* A launch a column, so that the loops stay short. */
void clt_reference_orthogonalize(clt_lowering *l, const clt_tensor *node) {
    int64_t rank = node->shape.dims[1];
    for (int64_t column = 0; column < rank; column++) {
        clt_launch_begin(l, path, "ref_orthogonalize", CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node);
        clt_launch_int(l, node->shape.dims[0]);
        clt_launch_int(l, rank);
        clt_launch_int(l, column);
    }
}
