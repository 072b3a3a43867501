#include "tests/support.h"

#include <string.h>

#include "runtime/exchange/onnx/fold.h"

static clt_arena arena;

static int begin(void **state) {
    (void)state;
    arena = (clt_arena){.limit = 1 << 24};
    return 0;
}

static int end(void **state) {
    (void)state;
    clt_arena_free(&arena);
    return 0;
}

static clt_literal *integers(clt_shape shape, const int64_t *values) {
    clt_literal *l;
    assert_ok(clt_literal_new(&arena, CLT_ONNX_INT64, &shape, &l));
    memcpy(l->integers, values, (size_t)l->elements * sizeof *values);
    return l;
}

#define LIST(...) integers(CLT_SHAPE((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), (int64_t[]){__VA_ARGS__})
#define SCALAR(value) integers((clt_shape){0}, (int64_t[]){value})

static clt_literal *floats(clt_shape shape, const float *values) {
    clt_literal *l;
    assert_ok(clt_literal_new(&arena, CLT_ONNX_FLOAT, &shape, &l));
    memcpy(l->floats, values, (size_t)l->elements * sizeof *values);
    return l;
}

static clt_onnx_attribute integer_attribute(const char *name, int64_t value) {
    return (clt_onnx_attribute){.name = name, .type = CLT_ONNX_A_INT, .i = value, .s = ""};
}

/* Up to four inputs, up to two outputs. */
static clt_literal *out[2];
static clt_status fold_with(const char *op, const clt_onnx_attribute *attributes, size_t n_attributes, clt_literal *a, clt_literal *b, clt_literal *c,
                            clt_literal *d) {
    clt_literal *in[] = {a, b, c, d};
    const char *const names[] = {"a", "b", "c", "d"};
    clt_onnx_node node = {.name = "", .op = op, .domain = "", .n_inputs = d ? 4 : c ? 3 : b ? 2 : a ? 1 : 0, .n_outputs = 1, .inputs = names, .outputs = names,
                          .n_attributes = n_attributes, .attributes = (clt_onnx_attribute *)(uintptr_t)attributes};
    if (!strcmp(op, "Split")) node.n_outputs = 2;
    clt_onnx_fold *fold = clt_onnx_fold_of(op);
    assert_non_null(fold);
    out[0] = out[1] = NULL;
    return fold(&(clt_onnx_folding){.arena = &arena, .node = &node, .opset = 17, .in = in, .out = out});
}

static clt_status fold(const char *op, clt_literal *a, clt_literal *b, clt_literal *c, clt_literal *d) {
    return fold_with(op, NULL, 0, a, b, c, d);
}

static void assert_values(clt_shape shape, const int64_t *values) {
    clt_literal wanted = {.type = out[0]->type, .shape = shape, .elements = clt_shape_elements(&shape), .integers = (int64_t *)(uintptr_t)values};
    assert_true(out[0]->type != CLT_ONNX_FLOAT && clt_literal_equal(out[0], &wanted));
}

