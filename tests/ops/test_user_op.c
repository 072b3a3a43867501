/* Ops that the caller brings, with OpenCL C of their own. */
#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

#include <math.h>
#include <string.h>

/* ---- two operands and two scalars, with gradients: y = s0 a^2 b + s1 ---- */

static const clt_user_op cubic = {
    .name = "cubic",
    .source =
        "kernel void forward(global const float *a, global const float *b, global float *y, int count, float s0,\n"
        "                    float s1) {\n"
        "    int i = get_global_id(0);\n"
        "    if (i >= count) return;\n"
        "    y[i] = s0 * a[i] * a[i] * b[i] + s1;\n"
        "}\n"
        "kernel void backward_a(global const float *a, global const float *b, global const float *y,\n"
        "                       global const float *dy, global float *da, int count, float s0, float s1) {\n"
        "    int i = get_global_id(0);\n"
        "    if (i >= count) return;\n"
        "    da[i] = dy[i] * 2 * s0 * a[i] * b[i];\n"
        "}\n"
        "kernel void backward_b(global const float *a, global const float *b, global const float *y,\n"
        "                       global const float *dy, global float *db, int count, float s0, float s1) {\n"
        "    int i = get_global_id(0);\n"
        "    if (i >= count) return;\n"
        "    db[i] = dy[i] * (y[i] - s1) / b[i];\n"
        "}\n",
    .n_inputs = 2,
    .forward = "forward",
    .backward = {"backward_a", "backward_b"},
};

static const float scalars[] = {1.5f, -0.25f};

static clt_tensor *build_cubic(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_apply(&cubic, inputs, scalars, 2);
}

static void reference_cubic(const array *inputs, array *y, const void *context) {
    (void)context;
    array_resize(y, inputs[0].shape);
    for (int64_t i = 0; i < array_count(y); i++)
        y->values[i] = 1.5 * inputs[0].values[i] * inputs[0].values[i] * inputs[1].values[i] - 0.25;
}

/* Twice, with scalars of their own, and other ops between. */
static clt_tensor *build_twice(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *inner = clt_apply(&cubic, inputs, scalars, 2);
    const float other[] = {0.5f, 2};
    return clt_apply(&cubic, (clt_tensor *[]){clt_tanh(inner), inputs[1]}, other, 2);
}

static void reference_twice(const array *inputs, array *y, const void *context) {
    reference_cubic(inputs, y, context);
    for (int64_t i = 0; i < array_count(y); i++) {
        double a = tanh(y->values[i]);
        y->values[i] = 0.5 * a * a * inputs[1].values[i] + 2;
    }
}

/* ---- a result of another shape: sums of neighbours along the last dimension ---- */

static clt_status pair_shape(const clt_shape *inputs, int n_inputs, clt_shape *result, void *user) {
    *(int *)user += 1;
    if (n_inputs != 1 || inputs[0].rank != 2 || inputs[0].dims[1] % 2) return CLT_E_SHAPE;
    *result = CLT_SHAPE(inputs[0].dims[0], inputs[0].dims[1] / 2);
    return CLT_OK;
}

static int shape_calls;

static const clt_user_op pairs = {
    .name = "pairs",
    .source = "kernel void forward(global const float *x, global float *y, int count) {\n"
              "    int i = get_global_id(0);\n"
              "    if (i < count) y[i] = x[2 * i] + 3 * x[2 * i + 1];\n"
              "}\n"
              "kernel void backward(global const float *x, global const float *y, global const float *dy,\n"
              "                     global float *dx, int count) {\n"
              "    int i = get_global_id(0);\n"
              "    if (i < count) dx[i] = (i % 2 ? 3 : 1) * dy[i / 2];\n"
              "}\n",
    .n_inputs = 1,
    .shape = pair_shape,
    .forward = "forward",
    .backward = {"backward"},
    .user = &shape_calls,
};

static clt_tensor *build_pairs(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_apply(&pairs, inputs, NULL, 0);
}

static void reference_pairs(const array *inputs, array *y, const void *context) {
    (void)context;
    clt_shape shape = inputs[0].shape;
    shape.dims[1] /= 2;
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++)
        y->values[i] = inputs[0].values[2 * i] + 3 * inputs[0].values[2 * i + 1];
}

#define CUBIC(label, size, builder, definition)                                  \
    {.name = label,                                                              \
     .n_inputs = 2,                                                              \
     .inputs = {{.shape = size}, {.shape = size, .low = 0.5, .high = 2}},        \
     .build = builder,                                                           \
     .reference = definition}
