/*
 * 3 x 3 convolution with stride 1 by Winograd's minimal filtering, F(4 x 4, 3 x 3) (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2016), for devices whose work-items are threads with vector registers. Images are
 * channels-last: a vector is so many channels, and transforms are vector code without shuffles.
 *
 * y's tiles of 4 x 4 pixels are taken a chunk at a time, so that what lies between the three steps stays
 * in the caches: patches of 6 x 6 of x become 36 matrices V[point][tile][channel], weights 36 matrices U,
 * 36 products V U are M[point][tile][result], which become y. A quarter of the direct sum's multiply-adds
 * are left.
 * Bound: those of the products, and the caches' bandwidth for V and M.
 */

/* Channels whose weights one work-item transforms to U: [panel of results][point][channel][CPU_COLUMNS]. */
#define CPU_WINOGRAD_BLOCK  16
/* Tiles that one work-item of the product goes over. */
#define CPU_WINOGRAD_RUN    96

/* B^T d, in place. */
static void cpu_winograd_b(cpu_vector d[6]) {
    const float both = CPU_WINOGRAD_NEAR2 + CPU_WINOGRAD_FAR2, product = CPU_WINOGRAD_NEAR2 * CPU_WINOGRAD_FAR2;
    cpu_vector near_even = d[4] - CPU_WINOGRAD_FAR2 * d[2], far_even = d[4] - CPU_WINOGRAD_NEAR2 * d[2];
    cpu_vector near_odd = CPU_WINOGRAD_NEAR * (d[3] - CPU_WINOGRAD_FAR2 * d[1]);
    cpu_vector far_odd = CPU_WINOGRAD_FAR * (d[3] - CPU_WINOGRAD_NEAR2 * d[1]);
    cpu_vector first = product * d[0] - both * d[2] + d[4], last = product * d[1] - both * d[3] + d[5];
    d[0] = first;
    d[1] = near_even + near_odd;
    d[2] = near_even - near_odd;
    d[3] = far_even + far_odd;
    d[4] = far_even - far_odd;
    d[5] = last;
}

/* G g. */
static void cpu_winograd_g(const cpu_vector g[3], cpu_vector to[6]) {
    cpu_vector near = g[0] + CPU_WINOGRAD_NEAR2 * g[2], far = g[0] + CPU_WINOGRAD_FAR2 * g[2];
    cpu_vector near_odd = CPU_WINOGRAD_NEAR * g[1], far_odd = CPU_WINOGRAD_FAR * g[1];
    to[0] = CPU_WINOGRAD_SCALE_ZERO * g[0];
    to[1] = CPU_WINOGRAD_SCALE_NEAR * (near + near_odd);
    to[2] = CPU_WINOGRAD_SCALE_NEAR * (near - near_odd);
    to[3] = CPU_WINOGRAD_SCALE_FAR * (far + far_odd);
    to[4] = CPU_WINOGRAD_SCALE_FAR * (far - far_odd);
    to[5] = g[2];
}

/* A^T m. */
static void cpu_winograd_a(const cpu_vector m[6], cpu_vector to[4]) {
    cpu_vector near = m[1] + m[2], far = m[3] + m[4];
    cpu_vector near_odd = CPU_WINOGRAD_NEAR * (m[1] - m[2]), far_odd = CPU_WINOGRAD_FAR * (m[3] - m[4]);
    to[0] = m[0] + near + far;
    to[1] = near_odd + far_odd;
    to[2] = CPU_WINOGRAD_NEAR2 * near + CPU_WINOGRAD_FAR2 * far;
    to[3] = CPU_WINOGRAD_NEAR2 * near_odd + CPU_WINOGRAD_FAR2 * far_odd + m[5];
}

/* Both sides of B^T d B, of elements that LOAD(i, j) gives in rows where ROW(i); the others are 0. */
#define CPU_WINOGRAD_INPUT(ROW, LOAD)                                                                   \
    {                                                                                                   \
        cpu_vector t[6][6];                                                                             \
        _Pragma("unroll") for (int i = 0; i < 6; i++) {                                                 \
            _Pragma("unroll") for (int j = 0; j < 6; j++) t[i][j] = (cpu_vector)(0);                    \
            if (!(ROW(i))) continue;                                                                    \
            _Pragma("unroll") for (int j = 0; j < 6; j++) t[i][j] = LOAD(i, j);                         \
            cpu_winograd_b(t[i]);                                                                       \
        }                                                                                               \
        _Pragma("unroll") for (int j = 0; j < 6; j++) {                                                 \
            cpu_vector d[6];                                                                            \
            _Pragma("unroll") for (int i = 0; i < 6; i++) d[i] = t[i][j];                               \
            cpu_winograd_b(d);                                                                          \
            _Pragma("unroll") for (int i = 0; i < 6;                                                    \
                                   i++)((global cpu_unaligned *)(to + (6 * i + j) * step))              \
                ->vector = d[i];                                                                        \
        }                                                                                               \
    }

