#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_dtype(node, 1, CLT_I32));
    CLT_TRY(clt_check_rank(node, 0, 2, 2));
    CLT_TRY(clt_check_rank(node, 1, 0, CLT_MAX_RANK - 1));
    node->shape = node->inputs[1]->shape;
    node->shape.dims[node->shape.rank++] = node->inputs[0]->shape.dims[1];
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    node->shape = ((const clt_embedding_attributes *)node->attributes)->result;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_embedding_attributes at = {node->inputs[0]->shape};
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_embedding_grad, &at, (clt_tensor *[]){node->inputs[1], dy}, 2);
}

/* Rows that are read, and their indices. */
static clt_cost cost(const clt_tensor *node) {
    return (clt_cost){0, 2 * clt_tensor_cost_bytes(node) + clt_tensor_cost_bytes(node->inputs[1])};
}

static int64_t index_limit(const clt_tensor *node, int input) {
    return input == 1 ? node->inputs[0]->shape.dims[0] : 0;
}

static int64_t index_limit_grad(const clt_tensor *node, int input) {
    return input == 0 ? node->shape.dims[0] : 0;
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_embedding_attributes, result, RESULT), {0}};

const clt_op clt_op_embedding = {
    .name = "embedding", .least_inputs = 2, .infer = infer, .gradient = gradient, .cost = cost, .tuned = true, .index_limit = index_limit};
const clt_op clt_op_embedding_grad = {.name = "embedding_grad", .least_inputs = 2,
                                      .attributes_bytes = sizeof(clt_embedding_attributes),
                                      .schema = schema,
                                      .infer = infer_grad,
                                      .tuned = true,
                                      .index_limit = index_limit_grad};

clt_tensor *clt_embedding_op(clt_tensor *indices, clt_tensor *weight) {
    return clt_node(NULL, &clt_op_embedding, NULL, (clt_tensor *[]){weight, indices}, 2);
}

clt_tensor *clt_embedding(clt_tensor *indices, const char *name, int64_t count, int64_t width) {
    if (!clt_tensor_valid(indices)) return indices;
    clt_init normal = {.kind = CLT_INIT_NORMAL, .value = 1};
    return clt_embedding_op(indices, clt_layer_parameter(indices->graph, name, "weight", CLT_SHAPE(count, width), normal));
}
