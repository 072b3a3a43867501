#include "backends/native/gpu/gpu.h"

/*
 * The three directions of a convolution as contractions, nothing of which is copied first: pictures are
 * gathered by places, a pixel's and a tap's, which add up (im2col without the columns).
 *
 *   forward      y[o, pixel]     = sum over c, taps of   weight[o, c tap]  x[c, pixel + tap]
 *   grad_input   dx[c, pixel]    = sum over o, taps of   weight[o, c tap]  dy[o, pixel - tap]
 *   grad_weight  dweight[o, c tap] = sum over pixels of  dy[o, pixel]      x[c, pixel + tap]
 *
 * The pixels of dx of one phase (those with the same rest by the stride) have the same taps: each phase
 * is a contraction of its own, and no product with zero is made.
 */

/* ---- places ---- */

static clt_gpu_place rows_of(int64_t step) {
    return (clt_gpu_place){.height = 1, .width = 1, .image_step = step};
}

/* All pixels of pictures, of which nothing is left out, as one line. */
static clt_gpu_place line_of(int64_t pixels, int64_t image_step) {
    return (clt_gpu_place){.height = 1, .width = pixels, .image_step = image_step, .step_w = 1};
}

/* One tap that reads each pixel at its own place: pictures are lines, and aligned fours stay together. */
static bool is_pointwise(const clt_conv2d_attributes *at) {
    return at->kernel_h == 1 && at->kernel_w == 1 && at->stride_h == 1 && at->stride_w == 1 &&
           at->padding_h == 0 && at->padding_w == 0;
}

static void set_groups(clt_gpu_contraction *x, int64_t groups, int64_t a_step, int64_t b_step) {
    x->batch = groups;
    for (int d = 0; d < CLT_MAX_RANK; d++) x->size[d] = d == CLT_MAX_RANK - 1 ? groups : 1;
    x->a_batch[CLT_MAX_RANK - 1] = a_step;
    x->b_batch[CLT_MAX_RANK - 1] = b_step;
}

/* Whole pictures of `channels` channels, all groups together, as the result. */
static void set_pictures(clt_gpu_contraction *x, const clt_shape *shape, int64_t group_channels) {
    int64_t pixels = shape->dims[2] * shape->dims[3];
    x->row_step = x->pitch = pixels;
    x->batch_step = group_channels * pixels;
    x->columns = line_of(pixels, shape->dims[1] * pixels);
    x->result_by_four = pixels % 4 == 0;
}

/* ---- forward ---- */

void clt_gpu_describe_conv2d(const clt_tensor *node, clt_gpu_contraction *x) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *image = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape, *y = &node->shape;
    int64_t plane = image->dims[2] * image->dims[3], pixels = y->dims[2] * y->dims[3];
    int64_t results = y->dims[1] / at->groups, channels = weight->dims[1];
    *x = (clt_gpu_contraction){.a_tensor = node->inputs[1], .b_tensor = node->inputs[0]};
    x->m = results;
    x->n = y->dims[0] * pixels;
    x->k = channels * at->kernel_h * at->kernel_w;
    x->a = (clt_gpu_operand){.source = CLT_GPU_STEPS_ADJACENT,
                             .by_four = x->k % 4 == 0,
                             .rows.image_step = x->k,
                             .steps.image_step = 1};
    x->b = (clt_gpu_operand){
        .source = CLT_GPU_GATHER_ROWS,
        .rows = {y->dims[2], y->dims[3], image->dims[1] * plane, at->stride_h, at->stride_w, -at->padding_h,
                 -at->padding_w},
        .steps = {at->kernel_h, at->kernel_w, plane, at->dilation_h, at->dilation_w, 0, 0},
        .height = image->dims[2],
        .width = image->dims[3],
    };
    if (is_pointwise(at)) {
        x->b.by_four = plane % 4 == 0;
        x->b.rows = line_of(plane, image->dims[1] * plane);
        x->b.height = 1;
        x->b.width = plane;
    }
    set_groups(x, at->groups, results * x->k, channels * plane);
    set_pictures(x, y, results);
}

/* ---- the gradient of the image ---- */

/* Rows or columns of one phase: `result` of them, and the taps that they have. Pixel i's tap t is
 * dy's origin + i - t step, and the weight's first + t stride. */
typedef struct phase {
    int64_t result, taps, first, stride, step, origin;
} phase;

static phase phase_of(int64_t size, int which, int taps, int stride, int padding, int dilation) {
    int64_t tap_stride = stride / clt_greatest_divisor(stride, dilation), first = 0;
    int64_t most = CLT_MIN(taps, tap_stride);
    while (first < most && (which + padding - first * dilation) % stride) first++;
    bool any = first < most;
    return (phase){
        .result = which < size ? (size - which + stride - 1) / stride : 0,
        .taps = any ? (taps - first + tap_stride - 1) / tap_stride : 0,
        .first = any ? first : 0,
        .stride = tap_stride,
        .step = tap_stride * dilation / stride,
        .origin = any ? (which + padding - first * dilation) / stride : 0,
    };
}

