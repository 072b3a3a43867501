/*
 * A folder of Hugging Face's PEFT (https://github.com/huggingface/peft), as its save_pretrained writes it:
 *
 *     adapter_config.json          {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": [...], ...}
 *     adapter_model.safetensors    base_model.model.NAME.lora_A.weight [r, in], base_model.model.NAME.lora_B.weight [out, r]
 */
#include <cltrain/lora.h>

#include <float.h>
#include <string.h>

#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/name.h"
#include "runtime/base/number.h"
#include "runtime/train/predictor.h"
#include "runtime/train/trainer.h"
#include "runtime/train/weight_files.h"

static const char a_suffix[] = ".lora_A.weight", b_suffix[] = ".lora_B.weight", weight_suffix[] = ".weight";

/* ---- paths ---- */

typedef struct folder_paths {
    clt_text config, tensors;
} folder_paths;

static clt_status paths_of(folder_paths *paths, const char *folder) {
    *paths = (folder_paths){{0}, {0}};
    clt_text_add(&paths->config, "%s/adapter_config.json", folder);
    clt_text_add(&paths->tensors, "%s/adapter_model.safetensors", folder);
    return paths->config.status < 0 ? paths->config.status : paths->tensors.status;
}

static void free_paths(folder_paths *paths) {
    clt_text_free(&paths->config);
    clt_text_free(&paths->tensors);
}

/* ---- writing ---- */

/* Those of one folder have one alpha, rank and dropout. */
static clt_status find_adapters(const clt_graph *graph, const clt_adapter **first) {
    *first = NULL;
    for (size_t i = 0; i < graph->n_variables; i++) {
        const clt_adapter *of = graph->variables[i]->adapter;
        if (!of) continue;
        if (!*first) *first = of;
        if (of->a->shape.dims[0] != (*first)->a->shape.dims[0] || of->alpha != (*first)->alpha || of->dropout != (*first)->dropout)
            return clt_fail(CLT_E_UNSUPPORTED, "clt_lora_save: the adapters differ in rank, alpha or dropout, of which a folder has one each");
    }
    return *first ? CLT_OK : clt_fail(CLT_E_STATE, "clt_lora_save: the graph has no adapters");
}

/* Names of layers in full: PEFT takes them as it takes their last parts. */
static clt_status make_targets(const clt_graph *graph, json_t *array) {
    for (size_t i = 0; i < graph->n_variables; i++) {
        const clt_variable *v = graph->variables[i];
        json_t *name;
        if (!v->adapter) continue;
        clt_text layer = {0};
        clt_text_add(&layer, "%.*s", (int)clt_layer_name_length(v->name), v->name);
        clt_status status = layer.status < 0 ? layer.status : clt_json_string(&name, layer.data);
        clt_text_free(&layer);
        CLT_TRY(status);
        if (json_array_append_new(array, name)) return clt_fail_memory(1);
    }
    return CLT_OK;
}

static clt_status fill_config(const clt_graph *graph, const clt_adapter *like, json_t *object) {
    CLT_TRY(clt_json_set_text(object, "peft_type", "LORA"));
    CLT_TRY(clt_json_set(object, "task_type", json_null()));
    CLT_TRY(clt_json_set(object, "base_model_name_or_path", json_null()));
    CLT_TRY(clt_json_set(object, "inference_mode", json_true()));
    CLT_TRY(clt_json_set(object, "r", json_integer(like->a->shape.dims[0])));
    CLT_TRY(clt_json_set(object, "lora_alpha", json_real(like->alpha)));
    CLT_TRY(clt_json_set(object, "lora_dropout", json_real(like->dropout)));
    CLT_TRY(clt_json_set(object, "fan_in_fan_out", json_boolean(like->turned)));
    CLT_TRY(clt_json_set_text(object, "bias", "none"));
    CLT_TRY(clt_json_set(object, "target_modules", json_array()));
    return make_targets(graph, json_object_get(object, "target_modules"));
}

static clt_status write_config(const clt_graph *graph, const clt_adapter *like, const char *path) {
    clt_text text = {0};
    json_t *object = json_object();
    clt_status status = object ? fill_config(graph, like, object) : clt_fail_memory(1);
    if (status == CLT_OK) status = clt_json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9), &text);
    json_decref(object);
    if (status == CLT_OK) status = clt_file_write(path, text.data, text.length);
    clt_text_free(&text);
    return status;
}

clt_status clt_lora_save(clt_trainer *t, const char *folder) {
    const clt_adapter *like;
    folder_paths paths;
    if (!t || !folder) return clt_fail(CLT_E_INVALID, "clt_lora_save: trainer or folder is NULL");
    CLT_TRY(find_adapters(t->graph, &like));
    CLT_TRY(clt_file_make_folder(folder));
    clt_status status = paths_of(&paths, folder);
    if (status == CLT_OK) status = clt_adapters_save(t, paths.tensors.data);
    if (status == CLT_OK) status = write_config(t->graph, like, paths.config.data);
    free_paths(&paths);
    return status;
}

/* ---- reading ---- */

