/* Indices as rows of zeros with a one. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_I32));
    CLT_TRY(clt_check_rank(node, 0, 0, CLT_MAX_RANK - 1));
    node->shape = node->inputs[0]->shape;
    node->shape.dims[node->shape.rank++] = ((const clt_one_hot_attributes *)node->attributes)->count;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static int64_t index_limit(const clt_tensor *node, int input) {
    (void)input;
    return ((const clt_one_hot_attributes *)node->attributes)->count;
}

static const clt_attribute schema[] = {CLT_ATTRIBUTE(clt_one_hot_attributes, count, INT64, .least = 1, .most = INT32_MAX), {0}};

const clt_op clt_op_one_hot = {
    .name = "one_hot", .least_inputs = 1, .attributes_bytes = sizeof(clt_one_hot_attributes), .schema = schema, .infer = infer, .operations = 1, .index_limit = index_limit};

clt_tensor *clt_one_hot(clt_tensor *indices, int64_t count) {
    return clt_node(NULL, &clt_op_one_hot, &(clt_one_hot_attributes){count}, &indices, 1);
}
