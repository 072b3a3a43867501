/* Sums down columns: normalizations and reductions of channels-last images and of batches of features. */
#include "backends/native/columns.h"
#include "backends/native/cpu/cpu.h"
#include "backends/reference/reference.h"

static const char path[] = "native/cpu/columns.cl";

/* [matrices, rows, columns], and how rows are cut: so many in a chunk that it stays in the second cache, by the shape
 * alone, for the same bits with any number of processors. */
typedef struct matrices {
    int64_t count, rows, columns, chunks, chunk_rows;
} matrices;

enum { CHUNK_ELEMENTS = 16384, MOST_COLUMNS = 512 /* as in cl/native/cpu/columns.cl */ };

static matrices matrices_of(int64_t count, int64_t rows, int64_t columns) {
    matrices m = {.count = count, .rows = rows, .columns = columns};
    m.chunk_rows = CLT_MAX(CHUNK_ELEMENTS / CLT_MIN(columns, MOST_COLUMNS), 16);
    m.chunks = clt_cpu_divide_up(rows, m.chunk_rows);
    return m;
}

static int64_t items_of(const matrices *m, int64_t chunks) {
    return m->count * chunks * clt_cpu_divide_up(m->columns, MOST_COLUMNS);
}

static void launch_shape(clt_lowering *l, const matrices *m) {
    clt_launch_ints(l, (int64_t[]){m->count, m->rows, m->columns, m->chunks}, 4, 4);
}

/* Over chunks of x. */
static void begin_chunks(clt_lowering *l, const char *kernel, const matrices *m, const clt_tensor *x) {
    clt_launch_begin(l, path, kernel, items_of(m, m->chunks), 1);
    clt_launch_tensor(l, x);
}

static void end_chunks(clt_lowering *l, const matrices *m, int partial) {
    clt_launch_scratch(l, partial);
    launch_shape(l, m);
    clt_launch_int(l, m->chunk_rows);
}

/* ---- batch normalization ---- */

/* Channels are innermost: pixels are rows. */
static bool has_rows(const clt_tensor *x) {
    return x->shape.rank == 2 || (x->shape.rank == 4 && clt_tensor_channels_last(x));
}

static matrices pixels_of(const clt_tensor *x) {
    int64_t channels = x->shape.dims[1];
    return matrices_of(1, clt_tensor_elements(x) / channels, channels);
}

static bool supports_batch_norm(const clt_candidate *c) {
    const clt_tensor *x = c->node->inputs[0];
    return clt_cpu_fits(c->device) && has_rows(x) && clt_tensor_elements(x) / x->shape.dims[1] >= 2;
}

static void lower_batch_norm(clt_lowering *l, const clt_tensor *node) {
    enum { CHANNELS = 16 }; /* of an item of cpu_columns_stats */
    const clt_batch_norm_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    matrices m = pixels_of(x);
    if (!l->training) { /* x is not looked at */
        clt_reference_running_stats(l, node);
        return;
    }
    int moments = clt_cpu_scratch(l, m.chunks * 2 * m.columns);
    begin_chunks(l, "cpu_columns_moments", &m, x);
    end_chunks(l, &m, moments);
    clt_launch_begin(l, path, "cpu_columns_stats", clt_cpu_divide_up(m.columns, CHANNELS), 1);
    clt_launch_scratch(l, moments);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node->outputs[0]);
    launch_shape(l, &m);
    clt_launch_int(l, m.chunk_rows);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static bool supports_batch_norm_moments(const clt_candidate *c) {
    return clt_cpu_fits(c->device) && has_rows(c->node->inputs[0]);
}

static void lower_batch_norm_moments(clt_lowering *l, const clt_tensor *node) {
    enum { CHANNELS = 16 }; /* of an item of cpu_columns_moments_total */
    matrices m = pixels_of(node->inputs[0]);
    int moments = clt_cpu_scratch(l, m.chunks * 2 * m.columns);
    begin_chunks(l, "cpu_columns_moments", &m, node->inputs[0]);
    end_chunks(l, &m, moments);
    clt_launch_begin(l, path, "cpu_columns_moments_total", clt_cpu_divide_up(m.columns, CHANNELS), 1);
    clt_launch_scratch(l, moments);
    clt_launch_tensor(l, node);
    launch_shape(l, &m);
    clt_launch_int(l, m.chunk_rows);
}

