#include "runtime/data/preprocessing.h"
#include "runtime/train/compress.h"
#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"
#include "runtime/train/preprocessing.h"

#include <math.h>
#include <string.h>

/* ---- creation ---- */

/* Whether values of the input reach `tensor` as they are, through reshapes, slices and the like; but for those that are ignored on the way. What reads
 * other types, too, chooses among values, as clt_where does by a condition: of those nobody knows. */
static bool carries_values(const clt_tensor *tensor, const clt_tensor *input, clt_index_limit *limit) {
    if (tensor == input) return true;
    if (tensor->op && tensor->op->computes_integers) return false;
    for (int i = 0; i < tensor->n_inputs; i++)
        if (tensor->inputs[i]->dtype != CLT_I32) return false;
    for (int i = 0; i < tensor->n_inputs; i++) {
        if (!carries_values(tensor->inputs[i], input, limit)) continue;
        if (tensor->op && tensor->op->ignores) limit->ignores = limit->counted = tensor->op->ignores(tensor, &limit->ignored);
        return true;
    }
    return false;
}

/* The stricter of two; what is ignored must be so wherever there is a limit. */
static clt_index_limit both_limits(clt_index_limit a, clt_index_limit b) {
    if (!a.below) return b;
    return (clt_index_limit){.below = CLT_MIN(a.below, b.below),
                             .ignores = a.ignores && b.ignores && a.ignored == b.ignored,
                             .counted = a.counted || b.counted,
                             .ignored = a.counted ? a.ignored : b.ignored};
}

/* Values of i32 inputs that are classes or rows of a table have a limit, which is checked before
 * they reach a kernel. */
clt_index_limit clt_index_limit_of(const clt_graph *graph, const clt_tensor *input) {
    clt_index_limit limit = {0};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        for (int k = 0; node->kind == CLT_NODE_OP && node->op->index_limit && k < node->n_inputs; k++) {
            clt_index_limit own = {.below = node->op->index_limit(node, k)};
            if (own.below && carries_values(node->inputs[k], input, &own)) limit = both_limits(limit, own);
        }
    }
    return limit;
}

static bool index_fits(const clt_index_limit *limit, int64_t value) {
    return !limit->below || (value >= 0 && value < limit->below) || (limit->ignores && value == limit->ignored);
}

static clt_status find_inputs(clt_trainer *t) {
    for (size_t i = 0; i < t->graph->n_nodes; i++) {
        clt_tensor *node = t->graph->nodes[i];
        if (node->kind != CLT_NODE_INPUT) continue;
        if (node->shape.rank < 1)
            return clt_fail(CLT_E_SHAPE, "input \"%s\" has no dimension for the batch", node->name);
        if (t->n_inputs && node->shape.dims[0] != t->inputs[0]->shape.dims[0])
            return clt_fail(CLT_E_SHAPE, "inputs \"%s\" and \"%s\" differ in their first dimension, the batch: %lld and %lld",
                            t->inputs[0]->name, node->name, (long long)t->inputs[0]->shape.dims[0],
                            (long long)node->shape.dims[0]);
        t->input_limits[t->n_inputs] = clt_index_limit_of(t->graph, node);
        t->inputs[t->n_inputs++] = node;
    }
    return t->n_inputs ? CLT_OK : clt_fail(CLT_E_INVALID, "the graph has no input");
}

/* Which inputs a batch of a step must bring. The truth of the output is the last. */
static clt_status find_needed(clt_trainer *t) {
    if (!t->loss) return CLT_OK;
    clt_tensor *targets[] = {t->loss, t->options.output};
    bool *marks = clt_calloc(t->graph->n_nodes, sizeof *marks);
    if (!marks) return clt_fail_memory(t->graph->n_nodes * sizeof *marks);
    clt_graph_mark(t->graph, targets, t->options.output ? 2 : 1, marks);
    for (int i = 0; i < t->n_inputs; i++) t->needed[i] = marks[t->inputs[i]->index] || (t->options.output && i == t->n_inputs - 1);
    clt_free(marks);
    return CLT_OK;
}

/* Values that are classes or rows of a table: what checks a batch's values does not see them. */
static clt_status check_indices(const clt_graph *graph, const clt_variable *variable, const void *values) {
    for (size_t i = 0; variable->dtype == CLT_I32 && i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        clt_index_limit limit = {0};
        if (node->variable == variable) limit = clt_index_limit_of(graph, node);
        for (int64_t k = 0, n = limit.below ? clt_tensor_elements(node) : 0; k < n; k++) {
            int32_t value = ((const int32_t *)values)[k];
            if (!index_fits(&limit, value))
                return clt_fail(CLT_E_RANGE, "\"%s\", element %lld: %d is outside [0, %lld)", variable->name, (long long)k, value, (long long)limit.below);
        }
    }
    return CLT_OK;
}

static clt_status check_constants(const clt_graph *graph) {
    for (size_t i = 0; i < graph->n_variables; i++)
        if (graph->variables[i]->values) CLT_TRY(check_indices(graph, graph->variables[i], graph->variables[i]->values));
    return CLT_OK;
}

static clt_status check_tensors(const clt_tensor *loss, const clt_tensor *output) {
    char text[CLT_SHAPE_TEXT], label[64];
    if (!loss) return clt_fail(CLT_E_INVALID, "clt_trainer_create: the loss is NULL");
    CLT_TRY(clt_graph_status(loss->graph));
    if (!clt_tensor_valid(loss)) return clt_fail(CLT_E_INVALID, "the loss is invalid");
    if (loss->dtype != CLT_F32 || clt_tensor_elements(loss) != 1)
        return clt_fail(CLT_E_SHAPE, "the loss must be a f32 scalar; %s is %s %s", clt_tensor_label(loss, label),
                        clt_dtype_name(loss->dtype), clt_shape_text(&loss->shape, text));
    if (output && (output->graph != loss->graph || !clt_tensor_valid(output)))
        return clt_fail(CLT_E_INVALID, "the output belongs to another graph than the loss");
    return CLT_OK;
}

