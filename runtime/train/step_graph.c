/*
 * From the user's graph to the graph of a whole step: forward, backward, metrics,
 * clipping and the optimizer's update are nodes of one graph, compiled to one plan.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/carry.h"
#include "runtime/exec/storage.h"
#include "runtime/train/compress.h"
#include "runtime/train/stage.h"

const clt_metric_names clt_train_metric_names = {"train.loss", "train.correct", "train.mse"};
const clt_metric_names clt_eval_metric_names = {"eval.loss", "eval.correct", "eval.mse"};

const char *clt_bucket_name(const char *what, int group, char text[64]) {
    snprintf(text, 64, "%s.%d", what, group);
    return text;
}

/* Those that the update reads and writes. */
static int update_states(const clt_train_options *options, const char *names[CLT_MAX_OPTIMIZER_STATES]) {
    if (options->optimizer == CLT_SGD) {
        names[0] = "momentum_buffer";
        return options->momentum > 0 ? 1 : 0;
    }
    names[0] = "exp_avg";
    names[1] = "exp_avg_sq";
    return 2;
}

int clt_optimizer_states(const clt_train_options *options, const char *names[CLT_MAX_OPTIMIZER_STATES]) {
    int n = update_states(options, names);
    if (options->average > 0) names[n++] = "average";
    return n;
}

/* ---- targets of a plan, in a list that grows ---- */

typedef struct target_list {
    clt_tensor **items;
    size_t n, capacity;
} target_list;

static clt_status add_target(target_list *list, clt_tensor *target) {
    CLT_TRY(clt_grow(&list->items, &list->capacity, list->n, sizeof *list->items));
    list->items[list->n++] = target;
    return clt_tensor_valid(target) ? CLT_OK : clt_graph_status(target->graph);
}

/* ---- metrics ---- */

/* Scores [..., classes] and labels [...]. */
static bool is_classifier(const clt_tensor *output, const clt_tensor *truth) {
    clt_shape labels = output->shape;
    if (!clt_dtype_is_float(output->dtype) || truth->dtype != CLT_I32 || labels.rank < 2) return false;
    labels.rank--;
    return clt_shape_equal(&labels, &truth->shape);
}

/* Of a truth whose losses are left out nothing is right. */
static clt_tensor *count_correct(clt_graph *g, const char *name, clt_tensor *output, clt_tensor *truth, const clt_index_limit *limit) {
    if (limit->counted) truth = clt_ignore_index(truth, limit->ignored, -1);
    if (truth->shape.rank > 1) {
        output = clt_reshape(output, CLT_SHAPE(-1, output->shape.dims[output->shape.rank - 1]));
        truth = clt_reshape(truth, CLT_SHAPE(-1));
    }
    return clt_metric_correct(clt_state(g, name, CLT_I32, CLT_SHAPE(1)), output, truth);
}

static bool is_regression(const clt_tensor *output, const clt_tensor *truth) {
    return clt_dtype_is_float(output->dtype) && truth->dtype == CLT_F32 && clt_shape_equal(&output->shape, &truth->shape);
}

/* With updates that are left out, losses that are not finite are too. */
static clt_tensor *add_mean(const clt_trainer *t, clt_step *step, const char *name, clt_tensor *value) {
    clt_tensor *sum = clt_state(step->graph, name, CLT_F32, CLT_SHAPE(CLT_MEAN_COUNT));
    bool finite = t->options.on_nonfinite == CLT_NONFINITE_SKIP && step->purpose == CLT_PURPOSE_TRAIN;
    return (finite ? clt_metric_add_finite : clt_metric_add)(sum, value, (float)step->sizes.batch);
}

static clt_status add_metrics(const clt_trainer *t, clt_step *step, const clt_metric_names *names, clt_tensor *loss,
                              clt_tensor *output, clt_tensor *truth, target_list *targets) {
    clt_graph *g = step->graph;
    CLT_TRY(add_target(targets, add_mean(t, step, names->loss, clt_reshape(loss, (clt_shape){0}))));
    if (!output || !truth) return CLT_OK;
    if (is_classifier(output, truth)) return add_target(targets, count_correct(g, names->correct, output, truth, &t->input_limits[t->n_inputs - 1]));
    if (is_regression(output, truth))
        return add_target(targets, add_mean(t, step, names->mse, clt_mse_loss(clt_cast(output, CLT_F32), truth)));
    return CLT_OK;
}

/* ---- backward and update ---- */

/* Whether steps of this trainer exchange something within forward and backward. */
bool clt_trainer_synchronizes(const clt_trainer *t) {
    if (!t->options.comm || !t->options.sync_batch_norm || clt_comm_size(t->options.comm) == 1) return false;
    for (size_t i = 0; i < t->graph->n_nodes; i++)
        if (t->graph->nodes[i]->op == &clt_op_batch_norm) return true;
    return false;
}

