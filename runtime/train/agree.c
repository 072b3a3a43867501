/* The same graph and options on all ranks: compared before the first step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/train/parallel.h"
#include "runtime/train/stage.h"

/* What is compared one by one. X(words for people, how it is written, value) */
#define FACTS(X)                                                                                                       \
    X("the number of tensors of the graph", WHOLE, t->graph->n_nodes)                                                  \
    X("the loss", WHOLE, t->loss->index)                                                                               \
    X("the number of parameters", WHOLE, t->graph->n_variables)                                                        \
    X("option rules (a hash)", WHOLE, hash_rules(o))                                                                   \
    X("the number of buckets", WHOLE, t->stage ? 0 : t->n_buckets)                                                                     \
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
    X("option average", REAL, bits(o->average))                                                                        \
    X("option seed", WHOLE, o->seed)                                                                                   \
    X("option precision", WHOLE, o->precision)                                                                         \
    X("option output", WHOLE, o->output ? o->output->index : -1)                                                       \
    X("option compress.method", WHOLE, o->compress.method)                                                             \
    X("option compress.ratio", REAL, bits(o->compress.ratio))                                                          \
    X("option compress.f32_values", WHOLE, o->compress.f32_values)                                                     \
    X("option compress.rank", WHOLE, o->compress.rank)                                                                 \
    X("option bucket_bytes", WHOLE, o->bucket_bytes)                                                                   \
    X("option drift_steps", WHOLE, o->drift_steps)                                                                     \
    X("option sync_batch_norm", WHOLE, o->sync_batch_norm)                                                             \
    X("option shard", WHOLE, o->shard)                                                                                 \
    X("option pipeline.stages", WHOLE, o->pipeline.stages)                                                             \
    X("option pipeline.microbatches", WHOLE, o->pipeline.microbatches)                                                 \
    X("option pipeline.schedule", WHOLE, o->pipeline.schedule)                                                         \
    X("option pipeline.chunks", WHOLE, o->pipeline.chunks)                                                             \
    X("option pipeline.split (where the second stage begins)", WHOLE, t->stage ? t->stage->begins[0]->index : 0)         \
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
    clt_parallel_report report;
    uint64_t facts[N_FACTS];
    char graph[CLT_HASH_TEXT]; /* of all tensors */
} summary;

static uint64_t hash_rules(const clt_train_options *o) {
    clt_text text = {0};
    char hash[CLT_HASH_TEXT];
    for (int i = 0; i < o->n_rules; i++)
        clt_text_add(&text, "%s %.9g %.9g\n", o->rules[i].pattern, (double)o->rules[i].lr_factor, (double)o->rules[i].weight_decay);
    clt_hash_text(clt_text_data(&text), text.length, hash);
    clt_text_free(&text);
    hash[12] = 0;
    return o->n_rules ? strtoull(hash, NULL, 16) : 0;
}

