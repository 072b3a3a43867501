/* Reductions, softmax, norms, dropout. */
#include <string.h>

#include "runtime/exchange/onnx/onnx.h"
#include "runtime/ops/ops.h"

/* ---- reductions ---- */

static clt_tensor *reduced(const char *op, clt_tensor *x, clt_reduce_options o) {
    if (!strcmp(op, "ReduceSum")) return clt_sum(x, o);
    if (!strcmp(op, "ReduceMean")) return clt_mean(x, o);
    if (!strcmp(op, "ReduceMax")) return clt_max(x, o);
    if (!strcmp(op, "ReduceMin")) return clt_neg(clt_max(clt_neg(x), o));
    if (!strcmp(op, "ReduceL1")) return clt_sum(clt_abs(x), o);
    if (!strcmp(op, "ReduceL2")) return clt_sqrt(clt_sum(clt_mul(x, x), o));
    if (!strcmp(op, "ReduceSumSquare")) return clt_sum(clt_mul(x, x), o);
    if (!strcmp(op, "ReduceLogSum")) return clt_log(clt_sum(x, o));
    /* ReduceLogSumExp: less the largest, so that nothing overflows. */
    clt_reduce_options kept = o;
    kept.keep_dims = true;
    clt_tensor *zero = clt_fill(x->graph, (clt_shape){0}, 0), *largest = clt_fill(x->graph, (clt_shape){0}, 3.402823466e38f);
    clt_tensor *most = clt_max(x, kept), *finite = clt_where(clt_greater(clt_abs(most), largest), zero, most);
    clt_tensor *sum = clt_log(clt_sum(clt_exp(clt_sub(x, finite)), kept)), *y = clt_add(sum, finite);
    return o.keep_dims || !clt_tensor_valid(y) ? y : clt_sum(y, o); /* over one place each */
}

/* One place after the other: there is no such op. */
static clt_status map_product(clt_onnx_call *c, clt_tensor **out) {
    enum { MOST_PLACES = 64 };
    clt_tensor *x;
    int axes[CLT_MAX_RANK], n;
    bool gone[CLT_MAX_RANK] = {0}, keeps = clt_onnx_int(c, "keepdims", 1);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_axes(c, "axes", 1, x->shape.rank, axes, &n));
    bool none = n <= 0 && clt_onnx_int(c, "noop_with_empty_axes", 0);
    for (int d = 0; d < x->shape.rank; d++) gone[d] = n <= 0 && !none;
    for (int i = 0; i < n; i++) gone[axes[i]] = true;
    for (int d = x->shape.rank; d-- > 0;) {
        if (!gone[d]) continue;
        int64_t places = x->shape.dims[d];
        if (places > MOST_PLACES || clt_tensor_extent(x).dims[d] != places) return clt_fail(CLT_E_UNSUPPORTED, "over %lld places, or over the batch", (long long)places);
        clt_tensor *product = clt_slice(x, d, 0, 1, 1);
        for (int64_t i = 1; i < places; i++) product = clt_mul(product, clt_slice(x, d, i, i + 1, 1));
        x = keeps ? product : clt_squeeze(product, d);
        if (!clt_tensor_valid(x)) return CLT_OK;
    }
    out[0] = x;
    return CLT_OK;
}

/* The last of the sums up to each place, which are exact. */
static clt_tensor *sum_of_integers(clt_tensor *x, const clt_reduce_options *o) {
    bool gone[CLT_MAX_RANK] = {0};
    for (int d = 0; d < x->shape.rank; d++) gone[d] = o->n_axes == 0;
    for (int i = 0; i < o->n_axes; i++) gone[o->axes[i]] = true;
    for (int d = x->shape.rank; d-- > 0 && clt_tensor_valid(x);) {
        if (!gone[d]) continue;
        x = clt_slice(clt_cumsum(x, d), d, -1, INT64_MAX, 1);
        if (!o->keep_dims) x = clt_squeeze(x, d);
    }
    return x;
}

