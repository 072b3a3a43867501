/*
 * What PowerSGD (Vogels, Karimireddy, Jaggi 2019) needs beside matrix products.
 */

/* residual += x / samples */
kernel void ref_feedback_add(global float *residual, global const float *x, global const float *samples, int n) {
    int i = get_global_id(0);
    if (i < n) residual[i] += x[i] * clt_share(samples);
}

/* residual -= scale x, the rank's share of what was sent. What is not finite leaves no residual. */
kernel void ref_feedback_subtract(global const float *x, global float *residual, int n, float scale) {
    int i = get_global_id(0);
    if (i >= n) return;
    float left = residual[i] - scale * x[i];
    residual[i] = isfinite(left) ? left : 0.0f;
}

/* Where a factor is zero (at first all of it is) it becomes a random number from its place, the same on all ranks: the sum of
 * four bytes, nearly normal, with variance 1 and never zero, by a finalizer of MurmurHash3. NaN too, so that an overflow is
 * not for ever. */
kernel void ref_seed_factor(global float *factor, int n, int seed) {
    int i = get_global_id(0);
    if (i >= n || (factor[i] != 0 && isfinite(factor[i]))) return;
    uint h = (uint)i * 0x9e3779b9u + (uint)seed;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    int sum = (h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24);
    factor[i] = (sum - 509.5f) * (1 / 147.8f);
}

/* Columns of x (rows, rank) become an orthonormal basis y of what they span, one after the other, by Gram and Schmidt's method:
 * the parts along those before are taken away, twice, since the first time leaves its rounding errors.
 *
 * No barrier stands in a loop: PoCL 3.1 computes wrong sums there. */

/* along[k] = the product of column `column` of v and column k of y. A work-group each. */
kernel void ref_orthogonalize_products(global const float *v, global const float *y, global float *along, int rows,
                                       int rank, int column) {
    local float scratch[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0), k = get_group_id(0);
    if (k >= column) return;
    float product = 0;
    for (int i = lane; i < rows; i += lanes) product += y[i * rank + k] * v[i * rank + column];
    product = clt_group_sum(product, scratch);
    if (lane == 0) along[k] = product;
}

/* Takes them away: from x with turn 0, then from y. A work-item a row. */
kernel void ref_orthogonalize_subtract(global const float *x, global float *y, global const float *along, int rows,
                                       int rank, int column, int turn) {
    int i = get_global_id(0);
    if (i >= rows) return;
    float v = turn == 0 ? x[i * rank + column] : y[i * rank + column];
    for (int k = 0; k < column; k++) v -= along[k] * y[i * rank + k];
    y[i * rank + column] = v;
}

/* Brings the column to length 1; one that was nothing but those before becomes zero. One work-group. */
kernel void ref_orthogonalize_norm(global const float *x, global float *y, int rows, int rank, int column) {
    local float scratch[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0);
    if (get_group_id(0) > 0) return;
    float before = 0, norm = 0;
    for (int i = lane; i < rows; i += lanes) {
        before += x[i * rank + column] * x[i * rank + column];
        norm += y[i * rank + column] * y[i * rank + column];
    }
    before = clt_group_sum(before, scratch);
    norm = clt_group_sum(norm, scratch);
    float factor = norm > 1e-10f * before && norm > 1e-30f ? 1 / sqrt(norm) : isfinite(norm) ? 0.0f : NAN;
    for (int i = lane; i < rows; i += lanes) y[i * rank + column] *= factor;
}
