/*
 * Scaled dot-product attention and its gradients (formulas: runtime/ops/attention.c) for devices whose work-items are lanes. A work-group takes
 * GPU_T rows of one head, and goes over the other side in tiles of GPU_T: their scores, GPU_T x GPU_T, are made in registers, 4 x 4 a work-item, become
 * weights there, and are multiplied with the tile's rows through local memory. Forward keeps a running maximum and sum of each row (Milakov, Gimelshein
 * 2018; Dao et al. 2022): the work-items of a row have the same maximum, and each the sum of its own columns. Rows come by pieces of GPU_T columns, so local
 * memory, two tiles, does not grow with D; what is outside is 0. Where D is a multiple of four, so many elements are one access. Queries, keys, values and
 * their gradients are of any storage type.
 *
 * In front: fours.cl, GPU_T, GPU_ITEMS, (GPU_T / 4)^2 of them, GPU_FIXED_GROUP, ATTENTION_D, GPU_VECTOR, 4 or 1, by which D can be divided, and
 * reference/scores.cl, which has what `size` and the others are.
 */
#define GPU_LANES  (GPU_T / 4)
#define GPU_PITCH  (GPU_T + 4) /* a turned tile's stores hit several banks */
#define GPU_PIECES ((ATTENTION_D + GPU_T - 1) / GPU_T)
#define GPU_UNROLL   _Pragma("unroll")
#if GPU_VECTOR == 4
#define GPU_PUT_ROW(to, part) vstore4(part, 0, to)
#define GPU_PUT_COLUMN(to, part) \
    (to)[0] = (part).s0, (to)[GPU_PITCH] = (part).s1, (to)[2 * GPU_PITCH] = (part).s2, (to)[3 * GPU_PITCH] = (part).s3
#else
#define GPU_PUT_ROW(to, part)    (to)[0] = (part)
#define GPU_PUT_COLUMN(to, part) (to)[0] = (part)
#endif
#define GPU_UNROLL_4 _Pragma("unroll 4") /* more, and their loads take registers that tiles need */
#define GPU_UNROLL_1 _Pragma("unroll 1")

#define ATTENTION_OPTIONS global const float *mask, global const int *position_ids, global const int *rng
#define ATTENTION_SCALARS int8 size, int4 strides, int places, int masked, int site, float scale, float dropout

/* GPU_T columns from c on of `rows` rows of x; turned: a column's elements lie side by side. */
static void gpu_attention_load(local float *tile, global const CLT_REAL *x, int rows, int c, bool turned) {
    GPU_UNROLL_1 for (int i = get_local_id(0); i < GPU_T * GPU_T / GPU_VECTOR; i += GPU_ITEMS) {
        int row = i / (GPU_T / GPU_VECTOR), column = i % (GPU_T / GPU_VECTOR) * GPU_VECTOR;
        GPU_PART value = row < rows && c + column < ATTENTION_D ? GPU_LOAD_PART(x, row * ATTENTION_D + c + column) : 0.0f;
        if (turned) GPU_PUT_COLUMN(tile + column * GPU_PITCH + row, value);
        else GPU_PUT_ROW(tile + row * GPU_PITCH + column, value);
    }
}

/* sum += left times right, one from each of four rows and columns */
#define GPU_ATTENTION_STEP(sum, left, right) \
    do {                                     \
        (sum)[0] = left.s0 * right + (sum)[0]; \
        (sum)[1] = left.s1 * right + (sum)[1]; \
        (sum)[2] = left.s2 * right + (sum)[2]; \
        (sum)[3] = left.s3 * right + (sum)[3]; \
    } while (0)

/* sum[i][j] = row 4 lane.s0 + i of x . row 4 lane.s1 + j of y */
CLT_TOGETHER void gpu_attention_product(float4 *sum, local float *a, local float *b, global const CLT_REAL *x, int x_rows, global const CLT_REAL *y,
                                        int y_rows, int2 lane) {
    GPU_UNROLL for (int i = 0; i < 4; i++) sum[i] = (float4)(0);
    for (int c = 0; c < ATTENTION_D; c += GPU_T) {
        barrier(CLK_LOCAL_MEM_FENCE); /* what was there has been read */
        gpu_attention_load(a, x, x_rows, c, true);
        gpu_attention_load(b, y, y_rows, c, true);
        barrier(CLK_LOCAL_MEM_FENCE);
        GPU_UNROLL_4 for (int k = 0; k < min(GPU_T, ATTENTION_D - c); k++) {
            float4 left = vload4(lane.s0, a + k * GPU_PITCH), right = vload4(lane.s1, b + k * GPU_PITCH);
            GPU_ATTENTION_STEP(sum, left, right);
        }
    }
}

