/*
 * Checkpoints: one safetensors file, replaced atomically.
 *
 *     conv1.weight …                            parameters and buffers
 *     bn1.num_batches_tracked                   what PyTorch's batch norm looks for
 *     cltrain.optimizer.exp_avg.conv1.weight …  optimizer state, a part a parameter
 *     __metadata__                              the rest, as text: see position.h
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/name.h"
#include "runtime/data/preprocessing.h"
#include "runtime/train/compress.h"
#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"
#include "runtime/train/position.h"
#include "runtime/train/preprocessing.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/weight_files.h"

static const char mean_suffix[] = ".running_mean";
static const char tokenizer_key[] = "cltrain.tokenizer";
static const char note_key[] = "cltrain.note"; /* the caller's */
static const char choices_key[] = "cltrain.choices"; /* of the rows that serve the run: see clt_tune_run */

/* ---- what a checkpoint holds ---- */

/* A tensor of the file and where its values are on the device. */
typedef struct item {
    char *name;
    clt_shape shape;
    clt_memory *memory; /* NULL: `host`, or what another stage has */
    float *host;
    size_t offset_bytes, bytes;
    bool is_count; /* it is `count`, as one I64 */
    int64_t count;
    int number;    /* among all that a file of this kind may have */
    int stage;     /* of a pipeline: whose it is */
    bool remote;   /* it is not this one's */
    bool zero;                  /* of a file that has none, it becomes 0 */
    const clt_variable *variable; /* whose values they are; NULL: of a state */
    bool merged;                /* its adapter is added when it is written */
} item;

typedef struct item_list {
    item *items;
    size_t n, capacity;
} item_list;

static void items_free(item_list *list) {
    for (size_t i = 0; i < list->n; i++) clt_free(list->items[i].name);
    clt_free(list->items);
}

/* `name` is taken over. */
static clt_status items_add(item_list *list, clt_text *name, item new_item) {
    clt_status status = name->status;
    if (status == CLT_OK) status = clt_grow(&list->items, &list->capacity, list->n, sizeof *list->items);
    if (status < 0) {
        clt_text_free(name);
        return status;
    }
    new_item.name = name->data;
    new_item.number = (int)list->n;
    list->items[list->n++] = new_item; /* NOLINT(clang-analyzer-core.NullDereference): clt_grow has made them */
    return CLT_OK;
}

/* Which variables a file holds. */
typedef enum selection {
    SELECT_ALL,
    SELECT_MODEL,   /* without adapters, which are merged into their weights */
    SELECT_ADAPTERS /* alone, by PEFT's names */
} selection;

/* What PyTorch's batch norm looks for beside its running mean. */
static clt_status add_tracked(const clt_trainer *t, const clt_variable *v, item_list *list) {
    if (!v->is_buffer || !clt_ends_with(v->name, mean_suffix)) return CLT_OK;
    clt_text name = {0};
    clt_text_add(&name, "%.*s" CLT_TRACKED_SUFFIX, (int)(strlen(v->name) - strlen(mean_suffix)), v->name);
    return items_add(list, &name, (item){.bytes = sizeof(int64_t), .is_count = true, .count = t->steps * t->options.accumulate + t->micro});
}

static void add_stage(const clt_trainer *t, const clt_variable *v, item *it) {
    if (!t->stage) return;
    it->stage = t->stage->rank_of[v->index];
    it->remote = t->stage->others[v->index];
}

static clt_status add_variables(clt_trainer *t, bool with_tracked, selection which, item_list *list) {
    for (size_t i = 0; i < t->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        bool adapters = which == SELECT_ADAPTERS;
        if (!clt_variable_is_kept(v) || v->unsaved) continue; /* the program has them */
        if (which != SELECT_ALL && v->adapts != adapters) continue;
        clt_text name = {0};
        item it = {.shape = v->shape, .bytes = clt_variable_bytes(v), .variable = v, .merged = which == SELECT_MODEL && v->adapter};
        add_stage(t, v, &it);
        if (!it.remote) CLT_TRY(clt_state_store_variable(t->store, v, &it.memory));
        clt_text_add(&name, "%s%s", adapters ? CLT_PEFT_PREFIX : "", v->name);
        CLT_TRY(items_add(list, &name, it));
        if (with_tracked) CLT_TRY(add_tracked(t, v, list));
    }
    return CLT_OK;
}

/* `whole`: where the state is if it is cut between ranks; else NULL. */
static clt_status add_group_state(clt_trainer *t, const char *what, int g, const float *whole, item_list *list) {
    const clt_bucket *bucket = &t->buckets[g];
    char flat[64];
    clt_memory *memory = NULL;
    if (!whole)
        CLT_TRY(clt_state_store_get(t->store, clt_bucket_name(what, g, flat), (size_t)bucket->elements * sizeof(float), &memory));
    for (int i = 0; i < bucket->n; i++) {
        const clt_variable *v = bucket->variables[i];
        clt_text name = {0};
        clt_text_add(&name, CLT_STATE_PREFIX "%s.%s", what, v->name);
        CLT_TRY(items_add(list, &name,
                          (item){.shape = v->shape,
                                 .memory = memory,
                                 .host = whole ? (float *)(uintptr_t)whole + bucket->offsets[i] : NULL,
                                 .offset_bytes = (size_t)bucket->offsets[i] * sizeof(float),
                                 .bytes = clt_variable_bytes(v)}));
    }
    return CLT_OK;
}

