/*
 * Softmax and log-softmax along the middle of x [outer, n, inner], and their gradients. Row r of the
 * outer * inner rows begins at element (r / inner) n inner + r % inner; its elements are `inner` apart.
 *
 *     softmax:     y = exp(x - max) / sum exp(x - max);   dx = y (dy - sum(dy y))
 *     log_softmax: y = x - max - log sum exp(x - max);    dx = dy - exp(y) sum(dy)
 *
 * `log_form` tells which. A work-item a row.
 */

kernel void ref_softmax(global const CLT_REAL *x, global CLT_REAL *y, CLT_INDEX rows, CLT_INDEX n, CLT_INDEX inner,
                        int log_form) {
    CLT_INDEX row = get_global_id(0);
    if (row >= rows) return;
    CLT_INDEX begin = row / inner * n * inner + row % inner, end = begin + n * inner;
    float largest = -INFINITY, sum = 0;
    for (CLT_INDEX i = begin; i < end; i += inner) largest = clt_max(largest, CLT_LOAD(x, i));
    for (CLT_INDEX i = begin; i < end; i += inner) sum += exp(CLT_LOAD(x, i) - largest);
    for (CLT_INDEX i = begin; i < end; i += inner) {
        float z = CLT_LOAD(x, i) - largest;
        CLT_STORE(y, i, log_form ? z - log(sum) : exp(z) / sum);
    }
}

kernel void ref_softmax_grad(global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx, CLT_INDEX rows,
                             CLT_INDEX n, CLT_INDEX inner, int log_form) {
    CLT_INDEX row = get_global_id(0);
    if (row >= rows) return;
    CLT_INDEX begin = row / inner * n * inner + row % inner, end = begin + n * inner;
    float sum = 0;
    for (CLT_INDEX i = begin; i < end; i += inner) sum += log_form ? CLT_LOAD(dy, i) : CLT_LOAD(dy, i) * CLT_LOAD(y, i);
    for (CLT_INDEX i = begin; i < end; i += inner) {
        float g = CLT_LOAD(dy, i), value = CLT_LOAD(y, i);
        CLT_STORE(dx, i, log_form ? g - exp(value) * sum : value * (g - sum));
    }
}
