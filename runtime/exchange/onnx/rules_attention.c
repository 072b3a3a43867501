/* Attention: as an op, as products with a softmax between, and the rotation of its operands. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- the op ---- */

/* [N, T, heads D] as [N, heads, T, D]. */
static clt_tensor *split_heads(clt_tensor *x, int64_t heads) {
    clt_shape extent = clt_tensor_extent(x);
    return clt_permute(clt_reshape_to(x, CLT_SHAPE(extent.dims[0], extent.dims[1], heads, extent.dims[2] / heads)), (const int[]){0, 2, 1, 3});
}

static clt_tensor *join_heads(clt_tensor *x) {
    clt_shape extent = clt_tensor_extent(x);
    return clt_reshape_to(clt_permute(x, (const int[]){0, 2, 1, 3}), CLT_SHAPE(extent.dims[0], extent.dims[2], extent.dims[1] * extent.dims[3]));
}

/* A mask of fewer dimensions is that of all samples and heads. */
static clt_status read_mask(clt_onnx_call *c, size_t i, clt_tensor **mask) {
    *mask = NULL;
    if (!clt_onnx_has(c, i)) return CLT_OK;
    CLT_TRY(clt_onnx_any(c, i, mask));
    int64_t type = clt_onnx_type_of(c, i);
    if (type != CLT_ONNX_FLOAT && type != CLT_ONNX_BOOL) return clt_fail(CLT_E_UNSUPPORTED, "a mask of type %s", clt_onnx_type_name(type));
    if (type == CLT_ONNX_BOOL && (*mask)->dtype != CLT_U8) *mask = clt_cast(*mask, CLT_U8);
    while (clt_tensor_valid(*mask) && (*mask)->shape.rank < 4) *mask = clt_unsqueeze(*mask, 0);
    return CLT_OK;
}

/* A head of keys or values for each of the queries'. */
static clt_tensor *repeat_heads(clt_tensor *x, int64_t heads) {
    clt_shape extent = clt_tensor_extent(x);
    int64_t own = extent.dims[1];
    if (own == heads) return x;
    x = clt_expand(clt_unsqueeze(x, 2), CLT_SHAPE(extent.dims[0], own, heads / own, extent.dims[2], extent.dims[3]));
    return clt_reshape_to(x, CLT_SHAPE(extent.dims[0], heads, extent.dims[2], extent.dims[3]));
}

/* 0, and -inf for keys that come after the query, whose place is `past` behind its number. */
static clt_status causal_mask(clt_onnx_call *c, int64_t queries, int64_t keys, int64_t past, clt_tensor **mask) {
    clt_literal *values;
    CLT_TRY(clt_literal_new(&c->onnx->build, CLT_ONNX_FLOAT, &CLT_SHAPE(queries, keys), &values));
    for (int64_t e = 0; e < values->elements; e++) values->floats[e] = e % keys > e / keys + past ? -INFINITY : 0;
    return clt_onnx_constant(c, values, mask);
}

/* With what clt_attention_with does not have: scores that are limited or an output, values of another width, keys of before. The scores are in memory. */
static clt_status compose_attention(clt_onnx_call *c, clt_tensor *q, clt_tensor *k, clt_tensor *v, clt_tensor *mask, int64_t past, clt_tensor **y, clt_tensor **scores) {
    float cap = clt_onnx_float_attribute(c, "softcap", 0), scale = clt_onnx_float_attribute(c, "scale", 0);
    int64_t stage = clt_onnx_int(c, "qk_matmul_output_mode", 0);
    clt_tensor *causal = NULL, *stages[4];
    if (scale == 0) scale = 1 / sqrtf((float)q->shape.dims[3]);
    if (clt_onnx_int(c, "is_causal", 0)) {
        if (clt_tensor_extent(q).dims[2] < 0 || clt_tensor_extent(k).dims[2] < 0) return clt_fail(CLT_E_UNSUPPORTED, "is_causal of a length that is not one number, with %s", cap != 0 ? "softcap" : "these operands");
        CLT_TRY(causal_mask(c, q->shape.dims[2], k->shape.dims[2], past, &causal));
    }
    if (mask && mask->dtype == CLT_U8)
        mask = clt_where(clt_cast(mask, CLT_F32), clt_fill(c->graph, (clt_shape){0}, 0), clt_fill(c->graph, (clt_shape){0}, -INFINITY));
    stages[0] = clt_mul_scalar(clt_matmul_with(q, repeat_heads(k, q->shape.dims[1]), (clt_matmul_options){.transpose_b = true}), scale);
    stages[1] = cap != 0 ? clt_mul_scalar(clt_tanh(clt_mul_scalar(stages[0], 1 / cap)), cap) : stages[0];
    stages[2] = mask ? clt_add(stages[1], mask) : stages[1];
    if (causal) stages[2] = clt_add(stages[2], causal);
    stages[3] = clt_softmax(stages[2], -1);
    if (stage < 0 || stage > 3) return clt_fail(CLT_E_UNSUPPORTED, "qk_matmul_output_mode %lld", (long long)stage);
    *scores = stages[stage];
    *y = clt_matmul(stages[3], repeat_heads(v, q->shape.dims[1]));
    return CLT_OK;
}

