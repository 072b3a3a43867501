#include "runtime/exec/plan.h"

#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/tune/tune.h"
#include "runtime/exec/exchange.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/exec/passes/passes.h"
#include "runtime/exec/profile.h"
#include "runtime/exec/storage.h"
#include "runtime/exec/tune.h"

/* ---- structures ---- */

enum { INPUT_SLOTS = 2 };

/* An argument of a launch that reads an input. */
typedef struct input_use {
    size_t launch;
    int argument;
} input_use;

typedef struct plan_input {
    const clt_tensor *tensor;
    clt_staging *staging;
    clt_memory *bound; /* what the uses are set to */
    input_use *uses;
    size_t n_uses, uses_capacity;
} plan_input;

/* A launch with everything bound. */
typedef struct bound_launch {
    clt_kernel *kernel;
    int dims;
    size_t global[3], local[3];
    clt_launch_origin origin;
    bool exchanges; /* some begin or finish before it */
} bound_launch;

struct clt_plan {
    clt_device *device;
    clt_store *store;
    clt_graph *graph;     /* a copy of the one that was given: passes change it */
    const clt_graph *given;
    clt_tensor **copies;  /* by node of the given graph; NULL: not in this plan */
    bool *marks;          /* by node: part of this plan */
    clt_memory **memory;  /* by node; borrowed from slices, the store or inputs */
    clt_memory **slabs;
    size_t n_slabs;
    bool *poisoned; /* on a fenced device, by slab: overwritten before each run; else NULL */
    clt_memory **slices;  /* owned */
    size_t n_slices, slices_capacity;
    clt_memory **scratch; /* by scratch index; borrowed from slices */
    plan_input *inputs;
    size_t n_inputs;
    bound_launch *launches;
    clt_plan_item *items;
    size_t n_items;
    size_t n_launches, n_once, boundary; /* those run when it is made, and the second part's first */
    clt_exchanges exchanges;
    clt_kernel *set_kernel;
    double *watch; /* of launches that are waited for one by one; else NULL */
    int runs;
    bool updates; /* the last run came to launch what writes something that outlives it */
    clt_plan_facts facts;
};

/* ---- lowering ---- */

static clt_choice choose(const clt_plan_options *options, const clt_tensor *node) {
    clt_choice choice = {0};
    if (options->forced) return *options->forced;
    if (options->run) choice = clt_tune_run_choose(options->run, node, options->device);
    return choice.row ? choice : clt_backend_choose(node, options->device);
}

static clt_status lower_node(clt_plan *plan, clt_lowering *l, const clt_plan_options *options, const clt_tensor *node) {
    clt_choice choice = choose(options, node);
    size_t before = l->n_launches;
    CLT_TRY(choice.row ? clt_backend_lower_with(l, node, &choice) : clt_backend_lower(l, node));
    plan->items[plan->n_items++] = (clt_plan_item){node, choice, l->n_launches - before};
    return CLT_OK;
}

static clt_status lower(clt_plan *plan, const clt_plan_options *options, clt_lowering *l) {
    bool second = false;
    l->device = plan->device;
    l->training = options->training;
    plan->items = clt_calloc(plan->graph->n_nodes, sizeof *plan->items);
    if (!plan->items) return clt_fail_memory(plan->graph->n_nodes * sizeof *plan->items);
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const clt_tensor *node = plan->graph->nodes[i];
        if (!plan->marks[i] || node->kind != CLT_NODE_OP) continue;
        if (node->part == CLT_PART_SECOND && !second) {
            plan->boundary = l->n_launches;
            second = true;
        }
        CLT_TRY(lower_node(plan, l, options, node));
        if (clt_is_exchange(node)) CLT_TRY(clt_exchanges_add(&plan->exchanges, node, l->n_launches));
        if (node->part == CLT_PART_ONCE) plan->n_once = l->n_launches;
    }
    if (!second) plan->boundary = l->n_launches;
    plan->n_launches = l->n_launches;
    plan->facts.launches = plan->n_launches - plan->n_once;
    return CLT_OK;
}

/* ---- memory ---- */

static bool has_own_block(const clt_tensor *node) {
    return node->kind == CLT_NODE_OP && !node->storage;
}

