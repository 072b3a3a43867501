/*
 * What the kernels of scaled dot-product attention share, each in front of its own text.
 *
 * size: N * heads, key_heads, t, s, d, heads. Head h of queries belongs to head h / (heads / key_heads) of keys. A query sees all keys, or those up
 * to its own place: `places` 1, its row; 2, what position_ids [N, t] say. A mask with strides is added, `masked` 1, or of bytes, 2, of which 0 hides.
 * Dropout of `dropout` 0 is none; rng as in dropout.cl. Rows of queries are counted over all of N and their heads.
 */

/* The first row of keys of a head of queries, counted over all of N. */
static int attention_keys(int head, int8 size) {
    int heads = size.s5, group = heads / size.s1;
    return (head / heads * size.s1 + head % heads / group) * size.s3;
}

/* How many keys a row of queries sees. */
static int attention_seen(int row, int8 size, int places, global const int *position_ids) {
    int t = size.s2, place = places == 2 ? position_ids[row / t / size.s5 * t + row % t] : row % t;
    return places ? clamp(place, -1, size.s3 - 1) + 1 : size.s3;
}

/* The score of a row and key j, scale times its product, with what the mask says of them. */
static float attention_score(float score, global const float *mask, int masked, int4 strides, int row, int j, int8 size) {
    int t = size.s2, head = row / t, at = head / size.s5 * strides.s0 + head % size.s5 * strides.s1 + row % t * strides.s2 + j * strides.s3;
    if (masked == 2) return ((global const uchar *)mask)[at] ? score : -INFINITY;
    return masked ? score + mask[at] : score;
}

/* What dropout makes of 1 for a row and key j. */
static float attention_kept(global const int *rng, int site, float dropout, int row, int j, int8 size) {
    if (dropout == 0) return 1;
    uint2 seed = (uint2)(rng[0], rng[1]), key = clt_philox((uint4)(rng[2], rng[3], site, 0), seed).lo;
    uint words[4];
    vstore4(clt_philox((uint4)(j / 4, row % size.s2, row / size.s2, 0), key), 0, words);
    return words[j % 4] >= (uint)(dropout * 4294967296.0f) ? 1 / (1 - dropout) : 0.0f;
}
