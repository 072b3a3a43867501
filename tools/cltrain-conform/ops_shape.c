/* What moves values, or looks at them otherwise. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double reference_reshape(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = at->shape;
    int64_t known = 1;
    for (int d = 0; d < shape.rank; d++) known *= shape.dims[d] == -1 ? 1 : shape.dims[d];
    for (int d = 0; d < shape.rank; d++)
        if (shape.dims[d] == -1) shape.dims[d] = array_count(x) / known;
    array_resize(y, shape);
    memcpy(y->values, x->values, (size_t)array_count(y) * sizeof *y->values);
    return (double)array_count(y);
}

static double reference_permute(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, from[CLT_MAX_RANK], place = 0;
    int order[CLT_MAX_RANK] = {0};
    for (int d = 0; d < shape.rank; d++) order[d] = at->order[d] < 0 ? at->order[d] + shape.rank : at->order[d];
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->shape.dims[order[d]];
    array_resize(y, shape);
    do {
        for (int d = 0; d < shape.rank; d++) from[order[d]] = index[d];
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

static double reference_concat(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    int axis = at->axis < 0 ? at->axis + shape.rank : at->axis;
    for (int i = 1; i < n; i++) shape.dims[axis] += x[i].shape.dims[axis];
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        int which = 0;
        memcpy(from, index, sizeof from);
        while (from[axis] >= x[which].shape.dims[axis]) from[axis] -= x[which++].shape.dims[axis];
        y->values[place++] = x[which].values[index_place(&x[which].shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

static double reference_concat_thrice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n;
    return reference_concat((array[]){x[0], x[0], x[0]}, 3, y, at, evaluation);
}

static double reference_slice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int axis = at->axis < 0 ? at->axis + shape.rank : at->axis;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0, size = x->shape.dims[axis];
    int64_t first = at->first < 0 ? at->first + size : at->first,
            last = at->last < 0 ? at->last + size : at->last < size ? at->last : size;
    shape.dims[axis] = (last - first - 1) / at->step + 1;
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        memcpy(from, index, sizeof from);
        from[axis] = first + index[axis] * at->step;
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

static double reference_pad(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] += at->before[d] + at->after[d];
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        bool inside = true;
        for (int d = 0; d < shape.rank; d++) {
            from[d] = index[d] - at->before[d];
            inside &= from[d] >= 0 && from[d] < x->shape.dims[d];
        }
        y->values[place++] = inside ? x->values[index_place(&x->shape, from)] : (double)at->s[0];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

static double reference_expand(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    array_resize(y, at->shape);
    do y->values[place++] = array_broadcast_at(x, &y->shape, index);
    while (index_next(&y->shape, index));
    return 8.0 * (double)place;
}

/* x [N, C, H, W], each pixel axis times axis. */
static double reference_upsample(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int d = 2; d < 4; d++) shape.dims[d] *= at->axis;
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK] = {index[0], index[1], index[2] / at->axis, index[3] / at->axis};
        y->values[place++] = x->values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

/* x [N, C, H, W] at [first, last], from weights of the old pixels in a new one. */
static double resample(const array *x, array *y, const attributes *at, double (*weight)(int64_t i, int64_t k, int64_t from, int64_t to)) {
    const int64_t *in = x->shape.dims, h = at->first, w = at->last;
    array_clear(y, (clt_shape)SHAPE(in[0], in[1], h, w));
    for (int64_t i = 0; i < array_count(y); i++)
        for (int64_t r = 0; r < in[2]; r++)
            for (int64_t c = 0; c < in[3]; c++)
                y->values[i] += weight(i / w % h, r, in[2], h) * weight(i % w, c, in[3], w) * x->values[(i / (h * w) * in[2] + r) * in[3] + c];
    return 4.0 * (double)(array_count(y) * in[2] * in[3]);
}

static double bilinear_weight(int64_t i, int64_t k, int64_t from, int64_t to) {
    double place = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    place = fmin(fmax(place, 0), (double)(from - 1));
    return fmax(0, 1 - fabs(place - (double)k));
}

