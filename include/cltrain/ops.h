/*
 * The ops: builders that add a node to the graph of their operands.
 *
 * Names, shapes and defaults are PyTorch's. All compute in f32. Pointwise ops, matrix products, reductions, softmax,
 * layer_norm (with weight and bias in f32) and what moves elements also take operands stored as f16 or bf16, and round
 * their results to that type; pointwise ops of operands of different types give f32.
 * Options are a brace list after the required arguments, in C:
 *
 *     clt_conv2d(x, "conv1", 32, .kernel = 3, .padding = 1)
 *
 * where a field left out (zero) means the default, and the width of a linear or
 * convolution layer comes first, without its name. From C++ call the functions
 * ending in _with and pass the struct.
 *
 * Broadcasting is NumPy's: shapes are aligned at the right, dimensions of 1 stretch.
 * Axes may be negative (counted from the end).
 */
#ifndef CLTRAIN_OPS_H
#define CLTRAIN_OPS_H

#include <stdbool.h>

#include <cltrain/graph.h>

CLT_BEGIN_DECLS

/* ---- pointwise ---------------------------------------------------------- */

/* Both broadcast. Sums, differences, products, and the larger and the smaller one are taken of integers, too: of i32 or u8 they are of that type, and wrap where it has not
 * the result; an integer with a float, or with one of another type, is f32 first. */
