/*
 * Where the first result of an op is told by a form over its inputs and its further results, it becomes a node of its own behind the
 * op, which computes the further results alone: so that it can be fused with what reads it.
 */
#include "runtime/exec/passes/passes.h"

/* The form's node, on those inputs that it reads. */
static clt_status become_form(clt_tensor *y, clt_tensor *const *operands, const clt_form *form) {
    clt_fused fused = {.n_stages = 1, .shape = y->shape, .dtype = y->dtype};
    clt_fused_stage *stage = &fused.stages[0];
    clt_tensor *inputs[CLT_FORM_OPERANDS];
    *stage = (clt_fused_stage){*form, y->dtype};
    for (int k = 0; k < form->n_operands; k++) {
        clt_tensor *operand = operands[form->operands[k].input];
        int i = 0;
        while (i < fused.n_inputs && inputs[i] != operand) i++;
        if (i == fused.n_inputs) inputs[fused.n_inputs++] = operand;
        stage->form.operands[k].input = i;
    }
    return clt_node_become(y, &clt_op_fused, &fused, inputs, fused.n_inputs);
}

static clt_status split(clt_pass *pass, clt_tensor *y) {
    clt_tensor *operands[CLT_FORM_OPERANDS + CLT_MORE_OUTPUTS];
    clt_form form;
    int n = y->n_inputs;
    if (!y->op->form(y, pass->training, &form)) return CLT_OK;
    for (int k = 0; k < n; k++) operands[k] = y->inputs[k];
    clt_tensor *maker = clt_node(pass->graph, y->op, y->attributes, y->inputs, n);
    CLT_TRY(clt_pass_place(pass, maker, y));
    maker->unread = true;
    for (int k = 0; k < y->op->more_outputs; k++) {
        clt_tensor *result = operands[n + k] = y->outputs[k], *own = maker->outputs[k]; /* which nobody reads */
        maker->outputs[k] = result;
        result->inputs[0] = maker;
        own->inputs[0] = y;
        y->outputs[k] = NULL;
    }
    return become_form(y, operands, &form);
}

clt_status clt_pass_split(clt_pass *pass) {
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        if (pass->live[i] && node->kind == CLT_NODE_OP && node->op->more_outputs && node->op->form) CLT_TRY(split(pass, node));
    }
    return CLT_OK;
}
