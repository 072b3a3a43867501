/*
 * Pooling of channels-last images [N, H, W, C]: a work-item goes over a row or an image, its inner loop over channels.
 *
 * Sizes: image (N, C, H, W), result (height, width); window: kernel, stride, padding of the height in s0 s1 s2, of
 * the width in s3 s4 s5. Windows are clipped to the image. Bound: memory.
 */
#define CPU_POOL_CHANNELS 64 /* of one inner loop, whose state is in the first cache */

/* The part of window o that is inside the image: from s0 to before s1. */
static int2 cpu_pool_clip(int o, int length, int stride, int padding, int size) {
    int start = o * stride - padding;
    return (int2)(max(start, 0), min(start + length, size));
}

/*
 * The largest of each channel in a window, the first if there are several, and where in the window it is; NaN is
 * larger than any number. `x` is at the window's first pixel; extent: rows and columns of the window.
 */
static void cpu_pool_best(global const float *x, int count, int2 extent, int2 step, float *largest, int *place) {
    for (int c = 0; c < count; c++) {
        largest[c] = x[c];
        place[c] = 0;
    }
    for (int k = 1; k < extent.s0 * extent.s1; k++) {
        global const float *pixel = x + k / extent.s1 * step.s0 + k % extent.s1 * step.s1;
        for (int c = 0; c < count; c++) {
            float value = pixel[c], best = largest[c];
            int better = (value > best) | ((value != value) & (best == best));
            largest[c] = better ? value : best;
            place[c] = better ? k : place[c];
        }
    }
}

/* A work-item, one row of the result. */
CLT_ITEM void cpu_max_pool2d_item(int item, global const float *x, global float *y, int4 image, int2 result,
                                  int8 window) {
    int channels = image.s1;
    if (item >= image.s0 * result.s0) return;
    int n = item / result.s0, oh = item % result.s0;
    int2 rows = cpu_pool_clip(oh, window.s0, window.s1, window.s2, image.s2);
    float largest[CPU_POOL_CHANNELS];
    int place[CPU_POOL_CHANNELS];
    for (int ow = 0; ow < result.s1; ow++) {
        int2 columns = cpu_pool_clip(ow, window.s3, window.s4, window.s5, image.s3);
        global const float *from = x + ((n * image.s2 + rows.s0) * image.s3 + columns.s0) * channels;
        global float *to = y + (item * result.s1 + ow) * channels;
        for (int start = 0; start < channels; start += CPU_POOL_CHANNELS) {
            int count = min(CPU_POOL_CHANNELS, channels - start);
            cpu_pool_best(from + start, count, (int2)(rows.s1 - rows.s0, columns.s1 - columns.s0),
                          (int2)(image.s3 * channels, channels), largest, place);
            for (int c = 0; c < count; c++) to[start + c] = largest[c];
        }
    }
}
kernel void cpu_max_pool2d(global const float *x, global float *y, int4 image, int2 result, int8 window) {
    cpu_max_pool2d_item(get_global_id(0), x, y, image, result, window);
}

/* dx: dy goes to each window's largest. A work-item, CPU_POOL_CHANNELS channels of one image. */
CLT_ITEM void cpu_max_pool2d_grad_item(int item, global const float *x, global const float *dy,
                                       global float *dx, int4 image, int2 result, int8 window) {
    int channels = image.s1, blocks = (channels + CPU_POOL_CHANNELS - 1) / CPU_POOL_CHANNELS;
    int n = item / blocks, start = item % blocks * CPU_POOL_CHANNELS;
    if (n >= image.s0) return;
    int count = min(CPU_POOL_CHANNELS, channels - start);
    float largest[CPU_POOL_CHANNELS];
    int place[CPU_POOL_CHANNELS];
    x += n * image.s2 * image.s3 * channels + start;
    dx += n * image.s2 * image.s3 * channels + start;
    dy += n * result.s0 * result.s1 * channels + start;
    for (int p = 0; p < image.s2 * image.s3; p++)
        for (int c = 0; c < count; c++) dx[p * channels + c] = 0;
    for (int oh = 0; oh < result.s0; oh++) {
        int2 rows = cpu_pool_clip(oh, window.s0, window.s1, window.s2, image.s2);
        for (int ow = 0; ow < result.s1; ow++) {
            int2 columns = cpu_pool_clip(ow, window.s3, window.s4, window.s5, image.s3);
            int first = (rows.s0 * image.s3 + columns.s0) * channels, across = columns.s1 - columns.s0;
            global const float *dy_pixel = dy + (oh * result.s1 + ow) * channels;
            cpu_pool_best(x + first, count, (int2)(rows.s1 - rows.s0, across), (int2)(image.s3 * channels, channels),
                          largest, place);
            for (int k = 0; k < (rows.s1 - rows.s0) * across; k++) {
                global float *to = dx + first + (k / across * image.s3 + k % across) * channels;
                for (int c = 0; c < count; c++) to[c] += place[c] == k ? dy_pixel[c] : 0;
            }
        }
    }
}
kernel void cpu_max_pool2d_grad(global const float *x, global const float *dy, global float *dx, int4 image,
                                int2 result, int8 window) {
    cpu_max_pool2d_grad_item(get_global_id(0), x, dy, dx, image, result, window);
}

