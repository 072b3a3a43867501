/*
 * What goes along rows of n contiguous floats: softmax, log-softmax, cross-entropy, layer normalization and their
 * gradients; formulas are in cl/reference. A work-item takes `each` rows one after the other, in vectors. A row is read
 * from memory once, and from the cache in the passes that follow, where each exponential is taken once. Bound: memory.
 *
 * size: rows, n.
 */

/* row[i] and after; what is past the row's end counts as `filling`. */
static cpu_vector cpu_along_load(global const float *row, int i, int n, float filling) {
    if (i + CPU_WIDTH <= n) return cpu_load(0, row + i);
    float values[CPU_WIDTH];
    for (int k = 0; k < CPU_WIDTH; k++) values[k] = i + k < n ? row[i + k] : filling;
    return cpu_load(0, values);
}

static void cpu_along_store(cpu_vector value, global float *row, int i, int n) {
    if (i + CPU_WIDTH <= n) {
        cpu_store(value, 0, row + i);
        return;
    }
    float values[CPU_WIDTH];
    cpu_store(value, 0, values);
    for (int k = 0; i + k < n; k++) row[i + k] = values[k];
}

static float cpu_along_total(cpu_vector value) {
    float values[CPU_WIDTH], sum = 0;
    cpu_store(value, 0, values);
    for (int k = 0; k < CPU_WIDTH; k++) sum += values[k];
    return sum;
}

/* Numbers alone: NaN reaches the results by the sums of exponentials. */
static float cpu_along_max(global const float *x, int n) {
    cpu_vector largest = (cpu_vector)(-INFINITY);
    for (int i = 0; i < n; i += CPU_WIDTH) largest = fmax(largest, cpu_along_load(x, i, n, -INFINITY));
    float values[CPU_WIDTH], most = -INFINITY;
    cpu_store(largest, 0, values);
    for (int k = 0; k < CPU_WIDTH; k++) most = fmax(most, values[k]);
    return most;
}

/* The sum of exp(x - largest), whose terms are left in y unless that is NULL. */
static float cpu_along_exp(global const float *x, global float *y, float largest, int n) {
    cpu_vector sum = (cpu_vector)(0);
    for (int i = 0; i < n; i += CPU_WIDTH) {
        cpu_vector e = exp(cpu_along_load(x, i, n, -INFINITY) - largest);
        sum += e;
        if (y) cpu_along_store(e, y, i, n);
    }
    return cpu_along_total(sum);
}

static void cpu_along_scale(global float *y, float factor, int n) {
    for (int i = 0; i < n; i += CPU_WIDTH) cpu_along_store(cpu_along_load(y, i, n, 0) * factor, y, i, n);
}

/* ---- softmax ---- */

CLT_ITEM void cpu_softmax_item(int item, global const float *x, global float *y, int2 size, int each, int log_form) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const float *from = x + row * n;
        global float *to = y + row * n;
        float largest = cpu_along_max(from, n);
        float sum = cpu_along_exp(from, log_form ? 0 : to, largest, n);
        if (!log_form) {
            cpu_along_scale(to, 1 / sum, n);
            continue;
        }
        float shift = log(sum);
        for (int i = 0; i < n; i += CPU_WIDTH)
            cpu_along_store(cpu_along_load(from, i, n, 0) - largest - shift, to, i, n);
    }
}
kernel void cpu_softmax(global const float *x, global float *y, int2 size, int each, int log_form) {
    cpu_softmax_item(get_global_id(0), x, y, size, each, log_form);
}

CLT_ITEM void cpu_softmax_grad_item(int item, global const float *y, global const float *dy, global float *dx,
                                    int2 size, int each, int log_form) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const float *value = y + row * n, *gradient = dy + row * n;
        global float *to = dx + row * n;
        cpu_vector sum = (cpu_vector)(0);
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0);
            sum += log_form ? g : g * cpu_along_load(value, i, n, 0);
        }
        float total = cpu_along_total(sum);
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0), v = cpu_along_load(value, i, n, 0);
            cpu_along_store(log_form ? g - exp(v) * total : v * (g - total), to, i, n);
        }
    }
}
kernel void cpu_softmax_grad(global const float *y, global const float *dy, global float *dx, int2 size, int each,
                             int log_form) {
    cpu_softmax_grad_item(get_global_id(0), y, dy, dx, size, each, log_form);
}