static double adaptive_weight(int64_t i, int64_t k, int64_t from, int64_t to) {
    double first = floor((double)(i * from) / (double)to), end = ceil((double)((i + 1) * from) / (double)to);
    return (double)k >= first && (double)k < end ? 1 / (end - first) : 0;
}

static double reference_bilinear(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, resample(x, y, at, bilinear_weight);
}

static double reference_adaptive(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    return (void)n, (void)evaluation, resample(x, y, at, adaptive_weight);
}

static double reference_stack(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)evaluation;
    clt_shape shape = x->shape;
    int64_t index[CLT_MAX_RANK] = {0}, place = 0;
    for (int d = shape.rank++; d > at->axis; d--) shape.dims[d] = shape.dims[d - 1];
    shape.dims[at->axis] = n;
    array_resize(y, shape);
    do {
        int64_t from[CLT_MAX_RANK];
        for (int d = 0; d < x->shape.rank; d++) from[d] = index[d < at->axis ? d : d + 1];
        y->values[place++] = x[index[at->axis]].values[index_place(&x->shape, from)];
    } while (index_next(&shape, index));
    return 8.0 * (double)place;
}

/* ---- cases ---- */

BUILD(bilinear, clt_upsample_bilinear2d(x[0], at->first, at->last))
BUILD(adaptive, clt_adaptive_avg_pool2d(x[0], at->first, at->last))
BUILD(stack, clt_stack(x, n, at->axis))
BUILD(squeeze, clt_neg(clt_squeeze(clt_neg(x[0]), at->axis)))
BUILD(unsqueeze, clt_neg(clt_unsqueeze(clt_neg(x[0]), at->axis)))
BUILD(reshape, clt_neg(clt_reshape(clt_neg(x[0]), at->shape)))
BUILD(flatten, clt_neg(clt_flatten(clt_neg(x[0]))))
BUILD(permute, clt_permute(x[0], at->order))
BUILD(transpose, clt_transpose(x[0], at->axis, (int)at->last))
BUILD(concat, clt_concat(x, n, at->axis))
BUILD(concat_thrice, clt_concat((clt_tensor *[]){x[0], x[0], x[0]}, 3, at->axis))
BUILD(slice, clt_slice(x[0], at->axis, at->first, at->last, at->step))
BUILD(pad, clt_pad(x[0], at->before, at->after, at->s[0]))
BUILD(expand, clt_expand(x[0], at->shape))
BUILD(upsample, clt_upsample_nearest2d(x[0], at->axis))

#define OP(word) OPERATION(#word, "clt_" #word, word, word, .ulp = 1)
static const operation reshape = OP(reshape), permute = OP(permute), concat = OP(concat),
                       slice = OP(slice), pad = OP(pad), expand = OP(expand);
static const operation concat_thrice = OPERATION("concat", "clt_concat", concat_thrice, concat_thrice, .ulp = 1);
static const operation upsample = OPERATION("upsample_nearest2d", "clt_upsample_nearest2d", upsample, upsample, .ulp = 1);
static const operation bilinear = OPERATION("upsample_bilinear2d", "clt_upsample_bilinear2d", bilinear, bilinear);
static const operation adaptive = OPERATION("adaptive_avg_pool2d", "clt_adaptive_avg_pool2d", adaptive, adaptive);
static const operation stack = OPERATION("stack", "clt_stack", stack, stack, .ulp = 1);
static const operation squeeze = OPERATION("squeeze", "clt_squeeze", squeeze, reshape, .ulp = 1);
static const operation unsqueeze = OPERATION("unsqueeze", "clt_unsqueeze", unsqueeze, reshape, .ulp = 1);
static const operation flatten = OPERATION("flatten", "clt_flatten", flatten, reshape, .ulp = 1);
static const operation transpose = OPERATION("transpose", "clt_transpose", transpose, permute, .ulp = 1);

static test_case *add_permute(case_list *list, const operation *op, const char *variant, clt_shape shape,
                              const int *order, int axis) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, op, variant, &x, 1);
    c->at.axis = axis;
    c->at.last = -1;
    memcpy(c->at.order, order, (size_t)shape.rank * sizeof *order);
    return c;
}

