/* The moving average of the parameters, against the same sums on the host. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include <cltrain/cltrain.h>

enum { N = 4, IN = 5, OUT = 300, STEPS = 7 };

SUPPORT_DEVICE

typedef struct net {
    clt_graph *graph;
    clt_trainer *trainer;
    clt_tensor *output;
} net;

static void make(net *n, clt_train_options options) {
    assert_ok(clt_graph_create(&n->graph));
    clt_tensor *x = clt_input(n->graph, "x", CLT_F32, CLT_SHAPE(N, IN)), *y = clt_input(n->graph, "y", CLT_F32, CLT_SHAPE(N, OUT));
    n->output = clt_linear(x, "fc", OUT);
    options.optimizer = CLT_ADAMW;
    options.lr = 0.05f;
    assert_ok(clt_trainer_create(&n->trainer, device, clt_mse_loss(n->output, y), &options));
}

static void free_net(net *n) {
    clt_trainer_destroy(n->trainer);
    clt_graph_destroy(n->graph);
}

static const clt_batch *batch(void) {
    static float x[N * IN], y[N * OUT];
    static clt_batch b;
    for (int i = 0; i < N * IN; i++) x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < N * OUT; i++) y[i] = (float)(i % 5) - 2;
    b = (clt_batch){N, 2, {{CLT_F32, CLT_SHAPE(N, IN), x}, {CLT_F32, CLT_SHAPE(N, OUT), y}}};
    return &b;
}

static void get(net *n, float values[OUT * IN]) {
    assert_ok(clt_trainer_get(n->trainer, "fc.weight", values, OUT * IN));
}

static void is_what_the_host_computes(void **state) {
    (void)state;
    static float w[OUT * IN], got[OUT * IN], back[OUT * IN];
    static double mean[OUT * IN];
    net n;
    make(&n, (clt_train_options){.average = 0.8f});
    get(&n, w);
    assert_ok(clt_trainer_use_average(n.trainer, true)); /* before a step it is the parameters */
    get(&n, got);
    assert_memory_equal(w, got, sizeof w);
    assert_ok(clt_trainer_use_average(n.trainer, false));
    for (int i = 0; i < OUT * IN; i++) mean[i] = w[i];
    for (int s = 0; s < STEPS; s++) {
        assert_ok(clt_trainer_step(n.trainer, batch()));
        get(&n, w);
        for (int i = 0; i < OUT * IN; i++) mean[i] += (1 - (double)0.8f) * (w[i] - mean[i]);
        assert_ok(clt_trainer_use_average(n.trainer, true));
        assert_ok(clt_trainer_use_average(n.trainer, true)); /* once more is no change */
        get(&n, got);
        for (int i = 0; i < OUT * IN; i++) assert_true(fabs(got[i] - mean[i]) < 1e-6);
        assert_true(memcmp(w, got, sizeof w) != 0);
        assert_ok(clt_trainer_use_average(n.trainer, false));
        get(&n, back);
        assert_memory_equal(w, back, sizeof w);
    }
    free_net(&n);
}

