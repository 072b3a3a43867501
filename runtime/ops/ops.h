/*
 * The ops: their descriptions and attributes, and the builders that only the
 * library uses. One op, one file; the public builders are in <cltrain/ops.h>.
 */
#ifndef CLT_OPS_OPS_H
#define CLT_OPS_OPS_H

#include <cltrain/comm.h>
#include <cltrain/ops.h>

#include "runtime/graph/graph.h"

/* clt_op_matmul, …: what they take and give is told in the list. */
#define OP(name) extern const clt_op clt_op_##name;
#include "runtime/ops/list.inc"
#undef OP
extern const clt_op *const clt_ops[]; /* all, ended by NULL (list.c) */

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

/* A node's inputs but for those of its epilogue, which come last. */
int clt_own_inputs(const clt_tensor *node);

/* The node as one stage; false if it has no form. */
bool clt_fused_of(const clt_tensor *node, bool training, clt_fused *fused);

/* ---- relayout.c ---- */

clt_tensor *clt_relayout(clt_tensor *x, clt_layout layout);

/* ---- pointwise.c: y = f(operands), with broadcasting ---- */

/* `expression` is OpenCL C over the letters of `operands`, one an input in order, and s0, s1. */
typedef struct clt_pointwise_attributes {
    const char *name;
    const char *expression;
    const char *operands;
    const struct clt_pointwise_function *function; /* NULL: has no gradient */
    float s[2];
    clt_dtype dtype; /* of a cast's result */
    clt_shape shape; /* of a result without operands */
} clt_pointwise_attributes;
/* Whether it is a clt_cast. */
bool clt_node_casts(const clt_tensor *node);

/* Of floats, f32. */
clt_tensor *clt_fill(clt_graph *graph, clt_shape shape, float value);
/* Sums what broadcasting stretched, so that the result has `shape`. */
clt_tensor *clt_sum_to(clt_tensor *x, const clt_shape *shape);
/* What the options of a loss ask for. */
clt_tensor *clt_reduce_losses(clt_tensor *losses, clt_loss_options options);

/* ---- matmul.c ---- */

typedef clt_matmul_options clt_matmul_attributes;

/* ---- conv2d.c ---- */

typedef struct clt_conv2d_attributes {
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
    clt_shape result; /* of the gradients: the shape of x or of the weight. Where an image is a layer's result: -1 for as many as y has, and a height and width of 0
                         for the least ones of such a y, and `more` */
    int more_h, more_w;
} clt_conv2d_attributes;

/* The least image, by height and width, that a convolution makes y of. */
void clt_conv2d_least_image(const clt_conv2d_attributes *attributes, const clt_shape *y, int64_t *height, int64_t *width);

/* conv_transpose2d.c: by kernels, strides and paddings of each dimension; the result's channels are found here. */
clt_tensor *clt_conv_transpose2d_by(clt_tensor *x, clt_tensor *weight, clt_conv2d_attributes attributes);

/* ---- pool2d.c ---- */

typedef struct clt_pool2d_attributes {
    int kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
    bool exclude_padding;
    clt_shape result; /* of the gradient of the average */
} clt_pool2d_attributes;

/* ---- batch_norm.c: x [N, C, ...]; statistics [2, C] hold mean and 1/sqrt(var + eps) ---- */

typedef struct clt_batch_norm_attributes {
    float eps, momentum;
    int64_t inner; /* synchronized: values of a channel in one image */
} clt_batch_norm_attributes;

/* Makes all training batch norms of the graph take their statistics over the images of all ranks, of which `images` [size] says how many each
 * has in this step. Before gradients are added. */
clt_status clt_batch_norms_synchronize(clt_graph *graph, clt_tensor *images, int rank, int size);

/* ---- layer_norm.c: rows of the last dims; statistics [2, rows] ---- */

