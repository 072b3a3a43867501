#include "backends/reference/reference.h"

static const char path[] = "reference/compress.cl";

enum { LANES = 16 }; /* values that a work-item of the casts has */

/* The inputs, the node where it is no view of one, and the flat tensor's length. */
static void begin(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t items) {
    clt_launch_begin(l, path, kernel, items, CLT_REFERENCE_GROUP);
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    if (!node->op->is_view) clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node->inputs[0]));
}

static void cast(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    begin(l, node, kernel, (clt_tensor_elements(node) + LANES - 1) / LANES);
}

void clt_reference_narrow(clt_lowering *l, const clt_tensor *node) {
    cast(l, node, node->dtype == CLT_F16    ? "ref_narrow_f16"
                  : node->dtype == CLT_BF16 ? "ref_narrow_bf16"
                                            : "ref_narrow_f32");
}

void clt_reference_widen(clt_lowering *l, const clt_tensor *node) {
    cast(l, node, node->inputs[1]->dtype == CLT_F16 ? "ref_widen_f16" : "ref_widen_bf16");
}

static int64_t blocks_of(int64_t n) {
    return (n + CLT_COMPRESS_BLOCK - 1) / CLT_COMPRESS_BLOCK;
}

static void encode(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    int64_t blocks = blocks_of(clt_tensor_elements(node->inputs[0]));
    begin(l, node, kernel, blocks);
    clt_launch_int(l, blocks);
}

static void decode(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    const clt_compress_attributes *at = node->attributes;
    int64_t blocks = blocks_of(clt_tensor_elements(node));
    begin(l, node, kernel, blocks);
    clt_launch_int(l, blocks);
    clt_launch_int(l, at->ranks);
    clt_launch_int(l, clt_tensor_elements(node->inputs[1]) / at->ranks * (int64_t)sizeof(int32_t));
}

void clt_reference_int8_encode(clt_lowering *l, const clt_tensor *node) {
    encode(l, node, "ref_int8_encode");
}

void clt_reference_int8_decode(clt_lowering *l, const clt_tensor *node) {
    decode(l, node, "ref_int8_decode");
}

void clt_reference_onebit_encode(clt_lowering *l, const clt_tensor *node) {
    encode(l, node, "ref_onebit_encode");
}

void clt_reference_onebit_decode(clt_lowering *l, const clt_tensor *node) {
    decode(l, node, "ref_onebit_decode");
}