/* The same order on all stages, each of which has buckets of its own. */
static clt_status add_stages_state(clt_trainer *t, const char *what, item_list *list) {
    for (size_t i = 0; i < t->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        char flat[64];
        int g = 0, place = 0;
        clt_text name = {0};
        item it = {.shape = v->shape, .bytes = clt_variable_bytes(v)};
        if (!t->stage->reached[i]) continue;
        add_stage(t, v, &it);
        if (!it.remote && clt_bucket_find(t, v, &g, &place)) {
            CLT_TRY(clt_state_store_get(t->store, clt_bucket_name(what, g, flat), (size_t)t->buckets[g].elements * sizeof(float), &it.memory));
            it.offset_bytes = (size_t)t->buckets[g].offsets[place] * sizeof(float);
        }
        clt_text_add(&name, CLT_STATE_PREFIX "%s.%s", what, v->name);
        CLT_TRY(items_add(list, &name, it));
    }
    return CLT_OK;
}

static clt_status add_optimizer_state(clt_trainer *t, int micro, item_list *list) {
    const char *names[CLT_MAX_OPTIMIZER_STATES + 1];
    int n = clt_optimizer_states(&t->options, names);
    for (int s = 0; t->stage && s < n; s++) CLT_TRY(add_stages_state(t, names[s], list));
    if (t->stage) return CLT_OK;
    if (micro > 0) names[n++] = "accumulated";
    for (int s = 0; s < n; s++)
        for (int g = 0; g < t->n_buckets; g++)
            CLT_TRY(add_group_state(t, names[s], g, clt_shards_whole(t, s, g), list));
    return CLT_OK;
}

/* ---- stages of a pipeline: the first reads and writes files ---- */

/* The last that a part of a group has: above those of any edge. */
enum { TAG = (1 << 21) - 1 };

static clt_status send_values(const clt_trainer *t, const void *values, size_t bytes, int stage) {
    return clt_comm_send(t->stage->comm, values, bytes, CLT_U8, stage, TAG, NULL);
}

static clt_status receive_values(const clt_trainer *t, void *values, size_t bytes, int stage) {
    return clt_comm_receive(t->stage->comm, values, bytes, CLT_U8, stage, TAG, NULL);
}

/* Of a training by micro-batches of one batch, as a pipeline's is, each batch is an update. */
static int batches_per_update(const clt_trainer *t) {
    return t->stage ? 1 : t->options.accumulate;
}

/* ---- saving ---- */

static clt_run_position position_of(const clt_trainer *t, const clt_loader *loader, int64_t skipped) {
    clt_run_position p = {.whole = true,
                          .optimizer = t->options.optimizer,
                          .steps = t->steps,
                          .accumulate = batches_per_update(t),
                          .micro = t->micro,
                          .skipped = skipped,
                          .seed = t->options.seed,
                          .has_loader = loader != NULL};
    if (!loader) return p;
    p.loader = clt_loader_get_position(loader);
    p.loader_batches = clt_loader_batches(loader);
    return p;
}

static clt_status read_variable(clt_trainer *t, const clt_variable *v, float **values) {
    clt_memory *memory;
    CLT_TRY(clt_state_store_variable(t->store, v, &memory));
    *values = clt_alloc(clt_variable_bytes(v));
    if (!*values) return clt_fail_memory(clt_variable_bytes(v));
    return clt_memory_read(memory, 0, *values, clt_variable_bytes(v));
}

/* W + scale B A, of a weight that lies [out, in], or [in, out]. */
static void add_product(float *w, const clt_adapter *of, const float *a, const float *b) {
    int64_t rank = of->a->shape.dims[0], in = of->a->shape.dims[1], out = of->b->shape.dims[0];
    float scale = clt_adapter_scale(of);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            float sum = 0;
            for (int64_t r = 0; r < rank; r++) sum += b[o * rank + r] * a[r * in + i];
            w[of->turned ? i * out + o : o * in + i] += scale * sum;
        }
}

static clt_status merge(clt_trainer *t, const clt_variable *weight, float *values) {
    float *a = NULL, *b = NULL;
    clt_status status = read_variable(t, weight->adapter->a, &a);
    if (status == CLT_OK) status = read_variable(t, weight->adapter->b, &b);
    if (status == CLT_OK) add_product(values, weight->adapter, a, b);
    clt_free(a);
    clt_free(b);
    return status;
}

/* `values` have room for it. */
static clt_status read_item(clt_trainer *t, const item *it, void *values) {
    if (it->is_count) memcpy(values, &it->count, sizeof it->count);
    else if (it->host) memcpy(values, it->host, it->bytes);
    else if (it->remote) return receive_values(t, values, it->bytes, it->stage);
    else CLT_TRY(clt_memory_read(it->memory, it->offset_bytes, values, it->bytes));
    return it->merged ? merge(t, it->variable, values) : CLT_OK;
}

static clt_status write_item(clt_trainer *t, clt_safetensors_writer *writer, const item *it) {
    void *values = clt_alloc(it->bytes);
    if (!values) return clt_fail_memory(it->bytes);
    clt_status status = read_item(t, it, values);
    if (status == CLT_OK) status = clt_safetensors_writer_write(writer, values, it->bytes);
    clt_free(values);
    return status;
}

