/* What goes along contiguous rows (cl/native/gpu/along.cl): softmax, cross-entropy, accuracy, and layer normalization, with their gradients. */
#include <stdio.h>

#include "backends/native/along.h"
#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"

enum {
    GROUP = 64,
    LEAST_LANES = 16, /* of a row: neighbours read neighbours */
    MOST_LANES = 256,
    EASY = 4,         /* loads of a lane, before a row gets more of them */
    MOST_KEPT = 16,   /* elements of a lane, of one tensor: registers */
    LEAST = 8         /* elements of a row */
};

/* How a row is cut. */
typedef struct cut {
    int lanes, vector, loads, items;
    int64_t groups;
} cut;

static cut cut_of(const clt_rows *rows) {
    cut c = {.lanes = LEAST_LANES, .vector = rows->n % 4 == 0 ? 4 : 1, .loads = 1};
    while (c.lanes < MOST_LANES && c.lanes * c.vector * EASY < rows->n) c.lanes *= 2;
    while (c.loads * c.vector <= MOST_KEPT && c.lanes * c.vector * c.loads < rows->n) c.loads *= 2;
    c.items = CLT_MAX(GROUP, c.lanes);
    c.groups = (rows->count * c.lanes + c.items - 1) / c.items;
    return c;
}

static bool supports(const clt_candidate *c) {
    const clt_device_info *info = clt_device_get_info(c->device);
    clt_rows rows;
    if (!clt_gpu_fits(c->device) || !clt_rows_of(c->node, &rows) || rows.n < LEAST) return false;
    cut x = cut_of(&rows);
    return x.loads * x.vector <= MOST_KEPT && info->max_work_group_size >= (size_t)x.items && info->local_memory_bytes >= sizeof(float) * (uint64_t)x.items &&
           x.groups * x.items <= INT32_MAX;
}

static void begin_rows(clt_lowering *l, const clt_rows *rows) {
    cut c = cut_of(rows);
    char definitions[96];
    snprintf(definitions, sizeof definitions, "#define GPU_LANES %d\n#define GPU_VECTOR %d\n#define GPU_LOADS %d\n", c.lanes, c.vector, c.loads);
    clt_gpu_begin(l, "native/gpu/along.cl", rows->x->dtype, definitions, l->row->data, c.groups * c.items, c.items);
    clt_launch_fix_group(l, c.items);
}

static void launch_size(clt_lowering *l, const clt_rows *rows) {
    clt_launch_ints(l, (int64_t[]){rows->count, rows->n}, 2, 2);
}

static void begin(clt_lowering *l, const clt_tensor *node, int n_inputs, const clt_tensor *result) {
    clt_rows rows;
    clt_rows_of(node, &rows);
    begin_rows(l, &rows);
    for (int i = 0; i < n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, result);
    launch_size(l, &rows);
}

static void lower(clt_lowering *l, const clt_tensor *node) {
    clt_lower_along(l, node, begin);
}

/* Which rows are wrong, and then how many are not. */
static void lower_correct(clt_lowering *l, const clt_tensor *node) {
    clt_rows rows;
    clt_rows_of(node, &rows);
    int wrong = clt_lower_scratch(l, (size_t)rows.count * sizeof(int32_t));
    begin_rows(l, &rows);
    clt_launch_tensor(l, rows.x);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_scratch(l, wrong);
    launch_size(l, &rows);
    clt_reference_metric_count(l, node, wrong, rows.count);
}

/* The data is the kernel's name. */
#define ALONG_ROW_BY(op_suffix, kernel, lower_) \
    {CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .data = kernel, .requires = 1u << CLT_CAP_GROUPS, .supports = supports, .lower = lower_}
#define ALONG_ROW(op_suffix, kernel) ALONG_ROW_BY(op_suffix, kernel, lower)
const clt_backend_row clt_gpu_along_rows[] = {
    ALONG_ROW(softmax, "gpu_softmax"),
    ALONG_ROW(softmax_grad, "gpu_softmax_grad"),
    ALONG_ROW(log_softmax, "gpu_softmax"),
    ALONG_ROW(log_softmax_grad, "gpu_softmax_grad"),
    ALONG_ROW(cross_entropy, "gpu_cross_entropy"),
    ALONG_ROW(cross_entropy_grad, "gpu_cross_entropy_grad"),
    ALONG_ROW(layer_norm, "gpu_layer_norm_stats"),
    ALONG_ROW(layer_norm_grad_input, "gpu_layer_norm_grad_input"),
    ALONG_ROW_BY(metric_correct, "gpu_metric_wrong", lower_correct),
    {0},
};
