/* Graphs from ONNX files: what they compute, what follows the batch, and what is told of files that cannot be built. */
#include "tests/data/files.h"

#include <math.h>
#include <unistd.h>

#include <cltrain/cltrain.h>

#include "runtime/base/file.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/ops.h"
#include "tests/exchange/networks.h"

SUPPORT_DEVICE

enum { BATCH = 4, IN = 3, HIDDEN = 5, CLASSES = 2 };

static float w1[HIDDEN * IN], b1[HIDDEN], w2[CLASSES * HIDDEN], b2[CLASSES];

static void fill(float *values, int n, int seed) {
    for (int i = 0; i < n; i++) values[i] = sinf((float)(i * 7 + seed * 13));
}

/* Gemm, Relu, Gemm; the result in a shape that is computed from x's, as exporters write it. */
static network mlp_of(network n) {
    fill(w1, HIDDEN * IN, 1), fill(b1, HIDDEN, 2), fill(w2, CLASSES * HIDDEN, 3), fill(b2, CLASSES, 4);
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "fc1.weight", CLT_SHAPE(HIDDEN, IN), w1);
    add_weight(&n, "fc1.bias", CLT_SHAPE(HIDDEN), b1);
    add_weight(&n, "fc2.weight", CLT_SHAPE(CLASSES, HIDDEN), w2);
    add_weight(&n, "fc2.bias", CLT_SHAPE(CLASSES), b2);
    add_list(&n, "zero", (int64_t[]){0}, 1);
    add_list(&n, "rest", (int64_t[]){CLASSES}, 1);
    add_node(&n, "Gemm", (const char *const[]){"x", "fc1.weight", "fc1.bias", NULL}, "h", "transB", 1);
    NODE(&n, "Relu", "r", "h");
    add_node(&n, "Gemm", (const char *const[]){"r", "fc2.weight", "fc2.bias", NULL}, "z", "transB", 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "batch size", "shape", "zero");
    add_node(&n, "Concat", (const char *const[]){"batch size", "rest", NULL}, "target", "axis", 0);
    NODE(&n, "Reshape", "y", "z", "target");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, CLASSES));
    return n;
}

static network mlp_with(const char *location) {
    return mlp_of((network){.location = location});
}

static network mlp(void) {
    return mlp_with(NULL);
}

/* ---- training ---- */

static const float x[2 * BATCH * IN] = {0.5f, -1, 2, 0.25f, 1, -0.5f, 1.5f, 0, -1, 2, 1, 0.75f, -2, 0.5f, 1, 0, 1, 1, -1, -1, 0.5f, 1, 2, 3};
static const int32_t y[2 * BATCH] = {0, 1, 1, 0, 0, 1, 0, 1};

static void train(clt_tensor *output, clt_tensor *label, int samples, double losses[3], float *weight) {
    clt_trainer *t;
    clt_train_options o = {.optimizer = CLT_SGD, .lr = 0.1f, .output = output};
    clt_batch batch = {.samples = samples, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(samples, IN), x}, {CLT_I32, CLT_SHAPE(samples), y}}};
    clt_metrics m;
    assert_ok(clt_trainer_create(&t, device, clt_cross_entropy(output, label), &o));
    for (int i = 0; i < 3; i++) {
        assert_ok(clt_trainer_step(t, &batch));
        assert_ok(clt_trainer_train_metrics(t, &m, true));
        losses[i] = m.loss;
    }
    assert_ok(clt_trainer_get(t, "fc1.weight", weight, HIDDEN * IN));
    clt_trainer_destroy(t);
}

/* The same bits as the graph that is built in C; and at another batch than it was built for. */
static void trains_as_in_c(void **state) {
    (void)state;
    network n = mlp();
    clt_onnx *onnx;
    clt_graph *graph, *own;
    double losses[3], wanted[3];
    float got[HIDDEN * IN], expected[HIDDEN * IN];
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = BATCH}));
    clt_tensor *label = clt_input(graph, "label", CLT_I32, CLT_SHAPE(BATCH)), *output = clt_onnx_output(onnx, NULL);
    assert_ptr_equal(output, clt_onnx_output(onnx, "y"));
    assert_null(clt_onnx_output(onnx, "h"));
    assert_non_null(clt_graph_find(graph, "x"));
    assert_int_equal(clt_graph_parameter_count(graph), HIDDEN * IN + HIDDEN + CLASSES * HIDDEN + CLASSES);

    assert_ok(clt_graph_create(&own));
    clt_init values[] = {{.kind = CLT_INIT_VALUES, .values = w1}, {.kind = CLT_INIT_VALUES, .values = b1}, {.kind = CLT_INIT_VALUES, .values = w2},
                         {.kind = CLT_INIT_VALUES, .values = b2}};
    clt_tensor *in = clt_input(own, "x", CLT_F32, CLT_SHAPE(BATCH, IN)), *truth = clt_input(own, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_linear_op(in, clt_parameter(own, "fc1.weight", CLT_SHAPE(HIDDEN, IN), values[0]), clt_parameter(own, "fc1.bias", CLT_SHAPE(HIDDEN), values[1])));
    clt_tensor *z = clt_linear_op(h, clt_parameter(own, "fc2.weight", CLT_SHAPE(CLASSES, HIDDEN), values[2]), clt_parameter(own, "fc2.bias", CLT_SHAPE(CLASSES), values[3]));
    for (int samples = 1; samples <= 2 * BATCH; samples += samples == 1 ? BATCH - 1 : BATCH) {
        train(output, label, samples, losses, got);
        train(z, truth, samples, wanted, expected);
        for (int i = 0; i < 3; i++) assert_true(losses[i] == wanted[i]);
        assert_memory_equal(got, expected, sizeof got);
        assert_true(losses[2] < losses[0]);
    }
    clt_graph_destroy(own);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* A file may be built several times, each time for another size. */
static void is_built_again(void **state) {
    (void)state;
    network n = mlp();
    clt_onnx *onnx;
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    for (int64_t batch = 1; batch < 4; batch++) {
        clt_graph *graph;
        assert_ok(clt_graph_create(&graph));
        assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = batch}));
        clt_shape shape = clt_tensor_shape(clt_onnx_output(onnx, NULL));
        assert_true(shape.dims[0] == batch && shape.dims[1] == CLASSES);
        assert_true(clt_tensor_extent(clt_onnx_output(onnx, NULL)).dims[0] == CLT_BATCH);
        clt_graph_destroy(graph);
    }
    clt_onnx_close(onnx);
}

static void predict(clt_graph *graph, clt_tensor *output, int samples, float *values, size_t count) {
    clt_predictor *p;
    clt_batch batch = {.samples = samples, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(samples, IN), x}}};
    assert_ok(clt_graph_status(graph));
    assert_ok(clt_predictor_create(&p, device, output, NULL));
    if (clt_graph_find(graph, "mask")) assert_ok(clt_predictor_set_input(p, "mask", &(clt_array){CLT_F32, CLT_SHAPE(1, IN), x}));
    assert_ok(clt_predictor_run(p, &batch, values, count));
    clt_predictor_destroy(p);
}

/* Where the batch has a name, a number is a number, also one that the batch has by chance. */
static void numbers_are_not_the_batch(void **state) {
    (void)state;
    clt_onnx *onnx;
    clt_graph *graph;
    float values[IN * 3];
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_info(&n, 11, "mask", CLT_ONNX_FLOAT, CLT_SHAPE(1, IN));
    add_list(&n, "row", (int64_t[]){1, -1}, 2);
    NODE(&n, "Reshape", "y", "x", "row");
    NODE(&n, "Mul", "masked", "x", "mask");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(1, -3));
    add_info(&n, 12, "masked", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, NULL)); /* for a batch of 1 */
    assert_string_equal(clt_onnx_input_symbol(onnx, 0, 0), "batch");
    assert_true(!clt_onnx_input_symbol(onnx, 0, 1) && !clt_onnx_input_symbol(onnx, 0, 2) && !clt_onnx_input_symbol(onnx, 0, -1) && !clt_onnx_input_symbol(onnx, 2, 0));
    clt_shape extent = clt_tensor_extent(clt_onnx_output(onnx, NULL));
    assert_true(extent.dims[0] == 1 && extent.dims[1] < 0);
    assert_int_equal(clt_graph_find(graph, "x")->kind, CLT_NODE_INPUT);
    assert_int_equal(clt_graph_find(graph, "mask")->kind, CLT_NODE_VARIABLE);
    predict(graph, clt_onnx_output(onnx, "y"), 3, values, 3 * IN);
    assert_memory_equal(values, x, sizeof values);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* A table is not cut to as many rows as there are samples: nothing here says so. */