CLT_API clt_tensor *clt_add(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_sub(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_mul(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_div(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_pow(clt_tensor *a, clt_tensor *b);

CLT_API clt_tensor *clt_add_scalar(clt_tensor *a, float s);
CLT_API clt_tensor *clt_mul_scalar(clt_tensor *a, float s);
CLT_API clt_tensor *clt_pow_scalar(clt_tensor *a, float exponent);

CLT_API clt_tensor *clt_neg(clt_tensor *a);
CLT_API clt_tensor *clt_abs(clt_tensor *a); /* gradient 0 at 0 */
CLT_API clt_tensor *clt_exp(clt_tensor *a);
CLT_API clt_tensor *clt_log(clt_tensor *a);
CLT_API clt_tensor *clt_sqrt(clt_tensor *a);
CLT_API clt_tensor *clt_clip(clt_tensor *a, float low, float high); /* gradient 1 on the bounds */

CLT_API clt_tensor *clt_relu(clt_tensor *a); /* gradient 0 at 0 */
CLT_API clt_tensor *clt_gelu(clt_tensor *a); /* exact, with erf; Hendrycks, Gimpel 2016 */
CLT_API clt_tensor *clt_gelu_tanh(clt_tensor *a); /* its approximation by tanh, as GPT-2 has it */
CLT_API clt_tensor *clt_tanh(clt_tensor *a);
CLT_API clt_tensor *clt_sigmoid(clt_tensor *a);
CLT_API clt_tensor *clt_silu(clt_tensor *a);
CLT_API clt_tensor *clt_leaky_relu(clt_tensor *a, float slope); /* of what is below 0; gradient `slope` at 0 */
CLT_API clt_tensor *clt_elu(clt_tensor *a, float alpha);        /* alpha (exp(a) - 1) below 0; Clevert, Unterthiner, Hochreiter 2016 */
CLT_API clt_tensor *clt_softplus(clt_tensor *a);                /* log(1 + exp(a)), without overflow */
CLT_API clt_tensor *clt_hard_sigmoid(clt_tensor *a);            /* a / 6 + 1/2 within [0, 1] */
CLT_API clt_tensor *clt_hard_swish(clt_tensor *a);              /* a times that; Howard et al. 2019 */
CLT_API clt_tensor *clt_erf(clt_tensor *a);
CLT_API clt_tensor *clt_sin(clt_tensor *a);
CLT_API clt_tensor *clt_cos(clt_tensor *a);

/* The larger and the smaller one, NaN if one is; where both are equal each gets half of the gradient. */
CLT_API clt_tensor *clt_maximum(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_minimum(clt_tensor *a, clt_tensor *b);
/* a where the condition (f32) is not 0, else b, of any type; all three broadcast. No gradient goes to the condition. Indices that are chosen so are not
 * checked before a kernel sees them. */
CLT_API clt_tensor *clt_where(clt_tensor *condition, clt_tensor *a, clt_tensor *b);
/* 1 or 0, in f32 where operands are integers, of any type; no gradient goes through them. */
CLT_API clt_tensor *clt_equal(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_greater(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_greater_equal(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_less(clt_tensor *a, clt_tensor *b);
CLT_API clt_tensor *clt_less_equal(clt_tensor *a, clt_tensor *b);

/* Converts between f32, f16, bf16, i32 and u8. To f16 and bf16: to the nearest, ties to even, infinite where it is too large; from these to
 * an integer: toward zero, saturated; from i32 to u8 the low 8 bits, as in C. The gradient, between floating-point types alone, is cast back. */
CLT_API clt_tensor *clt_cast(clt_tensor *a, clt_dtype dtype);

/* ---- contractions -------------------------------------------------------- */

typedef struct clt_matmul_options {
    bool transpose_a; /* the last two dimensions swapped */
    bool transpose_b;
} clt_matmul_options;

/* [..., M, K] x [..., K, N] -> [..., M, N]. Batch dimensions broadcast. Rank 2 at least. */
CLT_API clt_tensor *clt_matmul_with(clt_tensor *a, clt_tensor *b, clt_matmul_options options);
CLT_API clt_tensor *clt_matmul(clt_tensor *a, clt_tensor *b);

typedef struct clt_linear_options {
    int64_t out_features; /* required */
    bool no_bias;
} clt_linear_options;

/* x [..., in] -> [..., out]: x W^T + b. Makes NAME.weight [out, in] and
 * NAME.bias [out], drawn uniformly in +-1/sqrt(in). */
CLT_API clt_tensor *clt_linear_with(clt_tensor *x, const char *name, clt_linear_options options);
#define clt_linear(x, name, ...) \
    clt_linear_with((x), (name), (clt_linear_options){.out_features = __VA_ARGS__})

/* Each layer that makes parameters has a form NAME_op on tensors at hand: the same weight may serve several layers, and
 * its gradient is the sum over its uses. weight [out, in]; bias [out] or NULL. */
CLT_API clt_tensor *clt_linear_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias);

/* Kernel, stride, padding and dilation of convolutions and pooling are CLT_MAX_WINDOW at most, and images 2^30
 * pixels high or wide: what is larger is CLT_E_SHAPE. */
#define CLT_MAX_WINDOW 32767

typedef struct clt_conv2d_options {
    int64_t out_channels;          /* required */
    int kernel;                    /* required unless kernel_h and kernel_w are given */
    int kernel_h, kernel_w;        /* override kernel */
    int stride;                    /* default 1 */
    int stride_h, stride_w;        /* override stride */
    int padding;                   /* zeros on each side, default 0 */
    int padding_h, padding_w;      /* override padding */
    int dilation;                  /* default 1 */
    int dilation_h, dilation_w;    /* override dilation */
    int groups;                    /* default 1; divides both channel counts */
    bool no_bias;
} clt_conv2d_options;

/* x [N, C, H, W] -> [N, out_channels, H', W'],
 * H' = floor((H + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
 * Makes NAME.weight [out, C/groups, kh, kw] and NAME.bias [out], drawn uniformly
 * in +-1/sqrt(C/groups kh kw). */
CLT_API clt_tensor *clt_conv2d_with(clt_tensor *x, const char *name, clt_conv2d_options options);
#define clt_conv2d(x, name, ...) \
    clt_conv2d_with((x), (name), (clt_conv2d_options){.out_channels = __VA_ARGS__})

/* The same on tensors at hand; bias may be NULL (out_channels and kernel sizes
 * are read from the weight and ignored in the options). */
CLT_API clt_tensor *clt_conv2d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias,
                                  clt_conv2d_options options);

typedef struct clt_conv1d_options {
    int64_t out_channels;
    int kernel;
    int stride;   /* default 1 */
    int padding;  /* zeros on each side, default 0 */
    int dilation; /* default 1 */
    int groups;   /* default 1; divides both channel counts */
    bool no_bias;
} clt_conv1d_options;

/* x [N, C, L] -> [N, out_channels, L'], as clt_conv2d of images of one row. Makes NAME.weight [out, C/groups, kernel] and NAME.bias [out]. */
CLT_API clt_tensor *clt_conv1d_with(clt_tensor *x, const char *name, clt_conv1d_options options);
#define clt_conv1d(x, name, ...) clt_conv1d_with((x), (name), (clt_conv1d_options){.out_channels = __VA_ARGS__})
CLT_API clt_tensor *clt_conv1d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_conv1d_options options);

typedef struct clt_conv_transpose2d_options {
    int64_t out_channels; /* required */
    int kernel;           /* required */
    int stride;           /* default 1 */
    int padding;          /* default 0 */
    int output_padding;   /* pixels more on the far sides, less than the stride; default 0 */
    int dilation;         /* default 1 */
    int groups;           /* default 1; divides both channel counts */
    bool no_bias;
} clt_conv_transpose2d_options;

/* x [N, C, H, W] -> [N, out_channels, H', W'], H' = (H - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1: the gradient of a convolution,
 * as a layer. Makes NAME.weight [C, out/groups, kernel, kernel] and NAME.bias [out], drawn uniformly in +-1/sqrt(out/groups kernel^2), as PyTorch. */
CLT_API clt_tensor *clt_conv_transpose2d_with(clt_tensor *x, const char *name, clt_conv_transpose2d_options options);
#define clt_conv_transpose2d(x, name, ...) clt_conv_transpose2d_with((x), (name), (clt_conv_transpose2d_options){.out_channels = __VA_ARGS__})
/* out_channels and kernel are the weight's; bias may be NULL. */
CLT_API clt_tensor *clt_conv_transpose2d_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_conv_transpose2d_options options);

/* x [N, C, H, W] -> [N, C, H scale, W scale]: each pixel scale times in both directions. */
CLT_API clt_tensor *clt_upsample_nearest2d(clt_tensor *x, int scale);
/* x [N, C, H, W] -> [N, C, height, width], each pixel between the four nearest, of which centers are at 1/2 (PyTorch's align_corners=False). Also to a smaller
 * size, without a filter. By products with matrices: sizes are 16384 at most. */
CLT_API clt_tensor *clt_upsample_bilinear2d(clt_tensor *x, int64_t height, int64_t width);

/* ---- pooling -------------------------------------------------------------- */

typedef struct clt_pool2d_options {
    int kernel;
    int kernel_h, kernel_w;
    int stride;                 /* default: the kernel */
    int stride_h, stride_w;
    int padding;                /* at most half the kernel */
    int padding_h, padding_w;
    bool exclude_padding;       /* average: divide by the pixels inside the image */
} clt_pool2d_options;

/* x [N, C, H, W]. The gradient of a maximum goes to the first of equals in a window. */
CLT_API clt_tensor *clt_max_pool2d_with(clt_tensor *x, clt_pool2d_options options);
CLT_API clt_tensor *clt_avg_pool2d_with(clt_tensor *x, clt_pool2d_options options);
#define clt_max_pool2d(x, ...) clt_max_pool2d_with((x), (clt_pool2d_options){__VA_ARGS__})
#define clt_avg_pool2d(x, ...) clt_avg_pool2d_with((x), (clt_pool2d_options){__VA_ARGS__})

/* [N, C, H, W] -> [N, C, 1, 1]. */
CLT_API clt_tensor *clt_global_avg_pool2d(clt_tensor *x);
/* x [N, C, H, W] -> [N, C, height, width], each the mean of the pixels from floor(i H / height) to before ceil((i + 1) H / height), and so across. Sizes as for
 * clt_upsample_bilinear2d. */
CLT_API clt_tensor *clt_adaptive_avg_pool2d(clt_tensor *x, int64_t height, int64_t width);

/* ---- normalization -------------------------------------------------------- */

typedef struct clt_norm_options {
    float eps;      /* default 1e-5; CLT_ZERO is 0 */
    float momentum; /* batch norm's running statistics, default 0.1; CLT_ZERO is 0: they stay */
} clt_norm_options;

/* x [N, C, ...], over all but dimension 1; Ioffe, Szegedy 2015. Makes
 * parameters NAME.weight (ones) and NAME.bias (zeros) and buffers
 * NAME.running_mean and NAME.running_var, each [C]. In training: statistics of
 * the batch, and the running ones move toward them (with the unbiased variance), unless those are NaN or infinite.
 * In evaluation: the running ones. */
CLT_API clt_tensor *clt_batch_norm_with(clt_tensor *x, const char *name, clt_norm_options options);
#define clt_batch_norm(x, name) clt_batch_norm_with((x), (name), (clt_norm_options){0})
/* weight, bias, running_mean and running_var [C]; the running ones are buffers, which training changes. */
CLT_API clt_tensor *clt_batch_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_tensor *running_mean,
                                      clt_tensor *running_var, clt_norm_options options);

/* Over the last `dims` dimensions (1 at least); Ba, Kiros, Hinton 2016. Makes
 * NAME.weight (ones) and NAME.bias (zeros) of that shape. */
CLT_API clt_tensor *clt_layer_norm_with(clt_tensor *x, const char *name, int dims,
                                        clt_norm_options options);
#define clt_layer_norm(x, name, dims) \
    clt_layer_norm_with((x), (name), (dims), (clt_norm_options){0})
/* weight and bias have the shape of the dimensions that are normalized. */
CLT_API clt_tensor *clt_layer_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, clt_norm_options options);

/* x [N, C, ...], each image over the channels of each of `groups` groups; Wu, He 2018. Makes NAME.weight (ones) and NAME.bias (zeros), each [C]. */
CLT_API clt_tensor *clt_group_norm_with(clt_tensor *x, const char *name, int groups, clt_norm_options options);
#define clt_group_norm(x, name, groups) clt_group_norm_with((x), (name), (groups), (clt_norm_options){0})
CLT_API clt_tensor *clt_group_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, int groups, clt_norm_options options);

/* x / sqrt(mean of squares + eps) times weight, over the last `dims` dimensions; Zhang, Sennrich 2019. Makes NAME.weight (ones) of that shape. */
CLT_API clt_tensor *clt_rms_norm_with(clt_tensor *x, const char *name, int dims, clt_norm_options options);
#define clt_rms_norm(x, name, dims) clt_rms_norm_with((x), (name), (dims), (clt_norm_options){0})
CLT_API clt_tensor *clt_rms_norm_op(clt_tensor *x, clt_tensor *weight, clt_norm_options options);

/* ---- attention -------------------------------------------------------------- */

typedef struct clt_attention_options {
    float scale; /* of the scores; default 1 / sqrt(D) */
    bool causal; /* query i sees keys 0 ... i alone */
    clt_tensor *position_ids; /* i32 [N, T]: query t of sample n sees keys 0 ... position_ids[n, t], each below S, and `causal` is ignored. NULL: none */
    clt_tensor *mask; /* f32, added to the scores; or u8, where 0 hides a key. [N, heads, T, S], each of them or 1. It has no gradient. NULL: none */
    float dropout;    /* of softmax's results, in training; default 0. Philox tells them by step, head, query and key (Salmon et al. 2011) */
} clt_attention_options;

/* Scaled dot-product attention; Vaswani et al. 2017. q [N, heads, T, D], k and v [N, key heads, S, D] -> [N, heads, T, D]:
 * softmax(scale q k^T) v. The number of heads is a multiple of that of key heads, which consecutive heads share (Ainslie et al. 2023). Memory grows
 * with T + S, not with T S: backward computes the scores again (Dao et al. 2022). A query that sees no key gives zeros. */
CLT_API clt_tensor *clt_attention_with(clt_tensor *q, clt_tensor *k, clt_tensor *v, clt_attention_options options);
#define clt_attention(q, k, v, ...) clt_attention_with((q), (k), (v), (clt_attention_options){__VA_ARGS__})

typedef struct clt_rotary_options {
    float base;       /* of the frequencies; default 10000 */
    bool interleaved; /* pairs are elements 2 i and 2 i + 1 (GPT-J), else i and i + D / 2 (GPT-NeoX, Llama) */
    clt_tensor *position_ids; /* i32 [N, T]: the places, each below T, or below the longest of sequences; NULL: 0 ... T - 1 */
} clt_rotary_options;

/* Turns pairs of elements of x [N, heads, T, D], D even, by an angle that grows with the place in T: t base^(-2 i / D); Su et al. 2021. */
CLT_API clt_tensor *clt_rotary_with(clt_tensor *x, clt_rotary_options options);
#define clt_rotary(x, ...) clt_rotary_with((x), (clt_rotary_options){__VA_ARGS__})

/* Remembers keys or values of the tokens so far, so that a next token needs its own alone: row t of x [N, heads, T, D] becomes row
 * position_ids[n, t], below `capacity`, of the buffer `name`, which is in no file. Gives all of it, [N, heads, capacity, D]; of attention, give
 * `position_ids`, too. Two rows of a sample in one place: one of them stays. N is the number of samples, always. There is no gradient. */
CLT_API clt_tensor *clt_cache(clt_tensor *x, const char *name, int64_t capacity, clt_tensor *position_ids);

/* ---- recurrent layers ---------------------------------------------------------- */

typedef struct clt_recurrent_options {
    int64_t hidden;     /* required */
    int layers;         /* default 1 */
    bool bidirectional; /* a second one goes from the end, and the results lie side by side */
    bool no_bias;
    float dropout;      /* between layers; default 0 */
    clt_tensor *position_ids; /* i32 [N, T]: the places of x in a longer sequence. The last states stay in buffers that are in no file ("NAME.state_l0"),
                                 and the next run goes on from them, unless its first place is 0. N is the number of samples, always; there is no
                                 gradient. Default: each run begins at 0 */
} clt_recurrent_options;

/* x [N, T, D] -> the states of the last layer at all T places, [N, T, hidden], or [N, T, 2 hidden]; the first state is 0, or, with position_ids, the
 * last one of the run before. LSTM: Hochreiter, Schmidhuber 1997, Gers et al. 2000; GRU: Cho et al. 2014, with the reset gate behind the product. Makes NAME.weight_ih_l0 [4 hidden, D] (3 hidden for GRU), NAME.weight_hh_l0
 * [4 hidden, hidden], NAME.bias_ih_l0 and NAME.bias_hh_l0, then those of _l0_reverse and _l1, with PyTorch's order of gates, drawn uniformly in
 * +-1/sqrt(hidden). Unrolled: T, 65536 at most, is one size, and each place adds some 15 nodes to the graph. */
CLT_API clt_tensor *clt_lstm_with(clt_tensor *x, const char *name, clt_recurrent_options options);
CLT_API clt_tensor *clt_gru_with(clt_tensor *x, const char *name, clt_recurrent_options options);
#define clt_lstm(x, name, ...) clt_lstm_with((x), (name), (clt_recurrent_options){.hidden = __VA_ARGS__})
#define clt_gru(x, name, ...)  clt_gru_with((x), (name), (clt_recurrent_options){.hidden = __VA_ARGS__})

/* ---- reductions ------------------------------------------------------------ */

typedef struct clt_reduce_options {
    int axes[CLT_MAX_RANK]; /* which dimensions; distinct */
    int n_axes;             /* 0: all of them */
    bool keep_dims;         /* reduced dimensions stay, as 1 */
} clt_reduce_options;

/* Accumulated in a fixed order: the same bits each time on the same device. */
CLT_API clt_tensor *clt_sum(clt_tensor *x, clt_reduce_options options);
CLT_API clt_tensor *clt_mean(clt_tensor *x, clt_reduce_options options);
CLT_API clt_tensor *clt_max(clt_tensor *x, clt_reduce_options options); /* equals share the gradient */
/* f32 or i32 x -> i32, without the axis: the place of the first of the largest; NaN is larger than anything. It has no gradient. */
CLT_API clt_tensor *clt_argmax(clt_tensor *x, int axis);
/* x[0] + ... + x[i] along the axis, in this order, of f32 or i32. */
CLT_API clt_tensor *clt_cumsum(clt_tensor *x, int axis);
/* CLT_AXES(0, 2, 3): the options of a reduction over those axes. CLT_ALL_AXES: over all. */
#define CLT_AXES(...)                                                      \
    ((clt_reduce_options){.axes = {__VA_ARGS__},                           \
                          .n_axes = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))})