static clt_status send_item(clt_trainer *t, const item *it) {
    void *values = clt_alloc(it->bytes);
    if (!values) return clt_fail_memory(it->bytes);
    clt_status status = read_item(t, it, values);
    if (status == CLT_OK) status = send_values(t, values, it->bytes, 0);
    clt_free(values);
    return status;
}

static clt_status open_writer(clt_safetensors_writer **writer, const char *path, const item_list *list, const clt_safetensors_pair *pairs, size_t n_pairs) {
    clt_safetensors_entry *entries = clt_calloc(list->n, sizeof *entries);
    if (!entries) return clt_fail_memory(list->n * sizeof *entries);
    for (size_t i = 0; i < list->n; i++)
        entries[i] = (clt_safetensors_entry){
            .name = list->items[i].name,
            .dtype = list->items[i].is_count ? CLT_SAFETENSORS_I64 : CLT_SAFETENSORS_F32,
            .shape = list->items[i].shape,
        };
    clt_status status = clt_safetensors_writer_open(writer, path, entries, list->n, pairs, n_pairs);
    clt_free(entries);
    return status;
}

/* All of the items, or of a stage but the first its own. An error ends the group, for others wait. */
static clt_status move_items(clt_trainer *t, clt_safetensors_writer *writer, const item_list *list) {
    bool sends = t->stage && t->stage->cut.own > 0;
    clt_status status = CLT_OK;
    for (size_t i = 0; i < list->n && status == CLT_OK; i++) {
        const item *it = &list->items[i];
        if (!sends) status = write_item(t, writer, it);
        else if (!it->remote && !it->is_count) status = send_item(t, it);
    }
    return t->stage ? clt_trainer_tell_all(t, status) : status;
}

/* Without a path nothing is written; of a pipeline the first stage writes, and the others give it what they have. */
static clt_status write_file(clt_trainer *t, const char *path, const item_list *list, const clt_safetensors_pair *pairs, size_t n_pairs) {
    clt_safetensors_writer *writer = NULL;
    bool writes = !t->stage || t->stage->cut.own == 0;
    clt_status status = writes ? open_writer(&writer, path, list, pairs, n_pairs) : CLT_OK;
    if (t->stage) status = clt_parallel_agree(t->stage->comm, status);
    if (status == CLT_OK) status = move_items(t, writer, list);
    if (status == CLT_OK && writes) status = clt_safetensors_writer_commit(writer);
    else clt_safetensors_writer_abort(writer);
    return t->stage && clt_comm_state(t->stage->comm) == CLT_OK ? clt_parallel_agree(t->stage->comm, status) : status;
}

/* What must not become a file. */
static clt_status check_whole(const clt_trainer *t) {
    if (clt_device_is_lost(t->device)) return clt_device_finish(t->device);
    if (t->trouble == CLT_TROUBLE_TORN || t->taking_over)
        return clt_fail(CLT_E_STATE, "a step failed midway: the parameters are inconsistent and are not saved");
    return CLT_OK;
}

/* What tells how the model is used. */
enum { USE_PAIRS = 4 };
static size_t add_use(const clt_trainer *t, clt_safetensors_pair *pairs) {
    size_t n = 0;
    if (t->model) pairs[n++] = (clt_safetensors_pair){clt_model_key, t->model};
    if (t->preprocessing_text) pairs[n++] = (clt_safetensors_pair){clt_preprocessing_key, t->preprocessing_text};
    if (t->tokenizer_text) pairs[n++] = (clt_safetensors_pair){tokenizer_key, t->tokenizer_text};
    if (t->note) pairs[n++] = (clt_safetensors_pair){note_key, t->note};
    return n;
}

/* "" without adapters. */
static void alpha_text(const clt_trainer *t, char text[32]) {
    text[0] = 0;
    for (size_t i = 0; !text[0] && i < t->n_variables; i++)
        if (t->graph->variables[i]->adapter) snprintf(text, 32, "%.9g", (double)t->graph->variables[i]->adapter->alpha);
}

static clt_status note_loss_scale(const clt_trainer *t, clt_run_position *position) {
    float values[CLT_LOSS_SCALE_COUNT];
    if (!clt_loss_scaled(t)) return CLT_OK;
    CLT_TRY(clt_loss_scale_read(t, values));
    position->loss_scale = values[CLT_LOSS_SCALE];
    position->loss_scale_steps = (int64_t)values[CLT_LOSS_SCALE_STEPS];
    return CLT_OK;
}

static clt_status save(clt_trainer *t, const clt_loader *loader, const char *path) {
    item_list list = {0};
    clt_position_texts texts = {0};
    clt_safetensors_pair pairs[CLT_POSITION_PAIRS + 2 + USE_PAIRS];
    char alpha[32];
    clt_text choices = {0};
    clt_status status = add_variables(t, true, SELECT_ALL, &list);
    if (status == CLT_OK) status = add_optimizer_state(t, t->micro, &list);
    if (status == CLT_OK) status = clt_tune_run_write(&t->run, t->device, &choices);
    int64_t skipped = 0;
    if (status == CLT_OK) status = clt_nonfinite_skipped(t, &skipped);
    clt_run_position position = position_of(t, loader, skipped);
    if (status == CLT_OK) status = note_loss_scale(t, &position);
    size_t n_pairs = clt_run_position_write(&position, pairs, &texts);
    pairs[n_pairs++] = (clt_safetensors_pair){choices_key, clt_text_data(&choices)};
    alpha_text(t, alpha);
    if (alpha[0]) pairs[n_pairs++] = (clt_safetensors_pair){CLT_ALPHA_KEY, alpha};
    n_pairs += add_use(t, pairs + n_pairs);
    if (status == CLT_OK) status = write_file(t, path, &list, pairs, n_pairs);
    if (status == CLT_OK && path) clt_log_message(CLT_LOG_INFO, "checkpoint of step %lld in %s", (long long)t->steps, path);
    clt_text_free(&choices);
    items_free(&list);
    return status;
}

