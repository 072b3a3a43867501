#define _POSIX_C_SOURCE 200809L /* setenv */
/* Profiles: what they count, their sums, and the trace as others read it. */
#include "tests/support.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/experimental/profile.h>

#include "runtime/device/device.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"

enum { M = 96, K = 160, N = 200, RUNS = 3 };

typedef struct fixture {
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_tensor *a, *b, *y;
    clt_plan *plan;
} fixture;

/* y = relu(a b) + a sum: two products of the same shape, and some that are not. */
static int set_up(void **state) {
    setenv("CLTRAIN_PASSES", "none", 1); /* nodes are counted as they were built */
    fixture *f = calloc(1, sizeof *f);
    static float zeros[K * N];
    assert_ok(clt_device_open(&f->device, NULL));
    assert_ok(clt_graph_create(&f->graph));
    assert_ok(clt_state_store_create(f->device, &f->store));
    f->a = clt_input(f->graph, "a", CLT_F32, CLT_SHAPE(M, K));
    f->b = clt_input(f->graph, "b", CLT_F32, CLT_SHAPE(K, N));
    clt_tensor *product = clt_relu(clt_matmul(f->a, f->b));
    f->y = clt_add(product, clt_matmul(clt_exp(f->a), f->b));
    assert_ok(clt_graph_status(f->graph));
    clt_plan_options options = {.device = f->device, .store = f->store, .graph = f->graph, .targets = &f->y,
                                .n_targets = 1, .training = true};
    assert_ok(clt_plan_compile(&f->plan, &options));
    assert_ok(clt_plan_feed(f->plan, f->a, zeros));
    assert_ok(clt_plan_feed(f->plan, f->b, zeros));
    assert_ok(clt_plan_run(f->plan));
    assert_ok(clt_device_finish(f->device));
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    clt_plan_destroy(f->plan);
    clt_state_store_destroy(f->store);
    clt_graph_destroy(f->graph);
    clt_device_close(f->device);
    free(f);
    return 0;
}

static void run(fixture *f, int runs) {
    for (int i = 0; i < runs; i++) assert_ok(clt_plan_run(f->plan));
}

static const clt_profile_row *find_row(const clt_profile *profile, const char *op) {
    size_t count;
    const clt_profile_row *rows = clt_profile_rows(profile, &count), *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(rows[i].op, op)) found = &rows[i];
    return found;
}

/* ---- counts and sums ---- */

static void check_sums(const clt_profile *profile, int runs) {
    size_t count;
    const clt_profile_row *rows = clt_profile_rows(profile, &count);
    clt_profile_totals totals = clt_profile_get_totals(profile);
    double seconds = 0;
    int64_t launches = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || rows[i].seconds <= rows[i - 1].seconds);
        assert_true(rows[i].calls <= rows[i].launches && rows[i].calls >= runs);
        seconds += rows[i].seconds;
        launches += rows[i].launches;
    }
    assert_int_equal(totals.runs, runs);
    assert_int_equal(totals.launches, launches);
    assert_true(launches > 0 && fabs(totals.device_seconds - seconds) < 1e-9);
    /* In one queue, in order: the launches do not overlap, so together they fit in the time passed. */
    assert_true(totals.device_seconds > 0 && totals.device_seconds <= totals.wall_seconds * 1.01 + 1e-4);
    assert_true(totals.peaks.fma_flops > 0 && totals.peaks.copy_bytes > 0);
}

static void counts(void **state) {
    fixture *f = *state;
    clt_profile *profile;
    size_t count;
    assert_ok(clt_profile_start(&profile, f->device));
    run(f, RUNS);
    clt_profile_rows(profile, &count);
    assert_ptr_equal(clt_profile_rows(profile, NULL), clt_profile_rows(profile, &count));
    assert_int_equal(count, 0);
    assert_status(clt_profile_save_trace(profile, support_path("early.json")), CLT_E_STATE);
    assert_ok(clt_profile_stop(profile));
    run(f, 1); /* no longer counted */
    assert_ok(clt_profile_stop(profile));

    check_sums(profile, RUNS);
    const clt_profile_row *matmul = find_row(profile, "matmul"), *relu = find_row(profile, "relu");
    assert_non_null(matmul);
    assert_non_null(relu);
    assert_int_equal(matmul->calls, 2 * RUNS);
    assert_int_equal(relu->calls, RUNS);
    assert_true(matmul->flops == 2.0 * RUNS * 2 * M * N * K);
    assert_true(matmul->bytes == 2.0 * RUNS * 4 * (M * K + K * N + M * N));
    assert_true(relu->bytes == 4.0 * RUNS * 2 * M * N);
    assert_null(find_row(profile, "outside"));
    clt_peaks peaks = clt_profile_get_totals(profile).peaks;
    double least = matmul->flops / peaks.fma_flops, moved = matmul->bytes / peaks.copy_bytes;
    assert_true(fabs(matmul->roofline_seconds / fmax(least, moved) - 1) < 1e-9);
    assert_int_equal(matmul->bound_by_compute, least > moved);
    clt_profile_destroy(profile);
}

