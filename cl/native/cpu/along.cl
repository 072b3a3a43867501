/*
 * What goes along rows of n contiguous elements: softmax, log-softmax, cross-entropy, layer normalization and their
 * gradients; formulas are in cl/reference. A work-item takes `each` rows one after the other, in vectors. A row is read
 * from memory once, and from the cache in the passes that follow. Bound: memory.
 *
 * x, y and their gradients are stored as CLT_STORAGE; losses, statistics and weights as f32.
 *
 * size: rows, n.
 */

/* 1 where a row of the result keeps what is put into it as it is: exponentials are taken once. In 16 bits they are taken twice. */
#define CPU_ALONG_KEEPS CLT_JOIN(CPU_ALONG_KEEPS_, CLT_STORAGE)
#define CPU_ALONG_KEEPS_f32 1
#define CPU_ALONG_KEEPS_f16 0
#define CPU_ALONG_KEEPS_bf16 0

/* row[i] and after; what is past the row's end counts as `filling`. */
#define CPU_ALONG_LOAD(name, type, width)                                                                                \
    static cpu_vector name(global const CLT_JOIN(clt_, type) * row, int i, int n, float filling) {                       \
        if (i + width <= n) return CLT_JOIN(clt_load_vector_, type)(width, row, i);                                      \
        float values[width];                                                                                             \
        for (int k = 0; k < width; k++) values[k] = i + k < n ? CLT_JOIN(clt_load_, type)(row, i + k) : filling;         \
        return cpu_load(0, values);                                                                                      \
    }
CPU_ALONG_LOAD(cpu_along_load, CLT_STORAGE, CPU_WIDTH)
CPU_ALONG_LOAD(cpu_along_weight, f32, CPU_WIDTH)

static void cpu_along_store(cpu_vector value, global CLT_REAL *row, int i, int n) {
    if (i + CPU_WIDTH <= n) {
        CLT_STORE_VECTOR(CPU_WIDTH, row, i, value);
        return;
    }
    float values[CPU_WIDTH];
    cpu_store(value, 0, values);
    for (int k = 0; i + k < n; k++) CLT_STORE(row, i + k, values[k]);
}

static float cpu_along_total(cpu_vector value) {
    float values[CPU_WIDTH], sum = 0;
    cpu_store(value, 0, values);
    for (int k = 0; k < CPU_WIDTH; k++) sum += values[k];
    return sum;
}

/* Numbers alone: NaN reaches the results by the sums of exponentials. */
static float cpu_along_max(global const CLT_REAL *x, int n) {
    cpu_vector largest = (cpu_vector)(-INFINITY);
    for (int i = 0; i < n; i += CPU_WIDTH) largest = fmax(largest, cpu_along_load(x, i, n, -INFINITY));
    float values[CPU_WIDTH], most = -INFINITY;
    cpu_store(largest, 0, values);
    for (int k = 0; k < CPU_WIDTH; k++) most = fmax(most, values[k]);
    return most;
}

static cpu_vector cpu_along_term(global const CLT_REAL *x, float largest, int i, int n) {
    return exp(cpu_along_load(x, i, n, -INFINITY) - largest);
}

/* The sum of exp(x - largest), whose terms are left in y, if that keeps them, unless it is NULL. */
static float cpu_along_exp(global const CLT_REAL *x, global CLT_REAL *y, float largest, int n) {
    cpu_vector sum = (cpu_vector)(0);
    for (int i = 0; i < n; i += CPU_WIDTH) {
        cpu_vector e = cpu_along_term(x, largest, i, n);
        sum += e;
        if (CPU_ALONG_KEEPS && y) cpu_along_store(e, y, i, n);
    }
    return cpu_along_total(sum);
}

/* y = exp(x - largest) factor, behind cpu_along_exp. */
static void cpu_along_scale(global const CLT_REAL *x, global CLT_REAL *y, float largest, float factor, int n) {
    for (int i = 0; i < n; i += CPU_WIDTH) {
        cpu_vector e = CPU_ALONG_KEEPS ? cpu_along_load(y, i, n, 0) : cpu_along_term(x, largest, i, n);
        cpu_along_store(e * factor, y, i, n);
    }
}

/* ---- softmax ---- */

CLT_ITEM void cpu_softmax_item(int item, global const CLT_REAL *x, global CLT_REAL *y, int2 size, int each, int log_form) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *from = x + row * n;
        global CLT_REAL *to = y + row * n;
        float largest = cpu_along_max(from, n);
        float sum = cpu_along_exp(from, log_form ? 0 : to, largest, n);
        if (!log_form) {
            cpu_along_scale(from, to, largest, 1 / sum, n);
            continue;
        }
        float shift = log(sum);
        for (int i = 0; i < n; i += CPU_WIDTH)
            cpu_along_store(cpu_along_load(from, i, n, 0) - largest - shift, to, i, n);
    }
}
kernel void cpu_softmax(global const CLT_REAL *x, global CLT_REAL *y, int2 size, int each, int log_form) {
    cpu_softmax_item(get_global_id(0), x, y, size, each, log_form);
}

