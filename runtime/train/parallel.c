/*
 * What the ranks of a trainer's communicator do together outside of steps: they check that they train the same, take over
 * each other's state, and add up their metrics.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/train/compress.h"
#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"

/* ---- small exchanges of bytes, which are the same whatever the ranks' processors are: little-endian is all that OpenCL
 * devices of this library have been ---- */

clt_status clt_parallel_gather(clt_comm *comm, void *all, size_t bytes) {
    int size = clt_comm_size(comm);
    size_t *counts = clt_alloc((size_t)size * sizeof *counts);
    if (!counts) return clt_fail_memory((size_t)size * sizeof *counts);
    for (int r = 0; r < size; r++) counts[r] = bytes;
    clt_status status = clt_comm_all_gather(comm, all, counts, CLT_U8, NULL);
    clt_free(counts);
    return status;
}

/* (*all)[r] becomes what rank r has in *own; *all is to be freed, also on an error. */
clt_status clt_parallel_gather_new(clt_comm *comm, const void *own, size_t bytes, void *all) {
    void **made = all;
    *made = clt_calloc((size_t)clt_comm_size(comm), bytes);
    if (!*made) return clt_fail_memory((size_t)clt_comm_size(comm) * bytes);
    memcpy((char *)*made + (size_t)clt_comm_rank(comm) * bytes, own, bytes);
    return clt_parallel_gather(comm, *made, bytes);
}

clt_status clt_parallel_tell(clt_comm *comm, void *data, size_t bytes) {
    return comm && bytes ? clt_comm_broadcast(comm, data, bytes, CLT_U8, 0, NULL) : CLT_OK;
}

clt_status clt_parallel_sum(clt_comm *comm, double *values, int n) {
    if (!comm) return CLT_OK;
    double *all = NULL;
    clt_status status = clt_parallel_gather_new(comm, values, (size_t)n * sizeof *values, &all);
    if (status == CLT_OK) {
        memset(values, 0, (size_t)n * sizeof *values);
        for (int i = 0; i < n * clt_comm_size(comm); i++) values[i % n] += all[i];
    }
    clt_free(all);
    return status;
}

/* ---- agreement ---- */

clt_parallel_report clt_parallel_make_report(clt_status status) {
    clt_parallel_report report = {.status = status};
    if (status < 0) snprintf(report.words, sizeof report.words, "%s", clt_error_detail());
    return report;
}

clt_status clt_parallel_judge(clt_comm *comm, const clt_parallel_report *all, size_t stride) {
    const clt_parallel_report *own = (const clt_parallel_report *)(const void *)((const char *)all + (size_t)clt_comm_rank(comm) * stride);
    if (own->status < 0) return clt_fail_again((clt_status)own->status, own->words);
    for (int r = 0; r < clt_comm_size(comm); r++) {
        const clt_parallel_report *v = (const clt_parallel_report *)(const void *)((const char *)all + (size_t)r * stride);
        if (v->status == CLT_E_DEVICE_MEMORY) return clt_fail(CLT_E_DEVICE_MEMORY, "rank %d: %.*s", r, CLT_REPORT_WORDS - 1, v->words); /* all try what needs less */
        if (v->status < 0) return clt_fail(CLT_E_PEER, "rank %d: %.*s", r, CLT_REPORT_WORDS - 1, v->words);
    }
    return CLT_OK;
}

clt_status clt_parallel_agree(clt_comm *comm, clt_status status) {
    if (!comm) return status;
    clt_parallel_report own = clt_parallel_make_report(status), *all = NULL;
    status = clt_parallel_gather_new(comm, &own, sizeof own, &all);
    if (status == CLT_OK) status = clt_parallel_judge(comm, all, sizeof own);
    clt_free(all);
    return status;
}

/* ---- state ---- */

