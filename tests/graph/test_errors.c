/* What builders say about wrong operands, and that errors stick. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include <cltrain/ops.h>

#include "runtime/graph/graph.h"

/* ---- tensors to be wrong with ---- */

static clt_tensor *image(clt_graph *g) {
    return clt_input(g, "image", CLT_F32, CLT_SHAPE(2, 3, 8, 6));
}

static clt_tensor *matrix(clt_graph *g) {
    return clt_input(g, "matrix", CLT_F32, CLT_SHAPE(2, 3));
}

static clt_tensor *other(clt_graph *g) {
    return clt_input(g, "other", CLT_F32, CLT_SHAPE(4, 5));
}

static clt_tensor *labels(clt_graph *g) {
    return clt_input(g, "labels", CLT_I32, CLT_SHAPE(4));
}

static clt_tensor *bytes(clt_graph *g) {
    return clt_input(g, "bytes", CLT_U8, CLT_SHAPE(2, 3));
}

static clt_tensor *scalar(clt_graph *g) {
    return clt_input(g, "scalar", CLT_F32, (clt_shape){0});
}

/* ---- a builder each, with what its error must say ---- */

#define BUILDER(name, expression)                    \
    static clt_tensor *name(clt_graph *g) {          \
        return expression;                           \
    }
BUILDER(add, clt_add(matrix(g), other(g)))
BUILDER(mul, clt_mul(image(g), other(g)))
BUILDER(div_bytes, clt_div(bytes(g), matrix(g)))
BUILDER(relu_bytes, clt_relu(bytes(g)))
BUILDER(clip, clt_clip(matrix(g), 2, 1))
BUILDER(cast, clt_cast(matrix(g), CLT_I64))
BUILDER(matmul, clt_matmul(matrix(g), other(g)))
BUILDER(matmul_turned, clt_matmul_with(matrix(g), other(g), (clt_matmul_options){.transpose_b = true}))
BUILDER(matmul_rank, clt_matmul(matrix(g), scalar(g)))
BUILDER(matmul_type, clt_matmul(bytes(g), matrix(g)))
BUILDER(linear, clt_linear(matrix(g), "fc", 0))
BUILDER(linear_nothing, clt_linear(matrix(g), NULL, 0))
BUILDER(linear_scalar, clt_linear(scalar(g), "fc", 3))
BUILDER(linear_nameless, clt_linear(matrix(g), NULL, 3))
BUILDER(conv_rank, clt_conv2d(matrix(g), "conv1", 4, .kernel = 3))
BUILDER(conv_groups, clt_conv2d(image(g), "conv1", 4, .kernel = 3, .groups = 2))
BUILDER(conv_groups_out, clt_conv2d(image(g), "conv1", 4, .kernel = 3, .groups = 3))
BUILDER(conv_large, clt_conv2d(image(g), "conv1", 4, .kernel = 9))
BUILDER(conv_no_kernel, clt_conv2d(image(g), "conv1", 4))
BUILDER(conv_padding, clt_conv2d(image(g), "conv1", 4, .kernel = 3, .padding = -1))
BUILDER(conv_weight, clt_conv2d_op(image(g), clt_parameter(g, "w", CLT_SHAPE(4, 5, 3, 3), (clt_init){0}), NULL,
                                   (clt_conv2d_options){0}))
static clt_tensor *sequence(clt_graph *g) {
    return clt_input(g, "sequence", CLT_F32, CLT_SHAPE(2, 4, 3));
}
BUILDER(argmax, clt_argmax(matrix(g), 2))
BUILDER(argmax_type, clt_argmax(bytes(g), 0))
BUILDER(cumsum, clt_cumsum(matrix(g), -3))
BUILDER(cumsum_bytes, clt_cumsum(bytes(g), 0))
BUILDER(one_hot, clt_one_hot(labels(g), 0))
BUILDER(one_hot_type, clt_one_hot(matrix(g), 3))
BUILDER(index_select, clt_index_select(matrix(g), 1, other(g)))
BUILDER(index_select_axis, clt_index_select(matrix(g), 2, labels(g)))
BUILDER(conv_transpose_rank, clt_conv_transpose2d(matrix(g), "up", 4, .kernel = 2))
BUILDER(conv_transpose_groups, clt_conv_transpose2d(image(g), "up", 4, .kernel = 2, .groups = 2))
BUILDER(conv_transpose_kernel, clt_conv_transpose2d(image(g), "up", 4))
BUILDER(conv_transpose_padding, clt_conv_transpose2d(image(g), "up", 4, .kernel = 2, .output_padding = 1))
BUILDER(conv_transpose_nothing, clt_conv_transpose2d(image(g), "up", 4, .kernel = 1, .padding = 4))
BUILDER(conv_transpose_weight, clt_conv_transpose2d_op(image(g), clt_parameter(g, "w", CLT_SHAPE(4, 3, 2, 2), (clt_init){0}), NULL, (clt_conv_transpose2d_options){0}))
BUILDER(bilinear, clt_upsample_bilinear2d(matrix(g), 4, 4))
BUILDER(bilinear_size, clt_upsample_bilinear2d(image(g), 0, 4))
BUILDER(adaptive, clt_adaptive_avg_pool2d(image(g), 4, 20000))
BUILDER(lstm, clt_lstm(matrix(g), "rnn", 4))
BUILDER(lstm_hidden, clt_lstm(sequence(g), "rnn", 0))
BUILDER(lstm_dropout, clt_lstm(sequence(g), "rnn", 4, .dropout = 1))
BUILDER(lstm_places, clt_lstm(sequence(g), "rnn", 4, .position_ids = clt_input(g, "ids", CLT_I32, CLT_SHAPE(2, 9))))
BUILDER(lstm_places_backward, clt_lstm(sequence(g), "rnn", 4, .bidirectional = true, .position_ids = clt_input(g, "ids", CLT_I32, CLT_SHAPE(2, 4))))
BUILDER(lstm_length, clt_lstm(clt_sequence_input(g, "s", CLT_F32, CLT_SHAPE(2, 4, 3), 1), "rnn", 4))
BUILDER(gru_nameless, clt_gru(sequence(g), NULL, 4))
BUILDER(squeeze, clt_squeeze(matrix(g), 0))
BUILDER(unsqueeze, clt_unsqueeze(matrix(g), 3))
BUILDER(stack, clt_stack(((clt_tensor *[]){matrix(g), other(g)}), 2, 0))
BUILDER(nll, clt_nll_loss(other(g), clt_input(g, "few", CLT_I32, CLT_SHAPE(2))))
BUILDER(kl_div, clt_kl_div_loss(matrix(g), other(g)))
BUILDER(cross_entropy_places, clt_cross_entropy(image(g), labels(g)))
BUILDER(pool_rank, clt_max_pool2d(matrix(g), .kernel = 2))
BUILDER(pool_large, clt_avg_pool2d(image(g), .kernel = 9))
BUILDER(pool_padding, clt_max_pool2d(image(g), .kernel = 2, .padding = 2))
BUILDER(pool_huge, clt_max_pool2d(image(g), .kernel = 2, .padding = INT32_MAX))
BUILDER(conv_huge, clt_conv2d(image(g), "conv1", 4, .kernel = 2, .dilation = 32767))
BUILDER(conv_kernel_limit, clt_conv2d(image(g), "conv1", 4, .kernel_h = 32768, .kernel_w = 1, .padding_h = 32767))
BUILDER(conv_stride_limit, clt_conv2d(image(g), "conv1", 4, .kernel = 1, .stride = 70000, .padding = 7))
BUILDER(conv_padding_limit, clt_conv2d(image(g), "conv1", 4, .kernel = 1, .stride = 32767, .padding_w = 32768))
BUILDER(conv_dilation_limit, clt_conv2d(image(g), "conv1", 4, .kernel = 1, .dilation = 32768))
BUILDER(linear_op, clt_linear_op(matrix(g), clt_parameter(g, "w", CLT_SHAPE(5, 4), (clt_init){0}), NULL))
BUILDER(embedding_op, clt_embedding_op(clt_input(g, "i", CLT_I32, CLT_SHAPE(4)), clt_parameter(g, "w", CLT_SHAPE(5), (clt_init){0})))
BUILDER(layer_norm_op, clt_layer_norm_op(matrix(g), clt_parameter(g, "w", CLT_SHAPE(4), (clt_init){0}),
                                         clt_parameter(g, "b", CLT_SHAPE(3), (clt_init){0}), (clt_norm_options){0}))
