/*
 * The contraction of native/gpu/contract.cl by matrix units: c[m, n] = sum over k of a[m, k] b[k, n],
 * operands rounded to the unit's format on their way into local memory, fp32 sums.
 *
 * Tile: a work-group computes GPU_M x GPU_N by WARPS_M x WARPS_N sub-groups, each a part of it in
 * fragments of UNIT_M x UNIT_N. A tile in local memory has 16 words of k for each row: two fragments.
 * Access: global memory as in operand.cl, four k of a row a slot; rows in local memory are 20 words
 * long, so that 8 rows x 4 words of a fragment (NVIDIA) lie in different banks.
 * Bound: the units, if a tile is large: 64 x 32 a sub-group reads 6 KiB of local memory for 64 K
 * products in 16 bits.
 *
 * Compiled by clang (not run) for the real instructions: NVIDIA sm_80 to PTX (no local memory), gfx90a
 * with 224 to 232 registers, gfx1100 with 109 (128 x 128 by 4 x 4 waves); none spilled.
 *
 * In front: GPU_M, GPU_N, GPU_K, GPU_ITEMS, WARPS_M, WARPS_N, shared.cl, unit.cl, layout.cl, and
 * operand.cl for both sides.
 */
#define WARP_M (GPU_M / WARPS_M / UNIT_M) /* fragments of a sub-group */
#define WARP_N (GPU_N / WARPS_N / UNIT_N)
/* Fragments of 8 words a lane: two steps at a time would spill registers. */
#if UNIT_A == 8
#define MATRIX_UNROLL _Pragma("unroll 1")
#else
#define MATRIX_UNROLL GPU_UNROLL
#endif

