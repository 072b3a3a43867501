/*
 * With precision bf16 or f16: a copy of the trained parameters in 16 bits, in flat tensors as they are. Each update writes it with the
 * parameters; forward and backward read it in the place of parameters that are cast. Who else gets hold of the parameters' memory, such as a
 * checkpoint that is loaded, leaves it out of date: before the next plan that reads it is run, it is made anew.
 */
#include <stdio.h>

#include "runtime/train/trainer.h"

/* Parts of flat tensors are views, which begin where the device allows it. Parameters that are brought from elsewhere are cast on their way. */
bool clt_weights16_are_kept(const clt_trainer *t) {
    return t->options.precision != CLT_PRECISION_F32 && clt_trainer_shards(t) == 1 && !clt_trainer_keeps_parameters_in_host(t) &&
           CLT_PACK_ALIGN * clt_dtype_bytes(CLT_F16) % clt_device_alignment(t->device) == 0;
}

clt_dtype clt_trainer_low(const clt_trainer *t) {
    return t->options.precision == CLT_PRECISION_F16 ? CLT_F16 : CLT_BF16;
}

clt_tensor *clt_weights16(const clt_trainer *t, clt_graph *graph, int bucket) {
    char name[64];
    return clt_state(graph, clt_bucket_name("parameters16", bucket, name), clt_trainer_low(t), CLT_SHAPE(t->buckets[bucket].elements));
}

/* ---- in the place of casts ---- */

static bool is_cast_parameter(const clt_tensor *node, clt_dtype dtype) {
    return clt_node_casts(node) && node->dtype == dtype && node->inputs[0]->kind == CLT_NODE_VARIABLE;
}

/* The node stays where it is, and becomes a view. */
static clt_status read_copy(const clt_trainer *t, clt_step *step, clt_tensor *node, clt_tensor **copies) {
    int bucket, place;
    if (!is_cast_parameter(node, clt_trainer_low(t)) || !clt_bucket_find(t, node->inputs[0]->variable, &bucket, &place)) return CLT_OK;
    if (!copies[bucket]) copies[bucket] = clt_weights16(t, step->graph, bucket);
    CLT_TRY(clt_graph_status(step->graph));
    step->reads_weights16 = true;
    return clt_become_flat_part(node, copies[bucket], t->buckets[bucket].offsets[place]);
}

/* The states were made behind the nodes that read them now. */
static clt_status move_to_front(clt_graph *graph, size_t n) {
    int64_t *keys = clt_alloc(graph->n_nodes * sizeof *keys);
    if (!keys) return clt_fail_memory(graph->n_nodes * sizeof *keys);
    for (size_t i = 0; i < graph->n_nodes; i++) keys[i] = i < n ? (int64_t)i : -1;
    clt_status status = clt_graph_sort(graph, keys);
    clt_free(keys);
    return status;
}

clt_status clt_weights16_read(const clt_trainer *t, clt_step *step) {
    size_t n = step->graph->n_nodes;
    if (!clt_weights16_are_kept(t) || t->n_buckets == 0) return CLT_OK;
    clt_tensor **copies = clt_calloc((size_t)t->n_buckets, sizeof *copies);
    if (!copies) return clt_fail_memory((size_t)t->n_buckets * sizeof *copies);
    clt_status status = CLT_OK;
    for (size_t i = 0; status == CLT_OK && i < n; i++) status = read_copy(t, step, step->graph->nodes[i], copies);
    clt_free(copies);
    return status == CLT_OK && step->graph->n_nodes > n ? move_to_front(step->graph, n) : status;
}

/* ---- out of date ---- */

static clt_status make_anew(clt_trainer *t, clt_graph *graph, clt_tensor **targets) {
    char name[64];
    for (int i = 0; i < t->n_buckets; i++) {
        clt_tensor *all = clt_state(graph, clt_bucket_name("parameters", i, name), CLT_F32, CLT_SHAPE(t->buckets[i].elements));
        clt_tensor *rounded = clt_cast(all, clt_trainer_low(t));
        CLT_TRY(clt_graph_status(graph));
        targets[i] = clt_pack(clt_weights16(t, graph, i), &rounded, (int64_t[]){0}, 1);
    }
    clt_plan *plan;
    clt_plan_options options = {.device = t->device, .store = t->store, .graph = graph, .targets = targets, .n_targets = t->n_buckets};
    CLT_TRY(clt_plan_compile(&plan, &options));
    clt_status status = clt_plan_run(plan);
    clt_plan_destroy(plan);
    return status;
}

clt_status clt_weights16_update(clt_trainer *t, const clt_step *step) {
    clt_graph *graph = NULL;
    if (!step->reads_weights16 || t->weights16_of == clt_state_store_lent(t->store)) return CLT_OK;
    clt_tensor **targets = clt_calloc((size_t)t->n_buckets, sizeof *targets);
    clt_status status = targets ? clt_graph_create(&graph) : clt_fail_memory((size_t)t->n_buckets * sizeof *targets);
    if (status == CLT_OK) status = make_anew(t, graph, targets);
    if (status == CLT_OK) t->weights16_of = clt_state_store_lent(t->store);
    clt_graph_destroy(graph);
    clt_free(targets);
    return status;
}
