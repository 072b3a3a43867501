/* y[i] = word i of a, b, c, d for i < count <= 16: small states are set by a launch, with no transfer. */
kernel void ref_set_words(global uint *y, uint4 a, uint4 b, uint4 c, uint4 d, int count) {
    uint words[16];
    vstore4(a, 0, words);
    vstore4(b, 1, words);
    vstore4(c, 2, words);
    vstore4(d, 3, words);
    if (get_global_id(0) == 0)
        for (int i = 0; i < count; i++) y[i] = words[i];
}
