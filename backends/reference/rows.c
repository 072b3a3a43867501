#include "backends/reference/reference.h"

#define ROW(op_suffix, function) {.op = &clt_op_##op_suffix, .name = "reference", .lower = clt_reference_##function}

/* What has a form is generated. */
#define FORM_ROW(op_suffix)                                                               \
    {                                                                                     \
        .op = &clt_op_##op_suffix, .name = "reference", .any_layout = true,               \
        .supports = clt_reference_pointwise_supports, .lower = clt_reference_pointwise    \
    }

const clt_backend_row clt_reference_rows[] = {
    FORM_ROW(pointwise),
    FORM_ROW(fused),
    {.op = &clt_op_fused_reduce,
     .name = "reference",
     .any_layout = true,
     .supports = clt_reference_fused_reduce_supports,
     .lower = clt_reference_fused_reduce},
    FORM_ROW(relayout),
    ROW(matmul, matmul),
    ROW(conv2d, conv2d),
    ROW(conv2d_grad_input, conv2d_grad_input),
    ROW(conv2d_grad_weight, conv2d_grad_weight),
    ROW(max_pool2d, max_pool2d),
    ROW(max_pool2d_grad, max_pool2d_grad),
    ROW(avg_pool2d, avg_pool2d),
    ROW(avg_pool2d_grad, avg_pool2d_grad),
    ROW(batch_norm_stats, batch_norm_stats),
    ROW(batch_norm, batch_norm),
    ROW(batch_norm_grad_stats, batch_norm_grad_stats),
    ROW(batch_norm_grad_input, batch_norm_grad_input),
    ROW(layer_norm_stats, layer_norm_stats),
    ROW(layer_norm, layer_norm),
    ROW(layer_norm_grad_input, layer_norm_grad_input),
    ROW(layer_norm_grad_weight, layer_norm_grad_weight),
    ROW(reduce, reduce),
    ROW(reshape, view),
    ROW(permute, permute),
    ROW(slice, slice),
    ROW(slice_grad, slice_grad),
    ROW(concat, concat),
    ROW(pad, pad),
    ROW(expand, expand),
    ROW(dropout, dropout),
    ROW(embedding, embedding),
    ROW(embedding_grad, embedding_grad),
    ROW(softmax, softmax),
    ROW(softmax_grad, softmax_grad),
    ROW(log_softmax, log_softmax),
    ROW(log_softmax_grad, log_softmax_grad),
    ROW(cross_entropy, cross_entropy),
    ROW(cross_entropy_grad, cross_entropy_grad),
    ROW(user, user),
    ROW(user_grad, user_grad),
    ROW(pack, pack),
    ROW(accumulate, accumulate),
    ROW(hyper_scale, hyper_scale),
    ROW(norm_squared, norm_squared),
    ROW(clip_scale, clip_scale),
    ROW(sgd, sgd),
    ROW(adam, adam),
    ROW(metric_add, metric_add),
    ROW(metric_correct, metric_correct),
    {0},
};
