#include <stdio.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/softmax.cl";

/* Bounds of what a kernel does in one launch: loops are short (see cl/prelude.cl). */
enum {
    LONG = 256,                                  /* rows of this many elements are given to a work-group */
    MOST_ITEM = 8192,                            /* and all of more than this, wherever their elements lie */
    MOST_GROUP = MOST_ITEM * CLT_REFERENCE_GROUP, /* longer rows are cut into chunks, a work-group each */
    CHUNK = 65536
};

typedef struct geometry {
    int64_t rows, n, inner, chunks;
} geometry;

static geometry geometry_of(const clt_tensor *node) {
    int axis = ((const clt_softmax_attributes *)node->attributes)->axis;
    geometry g = {.n = node->shape.rank ? node->shape.dims[axis] : 1, .inner = 1};
    for (int d = axis + 1; d < node->shape.rank; d++) g.inner *= node->shape.dims[d];
    g.rows = clt_tensor_elements(node) / g.n;
    g.chunks = (g.n + CHUNK - 1) / CHUNK;
    return g;
}

/* Kernels KERNEL_item and KERNEL_group of (inputs …, node, rows, n, inner, log_form). */
static void lower_whole(clt_lowering *l, const clt_tensor *node, const char *kernel, const geometry *g, bool log_form) {
    bool group = (g->n >= LONG && g->inner == 1) || g->n > MOST_ITEM;
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kernel, group ? "group" : "item");
    clt_launch_begin(l, path, name, group ? g->rows * CLT_REFERENCE_GROUP : g->rows, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, g->rows);
    clt_launch_int(l, g->n);
    clt_launch_int(l, g->inner);
    clt_launch_int(l, log_form);
}

/* A kernel of (inputs …, partial results …, what it writes, rows, n, inner, chunks, length). What it writes is the node, or of
 * the partial results the last. */
static void launch_part(clt_lowering *l, const clt_tensor *node, const char *kernel, const geometry *g, const int *partials,
                        int n, bool last) {
    clt_launch_begin(l, path, kernel, g->rows * g->chunks * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    for (int i = 0; i < n; i++) clt_launch_scratch(l, partials[i]);
    if (last) clt_launch_tensor(l, node);
    clt_launch_int(l, g->rows);
    clt_launch_int(l, g->n);
    clt_launch_int(l, g->inner);
    clt_launch_int(l, g->chunks);
    clt_launch_int(l, CHUNK);
}

static void lower(clt_lowering *l, const clt_tensor *node, bool log_form) {
    geometry g = geometry_of(node);
    size_t bytes = (size_t)(g.rows * g.chunks) * sizeof(float);
    if (g.n <= MOST_GROUP) {
        lower_whole(l, node, "ref_softmax", &g, log_form);
        return;
    }
    int partials[] = {clt_lower_scratch(l, bytes), clt_lower_scratch(l, bytes)};
    launch_part(l, node, "ref_softmax_max_part", &g, partials, 1, false);
    launch_part(l, node, "ref_softmax_sum_part", &g, partials, 2, false);
    launch_part(l, node, "ref_softmax_part", &g, partials, 2, true);
    clt_launch_int(l, log_form);
}

static void lower_grad(clt_lowering *l, const clt_tensor *node, bool log_form) {
    geometry g = geometry_of(node);
    if (g.n <= MOST_GROUP) {
        lower_whole(l, node, "ref_softmax_grad", &g, log_form);
        return;
    }
    int dots = clt_lower_scratch(l, (size_t)(g.rows * g.chunks) * sizeof(float));
    launch_part(l, node, "ref_softmax_dot_part", &g, &dots, 1, false);
    clt_launch_int(l, log_form);
    launch_part(l, node, "ref_softmax_grad_part", &g, &dots, 1, true);
    clt_launch_int(l, log_form);
}

void clt_reference_softmax(clt_lowering *l, const clt_tensor *node) { lower(l, node, false); }
void clt_reference_softmax_grad(clt_lowering *l, const clt_tensor *node) { lower_grad(l, node, false); }
void clt_reference_log_softmax(clt_lowering *l, const clt_tensor *node) { lower(l, node, true); }
void clt_reference_log_softmax_grad(clt_lowering *l, const clt_tensor *node) { lower_grad(l, node, true); }
