/* The same values in another layout: made by the passes of runtime/exec, never by users. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static bool form(const clt_tensor *node, bool training, clt_form *form) {
    (void)node, (void)training;
    *form = (clt_form){.name = "relayout", .expression = "a"};
    clt_form_read(form, 'a', 0, CLT_READ_BROADCAST, 0);
    return true;
}

const clt_op clt_op_relayout = {.name = "relayout", .least_inputs = 1, .infer = infer, .form = form};

clt_tensor *clt_relayout(clt_tensor *x, clt_layout layout) {
    clt_tensor *y = clt_node(NULL, &clt_op_relayout, NULL, &x, 1);
    if (clt_tensor_valid(y)) y->layout = layout;
    return y;
}
