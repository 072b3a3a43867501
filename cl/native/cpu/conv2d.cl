/*
 * Two-dimensional convolution and its gradients for devices whose work-items are threads with
 * vector registers: direct, without im2col, on images that are packed first.
 *
 * A packed image is [N][groups][blocks][height][width][channels of a block]: zero-padded, with a group's
 * channels in blocks of at most 16, so that neighbours in memory are used together. Weights
 * are packed in the order in which they are used, CPU_COLUMNS channels of the result side by side.
 * Each pixel of a register tile has its own place in the image, so stride, dilation and the ends of
 * rows are no special cases. Bound: the fused multiply-adds.
 *
 * Zeros of the padding are multiplied: where a weight is not finite, results at the border are NaN,
 * while the reference leaves those terms out.
 */

/*
 * Packs an image: pixel (h, w) is x's (h step - before, w step - before), zero outside.
 * image: N, C, H, W; packed: groups, channels of a block, height, width;
 * window: step and before of the height, of the width. A work-item, one row of one block.
 */
CLT_ITEM void cpu_conv2d_pack_item(int item, global const float *x, global float *to, int4 image,
                                   int4 packed, int4 window) {
    int group_channels = image.s1 / packed.s0, width = packed.s1;
    int blocks = (group_channels + width - 1) / width;
    if (item >= image.s0 * packed.s0 * blocks * packed.s2) return;
    int row = item % packed.s2, block = item / packed.s2 % blocks;
    int group = item / packed.s2 / blocks % packed.s0, n = item / packed.s2 / blocks / packed.s0;
    int channels = min(width, group_channels - block * width), plane = image.s2 * image.s3;
    int h = row * window.s0 - window.s1;
    to += item * packed.s3 * width;
    if (h < 0 || h >= image.s2) {
        for (int i = 0; i < packed.s3 * width; i++) to[i] = 0;
        return;
    }
    global const float *from =
        x + (n * image.s1 + group * group_channels + block * width) * plane + h * image.s3;
    if (window.s2 == 1) {
        int left = clamp(window.s3, 0, packed.s3), right = clamp(window.s3 + image.s3, left, packed.s3);
        for (int i = 0; i < left * width; i++) to[i] = 0;
        cpu_interleave(from + left - window.s3, plane, channels, right - left, to + left * width,
                          width);
        for (int i = right * width; i < packed.s3 * width; i++) to[i] = 0;
        return;
    }
    for (int p = 0; p < packed.s3; p++) {
        int w = p * window.s2 - window.s3;
        for (int c = 0; c < channels; c++)
            to[p * width + c] = w >= 0 && w < image.s3 ? from[c * plane + w] : 0;
    }
}
kernel void cpu_conv2d_pack(global const float *x, global float *to, int4 image, int4 packed, int4 window) {
    cpu_conv2d_pack_item(get_global_id(0), x, to, image, packed, window);
}

/*
 * Packs weights: [group][panel][block][tap][channel of the block][CPU_COLUMNS results], zero past
 * a group's last result.
 * sizes: groups, results and channels of a group, channels of a block, taps of the height and of the
 * width;
 * strides: of group, result, channel, tap of the height and of the width, then where to begin.
 * A work-item, one block of one panel.
 */
CLT_ITEM void cpu_conv2d_pack_weight_item(int item, global const float *weight, global float *to,
                                          int8 sizes, int8 strides) {
    int results = sizes.s1, channels = sizes.s2, width = sizes.s3, taps = sizes.s4 * sizes.s5;
    int panels = (results + CPU_COLUMNS - 1) / CPU_COLUMNS,
        blocks = (channels + width - 1) / width;
    if (item >= sizes.s0 * panels * blocks) return;
    int block = item % blocks, panel = item / blocks % panels, group = item / blocks / panels;
    int first = panel * CPU_COLUMNS, there = min(results - first, CPU_COLUMNS);
    int count = min(width, channels - block * width);
    global const float *from =
        weight + strides.s5 + group * strides.s0 + first * strides.s1 + block * width * strides.s2;
    to += ((group * panels + panel) * channels + block * width) * taps * CPU_COLUMNS;
    if (there < CPU_COLUMNS)
        for (int i = 0; i < taps * count * CPU_COLUMNS; i++) to[i] = 0;
    if (taps == 1 && strides.s2 == 1) {
        cpu_interleave(from, strides.s1, there, count, to, CPU_COLUMNS);
        return;
    }
    bool dense = strides.s4 == 1 && strides.s3 == sizes.s5;
    for (int c = 0; c < count; c++) {
        if (dense) {
            cpu_interleave(from + c * strides.s2, strides.s1, there, taps, to + c * CPU_COLUMNS,
                              count * CPU_COLUMNS);
            continue;
        }
        for (int tap = 0; tap < taps; tap++) {
            int at = c * strides.s2 + tap / sizes.s5 * strides.s3 + tap % sizes.s5 * strides.s4;
            for (int j = 0; j < there; j++)
                to[(tap * count + c) * CPU_COLUMNS + j] = from[at + j * strides.s1];
        }
    }
}
kernel void cpu_conv2d_pack_weight(global const float *weight, global float *to, int8 sizes, int8 strides) {
    cpu_conv2d_pack_weight_item(get_global_id(0), weight, to, sizes, strides);
}

