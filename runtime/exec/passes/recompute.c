/*
 * Recomputation. What backward reads of forward, and is not kept for it (exec/keep.c), is computed again in front of its first reader in backward: by the
 * same node on the same operands, so with the same bits; once, for all of backward. Random numbers are functions of the step and the place, so that
 * dropout leaves out the same again.
 *
 * What is kept may lie in the host's memory until then: it goes there as soon as it is computed, and comes back in front of its first reader.
 *
 * Parameters that lie in the host's memory are not kept, nor what is made of one alone, such as a cast: they are brought once more.
 *
 * It is the last pass: nodes are what they will be launched as.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/exec/carry.h"
#include "runtime/exec/passes/passes.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/scope.h"
#include "runtime/ops/ops.h"

/* Operations that take as long as moving a byte, on most devices 5 to 30. */
static const double operations_per_byte = 16;
/* Of a result or operand: sums, norms and functions of single elements take fewer; products of matrices as wide as this more. */
static const double cheap_operations = 32;

typedef struct recompute {
    clt_pass *pass;
    clt_keep_node *nodes; /* of forward */
    int n;
    clt_tensor **makers;  /* by those */
    clt_tensor **instead; /* by node of the graph: what backward reads in its place, once that is made */
    int *place;           /* by node of the graph: its own, or its maker's, among those; -1: it is none of forward */
    int *written;         /* by node of the graph: the last one that writes what it is; -1: none */
    const clt_tensor *ahead; /* where transfers have a queue of their own: in front of whom the last one was brought, and the next is; else NULL */
    bool *lent;           /* by node of the graph: a parameter that was brought, or made of one alone */
} recompute;

/* ---- what there is to keep ---- */

static bool in_forward(const clt_pass *pass, const clt_tensor *node) {
    return pass->live[node->index] && node->kind == CLT_NODE_OP && !node->backward && node->segment != CLT_SEGMENT_ONCE;
}

static bool is_view(const clt_tensor *node) {
    return node->kind == CLT_NODE_OP && node->op->is_view && !node->op->writes;
}

static const clt_tensor *behind_views(const clt_tensor *t) {
    while (is_view(t)) t = t->inputs[0];
    return t;
}

/* Whether an operand is another one when backward comes to it. Parameters are not: they are updated behind backward. */
static bool is_disturbed(const recompute *r, const clt_tensor *node) {
    bool any = false;
    for (int k = 0; k < node->n_inputs; k++) any |= r->written[behind_views(node->inputs[k])->index] > node->index;
    return any;
}

static bool is_fixed(const recompute *r, const clt_tensor *node) {
    bool kept = node->kept;
    for (int k = 0; k < node->op->more_outputs; k++) kept |= node->outputs[k]->kept;
    return kept || node->op->writes || clt_is_collective(node) || is_disturbed(r, node);
}

static uint64_t bytes_of(const clt_tensor *node) {
    uint64_t bytes = is_view(node) || node->unread ? 0 : clt_tensor_bytes(node);
    for (int k = 0; k < node->op->more_outputs; k++) bytes += clt_tensor_bytes(node->outputs[k]);
    return bytes;
}

/* One of its results is marked. */
static bool is_boundary(const clt_tensor *node) {
    bool marked = node->boundary;
    for (int k = 0; k < node->op->more_outputs; k++) marked |= node->outputs[k]->boundary;
    return marked;
}

/* Parameters are brought, as long as they are used. */
static bool is_lent(const recompute *r, const clt_tensor *node) {
    const clt_tensor *input = node->inputs[0];
    bool brought = clt_is_carry(node) && input->kind == CLT_NODE_VARIABLE;
    return (brought || (node->n_inputs == 1 && r->lent[input->index])) && !node->op->more_outputs && !is_fixed(r, node);
}

