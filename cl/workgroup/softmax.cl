/*
 * Softmax, log-softmax, cross-entropy and their gradients along long rows; formulas are in cl/reference. Row r of x
 * [outer, n, inner] begins at element (r / inner) n inner + r % inner; its elements are `inner` apart. Kernels ending in
 * _part have a work-group for each of a row's chunks, of `length` elements, whose results [rows, chunks] the next reads;
 * the others a work-group for each row.
 *
 * x, y and their gradients are stored as CLT_STORAGE, losses and what is of chunks as f32.
 *
 * size: rows, n, inner, chunks of a row. The helpers take every `step`-th element of a row from `first` on: a lane's share.
 */

static int softmax_begin(int row, int4 size) {
    return row / size.s2 * size.s1 * size.s2 + row % size.s2;
}

static float softmax_max(global const CLT_REAL *x, int n, int inner, int first, int step) {
    float largest = -INFINITY;
    for (int k = first; k < n; k += step) largest = clt_max(largest, CLT_LOAD(x, k * inner));
    return largest;
}

static float softmax_sum(global const CLT_REAL *x, float largest, int n, int inner, int first, int step) {
    float sum = 0;
    for (int k = first; k < n; k += step) sum += exp(CLT_LOAD(x, k * inner) - largest);
    return sum;
}

static void softmax_write(global const CLT_REAL *x, global CLT_REAL *y, float largest, float sum, int log_form, int n,
                          int inner, int first, int step) {
    for (int k = first; k < n; k += step) {
        float z = CLT_LOAD(x, k * inner) - largest;
        CLT_STORE(y, k * inner, log_form ? z - log(sum) : exp(z) / sum);
    }
}

/* sum(dy y), or sum(dy) in the log form. */
static float softmax_dot(global const CLT_REAL *y, global const CLT_REAL *dy, int log_form, int n, int inner, int first,
                         int step) {
    float sum = 0;
    for (int k = first; k < n; k += step) {
        float g = CLT_LOAD(dy, k * inner);
        sum += log_form ? g : g * CLT_LOAD(y, k * inner);
    }
    return sum;
}

static void softmax_write_grad(global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx, float total,
                               int log_form, int n, int inner, int first, int step) {
    for (int k = first; k < n; k += step) {
        float g = CLT_LOAD(dy, k * inner), value = CLT_LOAD(y, k * inner);
        CLT_STORE(dx, k * inner, log_form ? g - exp(value) * total : value * (g - total));
    }
}

/* A lane's share of the largest of parts [chunks], and of their sum. */
static float softmax_largest(global const float *parts, int chunks, int first, int step) {
    float largest = -INFINITY;
    for (int k = first; k < chunks; k += step) largest = clt_max(largest, parts[k]);
    return largest;
}

static float softmax_total(global const float *parts, int chunks, int first, int step) {
    float sum = 0;
    for (int k = first; k < chunks; k += step) sum += parts[k];
    return sum;
}

/* A chunk: the number of its row, the element of x it begins at, and its length. */
typedef struct softmax_chunk {
    int row, begin, n;
} softmax_chunk;

static softmax_chunk softmax_chunk_of(int group, int4 size, int length) {
    int start = group % size.s3 * length, row = group / size.s3;
    return (softmax_chunk){row, softmax_begin(row, size) + start * size.s2, min(length, size.s1 - start)};
}

/* ---- softmax ---- */

kernel void group_softmax(global const CLT_REAL *x, global CLT_REAL *y, int4 size, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), n = size.s1, inner = size.s2;
    if (row >= size.s0) return;
    int begin = softmax_begin(row, size);
    float largest = clt_group_max(softmax_max(x + begin, n, inner, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_sum(x + begin, largest, n, inner, lane, lanes), scratch);
    softmax_write(x + begin, y + begin, largest, sum, log_form, n, inner, lane, lanes);
}

kernel void group_softmax_grad(global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx, int4 size, int length,
                               int log_form) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), n = size.s1, inner = size.s2;
    if (row >= size.s0) return;
    int begin = softmax_begin(row, size);
    float total = clt_group_sum(softmax_dot(y + begin, dy + begin, log_form, n, inner, lane, lanes), scratch);
    softmax_write_grad(y + begin, dy + begin, dx + begin, total, log_form, n, inner, lane, lanes);
}

kernel void group_softmax_max_part(global const CLT_REAL *x, global float *largest, int4 size, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * size.s3) return;
    softmax_chunk at = softmax_chunk_of(group, size, length);
    float part = clt_group_max(softmax_max(x + at.begin, at.n, size.s2, lane, lanes), scratch);
    if (lane == 0) largest[group] = part;
}

kernel void group_softmax_sum_part(global const CLT_REAL *x, global const float *largest, global float *sums, int4 size,
                                   int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), chunks = size.s3;
    if (group >= size.s0 * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, size, length);
    float most = clt_group_max(softmax_largest(largest + at.row * chunks, chunks, lane, lanes), scratch);
    float part = clt_group_sum(softmax_sum(x + at.begin, most, at.n, size.s2, lane, lanes), scratch);
    if (lane == 0) sums[group] = part;
}

