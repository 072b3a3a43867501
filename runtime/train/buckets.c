/*
 * Buckets: parameters that lie one after the other in flat tensors, and with them their gradients and optimizer state.
 *
 * Alone, a process has one bucket, or as many as the device's largest buffer asks for. With a communicator they are
 * buckets (Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020): in the order in
 * which backward finishes gradients, of limited size each, so that one is exchanged while the next are computed. The first
 * is small, for it begins all.
 *
 * All parameters of a bucket have the same rule of the options, for one launch updates them.
 */
#include <string.h>

#include "runtime/base/name.h"
#include "runtime/train/trainer.h"

enum { FIRST_BUCKET_BYTES = 1 << 20 };

void clt_buckets_free(clt_bucket *buckets, int n) {
    for (int i = 0; i < n; i++) {
        clt_free(buckets[i].variables);
        clt_free(buckets[i].offsets);
    }
    clt_free(buckets);
}

bool clt_bucket_find(const clt_trainer *t, const clt_variable *variable, int *bucket, int *place) {
    for (*bucket = 0; *bucket < t->n_buckets; ++*bucket)
        for (*place = 0; *place < t->buckets[*bucket].n; ++*place)
            if (t->buckets[*bucket].variables[*place] == variable) return true;
    return false;
}

/* In elements. A buffer has a largest size, and kernels count elements with 32 bits. */
static int64_t limit_of(const clt_trainer *t, int bucket) {
    size_t bytes = t->options.bucket_bytes;
    int64_t limit = CLT_MIN((int64_t)(clt_device_get_info(t->device)->max_buffer_bytes / sizeof(float)),
                            (int64_t)INT32_MAX - CLT_PACK_ALIGN);
    if (!t->options.comm) return limit;
    if (bucket == 0) bytes = CLT_MIN(bytes, FIRST_BUCKET_BYTES);
    return CLT_MIN(limit, (int64_t)(bytes / sizeof(float)));
}

bool clt_trainer_keeps_parameters_in_host(const clt_trainer *t) {
    return t->options.offload == CLT_OFFLOAD_PARAMETERS || t->options.offload == CLT_OFFLOAD_ALL || (t->options.shard == CLT_SHARD_PARAMETERS && clt_trainer_shards(t) > 1);
}

static clt_status open_bucket(clt_trainer *t, int n_variables, int rule) {
    clt_bucket *grown = clt_realloc(t->buckets, (size_t)(t->n_buckets + 1) * sizeof *t->buckets);
    if (!grown) return clt_fail_memory((size_t)(t->n_buckets + 1) * sizeof *t->buckets);
    t->buckets = grown;
    clt_bucket *bucket = &t->buckets[t->n_buckets++];
    *bucket = (clt_bucket){.rule = rule};
    bucket->variables = clt_calloc((size_t)n_variables, sizeof *bucket->variables);
    bucket->offsets = clt_calloc((size_t)n_variables, sizeof *bucket->offsets);
    if (!bucket->variables || !bucket->offsets) return clt_fail_memory((size_t)n_variables * sizeof *bucket->offsets);
    return CLT_OK;
}

static int rule_of(const clt_trainer *t, const clt_variable *variable) {
    for (int i = 0; i < t->options.n_rules; i++)
        if (clt_name_matches(variable->name, t->options.rules[i].pattern)) return i;
    return -1;
}

/* The last bucket of a rule, or -1. */
static int last_bucket(const clt_trainer *t, int rule) {
    int last = t->n_buckets - 1;
    while (last >= 0 && t->buckets[last].rule != rule) last--; /* NOLINT(clang-analyzer-core.NullDereference) */
    return last;
}

/* A variable that is larger than the limit has a bucket of its own. */
static clt_status add_to_buckets(clt_trainer *t, clt_variable *variable, int n_variables) {
    int64_t elements = (clt_shape_elements(&variable->shape) + CLT_PACK_ALIGN - 1) / CLT_PACK_ALIGN * CLT_PACK_ALIGN;
    int rule = rule_of(t, variable), last = last_bucket(t, rule);
    if (last < 0 || t->buckets[last].elements + elements > limit_of(t, last)) { /* NOLINT(clang-analyzer-core.NullDereference) */
        CLT_TRY(open_bucket(t, n_variables, rule));
        last = t->n_buckets - 1;
    }
    clt_bucket *bucket = &t->buckets[last];
    bucket->variables[bucket->n] = variable;
    bucket->offsets[bucket->n++] = bucket->elements;
    bucket->elements += elements;
    return CLT_OK;
}

