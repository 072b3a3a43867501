/*
 * Recurrent layers, unrolled: LSTM (Hochreiter, Schmidhuber 1997; with a forget gate, Gers et al. 2000) and GRU (Cho et al. 2014, in the form of
 * which PyTorch and cuDNN have kernels: the reset gate is applied behind the product). With W for weight_ih, U for weight_hh, b and d their biases:
 *
 *     LSTM: i, f, g, o = W x + b + U h + d;  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
 *     GRU:  r, z, n = W x + b;  s, t, m = U h + d;  r' = sigmoid(r + s);  z' = sigmoid(z + t);  h' = (1 - z') tanh(n + r' m) + z' h
 */
#include <stdio.h>

#include "runtime/ops/layer.h"
#include "runtime/ops/ops.h"

enum { LONGEST = 1 << 16 };

/* One layer in one direction. */
typedef struct cell {
    int gates; /* 4: LSTM; 3: GRU; 1: tanh alone */
    bool relu; /* in the place of tanh alone */
    bool reset_first; /* GRU as first published: n' = tanh(n + U_n (r' h) + d_n) */
    int64_t hidden;
    clt_tensor *weight_hh, *bias_hh;
    clt_tensor *h, *c; /* NULL before the first step: zeros */
    clt_tensor *buffer; /* of the state that stays between runs, [N, 1, 1, hidden or 2 hidden]; NULL: none does */
} cell;

/* Gate i of [..., gates hidden], or of nothing. */
static clt_tensor *gate(const cell *l, clt_tensor *gates, int i) {
    return gates ? clt_slice(gates, -1, i * l->hidden, (i + 1) * l->hidden, 1) : NULL;
}

/* U h + d, [N, gates hidden]; of h = 0, d, [gates hidden], or NULL for nothing. */
static clt_tensor *recurrent_part(const cell *l) {
    return l->h ? clt_linear_op(l->h, l->weight_hh, l->bias_hh) : l->bias_hh;
}

static clt_tensor *plus(clt_tensor *a, clt_tensor *b) {
    return b ? clt_add(a, b) : a;
}

static void step_lstm(cell *l, clt_tensor *x) {
    clt_tensor *gates = plus(x, recurrent_part(l));
    clt_tensor *fresh = clt_mul(clt_sigmoid(gate(l, gates, 0)), clt_tanh(gate(l, gates, 2)));
    l->c = l->c ? clt_add(clt_mul(clt_sigmoid(gate(l, gates, 1)), l->c), fresh) : fresh;
    l->h = clt_mul(clt_sigmoid(gate(l, gates, 3)), clt_tanh(l->c));
}

/* U (r h) + d of the gate n, with its rows of the weight alone. */
static clt_tensor *reset_part(const cell *l, clt_tensor *reset) {
    clt_tensor *bias = gate(l, l->bias_hh, 2);
    return l->h ? clt_linear_op(clt_mul(reset, l->h), clt_slice(l->weight_hh, 0, 2 * l->hidden, 3 * l->hidden, 1), bias) : bias;
}

static void step_gru(cell *l, clt_tensor *x) {
    clt_tensor *own = recurrent_part(l);
    clt_tensor *reset = clt_sigmoid(plus(gate(l, x, 0), gate(l, own, 0))), *update = clt_sigmoid(plus(gate(l, x, 1), gate(l, own, 1)));
    clt_tensor *part = l->reset_first ? reset_part(l, reset) : own ? clt_mul(reset, gate(l, own, 2)) : NULL;
    clt_tensor *fresh = clt_tanh(plus(gate(l, x, 2), part));
    clt_tensor *kept = l->h ? clt_sub(l->h, fresh) : clt_neg(fresh);
    l->h = clt_add(fresh, clt_mul(update, kept));
}

static void step_plain(cell *l, clt_tensor *x) {
    clt_tensor *sum = plus(x, recurrent_part(l));
    l->h = l->relu ? clt_relu(sum) : clt_tanh(sum);
}

/* NAME.weight_ih_l0_reverse and the like. */
static clt_tensor *parameter(clt_graph *graph, const char *name, const char *what, int layer, bool reverse, clt_shape shape, int64_t hidden) {
    char own[48];
    snprintf(own, sizeof own, "%s_l%d%s", what, layer, reverse ? "_reverse" : "");
    return clt_layer_parameter(graph, name, own, shape, clt_layer_init(hidden));
}

