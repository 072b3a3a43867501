/*
 * Gradients made small for the wire, and back: casts, and blocks of COMPRESS_BLOCK elements that share a scale
 * (int8) or two means (onebit). A work-item does a whole block, 16 elements at a time; all is bound by the
 * bytes of gradient and residual.
 *
 * What the codes leave behind stays in `residual`, and is added to the next gradient (error feedback: Seide et al.,
 * "1-bit stochastic gradient descent", 2014). Scales and means are bf16, so that their products with codes, and what
 * is left of a value, are exact: the sum over ranks has the same bits on any device, contracted or not.
 *
 * A block in which a magnitude reaches COMPRESS_LIMIT, or is NaN, arrives as NaN throughout, so that a gradient that
 * overflowed shows, and leaves no residual.
 */

#define COMPRESS_BLOCK 256
#define COMPRESS_LIMIT 0x7b800000u /* the bits of 2^120: 256 of these can be added */
#define COMPRESS_TINY 0x0d800000u  /* 2^-100: a scale made of less could be flushed to zero */

static float16 compress_load(global const float *x, int i, int n) {
    if (i + 16 <= n) return vload16(0, x + i);
    float part[16];
    for (int k = 0; k < 16; k++) part[k] = i + k < n ? x[i + k] : 0.0f;
    return vload16(0, part);
}

static void compress_store(float16 v, global float *x, int i, int n) {
    if (i + 16 <= n) {
        vstore16(v, 0, x + i);
        return;
    }
    float part[16];
    vstore16(v, 0, part);
    for (int k = 0; k < 16 && i + k < n; k++) x[i + k] = part[k];
}

static uint compress_max(uint16 v) {
    uint8 a = max(v.lo, v.hi);
    uint4 b = max(a.lo, a.hi);
    uint2 c = max(b.lo, b.hi);
    return max(c.x, c.y);
}

static int compress_sum_int(int16 v) {
    int8 a = v.lo + v.hi;
    int4 b = a.lo + a.hi;
    int2 c = b.lo + b.hi;
    return c.x + c.y;
}

