/* Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names and layouts of transformers' GPT2LMHeadModel. */
#include "runtime/models/models.h"

#include <math.h>

typedef struct gpt2 {
    clt_gpt2_options options;
    clt_graph *graph;
    int64_t length; /* of the longest sequence */
} gpt2;

static clt_tensor *dropped(const gpt2 *m, clt_tensor *x) {
    return m->options.dropout > 0 ? clt_dropout(x, m->options.dropout) : x;
}

static clt_init normal(float deviation) {
    return (clt_init){CLT_INIT_NORMAL, .value = deviation};
}

/* A linear layer whose weight lies [in, out]: Conv1D of transformers. */
static clt_tensor *conv1d(const gpt2 *m, clt_tensor *x, const char *name, int64_t out, float deviation) {
    int64_t in = clt_tensor_shape(x).dims[2];
    clt_tensor *weight = clt_parameter(m->graph, CLT_NAMED("%s.weight", name), CLT_SHAPE(in, out), normal(deviation));
    clt_tensor *bias = clt_parameter(m->graph, CLT_NAMED("%s.bias", name), CLT_SHAPE(out), (clt_init){CLT_INIT_ZEROS});
    clt_tensor *y = clt_add(clt_matmul(clt_reshape(x, CLT_SHAPE(-1, in)), weight), bias);
    return clt_reshape(y, CLT_SHAPE(CLT_BATCH, -1, out));
}

static clt_tensor *attention(const gpt2 *m, clt_tensor *x, const char *name, float projected) {
    int64_t width = m->options.width;
    clt_tensor *qkv = conv1d(m, x, CLT_NAMED("%s.c_attn", name), 3 * width, 0.02f), *heads[3];
    clt_split(qkv, 2, NULL, 3, heads);
    for (int i = 0; i < 3; i++) heads[i] = clt_model_split_heads(heads[i], m->options.heads);
    clt_tensor *y = clt_model_attention(heads[0], heads[1], heads[2], name, m->length, m->options.position_ids,
                                        m->options.dropout);
    return dropped(m, conv1d(m, clt_model_merge_heads(y), CLT_NAMED("%s.c_proj", name), width, projected));
}

static clt_tensor *mlp(const gpt2 *m, clt_tensor *x, const char *name, float projected) {
    clt_tensor *wide = clt_gelu_tanh(conv1d(m, x, CLT_NAMED("%s.c_fc", name), m->options.hidden, 0.02f));
    return dropped(m, conv1d(m, wide, CLT_NAMED("%s.c_proj", name), m->options.width, projected));
}

static clt_tensor *norm(const gpt2 *m, clt_tensor *x, const char *name) {
    return clt_layer_norm_with(x, name, 1, (clt_norm_options){.eps = m->options.eps});
}

static clt_tensor *block(const gpt2 *m, clt_tensor *x, int index) {
    /* Section 2.3: the weights of residual layers shrink with their number. */
    float projected = 0.02f / sqrtf(2.0f * (float)m->options.layers);
    clt_model_name name = clt_model_named("transformer.h.%d", index);
    x = clt_add(x, attention(m, norm(m, x, CLT_NAMED("%s.ln_1", name.text)), CLT_NAMED("%s.attn", name.text), projected));
    return clt_add(x, mlp(m, norm(m, x, CLT_NAMED("%s.ln_2", name.text)), CLT_NAMED("%s.mlp", name.text), projected));
}

static clt_gpt2_options completed(clt_gpt2_options o) {
    if (!o.vocabulary) o.vocabulary = 50257;
    if (!o.positions) o.positions = 1024;
    if (!o.width) o.width = 768;
    if (!o.hidden) o.hidden = 4 * o.width;
    if (!o.layers) o.layers = 12;
    if (!o.heads) o.heads = 12;
    return o;
}

static clt_tensor *refuse(clt_tensor *tokens, const clt_gpt2_options *o) {
    clt_tensor *refused = clt_model_check_tokens(tokens, "clt_model_gpt2");
    if (refused) return refused;
    if (tokens->shape.dims[1] > o->positions)
        return clt_graph_fail(tokens->graph, clt_fail(CLT_E_SHAPE, "clt_model_gpt2: a sequence of %lld tokens is longer than the model's %lld positions",
                                                      (long long)tokens->shape.dims[1], (long long)o->positions));
    if (o->layers < 1 || o->heads < 1 || o->width < 1 || o->width % o->heads)
        return clt_graph_fail(tokens->graph, clt_fail(CLT_E_INVALID, "clt_model_gpt2: expected at least one layer and a width that the heads divide, "
                                                      "got %d layers, width %lld, %d heads", o->layers, (long long)o->width, o->heads));
    return NULL;
}

clt_tensor *clt_model_gpt2_with(clt_tensor *tokens, clt_gpt2_options options) {
    if (!clt_tensor_valid(tokens)) return tokens;
    gpt2 m = {completed(options), tokens->graph, tokens->shape.rank == 2 ? tokens->shape.dims[1] : 0};
    const clt_gpt2_options *o = &m.options;
    clt_tensor *refused = refuse(tokens, o);
    if (refused) return refused;
    clt_tensor *words = clt_parameter(m.graph, "transformer.wte.weight", CLT_SHAPE(o->vocabulary, o->width), normal(0.02f));
    clt_tensor *positions = clt_parameter(m.graph, "transformer.wpe.weight", CLT_SHAPE(o->positions, o->width), normal(0.02f));
    clt_tensor *places = o->position_ids ? clt_embedding_op(o->position_ids, positions) : clt_slice_like(positions, tokens, 1);
    clt_tensor *x = clt_add(clt_embedding_op(tokens, words), places);
    x = dropped(&m, x);
    for (int i = 0; i < o->layers; i++) x = block(&m, x, i);
    return clt_linear_op(clt_model_rows(norm(&m, x, "transformer.ln_f"), o->rows), words, NULL);
}
