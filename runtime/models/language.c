/* config.json of transformers (https://huggingface.co/docs/transformers): of its many options those that the builders have. What would compute
 * something else is refused by name. */
#include <string.h>

#include "runtime/base/config.h"
#include "runtime/models/models.h"

enum { MOST_SIZE = 1 << 28, MOST_LAYERS = 1 << 14 };

typedef struct reader {
    const clt_config *config;
    clt_language_model *model;
} reader;

/* ---- members ---- */

static clt_status read_size(const reader *r, const char *key, int64_t standard, int64_t *size) {
    return clt_config_size(r->config, key, standard, MOST_SIZE, size);
}

static clt_status read_count(const reader *r, const char *key, int64_t standard, int *count) {
    int64_t size;
    CLT_TRY(clt_config_size(r->config, key, standard, MOST_LAYERS, &size));
    *count = (int)size;
    return CLT_OK;
}

/* Above 0. */
static clt_status read_real(const reader *r, const json_t *value, const char *key, double standard, float *number) {
    CLT_TRY(clt_config_real(r->config, value, key, standard, number));
    return *number > 0 ? CLT_OK : clt_fail(CLT_E_RANGE, "%s: \"%s\" is %g: expected a number above 0", r->config->path, key, (double)*number);
}

/* ---- families ---- */

static clt_status read_gpt2(const reader *r) {
    clt_gpt2_options *o = &r->model->gpt2;
    CLT_TRY(clt_config_expect_text(r->config, "activation_function", "gelu_new"));
    CLT_TRY(clt_config_expect_switch(r->config, "scale_attn_weights", true));
    CLT_TRY(clt_config_expect_switch(r->config, "scale_attn_by_inverse_layer_idx", false));
    CLT_TRY(clt_config_expect_switch(r->config, "add_cross_attention", false));
    CLT_TRY(clt_config_expect_switch(r->config, "tie_word_embeddings", true));
    CLT_TRY(read_size(r, "n_positions", 1024, &o->positions));
    CLT_TRY(read_size(r, "n_embd", 0, &o->width));
    CLT_TRY(read_size(r, "n_inner", 4 * o->width, &o->hidden));
    CLT_TRY(read_count(r, "n_layer", 0, &o->layers));
    CLT_TRY(read_count(r, "n_head", 0, &o->heads));
    CLT_TRY(read_real(r, clt_config_member(r->config, "layer_norm_epsilon"), "layer_norm_epsilon", 1e-5, &o->eps));
    o->vocabulary = r->model->vocabulary;
    r->model->positions = o->positions;
    if (o->width % o->heads == 0) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"n_head\" is %d, which does not divide \"n_embd\", %lld", r->config->path, o->heads, (long long)o->width);
}

/* Plain positions, in the form of transformers 4 ("rope_theta", "rope_scaling") or 5 ("rope_parameters"). */
static clt_status read_rotary(const reader *r) {
    const json_t *parameters = clt_config_member(r->config, "rope_parameters"), *theta = clt_config_member(r->config, "rope_theta");
    const char *type = json_string_value(json_object_get(parameters, "rope_type"));
    if (clt_config_member(r->config, "rope_scaling")) return clt_config_refuse(r->config, "rope_scaling", "null");
    if (parameters && (!json_is_object(parameters) || (type && strcmp(type, "default") != 0))) return clt_config_refuse(r->config, "rope_parameters", "\"rope_type\": \"default\"");
    if (!theta) theta = json_object_get(parameters, "rope_theta");
    return read_real(r, theta, "rope_theta", 10000, &r->model->llama.base);
}