static test_case *add_shaped(case_list *list, const operation *op, const char *variant, clt_shape from, clt_shape to) {
    operand x = {.shape = from};
    test_case *c = case_add(list, op, variant, &x, 1);
    c->at.shape = to;
    return c;
}

static test_case *add_slice(case_list *list, const char *variant, clt_shape shape, int axis, int64_t first,
                            int64_t last, int64_t step) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, &slice, variant, &x, 1);
    c->at.axis = axis, c->at.first = first, c->at.last = last, c->at.step = step;
    return c;
}

static test_case *add_pad(case_list *list, const char *variant, clt_shape shape, const int64_t *before,
                          const int64_t *after) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, &pad, variant, &x, 1);
    memcpy(c->at.before, before, (size_t)shape.rank * sizeof *before);
    memcpy(c->at.after, after, (size_t)shape.rank * sizeof *after);
    c->at.s[0] = -0.25f;
    return c;
}

/* Elements of one byte have kernels of their own: of one dimension, of up to four, and of more. */
static void of_bytes(test_case *c) {
    c->dtype = CLT_U8;
    for (int i = 0; i < c->n; i++) {
        c->x[i].dtype = CLT_U8;
        c->x[i].low = 0, c->x[i].high = 256;
    }
}

static void add_bytes(case_list *list) {
    of_bytes(add_permute(list, &permute, "u8", (clt_shape)SHAPE(2, 3, 5), (int[]){2, 1, 0}, 0));
    of_bytes(add_permute(list, &permute, "u8", (clt_shape)SHAPE(2, 3, 2, 5, 3), (int[]){4, 3, 2, 1, 0}, 0));
    of_bytes(case_add(list, &concat, "u8", X(F(5), F(37), F(1))));
    test_case *c = case_add(list, &concat, "u8", X(F(3, 2, 5), F(3, 1, 5), F(3, 7, 5)));
    c->at.axis = 1;
    of_bytes(c);
    of_bytes(add_slice(list, "u8", (clt_shape)SHAPE(1031), 0, 3, 1029, 2));
    of_bytes(add_slice(list, "u8", (clt_shape)SHAPE(4, 17, 3), 1, 1, -2, 3));
    of_bytes(add_shaped(list, &expand, "u8", (clt_shape)SHAPE(3, 1, 7), (clt_shape)SHAPE(2, 3, 5, 7)));
    of_bytes(add_shaped(list, &expand, "u8", (clt_shape)SHAPE(1, 3, 1, 2, 1), (clt_shape)SHAPE(2, 3, 5, 2, 7)));
}

static void of_integers(test_case *c) {
    c->dtype = CLT_I32;
    for (int i = 0; i < c->n; i++) c->x[i].dtype = CLT_I32, c->x[i].low = INT32_MIN, c->x[i].high = INT32_MAX;
}

static void add_integers(case_list *list) {
    of_integers(case_add(list, &concat, "i32", X(F(2), F(3))));
    of_integers(add_slice(list, "i32", (clt_shape)SHAPE(2, 3), 1, 0, 3, 2));
    of_integers(add_shaped(list, &expand, "i32", (clt_shape)SHAPE(2, 1), (clt_shape)SHAPE(2, 3)));
}

/* The k-th order of four, by taking digits of k in the factorial base. */
static void add_order(case_list *list, int k) {
    int left[] = {0, 1, 2, 3}, order[4], rest = k;
    char variant[8] = "";
    for (int d = 0; d < 4; d++) {
        int pick = rest % (4 - d);
        rest /= 4 - d;
        order[d] = left[pick];
        variant[d] = (char)('0' + order[d]);
        for (int i = pick; i < 3 - d; i++) left[i] = left[i + 1];
    }
    add_permute(list, &permute, variant, (clt_shape)SHAPE(2, 3, 5, 7), order, 0);
}

