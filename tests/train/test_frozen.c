/* All but the head of a residual network is not trained: the head gets the bits that it gets with buffers in the place of parameters. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/graph/graph.h"

enum { SAMPLES = 4, CHANNELS = 3, SIZE = 12, CLASSES = 5, STEPS = 5, MOST_VALUES = 16384 };

static clt_device *device;
static float images[SAMPLES * CHANNELS * SIZE * SIZE];
static const int32_t labels[SAMPLES] = {0, 3, 1, 4};

static int open_device(void **state) {
    (void)state;
    clt_random random;
    clt_random_init(&random, 7, 0);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) images[i] = (float)clt_random_normal(&random);
    return clt_device_open(&device, NULL) < 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

/* How the weights of the body are made. */
typedef clt_tensor *(*maker)(clt_graph *graph, const char *name, clt_shape shape, clt_init init);

typedef struct body {
    clt_graph *graph;
    maker make;
    int layers;
} body;

static clt_tensor *weight(body *b, const char *part, clt_shape shape, clt_init init) {
    char name[32];
    snprintf(name, sizeof name, "body%d.%s", b->layers, part);
    return b->make(b->graph, name, shape, init);
}

static clt_tensor *conv_norm(body *b, clt_tensor *x, int out, int kernel, int stride) {
    const clt_init one = {CLT_INIT_CONSTANT, .value = 1}, zero = {CLT_INIT_CONSTANT}, normal = {CLT_INIT_NORMAL, .value = 0.3f};
    int64_t in = clt_tensor_shape(x).dims[1];
    clt_tensor *w = weight(b, "weight", CLT_SHAPE(out, in, kernel, kernel), normal), *scale = weight(b, "scale", CLT_SHAPE(out), one);
    clt_tensor *shift = weight(b, "shift", CLT_SHAPE(out), normal);
    char mean[32], variance[32];
    snprintf(mean, sizeof mean, "body%d.running_mean", b->layers);
    snprintf(variance, sizeof variance, "body%d.running_var", b->layers++);
    x = clt_conv2d_op(x, w, NULL, (clt_conv2d_options){.stride = stride, .padding = kernel / 2});
    return clt_batch_norm_op(x, scale, shift, clt_buffer(b->graph, mean, CLT_SHAPE(out), zero), clt_buffer(b->graph, variance, CLT_SHAPE(out), one),
                             (clt_norm_options){0});
}

static clt_tensor *block(body *b, clt_tensor *x, int out, int stride) {
    clt_tensor *y = clt_relu(conv_norm(b, x, out, 3, stride));
    y = conv_norm(b, y, out, 3, 1);
    if (stride > 1 || clt_tensor_shape(x).dims[1] != out) x = conv_norm(b, x, out, 1, stride);
    return clt_relu(clt_add(y, x));
}

typedef struct run {
    clt_graph *graph;
    clt_trainer *trainer;
    float values[MOST_VALUES]; /* of all that is kept, by name */
    size_t n;
} run;

/* The layers of ResNet-18 (He et al. 2016), narrow. */
static void make(run *r, maker make_weight) {
    static const int widths[] = {4, 6, 8, 10};
    assert_ok(clt_graph_create(&r->graph));
    body b = {.graph = r->graph, .make = make_weight};
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(SAMPLES, CHANNELS, SIZE, SIZE));
    clt_tensor *y = clt_input(r->graph, "y", CLT_I32, CLT_SHAPE(SAMPLES));
    x = clt_relu(conv_norm(&b, x, widths[0], 3, 1));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < 2; i++) x = block(&b, x, widths[stage], stage && !i ? 2 : 1);
    x = clt_linear(clt_flatten(clt_global_avg_pool2d(x)), "fc", CLASSES);
    if (make_weight == clt_parameter) {
        assert_ok(clt_graph_set_trained(r->graph, "*", false));
        assert_ok(clt_graph_set_trained(r->graph, "fc.*", true));
    }
    assert_int_equal(clt_graph_parameter_count(r->graph), (widths[3] + 1) * CLASSES);
    clt_train_options options = {.optimizer = CLT_ADAMW, .lr = 0.01f, .weight_decay = 0.1f, .clip_norm = 1, .seed = 3};
    assert_ok(clt_trainer_create(&r->trainer, device, clt_cross_entropy(x, y), &options));
}

static void read_values(run *r, bool body_alone) {
    r->n = 0;
    for (size_t i = 0; i < r->graph->n_variables; i++) {
        const clt_variable *v = r->graph->variables[i];
        size_t count = (size_t)clt_shape_elements(&v->shape);
        if (body_alone && (!strncmp(v->name, "fc", 2) || strstr(v->name, "running"))) continue;
        assert_true(r->n + count <= MOST_VALUES);
        assert_ok(clt_trainer_get(r->trainer, v->name, r->values + r->n, count));
        r->n += count;
    }
}

static void step(run *r) {
    clt_batch batch = {SAMPLES, 2, {{CLT_F32, CLT_SHAPE(SAMPLES, CHANNELS, SIZE, SIZE), images}, {CLT_I32, CLT_SHAPE(SAMPLES), (void *)(uintptr_t)labels}}};
    for (int i = 0; i < STEPS; i++) assert_ok(clt_trainer_step(r->trainer, &batch));
}

static void the_head_has_the_bits_of_one_over_buffers(void **state) {
    (void)state;
    static run frozen, buffers, before;
    make(&frozen, clt_parameter);
    make(&buffers, clt_buffer);
    read_values(&frozen, true);
    before = frozen;
    step(&frozen);
    step(&buffers);
    read_values(&frozen, true);
    assert_int_equal(frozen.n, before.n);
    assert_memory_equal(frozen.values, before.values, before.n * sizeof(float));
    read_values(&frozen, false);
    read_values(&buffers, false);
    assert_int_equal(frozen.n, buffers.n);
    assert_memory_equal(frozen.values, buffers.values, frozen.n * sizeof(float));
    float moved[(10 + 1) * CLASSES], first[(10 + 1) * CLASSES];
    run again;
    make(&again, clt_parameter);
    assert_ok(clt_trainer_get(again.trainer, "fc.weight", first, 10 * CLASSES));
    assert_ok(clt_trainer_get(frozen.trainer, "fc.weight", moved, 10 * CLASSES));
    assert_memory_not_equal(first, moved, 10 * CLASSES * sizeof(float));
    run *all[] = {&frozen, &buffers, &again};
    for (int i = 0; i < 3; i++) {
        clt_trainer_destroy(all[i]->trainer);
        clt_graph_destroy(all[i]->graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_head_has_the_bits_of_one_over_buffers)};
    return cmocka_run_group_tests_name("frozen", tests, open_device, close_device);
}
