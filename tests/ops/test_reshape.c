/* Reshape and flatten: the same elements in the same order. */
#include "tests/ops/harness.h"

static clt_tensor *build(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_reshape(inputs[0], *(const clt_shape *)context);
}

/* With further ops about it, so that the view lies between computed tensors. */
static clt_tensor *build_between(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph;
    return clt_neg(clt_reshape(clt_mul(inputs[0], inputs[0]), *(const clt_shape *)context));
}

static clt_tensor *build_flatten(clt_graph *graph, clt_tensor *const *inputs, const void *context) {
    (void)graph, (void)context;
    return clt_flatten(inputs[0]);
}

static void reference(const array *inputs, array *y, const void *context) {
    clt_shape shape = *(const clt_shape *)context;
    int64_t known = 1;
    for (int d = 0; d < shape.rank; d++)
        if (shape.dims[d] != -1) known *= shape.dims[d];
    for (int d = 0; d < shape.rank; d++)
        if (shape.dims[d] == -1) shape.dims[d] = array_count(&inputs[0]) / known;
    array_resize(y, shape);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] = inputs[0].values[i];
}

static void reference_between(const array *inputs, array *y, const void *context) {
    reference(inputs, y, context);
    for (int64_t i = 0; i < array_count(y); i++) y->values[i] *= -y->values[i];
}

#define RESHAPE(label, size, builder, definition, ...) \
    {.name = label,                                    \
     .n_inputs = 1,                                    \
     .inputs = {{.shape = size}},                      \
     .build = builder,                                 \
     .reference = definition,                          \
     .context = &(clt_shape)__VA_ARGS__}
static const op_case cases[] = {
    RESHAPE("to rank 1", OP_SHAPE(3, 5), build, reference, OP_SHAPE(15)),
    RESHAPE("to rank 8", OP_SHAPE(4, 6), build, reference, OP_SHAPE(1, 2, 1, 2, 3, 1, 2, 1)),
    RESHAPE("what remains, first", OP_SHAPE(4, 6), build, reference, OP_SHAPE(-1, 3)),
    RESHAPE("what remains, last", OP_SHAPE(4, 6), build, reference, OP_SHAPE(2, 4, -1)),
    RESHAPE("what remains is 1", OP_SHAPE(4, 6), build, reference, OP_SHAPE(4, -1, 6)),
    RESHAPE("to its own shape", OP_SHAPE(4, 6), build, reference, OP_SHAPE(4, 6)),
    RESHAPE("to a scalar", OP_SHAPE(1, 1), build, reference, {0}),
    RESHAPE("from a scalar", {0}, build, reference, OP_SHAPE(1, 1, 1)),
    RESHAPE("between computed tensors", OP_SHAPE(3, 7), build_between, reference_between, OP_SHAPE(7, 3)),
    RESHAPE("flatten", OP_SHAPE(2, 3, 5, 7), build_flatten, reference, OP_SHAPE(2, 105)),
    RESHAPE("flatten of rank 2", OP_SHAPE(2, 3), build_flatten, reference, OP_SHAPE(2, 3)),
    RESHAPE("flatten of rank 1", OP_SHAPE(5), build_flatten, reference, OP_SHAPE(5, 1)),
};

/* A view of a view, each read by the host and by other nodes. */
static void views_share_memory(void **state) {
    (void)state;
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3));
    clt_tensor *squares = clt_mul(x, x);
    clt_tensor *view = clt_reshape(squares, CLT_SHAPE(6));
    clt_tensor *column = clt_reshape(view, CLT_SHAPE(3, 2));
    clt_tensor *total = clt_sum(clt_add(column, clt_reshape(squares, CLT_SHAPE(3, 2))), CLT_ALL_AXES);
    clt_tensor *targets[] = {view, column, squares, total};
    assert_ok(clt_graph_status(graph));
    assert_ok(clt_store_create(op_device(), &store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = op_device(),
                                                          .store = store,
                                                          .graph = graph,
                                                          .targets = targets,
                                                          .n_targets = 4}));
    const float values[] = {1, 2, 3, 4, 5, 6};
    assert_ok(clt_plan_feed(plan, x, values));
    assert_ok(clt_plan_run(plan, CLT_PLAN_ALL));
    for (int t = 0; t < 3; t++) {
        float got[6];
        assert_ok(clt_plan_read(plan, targets[t], got, sizeof got));
        for (int i = 0; i < 6; i++) assert_true(got[i] == values[i] * values[i]);
    }
    float sum;
    assert_ok(clt_plan_read(plan, total, &sum, sizeof sum));
    assert_true(sum == 182);
    clt_plan_destroy(plan);
    clt_store_destroy(store);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_share_memory)};
    return op_main("reshape", cases, CLT_COUNT_OF(cases), tests, CLT_COUNT_OF(tests));
}
