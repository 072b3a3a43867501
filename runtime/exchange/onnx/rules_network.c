/* Layers of networks that are more than one op: losses, recurrent layers, attention. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

static clt_status need_i32(clt_onnx_call *c, size_t i, clt_tensor **tensor) {
    CLT_TRY(clt_onnx_any(c, i, tensor));
    return (*tensor)->dtype == CLT_I32 ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "input %zu is not of integers", i);
}

/* The order that moves an axis to another place. */
static clt_tensor *moved(clt_tensor *x, int from, int to) {
    int order[CLT_MAX_RANK], next = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        if (next == from) next++;
        order[d] = d == to ? from : next++;
    }
    return clt_permute(x, order);
}

/* ---- losses ---- */

static clt_status read_reduction(const clt_onnx_call *c, clt_loss_reduction *reduction) {
    const char *word = clt_onnx_text(c, "reduction", "mean");
    *reduction = !strcmp(word, "none") ? CLT_LOSS_NONE : !strcmp(word, "sum") ? CLT_LOSS_SUM : CLT_LOSS_MEAN;
    return *reduction != CLT_LOSS_MEAN || !strcmp(word, "mean") ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "reduction %.40s", word);
}

/* The class that is ignored; NULL: none is. */
static clt_status read_ignored(const clt_onnx_call *c, int32_t *value, const int32_t **ignored) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "ignore_index");
    *ignored = NULL;
    if (!a) return CLT_OK;
    if (a->i < INT32_MIN || a->i > INT32_MAX) return clt_fail(CLT_E_RANGE, "ignore_index %lld", (long long)a->i);
    *value = (int32_t)a->i;
    *ignored = value;
    return CLT_OK;
}

static clt_status map_cross_entropy(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *scores, *labels;
    int32_t ignored;
    clt_cross_entropy_options o = {0};
    CLT_TRY(clt_onnx_float(c, 0, &scores));
    CLT_TRY(need_i32(c, 1, &labels));
    if (clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_float(c, 2, &o.weight));
    CLT_TRY(read_reduction(c, &o.reduction));
    CLT_TRY(read_ignored(c, &ignored, &o.ignore_index));
    out[0] = clt_cross_entropy_with(scores, labels, o);
    if (c->node->n_outputs > 1 && *c->node->outputs[1]) out[1] = clt_log_softmax(scores, 1);
    return CLT_OK;
}

/* -w[target] log_p[target]: log_p [N, C, ...], target [N, ...]. */
static clt_status map_nll(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *log_p, *labels, *weight = NULL, *kept = NULL;
    int32_t value;
    const int32_t *ignored;
    clt_loss_reduction reduction;
    CLT_TRY(clt_onnx_float(c, 0, &log_p));
    CLT_TRY(need_i32(c, 1, &labels));
    if (clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_float(c, 2, &weight));
    CLT_TRY(read_reduction(c, &reduction));
    CLT_TRY(read_ignored(c, &value, &ignored));
    int rank = log_p->shape.rank;
    if (rank < 2 || labels->shape.rank != rank - 1) return clt_fail(CLT_E_SHAPE, "%d and %d dimensions", rank, labels->shape.rank);
    if (ignored) {
        labels = clt_ignore_index(labels, *ignored, 0);
        if (clt_tensor_valid(labels)) kept = labels->outputs[0];
    }
    clt_tensor *own = clt_one_hot(labels, log_p->shape.dims[1]), *zero = clt_fill(c->graph, (clt_shape){0}, 0); /* [N, ..., C] */
    clt_reduce_options last = {.axes = {-1}, .n_axes = 1};
    if (!clt_tensor_valid(own)) return CLT_OK;
    clt_tensor *losses = clt_neg(clt_sum(clt_where(own, moved(log_p, 1, rank - 1), zero), last));
    clt_tensor *weights = weight ? clt_sum(clt_mul(own, weight), last) : NULL;
    if (weights) losses = clt_mul(losses, weights);
    if (kept) losses = clt_where(kept, losses, zero), weights = weights ? clt_mul(weights, kept) : kept;
    if (reduction == CLT_LOSS_NONE) out[0] = losses;
    else if (reduction == CLT_LOSS_SUM || weights) out[0] = clt_sum(losses, CLT_ALL_AXES);
    else out[0] = clt_mean(losses, CLT_ALL_AXES);
    if (reduction == CLT_LOSS_MEAN && weights) out[0] = clt_div(out[0], clt_sum(weights, CLT_ALL_AXES));
    return CLT_OK;
}

