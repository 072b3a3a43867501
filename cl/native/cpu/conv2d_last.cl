/*
 * Two-dimensional convolution and its gradients where images are channels-last, N, H, W, C: direct, on the
 * images as they lie. A register tile is CPU_ROWS pixels by CPU_COLUMNS channels of the result; a pixel that
 * a tap finds outside of the image is read from a row of zeros. In the gradient of the weight a tile is
 * channels by channels, and a tap's sum leaves pixels outside out.
 *
 * Weights are packed in the order in which they are used: [group][panel of CPU_COLUMNS results][block of
 * channels][tap][channel of the block][result], then CPU_CONV2D_LAST_BLOCK zeros. Bound: the fused
 * multiply-adds.
 */

/* Channels that a tap sums before the next tap's turn, at most: so many zeros are enough. */
#define CPU_CONV2D_LAST_BLOCK 128
/* Channels of a block that one work-item packs. */
#define CPU_CONV2D_LAST_PACK  16
/* Tiles that use one panel of weights in a row, and their pixels the next panel. */
#define CPU_CONV2D_LAST_TILES 16

/* One panel's weights of 8 results at a time: `run` neighbours of each, channel by channel, tap by tap. */
static void cpu_conv2d_last_transpose(global const float *from, int step, int there, int run, int taps,
                                      int count, global float *to) {
    int j = 0;
    for (; run >= 8 && j + 8 <= there; j += 8)
        for (int at = 0; at < run; at += 8) {
            int first = min(at, run - 8);
            float8 r[8];
            _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] =
                vload8(0, from + (j + i) * step + first);
            cpu_transpose(r);
            _Pragma("unroll") for (int i = 0; i < 8; i++) {
                int ch = (first + i) / taps, tap = (first + i) % taps;
                vstore8(r[i], 0, to + (tap * count + ch) * CPU_COLUMNS + j);
            }
        }
    for (int q = 0; q < run; q++)
        for (int k = j; k < there; k++)
            to[(q % taps * count + q / taps) * CPU_COLUMNS + k] = from[k * step + q];
}

/*
 * Packs weights as above. sizes: groups, results and channels of a group, taps of the height and of the
 * width; strides: of group, result, channel, tap of the height and of the width, then where to begin.
 * A work-item, CPU_CONV2D_LAST_PACK channels of one panel; one more writes the zeros.
 */
CLT_ITEM void cpu_conv2d_last_weight_item(int item, global const float *weight, global float *to,
                                          int8 sizes, int8 strides) {
    int results = sizes.s1, channels = sizes.s2, taps = sizes.s3 * sizes.s4;
    int panels = (results + CPU_COLUMNS - 1) / CPU_COLUMNS;
    int parts = (channels + CPU_CONV2D_LAST_PACK - 1) / CPU_CONV2D_LAST_PACK;
    int items = sizes.s0 * panels * parts;
    if (item > items) return;
    if (item == items) {
        to += sizes.s0 * panels * taps * channels * CPU_COLUMNS;
        for (int i = 0; i < CPU_CONV2D_LAST_BLOCK; i++) to[i] = 0;
        return;
    }
    int part = item % parts, panel = item / parts % panels, group = item / parts / panels;
    int first = panel * CPU_COLUMNS, there = min(results - first, CPU_COLUMNS);
    int c = part * CPU_CONV2D_LAST_PACK, start = c / CPU_CONV2D_LAST_BLOCK * CPU_CONV2D_LAST_BLOCK;
    int width = min(CPU_CONV2D_LAST_BLOCK, channels - start),
        count = min(CPU_CONV2D_LAST_PACK, channels - c);
    weight += strides.s5 + group * strides.s0 + first * strides.s1 + c * strides.s2;
    to += (((group * panels + panel) * channels + start) * taps + c - start) * CPU_COLUMNS;
    if (there < CPU_COLUMNS)
        for (int tap = 0; tap < taps; tap++)
            for (int i = 0; i < count * CPU_COLUMNS; i++) to[tap * width * CPU_COLUMNS + i] = 0;
    if (strides.s4 == 1 && strides.s3 == sizes.s4 && strides.s2 == taps) {
        cpu_conv2d_last_transpose(weight, strides.s1, there, count * taps, taps, width, to);
        return;
    }
    bool whole = there == CPU_COLUMNS && strides.s1 == 1;
    for (int tap = 0; tap < taps; tap++)
        for (int i = 0; i < count; i++) {
            global const float *from =
                weight + i * strides.s2 + tap / sizes.s4 * strides.s3 + tap % sizes.s4 * strides.s4;
            global float *row = to + (tap * width + i) * CPU_COLUMNS;
            if (whole) {
                cpu_store(cpu_load(0, from), 0, row);
                cpu_store(cpu_load(1, from), 1, row);
                continue;
            }
            for (int j = 0; j < there; j++) row[j] = from[j * strides.s1];
        }
}
kernel void cpu_conv2d_last_weight(global const float *weight, global float *to, int8 sizes, int8 strides) {
    cpu_conv2d_last_weight_item(get_global_id(0), weight, to, sizes, strides);
}

