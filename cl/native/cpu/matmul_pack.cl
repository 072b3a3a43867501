/*
 * Operands of a matrix product, stored as CLT_STORAGE, in the order in which the tiles of matmul.cl read them, as f32.
 * Bound: the memory, as sums of 4 x 16 or 8 x 8 elements are transposed in registers.
 */

/* Steps of a sum that a work-item packs. */
#define CPU_MATMUL_PACK_RUN 128

/* Rows of b that are read side by side while they are put into panels. */
#define CPU_MATMUL_ROWS_RUN 16

/* In each four lanes: the first two of a and b in turn, or the last two; then by pairs. */
#define CPU_MATMUL_LOW(a, b)                                                                            \
    (float16)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5, a.s8, b.s8, a.s9, b.s9, a.sc, b.sc, a.sd, \
              b.sd)
#define CPU_MATMUL_HIGH(a, b)                                                                           \
    (float16)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7, a.sa, b.sa, a.sb, b.sb, a.se, b.se, a.sf, \
              b.sf)
#define CPU_MATMUL_LOW_PAIR(a, b)                                                                       \
    (float16)(a.s01, b.s01, a.s45, b.s45, a.s89, b.s89, a.scd, b.scd)
#define CPU_MATMUL_HIGH_PAIR(a, b)                                                                      \
    (float16)(a.s23, b.s23, a.s67, b.s67, a.sab, b.sab, a.sef, b.sef)

/* to[k step + i] = row i [k] for four rows of 16. */
static void cpu_matmul_turn(global const CLT_REAL *r0, global const CLT_REAL *r1, global const CLT_REAL *r2,
                            global const CLT_REAL *r3, global float *to, int step) {
    float16 v0 = CLT_LOAD_VECTOR(16, r0, 0), v1 = CLT_LOAD_VECTOR(16, r1, 0), v2 = CLT_LOAD_VECTOR(16, r2, 0),
            v3 = CLT_LOAD_VECTOR(16, r3, 0);
    float16 a0 = CPU_MATMUL_LOW(v0, v1), a1 = CPU_MATMUL_HIGH(v0, v1);
    float16 a2 = CPU_MATMUL_LOW(v2, v3), a3 = CPU_MATMUL_HIGH(v2, v3);
    float16 b[4] = {CPU_MATMUL_LOW_PAIR(a0, a2), CPU_MATMUL_HIGH_PAIR(a0, a2),
                    CPU_MATMUL_LOW_PAIR(a1, a3), CPU_MATMUL_HIGH_PAIR(a1, a3)};
    _Pragma("unroll") for (int j = 0; j < 4; j++) {
        vstore4(b[j].s0123, 0, to + j * step);
        vstore4(b[j].s4567, 0, to + (4 + j) * step);
        vstore4(b[j].s89ab, 0, to + (8 + j) * step);
        vstore4(b[j].scdef, 0, to + (12 + j) * step);
    }
}

/* to[k rows + i] = from[i stride + k] for four rows; of those that are not `there`, the last. */
static void cpu_matmul_pack_four(global const CLT_REAL *from, int stride, int there, int count,
                                 global float *to, int rows) {
    global const CLT_REAL *r0 = from, *r1 = from + min(1, there - 1) * stride,
                       *r2 = from + min(2, there - 1) * stride, *r3 = from + min(3, there - 1) * stride;
    int k = 0;
    for (; k + 16 <= count; k += 16)
        cpu_matmul_turn(r0 + k, r1 + k, r2 + k, r3 + k, to + k * rows, rows);
    for (; k < count; k++) vstore4((float4)(CLT_LOAD(r0, k), CLT_LOAD(r1, k), CLT_LOAD(r2, k), CLT_LOAD(r3, k)), 0, to + k * rows);
}

/* Where step k of the first tile of the matrix lies in what is packed; a step of `rows` floats. The steps of a
 * chunk lie together, tile by tile; *length: how many there are. */
static int cpu_matmul_packed_at(int matrix, int k, int4 size, int rows, int *length) {
    int tiles = (size.s1 + rows - 1) / rows, chunk = k / size.s3 * size.s3;
    *length = min(size.s2 - chunk, size.s3);
    return ((matrix * size.s2 + chunk) * tiles + k - chunk) * rows;
}

/*
 * packed[matrix, chunk, tile, k, i] = a[matrix, tile rows + i, chunk depth + k], for rows past the last
 * that one again; the last chunk of k may be shorter.
 * size: matrices, M, K, depth, which is a multiple of CPU_MATMUL_PACK_RUN; rows: of a tile, 4 or more; begin: a's first element
 * that is packed; stride: unused, for a transposed a. A work-item: CPU_MATMUL_PACK_RUN k of one tile.
 */
