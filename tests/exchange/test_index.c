/* Gather, GatherND and GatherElements of ONNX files, by indices that are known, follow the batch, or are data. */
#include "tests/exchange/networks.h"

#include "runtime/graph/graph.h"
#include "runtime/ops/ops.h"

SUPPORT_DEVICE

enum { PLACES = 5, WIDTH = 3, MOST = 7 };

/* x f32 [batch, PLACES, width] or, with width 0, [batch, PLACES]; "rows" counts the samples, i64 [batch]. */
static network network_of(int width) {
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, width ? CLT_SHAPE(-1, PLACES, width) : CLT_SHAPE(-1, PLACES));
    add_list(&n, "0", (int64_t[]){0}, 1);
    add_list(&n, "1", (int64_t[]){1}, 1);
    add_list(&n, "1, 2", (int64_t[]){1, 2}, 2);
    add_list(&n, "all", (int64_t[]){-1}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "batch", "shape", "0");
    NODE(&n, "Squeeze", "begin", "0");
    NODE(&n, "Squeeze", "end", "batch");
    NODE(&n, "Squeeze", "step", "1");
    NODE(&n, "Range", "rows", "begin", "end", "step");
    return n;
}

static float value_of(int i) {
    return (float)((i * 37 + 11) % 101) - 50;
}

typedef struct built {
    clt_onnx *onnx;
    clt_graph *graph;
    clt_tensor *y;
} built;

static built build(const network *n) {
    built b;
    assert_ok(clt_onnx_open(&b.onnx, write_network(n)));
    assert_ok(clt_graph_create(&b.graph));
    assert_ok(clt_onnx_build(b.onnx, b.graph, &(clt_onnx_options){.batch = 2}));
    b.y = clt_onnx_output(b.onnx, "y");
    return b;
}

static void destroy(built b) {
    clt_graph_destroy(b.graph);
    clt_onnx_close(b.onnx);
}

static bool reads(const built *b, const clt_op *op) {
    bool marks[512] = {0}, found = false;
    assert_true(b->graph->n_nodes <= CLT_COUNT_OF(marks));
    clt_graph_mark(b->graph, &b->y, 1, marks);
    for (size_t i = 0; i < b->graph->n_nodes; i++) found |= marks[i] && b->graph->nodes[i]->op == op;
    return found;
}

/* y of x, and of indices if there are some. */
static void predict(const built *b, int samples, const float *x, const int32_t *indices, clt_shape of, float *y, size_t count) {
    clt_predictor *p;
    clt_shape shape = clt_tensor_shape(clt_graph_find(b->graph, "x"));
    shape.dims[0] = of.dims[0] = samples;
    clt_batch batch = {.samples = samples, .fields = {{CLT_F32, shape, x}, {CLT_I32, of, indices}}, .n_fields = indices ? 2 : 1};
    assert_ok(clt_predictor_create(&p, device, b->y, NULL));
    assert_ok(clt_predictor_run(p, &batch, y, count));
    clt_predictor_destroy(p);
}

/* As exporters write the mask of attention: [batch, 1, copies, PLACES] of [batch, PLACES]. */
static void places_in_order_are_a_view(void **state) {
    (void)state;
    for (int flat = 0; flat < 2; flat++)
        for (int copies = 1; copies <= 3; copies += 2) {
            float x[MOST * PLACES], y[MOST * 3 * PLACES];
            network n = network_of(0);
            add_list(&n, "places", (int64_t[]){0, 1, 2, 3, 4}, PLACES);
            add_list(&n, "more", (int64_t[]){1, copies, PLACES}, 3);
            add_list(&n, "1, 2, 3", (int64_t[]){1, 2, 3}, 3);
            add_list(&n, "4", (int64_t[]){4}, 1);
            add_list(&n, "width", (int64_t[]){PLACES}, 1);
            NODE(&n, "Unsqueeze", "sample", "rows", "1, 2, 3");
            NODE(&n, "Concat", "whole", "batch", "more");
            if (flat) {
                NODE(&n, "Reshape", "flat", "x", "all");
                NODE(&n, "Mul", "first", "sample", "width");
                NODE(&n, "Add", "place", "first", "places");
                NODE(&n, "Expand", "indices", "place", "whole");
                NODE(&n, "Gather", "y", "flat", "indices");
            } else {
                NODE(&n, "Expand", "samples", "sample", "whole");
                NODE(&n, "Expand", "columns", "places", "whole");
                NODE(&n, "Unsqueeze", "a", "samples", "4");
                NODE(&n, "Unsqueeze", "b", "columns", "4");
                add_node(&n, "Concat", (const char *const[]){"a", "b", NULL}, "indices", "axis", -1);
                NODE(&n, "GatherND", "y", "x", "indices");
            }
            add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 1, copies, PLACES));
            built b = build(&n);
            assert_false(reads(&b, &clt_op_embedding));
            for (int samples = 1; samples <= MOST; samples += 2) {
                for (int i = 0; i < samples * PLACES; i++) x[i] = value_of(i);
                predict(&b, samples, x, NULL, CLT_SHAPE(0), y, (size_t)(samples * copies * PLACES));
                for (int i = 0; i < samples * copies * PLACES; i++) assert_true(y[i] == x[i / (copies * PLACES) * PLACES + i % PLACES]);
            }
            destroy(b);
        }
}

