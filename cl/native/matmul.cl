/*
 * Matrix product for devices whose work-items are threads with vector registers: c = a b,
 * transposition and broadcasting in the strides.
 *
 * Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a is packed into
 * panels of NATIVE_ROWS rows; a work-item packs NATIVE_DEPTH rows of NATIVE_COLUMNS columns of b,
 * which then stay in its first cache while a block of a's panels streams by from the second. Where
 * there are many blocks, b is put into panels first, so that its rows, which are far apart, are gone
 * over but once. Bound: the fused multiply-adds, as long as some ten panels of a share what was
 * packed.
 */

/*
 * packed[matrix, panel, k, i] = a[matrix, panel NATIVE_ROWS + i, k], zero past the last row.
 * size: matrices, M, K; step: strides of m and k. A work-item, NATIVE_DEPTH k of one panel.
 */
kernel void native_matmul_pack(global const float *a, global float *packed, int4 size, int2 step) {
    int rows = size.s1, depth = size.s2;
    int panels = (rows + NATIVE_ROWS - 1) / NATIVE_ROWS,
        chunks = (depth + NATIVE_DEPTH - 1) / NATIVE_DEPTH;
    int item = get_global_id(0);
    if (item >= size.s0 * panels * chunks) return;
    int chunk = item % chunks, panel = item / chunks % panels, matrix = item / chunks / panels;
    int m = panel * NATIVE_ROWS, start = chunk * NATIVE_DEPTH, count = min(depth - start, NATIVE_DEPTH);
    global const float *from = a + matrix * rows * depth + m * step.s0 + start * step.s1;
    global float *to = packed + ((matrix * panels + panel) * depth + start) * NATIVE_ROWS;
    int there = min(rows - m, NATIVE_ROWS);
    if (there == NATIVE_ROWS) {
        for (int k = 0; k < count; k++)
            for (int i = 0; i < NATIVE_ROWS; i++)
                to[k * NATIVE_ROWS + i] = from[i * step.s0 + k * step.s1];
        return;
    }
    for (int k = 0; k < count; k++)
        for (int i = 0; i < NATIVE_ROWS; i++)
            to[k * NATIVE_ROWS + i] = i < there ? from[i * step.s0 + k * step.s1] : 0;
}

/* Rows of b that are read side by side while they are put into panels. */
#define NATIVE_MATMUL_RUN 16

/*
 * panels[matrix, panel, k, j] = b[matrix, k, panel NATIVE_COLUMNS + j], where that column exists.
 * size: matrices, K, N. A work-item, NATIVE_MATMUL_RUN k of one matrix.
 */
kernel void native_matmul_panels(global const float *b, global float *to, int4 size) {
    int depth = size.s1, columns = size.s2, runs = (depth + NATIVE_MATMUL_RUN - 1) / NATIVE_MATMUL_RUN;
    int panels = (columns + NATIVE_COLUMNS - 1) / NATIVE_COLUMNS, item = get_global_id(0);
    if (item >= size.s0 * runs) return;
    int matrix = item / runs, start = item % runs * NATIVE_MATMUL_RUN,
        end = min(start + NATIVE_MATMUL_RUN, depth);
    b += matrix * depth * columns;
    to += matrix * panels * depth * NATIVE_COLUMNS;
    for (int n = 0; n < columns; n += NATIVE_COLUMNS, to += depth * NATIVE_COLUMNS) {
        int there = min(columns - n, NATIVE_COLUMNS);
        for (int k = start; k < end; k++) {
            if (there == NATIVE_COLUMNS) {
                native_store(native_load(0, b + k * columns + n), 2 * k, to);
                native_store(native_load(1, b + k * columns + n), 2 * k + 1, to);
                continue;
            }
            for (int j = 0; j < there; j++) to[k * NATIVE_COLUMNS + j] = b[k * columns + n + j];
        }
    }
}

/* packed[k, j] = b[k, j] of `count` k and NATIVE_COLUMNS columns of which `there` exist; the others
 * get zeros. */
static void native_matmul_pack_columns(global const float *b, int2 step, int count, int there,
                                       float *packed) {
    int done = 0;
    if (there == NATIVE_COLUMNS && step.s1 == 1) {
        for (int k = 0; k < count; k++) {
            native_store(native_load(0, b + k * step.s0), 0, packed + k * NATIVE_COLUMNS);
            native_store(native_load(1, b + k * step.s0), 1, packed + k * NATIVE_COLUMNS);
        }
        return;
    }
    if (there == NATIVE_COLUMNS && step.s0 == 1) {
        for (done = 0; done + 8 <= count; done += 8)
            for (int j = 0; j < NATIVE_COLUMNS; j += 8) {
                float8 r[8];
                _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] =
                    vload8(0, b + (j + i) * step.s1 + done);
                native_transpose(r);
                _Pragma("unroll") for (int i = 0; i < 8; i++)
                    vstore8(r[i], 0, packed + (done + i) * NATIVE_COLUMNS + j);
            }
    }
    for (int k = done; k < count; k++)
        for (int j = 0; j < NATIVE_COLUMNS; j++)
            packed[k * NATIVE_COLUMNS + j] = j < there ? b[k * step.s0 + j * step.s1] : 0;
}

