#include "runtime/ops/ops.h"

static clt_status infer(clt_tensor *node) {
    const clt_reshape_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_shape shape = at->shape;
    int64_t elements = clt_tensor_elements(x), known = 1;
    int open = -1;
    CLT_TRY(clt_graph_resolve(node->graph, &shape));
    if (at->each) shape.dims[0] = at->each * node->graph->batch;
    for (int i = 0; i < shape.rank && i < CLT_MAX_RANK; i++) {
        int k;
        if (!clt_dim_is_of(shape.dims[i], &k)) k = i;
        if (k < x->shape.rank && (shape.dims[i] == 0 || shape.dims[i] == CLT_DIM_OF(k))) shape.dims[i] = x->shape.dims[k];
        if (shape.dims[i] == -1 && open < 0) open = i;
        else if (shape.dims[i] < 1 || __builtin_mul_overflow(known, shape.dims[i], &known)) known = 0;
    }
    const clt_graph *graph = node->graph, *origin = graph->origin;
    bool shorter = origin && graph->length != origin->length;
    if (shorter && at->each % origin->length == 0 && at->each && origin->length > 1) {
        char to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "the first number of %s holds the longest length, or is a multiple of it by chance: tell what it follows by -1, CLT_BATCH and CLT_LENGTH",
                        clt_shape_text(&at->shape, to));
    }
    int64_t sample = graph->batch ? elements / graph->batch : 0;
    if (shorter && at->of_samples && known > 0 && (at->of_samples == 1 ? sample % known : at->of_samples * sample != known)) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "of %s, rows of %s would be of parts of samples, or of others than before: what is to follow the length is CLT_LENGTH",
                        clt_shape_text(&x->shape, from), clt_shape_text(&at->shape, to));
    }
    if (open >= 0 && known > 0) {
        shape.dims[open] = elements / known;
        known *= shape.dims[open];
    }
    if (shape.rank < 0 || shape.rank > CLT_MAX_RANK || known != elements) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT], label[64];
        return clt_fail(CLT_E_SHAPE, "%s %s cannot become %s", clt_tensor_label(x, label),
                        clt_shape_text(&x->shape, from), clt_shape_text(&at->shape, to));
    }
    node->shape = shape;
    node->dtype = x->dtype;
    return CLT_OK;
}

static void gradient(clt_tensor *node, clt_tensor *dy, const bool *wanted, clt_tensor **dx) {
    if (wanted[0]) dx[0] = clt_reshape(dy, node->inputs[0]->shape);
}

#define AT clt_reshape_attributes
static const clt_attribute schema[] = {CLT_ATTRIBUTE(AT, shape, RESULT), CLT_ATTRIBUTE(AT, each, INT64, .least = 0, .most = INT32_MAX),
                                       CLT_ATTRIBUTE(AT, of_samples, INT, .least = 0, .most = INT32_MAX), {0}};
#undef AT

const clt_op clt_op_reshape = {
    .name = "reshape", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_reshape_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .is_view = true,
};

/* Whether -1 in front is the batch at any number of samples: whole samples in a row, which they are to be at every length. */
static bool remains_the_batch(const clt_tensor *x, const clt_shape *shape) {
    int64_t known = 1;
    for (int i = 1; i < shape->rank; i++)
        if (shape->dims[i] < 1 || __builtin_mul_overflow(known, shape->dims[i], &known)) return false;
    if (!x->graph->length || shape->rank < 1 || shape->dims[0] != -1 || clt_tensor_elements(x) / known != x->graph->batch) return false;
    for (int k = 0; k < CLT_GREATER_BATCHES; k++) {
        int64_t batch, length;
        clt_graph_trial(x->graph, k, &batch, &length);
        if (x->other[k].rank < 0 || clt_shape_elements(&x->other[k]) / known != batch) return false;
    }
    return true;
}

/* Elements of x behind the last dimension that follows the batch or the length. */
static int64_t place_of(const clt_tensor *x) {
    int64_t place = 1;
    clt_shape extent = clt_tensor_extent(x);
    for (int d = extent.rank; d-- > 0 && extent.dims[d] == x->shape.dims[d];) place *= extent.dims[d];
    return place;
}

static bool grows_with_batch(const clt_tensor *x) {
    if (!x->follows || x->graph->batch < 1) return false;
    for (int k = 0; k < CLT_GREATER_BATCHES; k++) {
        int64_t batch, length;
        clt_graph_trial(x->graph, k, &batch, &length);
        if (x->other[k].rank < 0 || clt_shape_elements(&x->other[k]) / batch * x->graph->batch != clt_tensor_elements(x)) return false;
    }
    return true;
}