static clt_status read_llama(const reader *r) {
    clt_llama_options *o = &r->model->llama;
    int64_t head;
    CLT_TRY(clt_config_expect_text(r->config, "hidden_act", "silu"));
    CLT_TRY(clt_config_expect_switch(r->config, "attention_bias", false));
    CLT_TRY(clt_config_expect_switch(r->config, "mlp_bias", false));
    CLT_TRY(read_size(r, "max_position_embeddings", 2048, &r->model->positions));
    CLT_TRY(read_size(r, "hidden_size", 0, &o->width));
    CLT_TRY(read_size(r, "intermediate_size", 0, &o->hidden));
    CLT_TRY(read_count(r, "num_hidden_layers", 0, &o->layers));
    CLT_TRY(read_count(r, "num_attention_heads", 0, &o->heads));
    CLT_TRY(read_count(r, "num_key_value_heads", o->heads, &o->key_heads));
    CLT_TRY(read_size(r, "head_dim", CLT_MAX(o->width / o->heads, 1), &head));
    CLT_TRY(read_real(r, clt_config_member(r->config, "rms_norm_eps"), "rms_norm_eps", 1e-6, &o->eps));
    CLT_TRY(read_rotary(r));
    o->tied = json_is_true(clt_config_member(r->config, "tie_word_embeddings"));
    o->vocabulary = r->model->vocabulary;
    if (head * o->heads != o->width || head % 2)
        return clt_fail(CLT_E_UNSUPPORTED, "%s: %d heads of %lld do not make \"hidden_size\", %lld, of an even number each", r->config->path, o->heads, (long long)head,
                        (long long)o->width);
    if (o->heads % o->key_heads == 0) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"num_key_value_heads\" is %d, which does not divide %d heads", r->config->path, o->key_heads, o->heads);
}

/* One, or the first of several. */
static clt_status read_end(const reader *r) {
    const json_t *value = clt_config_member(r->config, "eos_token_id");
    if (json_is_array(value)) value = json_array_get(value, 0);
    r->model->end = -1;
    if (!value) return CLT_OK;
    json_int_t token = json_integer_value(value);
    if (!json_is_integer(value) || token < -1 || token >= r->model->vocabulary)
        return clt_fail(CLT_E_RANGE, "%s: \"eos_token_id\" is not a token of %lld", r->config->path, (long long)r->model->vocabulary);
    r->model->end = (int32_t)token;
    return CLT_OK;
}

static clt_status read_model(const reader *r) {
    const char *type = json_string_value(clt_config_member(r->config, "model_type"));
    if (!type) return clt_fail(CLT_E_FORMAT, "%s: \"model_type\" is missing", r->config->path);
    CLT_TRY(read_size(r, "vocab_size", 0, &r->model->vocabulary));
    CLT_TRY(read_end(r));
    r->model->family = strcmp(type, "llama") ? CLT_LANGUAGE_GPT2 : CLT_LANGUAGE_LLAMA;
    if (r->model->family == CLT_LANGUAGE_LLAMA) return read_llama(r);
    return strcmp(type, "gpt2") ? clt_config_refuse(r->config, "model_type", "gpt2 or llama") : read_gpt2(r);
}

clt_status clt_language_model_read(clt_language_model *model, const char *path) {
    clt_config config;
    clt_language_model read = {0};
    if (!model || !path) return clt_fail(CLT_E_INVALID, "clt_language_model_read: model or path is NULL");
    CLT_TRY(clt_config_open(&config, path));
    clt_status status = read_model(&(reader){&config, &read});
    clt_config_close(&config);
    if (status == CLT_OK) *model = read;
    return status;
}

clt_tensor *clt_language_model_build(const clt_language_model *model, clt_tensor *tokens, clt_tensor *rows, clt_tensor *position_ids) {
    if (!model || !clt_tensor_valid(tokens)) return tokens;
    clt_gpt2_options gpt2 = model->gpt2;
    clt_llama_options llama = model->llama;
    clt_lstm_model_options lstm = model->lstm;
    gpt2.rows = llama.rows = lstm.rows = rows;
    gpt2.position_ids = llama.position_ids = lstm.position_ids = position_ids;
    switch (model->family) {
    case CLT_LANGUAGE_LLAMA: return clt_model_llama_with(tokens, llama);
    case CLT_LANGUAGE_LSTM: return clt_model_lstm_with(tokens, lstm);
    default: return clt_model_gpt2_with(tokens, gpt2);
    }
}