static clt_tensor *flat_state(clt_graph *g, const char *what, int group, int64_t elements) {
    char name[64];
    return clt_state(g, clt_bucket_name(what, group, name), CLT_F32, CLT_SHAPE(elements));
}

static bool shards_gradients(const clt_trainer *t) {
    return t->options.shard >= CLT_SHARD_GRADIENTS && clt_trainer_shards(t) > 1;
}

static clt_tensor *zeros(clt_graph *g, int64_t elements) {
    clt_tensor *zero = clt_state(g, "zero", CLT_F32, CLT_SHAPE(1)); /* never written; no constant, which is computed once */
    return clt_expand(zero, CLT_SHAPE(elements));
}

/* Where the gradients of a bucket lie: from step to step; or, of which a part is kept alone, until it has been exchanged. */
static clt_tensor *gradients_of(const clt_trainer *t, clt_graph *g, int index) {
    int64_t elements = t->buckets[index].elements;
    return shards_gradients(t) ? zeros(g, elements) : flat_state(g, "gradients", index, elements);
}

/* The gradients of a group in one flat tensor. */
static clt_tensor *pack_bucket(const clt_trainer *t, clt_graph *g, int index, clt_tensor *const *params, clt_tensor *const *grads, int n) {
    const clt_bucket *bucket = &t->buckets[index];
    clt_tensor **parts = clt_calloc((size_t)bucket->n, sizeof *parts);
    if (!parts) return clt_graph_fail(g, clt_fail_memory((size_t)bucket->n * sizeof *parts));
    for (int i = 0; i < bucket->n; i++)
        for (int k = 0; k < n; k++)
            if (params[k]->variable == bucket->variables[i]) parts[i] = grads[k];
    clt_tensor *flat = gradients_of(t, g, index);
    clt_tensor *packed = clt_tensor_valid(flat) ? clt_pack(flat, parts, bucket->offsets, bucket->n) : flat;
    clt_free(parts);
    return packed;
}

/* Alone, gradients are means, and those of micro-batches are averaged. With others they are sums over samples, which
 * clt_hyper_scale divides by how many these were. */
static clt_update_attributes update_attributes(const clt_train_options *o) {
    return (clt_update_attributes){
        .clip = {.grad_scale = o->comm ? 1.0f : 1.0f / (float)o->accumulate,
                 .clip_value = o->clip_value > 0 ? o->clip_value : INFINITY,
                 .clip_norm = o->clip_norm > 0 ? o->clip_norm : INFINITY},
        .momentum = o->momentum,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .weight_decay = o->weight_decay,
        .lr_factor = 1,
        .nesterov = o->nesterov,
        .decoupled = o->optimizer == CLT_ADAMW,
    };
}

static clt_update_attributes bucket_attributes(const clt_trainer *t, const clt_bucket *bucket) {
    clt_update_attributes at = update_attributes(&t->options);
    if (bucket->rule < 0) return at;
    const clt_parameter_rule *rule = &t->options.rules[bucket->rule];
    at.lr_factor = clt_or_default(rule->lr_factor, 1);
    at.weight_decay = CLT_MAX(clt_or_default(rule->weight_decay, at.weight_decay), 0);
    return at;
}

/* The samples of all ranks in this update, weighted, where they are not asked for yet. They are known before all else, so that where
 * each batch is an update, this is the first collective, before backward. */
static clt_tensor *all_samples(clt_step *step) {
    if (!step->all_samples) {
        step->samples = clt_state(step->graph, "samples", CLT_F32, CLT_SHAPE(1));
        step->all_samples = clt_all_reduce(step->samples, CLT_REDUCE_SUM);
    }
    return step->all_samples;
}

/* The gradients become means over the samples of all ranks. */
static void exchange_compressed(clt_trainer *t, clt_tensor *samples, clt_tensor **flat_grads) {
    for (int i = 0; i < t->n_buckets; i++) {
        clt_gradient_reduction exchange = {.options = &t->options.compress,
                                          .rank = clt_comm_rank(t->options.comm),
                                          .size = clt_comm_size(t->options.comm),
                                          .bucket = &t->buckets[i],
                                          .index = i,
                                          .flat = flat_grads[i],
                                          .samples = samples};
        flat_grads[i] = clt_reduce_gradient(&exchange);
    }
}

/* The gradients become their sums over the ranks, or the own part of those. */
static void add_up_ranks(const clt_trainer *t, clt_tensor **flat_grads) {
    int parts = clt_trainer_shards(t), part = parts > 1 ? clt_comm_rank(t->options.comm) : 0;
    for (int i = 0; i < t->n_buckets; i++)
        flat_grads[i] = parts > 1 ? clt_reduce_scatter(flat_grads[i], part, parts)
                                  : clt_all_reduce(flat_grads[i], CLT_REDUCE_SUM);
}