#define CPU_WINOGRAD_ALL(i)       true
#define CPU_WINOGRAD_WHOLE(i, j)  cpu_winograd_get(from + (i)*row + (j)*image.s2, -1)
#define CPU_WINOGRAD_INSIDE(i)    ((uint)(at.h + (i)) < (uint)image.s0)
#define CPU_WINOGRAD_MASKED(i, j) cpu_winograd_get(from + (i)*row + beside[j], mask[j])
#define CPU_WINOGRAD_PATCH(i, j)  patch[6 * (i) + (j)]

/*
 * V[point][tile][channel] of the chunk, channels rounded up to whole vectors with zeros.
 * image: height, width, channels of x, channels of V; chunk: tiles of an image down and across, the first tile,
 * their number; plan: padding down and across, elements of V from point to point. A work-item, one tile.
 */
CLT_ITEM void cpu_winograd_input_item(int tile, global const float *x, global float *v, int4 image,
                                      int4 chunk, int4 plan) {
    int step = plan.s2, row = image.s1 * image.s2;
    if (tile >= chunk.s3) return;
    cpu_winograd_place at = cpu_winograd_find(chunk.s2 + tile, chunk.s01);
    at.h -= plan.s0;
    at.w -= plan.s1;
    x += ((at.n * image.s0 + at.h) * image.s1 + at.w) * image.s2;
    v += tile * image.s3;
    bool inside = at.h >= 0 && at.w >= 0 && at.h + 6 <= image.s0 && at.w + 6 <= image.s1;
    int beside[6], mask[6]; /* pixels outside are read from the nearest, and cleared */
    _Pragma("unroll") for (int j = 0; j < 6; j++) {
        int w = clamp(at.w + j, 0, image.s1 - 1);
        beside[j] = (w - at.w) * image.s2;
        mask[j] = w == at.w + j ? -1 : 0;
    }
    for (int c = 0; c < image.s3; c += CPU_WIDTH) {
        global const float *from = x + c;
        global float *to = v + c;
        if (c + CPU_WIDTH > image.s2) {
            cpu_vector patch[36];
            for (int i = 0; i < 36; i++)
                patch[i] = CPU_WINOGRAD_INSIDE(i / 6)
                               ? cpu_winograd_get_some(from + i / 6 * row + beside[i % 6], image.s2 - c,
                                                       mask[i % 6])
                               : (cpu_vector)(0);
            CPU_WINOGRAD_INPUT(CPU_WINOGRAD_ALL, CPU_WINOGRAD_PATCH)
        } else if (inside) CPU_WINOGRAD_INPUT(CPU_WINOGRAD_ALL, CPU_WINOGRAD_WHOLE)
        else CPU_WINOGRAD_INPUT(CPU_WINOGRAD_INSIDE, CPU_WINOGRAD_MASKED)
    }
}
kernel void cpu_winograd_input(global const float *x, global float *v, int4 image, int4 chunk, int4 plan) {
    cpu_winograd_input_item(get_global_id(0), x, v, image, chunk, plan);
}

/* Puts 9 taps of CPU_COLUMNS results side by side, tap by tap; flipped: the last tap first. */
static void cpu_winograd_taps(global const float *from, int step, int there, bool flipped, float *to) {
    int last = flipped ? 8 : 0, sign = flipped ? -1 : 1, j = 0;
    for (; j + 8 <= there; j += 8) {
        float8 r[8];
        _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] = vload8(0, from + (j + i) * step);
        cpu_transpose(r);
        _Pragma("unroll") for (int i = 0; i < 8; i++)
            vstore8(r[i], 0, to + (last + sign * i) * CPU_COLUMNS + j);
        for (int i = 0; i < 8; i++) to[(8 - last) * CPU_COLUMNS + j + i] = from[(j + i) * step + 8];
    }
    for (; j < CPU_COLUMNS; j++)
        for (int i = 0; i < 9; i++)
            to[(last + sign * i) * CPU_COLUMNS + j] = j < there ? from[j * step + i] : 0;
}

