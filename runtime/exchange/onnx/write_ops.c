/* Nodes of a graph as nodes of ONNX, opset 17 (https://onnx.ai/onnx/operators). */
#include "runtime/exchange/onnx/writer.h"
#include "runtime/ops/ops.h"

/* ---- products, windows ---- */

/* With the last two dimensions exchanged. */
static const char *transposed(clt_onnx_writer *w, const char *x, int rank) {
    int64_t order[CLT_MAX_RANK];
    for (int d = 0; d < rank; d++) order[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    clt_onnx_put_ints(w, "perm", order, rank);
    return CLT_ONNX_PUT(w, "Transpose", NULL, x);
}

static const char *write_matmul(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_matmul_attributes *at = node->attributes;
    int ranks[2] = {node->inputs[0]->shape.rank, node->inputs[1]->shape.rank};
    if (ranks[0] == 2 && ranks[1] == 2 && (at->transpose_a || at->transpose_b)) {
        clt_onnx_put_int(w, "transA", at->transpose_a);
        clt_onnx_put_int(w, "transB", at->transpose_b);
        return CLT_ONNX_PUT(w, "Gemm", y, in[0], in[1]);
    }
    const char *a = at->transpose_a ? transposed(w, in[0], ranks[0]) : in[0];
    return CLT_ONNX_PUT(w, "MatMul", y, a, at->transpose_b ? transposed(w, in[1], ranks[1]) : in[1]);
}

static void put_window(clt_onnx_writer *w, int kernel_h, int kernel_w, int stride_h, int stride_w, int padding_h, int padding_w) {
    clt_onnx_put_ints(w, "kernel_shape", (int64_t[]){kernel_h, kernel_w}, 2);
    clt_onnx_put_ints(w, "strides", (int64_t[]){stride_h, stride_w}, 2);
    clt_onnx_put_ints(w, "pads", (int64_t[]){padding_h, padding_w, padding_h, padding_w}, 4);
}

static void put_convolution(clt_onnx_writer *w, const clt_conv2d_attributes *at) {
    put_window(w, at->kernel_h, at->kernel_w, at->stride_h, at->stride_w, at->padding_h, at->padding_w);
    clt_onnx_put_ints(w, "dilations", (int64_t[]){at->dilation_h, at->dilation_w}, 2);
    clt_onnx_put_int(w, "group", at->groups);
}

static const char *write_conv2d(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    put_convolution(w, node->attributes);
    return CLT_ONNX_PUT(w, "Conv", y, in[0], in[1]);
}

/* As many rows, or columns, more as the images have that a convolution with this stride leaves over. */
static const char *write_conv_transpose2d(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_conv2d_attributes *at = node->attributes;
    int64_t height, width;
    clt_conv2d_least_image(at, &node->inputs[1]->shape, &height, &width);
    put_convolution(w, at);
    clt_onnx_put_ints(w, "output_padding", (int64_t[]){node->shape.dims[2] - height, node->shape.dims[3] - width}, 2);
    return CLT_ONNX_PUT(w, "ConvTranspose", y, in[1], in[0]);
}

static const char *write_pool2d(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_pool2d_attributes *at = node->attributes;
    bool average = node->op == &clt_op_avg_pool2d;
    put_window(w, at->kernel_h, at->kernel_w, at->stride_h, at->stride_w, at->padding_h, at->padding_w);
    if (average) clt_onnx_put_int(w, "count_include_pad", !at->exclude_padding);
    return CLT_ONNX_PUT(w, average ? "AveragePool" : "MaxPool", y, in[0]);
}

/* ---- norms, softmax, reductions ---- */

/* Operands are x, mean, variance, weight, bias here, and x, weight, bias, mean, variance there. */
static const char *write_batch_norm(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_onnx_put_float(w, "epsilon", ((const clt_batch_norm_attributes *)node->attributes)->eps);
    return CLT_ONNX_PUT(w, "BatchNormalization", y, in[0], in[3], in[4], in[1], in[2]);
}

static const char *write_layer_norm(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_layer_norm_attributes *at = node->attributes;
    clt_onnx_put_float(w, "epsilon", at->eps);
    clt_onnx_put_int(w, "axis", -at->dims);
    return CLT_ONNX_PUT(w, "LayerNormalization", y, in[0], in[1], in[2]);
}

static const char *write_softmax(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_onnx_put_int(w, "axis", ((const clt_softmax_attributes *)node->attributes)->axis);
    return CLT_ONNX_PUT(w, node->op == &clt_op_softmax ? "Softmax" : "LogSoftmax", y, in[0]);
}

static const char *write_reduce(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    static const char *const ops[] = {[CLT_AXES_SUM] = "ReduceSum", [CLT_AXES_MEAN] = "ReduceMean", [CLT_AXES_MAX] = "ReduceMax"};
    const clt_reduce_attributes *at = node->attributes;
    int64_t axes[CLT_MAX_RANK];
    int n = 0;
    for (int d = 0; d < node->inputs[0]->shape.rank; d++)
        if (at->axes >> d & 1) axes[n++] = d;
    const char *list = at->reduction == CLT_AXES_SUM ? clt_onnx_put_list(w, axes, n) : NULL; /* of the others they are an attribute in this opset */
    clt_onnx_put_int(w, "keepdims", at->keep_dims);
    if (list) return CLT_ONNX_PUT(w, "ReduceSum", y, in[0], list);
    clt_onnx_put_ints(w, "axes", axes, n);
    return CLT_ONNX_PUT(w, ops[at->reduction], y, in[0]);
}

static const char *write_argmax(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_onnx_put_int(w, "axis", ((const clt_softmax_attributes *)node->attributes)->axis);
    clt_onnx_put_int(w, "keepdims", 0);
    return clt_onnx_put_cast(w, y, CLT_ONNX_PUT(w, "ArgMax", NULL, in[0]), CLT_ONNX_INT32);
}

static const char *write_cumsum(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_cumsum_attributes *at = node->attributes;
    const char *axis = clt_onnx_put_whole(w, at->axis);
    clt_onnx_put_int(w, "reverse", at->reverse);
    return CLT_ONNX_PUT(w, "CumSum", y, in[0], axis);
}

/* ---- shapes ---- */

/* Without arithmetic where a dimension is that of x in the same place, or what remains. */
static const char *write_reshape(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_reshape_attributes *at = node->attributes;
    clt_shape to = at->shape, from = clt_tensor_extent(node->inputs[0]);
    int open = -1, n_open = 0;
    bool remains = false;
    char text[CLT_SHAPE_TEXT];
    if (at->unsure)
        clt_onnx_writer_fail(w, clt_fail(CLT_E_UNSUPPORTED, "clt_reshape to %s: a number in it may be the batch or the length, which stay open in a file: tell it by CLT_BATCH and CLT_LENGTH, "
                                         "or build the graph with others", clt_shape_text(&to, text)));
    for (int d = 0; d < to.rank; d++) {
        bool follows = to.dims[d] < -1;
        if (follows && d < from.rank && (from.dims[d] == to.dims[d] || to.dims[d] == CLT_DIM_OF(d))) to.dims[d] = 0;
        else if (follows && ++n_open) open = d;
        else remains |= to.dims[d] == -1;
    }
    if (n_open == 1 && !remains) to.dims[open] = -1;
    return CLT_ONNX_PUT(w, "Reshape", y, in[0], clt_onnx_put_shape(w, &to, in[0]));
}

static const char *write_permute(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_permute_attributes *at = node->attributes;
    int64_t order[CLT_MAX_RANK];
    for (int d = 0; d < node->shape.rank; d++) order[d] = at->order[d];
    clt_onnx_put_ints(w, "perm", order, node->shape.rank);
    return CLT_ONNX_PUT(w, "Transpose", y, in[0]);
}

static const char *write_slice(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_slice_attributes *at = node->attributes;
    const char *start = clt_onnx_put_whole(w, at->start);
    const char *stop = clt_dim_is_length(at->stop) ? clt_onnx_put_shape(w, &CLT_SHAPE(at->stop), NULL) : clt_onnx_put_whole(w, at->stop);
    return CLT_ONNX_PUT(w, "Slice", y, in[0], start, stop, clt_onnx_put_whole(w, at->axis), clt_onnx_put_whole(w, at->step));
}

static const char *write_concat(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_onnx_put_int(w, "axis", ((const clt_concat_attributes *)node->attributes)->axis);
    return clt_onnx_put(w, "Concat", y, in, node->n_inputs);
}

static const char *write_pad(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_pad_attributes *at = node->attributes;
    int64_t pads[2 * CLT_MAX_RANK];
    int rank = node->shape.rank;
    for (int d = 0; d < rank; d++) {
        pads[d] = at->before[d];
        pads[rank + d] = at->after[d];
    }
    return CLT_ONNX_PUT(w, "Pad", y, in[0], clt_onnx_put_list(w, pads, 2 * rank), clt_onnx_put_scalar(w, at->value));
}

/* A dimension of 1 stays what it is there. */
static const char *write_expand(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_shape to = ((const clt_expand_attributes *)node->attributes)->shape;
    for (int d = 0; d < to.rank; d++)
        if (to.dims[d] == -1) to.dims[d] = 1;
    return CLT_ONNX_PUT(w, "Expand", y, in[0], clt_onnx_put_shape(w, &to, NULL));
}

/* ---- indices ---- */

static const char *write_embedding(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    (void)node;
    return CLT_ONNX_PUT(w, "Gather", y, in[0], in[1]);
}

static const char *unsqueezed(clt_onnx_writer *w, const char *x, int64_t axis) {
    return CLT_ONNX_PUT(w, "Unsqueeze", NULL, x, clt_onnx_put_whole(w, axis));
}

/* 0 ... n - 1, where n is i64 [1]. */
static const char *numbers(clt_onnx_writer *w, const char *n) {
    const char *scalar = CLT_ONNX_PUT(w, "Squeeze", NULL, n);
    clt_onnx_put_int(w, "value_int", 0);
    const char *zero = clt_onnx_put(w, "Constant", NULL, NULL, 0);
    clt_onnx_put_int(w, "value_int", 1);
    const char *one = clt_onnx_put(w, "Constant", NULL, NULL, 0);
    return CLT_ONNX_PUT(w, "Range", NULL, zero, scalar, one);
}

/* Not ONNX's OneHot, to which negative indices count from the end. */
static const char *write_one_hot(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const char *count = clt_onnx_put_whole(w, ((const clt_one_hot_attributes *)node->attributes)->count);
    const char *classes = clt_onnx_put_cast(w, NULL, numbers(w, count), CLT_ONNX_INT32);
    const char *same = CLT_ONNX_PUT(w, "Equal", NULL, unsqueezed(w, in[0], -1), classes);
    return clt_onnx_put_cast(w, y, same, CLT_ONNX_FLOAT);
}

/* ---- attention ---- */

/* Dimension 2 of a value: i64 [1]. */
static const char *places_of(clt_onnx_writer *w, const char *x) {
    clt_onnx_put_int(w, "start", 2);
    clt_onnx_put_int(w, "end", 3);
    return CLT_ONNX_PUT(w, "Shape", NULL, x);
}

/* Each head as often as queries share it: [N, key heads, S, D] -> [N, heads, S, D]. */
static const char *repeated(clt_onnx_writer *w, const char *x, const clt_attention_size *z) {
    if (z->heads == z->key_heads) return x;
    const char *apart = unsqueezed(w, x, 2);
    const char *wide = CLT_ONNX_PUT(w, "Expand", NULL, apart, clt_onnx_put_list(w, (int64_t[]){1, 1, z->heads / z->key_heads, 1, 1}, 5));
    return CLT_ONNX_PUT(w, "Reshape", NULL, wide, clt_onnx_put_list(w, (int64_t[]){0, z->heads, -1, z->d}, 4));
}

/* Minus infinity where a condition does not hold. */
static const char *hidden(clt_onnx_writer *w, const char *scores, const char *visible) {
    return CLT_ONNX_PUT(w, "Where", NULL, visible, scores, clt_onnx_put_scalar(w, -INFINITY));
}

static const char *masked(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *scores) {
    const clt_attention_attributes *at = node->attributes;
    const clt_tensor *mask = clt_attention_mask(node), *ids = clt_attention_position_ids(node);
    const char *names[2] = {"", ""};
    for (int i = node->op->least_inputs; i < node->n_inputs; i++) {
        if (node->inputs[i] == mask) names[0] = in[i];
        if (node->inputs[i] == ids) names[1] = in[i];
    }
    if (at->causal || ids) {
        const char *keys = numbers(w, places_of(w, in[1]));
        const char *last = ids ? unsqueezed(w, unsqueezed(w, names[1], 1), 3) : unsqueezed(w, numbers(w, places_of(w, in[0])), 1);
        if (ids) keys = clt_onnx_put_cast(w, NULL, keys, CLT_ONNX_INT32);
        scores = hidden(w, scores, CLT_ONNX_PUT(w, "GreaterOrEqual", NULL, last, keys));
    }
    if (!mask) return scores;
    if (mask->dtype == CLT_F32) return CLT_ONNX_PUT(w, "Add", NULL, scores, names[0]);
    return hidden(w, scores, clt_onnx_put_cast(w, NULL, names[0], CLT_ONNX_BOOL));
}

/* Of other ops: ONNX's own Attention is of opset 23. A query that sees no key, whose softmax is NaN, gives zeros. */
static const char *write_attention(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    clt_attention_size z = clt_attention_sizes(node);
    const char *keys = transposed(w, repeated(w, in[1], &z), 4), *values = repeated(w, in[2], &z);
    const char *queries = CLT_ONNX_PUT(w, "Mul", NULL, in[0], clt_onnx_put_scalar(w, clt_attention_scale(node)));
    const char *scores = masked(w, node, in, CLT_ONNX_PUT(w, "MatMul", NULL, queries, keys));
    clt_onnx_put_int(w, "axis", -1);
    const char *p = CLT_ONNX_PUT(w, "Softmax", NULL, scores);
    if (clt_attention_mask(node) || clt_attention_position_ids(node)) p = CLT_ONNX_PUT(w, "Where", NULL, CLT_ONNX_PUT(w, "IsNaN", NULL, p), clt_onnx_put_scalar(w, 0), p);
    return CLT_ONNX_PUT(w, "MatMul", y, p, values);
}

/* ---- the rest ---- */

static const char *write_cross_entropy(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    (void)node;
    clt_onnx_put_text(w, "reduction", "none");
    return CLT_ONNX_PUT(w, "SoftmaxCrossEntropyLoss", y, in[0], in[1]);
}

/* i32 [1]. */
static const char *integer(clt_onnx_writer *w, int value) {
    return clt_onnx_put_cast(w, NULL, clt_onnx_put_whole(w, value), CLT_ONNX_INT32);
}

static const char *write_ignore_index(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    const clt_ignore_index_attributes *at = node->attributes;
    const char *ignored = CLT_ONNX_PUT(w, "Equal", NULL, in[0], integer(w, at->ignored));
    return CLT_ONNX_PUT(w, "Where", y, ignored, integer(w, at->instead), in[0]);
}

/* Its further result. */
static const char *write_kept(clt_onnx_writer *w, const clt_tensor *node, const char *y) {
    const clt_ignore_index_attributes *at = node->attributes;
    const char *ignored = CLT_ONNX_PUT(w, "Equal", NULL, w->names[node->inputs[0]->index], integer(w, at->ignored));
    return clt_onnx_put_cast(w, y, CLT_ONNX_PUT(w, "Not", NULL, ignored), CLT_ONNX_FLOAT);
}

static const char *write_identity(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    (void)node;
    return y ? CLT_ONNX_PUT(w, "Identity", y, in[0]) : in[0];
}

static const struct rule {
    const clt_op *op;
    const char *(*write)(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y);
} rules[] = {
    {&clt_op_pointwise, clt_onnx_write_pointwise},
    {&clt_op_matmul, write_matmul},
    {&clt_op_conv2d, write_conv2d},
    {&clt_op_conv2d_grad_input, write_conv_transpose2d},
    {&clt_op_max_pool2d, write_pool2d},
    {&clt_op_avg_pool2d, write_pool2d},
    {&clt_op_batch_norm, write_batch_norm},
    {&clt_op_layer_norm, write_layer_norm},
    {&clt_op_softmax, write_softmax},
    {&clt_op_log_softmax, write_softmax},
    {&clt_op_reduce, write_reduce},
    {&clt_op_argmax, write_argmax},
    {&clt_op_cumsum, write_cumsum},
    {&clt_op_reshape, write_reshape},
    {&clt_op_permute, write_permute},
    {&clt_op_slice, write_slice},
    {&clt_op_concat, write_concat},
    {&clt_op_pad, write_pad},
    {&clt_op_expand, write_expand},
    {&clt_op_embedding, write_embedding},
    {&clt_op_one_hot, write_one_hot},
    {&clt_op_attention, write_attention},
    {&clt_op_cross_entropy, write_cross_entropy},
    {&clt_op_ignore_index, write_ignore_index},
    {&clt_op_dropout, write_identity},
};

/* Its values, and those it reads, are of types that ops of ONNX take here. */
static bool has_types(const clt_tensor *node) {
    bool all = clt_onnx_type_of_dtype(node->dtype) != 0;
    for (int i = 0; i < node->n_inputs; i++) all &= clt_onnx_type_of_dtype(node->inputs[i]->dtype) != 0;
    return all;
}

const char *clt_onnx_write_node(clt_onnx_writer *w, const clt_tensor *node, const char *const *in, const char *y) {
    char label[64];
    bool is_output = node->kind == CLT_NODE_OUTPUT;
    if (is_output && node->inputs[0]->op == &clt_op_ignore_index) return write_kept(w, node->inputs[0], y);
    for (size_t i = 0; has_types(node) && !is_output && i < CLT_COUNT_OF(rules); i++)
        if (rules[i].op == node->op) return rules[i].write(w, node, in, y);
    const char *why = has_types(node) ? "has no counterpart in ONNX: what is exported must not depend on it" : "is f16 or bf16: f32 alone is exported";
    clt_onnx_writer_fail(w, clt_fail(CLT_E_UNSUPPORTED, "%s %s", clt_tensor_label(node, label), why));
    return "";
}