static clt_tensor *loss_scale_of(const clt_step *step) {
    return clt_state(step->graph, clt_loss_scale_name, CLT_F32, CLT_SHAPE(CLT_LOSS_SCALE_COUNT));
}

/* [1] */
static clt_tensor *present_loss_scale(const clt_step *step) {
    return clt_slice(loss_scale_of(step), 0, CLT_LOSS_SCALE, CLT_LOSS_SCALE + 1, 1);
}

/* What compression keeps for the next step is of no scale, for that step may have another: such gradients are divided by it when they are encoded. In
 * 16 bits they go scaled, so that they keep their range. */
static bool compression_unscales(const clt_trainer *t) {
    return clt_loss_scaled(t) && t->options.comm && t->options.compress.method > CLT_COMPRESS_BF16;
}

/* Returns hyper with the scale that makes the sums over the ranks means. What was compressed is a mean already. */
static clt_tensor *exchange(clt_trainer *t, clt_step *step, clt_tensor **flat_grads) {
    clt_tensor *samples = all_samples(step);
    if (t->options.compress.method) {
        exchange_compressed(t, compression_unscales(t) ? clt_mul(samples, present_loss_scale(step)) : samples, flat_grads);
        return step->hyper;
    }
    if (!shards_gradients(t)) add_up_ranks(t, flat_grads);
    return clt_hyper_scale(step->hyper, samples);
}

/* Each rank's own part alone, in memory of its own: the whole is not needed any more (exec/passes/overlap.c). */
static void keep_shards(const clt_trainer *t, clt_tensor **flat_grads) {
    add_up_ranks(t, flat_grads);
    for (int i = 0; i < t->n_buckets; i++) flat_grads[i] = clt_slice(flat_grads[i], 0, 0, clt_tensor_elements(flat_grads[i]), 1);
}

/* What an update of a bucket reads and writes. */
typedef struct bucket_update {
    const clt_op *op;
    clt_update_attributes attributes;
    clt_tensor *parameters, *gradients, *hyper, *factor, *states[CLT_MAX_OPTIMIZER_STATES];
    clt_tensor *average; /* NULL: none is kept */
    clt_tensor *copy;    /* in 16 bits; NULL: none is kept */
    float decay;         /* of it */
    int n_states;
    int64_t offset;      /* of the own part, of parameters in the host's memory */
    bool ahead;          /* what is in the host's memory is brought one piece ahead */
} bucket_update;

/* The parameters are those of the update, whatever happens to the average. */
static clt_status update_at_once(const bucket_update *u, target_list *targets, clt_tensor **updated) {
    *updated = clt_update(u->op, u->attributes, u->parameters, u->gradients, u->hyper, u->factor, u->states, u->n_states, u->copy);
    CLT_TRY(add_target(targets, *updated));
    return u->average ? add_target(targets, clt_average(u->average, *updated, u->factor, u->decay)) : CLT_OK;
}

/* Elements of a flat state, wherever it lies. */
static clt_tensor *piece_of(clt_tensor *flat, int64_t offset, int64_t elements) {
    return (flat->in_host ? clt_from_host : clt_flat_part)(flat, offset, CLT_SHAPE(elements));
}

static clt_status take_back(clt_tensor *flat, clt_tensor *piece, int64_t offset, target_list *targets) {
    return flat->in_host ? add_target(targets, clt_to_host(flat, piece, offset)) : CLT_OK;
}

/* The update of some elements, from `offset` on: what of it lies in the host's memory comes to the device. */
static bucket_update bring_piece(const bucket_update *u, int64_t offset) {
    enum { PIECE = (16 << 20) / sizeof(float) };
    int64_t elements = CLT_MIN(PIECE, clt_tensor_elements(u->gradients) - offset);
    bucket_update part = *u;
    part.parameters = piece_of(u->parameters, u->offset + offset, elements);
    part.gradients = piece_of(u->gradients, offset, elements);
    if (u->average) part.average = piece_of(u->average, offset, elements);
    if (u->copy) part.copy = piece_of(u->copy, offset, elements);
    for (int s = 0; s < u->n_states; s++) part.states[s] = piece_of(u->states[s], offset, elements);
    return part;
}

static clt_status take_piece_back(const bucket_update *u, const bucket_update *part, int64_t offset, target_list *targets) {
    CLT_TRY(take_back(u->parameters, part->parameters, u->offset + offset, targets));
    for (int s = 0; s < u->n_states; s++) CLT_TRY(take_back(u->states[s], part->states[s], offset, targets));
    return CLT_OK;
}