/* What predicts and what is saved is the average, and training is as without one. */
static void stands_in_for_the_parameters(void **state) {
    (void)state;
    static float with[N * OUT], without[N * OUT], parameters[N * OUT];
    net n, plain;
    const char *path = support_path("mean.safetensors");
    make(&n, (clt_train_options){.average = 0.9f});
    make(&plain, (clt_train_options){0});
    for (int s = 0; s < STEPS; s++) {
        assert_ok(clt_trainer_step(n.trainer, batch()));
        assert_ok(clt_trainer_step(plain.trainer, batch()));
    }
    assert_ok(clt_trainer_predict(n.trainer, n.output, batch(), parameters, N * OUT));
    assert_ok(clt_trainer_predict(plain.trainer, plain.output, batch(), without, N * OUT));
    assert_memory_equal(parameters, without, sizeof without);
    assert_ok(clt_trainer_use_average(n.trainer, true));
    assert_ok(clt_trainer_predict(n.trainer, n.output, batch(), with, N * OUT));
    assert_true(memcmp(with, parameters, sizeof with) != 0);
    assert_ok(clt_weights_save(n.trainer, path));
    assert_status(clt_trainer_step(n.trainer, batch()), CLT_E_STATE);
    assert_detail("the average is in the parameters' place");
    assert_status(clt_checkpoint_save(n.trainer, NULL, support_path("no.safetensors")), CLT_E_STATE);
    assert_status(clt_weights_load(n.trainer, path), CLT_E_STATE);
    assert_ok(clt_trainer_use_average(n.trainer, false));
    assert_ok(clt_trainer_step(n.trainer, batch()));
    assert_ok(clt_weights_load(plain.trainer, path));
    assert_ok(clt_trainer_predict(plain.trainer, plain.output, batch(), without, N * OUT));
    assert_memory_equal(with, without, sizeof with);
    free_net(&n);
    free_net(&plain);
}

static void goes_on_from_a_checkpoint(void **state) {
    (void)state;
    static float a[OUT * IN], b[OUT * IN];
    const char *path = support_path("average.safetensors");
    net one, two, plain;
    make(&one, (clt_train_options){.average = 0.9f, .accumulate = 2});
    for (int s = 0; s < STEPS; s++) { /* in the midst of an update */
        assert_ok(clt_trainer_step(one.trainer, batch()));
    }
    assert_ok(clt_checkpoint_save(one.trainer, NULL, path));
    make(&two, (clt_train_options){.average = 0.9f, .accumulate = 2});
    assert_ok(clt_checkpoint_load(two.trainer, NULL, path));
    for (int s = 0; s < 3; s++) {
        assert_ok(clt_trainer_step(one.trainer, batch()));
        assert_ok(clt_trainer_step(two.trainer, batch()));
    }
    assert_ok(clt_trainer_use_average(one.trainer, true));
    assert_ok(clt_trainer_use_average(two.trainer, true));
    get(&one, a);
    get(&two, b);
    assert_memory_equal(a, b, sizeof a);
    make(&plain, (clt_train_options){.accumulate = 2});
    assert_status(clt_checkpoint_load(plain.trainer, NULL, path), CLT_E_MISMATCH);
    assert_detail("cltrain.optimizer.average.");
    /* Weights are where an average begins anew. */
    assert_ok(clt_trainer_use_average(two.trainer, false));
    assert_ok(clt_weights_load(two.trainer, path));
    get(&two, a);
    assert_ok(clt_trainer_use_average(two.trainer, true));
    get(&two, b);
    assert_memory_equal(a, b, sizeof a);
    free_net(&one);
    free_net(&two);
    free_net(&plain);
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    net n;
    clt_trainer *none = NULL;
    make(&n, (clt_train_options){0});
    assert_status(clt_trainer_use_average(n.trainer, true), CLT_E_STATE);
    assert_status(clt_trainer_use_average(NULL, true), CLT_E_INVALID);
    const float wrong[] = {1, -0.5f, NAN, INFINITY};
    clt_tensor *loss = clt_mean(n.output, (clt_reduce_options){0});
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(clt_trainer_create(&none, device, loss, &(clt_train_options){.average = wrong[i]}), CLT_E_INVALID);
        assert_detail("average");
    }
    assert_status(clt_trainer_create(&none, device, loss, &(clt_train_options){.average = 0.9f, .shard = CLT_SHARD_OPTIMIZER}), CLT_E_INVALID);
    free_net(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_the_host_computes),
        cmocka_unit_test(stands_in_for_the_parameters),
        cmocka_unit_test(goes_on_from_a_checkpoint),
        cmocka_unit_test(refuses_what_makes_no_sense),
    };
    return cmocka_run_group_tests_name("average", tests, open_device, close_device);
}
