/*
 * Fusion. A pointwise node that one other pointwise node alone reads, element by element, becomes a stage of it; what
 * is left of such a chain after a contraction becomes its epilogue, and before a reduction a part of that. The later node takes all over and keeps its
 * place, so memory is written in the same order as before.
 */
#include <string.h>

#include "backends/codegen.h"
#include "runtime/exec/passes/passes.h"

/* Operands of a chain. More would want more registers and arguments than some devices have. */
enum { MOST_INPUTS = 10 };

typedef struct chain {
    clt_fused fused;
    clt_tensor *inputs[CLT_FUSED_INPUTS];
} chain;

/* ---- what may be moved ---- */

static bool reads(const clt_tensor *node, const clt_tensor *input) {
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k] == input) return true;
    return false;
}

/* Whether a tensor lies in the state, or may: parameters lie in those that optimizers write. */
static bool may_lie_in(const clt_tensor *tensor, const clt_tensor *state) {
    while (tensor->kind == CLT_NODE_OP && tensor->op->is_view) tensor = tensor->inputs[0];
    return tensor->kind == CLT_NODE_VARIABLE || (tensor->kind == CLT_NODE_STATE && !strcmp(tensor->name, state->name));
}

/* Whether `writer` changes memory that `node` reads. */
static bool disturbs(const clt_tensor *writer, const clt_tensor *node) {
    if (writer->kind != CLT_NODE_OP) return false;
    for (int w = 0; w < writer->n_inputs; w++) {
        const clt_tensor *written = writer->inputs[w];
        if (!(writer->op->writes >> CLT_MIN(w, 31) & 1)) continue;
        while (written->kind == CLT_NODE_OP && written->op->is_view && !reads(node, written)) written = written->inputs[0];
        if (reads(node, written)) return true;
        for (int k = 0; k < node->n_inputs; k++)
            if (written->kind == CLT_NODE_STATE && may_lie_in(node->inputs[k], written)) return true;
    }
    return false;
}

static bool may_move(const clt_pass *pass, const clt_tensor *node, const clt_tensor *to) {
    for (int i = node->index + 1; i < to->index; i++)
        if (pass->live[i] && disturbs(pass->graph->nodes[i], node)) return false;
    return true;
}

/* True if `user` reads all there is to `node`, in its own order, and nobody else does. */
static bool only_user(const clt_pass *pass, const clt_tensor *node, const clt_tensor *user) {
    int uses = 0;
    for (int k = 0; k < user->n_inputs; k++) uses += user->inputs[k] == node;
    return uses == pass->uses[node->index] && !node->kept && node->segment == user->segment &&
           node->layout == user->layout && clt_shape_equal(&node->shape, &user->shape);
}

/* ---- chains ---- */

static bool chain_of(const clt_pass *pass, const clt_tensor *node, chain *c) {
    if (node->kind != CLT_NODE_OP || node->epilogue || node->n_inputs > MOST_INPUTS) return false;
    if (!clt_fused_of(node, pass->training, &c->fused)) return false;
    for (int k = 0; k < node->n_inputs; k++) c->inputs[k] = node->inputs[k];
    return true;
}

static int add_input(chain *c, clt_tensor *input) {
    for (int k = 0; k < c->fused.n_inputs; k++)
        if (c->inputs[k] == input) return k;
    if (c->fused.n_inputs == MOST_INPUTS) return -1;
    c->inputs[c->fused.n_inputs] = input;
    return c->fused.n_inputs++;
}

/* Appends a stage of another chain, whose stages come after `base` others. `value`, which is read element by
 * element, is the value of stage `base` - 1 if there are any. */
static bool add_stage(chain *c, const chain *other, int s, int base, const clt_tensor *value) {
    if (c->fused.n_stages == CLT_FUSED_STAGES) return false;
    clt_fused_stage stage = other->fused.stages[s];
    for (int k = 0; k < stage.form.n_operands; k++) {
        clt_form_operand *operand = &stage.form.operands[k];
        if (operand->input < 0) {
            operand->input = ~(~operand->input + base);
        } else if (other->inputs[operand->input] == value && operand->read != CLT_READ_BROADCAST) {
            return false;
        } else if (base > 0 && other->inputs[operand->input] == value) {
            operand->input = ~(base - 1);
        } else {
            operand->input = add_input(c, other->inputs[operand->input]);
            if (operand->input < 0) return false;
        }
    }
    c->fused.stages[c->fused.n_stages++] = stage;
    return true;
}