static void a_table_is_not_cut_to_the_batch(void **state) {
    (void)state;
    static float table[6 * IN];
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "table", CLT_SHAPE(6, IN), table);
    add_list(&n, "zero", (int64_t[]){0}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "size", "shape", "zero");
    NODE(&n, "Slice", "rows", "table", "zero", "size", "zero");
    NODE(&n, "Add", "y", "x", "rows");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}), CLT_E_UNSUPPORTED);
    assert_detail("bounds that follow the batch");
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* What is the same for all samples is a constant that is stretched; what is not is refused. */
static void constants_follow_the_batch(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float values[3 * IN];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "ConstantOfShape", "zeros", "shape");
    NODE(&n, "Cos", "ones", "zeros");
    NODE(&n, "Add", "y", "x", "ones");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}));
    predict(graph, clt_onnx_output(onnx, NULL), 3, values, 3 * IN);
    for (int i = 0; i < 3 * IN; i++) assert_true(values[i] == x[i] + 1);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);

    n.graph.length = 0;
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_list(&n, "zero", (int64_t[]){0}, 1);
    add_list(&n, "one", (int64_t[]){1}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "first", "shape", "zero");
    NODE(&n, "Squeeze", "size", "first", "zero");
    NODE(&n, "Squeeze", "start", "zero");
    NODE(&n, "Squeeze", "step", "one");
    NODE(&n, "Range", "numbers", "start", "size", "step");
    add_node(&n, "Cast", (const char *const[]){"numbers", NULL}, "floats", "to", CLT_ONNX_FLOAT);
    NODE(&n, "Unsqueeze", "column", "floats", "one");
    NODE(&n, "Add", "y", "x", "column");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}), CLT_E_UNSUPPORTED);
    assert_detail("values that differ with the batch");
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* Windows of images lie one behind the other, and what they have in common comes again for each image: [batch, 4, IN] as rows [4 batch, 1, IN], and a
 * table for the 4. */
static void stretch(bool tiled) {
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    const int64_t table[4 * IN] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    float windows[7 * 4 * IN], values[7 * 4 * IN];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 4, IN));
    add_list(&n, "zero", (int64_t[]){0}, 1);
    add_list(&n, "windows", (int64_t[]){4}, 1);
    add_list(&n, "rest", (int64_t[]){-1, IN}, 2);
    add_list(&n, "table", table, 4 * IN);
    add_list(&n, "of a sample", (int64_t[]){1, 4, IN}, 3);
    add_list(&n, "ones", (int64_t[]){1, 1}, 2);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "batch", "shape", "zero");
    NODE(&n, "Mul", "rows", "batch", "windows");
    NODE(&n, "Concat", "to", "rows", "rest");
    NODE(&n, "Reshape", "each", "x", "to");
    NODE(&n, "Reshape", "one", "table", "of a sample");
    NODE(&n, "Concat", "times", "batch", "ones");
    if (tiled) NODE(&n, "Tile", "all", "one", "times");
    else NODE(&n, "Expand", "all", "one", "shape");
    NODE(&n, "Reshape", "in rows", "all", "to");
    add_node(&n, "Cast", (const char *const[]){"in rows", NULL}, "floats", "to", CLT_ONNX_FLOAT);
    NODE(&n, "Add", "y", "each", "floats");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-3, 1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}));
    fill(windows, 7 * 4 * IN, 5);
    for (int samples = 1; samples <= 7; samples += 3) {
        clt_predictor *p;
        clt_batch batch = {.samples = samples, .fields = {{CLT_F32, CLT_SHAPE(samples, 4, IN), windows}}, .n_fields = 1};
        assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, NULL), NULL));
        assert_ok(clt_predictor_run(p, &batch, values, (size_t)(samples * 4 * IN)));
        for (int i = 0; i < samples * 4 * IN; i++) assert_true(values[i] == windows[i] + (float)table[i % (4 * IN)]);
        clt_predictor_destroy(p);
    }
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

static void constants_repeat(void **state) {
    (void)state;
    stretch(false);
    stretch(true);
}

/* One node of x [batch, 4] and lists; what it gives must be the same whatever batch it was built for, or be refused. */
static void build_one(network *n, const char *op, const int64_t *first, const int64_t *second) {
    *n = (network){0};
    add_info(n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_list(n, "one", first, 1), add_list(n, "two", second, 1), add_list(n, "zero", (int64_t[]){0}, 1), add_list(n, "axis", (int64_t[]){1}, 1);
    if (!strcmp(op, "Slice rows")) NODE(n, "Slice", "part", "x", "one", "two", "zero");
    else if (!strcmp(op, "Slice columns")) NODE(n, "Slice", "part", "x", "one", "two", "axis");
    else NODE(n, op, "part", "x", "one");
    NODE(n, "ReduceSum", "y", "part", "zero");
    add_info(n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(1, IN));
}

static void assert_one(const char *op, int64_t first, int64_t second, const char *refused) {
    for (int64_t built = 2; built <= 5; built += 3) {
        network n;
        clt_onnx *onnx;
        clt_graph *graph;
        build_one(&n, op, &first, &second);
        assert_ok(clt_onnx_open(&onnx, write_network(&n)));
        assert_ok(clt_graph_create(&graph));
        clt_status status = clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = built});
        assert_int_equal(status, refused ? CLT_E_UNSUPPORTED : CLT_OK);
        if (refused) assert_detail(refused);
        clt_shape shape = clt_tensor_shape(clt_onnx_output(onnx, NULL));
        for (int samples = 3; !refused && samples <= 7; samples += 4) {
            float got[IN], wanted[IN] = {0};
            bool rows = !strcmp(op, "Slice rows"), gather = !strcmp(op, "Gather");
            int64_t size = rows ? samples : IN, from = first < 0 ? first + size : first, to = second < 0 ? second + size : second < size ? second : size;
            for (int r = 0; r < samples; r++)
                for (int c = 0; c < IN; c++) {
                    if (rows && r >= from && r < to) wanted[c] += x[r * IN + c];
                    if (gather && r == 0) wanted[c] = x[(int)first * IN + c];
                    if (!rows && !gather && c >= from && c < to) wanted[c - from] += x[r * IN + c];
                }
            predict(graph, clt_onnx_output(onnx, NULL), samples, got, (size_t)shape.dims[1]);
            for (int c = 0; c < shape.dims[1]; c++) assert_true(fabsf(got[c] - wanted[c]) < 1e-5f);
        }
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
    }
}

static void bounds_mean_the_same_at_every_batch(void **state) {
    (void)state;
    assert_one("Slice rows", 0, -1, NULL);
    assert_one("Slice rows", 0, INT64_MAX, NULL);
    assert_one("Slice rows", -1, INT64_MAX, NULL);
    assert_one("Slice rows", 1, INT64_MAX, NULL);
    assert_one("Slice rows", 0, 9, "the bound 9 of ");
    assert_one("Slice rows", -9, INT64_MAX, "the bound -9 of ");
    for (int64_t k = -3; k < 3; k++) assert_one("Slice columns", k, INT64_MAX, NULL); /* of which -2 and -3 are nothing else */
    for (int64_t k = -2; k < 5; k++)
        if (k) assert_one("Slice columns", 0, k, NULL);
    assert_one("Gather", 0, 0, NULL);
    assert_one("Gather", -1, 0, "index -1 along a dimension that follows");
    assert_one("Gather", 1, 0, "index 1 along a dimension that follows");
    assert_one("Reshape", -2, 0, "a dimension of -2");
}

/* The smaller of the batch and 4 is 4 at all batches of 4 and more that shapes are tried at. */
static void kinks_are_seen(void **state) {
    (void)state;
    for (int64_t built = 2; built <= 6; built += 4) {
        network n = {0};
        clt_onnx *onnx;
        clt_graph *graph;
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
        add_list(&n, "zero", (int64_t[]){0}, 1), add_list(&n, "four", (int64_t[]){4}, 1);
        NODE(&n, "Shape", "shape", "x");
        NODE(&n, "Gather", "size", "shape", "zero");
        NODE(&n, "Min", "least", "size", "four");
        add_node(&n, "Cast", (const char *const[]){"least", NULL}, "factor", "to", CLT_ONNX_FLOAT);
        NODE(&n, "Mul", "y", "x", "factor");
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
        assert_ok(clt_onnx_open(&onnx, write_network(&n)));
        assert_ok(clt_graph_create(&graph));
        assert_status(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = built}), CLT_E_UNSUPPORTED);
        assert_detail("values that differ with the batch");
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
    }
}

/* Zeros that are as many as the batch says, and more than a literal holds at another batch. */
static void large_constants_are_the_devices(void **state) {
    (void)state;
    enum { WIDTH = 1500 };
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float *values = calloc(100 * WIDTH, sizeof *values);
    assert_non_null(values);
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_list(&n, "zero", (int64_t[]){0}, 1), add_list(&n, "width", (int64_t[]){WIDTH}, 1), add_list(&n, "axis", (int64_t[]){1}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "size", "shape", "zero");
    add_node(&n, "Concat", (const char *const[]){"size", "width", NULL}, "wide", "axis", 0);
    NODE(&n, "ConstantOfShape", "zeros", "wide");
    NODE(&n, "Cos", "ones", "zeros");
    NODE(&n, "ReduceSum", "sums", "x", "axis");
    NODE(&n, "Mul", "y", "ones", "sums");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 100})); /* 200 are tried, too: 300,000 values */
    predict(graph, clt_onnx_output(onnx, NULL), 3, values, 3 * WIDTH);
    for (int i = 0; i < 3; i++) assert_true(fabsf(values[i * WIDTH + 7] - (x[3 * i] + x[3 * i + 1] + x[3 * i + 2])) < 1e-6f);
    free(values);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* Indices that are computed may count from the end. */
static void computed_indices_count_from_the_end(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float values[2 * BATCH * IN];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "table", CLT_SHAPE(4, 1), (float[]){10, 20, 30, 40});
    add_list(&n, "axis", (int64_t[]){2}, 1);
    add_node(&n, "Cast", (const char *const[]){"x", NULL}, "places", "to", CLT_ONNX_INT64); /* towards zero: -2 to 3 */
    add_node(&n, "Gather", (const char *const[]){"table", "places", NULL}, "rows", "axis", 0);
    NODE(&n, "Squeeze", "y", "rows", "axis");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}));
    predict(graph, clt_onnx_output(onnx, NULL), 2 * BATCH, values, 2 * BATCH * IN);
    for (int i = 0; i < 2 * BATCH * IN; i++) {
        int place = (int)x[i];
        assert_true(values[i] == 10.0f * (float)((place < 0 ? place + 4 : place) + 1));
    }
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

