#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"

enum { BATCH = 5, WIDTH = 12, LAYERS = 24, MOST = 64 };

typedef struct fixture {
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
    clt_tensor *x;
    float data[BATCH * WIDTH];
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    clt_random random;
    assert_ok(clt_device_open(&f->device, NULL));
    assert_ok(clt_graph_create(&f->graph));
    assert_ok(clt_state_store_create(f->device, &f->store));
    f->x = clt_input(f->graph, "x", CLT_F32, CLT_SHAPE(BATCH, WIDTH));
    clt_random_init(&random, 3, 0);
    for (int i = 0; i < BATCH * WIDTH; i++) f->data[i] = (float)clt_random_normal(&random);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    clt_state_store_destroy(f->store);
    clt_graph_destroy(f->graph);
    clt_device_close(f->device);
    free(f);
    return 0;
}

static clt_plan *compile(fixture *f, clt_tensor *const *targets, int n) {
    clt_plan *plan;
    clt_plan_options options = {f->device, f->store, f->graph, targets, n, true};
    assert_ok(clt_plan_compile(&plan, &options));
    return plan;
}

/* Random graphs of ops on [BATCH, WIDTH]: with memory used again and again the last tensor has the
 * bits that it has where every tensor is a target, so that nothing is used twice. */
static void reuse_changes_nothing(void **state) {
    fixture *f = *state;
    for (uint64_t round = 0; round < 6; round++) {
        clt_random random;
        clt_tensor *all[MOST] = {f->x};
        int n = 1;
        float reused[BATCH * WIDTH], apart[BATCH * WIDTH];
        clt_random_init(&random, 11, round);
        while (n < LAYERS) {
            clt_tensor *a = all[clt_random_below(&random, (uint64_t)n)], *b = all[n - 1];
            switch (clt_random_below(&random, 6)) {
            case 0: all[n] = clt_add(a, b); break;
            case 1: all[n] = clt_tanh(clt_mul(a, b)); break;
            case 2: all[n] = clt_softmax(b, 1); break;
            case 3: all[n] = clt_sub(b, clt_max(a, (clt_reduce_options){.axes = {1}, .n_axes = 1, .keep_dims = true})); break;
            case 4: all[n] = clt_reshape(clt_permute(clt_reshape(b, CLT_SHAPE(BATCH, 3, 4)), (int[]){0, 2, 1}), CLT_SHAPE(BATCH, WIDTH)); break;
            default: all[n] = clt_mul_scalar(clt_matmul(clt_matmul_with(a, b, (clt_matmul_options){.transpose_b = true}), b), 0.1f);
            }
            n++;
        }
        clt_plan *plan = compile(f, &all[n - 1], 1);
        clt_plan_facts facts = clt_plan_get_facts(plan);
        assert_ok(clt_plan_feed(plan, f->x, f->data));
        assert_ok(clt_plan_run(plan));
        assert_ok(clt_plan_read(plan, all[n - 1], reused, sizeof reused));
        clt_plan_destroy(plan);
        assert_true(facts.planned_bytes < facts.sum_bytes);

        plan = compile(f, all + 1, n - 1);
        assert_ok(clt_plan_feed(plan, f->x, f->data));
        assert_ok(clt_plan_run(plan));
        assert_ok(clt_plan_read(plan, all[n - 1], apart, sizeof apart));
        clt_plan_destroy(plan);
        assert_memory_equal(reused, apart, sizeof apart);
    }
}

/* What a plan computes in several steps, and once: of the input by `factor`. */
static clt_tensor *make_chain(fixture *f, int64_t rows, float factor) {
    clt_tensor *once = clt_matmul(clt_fill(f->graph, CLT_SHAPE(rows, BATCH), factor), clt_fill(f->graph, CLT_SHAPE(BATCH, WIDTH), factor));
    clt_tensor *wide = clt_matmul_with(clt_fill(f->graph, CLT_SHAPE(rows, BATCH), factor), f->x, (clt_matmul_options){0});
    return clt_matmul(clt_matmul_with(clt_add(wide, once), f->x, (clt_matmul_options){.transpose_b = true}), f->x);
}