#define CLT_ALL_AXES ((clt_reduce_options){.n_axes = 0})

/* ---- shapes ---------------------------------------------------------------- */

/* The elements of x in another shape. One dimension may be -1: what remains. A dimension of 0 is as x has it there, one of CLT_BATCH the
 * batch, one of CLT_LENGTH the length of the sequences: these are right at every batch and length.
 *
 * A number may also be the batch or the longest length of the graph, or a multiple of them, such as heads as [32, -1, 8, 64]. It is taken for that if the shape
 * would not be possible at other sizes with the number, or if dimensions would not only be split and joined; and where both are possible, for the number, if
 * that leaves more of x's dimensions in front and behind as they are. Where even this does not tell, the graph is for the batch, or the length, of which
 * the number is: others are CLT_E_SHAPE. What is told by a code, or by 0, is not a number's. */
CLT_API clt_tensor *clt_reshape(clt_tensor *x, clt_shape shape);
CLT_API clt_tensor *clt_flatten(clt_tensor *x); /* [N, ...] -> [N, rest] */
/* Dimension i of the result is dimension order[i] of x; `order` has x's rank. */
CLT_API clt_tensor *clt_permute(clt_tensor *x, const int *order);
CLT_API clt_tensor *clt_transpose(clt_tensor *x, int axis_a, int axis_b);
CLT_API clt_tensor *clt_concat(clt_tensor *const *xs, int count, int axis);
/* Tensors of one shape along a new axis. */
CLT_API clt_tensor *clt_stack(clt_tensor *const *xs, int count, int axis);
/* A dimension of 1 more, before what is dimension `axis` of x, or, counted from the end, of the result; or one less. */
CLT_API clt_tensor *clt_unsqueeze(clt_tensor *x, int axis);
CLT_API clt_tensor *clt_squeeze(clt_tensor *x, int axis);
/* Elements start, start + step … before stop along one axis. Negative bounds count from the end, for every size of a batch, and a stop at the end
 * or behind it stays the end; one before it is that number at every length and batch (CLT_E_SHAPE where there are fewer); a stop of CLT_LENGTH is the length of the sequences, CLT_LENGTH - 1 one less. */