static clt_status set_up(clt_trainer *t) {
    clt_step *step;
    int64_t whole = t->inputs[0]->shape.dims[0], batch = t->stage ? whole / clt_stage_micros(t, whole) : whole;
    CLT_TRY(clt_trainer_plan(t, CLT_PURPOSE_TRAIN, (clt_sizes){batch, t->graph->length}, NULL, &step));
    if (t->stage) CLT_TRY(clt_stage_prepare(t, step, whole));
    t->run.begun = true;
    return clt_initialize_variables(t->graph, t->store, t->options.seed, CLT_INITIALIZE_ALL, t->stage ? t->stage->others : NULL);
}

/* What is trained is settled now, whatever the graph is told later. */
static clt_status keep_variables(clt_trainer *t) {
    size_t n = t->graph->n_variables;
    t->trained = clt_calloc(n + 1, sizeof *t->trained);
    if (!t->trained) return clt_fail_memory((n + 1) * sizeof *t->trained);
    t->n_variables = n;
    t->n_nodes = t->graph->n_nodes;
    for (size_t i = 0; i < n; i++) t->trained[i] = t->graph->variables[i]->trained;
    return CLT_OK;
}

/* The caller's texts need not outlive the call. */
static clt_status copy_text(const char **option, char **copy) {
    if (!*option) return CLT_OK;
    *copy = clt_strdup(*option);
    if (!*copy) return clt_fail_memory(strlen(*option) + 1);
    *option = *copy;
    return CLT_OK;
}

static clt_status copy_rules(clt_trainer *t) {
    size_t n = (size_t)t->options.n_rules;
    if (!n) return CLT_OK;
    t->rules = clt_calloc(n, sizeof *t->rules);
    if (!t->rules) return clt_fail_memory(n * sizeof *t->rules);
    for (size_t i = 0; i < n; i++) {
        t->rules[i] = t->options.rules[i];
        t->rules[i].pattern = clt_strdup(t->options.rules[i].pattern);
        if (!t->rules[i].pattern) return clt_fail_memory(strlen(t->options.rules[i].pattern) + 1);
    }
    t->options.rules = t->rules;
    return CLT_OK;
}

static void free_rules(clt_trainer *t) {
    for (int i = 0; t->rules && i < t->options.n_rules; i++) clt_free((char *)(uintptr_t)t->rules[i].pattern);
    clt_free(t->rules);
}

/* As text, too: what cannot be written must not be found out after the training. */
static clt_status copy_preprocessing(clt_trainer *t) {
    clt_text text = {0};
    CLT_TRY(clt_preprocessing_copy(&t->preprocessing, t->options.preprocessing));
    t->options.preprocessing = t->preprocessing;
    clt_status status = clt_preprocessing_write(t->preprocessing, &text);
    t->preprocessing_text = text.data;
    return status;
}

static clt_status copy_tokenizer(clt_trainer *t) {
    size_t bytes;
    clt_status status = clt_tokenizer_json(t->options.tokenizer, NULL, 0, &bytes);
    if (status == CLT_E_UNSUPPORTED) return CLT_OK; /* its file stays beside the model's */
    CLT_TRY(status);
    t->tokenizer_text = clt_alloc(bytes + 1);
    if (!t->tokenizer_text) return clt_fail_memory(bytes + 1);
    return clt_tokenizer_json(t->options.tokenizer, t->tokenizer_text, bytes + 1, &bytes);
}

static clt_status make_store(clt_trainer *t) {
    const clt_trainer *other = t->options.shares;
    if (!other) return clt_state_store_create(t->device, &t->store);
    if (other->graph != t->graph || other->device != t->device)
        return clt_fail(CLT_E_INVALID, "option shares: the other trainer is of another %s", other->graph != t->graph ? "graph" : "device");
    t->options.shares = NULL; /* it may go first */
    CLT_TRY(clt_state_store_share(other->store, &t->store));
    t->moves = clt_state_store_moves(t->store);
    return CLT_OK;
}

clt_status clt_trainer_begin(clt_trainer **trainer, clt_device *device, clt_graph *graph, clt_tensor *loss, const clt_train_options *options) {
    clt_trainer *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(sizeof *t);
    t->device = device;
    t->loss_scale[CLT_LOSS_SCALE] = CLT_LOSS_SCALE_FIRST;
    t->sample_weight = 1;
    t->loss = loss;
    t->graph = graph;
    clt_status status = clt_train_options_resolve(options, &t->options);
    if (status == CLT_OK) status = copy_text(&t->options.backends, &t->backends);
    if (status == CLT_OK) status = copy_text(&t->options.passes, &t->passes);
    if (status == CLT_OK) status = copy_text(&t->options.model, &t->model);
    if (status == CLT_OK && t->options.preprocessing) status = copy_preprocessing(t);
    if (status == CLT_OK && t->options.tokenizer) status = copy_tokenizer(t);
    t->options.tokenizer = NULL; /* the caller's */
    if (status == CLT_OK) status = copy_rules(t);
    if (status == CLT_OK) status = make_store(t);
    if (status == CLT_OK && t->options.offload_folder) status = clt_state_store_set_folder(t->store, t->options.offload_folder);
    t->options.offload_folder = NULL; /* the caller's */
    if (status == CLT_OK) status = keep_variables(t);
    if (status == CLT_OK) status = find_inputs(t);
    if (status == CLT_OK) status = find_needed(t);
    if (status == CLT_OK) status = check_constants(t->graph);
    if (status == CLT_OK) status = clt_stage_create(t);
    if (status < 0) clt_trainer_destroy(t);
    else *trainer = t;
    return status;
}

clt_status clt_trainer_dry_run(clt_trainer **trainer, clt_device *device, clt_tensor *loss, const clt_train_options *options) {
    if (!device) return clt_fail(CLT_E_INVALID, "device is NULL");
    CLT_TRY(check_tensors(loss, options ? options->output : NULL));
    return clt_trainer_begin(trainer, device, loss->graph, loss, options);
}