static clt_keep_node describe(const recompute *r, const clt_tensor *node, int place) {
    if (r->lent[node->index]) return (clt_keep_node){.last = place};
    clt_cost cost = clt_node_cost(node);
    int64_t most = clt_tensor_elements(node);
    for (int k = 0; k < node->n_inputs; k++) most = CLT_MAX(most, clt_tensor_elements(node->inputs[k]));
    return (clt_keep_node){.bytes = bytes_of(node),
                           .cost = is_view(node) ? 0 : cost.bytes + cost.flops / operations_per_byte,
                           .last = place,
                           .cheap = cost.flops <= cheap_operations * (double)most,
                           .ends = is_boundary(node),
                           .fixed = is_fixed(r, node)};
}

/* Who reads a view reads what it is a view of, too. */
static void note_reader(recompute *r, const clt_tensor *input, int reader) {
    for (const clt_tensor *t = input;; t = t->inputs[0]) {
        int at = r->place[t->index];
        if (at >= 0 && reader < 0) r->nodes[at].saved = true;
        if (at >= 0 && reader >= 0) r->nodes[at].last = CLT_MAX(r->nodes[at].last, reader);
        if (!is_view(t)) return;
    }
}

static void find_readers(recompute *r) {
    const clt_pass *pass = r->pass;
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *node = pass->graph->nodes[i];
        if (!pass->live[i] || node->kind != CLT_NODE_OP || node->segment == CLT_SEGMENT_ONCE) continue;
        for (int k = 0; k < node->n_inputs; k++) note_reader(r, node->inputs[k], r->place[i]);
    }
    for (int u = r->n - 1; u >= 0; u--) {
        clt_keep_node *node = &r->nodes[u];
        node->wanted |= node->saved;
        for (int k = 0; node->wanted && node->cheap && k < r->makers[u]->n_inputs; k++) {
            int at = r->place[r->makers[u]->inputs[k]->index];
            if (at >= 0) r->nodes[at].wanted = true;
        }
    }
}

/* ---- blocks ---- */

/* How much of the parameter's name names its block: "layer1.0" of "layer1.0.conv1.weight"; where there is no number, all but the last word. */
static size_t block_length(const clt_variable *variable) {
    const char *name = variable->name;
    for (const char *c = name; *c; c++) {
        size_t digits = strspn(c, "0123456789");
        if (digits && (c == name || c[-1] == '.') && c[digits] == '.') return (size_t)(c - name) + digits;
    }
    return clt_scope_length(variable);
}

static bool same_block(const clt_variable *a, const clt_variable *b) {
    size_t length = block_length(a);
    return length == block_length(b) && memcmp(a->name, b->name, length) == 0;
}

static clt_status find_blocks(recompute *r) {
    const clt_variable *block = NULL;
    int number = 0;
    clt_scope *scopes;
    CLT_TRY(clt_graph_scopes(r->pass->graph, &scopes));
    for (int u = 0; u < r->n; u++) {
        const clt_scope *scope = &scopes[r->makers[u]->index];
        if (!scope->reads || !scope->variable) continue;
        if (!block || !same_block(block, scope->variable)) number++;
        block = scope->variable;
        r->nodes[u].block = number;
    }
    clt_free(scopes);
    return CLT_OK;
}

/* ---- what goes to the host ---- */

/* What is kept of forward, has memory of its own and is large. */
static bool goes_away(const recompute *r, const clt_tensor *t) {
    enum { LEAST = 1 << 16 };
    int at = r->place[t->index];
    if (!r->pass->recompute->away || at < 0 || !r->nodes[at].keep || is_view(t) || t->kept || t->unread) return false;
    const clt_tensor *maker = r->makers[at];
    return !maker->op->writes && !clt_is_collective(maker) && clt_tensor_bytes(t) >= LEAST && r->written[t->index] <= t->index;
}

static clt_status place_behind(clt_pass *pass, clt_tensor *node, const clt_tensor *maker) {
    CLT_TRY(clt_pass_place(pass, node, maker));
    pass->keys[node->index] = pass->keys[maker->index] + 1;
    return CLT_OK;
}

/* One that is brought is so one ahead of `before`. */
static const clt_tensor *ahead_of(recompute *r, const clt_tensor *before) {
    const clt_tensor *place = r->ahead && r->ahead->segment == before->segment ? r->ahead : before;
    if (clt_carries_are_apart(r->pass->device)) r->ahead = before;
    return place;
}

