/* The optimizer's state and parameters in the host's memory: the same bits, in checkpoints too, and less of the device's memory. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cltrain/cltrain.h>

#include "runtime/base/random.h"
#include "runtime/device/cl.h"

enum { BATCH = 4, WIDTH = 3000, CLASSES = 5, STEPS = 4 }; /* a matrix of 36 MB: three pieces */

typedef struct outcome {
    float *values;
    size_t n;
    uint64_t peak;
} outcome;

typedef struct job {
    clt_train_options options;
    const char *limit;      /* of the device's memory; NULL: none */
    const char *save, *load; /* checkpoints; NULL: none */
    int from, steps;
    bool apart;             /* as where host and device have memory of their own: transfers have a queue of theirs */
} job;

static clt_batch draw(uint64_t number) {
    static float x[BATCH][WIDTH];
    static int32_t y[BATCH];
    clt_random random;
    clt_random_init(&random, 13, number);
    for (int i = 0; i < BATCH; i++) {
        y[i] = (int32_t)clt_random_below(&random, CLASSES);
        for (int k = 0; k < WIDTH; k++) x[i][k] = (float)clt_random_normal(&random);
    }
    return (clt_batch){.samples = BATCH, .n_fields = 2, .fields = {{CLT_F32, CLT_SHAPE(BATCH, WIDTH), x}, {CLT_I32, CLT_SHAPE(BATCH), y}}};
}

static clt_status run(const job *j, outcome *o) {
    clt_device *device;
    clt_graph *g;
    clt_trainer *t = NULL;
    *o = (outcome){.n = 0};
    assert_ok(clt_device_open_with(&device, &(clt_settings){.memory_limit = j->limit}));
    if (j->apart) device->info.unified_memory = false;
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH)), *y = clt_input(g, "y", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_linear(x, "fc1", WIDTH)), *logits = clt_linear(h, "fc2", CLASSES);
    clt_status status = clt_trainer_create(&t, device, clt_cross_entropy(logits, y), &j->options);
    if (status == CLT_OK && j->load) assert_ok(clt_checkpoint_load(t, NULL, j->load));
    for (int s = j->from; status == CLT_OK && s < j->from + j->steps; s++) {
        clt_batch batch = draw((uint64_t)s);
        assert_ok(clt_trainer_step(t, &batch));
    }
    if (status == CLT_OK) o->values = support_parameters(t, g, &o->n);
    if (status == CLT_OK && j->save) assert_ok(clt_checkpoint_save(t, NULL, j->save));
    o->peak = clt_device_peak_bytes(device);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
    clt_device_close(device);
    return status;
}

static const clt_train_options all[] = {{.optimizer = CLT_ADAMW, .seed = 2, .clip_norm = 1},
                                        {.optimizer = CLT_ADAM, .seed = 2, .average = 0.9f, .accumulate = 2},
                                        {.optimizer = CLT_SGD, .seed = 2, .momentum = 0.9f, .nesterov = true, .on_nonfinite = CLT_NONFINITE_SKIP}};

static void bits_are_the_same(void **state) {
    static const clt_offload ways[] = {CLT_OFFLOAD_PARAMETERS, CLT_OFFLOAD_OPTIMIZER, CLT_OFFLOAD_ALL};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        outcome want, got;
        job j = {.options = all[i], .steps = STEPS};
        j.options.offload = CLT_OFFLOAD_NONE;
        assert_ok(run(&j, &want));
        uint64_t before = want.peak;
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) { /* each takes less than the one before */
            j.options.offload = ways[k];
            assert_ok(run(&j, &got));
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
            assert_true(got.peak < before);
            before = got.peak;
            free(got.values);
        }
        j.apart = true;
        assert_ok(run(&j, &got));
        assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
        assert_true(got.peak < want.peak);
        free(got.values);
        free(want.values);
    }
}

/* Saved from the host and loaded to it, or to the device, it goes on as if nothing had been. */
static void checkpoints_hold_it(void **state) {
    outcome want, got;
    const char *path = support_path("half.safetensors");
    (void)state;
    assert_ok(run(&(job){.options = all[0], .steps = STEPS}, &want));
    for (int k = 0; k < 4; k++) {
        job first = {.options = all[0], .steps = STEPS / 2, .save = path}, second = {.options = all[0], .from = STEPS / 2, .steps = STEPS / 2, .load = path};
        first.options.offload = k % 2 ? k == 3 ? CLT_OFFLOAD_ALL : CLT_OFFLOAD_OPTIMIZER : CLT_OFFLOAD_NONE;
        second.options.offload = k / 2 ? CLT_OFFLOAD_ALL : CLT_OFFLOAD_NONE;
        assert_ok(run(&first, &got));
        free(got.values);
        assert_ok(run(&second, &got));
        assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
        free(got.values);
    }
    free(want.values);
}

/* Parameters and gradients fit, the state does not. */
static void what_does_not_fit_is_in_the_host(void **state) {
    outcome want, got;
    job j = {.options = all[0], .steps = STEPS};
    (void)state;
    assert_ok(run(&j, &want));
    j.limit = "120M";
    assert_true(want.peak > clt_settings_bytes(j.limit));
    assert_ok(run(&j, &got));
    assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
    assert_true(got.peak <= clt_settings_bytes(j.limit));
    free(got.values);
    j.limit = "99M"; /* nor do parameters */
    assert_ok(run(&j, &got));
    assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
    assert_true(got.peak <= clt_settings_bytes(j.limit));
    free(got.values);
    j.options.offload = CLT_OFFLOAD_OPTIMIZER;
    assert_status(run(&j, &got), CLT_E_DEVICE_MEMORY);
    j.limit = "120M";
    j.options.offload = CLT_OFFLOAD_NONE;
    assert_status(run(&j, &got), CLT_E_DEVICE_MEMORY);
    assert_detail("beyond the memory limit of 125829120 bytes");
    j.options.offload = (clt_offload)6;
    assert_status(run(&j, &got), CLT_E_INVALID);
    assert_detail("option offload = 6: it must be one of clt_offload");
    free(want.values);
}

/* In a folder, where nothing is to be seen of it. */
static void files_hold_it(void **state) {
    struct rlimit before, small = {.rlim_cur = 1 << 20};
    char folder[512];
    outcome want, got;
    job j = {.options = all[0], .steps = STEPS};
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_path("offload"));
    mkdir(folder, 0700);
    assert_ok(run(&j, &want));
    j.options.offload = CLT_OFFLOAD_OPTIMIZER;
    j.options.offload_folder = folder;
    assert_ok(run(&j, &got));
    assert_memory_equal(got.values, want.values, want.n * sizeof *want.values);
    assert_int_equal(rmdir(folder), 0);
    free(want.values), free(got.values);
    assert_status(run(&j, &got), CLT_E_IO);
    assert_detail("offload: no file of ");
    mkdir(folder, 0700);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0); /* as if the disk were full */
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    clt_status status = run(&j, &got);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_status(status, CLT_E_IO);
    assert_detail("File too large");
    assert_int_equal(rmdir(folder), 0);
    j.options.offload = CLT_OFFLOAD_AUTO; /* also where all would fit on the device */
    assert_status(run(&j, &got), CLT_E_IO);
    assert_detail("offload: no file of ");
    j.options.offload = CLT_OFFLOAD_NONE;
    assert_status(run(&j, &got), CLT_E_INVALID);
    assert_detail("option offload_folder goes with offload");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same),
        cmocka_unit_test(checkpoints_hold_it),
        cmocka_unit_test(what_does_not_fit_is_in_the_host),
        cmocka_unit_test(files_hold_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
