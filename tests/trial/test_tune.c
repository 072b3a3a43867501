#define _POSIX_C_SOURCE 200809L /* setenv */
/*
 * Tuning on a device: rows of the test's own, of which some are fast, some wrong and some do not
 * build, compete for matrix products.
 */
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/thread.h"
#include "runtime/device/cl.h"
#include "runtime/trial/bench.h"
#include "runtime/exec/plan.h"
#include "runtime/trial/tune.h"

/* ---- rows of the test ---- */

/* Nothing says that y is another memory than a and b, so the compiler cannot leave out rounds. */
static const char source[] =
    "kernel void test_product(global const float *a, global const float *b, global float *y, int4 size, int rounds,\n"
    "                         float factor, int left_out) {\n"
    "    int i = (int)get_global_id(0), n = size.y, k = size.z;\n"
    "    if (i >= size.x * n - max(left_out, 0) || (left_out < 0 && i / n == 10)) return;\n"
    "    for (int r = 0; r < rounds; r++) {\n"
    "        float sum = 0;\n"
    "        for (int t = 0; t < k; t++) sum += a[i / n * k + t] * b[t * n + i % n];\n"
    "        y[i] = sum * factor;\n"
    "    }\n"
    "}\n";

static int launches_of_slow; /* how often the slow row was lowered */

static void launch(clt_lowering *l, const clt_tensor *node, int rounds, float factor, int left_out) {
    const int64_t *a = node->inputs[0]->shape.dims;
    clt_launch_begin_text(l, "test", source, true, "test_product", clt_tensor_elements(node), 16);
    clt_launch_tensor(l, node->inputs[0]);
    clt_launch_tensor(l, node->inputs[1]);
    clt_launch_tensor(l, node);
    clt_launch_ints(l, (int64_t[]){a[0], node->shape.dims[1], a[1]}, 3, 4);
    clt_launch_int(l, rounds);
    clt_launch_float(l, factor);
    clt_launch_int(l, left_out);
}

static void lower_slow(clt_lowering *l, const clt_tensor *node) {
    launches_of_slow++;
    launch(l, node, 24, 1, 0);
}

static void lower_fast(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 1, 1, 0);
}

static void lower_tunable(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, l->parameters[0] * l->parameters[1], 1, 0);
}

static void lower_wrong(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 1, 1.001f, 0);
}

/* All but the last value: what is there is what the candidate before left. */
static void lower_short(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 1, 1, 1);
}

/* Row 10 alone is left out. */
static void lower_hole(clt_lowering *l, const clt_tensor *node) {
    launch(l, node, 1, 1, -1);
}

static void lower_nothing(clt_lowering *l, const clt_tensor *node) {
    (void)l, (void)node;
}

static void lower_broken(clt_lowering *l, const clt_tensor *node) {
    (void)node;
    clt_launch_begin_text(l, "broken", "kernel void test_broken( {", true, "test_broken", 1, 1);
}

static clt_status lose_device(clt_device *on, clt_memory *const *arguments, void *state) {
    (void)arguments, (void)state;
    return clt_device_lose(on, false, "as a test has it");
}

static void lower_loses(clt_lowering *l, const clt_tensor *node) {
    clt_launch_begin_call(l, "loses", &(clt_call){.run = lose_device});
    clt_launch_tensor(l, node);
}

static bool not_two_and_two(const clt_candidate *c, const int *parameters) {
    (void)c;
    return parameters[0] != 2 || parameters[1] != 2;
}

static const clt_tunable tunables[] = {{"outer", 4, {6, 2, 1, 12}}, {"inner", 3, {4, 2, 1}}, {0}};

#define ROW(row_name, function) {.op = &clt_op_matmul, .name = row_name, .lower = function}
#define TUNABLE {.op = &clt_op_matmul, .name = "tunable", .lower = lower_tunable, .tunables = tunables, .valid = not_two_and_two}

