/* Reverse-mode differentiation of whole graphs: sums over paths, and what has no gradient. */
#include "tests/ops/harness.h"

#include <math.h>

#include "runtime/ops/ops.h"

/* ---- graphs in which a tensor has several users ---- */

/* y = exp(x) tanh(x) + x */
static clt_tensor *build_diamond(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *x = inputs[0];
    return clt_add(clt_mul(clt_exp(x), clt_tanh(x)), x);
}

static void reference_diamond(const array *inputs, array *y, const void *context) {
    (void)context;
    array_resize(y, inputs[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) {
        double x = inputs[0].values[i];
        y->values[i] = exp(x) * tanh(x) + x;
    }
}

/* h = x w; y = h h + sum of h along a row, stretched: h has three users, two of them one op. */
static clt_tensor *build_shared(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *h = clt_matmul(inputs[0], inputs[1]);
    clt_reduce_options rows = CLT_AXES(1);
    rows.keep_dims = true;
    return clt_add(clt_mul(h, h), clt_sum(h, rows));
}

static void reference_shared(const array *inputs, array *y, const void *context) {
    (void)context;
    int64_t m = inputs[0].shape.dims[0], k = inputs[0].shape.dims[1], n = inputs[1].shape.dims[1];
    array_resize(y, CLT_SHAPE(m, n));
    for (int64_t i = 0; i < m; i++) {
        double row = 0;
        for (int64_t j = 0; j < n; j++) {
            double h = 0;
            for (int64_t l = 0; l < k; l++) h += inputs[0].values[i * k + l] * inputs[1].values[l * n + j];
            y->values[i * n + j] = h * h;
            row += h;
        }
        for (int64_t j = 0; j < n; j++) y->values[i * n + j] += row;
    }
}

/* Twenty doublings: 2^20 paths, which must be summed and not walked. */
static clt_tensor *build_ladder(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *x = clt_mul_scalar(inputs[0], 0x1p-20f);
    for (int i = 0; i < 20; i++) x = clt_add(x, x);
    return clt_tanh(x);
}

static void reference_ladder(const array *inputs, array *y, const void *context) {
    (void)context;
    array_resize(y, inputs[0].shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = tanh(inputs[0].values[i]);
}

/* One parameter in two layers, the second on the first's result through a view and a slice. */
static clt_tensor *build_tied(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    clt_tensor *h = clt_tanh(clt_matmul(inputs[0], inputs[1]));
    return clt_matmul(clt_slice(clt_reshape(h, CLT_SHAPE(4, 3)), 0, 0, 3, 2), inputs[1]);
}

static void multiply(const double *a, const double *b, int m, double *y) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 3; j++) {
            y[i * 3 + j] = 0;
            for (int k = 0; k < 3; k++) y[i * 3 + j] += a[i * 3 + k] * b[k * 3 + j];
        }
}

/* x is [2, 2, 3] and so is h, whose rows 0 and 2 of four are taken. */
static void reference_tied(const array *inputs, array *y, const void *context) {
    (void)context;
    double h[12], rows[6];
    multiply(inputs[0].values, inputs[1].values, 4, h);
    for (int i = 0; i < 6; i++) rows[i] = tanh(h[i < 3 ? i : i + 3]);
    array_resize(y, CLT_SHAPE(2, 3));
    multiply(rows, inputs[1].values, 2, y->values);
}

static const op_case cases[] = {
    {.name = "a diamond",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(3, 5)}},
     .build = build_diamond,
     .reference = reference_diamond},
    {.name = "three users",
     .n_inputs = 2,
     .inputs = {{.shape = OP_SHAPE(3, 5)}, {.shape = OP_SHAPE(5, 4)}},
     .build = build_shared,
     .reference = reference_shared},
    {.name = "a ladder of doublings",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(7)}},
     .build = build_ladder,
     .reference = reference_ladder},
    {.name = "tied weights",
     .n_inputs = 2,
     .inputs = {{.shape = OP_SHAPE(2, 2, 3)}, {.shape = OP_SHAPE(3, 3)}},
     .build = build_tied,
     .reference = reference_tied},
};

