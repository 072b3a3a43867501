/*
 * What a device can do at most; beside peaks.cl, for other types, other patterns and its own memory.
 *
 * LIMIT_SCALAR and LIMIT_WIDTH, how many of them the device's own vectors hold, are defined in front of this text.
 */
#define LIMIT_PASTE_(a, b) a##b
#define LIMIT_PASTE(a, b)  LIMIT_PASTE_(a, b)
#if LIMIT_WIDTH == 1
#define limit_vector         LIMIT_SCALAR
#define limit_load(at, p)     (p)[at]
#define limit_store(v, at, p) (p)[at] = (v)
#else
#define limit_vector LIMIT_PASTE(LIMIT_SCALAR, LIMIT_WIDTH)
#define limit_load   LIMIT_PASTE(vload, LIMIT_WIDTH)
#define limit_store  LIMIT_PASTE(vstore, LIMIT_WIDTH)
#endif

/* As in peaks.cl: an expression that is contracted where there are fused multiply-adds; twelve named chains. */
#define LIMIT_FMA(a) a = a * scale + shift
#define LIMIT_EACH(DO)                                                                                \
    DO(a0); DO(a1); DO(a2); DO(a3); DO(a4); DO(a5); DO(a6); DO(a7); DO(a8); DO(a9); DO(a10); DO(a11)
#define LIMIT_START(a)  limit_vector a = (limit_vector)((LIMIT_SCALAR)(at++ & 63))
#define LIMIT_FINISH(a) limit_store(a, to++, y)

/* y [items][12][width]: value k of item i starts as (12 i + k) mod 64, and 4 rounds times becomes scale y + shift.
 * Bound: the multiply-add pipes. */
kernel void limit_fma(global LIMIT_SCALAR *y, float scale_value, float shift_value, int rounds) {
    int at = get_global_id(0) * 12, to = at;
    limit_vector scale = (limit_vector)((LIMIT_SCALAR)scale_value), shift = (limit_vector)((LIMIT_SCALAR)shift_value);
    LIMIT_EACH(LIMIT_START);
    for (int r = 0; r < rounds; r++) {
        LIMIT_EACH(LIMIT_FMA);
        LIMIT_EACH(LIMIT_FMA);
        LIMIT_EACH(LIMIT_FMA);
        LIMIT_EACH(LIMIT_FMA);
    }
    LIMIT_EACH(LIMIT_FINISH);
}

/* x[i] = i mod 2^12, so that sums stay exact. */
kernel void limit_ramp(global LIMIT_SCALAR *x, int count) {
    int i = get_global_id(0);
    if (i < count) x[i] = i & 0xfff;
}

/* A work-group goes over `steps` times its size, side by side; counts are in vectors. Bound: memory. */
#define LIMIT_WALK(at)                                                                                       \
    int lanes = get_local_size(0), at = get_group_id(0) * lanes * steps + get_local_id(0), s = 0;            \
    for (; s < steps; s++, at += lanes)                                                                      \
        if (at < count)

kernel void limit_copy(global const LIMIT_SCALAR *x, global const LIMIT_SCALAR *z, global LIMIT_SCALAR *y, int count,
                       int steps) {
    LIMIT_WALK(at) limit_store(limit_load(at, x), at, y);
}

kernel void limit_triad(global const LIMIT_SCALAR *x, global const LIMIT_SCALAR *z, global LIMIT_SCALAR *y, int count,
                        int steps) {
    LIMIT_WALK(at) limit_store(limit_load(at, x) + 2 * limit_load(at, z), at, y);
}

/* y [items][width]: the sums of what each item read. */
kernel void limit_read(global const LIMIT_SCALAR *x, global const LIMIT_SCALAR *z, global LIMIT_SCALAR *y, int count,
                       int steps) {
    limit_vector sum = (limit_vector)(0);
    LIMIT_WALK(at) sum += limit_load(at, x);
    limit_store(sum, get_global_id(0), y);
}

/* y [items]: sums of what each item read from 256 vectors in local memory, 8 a round. Bound: local memory. */
kernel void limit_local(global LIMIT_SCALAR *y, int rounds) {
    local limit_vector kept[256];
    int lanes = get_local_size(0), lane = get_local_id(0);
    for (int i = lane; i < 256; i += lanes) kept[i] = (limit_vector)((LIMIT_SCALAR)(i & 7));
    barrier(CLK_LOCAL_MEM_FENCE);
    limit_vector a = (limit_vector)(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a; /* sums that wait for none of the others */
    for (int r = 0; r < rounds; r++) {
        int at = lane + r;
        a += kept[at & 255], b += kept[(at + 32) & 255], c += kept[(at + 64) & 255], d += kept[(at + 96) & 255];
        e += kept[(at + 128) & 255], f += kept[(at + 160) & 255], g += kept[(at + 192) & 255], h += kept[(at + 224) & 255];
    }
    limit_store(((a + b) + (c + d)) + ((e + f) + (g + h)), get_global_id(0), y);
}

/* One work-item. */
kernel void limit_count(global int *y) {
    y[0] += 1;
}
