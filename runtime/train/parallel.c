/*
 * What the ranks of a trainer's communicator do together outside of steps: they check that they train the same, take over
 * each other's state, and add up their metrics.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/train/compress.h"

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
static clt_status gather_new(clt_comm *comm, const void *own, size_t bytes, void *all) {
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
    clt_status status = gather_new(comm, values, (size_t)n * sizeof *values, &all);
    if (status == CLT_OK) {
        memset(values, 0, (size_t)n * sizeof *values);
        for (int i = 0; i < n * clt_comm_size(comm); i++) values[i % n] += all[i];
    }
    clt_free(all);
    return status;
}

/* ---- agreement ---- */

enum { WORDS_BYTES = 240 };

typedef struct verdict {
    int32_t status;
    char words[WORDS_BYTES];
} verdict;

static verdict make_verdict(clt_status status) {
    verdict v = {.status = status};
    if (status < 0) snprintf(v.words, sizeof v.words, "%s", clt_error_detail());
    return v;
}

/* The first error of any; the own one, as it was, where there is one. */
static clt_status judge(clt_comm *comm, const verdict *all, size_t stride) {
    const verdict *own = (const verdict *)(const void *)((const char *)all + (size_t)clt_comm_rank(comm) * stride);
    if (own->status < 0) return clt_fail_again((clt_status)own->status, own->words);
    for (int r = 0; r < clt_comm_size(comm); r++) {
        const verdict *v = (const verdict *)(const void *)((const char *)all + (size_t)r * stride);
        if (v->status < 0) return clt_fail(CLT_E_PEER, "rank %d: %.*s", r, WORDS_BYTES - 1, v->words);
    }
    return CLT_OK;
}

clt_status clt_parallel_agree(clt_comm *comm, clt_status status) {
    if (!comm) return status;
    verdict own = make_verdict(status), *all = NULL;
    status = gather_new(comm, &own, sizeof own, &all);
    if (status == CLT_OK) status = judge(comm, all, sizeof own);
    clt_free(all);
    return status;
}

/* ---- the same graph and options on all ranks ---- */

/* What is compared one by one. X(words for people, how it is written, value) */
#define FACTS(X)                                                                                                       \
    X("the number of tensors of the graph", WHOLE, t->graph->n_nodes)                                                  \
    X("the loss", WHOLE, t->loss->index)                                                                               \
    X("the number of parameters", WHOLE, t->graph->n_variables)                                                        \
    X("the number of buckets", WHOLE, t->n_groups)                                                                     \
    X("option optimizer", WHOLE, o->optimizer)                                                                         \
    X("option lr", REAL, bits(o->lr))                                                                                  \
    X("option momentum", REAL, bits(o->momentum))                                                                      \
    X("option nesterov", WHOLE, o->nesterov)                                                                           \
    X("option beta1", REAL, bits(o->beta1))                                                                            \
    X("option beta2", REAL, bits(o->beta2))                                                                            \
    X("option eps", REAL, bits(o->eps))                                                                                \
    X("option weight_decay", REAL, bits(o->weight_decay))                                                              \
    X("option schedule", WHOLE, o->schedule)                                                                           \
    X("option warmup_steps", WHOLE, o->warmup_steps)                                                                   \
    X("option total_steps", WHOLE, o->total_steps)                                                                     \
    X("option decay_steps", WHOLE, o->decay_steps)                                                                     \
    X("option decay_factor", REAL, bits(o->decay_factor))                                                              \
    X("option min_lr", REAL, bits(o->min_lr))                                                                          \
    X("option clip_value", REAL, bits(o->clip_value))                                                                  \
    X("option clip_norm", REAL, bits(o->clip_norm))                                                                    \
    X("option accumulate", WHOLE, o->accumulate)                                                                       \
    X("option seed", WHOLE, o->seed)                                                                                   \
    X("option output", WHOLE, o->output ? o->output->index : -1)                                                       \
    X("option compress.method", WHOLE, o->compress.method)                                                             \
    X("option compress.ratio", REAL, bits(o->compress.ratio))                                                          \
    X("option compress.f32_values", WHOLE, o->compress.f32_values)                                                     \
    X("option compress.rank", WHOLE, o->compress.rank)                                                                 \
    X("option bucket_bytes", WHOLE, o->bucket_bytes)                                                                   \
    X("option sync_batch_norm", WHOLE, o->sync_batch_norm)                                                             \
    X("option shard_optimizer", WHOLE, o->shard_optimizer)                                                             \
    X("option recoverable", WHOLE, o->recoverable)                                                                     \
    X("option on_nonfinite", WHOLE, o->on_nonfinite)                                                                   \
    X("option locate_nonfinite", WHOLE, o->locate_nonfinite)