typedef struct clt_layer_norm_attributes {
    float eps;
    int dims; /* how many trailing dimensions */
} clt_layer_norm_attributes;
/* D: elements of the trailing dimensions that form a row of such a node's x. */
int64_t clt_layer_norm_length(const clt_tensor *node);

/* ---- attention.c ---- */

typedef struct clt_attention_attributes {
    float scale; /* 0: 1 / sqrt(D) */
    bool causal;
    float dropout;
    int site; /* of dropout: tells its numbers from those of other nodes */
} clt_attention_attributes;

/* N; heads of queries and of keys; T queries and S keys of D elements. */
typedef struct clt_attention_size {
    int64_t n, heads, key_heads, t, s, d;
} clt_attention_size;
clt_attention_size clt_attention_sizes(const clt_tensor *node); /* of any of the three ops */
/* Operands behind those that all have, any of them; NULL: there is none. */
/* clt_cache into a buffer that there is. */
clt_tensor *clt_cache_op(clt_tensor *buffer, clt_tensor *x, clt_tensor *position_ids);
clt_tensor *clt_attention_mask(const clt_tensor *node);
clt_tensor *clt_attention_position_ids(const clt_tensor *node); /* i32 [N, T] */
clt_tensor *clt_attention_rng(const clt_tensor *node);          /* i32 [4], of dropout */
/* Elements from one to the next along each dimension of the scores, 0 where the mask has 1. */
void clt_attention_mask_strides(const clt_tensor *node, int64_t strides[4]);

/* The state of the graph's random numbers, i32 [4], and the number of one op that draws some (dropout.c). */
clt_tensor *clt_random_site(clt_graph *graph, int *site);
float clt_attention_scale(const clt_tensor *node);

/* ---- reduce.c ---- */

typedef enum clt_axes_reduction { CLT_AXES_SUM, CLT_AXES_MEAN, CLT_AXES_MAX } clt_axes_reduction;
extern const char *const clt_axes_reductions[]; /* their names, ended by NULL */
typedef struct clt_reduce_attributes {
    clt_axes_reduction reduction;
    unsigned axes; /* bit i: dimension i is reduced */
    bool keep_dims;
} clt_reduce_attributes;

/* A reduction of what a chain of forms gives, over the last dimensions: made by the passes of runtime/exec. Inputs are
 * the chain's. */
typedef struct clt_fused_reduce {
    clt_fused chain;
    clt_axes_reduction reduction;
    int64_t length; /* elements of the chain's result for each of this one's */
    clt_shape shape;
} clt_fused_reduce;

/* ---- reshape.c ---- */

typedef struct clt_reshape_attributes {
    clt_shape shape; /* at most one -1: what remains; CLT_BATCH: the batch; CLT_DIM_OF(k): dimension k of x */
    int of_samples;  /* above 0: dimension 0 holds what remains, of which at no length a part is of two samples; above 1: each is that many whole ones */
    int unsure;      /* whether numbers are the batch (1) or the length (2), of which the graph has others then */
} clt_reshape_attributes;
/* clt_reshape to what clt_tensor_extent tells: a number in it is one, and not perhaps the batch. */
clt_tensor *clt_reshape_to(clt_tensor *x, clt_shape extent);
/* The tensor's extent as one to which it is reshaped: CLT_DIM_OF where nobody knows how a dimension follows. */
clt_shape clt_reshape_places(const clt_tensor *x);

/* One layer of a recurrent network in one direction, on tensors at hand: x [N, T, D] -> [N, T, hidden]. Weights as in clt_lstm_with, biases or NULL. `h` and,
 * of an LSTM, `c` (else NULL): the first states [N, hidden], NULL for zeros; they become the last ones. */
typedef struct clt_recurrent_weights {
    int gates;        /* 4: LSTM; 3: GRU; 1: h' = tanh(W x + b + U h + d), Elman 1990 */
    bool relu;        /* with 1 gate: in the place of tanh */
    bool reset_first; /* of a GRU: the reset gate is applied before the product, as in Cho et al. 2014, and not behind it */
    clt_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} clt_recurrent_weights;