static clt_status create(clt_trainer **trainer, clt_device *device, clt_tensor *loss, const clt_train_options *options) {
    clt_trainer *t;
    CLT_TRY(clt_trainer_dry_run(&t, device, loss, options));
    clt_status status = clt_loss_scale_agree(t);
    if (status == CLT_OK) status = clt_parallel_check(t, set_up(t));
    if (status == CLT_OK) status = clt_parallel_share(t, 0);
    if (status == CLT_OK) status = clt_compress_measure(t);
    if (status < 0) clt_trainer_destroy(t);
    else *trainer = t;
    return status;
}

bool clt_trainer_offload_more(const clt_train_options *given, clt_train_options *tried) {
    bool may = given && given->offload == CLT_OFFLOAD_AUTO && !given->shares && tried->offload != CLT_OFFLOAD_ALL;
    if (may) tried->offload = tried->offload == CLT_OFFLOAD_AUTO ? CLT_OFFLOAD_OPTIMIZER : CLT_OFFLOAD_ALL;
    return may;
}

clt_status clt_trainer_create(clt_trainer **trainer, clt_device *device, clt_tensor *loss,
                              const clt_train_options *options) {
    if (!trainer) return clt_fail(CLT_E_INVALID, "clt_trainer_create: trainer is NULL");
    clt_train_options tried = options ? *options : (clt_train_options){0};
    clt_status status = create(trainer, device, loss, options);
    while (status == CLT_E_DEVICE_MEMORY && clt_trainer_offload_more(options, &tried)) {
        bool all = tried.offload == CLT_OFFLOAD_ALL;
        status = create(trainer, device, loss, &tried);
        if (status == CLT_OK)
            clt_log_message(CLT_LOG_INFO, "the optimizer's state%s not fit into the device's memory, and lie%s in the host's",
                            all ? ", parameters and activations do" : " does", all ? "" : "s");
    }
    return status;
}

void clt_trainer_drop_plan(clt_trainer *trainer, clt_step *step) {
    trainer->waited_seconds += clt_plan_get_facts(step->plan).waited_seconds;
    clt_step_destroy(step);
}

void clt_trainer_drop_plans(clt_trainer *trainer) {
    while (trainer->n_plans > 0) clt_trainer_drop_plan(trainer, trainer->plans[--trainer->n_plans]);
}

void clt_trainer_destroy(clt_trainer *trainer) {
    if (!trainer) return;
    if (trainer->uses_average) clt_trainer_use_average(trainer, false); /* for those that share the parameters */
    clt_trainer_drop_plans(trainer);
    clt_tune_run_free(&trainer->run);
    clt_state_store_destroy(trainer->store);
    clt_buckets_free(trainer->buckets, trainer->n_buckets);
    clt_free(trainer->backends);
    clt_free(trainer->passes);
    clt_free(trainer->model);
    clt_free(trainer->trained);
    clt_stage_destroy(trainer->stage);
    free_rules(trainer);
    clt_free(trainer->preprocessing_text);
    clt_free(trainer->tokenizer_text);
    clt_free(trainer->note);
    clt_preprocessing_destroy(trainer->preprocessing);
    clt_free(trainer);
}

/* ---- batches ---- */

/* The length of the sequences that the batch brings: that of the first. As built, if it brings none. */
static int64_t length_of(const clt_trainer *t, const clt_batch *batch) {
    for (int i = 0; i < t->n_inputs && i < batch->n_fields && batch->samples > 0; i++) {
        const clt_shape *shape = &batch->fields[i].shape;
        int axis = t->inputs[i]->length_axis;
        if (axis && batch->fields[i].data && axis < shape->rank) return shape->dims[axis];
    }
    return t->graph->length;
}

clt_sizes clt_trainer_sizes(const clt_trainer *t, const clt_batch *batch) {
    return (clt_sizes){batch->samples, length_of(t, batch)};
}

static clt_status check_length(const clt_trainer *t, const clt_batch *batch) {
    int64_t length = length_of(t, batch);
    if (!t->graph->length || (length > 0 && length <= t->graph->length)) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "the batch has sequences of length %lld; those of the graph are at most %lld long", (long long)length,
                    (long long)t->graph->length);
}

static clt_status check_field(const clt_trainer *t, const clt_batch *batch, int i) {
    const clt_tensor *input = t->inputs[i];
    const clt_array *field = &batch->fields[i];
    clt_shape wanted = input->shape;
    char got[CLT_SHAPE_TEXT], text[CLT_SHAPE_TEXT];
    wanted.dims[0] = batch->samples;
    if (input->length_axis) wanted.dims[input->length_axis] = length_of(t, batch);
    if (!field->data) return clt_fail(CLT_E_INVALID, "field %d of the batch, for input \"%s\", has no data", i, input->name);
    if (field->dtype != input->dtype && !(field->dtype == CLT_I64 && input->dtype == CLT_I32))
        return clt_fail(CLT_E_DTYPE, "field %d of the batch is %s; input \"%s\" is %s", i, clt_dtype_name(field->dtype),
                        input->name, clt_dtype_name(input->dtype));
    if (!clt_shape_equal(&field->shape, &wanted))
        return clt_fail(CLT_E_SHAPE, "field %d of the batch is %s; input \"%s\" wants %s for %lld samples", i,
                        clt_shape_text(&field->shape, got), input->name, clt_shape_text(&wanted, text),
                        (long long)batch->samples);
    return CLT_OK;
}

static int64_t index_at(const clt_array *field, int64_t k) {
    return field->dtype == CLT_I64 ? ((const int64_t *)field->data)[k] : ((const int32_t *)field->data)[k];
}

