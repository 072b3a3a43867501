/* Exchanges inside plans, between ranks that are threads with a device each. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/thread.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"
#include "tests/comm/threads.h"

enum { RANKS = 3, MOST = 64 * 1024 };

/* One rank's device, graph and plan. */
typedef struct rank {
    clt_comm *comm;
    int index;
    clt_device *device;
    clt_graph *graph;
    clt_store *store;
    clt_plan *plan;
    clt_status (*run)(struct rank *rank);
    clt_status status;
    char detail[512];
    float result[RANKS * MOST];
} rank;

static clt_status compile(rank *r, clt_tensor *const *targets, int n, bool all_or_nothing) {
    clt_plan_options options = {.device = r->device,
                                .store = r->store,
                                .graph = r->graph,
                                .targets = targets,
                                .n_targets = n,
                                .training = true,
                                .comm = r->comm,
                                .all_or_nothing = all_or_nothing};
    return clt_plan_compile(&r->plan, &options);
}

static clt_status open_and_run(rank *r) {
    CLT_TRY(clt_device_open(&r->device, NULL));
    CLT_TRY(clt_graph_create(&r->graph));
    CLT_TRY(clt_store_create(r->device, &r->store));
    return r->run(r);
}

static void *run_rank(void *argument) {
    rank *r = argument;
    r->status = open_and_run(r);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_plan_destroy(r->plan);
    clt_store_destroy(r->store);
    clt_graph_destroy(r->graph);
    clt_device_close(r->device);
    return NULL;
}

static rank *run_ranks(clt_status (*run)(rank *)) {
    clt_comm *comms[RANKS];
    clt_thread threads[RANKS];
    rank *ranks = calloc(RANKS, sizeof *ranks);
    assert_ok(clt_test_group(comms, RANKS, 30));
    for (int i = 0; i < RANKS; i++) {
        ranks[i].comm = comms[i];
        ranks[i].index = i;
        ranks[i].run = run;
        assert_ok(clt_thread_start(&threads[i], run_rank, &ranks[i]));
    }
    for (int i = 0; i < RANKS; i++) clt_thread_join(threads[i]);
    for (int i = 0; i < RANKS; i++) clt_comm_destroy(comms[i]);
    return ranks;
}

static void assert_all_ok(rank *ranks) {
    for (int i = 0; i < RANKS; i++) {
        if (ranks[i].status < 0) print_error("rank %d: %s\n", i, ranks[i].detail);
        assert_int_equal(ranks[i].status, CLT_OK);
    }
}

/* ---- each exchange, with kernels before and after it, many times over ---- */

/* y = 2 all_reduce(x + 1), of a size that is mapped and one that is copied, in two chains that overlap. */
static clt_status reduce_twice(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(MOST)), *y[2];
    clt_tensor *few = clt_slice(x, 0, 0, 77, 1);
    y[0] = clt_mul_scalar(clt_all_reduce(clt_add_scalar(x, 1), CLT_REDUCE_SUM), 2);
    y[1] = clt_mul_scalar(clt_all_reduce(clt_add_scalar(few, 1), CLT_REDUCE_MAX), 2);
    CLT_TRY(compile(r, y, 2, false));
    float *data = r->result;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MOST; i++) data[i] = (float)(i % 1000 + r->index + round);
        CLT_TRY(clt_plan_feed(r->plan, x, data));
        CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
        CLT_TRY(clt_plan_read(r->plan, y[0], data, MOST * sizeof *data));
        for (int i = 0; i < MOST; i++)
            if (data[i] != 2.0f * (float)(3 * (i % 1000 + 1 + round) + 3)) return clt_fail(CLT_E_INVALID, "sum, %d", i);
        CLT_TRY(clt_plan_read(r->plan, y[1], data, 77 * sizeof *data));
        for (int i = 0; i < 77; i++)
            if (data[i] != 2.0f * (float)(i + RANKS + round)) return clt_fail(CLT_E_INVALID, "max, %d: %g", i, (double)data[i]);
    }
    return CLT_OK;
}

static void results_of_reductions_reach_kernels(void **state) {
    (void)state;
    rank *ranks = run_ranks(reduce_twice);
    assert_all_ok(ranks);
    free(ranks);
}

static clt_status gather(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(1001));
    clt_tensor *y = clt_add_scalar(clt_all_gather(clt_mul_scalar(x, 3), r->index, RANKS), 1);
    CLT_TRY(compile(r, &y, 1, false));
    for (int i = 0; i < 1001; i++) r->result[i] = (float)(10000 * r->index + i);
    CLT_TRY(clt_plan_feed(r->plan, x, r->result));
    CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
    return clt_plan_read(r->plan, y, r->result, RANKS * 1001 * sizeof(float));
}

static void gathers_in_the_order_of_ranks(void **state) {
    (void)state;
    rank *ranks = run_ranks(gather);
    assert_all_ok(ranks);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < RANKS * 1001; i++)
            assert_true(ranks[r].result[i] == 3.0f * (float)(10000 * (i / 1001) + i % 1001) + 1);
    free(ranks);
}

