/*
 * Softmax, cross-entropy, accuracy and layer normalization along the contiguous rows of matrices [rows, n], for devices whose work-items are lanes; formulas are in
 * cl/reference. GPU_LANES neighbouring work-items have a row, and keep what they read of it, so that memory is read once; a work-group has
 * GPU_ITEMS / GPU_LANES rows. Sums are trees whose order depends on n alone. Bound: memory, once.
 *
 * x, y, dy and dx are stored as CLT_STORAGE, all else as f32. size: rows, n. In front: fours.cl, GPU_ITEMS, GPU_FIXED_GROUP, GPU_LANES, GPU_VECTOR, and
 * GPU_LOADS of a work-item, with GPU_LANES GPU_VECTOR GPU_LOADS >= n.
 */
#define ALONG_EACH(k) _Pragma("unroll") for (int k = 0; k < GPU_LOADS; k++)

#if GPU_VECTOR == 4
#define ALONG_SUM(x)         ((x).s0 + (x).s1 + ((x).s2 + (x).s3))
#define ALONG_MAX(x)         clt_max(clt_max((x).s0, (x).s1), clt_max((x).s2, (x).s3))
#define ALONG_IS(place, one) (-convert_float4((int4)(place, place + 1, place + 2, place + 3) == (int4)(one)))
#define ALONG_WEIGHT(p, i)   gpu_load_four_f32(p, i)
#define ALONG_BEATS(x, place, one, t) \
    (-convert_float4(~select((float4)(one) >= (x), (float4)(one) > (x), (int4)(place, place + 1, place + 2, place + 3) < (int4)(t))))
#else
#define ALONG_SUM(x)         (x)
#define ALONG_MAX(x)         (x)
#define ALONG_IS(place, one) ((place) == (one) ? 1.0f : 0.0f)
#define ALONG_WEIGHT(p, i)   (p)[i]
#define ALONG_BEATS(x, place, one, t) (((place) < (t) ? (one) > (x) : (one) >= (x)) ? 0.0f : 1.0f)
#endif

/* The work-item's row, its lane there, and how long the row is: 0 behind the last. */
typedef struct along {
    int row, lane, n;
} along;

static along along_of(int2 size) {
    int row = get_group_id(0) * (GPU_ITEMS / GPU_LANES) + get_local_id(0) / GPU_LANES;
    return (along){min(row, size.s0 - 1), get_local_id(0) % GPU_LANES, row < size.s0 ? size.s1 : 0};
}

/* The first element of the lane's part k. */
static int along_place(along a, int k) {
    return (k * GPU_LANES + a.lane) * GPU_VECTOR;
}

/* The lane's parts of a row x; `rest` where the row has ended. */
static void along_load(along a, global const CLT_REAL *x, float rest, GPU_PART *parts) {
    ALONG_EACH(k) {
        parts[k] = rest;
        if (along_place(a, k) < a.n) parts[k] = GPU_LOAD_PART(x, along_place(a, k));
    }
}

static void along_store(along a, global CLT_REAL *y, const GPU_PART *parts) {
    ALONG_EACH(k)
    if (along_place(a, k) < a.n) GPU_STORE_PART(y, along_place(a, k), parts[k]);
}

