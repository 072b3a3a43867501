/*
 * The sums of layer normalization by work-groups; formulas are in cl/reference. x [rows, D], statistics [2, rows]; xhat =
 * (x - mean) istd. A row is a work-group's. size: rows, D. x, dy and dx are stored as CLT_STORAGE, all else as f32.
 */

/* stats[0, r] = mean over i of x[r, i]; stats[1, r] = 1 / sqrt(var + eps) with var the mean of
 * (x - mean)^2, in a second pass. The first adds up what x differs by from the row's first, for sums of what is
 * large would lose what it differs by. */
kernel void group_layer_norm_stats(global const CLT_REAL *x, global float *stats, int2 size, float eps) {
    local float scratch[CLT_GROUP];
    int r = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (r >= size.s0) return;
    int row = r * size.s1;
    float first = CLT_LOAD(x, row), sum = 0;
    for (int i = lane; i < size.s1; i += lanes) sum += CLT_LOAD(x, row + i) - first;
    float mean = first + clt_group_sum(sum, scratch) / size.s1;

    sum = 0;
    for (int i = lane; i < size.s1; i += lanes) {
        float deviation = CLT_LOAD(x, row + i) - mean;
        sum += deviation * deviation;
    }
    float var = clt_group_sum(sum, scratch) / size.s1;
    if (lane == 0) {
        stats[r] = mean;
        stats[size.s0 + r] = 1.0f / sqrt(var + eps);
    }
}

/* dx of a row with the means `sum` of g and `product` of g xhat: every `step`-th element from `first` to before `end`. */
static void layer_norm_write_grad(global const CLT_REAL *x, global const float *weight, global const CLT_REAL *dy, global CLT_REAL *dx,
                                  float mean, float istd, float sum, float product, int first, int end, int step) {
    for (int i = first; i < end; i += step) {
        float xhat = (CLT_LOAD(x, i) - mean) * istd;
        CLT_STORE(dx, i, istd * (CLT_LOAD(dy, i) * weight[i] - sum - xhat * product));
    }
}

/* dx = istd (g - (sum g + xhat sum(g xhat)) / D) with g[r, i] = dy[r, i] weight[i], sums over the row */
kernel void group_layer_norm_grad_input(global const CLT_REAL *x, global const float *stats,
                                      global const float *weight, global const CLT_REAL *dy,
                                      global CLT_REAL *dx, int2 size) {
    local float scratch[CLT_GROUP];
    int r = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (r >= size.s0) return;
    int row = r * size.s1;
    float mean = stats[r], istd = stats[size.s0 + r];
    float sum = 0, product = 0;
    for (int i = lane; i < size.s1; i += lanes) {
        float g = CLT_LOAD(dy, row + i) * weight[i];
        sum += g;
        product += g * (CLT_LOAD(x, row + i) - mean) * istd;
    }
    sum = clt_group_sum(sum, scratch) / size.s1;
    product = clt_group_sum(product, scratch) / size.s1;
    layer_norm_write_grad(x + row, weight, dy + row, dx + row, mean, istd, sum, product, lane, size.s1, lanes);
}

/* Longer rows are cut into `chunks` of `length`, a work-group each, whose sums [rows, chunks] the next kernel adds up. */
typedef struct layer_norm_chunk {
    int row, begin, end; /* of the row; from `begin` to before `end` in it */
} layer_norm_chunk;

static layer_norm_chunk layer_norm_chunk_of(int group, int2 size, int chunks, int length) {
    int begin = group % chunks * length;
    return (layer_norm_chunk){group / chunks, begin, begin + min(length, size.s1 - begin)};
}

/* The mean over a row of which sums [chunks] are the chunks' sums, in every work-item. */
CLT_TOGETHER float layer_norm_mean(global const float *sums, int2 size, int chunks, local float *scratch) {
    float sum = 0;
    for (int i = get_local_id(0); i < chunks; i += get_local_size(0)) sum += sums[i];
    return clt_group_sum(sum, scratch) / size.s1;
}

kernel void group_layer_norm_sum_part(global const CLT_REAL *x, global float *sums, int2 size, int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * chunks) return;
    layer_norm_chunk at = layer_norm_chunk_of(group, size, chunks, length);
    float first = CLT_LOAD(x, at.row * size.s1), sum = 0;
    for (int i = at.begin + lane; i < at.end; i += lanes) sum += CLT_LOAD(x, at.row * size.s1 + i) - first;
    sum = clt_group_sum(sum, scratch);
    if (lane == 0) sums[group] = sum;
}