/* ---- cross-entropy ---- */

CLT_ITEM void cpu_cross_entropy_item(int item, global const float *x, global const int *target, global float *losses,
                                     int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const float *from = x + row * n;
        int t = target[row];
        float largest = cpu_along_max(from, n);
        float sum = cpu_along_exp(from, 0, largest, n);
        losses[row] = t >= 0 && t < n ? log(sum) - (from[t] - largest) : NAN;
    }
}
kernel void cpu_cross_entropy(global const float *x, global const int *target, global float *losses, int2 size,
                              int each) {
    cpu_cross_entropy_item(get_global_id(0), x, target, losses, size, each);
}

CLT_ITEM void cpu_cross_entropy_grad_item(int item, global const float *x, global const int *target,
                                          global const float *dlosses, global float *dx, int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global float *to = dx + row * n;
        int t = target[row], known = t >= 0 && t < n;
        float largest = cpu_along_max(x + row * n, n);
        float sum = cpu_along_exp(x + row * n, to, largest, n);
        float factor = known ? dlosses[row] : NAN;
        cpu_along_scale(to, factor / sum, n);
        if (known) to[t] -= factor;
    }
}
kernel void cpu_cross_entropy_grad(global const float *x, global const int *target, global const float *dlosses,
                                   global float *dx, int2 size, int each) {
    cpu_cross_entropy_grad_item(get_global_id(0), x, target, dlosses, dx, size, each);
}

/* ---- layer normalization ---- */

/* Past a row's end stands the mean, which deviates by nothing. */
CLT_ITEM void cpu_layer_norm_stats_item(int item, global const float *x, global float *stats, int2 size, int each,
                                        float eps) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const float *from = x + row * n;
        cpu_vector sum = (cpu_vector)(0), squares = (cpu_vector)(0);
        for (int i = 0; i < n; i += CPU_WIDTH) sum += cpu_along_load(from, i, n, 0);
        float mean = cpu_along_total(sum) / n;
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector deviation = cpu_along_load(from, i, n, mean) - mean;
            squares += deviation * deviation;
        }
        stats[row] = mean;
        stats[size.s0 + row] = 1.0f / sqrt(cpu_along_total(squares) / n + eps);
    }
}
kernel void cpu_layer_norm_stats(global const float *x, global float *stats, int2 size, int each, float eps) {
    cpu_layer_norm_stats_item(get_global_id(0), x, stats, size, each, eps);
}

CLT_ITEM void cpu_layer_norm_grad_input_item(int item, global const float *x, global const float *stats,
                                             global const float *weight, global const float *dy, global float *dx,
                                             int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const float *from = x + row * n, *gradient = dy + row * n;
        global float *to = dx + row * n;
        float mean = stats[row], istd = stats[size.s0 + row];
        cpu_vector sum = (cpu_vector)(0), product = (cpu_vector)(0);
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0) * cpu_along_load(weight, i, n, 0);
            sum += g;
            product += g * (cpu_along_load(from, i, n, mean) - mean);
        }
        float mean_g = cpu_along_total(sum) / n, slope = cpu_along_total(product) * istd * istd / n;
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0) * cpu_along_load(weight, i, n, 0);
            cpu_vector deviation = cpu_along_load(from, i, n, mean) - mean;
            cpu_along_store(istd * (g - mean_g - deviation * slope), to, i, n);
        }
    }
}
kernel void cpu_layer_norm_grad_input(global const float *x, global const float *stats, global const float *weight,
                                      global const float *dy, global float *dx, int2 size, int each) {
    cpu_layer_norm_grad_input_item(get_global_id(0), x, stats, weight, dy, dx, size, each);
}
