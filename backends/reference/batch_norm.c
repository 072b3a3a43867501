#include <math.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/batch_norm.cl";

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
    cut c = {.chunk_images = CLT_MAX(1, ROUNDS / (1 + inner / CLT_REFERENCE_GROUP)),
             .parts = (inner + PART - 1) / PART,
             .part = CLT_MIN(inner, PART)};
    c.chunks = (images + c.chunk_images - 1) / c.chunk_images * c.parts;
    return c;
}

/* A work-group for each chunk of each channel. */
static void begin_sums(clt_lowering *l, const char *kernel, const clt_tensor *x, const cut *c) {
    clt_launch_begin(l, path, kernel, c->chunks * x->shape.dims[1] * CLT_REFERENCE_GROUP,
                     CLT_REFERENCE_GROUP);
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

    begin_sums(l, "ref_batch_norm_sum", x, c);
    clt_launch_scratch(l, sums);
    launch_cut(l, x, c);

    begin_sums(l, "ref_batch_norm_squares", x, c);
    clt_launch_scratch(l, sums);
    clt_launch_scratch(l, squares);
    launch_cut(l, x, c);

    clt_launch_begin(l, path, kernel, x->shape.dims[1], CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, x);
    clt_launch_scratch(l, sums);
    clt_launch_scratch(l, squares);
}

void clt_reference_batch_norm_moments(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    cut c = cut_of(x);
    begin_joining(l, "ref_batch_norm_moments", x, &c);
    clt_launch_tensor(l, node);
    launch_size(l, x);
    clt_launch_int(l, c.chunks);
}

void clt_reference_batch_norm_combine(clt_lowering *l, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    int64_t channels = node->shape.dims[1], ranks = clt_tensor_elements(node->inputs[1]);
    clt_launch_begin(l, path, "ref_batch_norm_combine", channels, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[3]);
    clt_launch_tensor(l, node->inputs[4]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, channels);
    clt_launch_int(l, ranks);
    clt_launch_int(l, at->inner);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static void batch_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    cut c = cut_of(x);
    begin_joining(l, "ref_batch_norm_stats", x, &c);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node);
    launch_size(l, x);
    clt_launch_int(l, c.chunks);
    clt_launch_float(l, at->eps);
    clt_launch_float(l, at->momentum);
}

static void running_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_norm_attributes *at = node->attributes;
    int64_t channels = node->shape.dims[1];
    clt_launch_begin(l, path, "ref_batch_norm_running_stats", channels, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, channels);
    clt_launch_float(l, at->eps);
}

void clt_reference_batch_norm_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    if (!l->training) {
        running_stats(l, node);
    } else if (values_per_channel(x) >= 2) {
        batch_stats(l, node);
    } else {
        char text[CLT_SHAPE_TEXT], label[64]; /* the running mean's name tells which layer */
        clt_lower_fail(
            l, clt_fail(CLT_E_SHAPE,
                        "with %s: training needs more than one value per channel, input %s has one",
                        clt_tensor_label(node->inputs[1], label), clt_shape_text(&x->shape, text)));
    }
}

/* A work-item an element. */
static void launch_elements(clt_lowering *l, const char *kernel, const clt_tensor *node) {
    clt_launch_begin(l, path, kernel, clt_tensor_elements(node), CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    launch_size(l, node);
}

void clt_reference_batch_norm(clt_lowering *l, const clt_tensor *node) {
    launch_elements(l, "ref_batch_norm", node);
}

void clt_reference_batch_norm_grad_stats(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *x = node->inputs[0];
    int64_t count = clt_tensor_elements(node);
    cut c = cut_of(x);
    int partial = clt_lower_scratch(l, (size_t)(c.chunks * count) * sizeof(float));

    begin_sums(l, "ref_batch_norm_grad_stats", x, &c);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node->inputs[2]);
    clt_launch_scratch(l, partial);
    launch_cut(l, x, &c);

    clt_launch_begin(l, path, "ref_batch_norm_sum_chunks", count, CLT_REFERENCE_GROUP);
    clt_launch_scratch(l, partial);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, c.chunks);
}

void clt_reference_batch_norm_grad_input(clt_lowering *l, const clt_tensor *node) {
    launch_elements(l, "ref_batch_norm_grad_input", node);
    clt_launch_float(l, l->training ? (float)values_per_channel(node) : INFINITY);
}