static void add_permutations(case_list *list) {
    for (int k = 0; k < 24; k++) add_order(list, k);
    add_permute(list, &permute, "mixed", (clt_shape)SHAPE(2, 1, 3, 2, 1, 2, 3, 2), (int[]){3, 0, 7, 1, 6, 2, 5, 4}, 0);
    add_permute(list, &permute, "none", (clt_shape)SHAPE(5), (int[]){0}, 0);
    add_permute(list, &permute, "from-end", (clt_shape)SHAPE(2, 3, 5), (int[]){-1, -3, -2}, 0);
    add_permute(list, &transpose, "outer", (clt_shape)SHAPE(2, 3, 4), (int[]){1, 0, 2}, 0)->at.last = 1;
    add_permute(list, &transpose, "from-end", (clt_shape)SHAPE(2, 3, 4, 5), (int[]){0, 3, 2, 1}, -1)->at.last = 1;
    add_permute(list, &transpose, "itself", (clt_shape)SHAPE(2, 3, 4), (int[]){0, 1, 2}, 1)->at.last = 1;
}

static void add_slices(case_list *list) {
    static const char *const axes[] = {"axis-0", "axis-1", "axis-2", "axis-3"};
    for (int axis = 0; axis < 4; axis++) add_slice(list, axes[axis], (clt_shape)SHAPE(5, 6, 7, 8), axis, 1, 4, 1);
    add_slice(list, "step-2", (clt_shape)SHAPE(3, 7), 1, 0, 7, 2);
    add_slice(list, "past-end", (clt_shape)SHAPE(3, 8), 1, 1, 7, 3);
    add_slice(list, "large-step", (clt_shape)SHAPE(3, 7), 1, 5, 7, 100);
    add_slice(list, "largest-step", (clt_shape)SHAPE(3, 7), 1, 5, 7, INT64_MAX);
    add_slice(list, "last-axis-but-one", (clt_shape)SHAPE(3, 7, 2), -2, 2, 5, 1);
    add_slice(list, "negative-start", (clt_shape)SHAPE(3, 7), 1, -3, 7, 1);
    add_slice(list, "negative-stop", (clt_shape)SHAPE(3, 7), 1, 0, -2, 1);
    add_slice(list, "negative-both", (clt_shape)SHAPE(7, 3), 0, -6, -1, 2);
    add_slice(list, "one", (clt_shape)SHAPE(3, 7), 1, 6, 7, 1);
    add_slice(list, "all", (clt_shape)SHAPE(3, 7), 1, 0, 7, 1);
    add_slice(list, "beyond", (clt_shape)SHAPE(3, 7), 1, 4, 1000, 1);
    add_slice(list, "", (clt_shape)SHAPE(2, 1, 3, 1, 5, 2, 1, 2), 4, 1, 5, 2);
}

static void add_concats(case_list *list) {
    static const char *const axes[] = {"axis-0", "axis-1", "axis-2", "axis-3"};
    for (int axis = 0; axis < 4; axis++) {
        operand x[] = {F(2, 3, 4, 5), F(2, 3, 4, 5), F(2, 3, 4, 5)};
        x[1].shape.dims[axis] = 1, x[2].shape.dims[axis] = 7;
        case_add(list, &concat, axes[axis], x, 3)->at.axis = axis;
    }
    case_add(list, &concat, "last-axis", X(F(2, 3), F(2, 1), F(2, 2)))->at.axis = -1;
    case_add(list, &concat, "one-tensor", X(F(3, 4)))->at.axis = 1;
    case_add(list, &concat_thrice, "the-same", X(F(3, 4)))->at.axis = 1;
    test_case *c = case_add(list, &concat, "axis-4", X(F(2, 1, 3, 1, 2, 2, 1, 2), F(2, 1, 3, 1, 1, 2, 1, 2), F(2, 1, 3, 1, 3, 2, 1, 2)));
    c->at.axis = 4;
}

static void add_resampled(case_list *list, clt_shape image, int64_t height, int64_t width) {
    const operation *ops[] = {&bilinear, &adaptive};
    for (int i = 0; i < 2; i++) {
        char variant[32];
        operand x = {.shape = image};
        snprintf(variant, sizeof variant, "to-%lldx%lld", (long long)height, (long long)width);
        test_case *c = case_add(list, ops[i], variant, &x, 1);
        c->at.first = height, c->at.last = width;
    }
}

