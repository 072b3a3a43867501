/*
 * Matrix product for devices whose work-items are threads with vector registers: c = a b,
 * transposition and broadcasting in the strides.
 *
 * Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008). A tile is
 * CPU_MATMUL_ROWS x CPU_MATMUL_VECTORS vectors, all sums in registers: in each step a row's value is
 * broadcast and multiplied by the step's vectors. A work-item computes a run of tiles below one another:
 * it packs CPU_MATMUL_DEPTH rows of their columns of b, which stay near while the tiles' rows of a,
 * packed before or as they lie, stream by; meanwhile the sums wait in private memory. Bound: the fused
 * multiply-adds, as long as some ten tiles share what was packed.
 *
 * The larger helpers are not inlined, for a driver compiles the kernel around them several times.
 *
 * CPU_MATMUL_ROWS, CPU_MATMUL_VECTORS, CPU_MATMUL_DEPTH and CPU_MATMUL_KIND are defined in front of this text, anew for
 * each variant of it, and are parts of its names. A kind tells how the operands lie, by two more: `packed`, a as
 * cpu_matmul_pack leaves it; `panels`, that and b as cpu_matmul_panels leaves it (CPU_MATMUL_PANELS is 1); `direct`, both
 * as they are (CPU_MATMUL_DIRECT is 1). What lies as it is is stored as CLT_STORAGE, c as CLT_RESULT, what was packed and
 * parts of a sum as f32.
 */
#ifndef CPU_MATMUL_SHARED
#define CPU_MATMUL_SHARED

#define CPU_MATMUL_PASTE_(name, kind, rows, vectors, depth) name##_##kind##_##rows##x##vectors##x##depth
#define CPU_MATMUL_PASTE(name, kind, rows, vectors, depth)  CPU_MATMUL_PASTE_(name, kind, rows, vectors, depth)
#define CPU_MATMUL_NAME(name)                                                                           \
    CPU_MATMUL_PASTE(name, CPU_MATMUL_KIND, CPU_MATMUL_ROWS, CPU_MATMUL_VECTORS, CPU_MATMUL_DEPTH)
/* What an operand is stored as, LEFT or RIGHT; see below. */
#define CPU_MATMUL_REAL(side) CLT_JOIN(clt_, CPU_MATMUL_##side)
#define CPU_MATMUL_COLUMNS (CPU_MATMUL_VECTORS * CPU_WIDTH)
#define CPU_MATMUL_SUMS    (CPU_MATMUL_ROWS * CPU_MATMUL_COLUMNS)

/* The rows of the last tile in a column are rounded up to a multiple of this. */
#define CPU_MATMUL_PART (CPU_MATMUL_ROWS % 3 == 0 ? CPU_MATMUL_ROWS / 3 : CPU_MATMUL_ROWS / 2)

/* Most tiles in a block, for their sums are in private memory. */
#define CPU_MATMUL_BLOCK 24

/* Has `there` columns of `rows` rows brought near, for they will soon be read or written. */
#if defined(__has_builtin) && !defined(__SPIR__) && !defined(__SPIRV__)
#if __has_builtin(__builtin_prefetch)
#define CPU_MATMUL_FETCH(c, stride, rows, there)      \
    for (int i_ = 0; i_ < (rows); i_++)               \
        for (int j_ = 0; j_ < (there); j_ += 16) __builtin_prefetch((c) + i_ * (stride) + j_, 1)
#endif
#endif
#ifndef CPU_MATMUL_FETCH
#define CPU_MATMUL_FETCH(c, stride, rows, there) (void)(c)
#endif

/* packed[k columns + j] = b[k + j stride] for eight j and `count` k. */
static void cpu_matmul_gather_eight(global const CLT_REAL *b, int stride, int count, float *packed,
                                    int columns) {
    int k = 0;
    for (; k + 8 <= count; k += 8) {
        float8 r[8];
        _Pragma("unroll") for (int i = 0; i < 8; i++) r[i] = CLT_LOAD_VECTOR(8, b, i * stride + k);
        cpu_transpose(r);
        _Pragma("unroll") for (int i = 0; i < 8; i++) vstore8(r[i], 0, packed + (k + i) * columns);
    }
    for (; k < count; k++)
        for (int j = 0; j < 8; j++) packed[k * columns + j] = CLT_LOAD(b, j * stride + k);
}