/* Plans of a device have one memory for what lives within a run; targets, and what is computed once, are theirs, whoever runs next or is gone. */
static void plans_share_memory(void **state) {
    fixture *f = *state;
    enum { ROWS = 4000, FEWER = 1000 };
    clt_tensor *targets[2] = {make_chain(f, ROWS, 0.5f), make_chain(f, FEWER, 0.25f)};
    float *wanted[2], *result = malloc(sizeof(float) * ROWS * WIDTH);
    const size_t bytes[2] = {sizeof(float) * ROWS * WIDTH, sizeof(float) * FEWER * WIDTH};
    clt_plan *plans[2];
    for (int i = 0; i < 2; i++) { /* each alone */
        wanted[i] = malloc(bytes[i]);
        clt_plan *alone = compile(f, &targets[i], 1);
        assert_int_equal(clt_plan_get_facts(alone).new_bytes, clt_plan_get_facts(alone).planned_bytes);
        assert_ok(clt_plan_feed(alone, f->x, f->data));
        assert_ok(clt_plan_run(alone));
        assert_ok(clt_plan_read(alone, targets[i], wanted[i], bytes[i]));
        clt_plan_destroy(alone);
    }
    for (int i = 0; i < 2; i++) {
        plans[i] = compile(f, &targets[i], 1);
        assert_ok(clt_plan_feed(plans[i], f->x, f->data));
    }
    clt_plan_facts second = clt_plan_get_facts(plans[1]);
    if (!clt_device_has_redzones(f->device)) assert_true(second.new_bytes + bytes[1] <= second.planned_bytes);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) assert_ok(clt_plan_run(plans[(round + i) % 2]));
        for (int i = 0; i < 2; i++) {
            assert_ok(clt_plan_read(plans[i], targets[i], result, bytes[i]));
            assert_memory_equal(result, wanted[i], bytes[i]);
        }
    }
    clt_plan_destroy(plans[0]);
    assert_ok(clt_plan_run(plans[1]));
    assert_ok(clt_plan_read(plans[1], targets[1], result, bytes[1]));
    assert_memory_equal(result, wanted[1], bytes[1]);
    clt_plan_destroy(plans[1]);
    for (int i = 0; i < 2; i++) free(wanted[i]);
    free(result);
}

/* Many feeds and runs in a row, each with its own data, while the device is still at the former ones. */
static void feeds_do_not_overtake(void **state) {
    fixture *f = *state;
    clt_tensor *sum = clt_state(f->graph, "sum", CLT_F32, CLT_SHAPE(2));
    clt_tensor *total = clt_metric_add(sum, clt_sum(f->x, CLT_ALL_AXES), 1.0f);
    clt_plan *plan = compile(f, &total, 1);
    float data[BATCH * WIDTH], result[2];
    double wanted = 0;
    for (int k = 1; k <= 200; k++) {
        for (int i = 0; i < BATCH * WIDTH; i++) data[i] = (float)(k % 17);
        wanted += BATCH * WIDTH * (k % 17);
        assert_ok(clt_plan_feed(plan, f->x, data));
        memset(data, 0x7f, sizeof data); /* what was fed belongs to the plan */
        assert_ok(clt_plan_run(plan));
    }
    assert_ok(clt_plan_read(plan, total, result, sizeof result));
    assert_true((double)result[0] == wanted); /* whole numbers below 2^24: exact */
    clt_plan_destroy(plan);
}

/* Data fed once serves all runs that follow. */
static void one_feed_serves_many_runs(void **state) {
    fixture *f = *state;
    clt_tensor *y = clt_mul_scalar(f->x, 2.0f);
    clt_plan *plan = compile(f, &y, 1);
    float result[BATCH * WIDTH];
    assert_ok(clt_plan_feed(plan, f->x, f->data));
    for (int k = 0; k < 5; k++) {
        assert_ok(clt_plan_run(plan));
        assert_ok(clt_plan_read(plan, y, result, sizeof result));
        for (int i = 0; i < BATCH * WIDTH; i++) assert_true(result[i] == 2 * f->data[i]);
    }
    clt_plan_destroy(plan);
}

