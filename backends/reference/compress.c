#include "backends/reference/reference.h"

static const char path[] = "reference/compress.cl";

enum { LANES = 16 }; /* values that a work-item of the casts has */

/* The inputs, the node where it is not a view of one, and the flat tensor's length. */
static void finish(clt_lowering *l, const clt_tensor *node) {
    for (int i = 0; i < node->n_inputs; i++) clt_launch_tensor(l, node->inputs[i]);
    if (!node->op->is_view) clt_launch_tensor(l, node);
    clt_launch_int(l, clt_tensor_elements(node->inputs[0]));
}

static void begin(clt_lowering *l, const clt_tensor *node, const char *kernel, int64_t items) {
    clt_launch_begin(l, path, kernel, items, CLT_REFERENCE_GROUP);
    finish(l, node);
}

static void cast(clt_lowering *l, const clt_tensor *node, clt_dtype wire, const char *kernel) {
    clt_launch_begin_typed(l, path, wire, kernel, (clt_tensor_elements(node) + LANES - 1) / LANES, CLT_REFERENCE_GROUP);
    finish(l, node);
}

static void lower_narrow(clt_lowering *l, const clt_tensor *node) {
    cast(l, node, node->dtype, "ref_narrow");
}

static void lower_widen(clt_lowering *l, const clt_tensor *node) {
    cast(l, node, node->inputs[1]->dtype, "ref_widen");
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

static void lower_int8_encode(clt_lowering *l, const clt_tensor *node) {
    encode(l, node, "ref_int8_encode");
}

static void lower_int8_decode(clt_lowering *l, const clt_tensor *node) {
    decode(l, node, "ref_int8_decode");
}

static void lower_onebit_encode(clt_lowering *l, const clt_tensor *node) {
    encode(l, node, "ref_onebit_encode");
}

static void lower_onebit_decode(clt_lowering *l, const clt_tensor *node) {
    decode(l, node, "ref_onebit_decode");
}

const clt_backend_row clt_reference_compress_rows[] = {
    {CLT_REFERENCE(narrow), .types = CLT_ANY_FLOAT, .lower = lower_narrow},
    {CLT_REFERENCE(widen), .types = CLT_ANY_FLOAT, .lower = lower_widen},
    {CLT_REFERENCE(int8_encode), .lower = lower_int8_encode},
    {CLT_REFERENCE(int8_decode), .lower = lower_int8_decode},
    {CLT_REFERENCE(onebit_encode), .lower = lower_onebit_encode},
    {CLT_REFERENCE(onebit_decode), .lower = lower_onebit_decode},
    {0},
};