/* Of several pipelines the first one saves and loads: the others have the same. */
static bool is_of_later_pipeline(const clt_trainer *t) {
    return t && t->stage && t->stage->replicas && clt_comm_rank(t->stage->replicas) > 0;
}

clt_status clt_checkpoint_save(clt_trainer *t, const clt_loader *loader, const char *path) {
    if (is_of_later_pipeline(t)) return CLT_OK;
    bool parts = t && clt_trainer_shards(t) > 1, sends = t && t->stage && t->stage->cut.own > 0;
    if (!t || (!path && !parts && !sends)) return clt_fail(CLT_E_INVALID, "clt_checkpoint_save: trainer or path is NULL");
    CLT_TRY(check_whole(t));
    CLT_TRY(clt_average_check_unused(t));
    CLT_TRY(clt_nonfinite_check(t));
    CLT_TRY(clt_average_begin(t));
    if (t->options.comm && t->micro > 0)
        return clt_fail(CLT_E_STATE, "between the micro-batches of an update each rank has sums of its own: nothing is saved");
    clt_status status = parts ? clt_shards_gather(t) : CLT_OK;
    if (status == CLT_OK && (path || sends)) status = save(t, loader, path);
    clt_shards_drop(t);
    return status;
}

static clt_status save_weights(clt_trainer *t, selection which, const char *path) {
    CLT_TRY(check_whole(t));
    item_list list = {0};
    clt_safetensors_pair pairs[1 + USE_PAIRS] = {{"format", "pt"}}; /* what PyTorch's own writer puts there */
    size_t n_pairs = 1 + (which == SELECT_ADAPTERS ? 0 : add_use(t, pairs + 1));
    clt_status status = add_variables(t, true, which, &list);
    if (status == CLT_OK) status = write_file(t, path, &list, pairs, n_pairs);
    items_free(&list);
    return status;
}

clt_status clt_weights_save(clt_trainer *t, const char *path) {
    if (is_of_later_pipeline(t)) return CLT_OK;
    if (!t || (!path && !(t->stage && t->stage->cut.own > 0))) return clt_fail(CLT_E_INVALID, "clt_weights_save: trainer or path is NULL");
    return save_weights(t, SELECT_MODEL, path);
}

clt_status clt_adapters_save(clt_trainer *t, const char *path) {
    if (is_of_later_pipeline(t)) return CLT_OK;
    return save_weights(t, SELECT_ADAPTERS, path);
}

/* ---- loading ---- */

/* What a file is loaded for. */
typedef struct purpose {
    bool weights;  /* no more than parameters and buffers: of a checkpoint, the optimizer's state is passed over */
    bool matching; /* of these, those that fit; `visit` is told of the others */
    bool adapters; /* these alone, of a file of PEFT */
    clt_left_out_visitor visit;
    void *user;
} purpose;

/* Loader positions count batches, so they mean something only among as many as there were. */
static clt_status check_position(const clt_trainer *t, const clt_loader *loader, const char *path, const clt_run_position *p) {
    if (!p->whole) return CLT_OK;
    if (p->optimizer != t->options.optimizer)
        return clt_fail(CLT_E_MISMATCH, "%s was trained with optimizer %s, not %s", path, clt_run_position_optimizer(p->optimizer),
                        clt_run_position_optimizer(t->options.optimizer));
    if (p->accumulate != batches_per_update(t))
        return clt_fail(CLT_E_MISMATCH, "%s was trained with %lld micro-batches an update, not %d", path,
                        (long long)p->accumulate, batches_per_update(t));
    if (clt_trainer_group(t) && p->micro > 0)
        return clt_fail(CLT_E_MISMATCH, "%s was saved by one process between two updates: several cannot go on from it", path);
    if (loader && p->has_loader && p->loader_batches != clt_loader_batches(loader))
        return clt_fail(CLT_E_MISMATCH, "%s was trained with %lld batches an epoch, not %lld: expected as many samples and the same batch size", path,
                        (long long)p->loader_batches, (long long)clt_loader_batches(loader));
    return CLT_OK;
}

/* Data that the model does not suit. Files of before told nothing of it, and programs need not. */
static clt_status check_data(const clt_trainer *t, const clt_weight_files *files, const char *path) {
    const char *text = clt_weight_files_metadata(files, clt_preprocessing_key);
    clt_preprocessing *p;
    if (!text || !t->preprocessing) return CLT_OK;
    CLT_TRY(clt_preprocessing_read(&p, text, path));
    clt_status status = clt_preprocessing_compare(p, t->preprocessing, path);
    clt_preprocessing_destroy(p);
    return status;
}

