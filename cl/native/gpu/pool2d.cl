/*
 * Pooling for devices whose work-items are lanes; formulas are in cl/reference. x [planes, POOL_H, POOL_W], y [planes, POOL_OH, POOL_OW], of any storage type.
 * A work-item has GPU_VECTOR results that lie side by side, of one row, and neighbouring work-items have neighbouring ones. Bound: memory, once.
 *
 * In front: fours.cl, and sizes as numbers, so that the compiler divides by none of them: POOL_H, POOL_W, POOL_OH, POOL_OW; the window, of which neither has
 * more than 255 places: POOL_KH, POOL_SH, POOL_PH, of the width POOL_KW, POOL_SW, POOL_PW; POOL_INSIDE: averages are of what is inside the image.
 */

/* The windows that may hold a pixel, in each direction. */
#define POOL_ROWS    ((POOL_KH + POOL_SH - 1) / POOL_SH)
#define POOL_COLUMNS ((POOL_KW + POOL_SW - 1) / POOL_SW)

#if GPU_VECTOR == 4
#define POOL_STORE(p, i, values) GPU_STORE_FOUR(p, i, (float4)((values)[0], (values)[1], (values)[2], (values)[3]))
#else
#define POOL_STORE(p, i, values) CLT_STORE(p, i, (values)[0])
#endif

/* The pixels of a row that GPU_VECTOR windows hold, each read once; by fours, where windows lie side by side, and no pixel is outside the image. */
#define POOL_SPAN  ((GPU_VECTOR - 1) * POOL_SW + POOL_KW)
#define POOL_FOURS (GPU_VECTOR == 4 && POOL_SW == POOL_KW && POOL_PW == 0 && POOL_W % 4 == 0)
static void pool2d_row(global const CLT_REAL *x, int w, float *row) {
#if POOL_FOURS
    for (int i = 0; i < POOL_SPAN; i += 4) vstore4(GPU_LOAD_FOUR(x, w + i), 0, row + i);
#else
    for (int i = 0; i < POOL_SPAN; i++) row[i] = w + i >= 0 && w + i < POOL_W ? CLT_LOAD(x, w + i) : 0.0f;
#endif
}

/* Of the windows from (oh, ow) on, where each first maximum is; NaN is larger than any number. */
static void pool2d_largest(global const CLT_REAL *plane, int oh, int ow, float *largest, int *places) {
    float row[POOL_SPAN];
    int w = ow * POOL_SW - POOL_PW;
    for (int j = 0; j < GPU_VECTOR; j++) places[j] = -1, largest[j] = 0;
    for (int r = 0; r < POOL_KH; r++) {
        int h = oh * POOL_SH - POOL_PH + r;
        if (h < 0 || h >= POOL_H) continue;
        pool2d_row(plane + h * POOL_W, w, row);
        for (int j = 0; j < GPU_VECTOR; j++)
            for (int c = 0; c < POOL_KW; c++) {
                int i = j * POOL_SW + c;
                if (w + i < 0 || w + i >= POOL_W) continue;
                if (places[j] >= 0 && !(row[i] > largest[j]) && !(isnan(row[i]) && !isnan(largest[j]))) continue;
                largest[j] = row[i];
                places[j] = r * POOL_KW + c;
            }
    }
}

/* y[p, oh, ow] = max over the window of x[p, h, w] */
kernel void gpu_max_pool2d(global const CLT_REAL *x, global CLT_REAL *y, int count) {
    int i = (int)get_global_id(0) * GPU_VECTOR, found[GPU_VECTOR];
    float values[GPU_VECTOR];
    if (i >= count) return;
    pool2d_largest(x + i / (POOL_OH * POOL_OW) * (POOL_H * POOL_W), i / POOL_OW % POOL_OH, i % POOL_OW, values, found);
    POOL_STORE(y, i, values);
}

/* places[p, oh, ow] = where in the window the first maximum is */
kernel void gpu_max_pool2d_places(global const CLT_REAL *x, global uchar *places, int count) {
    int i = (int)get_global_id(0) * GPU_VECTOR, found[GPU_VECTOR];
    float values[GPU_VECTOR];
    if (i >= count) return;
    pool2d_largest(x + i / (POOL_OH * POOL_OW) * (POOL_H * POOL_W), i / POOL_OW % POOL_OH, i % POOL_OW, values, found);
#if GPU_VECTOR == 4
    *(global uchar4 *)(places + i) = (uchar4)(found[0], found[1], found[2], found[3]);
#else
    places[i] = found[0];
#endif
}

