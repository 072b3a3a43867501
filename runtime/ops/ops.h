/*
 * The ops: their descriptions and attributes, and the builders that only the
 * library uses. One op, one file; the public builders are in <cltrain/ops.h>.
 */
#ifndef CLT_OPS_OPS_H
#define CLT_OPS_OPS_H

#include <cltrain/comm.h>
#include <cltrain/ops.h>

#include "runtime/graph/graph.h"

/* ---- autodiff.c ---- */

/* Adds the gradients with respect to `wrt` of sum(loss x seed), where `seed` has the shape of
 * `loss`: a one for a scalar loss. grads[i] is NULL where the loss does not depend on wrt[i]. */
clt_status clt_gradients(clt_tensor *loss, clt_tensor *seed, clt_tensor *const *wrt, int n,
                         clt_tensor **grads);

/* ---- forms: the value of one element of a result, as OpenCL C ---- */

typedef enum clt_read {
    CLT_READ_BROADCAST, /* the element that broadcasting puts in its place */
    CLT_READ_CHANNEL,   /* that of the element's channel, dimension 1 */
    CLT_READ_ROW        /* that of the element's row; a row is the last `dims` dimensions */
} clt_read;

/* An operand, by the letter that the expression calls it. */
typedef struct clt_form_operand {
    char letter;
    int input;      /* of the node */
    clt_read read;
    int64_t offset; /* in elements, of the first that is read */
    int dims;       /* of CLT_READ_ROW */
} clt_form_operand;

enum { CLT_FORM_OPERANDS = 8 };

typedef struct clt_form {
    const char *name;
    const char *expression; /* over the operands' letters and s0, s1 */
    clt_form_operand operands[CLT_FORM_OPERANDS];
    int n_operands;
    float s[2];
} clt_form;

/* Appends an operand. */
void clt_form_read(clt_form *form, char letter, int input, clt_read read, int64_t offset);

/* ---- fused.c: several forms, one after the other, on the same element ---- */

enum { CLT_FUSED_STAGES = 16, CLT_FUSED_INPUTS = 16 };

/* A form whose operands are inputs of the whole (input >= 0) or values of earlier stages (~input). */
typedef struct clt_fused_stage {
    clt_form form;
    clt_dtype dtype; /* of its value */
} clt_fused_stage;

/* Attributes of clt_op_fused: the last stage's value is the result. As an epilogue, its input 0 is the
 * value about to be stored. */
typedef struct clt_fused {
    clt_fused_stage stages[CLT_FUSED_STAGES];
    int n_stages, n_inputs;
    clt_shape shape; /* of the result */
    clt_dtype dtype;
} clt_fused;
extern const clt_op clt_op_fused;

/* A node's inputs but for those of its epilogue, which come last. */
int clt_own_inputs(const clt_tensor *node);

/* The node as one stage; false if it has no form. */
bool clt_fused_of(const clt_tensor *node, bool training, clt_fused *fused);

/* ---- relayout.c ---- */

extern const clt_op clt_op_relayout;
clt_tensor *clt_relayout(clt_tensor *x, clt_layout layout);

/* ---- pointwise.c: y = f(operands), with broadcasting ---- */

/* `expression` is OpenCL C over the letters of `operands`, one an input in order, and s0, s1. */
typedef struct clt_pointwise_attributes {
    const char *name;
    const char *expression;
    const char *operands;
    const struct clt_pointwise_function *function; /* NULL: has no gradient */
    float s[2];
    clt_dtype dtype; /* of the result */
    clt_shape shape; /* of a result without operands */
} clt_pointwise_attributes;
extern const clt_op clt_op_pointwise;

clt_tensor *clt_fill(clt_graph *graph, clt_shape shape, float value);
/* 1 where a == b, else 0. No gradient. */
clt_tensor *clt_equal(clt_tensor *a, clt_tensor *b);
/* Sums what broadcasting stretched, so that the result has `shape`. */
clt_tensor *clt_sum_to(clt_tensor *x, const clt_shape *shape);