/* Piece by piece, so that no memory of a model's size is needed on the host. */
static clt_status share_memory(clt_comm *comm, clt_memory *memory, size_t bytes, int root) {
    enum { PIECE_BYTES = 4 << 20 };
    void *piece = clt_alloc(CLT_MIN(bytes, PIECE_BYTES));
    clt_status status = piece ? CLT_OK : clt_fail_memory(CLT_MIN(bytes, PIECE_BYTES));
    for (size_t at = 0; status == CLT_OK && at < bytes; at += PIECE_BYTES) {
        size_t n = CLT_MIN(bytes - at, PIECE_BYTES);
        bool own = clt_comm_rank(comm) == root;
        if (own) status = clt_memory_read(memory, at, piece, n);
        if (status == CLT_OK) status = clt_comm_broadcast(comm, piece, n, CLT_U8, root, NULL);
        if (status == CLT_OK && !own) status = clt_memory_write(memory, at, piece, n);
    }
    clt_free(piece);
    return status;
}

static clt_status share_state(clt_trainer *t, const char *what, int g, int root) {
    char name[64];
    clt_memory *memory;
    size_t bytes = (size_t)t->buckets[g].elements * sizeof(float);
    CLT_TRY(clt_state_store_get(t->store, clt_bucket_name(what, g, name), bytes, &memory));
    return share_memory(t->options.comm, memory, bytes, root);
}

/* Another stage of a pipeline has it. */
static bool is_elsewhere(const clt_trainer *t, size_t variable) {
    return t->stage && t->stage->others[variable];
}

/* Buffers, and parameters that the loss does not reach. */
static clt_status share_others(clt_trainer *t, int root) {
    for (size_t i = 0; i < t->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        clt_memory *memory;
        int bucket, place;
        if (!clt_variable_is_kept(v) || is_elsewhere(t, i) || clt_bucket_find(t, v, &bucket, &place)) continue;
        CLT_TRY(clt_state_store_variable(t->store, v, &memory));
        CLT_TRY(share_memory(t->options.comm, memory, clt_variable_bytes(v), root));
    }
    return CLT_OK;
}

/* Between the buffers and their copies: `back` brings them back. */
static clt_status copy_buffers(clt_trainer *t, bool back) {
    for (size_t i = 0; i < t->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        clt_memory *memory, *copy;
        char name[64];
        if (!v->is_buffer) continue;
        snprintf(name, sizeof name, "kept buffer.%zu", i);
        CLT_TRY(clt_state_store_variable(t->store, v, &memory));
        CLT_TRY(clt_state_store_get(t->store, name, clt_variable_bytes(v), &copy));
        CLT_TRY(back ? clt_memory_copy(copy, 0, memory, clt_variable_bytes(v)) : clt_memory_copy(memory, 0, copy, clt_variable_bytes(v)));
    }
    return CLT_OK;
}

clt_status clt_parallel_keep_buffers(clt_trainer *t) {
    if (!t->options.comm || !t->options.recoverable || t->micro > 0) return CLT_OK;
    t->kept_for = 0;
    CLT_TRY(copy_buffers(t, false));
    t->kept_for = t->steps + 1;
    return CLT_OK;
}

/* Buffers one behind the other: from the device, or to it. */
static clt_status move_buffers(clt_trainer *t, float *values, bool back) {
    for (size_t i = 0; i < t->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        clt_memory *memory;
        if (!v->is_buffer || is_elsewhere(t, i)) continue;
        CLT_TRY(clt_state_store_variable(t->store, v, &memory));
        CLT_TRY(back ? clt_memory_write(memory, 0, values, clt_variable_bytes(v)) : clt_memory_read(memory, 0, values, clt_variable_bytes(v)));
        values += clt_variable_bytes(v) / sizeof *values;
    }
    return CLT_OK;
}

/* own = the mean over the ranks: rank 0's and the mean of the differences from it, so that what is the same on all stays as it is. */
static clt_status mean_of_ranks(clt_comm *comm, float *own, float *first, size_t n) {
    memcpy(first, own, n * sizeof *own);
    CLT_TRY(clt_comm_broadcast(comm, first, n * sizeof *first, CLT_U8, 0, NULL));
    for (size_t i = 0; i < n; i++) own[i] = own[i] == first[i] ? 0 : own[i] - first[i];
    CLT_TRY(clt_comm_all_reduce(comm, own, n, CLT_F32, CLT_REDUCE_SUM, NULL));
    for (size_t i = 0; i < n; i++) own[i] = first[i] + own[i] / (float)clt_comm_size(comm);
    return CLT_OK;
}