/* Piece by piece; the last one's. Where transfers have a queue of their own the next comes while one is updated. */
static clt_status update_from_host(const bucket_update *u, target_list *targets, clt_tensor **updated) {
    int64_t all = clt_tensor_elements(u->gradients), next;
    bucket_update part = bring_piece(u, 0), later = part;
    for (int64_t offset = 0; offset < all; offset = next) {
        next = offset + clt_tensor_elements(part.gradients);
        if (u->ahead && next < all) later = bring_piece(u, next);
        CLT_TRY(update_at_once(&part, targets, updated));
        CLT_TRY(take_piece_back(u, &part, offset, targets));
        if (next >= all) break;
        part = u->ahead ? later : bring_piece(u, next);
    }
    return CLT_OK;
}

/* One group's new parameters. With parts, the own one is updated, and the others' come from their ranks. */
static clt_status update_bucket(clt_trainer *t, clt_step *step, int i, clt_tensor *grads, clt_tensor *hyper,
                                clt_tensor *factor, target_list *targets) {
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    const clt_bucket *bucket = &t->buckets[i];
    int n_states = update_states(&t->options, names);
    int parts = clt_trainer_shards(t), part = parts > 1 ? clt_comm_rank(t->options.comm) : 0;
    bool states_in_host = (t->options.offload == CLT_OFFLOAD_OPTIMIZER || t->options.offload == CLT_OFFLOAD_ALL) && n_states > 0;
    bool in_host = clt_trainer_keeps_parameters_in_host(t);
    int64_t own = bucket->elements / parts;
    char name[64];
    clt_tensor *updated, *all = (in_host ? clt_host_state : clt_state)(step->graph, clt_bucket_name("parameters", i, name), CLT_F32, CLT_SHAPE(bucket->elements));
    bucket_update u = {.op = t->options.optimizer == CLT_SGD ? &clt_op_sgd : &clt_op_adam, .attributes = bucket_attributes(t, bucket),
                       .parameters = parts > 1 && !in_host ? clt_shard_of(all, part, parts) : all, .gradients = grads, .hyper = hyper, .factor = factor,
                       .n_states = n_states, .offset = in_host ? part * own : 0, .ahead = clt_carries_are_apart(t->device), .decay = t->options.average};
    if (t->options.average > 0) u.average = flat_state(step->graph, "average", i, bucket->elements);
    if (clt_weights16_are_kept(t)) u.copy = clt_weights16(t, step->graph, i);
    for (int s = 0; s < n_states; s++)
        u.states[s] = (states_in_host ? clt_host_state : clt_state)(step->graph, clt_bucket_name(names[s], i, name), CLT_F32, CLT_SHAPE(own));
    CLT_TRY((states_in_host || in_host ? update_from_host : update_at_once)(&u, targets, &updated));
    return parts > 1 ? add_target(targets, clt_all_gather_in_place(all, updated, part, parts)) : CLT_OK;
}

static bool guards(const clt_trainer *t) {
    return t->options.on_nonfinite != CLT_NONFINITE_IGNORE;
}

static clt_guard_attributes guard_attributes(const clt_train_options *o) {
    return (clt_guard_attributes){.rest1 = (float)(1 - (double)o->beta1),
                                  .rest2 = (float)(1 - (double)o->beta2),
                                  .stops = o->on_nonfinite == CLT_NONFINITE_STOP};
}

/* What compression keeps of an update that is left out would come again with the next. */
static clt_status add_clearing(clt_step *step, clt_tensor *factor, target_list *targets) {
    clt_graph *g = step->graph;
    for (size_t i = 0, n = g->n_nodes; i < n; i++) {
        clt_tensor *state = g->nodes[i];
        if (state->kind == CLT_NODE_STATE && clt_compress_keeps(state->name))
            CLT_TRY(add_target(targets, clt_clear_if_skipped(state, factor)));
    }
    return clt_graph_status(g);
}

static clt_status add_update(clt_trainer *t, clt_step *step, clt_tensor **flat_grads, target_list *targets) {
    clt_clip_attributes clip = update_attributes(&t->options).clip;
    clt_tensor *hyper = t->options.comm ? exchange(t, step, flat_grads) : step->hyper;
    clt_tensor *loss_scale = clt_loss_scaled(t) ? loss_scale_of(step) : NULL;
    if (loss_scale && !compression_unscales(t)) hyper = clt_hyper_unscale(hyper, loss_scale);
    clt_tensor *record = guards(t) ? clt_state(step->graph, clt_record_name, CLT_I32, CLT_SHAPE(CLT_RECORD_COUNT)) : NULL;
    const clt_among parts = t->stage ? CLT_AMONG_STAGES : CLT_AMONG_RANKS;
    clt_tensor *factor = clt_clip_scale(flat_grads, t->n_buckets, hyper, t->stage || clt_trainer_shards(t) > 1 ? &parts : NULL, clip, record, guard_attributes(&t->options));
    for (int i = 0; i < t->n_buckets; i++)
        CLT_TRY(update_bucket(t, step, i, flat_grads[i], hyper, factor, targets));
    if (loss_scale) CLT_TRY(add_target(targets, clt_loss_scale(loss_scale, factor)));
    return record && t->options.comm && t->options.compress.method ? add_clearing(step, factor, targets) : CLT_OK;
}