/*
 * kept[i, v] = sum over `count` k of a[row i, k] b[k, v], from 0 if `first`, else added to what is there. R rows, V
 * vectors. Rows are packed, or as they lie; of the latter those past the `last` are that one again.
 */
#define CPU_MATMUL_TILE(name, R, V)                                                                      \
    __attribute__((noinline)) static void CPU_MATMUL_NAME(name)(                                         \
        global const CPU_MATMUL_REAL(LEFT) *a, int2 step, int last, CPU_MATMUL_SPACE const float *b, int count, \
        float *kept, bool first) {                                                                       \
        cpu_vector sum[R][V];                                                                            \
        int at[R];                                                                                       \
        _Pragma("unroll") for (int i = 0; i < (R); i++) at[i] =                                          \
            CPU_MATMUL_DIRECT ? min(i, last) * step.s0 : i;                                              \
        _Pragma("unroll") for (int i = 0; i < (R); i++) _Pragma("unroll") for (int v = 0; v < (V); v++)  \
            sum[i][v] = first ? (cpu_vector)(0) : cpu_load(i * CPU_MATMUL_VECTORS + v, kept);            \
        for (int k = 0; k < count; k++) {                                                                \
            cpu_vector right[V];                                                                         \
            _Pragma("unroll") for (int v = 0; v < (V); v++) right[v] =                                   \
                cpu_load(k * CPU_MATMUL_VECTORS + v, b);                                                 \
            _Pragma("unroll") for (int i = 0; i < (R); i++) {                                            \
                cpu_vector left = (cpu_vector)(CLT_JOIN(clt_load_, CPU_MATMUL_LEFT)(a, at[i]));          \
                _Pragma("unroll") for (int v = 0; v < (V); v++) sum[i][v] = left * right[v] + sum[i][v]; \
            }                                                                                            \
            a += CPU_MATMUL_DIRECT ? step.s1 : CPU_MATMUL_ROWS;                                          \
        }                                                                                                \
        _Pragma("unroll") for (int i = 0; i < (R); i++) _Pragma("unroll") for (int v = 0; v < (V); v++)  \
            cpu_store(sum[i][v], i * CPU_MATMUL_VECTORS + v, kept);                                      \
    }