static clt_tensor *row(clt_graph *g, const char *name, int64_t size) {
    return clt_buffer(g, name, CLT_SHAPE(size), (clt_init){0});
}
BUILDER(batch_norm_op, clt_batch_norm_op(matrix(g), clt_parameter(g, "w", CLT_SHAPE(3), (clt_init){0}), row(g, "b", 3), clt_parameter(g, "m", CLT_SHAPE(3), (clt_init){0}), row(g, "v", 3), (clt_norm_options){0}))
BUILDER(batch_norm_weight, clt_batch_norm_op(matrix(g), row(g, "w", 2), row(g, "b", 3), row(g, "m", 3), row(g, "v", 3), (clt_norm_options){0}))
BUILDER(batch_norm_mean, clt_batch_norm_op(matrix(g), row(g, "w", 3), row(g, "b", 3), row(g, "m", 4), row(g, "v", 3), (clt_norm_options){0}))
BUILDER(conv_op_limit, clt_conv2d_op(image(g), clt_parameter(g, "w", CLT_SHAPE(4, 3, 1, 32768), (clt_init){0}), NULL,
                                     (clt_conv2d_options){.padding_w = 32767}))
BUILDER(conv_side_limit, clt_conv2d(clt_input(g, "line", CLT_F32, CLT_SHAPE(1, 1, 1, (1 << 30) + 1)), "conv1", 1, .kernel = 1))
BUILDER(pool_kernel_limit, clt_avg_pool2d(image(g), .kernel = 65536, .padding = 32767))
BUILDER(pool_stride_limit, clt_max_pool2d(image(g), .kernel = 2, .stride_h = 32768))
BUILDER(pool_side_limit, clt_max_pool2d(clt_input(g, "line", CLT_F32, CLT_SHAPE(1, 1, (1 << 30) + 1, 1)), .kernel = 1))
BUILDER(pool_no_kernel, clt_max_pool2d(image(g), .stride = 2))
BUILDER(global_pool, clt_global_avg_pool2d(matrix(g)))
BUILDER(batch_norm, clt_batch_norm(labels(g), "bn1"))
BUILDER(batch_norm_momentum, clt_batch_norm_with(matrix(g), "bn1", (clt_norm_options){.momentum = 2}))
BUILDER(layer_norm, clt_layer_norm(matrix(g), "ln1", 3))
BUILDER(layer_norm_zero, clt_layer_norm(matrix(g), "ln1", 0))
BUILDER(sum_axis, clt_sum(matrix(g), CLT_AXES(2)))
BUILDER(sum_many, clt_sum(matrix(g), ((clt_reduce_options){.n_axes = 9})))
BUILDER(sum_negative, clt_sum(matrix(g), ((clt_reduce_options){.n_axes = -1})))
BUILDER(max_twice, clt_max(matrix(g), CLT_AXES(1, -1)))
BUILDER(mean_type, clt_mean(labels(g), CLT_ALL_AXES))
BUILDER(reshape, clt_reshape(matrix(g), CLT_SHAPE(4, 2)))
BUILDER(reshape_two, clt_reshape(matrix(g), CLT_SHAPE(-1, -1)))
BUILDER(reshape_rest, clt_reshape(matrix(g), CLT_SHAPE(4, -1)))
BUILDER(reshape_zero, clt_reshape(matrix(g), CLT_SHAPE(0, 6)))
BUILDER(permute, clt_permute(matrix(g), (const int[]){1, 1}))
BUILDER(permute_range, clt_permute(matrix(g), (const int[]){0, 2}))
BUILDER(transpose, clt_transpose(matrix(g), 0, 2))
BUILDER(concat, clt_concat(((clt_tensor *[]){matrix(g), other(g)}), 2, 0))
BUILDER(concat_axis, clt_concat(((clt_tensor *[]){matrix(g)}), 1, 2))
BUILDER(concat_type, clt_concat(((clt_tensor *[]){matrix(g), bytes(g)}), 2, 0))
BUILDER(slice_axis, clt_slice(matrix(g), 2, 0, 1, 1))
BUILDER(like_axis, clt_slice_like(matrix(g), other(g), 2))
BUILDER(like_batch, clt_slice_like(other(g), matrix(g), 0))
BUILDER(like_short, clt_slice_like(matrix(g), other(g), 1))
BUILDER(like_scalar, clt_slice_like(scalar(g), other(g), 1))
BUILDER(slice_empty, clt_slice(matrix(g), 1, 2, 2, 1))
BUILDER(slice_step, clt_slice(matrix(g), 1, 0, 2, 0))
BUILDER(slice_before, clt_slice(matrix(g), 1, -4, 2, 1))
BUILDER(pad, clt_pad(matrix(g), (const int64_t[]){0, -1}, (const int64_t[]){0, 0}, 0))
BUILDER(expand, clt_expand(matrix(g), CLT_SHAPE(2, 6)))
BUILDER(expand_less, clt_expand(matrix(g), CLT_SHAPE(3)))
BUILDER(expand_rank, clt_expand(matrix(g), ((clt_shape){.rank = 9})))
BUILDER(expand_negative, clt_expand(scalar(g), CLT_SHAPE(2, -1)))
BUILDER(reshape_rank, clt_reshape(matrix(g), ((clt_shape){.rank = 9})))
BUILDER(dropout, clt_dropout(matrix(g), 1))
BUILDER(embedding, clt_embedding(matrix(g), "words", 5, 2))
BUILDER(embedding_empty, clt_embedding(labels(g), "words", 0, 2))
static clt_tensor *ids(clt_graph *g) {
    return clt_input(g, "ids", CLT_I32, CLT_SHAPE(2, 3));
}
static clt_tensor *heads(clt_graph *g) {
    return clt_input(g, "heads", CLT_F32, CLT_SHAPE(2, 3, 8, 6));
}
BUILDER(cache_rank, clt_cache(matrix(g), "c", 9, ids(g)))
BUILDER(cache_places, clt_cache(heads(g), "c", 9, ids(g)))
BUILDER(cache_type, clt_cache(heads(g), "c", 9, matrix(g)))
BUILDER(cache_empty, clt_cache(heads(g), "c", 0, ids(g)))
static clt_tensor *cache_twice(clt_graph *g) {
    clt_tensor *x = heads(g), *places = clt_input(g, "places", CLT_I32, CLT_SHAPE(2, 8));
    clt_cache(x, "c", 9, places);
    return clt_cache(x, "c", 9, places);
}
static clt_tensor *attention_places(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .position_ids = ids(g));
}
static clt_tensor *attention_places_type(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .position_ids = matrix(g));
}
static clt_tensor *attention_mask(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .mask = x);
}
static clt_tensor *attention_mask_rank(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .mask = matrix(g));
}
static clt_tensor *attention_mask_type(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .mask = ids(g));
}
static clt_tensor *attention_dropout(clt_graph *g) {
    clt_tensor *x = heads(g);
    return clt_attention(x, x, x, .dropout = 1);
}
BUILDER(rotary_places, clt_rotary(heads(g), .position_ids = ids(g)))
BUILDER(rotary_places_type, clt_rotary(heads(g), .position_ids = clt_input(g, "places", CLT_F32, CLT_SHAPE(2, 8))))
BUILDER(softmax, clt_softmax(matrix(g), 2))
BUILDER(log_softmax, clt_log_softmax(scalar(g), 0))
BUILDER(cross_entropy, clt_cross_entropy(matrix(g), labels(g)))
BUILDER(cross_entropy_type, clt_cross_entropy(matrix(g), other(g)))
BUILDER(cross_entropy_rank, clt_cross_entropy(image(g), labels(g)))
BUILDER(bce, clt_bce_with_logits(matrix(g), other(g)))
BUILDER(mse, clt_mse_loss(matrix(g), image(g)))
BUILDER(input_nameless, clt_input(g, "", CLT_F32, CLT_SHAPE(1)))
BUILDER(input_type, clt_input(g, "wide", CLT_I64, CLT_SHAPE(1)))
BUILDER(input_zero, clt_input(g, "none", CLT_F32, CLT_SHAPE(3, 0)))
BUILDER(input_rank, clt_input(g, "deep", CLT_F32, ((clt_shape){.rank = 9})))
BUILDER(input_large, clt_input(g, "huge", CLT_F32, CLT_SHAPE(1 << 20, 1 << 21)))
BUILDER(parameter_large, clt_parameter(g, "huge", CLT_SHAPE(65536, 65536), (clt_init){0}))
BUILDER(result_large, clt_add(clt_input(g, "a", CLT_F32, CLT_SHAPE(1 << 20, 1)),
                              clt_input(g, "b", CLT_F32, CLT_SHAPE(1, 1 << 21))))
