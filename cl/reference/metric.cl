/*
 * Sums kept on the device from step to step.
 */

/* state [2] is a sum and its compensation (Kahan, "Further remarks on reducing truncation errors", 1965):
 * state[0] += weight value[0]. With `finite`, state[2] += weight instead for a value that is not. One work-item. */
kernel void ref_metric_add(global float *state, global const float *value, float weight, int finite) {
    if (get_global_id(0) > 0) return;
    if (finite && !isfinite(value[0])) {
        state[2] += weight;
        return;
    }
    float sum = state[0], term = weight * value[0] - state[1];
    float next = sum + term;
    state[1] = (next - sum) - term;
    state[0] = next;
}

/* Whether the largest of x [classes], the first of equals, is that at t; no NaN is larger than anything, nor smaller. */
static int metric_is_right(global const float *x, int t, int classes) {
    int right = t >= 0 && t < classes;
    float wanted = right ? x[t] : 0;
    for (int c = 0; c < classes; c++) right &= c < t ? wanted > x[c] : wanted >= x[c];
    return right;
}

/* state[0] += the rows of x (rows, classes) whose largest is the target's. One work-group. */
kernel void ref_metric_correct(global int *state, global const float *x, global const int *target, int rows,
                               int classes) {
    local int counts[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0);
    if (get_group_id(0) > 0) return;
    int count = 0;
    for (int row = lane; row < rows; row += lanes) count += metric_is_right(x + row * classes, target[row], classes);
    counts[lane] = count;
    for (int half_way = CLT_GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_way && lane + half_way < lanes) counts[lane] += counts[lane + half_way];
    }
    if (lane == 0) state[0] += counts[0];
}
