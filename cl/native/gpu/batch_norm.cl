/*
 * The sums of batch normalization for devices whose work-items are lanes; formulas are in cl/reference. x [N, C, inner], of any storage type, statistics
 * [2, C]; xhat = (x - mean) istd. A work-group has a channel of some images, a chunk, of which neighbouring work-items take neighbouring elements, four each
 * where inner is a multiple of four. Bound: memory, once.
 *
 * The mean and the squared deviations from it come of one pass: each work-item adds up what its values differ by from its own first one, so that large
 * values which differ by little do not lose that; then means and squares are joined by twos (Chan, Golub, LeVeque 1983), in an order that the shape alone
 * tells.
 *
 * size: N, C, inner. cut: images in a chunk, chunks. In front: fours.cl, GPU_ITEMS, GPU_FIXED_GROUP, and GPU_VECTOR.
 */

/* How many values there are, their mean, and the sum of the squared deviations from it. */
typedef struct moments {
    float count, mean, squares;
} moments;

static moments moments_joined(moments a, moments b) {
    float count = a.count + b.count, share = count > 0 ? b.count / count : 0, apart = b.mean - a.mean;
    return (moments){count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

/* Of n values that differ by `sum` and `square` from `shift`, in each component. */
static moments moments_of(GPU_PART shift, GPU_PART sum, GPU_PART square, int n) {
    float each = n > 0 ? 1.0f / n : 0;
    GPU_PART mean = shift + sum * each, squares = square - sum * sum * each;
#if GPU_VECTOR == 4
    float all = 0.25f * (mean.s0 + mean.s1 + (mean.s2 + mean.s3));
    float4 apart = mean - all;
    squares += n * apart * apart;
    return (moments){4.0f * n, all, squares.s0 + squares.s1 + (squares.s2 + squares.s3)};
#else
    return (moments){n, mean, squares};
#endif
}

/* chunks[chunk, c] = the mean, and the squared deviations from it, of x[n, c, i] over n and i of the chunk */
kernel GPU_FIXED_GROUP void gpu_batch_norm_chunks(global const CLT_REAL *x, global float2 *chunks, int4 size, int2 cut) {
    local float counts[GPU_ITEMS], means[GPU_ITEMS], squares[GPU_ITEMS];
    int group = get_group_id(0), id = get_local_id(0), c = group % size.s1, first = group / size.s1 * cut.s0;
    int image = first, last = min(first + cut.s0, size.s0), i = id * GPU_VECTOR, n = 0;
    GPU_PART shift = 0, sum = 0, square = 0;
    for (;;) {
        for (; i >= size.s2; i -= size.s2) image++;
        if (image >= last) break;
        GPU_PART value = GPU_LOAD_PART(x, (image * size.s1 + c) * size.s2 + i);
        if (n == 0) shift = value;
        value -= shift;
        sum += value;
        square += value * value;
        i += GPU_ITEMS * GPU_VECTOR;
        n++;
    }
    moments own = moments_of(shift, sum, square, n);
    counts[id] = own.count;
    means[id] = own.mean;
    squares[id] = own.squares;
    for (int step = GPU_ITEMS / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < step) {
            moments both = moments_joined((moments){counts[id], means[id], squares[id]},
                                          (moments){counts[id + step], means[id + step], squares[id + step]});
            counts[id] = both.count;
            means[id] = both.mean;
            squares[id] = both.squares;
        }
    }
    if (id == 0) chunks[group] = (float2)(means[0], squares[0]);
}

/* Of a channel: its chunks in their order. */
static moments batch_norm_joined(global const float2 *chunks, int c, int4 size, int2 cut) {
    moments all = {0, 0, 0};
    for (int chunk = 0; chunk < cut.s1; chunk++) {
        float2 own = chunks[chunk * size.s1 + c];
        int images = min(cut.s0, size.s0 - chunk * cut.s0);
        all = moments_joined(all, (moments){(float)images * size.s2, own.s0, own.s1});
    }
    return all;
}

/* stats[0, c] = mean, stats[1, c] = 1 / sqrt(var + eps), and the running statistics, as ref_batch_norm_stats */
kernel void gpu_batch_norm_stats(global const float2 *chunks, global float *running_mean, global float *running_var, global float *stats, int4 size,
                                 int2 cut, float eps, float momentum) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    moments all = batch_norm_joined(chunks, c, size, cut);
    stats[c] = all.mean;
    stats[size.s1 + c] = 1.0f / sqrt(all.squares / all.count + eps);
    if (!isfinite(all.mean) || !isfinite(all.squares)) return;
    running_mean[c] += momentum * (all.mean - running_mean[c]);
    running_var[c] += momentum * (all.squares / (all.count - 1) - running_var[c]);
}

/* moments[0, c] = mean, moments[1, c] = sum of squared deviations from it */
kernel void gpu_batch_norm_moments(global const float2 *chunks, global float *result, int4 size, int2 cut) {
    int c = get_global_id(0);
    if (c >= size.s1) return;
    moments all = batch_norm_joined(chunks, c, size, cut);
    result[c] = all.mean;
    result[size.s1 + c] = all.squares;
}

#if GPU_VECTOR == 4
#define BATCH_NORM_SUM(x) ((x).s0 + (x).s1 + ((x).s2 + (x).s3))
#else
#define BATCH_NORM_SUM(x) (x)
#endif

/* partial[chunk, 0, c] = sum over n and i of the chunk of dy[n, c, i]; partial[chunk, 1, c] = the same of dy xhat */
kernel GPU_FIXED_GROUP void gpu_batch_norm_grad_sums(global const CLT_REAL *x, global const float *stats, global const CLT_REAL *dy,
                                                     global float *partial, int4 size, int2 cut) {
    local float sums[GPU_ITEMS], products[GPU_ITEMS];
    int group = get_group_id(0), id = get_local_id(0), c = group % size.s1, chunk = group / size.s1;
    int image = chunk * cut.s0, last = min(image + cut.s0, size.s0), i = id * GPU_VECTOR;
    float mean = stats[c], istd = stats[size.s1 + c];
    GPU_PART sum = 0, product = 0;
    for (;;) {
        for (; i >= size.s2; i -= size.s2) image++;
        if (image >= last) break;
        int at = (image * size.s1 + c) * size.s2 + i;
        GPU_PART gradient = GPU_LOAD_PART(dy, at);
        sum += gradient;
        product += gradient * (GPU_LOAD_PART(x, at) - mean);
        i += GPU_ITEMS * GPU_VECTOR;
    }
    sums[id] = BATCH_NORM_SUM(sum);
    products[id] = BATCH_NORM_SUM(product);
    for (int step = GPU_ITEMS / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < step) {
            sums[id] += sums[id + step];
            products[id] += products[id + step];
        }
    }
    if (id == 0) {
        partial[2 * chunk * size.s1 + c] = sums[0];
        partial[(2 * chunk + 1) * size.s1 + c] = products[0] * istd;
    }
}

/* sums[i] = the sum over the chunks of partial[chunk, i], in their order. size: how many i, and chunks. */
kernel void gpu_batch_norm_total(global const float *partial, global float *sums, int2 size) {
    int i = get_global_id(0);
    float sum = 0;
    if (i >= size.s0) return;
    for (int chunk = 0; chunk < size.s1; chunk++) sum += partial[chunk * size.s0 + i];
    sums[i] = sum;
}
