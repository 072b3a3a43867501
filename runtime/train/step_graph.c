/*
 * From the user's graph to the graph of a whole step: forward, backward, metrics,
 * clipping and the optimizer's update are nodes of one graph, compiled to one plan.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/train/trainer.h"

const clt_metric_names clt_train_metric_names = {"train.loss", "train.correct", "train.mse"};
const clt_metric_names clt_eval_metric_names = {"eval.loss", "eval.correct", "eval.mse"};

const char *clt_group_name(const char *what, int group, char text[64]) {
    snprintf(text, 64, "%s.%d", what, group);
    return text;
}

int clt_optimizer_states(const clt_train_options *options, const char *names[CLT_MAX_OPTIMIZER_STATES]) {
    if (options->optimizer == CLT_SGD) {
        names[0] = "momentum_buffer";
        return options->momentum > 0 ? 1 : 0;
    }
    names[0] = "exp_avg";
    names[1] = "exp_avg_sq";
    return 2;
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

/* ---- groups of parameters ---- */

void clt_groups_free(clt_group *groups, int n) {
    for (int i = 0; i < n; i++) {
        clt_free(groups[i].variables);
        clt_free(groups[i].offsets);
    }
    clt_free(groups);
}

/* Opens a new group if the variable does not fit in the last one's flat tensor: a buffer has a
 * largest size, and kernels count elements with 32 bits. */
static clt_status add_to_groups(clt_trainer *t, clt_variable *variable, int n_variables) {
    int64_t limit = CLT_MIN((int64_t)(clt_device_get_info(t->device)->max_buffer_bytes / sizeof(float)),
                            (int64_t)INT32_MAX - CLT_PACK_ALIGN);
    int64_t elements = (clt_shape_elements(&variable->shape) + CLT_PACK_ALIGN - 1) / CLT_PACK_ALIGN * CLT_PACK_ALIGN;
    clt_group *group = t->n_groups ? &t->groups[t->n_groups - 1] : NULL;
    if (!group || group->elements + elements > limit) {
        void *grown = clt_realloc(t->groups, (size_t)(t->n_groups + 1) * sizeof *t->groups);
        if (!grown) return clt_fail_memory((size_t)(t->n_groups + 1) * sizeof *t->groups);
        t->groups = grown;
        group = &t->groups[t->n_groups++];
        *group = (clt_group){0};
        group->variables = clt_calloc((size_t)n_variables, sizeof *group->variables);
        group->offsets = clt_calloc((size_t)n_variables, sizeof *group->offsets);
        if (!group->variables || !group->offsets) return clt_fail_memory((size_t)n_variables * sizeof *group->offsets);
    }
    group->variables[group->n] = variable;
    group->offsets[group->n++] = group->elements;
    group->elements += elements;
    return CLT_OK;
}

/* Which parameters the loss reaches is a fact of the graph: decided with the first plan. */
static clt_status make_groups(clt_trainer *t, clt_tensor *const *params, clt_tensor *const *grads, int n) {
    char name[64];
    if (t->groups) return CLT_OK;
    for (int i = 0; i < n; i++)
        if (grads[i]) CLT_TRY(add_to_groups(t, params[i]->variable, n));
    if (!t->n_groups) return clt_fail(CLT_E_INVALID, "the loss does not depend on any parameter");
    for (int g = 0; g < t->n_groups; g++)
        for (int i = 0; i < t->groups[g].n; i++)
            CLT_TRY(clt_store_place(t->store, t->groups[g].variables[i], clt_group_name("parameters", g, name),
                                    (size_t)t->groups[g].elements * sizeof(float),
                                    (size_t)t->groups[g].offsets[i] * sizeof(float)));
    return CLT_OK;
}

/* ---- metrics ---- */

static bool is_classifier(const clt_tensor *output, const clt_tensor *truth) {
    return output->dtype == CLT_F32 && truth->dtype == CLT_I32 && output->shape.rank == 2 && truth->shape.rank == 1 &&
           output->shape.dims[0] == truth->shape.dims[0];
}

static bool is_regression(const clt_tensor *output, const clt_tensor *truth) {
    return output->dtype == CLT_F32 && truth->dtype == CLT_F32 && clt_shape_equal(&output->shape, &truth->shape);
}

static clt_status add_metrics(clt_step *step, const clt_metric_names *names, clt_tensor *loss, clt_tensor *output,
                              clt_tensor *truth, target_list *targets) {
    clt_graph *g = step->graph;
    float samples = (float)step->batch;
    clt_tensor *value = clt_reshape(loss, (clt_shape){0});
    CLT_TRY(add_target(targets, clt_metric_add(clt_state(g, names->loss, CLT_F32, CLT_SHAPE(2)), value, samples)));
    if (!output || !truth) return CLT_OK;
    if (is_classifier(output, truth))
        return add_target(targets, clt_metric_correct(clt_state(g, names->correct, CLT_I32, CLT_SHAPE(1)), output, truth));
    if (is_regression(output, truth))
        return add_target(targets, clt_metric_add(clt_state(g, names->mse, CLT_F32, CLT_SHAPE(2)),
                                                  clt_mse_loss(output, truth), samples));
    return CLT_OK;
}