CLT_ITEM void cpu_softmax_grad_item(int item, global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx,
                                    int2 size, int each, int log_form) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *value = y + row * n, *gradient = dy + row * n;
        global CLT_REAL *to = dx + row * n;
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
kernel void cpu_softmax_grad(global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx, int2 size, int each,
                             int log_form) {
    cpu_softmax_grad_item(get_global_id(0), y, dy, dx, size, each, log_form);
}

/* ---- cross-entropy ---- */

CLT_ITEM void cpu_cross_entropy_item(int item, global const CLT_REAL *x, global const int *target, global float *losses,
                                     int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *from = x + row * n;
        int t = target[row];
        float largest = cpu_along_max(from, n);
        float sum = cpu_along_exp(from, 0, largest, n);
        losses[row] = t >= 0 && t < n ? log(sum) - (CLT_LOAD(from, t) - largest) : NAN;
    }
}
kernel void cpu_cross_entropy(global const CLT_REAL *x, global const int *target, global float *losses, int2 size,
                              int each) {
    cpu_cross_entropy_item(get_global_id(0), x, target, losses, size, each);
}

CLT_ITEM void cpu_cross_entropy_grad_item(int item, global const CLT_REAL *x, global const int *target,
                                          global const float *dlosses, global CLT_REAL *dx, int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *from = x + row * n;
        global CLT_REAL *to = dx + row * n;
        int t = target[row], known = t >= 0 && t < n;
        float largest = cpu_along_max(from, n);
        float sum = cpu_along_exp(from, to, largest, n);
        float factor = known ? dlosses[row] : NAN;
        cpu_along_scale(from, to, largest, factor / sum, n);
        if (!known) continue;
        float share = CPU_ALONG_KEEPS ? CLT_LOAD(to, t) : exp(CLT_LOAD(from, t) - largest) * (factor / sum);
        CLT_STORE(to, t, share - factor);
    }
}
kernel void cpu_cross_entropy_grad(global const CLT_REAL *x, global const int *target, global const float *dlosses,
                                   global CLT_REAL *dx, int2 size, int each) {
    cpu_cross_entropy_grad_item(get_global_id(0), x, target, dlosses, dx, size, each);
}

/* ---- layer normalization ---- */

/* Past a row's end stands the mean, which deviates by nothing. */
CLT_ITEM void cpu_layer_norm_stats_item(int item, global const CLT_REAL *x, global float *stats, int2 size, int each,
                                        float eps) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *from = x + row * n;
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
kernel void cpu_layer_norm_stats(global const CLT_REAL *x, global float *stats, int2 size, int each, float eps) {
    cpu_layer_norm_stats_item(get_global_id(0), x, stats, size, each, eps);
}

CLT_ITEM void cpu_layer_norm_grad_input_item(int item, global const CLT_REAL *x, global const float *stats,
                                             global const float *weight, global const CLT_REAL *dy, global CLT_REAL *dx,
                                             int2 size, int each) {
    int n = size.s1;
    for (int row = item * each; row < min(item * each + each, size.s0); row++) {
        global const CLT_REAL *from = x + row * n, *gradient = dy + row * n;
        global CLT_REAL *to = dx + row * n;
        float mean = stats[row], istd = stats[size.s0 + row];
        cpu_vector sum = (cpu_vector)(0), product = (cpu_vector)(0);
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0) * cpu_along_weight(weight, i, n, 0);
            sum += g;
            product += g * (cpu_along_load(from, i, n, mean) - mean);
        }
        float mean_g = cpu_along_total(sum) / n, slope = cpu_along_total(product) * istd * istd / n;
        for (int i = 0; i < n; i += CPU_WIDTH) {
            cpu_vector g = cpu_along_load(gradient, i, n, 0) * cpu_along_weight(weight, i, n, 0);
            cpu_vector deviation = cpu_along_load(from, i, n, mean) - mean;
            cpu_along_store(istd * (g - mean_g - deviation * slope), to, i, n);
        }
    }
}
kernel void cpu_layer_norm_grad_input(global const CLT_REAL *x, global const float *stats, global const float *weight,
                                      global const CLT_REAL *dy, global CLT_REAL *dx, int2 size, int each) {
    cpu_layer_norm_grad_input_item(get_global_id(0), x, stats, weight, dy, dx, size, each);
}
