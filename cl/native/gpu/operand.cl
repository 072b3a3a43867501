/*
 * One operand of a contraction on its way from global memory through registers into local memory.
 *
 * This text is a template: it is taken in twice, for the sides a and b, with these defined in front
 * (and forgotten at its end):
 *
 *   SIDE         a or b: names begin with gpu_a_ or gpu_b_
 *   SIDE_TILE    rows of the operand's tile (for b: columns of the result)
 *   SIDE_SOURCE  how an element is found: GPU_LINEAR, row row_step + k k_step; or GPU_GATHER, by the
 *                places of its row and of its k, which add up, and zero outside the source's bounds
 *   SIDE_ORDER   which four elements a work-item loads at once (a slot), and which slots neighbours
 *                have; chosen so that neighbours read neighbours:
 *                  GPU_PAIRS  a row, 4 k; two lanes go on along k, the next along the rows
 *                  GPU_ROWS   a row, 4 k; lanes along the rows
 *                  GPU_FOURS  4 rows, one k; lanes along the rows
 *                  GPU_STEPS  4 rows a quarter of the tile apart, one k; lanes along k
 *   SIDE_VECTOR  1: the four lie side by side and aligned: one load
 */
#define SIDE_PASTE_(a, b) gpu_##a##_##b
#define SIDE_PASTE(a, b)  SIDE_PASTE_(a, b)
#define SIDE_(name)       SIDE_PASTE(SIDE, name)
#define SIDE_SLOTS        (SIDE_TILE * GPU_K / 4 / GPU_ITEMS)
#if SIDE_ORDER == GPU_STEPS
#define SIDE_OWN 4 /* rows that a slot has */
#else
#define SIDE_OWN 1
#endif

/* The places of a work-item's rows; h is GPU_NOWHERE for a row past the last. */
typedef struct SIDE_(rows) {
    int offset[SIDE_SLOTS * SIDE_OWN], h[SIDE_SLOTS * SIDE_OWN], w[SIDE_SLOTS * SIDE_OWN];
} SIDE_(rows);

/* The first row of a slot, and its first k, in the tile. */
static int2 SIDE_(slot)(int slot) {
#if SIDE_ORDER == GPU_PAIRS
    return (int2)(slot / 2 % SIDE_TILE, (slot / 2 / SIDE_TILE * 2 + slot % 2) * 4);
#elif SIDE_ORDER == GPU_ROWS
    return (int2)(slot % SIDE_TILE, slot / SIDE_TILE * 4);
#elif SIDE_ORDER == GPU_FOURS
    return (int2)(slot % (SIDE_TILE / 4) * 4, slot / (SIDE_TILE / 4));
#else
    return (int2)(slot / GPU_K, slot % GPU_K);
#endif
}

/* first: the tile's first row; count: the operand's rows. */
static void SIDE_(begin)(SIDE_(rows) * rows, int item, int first, int count, int8 place, int pitch) {
    GPU_UNROLL for (int s = 0; s < SIDE_SLOTS; s++) GPU_UNROLL for (int j = 0; j < SIDE_OWN; j++) {
        int row = first + SIDE_(slot)(item + s * GPU_ITEMS).s0 + j * (SIDE_TILE / 4);
#if SIDE_SOURCE == GPU_GATHER
        int4 at = row < count ? gpu_place(row, place, pitch) : (int4)(0, GPU_NOWHERE, 0, 0);
#else
        int4 at = row < count ? (int4)(row * place.s2, 0, 0, 0) : (int4)(0, GPU_NOWHERE, 0, 0);
#endif
        rows->offset[s * SIDE_OWN + j] = at.s0;
        rows->h[s * SIDE_OWN + j] = at.s1;
        rows->w[s * SIDE_OWN + j] = at.s2;
    }
}

/* Where element (own row i of the work-item, k of the tile) is; negative: nowhere, its value is 0. */
static int SIDE_(at)(const SIDE_(rows) * rows, int i, local const int4 *table, int k, int first,
                     int end, int step, int2 bounds) {
#if SIDE_SOURCE == GPU_GATHER
    int4 place = table[k];
    bool there = (uint)(rows->h[i] + place.s1) < (uint)bounds.s0 &&
                 (uint)(rows->w[i] + place.s2) < (uint)bounds.s1;
    return there ? rows->offset[i] + place.s0 : -1;
#else
    return rows->h[i] == 0 && first + k < end ? rows->offset[i] + (first + k) * step : -1;
#endif
}

/* The next tile, whose first k is `first`, into registers. */
static void SIDE_(load)(const SIDE_(rows) * rows, global const CLT_REAL *from, local const int4 *table,
                        int item, int first, int end, int step, int2 bounds, float4 *values) {
    GPU_UNROLL for (int s = 0; s < SIDE_SLOTS; s++) {
        int k = SIDE_(slot)(item + s * GPU_ITEMS).s1;
#if SIDE_VECTOR
        int at = SIDE_(at)(rows, s, table, k, first, end, step, bounds);
        values[s] = at < 0 ? (float4)(0) : GPU_LOAD_FOUR(from, at);
#else
        int at[4];
        GPU_UNROLL for (int j = 0; j < 4; j++) at[j] =
            SIDE_ORDER == GPU_STEPS
                ? SIDE_(at)(rows, s * SIDE_OWN + j % SIDE_OWN, table, k, first, end, step, bounds)
                : SIDE_(at)(rows, s * SIDE_OWN, table, k + j, first, end, step, bounds);
        values[s] = (float4)(at[0] < 0 ? 0 : CLT_LOAD(from, at[0]), at[1] < 0 ? 0 : CLT_LOAD(from, at[1]),
                             at[2] < 0 ? 0 : CLT_LOAD(from, at[2]), at[3] < 0 ? 0 : CLT_LOAD(from, at[3]));
#endif
    }
}

/* The registers into the tile in local memory; its layout is the kernel's (GPU_PUT…). */
static void SIDE_(store)(local GPU_WORD *tile, int item, const float4 *values) {
    GPU_UNROLL for (int s = 0; s < SIDE_SLOTS; s++) {
        int2 at = SIDE_(slot)(item + s * GPU_ITEMS);
#if SIDE_ORDER == GPU_FOURS
        GPU_PUT_ROWS(tile, SIDE_TILE, at.s0, at.s1, values[s]);
#elif SIDE_ORDER == GPU_STEPS
        GPU_PUT_APART(tile, SIDE_TILE, at.s0, at.s1, values[s]);
#else
        GPU_PUT_STEPS(tile, SIDE_TILE, at.s0, at.s1, values[s]);
#endif
    }
}

/* The places of the k of a tile, by some of the work-items. */
static void SIDE_(find)(local int4 *table, int item, int first, int end, int8 place, int pitch) {
#if SIDE_SOURCE == GPU_GATHER
    for (int k = item; k < GPU_K; k += GPU_ITEMS)
        table[k] = first + k < end ? gpu_place(first + k, place, pitch) : (int4)(0, GPU_NOWHERE, 0, 0);
#endif
}

#undef SIDE
#undef SIDE_TILE
#undef SIDE_SOURCE
#undef SIDE_ORDER
#undef SIDE_VECTOR
#undef SIDE_SLOTS
#undef SIDE_OWN
#undef SIDE_
#undef SIDE_PASTE
#undef SIDE_PASTE_
