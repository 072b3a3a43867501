/*
 * Compression of gradients: what crosses to the host, and from there to the other ranks, is small. Where a code is
 * biased, what it leaves out is kept and added to the next gradient (error feedback).
 */
#include <inttypes.h>

#include "runtime/ops/ops.h"

static int64_t blocks_of(int64_t n) {
    return (n + CLT_COMPRESS_BLOCK - 1) / CLT_COMPRESS_BLOCK;
}

/* A code a value and a scale of 2 bytes a block. */
int64_t clt_int8_words(int64_t n) {
    return (blocks_of(n) * (CLT_COMPRESS_BLOCK + 2) + 3) / 4;
}

/* A bit a value; two means of 2 bytes and a place of 1 byte a block. */
int64_t clt_onebit_words(int64_t n) {
    return (blocks_of(n) * (CLT_COMPRESS_BLOCK / 8 + 5) + 3) / 4;
}

static int64_t words_of(int64_t bits) {
    return (bits + 31) / 32;
}

/* As many low bits as make it shortest: about log2(n / k). */
clt_topk_wire clt_topk_layout(int64_t n, int64_t k, bool bf16) {
    clt_topk_wire wire = {.value_words = bf16 ? (k + 1) / 2 : k};
    int64_t least = INT64_MAX;
    for (int b = 0; b < 31; b++) {
        int64_t high = words_of(k + ((n - 1) >> b)), low = words_of(k * b);
        if (high + low >= least) continue;
        least = high + low;
        wire.low_bits = b;
        wire.high_words = high;
        wire.low_words = low;
    }
    wire.words = least + wire.value_words;
    return wire;
}

static clt_status check_flat(const clt_tensor *node, int input) {
    CLT_TRY(clt_check_dtype(node, input, CLT_F32));
    return clt_check_rank(node, input, 1, 1);
}

static clt_status check_samples(const clt_tensor *node, int input) {
    CLT_TRY(clt_check_dtype(node, input, CLT_F32));
    if (clt_tensor_elements(node->inputs[input]) != 1) return clt_fail(CLT_E_SHAPE, "the count of samples is one number");
    return CLT_OK;
}

/* ---- casts ---- */