/* Sums over micro-batches; the nodes after them are the next segment of the plan. */
static clt_status add_accumulation(clt_trainer *t, clt_step *step, clt_tensor **flat_grads,
                                   target_list *targets) {
    for (int i = 0; i < t->n_buckets && t->options.accumulate > 1; i++) {
        clt_tensor *sum = flat_state(step->graph, "accumulated", i, clt_tensor_elements(flat_grads[i]));
        flat_grads[i] = clt_accumulate(sum, flat_grads[i], step->hyper);
        CLT_TRY(add_target(targets, flat_grads[i]));
    }
    if (t->stage) step->graph->segment = clt_segment_of_update(t->stage->cut.chunks);
    else if (t->options.accumulate > 1) clt_graph_next_segment(step->graph);
    return clt_graph_status(step->graph);
}

/* What comes before the gradients. */
static void add_hyper(clt_trainer *t, clt_step *step) {
    step->hyper = clt_state(step->graph, "hyper", CLT_F32, CLT_SHAPE(CLT_HYPER_COUNT));
    if (t->options.comm && t->options.accumulate == 1 && !t->stage) all_samples(step);
}

/* From the flat gradients of this batch on. */
static clt_status add_rest(clt_trainer *t, clt_step *step, clt_tensor **flat_grads,
                           target_list *targets) {
    if (shards_gradients(t)) keep_shards(t, flat_grads);
    CLT_TRY(clt_graph_status(step->graph));
    CLT_TRY(add_accumulation(t, step, flat_grads, targets));
    return add_update(t, step, flat_grads, targets);
}

/* The loss is a mean: times its samples, each with its weight, it is a sum, which is what ranks can add up. */
static clt_tensor *add_seed(const clt_trainer *t, const clt_step *step, const clt_tensor *loss) {
    clt_tensor *seed = clt_fill(step->graph, loss->shape, t->options.comm ? (float)step->sizes.batch * t->sample_weight : 1.0f);
    if (!clt_loss_scaled(t)) return seed;
    return clt_mul(seed, clt_reshape(present_loss_scale(step), loss->shape));
}

/* The gradients alone, each by itself. */
static clt_status add_gradients(clt_trainer *t, clt_step *step, clt_tensor *loss, clt_tensor *const *params, int n,
                                clt_tensor **grads, target_list *targets) {
    clt_tensor *seed = add_seed(t, step, loss);
    step->result = loss;
    CLT_TRY(add_target(targets, loss));
    CLT_TRY(clt_graph_status(step->graph));
    CLT_TRY(clt_gradients(loss, seed, params, n, grads));
    for (int i = 0; i < n; i++)
        if (grads[i]) CLT_TRY(add_target(targets, grads[i]));
    return CLT_OK;
}

/* ---- the stage of a pipeline ---- */

/* Targets of other stages are theirs. */
static void keep_own(const clt_trainer *t, target_list *targets) {
    size_t kept = 0;
    for (size_t i = 0; i < targets->n; i++)
        if (clt_stage_has(t, targets->items[i])) targets->items[kept++] = targets->items[i];
    targets->n = kept;
}

/* What this stage computes for others is a target of its own. `grads` (n of them, some NULL) are targets of the whole as well. */
static clt_status cut(const clt_trainer *t, clt_step *step, clt_tensor *const *grads, int n, target_list *targets) {
    target_list all = {0};
    clt_status status = CLT_OK;
    for (size_t i = 0; status == CLT_OK && i < targets->n; i++) status = add_target(&all, targets->items[i]);
    for (int i = 0; status == CLT_OK && i < n; i++)
        if (grads[i]) status = add_target(&all, grads[i]);
    if (status == CLT_OK) status = clt_stages_cut(step->graph, all.items, (int)all.n, &t->stage->cut, &step->edges);
    clt_free(all.items);
    keep_own(t, targets);
    for (size_t i = 0; status == CLT_OK && i < step->edges.n; i++) {
        const clt_edge *edge = &step->edges.items[i];
        if (clt_stage_has(t, edge->tensor) && !clt_tensor_is_leaf(edge->tensor)) status = add_target(targets, edge->tensor);
    }
    return status;
}

