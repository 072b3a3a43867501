/*
 * Scaled dot-product attention and its gradients (formulas: runtime/ops/attention.c). q, y, dy and dq are [N, heads, t, d]; k, v, dk and dv
 * [N, key_heads, s, d]; tops [N, heads, t, 2]; deltas [N, heads, t]. A work-item takes a row of the result, and finds each score anew. In front:
 * reference/scores.cl, which tells what `size` and the others are.
 */

static float attention_dot(global const float *a, global const float *b, int d) {
    float sum = 0;
    for (int i = 0; i < d; i++) sum += a[i] * b[i];
    return sum;
}

#define REF_ATTENTION_OPTIONS                                                                                                             \
    global const float *mask, global const int *position_ids, global const int *rng
#define REF_ATTENTION_SCALARS int8 size, int4 strides, int places, int masked, int site, float scale, float dropout
#define REF_ATTENTION_SCORE(row, j) \
    attention_score(scale * attention_dot(q + (row) * d, k + (first + (j)) * d, d), mask, masked, strides, row, j, size)

kernel void ref_attention(global const float *q, global const float *k, global const float *v, REF_ATTENTION_OPTIONS, global float *y,
                          global float *tops, REF_ATTENTION_SCALARS) {
    int row = get_global_id(0), t = size.s2, d = size.s4;
    if (row >= size.s0 * t) return;
    int first = attention_keys(row / t, size), n = attention_seen(row, size, places, position_ids);
    float most = -INFINITY, sum = 0;
    for (int j = 0; j < n; j++) most = clt_max(most, REF_ATTENTION_SCORE(row, j));
    if (most == -INFINITY) most = 0; /* it sees none */
    for (int i = 0; i < d; i++) y[row * d + i] = 0;
    for (int j = 0; j < n; j++) {
        float p = exp(REF_ATTENTION_SCORE(row, j) - most);
        sum += p;
        p *= attention_kept(rng, site, dropout, row, j, size);
        for (int i = 0; i < d; i++) y[row * d + i] += p * v[(first + j) * d + i];
    }
    for (int i = 0; i < d; i++) y[row * d + i] /= sum == 0 ? 1 : sum;
    tops[2 * row] = sum == 0 ? INFINITY : most;
    tops[2 * row + 1] = sum == 0 ? 0 : 1 / sum;
}

kernel void ref_attention_grad_query(global const float *q, global const float *k, global const float *v, global const float *tops,
                                     global const float *deltas, global const float *dy, REF_ATTENTION_OPTIONS, global float *dq, REF_ATTENTION_SCALARS) {
    int row = get_global_id(0), t = size.s2, d = size.s4;
    if (row >= size.s0 * t) return;
    int first = attention_keys(row / t, size), n = attention_seen(row, size, places, position_ids);
    for (int i = 0; i < d; i++) dq[row * d + i] = 0;
    for (int j = 0; j < n; j++) {
        float p = exp(REF_ATTENTION_SCORE(row, j) - tops[2 * row]) * tops[2 * row + 1], z = attention_kept(rng, site, dropout, row, j, size);
        float ds = p * (z * attention_dot(dy + row * d, v + (first + j) * d, d) - deltas[row]);
        for (int i = 0; i < d; i++) dq[row * d + i] += scale * ds * k[(first + j) * d + i];
    }
}

kernel void ref_attention_grad_key_value(global const float *q, global const float *k, global const float *v, global const float *tops,
                                         global const float *deltas, global const float *dy, REF_ATTENTION_OPTIONS, global float *dk,
                                         global float *dv, REF_ATTENTION_SCALARS) {
    int key = get_global_id(0), t = size.s2, s = size.s3, d = size.s4, heads = size.s5;
    if (key >= size.s0 / heads * size.s1 * s) return;
    int group = heads / size.s1, head = key / s; /* of keys, counted over all of N: its heads of queries begin at head * group */
    int first = head * s;
    for (int i = 0; i < d; i++) dk[key * d + i] = dv[key * d + i] = 0;
    for (int g = 0; g < group; g++) {
        for (int r = places == 1 ? key % s : 0; r < t; r++) {
            int row = (head * group + g) * t + r;
            if (key % s >= attention_seen(row, size, places, position_ids)) continue;
            float p = exp(REF_ATTENTION_SCORE(row, key % s) - tops[2 * row]) * tops[2 * row + 1], z = attention_kept(rng, site, dropout, row, key % s, size);
            float ds = p * (z * attention_dot(dy + row * d, v + key * d, d) - deltas[row]);
            for (int i = 0; i < d; i++) {
                dk[key * d + i] += scale * ds * q[row * d + i];
                dv[key * d + i] += z * p * dy[row * d + i];
            }
        }
    }
}