/* ---- matmul.c ---- */

typedef clt_matmul_options clt_matmul_attributes;
extern const clt_op clt_op_matmul; /* a, b */

/* ---- conv2d.c ---- */

typedef struct clt_conv2d_attributes {
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
    clt_shape result; /* of the gradients: the shape of x or of the weight */
} clt_conv2d_attributes;
extern const clt_op clt_op_conv2d;             /* x [N,C,H,W], weight [O,C/g,kh,kw] */
extern const clt_op clt_op_conv2d_grad_input;  /* weight, dy -> dx */
extern const clt_op clt_op_conv2d_grad_weight; /* x, dy -> dweight */

/* ---- pool2d.c ---- */

typedef struct clt_pool2d_attributes {
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
    bool exclude_padding;
    clt_shape result; /* of the gradient of the average */
} clt_pool2d_attributes;
extern const clt_op clt_op_max_pool2d;      /* x */
extern const clt_op clt_op_max_pool2d_grad; /* x, dy -> dx */
extern const clt_op clt_op_avg_pool2d;      /* x */
extern const clt_op clt_op_avg_pool2d_grad; /* dy -> dx */

/* ---- batch_norm.c: x [N, C, ...]; statistics [2, C] hold mean and 1/sqrt(var + eps) ---- */

typedef struct clt_norm_attributes {
    float eps, momentum;
    int dims;      /* layer norm: how many trailing dimensions */
    int64_t inner; /* synchronized batch norm: values of a channel in one image */
} clt_norm_attributes;
/* x, running_mean, running_var -> statistics; in training those of the batch, moving the running ones. */
extern const clt_op clt_op_batch_norm_stats;
/* Synchronized over ranks: x -> [2, C], mean and sum of squared deviations of the own images; and the statistics of all: those
 * of all ranks [size 2 C], images a rank [size], the own part of all images (scalar), running_mean, running_var -> statistics. */
extern const clt_op clt_op_batch_norm_moments;
extern const clt_op clt_op_batch_norm_combine;
extern const clt_op clt_op_batch_norm;            /* x, statistics, weight, bias -> y */
extern const clt_op clt_op_batch_norm_grad_stats; /* x, statistics, dy -> [2, C]: sum dy, sum dy xhat */
extern const clt_op clt_op_batch_norm_grad_input; /* x, statistics, weight, grad stats, dy -> dx */

/* Makes all training batch norms of the graph take their statistics over the images of all ranks, of which `images` [size] says how many each
 * has in this step. Before gradients are added. */
clt_status clt_batch_norms_synchronize(clt_graph *graph, clt_tensor *images, int rank, int size);

/* ---- layer_norm.c: rows of the last dims; statistics [2, rows] ---- */

extern const clt_op clt_op_layer_norm_stats;       /* x -> statistics */
extern const clt_op clt_op_layer_norm;             /* x, statistics, weight, bias -> y */
extern const clt_op clt_op_layer_norm_grad_input;  /* x, statistics, weight, dy -> dx */
extern const clt_op clt_op_layer_norm_grad_weight; /* x, statistics, dy -> [2, D]: sum dy, sum dy xhat */
/* D: elements of the trailing dimensions that form a row of such a node's x. */
int64_t clt_layer_norm_length(const clt_tensor *node);

/* ---- reduce.c ---- */

typedef enum clt_axes_reduction { CLT_AXES_SUM, CLT_AXES_MEAN, CLT_AXES_MAX } clt_axes_reduction;
typedef struct clt_reduce_attributes {
    clt_axes_reduction reduction;
    unsigned axes; /* bit i: dimension i is reduced */
    bool keep_dims;
} clt_reduce_attributes;
extern const clt_op clt_op_reduce; /* x */

