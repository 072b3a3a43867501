/* Where the tensors of a plan lie. */
#include "runtime/exec/plan_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/memory_plan.h"
#include "runtime/exec/storage.h"

/* ---- memory ---- */

static bool has_own_block(const clt_tensor *node) {
    return !clt_tensor_is_leaf(node) && !node->storage && !node->unread;
}

/* Whether its memory is read after a run: what is updated in place is a target for its effect. */
static bool outlives_run(const clt_tensor *node) {
    bool in_place = node->kind == CLT_NODE_OP && node->op->is_view && node->op->writes;
    return node->segment == CLT_SEGMENT_ONCE || (node->kept && !in_place);
}

/* In which what is written there is so first. */
static int root_segment(const clt_tensor *node) {
    return clt_storage_of(node)->segment;
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
            b[n++] = (clt_block){.bytes = clt_tensor_bytes(node), .first = node->kind == CLT_NODE_OUTPUT ? node->inputs[0]->index : (int)i, .last = (int)i};
        }
        const clt_tensor *root = clt_storage_of(node);
        if (node->segment == CLT_SEGMENT_ONCE && block_of[i] >= 0) b[block_of[i]].first = 0;
        if (outlives_run(node) && block_of[root->index] >= 0) {
            b[block_of[root->index]].last = (int)graph->n_nodes;
            b[block_of[root->index]].stays = true;
        }
        for (int k = 0; k < node->n_inputs; k++) {
            int used = block_of[clt_storage_of(node->inputs[k])->index];
            if (used < 0) continue;
            b[used].last = CLT_MAX(b[used].last, CLT_MAX((int)i, node->until));
            b[used].stays |= plan->resumed && node->segment != root_segment(node->inputs[k]);
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

/* Memory of other plans serves, but for what stays. `found`: by slab, NULL where there is none, and memory is to be made. */
static void find_shared(clt_plan *plan, const clt_slab *slabs, size_t n_slabs, clt_memory **found) {
    for (size_t i = 0; i < n_slabs; i++) {
        found[i] = slabs[i].stays ? NULL : clt_memory_find_shared(plan->device, slabs[i].bytes, found, i);
        if (!found[i]) plan->facts.new_bytes += slabs[i].bytes;
        plan->facts.planned_bytes += slabs[i].bytes;
        plan->facts.largest_bytes = CLT_MAX(plan->facts.largest_bytes, slabs[i].bytes);
    }
}

/* `at`: the one that cannot be had. */
static clt_status make_slabs(clt_plan *plan, const clt_slab *slabs, size_t n_slabs, clt_memory **found, size_t *at) {
    plan->slabs = found;
    plan->n_slabs = n_slabs;
    for (size_t i = 0; i < n_slabs; i++)
        if (found[i]) clt_memory_share(found[i]);
    for (size_t i = *at = 0; i < n_slabs; *at = ++i)
        if (!found[i]) CLT_TRY((slabs[i].stays ? clt_memory_create : clt_memory_create_shared)(plan->device, slabs[i].bytes, &found[i]));
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

/* On a device with red zones: each block for itself, and what it is. */
static clt_status apart(clt_block *blocks, size_t n, clt_slab **slabs, size_t *n_slabs) {
    *slabs = clt_calloc(n + 1, sizeof **slabs);
    if (!*slabs) return clt_fail_memory(n * sizeof **slabs);
    for (size_t i = 0; i < n; i++) {
        blocks[i].slab = i;
        blocks[i].offset = 0;
        (*slabs)[i] = (clt_slab){blocks[i].bytes, true};
    }
    *n_slabs = n;
    return CLT_OK;
}

static void name_slab(clt_plan *plan, size_t slab, const char *what, const clt_tensor *node) {
    char label[64], name[96];
    snprintf(name, sizeof name, "%s %s", what, clt_tensor_label(node, label));
    clt_memory_name(plan->slabs[slab], name);
    plan->poisoned[slab] = node->segment != CLT_SEGMENT_ONCE;
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

static clt_status place(clt_plan *plan, clt_block *blocks, size_t n_blocks, clt_slab **slabs, size_t *n_slabs) {
    if (clt_device_has_redzones(plan->device)) return apart(blocks, n_blocks, slabs, n_slabs);
    return clt_memory_plan(blocks, n_blocks, clt_device_alignment(plan->device),
                           (size_t)clt_device_get_info(plan->device)->max_buffer_bytes, slabs, n_slabs);
}

clt_status clt_plan_place(clt_plan *plan, const clt_lowering *l, uint64_t room, bool dry_run) {
    clt_block *blocks = NULL;
    clt_slab *slabs = NULL;
    clt_memory **found = NULL;
    size_t n_blocks = 0, n_slabs = 0, at;
    int *block_of = clt_alloc(plan->graph->n_nodes * sizeof *block_of);
    clt_status status = CLT_OK;
    if (!block_of) {
        status = clt_fail_memory(plan->graph->n_nodes * sizeof *block_of);
        goto fail;
    }
    CLT_TRY_GOTO(make_blocks(plan, l, &blocks, &n_blocks, block_of));
    for (size_t i = 0; i < n_blocks; i++) plan->facts.sum_bytes += blocks[i].bytes;
    status = place(plan, blocks, n_blocks, &slabs, &n_slabs);
    if (status == CLT_E_DEVICE_MEMORY) fail_slab(plan, l, blocks, n_blocks, block_of, -1, status);
    if (status < 0) goto fail;
    found = clt_calloc(n_slabs + 1, sizeof *found);
    if (!found) status = clt_fail_memory((n_slabs + 1) * sizeof *found);
    if (status < 0) goto fail;
    find_shared(plan, slabs, n_slabs, found);
    if (dry_run) goto fail;
    if (plan->facts.new_bytes > room)
        status = clt_fail(CLT_E_DEVICE_MEMORY, "%s: activations take %llu bytes, and there is room for %llu", clt_device_get_info(plan->device)->name,
                          (unsigned long long)plan->facts.new_bytes, (unsigned long long)room);
    if (status < 0) goto fail;
    status = make_slabs(plan, slabs, n_slabs, found, &at);
    found = NULL; /* the plan's */
    if (status == CLT_E_DEVICE_MEMORY) fail_slab(plan, l, blocks, n_blocks, block_of, (int)at, status);
    if (status < 0) goto fail;
    if (clt_device_has_redzones(plan->device)) CLT_TRY_GOTO(watch_blocks(plan, l, blocks, n_blocks, block_of));
    status = bind_blocks(plan, l, blocks, n_blocks, block_of);
fail:
    clt_free(found);
    clt_free(block_of);
    clt_free(blocks);
    clt_free(slabs);
    return status;
}

static clt_status bind_input(clt_plan *plan, const clt_tensor *node, clt_memory **memory) {
    plan_input *input = &plan->inputs[plan->n_inputs];
    char label[64], shape[CLT_SHAPE_TEXT];
    clt_status status = clt_staging_create(plan->device, clt_tensor_bytes(node), INPUT_SLOTS, &input->staging);
    if (status < 0)
        return clt_fail_context(status, "%s %s, of %zu bytes: ", clt_tensor_label(node, label), clt_shape_text(&node->shape, shape), clt_tensor_bytes(node));
    plan->n_inputs++;
    plan->facts.input_bytes += clt_tensor_bytes(node);
    input->tensor = node;
    input->bound = *memory = clt_staging_memory(input->staging);
    return CLT_OK;
}

/* Nobody reads it before it is written. */
static clt_status bind_away(clt_plan *plan, const clt_tensor *node, clt_memory **memory) {
    CLT_TRY(clt_memory_create_host(plan->device, clt_tensor_bytes(node), clt_state_store_folder(plan->store), memory));
    plan->away[plan->n_away++] = *memory;
    return CLT_OK;
}

static clt_status bind_leaf(clt_plan *plan, const clt_tensor *node) {
    clt_memory **memory = &plan->memory[node->index];
    switch (node->kind) {
    case CLT_NODE_VARIABLE:
        return clt_state_store_variable(plan->store, node->variable, memory);
    case CLT_NODE_STATE:
        if (node->of_plan) return bind_away(plan, node, memory);
        return (node->in_host ? clt_state_store_get_host : clt_state_store_get)(plan->store, node->name, clt_tensor_bytes(node), memory);
    default:
        return bind_input(plan, node, memory);
    }
}

clt_status clt_plan_bind_leaves(clt_plan *plan) {
    clt_graph *graph = plan->graph;
    plan->inputs = clt_calloc(graph->n_nodes, sizeof *plan->inputs);
    plan->away = clt_calloc(plan->facts.away + 1, sizeof *plan->away);
    if (!plan->inputs || !plan->away) return clt_fail_memory(graph->n_nodes * sizeof *plan->inputs);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (plan->marks[i] && clt_tensor_is_leaf(graph->nodes[i])) CLT_TRY(bind_leaf(plan, graph->nodes[i]));
    return CLT_OK;
}

clt_status clt_plan_bind_views(clt_plan *plan) {
    clt_graph *graph = plan->graph;
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
    if (node->kind == CLT_NODE_VARIABLE) return clt_state_store_expect_variable(plan->store, node->variable);
    if (node->of_plan) return CLT_OK;
    if (node->kind == CLT_NODE_STATE) return (node->in_host ? clt_state_store_expect_host : clt_state_store_expect)(plan->store, node->name, clt_tensor_bytes(node));
    return expect_input(plan, node);
}

clt_status clt_plan_expect_leaves(clt_plan *plan) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++)
        if (plan->marks[i] && clt_tensor_is_leaf(plan->graph->nodes[i])) CLT_TRY(expect_leaf(plan, plan->graph->nodes[i]));
    return CLT_OK;
}
