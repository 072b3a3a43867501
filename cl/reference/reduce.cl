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

/* Long ones: one work-group an output and chunk of `length`. With more chunks than one their sums go to parts [outputs, chunks], else the
 * results to y. */
kernel void ref_reduce_sum_group(global const CLT_REAL *x, global CLT_REAL *y, global float *parts, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride, CLT_INDEX chunks,
                                 CLT_INDEX length, float scale) {
    local float scratch[CLT_GROUP];
    CLT_INDEX group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    global const CLT_REAL *from = x + reduce_offset(o, kept, kept_stride);
    float sum = 0;
    for (CLT_INDEX r = get_local_id(0); r < min(length, n - start); r += get_local_size(0))
        sum += CLT_LOAD(from, reduce_offset(start + r, reduced, reduced_stride));
    sum = clt_group_sum(sum, scratch);
    if (get_local_id(0) == 0 && chunks > 1) parts[group] = sum;
    if (get_local_id(0) == 0 && chunks == 1) CLT_STORE(y, o, sum * scale);
}

kernel void ref_reduce_max_group(global const CLT_REAL *x, global CLT_REAL *y, global float *parts, CLT_INDEX outputs,
                                 CLT_INDEX_VECTOR(4) kept, CLT_INDEX_VECTOR(4) kept_stride, CLT_INDEX n,
                                 CLT_INDEX_VECTOR(4) reduced, CLT_INDEX_VECTOR(4) reduced_stride, CLT_INDEX chunks,
                                 CLT_INDEX length) {
    local float scratch[CLT_GROUP];
    CLT_INDEX group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    global const CLT_REAL *from = x + reduce_offset(o, kept, kept_stride);
    float largest = -INFINITY;
    for (CLT_INDEX r = get_local_id(0); r < min(length, n - start); r += get_local_size(0))
        largest = clt_max(largest, CLT_LOAD(from, reduce_offset(start + r, reduced, reduced_stride)));
    largest = clt_group_max(largest, scratch);
    if (get_local_id(0) == 0 && chunks > 1) parts[group] = largest;
    if (get_local_id(0) == 0 && chunks == 1) CLT_STORE(y, o, largest);
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
