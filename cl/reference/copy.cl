/*
 * Copies between boxes with strides, of elements as they are stored. Element i of `size` (row-major, the last component innermost, `count`
 * elements in all) goes from
 *
 *     x[x_offset + sum i_d x_stride_d]   to   y[y_offset + sum i_d y_stride_d].
 *
 * One work-item an element.
 */

/* By their size: copies change no bits. */
#define copy_f32 uint /* and i32 */
#define copy_f16 ushort
#define copy_bf16 ushort
#define copy_u8 uchar
#define COPY_TYPE CLT_JOIN(copy_, CLT_STORAGE)

/* Element i of a box, by its place in each dimension. */
static CLT_INDEX_VECTOR(4) copy_place4(CLT_INDEX i, CLT_INDEX_VECTOR(4) size) {
    CLT_INDEX_VECTOR(4) place;
    place.w = i % size.w; i /= size.w;
    place.z = i % size.z; i /= size.z;
    place.y = i % size.y;
    place.x = i / size.y;
    return place;
}

/* s4 to s7 are the inner dimensions. */
static CLT_INDEX_VECTOR(8) copy_place8(CLT_INDEX i, CLT_INDEX_VECTOR(8) size) {
    CLT_INDEX inner = size.s4 * size.s5 * size.s6 * size.s7;
    return (CLT_INDEX_VECTOR(8))(copy_place4(i / inner, size.lo), copy_place4(i % inner, size.hi));
}

static CLT_INDEX copy_offset4(CLT_INDEX_VECTOR(4) place, CLT_INDEX_VECTOR(4) stride) {
    place *= stride;
    return place.x + place.y + place.z + place.w;
}

static CLT_INDEX copy_offset8(CLT_INDEX_VECTOR(8) place, CLT_INDEX_VECTOR(8) stride) {
    return copy_offset4(place.lo, stride.lo) + copy_offset4(place.hi, stride.hi);
}

kernel void ref_copy1(global const COPY_TYPE *x, global COPY_TYPE *y, CLT_INDEX count, CLT_INDEX x_stride, CLT_INDEX y_stride,
                      CLT_INDEX x_offset, CLT_INDEX y_offset) {
    CLT_INDEX i = get_global_id(0);
    if (i >= count) return;
    y[y_offset + i * y_stride] = x[x_offset + i * x_stride];
}

kernel void ref_copy4(global const COPY_TYPE *x, global COPY_TYPE *y, CLT_INDEX count, CLT_INDEX_VECTOR(4) size,
                      CLT_INDEX_VECTOR(4) x_stride, CLT_INDEX_VECTOR(4) y_stride, CLT_INDEX x_offset, CLT_INDEX y_offset) {
    CLT_INDEX i = get_global_id(0);
    if (i >= count) return;
    CLT_INDEX_VECTOR(4) place = copy_place4(i, size);
    y[y_offset + copy_offset4(place, y_stride)] = x[x_offset + copy_offset4(place, x_stride)];
}

kernel void ref_copy8(global const COPY_TYPE *x, global COPY_TYPE *y, CLT_INDEX count, CLT_INDEX_VECTOR(8) size,
                      CLT_INDEX_VECTOR(8) x_stride, CLT_INDEX_VECTOR(8) y_stride, CLT_INDEX x_offset, CLT_INDEX y_offset) {
    CLT_INDEX i = get_global_id(0);
    if (i >= count) return;
    CLT_INDEX_VECTOR(8) place = copy_place8(i, size);
    y[y_offset + copy_offset8(place, y_stride)] = x[x_offset + copy_offset8(place, x_stride)];
}

/* y[i] = value, for all i below count. */
kernel void ref_fill(global CLT_REAL *y, CLT_INDEX count, float value) {
    CLT_INDEX i = get_global_id(0);
    if (i >= count) return;
    CLT_STORE(y, i, value);
}
