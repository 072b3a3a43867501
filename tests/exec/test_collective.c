/* Collectives inside plans, between ranks that are threads with a device each. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/thread.h"
#include "runtime/exec/plan.h"
#include "runtime/ops/ops.h"
#include "comm/local/local.h"

enum { RANKS = 3, MOST = 64 * 1024 };

/* One rank's device, graph and plan. */
typedef struct rank {
    clt_comm *comm;
    int index;
    clt_device *device;
    clt_graph *graph;
    clt_state_store *store;
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
                                .comms = {[CLT_AMONG_RANKS] = r->comm},
                                .all_or_nothing = all_or_nothing};
    return clt_plan_compile(&r->plan, &options);
}

static clt_status open_and_run(rank *r) {
    CLT_TRY(clt_device_open(&r->device, NULL));
    CLT_TRY(clt_graph_create(&r->graph));
    CLT_TRY(clt_state_store_create(r->device, &r->store));
    return r->run(r);
}

static void *run_rank(void *argument) {
    rank *r = argument;
    r->status = open_and_run(r);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_plan_destroy(r->plan);
    clt_state_store_destroy(r->store);
    clt_graph_destroy(r->graph);
    clt_device_close(r->device);
    return NULL;
}

static rank *run_ranks(clt_status (*run)(rank *)) {
    clt_comm *comms[RANKS];
    clt_thread threads[RANKS];
    rank *ranks = calloc(RANKS, sizeof *ranks);
    assert_ok(clt_comm_create_local(comms, RANKS, 30));
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

/* ---- each collective, with kernels before and after it, many times over ---- */

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
        CLT_TRY(clt_plan_run(r->plan));
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
    CLT_TRY(clt_plan_run(r->plan));
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
    clt_tensor *part = clt_accumulate(clt_shard_of(state, r->index, RANKS), sum, keep);
    clt_tensor *all = clt_all_gather_in_place(state, part, r->index, RANKS);
    CLT_TRY(compile(r, &all, 1, false));
    for (int i = 0; i < RANKS * PART; i++) r->result[i] = (float)(i % 500 + r->index);
    CLT_TRY(clt_plan_feed(r->plan, x, r->result));
    CLT_TRY(clt_plan_run(r->plan));
    CLT_TRY(clt_plan_run(r->plan));
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

/* Collectives of what a collective gave: at once, and behind a kernel that has nothing to do with them. */
static clt_status reduce_the_reduced(rank *r) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(5));
    clt_tensor *y = clt_all_reduce(clt_all_reduce(clt_add_scalar(x, 1), CLT_REDUCE_SUM), CLT_REDUCE_SUM);
    clt_tensor *other = clt_softmax(x, 0);
    clt_tensor *z = clt_mul_scalar(clt_all_reduce(y, CLT_REDUCE_SUM), 1);
    CLT_TRY(compile(r, (clt_tensor *[]){z, other}, 2, false));
    CLT_TRY(clt_plan_feed(r->plan, x, (float[]){0, 1, 2, 3, 4}));
    CLT_TRY(clt_plan_run(r->plan));
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

/* ---- batch norm over the images of all ranks ---- */

enum { CHANNELS = 4, SIDE = 5, IMAGE = CHANNELS * SIDE * SIDE, IMAGES = 9 };
static const int images_of[RANKS] = {0, 3, 6};

/* Two layers, one after the other, of `plan_images` images from `first` on: y of the second and the gradients of
 * sum(w y). A rank without images runs one that counts for nothing. */
