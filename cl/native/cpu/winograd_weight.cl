/*
 * The gradient of a 3 x 3 weight by Winograd's minimal filtering, F(3 x 3, 4 x 4): the patches' transform
 * V[point][tile][channel] is that of the forward pass, for the points are the same; tiles of 4 x 4 pixels of
 * dy become W[point][panel][tile][CPU_COLUMNS]; P sums V^T W over tiles, chunk by chunk, and becomes dweight.
 * P: [panel][block of channels][point][channel of the block][CPU_COLUMNS].
 */

/* Channels of a block of P, for CPU_ROWS, 4 and 2 at a time. */
#define CPU_WINOGRAD_GRAD_BLOCK  48
/* Channels of a block that one work-item makes to weights. */
#define CPU_WINOGRAD_GRAD_PART   8

/* G g, for 4 pixels. */
static void cpu_winograd_grad_g(const cpu_vector g[4], cpu_vector to[6]) {
    cpu_vector near = g[0] + CPU_WINOGRAD_NEAR2 * g[2], far = g[0] + CPU_WINOGRAD_FAR2 * g[2];
    cpu_vector near_odd = CPU_WINOGRAD_NEAR * (g[1] + CPU_WINOGRAD_NEAR2 * g[3]);
    cpu_vector far_odd = CPU_WINOGRAD_FAR * (g[1] + CPU_WINOGRAD_FAR2 * g[3]);
    to[0] = CPU_WINOGRAD_SCALE_ZERO * g[0];
    to[1] = CPU_WINOGRAD_SCALE_NEAR * (near + near_odd);
    to[2] = CPU_WINOGRAD_SCALE_NEAR * (near - near_odd);
    to[3] = CPU_WINOGRAD_SCALE_FAR * (far + far_odd);
    to[4] = CPU_WINOGRAD_SCALE_FAR * (far - far_odd);
    to[5] = g[3];
}

/* A^T m, for 3 results. */
static void cpu_winograd_grad_a(const cpu_vector m[6], cpu_vector to[3]) {
    cpu_vector near = m[1] + m[2], far = m[3] + m[4];
    to[0] = m[0] + near + far;
    to[1] = CPU_WINOGRAD_NEAR * (m[1] - m[2]) + CPU_WINOGRAD_FAR * (m[3] - m[4]);
    to[2] = CPU_WINOGRAD_NEAR2 * near + CPU_WINOGRAD_FAR2 * far + m[5];
}

/* Both sides of G dy G^T, of elements that LOAD(i, j) gives in rows where ROW(i); the others are 0. */
#define CPU_WINOGRAD_GRAD_INPUT(ROW, LOAD)                                                              \
    {                                                                                                   \
        cpu_vector t[4][6];                                                                             \
        _Pragma("unroll") for (int i = 0; i < 4; i++) {                                                 \
            cpu_vector g[4];                                                                            \
            _Pragma("unroll") for (int j = 0; j < 6; j++) t[i][j] = (cpu_vector)(0);                    \
            if (!(ROW(i))) continue;                                                                    \
            _Pragma("unroll") for (int j = 0; j < 4; j++) g[j] = LOAD(i, j);                            \
            cpu_winograd_grad_g(g, t[i]);                                                               \
        }                                                                                               \
        _Pragma("unroll") for (int j = 0; j < 6; j++) {                                                 \
            cpu_vector g[4], column[6];                                                                 \
            _Pragma("unroll") for (int i = 0; i < 4; i++) g[i] = t[i][j];                               \
            cpu_winograd_grad_g(g, column);                                                             \
            _Pragma("unroll") for (int i = 0; i < 6;                                                    \
                                   i++)((global cpu_unaligned *)(to + (6 * i + j) * step))              \
                ->vector = column[i];                                                                   \
        }                                                                                               \
    }

#define CPU_WINOGRAD_GRAD_ALL(i)       true
#define CPU_WINOGRAD_GRAD_INSIDE(i)    ((i) < down)
#define CPU_WINOGRAD_GRAD_MASKED(i, j) cpu_winograd_get(from + (i)*row + beside[j], mask[j])
#define CPU_WINOGRAD_GRAD_PATCH(i, j)  patch[4 * (i) + (j)]

/*
 * W = G dy G^T of a chunk, zero past the last channel. image: height, width, channels of dy; chunk: tiles of
 * an image down and across, the first tile, their number; step: elements of W from point to point. A
 * work-item, one tile.
 */
