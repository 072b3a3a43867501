/* The sums of layer normalization. */
#include "backends/workgroup/workgroup.h"

static const char path[] = "workgroup/layer_norm.cl";

static int64_t row_count(const clt_tensor *node) {
    return clt_tensor_elements(node->inputs[0]) / clt_layer_norm_length(node);
}

static void launch_size(clt_lowering *l, const clt_tensor *node) {
    clt_launch_ints(l, (int64_t[]){row_count(node), clt_layer_norm_length(node)}, 2, 2);
}

/* Of x's storage type. */
static void begin_typed(clt_lowering *l, const char *kernel, const clt_tensor *node, int64_t items) {
    clt_launch_begin_typed(l, path, node->inputs[0]->dtype, kernel, items, CLT_WORKGROUP_ITEMS);
}

/* A kernel with all inputs, its result, and the size. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *node, int64_t items) {
    begin_typed(l, kernel, node, items);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    launch_size(l, node);
}

/* ---- rows too long for the loops of one work-group (see cl/prelude.cl) are cut into chunks ---- */

enum { MOST_GROUP = 524288, CHUNK = 65536 };

static int64_t chunks_of(const clt_tensor *node) {
    int64_t length = clt_layer_norm_length(node);
    return length > MOST_GROUP ? (length + CHUNK - 1) / CHUNK : 1;
}

/* Of the scratch memory for two sums a chunk, those that the kernel takes: so many of them, behind its inputs. */
static void begin_parts(clt_lowering *l, const char *kernel, const clt_tensor *node, int n_inputs, const int *sums, int n) {
    begin_typed(l, kernel, node, row_count(node) * chunks_of(node) * CLT_WORKGROUP_ITEMS);
    for (int i = 0; i < n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    for (int i = 0; i < n; i++) clt_launch_scratch(l, sums[i]);
}

static void finish_parts(clt_lowering *l, const clt_tensor *node) {
    launch_size(l, node);
    clt_launch_int(l, chunks_of(node));
    clt_launch_int(l, CHUNK);
}

static void reserve_sums(clt_lowering *l, const clt_tensor *node, int sums[2]) {
    for (int i = 0; i < 2; i++)
        sums[i] = clt_lower_scratch(l, (size_t)(row_count(node) * chunks_of(node)) * sizeof(float));
}

static void stats_in_parts(clt_lowering *l, const clt_tensor *node) {
    int sums[2];
    reserve_sums(l, node, sums);
    begin_parts(l, "group_layer_norm_sum_part", node, 1, sums, 1);
    finish_parts(l, node);
    begin_parts(l, "group_layer_norm_squares_part", node, 1, sums, 2);
    finish_parts(l, node);

    begin_typed(l, "group_layer_norm_join_stats", node, row_count(node) * CLT_WORKGROUP_ITEMS);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_scratch(l, sums[0]);
    clt_launch_scratch(l, sums[1]);
    clt_launch_tensor(l, node->outputs[0]);
    launch_size(l, node);
    clt_launch_int(l, chunks_of(node));
}

static void grad_input_in_parts(clt_lowering *l, const clt_tensor *node) {
    int sums[2];
    reserve_sums(l, node, sums);
    begin_parts(l, "group_layer_norm_grad_sums_part", node, node->n_inputs, sums, 2);
    finish_parts(l, node);
    begin_parts(l, "group_layer_norm_grad_input_part", node, node->n_inputs, sums, 2);
    clt_launch_tensor(l, node);
    finish_parts(l, node);
}

/* The statistics; y is made of them by its form (exec/passes/split.c). */
static void lower_layer_norm(clt_lowering *l, const clt_tensor *node) {
    const clt_layer_norm_attributes *at = node->attributes;
    if (chunks_of(node) > 1) {
        stats_in_parts(l, node);
    } else {
        begin_typed(l, "group_layer_norm_stats", node, row_count(node) * CLT_WORKGROUP_ITEMS);
        clt_launch_tensor(l, node->inputs[0]);
        clt_launch_tensor(l, node->outputs[0]);
        launch_size(l, node);
    }
    clt_launch_float(l, at->eps);
}

static void lower_layer_norm_grad_input(clt_lowering *l, const clt_tensor *node) {
    if (chunks_of(node) > 1) grad_input_in_parts(l, node);
    else begin(l, "group_layer_norm_grad_input", node, row_count(node) * CLT_WORKGROUP_ITEMS);
}

/* A work-item a column is too few to fill a device, and its loop too long (see cl/prelude.cl): so the
 * rows are cut into chunks. Their number depends on shapes alone, for the same bits in each run. */
static void lower_layer_norm_grad_weight(clt_lowering *l, const clt_tensor *node) {
    enum { ENOUGH_ITEMS = 16384, MOST_ROWS = 8192 };
    int64_t rows = row_count(node), length = clt_layer_norm_length(node);
    int64_t chunks = CLT_MIN(rows, (ENOUGH_ITEMS + length - 1) / length);
    int64_t chunk_rows = CLT_MIN(MOST_ROWS, (rows + chunks - 1) / chunks);
    chunks = (rows + chunk_rows - 1) / chunk_rows;
    int partial = clt_lower_scratch(l, (size_t)(chunks * 2 * length) * sizeof(float));

    begin_typed(l, "group_layer_norm_grad_weight", node, chunks * length);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_scratch(l, partial);
    clt_launch_ints(l, (int64_t[]){rows, length}, 2, 2);
    clt_launch_int(l, chunks);
    clt_launch_int(l, chunk_rows);

    clt_launch_begin(l, path, "group_layer_norm_sum_chunks", 2 * length, CLT_WORKGROUP_ITEMS);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_int(l, 2 * length);
    clt_launch_int(l, chunks);
}

const clt_backend_row clt_workgroup_layer_norm_rows[] = {
    {CLT_WORKGROUP(layer_norm), .types = CLT_ANY_FLOAT, .lower = lower_layer_norm},
    {CLT_WORKGROUP(layer_norm_grad_input), .types = CLT_ANY_FLOAT, .lower = lower_layer_norm_grad_input},
    {CLT_WORKGROUP(layer_norm_grad_weight), .types = CLT_ANY_FLOAT, .lower = lower_layer_norm_grad_weight},
    {0},
};
