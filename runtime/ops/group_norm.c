/* Of other ops. */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

/* [C, 1, ...], to broadcast over what lies behind channels. */
static clt_tensor *by_channel(clt_tensor *values, int rank) {
    clt_shape shape = {.rank = rank - 1};
    shape.dims[0] = values->shape.dims[0];
    for (int d = 1; d < shape.rank; d++) shape.dims[d] = 1;
    return clt_reshape(values, shape);
}

static clt_status check(const clt_tensor *x, int groups, clt_norm_options options) {
    char text[CLT_SHAPE_TEXT];
    if (x->shape.rank < 2 || groups < 1 || x->shape.dims[1] % groups || !(options.eps >= 0))
        return clt_fail(CLT_E_SHAPE, "input %s in %d groups, eps %g: expected [N, C, ...], groups that divide C, and eps 0 or more",
                        clt_shape_text(&x->shape, text), groups, (double)options.eps);
    return CLT_OK;
}

clt_tensor *clt_group_norm_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias, int groups, clt_norm_options options) {
    if (!x || !weight || !bias || !clt_tensor_valid(x)) return weight && bias ? x : NULL;
    if (!clt_tensor_valid(weight) || !clt_tensor_valid(bias)) return clt_tensor_valid(weight) ? bias : weight;
    clt_status status = check(x, groups, options);
    clt_shape channels = CLT_SHAPE(x->shape.rank > 1 ? x->shape.dims[1] : 0);
    if (status == CLT_OK && (!clt_shape_equal(&weight->shape, &channels) || !clt_shape_equal(&bias->shape, &channels)))
        status = clt_fail(CLT_E_SHAPE, "weight and bias must have as many values as there are channels, %lld", (long long)channels.dims[0]);
    if (status < 0) return clt_graph_fail(x->graph, clt_fail_context(status, "group_norm: "));
    clt_reduce_options last = {.axes = {2}, .n_axes = 1, .keep_dims = true};
    clt_shape shape = clt_tensor_extent(x);
    shape.dims[0] = 0; /* as it is: the batch */
    clt_tensor *rows = clt_reshape_to(x, CLT_SHAPE(0, groups, -1));
    clt_tensor *centred = clt_sub(rows, clt_mean(rows, last));
    clt_tensor *scale = clt_pow_scalar(clt_add_scalar(clt_mean(clt_pow_scalar(centred, 2), last), clt_or_default(options.eps, 1e-5f)), -0.5f);
    clt_tensor *y = clt_reshape_to(clt_mul(centred, scale), shape);
    return clt_add(clt_mul(y, by_channel(weight, shape.rank)), by_channel(bias, shape.rank));
}

clt_tensor *clt_group_norm_with(clt_tensor *x, const char *name, int groups, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    clt_status status = check(x, groups, options);
    if (status < 0) return clt_graph_fail(x->graph, clt_fail_context(status, "group_norm \"%s\": ", name ? name : ""));
    clt_shape channels = CLT_SHAPE(x->shape.dims[1]);
    clt_tensor *weight = clt_layer_parameter(x->graph, name, "weight", channels, (clt_init){CLT_INIT_CONSTANT, .value = 1});
    clt_tensor *bias = clt_layer_parameter(x->graph, name, "bias", channels, (clt_init){0});
    return clt_group_norm_op(x, weight, bias, groups, options);
}
