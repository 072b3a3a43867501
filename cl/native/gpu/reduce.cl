/*
 * Sums, means and maxima of what lies side by side, for devices whose work-items are lanes: x [outer, kept, inner], y [kept]. A work-group has one of `kept`,
 * or a chunk of it, of which neighbouring work-items take neighbouring elements, GPU_VECTOR each; what they have is joined in local memory, in an order that
 * the shape alone tells. Bound: memory, once.
 *
 * In front: fours.cl, GPU_ITEMS, GPU_FIXED_GROUP, GPU_VECTOR, and GPU_LARGEST: 1 where it is the maximum, through which NaN goes, else 0.
 */
#if GPU_LARGEST
#define REDUCE_NONE          (-INFINITY)
#define REDUCE_JOINED(a, b)  clt_max(a, b)
#define REDUCE_ADD(all, x)   (all) = select(x, all, ((all) > (x)) | isnan(all))
#else
#define REDUCE_NONE          0
#define REDUCE_JOINED(a, b)  ((a) + (b))
#define REDUCE_ADD(all, x)   (all) += (x)
#endif
#if GPU_VECTOR == 4
#define REDUCE_PART(x) REDUCE_JOINED(REDUCE_JOINED((x).s0, (x).s1), REDUCE_JOINED((x).s2, (x).s3))
#else
#define REDUCE_PART(x) (x)
#endif

/* y[k, chunk] = scale times the sum, or maximum, of x[o, k, i] over o and i of the chunk. size: outer, kept, inner in parts of GPU_VECTOR, chunks, each of
 * `length` parts, counted by o and i. */
kernel GPU_FIXED_GROUP void gpu_reduce(global const CLT_REAL *x, global GPU_REAL *y, int4 size, int length, float scale) {
    local float scratch[GPU_ITEMS];
    int group = get_group_id(0), id = get_local_id(0), k = group / size.s3;
    int part = group % size.s3 * length, last = min(part + length, size.s0 * size.s2);
    GPU_PART all = REDUCE_NONE;
    part += id;
    int outer = part / size.s2, i = part % size.s2;
    for (; part < last; part += GPU_ITEMS) {
        GPU_PART value = GPU_LOAD_PART(x, ((outer * size.s1 + k) * size.s2 + i) * GPU_VECTOR);
        REDUCE_ADD(all, value);
        for (i += GPU_ITEMS; i >= size.s2; i -= size.s2) outer++;
    }
    scratch[id] = REDUCE_PART(all);
    for (int step = GPU_ITEMS / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < step) scratch[id] = REDUCE_JOINED(scratch[id], scratch[id + step]);
    }
    if (id == 0) GPU_STORE(y, group, scratch[0] * scale);
}
