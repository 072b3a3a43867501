/*
 * Scaled dot-product attention and its gradients (formulas: runtime/ops/attention.c) in register tiles. A work-item takes CPU_ROWS
 * rows of one head, and goes over the other side in tiles of CPU_COLUMNS: scores are rows times a packed tile, whose columns lie side by
 * side; they become weights, which are multiplied with the tile's rows as they lie. Forward keeps a running maximum and sum of
 * each row (Milakov, Gimelshein 2018). Bound: multiplications, of which exponentials are a small part.
 *
 * ATTENTION_D is defined in front of this text, a multiple of CPU_COLUMNS, and stands in the kernels' names.
 *
 * size: N * heads, key_heads, t, s, heads. Mask, places and dropout as in reference/attention.cl.
 */
#undef ATTENTION_NAME
#undef ATTENTION_OPTIONS
#undef ATTENTION_SCALARS
#define ATTENTION_NAME(name) CPU_PASTE(CPU_PASTE(name, _), ATTENTION_D)
#define ATTENTION_OPTIONS   global const float *mask, global const int *position_ids, global const int *rng
#define ATTENTION_SCALARS   int8 size, int4 strides, int places, int masked, int site, float scale, float dropout
#define ATTENTION_ARGUMENTS size, strides, places, masked, site, scale, dropout

/* panels[tile][c][k] = x[tile CPU_COLUMNS + k][c]; what is behind the last of a head's rows is not set, and counts for nothing. A work-item a tile. */
CLT_ITEM void ATTENTION_NAME(cpu_attention_pack_item)(int item, global const CLT_REAL *x, global float *panels, int rows) {
    int tiles = (rows + CPU_COLUMNS - 1) / CPU_COLUMNS, first = item % tiles * CPU_COLUMNS;
    global const CLT_REAL *from = x + (item / tiles * rows + first) * ATTENTION_D;
    global float *to = panels + item * CPU_COLUMNS * ATTENTION_D;
    cpu_interleave(from, ATTENTION_D, min(CPU_COLUMNS, rows - first), ATTENTION_D, to, CPU_COLUMNS);
}
kernel void ATTENTION_NAME(cpu_attention_pack)(global const CLT_REAL *x, global float *panels, int rows) {
    ATTENTION_NAME(cpu_attention_pack_item)(get_global_id(0), x, panels, rows);
}

/* Rows of x, of which `there` exist, one behind the other; the last stands for those behind it. */
static void ATTENTION_NAME(attention_rows)(global const CLT_REAL *x, int there, float *rows) {
    for (int i = 0; i < CPU_ROWS; i++)
        for (int c = 0; c < ATTENTION_D; c += CPU_WIDTH)
            cpu_store(CLT_LOAD_VECTOR(CPU_WIDTH, x, min(i, there - 1) * ATTENTION_D + c), 0, rows + i * ATTENTION_D + c);
}

/* sum = rows times a packed tile */
#define ATTENTION_PRODUCT(sum, rows, panel)                                                                    \
    CPU_CLEAR(sum);                                                                                            \
    for (int c = 0; c < ATTENTION_D; c++) {                                                                    \
        cpu_vector left = cpu_load(0, (panel) + c * CPU_COLUMNS);                                              \
        cpu_vector right = cpu_load(0, (panel) + c * CPU_COLUMNS + CPU_WIDTH);                                 \
        CPU_STEP(sum, rows[i * ATTENTION_D + c], left, right)                                                  \
    }

/* out += weights times `count` rows of x */
static void ATTENTION_NAME(attention_add)(float *out, const float *weights, global const CLT_REAL *x, int count) {
    for (int c = 0; c < ATTENTION_D; c += CPU_COLUMNS) {
        cpu_vector sum[CPU_ROWS][2];
        _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
            sum[i][0] = cpu_load(0, out + i * ATTENTION_D + c);
            sum[i][1] = cpu_load(0, out + i * ATTENTION_D + c + CPU_WIDTH);
        }
        for (int k = 0; k < count; k++) {
            cpu_vector left = CLT_LOAD_VECTOR(CPU_WIDTH, x, k * ATTENTION_D + c), right = CLT_LOAD_VECTOR(CPU_WIDTH, x, k * ATTENTION_D + c + CPU_WIDTH);
            CPU_STEP(sum, weights[i * CPU_COLUMNS + k], left, right)
        }
        _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
            cpu_store(sum[i][0], 0, out + i * ATTENTION_D + c);
            cpu_store(sum[i][1], 0, out + i * ATTENTION_D + c + CPU_WIDTH);
        }
    }
}