static clt_status check_item(const clt_weight_files *files, const char *path, const item *it) {
    if (it->zero) return CLT_OK;
    const clt_weight *weight = clt_weight_files_find(files, it->name);
    char got[CLT_SHAPE_TEXT], wanted[CLT_SHAPE_TEXT];
    if (!weight) return clt_fail(CLT_E_MISMATCH, "%s has no tensor \"%s\"", path, it->name);
    const clt_safetensors_entry *entry = weight->entry;
    if (!clt_weight_widens(entry->dtype) || !clt_shape_equal(&entry->shape, &it->shape))
        return clt_fail(CLT_E_MISMATCH, "%s: \"%s\" is %s %s; the model has F32 %s", path, entry->name,
                        clt_safetensors_dtype_name(entry->dtype), clt_shape_text(&entry->shape, got),
                        clt_shape_text(&it->shape, wanted));
    return CLT_OK;
}

/* What files have besides weights: of a checkpoint, the optimizer's state; of language models, masks and frequencies that are computed. */
static bool is_passed_over(const char *name, bool weights) {
    static const char *const computed[] = {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"};
    bool passed = clt_ends_with(name, CLT_TRACKED_SUFFIX) || (weights && !strncmp(name, CLT_STATE_PREFIX, strlen(CLT_STATE_PREFIX)));
    for (size_t i = 0; weights && i < CLT_COUNT_OF(computed); i++) passed |= clt_ends_with(name, computed[i]);
    return passed;
}

static bool is_expected(const clt_weight_files *files, const clt_weight *weight, const item_list *list, const purpose *what) {
    bool expected = is_passed_over(weight->entry->name, what->weights);
    for (size_t i = 0; !expected && i < list->n; i++) {
        const char *name = list->items[i].name;
        expected = clt_ends_with(name, weight->entry->name) && clt_weight_files_find(files, name) == weight;
    }
    return expected;
}

static clt_status check_file(const clt_weight_files *files, const char *path, const item_list *list, const purpose *what) {
    for (size_t i = 0; i < list->n; i++) CLT_TRY(check_item(files, path, &list->items[i]));
    for (size_t i = 0; i < clt_weight_files_count(files); i++) {
        const clt_weight *weight = clt_weight_files_at(files, i);
        if (!is_expected(files, weight, list, what))
            return clt_fail(CLT_E_MISMATCH, "%s has a tensor \"%s\" that the model has not%s", path, weight->entry->name,
                            strstr(weight->entry->name, ".lora_") ? ": it is of a training with adapters (LoRA), which an export merges" : "");
    }
    return CLT_OK;
}

/* Adapters that a file of weights has not add nothing to these: B becomes 0, and A stays. */
static void clear_missing_adapters(const clt_weight_files *files, item_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        item it = list->items[i];
        bool missing = it.variable && it.variable->adapts && !clt_weight_files_find(files, it.name);
        it.zero = missing && clt_ends_with(it.name, "lora_B.weight");
        if (missing && !it.zero) clt_free(it.name);
        else list->items[kept++] = it;
    }
    list->n = kept;
}

/* Whether what is loaded is of adapters, too. */
static bool has_adapters(const item_list *list) {
    bool has = false;
    for (size_t i = 0; i < list->n; i++) has |= list->items[i].variable && list->items[i].variable->adapts && !list->items[i].zero;
    return has;
}

static clt_status check_alpha(const clt_trainer *t, const clt_weight_files *files, const char *path) {
    const char *kept = clt_weight_files_metadata(files, CLT_ALPHA_KEY);
    char own[32];
    alpha_text(t, own);
    return !kept || !strcmp(kept, own) ? CLT_OK : clt_fail(CLT_E_MISMATCH, "%s was trained with adapters of alpha %.32s, not %s", path, kept, own[0] ? own : "without");
}

/* The weights of a checkpoint are the moving average's, where one is kept. */
static const clt_weight *find_values(const clt_weight_files *files, const item *it, const purpose *what) {
    clt_text name = {0};
    clt_text_add(&name, CLT_STATE_PREFIX "average.%s", it->name);
    const clt_weight *mean = what->weights && name.status == CLT_OK ? clt_weight_files_find(files, name.data) : NULL;
    clt_text_free(&name);
    const clt_weight *weight = clt_weight_files_find(files, it->name);
    return mean && weight && mean->entry->bytes == weight->entry->bytes && mean->entry->dtype == weight->entry->dtype ? mean : weight;
}

static void tell(const purpose *what, clt_left_out left_out, const char *name, const char *words) {
    if (what->visit) what->visit(left_out, name, words, what->user);
}

/* Leaves those items in the list that the file has as the model. */
static clt_status keep_matching(const clt_weight_files *files, const char *path, item_list *list, const purpose *what) {
    size_t kept = 0;
    for (size_t i = 0; i < clt_weight_files_count(files); i++) {
        const clt_weight *weight = clt_weight_files_at(files, i);
        if (!is_expected(files, weight, list, what)) tell(what, CLT_LEFT_OVER, weight->entry->name, "the model has no tensor of this name");
    }
    for (size_t i = 0; i < list->n; i++) {
        item it = list->items[i];
        if (check_item(files, path, &it) == CLT_OK) {
            list->items[kept++] = it;
            continue;
        }
        tell(what, clt_weight_files_find(files, it.name) ? CLT_LEFT_MISFIT : CLT_LEFT_MISSING, it.name, clt_error_detail());
        clt_free(it.name);
    }
    list->n = kept;
    return kept ? CLT_OK : clt_fail(CLT_E_MISMATCH, "%s has no tensor with a name, shape and type of the model's", path);
}

