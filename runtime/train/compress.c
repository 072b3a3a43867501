#include "runtime/train/compress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is kept of each group from step to step, and what serves within one. */
static const char *const state_names[] = {"residual", "factor", "left", "vectors"};

const char *clt_compression_name(clt_compression method) {
    static const char *const names[] = {"none", "f16", "bf16", "int8", "onebit", "topk", "powersgd"};
    return (unsigned)method < CLT_COUNT_OF(names) ? names[method] : "?";
}

clt_status clt_compress_resolve(clt_compress_options *o) {
    if ((unsigned)o->method > CLT_COMPRESS_POWERSGD)
        return clt_fail(CLT_E_INVALID, "option compress.method = %d: it must be one of clt_compression", (int)o->method);
    if (o->ratio == 0) o->ratio = 0.01f;
    if (!(o->ratio > 0 && o->ratio <= 1))
        return clt_fail(CLT_E_INVALID, "option compress.ratio = %g: it must be in (0, 1]", (double)o->ratio);
    if (o->rank == 0) o->rank = 1;
    if (o->rank < 1 || o->rank > CLT_COMPRESS_MAX_RANK)
        return clt_fail(CLT_E_INVALID, "option compress.rank = %d: it must be in [1, %d]", o->rank, CLT_COMPRESS_MAX_RANK);
    return CLT_OK;
}

clt_tensor *clt_compress_state(const clt_gradient_reduction *x, const char *what, int64_t elements) {
    char kind[48], name[64];
    snprintf(kind, sizeof kind, "compression.%s", what);
    return clt_state(x->flat->graph, clt_bucket_name(kind, x->index, name), CLT_F32, CLT_SHAPE(elements));
}

/* The communicator adds halves in f32 and rounds once. */
static clt_tensor *exchange_cast(const clt_gradient_reduction *x, clt_dtype dtype) {
    clt_tensor *wire = clt_narrow(x->flat, x->samples, dtype);
    return clt_widen(x->flat, clt_all_reduce(wire, CLT_REDUCE_SUM));
}

/* Codes cannot be added: each rank gets all, and adds what they say, in the order of ranks. */
static clt_tensor *exchange_code(const clt_gradient_reduction *x, const clt_op *encode, const clt_op *decode) {
    int64_t n = clt_tensor_elements(x->flat);
    clt_compress_attributes at = {.ranks = x->size, .bf16 = !x->options->f32_values};
    if (encode == &clt_op_topk_encode) at.k = CLT_MAX(1, (int64_t)ceil((double)x->options->ratio * (double)n));
    at.k = CLT_MIN(at.k, n);
    clt_tensor *wire = clt_encode(encode, at, x->flat, clt_compress_state(x, "residual", n), x->samples);
    return clt_decode(decode, at, x->flat, clt_all_gather(wire, x->rank, x->size));
}

clt_tensor *clt_reduce_gradient(const clt_gradient_reduction *x) {
    if (!clt_tensor_valid(x->flat)) return x->flat;
    switch (x->options->method) {
    case CLT_COMPRESS_F16:
        return exchange_cast(x, CLT_F16);
    case CLT_COMPRESS_BF16:
        return exchange_cast(x, CLT_BF16);
    case CLT_COMPRESS_INT8:
        return exchange_code(x, &clt_op_int8_encode, &clt_op_int8_decode);
    case CLT_COMPRESS_ONEBIT:
        return exchange_code(x, &clt_op_onebit_encode, &clt_op_onebit_decode);
    case CLT_COMPRESS_TOPK:
        return exchange_code(x, &clt_op_topk_encode, &clt_op_topk_decode);
    case CLT_COMPRESS_POWERSGD:
        return clt_powersgd_reduce(x);
    default:
        return clt_graph_fail(x->flat->graph, clt_fail(CLT_E_INVALID, "gradients are not compressed"));
    }
}

bool clt_compress_keeps(const char *name) {
    /* Of flat gradients what lies between parts, which is decoded like them, but packed never. */
    static const char *const kept[] = {"compression.residual.", "compression.factor.", "gradients."};
    for (size_t i = 0; i < CLT_COUNT_OF(kept); i++)
        if (!strncmp(name, kept[i], strlen(kept[i]))) return true;
    return false;
}

clt_status clt_compress_reset(clt_trainer *t) {
    for (int g = 0; g < t->n_buckets; g++)
        for (size_t i = 0; i < CLT_COUNT_OF(state_names); i++) {
            char kind[48], name[64];
            size_t bytes;
            snprintf(kind, sizeof kind, "compression.%s", state_names[i]);
            clt_memory *memory = clt_state_store_find(t->store, clt_bucket_name(kind, g, name), &bytes);
            if (memory) CLT_TRY(clt_memory_zero(memory));
        }
    return CLT_OK;
}
