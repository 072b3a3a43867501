#include <stdio.h>

#include "backends/reference/reference.h"

enum { MANY_CLASSES = 256 }; /* rows this long are given to a work-group */

/* Kernels KERNEL_item and KERNEL_group of (inputs …, node, rows, classes). */
static void lower(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    int64_t rows = node->inputs[0]->shape.dims[0], classes = node->inputs[0]->shape.dims[1];
    bool group = classes >= MANY_CLASSES;
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kernel, group ? "group" : "item");
    clt_launch_begin(l, "reference/cross_entropy.cl", name, group ? rows * CLT_REFERENCE_GROUP : rows,
                     CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, rows);
    clt_launch_int(l, classes);
}

void clt_reference_cross_entropy(clt_lowering *l, const clt_tensor *node) { lower(l, node, "ref_cross_entropy"); }
void clt_reference_cross_entropy_grad(clt_lowering *l, const clt_tensor *node) {
    lower(l, node, "ref_cross_entropy_grad");
}
