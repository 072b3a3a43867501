/* Dropout: which elements fall, when they fall again, and what becomes of the rest. */
#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <Random123/philox.h>

/* A graph with dropouts of x, one after another: y[k] is site k's, dx the gradient through all. */
typedef struct fixture {
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan;
    clt_tensor *x, *seed, *y[2], *dx;
    int64_t count;
    int sites;
} fixture;

static void open_fixture(fixture *f, clt_shape shape, const float *p, int sites, bool training) {
    *f = (fixture){.count = clt_shape_elements(&shape), .sites = sites};
    assert_ok(clt_graph_create(&f->graph));
    clt_tensor *last = f->x = clt_input(f->graph, "x", CLT_F32, shape);
    f->seed = clt_input(f->graph, "seed", CLT_F32, shape);
    for (int k = 0; k < sites; k++) last = f->y[k] = clt_dropout(last, p[k]);
    assert_ok(clt_graph_status(f->graph));
    assert_ok(clt_gradients(last, f->seed, &f->x, 1, &f->dx));
    clt_tensor *targets[3] = {f->dx, f->y[0], f->y[sites - 1]};
    assert_ok(clt_store_create(op_device(), &f->store));
    assert_ok(clt_plan_compile(&f->plan, &(clt_plan_options){.device = op_device(),
                                                             .store = f->store,
                                                             .graph = f->graph,
                                                             .targets = targets,
                                                             .n_targets = 3,
                                                             .training = training}));
}

static void close_fixture(fixture *f) {
    clt_plan_destroy(f->plan);
    clt_store_destroy(f->store);
    clt_graph_destroy(f->graph);
}

static float *new_values(const fixture *f) {
    float *values = malloc((size_t)f->count * sizeof *values);
    assert_non_null(values);
    return values;
}

static void feed_ones(fixture *f) {
    float *ones = new_values(f);
    for (int64_t i = 0; i < f->count; i++) ones[i] = 1;
    assert_ok(clt_plan_feed(f->plan, f->x, ones));
    assert_ok(clt_plan_feed(f->plan, f->seed, ones));
    free(ones);
}

static void run(fixture *f, uint64_t seed, uint64_t step) {
    uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)step, (uint32_t)(step >> 32)};
    assert_ok(clt_plan_set(f->plan, f->graph->rng, words, sizeof words));
    assert_ok(clt_plan_run(f->plan, CLT_PLAN_ALL));
}

static float *read_values(fixture *f, const clt_tensor *tensor) {
    float *values = new_values(f);
    assert_ok(clt_plan_read(f->plan, tensor, values, (size_t)f->count * sizeof *values));
    return values;
}

static float *ones_after(fixture *f, uint64_t seed, uint64_t step) {
    run(f, seed, step);
    return read_values(f, f->y[0]);
}

/* ---- the mask, from Random123's own code ---- */

