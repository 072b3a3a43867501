#include "runtime/exec/plan_parts.h"

#include <string.h>

#include "backends/tune/tune.h"
#include "runtime/exec/passes/passes.h"
#include "runtime/exec/storage.h"

/* ---- lowering ---- */

static clt_status choose(const clt_plan_options *options, const clt_tensor *node, clt_choice *choice) {
    *choice = options->forced ? *options->forced : (clt_choice){0};
    if (options->forced) return CLT_OK;
    if (options->run) CLT_TRY(clt_tune_run_choose(options->run, node, options->device, choice));
    if (!choice->row) *choice = clt_backend_choose(node, options->device);
    return CLT_OK;
}

static clt_status lower_node(clt_plan *plan, clt_lowering *l, const clt_plan_options *options, const clt_tensor *node) {
    clt_choice choice;
    size_t before = l->n_launches;
    CLT_TRY(choose(options, node, &choice));
    CLT_TRY(choice.row ? clt_backend_lower_with(l, node, &choice) : clt_backend_lower(l, node));
    plan->items[plan->n_items++] = (clt_plan_item){node, choice, l->n_launches - before};
    return CLT_OK;
}

/* Segments follow one another; some may have no launches. */
static void extend_segment(clt_plan *plan, int segment, size_t n_launches, size_t end) {
    if (segment == CLT_SEGMENT_ONCE) {
        plan->n_once = end;
        return;
    }
    while (plan->n_segments <= segment) plan->segments[plan->n_segments++] = (plan_segment){n_launches, n_launches};
    plan->segments[plan->n_segments - 1].end = end;
}

static clt_status lower(clt_plan *plan, const clt_plan_options *options, clt_lowering *l) {
    l->device = plan->device;
    l->training = options->training;
    plan->items = clt_calloc(plan->graph->n_nodes, sizeof *plan->items);
    plan->segments = clt_calloc((size_t)plan->graph->segment + 1, sizeof *plan->segments);
    if (!plan->items || !plan->segments) return clt_fail_memory(plan->graph->n_nodes * sizeof *plan->items);
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const clt_tensor *node = plan->graph->nodes[i];
        size_t before = l->n_launches;
        if (!plan->marks[i] || node->kind != CLT_NODE_OP) continue;
        CLT_TRY(lower_node(plan, l, options, node));
        if (clt_is_collective(node)) CLT_TRY(clt_collectives_add(&plan->collectives, node, l->n_launches));
        if (clt_is_carry(node)) CLT_TRY(clt_carries_add(&plan->carries, node, l->n_launches));
        extend_segment(plan, node->segment, before, l->n_launches);
    }
    extend_segment(plan, plan->graph->segment, l->n_launches, l->n_launches);
    plan->n_launches = l->n_launches;
    plan->facts.launches = plan->n_launches - plan->n_once;
    return CLT_OK;
}

/* ---- kernels ---- */

/* Inputs may lie elsewhere in each run: what reads them is written down. */
static clt_status note_use(clt_plan *plan, const clt_memory *memory, size_t launch, int argument) {
    for (size_t i = 0; i < plan->n_inputs; i++) {
        plan_input *input = &plan->inputs[i];
        if (input->bound != memory) continue;
        CLT_TRY(clt_grow(&input->uses, &input->uses_capacity, input->n_uses, sizeof *input->uses));
        input->uses[input->n_uses++] = (input_use){launch, argument};
    }
    return CLT_OK;
}

static clt_status bind_argument(clt_plan *plan, const clt_argument *argument, size_t launch, int index) {
    clt_kernel *kernel = plan->launches[launch].kernel;
    if (argument->kind == CLT_ARGUMENT_VALUE)
        return clt_kernel_set_value(kernel, index, argument->value, argument->value_bytes);
    if (argument->kind == CLT_ARGUMENT_SCRATCH)
        return clt_kernel_set_memory(kernel, index, plan->scratch[argument->scratch]);
    const clt_memory *memory = plan->memory[argument->tensor->index];
    CLT_TRY(note_use(plan, memory, launch, index));
    return clt_kernel_set_memory(kernel, index, memory);
}

