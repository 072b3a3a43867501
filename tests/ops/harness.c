#include "tests/ops/harness.h"

static clt_device *device;

clt_device *op_device(void) {
    return device;
}

clt_plan *op_compile(clt_graph *graph, clt_tensor *const *targets, int n, bool training, clt_state_store **store) {
    clt_plan *plan;
    assert_ok(clt_graph_status(graph));
    assert_ok(clt_state_store_create(device, store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device,
                                                          .store = *store,
                                                          .graph = graph,
                                                          .targets = targets,
                                                          .n_targets = n,
                                                          .training = training}));
    return plan;
}

void op_compute(clt_tensor *y, const clt_tensor *x, const float *values, float *result) {
    clt_state_store *store;
    clt_plan *plan = op_compile(y->graph, &y, 1, false, &store);
    assert_ok(clt_plan_feed(plan, x, values));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, y, result, (size_t)clt_tensor_elements(y) * sizeof *result));
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
}

void op_variable_write(clt_state_store *store, const clt_tensor *variable, const float *values) {
    clt_memory *memory;
    assert_ok(clt_state_store_variable(store, variable->variable, &memory));
    assert_ok(clt_memory_write(memory, 0, values, (size_t)clt_tensor_elements(variable) * sizeof *values));
}

static int open_device(void **state) {
    (void)state;
    if (clt_device_open(&device, NULL) == CLT_OK) return 0;
    print_error("no device: %s\n", clt_error_detail());
    return -1;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

int op_main(const char *group, const struct CMUnitTest *tests, size_t n_tests) {
    return _cmocka_run_group_tests(group, tests, n_tests, open_device, close_device);
}