/* Limits may follow the batch and the length: they are those of the step's own graph. */
static clt_status check_values(const clt_trainer *t, const clt_step *step, const clt_batch *batch, int i) {
    const clt_array *field = &batch->fields[i];
    const clt_index_limit *limit = &step->limits[i];
    bool wide = field->dtype == CLT_I64;
    int64_t n = clt_shape_elements(&field->shape), per_sample = n / batch->samples;
    int64_t least = limit->below ? 0 : INT32_MIN, below = limit->below ? limit->below : (int64_t)INT32_MAX + 1;
    for (int64_t k = 0; (limit->below || wide) && k < n; k++) {
        int64_t value = index_at(field, k);
        if (!index_fits(limit, value) || value < INT32_MIN || value > INT32_MAX)
            return clt_fail(CLT_E_RANGE, "input \"%s\", sample %lld of the batch: %lld is outside [%lld, %lld)",
                            t->inputs[i]->name, (long long)(k / per_sample), (long long)value, (long long)least, (long long)below);
    }
    return CLT_OK;
}

static clt_status check_fixed(const clt_trainer *t) {
    for (size_t i = 0; i < t->n_variables; i++)
        if (t->graph->variables[i]->is_input && !clt_state_store_has_begun(t->store, t->graph->variables[i]))
            return clt_fail(CLT_E_STATE, "fixed input \"%s\" has no values yet: clt_trainer_set_input gives it some", t->graph->variables[i]->name);
    return CLT_OK;
}

/* `needed[i]`: input i must be given; others may be. */
static clt_status check_batch(const clt_trainer *t, const clt_batch *batch, const bool *needed) {
    if (!batch || batch->samples < 1) return clt_fail(CLT_E_INVALID, "the batch has no samples");
    if (batch->n_fields < 0 || batch->n_fields > CLT_MAX_FIELDS)
        return clt_fail(CLT_E_INVALID, "the batch has %d fields; it must have 0 to %d", batch->n_fields, CLT_MAX_FIELDS);
    CLT_TRY(check_fixed(t));
    CLT_TRY(check_length(t, batch));
    for (int i = 0; i < t->n_inputs; i++) {
        bool given = i < batch->n_fields && i < CLT_MAX_FIELDS;
        if (!needed[i] && !(given && batch->fields[i].data)) continue;
        if (!given)
            return clt_fail(CLT_E_SHAPE, "the batch has %d fields; input \"%s\" is number %d", batch->n_fields,
                            t->inputs[i]->name, i + 1);
        CLT_TRY(check_field(t, batch, i));
    }
    return CLT_OK;
}

/* Labels of i64 have been seen to fit (check_values). */
static clt_status feed_field(const clt_step *step, int i, const clt_array *field) {
    int64_t n = clt_shape_elements(&field->shape);
    if (field->dtype != CLT_I64) return clt_plan_feed(step->plan, step->inputs[i], field->data);
    int32_t *narrow = clt_alloc((size_t)n * sizeof *narrow);
    if (!narrow) return clt_fail_memory((size_t)n * sizeof *narrow);
    clt_status status = clt_narrow_i64(field->data, narrow, n, step->inputs[i]->name);
    if (status == CLT_OK) status = clt_plan_feed(step->plan, step->inputs[i], narrow);
    clt_free(narrow);
    return status;
}

static clt_status check_all_values(const clt_trainer *t, const clt_step *step, const clt_batch *batch) {
    for (int i = 0; batch->samples > 0 && i < t->n_inputs && i < batch->n_fields; i++)
        if (batch->fields[i].data) CLT_TRY(check_values(t, step, batch, i));
    return CLT_OK;
}

static clt_status feed(clt_trainer *t, const clt_step *step, const clt_batch *batch) {
    CLT_TRY(check_all_values(t, step, batch));
    for (int i = 0; batch->samples > 0 && i < t->n_inputs && i < batch->n_fields; i++)
        if (batch->fields[i].data) CLT_TRY(feed_field(step, i, &batch->fields[i]));
    return clt_weights16_update(t, step);
}

/* ---- steps ---- */

static clt_status set_hyper(const clt_trainer *t, const clt_step *step) {
    const clt_train_options *o = &t->options;
    double update = (double)(t->steps + 1 - t->skipped_before);
    float hyper[CLT_HYPER_COUNT] = {0};
    hyper[CLT_HYPER_LR] = clt_schedule_lr(o, t->steps);
    if (!(hyper[CLT_HYPER_LR] >= 0 && hyper[CLT_HYPER_LR] < INFINITY))
        return clt_fail(CLT_E_INVALID, "the learning rate of update %lld is %g: option lr_factor must give what is finite and not negative",
                        (long long)t->steps + 1, (double)hyper[CLT_HYPER_LR]);
    hyper[CLT_HYPER_BIAS1] = (float)(1 - pow(o->beta1, update));
    hyper[CLT_HYPER_BIAS2] = (float)sqrt(1 - pow(o->beta2, update));
    hyper[CLT_HYPER_KEEP] = (t->stage ? t->stage->summed : t->micro) > 0 ? 1.0f : 0.0f;
    hyper[CLT_HYPER_FIRST] = t->steps == 0 ? 1.0f : 0.0f;
    int32_t number = (int32_t)CLT_MIN(t->steps + 1, INT32_MAX);
    memcpy(&hyper[CLT_HYPER_STEP], &number, sizeof number);
    hyper[CLT_HYPER_SCALE] = t->stage ? t->stage->scale : 1.0f; /* until the samples of all ranks are known, where there are several */
    return clt_plan_set(step->plan, step->hyper, hyper, sizeof hyper);
}

/* Of the micro-batches' count 48 bits are used, the rest tells ranks apart: elements of local batches have equal numbers,
 * and must not have equal masks. */
static clt_status set_rng(const clt_trainer *t, const clt_step *step) {
    uint64_t seed = t->options.seed, rank = t->options.comm ? (uint64_t)clt_comm_rank(t->options.comm) : 0;
    uint64_t count = (uint64_t)t->steps * (uint64_t)t->options.accumulate + (uint64_t)t->micro;
    count ^= rank << 48;
    uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)count, (uint32_t)(count >> 32)};
    return step->rng ? clt_plan_set(step->plan, step->rng, words, sizeof words) : CLT_OK;
}

