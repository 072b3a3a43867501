/* Which elements dropout keeps, for any seed and step: those of Random123's own Philox. */
#include "tests/ops/harness.h"

#include "runtime/ops/ops.h"

#include <math.h>
#include <stdlib.h>

#include <Random123/philox.h>

static bool kept(int64_t i, uint64_t seed, uint64_t step, float p) {
    philox4x32_ctr_t counter = {{(uint32_t)(i / 4), 0, (uint32_t)step, (uint32_t)(step >> 32)}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox4x32_R(10, counter, key).v[i % 4] >= (uint32_t)((double)p * 4294967296.0);
}

static void check_mask(clt_plan *plan, const clt_tensor *y, const clt_tensor *rng, uint64_t seed, uint64_t step, float p) {
    uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)step, (uint32_t)(step >> 32)};
    int64_t n = clt_tensor_elements(y);
    float *got = malloc((size_t)n * sizeof *got);
    assert_non_null(got);
    assert_ok(clt_plan_set(plan, rng, words, sizeof words));
    assert_ok(clt_plan_run(plan));
    assert_ok(clt_plan_read(plan, y, got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++) {
        double want = kept(i, seed, step, p) ? 1 / (1 - (double)p) : 0;
        if (fabs(got[i] - want) <= 1e-6 * want) continue;
        fail_msg("p %g, seed %llx, step %llx: element %lld is %g, wanted %g", (double)p, (unsigned long long)seed,
                 (unsigned long long)step, (long long)i, (double)got[i], want);
    }
    free(got);
}

static void mask_is_philox(void **state) {
    (void)state;
    static const float ps[] = {0, 0.1f, 0.5f, 0.9f, 0.999f};
    static const uint64_t seeds[] = {0, 1, 0xfedcba9876543210u}, steps[] = {0, 3, 0x8000000100000002u};
    enum { N = 3 * 5 * 67 };
    float ones[N];
    for (int i = 0; i < N; i++) ones[i] = 1;
    for (size_t k = 0; k < CLT_COUNT_OF(ps); k++) {
        clt_graph *graph;
        clt_state_store *store;
        assert_ok(clt_graph_create(&graph));
        clt_tensor *x = clt_input(graph, "x", CLT_F32, CLT_SHAPE(3, 5, 67)), *y = clt_dropout(x, ps[k]);
        clt_plan *plan = op_compile(graph, &y, 1, true, &store);
        assert_ok(clt_plan_feed(plan, x, ones));
        for (int s = 0; s < 3; s++)
            for (int t = 0; t < 3; t++) check_mask(plan, y, graph->rng, seeds[s], steps[t], ps[k]);
        clt_plan_destroy(plan);
        clt_state_store_destroy(store);
        clt_graph_destroy(graph);
    }
}

OP_MAIN("dropout", cmocka_unit_test(mask_is_philox))
