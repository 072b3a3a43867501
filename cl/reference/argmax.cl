/*
 * y[row] = the place of the first of the largest along the middle of x [outer, n, inner]; NaN is larger than anything. From `start` to before `end`,
 * and what the launches before found if `start` is not 0. A work-item a row.
 */
#define REF_ARGMAX(name, type, is_larger)                                                                                                         \
    kernel void name(global const type *x, global int *y, int rows, int n, int inner, int start, int end) {                                       \
        int row = get_global_id(0);                                                                                                               \
        if (row >= rows) return;                                                                                                                  \
        int begin = row / inner * n * inner + row % inner, best = start == 0 ? 0 : y[row];                                                        \
        type largest = x[begin + best * inner];                                                                                                   \
        for (int i = start; i < end; i++) {                                                                                                       \
            type value = x[begin + i * inner];                                                                                                    \
            if (is_larger) {                                                                                                                      \
                largest = value;                                                                                                                  \
                best = i;                                                                                                                         \
            }                                                                                                                                     \
        }                                                                                                                                         \
        y[row] = best;                                                                                                                            \
    }
REF_ARGMAX(ref_argmax, float, value > largest || (isnan(value) && !isnan(largest)))
REF_ARGMAX(ref_argmax_int, int, value > largest)