BUILDER(twice_input, (matrix(g), matrix(g)))
BUILDER(twice_parameter, (clt_linear(matrix(g), "fc", 3), clt_linear(other(g), "fc", 3)))
BUILDER(twice_kinds, (clt_parameter(g, "p", CLT_SHAPE(2), (clt_init){0}),
                      clt_buffer(g, "p", CLT_SHAPE(2), (clt_init){0})))
BUILDER(name_bytes, clt_parameter(g, "\xff\xfe", CLT_SHAPE(2), (clt_init){0}))
BUILDER(name_surrogate, clt_buffer(g, "a\xed\xa0\x80", CLT_SHAPE(2), (clt_init){0}))
BUILDER(name_layer, clt_linear(matrix(g), "\xe4", 3))
BUILDER(name_metadata, clt_parameter(g, "__metadata__", CLT_SHAPE(2), (clt_init){0}))
BUILDER(name_state, clt_buffer(g, "cltrain.optimizer.momentum_buffer.w", CLT_SHAPE(2), (clt_init){0}))
BUILDER(name_tracked, clt_parameter(g, "bn.num_batches_tracked", CLT_SHAPE(2), (clt_init){0}))
BUILDER(init_kind, clt_parameter(g, "p", CLT_SHAPE(2), ((clt_init){.kind = (clt_init_kind)99})))

