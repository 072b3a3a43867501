/* Operations and least bytes of nodes, counted by hand. */
#include "tests/support.h"

#include <stdio.h>

#include "runtime/ops/ops.h"

static clt_graph *graph;

static int set_up(void **state) {
    (void)state;
    return clt_graph_create(&graph) < 0;
}

static int tear_down(void **state) {
    (void)state;
    clt_graph_destroy(graph);
    return 0;
}

static clt_tensor *input(clt_shape shape) {
    static int made;
    char name[32];
    snprintf(name, sizeof name, "x%d", made++);
    return clt_input(graph, name, CLT_F32, shape);
}

static void expect(const clt_tensor *node, double flops, double bytes) {
    assert_ok(clt_graph_status(graph));
    clt_cost cost = clt_node_cost(node);
    if (cost.flops == flops && cost.bytes == bytes) return;
    fail_msg("%s: %g operations, %g bytes instead of %g, %g", clt_node_name(node), cost.flops, cost.bytes, flops, bytes);
}

static void products(void **state) {
    (void)state;
    clt_matmul_options transposed = {.transpose_a = true};
    expect(clt_matmul(input(CLT_SHAPE(3, 5)), input(CLT_SHAPE(5, 7))), 2 * 3 * 5 * 7, 4 * (15 + 35 + 21));
    expect(clt_matmul_with(input(CLT_SHAPE(5, 3)), input(CLT_SHAPE(5, 7)), transposed), 2 * 3 * 5 * 7, 4 * (15 + 35 + 21));
    expect(clt_matmul(input(CLT_SHAPE(2, 3, 5)), input(CLT_SHAPE(2, 5, 7))), 2 * 2 * 3 * 5 * 7, 8 * (15 + 35 + 21));
}

/* All directions of a convolution do the same products. */
static void convolutions(void **state) {
    (void)state;
    enum { B = 2, C = 6, O = 4, G = 2, OUT = 5 };
    clt_shape x_shape = CLT_SHAPE(B, C, 10, 10), w_shape = CLT_SHAPE(O, C / G, 3, 3), y_shape = CLT_SHAPE(B, O, OUT, OUT);
    clt_conv2d_attributes at = {3, 3, 2, 2, 1, 1, 1, 1, G, .result = x_shape};
    clt_tensor *x = input(x_shape), *w = input(w_shape), *dy = input(y_shape);
    double flops = 2.0 * B * O * OUT * OUT * (C / G) * 9;
    double bytes = 4.0 * (B * C * 100 + O * (C / G) * 9 + B * O * OUT * OUT);
    expect(clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){x, w}, 2), flops, bytes);
    expect(clt_node(NULL, &clt_op_conv2d_grad_input, &at, (clt_tensor *[]){w, dy}, 2), flops, bytes);
    at.result = w_shape;
    expect(clt_node(NULL, &clt_op_conv2d_grad_weight, &at, (clt_tensor *[]){x, dy}, 2), flops, bytes);
}

static void others(void **state) {
    (void)state;
    clt_tensor *x = input(CLT_SHAPE(4, 8)), *row = input(CLT_SHAPE(8));
    expect(clt_add(x, row), 32, 4 * (32 + 8 + 32));
    expect(clt_mul(x, x), 32, 4 * (32 + 32)); /* read once */
    expect(clt_slice(x, 1, 0, 2, 1), 0, 4 * 2 * 8);
    expect(clt_reshape(x, CLT_SHAPE(32)), 0, 4 * 32); /* makes no launch */
    expect(clt_max_pool2d(input(CLT_SHAPE(1, 2, 8, 8)), .kernel = 2), 2 * 16 * 4, 4 * (128 + 32));
    clt_tensor *p = input(CLT_SHAPE(1000)), *g = input(CLT_SHAPE(1000)), *hyper = input(CLT_SHAPE(8));
    clt_tensor *states[2] = {input(CLT_SHAPE(1000)), input(CLT_SHAPE(1000))}, *factor = input((clt_shape){0});
    clt_update_attributes at = {.beta1 = 0.9f};
    /* Parameters and both moments read and written, gradients read, and nine numbers. */
    expect(clt_update(&clt_op_adam, at, p, g, hyper, factor, states, 2), 14000, 4 * (7 * 1000 + 8 + 1));
    expect(x, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products, set_up, tear_down),
        cmocka_unit_test_setup_teardown(convolutions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
