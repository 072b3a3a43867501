/*
 * Updates whose gradients are not finite. The device leaves them out by itself and writes down which they were (clt_op_guard);
 * here that is read when somebody waits anyway, and what made the first such value is looked for on request.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/storage.h"
#include "runtime/train/parallel.h"

const char clt_record_name[] = "nonfinite";

/* ---- what the device has written down ---- */

static clt_status read_record(clt_trainer *t, int32_t record[CLT_RECORD_COUNT]) {
    size_t bytes;
    clt_memory *memory = clt_state_store_find(t->store, clt_record_name, &bytes);
    memset(record, 0, CLT_RECORD_COUNT * sizeof *record);
    return memory ? clt_memory_read(memory, 0, record, CLT_RECORD_COUNT * sizeof *record) : CLT_OK;
}

clt_status clt_nonfinite_known(const clt_trainer *t) {
    if (!t->stopped_at) return CLT_OK;
    return clt_fail(CLT_E_NONFINITE, "update %lld: gradients are NaN or infinite; parameters and optimizer state are those "
                                     "before it", (long long)t->stopped_at);
}

clt_status clt_nonfinite_check(clt_trainer *t) {
    int32_t record[CLT_RECORD_COUNT];
    if (t->options.on_nonfinite != CLT_NONFINITE_STOP) return CLT_OK;
    if (!t->stopped_at) {
        CLT_TRY(read_record(t, record));
        t->stopped_at = record[CLT_RECORD_FIRST];
    }
    return clt_nonfinite_known(t);
}

clt_status clt_nonfinite_skipped(clt_trainer *t, int64_t *skipped) {
    int32_t record[CLT_RECORD_COUNT] = {0};
    if (t->options.on_nonfinite != CLT_NONFINITE_IGNORE) CLT_TRY(read_record(t, record));
    *skipped = t->skipped_before + record[CLT_RECORD_SKIPPED];
    return CLT_OK;
}

clt_status clt_nonfinite_restore(clt_trainer *t, int64_t skipped) {
    bool on_device = t->options.on_nonfinite != CLT_NONFINITE_IGNORE;
    int32_t record[CLT_RECORD_COUNT] = {[CLT_RECORD_SKIPPED] = on_device ? (int32_t)skipped : 0};
    size_t bytes;
    clt_memory *memory = clt_state_store_find(t->store, clt_record_name, &bytes);
    t->skipped_before = on_device ? 0 : skipped;
    t->skipped_reported = skipped;
    t->stopped_at = t->located_at = 0;
    return memory ? clt_memory_write(memory, 0, record, sizeof record) : CLT_OK;
}

/* ---- looking for what made it ---- */

typedef struct search {
    clt_trainer *trainer;
    const clt_tensor *loss; /* of the plan: what comes after it is backward */
    clt_nonfinite_origin *origin;
    clt_text words;
    bool has_nan; /* what is named is NaN, or NaN was found later and is named too */
} search;

typedef struct tally {
    int64_t first, count, nans;
    float value;
} tally;

static void count_values(const float *values, int64_t n, int64_t offset, tally *t) {
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(values[i])) continue;
        if (!t->count++) {
            t->first = offset + i;
            t->value = values[i];
        }
        t->nans += isnan(values[i]) != 0;
    }
}

/* Piece by piece: tensors may be large. */
static clt_status tally_memory(clt_memory *memory, int64_t elements, tally *t) {
    enum { PIECE = 1 << 20 };
    size_t bytes = (size_t)CLT_MIN(elements, PIECE) * sizeof(float);
    float *values = clt_alloc(bytes);
    clt_status status = values ? CLT_OK : clt_fail_memory(bytes);
    for (int64_t at = 0; status == CLT_OK && at < elements; at += PIECE) {
        int64_t n = CLT_MIN(elements - at, PIECE);
        status = clt_memory_read(memory, (size_t)at * sizeof(float), values, (size_t)n * sizeof(float));
        if (status == CLT_OK) count_values(values, n, at, t);
    }
    clt_free(values);
    return status;
}

static const char *kind_of(const clt_tensor *node) {
    if (node->kind == CLT_NODE_OP) return clt_node_name(node);
    if (node->kind == CLT_NODE_VARIABLE) return node->variable->is_input ? "input" : node->variable->values ? "constant" : node->variable->is_buffer ? "buffer" : "parameter";
    return node->kind == CLT_NODE_INPUT ? "input" : "state";
}

static void add_label(clt_text *words, const clt_tensor *node) {
    char label[64], shape[CLT_SHAPE_TEXT];
    if (node->kind != CLT_NODE_OP) clt_text_add(words, "%s ", kind_of(node));
    clt_text_add(words, "%s %s", clt_tensor_label(node, label), clt_shape_text(&node->shape, shape));
}

/* "log #7 [16, 1] of sub #6 [16, 1], in forward, by reference: 3 of 16 values, the first at 5 is nan" */
static void describe(search *s, const clt_tensor *node, const char *row, const tally *t) {
    bool op = node->kind == CLT_NODE_OP;
    add_label(&s->words, node);
    for (int i = 0; op && i < node->n_inputs; i++) {
        clt_text_add(&s->words, i ? ", " : " of ");
        add_label(&s->words, node->inputs[i]);
    }
    if (op) clt_text_add(&s->words, ", in %s, by %s", node->index > s->loss->index ? "backward" : "forward", row);
    clt_text_add(&s->words, ": %lld of %lld values, the first at %lld is %f", (long long)t->count,
                 (long long)clt_tensor_elements(node), (long long)t->first, (double)t->value);
}