static clt_status map_attention(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *q, *k, *v, *mask;
    int64_t heads = clt_onnx_int(c, "q_num_heads", 0), key_heads = clt_onnx_int(c, "kv_num_heads", 0), past = 0;
    CLT_TRY(clt_onnx_float(c, 0, &q));
    CLT_TRY(clt_onnx_float(c, 1, &k));
    CLT_TRY(clt_onnx_float(c, 2, &v));
    CLT_TRY(read_mask(c, 3, &mask));
    if (clt_onnx_has(c, 6)) return clt_fail(CLT_E_UNSUPPORTED, "lengths of keys that differ between samples");
    bool flat = q->shape.rank == 3, before = clt_onnx_has(c, 4) && clt_onnx_has(c, 5);
    if (flat) {
        if (heads < 1 || key_heads < 1 || k->shape.rank != 3 || v->shape.rank != 3 || q->shape.dims[2] % heads || k->shape.dims[2] % key_heads || v->shape.dims[2] % key_heads)
            return clt_fail(CLT_E_SHAPE, "its heads do not divide its operands");
        q = split_heads(q, heads), k = split_heads(k, key_heads), v = split_heads(v, key_heads);
    }
    if (!clt_tensor_valid(q) || q->shape.rank != 4 || k->shape.rank != 4 || v->shape.rank != 4) return clt_fail(CLT_E_SHAPE, "operands of %d dimensions", q->shape.rank);
    if (q->shape.dims[1] % k->shape.dims[1] || v->shape.dims[1] != k->shape.dims[1]) return clt_fail(CLT_E_SHAPE, "heads of keys do not divide those of queries");
    if (before) {
        clt_tensor *of[2];
        for (size_t i = 0; i < 2; i++) CLT_TRY(clt_onnx_float(c, 4 + i, &of[i]));
        past = of[0]->shape.rank == 4 ? of[0]->shape.dims[2] : 0;
        k = clt_concat((clt_tensor *[]){of[0], k}, 2, 2), v = clt_concat((clt_tensor *[]){of[1], v}, 2, 2);
        if (!clt_tensor_valid(k) || !clt_tensor_valid(v)) return CLT_OK;
    }
    bool scores = clt_onnx_is_wanted(c, 3);
    clt_tensor *y = NULL, *of_scores = NULL;
    if (scores || before || clt_onnx_float_attribute(c, "softcap", 0) != 0 || v->shape.dims[3] != q->shape.dims[3]) CLT_TRY(compose_attention(c, q, k, v, mask, past, &y, &of_scores));
    else y = clt_attention_with(q, k, v, (clt_attention_options){.causal = clt_onnx_int(c, "is_causal", 0), .scale = clt_onnx_float_attribute(c, "scale", 0), .mask = mask});
    out[0] = flat && clt_tensor_valid(y) ? join_heads(y) : y;
    if (c->node->n_outputs > 1) out[1] = k;
    if (c->node->n_outputs > 2) out[2] = v;
    if (scores) out[3] = of_scores;
    return CLT_OK;
}

/* ---- products with a softmax between ---- */

/* What a scaled dot-product attention is made of. */
typedef struct parts {
    clt_tensor *q, *k, *mask; /* mask NULL: there is none */
    double scale;
} parts;

static bool is_pointwise(const clt_tensor *t, const char *name) {
    return t->kind == CLT_NODE_OP && t->op == &clt_op_pointwise && !strcmp(((const clt_pointwise_attributes *)t->attributes)->name, name);
}

static float scalar_of(const clt_tensor *t) {
    return ((const clt_pointwise_attributes *)t->attributes)->s[0];
}

/* One value that is known now. */
static bool is_number(const clt_tensor *t, float *value) {
    const clt_variable *v = t->variable;
    if (is_pointwise(t, "fill")) return *value = scalar_of(t), true;
    if (!v || !v->values || v->dtype != CLT_F32 || clt_tensor_elements(t) != 1) return false;
    return *value = *(const float *)v->values, true;
}

/* Takes factors away, whose product *scale becomes. */
static clt_tensor *unscaled(clt_tensor *t, double *scale) {
    float value;
    for (;;) {
        if (is_pointwise(t, "mul_scalar")) *scale *= (double)scalar_of(t), t = t->inputs[0];
        else if (is_pointwise(t, "mul") && is_number(t->inputs[1], &value)) *scale *= (double)value, t = t->inputs[0];
        else if (is_pointwise(t, "mul") && is_number(t->inputs[0], &value)) *scale *= (double)value, t = t->inputs[1];
        else if (is_pointwise(t, "div") && is_number(t->inputs[1], &value)) *scale /= (double)value, t = t->inputs[0];
        else return t;
    }
}