/* The 4 x 4 elements of a matrix [row][column] into a tile [column][row]. */
CLT_TOGETHER void gpu_attention_turn(local float *tile, const float4 *value, int2 lane) {
    barrier(CLK_LOCAL_MEM_FENCE);
    local float *to = tile + 4 * lane.s1 * GPU_PITCH;
    vstore4((float4)(value[0].s0, value[1].s0, value[2].s0, value[3].s0), lane.s0, to);
    vstore4((float4)(value[0].s1, value[1].s1, value[2].s1, value[3].s1), lane.s0, to + GPU_PITCH);
    vstore4((float4)(value[0].s2, value[1].s2, value[2].s2, value[3].s2), lane.s0, to + 2 * GPU_PITCH);
    vstore4((float4)(value[0].s3, value[1].s3, value[2].s3, value[3].s3), lane.s0, to + 3 * GPU_PITCH);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* out += weights [k][row] times `rows` rows k of x */
CLT_TOGETHER void gpu_attention_add(float4 (*out)[4], local const float *weights, local float *b, global const CLT_REAL *x, int rows, int2 lane) {
    GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        gpu_attention_load(b, x, rows, piece * GPU_T, false);
        barrier(CLK_LOCAL_MEM_FENCE);
        GPU_UNROLL_4 for (int k = 0; k < GPU_T; k++) {
            float4 left = vload4(lane.s0, weights + k * GPU_PITCH), right = vload4(lane.s1, b + k * GPU_PITCH);
            GPU_ATTENTION_STEP(out[piece], left, right);
        }
    }
}

/* `rows` rows of y from its first on = out, row by row times `factors` */
static void gpu_attention_put(global CLT_REAL *y, int rows, float4 (*out)[4], const float *factors, int2 lane) {
    GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++) GPU_UNROLL for (int i = 0; i < 4; i++) {
        int row = 4 * lane.s0 + i, column = piece * GPU_T + 4 * lane.s1;
#if GPU_VECTOR == 4
        if (row < rows && column < ATTENTION_D) GPU_STORE_FOUR(y, row * ATTENTION_D + column, out[piece][i] * factors[i]);
#else
        float four[4];
        vstore4(out[piece][i] * factors[i], 0, four);
        GPU_UNROLL for (int j = 0; j < 4; j++)
            if (row < rows && column + j < ATTENTION_D) CLT_STORE(y, row * ATTENTION_D + column + j, four[j]);
#endif
    }
}

/* Of GPU_T queries from `row` on, `rows` of them: how many keys each sees. Gives the most. */
CLT_TOGETHER int gpu_attention_see(local int *seen, int row, int rows, int8 size, int places, global const int *position_ids) {
    int item = get_local_id(0), most = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < GPU_T) seen[item] = item < rows ? attention_seen(row + item, size, places, position_ids) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < GPU_T; i++) most = max(most, seen[i]);
    return most;
}

/* A work-item's four rows and columns. */
static int2 gpu_attention_lane(void) {
    int item = get_local_id(0);
    return (int2)(item / GPU_LANES, item % GPU_LANES);
}