CLT_API clt_tensor *clt_slice(clt_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);
/* Cuts x along an axis into n parts, one behind the other, which `parts` receives: of these sizes, or, with NULL, of equal ones. Their gradient is one
 * concatenation. Not along the batch or the length. */
CLT_API void clt_split(clt_tensor *x, int axis, const int64_t *sizes, int n, clt_tensor **parts);
/* The first rows of a table, such as one of positions: as many as x has places along `axis`, at every length. Not along the
 * batch, which may be of any size. */
CLT_API clt_tensor *clt_slice_like(clt_tensor *table, clt_tensor *x, int axis);
/* before[i] and after[i] elements of `value` around dimension i; x's rank each; none negative. */
CLT_API clt_tensor *clt_pad(clt_tensor *x, const int64_t *before, const int64_t *after, float value);
/* Stretches dimensions of 1, and adds leading ones. CLT_BATCH is the batch, CLT_LENGTH the length, -1 the size that x has there. */
CLT_API clt_tensor *clt_expand(clt_tensor *x, clt_shape shape);

/* ---- regularization, embedding ---------------------------------------------- */

/* Each element is zero with probability p, else divided by 1 - p; Philox
 * counters (Salmon et al. 2011) by seed, step and node. Evaluation: the identity. */
CLT_API clt_tensor *clt_dropout(clt_tensor *x, float p);

