#define _POSIX_C_SOURCE 200809L /* setenv */
/*
 * Tuning and runs: which rows serve a run is settled with its first plan, and kept in its checkpoints. The
 * two rows of this test add up in opposite orders, so that their bits tell which one served.
 */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/train.h>

#include "runtime/train/trainer.h"

static const char source[] =
    "kernel void test_ordered(global const float *a, global const float *b, global float *y, int4 size, int4 step,\n"
    "                         int backward) {\n"
    "    int i = (int)get_global_id(0), m = i / size.y, n = i % size.y;\n"
    "    float sum = 0;\n"
    "    if (i >= size.x * size.y) return;\n"
    "    for (int t = 0; t < size.z; t++) {\n"
    "        int k = backward ? size.z - 1 - t : t;\n"
    "        sum += a[m * step.x + k * step.y] * b[k * step.z + n * step.w];\n"
    "    }\n"
    "    y[i] = sum;\n"
    "}\n";

static void launch(clt_lowering *l, const clt_tensor *node, int backward) {
    const clt_matmul_attributes *at = node->attributes;
    const int64_t *a = node->inputs[0]->shape.dims, *b = node->inputs[1]->shape.dims, *y = node->shape.dims;
    int64_t k = at->transpose_a ? a[0] : a[1];
    clt_launch_begin_text(l, "test", source, true, "test_ordered", clt_tensor_elements(node), 16);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){y[0], y[1], k}, 3, 4);
    clt_launch_ints(l, (int64_t[]){at->transpose_a ? 1 : a[1], at->transpose_a ? a[1] : 1,
                                   at->transpose_b ? 1 : b[1], at->transpose_b ? b[1] : 1}, 4, 4);
    clt_launch_int(l, backward);
}

static void lower_forward(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 0);
}

static void lower_backward(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 1);
}

static const clt_backend_row rows[] = {
    {.op = &clt_op_matmul, .name = "backward", .lower = lower_backward},
    {.op = &clt_op_matmul, .name = "forward", .lower = lower_forward},
    {0},
};

/* ---- a model ---- */

enum { BATCH = 12, SMALL_BATCH = 5, WIDTH = 24, STEPS = 6, WEIGHTS = WIDTH * WIDTH };

typedef struct model {
    clt_device *device;
    clt_graph *graph;
    clt_trainer *trainer;
} model;

static void open_model(model *m) {
    assert_ok(clt_device_open(&m->device, NULL));
    clt_tuning_results_free(&clt_tune_database_of(m->device)->shipped);
    assert_ok(clt_graph_create(&m->graph));
    clt_tensor *x = clt_input(m->graph, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH)), *y = clt_input(m->graph, "y", CLT_F32, CLT_SHAPE(BATCH, WIDTH));
    clt_tensor *loss = clt_mse_loss(clt_linear(clt_tanh(clt_linear(x, "fc1", WIDTH)), "fc2", WIDTH), y);
    assert_ok(clt_trainer_create(&m->trainer, m->device, loss, &(clt_train_options){.optimizer = CLT_SGD, .lr = 0.1f}));
}

static void close_model(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
    clt_device_close(m->device);
}

/* The last batch of three is a small one. */
static void step(model *m, int number) {
    static float x[BATCH * WIDTH], y[BATCH * WIDTH];
    int64_t n = number % 3 == 2 ? SMALL_BATCH : BATCH;
    for (int i = 0; i < BATCH * WIDTH; i++) {
        x[i] = (float)((i * 37 + number * 11) % 101) / 50.5f - 1;
        y[i] = (float)((i * 53 + number * 7) % 89) / 44.5f - 1;
    }
    clt_batch batch = {.samples = n, .n_fields = 2};
    batch.fields[0] = (clt_array){.data = x, .dtype = CLT_F32, .shape = CLT_SHAPE(n, WIDTH)};
    batch.fields[1] = (clt_array){.data = y, .dtype = CLT_F32, .shape = CLT_SHAPE(n, WIDTH)};
    assert_ok(clt_trainer_step(m->trainer, &batch));
}

static void weights_of(model *m, float *values) {
    assert_ok(clt_trainer_get(m->trainer, "fc1.weight", values, WEIGHTS));
}

/* All that is known of this device now says this row. */
static void learn_everywhere(const char *row) {
    clt_device *device;
    assert_ok(clt_device_open(&device, NULL));
    clt_tuning_results *list = &clt_tune_database_of(device)->measured;
    assert_true(list->n > 0);
    for (size_t i = 0; i < list->n; i++) {
        strcpy(list->items[i].row, row);
        list->items[i].n_parameters = 0;
        list->items[i].effort = CLT_TUNE_FULL;
    }
    assert_ok(clt_tune_store(device));
    clt_device_close(device);
}

static int set_up(void **state) {
    static int folders;
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "cache%d", folders++);
    setenv("XDG_CACHE_HOME", support_path(name), 1);
    setenv("CLTRAIN_TUNE", "quick", 1);
    unsetenv("CLTRAIN_BACKENDS");
    clt_backend_more_rows = rows;
    return 0;
}

static void resumed_runs_keep_their_rows(void **state) {
    (void)state;
    static float whole[WEIGHTS], resumed[WEIGHTS], fresh[WEIGHTS], moved[WEIGHTS];
    const char *path = support_path("run.safetensors"), *again = support_path("again.safetensors");
    model m;
    open_model(&m); /* hardly any work: the default is kept for each problem */
    for (int i = 0; i < STEPS; i++) {
        step(&m, i);
        if (i == 1) assert_ok(clt_checkpoint_save(m.trainer, NULL, path)); /* before the first small batch */
    }
    weights_of(&m, whole);
    close_model(&m);

    learn_everywhere("backward");
    open_model(&m);
    assert_ok(clt_checkpoint_load(m.trainer, NULL, path));
    assert_ok(clt_checkpoint_save(m.trainer, NULL, again));
    for (int i = 2; i < STEPS; i++) step(&m, i);
    weights_of(&m, resumed);
    close_model(&m);
    assert_memory_equal(whole, resumed, sizeof whole);

    open_model(&m); /* what was learnt does make a difference */
    for (int i = 0; i < STEPS; i++) step(&m, i);
    weights_of(&m, fresh);
    close_model(&m);
    assert_memory_not_equal(whole, fresh, sizeof whole);

    open_model(&m); /* saved again after it was resumed, it still has them */
    assert_ok(clt_checkpoint_load(m.trainer, NULL, again));
    for (int i = 2; i < STEPS; i++) step(&m, i);
    weights_of(&m, moved);
    close_model(&m);
    assert_memory_equal(whole, moved, sizeof whole);
}

/* Tuning results that come while a run goes on are not its own. */
static void runs_are_not_changed_on_their_way(void **state) {
    (void)state;
    static float whole[WEIGHTS], changed[WEIGHTS];
    model m;
    for (int round = 0; round < 2; round++) {
        open_model(&m);
        for (int i = 0; i < STEPS; i++) {
            clt_tuning_results *list = &clt_tune_database_of(m.device)->measured;
            if (round == 1 && i == 2) /* before the small batch's plan is made */
                for (size_t k = 0; k < list->n; k++) strcpy(list->items[k].row, "backward");
            step(&m, i);
        }
        weights_of(&m, round ? changed : whole);
        close_model(&m);
    }
    assert_memory_equal(whole, changed, sizeof whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(resumed_runs_keep_their_rows, set_up),
        cmocka_unit_test_setup(runs_are_not_changed_on_their_way, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
