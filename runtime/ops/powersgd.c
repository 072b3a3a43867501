/* What PowerSGD needs beside matrix products: error feedback, orthonormal columns. */
#include "runtime/ops/ops.h"

static clt_status infer_feedback(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_dtype(node, 1, CLT_F32));
    if (clt_tensor_elements(node->inputs[0]) != clt_tensor_elements(node->inputs[1]))
        return clt_fail(CLT_E_SHAPE, "gradient and residual differ in size");
    node->dtype = CLT_F32;
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

static clt_status infer_feedback_add(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 2, CLT_F32));
    if (clt_tensor_elements(node->inputs[2]) != 1) return clt_fail(CLT_E_SHAPE, "the count of samples is one number");
    return infer_feedback(node);
}

static const clt_attribute feedback_schema[] = {
    CLT_ATTRIBUTE(clt_feedback_attributes, scale, FLOAT), CLT_ATTRIBUTE(clt_feedback_attributes, seed, INT), {0}};

const clt_op clt_op_feedback_add = {
    .name = "feedback_add", .infer = infer_feedback_add, .is_view = true, .writes = 1, .operations = 1};
const clt_op clt_op_feedback_subtract = {.name = "feedback_subtract",
                                         .attributes_bytes = sizeof(clt_feedback_attributes),
                                         .schema = feedback_schema,
                                         .operations = 2,
                                         .infer = infer_feedback,
                                         .is_view = true,
                                         .writes = 1u << 1};

clt_tensor *clt_feedback_add(clt_tensor *residual, clt_tensor *x, clt_tensor *samples) {
    return clt_node(NULL, &clt_op_feedback_add, NULL, (clt_tensor *[]){residual, x, samples}, 3);
}

clt_tensor *clt_feedback_subtract(clt_tensor *x, clt_tensor *residual, float scale) {
    clt_feedback_attributes at = {.scale = scale};
    return clt_node(NULL, &clt_op_feedback_subtract, &at, (clt_tensor *[]){x, residual}, 2);
}

static clt_status infer_same(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    node->dtype = CLT_F32;
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

static clt_status infer_orthogonalize(clt_tensor *node) {
    CLT_TRY(clt_check_rank(node, 0, 2, 2));
    return infer_same(node);
}

const clt_op clt_op_seed_factor = {.name = "seed_factor",
                                   .attributes_bytes = sizeof(clt_feedback_attributes),
                                   .schema = feedback_schema,
                                   .infer = infer_same,
                                   .is_view = true,
                                   .writes = 1};
/* Both factors' sides are read once for each pair of columns. */
static clt_cost cost_orthogonalize(const clt_tensor *node) {
    double rank = (double)node->shape.dims[1];
    return (clt_cost){2 * (double)clt_tensor_elements(node) * (rank + 1), 2 * clt_tensor_cost_bytes(node)};
}

const clt_op clt_op_orthogonalize = {.name = "orthogonalize", .infer = infer_orthogonalize, .cost = cost_orthogonalize};

clt_tensor *clt_seed_factor(clt_tensor *factor, int seed) {
    clt_feedback_attributes at = {.seed = seed};
    return clt_node(NULL, &clt_op_seed_factor, &at, &factor, 1);
}

clt_tensor *clt_orthogonalize(clt_tensor *x) {
    return clt_node(NULL, &clt_op_orthogonalize, NULL, &x, 1);
}
