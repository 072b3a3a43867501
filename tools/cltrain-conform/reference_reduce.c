#include "tools/cltrain-conform/reference.h"

#include <math.h>

/* ---- reductions ---- */

static bool is_reduced(const clt_reduce_options *o, int rank, int d) {
    for (int i = 0; i < o->n_axes; i++)
        if (o->axes[i] == d || o->axes[i] + rank == d) return true;
    return o->n_axes == 0;
}

typedef enum reduction { SUM, MEAN, MAX } reduction;

/* NaN is larger than any number. */
static double larger(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

static double reduce(const array *x, array *y, const attributes *at, reduction kind) {
    clt_shape kept = x->shape, result = {.rank = 0};
    for (int d = 0; d < x->shape.rank; d++) {
        bool reduced = is_reduced(&at->reduce, x->shape.rank, d);
        if (reduced) kept.dims[d] = 1;
        if (!reduced || at->reduce.keep_dims) result.dims[result.rank++] = kept.dims[d];
    }
    array_resize(y, result);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = kind == MAX ? -INFINITY : 0;
    int64_t index[CLT_MAX_RANK] = {0}, own[CLT_MAX_RANK], place = 0;
    do {
        for (int d = 0; d < kept.rank; d++) own[d] = kept.dims[d] == 1 ? 0 : index[d];
        double *to = &y->values[index_place(&kept, own)], value = x->values[place++];
        *to = kind == MAX ? larger(*to, value) : *to + value;
    } while (index_next(&x->shape, index));
    double each = (double)array_count(x) / (double)array_count(y);
    for (int64_t i = 0; kind == MEAN && i < array_count(y); i++) y->values[i] /= each;
    return 8.0 * (double)place;
}

double reference_sum(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, SUM);
}
double reference_mean(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, MEAN);
}
double reference_max(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, MAX);
}

/* ---- softmax ---- */

static double softmax(const array *x, array *y, const attributes *at, bool logarithm) {
    int axis = at->axis < 0 ? at->axis + x->shape.rank : at->axis;
    int64_t n = x->shape.dims[axis], inner = 1;
    for (int d = axis + 1; d < x->shape.rank; d++) inner *= x->shape.dims[d];
    array_resize(y, x->shape);
    for (int64_t row = 0; row < array_count(x) / n; row++) {
        int64_t first = row / inner * n * inner + row % inner;
        double total = log_sum_exp(x->values + first, n, inner);
        for (int64_t i = 0; i < n; i++) {
            double value = x->values[first + i * inner] - total;
            y->values[first + i * inner] = logarithm ? value : exp(value);
        }
    }
    return 30.0 * (double)array_count(x);
}

double reference_softmax(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, softmax(x, y, at, false);
}
double reference_log_softmax(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, softmax(x, y, at, true);
}

/* ---- losses ---- */

/* logits [N, C], target [N]. */
double reference_cross_entropy(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t rows = x[0].shape.dims[0], classes = x[0].shape.dims[1];
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *logits = x[0].values + r * classes;
        double target = x[1].values[r];
        double own = target >= 0 && target < (double)classes ? logits[(int64_t)target] : NAN;
        y->values[0] += (log_sum_exp(logits, classes, 1) - own) / (double)rows;
    }
    return 30.0 * (double)array_count(x);
}

/* Of the logits; NaN for a row whose target is no class. */
void reference_cross_entropy_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)i, (void)at;
    int64_t rows = x[0].shape.dims[0], classes = x[0].shape.dims[1];
    for (int64_t r = 0; r < rows; r++) {
        const double *logits = x[0].values + r * classes;
        double target = x[1].values[r], total = log_sum_exp(logits, classes, 1);
        double factor = target >= 0 && target < (double)classes ? dy->values[0] / (double)rows : NAN;
        for (int64_t c = 0; c < classes; c++)
            dx->values[r * classes + c] = factor * (exp(logits[c] - total) - (target == (double)c));
    }
}

static double minus_log_sigmoid(double a) {
    return fmax(-a, 0) + log1p(exp(-fabs(a)));
}

double reference_bce_with_logits(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t count = array_count(x);
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        double a = x[0].values[i], b = x[1].values[i];
        y->values[0] += (b * minus_log_sigmoid(a) + (1 - b) * minus_log_sigmoid(-a)) / (double)count;
    }
    return 60.0 * (double)count;
}

double reference_mse_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t count = array_count(x);
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = x[0].values[i] - x[1].values[i];
        y->values[0] += d * d / (double)count;
    }
    return 4.0 * (double)count;
}
