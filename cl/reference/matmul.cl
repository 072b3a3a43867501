/*
 * Matrix product with a batch. Transposition and broadcasting are in the strides.
 */

/* Rows of the result that a work-item computes: an element of b serves them all. */
#define MATMUL_ROWS 4

/*
 * c[batch, m, n] = sum over k from `start` to before `end` of a[batch, m, k] b[batch, k, n],
 * added to `sums`, what the launches before found, if `start` is not 0. All but the `last` one leave that there, in f32; for c of f32 it
 * is c.
 * size: M, N, batch. a_step: strides of m and k in a; b_step: of k and n in b.
 * A work-item computes MATMUL_ROWS rows of one column; those past the last are
 * computed as the last again and not written.
 */
kernel void ref_matmul(global const CLT_REAL *a, global const CLT_REAL *b, global float *sums, global CLT_REAL *c,
                       CLT_INDEX_VECTOR(4) size, CLT_INDEX_VECTOR(2) a_step, CLT_INDEX_VECTOR(2) b_step,
                       CLT_INDEX_VECTOR(8) batch_size, CLT_INDEX_VECTOR(8) a_batch, CLT_INDEX_VECTOR(8) b_batch,
                       CLT_INDEX start, CLT_INDEX end, int last) {
    CLT_INDEX rows = size.s0, columns = size.s1, row_blocks = (rows + MATMUL_ROWS - 1) / MATMUL_ROWS;
    CLT_INDEX i = get_global_id(0);
    if (i >= size.s2 * row_blocks * columns) return;
    CLT_INDEX n = i % columns, m = i / columns % row_blocks * MATMUL_ROWS, batch = i / columns / row_blocks;

    CLT_INDEX b_at = clt_batch_offset(batch, batch_size, b_batch) + n * b_step.s1;
    CLT_INDEX a_start = clt_batch_offset(batch, batch_size, a_batch);
    CLT_INDEX a_at[MATMUL_ROWS]; /* where the row of a begins */
    float sum[MATMUL_ROWS];
    for (int j = 0; j < MATMUL_ROWS; j++) {
        a_at[j] = a_start + min(m + j, rows - 1) * a_step.s0;
        sum[j] = 0;
    }
    for (CLT_INDEX k = start; k < end; k++) {
        float value = CLT_LOAD(b, b_at + k * b_step.s0);
        for (int j = 0; j < MATMUL_ROWS; j++) sum[j] += CLT_LOAD(a, a_at[j] + k * a_step.s1) * value;
    }
    for (int j = 0; j < MATMUL_ROWS && m + j < rows; j++) {
        CLT_INDEX at = (batch * rows + m + j) * columns + n;
        if (start > 0) sum[j] = sums[at] + sum[j];
        if (last) CLT_STORE(c, at, sum[j]);
        else sums[at] = sum[j];
    }
}
