/*
 * An op that the caller brought: its own source in a program of its own, its kernels with the
 * arguments that <cltrain/ops.h> promises.
 */
#include <string.h>

#include "backends/reference/reference.h"

/* (inputs …, node, count, scalars …); the inputs of a gradient are those of the op, y and dy. */
static void lower(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    const clt_user_attributes *at = node->attributes;
    const clt_user_definition *d = at->definition;
    int64_t count = clt_tensor_elements(node);
    if (strlen(kernel) >= sizeof l->launches->kernel) {
        clt_lower_fail(l, clt_fail(CLT_E_UNSUPPORTED, "the kernel name %s is longer than %zu characters", kernel,
                                   sizeof l->launches->kernel - 1));
        return;
    }
    clt_launch_begin_text(l, d->name, d->source, true, kernel, count, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    for (int i = 0; i < at->n_scalars; i++) clt_launch_float(l, at->scalars[i]);
}

static void lower_user(clt_lowering *l, const clt_tensor *node) {
    lower(l, node, ((const clt_user_attributes *)node->attributes)->definition->forward);
}

static void lower_user_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_user_attributes *at = node->attributes;
    lower(l, node, at->definition->backward[at->input]);
}

const clt_backend_row clt_reference_user_op_rows[] = {
    {CLT_REFERENCE(user), .lower = lower_user},
    {CLT_REFERENCE(user_grad), .lower = lower_user_grad},
    {0},
};
