/* clt_probe_kernels: each source is all that its kernel needs, and they are those of a step. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/probe.h>

#include "runtime/device/device.h"
#include "runtime/train/trainer.h"

SUPPORT_DEVICE

enum { MOST = 64 };

typedef struct seen {
    char names[MOST][64];
    int n, launches, most;
} seen;

/* A convolution, products, what is pointwise, a softmax, and an optimizer. */
static clt_graph *network(clt_tensor **loss) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(8, 3, 8, 8)), *labels = clt_input(graph, "y", CLT_I32, CLT_SHAPE(8));
    clt_tensor *images = clt_relu(clt_conv2d(x, "c", 16, .kernel = 3, .padding = 1));
    *loss = clt_cross_entropy(clt_linear(clt_reshape(images, CLT_SHAPE(8, 1024)), "d", 10), labels);
    assert_ok(clt_graph_status(graph));
    return graph;
}

static bool build(const clt_kernel_info *info, void *user) {
    seen *s = user;
    const clt_module alone = {.text = info->source, .isolated = true, .label = info->kernel};
    clt_kernel *kernel = NULL;
    assert_ok(clt_device_build(device, &alone, 1));
    assert_ok(clt_kernel_create(device, &alone, info->kernel, &kernel));
    clt_kernel_destroy(kernel);
    assert_true(info->dims >= 1 && info->launches >= 0 && info->op[0] && info->backend[0]);
    for (int d = 0; d < info->dims; d++) assert_true(info->group[d] >= 1 && info->items[d] % info->group[d] == 0);
    assert_true(s->n < MOST);
    snprintf(s->names[s->n++], sizeof *s->names, "%s", info->kernel);
    s->launches += info->launches;
    return s->n < s->most;
}

static bool has(const seen *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->names[i], name)) return true;
    return false;
}

static size_t launches_of_step(clt_tensor *loss, const clt_train_options *options) {
    clt_trainer *trainer;
    clt_step *step;
    assert_ok(clt_trainer_dry_run(&trainer, device, loss, options));
    assert_ok(clt_trainer_dry_run_step(trainer, 8, &step));
    size_t launches = clt_plan_get_facts(step->plan).launches;
    clt_step_destroy(step);
    clt_trainer_destroy(trainer);
    return launches;
}

static void of_a_step(void **state) {
    (void)state;
    clt_tensor *loss;
    clt_graph *graph = network(&loss);
    const clt_train_options options = {.optimizer = CLT_ADAM};
    seen all = {.most = MOST}, some = {.most = 2};
    assert_ok(clt_probe_kernels(device, loss, &options, build, &all));
    assert_true(has(&all, "ref_adam"));
    assert_int_equal(all.launches, launches_of_step(loss, &options));
    assert_ok(clt_probe_kernels(device, loss, &options, build, &some));
    assert_int_equal(some.n, 2);
    assert_status(clt_probe_kernels(NULL, loss, &options, build, &some), CLT_E_INVALID);
    assert_status(clt_probe_kernels(device, loss, &options, NULL, &some), CLT_E_INVALID);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_step)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
