/*
 * Batch normalization. x [N, C, inner], statistics [2, C]: mean, then istd = 1 / sqrt(var + eps);
 * xhat = (x - mean) istd. Sums over a channel are made by a work-group.
 * size: N, C, inner.
 */

/*
 * mean[c] = sum over n, i of x[n, c, i] / M, with M = N inner; var[c] = sum of (x - mean)^2 / M, in a
 * second pass, for the squares of large values would swallow a small variance. The running statistics
 * move towards these, with the variance of the population, M / (M - 1) times as large.
 */
kernel void ref_batch_norm_stats(global const float *x, global float *running_mean, global float *running_var,
                                 global float *stats, int4 size, float eps, float momentum) {
    local float scratch[CLT_GROUP];
    int c = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (c >= size.s1) return;
    float count = (float)size.s0 * size.s2;

    float sum = 0;
    for (int n = 0; n < size.s0; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = lane; i < size.s2; i += lanes) sum += x[row + i];
    }
    float mean = clt_group_sum(sum, scratch) / count;

    sum = 0;
    for (int n = 0; n < size.s0; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = lane; i < size.s2; i += lanes) {
            float deviation = x[row + i] - mean;
            sum += deviation * deviation;
        }
    }
    float squares = clt_group_sum(sum, scratch);

    if (lane == 0) {
        stats[c] = mean;
        stats[size.s1 + c] = 1.0f / sqrt(squares / count + eps);
        running_mean[c] += momentum * (mean - running_mean[c]);
        running_var[c] += momentum * (squares / (count - 1) - running_var[c]);
    }
}

/* Evaluation: stats[0, c] = mean[c], stats[1, c] = 1 / sqrt(var[c] + eps) */
kernel void ref_batch_norm_running_stats(global const float *mean, global const float *var, global float *stats,
                                         int channels, float eps) {
    int c = get_global_id(0);
    if (c >= channels) return;
    stats[c] = mean[c];
    stats[channels + c] = 1.0f / sqrt(var[c] + eps);
}

/* y[n, c, i] = xhat[n, c, i] weight[c] + bias[c] */
kernel void ref_batch_norm(global const float *x, global const float *stats, global const float *weight,
                           global const float *bias, global float *y, int4 size) {
    int i = get_global_id(0);
    if (i >= size.s0 * size.s1 * size.s2) return;
    int c = i / size.s2 % size.s1;
    y[i] = (x[i] - stats[c]) * stats[size.s1 + c] * weight[c] + bias[c];
}

/* sums[0, c] = sum over n, i of dy[n, c, i]; sums[1, c] = sum of dy xhat */
kernel void ref_batch_norm_grad_stats(global const float *x, global const float *stats, global const float *dy,
                                      global float *sums, int4 size) {
    local float scratch[CLT_GROUP];
    int c = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (c >= size.s1) return;
    float mean = stats[c], istd = stats[size.s1 + c];
    float sum = 0, product = 0;
    for (int n = 0; n < size.s0; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = lane; i < size.s2; i += lanes) {
            sum += dy[row + i];
            product += dy[row + i] * (x[row + i] - mean);
        }
    }
    sum = clt_group_sum(sum, scratch);
    product = clt_group_sum(product, scratch);
    if (lane == 0) {
        sums[c] = sum;
        sums[size.s1 + c] = product * istd;
    }
}

/*
 * dx = weight istd (dy - (sums[0, c] + xhat sums[1, c]) / M) in training. In evaluation the
 * statistics do not depend on x and the second term is none: inverse_count is 1/M or 0.
 */
kernel void ref_batch_norm_grad_input(global const float *x, global const float *stats, global const float *weight,
                                      global const float *sums, global const float *dy, global float *dx, int4 size,
                                      float inverse_count) {
    int i = get_global_id(0);
    if (i >= size.s0 * size.s1 * size.s2) return;
    int c = i / size.s2 % size.s1;
    float istd = stats[size.s1 + c], xhat = (x[i] - stats[c]) * istd;
    dx[i] = weight[c] * istd * (dy[i] - (sums[c] + xhat * sums[size.s1 + c]) * inverse_count);
}
