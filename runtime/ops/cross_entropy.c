/*
 * Softmax and negative log-likelihood in one: losses[n] = log sum exp(x[n]) - x[n, t[n]];
 * dx[n, c] = dlosses[n] (softmax(x[n])[c] - [c == t[n]]).
 */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_dtype(node, 0, CLT_F32));
    CLT_TRY(clt_check_dtype(node, 1, CLT_I32));
    CLT_TRY(clt_check_rank(node, 0, 2, 2));
    CLT_TRY(clt_check_rank(node, 1, 1, 1));
    const clt_tensor *logits = node->inputs[0], *target = node->inputs[1];
    char text[CLT_PAIR_TEXT];
    if (logits->shape.dims[0] != target->shape.dims[0])
        return clt_fail(CLT_E_SHAPE, "%s differ in their first dimension", clt_pair_text(logits, target, text));
    node->shape = target->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static clt_status infer_grad(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = CLT_F32;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0])
        dx[0] = clt_node(NULL, &clt_op_cross_entropy_grad, NULL,
                         (clt_tensor *[]){node->inputs[0], node->inputs[1], dy}, 3);
}

/* Targets are classes. */
static int64_t index_limit(const clt_tensor *node, int input) {
    return input == 1 ? node->inputs[0]->shape.dims[1] : 0;
}

const clt_op clt_op_cross_entropy = {.name = "cross_entropy", .least_inputs = 2,
                                     .infer = infer,
                                     .gradient = gradient,
                                     .operations = 4,
                                     .tuned = true,
                                     .index_limit = index_limit};
const clt_op clt_op_cross_entropy_grad = {
    .name = "cross_entropy_grad", .least_inputs = 3, .infer = infer_grad, .operations = 6, .tuned = true, .index_limit = index_limit};

clt_tensor *clt_cross_entropy_with(clt_tensor *logits, clt_tensor *target, clt_loss_options options) {
    return clt_reduce_losses(clt_node(NULL, &clt_op_cross_entropy, NULL, (clt_tensor *[]){logits, target}, 2), options);
}

clt_tensor *clt_cross_entropy(clt_tensor *logits, clt_tensor *target) {
    return clt_cross_entropy_with(logits, target, (clt_loss_options){CLT_LOSS_MEAN});
}
