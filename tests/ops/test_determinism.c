/* Same device, same graph, same data: same bits in every plan, and with another device at work. */
#include "tests/ops/harness.h"

#include "runtime/base/random.h"
#include "runtime/base/thread.h"
#include "runtime/ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { N_TARGETS = 8 };

typedef struct network {
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *targets[N_TARGETS];
    clt_tensor *parameters[N_TARGETS - 2];
} network;

/* Convolution, batch norm, pooling, softmax, an embedding with repeated rows, long sums. */
static void open_network(network *n) {
    *n = (network){0};
    assert_ok(clt_graph_create(&n->graph));
    clt_tensor *image = clt_input(n->graph, "image", CLT_F32, CLT_SHAPE(8, 3, 17, 19));
    clt_tensor *word = clt_input(n->graph, "word", CLT_I32, CLT_SHAPE(8, 21));
    clt_tensor *one = clt_input(n->graph, "one", CLT_F32, (clt_shape){0});
    clt_tensor *h = clt_batch_norm(clt_conv2d(image, "conv", 6, .kernel = 3, .stride = 2, .padding = 1), "bn");
    h = clt_softmax(clt_flatten(clt_max_pool2d(clt_relu(h), .kernel = 3, .stride = 2)), 1);
    clt_tensor *words = clt_mean(clt_embedding(word, "words", 5, 6), CLT_AXES(1));
    clt_tensor *y = clt_mul(clt_linear(h, "fc", 6), words);
    clt_tensor *loss = clt_sum(clt_tanh(y), CLT_ALL_AXES);
    assert_ok(clt_graph_status(n->graph));
    static const char *const names[] = {"conv.weight", "conv.bias",    "bn.weight",
                                        "bn.bias",     "words.weight", "fc.weight"};
    for (int i = 0; i < N_TARGETS - 2; i++)
        for (size_t k = 0; k < n->graph->n_nodes; k++)
            if (!strcmp(clt_tensor_name(n->graph->nodes[k]), names[i])) n->parameters[i] = n->graph->nodes[k];
    assert_ok(clt_gradients(loss, one, n->parameters, N_TARGETS - 2, n->targets + 2));
    n->targets[0] = loss;
    n->targets[1] = y;
    n->plan = op_compile(n->graph, n->targets, N_TARGETS, true, &n->store);
}

static void close_network(network *n) {
    clt_plan_destroy(n->plan);
    clt_state_store_destroy(n->store);
    clt_graph_destroy(n->graph);
}

static void fill(network *n) {
    clt_random random;
    clt_random_init(&random, 11, 0);
    for (size_t k = 0; k < n->graph->n_nodes; k++) {
        const clt_tensor *node = n->graph->nodes[k];
        if (node->kind != CLT_NODE_INPUT && node->kind != CLT_NODE_VARIABLE) continue;
        int64_t count = clt_tensor_elements(node);
        float *values = malloc((size_t)count * sizeof *values);
        assert_non_null(values);
        for (int64_t i = 0; i < count; i++) {
            if (node->dtype == CLT_I32) ((int32_t *)(void *)values)[i] = (int32_t)clt_random_below(&random, 5);
            else values[i] = (float)clt_random_normal(&random);
        }
        if (node->kind == CLT_NODE_VARIABLE) op_variable_write(n->store, node, values);
        else assert_ok(clt_plan_feed(n->plan, node, values));
        free(values);
    }
}

static size_t target_bytes(const network *n, int i) {
    return (size_t)clt_tensor_elements(n->targets[i]) * sizeof(float);
}

/* All targets after one run, one behind the other. */
static char *run(network *n, size_t *bytes) {
    *bytes = 0;
    for (int i = 0; i < N_TARGETS; i++) *bytes += target_bytes(n, i);
    char *all = malloc(*bytes), *at = all;
    assert_non_null(all);
    assert_ok(clt_plan_run(n->plan));
    for (int i = 0; i < N_TARGETS; i++) {
        assert_ok(clt_plan_read(n->plan, n->targets[i], at, target_bytes(n, i)));
        at += target_bytes(n, i);
    }
    return all;
}

static void another_plan_of_the_same_graph(void **state) {
    (void)state;
    network a, b;
    size_t bytes;
    open_network(&a);
    open_network(&b);
    fill(&a);
    fill(&b);
    char *first = run(&a, &bytes), *second = run(&b, &bytes);
    assert_memory_equal(first, second, bytes);
    free(first);
    free(second);
    close_network(&a);
    close_network(&b);
}

/* ---- two devices of one process at work at once ---- */

enum { LENGTH = 128, RUNS = 500, AT_ONCE = 2 };

/* Ops whose work-groups add up twice, one after the other, so that two devices meet in them. */
static clt_tensor *many_sums(clt_tensor *x) {
    for (int i = 0; i < 8; i++) x = clt_orthogonalize(x);
    return x;
}

typedef struct worker {
    clt_thread thread;
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_plan *plan;
    clt_tensor *result;
    float first[LENGTH];
    int wrong;
    clt_status status;
} worker;

static clt_status work(worker *w) {
    float values[LENGTH];
    for (int run = 0; run < RUNS; run++) {
        CLT_TRY(clt_plan_run(w->plan));
        CLT_TRY(clt_plan_read(w->plan, w->result, run == 0 ? w->first : values, sizeof values));
        w->wrong += run > 0 && memcmp(values, w->first, sizeof values) != 0;
    }
    return CLT_OK;
}

static void *run_worker(void *argument) {
    worker *w = argument;
    w->status = work(w);
    return NULL;
}

static void open_worker(worker *w) {
    float values[LENGTH];
    for (int i = 0; i < LENGTH; i++) values[i] = 0.01f * (float)(i * i % 101) - 0.3f;
    assert_ok(clt_device_open(&w->device, NULL));
    assert_ok(clt_graph_create(&w->graph));
    assert_ok(clt_state_store_create(w->device, &w->store));
    clt_tensor *x = clt_input(w->graph, "x", CLT_F32, CLT_SHAPE(LENGTH, 1));
    w->result = many_sums(x);
    assert_ok(clt_graph_status(w->graph));
    assert_ok(clt_plan_compile(&w->plan, &(clt_plan_options){.device = w->device, .store = w->store, .graph = w->graph,
                                                             .targets = &w->result, .n_targets = 1, .training = true}));
    assert_ok(clt_plan_feed(w->plan, x, values));
}

static void close_worker(worker *w) {
    clt_plan_destroy(w->plan);
    clt_state_store_destroy(w->store);
    clt_graph_destroy(w->graph);
    clt_device_close(w->device);
}

static void two_devices_at_once(void **state) {
    (void)state;
    worker workers[AT_ONCE] = {0};
    for (int i = 0; i < AT_ONCE; i++) open_worker(&workers[i]);
    for (int i = 0; i < AT_ONCE; i++) assert_ok(clt_thread_start(&workers[i].thread, run_worker, &workers[i]));
    for (int i = 0; i < AT_ONCE; i++) clt_thread_join(workers[i].thread);
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(workers[i].status, CLT_OK);
        assert_int_equal(workers[i].wrong, 0);
        assert_memory_equal(workers[i].first, workers[0].first, sizeof workers[0].first);
        close_worker(&workers[i]);
    }
}

OP_MAIN("determinism", cmocka_unit_test(another_plan_of_the_same_graph), cmocka_unit_test(two_devices_at_once))
