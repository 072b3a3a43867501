#include "runtime/models/models.h"

#include <stdarg.h>
#include <stdio.h>

clt_model_name clt_model_named(const char *format, ...) {
    clt_model_name name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name.text, sizeof name.text, format, arguments);
    va_end(arguments);
    return name;
}

clt_tensor *clt_model_check_tokens(clt_tensor *tokens, const char *builder) {
    char text[CLT_SHAPE_TEXT];
    if (tokens->dtype == CLT_I32 && tokens->shape.rank == 2) return NULL;
    return clt_graph_fail(tokens->graph, clt_fail(CLT_E_SHAPE, "%s: expected tokens i32 [N, T], got %s %s", builder, clt_dtype_name(tokens->dtype),
                                                  clt_shape_text(&tokens->shape, text)));
}

clt_tensor *clt_model_split_heads(clt_tensor *x, int64_t heads) {
    return clt_transpose(clt_reshape(x, CLT_SHAPE(CLT_BATCH, 0, heads, -1)), 1, 2);
}

clt_tensor *clt_model_merge_heads(clt_tensor *x) {
    return clt_reshape(clt_transpose(x, 1, 2), CLT_SHAPE(CLT_BATCH, 0, -1));
}

clt_tensor *clt_model_attention(clt_tensor *q, clt_tensor *k, clt_tensor *v, const char *name, int64_t capacity, clt_tensor *position_ids,
                                float dropout) {
    if (position_ids) {
        k = clt_cache(k, CLT_NAMED("%s.key_cache", name), capacity, position_ids);
        v = clt_cache(v, CLT_NAMED("%s.value_cache", name), capacity, position_ids);
    }
    return clt_attention(q, k, v, .causal = true, .position_ids = position_ids, .dropout = dropout);
}

clt_tensor *clt_model_rows(clt_tensor *x, clt_tensor *rows) {
    if (!rows || !clt_tensor_valid(x)) return x;
    return clt_embedding_op(rows, clt_reshape(x, CLT_SHAPE(-1, x->shape.dims[2])));
}
