#include <stdio.h>

#include "backends/reference/reference.h"

static const char path[] = "reference/cross_entropy.cl";

/* Bounds of what a kernel does in one launch: loops are short (see cl/prelude.cl). */
enum {
    MANY_CLASSES = 256,  /* rows this long are given to a work-group */
    MOST_GROUP = 524288, /* longer ones are cut into chunks, a work-group each */
    CHUNK = 65536
};

static int64_t rows_of(const clt_tensor *node) {
    return node->inputs[0]->shape.dims[0];
}

static int64_t classes_of(const clt_tensor *node) {
    return node->inputs[0]->shape.dims[1];
}

static int64_t chunks_of(const clt_tensor *node) {
    return (classes_of(node) + CHUNK - 1) / CHUNK;
}

/* Kernels KERNEL_item and KERNEL_group of (inputs …, node, rows, classes). */
static void lower_whole(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    bool group = classes_of(node) >= MANY_CLASSES;
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kernel, group ? "group" : "item");
    clt_launch_begin(l, path, name, group ? rows_of(node) * CLT_REFERENCE_GROUP : rows_of(node), CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, rows_of(node));
    clt_launch_int(l, classes_of(node));
}

/* The chunks' maxima and sums, by the kernels of softmax along rows whose elements are 1 apart. */
static void launch_chunks(clt_lowering *l, const clt_tensor *node, const int *partials) {
    static const char *const kernels[] = {"ref_softmax_max_part", "ref_softmax_sum_part"};
    for (int k = 0; k < 2; k++) {
        clt_launch_begin(l, "reference/softmax.cl", kernels[k], rows_of(node) * chunks_of(node) * CLT_REFERENCE_GROUP,
                         CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, node->inputs[0]);
        for (int i = 0; i <= k; i++) clt_launch_scratch(l, partials[i]);
        clt_launch_int(l, rows_of(node));
        clt_launch_int(l, classes_of(node));
        clt_launch_int(l, 1);
        clt_launch_int(l, chunks_of(node));
        clt_launch_int(l, CHUNK);
    }
}

/* A kernel of (inputs …, maxima, sums, node, rows, classes, chunks) in so many work-groups. */
static void lower_parts(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t groups) {
    size_t bytes = (size_t)(rows_of(node) * chunks_of(node)) * sizeof(float);
    int partials[] = {clt_lower_scratch(l, bytes), clt_lower_scratch(l, bytes)};
    launch_chunks(l, node, partials);
    clt_launch_begin(l, path, kernel, groups * CLT_REFERENCE_GROUP, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    for (int i = 0; i < 2; i++) clt_launch_scratch(l, partials[i]);
    clt_launch_tensor(l, node);
    clt_launch_int(l, rows_of(node));
    clt_launch_int(l, classes_of(node));
    clt_launch_int(l, chunks_of(node));
}

void clt_reference_cross_entropy(clt_lowering *l, const clt_tensor *node) {
    if (classes_of(node) > MOST_GROUP) lower_parts(l, node, "ref_cross_entropy_parts", rows_of(node));
    else lower_whole(l, node, "ref_cross_entropy");
}

void clt_reference_cross_entropy_grad(clt_lowering *l, const clt_tensor *node) {
    if (classes_of(node) <= MOST_GROUP) {
        lower_whole(l, node, "ref_cross_entropy_grad");
        return;
    }
    lower_parts(l, node, "ref_cross_entropy_grad_parts", rows_of(node) * chunks_of(node));
    clt_launch_int(l, CHUNK);
}
