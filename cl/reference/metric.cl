/*
 * Sums kept on the device from step to step. Scores, x, are stored as CLT_STORAGE.
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

/* Whether x[t] is the largest, the first of equals, of every `step`-th of x [classes] from `first` to before `end`; no NaN is
 * larger than anything, nor smaller. */
static int metric_is_right(global const CLT_REAL *x, int t, int classes, int first, int end, int step) {
    int right = t >= 0 && t < classes;
    float wanted = right ? CLT_LOAD(x, t) : 0;
    for (int c = first; c < end; c += step) right &= c < t ? wanted > CLT_LOAD(x, c) : wanted >= CLT_LOAD(x, c);
    return right;
}

/* The sum over the work-group, in its first work-item. */
CLT_TOGETHER int metric_group_count(int count, local int *counts) {
    int lane = get_local_id(0), lanes = get_local_size(0);
    counts[lane] = count;
    for (int half_way = CLT_GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_way && lane + half_way < lanes) counts[lane] += counts[lane + half_way];
    }
    return counts[0];
}

/* state[0] += the rows of x (rows, classes), from `start` to before `end`, whose largest is the target's. One work-group. */
kernel void ref_metric_correct(global int *state, global const CLT_REAL *x, global const int *target, int start, int end,
                               int classes) {
    local int counts[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0);
    if (get_group_id(0) > 0) return;
    int count = 0;
    for (int row = start + lane; row < end; row += lanes)
        count += metric_is_right(x + row * classes, target[row], classes, 0, classes, 1);
    count = metric_group_count(count, counts);
    if (lane == 0) state[0] += count;
}

/* wrong[row] = how many lanes saw a class, from `start` to before `end`, that is larger than the target's; added to what the
 * launches before found if `start` is not 0. One work-group a row. */
kernel void ref_metric_wrong(global const CLT_REAL *x, global const int *target, global int *wrong, int rows, int classes,
                             int start, int end) {
    local int counts[CLT_GROUP];
    int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
    if (row >= rows) return;
    int count = !metric_is_right(x + row * classes, target[row], classes, start + lane, end, lanes);
    count = metric_group_count(count, counts);
    if (lane == 0) wrong[row] = start == 0 ? count : wrong[row] + count;
}

/* state[0] += the rows, from `start` to before `end`, with nothing wrong. One work-group. */
kernel void ref_metric_count(global int *state, global const int *wrong, int start, int end) {
    local int counts[CLT_GROUP];
    int lane = get_local_id(0), lanes = get_local_size(0);
    if (get_group_id(0) > 0) return;
    int count = 0;
    for (int row = start + lane; row < end; row += lanes) count += wrong[row] == 0;
    count = metric_group_count(count, counts);
    if (lane == 0) state[0] += count;
}