static void test_arithmetic(void **state) {
    (void)state;
    assert_ok(fold("Add", integers(CLT_SHAPE(2, 1), (int64_t[]){1, 2}), LIST(10, 20, 30), NULL, NULL));
    assert_values(CLT_SHAPE(2, 3), (int64_t[]){11, 21, 31, 12, 22, 32});
    assert_ok(fold("Div", LIST(7, -7, INT64_MIN), LIST(2, 2, -1), NULL, NULL));
    assert_values(CLT_SHAPE(3), (int64_t[]){3, -3, INT64_MIN});
    assert_ok(fold("Mod", LIST(7, -7, 7, -7, INT64_MIN), LIST(3, 3, -3, -3, -1), NULL, NULL));
    assert_values(CLT_SHAPE(5), (int64_t[]){1, 2, -2, -1, 0});
    clt_onnx_attribute fmod = integer_attribute("fmod", 1);
    assert_ok(fold_with("Mod", &fmod, 1, LIST(7, -7), LIST(-3, 3), NULL, NULL));
    assert_values(CLT_SHAPE(2), (int64_t[]){1, -1});
    assert_ok(fold("Mul", LIST(INT64_MAX), LIST(2), NULL, NULL));
    assert_values(CLT_SHAPE(1), (int64_t[]){-2});
    assert_ok(fold("Pow", LIST(-3, 2, -1, 5), LIST(3, 62, -3, -1), NULL, NULL));
    assert_values(CLT_SHAPE(4), (int64_t[]){-27, (int64_t)1 << 62, -1, 0});
    assert_ok(fold("Max", LIST(1, 5), LIST(4, 2), SCALAR(3), NULL));
    assert_values(CLT_SHAPE(2), (int64_t[]){4, 5});
    assert_ok(fold("Clip", LIST(-7, 1, 9), SCALAR(0), SCALAR(5), NULL));
    assert_values(CLT_SHAPE(3), (int64_t[]){0, 1, 5});
    assert_ok(fold("Clip", LIST(-7, 1, 9), SCALAR(6), SCALAR(3), NULL));
    assert_values(CLT_SHAPE(3), (int64_t[]){3, 3, 3});
    assert_ok(fold("Clip", LIST(-7, 9), NULL, NULL, NULL));
    assert_values(CLT_SHAPE(2), (int64_t[]){-7, 9});
    assert_status(fold("Clip", LIST(-7, 9), LIST(1, 2), NULL, NULL), CLT_E_FORMAT);
    assert_ok(fold("Less", LIST(1, 5), SCALAR(3), NULL, NULL));
    assert_int_equal(out[0]->type, CLT_ONNX_BOOL);
    assert_values(CLT_SHAPE(2), (int64_t[]){1, 0});
    clt_literal *condition = out[0];
    assert_ok(fold("Where", condition, SCALAR(8), LIST(6, 7), NULL));
    assert_values(CLT_SHAPE(2), (int64_t[]){8, 7});
    clt_onnx_attribute to = integer_attribute("to", CLT_ONNX_INT32);
    assert_ok(fold_with("Cast", &to, 1, floats(CLT_SHAPE(4), (float[]){1.9f, -1.9f, 3e9f, -INFINITY}), NULL, NULL, NULL));
    assert_values(CLT_SHAPE(4), (int64_t[]){1, -1, INT32_MAX, INT32_MIN});
    assert_ok(fold("Add", out[0], out[0], NULL, NULL)); /* INT32 wraps around at 32 bits */
    assert_values(CLT_SHAPE(4), (int64_t[]){2, -2, -2, 0});

    assert_status(fold("Div", LIST(1), LIST(0), NULL, NULL), CLT_E_FORMAT);
    assert_status(fold("Mod", LIST(1), LIST(0), NULL, NULL), CLT_E_FORMAT);
    assert_status(fold("Add", LIST(1, 2), LIST(1, 2, 3), NULL, NULL), CLT_E_SHAPE);
    assert_detail("[2] and [3]");
    assert_status(fold("Add", LIST(1), floats(CLT_SHAPE(1), (float[]){1}), NULL, NULL), CLT_E_FORMAT);
    assert_status(fold("And", floats(CLT_SHAPE(1), (float[]){1}), floats(CLT_SHAPE(1), (float[]){1}), NULL, NULL), CLT_E_UNSUPPORTED);
    assert_status(fold("Add", LIST(1), NULL, NULL, NULL), CLT_E_FORMAT);
    assert_detail("input 1 is missing");
}