kernel void group_layer_norm_squares_part(global const CLT_REAL *x, global const float *sums, global float *squares, int2 size,
                                        int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * chunks) return;
    layer_norm_chunk at = layer_norm_chunk_of(group, size, chunks, length);
    float mean = CLT_LOAD(x, at.row * size.s1) + layer_norm_mean(sums + at.row * chunks, size, chunks, scratch), sum = 0;
    for (int i = at.begin + lane; i < at.end; i += lanes) {
        float off = CLT_LOAD(x, at.row * size.s1 + i) - mean;
        sum += off * off;
    }
    sum = clt_group_sum(sum, scratch);
    if (lane == 0) squares[group] = sum;
}

/* As group_layer_norm_stats */
kernel void group_layer_norm_join_stats(global const CLT_REAL *x, global const float *sums, global const float *squares,
                                      global float *stats, int2 size, int chunks, float eps) {
    local float scratch[CLT_GROUP];
    int r = get_group_id(0);
    if (r >= size.s0) return;
    float mean = CLT_LOAD(x, r * size.s1) + layer_norm_mean(sums + r * chunks, size, chunks, scratch);
    float var = layer_norm_mean(squares + r * chunks, size, chunks, scratch);
    if (get_local_id(0) == 0) {
        stats[r] = mean;
        stats[size.s0 + r] = 1.0f / sqrt(var + eps);
    }
}

/* sums = sum g, products = sum(g xhat) with g as in group_layer_norm_grad_input */
kernel void group_layer_norm_grad_sums_part(global const CLT_REAL *x, global const float *stats, global const float *weight,
                                          global const CLT_REAL *dy, global float *sums, global float *products, int2 size,
                                          int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * chunks) return;
    layer_norm_chunk at = layer_norm_chunk_of(group, size, chunks, length);
    int row = at.row * size.s1;
    float mean = stats[at.row], istd = stats[size.s0 + at.row], sum = 0, product = 0;
    for (int i = at.begin + lane; i < at.end; i += lanes) {
        float g = CLT_LOAD(dy, row + i) * weight[i];
        sum += g;
        product += g * (CLT_LOAD(x, row + i) - mean) * istd;
    }
    sum = clt_group_sum(sum, scratch);
    product = clt_group_sum(product, scratch);
    if (lane == 0) {
        sums[group] = sum;
        products[group] = product;
    }
}

/* As group_layer_norm_grad_input */
kernel void group_layer_norm_grad_input_part(global const CLT_REAL *x, global const float *stats, global const float *weight,
                                           global const CLT_REAL *dy, global const float *sums, global const float *products,
                                           global CLT_REAL *dx, int2 size, int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * chunks) return;
    layer_norm_chunk at = layer_norm_chunk_of(group, size, chunks, length);
    float sum = layer_norm_mean(sums + at.row * chunks, size, chunks, scratch);
    float product = layer_norm_mean(products + at.row * chunks, size, chunks, scratch);
    layer_norm_write_grad(x + at.row * size.s1, weight, dy + at.row * size.s1, dx + at.row * size.s1, stats[at.row],
                          stats[size.s0 + at.row], sum, product, at.begin + lane, at.end, lanes);
}

/*
 * partial[chunk, 0, i] = sum of dy[r, i], partial[chunk, 1, i] = sum of dy xhat, over the rows of the
 * chunk: the rows are cut into `chunks` of `chunk_rows`.
 */
kernel void group_layer_norm_grad_weight(global const CLT_REAL *x, global const float *stats,
                                       global const CLT_REAL *dy, global float *partial, int2 size,
                                       int chunks, int chunk_rows) {
    int at = get_global_id(0);
    if (at >= chunks * size.s1) return;
    int i = at % size.s1, chunk = at / size.s1;
    int end = min((chunk + 1) * chunk_rows, size.s0);
    float sum = 0, product = 0;
    for (int r = chunk * chunk_rows; r < end; r++) {
        float g = CLT_LOAD(dy, r * size.s1 + i);
        sum += g;
        product += g * (CLT_LOAD(x, r * size.s1 + i) - stats[r]) * stats[size.s0 + r];
    }
    partial[chunk * 2 * size.s1 + i] = sum;
    partial[(chunk * 2 + 1) * size.s1 + i] = product;
}

/* sums[i] = sum over the chunks of partial[chunk, i], in their order; i in 0 .. count-1. */
kernel void group_layer_norm_sum_chunks(global const float *partial, global float *sums, int count,
                                      int chunks) {
    int i = get_global_id(0);
    if (i >= count) return;
    float sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * count + i];
    sums[i] = sum;
}