static clt_tensor *constant(clt_graph *g, const char *name, clt_dtype dtype, clt_shape shape, const void *data) {
    return clt_constant(g, name, &(clt_array){dtype, shape, (void *)(uintptr_t)data});
}
static const float ones[2] = {1, 1};
BUILDER(constant_none, clt_constant(g, "c", NULL))
BUILDER(constant_empty, constant(g, "c", CLT_F32, CLT_SHAPE(2), NULL))
BUILDER(constant_type, constant(g, "c", CLT_I64, CLT_SHAPE(1), ones))
BUILDER(constant_zero, constant(g, "c", CLT_F32, CLT_SHAPE(2, 0), ones))
BUILDER(constant_twice, (row(g, "c", 2), constant(g, "c", CLT_F32, CLT_SHAPE(2), ones)))
BUILDER(constant_as_input, (clt_input(g, "c", CLT_F32, CLT_SHAPE(2)), constant(g, "c", CLT_F32, CLT_SHAPE(2), ones)))
BUILDER(input_as_parameter, (row(g, "p", 2), clt_input(g, "p", CLT_F32, CLT_SHAPE(2))))
BUILDER(input_as_result, (clt_tensor_set_name(clt_exp(row(g, "p", 2)), "e"), clt_input(g, "e", CLT_F32, CLT_SHAPE(2))))
BUILDER(fixed_type, clt_fixed_input(g, "f", CLT_I64, CLT_SHAPE(2)))
BUILDER(fixed_twice, (row(g, "f", 2), clt_fixed_input(g, "f", CLT_F32, CLT_SHAPE(2))))

static clt_tensor *inputs_of(clt_graph *g, int n) {
    clt_tensor *last = NULL;
    for (int i = 0; i < n; i++) last = clt_input(g, (char[]){'i', (char)('a' + i), 0}, CLT_F32, CLT_SHAPE(2));
    return last;
}
BUILDER(input_seventeenth, (inputs_of(g, CLT_MAX_FIELDS), matrix(g)))
BUILDER(constant_nameless, constant(g, NULL, CLT_F32, CLT_SHAPE(2), ones))

