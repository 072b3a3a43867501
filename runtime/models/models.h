/*
 * What the builders of models share.
 */
#ifndef CLT_MODELS_MODELS_H
#define CLT_MODELS_MODELS_H

#include <cltrain/models.h>
#include <cltrain/ops.h>

#include "runtime/graph/graph.h"

#define CLT_MODEL_NAME 128

/* The name of a part of a model, such as "layer1.0.conv1". Valid to the end of the expression it stands in. */
typedef struct clt_model_name {
    char text[CLT_MODEL_NAME];
} clt_model_name;
clt_model_name clt_model_named(const char *format, ...) CLT_PRINTF(1, 2);
#define CLT_NAMED(...) (clt_model_named(__VA_ARGS__).text)

/* x [N, T, width] in heads: [N, heads, T, width / heads]; and back. */
clt_tensor *clt_model_split_heads(clt_tensor *x, int64_t heads);
clt_tensor *clt_model_merge_heads(clt_tensor *x);

/* Causal attention of q [N, heads, T, D] to k and v [N, key heads, T, D], with dropout of its weights; with position_ids, to those that are remembered under NAME, up to
 * `capacity` of them. */
clt_tensor *clt_model_attention(clt_tensor *q, clt_tensor *k, clt_tensor *v, const char *name, int64_t capacity, clt_tensor *position_ids,
                                float dropout);

/* Unless they are i32 [N, T]: the error in the graph, of this builder; else NULL. */
clt_tensor *clt_model_check_tokens(clt_tensor *tokens, const char *builder);

/* Of x [N, T, width] the rows, [R, width], where they are given; else x. */
clt_tensor *clt_model_rows(clt_tensor *x, clt_tensor *rows);

#endif
