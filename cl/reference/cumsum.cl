/*
 * y[i] = x[0] + ... + x[i] along the middle of x [outer, n, inner], or from the other end; from `start` to before `end` of the way, behind what the
 * launches before made. A work-item a row.
 */
#define REF_CUMSUM(name, type)                                                                                                                    \
    kernel void name(global const type *x, global type *y, int rows, int n, int inner, int start, int end, int reverse) {                         \
        int row = get_global_id(0);                                                                                                               \
        if (row >= rows) return;                                                                                                                  \
        int first = row / inner * n * inner + row % inner + (reverse ? (n - 1) * inner : 0), step = reverse ? -inner : inner;                     \
        type sum = start == 0 ? 0 : y[first + (start - 1) * step];                                                                                \
        for (int i = start; i < end; i++) {                                                                                                       \
            sum += x[first + i * step];                                                                                                           \
            y[first + i * step] = sum;                                                                                                            \
        }                                                                                                                                         \
    }
REF_CUMSUM(ref_cumsum, float)
REF_CUMSUM(ref_cumsum_int, int)