static clt_status map_reduce(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int axes[CLT_MAX_RANK], n;
    clt_reduce_options o = {.keep_dims = clt_onnx_int(c, "keepdims", 1)};
    CLT_TRY(clt_onnx_any(c, 0, &x));
    bool integers = x->dtype == CLT_I32 && !strcmp(c->node->op, "ReduceSum");
    if (integers) c->out_type = clt_onnx_type_of(c, 0);
    else CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_axes(c, "axes", 1, x->shape.rank, axes, &n));
    bool none = n <= 0 && x->shape.rank > 0 && clt_onnx_int(c, "noop_with_empty_axes", 0);
    for (int i = 0; i < n; i++) o.axes[o.n_axes++] = axes[i];
    if (none && strcmp(c->node->op, "ReduceSum") && strcmp(c->node->op, "ReduceMean") && strcmp(c->node->op, "ReduceMax") && strcmp(c->node->op, "ReduceMin"))
        return clt_fail(CLT_E_UNSUPPORTED, "no axes, which reduces nothing");
    if (x->shape.rank == 0) x = clt_unsqueeze(x, 0), o = (clt_reduce_options){.n_axes = 0}; /* of one element, too */
    out[0] = none ? x : integers ? sum_of_integers(x, &o) : reduced(c->node->op, x, o);
    return CLT_OK;
}

/* With the places along an axis in the opposite order. */
static clt_status turn_around(clt_onnx_call *c, clt_tensor **x, int axis) {
    int64_t n = (*x)->shape.dims[axis];
    int32_t *places;
    clt_tensor *order;
    if ((*x)->dtype != CLT_F32 || clt_tensor_extent(*x).dims[axis] != n || n > INT32_MAX) return clt_fail(CLT_E_UNSUPPORTED, "select_last_index of integers, or along a dimension that is not one number");
    CLT_TRY(clt_arena_take(&c->onnx->build, (size_t)n, sizeof *places, &places));
    for (int64_t i = 0; i < n; i++) places[i] = (int32_t)(n - 1 - i);
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, CLT_SHAPE(n), places}, &order));
    *x = clt_index_select(*x, axis, order);
    return clt_graph_status(c->graph);
}

static clt_status from_last(clt_onnx_call *c, clt_tensor *x, int32_t last, clt_tensor **y) {
    clt_tensor *end;
    CLT_TRY(clt_onnx_constant_array(c, &(clt_array){CLT_I32, {0}, &last}, &end));
    *y = clt_sub(end, x);
    return clt_graph_status(c->graph);
}

static clt_status map_argmax(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *place;
    int axis;
    bool last = clt_onnx_int(c, "select_last_index", 0);
    CLT_TRY(clt_onnx_any(c, 0, &x));
    if (x->dtype != CLT_I32) CLT_TRY(clt_onnx_number(c, 0, &x));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", 0), x->shape.rank, &axis));
    bool least = !strcmp(c->node->op, "ArgMin");
    if (least && x->dtype == CLT_I32) CLT_TRY(from_last(c, x, -1, &x)); /* -1 - x is an i32, too */
    else if (least) x = clt_neg(x);
    if (last) CLT_TRY(turn_around(c, &x, axis));
    place = clt_argmax(x, axis);
    if (last) CLT_TRY(from_last(c, place, (int32_t)x->shape.dims[axis] - 1, &place));
    out[0] = clt_onnx_int(c, "keepdims", 1) ? clt_unsqueeze(place, axis) : place;
    return CLT_OK;
}

/* Without the own place: moved by one, and 0 comes in. Integers are subtracted, and so is the only place. */
static clt_tensor *cumsum_of(clt_tensor *x, clt_cumsum_attributes at, bool exclusive) {
    int64_t n = x->shape.dims[at.axis], before[CLT_MAX_RANK] = {0}, after[CLT_MAX_RANK] = {0};
    bool moves = exclusive && n > 1 && x->dtype == CLT_F32 && clt_tensor_extent(x).dims[at.axis] == n;
    (at.reverse ? after : before)[at.axis] = 1;
    clt_tensor *own = moves ? clt_pad(clt_slice(x, at.axis, at.reverse, at.reverse ? n : n - 1, 1), before, after, 0) : x;
    clt_tensor *y = clt_node(NULL, &clt_op_cumsum, &at, &own, 1);
    return exclusive && !moves ? clt_sub(y, x) : y;
}

static clt_status map_cumsum(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    const clt_literal *at;
    int axis;
    CLT_TRY(clt_onnx_any(c, 0, &x));
    c->out_type = clt_onnx_type_of(c, 0);
    if (x->dtype != CLT_I32) CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_known(c, 1, &at));
    if (!at || at->elements != 1 || at->type == CLT_ONNX_FLOAT) return clt_fail(CLT_E_FORMAT, "its axis is not one integer");
    CLT_TRY(clt_fold_axis(at->integers[0], x->shape.rank, &axis));
    out[0] = cumsum_of(x, (clt_cumsum_attributes){.axis = axis, .reverse = clt_onnx_int(c, "reverse", 0)}, clt_onnx_int(c, "exclusive", 0));
    return CLT_OK;
}

