#include "model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/models.h"

static int join(char path[PATH_BYTES], const char *folder, const char *name) {
    int length = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return length < PATH_BYTES ? 0 : run_error("%s: the path is too long", folder);
}

/* ---- a folder of save_pretrained ---- */

/* One file, or several and their index. */
static int find_weights(model *m, const char *folder) {
    char index[PATH_BYTES];
    int code = join(m->weights, folder, "model.safetensors");
    if (!code) code = join(index, folder, "model.safetensors.index.json");
    if (!code && access(m->weights, R_OK) && access(index, R_OK) == 0) strcpy(m->weights, index);
    return code;
}

static int find_in_folder(model *m, const char *folder) {
    char config[PATH_BYTES];
    int code = join(config, folder, "config.json");
    if (!code) code = find_weights(m, folder);
    if (!code) code = join(m->tokenizer, folder, "tokenizer.json");
    if (code) return code;
    if (access(m->tokenizer, R_OK)) m->tokenizer[0] = 0;
    clt_status status = clt_language_model_read(&m->language, config);
    return status < 0 ? library_error(status, "reading the model") : 0;
}

/* ---- a file of cltrain-train ---- */

static int read_size(const char *path, const char *tensor, int axis, int64_t *size) {
    clt_shape shape;
    clt_status status = clt_weights_shape(path, tensor, &shape);
    if (status < 0) return library_error(status, "reading the model");
    if (shape.rank != 2) return run_error("%s: \"%s\" has %d dimensions: expected 2", path, tensor, shape.rank);
    *size = shape.dims[axis];
    return 0;
}

/* Sizes that the model's text does not tell are those of its weights. */
static int complete_gpt2(clt_language_model *l, const char *path) {
    int code = read_size(path, "transformer.wte.weight", 0, &l->vocabulary);
    if (!code) code = read_size(path, "transformer.wpe.weight", 0, &l->positions);
    l->gpt2.vocabulary = l->vocabulary;
    l->gpt2.positions = l->positions;
    return code;
}

static int complete_llama(clt_language_model *l, const char *path) {
    clt_preprocessing *data;
    clt_status status = clt_preprocessing_load(&data, path); /* the length of the sequences that it was trained on */
    if (status < 0) return library_error(status, "reading the model");
    l->positions = clt_preprocessing_shape(data).dims[0];
    clt_preprocessing_destroy(data);
    int code = read_size(path, "model.embed_tokens.weight", 0, &l->vocabulary);
    l->llama.vocabulary = l->vocabulary;
    return code;
}

static int complete_lstm(clt_language_model *l, const char *path) {
    l->positions = INT32_MAX; /* its state is all that it remembers */
    int code = read_size(path, "encoder.weight", 0, &l->vocabulary);
    l->lstm.vocabulary = l->vocabulary;
    return code;
}

static int complete(clt_language_model *l, const model_spec *spec, const char *path) {
    *l = (clt_language_model){.end = -1, .gpt2 = spec->gpt2, .llama = spec->llama, .lstm = spec->lstm};
    switch (spec->id) {
    case MODEL_LLAMA: l->family = CLT_LANGUAGE_LLAMA; return complete_llama(l, path);
    case MODEL_LSTM: l->family = CLT_LANGUAGE_LSTM; return complete_lstm(l, path);
    default: l->family = CLT_LANGUAGE_GPT2; return complete_gpt2(l, path);
    }
}

static int find_in_file(model *m, const char *path) {
    char text[256], problem[512];
    model_spec spec;
    if (strlen(path) >= sizeof m->weights) return run_error("%s: the path is too long", path);
    strcpy(m->weights, path);
    clt_status status = clt_weights_metadata(path, "cltrain.model", text, sizeof text);
    if (status == CLT_E_NOT_FOUND)
        return run_error("%s does not tell which model it holds: expected a file that cltrain-train wrote, or the folder of save_pretrained", path);
    if (status < 0) return library_error(status, "reading the model");
    if (!model_parse(&spec, text, problem, sizeof problem)) return run_error("%s: %s", path, problem);
    if (model_reads(spec.id) != MODEL_READS_TOKENS) return run_error("%s holds %s: expected a language model, such as gpt2:nano", path, text);
    return complete(&m->language, &spec, path);
}

int model_find(model *m, const char *path) {
    struct stat facts;
    *m = (model){0};
    if (stat(path, &facts)) return run_error("%s cannot be read", path);
    return S_ISDIR(facts.st_mode) ? find_in_folder(m, path) : find_in_file(m, path);
}
