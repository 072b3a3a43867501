/*
 * The optimizer as nodes of the graph. Parameters, gradients and optimizer state
 * are flat tensors that hold many parameters one after the other, so that an
 * update is one launch however many there are.
 */
#include <math.h>
#include <string.h>

#include "runtime/ops/ops.h"

/* ---- pack: many gradients in one flat tensor ---- */

static clt_status infer_pack(clt_tensor *node) {
    const clt_pack_attributes *at = node->attributes;
    const clt_shape *flat = &node->inputs[0]->shape;
    for (int i = 0; i < at->n; i++) {
        if (node->inputs[i + 1]->dtype != node->inputs[0]->dtype) return clt_fail(CLT_E_DTYPE, "part %d is not of the flat tensor's type", i);
        int64_t end = at->offsets[i] + clt_tensor_elements(node->inputs[i + 1]);
        if (at->offsets[i] % CLT_PACK_ALIGN || at->offsets[i] < 0 || end > flat->dims[0])
            return clt_fail(CLT_E_SHAPE, "part %d lies outside the flat tensor", i);
    }
    node->shape = *flat;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

static void pack_free(void *attributes) {
    clt_free(((clt_pack_attributes *)attributes)->offsets);
}

static clt_status pack_copy(void *attributes) {
    clt_pack_attributes *at = attributes;
    size_t bytes = (size_t)at->n * sizeof *at->offsets;
    int64_t *offsets = clt_alloc(bytes);
    if (!offsets) return clt_fail_memory(bytes);
    memcpy(offsets, at->offsets, bytes);
    at->offsets = offsets;
    return CLT_OK;
}

/* Parts that were written where they belong are not copied. */
static clt_cost pack_cost(const clt_tensor *node) {
    double bytes = 0;
    const clt_tensor *flat = node->inputs[0];
    for (int i = 1; i < node->n_inputs; i++)
        if (node->inputs[i]->storage != (flat->storage ? flat->storage : flat)) bytes += 2 * clt_tensor_cost_bytes(node->inputs[i]);
    return (clt_cost){0, bytes};
}

static void write_offsets(const void *value, clt_text *text) {
    const clt_pack_attributes *at = value;
    for (int i = 0; i < at->n; i++) clt_text_add(text, "%s%lld", i ? " " : "", (long long)at->offsets[i]);
}

static const clt_attribute pack_schema[] = {
    {.name = "offsets", .type = CLT_ATTRIBUTE_OPAQUE, .bytes = sizeof(clt_pack_attributes), .write = write_offsets}, {0}};

const clt_op clt_op_pack = {
    .name = "pack",
    .attributes_bytes = sizeof(clt_pack_attributes),
    .schema = pack_schema,
    .cost = pack_cost,
    .infer = infer_pack,
    .attributes_free = pack_free,
    .attributes_copy = pack_copy,
    .is_view = true,
    .writes = 1,
};

clt_tensor *clt_pack(clt_tensor *flat, clt_tensor *const *parts, const int64_t *offsets, int n) {
    clt_tensor **inputs = clt_alloc(((size_t)n + 1) * sizeof *inputs);
    if (!inputs) return clt_graph_fail(flat->graph, clt_fail_memory(((size_t)n + 1) * sizeof *inputs));
    inputs[0] = flat;
    memcpy(inputs + 1, parts, (size_t)n * sizeof *parts);
    clt_pack_attributes at = {(int64_t *)(uintptr_t)offsets, n};
    clt_tensor *node = clt_node(NULL, &clt_op_pack, &at, inputs, n + 1);
    clt_free(inputs);
    return node;
}

/* ---- sums over micro-batches ---- */

static clt_status infer_first(clt_tensor *node) {
    node->shape = node->inputs[0]->shape;
    node->dtype = node->inputs[0]->dtype;
    return CLT_OK;
}

const clt_op clt_op_accumulate = {
    .name = "accumulate", .infer = infer_first, .is_view = true, .writes = 1, .operations = 2};

clt_tensor *clt_accumulate(clt_tensor *acc, clt_tensor *x, clt_tensor *hyper) {
    return clt_node(NULL, &clt_op_accumulate, NULL, (clt_tensor *[]){acc, x, hyper}, 3);
}

/* ---- clipping, and the scale that comes before it ---- */

const clt_op clt_op_hyper_scale = {.name = "hyper_scale", .infer = infer_first, .is_view = true, .writes = 1};

clt_tensor *clt_hyper_scale(clt_tensor *hyper, clt_tensor *samples) {
    return clt_node(NULL, &clt_op_hyper_scale, NULL, (clt_tensor *[]){hyper, samples}, 2);
}

const clt_op clt_op_hyper_unscale = {.name = "hyper_unscale", .infer = infer_first, .is_view = true, .writes = 1};
const clt_op clt_op_loss_scale = {.name = "loss_scale", .infer = infer_first, .is_view = true, .writes = 1};

clt_tensor *clt_hyper_unscale(clt_tensor *hyper, clt_tensor *loss_scale) {
    return clt_node(NULL, &clt_op_hyper_unscale, NULL, (clt_tensor *[]){hyper, loss_scale}, 2);
}

clt_tensor *clt_loss_scale(clt_tensor *loss_scale, clt_tensor *factor) {
    return clt_node(NULL, &clt_op_loss_scale, NULL, (clt_tensor *[]){loss_scale, factor}, 2);
}

static clt_status infer_scalar(clt_tensor *node) {
    node->shape = (clt_shape){0};
    node->dtype = CLT_F32;
    return CLT_OK;
}

#define CLIP_ATTRIBUTES                                                     \
    CLT_ATTRIBUTE(clt_clip_attributes, grad_scale, FLOAT, .usual = 1),            \
        CLT_ATTRIBUTE(clt_clip_attributes, clip_value, FLOAT, .usual = INFINITY), \
        CLT_ATTRIBUTE(clt_clip_attributes, clip_norm, FLOAT, .usual = INFINITY),  \
        CLT_ATTRIBUTE(clt_clip_attributes, guarded, BOOL)
static const clt_attribute clip_schema[] = {CLIP_ATTRIBUTES, {0}};

static const clt_attribute guard_schema[] = {
    CLT_ATTRIBUTE(clt_guard_attributes, clip_norm, FLOAT, .usual = INFINITY),
    CLT_ATTRIBUTE(clt_guard_attributes, rest1, FLOAT),
    CLT_ATTRIBUTE(clt_guard_attributes, rest2, FLOAT),
    CLT_ATTRIBUTE(clt_guard_attributes, stops, BOOL),
    {0},
};

#define CLIP .attributes_bytes = sizeof(clt_clip_attributes), .schema = clip_schema
const clt_op clt_op_norm_squared = {.name = "norm_squared", CLIP, .infer = infer_scalar, .operations = 3};
const clt_op clt_op_clip_scale = {.name = "clip_scale", CLIP, .infer = infer_scalar};

/* hyper is written too: its place among the nodes is before the updates that read it. */
const clt_op clt_op_guard = {.name = "guard",
                             .attributes_bytes = sizeof(clt_guard_attributes),
                             .schema = guard_schema,
                             .infer = infer_scalar,
                             .writes = 1u << 1 | 1u << 2};
const clt_op clt_op_clear_if_skipped = {.name = "clear_if_skipped", .infer = infer_first, .is_view = true, .writes = 1};

clt_tensor *clt_clear_if_skipped(clt_tensor *state, clt_tensor *factor) {
    return clt_node(NULL, &clt_op_clear_if_skipped, NULL, (clt_tensor *[]){state, factor}, 2);
}

clt_tensor *clt_clip_scale(clt_tensor *const *grads, int n, clt_tensor *hyper, const clt_among *parts, clt_clip_attributes attributes,
                           clt_tensor *record, clt_guard_attributes guard) {
    attributes.guarded = record != NULL;
    if (!record && isinf(attributes.clip_norm)) return clt_fill(grads[0]->graph, (clt_shape){0}, 1.0f);
    clt_tensor *total = NULL;
    for (int i = 0; i < n; i++) {
        clt_tensor *squared = clt_node(NULL, &clt_op_norm_squared, &attributes, (clt_tensor *[]){grads[i], hyper}, 2);
        total = total ? clt_add(total, squared) : squared;
    }
    if (parts) total = clt_all_reduce_among(*parts, total, CLT_REDUCE_SUM);
    guard.clip_norm = attributes.clip_norm;
    if (record) return clt_node(NULL, &clt_op_guard, &guard, (clt_tensor *[]){total, record, hyper}, 3);
    return clt_node(NULL, &clt_op_clip_scale, &attributes, &total, 1);
}

/* ---- the moving average ---- */

static clt_status infer_average(clt_tensor *node) {
    char text[CLT_PAIR_TEXT];
    if (!clt_shape_equal(&node->inputs[0]->shape, &node->inputs[1]->shape))
        return clt_fail(CLT_E_SHAPE, "%s differ in shape", clt_pair_text(node->inputs[0], node->inputs[1], text));
    CLT_TRY(clt_check_rank(node, 2, 0, 0));
    return infer_first(node);
}

static const clt_attribute average_schema[] = {CLT_ATTRIBUTE(clt_average_attributes, decay, FLOAT, .usual = 0.999), {0}};
const clt_op clt_op_average = {.name = "average", .least_inputs = 3, .attributes_bytes = sizeof(clt_average_attributes), .schema = average_schema,
                               .infer = infer_average, .is_view = true, .writes = 1, .operations = 3};

clt_tensor *clt_average(clt_tensor *average, clt_tensor *params, clt_tensor *factor, float decay) {
    return clt_node(NULL, &clt_op_average, &(clt_average_attributes){decay}, (clt_tensor *[]){average, params, factor}, 3);
}

/* ---- updates ---- */

const clt_tensor *clt_update_copy(const clt_tensor *node) {
    const clt_tensor *last = node->inputs[node->n_inputs - 1];
    return last->dtype == CLT_F16 || last->dtype == CLT_BF16 ? last : NULL;
}

int clt_update_states(const clt_tensor *node) {
    return node->n_inputs - 4 - (clt_update_copy(node) != NULL);
}

/* params, grads, hyper, factor, states, copy */
static clt_status infer_update(clt_tensor *node) {
    char text[CLT_PAIR_TEXT];
    CLT_TRY(clt_check_rank(node, 0, 1, 1));
    CLT_TRY(clt_check_rank(node, 3, 0, 0));
    if (clt_tensor_elements(node->inputs[2]) != CLT_HYPER_COUNT)
        return clt_fail(CLT_E_SHAPE, "hyper has %lld elements, not %d", (long long)clt_tensor_elements(node->inputs[2]), CLT_HYPER_COUNT);
    for (int i = 1; i < node->n_inputs; i += i == 1 ? 3 : 1)
        if (!clt_shape_equal(&node->inputs[i]->shape, &node->inputs[0]->shape))
            return clt_fail(CLT_E_SHAPE, "%s differ in shape", clt_pair_text(node->inputs[0], node->inputs[i], text));
    return infer_first(node);
}

_Static_assert(offsetof(clt_update_attributes, clip) == 0, "the attributes of clip begin those of an update");
static const clt_attribute update_schema[] = {
    CLIP_ATTRIBUTES,
    CLT_ATTRIBUTE(clt_update_attributes, momentum, FLOAT, .usual = 0.9),
    CLT_ATTRIBUTE(clt_update_attributes, beta1, FLOAT, .usual = 0.9),
    CLT_ATTRIBUTE(clt_update_attributes, beta2, FLOAT, .usual = 0.999),
    CLT_ATTRIBUTE(clt_update_attributes, eps, FLOAT, .usual = 1e-8),
    CLT_ATTRIBUTE(clt_update_attributes, weight_decay, FLOAT),
    CLT_ATTRIBUTE(clt_update_attributes, lr_factor, FLOAT, .usual = 1),
    CLT_ATTRIBUTE(clt_update_attributes, nesterov, BOOL),
    CLT_ATTRIBUTE(clt_update_attributes, decoupled, BOOL),
    {0},
};

#define UPDATE                                                                                                       \
    .attributes_bytes = sizeof(clt_update_attributes), .schema = update_schema, .infer = infer_update, .is_view = true
const clt_op clt_op_sgd = {.name = "sgd", UPDATE, .least_inputs = 4, .most_inputs = 6, .writes = 1u | 1u << 4 | 1u << 5, .operations = 6};
const clt_op clt_op_adam = {.name = "adam", UPDATE, .least_inputs = 6, .most_inputs = 7, .writes = 1u | 1u << 4 | 1u << 5 | 1u << 6, .operations = 14};

clt_tensor *clt_update(const clt_op *op, clt_update_attributes attributes, clt_tensor *params,
                       clt_tensor *grads, clt_tensor *hyper, clt_tensor *factor,
                       clt_tensor *const *states, int n_states, clt_tensor *copy) {
    clt_tensor *inputs[7] = {params, grads, hyper, factor};
    for (int i = 0; i < n_states; i++) inputs[4 + i] = states[i];
    if (copy) inputs[4 + n_states] = copy;
    return clt_node(NULL, op, &attributes, inputs, 4 + n_states + (copy != NULL));
}