static void add_axes(case_list *list) {
    case_add(list, &stack, "", X(F(3, 4), F(3, 4), F(3, 4)))->at.axis = 1;
    case_add(list, &stack, "first", X(F(5), F(5)))->at.axis = 0;
    case_add(list, &stack, "last", X(F(2, 3), F(2, 3)))->at.axis = 2;
    test_case *c = case_add(list, &squeeze, "", X(F(3, 1, 4)));
    c->at.axis = 1, c->at.shape = (clt_shape)SHAPE(3, 4);
    c = case_add(list, &squeeze, "last", X(F(3, 4, 1)));
    c->at.axis = -1, c->at.shape = (clt_shape)SHAPE(3, 4);
    c = case_add(list, &unsqueeze, "", X(F(3, 4)));
    c->at.axis = 1, c->at.shape = (clt_shape)SHAPE(3, 1, 4);
    c = case_add(list, &unsqueeze, "last", X(F(3, 4)));
    c->at.axis = -1, c->at.shape = (clt_shape)SHAPE(3, 4, 1);
}

static void add_upsamples(case_list *list) {
    add_resampled(list, (clt_shape)SHAPE(2, 3, 4, 5), 8, 10);
    add_resampled(list, (clt_shape)SHAPE(1, 2, 5, 3), 7, 7);
    add_resampled(list, (clt_shape)SHAPE(2, 1, 7, 6), 3, 6);
    add_resampled(list, (clt_shape)SHAPE(1, 3, 1, 4), 3, 1);
    add_axes(list);
    case_add(list, &upsample, "x2", X(F(2, 3, 4, 5)))->at.axis = 2;
    case_add(list, &upsample, "x3", X(F(1, 5, 1, 7)))->at.axis = 3;
    case_add(list, &upsample, "x1", X(F(2, 1, 3, 3)))->at.axis = 1;
}

static void add_pads(case_list *list) {
    const clt_shape two = SHAPE(3, 4);
    add_pad(list, "", (clt_shape)SHAPE(3), (int64_t[]){2}, (int64_t[]){1});
    add_pad(list, "before", two, (int64_t[]){0, 5}, (int64_t[]){0, 0});
    add_pad(list, "after", two, (int64_t[]){0, 0}, (int64_t[]){7, 0});
    add_pad(list, "nothing", two, (int64_t[]){0, 0}, (int64_t[]){0, 0});
    add_pad(list, "one", (clt_shape)SHAPE(1, 1), (int64_t[]){1, 1}, (int64_t[]){1, 1});
    add_pad(list, "all-sides", (clt_shape)SHAPE(2, 3, 2, 3), (int64_t[]){1, 2, 0, 1}, (int64_t[]){0, 1, 2, 1});
    add_pad(list, "", (clt_shape)SHAPE(1, 2, 1, 2, 1, 3, 1, 2), (int64_t[]){1, 0, 0, 1, 0, 0, 1, 0}, (int64_t[]){0, 0, 1, 0, 0, 2, 0, 1});
}

/* One shape to another, by views and by copies. */
static void add_shapes(case_list *list) {
    static const struct {
        const operation *op;
        const char *variant;
        clt_shape from, to;
    } all[] = {
        {&reshape, "one", SHAPE(3, 5), SHAPE(15)},
        {&reshape, "eight", SHAPE(4, 6), SHAPE(1, 2, 1, 2, 3, 1, 2, 1)},
        {&reshape, "rest-first", SHAPE(4, 6), SHAPE(-1, 3)},
        {&reshape, "rest-last", SHAPE(4, 6), SHAPE(2, 4, -1)},
        {&reshape, "rest-1", SHAPE(4, 6), SHAPE(4, -1, 6)},
        {&reshape, "itself", SHAPE(4, 6), SHAPE(4, 6)},
        {&reshape, "to-scalar", SHAPE(1, 1), {0}},
        {&reshape, "of-scalar", {0}, SHAPE(1, 1, 1)},
        {&flatten, "", SHAPE(2, 3), SHAPE(2, 3)},
        {&flatten, "", SHAPE(5), SHAPE(5, 1)},
        {&expand, "leading", SHAPE(3, 4), SHAPE(2, 5, 3, 4)},
        {&expand, "row", SHAPE(1, 7), SHAPE(5, 7)},
        {&expand, "column", SHAPE(5, 1), SHAPE(5, 7)},
        {&expand, "middle", SHAPE(2, 1, 3), SHAPE(2, 4, 3)},
        {&expand, "several", SHAPE(1, 3, 1, 2), SHAPE(4, 3, 5, 2)},
        {&expand, "one", SHAPE(1), SHAPE(3, 4)},
        {&expand, "scalar", {0}, SHAPE(3, 4)},
        {&expand, "scalar-to-one", {0}, SHAPE(1)},
        {&expand, "itself", SHAPE(3, 4), SHAPE(3, 4)},
        {&expand, "leading-1", SHAPE(3, 4), SHAPE(1, 3, 4)},
        {&expand, "eight", SHAPE(1, 2, 1, 1, 2, 1, 3, 1), SHAPE(2, 2, 1, 3, 2, 2, 3, 2)},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) add_shaped(list, all[i].op, all[i].variant, all[i].from, all[i].to);
}