static clt_status bring_back(recompute *r, clt_tensor *t, const clt_tensor *before) {
    char name[32];
    const clt_tensor *maker = r->makers[r->place[t->index]];
    snprintf(name, sizeof name, "away.%d", (int)r->pass->made.away);
    clt_tensor *state = clt_host_state(r->pass->graph, name, t->dtype, CLT_SHAPE(clt_tensor_elements(t)));
    CLT_TRY(place_behind(r->pass, state, maker));
    state->of_plan = true;
    clt_tensor *gone = clt_to_host(state, t, 0);
    CLT_TRY(place_behind(r->pass, gone, maker));
    clt_tensor *back = clt_from_host(gone, 0, t->shape);
    CLT_TRY(clt_pass_place(r->pass, back, ahead_of(r, before)));
    back->layout = t->layout;
    r->instead[t->index] = back;
    r->pass->made.away++;
    r->pass->made.away_bytes += clt_tensor_bytes(t);
    return CLT_OK;
}

/* ---- second ones ---- */

/* The same in all that whoever compiles a plan has decided. */
static clt_status copy_choices(const clt_tensor *node, clt_tensor *copy) {
    copy->shape = node->shape;
    copy->dtype = node->dtype;
    copy->layout = node->layout;
    copy->unread = node->unread;
    for (int k = 0; k < node->op->more_outputs; k++) {
        copy->outputs[k]->shape = node->outputs[k]->shape;
        copy->outputs[k]->dtype = node->outputs[k]->dtype;
        copy->outputs[k]->layout = node->outputs[k]->layout;
    }
    if (!node->epilogue) return CLT_OK;
    copy->epilogue = clt_alloc(sizeof *copy->epilogue);
    if (!copy->epilogue) return clt_fail_memory(sizeof *copy->epilogue);
    *copy->epilogue = *node->epilogue;
    return CLT_OK;
}

static clt_status copy_node(recompute *r, const clt_tensor *node, clt_tensor *const *inputs, const clt_tensor *before) {
    clt_pass *pass = r->pass;
    clt_tensor *copy = clt_node(pass->graph, node->op, node->attributes, inputs, clt_own_inputs(node));
    CLT_TRY(clt_pass_place(pass, copy, clt_is_carry(node) ? ahead_of(r, before) : before));
    for (int k = 0; k < node->op->more_outputs; k++) CLT_TRY(clt_pass_place(pass, copy->outputs[k], before));
    if (node->epilogue) CLT_TRY(clt_node_become(copy, node->op, node->attributes, inputs, node->n_inputs));
    CLT_TRY(copy_choices(node, copy));
    if (!r->lent[node->index]) pass->made.again += 1 + (size_t)node->op->more_outputs;
    r->instead[node->index] = copy;
    for (int k = 0; k < node->op->more_outputs; k++) r->instead[node->outputs[k]->index] = copy->outputs[k];
    return CLT_OK;
}

/* Of a tensor that backward reads: itself, or what is computed again or comes back. */
static clt_tensor *available(const recompute *r, clt_tensor *t) {
    clt_tensor *instead = r->instead[t->index];
    return instead ? instead : t;
}

/* A view is there as long as what it is a view of. */
static bool is_there(const recompute *r, const clt_tensor *t) {
    const clt_tensor *root = behind_views(t);
    int at = r->place[root->index];
    return at < 0 || (r->nodes[at].keep && !goes_away(r, root));
}

static clt_status make_available(recompute *r, clt_tensor *t, const clt_tensor *before) {
    if (r->instead[t->index] || is_there(r, t)) return CLT_OK;
    if (goes_away(r, t)) return bring_back(r, t, before);
    const clt_tensor *node = r->makers[r->place[t->index]];
    clt_tensor **inputs = clt_alloc((size_t)node->n_inputs * sizeof *inputs + 1);
    if (!inputs) return clt_fail_memory((size_t)node->n_inputs * sizeof *inputs);
    clt_status status = CLT_OK;
    for (int k = 0; status == CLT_OK && k < node->n_inputs; k++) {
        status = make_available(r, node->inputs[k], before);
        inputs[k] = available(r, node->inputs[k]);
    }
    if (status == CLT_OK) status = copy_node(r, node, inputs, before);
    clt_free(inputs);
    return status;
}

