/* A layer of matmul and add. */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

clt_tensor *clt_linear_with(clt_tensor *x, const char *name, clt_linear_options options) {
    if (!clt_tensor_valid(x)) return x;
    int64_t in = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 0;
    if (x->shape.rank < 2 || options.out_features < 1) {
        char text[CLT_SHAPE_TEXT];
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "linear \"%s\": input %s to %lld features", name ? name : "",
                                                 clt_shape_text(&x->shape, text), (long long)options.out_features));
    }
    clt_init init = clt_layer_init(in);
    clt_tensor *weight = clt_layer_parameter(x->graph, name, "weight", CLT_SHAPE(options.out_features, in), init);
    clt_tensor *rows = x->shape.rank == 2 ? x : clt_reshape(x, CLT_SHAPE(clt_tensor_elements(x) / in, in));
    clt_tensor *y = clt_matmul_with(rows, weight, (clt_matmul_options){.transpose_b = true});
    if (!options.no_bias)
        y = clt_add(y, clt_layer_parameter(x->graph, name, "bias", CLT_SHAPE(options.out_features), init));
    if (x->shape.rank == 2) return y;
    clt_shape shape = x->shape;
    shape.dims[shape.rank - 1] = options.out_features;
    return clt_reshape(y, shape);
}