static const struct {
    const char *name;
    clt_tensor *(*build)(clt_graph *g);
    clt_status status;
    const char *words[4]; /* all are in the message */
} wrongs[] = {
#define WRONG(builder, status, ...) {#builder, builder, status, {__VA_ARGS__}}
    WRONG(add, CLT_E_SHAPE, "add", "\"matrix\" [2, 3]", "\"other\" [4, 5]"),
    WRONG(mul, CLT_E_SHAPE, "mul", "\"image\" [2, 3, 8, 6]", "\"other\" [4, 5]"),
    WRONG(div_bytes, CLT_E_DTYPE, "div", "\"bytes\"", "u8", "f32"),
    WRONG(relu_bytes, CLT_E_DTYPE, "relu", "\"bytes\"", "u8", "f32"),
    WRONG(clip, CLT_E_INVALID, "clip", "2", "1"),
    WRONG(cast, CLT_E_DTYPE, "cast", "i64"),
    WRONG(matmul, CLT_E_SHAPE, "matmul", "\"matrix\" [2, 3]", "\"other\" [4, 5]"),
    WRONG(matmul_turned, CLT_E_SHAPE, "matmul", "\"matrix\" [2, 3]", "\"other\" [4, 5]", "second transposed"),
    WRONG(matmul_rank, CLT_E_SHAPE, "matmul", "\"scalar\" []"),
    WRONG(matmul_type, CLT_E_DTYPE, "matmul", "\"bytes\"", "u8"),
    WRONG(linear, CLT_E_SHAPE, "linear \"fc\"", "[2, 3]", "0 features"),
    WRONG(linear_nothing, CLT_E_SHAPE, "linear", "[2, 3]", "0 features"),
    WRONG(linear_scalar, CLT_E_SHAPE, "linear \"fc\"", "[]"),
    WRONG(linear_nameless, CLT_E_INVALID, "name"),
    WRONG(argmax, CLT_E_INVALID, "argmax", "axis 2 of [2, 3]"),
    WRONG(argmax_type, CLT_E_DTYPE, "argmax", "\"bytes\", is u8; it must be f32 or i32"),
    WRONG(cumsum, CLT_E_INVALID, "cumsum", "axis -3 of [2, 3]"),
    WRONG(cumsum_bytes, CLT_E_DTYPE, "cumsum", "\"bytes\", is u8; it must be f32 or i32"),
    WRONG(one_hot, CLT_E_INVALID, "one_hot", "count is 0"),
    WRONG(one_hot_type, CLT_E_DTYPE, "one_hot", "f32"),
    WRONG(index_select, CLT_E_SHAPE, "index_select", "f32 of rank 2"),
    WRONG(index_select_axis, CLT_E_SHAPE, "index_select", "axis 2"),
    WRONG(conv_transpose_rank, CLT_E_SHAPE, "conv_transpose2d \"up\"", "[2, 3]"),
    WRONG(conv_transpose_groups, CLT_E_SHAPE, "conv_transpose2d \"up\"", "in 2 groups"),
    WRONG(conv_transpose_kernel, CLT_E_SHAPE, "conv_transpose2d \"up\"", "a kernel of 0"),
    WRONG(conv_transpose_padding, CLT_E_INVALID, "conv_transpose2d \"up\"", "output_padding is 1: it must be less than the stride, 1"),
    WRONG(conv_transpose_nothing, CLT_E_SHAPE, "conv_transpose2d", "nothing is left by a padding of 4"),
    WRONG(conv_transpose_weight, CLT_E_SHAPE, "conv_transpose2d", "[4, 3, 2, 2]"),
    WRONG(bilinear, CLT_E_SHAPE, "upsample_bilinear2d", "[2, 3]"),
    WRONG(bilinear_size, CLT_E_SHAPE, "upsample_bilinear2d", "0x4"),
    WRONG(adaptive, CLT_E_SHAPE, "adaptive_avg_pool2d", "4x20000"),
    WRONG(lstm, CLT_E_SHAPE, "lstm \"rnn\"", "got [2, 3]"),
    WRONG(lstm_hidden, CLT_E_SHAPE, "lstm \"rnn\"", "hidden 1 or more"),
    WRONG(lstm_dropout, CLT_E_SHAPE, "lstm \"rnn\"", "dropout in [0, 1)"),
    WRONG(lstm_places, CLT_E_SHAPE, "lstm \"rnn\"", "position_ids i32 ["),
    WRONG(lstm_places_backward, CLT_E_INVALID, "lstm \"rnn\"", "bidirectional"),
    WRONG(lstm_length, CLT_E_SHAPE, "lstm \"rnn\"", "T, which must be one size"),
    WRONG(gru_nameless, CLT_E_INVALID, "weight_ih_l0", "has no name"),
    WRONG(squeeze, CLT_E_SHAPE, "squeeze", "axis 0 of [2, 3] is not always 1"),
    WRONG(unsqueeze, CLT_E_SHAPE, "unsqueeze", "axis 3 of [2, 3]"),
    WRONG(stack, CLT_E_SHAPE, "concat", "[1, 2, 3]"),
    WRONG(nll, CLT_E_SHAPE, "nll_loss", "[4, 5]"),
    WRONG(kl_div, CLT_E_SHAPE, "kl_div_loss", "differ in shape"),
    WRONG(cross_entropy_places, CLT_E_SHAPE, "cross_entropy", "without its classes, dimension 1"),
    WRONG(conv_rank, CLT_E_SHAPE, "conv2d \"conv1\"", "[2, 3]"),
    WRONG(conv_groups, CLT_E_SHAPE, "conv2d \"conv1\"", "[2, 3, 8, 6]", "2 groups"),
    WRONG(conv_groups_out, CLT_E_SHAPE, "conv2d", "[2, 3, 8, 6]", "[4, 1, 3, 3]", "3 groups"),
    WRONG(conv_large, CLT_E_SHAPE, "conv2d", "[2, 3, 8, 6]", "[4, 3, 9, 9]"),
    WRONG(conv_no_kernel, CLT_E_INVALID, "conv2d \"conv1\"", "kernel_h is 0"),
    WRONG(conv_padding, CLT_E_INVALID, "conv2d \"conv1\"", "padding_h is -1"),
    WRONG(conv_weight, CLT_E_SHAPE, "conv2d", "\"image\" [2, 3, 8, 6]", "\"w\" [4, 5, 3, 3]"),
    WRONG(pool_rank, CLT_E_SHAPE, "max_pool2d", "\"matrix\" [2, 3]"),
    WRONG(pool_large, CLT_E_SHAPE, "avg_pool2d", "9x9", "[2, 3, 8, 6]"),
    WRONG(pool_padding, CLT_E_INVALID, "max_pool2d", "padding 2x2"),
    WRONG(pool_huge, CLT_E_INVALID, "max_pool2d", "padding_h is 2147483647"),
    WRONG(conv_huge, CLT_E_SHAPE, "conv2d", "[2, 3, 8, 6]", "[4, 3, 2, 2]"),
    WRONG(conv_kernel_limit, CLT_E_INVALID, "conv2d \"conv1\"", "kernel_h is 32768", "32767"),
    WRONG(conv_stride_limit, CLT_E_INVALID, "conv2d \"conv1\"", "stride_h is 70000", "32767"),
    WRONG(conv_padding_limit, CLT_E_INVALID, "conv2d \"conv1\"", "padding_w is 32768", "32767"),
    WRONG(conv_dilation_limit, CLT_E_INVALID, "conv2d \"conv1\"", "dilation_h is 32768", "32767"),
    WRONG(conv_op_limit, CLT_E_INVALID, "conv2d", "kernel_w is 32768", "32767"),
    WRONG(linear_op, CLT_E_SHAPE, "linear", "[2, 3]", "\"w\" [5, 4]"),
    WRONG(embedding_op, CLT_E_SHAPE, "embedding", "\"w\" [5]"),
    WRONG(layer_norm_op, CLT_E_SHAPE, "layer_norm", "[2, 3]", "\"w\" [4]"),
    WRONG(batch_norm_op, CLT_E_INVALID, "batch_norm", "must be buffers"),
    WRONG(batch_norm_weight, CLT_E_SHAPE, "batch_norm", "\"w\" [2]"),
    WRONG(batch_norm_mean, CLT_E_SHAPE, "batch_norm", "\"m\" [4]"),
    WRONG(conv_side_limit, CLT_E_SHAPE, "conv2d", "\"line\" [1, 1, 1, 1073741825]", "2^30"),
    WRONG(pool_kernel_limit, CLT_E_INVALID, "avg_pool2d", "kernel_h is 65536", "32767"),
    WRONG(pool_stride_limit, CLT_E_INVALID, "max_pool2d", "stride_h is 32768", "32767"),
    WRONG(pool_side_limit, CLT_E_SHAPE, "max_pool2d", "\"line\" [1, 1, 1073741825, 1]", "2^30"),
    WRONG(pool_no_kernel, CLT_E_INVALID, "max_pool2d", "kernel_h is 0"),
    WRONG(global_pool, CLT_E_SHAPE, "global_avg_pool2d", "[2, 3]"),
    WRONG(batch_norm, CLT_E_SHAPE, "batch_norm \"bn1\"", "[4] is not [N, C, ...]"),
    WRONG(batch_norm_momentum, CLT_E_INVALID, "batch_norm \"bn1\"", "momentum 2"),
    WRONG(layer_norm, CLT_E_SHAPE, "layer_norm \"ln1\"", "3", "[2, 3]"),
    WRONG(layer_norm_zero, CLT_E_SHAPE, "layer_norm \"ln1\"", "0", "[2, 3]"),
    WRONG(sum_axis, CLT_E_INVALID, "sum", "axis 2", "[2, 3]"),
    WRONG(sum_many, CLT_E_INVALID, "sum", "9 axes"),
    WRONG(sum_negative, CLT_E_INVALID, "sum", "-1 axes"),
    WRONG(max_twice, CLT_E_INVALID, "max", "axis -1", "[2, 3]"),
    WRONG(mean_type, CLT_E_DTYPE, "mean", "\"labels\"", "i32"),
    WRONG(reshape, CLT_E_SHAPE, "reshape", "\"matrix\" [2, 3]", "[4, 2]"),
    WRONG(reshape_two, CLT_E_SHAPE, "reshape", "[2, 3]", "[-1, -1]"),
    WRONG(reshape_rest, CLT_E_SHAPE, "reshape", "[2, 3]", "[4, -1]"),
    WRONG(reshape_zero, CLT_E_SHAPE, "reshape", "[2, 3]", "[0, 6]"),
    WRONG(permute, CLT_E_INVALID, "permute", "order[1] = 1"),
    WRONG(permute_range, CLT_E_INVALID, "permute", "order[1] = 2"),
    WRONG(transpose, CLT_E_INVALID, "transpose", "0 and 2", "[2, 3]"),
    WRONG(concat, CLT_E_SHAPE, "concat", "\"matrix\" [2, 3]", "\"other\" [4, 5]", "axis 0"),
    WRONG(concat_axis, CLT_E_INVALID, "concat", "axis 2", "[2, 3]"),
    WRONG(concat_type, CLT_E_DTYPE, "concat", "\"bytes\"", "u8", "f32"),
    WRONG(slice_axis, CLT_E_SHAPE, "slice", "axis 2", "[2, 3]"),
    WRONG(like_axis, CLT_E_SHAPE, "slice_like", "axis 2", "[4, 5]"),
    WRONG(like_batch, CLT_E_SHAPE, "slice_like", "axis 0 of [2, 3] is neither"),
    WRONG(like_short, CLT_E_SHAPE, "slice_like", "as many rows as [4, 5] has places along axis 1, got [2, 3]"),
    WRONG(like_scalar, CLT_E_SHAPE, "slice_like", "got []"),
    WRONG(slice_empty, CLT_E_SHAPE, "slice", "from 2 to 2", "[2, 3]"),
    WRONG(slice_step, CLT_E_SHAPE, "slice", "by 0", "[2, 3]"),
    WRONG(slice_before, CLT_E_SHAPE, "slice", "[2, 3]"),
    WRONG(pad, CLT_E_INVALID, "pad", "-1 before", "dimension 1"),
    WRONG(expand, CLT_E_SHAPE, "expand", "[2, 3]", "[2, 6]"),
    WRONG(expand_less, CLT_E_SHAPE, "expand", "[2, 3]", "[3]"),
    WRONG(expand_rank, CLT_E_SHAPE, "expand", "rank 9"),
    WRONG(expand_negative, CLT_E_SHAPE, "expand", "[2, -1]"),
    WRONG(reshape_rank, CLT_E_SHAPE, "reshape", "[2, 3]"),
    WRONG(dropout, CLT_E_INVALID, "dropout", "1"),
    WRONG(embedding, CLT_E_DTYPE, "embedding", "\"matrix\"", "f32", "i32"),
    WRONG(embedding_empty, CLT_E_SHAPE, "words.weight", "[0, 2]"),
    WRONG(cache_rank, CLT_E_SHAPE, "cache", "[N, heads, T, D]", "[2, 3]"),
    WRONG(cache_places, CLT_E_SHAPE, "cache", "position_ids [2, 3]: expected [2, 8]"),
    WRONG(cache_type, CLT_E_DTYPE, "cache", "\"matrix\"", "f32", "i32"),
    WRONG(cache_empty, CLT_E_SHAPE, "\"c\"", "[2, 3, 0, 6]"),
    WRONG(cache_twice, CLT_E_INVALID, "\"c\" exists already"),
    WRONG(attention_places, CLT_E_SHAPE, "attention", "position_ids [2, 3]: expected [2, 8]"),
    WRONG(attention_places_type, CLT_E_SHAPE, "attention", "position_ids are f32 [2, 3]"),
    WRONG(attention_mask, CLT_E_SHAPE, "attention", "the mask is f32 [2, 3, 8, 6]: expected f32 or u8 [2, 3, 8, 8]"),
    WRONG(attention_mask_rank, CLT_E_SHAPE, "attention", "the mask is f32 [2, 3]"),
    WRONG(attention_mask_type, CLT_E_SHAPE, "attention", "the mask is i32 [2, 3]"),
    WRONG(attention_dropout, CLT_E_INVALID, "attention", "dropout is 1"),
    WRONG(rotary_places, CLT_E_SHAPE, "rotary", "expected position_ids [2, 8], got [2, 3]"),
    WRONG(rotary_places_type, CLT_E_DTYPE, "\"places\"", "f32", "i32"),
    WRONG(softmax, CLT_E_INVALID, "softmax", "axis 2", "[2, 3]"),
    WRONG(log_softmax, CLT_E_INVALID, "log_softmax", "axis 0", "[]"),
    WRONG(cross_entropy, CLT_E_SHAPE, "cross_entropy", "\"matrix\" [2, 3]", "\"labels\" [4]"),
    WRONG(cross_entropy_type, CLT_E_DTYPE, "cross_entropy", "\"other\"", "f32", "i32"),
    WRONG(cross_entropy_rank, CLT_E_SHAPE, "cross_entropy", "\"image\" [2, 3, 8, 6]"),
    WRONG(bce, CLT_E_SHAPE, "bce_with_logits", "\"matrix\" [2, 3]", "\"other\" [4, 5]"),
    WRONG(mse, CLT_E_SHAPE, "mse_loss", "\"matrix\" [2, 3]", "\"image\" [2, 3, 8, 6]"),
    WRONG(input_seventeenth, CLT_E_UNSUPPORTED, "input \"matrix\"", "at most 16 inputs"),
    WRONG(input_nameless, CLT_E_INVALID, "input", "name"),
    WRONG(input_type, CLT_E_DTYPE, "\"wide\"", "i64"),
    WRONG(input_zero, CLT_E_SHAPE, "\"none\"", "[3, 0]"),
    WRONG(input_rank, CLT_E_SHAPE, "\"deep\"", "9"),
    WRONG(input_large, CLT_E_SHAPE, "\"huge\"", "[1048576, 2097152]"),
    WRONG(parameter_large, CLT_E_SHAPE, "\"huge\"", "[65536, 65536]", "2^31 - 1"),
    WRONG(result_large, CLT_E_SHAPE, "add", "[1048576, 2097152]"),
    WRONG(twice_input, CLT_E_INVALID, "input \"matrix\"", "exists"),
    WRONG(twice_parameter, CLT_E_INVALID, "\"fc.weight\"", "exists"),
    WRONG(twice_kinds, CLT_E_INVALID, "\"p\"", "exists"),
    WRONG(name_bytes, CLT_E_INVALID, "parameter", "\"\\xff\\xfe\" is not UTF-8"),
    WRONG(name_surrogate, CLT_E_INVALID, "buffer", "\"a\\xed\\xa0\\x80\" is not UTF-8"),
    WRONG(name_layer, CLT_E_INVALID, "parameter", "\"\\xe4.weight\" is not UTF-8"),
    WRONG(name_metadata, CLT_E_INVALID, "parameter", "\"__metadata__\" is reserved"),
    WRONG(name_state, CLT_E_INVALID, "buffer", "\"cltrain.optimizer.momentum_buffer.w\" begins with cltrain.optimizer."),
    WRONG(name_tracked, CLT_E_INVALID, "parameter", "\"bn.num_batches_tracked\" ends with .num_batches_tracked"),
    WRONG(init_kind, CLT_E_INVALID, "\"p\"", "99"),
    WRONG(constant_none, CLT_E_INVALID, "constant \"c\"", "no values"),
    WRONG(constant_empty, CLT_E_INVALID, "constant \"c\"", "no values"),
    WRONG(constant_type, CLT_E_DTYPE, "constant \"c\"", "i64"),
    WRONG(constant_zero, CLT_E_SHAPE, "constant \"c\""),
    WRONG(constant_twice, CLT_E_INVALID, "constant \"c\" exists already"),
    WRONG(constant_as_input, CLT_E_INVALID, "constant \"c\" exists already, as an input"),
    WRONG(input_as_parameter, CLT_E_INVALID, "input \"p\" exists already"),
    WRONG(input_as_result, CLT_E_INVALID, "input \"e\" exists already"),
    WRONG(fixed_type, CLT_E_DTYPE, "fixed input \"f\"", "i64"),
    WRONG(fixed_twice, CLT_E_INVALID, "fixed input \"f\" exists already"),
    WRONG(constant_nameless, CLT_E_INVALID, "constant without a name"),
};

