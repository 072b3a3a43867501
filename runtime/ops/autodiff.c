/*
 * Reverse-mode automatic differentiation, as a transformation of the graph: the
 * nodes between `wrt` and the loss are walked backward, and each op's gradient
 * rule appends the nodes that compute its inputs' gradients. A tensor with
 * several users gets the sum of what they contribute, in a fixed order.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/ops.h"

/* needed[i]: node i depends on a tensor of wrt. */
static void mark_dependents(const clt_graph *graph, size_t n_nodes, bool *needed) {
    for (size_t i = 0; i < n_nodes; i++)
        for (int k = 0; !needed[i] && k < graph->nodes[i]->n_inputs; k++)
            needed[i] = clt_dtype_is_float(graph->nodes[i]->dtype) && needed[graph->nodes[i]->inputs[k]->index]; /* whole numbers change nowhere, or jump */
}

/* What the walk knows: by node, its gradient so far, and the slices of it whose gradients wait. */
typedef struct walk {
    bool *needed;
    clt_tensor **grads;
    struct part *parts;
    size_t n_parts, capacity;
    size_t *first; /* by node, 1 more than the place of its last part; 0: it has none */
} walk;

/* The gradient of x's slice, of places that begin at `start`. */
typedef struct part {
    const clt_tensor *slice;
    clt_tensor *dy;
    int64_t start;
    size_t next; /* as `first` */
} part;

static clt_status accumulate(clt_tensor **sum, clt_tensor *term) {
    *sum = *sum ? clt_add(*sum, term) : term;
    return clt_tensor_valid(*sum) ? CLT_OK : clt_graph_status(term->graph);
}

/* ---- slices: many of one tensor, as of an unrolled network's inputs, have one gradient that is written once ---- */

static clt_status add_part(walk *w, const clt_tensor *slice) {
    const clt_slice_attributes *at = slice->attributes;
    const clt_tensor *x = slice->inputs[0];
    CLT_TRY(clt_grow(&w->parts, &w->capacity, w->n_parts, sizeof *w->parts));
    w->parts[w->n_parts] = (part){slice, w->grads[slice->index], clt_slice_start(at, x->shape.dims[at->axis]), w->first[x->index]}; /* NOLINT(clang-analyzer-core.NullDereference) */
    w->first[x->index] = ++w->n_parts;
    return CLT_OK;
}

/* `link`: `first`, or `next`, which is not 0. */
static const part *part_of(const walk *w, size_t link) {
    return w->parts + link - 1;
}

static int by_start(const void *a, const void *b) {
    int64_t x = ((const part *)a)->start, y = ((const part *)b)->start;
    return x < y ? -1 : x > y;
}

static clt_status add_piece(clt_tensor **pieces, int *n, clt_tensor *piece) {
    pieces[(*n)++] = piece;
    return clt_tensor_valid(piece) ? CLT_OK : clt_graph_status(piece->graph);
}

/* The parts, in their order, with zeros between them. NULL where some are of another axis, or overlap. */
static clt_status join(clt_tensor *x, const part *parts, int n, clt_tensor **joined) {
    int axis = ((const clt_slice_attributes *)parts[0].slice->attributes)->axis, n_pieces = 0;
    int64_t end = 0;
    clt_tensor **pieces = clt_alloc((size_t)(2 * n + 1) * sizeof *pieces);
    clt_status status = pieces ? CLT_OK : clt_fail_memory((size_t)(2 * n + 1) * sizeof *pieces);
    bool apart = true;
    for (int i = 0; status == CLT_OK && i <= n && apart; i++) {
        clt_shape gap = x->shape;
        int64_t start = i < n ? parts[i].start : x->shape.dims[axis];
        apart = start >= end && (i == n || ((const clt_slice_attributes *)parts[i].slice->attributes)->axis == axis);
        gap.dims[axis] = start - end;
        if (apart && start > end) status = add_piece(pieces, &n_pieces, clt_cast(clt_fill(x->graph, gap, 0), x->dtype));
        if (!apart || i == n || status < 0) continue;
        status = add_piece(pieces, &n_pieces, parts[i].dy);
        end = start + parts[i].dy->shape.dims[axis];
    }
    *joined = status == CLT_OK && apart ? clt_concat(pieces, n_pieces, axis) : NULL;
    clt_free(pieces);
    return status == CLT_OK ? clt_graph_status(x->graph) : status;
}

/* In the order in which the walk has come to them. */
static clt_status add_each(clt_tensor *x, const part *parts, int n, clt_tensor **sum) {
    const bool wanted = true;
    for (int i = 0; i < n; i++) {
        clt_tensor *dx = NULL;
        parts[i].slice->op->gradient((clt_tensor *)(uintptr_t)parts[i].slice, parts[i].dy, &wanted, &dx);
        CLT_TRY(clt_graph_status(x->graph));
        CLT_TRY(accumulate(sum, dx));
    }
    return CLT_OK;
}