/* indices i32 [...] -> [..., width]. Makes NAME.weight [count, width], N(0, 1).
 * An index out of range gives NaN. */
CLT_API clt_tensor *clt_embedding(clt_tensor *indices, const char *name, int64_t count, int64_t width);
/* weight [count, width]. */
CLT_API clt_tensor *clt_embedding_op(clt_tensor *indices, clt_tensor *weight);

/* f32 x at the places indices i32 [n] along an axis, whose place n takes: the first, or one that is neither the batch nor the length. A place may come again: its gradients are added
 * in order. An index out of range gives NaN; a trainer refuses such values of an input before. */
CLT_API clt_tensor *clt_index_select(clt_tensor *x, int axis, clt_tensor *indices);
/* i32 [...] -> f32 [..., count]: 1 at the index, else 0. Zeros for an index out of range; a trainer refuses such values of an input before. */
CLT_API clt_tensor *clt_one_hot(clt_tensor *indices, int64_t count);

/* ---- softmax and losses ------------------------------------------------------ */

CLT_API clt_tensor *clt_softmax(clt_tensor *x, int axis);
CLT_API clt_tensor *clt_log_softmax(clt_tensor *x, int axis);

/* What a loss makes of the losses of all elements. */
typedef enum clt_loss_reduction {
    CLT_LOSS_MEAN = 0,
    CLT_LOSS_SUM,
    CLT_LOSS_NONE /* they stay apart: to be weighted, or masked */
} clt_loss_reduction;
typedef struct clt_loss_options {
    clt_loss_reduction reduction;
} clt_loss_options;

