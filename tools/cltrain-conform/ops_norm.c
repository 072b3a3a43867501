/* Normalization. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

static double eps_of(const attributes *at) {
    return at->norm.eps > 0 ? (double)at->norm.eps : (double)1e-5f;
}

typedef struct moments {
    double mean, variance; /* of the n values, not corrected */
    int64_t n;
} moments;

/* x [N, C, rest]. */
static moments moments_of_channel(const array *x, int64_t c) {
    int64_t channels = x->shape.dims[1], samples = x->shape.dims[0], rest = array_count(x) / channels / samples;
    moments m = {0, 0, samples * rest};
    for (int pass = 0; pass < 2; pass++) {
        double sum = 0;
        for (int64_t s = 0; s < samples; s++)
            for (int64_t i = 0; i < rest; i++) {
                double v = x->values[(s * channels + c) * rest + i] - m.mean;
                sum += pass ? v * v : v;
            }
        if (pass) m.variance = sum / (double)m.n;
        else m.mean = sum / (double)m.n;
    }
    return m;
}

/* x, weight, bias, running mean, running variance. */
double reference_batch_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n;
    int64_t channels = x->shape.dims[1], rest = array_count(x) / channels / x->shape.dims[0];
    array_resize(y, x->shape);
    for (int64_t c = 0; c < channels; c++) {
        moments m = evaluation ? (moments){x[3].values[c], x[4].values[c], 0} : moments_of_channel(x, c);
        double scale = x[1].values[c] / sqrt(m.variance + eps_of(at));
        for (int64_t s = 0; s < x->shape.dims[0]; s++)
            for (int64_t i = 0; i < rest; i++) {
                int64_t place = (s * channels + c) * rest + i;
                y->values[place] = (x->values[place] - m.mean) * scale + x[2].values[c];
            }
    }
    return 6.0 * (double)array_count(x);
}

void reference_batch_norm_buffers(const array *x, int i, array *after, const attributes *at) {
    double momentum = at->norm.momentum > 0 ? (double)at->norm.momentum : (double)0.1f;
    array_resize(after, x[i].shape);
    for (int64_t c = 0; c < array_count(after); c++) {
        moments m = moments_of_channel(x, c);
        after->values[c] = x[i].values[c];
        if (!isfinite(m.mean) || !isfinite(m.variance)) continue;
        double unbiased = m.variance * (double)m.n / (double)(m.n > 1 ? m.n - 1 : 1);
        after->values[c] = (1 - momentum) * x[i].values[c] + momentum * (i == 3 ? m.mean : unbiased);
    }
}

/* The same of the convolution of x by x[1], whose other operands follow. */
static double norm_operands(const array *x, array *image, array operands[5], const attributes *at) {
    double work = reference_conv2d(x, 2, image, at, false);
    operands[0] = *image;
    for (int i = 1; i < 5; i++) operands[i] = x[i + 1];
    return work;
}

static double reference_batch_norm_conv(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    array image = {.values = NULL}, operands[5];
    double work = norm_operands(x, &image, operands, at);
    work += reference_batch_norm(operands, n - 1, y, at, evaluation);
    array_free(&image);
    return work;
}

static void reference_batch_norm_conv_buffers(const array *x, int i, array *after, const attributes *at) {
    array image = {.values = NULL}, operands[5];
    norm_operands(x, &image, operands, at);
    reference_batch_norm_buffers(operands, i - 1, after, at);
    array_free(&image);
}

/* x, weight, bias, over the dimensions of the weight. */
static double reference_layer_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t width = array_count(&x[1]), rows = array_count(x) / width;
    array_resize(y, x->shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *from = x->values + r * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += from[i] / (double)width;
        for (int64_t i = 0; i < width; i++) variance += (from[i] - mean) * (from[i] - mean) / (double)width;
        double scale = 1 / sqrt(variance + eps_of(at));
        for (int64_t i = 0; i < width; i++)
            y->values[r * width + i] = (from[i] - mean) * scale * x[1].values[i] + x[2].values[i];
    }
    return 6.0 * (double)array_count(x);
}

/* x, weight, over the dimensions of the weight. */
static double reference_rms_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t width = array_count(&x[1]), rows = array_count(x) / width;
    array_resize(y, x->shape);
    for (int64_t r = 0; r < rows; r++) {
        const double *from = x->values + r * width;
        double square = 0;
        for (int64_t i = 0; i < width; i++) square += from[i] * from[i] / (double)width;
        for (int64_t i = 0; i < width; i++) y->values[r * width + i] = from[i] / sqrt(square + eps_of(at)) * x[1].values[i];
    }
    return 4.0 * (double)array_count(x);
}