static const clt_backend_row fast_and_slow[] = {ROW("fast", lower_fast), ROW("slow", lower_slow), {0}};
static const clt_backend_row bad_ones[] = {
    ROW("wrong", lower_wrong),   ROW("short", lower_short),   ROW("nothing", lower_nothing), ROW("hole", lower_hole),
    ROW("broken", lower_broken), ROW("slow", lower_slow),     {0},
};
static const clt_backend_row bad_default[] = {ROW("fast", lower_fast), ROW("wrong", lower_wrong), {0}};
static const clt_backend_row lost_and_slow[] = {ROW("loses", lower_loses), ROW("slow", lower_slow), {0}};
static const clt_backend_row with_tunables[] = {TUNABLE, {0}};

/* ---- fixture ---- */

static clt_device *device;
static clt_graph *graph;

static void use_rows(const clt_backend_row *rows) {
    clt_backend_more_rows = rows;
    clt_device_override(device, &(clt_settings){.backends = "-native"}); /* faster than any of these */
}

static int set_up(void **state) {
    static int folders;
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "cache%d", folders++);
    setenv("XDG_CACHE_HOME", support_path(name), 1);
    setenv("CLTRAIN_TUNE", "quick", 1);
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_graph_create(&graph));
    launches_of_slow = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    clt_backend_more_rows = NULL;
    clt_graph_destroy(graph);
    clt_device_close(device);
    return 0;
}

static clt_tensor *product(int64_t m, int64_t k, int64_t n) {
    char a[64], b[72];
    snprintf(a, sizeof a, "a%lldx%lldx%lld", (long long)m, (long long)k, (long long)n);
    snprintf(b, sizeof b, "b%s", a);
    return clt_matmul(clt_input(graph, a, CLT_F32, CLT_SHAPE(m, k)), clt_input(graph, b, CLT_F32, CLT_SHAPE(k, n)));
}

/* ---- tuning ---- */

enum { MOST = 8 };

typedef struct reports {
    clt_tuned items[MOST];
    size_t n;
    size_t stop_after, kill_after; /* 0: never */
} reports;

static bool keep_report(const clt_tuned *tuned, void *user) {
    reports *r = user;
    r->items[r->n++] = *tuned;
    if (r->n == r->kill_after) raise(SIGKILL);
    return r->n < MOST && r->n != r->stop_after;
}

static clt_status tune(clt_tensor *const *nodes, int n, double seconds, reports *r) {
    clt_problem_list list = {0};
    clt_tune_job job = {CLT_TUNE_FULL, seconds, keep_report, r};
    for (int i = 0; i < n; i++) assert_ok(clt_problems_add(&list, nodes[i], device));
    clt_status status = clt_tune_problems(device, &list, &job);
    clt_problems_free(&list);
    return status;
}

static const clt_tuning_result *result_on(const clt_tensor *node) {
    char key[CLT_TUNE_KEY];
    assert_true(clt_tune_key(node, key));
    return clt_tuning_results_find(&clt_tune_database_of(device)->measured, key);
}

static bool noted_as_failed(const clt_tensor *node, const char *row) {
    const clt_tuning_results *list = &clt_tune_database_of(device)->measured;
    char key[CLT_TUNE_KEY];
    bool noted = false;
    assert_true(clt_tune_key(node, key));
    for (size_t i = 0; i < list->n; i++)
        noted |= list->items[i].failed[0] && !strcmp(list->items[i].row, row) && !strcmp(list->items[i].problem, key);
    return noted;
}

