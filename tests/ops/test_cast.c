/* Conversions: toward zero, saturated. */
#include "tests/ops/harness.h"

typedef struct cast {
    clt_dtype dtype;
} cast;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_cast(inputs[0], ((const cast *)context)->dtype);
}

#define CAST(label, from, to, n, given)                                       \
    &(op_case) {                                                              \
        .name = label, .n_inputs = 1, .no_gradient = true, .tolerance = 1e-9, \
        .inputs = {{.dtype = from, .shape = OP_SHAPE(n), .values = given}},   \
        .build = build, .context = &(cast){to},                               \
    }

static void float_to_integers(void **state) {
    (void)state;
    static const float x[] = {-2.7f, -1, -0.5f, 0.5f, 2.7f, 255.9f, 300, 1e20f, -1e20f, 16777216};
    op_expect(CAST("f32 to i32", CLT_F32, CLT_I32, 10, x),
              (double[]){-2, -1, 0, 0, 2, 255, 300, INT32_MAX, INT32_MIN, 16777216}, NULL);
    op_expect(CAST("f32 to u8", CLT_F32, CLT_U8, 10, x), (double[]){0, 0, 0, 0, 2, 255, 255, 255, 0, 255}, NULL);
}

static void integers_to_float(void **state) {
    (void)state;
    static const float x[] = {-3, 0, 7, 16777216}, bytes[] = {0, 1, 128, 255};
    op_expect(CAST("i32 to f32", CLT_I32, CLT_F32, 4, x), (double[]){-3, 0, 7, 16777216}, NULL);
    op_expect(CAST("u8 to f32", CLT_U8, CLT_F32, 4, bytes), (double[]){0, 1, 128, 255}, NULL);
}

static void between_integers(void **state) {
    (void)state;
    static const float x[] = {-5, 0, 200, 300, 255}, bytes[] = {0, 1, 128, 255, 3};
    op_expect(CAST("i32 to u8", CLT_I32, CLT_U8, 5, x), (double[]){0, 0, 200, 255, 255}, NULL);
    op_expect(CAST("u8 to i32", CLT_U8, CLT_I32, 5, bytes), (double[]){0, 1, 128, 255, 3}, NULL);
}

static void to_its_own_type_is_itself(void **state) {
    (void)state;
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_U8, CLT_SHAPE(3));
    assert_ptr_equal(clt_cast(x, CLT_U8), x);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_to_integers),
        cmocka_unit_test(integers_to_float),
        cmocka_unit_test(between_integers),
        cmocka_unit_test(to_its_own_type_is_itself),
    };
    return op_main("cast", NULL, 0, tests, CLT_COUNT_OF(tests));
}
