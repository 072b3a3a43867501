#include "runtime/ops/ops.h"

enum { OF_BATCH = 1, OF_LENGTH = 2 };

/* Puts x's dimensions and what remains in their places; false: there are more elements, or fewer. *known: of the other dimensions; 0: of no size. */
static bool complete(const clt_shape *x, clt_shape *shape, int64_t *known) {
    int open = -1;
    int64_t elements = clt_shape_elements(x);
    *known = 1;
    if (shape->rank < 0 || shape->rank > CLT_MAX_RANK) return false;
    for (int i = 0; i < shape->rank; i++) {
        int64_t *dim = &shape->dims[i];
        int k;
        if (!clt_dim_is_of(*dim, &k)) k = i;
        if (k < x->rank && (*dim == 0 || *dim == CLT_DIM_OF(k))) *dim = x->dims[k];
        if (*dim == -1 && open < 0) open = i;
        else if (*dim < 1 || __builtin_mul_overflow(*known, *dim, known)) *known = 0;
    }
    if (open < 0 || *known == 0) return *known == elements;
    shape->dims[open] = elements / *known;
    return elements % *known == 0;
}

static clt_status infer(clt_tensor *node) {
    const clt_reshape_attributes *at = node->attributes;
    const clt_tensor *x = node->inputs[0];
    clt_shape shape = at->shape;
    int64_t known;
    CLT_TRY(clt_graph_resolve(node->graph, &shape));
    bool fits = complete(&x->shape, &shape, &known);
    const clt_graph *graph = node->graph, *origin = graph->origin;
    bool shorter = origin && graph->length != origin->length;
    if ((shorter && at->unsure & OF_LENGTH) || (origin && graph->batch != origin->batch && at->unsure & OF_BATCH)) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "%s as %s: a number in it is %s by which the graph was built, or is one by chance, and both would do here: tell what is meant by CLT_BATCH and CLT_LENGTH, "
                        "or build the graph with others", clt_shape_text(&x->shape, from), clt_shape_text(&at->shape, to), at->unsure == OF_BATCH ? "the batch" : at->unsure == OF_LENGTH ? "the length" : "the batch or the length");
    }
    int64_t sample = graph->batch ? clt_tensor_elements(x) / graph->batch : 0;
    if (shorter && at->of_samples && known > 0 && (at->of_samples == 1 ? sample % known : at->of_samples * sample != known)) {
        char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
        return clt_fail(CLT_E_SHAPE, "of %s, rows of %s would be of parts of samples, or of others than before: what is to follow the length is CLT_LENGTH",
                        clt_shape_text(&x->shape, from), clt_shape_text(&at->shape, to));
    }
    if (!fits) {
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
static const clt_attribute schema[] = {CLT_ATTRIBUTE(AT, shape, RESULT), CLT_ATTRIBUTE(AT, of_samples, INT, .least = 0, .most = INT32_MAX),
                                       CLT_ATTRIBUTE(AT, unsure, INT, .least = 0, .most = OF_BATCH | OF_LENGTH), {0}};
#undef AT

const clt_op clt_op_reshape = {
    .name = "reshape", .least_inputs = 1,
    .attributes_bytes = sizeof(clt_reshape_attributes),
    .schema = schema,
    .infer = infer,
    .gradient = gradient,
    .is_view = true,
};

static bool grows_with_batch(const clt_tensor *x) {
    if (!x->follows || x->graph->batch < 1) return false;
    for (int k = 0; k < CLT_GREATER_BATCHES; k++) {
        int64_t batch, length;
        clt_graph_trial(x->graph, k, &batch, &length);
        if (x->other[k].rank < 0 || clt_shape_elements(&x->other[k]) / batch * x->graph->batch != clt_tensor_elements(x)) return false;
    }
    return true;
}

/* Whether dimension 0 is what remains of all samples. */
static bool makes_rows(const clt_tensor *x, const clt_shape *shape) {
    bool rows = shape->rank > 0 && shape->dims[0] == -1 && grows_with_batch(x);
    for (int i = 0; i < shape->rank; i++) rows &= shape->dims[i] != CLT_BATCH;
    return rows;
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

/* ---- readings ----
 *
 * A number may be meant as one, or as the batch or the length of the sequences, or a multiple of them, which it happens to be. A reading says so of each
 * number; one that holds at all other sizes that are tried is what may be meant.
 */

/* Whether dimensions are but split and joined: elements behind any one of the result are whole places of x, or make up whole ones. */
static bool keeps_order(const clt_shape *x, const clt_shape *result) {
    int64_t behind = 1;
    for (int i = result->rank; i-- > 0;) {
        int64_t own = 1;
        behind *= result->dims[i];
        for (int d = x->rank; d-- > 0;) {
            own *= x->dims[d];
            if (own % behind && behind % own) return false;
        }
    }
    return true;
}

/* What is asked of a reading. */
typedef struct demand {
    bool lengths;  /* it holds at all other lengths, and not at some alone */
    bool in_order; /* and keeps order */
} demand;

/* x in that shape at trial k, as is demanded; false: that is not possible there. Where there is no such x, or it need not be possible, a shape of rank -1. */
static bool shape_at(const clt_tensor *x, const clt_shape *shape, demand of, int k, clt_shape *result) {
    int64_t batch, length, known;
    *result = *shape;
    if (!clt_graph_trial(x->graph, k, &batch, &length) || x->other[k].rank < 0) {
        result->rank = -1;
        return true;
    }
    for (int i = 0; i < shape->rank; i++) {
        clt_multiple m;
        if (clt_dim_multiple(shape->dims[i], &m)) result->dims[i] = clt_multiple_size(m, batch, length);
    }
    if (complete(&x->other[k], result, &known) && (!of.in_order || keeps_order(&x->other[k], result))) return true;
    result->rank = -1;
    return !of.lengths && length != x->graph->length;
}

/* Whether the reading holds, and how likely it is: by how many dimensions, from the front and from the end, are x's own. */
static bool holds(const clt_tensor *x, const clt_shape *shape, demand of, int *likely) {
    int front = CLT_MIN(shape->rank, x->shape.rank), back = front;
    for (int k = 0; k < CLT_TRIALS; k++) {
        clt_shape there;
        const clt_shape *own = &x->other[k];
        if (!shape_at(x, shape, of, k, &there)) return false;
        if (there.rank < 0) continue;
        for (int i = 0; i < front; i++)
            if (there.dims[i] != own->dims[i]) front = i;
        for (int i = 0; i < back; i++)
            if (there.dims[there.rank - 1 - i] != own->dims[own->rank - 1 - i]) back = i;
    }
    *likely = front + back;
    return true;
}

/* Of what the shape tells by codes, or leaves as x has it. */
static int told_by(const clt_tensor *x, const clt_shape *shape) {
    clt_shape extent = clt_tensor_extent(x);
    int told = 0;
    for (int i = 0; i < shape->rank; i++) {
        clt_multiple m;
        int64_t dim = i < extent.rank && shape->dims[i] == 0 ? extent.dims[i] : shape->dims[i];
        if (clt_dim_multiple(dim, &m)) told |= (m.of_batch ? OF_BATCH : 0) | (m.of_length ? OF_LENGTH : 0);
    }
    return told;
}

/* What number i may stand for; the first is itself. */
static int meanings(const clt_tensor *x, const clt_shape *shape, int i, int told, bool multiples, int64_t out[4]) {
    const int64_t dim = shape->dims[i], batch = told & OF_BATCH ? 0 : x->graph->batch, length = told & OF_LENGTH || x->graph->length == 1 ? 0 : x->graph->length;
    const clt_multiple units[] = {{.of_batch = true}, {.of_length = true}, {.of_batch = true, .of_length = true}};
    const int64_t sizes[] = {batch, length, batch * length};
    int n = 0;
    out[n++] = dim;
    for (int k = 0; k < 3 && dim > 0; k++) {
        clt_multiple m = units[k];
        bool may_be = multiples || (dim == sizes[k] && (dim > 1 || i == 0));
        if (!may_be || sizes[k] < 1 || dim % sizes[k] || dim / sizes[k] > CLT_MOST_TIMES) continue;
        m.times = dim / sizes[k];
        out[n++] = clt_multiple_dim(m);
    }
    return n;
}

typedef struct reading {
    clt_shape shape;
    int likely; /* below 0: there is none */
    int others; /* as likely ones */
    int unsure; /* what they follow */
} reading;

static int followed_by(const clt_shape *shape, const clt_shape *plain) {
    int follows = 0;
    clt_multiple m;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != plain->dims[i] && clt_dim_multiple(shape->dims[i], &m)) follows |= (m.of_batch ? OF_BATCH : 0) | (m.of_length ? OF_LENGTH : 0);
    return follows;
}

/* The likeliest reading in which some number is more than itself. Multiples are meant only where order is kept. */
static reading best_reading(const clt_tensor *x, const clt_shape *plain, demand of, bool multiples) {
    enum { MOST_READINGS = 4096 };
    int64_t dims[CLT_MAX_RANK][4];
    int n[CLT_MAX_RANK] = {0}, all = 1, told = told_by(x, plain);
    reading best = {.likely = -1};
    for (int i = 0; i < plain->rank; i++) {
        n[i] = meanings(x, plain, i, told, multiples, dims[i]);
        if (all * n[i] > MOST_READINGS) n[i] = 1;
        all *= n[i];
    }
    for (int r = 1; r < all; r++) {
        reading here = {.shape = *plain};
        for (int i = 0, rest = r; i < plain->rank; rest /= n[i++]) here.shape.dims[i] = dims[i][rest % n[i]];
        if (!holds(x, &here.shape, of, &here.likely) || here.likely < best.likely) continue;
        here.unsure = followed_by(&here.shape, plain);
        if (here.likely == best.likely) best.others++, best.unsure |= here.unsure;
        else best = here;
    }
    return best;
}

/* Puts in the place of numbers what they stand for; false: nothing that is as demanded. They are but numbers where that is likelier than all else; *unsure:
 * where none can tell. */
static bool read_numbers(const clt_tensor *x, clt_shape *shape, demand of, int *unsure) {
    int likely = -1;
    bool plain = holds(x, shape, of, &likely);
    reading other = best_reading(x, shape, of, !plain && of.in_order);
    bool found = other.likely >= 0, first_is_one = found && plain && x->graph->batch == 1 && shape->dims[0] == 1 && other.shape.dims[0] == CLT_BATCH;
    if (!plain && !found) return false;
    if (plain && !first_is_one && likely > other.likely) return true;
    if ((plain && !first_is_one) || other.others) *unsure = other.unsure;
    else *shape = other.shape;
    return true;
}

clt_tensor *clt_reshape(clt_tensor *x, clt_shape shape) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, &shape)) return x;
    clt_reshape_attributes at = {.shape = shape};
    if (shape.rank >= 0 && shape.rank <= CLT_MAX_RANK) {
        bool follows = x->follows && x->graph->batch > 0, of_batch = shape.rank > 0 && x->shape.rank > 0 && clt_tensor_extent(x).dims[0] == CLT_BATCH;
        if (follows && of_batch && !(told_by(x, &shape) & OF_BATCH) && shape.dims[0] == x->shape.dims[0]) at.shape.dims[0] = CLT_BATCH; /* stays where it is */
        static const demand demands[] = {{true, true}, {false, true}, {true, false}, {false, false}}; /* windows, which not all lengths have, keep order */
        bool read = !follows;
        for (int i = 0; !read && i < 4; i++) {
            read = (demands[i].lengths || x->graph->length) && read_numbers(x, &at.shape, demands[i], &at.unsure);
            if (read && !demands[i].lengths && makes_rows(x, &at.shape)) at.of_samples = samples_in_a_row(x, at.shape);
        }
    }
    return clt_node(NULL, &clt_op_reshape, &at, &x, 1);
}

clt_tensor *clt_reshape_to(clt_tensor *x, clt_shape extent) {
    if (!clt_tensor_valid(x) || clt_shape_equal(&x->shape, &extent)) return x;
    int open = 0;
    char from[CLT_SHAPE_TEXT], to[CLT_SHAPE_TEXT];
    for (int d = 0; d < extent.rank; d++) open += extent.dims[d] == -1;
    if (open > 1)
        return clt_graph_fail(x->graph, clt_fail(CLT_E_UNSUPPORTED, "%s to %s: more than one dimension follows the batch or the length, and is not a multiple of them plus a number",
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