static void ATTENTION_NAME(attention_scale)(float *row, float factor) {
    for (int c = 0; c < ATTENTION_D; c += CPU_WIDTH) cpu_store(cpu_load(0, row + c) * factor, 0, row + c);
}

static void ATTENTION_NAME(attention_store)(const float *rows, int there, float factor, global CLT_REAL *x) {
    for (int i = 0; i < there; i++)
        for (int c = 0; c < ATTENTION_D; c += CPU_WIDTH)
            CLT_STORE_VECTOR(CPU_WIDTH, x, i * ATTENTION_D + c, cpu_load(0, rows + i * ATTENTION_D + c) * factor);
}

#ifndef CPU_ATTENTION_SHARED /* what does not know D */
#define CPU_ATTENTION_SHARED
/* The head of keys, counted over all of N, of a head of queries. */
static int cpu_attention_key_head(int head, int8 size) {
    return head / size.s4 * size.s1 + head % size.s4 / (size.s4 / size.s1);
}

/* How many keys a row of queries, counted over all heads, sees. */
static int cpu_attention_seen(int row, int8 size, int places, global const int *position_ids) {
    int t = size.s2, place = places == 2 ? position_ids[row / t / size.s4 * t + row % t] : row % t;
    return places ? clamp(place, -1, size.s3 - 1) + 1 : size.s3;
}

/* Where the mask of a row of queries, counted over all heads, begins. */
static int cpu_attention_mask_row(int row, int8 size, int4 strides) {
    int t = size.s2, head = row / t;
    return head / size.s4 * strides.s0 + head % size.s4 * strides.s1 + row % t * strides.s2;
}

static float cpu_attention_masked(float score, global const float *mask, int masked, int at) {
    if (masked == 2) return ((global const uchar *)mask)[at] ? score : -INFINITY;
    return score + mask[at];
}

/* What the mask says of scores of CPU_ROWS queries from `row` on, of which `there` exist, and keys from j on. */
static void cpu_attention_mask_queries(float *scores, global const float *mask, int masked, int4 strides, int row, int there, int j, int8 size) {
    for (int i = 0; i < there; i++) {
        int at = cpu_attention_mask_row(row + i, size, strides) + j * strides.s3;
        for (int c = 0; c < min(CPU_COLUMNS, size.s3 - j); c++)
            scores[i * CPU_COLUMNS + c] = cpu_attention_masked(scores[i * CPU_COLUMNS + c], mask, masked, at + c * strides.s3);
    }
}

/* The same with keys in the rows, from j on, and queries in the columns, `count` from `row` on. */
static void cpu_attention_mask_keys(float *scores, global const float *mask, int masked, int4 strides, int row, int count, int j, int there,
                                                int8 size) {
    for (int c = 0; c < count; c++) {
        int at = cpu_attention_mask_row(row + c, size, strides) + j * strides.s3;
        for (int i = 0; i < there; i++)
            scores[i * CPU_COLUMNS + c] = cpu_attention_masked(scores[i * CPU_COLUMNS + c], mask, masked, at + i * strides.s3);
    }
}

/* What dropout makes of 1 for four keys from 4 four on. */
static float4 cpu_attention_kept(uint2 key, int four, int row, int t, float dropout) {
    uint4 words = clt_philox((uint4)(four, row % t, row / t, 0), key);
    return select((float4)(0), (float4)(1 / (1 - dropout)), words >= (uint4)((uint)(dropout * 4294967296.0f)));
}

static uint2 cpu_attention_key(global const int *rng, int site) {
    return clt_philox((uint4)(rng[2], rng[3], site, 0), (uint2)(rng[0], rng[1])).lo;
}

/* The same for a tile of queries, or 1s; j is a multiple of CPU_COLUMNS. */
static void cpu_attention_kept_queries(float *kept, global const int *rng, int site, float dropout, int row, int there, int j, int t) {
    uint2 key = cpu_attention_key(rng, site);
    for (int i = 0; i < there; i++)
        for (int c = 0; c < CPU_COLUMNS; c += 4)
            vstore4(cpu_attention_kept(key, (j + c) / 4, row + i, t, dropout), 0, kept + i * CPU_COLUMNS + c);
}