static void add_note(network *n, const char *name, const char *kind) {
    message m = {.length = 0}, pair = {.length = 0};
    put_text(&m, 1, name);
    put_text(&pair, 1, "pkg.torch.export.graph_signature.InputSpec.kind");
    put_text(&pair, 2, kind);
    put_message(&m, 4, &pair);
    put_message(&n->graph, 13, &m);
}

/* PyTorch's newer exporter tells parameters from buffers and constants. */
static void what_pytorch_trains_is_trained(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float values[2 * IN];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    for (int i = 0; i < 4; i++) add_weight(&n, (const char *const[]){"a", "b", "c", "d"}[i], CLT_SHAPE(IN), (float[]){1, 2, (float)i});
    NODE(&n, "Mul", "p", "x", "a");
    NODE(&n, "Mul", "q", "p", "b");
    NODE(&n, "Mul", "r", "q", "c");
    NODE(&n, "Mul", "y", "r", "d");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_note(&n, "a", "PARAMETER"), add_note(&n, "b", "BUFFER"), add_note(&n, "c", "CONSTANT_TENSOR"), add_note(&n, "nothing", "BUFFER"), add_note(&n, "y", "BUFFER");
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    for (int i = 0; i < 2; i++) {
        assert_ok(clt_graph_create(&graph));
        assert_ok(clt_onnx_build(onnx, graph, NULL));
        assert_true(clt_graph_find(graph, "a")->variable->trained && clt_graph_find(graph, "d")->variable->trained);
        assert_true(clt_graph_find(graph, "b")->variable->is_buffer);
        assert_int_equal(clt_graph_parameter_count(graph), 2 * IN);
        predict(graph, clt_onnx_output(onnx, NULL), 2, values, 2 * IN);
        for (int k = 0; k < 2; k++) assert_true(values[3 * k] == x[3 * k] && values[3 * k + 1] == 16 * x[3 * k + 1] && values[3 * k + 2] == 0);
        clt_graph_destroy(graph);
    }
    clt_onnx_close(onnx);
}

/* What is chosen between is not multiplied. */
static void infinities_stay_where_they_are(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float slopes[2 * IN], hot[2 * IN * 3];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "slope", CLT_SHAPE(1), (float[]){INFINITY});
    add_weight(&n, "values", CLT_SHAPE(2), (float[]){-INFINITY, 2});
    add_list(&n, "depth", (int64_t[]){3}, 1);
    add_node(&n, "Cast", (const char *const[]){"x", NULL}, "places", "to", CLT_ONNX_INT64);
    NODE(&n, "PRelu", "y", "x", "slope");
    NODE(&n, "OneHot", "hot", "places", "depth", "values");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_info(&n, 12, "hot", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN, 3));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}));
    predict(graph, clt_onnx_output(onnx, "y"), 2, slopes, 2 * IN);
    predict(graph, clt_onnx_output(onnx, "hot"), 2, hot, 2 * IN * 3);
    for (int i = 0; i < 2 * IN; i++) {
        assert_true(slopes[i] == (x[i] < 0 ? -INFINITY : x[i]));
        for (int k = 0; k < 3; k++) assert_true(hot[3 * i + k] == (k == ((int)x[i] + 3) % 3 ? 2 : -INFINITY));
    }
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* What a file gives for a batch. */
static void predict_file(const network *n, const clt_onnx_options *options, const clt_batch *batch, float *values, size_t count) {
    clt_onnx *onnx;
    clt_graph *graph;
    clt_predictor *p;
    assert_ok(clt_onnx_open(&onnx, write_network(n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, options));
    assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, NULL), NULL));
    assert_ok(clt_predictor_run(p, batch, values, count));
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

static void put_word(message *m, const char *name, const char *value) {
    message a = {.length = 0};
    put_text(&a, 1, name);
    put_text(&a, 4, value);
    put_number(&a, 20, CLT_ONNX_A_STRING);
    put_message(m, 5, &a);
}

/* By a scale of 1.5 three places become 4.5, which ONNX's own implementation lays the last corner at, and PyTorch at the fourth. */
static void corners_are_their_producers(void **state) {
    (void)state;
    for (int pytorch = 0; pytorch < 2; pytorch++) {
        network n = {.producer = pytorch ? "pytorch" : "other"};
        clt_onnx *onnx;
        clt_graph *graph;
        float values[2 * 4];
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
        add_weight(&n, "scales", CLT_SHAPE(2), (float[]){1, 1.5f});
        message m = {.length = 0};
        put_text(&m, 1, "x"), put_text(&m, 1, ""), put_text(&m, 1, "scales"), put_text(&m, 2, "y"), put_text(&m, 4, "Resize");
        put_word(&m, "mode", "linear"), put_word(&m, "coordinate_transformation_mode", "align_corners");
        put_message(&n.graph, 1, &m);
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 4));
        assert_ok(clt_onnx_open(&onnx, write_network(&n)));
        assert_ok(clt_graph_create(&graph));
        assert_ok(clt_onnx_build(onnx, graph, NULL));
        predict(graph, clt_onnx_output(onnx, NULL), 2, values, 8);
        for (int i = 0; i < 8; i++) {
            float place = (float)(i % 4) * 2 / (pytorch ? 3.0f : 3.5f), part = place - floorf(place);
            const float *at = x + i / 4 * IN + (int)place;
            assert_true(fabsf(values[i] - (part > 0 ? at[0] * (1 - part) + at[1] * part : at[0])) < 1e-6f);
        }
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
    }
}

/* Places and sizes are computed in float, as by others: in double 10 of 0.7 are 6.99… places, and 3 / 0.6 is 4.99…. */
static void places_are_computed_in_float(void **state) {
    (void)state;
    static const struct {
        float scale;
        int64_t size, out;
        int place, nearest;
    } cases[] = {{0.7f, 10, 7, 6, 8}, {1.4f, 10, 14, 7, 5}, {0.4f, 32, 12, 6, 15}, {0.45f, 20, 9, 8, 17}};
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        network n = {.opset = 17};
        float in[2 * 32], values[2 * 32];
        for (int e = 0; e < 2 * 32; e++) in[e] = (float)(e % (int)cases[i].size);
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, cases[i].size));
        add_weight(&n, "scales", CLT_SHAPE(2), (float[]){1, cases[i].scale});
        message m = {.length = 0};
        put_text(&m, 1, "x"), put_text(&m, 1, ""), put_text(&m, 1, "scales"), put_text(&m, 2, "y"), put_text(&m, 4, "Resize");
        put_word(&m, "mode", "nearest"), put_word(&m, "coordinate_transformation_mode", "asymmetric"), put_word(&m, "nearest_mode", "floor");
        put_message(&n.graph, 1, &m);
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, cases[i].out));
        clt_batch batch = {.samples = 2, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(2, cases[i].size), in}}};
        predict_file(&n, &(clt_onnx_options){.batch = 2}, &batch, values, (size_t)(2 * cases[i].out));
        assert_true(values[cases[i].place] == (float)cases[i].nearest);
    }
}

/* Labels are moved by one place, and what comes in is ignored, as language models of PyTorch do. */
static void integers_are_padded(void **state) {
    (void)state;
    static const int32_t ids[2 * IN] = {4, 5, 6, 7, 8, 9};
    float values[2 * (IN + 3)];
    network n = {0};
    add_info(&n, 11, "ids", CLT_ONNX_INT64, CLT_SHAPE(-1, IN));
    add_list(&n, "pads", (int64_t[]){0, 1, 0, 2}, 4), add_list(&n, "ignored", (int64_t[]){-100}, 1);
    NODE(&n, "Pad", "more", "ids", "pads", "ignored");
    add_node(&n, "Cast", (const char *const[]){"more", NULL}, "y", "to", CLT_ONNX_FLOAT);
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN + 3));
    clt_batch batch = {.samples = 2, .n_fields = 1, .fields = {{CLT_I32, CLT_SHAPE(2, IN), ids}}};
    predict_file(&n, &(clt_onnx_options){.batch = 3}, &batch, values, 2 * (IN + 3));
    for (int i = 0; i < 2 * (IN + 3); i++) {
        int at = i % (IN + 3);
        assert_true(values[i] == (at >= 1 && at <= IN ? (float)ids[i / (IN + 3) * IN + at - 1] : -100));
    }
}

/* h' = relu(2 x + h), over [T, N, 1]. */
static void plain_cells_may_be_rectified(void **state) {
    (void)state;
    static const float series[3] = {1, -4, 3}, wanted[3] = {2, 0, 6};
    float values[3];
    network n = {0};
    message m = {.length = 0}, a = {.length = 0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 3, 1));
    add_weight(&n, "w", CLT_SHAPE(1, 1, 1), (float[]){2}), add_weight(&n, "r", CLT_SHAPE(1, 1, 1), (float[]){1});
    put_text(&m, 1, "x"), put_text(&m, 1, "w"), put_text(&m, 1, "r"), put_text(&m, 2, "h"), put_text(&m, 4, "RNN");
    put_text(&a, 1, "activations"), put_text(&a, 9, "Relu"), put_number(&a, 20, CLT_ONNX_A_STRINGS), put_message(&m, 5, &a);
    a.length = 0;
    put_text(&a, 1, "layout"), put_number(&a, 3, 1), put_number(&a, 20, CLT_ONNX_A_INT), put_message(&m, 5, &a);
    a.length = 0;
    put_text(&a, 1, "hidden_size"), put_number(&a, 3, 1), put_number(&a, 20, CLT_ONNX_A_INT), put_message(&m, 5, &a);
    put_message(&n.graph, 1, &m);
    add_info(&n, 12, "h", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 3, 1, 1));
    predict_file(&n, &(clt_onnx_options){.batch = 1}, &(clt_batch){.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1, 3, 1), series}}}, values, 3);
    for (int i = 0; i < 3; i++) assert_true(values[i] == wanted[i]);
}