static void the_faster_row_wins(void **state) {
    (void)state;
    reports r = {.n = 0};
    clt_tensor *node = product(96, 200, 96);
    use_rows(fast_and_slow);
    assert_string_equal(clt_backend_choose(node, device).row->name, "slow");
    assert_ok(tune(&node, 1, 60, &r));
    assert_int_equal(r.n, 1);
    assert_int_equal(r.items[0].state, CLT_TUNED_MEASURED);
    assert_string_equal(r.items[0].without.row->name, "slow");
    assert_true(strcmp(r.items[0].best.row->name, "slow") != 0); /* the reference is as fast, on some devices */
    assert_true(r.items[0].best_us > 0 && r.items[0].best_us < 0.5 * r.items[0].without_us);
    assert_ptr_equal(clt_backend_choose(node, device).row, r.items[0].best.row);
}

/* What is wrong, does not write, or does not build never wins, is noted, and is not tried again. */
static void what_fails_never_wins(void **state) {
    (void)state;
    reports r = {.n = 0}, again = {.n = 0};
    clt_tensor *node = product(96, 200, 96);
    use_rows(bad_ones);
    assert_ok(tune(&node, 1, 60, &r));
    assert_string_equal(r.items[0].best.row->name, "reference");
    assert_int_equal(r.items[0].failed, 5);
    static const char *const names[] = {"wrong", "short", "nothing", "hole", "broken"};
    for (size_t i = 0; i < CLT_COUNT_OF(names); i++) assert_true(noted_as_failed(node, names[i]));
    assert_false(noted_as_failed(node, "slow"));

    clt_tuning_results *list = &clt_tune_database_of(device)->measured;
    for (size_t i = 0; i < list->n; i++) { /* as after a kill: the tuning result is not there, but what failed is */
        if (list->items[i].failed[0]) continue;
        list->items[i] = list->items[--list->n];
        i = (size_t)-1;
    }
    assert_int_equal(remove(clt_tune_database_of(device)->path), 0);
    assert_ok(tune(&node, 1, 60, &again));
    assert_int_equal(again.items[0].state, CLT_TUNED_MEASURED);
    assert_int_equal(again.items[0].failed, 0);
    assert_string_equal(again.items[0].best.row->name, "reference");
}

/* The device that candidates are tried on is opened anew for the next problem, and is not the caller's. */
static void a_lost_trial_device_costs_one_problem_alone(void **state) {
    (void)state;
    reports r = {.n = 0};
    clt_tensor *nodes[] = {product(96, 200, 96), product(80, 200, 96), product(64, 200, 96)};
    use_rows(lost_and_slow);
    assert_ok(tune(nodes, 3, 60, &r));
    assert_int_equal(r.n, 3);
    for (size_t i = 0; i < r.n; i++) {
        assert_int_equal(r.items[i].state, CLT_TUNED_MEASURED);
        assert_true(noted_as_failed(r.items[i].problem->node, "loses"));
    }
    assert_false(clt_device_is_lost(device));
}

/* Where what the library would choose is wrong on the device, anything that is right displaces it. */
static void a_wrong_default_is_displaced(void **state) {
    (void)state;
    reports r = {.n = 0};
    clt_tensor *node = product(96, 200, 96);
    use_rows(bad_default);
    assert_ok(tune(&node, 1, 1e-9, &r));
    assert_int_equal(r.items[0].state, CLT_TUNED_NO_BUDGET);
    r.n = 0;
    assert_ok(tune(&node, 1, 60, &r));
    assert_true(r.items[0].without_us == 0 && r.items[0].failed == 1);
    assert_true(strcmp(r.items[0].best.row->name, "wrong") != 0);
    assert_string_not_equal(clt_backend_choose(node, device).row->name, "wrong");
}

static void parameters_are_searched(void **state) {
    (void)state;
    reports r = {.n = 0};
    clt_tensor *node = product(96, 400, 96);
    use_rows(with_tunables);
    clt_device_override(device, &(clt_settings){.backends = "tunable"});
    assert_ok(tune(&node, 1, 60, &r));
    assert_int_equal(r.items[0].without.parameters[0], 6);
    assert_int_equal(r.items[0].without.parameters[1], 4);
    const clt_choice *best = &r.items[0].best;
    int rounds = best->parameters[0] * best->parameters[1];
    if (rounds > 2) fail_msg("%d rounds of 1 that are enough, %.0f us", rounds, r.items[0].best_us); /* 2 is hardly more, on a busy machine */
    clt_choice now = clt_backend_choose(node, device);
    assert_memory_equal(&now, best, sizeof now);
    assert_true(result_on(node)->tried >= 3);
}