static void cpu_attention_kept_keys(float *kept, global const int *rng, int site, float dropout, int row, int count, int j, int t) {
    uint2 key = cpu_attention_key(rng, site);
    for (int c = 0; c < count; c++)
        for (int four = j / 4; four <= (j + CPU_ROWS - 1) / 4; four++) {
            float values[4];
            vstore4(cpu_attention_kept(key, four, row + c, t, dropout), 0, values);
            for (int l = 0; l < 4; l++)
                if (4 * four + l >= j && 4 * four + l < j + CPU_ROWS) kept[(4 * four + l - j) * CPU_COLUMNS + c] = values[l];
        }
}

/* A row's largest score and 1 / its sum of weights, for backward; of one that sees no key, what makes weights of 0. */
static void cpu_attention_put_top(global float *tops, int row, float most, float sum) {
    vstore2(sum == 0 ? (float2)(INFINITY, 0) : (float2)(most, 1 / sum), row, tops);
}

/* Weights from the scores of a tile, of which row i sees the first seen[i] - first: exp(score - the row's new maximum). What a row had before is worth
 * factors[i]; `sums` has the sums of weights. A row that has seen no key has a maximum of -infinity, and weights of 0. */
static void cpu_attention_weigh(float *scores, const int *seen, int first, float *maximum, cpu_vector *sums, float *factors) {
    float base[CPU_ROWS];
    for (int i = 0; i < CPU_ROWS; i++) {
        float *row = scores + i * CPU_COLUMNS;
        for (int k = max(seen[i] - first, 0); k < CPU_COLUMNS; k++) row[k] = -INFINITY;
        base[i] = fmax(maximum[i], cpu_lanes_max(fmax(cpu_load(0, row), cpu_load(1, row))));
    }
    for (int i = 0; i < CPU_ROWS; i++) {
        float most = base[i];
        base[i] = most == -INFINITY ? 0.0f : most;
        factors[i] = clt_exp2_below((maximum[i] - base[i]) * 1.44269504f);
        maximum[i] = most;
    }
    for (int i = 0; i < CPU_ROWS; i++) {
        float *row = scores + i * CPU_COLUMNS;
        cpu_vector left = cpu_exp_below(cpu_load(0, row) - base[i]), right = cpu_exp_below(cpu_load(1, row) - base[i]);
        cpu_store(left, 0, row);
        cpu_store(right, 1, row);
        sums[i] = sums[i] * factors[i] + (left + right);
    }
}
#endif

