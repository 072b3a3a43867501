/* Parts of states that lie in the host's memory: brought to the device, and taken back (exec/carry.c moves them). */
#include <inttypes.h>

#include "runtime/ops/ops.h"

static clt_status check_part(const clt_tensor *state, int64_t offset, int64_t elements) {
    if (state->kind != CLT_NODE_STATE || !state->in_host)
        return clt_fail(CLT_E_INVALID, "%s is no state in the host's memory", clt_node_name(state));
    if (state->shape.rank != 1 || offset < 0 || elements < 1 || elements > state->shape.dims[0] - offset)
        return clt_fail(CLT_E_SHAPE, "%" PRId64 " elements at %" PRId64 " are no part of a flat state of %" PRId64, elements, offset,
                        clt_tensor_elements(state));
    return CLT_OK;
}

static clt_status infer_from_host(clt_tensor *node) {
    const clt_flat_part_attributes *at = node->attributes;
    CLT_TRY(check_part(node->inputs[0], at->offset, clt_shape_elements(&at->shape)));
    node->dtype = node->inputs[0]->dtype;
    node->shape = at->shape;
    return CLT_OK;
}

/* The result is the state, all of it. */
static clt_status infer_to_host(clt_tensor *node) {
    const clt_flat_part_attributes *at = node->attributes;
    CLT_TRY(check_part(node->inputs[0], at->offset, clt_shape_elements(&at->shape)));
    if (!clt_shape_equal(&node->inputs[1]->shape, &at->shape) || node->inputs[1]->dtype != node->inputs[0]->dtype)
        return clt_fail(CLT_E_SHAPE, "what goes to the host is no part of that state");
    node->dtype = node->inputs[0]->dtype;
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_flat_part_attributes, offset, INT64), CLT_ATTRIBUTE(clt_flat_part_attributes, shape, RESULT), {0}};

#define CARRY .attributes_bytes = sizeof(clt_flat_part_attributes), .schema = schema
const clt_op clt_op_from_host = {.name = "from_host", CARRY, .infer = infer_from_host};
const clt_op clt_op_to_host = {.name = "to_host", CARRY, .infer = infer_to_host, .is_view = true, .writes = 1};

bool clt_is_carry(const clt_tensor *node) {
    return node->op == &clt_op_from_host || node->op == &clt_op_to_host;
}

clt_tensor *clt_host_state(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape) {
    clt_tensor *state = clt_state(graph, name, dtype, shape);
    if (clt_tensor_valid(state)) state->in_host = true;
    return state;
}

clt_tensor *clt_from_host(clt_tensor *state, int64_t offset, int64_t elements) {
    return clt_node(NULL, &clt_op_from_host, &(clt_flat_part_attributes){offset, CLT_SHAPE(elements)}, &state, 1);
}

clt_tensor *clt_to_host(clt_tensor *state, clt_tensor *part, int64_t offset) {
    return clt_node(NULL, &clt_op_to_host, &(clt_flat_part_attributes){offset, part->shape}, (clt_tensor *[]){state, part}, 2);
}