/* A kernel may allow smaller groups than its device does. Kernels take any size: those that work
 * by group return from groups past the last. */
static void shrink_groups(bound_launch *launch, size_t limit) {
    while (launch->local[0] > limit) launch->local[0] = (launch->local[0] + 1) / 2;
    launch->global[0] = (launch->global[0] + launch->local[0] - 1) / launch->local[0] * launch->local[0];
}

static clt_status bind_launch(clt_plan *plan, clt_lowering *l, size_t index) {
    clt_launch *launch = &l->launches[index];
    bound_launch *bound = &plan->launches[index];
    clt_kernel *kernel;
    CLT_TRY(clt_launch_kernel(l, launch, &kernel));
    bound->kernel = kernel;
    bound->dims = launch->dims;
    bound->origin = (clt_launch_origin){.node = launch->node, .row = launch->row};
    memcpy(bound->global, launch->global, sizeof bound->global);
    memcpy(bound->local, launch->local, sizeof bound->local);
    for (int i = 0; i < launch->n_arguments; i++) CLT_TRY(bind_argument(plan, &launch->arguments[i], index, i));
    if (!launch->fixed_group) {
        size_t limit;
        CLT_TRY(clt_kernel_work_group_limit(kernel, &limit));
        shrink_groups(bound, limit);
    }
    clt_kernel_announce(kernel, bound->dims, bound->global, bound->local);
    return CLT_OK;
}

/* Begun as the others' last, so that it is built with them; but it is launched apart from them, when a state is set. */
static clt_status build_with_set_kernel(clt_plan *plan, clt_lowering *l) {
    clt_launch_begin(l, "reference/set.cl", "ref_set_words", 1, 1);
    CLT_TRY(l->status);
    CLT_TRY(clt_lowering_build(l));
    return clt_launch_kernel(l, &l->launches[--l->n_launches], &plan->set_kernel);
}

/* The first launch that needs the collective to be finished. */
static size_t first_use(const clt_plan *plan, const clt_collective *collective) {
    size_t i = collective->begin;
    while (i < plan->n_launches && !clt_collective_touches(collective, plan->launches[i].origin.node)) i++;
    return i;
}

static clt_status bind_collectives(clt_plan *plan, const clt_plan_options *options) {
    clt_collectives *all = &plan->collectives;
    for (size_t i = 0; i < all->n; i++) {
        clt_collective *e = &all->items[i];
        CLT_TRY(clt_collective_bind(e, plan->device, plan->memory[clt_collective_whole(e)->index]));
        e->finish = first_use(plan, e);
    }
    if (options->all_or_nothing) clt_collectives_join(all);
    for (size_t i = 0; i < all->n; i++)
        plan->launches[all->items[i].begin].collectives = plan->launches[all->items[i].finish].collectives = true;
    return CLT_OK;
}

/* Launches that the carry is ahead of. */
static size_t first_reader(const clt_plan *plan, const clt_carry *c) {
    for (size_t i = c->at; i < plan->n_launches; i++) {
        const clt_tensor *node = plan->launches[i].origin.node;
        for (int k = 0; k < node->n_inputs; k++)
            if (clt_storage_of(node->inputs[k]) == c->node) return i;
    }
    return SIZE_MAX;
}

/* Where the next goes to the host, before which this one is there. */
static size_t end_of(const clt_plan *plan, size_t carry) {
    const clt_carries *all = &plan->carries;
    for (size_t i = carry + 1; i < all->n; i++)
        if (all->items[i].back && all->items[i].node->segment == all->items[carry].node->segment) return all->items[i].at;
    return SIZE_MAX;
}