/* Results leave here: `value` is y's elements `at` and after, `count` of them if not the whole vector, of
 * the channels from `ch` on. */
static void cpu_conv2d_last_put(global float *y, int at, int ch, int count,
                                cpu_vector value CLT_EPILOGUE_PARAMETERS) {
    value = cpu_epilogue(value, at, ch, count CLT_EPILOGUE_ARGUMENTS);
    if (count >= CPU_WIDTH) {
        cpu_store(value, 0, y + at);
        return;
    }
    float values[CPU_WIDTH];
    cpu_store(value, 0, values);
    for (int j = 0; j < count; j++) y[at + j] = values[j];
}

/*
 * y[pixel, result] = sum over taps and channels of x and weights.
 * image: height, width and channels of x, channels of a group; window: where the first tap of the first
 * pixel is in x, steps from pixel to pixel and from tap to tap, number of taps, each down and across;
 * result: N, height and width of the pixels, groups, results of a group; target: in y, elements of an
 * image, the first pixel, steps of a pixel down and across. A work-item, one register tile.
 */
CLT_ITEM void cpu_conv2d_last_item(int item, global const float *x, global const float *weight,
                                   global float *y, int4 image, int8 window, int8 result,
                                   int4 target CLT_EPILOGUE_PARAMETERS) {
    int pixels = result.s0 * result.s1 * result.s2, tiles = (pixels + CPU_ROWS - 1) / CPU_ROWS;
    int panels = (result.s4 + CPU_COLUMNS - 1) / CPU_COLUMNS;
    int panel = item / CPU_CONV2D_LAST_TILES % panels, rest = item / CPU_CONV2D_LAST_TILES / panels;
    int runs = (tiles + CPU_CONV2D_LAST_TILES - 1) / CPU_CONV2D_LAST_TILES;
    int tile = rest % runs * CPU_CONV2D_LAST_TILES + item % CPU_CONV2D_LAST_TILES, group = rest / runs;
    if (tile >= tiles || group >= result.s3) return;
    int channels = image.s3, taps = window.s6 * window.s7,
        packed = panels * taps * channels * CPU_COLUMNS;
    global const float *zeros = weight + result.s3 * packed;
    weight += group * packed + panel * taps * channels * CPU_COLUMNS;
    x += group * channels;

    int first = tile * CPU_ROWS, there = min(pixels - first, CPU_ROWS);
    int h[CPU_ROWS], w[CPU_ROWS], at[CPU_ROWS],
        to[CPU_ROWS]; /* pixels past the last are the last again */
    int q = first % result.s2, p = first / result.s2 % result.s1, n = first / result.s2 / result.s1;
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
        h[i] = window.s0 + p * window.s2;
        w[i] = window.s1 + q * window.s3;
        at[i] = ((n * image.s0 + h[i]) * image.s1 + w[i]) * image.s2;
        to[i] = target.s1 + n * target.s0 + p * target.s2 + q * target.s3;
        if (i + 1 >= there) continue;
        if (++q == result.s2) {
            q = 0;
            if (++p == result.s1) {
                p = 0;
                n++;
            }
        }
    }

    cpu_vector sum[CPU_ROWS][2];
    CPU_CLEAR(sum);
    for (int c = 0; c < channels; c += CPU_CONV2D_LAST_BLOCK) {
        int count = min(CPU_CONV2D_LAST_BLOCK, channels - c);
        for (int down = 0; down < window.s6; down++)
            for (int across = 0; across < window.s7; across++) {
                int below = down * window.s4, beside = across * window.s5;
                int shift = (below * image.s1 + beside) * image.s2 + c;
                global const float *from[CPU_ROWS];
                _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                    bool inside =
                        (uint)(h[i] + below) < (uint)image.s0 && (uint)(w[i] + beside) < (uint)image.s1;
                    from[i] = inside ? x + (at[i] + shift) : zeros;
                }
                for (long k = 0; k < count; k++) {
                    cpu_vector left = cpu_load(0, weight), right = cpu_load(1, weight);
                    weight += CPU_COLUMNS;
                    CPU_STEP(sum, from[i][k], left, right)
                }
            }
    }

    int column = panel * CPU_COLUMNS, columns = result.s4 - column, ch = group * result.s4 + column;
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
        if (i >= there) continue;
        cpu_conv2d_last_put(y, to[i] + ch, ch, columns, sum[i][0] CLT_EPILOGUE_ARGUMENTS);
        cpu_conv2d_last_put(y, to[i] + ch + CPU_WIDTH, ch + CPU_WIDTH, columns - CPU_WIDTH,
                            sum[i][1] CLT_EPILOGUE_ARGUMENTS);
    }
}
kernel void cpu_conv2d_last(global const float *x, global const float *weight, global float *y, int4 image,
                            int8 window, int8 result, int4 target CLT_EPILOGUE_PARAMETERS) {
    cpu_conv2d_last_item(get_global_id(0), x, weight, y, image, window, result,
                         target CLT_EPILOGUE_ARGUMENTS);
}

