/*
 * Sums down the columns of matrices [R, C] whose rows lie one after the other: channels-last images, whose pixels are
 * rows, and batches of features. A work-item goes over a chunk of rows and at most CPU_COLUMNS_MOST columns; the sums
 * of a row's columns are kept in the first cache, and each element of the matrix is read once. Chunks are added up in
 * their order. Bound: memory.
 */
#define CPU_COLUMNS_MOST 512

/* What an item has to do. shape: A (matrices), R, C, chunks of rows; `rows` in a chunk. */
typedef struct cpu_columns {
    int matrix, chunk, first, last, column, count;
} cpu_columns;

static cpu_columns cpu_columns_of(int item, int4 shape, int rows) {
    int blocks = (shape.s2 + CPU_COLUMNS_MOST - 1) / CPU_COLUMNS_MOST;
    cpu_columns p;
    p.column = item % blocks * CPU_COLUMNS_MOST;
    p.count = min(CPU_COLUMNS_MOST, shape.s2 - p.column);
    p.chunk = item / blocks % shape.s3;
    p.matrix = item / blocks / shape.s3;
    p.first = p.chunk * rows;
    p.last = min(p.first + rows, shape.s1);
    return p;
}

/* to[chunk, 0, c] = first[c], to[chunk, 1, c] = second[c] for the item's columns; the matrices are one. */
static void cpu_columns_keep_two(const cpu_columns *p, const float *first, const float *second, global float *to,
                                 int columns) {
    to += p->chunk * 2 * columns + p->column;
    for (int c = 0; c < p->count; c++) {
        to[c] = first[c];
        to[columns + c] = second[c];
    }
}

/* partial[a, chunk, c] = sum over the chunk's rows of x[a, r, c] */
CLT_ITEM void cpu_columns_sum_item(int item, global const float *x, global float *partial, int4 shape,
                                   int rows) {
    cpu_columns p = cpu_columns_of(item, shape, rows);
    float sum[CPU_COLUMNS_MOST];
    if (p.matrix >= shape.s0) return;
    for (int c = 0; c < p.count; c++) sum[c] = 0;
    for (int r = p.first; r < p.last; r++) {
        global const float *row = x + (p.matrix * shape.s1 + r) * shape.s2 + p.column;
        for (int c = 0; c < p.count; c++) sum[c] += row[c];
    }
    global float *to = partial + (p.matrix * shape.s3 + p.chunk) * shape.s2 + p.column;
    for (int c = 0; c < p.count; c++) to[c] = sum[c];
}
kernel void cpu_columns_sum(global const float *x, global float *partial, int4 shape, int rows) {
    cpu_columns_sum_item(get_global_id(0), x, partial, shape, rows);
}

/* y[a, c] = scale sum over the chunks of partial[a, chunk, c] */
CLT_ITEM void cpu_columns_total_item(int item, global const float *partial, global float *y, int4 shape,
                                     float scale) {
    cpu_columns p = cpu_columns_of(item, (int4)(shape.s0, shape.s1, shape.s2, 1), 0);
    float sum[CPU_COLUMNS_MOST];
    if (p.matrix >= shape.s0) return;
    for (int c = 0; c < p.count; c++) sum[c] = 0;
    for (int chunk = 0; chunk < shape.s3; chunk++) {
        global const float *row = partial + (p.matrix * shape.s3 + chunk) * shape.s2 + p.column;
        for (int c = 0; c < p.count; c++) sum[c] += row[c];
    }
    for (int c = 0; c < p.count; c++) y[p.matrix * shape.s2 + p.column + c] = scale * sum[c];
}
kernel void cpu_columns_total(global const float *partial, global float *y, int4 shape, float scale) {
    cpu_columns_total_item(get_global_id(0), partial, y, shape, scale);
}

/* ---- batch normalization; the matrices are one ---- */