/* A row as fast as the one that serves does not displace it: only a clear gain does. */
static void no_change_without_a_clear_gain(void **state) {
    (void)state;
    static const clt_backend_row alike[] = {ROW("other", lower_fast), ROW("slow", lower_fast), {0}};
    reports r = {.n = 0};
    clt_tensor *node = product(96, 200, 96);
    use_rows(alike);
    clt_device_override(device, &(clt_settings){.backends = "slow,other"});
    assert_ok(tune(&node, 1, 60, &r));
    assert_int_equal(r.items[0].tried, 2);
    assert_string_equal(r.items[0].best.row->name, "slow");
}

/* Seconds of this process on all its processors: the tests' machine may be at other things too. */
static double busy_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void the_budget_is_kept(void **state) {
    (void)state;
    clt_tensor *nodes[3] = {product(300, 300, 300), product(310, 300, 300), product(320, 300, 300)};
    reports r = {.n = 0};
    use_rows(fast_and_slow);
    double start = busy_seconds();
    assert_ok(tune(nodes, 3, 1, &r));
    double seconds = busy_seconds() - start;
    if (seconds > 2 * clt_processor_count()) fail_msg("%.2f s for a budget of 1 s", seconds);
    assert_int_equal(r.n, 3);
    r.n = 0;
    launches_of_slow = 0;
    assert_ok(tune((clt_tensor *[]){product(64, 300, 64)}, 1, 1e-9, &r));
    assert_int_equal(r.items[0].state, CLT_TUNED_NO_BUDGET);
    assert_int_equal(launches_of_slow, 0);
}

static void results_are_not_made_twice(void **state) {
    (void)state;
    clt_tensor *nodes[2] = {product(96, 200, 96), product(64, 200, 64)};
    reports r = {.stop_after = 1}, again = {.n = 0};
    use_rows(fast_and_slow);
    assert_ok(tune(nodes, 2, 60, &r));
    assert_int_equal(r.n, 1);
    clt_device_close(device);
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(tune(nodes, 2, 60, &again));
    assert_int_equal(again.items[0].state, CLT_TUNED_KNOWN);
    assert_int_equal(again.items[1].state, CLT_TUNED_MEASURED);
    assert_string_equal(again.items[0].best.row->name, r.items[0].best.row->name);
}

/* ---- killed ---- */

static int tune_and_die(void) {
    reports r = {.kill_after = 2};
    if (clt_device_open(&device, NULL) < 0 || clt_graph_create(&graph) < 0) return 1;
    use_rows(fast_and_slow);
    clt_tensor *nodes[3] = {product(96, 200, 96), product(64, 200, 64), product(48, 200, 48)};
    return tune(nodes, 3, 60, &r) < 0;
}

static void a_tuning_that_was_killed_goes_on(void **state) {
    (void)state;
    int code;
    reports r = {.n = 0};
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_tune", "die", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
    use_rows(fast_and_slow);
    clt_tensor *nodes[3] = {product(96, 200, 96), product(64, 200, 64), product(48, 200, 48)};
    assert_ok(tune(nodes, 3, 60, &r));
    assert_int_equal(r.n, 3);
    assert_int_equal(r.items[0].state, CLT_TUNED_KNOWN);
    assert_int_equal(r.items[1].state, CLT_TUNED_KNOWN);
    assert_int_equal(r.items[2].state, CLT_TUNED_MEASURED);
}

/* ---- on first use ---- */

