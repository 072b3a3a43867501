/*
 * The optimizer, on flat tensors [count] that hold many parameters: one work-item an element, of CLT_FLOATS in those that compute each alone, but for the
 * norm. `hyper` is what the host sets before a step; its places are those of runtime/ops/ops.h.
 *
 * Replicas on unlike devices must keep the same bits. So a product and a sum are rounded each by itself, which OPTIMIZER_EXACT in front of
 * them asks for, sums are added in one order, and no function is called whose result devices may round otherwise.
 */

#define OPTIMIZER_EXACT _Pragma("OPENCL FP_CONTRACT OFF")

/* Where CLT_STORAGE is a type of 16 bits, updates store a copy of the parameters in it, too: `copy`, behind the states. */
#define OPTIMIZER_COPIES_f32 0
#define OPTIMIZER_COPIES_f16 1
#define OPTIMIZER_COPIES_bf16 1
#if CLT_JOIN(OPTIMIZER_COPIES_, CLT_STORAGE)
#define OPTIMIZER_COPY_PARAMETER global CLT_REAL *copy,
#define OPTIMIZER_COPY(i) CLT_STORE_FLOATS(copy, i, params[i])
#else
#define OPTIMIZER_COPY_PARAMETER
#define OPTIMIZER_COPY(i)
#endif

#define OPTIMIZER_LR 0
#define OPTIMIZER_BIAS1 1 /* 1 - beta1^t */
#define OPTIMIZER_BIAS2 2 /* sqrt(1 - beta2^t) */
#define OPTIMIZER_KEEP 3  /* 0 in the first micro-batch of an update */
#define OPTIMIZER_FIRST 4 /* 1 in the first update */
#define OPTIMIZER_SCALE 5 /* of gradients, beside grad_scale */
#define OPTIMIZER_STEP 6  /* the bits of an int: which update this is */

/* The gradient scaled and clipped to +-limit, which may be infinite. NaN stays. */
static CLT_FLOATS optimizer_clip(CLT_FLOATS g, float scale, float limit) {
    g *= scale;
    return g > limit ? (CLT_FLOATS)(limit) : g < -limit ? (CLT_FLOATS)(-limit) : g;
}

/* acc = keep acc + x. With keep = 0 what acc held does not matter, not even NaN. */
kernel void ref_accumulate(global CLT_FLOATS *acc, global const CLT_FLOATS *x, global const float *hyper, int count) {
    OPTIMIZER_EXACT
    int i = get_global_id(0);
    if (i >= count) return;
    float keep = hyper[OPTIMIZER_KEEP];
    acc[i] = keep == 0 ? x[i] : keep * acc[i] + x[i];
}

/* hyper[OPTIMIZER_SCALE] = 1 / samples[0]; 0 for no samples, whose gradients are zeros. One work-item. */
kernel void ref_hyper_scale(global float *hyper, global const float *samples) {
    if (get_global_id(0) == 0) hyper[OPTIMIZER_SCALE] = samples[0] > 0 ? 1 / samples[0] : 0;
}

/* By its bits, whatever a compiler takes floats for. */
static int optimizer_not_finite(float x) {
    return (as_int(x) & 0x7f800000) == 0x7f800000;
}

/* partial[c] = 0 if the gradients in chunk c of `length` are finite, else NaN. One work-item a chunk. */
CLT_ITEM void ref_finite_item(int c, global const float *grads, global float *partial, int count, int chunks, int length) {
    int most = 0;
    if (c >= chunks) return;
    grads += c * length;
    for (int k = 0; k < min(length, count - c * length); k++) most = max(most, as_int(grads[k]) & 0x7fffffff);
    partial[c] = most >= 0x7f800000 ? NAN : 0;
}
kernel void ref_finite(global const float *grads, global float *partial, int count, int chunks, int length) {
    ref_finite_item(get_global_id(0), grads, partial, count, chunks, length);
}