static void bind_carries(clt_plan *plan) {
    for (size_t i = 0; i < plan->carries.n; i++) {
        clt_carry *c = &plan->carries.items[i];
        c->host = plan->memory[c->node->inputs[0]->index];
        c->device = plan->memory[(c->back ? c->node->inputs[1] : c->node)->index];
        if (plan->carries.apart) c->end = c->back ? end_of(plan, i) : first_reader(plan, c);
        plan->launches[c->at].carries = true; /* there is room for one behind the last */
        if (c->end < plan->n_launches) plan->launches[c->end].carries = true;
    }
}

/* Trials set no states, and are to begin soon. */
static clt_status build_kernels(clt_plan *plan, const clt_plan_options *options, clt_lowering *l) {
    plan->launches = clt_calloc(l->n_launches + 1, sizeof *plan->launches);
    if (!plan->launches) return clt_fail_memory((l->n_launches + 1) * sizeof *plan->launches);
    CLT_TRY(options->forced ? clt_lowering_build(l) : build_with_set_kernel(plan, l));
    for (size_t i = 0; i < l->n_launches; i++) {
        clt_status status = bind_launch(plan, l, i);
        if (status < 0) return clt_fail_context(status, "%s: ", clt_node_name(l->launches[i].node));
    }
    clt_device_compile_beside(plan->device);
    bind_carries(plan);
    return bind_collectives(plan, options);
}

/* ---- compiling ---- */

/* The copy that the passes may change. */
static clt_status copy_graph(clt_plan *plan, const clt_plan_options *options) {
    CLT_TRY(clt_graph_clone(options->graph, options->targets, options->n_targets, (clt_sizes){0}, &plan->graph, &plan->copies));
    for (int i = 0; i < options->n_targets; i++) plan->copies[options->targets[i]->index]->kept = true;
    return CLT_OK;
}

/* An op writes all of its further results, read or not. */
static void mark_results(clt_plan *plan) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const clt_tensor *node = plan->graph->nodes[i];
        for (int k = 0; plan->marks[i] && node->op && k < node->op->more_outputs; k++) plan->marks[node->outputs[k]->index] = true;
    }
}

static clt_status check_names(const clt_plan_options *options) {
    const clt_settings *s = clt_device_settings(options->device);
    CLT_TRY(clt_backend_check_list(options->backends ? "options.backends" : "CLTRAIN_BACKENDS", s->backends));
    return clt_passes_check_list(options->passes ? "options.passes" : "CLTRAIN_PASSES", s->passes);
}

/* What goes to the host on a queue of its own has until the next does, or until the segment's end. */
static void find_ends(clt_plan *plan) {
    int next = 0, last = 0;
    for (int i = (int)plan->graph->n_nodes - 1; i >= 0 && plan->carries.apart; i--) {
        clt_tensor *node = plan->graph->nodes[i];
        if (!plan->marks[i]) continue;
        if (!last || node->segment != plan->graph->nodes[last]->segment) last = next = i;
        if (!clt_is_carry(node) || !node->op->writes) continue;
        node->until = next;
        next = i;
    }
}

/* Which nodes take part, and in whose memory they lie. */
static clt_status settle(clt_plan *plan, const clt_plan_options *options) {
    size_t n = plan->graph->n_nodes;
    clt_free(plan->marks);
    clt_free(plan->memory);
    plan->marks = clt_calloc(n, sizeof *plan->marks);
    plan->memory = clt_calloc(n, sizeof *plan->memory);
    if (!plan->marks || !plan->memory) return clt_fail_memory(n * sizeof *plan->memory);
    clt_graph_mark_kept(plan->graph, plan->marks);
    mark_results(plan);
    find_ends(plan);
    return clt_storage_assign(plan->graph, plan->marks, options->training);
}

/* Variables that lie in the host's memory are brought to the device. */
static clt_status bring(clt_plan *plan, const clt_plan_options *options) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        clt_tensor *node = plan->graph->nodes[i];
        node->in_host |= node->kind == CLT_NODE_VARIABLE && clt_state_store_is_in_host(plan->store, node->variable);
        plan->brings |= node->in_host && node->kind == CLT_NODE_VARIABLE;
    }
    return plan->brings ? clt_passes_bring(plan->graph, plan->device, options->training) : CLT_OK;
}