/* ---- what has no gradient ---- */

typedef struct fixture {
    clt_graph *graph;
    clt_tensor *x, *p, *q, *seed;
} fixture;

static fixture new_fixture(void) {
    fixture f;
    assert_ok(clt_graph_create(&f.graph));
    f.x = clt_input(f.graph, "x", CLT_F32, CLT_SHAPE(3));
    f.p = clt_parameter(f.graph, "p", CLT_SHAPE(3), (clt_init){0});
    f.q = clt_parameter(f.graph, "q", CLT_SHAPE(3), (clt_init){0});
    f.seed = clt_input(f.graph, "seed", CLT_F32, CLT_SHAPE(3));
    return f;
}

static void unused_parameters_have_none(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *y = clt_mul(f.x, f.p), *unread = clt_mul(f.x, f.q), *wrt[] = {f.q, f.p, f.q};
    clt_tensor *grads[] = {f.x, NULL, f.x};
    assert_ok(clt_gradients(y, f.seed, wrt, 3, grads));
    assert_null(grads[0]);
    assert_non_null(grads[1]);
    assert_null(grads[2]);
    assert_true(clt_tensor_valid(unread));
    clt_graph_destroy(f.graph);
}

static void loss_is_its_own_gradient(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *grad;
    assert_ok(clt_gradients(f.p, f.seed, &f.p, 1, &grad));
    assert_ptr_equal(grad, f.seed);
    clt_graph_destroy(f.graph);
}

static void seed_must_fit(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *grad;
    assert_status(clt_gradients(clt_sum(f.p, CLT_ALL_AXES), f.seed, &f.p, 1, &grad), CLT_E_SHAPE);
    assert_detail("[3]");
    assert_detail("[]");
    clt_graph_destroy(f.graph);
}

static void ops_without_gradient_are_refused(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *grad;
    clt_tensor *y = clt_cast(clt_cast(clt_exp(f.p), CLT_I32), CLT_F32);
    assert_status(clt_gradients(y, f.seed, &f.p, 1, &grad), CLT_E_UNSUPPORTED);
    assert_detail("cast");
    clt_graph_destroy(f.graph);
    f = new_fixture();
    assert_status(clt_gradients(clt_equal(f.p, f.x), f.seed, &f.p, 1, &grad), CLT_E_UNSUPPORTED);
    assert_detail("equal");
    clt_graph_destroy(f.graph);
}

/* An op without gradient is no matter where no parameter lies behind it. */
static void ops_without_gradient_beside_the_path(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *grad, *bytes = clt_input(f.graph, "bytes", CLT_U8, CLT_SHAPE(3));
    clt_tensor *y = clt_mul(clt_mul_scalar(clt_cast(bytes, CLT_F32), 1 / 255.0f), f.p);
    assert_ok(clt_gradients(y, f.seed, &f.p, 1, &grad));
    assert_non_null(grad);
    assert_ok(clt_graph_status(f.graph));
    clt_graph_destroy(f.graph);
}

/* Nodes grow with the number of ops, not of paths. */
static void ladder_is_short(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *x = f.p, *grad;
    for (int i = 0; i < 60; i++) x = clt_mul(x, x);
    size_t before = f.graph->n_nodes;
    assert_ok(clt_gradients(x, f.seed, &f.p, 1, &grad));
    assert_true(f.graph->n_nodes - before <= 60 * 4);
    clt_graph_destroy(f.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_parameters_have_none),
        cmocka_unit_test(loss_is_its_own_gradient),
        cmocka_unit_test(seed_must_fit),
        cmocka_unit_test(ops_without_gradient_are_refused),
        cmocka_unit_test(ops_without_gradient_beside_the_path),
        cmocka_unit_test(ladder_is_short),
    };
    return op_main("gradients", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