/* The samples of this update so far, weighted, and those of this batch. */
static clt_status set_samples(const clt_trainer *t, const clt_step *step, const clt_batch *batch) {
    float samples = (float)(t->micro_samples + batch->samples) * t->sample_weight;
    float images = (float)batch->samples;
    if (step->images) CLT_TRY(clt_plan_set(step->plan, step->images, &images, sizeof images));
    return step->samples ? clt_plan_set(step->plan, step->samples, &samples, sizeof samples) : CLT_OK;
}

clt_status clt_trainer_feed(clt_trainer *t, const clt_step *step, const clt_batch *batch) {
    CLT_TRY(feed(t, step, batch));
    if (step->hyper) CLT_TRY(set_hyper(t, step));
    CLT_TRY(clt_loss_scale_begin(t));
    CLT_TRY(set_rng(t, step));
    return set_samples(t, step, batch);
}

/* Whether a rank may be without samples in a step. */
static bool is_empty(const clt_trainer *t, const clt_batch *batch) {
    return t->options.comm && batch && batch->samples == 0;
}

clt_status clt_trainer_check_batch(const clt_trainer *t, const clt_batch *batch) {
    return is_empty(t, batch) ? CLT_OK : check_batch(t, batch, t->needed);
}

static clt_status check_trouble(const clt_trainer *t) {
    if (clt_device_is_lost(t->device)) return clt_device_finish(t->device);
    CLT_TRY(clt_nonfinite_known(t));
    CLT_TRY(clt_average_check_unused(t));
    if (t->trouble == CLT_TROUBLE_NONE) return CLT_OK;
    return clt_fail(CLT_E_STATE, "a step has failed%s", t->trouble == CLT_TROUBLE_STOPPED
                                                            ? "; clt_trainer_recover goes on"
                                                            : " half-way: only a checkpoint can be gone on from");
}

static clt_status prepare_step(clt_trainer *t, const clt_batch *batch, clt_step **step) {
    CLT_TRY(check_trouble(t));
    CLT_TRY(clt_trainer_check_batch(t, batch));
    if (t->stage && !batch->samples) return clt_fail(CLT_E_INVALID, "the batch has no samples: a pipeline trains on 1 at least");
    clt_sizes sizes = clt_trainer_sizes(t, batch);
    if (t->stage) sizes.batch /= clt_stage_micros(t, batch->samples);
    CLT_TRY(clt_trainer_plan(t, CLT_PURPOSE_TRAIN, sizes, NULL, step));
    if (t->stage) CLT_TRY(check_all_values(t, *step, batch)); /* each part is fed with its turns */
    else CLT_TRY(clt_trainer_feed(t, *step, batch));
    CLT_TRY(clt_average_begin(t));
    return clt_parallel_keep_buffers(t);
}

clt_comm *clt_trainer_group(const clt_trainer *t) {
    return t->stage ? t->stage->all : t->options.comm;
}

/* But for what all find alike, after which a checkpoint may be loaded: gradients that are not finite, and calls after that. */
static bool concerns_all(const clt_trainer *t, clt_status status) {
    const clt_comm *comm = clt_trainer_group(t);
    return comm && clt_comm_size(comm) > 1 && status != CLT_E_NONFINITE && status != CLT_E_STATE;
}

clt_status clt_trainer_tell_all(const clt_trainer *t, clt_status status) {
    if (status >= 0 || !concerns_all(t, status)) return status;
    clt_text detail = {0};
    clt_text_add(&detail, "%s", clt_error_detail());
    clt_comm_fail(clt_trainer_group(t), status, clt_text_data(&detail));
    clt_fail_again(status, clt_text_data(&detail));
    clt_text_free(&detail);
    return status;
}

/* Nothing of the step is done; but its batch is taken, and the group has ended. */
static clt_status fail_before_step(clt_trainer *t, clt_status status) {
    if (!concerns_all(t, status)) return status;
    if (t->options.recoverable) t->trouble = CLT_TROUBLE_STOPPED;
    t->in_step = true;
    return clt_trainer_tell_all(t, status);
}

/* Some launches of the step are done, others not. Alone, a step that has written nothing which outlives it can be tried again. */
static clt_status fail_step(clt_trainer *t, const clt_step *step, clt_status status) {
    if (!clt_trainer_group(t)) {
        if (clt_plan_has_updated(step->plan)) t->trouble = CLT_TROUBLE_TORN;
        return status;
    }
    t->trouble = t->options.recoverable ? CLT_TROUBLE_STOPPED : CLT_TROUBLE_TORN;
    t->in_step = true;
    return clt_trainer_tell_all(t, status);
}

/* The truth, whose elements are the labels, is the last input. What is ignored is no label. */
static void count_batch(const clt_trainer *t, const clt_batch *batch, clt_seen *seen) {
    const clt_index_limit *limit = &t->input_limits[t->n_inputs - 1];
    if (t->stage && !clt_stage_is_last(t)) return; /* which has the losses, too */
    seen->samples += batch->samples;
    if (!batch->samples) return;
    const clt_array *truth = &batch->fields[t->n_inputs - 1];
    int64_t labels = clt_shape_elements(&truth->shape);
    seen->labels += labels;
    for (int64_t k = 0; limit->counted && k < labels; k++) seen->labels -= index_at(truth, k) == limit->ignored;
}

/* The update is done and counted when it is not known whether all have the same. */
static clt_status check_drift(clt_trainer *t) {
    clt_status status = clt_parallel_check_drift(t);
    if (status == CLT_OK) return status;
    t->trouble = t->options.recoverable ? CLT_TROUBLE_STOPPED : CLT_TROUBLE_TORN;
    return clt_trainer_tell_all(t, status);
}

clt_status clt_trainer_step(clt_trainer *t, const clt_batch *batch) {
    clt_step *step;
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_step: trainer is NULL");
    clt_status status = prepare_step(t, batch, &step);
    if (status < 0) return fail_before_step(t, status);
    bool update = t->stage || t->micro + 1 == t->options.accumulate;
    t->has_gradients = false;
    if (t->stage) status = clt_stage_run(t, step, batch);
    else status = update ? clt_plan_run(step->plan) : clt_plan_run_segments(step->plan, (const int[]){0}, 1);
    if (status < 0) return fail_step(t, step, status);
    status = clt_nonfinite_after_step(t, batch, update);
    if (status < 0 && status != CLT_E_NONFINITE) t->trouble = CLT_TROUBLE_TORN; /* it is done, and nobody has counted it */
    if (status < 0) return clt_trainer_tell_all(t, status);
    t->micro = update ? 0 : t->micro + 1;
    t->micro_samples = update ? 0 : t->micro_samples + batch->samples;
    t->steps += update;
    t->has_gradients = update;
    count_batch(t, batch, &t->train_seen);
    return update ? check_drift(t) : CLT_OK;
}

