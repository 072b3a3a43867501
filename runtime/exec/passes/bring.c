/*
 * Parameters in the host's memory are brought to the device in front of their first reader. In a training step what backward reads is brought once more,
 * in front of its first reader there (recompute.c), so that none lies on the device for longer than it is used. It comes behind the passes that decide what
 * is computed, so that bits are those of parameters on the device.
 */
#include "runtime/exec/passes/passes.h"
#include "runtime/ops/ops.h"

static const clt_tensor *first_reader(const clt_pass *pass, const clt_tensor *variable) {
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *node = pass->graph->nodes[i];
        for (int k = 0; pass->live[i] && k < node->n_inputs; k++)
            if (node->inputs[k] == variable) return node;
    }
    return NULL;
}

clt_status clt_pass_bring(clt_pass *pass) {
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *variable = pass->graph->nodes[i];
        const clt_tensor *reader = variable->kind == CLT_NODE_VARIABLE && variable->in_host ? first_reader(pass, variable) : NULL;
        if (!reader) continue;
        clt_tensor *brought = clt_from_host(variable, 0, variable->shape);
        CLT_TRY(clt_pass_place(pass, brought, reader));
        clt_pass_replace(pass, variable, brought);
    }
    return CLT_OK;
}