/* What is to be computed, and where its memory is: all that is known before rows are chosen. */
static clt_status prepare(clt_plan *plan, const clt_plan_options *options) {
    CLT_TRY(check_names(options));
    CLT_TRY(copy_graph(plan, options));
    if (options->unfused) CLT_TRY(clt_passes_run_unfused(plan->graph, plan->device, options->training));
    else if (!options->forced) CLT_TRY(clt_passes_run(plan->graph, plan->device, options->training));
    CLT_TRY(bring(plan, options));
    return settle(plan, options);
}

static bool may_recompute(const clt_plan_options *options) {
    return options->training && !options->unfused && !options->forced;
}

/* Some of forward is computed again in backward, or lies in the host's memory until then. */
static clt_status recompute(clt_plan *plan, const clt_plan_options *options) {
    clt_recompute_choice choice = {options->recompute, options->kept_bytes, options->away == CLT_AWAY_ALWAYS};
    if (choice.which == CLT_RECOMPUTE_AUTO && !choice.bytes) choice.which = CLT_RECOMPUTE_NONE;
    if ((choice.which == CLT_RECOMPUTE_NONE && !choice.away && !plan->brings) || !may_recompute(options)) return CLT_OK;
    clt_recompute_outcome made;
    CLT_TRY(clt_passes_recompute(plan->graph, plan->device, &choice, &made));
    plan->facts.recomputed = made.again;
    plan->facts.away = made.away;
    plan->facts.host_bytes = made.away_bytes;
    return settle(plan, options);
}

static clt_status find_problems(const clt_plan *plan, clt_problem_list *problems) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++)
        if (plan->marks[i] && plan->graph->nodes[i]->kind == CLT_NODE_OP)
            CLT_TRY(clt_problems_add(problems, plan->graph->nodes[i], plan->device));
    return CLT_OK;
}

/* Before the first plan of a run, what matters to it is tuned. A run that has begun is left as it is. */
static clt_status tune(const clt_plan *plan, const clt_plan_options *options) {
    clt_problem_list problems = {0};
    if (!options->tune || !options->run || options->run->begun) return CLT_OK;
    clt_status status = find_problems(plan, &problems);
    if (status == CLT_OK) options->tune(plan->device, &problems);
    clt_problems_free(&problems);
    return status;
}

/* Whether what does not fit may be made to, by computing again or in the host's memory. */
static bool may_fit(const clt_plan_options *options) {
    bool again = options->recompute == CLT_RECOMPUTE_AUTO && !options->kept_bytes;
    return may_recompute(options) && (again || options->away == CLT_AWAY_WHERE_NEEDED);
}

/* What activations may take. Without a limit of the settings the device itself tells whether there is enough: some have more than they say. */
static uint64_t room_of(const clt_plan *plan, const clt_plan_options *options) {
    return clt_device_is_limited(plan->device) || may_fit(options) ? clt_device_left_bytes(plan->device) : UINT64_MAX;
}

static clt_status compile(clt_plan *plan, const clt_plan_options *options, clt_lowering *l) {
    CLT_TRY(prepare(plan, options));
    CLT_TRY(tune(plan, options));
    CLT_TRY(recompute(plan, options));
    CLT_TRY(lower(plan, options, l));
    CLT_TRY(clt_plan_bind_leaves(plan));
    CLT_TRY(clt_plan_place(plan, l, room_of(plan, options), false));
    CLT_TRY(clt_plan_bind_views(plan));
    CLT_TRY(build_kernels(plan, options, l));
    CLT_TRY(clt_plan_enqueue_once(plan));
    clt_log_message(CLT_LOG_DEBUG, "plan: %zu launches, %.3f MB of activations in the place of %.3f", plan->facts.launches,
                    1e-6 * (double)plan->facts.planned_bytes, 1e-6 * (double)plan->facts.sum_bytes);
    return CLT_OK;
}