static void messages_name_the_thing(void **state) {
    (void)state;
    int failures = 0;
    for (size_t i = 0; i < CLT_COUNT_OF(wrongs); i++) {
        clt_graph *g;
        assert_ok(clt_graph_create(&g));
        const clt_tensor *result = wrongs[i].build(g);
        clt_status status = clt_graph_status(g);
        bool good = status == wrongs[i].status && result && result->kind == CLT_NODE_INVALID;
        for (int w = 0; w < 4 && wrongs[i].words[w]; w++)
            good &= strstr(clt_error_detail(), wrongs[i].words[w]) != NULL;
        if (!good) {
            print_error("%s: %s \"%s\", wanted %s with", wrongs[i].name, clt_status_name(status),
                        status == CLT_OK ? "" : clt_error_detail(), clt_status_name(wrongs[i].status));
            for (int w = 0; w < 4 && wrongs[i].words[w]; w++) print_error(" '%s'", wrongs[i].words[w]);
            print_error("\n");
            failures++;
        }
        clt_graph_destroy(g);
    }
    assert_int_equal(failures, 0);
}

/* ---- errors stick ---- */

static void splits_have_parts(void **state) {
    (void)state;
    clt_graph *g;
    clt_tensor *part = NULL;
    assert_ok(clt_graph_create(&g));
    clt_split(row(g, "p", 2), 0, NULL, 0, &part);
    assert_status(clt_graph_status(g), CLT_E_INVALID);
    assert_detail("split: into 0 parts");
    clt_graph_destroy(g);
}

