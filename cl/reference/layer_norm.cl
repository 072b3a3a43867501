/*
 * Layer normalization. x [rows, D], statistics [2, rows]: mean, then istd = 1 / sqrt(var + eps);
 * xhat = (x - mean) istd; weight and bias [D].
 * size: rows, D. x, dy and dx are stored as CLT_STORAGE, statistics and weights as f32.
 */

/* stats[0, r] = mean over i of x[r, i]; stats[1, r] = 1 / sqrt(var + eps) with var the mean of
 * (x - mean)^2, in a second pass. The first adds up what x differs by from the row's first, for sums of what is
 * large would lose what it differs by. */
kernel void ref_layer_norm_stats(global const CLT_REAL *x, global float *stats, CLT_INDEX_VECTOR(2) size, float eps) {
    CLT_INDEX r = get_global_id(0);
    if (r >= size.s0) return;
    x += r * size.s1;
    float sum = 0, squares = 0;
    for (CLT_INDEX i = 0; i < size.s1; i++) sum += CLT_LOAD(x, i) - CLT_LOAD(x, 0);
    float mean = CLT_LOAD(x, 0) + sum / size.s1;
    for (CLT_INDEX i = 0; i < size.s1; i++) squares += (CLT_LOAD(x, i) - mean) * (CLT_LOAD(x, i) - mean);
    stats[r] = mean;
    stats[size.s0 + r] = 1.0f / sqrt(squares / size.s1 + eps);
}

/* dx = istd (g - (sum g + xhat sum(g xhat)) / D) with g[r, i] = dy[r, i] weight[i], sums over the row */
kernel void ref_layer_norm_grad_input(global const CLT_REAL *x, global const float *stats,
                                      global const float *weight, global const CLT_REAL *dy,
                                      global CLT_REAL *dx, CLT_INDEX_VECTOR(2) size) {
    CLT_INDEX r = get_global_id(0), row = r * size.s1;
    if (r >= size.s0) return;
    float mean = stats[r], istd = stats[size.s0 + r], sum = 0, product = 0;
    for (CLT_INDEX i = 0; i < size.s1; i++) {
        float g = CLT_LOAD(dy, row + i) * weight[i];
        sum += g;
        product += g * (CLT_LOAD(x, row + i) - mean) * istd;
    }
    for (CLT_INDEX i = 0; i < size.s1; i++) {
        float xhat = (CLT_LOAD(x, row + i) - mean) * istd;
        CLT_STORE(dx, row + i, istd * (CLT_LOAD(dy, row + i) * weight[i] - (sum + xhat * product) / size.s1));
    }
}

/* grads[0, i] = sum over r of dy[r, i], grads[1, i] = the same of dy xhat */
kernel void ref_layer_norm_grad_weight(global const CLT_REAL *x, global const float *stats,
                                       global const CLT_REAL *dy, global float *grads, CLT_INDEX_VECTOR(2) size) {
    CLT_INDEX i = get_global_id(0);
    if (i >= size.s1) return;
    float sum = 0, product = 0;
    for (CLT_INDEX r = 0; r < size.s0; r++) {
        float g = CLT_LOAD(dy, r * size.s1 + i);
        sum += g;
        product += g * (CLT_LOAD(x, r * size.s1 + i) - stats[r]) * stats[size.s0 + r];
    }
    grads[i] = sum;
    grads[size.s1 + i] = product;
}
