/*
 * Contraction for devices whose work-items are lanes: c[m, n] = sum over k of a[m, k] b[k, n], computed in f32.
 *
 * Tile: a work-group computes GPU_M x GPU_N with GPU_K steps of the sum in local memory at a time, a
 * work-item GPU_ITEM_M x GPU_ITEM_N in registers, as blocks of 4 x 4 spread over the tile, so that a
 * warp's reads of local memory are whole rows or broadcasts. 32 work-items that follow one another
 * are 8 x 4 in the tile: 3 reads of 16 bytes serve 8 rows and 4 columns of items.
 * Access: operands come by operand.cl, neighbours reading neighbours, 16 bytes a load where
 * alignment allows; the next tile is on its way to registers while this one is multiplied, and there
 * are two tiles in local memory, so that a step needs one barrier. Rows in local memory are 4
 * words longer than the tile: transposing stores hit 16 banks or more.
 * Four steps of the sum are unrolled: with eight, clang 15 has all their reads of local memory in
 * flight and takes 220 registers on AMD's gfx90a and gfx1030, with four 109 to 123 (128 x 128), none
 * spilled; 16 reads of 16 bytes for 256 fused multiply-adds.
 * Bound: multiply-adds. With 8 x 8 a work-item, a step reads 64 bytes of local memory for 64 of
 * them; a tile of 128 x 128 x 8 reads 8 KiB of global memory for 131072, 16 a byte.
 *
 * Sums that many rows and columns do not spread over the device are split over k: parts are then
 * added up by gpu_contract_sum, in their order.
 *
 * In front: GPU_ITEM_M, GPU_ITEM_N, GPU_RESULT_VECTOR (1: four columns of the result lie side by side
 * and aligned), shared.cl and operand.cl for both sides.
 */
#define GPU_LANES_M (GPU_M / GPU_ITEM_M)
#define GPU_LANES_N (GPU_N / GPU_ITEM_N)

/* A work-item's place among GPU_LANES_M x GPU_LANES_N. */
static int2 gpu_lane(int item) {
#if GPU_LANES_M % 8 == 0 && GPU_LANES_N % 4 == 0
    int warp = item / 32, lane = item % 32;
    return (int2)(warp / (GPU_LANES_N / 4) * 8 + lane / 4, warp % (GPU_LANES_N / 4) * 4 + lane % 4);
#else
    return (int2)(item / GPU_LANES_N, item % GPU_LANES_N);
#endif
}

/* Four columns from n on; the row begins at element `start`. */
static void gpu_put(global GPU_REAL *c, int start, int row, int n, int columns, int8 place, int pitch,
                    float4 value CLT_EPILOGUE_PARAMETERS) {
    float four[4] = {value.s0, value.s1, value.s2, value.s3};
#if GPU_RESULT_VECTOR
    if (n >= columns) return;
    int at = start + gpu_place(n, place, pitch).s0;
    GPU_UNROLL for (int j = 0; j < 4; j++) four[j] = CLT_EPILOGUE(four[j], at + j, GPU_CHANNEL(row, n + j));
    GPU_STORE_FOUR(c, at, ((float4)(four[0], four[1], four[2], four[3])));
#else
    GPU_UNROLL for (int j = 0; j < 4; j++) if (n + j < columns) {
        int at = start + gpu_place(n + j, place, pitch).s0;
        GPU_STORE(c, at, CLT_EPILOGUE(four[j], at, GPU_CHANNEL(row, n + j)));
    }
#endif
}

/*
 * size: M, N, K and how many of a batch; cut: splits, and steps of the sum in each;
 * batch: its dimensions, then what its steps are in a and b; result: elements from row to row, from
 * one of the batch to the next, from split to split, pitch; columns: places of the result's columns.
 * rows, steps: the places of an operand's rows and steps of the sum (linear: s2 alone);
 * bounds: height and width, that is pitch, of an operand's pictures.
 */
