/*
 * Matrix product with a batch. Transposition and broadcasting are in the strides.
 */

/* Rows of the result that a work-item computes: an element of b serves them all. */
#define MATMUL_ROWS 4

/*
 * c[batch, m, n] = sum over k from `start` to before `end` of a[batch, m, k] b[batch, k, n],
 * added to what the launches before found if `start` is not 0.
 * size: M, N, batch. a_step: strides of m and k in a; b_step: of k and n in b.
 * A work-item computes MATMUL_ROWS rows of one column; those past the last are
 * computed as the last again and not written.
 */
kernel void ref_matmul(global const float *a, global const float *b, global float *c, int4 size,
                       int2 a_step, int2 b_step, int8 batch_size, int8 a_batch, int8 b_batch, int start,
                       int end) {
    int rows = size.s0, columns = size.s1, row_blocks = (rows + MATMUL_ROWS - 1) / MATMUL_ROWS;
    int i = get_global_id(0);
    if (i >= size.s2 * row_blocks * columns) return;
    int n = i % columns, m = i / columns % row_blocks * MATMUL_ROWS, batch = i / columns / row_blocks;

    int b_at = clt_batch_offset(batch, batch_size, b_batch) + n * b_step.s1;
    int a_start = clt_batch_offset(batch, batch_size, a_batch);
    int a_at[MATMUL_ROWS]; /* where the row of a begins */
    float sum[MATMUL_ROWS];
    for (int j = 0; j < MATMUL_ROWS; j++) {
        a_at[j] = a_start + min(m + j, rows - 1) * a_step.s0;
        sum[j] = 0;
    }
    for (int k = start; k < end; k++) {
        float value = b[b_at + k * b_step.s0];
        for (int j = 0; j < MATMUL_ROWS; j++) sum[j] += a[a_at[j] + k * a_step.s1] * value;
    }
    for (int j = 0; j < MATMUL_ROWS && m + j < rows; j++) {
        int at = (batch * rows + m + j) * columns + n;
        c[at] = start == 0 ? sum[j] : c[at] + sum[j];
    }
}
