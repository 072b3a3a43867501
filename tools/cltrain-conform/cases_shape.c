/* What moves values, draws them, or comes from the caller. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>
#include <string.h>

BUILD(reshape, clt_neg(clt_reshape(clt_neg(x[0]), at->shape)))
BUILD(flatten, clt_neg(clt_flatten(clt_neg(x[0]))))
BUILD(permute, clt_permute(x[0], at->order))
BUILD(transpose, clt_transpose(x[0], at->axis, -1))
BUILD(concat, clt_concat(x, n, at->axis))
BUILD(slice, clt_slice(x[0], at->axis, at->first, at->last, at->step))
BUILD(pad, clt_pad(x[0], at->before, at->after, at->s[0]))
BUILD(expand, clt_expand(x[0], at->shape))
BUILD(dropout, clt_dropout(x[0], at->s[0]))
BUILD(dropout_twice, clt_dropout(clt_dropout(x[0], at->s[0]), at->s[0]))
BUILD(embedding, clt_embedding(x[0], "w", at->first, at->last))

static const char user_source[] =
    "kernel void forward(global const float *a, global const float *b, global float *y, int count, float s) {\n"
    "    int i = get_global_id(0);\n    if (i < count) y[i] = s * a[i] * b[i] + b[i] * b[i];\n}\n"
    "kernel void backward_a(global const float *a, global const float *b, global const float *y,\n"
    "                       global const float *dy, global float *dx, int count, float s) {\n"
    "    int i = get_global_id(0);\n    if (i < count) dx[i] = dy[i] * s * b[i];\n}\n"
    "kernel void backward_b(global const float *a, global const float *b, global const float *y,\n"
    "                       global const float *dy, global float *dx, int count, float s) {\n"
    "    int i = get_global_id(0);\n    if (i < count) dx[i] = dy[i] * (s * a[i] + 2.0f * b[i]);\n}\n";

static const clt_user_op user_op = {.name = "conform",
                                    .source = user_source,
                                    .n_inputs = 2,
                                    .forward = "forward",
                                    .backward = {"backward_a", "backward_b"}};
BUILD(user, clt_apply(&user_op, x, at->s, 1))

#define OP(word)                                                                                        \
    {                                                                                                   \
        .name = #word, .builders = "clt_" #word, .build = build_##word, .reference = reference_##word,  \
        .ulp = 1                                                                                        \
    }
static const operation reshape = OP(reshape), permute = OP(permute), concat = OP(concat),
                       slice = OP(slice), pad = OP(pad), expand = OP(expand), embedding = OP(embedding);
/* An index that is no row gives NaN, and nothing to the table; a gradient that is NaN goes to its row alone. */
static const operation embedding_nan = {.name = "embedding",
                                        .builders = "clt_embedding",
                                        .build = build_embedding,
                                        .reference = reference_embedding,
                                        .gradient = reference_embedding_gradient,
                                        .ulp = 1};
static const operation flatten = {.name = "flatten",
                                  .builders = "clt_flatten",
                                  .build = build_flatten,
                                  .reference = reference_reshape,
                                  .ulp = 1};
static const operation transpose = {.name = "transpose",
                                    .builders = "clt_transpose",
                                    .build = build_transpose,
                                    .reference = reference_permute,
                                    .ulp = 1};
static const operation dropout = {.name = "dropout",
                                  .builders = "clt_dropout",
                                  .build = build_dropout,
                                  .reference = reference_dropout};
static const operation dropout_twice = {.name = "dropout",
                                        .builders = "clt_dropout",
                                        .build = build_dropout_twice,
                                        .reference = reference_dropout_twice};
static const operation user = {
    .name = "user", .builders = "clt_apply", .build = build_user, .reference = reference_user};

static test_case *add_permute(case_list *list, const operation *op, const char *variant, clt_shape shape,
                              const int *order, int axis) {
    operand x = {.shape = shape};
    test_case *c = case_add(list, op, variant, &x, 1);
    c->at.axis = axis;
    memcpy(c->at.order, order, (size_t)shape.rank * sizeof *order);
    return c;
}

static test_case *add_shaped(case_list *list, const operation *op, const char *variant, clt_shape from, clt_shape to) {
    operand x = {.shape = from};
    test_case *c = case_add(list, op, variant, &x, 1);
    c->at.shape = to;
    return c;
}

static test_case *add_slice(case_list *list, const char *variant, clt_shape shape, int axis, int first,
                            int last, int step) {
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

static test_case *add_embedding(case_list *list, const char *variant, clt_shape indices, int count,
                                int width, double low, double high) {
    operand x[] = {{.dtype = CLT_I32, .shape = indices, .low = low, .high = high},
                   {.variable = "w.weight", .shape = SHAPE(count, width)}};
    test_case *c = case_add(list, &embedding, variant, x, 2);
    c->at.first = count, c->at.last = width;
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

static void add_moves(case_list *list) {
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
    add_many_dimensions(list);
}

void cases_shape(case_list *list) {
    add_moves(list);
    add_embedding(list, "", (clt_shape)SHAPE(37), 11, 5, 0, 11);
    add_embedding(list, "repeated", (clt_shape)SHAPE(3, 129), 2, 7, 0, 2)->full = true;
    add_embedding(list, "one", (clt_shape)SHAPE(1), 1, 1, 0, 1)->full = true;
    /* More rounds than a work-item may make (see cl/prelude.cl). */
    test_case *many = add_embedding(list, "many", (clt_shape)SHAPE(70001), 5, 3, 0, 5);
    many->full = many->large = true;
    test_case *outside = add_embedding(list, "outside", (clt_shape)SHAPE(37), 11, 5, -3, 15);
    outside->operation = &embedding_nan;
    add_embedding(list, "wide", (clt_shape)SHAPE(37), 11, 259, 0, 11)->full = true;
    test_case *broken = add_embedding(list, "not-finite", (clt_shape)SHAPE(37), 11, 5, 0, 11);
    broken->operation = &embedding_nan;
    broken->seed_special = NAN;
    for (int i = 0; i < 4; i++) {
        operand x = {.shape = {2, {i < 2 ? 7 : 1, i < 2 ? 29 : 1031}}};
        test_case *c = case_add(list, &dropout, i % 2 ? "evaluation" : "", &x, 1);
        c->at.s[0] = i < 2 ? 0.5f : 0.1f;
        c->evaluation = i % 2;
        c->full = i > 1;
    }
    case_add(list, &dropout_twice, "twice", X(F(7, 29)))->at.s[0] = 0.5f;
    case_add(list, &user, "", X(F(1031), F(1031)))->at.s[0] = 0.5f;
    case_add(list, &user, "", X(F(1), F(1)))->full = true;
}