#define COUNT_FACT(words, kind, value) +1
#define FACT_WORDS(words, kind, value) {words, kind},
#define FACT_VALUE(words, kind, value) (uint64_t)(value),
enum { N_FACTS = 0 FACTS(COUNT_FACT) };
enum { WHOLE, REAL };
static const struct {
    const char *words;
    int kind;
} fact_rows[N_FACTS] = {FACTS(FACT_WORDS)};

typedef struct summary {
    verdict verdict;
    uint64_t facts[N_FACTS];
    char graph[CLT_HASH_TEXT]; /* of all tensors */
} summary;

static uint32_t bits(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static void hash_text(char hash[CLT_HASH_TEXT], const char *text) {
    clt_hash_add(hash, text, strlen(text) + 1);
}

static void hash_whole(char hash[CLT_HASH_TEXT], int64_t number) {
    clt_hash_add(hash, &number, sizeof number);
}

/* A variable's shape whole; of others dimension 0 is left out, which may be the batch. */
static void hash_shape(char hash[CLT_HASH_TEXT], const clt_tensor *node) {
    hash_whole(hash, node->shape.rank);
    for (int i = node->kind == CLT_NODE_VARIABLE ? 0 : 1; i < node->shape.rank; i++) hash_whole(hash, node->shape.dims[i]);
}

/* What a pointwise op computes is its form. */
static void hash_form(char hash[CLT_HASH_TEXT], const clt_tensor *node) {
    clt_form form = {0};
    if (node->kind != CLT_NODE_OP || !node->op->form || !node->op->form(node, true, &form)) return;
    hash_text(hash, form.expression);
    hash_whole(hash, bits(form.s[0]));
    hash_whole(hash, bits(form.s[1]));
}

static void hash_node(char hash[CLT_HASH_TEXT], const clt_tensor *node) {
    hash[0] = 0;
    hash_whole(hash, node->kind);
    hash_whole(hash, node->dtype);
    hash_text(hash, node->kind == CLT_NODE_OP ? clt_node_name(node) : node->name ? node->name : "");
    hash_shape(hash, node);
    hash_form(hash, node);
    for (int k = 0; k < node->n_inputs; k++) hash_whole(hash, node->inputs[k]->index);
}

static void summarize(const clt_trainer *t, summary *s) {
    const clt_train_options *o = &t->options;
    const uint64_t facts[N_FACTS] = {FACTS(FACT_VALUE)};
    memcpy(s->facts, facts, sizeof facts);
    for (size_t i = 0; i < t->graph->n_nodes; i++) {
        char hash[CLT_HASH_TEXT];
        hash_node(hash, t->graph->nodes[i]);
        hash_text(s->graph, hash);
    }
}

/* All ranks have as many tensors, and some differ: finds the first. Called by all. */
static clt_status name_tensor(const clt_trainer *t) {
    clt_comm *comm = t->options.comm;
    size_t n = t->graph->n_nodes;
    char(*own)[CLT_HASH_TEXT] = clt_calloc(n, sizeof *own), (*all)[CLT_HASH_TEXT] = NULL;
    clt_status status = own ? CLT_OK : clt_fail_memory(n * sizeof *own);
    for (size_t i = 0; own && i < n; i++) hash_node(own[i], t->graph->nodes[i]);
    if (own) status = gather_new(comm, own, n * sizeof *own, &all);
    for (size_t at = 0; status == CLT_OK && at < n * (size_t)clt_comm_size(comm); at++) {
        const clt_tensor *node = t->graph->nodes[at % n];
        char label[64], shape[CLT_SHAPE_TEXT];
        if (strcmp(all[at], all[at % n]))
            status = clt_fail(CLT_E_MISMATCH, "rank %d and rank 0 have different graphs: the first tensor that differs is here %s %s",
                              (int)(at / n), clt_tensor_label(node, label), clt_shape_text(&node->shape, shape));
    }
    clt_free(own);
    clt_free(all);
    return status;
}

static const char *fact_text(int fact, uint64_t value, char text[32]) {
    uint32_t word = (uint32_t)value;
    float real;
    memcpy(&real, &word, sizeof real);
    if (fact_rows[fact].kind == REAL) snprintf(text, 32, "%.7g", (double)real);
    else snprintf(text, 32, "%lld", (long long)value);
    return text;
}

static clt_status fail_fact(int rank, int fact, uint64_t its, uint64_t of_rank_0) {
    char one[32], other[32];
    return clt_fail(CLT_E_MISMATCH, "rank %d and rank 0 differ in %s: %s and %s", rank, fact_rows[fact].words, fact_text(fact, its, one),
                    fact_text(fact, of_rank_0, other));
}

static clt_status compare(const clt_trainer *t, const summary *all) {
    clt_comm *comm = t->options.comm;
    CLT_TRY(judge(comm, &all->verdict, sizeof *all));
    for (int r = 1; r < clt_comm_size(comm); r++)
        for (int i = 0; i < N_FACTS; i++)
            if (all[r].facts[i] != all[0].facts[i])
                return fail_fact(r, i, all[r].facts[i], all[0].facts[i]);
    for (int r = 1; r < clt_comm_size(comm); r++)
        if (strcmp(all[r].graph, all[0].graph)) return name_tensor(t);
    return CLT_OK;
}

clt_status clt_parallel_check(clt_trainer *t, clt_status status) {
    if (!t->options.comm) return status;
    summary own = {.verdict = make_verdict(status)}, *all = NULL;
    summarize(t, &own);
    status = gather_new(t->options.comm, &own, sizeof own, &all);
    if (status == CLT_OK) status = compare(t, all);
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
    size_t bytes = (size_t)t->groups[g].elements * sizeof(float);
    CLT_TRY(clt_store_state(t->store, clt_group_name(what, g, name), bytes, &memory));
    return share_memory(t->options.comm, memory, bytes, root);
}

static bool is_grouped(const clt_trainer *t, const clt_variable *variable) {
    for (int g = 0; g < t->n_groups; g++)
        for (int i = 0; i < t->groups[g].n; i++)
            if (t->groups[g].variables[i] == variable) return true;
    return false;
}

static size_t bytes_of(const clt_variable *v) {
    return (size_t)clt_shape_elements(&v->shape) * sizeof(float);
}

/* Buffers, and parameters that the loss does not reach. */
static clt_status share_others(clt_trainer *t, int root) {
    for (size_t i = 0; i < t->graph->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        clt_memory *memory;
        if (is_grouped(t, v)) continue;
        CLT_TRY(clt_store_variable(t->store, v, &memory));
        CLT_TRY(share_memory(t->options.comm, memory, bytes_of(v), root));
    }
    return CLT_OK;
}

/* Between the buffers and their copies: `back` brings them back. */
static clt_status copy_buffers(clt_trainer *t, bool back) {
    for (size_t i = 0; i < t->graph->n_variables; i++) {
        const clt_variable *v = t->graph->variables[i];
        clt_memory *memory, *copy;
        char name[64];
        if (v->trained) continue;
        snprintf(name, sizeof name, "kept buffer.%zu", i);
        CLT_TRY(clt_store_variable(t->store, v, &memory));
        CLT_TRY(clt_store_state(t->store, name, bytes_of(v), &copy));
        CLT_TRY(back ? clt_memory_copy(copy, 0, memory, bytes_of(v)) : clt_memory_copy(memory, 0, copy, bytes_of(v)));
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

static clt_status share_record(clt_trainer *t, int root) {
    size_t bytes;
    clt_memory *memory = clt_store_find_state(t->store, clt_record_name, &bytes);
    CLT_TRY(clt_comm_broadcast(t->options.comm, &t->skipped_before, sizeof t->skipped_before, CLT_U8, root, NULL));
    return memory ? share_memory(t->options.comm, memory, bytes, root) : CLT_OK;
}

clt_status clt_parallel_share(clt_trainer *t, int root) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n_states = clt_optimizer_states(&t->options, names);
    int64_t steps = t->steps;
    bool whole = clt_trainer_parts(t) == 1; /* else each has its own part of it */
    if (!t->options.comm) return CLT_OK;
    for (int g = 0; g < t->n_groups; g++) {
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
    t->train_samples = 0;
    CLT_TRY(clt_nonfinite_skipped(t, &t->skipped_reported));
    for (size_t i = 0; i < CLT_COUNT_OF(names); i++) {
        size_t bytes;
        clt_memory *memory = clt_store_find_state(t->store, names[i], &bytes);
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
    clt_status status = gather_new(t->options.comm, &own, sizeof own, &all);
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
    CLT_TRY(restore_buffers(t));
    CLT_TRY(rejoin(t, loader));
    CLT_TRY(forget_metrics(t));
    t->trouble = CLT_TROUBLE_NONE;
    clt_log_message(CLT_LOG_INFO, "going on from step %lld with %d ranks", (long long)t->steps, clt_comm_size(survivors));
    return CLT_OK;
}