/* Leaves this stage's parameters, of which *n are left. */
static clt_status cut_backward(clt_trainer *t, clt_step *step, clt_tensor **params, clt_tensor **grads, int *n, target_list *targets) {
    int kept = 0;
    CLT_TRY(cut(t, step, grads, *n, targets));
    for (int i = 0; i < *n; i++) {
        t->stage->reached[params[i]->variable->index] |= grads[i] != NULL;
        if (t->stage->others[params[i]->variable->index]) continue;
        params[kept] = params[i];
        grads[kept++] = grads[i];
    }
    *n = kept;
    return CLT_OK;
}

static clt_status add_backward(clt_trainer *t, clt_step *step, clt_tensor *loss, clt_tensor **params, int n,
                               clt_tensor **grads, target_list *targets) {
    clt_graph *g = step->graph;
    if (step->purpose == CLT_PURPOSE_LOCATE) return add_gradients(t, step, loss, params, n, grads, targets);
    clt_tensor *seed = add_seed(t, step, loss);
    add_hyper(t, step);
    CLT_TRY(clt_graph_status(g));
    CLT_TRY(clt_gradients(loss, seed, params, n, grads));
    if (t->stage) CLT_TRY(cut_backward(t, step, params, grads, &n, targets));
    CLT_TRY(clt_trainer_make_buckets(t, params, grads, n));
    clt_tensor **flat_grads = clt_calloc((size_t)t->n_buckets, sizeof *flat_grads);
    if (!flat_grads) return clt_fail_memory((size_t)t->n_buckets * sizeof *flat_grads);
    for (int i = 0; i < t->n_buckets; i++) flat_grads[i] = pack_bucket(t, g, i, params, grads, n);
    clt_status status = add_rest(t, step, flat_grads, targets);
    clt_free(flat_grads);
    return status;
}

/* What a rank without samples does in a step: its gradients are zeros, and all the rest is as in any other. */
static clt_status add_empty(clt_trainer *t, clt_step *step, target_list *targets) {
    clt_graph *g = step->graph;
    add_hyper(t, step);
    clt_tensor **flat_grads = clt_calloc((size_t)t->n_buckets, sizeof *flat_grads);
    if (!flat_grads) return clt_fail_memory((size_t)t->n_buckets * sizeof *flat_grads);
    for (int i = 0; i < t->n_buckets; i++) {
        clt_tensor *nothing = zeros(g, t->buckets[i].elements);
        flat_grads[i] = shards_gradients(t) ? nothing : clt_pack(gradients_of(t, g, i), &nothing, (int64_t[]){0}, 1);
    }
    clt_status status = add_rest(t, step, flat_grads, targets);
    clt_free(flat_grads);
    return status;
}

/* Batch norm over the batches of all ranks. */
static clt_status synchronize(clt_trainer *t, clt_step *step) {
    int rank = clt_comm_rank(t->options.comm), size = clt_comm_size(t->options.comm);
    step->images = clt_state(step->graph, "images", CLT_F32, CLT_SHAPE(1));
    return clt_batch_norms_synchronize(step->graph, clt_all_gather(step->images, rank, size), rank, size);
}

/* Variables that came later are of no loss that is trained. */
static bool is_trained(const clt_trainer *t, const clt_tensor *node) {
    return node->kind == CLT_NODE_VARIABLE && (size_t)node->variable->index < t->n_variables && t->trained[node->variable->index];
}

static clt_status add_training(clt_trainer *t, clt_step *step, clt_tensor *loss,
                               target_list *targets) {
    clt_graph *g = step->graph;
    if (clt_trainer_synchronizes(t)) CLT_TRY(synchronize(t, step));
    size_t most = g->n_nodes;
    clt_tensor **params = clt_calloc(most, sizeof *params), **grads = clt_calloc(most, sizeof *grads);
    clt_status status = params && grads ? CLT_OK : clt_fail_memory(most * sizeof *params);
    int n = 0;
    for (size_t i = 0; status == CLT_OK && i < most; i++)
        if (is_trained(t, g->nodes[i])) params[n++] = g->nodes[i];
    if (status == CLT_OK) status = add_backward(t, step, loss, params, n, grads, targets);
    clt_free(params);
    clt_free(grads);
    return status;
}

/* ---- steps ---- */

static void map_leaves(const clt_trainer *t, clt_step *step, clt_tensor *const *map) {
    for (int i = 0; i < t->n_inputs; i++) {
        step->inputs[i] = map[t->inputs[i]->index];
        if (step->inputs[i]) step->limits[i] = clt_index_limit_of(step->graph, step->inputs[i]);
    }
    step->rng = step->graph->rng;
}

/* Which nodes of the user's graph a step is made of. */
static int step_roots(const clt_trainer *t, clt_purpose purpose, clt_tensor *predicted, clt_tensor *roots[2]) {
    if (purpose == CLT_PURPOSE_PREDICT) {
        roots[0] = predicted;
        return 1;
    }
    roots[0] = t->loss;
    roots[1] = t->options.output;
    return t->options.output ? 2 : 1;
}