/* ---- by index ---- */

/* y[.., i, ..] = x[.., indices[.., i, ..], ..], by products with rows of one 1. */
static clt_status map_gather_elements(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *indices;
    int axis;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(need_i32(c, 1, &indices));
    CLT_TRY(clt_onnx_axis(c, clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    if (indices->shape.rank != x->shape.rank || x->shape.rank == CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "indices of %d dimensions", indices->shape.rank);
    for (int d = 0; d < x->shape.rank; d++)
        if (d != axis && indices->shape.dims[d] != x->shape.dims[d]) return clt_fail(CLT_E_UNSUPPORTED, "fewer indices than places along axis %d", d);
    clt_tensor *own = clt_one_hot(indices, x->shape.dims[axis]), *turned = clt_unsqueeze(moved(x, axis, x->shape.rank - 1), axis);
    out[0] = clt_sum(clt_where(own, turned, clt_fill(c->graph, (clt_shape){0}, 0)), (clt_reduce_options){.axes = {-1}, .n_axes = 1});
    return CLT_OK;
}

static clt_status map_one_hot(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *indices;
    const clt_literal *depth, *values;
    int axis;
    CLT_TRY(need_i32(c, 0, &indices));
    CLT_TRY(clt_onnx_known(c, 1, &depth));
    CLT_TRY(clt_onnx_known(c, 2, &values));
    if (!depth || depth->elements != 1 || !values || values->elements != 2 || values->type != CLT_ONNX_FLOAT)
        return clt_fail(CLT_E_UNSUPPORTED, "a depth that is not one number, or values that are not two floats");
    double size = depth->type == CLT_ONNX_FLOAT ? (double)depth->floats[0] : (double)depth->integers[0];
    if (!(size >= 1 && size <= INT32_MAX)) return clt_fail(CLT_E_RANGE, "a depth of %g", size);
    if (indices->shape.rank == CLT_MAX_RANK) return clt_fail(CLT_E_UNSUPPORTED, "its result has more than %d dimensions", CLT_MAX_RANK);
    CLT_TRY(clt_onnx_axis(c, clt_onnx_int(c, "axis", -1), indices->shape.rank + 1, &axis));
    clt_tensor *y = clt_one_hot(indices, (int64_t)size);
    float off = values->floats[0], on = values->floats[1];
    if (clt_tensor_valid(y) && axis != y->shape.rank - 1) y = moved(y, y->shape.rank - 1, axis);
    out[0] = off == 0 && on == 1 ? y : clt_add_scalar(clt_mul_scalar(y, on - off), off);
    return CLT_OK;
}

static clt_status map_trilu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_literal *of, *mask_of;
    int64_t k = 0;
    bool upper = clt_onnx_int(c, "upper", 1);
    clt_literal *mask;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_known(c, 1, &of));
    if (of && (of->elements != 1 || of->type == CLT_ONNX_FLOAT)) return clt_fail(CLT_E_FORMAT, "k is not one integer");
    if (of) k = CLT_MAX(CLT_MIN(of->integers[0], (int64_t)INT32_MAX), (int64_t)INT32_MIN);
    if (x->shape.rank < 2) return clt_fail(CLT_E_SHAPE, "no matrix");
    clt_shape extent = clt_tensor_extent(x), shape = CLT_SHAPE(extent.dims[extent.rank - 2], extent.dims[extent.rank - 1]);
    if (shape.dims[0] < 0 || shape.dims[1] < 0) return clt_fail(CLT_E_UNSUPPORTED, "of a matrix whose size follows the batch or the length");
    CLT_TRY(clt_literal_new(&c->onnx->build, CLT_ONNX_FLOAT, &shape, &mask));
    for (int64_t e = 0; e < mask->elements; e++) {
        int64_t row = e / shape.dims[1], column = e % shape.dims[1];
        mask->floats[e] = upper ? column >= row + k : column <= row + k;
    }
    mask_of = mask;
    clt_tensor *where;
    CLT_TRY(clt_onnx_constant(c, mask_of, &where));
    out[0] = clt_where(where, x, clt_fill(c->graph, (clt_shape){0}, 0));
    return CLT_OK;
}

