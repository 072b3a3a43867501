/* What Winograd's kernels share, in front of their texts. */
#ifndef CPU_WINOGRAD_POINTS
#define CPU_WINOGRAD_POINTS 36

/* The points are 0, +-CPU_WINOGRAD_NEAR, +-CPU_WINOGRAD_FAR and infinity: of those whose squares are exact, the ones that
 * lose fewest digits, half of what 0, +-1, +-2 do. */
#define CPU_WINOGRAD_NEAR 0.625f
#define CPU_WINOGRAD_FAR  1.5f
/* Their squares, and 1 / product(point - other points): what G is divided by. */
#define CPU_WINOGRAD_NEAR2      (CPU_WINOGRAD_NEAR * CPU_WINOGRAD_NEAR)
#define CPU_WINOGRAD_FAR2       (CPU_WINOGRAD_FAR * CPU_WINOGRAD_FAR)
#define CPU_WINOGRAD_SCALE_ZERO (1.0f / (CPU_WINOGRAD_NEAR2 * CPU_WINOGRAD_FAR2))
#define CPU_WINOGRAD_SCALE_NEAR (1.0f / (2 * CPU_WINOGRAD_NEAR2 * (CPU_WINOGRAD_NEAR2 - CPU_WINOGRAD_FAR2)))
#define CPU_WINOGRAD_SCALE_FAR  (1.0f / (2 * CPU_WINOGRAD_FAR2 * (CPU_WINOGRAD_FAR2 - CPU_WINOGRAD_NEAR2)))

/* A vector anywhere in memory, as one access where vload is made of several. */
typedef struct __attribute__((packed)) cpu_unaligned {
    cpu_vector vector;
} cpu_unaligned;

/* A vector, or zeros where the mask is 0. */
static cpu_vector cpu_winograd_get(global const float *from, int mask) {
    CPU_PASTE(int, CPU_WIDTH)
    bits = CPU_PASTE(as_int, CPU_WIDTH)(((global const cpu_unaligned *)from)->vector);
    return CPU_PASTE(as_float, CPU_WIDTH)(bits & mask);
}

/* Likewise, but of `count` elements. */
static cpu_vector cpu_winograd_get_some(global const float *from, int count, int mask) {
    float values[CPU_WIDTH];
    for (int j = 0; j < CPU_WIDTH; j++) values[j] = j < count && mask ? from[j] : 0;
    return cpu_load(0, values);
}

/* Where a patch or a tile is. */
typedef struct cpu_winograd_place {
    int n, h, w; /* its first pixel, which may be outside of the image */
} cpu_winograd_place;

/* tiles: of an image, down and across. */
static cpu_winograd_place cpu_winograd_find(int tile, int2 tiles) {
    cpu_winograd_place at;
    at.w = tile % tiles.s1 * 4;
    at.h = tile / tiles.s1 % tiles.s0 * 4;
    at.n = tile / tiles.s1 / tiles.s0;
    return at;
}

#endif