CLT_ITEM void ATTENTION_NAME(cpu_attention_item)(int item, global const CLT_REAL *q, global const CLT_REAL *v, global const float *panels,
                                                 ATTENTION_OPTIONS, global CLT_REAL *y, global float *tops, ATTENTION_SCALARS) {
    int t = size.s2, s = size.s3, blocks = (t + CPU_ROWS - 1) / CPU_ROWS, head = item / blocks, first = item % blocks * CPU_ROWS;
    int there = min(CPU_ROWS, t - first), keys = cpu_attention_key_head(head, size), tiles = (s + CPU_COLUMNS - 1) / CPU_COLUMNS;
    int end = 0, seen[CPU_ROWS];
    float rows[CPU_ROWS * ATTENTION_D], out[CPU_ROWS * ATTENTION_D], weights[CPU_ROWS * CPU_COLUMNS], maximum[CPU_ROWS], factors[CPU_ROWS];
    cpu_vector sums[CPU_ROWS];
    ATTENTION_NAME(attention_rows)(q + (head * t + first) * ATTENTION_D, there, rows);
    for (int i = 0; i < CPU_ROWS; i++) {
        seen[i] = cpu_attention_seen(head * t + first + min(i, there - 1), size, places, position_ids);
        end = max(end, seen[i]);
        maximum[i] = -INFINITY, sums[i] = (cpu_vector)(0);
    }
    for (int i = 0; i < CPU_ROWS * ATTENTION_D; i++) out[i] = 0;
    for (int k = 0; k < end; k += CPU_COLUMNS) {
        cpu_vector sum[CPU_ROWS][2];
        global const float *panel = panels + (keys * tiles + k / CPU_COLUMNS) * CPU_COLUMNS * ATTENTION_D;
        ATTENTION_PRODUCT(sum, rows, panel)
        _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
            cpu_store(sum[i][0] * scale, 0, weights + i * CPU_COLUMNS);
            cpu_store(sum[i][1] * scale, 0, weights + i * CPU_COLUMNS + CPU_WIDTH);
        }
        if (masked) cpu_attention_mask_queries(weights, mask, masked, strides, head * t + first, there, k, size);
        cpu_attention_weigh(weights, seen, k, maximum, sums, factors);
        for (int i = 0; i < CPU_ROWS; i++)
            if (factors[i] != 1) ATTENTION_NAME(attention_scale)(out + i * ATTENTION_D, factors[i]);
        if (dropout != 0) {
            float kept[CPU_ROWS * CPU_COLUMNS];
            cpu_attention_kept_queries(kept, rng, site, dropout, head * t + first, there, k, t);
            for (int i = 0; i < there * CPU_COLUMNS; i++) weights[i] *= kept[i];
        }
        ATTENTION_NAME(attention_add)(out, weights, v + (keys * s + k) * ATTENTION_D, min(CPU_COLUMNS, s - k));
    }
    for (int i = 0; i < there; i++) {
        float values[CPU_WIDTH], sum = 0;
        cpu_store(sums[i], 0, values);
        for (int k = 0; k < CPU_WIDTH; k++) sum += values[k];
        ATTENTION_NAME(attention_scale)(out + i * ATTENTION_D, sum == 0 ? 0 : 1 / sum);
        cpu_attention_put_top(tops, head * t + first + i, maximum[i], sum);
    }
    ATTENTION_NAME(attention_store)(out, there, 1, y + (head * t + first) * ATTENTION_D);
}
kernel void ATTENTION_NAME(cpu_attention)(global const CLT_REAL *q, global const CLT_REAL *v, global const float *panels, ATTENTION_OPTIONS,
                                          global CLT_REAL *y, global float *tops, ATTENTION_SCALARS) {
    ATTENTION_NAME(cpu_attention_item)(get_global_id(0), q, v, panels, mask, position_ids, rng, y, tops, ATTENTION_ARGUMENTS);
}

/* Few queries, as of the next token of a text: nothing is packed, for keys are read once. A work-item takes a row. */
enum { ATTENTION_NAME(FEW_KEYS) = 64 };
CLT_ITEM void ATTENTION_NAME(cpu_attention_few_item)(int row, global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v,
                                                     ATTENTION_OPTIONS, global CLT_REAL *y, global float *tops, ATTENTION_SCALARS) {
    enum { KEYS = ATTENTION_NAME(FEW_KEYS), VECTORS = ATTENTION_D / CPU_WIDTH };
    int head = row / size.s2, first = cpu_attention_key_head(head, size) * size.s3;
    int end = cpu_attention_seen(row, size, places, position_ids), mask_at = cpu_attention_mask_row(row, size, strides);
    cpu_vector query[VECTORS], out[VECTORS], sums = (cpu_vector)(0);
    float scores[KEYS], maximum = -INFINITY, total = 0, lanes[CPU_WIDTH];
    uint2 key = dropout != 0 ? cpu_attention_key(rng, site) : (uint2)(0);
    _Pragma("unroll") for (int c = 0; c < VECTORS; c++) {
        query[c] = CLT_LOAD_VECTOR(CPU_WIDTH, q, row * ATTENTION_D + c * CPU_WIDTH) * scale;
        out[c] = (cpu_vector)(0);
    }
    for (int j = 0; j < end; j += KEYS) {
        global const CLT_REAL *keys = k + (first + j) * ATTENTION_D, *values = v + (first + j) * ATTENTION_D;
        int count = min(KEYS, end - j);
        float most = maximum, factor;
        for (int i = 0; i < KEYS; i++) scores[i] = -INFINITY;
        for (int i = 0; i < count; i++) {
            cpu_vector sum = (cpu_vector)(0);
            _Pragma("unroll") for (int c = 0; c < VECTORS; c++) sum = query[c] * CLT_LOAD_VECTOR(CPU_WIDTH, keys, i * ATTENTION_D + c * CPU_WIDTH) + sum;
            scores[i] = cpu_lanes(sum);
        }
        if (masked)
            for (int i = 0; i < count; i++) scores[i] = cpu_attention_masked(scores[i], mask, masked, mask_at + (j + i) * strides.s3);
        for (int i = 0; i < KEYS; i++) most = fmax(most, scores[i]);
        if (most == -INFINITY) continue; /* it has seen none yet */
        factor = clt_exp2_below((maximum - most) * 1.44269504f);
        maximum = most;
        sums *= factor;
        for (int i = 0; i < KEYS; i += CPU_WIDTH) {
            cpu_vector p = cpu_exp_below(cpu_load(0, scores + i) - most);
            cpu_store(p, 0, scores + i);
            sums += p;
        }
        _Pragma("unroll") for (int c = 0; c < VECTORS; c++) out[c] *= factor;
        if (dropout != 0)
            for (int i = 0; i < KEYS; i += 4) {
                float4 kept = cpu_attention_kept(key, (j + i) / 4, row, size.s2, dropout);
                vstore4(vload4(0, scores + i) * kept, 0, scores + i);
            }
        for (int i = 0; i < count; i++)
            _Pragma("unroll") for (int c = 0; c < VECTORS; c++)
                out[c] = (cpu_vector)(scores[i]) * CLT_LOAD_VECTOR(CPU_WIDTH, values, i * ATTENTION_D + c * CPU_WIDTH) + out[c];
    }
    cpu_store(sums, 0, lanes);
    for (int l = 0; l < CPU_WIDTH; l++) total += lanes[l];
    for (int c = 0; c < VECTORS; c++) CLT_STORE_VECTOR(CPU_WIDTH, y, row * ATTENTION_D + c * CPU_WIDTH, out[c] * (total == 0 ? 0 : 1 / total));
    cpu_attention_put_top(tops, row, maximum, total);
}
kernel void ATTENTION_NAME(cpu_attention_few)(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v, ATTENTION_OPTIONS,
                                              global CLT_REAL *y, global float *tops, ATTENTION_SCALARS) {
    ATTENTION_NAME(cpu_attention_few_item)(get_global_id(0), q, k, v, mask, position_ids, rng, y, tops, ATTENTION_ARGUMENTS);
}