/*
 * moments[chunk, 0, c] = the chunk's mean, moments[chunk, 1, c] = its sum of squared deviations from that mean: two
 * loops over what is in the cache by then. The first adds up what rows differ by from the chunk's first, for sums of what is
 * large would lose what they differ by.
 */
CLT_ITEM void cpu_columns_moments_item(int item, global const float *x, global float *moments, int4 shape,
                                       int rows) {
    cpu_columns p = cpu_columns_of(item, shape, rows);
    float mean[CPU_COLUMNS_MOST], squares[CPU_COLUMNS_MOST];
    if (p.matrix >= shape.s0) return;
    for (int c = 0; c < p.count; c++) mean[c] = squares[c] = 0;
    x += p.column;
    global const float *first = x + p.first * shape.s2;
    for (int r = p.first; r < p.last; r++)
        for (int c = 0; c < p.count; c++) mean[c] += x[r * shape.s2 + c] - first[c];
    float scale = 1.0f / (p.last - p.first);
    for (int c = 0; c < p.count; c++) mean[c] = mean[c] * scale + first[c];
    for (int r = p.first; r < p.last; r++)
        for (int c = 0; c < p.count; c++) {
            float deviation = x[r * shape.s2 + c] - mean[c];
            squares[c] += deviation * deviation;
        }
    cpu_columns_keep_two(&p, mean, squares, moments, shape.s2);
}
kernel void cpu_columns_moments(global const float *x, global float *moments, int4 shape, int rows) {
    cpu_columns_moments_item(get_global_id(0), x, moments, shape, rows);
}

/* Mean, sum of squared deviations and count of a column. Chunks are joined by the formula of Chan, Golub, LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances" (1979). */
static float3 cpu_columns_join(global const float *moments, int c, int4 shape, int rows) {
    float mean = 0, squares = 0, count = 0;
    for (int chunk = 0; chunk < shape.s3; chunk++) {
        float more = min(rows, shape.s1 - chunk * rows), all = count + more;
        float delta = moments[chunk * 2 * shape.s2 + c] - mean;
        mean += delta * (more / all);
        squares += moments[(chunk * 2 + 1) * shape.s2 + c] + delta * delta * (count * more / all);
        count = all;
    }
    return (float3)(mean, squares, count);
}

/* joined[0, c] = mean, joined[1, c] = sum of squared deviations from it. A work-item, 16 channels. */
CLT_ITEM void cpu_columns_moments_total_item(int item, global const float *moments, global float *joined,
                                             int4 shape, int rows) {
    int start = item * 16, end = min(start + 16, shape.s2);
    for (int c = start; c < end; c++) {
        float3 all = cpu_columns_join(moments, c, shape, rows);
        joined[c] = all.x;
        joined[shape.s2 + c] = all.y;
    }
}
kernel void cpu_columns_moments_total(global const float *moments, global float *joined, int4 shape,
                                      int rows) {
    cpu_columns_moments_total_item(get_global_id(0), moments, joined, shape, rows);
}

/*
 * stats[0, c] = mean, stats[1, c] = 1 / sqrt(var + eps), and the running statistics move as in the reference. A work-item, 16
 * channels.
 */
CLT_ITEM void cpu_columns_stats_item(int item, global const float *moments, global float *running_mean,
                                     global float *running_var, global float *stats, int4 shape, int rows,
                                     float eps, float momentum) {
    int start = item * 16, end = min(start + 16, shape.s2);
    for (int c = start; c < end; c++) {
        float3 all = cpu_columns_join(moments, c, shape, rows);
        float mean = all.x, squares = all.y, count = all.z;
        stats[c] = mean;
        stats[shape.s2 + c] = 1.0f / sqrt(squares / count + eps);
        if (!isfinite(mean) || !isfinite(squares)) continue;
        running_mean[c] += momentum * (mean - running_mean[c]);
        running_var[c] += momentum * (squares / (count - 1) - running_var[c]);
    }
}
kernel void cpu_columns_stats(global const float *moments, global float *running_mean,
                              global float *running_var, global float *stats, int4 shape, int rows,
                              float eps, float momentum) {
    cpu_columns_stats_item(get_global_id(0), moments, running_mean, running_var, stats, shape, rows, eps,
                           momentum);
}