/* The same plan under one profile after another, and a plan that is gone before the profile is read. */
static void again(void **state) {
    fixture *f = *state;
    clt_profile *first, *second;
    assert_ok(clt_profile_start(&first, f->device));
    assert_status(clt_profile_start(&second, f->device), CLT_E_STATE);
    run(f, 1);
    clt_profile_destroy(first); /* stops it */
    assert_ok(clt_profile_start(&second, f->device));
    run(f, 2);
    clt_plan_destroy(f->plan);
    f->plan = NULL;
    clt_graph_destroy(f->graph);
    f->graph = NULL;
    assert_ok(clt_profile_stop(second));
    check_sums(second, 2);
    assert_int_equal(find_row(second, "matmul")->calls, 4);
    assert_ok(clt_profile_save_trace(second, support_path("late.json")));
    clt_profile_destroy(second);
}

/* More launches than events are kept unread. */
static void many(void **state) {
    fixture *f = *state;
    clt_profile *profile;
    int runs = 8192 / (int)clt_plan_get_facts(f->plan).launches + 50;
    assert_ok(clt_profile_start(&profile, f->device));
    run(f, runs);
    assert_ok(clt_profile_stop(profile));
    check_sums(profile, runs);
    assert_true(clt_profile_get_totals(profile).launches > 8192);
    clt_profile_destroy(profile);
}

/* ---- the trace ---- */

static const char *text_of(const json_t *event, const char *key) {
    const char *text = json_string_value(json_object_get(event, key));
    assert_non_null(text);
    return text;
}

static double number_of(const json_t *event, const char *key) {
    assert_true(json_is_number(json_object_get(event, key)));
    return json_number_value(json_object_get(event, key));
}

typedef struct trace_counts {
    int names, runs, launches, matmuls;
    double end_us, sum_us;
} trace_counts;

static void look_at(const json_t *event, trace_counts *counted) {
    const char *phase = text_of(event, "ph"), *name = text_of(event, "name");
    if (!strcmp(phase, "M")) {
        counted->names++;
        return;
    }
    assert_string_equal(phase, "X");
    double start = number_of(event, "ts"), duration = number_of(event, "dur");
    assert_true(start >= 0 && duration >= 0);
    if (!strcmp(text_of(event, "cat"), "run")) {
        counted->runs++;
        return;
    }
    const json_t *args = json_object_get(event, "args");
    assert_true(strstr(text_of(args, "kernel"), "_") != NULL && text_of(args, "row")[0]);
    /* In the queue's order, one after the other; times are rounded to a nanosecond. */
    assert_true(start >= counted->end_us - 0.002);
    counted->end_us = start + duration;
    counted->sum_us += duration;
    counted->launches++;
    if (strcmp(name, "matmul") != 0) return;
    counted->matmuls++;
    assert_string_equal(text_of(args, "shapes"), "[96, 160], [160, 200] -> [96, 200]");
    assert_non_null(strstr(text_of(args, "node"), "matmul #"));
}

static void trace(void **state) {
    fixture *f = *state;
    clt_profile *profile;
    trace_counts counted = {0};
    size_t i;
    json_t *event;
    assert_ok(clt_profile_start(&profile, f->device));
    run(f, RUNS);
    assert_ok(clt_profile_stop(profile));
    const char *path = support_path("trace.json");
    assert_ok(clt_profile_save_trace(profile, path));
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event) look_at(event, &counted);
    clt_profile_totals totals = clt_profile_get_totals(profile);
    assert_int_equal(counted.names, 3);
    assert_int_equal(counted.runs, RUNS);
    assert_int_equal(counted.launches, totals.launches);
    assert_true(counted.matmuls >= 2 * RUNS);
    assert_true(counted.end_us >= counted.sum_us - 1 && counted.end_us <= 1.01e6 * totals.wall_seconds + 100);
    assert_true(fabs(counted.sum_us - 1e6 * totals.device_seconds) < 0.001 * (double)totals.launches);
    json_decref(root);
    assert_status(clt_profile_save_trace(profile, "/nonexistent/trace.json"), CLT_E_IO);
    assert_status(clt_profile_save_trace(NULL, path), CLT_E_INVALID);
    clt_profile_destroy(profile);
    clt_profile_destroy(NULL);
}

/* What is set beside the plan is no node's. */
static void outside(void **state) {
    fixture *f = *state;
    clt_profile *profile;
    float values[4] = {1, 2, 3, 4};
    clt_graph *graph;
    clt_plan *plan;
    assert_ok(clt_graph_create(&graph));
    clt_tensor *state_node = clt_state(graph, "s", CLT_F32, CLT_SHAPE(4)), *y = clt_exp(state_node);
    clt_plan_options options = {.device = f->device, .store = f->store, .graph = graph, .targets = &y, .n_targets = 1};
    assert_ok(clt_plan_compile(&plan, &options));
    assert_ok(clt_profile_start(&profile, f->device));
    for (int i = 0; i < RUNS; i++) {
        assert_ok(clt_plan_set(plan, state_node, values, sizeof values));
        assert_ok(clt_plan_run(plan));
    }
    assert_ok(clt_profile_stop(profile));
    assert_int_equal(find_row(profile, "outside")->calls, RUNS);
    assert_int_equal(find_row(profile, "exp")->calls, RUNS);
    clt_profile_destroy(profile);
    clt_plan_destroy(plan);
    clt_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outside, set_up, tear_down),
    };
    setenv("XDG_CACHE_HOME", support_folder(), 1);
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