/* ---- backward and update ---- */

static clt_tensor *flat_state(clt_graph *g, const char *what, int group, int64_t elements) {
    char name[64];
    return clt_state(g, clt_group_name(what, group, name), CLT_F32, CLT_SHAPE(elements));
}

/* The gradients of a group in one flat tensor. */
static clt_tensor *pack_group(clt_graph *g, const clt_group *group, int index, clt_tensor *const *params,
                              clt_tensor *const *grads, int n) {
    clt_tensor **parts = clt_calloc((size_t)group->n, sizeof *parts);
    if (!parts) return clt_graph_fail(g, clt_fail_memory((size_t)group->n * sizeof *parts));
    for (int i = 0; i < group->n; i++)
        for (int k = 0; k < n; k++)
            if (params[k]->variable == group->variables[i]) parts[i] = grads[k];
    clt_tensor *flat = flat_state(g, "gradients", index, group->elements);
    clt_tensor *packed = clt_tensor_valid(flat) ? clt_pack(flat, parts, group->offsets, group->n) : flat;
    clt_free(parts);
    return packed;
}

static clt_update_attributes update_attributes(const clt_train_options *o) {
    return (clt_update_attributes){
        .clip = {.grad_scale = 1.0f / (float)o->accumulate,
                 .clip_value = o->clip_value > 0 ? o->clip_value : INFINITY,
                 .clip_norm = o->clip_norm > 0 ? o->clip_norm : INFINITY},
        .momentum = o->momentum,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .weight_decay = o->weight_decay,
        .nesterov = o->nesterov,
        .decoupled = o->optimizer == CLT_ADAMW,
    };
}

static clt_status add_update(clt_trainer *t, clt_step *step, clt_tensor **flat_grads, target_list *targets) {
    clt_graph *g = step->graph;
    clt_update_attributes at = update_attributes(&t->options);
    const clt_op *op = t->options.optimizer == CLT_SGD ? &clt_op_sgd : &clt_op_adam;
    const char *names[CLT_MAX_OPTIMIZER_STATES];
    int n_states = clt_optimizer_states(&t->options, names);
    clt_tensor *factor = clt_clip_scale(flat_grads, t->n_groups, at.clip);
    for (int i = 0; i < t->n_groups; i++) {
        clt_tensor *states[CLT_MAX_OPTIMIZER_STATES];
        for (int s = 0; s < n_states; s++) states[s] = flat_state(g, names[s], i, t->groups[i].elements);
        clt_tensor *params = flat_state(g, "parameters", i, t->groups[i].elements);
        CLT_TRY(add_target(targets, clt_update(op, at, params, flat_grads[i], step->hyper, factor, states, n_states)));
    }
    return CLT_OK;
}

/* Sums over micro-batches; the nodes after them are the second part of the plan. */
static clt_status add_accumulation(clt_trainer *t, clt_step *step, clt_tensor **flat_grads, clt_tensor **boundary,
                                   target_list *targets) {
    if (t->options.accumulate == 1) return CLT_OK;
    for (int i = 0; i < t->n_groups; i++) {
        clt_tensor *sum = flat_state(step->graph, "accumulated", i, t->groups[i].elements);
        flat_grads[i] = clt_accumulate(sum, flat_grads[i], step->hyper);
        CLT_TRY(add_target(targets, flat_grads[i]));
    }
    /* The next node made is the first of the update. A state serves as the mark. */
    *boundary = clt_state(step->graph, "update", CLT_F32, (clt_shape){0});
    return clt_graph_status(step->graph);
}

static clt_status add_backward(clt_trainer *t, clt_step *step, clt_tensor *loss, clt_tensor *const *params, int n,
                               clt_tensor **grads, clt_tensor **boundary, target_list *targets) {
    clt_graph *g = step->graph;
    clt_tensor *seed = clt_fill(g, loss->shape, 1.0f);
    CLT_TRY(clt_graph_status(g));
    CLT_TRY(clt_gradients(loss, seed, params, n, grads));
    CLT_TRY(make_groups(t, params, grads, n));
    step->hyper = clt_state(g, "hyper", CLT_F32, CLT_SHAPE(CLT_HYPER_COUNT));
    clt_tensor **flat_grads = clt_calloc((size_t)t->n_groups, sizeof *flat_grads);
    if (!flat_grads) return clt_fail_memory((size_t)t->n_groups * sizeof *flat_grads);
    for (int i = 0; i < t->n_groups; i++) flat_grads[i] = pack_group(g, &t->groups[i], i, params, grads, n);
    clt_status status = clt_graph_status(g);
    if (status == CLT_OK) status = add_accumulation(t, step, flat_grads, boundary, targets);
    if (status == CLT_OK) status = add_update(t, step, flat_grads, targets);
    clt_free(flat_grads);
    return status;
}

