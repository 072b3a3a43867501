/* Matrix products and convolutions. */
#include <string.h>

#include <cltrain/ops.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* The weight of which t is the transpose; NULL: t is none. A product with it needs no turned copy. */
static clt_tensor *turned_weight(const clt_tensor *t) {
    bool turned = t->kind == CLT_NODE_OP && t->op == &clt_op_permute && t->shape.rank == 2 && ((const clt_permute_attributes *)t->attributes)->order[0] == 1;
    return turned && t->inputs[0]->variable ? t->inputs[0] : NULL;
}

/* Operands of one dimension are a row, or a column, and leave no dimension behind. */
static clt_status map_matmul(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b;
    CLT_TRY(clt_onnx_float(c, 0, &a));
    CLT_TRY(clt_onnx_float(c, 1, &b));
    CLT_TRY(clt_onnx_find_attention(a, b, &out[0]));
    if (out[0]) return CLT_OK;
    bool row = a->shape.rank == 1, column = b->shape.rank == 1;
    if (a->shape.rank == 0 || b->shape.rank == 0) return clt_fail(CLT_E_SHAPE, "an operand is a scalar");
    clt_tensor *weight = row ? NULL : turned_weight(b);
    if (weight) return out[0] = clt_linear_op(a, weight, NULL), CLT_OK;
    clt_tensor *y = clt_matmul(row ? clt_unsqueeze(a, 0) : a, column ? clt_unsqueeze(b, 1) : b);
    if (column) y = clt_squeeze(y, -1);
    if (row) y = clt_squeeze(y, column ? -1 : -2);
    out[0] = y;
    return CLT_OK;
}

/* alpha A B + beta C, A and B perhaps transposed. */
static clt_status map_gemm(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *a, *b, *add = NULL;
    float alpha = clt_onnx_float_attribute(c, "alpha", 1), beta = clt_onnx_float_attribute(c, "beta", 1);
    bool transpose_a = clt_onnx_int(c, "transA", 0), transpose_b = clt_onnx_int(c, "transB", 0);
    CLT_TRY(clt_onnx_float(c, 0, &a));
    CLT_TRY(clt_onnx_float(c, 1, &b));
    if (clt_onnx_has(c, 2) && beta != 0) CLT_TRY(clt_onnx_float(c, 2, &add));
    if (a->shape.rank != 2 || b->shape.rank != 2) return clt_fail(CLT_E_SHAPE, "its operands are no matrices");
    if (!transpose_a && transpose_b && alpha == 1 && (!add || (beta == 1 && add->shape.rank == 1 && add->shape.dims[0] == b->shape.dims[0]))) {
        out[0] = clt_linear_op(a, b, add);
        return CLT_OK;
    }
    clt_tensor *y = clt_matmul_with(a, b, (clt_matmul_options){.transpose_a = transpose_a, .transpose_b = transpose_b});
    if (alpha != 1) y = clt_mul_scalar(y, alpha);
    if (add) y = clt_add(y, beta == 1 ? add : clt_mul_scalar(add, beta));
    out[0] = y;
    return CLT_OK;
}

/* ---- windows ---- */

/* Up to two dimensions of a window, of what convolutions and pools share. */
typedef struct window {
    int dims;
    int kernel[2], stride[2], dilation[2];
    int64_t before[2], after[2]; /* padding */
    int64_t beyond[2];           /* and more behind that, for a last window that is not whole: no average counts it */
} window;

static clt_status read_numbers(const clt_onnx_call *c, const char *name, int n, int otherwise, int *to) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, name, CLT_ONNX_A_INTS);
    if (a && a->n != (size_t)n) return clt_fail(CLT_E_FORMAT, "%s has %zu numbers, not %d", name, a->n, n);
    for (int i = 0; i < n; i++) {
        if (a && (a->ints[i] < 1 || a->ints[i] > CLT_MAX_WINDOW)) return clt_fail(CLT_E_SHAPE, "%s of %lld", name, (long long)a->ints[i]);
        to[i] = a ? (int)a->ints[i] : otherwise;
    }
    return CLT_OK;
}