/* Keys as they were before they were turned for the product t. */
static clt_tensor *keys_of(const clt_tensor *t, clt_tensor *k) {
    int order[4] = {0, 1, 3, 2};
    bool same = true;
    if (((const clt_matmul_attributes *)t->attributes)->transpose_b) return k;
    if (k->kind != CLT_NODE_OP || k->op != &clt_op_permute) return clt_permute(k, order);
    const clt_permute_attributes *at = k->attributes;
    for (int d = 0; d < 4; d++) same &= at->order[order[d]] == d;
    if (same) return k->inputs[0];
    const int turned[4] = {at->order[0], at->order[1], at->order[3], at->order[2]};
    return clt_permute(k->inputs[0], turned);
}

/* A scaled product of queries and keys, of rank 4. */
static bool is_product(clt_tensor *t, parts *p) {
    p->scale = 1;
    t = unscaled(t, &p->scale);
    if (t->kind != CLT_NODE_OP || t->op != &clt_op_matmul || ((const clt_matmul_attributes *)t->attributes)->transpose_a) return false;
    p->q = unscaled(t->inputs[0], &p->scale);
    clt_tensor *k = unscaled(t->inputs[1], &p->scale);
    bool whole = clt_shape_equal(&p->q->shape, &t->inputs[0]->shape) && clt_shape_equal(&k->shape, &t->inputs[1]->shape); /* no factor stretched them */
    if (p->q->shape.rank != 4 || k->shape.rank != 4 || !whole || !isfinite((float)p->scale) || (float)p->scale == 0) return false;
    p->k = keys_of(t, k);
    return clt_tensor_valid(p->k);
}

/* What is added to the scores of keys that are hidden, beside which these are lost. */
static bool hides(const clt_tensor *t) {
    enum { LEAST = 1000000000 };
    float value;
    return is_number(t, &value) && value <= -LEAST;
}

/* Scores with a mask that is added, or by which each is chosen or hidden. */
static bool is_masked(clt_tensor *t, parts *p) {
    if (is_product(t, p)) return true;
    if (is_pointwise(t, "add"))
        for (int i = 0; i < 2; i++)
            if (is_product(t->inputs[i], p)) return p->mask = t->inputs[1 - i], true;
    if (!is_pointwise(t, "where")) return false;
    clt_tensor *zero = clt_fill(t->graph, (clt_shape){0}, 0), *seen = t->inputs[1], *other = t->inputs[2];
    if (hides(other) && is_product(seen, p)) return p->mask = clt_where(t->inputs[0], zero, other), true;
    if (hides(seen) && is_product(other, p)) return p->mask = clt_where(t->inputs[0], seen, zero), true;
    return false;
}

/* A softmax over keys; in its place, perhaps, 0 where it is NaN, of queries that see no key. */
static clt_tensor *softmax_of(clt_tensor *t) {
    float value;
    if (is_pointwise(t, "where") && is_number(t->inputs[1], &value) && value == 0) {
        const clt_tensor *test = t->inputs[0];
        while (is_pointwise(test, "add_scalar") || is_pointwise(test, "neg")) test = test->inputs[0];
        clt_tensor *p = t->inputs[2];
        if (is_pointwise(test, "equal") && test->inputs[0] == p && test->inputs[1] == p) t = p;
    }
    bool softmax = t->kind == CLT_NODE_OP && t->op == &clt_op_softmax && t->shape.rank == 4 && ((const clt_softmax_attributes *)t->attributes)->axis == 3;
    return softmax ? t->inputs[0] : NULL;
}

/* Whether it may be trained, for an attention's mask has no gradient. */
static clt_status depends_on_weights(const clt_tensor *t, bool *depends) {
    const clt_graph *g = t->graph;
    bool *marks = clt_calloc(g->n_nodes, sizeof *marks);
    if (!marks) return clt_fail_memory(g->n_nodes * sizeof *marks);
    clt_graph_mark(g, (clt_tensor *const[]){(clt_tensor *)(uintptr_t)t}, 1, marks);
    *depends = false;
    for (size_t i = 0; i < g->n_nodes; i++) *depends |= marks[i] && g->nodes[i]->variable && clt_variable_is_parameter(g->nodes[i]->variable);
    clt_free(marks);
    return CLT_OK;
}

/* Kernels of attention take such widths on all kinds of devices. */
static bool has_kernels(int64_t width) {
    return width % 32 == 0 && width <= 128;
}