static clt_status infer_narrow(clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    CLT_TRY(check_flat(node, 0));
    CLT_TRY(check_samples(node, 1));
    if (at->dtype != CLT_F16 && at->dtype != CLT_BF16 && at->dtype != CLT_F32)
        return clt_fail(CLT_E_DTYPE, "gradients are not narrowed to %s", clt_dtype_name(at->dtype));
    node->dtype = at->dtype;
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

static clt_status infer_widen(clt_tensor *node) {
    const clt_tensor *flat = node->inputs[0], *wire = node->inputs[1];
    CLT_TRY(check_flat(node, 0));
    if (wire->dtype != CLT_F16 && wire->dtype != CLT_BF16)
        return clt_fail(CLT_E_DTYPE, "gradients are not widened from %s", clt_dtype_name(wire->dtype));
    if (!clt_shape_equal(&flat->shape, &wire->shape)) return clt_fail(CLT_E_SHAPE, "wire and gradient differ in size");
    node->dtype = CLT_F32;
    node->shape = flat->shape;
    return CLT_OK;
}

/* Wires are read, and the flat tensor is written alone. */
static clt_cost cost_decode(const clt_tensor *node) {
    const clt_compress_attributes *at = node->attributes;
    double bytes = clt_tensor_cost_bytes(node) + clt_tensor_cost_bytes(node->inputs[1]);
    return (clt_cost){(double)clt_tensor_elements(node) * (at ? at->ranks : 1), bytes};
}

static const clt_attribute schema[] = {
    CLT_ATTRIBUTE(clt_compress_attributes, dtype, DTYPE),
    CLT_ATTRIBUTE(clt_compress_attributes, ranks, INT),
    CLT_ATTRIBUTE(clt_compress_attributes, k, INT64),
    CLT_ATTRIBUTE(clt_compress_attributes, bf16, BOOL),
    {0},
};

#define COMPRESS .attributes_bytes = sizeof(clt_compress_attributes), .schema = schema
const clt_op clt_op_narrow = {.name = "narrow", COMPRESS, .infer = infer_narrow, .operations = 1};
const clt_op clt_op_widen = {.name = "widen", .infer = infer_widen, .is_view = true, .writes = 1, .cost = cost_decode};

clt_tensor *clt_narrow(clt_tensor *x, clt_tensor *samples, clt_dtype dtype) {
    clt_compress_attributes at = {.dtype = dtype};
    return clt_node(NULL, &clt_op_narrow, &at, (clt_tensor *[]){x, samples}, 2);
}

clt_tensor *clt_widen(clt_tensor *flat, clt_tensor *wire) {
    return clt_node(NULL, &clt_op_widen, NULL, (clt_tensor *[]){flat, wire}, 2);
}

/* ---- codes with error feedback ---- */

static clt_status infer_encode(clt_tensor *node, int64_t words) {
    CLT_TRY(check_flat(node, 0));
    CLT_TRY(check_flat(node, 1));
    CLT_TRY(check_samples(node, 2));
    if (!clt_shape_equal(&node->inputs[0]->shape, &node->inputs[1]->shape))
        return clt_fail(CLT_E_SHAPE, "gradient and residual differ in size");
    node->dtype = CLT_I32;
    node->shape = CLT_SHAPE(words);
    return CLT_OK;
}

/* `words`: of one wire. */
static clt_status infer_decode(clt_tensor *node, int64_t words) {
    const clt_compress_attributes *at = node->attributes;
    CLT_TRY(check_flat(node, 0));
    CLT_TRY(clt_check_dtype(node, 1, CLT_I32));
    if (at->ranks < 1 || clt_tensor_elements(node->inputs[1]) != at->ranks * words)
        return clt_fail(CLT_E_SHAPE, "wires of %d ranks have %" PRId64 " words, not %" PRId64, at->ranks,
                        clt_tensor_elements(node->inputs[1]), at->ranks * words);
    node->dtype = CLT_F32;
    node->shape = node->inputs[0]->shape;
    return CLT_OK;
}

static clt_status infer_int8_encode(clt_tensor *node) {
    return infer_encode(node, clt_int8_words(clt_tensor_elements(node->inputs[0])));
}

static clt_status infer_int8_decode(clt_tensor *node) {
    return infer_decode(node, clt_int8_words(clt_tensor_elements(node->inputs[0])));
}

static clt_status infer_onebit_encode(clt_tensor *node) {
    return infer_encode(node, clt_onebit_words(clt_tensor_elements(node->inputs[0])));
}

static clt_status infer_onebit_decode(clt_tensor *node) {
    return infer_decode(node, clt_onebit_words(clt_tensor_elements(node->inputs[0])));
}

static clt_status topk_words(const clt_tensor *node, int64_t *words) {
    const clt_compress_attributes *at = node->attributes;
    int64_t n = clt_tensor_elements(node->inputs[0]);
    if (at->k < 1 || at->k > n)
        return clt_fail(CLT_E_INVALID, "top-k of %" PRId64 " from %" PRId64 " values", at->k, n);
    *words = clt_topk_layout(n, at->k, at->bf16).words;
    return CLT_OK;
}

static clt_status infer_topk_encode(clt_tensor *node) {
    int64_t words;
    CLT_TRY(topk_words(node, &words));
    return infer_encode(node, words);
}

static clt_status infer_topk_decode(clt_tensor *node) {
    int64_t words;
    CLT_TRY(topk_words(node, &words));
    return infer_decode(node, words);
}

#define ENCODER(what, each) \
    {.name = #what "_encode", COMPRESS, .infer = infer_##what##_encode, .writes = 1u << 1, .operations = each}
#define DECODER(what) \
    {.name = #what "_decode", COMPRESS, .infer = infer_##what##_decode, .is_view = true, .writes = 1, .cost = cost_decode}
const clt_op clt_op_int8_encode = ENCODER(int8, 6);
const clt_op clt_op_int8_decode = DECODER(int8);
const clt_op clt_op_onebit_encode = ENCODER(onebit, 8);
const clt_op clt_op_onebit_decode = DECODER(onebit);
const clt_op clt_op_topk_encode = ENCODER(topk, 5);
const clt_op clt_op_topk_decode = DECODER(topk);

clt_tensor *clt_encode(const clt_op *op, clt_compress_attributes attributes, clt_tensor *x, clt_tensor *residual,
                       clt_tensor *samples) {
    return clt_node(NULL, op, &attributes, (clt_tensor *[]){x, residual, samples}, 3);
}

clt_tensor *clt_decode(const clt_op *op, clt_compress_attributes attributes, clt_tensor *flat, clt_tensor *wires) {
    return clt_node(NULL, op, &attributes, (clt_tensor *[]){flat, wires}, 2);
}