/* Padding, by numbers or by what auto_pad says of an image. */
static clt_status read_padding(const clt_onnx_call *c, const clt_tensor *x, window *w) {
    const char *how = clt_onnx_text(c, "auto_pad", "NOTSET");
    const clt_onnx_attribute *pads = clt_onnx_attribute_of(c->node, "pads", CLT_ONNX_A_INTS);
    bool upper = !strcmp(how, "SAME_UPPER"), lower = !strcmp(how, "SAME_LOWER"), given = !strcmp(how, "NOTSET") || !*how;
    if (!upper && !lower && !given && strcmp(how, "VALID")) return clt_fail(CLT_E_UNSUPPORTED, "auto_pad %.40s", how);
    if (given && pads && pads->n != 2 * (size_t)w->dims) return clt_fail(CLT_E_FORMAT, "pads has %zu numbers, not %d", pads->n, 2 * w->dims);
    for (int d = 0; d < w->dims; d++) {
        int64_t size = x->shape.dims[2 + d], results = (size + w->stride[d] - 1) / w->stride[d];
        int64_t all = CLT_MAX((results - 1) * w->stride[d] + (int64_t)w->dilation[d] * (w->kernel[d] - 1) + 1 - size, 0);
        if (upper || lower) w->before[d] = upper ? all / 2 : all - all / 2, w->after[d] = all - w->before[d];
        if (given && pads) w->before[d] = pads->ints[d], w->after[d] = pads->ints[w->dims + d];
        if (w->before[d] < 0 || w->after[d] < 0 || w->before[d] > CLT_MAX_WINDOW || w->after[d] > CLT_MAX_WINDOW)
            return clt_fail(CLT_E_UNSUPPORTED, "padding of %lld and %lld", (long long)w->before[d], (long long)w->after[d]);
    }
    return CLT_OK;
}

static clt_tensor *padded(clt_tensor *x, const window *w, float value) {
    int64_t before[CLT_MAX_RANK] = {0}, after[CLT_MAX_RANK] = {0};
    for (int d = 0; d < w->dims; d++) before[2 + d] = w->before[d], after[2 + d] = w->after[d] + w->beyond[d];
    return clt_pad(x, before, after, value);
}

static clt_status map_conv(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *weight, *bias = NULL;
    window w = {0};
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &weight));
    if (clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_float(c, 2, &bias));
    w.dims = x->shape.rank - 2;
    if (w.dims < 1 || w.dims > 2) return clt_fail(CLT_E_UNSUPPORTED, "a convolution of %d dimensions", w.dims);
    if (weight->shape.rank != x->shape.rank) return clt_fail(CLT_E_SHAPE, "a weight of %d dimensions for an x of %d", weight->shape.rank, x->shape.rank);
    int64_t groups = clt_onnx_int(c, "group", 1);
    if (groups < 1 || groups > INT32_MAX) return clt_fail(CLT_E_SHAPE, "%lld groups", (long long)groups);
    for (int d = 0; d < w.dims; d++) w.kernel[d] = (int)CLT_MIN(weight->shape.dims[2 + d], (int64_t)INT32_MAX);
    CLT_TRY(read_numbers(c, "strides", w.dims, 1, w.stride));
    CLT_TRY(read_numbers(c, "dilations", w.dims, 1, w.dilation));
    CLT_TRY(read_padding(c, x, &w));
    for (int d = 0; d < w.dims; d++)
        if (w.before[d] != w.after[d]) { /* the ops have the same on both sides */
            x = padded(x, &w, 0);
            w = (window){.dims = w.dims, .stride = {w.stride[0], w.stride[1]}, .dilation = {w.dilation[0], w.dilation[1]}};
        }
    if (w.dims == 1)
        out[0] = clt_conv1d_op(x, weight, bias, (clt_conv1d_options){.stride = w.stride[0], .padding = (int)w.before[0], .dilation = w.dilation[0], .groups = (int)groups});
    else
        out[0] = clt_conv2d_op(x, weight, bias,
                               (clt_conv2d_options){.stride_h = w.stride[0], .stride_w = w.stride[1], .padding_h = (int)w.before[0], .padding_w = (int)w.before[1],
                                                    .dilation_h = w.dilation[0], .dilation_w = w.dilation[1], .groups = (int)groups});
    return CLT_OK;
}

/* ---- pools ---- */

/* With ceil_mode a last window may stick out, if it begins within the image or the padding in front of it. */
static clt_status read_beyond(const clt_tensor *x, window *w) {
    for (int d = 0; d < w->dims; d++) {
        int64_t size = x->shape.dims[2 + d], all = size + w->before[d] + w->after[d], rest = all - w->kernel[d];
        if (clt_tensor_extent(x).dims[2 + d] != size) return clt_fail(CLT_E_UNSUPPORTED, "ceil_mode where dimension %d has more than one size", 2 + d);
        int64_t last = rest > 0 ? (rest + w->stride[d] - 1) / w->stride[d] * w->stride[d] : 0; /* where the last window begins */
        if (last >= size + w->before[d]) last -= w->stride[d];
        w->beyond[d] = CLT_MAX(last + w->kernel[d] - all, 0);
    }
    return CLT_OK;
}