clt_tensor *clt_recurrent_op(clt_tensor *x, const clt_recurrent_weights *weights, bool reverse, clt_tensor **h, clt_tensor **c);

/* ---- permute.c, slice.c, concat.c, pad.c, expand.c: copies with other strides ---- */

typedef struct clt_permute_attributes {
    int order[CLT_MAX_RANK];
} clt_permute_attributes;

typedef struct clt_slice_attributes {
    int axis;
    int64_t start, stop, step; /* negative: from the end; stop INT64_MAX: to the end, CLT_LENGTH plus or minus some: the length */
    clt_shape result; /* of the gradient: x's shape */
} clt_slice_attributes;
/* The first place of `size` that is taken. */
static inline int64_t clt_slice_start(const clt_slice_attributes *at, int64_t size) {
    return at->start < 0 ? at->start + size : at->start;
}

typedef struct clt_concat_attributes {
    int axis;
} clt_concat_attributes;

typedef struct clt_pad_attributes {
    int64_t before[CLT_MAX_RANK], after[CLT_MAX_RANK];
    float value;
} clt_pad_attributes;

typedef struct clt_expand_attributes {
    clt_shape shape;
} clt_expand_attributes;

/* ---- dropout.c ---- */

typedef struct clt_dropout_attributes {
    float p;
    int site; /* which random op of the graph */
} clt_dropout_attributes;

/* ---- embedding.c ---- */

typedef struct clt_embedding_attributes {
    clt_shape result; /* of the gradient: the shape of the weight */
} clt_embedding_attributes;

/* ---- softmax.c ---- */

typedef struct clt_softmax_attributes {
    int axis;
} clt_softmax_attributes;

/* ---- cross_entropy.c ---- */

/* ---- user_op.c ---- */

typedef struct clt_user_attributes {
    struct clt_user_definition *definition; /* shared by copies, counted */
    float scalars[CLT_USER_OP_MAX_SCALARS];
    int n_scalars;
    int input; /* of user_grad: of which the gradient */
} clt_user_attributes;
typedef struct clt_user_definition {
    int references;
    int n_inputs;
    char *name, *source, *forward, *backward[CLT_USER_OP_MAX_INPUTS];
    clt_user_op_shape shape;
    void *user;
} clt_user_definition;

/* ---- optimizer.c: on flat tensors [n] that hold many parameters ---- */

/* Parts of a flat tensor begin at multiples of this many elements, so that each
 * is a sub-buffer on any device; what lies between stays zero. */
enum { CLT_PACK_ALIGN = 256 };

typedef struct clt_pack_attributes {
    int64_t *offsets; /* of each part, in elements */
    int n;
} clt_pack_attributes;
clt_tensor *clt_pack(clt_tensor *flat, clt_tensor *const *parts, const int64_t *offsets, int n);

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

clt_tensor *clt_hyper_scale(clt_tensor *hyper, clt_tensor *samples);

/* Of a loss that is scaled, f32 [CLT_LOSS_SCALE_COUNT]. */
enum {
    CLT_LOSS_SCALE,       /* by what the loss is multiplied */
    CLT_LOSS_SCALE_STEPS, /* updates since it changed */
    CLT_LOSS_SCALE_COUNT = 4
};
#define CLT_LOSS_SCALE_FIRST 65536.0f
clt_tensor *clt_hyper_unscale(clt_tensor *hyper, clt_tensor *loss_scale);
clt_tensor *clt_loss_scale(clt_tensor *loss_scale, clt_tensor *factor);

typedef struct clt_clip_attributes {
    float grad_scale; /* gradients are multiplied by this first: 1/accumulate */
    float clip_value; /* then clipped to +- this; infinity: not */
    float clip_norm;  /* then the global norm is brought to at most this; infinity: not */
    bool guarded;     /* NaN or infinity in the gradients as they are makes the norm NaN; without clip_norm it is 0 else */
} clt_clip_attributes;

