#include "runtime/models/models.h"

/* [N, ...] -> [N, features] */
static clt_tensor *flat(clt_tensor *x) {
    clt_shape shape = clt_tensor_shape(x);
    if (shape.rank == 1) return clt_reshape(x, CLT_SHAPE(shape.dims[0], 1));
    return shape.rank == 2 ? x : clt_flatten(x);
}

clt_tensor *clt_model_mlp(clt_tensor *x, const int64_t *hidden, int n_hidden, int64_t outputs) {
    x = flat(x);
    for (int i = 0; i < n_hidden; i++) x = clt_relu(clt_linear(x, CLT_NAMED("fc%d", i + 1), hidden[i]));
    return clt_linear(x, CLT_NAMED("fc%d", n_hidden + 1), outputs);
}