/* Everything is read before anything is changed. */
static clt_status read_values(const clt_weight_files *files, const item_list *list, const purpose *what, void **values) {
    for (size_t i = 0; i < list->n; i++) {
        const item *it = &list->items[i];
        values[i] = clt_calloc(1, it->bytes);
        if (!values[i]) return clt_fail_memory(it->bytes);
        if (!it->zero) CLT_TRY(clt_weight_read(find_values(files, it, what), values[i], it->bytes));
    }
    return CLT_OK;
}

static clt_status write_values(const clt_trainer *t, const item_list *list, void *const *values) {
    for (size_t i = 0; i < list->n; i++) {
        const item *it = &list->items[i];
        if (it->host) memcpy(it->host, values[i], it->bytes);
        else if (it->remote) CLT_TRY(send_values(t, values[i], it->bytes, it->stage));
        else CLT_TRY(clt_memory_write(it->memory, it->offset_bytes, values[i], it->bytes));
    }
    return CLT_OK;
}

/* The run goes on with the rows that it began with. Another device has its own: its bits are others anyway. */
static clt_status restore_choices(clt_trainer *t, const char *kept) {
    clt_text present = {0};
    bool taken = false;
    clt_status status = clt_tune_run_write(&t->run, t->device, &present);
    if (status == CLT_OK && kept && strcmp(kept, present.data)) status = clt_tune_run_read(&t->run, t->device, kept, &taken);
    clt_text_free(&present);
    if (status == CLT_OK && taken) clt_trainer_drop_plans(t);
    return status;
}

static clt_status restore_run(clt_trainer *t, const clt_run_position *p, const char *choices) {
    t->steps = p->steps;
    t->micro = (int)p->micro;
    t->micro_samples = 0;
    t->has_gradients = false;
    t->options.seed = p->seed;
    if (!t->options.comm) t->trouble = CLT_TROUBLE_NONE;
    CLT_TRY(clt_nonfinite_restore(t, p->skipped));
    CLT_TRY(clt_loss_scale_restore(t, p->loss_scale, p->loss_scale_steps));
    return restore_choices(t, choices);
}

/* A file that is being loaded: the items that are taken of it, with their values. */
typedef struct loading {
    clt_weight_files *files;
    item_list list;
    void **values;
    clt_run_position position;
} loading;

static void free_loading(loading *l) {
    for (size_t i = 0; l->values && i < l->list.n; i++) clt_free(l->values[i]);
    clt_free(l->values);
    items_free(&l->list);
    clt_weight_files_close(l->files);
}

/* What files of the purpose may have; number i is the item with that number, until some are left out. */
static clt_status list_items(clt_trainer *t, const purpose *what, const clt_run_position *p, item_list *list) {
    CLT_TRY(add_variables(t, false, what->adapters ? SELECT_ADAPTERS : SELECT_ALL, list));
    return p->whole ? add_optimizer_state(t, (int)p->micro, list) : CLT_OK;
}

/* Nothing is changed yet. */
static clt_status read_file(clt_trainer *t, clt_loader *loader, const char *path, const purpose *what, loading *l) {
    clt_run_position *p = &l->position;
    CLT_TRY(clt_weight_files_open(&l->files, path));
    if (!what->weights) CLT_TRY(clt_run_position_read(p, clt_weight_files_first(l->files), path));
    CLT_TRY(check_position(t, loader, path, p));
    if (!what->matching) CLT_TRY(check_data(t, l->files, path));
    CLT_TRY(list_items(t, what, p, &l->list));
    if (!p->whole && !what->adapters) clear_missing_adapters(l->files, &l->list);
    if (p->whole || (!what->adapters && has_adapters(&l->list))) CLT_TRY(check_alpha(t, l->files, path));
    CLT_TRY(what->matching ? keep_matching(l->files, path, &l->list, what) : check_file(l->files, path, &l->list, what));
    l->values = clt_calloc(l->list.n, sizeof *l->values);
    if (!l->values) return clt_fail_memory(l->list.n * sizeof *l->values);
    return read_values(l->files, &l->list, what, l->values);
}

/* What a caller's function may fail in comes first: then nothing else has changed. */
static clt_status begin_restoring(clt_trainer *t, clt_loader *loader, const clt_run_position *p, const char *note) {
    if (p->whole) CLT_TRY(clt_initialize_variables(t->graph, t->store, p->seed, CLT_INITIALIZE_UNSAVED_ANEW, t->stage ? t->stage->others : NULL));
    if (p->whole) CLT_TRY(clt_trainer_set_note(t, note));
    if (loader && p->has_loader) CLT_TRY(clt_loader_set_position(loader, p->loader));
    t->trouble = CLT_TROUBLE_TORN; /* until all is written */
    t->has_gradients = false;
    t->averaged = p->whole;
    return CLT_OK;
}

static clt_status restore(clt_trainer *t, clt_loader *loader, const loading *l) {
    const clt_run_position *p = &l->position;
    clt_safetensors *file = clt_weight_files_first(l->files);
    clt_trouble before = t->trouble;
    CLT_TRY(begin_restoring(t, loader, p, clt_weight_files_metadata(l->files, note_key)));
    CLT_TRY(write_values(t, &l->list, l->values));
    if (p->whole) CLT_TRY(restore_run(t, p, clt_safetensors_metadata(file, choices_key)));
    t->trouble = p->whole && !t->options.comm ? CLT_TROUBLE_NONE : before;
    return CLT_OK;
}

