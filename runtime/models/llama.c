/* Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models"; names and layouts of transformers' LlamaForCausalLM. */
#include "runtime/models/models.h"

typedef struct llama {
    clt_llama_options options;
    clt_graph *graph;
    int64_t length; /* of the longest sequence */
} llama;

static clt_tensor *project(const llama *m, clt_tensor *x, const char *name, int64_t out) {
    if (!clt_tensor_valid(x)) return x;
    clt_shape shape = clt_tensor_shape(x);
    clt_tensor *weight = clt_parameter(m->graph, CLT_NAMED("%s.weight", name), CLT_SHAPE(out, shape.dims[shape.rank - 1]),
                                       (clt_init){CLT_INIT_NORMAL, .value = 0.02f});
    return clt_linear_op(x, weight, NULL);
}

static clt_tensor *norm(const llama *m, clt_tensor *x, const char *name) {
    return clt_rms_norm_with(x, name, 1, (clt_norm_options){.eps = m->options.eps});
}

static clt_tensor *attention(const llama *m, clt_tensor *x, const char *name) {
    const clt_llama_options *o = &m->options;
    int64_t head = o->width / o->heads;
    clt_tensor *q = clt_model_split_heads(project(m, x, CLT_NAMED("%s.q_proj", name), o->width), o->heads);
    clt_tensor *k = clt_model_split_heads(project(m, x, CLT_NAMED("%s.k_proj", name), head * o->key_heads), o->key_heads);
    clt_tensor *v = clt_model_split_heads(project(m, x, CLT_NAMED("%s.v_proj", name), head * o->key_heads), o->key_heads);
    clt_rotary_options places = {.base = o->base, .position_ids = o->position_ids};
    clt_tensor *y = clt_model_attention(clt_rotary_with(q, places), clt_rotary_with(k, places), v, name, m->length, o->position_ids, 0);
    return project(m, clt_model_merge_heads(y), CLT_NAMED("%s.o_proj", name), o->width);
}

/* SwiGLU; Shazeer 2020. */
static clt_tensor *mlp(const llama *m, clt_tensor *x, const char *name) {
    clt_tensor *gate = clt_silu(project(m, x, CLT_NAMED("%s.gate_proj", name), m->options.hidden));
    clt_tensor *up = project(m, x, CLT_NAMED("%s.up_proj", name), m->options.hidden);
    return project(m, clt_mul(gate, up), CLT_NAMED("%s.down_proj", name), m->options.width);
}

static clt_tensor *block(const llama *m, clt_tensor *x, int index) {
    clt_model_name name = clt_model_named("model.layers.%d", index);
    x = clt_add(x, attention(m, norm(m, x, CLT_NAMED("%s.input_layernorm", name.text)), CLT_NAMED("%s.self_attn", name.text)));
    return clt_add(x, mlp(m, norm(m, x, CLT_NAMED("%s.post_attention_layernorm", name.text)), CLT_NAMED("%s.mlp", name.text)));
}

static clt_llama_options completed(clt_llama_options o) {
    if (!o.vocabulary) o.vocabulary = 32000;
    if (!o.width) o.width = 2048;
    if (!o.hidden) o.hidden = 5632;
    if (!o.layers) o.layers = 22;
    if (!o.heads) o.heads = 32;
    if (!o.key_heads) o.key_heads = o.heads % 8 ? o.heads : o.heads / 8;
    if (o.base == 0) o.base = 10000;
    return o;
}

static clt_tensor *refuse(clt_tensor *tokens, const clt_llama_options *o) {
    clt_tensor *refused = clt_model_check_tokens(tokens, "clt_model_llama");
    if (refused) return refused;
    if (o->layers < 1 || o->heads < 1 || o->key_heads < 1 || o->heads % o->key_heads || o->width < 1 || o->width % (2 * (int64_t)o->heads) || o->hidden < 1)
        return clt_graph_fail(tokens->graph, clt_fail(CLT_E_INVALID, "clt_model_llama: expected at least one layer, heads that key heads divide, and a width that "
                                                      "twice the heads divide; got %d layers, %d heads, %d key heads, width %lld, hidden %lld", o->layers, o->heads,
                                                      o->key_heads, (long long)o->width, (long long)o->hidden));
    return NULL;
}

clt_tensor *clt_model_llama_with(clt_tensor *tokens, clt_llama_options options) {
    if (!clt_tensor_valid(tokens)) return tokens;
    llama m = {completed(options), tokens->graph, tokens->shape.rank == 2 ? tokens->shape.dims[1] : 0};
    const clt_llama_options *o = &m.options;
    clt_tensor *refused = refuse(tokens, o);
    if (refused) return refused;
    clt_tensor *words = clt_parameter(m.graph, "model.embed_tokens.weight", CLT_SHAPE(o->vocabulary, o->width), (clt_init){CLT_INIT_NORMAL, .value = 0.02f});
    clt_tensor *x = clt_embedding_op(tokens, words);
    for (int i = 0; i < o->layers; i++) x = block(&m, x, i);
    x = clt_model_rows(norm(&m, x, "model.norm"), o->rows);
    return o->tied ? clt_linear_op(x, words, NULL) : project(&m, x, "lm_head", o->vocabulary);
}
