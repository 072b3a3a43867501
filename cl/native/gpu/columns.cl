/*
 * Sums down the columns of matrices [count, rows, columns] for devices whose work-items are lanes: GPU_LANES work-items have neighbouring columns,
 * GPU_VECTOR each, and GPU_ITEMS / GPU_LANES of them take every so many rows, which are added up in local memory at the end, in a fixed order. A
 * work-group has a chunk of rows. Bound: memory, once.
 *
 * In front: fours.cl, GPU_ITEMS, GPU_FIXED_GROUP, GPU_LANES, and GPU_VECTOR.
 */
#define COLUMNS_SLICES (GPU_ITEMS / GPU_LANES)

/* y[which, chunk, c] = scale sum over the chunk's rows r of x[which, r, c]. shape: count, rows, columns, chunks; `length` rows in a chunk. */
kernel GPU_FIXED_GROUP void gpu_columns_sum(global const CLT_REAL *x, global GPU_REAL *y, int4 shape, int length, float scale) {
    local GPU_PART sums[GPU_ITEMS];
    int blocks = (shape.s2 + GPU_LANES * GPU_VECTOR - 1) / (GPU_LANES * GPU_VECTOR);
    int group = get_group_id(0), id = get_local_id(0), slice = id / GPU_LANES;
    int column = (group % blocks * GPU_LANES + id % GPU_LANES) * GPU_VECTOR, chunk = group / blocks % shape.s3, which = group / blocks / shape.s3;
    if (which >= shape.s0) return;
    bool there = column < shape.s2;
    int first = chunk * length, last = min(first + length, shape.s1), at = (which * shape.s1 + first + slice) * shape.s2 + column;
    GPU_PART sum = 0;
    _Pragma("unroll 4") for (int r = first + slice; there && r < last; r += COLUMNS_SLICES, at += COLUMNS_SLICES * shape.s2) sum += GPU_LOAD_PART(x, at);
    sums[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = COLUMNS_SLICES / 2; step > 0; step /= 2) {
        if (slice < step) sums[id] += sums[id + step * GPU_LANES];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (there && slice == 0) GPU_STORE_PART(y, (which * shape.s3 + chunk) * shape.s2 + column, sums[id] * scale);
}