static uint32_t bits(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* The graph for one sample, which is the same on ranks whose batches are not: the copies of the graph's nodes. NULL where there is none:
 * a slice of two images, say, has no copy for one. */
typedef struct one_sample {
    clt_graph *graph;
    clt_tensor **copies;
} one_sample;

static clt_status make_one_sample(const clt_trainer *t, one_sample *one) {
    clt_tensor *targets[] = {t->loss, t->options.output};
    clt_status status = clt_graph_clone(t->graph, targets, t->options.output ? 2 : 1, (clt_sizes){.batch = 1}, &one->graph, &one->copies);
    return status == CLT_E_NO_MEMORY ? status : CLT_OK;
}

static void free_one_sample(one_sample *one) {
    clt_graph_destroy(one->graph);
    clt_free(one->copies);
}

/* All ranks compare the same way: where one has none, none has. Called by all. */
static clt_status agree_on_sample(clt_comm *comm, one_sample *one) {
    int32_t own = one->graph != NULL, *all = NULL;
    clt_status status = clt_parallel_gather_new(comm, &own, sizeof own, &all);
    bool everywhere = status == CLT_OK;
    for (int r = 0; status == CLT_OK && r < clt_comm_size(comm); r++) everywhere &= all[r] != 0;
    clt_free(all);
    if (everywhere) return status;
    free_one_sample(one);
    *one = (one_sample){0};
    return status;
}

static void describe(const clt_trainer *t, const one_sample *one, size_t node, clt_text *text) {
    const clt_tensor *copy = one->copies ? one->copies[node] : NULL;
    clt_tensor_describe(t->graph->nodes[node], copy ? &copy->shape : NULL, text);
}

static void hash_node(const clt_trainer *t, const one_sample *one, size_t node, char hash[CLT_HASH_TEXT]) {
    clt_text text = {0};
    describe(t, one, node, &text);
    hash[0] = 0;
    clt_hash_add(hash, clt_text_data(&text), text.length);
    clt_text_free(&text);
}

static void summarize(const clt_trainer *t, const one_sample *one, summary *s) {
    const clt_train_options *o = &t->options;
    const uint64_t facts[N_FACTS] = {FACTS(FACT_VALUE)};
    memcpy(s->facts, facts, sizeof facts);
    for (size_t i = 0; i < t->graph->n_nodes; i++) {
        char hash[CLT_HASH_TEXT];
        hash_node(t, one, i, hash);
        clt_hash_add(s->graph, hash, strlen(hash));
    }
}

enum { EXCERPT = 200, HEAD = 60 };

/* The text, or where it is long its head and what it has from `difference` on. */
static const char *excerpt(const char *text, size_t difference, char shown[EXCERPT]) {
    bool apart = strlen(text) >= EXCERPT && difference > HEAD;
    snprintf(shown, EXCERPT, "%.*s%s%s", apart ? HEAD : EXCERPT, text, apart ? " ... " : "", apart ? text + difference : "");
    return shown;
}

/* What the tensor is on the first rank where it is not what it is on rank 0. Called by all. */
static clt_status tell_tensor(const clt_trainer *t, const one_sample *one, size_t node, int rank) {
    clt_comm *comm = clt_trainer_group(t);
    clt_text text = {0};
    describe(t, one, node, &text);
    uint64_t length = text.length, longest = 0, *lengths = NULL;
    char *own = NULL, *all = NULL, label[64], shown[2][EXCERPT];
    clt_status status = clt_parallel_gather_new(comm, &length, sizeof length, &lengths);
    for (int r = 0; status == CLT_OK && r < clt_comm_size(comm); r++) longest = CLT_MAX(longest, lengths[r]);
    if (status == CLT_OK && !(own = clt_calloc(1, longest + 1))) status = clt_fail_memory(longest + 1);
    if (own) memcpy(own, clt_text_data(&text), length);
    if (own) status = clt_parallel_gather_new(comm, own, longest + 1, &all);
    if (status == CLT_OK) {
        const char *its = all + (size_t)rank * (longest + 1);
        size_t difference = clt_describe_difference(all, its);
        status = clt_fail(CLT_E_MISMATCH, "rank %d and rank 0 have different graphs; the first tensor that differs, %s, is \"%s\" and \"%s\"", rank,
                          clt_tensor_label(t->graph->nodes[node], label), excerpt(its, difference, shown[0]), excerpt(all, difference, shown[1]));
    }
    clt_text_free(&text);
    clt_free(lengths);
    clt_free(own);
    clt_free(all);
    return status;
}

/* What a rank has for the op that takes a weight, behind views of it, by whose shape attributes are known as well: a kernel's size, groups. */
typedef struct taker {
    uint64_t node; /* 0: there is none */
    char attributes[CLT_HASH_TEXT];
} taker;

static uint64_t first_user(const clt_trainer *t, uint64_t node) {
    for (size_t i = node + 1; i < t->graph->n_nodes; i++)
        for (int k = 0; k < t->graph->nodes[i]->n_inputs; k++)
            if (t->graph->nodes[i]->inputs[k]->index == (int)node) return i;
    return 0;
}

static taker find_taker(const clt_trainer *t, uint64_t weight) {
    taker found = {.node = first_user(t, weight)};
    while (found.node && t->graph->nodes[found.node]->op && t->graph->nodes[found.node]->op->is_view) found.node = first_user(t, found.node);
    const clt_tensor *node = t->graph->nodes[found.node];
    clt_text text = {0};
    if (found.node && node->attributes) clt_attributes_write(node->op->schema, node->attributes, node->shape.rank, &text);
    clt_hash_add(found.attributes, clt_text_data(&text), text.length);
    clt_text_free(&text);
    return found;
}

/* Where the first tensor that differs is a weight, and the op that takes it has other attributes: the op, which says more. Called by all. */
static clt_status prefer_op(const clt_trainer *t, size_t *node, int rank) {
    taker own = {0}, *all = NULL;
    if (t->graph->nodes[*node]->kind == CLT_NODE_VARIABLE) own = find_taker(t, *node);
    CLT_TRY(clt_parallel_gather_new(clt_trainer_group(t), &own, sizeof own, &all));
    if (all[0].node && all[0].node == all[rank].node && strcmp(all[0].attributes, all[rank].attributes)) *node = all[0].node;
    clt_free(all);
    return CLT_OK;
}

/* All ranks have as many tensors, and some differ: finds the first. Called by all. */
static clt_status name_tensor(const clt_trainer *t, const one_sample *one) {
    clt_comm *comm = clt_trainer_group(t);
    size_t n = t->graph->n_nodes;
    char(*own)[CLT_HASH_TEXT] = clt_calloc(n, sizeof *own), (*all)[CLT_HASH_TEXT] = NULL;
    clt_status status = own ? CLT_OK : clt_fail_memory(n * sizeof *own);
    for (size_t i = 0; own && i < n; i++) hash_node(t, one, i, own[i]);
    if (own) status = clt_parallel_gather_new(comm, own, n * sizeof *own, &all);
    for (size_t at = 0; status == CLT_OK && at < n * (size_t)clt_comm_size(comm); at++) {
        size_t node = at % n;
        int rank = (int)(at / n);
        if (!strcmp(all[at], all[node])) continue;
        status = prefer_op(t, &node, rank);
        if (status == CLT_OK) status = tell_tensor(t, one, node, rank);
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

static clt_status compare(const clt_trainer *t, const one_sample *one, const summary *all) {
    clt_comm *comm = clt_trainer_group(t);
    CLT_TRY(clt_parallel_judge(comm, &all->report, sizeof *all));
    for (int r = 1; r < clt_comm_size(comm); r++)
        for (int i = 0; i < N_FACTS; i++)
            if (all[r].facts[i] != all[0].facts[i])
                return fail_fact(r, i, all[r].facts[i], all[0].facts[i]);
    for (int r = 1; r < clt_comm_size(comm); r++)
        if (strcmp(all[r].graph, all[0].graph)) return name_tensor(t, one);
    return CLT_OK;
}

clt_status clt_parallel_check(clt_trainer *t, clt_status status) {
    if (!clt_trainer_group(t)) return status;
    one_sample one = {0};
    if (status == CLT_OK) status = make_one_sample(t, &one);
    summary own = {.report = clt_parallel_make_report(status)}, *all = NULL;
    CLT_TRY(agree_on_sample(clt_trainer_group(t), &one));
    summarize(t, &one, &own);
    status = clt_parallel_gather_new(clt_trainer_group(t), &own, sizeof own, &all);
    if (status == CLT_OK) status = compare(t, &one, all);
    clt_free(all);
    free_one_sample(&one);
    return status;
}