/* Stores a tile whose pixels are neighbours in y, whole 8 columns at a time: their number is
 * returned. */
static int cpu_conv2d_store(const float *values, int columns, global float *y, int plane) {
    int done = 0;
    for (; done + 8 <= columns; done += 8) {
        _Pragma("unroll") for (int first = 0; first < CPU_ROWS; first += 8) {
            float8 r[8];
            _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] =
                vload8(0, values + (first + i) * CPU_COLUMNS + done);
            cpu_transpose(r);
            _Pragma("unroll") for (int i = 0; i < 8; i++) {
                global float *to = y + (done + i) * plane + first;
                vstore4(r[i].lo, 0, to);
                if (CPU_ROWS - first >= 8) vstore4(r[i].hi, 1, to);
                else if (CPU_ROWS - first == 6) vstore2(r[i].s45, 2, to);
            }
        }
    }
    return done;
}

/* Results leave here: values[i, j] is y's element to[i] + (ch + j) step, of the channel `ch` + j;
 * i < there, j < columns. */
static void cpu_conv2d_put(global float *y, const int *to, int there, int ch, int columns, int step,
                           float *values CLT_EPILOGUE_PARAMETERS) {
    int done = 0;
#ifdef CLT_EPILOGUE_TYPE
    for (int i = 0; i < there; i++)
        for (int j = 0; j < columns; j++)
            values[i * CPU_COLUMNS + j] =
                CLT_EPILOGUE(values[i * CPU_COLUMNS + j], to[i] + (ch + j) * step, ch + j);
#endif
    y += ch * step;
    if (step == 1 && columns == CPU_COLUMNS) {
        for (int i = 0; i < there; i++) {
            cpu_store(cpu_load(2 * i, values), 0, y + to[i]);
            cpu_store(cpu_load(2 * i + 1, values), 1, y + to[i]);
        }
        return;
    }
    if (step != 1 && there == CPU_ROWS && to[CPU_ROWS - 1] - to[0] == CPU_ROWS - 1)
        done = cpu_conv2d_store(values, columns, y + to[0], step);
    for (int i = 0; i < there; i++)
        for (int j = done; j < columns; j++) y[to[i] + j * step] = values[i * CPU_COLUMNS + j];
}

/*
 * y[pixel, result] = sum over blocks, taps and channels of packed x and weights.
 * source: elements of a packed image and of a block, channels of a block and of a group, then steps
 * in elements: of a tap down and across (may be negative), of a pixel down and across;
 * origin: where the first tap of the first pixel is; where the first pixel is in y; taps down and
 * across;
 * result: N, height and width of the pixels, groups, results of a group;
 * target: in y, elements of an image and of a channel, steps of a pixel down and across.
 * A work-item, one register tile; those that follow one another share the panel of weights.
 */