/* A reduction of what a chain of forms gives, over the last dimensions: made by the passes of runtime/exec. Inputs are
 * the chain's. */
typedef struct clt_fused_reduce {
    clt_fused chain;
    clt_axes_reduction reduction;
    int64_t length; /* elements of the chain's result for each of this one's */
    clt_shape shape;
} clt_fused_reduce;
extern const clt_op clt_op_fused_reduce;

/* ---- reshape.c ---- */

typedef struct clt_reshape_attributes {
    clt_shape shape; /* as asked for, with at most one -1 */
} clt_reshape_attributes;
extern const clt_op clt_op_reshape; /* x; a view */

/* ---- permute.c, slice.c, concat.c, pad.c, expand.c: copies with other strides ---- */

typedef struct clt_permute_attributes {
    int order[CLT_MAX_RANK];
} clt_permute_attributes;
extern const clt_op clt_op_permute;

typedef struct clt_slice_attributes {
    int axis;
    int64_t start, count, step;
    clt_shape source; /* of the gradient: x's shape */
} clt_slice_attributes;
extern const clt_op clt_op_slice;
extern const clt_op clt_op_slice_grad; /* dy -> dx, zero where not sliced */

typedef struct clt_concat_attributes {
    int axis;
} clt_concat_attributes;
extern const clt_op clt_op_concat;

typedef struct clt_pad_attributes {
    int64_t before[CLT_MAX_RANK], after[CLT_MAX_RANK];
    float value;
} clt_pad_attributes;
extern const clt_op clt_op_pad;

typedef struct clt_expand_attributes {
    clt_shape shape;
} clt_expand_attributes;
extern const clt_op clt_op_expand;

/* ---- dropout.c ---- */

typedef struct clt_dropout_attributes {
    float p;
    int site; /* which random op of the graph */
} clt_dropout_attributes;
extern const clt_op clt_op_dropout; /* x, rng; on dy the same node is the gradient */

/* ---- embedding.c ---- */

typedef struct clt_embedding_attributes {
    int64_t count; /* of the gradient: rows of the weight */
} clt_embedding_attributes;
extern const clt_op clt_op_embedding;      /* weight [count, width], indices */
extern const clt_op clt_op_embedding_grad; /* indices, dy -> dweight */

/* ---- softmax.c ---- */

typedef struct clt_softmax_attributes {
    int axis;
} clt_softmax_attributes;
extern const clt_op clt_op_softmax;          /* x */
extern const clt_op clt_op_softmax_grad;     /* y, dy -> dx */
extern const clt_op clt_op_log_softmax;      /* x */
extern const clt_op clt_op_log_softmax_grad; /* y, dy -> dx */

/* ---- cross_entropy.c ---- */

extern const clt_op clt_op_cross_entropy;      /* logits [N, C], target [N] -> losses [N] */
extern const clt_op clt_op_cross_entropy_grad; /* logits, target, dlosses [N] -> dlogits */

/* ---- user_op.c ---- */

typedef struct clt_user_attributes {
    struct clt_user_definition *definition; /* shared by copies, counted */
    float scalars[CLT_USER_OP_MAX_SCALARS];
    int n_scalars;
} clt_user_attributes;
typedef struct clt_user_definition {
    int references;
    int n_inputs;
    char *name, *source, *forward, *backward[CLT_USER_OP_MAX_INPUTS];
    clt_user_op_shape shape;
    void *user;
} clt_user_definition;
typedef struct clt_user_grad_attributes {
    clt_user_attributes base;
    int input; /* of which the gradient */
} clt_user_grad_attributes;
extern const clt_op clt_op_user;      /* inputs */
extern const clt_op clt_op_user_grad; /* inputs, y, dy -> dx of one input */

/* ---- optimizer.c: on flat tensors [n] that hold many parameters ---- */

/* Parts of a flat tensor begin at multiples of this many elements, so that each
 * is a sub-buffer on any device; what lies between stays zero. */
