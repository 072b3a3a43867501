/*
 * The sums of batch normalization by work-groups, one a chunk of images, or of one image; formulas are in cl/reference.
 * x [N, C, inner], of any storage type, statistics [2, C]; xhat = (x - mean) istd.
 * size: N, C, inner. cut: chunks, images in a chunk, chunks that share those images, values that each has of an image.
 */

/* The images of a chunk, from s0 to before s1, and what it has of each, from s2 to before s3. */
static int4 group_batch_norm_chunk(int chunk, int4 cut, int4 size) {
    int image = chunk / cut.s2 * cut.s1, start = chunk % cut.s2 * cut.s3;
    return (int4)(image, min(image + cut.s1, size.s0), start, min(start + cut.s3, size.s2));
}

/* The sum over the chunks of partial[chunk, c], in their order. */
static float group_batch_norm_total(global const float *partial, int c, int channels, int chunks) {
    float sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * channels + c];
    return sum;
}

/* The mean of a channel. Sums are of what x differs by from the channel's first value: added up one after the other, values that
 * are large and differ by little would lose what they differ by. */
static float group_batch_norm_mean(global const CLT_REAL *x, global const float *sums, int c, int4 size, int chunks) {
    return CLT_LOAD(x, c * size.s2) + group_batch_norm_total(sums, c, size.s1, chunks) / ((float)size.s0 * size.s2);
}

/* sums[chunk, c] = sum over n and i of the chunk of x[n, c, i] - x[0, c, 0] */
kernel void group_batch_norm_sum(global const CLT_REAL *x, global float *sums, int4 size, int4 cut) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= cut.s0 * size.s1) return;
    int c = group % size.s1;
    int4 own = group_batch_norm_chunk(group / size.s1, cut, size);
    float first = CLT_LOAD(x, c * size.s2), sum = 0;
    for (int n = own.s0; n < own.s1; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = own.s2 + lane; i < own.s3; i += lanes) sum += CLT_LOAD(x, row + i) - first;
    }
    sum = clt_group_sum(sum, scratch);
    if (lane == 0) sums[group] = sum;
}

/*
 * squares[chunk, c] = sum over n and i of the chunk of (x[n, c, i] - mean[c])^2.
 * A pass of its own, for the squares of large values would swallow a small variance.
 */
kernel void group_batch_norm_squares(global const CLT_REAL *x, global const float *sums,
                                   global float *squares, int4 size, int4 cut) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= cut.s0 * size.s1) return;
    int c = group % size.s1;
    int4 own = group_batch_norm_chunk(group / size.s1, cut, size);
    float mean = group_batch_norm_mean(x, sums, c, size, cut.s0);
    float sum = 0;
    for (int n = own.s0; n < own.s1; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = own.s2 + lane; i < own.s3; i += lanes) {
            float deviation = CLT_LOAD(x, row + i) - mean;
            sum += deviation * deviation;
        }
    }
    sum = clt_group_sum(sum, scratch);
    if (lane == 0) squares[group] = sum;
}

/*
 * stats[0, c] = mean, stats[1, c] = 1 / sqrt(var + eps) with var = squares / M, M = N inner. The running
 * statistics move towards mean and the variance of the population, squares / (M - 1), unless these are not finite: one batch
 * with NaN in it must not spoil them for good.
 */
kernel void group_batch_norm_stats(global const CLT_REAL *x, global const float *sums, global const float *squares,
                                 global float *running_mean, global float *running_var,
                                 global float *stats, int4 size, int chunks, float eps, float momentum) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    float count = (float)size.s0 * size.s2;
    float mean = group_batch_norm_mean(x, sums, c, size, chunks);
    float total = group_batch_norm_total(squares, c, size.s1, chunks);
    stats[c] = mean;
    stats[size.s1 + c] = 1.0f / sqrt(total / count + eps);
    if (!isfinite(mean) || !isfinite(total)) return;
    running_mean[c] += momentum * (mean - running_mean[c]);
    running_var[c] += momentum * (total / (count - 1) - running_var[c]);
}

/* moments[0, c] = mean, moments[1, c] = sum of squared deviations from it */
kernel void group_batch_norm_moments(global const CLT_REAL *x, global const float *sums, global const float *squares,
                                   global float *moments, int4 size, int chunks) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    moments[c] = group_batch_norm_mean(x, sums, c, size, chunks);
    moments[size.s1 + c] = group_batch_norm_total(squares, c, size.s1, chunks);
}

/* partial[chunk, 0, c] = sum over n and i of the chunk of dy[n, c, i];
 * partial[chunk, 1, c] = the same of dy xhat */
kernel void group_batch_norm_grad_sums(global const CLT_REAL *x, global const float *stats,
                                      global const CLT_REAL *dy, global float *partial, int4 size,
                                      int4 cut) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= cut.s0 * size.s1) return;
    int c = group % size.s1, chunk = group / size.s1;
    int4 own = group_batch_norm_chunk(chunk, cut, size);
    float mean = stats[c], istd = stats[size.s1 + c];
    float sum = 0, product = 0;
    for (int n = own.s0; n < own.s1; n++) {
        int row = (n * size.s1 + c) * size.s2;
        for (int i = own.s2 + lane; i < own.s3; i += lanes) {
            sum += CLT_LOAD(dy, row + i);
            product += CLT_LOAD(dy, row + i) * (CLT_LOAD(x, row + i) - mean);
        }
    }
    sum = clt_group_sum(sum, scratch);
    product = clt_group_sum(product, scratch);
    if (lane == 0) {
        partial[chunk * 2 * size.s1 + c] = sum;
        partial[(chunk * 2 + 1) * size.s1 + c] = product * istd;
    }
}

/* sums[i] = sum over the chunks of partial[chunk, i], i in 0 .. count-1 */
kernel void group_batch_norm_sum_chunks(global const float *partial, global float *sums, int count,
                                      int chunks) {
    int i = get_global_id(0);
    if (i < count) sums[i] = group_batch_norm_total(partial, i, count, chunks);
}
