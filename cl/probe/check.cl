/*
 * Does memory keep what is written to it, and is arithmetic right. All values are whole numbers that a
 * float holds exactly, so that every device must give the host's bits.
 */

/* What word `at` of buffer `buffer` is to hold: no two of 2^32 words are alike. */
uint check_word(ulong at, uint buffer, uint seed, uint flip) {
    return (((uint)at ^ seed) * 2654435761u + (uint)(at >> 32) * 40503u + buffer * 0x9e3779b9u) ^ flip;
}

/* Any number of work-items: each goes on by as many words as there are. */
kernel void check_write(global uint *x, ulong count, uint buffer, uint seed, uint flip) {
    for (ulong at = get_global_id(0); at < count; at += get_global_size(0)) x[at] = check_word(at, buffer, seed, flip);
}

/* found [items][4]: how many words were wrong; of the first its place, low and high word, and its value. */
kernel void check_read(global const uint *x, ulong count, uint buffer, uint seed, uint flip, global uint *found) {
    uint errors = 0, value = 0;
    ulong first = 0;
    for (ulong at = get_global_id(0); at < count; at += get_global_size(0)) {
        uint got = x[at];
        if (got == check_word(at, buffer, seed, flip)) continue;
        if (errors == 0) first = at, value = got;
        errors += errors < 0xffffffffu;
    }
    found += 4 * get_global_id(0);
    found[0] = errors;
    found[1] = (uint)first;
    found[2] = (uint)(first >> 32);
    found[3] = value;
}

/* y[i]: rounds of integer and single precision arithmetic. The product is below 2^24, and so is the sum. */
kernel void check_arithmetic(global uint *y, uint seed, int rounds) {
    uint i = get_global_id(0), a = i * 2654435761u ^ seed, b = a + 0x9e3779b9u, sum = 0;
    for (int r = 0; r < rounds; r++) {
        a = a * 1664525u + 1013904223u;
        b = mul_hi(a, b | 1u) ^ rotate(b, 7u);
        float f = (float)(a & 0xfffu) * (float)(b & 0xfffu) + (float)(a >> 20);
        sum = rotate(sum, 3u) + ((uint)f ^ (b >> (a & 15u)));
    }
    y[i] = sum;
}