/* One block a tensor with memory of its own, then one a scratch. block_of[node] is its index or -1. */
static clt_status make_blocks(const clt_plan *plan, const clt_lowering *l, clt_block **blocks, size_t *n_blocks,
                              int *block_of) {
    const clt_graph *graph = plan->graph;
    clt_block *b = clt_calloc(graph->n_nodes + l->n_scratch, sizeof *b);
    if (!b) return clt_fail_memory((graph->n_nodes + l->n_scratch) * sizeof *b);
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) block_of[i] = -1;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        if (!plan->marks[i]) continue;
        if (has_own_block(node)) {
            block_of[i] = (int)n;
            b[n++] = (clt_block){.bytes = clt_tensor_bytes(node), .first = (int)i, .last = (int)i};
        }
        const clt_tensor *root = clt_storage_of(node);
        if (node->part == CLT_PART_ONCE && block_of[i] >= 0) b[block_of[i]].first = 0;
        if ((node->kept || node->part == CLT_PART_ONCE) && block_of[root->index] >= 0)
            b[block_of[root->index]].last = (int)graph->n_nodes;
        for (int k = 0; k < node->n_inputs; k++) {
            int used = block_of[clt_storage_of(node->inputs[k])->index];
            if (used >= 0) b[used].last = CLT_MAX(b[used].last, (int)i);
        }
    }
    for (size_t s = 0; s < l->n_scratch; s++) {
        int at = l->scratch[s].node->index;
        b[n++] = (clt_block){.bytes = l->scratch[s].bytes, .first = at, .last = at};
    }
    *blocks = b;
    *n_blocks = n;
    return CLT_OK;
}

static clt_status make_slice(clt_plan *plan, clt_memory *parent, size_t offset, size_t bytes, clt_memory **slice) {
    CLT_TRY(clt_grow(&plan->slices, &plan->slices_capacity, plan->n_slices, sizeof *plan->slices));
    CLT_TRY(clt_memory_slice(parent, offset, bytes, slice));
    plan->slices[plan->n_slices++] = *slice;
    return CLT_OK;
}

/* Of a slab (-1: any) that cannot be had: says what is the largest in it. */
static clt_status fail_slab(const clt_plan *plan, const clt_lowering *l, const clt_block *blocks, size_t n_blocks,
                            const int *block_of, int slab, clt_status status) {
    size_t most = n_blocks, first_scratch = n_blocks - l->n_scratch;
    const clt_tensor *node = NULL;
    char label[64], shape[CLT_SHAPE_TEXT];
    for (size_t i = 0; i < n_blocks; i++)
        if ((slab < 0 || blocks[i].slab == slab) && (most == n_blocks || blocks[i].bytes > blocks[most].bytes)) most = i;
    for (size_t i = 0; i < plan->graph->n_nodes; i++)
        if (block_of[i] == (int)most) node = plan->graph->nodes[i];
    if (!node && most < n_blocks) node = l->scratch[most - first_scratch].node;
    if (!node) return status;
    return clt_fail_context(status, "%s %s%s, of %zu bytes%s: ", clt_tensor_label(node, label),
                            clt_shape_text(&node->shape, shape), most < first_scratch ? "" : " (while it is computed)",
                            blocks[most].bytes, slab < 0 ? "" : ", the largest of what is to lie there");
}

static clt_status make_slabs(clt_plan *plan, const size_t *slab_bytes, size_t n_slabs) {
    plan->slabs = clt_calloc(n_slabs + 1, sizeof *plan->slabs);
    if (!plan->slabs) return clt_fail_memory((n_slabs + 1) * sizeof *plan->slabs);
    for (size_t i = 0; i < n_slabs; i++) {
        CLT_TRY(clt_memory_create(plan->device, slab_bytes[i], &plan->slabs[i]));
        plan->n_slabs = i + 1;
    }
    return CLT_OK;
}