/* x, weight, bias [C]; axis: the groups. */
static double reference_group_norm(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t channels = x->shape.dims[1], rest = array_count(x) / x->shape.dims[0] / channels, length = channels / at->axis * rest;
    array_resize(y, x->shape);
    for (int64_t g = 0; g < x->shape.dims[0] * at->axis; g++) {
        const double *from = x->values + g * length;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < length; i++) mean += from[i] / (double)length;
        for (int64_t i = 0; i < length; i++) variance += (from[i] - mean) * (from[i] - mean) / (double)length;
        for (int64_t i = 0; i < length; i++) {
            int64_t channel = g % at->axis * (channels / at->axis) + i / rest;
            y->values[g * length + i] = (from[i] - mean) / sqrt(variance + eps_of(at)) * x[1].values[channel] + x[2].values[channel];
        }
    }
    return 6.0 * (double)array_count(x);
}

/* ---- cases ---- */

BUILD(batch_norm, clt_batch_norm_with(x[0], "w", at->norm))
BUILD(batch_norm_conv, clt_neg(clt_neg(clt_batch_norm_with(clt_conv2d_op(x[0], x[1], NULL, at->conv), "w", at->norm))))
BUILD(group_norm, clt_group_norm_with(x[0], "w", at->axis, at->norm))
BUILD(rms_norm, clt_rms_norm_with(x[0], "w", at->axis, at->norm))
BUILD(layer_norm, clt_layer_norm_with(x[0], "w", at->axis, at->norm))

/* Gradients of norms are what is left when terms about 1 cancel: all of them, with two values to a mean. */
const operation operation_batch_norm = OPERATION("batch_norm", "clt_batch_norm_with clt_batch_norm_op", batch_norm,
    batch_norm, .buffer_after = reference_batch_norm_buffers, .tolerance = 1e-4, .floor = 1e-2);
/* NaN or infinity in a channel: its running statistics stay as they are. */
static const operation batch_norm_nan = OPERATION("batch_norm", "clt_batch_norm_with", batch_norm,
    batch_norm, .buffer_after = reference_batch_norm_buffers, .no_gradient = true, .tolerance = 1e-4);
/* A mean of 1000 is known to some 1e-4 when it is summed in single precision, and so is what lies about it; but the mean of
 * squares to 0.1. */
static const operation batch_norm_mean = OPERATION("batch_norm", "clt_batch_norm_with", batch_norm,
    batch_norm, .buffer_after = reference_batch_norm_buffers, .tolerance = 1e-3, .floor = 1e-1);
/* Behind a convolution images lie channels-last. */
const operation operation_batch_norm_conv = OPERATION("batch_norm", "clt_batch_norm_with clt_conv2d_op",
    batch_norm_conv, batch_norm_conv, .buffer_after = reference_batch_norm_conv_buffers, .tolerance = 1e-4, .floor = 1e-2);
const operation operation_layer_norm = OPERATION("layer_norm", "clt_layer_norm_with clt_layer_norm_op", layer_norm,
    layer_norm, .tolerance = 1e-4, .floor = 1e-2);
static const operation layer_norm_mean = OPERATION("layer_norm", "clt_layer_norm_with", layer_norm,
    layer_norm, .tolerance = 1e-3, .floor = 1e-1);

static const operation rms_norm = OPERATION("rms_norm", "clt_rms_norm_with clt_rms_norm_op", rms_norm, rms_norm, .tolerance = 1e-4, .floor = 1e-2);

static void add_rms_norm(case_list *list, const char *variant, clt_shape shape, int dims, float eps) {
    operand x[] = {{.shape = shape, .low = -1, .high = 3}, {.variable = "w.weight"}};
    x[1].shape = shape_of(dims, shape.dims + shape.rank - dims);
    test_case *c = case_add(list, &rms_norm, variant, x, 2);
    c->at.axis = dims;
    c->at.norm.eps = eps;
}

static const operation group_norm = OPERATION("group_norm", "clt_group_norm_with clt_group_norm_op", group_norm, group_norm, .tolerance = 1e-4, .floor = 1e-2);

