/* Parts of flat tensors: views of them; and of states in the host's memory, brought to the device and taken back (exec/carry.c moves them); and parameters there. */
#include <inttypes.h>

#include "runtime/ops/ops.h"

static clt_status infer_flat_part(clt_tensor *node) {
    const clt_flat_part_attributes *at = node->attributes;
    const clt_tensor *flat = node->inputs[0];
    CLT_TRY(clt_check_rank(node, 0, 1, 1));
    int64_t elements = clt_shape_elements(&at->shape);
    if (at->offset < 0 || at->offset % CLT_PACK_ALIGN || elements < 1 || elements > flat->shape.dims[0] - at->offset)
        return clt_fail(CLT_E_SHAPE, "%" PRId64 " elements at %" PRId64 " are no part of a flat tensor of %" PRId64,
                        elements, at->offset, flat->shape.dims[0]);
    node->dtype = flat->dtype;
    node->shape = at->shape;
    return CLT_OK;
}

static int64_t flat_part_offset(const clt_tensor *node) {
    return ((const clt_flat_part_attributes *)node->attributes)->offset;
}

static const clt_attribute part_schema[] = {
    CLT_ATTRIBUTE(clt_flat_part_attributes, offset, INT64), CLT_ATTRIBUTE(clt_flat_part_attributes, shape, RESULT), {0}};

const clt_op clt_op_flat_part = {.name = "flat_part",
                                 .attributes_bytes = sizeof(clt_flat_part_attributes),
                                 .schema = part_schema,
                                 .infer = infer_flat_part,
                                 .is_view = true,
                                 .view_offset = flat_part_offset};

clt_tensor *clt_flat_part(clt_tensor *flat, int64_t offset, clt_shape shape) {
    clt_flat_part_attributes at = {.offset = offset, .shape = shape};
    return clt_node(NULL, &clt_op_flat_part, &at, &flat, 1);
}

clt_status clt_become_flat_part(clt_tensor *node, clt_tensor *flat, int64_t offset) {
    return clt_node_become(node, &clt_op_flat_part, &(clt_flat_part_attributes){offset, node->shape}, &flat, 1);
}

/* ---- of states in the host's memory ---- */

/* Or what it is behind a to_host. */
static clt_status check_in_host(const clt_tensor *state) {
    if (state->op == &clt_op_to_host) state = state->inputs[0];
    return state->kind == CLT_NODE_STATE && state->in_host ? CLT_OK : clt_fail(CLT_E_INVALID, "%s is no state in the host's memory", clt_node_name(state));
}

static clt_status infer_part_in_host(clt_tensor *node) {
    CLT_TRY(check_in_host(node->inputs[0]));
    return infer_flat_part(node);
}

/* Of a variable, all. */
static clt_status infer_from_host(clt_tensor *node) {
    const clt_tensor *variable = node->inputs[0];
    if (variable->kind != CLT_NODE_VARIABLE || !variable->in_host) return infer_part_in_host(node);
    node->dtype = variable->dtype;
    node->shape = variable->shape;
    return CLT_OK;
}

/* The result is the state, all of it. */
static clt_status infer_to_host(clt_tensor *node) {
    CLT_TRY(infer_part_in_host(node));
    if (!clt_shape_equal(&node->inputs[1]->shape, &node->shape) || node->inputs[1]->dtype != node->dtype)
        return clt_fail(CLT_E_SHAPE, "what goes to the host is no part of that state");
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

#define CARRY .attributes_bytes = sizeof(clt_flat_part_attributes), .schema = part_schema
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

clt_tensor *clt_from_host(clt_tensor *state, int64_t offset, clt_shape shape) {
    return clt_node(NULL, &clt_op_from_host, &(clt_flat_part_attributes){offset, shape}, &state, 1);
}

clt_tensor *clt_to_host(clt_tensor *state, clt_tensor *part, int64_t offset) {
    return clt_node(NULL, &clt_op_to_host, &(clt_flat_part_attributes){offset, part->shape}, (clt_tensor *[]){state, part}, 2);
}
