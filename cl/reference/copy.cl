/*
 * Copies between boxes with strides, for elements of 4 bytes (words: f32, i32) and of 1 (u8). Element i of
 * `size` (row-major, the last component innermost, `count` elements in all) goes from
 *
 *     x[x_offset + sum i_d x_stride_d]   to   y[y_offset + sum i_d y_stride_d].
 *
 * One work-item an element.
 */

/* Element i of a box, by its place in each dimension. */
static int4 copy_place4(int i, int4 size) {
    int4 place;
    place.w = i % size.w; i /= size.w;
    place.z = i % size.z; i /= size.z;
    place.y = i % size.y;
    place.x = i / size.y;
    return place;
}

/* s4 to s7 are the inner dimensions. */
static int8 copy_place8(int i, int8 size) {
    int inner = size.s4 * size.s5 * size.s6 * size.s7;
    return (int8)(copy_place4(i / inner, size.lo), copy_place4(i % inner, size.hi));
}

static int copy_offset4(int4 place, int4 stride) {
    place *= stride;
    return place.x + place.y + place.z + place.w;
}

static int copy_offset8(int8 place, int8 stride) {
    return copy_offset4(place.lo, stride.lo) + copy_offset4(place.hi, stride.hi);
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
    int4 place = copy_place4(i, size);
    y[y_offset + copy_offset4(place, y_stride)] = x[x_offset + copy_offset4(place, x_stride)];
}

kernel void ref_copy8_word(global const uint *x, global uint *y, int count, int8 size, int8 x_stride, int8 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    int8 place = copy_place8(i, size);
    y[y_offset + copy_offset8(place, y_stride)] = x[x_offset + copy_offset8(place, x_stride)];
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
    int4 place = copy_place4(i, size);
    y[y_offset + copy_offset4(place, y_stride)] = x[x_offset + copy_offset4(place, x_stride)];
}

kernel void ref_copy8_byte(global const uchar *x, global uchar *y, int count, int8 size, int8 x_stride, int8 y_stride,
                           int x_offset, int y_offset) {
    int i = get_global_id(0);
    if (i >= count) return;
    int8 place = copy_place8(i, size);
    y[y_offset + copy_offset8(place, y_stride)] = x[x_offset + copy_offset8(place, x_stride)];
}

/* y[i] = value, for all i below count. */
kernel void ref_fill(global float *y, int count, float value) {
    int i = get_global_id(0);
    if (i >= count) return;
    y[i] = value;
}
