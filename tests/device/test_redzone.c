/* Buffers of a device with red zones: writes outside of them are found, wherever and whenever. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include <cltrain/experimental/measure.h>

#include "runtime/device/device.h"

static clt_device *device;

/* Writes n floats from places[0] on, which may lie anywhere. */
static const char text[] = "kernel void stray(global float *y, int first, int n) {\n"
                           "    int i = get_global_id(0);\n    if (i < n) y[first + i] = 1.0f;\n}\n";

static void write_from(clt_memory *memory, int first, int n) {
    clt_module module = {.text = text, .label = "stray", .isolated = true};
    clt_kernel *kernel;
    size_t global = 64, local = 64;
    assert_ok(clt_device_build(device, &module, 1));
    assert_ok(clt_kernel_create(device, &module, "stray", &kernel));
    assert_ok(clt_kernel_set_memory(kernel, 0, memory));
    assert_ok(clt_kernel_set_value(kernel, 1, &first, sizeof first));
    assert_ok(clt_kernel_set_value(kernel, 2, &n, sizeof n));
    assert_ok(clt_kernel_enqueue(kernel, 1, &global, &local));
    assert_ok(clt_device_finish(device));
    clt_kernel_destroy(kernel);
}

static int open_device(void **state) {
    (void)state;
    assert_ok(clt_device_open(&device, NULL));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    clt_device_close(device);
    return 0;
}

static void without_redzones(void **state) {
    (void)state;
    clt_memory *memory;
    assert_status(clt_device_check_redzones(device), CLT_E_STATE);
    assert_ok(clt_memory_create(device, 64, &memory));
    assert_status(clt_device_enable_redzones(device), CLT_E_STATE);
    clt_memory_destroy(memory);
    assert_ok(clt_device_enable_redzones(device));
    assert_ok(clt_device_check_redzones(device));
}

static void check_stray(int first, int n, const char *words) {
    clt_memory *memory;
    assert_ok(clt_memory_create(device, 10 * sizeof(float), &memory));
    clt_memory_name(memory, "the thing");
    write_from(memory, 0, 10);
    assert_ok(clt_device_check_redzones(device));
    write_from(memory, first, n);
    assert_status(clt_device_check_redzones(device), CLT_E_DEVICE);
    assert_detail("the thing");
    assert_detail(words);
    clt_memory_destroy(memory);
    clt_device_check_redzones(device); /* it was seen once more on its end */
}

static void behind(void **state) {
    (void)state;
    check_stray(9, 2, "0 bytes after its end");
    check_stray(12, 1, "8 bytes after its end");
}

static void before(void **state) {
    (void)state;
    check_stray(-1, 1, "4 bytes before its start");
}

static void of_one_that_is_gone(void **state) {
    (void)state;
    clt_memory *memory;
    assert_ok(clt_memory_create(device, 40, &memory));
    write_from(memory, 10, 1);
    clt_memory_destroy(memory);
    assert_status(clt_device_check_redzones(device), CLT_E_DEVICE);
    assert_ok(clt_device_check_redzones(device));
}

static void contents_show(void **state) {
    (void)state;
    clt_memory *memory;
    float values[10];
    assert_ok(clt_memory_create(device, sizeof values, &memory));
    assert_ok(clt_memory_read(memory, 0, values, sizeof values));
    for (int i = 0; i < 10; i++) assert_true(values[i] != values[i]);
    clt_memory_destroy(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_redzones), cmocka_unit_test(behind), cmocka_unit_test(before),
        cmocka_unit_test(of_one_that_is_gone), cmocka_unit_test(contents_show),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
