/*
 * Two-dimensional convolution (cross-correlation) with groups, and its gradients.
 *
 *   x [N, C, H, W], weight [O, C/groups, KH, KW], y [N, O, OH, OW]
 *   y[n, o, oh, ow] = sum over c, kh, kw of x[n, c, h, w] weight[o, c, kh, kw]
 *   with h = oh stride - padding + kh dilation, likewise w; terms outside the image are zero.
 *
 * All three kernels compute CONV2D_BLOCK channels in a work-item, so that a loaded value
 * serves several products. Channels past a group's last are computed as the last
 * again and not written. The sum over channels of the first two is made in launches over
 * the channels from `start` to before `end` of each group, added to what the launches before
 * found if `start` is not 0.
 *
 * Sizes: image (N, C, H, W), filter (O, C/groups, KH, KW), result (N, O, OH, OW);
 * window: stride, padding, dilation of the height in s0 s1 s2, of the width in s3 s4 s5, groups in s6.
 */
#define CONV2D_BLOCK 8

/* The i in 0 .. count-1 for which origin + i step lies in 0 .. size-1: from s0 to before s1. */
static int2 conv2d_range(int origin, int step, int count, int size) {
    int first = origin < 0 ? (step - 1 - origin) / step : 0;
    int end = origin < size ? (size - origin + step - 1) / step : 0;
    return (int2)(first, min(end, count));
}

/* y as above: a work-item, CONV2D_BLOCK channels of one pixel. */
kernel void ref_conv2d(global const float *x, global const float *weight, global float *y, int4 image,
                       int4 filter, int4 result, int8 window, int start, int end) {
    int group_channels = result.s1 / window.s6;
    int group_blocks = (group_channels + CONV2D_BLOCK - 1) / CONV2D_BLOCK;
    int blocks = group_blocks * window.s6;
    int i = get_global_id(0);
    if (i >= result.s0 * blocks * result.s2 * result.s3) return;
    int ow = i % result.s3, oh = i / result.s3 % result.s2;
    int block = i / result.s3 / result.s2 % blocks, n = i / result.s3 / result.s2 / blocks;
    int group = block / group_blocks;
    int o = group * group_channels + block % group_blocks * CONV2D_BLOCK;
    int o_end = (group + 1) * group_channels;

    int h0 = oh * window.s0 - window.s1, w0 = ow * window.s3 - window.s4;
    int2 kh_range = conv2d_range(h0, window.s2, filter.s2, image.s2);
    int2 kw_range = conv2d_range(w0, window.s5, filter.s3, image.s3);
    int at[CONV2D_BLOCK]; /* where the channel's weights begin */
    float sum[CONV2D_BLOCK];
    for (int j = 0; j < CONV2D_BLOCK; j++) {
        at[j] = min(o + j, o_end - 1) * filter.s1 * filter.s2 * filter.s3;
        sum[j] = 0;
    }
    for (int c = start; c < end; c++) {
        int plane = (n * image.s1 + group * filter.s1 + c) * image.s2;
        for (int kh = kh_range.s0; kh < kh_range.s1; kh++) {
            int x_row = (plane + h0 + kh * window.s2) * image.s3 + w0;
            int weight_row = (c * filter.s2 + kh) * filter.s3;
            for (int kw = kw_range.s0; kw < kw_range.s1; kw++) {
                float value = x[x_row + kw * window.s5];
                for (int j = 0; j < CONV2D_BLOCK; j++) sum[j] += value * weight[at[j] + weight_row + kw];
            }
        }
    }
    for (int j = 0; j < CONV2D_BLOCK && o + j < o_end; j++) {
        int to = ((n * result.s1 + o + j) * result.s2 + oh) * result.s3 + ow;
        y[to] = start == 0 ? sum[j] : y[to] + sum[j];
    }
}