static bool depends_on_length(const clt_tensor *x) {
    bool depends = false;
    for (int k = 0; k < CLT_TRIALS; k++) {
        int64_t batch, length;
        bool there = clt_graph_trial(x->graph, k, &batch, &length) && batch == x->graph->batch && x->other[k].rank >= 0;
        depends |= there && clt_shape_elements(&x->other[k]) != clt_tensor_elements(x);
    }
    return depends;
}

/* Behind -1 in front, which holds what remains, the longest length as a number is the length, where it counts whole places of x: unless there are two of
 * it, or whole rows lie within a place. */
static clt_shape name_length(const clt_tensor *x, clt_shape shape) {
    int64_t behind = 1, place = place_of(x);
    int longest = 0, n = 0;
    for (int i = shape.rank; --i > 0;) {
        bool is_longest = shape.dims[i] == x->graph->length && behind % place == 0;
        if (shape.dims[i] < 1 || __builtin_mul_overflow(behind, shape.dims[i], &behind)) return shape;
        if (is_longest && !n++) longest = i;
    }
    if (n == 1 && place % behind) shape.dims[longest] = CLT_LENGTH;
    return shape;
}

/* What -1 is now; 0: it is not there, or nothing. */
static int64_t remaining(const clt_tensor *x, const clt_shape *shape) {
    int64_t known = 1;
    int open = 0;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        clt_multiple m;
        if (clt_dim_multiple(dim, &m)) dim = clt_multiple_size(m, x->graph->batch, x->graph->length);
        else if (i < x->shape.rank && dim == 0) dim = x->shape.dims[i];
        open += dim == -1;
        if (dim != -1 && (dim < 1 || __builtin_mul_overflow(known, dim, &known))) return 0;
    }
    return open == 1 && clt_tensor_elements(x) % known == 0 ? clt_tensor_elements(x) / known : 0;
}

/* Dimensions in front that are x's as they are follow as those do: a number that is the length there is it. One behind them that is some times x's batch is
 * that, and -1 before it what x has there: of one sample no number tells. Else -1 elsewhere would take what they leave at another length or batch. */
static clt_shape name_front(const clt_tensor *x, clt_shape shape) {
    clt_shape extent = clt_tensor_extent(x);
    int64_t remains = remaining(x, &shape), batch = x->graph->batch;
    for (int i = 0; remains && i < shape.rank && i < extent.rank; i++) {
        int64_t *dim = &shape.dims[i], size = x->shape.dims[i];
        bool is_rest = *dim == -1 && remains == size && i == 0;
        if (*dim == 0 || *dim == extent.dims[i] || *dim == size || is_rest) {
            if (*dim == size && clt_dim_is_length(extent.dims[i])) *dim = extent.dims[i];
            continue;
        }
        clt_multiple m = {.of_batch = true, .times = *dim / batch};
        if (i == 0 || batch == 1 || extent.dims[i] != CLT_BATCH || *dim < 1 || *dim % batch || m.times < 2 || m.times > CLT_MOST_TIMES) break;
        if (shape.dims[0] == -1) shape.dims[0] = extent.dims[0];
        *dim = clt_multiple_dim(m);
        break;
    }
    return shape;
}

/* Lets dimension 0 follow the batch where the shape does not tell which one does; gives clt_reshape_attributes.each. Where there are sequences, a
 * number that is the batch, or a multiple of it, is that alone: at another length it would be what remains, with parts of several samples in one row. */
static int64_t follow_batch(const clt_tensor *x, clt_shape *shape) {
    int64_t *dims = shape->dims, rest = clt_tensor_elements(x), batch = x->graph->batch;
    if (x->shape.rank > 0 && clt_tensor_extent(x).dims[0] == x->shape.dims[0]) return 0; /* of x it is another dimension that does, or none */
    if (shape->rank > 1 && dims[0] == -1 && depends_on_length(x)) *shape = name_length(x, *shape);
    if (remains_the_batch(x, shape)) {
        dims[0] = CLT_BATCH;
        return 0;
    }
    int open = -1;
    bool remains = false; /* the caller says which dimension does */
    for (int i = 0; i < shape->rank; i++) {
        if (dims[i] == CLT_BATCH) return 0;
        remains |= dims[i] == -1;
    }
    bool told = x->follows && (x->graph->length || remains), grows = shape->rank > 0 && grows_with_batch(x);
    if (told && grows && dims[0] == batch) {
        dims[0] = CLT_BATCH;
        return 0;
    }
    if (remains && x->follows && (!grows || dims[0] % batch)) return 0;
    for (int i = 0; i < shape->rank; i++) {
        if (dims[i] == -1 && open < 0) open = i;
        else if (dims[i] < 1 || rest % dims[i]) return 0;
        else rest /= dims[i];
    }
    if (shape->rank < 1 || (open < 0 && rest != 1)) return 0;
    bool within = open == 0 || place_of(x) % (clt_tensor_elements(x) / dims[0]) == 0; /* a place of x, are the rows */
    if (told && grows && !within && dims[0] % batch == 0) return dims[0] / batch;
    if (open >= 0) dims[open] = rest;
    dims[0] = -1;
    return 0;
}