static clt_status bind_blocks(clt_plan *plan, const clt_lowering *l, const clt_block *blocks, size_t n_blocks,
                              const int *block_of) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        if (block_of[i] < 0) continue;
        const clt_block *block = &blocks[block_of[i]];
        CLT_TRY(make_slice(plan, plan->slabs[block->slab], block->offset, block->bytes, &plan->memory[i]));
    }
    plan->scratch = clt_calloc(l->n_scratch + 1, sizeof *plan->scratch);
    if (!plan->scratch) return clt_fail_memory((l->n_scratch + 1) * sizeof *plan->scratch);
    for (size_t s = 0; s < l->n_scratch; s++) {
        const clt_block *block = &blocks[n_blocks - l->n_scratch + s];
        CLT_TRY(make_slice(plan, plan->slabs[block->slab], block->offset, block->bytes, &plan->scratch[s]));
    }
    return CLT_OK;
}

/* On a fenced device: each block for itself, and what it is. */
static clt_status apart(clt_block *blocks, size_t n, size_t **slab_bytes, size_t *n_slabs) {
    *slab_bytes = clt_calloc(n + 1, sizeof **slab_bytes);
    if (!*slab_bytes) return clt_fail_memory(n * sizeof **slab_bytes);
    for (size_t i = 0; i < n; i++) {
        blocks[i].slab = i;
        blocks[i].offset = 0;
        (*slab_bytes)[i] = blocks[i].bytes;
    }
    *n_slabs = n;
    return CLT_OK;
}

static void name_slab(clt_plan *plan, size_t slab, const char *what, const clt_tensor *node) {
    char label[64], name[96];
    snprintf(name, sizeof name, "%s %s", what, clt_tensor_label(node, label));
    clt_memory_name(plan->slabs[slab], name);
    plan->poisoned[slab] = node->part != CLT_PART_ONCE;
}

static clt_status watch_blocks(clt_plan *plan, const clt_lowering *l, const clt_block *blocks, size_t n_blocks,
                               const int *block_of) {
    plan->poisoned = clt_calloc(n_blocks + 1, sizeof *plan->poisoned);
    if (!plan->poisoned) return clt_fail_memory(n_blocks);
    for (size_t i = 0; i < plan->graph->n_nodes; i++)
        if (block_of[i] >= 0) name_slab(plan, blocks[block_of[i]].slab, "the result of", plan->graph->nodes[i]);
    for (size_t s = 0; s < l->n_scratch; s++)
        name_slab(plan, blocks[n_blocks - l->n_scratch + s].slab, "scratch of", l->scratch[s].node);
    return CLT_OK;
}

/* `sketch`: it is only found out how much it is. */
static clt_status place_activations(clt_plan *plan, const clt_lowering *l, bool sketch) {
    clt_block *blocks = NULL;
    size_t *slab_bytes = NULL, n_blocks = 0, n_slabs = 0;
    int *block_of = clt_alloc(plan->graph->n_nodes * sizeof *block_of);
    clt_status status = CLT_OK;
    if (!block_of) {
        status = clt_fail_memory(plan->graph->n_nodes * sizeof *block_of);
        goto fail;
    }
    CLT_TRY_GOTO(make_blocks(plan, l, &blocks, &n_blocks, block_of));
    for (size_t i = 0; i < n_blocks; i++) plan->facts.sum_bytes += blocks[i].bytes;
    bool fenced = clt_device_fenced(plan->device);
    status = fenced ? apart(blocks, n_blocks, &slab_bytes, &n_slabs)
                    : clt_memory_plan(blocks, n_blocks, clt_device_alignment(plan->device),
                                      (size_t)clt_device_get_info(plan->device)->max_buffer_bytes, &slab_bytes, &n_slabs);
    if (status == CLT_E_DEVICE_MEMORY) fail_slab(plan, l, blocks, n_blocks, block_of, -1, status);
    if (status < 0) goto fail;
    for (size_t i = 0; i < n_slabs; i++) {
        plan->facts.planned_bytes += slab_bytes[i];
        plan->facts.largest_bytes = CLT_MAX(plan->facts.largest_bytes, slab_bytes[i]);
    }
    if (sketch) goto fail;
    status = make_slabs(plan, slab_bytes, n_slabs);
    if (status == CLT_E_DEVICE_MEMORY) fail_slab(plan, l, blocks, n_blocks, block_of, (int)plan->n_slabs, status);
    if (status < 0) goto fail;
    if (fenced) CLT_TRY_GOTO(watch_blocks(plan, l, blocks, n_blocks, block_of));
    status = bind_blocks(plan, l, blocks, n_blocks, block_of);
fail:
    clt_free(block_of);
    clt_free(blocks);
    clt_free(slab_bytes);
    return status;
}

