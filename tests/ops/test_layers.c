/* What a network is made of: clt_graph_layers. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/cltrain.h>

enum { MOST = 64 };

typedef struct found {
    clt_layer layers[MOST];
    char names[MOST][64];
    int n, most;
} found;

static bool keep(const clt_layer *layer, void *user) {
    found *f = user;
    assert_true(f->n < MOST);
    snprintf(f->names[f->n], sizeof f->names[0], "%s", layer->name);
    f->layers[f->n++] = *layer;
    return !f->most || f->n < f->most;
}

static clt_graph *new_graph(void) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    return graph;
}

static void assert_layer(const found *f, int at, const char *name, const char *op, clt_shape shape, int64_t parameters, double flops) {
    assert_true(at < f->n);
    assert_string_equal(f->names[at], name);
    assert_string_equal(f->layers[at].op, op);
    assert_int_equal(f->layers[at].shape.rank, shape.rank);
    for (int i = 0; i < shape.rank; i++) assert_int_equal(f->layers[at].shape.dims[i], shape.dims[i]);
    assert_int_equal(f->layers[at].parameters, parameters);
    if (flops > 0) assert_true(f->layers[at].flops >= flops && f->layers[at].flops <= flops * 1.05); /* and an addition of the bias */
}

/* A convolution and two linear layers, by hand. */
static void counts_as_by_hand(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(4, 3, 8, 8));
    x = clt_relu(clt_conv2d(x, "block.0.conv", 16, .kernel = 3, .padding = 1));
    x = clt_max_pool2d(x, .kernel = 2);
    x = clt_relu(clt_linear(clt_flatten(x), "fc1", 32));
    x = clt_linear(x, "fc2", 5);
    clt_tensor *loss = clt_cross_entropy(x, clt_input(graph, "y", CLT_I32, CLT_SHAPE(4)));
    clt_tensor *unread = clt_linear(x, "other", 7);
    assert_ok(clt_graph_status(graph));
    assert_ok(clt_graph_set_trained(graph, "fc1.*", false));
    found f = {0};
    clt_layer total;
    assert_ok(clt_graph_layers(loss, keep, &f, &total));
    assert_int_equal(f.n, 3);
    assert_layer(&f, 0, "block.0.conv", "conv2d", CLT_SHAPE(4, 16, 8, 8), 16 * 3 * 9 + 16, 2.0 * 4 * 16 * 64 * 27);
    assert_layer(&f, 1, "fc1", "matmul", CLT_SHAPE(4, 32), 256 * 32 + 32, 2.0 * 4 * 256 * 32);
    assert_layer(&f, 2, "fc2", "matmul", CLT_SHAPE(4, 5), 32 * 5 + 5, 2.0 * 4 * 32 * 5);
    int64_t all = 0;
    double flops = 0;
    for (int i = 0; i < f.n; i++) all += f.layers[i].parameters, flops += f.layers[i].flops;
    assert_int_equal(total.parameters, all);
    assert_int_equal(total.trained, all - (256 * 32 + 32));
    assert_int_equal(f.layers[1].trained, 0);
    assert_true(total.flops > flops); /* pools, activations, the loss */
    assert_string_equal(total.name, "");
    assert_ok(clt_graph_layers(unread, NULL, NULL, &total));
    assert_int_equal(total.parameters, all + 5 * 7 + 7);
    f = (found){.most = 2};
    assert_ok(clt_graph_layers(loss, keep, &f, NULL));
    assert_int_equal(f.n, 2);
    clt_graph_destroy(graph);
}

/* Weights used twice are counted once, and both uses are told; a name without a dot is all of it. */
static void shared_weights_are_counted_once(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *ids = clt_input(graph, "ids", CLT_I32, CLT_SHAPE(2, 6)), *table = clt_parameter(graph, "wte.weight", CLT_SHAPE(11, 8), (clt_init){CLT_INIT_NORMAL, .value = 1});
    clt_tensor *gain = clt_parameter(graph, "gain", CLT_SHAPE(8), (clt_init){CLT_INIT_CONSTANT, .value = 1});
    clt_tensor *h = clt_mul(clt_embedding_op(ids, table), gain);
    clt_tensor *logits = clt_matmul_with(h, table, (clt_matmul_options){.transpose_b = true});
    assert_ok(clt_graph_status(graph));
    found f = {0};
    clt_layer total;
    assert_ok(clt_graph_layers(logits, keep, &f, &total));
    assert_int_equal(f.n, 3);
    assert_layer(&f, 0, "wte", "embedding", CLT_SHAPE(2, 6, 8), 88, 0);
    assert_layer(&f, 1, "gain", "mul", CLT_SHAPE(2, 6, 8), 8, 0);
    assert_layer(&f, 2, "wte", "matmul", CLT_SHAPE(2, 6, 11), 0, 2.0 * 12 * 8 * 11);
    assert_int_equal(total.parameters, 96);
    clt_graph_destroy(graph);
}

/* As published: He et al. 2015, table 1 (multiply-adds), and torchvision's number of parameters. */
static void resnet18_is_as_published(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    clt_tensor *logits = clt_model_resnet(clt_input(graph, "x", CLT_F32, CLT_SHAPE(1, 3, 224, 224)), .depth = 18);
    assert_ok(clt_graph_status(graph));
    clt_layer total;
    found f = {0};
    assert_ok(clt_graph_layers(logits, keep, &f, &total));
    assert_int_equal(total.parameters, 11689512);
    assert_true(total.flops > 2 * 1.8e9 && total.flops < 2 * 1.85e9);
    assert_string_equal(f.names[0], "conv1");
    assert_string_equal(f.names[1], "bn1");
    assert_string_equal(f.names[f.n - 1], "fc");
    assert_int_equal(f.n, 41); /* 20 convolutions with a batch norm each, and fc */
    clt_graph_destroy(graph);
}

static void refuses_what_is_no_network(void **state) {
    (void)state;
    clt_graph *graph = new_graph();
    assert_status(clt_graph_layers(NULL, NULL, NULL, NULL), CLT_E_INVALID);
    clt_tensor *bad = clt_reshape(clt_input(graph, "x", CLT_F32, CLT_SHAPE(2, 3)), CLT_SHAPE(5));
    assert_status(clt_graph_layers(bad, NULL, NULL, NULL), clt_graph_status(graph));
    assert_true(clt_graph_status(graph) < 0);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_as_by_hand),
        cmocka_unit_test(shared_weights_are_counted_once),
        cmocka_unit_test(resnet18_is_as_published),
        cmocka_unit_test(refuses_what_is_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