static const op_case cases[] = {
    CUBIC("scalars and two operands", OP_SHAPE(3, 5, 7), build_cubic, reference_cubic),
    CUBIC("one element", OP_SHAPE(1), build_cubic, reference_cubic),
    CUBIC("many elements", OP_SHAPE(1031), build_cubic, reference_cubic),
    CUBIC("twice, kernel names the same", OP_SHAPE(33), build_twice, reference_twice),
    {.name = "another shape",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(5, 6)}},
     .build = build_pairs,
     .reference = reference_pairs},
};

/* ---- two ops with the same kernel names in one graph ---- */

static clt_tensor *build_both(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    clt_tensor *wide = build_cubic(graph, inputs, context);
    return clt_apply(&pairs, &wide, NULL, 0);
}

static void programs_are_separate(void **state) {
    (void)state;
    static const float a[] = {1, 2}, b[] = {3, 1};
    /* 1.5 * 1 * 3 - 0.25 = 4.25; 1.5 * 4 * 1 - 0.25 = 5.75 */
    op_expect(&(op_case){.name = "two programs",
                         .n_inputs = 2,
                         .inputs = {{.shape = OP_SHAPE(1, 2), .values = a}, {.shape = OP_SHAPE(1, 2), .values = b}},
                         .build = build_both,
                         .seed = (const float[]){1}},
              (double[]){4.25 + 3 * 5.75},
              (const double *[]){(double[]){2 * 1.5 * 3, 3 * 2 * 1.5 * 2}, (double[]){1.5, 3 * 1.5 * 4}});
}

/* ---- as many operands and scalars as there may be ---- */

static const clt_user_op widest = {
    .name = "widest",
    .source =
        "kernel void forward(global const float *x0, global const float *x1, global const float *x2,\n"
        "                    global const float *x3, global const float *x4, global const float *x5,\n"
        "                    global const float *x6, global const float *x7, global float *y, int count, float s0,\n"
        "                    float s1, float s2, float s3, float s4, float s5, float s6, float s7) {\n"
        "    int i = get_global_id(0);\n"
        "    if (i >= count) return;\n"
        "    y[i] = s0 * x0[i] + s1 * x1[i] + s2 * x2[i] + s3 * x3[i] + s4 * x4[i] + s5 * x5[i] + s6 * x6[i]\n"
        "           + s7 * x7[i];\n"
        "}\n",
    .n_inputs = 8,
    .forward = "forward",
};

/* Operand k is x + k. */
static clt_tensor *build_widest(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *xs[8];
    const float weights[] = {1, 10, 100, 1000, 1e4f, 1e5f, 1e6f, 1e7f};
    for (int k = 0; k < 8; k++) xs[k] = clt_add_scalar(inputs[0], (float)k);
    return clt_apply(&widest, xs, weights, 8);
}

static void most_operands(void **state) {
    (void)state;
    static const float x[] = {0, 1};
    op_expect(&(op_case){.name = "8 operands",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(2), .values = x}},
                         .build = build_widest,
                         .no_gradient = true},
              (double[]){76543210, 87654321}, NULL);
}

/* ---- errors ---- */

/* A graph of one input and one op; its status after building and compiling. */
static clt_status status_of(const clt_user_op *op, const float *s, int n_scalars) {
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan = NULL;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(3, 5));
    clt_tensor *y = clt_apply(op, (clt_tensor *[]){x, x, x, x, x, x, x, x, x, x}, s, n_scalars);
    clt_status status = clt_graph_status(graph);
    if (status == CLT_OK) {
        assert_ok(clt_store_create(op_device(), &store));
        status = clt_plan_compile(&plan, &(clt_plan_options){.device = op_device(),
                                                             .store = store,
                                                             .graph = graph,
                                                             .targets = &y,
                                                             .n_targets = 1});
        clt_plan_destroy(plan);
        clt_store_destroy(store);
    }
    clt_graph_destroy(graph);
    return status;
}

static void source_that_does_not_build(void **state) {
    (void)state;
    clt_user_op op = {.name = "broken", .n_inputs = 1, .forward = "forward"};
    op.source = "kernel void forward(global const float *x, global float *y, int count) {\n"
                "    y[get_global_id(0)] = no_such_name;\n"
                "}\n";
    for (int again = 0; again < 2; again++) {
        assert_status(status_of(&op, NULL, 0), CLT_E_BUILD);
        assert_detail("broken");
        assert_detail("no_such_name");
    }
    /* The device is as good as before. */
    assert_ok(status_of(&cubic, scalars, 2));
}

