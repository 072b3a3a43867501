/*
 * What a device can do at most: multiply-adds a second from registers, bytes a second between
 * buffers too large for its caches.
 *
 * PROBE_WIDTH, the floats of the device's own vectors, is defined in front of this text.
 */
#define PROBE_PASTE_(a, b) a##b
#define PROBE_PASTE(a, b)  PROBE_PASTE_(a, b)
#if PROBE_WIDTH == 1
#define probe_vector         float
#define probe_load(at, p)     (p)[at]
#define probe_store(v, at, p) (p)[at] = (v)
#else
#define probe_vector PROBE_PASTE(float, PROBE_WIDTH)
#define probe_load   PROBE_PASTE(vload, PROBE_WIDTH)
#define probe_store  PROBE_PASTE(vstore, PROBE_WIDTH)
#endif

/* An expression that devices with fused multiply-adds contract. fma() is slow where there are none, and
 * PoCL makes two instructions of mad(). */
#define PROBE_FMA(a) a = a * scale + shift

/* Twelve chains that wait for nothing but themselves: named, for compilers keep arrays of vectors in
 * memory. They and both factors fit in 16 registers. */
#define PROBE_CHAINS 12
#define PROBE_EACH(DO)                                                                                \
    DO(a0); DO(a1); DO(a2); DO(a3); DO(a4); DO(a5); DO(a6); DO(a7); DO(a8); DO(a9); DO(a10); DO(a11)
#define PROBE_START(a)  probe_vector a = (probe_vector)(first++)
#define PROBE_FINISH(a) probe_store(a, at++, y)

/* y [items][12][width]: value k of item i starts as 12 i + k, and 4 rounds times becomes
 * scale y + shift. Bound: the multiply-add pipes. */
kernel void probe_fma(global float *y, float scale_value, float shift_value, int rounds) {
    int at = get_global_id(0) * PROBE_CHAINS;
    float first = at;
    probe_vector scale = (probe_vector)(scale_value), shift = (probe_vector)(shift_value);
    PROBE_EACH(PROBE_START);
    for (int r = 0; r < rounds; r++) {
        PROBE_EACH(PROBE_FMA);
        PROBE_EACH(PROBE_FMA);
        PROBE_EACH(PROBE_FMA);
        PROBE_EACH(PROBE_FMA);
    }
    PROBE_EACH(PROBE_FINISH);
}

/* x[i] = i of the float's place, modulo 2^20. */
kernel void probe_ramp(global float *x, int count) {
    int i = get_global_id(0);
    if (i < count) x[i] = i & 0xfffff;
}

/* y = x; count in vectors. A work-group copies `steps` times its size, side by side. Bound: memory. */
kernel void probe_copy(global const float *x, global float *y, int count, int steps) {
    int lanes = get_local_size(0), at = get_group_id(0) * lanes * steps + get_local_id(0);
    for (int s = 0; s < steps; s++, at += lanes)
        if (at < count) probe_store(probe_load(at, x), at, y);
}