static void keep_first(search *s, const clt_tensor *node, const char *row, const tally *t) {
    clt_nonfinite_origin *o = s->origin;
    o->found = true;
    snprintf(o->op, sizeof o->op, "%s", kind_of(node));
    if (node->name) snprintf(o->tensor, sizeof o->tensor, "%s", node->name);
    else clt_tensor_label(node, o->tensor);
    snprintf(o->backend, sizeof o->backend, "%s", row ? row : "");
    o->in_backward = node->kind == CLT_NODE_OP && node->index > s->loss->index;
    o->element = t->first;
    o->count = t->count;
    o->value = t->value;
}

/* The first is what is looked for. Infinity may be meant, as in a mask: so the first NaN that comes of it is told too. */
static clt_status look(void *user, const clt_tensor *node, clt_memory *memory, const char *row) {
    search *s = user;
    tally t = {0};
    if (node->dtype != CLT_F32 || node->kind == CLT_NODE_STATE || (s->origin->found && s->has_nan)) return CLT_OK;
    CLT_TRY(tally_memory(memory, clt_tensor_elements(node), &t));
    if (!t.count || (s->origin->found && !t.nans)) return CLT_OK;
    if (s->origin->found) clt_text_add(&s->words, "; and the first NaN: ");
    describe(s, node, row, &t);
    if (!s->origin->found) keep_first(s, node, row, &t);
    s->has_nan = t.nans > 0;
    return s->words.status;
}

/* What the search does not run, and may have gone wrong in the step. */
static void describe_rest(search *s) {
    const clt_train_options *o = &s->trainer->options;
    clt_text_add(&s->words, "all values of this rank's forward and backward are finite when each op runs by itself; what may not "
                            "be is what a fused kernel gives");
    if (o->accumulate > 1) clt_text_add(&s->words, ", the sum over micro-batches");
    if (o->comm && clt_comm_size(o->comm) > 1) clt_text_add(&s->words, ", the sum over ranks");
    if (o->clip_norm > 0) clt_text_add(&s->words, ", the norm of all gradients together");
}

static clt_status search_step(clt_trainer *t, const clt_batch *batch, clt_step *step, clt_nonfinite_origin *origin) {
    search s = {.trainer = t, .loss = clt_plan_copy(step->plan, step->result), .origin = origin};
    if (!s.loss) return clt_fail(CLT_E_STATE, "the plan has no loss");
    clt_status status = clt_trainer_feed(t, step, batch);
    if (status == CLT_OK) status = clt_plan_run_slowly(step->plan, look, &s);
    if (!origin->found) describe_rest(&s);
    snprintf(origin->words, sizeof origin->words, "%s", clt_text_data(&s.words));
    clt_text_free(&s.words);
    return status;
}

clt_status clt_trainer_locate_nonfinite(clt_trainer *t, const clt_batch *batch, clt_nonfinite_origin *origin) {
    clt_step *step = NULL;
    if (!t || !origin) return clt_fail(CLT_E_INVALID, "clt_trainer_locate_nonfinite: trainer or origin is NULL");
    if (t->stage) return clt_fail(CLT_E_UNSUPPORTED, "clt_trainer_locate_nonfinite: a stage of a pipeline has a part of the graph; expected a trainer of the whole model");
    CLT_TRY(clt_trainer_check_batch(t, batch));
    *origin = (clt_nonfinite_origin){.step = t->steps + 1};
    if (batch->samples == 0 && !clt_trainer_synchronizes(t)) {
        snprintf(origin->words, sizeof origin->words, "this rank had no samples");
        return CLT_OK;
    }
    CLT_TRY(clt_trainer_new_step(t, CLT_PURPOSE_LOCATE, clt_trainer_sizes(t, batch), &step));
    clt_status status = search_step(t, batch, step, origin);
    clt_step_destroy(step);
    return status;
}

/* ---- after each step, on request ---- */

/* Whether the sums of gradients of the micro-batches so far are finite; all ranks say the same, for they search together. */
static clt_status check_sums(clt_trainer *t, bool *broken) {
    tally all = {0};
    for (int g = 0; g < t->n_buckets; g++) {
        char name[64];
        size_t bytes;
        clt_memory *memory = clt_state_store_find(t->store, clt_bucket_name("accumulated", g, name), &bytes);
        if (memory) CLT_TRY(tally_memory(memory, t->buckets[g].elements, &all));
    }
    double count = (double)all.count;
    CLT_TRY(clt_parallel_sum(t->options.comm, &count, 1));
    *broken = count > 0;
    return CLT_OK;
}

static clt_status tell(clt_trainer *t, const clt_nonfinite_origin *origin) {
    if (t->options.on_nonfinite == CLT_NONFINITE_STOP) {
        t->stopped_at = origin->step;
        return clt_fail(CLT_E_NONFINITE, "update %lld: gradients are NaN or infinite. The first such value: %s",
                        (long long)origin->step, origin->words);
    }
    clt_log_message(CLT_LOG_WARNING, "update %lld is left out. The first value that is not finite: %s", (long long)origin->step,
                    origin->words);
    return CLT_OK;
}

clt_status clt_nonfinite_after_step(clt_trainer *t, const clt_batch *batch, bool updated) {
    int32_t record[CLT_RECORD_COUNT];
    clt_nonfinite_origin origin;
    bool broken = false;
    if (!t->options.locate_nonfinite || t->located_at == t->steps + 1) return CLT_OK;
    if (updated) {
        CLT_TRY(read_record(t, record));
        broken = record[CLT_RECORD_LAST] == t->steps + 1;
    } else {
        CLT_TRY(check_sums(t, &broken));
    }
    if (!broken) return CLT_OK;
    CLT_TRY(clt_trainer_locate_nonfinite(t, batch, &origin));
    t->located_at = origin.step;
    return tell(t, &origin);
}
