#include "runtime/ops/ops.h"

/* ---- rules ---- */

static clt_status infer(clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    CLT_TRY(clt_check_floats(node, 2));
    for (int i = 0; i < 2; i++) CLT_TRY(clt_check_rank(node, i, 2, CLT_MAX_RANK));
    const clt_shape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    int64_t m = a->dims[a->rank - 2], ka = a->dims[a->rank - 1];
    int64_t kb = b->dims[b->rank - 2], n = b->dims[b->rank - 1];
    if (at->transpose_a) m = a->dims[a->rank - 1], ka = a->dims[a->rank - 2];
    if (at->transpose_b) n = b->dims[b->rank - 2], kb = b->dims[b->rank - 1];
    clt_shape batch_a = *a, batch_b = *b, shape;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (ka != kb || !clt_shape_broadcast(&batch_a, &batch_b, &shape)) {
        char text[CLT_PAIR_TEXT];
        return clt_fail(CLT_E_SHAPE, "%s%s%s do not multiply", clt_pair_text(node->inputs[0], node->inputs[1], text),
                        at->transpose_a ? " (first transposed)" : "",
                        at->transpose_b ? " (second transposed)" : "");
    }
    shape.dims[shape.rank++] = m;
    shape.dims[shape.rank++] = n;
    node->shape = shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

/* With C = op(A) op(B): dop(A) = dC op(B)^T and dop(B) = op(A)^T dC; a transposed
 * operand wants the transpose of that, which is the same product read the other way. */
static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_matmul_attributes *at = node->attributes;
    clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    bool ta = at->transpose_a, tb = at->transpose_b;
    if (wanted[0]) {
        clt_tensor *da = ta ? clt_matmul_with(b, dy, (clt_matmul_options){tb, true})
                            : clt_matmul_with(dy, b, (clt_matmul_options){false, !tb});
        dx[0] = clt_sum_to(da, &a->shape);
    }
    if (wanted[1]) {
        clt_tensor *db = tb ? clt_matmul_with(dy, a, (clt_matmul_options){true, ta})
                            : clt_matmul_with(a, dy, (clt_matmul_options){!ta, false});
        dx[1] = clt_sum_to(db, &b->shape);
    }
}

/* Two operations a product. */
static clt_cost cost(const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_shape *a = &node->inputs[0]->shape;
    double depth = (double)a->dims[a->rank - (at->transpose_a ? 2 : 1)];
    return (clt_cost){2 * (double)clt_tensor_elements(node) * depth, clt_node_bytes(node)};
}

/* Rows. */
static bool linear(const clt_tensor *node, clt_linear *part) {
    const clt_matmul_attributes *at = node->attributes;
    *part = (clt_linear){0, node->inputs[0]->shape.rank - (at->transpose_a ? 1 : 2), node->shape.rank - 2};
    return true;
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_matmul_attributes, transpose_a, BOOL, .key = "^0"),
    CLT_ATTRIBUTE(clt_matmul_attributes, transpose_b, BOOL, .key = "^1"),
    {0},
};

const clt_op clt_op_matmul = {
    .name = "matmul", .least_inputs = 2,
    .attributes_bytes = sizeof(clt_matmul_attributes),
    .schema = schema,
    .infer = infer,
    .stretches = CLT_STRETCH_BATCHES,
    .gradient = gradient,
    .cost = cost,
    .autocast = CLT_AUTOCAST_LOW,
    .epilogue = CLT_EPILOGUE_COLUMNS,
    .tuned = true,
    .linear = linear,
};

/* ---- builders ---- */

clt_tensor *clt_matmul_with(clt_tensor *a, clt_tensor *b, clt_matmul_options options) {
    return clt_node(NULL, &clt_op_matmul, &options, (clt_tensor *[]){a, b}, 2);
}

clt_tensor *clt_matmul(clt_tensor *a, clt_tensor *b) {
    return clt_matmul_with(a, b, (clt_matmul_options){0});
}
