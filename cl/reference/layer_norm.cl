/*
 * Layer normalization. x [rows, D], statistics [2, rows]: mean, then istd = 1 / sqrt(var + eps);
 * xhat = (x - mean) istd; weight and bias [D]. Sums over a row are made by a work-group.
 * size: rows, D.
 */

/* stats[0, r] = mean over i of x[r, i]; stats[1, r] = 1 / sqrt(var + eps) with var the mean of
 * (x - mean)^2, in a second pass */
kernel void ref_layer_norm_stats(global const float *x, global float *stats, int2 size, float eps) {
    local float scratch[CLT_GROUP];
    int r = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (r >= size.s0) return;
    int row = r * size.s1;
    float sum = 0;
    for (int i = lane; i < size.s1; i += lanes) sum += x[row + i];
    float mean = clt_group_sum(sum, scratch) / size.s1;

    sum = 0;
    for (int i = lane; i < size.s1; i += lanes) {
        float deviation = x[row + i] - mean;
        sum += deviation * deviation;
    }
    float var = clt_group_sum(sum, scratch) / size.s1;
    if (lane == 0) {
        stats[r] = mean;
        stats[size.s0 + r] = 1.0f / sqrt(var + eps);
    }
}

/* y[r, i] = xhat[r, i] weight[i] + bias[i] */
kernel void ref_layer_norm(global const float *x, global const float *stats, global const float *weight,
                           global const float *bias, global float *y, int2 size) {
    int at = get_global_id(0);
    if (at >= size.s0 * size.s1) return;
    int r = at / size.s1, i = at % size.s1;
    y[at] = (x[at] - stats[r]) * stats[size.s0 + r] * weight[i] + bias[i];
}

/* dx = istd (g - (sum g + xhat sum(g xhat)) / D) with g[r, i] = dy[r, i] weight[i], sums over the row */
kernel void ref_layer_norm_grad_input(global const float *x, global const float *stats,
                                      global const float *weight, global const float *dy,
                                      global float *dx, int2 size) {
    local float scratch[CLT_GROUP];
    int r = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (r >= size.s0) return;
    int row = r * size.s1;
    float mean = stats[r], istd = stats[size.s0 + r];
    float sum = 0, product = 0;
    for (int i = lane; i < size.s1; i += lanes) {
        float g = dy[row + i] * weight[i];
        sum += g;
        product += g * (x[row + i] - mean) * istd;
    }
    sum = clt_group_sum(sum, scratch) / size.s1;
    product = clt_group_sum(product, scratch) / size.s1;
    for (int i = lane; i < size.s1; i += lanes) {
        float xhat = (x[row + i] - mean) * istd;
        dx[row + i] = istd * (dy[row + i] * weight[i] - sum - xhat * product);
    }
}

/*
 * partial[chunk, 0, i] = sum of dy[r, i], partial[chunk, 1, i] = sum of dy xhat, over the rows of the
 * chunk: the rows are cut into `chunks` of `chunk_rows`.
 */
kernel void ref_layer_norm_grad_weight(global const float *x, global const float *stats,
                                       global const float *dy, global float *partial, int2 size,
                                       int chunks, int chunk_rows) {
    int at = get_global_id(0);
    if (at >= chunks * size.s1) return;
    int i = at % size.s1, chunk = at / size.s1;
    int end = min((chunk + 1) * chunk_rows, size.s0);
    float sum = 0, product = 0;
    for (int r = chunk * chunk_rows; r < end; r++) {
        float g = dy[r * size.s1 + i];
        sum += g;
        product += g * (x[r * size.s1 + i] - stats[r]) * stats[size.s0 + r];
    }
    partial[chunk * 2 * size.s1 + i] = sum;
    partial[(chunk * 2 + 1) * size.s1 + i] = product;
}

/* sums[i] = sum over the chunks of partial[chunk, i], in their order; i in 0 .. count-1. */
kernel void ref_layer_norm_sum_chunks(global const float *partial, global float *sums, int count,
                                      int chunks) {
    int i = get_global_id(0);
    if (i >= count) return;
    float sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * count + i];
    sums[i] = sum;
}
