/*
 * Pooling over windows of each channel's plane, and its gradients.
 *
 * x [planes, H, W], y [planes, OH, OW] with planes = N C; window (oh, ow) begins at
 * row oh stride - padding and is clipped to the image.
 *
 * Sizes: image (planes, H, W), result (planes, OH, OW); window: kernel, stride, padding of the
 * height in s0 s1 s2, of the width in s3 s4 s5.
 *
 * What a work-item goes over, a window's pixels or a pixel's windows, may be cut into parts, a launch each, which go on from what
 * those before found: part is the rows of it from s0 to before s1. Tensors are of any storage type, but of f32 where there are parts, which would be rounded
 * one by one.
 */

/* Of `whole`, from s0 to before s1, that part. */
static int2 pool2d_part(int2 whole, int2 part) {
    return (int2)(whole.s0 + part.s0, min(whole.s0 + part.s1, whole.s1));
}

/* The part of window o that is inside the image: from s0 to before s1. */
static int2 pool2d_clip(int o, int length, int stride, int padding, int size) {
    int start = o * stride - padding;
    return (int2)(max(start, 0), min(start + length, size));
}

/* The windows that hold pixel `at`: from s0 to before s1. */
static int2 pool2d_windows(int at, int length, int stride, int padding, int count) {
    int reach = at + padding;
    int first = reach < length ? 0 : (reach - length) / stride + 1;
    return (int2)(first, min(reach / stride + 1, count));
}

/* Where the first maximum of these rows and columns is, in row-major order, or `best` if none is larger; NaN is larger than any
 * number. */
static int pool2d_argmax(global const CLT_REAL *x, int plane, int2 rows, int2 columns, int width, int best) {
    for (int h = rows.s0; h < rows.s1; h++)
        for (int w = columns.s0; w < columns.s1; w++) {
            int at = plane + h * width + w;
            float value = CLT_LOAD(x, at), most = CLT_LOAD(x, best);
            if (value > most || (isnan(value) && !isnan(most))) best = at;
        }
    return best;
}

/* best[p, oh, ow] = where in x the window's first maximum is */
kernel void ref_max_pool2d_places(global const CLT_REAL *x, global int *best, int4 image, int4 result,
                                  int8 window, int2 part) {
    int i = get_global_id(0);
    if (i >= result.s0 * result.s1 * result.s2) return;
    int ow = i % result.s2, oh = i / result.s2 % result.s1, plane = i / result.s2 / result.s1 * image.s1 * image.s2;
    int2 rows = pool2d_clip(oh, window.s0, window.s1, window.s2, image.s1);
    int2 columns = pool2d_clip(ow, window.s3, window.s4, window.s5, image.s2);
    int first = part.s0 == 0 ? plane + rows.s0 * image.s2 + columns.s0 : best[i];
    best[i] = pool2d_argmax(x, plane, pool2d_part(rows, part), columns, image.s2, first);
}

/* y[p, oh, ow] = max over the window of x[p, h, w], in one part */
kernel void ref_max_pool2d(global const CLT_REAL *x, global CLT_REAL *y, int4 image, int4 result,
                           int8 window) {
    int i = get_global_id(0);
    if (i >= result.s0 * result.s1 * result.s2) return;
    int ow = i % result.s2, oh = i / result.s2 % result.s1, plane = i / result.s2 / result.s1 * image.s1 * image.s2;
    int2 rows = pool2d_clip(oh, window.s0, window.s1, window.s2, image.s1);
    int2 columns = pool2d_clip(ow, window.s3, window.s4, window.s5, image.s2);
    int best = pool2d_argmax(x, plane, rows, columns, image.s2, plane + rows.s0 * image.s2 + columns.s0);
    CLT_STORE(y, i, CLT_LOAD(x, best));
}

/* y[i] = x[best[i]] */
kernel void ref_max_pool2d_take(global const CLT_REAL *x, global const int *best, global CLT_REAL *y, int count) {
    int i = get_global_id(0);
    if (i < count) CLT_STORE(y, i, CLT_LOAD(x, best[i]));
}

