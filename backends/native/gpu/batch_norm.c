/* The statistics and the gradients' sums of batch normalization (cl/native/gpu/batch_norm.cl): x is read once for each. */
#include <stdio.h>

#include "backends/native/gpu/gpu.h"
#include "backends/reference/reference.h"

static const char path[] = "native/gpu/batch_norm.cl";

enum {
    ITEMS = 128,
    LEAST = 16,         /* elements of an image that lie side by side */
    ELEMENTS = 16384,   /* of a channel, about, for a work-group */
    MOST_ROUNDS = 30000 /* of a work-item: see cl/prelude.cl */
};

/* How the images are cut into chunks, by the shape alone, for the same bits on all devices. */
typedef struct cut {
    int vector;
    int64_t inner, images, chunks;
} cut;

static cut cut_of(const clt_tensor *x) {
    int64_t n = x->shape.dims[0], inner = clt_tensor_elements(x) / n / x->shape.dims[1];
    cut c = {.vector = inner % 4 == 0 ? 4 : 1, .inner = inner, .images = CLT_MAX(ELEMENTS / inner, 1)};
    c.chunks = (n + c.images - 1) / c.images;
    return c;
}

static void begin(clt_lowering *l, const clt_tensor *x, const char *kernel, int64_t count) {
    char vector[32];
    snprintf(vector, sizeof vector, "#define GPU_VECTOR %d\n", cut_of(x).vector);
    clt_gpu_begin(l, path, x->dtype, vector, kernel, count, ITEMS);
}

/* A work-group for each chunk of each channel. */
static void begin_chunks(clt_lowering *l, const clt_tensor *x, const char *kernel) {
    begin(l, x, kernel, cut_of(x).chunks * x->shape.dims[1] * ITEMS);
    clt_launch_fix_group(l, ITEMS);
    clt_launch_tensor(l, x);
}

static void launch_cut(clt_lowering *l, const clt_tensor *x) {
    cut c = cut_of(x);
    clt_launch_ints(l, (int64_t[]){x->shape.dims[0], x->shape.dims[1], c.inner}, 3, 4);
    clt_launch_ints(l, (int64_t[]){c.images, c.chunks}, 2, 2);
}

/* The chunks' moments, and the beginning of the kernel that joins them. */
static void begin_joining(clt_lowering *l, const clt_tensor *x, const char *kernel) {
    int chunks = clt_lower_scratch(l, (size_t)(cut_of(x).chunks * x->shape.dims[1]) * 2 * sizeof(float));
    begin_chunks(l, x, "gpu_batch_norm_chunks");
    clt_launch_scratch(l, chunks);
    launch_cut(l, x);
    begin(l, x, kernel, x->shape.dims[1]);
    clt_launch_scratch(l, chunks);
}

static void lower_moments(clt_lowering *l, const clt_tensor *node) {
    begin_joining(l, node->inputs[0], "gpu_batch_norm_moments");
    clt_launch_tensor(l, node);
    launch_cut(l, node->inputs[0]);
}

static void lower_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_batch_norm_attributes *at = node->attributes;
    if (!l->training) { /* x is not looked at */
        clt_reference_running_stats(l, node);
        return;
    }
    begin_joining(l, node->inputs[0], "gpu_batch_norm_stats");
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node->outputs[0]);
    launch_cut(l, node->inputs[0]);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static void lower_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    int64_t count = clt_tensor_elements(node->outputs[0]), chunks = cut_of(x).chunks;
    int partial = clt_lower_scratch(l, (size_t)(chunks * count) * sizeof(float));
    begin_chunks(l, x, "gpu_batch_norm_grad_sums");
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[3]);
    clt_launch_scratch(l, partial);
    launch_cut(l, x);
    begin(l, x, "gpu_batch_norm_total", count);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node->outputs[0]);
    clt_launch_ints(l, (int64_t[]){count, chunks}, 2, 2);
}

static bool supports(const clt_candidate *c) {
    const clt_tensor *x = c->node->inputs[0];
    const clt_device_info *info = clt_device_get_info(c->device);
    cut own = cut_of(x);
    return clt_gpu_fits(c->device) && info->max_work_group_size >= ITEMS && info->local_memory_bytes >= 3 * sizeof(float) * ITEMS &&
           own.inner >= LEAST && own.inner / own.vector <= (int64_t)ITEMS * MOST_ROUNDS && own.chunks <= MOST_ROUNDS && own.chunks * x->shape.dims[1] * ITEMS <= INT32_MAX;
}

/* The reference says what is wrong with a channel of one value. */
static bool supports_stats(const clt_candidate *c) {
    const clt_tensor *x = c->node->inputs[0];
    return supports(c) && clt_tensor_elements(x) / x->shape.dims[1] >= 2;
}

/* The kernel knows one storage type. */
static bool supports_grad(const clt_candidate *c) {
    return supports(c) && c->node->inputs[0]->dtype == c->node->inputs[3]->dtype;
}

#define BATCH_NORM_ROW(op_suffix) CLT_NATIVE(op_suffix), .types = CLT_ANY_FLOAT, .requires = 1u << CLT_CAP_GROUPS
const clt_backend_row clt_gpu_batch_norm_rows[] = {
    {BATCH_NORM_ROW(batch_norm), .supports = supports_stats, .lower = lower_stats},
    {BATCH_NORM_ROW(batch_norm_moments), .supports = supports, .lower = lower_moments},
    {BATCH_NORM_ROW(batch_norm_grad), .supports = supports_grad, .lower = lower_grad},
    {0},
};
