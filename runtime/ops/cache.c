/* What attention remembers of the tokens so far. */
#include "runtime/ops/layer.h"
#include "runtime/ops/ops.h"

enum { CACHE, X, POSITION_IDS };

static clt_status infer(clt_tensor *node) {
    const clt_shape *cache = &node->inputs[CACHE]->shape, *x = &node->inputs[X]->shape, *ids = &node->inputs[POSITION_IDS]->shape;
    char text[CLT_SHAPE_TEXT];
    for (int i = CACHE; i <= X; i++) {
        CLT_TRY(clt_check_dtype(node, i, CLT_F32));
        CLT_TRY(clt_check_rank(node, i, 4, 4));
    }
    CLT_TRY(clt_check_dtype(node, POSITION_IDS, CLT_I32));
    if (!clt_shape_equal(ids, &CLT_SHAPE(x->dims[0], x->dims[2])))
        return clt_fail(CLT_E_SHAPE, "position_ids %s: expected [%lld, %lld]", clt_shape_text(ids, text), (long long)x->dims[0], (long long)x->dims[2]);
    for (int d = 0; d < 4; d++)
        if (d != 2 && cache->dims[d] != x->dims[d])
            return clt_fail(CLT_E_SHAPE, "%s of the buffer and x differ in more than dimension 2", clt_pair_text(node->inputs[CACHE], node->inputs[X], (char[CLT_PAIR_TEXT]){0}));
    node->shape = *cache;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static int64_t index_limit(const clt_tensor *node, int input) {
    return input == POSITION_IDS ? node->inputs[CACHE]->shape.dims[2] : 0;
}

static clt_cost cost(const clt_tensor *node) {
    return (clt_cost){0, 2 * clt_tensor_cost_bytes(node->inputs[X]) + clt_tensor_cost_bytes(node->inputs[POSITION_IDS])};
}

const clt_op clt_op_cache = {.name = "cache", .least_inputs = 3, .infer = infer, .cost = cost, .is_view = true, .writes = 1u << CACHE, .index_limit = index_limit};

clt_tensor *clt_cache_op(clt_tensor *buffer, clt_tensor *x, clt_tensor *position_ids) {
    return clt_node(NULL, &clt_op_cache, NULL, (clt_tensor *[]){buffer, x, position_ids}, 3);
}

clt_tensor *clt_cache(clt_tensor *x, const char *name, int64_t capacity, clt_tensor *position_ids) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    const int64_t *dims = x->shape.dims;
    if (x->shape.rank != 4)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "cache: expected x [N, heads, T, D], got %s", clt_shape_text(&x->shape, text)));
    clt_tensor *buffer = clt_buffer_with(x->graph, name, CLT_SHAPE(dims[0], dims[1], capacity, dims[3]), (clt_init){0}, (clt_buffer_options){.unsaved = true});
    return clt_cache_op(buffer, x, position_ids);
}
