/* Rows of a table by index. */
#include "tests/ops/harness.h"

#include <math.h>

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const int64_t *size = context;
    return clt_embedding(inputs[0], "table", size[0], size[1]);
}

static void reference(const array *inputs, array *y, const void *context) {
    const int64_t *size = context;
    clt_shape shape = inputs[0].shape;
    shape.dims[shape.rank++] = size[1];
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++)
        y->values[i] = inputs[1].values[(int64_t)inputs[0].values[i / size[1]] * size[1] + i % size[1]];
}

#define EMBEDDING(label, count, width, size)                                                    \
    {.name = label,                                                                             \
     .n_inputs = 2,                                                                             \
     .inputs = {{.dtype = CLT_I32, .shape = size, .high = count},                               \
                {.variable = "table.weight", .shape = OP_SHAPE(count, width)}},                 \
     .build = build,                                                                            \
     .reference = reference,                                                                    \
     .context = &(const int64_t[]){count, width}}
static const op_case cases[] = {
    EMBEDDING("rank 1", 5, 3, OP_SHAPE(4)),
    EMBEDDING("rank 2, repeated indices", 3, 5, OP_SHAPE(6, 7)),
    EMBEDDING("all the same row", 1, 7, OP_SHAPE(9)),
    EMBEDDING("width 1", 6, 1, OP_SHAPE(2, 3)),
    EMBEDDING("one index", 4, 3, {0}),
    EMBEDDING("more rows than indices", 301, 2, OP_SHAPE(3, 1, 2)),
    EMBEDDING("rank 7", 3, 2, OP_SHAPE(1, 2, 1, 2, 1, 2, 1)),
    EMBEDDING("many repetitions", 2, 3, OP_SHAPE(1031)),
};

/* An index out of range is seen in the result, and harms no other row's gradient. */
static void out_of_range(void **state) {
    (void)state;
    static const float indices[] = {1, 3, -1, 0, 2000000000, -2147483648.0f}, weight[] = {1, 2, 3, 4, 5, 6};
    op_expect(&(op_case){.name = "indices out of range",
                         .n_inputs = 2,
                         .inputs = {{.dtype = CLT_I32, .shape = OP_SHAPE(6), .values = indices},
                                    {.variable = "table.weight", .shape = OP_SHAPE(3, 2), .values = weight}},
                         .build = build,
                         .context = &(const int64_t[]){3, 2},
                         .seed = (const float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
              (double[]){3, 4, NAN, NAN, NAN, NAN, 1, 2, NAN, NAN, NAN, NAN},
              (const double *[]){NULL, (double[]){7, 8, 1, 2, 0, 0}});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(out_of_range)};
    return op_main("embedding", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