/* Of the type that it has in the user's graph, whatever it is computed in. */
static clt_tensor *as_told(const clt_tensor *node, clt_tensor *const *map) {
    return clt_cast(map[node->index], node->dtype);
}

static clt_status fill_step(clt_trainer *t, clt_step *step, clt_tensor *const *map,
                            target_list *targets) {
    if (!map) return add_empty(t, step, targets);
    map_leaves(t, step, map);
    if (step->sizes.batch == 0) return add_training(t, step, as_told(t->loss, map), targets);
    if (step->purpose == CLT_PURPOSE_PREDICT) {
        step->result = as_told(step->predicted, map);
        CLT_TRY(add_target(targets, step->result));
        return t->stage ? cut(t, step, NULL, 0, targets) : CLT_OK;
    }
    bool training = step->purpose == CLT_PURPOSE_TRAIN;
    clt_tensor *loss = as_told(t->loss, map);
    if (step->purpose == CLT_PURPOSE_LOCATE) return add_training(t, step, loss, targets);
    clt_tensor *output = t->options.output ? map[t->options.output->index] : NULL; /* metrics are f32, but it is read as it is stored */
    clt_tensor *truth = t->n_inputs ? step->inputs[t->n_inputs - 1] : NULL;
    if (step->predicted && output) { /* an evaluation that tells it, too */
        step->result = as_told(t->options.output, map);
        CLT_TRY(add_target(targets, step->result));
    }
    CLT_TRY(add_metrics(t, step, training ? &clt_train_metric_names : &clt_eval_metric_names, loss, output, truth, targets));
    if (training) return add_training(t, step, loss, targets);
    return t->stage ? cut(t, step, NULL, 0, targets) : CLT_OK;
}

/* What becomes of the graph: a plan, a plan for questions alone, or a list of its problems. */
typedef struct outcome {
    bool dry_run;
    bool beside; /* other plans, which would rather go than that anything is computed twice, or lies in the host's memory */
    clt_problem_list *problems;
} outcome;

static clt_status make_outcome(clt_step *step, const clt_plan_options *options, outcome what) {
    if (what.problems) return clt_plan_problems(options, what.problems);
    return what.dry_run ? clt_plan_dry_run(&step->plan, options) : clt_plan_compile(&step->plan, options);
}

static clt_away away_of(clt_offload offload, bool beside) {
    if (offload == CLT_OFFLOAD_ACTIVATIONS || offload == CLT_OFFLOAD_ALL) return CLT_AWAY_ALWAYS;
    return offload == CLT_OFFLOAD_NONE || beside ? CLT_AWAY_NEVER : CLT_AWAY_WHERE_NEEDED;
}

static clt_status compile_step(clt_trainer *t, clt_step *step, clt_tensor *predicted, outcome what) {
    clt_tensor *roots[2], **map = NULL;
    target_list targets = {0};
    int n_roots = step_roots(t, step->purpose, predicted, roots);
    clt_status status;
    /* Without samples there is no forward, but where others wait for something within: then it is one of a sample that
     * counts for nothing. */
    if (step->sizes.batch == 0 && !clt_trainer_synchronizes(t)) CLT_TRY_GOTO(clt_graph_create(&step->graph));
    else CLT_TRY_GOTO(clt_graph_clone(t->graph, roots, n_roots, (clt_sizes){CLT_MAX(step->sizes.batch, 1), step->sizes.length}, &step->graph, &map));
    if (map && t->options.precision != CLT_PRECISION_F32) CLT_TRY_GOTO(clt_graph_autocast(step->graph, clt_trainer_low(t)));
    if (t->stage) CLT_TRY_GOTO(clt_stage_assign(t, step, map));
    CLT_TRY_GOTO(fill_step(t, step, map, &targets));
    CLT_TRY_GOTO(clt_weights16_read(t, step));
    clt_plan_options options = {
        .device = t->device,
        .store = t->store,
        .graph = step->graph,
        .targets = targets.items,
        .n_targets = (int)targets.n,
        .training = step->purpose == CLT_PURPOSE_TRAIN || step->purpose == CLT_PURPOSE_LOCATE,
        .unfused = step->purpose == CLT_PURPOSE_LOCATE,
        .run = &t->run,
        .tune = clt_tune_on_first_use,
        .comms = {[CLT_AMONG_RANKS] = t->options.comm, [CLT_AMONG_STAGES] = t->stage ? t->stage->comm : NULL},
        .resumed = t->stage != NULL,
        .all_or_nothing = t->options.recoverable,
        .backends = t->options.backends,
        .passes = t->options.passes,
        .away = away_of(t->options.offload, what.beside),
        .recompute = what.beside && t->options.recompute == CLT_RECOMPUTE_AUTO ? CLT_RECOMPUTE_NONE : t->options.recompute,
    };
    status = make_outcome(step, &options, what);
fail:
    clt_free(map);
    clt_free(targets.items);
    return status;
}