static void segments_run_apart(void **state) {
    fixture *f = *state;
    clt_tensor *first = clt_state(f->graph, "first", CLT_F32, CLT_SHAPE(2)), *second = clt_state(f->graph, "second", CLT_F32, CLT_SHAPE(2));
    clt_tensor *one = clt_fill(f->graph, (clt_shape){0}, 1.0f);
    clt_tensor *targets[2] = {clt_metric_add(first, one, 1.0f)};
    clt_graph_next_segment(f->graph);
    targets[1] = clt_metric_add(second, one, 1.0f);
    clt_plan *plan = compile(f, targets, 2);
    float a[2], b[2];
    assert_ok(clt_plan_run_segments(plan, (const int[]){0, 0}, 2));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_run_segments(plan, (const int[]){1}, 1));
    assert_status(clt_plan_run_segments(plan, (const int[]){0, 2}, 2), CLT_E_INVALID);
    assert_detail("segment 2 of a plan that has 2");
    assert_ok(clt_plan_read(plan, targets[0], a, sizeof a));
    assert_ok(clt_plan_read(plan, targets[1], b, sizeof b));
    assert_true(a[0] == 3 && b[0] == 2);
    clt_plan_destroy(plan);
}

/* A gradient that nothing else owns is made in its place: packing launches nothing. */
static void packing_copies_nothing(void **state) {
    fixture *f = *state;
    clt_tensor *flat = clt_state(f->graph, "flat", CLT_F32, CLT_SHAPE(2 * CLT_PACK_ALIGN));
    clt_tensor *parts[2] = {clt_mul_scalar(f->x, 3.0f), clt_sum(f->x, CLT_ALL_AXES)};
    clt_plan *plan = compile(f, parts, 2);
    size_t without = clt_plan_get_facts(plan).launches;
    clt_plan_destroy(plan);
    clt_tensor *packed = clt_pack(flat, parts, (int64_t[]){0, CLT_PACK_ALIGN}, 2);
    plan = compile(f, &packed, 1);
    assert_int_equal(clt_plan_get_facts(plan).launches, without);
    float result[2 * CLT_PACK_ALIGN], sum = 0;
    assert_ok(clt_plan_feed(plan, f->x, f->data));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, packed, result, sizeof result));
    for (int i = 0; i < BATCH * WIDTH; i++) {
        assert_true(result[i] == 3 * f->data[i]);
        sum += f->data[i];
    }
    assert_float_equal(result[CLT_PACK_ALIGN], sum, 1e-4);
    for (int i = BATCH * WIDTH; i < CLT_PACK_ALIGN; i++) assert_true(result[i] == 0);
    clt_plan_destroy(plan);
}

static void misspelt_names_are_refused(void **state) {
    static const struct {
        clt_settings right, wrong;
        const char *option, *variable, *word;
    } all[] = {{{.backends = "-winograd"}, {.backends = "-winograt"}, "options.backends", "CLTRAIN_BACKENDS", "\"winograt\""},
               {{.passes = "-fuse,-cse"}, {.passes = "-fuse,fusion"}, "options.passes", "CLTRAIN_PASSES", "\"fusion\""}};
    fixture *f = *state;
    clt_plan *plan;
    clt_tensor *y = clt_neg(f->x);
    for (size_t i = 0; i < CLT_COUNT_OF(all); i++) {
        clt_plan_options options = {f->device, f->store, f->graph, &y, 1, true, NULL};
        clt_settings own = clt_device_override(f->device, &all[i].right);
        assert_ok(clt_plan_compile(&plan, &options));
        clt_plan_destroy(plan);
        clt_device_override(f->device, &all[i].wrong);
        assert_status(clt_plan_compile(&plan, &options), CLT_E_INVALID);
        assert_detail(all[i].variable);
        assert_detail(all[i].word);
        clt_device_override(f->device, &own);
        options.backends = all[i].wrong.backends;
        options.passes = all[i].wrong.passes;
        assert_status(clt_plan_compile(&plan, &options), CLT_E_INVALID);
        assert_detail(all[i].option);
        assert_detail(all[i].word);
    }
    clt_plan_options plain = {f->device, f->store, f->graph, &y, 1, true, NULL};
    assert_ok(clt_plan_compile(&plan, &plain)); /* the device's settings are its own again */
    clt_plan_destroy(plan);
}

static void errors_of_the_graph_come_back(void **state) {
    fixture *f = *state;
    clt_plan *plan;
    clt_tensor *bad = clt_matmul(f->x, f->x);
    clt_plan_options options = {f->device, f->store, f->graph, &bad, 1, true, NULL};
    assert_status(clt_plan_compile(&plan, &options), CLT_E_SHAPE);
    assert_detail("matmul");
    assert_detail("[5, 12]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reuse_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plans_share_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(feeds_do_not_overtake, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_feed_serves_many_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(segments_run_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(packing_copies_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(misspelt_names_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_of_the_graph_come_back, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