/* dx[p, h, w] = sum of dy[p, oh, ow] over the windows whose place is that pixel */
kernel void gpu_max_pool2d_grad(global const uchar *places, global const CLT_REAL *dy, global CLT_REAL *dx, int count) {
    int i = (int)get_global_id(0) * GPU_VECTOR;
    if (i >= count) return;
    int w = i % POOL_W, h = i / POOL_W % POOL_H, plane = i / (POOL_H * POOL_W) * (POOL_OH * POOL_OW);
    float sums[GPU_VECTOR];
    for (int j = 0; j < GPU_VECTOR; j++) {
        sums[j] = 0;
        for (int a = POOL_ROWS - 1; a >= 0; a--)
            for (int b = POOL_COLUMNS - 1; b >= 0; b--) {
                int oh = (h + POOL_PH) / POOL_SH - a, ow = (w + j + POOL_PW) / POOL_SW - b;
                int row = h + POOL_PH - oh * POOL_SH, column = w + j + POOL_PW - ow * POOL_SW;
                if (oh < 0 || oh >= POOL_OH || ow < 0 || ow >= POOL_OW || row >= POOL_KH || column >= POOL_KW) continue;
                int at = plane + oh * POOL_OW + ow;
                if (places[at] == row * POOL_KW + column) sums[j] += CLT_LOAD(dy, at);
            }
    }
    POOL_STORE(dx, i, sums);
}

/* What the sum over a window is divided by: its size, or without the padding. */
static float pool2d_divisor(int oh, int ow) {
#if POOL_INSIDE
    int h = oh * POOL_SH - POOL_PH, w = ow * POOL_SW - POOL_PW;
    return (min(h + POOL_KH, POOL_H) - max(h, 0)) * (min(w + POOL_KW, POOL_W) - max(w, 0));
#else
    return POOL_KH * POOL_KW;
#endif
}

/* y[p, oh, ow] = (sum over the window of x[p, h, w]) / divisor */
kernel void gpu_avg_pool2d(global const CLT_REAL *x, global CLT_REAL *y, int count) {
    int i = (int)get_global_id(0) * GPU_VECTOR, ow = i % POOL_OW, oh = i / POOL_OW % POOL_OH;
    float row[POOL_SPAN], means[GPU_VECTOR];
    if (i >= count) return;
    for (int j = 0; j < GPU_VECTOR; j++) means[j] = 0;
    for (int r = 0; r < POOL_KH; r++) {
        int h = oh * POOL_SH - POOL_PH + r;
        if (h < 0 || h >= POOL_H) continue;
        pool2d_row(x + i / (POOL_OH * POOL_OW) * (POOL_H * POOL_W) + h * POOL_W, ow * POOL_SW - POOL_PW, row);
        for (int j = 0; j < GPU_VECTOR; j++)
            for (int c = 0; c < POOL_KW; c++) means[j] += row[j * POOL_SW + c];
    }
    for (int j = 0; j < GPU_VECTOR; j++) means[j] /= pool2d_divisor(oh, ow + j);
    POOL_STORE(y, i, means);
}

/* dx[p, h, w] = sum of dy[p, oh, ow] / divisor over the windows that hold the pixel */
kernel void gpu_avg_pool2d_grad(global const CLT_REAL *dy, global CLT_REAL *dx, int count) {
    int i = (int)get_global_id(0) * GPU_VECTOR;
    if (i >= count) return;
    int w = i % POOL_W, h = i / POOL_W % POOL_H, plane = i / (POOL_H * POOL_W) * (POOL_OH * POOL_OW);
    float sums[GPU_VECTOR];
    for (int j = 0; j < GPU_VECTOR; j++) {
        sums[j] = 0;
        for (int a = POOL_ROWS - 1; a >= 0; a--)
            for (int b = POOL_COLUMNS - 1; b >= 0; b--) {
                int oh = (h + POOL_PH) / POOL_SH - a, ow = (w + j + POOL_PW) / POOL_SW - b;
                if (oh < 0 || oh >= POOL_OH || ow < 0 || ow >= POOL_OW || h + POOL_PH - oh * POOL_SH >= POOL_KH || w + j + POOL_PW - ow * POOL_SW >= POOL_KW) continue;
                sums[j] += CLT_LOAD(dy, plane + oh * POOL_OW + ow) / pool2d_divisor(oh, ow);
            }
    }
    POOL_STORE(dx, i, sums);
}
