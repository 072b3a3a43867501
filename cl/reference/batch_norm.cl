/*
 * Batch normalization. x [N, C, inner], of any storage type, statistics [2, C]: mean, then istd = 1 / sqrt(var + eps);
 * xhat = (x - mean) istd. Sums over a channel are a work-item's.
 * size: N, C, inner.
 */

/* Where image n of channel c begins. */
static int batch_norm_image(int n, int c, int4 size) {
    return (n * size.s1 + c) * size.s2;
}

/* The mean of a channel. What x differs by from the channel's first value is added up: sums of what is large would lose
 * what it differs by. */
static float batch_norm_mean(global const CLT_REAL *x, int c, int4 size) {
    float first = CLT_LOAD(x, c * size.s2), sum = 0;
    for (int n = 0; n < size.s0; n++)
        for (int i = 0; i < size.s2; i++) sum += CLT_LOAD(x, batch_norm_image(n, c, size) + i) - first;
    return first + sum / ((float)size.s0 * size.s2);
}

/* Its sum of (x - mean)^2. A pass of its own, for the squares of large values would swallow a small variance. */
static float batch_norm_squares(global const CLT_REAL *x, float mean, int c, int4 size) {
    float sum = 0;
    for (int n = 0; n < size.s0; n++)
        for (int i = 0; i < size.s2; i++) {
            float deviation = CLT_LOAD(x, batch_norm_image(n, c, size) + i) - mean;
            sum += deviation * deviation;
        }
    return sum;
}

/*
 * stats[0, c] = mean, stats[1, c] = 1 / sqrt(var + eps) with var = squares / M, M = N inner. The running
 * statistics move towards mean and the variance of the population, squares / (M - 1), unless these are not finite: one batch
 * with NaN in it must not spoil them for good.
 */
static void batch_norm_keep(float mean, float squares, float count, int c, int channels, global float *running_mean,
                            global float *running_var, global float *stats, float eps, float momentum) {
    stats[c] = mean;
    stats[channels + c] = 1.0f / sqrt(squares / count + eps);
    if (!isfinite(mean) || !isfinite(squares)) return;
    running_mean[c] += momentum * (mean - running_mean[c]);
    running_var[c] += momentum * (squares / (count - 1) - running_var[c]);
}

kernel void ref_batch_norm_stats(global const CLT_REAL *x, global float *running_mean, global float *running_var,
                                 global float *stats, int4 size, float eps, float momentum) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    float mean = batch_norm_mean(x, c, size), squares = batch_norm_squares(x, mean, c, size);
    batch_norm_keep(mean, squares, (float)size.s0 * size.s2, c, size.s1, running_mean, running_var, stats, eps, momentum);
}

/* moments[0, c] = mean, moments[1, c] = sum of squared deviations from it */
kernel void ref_batch_norm_moments(global const CLT_REAL *x, global float *moments, int4 size) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    float mean = batch_norm_mean(x, c, size);
    moments[c] = mean;
    moments[size.s1 + c] = batch_norm_squares(x, mean, c, size);
}

/*
 * As ref_batch_norm_stats, of the images of all ranks: moments[rank, 2, c] are of images[rank] images, `inner` values each.
 * They are joined in the order of ranks by the formula of Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for
 * computing sample variances" (1979). A rank may have no images.
 */
kernel void ref_batch_norm_combine(global const float *moments, global const float *images, global float *running_mean,
                                   global float *running_var, global float *stats, int channels, int ranks, int inner,
                                   float eps, float momentum) {
    int c = get_global_id(0);
    if (c >= channels) return;
    float mean = 0, squares = 0, count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        float more = images[rank] * inner, all = count + more;
        if (more <= 0) continue;
        float delta = moments[rank * 2 * channels + c] - mean;
        mean += delta * (more / all);
        squares += moments[(rank * 2 + 1) * channels + c] + delta * delta * (count * more / all);
        count = all;
    }
    batch_norm_keep(mean, squares, count, c, channels, running_mean, running_var, stats, eps, momentum);
}

/* Evaluation: stats[0, c] = mean[c], stats[1, c] = 1 / sqrt(var[c] + eps) */
kernel void ref_batch_norm_running_stats(global const float *mean, global const float *var,
                                         global float *stats, int channels, float eps) {
    int c = get_global_id(0);
    if (c >= channels) return;
    stats[c] = mean[c];
    stats[channels + c] = 1.0f / sqrt(var[c] + eps);
}

/* sums[0, c] = sum over n and i of dy[n, c, i]; sums[1, c] = the same of dy xhat */
kernel void ref_batch_norm_grad_sums(global const CLT_REAL *x, global const float *stats, global const CLT_REAL *dy,
                                      global float *sums, int4 size) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    float sum = 0, product = 0;
    for (int n = 0; n < size.s0; n++)
        for (int i = 0; i < size.s2; i++) {
            int at = batch_norm_image(n, c, size) + i;
            sum += CLT_LOAD(dy, at);
            product += CLT_LOAD(dy, at) * (CLT_LOAD(x, at) - stats[c]);
        }
    sums[c] = sum;
    sums[size.s1 + c] = product * stats[size.s1 + c];
}
