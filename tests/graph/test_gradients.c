/* Reverse-mode differentiation of whole graphs: how much it adds, and what has no gradient. */
#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

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

static void whole_numbers_pass_no_gradient_on(void **state) {
    (void)state;
    fixture f = new_fixture();
    clt_tensor *grad;
    clt_tensor *y = clt_cast(clt_cast(clt_exp(f.p), CLT_I32), CLT_F32);
    assert_ok(clt_gradients(y, f.seed, &f.p, 1, &grad));
    assert_null(grad);
    clt_graph_destroy(f.graph);
    f = new_fixture();
    assert_ok(clt_gradients(clt_less(f.p, f.x), f.seed, &f.p, 1, &grad)); /* a comparison passes none on */
    assert_null(grad);
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

/* What lies between slices of f16 is f16 too. */
static void slices_of_halves_are_joined(void **state) {
    (void)state;
    clt_graph *graph;
    clt_tensor *grad;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *p = clt_parameter(graph, "p", CLT_SHAPE(8), (clt_init){0}), *h = clt_cast(p, CLT_F16);
    clt_tensor *y = clt_cast(clt_mul(clt_slice(h, 0, 1, 3, 1), clt_slice(h, 0, 5, 7, 1)), CLT_F32);
    clt_tensor *seed = clt_input(graph, "seed", CLT_F32, CLT_SHAPE(2));
    assert_ok(clt_gradients(y, seed, &p, 1, &grad));
    assert_non_null(grad);
    assert_true(clt_shape_equal(&grad->shape, &p->shape) && grad->dtype == CLT_F32);
    clt_graph_destroy(graph);
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

OP_MAIN("gradients", cmocka_unit_test(unused_parameters_have_none), cmocka_unit_test(loss_is_its_own_gradient),
        cmocka_unit_test(seed_must_fit), cmocka_unit_test(whole_numbers_pass_no_gradient_on),
        cmocka_unit_test(ops_without_gradient_beside_the_path), cmocka_unit_test(slices_of_halves_are_joined), cmocka_unit_test(ladder_is_short))
