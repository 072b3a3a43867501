/* y[i] = value[i] for i < count <= 16: small states set by a launch, with no transfer. */
kernel void ref_set_words(global uint *y, uint16 value, int count) {
    uint words[16];
    vstore16(value, 0, words);
    if (get_global_id(0) == 0)
        for (int i = 0; i < count; i++) y[i] = words[i];
}
