#include "backends/reference/reference.h"

static const char path[] = "reference/compress.cl";

enum { LANES = 16 }; /* values that a work-item of the casts has */

/* The inputs, `first`, and the flat tensor's length. */
static void begin(clt_lowering *l, const char *kernel, const clt_tensor *first, const clt_tensor *second,
                  const clt_tensor *third, int64_t n, int64_t items) {
    clt_launch_begin(l, path, kernel, items, CLT_REFERENCE_GROUP);
    clt_launch_tensor(l, first);
    clt_launch_tensor(l, second);
    if (third) clt_launch_tensor(l, third);
    clt_launch_int(l, n);
}

static void cast(clt_lowering *l, const clt_tensor *node, const char *kernel, const clt_tensor *to) {
    const clt_compress_attributes *at = node->attributes;
    int64_t n = clt_tensor_elements(node);
    begin(l, kernel, node->inputs[0], to, NULL, n, (n + LANES - 1) / LANES);
    clt_launch_float(l, at->scale);
}

void clt_reference_narrow(clt_lowering *l, const clt_tensor *node) {
    cast(l, node, node->dtype == CLT_F16 ? "ref_narrow_f16" : "ref_narrow_bf16", node);
}

void clt_reference_widen(clt_lowering *l, const clt_tensor *node) {
    const clt_tensor *wire = node->inputs[1];
    cast(l, node, wire->dtype == CLT_F16 ? "ref_widen_f16" : "ref_widen_bf16", wire);
}

static int64_t blocks_of(int64_t n) {
    return (n + CLT_COMPRESS_BLOCK - 1) / CLT_COMPRESS_BLOCK;
}

static void encode(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    int64_t n = clt_tensor_elements(node->inputs[0]), blocks = blocks_of(n);
    begin(l, kernel, node->inputs[0], node->inputs[1], node, n, blocks);
    clt_launch_int(l, blocks);
}

static void decode(clt_lowering *l, const clt_tensor *node, const char *kernel) {
    const clt_compress_attributes *at = node->attributes;
    int64_t n = clt_tensor_elements(node), blocks = blocks_of(n);
    begin(l, kernel, node->inputs[0], node->inputs[1], NULL, n, blocks);
    clt_launch_int(l, blocks);
    clt_launch_int(l, at->ranks);
    clt_launch_int(l, clt_tensor_elements(node->inputs[1]) / at->ranks);
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