/* The greatest that divides both. */
static int conv2d_divisor(int a, int b) {
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * The taps k through which position `at` of the image reached the result: those with
 * at + padding - k dilation = o stride for an o in 0 .. count-1. They are
 * s0, s0 + s3, s0 + 2 s3 ... before s1; s2 is o of the first, and each next has o lower
 * by dilation s3 / stride.
 */
static int4 conv2d_taps(int at, int stride, int padding, int dilation, int taps, int count) {
    int reach = at + padding;
    int first = 0; /* the least with o below count, of those that the stride divides */
    while (first < taps && reach - first * dilation >= 0 &&
           ((reach - first * dilation) % stride || (reach - first * dilation) / stride >= count))
        first++;
    int step = stride / conv2d_divisor(stride, dilation); /* the least that changes o by a whole number */
    int end = min(taps, reach / dilation + 1);
    return (int4)(first, end, (reach - first * dilation) / stride, step);
}

/*
 * dx[n, c, h, w] = sum over o, kh, kw of dy[n, o, oh, ow] weight[o, c, kh, kw], over the
 * taps that read x[n, c, h, w]. A work-item, CONV2D_BLOCK channels of one pixel.
 */
kernel void ref_conv2d_grad_input(global const float *weight, global const float *dy, global float *dx,
                                  int4 image, int4 filter, int4 result, int8 window, int start,
                                  int end) {
    int group_channels = filter.s1, group_results = result.s1 / window.s6;
    int group_blocks = (group_channels + CONV2D_BLOCK - 1) / CONV2D_BLOCK;
    int blocks = group_blocks * window.s6;
    int i = get_global_id(0);
    if (i >= image.s0 * blocks * image.s2 * image.s3) return;
    int w = i % image.s3, h = i / image.s3 % image.s2;
    int block = i / image.s3 / image.s2 % blocks, n = i / image.s3 / image.s2 / blocks;
    int group = block / group_blocks, c = block % group_blocks * CONV2D_BLOCK; /* within the group */

    int4 kh_taps = conv2d_taps(h, window.s0, window.s1, window.s2, filter.s2, result.s2);
    int4 kw_taps = conv2d_taps(w, window.s3, window.s4, window.s5, filter.s3, result.s3);
    int oh_step = kh_taps.s3 * window.s2 / window.s0, ow_step = kw_taps.s3 * window.s5 / window.s3;
    int at[CONV2D_BLOCK]; /* where the channel's weights begin within those of an o */
    float sum[CONV2D_BLOCK];
    for (int j = 0; j < CONV2D_BLOCK; j++) {
        at[j] = min(c + j, group_channels - 1) * filter.s2 * filter.s3;
        sum[j] = 0;
    }
    for (int o = group * group_results + start; o < group * group_results + end; o++) {
        int oh = kh_taps.s2;
        for (int kh = kh_taps.s0; kh < kh_taps.s1; kh += kh_taps.s3, oh -= oh_step) {
            int dy_row = ((n * result.s1 + o) * result.s2 + oh) * result.s3;
            int weight_row = (o * group_channels * filter.s2 + kh) * filter.s3;
            int ow = kw_taps.s2;
            for (int kw = kw_taps.s0; kw < kw_taps.s1; kw += kw_taps.s3, ow -= ow_step) {
                float value = dy[dy_row + ow];
                for (int j = 0; j < CONV2D_BLOCK; j++) sum[j] += value * weight[at[j] + weight_row + kw];
            }
        }
    }
    int first = group * group_channels + c;
    for (int j = 0; j < CONV2D_BLOCK && c + j < group_channels; j++) {
        int to = ((n * image.s1 + first + j) * image.s2 + h) * image.s3 + w;
        dx[to] = start == 0 ? sum[j] : dx[to] + sum[j];
    }
}

/*
 * partial[chunk, o, c, kh, kw] = sum over ow, and over those rows (n, oh) of the result that are
 * in the chunk, of dy[n, o, oh, ow] x[n, c, h, w]. A work-item, CONV2D_BLOCK channels o of one (c, kh, kw).
 * cut: chunks, rows in a chunk, chunks that share those rows, pixels that each has of a row.
 */
kernel void ref_conv2d_grad_weight(global const float *x, global const float *dy, global float *partial,
                                   int4 image, int4 filter, int4 result, int8 window, int4 cut) {
    int group_channels = filter.s0 / window.s6;
    int group_blocks = (group_channels + CONV2D_BLOCK - 1) / CONV2D_BLOCK;
    int blocks = group_blocks * window.s6, taps = filter.s1 * filter.s2 * filter.s3;
    int i = get_global_id(0);
    if (i >= cut.s0 * blocks * taps) return;
    int tap = i % taps, block = i / taps % blocks, chunk = i / taps / blocks;
    int kw = tap % filter.s3, kh = tap / filter.s3 % filter.s2, c = tap / filter.s3 / filter.s2;
    int group = block / group_blocks;
    int o = group * group_channels + block % group_blocks * CONV2D_BLOCK;
    int o_end = (group + 1) * group_channels;

    int h0 = kh * window.s2 - window.s1, w0 = kw * window.s5 - window.s4;
    int2 ow_range = conv2d_range(w0, window.s3, result.s3, image.s3);
    int first = chunk / cut.s2 * cut.s1, end = min(first + cut.s1, result.s0 * result.s2);
    int left = max(ow_range.s0, chunk % cut.s2 * cut.s3), right = min(ow_range.s1, (chunk % cut.s2 + 1) * cut.s3);
    int at[CONV2D_BLOCK]; /* where the channel's dy begins within an image's */
    float sum[CONV2D_BLOCK];
    for (int j = 0; j < CONV2D_BLOCK; j++) {
        at[j] = min(o + j, o_end - 1) * result.s2 * result.s3;
        sum[j] = 0;
    }
    for (int row = first; row < end; row++) {
        int n = row / result.s2, oh = row % result.s2, h = h0 + oh * window.s0;
        if (h < 0 || h >= image.s2) continue;
        int x_row = ((n * image.s1 + group * filter.s1 + c) * image.s2 + h) * image.s3 + w0;
        int dy_row = (n * result.s1 * result.s2 + oh) * result.s3;
        for (int ow = left; ow < right; ow++) {
            float value = x[x_row + ow * window.s3];
            for (int j = 0; j < CONV2D_BLOCK; j++) sum[j] += value * dy[at[j] + dy_row + ow];
        }
    }
    for (int j = 0; j < CONV2D_BLOCK && o + j < o_end; j++)
        partial[(chunk * filter.s0 + o + j) * taps + tap] = sum[j];
}

/* dweight[i] = sum over the chunks of partial[chunk, i], in their order; i in 0 .. count-1. */
kernel void ref_conv2d_sum_chunks(global const float *partial, global float *dweight, int count,
                                  int chunks) {
    int i = get_global_id(0);
    if (i >= count) return;
    float sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += partial[chunk * count + i];
    dweight[i] = sum;
}