CLT_ITEM void cpu_conv2d_item(int item, global const float *x, global const float *weight, global float *y,
                              int8 source, int4 origin, int8 result, int4 target CLT_EPILOGUE_PARAMETERS) {
    int pixels = result.s0 * result.s1 * result.s2, tiles = (pixels + CPU_ROWS - 1) / CPU_ROWS;
    int panels = (result.s4 + CPU_COLUMNS - 1) / CPU_COLUMNS;
    if (item >= result.s3 * panels * tiles) return;
    int tile = item % tiles, panel = item / tiles % panels, group = item / tiles / panels;
    int width = source.s2, channels = source.s3, taps = origin.s2 * origin.s3;
    int blocks = (channels + width - 1) / width;
    int first = tile * CPU_ROWS, there = min(pixels - first, CPU_ROWS);

    x += origin.s0 + group * blocks * source.s1;
    weight += (group * panels + panel) * taps * channels * CPU_COLUMNS;
    global const float *from[CPU_ROWS]; /* pixels past the last are the last again */
    int to[CPU_ROWS];
    int w = first % result.s2, h = first / result.s2 % result.s1, n = first / result.s2 / result.s1;
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
        from[i] = x + n * source.s0 + h * source.s6 + w * source.s7;
        to[i] = origin.s1 + n * target.s0 + h * target.s2 + w * target.s3;
        if (i + 1 >= there) continue;
        if (++w == result.s2) {
            w = 0;
            if (++h == result.s1) {
                h = 0;
                n++;
            }
        }
    }

    cpu_vector sum[CPU_ROWS][2];
    CPU_CLEAR(sum);
    for (int block = 0; block < blocks; block++) {
        int count = min(width, channels - block * width);
        for (int down = 0; down < origin.s2; down++)
            for (int across = 0; across < origin.s3; across++) {
                long at = block * source.s1 + down * source.s4 + across * source.s5;
                for (long end = at + count; at < end; at++) {
                    cpu_vector left = cpu_load(0, weight), right = cpu_load(1, weight);
                    weight += CPU_COLUMNS;
                    CPU_STEP(sum, from[i][at], left, right)
                }
            }
    }

    float values[8 * ((CPU_ROWS + 7) / 8) * CPU_COLUMNS];
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
        cpu_store(sum[i][0], 2 * i, values);
        cpu_store(sum[i][1], 2 * i + 1, values);
    }
    int column = panel * CPU_COLUMNS, columns = min(result.s4 - column, CPU_COLUMNS);
    cpu_conv2d_put(y, to, there, group * result.s4 + column, columns, target.s1,
                   values CLT_EPILOGUE_ARGUMENTS);
}
kernel void cpu_conv2d(global const float *x, global const float *weight, global float *y, int8 source,
                       int4 origin, int8 result, int4 target CLT_EPILOGUE_PARAMETERS) {
    cpu_conv2d_item(get_global_id(0), x, weight, y, source, origin, result, target CLT_EPILOGUE_ARGUMENTS);
}

/* ---- the gradient of the weight ---- */

/* Where each pixel of the result is in the packed image. result: N, height, width; step: elements
 * from image to image, pixel to pixel down and across. A work-item, a run of 256. */
CLT_ITEM void cpu_conv2d_places_item(int item, global int *places, int4 result, int4 step) {
    int pixels = result.s0 * result.s1 * result.s2, first = item * 256;
    for (int p = first; p < min(first + 256, pixels); p++)
        places[p] = p / result.s2 / result.s1 * step.s0 + p / result.s2 % result.s1 * step.s1 +
                    p % result.s2 * step.s2;
}
kernel void cpu_conv2d_places(global int *places, int4 result, int4 step) {
    cpu_conv2d_places_item(get_global_id(0), places, result, step);
}

/*
 * packed[group, panel, pixel, j] = dy[n, group, panel CPU_COLUMNS + j, pixel of n], zero past a
 * group's last channel. sizes: N, groups, channels of a group, pixels of an image; steps: from channel
 * to channel of dy, from pixel to pixel, one of which is 1. A work-item, one panel of one image.
 */
CLT_ITEM void cpu_conv2d_pack_panels_item(int item, global const float *dy, global float *packed,
                                          int4 sizes, int2 steps) {
    int channels = sizes.s2, pixels = sizes.s3,
        panels = (channels + CPU_COLUMNS - 1) / CPU_COLUMNS;
    if (item >= sizes.s0 * sizes.s1 * panels) return;
    int n = item % sizes.s0, panel = item / sizes.s0 % panels, group = item / sizes.s0 / panels;
    int first = panel * CPU_COLUMNS, there = min(channels - first, CPU_COLUMNS);
    packed += item * pixels * CPU_COLUMNS;
    if (there < CPU_COLUMNS)
        for (int i = 0; i < pixels * CPU_COLUMNS; i++) packed[i] = 0;
    dy += n * sizes.s1 * channels * pixels + (group * channels + first) * steps.s0;
    if (steps.s0 != 1) {
        cpu_interleave(dy, steps.s0, there, pixels, packed, CPU_COLUMNS);
        return;
    }
    for (int p = 0; p < pixels; p++)
        for (int j = 0; j < there; j++) packed[p * CPU_COLUMNS + j] = dy[p * steps.s1 + j];
}
kernel void cpu_conv2d_pack_panels(global const float *dy, global float *packed, int4 sizes, int2 steps) {
    cpu_conv2d_pack_panels_item(get_global_id(0), dy, packed, sizes, steps);
}

/* Pixels over which all tiles of a work-item go before the next come: what they read stays in
 * the first caches. */
#define CPU_CONV2D_RUN 256