static void kernel_that_is_not_there(void **state) {
    (void)state;
    clt_user_op op = cubic;
    op.forward = "no_such_kernel";
    assert_true(status_of(&op, scalars, 2) < 0);
    assert_detail("no_such_kernel");
}

static void shapes_refused(void **state) {
    (void)state;
    shape_calls = 0;
    assert_status(status_of(&pairs, NULL, 0), CLT_E_SHAPE);
    assert_detail("pairs");
    assert_true(shape_calls > 0);
}

static void arguments_checked(void **state) {
    (void)state;
    clt_user_op op = cubic;
    op.n_inputs = CLT_USER_OP_MAX_INPUTS + 1;
    assert_status(status_of(&op, scalars, 2), CLT_E_INVALID);
    assert_detail("cubic");
    op = cubic;
    op.forward = NULL;
    assert_status(status_of(&op, scalars, 2), CLT_E_INVALID);
    op = cubic;
    op.source = NULL;
    assert_status(status_of(&op, scalars, 2), CLT_E_INVALID);
    assert_status(status_of(&cubic, scalars, CLT_USER_OP_MAX_SCALARS + 1), CLT_E_INVALID);
    assert_status(status_of(&cubic, NULL, 2), CLT_E_INVALID);
    assert_status(status_of(&cubic, scalars, -1), CLT_E_INVALID);
    assert_null(clt_apply(NULL, NULL, NULL, 0));
    assert_null(clt_apply(&cubic, (clt_tensor *[]){NULL, NULL}, scalars, 2));
}

static void gradient_missing(void **state) {
    (void)state;
    clt_graph *graph;
    clt_user_op op = cubic;
    op.backward[1] = NULL;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *a = clt_input(graph, "a", CLT_F32, CLT_SHAPE(4)), *b = clt_input(graph, "b", CLT_F32, CLT_SHAPE(4));
    clt_tensor *seed = clt_input(graph, "seed", CLT_F32, CLT_SHAPE(4)), *grads[2];
    clt_tensor *y = clt_apply(&op, (clt_tensor *[]){a, b}, scalars, 2);
    assert_ok(clt_gradients(y, seed, &a, 1, grads));
    assert_non_null(grads[0]);
    assert_status(clt_gradients(y, seed, &b, 1, grads), CLT_E_UNSUPPORTED);
    assert_detail("cubic");
    clt_graph_destroy(graph);
}

/* The graph keeps what it needs of the description. */
static void description_is_copied(void **state) {
    (void)state;
    char *source = clt_strdup(cubic.source), *name = clt_strdup(cubic.name), *forward = clt_strdup(cubic.forward);
    assert_true(source && name && forward);
    clt_user_op op = {.name = name, .source = source, .n_inputs = 2, .forward = forward};
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2));
    float own[] = {2, 1};
    clt_tensor *y = clt_apply(&op, (clt_tensor *[]){x, x}, own, 2);
    memset(source, 'x', strlen(source));
    memset(name, 'x', strlen(name));
    memset(forward, 'x', strlen(forward));
    own[0] = own[1] = 99;
    clt_free(source), clt_free(name), clt_free(forward);
    assert_ok(clt_store_create(op_device(), &store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = op_device(),
                                                          .store = store,
                                                          .graph = graph,
                                                          .targets = &y,
                                                          .n_targets = 1}));
    const float values[] = {2, -1};
    float got[2];
    assert_ok(clt_plan_feed(plan, x, values));
    assert_ok(clt_plan_run(plan, CLT_PLAN_ALL));
    assert_ok(clt_plan_read(plan, y, got, sizeof got));
    assert_true(got[0] == 17 && got[1] == -1);
    clt_plan_destroy(plan);
    clt_store_destroy(store);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_separate),
        cmocka_unit_test(most_operands),
        cmocka_unit_test(source_that_does_not_build),
        cmocka_unit_test(kernel_that_is_not_there),
        cmocka_unit_test(shapes_refused),
        cmocka_unit_test(arguments_checked),
        cmocka_unit_test(gradient_missing),
        cmocka_unit_test(description_is_copied),
    };
    return op_main("user_op", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