/*
 * U = G g G^T. sizes: results, channels, strides of them in the weight, 1 if its taps are to be flipped. A
 * work-item, one block of one panel.
 */
CLT_ITEM void cpu_winograd_weight_item(int item, global const float *weight, global float *u, int8 sizes) {
    int panels = (sizes.s0 + CPU_COLUMNS - 1) / CPU_COLUMNS;
    int blocks = (sizes.s1 + CPU_WINOGRAD_BLOCK - 1) / CPU_WINOGRAD_BLOCK;
    if (item >= panels * blocks) return;
    int block = item % blocks, column = item / blocks * CPU_COLUMNS,
        there = min(sizes.s0 - column, CPU_COLUMNS);
    int count = min(CPU_WINOGRAD_BLOCK, sizes.s1 - block * CPU_WINOGRAD_BLOCK);
    weight += column * sizes.s2 + block * CPU_WINOGRAD_BLOCK * sizes.s3;
    int point_step = sizes.s1 * CPU_COLUMNS;
    u += item / blocks * CPU_WINOGRAD_POINTS * point_step + block * CPU_WINOGRAD_BLOCK * CPU_COLUMNS;
    float taps[9 * CPU_COLUMNS];
    for (int c = 0; c < count; c++) {
        cpu_winograd_taps(weight + c * sizes.s3, sizes.s2, there, sizes.s4, taps);
        for (int half_panel = 0; half_panel < 2; half_panel++) {
            cpu_vector t[3][6], g[3], out[6];
            _Pragma("unroll") for (int j = 0; j < 3; j++) {
                _Pragma("unroll") for (int i = 0; i < 3; i++) g[i] =
                    cpu_load(2 * (3 * i + j) + half_panel, taps);
                cpu_winograd_g(g, t[j]);
            }
            global float *to = u + c * CPU_COLUMNS;
            _Pragma("unroll") for (int i = 0; i < 6; i++) {
                _Pragma("unroll") for (int j = 0; j < 3; j++) g[j] = t[j][i];
                cpu_winograd_g(g, out);
                _Pragma("unroll") for (int j = 0; j < 6; j++)
                    cpu_store(out[j], half_panel, to + (6 * i + j) * point_step);
            }
        }
    }
}
kernel void cpu_winograd_weight(global const float *weight, global float *u, int8 sizes) {
    cpu_winograd_weight_item(get_global_id(0), weight, u, sizes);
}

/* m[row, column] = sum over channels of v and u for `there` rows, at most ROWS, of CPU_COLUMNS columns. */
#define CPU_WINOGRAD_ROWS_OF(ROWS)                                                                      \
    static void CPU_PASTE(cpu_winograd_rows_, ROWS)(global const float *v, int v_step, int there,       \
                                                    global const float *u, int channels,                \
                                                    global float *m, int m_step) {                      \
        global const float *from[ROWS]; /* rows past the last are the last again */                     \
        cpu_vector sum[ROWS][2];                                                                        \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            from[i] = v + min(i, there - 1) * v_step;                                                   \
            sum[i][0] = sum[i][1] = (cpu_vector)(0);                                                    \
        }                                                                                               \
        for (long k = 0; k < channels; k++) {                                                           \
            cpu_vector left = cpu_load(2 * k, u), right = cpu_load(2 * k + 1, u);                       \
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                          \
                cpu_vector broadcast = (cpu_vector)(from[i][k]);                                        \
                sum[i][0] = broadcast * left + sum[i][0];                                               \
                sum[i][1] = broadcast * right + sum[i][1];                                              \
            }                                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            if (i >= there) continue;                                                                   \
            cpu_store(sum[i][0], 0, m + i * m_step);                                                    \
            cpu_store(sum[i][1], 1, m + i * m_step);                                                    \
        }                                                                                               \
    }
CPU_WINOGRAD_ROWS_OF(CPU_ROWS)
CPU_WINOGRAD_ROWS_OF(4)

/*
 * M[point] = V[point] U[point]. sizes: tiles, channels, channels of V, panels, then elements from point to
 * point in V and in M. A work-item, CPU_WINOGRAD_RUN tiles of one panel of one point.
 */
