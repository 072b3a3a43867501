/* Ops that the caller brings, with OpenCL C of their own. */
#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

#include <string.h>

/* Two operands and two scalars, with gradients: y = s0 a^2 b + s1. */

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

/* A result of another shape: sums of neighbours along the last dimension. */

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

/* ---- errors ---- */

/* A graph of one input and one op; its status after building and compiling. */
static clt_status status_of(const clt_user_op *op, const float *s, int n_scalars) {
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan = NULL;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(3, 5));
    clt_tensor *y = clt_apply(op, (clt_tensor *[]){x, x, x, x, x, x, x, x, x, x}, s, n_scalars);
    clt_status status = clt_graph_status(graph);
    if (status == CLT_OK) {
        assert_ok(clt_state_store_create(op_device(), &store));
        status = clt_plan_compile(&plan, &(clt_plan_options){.device = op_device(),
                                                             .store = store,
                                                             .graph = graph,
                                                             .targets = &y,
                                                             .n_targets = 1});
        clt_plan_destroy(plan);
        clt_state_store_destroy(store);
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
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2));
    float own[] = {2, 1};
    clt_tensor *y = clt_apply(&op, (clt_tensor *[]){x, x}, own, 2);
    memset(source, 'x', strlen(source));
    memset(name, 'x', strlen(name));
    memset(forward, 'x', strlen(forward));
    own[0] = own[1] = 99;
    clt_free(source), clt_free(name), clt_free(forward);
    const float values[] = {2, -1};
    float got[2];
    op_compute(y, x, values, got);
    assert_true(got[0] == 17 && got[1] == -1);
    clt_graph_destroy(graph);
}

OP_MAIN("user_op", cmocka_unit_test(source_that_does_not_build), cmocka_unit_test(kernel_that_is_not_there),
        cmocka_unit_test(shapes_refused), cmocka_unit_test(arguments_checked), cmocka_unit_test(gradient_missing),
        cmocka_unit_test(description_is_copied))