static void powers_may_be_integers(void **state) {
    (void)state;
    static const float numbers[2] = {-2, 3}, wanted[2] = {64, 6561}; /* (x^[3, 4])^2 */
    float values[2];
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2));
    add_list(&n, "powers", (int64_t[]){3, 4}, 2);
    add_list(&n, "two", (int64_t[]){2}, 1);
    NODE(&n, "Squeeze", "square", "two");
    NODE(&n, "Pow", "y", "x", "powers");
    NODE(&n, "Pow", "z", "y", "square");
    add_info(&n, 12, "z", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2));
    predict_file(&n, &(clt_onnx_options){.batch = 1}, &(clt_batch){.samples = 1, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(1, 2), numbers}}}, values, 2);
    for (int i = 0; i < 2; i++) assert_true(fabsf(values[i] - wanted[i]) <= 1e-5f * wanted[i]);
}

/* ---- attention, as exporters write it ---- */

enum { HEADS = 2, QUERIES = 5, KEYS = 7, MOST_WIDTH = 32 };

typedef struct attention_case {
    const char *what;
    int width;
    enum { NO_MASK, ADDED, ADDED_FIRST, SEEN_WHERE, HIDDEN_WHERE, TRAINED } mask;
    float hidden;                        /* what is in the place of scores */
    bool turned_with_heads, scaled_twice, without_nan, axis_of_queries, is_attention;
} attention_case;

static void add_order(network *n, const char *from, const char *to, const int *order) {
    message m = {.length = 0}, a = {.length = 0};
    put_text(&m, 1, from), put_text(&m, 2, to), put_text(&m, 4, "Transpose");
    put_text(&a, 1, "perm");
    for (int d = 0; d < 4; d++) put_number(&a, 8, (uint64_t)order[d]);
    put_number(&a, 20, CLT_ONNX_A_INTS);
    put_message(&m, 5, &a);
    put_message(&n->graph, 1, &m);
}

static const float *mask_values(const attention_case *c) {
    static float values[QUERIES * KEYS];
    for (int i = 0; i < QUERIES * KEYS; i++) {
        bool seen = i % 3 != 1 || (!c->without_nan && i % KEYS == 0) || i == 0;
        if (c->without_nan && i / KEYS == 2) seen = false; /* a query that sees none */
        values[i] = c->mask == SEEN_WHERE ? seen : c->mask == HIDDEN_WHERE ? !seen : seen ? 0.25f * (float)(i % 5) : c->hidden;
    }
    return values;
}

/* x's rows hold q, k and v, one behind the other; k is turned after, or with its heads. */
static network attention_network(const attention_case *c) {
    network n = {0};
    int keys_first[] = {0, 1, 3, 2}, heads_first[] = {0, 2, 3, 1};
    add_info(&n, 11, "q", CLT_ONNX_FLOAT, CLT_SHAPE(-1, HEADS, QUERIES, c->width));
    add_info(&n, 11, "k", CLT_ONNX_FLOAT, c->turned_with_heads ? CLT_SHAPE(-1, KEYS, HEADS, c->width) : CLT_SHAPE(-1, HEADS, KEYS, c->width));
    add_info(&n, 11, "v", CLT_ONNX_FLOAT, CLT_SHAPE(-1, HEADS, KEYS, c->width));
    add_weight(&n, "scale", (clt_shape){0}, (float[]){c->scaled_twice ? 0.5f : 0.25f});
    add_weight(&n, "hidden", (clt_shape){0}, &c->hidden);
    add_weight(&n, "zero", (clt_shape){0}, (float[]){0});
    add_order(&n, "k", "turned", c->turned_with_heads ? heads_first : keys_first);
    if (c->scaled_twice) {
        NODE(&n, "Mul", "q scaled", "q", "scale"), NODE(&n, "Mul", "k scaled", "scale", "turned");
        NODE(&n, "MatMul", "scores", "q scaled", "k scaled");
    } else NODE(&n, "MatMul", "products", "q", "turned"), NODE(&n, "Mul", "scores", "products", "scale");
    if (c->mask == TRAINED) add_weight(&n, "mask", CLT_SHAPE(QUERIES, KEYS), mask_values(c));
    else if (c->mask) add_info(&n, 11, "mask", CLT_ONNX_FLOAT, CLT_SHAPE(QUERIES, KEYS));
    if (c->mask == SEEN_WHERE || c->mask == HIDDEN_WHERE) NODE(&n, "Greater", "choice", "mask", "zero");
    switch (c->mask) {
    case NO_MASK: NODE(&n, "Identity", "masked", "scores"); break;
    case ADDED_FIRST: NODE(&n, "Add", "masked", "mask", "scores"); break;
    case SEEN_WHERE: NODE(&n, "Where", "masked", "choice", "scores", "hidden"); break;
    case HIDDEN_WHERE: NODE(&n, "Where", "masked", "choice", "hidden", "scores"); break;
    default: NODE(&n, "Add", "masked", "scores", "mask"); break;
    }
    add_node(&n, "Softmax", (const char *const[]){"masked", NULL}, "p", "axis", (int64_t)(c->axis_of_queries ? 2 : -1));
    if (c->without_nan) NODE(&n, "IsNaN", "nothing", "p"), NODE(&n, "Where", "weights", "nothing", "zero", "p");
    NODE(&n, "MatMul", "y", c->without_nan ? "weights" : "p", "v");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, HEADS, QUERIES, c->width));
    return n;
}

static float *attention_operand(int which) {
    static float values[3][2 * HEADS * KEYS * MOST_WIDTH];
    fill(values[which], 2 * HEADS * KEYS * MOST_WIDTH, which);
    return values[which];
}

/* The score of a query and a key, both of one head of a sample. */
static double score_of(const attention_case *c, int head, int i, int j) {
    const float *q = attention_operand(0) + (head * QUERIES + i) * c->width, *k = attention_operand(1), *mask = mask_values(c);
    k += (c->turned_with_heads ? (head / HEADS * KEYS + j) * HEADS + head % HEADS : head * KEYS + j) * c->width;
    double sum = 0, told = (double)mask[i * KEYS + j];
    for (int d = 0; d < c->width; d++) sum += (double)q[d] * (double)k[d];
    sum *= 0.25;
    if (c->mask == SEEN_WHERE || c->mask == HIDDEN_WHERE) return (c->mask == SEEN_WHERE) == (told > 0) ? sum : (double)c->hidden;
    return c->mask ? sum + told : sum;
}

static double weight_of(const attention_case *c, int head, int i, int j) {
    double sum = 0, own = exp(score_of(c, head, i, j) - 8);
    int n = c->axis_of_queries ? QUERIES : KEYS;
    for (int o = 0; o < n; o++) sum += exp((c->axis_of_queries ? score_of(c, head, o, j) : score_of(c, head, i, o)) - 8);
    return sum > 0 ? own / sum : 0;
}

static void check_attention(const attention_case *c) {
    network n = attention_network(c);
    clt_onnx *onnx;
    clt_graph *graph;
    clt_predictor *p;
    float values[2 * HEADS * QUERIES * MOST_WIDTH];
    bool marks[256] = {false}, found = false;
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, NULL));
    clt_tensor *output = clt_onnx_output(onnx, NULL);
    assert_true(graph->n_nodes <= sizeof marks);
    clt_graph_mark(graph, &output, 1, marks);
    for (size_t i = 0; i < graph->n_nodes; i++) found |= marks[i] && graph->nodes[i]->op && !strcmp(graph->nodes[i]->op->name, "attention");
    if (found != c->is_attention) fail_msg("%s: attention is %sfound", c->what, found ? "" : "not ");
    assert_ok(clt_predictor_create(&p, device, output, NULL));
    if (c->mask && c->mask != TRAINED) assert_ok(clt_predictor_set_input(p, "mask", &(clt_array){CLT_F32, CLT_SHAPE(QUERIES, KEYS), mask_values(c)}));
    clt_batch batch = {.samples = 2, .n_fields = 3, .fields = {{CLT_F32, CLT_SHAPE(2, HEADS, QUERIES, c->width), attention_operand(0)},
                       {CLT_F32, c->turned_with_heads ? CLT_SHAPE(2, KEYS, HEADS, c->width) : CLT_SHAPE(2, HEADS, KEYS, c->width), attention_operand(1)},
                       {CLT_F32, CLT_SHAPE(2, HEADS, KEYS, c->width), attention_operand(2)}}};
    assert_ok(clt_predictor_run(p, &batch, values, (size_t)(2 * HEADS * QUERIES * c->width)));
    for (int e = 0; e < 2 * HEADS * QUERIES * c->width; e++) {
        int d = e % c->width, i = e / c->width % QUERIES, head = e / c->width / QUERIES;
        double wanted = 0;
        for (int j = 0; j < KEYS; j++) wanted += weight_of(c, head, i, j) * (double)attention_operand(2)[(head * KEYS + j) * c->width + d];
        if (!(fabs((double)values[e] - wanted) < 1e-5)) fail_msg("%s: element %d is %g, not %g", c->what, e, (double)values[e], wanted);
    }
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