static clt_status check_sums(bool torn) {
    return torn ? clt_fail(CLT_E_STATE, "metrics are invalid after a failed call; read them with reset=true") : CLT_OK;
}

static clt_status check_room(const clt_step *step, size_t count) {
    char text[CLT_SHAPE_TEXT];
    if (count == (size_t)clt_tensor_elements(step->result)) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "room for %zu predicted values; the tensor is %s", count, clt_shape_text(&step->result->shape, text));
}

/* All of a plan of forward. */
static clt_status run_forward(clt_trainer *t, clt_step *step) {
    return t->stage ? clt_stage_forward(t, step) : clt_plan_run(step->plan);
}

static clt_status read_result(clt_trainer *t, clt_step *step, float *result, size_t count) {
    return t->stage ? clt_stage_read_result(t, step, result, count) : clt_plan_read(step->plan, step->result, result, count * sizeof *result);
}

/* `output` NULL: what the model predicts is not read. */
static clt_status evaluate_part(clt_trainer *t, const clt_batch *batch, clt_tensor *output, float *result, size_t count) {
    clt_step *step;
    CLT_TRY(clt_trainer_plan(t, CLT_PURPOSE_EVALUATE, clt_trainer_sizes(t, batch), output, &step));
    if (output) CLT_TRY(check_room(step, count));
    CLT_TRY(feed(t, step, batch));
    clt_status status = run_forward(t, step);
    if (status < 0) t->eval_torn = clt_plan_has_updated(step->plan);
    else count_batch(t, batch, &t->eval_seen);
    return status < 0 || !output ? status : read_result(t, step, result, count);
}

/* Of a pipeline by the micro-batches of training, whose activations fit. */
static clt_status evaluate(clt_trainer *t, const clt_batch *batch, clt_tensor *output, float *result, size_t count) {
    CLT_TRY(check_batch(t, batch, t->needed));
    int parts = t->stage ? clt_stage_micros(t, batch->samples) : 1;
    if (count % (size_t)parts) return clt_fail(CLT_E_SHAPE, "room for %zu predicted values of %lld samples", count, (long long)batch->samples);
    for (int i = 0; i < parts; i++) {
        clt_batch part = clt_stage_part(batch, i, parts);
        size_t n = count / (size_t)parts;
        CLT_TRY(evaluate_part(t, &part, output, result ? result + n * (size_t)i : NULL, n));
    }
    return CLT_OK;
}

clt_status clt_trainer_evaluate(clt_trainer *t, const clt_batch *batch) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_evaluate: trainer is NULL");
    CLT_TRY(check_sums(t->eval_torn));
    return is_empty(t, batch) ? CLT_OK : evaluate(t, batch, NULL, NULL, 0);
}

clt_status clt_trainer_evaluate_output(clt_trainer *t, const clt_batch *batch, float *result, size_t result_count) {
    if (!t || !result) return clt_fail(CLT_E_INVALID, "clt_trainer_evaluate_output: trainer or result is NULL");
    clt_tensor *output = t->options.output;
    if (!output || output->dtype != CLT_F32) return clt_fail(CLT_E_INVALID, "clt_trainer_evaluate_output: the trainer has no output, or one that is not f32");
    CLT_TRY(check_sums(t->eval_torn));
    return is_empty(t, batch) ? CLT_OK : evaluate(t, batch, output, result, result_count);
}

static clt_status inputs_of(const clt_trainer *t, clt_tensor *tensor, bool needed[CLT_MAX_FIELDS]) {
    bool *marks = clt_calloc(t->graph->n_nodes, sizeof *marks);
    if (!marks) return clt_fail_memory(t->graph->n_nodes);
    clt_graph_mark(t->graph, &tensor, 1, marks);
    for (int i = 0; i < t->n_inputs; i++) needed[i] = marks[t->inputs[i]->index];
    const clt_tensor *late = NULL; /* a leaf that was made after the trainer, which has no values for it */
    for (size_t i = t->n_nodes; i < t->graph->n_nodes && !late; i++)
        if (marks[i] && (t->graph->nodes[i]->kind == CLT_NODE_INPUT || t->graph->nodes[i]->variable)) late = t->graph->nodes[i];
    clt_free(marks);
    return late ? clt_fail(CLT_E_STATE, "the tensor depends on \"%s\", which was made after the trainer", late->name) : CLT_OK;
}

clt_status clt_trainer_predict(clt_trainer *t, clt_tensor *tensor, const clt_batch *batch, float *result,
                               size_t result_count) {
    clt_step *step;
    bool needed[CLT_MAX_FIELDS];
    if (!t || !result) return clt_fail(CLT_E_INVALID, "clt_trainer_predict: trainer or result is NULL");
    if (!clt_tensor_valid(tensor) || tensor->graph != t->graph || tensor->dtype != CLT_F32)
        return clt_fail(CLT_E_INVALID, "clt_trainer_predict: the tensor is no f32 tensor of the trainer's graph");
    CLT_TRY(inputs_of(t, tensor, needed));
    CLT_TRY(check_batch(t, batch, needed));
    CLT_TRY(clt_trainer_plan(t, CLT_PURPOSE_PREDICT, clt_trainer_sizes(t, batch), tensor, &step));
    CLT_TRY(check_room(step, result_count));
    CLT_TRY(feed(t, step, batch));
    CLT_TRY(run_forward(t, step));
    return read_result(t, step, result, result_count);
}

