/*
 * Collectives with the other ranks of a plan's communicator. All happen in place: what a tensor holds is replaced, in host
 * memory while the plan goes on, and whoever reads the collective waits for it (runtime/exec/collective.c).
 */
#include <math.h>

#include "runtime/ops/ops.h"

bool clt_is_collective(const clt_tensor *node) {
    return node->kind == CLT_NODE_OP && node->op->is_collective;
}

static clt_status infer_same(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

/* Parts must be sub-buffers on any device. */
static clt_status check_part(const clt_tensor *node, int64_t part) {
    const clt_collective_attributes *at = node->attributes;
    if (node->inputs[0]->shape.rank != 1 || part < 1 || (at->size > 1 && part % CLT_PACK_ALIGN))
        return clt_fail(CLT_E_SHAPE, "a part of %lld elements is none of whole multiples of %d of a flat tensor",
                        (long long)part, CLT_PACK_ALIGN);
    return CLT_OK;
}

static clt_status infer_shard(clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    CLT_TRY(infer_same(node));
    node->shape.dims[0] /= at->size;
    if (node->shape.dims[0] * at->size != node->inputs[0]->shape.dims[0])
        return clt_fail(CLT_E_SHAPE, "%lld elements are no %d equal parts", (long long)node->inputs[0]->shape.dims[0],
                        at->size);
    return check_part(node, node->shape.dims[0]);
}

static clt_status infer_gathered(clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    CLT_TRY(infer_same(node));
    if (node->shape.rank != 1) return clt_fail(CLT_E_SHAPE, "what is gathered must be flat");
    node->shape.dims[0] *= at->size;
    return CLT_OK;
}

static int64_t part_offset(const clt_tensor *node) {
    const clt_collective_attributes *at = node->attributes;
    return at->rank * node->shape.dims[0];
}

static const char *const reductions[] = {"sum", "max", "min", NULL}, *const groups[] = {"ranks", "stages", NULL};

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_collective_attributes, rank, INT, .of_rank = true),
    CLT_ATTRIBUTE(clt_collective_attributes, size, INT, .usual = 1, .least = 1, .most = INFINITY),
    CLT_ATTRIBUTE(clt_collective_attributes, reduction, ENUM, .words = reductions),
    CLT_ATTRIBUTE(clt_collective_attributes, among, ENUM, .words = groups),
    {0},
};

#define EXCHANGE .attributes_bytes = sizeof(clt_collective_attributes), .schema = schema
#define COLLECTIVE EXCHANGE, .is_collective = true

const clt_op clt_op_all_reduce = {
    .name = "all_reduce", COLLECTIVE, .infer = infer_same, .is_view = true, .writes = 1};
const clt_op clt_op_reduce_scatter = {.name = "reduce_scatter",
                                      COLLECTIVE,
                                      .infer = infer_shard,
                                      .is_view = true,
                                      .view_offset = part_offset,
                                      .writes = 1};
const clt_op clt_op_all_gather = {.name = "all_gather", COLLECTIVE, .infer = infer_gathered};
const clt_op clt_op_all_gather_in_place = {
    .name = "all_gather_in_place", COLLECTIVE, .infer = infer_same, .is_view = true, .writes = 1};
const clt_op clt_op_shard = {
    .name = "shard", EXCHANGE, .infer = infer_shard, .is_view = true, .view_offset = part_offset};

static clt_tensor *exchange(const clt_op *op, clt_collective_attributes at, clt_tensor *x, clt_tensor *after) {
    return clt_node(NULL, op, &at, (clt_tensor *[]){x, after}, after ? 2 : 1);
}

clt_tensor *clt_all_reduce_among(clt_among among, clt_tensor *x, clt_reduction reduction) {
    return exchange(&clt_op_all_reduce, (clt_collective_attributes){.size = 1, .reduction = reduction, .among = among}, x, NULL);
}

clt_tensor *clt_all_reduce(clt_tensor *x, clt_reduction reduction) {
    return clt_all_reduce_among(CLT_AMONG_RANKS, x, reduction);
}

clt_tensor *clt_reduce_scatter(clt_tensor *x, int rank, int size) {
    return exchange(&clt_op_reduce_scatter, (clt_collective_attributes){.rank = rank, .size = size, .reduction = CLT_REDUCE_SUM}, x, NULL);
}

clt_tensor *clt_all_gather(clt_tensor *x, int rank, int size) {
    return exchange(&clt_op_all_gather, (clt_collective_attributes){.rank = rank, .size = size}, x, NULL);
}

clt_tensor *clt_all_gather_in_place(clt_tensor *whole, clt_tensor *part, int rank, int size) {
    return exchange(&clt_op_all_gather_in_place, (clt_collective_attributes){.rank = rank, .size = size}, whole, part);
}

clt_tensor *clt_shard_of(clt_tensor *whole, int rank, int size) {
    return exchange(&clt_op_shard, (clt_collective_attributes){.rank = rank, .size = size}, whole, NULL);
}