/*
 * One tile over `count` k, added to what c holds if `add`. Rows and columns past those that
 * are there are computed and not written.
 */
static void native_matmul_tile(global const float *a, const float *b, int count, global float *c,
                               int stride, int rows, int columns, bool add) {
    native_vector sum[NATIVE_ROWS][2];
    NATIVE_CLEAR(sum);
    for (int k = 0; k < count; k++) {
        native_vector left = native_load(2 * k, b), right = native_load(2 * k + 1, b);
        NATIVE_STEP(sum, a[k * NATIVE_ROWS + i], left, right)
    }
    if (rows == NATIVE_ROWS && columns == NATIVE_COLUMNS) {
        _Pragma("unroll") for (int i = 0; i < NATIVE_ROWS; i++) {
            global float *to = c + i * stride;
            native_store(add ? sum[i][0] + native_load(0, to) : sum[i][0], 0, to);
            native_store(add ? sum[i][1] + native_load(1, to) : sum[i][1], 1, to);
        }
        return;
    }
    float values[NATIVE_ROWS * NATIVE_COLUMNS];
    _Pragma("unroll") for (int i = 0; i < NATIVE_ROWS; i++) {
        native_store(sum[i][0], 2 * i, values);
        native_store(sum[i][1], 2 * i + 1, values);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            float value = values[i * NATIVE_COLUMNS + j];
            c[i * stride + j] = add ? c[i * stride + j] + value : value;
        }
}

/*
 * c[split, batch, m, n] = sum over the split's k of a[batch, m, k] b[batch, k, n].
 * size: M, N, K, batch. b_step: strides of k, n and a panel of n; a_batch counts matrices, b_batch
 * elements.
 * plan: panels of a in a block, splits, k in a split. A work-item computes a block of one panel of
 * columns; items that follow one another share the block of a.
 */
kernel void native_matmul(global const float *packed, global const float *b, global float *c, int4 size,
                          int4 b_step, int8 batch_size, int8 a_batch, int8 b_batch, int4 plan) {
    int rows = size.s0, columns = size.s1, depth = size.s2;
    int panels = (columns + NATIVE_COLUMNS - 1) / NATIVE_COLUMNS,
        tiles = (rows + NATIVE_ROWS - 1) / NATIVE_ROWS;
    int blocks = (tiles + plan.s0 - 1) / plan.s0;
    int item = get_global_id(0);
    if (item >= plan.s1 * size.s3 * blocks * panels) return;
    int panel = item % panels, block = item / panels % blocks;
    int batch = item / panels / blocks % size.s3, split = item / panels / blocks / size.s3;
    int n = panel * NATIVE_COLUMNS, there = min(columns - n, NATIVE_COLUMNS);
    int first = block * plan.s0, last = min(first + plan.s0, tiles);
    int start = split * plan.s2, end = min(start + plan.s2, depth);

    global const float *a =
        packed + clt_batch_offset(batch, batch_size, a_batch) * tiles * NATIVE_ROWS * depth;
    b += clt_batch_offset(batch, batch_size, b_batch) + panel * b_step.s2;
    c += (split * size.s3 + batch) * rows * columns + n;
    float buffer[NATIVE_DEPTH * NATIVE_COLUMNS];
    for (int k = start; k < end; k += NATIVE_DEPTH) {
        int count = min(end - k, NATIVE_DEPTH);
        native_matmul_pack_columns(b + k * b_step.s0, b_step.s01, count, there, buffer);
        for (int tile = first; tile < last; tile++)
            native_matmul_tile(a + (tile * depth + k) * NATIVE_ROWS, buffer, count,
                               c + tile * NATIVE_ROWS * columns, columns,
                               min(rows - tile * NATIVE_ROWS, NATIVE_ROWS), there, k > start);
    }
}

/* c[i] = sum over the splits of partial[split, i], in their order; i in 0 .. count-1. */
kernel void native_matmul_sum(global const float *partial, global float *c, int count, int splits) {
    int item = get_global_id(0);
    int start = item * 256, end = min(start + 256, count);
    for (int i = start; i < end; i++) {
        float sum = 0;
        for (int split = 0; split < splits; split++) sum += partial[split * count + i];
        c[i] = sum;
    }
}