void clt_step_destroy(clt_step *step) {
    if (!step) return;
    clt_step_destroy(step->more);
    clt_plan_destroy(step->plan);
    clt_free(step->edges.items);
    clt_graph_destroy(step->graph);
    clt_free(step);
}

/* Of a sample that counts for nothing: zeros are values and labels that any model takes. */
static clt_status feed_zeros(const clt_trainer *t, const clt_step *step) {
    for (int i = 0; i < t->n_inputs; i++) {
        if (!step->inputs[i]) continue;
        void *zeros = clt_calloc(1, clt_tensor_bytes(step->inputs[i]));
        if (!zeros) return clt_fail_memory(clt_tensor_bytes(step->inputs[i]));
        clt_status status = clt_plan_feed(step->plan, step->inputs[i], zeros);
        clt_free(zeros);
        CLT_TRY(status);
    }
    return CLT_OK;
}

static clt_status new_step(clt_trainer *t, clt_purpose purpose, clt_sizes sizes, clt_tensor *predicted,
                           outcome what, clt_step **step) {
    clt_step *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->purpose = purpose;
    s->sizes = sizes;
    s->predicted = predicted;
    clt_status status = compile_step(t, s, predicted, what);
    if (status == CLT_OK && !sizes.batch && !what.problems && !what.dry_run) status = feed_zeros(t, s);
    if (status < 0) clt_step_destroy(s);
    else *step = s;
    return status;
}

static clt_status fail_plan(const clt_trainer *t, clt_status status, clt_purpose purpose, clt_sizes sizes) {
    static const char *const words[] = {"training", "evaluation", "prediction", "a search"};
    if (!t->graph->length) return clt_fail_context(status, "%s with %lld samples: ", words[purpose], (long long)sizes.batch);
    return clt_fail_context(status, "%s with %lld samples of length %lld: ", words[purpose], (long long)sizes.batch, (long long)sizes.length);
}

static clt_step *take_plan(clt_trainer *t, size_t i) {
    clt_step *step = t->plans[i];
    t->n_plans--;
    memmove(t->plans + i, t->plans + i + 1, (t->n_plans - i) * sizeof *t->plans);
    return step;
}

clt_status clt_trainer_plan(clt_trainer *t, clt_purpose purpose, clt_sizes sizes, clt_tensor *predicted, clt_step **step) {
    if (clt_state_store_moves(t->store) != t->moves) clt_trainer_drop_plans(t);
    t->moves = clt_state_store_moves(t->store);
    for (size_t i = 0; i < t->n_plans; i++) {
        clt_step *s = t->plans[i];
        if (s->purpose == purpose && s->sizes.batch == sizes.batch && s->sizes.length == sizes.length && s->predicted == predicted) {
            *step = take_plan(t, i);
            t->plans[t->n_plans++] = *step;
            return CLT_OK;
        }
    }
    if (t->n_plans == CLT_MOST_PLANS) clt_trainer_drop_plan(t, take_plan(t, 0));
    clt_status status = new_step(t, purpose, sizes, predicted, (outcome){.beside = t->n_plans > 0}, step);
    if (status == CLT_E_DEVICE_MEMORY && t->n_plans > 0) {
        clt_trainer_drop_plans(t);
        status = new_step(t, purpose, sizes, predicted, (outcome){.beside = false}, step);
    }
    if (status == CLT_E_DEVICE_MEMORY || status == CLT_E_SHAPE) return fail_plan(t, status, purpose, sizes);
    CLT_TRY(status);
    t->moves = clt_state_store_moves(t->store); /* the first plan settles where what it trains lies */
    t->plans[t->n_plans++] = *step;
    return CLT_OK;
}

clt_status clt_trainer_new_step(clt_trainer *t, clt_purpose purpose, clt_sizes sizes, clt_step **step) {
    return new_step(t, purpose, sizes, NULL, (outcome){.dry_run = false}, step);
}

clt_status clt_trainer_problems(clt_trainer *t, int64_t batch, clt_problem_list *problems, clt_step **step) {
    return new_step(t, CLT_PURPOSE_TRAIN, (clt_sizes){batch, t->graph->length}, NULL, (outcome){.problems = problems}, step);
}

clt_status clt_trainer_dry_run_step(clt_trainer *t, int64_t batch, clt_step **step) {
    return new_step(t, CLT_PURPOSE_TRAIN, (clt_sizes){batch, t->graph->length}, NULL, (outcome){.dry_run = true}, step);
}
