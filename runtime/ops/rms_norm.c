/* Of other ops. */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

static clt_reduce_options last_axes(const clt_tensor *x, int dims) {
    clt_reduce_options options = {.n_axes = dims, .keep_dims = true};
    for (int i = 0; i < dims; i++) options.axes[i] = x->shape.rank - dims + i;
    return options;
}

clt_tensor *clt_rms_norm_op(clt_tensor *x, clt_tensor *weight, clt_norm_options options) {
    char text[CLT_PAIR_TEXT];
    if (!x || !weight || !clt_tensor_valid(x)) return weight ? x : NULL;
    if (!clt_tensor_valid(weight)) return weight;
    int dims = weight->shape.rank, leading = x->shape.rank - dims;
    bool fits = dims > 0 && leading >= 0;
    for (int i = 0; fits && i < dims; i++) fits = weight->shape.dims[i] == x->shape.dims[leading + i];
    if (!fits)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "rms_norm: of %s the second is not the last dimensions of the first",
                                                 clt_pair_text(x, weight, text)));
    clt_tensor *square = clt_mean(clt_pow_scalar(x, 2), last_axes(x, dims));
    clt_tensor *scale = clt_pow_scalar(clt_add_scalar(square, clt_or_default(options.eps, 1e-5f)), -0.5f);
    return clt_mul(clt_mul(x, scale), weight);
}

clt_tensor *clt_rms_norm_with(clt_tensor *x, const char *name, int dims, clt_norm_options options) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    if (dims < 1 || dims > x->shape.rank || !(options.eps >= 0))
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "rms_norm \"%s\": the last %d dimensions of %s, eps %g", name ? name : "", dims,
                                                 clt_shape_text(&x->shape, text), (double)options.eps));
    clt_shape shape = {.rank = dims};
    for (int i = 0; i < dims; i++) shape.dims[i] = x->shape.dims[x->shape.rank - dims + i];
    return clt_rms_norm_op(x, clt_layer_parameter(x->graph, name, "weight", shape, (clt_init){CLT_INIT_CONSTANT, .value = 1}), options);
}