static void add_group_norm(case_list *list, const char *variant, clt_shape shape, int groups, float eps) {
    operand x[] = {{.shape = shape, .low = -1, .high = 3}, {.variable = "w.weight"}, {.variable = "w.bias"}};
    x[1].shape = x[2].shape = (clt_shape)SHAPE(shape.dims[1]);
    test_case *c = case_add(list, &group_norm, variant, x, 3);
    c->at.axis = groups;
    c->at.norm.eps = eps;
}

static test_case *add_norm(case_list *list, bool full, const char *variant, bool evaluation, clt_shape shape,
                           clt_norm_options o) {
    int64_t c = shape.dims[1];
    operand x[] = {
        {.shape = shape, .low = -1, .high = 3},
        {.variable = "w.weight", .shape = SHAPE(c)},
        {.variable = "w.bias", .shape = SHAPE(c)},
        {.variable = "w.running_mean", .shape = SHAPE(c), .constant = true},
        {.variable = "w.running_var", .shape = SHAPE(c), .low = 0.5, .high = 2, .constant = true}};
    test_case *made = case_add(list, &operation_batch_norm, variant, x, 5);
    made->at.norm = o;
    made->evaluation = evaluation;
    made->full = full;
    made->large = clt_shape_elements(&shape) > 20000;
    return made;
}

static test_case *add_layer_norm(case_list *list, bool full, const char *variant, clt_shape shape, int dims) {
    operand x[] = {{.shape = shape, .low = -1, .high = 3}, {.variable = "w.weight"}, {.variable = "w.bias"}};
    x[1].shape = x[2].shape = shape_of(dims, shape.dims + shape.rank - dims);
    test_case *c = case_add(list, &operation_layer_norm, variant, x, 3);
    c->at.axis = dims;
    c->full = full;
    c->large = clt_shape_elements(&shape) > 20000;
    return c;
}

static void add_hard_norms(case_list *list) {
    clt_shape shape = SHAPE(4, 3, 5, 7);
    test_case *c = add_norm(list, false, "mean-1000", false, shape, (clt_norm_options){0});
    c->operation = &batch_norm_mean;
    c->x[0].low = 999, c->x[0].high = 1001;
    c = add_norm(list, true, "mean-1000", false, (clt_shape)SHAPE(5003, 3), (clt_norm_options){0}); /* long sums of an item */
    c->operation = &batch_norm_mean;
    c->x[0].low = 999, c->x[0].high = 1001;
    for (int i = 0; i < 2; i++) {
        c = add_layer_norm(list, i, "mean-1000", i ? (clt_shape)SHAPE(3, 16387) : (clt_shape)SHAPE(5, 67), 1);
        c->operation = &layer_norm_mean;
        c->x[0].low = 999, c->x[0].high = 1001;
    }
    /* Variances about eps, and of what is the same everywhere. */
    c = add_norm(list, false, "evaluation-small-variance", true, shape, (clt_norm_options){0});
    c->x[4].low = 1e-6, c->x[4].high = 3e-5;
    c = add_norm(list, false, "small-variance", false, shape, (clt_norm_options){0});
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_layer_norm(list, false, "small-variance", (clt_shape)SHAPE(131, 37), 1);
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_norm(list, true, "small-variance", false, (clt_shape)SHAPE(37, 5), (clt_norm_options){0});
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_layer_norm(list, true, "small-variance", (clt_shape)SHAPE(4, 7), 1);
    c->x[0].low = 0, c->x[0].high = 0.01;
    c = add_norm(list, true, "constant", false, shape, (clt_norm_options){0});
    c->x[0].low = 1, c->x[0].high = 2, c->x[0].whole = true;
    c = add_layer_norm(list, true, "constant", (clt_shape)SHAPE(131, 37), 1);
    c->x[0].low = 1, c->x[0].high = 2, c->x[0].whole = true;
    for (int i = 0; i < 2; i++) {
        c = add_norm(list, false, i ? "infinite" : "not-finite", false, shape, (clt_norm_options){0});
        c->operation = &batch_norm_nan;
        c->x[0].special[0] = i ? INFINITY : NAN, c->x[0].n_special = 1;
    }
}