/* The tile with as many rows and vectors as are needed, or a few more. */
#define CPU_MATMUL_FITTING_ROWS(vectors, rows, arguments)                                                \
    {                                                                                                    \
        if (rows <= CPU_MATMUL_PART) CPU_MATMUL_NAME(cpu_matmul_few##vectors) arguments;                 \
        else if (rows <= 2 * CPU_MATMUL_PART) CPU_MATMUL_NAME(cpu_matmul_most##vectors) arguments;       \
        else CPU_MATMUL_NAME(cpu_matmul_all##vectors) arguments;                                         \
    }
#define CPU_MATMUL_FITTING(rows, columns, arguments)                                                     \
    {                                                                                                    \
        if (columns <= CPU_WIDTH) CPU_MATMUL_FITTING_ROWS(_1, rows, arguments)                           \
        else CPU_MATMUL_FITTING_ROWS(, rows, arguments)                                                  \
    }

#endif

/* Where the columns of b are that a tile reads, and the types that a and b are stored as. */
#undef CPU_MATMUL_SPACE
#undef CPU_MATMUL_LEFT
#undef CPU_MATMUL_RIGHT
#if CPU_MATMUL_PANELS
#define CPU_MATMUL_SPACE global
#define CPU_MATMUL_RIGHT f32
#else
#define CPU_MATMUL_SPACE private
#define CPU_MATMUL_RIGHT CLT_STORAGE
#endif
#if CPU_MATMUL_DIRECT
#define CPU_MATMUL_LEFT CLT_STORAGE
#else
#define CPU_MATMUL_LEFT f32
#endif

CPU_MATMUL_TILE(cpu_matmul_few, CPU_MATMUL_PART, CPU_MATMUL_VECTORS)
CPU_MATMUL_TILE(cpu_matmul_most, 2 * CPU_MATMUL_PART, CPU_MATMUL_VECTORS)
CPU_MATMUL_TILE(cpu_matmul_all, CPU_MATMUL_ROWS, CPU_MATMUL_VECTORS)
CPU_MATMUL_TILE(cpu_matmul_few_1, CPU_MATMUL_PART, 1)
CPU_MATMUL_TILE(cpu_matmul_most_1, 2 * CPU_MATMUL_PART, 1)
CPU_MATMUL_TILE(cpu_matmul_all_1, CPU_MATMUL_ROWS, 1)

#if !CPU_MATMUL_PANELS
/* packed[k, j] = b[k, j] for `count` k and `there` columns; zeros in the vectors' rest. */
__attribute__((noinline)) static void CPU_MATMUL_NAME(cpu_matmul_gather)(
    global const CLT_REAL *b, int2 step, int count, int there, float *packed) {
    int end = there <= CPU_WIDTH ? CPU_WIDTH : CPU_MATMUL_COLUMNS, rest = 0;
    if (step.s1 == 1) {
        rest = there / CPU_WIDTH * CPU_WIDTH;
        for (int k = 0; k < count; k++)
            for (int j = 0; j < rest; j += CPU_WIDTH)
                cpu_store(CLT_LOAD_VECTOR(CPU_WIDTH, b, k * step.s0 + j), 0, packed + k * CPU_MATMUL_COLUMNS + j);
    } else if (step.s0 == 1) {
        rest = there / 8 * 8;
        for (int j = 0; j < rest; j += 8)
            cpu_matmul_gather_eight(b + j * step.s1, step.s1, count, packed + j, CPU_MATMUL_COLUMNS);
    }
    for (int k = 0; k < count && rest < end; k++)
        for (int j = rest; j < end; j++)
            packed[k * CPU_MATMUL_COLUMNS + j] = j < there ? CLT_LOAD(b, k * step.s0 + j * step.s1) : 0;
}
#endif

/* A tile's sums, `rows` of them, to where c's or the split's part for it begins. */
__attribute__((noinline)) static void CPU_MATMUL_NAME(cpu_matmul_write)(const float *kept, global CLT_RESULT_REAL *c, int at,
                                                                        int stride, int column, int rows, int there,
                                                                        bool partial CLT_EPILOGUE_PARAMETERS) {
    for (int i = 0; i < rows; i++, at += stride, kept += CPU_MATMUL_COLUMNS)
        for (int j = 0; j < there; j += CPU_WIDTH) {
            cpu_vector value = cpu_load(0, kept + j);
            if (partial) cpu_store(value, 0, (global float *)c + at + j);
            else cpu_finish(c, at + j, column + j, value, there - j CLT_EPILOGUE_ARGUMENTS);
        }
}

/*
 * c[split, batch, m, n] = sum over the split's k of a[batch, m, k] b[batch, k, n].
 * size: M, N, K, batch. a_step: strides of m and k, if a is read as it lies, else the row of c that is row 0 here;
 * b_step: strides of k, n and a panel of n. a_batch, b_batch count elements.
 * plan: tiles in a block, splits, k in a split, stride of c's rows. With several splits c holds partial
 * sums. A work-item computes a block of one panel of columns; items that follow one another share the block
 * of a.
 */
CLT_ITEM void CPU_MATMUL_NAME(cpu_matmul_item)(int item, global const CPU_MATMUL_REAL(LEFT) *a,
                                               global const CPU_MATMUL_REAL(RIGHT) *b,
                                               global CLT_RESULT_REAL *c, int4 size, int2 a_step, int4 b_step,
                                               int8 batch_size, int8 a_batch, int8 b_batch,
                                               int4 plan CLT_EPILOGUE_PARAMETERS) {
    int rows = size.s0, columns = size.s1, depth = size.s2;
    int panels = (columns + CPU_MATMUL_COLUMNS - 1) / CPU_MATMUL_COLUMNS,
        tiles = (rows + CPU_MATMUL_ROWS - 1) / CPU_MATMUL_ROWS;
    int blocks = (tiles + plan.s0 - 1) / plan.s0;
    if (item >= plan.s1 * size.s3 * blocks * panels) return;
    int panel = item % panels, block = item / panels % blocks;
    int batch = item / panels / blocks % size.s3, split = item / panels / blocks / size.s3;
    int n = panel * CPU_MATMUL_COLUMNS, there = min(columns - n, CPU_MATMUL_COLUMNS);
    int first = block * plan.s0, last = min(first + plan.s0, tiles);
    int start = split * plan.s2, end = min(start + plan.s2, depth);
    int stride = plan.s3;

    a += clt_batch_offset(batch, batch_size, a_batch);
    b += clt_batch_offset(batch, batch_size, b_batch) + panel * b_step.s2;
    int from = (split * size.s3 + batch) * rows * stride + n; /* in c */
    if (!CPU_MATMUL_DIRECT) from += a_step.s0 * stride;
#if !CPU_MATMUL_PANELS
    cpu_vector gathered_vectors[CPU_MATMUL_DEPTH * CPU_MATMUL_VECTORS]; /* vectors: to be aligned */
    private float *gathered = (private float *)gathered_vectors;
#endif
    cpu_vector kept_vectors[CPU_MATMUL_BLOCK * CPU_MATMUL_SUMS / CPU_WIDTH];
    private float *kept = (private float *)kept_vectors;
    for (int k = start; k < end; k += CPU_MATMUL_DEPTH) {
        int count = min(end - k, CPU_MATMUL_DEPTH);
        bool ends = k + count >= end;
        global const CPU_MATMUL_REAL(RIGHT) *right = b + k * b_step.s0;
#if CPU_MATMUL_PANELS
        global const float *near = right;
#else
        private const float *near = gathered;
        CPU_MATMUL_NAME(cpu_matmul_gather)(right, b_step.s01, count, there, gathered);
#endif
        /* Rows of the next gathering, which lie far apart, that each tile brings near. */
        int share = b_step.s1 == 1 && (bool)!CPU_MATMUL_PANELS ? (count + last - first - 1) / (last - first) : 0;
        for (int tile = first; tile < last; tile++) {
            int m = tile * CPU_MATMUL_ROWS, high = min(rows - m, CPU_MATMUL_ROWS);
            int soon = min(k + count + (tile - first) * share, end);
            private float *sums = kept + (tile - first) * CPU_MATMUL_SUMS;
            global const CPU_MATMUL_REAL(LEFT) *left = CPU_MATMUL_DIRECT ? a + m * a_step.s0 + k * a_step.s1
                                                                                   : a + k * tiles * CPU_MATMUL_ROWS + m * count;
            CPU_MATMUL_FETCH(b + soon * b_step.s0, b_step.s0, min(share, end - soon), there);
            if (ends) CPU_MATMUL_FETCH(c + from + m * stride, stride, high, there);
            CPU_MATMUL_FITTING(high, there, (left, a_step, high - 1, near, count, sums, k == start))
            if (ends)
                CPU_MATMUL_NAME(cpu_matmul_write)(sums, c, from + m * stride, stride, n, high, there,
                                                  plan.s1 > 1 CLT_EPILOGUE_ARGUMENTS);
        }
    }
}
kernel void CPU_MATMUL_NAME(cpu_matmul)(global const CPU_MATMUL_REAL(LEFT) *a, global const CPU_MATMUL_REAL(RIGHT) *b,
                                        global CLT_RESULT_REAL *c, int4 size, int2 a_step, int4 b_step, int8 batch_size,
                                        int8 a_batch, int8 b_batch, int4 plan CLT_EPILOGUE_PARAMETERS) {
    CPU_MATMUL_NAME(cpu_matmul_item)(get_global_id(0), a, b, c, size, a_step, b_step, batch_size, a_batch,
                                     b_batch, plan CLT_EPILOGUE_ARGUMENTS);
}