/* Six to eight dimensions of which no two can be taken for one, and whose sizes are no others' in the same half. */
static void add_many_dimensions(case_list *list) {
    const clt_shape eight = SHAPE(2, 3, 2, 3, 2, 4, 3, 2);
    const int reverse[] = {7, 6, 5, 4, 3, 2, 1, 0};
    add_permute(list, &permute, "reverse", eight, reverse, 0);
    of_bytes(add_permute(list, &permute, "u8", eight, reverse, 0));
    add_permute(list, &permute, "reverse", (clt_shape)SHAPE(2, 3, 2, 4, 3, 2), reverse + 2, 0)->full = true;
    add_permute(list, &permute, "turn", (clt_shape)SHAPE(3, 2, 4, 2, 3, 2, 5), (int[]){6, 3, 0, 4, 1, 5, 2}, 0)->full = true;
    add_shaped(list, &expand, "", (clt_shape)SHAPE(1, 3, 1, 4, 1, 3, 1, 2), (clt_shape)SHAPE(2, 3, 2, 4, 3, 3, 2, 2))->full = true;
    add_shaped(list, &expand, "", (clt_shape)SHAPE(3, 1, 4, 1, 2), (clt_shape)SHAPE(2, 3, 2, 4, 3, 2))->full = true;
    add_pad(list, "all-sides", (clt_shape)SHAPE(2, 3, 1, 2, 3, 2, 2), (int64_t[]){1, 0, 1, 0, 1, 0, 1}, (int64_t[]){0, 1, 0, 1, 0, 1, 0})
        ->full = true;
    add_slice(list, "step-2", (clt_shape)SHAPE(2, 3, 2, 7, 2, 3, 2), 3, 1, 6, 2)->full = true;
    test_case *c = case_add(list, &concat, "axis-4", X(F(2, 3, 2, 2, 1, 3, 2, 2), F(2, 3, 2, 2, 4, 3, 2, 2)));
    c->at.axis = 4;
    c->full = true;
}

/* The first rows of x[0], as many as x[1] has places along the axis. */
static double reference_slice_like(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    clt_shape shape = x[0].shape;
    shape.dims[0] = x[1].shape.dims[at->axis];
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = x[0].values[i];
    return (double)array_count(y);
}

BUILD(slice_like, clt_slice_like(x[0], clt_transpose(x[1], 0, 1), at->axis - 1))
static const operation slice_like = OPERATION("slice", "clt_slice_like", slice_like, slice_like, .ulp = 1);

