/*
 * Tensors of more than 2^31 elements, whose places do not fit an int: moved, computed, reduced and cut. Takes 2.2 GB of the device's memory;
 * skipped where a buffer cannot be so large.
 */
#include "tests/support.h"

#include <stdlib.h>

#include <cltrain/experimental/trial.h>
#include <cltrain/ops.h>

enum { ROWS = 1048583, COLUMNS = 2053 }; /* 2^31 + 5257251 elements */

/* A row's largest is its last. */
static int column_value(int i) {
    return i == COLUMNS - 1 ? 3 : i % 3;
}

static void *run(clt_device *device, clt_tensor *y, size_t bytes, const char *backends) {
    static uint8_t rows[ROWS];
    static float columns[COLUMNS];
    clt_trial *trial;
    void *got = malloc(bytes);
    assert_non_null(got);
    for (int i = 0; i < ROWS; i++) rows[i] = (uint8_t)(i % 251);
    for (int i = 0; i < COLUMNS; i++) columns[i] = (float)column_value(i);
    assert_ok(clt_trial_create(&trial, device, y, &(clt_trial_options){.backends = backends}));
    assert_ok(clt_trial_set(trial, "rows", rows, sizeof rows));
    assert_ok(clt_trial_set(trial, "columns", columns, sizeof columns));
    assert_ok(clt_trial_run(trial));
    assert_ok(clt_trial_get(trial, NULL, got, bytes));
    clt_trial_destroy(trial);
    return got;
}

/* all[r, c] = rows[r], of bytes; what is added to it goes straight into the maxima. */
static void check(clt_device *device, const char *backends) {
    clt_graph *graph;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *rows = clt_input(graph, "rows", CLT_U8, CLT_SHAPE(ROWS, 1));
    clt_tensor *columns = clt_input(graph, "columns", CLT_F32, CLT_SHAPE(COLUMNS));
    clt_tensor *all = clt_expand(rows, CLT_SHAPE(ROWS, COLUMNS));

    float *largest = run(device, clt_max(clt_add(clt_cast(all, CLT_F32), columns), CLT_AXES(1)), ROWS * sizeof(float), backends);
    for (int i = 0; i < ROWS; i++) assert_true(largest[i] == (float)(i % 251 + 3));
    free(largest);

    uint8_t *end = run(device, clt_slice(all, 0, ROWS - 2, ROWS, 1), (size_t)2 * COLUMNS, backends);
    for (int i = 0; i < 2 * COLUMNS; i++) assert_int_equal(end[i], (ROWS - 2 + i / COLUMNS) % 251);
    free(end);
    clt_graph_destroy(graph);
}

static void places_beyond_31_bits(void **state) {
    clt_device *device;
    (void)state;
    assert_ok(clt_device_open(&device, NULL));
    bool fits = clt_device_get_info(device)->max_buffer_bytes >= (uint64_t)ROWS * COLUMNS;
    if (fits) check(device, "reference");
    if (fits) check(device, NULL);
    clt_device_close(device);
    if (!fits) skip();
}

/* A row that counts to less refuses the problem before anything is launched, and says why. */
static void rows_that_count_to_less_refuse(void **state) {
    clt_graph *graph;
    clt_trial *trial;
    clt_device *device;
    (void)state;
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_graph_create(&graph));
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(1 << 15, 1, 1 << 9, 1 << 8));
    assert_status(clt_trial_create(&trial, device, clt_max_pool2d(x, .kernel = 2), NULL), CLT_E_UNSUPPORTED);
    assert_detail("2^31 elements");
    clt_graph_destroy(graph);
    clt_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_beyond_31_bits),
        cmocka_unit_test(rows_that_count_to_less_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
