/* Indices that stand for none: kept[i] = indices[i] != ignored, and where that is 0 another index takes the place. */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_I32));
    node->shape = node->outputs[0]->shape = node->inputs[0]->shape;
    node->dtype = CLT_I32;
    node->outputs[0]->dtype = CLT_F32;
    return CLT_OK;
}

/* Its limit is that of what reads the result, but for this value. */
static bool ignores(const clt_tensor *node, int32_t *value) {
    *value = ((const clt_ignore_index_attributes *)node->attributes)->ignored;
    return true;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_ignore_index_attributes, ignored, INT), CLT_ATTRIBUTE(clt_ignore_index_attributes, instead, INT), {0}};

const clt_op clt_op_ignore_index = {.name = "ignore_index",
                                    .more_outputs = 1,
                                    .attributes_bytes = sizeof(clt_ignore_index_attributes),
                                    .schema = schema,
                                    .infer = infer,
                                    .operations = 1,
                                    .ignores = ignores};

clt_tensor *clt_ignore_index(clt_tensor *indices, int32_t ignored, int32_t instead) {
    clt_ignore_index_attributes at = {ignored, instead};
    return clt_node(NULL, &clt_op_ignore_index, &at, &indices, 1);
}