/* ---- recurrent layers ---- */

/* Rows of a weight [directions, gates hidden, ...], of one direction, in another order of gates. */
static clt_tensor *gates_of(clt_tensor *w, int direction, const int *order, int gates, int64_t first) {
    clt_tensor *own = clt_squeeze(clt_slice(w, 0, direction, direction + 1, 1), 0), *parts[4];
    int64_t hidden = clt_tensor_valid(own) ? own->shape.dims[0] / (own->shape.rank == 1 ? 2 * gates : gates) : 1;
    for (int g = 0; g < gates; g++) parts[g] = clt_slice(own, 0, (first * gates + order[g]) * hidden, (first * gates + order[g] + 1) * hidden, 1);
    return clt_concat(parts, gates, 0);
}

static clt_status check_recurrent(const clt_onnx_call *c, bool lstm) {
    static const char *const unknown[] = {"activation_alpha", "activation_beta", "clip"};
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "activations");
    static const char *const of_lstm[] = {"Sigmoid", "Tanh", "Tanh"}, *const of_gru[] = {"Sigmoid", "Tanh"};
    for (size_t i = 0; i < CLT_COUNT_OF(unknown); i++)
        if (clt_onnx_attribute_of(c->node, unknown[i])) return clt_fail(CLT_E_UNSUPPORTED, "the attribute %s", unknown[i]);
    for (size_t i = 0; a && i < a->n; i++)
        if (strcmp(a->strings[i], lstm ? of_lstm[i % 3] : of_gru[i % 2])) return clt_fail(CLT_E_UNSUPPORTED, "the activation %.40s", a->strings[i]);
    if (clt_onnx_int(c, "input_forget", 0)) return clt_fail(CLT_E_UNSUPPORTED, "input_forget");
    if (clt_onnx_has(c, 4)) return clt_fail(CLT_E_UNSUPPORTED, "sequences of different lengths");
    if (lstm && clt_onnx_has(c, 7)) return clt_fail(CLT_E_UNSUPPORTED, "peepholes");
    if (!lstm && !clt_onnx_int(c, "linear_before_reset", 0)) return clt_fail(CLT_E_UNSUPPORTED, "linear_before_reset 0");
    return CLT_OK;
}

/* The first state of a direction, [N, hidden], of [directions, N, hidden] or, with `layout`, [N, directions, hidden]; NULL: zeros. */
static clt_status first_state(clt_onnx_call *c, size_t i, int direction, int axis, clt_tensor **state) {
    *state = NULL;
    if (!clt_onnx_has(c, i) || clt_onnx_is_zero(c, i)) return CLT_OK;
    CLT_TRY(clt_onnx_float(c, i, state));
    *state = clt_squeeze(clt_slice(*state, axis, direction, direction + 1, 1), axis);
    return CLT_OK;
}

