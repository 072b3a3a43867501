/*
 * Layouts. Convolutions of some rows want their activations channels-last, and what stands between convolutions
 * follows as long as its rows can; where one cannot, a copy in the other layout is put in front of it.
 */
#include "runtime/exec/passes/passes.h"

/* A way to serve a node: its own layout, and whether operands are brought to one. */
typedef enum operands { AS_THEY_ARE, CHANNELS_LAST, CONTIGUOUS } operands;
typedef struct way {
    clt_layout result;
    operands operands;
} way;

/* In order of preference, where channels-last is worth asking for. */
static const way ways[] = {
    {CLT_LAYOUT_CHANNELS_LAST, CHANNELS_LAST}, {CLT_LAYOUT_CHANNELS_LAST, AS_THEY_ARE},
    {CLT_LAYOUT_CONTIGUOUS, CHANNELS_LAST},    {CLT_LAYOUT_CONTIGUOUS, AS_THEY_ARE},
    {CLT_LAYOUT_CONTIGUOUS, CONTIGUOUS},
};

static bool wants_channels_last(const clt_tensor *node) {
    bool any = node->op->channels_last;
    for (int k = 0; k < node->n_inputs; k++) any |= node->inputs[k]->layout == CLT_LAYOUT_CHANNELS_LAST;
    return any;
}

/* What the operand's layout becomes. Leaves stay as they are: weights are kept in one order, and
 * inputs come in theirs. */
static clt_layout wanted(const clt_tensor *operand, operands how) {
    bool free_to_choose = operand->kind == CLT_NODE_OP && operand->shape.rank == 4 && clt_dtype_is_float(operand->dtype);
    if (how == AS_THEY_ARE || !free_to_choose) return operand->layout;
    return how == CHANNELS_LAST ? CLT_LAYOUT_CHANNELS_LAST : CLT_LAYOUT_CONTIGUOUS;
}

enum { MOST_OPERANDS = 64 };

/* Whether some row serves the node this way. Layouts are tried on and taken off again. */
static bool serves(clt_pass *pass, clt_tensor *node, way w) {
    clt_layout before[MOST_OPERANDS] = {0};
    int n = node->n_inputs;
    if (n > MOST_OPERANDS) return w.operands == CONTIGUOUS;
    for (int k = 0; k < n; k++) before[k] = node->inputs[k]->layout;
    for (int k = 0; k < n; k++) node->inputs[k]->layout = wanted(node->inputs[k], w.operands);
    node->layout = w.result;
    bool found = clt_backend_choose(node, pass->device).row || clt_pass_row_in_f32(pass, node);
    for (int k = n - 1; k >= 0; k--) node->inputs[k]->layout = before[k];
    node->layout = CLT_LAYOUT_CONTIGUOUS;
    return found;
}

/* The operand in that layout, in a copy if need be; copies serve all that come after. */
static clt_status convert(clt_pass *pass, clt_tensor **copies, clt_tensor *node, int k, clt_layout layout) {
    clt_tensor *operand = node->inputs[k];
    if (operand->layout == layout) return CLT_OK;
    clt_tensor **copy = &copies[operand->index];
    if (!*copy || (*copy)->segment != node->segment) {
        *copy = clt_relayout(operand, layout);
        CLT_TRY(clt_pass_place(pass, *copy, node));
    }
    node->inputs[k] = *copy;
    return CLT_OK;
}

static clt_status apply(clt_pass *pass, clt_tensor **copies, clt_tensor *node, way w) {
    node->layout = w.result;
    for (int k = 0; k < node->n_inputs; k++)
        if ((size_t)node->inputs[k]->index < pass->n) /* else it is a copy that was made for this node */
            CLT_TRY(convert(pass, copies, node, k, wanted(node->inputs[k], w.operands)));
    return CLT_OK;
}

static clt_status choose(clt_pass *pass, clt_tensor **copies, clt_tensor *node) {
    bool free_to_choose = node->shape.rank == 4 && clt_dtype_is_float(node->dtype) && !node->kept && !node->unread;
    if (!wants_channels_last(node)) return CLT_OK;
    for (size_t i = 0; i < CLT_COUNT_OF(ways); i++) {
        if (ways[i].result == CLT_LAYOUT_CHANNELS_LAST && !free_to_choose) continue;
        if (serves(pass, node, ways[i])) return apply(pass, copies, node, ways[i]);
    }
    return CLT_OK; /* no row at all: lowering says so */
}

clt_status clt_pass_layout(clt_pass *pass) {
    clt_tensor **copies = clt_calloc(pass->n, sizeof *copies);
    if (!copies) return clt_fail_memory(pass->n * sizeof *copies);
    clt_status status = CLT_OK;
    for (size_t i = 0; status == CLT_OK && i < pass->n; i++)
        if (pass->live[i] && pass->graph->nodes[i]->kind == CLT_NODE_OP)
            status = choose(pass, copies, pass->graph->nodes[i]);
    clt_free(copies);
    return status;
}