CLT_ITEM void cpu_winograd_product_item(int item, global const float *v, global const float *u,
                                        global float *m, int8 sizes) {
    int runs = (sizes.s0 + CPU_WINOGRAD_RUN - 1) / CPU_WINOGRAD_RUN, panels = sizes.s3;
    int panel = item % panels, run = item / panels % runs,
        point = item / panels / runs;
    if (point >= CPU_WINOGRAD_POINTS) return;
    int v_step = sizes.s2, m_step = panels * CPU_COLUMNS, tile = run * CPU_WINOGRAD_RUN,
        end = min(tile + CPU_WINOGRAD_RUN, sizes.s0);
    u += (panel * CPU_WINOGRAD_POINTS + point) * sizes.s1 * CPU_COLUMNS;
    v += point * sizes.s4;
    m += point * sizes.s5 + panel * CPU_COLUMNS;
    for (; tile + CPU_ROWS <= end; tile += CPU_ROWS) CPU_PASTE(cpu_winograd_rows_, CPU_ROWS)
    (v + tile * v_step, v_step, CPU_ROWS, u, sizes.s1, m + tile * m_step, m_step);
    for (; tile < end; tile += 4)
        cpu_winograd_rows_4(v + tile * v_step, v_step, min(end - tile, 4), u, sizes.s1,
                            m + tile * m_step, m_step);
}
kernel void cpu_winograd_product(global const float *v, global const float *u, global float *m, int8 sizes) {
    cpu_winograd_product_item(get_global_id(0), v, u, m, sizes);
}

/* Results leave here: `value` is y's elements `at` and after, `count` of them if not the whole vector, of
 * the channels from `ch` on. */
static void cpu_winograd_put(global float *y, int at, int ch, int count,
                             cpu_vector value CLT_EPILOGUE_PARAMETERS) {
    value = cpu_epilogue(value, at, ch, count CLT_EPILOGUE_ARGUMENTS);
    if (count >= CPU_WIDTH) {
        ((global cpu_unaligned *)(y + at))->vector = value;
        return;
    }
    float values[CPU_WIDTH];
    cpu_store(value, 0, values);
    for (int j = 0; j < count; j++) y[at + j] = values[j];
}

/*
 * y = A^T M A. image: height, width, channels of y, channels of M; chunk: as above; step: elements of M from
 * point to point. A work-item, one tile.
 */
CLT_ITEM void cpu_winograd_output_item(int tile, global const float *m, global float *y, int4 image,
                                       int4 chunk, int step CLT_EPILOGUE_PARAMETERS) {
    if (tile >= chunk.s3) return;
    cpu_winograd_place at = cpu_winograd_find(chunk.s2 + tile, chunk.s01);
    int first = ((at.n * image.s0 + at.h) * image.s1 + at.w) * image.s2;
    int down = min(4, image.s0 - at.h), across = min(4, image.s1 - at.w);
    m += tile * image.s3;
    for (int c = 0; c < image.s2; c += CPU_WIDTH) {
        cpu_vector t[6][4], out[4][4];
        _Pragma("unroll") for (int i = 0; i < 6; i++) {
            cpu_vector row[6];
            _Pragma("unroll") for (int j = 0; j < 6; j++) row[j] =
                ((global const cpu_unaligned *)(m + (6 * i + j) * step + c))->vector;
            cpu_winograd_a(row, t[i]);
        }
        _Pragma("unroll") for (int j = 0; j < 4; j++) {
            cpu_vector column[6];
            _Pragma("unroll") for (int i = 0; i < 6; i++) column[i] = t[i][j];
            cpu_winograd_a(column, out[j]);
        }
        /* Not unrolled: an epilogue is long. */
        for (int j = 0; j < across; j++)
            for (int i = 0; i < down; i++)
                cpu_winograd_put(y, first + (i * image.s1 + j) * image.s2 + c, c, image.s2 - c,
                                 out[j][i] CLT_EPILOGUE_ARGUMENTS);
    }
}
kernel void cpu_winograd_output(global const float *m, global float *y, int4 image, int4 chunk,
                                int step CLT_EPILOGUE_PARAMETERS) {
    cpu_winograd_output_item(get_global_id(0), m, y, image, chunk, step CLT_EPILOGUE_ARGUMENTS);
}
