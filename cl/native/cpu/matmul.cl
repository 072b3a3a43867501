/*
 * Matrix product for devices whose work-items are threads with vector registers: c = a b,
 * transposition and broadcasting in the strides.
 *
 * Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a is packed into
 * panels of CPU_ROWS rows; a work-item packs CPU_DEPTH rows of CPU_COLUMNS columns of b,
 * which then stay in its first cache while a block of a's panels streams by from the second. Where
 * there are many blocks, b is put into panels first, so that its rows, which are far apart, are gone
 * over but once. Bound: the fused multiply-adds, as long as some ten panels of a share what was
 * packed.
 */

/*
 * packed[matrix, panel, k, i] = a[matrix, panel CPU_ROWS + i, k], zero past the last row.
 * size: matrices, M, K; step: strides of m and k. A work-item, CPU_DEPTH k of one panel.
 */
kernel void cpu_matmul_pack(global const float *a, global float *packed, int4 size, int2 step) {
    int rows = size.s1, depth = size.s2;
    int panels = (rows + CPU_ROWS - 1) / CPU_ROWS,
        chunks = (depth + CPU_DEPTH - 1) / CPU_DEPTH;
    int item = get_global_id(0);
    if (item >= size.s0 * panels * chunks) return;
    int chunk = item % chunks, panel = item / chunks % panels, matrix = item / chunks / panels;
    int m = panel * CPU_ROWS, start = chunk * CPU_DEPTH, count = min(depth - start, CPU_DEPTH);
    global const float *from = a + matrix * rows * depth + m * step.s0 + start * step.s1;
    global float *to = packed + ((matrix * panels + panel) * depth + start) * CPU_ROWS;
    int there = min(rows - m, CPU_ROWS);
    if (there == CPU_ROWS) {
        for (int k = 0; k < count; k++)
            for (int i = 0; i < CPU_ROWS; i++)
                to[k * CPU_ROWS + i] = from[i * step.s0 + k * step.s1];
        return;
    }
    for (int k = 0; k < count; k++)
        for (int i = 0; i < CPU_ROWS; i++)
            to[k * CPU_ROWS + i] = i < there ? from[i * step.s0 + k * step.s1] : 0;
}

/* Rows of b that are read side by side while they are put into panels. */
#define CPU_MATMUL_RUN 16

/*
 * panels[matrix, panel, k, j] = b[matrix, k, panel CPU_COLUMNS + j], where that column exists.
 * size: matrices, K, N. A work-item, CPU_MATMUL_RUN k of one matrix.
 */
kernel void cpu_matmul_panels(global const float *b, global float *to, int4 size) {
    int depth = size.s1, columns = size.s2, runs = (depth + CPU_MATMUL_RUN - 1) / CPU_MATMUL_RUN;
    int panels = (columns + CPU_COLUMNS - 1) / CPU_COLUMNS, item = get_global_id(0);
    if (item >= size.s0 * runs) return;
    int matrix = item / runs, start = item % runs * CPU_MATMUL_RUN,
        end = min(start + CPU_MATMUL_RUN, depth);
    b += matrix * depth * columns;
    to += matrix * panels * depth * CPU_COLUMNS;
    for (int n = 0; n < columns; n += CPU_COLUMNS, to += depth * CPU_COLUMNS) {
        int there = min(columns - n, CPU_COLUMNS);
        for (int k = start; k < end; k++) {
            if (there == CPU_COLUMNS) {
                cpu_store(cpu_load(0, b + k * columns + n), 2 * k, to);
                cpu_store(cpu_load(1, b + k * columns + n), 2 * k + 1, to);
                continue;
            }
            for (int j = 0; j < there; j++) to[k * CPU_COLUMNS + j] = b[k * columns + n + j];
        }
    }
}

/* packed[k, j] = b[k, j] of `count` k and CPU_COLUMNS columns of which `there` exist; the others
 * get zeros. */