enum { CLT_PACK_ALIGN = 256 };

typedef struct clt_pack_attributes {
    int64_t *offsets; /* of each part, in elements */
    int n;
} clt_pack_attributes;
extern const clt_op clt_op_pack; /* flat state, parts … -> the flat state, written in place */
clt_tensor *clt_pack(clt_tensor *flat, clt_tensor *const *parts, const int64_t *offsets, int n);

/* acc = hyper[CLT_HYPER_KEEP] acc + x, in place. */
extern const clt_op clt_op_accumulate; /* acc, x, hyper */
clt_tensor *clt_accumulate(clt_tensor *acc, clt_tensor *x, clt_tensor *hyper);

/* What the host sets before a step. */
enum {
    CLT_HYPER_LR,
    CLT_HYPER_BIAS1, /* 1 - beta1^t */
    CLT_HYPER_BIAS2, /* sqrt(1 - beta2^t) */
    CLT_HYPER_KEEP,  /* 0 in the first micro-batch of an update, else 1 */
    CLT_HYPER_FIRST, /* 1 in the first update: momentum starts as the gradient */
    CLT_HYPER_SCALE, /* gradients are multiplied by this too: 1, unless clt_hyper_scale sets it */
    CLT_HYPER_STEP,  /* the bits of an int32: which update this is, from 1 */
    CLT_HYPER_COUNT = 8
};

/* hyper with CLT_HYPER_SCALE = 1 / samples, 0 for none, in place: for gradients that are sums over samples. */
extern const clt_op clt_op_hyper_scale; /* hyper, samples [1] */
clt_tensor *clt_hyper_scale(clt_tensor *hyper, clt_tensor *samples);

typedef struct clt_clip_attributes {
    float grad_scale; /* gradients are multiplied by this first: 1/accumulate */
    float clip_value; /* then clipped to +- this; infinity: not */
    float clip_norm;  /* then the global norm is brought to at most this; infinity: not */
    bool guarded;     /* NaN or infinity in the gradients as they are makes the norm NaN; without clip_norm it is 0 else */
} clt_clip_attributes;
extern const clt_op clt_op_norm_squared; /* flat gradients, hyper -> scalar, after scales and clip_value */
extern const clt_op clt_op_clip_scale;   /* the norm squared -> the factor, scalar */

/* What is known of updates that were left out, i32 [CLT_RECORD_COUNT], zero at first. */
enum {
    CLT_RECORD_SKIPPED, /* how many */
    CLT_RECORD_FIRST,   /* which update was the first, from 1; 0: none. Whoever reads it may set it to 0 */
    CLT_RECORD_LAST,    /* which was the last */
    CLT_RECORD_COUNT = 4
};
typedef struct clt_guard_attributes {
    float clip_norm;
    float log_beta1, log_beta2; /* of Adam: its bias corrections are those of the updates that were made */
    bool stops;                 /* after the first that is left out, all are */
} clt_guard_attributes;
/* The norm squared, record, hyper -> the factor; negative: the update is left out. Sets record, and hyper's bias corrections. */
extern const clt_op clt_op_guard;
/* `parts`: they are the own parts of sums over all ranks, whose norms are added up. `record` (may be NULL, then `guard` is
 * not looked at): updates whose gradients are not finite are left out. */
clt_tensor *clt_clip_scale(clt_tensor *const *grads, int n, clt_tensor *hyper, bool parts, clt_clip_attributes attributes,
                           clt_tensor *record, clt_guard_attributes guard);
/* state = 0 where the factor says that the update is left out, in place. */
extern const clt_op clt_op_clear_if_skipped; /* state, factor */
clt_tensor *clt_clear_if_skipped(clt_tensor *state, clt_tensor *factor);

