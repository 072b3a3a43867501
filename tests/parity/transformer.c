#include "tests/parity/transformer.h"

#include <math.h>

#include <cltrain/ops.h>

/* Part `index` of qkv [N, T, 3 W] as [N, heads, T, W / heads]. */
static clt_tensor *split_heads(clt_tensor *qkv, int index) {
    clt_shape shape = clt_tensor_shape(qkv);
    const int order[] = {0, 2, 1, 3};
    clt_tensor *part = clt_slice(qkv, 2, index * TRANSFORMER_WIDTH, (index + 1) * TRANSFORMER_WIDTH, 1);
    part = clt_reshape(part, CLT_SHAPE(shape.dims[0], shape.dims[1], TRANSFORMER_HEADS, -1));
    return clt_permute(part, order);
}

static clt_tensor *attention(clt_tensor *x) {
    clt_shape shape = clt_tensor_shape(x);
    clt_tensor *qkv = clt_linear(x, "qkv", 3 * TRANSFORMER_WIDTH);
    clt_tensor *q = split_heads(qkv, 0), *k = split_heads(qkv, 1), *v = split_heads(qkv, 2);
    clt_tensor *scores = clt_matmul_with(q, k, (clt_matmul_options){.transpose_b = true});
    scores = clt_mul_scalar(scores, 1.0f / sqrtf((float)TRANSFORMER_WIDTH / TRANSFORMER_HEADS));
    clt_tensor *mixed = clt_transpose(clt_matmul(clt_softmax(scores, -1), v), 1, 2);
    return clt_linear(clt_reshape(mixed, CLT_SHAPE(shape.dims[0], shape.dims[1], -1)), "out", TRANSFORMER_WIDTH);
}

clt_tensor *transformer_build(clt_graph *graph, clt_tensor *x, int64_t classes) {
    int64_t length = clt_tensor_shape(x).dims[1];
    clt_tensor *position = clt_parameter(graph, "position", CLT_SHAPE(length, TRANSFORMER_WIDTH),
                                         (clt_init){CLT_INIT_NORMAL, .value = 0.02f});
    clt_tensor *h = clt_embedding(clt_cast(x, CLT_I32), "token", TRANSFORMER_TOKENS, TRANSFORMER_WIDTH);
    h = clt_add(h, position);
    h = clt_add(h, attention(clt_layer_norm(h, "norm1", 1)));
    clt_tensor *wide = clt_gelu(clt_linear(clt_layer_norm(h, "norm2", 1), "up", TRANSFORMER_HIDDEN));
    h = clt_layer_norm(clt_add(h, clt_linear(wide, "down", TRANSFORMER_WIDTH)), "norm3", 1);
    return clt_linear(clt_mean(h, CLT_AXES(1)), "head", classes);
}
