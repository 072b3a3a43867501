/* Tensors joined along an axis. */
#include "tests/ops/harness.h"

typedef struct joint {
    int count, axis; /* as given to the builder */
} joint;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const joint *j = context;
    return clt_concat(inputs, j->count, j->axis);
}

/* The same tensor again and again. */
static clt_tensor *build_repeated(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    clt_tensor *again[] = {inputs[0], inputs[0], inputs[0]};
    return clt_concat(again, 3, ((const joint *)context)->axis);
}

static void join(const array *const *parts, const joint *j, array *y) {
    clt_shape shape = parts[0]->shape;
    int axis = j->axis < 0 ? j->axis + shape.rank : j->axis;
    for (int k = 1; k < j->count; k++) shape.dims[axis] += parts[k]->shape.dims[axis];
    array_resize(y, shape);
    int64_t first = 0;
    for (int k = 0; k < j->count; k++) {
        int64_t index[CLT_MAX_RANK] = {0}, at = 0;
        do {
            int64_t place[CLT_MAX_RANK];
            for (int d = 0; d < shape.rank; d++) place[d] = index[d] + (d == axis ? first : 0);
            y->values[index_place(&shape, place)] = parts[k]->values[at++];
        } while (index_next(&parts[k]->shape, index));
        first += parts[k]->shape.dims[axis];
    }
}

static void reference(const array *inputs, array *y, const void *context) {
    const array *parts[OP_MAX_INPUTS];
    for (int k = 0; k < OP_MAX_INPUTS; k++) parts[k] = &inputs[k];
    join(parts, context, y);
}

static void reference_repeated(const array *inputs, array *y, const void *context) {
    join((const array *[]){inputs, inputs, inputs}, context, y);
}

#define JOIN(label, at, a, b, c)                                        \
    {.name = label,                                                     \
     .n_inputs = 3,                                                     \
     .inputs = {{.shape = a}, {.shape = b}, {.shape = c}},              \
     .build = build,                                                    \
     .reference = reference,                                            \
     .context = &(joint){3, at}}
static const op_case cases[] = {
    JOIN("axis 0", 0, OP_SHAPE(2, 3, 4, 5), OP_SHAPE(1, 3, 4, 5), OP_SHAPE(3, 3, 4, 5)),
    JOIN("axis 1", 1, OP_SHAPE(2, 3, 4, 5), OP_SHAPE(2, 1, 4, 5), OP_SHAPE(2, 4, 4, 5)),
    JOIN("axis 2", 2, OP_SHAPE(2, 3, 4, 5), OP_SHAPE(2, 3, 1, 5), OP_SHAPE(2, 3, 3, 5)),
    JOIN("axis 3", 3, OP_SHAPE(2, 3, 4, 5), OP_SHAPE(2, 3, 4, 1), OP_SHAPE(2, 3, 4, 7)),
    JOIN("axis -1", -1, OP_SHAPE(2, 3), OP_SHAPE(2, 1), OP_SHAPE(2, 2)),
    JOIN("rank 1", 0, OP_SHAPE(1), OP_SHAPE(5), OP_SHAPE(3)),
    JOIN("rank 8", 4, OP_SHAPE(2, 1, 3, 1, 2, 2, 1, 2), OP_SHAPE(2, 1, 3, 1, 1, 2, 1, 2),
         OP_SHAPE(2, 1, 3, 1, 3, 2, 1, 2)),
    {.name = "one tensor",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(3, 4)}},
     .build = build,
     .reference = reference,
     .context = &(joint){1, 1}},
    {.name = "the same three times",
     .n_inputs = 1,
     .inputs = {{.shape = OP_SHAPE(3, 4)}},
     .build = build_repeated,
     .reference = reference_repeated,
     .context = &(joint){3, 1}},
};

static void integers_join(void **state) {
    (void)state;
    static const float a[] = {1, -2}, b[] = {16777216, 3, 4}, bytes[] = {255, 0}, more[] = {7, 8, 9};
    op_expect(&(op_case){.name = "i32",
                         .n_inputs = 2,
                         .inputs = {{.dtype = CLT_I32, .shape = OP_SHAPE(2), .values = a},
                                    {.dtype = CLT_I32, .shape = OP_SHAPE(3), .values = b}},
                         .build = build,
                         .context = &(joint){2, 0}},
              (double[]){1, -2, 16777216, 3, 4}, NULL);
    op_expect(&(op_case){.name = "u8",
                         .n_inputs = 2,
                         .inputs = {{.dtype = CLT_U8, .shape = OP_SHAPE(1, 2), .values = bytes},
                                    {.dtype = CLT_U8, .shape = OP_SHAPE(1, 3), .values = more}},
                         .build = build,
                         .context = &(joint){2, 1}},
              (double[]){255, 0, 7, 8, 9}, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integers_join)};
    return op_main("concat", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