/* logits f32 [N, C] and target i32 [N] in [0, C) -> scalar, the mean of
 * -log softmax(logits)[target], or [N]; or logits [N, C, ...] and target [N, ...], as of pixels. A target out of range gives NaN; the trainer
 * refuses such labels before. */
CLT_API clt_tensor *clt_cross_entropy(clt_tensor *logits, clt_tensor *target);

typedef struct clt_cross_entropy_options {
    clt_loss_reduction reduction;
    float label_smoothing; /* in [0, 1]: this part of a target is spread evenly over all classes; Szegedy et al. 2015 */
    clt_tensor *weight;    /* [C]: losses are multiplied by that of their target's class, and the mean divides by the sum of
                              these, as PyTorch's. NULL: all 1 */
    const int32_t *ignore_index; /* the target that stands for none, such as -100, which need be no class: its losses are 0, and the mean and a
                                    trainer's accuracy leave it out. A batch of nothing else has the mean NaN; the batches of several ranks or micro-batches
                                    count by their samples. Copied; NULL: none */
} clt_cross_entropy_options;
CLT_API clt_tensor *clt_cross_entropy_with(clt_tensor *logits, clt_tensor *target, clt_cross_entropy_options options);
/* The mean of -log_p[target]: log_p f32 [N, C], of log_softmax, and target as above. */
CLT_API clt_tensor *clt_nll_loss(clt_tensor *log_p, clt_tensor *target);
CLT_API clt_tensor *clt_nll_loss_with(clt_tensor *log_p, clt_tensor *target, clt_loss_options options);
/* target (log target - log_p), the terms of the Kullback-Leibler divergence of target from p: same shapes. The mean is over all elements, as PyTorch's
 * default is; the divergence is the sum over classes, so for the mean over N samples the sum divided by N. */
