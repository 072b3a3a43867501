/* Reductions, softmax and losses. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static double reference_sum(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, SUM);
}
static double reference_mean(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, MEAN);
}
static double reference_max(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, reduce(x, y, at, MAX);
}

/* Equals share. */
static void reference_max_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    int64_t row = 0, columns = x->shape.dims[1];
    (void)i, (void)at;
    array_clear(dx, x->shape);
    for (; row < x->shape.dims[0]; row++) {
        const double *from = x->values + row * columns;
        double most = -INFINITY, equals = 0;
        for (int64_t k = 0; k < columns; k++) most = fmax(most, from[k]);
        for (int64_t k = 0; k < columns; k++) equals += from[k] == most;
        for (int64_t k = 0; k < columns; k++) dx->values[row * columns + k] = from[k] == most ? dy->values[row] / equals : 0;
    }
}

/* ---- softmax ---- */

static double soft(const array *x, array *y, const attributes *at, bool logarithm) {
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

static double reference_softmax(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, soft(x, y, at, false);
}
static double reference_log_softmax(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, soft(x, y, at, true);
}

/* ---- losses ---- */

/* logits [N, C], target [N]. */
static double reference_cross_entropy(const array *x, int n, array *y, const attributes *at, bool evaluation) {
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

/* s[0]: label smoothing; x[2]: weights of the classes, if there are three; flag: the target `first` is ignored. */
static double reference_cross_entropy_with(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    int64_t rows = x[0].shape.dims[0], classes = x[0].shape.dims[1];
    double sum = 0, all = 0, smooth = (double)at->s[0];
    array_resize(y, (clt_shape){.rank = 0});
    for (int64_t r = 0; r < rows; r++) {
        const double *logits = x[0].values + r * classes;
        int64_t target = (int64_t)x[1].values[r];
        if (at->flag && target == at->first) continue;
        double total = log_sum_exp(logits, classes, 1), even = 0;
        for (int64_t c = 0; c < classes; c++) even += (n == 3 ? x[2].values[c] : 1) * (total - logits[c]) / (double)classes;
        sum += (1 - smooth) * (n == 3 ? x[2].values[target] : 1) * (total - logits[target]) + smooth * even;
        all += n == 3 ? x[2].values[target] : 1;
    }
    y->values[0] = sum / all;
    return 60.0 * (double)array_count(x);
}

/* Of the logits; NaN for a row whose target is not a class. */
static void reference_cross_entropy_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
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

/* logits [N, C, ...], target [N, ...]. */
static double reference_cross_entropy_places(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t classes = x[0].shape.dims[1], places = array_count(&x[1]), inner = places / x[0].shape.dims[0];
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t p = 0; p < places; p++) {
        const double *logits = x[0].values + p / inner * classes * inner + p % inner;
        y->values[0] += (log_sum_exp(logits, classes, inner) - logits[(int64_t)x[1].values[p] * inner]) / (double)places;
    }
    return 30.0 * (double)array_count(x);
}

static double reference_nll_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t rows = x[0].shape.dims[0], classes = x[0].shape.dims[1];
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t r = 0; r < rows; r++) y->values[0] -= x[0].values[r * classes + (int64_t)x[1].values[r]] / (double)rows;
    return 2.0 * (double)array_count(x);
}

static double reference_kl_div_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    int64_t count = array_count(x);
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        double t = x[1].values[i];
        y->values[0] += t == 0 ? 0 : t * (log(t) - x[0].values[i]) / (double)count;
    }
    return 40.0 * (double)count;
}

static double minus_log_sigmoid(double a) {
    return fmax(-a, 0) + log1p(exp(-fabs(a)));
}

static double reference_bce_with_logits(const array *x, int n, array *y, const attributes *at, bool evaluation) {
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

/* The mean of f(a - b). */
static double mean_of_differences(const array *x, array *y, double (*f)(double d, double s), double s) {
    int64_t count = array_count(x);
    array_resize(y, (clt_shape){.rank = 0});
    y->values[0] = 0;
    for (int64_t i = 0; i < count; i++) y->values[0] += f(x[0].values[i] - x[1].values[i], s) / (double)count;
    return 4.0 * (double)count;
}

static double absolute(double d, double s) { return (void)s, fabs(d); }
static double huber_of(double d, double s) { return fabs(d) <= s ? 0.5 * d * d : s * (fabs(d) - 0.5 * s); }

static double reference_l1_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)at, (void)evaluation, mean_of_differences(x, y, absolute, 0);
}
static double reference_huber_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, mean_of_differences(x, y, huber_of, (double)at->s[0]);
}

