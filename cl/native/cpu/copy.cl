/*
 * Copies between boxes with strides on CPU-class devices: element i of a box (row-major, the last component innermost) goes from
 * x[x_offset + sum i_d x_stride_d] to y[y_offset + sum i_d y_stride_d]. Bound: memory.
 *
 * CPU_COPY, an unsigned type as large as the elements, is defined in front of this text and stands in the kernels' names: copies change no bits.
 */
#undef CPU_COPY_NAME
#undef CPU_COPY_IS_uint
#undef CPU_COPY_IS_ushort
#undef CPU_COPY_IS_uchar
#define CPU_COPY_NAME(name) CPU_PASTE(CPU_PASTE(name, _), CPU_COPY)
#define CPU_COPY_IS_uint 4
#define CPU_COPY_IS_ushort 2
#define CPU_COPY_IS_uchar 1

/* Rows of the innermost dimension. A work-item takes cut.s1 of cut.s0 rows, or, of long ones, one of cut.s2 segments of cut.s3 elements. */
CLT_ITEM void CPU_COPY_NAME(cpu_copy_rows_item)(int item, global const CPU_COPY *x, global CPU_COPY *y, int8 size, int8 x_strides, int8 y_strides,
                                                int x_offset, int y_offset, int4 cut) {
    int n[8], xs[8], ys[8], place[8];
    int row = item / cut.s2 * cut.s1, end = min(row + cut.s1, cut.s0), first = item % cut.s2 * cut.s3, last = min(first + cut.s3, size.s7);
    vstore8(size, 0, n);
    vstore8(x_strides, 0, xs);
    vstore8(y_strides, 0, ys);
    for (int d = 6, rest = row; d >= 0; d--) {
        place[d] = rest % n[d];
        rest /= n[d];
        x_offset += place[d] * xs[d];
        y_offset += place[d] * ys[d];
    }
    for (; row < end; row++) {
        global const CPU_COPY *from = x + x_offset;
        global CPU_COPY *to = y + y_offset;
        if (xs[7] == 1 && ys[7] == 1)
            for (int i = first; i < last; i++) to[i] = from[i];
        else
            for (int i = first; i < last; i++) to[i * ys[7]] = from[i * xs[7]];
        for (int d = 6; d >= 0; d--) { /* counts like the digits of a number */
            x_offset += xs[d];
            y_offset += ys[d];
            if (++place[d] < n[d]) break;
            x_offset -= n[d] * xs[d];
            y_offset -= n[d] * ys[d];
            place[d] = 0;
        }
    }
}
kernel void CPU_COPY_NAME(cpu_copy_rows)(global const CPU_COPY *x, global CPU_COPY *y, int8 size, int8 x_strides, int8 y_strides, int x_offset,
                                         int y_offset, int4 cut) {
    CPU_COPY_NAME(cpu_copy_rows_item)(get_global_id(0), x, y, size, x_strides, y_strides, x_offset, y_offset, cut);
}

/* y[j plane.s3 + i] = x[i plane.s2 + j] for a tile of plane.s0 times plane.s1 places, of all planes that the dimensions of `size` count. */
#define CPU_COPY_SIDE 64
CLT_ITEM void CPU_COPY_NAME(cpu_copy_planes_item)(int item, global const CPU_COPY *x, global CPU_COPY *y, int8 size, int8 x_strides, int8 y_strides,
                                                  int x_offset, int y_offset, int4 plane) {
    int n[8], xs[8], ys[8];
    int tiles_i = (plane.s0 + CPU_COPY_SIDE - 1) / CPU_COPY_SIDE, tiles_j = (plane.s1 + CPU_COPY_SIDE - 1) / CPU_COPY_SIDE;
    int first_i = item % tiles_i * CPU_COPY_SIDE, last_i = min(first_i + CPU_COPY_SIDE, plane.s0);
    int first_j = item / tiles_i % tiles_j * CPU_COPY_SIDE, last_j = min(first_j + CPU_COPY_SIDE, plane.s1);
    vstore8(size, 0, n);
    vstore8(x_strides, 0, xs);
    vstore8(y_strides, 0, ys);
    for (int d = 7, rest = item / tiles_i / tiles_j; d >= 0; d--) {
        x_offset += rest % n[d] * xs[d];
        y_offset += rest % n[d] * ys[d];
        rest /= n[d];
    }
    x += x_offset;
    y += y_offset;
    for (int j = first_j; j < last_j; j += 8)
        for (int i = first_i; i < last_i; i += 8) {
#if CPU_PASTE(CPU_COPY_IS_, CPU_COPY) == 4
            if (j + 8 <= last_j && i + 8 <= last_i) {
                float8 r[8];
                _Pragma("unroll") for (int k = 0; k < 8; k++) r[k] = vload8(0, (global const float *)x + (i + k) * plane.s2 + j);
                cpu_transpose(r);
                _Pragma("unroll") for (int k = 0; k < 8; k++) vstore8(r[k], 0, (global float *)y + (j + k) * plane.s3 + i);
                continue;
            }
#endif
            for (int b = j; b < min(j + 8, last_j); b++)
                for (int a = i; a < min(i + 8, last_i); a++) y[b * plane.s3 + a] = x[a * plane.s2 + b];
        }
}
kernel void CPU_COPY_NAME(cpu_copy_planes)(global const CPU_COPY *x, global CPU_COPY *y, int8 size, int8 x_strides, int8 y_strides, int x_offset,
                                           int y_offset, int4 plane) {
    CPU_COPY_NAME(cpu_copy_planes_item)(get_global_id(0), x, y, size, x_strides, y_strides, x_offset, y_offset, plane);
}

/* `run` elements of y, of `count`, a work-item. */
CLT_ITEM void CPU_COPY_NAME(cpu_fill_item)(int item, global CPU_COPY *y, int count, int run, int bits) {
    for (int i = item * run, end = min(i + run, count); i < end; i++) y[i] = (CPU_COPY)bits;
}
kernel void CPU_COPY_NAME(cpu_fill)(global CPU_COPY *y, int count, int run, int bits) {
    CPU_COPY_NAME(cpu_fill_item)(get_global_id(0), y, count, run, bits);
}