clt_status clt_trainer_sync_buffers(clt_trainer *t) {
    if (!t) return clt_fail(CLT_E_INVALID, "clt_trainer_sync_buffers: trainer is NULL");
    clt_comm *comm = t->options.comm;
    size_t n = 0;
    for (size_t i = 0; i < t->n_variables; i++)
        if (t->graph->variables[i]->is_buffer && !is_elsewhere(t, i)) n += clt_variable_bytes(t->graph->variables[i]) / sizeof(float);
    if (!comm || clt_comm_size(comm) == 1 || n == 0) return CLT_OK;
    float *values = clt_alloc(2 * n * sizeof *values);
    clt_status status = values ? move_buffers(t, values, false) : clt_fail_memory(2 * n * sizeof *values);
    status = clt_parallel_agree(comm, status);
    if (status == CLT_OK && values) status = mean_of_ranks(comm, values, values + n, n);
    if (status == CLT_OK) status = move_buffers(t, values, true);
    clt_free(values);
    return status;
}

static clt_status share_record(clt_trainer *t, int root) {
    size_t bytes;
    clt_memory *memory = clt_state_store_find(t->store, clt_record_name, &bytes);
    CLT_TRY(clt_comm_broadcast(t->options.comm, &t->skipped_before, sizeof t->skipped_before, CLT_U8, root, NULL));
    return memory ? share_memory(t->options.comm, memory, bytes, root) : CLT_OK;
}

clt_status clt_parallel_share(clt_trainer *t, int root) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n_states = clt_optimizer_states(&t->options, names);
    int64_t steps = t->steps;
    bool whole = clt_trainer_shards(t) == 1; /* else each has its own part of it */
    if (!t->options.comm) return CLT_OK;
    for (int g = 0; g < t->n_buckets; g++) {
        CLT_TRY(share_state(t, "parameters", g, root));
        for (int s = 0; whole && s < n_states; s++) CLT_TRY(share_state(t, names[s], g, root));
    }
    CLT_TRY(share_others(t, root));
    CLT_TRY(share_record(t, root));
    CLT_TRY(clt_comm_broadcast(t->options.comm, &steps, sizeof steps, CLT_U8, root, NULL));
    t->steps = steps;
    t->kept_for = 0;
    return CLT_OK;
}

/* ---- going on with those who are left ---- */

/* What a survivor has. */
typedef struct standing {
    int64_t whole; /* 1: the state is that of `steps`; else it was being taken over from a rank that was lost */
    int64_t steps;
    int64_t unused; /* batches taken out of the loader that are in no update */
    clt_loader_position position;
} standing;

/* The first of those with the newest whole state; -1 if none has one. */
static int newest(const standing *all, int size) {
    int best = -1;
    for (int r = 0; r < size; r++)
        if (all[r].whole && (best < 0 || all[r].steps > all[best].steps)) best = r;
    return best;
}

/* Parameters and optimizer state of one step are the same on all ranks: most often nobody has to take them over. Who does has no whole
 * state before stand_as. Buffers are, where batch norm is of each rank by itself, any rank's as well as another's. */
static clt_status catch_up(clt_trainer *t, const standing *all, int root) {
    bool same = true;
    for (int r = 0; r < clt_comm_size(t->options.comm); r++)
        same &= all[r].whole && all[r].steps == all[root].steps;
    if (same) return share_others(t, root);
    t->taking_over = clt_comm_rank(t->options.comm) != root;
    return clt_parallel_share(t, root);
}