typedef struct clt_update_attributes {
    clt_clip_attributes clip;
    float momentum, beta1, beta2, eps, weight_decay;
    bool nesterov, decoupled;
} clt_update_attributes;
/* params, grads, hyper, factor (a scalar; negative: nothing changes), then the state: SGD none or momentum; Adam m, v. */
extern const clt_op clt_op_sgd;
extern const clt_op clt_op_adam;
clt_tensor *clt_update(const clt_op *op, clt_update_attributes attributes, clt_tensor *params,
                       clt_tensor *grads, clt_tensor *hyper, clt_tensor *factor,
                       clt_tensor *const *states, int n_states);

/* ---- exchange.c: with the other ranks, in place. All ranks have the same exchanges in the same order ---- */

typedef struct clt_exchange_attributes {
    int rank, size; /* whose part of how many; of all_reduce 0, 1 */
    clt_reduction reduction;
} clt_exchange_attributes;
extern const clt_op clt_op_all_reduce;          /* x -> the reduction over all ranks, in x's memory */
extern const clt_op clt_op_reduce_scatter;      /* x [size n] -> the own part [n] of the sum, in x's memory; the rest of x is lost */
extern const clt_op clt_op_all_gather;          /* x [n] -> all ranks' [size n] */
extern const clt_op clt_op_all_gather_in_place; /* whole [size n], what computes the own part of it -> whole */
extern const clt_op clt_op_part;                /* whole [size n] -> the own part [n], a view */

/* Nobody else may read x, in what all_reduce and reduce_scatter replace. Parts have multiples of CLT_PACK_ALIGN elements. */
clt_tensor *clt_all_reduce(clt_tensor *x, clt_reduction reduction);
clt_tensor *clt_reduce_scatter(clt_tensor *x, int rank, int size);
clt_tensor *clt_all_gather(clt_tensor *x, int rank, int size);
clt_tensor *clt_all_gather_in_place(clt_tensor *whole, clt_tensor *part, int rank, int size);
clt_tensor *clt_part_of(clt_tensor *whole, int rank, int size);
bool clt_is_exchange(const clt_tensor *node);

/* ---- metric.c: sums kept on the device ---- */

typedef struct clt_metric_attributes {
    float weight;
    bool finite; /* a value that is not is left out, and its weight added up apart */
} clt_metric_attributes;
/* state [2] (sum and Kahan compensation) += weight x value; with `finite` [3], the last of which is the weight left out */
extern const clt_op clt_op_metric_add;
clt_tensor *clt_metric_add(clt_tensor *state, clt_tensor *value, float weight);
clt_tensor *clt_metric_add_finite(clt_tensor *state, clt_tensor *value, float weight);
/* state i32 [1] += number of rows whose largest logit is the target's */
extern const clt_op clt_op_metric_correct;
clt_tensor *clt_metric_correct(clt_tensor *state, clt_tensor *logits, clt_tensor *target);

/* ---- compress.c: flat gradients [n] made small for the wire, and back ----
 *
 * Gradients are sums over samples; what is encoded is x / samples (a state or tensor of one element; x itself where that is 0), so
 * that steps of more samples and of fewer add up. Encoders take a residual too: what their codes leave out stays
 * there, and is added to the next gradient. Decoders take the flat tensor that they overwrite, and the wires of all ranks, one after the other:
 * they give the sum, added in the order of ranks. */

typedef struct clt_compress_attributes {
    clt_dtype dtype; /* narrow: of the wire */
    int ranks;       /* decoders: how many wires there are */
    int64_t k;       /* topk: how many values of a rank */
    bool bf16;       /* topk: values are rounded to what fits in 16 bits */
} clt_compress_attributes;

extern const clt_op clt_op_narrow; /* x, samples -> f16, bf16 or f32 [n] */
extern const clt_op clt_op_widen;  /* flat, f16 or bf16 [n] -> flat */
clt_tensor *clt_narrow(clt_tensor *x, clt_tensor *samples, clt_dtype dtype);
clt_tensor *clt_widen(clt_tensor *flat, clt_tensor *wire);