/* ---- the gradient of the weight ---- */

/* Pixels whose dy is put side by side, to be used by all taps and channels of a block. */
#define CPU_CONV2D_LAST_RUN 128

/* sums[i][j] (+)= sum over the `count` pixels of x[places + i] dy[rows, j], for ROWS channels i. */
#define CPU_CONV2D_LAST_SUM(ROWS)                                                                       \
    static void CPU_PASTE(cpu_conv2d_last_sum_, ROWS)(global const float *x, const int *places,         \
                                                      const float *dy, const int *rows, int count,      \
                                                      global float *sums, bool add) {                   \
        cpu_vector sum[ROWS][2];                                                                        \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            sum[i][0] = add ? cpu_load(2 * i, sums) : (cpu_vector)(0);                                  \
            sum[i][1] = add ? cpu_load(2 * i + 1, sums) : (cpu_vector)(0);                              \
        }                                                                                               \
        for (int k = 0; k < count; k++) {                                                               \
            global const float *from = x + places[k];                                                   \
            cpu_vector left = cpu_load(0, dy + rows[k]), right = cpu_load(1, dy + rows[k]);             \
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                          \
                cpu_vector broadcast = (cpu_vector)(from[i]);                                           \
                sum[i][0] = broadcast * left + sum[i][0];                                               \
                sum[i][1] = broadcast * right + sum[i][1];                                              \
            }                                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            cpu_store(sum[i][0], 2 * i, sums);                                                          \
            cpu_store(sum[i][1], 2 * i + 1, sums);                                                      \
        }                                                                                               \
    }