/* Of some initial values PEFT takes a part off the weights once more when it loads. */
static clt_status check_initial(const clt_config *config) {
    const json_t *value = clt_config_member(config, "init_lora_weights");
    return !value || json_is_boolean(value) ? CLT_OK : clt_config_expect_text(config, "init_lora_weights", "gaussian");
}

/* What changes no product of a layer that has an adapter in the file; anything else has to be off. */
static clt_status check_others(const clt_config *config) {
    static const char *const known[] = {"peft_type", "peft_version", "task_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "r", "lora_alpha", "lora_dropout",
                                        "target_modules", "exclude_modules", "fan_in_fan_out", "bias", "init_lora_weights", "layers_to_transform", "layers_pattern", "megatron_config",
                                        "megatron_core", "qalora_group_size"};
    const char *key;
    json_t *value;
    json_object_foreach(config->object, key, value) {
        bool off = json_is_null(value) || json_is_false(value) || ((json_is_array(value) || json_is_object(value)) && clt_config_expect_empty(config, key) == CLT_OK);
        for (size_t i = 0; !off && i < CLT_COUNT_OF(known); i++) off = strcmp(key, known[i]) == 0;
        if (!off) return clt_config_refuse(config, key, "none: of PEFT's LoRA this is not known");
    }
    return CLT_OK;
}

/* What would compute something else is refused. */
static clt_status read_config(const clt_config *config, clt_lora_options *options) {
    int64_t rank;
    if (!clt_config_member(config, "peft_type")) return clt_fail(CLT_E_FORMAT, "%s: \"peft_type\" is missing", config->path);
    CLT_TRY(clt_config_expect_text(config, "peft_type", "LORA"));
    CLT_TRY(clt_config_expect_text(config, "bias", "none"));
    CLT_TRY(check_initial(config));
    CLT_TRY(check_others(config));
    CLT_TRY(clt_config_size(config, "r", 8, CLT_LORA_MAX_RANK, &rank));
    CLT_TRY(clt_config_real(config, clt_config_member(config, "lora_alpha"), "lora_alpha", 8, &options->alpha));
    CLT_TRY(clt_config_real(config, clt_config_member(config, "lora_dropout"), "lora_dropout", 0, &options->dropout));
    options->rank = (int)rank;
    if (options->alpha == 0) options->alpha = CLT_ZERO;
    return CLT_OK;
}

/* "base_model.model.NAME.lora_A.weight" -> "NAME.weight", or "NAME" where that is the model's; NULL: it has none. */
static const clt_variable *weight_of(const clt_graph *graph, const char *tensor) {
    const size_t prefix = strlen(CLT_PEFT_PREFIX);
    const char *const ends[] = {weight_suffix, ""};
    if (strncmp(tensor, CLT_PEFT_PREFIX, prefix) != 0) return NULL;
    size_t length = strlen(tensor) - prefix - strlen(a_suffix);
    for (size_t e = 0; e < CLT_COUNT_OF(ends); e++)
        for (size_t i = 0; i < graph->n_variables; i++) {
            const char *name = graph->variables[i]->name;
            if (strlen(name) >= length && !strncmp(name, tensor + prefix, length) && !strcmp(name + length, ends[e])) return graph->variables[i];
        }
    return NULL;
}

static clt_status check_tensor(const clt_graph *graph, const clt_safetensors_entry *entry, const clt_lora_options *o, const char *path) {
    char text[CLT_SHAPE_TEXT];
    bool first = clt_ends_with(entry->name, a_suffix);
    if (!first && !clt_ends_with(entry->name, b_suffix))
        return clt_fail(CLT_E_UNSUPPORTED, "%s has a tensor \"%.120s\": expected names that end with %s or %s", path, entry->name, a_suffix, b_suffix);
    const clt_variable *weight = weight_of(graph, entry->name);
    if (!weight || !clt_variable_is_parameter(weight)) return clt_fail(CLT_E_MISMATCH, "%s adapts \"%.120s\", which the model has not", path, entry->name);
    const int64_t *dims = entry->shape.dims, wanted = first ? 0 : 1;
    if (weight->shape.rank == 2 && entry->shape.rank == 2 && dims[wanted] == o->rank &&
        (dims[!wanted] == weight->shape.dims[0] || dims[!wanted] == weight->shape.dims[1]))
        return CLT_OK;
    return clt_fail(CLT_E_MISMATCH, "%s: \"%.120s\" is %s: it does not adapt \"%s\" by rank %d", path, entry->name, clt_shape_text(&entry->shape, text), weight->name,
                    o->rank);
}

static clt_status add_adapters(clt_graph *graph, const clt_weight_files *files, const clt_lora_options *o, const char *path) {
    size_t n = clt_weight_files_count(files);
    for (size_t i = 0; i < n; i++) CLT_TRY(check_tensor(graph, clt_weight_files_at(files, i)->entry, o, path));
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const char *tensor = clt_weight_files_at(files, i)->entry->name;
        if (!clt_ends_with(tensor, a_suffix)) continue;
        any = true;
        clt_status status = clt_graph_add_lora(graph, weight_of(graph, tensor)->name, o);
        if (status == CLT_E_NOT_FOUND) status = clt_fail(CLT_E_MISMATCH, "%s adapts \"%.120s\", which is of no linear layer of the model", path, tensor);
        if (status < 0) clt_graph_fail(graph, status);
        CLT_TRY(status);
    }
    return any ? CLT_OK : clt_fail(CLT_E_FORMAT, "%s has no tensor whose name ends with %s", path, a_suffix);
}

