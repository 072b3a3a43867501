/* Softmax, log-softmax, cross-entropy and their gradients. */
#include "backends/workgroup/workgroup.h"

static const char path[] = "workgroup/softmax.cl";

enum {
    LONG = 256,                                   /* shorter rows are for a work-item each */
    MOST_ITEM = 8192,                             /* so are rows up to this whose elements are apart */
    MOST_GROUP = MOST_ITEM * CLT_WORKGROUP_ITEMS, /* longer rows are cut into chunks */
    CHUNK = 65536
};

/* [outer, n, inner] with outer * inner rows. */
typedef struct geometry {
    int64_t rows, n, inner, chunks;
} geometry;

static geometry softmax_geometry(const clt_tensor *node) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    geometry g = {.n = node->shape.rank ? node->shape.dims[axis] : 1, .inner = 1};
    for (int d = axis + 1; d < node->shape.rank; d++) g.inner *= node->shape.dims[d];
    g.rows = clt_tensor_elements(node) / g.n;
    g.chunks = (g.n + CHUNK - 1) / CHUNK;
    return g;
}

static geometry cross_entropy_geometry(const clt_tensor *node) {
    const int64_t *x = node->inputs[0]->shape.dims;
    return (geometry){x[0], x[1], 1, (x[1] + CHUNK - 1) / CHUNK};
}

/* A kernel of (inputs …, partial results …, what it writes, size, length). What it writes is the node, or of the partial
 * results the last. */
static void launch(clt_lowering *l, const char *kernel, int64_t groups, const clt_tensor *node, const geometry *g,
                   const int *partials, int n, bool last) {
    clt_launch_begin_typed(l, path, node->inputs[0]->dtype, kernel, groups * CLT_WORKGROUP_ITEMS, CLT_WORKGROUP_ITEMS);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    for (int i = 0; i < n; i++) clt_launch_scratch(l, partials[i]);
    if (last) clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){g->rows, g->n, g->inner, g->chunks}, 4, 4);
    clt_launch_int(l, CHUNK);
}

static int reserve(clt_lowering *l, const geometry *g) {
    return clt_lower_scratch(l, (size_t)(g->rows * g->chunks) * sizeof(float));
}

/* The chunks' maxima and sums of exponentials of x. */
static void launch_chunks(clt_lowering *l, const clt_tensor *x, const geometry *g, int partials[2]) {
    static const char *const kernels[] = {"group_softmax_max_part", "group_softmax_sum_part"};
    for (int k = 0; k < 2; k++) partials[k] = reserve(l, g);
    for (int k = 0; k < 2; k++) {
        clt_launch_begin_typed(l, path, x->dtype, kernels[k], g->rows * g->chunks * CLT_WORKGROUP_ITEMS, CLT_WORKGROUP_ITEMS);
        clt_launch_tensor(l, x);
        for (int i = 0; i <= k; i++) clt_launch_scratch(l, partials[i]);
        clt_launch_ints(l, (int64_t[]){g->rows, g->n, g->inner, g->chunks}, 4, 4);
        clt_launch_int(l, CHUNK);
    }
}

/* ---- softmax; a row's data is whether it has the log form ---- */

static const bool plain_form = false, log_form = true;

static bool is_log(const clt_lowering *l) {
    return *(const bool *)l->row->data;
}

static bool supports_softmax(const clt_candidate *c) {
    geometry g = softmax_geometry(c->node);
    return (g.n >= LONG && g.inner == 1) || g.n > MOST_ITEM;
}

static void lower_softmax(clt_lowering *l, const clt_tensor *node) {
    geometry g = softmax_geometry(node);
    int partials[2];
    if (g.n <= MOST_GROUP) {
        launch(l, "group_softmax", g.rows, node, &g, NULL, 0, true);
    } else {
        launch_chunks(l, node->inputs[0], &g, partials);
        launch(l, "group_softmax_part", g.rows * g.chunks, node, &g, partials, 2, true);
    }
    clt_launch_int(l, is_log(l));
}

static void lower_softmax_grad(clt_lowering *l, const clt_tensor *node) {
    geometry g = softmax_geometry(node);
    if (g.n <= MOST_GROUP) {
        launch(l, "group_softmax_grad", g.rows, node, &g, NULL, 0, true);
    } else {
        int dots = reserve(l, &g);
        launch(l, "group_softmax_dot_part", g.rows * g.chunks, node, &g, &dots, 1, false);
        clt_launch_int(l, is_log(l));
        launch(l, "group_softmax_grad_part", g.rows * g.chunks, node, &g, &dots, 1, true);
    }
    clt_launch_int(l, is_log(l));
}

/* ---- cross-entropy ---- */

static bool supports_cross_entropy(const clt_candidate *c) {
    return cross_entropy_geometry(c->node).n >= LONG;
}

static void lower_cross_entropy(clt_lowering *l, const clt_tensor *node) {
    geometry g = cross_entropy_geometry(node);
    int partials[2];
    if (g.n <= MOST_GROUP) {
        launch(l, "group_cross_entropy", g.rows, node, &g, NULL, 0, true);
        return;
    }
    launch_chunks(l, node->inputs[0], &g, partials);
    launch(l, "group_cross_entropy_join", g.rows, node, &g, partials, 2, true);
}

static void lower_cross_entropy_grad(clt_lowering *l, const clt_tensor *node) {
    geometry g = cross_entropy_geometry(node);
    int partials[2];
    if (g.n <= MOST_GROUP) {
        launch(l, "group_cross_entropy_grad", g.rows, node, &g, NULL, 0, true);
        return;
    }
    launch_chunks(l, node->inputs[0], &g, partials);
    launch(l, "group_cross_entropy_grad_part", g.rows * g.chunks, node, &g, partials, 2, true);
}

#define SOFTMAX_ROW(op_suffix, form, function) \
    {CLT_WORKGROUP(op_suffix), .types = CLT_ANY_FLOAT, .data = &form, .supports = supports_softmax, .lower = function}
const clt_backend_row clt_workgroup_softmax_rows[] = {
    SOFTMAX_ROW(softmax, plain_form, lower_softmax),
    SOFTMAX_ROW(softmax_grad, plain_form, lower_softmax_grad),
    SOFTMAX_ROW(log_softmax, log_form, lower_softmax),
    SOFTMAX_ROW(log_softmax_grad, log_form, lower_softmax_grad),
    {CLT_WORKGROUP(cross_entropy), .types = CLT_ANY_FLOAT, .supports = supports_cross_entropy, .lower = lower_cross_entropy},
    {CLT_WORKGROUP(cross_entropy_grad), .types = CLT_ANY_FLOAT, .supports = supports_cross_entropy, .lower = lower_cross_entropy_grad},
    {0},
};