static void first_error_sticks(void **state) {
    (void)state;
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *a = matrix(g), *bad = clt_matmul(a, other(g));
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("matmul");
    /* What comes after is quiet, and does not replace it. */
    clt_tensor *later = clt_conv2d(clt_relu(clt_add(bad, a)), "conv", 3, .kernel = 3);
    assert_ptr_equal(later, bad);
    clt_softmax(a, 7);
    clt_fail(CLT_E_IO, "something else on this thread");
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("matmul");
    assert_int_equal(clt_tensor_shape(bad).rank, -1);
    /* Builders given a good tensor go on working. */
    assert_true(clt_tensor_valid(clt_relu(a)));
    clt_graph_destroy(g);
}

/* Each builder with an invalid tensor gives an invalid tensor. */
static void invalid_tensors_are_handed_on(void **state) {
    (void)state;
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = matrix(g), *bad = clt_matmul(x, x), *pair[] = {x, bad};
    const int order[] = {0, 1};
    const int64_t border[] = {1, 1};
    const clt_user_op op = {.name = "op", .source = "", .n_inputs = 2, .forward = "f"};
    clt_tensor *results[] = {
        clt_add(x, bad),
        clt_add(bad, x),
        clt_div(bad, bad),
        clt_neg(bad),
        clt_clip(bad, 0, 1),
        clt_clip(bad, 1, 0),
        clt_pow_scalar(bad, 2),
        clt_cast(bad, CLT_I32),
        clt_matmul(x, bad),
        clt_linear(bad, "fc", 2),
        clt_conv2d(bad, "conv", 2, .kernel = 1),
        clt_conv2d_op(bad, x, NULL, (clt_conv2d_options){0}),
        clt_conv2d_op(x, bad, x, (clt_conv2d_options){0}),
        clt_linear_op(bad, x, NULL),
        clt_linear_op(x, bad, x),
        clt_embedding_op(x, bad),
        clt_layer_norm_op(x, x, bad, (clt_norm_options){0}),
        clt_batch_norm_op(x, x, x, bad, x, (clt_norm_options){0}),
        clt_max_pool2d(bad, .kernel = 2),
        clt_avg_pool2d(bad, .kernel = 2),
        clt_global_avg_pool2d(bad),
        clt_batch_norm(bad, "bn"),
        clt_layer_norm(bad, "ln", 1),
        clt_sum(bad, CLT_ALL_AXES),
        clt_mean(bad, CLT_AXES(0)),
        clt_max(bad, CLT_AXES(9)),
        clt_reshape(bad, CLT_SHAPE(6)),
        clt_flatten(bad),
        clt_permute(bad, order),
        clt_transpose(bad, 0, 1),
        clt_concat(pair, 2, 0),
        clt_slice(bad, 0, 0, 1, 1),
        clt_argmax(bad, 0),
        clt_cumsum(bad, 0),
        clt_one_hot(bad, 2),
        clt_index_select(bad, 0, x),
        clt_index_select(x, 0, bad),
        clt_conv_transpose2d(bad, "up", 2, .kernel = 2),
        clt_conv_transpose2d_op(x, bad, NULL, (clt_conv_transpose2d_options){0}),
        clt_upsample_bilinear2d(bad, 2, 2),
        clt_adaptive_avg_pool2d(bad, 2, 2),
        clt_lstm(bad, "rnn", 2),
        clt_gru(bad, "rnn", 2),
        clt_stack(pair, 2, 0),
        clt_squeeze(bad, 0),
        clt_unsqueeze(bad, 0),
        clt_nll_loss(x, bad),
        clt_nll_loss(bad, x),
        clt_kl_div_loss(x, bad),
        clt_slice_like(bad, x, 0),
        clt_cache(bad, "c", 9, x),
        clt_cache(clt_reshape(x, CLT_SHAPE(1, 1, 2, 3)), "c2", 9, bad),
        clt_attention(x, x, x, .position_ids = bad),
        clt_attention(x, x, x, .mask = bad),
        clt_slice_like(x, bad, 0),
        clt_pad(bad, border, border, 0),
        clt_expand(bad, CLT_SHAPE(2, 3)),
        clt_dropout(bad, 0.5f),
        clt_embedding(bad, "words", 3, 3),
        clt_softmax(bad, 0),
        clt_log_softmax(bad, 0),
        clt_cross_entropy(bad, x),
        clt_cross_entropy(x, bad),
        clt_bce_with_logits(x, bad),
        clt_mse_loss(bad, x),
        clt_apply(&op, pair, NULL, 0),
    };
    for (size_t i = 0; i < CLT_COUNT_OF(results); i++) assert_ptr_equal(results[i], bad);
    assert_int_equal(clt_graph_parameter_count(g), 0);
    assert_status(clt_graph_status(g), CLT_E_SHAPE);
    assert_detail("matmul");
    clt_graph_destroy(g);
}

