/* Sums that stay on the device until they are asked for: no step waits for the host. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static clt_status infer_add(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 1, CLT_F32));
    const clt_metric_attributes *at = node->attributes;
    char text[CLT_SHAPE_TEXT];
    if (clt_tensor_elements(node->inputs[0]) < 2 + at->finite)
        return clt_fail(CLT_E_SHAPE, "the state %s has too few elements", clt_shape_text(&node->inputs[0]->shape, text));
    if (clt_tensor_elements(node->inputs[1]) != 1)
        return clt_fail(CLT_E_SHAPE, "value %s is not a scalar", clt_shape_text(&node->inputs[1]->shape, text));
    return infer(node);
}

static clt_status infer_correct(clt_tensor *node) {
    CLT_TRY(clt_check_float(node, 1));
    CLT_TRY(clt_check_dtype(node, 2, CLT_I32));
    CLT_TRY(clt_check_rank(node, 1, 2, 2));
    CLT_TRY(clt_check_rank(node, 2, 1, 1));
    char text[CLT_PAIR_TEXT];
    if (node->inputs[1]->shape.dims[0] != node->inputs[2]->shape.dims[0])
        return clt_fail(CLT_E_SHAPE, "%s differ in their first dimension",
                        clt_pair_text(node->inputs[1], node->inputs[2], text));
    return infer(node);
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_metric_attributes, weight, FLOAT), CLT_ATTRIBUTE(clt_metric_attributes, finite, BOOL), {0}};

const clt_op clt_op_metric_add = {
    .name = "metric_add",
    .attributes_bytes = sizeof(clt_metric_attributes),
    .schema = schema,
    .infer = infer_add,
    .is_view = true,
    .writes = 1,
};
const clt_op clt_op_metric_correct = {
    .name = "metric_correct",
    .infer = infer_correct,
    .operations = 1,
    .is_view = true,
    .writes = 1,
};

clt_tensor *clt_metric_add(clt_tensor *state, clt_tensor *value, float weight) {
    clt_metric_attributes at = {.weight = weight};
    return clt_node(NULL, &clt_op_metric_add, &at, (clt_tensor *[]){state, value}, 2);
}

clt_tensor *clt_metric_add_finite(clt_tensor *state, clt_tensor *value, float weight) {
    clt_metric_attributes at = {.weight = weight, .finite = true};
    return clt_node(NULL, &clt_op_metric_add, &at, (clt_tensor *[]){state, value}, 2);
}

clt_tensor *clt_metric_correct(clt_tensor *state, clt_tensor *logits, clt_tensor *target) {
    return clt_node(NULL, &clt_op_metric_correct, NULL, (clt_tensor *[]){state, logits, target}, 3);
}