static clt_status make(clt_plan **plan, const clt_plan_options *options) {
    for (int i = 0; i < options->n_targets; i++)
        if (!clt_tensor_valid(options->targets[i])) {
            clt_status status = clt_graph_status(options->graph);
            return status < 0 ? status : clt_fail(CLT_E_INVALID, "what is to be computed is NULL");
        }
    CLT_TRY(clt_graph_status(options->graph));
    CLT_TRY(clt_tune_ready(options->device));
    clt_plan *p = clt_calloc(1, sizeof *p);
    if (!p) return clt_fail_memory(sizeof *p);
    p->device = options->device;
    clt_device_describe_by(p->device, clt_plan_describe);
    p->store = options->store;
    memcpy(p->collectives.comms, options->comms, sizeof p->collectives.comms);
    p->carries.device = p->device;
    p->carries.apart = clt_carries_are_apart(p->device);
    p->given = options->graph;
    p->resumed = options->resumed;
    *plan = p;
    return CLT_OK;
}

static clt_settings override_settings(const clt_plan_options *options) {
    return clt_device_override(options->device, &(clt_settings){.backends = options->backends, .passes = options->passes});
}

clt_status clt_plan_problems(const clt_plan_options *options, clt_problem_list *problems) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_settings own = override_settings(options);
    clt_status status = prepare(p, options);
    if (status == CLT_OK) status = find_problems(p, problems);
    if (status == CLT_OK) {
        problems->graph = p->graph;
        p->graph = NULL;
    }
    clt_device_override(options->device, &own);
    clt_plan_destroy(p);
    return status;
}

static clt_status compile_as(clt_plan **plan, const clt_plan_options *options) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_lowering l = {0};
    clt_settings own = override_settings(options);
    clt_status status = compile(p, options, &l);
    clt_device_override(options->device, &own);
    clt_lowering_free(&l);
    if (status < 0) clt_plan_destroy(p);
    else *plan = p;
    return status;
}

/* ---- what does not fit ---- */

/* What activations would take, and inputs, which are there already when those are placed. */
static clt_status ask(const clt_plan_options *options, uint64_t *bytes) {
    clt_plan *plan;
    CLT_TRY(clt_plan_dry_run(&plan, options));
    *bytes = plan->facts.new_bytes + plan->facts.input_memory;
    clt_plan_destroy(plan);
    return CLT_OK;
}

/* All of forward lies in the host's memory, or where that is not enough, what cannot be computed again. */
static clt_status send_away(clt_plan_options *options, uint64_t room) {
    uint64_t bytes;
    if (options->away != CLT_AWAY_WHERE_NEEDED) return CLT_OK;
    options->away = CLT_AWAY_ALWAYS;
    options->recompute = CLT_RECOMPUTE_NONE;
    CLT_TRY(ask(options, &bytes));
    if (bytes > room) options->recompute = CLT_RECOMPUTE_ALL;
    return CLT_OK;
}

/* The most that may be kept for backward, about, so that activations fit into the room; all that can be is computed again where nothing else does, and what
 * is kept lies in the host's memory where that does not. */
static clt_status find_kept(clt_plan_options *options, uint64_t room) {
    enum { HALVINGS = 7 };
    uint64_t low = 0, high, bytes;
    if (options->recompute != CLT_RECOMPUTE_AUTO || options->kept_bytes) {
        options->away = CLT_AWAY_ALWAYS;
        return CLT_OK;
    }
    options->recompute = CLT_RECOMPUTE_ALL;
    CLT_TRY(ask(options, &bytes));
    if (bytes > room) return send_away(options, room);
    options->recompute = CLT_RECOMPUTE_NONE;
    CLT_TRY(ask(options, &high));
    options->recompute = CLT_RECOMPUTE_AUTO;
    for (int i = 0; i < HALVINGS; i++) {
        options->kept_bytes = low + (high - low) / 2 + 1;
        CLT_TRY(ask(options, &bytes));
        if (bytes <= room) low = options->kept_bytes;
        else high = options->kept_bytes;
    }
    options->kept_bytes = low;
    if (!low) options->recompute = CLT_RECOMPUTE_ALL;
    return CLT_OK;
}