static clt_tensor *state_buffer(clt_graph *graph, const char *name, int layer, clt_shape shape) {
    char own[48];
    snprintf(own, sizeof own, "state_l%d", layer);
    return clt_layer_unsaved(graph, name, own, shape);
}

/* ---- a state that stays ---- */

/* The state that the last run left, h and c side by side; of a sequence that begins, 0. */
static void recall(cell *l, const char *name, int layer, clt_tensor *position_ids) {
    clt_tensor *place = clt_cast(clt_slice(position_ids, 1, 0, 1, 1), CLT_F32);
    int64_t width = (l->gates == 4 ? 2 : 1) * l->hidden;
    l->buffer = state_buffer(place->graph, name, layer, CLT_SHAPE(position_ids->shape.dims[0], 1, 1, width));
    clt_tensor *state = clt_where(place, clt_reshape(l->buffer, CLT_SHAPE(0, width)), clt_fill(place->graph, CLT_SHAPE(1), 0));
    l->h = gate(l, state, 0);
    if (l->gates == 4) l->c = gate(l, state, 1);
}

/* What comes behind reads the state where it stays. */
static void keep(cell *l, int64_t samples) {
    clt_tensor *state = l->c ? clt_concat((clt_tensor *[]){l->h, l->c}, 2, 1) : l->h;
    clt_tensor *first = clt_cast(clt_fill(state->graph, CLT_SHAPE(samples, 1), 0), CLT_I32); /* a cache of one place each */
    l->h = gate(l, clt_reshape(clt_cache_op(l->buffer, clt_reshape(state, CLT_SHAPE(0, 1, 1, -1)), first), CLT_SHAPE(0, -1)), 0);
}

/* ---- layers ---- */

/* `all` [N, T, gates hidden], the inputs' part of the gates at all places -> the states, [N, T, hidden]. */
static clt_tensor *unroll(cell *l, clt_tensor *all, bool reverse) {
    int64_t length = all->shape.dims[1];
    clt_tensor **states = clt_calloc((size_t)length, sizeof *states);
    if (!states) return clt_graph_fail(all->graph, clt_fail_memory((size_t)length * sizeof *states));
    for (int64_t i = 0; i < length; i++) {
        int64_t t = reverse ? length - 1 - i : i;
        clt_tensor *own = clt_reshape(clt_slice(all, 1, t, t + 1, 1), CLT_SHAPE(0, l->gates * l->hidden));
        (l->gates == 4 ? step_lstm : l->gates == 3 ? step_gru : step_plain)(l, own);
        if (l->buffer && i == length - 1) keep(l, all->shape.dims[0]);
        states[t] = clt_reshape(l->h, CLT_SHAPE(0, 1, l->hidden));
    }
    clt_tensor *y = clt_concat(states, (int)length, 1);
    clt_free(states);
    return y;
}

/* x [N, T, D] -> [N, T, hidden]. */
static clt_tensor *direction(clt_tensor *x, const char *name, int gates, int layer, bool reverse, const clt_recurrent_options *o) {
    clt_graph *graph = x->graph;
    int64_t width = x->shape.dims[2], rows = gates * o->hidden;
    clt_tensor *weight = parameter(graph, name, "weight_ih", layer, reverse, CLT_SHAPE(rows, width), o->hidden), *bias = NULL;
    cell l = {.gates = gates, .hidden = o->hidden};
    l.weight_hh = parameter(graph, name, "weight_hh", layer, reverse, CLT_SHAPE(rows, o->hidden), o->hidden);
    if (!o->no_bias) {
        bias = parameter(graph, name, "bias_ih", layer, reverse, CLT_SHAPE(rows), o->hidden);
        l.bias_hh = parameter(graph, name, "bias_hh", layer, reverse, CLT_SHAPE(rows), o->hidden);
    }
    clt_tensor *all = clt_linear_op(x, weight, bias); /* of all places at once */
    if (!clt_tensor_valid(all)) return all;
    if (o->position_ids) recall(&l, name, layer, o->position_ids);
    return unroll(&l, all, reverse);
}