/* The sum of what is in scratch, in the same order in groups of any size, in every work-item. */
CLT_TOGETHER float optimizer_group_sum(local float *scratch) {
    for (int half_way = CLT_GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int lane = get_local_id(0); lane < half_way; lane += get_local_size(0)) scratch[lane] += scratch[lane + half_way];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

/* hyper[OPTIMIZER_SCALE] /= scale[0], a power of two. One work-item. */
kernel void ref_hyper_unscale(global float *hyper, global const float *scale) {
    if (get_global_id(0) == 0) hyper[OPTIMIZER_SCALE] /= scale[0];
}

/* The rules of PyTorch's GradScaler. One work-item. */
kernel void ref_loss_scale(global float *scale, global const float *factor) {
    if (get_global_id(0) > 0) return;
    if (factor[0] < 0) {
        scale[0] *= 0.5f;
        scale[1] = 0;
    } else if (++scale[1] >= 2000) {
        if (scale[0] < 0x1p127f) scale[0] *= 2.0f;
        scale[1] = 0;
    }
}

/* partial[c] = sum of the squares of the clipped gradients in chunk c of `length`; if they are guarded, NaN where one is not
 * finite before it is clipped, and with guarded = 2 zero else. One work-group a chunk. */
kernel void ref_norm_squared(global const float *grads, global const float *hyper, global float *partial, int count,
                             int chunks, int length, float grad_scale, float clip_value, int guarded) {
    OPTIMIZER_EXACT
    local float scratch[CLT_GROUP];
    int chunk = get_group_id(0), start = chunk * length;
    if (chunk >= chunks) return;
    for (int lane = get_local_id(0); lane < CLT_GROUP; lane += get_local_size(0)) {
        float sum = 0, scale = grad_scale * hyper[OPTIMIZER_SCALE];
        int broken = 0;
        for (int k = lane; k < min(length, count - start); k += CLT_GROUP) {
            float g = optimizer_clip(grads[start + k], scale, clip_value);
            sum += g * g;
            broken |= optimizer_not_finite(grads[start + k]);
        }
        scratch[lane] = guarded && broken ? NAN : guarded == 2 ? 0 : sum;
    }
    float total = optimizer_group_sum(scratch);
    if (get_local_id(0) == 0) partial[chunk] = total;
}

/* total[0] = sum of partial[0 … chunks - 1]. One work-group. */
kernel void ref_norm_total(global const float *partial, global float *total, int chunks) {
    local float scratch[CLT_GROUP];
    if (get_group_id(0) > 0) return;
    for (int lane = get_local_id(0); lane < CLT_GROUP; lane += get_local_size(0)) {
        float sum = 0;
        for (int c = lane; c < chunks; c += CLT_GROUP) sum += partial[c];
        scratch[lane] = sum;
    }
    float sum = optimizer_group_sum(scratch);
    if (get_local_id(0) == 0) total[0] = sum;
}

/* factor[0] = min(1, clip_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; NaN if the norm is not
 * finite, so that gradients that overflowed show. One work-item. */
kernel void ref_clip_scale(global const float *squared, global float *factor, float clip_norm) {
    if (get_global_id(0) > 0) return;
    float ratio = clip_norm / (sqrt(squared[0]) + 1e-6f);
    factor[0] = isfinite(squared[0]) ? min(1.0f, ratio) : NAN;
}

/* 1 - beta^n, where rest is 1 - beta: from that of half of n, and of n - 1, without a difference of what is nearly equal. */
static float optimizer_correction(float rest, int n) {
    OPTIMIZER_EXACT
    float q = 0;
    for (uint bit = 1u << 30; bit > 0; bit >>= 1) {
        q = q * (2 - q);
        if (n & bit) q = q + rest * (1 - q);
    }
    return q;
}

/* The factor as ref_clip_scale; but where the norm is not finite, or once it was and `stops`, it is -1: the update is left out, and
 * written down in record (runtime/ops/ops.h). Bias corrections are those of the updates that were made. One work-item. */
kernel void ref_guard(global const float *squared, global int *record, global float *hyper, global float *factor,
                      float clip_norm, float rest1, float rest2, int stops) {
    if (get_global_id(0) > 0) return;
    int step = as_int(hyper[OPTIMIZER_STEP]), made = step - record[0];
    factor[0] = -1;
    if (stops && record[1]) return;
    if (optimizer_not_finite(squared[0])) {
        record[0]++;
        if (!record[1]) record[1] = step;
        record[2] = step;
        return;
    }
    factor[0] = isinf(clip_norm) ? 1.0f : min(1.0f, clip_norm / (sqrt(squared[0]) + 1e-6f));
    if (made == step) return; /* the host's are exact */
    hyper[OPTIMIZER_BIAS1] = optimizer_correction(rest1, made);
    hyper[OPTIMIZER_BIAS2] = sqrt(optimizer_correction(rest2, made));
}

/* state = 0 if the update is left out: what came of gradients that are not finite does not stay. */
kernel void ref_clear_if_skipped(global CLT_FLOATS *state, global const float *factor, int count) {
    int i = get_global_id(0);
    if (i < count && factor[0] < 0) state[i] = 0;
}

/* average += rest (params - average), where rest is 1 - decay; as it is if the update is left out. */
kernel void ref_average(global CLT_FLOATS *average, global const CLT_FLOATS *params, global const float *factor, int count, float rest) {
    OPTIMIZER_EXACT
    int i = get_global_id(0), leaves = factor[0] < 0;
    if (i >= count) return;
    CLT_FLOATS old = average[i], made = old + rest * (params[i] - old);
    average[i] = leaves ? old : made;
}

/*
 * Updates leave all as it is where the factor is negative. What is the same for all elements is computed before the first
 * of them is read, and nothing is read, computed by a root or stored by a branch: so compilers that make loops of work-items
 * have vectors in them.
 * lr below is hyper's times lr_factor.
 *
 * torch.optim.SGD without momentum: g += weight_decay p; p -= lr g.
 */
kernel void ref_sgd(global CLT_FLOATS *params, global const CLT_FLOATS *grads, global const float *hyper,
                    global const float *factor, OPTIMIZER_COPY_PARAMETER int count, float grad_scale, float clip_value,
                    float lr_factor, float weight_decay) {
    OPTIMIZER_EXACT
    int i = get_global_id(0), leaves = factor[0] < 0;
    float lr = hyper[OPTIMIZER_LR] * lr_factor, scale = grad_scale * hyper[OPTIMIZER_SCALE], clip = factor[0];
    if (i >= count) return;
    CLT_FLOATS p = params[i], g = optimizer_clip(grads[i], scale, clip_value) * clip;
    if (weight_decay != 0) g += weight_decay * p;
    params[i] = leaves ? p : p - lr * g;
    OPTIMIZER_COPY(i);
}

/* torch.optim.SGD with momentum, without dampening: b = momentum b + g, at first b = g;
 * p -= lr b, or lr (g + momentum b) in Nesterov's form. */
kernel void ref_sgd_momentum(global CLT_FLOATS *params, global const CLT_FLOATS *grads,
                             global const float *hyper, global const float *factor,
                             global CLT_FLOATS *buffer, OPTIMIZER_COPY_PARAMETER int count, float grad_scale, float clip_value, float lr_factor,
                             float weight_decay, float momentum, int nesterov) {
    OPTIMIZER_EXACT
    int i = get_global_id(0), leaves = factor[0] < 0, first = hyper[OPTIMIZER_FIRST] == 1;
    float lr = hyper[OPTIMIZER_LR] * lr_factor, scale = grad_scale * hyper[OPTIMIZER_SCALE], clip = factor[0];
    if (i >= count) return;
    CLT_FLOATS p = params[i], old = buffer[i], g = optimizer_clip(grads[i], scale, clip_value) * clip;
    if (weight_decay != 0) g += weight_decay * p;
    CLT_FLOATS b = first ? g : momentum * old + g;
    buffer[i] = leaves ? old : b;
    params[i] = leaves ? p : p - lr * (nesterov ? g + momentum * b : b);
    OPTIMIZER_COPY(i);
}

/* torch.optim.Adam (Kingma, Ba 2015), where weight decay is added to the gradient, and AdamW (Loshchilov,
 * Hutter 2019), where it is decoupled: p *= 1 - lr weight_decay. Then
 *     m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2,
 *     p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
 * rest1 and rest2 are 1 - beta1 and 1 - beta2, rounded once. */
kernel void ref_adam(global CLT_FLOATS *params, global const CLT_FLOATS *grads,
                     global const float *hyper, global const float *factor,
                     global CLT_FLOATS *moment1, global CLT_FLOATS *moment2, OPTIMIZER_COPY_PARAMETER int count,
                     float grad_scale, float clip_value, float lr_factor, float weight_decay, float beta1, float rest1, float beta2, float rest2,
                     float eps, int decoupled) {
    OPTIMIZER_EXACT
    int i = get_global_id(0), leaves = factor[0] < 0;
    float lr = hyper[OPTIMIZER_LR] * lr_factor, scale = grad_scale * hyper[OPTIMIZER_SCALE], clip = factor[0];
    float rate = lr / hyper[OPTIMIZER_BIAS1], correction = 1 / hyper[OPTIMIZER_BIAS2];
    if (i >= count) return;
    CLT_FLOATS old = params[i], old1 = moment1[i], old2 = moment2[i], p = old;
    CLT_FLOATS g = optimizer_clip(grads[i], scale, clip_value) * clip;
    if (weight_decay != 0) {
        if (decoupled) p *= 1 - lr * weight_decay;
        else g += weight_decay * p;
    }
    CLT_FLOATS m = beta1 * old1 + rest1 * g;
    CLT_FLOATS v = beta2 * old2 + rest2 * g * g;
    CLT_FLOATS made = p - rate * m / (sqrt(v) * correction + eps);
    moment1[i] = leaves ? old1 : m;
    moment2[i] = leaves ? old2 : v;
    params[i] = leaves ? old : made;
    OPTIMIZER_COPY(i);
}
