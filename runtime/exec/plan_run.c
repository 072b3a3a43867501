/* A plan at work. */
#include "runtime/exec/plan_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/storage.h"
#include "runtime/ops/ops.h"

/* ---- enqueueing ---- */

void clt_plan_describe(const void *origin, char text[CLT_ORIGIN_TEXT]) {
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
    clt_plan_describe(&launch->origin, text);
    return clt_fail_context(status, "%s: ", text);
}

/* By reading a value: there are drivers whose finish alone does not wait. */
static clt_status wait_for_launch(clt_plan *plan, size_t i) {
    unsigned char value[4];
    const clt_tensor *node = clt_node_result(plan->launches[i].origin.node);
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

/* Launches [begin, end) of a segment. `before`: what was enqueued last; NULL: nothing. */
static clt_status enqueue_range(clt_plan *plan, clt_observer *observer, const clt_launch_origin **before, size_t begin, size_t end,
                                int segment) {
    for (size_t i = begin; i < end; i++) {
        bound_launch *launch = &plan->launches[i];
        if (launch->carries) CLT_TRY(clt_carries_step(&plan->carries, i, segment));
        if (launch->collectives) CLT_TRY(clt_carries_finish(&plan->carries)); /* what goes to the host may be exchanged there */
        if (launch->collectives) CLT_TRY(clt_collectives_step(&plan->collectives, i, segment));
        if (observer) CLT_TRY(observer->launch(observer, &launch->origin, *before));
        CLT_TRY(plan->watch ? launch_watched(plan, i) : launch_one(plan, launch));
        *before = &launch->origin;
    }
    return CLT_OK;
}

/* `segments` NULL: all. */
static clt_status enqueue_segments(clt_plan *plan, clt_observer *observer, const int *segments, int n) {
    const clt_launch_origin *before = NULL;
    for (int k = 0; k < n; k++) {
        int s = segments ? segments[k] : k;
        CLT_TRY(enqueue_range(plan, observer, &before, plan->segments[s].begin, plan->segments[s].end, s));
        CLT_TRY(clt_carries_step(&plan->carries, plan->segments[s].end, s));
        CLT_TRY(clt_carries_finish(&plan->carries));
        CLT_TRY(clt_collectives_step(&plan->collectives, plan->segments[s].end, s));
    }
    return clt_collectives_finish(&plan->collectives);
}

clt_status clt_plan_enqueue_once(clt_plan *plan) {
    const clt_launch_origin *before = NULL;
    clt_status status = enqueue_range(plan, NULL, &before, 0, plan->n_once, CLT_SEGMENT_ONCE);
    clt_device_set_origin(plan->device, NULL);
    return status;
}

/* After an error: what was begun is ended. */
static clt_status abandon(clt_plan *plan, clt_status status) {
    if (status < 0) clt_carries_abandon(&plan->carries);
    if (status >= 0 || !plan->collectives.n) return status;
    clt_text detail = {0};
    clt_text_add(&detail, "%s", clt_error_detail());
    clt_collectives_abandon(&plan->collectives, status, clt_text_data(&detail));
    clt_fail_again(status, clt_text_data(&detail));
    clt_text_free(&detail);
    return status;
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

static clt_status run(clt_plan *plan, const int *segments, int n) {
    clt_observer *observer = clt_device_observer(plan->device);
    if (plan->poisoned && (!segments || segments[0] == 0)) CLT_TRY(poison(plan));
    if (observer) observer->begin_run(observer);
    plan->updates = false;
    clt_status status = abandon(plan, enqueue_segments(plan, observer, segments, n));
    clt_device_set_origin(plan->device, NULL);
    CLT_TRY(status);
    if (observer) observer->end_run(observer);
    for (size_t i = 0; i < plan->n_inputs; i++) CLT_TRY(clt_staging_used(plan->inputs[i].staging));
    /* By the third run the first is done, for inputs have two slots: its kernels are compiled whole. */
    if (++plan->runs == 3) clt_device_save_programs(plan->device);
    return clt_device_flush(plan->device);
}

clt_status clt_plan_run_segments(clt_plan *plan, const int *segments, int n) {
    for (int k = 0; k < n; k++)
        if (segments[k] < 0 || segments[k] >= plan->n_segments)
            return clt_fail(CLT_E_INVALID, "segment %d of a plan that has %d", segments[k], plan->n_segments);
    return n > 0 ? run(plan, segments, n) : CLT_OK;
}

clt_status clt_plan_run(clt_plan *plan) {
    return run(plan, NULL, plan->n_segments);
}

static clt_status look_at_leaves(clt_plan *plan, clt_plan_look *look, void *user) {
    for (size_t i = 0; i < plan->graph->n_nodes; i++) {
        const clt_tensor *node = plan->graph->nodes[i];
        clt_memory *memory = plan->memory[i];
        if (!plan->marks[i] || !clt_tensor_is_leaf(node)) continue;
        for (size_t k = 0; k < plan->n_inputs; k++)
            if (plan->inputs[k].tensor == node) memory = plan->inputs[k].bound;
        CLT_TRY(look(user, node, memory, NULL));
    }
    return CLT_OK;
}

/* What other ranks gave their parts of is there later than what its own launches gave. */
static clt_status look_at_arrived(clt_plan *plan, clt_plan_look *look, void *user, clt_status *seen) {
    const char *row;
    CLT_TRY(clt_device_finish(plan->device));
    for (const clt_tensor *node; (node = clt_collectives_arrived(&plan->collectives, &row));) {
        const clt_tensor *result = clt_node_result(node);
        if (*seen >= 0) *seen = look(user, result, plan->memory[result->index], row);
    }
    return CLT_OK;
}

/* One node after the other. Other ranks run it to the end too, so that what `look` says is kept until then. */
static clt_status run_segment_slowly(clt_plan *plan, int segment, clt_plan_look *look, void *user, clt_status *seen) {
    const clt_launch_origin *before = NULL;
    size_t segment_end = plan->segments[segment].end;
    for (size_t i = plan->segments[segment].begin, end; i < segment_end; i = end) {
        const clt_launch_origin *origin = &plan->launches[i].origin;
        for (end = i + 1; end < segment_end && plan->launches[end].origin.node == origin->node;) end++;
        CLT_TRY(enqueue_range(plan, NULL, &before, i, end, segment));
        clt_device_set_origin(plan->device, NULL);
        CLT_TRY(look_at_arrived(plan, look, user, seen));
        const clt_tensor *result = clt_node_result(origin->node);
        if (clt_collectives_await(&plan->collectives, origin->node, origin->row)) continue;
        if (*seen >= 0) *seen = look(user, result, plan->memory[result->index], origin->row);
    }
    CLT_TRY(clt_carries_step(&plan->carries, segment_end, segment));
    CLT_TRY(clt_carries_finish(&plan->carries));
    CLT_TRY(clt_collectives_step(&plan->collectives, segment_end, segment));
    return look_at_arrived(plan, look, user, seen);
}

static clt_status run_slowly(clt_plan *plan, clt_plan_look *look, void *user, clt_status *seen) {
    for (int s = 0; s < plan->n_segments; s++) CLT_TRY(run_segment_slowly(plan, s, look, user, seen));
    CLT_TRY(clt_collectives_finish(&plan->collectives));
    return look_at_arrived(plan, look, user, seen);
}

clt_status clt_plan_run_slowly(clt_plan *plan, clt_plan_look *look, void *user) {
    clt_status seen = look_at_leaves(plan, look, user);
    CLT_TRY(abandon(plan, run_slowly(plan, look, user, &seen)));
    for (size_t i = 0; i < plan->n_inputs; i++) CLT_TRY(clt_staging_used(plan->inputs[i].staging));
    return seen;
}

clt_status clt_plan_write(clt_plan *plan, const clt_tensor *given, const void *data, size_t bytes) {
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    if (!tensor || clt_tensor_is_leaf(tensor) || bytes != clt_tensor_bytes(tensor))
        return clt_fail(CLT_E_INVALID, "%s is not written in this plan", clt_node_name(given));
    return clt_memory_write(plan->memory[tensor->index], 0, data, bytes);
}

clt_memory *clt_plan_memory(clt_plan *plan, const clt_tensor *given) {
    const clt_tensor *tensor = clt_plan_copy(plan, given);
    return tensor && !clt_tensor_is_leaf(tensor) ? plan->memory[tensor->index] : NULL;
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