static void products_become_attention(void **state) {
    (void)state;
    static const attention_case cases[] = {
        {"plain", 32, .is_attention = true},
        {"scaled before", 32, .scaled_twice = true, .is_attention = true},
        {"turned with its heads", 32, .turned_with_heads = true, .is_attention = true},
        {"turned and scaled before", 32, .turned_with_heads = true, .scaled_twice = true, .is_attention = true},
        {"a mask added", 32, .mask = ADDED, .hidden = -1e9f, .is_attention = true},
        {"a mask added to", 32, .mask = ADDED_FIRST, .hidden = -INFINITY, .is_attention = true},
        {"seen keys chosen", 32, .mask = SEEN_WHERE, .hidden = -3e38f, .is_attention = true},
        {"hidden keys chosen", 32, .mask = HIDDEN_WHERE, .hidden = -INFINITY, .is_attention = true},
        {"queries without keys", 32, .mask = ADDED, .hidden = -INFINITY, .without_nan = true, .is_attention = true},
        {"queries without keys, chosen", 32, .mask = HIDDEN_WHERE, .hidden = -INFINITY, .without_nan = true, .is_attention = true},
        {"hidden by little", 32, .mask = SEEN_WHERE, .hidden = -5},
        {"a mask that is trained", 32, .mask = TRAINED, .hidden = -2},
        {"a width without kernels", 8},
        {"over queries", 32, .axis_of_queries = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_attention(&cases[i]);
}

/* Who says whether batch normalization is that of training, and how. */
typedef struct norm_file {
    const char *producer, *node;
    int64_t opset, training_mode; /* 0: 17; -1: not told */
    int outputs;
    bool trains;
} norm_file;

static void add_norm(network *n, const norm_file *f) {
    static const char *const inputs[] = {"x", "weight", "bias", "mean", "variance"}, *const outputs[] = {"y", "m", "v", "saved_m", "saved_v"};
    message m = {.length = 0}, a = {.length = 0};
    for (int i = 0; i < 5; i++) put_text(&m, 1, inputs[i]);
    for (int i = 0; i < f->outputs; i++) put_text(&m, 2, outputs[i]);
    put_text(&m, 3, f->node ? f->node : "norm");
    put_text(&m, 4, "BatchNormalization");
    put_text(&a, 1, "training_mode"), put_number(&a, 3, (uint64_t)f->training_mode), put_number(&a, 20, CLT_ONNX_A_INT);
    if (f->training_mode >= 0) put_message(&m, 5, &a);
    put_message(&n->graph, 1, &m);
}

/* The loss of a file's batch normalization of (x - 1) / 2, while it is trained. */
static double loss_of_norm(const norm_file *f) {
    static const float ones[IN] = {1, 1, 1}, none[IN] = {0}, deviations[IN] = {4, 4, 4}, goal[BATCH * IN] = {0};
    network n = {.producer = f->producer, .opset = f->opset};
    clt_onnx *onnx;
    clt_graph *graph;
    clt_trainer *t;
    clt_metrics m;
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "weight", CLT_SHAPE(IN), ones), add_weight(&n, "bias", CLT_SHAPE(IN), none);
    add_weight(&n, "mean", CLT_SHAPE(IN), ones), add_weight(&n, "variance", CLT_SHAPE(IN), deviations);
    add_norm(&n, f);
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = BATCH}));
    clt_tensor *target = clt_input(graph, "target", CLT_F32, CLT_SHAPE(BATCH, IN));
    assert_ok(clt_trainer_create(&t, device, clt_mse_loss(clt_onnx_output(onnx, NULL), target), &(clt_train_options){.optimizer = CLT_SGD, .lr = CLT_ZERO}));
    clt_batch batch = {.samples = BATCH, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(BATCH, IN), x}, {CLT_F32, CLT_SHAPE(BATCH, IN), goal}}};
    for (int i = 0; i < 2; i++) assert_ok(clt_trainer_step(t, &batch));
    assert_ok(clt_trainer_train_metrics(t, &m, true));
    float mean[IN];
    assert_ok(clt_trainer_get(t, "mean", mean, IN));
    assert_true((mean[0] != 1) == f->trains); /* batches move it where they count */
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
    return m.loss;
}

/* Batch normalization of evaluation stays what it is. */
static void norms_train_as_the_file_says(void **state) {
    (void)state;
    double of_statistics = 0;
    for (int e = 0; e < BATCH * IN; e++) of_statistics += (double)((x[e] - 1) * (x[e] - 1)) / 4.00001 / (BATCH * IN);
    static const norm_file files[] = {
        {.training_mode = -1, .outputs = 1},
        {.training_mode = 0, .outputs = 1},
        {.training_mode = 1, .outputs = 1, .trains = true},
        {.opset = 9, .training_mode = -1, .outputs = 1},
        {.opset = 9, .training_mode = -1, .outputs = 5, .trains = true},
        {.producer = "cltrain", .training_mode = -1, .outputs = 1, .trains = true}, /* was trained here */
        {.producer = "pytorch", .node = "node__native_batch_norm_legit_functional__0", .training_mode = -1, .outputs = 1, .trains = true},
        {.producer = "pytorch", .node = "node__native_batch_norm_legit_no_training__0", .training_mode = -1, .outputs = 1},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_true(files[i].trains ? fabs(loss_of_norm(&files[i]) - 1) < 1e-3 : fabs(loss_of_norm(&files[i]) - of_statistics) < 1e-5); /* 1: of mean 0 and deviation 1 */
}

/* Padding by a row's own places, and a row from behind. */
static void places_are_selected(void **state) {
    (void)state;
    enum { WIDTH = 4, MOST = 11 };
    static const struct {
        const char *mode; /* NULL: from behind */
        int places[MOST], n;
    } cases[] = {{"reflect", {2, 1, 0, 1, 2, 3, 2}, 7}, {"edge", {0, 0, 0, 1, 2, 3, 3}, 7}, {"wrap", {2, 3, 0, 1, 2, 3, 0}, 7}, {NULL, {3, 1}, 2}};
    static const float in[2 * WIDTH] = {1, 2, 3, 4, 50, 60, 70, 80};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        float values[2 * MOST];
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
        add_list(&n, "pads", (int64_t[]){0, 2, 0, 1}, 4), add_list(&n, "last", (int64_t[]){-1}, 1), add_list(&n, "first", (int64_t[]){INT64_MIN}, 1);
        add_list(&n, "one", (int64_t[]){1}, 1), add_list(&n, "back", (int64_t[]){-2}, 1);
        if (cases[i].mode) add_node_of_text(&n, "Pad", (const char *const[]){"x", "pads", NULL}, "y", "mode", cases[i].mode);
        else NODE(&n, "Slice", "y", "x", "last", "first", "one", "back");
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, cases[i].n));
        predict_file(&n, &(clt_onnx_options){.batch = 2}, &(clt_batch){.samples = 2, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(2, WIDTH), in}}}, values, (size_t)(2 * cases[i].n));
        for (int e = 0; e < 2 * cases[i].n; e++) assert_true(values[e] == in[e / cases[i].n * WIDTH + cases[i].places[e % cases[i].n]]);
    }
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
    add_list(&n, "many", (int64_t[]){0, INT64_MAX, 0, INT64_MAX}, 4);
    add_node_of_text(&n, "Pad", (const char *const[]){"x", "many", NULL}, "y", "mode", "edge");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, WIDTH));
    assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, "such padding with 8388612 places");
}

/* What exporters write of ids and masks: clamped, one-hot, counted. */
static void integers_are_counted(void **state) {
    (void)state;
    enum { PLACES = 4, DEPTH = 3 };
    static const int32_t ids[2 * PLACES] = {0, 7, 2, 1, 1, 1, -5, 9};
    static const float wanted[2 * DEPTH] = {1, 1, 2, 1, 2, 1};
    network n = {0};
    float values[2 * DEPTH], total[2] = {0};
    add_info(&n, 11, "ids", CLT_ONNX_INT64, CLT_SHAPE(-1, PLACES));
    add_list(&n, "two", (int64_t[]){2}, 1), add_list(&n, "none", (int64_t[]){0}, 1), add_list(&n, "depth", (int64_t[]){DEPTH}, 1);
    add_list(&n, "off on", (int64_t[]){0, 1}, 2), add_list(&n, "one", (int64_t[]){1}, 1);
    NODE(&n, "Squeeze", "low", "none"), NODE(&n, "Squeeze", "high", "two");
    NODE(&n, "Clip", "clamped", "ids", "low", "high");
    NODE(&n, "OneHot", "which", "clamped", "depth", "off on"); /* [N, PLACES, DEPTH] of i64 */
    add_node(&n, "ReduceSum", (const char *const[]){"which", "one", NULL}, "counts", "keepdims", 0);
    add_node(&n, "Cast", (const char *const[]){"counts", NULL}, "y", "to", CLT_ONNX_FLOAT);
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, DEPTH));
    predict_file(&n, &(clt_onnx_options){.batch = 2}, &(clt_batch){.samples = 2, .n_fields = 1, .fields = {{CLT_I32, CLT_SHAPE(2, PLACES), ids}}}, values, 2 * DEPTH);
    for (int e = 0; e < 2 * DEPTH; e++) {
        if (values[e] != wanted[e]) fail_msg("count %d is %g, not %g", e, (double)values[e], (double)wanted[e]);
        total[e / DEPTH] += values[e];
    }
    assert_true(total[0] == PLACES && total[1] == PLACES);
}

