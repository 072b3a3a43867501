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
    const clt_embedding_attributes *at = node->attributes;
    const clt_shape *dy = &node->inputs[1]->shape;
    node->shape = CLT_SHAPE(at->count, dy->dims[dy->rank - 1]);
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    clt_embedding_attributes at = {node->inputs[0]->shape.dims[0]};
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_embedding_grad, &at, (clt_tensor *[]){node->inputs[1], dy}, 2);
}

const clt_op clt_op_embedding = {
    .name = "embedding",
    .attributes_bytes = sizeof(clt_embedding_attributes),
    .infer = infer,
    .gradient = gradient,
};
const clt_op clt_op_embedding_grad = {
    .name = "embedding_grad",
    .attributes_bytes = sizeof(clt_embedding_attributes),
    .infer = infer_grad,
};

clt_tensor *clt_embedding(clt_tensor *indices, const char *name, int64_t count, int64_t width) {
    if (!clt_tensor_valid(indices)) return indices;
    clt_init normal = {.kind = CLT_INIT_NORMAL, .value = 1};
    clt_tensor *weight =
        clt_layer_parameter(indices->graph, name, "weight", CLT_SHAPE(count, width), normal);
    clt_embedding_attributes at = {count};
    return clt_node(NULL, &clt_op_embedding, &at, (clt_tensor *[]){weight, indices}, 2);
}