/* A rule that no parameter has is a mistake in its pattern, unless rules before it took them. */
static clt_status check_rules(const clt_trainer *t, clt_variable *const *variables, int n) {
    for (int r = 0; r < t->options.n_rules; r++) {
        bool any = false;
        char shown[CLT_SHOWN_TEXT];
        for (int i = 0; i < n; i++) any |= clt_name_matches(variables[i]->name, t->options.rules[r].pattern);
        if (!any && !t->stage) /* it may be another stage's */
            return clt_fail(CLT_E_NOT_FOUND, "option rules[%d]: no trained parameter's name matches \"%s\"", r, clt_show(t->options.rules[r].pattern, shown));
    }
    return CLT_OK;
}

/* The first node of the user's graph that reads the variable: backward has its whole gradient when it is past that one. */
static size_t first_use(const clt_graph *graph, const clt_variable *variable) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++)
            if (graph->nodes[i]->inputs[k]->variable == variable) return i;
    return graph->n_nodes;
}

/* In reverse order of use; those that one node reads, as they were. The order is a fact of the user's graph, so that it is
 * the same whatever the batch size is. */
static void sort_by_use(const clt_graph *graph, clt_variable **variables, size_t *uses, int n) {
    for (int i = 0; i < n; i++) uses[i] = first_use(graph, variables[i]);
    for (int i = 1; i < n; i++) {
        clt_variable *variable = variables[i];
        size_t use = uses[i];
        int k = i;
        for (; k > 0 && uses[k - 1] < use; k--) {
            variables[k] = variables[k - 1];
            uses[k] = uses[k - 1];
        }
        variables[k] = variable;
        uses[k] = use;
    }
}

static clt_status fill_buckets(clt_trainer *t, clt_variable **variables, int n) {
    for (int i = 0; i < n; i++) CLT_TRY(add_to_buckets(t, variables[i], n));
    int64_t unit = (int64_t)clt_trainer_shards(t) * CLT_PACK_ALIGN;
    for (int g = 0; g < t->n_buckets; g++) t->buckets[g].elements = (t->buckets[g].elements + unit - 1) / unit * unit;
    for (int g = 0; g < t->n_buckets; g++) {
        const clt_bucket *bucket = &t->buckets[g];
        char name[64];
        size_t bytes = (size_t)bucket->elements * sizeof(float);
        clt_bucket_name("parameters", g, name);
        if (clt_trainer_keeps_parameters_in_host(t)) CLT_TRY(clt_state_store_expect_host(t->store, name, bytes));
        for (int i = 0; i < bucket->n; i++) CLT_TRY(clt_state_store_place(t->store, bucket->variables[i], name, bytes, (size_t)bucket->offsets[i] * sizeof(float)));
    }
    return CLT_OK;
}

clt_status clt_trainer_make_buckets(clt_trainer *t, clt_tensor *const *params, clt_tensor *const *grads, int n) {
    if (t->buckets) return CLT_OK;
    clt_variable **variables = clt_calloc((size_t)n + 1, sizeof *variables);
    size_t *uses = clt_calloc((size_t)n + 1, sizeof *uses);
    clt_status status = variables && uses ? CLT_OK : clt_fail_memory(((size_t)n + 1) * sizeof *uses);
    int reached = 0;
    for (int i = 0; status == CLT_OK && i < n; i++)
        if (grads[i]) variables[reached++] = params[i]->variable;
    if (status == CLT_OK && !reached) status = clt_fail(CLT_E_INVALID, "the loss does not depend on any parameter that is trained%s", t->stage ? " of this stage of the pipeline" : "");
    if (status == CLT_OK) status = check_rules(t, variables, reached);
    if (status == CLT_OK && t->options.comm) sort_by_use(t->graph, variables, uses, reached);
    if (status == CLT_OK) status = fill_buckets(t, variables, reached);
    clt_free(variables);
    clt_free(uses);
    return status;
}