/*
 * partial[split, group, panel, block, row, result] = sum over the split's pixels of x at the row's
 * place beside the pixel, times dy. A row is a tap and a channel of the block: tap count + channel.
 * source: elements of a group and of a block in a packed image, channels of a block and of a group,
 * then taps down and across and their steps; result: groups, results of a group, pixels, splits,
 * pixels of a split; steps: elements of dy from pixel to pixel, from panel to panel, from group to group.
 * A work-item, all rows of a block for one panel; rows past the last are the last again.
 */
CLT_ITEM void cpu_conv2d_grad_weight_item(int item, global const float *x, global const float *dy,
                                          global const int *places, global float *partial, int8 source,
                                          int8 result, int4 steps) {
    int width = source.s2, channels = source.s3, blocks = (channels + width - 1) / width;
    int panels = (result.s1 + CPU_COLUMNS - 1) / CPU_COLUMNS, taps = source.s4 * source.s5;
    int tiles = (taps * width + CPU_ROWS - 1) / CPU_ROWS;
    if (item >= result.s3 * result.s0 * panels * blocks) return;
    int block = item % blocks, panel = item / blocks % panels,
        group = item / blocks / panels % result.s0;
    int split = item / blocks / panels / result.s0;
    int count = min(width, channels - block * width), rows = taps * count;
    int start = split * result.s4, end = min(start + result.s4, result.s2);

    x += group * source.s0 + block * source.s1;
    dy += group * steps.s2 + panel * steps.s1;
    partial += item * tiles * CPU_ROWS * CPU_COLUMNS;
    for (int run = start; run < end; run += CPU_CONV2D_RUN) {
        int run_end = min(run + CPU_CONV2D_RUN, end), c = 0, across = 0, down = 0;
        for (int row = 0; row < rows; row += CPU_ROWS) {
            global const float *from[CPU_ROWS];
            _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                from[i] = x + down * source.s6 + across * source.s7 + c;
                if (row + i + 1 < rows && ++c == count) {
                    c = 0;
                    if (++across == source.s5) {
                        across = 0;
                        down++;
                    }
                }
            }
            cpu_vector sum[CPU_ROWS][2];
            CPU_CLEAR(sum);
            for (int p = run; p < run_end; p++) {
                global const float *beside = dy + p * steps.s0;
                cpu_vector left = cpu_load(0, beside), right = cpu_load(1, beside);
                long at = places[p];
                CPU_STEP(sum, from[i][at], left, right)
            }
            global float *to = partial + row * CPU_COLUMNS;
            _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
                cpu_vector left = sum[i][0], right = sum[i][1];
                if (run > start) {
                    left += cpu_load(2 * i, to);
                    right += cpu_load(2 * i + 1, to);
                }
                cpu_store(left, 2 * i, to);
                cpu_store(right, 2 * i + 1, to);
            }
        }
    }
}
kernel void cpu_conv2d_grad_weight(global const float *x, global const float *dy, global const int *places,
                                   global float *partial, int8 source, int8 result, int4 steps) {
    cpu_conv2d_grad_weight_item(get_global_id(0), x, dy, places, partial, source, result, steps);
}

/*
 * dweight[group, result, channel, tap] = sum of the above over the splits, in their order.
 * sizes: groups, results and channels of a group, channels of a block, taps, splits. A work-item, a
 * block of one panel.
 */
CLT_ITEM void cpu_conv2d_sum_weight_item(int item, global float *partial, global float *dweight, int8 sizes) {
    int results = sizes.s1, channels = sizes.s2, width = sizes.s3, taps = sizes.s4;
    int panels = (results + CPU_COLUMNS - 1) / CPU_COLUMNS,
        blocks = (channels + width - 1) / width;
    int items = sizes.s0 * panels * blocks;
    if (item >= items) return;
    int block = item % blocks, panel = item / blocks % panels, group = item / blocks / panels;
    int first = panel * CPU_COLUMNS, there = min(results - first, CPU_COLUMNS);
    int count = min(width, channels - block * width),
        size = (taps * width + CPU_ROWS - 1) / CPU_ROWS * CPU_ROWS * CPU_COLUMNS;
    partial += item * size;
    for (int split = 1; split < sizes.s5; split++)
        for (int i = 0; i < taps * count * CPU_COLUMNS; i++)
            partial[i] += partial[split * items * size + i];
    dweight += ((group * results + first) * channels + block * width) * taps;
    for (int j = 0; j < there; j++)
        for (int c = 0; c < count; c++)
            for (int tap = 0; tap < taps; tap++)
                dweight[j * channels * taps + c * taps + tap] =
                    partial[(tap * count + c) * CPU_COLUMNS + j];
}
kernel void cpu_conv2d_sum_weight(global float *partial, global float *dweight, int8 sizes) {
    cpu_conv2d_sum_weight_item(get_global_id(0), partial, dweight, sizes);
}