CPU_CONV2D_LAST_SUM(CPU_ROWS)
CPU_CONV2D_LAST_SUM(4)
CPU_CONV2D_LAST_SUM(1)

/*
 * partial[split, group, panel, block, tap, channel, result] = sum over the split's pixels of x beside the
 * pixel times dy. image: height, width and channels of x, channels of a group and of a block, channels of
 * dy, groups, results of a group; window: as above; plan: N, height and width of dy, splits, pixels of a
 * split, of those the first and the number that this launch adds. A work-item, a block of one panel.
 */
CLT_ITEM void cpu_conv2d_last_grad_weight_item(int item, global const float *x, global const float *dy,
                                               global float *partial, int8 image, int8 window, int8 plan) {
    int panels = (image.s7 + CPU_COLUMNS - 1) / CPU_COLUMNS,
        blocks = (image.s3 + image.s4 - 1) / image.s4;
    if (item >= plan.s3 * image.s6 * panels * blocks) return;
    int block = item % blocks, panel = item / blocks % panels, group = item / blocks / panels % image.s6;
    int split = item / blocks / panels / image.s6, taps = window.s6 * window.s7;
    int channels = min(image.s4, image.s3 - block * image.s4), column = panel * CPU_COLUMNS;
    int columns = min(CPU_COLUMNS, image.s7 - column), split_start = split * plan.s4;
    int start = split_start + plan.s5;
    int end = min(min(start + plan.s6, split_start + plan.s4), plan.s0 * plan.s1 * plan.s2);
    x += group * image.s3 + block * image.s4;
    dy += group * image.s7 + column;
    partial += item * taps * image.s4 * CPU_COLUMNS;

    float packed[CPU_CONV2D_LAST_RUN * CPU_COLUMNS];
    int h[CPU_CONV2D_LAST_RUN], w[CPU_CONV2D_LAST_RUN], at[CPU_CONV2D_LAST_RUN];
    int places[CPU_CONV2D_LAST_RUN], rows[CPU_CONV2D_LAST_RUN];
    for (int run = start; run < end; run += CPU_CONV2D_LAST_RUN) {
        int pixels = min(CPU_CONV2D_LAST_RUN, end - run);
        int q = run % plan.s2, p = run / plan.s2 % plan.s1, n = run / plan.s2 / plan.s1;
        for (int k = 0; k < pixels; k++) {
            global const float *from = dy + (run + k) * image.s5;
            h[k] = window.s0 + p * window.s2;
            w[k] = window.s1 + q * window.s3;
            at[k] = ((n * image.s0 + h[k]) * image.s1 + w[k]) * image.s2;
            if (columns == CPU_COLUMNS) {
                cpu_store(cpu_load(0, from), 2 * k, packed);
                cpu_store(cpu_load(1, from), 2 * k + 1, packed);
            } else {
                for (int j = 0; j < CPU_COLUMNS; j++)
                    packed[k * CPU_COLUMNS + j] = j < columns ? from[j] : 0;
            }
            if (++q == plan.s2) {
                q = 0;
                if (++p == plan.s1) {
                    p = 0;
                    n++;
                }
            }
        }
        bool add = run > split_start;
        for (int tap = 0; tap < taps; tap++) {
            int below = tap / window.s7 * window.s4, beside = tap % window.s7 * window.s5, count = 0;
            int shift = (below * image.s1 + beside) * image.s2, c = 0;
            for (int k = 0; k < pixels; k++) {
                places[count] = at[k] + shift;
                rows[count] = k * CPU_COLUMNS;
                count += (uint)(h[k] + below) < (uint)image.s0 && (uint)(w[k] + beside) < (uint)image.s1;
            }
            global float *to = partial + tap * channels * CPU_COLUMNS;
            for (; c + CPU_ROWS <= channels; c += CPU_ROWS) CPU_PASTE(cpu_conv2d_last_sum_, CPU_ROWS)
            (x + c, places, packed, rows, count, to + c * CPU_COLUMNS, add);
            for (; c + 4 <= channels; c += 4)
                cpu_conv2d_last_sum_4(x + c, places, packed, rows, count, to + c * CPU_COLUMNS, add);
            for (; c < channels; c++)
                cpu_conv2d_last_sum_1(x + c, places, packed, rows, count, to + c * CPU_COLUMNS, add);
        }
    }
}
kernel void cpu_conv2d_last_grad_weight(global const float *x, global const float *dy,
                                        global float *partial, int8 image, int8 window, int8 plan) {
    cpu_conv2d_last_grad_weight_item(get_global_id(0), x, dy, partial, image, window, plan);
}