kernel GPU_FIXED_GROUP UNIT_ATTRIBUTE void
matrix_contract(global const CLT_REAL *a, global const CLT_REAL *b, global GPU_REAL *c, int4 size, int2 cut,
                int8 batch, int8 a_batch, int8 b_batch, int4 result, int8 columns, int8 a_rows,
                int8 a_steps, int2 a_bounds, int8 b_rows, int8 b_steps, int2 b_bounds CLT_EPILOGUE_PARAMETERS) {
    local uint4 a_tiles[2 * GPU_M * MATRIX_PITCH / 4], b_tiles[2 * GPU_N * MATRIX_PITCH / 4];
    local int4 a_table[2 * GPU_K], b_table[2 * GPU_K];
    local float exchange[WARPS_M * WARPS_N * UNIT_EXCHANGE];
    int item = get_local_id(0), lane = item % UNIT_LANES, warp = item / UNIT_LANES;
    int4 tile = gpu_tile(get_group_id(0), (size.s0 + GPU_M - 1) / GPU_M, (size.s1 + GPU_N - 1) / GPU_N);
    int which = tile.s2 / cut.s0, split = tile.s2 % cut.s0;
    int first = split * cut.s1, end = min(first + cut.s1, size.s2);
    int tiles = (end - first + GPU_K - 1) / GPU_K;
    int m0 = warp / WARPS_N * WARP_M * UNIT_M, n0 = warp % WARPS_N * WARP_N * UNIT_N;
    a += clt_batch_offset(which, batch, a_batch);
    b += clt_batch_offset(which, batch, b_batch);

    gpu_a_rows a_own;
    gpu_b_rows b_own;
    gpu_a_begin(&a_own, item, tile.s0 * GPU_M, size.s0, a_rows, a_bounds.s1);
    gpu_b_begin(&b_own, item, tile.s1 * GPU_N, size.s1, b_rows, b_bounds.s1);
    float4 a_next[GPU_M * GPU_K / 4 / GPU_ITEMS], b_next[GPU_N * GPU_K / 4 / GPU_ITEMS];
    gpu_a_find(a_table, item, first, end, a_steps, a_bounds.s1);
    gpu_b_find(b_table, item, first, end, b_steps, b_bounds.s1);
    gpu_a_find(a_table + GPU_K, item, first + GPU_K, end, a_steps, a_bounds.s1);
    gpu_b_find(b_table + GPU_K, item, first + GPU_K, end, b_steps, b_bounds.s1);
    barrier(CLK_LOCAL_MEM_FENCE);
    gpu_a_load(&a_own, a, a_table, item, first, end, a_steps.s2, a_bounds, a_next);
    gpu_b_load(&b_own, b, b_table, item, first, end, b_steps.s2, b_bounds, b_next);
    gpu_a_store((local uint *)a_tiles, item, a_next);
    gpu_b_store((local uint *)b_tiles, item, b_next);
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum[WARP_M][WARP_N][UNIT_C];
    GPU_UNROLL for (int i = 0; i < WARP_M; i++) GPU_UNROLL for (int j = 0; j < WARP_N; j++)
        GPU_UNROLL for (int r = 0; r < UNIT_C; r++) sum[i][j][r] = 0;
    for (int t = 0; t < tiles; t++) {
        int now = t & 1, next = now ^ 1, from = first + (t + 1) * GPU_K;
        bool more = t + 1 < tiles;
        if (more) {
            gpu_a_load(&a_own, a, a_table + next * GPU_K, item, from, end, a_steps.s2, a_bounds, a_next);
            gpu_b_load(&b_own, b, b_table + next * GPU_K, item, from, end, b_steps.s2, b_bounds, b_next);
        }
        local const uint *a_now = (local uint *)a_tiles + (now * GPU_M + m0) * MATRIX_PITCH;
        local const uint *b_now = (local uint *)b_tiles + (now * GPU_N + n0) * MATRIX_PITCH;
        MATRIX_UNROLL for (int word = 0; word < MATRIX_WORDS; word += UNIT_WORDS) {
            uint left[WARP_M][UNIT_A], right[WARP_N][UNIT_B];
            GPU_UNROLL for (int i = 0; i < WARP_M; i++) GPU_UNROLL for (int r = 0; r < UNIT_A; r++)
                left[i][r] = unit_a(a_now + i * UNIT_M * MATRIX_PITCH + word, MATRIX_PITCH, lane, r);
            GPU_UNROLL for (int j = 0; j < WARP_N; j++) GPU_UNROLL for (int r = 0; r < UNIT_B; r++)
                right[j][r] = unit_b(b_now + j * UNIT_N * MATRIX_PITCH + word, MATRIX_PITCH, lane, r);
            GPU_UNROLL for (int i = 0; i < WARP_M; i++) GPU_UNROLL for (int j = 0; j < WARP_N; j++)
                unit_multiply(left[i], right[j], sum[i][j], lane, exchange + warp * UNIT_EXCHANGE);
        }
        if (more) {
            gpu_a_store((local uint *)a_tiles + next * GPU_M * MATRIX_PITCH, item, a_next);
            gpu_b_store((local uint *)b_tiles + next * GPU_N * MATRIX_PITCH, item, b_next);
        }
        gpu_a_find(a_table + now * GPU_K, item, from + GPU_K, end, a_steps, a_bounds.s1);
        gpu_b_find(b_table + now * GPU_K, item, from + GPU_K, end, b_steps, b_bounds.s1);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    int start = which * result.s1 + split * result.s2;
    GPU_UNROLL for (int j = 0; j < WARP_N; j++) GPU_UNROLL for (int r = 0; r < UNIT_C; r++) {
        int2 at = unit_c(lane, r);
        int m = tile.s0 * GPU_M + m0 + at.s0, n = tile.s1 * GPU_N + n0 + j * UNIT_N + at.s1;
        if (n >= size.s1) continue;
        int column = start + gpu_place(n, columns, result.s3).s0;
        GPU_UNROLL for (int i = 0; i < WARP_M; i++) if (m + i * UNIT_M < size.s0) {
            int row = m + i * UNIT_M, to = column + row * result.s0;
            GPU_STORE(c, to, CLT_EPILOGUE(sum[i][j][r], to, GPU_CHANNEL(which * size.s0 + row, n)));
        }
    }
}
