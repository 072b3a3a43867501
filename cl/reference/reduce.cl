/*
 * Sums and maxima over some dimensions of x. What is kept and what is reduced are boxes of up to four
 * dimensions each (w innermost) with strides into x:
 *
 *     y[o] = scale * sum over r < n of x[offset(o, kept) + offset(r, reduced)]
 *
 * The order of a sum depends on the sizes alone. NaN goes through maxima.
 */

static int reduce_offset(int i, int4 size, int4 stride) {
    int offset = i % size.w * stride.w;
    i /= size.w;
    if (i == 0) return offset; /* most boxes are one run of memory */
    offset += i % size.z * stride.z; i /= size.z;
    offset += i % size.y * stride.y; i /= size.y;
    return offset + i * stride.x;
}

/* Short reductions: one work-item an output. */
kernel void ref_reduce_sum_item(global const float *x, global float *y, int outputs, int4 kept, int4 kept_stride,
                                int n, int4 reduced, int4 reduced_stride, float scale) {
    int o = get_global_id(0);
    if (o >= outputs) return;
    global const float *from = x + reduce_offset(o, kept, kept_stride);
    float sum = 0;
    for (int r = 0; r < n; r++) sum += from[reduce_offset(r, reduced, reduced_stride)];
    y[o] = sum * scale;
}

kernel void ref_reduce_max_item(global const float *x, global float *y, int outputs, int4 kept, int4 kept_stride,
                                int n, int4 reduced, int4 reduced_stride) {
    int o = get_global_id(0);
    if (o >= outputs) return;
    global const float *from = x + reduce_offset(o, kept, kept_stride);
    float largest = -INFINITY;
    for (int r = 0; r < n; r++) largest = clt_max(largest, from[reduce_offset(r, reduced, reduced_stride)]);
    y[o] = largest;
}

/* Long ones: one work-group an output and chunk of `length`; y [outputs, chunks]. */
kernel void ref_reduce_sum_group(global const float *x, global float *y, int outputs, int4 kept, int4 kept_stride,
                                 int n, int4 reduced, int4 reduced_stride, int chunks, int length, float scale) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    global const float *from = x + reduce_offset(o, kept, kept_stride);
    float sum = 0;
    for (int r = get_local_id(0); r < min(length, n - start); r += get_local_size(0))
        sum += from[reduce_offset(start + r, reduced, reduced_stride)];
    sum = clt_group_sum(sum, scratch);
    if (get_local_id(0) == 0) y[group] = sum * scale;
}

kernel void ref_reduce_max_group(global const float *x, global float *y, int outputs, int4 kept, int4 kept_stride,
                                 int n, int4 reduced, int4 reduced_stride, int chunks, int length) {
    local float scratch[CLT_GROUP];
    int group = get_group_id(0), o = group / chunks, start = group % chunks * length;
    if (o >= outputs) return;
    global const float *from = x + reduce_offset(o, kept, kept_stride);
    float largest = -INFINITY;
    for (int r = get_local_id(0); r < min(length, n - start); r += get_local_size(0))
        largest = clt_max(largest, from[reduce_offset(start + r, reduced, reduced_stride)]);
    largest = clt_group_max(largest, scratch);
    if (get_local_id(0) == 0) y[group] = largest;
}