/* How many whole samples a row of what is behind dimension 0 holds; 1: none, or a part of one. */
static int samples_in_a_row(const clt_tensor *x, clt_shape shape) {
    int64_t row = 1, sample = clt_tensor_elements(x) / x->graph->batch;
    if (clt_graph_resolve(x->graph, &shape) < 0) return 1;
    for (int i = 1; i < shape.rank; i++) {
        int64_t dim = i < x->shape.rank && shape.dims[i] == 0 ? x->shape.dims[i] : shape.dims[i];
        if (dim < 1 || __builtin_mul_overflow(row, dim, &row)) return 1;
    }
    return row % sample || row / sample > INT32_MAX ? 1 : (int)(row / sample);
}

clt_tensor *clt_reshape(clt_tensor *x, clt_shape shape) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, &shape)) return x;
    clt_reshape_attributes at = {.shape = shape};
    if (shape.rank >= 0 && shape.rank <= CLT_MAX_RANK) {
        if (x->follows && x->graph->batch > 0) at.shape = name_front(x, shape);
        at.each = follow_batch(x, &at.shape);
        bool rows = at.shape.rank > 0 && at.shape.dims[0] == -1 && grows_with_batch(x);
        for (int i = 0; i < at.shape.rank; i++) rows &= at.shape.dims[i] != CLT_BATCH;
        if (rows) at.of_samples = samples_in_a_row(x, at.shape);
    }
    return clt_node(NULL, &clt_op_reshape, &at, &x, 1);
}

clt_tensor *clt_reshape_to(clt_tensor *x, clt_shape extent) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, &extent)) return x;
    int open = 0;
    char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
    for (int d = 0; d < extent.rank; d++) open += extent.dims[d] == -1;
    if (open > 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_UNSUPPORTED, "%s to %s: more than one dimension follows the batch or the length, and is no multiple of them plus a number",
                                                 clt_shape_text(&x->shape, from), clt_shape_text(&extent, to)));
    return clt_node(NULL, &clt_op_reshape, &(clt_reshape_attributes){.shape = extent}, &x, 1);
}

clt_tensor *clt_flatten(clt_tensor *x) {
    if (!clt_tensor_valid(x) || x->shape.rank == 2) return x;
    return clt_reshape(x, x->shape.rank > 0 ? CLT_SHAPE(0, -1) : CLT_SHAPE(1, 1));
}

clt_shape clt_reshape_places(const clt_tensor *x) {
    clt_shape extent = clt_tensor_extent(x);
    for (int d = 0; d < extent.rank; d++)
        if (extent.dims[d] == -1) extent.dims[d] = CLT_DIM_OF(d);
    return extent;
}

/* By what each dimension follows, so that it is the same at every batch and length. */
clt_tensor *clt_unsqueeze(clt_tensor *x, int axis) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    int rank = x->shape.rank, at = axis < 0 ? axis + rank + 1 : axis;
    if (at < 0 || at > rank || rank == CLT_MAX_RANK)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "unsqueeze: axis %d of %s", axis, clt_shape_text(&x->shape, text)));
    clt_shape extent = clt_reshape_places(x);
    for (int d = rank; d > at; d--) extent.dims[d] = extent.dims[d - 1];
    extent.dims[at] = 1;
    extent.rank++;
    return clt_reshape_to(x, extent);
}

clt_tensor *clt_squeeze(clt_tensor *x, int axis) {
    if (!clt_tensor_valid(x)) return x;
    char text[CLT_SHAPE_TEXT];
    clt_shape extent = clt_reshape_places(x);
    int at = clt_shape_axis(&x->shape, axis);
    if (at < 0 || extent.dims[at] != 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_SHAPE, "squeeze: axis %d of %s is not always 1", axis, clt_shape_text(&x->shape, text)));
    for (int d = at; d + 1 < extent.rank; d++) extent.dims[d] = extent.dims[d + 1];
    extent.rank--;
    return clt_reshape_to(x, extent);
}