kernel void group_softmax_part(global const CLT_REAL *x, global const float *largest, global const float *sums,
                               global CLT_REAL *y, int4 size, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), chunks = size.s3;
    if (group >= size.s0 * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, size, length);
    float most = clt_group_max(softmax_largest(largest + at.row * chunks, chunks, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_total(sums + at.row * chunks, chunks, lane, lanes), scratch);
    softmax_write(x + at.begin, y + at.begin, most, sum, log_form, at.n, size.s2, lane, lanes);
}

kernel void group_softmax_dot_part(global const CLT_REAL *y, global const CLT_REAL *dy, global float *dots, int4 size, int length,
                                   int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (group >= size.s0 * size.s3) return;
    softmax_chunk at = softmax_chunk_of(group, size, length);
    float part = clt_group_sum(softmax_dot(y + at.begin, dy + at.begin, log_form, at.n, size.s2, lane, lanes), scratch);
    if (lane == 0) dots[group] = part;
}

kernel void group_softmax_grad_part(global const CLT_REAL *y, global const CLT_REAL *dy, global const float *dots,
                                    global CLT_REAL *dx, int4 size, int length, int log_form) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), chunks = size.s3;
    if (group >= size.s0 * chunks) return;
    softmax_chunk at = softmax_chunk_of(group, size, length);
    float total = clt_group_sum(softmax_total(dots + at.row * chunks, chunks, lane, lanes), scratch);
    softmax_write_grad(y + at.begin, dy + at.begin, dx + at.begin, total, log_form, at.n, size.s2, lane, lanes);
}

/* ---- cross-entropy: the rows of x are its samples, inner is 1 ---- */

static float cross_entropy_loss(global const CLT_REAL *x, float largest, float sum, int t, int classes) {
    return t >= 0 && t < classes ? log(sum) - (CLT_LOAD(x, t) - largest) : NAN;
}

/* dx of a row, from `first` to before `end`. */
static void cross_entropy_write_grad(global const CLT_REAL *x, global CLT_REAL *dx, float largest, float sum, int t,
                                     float dloss, int classes, int first, int end, int step) {
    float factor = t >= 0 && t < classes ? dloss : NAN;
    for (int c = first; c < end; c += step)
        CLT_STORE(dx, c, factor * (exp(CLT_LOAD(x, c) - largest) / sum - (c == t ? 1.0f : 0.0f)));
}

kernel void group_cross_entropy(global const CLT_REAL *x, global const int *target, global float *losses, int4 size,
                                int length) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), classes = size.s1;
    if (row >= size.s0) return;
    x += row * classes;
    float largest = clt_group_max(softmax_max(x, classes, 1, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_sum(x, largest, classes, 1, lane, lanes), scratch);
    if (lane == 0) losses[row] = cross_entropy_loss(x, largest, sum, target[row], classes);
}

kernel void group_cross_entropy_grad(global const CLT_REAL *x, global const int *target, global const float *dlosses,
                                     global CLT_REAL *dx, int4 size, int length) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), classes = size.s1;
    if (row >= size.s0) return;
    x += row * classes;
    dx += row * classes;
    float largest = clt_group_max(softmax_max(x, classes, 1, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_sum(x, largest, classes, 1, lane, lanes), scratch);
    cross_entropy_write_grad(x, dx, largest, sum, target[row], dlosses[row], classes, lane, classes, lanes);
}

/* A work-group a row, which joins its chunks. */
kernel void group_cross_entropy_join(global const CLT_REAL *x, global const int *target, global const float *maxima,
                                     global const float *sums, global float *losses, int4 size, int length) {
    local float scratch[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), classes = size.s1, chunks = size.s3;
    if (row >= size.s0) return;
    float largest = clt_group_max(softmax_largest(maxima + row * chunks, chunks, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_total(sums + row * chunks, chunks, lane, lanes), scratch);
    if (lane == 0) losses[row] = cross_entropy_loss(x + row * classes, largest, sum, target[row], classes);
}

kernel void group_cross_entropy_grad_part(global const CLT_REAL *x, global const int *target, global const float *dlosses,
                                          global const float *maxima, global const float *sums, global CLT_REAL *dx, int4 size,
                                          int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0), classes = size.s1, chunks = size.s3;
    if (group >= size.s0 * chunks) return;
    int row = group / chunks, start = group % chunks * length, end = start + min(length, classes - start);
    float largest = clt_group_max(softmax_largest(maxima + row * chunks, chunks, lane, lanes), scratch);
    float sum = clt_group_sum(softmax_total(sums + row * chunks, chunks, lane, lanes), scratch);
    x += row * classes;
    dx += row * classes;
    cross_entropy_write_grad(x, dx, largest, sum, target[row], dlosses[row], classes, start + lane, end, lanes);
}