CLT_API clt_tensor *clt_kl_div_loss(clt_tensor *log_p, clt_tensor *target);
CLT_API clt_tensor *clt_kl_div_loss_with(clt_tensor *log_p, clt_tensor *target, clt_loss_options options);
/* Same shapes; target in [0, 1]; the mean, stable for large logits. */
CLT_API clt_tensor *clt_bce_with_logits(clt_tensor *logits, clt_tensor *target);
CLT_API clt_tensor *clt_bce_with_logits_with(clt_tensor *logits, clt_tensor *target, clt_loss_options options);
/* Same shapes; the mean of (a - b)^2. */
CLT_API clt_tensor *clt_mse_loss(clt_tensor *prediction, clt_tensor *target);
CLT_API clt_tensor *clt_mse_loss_with(clt_tensor *prediction, clt_tensor *target, clt_loss_options options);

/* Same shapes; the mean of |a - b|. */
CLT_API clt_tensor *clt_l1_loss(clt_tensor *prediction, clt_tensor *target);
CLT_API clt_tensor *clt_l1_loss_with(clt_tensor *prediction, clt_tensor *target, clt_loss_options options);
/* Same shapes; the mean of (a - b)^2 / 2 up to `delta`, and of delta (|a - b| - delta / 2) beyond; Huber 1964. */
CLT_API clt_tensor *clt_huber_loss(clt_tensor *prediction, clt_tensor *target, float delta);
CLT_API clt_tensor *clt_huber_loss_with(clt_tensor *prediction, clt_tensor *target, float delta, clt_loss_options options);