/* What is known of updates that were left out, i32 [CLT_RECORD_COUNT], zero at first. */
enum {
    CLT_RECORD_SKIPPED, /* how many */
    CLT_RECORD_FIRST,   /* which update was the first, from 1; 0: none. Whoever reads it may set it to 0 */
    CLT_RECORD_LAST,    /* which was the last */
    CLT_RECORD_COUNT = 4
};
/* Which of a plan's communicators. */
typedef enum clt_among {
    CLT_AMONG_RANKS, /* that have other samples */
    CLT_AMONG_STAGES /* of a pipeline */
} clt_among;

typedef struct clt_guard_attributes {
    float clip_norm;
    float rest1, rest2; /* 1 - beta of Adam: its bias corrections are those of the updates that were made */
    bool stops;                 /* after the first that is left out, all are */
} clt_guard_attributes;
/* `parts`: among whom they are parts of a whole, whose norm is the sum of theirs; NULL: they are the whole. `record` (may be NULL, then `guard` is
 * not looked at): updates whose gradients are not finite are left out. */
clt_tensor *clt_clip_scale(clt_tensor *const *grads, int n, clt_tensor *hyper, const clt_among *parts, clt_clip_attributes attributes,
                           clt_tensor *record, clt_guard_attributes guard);
clt_tensor *clt_clear_if_skipped(clt_tensor *state, clt_tensor *factor);

typedef struct clt_average_attributes {
    float decay;
} clt_average_attributes;
clt_tensor *clt_average(clt_tensor *average, clt_tensor *params, clt_tensor *factor, float decay);

typedef struct clt_update_attributes {
    clt_clip_attributes clip;
    float momentum, beta1, beta2, eps, weight_decay;
    float lr_factor;
    bool nesterov, decoupled;
} clt_update_attributes;
/* `copy`: a flat tensor of 16 bits, which gets the new parameters rounded; NULL: none. */
clt_tensor *clt_update(const clt_op *op, clt_update_attributes attributes, clt_tensor *params,
                       clt_tensor *grads, clt_tensor *hyper, clt_tensor *factor,
                       clt_tensor *const *states, int n_states, clt_tensor *copy);
const clt_tensor *clt_update_copy(const clt_tensor *update); /* NULL: none */
int clt_update_states(const clt_tensor *update);

/* ---- collective.c: with the other ranks, in place. All ranks have the same collectives in the same order ---- */

typedef struct clt_collective_attributes {
    int rank, size; /* whose part of how many; of all_reduce 0, 1 */
    clt_reduction reduction;
    clt_among among;
} clt_collective_attributes;

/* Nobody else may read x, in what all_reduce and reduce_scatter replace. Parts have multiples of CLT_PACK_ALIGN elements. */
clt_tensor *clt_all_reduce(clt_tensor *x, clt_reduction reduction);
clt_tensor *clt_all_reduce_among(clt_among among, clt_tensor *x, clt_reduction reduction);
clt_tensor *clt_reduce_scatter(clt_tensor *x, int rank, int size);
clt_tensor *clt_all_gather(clt_tensor *x, int rank, int size);
clt_tensor *clt_all_gather_in_place(clt_tensor *whole, clt_tensor *part, int rank, int size);
clt_tensor *clt_shard_of(clt_tensor *whole, int rank, int size);
bool clt_is_collective(const clt_tensor *node);

/* ---- cumsum.c, one_hot.c ---- */

typedef struct clt_cumsum_attributes {
    int axis;
    bool reverse;
} clt_cumsum_attributes;

typedef struct clt_one_hot_attributes {
    int64_t count;
} clt_one_hot_attributes;

/* ---- ignore_index.c ---- */