static clt_status add_of(clt_graph *graph, const folder_paths *paths) {
    clt_config config;
    clt_lora_options options = {0};
    clt_weight_files *files;
    CLT_TRY(clt_config_open(&config, paths->config.data));
    clt_status status = read_config(&config, &options);
    clt_config_close(&config);
    CLT_TRY(status);
    CLT_TRY(clt_weight_files_open(&files, paths->tensors.data));
    status = add_adapters(graph, files, &options, paths->tensors.data);
    clt_weight_files_close(files);
    return status;
}

/* ---- a checkpoint ---- */

/* "NAME.lora_A.weight" adapts "NAME.weight", or "NAME" where that is the model's. */
static clt_status add_adapter(clt_graph *graph, const clt_safetensors_entry *entry, float alpha, const char *path) {
    size_t length = strlen(entry->name) - strlen(a_suffix);
    clt_text name = {0};
    if (entry->shape.rank != 2 || entry->shape.dims[0] > CLT_LORA_MAX_RANK)
        return clt_fail(CLT_E_MISMATCH, "%s: \"%.120s\" is not a matrix of up to %d rows", path, entry->name, CLT_LORA_MAX_RANK);
    clt_text_add_bytes(&name, entry->name, length);
    if (name.status == CLT_OK && !clt_graph_find_variable(graph, name.data)) clt_text_add(&name, "%s", weight_suffix);
    clt_status status = name.status;
    if (status == CLT_OK) status = clt_graph_add_lora(graph, name.data, &(clt_lora_options){.rank = (int)entry->shape.dims[0], .alpha = alpha});
    if (status == CLT_E_NOT_FOUND) status = clt_fail(CLT_E_MISMATCH, "%s adapts \"%.120s\", which is of no linear layer of the model", path, entry->name);
    if (status < 0) clt_graph_fail(graph, status);
    clt_text_free(&name);
    return status;
}

static clt_status add_of_checkpoint(clt_graph *graph, const clt_weight_files *files, const char *path) {
    const char *kept = clt_weight_files_metadata(files, CLT_ALPHA_KEY);
    double alpha;
    if (!kept) return clt_fail(CLT_E_NOT_FOUND, "%s has no adapters", path);
    if (!clt_number_parse(kept, &alpha) || !(alpha >= 0 && alpha <= FLT_MAX)) return clt_fail(CLT_E_FORMAT, "%s: metadata \"" CLT_ALPHA_KEY "\" is \"%.40s\": expected a number from 0", path, kept);
    for (size_t i = 0; i < clt_weight_files_count(files); i++) {
        const clt_safetensors_entry *entry = clt_weight_files_at(files, i)->entry;
        bool state = strncmp(entry->name, CLT_STATE_PREFIX, strlen(CLT_STATE_PREFIX)) == 0;
        if (!state && clt_ends_with(entry->name, a_suffix)) CLT_TRY(add_adapter(graph, entry, alpha == 0 ? CLT_ZERO : (float)alpha, path));
    }
    return CLT_OK;
}

clt_status clt_graph_add_lora_in(clt_graph *graph, const char *path) {
    clt_weight_files *files;
    if (!graph || !path) return clt_fail(CLT_E_INVALID, "clt_graph_add_lora_in: graph or path is NULL");
    CLT_TRY(clt_graph_status(graph));
    CLT_TRY(clt_weight_files_open(&files, path));
    clt_status status = add_of_checkpoint(graph, files, path);
    clt_weight_files_close(files);
    return status;
}

clt_status clt_graph_add_lora_of(clt_graph *graph, const char *folder) {
    folder_paths paths;
    if (!graph || !folder) return clt_fail(CLT_E_INVALID, "clt_graph_add_lora_of: graph or folder is NULL");
    CLT_TRY(clt_graph_status(graph));
    clt_status status = paths_of(&paths, folder);
    if (status == CLT_OK) status = add_of(graph, &paths);
    free_paths(&paths);
    return status;
}

clt_status clt_lora_load(clt_trainer *t, const char *folder) {
    folder_paths paths;
    if (!t || !folder) return clt_fail(CLT_E_INVALID, "clt_lora_load: trainer or folder is NULL");
    clt_status status = paths_of(&paths, folder);
    if (status == CLT_OK) status = clt_adapters_load(t, paths.tensors.data);
    free_paths(&paths);
    return status;
}

clt_status clt_predictor_load_lora(clt_predictor *predictor, const char *folder) {
    if (!predictor || !folder) return clt_fail(CLT_E_INVALID, "clt_predictor_load_lora: predictor or folder is NULL");
    return clt_lora_load(predictor->forward, folder);
}