/* ---- softmax ---- */

/* Before opset 13 over all dimensions from the axis on, as one. */
static clt_status map_softmax(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int axis;
    bool log = !strcmp(c->node->op, "LogSoftmax"), whole = c->opset < 13;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", whole ? 1 : -1), x->shape.rank, &axis));
    clt_shape extent = clt_tensor_extent(x), flat = extent;
    int64_t rest = 1;
    for (int d = axis; d < extent.rank; d++) {
        if (extent.dims[d] < 0 && whole && axis < extent.rank - 1) return clt_fail(CLT_E_UNSUPPORTED, "it is over dimensions that follow the batch");
        rest *= extent.dims[d] < 0 ? 1 : extent.dims[d];
    }
    bool turn = whole && axis < extent.rank - 1;
    flat.rank = axis + 1;
    flat.dims[axis] = rest;
    if (turn) x = clt_reshape_to(x, flat);
    out[0] = log ? clt_log_softmax(x, axis) : clt_softmax(x, axis);
    if (turn) out[0] = clt_reshape_to(out[0], extent);
    return CLT_OK;
}

/* ---- norms ---- */

/* An epsilon of 0 is 0, and not our default. */
static float eps_of(const clt_onnx_call *c) {
    float eps = clt_onnx_float_attribute(c, "epsilon", 1e-5f);
    return eps == 0 ? CLT_ZERO : eps;
}

/* Of [C], to be stretched over [N, C, ...]. */
static clt_tensor *over_channels(clt_tensor *x, int rank) {
    clt_shape shape = {.rank = rank - 1};
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = d == 0 ? x->shape.dims[0] : 1;
    return clt_reshape_to(x, shape);
}

/* Whether it is that of training: told by training_mode, before opset 14 by its outputs, and by the newer exporter of PyTorch by the node's name alone. */
static bool batch_norm_trains(const clt_onnx_call *c) {
    if (clt_onnx_int(c, "training_mode", 0)) return true;
    if (c->opset < 14 && c->node->n_outputs > 1) return true;
    return !strcmp(c->onnx->file.model.producer, "pytorch") && strstr(c->node->name, "_native_batch_norm_legit_functional");
}

/* In evaluation with the running statistics that the file has, also where it is trained. */
static clt_status map_batch_norm(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *of[5];
    float momentum = 1 - clt_onnx_float_attribute(c, "momentum", 0.9f), eps = eps_of(c);
    bool trains = batch_norm_trains(c), buffers;
    if (c->opset < 7 && !clt_onnx_int(c, "is_test", 0)) return clt_fail(CLT_E_UNSUPPORTED, "is_test 0, of before opset 7");
    if (!clt_onnx_int(c, "spatial", 1)) return clt_fail(CLT_E_UNSUPPORTED, "spatial 0");
    for (size_t i = 0; i < 3; i++) CLT_TRY(clt_onnx_float(c, i, &of[i]));
    CLT_TRY(clt_onnx_statistics(c, 3, &of[3], &buffers));
    bool both;
    CLT_TRY(clt_onnx_statistics(c, 4, &of[4], &both));
    buffers &= both;
    for (size_t i = 1; i < c->node->n_outputs; i++)
        if (clt_onnx_is_wanted(c, i)) return clt_fail(CLT_E_UNSUPPORTED, "its statistics are an output");
    if (of[0]->shape.rank < 2) return clt_fail(CLT_E_SHAPE, "%d dimensions", of[0]->shape.rank);
    bool own = !strcmp(c->onnx->file.model.producer, CLT_ONNX_PRODUCER); /* is written as in evaluation, and goes on as it was trained */
    if (buffers && (trains || own)) {
        out[0] = clt_batch_norm_op(of[0], of[1], of[2], of[3], of[4], (clt_norm_options){.eps = eps, .momentum = momentum == 0 ? CLT_ZERO : momentum});
        return CLT_OK;
    }
    if (trains) return clt_fail(CLT_E_UNSUPPORTED, "running statistics that are no weights of the file");
    for (int i = 1; i < 5; i++) {
        if (of[i]->shape.rank != 1) return clt_fail(CLT_E_SHAPE, "input %d has %d dimensions", i, of[i]->shape.rank);
        of[i] = over_channels(of[i], of[0]->shape.rank);
    }
    clt_tensor *normal = clt_div(clt_sub(of[0], of[3]), clt_sqrt(clt_add_scalar(of[4], eps)));
    out[0] = clt_add(clt_mul(normal, of[1]), of[2]);
    return CLT_OK;
}