static clt_status bind_input(clt_plan *plan, const clt_tensor *node, clt_memory **memory) {
    plan_input *input = &plan->inputs[plan->n_inputs];
    CLT_TRY(clt_staging_create(plan->device, clt_tensor_bytes(node), INPUT_SLOTS, &input->staging));
    plan->n_inputs++;
    plan->facts.input_bytes += clt_tensor_bytes(node);
    input->tensor = node;
    input->bound = *memory = clt_staging_memory(input->staging);
    return CLT_OK;
}

static clt_status bind_leaf(clt_plan *plan, const clt_tensor *node) {
    clt_memory **memory = &plan->memory[node->index];
    switch (node->kind) {
    case CLT_NODE_VARIABLE:
        return clt_store_variable(plan->store, node->variable, memory);
    case CLT_NODE_STATE:
        return clt_store_state(plan->store, node->name, clt_tensor_bytes(node), memory);
    default:
        return bind_input(plan, node, memory);
    }
}

/* Leaves first, then what lies in another tensor's memory. */
static clt_status bind_others(clt_plan *plan) {
    clt_graph *graph = plan->graph;
    plan->inputs = clt_calloc(graph->n_nodes, sizeof *plan->inputs);
    if (!plan->inputs) return clt_fail_memory(graph->n_nodes * sizeof *plan->inputs);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (plan->marks[i] && graph->nodes[i]->kind != CLT_NODE_OP) CLT_TRY(bind_leaf(plan, graph->nodes[i]));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clt_tensor *node = graph->nodes[i];
        if (!plan->marks[i] || !node->storage) continue;
        clt_memory *parent = plan->memory[node->storage->index];
        if (node->storage_offset == 0 && clt_tensor_elements(node) == clt_tensor_elements(node->storage))
            plan->memory[i] = parent;
        else
            CLT_TRY(make_slice(plan, parent, (size_t)node->storage_offset * clt_dtype_bytes(node->dtype),
                               clt_tensor_bytes(node), &plan->memory[i]));
    }
    return CLT_OK;
}

/* ---- what they would take ---- */

static clt_status expect_input(clt_plan *plan, const clt_tensor *node) {
    size_t bytes = clt_tensor_bytes(node);
    const clt_device_info *info = clt_device_get_info(plan->device);
    if (bytes > info->max_buffer_bytes)
        return clt_fail(CLT_E_DEVICE_MEMORY, "input \"%s\" of %zu bytes is larger than the device's largest buffer, %llu bytes",
                        node->name, bytes, (unsigned long long)info->max_buffer_bytes);
    plan->facts.input_bytes += bytes;
    plan->facts.input_memory += clt_staging_bytes(plan->device, bytes, INPUT_SLOTS);
    plan->facts.largest_bytes = CLT_MAX(plan->facts.largest_bytes, bytes);
    return CLT_OK;
}

static clt_status expect_leaf(clt_plan *plan, const clt_tensor *node) {
    if (node->kind == CLT_NODE_VARIABLE) return clt_store_expect_variable(plan->store, node->variable);
    if (node->kind == CLT_NODE_STATE) return clt_store_expect_state(plan->store, node->name, clt_tensor_bytes(node));
    return expect_input(plan, node);
}

static clt_status expect_leaves(clt_plan *plan) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++)
        if (plan->marks[i] && plan->graph->nodes[i]->kind != CLT_NODE_OP) CLT_TRY(expect_leaf(plan, plan->graph->nodes[i]));
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
    if (launch->fixed_group) return CLT_OK;
    size_t limit;
    CLT_TRY(clt_kernel_work_group_limit(kernel, &limit));
    shrink_groups(bound, limit);
    return CLT_OK;
}

/* Begun as the others' last, so that it is built with them; but it is launched apart from them, when a state is set. */
static clt_status build_with_set_kernel(clt_plan *plan, clt_lowering *l) {
    clt_launch_begin(l, "reference/set.cl", "ref_set_words", 1, 1);
    CLT_TRY(l->status);
    CLT_TRY(clt_lowering_build(l));
    return clt_launch_kernel(l, &l->launches[--l->n_launches], &plan->set_kernel);
}

