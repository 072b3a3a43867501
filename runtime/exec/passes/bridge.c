/*
 * Storage types. A node that no row serves in the types of its tensors, or only one that another overrides where all is f32, is computed in f32:
 * its operands are widened in front of it, each time anew, so that they live shortly; its result is rounded behind it, as if the node had
 * stored it so. What is computed is the same whether a row reads and writes 16 bits or not; memory and time are not.
 */
#include "runtime/exec/passes/passes.h"

enum { MOST_TENSORS = 64 };

static bool is_half(const clt_tensor *t) {
    return t->dtype == CLT_F16 || t->dtype == CLT_BF16;
}

/* The node, its further results and its operands; 0: they are more than there is room for. */
static int tensors_of(clt_tensor *node, clt_tensor *all[MOST_TENSORS]) {
    int n = 0;
    if (node->n_inputs + node->op->more_outputs + 1 > MOST_TENSORS) return 0;
    all[n++] = node;
    for (int k = 0; k < node->op->more_outputs; k++)
        if (node->outputs[k]) all[n++] = node->outputs[k];
    for (int k = 0; k < node->n_inputs; k++) all[n++] = node->inputs[k];
    return n;
}

/* Types are tried on and taken off again. */
const clt_backend_row *clt_pass_row_in_f32(const clt_pass *pass, clt_tensor *node) {
    clt_tensor *all[MOST_TENSORS];
    clt_dtype before[MOST_TENSORS] = {0};
    int n = tensors_of(node, all), halves = 0;
    for (int i = 0; i < n; i++) halves += is_half(all[i]);
    if (!halves) return NULL;
    for (int i = 0; i < n; i++) {
        before[i] = all[i]->dtype;
        if (is_half(all[i])) all[i]->dtype = CLT_F32;
    }
    const clt_backend_row *row = clt_backend_choose(node, pass->device).row;
    for (int i = n - 1; i >= 0; i--) all[i]->dtype = before[i];
    return row;
}

/* Whether a row stands in front of another in the table. */
static bool stands_before(const clt_op *op, const clt_backend_row *row, const clt_backend_row *other) {
    const clt_backend_row *r = clt_backend_next(op, NULL);
    while (r && r != row && r != other) r = clt_backend_next(op, r);
    return r == row && row != other;
}

static bool wants_f32(const clt_pass *pass, clt_tensor *node) {
    const clt_backend_row *other = node->op->is_view ? NULL : clt_pass_row_in_f32(pass, node);
    if (!other) return false;
    const clt_backend_row *own = clt_backend_choose(node, pass->device).row;
    return !own || stands_before(node->op, own, other);
}

static clt_status widen(clt_pass *pass, const clt_tensor *before, clt_tensor *const *inputs, int n, clt_tensor **widened) {
    for (int k = 0; k < n; k++) {
        widened[k] = inputs[k];
        if (!is_half(inputs[k])) continue;
        widened[k] = clt_cast(inputs[k], CLT_F32);
        CLT_TRY(clt_pass_place(pass, widened[k], before));
        widened[k]->layout = inputs[k]->layout;
    }
    return CLT_OK;
}

/* The further results become those of `maker`; those of 16 bits are its own, rounded. */
static clt_status hand_over(clt_pass *pass, clt_tensor *node, clt_tensor *maker) {
    for (int k = 0; k < node->op->more_outputs; k++) {
        clt_tensor *result = node->outputs[k], *own = maker->outputs[k];
        if (!result || !own) continue;
        node->outputs[k] = NULL;
        if (is_half(result)) {
            clt_tensor *rounded = clt_cast(own, result->dtype);
            CLT_TRY(clt_pass_place(pass, own, node));
            CLT_TRY(clt_pass_place(pass, rounded, node)); /* which nobody reads, like what is given away below */
            own->layout = result->layout;
            CLT_TRY(clt_node_become(result, rounded->op, rounded->attributes, &own, 1));
            result->kind = CLT_NODE_OP;
            continue;
        }
        maker->outputs[k] = result;
        result->inputs[0] = maker;
        own->inputs[0] = node;
    }
    return CLT_OK;
}

/* The node's value is that of a new one on operands of f32, rounded. */
static clt_status bridge(clt_pass *pass, clt_tensor *node) {
    clt_tensor *widened[MOST_TENSORS];
    int n = node->n_inputs;
    bool stays = !is_half(node) || node->unread; /* f32, whole numbers, or nobody reads it */
    for (int k = 0; k < node->op->more_outputs; k++) stays &= !node->outputs[k] || !is_half(node->outputs[k]);
    CLT_TRY(widen(pass, node, node->inputs, n, widened));
    if (stays) {
        for (int k = 0; k < n; k++) node->inputs[k] = widened[k];
        if (is_half(node)) node->dtype = CLT_F32;
        return CLT_OK;
    }
    clt_tensor *maker = clt_node(pass->graph, node->op, node->attributes, widened, n);
    CLT_TRY(clt_pass_place(pass, maker, node));
    maker->layout = node->layout;
    maker->unread = node->unread;
    CLT_TRY(hand_over(pass, node, maker));
    clt_tensor *rounded = clt_cast(maker, node->dtype);
    CLT_TRY(clt_graph_status(pass->graph));
    return clt_node_become(node, rounded->op, rounded->attributes, &maker, 1);
}

clt_status clt_pass_bridge(clt_pass *pass) {
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        if (pass->live[i] && node->kind == CLT_NODE_OP && wants_f32(pass, node)) CLT_TRY(bridge(pass, node));
    }
    return CLT_OK;
}