/* X [T, N, D], or with layout 1 [N, T, D]; ONNX has the gates of an LSTM in the order i o f c, of a GRU z r h, PyTorch i f c o and r z h. */
static clt_status map_recurrent(clt_onnx_call *c, clt_tensor **out) {
    static const int order_lstm[] = {0, 2, 3, 1}, order_gru[] = {1, 0, 2};
    bool lstm = !strcmp(c->node->op, "LSTM"), batch_first = clt_onnx_int(c, "layout", 0);
    const char *way = clt_onnx_text(c, "direction", "forward");
    int gates = lstm ? 4 : 3, directions = strcmp(way, "bidirectional") ? 1 : 2, axis = batch_first;
    const int *order = lstm ? order_lstm : order_gru;
    clt_tensor *x, *w, *r, *b = NULL, *ys[2], *hs[2], *cs[2];
    CLT_TRY(check_recurrent(c, lstm));
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &w));
    CLT_TRY(clt_onnx_float(c, 2, &r));
    if (clt_onnx_has(c, 3)) CLT_TRY(clt_onnx_float(c, 3, &b));
    if (x->shape.rank != 3 || w->shape.rank != 3 || r->shape.rank != 3 || (b && b->shape.rank != 2) || w->shape.dims[0] != directions || r->shape.dims[0] != directions ||
        w->shape.dims[1] != gates * r->shape.dims[2] || r->shape.dims[1] != gates * r->shape.dims[2] || (b && (b->shape.dims[0] != directions || b->shape.dims[1] != 2 * w->shape.dims[1])))
        return clt_fail(CLT_E_SHAPE, "its weights do not fit");
    if (!batch_first) x = clt_transpose(x, 0, 1);
    for (int d = 0; d < directions; d++) {
        clt_recurrent_weights weights = {gates_of(w, d, order, gates, 0), gates_of(r, d, order, gates, 0), NULL, NULL};
        if (b) weights.bias_ih = gates_of(b, d, order, gates, 0), weights.bias_hh = gates_of(b, d, order, gates, 1);
        cs[d] = NULL;
        CLT_TRY(first_state(c, 5, d, axis, &hs[d]));
        if (lstm) CLT_TRY(first_state(c, 6, d, axis, &cs[d]));
        ys[d] = clt_recurrent_op(x, &weights, d == 1 || !strcmp(way, "reverse"), &hs[d], lstm ? &cs[d] : NULL);
        if (!clt_tensor_valid(ys[d])) return CLT_OK;
        ys[d] = clt_unsqueeze(batch_first ? ys[d] : clt_transpose(ys[d], 0, 1), batch_first ? 2 : 1);
        hs[d] = clt_unsqueeze(hs[d], axis);
        if (lstm) cs[d] = clt_unsqueeze(cs[d], axis);
    }
    out[0] = directions == 1 ? ys[0] : clt_concat(ys, 2, batch_first ? 2 : 1);
    if (c->node->n_outputs > 1) out[1] = directions == 1 ? hs[0] : clt_concat(hs, 2, axis);
    if (lstm && c->node->n_outputs > 2) out[2] = directions == 1 ? cs[0] : clt_concat(cs, 2, axis);
    return CLT_OK;
}

/* ---- attention ---- */

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

static clt_status map_attention(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *q, *k, *v, *mask;
    int64_t heads = clt_onnx_int(c, "q_num_heads", 0), key_heads = clt_onnx_int(c, "kv_num_heads", 0);
    CLT_TRY(clt_onnx_float(c, 0, &q));
    CLT_TRY(clt_onnx_float(c, 1, &k));
    CLT_TRY(clt_onnx_float(c, 2, &v));
    CLT_TRY(read_mask(c, 3, &mask));
    if (clt_onnx_has(c, 4) || clt_onnx_has(c, 5) || clt_onnx_has(c, 6)) return clt_fail(CLT_E_UNSUPPORTED, "keys and values of before");
    if (clt_onnx_float_attribute(c, "softcap", 0) != 0) return clt_fail(CLT_E_UNSUPPORTED, "softcap");
    for (size_t i = 1; i < c->node->n_outputs; i++)
        if (*c->node->outputs[i] && c->onnx->needed_outputs[c->out[i]]) return clt_fail(CLT_E_UNSUPPORTED, "output %zu, of keys, values or scores", i);
    bool flat = q->shape.rank == 3;
    if (flat) {
        if (heads < 1 || key_heads < 1 || k->shape.rank != 3 || v->shape.rank != 3 || q->shape.dims[2] % heads || k->shape.dims[2] % key_heads || v->shape.dims[2] % key_heads)
            return clt_fail(CLT_E_SHAPE, "its heads do not divide its operands");
        q = split_heads(q, heads), k = split_heads(k, key_heads), v = split_heads(v, key_heads);
    }
    if (!clt_tensor_valid(q) || q->shape.rank != 4 || k->shape.rank != 4 || v->shape.rank != 4) return clt_fail(CLT_E_SHAPE, "operands of %d dimensions", q->shape.rank);
    bool causal = clt_onnx_int(c, "is_causal", 0);
    if (v->shape.dims[3] != q->shape.dims[3]) return clt_fail(CLT_E_UNSUPPORTED, "values of another width than keys");
    clt_attention_options o = {.causal = causal, .scale = clt_onnx_float_attribute(c, "scale", 0), .mask = mask};
    out[0] = clt_attention_with(q, k, v, o);
    if (flat && clt_tensor_valid(out[0])) out[0] = join_heads(out[0]);
    return CLT_OK;
}