clt_tensor *clt_recurrent_op(clt_tensor *x, const clt_recurrent_weights *w, bool reverse, clt_tensor **h, clt_tensor **c) {
    if (!clt_tensor_valid(x) || !clt_tensor_valid(w->weight_hh)) return clt_tensor_valid(x) ? w->weight_hh : x;
    clt_tensor *all = clt_linear_op(x, w->weight_ih, w->bias_ih);
    if (!clt_tensor_valid(all)) return all;
    if (x->shape.rank != 3 || clt_tensor_extent(x).dims[1] != x->shape.dims[1] || x->shape.dims[1] > LONGEST)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "a recurrent layer is unrolled over T of [N, T, D], which must be one size, %d at most", LONGEST));
    cell l = {.gates = w->gates, .relu = w->relu, .reset_first = w->reset_first, .hidden = w->weight_hh->shape.dims[w->weight_hh->shape.rank - 1], .weight_hh = w->weight_hh, .bias_hh = w->bias_hh,
              .h = *h, .c = c ? *c : NULL};
    clt_tensor *y = unroll(&l, all, reverse);
    *h = l.h;
    if (c) *c = l.c;
    return y;
}

/* NULL: nothing is wrong with them. */
static clt_tensor *refuse_places(const char *what, clt_tensor *x, const char *name, const clt_recurrent_options *o) {
    clt_tensor *ids = o->position_ids;
    char text[CLT_SHAPE_TEXT];
    if (!ids) return NULL;
    if (!clt_tensor_valid(ids)) return ids;
    if (o->bidirectional)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_INVALID, "%s \"%s\": with position_ids it goes on with a text, which it cannot read from its end: bidirectional",
                                                 what, name ? name : ""));
    if (ids->dtype == CLT_I32 && clt_shape_equal(&ids->shape, &CLT_SHAPE(x->shape.dims[0], x->shape.dims[1]))) return NULL;
    return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "%s \"%s\": expected position_ids i32 [%lld, %lld], got %s %s", what, name ? name : "",
                                             (long long)x->shape.dims[0], (long long)x->shape.dims[1], clt_dtype_name(ids->dtype), clt_shape_text(&ids->shape, text)));
}

static clt_tensor *recurrent(const char *what, clt_tensor *x, const char *name, int gates, clt_recurrent_options o) {
    enum { MOST_LAYERS = 1000 };
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    if (!o.layers) o.layers = 1;
    if (x->shape.rank != 3 || o.hidden < 1 || o.hidden > INT32_MAX / 4 || o.layers < 1 || o.layers > MOST_LAYERS || !(o.dropout >= 0 && o.dropout < 1))
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "%s \"%s\": expected x [N, T, D], hidden 1 or more, 1 to %d layers and dropout in [0, 1), got %s, %lld, %d and %g",
                                                 what, name ? name : "", MOST_LAYERS, clt_shape_text(&x->shape, text), (long long)o.hidden, o.layers, (double)o.dropout));
    if (clt_tensor_extent(x).dims[1] != x->shape.dims[1] || x->shape.dims[1] > LONGEST)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "%s \"%s\": it is unrolled over T, which must be one size, %d at most; x is %s", what, name ? name : "",
                                                 LONGEST, clt_shape_text(&x->shape, text)));
    clt_tensor *refused = refuse_places(what, x, name, &o);
    if (refused) return refused;
    for (int i = 0; i < o.layers && clt_tensor_valid(x); i++) {
        if (i && o.dropout > 0) x = clt_dropout(x, o.dropout);
        clt_tensor *both[] = {direction(x, name, gates, i, false, &o), NULL};
        if (o.bidirectional) both[1] = direction(x, name, gates, i, true, &o);
        x = o.bidirectional ? clt_concat(both, 2, 2) : both[0];
    }
    return x;
}

clt_tensor *clt_lstm_with(clt_tensor *x, const char *name, clt_recurrent_options options) {
    return recurrent("lstm", x, name, 4, options);
}

clt_tensor *clt_gru_with(clt_tensor *x, const char *name, clt_recurrent_options options) {
    return recurrent("gru", x, name, 3, options);
}
