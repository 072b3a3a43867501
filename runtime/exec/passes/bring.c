/*
 * Parameters in the host's memory are brought to the device in front of their first reader. In a training step what backward reads is brought once more,
 * in front of its first reader there (recompute.c), so that none lies on the device for longer than it is used. It comes behind the passes that decide what
 * is computed, so that bits are those of parameters on the device. Where transfers have a queue of their own each is brought in front of the first reader of the
 * one before it, so that it comes while that one computes.
 */
#include "runtime/exec/carry.h"
#include "runtime/exec/passes/passes.h"
#include "runtime/ops/ops.h"

static clt_status bring(clt_pass *pass, clt_tensor *variable, const clt_tensor *before) {
    clt_tensor *brought = clt_from_host(variable, 0, variable->shape);
    CLT_TRY(clt_pass_place(pass, brought, before));
    clt_pass_replace(pass, variable, brought);
    return CLT_OK;
}

/* In the order of their first readers. */
clt_status clt_pass_bring(clt_pass *pass) {
    const clt_tensor *before = NULL; /* the first reader of the last one */
    bool ahead = clt_carries_are_apart(pass->device);
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *node = pass->graph->nodes[i];
        for (int k = 0; pass->live[i] && k < node->n_inputs; k++) {
            clt_tensor *input = node->inputs[k];
            if (input->kind != CLT_NODE_VARIABLE || !input->in_host) continue;
            CLT_TRY(bring(pass, input, ahead && before && before->segment == node->segment ? before : node));
            before = node;
        }
    }
    return CLT_OK;
}