kernel GPU_FIXED_GROUP void gpu_attention(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v, ATTENTION_OPTIONS, global CLT_REAL *y,
                                          global float *tops, ATTENTION_SCALARS) {
    local float a[GPU_T * GPU_PITCH], b[GPU_T * GPU_PITCH], parts[GPU_T * GPU_LANES];
    local int seen[GPU_T];
    int t = size.s2, s = size.s3, tiles = (t + GPU_T - 1) / GPU_T, head = get_group_id(0) / tiles, first = get_group_id(0) % tiles * GPU_T;
    int rows = min(GPU_T, t - first), row = head * t + first, key = attention_keys(head, size);
    int2 lane = gpu_attention_lane();
    float4 out[GPU_PIECES][4], sum[4];
    float maxima[4], sums[4];
    int end = gpu_attention_see(seen, row, rows, size, places, position_ids);
    GPU_UNROLL for (int i = 0; i < 4; i++) {
        maxima[i] = -INFINITY;
        sums[i] = 0;
    }
    GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++) GPU_UNROLL for (int i = 0; i < 4; i++) out[piece][i] = (float4)(0);
    for (int j = 0; j < end; j += GPU_T) {
        gpu_attention_product(sum, a, b, q + row * ATTENTION_D, rows, k + (key + j) * ATTENTION_D, s - j, lane);
        GPU_UNROLL for (int i = 0; i < 4; i++) {
            float four[4], most = -INFINITY;
            vstore4(sum[i] * scale, 0, four);
            for (int c = 0; c < 4; c++) { /* not asked to be unrolled: masks take registers */
                int own = 4 * lane.s0 + i, other = j + 4 * lane.s1 + c;
                four[c] = other < seen[own] ? attention_score(four[c], mask, masked, strides, row + own, other, size) : -INFINITY;
                most = clt_max(most, four[c]);
            }
            sum[i] = vload4(0, four);
            parts[(4 * lane.s0 + i) * GPU_LANES + lane.s1] = most;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        GPU_UNROLL for (int i = 0; i < 4; i++) {
            float four[4], most = maxima[i];
            GPU_UNROLL_4 for (int c = 0; c < GPU_LANES; c++) most = clt_max(most, parts[(4 * lane.s0 + i) * GPU_LANES + c]);
            float base = most == -INFINITY ? 0.0f : most, factor = exp(maxima[i] - base); /* -INFINITY: it sees none */
            float4 weights = exp(sum[i] - base);
            maxima[i] = most;
            sums[i] = sums[i] * factor + (weights.s0 + weights.s1 + (weights.s2 + weights.s3));
            vstore4(weights, 0, four);
            for (int c = 0; c < 4; c++) /* not asked to be unrolled: numbers of dropout take registers */
                four[c] *= attention_kept(rng, site, dropout, row + 4 * lane.s0 + i, j + 4 * lane.s1 + c, size);
            sum[i] = vload4(0, four);
            GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++) out[piece][i] *= factor;
        }
        gpu_attention_turn(a, sum, lane);
        gpu_attention_add(out, a, b, v + (key + j) * ATTENTION_D, s - j, lane);
    }
    float shares[4];
    barrier(CLK_LOCAL_MEM_FENCE); /* of those that saw no tile, too */
    GPU_UNROLL for (int i = 0; i < 4; i++) parts[(4 * lane.s0 + i) * GPU_LANES + lane.s1] = sums[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    GPU_UNROLL for (int i = 0; i < 4; i++) {
        float total = 0;
        int own = 4 * lane.s0 + i;
        GPU_UNROLL_4 for (int c = 0; c < GPU_LANES; c++) total += parts[own * GPU_LANES + c];
        shares[i] = 1 / (total == 0 ? 1 : total);
        if (lane.s1 == 0 && own < rows) vstore2(total == 0 ? (float2)(INFINITY, 0) : (float2)(maxima[i], 1 / total), row + own, tops);
    }
    gpu_attention_put(y + row * ATTENTION_D, rows, out, shares, lane);
}

/* The weight p of a score, what dropout makes of it, z p, and the gradient ds of the score by that of z p. */
static float2 gpu_attention_weigh(float score, bool sees, float gradient, float2 top, float delta, float kept) {
    float p = sees ? exp(score - top.s0) * top.s1 : 0.0f;
    return (float2)(kept * p, sees ? p * (kept * gradient - delta) : 0.0f);
}

kernel GPU_FIXED_GROUP void gpu_attention_grad_query(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v, global const float *tops,
                                                     global const float *deltas, global const CLT_REAL *dy, ATTENTION_OPTIONS, global CLT_REAL *dq,
                                                     ATTENTION_SCALARS) {
    local float a[GPU_T * GPU_PITCH], b[GPU_T * GPU_PITCH];
    local int seen[GPU_T];
    int t = size.s2, s = size.s3, tiles = (t + GPU_T - 1) / GPU_T, head = get_group_id(0) / tiles, first = get_group_id(0) % tiles * GPU_T;
    int rows = min(GPU_T, t - first), row = head * t + first, key = attention_keys(head, size);
    int2 lane = gpu_attention_lane();
    float4 out[GPU_PIECES][4], sum[4], gradient[4];
    int end = gpu_attention_see(seen, row, rows, size, places, position_ids);
    GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++) GPU_UNROLL for (int i = 0; i < 4; i++) out[piece][i] = (float4)(0);
    for (int j = 0; j < end; j += GPU_T) {
        gpu_attention_product(sum, a, b, q + row * ATTENTION_D, rows, k + (key + j) * ATTENTION_D, s - j, lane);
        gpu_attention_product(gradient, a, b, dy + row * ATTENTION_D, rows, v + (key + j) * ATTENTION_D, s - j, lane);
        GPU_UNROLL for (int i = 0; i < 4; i++) {
            float scores[4], gradients[4];
            vstore4(sum[i] * scale, 0, scores);
            vstore4(gradient[i], 0, gradients);
            for (int c = 0; c < 4; c++) { /* not asked to be unrolled: numbers of dropout take registers */
                int own = 4 * lane.s0 + i, other = j + 4 * lane.s1 + c, at = row + min(own, rows - 1);
                bool sees = other < seen[own];
                float score = sees ? attention_score(scores[c], mask, masked, strides, at, other, size) : 0.0f;
                gradients[c] = gpu_attention_weigh(score, sees, gradients[c], vload2(at, tops), deltas[at], attention_kept(rng, site, dropout, at, other, size)).s1;
            }
            gradient[i] = vload4(0, gradients);
        }
        gpu_attention_turn(a, gradient, lane);
        gpu_attention_add(out, a, b, k + (key + j) * ATTENTION_D, s - j, lane);
    }
    float factors[4] = {scale, scale, scale, scale};
    gpu_attention_put(dq + row * ATTENTION_D, rows, out, factors, lane);
}

