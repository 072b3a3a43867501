/* Reductions, softmax and losses. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

BUILD(sum, clt_sum(x[0], at->reduce))
BUILD(mean, clt_mean(x[0], at->reduce))
BUILD(max, clt_max(x[0], at->reduce))
BUILD(softmax, clt_softmax(x[0], at->axis))
BUILD(log_softmax, clt_log_softmax(x[0], at->axis))
BUILD(cross_entropy, clt_cross_entropy(x[0], x[1]))
BUILD(bce_with_logits, clt_bce_with_logits(x[0], x[1]))
BUILD(mse_loss, clt_mse_loss(x[0], x[1]))

#define OP(word) {.name = #word, .builders = "clt_" #word, .build = build_##word, .reference = reference_##word}
const operation operation_sum = OP(sum);
static const operation mean = OP(mean), max = OP(max), softmax = OP(softmax),
                       log_softmax = OP(log_softmax), cross_entropy = OP(cross_entropy),
                       bce = OP(bce_with_logits), mse = OP(mse_loss);
/* One NaN hides all others in a mean, and in its differences; the gradient tells rows apart. */
static const operation cross_entropy_no_class = {.name = "cross_entropy",
                                                 .builders = "clt_cross_entropy",
                                                 .build = build_cross_entropy,
                                                 .reference = reference_cross_entropy,
                                                 .gradient = reference_cross_entropy_gradient};

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

/* One target of many that is no class: the one next to the classes on either side. */
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
    }
}

/* What is not finite: NaN goes through a maximum, and a masked logit has no probability. */
static void add_not_finite(case_list *list) {
    const operation *ops[] = {&softmax, &log_softmax};
    operand x = {.shape = SHAPE(7, 13), .special = {NAN, INFINITY, -INFINITY}, .n_special = 3, .constant = true};
    case_add(list, &max, "not-finite", &x, 1)->at.reduce = CLT_AXES(1);
    x.shape = (clt_shape)SHAPE(1031);
    case_add(list, &max, "not-finite", &x, 1)->full = true;
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

static void add_pairs(case_list *list, bool full, clt_shape shape) {
    operand x[] = {{.shape = shape, .low = -6, .high = 6}, {.shape = shape, .low = 0, .high = 1}};
    case_add(list, &bce, "", x, 2)->full = full;
    case_add(list, &mse, "", x, 2)->full = full;
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
    static double few[4 * 13], many[4 * 4099];
    add_largest(list, false, few, 13, (int[]){0, 12, 3, 4});
    add_largest(list, true, many, 4099, (int[]){0, 4098, 4095, 4096}); /* 4096 elements of a chunk */
    add_softmax(list, false, "rows", (clt_shape)SHAPE(5, 7), -1);
    add_softmax(list, false, "middle", (clt_shape)SHAPE(2, 11, 3), 1);
    add_softmax(list, false, "rows", (clt_shape)SHAPE(131, 37), -1); /* 4096 elements of an item */
    add_softmax(list, true, "columns", (clt_shape)SHAPE(13, 5), 0);
    add_softmax(list, true, "one", (clt_shape)SHAPE(3, 1), 1);
    add_softmax(list, true, "long", (clt_shape)SHAPE(3, 1031), 1);
    add_softmax(list, true, "many", (clt_shape)SHAPE(517, 3), 1);
    /* More rounds than a work-item may make (see cl/prelude.cl); 524288 elements of a group. */
    add_softmax(list, true, "far", (clt_shape)SHAPE(66001, 2), 0);
    add_softmax(list, true, "chunks", (clt_shape)SHAPE(530001, 2), 0);
    add_cross_entropy(list, false, 33, 10);
    add_cross_entropy(list, false, 131, 37);
    add_cross_entropy(list, true, 1, 1);
    add_cross_entropy(list, true, 3, 1031);
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
    add_pairs(list, true, (clt_shape)SHAPE(5, 3, 7));
}
