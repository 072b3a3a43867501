/*
 * y[i] = x[i] scale where the random word of i is at least p 2^32, else 0; scale = 1/(1 - p).
 *
 * The words are those of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
 * element i has word i % 4 of the block with counter (i / 4, site, step low, step high) and key (seed low,
 * seed high), so that no mask is stored. One work-item a block of four elements.
 */

/* rng [4]: seed low and high, step low and high. */
kernel void ref_dropout(global const CLT_REAL *x, global const int *rng, global CLT_REAL *y, int count, int site, float p,
                        float scale) {
    int block = get_global_id(0), i = block * 4;
    if (i >= count) return;
    uint4 counter = (uint4)(block, site, rng[2], rng[3]);
    uint4 words = clt_philox(counter, (uint2)(rng[0], rng[1]));
    uint threshold = (uint)(p * 4294967296.0f);
    CLT_STORE(y, i, words.s0 >= threshold ? CLT_LOAD(x, i) * scale : 0.0f);
    if (i + 1 < count) CLT_STORE(y, i + 1, words.s1 >= threshold ? CLT_LOAD(x, i + 1) * scale : 0.0f);
    if (i + 2 < count) CLT_STORE(y, i + 2, words.s2 >= threshold ? CLT_LOAD(x, i + 2) * scale : 0.0f);
    if (i + 3 < count) CLT_STORE(y, i + 3, words.s3 >= threshold ? CLT_LOAD(x, i + 3) * scale : 0.0f);
}
