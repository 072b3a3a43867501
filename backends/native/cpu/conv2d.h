/*
 * Convolution in the native backend: its geometry, which all ways to compute it share, and the ways.
 */
#ifndef CLT_BACKENDS_NATIVE_CPU_CONV2D_H
#define CLT_BACKENDS_NATIVE_CPU_CONV2D_H

#include "backends/native/cpu/cpu.h"

enum { CLT_CPU_MOST_STRIDE = 4 }; /* the gradient has stride^2 phases, each a launch of its own */

/* One dimension, height or width, of a convolution: pixels of the result are `result` places, pixel i of
 * which reads the packed image at origin + i pixel_step + tap tap_step. Packed pixel p is the source's
 * p pack_step - before; what reads the source itself puts that in. */
typedef struct clt_cpu_axis {
    int64_t packed, pack_step, before;
    int64_t result, taps, pixel_step, tap_step, origin;
    int64_t first_tap, tap_stride; /* which taps of the weight these are */
    int64_t target, target_step;   /* where the pixels are in the result */
} clt_cpu_axis;

/* Both dimensions of the forward pass, for a result of shape y. */
void clt_cpu_forward_axes(const clt_conv2d_attributes *at, const clt_shape *y, clt_cpu_axis *h,
                          clt_cpu_axis *w);
/* dx[i] sums dy[o] weight[tap] over the taps with i + padding - tap dilation = o stride. The i of
 * one phase, those with the same rest by the stride, have the same taps, of which each next has its
 * o lower by a fixed step: a convolution with stride 1. `origin` is o of the first tap for the
 * phase's first i. */
clt_cpu_axis clt_cpu_phase_axis(int64_t size, int phase, int taps, int stride, int padding,
                                int dilation);

/* True if the node and its operands have no more elements than the kernels can count. */
bool clt_cpu_holds_tensors(const clt_device *device, const clt_tensor *node);

#endif