static clt_status normalize(rank *r, int first, int plan_images, int count) {
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(plan_images, CHANNELS, SIDE, SIDE));
    clt_tensor *w = clt_input(r->graph, "w", CLT_F32, CLT_SHAPE(plan_images, CHANNELS, SIDE, SIDE));
    clt_tensor *y = clt_batch_norm(clt_relu(clt_batch_norm(x, "a")), "b");
    clt_tensor *loss = clt_sum(clt_mul(y, w), CLT_ALL_AXES);
    clt_tensor *gamma = NULL, *dx[2];
    for (size_t i = 0; i < r->graph->n_nodes; i++)
        if (r->graph->nodes[i]->kind == CLT_NODE_VARIABLE && !strcmp(r->graph->nodes[i]->name, "a.weight"))
            gamma = r->graph->nodes[i];
    if (r->comm) {
        clt_tensor *own = clt_state(r->graph, "images", CLT_F32, CLT_SHAPE(1));
        clt_tensor *images = clt_all_gather(own, r->index, RANKS);
        CLT_TRY(clt_batch_norms_synchronize(r->graph, images, r->index, RANKS));
        clt_memory *memory;
        float value = (float)count;
        CLT_TRY(clt_state_store_get(r->store, "images", sizeof value, &memory));
        CLT_TRY(clt_memory_write(memory, 0, &value, sizeof value));
    }
    CLT_TRY(clt_gradients(loss, clt_fill(r->graph, (clt_shape){0}, 1.0f), (clt_tensor *[]){x, gamma}, 2, dx));
    clt_tensor *mean = clt_mul_scalar(y, 1);
    if (r->comm) dx[1] = clt_all_reduce(dx[1], CLT_REDUCE_SUM);
    CLT_TRY(compile(r, (clt_tensor *[]){mean, dx[0], dx[1]}, 3, false));
    float data[2][IMAGES * IMAGE];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < plan_images * IMAGE; i++) {
            int at = i + first * IMAGE;
            data[k][i] = count ? (float)((at * (37 + 11 * k)) % 101) / 10 + (float)(at / IMAGE) : 0;
        }
    for (size_t v = 0; v < r->graph->n_variables; v++) {
        clt_memory *memory;
        float ones[CHANNELS] = {1, 1.5f, 2, 0.5f}; /* of running statistics and biases too: any will do */
        CLT_TRY(clt_state_store_variable(r->store, r->graph->variables[v], &memory));
        CLT_TRY(clt_memory_write(memory, 0, ones, sizeof ones));
    }
    CLT_TRY(clt_plan_feed(r->plan, x, data[0]));
    CLT_TRY(clt_plan_feed(r->plan, w, data[1]));
    CLT_TRY(clt_plan_run(r->plan));
    size_t bytes = (size_t)plan_images * IMAGE * sizeof(float);
    float *result = r->result;
    CLT_TRY(clt_plan_read(r->plan, mean, result + first * IMAGE, bytes));
    CLT_TRY(clt_plan_read(r->plan, dx[0], result + (IMAGES + first) * IMAGE, bytes));
    CLT_TRY(clt_plan_read(r->plan, dx[1], result + 2 * IMAGES * IMAGE, CHANNELS * sizeof(float)));
    for (size_t v = 0; v < r->graph->n_variables; v++) { /* running statistics among them */
        clt_memory *memory;
        CLT_TRY(clt_state_store_variable(r->store, r->graph->variables[v], &memory));
        CLT_TRY(clt_memory_read(memory, 0, result + (2 * IMAGES + 1 + v) * IMAGE, CHANNELS * sizeof(float)));
    }
    return CLT_OK;
}

static clt_status normalize_part(rank *r) {
    int first = 0, count = images_of[r->index];
    for (int i = 0; i < r->index; i++) first += images_of[i];
    return normalize(r, first, count ? count : 1, count);
}

static clt_status normalize_all(rank *r) {
    r->comm = NULL;
    return normalize(r, 0, IMAGES, IMAGES);
}

static void assert_close(const float *a, const float *b, int n, const char *what) {
    for (int i = 0; i < n; i++) {
        float difference = a[i] - b[i], size = a[i] * a[i] + 1e-2f;
        if (difference * difference <= 1e-9f * size) continue;
        print_error("%s, %d: %g, not %g\n", what, i, (double)b[i], (double)a[i]);
        fail();
    }
}

static void batch_norm_knows_all_images(void **state) {
    (void)state;
    rank *alone = run_ranks(normalize_all), *parts = run_ranks(normalize_part);
    assert_all_ok(alone);
    assert_all_ok(parts);
    for (int r = 0, first = 0; r < RANKS; first += images_of[r++]) {
        const float *all = alone[0].result, *own = parts[r].result;
        int at = first * IMAGE, n = images_of[r] * IMAGE;
        assert_close(all + at, own + at, n, "y");
        assert_close(all + IMAGES * IMAGE + at, own + IMAGES * IMAGE + at, n, "dx");
        assert_close(all + 2 * IMAGES * IMAGE, own + 2 * IMAGES * IMAGE, CHANNELS, "dweight");
        for (int v = 0; v < 8; v++)
            assert_close(all + (2 * IMAGES + 1 + v) * IMAGE, own + (2 * IMAGES + 1 + v) * IMAGE, CHANNELS, "running");
    }
    free(alone);
    free(parts);
}

/* ---- failure ---- */

/* Two buckets that update a state each. Rank 1 leaves after the first collective of the second run. */
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
    CLT_TRY(clt_plan_run(r->plan));
    if (r->index == 1) {
        CLT_TRY(clt_comm_all_reduce(r->comm, r->result, 300, CLT_F32, CLT_REDUCE_SUM, NULL));
        clt_comm_abort(r->comm, "enough of it");
        return CLT_OK;
    }
    clt_status status = clt_plan_run(r->plan);
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
        cmocka_unit_test(batch_norm_knows_all_images),
        cmocka_unit_test(a_failed_run_changes_nothing),
        cmocka_unit_test(needs_a_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
