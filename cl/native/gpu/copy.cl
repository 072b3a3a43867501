/*
 * Copies between boxes with strides for devices whose work-items are lanes: element i of a box (row-major, the last component innermost) goes from
 * x[x_offset + sum i_d x_stride_d] to y[y_offset + sum i_d y_stride_d]. Copies change no bits: an element here is a GPU_COPY, an unsigned type, which holds
 * several elements of a tensor where these lie side by side on both sides. Bound: memory.
 *
 * In front: GPU_ITEMS, GPU_FIXED_GROUP, GPU_COPY, and GPU_RANK, of the box: its dimensions are the last components.
 */
#define COPY_SIDE 32 /* of a tile, and lanes along it */
#define COPY_ROWS (GPU_ITEMS / COPY_SIDE)

#define COPY_STEP(d)               \
    if (GPU_RANK > 7 - d) {        \
        int place = i % size.s##d; \
        i /= size.s##d;            \
        from += place * xs.s##d;   \
        to += place * ys.s##d;     \
    }
#define COPY_PLACES COPY_STEP(7) COPY_STEP(6) COPY_STEP(5) COPY_STEP(4) COPY_STEP(3) COPY_STEP(2) COPY_STEP(1) COPY_STEP(0)

/* One work-item an element. */
kernel GPU_FIXED_GROUP void gpu_copy(global const GPU_COPY *x, global GPU_COPY *y, int8 size, int8 xs, int8 ys, int x_offset, int y_offset, int count) {
    int i = get_global_id(0), from = x_offset, to = y_offset;
    if (i >= count) return;
    COPY_PLACES
    y[to] = x[from];
}

/* y[j plane.s3 + i] = x[i plane.s2 + j] for i below plane.s0 and j below plane.s1, of all planes that the box counts: a work-group has a tile, which goes
 * through local memory, so that neighbouring work-items have neighbours on both sides. */
kernel GPU_FIXED_GROUP void gpu_copy_planes(global const GPU_COPY *x, global GPU_COPY *y, int8 size, int8 xs, int8 ys, int x_offset, int y_offset,
                                            int4 plane) {
    local GPU_COPY tile[COPY_SIDE][COPY_SIDE + 1]; /* no two rows begin in the same bank */
    int tiles_i = (plane.s0 + COPY_SIDE - 1) / COPY_SIDE, tiles_j = (plane.s1 + COPY_SIDE - 1) / COPY_SIDE, group = get_group_id(0);
    int first_i = group % tiles_i * COPY_SIDE, first_j = group / tiles_i % tiles_j * COPY_SIDE, i = group / tiles_i / tiles_j;
    int lane = get_local_id(0) % COPY_SIDE, row = get_local_id(0) / COPY_SIDE, from = x_offset, to = y_offset;
    COPY_PLACES
    _Pragma("unroll 4") for (int r = row; r < COPY_SIDE; r += COPY_ROWS)
        if (first_i + r < plane.s0 && first_j + lane < plane.s1) tile[r][lane] = x[from + (first_i + r) * plane.s2 + first_j + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    _Pragma("unroll 4") for (int r = row; r < COPY_SIDE; r += COPY_ROWS)
        if (first_j + r < plane.s1 && first_i + lane < plane.s0) y[to + (first_j + r) * plane.s3 + first_i + lane] = tile[lane][r];
}

/* `bits`: of a float, or of a half twice. */
kernel GPU_FIXED_GROUP void gpu_fill(global GPU_COPY *y, int count, uint bits) {
    int i = get_global_id(0);
    if (i < count) y[i] = (GPU_COPY)(bits);
}