static void compile(clt_tune_run *run, clt_tensor *node) {
    clt_state_store *store;
    clt_plan *plan;
    assert_ok(clt_state_store_create(device, &store));
    assert_ok(clt_plan_compile(&plan, &(clt_plan_options){.device = device, .store = store, .graph = graph,
                                                          .targets = &node, .n_targets = 1, .training = true,
                                                          .run = run, .tune = clt_tune_on_first_use}));
    clt_plan_destroy(plan);
    clt_state_store_destroy(store);
}

/* CLTRAIN_BACKENDS turns automatic tuning off, so the rows are such that native ones stay behind: it alone fits. */
static bool clt_always(const clt_candidate *c) {
    (void)c;
    return true;
}

static const clt_backend_row first_use[] = {
    {.op = &clt_op_matmul, .name = "fast", .supports = clt_always, .lower = lower_fast},
    {.op = &clt_op_matmul, .name = "slow", .supports = clt_always, .lower = lower_slow},
    {0},
};

static const char *row_of(const clt_tensor *node) {
    return clt_backend_choose(node, device).row->name;
}

static void the_first_plan_of_a_run_is_tuned(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false}, second = {.begun = false};
    clt_tensor *node = product(128, 200, 128);
    clt_backend_more_rows = first_use;
    uint64_t bytes = clt_device_peak_bytes(device);
    compile(NULL, node); /* no run: nothing is tuned */
    assert_null(result_on(node));
    assert_string_equal(row_of(node), "slow");
    clt_device_override(device, &(clt_settings){.tune = "full"}); /* as much time as it takes, on a busy machine */
    compile(&run, node);
    assert_int_equal(result_on(node)->effort, CLT_TUNE_FULL);
    assert_string_not_equal(row_of(node), "slow");
    assert_int_equal(run.choices.n, 1);
    assert_string_not_equal(run.choices.items[0].row, "slow");
    /* The user's device has seen nothing of it: one product's memory. */
    assert_true(clt_device_peak_bytes(device) - bytes <= 1 << 20);
    /* The next run finds the tuning result, and measures nothing. */
    launches_of_slow = 0;
    compile(&second, node);
    assert_int_equal(launches_of_slow, 0);
    assert_string_equal(second.choices.items[0].row, run.choices.items[0].row);
    clt_tune_run_free(&run);
    clt_tune_run_free(&second);
}

/* Whatever is reached in that time: every problem has a tuning result then, and the next run finds it. */
static void quick_tuning_ends_and_is_kept(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false}, second = {.begun = false};
    clt_tensor *node = clt_matmul(product(300, 300, 310), clt_input(graph, "c", CLT_F32, CLT_SHAPE(310, 320)));
    clt_backend_more_rows = first_use;
    double start = busy_seconds();
    compile(&run, node);
    double seconds = busy_seconds() - start;
    /* A budget that is not kept at all shows; how long compilers take just now is not what is tested. */
    if (seconds > 10 * clt_processor_count()) fail_msg("quick tuning took %.2f s", seconds);
    assert_int_equal(run.choices.n, 2);
    assert_non_null(result_on(node));
    assert_non_null(result_on(node->inputs[0]));
    compile(&second, node);
    for (int i = 0; i < 2; i++) assert_string_equal(second.choices.items[i].row, run.choices.items[i].row);
    clt_tune_run_free(&run);
    clt_tune_run_free(&second);
}

static void modes_and_masks(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false};
    clt_tensor *node = product(200, 200, 200);
    clt_backend_more_rows = first_use;
    clt_device_override(device, &(clt_settings){.tune = "off"});
    compile(&run, node);
    assert_null(result_on(node));
    assert_string_equal(run.choices.items[0].row, "slow");
    clt_device_override(device, &(clt_settings){.tune = "quick"});
    clt_device_override(device, &(clt_settings){.backends = "-clfft"});
    compile(&run, node);
    assert_null(result_on(node));
    clt_device_override(device, &(clt_settings){.backends = ""});
    run.begun = true;
    compile(&run, node); /* a run that has begun */
    assert_null(result_on(node));
    clt_tune_run_free(&run);
}