/* partial[chunk, 0, c] = sum over the chunk's rows of dy, partial[chunk, 1, c] = that of dy (x - mean) */
CLT_ITEM void cpu_columns_gradient_item(int item, global const float *x, global const float *stats,
                                        global const float *dy, global float *partial, int4 shape, int rows) {
    cpu_columns p = cpu_columns_of(item, shape, rows);
    float sum[CPU_COLUMNS_MOST], product[CPU_COLUMNS_MOST];
    if (p.matrix >= shape.s0) return;
    for (int c = 0; c < p.count; c++) sum[c] = product[c] = 0;
    for (int r = p.first; r < p.last; r++) {
        global const float *x_row = x + r * shape.s2 + p.column, *dy_row = dy + r * shape.s2 + p.column;
        for (int c = 0; c < p.count; c++) {
            sum[c] += dy_row[c];
            product[c] += dy_row[c] * (x_row[c] - stats[p.column + c]);
        }
    }
    cpu_columns_keep_two(&p, sum, product, partial, shape.s2);
}
kernel void cpu_columns_gradient(global const float *x, global const float *stats, global const float *dy,
                                 global float *partial, int4 shape, int rows) {
    cpu_columns_gradient_item(get_global_id(0), x, stats, dy, partial, shape, rows);
}

/* sums[0, c] and sums[1, c]: the above over all chunks, the second times 1 / sqrt(var + eps). A work-item, 16 channels. */
CLT_ITEM void cpu_columns_gradient_total_item(int item, global const float *partial,
                                              global const float *stats, global float *sums, int4 shape) {
    int start = item * 16, end = min(start + 16, shape.s2);
    for (int c = start; c < end; c++) {
        float sum = 0, product = 0;
        for (int chunk = 0; chunk < shape.s3; chunk++) {
            sum += partial[chunk * 2 * shape.s2 + c];
            product += partial[(chunk * 2 + 1) * shape.s2 + c];
        }
        sums[c] = sum;
        sums[shape.s2 + c] = product * stats[shape.s2 + c];
    }
}
kernel void cpu_columns_gradient_total(global const float *partial, global const float *stats,
                                       global float *sums, int4 shape) {
    cpu_columns_gradient_total_item(get_global_id(0), partial, stats, sums, shape);
}

/* ---- layer normalization; the matrices are one, and stats are of its rows ---- */

/* partial[chunk, 0, c] = sum over the chunk's rows of dy, partial[chunk, 1, c] = that of dy (x - mean) istd */
CLT_ITEM void cpu_columns_layer_norm_item(int item, global const float *x, global const float *stats,
                                          global const float *dy, global float *partial, int4 shape, int rows) {
    cpu_columns p = cpu_columns_of(item, shape, rows);
    float sum[CPU_COLUMNS_MOST], product[CPU_COLUMNS_MOST];
    if (p.matrix >= shape.s0) return;
    for (int c = 0; c < p.count; c++) sum[c] = product[c] = 0;
    for (int r = p.first; r < p.last; r++) {
        global const float *x_row = x + r * shape.s2 + p.column, *dy_row = dy + r * shape.s2 + p.column;
        float mean = stats[r], istd = stats[shape.s1 + r];
        for (int c = 0; c < p.count; c++) {
            sum[c] += dy_row[c];
            product[c] += dy_row[c] * ((x_row[c] - mean) * istd);
        }
    }
    cpu_columns_keep_two(&p, sum, product, partial, shape.s2);
}
kernel void cpu_columns_layer_norm(global const float *x, global const float *stats, global const float *dy,
                                   global float *partial, int4 shape, int rows) {
    cpu_columns_layer_norm_item(get_global_id(0), x, stats, dy, partial, shape, rows);
}
