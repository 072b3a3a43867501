#include <stdio.h>

#include "backends/reference/reference.h"

enum { LONG = 256 }; /* rows of this many elements are given to a work-group */

/* Kernels KERNEL_item and KERNEL_group of (inputs …, node, rows, n, inner, log_form). */
static void lower(clt_lowering *l, const clt_tensor *node, const char *kernel, bool log_form) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    int64_t n = node->shape.rank ? node->shape.dims[axis] : 1, inner = 1;
    for (int d = axis + 1; d < node->shape.rank; d++) inner *= node->shape.dims[d];
    int64_t rows = clt_tensor_elements(node) / n;
    bool group = n >= LONG && inner == 1;
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kernel, group ? "group" : "item");
    clt_launch_begin(l, "reference/softmax.cl", name, group ? rows * CLT_REFERENCE_GROUP : rows, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, rows);
    clt_launch_int(l, n);
    clt_launch_int(l, inner);
    clt_launch_int(l, log_form);
}

void clt_reference_softmax(clt_lowering *l, const clt_tensor *node) { lower(l, node, "ref_softmax", false); }
void clt_reference_softmax_grad(clt_lowering *l, const clt_tensor *node) { lower(l, node, "ref_softmax_grad", false); }
void clt_reference_log_softmax(clt_lowering *l, const clt_tensor *node) { lower(l, node, "ref_softmax", true); }
void clt_reference_log_softmax_grad(clt_lowering *l, const clt_tensor *node) {
    lower(l, node, "ref_softmax_grad", true);
}
