#include "backends/reference/reference.h"

enum { MATMUL_ROWS = 4 }; /* as in cl/reference/matmul.cl */

/* Strides of an operand's batch over the dimensions of the result's, right-aligned in CLT_MAX_RANK;
 * 0 where it is stretched. */
static void batch_strides(const clt_tensor *x, int64_t strides[CLT_MAX_RANK]) {
    int64_t own[CLT_MAX_RANK] = {0};
    clt_shape_strides(&x->shape, own);
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (x->shape.rank - 2));
        strides[d] = i >= 0 && x->shape.dims[i] > 1 ? own[i] : 0;
    }
}

void clt_reference_matmul(clt_lowering *l, const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    int rank = node->shape.rank, batch_rank = rank - 2;
    int64_t m = node->shape.dims[rank - 2], n = node->shape.dims[rank - 1];
    int64_t k = a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)];
    int64_t batch = clt_tensor_elements(node) / (m * n);
    int64_t size[CLT_MAX_RANK], a_batch[CLT_MAX_RANK], b_batch[CLT_MAX_RANK];
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - batch_rank);
        size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    batch_strides(a, a_batch);
    batch_strides(b, b_batch);
    int64_t a_step[2] = {at->transpose_a ? 1 : k, at->transpose_a ? m : 1};
    int64_t b_step[2] = {at->transpose_b ? 1 : n, at->transpose_b ? k : 1};

    int64_t items = batch * ((m + MATMUL_ROWS - 1) / MATMUL_ROWS) * n;
    clt_launch_begin(l, "reference/matmul.cl", "ref_matmul", items, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, a);
    clt_launch_tensor(l, b);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){m, n, k, batch}, 4, 4);
    clt_launch_ints(l, a_step, 2, 2);
    clt_launch_ints(l, b_step, 2, 2);
    clt_launch_ints(l, size, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, a_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_ints(l, b_batch, CLT_MAX_RANK, CLT_MAX_RANK);
}
