/*
 * Sums and maxima over some dimensions of x. What is kept and what is reduced are boxes of up to four
 * dimensions each (w innermost) with strides into x:
 *
 *     y[o] = scale * sum over r < n of x[offset(o, kept) + offset(r, reduced)]
 *
 * The order of a sum depends on the sizes alone. NaN goes through maxima.
 */

static CLT_INDEX reduce_offset(CLT_INDEX i, CLT_INDEX_VECTOR(4) size, CLT_INDEX_VECTOR(4) stride) {
    CLT_INDEX offset = i % size.w * stride.w;
    i /= size.w;
    if (i == 0) return offset; /* most boxes are one run of memory */
    offset += i % size.z * stride.z; i /= size.z;
    offset += i % size.y * stride.y; i /= size.y;
    return offset + i * stride.x;
}

/* Short reductions: one work-item an output. */
kernel void ref_reduce_sum_item(global const CLT_REAL *x, global CLT_REAL *y, CLT_INDEX outputs, CLT_INDEX_VECTOR(4) kept,
                                CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n, CLT_INDEX_VECTOR(4) reduced,
                                CLT_INDEX_VECTOR(4) reduced_stride, float scale) {
    CLT_INDEX o = get_global_id(0);
    if (o >= outputs) return;
    global const CLT_REAL *from = x + reduce_offset(o, kept, kept_stride);
    float sum = 0;
    for (CLT_INDEX r = 0; r < n; r++) sum += CLT_LOAD(from, reduce_offset(r, reduced, reduced_stride));
    CLT_STORE(y, o, sum * scale);
}

kernel void ref_reduce_max_item(global const CLT_REAL *x, global CLT_REAL *y, CLT_INDEX outputs, CLT_INDEX_VECTOR(4) kept,
                                CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n, CLT_INDEX_VECTOR(4) reduced,
                                CLT_INDEX_VECTOR(4) reduced_stride) {
    CLT_INDEX o = get_global_id(0);
    if (o >= outputs) return;
    global const CLT_REAL *from = x + reduce_offset(o, kept, kept_stride);
    float largest = -INFINITY;
    for (CLT_INDEX r = 0; r < n; r++) largest = clt_max(largest, CLT_LOAD(from, reduce_offset(r, reduced, reduced_stride)));
    CLT_STORE(y, o, largest);
}

/* Long ones: rounds [begin, end) of one output, by all work-items of a group. */
CLT_TOGETHER float reduce_sum(global const CLT_REAL *from, CLT_INDEX begin, CLT_INDEX end, CLT_INDEX_VECTOR(4) reduced,
                              CLT_INDEX_VECTOR(4) reduced_stride, local float *scratch) {
    float sum = 0;
    for (CLT_INDEX r = begin + get_local_id(0); r < end; r += get_local_size(0))
        sum += CLT_LOAD(from, reduce_offset(r, reduced, reduced_stride));
    return clt_group_sum(sum, scratch);
}

CLT_TOGETHER float reduce_max(global const CLT_REAL *from, CLT_INDEX begin, CLT_INDEX end, CLT_INDEX_VECTOR(4) reduced,
                              CLT_INDEX_VECTOR(4) reduced_stride, local float *scratch) {
    float largest = -INFINITY;
    for (CLT_INDEX r = begin + get_local_id(0); r < end; r += get_local_size(0))
        largest = clt_max(largest, CLT_LOAD(from, reduce_offset(r, reduced, reduced_stride)));
    return clt_group_max(largest, scratch);
}

/* One work-group an output. */
kernel void ref_reduce_sum_group(global const CLT_REAL *x, global CLT_REAL *y, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride, float scale) {
    local float scratch[CLT_GROUP];
    CLT_INDEX o = get_group_id(0);
    if (o >= outputs) return;
    float sum = reduce_sum(x + reduce_offset(o, kept, kept_stride), 0, n, reduced, reduced_stride, scratch);
    if (get_local_id(0) == 0) CLT_STORE(y, o, sum * scale);
}

kernel void ref_reduce_max_group(global const CLT_REAL *x, global CLT_REAL *y, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride) {
    local float scratch[CLT_GROUP];
    CLT_INDEX o = get_group_id(0);
    if (o >= outputs) return;
    float largest = reduce_max(x + reduce_offset(o, kept, kept_stride), 0, n, reduced, reduced_stride, scratch);
    if (get_local_id(0) == 0) CLT_STORE(y, o, largest);
}

/* One work-group an output and chunk of `length`: parts [outputs, chunks]. */
kernel void ref_reduce_sum_chunk(global const CLT_REAL *x, global float *parts, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride, CLT_INDEX chunks,
                                 CLT_INDEX length) {
    local float scratch[CLT_GROUP];
    CLT_INDEX group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    float sum = reduce_sum(x + reduce_offset(o, kept, kept_stride), start, start + min(length, n - start), reduced,
                           reduced_stride, scratch);
    if (get_local_id(0) == 0) parts[group] = sum;
}

kernel void ref_reduce_max_chunk(global const CLT_REAL *x, global float *parts, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride, CLT_INDEX chunks,
                                 CLT_INDEX length) {
    local float scratch[CLT_GROUP];
    CLT_INDEX group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    float largest = reduce_max(x + reduce_offset(o, kept, kept_stride), start, start + min(length, n - start), reduced,
                               reduced_stride, scratch);
    if (get_local_id(0) == 0) parts[group] = largest;
}

/* The results of parts [outputs, chunks]: one work-group an output. */
kernel void ref_reduce_sum_parts(global const float *parts, global CLT_REAL *y, CLT_INDEX outputs, CLT_INDEX chunks, float scale) {
    local float scratch[CLT_GROUP];
    CLT_INDEX o = get_group_id(0);
    float sum = 0;
    if (o >= outputs) return;
    for (CLT_INDEX c = get_local_id(0); c < chunks; c += get_local_size(0)) sum += parts[o * chunks + c];
    sum = clt_group_sum(sum, scratch);
    if (get_local_id(0) == 0) CLT_STORE(y, o, sum * scale);
}

kernel void ref_reduce_max_parts(global const float *parts, global CLT_REAL *y, CLT_INDEX outputs, CLT_INDEX chunks) {
    local float scratch[CLT_GROUP];
    CLT_INDEX o = get_group_id(0);
    float largest = -INFINITY;
    if (o >= outputs) return;
    for (CLT_INDEX c = get_local_id(0); c < chunks; c += get_local_size(0)) largest = clt_max(largest, parts[o * chunks + c]);
    largest = clt_group_max(largest, scratch);
    if (get_local_id(0) == 0) CLT_STORE(y, o, largest);
}