static float compress_sum(float16 v) {
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

/* ---- casts: a work-item has 16 elements ---- */

/* wire = x / samples, to the nearest value of the wire's type, ties to even; too large for it becomes infinite. */
kernel void ref_narrow(global const float *x, global const float *samples, global CLT_REAL *wire, int n) {
    int i = (int)get_global_id(0) * 16;
    if (i >= n) return;
    float scale = clt_share(samples);
    if (i + 16 <= n) CLT_STORE_VECTOR(16, wire, i, vload16(0, x + i) * scale);
    else
        for (; i < n; i++) CLT_STORE(wire, i, x[i] * scale);
}

kernel void ref_widen(global float *flat, global const CLT_REAL *wire, int n) {
    int i = (int)get_global_id(0) * 16;
    if (i >= n) return;
    if (i + 16 <= n) vstore16(CLT_LOAD_VECTOR(16, wire, i), 0, flat + i);
    else
        for (; i < n; i++) flat[i] = CLT_LOAD(wire, i);
}

/* ---- int8: blocks x 256 codes, then blocks x scale (bf16); filled up to a multiple of 4 bytes ---- */

/* value = code x scale; scale = max |v| / 127, rounded up. */
kernel void ref_int8_encode(global const float *x, global float *residual, global const float *samples,
                            global char *wire, int n, int blocks) {
    int b = get_global_id(0), start = b * COMPRESS_BLOCK;
    if (b >= blocks) return;
    uint16 largest = 0;
    float share = clt_share(samples);
    for (int k = 0; k < COMPRESS_BLOCK; k += 16) {
        float16 v = compress_load(x, start + k, n) * share + compress_load(residual, start + k, n);
        compress_store(v, residual, start + k, n);
        largest = max(largest, as_uint16(v) & 0x7fffffff);
    }
    uint most = compress_max(largest);
    bool lost = most >= COMPRESS_LIMIT;
    uint bits = most < COMPRESS_TINY ? 0 : (as_uint(as_float(most) / 127) + 0xffff) & 0xffff0000u;
    float scale = as_float(bits), inverse = bits && !lost ? 1 / scale : 0.0f;
    global ushort *scales = (global ushort *)(wire + (long)blocks * COMPRESS_BLOCK);
    scales[b] = lost ? 0x7fc0 : bits >> 16;
    if (b == blocks - 1 && blocks % 2) scales[blocks] = 0;
    for (int k = 0; k < COMPRESS_BLOCK; k += 16) {
        float16 v = lost ? (float16)0.0f : compress_load(residual, start + k, n);
        char16 code = convert_char16_sat_rte(v * inverse);
        vstore16(code, 0, wire + start + k);
        compress_store(v - convert_float16(code) * (lost ? 0.0f : scale), residual, start + k, n);
    }
}

/* flat = the sum of what `ranks` wires of `bytes` each say, in their order. */
kernel void ref_int8_decode(global float *flat, global const char *wires, int n, int blocks, int ranks, int bytes) {
    int b = get_global_id(0), start = b * COMPRESS_BLOCK;
    if (b >= blocks) return;
    for (int k = 0; k < COMPRESS_BLOCK && start + k < n; k += 16) {
        float16 sum = 0;
        for (int r = 0; r < ranks; r++) {
            global const char *wire = wires + (long)r * bytes;
            global const ushort *scales = (global const ushort *)(wire + (long)blocks * COMPRESS_BLOCK);
            sum += convert_float16(vload16(0, wire + start + k)) * as_float((uint)scales[b] << 16);
        }
        compress_store(sum, flat, start + k, n);
    }
}

/* ---- onebit: blocks x 16 x 16 signs, blocks x (mean of the positive, of the negative; bf16), blocks x index of the
 * last that is not zero; filled up to a multiple of 4 bytes ---- */

/* What follows the last value that is not zero takes no part: a block may be filled with zeros, and the means are of
 * what is before them. */
kernel void ref_onebit_encode(global const float *x, global float *residual, global const float *samples,
                              global uchar *wire, int n, int blocks) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int b = get_global_id(0), start = b * COMPRESS_BLOCK;
    if (b >= blocks) return;
    global ushort *signs = (global ushort *)wire + b * 16;
    float16 positive = 0, negative = 0;
    int16 negatives = 0, last = -1;
    uint16 largest = 0;
    float share = clt_share(samples);
    for (int k = 0; k < COMPRESS_BLOCK; k += 16) {
        float16 v = compress_load(x, start + k, n) * share + compress_load(residual, start + k, n);
        compress_store(v, residual, start + k, n);
        largest = max(largest, as_uint16(v) & 0x7fffffff);
        int16 below = v < 0;
        /* Not fmax and fmin: of vectors, Oclgrind's are wrong. */
        positive += select(v, (float16)0.0f, below);
        negative += select((float16)0.0f, v, below);
        negatives -= below;
        last = max(last, select((int16)-1, lane + k, v != 0));
        signs[k / 16] = compress_sum_int(below & ((int16)(1) << lane));
    }
    int end = (int)compress_max(as_uint16(last + 1)), n_negative = compress_sum_int(negatives);
    bool lost = compress_max(largest) >= COMPRESS_LIMIT;
    float high = end > n_negative ? clt_round_bf16(compress_sum(positive) / (end - n_negative)) : 0.0f;
    float low = n_negative ? clt_round_bf16(compress_sum(negative) / n_negative) : 0.0f;
    global ushort *means = (global ushort *)(wire + (long)blocks * 32) + 2 * b;
    global uchar *ends = wire + (long)blocks * 36;
    means[0] = lost ? 0x7fc0 : as_uint(high) >> 16;
    means[1] = lost ? 0x7fc0 : as_uint(low) >> 16;
    ends[b] = lost ? COMPRESS_BLOCK - 1 : max(end, 1) - 1;
    if (b == blocks - 1)
        for (int fill = blocks; fill % 4; fill++) ends[fill] = 0;
    for (int k = 0; k < COMPRESS_BLOCK && start + k < n; k += 16) {
        float16 v = compress_load(residual, start + k, n);
        float16 coded = select((float16)high, (float16)low, v < 0);
        v = select(v - coded, (float16)0.0f, (lane + k >= end) | (lost ? -1 : 0));
        compress_store(v, residual, start + k, n);
    }
}

kernel void ref_onebit_decode(global float *flat, global const uchar *wires, int n, int blocks, int ranks, int bytes) {
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int b = get_global_id(0), start = b * COMPRESS_BLOCK;
    if (b >= blocks) return;
    for (int k = 0; k < COMPRESS_BLOCK && start + k < n; k += 16) {
        float16 sum = 0;
        for (int r = 0; r < ranks; r++) {
            global const uchar *wire = wires + (long)r * bytes;
            global const ushort *means = (global const ushort *)(wire + (long)blocks * 32) + 2 * b;
            float high = as_float((uint)means[0] << 16), low = as_float((uint)means[1] << 16);
            int signs = ((global const ushort *)wire)[b * 16 + k / 16], last = wire[(long)blocks * 36 + b];
            float16 coded = select((float16)high, (float16)low, ((int16)(signs) >> lane & 1) != 0);
            sum += select(coded, (float16)0.0f, lane + k > (int16)(last));
        }
        compress_store(sum, flat, start + k, n);
    }
}
