/* Layers of networks that are more than one op: losses, recurrent layers. */
#include <math.h>
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- losses ---- */

static clt_status read_reduction(const clt_onnx_call *c, clt_loss_reduction *reduction) {
    const char *word = clt_onnx_text(c, "reduction", "mean");
    *reduction = !strcmp(word, "none") ? CLT_LOSS_NONE : !strcmp(word, "sum") ? CLT_LOSS_SUM : CLT_LOSS_MEAN;
    return *reduction != CLT_LOSS_MEAN || !strcmp(word, "mean") ? CLT_OK : clt_fail(CLT_E_UNSUPPORTED, "reduction %.40s", word);
}

/* The class that is ignored; NULL: none is. */
static clt_status read_ignored(const clt_onnx_call *c, int32_t *value, const int32_t **ignored) {
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "ignore_index", CLT_ONNX_A_INT);
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
    CLT_TRY(clt_onnx_integers(c, 1, &labels));
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
    CLT_TRY(clt_onnx_integers(c, 1, &labels));
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
    clt_tensor *losses = clt_neg(clt_sum(clt_where(own, clt_onnx_move_axis(log_p, 1, rank - 1), zero), last));
    clt_tensor *weights = weight ? clt_sum(clt_mul(own, weight), last) : NULL;
    if (weights) losses = clt_mul(losses, weights);
    if (kept) losses = clt_where(kept, losses, zero), weights = weights ? clt_mul(weights, kept) : kept;
    if (reduction == CLT_LOSS_NONE) out[0] = losses;
    else if (reduction == CLT_LOSS_SUM || weights) out[0] = clt_sum(losses, CLT_ALL_AXES);
    else out[0] = clt_mean(losses, CLT_ALL_AXES);
    if (reduction == CLT_LOSS_MEAN && weights) out[0] = clt_div(out[0], clt_sum(weights, CLT_ALL_AXES));
    return CLT_OK;
}

static clt_status map_trilu(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_literal *of, *mask_of;
    int64_t k = 0;
    bool upper = clt_onnx_int(c, "upper", 1);
    clt_literal *mask;
    CLT_TRY(clt_onnx_comparable(c, 0, &x));
    c->out_type = clt_onnx_type_of(c, 0);
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
    out[0] = clt_where(where, x, clt_cast(clt_fill(c->graph, (clt_shape){0}, 0), clt_tensor_dtype(x)));
    return CLT_OK;
}

/* ---- recurrent layers ---- */

/* Rows of a weight [directions, gates hidden, ...], of one direction, in another order of gates. */
static clt_tensor *gates_of(clt_tensor *w, int direction, const int *order, int gates, int64_t first) {
    clt_tensor *own = clt_squeeze(clt_slice(w, 0, direction, direction + 1, 1), 0), *parts[4];
    int64_t hidden = clt_tensor_valid(own) ? own->shape.dims[0] / (own->shape.rank == 1 ? 2 * gates : gates) : 1;
    for (int g = 0; g < gates; g++) parts[g] = clt_slice(own, 0, (first * gates + order[g]) * hidden, (first * gates + order[g] + 1) * hidden, 1);
    return gates == 1 ? parts[0] : clt_concat(parts, gates, 0);
}

/* *relu: of an RNN, in the place of tanh. */
static clt_status check_recurrent(const clt_onnx_call *c, int gates, bool *relu) {
    static const char *const unknown[] = {"activation_alpha", "activation_beta", "clip"}, *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const clt_onnx_attribute *a = clt_onnx_attribute_of(c->node, "activations", CLT_ONNX_A_STRINGS);
    *relu = gates == 1 && a && a->n > 0 && !strcmp(a->strings[0], "Relu");
    for (size_t i = 0; i < CLT_COUNT_OF(unknown); i++)
        if (clt_onnx_attribute_of(c->node, unknown[i], 0)) return clt_fail(CLT_E_UNSUPPORTED, "the attribute %s", unknown[i]);
    for (size_t i = 0; a && i < a->n; i++)
        if (strcmp(a->strings[i], *relu ? "Relu" : gates == 1 ? "Tanh" : usual[i % (gates == 4 ? 3 : 2)])) return clt_fail(CLT_E_UNSUPPORTED, "the activation %.40s", a->strings[i]);
    if (clt_onnx_int(c, "input_forget", 0)) return clt_fail(CLT_E_UNSUPPORTED, "input_forget");
    if (clt_onnx_has(c, 4)) return clt_fail(CLT_E_UNSUPPORTED, "sequences of different lengths");
    return gates == 4 && clt_onnx_has(c, 7) ? clt_fail(CLT_E_UNSUPPORTED, "peepholes") : CLT_OK;
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
    static const int order_lstm[] = {0, 2, 3, 1}, order_gru[] = {1, 0, 2}, order_rnn[] = {0};
    bool lstm = !strcmp(c->node->op, "LSTM"), gru = !strcmp(c->node->op, "GRU"), batch_first = clt_onnx_int(c, "layout", 0);
    const char *way = clt_onnx_text(c, "direction", "forward");
    int gates = lstm ? 4 : gru ? 3 : 1, directions = strcmp(way, "bidirectional") ? 1 : 2, axis = batch_first;
    const int *order = lstm ? order_lstm : gru ? order_gru : order_rnn;
    clt_tensor *x, *w, *r, *b = NULL, *ys[2], *hs[2], *cs[2];
    bool relu;
    CLT_TRY(check_recurrent(c, gates, &relu));
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &w));
    CLT_TRY(clt_onnx_float(c, 2, &r));
    if (clt_onnx_has(c, 3)) CLT_TRY(clt_onnx_float(c, 3, &b));
    if (x->shape.rank != 3 || w->shape.rank != 3 || r->shape.rank != 3 || (b && b->shape.rank != 2) || w->shape.dims[0] != directions || r->shape.dims[0] != directions ||
        w->shape.dims[1] != gates * r->shape.dims[2] || r->shape.dims[1] != gates * r->shape.dims[2] || (b && (b->shape.dims[0] != directions || b->shape.dims[1] != 2 * w->shape.dims[1])))
        return clt_fail(CLT_E_SHAPE, "its weights do not fit");
    if (clt_tensor_extent(x).dims[batch_first] != x->shape.dims[batch_first])
        return clt_fail(CLT_E_UNSUPPORTED, "the number of its steps, dimension %d of its input, follows the batch or the length, and has to be one number. Where the network takes time first "
                                           "(batch_first=False in PyTorch), name the batch's dimension (batch_symbol in the options)", batch_first);
    if (!batch_first) x = clt_transpose(x, 0, 1);
    for (int d = 0; d < directions; d++) {
        clt_recurrent_weights weights = {.gates = gates, .relu = relu, .reset_first = gru && !clt_onnx_int(c, "linear_before_reset", 0), .weight_ih = gates_of(w, d, order, gates, 0),
                                         .weight_hh = gates_of(r, d, order, gates, 0)};
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

const clt_onnx_rule clt_onnx_network_rules[] = {
    {"SoftmaxCrossEntropyLoss", map_cross_entropy}, {"NegativeLogLikelihoodLoss", map_nll}, 
    {"Trilu", map_trilu}, {"LSTM", map_recurrent}, {"GRU", map_recurrent}, {"RNN", map_recurrent}, {0},
};
