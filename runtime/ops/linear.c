/* A layer of matmul and add. */
#include "runtime/ops/ops.h"
#include "runtime/ops/layer.h"

clt_tensor *clt_linear_op(clt_tensor *x, clt_tensor *weight, clt_tensor *bias) {
    char text[CLT_PAIR_TEXT];
    if (!x || !weight || !clt_tensor_valid(x)) return weight ? x : NULL;
    if (!clt_tensor_valid(weight)) return weight;
    int64_t in = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 0, out = weight->shape.dims[0];
    if (x->shape.rank < 2 || weight->shape.rank != 2 || weight->shape.dims[1] != in)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "linear: %s are not [..., in] and [out, in]", clt_pair_text(x, weight, text)));
    int last = x->shape.rank - 1;
    bool is_number = clt_tensor_extent(x).dims[last] == in; /* else the weight fits at one length, and at others rows must not be of several */
    clt_tensor *rows = x->shape.rank == 2 ? x : clt_reshape_to(x, CLT_SHAPE(-1, is_number ? in : CLT_DIM_OF(last)));
    clt_tensor *y = clt_matmul_with(rows, weight, (clt_matmul_options){.transpose_b = true});
    if (bias) y = clt_add(y, bias);
    if (x->shape.rank == 2) return y;
    clt_shape shape = clt_tensor_extent(x);
    shape.dims[shape.rank - 1] = out;
    return clt_reshape_to(y, shape);
}

clt_tensor *clt_linear_with(clt_tensor *x, const char *name, clt_linear_options options) {
    if (!clt_tensor_valid(x)) return x;
    int64_t in = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 0, out = options.out_features;
    if (x->shape.rank < 2 || out < 1) {
        char text[CLT_SHAPE_TEXT];
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "linear \"%s\": input %s to %lld features", name ? name : "",
                                                 clt_shape_text(&x->shape, text), (long long)out));
    }
    clt_init init = clt_layer_init(in);
    clt_tensor *weight = clt_layer_parameter(x->graph, name, "weight", CLT_SHAPE(out, in), init);
    clt_tensor *bias = options.no_bias ? NULL : clt_layer_parameter(x->graph, name, "bias", CLT_SHAPE(out), init);
    return clt_linear_op(x, weight, bias);
}
