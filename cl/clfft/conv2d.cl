/*
 * What convolution by Fourier transforms needs beside clFFT: pictures put into larger ones of zeros,
 * products of spectra summed over channels or images, and pictures cut out again.
 *
 * A spectrum is [height][width / 2 + 1] complex numbers: the rest follows, for pictures are real.
 */

/* to[i, h, w] = from[i, h - before, w - before], zero outside. image: count, H, W; padded: height,
 * width, before in both. A work-item an element; neighbours read and write neighbours. */
kernel void clfft_pad(global const float *from, global float *to, int4 image, int4 padded) {
    int item = get_global_id(0), plane = padded.s0 * padded.s1;
    if (item >= image.s0 * plane) return;
    int h = item % plane / padded.s1 - padded.s2, w = item % padded.s1 - padded.s3, i = item / plane;
    bool there = h >= 0 && h < image.s1 && w >= 0 && w < image.s2;
    to[item] = there ? from[(i * image.s1 + h) * image.s2 + w] : 0;
}

/* to[i, h, w] = from[i, h + before, w + before]. As above. */
kernel void clfft_crop(global const float *from, global float *to, int4 image, int4 padded) {
    int item = get_global_id(0), plane = image.s1 * image.s2;
    if (item >= image.s0 * plane) return;
    int h = item % plane / image.s2 + padded.s2, w = item % image.s2 + padded.s3, i = item / plane;
    to[item] = from[(i * padded.s0 + h) * padded.s1 + w];
}

/*
 * c[i, j] = sum over k of a[i, k] b[j, k] for each frequency, where b is conjugated if `sign` is -1.
 * size: I, J, K, frequencies; step: spectra from i to i and from k to k in a, from j to j and k to k in
 * b; result: from i to i and j to j in c.
 * Tile: 4 x 4 spectra of one frequency a work-item, in registers; those past the last are the last
 * again. Access: neighbours have neighbouring frequencies. Bound: reading a J / 4 times and b I / 4 times.
 */
kernel void clfft_multiply(global const float2 *a, global const float2 *b, global float2 *c, int4 size, int4 step,
                           int2 result, float sign) {
    int item = get_global_id(0), columns = (size.s1 + 3) / 4, rows = (size.s0 + 3) / 4;
    if (item >= rows * columns * size.s3) return;
    int f = item % size.s3, i0 = item / size.s3 / columns * 4, j0 = item / size.s3 % columns * 4;
    int a_at[4], b_at[4];
    float2 sum[4][4];
    for (int i = 0; i < 4; i++) {
        a_at[i] = min(i0 + i, size.s0 - 1) * step.s0 * size.s3 + f;
        b_at[i] = min(j0 + i, size.s1 - 1) * step.s2 * size.s3 + f;
        for (int j = 0; j < 4; j++) sum[i][j] = (float2)(0);
    }
    for (int k = 0; k < size.s2; k++) {
        float2 left[4], right[4];
        for (int i = 0; i < 4; i++) {
            left[i] = a[a_at[i] + k * step.s1 * size.s3];
            right[i] = b[b_at[i] + k * step.s3 * size.s3];
            right[i].s1 *= sign;
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                sum[i][j] += left[i].s0 * right[j];
                sum[i][j] += left[i].s1 * (float2)(-right[j].s1, right[j].s0);
            }
    }
    for (int i = 0; i < 4 && i0 + i < size.s0; i++)
        for (int j = 0; j < 4 && j0 + j < size.s1; j++)
            c[((i0 + i) * result.s0 + (j0 + j) * result.s1) * size.s3 + f] = sum[i][j];
}