/* Of operand i; equal ones have none. */
static void gradient_of_differences(const array *x, int i, const array *dy, array *dx, double most) {
    int64_t count = array_count(x);
    for (int64_t k = 0; k < count; k++) {
        double d = x[0].values[k] - x[1].values[k], slope = most > 0 ? fmax(-most, fmin(most, d)) : (d > 0) - (d < 0);
        dx->values[k] = (i ? -1 : 1) * dy->values[0] * slope / (double)count;
    }
}
static void reference_l1_loss_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    (void)at, gradient_of_differences(x, i, dy, dx, 0);
}
static void reference_huber_loss_gradient(const array *x, int i, const array *dy, array *dx, const attributes *at) {
    gradient_of_differences(x, i, dy, dx, (double)at->s[0]);
}

static double reference_mse_loss(const array *x, int n, array *y, const attributes *at, bool evaluation) {
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

/* ---- cases ---- */

BUILD(sum, clt_sum(x[0], at->reduce))
BUILD(mean, clt_mean(x[0], at->reduce))
BUILD(max, clt_max(x[0], at->reduce))
BUILD(softmax, clt_softmax(x[0], at->axis))
BUILD(log_softmax, clt_log_softmax(x[0], at->axis))
static clt_tensor *build_cross_entropy_with(clt_graph *graph, clt_tensor *const *x, int n, const attributes *at) {
    (void)graph;
    const int32_t ignored = (int32_t)at->first;
    clt_cross_entropy_options o = {.label_smoothing = at->s[0], .weight = n == 3 ? x[2] : NULL, .ignore_index = at->flag ? &ignored : NULL};
    return clt_cross_entropy_with(x[0], x[1], o);
}
BUILD(cross_entropy, clt_cross_entropy(x[0], x[1]))
BUILD(nll_loss, clt_nll_loss(x[0], x[1]))
BUILD(kl_div_loss, clt_kl_div_loss(x[0], x[1]))
BUILD(bce_with_logits, clt_bce_with_logits(x[0], x[1]))
BUILD(mse_loss, clt_mse_loss(x[0], x[1]))
BUILD(l1_loss, clt_l1_loss(x[0], x[1]))
BUILD(huber_loss, clt_huber_loss(x[0], x[1], at->s[0]))

#define OP(word) OPERATION(#word, "clt_" #word, word, word)
const operation operation_sum = OP(sum);
static const operation mean = OP(mean), max = OP(max), softmax = OP(softmax),
                       log_softmax = OP(log_softmax), cross_entropy = OP(cross_entropy),
                       bce = OP(bce_with_logits), mse = OP(mse_loss);
static const operation max_ties = OPERATION("max", "clt_max", max, max, .gradient = reference_max_gradient);
/* One NaN hides all others in a mean, and in its differences; the gradient tells rows apart. */
static const operation cross_entropy_with = OPERATION("cross_entropy", "clt_cross_entropy_with", cross_entropy_with, cross_entropy_with);
static const operation cross_entropy_places = OPERATION("cross_entropy", "clt_cross_entropy", cross_entropy, cross_entropy_places);
static const operation nll_loss = OPERATION("nll_loss", "clt_nll_loss clt_nll_loss_with", nll_loss, nll_loss);
static const operation kl_div_loss = OPERATION("kl_div_loss", "clt_kl_div_loss clt_kl_div_loss_with", kl_div_loss, kl_div_loss);
static const operation cross_entropy_ignored = OPERATION("ignore_index", "clt_cross_entropy_with", cross_entropy_with, cross_entropy_with);
static const operation cross_entropy_no_class = OPERATION("cross_entropy", "clt_cross_entropy",
    cross_entropy, cross_entropy, .gradient = reference_cross_entropy_gradient);

static void add_reductions(case_list *list, bool full, const char *variant, clt_shape shape,
                           clt_reduce_options o) {
    const operation *ops[] = {&operation_sum, &mean, &max};
    for (int i = 0; i < 3; i++) {
        operand x = {.shape = shape, .distinct = i == 2};
        test_case *c = case_add(list, ops[i], variant, &x, 1);
        c->at.reduce = o;
        c->full = full;
        c->large = clt_shape_elements(&shape) > 20000;
    }
}

/* Each subset of the axes of a tensor of rank 4; odd ones are named from the end. The subset of none means all. */
static void add_subsets(case_list *list) {
    for (int subset = 0; subset < 16; subset++)
        for (int keep = 0; keep < 2; keep++) {
            clt_reduce_options o = {.keep_dims = keep};
            char variant[24] = "axes-";
            size_t used = strlen(variant);
            for (int d = 0; d < 4; d++) {
                if (!(subset >> d & 1)) continue;
                o.axes[o.n_axes++] = d % 2 ? d - 4 : d;
                variant[used++] = (char)('0' + d);
            }
            snprintf(variant + used, sizeof variant - used, "%s%s", subset ? "" : "all", keep ? "-keep" : "");
            add_reductions(list, false, variant, (clt_shape)SHAPE(3, 4, 5, 7), o);
        }
}

static void add_softmax(case_list *list, bool full, const char *variant, clt_shape shape, int axis) {
    const operation *ops[] = {&softmax, &log_softmax};
    for (int i = 0; i < 2; i++) {
        operand x = {.shape = shape, .low = -5, .high = 5};
        test_case *c = case_add(list, ops[i], variant, &x, 1);
        c->at.axis = axis;
        c->full = full;
        c->large = clt_shape_elements(&shape) > 20000;
    }
}

static void add_smoothing(case_list *list, const char *variant, int operands, float smoothing) {
    operand x[] = {{.shape = SHAPE(33, 7), .low = -5, .high = 5},
                   {.dtype = CLT_I32, .shape = SHAPE(33), .low = 0, .high = 7},
                   {.shape = SHAPE(7), .low = 0.5, .high = 2}};
    case_add(list, &cross_entropy_with, variant, x, operands)->at.s[0] = smoothing;
}

static void add_places(case_list *list) {
    const clt_shape shapes[] = {SHAPE(2, 5, 3, 4), SHAPE(3, 7, 6), SHAPE(1, 2, 2, 2, 3)};
    for (int i = 0; i < 3; i++) {
        operand x[] = {{.shape = shapes[i], .low = -5, .high = 5}, {.dtype = CLT_I32, .shape = shapes[i], .low = 0, .high = (double)shapes[i].dims[1]}};
        for (int d = 1; d + 1 < shapes[i].rank; d++) x[1].shape.dims[d] = shapes[i].dims[d + 1];
        x[1].shape.rank--;
        case_add(list, &cross_entropy_places, "places", x, 2);
    }
    operand log_p[] = {{.shape = SHAPE(9, 5), .low = -6, .high = 0}, {.dtype = CLT_I32, .shape = SHAPE(9), .low = 0, .high = 5}};
    case_add(list, &nll_loss, "", log_p, 2);
    operand both[] = {{.shape = SHAPE(6, 5), .low = -6, .high = 0}, {.shape = SHAPE(6, 5), .low = 0.05, .high = 1}};
    case_add(list, &kl_div_loss, "", both, 2);
    operand some[] = {{.shape = SHAPE(4, 3), .low = -6, .high = 0}, {.shape = SHAPE(4, 3), .low = 0.05, .high = 1, .special = {0, 0}, .n_special = 2, .constant = true}};
    case_add(list, &kl_div_loss, "zeros", some, 2);
}

/* A few of 33 targets are ignored: a class of several, or what is none. */
static void add_ignored(case_list *list, const char *variant, float smoothing, int operands, int ignored) {
    operand x[] = {{.shape = SHAPE(33, 7), .low = -5, .high = 5},
                   {.dtype = CLT_I32, .shape = SHAPE(33), .low = 0, .high = 7, .special = {ignored, ignored, 6}, .n_special = 3},
                   {.shape = SHAPE(7), .low = 0.5, .high = 2}};
    test_case *c = case_add(list, &cross_entropy_ignored, variant, x, operands);
    c->at.s[0] = smoothing;
    c->at.flag = true;
    c->at.first = ignored;
}

static void add_cross_entropy(case_list *list, bool full, int rows, int classes) {
    operand x[] = {{.shape = SHAPE(rows, classes), .low = -5, .high = 5},
                   {.dtype = CLT_I32, .shape = SHAPE(rows), .low = 0, .high = classes}};
    test_case *c = case_add(list, &cross_entropy, "", x, 2);
    c->full = full;
    c->large = rows * classes > 20000;
}

/* Where exp overflows, and where it is nothing, unless the largest is subtracted before. */
static void add_offset(case_list *list, bool full, const char *variant, int rows, int classes, double low) {
    const operation *ops[] = {&softmax, &log_softmax};
    operand x[] = {{.shape = SHAPE(rows, classes), .low = low, .high = low + 10},
                   {.dtype = CLT_I32, .shape = SHAPE(rows), .low = 0, .high = classes}};
    for (int i = 0; i < 2; i++) {
        test_case *c = case_add(list, ops[i], variant, x, 1);
        c->at.axis = 1;
        c->full = full;
    }
    case_add(list, &cross_entropy, variant, x, 2)->full = full;
}

/* Values that are so far above all others of their rows that exp overflows, unless they are the ones that are subtracted. */
static void add_peaks(case_list *list, bool full, int rows, int classes) {
    const operation *ops[] = {&softmax, &log_softmax};
    operand x[] = {{.shape = SHAPE(rows, classes), .low = -300, .high = -200, .special = {0, 0, 0}, .n_special = 3},
                   {.dtype = CLT_I32, .shape = SHAPE(rows), .low = 0, .high = classes}};
    test_case *made[] = {case_add(list, ops[0], "peaks", x, 1), case_add(list, ops[1], "peaks", x, 1),
                         case_add(list, &cross_entropy, "peaks", x, 2)};
    for (int i = 0; i < 3; i++) {
        made[i]->at.axis = i < 2;
        made[i]->full = full;
        made[i]->large = rows * classes > 20000;
    }
}

/* Logits whose exponentials are nothing or too much; ties among them, and a class that is ruled out. */
static void add_spread(case_list *list) {
    const operation *ops[] = {&softmax, &log_softmax};
    static const double large[] = {1e4, -1e4, 9999, 0, 1e4, 1e4, -1e4, -9999.5, -1e4, 1e30, 1, -1e30}, class[] = {2, 0, 1},
                        ruled_out[] = {0, -INFINITY, 0}, last[] = {2};
    operand x[] = {{.shape = SHAPE(5, 6), .low = -1e4, .high = 1e4},
                   {.dtype = CLT_I32, .shape = SHAPE(5), .low = 0, .high = 6}};
    for (int i = 0; i < 2; i++) case_add(list, ops[i], "spread", x, 1)->at.axis = 1;
    case_add(list, &cross_entropy, "spread", x, 2);
    operand ties[] = {{.shape = SHAPE(3, 4), .values = large, .n_values = 12, .constant = true},
                      {.dtype = CLT_I32, .shape = SHAPE(3), .values = class, .n_values = 3}};
    case_add(list, &softmax, "ties", ties, 1)->at.axis = 1;
    case_add(list, &cross_entropy, "ties", ties, 2);
    operand masked[] = {{.shape = SHAPE(1, 3), .values = ruled_out, .n_values = 3},
                        {.dtype = CLT_I32, .shape = SHAPE(1), .values = last, .n_values = 1}};
    case_add(list, &cross_entropy_no_class, "ruled-out", masked, 2);
}

/* One target of many that is not a class: the one next to the classes on either side. */
static void add_no_class(case_list *list, bool full, int rows, int classes) {
    for (int i = 0; i < 2; i++) {
        operand x[] = {{.shape = SHAPE(rows, classes), .low = -5, .high = 5},
                       {.dtype = CLT_I32,
                        .shape = SHAPE(rows),
                        .low = 0,
                        .high = classes,
                        .special = {i ? -1 : classes},
                        .n_special = 1}};
        case_add(list, &cross_entropy_no_class, i ? "no-class-below" : "no-class-above", x, 2)->full = full;
        x[1].special[0] = i ? INT32_MIN : INT32_MAX;
        case_add(list, &cross_entropy_no_class, i ? "no-class-least" : "no-class-most", x, 2)->full = full;
    }
}

/* What is not finite: NaN goes through a maximum, and a masked logit has no probability. */
static void add_not_finite(case_list *list) {
    const operation *ops[] = {&softmax, &log_softmax};
    operand x = {.shape = SHAPE(7, 13), .special = {NAN, INFINITY, -INFINITY}, .n_special = 3, .constant = true};
    case_add(list, &max, "not-finite", &x, 1)->at.reduce = CLT_AXES(1);
    case_add(list, &operation_sum, "not-finite", &x, 1)->at.reduce = CLT_AXES(1);
    x.shape = (clt_shape)SHAPE(1031);
    case_add(list, &max, "not-finite", &x, 1)->full = true;
    x.shape = (clt_shape)SHAPE(4, 4111); /* rows that work-groups share, in chunks */
    case_add(list, &max, "not-finite", &x, 1)->at.reduce = CLT_AXES(1);
    case_add(list, &operation_sum, "not-finite", &x, 1)->at.reduce = CLT_AXES(1);
    static const double least[] = {-INFINITY};
    operand nothing = {.values = least, .n_values = 1, .constant = true};
    nothing.shape = (clt_shape)SHAPE(7, 13);
    case_add(list, &max, "all-masked", &nothing, 1)->at.reduce = CLT_AXES(1);
    nothing.shape = (clt_shape)SHAPE(37, 5);
    test_case *columns = case_add(list, &max, "all-masked", &nothing, 1);
    columns->at.reduce = CLT_AXES(0);
    columns->full = true;
    nothing.shape = (clt_shape)SHAPE(1031);
    case_add(list, &max, "all-masked", &nothing, 1)->full = true;
    operand masked = {.shape = SHAPE(3, 301), .special = {-INFINITY, -INFINITY}, .n_special = 2, .constant = true};
    for (int i = 0; i < 2; i++) {
        test_case *c = case_add(list, ops[i], "masked", &masked, 1);
        c->at.axis = 1;
        c->full = true;
    }
}

/* Rows whose largest is the first, the last, or at either side of where a chunk ends: no other is near it. */
static void add_largest(case_list *list, bool full, double *values, int n, const int place[4]) {
    operand x = {.shape = SHAPE(4, n), .values = values, .n_values = 4 * n};
    for (int row = 0; row < 4; row++) values[row * n + place[row]] = 1;
    test_case *c = case_add(list, &max, "at-ends", &x, 1);
    c->at.reduce = CLT_AXES(1);
    c->full = full;
}

static const operation l1 = OPERATION("l1_loss", "clt_l1_loss", l1_loss, l1_loss, .gradient = reference_l1_loss_gradient),
                       huber = OPERATION("huber_loss", "clt_huber_loss", huber_loss, huber_loss, .gradient = reference_huber_loss_gradient);

static void add_pairs(case_list *list, bool full, clt_shape shape) {
    operand x[] = {{.shape = shape, .low = -6, .high = 6}, {.shape = shape, .low = 0, .high = 1}};
    case_add(list, &bce, "", x, 2)->full = full;
    case_add(list, &mse, "", x, 2)->full = full;
    case_add(list, &l1, "", x, 2)->full = full;
    test_case *c = case_add(list, &huber, "", x, 2);
    c->at.s[0] = 1.5f;
    c->full = full;
}

/* Where exp overflows, of either sign. */
static void add_far_pairs(case_list *list) {
    static const double logit[] = {-500, -200, -100, -89, -20, -5, 0, 5, 20, 89, 100, 200, 500},
                        target[] = {0, 1, 0.25, 0.5, 1, 0, 1, 0, 0.75, 1, 0};
    operand x[] = {{.shape = SHAPE(143), .values = logit, .n_values = 13},
                   {.shape = SHAPE(143), .values = target, .n_values = 11}};
    case_add(list, &bce, "far", x, 2);
}

void cases_reduce(case_list *list) {
    add_reductions(list, false, "all", (clt_shape)SHAPE(1031), CLT_ALL_AXES);
    add_reductions(list, false, "rows", (clt_shape)SHAPE(7, 13), CLT_AXES(1));
    add_reductions(list, false, "columns", (clt_shape)SHAPE(37, 5), CLT_AXES(0));
    add_reductions(list, true, "one", (clt_shape)SHAPE(1, 1), CLT_AXES(0));
    add_reductions(list, true, "ends", (clt_shape)SHAPE(3, 5, 7), CLT_AXES(0, -1));
    add_reductions(list, true, "channels", (clt_shape)SHAPE(2, 19, 4, 5), CLT_AXES(0, 2, 3));
    add_reductions(list, true, "keep", (clt_shape)SHAPE(3, 17, 7),
                   (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true});
    add_reductions(list, true, "long-columns", (clt_shape)SHAPE(301, 67), CLT_AXES(0));
    add_reductions(list, true, "all", (clt_shape)SHAPE(65539), CLT_ALL_AXES);
    /* All four dimensions that what is kept and what is reduced may each have: by work-groups (from 64 elements on), and by items. */
    add_reductions(list, false, "even-axes", (clt_shape)SHAPE(3, 2, 2, 3, 4, 2, 3, 2), CLT_AXES(0, 2, 4, 6));
    add_reductions(list, true, "odd-axes", (clt_shape)SHAPE(3, 2, 2, 3, 4, 2, 3, 2), CLT_AXES(1, 3, 5, 7));
    add_subsets(list);
    add_reductions(list, false, "scalar", (clt_shape){0}, CLT_ALL_AXES);
    add_reductions(list, false, "all", (clt_shape)SHAPE(1), CLT_AXES(0));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(1, 100003), CLT_AXES(1));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(257, 4099), CLT_AXES(1));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(5003, 3), CLT_AXES(1));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(3, 64), CLT_AXES(1));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(3, 65), CLT_AXES(1));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(9, 1), CLT_AXES(1));
    add_reductions(list, false, "columns", (clt_shape)SHAPE(20011, 3), CLT_AXES(0));
    add_reductions(list, false, "columns", (clt_shape)SHAPE(70, 4099), CLT_AXES(0));
    add_reductions(list, false, "middle", (clt_shape)SHAPE(3, 257, 5), CLT_AXES(1));
    add_reductions(list, false, "ends", (clt_shape)SHAPE(17, 3, 129), CLT_AXES(0, 2));
    add_reductions(list, false, "ends", (clt_shape)SHAPE(17, 3, 29), CLT_AXES(0, 2));
    add_reductions(list, false, "ends", (clt_shape)SHAPE(17, 3, 132), CLT_AXES(0, 2));
    add_reductions(list, false, "rows", (clt_shape)SHAPE(2, 40004), CLT_AXES(1)); /* several chunks of elements by four */
    operand below = {.shape = SHAPE(5, 3, 20), .distinct = true, .low = -3, .high = -1}; /* what begins at 0 would stay there */
    case_add(list, &max, "below-0", &below, 1)->at.reduce = CLT_AXES(0, 2);
    add_reductions(list, false, "even-axes", (clt_shape)SHAPE(2, 3, 2, 1, 2, 3, 1, 2), CLT_AXES(0, 2, 4, 6));
    add_reductions(list, false, "odd-axes", (clt_shape)SHAPE(2, 3, 2, 1, 2, 3, 1, 2), CLT_AXES(1, 3, 5, 7));
    static const double equals[] = {1, 3, 3, 3, -2, -2, -2, -2, 0, 5, 4, 1};
    operand x = {.shape = SHAPE(3, 4), .values = equals, .n_values = 12};
    case_add(list, &max_ties, "equal", &x, 1)->at.reduce = CLT_AXES(1);
    static double few[4 * 13], many[4 * 4099];
    add_largest(list, false, few, 13, (int[]){0, 12, 3, 4});
    add_largest(list, true, many, 4099, (int[]){0, 4098, 4095, 4096}); /* 4096 elements of a chunk */
    add_softmax(list, false, "rows", (clt_shape)SHAPE(5, 7), -1);
    add_softmax(list, false, "middle", (clt_shape)SHAPE(2, 11, 3), 1);
    add_softmax(list, false, "rows", (clt_shape)SHAPE(131, 37), -1); /* 4096 elements of an item */
    for (int axis = 0; axis < 4; axis++)
        add_softmax(list, false, (const char *[]){"axis-0", "axis-1", "axis-2", "axis-3"}[axis], (clt_shape)SHAPE(3, 4, 5, 7), axis);
    add_softmax(list, false, "middle", (clt_shape)SHAPE(3, 4, 5), -2);
    add_softmax(list, false, "vector", (clt_shape)SHAPE(11), 0);
    add_softmax(list, false, "one", (clt_shape)SHAPE(1, 5), 0);
    add_softmax(list, false, "eight", (clt_shape)SHAPE(2, 1, 3, 1, 5, 2, 1, 2), 4);
    add_softmax(list, false, "columns", (clt_shape)SHAPE(517, 3), 0);
    add_spread(list);
    add_softmax(list, true, "columns", (clt_shape)SHAPE(13, 5), 0);
    add_softmax(list, true, "one", (clt_shape)SHAPE(3, 1), 1);
    add_softmax(list, true, "long", (clt_shape)SHAPE(3, 1031), 1);
    add_softmax(list, false, "fours", (clt_shape)SHAPE(6, 260), 1); /* GPU-class devices read four at once, and keep a row of up to 4096 */
    add_softmax(list, true, "fours", (clt_shape)SHAPE(5, 1028), 1);
    add_softmax(list, true, "longest", (clt_shape)SHAPE(2, 4096), 1);
    add_softmax(list, true, "many", (clt_shape)SHAPE(517, 3), 1);
    /* More rounds than a work-item may make (see cl/prelude.cl); 524288 elements of a group. */
    add_softmax(list, true, "far", (clt_shape)SHAPE(66001, 2), 0);
    add_softmax(list, true, "chunks", (clt_shape)SHAPE(530001, 2), 0);
    add_smoothing(list, "smoothed", 2, 0.1f);
    add_smoothing(list, "weighted", 3, 0);
    add_smoothing(list, "smoothed-weighted", 3, 0.3f);
    add_places(list);
    add_ignored(list, "", 0, 2, -100);
    add_ignored(list, "class", 0, 2, 3);
    add_ignored(list, "smoothed", 0.1f, 2, -1);
    add_ignored(list, "smoothed-weighted", 0.3f, 3, INT32_MIN);
    add_cross_entropy(list, false, 33, 10);
    add_cross_entropy(list, false, 131, 37);
    add_cross_entropy(list, false, 4, 1);
    add_cross_entropy(list, false, 1, 7);
    add_cross_entropy(list, false, 523, 5);
    add_cross_entropy(list, false, 6, 260);
    add_cross_entropy(list, true, 1, 1);
    add_cross_entropy(list, true, 3, 1031);
    add_cross_entropy(list, true, 2, 4096);
    add_cross_entropy(list, true, 517, 2);
    add_cross_entropy(list, true, 2, 1450001); /* more rounds than a work-item may make */
    add_offset(list, false, "large", 5, 7, 95);
    add_offset(list, false, "small", 3, 301, -115);
    add_offset(list, true, "small", 5, 7, -115);
    add_offset(list, true, "large", 3, 301, 95);
    add_peaks(list, false, 7, 13);
    add_peaks(list, true, 3, 1031);
    add_peaks(list, true, 131, 37);
    add_peaks(list, true, 2, 530001);
    add_no_class(list, false, 131, 37); /* the least that the native kernels take */
    add_no_class(list, true, 3, 301);
    add_not_finite(list);
    add_pairs(list, false, (clt_shape)SHAPE(1031));
    add_far_pairs(list);
    add_pairs(list, true, (clt_shape)SHAPE(1));
    add_pairs(list, false, (clt_shape)SHAPE(1, 2, 1, 3, 1, 2, 1, 2));
    add_pairs(list, true, (clt_shape)SHAPE(5, 3, 7));
}