static void test_shapes(void **state) {
    (void)state;
    clt_literal *x = integers(CLT_SHAPE(2, 3), (int64_t[]){1, 2, 3, 4, 5, 6});
    assert_ok(fold("Reshape", x, LIST(0, -1), NULL, NULL));
    assert_values(CLT_SHAPE(2, 3), (int64_t[]){1, 2, 3, 4, 5, 6});
    assert_ok(fold("Transpose", x, NULL, NULL, NULL));
    assert_values(CLT_SHAPE(3, 2), (int64_t[]){1, 4, 2, 5, 3, 6});
    assert_ok(fold("Tile", x, LIST(1, 2), NULL, NULL));
    assert_values(CLT_SHAPE(2, 6), (int64_t[]){1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
    assert_ok(fold("Expand", LIST(1, 2), LIST(2, 1), NULL, NULL));
    assert_values(CLT_SHAPE(2, 2), (int64_t[]){1, 2, 1, 2});
    /* One number throughout is of another batch; else the shapes have to fit. */
    assert_ok(fold("Expand", floats(CLT_SHAPE(1, 2, 1), (float[]){0.5f, 0.5f}), LIST(1, 3, 1), NULL, NULL));
    assert_true(clt_literal_equal(out[0], floats(CLT_SHAPE(1, 3, 1), (float[]){0.5f, 0.5f, 0.5f})));
    assert_status(fold("Expand", LIST(1, 2), LIST(3), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Expand", integers(CLT_SHAPE(2, 2), (int64_t[]){7, 7, 7, 7}), LIST(3, 3), NULL, NULL), CLT_E_SHAPE);
    assert_ok(fold("Range", SCALAR(5), SCALAR(0), SCALAR(-2), NULL));
    assert_values(CLT_SHAPE(3), (int64_t[]){5, 3, 1});
    clt_onnx_attribute axis = integer_attribute("axis", -1);
    assert_ok(fold_with("Concat", &axis, 1, x, integers(CLT_SHAPE(2, 1), (int64_t[]){7, 8}), NULL, NULL));
    assert_values(CLT_SHAPE(2, 4), (int64_t[]){1, 2, 3, 7, 4, 5, 6, 8});

    assert_status(fold("Reshape", x, LIST(4, -1), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Reshape", x, LIST(-1, -1), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Reshape", x, LIST(2, 3, 0), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Reshape", x, LIST(INT64_MAX, 3), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Unsqueeze", x, LIST(0, 0), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Squeeze", x, LIST(0), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Tile", x, LIST(INT64_MAX, INT64_MAX), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("Range", SCALAR(0), SCALAR(5), SCALAR(0), NULL), CLT_E_RANGE);
    assert_status(fold("Range", SCALAR(INT64_MIN), SCALAR(INT64_MAX), SCALAR(1), NULL), CLT_E_RANGE);
}

static void test_selection(void **state) {
    (void)state;
    clt_literal *x = integers(CLT_SHAPE(2, 3), (int64_t[]){1, 2, 3, 4, 5, 6});
    clt_onnx_attribute axis = integer_attribute("axis", 1);
    assert_ok(fold_with("Gather", &axis, 1, x, LIST(-1, 0), NULL, NULL));
    assert_values(CLT_SHAPE(2, 2), (int64_t[]){3, 1, 6, 4});
    assert_ok(fold("Slice", x, LIST(INT64_MAX), LIST(INT64_MIN), LIST(1)));
    assert_values(CLT_SHAPE(2, 0), NULL);
    assert_ok(fold("NonZero", LIST(0, 7, 0, 9), NULL, NULL, NULL));
    assert_values(CLT_SHAPE(1, 2), (int64_t[]){1, 3});
    assert_ok(fold_with("Split", &axis, 1, x, LIST(1, 2), NULL, NULL));
    assert_values(CLT_SHAPE(2, 1), (int64_t[]){1, 4});
    assert_ok(fold("ReduceProd", x, LIST(0), NULL, NULL));
    assert_values(CLT_SHAPE(1, 3), (int64_t[]){4, 10, 18});

    assert_status(fold_with("Gather", &axis, 1, x, LIST(3), NULL, NULL), CLT_E_FORMAT);
    assert_detail("index 3 of 3");
    assert_status(fold("Slice", x, LIST(0, 0, 0), LIST(1, 1, 1), NULL), CLT_E_SHAPE);
    assert_status(fold_with("Split", &axis, 1, x, LIST(1, 1), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold_with("Split", &axis, 1, x, LIST(4, -1), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("ReduceSum", x, LIST(2), NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("GatherND", x, integers(CLT_SHAPE(1, 3), (int64_t[]){0, 0, 0}), NULL, NULL), CLT_E_SHAPE);
}

/* Sizes that a file names are looked at before memory is taken. */
static void test_hostile_sizes(void **state) {
    (void)state;
    size_t used = arena.used;
    assert_status(fold("ConstantOfShape", LIST((int64_t)1 << 40), NULL, NULL, NULL), CLT_E_RANGE);
    assert_status(fold("ConstantOfShape", LIST(-1), NULL, NULL, NULL), CLT_E_SHAPE);
    assert_status(fold("ConstantOfShape", LIST(0, INT64_MAX, INT64_MAX), NULL, NULL, NULL), CLT_E_RANGE);
    assert_status(fold("Expand", LIST(1), LIST(512, 513), NULL, NULL), CLT_E_RANGE);
    assert_status(fold("Range", SCALAR(0), SCALAR(1 << 20), SCALAR(1), NULL), CLT_E_RANGE);
    assert_true(arena.used - used < 4096);
    assert_ok(fold("Expand", LIST(1), LIST(256, 256), NULL, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arithmetic, begin, end), cmocka_unit_test_setup_teardown(test_shapes, begin, end),
        cmocka_unit_test_setup_teardown(test_selection, begin, end), cmocka_unit_test_setup_teardown(test_hostile_sizes, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
