/* The sum of a matrix product whose sums were split; parts are f32, c is stored as CLT_STORAGE. */

/* Vectors that a work-item of cpu_matmul_sum adds up. */
#define CPU_MATMUL_SUM_RUN 16

/*
 * c[i] = sum over the splits of partial[split, i], in their order. size: rows and columns of c, splits,
 * columns of partial. A work-item, CPU_MATMUL_SUM_RUN vectors.
 */
CLT_ITEM void cpu_matmul_sum_item(int item, global const float *partial, global CLT_RESULT_REAL *c,
                                  int4 size CLT_EPILOGUE_PARAMETERS) {
    int vectors = (size.s1 + CPU_WIDTH - 1) / CPU_WIDTH, count = size.s0 * vectors;
    int start = item * CPU_MATMUL_SUM_RUN, end = min(start + CPU_MATMUL_SUM_RUN, count);
    for (int i = start; i < end; i++) {
        int row = i / vectors, column = i % vectors * CPU_WIDTH;
        global const float *from = partial + row * size.s3 + column;
        cpu_vector sum = cpu_load(0, from);
        for (int split = 1; split < size.s2; split++)
            sum += cpu_load(0, from + split * size.s0 * size.s3);
        cpu_finish(c, row * size.s1 + column, column, sum, size.s1 - column CLT_EPILOGUE_ARGUMENTS);
    }
}
kernel void cpu_matmul_sum(global const float *partial, global CLT_RESULT_REAL *c, int4 size CLT_EPILOGUE_PARAMETERS) {
    cpu_matmul_sum_item(get_global_id(0), partial, c, size CLT_EPILOGUE_ARGUMENTS);
}