/* Rows of more than a segment, and planes of more than a tile, of native kernels. */
static void cases_copies(case_list *list) {
    operand table[] = {{.variable = NULL, .shape = SHAPE(9, 3)}, {.shape = SHAPE(2, 5), .constant = true}};
    case_add(list, &slice_like, "like", table, 2)->at.axis = 1;
    add_permute(list, &transpose, "plane", (clt_shape)SHAPE(70, 131), (int[]){1, 0}, 0);
    add_permute(list, &transpose, "plane", (clt_shape)SHAPE(3, 66, 9), (int[]){0, 2, 1}, 1);
    add_permute(list, &permute, "plane", (clt_shape)SHAPE(2, 67, 3, 65), (int[]){0, 3, 2, 1}, 0)->full = true;
    add_permute(list, &permute, "heads", (clt_shape)SHAPE(2, 7, 3, 33), (int[]){0, 2, 1, 3}, 0);
    add_slice(list, "segments", (clt_shape)SHAPE(3, 9000), 1, 5, 8999, 1);
    add_slice(list, "segments", (clt_shape)SHAPE(2, 17000), 1, 1, 17000, 2)->full = true;
    case_add(list, &concat, "segments", X(F(2, 8200), F(2, 3)))->at.axis = 1;
    /* Elements that go several at once. */
    add_permute(list, &permute, "fours", (clt_shape)SHAPE(2, 7, 3, 20), (int[]){0, 2, 1, 3}, 0);
    add_slice(list, "fours", (clt_shape)SHAPE(5, 24), 1, 8, 20, 1);
    case_add(list, &concat, "fours", X(F(3, 8), F(3, 12)))->at.axis = 1;
    case_add(list, &concat, "pairs", X(F(3, 6), F(3, 8)))->at.axis = 1;
}

void cases_shape(case_list *list) {
    cases_copies(list);
    add_shaped(list, &reshape, "", (clt_shape)SHAPE(6, 35), (clt_shape)SHAPE(2, 3, 5, 7));
    add_shaped(list, &reshape, "", (clt_shape)SHAPE(1), (clt_shape)SHAPE(1, 1, 1))->full = true;
    add_shaped(list, &flatten, "", (clt_shape)SHAPE(3, 2, 5), (clt_shape)SHAPE(3, 10));
    add_shaped(list, &expand, "", (clt_shape)SHAPE(3, 1, 7), (clt_shape)SHAPE(2, 3, 5, 7));
    add_shaped(list, &expand, "", (clt_shape)SHAPE(1), (clt_shape)SHAPE(1031))->full = true;
    add_permute(list, &permute, "nhwc", (clt_shape)SHAPE(2, 3, 5, 7), (int[]){0, 2, 3, 1}, 0);
    add_permute(list, &permute, "reverse", (clt_shape)SHAPE(2, 3, 1, 5, 7), (int[]){4, 3, 2, 1, 0}, 0)
        ->full = true;
    add_permute(list, &permute, "reverse", (clt_shape)SHAPE(2, 3, 2, 5, 3), (int[]){4, 3, 2, 1, 0}, 0);
    add_permute(list, &transpose, "", (clt_shape)SHAPE(37, 29), (int[]){1, 0}, 0);
    add_permute(list, &transpose, "", (clt_shape)SHAPE(2, 129, 7), (int[]){0, 2, 1}, 1)->full = true;
    case_add(list, &concat, "axis-1", X(F(3, 2, 5), F(3, 1, 5), F(3, 7, 5)))->at.axis = 1;
    test_case *c = case_add(list, &concat, "axis-0", X(F(1), F(1031)));
    c->full = true;
    add_slice(list, "", (clt_shape)SHAPE(5, 11), 1, 2, 9, 1);
    add_slice(list, "step-3", (clt_shape)SHAPE(4, 17, 3), 1, 1, -2, 3);
    add_slice(list, "one", (clt_shape)SHAPE(7, 3), 0, -1, 7, 1)->full = true;
    add_slice(list, "long", (clt_shape)SHAPE(1031), 0, 3, 1029, 2)->full = true;
    add_pad(list, "", (clt_shape)SHAPE(3, 5), (int64_t[]){1, 0}, (int64_t[]){0, 2});
    add_pad(list, "image", (clt_shape)SHAPE(2, 3, 7, 5), (int64_t[]){0, 0, 1, 2},
            (int64_t[]){0, 0, 3, 0})
        ->full = true;
    add_pad(list, "all-sides", (clt_shape)SHAPE(2, 3, 2, 3, 2), (int64_t[]){1, 0, 2, 0, 1}, (int64_t[]){0, 1, 0, 2, 1});
    add_bytes(list);
    add_integers(list);
    add_many_dimensions(list);
    add_shapes(list);
    add_permutations(list);
    add_concats(list);
    add_slices(list);
    add_upsamples(list);
    add_pads(list);
}