clt_status clt_trainer_wait(clt_trainer *t) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_wait: trainer is NULL");
    CLT_TRY(clt_device_finish(t->device));
    return clt_nonfinite_check(t);
}

int64_t clt_trainer_steps(const clt_trainer *t) {
    return t ? t->steps : 0;
}

float clt_trainer_lr(const clt_trainer *t) {
    return t ? clt_schedule_lr(&t->options, t->steps) : NAN;
}

clt_status clt_trainer_set_lr(clt_trainer *t, float lr) {
    if (!t || !(lr >= 0 && lr < INFINITY))
        return clt_fail(CLT_E_INVALID, "clt_trainer_set_lr: trainer is NULL or lr %g is invalid", (double)lr);
    t->options.lr = lr;
    return CLT_OK;
}

double clt_trainer_waited_seconds(const clt_trainer *t) {
    double seconds = t ? t->waited_seconds : 0;
    for (size_t i = 0; t && i < t->n_plans; i++) seconds += clt_plan_get_facts(t->plans[i]->plan).waited_seconds;
    return seconds;
}

/* ---- metrics ---- */

/* state: sum and compensation of a Kahan sum */
static clt_status read_sum(clt_state_store *store, const char *name, double *sum, double *left_out) {
    float state[CLT_MEAN_COUNT];
    size_t bytes;
    clt_memory *memory = clt_state_store_find(store, name, &bytes);
    if (!memory) return CLT_OK;
    CLT_TRY(clt_memory_read(memory, 0, state, sizeof state));
    *sum = (double)state[CLT_MEAN_SUM] - (double)state[CLT_MEAN_COMPENSATION];
    *left_out = (double)state[CLT_MEAN_LEFT_OUT];
    return CLT_OK;
}

static clt_status read_count(clt_state_store *store, const char *name, double *count) {
    int32_t state;
    size_t bytes;
    clt_memory *memory = clt_state_store_find(store, name, &bytes);
    if (!memory) return CLT_OK;
    CLT_TRY(clt_memory_read(memory, 0, &state, sizeof state));
    *count = (double)state;
    return CLT_OK;
}

/* All of them, or they are torn. */
static clt_status reset_sums(clt_state_store *store, const clt_metric_names *names, clt_seen *seen, bool *torn) {
    const char *const all[] = {names->loss, names->correct, names->mse};
    *torn = true;
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        size_t bytes;
        clt_memory *memory = clt_state_store_find(store, all[i], &bytes);
        if (memory) CLT_TRY(clt_memory_zero(memory));
    }
    *seen = (clt_seen){0};
    *torn = false;
    return CLT_OK;
}

/* Which metrics there are: a rank that had no samples yet has no memory of them, but others may. */
static double has(const clt_state_store *store, const char *name) {
    size_t bytes;
    return clt_state_store_find(store, name, &bytes) ? 1 : 0;
}

static clt_status read_metrics(clt_trainer *t, const clt_metric_names *names, clt_seen *seen, bool *torn, clt_metrics *metrics,
                               bool reset) {
    enum { SAMPLES, LABELS, LOSS, NO_LOSS, CORRECT, MSE, NO_MSE, HAS_LOSS, HAS_CORRECT, HAS_MSE, SUMS };
    double sums[SUMS] = {[SAMPLES] = (double)seen->samples,
                         [LABELS] = (double)seen->labels,
                         [HAS_LOSS] = has(t->store, names->loss),
                         [HAS_CORRECT] = has(t->store, names->correct),
                         [HAS_MSE] = has(t->store, names->mse)};
    clt_status whole = check_sums(*torn);
    if (whole == CLT_OK) {
        CLT_TRY(read_sum(t->store, names->loss, &sums[LOSS], &sums[NO_LOSS]));
        CLT_TRY(read_count(t->store, names->correct, &sums[CORRECT]));
        CLT_TRY(read_sum(t->store, names->mse, &sums[MSE], &sums[NO_MSE]));
    }
    if (reset) CLT_TRY(reset_sums(t->store, names, seen, torn));
    if (whole < 0) return check_sums(true);
    CLT_TRY(clt_parallel_sum(clt_trainer_group(t), sums, SUMS));
    double n = sums[SAMPLES];
    *metrics = (clt_metrics){
        .samples = (int64_t)n,
        .loss = n > sums[NO_LOSS] && sums[HAS_LOSS] > 0 ? sums[LOSS] / (n - sums[NO_LOSS]) : NAN,
        .accuracy = n > 0 && sums[HAS_CORRECT] > 0 ? sums[CORRECT] / sums[LABELS] : NAN,
        .mse = n > sums[NO_MSE] && sums[HAS_MSE] > 0 ? sums[MSE] / (n - sums[NO_MSE]) : NAN,
    };
    return CLT_OK;
}

clt_status clt_trainer_train_metrics(clt_trainer *t, clt_metrics *metrics, bool reset) {
    if (!t || !metrics) return clt_fail(CLT_E_INVALID, "clt_trainer_train_metrics: an argument is NULL");
    int64_t skipped;
    CLT_TRY(clt_nonfinite_check(t));
    CLT_TRY(clt_nonfinite_skipped(t, &skipped));
    CLT_TRY(read_metrics(t, &clt_train_metric_names, &t->train_seen, &t->train_torn, metrics, reset));
    metrics->skipped = skipped - t->skipped_reported;
    if (reset) t->skipped_reported = skipped;
    return clt_trainer_loss_scale(t, &metrics->loss_scale);
}

clt_status clt_trainer_eval_metrics(clt_trainer *t, clt_metrics *metrics, bool reset) {
    if (!t || !metrics) return clt_fail(CLT_E_INVALID, "clt_trainer_eval_metrics: an argument is NULL");
    CLT_TRY(read_metrics(t, &clt_eval_metric_names, &t->eval_seen, &t->eval_torn, metrics, reset));
    return clt_trainer_loss_scale(t, &metrics->loss_scale);
}

/* ---- values by name ---- */

