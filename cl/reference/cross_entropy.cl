/*
 * Softmax and negative log-likelihood in one. x (N, C), target [N]:
 *
 *     losses[n] = log sum exp(x[n] - max) - (x[n, t] - max)
 *     dx[n, c]  = dlosses[n] (exp(x[n, c] - max) / sum exp(x[n] - max) - [c == t])
 *
 * with t = target[n]; NaN where t is no class. A work-item a row. x and dx are stored as CLT_STORAGE.
 */

kernel void ref_cross_entropy(global const CLT_REAL *x, global const int *target, global float *losses, int rows, int classes) {
    int row = get_global_id(0);
    if (row >= rows) return;
    x += row * classes;
    int t = target[row];
    float largest = -INFINITY, sum = 0;
    for (int c = 0; c < classes; c++) largest = clt_max(largest, CLT_LOAD(x, c));
    for (int c = 0; c < classes; c++) sum += exp(CLT_LOAD(x, c) - largest);
    losses[row] = t >= 0 && t < classes ? log(sum) - (CLT_LOAD(x, t) - largest) : NAN;
}

kernel void ref_cross_entropy_grad(global const CLT_REAL *x, global const int *target, global const float *dlosses,
                                   global CLT_REAL *dx, int rows, int classes) {
    int row = get_global_id(0);
    if (row >= rows) return;
    x += row * classes;
    dx += row * classes;
    int t = target[row];
    float largest = -INFINITY, sum = 0, factor = t >= 0 && t < classes ? dlosses[row] : NAN;
    for (int c = 0; c < classes; c++) largest = clt_max(largest, CLT_LOAD(x, c));
    for (int c = 0; c < classes; c++) sum += exp(CLT_LOAD(x, c) - largest);
    for (int c = 0; c < classes; c++) CLT_STORE(dx, c, factor * (exp(CLT_LOAD(x, c) - largest) / sum - (c == t ? 1.0f : 0.0f)));
}
