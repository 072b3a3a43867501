#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_expand_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_shape shape = at->shape, both;
    int leading = shape.rank - x->shape.rank;
    CLT_TRY(clt_graph_resolve(node->graph, &shape));
    for (int i = CLT_MAX(leading, 0); i < shape.rank && i < CLT_MAX_RANK; i++)
        if (shape.dims[i] == -1) shape.dims[i] = x->shape.dims[i - leading];
    CLT_TRY(clt_shape_check(&shape, "the shape asked for"));
    if (!clt_shape_broadcast(&x->shape, &shape, &both) || !clt_shape_equal(&both, &shape)) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "%s does not stretch to %s", clt_shape_text(&x->shape, from),
                        clt_shape_text(&shape, to));
    }
    node->shape = shape;
    node->dtype = x->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0]) dx[0] = clt_sum_to(dy, &node->inputs[0]->shape);
}

static bool form(const clt_tensor *node, bool training, clt_form *form) {
    (void)node, (void)training;
    *form = (clt_form){.name = "expand", .expression = "a"};
    clt_form_read(form, 'a', 0, CLT_READ_BROADCAST, 0);
    return true;
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_expand_attributes, shape, RESULT), {0}};

const clt_op clt_op_expand = {
    .name = "expand", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_expand_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .form = form,
};

clt_tensor *clt_expand(clt_tensor *x, clt_shape shape) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, &shape)) return x;
    clt_expand_attributes at = {shape};
    int leading = shape.rank - x->shape.rank;
    for (int i = 0; i < x->shape.rank && leading >= 0 && shape.rank <= CLT_MAX_RANK; i++)
        if (x->shape.dims[i] == shape.dims[i + leading]) at.shape.dims[i + leading] = -1;
    return clt_node(NULL, &clt_op_expand, &at, &x, 1);
}