/* Weight and bias of the last dimensions, where the op has them so; else NULL, and they are stretched. */
static bool fits_last(const clt_tensor *x, const clt_tensor *weight, int dims) {
    if (weight->shape.rank != dims) return false;
    for (int d = 0; d < dims; d++)
        if (weight->shape.dims[d] != x->shape.dims[x->shape.rank - dims + d]) return false;
    return true;
}

static clt_tensor *constant_like(clt_tensor *x, int dims, float value) {
    clt_shape shape = {.rank = dims};
    for (int d = 0; d < dims; d++) shape.dims[d] = x->shape.dims[x->shape.rank - dims + d];
    return clt_fill(x->graph, shape, value);
}

static clt_status map_layer_norm(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *scale, *bias = NULL;
    int axis;
    bool rms = !strcmp(c->node->op, "RMSNormalization");
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &scale));
    if (!rms && clt_onnx_has(c, 2)) CLT_TRY(clt_onnx_float(c, 2, &bias));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", -1), x->shape.rank, &axis));
    int dims = x->shape.rank - axis;
    clt_shape extent = clt_tensor_extent(x);
    for (int d = axis; d < extent.rank; d++)
        if (extent.dims[d] < 0) return clt_fail(CLT_E_UNSUPPORTED, "it is over dimensions that follow the batch");
    bool fits = fits_last(x, scale, dims) && (!bias || fits_last(x, bias, dims));
    clt_tensor *weight = fits ? scale : constant_like(x, dims, 1), *shift = fits && bias ? bias : constant_like(x, dims, 0);
    clt_norm_options o = {.eps = eps_of(c)};
    out[0] = rms ? clt_rms_norm_op(x, weight, o) : clt_layer_norm_op(x, weight, shift, o);
    if (!fits) out[0] = clt_mul(out[0], scale);
    if (!fits && bias) out[0] = clt_add(out[0], bias);
    clt_reduce_options over = {.keep_dims = true};
    for (int d = axis; d < x->shape.rank; d++) over.axes[over.n_axes++] = d;
    clt_tensor *mean = clt_onnx_is_wanted(c, 1) || clt_onnx_is_wanted(c, 2) ? clt_mean(x, over) : NULL, *apart = mean ? clt_sub(x, mean) : NULL;
    if (clt_onnx_is_wanted(c, 1)) out[1] = mean;
    if (clt_onnx_is_wanted(c, 2)) out[2] = clt_pow_scalar(clt_add_scalar(clt_mean(clt_mul(apart, apart), over), o.eps), -0.5f);
    return CLT_OK;
}

/* Weights of a group each, before opset 21, or of a channel each. */
static clt_status map_group_norm(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x, *scale, *bias;
    bool instance = !strcmp(c->node->op, "InstanceNormalization");
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_onnx_float(c, 1, &scale));
    CLT_TRY(clt_onnx_float(c, 2, &bias));
    if (x->shape.rank < 3) return clt_fail(CLT_E_SHAPE, "%d dimensions", x->shape.rank);
    int64_t channels = x->shape.dims[1], groups = instance ? channels : clt_onnx_int(c, "num_groups", 0);
    if (groups < 1 || groups > INT32_MAX || channels % groups) return clt_fail(CLT_E_SHAPE, "%lld groups of %lld channels", (long long)groups, (long long)channels);
    if (!instance && c->opset < 21 && groups != channels) {
        clt_tensor **of[] = {&scale, &bias};
        for (int i = 0; i < 2; i++) {
            if (clt_tensor_elements(*of[i]) != groups) return clt_fail(CLT_E_SHAPE, "scale and bias must have a value a group");
            *of[i] = clt_reshape(clt_expand(clt_reshape(*of[i], CLT_SHAPE(groups, 1)), CLT_SHAPE(groups, channels / groups)), CLT_SHAPE(channels));
        }
    }
    out[0] = clt_group_norm_op(x, scale, bias, (int)groups, (clt_norm_options){.eps = eps_of(c)});
    return CLT_OK;
}