/* ---- the same for one tap ---- */

/* Pixels and channels that are put side by side: whole pixels are read in the order of memory, which those
 * that tiles read are far from. */
#define CPU_CONV2D_LAST_PIXELS   96
#define CPU_CONV2D_LAST_WIDE     512
/* Panels of results that use them. */
#define CPU_CONV2D_LAST_TOGETHER 4
/* Channels that then lie together. */
#define CPU_CONV2D_LAST_LOT      48

/* sums[i][j] (+)= sum over the `count` pixels of x[pixel][i] dy[pixel][j], for ROWS channels i. */
#define CPU_CONV2D_LAST_OUTER(ROWS)                                                                     \
    static void CPU_PASTE(cpu_conv2d_last_outer_, ROWS)(const float *x, const float *dy, int count,     \
                                                        global float *sums, bool add) {                 \
        cpu_vector sum[ROWS][2];                                                                        \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            sum[i][0] = add ? cpu_load(2 * i, sums) : (cpu_vector)(0);                                  \
            sum[i][1] = add ? cpu_load(2 * i + 1, sums) : (cpu_vector)(0);                              \
        }                                                                                               \
        for (int k = 0; k < count; k++) {                                                               \
            cpu_vector left = cpu_load(2 * k, dy), right = cpu_load(2 * k + 1, dy);                     \
            _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                          \
                cpu_vector broadcast = (cpu_vector)(x[k * CPU_CONV2D_LAST_LOT + i]);                    \
                sum[i][0] = broadcast * left + sum[i][0];                                               \
                sum[i][1] = broadcast * right + sum[i][1];                                              \
            }                                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; i++) {                                              \
            cpu_store(sum[i][0], 2 * i, sums);                                                          \
            cpu_store(sum[i][1], 2 * i + 1, sums);                                                      \
        }                                                                                               \
    }
CPU_CONV2D_LAST_OUTER(CPU_ROWS)
CPU_CONV2D_LAST_OUTER(4)
CPU_CONV2D_LAST_OUTER(1)

/* lots[lot][pixel][channel] = from[channel] of one pixel, or 0 where there is none. */
static void cpu_conv2d_last_lots(global const float *from, bool there, int channels, float *lots) {
    for (int c = 0; c < channels; c += CPU_CONV2D_LAST_LOT) {
        int count = min(CPU_CONV2D_LAST_LOT, channels - c), i = 0;
        for (; i + CPU_WIDTH <= count; i += CPU_WIDTH)
            cpu_store(there ? cpu_load(0, from + c + i) : (cpu_vector)(0), 0, lots + i);
        for (; i < count; i++) lots[i] = there ? from[c + i] : 0;
        lots += CPU_CONV2D_LAST_PIXELS * CPU_CONV2D_LAST_LOT;
    }
}

/* lots[pixel][result] = dy of one pixel, zero past the last. */
static void cpu_conv2d_last_results(global const float *from, int columns, float *lots) {
    if (columns >= CPU_COLUMNS) {
        cpu_store(cpu_load(0, from), 0, lots);
        cpu_store(cpu_load(1, from), 1, lots);
        return;
    }
    for (int j = 0; j < CPU_COLUMNS; j++) lots[j] = j < columns ? from[j] : 0;
}

