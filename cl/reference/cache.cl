/*
 * cache [N, heads, capacity, d], row position_ids[n, i] of each head = x [N, heads, t, d], row i. Places outside are none. count elements of x; size:
 * heads, t, capacity, d.
 */
kernel void ref_cache(global float *cache, global const float *x, global const int *position_ids, int count, int4 size) {
    int i = get_global_id(0), t = size.s1, d = size.s3;
    if (i >= count) return;
    int row = i / d, head = row / t, place = position_ids[head / size.s0 * t + row % t];
    if (place >= 0 && place < size.s2) cache[(head * size.s2 + place) * d + i % d] = x[i];
}
