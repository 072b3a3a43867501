/*
 * Matrix products of few rows, c = a b: a token of a text, a sample or two. Bound: b, which is read once, as it lies, stored as
 * CLT_STORAGE as a is; c as CLT_RESULT.
 *
 * CPU_FEW_ROWS, all rows of a, and CPU_FEW_VECTORS are defined in front of this text and stand in the kernels' names.
 */
#undef CPU_FEW_NAME
#define CPU_FEW_NAME_(name, rows, vectors) name##_##rows##x##vectors
#define CPU_FEW_PASTE(name, rows, vectors) CPU_FEW_NAME_(name, rows, vectors)
#define CPU_FEW_NAME(name) CPU_FEW_PASTE(name, CPU_FEW_ROWS, CPU_FEW_VECTORS)

#ifndef CPU_FEW_SHARED
#define CPU_FEW_SHARED
/* Steps of a sum that a row of b is asked for ahead: rows lie too far apart for the processor to guess the next. */
#define CPU_FEW_AHEAD 16

#if defined(__has_builtin) && !defined(__SPIR__) && !defined(__SPIRV__)
#if __has_builtin(__builtin_prefetch)
#define CPU_FEW_PREFETCH(p) __builtin_prefetch(p)
#endif
#endif
#ifndef CPU_FEW_PREFETCH
#define CPU_FEW_PREFETCH(p) (void)(p)
#endif
#endif

/* c[:, column ..] of V vectors, all of which exist: b's rows are contiguous. */
#define CPU_FEW_STRIP(V)                                                                                                     \
    {                                                                                                                        \
        cpu_vector sum[CPU_FEW_ROWS][V];                                                                                     \
        _Pragma("unroll") for (int i = 0; i < CPU_FEW_ROWS; i++)                                                             \
            _Pragma("unroll") for (int v = 0; v < (V); v++) sum[i][v] = (cpu_vector)(0);                                     \
        for (int s = 0; s < k; s++) {                                                                                        \
            global const CLT_REAL *row = b + s * n + column, *ahead = b + min(s + CPU_FEW_AHEAD, k - 1) * n + column;        \
            cpu_vector right[V];                                                                                             \
            _Pragma("unroll") for (int v = 0; v < (V); v++) {                                                                \
                CPU_FEW_PREFETCH(ahead + v * CPU_WIDTH);                                                                     \
                right[v] = CLT_LOAD_VECTOR(CPU_WIDTH, row, v * CPU_WIDTH);                                                   \
            }                                                                                                                \
            _Pragma("unroll") for (int i = 0; i < CPU_FEW_ROWS; i++)                                                         \
                _Pragma("unroll") for (int v = 0; v < (V); v++) sum[i][v] = (cpu_vector)(CLT_LOAD(a, i * k + s)) * right[v] + sum[i][v]; \
        }                                                                                                                    \
        for (int i = 0; i < CPU_FEW_ROWS; i++)                                                                               \
            for (int v = 0; v < (V); v++)                                                                                    \
                cpu_finish(c, i * n + column + v * CPU_WIDTH, column + v * CPU_WIDTH, sum[i][v], CPU_WIDTH CLT_EPILOGUE_ARGUMENTS); \
    }

/* b [k, n]. A work-item takes CPU_FEW_VECTORS of columns. */
CLT_ITEM void CPU_FEW_NAME(cpu_matmul_few_item)(int item, global const CLT_REAL *a, global const CLT_REAL *b, global CLT_RESULT_REAL *c, int n,
                                                int k CLT_EPILOGUE_PARAMETERS) {
    int column = item * CPU_FEW_VECTORS * CPU_WIDTH;
    if (column + CPU_FEW_VECTORS * CPU_WIDTH <= n) {
        CPU_FEW_STRIP(CPU_FEW_VECTORS)
        return;
    }
    for (; column + CPU_WIDTH <= n; column += CPU_WIDTH) CPU_FEW_STRIP(1)
    if (column == n) return;
    for (int i = 0; i < CPU_FEW_ROWS; i++) {
        float sums[CPU_WIDTH];
        for (int j = 0; j < CPU_WIDTH; j++) sums[j] = 0;
        for (int s = 0; s < k; s++)
            for (int j = 0; j < n - column; j++) sums[j] = fma(CLT_LOAD(a, i * k + s), CLT_LOAD(b, s * n + column + j), sums[j]);
        cpu_finish(c, i * n + column, column, cpu_load(0, sums), n - column CLT_EPILOGUE_ARGUMENTS);
    }
}
kernel void CPU_FEW_NAME(cpu_matmul_few)(global const CLT_REAL *a, global const CLT_REAL *b, global CLT_RESULT_REAL *c, int n, int k CLT_EPILOGUE_PARAMETERS) {
    CPU_FEW_NAME(cpu_matmul_few_item)(get_global_id(0), a, b, c, n, k CLT_EPILOGUE_ARGUMENTS);
}