/* Batches back, over the beginnings of epochs. */
static void go_back(clt_loader_position *position, int64_t batches, int64_t per_epoch) {
    for (; batches > position->batch && position->epoch > 0; position->epoch--) {
        batches -= position->batch;
        position->batch = per_epoch;
    }
    position->batch -= CLT_MIN(batches, position->batch);
}

static clt_status place_loader(clt_comm *comm, clt_loader *loader, const standing *from) {
    if (!loader) return CLT_OK;
    clt_loader_position position = from->position;
    go_back(&position, from->unused, clt_loader_batches(loader));
    CLT_TRY(clt_loader_set_shares(loader, clt_comm_rank(comm), clt_comm_size(comm), NULL));
    return clt_loader_set_position(loader, position);
}

/* The loader goes to the batch after the state's last, and no batch is unused any more: both or neither, for what this rank
 * tells of itself must be right also when another one is lost now, and all this is done again. */
static clt_status stand_as(clt_trainer *t, clt_loader *loader, const standing *from) {
    CLT_TRY(place_loader(t->options.comm, loader, from));
    t->micro = 0;
    t->micro_samples = 0;
    t->in_step = false;
    t->taking_over = false;
    t->kept_for = 0;
    return CLT_OK;
}

/* What the batches of an update that is none have done to them. */
static clt_status restore_buffers(clt_trainer *t) {
    bool changed = t->micro > 0 || t->in_step;
    return changed && t->kept_for == t->steps + 1 ? copy_buffers(t, true) : CLT_OK;
}

/* Sums of batches that some have lost mean nothing. */
static clt_status forget_metrics(clt_trainer *t) {
    const char *const names[] = {clt_train_metric_names.loss, clt_train_metric_names.correct, clt_train_metric_names.mse};
    t->train_seen = (clt_seen){0};
    CLT_TRY(clt_nonfinite_skipped(t, &t->skipped_reported));
    for (size_t i = 0; i < CLT_COUNT_OF(names); i++) {
        size_t bytes;
        clt_memory *memory = clt_state_store_find(t->store, names[i], &bytes);
        if (memory) CLT_TRY(clt_memory_zero(memory));
    }
    return CLT_OK;
}

static clt_status rejoin_from(clt_trainer *t, clt_loader *loader, const standing *all) {
    clt_comm *comm = t->options.comm;
    int root = newest(all, clt_comm_size(comm));
    if (root < 0) return clt_fail(CLT_E_STATE, "no rank that is left has a whole state");
    CLT_TRY(catch_up(t, all, root));
    CLT_TRY(clt_compress_reset(t)); /* the step that failed has changed them, here more and there less */
    return clt_parallel_agree(comm, stand_as(t, loader, &all[root]));
}

static clt_status rejoin(clt_trainer *t, clt_loader *loader) {
    standing *all = NULL, own = {.whole = !t->taking_over,
                                 .steps = t->steps,
                                 .unused = t->micro + t->in_step,
                                 .position = clt_loader_get_position(loader)};
    clt_status status = clt_parallel_gather_new(t->options.comm, &own, sizeof own, &all);
    if (status == CLT_OK) status = rejoin_from(t, loader, all);
    clt_free(all);
    return status;
}

clt_status clt_trainer_recover(clt_trainer *t, clt_loader *loader, clt_comm *survivors) {
    if (!t || !survivors) return clt_fail(CLT_E_INVALID, "clt_trainer_recover: trainer or communicator is NULL");
    if (!t->options.recoverable || !t->options.comm)
        return clt_fail(CLT_E_STATE, "the trainer was not made to be recoverable");
    clt_trainer_drop_plans(t); /* they speak to the old group */
    t->options.comm = survivors;
    t->trouble = CLT_TROUBLE_STOPPED;
    t->has_gradients = false;
    CLT_TRY(restore_buffers(t));
    CLT_TRY(rejoin(t, loader));
    CLT_TRY(forget_metrics(t));
    t->trouble = CLT_TROUBLE_NONE;
    clt_log_message(CLT_LOG_INFO, "going on from step %lld with %d ranks", (long long)t->steps, clt_comm_size(survivors));
    return CLT_OK;
}