clt_status clt_onnx_find_attention(clt_tensor *probabilities, clt_tensor *values, clt_tensor **y) {
    parts p = {0};
    clt_tensor *scores = clt_tensor_valid(probabilities) && clt_tensor_valid(values) && values->shape.rank == 4 ? softmax_of(probabilities) : NULL;
    bool weights = false;
    *y = NULL;
    if (!scores || !has_kernels(values->shape.dims[3]) || !is_masked(scores, &p) || !has_kernels(p.q->shape.dims[3])) return CLT_OK;
    const clt_shape *q = &p.q->shape, *v = &values->shape;
    if (!clt_shape_equal(&scores->shape, &CLT_SHAPE(q->dims[0], q->dims[1], q->dims[2], v->dims[2])) || q->dims[3] != v->dims[3] || q->dims[0] != v->dims[0] ||
        q->dims[1] != v->dims[1])
        return CLT_OK;
    if (p.mask) CLT_TRY(depends_on_weights(p.mask, &weights));
    clt_shape fits;
    if (weights || (p.mask && (p.mask->dtype != CLT_F32 || !clt_shape_broadcast(&p.mask->shape, &scores->shape, &fits) || !clt_shape_equal(&fits, &scores->shape)))) return CLT_OK;
    while (p.mask && clt_tensor_valid(p.mask) && p.mask->shape.rank < 4) p.mask = clt_unsqueeze(p.mask, 0);
    *y = clt_attention_with(p.q, p.k, values, (clt_attention_options){.scale = (float)p.scale, .mask = p.mask});
    return clt_graph_status(values->graph);
}

/* ---- rotary positions ---- */

/* Pairs of elements are turned by angles whose cosines and sines are given, [places, D / 2] or [N, T, D / 2]. */
static clt_status map_rotary(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *of[2], *ids = NULL;
    bool interleaved = clt_onnx_int(c, "interleaved", 0);
    int64_t part = clt_onnx_int(c, "rotary_embedding_dim", 0), heads = clt_onnx_int(c, "num_heads", 0);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &of[0]));
    CLT_TRY(clt_onnx_float(c, 2, &of[1]));
    if (clt_onnx_has(c, 3)) CLT_TRY(clt_onnx_integers(c, 3, &ids));
    bool flat = x->shape.rank == 3;
    if (flat && (heads < 1 || x->shape.dims[2] % heads)) return clt_fail(CLT_E_SHAPE, "its heads do not divide its operand");
    if (flat) x = split_heads(x, heads);
    if (!clt_tensor_valid(x) || x->shape.rank != 4) return clt_fail(CLT_E_SHAPE, "an operand of %d dimensions", x->shape.rank);
    int64_t width = x->shape.dims[3];
    if (part == 0) part = width;
    if (part < 2 || part % 2 || part > width) return clt_fail(CLT_E_SHAPE, "%lld of %lld elements are turned", (long long)part, (long long)width);
    for (int i = 0; i < 2; i++) { /* [N, 1, T, part / 2] */
        if (ids) of[i] = clt_embedding_op(ids, of[i]);
        if (!clt_tensor_valid(of[i]) || of[i]->shape.rank != 3 || of[i]->shape.dims[2] != part / 2) return clt_fail(CLT_E_SHAPE, "cosines and sines do not fit");
        of[i] = clt_unsqueeze(of[i], 1);
    }
    clt_shape extent = clt_tensor_extent(x);
    clt_tensor *turned = part == width ? x : clt_slice(x, 3, 0, part, 1), *rest = part == width ? NULL : clt_slice(x, 3, part, width, 1), *a, *b;
    if (interleaved) a = clt_slice(turned, 3, 0, part, 2), b = clt_slice(turned, 3, 1, part, 2);
    else a = clt_slice(turned, 3, 0, part / 2, 1), b = clt_slice(turned, 3, part / 2, part, 1);
    clt_tensor *pair[] = {clt_sub(clt_mul(of[0], a), clt_mul(of[1], b)), clt_add(clt_mul(of[1], a), clt_mul(of[0], b)), rest};
    clt_tensor *y;
    if (interleaved) {
        extent.dims[3] = part;
        pair[0] = clt_unsqueeze(pair[0], 4), pair[1] = clt_unsqueeze(pair[1], 4);
        y = clt_reshape_to(clt_concat(pair, 2, 4), extent);
        y = rest ? clt_concat((clt_tensor *[]){y, rest}, 2, 3) : y;
    } else y = clt_concat(pair, rest ? 3 : 2, 3);
    out[0] = flat && clt_tensor_valid(y) ? join_heads(y) : y;
    return CLT_OK;
}

const clt_onnx_rule clt_onnx_attention_rules[] = {{"Attention", map_attention}, {"RotaryEmbedding", map_rotary}, {0}};