static clt_status rewrite(recompute *r) {
    const clt_pass *pass = r->pass;
    for (size_t i = 0; i < pass->n; i++) {
        clt_tensor *node = pass->graph->nodes[i];
        if (!pass->live[i] || node->kind != CLT_NODE_OP || !node->backward || node->segment == CLT_SEGMENT_ONCE) continue;
        for (int k = 0; k < node->n_inputs; k++) {
            CLT_TRY(make_available(r, node->inputs[k], node));
            node->inputs[k] = available(r, node->inputs[k]);
        }
    }
    return CLT_OK;
}

/* ---- the pass ---- */

static clt_status keep_all(recompute *r) {
    for (int u = 0; u < r->n; u++) r->nodes[u].keep = true;
    return CLT_OK;
}

static void return_lent(recompute *r) {
    for (int u = 0; u < r->n; u++) r->nodes[u].keep &= !r->lent[r->makers[u]->index];
}

static clt_status choose(recompute *r) {
    const clt_recompute_choice *how = r->pass->recompute;
    bool fits;
    if (how->which == CLT_RECOMPUTE_NONE) return keep_all(r);
    if (how->which == CLT_RECOMPUTE_ALL) return clt_keep_least(r->nodes, r->n);
    if (how->which == CLT_RECOMPUTE_AUTO) {
        CLT_TRY(clt_keep_within(r->nodes, r->n, how->bytes, &fits));
        return fits ? CLT_OK : clt_keep_least(r->nodes, r->n);
    }
    CLT_TRY(find_blocks(r));
    return clt_keep_blocks(r->nodes, r->n);
}

static void find_writers(recompute *r) {
    const clt_pass *pass = r->pass;
    for (size_t i = 0; i < pass->n; i++) {
        const clt_tensor *writer = pass->graph->nodes[i];
        for (int w = 0; pass->live[i] && writer->kind == CLT_NODE_OP && w < writer->n_inputs; w++)
            if (writer->op->writes >> CLT_MIN(w, 31) & 1) r->written[behind_views(writer->inputs[w])->index] = (int)i;
    }
}

static clt_status begin(recompute *r) {
    size_t n = r->pass->n;
    r->nodes = clt_calloc(n + 1, sizeof *r->nodes);
    r->makers = clt_calloc(n + 1, sizeof *r->makers);
    r->instead = clt_calloc(n + 1, sizeof *r->instead);
    r->place = clt_alloc((n + 1) * sizeof *r->place);
    r->written = clt_alloc((n + 1) * sizeof *r->written);
    r->lent = clt_calloc(n + 1, sizeof *r->lent);
    if (!r->nodes || !r->makers || !r->instead || !r->place || !r->written || !r->lent) return clt_fail_memory(n * sizeof *r->nodes);
    for (size_t i = 0; i < n; i++) r->place[i] = r->written[i] = -1;
    find_writers(r);
    for (size_t i = 0; i < n; i++) {
        clt_tensor *node = r->pass->graph->nodes[i];
        if (!in_forward(r->pass, node)) continue;
        r->lent[i] = node->n_inputs > 0 && is_lent(r, node);
        r->nodes[r->n] = describe(r, node, r->n);
        r->place[i] = r->n;
        for (int k = 0; k < node->op->more_outputs; k++) r->place[node->outputs[k]->index] = r->n;
        r->makers[r->n++] = node;
    }
    return CLT_OK;
}

clt_status clt_pass_recompute(clt_pass *pass) {
    recompute r = {.pass = pass};
    clt_status status = begin(&r);
    if (status == CLT_OK) find_readers(&r);
    if (status == CLT_OK && r.n > 0) status = choose(&r);
    if (status == CLT_OK) return_lent(&r);
    if (status == CLT_OK && r.n > 0) status = rewrite(&r);
    clt_free(r.nodes);
    clt_free(r.makers);
    clt_free(r.instead);
    clt_free(r.place);
    clt_free(r.written);
    clt_free(r.lent);
    return status;
}