/* The plan that did not fit is gone, but for its parameters and states. */
static clt_status compile_fitting(clt_plan **plan, const clt_plan_options *given) {
    clt_plan_options options = *given;
    CLT_TRY(find_kept(&options, clt_device_left_bytes(given->device)));
    CLT_TRY(compile_as(plan, &options));
    clt_log_message(CLT_LOG_INFO, "the step does not fit into memory: %zu nodes of forward are computed again in backward, %zu lie in the host's memory until then, and activations take %.0f MiB",
                    (*plan)->facts.recomputed, (*plan)->facts.away, (double)(*plan)->facts.planned_bytes / (1 << 20));
    return CLT_OK;
}

clt_status clt_plan_compile(clt_plan **plan, const clt_plan_options *options) {
    clt_status status = compile_as(plan, options);
    return status == CLT_E_DEVICE_MEMORY && may_fit(options) ? compile_fitting(plan, options) : status;
}

void clt_plan_watch(clt_plan *plan, double *seconds) {
    plan->watch = seconds;
}

clt_status clt_plan_dry_run(clt_plan **plan, const clt_plan_options *options) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_settings own = override_settings(options);
    clt_status status = prepare(p, options);
    if (status == CLT_OK) status = recompute(p, options);
    if (status == CLT_OK) status = lower(p, options, &p->planned);
    if (status == CLT_OK) status = clt_plan_place(p, &p->planned, UINT64_MAX, true);
    if (status == CLT_OK) status = clt_plan_expect_leaves(p);
    clt_device_override(options->device, &own);
    p->n_launches = 0; /* there are no kernels of them */
    if (status < 0) clt_plan_destroy(p);
    else *plan = p;
    return status;
}

const clt_lowering *clt_plan_planned(const clt_plan *plan) {
    return &plan->planned;
}

const clt_plan_item *clt_plan_items(const clt_plan *plan, size_t *count) {
    *count = plan->n_items;
    return plan->items;
}

void clt_plan_destroy(clt_plan *plan) {
    if (!plan) return;
    clt_collectives_free(&plan->collectives);
    clt_carries_free(&plan->carries);
    clt_lowering_free(&plan->planned);
    clt_device_finish(plan->device);
    for (size_t i = 0; plan->launches && i < plan->n_launches; i++) clt_kernel_destroy(plan->launches[i].kernel);
    clt_kernel_destroy(plan->set_kernel);
    for (size_t i = 0; i < plan->n_slices; i++) clt_memory_destroy(plan->slices[i]);
    for (size_t i = 0; i < plan->n_slabs; i++) clt_memory_destroy(plan->slabs[i]);
    for (size_t i = 0; i < plan->n_away; i++) clt_memory_destroy(plan->away[i]);
    for (size_t i = 0; i < plan->n_inputs; i++) {
        clt_staging_destroy(plan->inputs[i].staging);
        clt_free(plan->inputs[i].uses);
    }
    clt_free(plan->launches);
    clt_free(plan->items);
    clt_free(plan->segments);
    clt_free(plan->slices);
    clt_free(plan->slabs);
    clt_free(plan->away);
    clt_free(plan->poisoned);
    clt_free(plan->scratch);
    clt_free(plan->inputs);
    clt_free(plan->memory);
    clt_free(plan->marks);
    clt_free(plan->copies);
    clt_graph_destroy(plan->graph);
    clt_free(plan);
}

clt_plan_facts clt_plan_get_facts(const clt_plan *plan) {
    clt_plan_facts facts = plan->facts;
    facts.waited_seconds = plan->collectives.waited_seconds;
    return facts;
}

bool clt_plan_has_updated(const clt_plan *plan) {
    return plan->updates;
}