/* The chain of `first`, then that of `second`, which reads its value. */
static bool join(const chain *first, const chain *second, const clt_tensor *value, chain *joined) {
    *joined = *first;
    int base = first->fused.n_stages;
    for (int s = 0; s < second->fused.n_stages; s++)
        if (!add_stage(joined, second, s, base, value)) return false;
    joined->fused.shape = second->fused.shape;
    joined->fused.dtype = second->fused.dtype;
    return true;
}

/* How a value that is the same everywhere is read does not matter. */
static void read_plainly(chain *c, const clt_tensor *value) {
    for (int s = 0; s < c->fused.n_stages; s++)
        for (int k = 0; k < c->fused.stages[s].form.n_operands; k++) {
            clt_form_operand *operand = &c->fused.stages[s].form.operands[k];
            if (operand->input >= 0 && c->inputs[operand->input] == value) operand->read = CLT_READ_BROADCAST;
        }
}

/* Uses are counted anew where inputs change. */
static clt_status become(clt_pass *pass, clt_tensor *node, const clt_op *op, const void *attributes,
                         clt_tensor *const *inputs, int n) {
    for (int k = 0; k < node->n_inputs; k++) pass->uses[node->inputs[k]->index]--;
    CLT_TRY(clt_node_become(node, op, attributes, inputs, n));
    for (int k = 0; k < n; k++) pass->uses[inputs[k]->index]++;
    return CLT_OK;
}

/* A node that nobody reads any more, and what only it did. */
static void bury(clt_pass *pass, clt_tensor *node) {
    if (pass->uses[node->index] > 0 || node->kept || !pass->live[node->index]) return;
    pass->live[node->index] = false;
    for (int k = 0; k < node->n_inputs; k++) {
        pass->uses[node->inputs[k]->index]--;
        bury(pass, node->inputs[k]);
    }
}

/* Whether some row would serve the node as this op on these inputs. */
static bool served(const clt_pass *pass, const clt_tensor *node, const clt_op *op, const void *attributes, const chain *c) {
    clt_tensor probe = *node;
    probe.op = op;
    probe.attributes = (void *)(uintptr_t)attributes;
    probe.inputs = (clt_tensor **)(uintptr_t)c->inputs;
    probe.n_inputs = c->fused.n_inputs;
    return clt_backend_choose(&probe, pass->device).row;
}

/* A chain that reads nothing has one value in all places: it goes into whatever reads it, stretched or seen through
 * a view or by others too. */
static bool constant_behind(const clt_pass *pass, const clt_tensor *input, chain *first) {
    while (input->kind == CLT_NODE_OP && input->op->is_view) input = input->inputs[0];
    return chain_of(pass, input, first) && first->fused.n_inputs == 0;
}

/* Makes input k of the node a part of it, if it can be. */
static clt_status absorb_input(clt_pass *pass, clt_tensor *node, int k, bool *absorbed) {
    clt_tensor *input = node->inputs[k];
    chain own, first, joined;
    if (!chain_of(pass, node, &own)) return CLT_OK;
    bool constant = constant_behind(pass, input, &first);
    if (!constant && !(only_user(pass, input, node) && chain_of(pass, input, &first) && may_move(pass, input, node)))
        return CLT_OK;
    if (constant) read_plainly(&own, input);
    if (!join(&first, &own, input, &joined) || !served(pass, node, &clt_op_fused, &joined.fused, &joined)) return CLT_OK;
    CLT_TRY(become(pass, node, &clt_op_fused, &joined.fused, joined.inputs, joined.fused.n_inputs));
    node->boundary |= input->boundary && !constant;
    bury(pass, input);
    *absorbed = true;
    return CLT_OK;
}

/* Takes one input of the node into it, if there is one that can be. */
static clt_status absorb(clt_pass *pass, clt_tensor *node, bool *absorbed) {
    *absorbed = false;
    for (int k = 0; k < node->n_inputs && !*absorbed; k++) CLT_TRY(absorb_input(pass, node, k, absorbed));
    return CLT_OK;
}

/* ---- reductions ---- */

/* Elements that are reduced to one, if they are the last dimensions and a work-group does well with so many; else 0. */
static int64_t reduced_length(const clt_tensor *node) {
    enum { MOST_LENGTH = 16384 };
    const clt_reduce_attributes *at = node->attributes;
    const clt_shape *x = &node->inputs[0]->shape;
    int64_t length = 1;
    int d = x->rank - 1;
    for (; d >= 0 && at->axes >> d & 1; d--) length *= x->dims[d];
    for (; d >= 0; d--)
        if (at->axes >> d & 1 && x->dims[d] > 1) return 0;
    return length <= MOST_LENGTH ? length : 0;
}

