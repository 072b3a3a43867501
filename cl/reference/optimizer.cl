/*
 * The optimizer, on flat tensors [count] that hold many parameters: one work-item an element, but for the
 * norm. `hyper` is what the host sets before a step; its places are those of runtime/ops/ops.h.
 */

#define OPTIMIZER_LR 0
#define OPTIMIZER_BIAS1 1 /* 1 - beta1^t */
#define OPTIMIZER_BIAS2 2 /* sqrt(1 - beta2^t) */
#define OPTIMIZER_KEEP 3  /* 0 in the first micro-batch of an update */
#define OPTIMIZER_FIRST 4 /* 1 in the first update */
#define OPTIMIZER_SCALE 5 /* of gradients, beside grad_scale */

/* The gradient scaled and clipped to +-limit, which may be infinite. NaN stays. */
static float optimizer_clip(float g, float scale, float limit) {
    g *= scale;
    return g > limit ? limit : g < -limit ? -limit : g;
}

/* acc = keep acc + x. With keep = 0 what acc held does not matter, not even NaN. */
kernel void ref_accumulate(global float *acc, global const float *x, global const float *hyper, int count) {
    int i = get_global_id(0);
    if (i >= count) return;
    float keep = hyper[OPTIMIZER_KEEP];
    acc[i] = keep == 0 ? x[i] : keep * acc[i] + x[i];
}

/* hyper[OPTIMIZER_SCALE] = 1 / samples[0]; 0 for no samples, whose gradients are zeros. One work-item. */
kernel void ref_hyper_scale(global float *hyper, global const float *samples) {
    if (get_global_id(0) == 0) hyper[OPTIMIZER_SCALE] = samples[0] > 0 ? 1 / samples[0] : 0;
}

/* partial[c] = sum of the squares of the clipped gradients in chunk c of `length`. One work-group a chunk. */
kernel void ref_norm_squared(global const float *grads, global const float *hyper, global float *partial, int count,
                             int chunks, int length, float grad_scale, float clip_value) {
    local float scratch[CLT_GROUP];
    int chunk = get_group_id(0), start = chunk * length;
    if (chunk >= chunks) return;
    float sum = 0, scale = grad_scale * hyper[OPTIMIZER_SCALE];
    for (int k = get_local_id(0); k < min(length, count - start); k += get_local_size(0)) {
        float g = optimizer_clip(grads[start + k], scale, clip_value);
        sum += g * g;
    }
    sum = clt_group_sum(sum, scratch);
    if (get_local_id(0) == 0) partial[chunk] = sum;
}

/* total[0] = sum of partial[0 … chunks - 1]. One work-group. */
kernel void ref_norm_total(global const float *partial, global float *total, int chunks) {
    local float scratch[CLT_GROUP];
    if (get_group_id(0) > 0) return;
    float sum = 0;
    for (int c = get_local_id(0); c < chunks; c += get_local_size(0)) sum += partial[c];
    sum = clt_group_sum(sum, scratch);
    if (get_local_id(0) == 0) total[0] = sum;
}

/* factor[0] = min(1, clip_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; NaN if the norm is not
 * finite, so that gradients that overflowed show. One work-item. */
kernel void ref_clip_scale(global const float *squared, global float *factor, float clip_norm) {
    if (get_global_id(0) > 0) return;
    float ratio = clip_norm / (sqrt(squared[0]) + 1e-6f);
    factor[0] = isfinite(squared[0]) ? min(1.0f, ratio) : NAN;
}

/* torch.optim.SGD without momentum: g += weight_decay p; p -= lr g. */
kernel void ref_sgd(global float *params, global const float *grads, global const float *hyper,
                    global const float *factor, int count, float grad_scale, float clip_value, float weight_decay) {
    int i = get_global_id(0);
    if (i >= count) return;
    float p = params[i], g = optimizer_clip(grads[i], grad_scale * hyper[OPTIMIZER_SCALE], clip_value) * factor[0];
    if (weight_decay != 0) g += weight_decay * p;
    params[i] = p - hyper[OPTIMIZER_LR] * g;
}

/* torch.optim.SGD with momentum, without dampening: b = momentum b + g, at first b = g;
 * p -= lr b, or lr (g + momentum b) in Nesterov's form. */
kernel void ref_sgd_momentum(global float *params, global const float *grads, global const float *hyper,
                             global const float *factor, global float *buffer, int count, float grad_scale,
                             float clip_value, float weight_decay, float momentum, int nesterov) {
    int i = get_global_id(0);
    if (i >= count) return;
    float p = params[i], g = optimizer_clip(grads[i], grad_scale * hyper[OPTIMIZER_SCALE], clip_value) * factor[0];
    if (weight_decay != 0) g += weight_decay * p;
    float b = hyper[OPTIMIZER_FIRST] == 1 ? g : momentum * buffer[i] + g;
    buffer[i] = b;
    params[i] = p - hyper[OPTIMIZER_LR] * (nesterov ? g + momentum * b : b);
}

/* torch.optim.Adam (Kingma, Ba 2015), where weight decay is added to the gradient, and AdamW (Loshchilov,
 * Hutter 2019), where it is decoupled: p *= 1 - lr weight_decay. Then
 *     m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2,
 *     p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
 * rest1 and rest2 are 1 - beta1 and 1 - beta2, rounded once. */
kernel void ref_adam(global float *params, global const float *grads, global const float *hyper,
                     global const float *factor, global float *moment1, global float *moment2, int count,
                     float grad_scale, float clip_value, float weight_decay, float beta1, float rest1, float beta2,
                     float rest2, float eps, int decoupled) {
    int i = get_global_id(0);
    if (i >= count) return;
    float lr = hyper[OPTIMIZER_LR];
    float p = params[i], g = optimizer_clip(grads[i], grad_scale * hyper[OPTIMIZER_SCALE], clip_value) * factor[0];
    if (weight_decay != 0) {
        if (decoupled) p *= 1 - lr * weight_decay;
        else g += weight_decay * p;
    }
    float m = beta1 * moment1[i] + rest1 * g;
    float v = beta2 * moment2[i] + rest2 * g * g;
    moment1[i] = m;
    moment2[i] = v;
    params[i] = p - lr / hyper[OPTIMIZER_BIAS1] * m / (sqrt(v) / hyper[OPTIMIZER_BIAS2] + eps);
}