static bool supports_batch_norm_grad(const clt_candidate *c) {
    return clt_cpu_fits(c->device) && has_rows(c->node->inputs[0]) && has_rows(c->node->inputs[3]);
}

static void lower_batch_norm_grad(clt_lowering *l, const clt_tensor *node) {
    enum { CHANNELS = 16 }; /* of an item of cpu_columns_gradient_total */
    matrices m = pixels_of(node->inputs[0]);
    int partial = clt_cpu_scratch(l, m.chunks * 2 * m.columns);
    begin_chunks(l, "cpu_columns_gradient", &m, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[3]);
    end_chunks(l, &m, partial);
    clt_launch_begin(l, path, "cpu_columns_gradient_total", clt_cpu_divide_up(m.columns, CHANNELS), 1);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->outputs[0]);
    launch_shape(l, &m);
}

/* ---- layer normalization ---- */

static bool supports_layer_norm_grad_weight(const clt_candidate *c) {
    return clt_cpu_fits(c->device);
}

static void lower_layer_norm_grad_weight(clt_lowering *l, const clt_tensor *node) {
    int64_t n = clt_layer_norm_length(node);
    matrices m = matrices_of(1, clt_tensor_elements(node->inputs[0]) / n, n);
    int partial = clt_cpu_scratch(l, m.chunks * 2 * n);
    begin_chunks(l, "cpu_columns_layer_norm", &m, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    end_chunks(l, &m, partial);
    matrices parts = matrices_of(1, m.chunks, 2 * n); /* each chunk's two sums are a row */
    clt_launch_begin(l, path, "cpu_columns_total", items_of(&parts, 1), 1);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    parts.chunks = m.chunks;
    launch_shape(l, &parts);
    clt_launch_float(l, 1);
}

/* ---- reductions ---- */

static bool supports_reduce(const clt_candidate *c) {
    const clt_reduce_attributes *at = c->node->attributes;
    clt_columns of;
    return clt_cpu_fits(c->device) && at->reduction != CLT_AXES_MAX && clt_columns_of(c->node, &of);
}

static void lower_reduce(clt_lowering *l, const clt_tensor *node) {
    const clt_reduce_attributes *at = node->attributes;
    clt_columns of = {0};
    clt_columns_of(node, &of);
    matrices m = matrices_of(of.count, of.rows, of.columns);
    int partial = m.chunks > 1 ? clt_cpu_scratch(l, m.count * m.chunks * m.columns) : -1;
    if (m.chunks > 1) {
        begin_chunks(l, "cpu_columns_sum", &m, node->inputs[0]);
        end_chunks(l, &m, partial);
    }
    matrices parts = m;
    if (m.chunks == 1) parts.chunks = m.rows; /* the rows are the parts */
    clt_launch_begin(l, path, "cpu_columns_total", items_of(&m, 1), 1);
    if (m.chunks > 1) clt_launch_scratch(l, partial);
    else clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node);
    launch_shape(l, &parts);
    clt_launch_float(l, at->reduction == CLT_AXES_MEAN ? (float)(1.0 / (double)m.rows) : 1.0f);
}

const clt_backend_row clt_cpu_columns_rows[] = {
    {CLT_NATIVE(batch_norm), .any_layout = true, .supports = supports_batch_norm, .lower = lower_batch_norm},
    {CLT_NATIVE(batch_norm_moments), .any_layout = true, .supports = supports_batch_norm_moments, .lower = lower_batch_norm_moments},
    {CLT_NATIVE(batch_norm_grad), .any_layout = true, .supports = supports_batch_norm_grad, .lower = lower_batch_norm_grad},
    {CLT_NATIVE(reduce), .any_layout = true, .supports = supports_reduce, .lower = lower_reduce},
    {CLT_NATIVE(layer_norm_grad_weight), .supports = supports_layer_norm_grad_weight, .lower = lower_layer_norm_grad_weight},
    {0},
};
