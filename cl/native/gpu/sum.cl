/*
 * Adds up the parts of a contraction that was split: c[which, m, n] = sum over the splits of
 * parts[split][which][m][n], in their order, so that results are the same in each run.
 * size: M, N, of a batch, splits; result: elements in c from row to row, from one of the batch to the
 * next, pitch; columns: places of c's columns, as in gpu_place (shared.cl).
 * A work-item an element; neighbours read neighbours. Bound: reading the parts once.
 * In front, where the node has an epilogue: that, and GPU_CHANNEL (shared.cl).
 */
kernel void gpu_contract_sum(global const float *parts, global CLT_RESULT_REAL *c, int4 size, int4 result,
                             int8 columns CLT_EPILOGUE_PARAMETERS) {
    int i = get_global_id(0), count = size.s0 * size.s1 * size.s2;
    if (i >= count) return;
    float sum = 0;
    for (int split = 0; split < size.s3; split++) sum += parts[split * count + i];
    int n = i % size.s1, m = i / size.s1 % size.s0, which = i / size.s1 / size.s0;
    int h = n / columns.s1 % columns.s0 * columns.s3 + columns.s5, w = n % columns.s1 * columns.s4 + columns.s6;
    int at = which * result.s1 + m * result.s0 + n / columns.s1 / columns.s0 * columns.s2 + h * result.s2 + w;
    CLT_STORE_RESULT(c, at, CLT_EPILOGUE(sum, at, GPU_CHANNEL(which * size.s0 + m, n)));
}