/* Sizes to compute with: x by the batch, and by twice the length. */
static void sizes_are_numbers(void **state) {
    (void)state;
    static const float in[3 * 4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    clt_predictor *p;
    float values[3 * 4];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2));
    add_list(&n, "zero", (int64_t[]){0}, 1), add_list(&n, "one", (int64_t[]){1}, 1), add_list(&n, "two", (int64_t[]){2}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "batch sizes", "shape", "zero"), NODE(&n, "Gather", "lengths", "shape", "one"), NODE(&n, "Mul", "twice", "lengths", "two");
    NODE(&n, "Squeeze", "batch size", "batch sizes", "zero");
    add_node(&n, "Cast", (const char *const[]){"batch size", NULL}, "samples", "to", CLT_ONNX_FLOAT);
    add_node(&n, "Cast", (const char *const[]){"twice", NULL}, "places", "to", CLT_ONNX_FLOAT);
    NODE(&n, "Div", "mean", "x", "samples");
    NODE(&n, "Mul", "y", "mean", "places");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2, .length_symbol = "length", .length = 4}));
    assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, NULL), NULL));
    for (int64_t samples = 1; samples <= 3; samples++)
        for (int64_t length = 1; length <= 4; length++) {
            assert_ok(clt_predictor_run(p, &(clt_batch){.samples = samples, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(samples, length), in}}}, values, (size_t)(samples * length)));
            for (int e = 0; e < samples * length; e++) assert_true(fabsf(values[e] - in[e] / (float)samples * 2 * (float)length) < 1e-5f);
        }
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* A weight that is turned for a product is not copied. */
static void weights_are_not_turned(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    bool marks[64] = {false};
    fill(w1, HIDDEN * IN, 1);
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2, IN));
    add_weight(&n, "w", CLT_SHAPE(HIDDEN, IN), w1);
    NODE(&n, "Transpose", "t", "w");
    NODE(&n, "MatMul", "y", "x", "t");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2, HIDDEN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2}));
    clt_tensor *output = clt_onnx_output(onnx, NULL);
    assert_true(graph->n_nodes <= sizeof marks);
    clt_graph_mark(graph, &output, 1, marks);
    for (size_t i = 0; i < graph->n_nodes; i++) assert_false(marks[i] && graph->nodes[i]->op == &clt_op_permute);
    clt_predictor *p;
    float values[2 * 2 * HIDDEN];
    assert_ok(clt_predictor_create(&p, device, output, NULL));
    assert_ok(clt_predictor_run(p, &(clt_batch){.samples = 2, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(2, 2, IN), x}}}, values, 2 * 2 * HIDDEN));
    for (int e = 0; e < 2 * 2 * HIDDEN; e++) {
        float wanted = 0;
        for (int k = 0; k < IN; k++) wanted += x[e / HIDDEN * IN + k] * w1[e % HIDDEN * IN + k];
        assert_true(fabsf(values[e] - wanted) < 1e-5f);
    }
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* Positions and a mask that exporters compute from the length: batches of shorter sequences give what a file built for their length gives. */
static void lengths_follow(void **state) {
    (void)state;
    enum { LONGEST = 6, WIDTH = 2 };
    static float table[8 * WIDTH];
    static const float tokens[2 * LONGEST] = {0, 3, 1, 2, 4, 5, 7, 6, 2, 1, 0, 3};
    float wanted[2 * LONGEST * LONGEST], got[2 * LONGEST * LONGEST];
    network n = {0};
    clt_onnx *onnx;
    fill(table, 8 * WIDTH, 5);
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2));
    add_weight(&n, "positions", CLT_SHAPE(8, WIDTH), table);
    add_list(&n, "zero", (int64_t[]){0}, 1), add_list(&n, "one", (int64_t[]){1}, 1), add_list(&n, "two", (int64_t[]){2}, 1);
    NODE(&n, "Shape", "shape", "x");
    NODE(&n, "Gather", "sizes", "shape", "one");
    NODE(&n, "Squeeze", "length", "sizes", "zero"), NODE(&n, "Squeeze", "from", "zero"), NODE(&n, "Squeeze", "by", "one");
    NODE(&n, "Range", "places", "from", "length", "by");
    NODE(&n, "Unsqueeze", "row", "places", "zero"), NODE(&n, "Unsqueeze", "column", "places", "one");
    NODE(&n, "LessOrEqual", "causal", "row", "column");
    add_node(&n, "Cast", (const char *const[]){"causal", NULL}, "mask", "to", CLT_ONNX_FLOAT);
    add_node(&n, "Gather", (const char *const[]){"positions", "places", NULL}, "p", "axis", 0); /* [T, WIDTH] */
    NODE(&n, "Unsqueeze", "tokens", "x", "two");
    NODE(&n, "Add", "h", "tokens", "p"); /* [N, T, WIDTH] */
    NODE(&n, "Transpose", "t", "p");
    NODE(&n, "MatMul", "scores", "h", "t"); /* [N, T, T] */
    NODE(&n, "Mul", "y", "scores", "mask");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, -2, -2));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    clt_graph *graph, *own;
    clt_predictor *p, *q;
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 2, .length_symbol = "length", .length = LONGEST}));
    assert_ok(clt_predictor_create(&p, device, clt_onnx_output(onnx, NULL), NULL));
    for (int64_t length = LONGEST; length > 0; length--) {
        clt_batch batch = {.samples = 2, .n_fields = 1, .fields = {{CLT_F32, CLT_SHAPE(2, length), tokens}}};
        size_t count = (size_t)(2 * length * length);
        clt_onnx *again;
        assert_ok(clt_onnx_open(&again, support_path("network.onnx")));
        assert_ok(clt_graph_create(&own));
        assert_ok(clt_onnx_build(again, own, &(clt_onnx_options){.batch = 2, .sizes = (clt_onnx_size[]){{"length", length}}, .n_sizes = 1}));
        assert_ok(clt_predictor_create(&q, device, clt_onnx_output(again, NULL), NULL));
        assert_ok(clt_predictor_run(q, &batch, wanted, count));
        assert_ok(clt_predictor_run(p, &batch, got, count));
        for (size_t i = 0; i < count; i++) assert_true(fabsf(got[i] - wanted[i]) <= 1e-6f * fabsf(wanted[i]));
        clt_predictor_destroy(q);
        clt_graph_destroy(own);
        clt_onnx_close(again);
    }
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, &(clt_onnx_options){.length_symbol = "length"}), CLT_E_INVALID);
    assert_detail("a length of 0");
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* ---- and back ---- */

static clt_trainer *train_file(clt_onnx *onnx, clt_graph **graph, int steps) {
    clt_trainer *t;
    clt_batch batch = {.samples = BATCH, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(BATCH, IN), x}, {CLT_I32, CLT_SHAPE(BATCH), y}}};
    assert_ok(clt_graph_create(graph));
    assert_ok(clt_onnx_build(onnx, *graph, &(clt_onnx_options){.batch = BATCH}));
    clt_tensor *label = clt_input(*graph, "label", CLT_I32, CLT_SHAPE(BATCH));
    assert_ok(clt_trainer_create(&t, device, clt_cross_entropy(clt_onnx_output(onnx, NULL), label), &(clt_train_options){.optimizer = CLT_SGD, .lr = 0.1f}));
    for (int i = 0; i < steps; i++) assert_ok(clt_trainer_step(t, &batch));
    return t;
}

/* Places where two files differ; their lengths must be the same. */
static size_t differences(const char *a, const char *b) {
    unsigned char *bytes[2];
    size_t length[2], n = 0;
    assert_ok(clt_file_read(a, 1 << 20, (void **)&bytes[0], &length[0]));
    assert_ok(clt_file_read(b, 1 << 20, (void **)&bytes[1], &length[1]));
    assert_int_equal(length[0], length[1]);
    for (size_t i = 0; i < length[0]; i++) n += bytes[0][i] != bytes[1][i];
    clt_free(bytes[0]);
    clt_free(bytes[1]);
    return n;
}

/* Trains and saves; fc1's weight, unless NULL, as it is then. */
static void train_and_save(clt_onnx *onnx, int steps, const char *saved, float *weight) {
    clt_graph *graph;
    clt_trainer *t = train_file(onnx, &graph, steps);
    assert_ok(clt_onnx_save(onnx, t, saved));
    if (weight) assert_ok(clt_trainer_get(t, "fc1.weight", weight, HIDDEN * IN));
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
}

