#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_expand_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_shape both;
    CLT_TRY(clt_shape_check(&at->shape, "the shape asked for"));
    if (!clt_shape_broadcast(&x->shape, &at->shape, &both) || !clt_shape_equal(&both, &at->shape)) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "%s does not stretch to %s", clt_shape_text(&x->shape, from),
                        clt_shape_text(&at->shape, to));
    }
    node->shape = at->shape;
    node->dtype = x->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0]) dx[0] = clt_sum_to(dy, &node->inputs[0]->shape);
}

/* A dimension 0 of the batch's size follows it where it is stretched or the operand's has followed; that
 * of an operand which kept its own (a parameter) stays. */
static void rebatch(clt_tensor *node, int64_t new_batch, int64_t old_batch) {
    clt_shape *shape = &((clt_expand_attributes *)node->attributes)->shape;
    const clt_shape *x = &node->inputs[0]->shape;
    bool own = x->rank == shape->rank && shape->rank > 0 && x->dims[0] == old_batch && old_batch != 1;
    if (shape->rank > 0 && shape->dims[0] == old_batch && !own) shape->dims[0] = new_batch;
}

static bool form(const clt_tensor *node, bool training, clt_form *form) {
    (void)node, (void)training;
    *form = (clt_form){.name = "expand", .expression = "a"};
    clt_form_read(form, 'a', 0, CLT_READ_BROADCAST, 0);
    return true;
}

const clt_op clt_op_expand = {
    .name = "expand",
    .attributes_bytes = sizeof(clt_expand_attributes),
    .infer = infer,
    .gradient = gradient,
    .rebatch = rebatch,
    .form = form,
};

clt_tensor *clt_expand(clt_tensor *x, clt_shape shape) {
    if (clt_tensor_valid(x) && clt_shape_equal(&x->shape, &shape)) return x;
    clt_expand_attributes at = {shape};
    return clt_node(NULL, &clt_op_expand, &at, &x, 1);
}