/* The gradients of x's slices, now that all are there, go into that of x. */
static clt_status add_slices(walk *w, clt_tensor *x) {
    int n = 0;
    for (size_t i = w->first[x->index]; i; i = part_of(w, i)->next) n++; /* NOLINT(clang-analyzer-core.NullDereference) */
    if (!n) return CLT_OK;
    part *parts = clt_alloc(2 * (size_t)n * sizeof *parts);
    if (!parts) return clt_fail_memory(2 * (size_t)n * sizeof *parts);
    part *sorted = parts + n;
    clt_tensor *joined = NULL;
    int k = n;
    for (size_t i = w->first[x->index]; i; i = part_of(w, i)->next) parts[--k] = *part_of(w, i);
    memcpy(sorted, parts, (size_t)n * sizeof *parts);
    qsort(sorted, (size_t)n, sizeof *sorted, by_start);
    clt_status status = n > 1 ? join(x, sorted, n, &joined) : CLT_OK;
    if (status == CLT_OK && joined) status = accumulate(&w->grads[x->index], joined);
    if (status == CLT_OK && !joined) status = add_each(x, parts, n, &w->grads[x->index]);
    clt_free(parts);
    return status;
}

/* ---- the walk ---- */

static clt_status apply_rule(walk *w, clt_tensor *node, bool *wanted, clt_tensor **dx) {
    for (int k = 0; k < node->n_inputs; k++) wanted[k] = w->needed[node->inputs[k]->index];
    node->op->gradient(node, w->grads[node->index], wanted, dx);
    CLT_TRY(clt_graph_status(node->graph));
    for (int k = 0; k < node->n_inputs; k++)
        if (wanted[k] && dx[k]) CLT_TRY(accumulate(&w->grads[node->inputs[k]->index], dx[k]));
    return CLT_OK;
}

static clt_status differentiate_node(walk *w, clt_tensor *node) {
    if (!node->op->gradient)
        return clt_fail(CLT_E_UNSUPPORTED, "%s has no gradient, but the loss depends on a parameter through it",
                        clt_node_name(node));
    if (node->op == &clt_op_slice && ((const clt_slice_attributes *)node->attributes)->step == 1) return add_part(w, node);
    size_t n = (size_t)node->n_inputs;
    clt_tensor **dx = clt_calloc(n + 1, sizeof *dx);
    bool *wanted = clt_calloc(n + 1, sizeof *wanted);
    clt_status status = dx && wanted ? apply_rule(w, node, wanted, dx) : clt_fail_memory((n + 1) * sizeof *dx);
    clt_free(dx);
    clt_free(wanted);
    return status;
}

static clt_status differentiate(walk *w, clt_tensor *loss, clt_tensor *seed, clt_tensor *const *wrt, int n) {
    clt_graph *graph = loss->graph;
    size_t n_nodes = graph->n_nodes;
    for (int i = 0; i < n; i++) w->needed[wrt[i]->index] = true;
    mark_dependents(graph, n_nodes, w->needed);
    w->grads[loss->index] = seed;
    for (int i = loss->index; i >= 0; i--) {
        clt_tensor *node = graph->nodes[i];
        graph->stage = node->stage; /* gradients are computed where the node is */
        CLT_TRY(add_slices(w, node));
        if (w->grads[i] && w->needed[i] && node->kind == CLT_NODE_OUTPUT)
            return clt_fail(CLT_E_UNSUPPORTED, "a further result of %s has no gradient", clt_node_name(node));
        if (w->grads[i] && w->needed[i] && node->kind == CLT_NODE_OP) CLT_TRY(differentiate_node(w, node));
    }
    return CLT_OK;
}

clt_status clt_gradients(clt_tensor *loss, clt_tensor *seed, clt_tensor *const *wrt, int n,
                         clt_tensor **grads) {
    if (!clt_shape_equal(&loss->shape, &seed->shape)) {
        char a[CLT_SHAPE_TEXT], b[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "gradient of %s seeded with %s", clt_shape_text(&loss->shape, a),
                        clt_shape_text(&seed->shape, b));
    }
    size_t n_nodes = loss->graph->n_nodes;
    loss->graph->backward = true;
    walk w = {.needed = clt_calloc(n_nodes, sizeof *w.needed), .grads = clt_calloc(n_nodes, sizeof *w.grads), .first = clt_calloc(n_nodes, sizeof *w.first)};
    clt_status status;
    if (!w.needed || !w.grads || !w.first) status = clt_fail_memory(n_nodes * sizeof *w.grads);
    else status = differentiate(&w, loss, seed, wrt, n);
    for (int i = 0; status == CLT_OK && i < n; i++) grads[i] = w.grads[wrt[i]->index];
    clt_free(w.needed);
    clt_free(w.grads);
    clt_free(w.first);
    clt_free(w.parts);
    return status;
}