static void is_saved(void **state) {
    (void)state;
    network n = mlp();
    clt_onnx *onnx, *again;
    clt_graph *graph, *other;
    float trained[HIDDEN * IN], read[HIDDEN * IN];
    char path[512], saved[512];
    snprintf(path, sizeof path, "%s", write_network(&n));
    snprintf(saved, sizeof saved, "%s", support_path("saved.onnx"));
    assert_ok(clt_onnx_open(&onnx, path));
    train_and_save(onnx, 0, saved, NULL);
    assert_int_equal(differences(path, saved), 0);

    clt_trainer *t = train_file(onnx, &graph, 3);
    assert_ok(clt_onnx_save(onnx, t, saved));
    size_t changed = differences(path, saved);
    assert_true(changed > 0 && changed <= sizeof w1 + sizeof b1 + sizeof w2 + sizeof b2);
    assert_ok(clt_trainer_get(t, "fc1.weight", trained, HIDDEN * IN));
    assert_ok(clt_onnx_open(&again, saved));
    clt_trainer *second = train_file(again, &other, 0);
    assert_ok(clt_trainer_get(second, "fc1.weight", read, HIDDEN * IN));
    assert_memory_equal(read, trained, sizeof read);
    assert_ok(clt_onnx_save(onnx, t, path)); /* over itself */
    assert_int_equal(differences(path, saved), 0);
    assert_status(clt_onnx_save(onnx, t, support_path("none/saved.onnx")), CLT_E_IO);
    assert_status(clt_onnx_save(onnx, NULL, saved), CLT_E_INVALID);
    assert_status(clt_onnx_check_path(onnx, NULL), CLT_E_INVALID);
    clt_trainer_destroy(second);
    clt_graph_destroy(other);
    clt_onnx_close(again);
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* Trained as f32, and what has not changed keeps its bytes. */
static void doubles_are_trained_and_saved(void **state) {
    (void)state;
    network n = mlp(), wide = mlp_of((network){.wide = true});
    clt_onnx *onnx;
    float trained[2][HIDDEN * IN];
    char path[512], saved[512];
    snprintf(saved, sizeof saved, "%s", support_path("saved.onnx"));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s", write_network(i ? &wide : &n));
        assert_ok(clt_onnx_open(&onnx, path));
        train_and_save(onnx, 0, saved, NULL);
        assert_int_equal(differences(path, saved), 0);
        train_and_save(onnx, 3, saved, trained[i]);
        clt_onnx_close(onnx);
    }
    assert_memory_equal(trained[0], trained[1], sizeof trained[0]);
    assert_ok(clt_onnx_open(&onnx, saved));
    train_and_save(onnx, 0, saved, trained[1]);
    assert_memory_equal(trained[0], trained[1], sizeof trained[0]);
    clt_onnx_close(onnx);
}

static void external_data_are_saved(void **state) {
    (void)state;
    network n = mlp_with("weights/data.bin");
    clt_onnx *onnx, *again;
    clt_graph *graph, *other;
    float trained[HIDDEN * IN], read[HIDDEN * IN];
    char folder[512], path[600];
    assert_ok(clt_file_make_folder(support_path("weights")));
    write_bytes("weights/data.bin", external_data, n.external_bytes);
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    clt_trainer *t = train_file(onnx, &graph, 2);
    snprintf(folder, sizeof folder, "%s", support_path("out"));
    snprintf(path, sizeof path, "%s/saved.onnx", folder);
    assert_ok(clt_file_make_folder(folder));
    assert_ok(clt_onnx_save(onnx, t, path));
    assert_int_equal(differences(support_path("network.onnx"), path), 0);
    assert_true(differences(support_path("weights/data.bin"), support_path("out/weights/data.bin")) > 0);
    assert_ok(clt_trainer_get(t, "fc1.weight", trained, HIDDEN * IN));
    assert_ok(clt_onnx_open(&again, path));
    clt_trainer *second = train_file(again, &other, 0);
    assert_ok(clt_trainer_get(second, "fc1.weight", read, HIDDEN * IN));
    assert_memory_equal(read, trained, sizeof read);
    clt_trainer_destroy(second);
    clt_graph_destroy(other);
    clt_onnx_close(again);

    assert_ok(clt_onnx_save(onnx, t, path)); /* over itself */

    /* The weights of another model are not replaced: neither those of the file that was read, nor those of one in the folder. */
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s", support_path(i ? "out/copy.onnx" : "copy.onnx"));
        assert_status(clt_onnx_check_path(onnx, path), CLT_E_INVALID);
        assert_status(clt_onnx_save(onnx, t, path), CLT_E_INVALID);
        assert_detail("weights/data.bin, the weights of another model");
        assert_true(differences(support_path("weights/data.bin"), support_path("out/weights/data.bin")) > 0 && access(path, F_OK) != 0);
    }
    snprintf(path, sizeof path, "%s", support_path("network.onnx"));
    assert_ok(clt_onnx_check_path(onnx, path));
    assert_ok(clt_onnx_save(onnx, t, path));
    assert_int_equal(differences(support_path("weights/data.bin"), support_path("out/weights/data.bin")), 0);
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);

    /* Weights that are not there are told when the graph is built, all of them. */
    write_bytes("weights/data.bin", external_data, 8);
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, NULL), CLT_E_UNSUPPORTED);
    assert_detail("network.onnx: Gemm \"h\": tensor \"fc1.weight\": its data are shorter than its shape");
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* ---- files that cannot be built ---- */

static void assert_open_fails(const network *n, clt_status status, const char *words) {
    clt_onnx *onnx;
    assert_status(clt_onnx_open(&onnx, write_network(n)), status);
    assert_detail(words);
    assert_detail("network.onnx");
}

static void names_are_checked(void **state) {
    (void)state;
    network n = mlp();
    NODE(&n, "Relu", "h", "x");
    assert_open_fails(&n, CLT_E_FORMAT, "\"h\" is made twice");
    n = mlp();
    NODE(&n, "Relu", "a", "b"); /* a cycle, as everything is that reads what comes later */
    NODE(&n, "Relu", "b", "a");
    assert_open_fails(&n, CLT_E_FORMAT, "\"b\" is read before anything makes it");
    n = mlp();
    add_info(&n, 12, "nowhere", CLT_ONNX_FLOAT, CLT_SHAPE(1));
    assert_open_fails(&n, CLT_E_FORMAT, "\"nowhere\" is an output");
    n = mlp();
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(1));
    assert_open_fails(&n, CLT_E_FORMAT, "\"x\" is made twice");
    n = mlp();
    n.opset = 99;
    assert_open_fails(&n, CLT_E_UNSUPPORTED, "opset 99");
    n = (network){0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(1));
    assert_open_fails(&n, CLT_E_FORMAT, "no output");
}

/* All that is wrong at once; what depends on it is not told. */
static void problems_are_told_together(void **state) {
    (void)state;
    network n = mlp();
    clt_onnx *onnx;
    clt_graph *graph;
    NODE(&n, "NoSuchOp", "p", "y");
    NODE(&n, "Relu", "q", "p");
    NODE(&n, "Softmax", "s", "y");
    NODE(&n, "AlsoNone", "last", "s");
    NODE(&n, "NotNeeded", "t", "s");
    add_info(&n, 12, "q", CLT_ONNX_FLOAT, CLT_SHAPE(-1));
    add_info(&n, 12, "last", CLT_ONNX_FLOAT, CLT_SHAPE(-1));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_status(clt_onnx_build(onnx, graph, NULL), CLT_E_UNSUPPORTED);
    assert_detail("NoSuchOp \"p\": the op is not known here; AlsoNone \"last\"");
    assert_string_equal(clt_onnx_problem_at(onnx, 0)->op, "NoSuchOp");
    assert_string_equal(clt_onnx_problem_at(onnx, 1)->node, "last");
    assert_int_equal(clt_onnx_problem_at(onnx, 1)->opset, 17);
    assert_null(clt_onnx_problem_at(onnx, 2));
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* ReLU6 as it is exported without an optimizer: its bounds are of the type of x, of which no value is known. */
static void types_alone_are_known(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    float values[BATCH * IN];
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_list(&n, "zero", (int64_t[]){0}, 1), add_list(&n, "one", (int64_t[]){1}, 1);
    NODE(&n, "Tanh", "h", "x");
    NODE(&n, "CastLike", "low", "zero", "h");
    NODE(&n, "CastLike", "high", "one", "h");
    NODE(&n, "Clip", "y", "h", "low", "high");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = BATCH}));
    predict(graph, clt_onnx_output(onnx, NULL), BATCH, values, BATCH * IN);
    for (int i = 0; i < BATCH * IN; i++) assert_true(fabsf(values[i] - fmaxf(tanhf(x[i]), 0)) < 1e-6f);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

/* x times (u < 0.75) / 0.75, as exporters write what is done in place; `u` is of x's shape or of [batch, 1]. `op` reads it in the middle; `by` divides. */
static network dropout_in_place(bool whole, const char *op, float by) {
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "chance", CLT_SHAPE(1), (float[]){0.75f});
    add_weight(&n, "by", CLT_SHAPE(1), &by);
    add_list(&n, "axis", (int64_t[]){1}, 1);
    NODE(&n, "ReduceSum", "sums", "x", "axis");
    NODE(&n, "Identity", "h", "x");
    NODE(&n, "RandomUniformLike", "u", whole ? "h" : "sums");
    NODE(&n, op, "drawn", "u", "chance");
    NODE(&n, "CastLike", "kept", "drawn", "h");
    NODE(&n, "Div", "scaled", "kept", "by");
    NODE(&n, "Mul", "once", "h", "scaled");
    NODE(&n, "Sub", "none", "once", "h");
    NODE(&n, op, "drawn again", "u", "chance");
    NODE(&n, "CastLike", "kept again", "drawn again", "h");
    NODE(&n, "Div", "scaled again", "kept again", "by");
    NODE(&n, "Mul", "again", "none", "scaled again");
    NODE(&n, "Add", "y", "once", "again");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    return n;
}