/*
 * As cpu_conv2d_last_grad_weight, for one tap and blocks of at most CPU_CONV2D_LAST_WIDE channels. A
 * work-item, a block of CPU_CONV2D_LAST_TOGETHER panels.
 */
CLT_ITEM void cpu_conv2d_last_grad_weight_1x1_item(int item, global const float *x, global const float *dy,
                                                   global float *partial, int8 image, int8 window,
                                                   int8 plan) {
    int panels = (image.s7 + CPU_COLUMNS - 1) / CPU_COLUMNS,
        blocks = (image.s3 + image.s4 - 1) / image.s4;
    int sets = (panels + CPU_CONV2D_LAST_TOGETHER - 1) / CPU_CONV2D_LAST_TOGETHER;
    if (item >= plan.s3 * image.s6 * sets * blocks) return;
    int block = item % blocks, set = item / blocks % sets, group = item / blocks / sets % image.s6;
    int split = item / blocks / sets / image.s6;
    int first_panel = set * CPU_CONV2D_LAST_TOGETHER,
        count = min(CPU_CONV2D_LAST_TOGETHER, panels - first_panel);
    int channels = min(image.s4, image.s3 - block * image.s4), column = first_panel * CPU_COLUMNS;
    int split_start = split * plan.s4, start = split_start + plan.s5, size = image.s4 * CPU_COLUMNS;
    int end = min(min(start + plan.s6, split_start + plan.s4), plan.s0 * plan.s1 * plan.s2);
    x += group * image.s3 + block * image.s4;
    dy += group * image.s7 + column;
    partial += (((split * image.s6 + group) * panels + first_panel) * blocks + block) * size;

    float results[CPU_CONV2D_LAST_TOGETHER * CPU_CONV2D_LAST_PIXELS * CPU_COLUMNS];
    float lots[CPU_CONV2D_LAST_PIXELS * (CPU_CONV2D_LAST_WIDE + CPU_CONV2D_LAST_LOT)];
    for (int run = start; run < end; run += CPU_CONV2D_LAST_PIXELS) {
        int pixels = min(CPU_CONV2D_LAST_PIXELS, end - run);
        int q = run % plan.s2, p = run / plan.s2 % plan.s1, n = run / plan.s2 / plan.s1;
        for (int k = 0; k < pixels; k++) {
            int h = window.s0 + p * window.s2, w = window.s1 + q * window.s3;
            bool there = (uint)h < (uint)image.s0 && (uint)w < (uint)image.s1;
            for (int i = 0; i < count; i++)
                cpu_conv2d_last_results(dy + (run + k) * image.s5 + i * CPU_COLUMNS,
                                        image.s7 - column - i * CPU_COLUMNS,
                                        results + (i * CPU_CONV2D_LAST_PIXELS + k) * CPU_COLUMNS);
            cpu_conv2d_last_lots(x + ((n * image.s0 + h) * image.s1 + w) * image.s2, there, channels,
                                 lots + k * CPU_CONV2D_LAST_LOT);
            if (++q == plan.s2) {
                q = 0;
                if (++p == plan.s1) {
                    p = 0;
                    n++;
                }
            }
        }
        bool add = run > split_start;
        for (int first = 0; first < channels; first += CPU_CONV2D_LAST_LOT)
            for (int i = 0; i < count; i++) {
                int most = min(CPU_CONV2D_LAST_LOT, channels - first), c = 0;
                const float *lot = lots + first * CPU_CONV2D_LAST_PIXELS;
                const float *beside = results + i * CPU_CONV2D_LAST_PIXELS * CPU_COLUMNS;
                global float *to = partial + i * blocks * size + first * CPU_COLUMNS;
                for (; c + CPU_ROWS <= most; c += CPU_ROWS)
                    CPU_PASTE(cpu_conv2d_last_outer_, CPU_ROWS)
                    (lot + c, beside, pixels, to + c * CPU_COLUMNS, add);
                for (; c + 4 <= most; c += 4)
                    cpu_conv2d_last_outer_4(lot + c, beside, pixels, to + c * CPU_COLUMNS, add);
                for (; c < most; c++)
                    cpu_conv2d_last_outer_1(lot + c, beside, pixels, to + c * CPU_COLUMNS, add);
            }
    }
}
kernel void cpu_conv2d_last_grad_weight_1x1(global const float *x, global const float *dy,
                                            global float *partial, int8 image, int8 window, int8 plan) {
    cpu_conv2d_last_grad_weight_1x1_item(get_global_id(0), x, dy, partial, image, window, plan);
}

