/*
 * Whether a matrix unit is there and does what unit.cl says: two sub-groups, each with numbers of its
 * own, small integers that every format holds, against plain sums. y[0]: 1 if all are the same.
 */
kernel __attribute__((reqd_work_group_size(2 * UNIT_LANES, 1, 1))) UNIT_ATTRIBUTE void
test(global float *y, float x) {
    local uint4 a_tiles[2 * UNIT_M * UNIT_WORDS / 4], b_tiles[2 * UNIT_N * UNIT_WORDS / 4];
    local float exchange[2 * UNIT_EXCHANGE];
    local int wrong[2 * UNIT_LANES];
    int item = get_local_id(0), lane = item % UNIT_LANES, group = item / UNIT_LANES;
    local uint *a_tile = (local uint *)a_tiles + group * UNIT_M * UNIT_WORDS;
    local uint *b_tile = (local uint *)b_tiles + group * UNIT_N * UNIT_WORDS;
    for (int i = lane; i < UNIT_M * UNIT_K / 4; i += UNIT_LANES) {
        int row = i / (UNIT_K / 4), k = i % (UNIT_K / 4) * 4;
        float4 four = (float4)(row * 5 + k + group, row * 5 + k + 1, row * 3 - k, row - k * 2) - 16 + x - x;
        unit_pack(a_tile + row * UNIT_WORDS + k * UNIT_WORDS / UNIT_K, four);
    }
    for (int i = lane; i < UNIT_N * UNIT_K / 4; i += UNIT_LANES) {
        int column = i / (UNIT_K / 4), k = i % (UNIT_K / 4) * 4;
        float4 four = (float4)(k * 3 - column, column * 7 - k, k + column + group, 11 - column) - 8;
        unit_pack(b_tile + column * UNIT_WORDS + k * UNIT_WORDS / UNIT_K, four);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint a[UNIT_A], b[UNIT_B];
    float c[UNIT_C];
    for (int i = 0; i < UNIT_A; i++) a[i] = unit_a(a_tile, UNIT_WORDS, lane, i);
    for (int i = 0; i < UNIT_B; i++) b[i] = unit_b(b_tile, UNIT_WORDS, lane, i);
    for (int i = 0; i < UNIT_C; i++) c[i] = i;
    unit_multiply(a, b, c, lane, exchange + group * UNIT_EXCHANGE);
    wrong[item] = 0;
    for (int i = 0; i < UNIT_C; i++) {
        int2 at = unit_c(lane, i);
        float sum = i;
        for (int k = 0; k < UNIT_K; k += 4) {
            float4 left = (float4)(at.s0 * 5 + k + group, at.s0 * 5 + k + 1, at.s0 * 3 - k, at.s0 - k * 2) - 16;
            float4 right = (float4)(k * 3 - at.s1, at.s1 * 7 - k, k + at.s1 + group, 11 - at.s1) - 8;
            sum += left.s0 * right.s0 + left.s1 * right.s1 + left.s2 * right.s2 + left.s3 * right.s3;
        }
        wrong[item] += c[i] != sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        int all = 0;
        for (int i = 0; i < 2 * UNIT_LANES; i++) all += wrong[i];
        y[0] = all == 0 ? 1.0f : 0.0f;
    }
}