/* As a sharded optimizer does: the sum of the own part updates the own part of a state, which all then have. */
static clt_status scatter_and_gather(rank *r) {
    enum { PART = 20 * CLT_PACK_ALIGN };
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(RANKS * PART));
    clt_tensor *state = clt_state(r->graph, "state", CLT_F32, CLT_SHAPE(RANKS * PART));
    clt_tensor *keep = clt_fill(r->graph, CLT_SHAPE(CLT_HYPER_COUNT), 1.0f);
    clt_tensor *sum = clt_reduce_scatter(clt_mul_scalar(x, 2), r->index, RANKS);
    clt_tensor *part = clt_accumulate(clt_part_of(state, r->index, RANKS), sum, keep);
    clt_tensor *all = clt_all_gather_in_place(state, part, r->index, RANKS);
    CLT_TRY(compile(r, &all, 1, false));
    for (int i = 0; i < RANKS * PART; i++) r->result[i] = (float)(i % 500 + r->index);
    CLT_TRY(clt_plan_feed(r->plan, x, r->result));
    CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
    CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
    CLT_TRY(clt_plan_read(r->plan, all, r->result, RANKS * PART * sizeof(float)));
    for (int i = 0; i < RANKS * PART; i++)
        if (r->result[i] != 2 * 2.0f * (float)(3 * (i % 500) + 3)) return clt_fail(CLT_E_INVALID, "%d", i);
    return CLT_OK;
}

static void parts_are_updated_and_shared(void **state) {
    (void)state;
    rank *ranks = run_ranks(scatter_and_gather);
    assert_all_ok(ranks);
    free(ranks);
}

/* Exchanges of what an exchange gave: at once, and behind a kernel that has nothing to do with them. */
static clt_status reduce_the_reduced(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(5));
    clt_tensor *y = clt_all_reduce(clt_all_reduce(clt_add_scalar(x, 1), CLT_REDUCE_SUM), CLT_REDUCE_SUM);
    clt_tensor *other = clt_softmax(x, 0);
    clt_tensor *z = clt_mul_scalar(clt_all_reduce(y, CLT_REDUCE_SUM), 1);
    CLT_TRY(compile(r, (clt_tensor *[]){z, other}, 2, false));
    CLT_TRY(clt_plan_feed(r->plan, x, (float[]){0, 1, 2, 3, 4}));
    CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
    return clt_plan_read(r->plan, z, r->result, 5 * sizeof(float));
}

static void exchanges_follow_each_other(void **state) {
    (void)state;
    rank *ranks = run_ranks(reduce_the_reduced);
    assert_all_ok(ranks);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 5; i++) assert_true(ranks[r].result[i] == (float)(RANKS * RANKS * RANKS * (i + 1)));
    free(ranks);
}

/* ---- failure ---- */

/* Two buckets that update a state each. Rank 1 leaves after the first exchange of the second run. */
static clt_status fail_between(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(300));
    clt_tensor *keep = clt_fill(r->graph, CLT_SHAPE(CLT_HYPER_COUNT), 1.0f), *y[2];
    clt_tensor *sums[2] = {clt_all_reduce(clt_mul_scalar(x, 1), CLT_REDUCE_SUM),
                           clt_all_reduce(clt_mul_scalar(x, 2), CLT_REDUCE_SUM)};
    for (int i = 0; i < 2; i++)
        y[i] = clt_accumulate(clt_state(r->graph, i ? "b" : "a", CLT_F32, CLT_SHAPE(300)), sums[i], keep);
    CLT_TRY(compile(r, y, 2, true));
    for (int i = 0; i < 300; i++) r->result[i] = 1;
    CLT_TRY(clt_plan_feed(r->plan, x, r->result));
    CLT_TRY(clt_plan_run(r->plan, CLT_PLAN_ALL));
    if (r->index == 1) {
        CLT_TRY(clt_comm_all_reduce(r->comm, r->result, 300, CLT_F32, CLT_REDUCE_SUM, NULL));
        clt_comm_abort(r->comm, "enough of it");
        return CLT_OK;
    }
    clt_status status = clt_plan_run(r->plan, CLT_PLAN_ALL);
    char detail[512];
    snprintf(detail, sizeof detail, "%s", clt_error_detail());
    for (int i = 0; i < 2; i++) CLT_TRY(clt_plan_read(r->plan, y[i], r->result + 300 * i, 300 * sizeof(float)));
    return clt_fail_again(status, detail);
}

static void a_failed_run_changes_nothing(void **state) {
    (void)state;
    rank *ranks = run_ranks(fail_between);
    assert_int_equal(ranks[1].status, CLT_OK);
    for (int r = 0; r < RANKS; r += 2) {
        assert_true(ranks[r].status == CLT_E_ABORTED || ranks[r].status == CLT_E_PEER);
        assert_non_null(strstr(ranks[r].detail, "enough of it"));
        for (int i = 0; i < 600; i++) assert_true(ranks[r].result[i] == (float)(RANKS * (1 + i / 300)));
    }
    free(ranks);
}

/* A rank that cannot go on by itself does not leave the others waiting. */
static clt_status fail_alone(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(300));
    clt_tensor *y = clt_mul_scalar(clt_all_reduce(clt_mul_scalar(x, 1), CLT_REDUCE_SUM), 1);
    clt_plan_options options = {.device = r->device, .store = r->store, .graph = r->graph, .targets = &y, .n_targets = 1};
    if (r->index == 2) return clt_plan_compile(&r->plan, &options);
    return CLT_OK;
}

static void needs_a_communicator(void **state) {
    (void)state;
    rank *ranks = run_ranks(fail_alone);
    assert_int_equal(ranks[2].status, CLT_E_INVALID);
    assert_non_null(strstr(ranks[2].detail, "all_reduce"));
    free(ranks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_reductions_reach_kernels),
        cmocka_unit_test(gathers_in_the_order_of_ranks),
        cmocka_unit_test(parts_are_updated_and_shared),
        cmocka_unit_test(exchanges_follow_each_other),
        cmocka_unit_test(a_failed_run_changes_nothing),
        cmocka_unit_test(needs_a_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