CLT_ITEM void ATTENTION_NAME(cpu_attention_grad_query_item)(int item, global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *dy,
                                                            global const float *tops, global const float *deltas,
                                                            global const float *key_panels, global const float *value_panels,
                                                            ATTENTION_OPTIONS, global CLT_REAL *dq, ATTENTION_SCALARS) {
    int t = size.s2, s = size.s3, blocks = (t + CPU_ROWS - 1) / CPU_ROWS, head = item / blocks, first = item % blocks * CPU_ROWS;
    int there = min(CPU_ROWS, t - first), keys = cpu_attention_key_head(head, size), tiles = (s + CPU_COLUMNS - 1) / CPU_COLUMNS;
    int end = 0, at = head * t + first, seen[CPU_ROWS];
    float rows[CPU_ROWS * ATTENTION_D], gradients[CPU_ROWS * ATTENTION_D], out[CPU_ROWS * ATTENTION_D], weights[CPU_ROWS * CPU_COLUMNS];
    ATTENTION_NAME(attention_rows)(q + at * ATTENTION_D, there, rows);
    ATTENTION_NAME(attention_rows)(dy + at * ATTENTION_D, there, gradients);
    for (int i = 0; i < CPU_ROWS * ATTENTION_D; i++) out[i] = 0;
    for (int i = 0; i < CPU_ROWS; i++) {
        seen[i] = cpu_attention_seen(at + min(i, there - 1), size, places, position_ids);
        end = max(end, seen[i]);
    }
    for (int j = 0; j < end; j += CPU_COLUMNS) {
        int panel = (keys * tiles + j / CPU_COLUMNS) * CPU_COLUMNS * ATTENTION_D;
        cpu_vector sum[CPU_ROWS][2];
        ATTENTION_PRODUCT(sum, rows, key_panels + panel)
        if (masked) {
            _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                cpu_store(sum[i][0] * scale, 0, weights + i * CPU_COLUMNS);
                cpu_store(sum[i][1] * scale, 0, weights + i * CPU_COLUMNS + CPU_WIDTH);
            }
            cpu_attention_mask_queries(weights, mask, masked, strides, at, there, j, size);
            for (int i = 0; i < CPU_ROWS; i++) {
                float2 top = vload2(at + min(i, there - 1), tops);
                float *to = weights + i * CPU_COLUMNS;
                cpu_store(cpu_exp_below(cpu_load(0, to) - top.s0) * top.s1, 0, to);
                cpu_store(cpu_exp_below(cpu_load(0, to + CPU_WIDTH) - top.s0) * top.s1, 0, to + CPU_WIDTH);
            }
        } else {
            _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                float2 top = vload2(at + min(i, there - 1), tops);
                cpu_store(cpu_exp_below(sum[i][0] * scale - top.s0) * top.s1, 0, weights + i * CPU_COLUMNS);
                cpu_store(cpu_exp_below(sum[i][1] * scale - top.s0) * top.s1, 0, weights + i * CPU_COLUMNS + CPU_WIDTH);
            }
        }
        ATTENTION_PRODUCT(sum, gradients, value_panels + panel)
        if (dropout != 0) {
            float kept[CPU_ROWS * CPU_COLUMNS];
            for (int i = 0; i < CPU_ROWS * CPU_COLUMNS; i++) kept[i] = 0;
            cpu_attention_kept_queries(kept, rng, site, dropout, at, there, j, t);
            for (int i = 0; i < CPU_ROWS; i++)
                for (int c = 0; c < 2; c++) sum[i][c] *= cpu_load(c, kept + i * CPU_COLUMNS);
        }
        _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
            float delta = deltas[at + min(i, there - 1)], *to = weights + i * CPU_COLUMNS;
            cpu_store(cpu_load(0, to) * (sum[i][0] - delta), 0, to);
            cpu_store(cpu_load(0, to + CPU_WIDTH) * (sum[i][1] - delta), 0, to + CPU_WIDTH);
        }
        for (int i = 0; places && i < CPU_ROWS; i++)
            for (int c = max(seen[i] - j, 0); c < CPU_COLUMNS; c++) weights[i * CPU_COLUMNS + c] = 0;
        ATTENTION_NAME(attention_add)(out, weights, k + (keys * s + j) * ATTENTION_D, min(CPU_COLUMNS, s - j));
    }
    ATTENTION_NAME(attention_store)(out, there, scale, dq + at * ATTENTION_D);
}
kernel void ATTENTION_NAME(cpu_attention_grad_query)(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *dy, global const float *tops,
                                                     global const float *deltas, global const float *key_panels, global const float *value_panels,
                                                     ATTENTION_OPTIONS, global CLT_REAL *dq, ATTENTION_SCALARS) {
    ATTENTION_NAME(cpu_attention_grad_query_item)(get_global_id(0), q, k, dy, tops, deltas, key_panels, value_panels, mask, position_ids, rng, dq,
                                                  ATTENTION_ARGUMENTS);
}