static clt_status load_file(clt_trainer *t, clt_loader *loader, const char *path, const purpose *what, clt_run_position *restored) {
    loading l = {0};
    clt_status status = read_file(t, loader, path, what, &l);
    if (status == CLT_OK) status = restore(t, loader, &l);
    if (status == CLT_OK) clt_log_message(CLT_LOG_INFO, "restored %s at step %lld", path, (long long)t->steps);
    *restored = l.position;
    free_loading(&l);
    return status;
}

/* ---- stages of a pipeline: the first has read the file ---- */

/* Which items of those that there may be. */
static void mark_taken(const item_list *list, bool *taken) {
    for (size_t i = 0; i < list->n; i++) taken[list->items[i].number] = true;
}

/* In the order in which the first stage sends them. */
static clt_status receive_items(const clt_trainer *t, const item_list *list, const bool *taken) {
    clt_status status = CLT_OK;
    for (size_t i = 0; i < list->n && status == CLT_OK; i++) {
        const item *it = &list->items[i];
        if (it->remote || !taken[i]) continue;
        void *values = clt_alloc(it->bytes);
        status = values ? receive_values(t, values, it->bytes, 0) : clt_fail_memory(it->bytes);
        if (status == CLT_OK) status = clt_memory_write(it->memory, it->offset_bytes, values, it->bytes);
        clt_free(values);
    }
    return status;
}

/* On a stage behind the first. */
static clt_status restore_stage(clt_trainer *t, clt_loader *loader, const clt_run_position *p, const item_list *list, const bool *taken) {
    clt_trouble before = t->trouble;
    CLT_TRY(begin_restoring(t, loader, p, NULL)); /* the first stage writes it */
    CLT_TRY(receive_items(t, list, taken));
    if (p->whole) CLT_TRY(restore_run(t, p, NULL));
    t->trouble = p->whole ? CLT_TROUBLE_NONE : before;
    return CLT_OK;
}

static clt_status hand_out(clt_trainer *t, clt_loader *loader, const purpose *what, loading *l) {
    item_list all = {0};
    bool *taken = NULL;
    clt_comm *comm = t->stage->comm;
    clt_status status;
    CLT_TRY(clt_parallel_tell(comm, &l->position, sizeof l->position));
    CLT_TRY_GOTO(list_items(t, what, &l->position, &all));
    taken = clt_calloc(all.n + 1, sizeof *taken);
    CLT_TRY_GOTO(taken ? CLT_OK : clt_fail_memory(all.n));
    if (t->stage->cut.own == 0) mark_taken(&l->list, taken);
    CLT_TRY_GOTO(clt_parallel_tell(comm, taken, all.n * sizeof *taken));
    status = t->stage->cut.own == 0 ? restore(t, loader, l) : restore_stage(t, loader, &l->position, &all, taken);
fail:
    clt_free(taken);
    items_free(&all);
    return status;
}

static clt_status load_stages(clt_trainer *t, clt_loader *loader, const char *path, const purpose *what, clt_run_position *restored) {
    loading l = {0};
    clt_status status = t->stage->cut.own == 0 ? read_file(t, loader, path, what, &l) : CLT_OK;
    status = clt_parallel_agree(t->stage->comm, status);
    if (status == CLT_OK) status = clt_trainer_tell_all(t, hand_out(t, loader, what, &l));
    *restored = l.position;
    free_loading(&l);
    return status;
}

/* ---- several ranks: rank 0 has read the file ---- */

/* The rows that serve rank 0's run: whoever has its device goes on with them too. */
static clt_status share_choices(clt_trainer *t, const clt_run_position *p) {
    clt_text choices = {0};
    clt_comm *comm = t->options.comm;
    bool teller = clt_comm_rank(comm) == 0;
    clt_status status = clt_tune_run_write(&t->run, t->device, &choices);
    uint64_t bytes = choices.length + 1;
    CLT_TRY_GOTO(clt_parallel_agree(comm, status));
    CLT_TRY_GOTO(clt_parallel_tell(comm, &bytes, sizeof bytes));
    char *text = bytes <= INT32_MAX ? clt_alloc(bytes) : NULL;
    status = clt_parallel_agree(comm, text ? CLT_OK : clt_fail_memory((size_t)bytes));
    if (status == CLT_OK && text) {
        if (teller) memcpy(text, clt_text_data(&choices), bytes);
        status = clt_parallel_tell(comm, text, (size_t)bytes);
        text[bytes - 1] = 0;
        if (status == CLT_OK && !teller) status = restore_run(t, p, text);
    }
    clt_free(text);
fail:
    clt_text_free(&choices);
    return status;
}

static clt_status share_loaded(clt_trainer *t, clt_loader *loader, clt_run_position *p) {
    clt_comm *comm = t->options.comm;
    bool teller = clt_comm_rank(comm) == 0;
    CLT_TRY(clt_parallel_tell(comm, p, sizeof *p));
    CLT_TRY(clt_parallel_share(t, 0));
    t->averaged = p->whole;
    CLT_TRY(clt_compress_reset(t));
    if (t->options.compress.method && teller)
        clt_log_message(CLT_LOG_INFO, "compression by %s restarts with zero residuals: checkpoints do not store them",
                        clt_compression_name(t->options.compress.method));
    if (!p->whole) return CLT_OK;
    if (clt_trainer_shards(t) > 1) CLT_TRY(clt_shards_hand_out(t, 0));
    CLT_TRY(share_choices(t, p));
    clt_status status = !teller && loader && p->has_loader ? clt_loader_set_position(loader, p->loader) : CLT_OK;
    return clt_parallel_agree(comm, status);
}