/* The first launch that needs the exchange to be finished. */
static size_t first_use(const clt_plan *plan, const clt_exchange *exchange) {
    size_t i = exchange->begin;
    while (i < plan->n_launches && !clt_exchange_touches(exchange, plan->launches[i].origin.node)) i++;
    return i;
}

static clt_status bind_exchanges(clt_plan *plan, const clt_plan_options *options) {
    clt_exchanges *all = &plan->exchanges;
    for (size_t i = 0; i < all->n; i++) {
        clt_exchange *e = &all->items[i];
        CLT_TRY(clt_exchange_bind(e, plan->device, plan->memory[clt_exchange_whole(e)->index]));
        e->finish = first_use(plan, e);
    }
    if (options->all_or_nothing) clt_exchanges_join(all);
    for (size_t i = 0; i < all->n; i++)
        plan->launches[all->items[i].begin].exchanges = plan->launches[all->items[i].finish].exchanges = true;
    return CLT_OK;
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
    return bind_exchanges(plan, options);
}

/* ---- enqueueing ---- */

/* "conv2d #12 by native" */
static void describe(const void *origin, char text[CLT_ORIGIN_TEXT]) {
    const clt_launch_origin *o = origin;
    char label[64];
    snprintf(text, CLT_ORIGIN_TEXT, "%s by %s", clt_tensor_label(o->node, label), o->row);
}

/* What one launch does is said in its error. */
static clt_status launch_one(clt_plan *plan, const bound_launch *launch) {
    char text[CLT_ORIGIN_TEXT];
    plan->updates |= launch->origin.node->op->writes != 0;
    clt_device_set_origin(plan->device, &launch->origin);
    clt_status status = clt_kernel_enqueue(launch->kernel, launch->dims, launch->global, launch->local);
    if (status >= 0 || status == CLT_E_DEVICE_LOST) return status;
    describe(&launch->origin, text);
    return clt_fail_context(status, "%s: ", text);
}

/* By reading a value: there are drivers whose finish alone does not wait. */
static clt_status wait_for_launch(clt_plan *plan, size_t i) {
    unsigned char value[4];
    const clt_tensor *node = plan->launches[i].origin.node;
    CLT_TRY(clt_device_finish(plan->device));
    return clt_memory_read(plan->memory[node->index], 0, value, clt_dtype_bytes(node->dtype));
}

static clt_status launch_watched(clt_plan *plan, size_t i) {
    double start = clt_seconds();
    CLT_TRY(launch_one(plan, &plan->launches[i]));
    CLT_TRY(wait_for_launch(plan, i));
    plan->watch[i - plan->n_once] = clt_seconds() - start;
    return CLT_OK;
}

static clt_status enqueue_range(clt_plan *plan, clt_profile *profile, size_t first, size_t begin, size_t end,
                                clt_plan_part part) {
    /* Of no part: what is run once exchanges nothing. */
    int first_part = part & CLT_PLAN_FIRST ? CLT_PART_FIRST : CLT_PART_SECOND;
    int last_part = part & CLT_PLAN_SECOND ? CLT_PART_SECOND : CLT_PART_FIRST;
    for (size_t i = begin; i < end; i++) {
        bound_launch *launch = &plan->launches[i];
        if (launch->exchanges) CLT_TRY(clt_exchanges_step(&plan->exchanges, i, first_part, last_part));
        CLT_TRY(clt_profile_next(profile, &launch->origin, i > first ? &plan->launches[i - 1].origin : NULL));
        CLT_TRY(plan->watch ? launch_watched(plan, i) : launch_one(plan, launch));
    }
    return CLT_OK;
}

static clt_status end_range(clt_plan *plan, size_t end, clt_plan_part part) {
    int first_part = part & CLT_PLAN_FIRST ? CLT_PART_FIRST : CLT_PART_SECOND;
    int last_part = part & CLT_PLAN_SECOND ? CLT_PART_SECOND : CLT_PART_FIRST;
    CLT_TRY(clt_exchanges_step(&plan->exchanges, end, first_part, last_part));
    return clt_exchanges_finish(&plan->exchanges);
}