typedef struct clt_ignore_index_attributes {
    int ignored, instead;
} clt_ignore_index_attributes;
/* The indices, with `instead` where they are `ignored`; outputs[0] is 0 there, else 1. */
clt_tensor *clt_ignore_index(clt_tensor *indices, int32_t ignored, int32_t instead);

/* ---- metric.c: sums kept on the device ---- */

typedef struct clt_metric_attributes {
    float weight;
    bool finite; /* a value that is not is left out, and its weight added up apart */
} clt_metric_attributes;
clt_tensor *clt_metric_add(clt_tensor *state, clt_tensor *value, float weight);
clt_tensor *clt_metric_add_finite(clt_tensor *state, clt_tensor *value, float weight);
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

clt_tensor *clt_narrow(clt_tensor *x, clt_tensor *samples, clt_dtype dtype);
clt_tensor *clt_widen(clt_tensor *flat, clt_tensor *wire);

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

/* ---- flat_part.c ---- */

typedef struct clt_flat_part_attributes {
    int64_t offset; /* in elements, a multiple of CLT_PACK_ALIGN */
    clt_shape shape;
} clt_flat_part_attributes;
clt_tensor *clt_flat_part(clt_tensor *flat, int64_t offset, clt_shape shape);
/* The node is one of its own shape from then on. */
clt_status clt_become_flat_part(clt_tensor *node, clt_tensor *flat, int64_t offset);

/* A state in the host's memory, of which no kernel reads: parts of it are brought to the device, and taken back. */
clt_tensor *clt_host_state(clt_graph *graph, const char *name, clt_dtype dtype, clt_shape shape);
/* Elements of a flat one from `offset` on; or all of a variable in the host's memory, offset 0. */
clt_tensor *clt_from_host(clt_tensor *state, int64_t offset, clt_shape shape);
/* Such a part, as it is when this node's turn comes, goes to its place. */
clt_tensor *clt_to_host(clt_tensor *state, clt_tensor *part, int64_t offset);
bool clt_is_carry(const clt_tensor *node);

/* ---- powersgd.c ---- */

typedef struct clt_feedback_attributes {
    float scale;
    int seed;
} clt_feedback_attributes;
clt_tensor *clt_feedback_add(clt_tensor *residual, clt_tensor *x, clt_tensor *samples);
clt_tensor *clt_feedback_subtract(clt_tensor *x, clt_tensor *residual, float scale);
clt_tensor *clt_seed_factor(clt_tensor *factor, int seed);
clt_tensor *clt_orthogonalize(clt_tensor *x);

/* ---- autocast.c ---- */

/* Inserts casts to `low`, f16 or bf16, into a graph that is f32, before its gradients are built. Nodes may have other places after. */
clt_status clt_graph_autocast(clt_graph *graph, clt_dtype low);

/* ---- cost.c ---- */

clt_cost clt_node_cost(const clt_tensor *node);
/* What rules of cost are made of: the bytes of a tensor; and those of a node's operands and result, each once. */
double clt_tensor_cost_bytes(const clt_tensor *tensor);
double clt_node_bytes(const clt_tensor *node);

/* ---- checks that several ops make (check.c) ---- */

clt_status clt_check_dtype(const clt_tensor *node, int input, clt_dtype dtype);
/* A floating-point type; operands 0 to n - 1 have one, all the same. */
clt_status clt_check_float(const clt_tensor *node, int input);
clt_status clt_check_f32_or_i32(const clt_tensor *node, int input);
clt_status clt_check_floats(const clt_tensor *node, int n);
clt_status clt_check_rank(const clt_tensor *node, int input, int least, int most);
/* Input 0 is no larger than what kernels with windows can count the pixels of. */
clt_status clt_check_sides(const clt_tensor *node);
/* "operands \"x\" [2, 3] and matmul #4 [4, 5]": for messages. */
#define CLT_PAIR_TEXT 512
const char *clt_pair_text(const clt_tensor *a, const clt_tensor *b, char text[CLT_PAIR_TEXT]);

#endif
