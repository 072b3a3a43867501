/*
 * What PowerSGD (Vogels, Karimireddy, Jaggi 2019) needs beside matrix products.
 */

/* residual += x / samples */
kernel void ref_feedback_add(global float *residual, global const float *x, global const float *samples, int n) {
    int i = get_global_id(0);
    if (i < n) residual[i] += x[i] * clt_share(samples);
}

/* residual -= scale x, the rank's share of what was sent. What is not finite leaves no residual. */
kernel void ref_feedback_subtract(global float *residual, global const float *x, int n, float scale) {
    int i = get_global_id(0);
    if (i >= n) return;
    float left = residual[i] - scale * x[i];
    residual[i] = isfinite(left) ? left : 0.0f;
}

/* Where a factor is zero (at first all of it is) it becomes a number from its place, the same on all ranks: uniform in
 * [-1, 1), by a finalizer of MurmurHash3. NaN too, so that an overflow is not for ever. */
kernel void ref_seed_factor(global float *factor, int n, int seed) {
    int i = get_global_id(0);
    if (i >= n || (factor[i] != 0 && isfinite(factor[i]))) return;
    uint h = (uint)i * 0x9e3779b9u + (uint)seed;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    factor[i] = ((int)(h >> 8) - 0x800000) * (1.0f / 0x800000);
}

/* Column number `column` of x (rows, rank) made orthogonal to those before it in y, which are so already, and of length 1, by
 * modified Gram-Schmidt; one that is nothing but the others becomes zero. One work-group. */
kernel void ref_orthogonalize(global const float *x, global float *y, int rows, int rank, int column) {
    local float scratch[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0);
    if (get_group_id(0) > 0) return;
    float before = 0, norm = 0;
    for (int i = lane; i < rows; i += lanes) {
        float v = x[i * rank + column];
        y[i * rank + column] = v;
        before += v * v;
    }
    before = clt_group_sum(before, scratch);
    for (int k = 0; k < column; k++) {
        float product = 0;
        for (int i = lane; i < rows; i += lanes) product += y[i * rank + k] * y[i * rank + column];
        product = clt_group_sum(product, scratch);
        for (int i = lane; i < rows; i += lanes) y[i * rank + column] -= product * y[i * rank + k];
    }
    for (int i = lane; i < rows; i += lanes) norm += y[i * rank + column] * y[i * rank + column];
    norm = clt_group_sum(norm, scratch);
    float factor = norm > 1e-12f * before && norm > 1e-30f ? 1 / sqrt(norm) : isfinite(norm) ? 0.0f : NAN;
    for (int i = lane; i < rows; i += lanes) y[i * rank + column] *= factor;
}