/* Builders given NULL return NULL. */
static void null_is_handed_on(void **state) {
    (void)state;
    clt_graph *g;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = matrix(g), *pair[] = {x, NULL}, *none[] = {NULL, x};
    const int order[] = {0, 1};
    const int64_t border[] = {1, 1};
    const clt_user_op op = {.name = "op", .source = "", .n_inputs = 2, .forward = "f"};
    clt_tensor *results[] = {
        clt_input(NULL, "x", CLT_F32, CLT_SHAPE(1)),
        clt_parameter(NULL, "x", CLT_SHAPE(1), (clt_init){0}),
        clt_buffer(NULL, "x", CLT_SHAPE(1), (clt_init){0}),
        clt_add(NULL, x),
        clt_add(x, NULL),
        clt_add(NULL, NULL),
        clt_relu(NULL),
        clt_clip(NULL, 0, 1),
        clt_clip(NULL, 1, 0),
        clt_mul_scalar(NULL, 2),
        clt_cast(NULL, CLT_I32),
        clt_matmul(x, NULL),
        clt_linear(NULL, "fc", 2),
        clt_conv2d(NULL, "conv", 2, .kernel = 1),
        clt_conv2d_op(NULL, x, x, (clt_conv2d_options){0}),
        clt_conv2d_op(x, NULL, x, (clt_conv2d_options){0}),
        clt_linear_op(NULL, x, x),
        clt_linear_op(x, NULL, x),
        clt_embedding_op(NULL, x),
        clt_layer_norm_op(x, NULL, x, (clt_norm_options){0}),
        clt_batch_norm_op(x, x, x, NULL, NULL, (clt_norm_options){0}),
        clt_max_pool2d(NULL, .kernel = 2),
        clt_avg_pool2d(NULL, .kernel = 2),
        clt_global_avg_pool2d(NULL),
        clt_batch_norm(NULL, "bn"),
        clt_layer_norm(NULL, "ln", 1),
        clt_sum(NULL, CLT_ALL_AXES),
        clt_mean(NULL, CLT_AXES(0)),
        clt_max(NULL, CLT_AXES(0)),
        clt_reshape(NULL, CLT_SHAPE(6)),
        clt_flatten(NULL),
        clt_permute(NULL, order),
        clt_transpose(NULL, 0, 1),
        clt_concat(NULL, 2, 0),
        clt_concat(pair, 2, 0),
        clt_concat(none, 2, 0),
        clt_slice(NULL, 0, 0, 1, 1),
        clt_slice_like(NULL, x, 0),
        clt_cache(NULL, "c", 9, x),
        clt_cache(clt_reshape(x, CLT_SHAPE(1, 1, 2, 3)), "c", 9, NULL),
        clt_pad(NULL, border, border, 0),
        clt_expand(NULL, CLT_SHAPE(2, 3)),
        clt_dropout(NULL, 0.5f),
        clt_embedding(NULL, "words", 3, 3),
        clt_softmax(NULL, 0),
        clt_log_softmax(NULL, 0),
        clt_cross_entropy(NULL, x),
        clt_cross_entropy(x, NULL),
        clt_bce_with_logits(NULL, x),
        clt_bce_with_logits(x, NULL),
        clt_mse_loss(x, NULL),
        clt_apply(&op, pair, NULL, 0),
        clt_apply(&op, none, NULL, 0),
    };
    for (size_t i = 0; i < CLT_COUNT_OF(results); i++) assert_null(results[i]);
    assert_ok(clt_graph_status(g));
    assert_int_equal(clt_tensor_shape(NULL).rank, -1);
    assert_string_equal(clt_tensor_name(NULL), "");
    assert_int_equal(clt_graph_parameter_count(NULL), 0);
    assert_status(clt_graph_status(NULL), CLT_E_INVALID);
    assert_status(clt_graph_create(NULL), CLT_E_INVALID);
    clt_graph_destroy(NULL);
    clt_graph_destroy(g);
}

/* ---- two graphs ---- */

static void tensors_of_two_graphs(void **state) {
    (void)state;
    clt_graph *a, *b;
    assert_ok(clt_graph_create(&a));
    assert_ok(clt_graph_create(&b));
    clt_tensor *x = matrix(a), *y = matrix(b);
    clt_add(x, y);
    assert_status(clt_graph_status(a), CLT_E_INVALID);
    assert_detail("add");
    assert_detail("another graph");
    assert_ok(clt_graph_status(b));
    clt_concat((clt_tensor *[]){y, x}, 2, 0);
    assert_status(clt_graph_status(b), CLT_E_INVALID);
    assert_detail("concat");
    clt_graph_destroy(a);
    clt_graph_destroy(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_name_the_thing),
        cmocka_unit_test(splits_have_parts),
        cmocka_unit_test(first_error_sticks),
        cmocka_unit_test(invalid_tensors_are_handed_on),
        cmocka_unit_test(null_is_handed_on),
        cmocka_unit_test(tensors_of_two_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
