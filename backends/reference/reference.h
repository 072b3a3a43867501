/*
 * The reference backend's lowerings, a file an op or family of ops.
 */
#ifndef CLT_BACKENDS_REFERENCE_H
#define CLT_BACKENDS_REFERENCE_H

#include "backends/backend.h"

/* Work-items in a group of the reference kernels. Those with local memory size it by this. */
enum { CLT_REFERENCE_GROUP = 64 };

typedef void clt_lower_function(clt_lowering *l, const clt_tensor *node);

/* Of kernels that compute element `i_` of a chain (pointwise.c): parameters, with commas in front; the values of its
 * reads; and the arguments. */
struct clt_code;
void clt_reference_element_parameters(clt_text *text, const struct clt_code *code);
void clt_reference_element_loads(clt_text *text, const struct clt_code *code, const clt_tensor *node);
void clt_reference_element_arguments(clt_lowering *l, const struct clt_code *code);

bool clt_reference_fused_reduce_supports(const clt_tensor *node, const clt_device *device);
clt_lower_function clt_reference_fused_reduce;
bool clt_reference_pointwise_supports(const clt_tensor *node, const clt_device *device);
clt_lower_function clt_reference_pointwise;
clt_lower_function clt_reference_matmul;
clt_lower_function clt_reference_conv2d, clt_reference_conv2d_grad_input, clt_reference_conv2d_grad_weight;
clt_lower_function clt_reference_max_pool2d, clt_reference_max_pool2d_grad;
clt_lower_function clt_reference_avg_pool2d, clt_reference_avg_pool2d_grad;
clt_lower_function clt_reference_batch_norm_stats, clt_reference_batch_norm;
clt_lower_function clt_reference_batch_norm_grad_stats, clt_reference_batch_norm_grad_input;
clt_lower_function clt_reference_layer_norm_stats, clt_reference_layer_norm;
clt_lower_function clt_reference_layer_norm_grad_input, clt_reference_layer_norm_grad_weight;
clt_lower_function clt_reference_reduce;
clt_lower_function clt_reference_batch_norm_moments;
clt_lower_function clt_reference_batch_norm_combine;
clt_lower_function clt_reference_view;
clt_lower_function clt_reference_all_gather;
clt_lower_function clt_reference_permute, clt_reference_slice, clt_reference_slice_grad;
clt_lower_function clt_reference_concat, clt_reference_pad, clt_reference_expand;
clt_lower_function clt_reference_dropout;
clt_lower_function clt_reference_embedding, clt_reference_embedding_grad;
clt_lower_function clt_reference_softmax, clt_reference_softmax_grad;
clt_lower_function clt_reference_log_softmax, clt_reference_log_softmax_grad;
clt_lower_function clt_reference_cross_entropy, clt_reference_cross_entropy_grad;
clt_lower_function clt_reference_user, clt_reference_user_grad;
clt_lower_function clt_reference_pack, clt_reference_accumulate;
clt_lower_function clt_reference_guard, clt_reference_clear_if_skipped;
clt_lower_function clt_reference_hyper_scale, clt_reference_norm_squared, clt_reference_clip_scale;
clt_lower_function clt_reference_sgd, clt_reference_adam;
clt_lower_function clt_reference_narrow, clt_reference_widen;
clt_lower_function clt_reference_int8_encode, clt_reference_int8_decode;
clt_lower_function clt_reference_onebit_encode, clt_reference_onebit_decode;
clt_lower_function clt_reference_topk_encode, clt_reference_topk_decode;
clt_lower_function clt_reference_feedback_add, clt_reference_feedback_subtract;
clt_lower_function clt_reference_seed_factor, clt_reference_orthogonalize;
clt_lower_function clt_reference_metric_add, clt_reference_metric_correct;

/* A dense copy with strides (copy.c): element i of `size` (row-major over `rank` dimensions) goes
 * from x[x_offset + sum i_d x_stride_d] to y[y_offset + sum i_d y_stride_d]. */
typedef struct clt_copy {
    int rank;
    int64_t size[CLT_MAX_RANK], x_stride[CLT_MAX_RANK], y_stride[CLT_MAX_RANK];
    int64_t x_offset, y_offset;
} clt_copy;
void clt_reference_copy(clt_lowering *l, const clt_tensor *x, const clt_tensor *y, const clt_copy *copy);
/* Sets all elements of y, f32. */
void clt_reference_fill(clt_lowering *l, const clt_tensor *y, float value);

#endif
