#include "backends/reference/reference.h"

static const char path[] = "reference/embedding.cl";

void clt_reference_lower_embedding(clt_lowering *l, const clt_tensor *node, int width) {
    const clt_tensor *weight = node->inputs[0], *indices = node->inputs[1];
    int64_t count = clt_tensor_elements(node) / width;
    clt_launch_begin_floats(l, path, width, CLT_F32, "ref_embedding", count, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, weight);
    clt_launch_tensor(l, indices);
    clt_launch_tensor(l, node);
    clt_launch_int(l, count);
    clt_launch_int(l, weight->shape.dims[1] / width);
    clt_launch_int(l, weight->shape.dims[0]);
}

static void lower_embedding(clt_lowering *l, const clt_tensor *node) {
    clt_reference_lower_embedding(l, node, 1);
}

/* Long sums are made in parts, a launch each (see cl/prelude.cl). */
static void lower_embedding_grad(clt_lowering *l, const clt_tensor *node) {
    enum { PART = 8192 };
    const clt_tensor *indices = node->inputs[0], *dy = node->inputs[1];
    int64_t count = clt_tensor_elements(node), positions = clt_tensor_elements(indices);
    for (int64_t start = 0; start < positions; start += PART) {
        clt_launch_begin(l, path, "ref_embedding_grad", count, CLT_REFERENCE_GROUP);
        clt_launch_tensor(l, indices);
        clt_launch_tensor(l, dy);
        clt_launch_tensor(l, node);
        clt_launch_int(l, count);
        clt_launch_int(l, node->shape.dims[1]);
        clt_launch_int(l, start);
        clt_launch_int(l, CLT_MIN(start + PART, positions));
    }
}

const clt_backend_row clt_reference_embedding_rows[] = {
    {CLT_REFERENCE(embedding), .lower = lower_embedding},
    {CLT_REFERENCE(embedding_grad), .lower = lower_embedding_grad},
    {0},
};