static clt_status enqueue(clt_plan *plan, clt_profile *profile, size_t begin, size_t end, clt_plan_part part) {
    clt_status status = enqueue_range(plan, profile, begin, begin, end, part);
    if (status >= 0) status = end_range(plan, end, part);
    clt_device_set_origin(plan->device, NULL);
    return status;
}

/* After an error: what was begun is ended. */
static clt_status abandon(clt_plan *plan, clt_status status) {
    if (status >= 0 || !plan->exchanges.n) return status;
    clt_text detail = {0};
    clt_text_add(&detail, "%s", clt_error_detail());
    clt_exchanges_abandon(&plan->exchanges, clt_text_data(&detail));
    clt_fail_again(status, clt_text_data(&detail));
    clt_text_free(&detail);
    return status;
}

/* ---- compiling ---- */

/* The copy that the passes may change. */
static clt_status copy_graph(clt_plan *plan, const clt_plan_options *options) {
    CLT_TRY(clt_graph_clone(options->graph, options->targets, options->n_targets, 0, &plan->graph, &plan->copies));
    for (int i = 0; i < options->n_targets; i++) plan->copies[options->targets[i]->index]->kept = true;
    for (size_t i = 0; options->boundary && i < options->graph->n_nodes; i++)
        if (plan->copies[i] && (int)i >= options->boundary->index) plan->copies[i]->part = CLT_PART_SECOND;
    return CLT_OK;
}

/* What is to be computed, and where its memory is: all that is known before rows are chosen. */
static clt_status prepare(clt_plan *plan, const clt_plan_options *options) {
    CLT_TRY(copy_graph(plan, options));
    if (options->unfused) CLT_TRY(clt_passes_run_unfused(plan->graph, plan->device, options->training));
    else if (!options->forced) CLT_TRY(clt_passes_run(plan->graph, plan->device, options->training));
    size_t n = plan->graph->n_nodes;
    plan->marks = clt_calloc(n, sizeof *plan->marks);
    plan->memory = clt_calloc(n, sizeof *plan->memory);
    if (!plan->marks || !plan->memory) return clt_fail_memory(n * sizeof *plan->memory);
    clt_graph_mark_kept(plan->graph, plan->marks);
    return clt_storage_assign(plan->graph, plan->marks, options->training);
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
    if (!options->run || options->run->begun) return CLT_OK;
    clt_status status = find_problems(plan, &problems);
    if (status == CLT_OK) clt_tune_on_first_use(plan->device, &problems);
    clt_problems_free(&problems);
    return status;
}

static clt_status compile(clt_plan *plan, const clt_plan_options *options, clt_lowering *l) {
    CLT_TRY(prepare(plan, options));
    CLT_TRY(tune(plan, options));
    CLT_TRY(lower(plan, options, l));
    CLT_TRY(place_activations(plan, l, false));
    CLT_TRY(bind_others(plan));
    CLT_TRY(build_kernels(plan, options, l));
    CLT_TRY(enqueue(plan, NULL, 0, plan->n_once, 0));
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
    clt_device_describe_by(p->device, describe);
    p->store = options->store;
    p->exchanges.comm = options->comm;
    p->given = options->graph;
    *plan = p;
    return CLT_OK;
}

clt_status clt_plan_problems(const clt_plan_options *options, clt_problem_list *problems) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_status status = prepare(p, options);
    if (status == CLT_OK) status = find_problems(p, problems);
    if (status == CLT_OK) {
        problems->graph = p->graph;
        p->graph = NULL;
    }
    clt_plan_destroy(p);
    return status;
}

clt_status clt_plan_compile(clt_plan **plan, const clt_plan_options *options) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_lowering l = {0};
    clt_status status = compile(p, options, &l);
    clt_lowering_free(&l);
    if (status < 0) clt_plan_destroy(p);
    else *plan = p;
    return status;
}

void clt_plan_watch(clt_plan *plan, double *seconds) {
    plan->watch = seconds;
}

clt_status clt_plan_sketch(clt_plan **plan, const clt_plan_options *options) {
    clt_plan *p;
    CLT_TRY(make(&p, options));
    clt_lowering l = {0};
    clt_status status = prepare(p, options);
    if (status == CLT_OK) status = lower(p, options, &l);
    if (status == CLT_OK) status = place_activations(p, &l, true);
    if (status == CLT_OK) status = expect_leaves(p);
    clt_lowering_free(&l);
    p->n_launches = 0; /* there are no kernels of them */
    if (status < 0) clt_plan_destroy(p);
    else *plan = p;
    return status;
}

