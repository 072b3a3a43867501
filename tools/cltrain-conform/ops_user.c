/* Ops that the caller brings. */
#include "tools/cltrain-conform/cases.h"

#include <math.h>

/* y = s0 a b + b^2, by kernels of the caller's. */
static double reference_user(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++)
        y->values[i] = (double)at->s[0] * x[0].values[i] * x[1].values[i] + x[1].values[i] * x[1].values[i];
    return 4.0 * (double)array_count(y);
}

/* Once more, of the tangent of that. */
static double reference_user_twice(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    double work = reference_user(x, n, y, at, evaluation), b;
    for (int64_t i = 0; i < array_count(y); i++) {
        b = x[1].values[i];
        y->values[i] = 2 * tanh(y->values[i]) * b + b * b;
    }
    return work;
}

/* Sums of pairs along the last dimension, of that. */
static double reference_pairs(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    array inner = {.values = NULL};
    double work = reference_user(x, n, &inner, at, evaluation);
    array_resize(y, (clt_shape)SHAPE(x->shape.dims[0], x->shape.dims[1] / 2));
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = inner.values[2 * i] + 3 * inner.values[2 * i + 1];
    array_free(&inner);
    return work;
}

/* x + k, weighed by k + 1, for k below 8. */
static double reference_widest(const array *x, int n, array *y, const attributes *at, bool evaluation) {
    (void)n, (void)at, (void)evaluation;
    array_resize(y, x->shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = 36 * x->values[i] + 168;
    return (double)array_count(y);
}

/* ---- cases ---- */

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
BUILD(user_twice, clt_apply(&user_op, (clt_tensor *[]){clt_tanh(clt_apply(&user_op, x, at->s, 1)), x[1]}, (float[]){2}, 1))

static clt_status pair_shape(const clt_shape *inputs, int n_inputs, clt_shape *result, void *data) {
    (void)n_inputs, (void)data;
    *result = (clt_shape)SHAPE(inputs[0].dims[0], inputs[0].dims[1] / 2);
    return CLT_OK;
}

/* Another shape; and a program of its own, with kernels of the same names. */
static const clt_user_op pairs_op = {
    .name = "pairs",
    .source = "kernel void forward(global const float *x, global float *y, int count) {\n"
              "    int i = get_global_id(0);\n    if (i < count) y[i] = x[2 * i] + 3 * x[2 * i + 1];\n}\n"
              "kernel void backward_a(global const float *x, global const float *y, global const float *dy,\n"
              "                       global float *dx, int count) {\n"
              "    int i = get_global_id(0);\n    if (i < count) dx[i] = (i % 2 ? 3 : 1) * dy[i / 2];\n}\n",
    .n_inputs = 1,
    .shape = pair_shape,
    .forward = "forward",
    .backward = {"backward_a"}};
BUILD(pairs, clt_apply(&pairs_op, (clt_tensor *[]){clt_apply(&user_op, x, at->s, 1)}, NULL, 0))

/* As many operands and scalars as there may be. */
static const clt_user_op widest_op = {
    .name = "widest",
    .source = "kernel void forward(global const float *x0, global const float *x1, global const float *x2,\n"
              "    global const float *x3, global const float *x4, global const float *x5, global const float *x6,\n"
              "    global const float *x7, global float *y, int count, float s0, float s1, float s2, float s3,\n"
              "    float s4, float s5, float s6, float s7) {\n"
              "    int i = get_global_id(0);\n    if (i >= count) return;\n"
              "    y[i] = s0 * x0[i] + s1 * x1[i] + s2 * x2[i] + s3 * x3[i] + s4 * x4[i] + s5 * x5[i] + s6 * x6[i]\n"
              "           + s7 * x7[i];\n}\n",
    .n_inputs = 8,
    .forward = "forward"};

static clt_tensor *widest(clt_tensor *x) {
    clt_tensor *all[8];
    float weights[8];
    for (int k = 0; k < 8; k++) all[k] = clt_add_scalar(x, (float)k), weights[k] = (float)(k + 1);
    return clt_apply(&widest_op, all, weights, 8);
}
BUILD(widest, widest(x[0]))

static const operation user = OPERATION("user", "clt_apply", user, user);
static const operation user_twice = OPERATION("user", "clt_apply", user_twice, user_twice);
static const operation user_pairs = OPERATION("user", "clt_apply", pairs, pairs);
static const operation user_widest = OPERATION("user", "clt_apply", widest, widest, .no_gradient = true);

void cases_user(case_list *list) {
    case_add(list, &user, "", X(F(1031), F(1031)))->at.s[0] = 0.5f;
    case_add(list, &user, "", X(F(1), F(1)))->full = true;
    case_add(list, &user_twice, "twice", X(F(33), F(33)))->at.s[0] = 0.5f;
    case_add(list, &user_pairs, "pairs", X(F(5, 6), F(5, 6)))->at.s[0] = 0.5f;
    case_add(list, &user_widest, "widest", X(F(37)));
}
