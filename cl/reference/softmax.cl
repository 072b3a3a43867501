/*
 * Softmax and log-softmax along the middle of x [outer, n, inner], and their gradients. Row r of the
 * outer * inner rows begins at element (r / inner) n inner + r % inner; its elements are `inner` apart.
 *
 *     softmax:     y = exp(x - max) / sum exp(x - max);   dx = y (dy - sum(dy y))
 *     log_softmax: y = x - max - log sum exp(x - max);    dx = dy - exp(y) sum(dy)
 *
 * `log_form` tells which. Kernels ending in _item take one work-item a row; those in _group one work-group; those in _part one
 * work-group for each of a row's chunks, of `length` elements, whose results [rows, chunks] the next reads.
 * The helpers take every `step`-th element of a row from `first` on: a lane's share of it.
 */

static int softmax_begin(int row, int n, int inner) {
    return row / inner * n * inner + row % inner;
}

static float softmax_max(global const float *x, int n, int inner, int first, int step) {
    float largest = -INFINITY;
    for (int k = first; k < n; k += step) largest = clt_max(largest, x[k * inner]);
    return largest;
}

static float softmax_sum(global const float *x, float largest, int n, int inner, int first, int step) {
    float sum = 0;
    for (int k = first; k < n; k += step) sum += exp(x[k * inner] - largest);
    return sum;
}

static void softmax_write(global const float *x, global float *y, float largest, float sum, int log_form, int n,
                          int inner, int first, int step) {
    for (int k = first; k < n; k += step) {
        float z = x[k * inner] - largest;
        y[k * inner] = log_form ? z - log(sum) : exp(z) / sum;
    }
}

/* sum(dy y), or sum(dy) in the log form. */
static float softmax_dot(global const float *y, global const float *dy, int log_form, int n, int inner, int first,
                         int step) {
    float sum = 0;
    for (int k = first; k < n; k += step) sum += log_form ? dy[k * inner] : dy[k * inner] * y[k * inner];
    return sum;
}

static void softmax_write_grad(global const float *y, global const float *dy, global float *dx, float total,
                               int log_form, int n, int inner, int first, int step) {
    for (int k = first; k < n; k += step) {
        int i = k * inner;
        dx[i] = log_form ? dy[i] - exp(y[i]) * total : y[i] * (dy[i] - total);
    }
}

kernel void ref_softmax_item(global const float *x, global float *y, int rows, int n, int inner, int log_form) {
    int row = get_global_id(0);
    if (row >= rows) return;
    int begin = softmax_begin(row, n, inner);
    float largest = softmax_max(x + begin, n, inner, 0, 1);
    float sum = softmax_sum(x + begin, largest, n, inner, 0, 1);
    softmax_write(x + begin, y + begin, largest, sum, log_form, n, inner, 0, 1);
}

kernel void ref_softmax_group(global const float *x, global float *y, int rows, int n, int inner, int log_form) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    int begin = softmax_begin(row, n, inner);
    float largest = clt_group_max(softmax_max(x + begin, n, inner, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_sum(x + begin, largest, n, inner, lane, lanes), scratch);
    softmax_write(x + begin, y + begin, largest, sum, log_form, n, inner, lane, lanes);
}

kernel void ref_softmax_grad_item(global const float *y, global const float *dy, global float *dx, int rows, int n,
                                  int inner, int log_form) {
    int row = get_global_id(0);
    if (row >= rows) return;
    int begin = softmax_begin(row, n, inner);
    float total = softmax_dot(y + begin, dy + begin, log_form, n, inner, 0, 1);
    softmax_write_grad(y + begin, dy + begin, dx + begin, total, log_form, n, inner, 0, 1);
}

kernel void ref_softmax_grad_group(global const float *y, global const float *dy, global float *dx, int rows, int n,
                                   int inner, int log_form) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    int begin = softmax_begin(row, n, inner);
    float total = clt_group_sum(softmax_dot(y + begin, dy + begin, log_form, n, inner, lane, lanes), scratch);
    softmax_write_grad(y + begin, dy + begin, dx + begin, total, log_form, n, inner, lane, lanes);
}

/* A chunk: the number of its row, the element of x it begins at, and its length. */
typedef struct softmax_chunk {
    int row, begin, n;
} softmax_chunk;

static softmax_chunk softmax_chunk_of(int group, int n, int inner, int chunks, int length) {
    int start = group % chunks * length, row = group / chunks;
    return (softmax_chunk){row, softmax_begin(row, n, inner) + start * inner, min(length, n - start)};
}

/* A lane's share of the sum of x [chunks]. */
static float softmax_total(global const float *x, int chunks, int first, int step) {
    float sum = 0;
    for (int k = first; k < chunks; k += step) sum += x[k];
    return sum;
}

kernel void ref_softmax_max_part(global const float *x, global float *largest, int rows, int n, int inner, int chunks,
                                 int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, n, inner, chunks, length);
    float part = clt_group_max(softmax_max(x + at.begin, at.n, inner, lane, lanes), scratch);
    if (lane == 0) largest[group] = part;
}

kernel void ref_softmax_sum_part(global const float *x, global const float *largest, global float *sums, int rows, int n,
                                 int inner, int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, n, inner, chunks, length);
    float most = clt_group_max(softmax_max(largest + at.row * chunks, chunks, 1, lane, lanes), scratch);
    float part = clt_group_sum(softmax_sum(x + at.begin, most, at.n, inner, lane, lanes), scratch);
    if (lane == 0) sums[group] = part;
}

kernel void ref_softmax_part(global const float *x, global const float *largest, global const float *sums, global float *y,
                             int rows, int n, int inner, int chunks, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, n, inner, chunks, length);
    float most = clt_group_max(softmax_max(largest + at.row * chunks, chunks, 1, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_total(sums + at.row * chunks, chunks, lane, lanes), scratch);
    softmax_write(x + at.begin, y + at.begin, most, sum, log_form, at.n, inner, lane, lanes);
}

kernel void ref_softmax_dot_part(global const float *y, global const float *dy, global float *dots, int rows, int n,
                                 int inner, int chunks, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, n, inner, chunks, length);
    float part = clt_group_sum(softmax_dot(y + at.begin, dy + at.begin, log_form, at.n, inner, lane, lanes), scratch);
    if (lane == 0) dots[group] = part;
}

kernel void ref_softmax_grad_part(global const float *y, global const float *dy, global const float *dots, global float *dx,
                                  int rows, int n, int inner, int chunks, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= rows * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, n, inner, chunks, length);
    float total = clt_group_sum(softmax_total(dots + at.row * chunks, chunks, lane, lanes), scratch);
    softmax_write_grad(y + at.begin, dy + at.begin, dx + at.begin, total, log_form, at.n, inner, lane, lanes);
}
