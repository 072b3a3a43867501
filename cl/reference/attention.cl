/*
 * Scaled dot-product attention and its gradients (formulas: runtime/ops/attention.c). q, y, dy and dq are [N, heads, t, d]; k, v, dk and dv
 * [N, key_heads, s, d]; log_sums and deltas [N, heads, t]. A work-item takes a row of the result, and finds each score anew.
 *
 * size: N * heads, key_heads, t, s, d, heads. Head h of queries belongs to head h / (heads / key_heads) of keys. A query sees all keys, or those up
 * to its own place: `places` 1, its row; 2, what position_ids [N, t] say.
 */

static float attention_dot(global const float *a, global const float *b, int d) {
    float sum = 0;
    for (int i = 0; i < d; i++) sum += a[i] * b[i];
    return sum;
}

/* The first row of keys of a head of queries, counted over all of N. */
static int attention_keys(int head, int8 size) {
    int heads = size.s5, group = heads / size.s1;
    return (head / heads * size.s1 + head % heads / group) * size.s3;
}

/* How many keys a row of queries sees. */
static int attention_seen(int row, int8 size, int places, global const int *position_ids) {
    int t = size.s2, place = places == 2 ? position_ids[row / t / size.s5 * t + row % t] : row % t;
    return places ? clamp(place, -1, size.s3 - 1) + 1 : size.s3;
}

kernel void ref_attention(global const float *q, global const float *k, global const float *v, global const int *position_ids,
                          global float *y, global float *log_sums, int8 size, float scale, int places) {
    int row = get_global_id(0), t = size.s2, d = size.s4;
    if (row >= size.s0 * t) return;
    int first = attention_keys(row / t, size), n = attention_seen(row, size, places, position_ids);
    float most = -INFINITY, sum = 0;
    for (int j = 0; j < n; j++) most = clt_max(most, scale * attention_dot(q + row * d, k + (first + j) * d, d));
    for (int i = 0; i < d; i++) y[row * d + i] = 0;
    for (int j = 0; j < n; j++) {
        float p = exp(scale * attention_dot(q + row * d, k + (first + j) * d, d) - most);
        sum += p;
        for (int i = 0; i < d; i++) y[row * d + i] += p * v[(first + j) * d + i];
    }
    for (int i = 0; i < d; i++) y[row * d + i] /= sum;
    log_sums[row] = most + log(sum);
}

kernel void ref_attention_grad_query(global const float *q, global const float *k, global const float *v, global const float *log_sums,
                                     global const float *deltas, global const float *dy, global const int *position_ids, global float *dq,
                                     int8 size, float scale, int places) {
    int row = get_global_id(0), t = size.s2, d = size.s4;
    if (row >= size.s0 * t) return;
    int first = attention_keys(row / t, size), n = attention_seen(row, size, places, position_ids);
    for (int i = 0; i < d; i++) dq[row * d + i] = 0;
    for (int j = 0; j < n; j++) {
        float p = exp(scale * attention_dot(q + row * d, k + (first + j) * d, d) - log_sums[row]);
        float ds = p * (attention_dot(dy + row * d, v + (first + j) * d, d) - deltas[row]);
        for (int i = 0; i < d; i++) dq[row * d + i] += scale * ds * k[(first + j) * d + i];
    }
}

kernel void ref_attention_grad_key_value(global const float *q, global const float *k, global const float *v, global const float *log_sums,
                                         global const float *deltas, global const float *dy, global const int *position_ids, global float *dk,
                                         global float *dv, int8 size, float scale, int places) {
    int key = get_global_id(0), t = size.s2, s = size.s3, d = size.s4, heads = size.s5;
    if (key >= size.s0 / heads * size.s1 * s) return;
    int group = heads / size.s1, head = key / s; /* of keys, counted over all of N: its heads of queries begin at head * group */
    for (int i = 0; i < d; i++) dk[key * d + i] = dv[key * d + i] = 0;
    for (int g = 0; g < group; g++) {
        for (int r = places == 1 ? key % s : 0; r < t; r++) {
            int row = (head * group + g) * t + r;
            if (key % s >= attention_seen(row, size, places, position_ids)) continue;
            float p = exp(scale * attention_dot(q + row * d, k + key * d, d) - log_sums[row]);
            float ds = p * (attention_dot(dy + row * d, v + key * d, d) - deltas[row]);
            for (int i = 0; i < d; i++) {
                dk[key * d + i] += scale * ds * q[row * d + i];
                dv[key * d + i] += p * dy[row * d + i];
            }
        }
    }
}