/* Over the row, in each of its work-items. */
CLT_TOGETHER float along_sum(along a, GPU_PART part, local float *scratch) {
    int id = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE); /* the last call's result may still be being read */
    scratch[id] = ALONG_SUM(part);
    for (int step = GPU_LANES / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (a.lane < step) scratch[id] += scratch[id + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[id - a.lane];
}

CLT_TOGETHER float along_max(along a, const GPU_PART *parts, local float *scratch) {
    int id = get_local_id(0);
    float largest = -INFINITY;
    ALONG_EACH(k) largest = clt_max(largest, ALONG_MAX(parts[k]));
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[id] = largest;
    for (int step = GPU_LANES / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (a.lane < step) scratch[id] = clt_max(scratch[id], scratch[id + step]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[id - a.lane];
}

/* ---- softmax ---- */

kernel GPU_FIXED_GROUP void gpu_softmax(global const CLT_REAL *x, global CLT_REAL *y, int2 size, int log_form) {
    local float scratch[GPU_ITEMS];
    GPU_PART parts[GPU_LOADS], sum = 0;
    along a = along_of(size);
    along_load(a, x + a.row * size.s1, -INFINITY, parts);
    float largest = along_max(a, parts, scratch);
    ALONG_EACH(k) {
        GPU_PART power = exp(parts[k] - largest);
        sum += power;
        if (log_form) parts[k] -= largest;
        else parts[k] = power;
    }
    float total = along_sum(a, sum, scratch);
    ALONG_EACH(k) {
        if (log_form) parts[k] -= log(total);
        else parts[k] /= total;
    }
    along_store(a, y + a.row * size.s1, parts);
}

kernel GPU_FIXED_GROUP void gpu_softmax_grad(global const CLT_REAL *y, global const CLT_REAL *dy, global CLT_REAL *dx, int2 size, int log_form) {
    local float scratch[GPU_ITEMS];
    GPU_PART values[GPU_LOADS], parts[GPU_LOADS], sum = 0;
    along a = along_of(size);
    along_load(a, y + a.row * size.s1, 0, values);
    along_load(a, dy + a.row * size.s1, 0, parts);
    ALONG_EACH(k) {
        if (log_form) sum += parts[k];
        else sum += parts[k] * values[k];
    }
    float total = along_sum(a, sum, scratch);
    ALONG_EACH(k) {
        if (log_form) parts[k] -= exp(values[k]) * total;
        else parts[k] = values[k] * (parts[k] - total);
    }
    along_store(a, dx + a.row * size.s1, parts);
}

/* ---- cross-entropy: x (N, C), target [N] ---- */

kernel GPU_FIXED_GROUP void gpu_cross_entropy(global const CLT_REAL *x, global const int *target, global float *losses, int2 size) {
    local float scratch[GPU_ITEMS];
    GPU_PART parts[GPU_LOADS], sum = 0;
    along a = along_of(size);
    x += a.row * size.s1;
    along_load(a, x, -INFINITY, parts);
    float largest = along_max(a, parts, scratch);
    ALONG_EACH(k) sum += exp(parts[k] - largest);
    float total = along_sum(a, sum, scratch);
    int t = target[a.row];
    if (a.lane == 0 && a.n) losses[a.row] = t >= 0 && t < a.n ? log(total) - (CLT_LOAD(x, t) - largest) : NAN;
}

kernel GPU_FIXED_GROUP void gpu_cross_entropy_grad(global const CLT_REAL *x, global const int *target, global const float *dlosses, global CLT_REAL *dx,
                                                   int2 size) {
    local float scratch[GPU_ITEMS];
    GPU_PART parts[GPU_LOADS], sum = 0;
    along a = along_of(size);
    along_load(a, x + a.row * size.s1, -INFINITY, parts);
    float largest = along_max(a, parts, scratch);
    ALONG_EACH(k) {
        parts[k] = exp(parts[k] - largest);
        sum += parts[k];
    }
    float total = along_sum(a, sum, scratch);
    int t = target[a.row];
    float factor = t >= 0 && t < a.n ? dlosses[a.row] : NAN;
    ALONG_EACH(k) parts[k] = factor * (parts[k] / total - ALONG_IS(along_place(a, k), t));
    along_store(a, dx + a.row * size.s1, parts);
}

/* ---- accuracy: x (N, C), target [N] ---- */

/* wrong[row]: whether the target is no class, or another one is larger, or equal and before it, or NaN. */
kernel GPU_FIXED_GROUP void gpu_metric_wrong(global const CLT_REAL *x, global const int *target, global int *wrong, int2 size) {
    local float scratch[GPU_ITEMS];
    GPU_PART parts[GPU_LOADS], beaten = 0;
    along a = along_of(size);
    x += a.row * size.s1;
    int t = target[a.row];
    bool is_class = t >= 0 && t < a.n;
    float one = is_class ? CLT_LOAD(x, t) : 0;
    along_load(a, x, -INFINITY, parts);
    ALONG_EACH(k) beaten += ALONG_BEATS(parts[k], along_place(a, k), one, t);
    float by = along_sum(a, beaten, scratch);
    if (a.lane == 0 && a.n) wrong[a.row] = by > 0 || !is_class;
}

/* ---- layer normalization: statistics [2, rows] ---- */

/* As group_layer_norm_stats (cl/workgroup/layer_norm.cl); the second pass is over what is kept. */
kernel GPU_FIXED_GROUP void gpu_layer_norm_stats(global const CLT_REAL *x, global float *stats, int2 size, float eps) {
    local float scratch[GPU_ITEMS];
    GPU_PART parts[GPU_LOADS], sum = 0, squares = 0;
    along a = along_of(size);
    x += a.row * size.s1;
    float first = CLT_LOAD(x, 0);
    along_load(a, x, first, parts);
    ALONG_EACH(k) sum += parts[k] - first;
    float mean = first + along_sum(a, sum, scratch) / size.s1;
    ALONG_EACH(k)
    if (along_place(a, k) < a.n) squares += (parts[k] - mean) * (parts[k] - mean);
    float var = along_sum(a, squares, scratch) / size.s1;
    if (a.lane == 0 && a.n) {
        stats[a.row] = mean;
        stats[size.s0 + a.row] = 1.0f / sqrt(var + eps);
    }
}

/* dx = istd (g - (sum g + xhat sum(g xhat)) / n) with g = dy weight, xhat = (x - mean) istd */
kernel GPU_FIXED_GROUP void gpu_layer_norm_grad_input(global const CLT_REAL *x, global const float *stats, global const float *weight, global const CLT_REAL *dy,
                                                      global CLT_REAL *dx, int2 size) {
    local float scratch[GPU_ITEMS];
    GPU_PART xhat[GPU_LOADS], parts[GPU_LOADS], sum = 0, products = 0;
    along a = along_of(size);
    float mean = stats[a.row], istd = stats[size.s0 + a.row];
    along_load(a, x + a.row * size.s1, 0, xhat);
    along_load(a, dy + a.row * size.s1, 0, parts);
    ALONG_EACH(k) {
        xhat[k] = (xhat[k] - mean) * istd;
        if (along_place(a, k) < a.n) parts[k] *= ALONG_WEIGHT(weight, along_place(a, k));
        sum += parts[k];
        products += parts[k] * xhat[k];
    }
    float g = along_sum(a, sum, scratch) / size.s1, product = along_sum(a, products, scratch) / size.s1;
    ALONG_EACH(k) parts[k] = istd * (parts[k] - g - xhat[k] * product);
    along_store(a, dx + a.row * size.s1, parts);
}