/* The products of a's rows with row j and those behind it of b [n, k]; the last stands for those that are not there. */
static void CPU_FEW_NAME(cpu_few_dots)(global const CLT_REAL *a, global const CLT_REAL *b, int j, int n, int k, float *results) {
    enum { DOTS = 4, PART = 1024 };
    float total[DOTS][CPU_FEW_ROWS];
    global const CLT_REAL *row[DOTS];
    int s = 0;
    for (int d = 0; d < DOTS; d++) {
        row[d] = b + min(j + d, n - 1) * k;
        for (int i = 0; i < CPU_FEW_ROWS; i++) total[d][i] = 0;
    }
    while (s + CPU_WIDTH <= k) { /* a long sum is made of parts, whose errors are smaller */
        cpu_vector sum[DOTS][CPU_FEW_ROWS];
        _Pragma("unroll") for (int d = 0; d < DOTS; d++)
            _Pragma("unroll") for (int i = 0; i < CPU_FEW_ROWS; i++) sum[d][i] = (cpu_vector)(0);
        for (int end = min(k, s + PART); s + CPU_WIDTH <= end; s += CPU_WIDTH) {
            cpu_vector left[CPU_FEW_ROWS];
            _Pragma("unroll") for (int i = 0; i < CPU_FEW_ROWS; i++) left[i] = CLT_LOAD_VECTOR(CPU_WIDTH, a, i * k + s);
            _Pragma("unroll") for (int d = 0; d < DOTS; d++) {
                cpu_vector right = CLT_LOAD_VECTOR(CPU_WIDTH, row[d], s);
                _Pragma("unroll") for (int i = 0; i < CPU_FEW_ROWS; i++) sum[d][i] = left[i] * right + sum[d][i];
            }
        }
        for (int d = 0; d < DOTS; d++)
            for (int i = 0; i < CPU_FEW_ROWS; i++) total[d][i] += cpu_lanes(sum[d][i]);
    }
    for (int d = 0; d < DOTS; d++)
        for (int i = 0; i < CPU_FEW_ROWS; i++) {
            for (int rest = s; rest < k; rest++) total[d][i] = fma(CLT_LOAD(a, i * k + rest), CLT_LOAD(row[d], rest), total[d][i]);
            results[i * CPU_WIDTH + d] = total[d][i];
        }
}

/* b [n, k], as weights of linear layers lie. A work-item takes `run` vectors of columns. */
CLT_ITEM void CPU_FEW_NAME(cpu_matmul_few_turned_item)(int item, global const CLT_REAL *a, global const CLT_REAL *b, global CLT_RESULT_REAL *c, int n, int k,
                                                       int run CLT_EPILOGUE_PARAMETERS) {
    int end = min(n, (item + 1) * run * CPU_WIDTH);
    for (int column = item * run * CPU_WIDTH; column < end; column += CPU_WIDTH) {
        float results[CPU_FEW_ROWS * CPU_WIDTH];
        for (int d = 0; d < CPU_WIDTH; d += 4) CPU_FEW_NAME(cpu_few_dots)(a, b, column + d, n, k, results + d);
        for (int i = 0; i < CPU_FEW_ROWS; i++)
            cpu_finish(c, i * n + column, column, cpu_load(i, results), n - column CLT_EPILOGUE_ARGUMENTS);
    }
}
kernel void CPU_FEW_NAME(cpu_matmul_few_turned)(global const CLT_REAL *a, global const CLT_REAL *b, global CLT_RESULT_REAL *c, int n, int k,
                                                int run CLT_EPILOGUE_PARAMETERS) {
    CPU_FEW_NAME(cpu_matmul_few_turned_item)(get_global_id(0), a, b, c, n, k, run CLT_EPILOGUE_ARGUMENTS);
}