/* What the sum over a window is divided by: its size, or without the padding. */
static float cpu_pool_divisor(int2 rows, int2 columns, int8 window, int exclude_padding) {
    return exclude_padding ? (rows.s1 - rows.s0) * (columns.s1 - columns.s0) : window.s0 * window.s3;
}

/* A work-item, one row of the result. */
CLT_ITEM void cpu_avg_pool2d_item(int item, global const float *x, global float *y, int4 image, int2 result,
                                  int8 window, int exclude_padding) {
    int channels = image.s1;
    if (item >= image.s0 * result.s0) return;
    int n = item / result.s0, oh = item % result.s0;
    int2 rows = cpu_pool_clip(oh, window.s0, window.s1, window.s2, image.s2);
    for (int ow = 0; ow < result.s1; ow++) {
        int2 columns = cpu_pool_clip(ow, window.s3, window.s4, window.s5, image.s3);
        float scale = 1.0f / cpu_pool_divisor(rows, columns, window, exclude_padding);
        global float *to = y + (item * result.s1 + ow) * channels;
        for (int start = 0; start < channels; start += CPU_POOL_CHANNELS) {
            int count = min(CPU_POOL_CHANNELS, channels - start);
            float sum[CPU_POOL_CHANNELS];
            for (int c = 0; c < count; c++) sum[c] = 0;
            for (int h = rows.s0; h < rows.s1; h++)
                for (int w = columns.s0; w < columns.s1; w++) {
                    global const float *pixel = x + ((n * image.s2 + h) * image.s3 + w) * channels + start;
                    for (int c = 0; c < count; c++) sum[c] += pixel[c];
                }
            for (int c = 0; c < count; c++) to[start + c] = sum[c] * scale;
        }
    }
}
kernel void cpu_avg_pool2d(global const float *x, global float *y, int4 image, int2 result, int8 window,
                           int exclude_padding) {
    cpu_avg_pool2d_item(get_global_id(0), x, y, image, result, window, exclude_padding);
}

/* The windows that hold pixel `at`: from s0 to before s1. */
static int2 cpu_pool_windows(int at, int length, int stride, int padding, int count) {
    int reach = at + padding;
    int first = reach < length ? 0 : (reach - length) / stride + 1;
    return (int2)(first, min(reach / stride + 1, count));
}

/* dx: each pixel gathers from the windows that hold it. A work-item, one row of dx. */
CLT_ITEM void cpu_avg_pool2d_grad_item(int item, global const float *dy, global float *dx, int4 image,
                                       int2 result, int8 window, int exclude_padding) {
    int channels = image.s1;
    if (item >= image.s0 * image.s2) return;
    int n = item / image.s2, h = item % image.s2;
    int2 oh_range = cpu_pool_windows(h, window.s0, window.s1, window.s2, result.s0);
    for (int w = 0; w < image.s3; w++) {
        int2 ow_range = cpu_pool_windows(w, window.s3, window.s4, window.s5, result.s1);
        global float *to = dx + (item * image.s3 + w) * channels;
        for (int c = 0; c < channels; c++) to[c] = 0;
        for (int oh = oh_range.s0; oh < oh_range.s1; oh++)
            for (int ow = ow_range.s0; ow < ow_range.s1; ow++) {
                int2 rows = cpu_pool_clip(oh, window.s0, window.s1, window.s2, image.s2);
                int2 columns = cpu_pool_clip(ow, window.s3, window.s4, window.s5, image.s3);
                float scale = 1.0f / cpu_pool_divisor(rows, columns, window, exclude_padding);
                global const float *from = dy + ((n * result.s0 + oh) * result.s1 + ow) * channels;
                for (int c = 0; c < channels; c++) to[c] += from[c] * scale;
            }
    }
}
kernel void cpu_avg_pool2d_grad(global const float *dy, global float *dx, int4 image, int2 result,
                                int8 window, int exclude_padding) {
    cpu_avg_pool2d_grad_item(get_global_id(0), dy, dx, image, result, window, exclude_padding);
}