static void describe_phase(const clt_tensor *node, int i, int j, clt_gpu_contraction *x) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *weight = &node->inputs[0]->shape, *dy = &node->inputs[1]->shape, *dx = &node->shape;
    phase h = phase_of(dx->dims[2], i, at->kernel_h, at->stride_h, at->padding_h, at->dilation_h);
    phase w = phase_of(dx->dims[3], j, at->kernel_w, at->stride_w, at->padding_w, at->dilation_w);
    int64_t results = weight->dims[1], channels = weight->dims[0] / at->groups;
    int64_t filter = weight->dims[2] * weight->dims[3], pixels = dy->dims[2] * dy->dims[3];
    *x = (clt_gpu_contraction){.a_tensor = node->inputs[0], .b_tensor = node->inputs[1]};
    x->m = results;
    x->n = dx->dims[0] * h.result * w.result;
    x->k = channels * h.taps * w.taps;
    x->a = (clt_gpu_operand){
        .source = CLT_GPU_GATHER_STEPS,
        .rows = rows_of(filter),
        .steps = {h.taps, w.taps, results * filter, h.stride, w.stride, h.first, w.first},
        .height = weight->dims[2],
        .width = weight->dims[3],
    };
    if (filter == 1)
        x->a = (clt_gpu_operand){.source = CLT_GPU_ROWS_ADJACENT,
                                 .by_four = results % 4 == 0,
                                 .rows.image_step = 1,
                                 .steps.image_step = results};
    x->b = (clt_gpu_operand){
        .source = CLT_GPU_GATHER_ROWS,
        .rows = {h.result, w.result, dy->dims[1] * pixels, 1, 1, h.origin, w.origin},
        .steps = {h.taps, w.taps, pixels, -h.step, -w.step, 0, 0},
        .height = dy->dims[2],
        .width = dy->dims[3],
    };
    if (is_pointwise(at)) {
        x->b.by_four = pixels % 4 == 0;
        x->b.rows = line_of(pixels, dy->dims[1] * pixels);
        x->b.height = 1;
        x->b.width = pixels;
    }
    set_groups(x, at->groups, channels * results * filter, channels * pixels);
    set_pictures(x, dx, results);
    if (at->stride_h == 1 && at->stride_w == 1) return;
    x->columns = (clt_gpu_place){h.result, w.result, dx->dims[1] * x->row_step, at->stride_h, at->stride_w, i, j};
    x->pitch = dx->dims[3];
    x->result_by_four = false;
}

int clt_gpu_describe_grad_input(const clt_tensor *node, clt_gpu_contraction *x) {
    const clt_conv2d_attributes *at = node->attributes;
    int n = 0;
    if ((int64_t)at->stride_h * at->stride_w > CLT_GPU_MOST_PHASES) return 0;
    for (int i = 0; i < at->stride_h; i++)
        for (int j = 0; j < at->stride_w; j++) describe_phase(node, i, j, &x[n++]);
    return n;
}

/* ---- the gradient of the weight ---- */

void clt_gpu_describe_grad_weight(const clt_tensor *node, clt_gpu_contraction *x) {
    const clt_conv2d_attributes *at = node->attributes;
    const clt_shape *image = &node->inputs[0]->shape, *dy = &node->inputs[1]->shape, *weight = &node->shape;
    int64_t plane = image->dims[2] * image->dims[3], pixels = dy->dims[2] * dy->dims[3];
    int64_t results = weight->dims[0] / at->groups, channels = weight->dims[1];
    *x = (clt_gpu_contraction){.a_tensor = node->inputs[1], .b_tensor = node->inputs[0]};
    x->m = results;
    x->n = channels * at->kernel_h * at->kernel_w;
    x->k = dy->dims[0] * pixels;
    x->a = (clt_gpu_operand){
        .source = CLT_GPU_GATHER_STEPS,
        .by_four = pixels % 4 == 0,
        .rows = rows_of(pixels),
        .steps = line_of(pixels, dy->dims[1] * pixels),
        .height = 1,
        .width = pixels,
    };
    x->b = (clt_gpu_operand){
        .source = CLT_GPU_GATHER_STEPS,
        .rows = {at->kernel_h, at->kernel_w, plane, at->dilation_h, at->dilation_w, 0, 0},
        .steps = {dy->dims[2], dy->dims[3], image->dims[1] * plane, at->stride_h, at->stride_w, -at->padding_h,
                  -at->padding_w},
        .height = image->dims[2],
        .width = image->dims[3],
    };
    if (is_pointwise(at)) {
        x->b.by_four = plane % 4 == 0;
        x->b.steps = line_of(plane, image->dims[1] * plane);
        x->b.height = 1;
        x->b.width = plane;
    }
    set_groups(x, at->groups, results * pixels, channels * plane);
    x->row_step = x->pitch = x->n;
    x->batch_step = x->m * x->n;
    x->columns = line_of(x->n, 0);
    x->result_by_four = x->n % 4 == 0;
}
