/* Recurrent layers. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double a) {
    return 1 / (1 + exp(-a));
}

/* W v + b, or 0 where there is no b: y [rows]. */
static void product(const array *weight, const double *v, const array *bias, double *y) {
    int64_t rows = weight->shape.dims[0], columns = weight->shape.dims[1];
    for (int64_t i = 0; i < rows; i++) {
        y[i] = bias ? bias->values[i] : 0;
        for (int64_t k = 0; k < columns; k++) y[i] += weight->values[i * columns + k] * v[k];
    }
}

static void step_lstm(const double *a, const double *b, double *h, double *c, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        c[i] = sigmoid(a[n + i] + b[n + i]) * c[i] + sigmoid(a[i] + b[i]) * tanh(a[2 * n + i] + b[2 * n + i]);
        h[i] = sigmoid(a[3 * n + i] + b[3 * n + i]) * tanh(c[i]);
    }
}

static void step_gru(const double *a, const double *b, double *h, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double z = sigmoid(a[n + i] + b[n + i]), fresh = tanh(a[2 * n + i] + sigmoid(a[i] + b[i]) * b[2 * n + i]);
        h[i] = (1 - z) * fresh + z * h[i];
    }
}

/* One direction of a layer: w is weight_ih, weight_hh and, if `biased`, bias_ih and bias_hh; y [N, T, width], of which hidden elements from `at` on are its. */
static void run_direction(const array *x, const array *w, bool biased, bool lstm, bool reverse, double *y, int64_t width, int64_t at) {
    int64_t hidden = w[1].shape.dims[1], rows = w[1].shape.dims[0], length = x->shape.dims[1], columns = x->shape.dims[2];
    double *memory = calloc((size_t)(2 * rows + 2 * hidden), sizeof *memory), *a = memory, *b = a + rows, *h = b + rows, *c = h + hidden;
    for (int64_t n = 0; memory && n < x->shape.dims[0]; n++) {
        memset(h, 0, (size_t)(2 * hidden) * sizeof *h);
        for (int64_t i = 0; i < length; i++) {
            int64_t t = reverse ? length - 1 - i : i;
            product(&w[0], x->values + (n * length + t) * columns, biased ? &w[2] : NULL, a);
            product(&w[1], h, biased ? &w[3] : NULL, b);
            if (lstm) step_lstm(a, b, h, c, hidden);
            else step_gru(a, b, h, hidden);
            memcpy(y + (n * length + t) * width + at, h, (size_t)hidden * sizeof *h);
        }
    }
    free(memory);
}

/* at: first, the layers; last, the directions; flag: no biases. Operands behind x as the layers make them. */
static double reference_layers(const array *x, array *y, const attributes *at, bool lstm) {
    int64_t hidden = x[2].shape.dims[1], width = hidden * at->last, each = at->flag ? 2 : 4;
    array in = {0};
    array_resize(&in, x->shape);
    memcpy(in.values, x->values, (size_t)array_count(x) * sizeof *in.values);
    const array *w = x + 1;
    for (int64_t layer = 0; layer < at->first; layer++) {
        array_resize(y, (clt_shape)SHAPE(x->shape.dims[0], x->shape.dims[1], width));
        for (int64_t d = 0; d < at->last; d++, w += each) run_direction(&in, w, !at->flag, lstm, d, y->values, width, d * hidden);
        array_resize(&in, y->shape);
        memcpy(in.values, y->values, (size_t)array_count(y) * sizeof *in.values);
    }
    array_free(&in);
    return 200.0 * (double)array_count(y);
}

static double reference_lstm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    return reference_layers(x, y, at, true);
}

static double reference_gru(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    return reference_layers(x, y, at, false);
}

static clt_recurrent_options options_of(const attributes *at) {
    return (clt_recurrent_options){.hidden = at->step, .layers = (int)at->first, .bidirectional = at->last == 2, .no_bias = at->flag};
}

BUILD(lstm, clt_lstm_with(x[0], "w", options_of(at)))
BUILD(gru, clt_gru_with(x[0], "w", options_of(at)))

static const operation lstm = OPERATION("lstm", "clt_lstm_with", lstm, lstm), gru = OPERATION("gru", "clt_gru_with", gru, gru);

/* The operands in the order of the layers, their directions, and what each has. */
static void add(case_list *list, const operation *op, const char *variant, clt_shape shape, int hidden, int layers, int directions, bool biased) {
    static const char *const names[2][2][4] = { /* of the layer and its direction */
        {{"w.weight_ih_l0", "w.weight_hh_l0", "w.bias_ih_l0", "w.bias_hh_l0"},
         {"w.weight_ih_l0_reverse", "w.weight_hh_l0_reverse", "w.bias_ih_l0_reverse", "w.bias_hh_l0_reverse"}},
        {{"w.weight_ih_l1", "w.weight_hh_l1", "w.bias_ih_l1", "w.bias_hh_l1"},
         {"w.weight_ih_l1_reverse", "w.weight_hh_l1_reverse", "w.bias_ih_l1_reverse", "w.bias_hh_l1_reverse"}}};
    operand x[MOST_OPERANDS] = {{.shape = shape}};
    int n = 1, gates = op == &lstm ? 4 : 3;
    for (int layer = 0; layer < layers; layer++)
        for (int d = 0; d < directions; d++)
            for (int part = 0; part < (biased ? 4 : 2); part++, n++) {
                int64_t in = layer ? hidden * directions : shape.dims[2];
                x[n].variable = names[layer][d][part];
                if (part < 2) x[n].shape = (clt_shape)SHAPE(gates * hidden, part ? hidden : in);
                else x[n].shape = (clt_shape)SHAPE(gates * hidden);
            }
    test_case *c = case_add(list, op, variant, x, n);
    c->at.step = hidden;
    c->at.first = layers;
    c->at.last = directions;
    c->at.flag = !biased;
}

void cases_recurrent(case_list *list) {
    const operation *ops[] = {&lstm, &gru};
    for (int i = 0; i < 2; i++) {
        add(list, ops[i], "", (clt_shape)SHAPE(3, 5, 4), 6, 1, 1, true);
        add(list, ops[i], "one", (clt_shape)SHAPE(1, 2, 1), 1, 1, 1, true);
        add(list, ops[i], "plain", (clt_shape)SHAPE(2, 3, 2), 3, 1, 1, false);
        add(list, ops[i], "both-ways", (clt_shape)SHAPE(2, 4, 3), 2, 1, 2, true);
        add(list, ops[i], "layers", (clt_shape)SHAPE(2, 3, 2), 3, 2, 1, true);
    }
}