const clt_plan_item *clt_plan_items(const clt_plan *plan, size_t *count) {
    *count = plan->n_items;
    return plan->items;
}

void clt_plan_destroy(clt_plan *plan) {
    if (!plan) return;
    clt_exchanges_free(&plan->exchanges);
    clt_device_finish(plan->device);
    for (size_t i = 0; plan->launches && i < plan->n_launches; i++) clt_kernel_destroy(plan->launches[i].kernel);
    clt_kernel_destroy(plan->set_kernel);
    for (size_t i = 0; i < plan->n_slices; i++) clt_memory_destroy(plan->slices[i]);
    for (size_t i = 0; i < plan->n_slabs; i++) clt_memory_destroy(plan->slabs[i]);
    for (size_t i = 0; i < plan->n_inputs; i++) {
        clt_staging_destroy(plan->inputs[i].staging);
        clt_free(plan->inputs[i].uses);
    }
    clt_free(plan->launches);
    clt_free(plan->items);
    clt_free(plan->slices);
    clt_free(plan->slabs);
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
    facts.waited_seconds = plan->exchanges.waited_seconds;
    return facts;
}

bool clt_plan_has_updated(const clt_plan *plan) {
    return plan->updates;
}

/* ---- running ---- */

static clt_status rebind(clt_plan *plan, plan_input *input) {
    clt_memory *memory = clt_staging_memory(input->staging);
    for (size_t i = 0; memory != input->bound && i < input->n_uses; i++)
        CLT_TRY(clt_kernel_set_memory(plan->launches[input->uses[i].launch].kernel, input->uses[i].argument, memory));
    input->bound = memory;
    return CLT_OK;
}

const clt_tensor *clt_plan_copy(const clt_plan *plan, const clt_tensor *tensor) {
    const clt_tensor *copy = tensor->graph == plan->given ? plan->copies[tensor->index] : NULL;
    return copy && plan->marks[copy->index] ? copy : NULL;
}

clt_status clt_plan_feed(clt_plan *plan, const clt_tensor *given, const void *data) {
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    for (size_t i = 0; i < plan->n_inputs; i++) {
        plan_input *input = &plan->inputs[i];
        if (input->tensor != tensor) continue;
        CLT_TRY(clt_staging_feed(input->staging, data, clt_tensor_bytes(tensor)));
        return rebind(plan, input);
    }
    return CLT_OK; /* nothing in this plan reads it */
}

clt_status clt_plan_set(clt_plan *plan, const clt_tensor *given, const void *data, size_t bytes) {
    const clt_tensor *state = clt_plan_copy(plan, given);
    uint32_t words[16] = {0};
    int32_t count = (int32_t)(bytes / sizeof words[0]);
    size_t one = 1;
    if (!state) return CLT_OK;
    if (bytes > sizeof words || bytes % sizeof words[0])
        return clt_fail(CLT_E_INVALID, "a state of %zu bytes is not set by a launch", bytes);
    memcpy(words, data, bytes);
    CLT_TRY(clt_kernel_set_memory(plan->set_kernel, 0, plan->memory[state->index]));
    for (int i = 0; i < 4; i++) CLT_TRY(clt_kernel_set_value(plan->set_kernel, 1 + i, words + 4 * i, 4 * sizeof words[0]));
    CLT_TRY(clt_kernel_set_value(plan->set_kernel, 5, &count, sizeof count));
    return clt_kernel_enqueue(plan->set_kernel, 1, &one, &one);
}

/* What is not written again shows: as NaN, and in the next run as a huge number (or -1, and one near the largest). */
static clt_status poison(clt_plan *plan) {
    unsigned char byte = plan->runs % 2 ? 0x7e : 0xff;
    for (size_t i = 0; i < plan->n_slabs; i++)
        if (plan->poisoned[i]) CLT_TRY(clt_memory_poison(plan->slabs[i], byte));
    return CLT_OK;
}

