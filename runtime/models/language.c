/* config.json of transformers (https://huggingface.co/docs/transformers): of its many options those that the builders have. What would compute
 * something else is refused by name. */
#include <math.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/models/models.h"

enum { MOST_FILE_BYTES = 1 << 20, MOST_SIZE = 1 << 28, MOST_LAYERS = 1 << 14 };

typedef struct reader {
    const char *path;
    const json_t *config;
    clt_language_model *model;
} reader;

/* ---- members ---- */

static const json_t *member(const reader *r, const char *key) {
    const json_t *value = json_object_get(r->config, key);
    return json_is_null(value) ? NULL : value;
}

/* A whole number from 1 to `most`; `standard` where there is none, or CLT_E_FORMAT if that is 0. */
static clt_status read_size(const reader *r, const char *key, int64_t standard, int64_t most, int64_t *size) {
    const json_t *value = member(r, key);
    *size = standard;
    if (!value && standard) return CLT_OK;
    if (!json_is_integer(value)) return clt_fail(CLT_E_FORMAT, "%s: \"%s\" is %s", r->path, key, value ? "no whole number" : "missing");
    *size = json_integer_value(value);
    if (*size >= 1 && *size <= most) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"%s\" is %lld: expected 1 to %lld", r->path, key, (long long)*size, (long long)most);
}

static clt_status read_count(const reader *r, const char *key, int64_t standard, int *count) {
    int64_t size;
    CLT_TRY(read_size(r, key, standard, MOST_LAYERS, &size));
    *count = (int)size;
    return CLT_OK;
}

/* A number above 0; `standard` where there is none. */
static clt_status read_real(const reader *r, const json_t *value, const char *key, double standard, float *number) {
    double x = value ? json_number_value(value) : standard;
    if (value && !json_is_number(value)) return clt_fail(CLT_E_FORMAT, "%s: \"%s\" is no number", r->path, key);
    *number = (float)x;
    return x > 0 && isfinite(*number) ? CLT_OK : clt_fail(CLT_E_RANGE, "%s: \"%s\" is %g: expected a number above 0", r->path, key, x);
}

static clt_status refuse(const reader *r, const char *key, const char *expected) {
    clt_text found = {0};
    char shown[CLT_SHOWN_TEXT];
    clt_status status = clt_json_dump(json_object_get(r->config, key), JSON_ENCODE_ANY | JSON_COMPACT, &found);
    if (status == CLT_OK)
        status = clt_fail(CLT_E_UNSUPPORTED, "%s: \"%s\" is %s: expected %s", r->path, key, clt_show(clt_text_data(&found), shown), expected);
    clt_text_free(&found);
    return status;
}

/* Absent, null, or this text. */
static clt_status expect_text(const reader *r, const char *key, const char *expected) {
    const json_t *value = member(r, key);
    const char *text = json_string_value(value);
    return !value || (text && !strcmp(text, expected)) ? CLT_OK : refuse(r, key, expected);
}

static clt_status expect_switch(const reader *r, const char *key, bool expected) {
    const json_t *value = member(r, key);
    return !value || (expected ? json_is_true(value) : json_is_false(value)) ? CLT_OK : refuse(r, key, expected ? "true" : "false");
}

/* ---- families ---- */

static clt_status read_gpt2(const reader *r) {
    clt_gpt2_options *o = &r->model->gpt2;
    CLT_TRY(expect_text(r, "activation_function", "gelu_new"));
    CLT_TRY(expect_switch(r, "scale_attn_weights", true));
    CLT_TRY(expect_switch(r, "scale_attn_by_inverse_layer_idx", false));
    CLT_TRY(expect_switch(r, "add_cross_attention", false));
    CLT_TRY(expect_switch(r, "tie_word_embeddings", true));
    CLT_TRY(read_size(r, "n_positions", 1024, MOST_SIZE, &o->positions));
    CLT_TRY(read_size(r, "n_embd", 0, MOST_SIZE, &o->width));
    CLT_TRY(read_size(r, "n_inner", 4 * o->width, MOST_SIZE, &o->hidden));
    CLT_TRY(read_count(r, "n_layer", 0, &o->layers));
    CLT_TRY(read_count(r, "n_head", 0, &o->heads));
    CLT_TRY(read_real(r, member(r, "layer_norm_epsilon"), "layer_norm_epsilon", 1e-5, &o->eps));
    o->vocabulary = r->model->vocabulary;
    r->model->positions = o->positions;
    if (o->width % o->heads == 0) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"n_head\" is %d, which does not divide \"n_embd\", %lld", r->path, o->heads, (long long)o->width);
}