/* Of several pipelines the first one loads, and the others have it from that. */
static clt_status load_pipelines(clt_trainer *t, clt_loader *loader, const char *path, const purpose *what) {
    clt_run_position p = {0};
    clt_status status = is_of_later_pipeline(t) ? CLT_OK : load_stages(t, loader, path, what, &p);
    if (!t->stage->replicas) return status;
    status = clt_parallel_agree(t->stage->all, status);
    return status == CLT_OK ? clt_parallel_agree(t->stage->all, share_loaded(t, loader, &p)) : status;
}

static clt_status load(clt_trainer *t, clt_loader *loader, const char *path, const purpose *what) {
    clt_run_position p = {0};
    clt_comm *comm = t->options.comm;
    CLT_TRY(clt_average_check_unused(t));
    if (t->stage) return load_pipelines(t, loader, path, what);
    if (!comm) return load_file(t, loader, path, what, &p);
    clt_status status = clt_trainer_shards(t) > 1 ? clt_shards_make(t) : CLT_OK;
    if (status == CLT_OK && clt_comm_rank(comm) == 0) status = load_file(t, loader, path, what, &p);
    status = clt_parallel_agree(comm, status);
    if (status == CLT_OK) status = share_loaded(t, loader, &p);
    clt_shards_drop(t);
    return status;
}

clt_status clt_checkpoint_load(clt_trainer *t, clt_loader *loader, const char *path) {
    if (!t || !path) return clt_fail(CLT_E_INVALID, "clt_checkpoint_load: trainer or path is NULL");
    return load(t, loader, path, &(purpose){.weights = false});
}

clt_status clt_weights_load(clt_trainer *t, const char *path) {
    if (!t || !path) return clt_fail(CLT_E_INVALID, "clt_weights_load: trainer or path is NULL");
    return load(t, NULL, path, &(purpose){.weights = true});
}

clt_status clt_adapters_load(clt_trainer *t, const char *path) {
    return load(t, NULL, path, &(purpose){.weights = true, .adapters = true});
}

clt_status clt_weights_load_matching(clt_trainer *t, const char *path, clt_left_out_visitor visit, void *user) {
    if (!t || !path) return clt_fail(CLT_E_INVALID, "clt_weights_load_matching: trainer or path is NULL");
    return load(t, NULL, path, &(purpose){.weights = true, .matching = true, .visit = visit, .user = user});
}

/* ---- what a file tells ---- */

clt_status clt_trainer_set_note(clt_trainer *t, const char *note) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_set_note: the trainer is NULL");
    char *copy = note ? clt_strdup(note) : NULL;
    if (note && !copy) return clt_fail_memory(strlen(note) + 1);
    clt_free(t->note);
    t->note = copy;
    return CLT_OK;
}

clt_status clt_weights_metadata(const char *path, const char *key, char *text, size_t bytes) {
    clt_weight_files *files;
    if (!path || !key || !text || !bytes) return clt_fail(CLT_E_INVALID, "clt_weights_metadata: an argument is NULL or 0");
    CLT_TRY(clt_weight_files_open(&files, path));
    const char *value = clt_weight_files_metadata(files, key);
    clt_status status = CLT_OK;
    if (!value) status = clt_fail(CLT_E_NOT_FOUND, "%s: there is no metadata \"%.80s\"", path, key);
    else if (strlen(value) >= bytes) status = clt_fail(CLT_E_RANGE, "%s: metadata \"%.80s\" has %zu bytes, more than %zu", path, key, strlen(value), bytes - 1);
    else strcpy(text, value);
    clt_weight_files_close(files);
    return status;
}

clt_status clt_weights_shape(const char *path, const char *tensor, clt_shape *shape) {
    clt_weight_files *files;
    if (!path || !tensor || !shape) return clt_fail(CLT_E_INVALID, "clt_weights_shape: an argument is NULL");
    CLT_TRY(clt_weight_files_open(&files, path));
    const clt_weight *weight = clt_weight_files_find(files, tensor);
    if (weight) *shape = weight->entry->shape;
    clt_status status = weight ? CLT_OK : clt_fail(CLT_E_NOT_FOUND, "%s: there is no tensor \"%.80s\"", path, tensor);
    clt_weight_files_close(files);
    return status;
}

clt_status clt_weights_tokenizer(clt_tokenizer **tokenizer, const char *path) {
    clt_weight_files *files;
    if (!tokenizer || !path) return clt_fail(CLT_E_INVALID, "clt_weights_tokenizer: an argument is NULL");
    CLT_TRY(clt_weight_files_open(&files, path));
    const char *text = clt_weight_files_metadata(files, tokenizer_key);
    clt_status status = text ? clt_tokenizer_parse(tokenizer, text, strlen(text)) : clt_fail(CLT_E_NOT_FOUND, "%s holds no tokenizer", path);
    clt_weight_files_close(files);
    return status < 0 && text ? clt_fail_context(status, "%s: metadata \"%s\": ", path, tokenizer_key) : status;
}