static clt_status add_training(clt_trainer *t, clt_step *step, clt_tensor *loss, clt_tensor **boundary,
                               target_list *targets) {
    clt_graph *g = step->graph;
    size_t most = g->n_nodes;
    clt_tensor **params = clt_calloc(most, sizeof *params), **grads = clt_calloc(most, sizeof *grads);
    clt_status status = params && grads ? CLT_OK : clt_fail_memory(most * sizeof *params);
    int n = 0;
    for (size_t i = 0; status == CLT_OK && i < most; i++)
        if (g->nodes[i]->kind == CLT_NODE_VARIABLE && g->nodes[i]->variable->trained) params[n++] = g->nodes[i];
    if (status == CLT_OK) status = add_backward(t, step, loss, params, n, grads, boundary, targets);
    clt_free(params);
    clt_free(grads);
    return status;
}

/* ---- steps ---- */

static void map_leaves(const clt_trainer *t, clt_step *step, clt_tensor *const *map) {
    for (int i = 0; i < t->n_inputs; i++) step->inputs[i] = map[t->inputs[i]->index];
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

static clt_status fill_step(clt_trainer *t, clt_step *step, clt_tensor *const *map, clt_tensor **boundary,
                            target_list *targets) {
    map_leaves(t, step, map);
    if (step->purpose == CLT_PURPOSE_PREDICT) {
        step->result = map[step->predicted->index];
        return add_target(targets, step->result);
    }
    bool training = step->purpose == CLT_PURPOSE_TRAIN;
    clt_tensor *loss = map[t->loss->index];
    clt_tensor *output = t->options.output ? map[t->options.output->index] : NULL;
    clt_tensor *truth = t->n_inputs ? step->inputs[t->n_inputs - 1] : NULL;
    CLT_TRY(add_metrics(step, training ? &clt_train_metric_names : &clt_eval_metric_names, loss, output, truth, targets));
    return training ? add_training(t, step, loss, boundary, targets) : CLT_OK;
}

/* What becomes of the graph: a plan, or a list of its problems. */
static clt_status compile_step(clt_trainer *t, clt_step *step, clt_tensor *predicted, clt_problem_list *problems) {
    clt_tensor *roots[2], **map = NULL, *boundary = NULL;
    target_list targets = {0};
    int n_roots = step_roots(t, step->purpose, predicted, roots);
    clt_status status;
    CLT_TRY_GOTO(clt_graph_clone(t->graph, roots, n_roots, step->batch, &step->graph, &map));
    CLT_TRY_GOTO(fill_step(t, step, map, &boundary, &targets));
    clt_plan_options options = {
        .device = t->device,
        .store = t->store,
        .graph = step->graph,
        .targets = targets.items,
        .n_targets = (int)targets.n,
        .training = step->purpose == CLT_PURPOSE_TRAIN,
        .boundary = boundary,
        .run = &t->run,
    };
    status = problems ? clt_plan_problems(&options, problems) : clt_plan_compile(&step->plan, &options);
fail:
    clt_free(map);
    clt_free(targets.items);
    return status;
}

void clt_step_destroy(clt_step *step) {
    if (!step) return;
    clt_plan_destroy(step->plan);
    clt_graph_destroy(step->graph);
    clt_free(step);
}

static clt_status new_step(clt_trainer *t, clt_purpose purpose, int64_t batch, clt_tensor *predicted,
                           clt_problem_list *problems, clt_step **step) {
    clt_step *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->purpose = purpose;
    s->batch = batch;
    s->predicted = predicted;
    clt_status status = compile_step(t, s, predicted, problems);
    if (status < 0) clt_step_destroy(s);
    else *step = s;
    return status;
}

clt_status clt_trainer_plan(clt_trainer *t, clt_purpose purpose, int64_t batch, clt_tensor *predicted, clt_step **step) {
    for (size_t i = 0; i < t->n_plans; i++) {
        clt_step *s = t->plans[i];
        if (s->purpose == purpose && s->batch == batch && s->predicted == predicted) {
            *step = s;
            return CLT_OK;
        }
    }
    CLT_TRY(clt_grow(&t->plans, &t->plans_capacity, t->n_plans, sizeof *t->plans));
    CLT_TRY(new_step(t, purpose, batch, predicted, NULL, step));
    t->plans[t->n_plans++] = *step;
    return CLT_OK;
}

clt_status clt_trainer_problems(clt_trainer *t, int64_t batch, clt_problem_list *problems, clt_step **step) {
    return new_step(t, CLT_PURPOSE_TRAIN, batch, NULL, problems, step);
}
