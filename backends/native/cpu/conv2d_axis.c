#include "backends/native/cpu/conv2d.h"

/* y[i] sums x[i stride - padding + tap dilation]. A single tap reads but the pixels that it needs. */
static clt_cpu_axis forward_axis(int64_t result, int taps, int stride, int padding, int dilation) {
    int64_t step = taps == 1 ? stride : 1, pixel_step = stride / step;
    return (clt_cpu_axis){
        .packed = (result - 1) * pixel_step + (int64_t)dilation * (taps - 1) + 1,
        .pack_step = step,
        .before = padding,
        .result = result,
        .taps = taps,
        .pixel_step = pixel_step,
        .tap_step = dilation,
        .tap_stride = 1,
        .target_step = 1,
    };
}

clt_cpu_axis clt_cpu_phase_axis(int64_t size, int phase, int taps, int stride, int padding,
                                int dilation) {
    int64_t tap_stride = stride / clt_greatest_divisor(stride, dilation), first = 0;
    while (first < taps && first < tap_stride && (phase + padding - first * dilation) % stride) first++;
    bool any = first < taps && first < tap_stride;
    return (clt_cpu_axis){
        .pack_step = 1,
        .result = phase < size ? (size - phase + stride - 1) / stride : 0,
        .taps = any ? (taps - first + tap_stride - 1) / tap_stride : 0,
        .pixel_step = 1,
        .tap_step = -(tap_stride * dilation / stride),
        .origin = any ? (phase + padding - first * dilation) / stride : 0,
        .first_tap = any ? first : 0,
        .tap_stride = tap_stride,
        .target = phase,
        .target_step = stride,
    };
}

void clt_cpu_forward_axes(const clt_conv2d_attributes *at, const clt_shape *y, clt_cpu_axis *h,
                          clt_cpu_axis *w) {
    *h = forward_axis(y->dims[2], at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
    *w = forward_axis(y->dims[3], at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
}

bool clt_cpu_holds_tensors(const clt_device *device, const clt_tensor *node) {
    bool holds = clt_cpu_holds(device, (double)clt_tensor_elements(node));
    for (int i = 0; i < node->n_inputs; i++)
        holds &= clt_cpu_holds(device, (double)clt_tensor_elements(node->inputs[i]));
    return holds;
}