CLT_ITEM void cpu_winograd_grad_input_item(int tile, global const float *dy, global float *w, int4 image,
                                           int4 chunk, int step) {
    int row = image.s1 * image.s2;
    if (tile >= chunk.s3) return;
    cpu_winograd_place at = cpu_winograd_find(chunk.s2 + tile, chunk.s01);
    int down = image.s0 - at.h, across = image.s1 - at.w, beside[4], mask[4];
    dy += ((at.n * image.s0 + at.h) * image.s1 + at.w) * image.s2;
    _Pragma("unroll") for (int j = 0; j < 4; j++) {
        beside[j] = min(j, across - 1) * image.s2;
        mask[j] = j < across ? -1 : 0;
    }
    int columns = (image.s2 + CPU_COLUMNS - 1) / CPU_COLUMNS * CPU_COLUMNS;
    for (int c = 0; c < columns; c += CPU_WIDTH) {
        global const float *from = dy + c;
        global float *to = w + (c / CPU_COLUMNS * chunk.s3 + tile) * CPU_COLUMNS + c % CPU_COLUMNS;
        if (c + CPU_WIDTH > image.s2) {
            cpu_vector patch[16];
            for (int i = 0; i < 16; i++)
                patch[i] = i / 4 < down ? cpu_winograd_get_some(from + i / 4 * row + beside[i % 4],
                                                                image.s2 - c, mask[i % 4])
                                        : (cpu_vector)(0);
            CPU_WINOGRAD_GRAD_INPUT(CPU_WINOGRAD_GRAD_ALL, CPU_WINOGRAD_GRAD_PATCH)
        } else CPU_WINOGRAD_GRAD_INPUT(CPU_WINOGRAD_GRAD_INSIDE, CPU_WINOGRAD_GRAD_MASKED)
    }
}
kernel void cpu_winograd_grad_input(global const float *dy, global float *w, int4 image, int4 chunk,
                                    int step) {
    cpu_winograd_grad_input_item(get_global_id(0), dy, w, image, chunk, step);
}

/* p[i, j] (+)= sum over tiles of v[tile, i] w[tile, j] for ROWS channels i. */
#define CPU_WINOGRAD_GRAD_ROWS(ROWS)                                                                    \
    static void CPU_PASTE(cpu_winograd_grad_rows_, ROWS)(global const float *v, int v_step,             \
                                                         global const float *w, int tiles,              \
                                                         global float *p, bool add) {                   \
        cpu_vector sum[ROWS][2];                                                                        \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            sum[i][0] = add ? cpu_load(2 * i, p) : (cpu_vector)(0);                                     \
            sum[i][1] = add ? cpu_load(2 * i + 1, p) : (cpu_vector)(0);                                 \
        }                                                                                               \
        for (int tile = 0; tile < tiles; tile++) {                                                      \
            cpu_vector left = cpu_load(0, w), right = cpu_load(1, w);                                   \
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                          \
                cpu_vector broadcast = (cpu_vector)(v[i]);                                              \
                sum[i][0] = broadcast * left + sum[i][0];                                               \
                sum[i][1] = broadcast * right + sum[i][1];                                              \
            }                                                                                           \
            v += v_step;                                                                                \
            w += CPU_COLUMNS;                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            cpu_store(sum[i][0], 2 * i, p);                                                             \
            cpu_store(sum[i][1], 2 * i + 1, p);                                                         \
        }                                                                                               \
    }
CPU_WINOGRAD_GRAD_ROWS(CPU_ROWS)
CPU_WINOGRAD_GRAD_ROWS(4)
CPU_WINOGRAD_GRAD_ROWS(2)

/*
 * P[point] (+)= V[point]^T W[point] over a chunk. sizes: tiles, channels of V, which are whole vectors,
 * panels, elements from point to point in V and in W, 1 if to be added to what is there. A work-item, one
 * block of one panel of one point.
 */