static clt_status check_count(const clt_variable *v, size_t count) {
    char text[CLT_SHAPE_TEXT];
    if ((size_t)clt_shape_elements(&v->shape) == count) return CLT_OK;
    return clt_fail(CLT_E_SHAPE, "\"%s\" is %s, not %zu values", v->name, clt_shape_text(&v->shape, text), count);
}

static clt_status find_values(clt_trainer *t, const char *name, size_t count, clt_memory **memory) {
    const clt_variable *v = clt_graph_find_variable(t->graph, name);
    if (!v || (size_t)v->index >= t->n_variables) return clt_fail(CLT_E_NOT_FOUND, "no parameter or buffer is named \"%s\"", name);
    if (!clt_variable_is_kept(v))
        return clt_fail(CLT_E_INVALID, "\"%s\" is a %s, neither parameter nor buffer", name, v->values ? "constant" : "fixed input: clt_trainer_set_input sets it");
    CLT_TRY(check_count(v, count));
    if (t->stage && t->stage->others[v->index])
        return clt_fail(CLT_E_NOT_FOUND, "\"%s\" is of stage %d of the pipeline, and this is stage %d", name, t->stage->rank_of[v->index], t->stage->cut.own);
    return clt_state_store_variable(t->store, v, memory);
}

clt_status clt_trainer_get(clt_trainer *t, const char *name, float *values, size_t count) {
    clt_memory *memory;
    if (!t || !name || !values) return clt_fail(CLT_E_INVALID, "clt_trainer_get: trainer, name or values is NULL");
    bool copied = t->weights16_of == clt_state_store_lent(t->store);
    CLT_TRY(find_values(t, name, count, &memory));
    if (copied) t->weights16_of = clt_state_store_lent(t->store); /* nothing is written */
    return clt_memory_read(memory, 0, values, count * sizeof *values);
}

clt_status clt_trainer_set(clt_trainer *t, const char *name, const float *values, size_t count) {
    clt_memory *memory;
    if (!t || !name || !values) return clt_fail(CLT_E_INVALID, "clt_trainer_set: trainer, name or values is NULL");
    CLT_TRY(find_values(t, name, count, &memory));
    return clt_memory_write(memory, 0, values, count * sizeof *values);
}

/* The bucket of the parameter, and where it lies in it. */
static clt_status find_in_buckets(const clt_trainer *t, const char *name, int *bucket, int *place) {
    char shown[CLT_SHOWN_TEXT];
    const clt_variable *variable = clt_graph_find_variable(t->graph, name);
    if (variable && clt_bucket_find(t, variable, bucket, place)) return CLT_OK;
    return clt_fail(CLT_E_NOT_FOUND, "no parameter that is trained, and on which the loss depends, is named \"%s\"", clt_show(name, shown));
}

static clt_status check_gradients(const clt_trainer *t) {
    if (t->options.shard || t->options.compress.method)
        return clt_fail(CLT_E_UNSUPPORTED, "with option %s no rank has whole gradients", t->options.shard ? "shard" : "compress");
    if (!t->has_gradients || t->micro > 0)
        return clt_fail(CLT_E_STATE, t->micro > 0 ? "gradients are sums that are not complete between micro-batches" : "there is no gradient before an update");
    return CLT_OK;
}

clt_status clt_trainer_get_gradient(clt_trainer *t, const char *name, float *values, size_t count) {
    int g = 0, place = 0;
    char text[64];
    size_t bytes;
    float hyper[CLT_HYPER_COUNT];
    if (!t || !name || !values) return clt_fail(CLT_E_INVALID, "clt_trainer_get_gradient: trainer, name or values is NULL");
    CLT_TRY(find_in_buckets(t, name, &g, &place));
    const clt_bucket *bucket = &t->buckets[g];
    CLT_TRY(check_count(bucket->variables[place], count));
    CLT_TRY(check_gradients(t));
    clt_memory *sums = clt_state_store_find(t->store, clt_bucket_name(t->options.accumulate > 1 ? "accumulated" : "gradients", g, text), &bytes);
    clt_memory *scale = clt_state_store_find(t->store, "hyper", &bytes);
    if (!sums || !scale) return clt_fail(CLT_E_STATE, "there is no gradient before an update");
    CLT_TRY(clt_memory_read(scale, 0, hyper, sizeof hyper));
    CLT_TRY(clt_memory_read(sums, (size_t)bucket->offsets[place] * sizeof(float), values, count * sizeof *values));
    float factor = hyper[CLT_HYPER_SCALE] / (t->options.comm ? 1.0f : (float)t->options.accumulate);
    for (size_t i = 0; i < count; i++) values[i] *= factor;
    return CLT_OK;
}

clt_status clt_trainer_set_input(clt_trainer *t, const char *name, const clt_array *values) {
    char found[CLT_SHAPE_TEXT], wanted[CLT_SHAPE_TEXT];
    clt_memory *memory;
    if (!t || !name || !values || !values->data) return clt_fail(CLT_E_INVALID, "clt_trainer_set_input: trainer, name or values is NULL");
    const clt_variable *v = clt_graph_find_variable(t->graph, name);
    if (!v || (size_t)v->index >= t->n_variables) return clt_fail(CLT_E_NOT_FOUND, "no fixed input is named \"%s\"", name);
    if (!v->is_input) return clt_fail(CLT_E_INVALID, "\"%s\" is not a fixed input", name);
    if (v->dtype != values->dtype)
        return clt_fail(CLT_E_DTYPE, "fixed input \"%s\" is %s, and its values are %s", name, clt_dtype_name(v->dtype), clt_dtype_name(values->dtype));
    if (!clt_shape_equal(&v->shape, &values->shape))
        return clt_fail(CLT_E_SHAPE, "fixed input \"%s\" is %s, and its values are %s", name, clt_shape_text(&v->shape, wanted),
                        clt_shape_text(&values->shape, found));
    CLT_TRY(check_indices(t->graph, v, values->data));
    CLT_TRY(clt_state_store_variable(t->store, v, &memory));
    CLT_TRY(clt_memory_write(memory, 0, values->data, clt_variable_bytes(v)));
    bool first;
    return clt_state_store_begin(t->store, v, &first);
}
