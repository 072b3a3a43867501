#include "gpt.h"

#include <math.h>
#include <stdio.h>

typedef struct name {
    char text[64];
} name;

/* "h.3.up" */
static name named(int layer, const char *part) {
    name made;
    snprintf(made.text, sizeof made.text, "h.%d.%s", layer, part);
    return made;
}

/* Part `index` of qkv [N, T, 3 W] as [N, heads, T, W / heads]: a dimension of 0 is as qkv has it, whatever T is. */
static clt_tensor *heads_of(clt_tensor *qkv, int index) {
    clt_tensor *part = clt_slice(qkv, 2, index * GPT_WIDTH, (index + 1) * GPT_WIDTH, 1);
    return clt_transpose(clt_reshape(part, CLT_SHAPE(0, 0, GPT_HEADS, -1)), 1, 2);
}

/* `hidden` [T, T] is added to the scores. */
static clt_tensor *attention(clt_tensor *x, clt_tensor *hidden, int layer) {
    clt_tensor *qkv = clt_linear(x, named(layer, "qkv").text, 3 * GPT_WIDTH);
    clt_tensor *q = heads_of(qkv, 0), *k = heads_of(qkv, 1), *v = heads_of(qkv, 2);
    clt_tensor *scores = clt_mul_scalar(clt_matmul_with(q, k, (clt_matmul_options){.transpose_b = true}),
                                        1 / sqrtf((float)GPT_WIDTH / GPT_HEADS));
    clt_tensor *mixed = clt_transpose(clt_matmul(clt_softmax(clt_add(scores, hidden), -1), v), 1, 2);
    return clt_linear(clt_reshape(mixed, CLT_SHAPE(0, 0, -1)), named(layer, "out").text, GPT_WIDTH);
}

static clt_tensor *block(clt_tensor *x, clt_tensor *hidden, int layer) {
    x = clt_add(x, attention(clt_layer_norm(x, named(layer, "norm1").text, 1), hidden, layer));
    clt_tensor *wide = clt_gelu(clt_linear(clt_layer_norm(x, named(layer, "norm2").text, 1), named(layer, "up").text, 4 * GPT_WIDTH));
    return clt_add(x, clt_linear(wide, named(layer, "down").text, GPT_WIDTH));
}

/* What a token must not look at: those behind it. A constant of the longest length, of which as much is taken as a batch is long. */
static clt_tensor *causal_mask(clt_graph *graph) {
    static float mask[GPT_LONGEST][GPT_LONGEST];
    for (int t = 0; t < GPT_LONGEST; t++)
        for (int s = 0; s < GPT_LONGEST; s++) mask[t][s] = s > t ? -1e9f : 0;
    clt_tensor *whole = clt_constant(graph, "mask", &(clt_array){CLT_F32, CLT_SHAPE(GPT_LONGEST, GPT_LONGEST), mask});
    return clt_slice(clt_slice(whole, 0, 0, CLT_LENGTH, 1), 1, 0, CLT_LENGTH, 1);
}

clt_status gpt_build(gpt *model, int64_t batch) {
    clt_init small = {CLT_INIT_NORMAL, .value = 0.02f};
    clt_status status = clt_graph_create(&model->graph);
    if (status < 0) return status;
    clt_graph *graph = model->graph;
    clt_tensor *tokens = clt_sequence_input(graph, "tokens", CLT_I32, CLT_SHAPE(batch, GPT_LONGEST), 1);
    clt_tensor *next = clt_sequence_input(graph, "next", CLT_I32, CLT_SHAPE(batch, GPT_LONGEST), 1);
    clt_tensor *words = clt_parameter(graph, "words", CLT_SHAPE(GPT_WORDS, GPT_WIDTH), small);
    clt_tensor *places = clt_parameter(graph, "places", CLT_SHAPE(GPT_LONGEST, GPT_WIDTH), small);
    clt_tensor *positions = clt_fixed_input(graph, "positions", CLT_I32, CLT_SHAPE(GPT_LONGEST));
    positions = clt_slice(positions, 0, 0, CLT_LENGTH, 1);
    clt_tensor *x = clt_add(clt_embedding_op(tokens, words), clt_embedding_op(positions, places));
    clt_tensor *hidden = causal_mask(graph);
    for (int layer = 0; layer < GPT_LAYERS; layer++) x = block(x, hidden, layer);
    model->logits = clt_linear_op(clt_layer_norm(x, "norm", 1), words, NULL);
    model->loss = clt_cross_entropy(clt_reshape(model->logits, CLT_SHAPE(-1, GPT_WORDS)), clt_reshape(next, CLT_SHAPE(-1)));
    return clt_graph_status(graph);
}

clt_status gpt_set_positions(clt_trainer *trainer) {
    int32_t positions[GPT_LONGEST];
    for (int t = 0; t < GPT_LONGEST; t++) positions[t] = t;
    return clt_trainer_set_input(trainer, "positions", &(clt_array){CLT_I32, CLT_SHAPE(GPT_LONGEST), positions});
}