/* A work-group takes GPU_T keys of a head, which several heads of queries may share. */
kernel GPU_FIXED_GROUP void gpu_attention_grad_key_value(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v,
                                                         global const float *tops, global const float *deltas, global const CLT_REAL *dy,
                                                         ATTENTION_OPTIONS, global CLT_REAL *dk, global CLT_REAL *dv, ATTENTION_SCALARS) {
    local float a[GPU_T * GPU_PITCH], b[GPU_T * GPU_PITCH];
    local int seen[GPU_T];
    int t = size.s2, s = size.s3, tiles = (s + GPU_T - 1) / GPU_T, head = get_group_id(0) / tiles, first = get_group_id(0) % tiles * GPU_T;
    int keys = min(GPU_T, s - first), key = head * s + first, shared = size.s5 / size.s1;
    int2 lane = gpu_attention_lane();
    float4 keys_out[GPU_PIECES][4], values_out[GPU_PIECES][4], sum[4], gradient[4];
    GPU_UNROLL for (int piece = 0; piece < GPU_PIECES; piece++)
        GPU_UNROLL for (int i = 0; i < 4; i++) keys_out[piece][i] = values_out[piece][i] = (float4)(0);
    for (int g = 0; g < shared; g++)
        for (int j = places == 1 ? first : 0; j < t; j += GPU_T) {
            int row = (head * shared + g) * t + j, rows = min(GPU_T, t - j);
            int end = gpu_attention_see(seen, row, rows, size, places, position_ids);
            if (end <= first) continue;
            gpu_attention_product(sum, a, b, k + key * ATTENTION_D, keys, q + row * ATTENTION_D, rows, lane);
            gpu_attention_product(gradient, a, b, v + key * ATTENTION_D, keys, dy + row * ATTENTION_D, rows, lane);
            GPU_UNROLL for (int i = 0; i < 4; i++) {
                float scores[4], gradients[4];
                vstore4(sum[i] * scale, 0, scores);
                vstore4(gradient[i], 0, gradients);
                for (int c = 0; c < 4; c++) { /* not asked to be unrolled: numbers of dropout take registers */
                    int own = first + 4 * lane.s0 + i, other = 4 * lane.s1 + c, at = row + min(other, rows - 1);
                    bool sees = own < seen[other];
                    float score = sees ? attention_score(scores[c], mask, masked, strides, at, own, size) : 0.0f;
                    float2 both = gpu_attention_weigh(score, sees, gradients[c], vload2(at, tops), deltas[at], attention_kept(rng, site, dropout, at, own, size));
                    scores[c] = both.s0;
                    gradients[c] = both.s1;
                }
                sum[i] = vload4(0, scores);
                gradient[i] = vload4(0, gradients);
            }
            gpu_attention_turn(a, sum, lane);
            gpu_attention_add(values_out, a, b, dy + row * ATTENTION_D, rows, lane);
            gpu_attention_turn(a, gradient, lane);
            gpu_attention_add(keys_out, a, b, q + row * ATTENTION_D, rows, lane);
        }
    float factors[4] = {scale, scale, scale, scale}, ones[4] = {1, 1, 1, 1};
    gpu_attention_put(dk + key * ATTENTION_D, keys, keys_out, factors, lane);
    gpu_attention_put(dv + key * ATTENTION_D, keys, values_out, ones, lane);
}
