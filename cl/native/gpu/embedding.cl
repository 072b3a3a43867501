/*
 * The gradient of a table by rows for devices whose work-items are lanes. indices [positions], dy [positions, width], dweight [rows, width]. A work-group
 * owns EMBEDDING_ROWS rows and GPU_ITEMS * EMBEDDING_VECTOR columns of them. It looks through the positions a tile at a time, lists those that name one of
 * its rows, in their order, and each work-item adds these to its own columns in local memory: no atomics, and a row's sum has the bits of the reference.
 * Bound: memory of dy and of the table, and the indices once for each group.
 *
 * In front: GPU_ITEMS, GPU_FIXED_GROUP, EMBEDDING_ROWS, a power of two, and EMBEDDING_VECTOR, 4 or 1.
 */
#define EMBEDDING_EACH 8 /* positions that a work-item looks at */
#define EMBEDDING_TILE (GPU_ITEMS * EMBEDDING_EACH)
#define GPU_UNROLL     _Pragma("unroll")

#if EMBEDDING_VECTOR == 4
#define EMBEDDING_PART float4
#else
#define EMBEDDING_PART float
#endif
#define EMBEDDING_AT(p, i) (*(global EMBEDDING_PART *)((p) + (i)))
#define EMBEDDING_READ(p, i) (*(global const EMBEDDING_PART *)((p) + (i)))

/* The positions from `start` to before `end`; added to what the launches before found if `start` is not 0. `blocks`: groups that share some rows. */
kernel GPU_FIXED_GROUP void gpu_embedding_grad(global const int *indices, global const float *dy, global float *dweight, int width, int rows, int blocks,
                                               int start, int end) {
    local EMBEDDING_PART sums[EMBEDDING_ROWS * GPU_ITEMS];
    local int found[EMBEDDING_TILE], counts[GPU_ITEMS];
    int lane = get_local_id(0), group = get_group_id(0);
    int first = group / blocks * EMBEDDING_ROWS, last = min(first + EMBEDDING_ROWS, rows), column = (group % blocks * GPU_ITEMS + lane) * EMBEDDING_VECTOR;
    bool there = column < width;
    if (first >= rows) return;
    for (int row = first; row < last; row++)
        sums[(row - first) * GPU_ITEMS + lane] = there && start > 0 ? EMBEDDING_AT(dweight, row * width + column) : (EMBEDDING_PART)(0);
    for (int at = start; at < end; at += EMBEDDING_TILE) {
        int row[EMBEDDING_EACH], n = 0;
        GPU_UNROLL for (int k = 0; k < EMBEDDING_EACH; k++) {
            int place = at + lane * EMBEDDING_EACH + k, index = place < end ? indices[place] : -1;
            row[k] = index >= first && index < last ? index - first : -1;
            n += row[k] >= 0;
        }
        /* How many the work-items before it have. */
        counts[lane] = n;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = 1; step < GPU_ITEMS; step *= 2) {
            int before = lane >= step ? counts[lane - step] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            counts[lane] += before;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        int total = counts[GPU_ITEMS - 1], next = counts[lane] - n;
        GPU_UNROLL for (int k = 0; k < EMBEDDING_EACH; k++)
            if (row[k] >= 0) found[next++] = (lane * EMBEDDING_EACH + k) * EMBEDDING_ROWS + row[k];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; there && j < total; j++) {
            int place = at + found[j] / EMBEDDING_ROWS;
            sums[found[j] % EMBEDDING_ROWS * GPU_ITEMS + lane] += EMBEDDING_READ(dy, place * width + column);
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* the list and the counts have been read */
    }
    for (int row = first; there && row < last; row++) EMBEDDING_AT(dweight, row * width + column) = sums[(row - first) * GPU_ITEMS + lane];
}