/* Channels of a block that one work-item sums and unpacks. */
#define CPU_CONV2D_LAST_UNPACK 8

/*
 * dweight[group, result, channel, tap] = sum of the above over the splits, in their order. sizes: groups,
 * results and channels of a group, channels of a block, taps, splits. A work-item,
 * CPU_CONV2D_LAST_UNPACK channels of a block of one panel.
 */
CLT_ITEM void cpu_conv2d_last_unpack_item(int item, global float *partial, global float *dweight,
                                          int8 sizes) {
    int results = sizes.s1, channels = sizes.s2, width = sizes.s3, taps = sizes.s4;
    int panels = (results + CPU_COLUMNS - 1) / CPU_COLUMNS, blocks = (channels + width - 1) / width;
    int parts = (width + CPU_CONV2D_LAST_UNPACK - 1) / CPU_CONV2D_LAST_UNPACK;
    int items = sizes.s0 * panels * blocks * parts;
    if (item >= items) return;
    int c = item % parts * CPU_CONV2D_LAST_UNPACK, block = item / parts % blocks;
    int panel = item / parts / blocks % panels, group = item / parts / blocks / panels;
    int inside = min(width, channels - block * width), count = min(CPU_CONV2D_LAST_UNPACK, inside - c);
    int first = panel * CPU_COLUMNS, there = min(results - first, CPU_COLUMNS), run = count * taps,
        j = 0;
    int size = taps * width * CPU_COLUMNS, split_size = sizes.s0 * panels * blocks * size;
    if (count <= 0) return;
    partial += item / parts * size + c * CPU_COLUMNS;
    dweight += ((group * results + first) * channels + block * width + c) * taps;
    for (int split = 1; split < sizes.s5; split++)
        for (int tap = 0; tap < taps; tap++)
            for (int i = 0; i < 2 * count; i++) {
                global float *to = partial + tap * inside * CPU_COLUMNS;
                cpu_store(cpu_load(i, to) + cpu_load(i, to + split * split_size), i, to);
            }
    for (; run >= 8 && j + 8 <= there; j += 8)
        for (int at = 0; at < run; at += 8) {
            int start = min(at, run - 8);
            float8 r[8];
            _Pragma("unroll") for (int i = 0; i < 8; i++) {
                int ch = (start + i) / taps, tap = (start + i) % taps;
                r[i] = vload8(0, partial + (tap * inside + ch) * CPU_COLUMNS + j);
            }
            cpu_transpose(r);
            _Pragma("unroll") for (int i = 0; i < 8; i++)
                vstore8(r[i], 0, dweight + (j + i) * channels * taps + start);
        }
    for (; j < there; j++)
        for (int q = 0; q < run; q++)
            dweight[j * channels * taps + q] = partial[(q % taps * inside + q / taps) * CPU_COLUMNS + j];
}
kernel void cpu_conv2d_last_unpack(global float *partial, global float *dweight, int8 sizes) {
    cpu_conv2d_last_unpack_item(get_global_id(0), partial, dweight, sizes);
}