/* ---- an op of the caller's ------------------------------------------------------ */

#define CLT_USER_OP_MAX_INPUTS 8
#define CLT_USER_OP_MAX_SCALARS 8

/* Writes the shape of the result from the shapes of the inputs. A status below
 * zero refuses them. */
typedef clt_status (*clt_user_op_shape)(const clt_shape *inputs, int n_inputs, clt_shape *result,
                                        void *user);

/* An op with OpenCL C of its own. Kernels are one-dimensional; the global size
 * is `count` rounded up, so each begins with `if (i >= count) return;`:
 *
 *   forward:      (global const float *x0, … , global float *y,
 *                  int count, float s0, …)            count = elements of y
 *   backward[i]:  (global const float *x0, … , global const float *y,
 *                  global const float *dy, global float *dxi,
 *                  int count, float s0, …)            count = elements of x_i
 *
 * The source is built as a program of its own, so kernel names need be unique
 * in it alone. */
typedef struct clt_user_op {
    const char *name;                             /* in messages and profiles */
    const char *source;                           /* OpenCL C 1.2 */
    int n_inputs;                                 /* 1 to CLT_USER_OP_MAX_INPUTS */
    clt_user_op_shape shape;                      /* NULL: the shape of input 0 */
    const char *forward;                          /* kernel name */
    const char *backward[CLT_USER_OP_MAX_INPUTS]; /* kernel name; NULL: no gradient for that input */
    void *user;                                   /* handed to shape */
} clt_user_op;

/* Applies the op. Strings are copied; `op` need not outlive the call. */
CLT_API clt_tensor *clt_apply(const clt_user_op *op, clt_tensor *const *inputs,
                              const float *scalars, int n_scalars);

CLT_END_DECLS

#endif
