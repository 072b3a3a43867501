/* Every step-th element between bounds along one axis. */
#include "tests/ops/harness.h"

typedef struct slice {
    int axis;
    int64_t start, stop, step; /* as given to the builder */
} slice;

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    const slice *s = context;
    return clt_slice(inputs[0], s->axis, s->start, s->stop, s->step);
}

static void reference(const array *inputs, array *y, const void *context) {
    const slice *s = context;
    clt_shape shape = inputs[0].shape;
    int axis = s->axis < 0 ? s->axis + shape.rank : s->axis;
    int64_t size = shape.dims[axis], start = s->start < 0 ? s->start + size : s->start;
    int64_t stop = s->stop < 0 ? s->stop + size : s->stop, count = 0;
    for (int64_t i = start; i < size; i++) count += i < stop && (i - start) % s->step == 0;
    shape.dims[axis] = count;
    array_resize(y, shape);
    int64_t index[CLT_MAX_RANK] = {0}, at = 0;
    do {
        int64_t place[CLT_MAX_RANK];
        for (int d = 0; d < shape.rank; d++) place[d] = d == axis ? start + index[d] * s->step : index[d];
        y->values[at++] = inputs[0].values[index_place(&inputs[0].shape, place)];
    } while (index_next(&shape, index));
}

#define SLICE(label, size, ...)             \
    {.name = label,                         \
     .n_inputs = 1,                         \
     .inputs = {{.shape = size}},           \
     .build = build,                        \
     .reference = reference,                \
     .context = &(slice){__VA_ARGS__}}
static const op_case cases[] = {
    SLICE("axis 0", OP_SHAPE(5, 3, 4), 0, 1, 4, 1),
    SLICE("axis 1", OP_SHAPE(3, 5, 4), 1, 1, 4, 1),
    SLICE("axis 2", OP_SHAPE(3, 4, 5), 2, 1, 4, 1),
    SLICE("axis 3 of 4", OP_SHAPE(2, 3, 4, 7), 3, 2, 7, 1),
    SLICE("step 2", OP_SHAPE(3, 7), 1, 0, 7, 2),
    SLICE("step 3 stops before the end", OP_SHAPE(3, 8), 1, 1, 7, 3),
    SLICE("step past the end", OP_SHAPE(3, 7), 1, 5, 7, 100),
    SLICE("the largest step", OP_SHAPE(3, 7), 1, 5, 7, INT64_MAX),
    SLICE("negative axis", OP_SHAPE(3, 7, 2), -2, 2, 5, 1),
    SLICE("negative start", OP_SHAPE(3, 7), 1, -3, 7, 1),
    SLICE("negative stop", OP_SHAPE(3, 7), 1, 0, -2, 1),
    SLICE("negative both, step 2", OP_SHAPE(7, 3), 0, -6, -1, 2),
    SLICE("one element", OP_SHAPE(3, 7), 1, 6, 7, 1),
    SLICE("all of it", OP_SHAPE(3, 7), 1, 0, 7, 1),
    SLICE("stop beyond the end", OP_SHAPE(3, 7), 1, 4, 1000, 1),
    SLICE("rank 1", OP_SHAPE(9), 0, 2, 8, 2),
    SLICE("rank 8", OP_SHAPE(2, 1, 3, 1, 5, 2, 1, 2), 4, 1, 5, 2),
};

/* Two overlapping slices of one tensor: their gradients add up. */
static clt_tensor *build_two(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_mul(clt_slice(inputs[0], 0, 0, 3, 1), clt_slice(inputs[0], 0, 1, 4, 1));
}

static void overlapping_slices(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4};
    op_expect(&(op_case){.name = "overlapping slices",
                         .n_inputs = 1,
                         .inputs = {{.shape = OP_SHAPE(4), .values = x}},
                         .build = build_two,
                         .seed = (const float[]){1, 1, 1}},
              (double[]){2, 6, 12}, (const double *[]){(double[]){2, 4, 6, 3}});
}

static void integers_are_sliced(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 250};
    op_expect(&(op_case){.name = "i32",
                         .n_inputs = 1,
                         .inputs = {{.dtype = CLT_I32, .shape = OP_SHAPE(2, 3), .values = x}},
                         .build = build,
                         .context = &(slice){1, 0, 3, 2}},
              (double[]){1, 3, 4, 250}, NULL);
    op_expect(&(op_case){.name = "u8",
                         .n_inputs = 1,
                         .inputs = {{.dtype = CLT_U8, .shape = OP_SHAPE(2, 3), .values = x}},
                         .build = build,
                         .context = &(slice){0, 1, 2, 1}},
              (double[]){4, 5, 250}, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlapping_slices),
        cmocka_unit_test(integers_are_sliced),
    };
    return op_main("slice", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