/* On a CPU nothing is measured that was not asked for, and what serves is written down. */
static void nothing_is_measured_on_a_cpu_by_itself(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false};
    clt_tensor *node = product(200, 200, 200);
    if (clt_device_get_info(device)->type != CLT_DEVICE_CPU) skip();
    clt_backend_more_rows = first_use;
    clt_device_override(device, &(clt_settings){.tune = ""});
    compile(&run, node);
    assert_int_equal(result_on(node)->effort, CLT_TUNE_KEPT);
    assert_int_equal(result_on(node)->tried, 0);
    assert_string_equal(result_on(node)->row, "slow");
    assert_int_equal(launches_of_slow, 1); /* the plan's own */
    clt_tune_run_free(&run);
}

/* Nothing that is hardly any work is measured, but what serves it is written down: the next run must not choose otherwise
 * because of what was tuned in between. */
static void little_work_is_left_as_it_is(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false};
    clt_tensor *node = product(16, 16, 16);
    clt_backend_more_rows = first_use;
    compile(&run, node);
    assert_int_equal(result_on(node)->effort, CLT_TUNE_KEPT);
    assert_string_equal(result_on(node)->row, "slow");
    assert_int_equal(result_on(node)->tried, 0);
    clt_tune_run_free(&run);
}

/* What cannot be kept is not measured, for the next run would have other bits; and it is no error. */
static void without_a_place_for_results_nothing_is_tuned(void **state) {
    (void)state;
    clt_tune_run run = {.begun = false};
    clt_tensor *node = product(200, 200, 200);
    reports r = {.n = 0};
    clt_backend_more_rows = first_use;
    const char *path = clt_tune_database_of(device)->path;
    assert_int_equal(mkdir(path, 0777), 0); /* root may write anywhere, but not over a folder */
    compile(&run, node);
    assert_string_equal(run.choices.items[0].row, "slow");
    assert_string_equal(row_of(node), "slow");
    assert_int_equal(launches_of_slow, 1);
    assert_status(tune(&node, 1, 5, &r), CLT_E_IO);
    assert_int_equal(r.n, 0);
    clt_tune_run_free(&run);
    clt_device_close(device);
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* no folder can be made there */
    assert_ok(clt_device_open(&device, NULL));
    run = (clt_tune_run){.begun = false};
    compile(&run, node);
    assert_string_equal(run.choices.items[0].row, "slow");
    clt_tune_run_free(&run);
}

/* ---- the bench ---- */

/* Of a product that is too much for the reference parts are compared; the others with the first right candidate. */
static void parts_are_compared(void **state) {
    (void)state;
    clt_bench *bench;
    clt_bench_result found;
    clt_tensor *node = product(64, 50, 40);
    clt_device *trial;
    use_rows(bad_ones);
    assert_ok(clt_device_open_again(device, &trial));
    assert_ok(clt_bench_create(&bench, trial, node, 64, 4)); /* 4 rows of 64 */
    clt_choice slow = {.row = clt_backend_next(&clt_op_matmul, NULL)}, choice = slow;
    while (strcmp(slow.row->name, "slow")) slow.row = clt_backend_next(&clt_op_matmul, slow.row);
    while (strcmp(choice.row->name, "wrong")) choice.row = clt_backend_next(&clt_op_matmul, choice.row);
    assert_ok(clt_bench_run(bench, &slow, 0.01, 1e9, &found));
    assert_true(found.nmse < 1e-12 && found.us > 0);
    assert_ok(clt_bench_run(bench, &choice, 0.01, 1e9, &found));
    assert_true(found.nmse > 1e-7 && found.us == 0);
    choice.row = clt_backend_next(&clt_op_matmul, choice.row); /* short */
    assert_ok(clt_bench_run(bench, &choice, 0.01, 1e9, &found));
    assert_false(found.nmse <= CLT_BENCH_MOST_NMSE);
    choice.row = clt_backend_next(&clt_op_matmul, choice.row); /* nothing */
    assert_ok(clt_bench_run(bench, &choice, 0.01, 1e9, &found));
    assert_false(found.nmse <= CLT_BENCH_MOST_NMSE);
    choice.row = clt_backend_next(&clt_op_matmul, choice.row); /* hole: in none of the parts */
    assert_ok(clt_bench_run(bench, &choice, 0.01, 1e9, &found));
    assert_false(found.nmse <= CLT_BENCH_MOST_NMSE);
    clt_bench_destroy(bench);
    assert_status(clt_bench_create(&bench, trial, node, 1e12, 1), CLT_E_UNSUPPORTED);
    clt_device_close(trial);
}