/* What a reduction reads becomes a part of it, if nobody else reads that. */
static clt_status prepend(clt_pass *pass, clt_tensor *node) {
    if (node->kind != CLT_NODE_OP || node->op != &clt_op_reduce || !reduced_length(node)) return CLT_OK;
    clt_tensor *input = node->inputs[0];
    const clt_reduce_attributes *at = node->attributes;
    clt_fused_reduce reduce = {.reduction = at->reduction, .length = reduced_length(node), .shape = node->shape};
    chain first;
    bool alone = pass->uses[input->index] == 1 && !input->kept && input->segment == node->segment;
    if (!pass->live[input->index] || !alone || !clt_tensor_contiguous(input) || !clt_dtype_is_float(input->dtype)) return CLT_OK;
    if (!chain_of(pass, input, &first) || !may_move(pass, input, node)) return CLT_OK;
    reduce.chain = first.fused;
    if (!served(pass, node, &clt_op_fused_reduce, &reduce, &first)) return CLT_OK;
    CLT_TRY(become(pass, node, &clt_op_fused_reduce, &reduce, first.inputs, first.fused.n_inputs));
    node->boundary |= input->boundary;
    bury(pass, input);
    return CLT_OK;
}

/* ---- epilogues ---- */

static bool takes_epilogue(const clt_tensor *node) {
    return node->kind == CLT_NODE_OP && !node->epilogue && node->op->epilogue != CLT_EPILOGUE_NONE;
}

/* The chain with `value` as its input 0. */
static bool chain_after(const chain *own, const clt_tensor *value, chain *after) {
    *after = (chain){.fused = own->fused};
    after->fused.n_stages = 0;
    after->fused.n_inputs = 0;
    add_input(after, (clt_tensor *)(uintptr_t)value);
    for (int s = 0; s < own->fused.n_stages; s++)
        if (!add_stage(after, own, s, 0, value)) return false;
    return true;
}

static clt_status take_over(clt_pass *pass, clt_tensor *node, clt_tensor *contraction, const chain *after) {
    clt_tensor *inputs[2 + CLT_FUSED_INPUTS];
    int n = contraction->n_inputs, more = after->fused.n_inputs - 1;
    for (int k = 0; k < n; k++) inputs[k] = contraction->inputs[k];
    for (int k = 0; k < more; k++) inputs[n + k] = after->inputs[1 + k];
    clt_fused *epilogue = clt_alloc(sizeof *epilogue);
    if (!epilogue) return clt_fail_memory(sizeof *epilogue);
    *epilogue = after->fused;
    clt_status status = become(pass, node, contraction->op, contraction->attributes, inputs, n + more);
    if (status < 0) {
        clt_free(epilogue);
        return status;
    }
    node->epilogue = epilogue;
    node->dtype = epilogue->dtype;
    node->boundary |= contraction->boundary;
    bury(pass, contraction);
    return CLT_OK;
}

static clt_status append(clt_pass *pass, clt_tensor *node) {
    chain own, after;
    if (!chain_of(pass, node, &own)) return CLT_OK;
    for (int k = 0; k < node->n_inputs; k++) {
        clt_tensor *input = node->inputs[k];
        if (!pass->live[input->index] || !takes_epilogue(input) || !only_user(pass, input, node)) continue;
        const clt_backend_row *row = clt_backend_choose(input, pass->device).row;
        if (!row || !row->epilogue || !may_move(pass, input, node) || !chain_after(&own, input, &after)) continue;
        if (!clt_epilogue_possible(input, &after.fused, after.inputs + 1, row->any_epilogue)) continue;
        return take_over(pass, node, input, &after);
    }
    return CLT_OK;
}

clt_status clt_pass_fuse(clt_pass *pass) {
    clt_tensor **nodes = pass->graph->nodes;
    for (size_t i = 0; i < pass->n; i++)
        for (bool more = pass->live[i]; more;) CLT_TRY(absorb(pass, nodes[i], &more));
    for (size_t i = 0; i < pass->n; i++)
        if (pass->live[i]) CLT_TRY(append(pass, nodes[i]));
    for (size_t i = 0; i < pass->n; i++)
        if (pass->live[i]) CLT_TRY(prepend(pass, nodes[i]));
    return CLT_OK;
}