CLT_ITEM void ATTENTION_NAME(cpu_attention_grad_key_value_item)(int item, global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v,
                                                                global const float *tops, global const float *deltas, global const CLT_REAL *dy,
                                                                global const float *query_panels, global const float *gradient_panels,
                                                                ATTENTION_OPTIONS, global CLT_REAL *dk, global CLT_REAL *dv, ATTENTION_SCALARS) {
    int t = size.s2, s = size.s3, blocks = (s + CPU_ROWS - 1) / CPU_ROWS, keys = item / blocks, first = item % blocks * CPU_ROWS;
    int there = min(CPU_ROWS, s - first), tiles = (t + CPU_COLUMNS - 1) / CPU_COLUMNS, group = size.s4 / size.s1, at = keys * s + first;
    float rows[CPU_ROWS * ATTENTION_D], values[CPU_ROWS * ATTENTION_D], key_sums[CPU_ROWS * ATTENTION_D], value_sums[CPU_ROWS * ATTENTION_D];
    float p[CPU_ROWS * CPU_COLUMNS], ds[CPU_ROWS * CPU_COLUMNS], most[CPU_COLUMNS], shares[CPU_COLUMNS], delta[CPU_COLUMNS];
    float kept[CPU_ROWS * CPU_COLUMNS];
    ATTENTION_NAME(attention_rows)(k + at * ATTENTION_D, there, rows);
    ATTENTION_NAME(attention_rows)(v + at * ATTENTION_D, there, values);
    for (int i = 0; i < CPU_ROWS * ATTENTION_D; i++) key_sums[i] = value_sums[i] = 0;
    for (int g = 0; g < group; g++) {
        int head = keys * group + g;
        for (int j = places == 1 ? first / CPU_COLUMNS * CPU_COLUMNS : 0; j < t; j += CPU_COLUMNS) {
            int panel = (head * tiles + j / CPU_COLUMNS) * CPU_COLUMNS * ATTENTION_D, row = head * t + j, count = min(CPU_COLUMNS, t - j);
            for (int c = 0; c < CPU_COLUMNS; c++) {
                most[c] = c < count ? tops[2 * (row + c)] : INFINITY;
                shares[c] = c < count ? tops[2 * (row + c) + 1] : 0;
                delta[c] = c < count ? deltas[row + c] : 0;
            }
            cpu_vector sum[CPU_ROWS][2];
            ATTENTION_PRODUCT(sum, rows, query_panels + panel)
            if (masked) {
                _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                    cpu_store(sum[i][0] * scale, 0, p + i * CPU_COLUMNS);
                    cpu_store(sum[i][1] * scale, 0, p + i * CPU_COLUMNS + CPU_WIDTH);
                }
                cpu_attention_mask_keys(p, mask, masked, strides, row, count, first, there, size);
                for (int i = 0; i < CPU_ROWS; i++)
                    for (int c = 0; c < 2; c++)
                        cpu_store(cpu_exp_below(cpu_load(c, p + i * CPU_COLUMNS) - cpu_load(c, most)) * cpu_load(c, shares), c, p + i * CPU_COLUMNS);
            } else {
                _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                    cpu_store(cpu_exp_below(sum[i][0] * scale - cpu_load(0, most)) * cpu_load(0, shares), 0, p + i * CPU_COLUMNS);
                    cpu_store(cpu_exp_below(sum[i][1] * scale - cpu_load(1, most)) * cpu_load(1, shares), 0, p + i * CPU_COLUMNS + CPU_WIDTH);
                }
            }
            for (int i = 0; places == 1 && i < CPU_ROWS; i++)
                for (int c = 0; c < min(first + i - j, CPU_COLUMNS); c++) p[i * CPU_COLUMNS + c] = 0;
            for (int c = 0; places == 2 && c < count; c++)
                for (int i = max(cpu_attention_seen(row + c, size, places, position_ids) - first, 0); i < CPU_ROWS; i++) p[i * CPU_COLUMNS + c] = 0;
            ATTENTION_PRODUCT(sum, values, gradient_panels + panel)
            if (dropout != 0) {
                for (int i = 0; i < CPU_ROWS * CPU_COLUMNS; i++) kept[i] = 0;
                cpu_attention_kept_keys(kept, rng, site, dropout, row, count, first, t);
                for (int i = 0; i < CPU_ROWS; i++)
                    for (int c = 0; c < 2; c++) sum[i][c] *= cpu_load(c, kept + i * CPU_COLUMNS);
            }
            _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                int to = i * CPU_COLUMNS;
                cpu_store(cpu_load(0, p + to) * (sum[i][0] - cpu_load(0, delta)), 0, ds + to);
                cpu_store(cpu_load(0, p + to + CPU_WIDTH) * (sum[i][1] - cpu_load(1, delta)), 0, ds + to + CPU_WIDTH);
            }
            for (int i = 0; dropout != 0 && i < CPU_ROWS * CPU_COLUMNS; i++) p[i] *= kept[i];
            ATTENTION_NAME(attention_add)(value_sums, p, dy + row * ATTENTION_D, count);
            ATTENTION_NAME(attention_add)(key_sums, ds, q + row * ATTENTION_D, count);
        }
    }
    ATTENTION_NAME(attention_store)(key_sums, there, scale, dk + at * ATTENTION_D);
    ATTENTION_NAME(attention_store)(value_sums, there, 1, dv + at * ATTENTION_D);
}
kernel void ATTENTION_NAME(cpu_attention_grad_key_value)(global const CLT_REAL *q, global const CLT_REAL *k, global const CLT_REAL *v,
                                                         global const float *tops, global const float *deltas, global const CLT_REAL *dy,
                                                         global const float *query_panels, global const float *gradient_panels, ATTENTION_OPTIONS,
                                                         global CLT_REAL *dk, global CLT_REAL *dv, ATTENTION_SCALARS) {
    ATTENTION_NAME(cpu_attention_grad_key_value_item)(get_global_id(0), q, k, v, tops, deltas, dy, query_panels, gradient_panels, mask,
                                                      position_ids, rng, dk, dv, ATTENTION_ARGUMENTS);
}
