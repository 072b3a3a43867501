/*
 * Logits may be stored in 16 bits: what is made of them is computed in f32, as the losses are, and only their gradient is rounded.
 *
 * Softmax and negative log-likelihood in one: losses[n] = log sum exp(x[n]) - x[n, t[n]];
 * dx[n, c] = dlosses[n] (softmax(x[n])[c] - [c == t[n]]).
 */
#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    CLT_TRY(clt_check_float(node, 0));
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
    node->dtype = node->inputs[0]->dtype;
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

/* [N]: of each row the weight of its target's class. */
static clt_tensor *weights_of(clt_tensor *target, clt_tensor *weight) {
    return clt_reshape(clt_embedding_op(target, clt_reshape(weight, CLT_SHAPE(-1, 1))), CLT_SHAPE(-1));
}

/* [N]: the mean of -log softmax over all classes. */
static clt_tensor *even_losses(clt_tensor *logits, clt_tensor *weight) {
    clt_tensor *log_p = clt_log_softmax(logits, 1);
    return clt_neg(clt_mean(weight ? clt_mul(log_p, weight) : log_p, CLT_AXES(1)));
}

/* Of logits [N, C, ...]: rows of classes. Both are as they are where there are such already. */
static void make_rows(clt_tensor **logits, clt_tensor **target) {
    clt_tensor *x = *logits;
    int rank = x->shape.rank, order[CLT_MAX_RANK] = {0};
    if (rank < 3) return;
    clt_shape places = x->shape;
    for (int d = 1; d + 1 < rank; d++) places.dims[d] = x->shape.dims[d + 1];
    places.rank--;
    char text[CLT_PAIR_TEXT];
    if (!clt_shape_equal(&places, &(*target)->shape)) {
        clt_fail(CLT_E_SHAPE, "cross_entropy: of %s the second is not the first without its classes, dimension 1", clt_pair_text(x, *target, text));
        *logits = clt_graph_fail(x->graph, CLT_E_SHAPE);
        return;
    }
    for (int d = 1; d < rank; d++) order[d] = d + 1 < rank ? d + 1 : 1;
    int64_t classes = clt_tensor_extent(x).dims[1];
    *logits = clt_reshape_to(clt_permute(x, order), CLT_SHAPE(-1, classes > 0 ? classes : CLT_DIM_OF(rank - 1)));
    *target = clt_reshape(*target, CLT_SHAPE(-1));
}

static clt_status check_options(const clt_tensor *logits, const clt_cross_entropy_options *o) {
    char text[CLT_SHAPE_TEXT];
    clt_shape classes = CLT_SHAPE(logits->shape.rank == 2 ? logits->shape.dims[1] : 0);
    if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1))
        return clt_fail(CLT_E_INVALID, "cross_entropy: label_smoothing is %g; it must be in [0, 1]", (double)o->label_smoothing);
    if (o->weight && clt_tensor_valid(o->weight) && !clt_shape_equal(&o->weight->shape, &classes))
        return clt_fail(CLT_E_SHAPE, "cross_entropy: the weight is %s; it must be [%lld], a value a class", clt_shape_text(&o->weight->shape, text),
                        (long long)classes.dims[0]);
    return CLT_OK;
}

clt_tensor *clt_cross_entropy_with(clt_tensor *logits, clt_tensor *target, clt_cross_entropy_options o) {
    clt_tensor *kept = NULL, *labels = target;
    if (!logits || !target || !clt_tensor_valid(logits)) return target ? logits : NULL;
    if (clt_tensor_valid(target)) make_rows(&logits, &target);
    if (o.ignore_index && clt_tensor_valid(target)) {
        target = clt_ignore_index(target, *o.ignore_index, 0);
        if (clt_tensor_valid(target)) kept = target->outputs[0];
    }
    clt_tensor *losses = clt_node(NULL, &clt_op_cross_entropy, NULL, (clt_tensor *[]){logits, target}, 2);
    if (!losses || !clt_tensor_valid(losses)) return losses;
    if (o.weight && !clt_tensor_valid(o.weight)) return o.weight;
    clt_status status = check_options(logits, &o);
    if (status < 0) return clt_graph_fail(losses->graph, status);
    clt_tensor *weights = o.weight ? weights_of(target, o.weight) : NULL;
    if (weights) losses = clt_mul(losses, weights);
    if (o.label_smoothing > 0)
        losses = clt_add(clt_mul_scalar(losses, 1 - o.label_smoothing), clt_mul_scalar(even_losses(logits, o.weight), o.label_smoothing));
    if (kept) losses = clt_where(kept, losses, clt_fill(losses->graph, (clt_shape){0}, 0)); /* not a product: the loss at another class may be infinite */
    if (kept) weights = weights ? clt_mul(weights, kept) : kept;
    if (o.reduction == CLT_LOSS_NONE && target != labels) return clt_reshape_to(losses, clt_tensor_extent(labels));
    if (!weights || o.reduction != CLT_LOSS_MEAN) return clt_reduce_losses(losses, (clt_loss_options){o.reduction});
    return clt_div(clt_sum(losses, CLT_ALL_AXES), clt_sum(weights, CLT_ALL_AXES));
}

clt_tensor *clt_cross_entropy(clt_tensor *logits, clt_tensor *target) {
    return clt_cross_entropy_with(logits, target, (clt_cross_entropy_options){0});
}

clt_tensor *clt_nll_loss_with(clt_tensor *log_p, clt_tensor *target, clt_loss_options options) {
    char text[CLT_PAIR_TEXT];
    if (!log_p || !target || !clt_tensor_valid(log_p)) return target ? log_p : NULL;
    if (!clt_tensor_valid(target)) return target;
    if (log_p->shape.rank != 2 || target->shape.rank != 1 || log_p->shape.dims[0] != target->shape.dims[0])
        return clt_graph_fail(log_p->graph, clt_fail(CLT_E_SHAPE, "nll_loss: %s are not [N, C] and [N]", clt_pair_text(log_p, target, text)));
    /* Not a product: a class that is ruled out has -inf. Of a target that is not a class all are taken 0 / 0 times: its loss is NaN, and so is its gradient. */
    clt_tensor *hits = clt_one_hot(target, log_p->shape.dims[1]);
    clt_tensor *n = clt_sum(hits, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true});
    clt_tensor *own = clt_where(clt_sub(hits, clt_add_scalar(n, -1)), log_p, clt_fill(log_p->graph, (clt_shape){0}, 0));
    return clt_reduce_losses(clt_neg(clt_sum(clt_mul(own, clt_div(n, n)), CLT_AXES(1))), options);
}

clt_tensor *clt_nll_loss(clt_tensor *log_p, clt_tensor *target) {
    return clt_nll_loss_with(log_p, target, (clt_loss_options){CLT_LOSS_MEAN});
}