/* x w / 0.75 times floor(0.75 + u), of a u for each sample: all of a sample, or nothing. */
static void paths_are_dropped(void **state) {
    (void)state;
    network n = {0};
    clt_onnx *onnx;
    clt_graph *graph;
    clt_trainer *t;
    float values[BATCH * IN], whole = 0;
    int times[2] = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    add_weight(&n, "w", CLT_SHAPE(IN), (float[]){1, 1, 1});
    add_weight(&n, "chance", CLT_SHAPE(1), (float[]){0.75f});
    add_list(&n, "axis", (int64_t[]){1}, 1);
    NODE(&n, "ReduceSum", "sums", "x", "axis");
    NODE(&n, "RandomUniformLike", "u", "sums");
    NODE(&n, "Add", "more", "chance", "u");
    NODE(&n, "Floor", "kept", "more");
    NODE(&n, "Mul", "path", "x", "w");
    NODE(&n, "Div", "larger", "path", "chance");
    NODE(&n, "Mul", "y", "larger", "kept");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
    assert_ok(clt_onnx_open(&onnx, write_network(&n)));
    assert_ok(clt_graph_create(&graph));
    assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = 1}));
    predict(graph, clt_onnx_output(onnx, NULL), BATCH, values, BATCH * IN); /* all are there */
    for (int i = 0; i < BATCH * IN; i++) assert_true(fabsf(values[i] - x[i]) <= 1e-6f * fabsf(x[i]));
    for (int i = 0; i < IN; i++) whole += x[i] * x[i] / (0.75f * 0.75f) / IN;
    clt_tensor *target = clt_input(graph, "target", CLT_F32, CLT_SHAPE(1, IN));
    assert_ok(clt_trainer_create(&t, device, clt_mse_loss(clt_onnx_output(onnx, NULL), target), &(clt_train_options){.optimizer = CLT_SGD, .lr = CLT_ZERO}));
    for (int i = 0; i < 200; i++) {
        clt_batch batch = {.samples = 1, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(1, IN), x}, {CLT_F32, CLT_SHAPE(1, IN), (float[IN]){0}}}};
        clt_metrics m;
        assert_ok(clt_trainer_step(t, &batch));
        assert_ok(clt_trainer_train_metrics(t, &m, true));
        assert_true(m.loss == 0 || fabs(m.loss - (double)whole) < 1e-4 * (double)whole);
        times[m.loss > 0]++;
    }
    assert_true(times[0] > 25 && times[0] < 75); /* 50 of 200, with a deviation of 6 */
    clt_trainer_destroy(t);
    clt_graph_destroy(graph);
    clt_onnx_close(onnx);
}

static void dropout_in_place_is_dropout(void **state) {
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        clt_onnx *onnx;
        clt_graph *graph;
        float values[BATCH * IN];
        bool found = false, twice = false;
        network n = dropout_in_place(whole, "Less", 0.75f);
        assert_ok(clt_onnx_open(&onnx, write_network(&n)));
        assert_ok(clt_graph_create(&graph));
        assert_ok(clt_onnx_build(onnx, graph, &(clt_onnx_options){.batch = BATCH}));
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const clt_tensor *node = graph->nodes[i];
            if (node->op != &clt_op_dropout) continue;
            found = true;
            assert_true(((const clt_dropout_attributes *)node->attributes)->p == 0.25f);
            assert_true(node->shape.rank == 2 && node->shape.dims[0] == BATCH && node->shape.dims[1] == (whole ? IN : 1));
            assert_false(twice), twice = true; /* however many read it */
        }
        assert_true(found);
        predict(graph, clt_onnx_output(onnx, NULL), BATCH, values, BATCH * IN); /* without it */
        for (int i = 0; i < BATCH * IN; i++) assert_true(values[i] == x[i]);
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
    }
    network n = dropout_in_place(true, "Greater", 0.75f);
    assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, "Greater \"drawn\": it reads random values, of which only dropout is known");
}

/* An attribute of another type is not one that is left out. */
static void attributes_have_types(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"Transpose", "perm"}, {"Gelu", "approximate"}, {"Elu", "alpha"}, {"Unsqueeze", "axes"}};
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        char words[64];
        network n = {.opset = i == 3 ? 11 : 20};
        add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
        add_node(&n, cases[i][0], (const char *const[]){"x", NULL}, "y", cases[i][1], 1);
        add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, IN));
        snprintf(words, sizeof words, "%s \"y\": its attribute \"%s\" is INT: expected ", cases[i][0], cases[i][1]);
        assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, words);
    }
}

/* What is computed from a size as a number says so, where it is the length. */
static void lengths_that_must_be_numbers_are_named(void **state) {
    (void)state;
    network n = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 4, -2, 2));
    add_node(&n, "DepthToSpace", (const char *const[]){"x", NULL}, "y", "blocksize", 2);
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 1, -2, 4));
    assert_build_fails(&n, &(clt_onnx_options){.length_symbol = "length", .length = 6}, CLT_E_UNSUPPORTED,
                       "DepthToSpace \"y\": along a dimension that follows the batch or the length");
}

static void options_are_checked(void **state) {
    (void)state;
    network n = mlp();
    float one = 1;
    assert_build_fails(&n, &(clt_onnx_options){.batch = -1}, CLT_E_INVALID, "a batch of -1");
    assert_build_fails(&n, &(clt_onnx_options){.batch_symbol = "rows"}, CLT_E_INVALID, "input \"x\": dimension 0, \"batch\", has no size");
    assert_build_fails(&n, &(clt_onnx_options){.fixed = &(clt_onnx_fixed){"z", {CLT_F32, {0}, &one}}, .n_fixed = 1}, CLT_E_INVALID, "no input \"z\"");
    n = (network){0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(3, 2));
    NODE(&n, "Relu", "y", "x");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(3, 2));
    assert_build_fails(&n, &(clt_onnx_options){.batch = 5}, CLT_E_INVALID, "made for 3 samples, not for 5");
    n = (network){0};
    add_info(&n, 11, "x", CLT_ONNX_DOUBLE, CLT_SHAPE(-1, 2));
    NODE(&n, "Relu", "y", "x");
    add_info(&n, 12, "y", CLT_ONNX_DOUBLE, CLT_SHAPE(-1, 2));
    assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, "input \"x\": tensors of type DOUBLE");
}

static void shapes_are_checked(void **state) {
    (void)state;
    network n = {0};
    float w[6] = {0};
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 4));
    add_weight(&n, "w", CLT_SHAPE(3, 2), w);
    NODE(&n, "MatMul", "y", "x", "w");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2));
    assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, "MatMul \"y\": matmul");
    n.graph.length = 0;
    add_info(&n, 11, "x", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 4));
    NODE(&n, "MatMul", "y", "x");
    add_info(&n, 12, "y", CLT_ONNX_FLOAT, CLT_SHAPE(-1, 2));
    assert_build_fails(&n, NULL, CLT_E_UNSUPPORTED, "input 1 is missing");
}

/* Each allocation of opening and building fails once. */
static void survives_failing_memory(void **state) {
    (void)state;
    network n = mlp();
    const char *path = write_network(&n);
    clt_status status = CLT_E_NO_MEMORY;
    for (long at = 0; status != CLT_OK; at++) {
        clt_onnx *onnx = NULL;
        clt_graph *graph = NULL;
        watch_begin(at);
        status = clt_onnx_open(&onnx, path);
        if (status == CLT_OK) status = clt_graph_create(&graph);
        if (status == CLT_OK) status = clt_onnx_build(onnx, graph, NULL);
        clt_graph_destroy(graph);
        clt_onnx_close(onnx);
        watch_end();
        if (status != CLT_OK && status != CLT_E_NO_MEMORY) fail_msg("allocation %ld: %s: %s", at, clt_status_name(status), clt_error_detail());
    }
}

static void refuses_nothing(void **state) {
    (void)state;
    clt_onnx *onnx;
    assert_status(clt_onnx_open(&onnx, NULL), CLT_E_INVALID);
    assert_status(clt_onnx_open(NULL, "x"), CLT_E_INVALID);
    assert_status(clt_onnx_build(NULL, NULL, NULL), CLT_E_INVALID);
    assert_null(clt_onnx_output(NULL, NULL));
    assert_null(clt_onnx_input_symbol(NULL, 0, 0));
    assert_null(clt_onnx_problem_at(NULL, 0));
    clt_onnx_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_as_in_c),      cmocka_unit_test(is_built_again), cmocka_unit_test(numbers_are_not_the_batch), cmocka_unit_test(a_table_is_not_cut_to_the_batch),
        cmocka_unit_test(constants_follow_the_batch), cmocka_unit_test(constants_repeat), cmocka_unit_test(weights_are_not_turned), cmocka_unit_test(integers_are_counted), cmocka_unit_test(places_are_selected), cmocka_unit_test(sizes_are_numbers), cmocka_unit_test(norms_train_as_the_file_says), cmocka_unit_test(lengths_follow), cmocka_unit_test(bounds_mean_the_same_at_every_batch), cmocka_unit_test(kinks_are_seen),
        cmocka_unit_test(large_constants_are_the_devices), cmocka_unit_test(computed_indices_count_from_the_end), cmocka_unit_test(what_pytorch_trains_is_trained), cmocka_unit_test(infinities_stay_where_they_are), cmocka_unit_test(products_become_attention), cmocka_unit_test(corners_are_their_producers), cmocka_unit_test(places_are_computed_in_float), cmocka_unit_test(integers_are_padded), cmocka_unit_test(plain_cells_may_be_rectified), cmocka_unit_test(powers_may_be_integers), cmocka_unit_test(is_saved), cmocka_unit_test(doubles_are_trained_and_saved), cmocka_unit_test(external_data_are_saved), cmocka_unit_test(names_are_checked),
        cmocka_unit_test(types_alone_are_known), cmocka_unit_test(dropout_in_place_is_dropout), cmocka_unit_test(paths_are_dropped), cmocka_unit_test(attributes_have_types), cmocka_unit_test(lengths_that_must_be_numbers_are_named),
        cmocka_unit_test(problems_are_told_together), cmocka_unit_test(options_are_checked), cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(survives_failing_memory),    cmocka_unit_test(refuses_nothing),
    };
    return cmocka_run_group_tests_name("build", tests, open_device, close_device);
}
