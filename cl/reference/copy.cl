/*
 * Copies between boxes with strides, for elements of 4 bytes (words: f32, i32) and of 1 (u8). Element i of
 * `size` (row-major, the last component innermost, `count` elements in all) goes from
 *
 *     x[x_offset + sum i_d x_stride_d]   to   y[y_offset + sum i_d y_stride_d].
 *
 * One work-item an element.
 */

static int copy_offset4(int i, int4 size, int4 stride, int offset) {
    offset += i % size.w * stride.w; i /= size.w;
    offset += i % size.z * stride.z; i /= size.z;
    offset += i % size.y * stride.y; i /= size.y;
    return offset + i * stride.x;
}

/* s4 to s7 are the inner dimensions. */
static int copy_offset8(int i, int8 size, int8 stride, int offset) {
    int inner = size.s4 * size.s5 * size.s6 * size.s7;
    offset = copy_offset4(i % inner, size.hi, stride.hi, offset);
    return copy_offset4(i / inner, size.lo, stride.lo, offset);
}

kernel void ref_copy1_word(global const uint *x, global uint *y, int count, int x_stride, int y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[y_offset + i * y_stride] = x[x_offset + i * x_stride];
}

kernel void ref_copy4_word(global const uint *x, global uint *y, int count, int4 size, int4 x_stride, int4 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[copy_offset4(i, size, y_stride, y_offset)] = x[copy_offset4(i, size, x_stride, x_offset)];
}

kernel void ref_copy8_word(global const uint *x, global uint *y, int count, int8 size, int8 x_stride, int8 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[copy_offset8(i, size, y_stride, y_offset)] = x[copy_offset8(i, size, x_stride, x_offset)];
}

kernel void ref_copy1_byte(global const uchar *x, global uchar *y, int count, int x_stride, int y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[y_offset + i * y_stride] = x[x_offset + i * x_stride];
}

kernel void ref_copy4_byte(global const uchar *x, global uchar *y, int count, int4 size, int4 x_stride, int4 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[copy_offset4(i, size, y_stride, y_offset)] = x[copy_offset4(i, size, x_stride, x_offset)];
}

kernel void ref_copy8_byte(global const uchar *x, global uchar *y, int count, int8 size, int8 x_stride, int8 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[copy_offset8(i, size, y_stride, y_offset)] = x[copy_offset8(i, size, x_stride, x_offset)];
}

/* y[i] = value, for all i below count. */
kernel void ref_fill(global float *y, int count, float value) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[i] = value;
}