/* Plain positions, in the form of transformers 4 ("rope_theta", "rope_scaling") or 5 ("rope_parameters"). */
static clt_status read_rotary(const reader *r) {
    const json_t *parameters = member(r, "rope_parameters"), *theta = member(r, "rope_theta");
    const char *type = json_string_value(json_object_get(parameters, "rope_type"));
    if (member(r, "rope_scaling")) return refuse(r, "rope_scaling", "null");
    if (parameters && (!json_is_object(parameters) || (type && strcmp(type, "default") != 0))) return refuse(r, "rope_parameters", "\"rope_type\": \"default\"");
    if (!theta) theta = json_object_get(parameters, "rope_theta");
    return read_real(r, theta, "rope_theta", 10000, &r->model->llama.base);
}

static clt_status read_llama(const reader *r) {
    clt_llama_options *o = &r->model->llama;
    int64_t head;
    CLT_TRY(expect_text(r, "hidden_act", "silu"));
    CLT_TRY(expect_switch(r, "attention_bias", false));
    CLT_TRY(expect_switch(r, "mlp_bias", false));
    CLT_TRY(read_size(r, "max_position_embeddings", 2048, MOST_SIZE, &r->model->positions));
    CLT_TRY(read_size(r, "hidden_size", 0, MOST_SIZE, &o->width));
    CLT_TRY(read_size(r, "intermediate_size", 0, MOST_SIZE, &o->hidden));
    CLT_TRY(read_count(r, "num_hidden_layers", 0, &o->layers));
    CLT_TRY(read_count(r, "num_attention_heads", 0, &o->heads));
    CLT_TRY(read_count(r, "num_key_value_heads", o->heads, &o->key_heads));
    CLT_TRY(read_size(r, "head_dim", CLT_MAX(o->width / o->heads, 1), MOST_SIZE, &head));
    CLT_TRY(read_real(r, member(r, "rms_norm_eps"), "rms_norm_eps", 1e-6, &o->eps));
    CLT_TRY(read_rotary(r));
    o->tied = json_is_true(member(r, "tie_word_embeddings"));
    o->vocabulary = r->model->vocabulary;
    if (head * o->heads != o->width || head % 2)
        return clt_fail(CLT_E_UNSUPPORTED, "%s: %d heads of %lld do not make \"hidden_size\", %lld, of an even number each", r->path, o->heads, (long long)head,
                        (long long)o->width);
    if (o->heads % o->key_heads == 0) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "%s: \"num_key_value_heads\" is %d, which does not divide %d heads", r->path, o->key_heads, o->heads);
}

/* One, or the first of several. */
static clt_status read_end(const reader *r) {
    const json_t *value = member(r, "eos_token_id");
    if (json_is_array(value)) value = json_array_get(value, 0);
    r->model->end = -1;
    if (!value) return CLT_OK;
    json_int_t token = json_integer_value(value);
    if (!json_is_integer(value) || token < -1 || token >= r->model->vocabulary)
        return clt_fail(CLT_E_RANGE, "%s: \"eos_token_id\" is no token of %lld", r->path, (long long)r->model->vocabulary);
    r->model->end = (int32_t)token;
    return CLT_OK;
}

static clt_status read_model(const reader *r) {
    const char *type = json_string_value(member(r, "model_type"));
    if (!json_is_object(r->config)) return clt_fail(CLT_E_FORMAT, "%s is no JSON object", r->path);
    if (!type) return clt_fail(CLT_E_FORMAT, "%s: \"model_type\" is missing", r->path);
    CLT_TRY(read_size(r, "vocab_size", 0, MOST_SIZE, &r->model->vocabulary));
    CLT_TRY(read_end(r));
    r->model->family = strcmp(type, "llama") ? CLT_LANGUAGE_GPT2 : CLT_LANGUAGE_LLAMA;
    if (r->model->family == CLT_LANGUAGE_LLAMA) return read_llama(r);
    return strcmp(type, "gpt2") ? refuse(r, "model_type", "gpt2 or llama") : read_gpt2(r);
}

clt_status clt_language_model_read(clt_language_model *model, const char *path) {
    void *bytes;
    size_t length;
    json_error_t error;
    if (!model || !path) return clt_fail(CLT_E_INVALID, "clt_language_model_read: model or path is NULL");
    CLT_TRY(clt_file_read(path, MOST_FILE_BYTES, &bytes, &length));
    json_t *config = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    clt_free(bytes);
    if (!config && json_error_code(&error) == json_error_out_of_memory) return clt_fail_memory(length);
    if (!config) return clt_fail(CLT_E_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    clt_language_model read = {0};
    clt_status status = read_model(&(reader){path, config, &read});
    json_decref(config);
    if (status == CLT_OK) *model = read;
    return status;
}

clt_tensor *clt_language_model_build(const clt_language_model *model, clt_tensor *tokens, clt_tensor *rows, clt_tensor *position_ids) {
    if (!model || !clt_tensor_valid(tokens)) return tokens;
    clt_gpt2_options gpt2 = model->gpt2;
    clt_llama_options llama = model->llama;
    gpt2.rows = llama.rows = rows;
    gpt2.position_ids = llama.position_ids = position_ids;
    return model->family == CLT_LANGUAGE_LLAMA ? clt_model_llama_with(tokens, llama) : clt_model_gpt2_with(tokens, gpt2);
}
