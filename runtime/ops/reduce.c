#include "runtime/ops/ops.h"

/* ---- rules ---- */

static clt_status infer(clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    CLT_TRY(clt_check_float(node, 0));
    const clt_shape *x = &node->inputs[0]->shape;
    clt_shape shape = {0};
    if (at->axes >> x->rank)
        return clt_fail(CLT_E_SHAPE, "%s: an axis is beyond the %d dimensions of the input", clt_node_name(node), x->rank);
    for (int i = 0; i < x->rank; i++) {
        bool reduced = at->axes >> i & 1;
        if (!reduced || at->keep_dims) shape.dims[shape.rank++] = reduced ? 1 : x->dims[i];
    }
    node->shape = shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

/* The reduced tensor with its lost dimensions back as ones, stretched to x's shape. */
static clt_tensor *stretch(clt_tensor *reduced, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    clt_shape shape = node->inputs[0]->shape;
    clt_shape ones = shape;
    for (int i = 0; i < shape.rank; i++)
        if (at->axes >> i & 1) ones.dims[i] = 1;
    return clt_expand(clt_reshape(reduced, ones), shape);
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    const clt_reduce_attributes *at = node->attributes;
    clt_tensor *x = node->inputs[0];
    if (!wanted[0]) return;
    switch (at->reduction) {
    case CLT_AXES_SUM:
        dx[0] = stretch(dy, node);
        break;
    case CLT_AXES_MEAN: {
        float share = (float)((double)clt_tensor_elements(node) / (double)clt_tensor_elements(x));
        dx[0] = stretch(clt_mul_scalar(dy, share), node);
        break;
    }
    case CLT_AXES_MAX: {
        clt_tensor *mask = clt_equal(x, stretch(node, node));
        clt_reduce_attributes sum = *at;
        sum.reduction = CLT_AXES_SUM;
        clt_tensor *count = clt_node(NULL, &clt_op_reduce, &sum, &mask, 1);
        dx[0] = clt_mul(mask, stretch(clt_div(dy, count), node));
        break;
    }
    }
}

const char *const clt_axes_reductions[] = {"sum", "mean", "max", NULL};

static const char *label(const clt_tensor *node) {
    return clt_axes_reductions[((const clt_reduce_attributes *)node->attributes)->reduction];
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_reduce_attributes, reduction, ENUM, .key = "r", .words = clt_axes_reductions),
    CLT_ATTRIBUTE(clt_reduce_attributes, axes, AXES, .key = "a"),
    CLT_ATTRIBUTE(clt_reduce_attributes, keep_dims, BOOL, .key = "^="),
    {0},
};

const clt_op clt_op_reduce = {
    .name = "reduce", .least_inputs = 1,
    .autocast = CLT_AUTOCAST_F32,
    .attributes_bytes = sizeof(clt_reduce_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .label = label,
    .operations = 1,
    .tuned = true,
};

/* ---- builders ---- */

static clt_tensor *reduce(clt_axes_reduction reduction, clt_tensor *x, const clt_reduce_options *options) {
    if (!clt_tensor_valid(x)) return x;
    clt_reduce_attributes at = {.reduction = reduction, .keep_dims = options->keep_dims};
    if (options->n_axes < 0 || options->n_axes > CLT_MAX_RANK)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "%s: %d axes", clt_axes_reductions[reduction], options->n_axes));
    if (options->n_axes == 0) at.axes = (1u << x->shape.rank) - 1;
    for (int i = 0; i < options->n_axes; i++) {
        int axis = clt_shape_axis(&x->shape, options->axes[i]);
        char text[CLT_SHAPE_TEXT];
        if (axis < 0 || at.axes >> axis & 1)
            return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "%s: axis %d of %s is out of range or named twice",
                                                     clt_axes_reductions[reduction], options->axes[i],
                                                     clt_shape_text(&x->shape, text)));
        at.axes |= 1u << axis;
    }
    return clt_node(NULL, &clt_op_reduce, &at, &x, 1);
}

clt_tensor *clt_sum(clt_tensor *x, clt_reduce_options options) { return reduce(CLT_AXES_SUM, x, &options); }
clt_tensor *clt_mean(clt_tensor *x, clt_reduce_options options) { return reduce(CLT_AXES_MEAN, x, &options); }
clt_tensor *clt_max(clt_tensor *x, clt_reduce_options options) { return reduce(CLT_AXES_MAX, x, &options); }

clt_tensor *clt_sum_to(clt_tensor *x, const clt_shape *shape) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, shape)) return x;
    clt_reduce_options options = {0};
    int lead = x->shape.rank - shape->rank;
    for (int i = 0; i < x->shape.rank; i++)
        if (i < lead || (shape->dims[i - lead] == 1 && x->shape.dims[i] != 1)) options.axes[options.n_axes++] = i;
    return clt_reshape(options.n_axes ? clt_sum(x, options) : x, *shape);
}

clt_tensor *clt_reduce_losses(clt_tensor *losses, clt_loss_options options) {
    if (!clt_tensor_valid(losses) || options.reduction == CLT_LOSS_NONE) return losses;
    if (options.reduction == CLT_LOSS_SUM) return clt_sum(losses, CLT_ALL_AXES);
    if (options.reduction == CLT_LOSS_MEAN) return clt_mean(losses, CLT_ALL_AXES);
    return clt_graph_fail(losses->graph, clt_fail(CLT_E_INVALID, "a loss: option reduction = %d: it must be one of clt_loss_reduction", (int)options.reduction));
}