/* The places of each sample from the last to the first: no view, and indices that grow with each sample. */
static void numbers_of_samples_are_counted(void **state) {
    (void)state;
    float x[MOST * PLACES], y[MOST * PLACES];
    network n = network_of(0);
    add_list(&n, "turned", (int64_t[]){4, 3, 2, 1, 0}, PLACES);
    add_list(&n, "width", (int64_t[]){PLACES}, 1);
    NODE(&n, "Reshape", "flat", "x", "all");
    NODE(&n, "Unsqueeze", "sample", "rows", "1");
    NODE(&n, "Mul", "first", "sample", "width");
    NODE(&n, "Add", "indices", "first", "turned");
    NODE(&n, "Gather", "y", "flat", "indices");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, PLACES));
    built b = build(&n);
    for (int samples = 1; samples <= MOST; samples += 2) {
        for (int i = 0; i < samples * PLACES; i++) x[i] = value_of(i);
        predict(&b, samples, x, NULL, CLT_SHAPE(0), y, (size_t)(samples * PLACES));
        for (int i = 0; i < samples * PLACES; i++) assert_true(y[i] == x[i / PLACES * PLACES + PLACES - 1 - i % PLACES]);
    }
    destroy(b);
}

/* x[b, at[b]], of at as data: the last token of each sample. */
static void tuples_choose_rows(void **state) {
    (void)state;
    float x[MOST * PLACES * WIDTH], y[MOST * WIDTH];
    const int32_t at[MOST] = {4, 0, 2, 2, 3, 1, 4};
    network n = network_of(WIDTH);
    add_info(&n, 11, "at", CLT_ONNX_INT64, CLT_SHAPE(-1));
    NODE(&n, "Unsqueeze", "sample", "rows", "1");
    NODE(&n, "Unsqueeze", "place", "at", "1");
    add_node(&n, "Concat", (const char *const[]){"sample", "place", NULL}, "indices", "axis", 1);
    NODE(&n, "GatherND", "y", "x", "indices");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
    built b = build(&n);
    for (int samples = 1; samples <= MOST; samples += 2) {
        for (int i = 0; i < samples * PLACES * WIDTH; i++) x[i] = value_of(i);
        predict(&b, samples, x, at, CLT_SHAPE(0), y, (size_t)(samples * WIDTH));
        for (int i = 0; i < samples * WIDTH; i++) assert_true(y[i] == x[(i / WIDTH * PLACES + at[i / WIDTH]) * WIDTH + i % WIDTH]);
    }
    destroy(b);
}

/* Places of all samples in one row, of which those of the first sample are told from the end: -5 + at, of at as data. */
static void computed_places_count_from_the_end(void **state) {
    (void)state;
    float x[MOST * PLACES], y[MOST];
    const int32_t at[MOST] = {4, 0, 2, 2, 3, 1, 4};
    network n = network_of(0);
    add_info(&n, 11, "at", CLT_ONNX_INT64, CLT_SHAPE(-1));
    add_list(&n, "places", (int64_t[]){PLACES}, 1);
    NODE(&n, "Reshape", "flat", "x", "all");
    NODE(&n, "Mul", "first", "rows", "places");
    NODE(&n, "Sub", "from the end", "at", "places");
    NODE(&n, "Add", "indices", "first", "from the end");
    NODE(&n, "Gather", "y", "flat", "indices");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1));
    built b = build(&n);
    for (int samples = 1; samples <= MOST; samples += 2) {
        for (int i = 0; i < samples * PLACES; i++) x[i] = value_of(i);
        predict(&b, samples, x, at, CLT_SHAPE(0), y, (size_t)samples);
        for (int i = 0; i < samples; i++) assert_true(y[i] == x[((i - 1 + samples) % samples) * PLACES + at[i]]);
    }
    destroy(b);
}