void cases_norm(case_list *list) {
    add_group_norm(list, "groups-3", (clt_shape)SHAPE(2, 6, 3, 5), 3, 0);
    add_group_norm(list, "groups-1", (clt_shape)SHAPE(3, 4, 7), 1, 0.5f);
    add_group_norm(list, "each", (clt_shape)SHAPE(2, 5, 4, 3), 5, 0);
    add_group_norm(list, "groups-2", (clt_shape)SHAPE(3, 8), 2, 0);
    add_rms_norm(list, "", (clt_shape)SHAPE(4, 7), 1, 0);
    add_rms_norm(list, "", (clt_shape)SHAPE(2, 3, 131), 1, 0);
    add_rms_norm(list, "dims-2-eps", (clt_shape)SHAPE(3, 4, 5), 2, 0.5f);
    add_rms_norm(list, "", (clt_shape)SHAPE(11), 1, 0);
    add_norm(list, false, "", false, (clt_shape)SHAPE(4, 3, 5, 7), (clt_norm_options){0});
    add_norm(list, false, "evaluation", true, (clt_shape)SHAPE(4, 3, 5, 7), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(37, 5), (clt_norm_options){0});
    add_norm(list, true, "eps-momentum", false, (clt_shape)SHAPE(3, 1, 4, 1),
             (clt_norm_options){.eps = 1e-3f, .momentum = 0.3f});
    add_norm(list, false, "eps", false, (clt_shape)SHAPE(2, 3), (clt_norm_options){.eps = 0.5f, .momentum = 0.25f}); /* of two values */
    add_norm(list, false, "", false, (clt_shape)SHAPE(2, 2, 3, 1, 4), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(1, 5, 3, 3), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(2, 131, 2, 2), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(9, 2, 29, 31), (clt_norm_options){0});
    add_norm(list, false, "", false, (clt_shape)SHAPE(1100, 3), (clt_norm_options){0});
    add_norm(list, false, "evaluation", true, (clt_shape)SHAPE(2, 4), (clt_norm_options){0});
    add_norm(list, false, "evaluation", true, (clt_shape)SHAPE(1, 1, 1, 1), (clt_norm_options){0});
    add_norm(list, true, "", false, (clt_shape)SHAPE(8, 33, 9, 7), (clt_norm_options){0});
    add_norm(list, true, "", false, (clt_shape)SHAPE(2, 3, 257), (clt_norm_options){0});
    add_norm(list, true, "evaluation", true, (clt_shape)SHAPE(1, 19, 1, 1), (clt_norm_options){0});
    add_norm(list, true, "longest", false, (clt_shape)SHAPE(1, 2, 2053, 2051), (clt_norm_options){0}); /* as for pools */
    add_norm(list, true, "parts", false, (clt_shape)SHAPE(3, 3, 257, 307), (clt_norm_options){0});     /* 78899 values of an image */
    add_layer_norm(list, false, "", (clt_shape)SHAPE(4, 7), 1);
    add_layer_norm(list, false, "dims-2", (clt_shape)SHAPE(2, 3, 4, 5), 2);
    add_layer_norm(list, false, "", (clt_shape)SHAPE(131, 37), 1); /* 4096 elements of an item */
    add_layer_norm(list, true, "", (clt_shape)SHAPE(451, 37), 1);  /* 442 rows of a chunk */
    add_layer_norm(list, false, "fours", (clt_shape)SHAPE(6, 260), 1); /* read four at once by GPU-class devices */
    add_layer_norm(list, true, "", (clt_shape)SHAPE(3, 1031), 1);
    add_layer_norm(list, true, "", (clt_shape)SHAPE(2, 4096), 1);
    add_layer_norm(list, true, "", (clt_shape)SHAPE(131, 3), 1);
    add_layer_norm(list, true, "", (clt_shape)SHAPE(1, 2), 1);
    add_layer_norm(list, false, "", (clt_shape)SHAPE(2, 3, 9), 1);
    add_layer_norm(list, false, "", (clt_shape)SHAPE(11), 1);
    add_layer_norm(list, false, "", (clt_shape)SHAPE(3, 1), 1)->operation = &layer_norm_mean; /* no variance: differences times 316 */
    add_layer_norm(list, false, "dims-3", (clt_shape)SHAPE(3, 2, 3, 5), 3);
    add_layer_norm(list, false, "dims-3", (clt_shape)SHAPE(2, 3, 5), 3);
    add_layer_norm(list, false, "eps", (clt_shape)SHAPE(3, 6), 1)->at.norm.eps = 0.5f;
    add_layer_norm(list, true, "longest", (clt_shape)SHAPE(1, 2200001), 1); /* more rounds than a work-item may make */
    add_layer_norm(list, true, "parts", (clt_shape)SHAPE(3, 530003), 1);    /* and several rows of several parts */
    add_hard_norms(list);
}
