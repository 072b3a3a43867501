#include "backends/reference/reference.h"

enum { MATMUL_ROWS = 4 }; /* as in cl/reference/matmul.cl */

typedef struct geometry {
    int64_t m, n, k, batch;
    int64_t a_step[2], b_step[2]; /* strides of m and k in a, of k and n in b */
    int64_t batch_size[CLT_MAX_RANK], a_batch[CLT_MAX_RANK], b_batch[CLT_MAX_RANK];
} geometry;

static geometry geometry_of(const clt_tensor *node) {
    const clt_matmul_attributes *at = node->attributes;
    const clt_tensor *a = node->inputs[0], *b = node->inputs[1];
    int rank = node->shape.rank;
    geometry g = {.m = node->shape.dims[rank - 2], .n = node->shape.dims[rank - 1]};
    g.k = a->shape.dims[a->shape.rank - (at->transpose_a ? 2 : 1)];
    g.batch = clt_tensor_elements(node) / (g.m * g.n);
    g.a_step[0] = at->transpose_a ? 1 : g.k;
    g.a_step[1] = at->transpose_a ? g.m : 1;
    g.b_step[0] = at->transpose_b ? 1 : g.n;
    g.b_step[1] = at->transpose_b ? g.k : 1;
    for (int d = 0; d < CLT_MAX_RANK; d++) {
        int i = d - (CLT_MAX_RANK - (rank - 2));
        g.batch_size[d] = i >= 0 ? node->shape.dims[i] : 1;
    }
    clt_broadcast_strides(a, 2, g.a_batch);
    clt_broadcast_strides(b, 2, g.b_batch);
    return g;
}

/* Products from `start` to before `end` of each sum. sums: scratch memory; -1: the result's own. */
static void launch_part(clt_lowering *l, const clt_tensor *node, const geometry *g, int sums, int64_t start, int64_t end) {
    int64_t items = g->batch * ((g->m + MATMUL_ROWS - 1) / MATMUL_ROWS) * g->n;
    clt_launch_begin_typed(l, "reference/matmul.cl", node->dtype, "ref_matmul", items, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    if (sums >= 0) clt_launch_scratch(l, sums);
    else clt_launch_tensor(l, node);
    clt_launch_tensor(l, node);
    clt_launch_indices(l, (int64_t[]){g->m, g->n, g->batch}, 3, 4);
    clt_launch_indices(l, g->a_step, 2, 2);
    clt_launch_indices(l, g->b_step, 2, 2);
    clt_launch_indices(l, g->batch_size, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_indices(l, g->a_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_indices(l, g->b_batch, CLT_MAX_RANK, CLT_MAX_RANK);
    clt_launch_index(l, start);
    clt_launch_index(l, end);
    clt_launch_int(l, end == g->k);
}

/* Long sums are made in parts, a launch each: loops stay short (see cl/prelude.cl) and the
 * error of adding up in one variable low. */
static void lower_matmul(clt_lowering *l, const clt_tensor *node) {
    enum { PART = 8192 };
    geometry g = geometry_of(node);
    bool kept = node->dtype != CLT_F32 && g.k > PART; /* sums are not rounded in between */
    int sums = kept ? clt_lower_scratch(l, (size_t)clt_tensor_elements(node) * sizeof(float)) : -1;
    for (int64_t start = 0; start < g.k; start += PART)
        launch_part(l, node, &g, sums, start, CLT_MIN(start + PART, g.k));
}

const clt_backend_row clt_reference_matmul_rows[] = {
    {CLT_REFERENCE(matmul), .types = CLT_ANY_FLOAT, .large = true, .lower = lower_matmul},
    {0},
};
