/* Dimensions of 1 stretched. */
#include "tests/ops/harness.h"

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_expand(inputs[0], *(const clt_shape *)context);
}

static void reference(const array *inputs, array *y, const void *context) {
    const clt_shape *shape = context;
    array_resize(y, *shape);
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do y->values[at++] = array_broadcast_at(&inputs[0], shape, index);
    while (index_next(shape, index));
}

#define EXPAND(label, size, ...)            \
    {.name = label,                         \
     .n_inputs = 1,                         \
     .inputs = {{.shape = size}},           \
     .build = build,                        \
     .reference = reference,                \
     .context = &(clt_shape)__VA_ARGS__}
static const op_case cases[] = {
    EXPAND("leading dimensions", OP_SHAPE(3, 4), OP_SHAPE(2, 5, 3, 4)),
    EXPAND("a row", OP_SHAPE(1, 7), OP_SHAPE(5, 7)),
    EXPAND("a column", OP_SHAPE(5, 1), OP_SHAPE(5, 7)),
    EXPAND("in the middle", OP_SHAPE(2, 1, 3), OP_SHAPE(2, 4, 3)),
    EXPAND("several", OP_SHAPE(1, 3, 1, 2), OP_SHAPE(4, 3, 5, 2)),
    EXPAND("one element", OP_SHAPE(1), OP_SHAPE(3, 4)),
    EXPAND("a scalar", {0}, OP_SHAPE(3, 4)),
    EXPAND("a scalar to one element", {0}, OP_SHAPE(1)),
    EXPAND("to its own shape", OP_SHAPE(3, 4), OP_SHAPE(3, 4)),
    EXPAND("a leading 1", OP_SHAPE(3, 4), OP_SHAPE(1, 3, 4)),
    EXPAND("rank 8", OP_SHAPE(1, 2, 1, 1, 2, 1, 3, 1), OP_SHAPE(2, 2, 1, 3, 2, 2, 3, 2)),
};

static void integers_stretch(void **state) {
    (void)state;
    static const float x[] = {-3, 16777216};
    op_expect(&(op_case){.name = "i32",
                         .n_inputs = 1,
                         .inputs = {{.dtype = CLT_I32, .shape = OP_SHAPE(2, 1), .values = x}},
                         .build = build,
                         .context = &(clt_shape)OP_SHAPE(2, 3)},
              (double[]){-3, -3, -3, 16777216, 16777216, 16777216}, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_stretch)};
    return op_main("expand", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