CLT_ITEM void cpu_winograd_grad_product_item(int item, global const float *v, global const float *w,
                                             global float *p, int8 sizes) {
    int channels = sizes.s1, panels = sizes.s2, tiles = sizes.s0;
    int blocks = (channels + CPU_WINOGRAD_GRAD_BLOCK - 1) / CPU_WINOGRAD_GRAD_BLOCK;
    int panel = item % panels, block = item / panels % blocks;
    int point = item / panels / blocks;
    if (point >= CPU_WINOGRAD_POINTS) return;
    int count = min(CPU_WINOGRAD_GRAD_BLOCK, channels - block * CPU_WINOGRAD_GRAD_BLOCK), c = 0;
    bool add = sizes.s5;
    v += point * sizes.s3 + block * CPU_WINOGRAD_GRAD_BLOCK;
    w += point * sizes.s4 + panel * tiles * CPU_COLUMNS;
    p += ((panel * blocks + block) * CPU_WINOGRAD_POINTS + point) * CPU_WINOGRAD_GRAD_BLOCK *
         CPU_COLUMNS;
    for (; c + CPU_ROWS <= count; c += CPU_ROWS)
        CPU_PASTE(cpu_winograd_grad_rows_, CPU_ROWS)
        (v + c, channels, w, tiles, p + c * CPU_COLUMNS, add);
    for (; c + 4 <= count; c += 4)
        cpu_winograd_grad_rows_4(v + c, channels, w, tiles, p + c * CPU_COLUMNS, add);
    for (; c + 2 <= count; c += 2)
        cpu_winograd_grad_rows_2(v + c, channels, w, tiles, p + c * CPU_COLUMNS, add);
}
kernel void cpu_winograd_grad_product(global const float *v, global const float *w, global float *p,
                                      int8 sizes) {
    cpu_winograd_grad_product_item(get_global_id(0), v, w, p, sizes);
}

/* Stores 9 taps of `there` results, tap by tap in CPU_COLUMNS, to results that are `step` apart. */
static void cpu_winograd_grad_put(const float *taps, int there, global float *to, int step) {
    int j = 0;
    for (; j + 8 <= there; j += 8) {
        float8 r[8];
        _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] = vload8(0, taps + i * CPU_COLUMNS + j);
        cpu_transpose(r);
        _Pragma("unroll") for (int i = 0; i < 8; i++) {
            vstore8(r[i], 0, to + (j + i) * step);
            to[(j + i) * step + 8] = taps[8 * CPU_COLUMNS + j + i];
        }
    }
    for (; j < there; j++)
        for (int i = 0; i < 9; i++) to[j * step + i] = taps[i * CPU_COLUMNS + j];
}

/*
 * dweight[result][channel] = A^T P A. sizes: results, channels. A work-item, CPU_WINOGRAD_GRAD_PART channels of
 * one panel.
 */
CLT_ITEM void cpu_winograd_grad_output_item(int item, global const float *p, global float *dweight,
                                            int2 sizes) {
    int blocks = (sizes.s1 + CPU_WINOGRAD_GRAD_BLOCK - 1) / CPU_WINOGRAD_GRAD_BLOCK;
    int parts = (sizes.s1 + CPU_WINOGRAD_GRAD_PART - 1) / CPU_WINOGRAD_GRAD_PART;
    int c = item % parts * CPU_WINOGRAD_GRAD_PART,
        column = item / parts * CPU_COLUMNS;
    if (column >= sizes.s0) return;
    int end = min(c + CPU_WINOGRAD_GRAD_PART, sizes.s1), block = c / CPU_WINOGRAD_GRAD_BLOCK;
    p += (item / parts * blocks + block) * CPU_WINOGRAD_POINTS * CPU_WINOGRAD_GRAD_BLOCK *
         CPU_COLUMNS;
    for (; c < end; c++) {
        global const float *from = p + (c - block * CPU_WINOGRAD_GRAD_BLOCK) * CPU_COLUMNS;
        float taps[9 * CPU_COLUMNS];
        for (int half_panel = 0; half_panel < 2; half_panel++) {
            cpu_vector t[6][3], m[6], out[3];
            _Pragma("unroll") for (int i = 0; i < 6; i++) {
                _Pragma("unroll") for (int j = 0; j < 6; j++) m[j] =
                    cpu_load(half_panel, from + (6 * i + j) * CPU_WINOGRAD_GRAD_BLOCK * CPU_COLUMNS);
                cpu_winograd_grad_a(m, t[i]);
            }
            _Pragma("unroll") for (int j = 0; j < 3; j++) {
                _Pragma("unroll") for (int i = 0; i < 6; i++) m[i] = t[i][j];
                cpu_winograd_grad_a(m, out);
                _Pragma("unroll") for (int i = 0; i < 3; i++)
                    cpu_store(out[i], 2 * (3 * i + j) + half_panel, taps);
            }
        }
        cpu_winograd_grad_put(taps, min(sizes.s0 - column, CPU_COLUMNS),
                              dweight + (column * sizes.s1 + c) * 9, sizes.s1 * 9);
    }
}
kernel void cpu_winograd_grad_output(global const float *p, global float *dweight, int2 sizes) {
    cpu_winograd_grad_output_item(get_global_id(0), p, dweight, sizes);
}
