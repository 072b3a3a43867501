/*
 * Softmax and negative log-likelihood in one. x (N, C), target [N]:
 *
 *     losses[n] = log sum exp(x[n] - max) - (x[n, t] - max)
 *     dx[n, c]  = dlosses[n] (exp(x[n, c] - max) / sum exp(x[n] - max) - [c == t])
 *
 * with t = target[n]; NaN where t is no class. Kernels ending in _item take one work-item a row; those in
 * _group one work-group; those in _parts read maxima and sums [rows, chunks] of chunks of the rows, as softmax's
 * make them. The helpers take every `step`-th element of a row from `first` on.
 */

static float cross_entropy_max(global const float *x, int classes, int first, int step) {
    float largest = -INFINITY;
    for (int c = first; c < classes; c += step) largest = clt_max(largest, x[c]);
    return largest;
}

static float cross_entropy_sum(global const float *x, float largest, int classes, int first, int step) {
    float sum = 0;
    for (int c = first; c < classes; c += step) sum += exp(x[c] - largest);
    return sum;
}

static float cross_entropy_loss(global const float *x, float largest, float sum, int t, int classes) {
    return t >= 0 && t < classes ? log(sum) - (x[t] - largest) : NAN;
}

/* What the row's gradients are multiplied by. */
static float cross_entropy_factor(int t, float dloss, int classes) {
    return t >= 0 && t < classes ? dloss : NAN;
}

static void cross_entropy_write_grad(global const float *x, global float *dx, float largest, float sum, int t,
                                     float factor, int first, int end, int step) {
    for (int c = first; c < end; c += step)
        dx[c] = factor * (exp(x[c] - largest) / sum - (c == t ? 1.0f : 0.0f));
}

kernel void ref_cross_entropy_item(global const float *x, global const int *target, global float *losses, int rows,
                                   int classes) {
    int row = get_global_id(0);
    if (row >= rows) return;
    x += row * classes;
    float largest = cross_entropy_max(x, classes, 0, 1);
    float sum = cross_entropy_sum(x, largest, classes, 0, 1);
    losses[row] = cross_entropy_loss(x, largest, sum, target[row], classes);
}

kernel void ref_cross_entropy_group(global const float *x, global const int *target, global float *losses, int rows,
                                    int classes) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    x += row * classes;
    float largest = clt_group_max(cross_entropy_max(x, classes, lane, lanes), scratch);
    float sum = clt_group_sum(cross_entropy_sum(x, largest, classes, lane, lanes), scratch);
    if (lane == 0) losses[row] = cross_entropy_loss(x, largest, sum, target[row], classes);
}

kernel void ref_cross_entropy_grad_item(global const float *x, global const int *target, global const float *dlosses,
                                        global float *dx, int rows, int classes) {
    int row = get_global_id(0);
    if (row >= rows) return;
    x += row * classes;
    dx += row * classes;
    float largest = cross_entropy_max(x, classes, 0, 1);
    float sum = cross_entropy_sum(x, largest, classes, 0, 1);
    cross_entropy_write_grad(x, dx, largest, sum, target[row],
                             cross_entropy_factor(target[row], dlosses[row], classes), 0, classes, 1);
}

kernel void ref_cross_entropy_grad_group(global const float *x, global const int *target, global const float *dlosses,
                                         global float *dx, int rows, int classes) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    x += row * classes;
    dx += row * classes;
    float largest = clt_group_max(cross_entropy_max(x, classes, lane, lanes), scratch);
    float sum = clt_group_sum(cross_entropy_sum(x, largest, classes, lane, lanes), scratch);
    cross_entropy_write_grad(x, dx, largest, sum, target[row],
                             cross_entropy_factor(target[row], dlosses[row], classes), lane, classes, lanes);
}

/* A lane's share of the sum of x [chunks]. */
static float cross_entropy_total(global const float *x, int chunks, int first, int step) {
    float sum = 0;
    for (int k = first; k < chunks; k += step) sum += x[k];
    return sum;
}

/* A work-group a row. */
kernel void ref_cross_entropy_parts(global const float *x, global const int *target, global const float *maxima,
                                    global const float *sums, global float *losses, int rows, int classes, int chunks) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    float largest = clt_group_max(cross_entropy_max(maxima + row * chunks, chunks, lane, lanes), scratch);
    float sum = clt_group_sum(cross_entropy_total(sums + row * chunks, chunks, lane, lanes), scratch);
    if (lane == 0) losses[row] = cross_entropy_loss(x + row * classes, largest, sum, target[row], classes);
}

/* A work-group for each of a row's chunks, of `length` elements. */
kernel void ref_cross_entropy_grad_parts(global const float *x, global const int *target, global const float *dlosses,
                                         global const float *maxima, global const float *sums, global float *dx,
                                         int rows, int classes, int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    int row = group / chunks, start = group % chunks * length, end = start + min(length, classes - start);
    float largest = clt_group_max(cross_entropy_max(maxima + row * chunks, chunks, lane, lanes), scratch);
    float sum = clt_group_sum(cross_entropy_total(sums + row * chunks, chunks, lane, lanes), scratch);
    x += row * classes;
    dx += row * classes;
    cross_entropy_write_grad(x, dx, largest, sum, target[row],
                             cross_entropy_factor(target[row], dlosses[row], classes), start + lane, end, lanes);
}