/* The first candidate has none before it to be held against: a sum of all parts tells what no single one does. */
static void a_hole_between_the_parts_is_seen(void **state) {
    (void)state;
    clt_tensor *node = product(64, 50, 40);
    use_rows(bad_ones);
    clt_choice hole = {.row = clt_backend_next(&clt_op_matmul, NULL)};
    while (strcmp(hole.row->name, "hole")) hole.row = clt_backend_next(&clt_op_matmul, hole.row);
    for (int parts = 1; parts <= 4; parts++) {
        clt_bench *bench;
        clt_bench_result found;
        assert_ok(clt_bench_create(&bench, device, node, 64, parts));
        assert_ok(clt_bench_run(bench, &hole, 0.01, 1e9, &found));
        assert_false(found.nmse <= CLT_BENCH_MOST_NMSE);
        clt_bench_destroy(bench);
    }
}

/* Rows that are right are found right: in all directions, with parts, and in channels-last layouts. */
static void convolutions_are_compared_with_the_reference(void **state) {
    (void)state;
    clt_conv2d_attributes at = {3, 3, 1, 1, 1, 1, 1, 1, 1, {0}};
    clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(6, 18, 9, 10)), *w = clt_input(graph, "w", CLT_F32, CLT_SHAPE(20, 18, 3, 3));
    clt_tensor *y = clt_node(NULL, &clt_op_conv2d, &at, (clt_tensor *[]){x, w}, 2), *nodes[3] = {y};
    at.result = x->shape;
    nodes[1] = clt_node(NULL, &clt_op_conv2d_grad_input, &at, (clt_tensor *[]){w, y}, 2);
    at.result = w->shape;
    nodes[2] = clt_node(NULL, &clt_op_conv2d_grad_weight, &at, (clt_tensor *[]){x, y}, 2);
    assert_ok(clt_graph_status(graph));
    for (int i = 0; i < 6; i++) {
        clt_bench *bench;
        clt_bench_result found;
        clt_choice choice = clt_backend_choose(nodes[i / 2], device);
        assert_ok(clt_bench_create(&bench, device, nodes[i / 2], 12, i % 2 ? 4 : 100)); /* a third, or all */
        assert_ok(clt_bench_run(bench, &choice, 0.01, 1e9, &found));
        if (!(found.nmse < 1e-10)) fail_msg("%s: NMSE %g", nodes[i / 2]->op->name, found.nmse);
        clt_bench_destroy(bench);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_faster_row_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_fails_never_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_default_is_displaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_trial_device_costs_one_problem_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_are_searched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_change_without_a_clear_gain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_budget_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_not_made_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tuning_that_was_killed_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_plan_of_a_run_is_tuned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quick_tuning_ends_and_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_measured_on_a_cpu_by_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(modes_and_masks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(little_work_is_left_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_place_for_results_nothing_is_tuned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_are_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hole_between_the_parts_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(convolutions_are_compared_with_the_reference, set_up, tear_down),
    };
    if (argc > 1 && !strcmp(argv[1], "die")) return tune_and_die();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