/* dx[p, h, w] = sum of dy[p, oh, ow] over the windows whose first maximum, by `best`, is x[p, h, w] */
kernel void ref_max_pool2d_grad(global const int *best, global const CLT_REAL *dy, global CLT_REAL *dx,
                                int4 image, int4 result, int8 window, int2 part) {
    int i = get_global_id(0);
    if (i >= image.s0 * image.s1 * image.s2) return;
    int w = i % image.s2, h = i / image.s2 % image.s1, plane = i / image.s2 / image.s1;
    int2 oh_range = pool2d_part(pool2d_windows(h, window.s0, window.s1, window.s2, result.s1), part);
    int2 ow_range = pool2d_windows(w, window.s3, window.s4, window.s5, result.s2);
    float sum = part.s0 == 0 ? 0 : CLT_LOAD(dx, i);
    for (int oh = oh_range.s0; oh < oh_range.s1; oh++)
        for (int ow = ow_range.s0; ow < ow_range.s1; ow++) {
            int at = (plane * result.s1 + oh) * result.s2 + ow;
            if (best[at] == i) sum += CLT_LOAD(dy, at);
        }
    CLT_STORE(dx, i, sum);
}

/* What the sum over a window is divided by: its size, or without the padding. */
static float pool2d_divisor(int2 rows, int2 columns, int8 window, int exclude_padding) {
    return exclude_padding ? (rows.s1 - rows.s0) * (columns.s1 - columns.s0) : window.s0 * window.s3;
}

/* y[p, oh, ow] = (sum over the window of x[p, h, w]) / divisor; before the last part the sum alone */
kernel void ref_avg_pool2d(global const CLT_REAL *x, global CLT_REAL *y, int4 image, int4 result, int8 window,
                           int2 part, int exclude_padding) {
    int i = get_global_id(0);
    if (i >= result.s0 * result.s1 * result.s2) return;
    int ow = i % result.s2, oh = i / result.s2 % result.s1, plane = i / result.s2 / result.s1;
    int2 rows = pool2d_clip(oh, window.s0, window.s1, window.s2, image.s1);
    int2 columns = pool2d_clip(ow, window.s3, window.s4, window.s5, image.s2);
    int2 h_range = pool2d_part(rows, part);
    float divisor = pool2d_divisor(rows, columns, window, exclude_padding);
    float sum = part.s0 == 0 ? 0 : CLT_LOAD(y, i);
    for (int h = h_range.s0; h < h_range.s1; h++)
        for (int w = columns.s0; w < columns.s1; w++) sum += CLT_LOAD(x, (plane * image.s1 + h) * image.s2 + w);
    CLT_STORE(y, i, part.s1 < window.s0 ? sum : sum / divisor);
}

/* dx[p, h, w] = sum of dy[p, oh, ow] / divisor over the windows that hold the pixel */
kernel void ref_avg_pool2d_grad(global const CLT_REAL *dy, global CLT_REAL *dx, int4 image, int4 result,
                                int8 window, int2 part, int exclude_padding) {
    int i = get_global_id(0);
    if (i >= image.s0 * image.s1 * image.s2) return;
    int w = i % image.s2, h = i / image.s2 % image.s1, plane = i / image.s2 / image.s1;
    int2 oh_range = pool2d_part(pool2d_windows(h, window.s0, window.s1, window.s2, result.s1), part);
    int2 ow_range = pool2d_windows(w, window.s3, window.s4, window.s5, result.s2);
    float sum = part.s0 == 0 ? 0 : CLT_LOAD(dx, i);
    for (int oh = oh_range.s0; oh < oh_range.s1; oh++)
        for (int ow = ow_range.s0; ow < ow_range.s1; ow++) {
            int2 rows = pool2d_clip(oh, window.s0, window.s1, window.s2, image.s1);
            int2 columns = pool2d_clip(ow, window.s3, window.s4, window.s5, image.s2);
            sum += CLT_LOAD(dy, (plane * result.s1 + oh) * result.s2 + ow) /
                   pool2d_divisor(rows, columns, window, exclude_padding);
        }
    CLT_STORE(dx, i, sum);
}
