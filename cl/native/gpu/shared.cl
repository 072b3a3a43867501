/*
 * What the contractions for GPU-class devices share. In front of this text, a program of its own,
 * stand GPU_M, GPU_N, GPU_K (the work-group's tile), GPU_ITEMS (its work-items), GPU_FIXED_GROUP
 * (the attribute that says so to the compiler, or nothing) and GPU_CHANNEL(row, column), the channel of a
 * result, for epilogues: its row counts on through the batch.
 */
#ifndef GPU_UNROLL
#define GPU_UNROLL _Pragma("unroll")
#endif
#define GPU_UNROLL_4 _Pragma("unroll 4")

/* Sources and orders of operand.cl. */
#define GPU_LINEAR 0
#define GPU_GATHER 1
#define GPU_PAIRS  0
#define GPU_ROWS   1
#define GPU_FOURS  2
#define GPU_STEPS  3

/* So far outside that the sum of two is outside too, and no overflow. */
#define GPU_NOWHERE (-(1 << 30))

/*
 * The place of number i in a picture of pitch `pitch`: offset, h, w. With place = (sizes s0 s1, image
 * step s2, steps of h and w s3 s4, origin s5 s6): i is image, row and column of [.., s0, s1].
 */
static int4 gpu_place(int i, int8 place, int pitch) {
    int h = i / place.s1 % place.s0 * place.s3 + place.s5, w = i % place.s1 * place.s4 + place.s6;
    return (int4)(i / place.s1 / place.s0 * place.s2 + h * pitch + w, h, w, 0);
}

/*
 * Which tile of the result is the work-group's: row, column, then part (batch and split). Tiles
 * follow one another down bands of 8 rows of tiles: what runs at a time reads few rows and columns,
 * which stay in the second-level cache.
 */
static int4 gpu_tile(int group, int rows, int columns) {
    int part = group / (rows * columns), t = group % (rows * columns);
    int first = t / (8 * columns) * 8, height = min(rows - first, 8);
    t -= first * columns;
    return (int4)(first + t % height, t / height, part, 0);
}