kernel GPU_FIXED_GROUP void
gpu_contract(global const CLT_REAL *a, global const CLT_REAL *b, global GPU_REAL *c, int4 size, int2 cut,
             int8 batch, int8 a_batch, int8 b_batch, int4 result, int8 columns, int8 a_rows, int8 a_steps,
             int2 a_bounds, int8 b_rows, int8 b_steps, int2 b_bounds CLT_EPILOGUE_PARAMETERS) {
    local float4 a_tiles[2 * GPU_K * GPU_PITCH(GPU_M) / 4], b_tiles[2 * GPU_K * GPU_PITCH(GPU_N) / 4];
    local int4 a_table[2 * GPU_K], b_table[2 * GPU_K];
    int item = get_local_id(0);
    int4 tile = gpu_tile(get_group_id(0), (size.s0 + GPU_M - 1) / GPU_M, (size.s1 + GPU_N - 1) / GPU_N);
    int which = tile.s2 / cut.s0, split = tile.s2 % cut.s0;
    int first = split * cut.s1, end = min(first + cut.s1, size.s2);
    int tiles = (end - first + GPU_K - 1) / GPU_K;
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
    gpu_a_store((local float *)a_tiles, item, a_next);
    gpu_b_store((local float *)b_tiles, item, b_next);
    barrier(CLK_LOCAL_MEM_FENCE);

    int2 lane = gpu_lane(item);
    float4 sum[GPU_ITEM_M][GPU_ITEM_N / 4];
    GPU_UNROLL for (int i = 0; i < GPU_ITEM_M; i++) GPU_UNROLL for (int j = 0; j < GPU_ITEM_N / 4; j++)
        sum[i][j] = (float4)(0);
    for (int t = 0; t < tiles; t++) {
        int now = t & 1, next = now ^ 1, from = first + (t + 1) * GPU_K;
        bool more = t + 1 < tiles;
        if (more) {
            gpu_a_load(&a_own, a, a_table + next * GPU_K, item, from, end, a_steps.s2, a_bounds, a_next);
            gpu_b_load(&b_own, b, b_table + next * GPU_K, item, from, end, b_steps.s2, b_bounds, b_next);
        }
        local const float4 *a_now = a_tiles + now * (GPU_K * GPU_PITCH(GPU_M) / 4) + lane.s0;
        local const float4 *b_now = b_tiles + now * (GPU_K * GPU_PITCH(GPU_N) / 4) + lane.s1;
        GPU_UNROLL_4 for (int k = 0; k < GPU_K; k++) {
            float4 left[GPU_ITEM_M / 4], right[GPU_ITEM_N / 4];
            GPU_UNROLL for (int i = 0; i < GPU_ITEM_M / 4; i++) left[i] =
                a_now[k * (GPU_PITCH(GPU_M) / 4) + i * GPU_LANES_M];
            GPU_UNROLL for (int j = 0; j < GPU_ITEM_N / 4; j++) right[j] =
                b_now[k * (GPU_PITCH(GPU_N) / 4) + j * GPU_LANES_N];
            GPU_UNROLL for (int i = 0; i < GPU_ITEM_M / 4; i++)
                GPU_UNROLL for (int j = 0; j < GPU_ITEM_N / 4; j++) {
                sum[4 * i][j] = left[i].s0 * right[j] + sum[4 * i][j];
                sum[4 * i + 1][j] = left[i].s1 * right[j] + sum[4 * i + 1][j];
                sum[4 * i + 2][j] = left[i].s2 * right[j] + sum[4 * i + 2][j];
                sum[4 * i + 3][j] = left[i].s3 * right[j] + sum[4 * i + 3][j];
            }
        }
        if (more) {
            gpu_a_store((local float *)a_tiles + next * GPU_K * GPU_PITCH(GPU_M), item, a_next);
            gpu_b_store((local float *)b_tiles + next * GPU_K * GPU_PITCH(GPU_N), item, b_next);
        }
        gpu_a_find(a_table + now * GPU_K, item, from + GPU_K, end, a_steps, a_bounds.s1);
        gpu_b_find(b_table + now * GPU_K, item, from + GPU_K, end, b_steps, b_bounds.s1);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    int start = which * result.s1 + split * result.s2;
    GPU_UNROLL for (int i = 0; i < GPU_ITEM_M; i++) {
        int m = tile.s0 * GPU_M + (i / 4 * GPU_LANES_M + lane.s0) * 4 + i % 4;
        if (m >= size.s0) continue;
        GPU_UNROLL for (int j = 0; j < GPU_ITEM_N / 4; j++) gpu_put(
            c, start + m * result.s0, which * size.s0 + m, tile.s1 * GPU_N + (j * GPU_LANES_N + lane.s1) * 4,
            size.s1, columns, result.s3, sum[i][j] CLT_EPILOGUE_ARGUMENTS);
    }
}
