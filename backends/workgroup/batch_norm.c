/* The sums of batch normalization. */
#include "backends/reference/reference.h"
#include "backends/workgroup/workgroup.h"

static const char path[] = "workgroup/batch_norm.cl";

static int64_t values_per_channel(const clt_tensor *x) {
    return clt_tensor_elements(x) / x->shape.dims[1];
}

static void launch_size(clt_lowering *l, const clt_tensor *x) {
    int64_t images = x->shape.dims[0];
    clt_launch_ints(l, (int64_t[]){images, x->shape.dims[1], values_per_channel(x) / images}, 3, 4);
}

/* How the images are cut for sums over a channel: few enough in a chunk for its loops to be short (see
 * cl/prelude.cl) and for a device to have enough to do; `parts` chunks share an image whose channels are too
 * long for one. Depends on the shape alone, for the same bits in each run. */
typedef struct cut {
    int64_t chunks, chunk_images, parts, part;
} cut;

static cut cut_of(const clt_tensor *x) {
    enum { ROUNDS = 512, PART = 65536 };
    int64_t images = x->shape.dims[0], inner = values_per_channel(x) / images;
    cut c = {.chunk_images = CLT_MAX(1, ROUNDS / (1 + inner / CLT_WORKGROUP_ITEMS)),
             .parts = (inner + PART - 1) / PART,
             .part = CLT_MIN(inner, PART)};
    c.chunks = (images + c.chunk_images - 1) / c.chunk_images * c.parts;
    return c;
}

/* A work-group for each chunk of each channel. */
static void begin_sums(clt_lowering *l, const char *kernel, const clt_tensor *x, const cut *c) {
    clt_launch_begin_typed(l, path, x->dtype, kernel, c->chunks * x->shape.dims[1] * CLT_WORKGROUP_ITEMS, CLT_WORKGROUP_ITEMS);
    clt_launch_tensor(l, x);
}

static void launch_cut(clt_lowering *l, const clt_tensor *x, const cut *c) {
    launch_size(l, x);
    clt_launch_ints(l, (int64_t[]){c->chunks, c->chunk_images, c->parts, c->part}, 4, 4);
}

/* Sums and sums of squared deviations of the chunks, in scratch memory, and the beginning of the kernel that joins them: x and
 * these. */
static void begin_joining(clt_lowering *l, const char *kernel, const clt_tensor *x, const cut *c) {
    size_t bytes = (size_t)(c->chunks * x->shape.dims[1]) * sizeof(float);
    int sums = clt_lower_scratch(l, bytes), squares = clt_lower_scratch(l, bytes);

    begin_sums(l, "group_batch_norm_sum", x, c);
    clt_launch_scratch(l, sums);
    launch_cut(l, x, c);

    begin_sums(l, "group_batch_norm_squares", x, c);
    clt_launch_scratch(l, sums);
    clt_launch_scratch(l, squares);
    launch_cut(l, x, c);

    clt_launch_begin_typed(l, path, x->dtype, kernel, x->shape.dims[1], CLT_WORKGROUP_ITEMS);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, sums);
    clt_launch_scratch(l, squares);
}

static void lower_batch_norm_moments(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    cut c = cut_of(x);
    begin_joining(l, "group_batch_norm_moments", x, &c);
    clt_launch_tensor(l, node);
    launch_size(l, x);
    clt_launch_int(l, c.chunks);
}

static void lower_batch_norm(clt_lowering *l, const clt_tensor *node) {
    if (!l->training) { /* x is not looked at */
        clt_reference_running_stats(l, node);
        return;
    }
    const clt_batch_norm_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    cut c = cut_of(x);
    begin_joining(l, "group_batch_norm_stats", x, &c);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node->outputs[0]);
    launch_size(l, x);
    clt_launch_int(l, c.chunks);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static void lower_batch_norm_grad(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    int64_t count = clt_tensor_elements(node->outputs[0]);
    cut c = cut_of(x);
    int partial = clt_lower_scratch(l, (size_t)(c.chunks * count) * sizeof(float));

    begin_sums(l, "group_batch_norm_grad_sums", x, &c);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[3]);
    clt_launch_scratch(l, partial);
    launch_cut(l, x, &c);

    clt_launch_begin(l, path, "group_batch_norm_sum_chunks", count, CLT_WORKGROUP_ITEMS);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node->outputs[0]);
    clt_launch_int(l, count);
    clt_launch_int(l, c.chunks);
}

/* The reference says what is wrong with a channel of one value. */
static bool supports_stats(const clt_candidate *c) {
    return values_per_channel(c->node->inputs[0]) >= 2;
}

/* The kernels know one storage type. */
static bool supports_sums(const clt_candidate *c) {
    return c->node->inputs[0]->dtype == c->node->inputs[3]->dtype;
}

const clt_backend_row clt_workgroup_batch_norm_rows[] = {
    {CLT_WORKGROUP(batch_norm), .types = CLT_ANY_FLOAT, .supports = supports_stats, .lower = lower_batch_norm},
    {CLT_WORKGROUP(batch_norm_moments), .types = CLT_ANY_FLOAT, .lower = lower_batch_norm_moments},
    {CLT_WORKGROUP(batch_norm_grad), .types = CLT_ANY_FLOAT, .supports = supports_sums, .lower = lower_batch_norm_grad},
    {0},
};