static clt_status read_pool(clt_onnx_call *c, clt_tensor **x, window *w) {
    CLT_TRY(clt_onnx_float(c, 0, x));
    w->dims = (*x)->shape.rank - 2;
    if (w->dims < 1 || w->dims > 2) return clt_fail(CLT_E_UNSUPPORTED, "a pool of %d dimensions", w->dims);
    if (!clt_onnx_attribute_of(c->node, "kernel_shape", CLT_ONNX_A_INTS)) return clt_fail(CLT_E_FORMAT, "it has no kernel_shape");
    CLT_TRY(read_numbers(c, "kernel_shape", w->dims, 1, w->kernel));
    CLT_TRY(read_numbers(c, "strides", w->dims, 1, w->stride));
    CLT_TRY(read_numbers(c, "dilations", w->dims, 1, w->dilation));
    CLT_TRY(read_padding(c, *x, w));
    if (clt_onnx_int(c, "ceil_mode", 0)) CLT_TRY(read_beyond(*x, w));
    for (int d = 0; d < w->dims; d++)
        if (w->dilation[d] != 1) return clt_fail(CLT_E_UNSUPPORTED, "a dilation of %d", w->dilation[d]);
    return CLT_OK;
}

/* x [N, C, L] as images of one row, and back. */
static clt_tensor *pool(clt_tensor *x, window *w, bool average, bool exclude) {
    bool one = w->dims == 1;
    clt_pool2d_options o = {.kernel_h = one ? 1 : w->kernel[0], .kernel_w = w->kernel[!one], .stride_h = one ? 1 : w->stride[0], .stride_w = w->stride[!one],
                            .padding_h = one ? 0 : (int)w->before[0], .padding_w = (int)w->before[!one], .exclude_padding = exclude};
    if (one) x = clt_unsqueeze(x, 2);
    x = average ? clt_avg_pool2d_with(x, o) : clt_max_pool2d_with(x, o);
    return one ? clt_squeeze(x, 2) : x;
}

static bool is_lopsided(const window *w) {
    bool lopsided = false;
    for (int d = 0; d < w->dims; d++) lopsided |= w->before[d] != w->after[d] || w->beyond[d] || 2 * w->before[d] > w->kernel[d];
    return lopsided;
}

/* The padding is in x now. */
static window without_padding(const window *w) {
    return (window){.dims = w->dims, .kernel = {w->kernel[0], w->kernel[1]}, .stride = {w->stride[0], w->stride[1]}};
}

/* The part of each window that counts: [1, 1, ...]. */
static clt_tensor *counted(const clt_tensor *x, const window *w, bool exclude) {
    clt_shape shape = x->shape;
    window beyond = {.dims = w->dims, .beyond = {w->beyond[0], w->beyond[1]}}, all = without_padding(w), inside = *w;
    shape.dims[0] = shape.dims[1] = 1;
    inside.beyond[0] = inside.beyond[1] = 0;
    clt_tensor *ones = padded(clt_fill(x->graph, shape, 1), &inside, exclude ? 0 : 1);
    return pool(padded(ones, &beyond, 0), &all, true, false);
}

static clt_status map_max_pool(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    window w = {0};
    CLT_TRY(read_pool(c, &x, &w));
    if (c->node->n_outputs > 1 && *c->node->outputs[1]) return clt_fail(CLT_E_UNSUPPORTED, "the places of the maxima");
    if (is_lopsided(&w)) {
        x = padded(x, &w, -3.402823466e38f);
        w = without_padding(&w);
    }
    out[0] = pool(x, &w, false, false);
    return CLT_OK;
}

static clt_status map_average_pool(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    window w = {0};
    bool exclude = !clt_onnx_int(c, "count_include_pad", 0);
    CLT_TRY(read_pool(c, &x, &w));
    if (!is_lopsided(&w)) {
        out[0] = pool(x, &w, true, exclude);
        return CLT_OK;
    }
    window all = without_padding(&w);
    bool parts = w.beyond[0] + w.beyond[1] > 0 || exclude;
    out[0] = pool(padded(x, &w, 0), &all, true, false);
    if (parts) out[0] = clt_div(out[0], counted(x, &w, exclude));
    return CLT_OK;
}

static clt_status map_global_pool(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    clt_reduce_options o = {.keep_dims = true};
    CLT_TRY(clt_onnx_float(c, 0, &x));
    if (x->shape.rank < 3) return clt_fail(CLT_E_SHAPE, "%d dimensions", x->shape.rank);
    for (int d = 2; d < x->shape.rank; d++) o.axes[o.n_axes++] = d;
    out[0] = strcmp(c->node->op, "GlobalMaxPool") ? clt_mean(x, o) : clt_max(x, o);
    return CLT_OK;
}

const clt_onnx_rule clt_onnx_product_rules[] = {
    {"MatMul", map_matmul}, {"Gemm", map_gemm}, {"Conv", map_conv}, {"MaxPool", map_max_pool}, {"AveragePool", map_average_pool},
    {"GlobalAveragePool", map_global_pool}, {"GlobalMaxPool", map_global_pool}, {0},
};