static void cpu_matmul_pack_columns(global const float *b, int2 step, int count, int there,
                                       float *packed) {
    int done = 0;
    if (there == CPU_COLUMNS && step.s1 == 1) {
        for (int k = 0; k < count; k++) {
            cpu_store(cpu_load(0, b + k * step.s0), 0, packed + k * CPU_COLUMNS);
            cpu_store(cpu_load(1, b + k * step.s0), 1, packed + k * CPU_COLUMNS);
        }
        return;
    }
    if (there == CPU_COLUMNS && step.s0 == 1) {
        for (done = 0; done + 8 <= count; done += 8)
            for (int j = 0; j < CPU_COLUMNS; j += 8) {
                float8 r[8];
                _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] =
                    vload8(0, b + (j + i) * step.s1 + done);
                cpu_transpose(r);
                _Pragma("unroll") for (int i = 0; i < 8; i++)
                    vstore8(r[i], 0, packed + (done + i) * CPU_COLUMNS + j);
            }
    }
    for (int k = done; k < count; k++)
        for (int j = 0; j < CPU_COLUMNS; j++)
            packed[k * CPU_COLUMNS + j] = j < there ? b[k * step.s0 + j * step.s1] : 0;
}

/*
 * One tile over `count` k, added to what c holds if `add`. Rows and columns past those that
 * are there are computed and not written.
 */
static void cpu_matmul_tile(global const float *a, const float *b, int count, global float *c,
                               int stride, int rows, int columns, bool add) {
    cpu_vector sum[CPU_ROWS][2];
    CPU_CLEAR(sum);
    for (int k = 0; k < count; k++) {
        cpu_vector left = cpu_load(2 * k, b), right = cpu_load(2 * k + 1, b);
        CPU_STEP(sum, a[k * CPU_ROWS + i], left, right)
    }
    if (rows == CPU_ROWS && columns == CPU_COLUMNS) {
        _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
            global float *to = c + i * stride;
            cpu_store(add ? sum[i][0] + cpu_load(0, to) : sum[i][0], 0, to);
            cpu_store(add ? sum[i][1] + cpu_load(1, to) : sum[i][1], 1, to);
        }
        return;
    }
    float values[CPU_ROWS * CPU_COLUMNS];
    _Pragma("unroll") for (int i = 0; i < CPU_ROWS; i++) {
        cpu_store(sum[i][0], 2 * i, values);
        cpu_store(sum[i][1], 2 * i + 1, values);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            float value = values[i * CPU_COLUMNS + j];
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
kernel void cpu_matmul(global const float *packed, global const float *b, global float *c, int4 size,
                          int4 b_step, int8 batch_size, int8 a_batch, int8 b_batch, int4 plan) {
    int rows = size.s0, columns = size.s1, depth = size.s2;
    int panels = (columns + CPU_COLUMNS - 1) / CPU_COLUMNS,
        tiles = (rows + CPU_ROWS - 1) / CPU_ROWS;
    int blocks = (tiles + plan.s0 - 1) / plan.s0;
    int item = get_global_id(0);
    if (item >= plan.s1 * size.s3 * blocks * panels) return;
    int panel = item % panels, block = item / panels % blocks;
    int batch = item / panels / blocks % size.s3, split = item / panels / blocks / size.s3;
    int n = panel * CPU_COLUMNS, there = min(columns - n, CPU_COLUMNS);
    int first = block * plan.s0, last = min(first + plan.s0, tiles);
    int start = split * plan.s2, end = min(start + plan.s2, depth);

    global const float *a =
        packed + clt_batch_offset(batch, batch_size, a_batch) * tiles * CPU_ROWS * depth;
    b += clt_batch_offset(batch, batch_size, b_batch) + panel * b_step.s2;
    c += (split * size.s3 + batch) * rows * columns + n;
    float buffer[CPU_DEPTH * CPU_COLUMNS];
    for (int k = start; k < end; k += CPU_DEPTH) {
        int count = min(end - k, CPU_DEPTH);
        cpu_matmul_pack_columns(b + k * b_step.s0, b_step.s01, count, there, buffer);
        for (int tile = first; tile < last; tile++)
            cpu_matmul_tile(a + (tile * depth + k) * CPU_ROWS, buffer, count,
                               c + tile * CPU_ROWS * columns, columns,
                               min(rows - tile * CPU_ROWS, CPU_ROWS), there, k > start);
    }
}

/* c[i] = sum over the splits of partial[split, i], in their order; i in 0 .. count-1. */
kernel void cpu_matmul_sum(global const float *partial, global float *c, int count, int splits) {
    int item = get_global_id(0);
    int start = item * 256, end = min(start + 256, count);
    for (int i = start; i < end; i++) {
        float sum = 0;
        for (int split = 0; split < splits; split++) sum += partial[split * count + i];
        c[i] = sum;
    }
}
