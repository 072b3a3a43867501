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

static void write_stages(const clt_fused *at, clt_text *text) {
    for (int s = 0; s < at->n_stages; s++) {
        const clt_form *form = &at->stages[s].form;
        clt_text_add(text, "%s = %s, s0 = %.9g, s1 = %.9g, %s of", form->name, form->expression, (double)form->s[0],
                     (double)form->s[1], clt_dtype_name(at->stages[s].dtype));
        for (int k = 0; k < form->n_operands; k++) {
            const clt_form_operand *o = &form->operands[k];
            clt_text_add(text, " %c:%d:%d:%lld:%d", o->letter, o->input, (int)o->read, (long long)o->offset, o->dims);
        }
        clt_text_add(text, "; ");
    }
    clt_text_add(text, "%d inputs", at->n_inputs);
}

static void write_fused(const void *value, clt_text *text) {
    write_stages(value, text);
}

static const clt_attribute schema[] = {
    {.name = "stages", .type = CLT_ATTRIBUTE_OPAQUE, .bytes = offsetof(clt_fused, shape), .write = write_fused},
    CLT_ATTRIBUTE(clt_fused, shape, RESULT),
    CLT_ATTRIBUTE(clt_fused, dtype, DTYPE),
    {0},
};

const clt_op clt_op_fused = {
    .name = "fused", .attributes_bytes = sizeof(clt_fused), .schema = schema, .infer = infer, .label = label};

static clt_status infer_reduce(clt_tensor *node) {
    const clt_fused_reduce *at = node->attributes;
    node->shape = at->shape;
    node->dtype = at->chain.dtype;
    return CLT_OK;
}

static const char *label_reduce(const clt_tensor *node) {
    return clt_axes_reductions[((const clt_fused_reduce *)node->attributes)->reduction];
}

static const clt_attribute reduce_schema[] = {
    CLT_ATTRIBUTE(clt_fused_reduce, chain, OPAQUE, .write = write_fused),
    CLT_ATTRIBUTE(clt_fused_reduce, reduction, ENUM, .words = clt_axes_reductions),
    CLT_ATTRIBUTE(clt_fused_reduce, length, INT64),
    CLT_ATTRIBUTE(clt_fused_reduce, shape, RESULT),
    {0},
};

const clt_op clt_op_fused_reduce = {.name = "fused_reduce",
                                    .attributes_bytes = sizeof(clt_fused_reduce),
                                    .schema = reduce_schema,
                                    .infer = infer_reduce,
                                    .label = label_reduce};

bool clt_fused_of(const clt_tensor *node, bool training, clt_fused *fused) {
    if (node->op == &clt_op_fused) {
        *fused = *(const clt_fused *)node->attributes;
        return true;
    }
    *fused = (clt_fused){.n_stages = 1, .n_inputs = node->n_inputs, .shape = node->shape, .dtype = node->dtype};
    fused->stages[0].dtype = node->dtype;
    return node->kind == CLT_NODE_OP && !node->op->more_outputs && node->n_inputs <= CLT_FUSED_INPUTS && node->op->form &&
           node->op->form(node, training, &fused->stages[0].form);
}

int clt_own_inputs(const clt_tensor *node) {
    return node->n_inputs - (node->epilogue ? node->epilogue->n_inputs - 1 : 0);
}