/* As types of tokens are looked up: a list of integers that all samples share, of values that no f32 has. */
static void integers_are_gathered(void **state) {
    (void)state;
    const int64_t list[PLACES] = {16777217, -3, 0, INT32_MAX, INT32_MIN};
    const int32_t at[MOST * 2] = {4, 0, 3, 3, 1, 2, 0, 0, 2, 4, 1, 3, 0, 1};
    float x[MOST * PLACES] = {0}, y[MOST * 2];
    network n = network_of(0);
    add_info(&n, 11, "at", CLT_ONNX_INT64, CLT_SHAPE(-1, 2));
    add_list(&n, "list", list, PLACES);
    add_list(&n, "base", (int64_t[]){16777216}, 1);
    NODE(&n, "Expand", "table", "list", "shape");
    add_node(&n, "GatherElements", (const char *const[]){"table", "at", NULL}, "own", "axis", 1);
    NODE(&n, "Sub", "small", "own", "base"); /* exact, and then a float of it */
    add_node(&n, "Cast", (const char *const[]){"small", NULL}, "y", "to", CLT_ONNX_FLOAT);
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2));
    built b = build(&n);
    for (int samples = 1; samples <= MOST; samples += 2) {
        predict(&b, samples, x, at, CLT_SHAPE(0, 2), y, (size_t)(samples * 2));
        for (int i = 0; i < samples * 2; i++) assert_true(y[i] == (float)(int32_t)((uint32_t)list[at[i]] - 16777216));
    }
    destroy(b);
}

/* b T, of samples and a length that are others at once: a step of T is not a number, whatever the batch. */
static void steps_follow_the_length(void **state) {
    (void)state;
    for (int64_t batch = 1; batch <= 2; batch++) {
        network n = {0};
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2, WIDTH));
        add_list(&n, "0", (int64_t[]){0}, 1);
        add_list(&n, "1", (int64_t[]){1}, 1);
        add_list(&n, "flat", (int64_t[]){-1, WIDTH}, 2);
        NODE(&n, "Shape", "shape", "x");
        NODE(&n, "Gather", "batch", "shape", "0");
        NODE(&n, "Gather", "length", "shape", "1");
        NODE(&n, "Squeeze", "begin", "0");
        NODE(&n, "Squeeze", "end", "batch");
        NODE(&n, "Squeeze", "step", "1");
        NODE(&n, "Range", "rows", "begin", "end", "step");
        NODE(&n, "Mul", "places", "rows", "length");
        NODE(&n, "Reshape", "all", "x", "flat");
        NODE(&n, "Gather", "y", "all", "places");
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
        assert_build_fails(&n, &(clt_onnx_options){.batch = batch, .length_symbol = "length", .length = 12}, CLT_E_UNSUPPORTED,
                           "Gather \"y\": values that differ with the batch");
    }
}

/* What is the same for the first samples, and not for those behind. */
static void later_samples_are_looked_at(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int64_t number;
    } cases[] = {{"Less", 10}, {"Equal", 15}, {"Div", 8}, {"Mod", 8}, {"Less", 100}, {"Less", 1000}};
    for (int64_t batch = 1; batch <= 4; batch += 3)
        for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
            network n = network_of(0);
            add_list(&n, "number", &cases[i].number, 1);
            NODE(&n, cases[i].op, "is", "rows", "number");
            add_node(&n, "Cast", (const char *const[]){"is", NULL}, "as", "to", CLT_ONNX_FLOAT);
            NODE(&n, "Unsqueeze", "column", "as", "1");
            NODE(&n, "Mul", "y", "x", "column");
            add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, PLACES));
            assert_build_fails(&n, &(clt_onnx_options){.batch = batch}, CLT_E_UNSUPPORTED, "values that differ with the batch");
        }
}

static void wrong_indices_are_named(void **state) {
    (void)state;
    static const struct {
        const char *op;
        int64_t batch_dims, indices[2];
        const char *words;
    } wrong[] = {
        {"GatherND", 0, {0, 5}, "index 5 of 5 places"},
        {"GatherND", 2, {0, 1}, "do not fit what they index"},
        {"GatherND", -1, {0, 1}, "do not fit what they index"},
        {"Gather", 0, {2, 0}, "index 2 of 2 places"},
    };
    for (size_t i = 0; i < CLT_COUNT_OF(wrong); i++) {
        clt_onnx *onnx;
        clt_graph *graph;
        network n = network_of(0);
        add_list(&n, "indices", wrong[i].indices, 2);
        add_node(&n, wrong[i].op, (const char *const[]){"x", "indices", NULL}, "y", "batch_dims", wrong[i].batch_dims);
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(2));
        assert_ok(clt_onnx_open(&onnx, write_network(&n)));
        assert_ok(clt_graph_create(&graph));
        assert_true(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}) < 0);
        assert_detail(wrong[i].words);
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_in_order_are_a_view),
        cmocka_unit_test(numbers_of_samples_are_counted),
        cmocka_unit_test(tuples_choose_rows),
        cmocka_unit_test(computed_places_count_from_the_end),
        cmocka_unit_test(integers_are_gathered),
        cmocka_unit_test(steps_follow_the_length),
        cmocka_unit_test(later_samples_are_looked_at),
        cmocka_unit_test(wrong_indices_are_named),
    };
    return cmocka_run_group_tests_name("index", tests, open_device, close_device);
}
