/*
 * Several pointwise forms on the same element, one after the other, as one node: made by the passes of
 * runtime/exec from chains of nodes, so that what lies between them never goes through memory.
 */
#include "runtime/ops/ops.h"

void clt_form_read(clt_form *form, char letter, int input, clt_read read, int64_t offset) {
    form->operands[form->n_operands++] =
        (clt_form_operand){.letter = letter, .input = input, .read = read, .offset = offset};
}

static clt_status infer(clt_tensor *node) {
    const clt_fused *at = node->attributes;
    node->shape = at->shape;
    node->dtype = at->dtype;
    return CLT_OK;
}

static const char *label(const clt_tensor *node) {
    const clt_fused *at = node->attributes;
    return at->stages[at->n_stages - 1].form.name;
}

const clt_op clt_op_fused = {
    .name = "fused", .attributes_bytes = sizeof(clt_fused), .infer = infer, .label = label};

static clt_status infer_reduce(clt_tensor *node) {
    node->shape = ((const clt_fused_reduce *)node->attributes)->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static const char *label_reduce(const clt_tensor *node) {
    static const char *const names[] = {"sum", "mean", "max"};
    return names[((const clt_fused_reduce *)node->attributes)->reduction];
}

const clt_op clt_op_fused_reduce = {.name = "fused_reduce",
                                    .attributes_bytes = sizeof(clt_fused_reduce),
                                    .infer = infer_reduce,
                                    .label = label_reduce};

bool clt_fused_of(const clt_tensor *node, bool training, clt_fused *fused) {
    if (node->op == &clt_op_fused) {
        *fused = *(const clt_fused *)node->attributes;
        return true;
    }
    *fused = (clt_fused){.n_stages = 1, .n_inputs = node->n_inputs, .shape = node->shape, .dtype = node->dtype};
    fused->stages[0].dtype = node->dtype;
    return node->kind == CLT_NODE_OP && node->n_inputs <= CLT_FUSED_INPUTS && node->op->form &&
           node->op->form(node, training, &fused->stages[0].form);
}

int clt_own_inputs(const clt_tensor *node) {
    return node->n_inputs - (node->epilogue ? node->epilogue->n_inputs - 1 : 0);
}