/* Divided by the sum of absolute values, or by the root of the sum of squares. */
static clt_status map_lp(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int axis;
    int64_t p = clt_onnx_int(c, "p", 2);
    CLT_TRY(clt_onnx_float(c, 0, &x));
    if (p != 1 && p != 2) return clt_fail(CLT_E_UNSUPPORTED, "p of %lld", (long long)p);
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", -1), x->shape.rank, &axis));
    clt_reduce_options o = {.axes = {axis}, .n_axes = 1, .keep_dims = true};
    clt_tensor *norm = p == 1 ? clt_sum(clt_abs(x), o) : clt_sqrt(clt_sum(clt_mul(x, x), o));
    out[0] = clt_div(x, clt_add(norm, clt_less_equal(norm, clt_fill(c->graph, (clt_shape){0}, 0)))); /* zeros stay zeros */
    return CLT_OK;
}

/* x (bias + alpha mean of x²)^-beta, over the `size` channels around each one, beyond which there are zeros; Krizhevsky, Sutskever, Hinton 2012. The mean is that of
 * images as high as there are channels. */
static clt_status map_lrn(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int64_t size = clt_onnx_int(c, "size", 0), pixels = 1;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    clt_shape e = clt_tensor_extent(x);
    if (x->shape.rank < 3 || size < 1 || size > CLT_MAX_WINDOW) return clt_fail(CLT_E_UNSUPPORTED, "over %lld channels, of %d dimensions", (long long)size, x->shape.rank);
    for (int d = 1; d < e.rank; d++) {
        if (e.dims[d] != x->shape.dims[d]) return clt_fail(CLT_E_UNSUPPORTED, "dimension %d has more than one size", d);
        if (d > 1) pixels *= e.dims[d];
    }
    clt_tensor *squares = clt_reshape_to(clt_mul(x, x), CLT_SHAPE(e.dims[0], 1, e.dims[1], pixels));
    squares = clt_pad(squares, (int64_t[]){0, 0, (size - 1) / 2, 0}, (int64_t[]){0, 0, size / 2, 0}, 0);
    clt_tensor *mean = clt_reshape_to(clt_avg_pool2d(squares, .kernel_h = (int)size, .kernel_w = 1, .stride_h = 1, .stride_w = 1), e);
    clt_tensor *scale = clt_add_scalar(clt_mul_scalar(mean, clt_onnx_float_attribute(c, "alpha", 1e-4f)), clt_onnx_float_attribute(c, "bias", 1));
    out[0] = clt_mul(x, clt_pow_scalar(scale, -clt_onnx_float_attribute(c, "beta", 0.75f)));
    return CLT_OK;
}

/* 1 at the first of the largest. */
static clt_status map_hardmax(clt_onnx_call *c, clt_tensor **out) {
    clt_tensor *x;
    int axis, order[CLT_MAX_RANK], next = 0;
    CLT_TRY(clt_onnx_float(c, 0, &x));
    CLT_TRY(clt_fold_axis(clt_onnx_int(c, "axis", c->opset < 13 ? 1 : -1), x->shape.rank, &axis));
    if (c->opset < 13 && axis != x->shape.rank - 1) return clt_fail(CLT_E_UNSUPPORTED, "over several dimensions");
    for (int d = 0; d < x->shape.rank; d++) order[d] = d == axis ? x->shape.rank - 1 : next++;
    out[0] = clt_permute(clt_one_hot(clt_argmax(x, axis), x->shape.dims[axis]), order);
    return CLT_OK;
}

/* The ratio is an attribute before opset 12, an input from then on. */
const clt_onnx_rule clt_onnx_norm_rules[] = {
    {"ReduceSum", map_reduce}, {"ReduceMean", map_reduce}, {"ReduceMax", map_reduce}, {"ReduceMin", map_reduce}, {"ReduceL1", map_reduce}, {"ReduceL2", map_reduce},
    {"ReduceSumSquare", map_reduce}, {"ReduceLogSum", map_reduce}, {"ReduceLogSumExp", map_reduce}, {"ReduceProd", map_product}, {"ArgMax", map_argmax}, {"ArgMin", map_argmax},
    {"CumSum", map_cumsum}, {"Softmax", map_softmax}, {"LogSoftmax", map_softmax}, {"BatchNormalization", map_batch_norm},
    {"LayerNormalization", map_layer_norm}, {"RMSNormalization", map_layer_norm}, {"GroupNormalization", map_group_norm},
    {"InstanceNormalization", map_group_norm}, {"LpNormalization", map_lp}, {"Hardmax", map_hardmax}, {"LRN", map_lrn}, {0},
};