clt_status clt_plan_run(clt_plan *plan, clt_plan_part part) {
    clt_profile *profile = clt_device_profile(plan->device);
    if (plan->poisoned && part & CLT_PLAN_FIRST) CLT_TRY(poison(plan));
    clt_profile_begin_run(profile);
    plan->updates = false;
    CLT_TRY(abandon(plan, enqueue(plan, profile, part & CLT_PLAN_FIRST ? plan->n_once : plan->boundary,
                                  part & CLT_PLAN_SECOND ? plan->n_launches : plan->boundary, part)));
    clt_profile_end_run(profile);
    for (size_t i = 0; i < plan->n_inputs; i++) CLT_TRY(clt_staging_used(plan->inputs[i].staging));
    /* By the third run the first is done, for inputs have two slots: its kernels are compiled whole. */
    if (++plan->runs == 3) clt_device_save_programs(plan->device);
    return clt_device_flush(plan->device);
}

static clt_status look_at_leaves(clt_plan *plan, clt_plan_look *look, void *user) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const clt_tensor *node = plan->graph->nodes[i];
        clt_memory *memory = plan->memory[i];
        if (!plan->marks[i] || node->kind == CLT_NODE_OP) continue;
        for (size_t k = 0; k < plan->n_inputs; k++)
            if (plan->inputs[k].tensor == node) memory = plan->inputs[k].bound;
        CLT_TRY(look(user, node, memory, NULL));
    }
    return CLT_OK;
}

/* Other ranks run it to the end too, so that what `look` says is kept until then. */
static clt_status run_slowly(clt_plan *plan, clt_plan_look *look, void *user, clt_status *seen) {
    for (size_t i = plan->n_once, end; i < plan->n_launches; i = end) {
        const clt_launch_origin *origin = &plan->launches[i].origin;
        for (end = i + 1; end < plan->n_launches && plan->launches[end].origin.node == origin->node;) end++;
        CLT_TRY(enqueue_range(plan, NULL, i, i, end, CLT_PLAN_ALL));
        clt_device_set_origin(plan->device, NULL);
        CLT_TRY(clt_device_finish(plan->device));
        if (*seen >= 0) *seen = look(user, origin->node, plan->memory[origin->node->index], origin->row);
    }
    return end_range(plan, plan->n_launches, CLT_PLAN_ALL);
}

clt_status clt_plan_run_slowly(clt_plan *plan, clt_plan_look *look, void *user) {
    clt_status seen = look_at_leaves(plan, look, user);
    CLT_TRY(abandon(plan, run_slowly(plan, look, user, &seen)));
    for (size_t i = 0; i < plan->n_inputs; i++) CLT_TRY(clt_staging_used(plan->inputs[i].staging));
    return seen;
}

clt_status clt_plan_write(clt_plan *plan, const clt_tensor *given, const void *data, size_t bytes) {
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    if (!tensor || tensor->kind != CLT_NODE_OP || bytes != clt_tensor_bytes(tensor))
        return clt_fail(CLT_E_INVALID, "%s is not written in this plan", clt_node_name(given));
    return clt_memory_write(plan->memory[tensor->index], 0, data, bytes);
}

clt_status clt_plan_wait(clt_plan *plan, const clt_tensor *given) {
    unsigned char value[8];
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    if (!tensor) return clt_fail(CLT_E_INVALID, "%s is not in this plan", clt_node_name(given));
    CLT_TRY(clt_device_finish(plan->device));
    return clt_memory_read(plan->memory[tensor->index], 0, value, clt_dtype_bytes(tensor->dtype));
}

clt_status clt_plan_read(clt_plan *plan, const clt_tensor *given, void *data, size_t bytes) {
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    if (!tensor || bytes != clt_tensor_bytes(given)) {
        char label[64];
        return clt_fail(CLT_E_INVALID, "%s of %zu bytes is not read as %zu bytes from this plan",
                        clt_tensor_label(given, label), clt_tensor_bytes(given), bytes);
    }
    const clt_tensor *root = tensor->storage ? tensor->storage : tensor;
    for (size_t i = 0; i < plan->n_inputs; i++)
        if (plan->inputs[i].tensor == root) return clt_memory_read(plan->inputs[i].bound, 0, data, bytes);
    return clt_memory_read(plan->memory[tensor->index], 0, data, bytes);
}