extern const clt_op clt_op_int8_encode;   /* x, residual, samples -> i32 [words]: a code a value, a scale a block */
extern const clt_op clt_op_int8_decode;   /* flat, i32 [ranks x words] */
extern const clt_op clt_op_onebit_encode; /* x, residual, samples -> i32 [words]: a bit a value, two means a block */
extern const clt_op clt_op_onebit_decode;
extern const clt_op clt_op_topk_encode;   /* x, residual, samples -> i32 [words]: coded indices, then values */
extern const clt_op clt_op_topk_decode;   /* flat, i32 [ranks x words] */
clt_tensor *clt_encode(const clt_op *op, clt_compress_attributes attributes, clt_tensor *x, clt_tensor *residual,
                       clt_tensor *samples);
clt_tensor *clt_decode(const clt_op *op, clt_compress_attributes attributes, clt_tensor *flat, clt_tensor *wires);

enum { CLT_COMPRESS_BLOCK = 256 }; /* no larger than CLT_PACK_ALIGN, so that a block is of one parameter */
int64_t clt_int8_words(int64_t n); /* of the wire of n values */
int64_t clt_onebit_words(int64_t n);

/* How k of n values lie in words of 32 bits: the indices' upper bits in unary, their low bits, the values. */
typedef struct clt_topk_wire {
    int low_bits;
    int64_t high_words, low_words, value_words, words; /* `words` is all of them */
} clt_topk_wire;
clt_topk_wire clt_topk_layout(int64_t n, int64_t k, bool bf16);

/* ---- powersgd.c ---- */

typedef struct clt_flat_part_attributes {
    int64_t offset; /* in elements, a multiple of CLT_PACK_ALIGN */
    clt_shape shape;
} clt_flat_part_attributes;
extern const clt_op clt_op_flat_part; /* flat -> a tensor that lies in it */
clt_tensor *clt_flat_part(clt_tensor *flat, int64_t offset, clt_shape shape);

typedef struct clt_feedback_attributes {
    float scale;
    int seed;
} clt_feedback_attributes;
extern const clt_op clt_op_feedback_add;      /* residual, x, samples: residual += x / samples, in place */
extern const clt_op clt_op_feedback_subtract; /* x, residual: residual -= scale x, in place; gives x */
extern const clt_op clt_op_seed_factor;       /* factor: random numbers where it is zero, in place */
extern const clt_op clt_op_orthogonalize;     /* x [rows, rank] -> the same span, by orthonormal columns */
clt_tensor *clt_feedback_add(clt_tensor *residual, clt_tensor *x, clt_tensor *samples);
clt_tensor *clt_feedback_subtract(clt_tensor *x, clt_tensor *residual, float scale);
clt_tensor *clt_seed_factor(clt_tensor *factor, int seed);
clt_tensor *clt_orthogonalize(clt_tensor *x);

/* ---- cost.c ---- */

/* Operations of a node, and the least bytes it moves. Operations of an op that is not known to cost.c are 0. */
typedef struct clt_cost {
    double flops, bytes;
} clt_cost;
clt_cost clt_node_cost(const clt_tensor *node);

/* ---- checks that several ops make (check.c) ---- */

clt_status clt_check_dtype(const clt_tensor *node, int input, clt_dtype dtype);
clt_status clt_check_rank(const clt_tensor *node, int input, int least, int most);
/* Input 0 is no larger than what kernels with windows can count the pixels of. */
clt_status clt_check_sides(const clt_tensor *node);
/* Whether all are CLT_MAX_WINDOW at most. */
bool clt_windows_fit(const int *values, int n);
/* "operands \"x\" [2, 3] and matmul #4 [4, 5]": for messages. */
#define CLT_PAIR_TEXT 512
const char *clt_pair_text(const clt_tensor *a, const clt_tensor *b, char text[CLT_PAIR_TEXT]);

#endif