static bool kept(int64_t i, int site, uint64_t seed, uint64_t step, float p) {
    philox4x32_ctr_t counter = {{(uint32_t)(i / 4), (uint32_t)site, (uint32_t)step, (uint32_t)(step >> 32)}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox4x32_R(10, counter, key).v[i % 4] >= (uint32_t)((double)p * 4294967296.0);
}

static void assert_mask(const float *y, const fixture *f, int site, uint64_t seed, uint64_t step, float p) {
    for (int64_t i = 0; i < f->count; i++) {
        double want = kept(i, site, seed, step, p) ? 1 / (1 - (double)p) : 0;
        if (fabs(y[i] - want) <= 1e-6 * want) continue;
        fail_msg("p %g, seed %llx, step %llx: element %lld is %g, wanted %g", (double)p, (unsigned long long)seed,
                 (unsigned long long)step, (long long)i, (double)y[i], want);
    }
}

static void mask_is_philox(void **state) {
    (void)state;
    static const float ps[] = {0, 0.1f, 0.5f, 0.9f, 0.999f};
    static const uint64_t seeds[] = {0, 1, 0xfedcba9876543210u}, steps[] = {0, 3, 0x8000000100000002u};
    for (size_t k = 0; k < CLT_COUNT_OF(ps); k++) {
        fixture f;
        open_fixture(&f, CLT_SHAPE(3, 5, 67), &ps[k], 1, true);
        feed_ones(&f);
        for (int s = 0; s < 3; s++) {
            float *y = ones_after(&f, seeds[s], steps[s]);
            assert_mask(y, &f, 0, seeds[s], steps[s], ps[k]);
            free(y);
        }
        close_fixture(&f);
    }
}

/* Sizes that no vector of 4 divides. */
static void small_and_odd_sizes(void **state) {
    (void)state;
    const float p = 0.5f;
    for (int64_t n = 1; n <= 9; n++) {
        fixture f;
        open_fixture(&f, CLT_SHAPE(n), &p, 1, true);
        feed_ones(&f);
        float *y = ones_after(&f, 42, 7);
        assert_mask(y, &f, 0, 42, 7, p);
        free(y);
        close_fixture(&f);
    }
}

static void share_of_zeros(void **state) {
    (void)state;
    static const float ps[] = {0.1f, 0.5f, 0.8f};
    for (size_t k = 0; k < CLT_COUNT_OF(ps); k++) {
        fixture f;
        open_fixture(&f, CLT_SHAPE(100003), &ps[k], 1, true);
        feed_ones(&f);
        float *y = ones_after(&f, 5, 1);
        double zeros = 0, n = (double)f.count, p = ps[k];
        for (int64_t i = 0; i < f.count; i++) zeros += y[i] == 0;
        assert_true(fabs(zeros - n * p) < 4 * sqrt(n * p * (1 - p)));
        free(y);
        close_fixture(&f);
    }
}

/* ---- steps, seeds, sites ---- */

static int64_t differing(const fixture *f, const float *a, const float *b) {
    int64_t n = 0;
    for (int64_t i = 0; i < f->count; i++) n += a[i] != b[i];
    return n;
}

static void steps_and_seeds_differ(void **state) {
    (void)state;
    const float p = 0.5f;
    fixture f;
    open_fixture(&f, CLT_SHAPE(1001), &p, 1, true);
    feed_ones(&f);
    float *first = ones_after(&f, 9, 1), *next = ones_after(&f, 9, 2);
    float *other = ones_after(&f, 10, 1), *again = ones_after(&f, 9, 1);
    assert_int_equal(differing(&f, first, again), 0);
    assert_true(differing(&f, first, next) > 300);
    assert_true(differing(&f, first, other) > 300);
    free(first), free(next), free(other), free(again);
    close_fixture(&f);
}

/* Two in a row: the second has its own mask, and the gradient passes both. */
static void sites_differ(void **state) {
    (void)state;
    const float p[] = {0.25f, 0.5f};
    fixture f;
    open_fixture(&f, CLT_SHAPE(7, 143), p, 2, true);
    feed_ones(&f);
    run(&f, 77, 5);
    float *first = read_values(&f, f.y[0]), *both = read_values(&f, f.y[1]), *dx = read_values(&f, f.dx);
    assert_mask(first, &f, 0, 77, 5, p[0]);
    for (int64_t i = 0; i < f.count; i++) {
        bool stays = kept(i, 0, 77, 5, p[0]) && kept(i, 1, 77, 5, p[1]);
        double want = stays ? 1 / 0.75 / 0.5 : 0;
        assert_true(fabs(both[i] - want) <= 1e-6 * want);
        assert_true(fabs(dx[i] - want) <= 1e-6 * want);
    }
    free(first), free(both), free(dx);
    close_fixture(&f);
}

/* ---- values ---- */

static void values_are_scaled_and_gradients_masked(void **state) {
    (void)state;
    const float p = 0.3f;
    fixture f;
    open_fixture(&f, CLT_SHAPE(13, 79), &p, 1, true);
    float *x = new_values(&f), *seed = new_values(&f);
    random_stream random = {3};
    for (int64_t i = 0; i < f.count; i++) {
        x[i] = (float)(random_uniform(&random) - 0.5);
        seed[i] = (float)(random_uniform(&random) - 0.5);
    }
    assert_ok(clt_plan_feed(f.plan, f.x, x));
    assert_ok(clt_plan_feed(f.plan, f.seed, seed));
    run(&f, 8, 4);
    float *y = read_values(&f, f.y[0]), *dx = read_values(&f, f.dx);
    for (int64_t i = 0; i < f.count; i++) {
        double scale = kept(i, 0, 8, 4, p) ? 1 / (1 - (double)p) : 0;
        assert_true(fabs(y[i] - x[i] * scale) < 1e-6);
        assert_true(fabs(dx[i] - seed[i] * scale) < 1e-6);
    }
    free(x), free(seed), free(y), free(dx);
    close_fixture(&f);
}

static void evaluation_is_the_identity(void **state) {
    (void)state;
    const float p = 0.9f;
    fixture f;
    open_fixture(&f, CLT_SHAPE(37), &p, 1, false);
    float *x = new_values(&f);
    for (int64_t i = 0; i < f.count; i++) x[i] = (float)i - 11.25f;
    assert_ok(clt_plan_feed(f.plan, f.x, x));
    assert_ok(clt_plan_feed(f.plan, f.seed, x));
    assert_ok(clt_plan_run(f.plan, CLT_PLAN_ALL));
    float *y = read_values(&f, f.y[0]);
    assert_memory_equal(x, y, (size_t)f.count * sizeof *x);
    free(x), free(y);
    close_fixture(&f);
}

static void probability_is_checked(void **state) {
    (void)state;
    const float bad[] = {-0.1f, 1, 1.5f, NAN};
    for (size_t i = 0; i < CLT_COUNT_OF(bad); i++) {
        clt_graph *graph;
        assert_ok(clt_graph_create(&graph));
        clt_dropout(clt_input(graph, "x", CLT_F32, CLT_SHAPE(3)), bad[i]);
        assert_status(clt_graph_status(graph), CLT_E_INVALID);
        assert_detail("dropout");
        clt_graph_destroy(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_is_philox),
        cmocka_unit_test(small_and_odd_sizes),
        cmocka_unit_test(share_of_zeros),
        cmocka_unit_test(steps_and_seeds_differ),
        cmocka_unit_test(sites_differ),
        cmocka_unit_test(values_are_scaled_and_gradients_masked),
        cmocka_unit_test(evaluation_is_the_identity),
        cmocka_unit_test(probability_is_checked),
    };
    return op_main("dropout", NULL, 0, tests, CLT_COUNT_OF(tests));
}