CLT_ITEM void cpu_matmul_pack_item(int item, global const CLT_REAL *a, global float *packed, int4 size,
                                   int rows, int begin) {
    int tiles = (size.s1 + rows - 1) / rows;
    int runs = (size.s2 + CPU_MATMUL_PACK_RUN - 1) / CPU_MATMUL_PACK_RUN, length;
    if (item >= size.s0 * tiles * runs) return;
    int tile = item % tiles, run = item / tiles % runs, matrix = item / tiles / runs;
    int k = run * CPU_MATMUL_PACK_RUN, count = min(size.s2 - k, CPU_MATMUL_PACK_RUN), m = tile * rows;
    global float *to = packed + cpu_matmul_packed_at(matrix, k, size, rows, &length);
    for (int i = 0; i < rows; i += 4) {
        int row = min(i, rows - 4), first = min(m + row, size.s1 - 1);
        cpu_matmul_pack_four(a + begin + (matrix * size.s1 + first) * size.s2 + k, size.s2, size.s1 - first, count,
                             to + tile * length * rows + row, rows);
    }
}
kernel void cpu_matmul_pack(global const CLT_REAL *a, global float *packed, int4 size, int rows, int begin, int stride) {
    cpu_matmul_pack_item(get_global_id(0), a, packed, size, rows, begin);
}

/* The same of an a that lies transposed, as [K, stride], of which M columns are packed. A work-item: CPU_MATMUL_ROWS_RUN k of all tiles. */
CLT_ITEM void cpu_matmul_pack_transposed_item(int item, global const CLT_REAL *a, global float *packed,
                                              int4 size, int rows, int begin, int stride) {
    int tiles = (size.s1 + rows - 1) / rows;
    int runs = (size.s2 + CPU_MATMUL_ROWS_RUN - 1) / CPU_MATMUL_ROWS_RUN, length;
    if (item >= size.s0 * runs) return;
    int matrix = item / runs, k = item % runs * CPU_MATMUL_ROWS_RUN,
        count = min(size.s2 - k, CPU_MATMUL_ROWS_RUN);
    global float *to = packed + cpu_matmul_packed_at(matrix, k, size, rows, &length);
    a += begin + (matrix * size.s2 + k) * stride;
    for (int tile = 0; tile < tiles; tile++, to += length * rows, a += rows)
        for (int i = 0; i < rows; i += 4) {
            int row = min(i, rows - 4), there = size.s1 - tile * rows - row;
            for (int j = 0; j < count; j++) {
                if (there >= 4) vstore4(CLT_LOAD_VECTOR(4, a, j * stride + row), 0, to + j * rows + row);
                else for (int e = 0; e < 4; e++)
                    to[j * rows + row + e] = CLT_LOAD(a, j * stride + min(row + e, row + there - 1));
            }
        }
}
kernel void cpu_matmul_pack_transposed(global const CLT_REAL *a, global float *packed, int4 size, int rows, int begin, int stride) {
    cpu_matmul_pack_transposed_item(get_global_id(0), a, packed, size, rows, begin, stride);
}

/* Rows of b, CPU_MATMUL_ROWS_RUN of them, into all their panels. */
static void cpu_matmul_split_rows(global const CLT_REAL *b, global float *to, int depth, int columns,
                                  int start, int panel) {
    int end = min(start + CPU_MATMUL_ROWS_RUN, depth);
    for (int n = 0; n < columns; n += panel, to += depth * panel)
        for (int k = start; k < end; k++) {
            int j = 0, there = min(columns - n, panel);
            for (; j + CPU_WIDTH <= there; j += CPU_WIDTH)
                cpu_store(CLT_LOAD_VECTOR(CPU_WIDTH, b, k * columns + n + j), 0, to + k * panel + j);
            for (; j < there; j++) to[k * panel + j] = CLT_LOAD(b, k * columns + n + j);
        }
}

/* CPU_MATMUL_ROWS_RUN k of all columns of b, which lies transposed, into all panels. */
static void cpu_matmul_split_columns(global const CLT_REAL *b, global float *to, int depth, int columns,
                                     int start, int panel) {
    int end = min(start + CPU_MATMUL_ROWS_RUN, depth);
    bool whole = end - start == 16;
    for (int n = 0; n < columns; n += panel, to += depth * panel) {
        int j = 0, there = min(columns - n, panel);
        global const CLT_REAL *from = b + n * depth + start;
        for (; whole && j + 4 <= there; j += 4, from += 4 * depth)
            cpu_matmul_turn(from, from + depth, from + 2 * depth, from + 3 * depth,
                            to + start * panel + j, panel);
        for (; j < there; j++)
            for (int k = start; k < end; k++) to[k * panel + j] = CLT_LOAD(b, (n + j) * depth + k);
    }
}

/*
 * to[matrix, panel, k, j] = b[matrix, k, panel columns + j], where that column exists.
 * size: matrices, K, N, columns of a panel; transposed: b lies as [N, K]. A work-item:
 * CPU_MATMUL_ROWS_RUN k of one matrix.
 */
CLT_ITEM void cpu_matmul_panels_item(int item, global const CLT_REAL *b, global float *to, int4 size,
                                     int transposed) {
    int depth = size.s1, columns = size.s2, panel = size.s3;
    int runs = (depth + CPU_MATMUL_ROWS_RUN - 1) / CPU_MATMUL_ROWS_RUN;
    if (item >= size.s0 * runs) return;
    int matrix = item / runs, start = item % runs * CPU_MATMUL_ROWS_RUN;
    b += matrix * depth * columns;
    to += matrix * depth * ((columns + panel - 1) / panel * panel);
    if (transposed) cpu_matmul_split_columns(b, to, depth, columns, start, panel);
    else cpu_matmul_split_rows(b, to, depth, columns, start, panel);
}
kernel void cpu_matmul_panels(global const CLT_REAL *b, global float *to, int4 size, int transposed) {
    cpu_matmul_panels_item(get_global_id(0), b, to, size, transposed);
}