/* Pairs of elements are turned by angles whose cosines and sines are given, [places, D / 2] or [N, T, D / 2]. */
static clt_status map_rotary(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *of[2], *ids = NULL;
    bool interleaved = clt_onnx_int(c, "interleaved", 0);
    int64_t part = clt_onnx_int(c, "rotary_embedding_dim", 0), heads = clt_onnx_int(c, "num_heads", 0);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &of[0]));
    CLT_TRY(clt_onnx_float(c, 2, &of[1]));
    if (clt_onnx_has(c, 3)) CLT_TRY(need_i32(c, 3, &ids));
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

/* ---- images ---- */

/* [N, C b b, H, W] -> [N, C, H b, W b], or back. */
static clt_status map_depth_space(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int64_t block = clt_onnx_int(c, "blocksize", 0);
    bool to_space = !strcmp(c->node->op, "DepthToSpace"), crd = !strcmp(clt_onnx_text(c, "mode", "DCR"), "CRD");
    CLT_TRY(clt_onnx_float(c, 0, &x));
    if (x->shape.rank != 4 || block < 1 || block > CLT_MAX_WINDOW) return clt_fail(CLT_E_SHAPE, "%d dimensions, blocks of %lld", x->shape.rank, (long long)block);
    int64_t n = clt_tensor_extent(x).dims[0], channels = x->shape.dims[1], h = x->shape.dims[2], w = x->shape.dims[3];
    if (to_space ? channels % (block * block) : h % block || w % block) return clt_fail(CLT_E_SHAPE, "blocks of %lld do not divide it", (long long)block);
    if (to_space) {
        int64_t depth = channels / (block * block);
        static const int dcr[] = {0, 3, 4, 1, 5, 2}, columns[] = {0, 1, 4, 2, 5, 3};
        x = clt_reshape_to(x, crd ? CLT_SHAPE(n, depth, block, block, h, w) : CLT_SHAPE(n, block, block, depth, h, w));
        out[0] = clt_reshape_to(clt_permute(x, crd ? columns : dcr), CLT_SHAPE(n, depth, h * block, w * block));
        return CLT_OK;
    }
    x = clt_reshape_to(x, CLT_SHAPE(n, channels, h / block, block, w / block, block));
    out[0] = clt_reshape_to(clt_permute(x, (const int[]){0, 3, 5, 1, 2, 4}), CLT_SHAPE(n, channels * block * block, h / block, w / block));
    return CLT_OK;
}

const clt_onnx_rule clt_onnx_network_rules[] = {
    {"SoftmaxCrossEntropyLoss", map_cross_entropy}, {"NegativeLogLikelihoodLoss", map_nll}, {"GatherElements", map_gather_elements}, {"OneHot", map_one_hot},
    {"Trilu", map_trilu}, {"LSTM", map_recurrent}, {"GRU", map_recurrent}, {"Attention", map_attention}, {"RotaryEmbedding", map_rotary},
    {"DepthToSpace", map_depth_space}, {"SpaceToDepth", map_depth_space}, {0},
};
