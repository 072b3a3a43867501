#include "backends/native/gpu/gpu.h"

/* An operand stored as [rows, k], or as [k, rows]. */
static clt_gpu_operand matrix(int64_t rows, int64_t k, bool rows_adjacent) {
    return (clt_gpu_operand){
        .source = rows_adjacent ? CLT_GPU_ROWS_ADJACENT : CLT_GPU_STEPS_ADJACENT,
        .by_four = (rows_adjacent ? rows : k) % 4 == 0,
        .rows.image_step = rows_adjacent ? 1 : k,
        .steps.image_step = rows_adjacent ? rows : 1,
    };
}

static bool all_zero(const int64_t *values) {
    for (int d = 0; d < CLT_MAX_RANK; d++)
        if (values[d]) return false;
    return true;
}

/* A batch of a that is multiplied by one b is a taller a. */
static void fold_batch(clt_gpu_contraction *x, bool transpose_a) {
    if (x->batch == 1 || transpose_a || !all_zero(x->b_batch)) return;
    if (clt_tensor_elements(x->a_tensor) != x->batch * x->m * x->k) return;
    x->m *= x->batch;
    x->batch = 1;
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        x->size[d] = 1;
        x->a_batch[d] = 0;
    }
}

void clt_gpu_describe_matmul(const clt_tensor *node, clt_gpu_contraction *x) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    int rank = node->shape.rank;
    *x = (clt_gpu_contraction){.a_tensor = a, .b_tensor = b};
    x->m = node->shape.dims[rank - 2];
    x->n = node->shape.dims[rank - 1];
    x->k = a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)];
    x->batch = clt_tensor_elements(node) / (x->m * x->n);
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (rank - 2));
        x->size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    clt_broadcast_strides(a, 2, x->a_batch);
    clt_broadcast_strides(b, 2, x->b_batch);
    fold_batch(x, at->transpose_a);
    x->a = matrix(x->m, x->k, at->transpose_a);
    x->b = matrix(x->n, x->k, !at->transpose_b);
    x->row_step = x->pitch = x->n;
    x->batch_step = x->m * x->n;
    x->columns = (clt_gpu_place){.height = 1, .width = x->n, .step_w = 1};
    x->result_by_four = x->n % 4 == 0;
}
