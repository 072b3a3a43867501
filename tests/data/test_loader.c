#include "tests/data/files.h"

#include <math.h>
#include <cltrain/data.h>

enum { N = 103, ELEMENTS = 3 };

/* Sample i: x = (i, i + 0.5, -i), label i. */
static clt_dataset *numbered(void) {
    static float x[N][ELEMENTS];
    static int32_t y[N];
    for (int i = 0; i < N; i++)
        x[i][0] = (float)i, x[i][1] = (float)i + 0.5f, x[i][2] = (float)-i, y[i] = i;
    clt_array fields[] = {{CLT_F32, CLT_SHAPE(N, ELEMENTS), x}, {CLT_I32, CLT_SHAPE(N), y}};
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_from_arrays(&d, fields, 2));
    return d;
}

static clt_loader *load(const clt_dataset *d, clt_loader_options options) {
    clt_loader *loader = NULL;
    assert_ok(clt_loader_create(&loader, d, &options));
    return loader;
}

/* Appends the samples of the batches up to the epoch's end to `order`; how many there were. */
static int take_epoch(clt_loader *loader, int batch_size, int *order) {
    clt_batch batch;
    clt_status status;
    int n = 0;
    while ((status = clt_loader_next(loader, &batch)) == CLT_OK) {
        assert_int_equal(batch.n_fields, 2);
        assert_true(batch.samples == batch_size || batch.samples == N % batch_size);
        assert_int_equal(batch.fields[0].shape.rank, 2);
        assert_int_equal(batch.fields[0].shape.dims[0], batch.samples);
        assert_int_equal(batch.fields[0].shape.dims[1], ELEMENTS);
        assert_int_equal(batch.fields[1].shape.rank, 1);
        assert_int_equal(batch.fields[1].shape.dims[0], batch.samples);
        const float *x = batch.fields[0].data;
        const int32_t *y = batch.fields[1].data;
        for (int64_t i = 0; i < batch.samples; i++, x += ELEMENTS) {
            assert_true(x[0] == (float)y[i] && x[1] == (float)y[i] + 0.5f && x[2] == (float)-y[i]);
            assert_true(n < N);
            order[n++] = y[i];
        }
    }
    assert_int_equal(status, CLT_END);
    return n;
}

static void assert_each_once(const int *order, int n) {
    char seen[N] = {0};
    for (int i = 0; i < n; i++) assert_int_equal(seen[order[i]]++, 0);
}

/* In proportion to their weights, samples of weight 0 never; the same for any cut into batches, ranks and resumes. */
static void draws_samples_by_their_weights(void **state) {
    enum { EPOCHS = 400 };
    double weights[N];
    int counts[N] = {0}, order[N], first[N];
    for (int i = 0; i < N; i++) weights[i] = i % 10 == 3 ? 0 : 1 + i % 3;
    double sum = 0;
    for (int i = 0; i < N; i++) sum += weights[i];
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 3, .weights = weights});
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(take_epoch(loader, 10, order), N);
        for (int i = 0; i < N; i++) counts[order[i]]++;
        if (!epoch) memcpy(first, order, sizeof order);
    }
    for (int i = 0; i < N; i++) {
        double expected = EPOCHS * N * weights[i] / sum;
        assert_true(weights[i] > 0 ? fabs(counts[i] - expected) < 5 * sqrt(expected) : counts[i] == 0);
    }
    assert_ok(clt_loader_set_position(loader, (clt_loader_position){.seed = 3}));
    assert_int_equal(take_epoch(loader, 10, order), N);
    assert_memory_equal(order, first, sizeof order);
    clt_loader_destroy(loader);
    for (int i = 0; i < N; i++) weights[i] = i == 77;
    loader = load(d, (clt_loader_options){.batch = 10, .shuffle = true, .weights = weights});
    assert_int_equal(take_epoch(loader, 10, order), N);
    for (int i = 0; i < N; i++) assert_int_equal(order[i], 77);
    clt_loader_destroy(loader);
    clt_loader_options options = {.batch = 10, .weights = weights};
    assert_status(clt_loader_create(&loader, d, &options), CLT_E_INVALID);
    assert_detail("without shuffle");
    options.shuffle = true;
    const double bad[] = {-1, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weights[5] = bad[i];
        assert_status(clt_loader_create(&loader, d, &options), CLT_E_INVALID);
    }
    memset(weights, 0, sizeof weights);
    assert_status(clt_loader_create(&loader, d, &options), CLT_E_INVALID);
    assert_detail("expected a finite sum above 0");
    clt_dataset_destroy(d);
    (void)state;
}

static void plain_order_is_the_data_set_s(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 10});
    assert_int_equal(clt_loader_batches(loader), 11);
    for (int epoch = 0; epoch < 3; epoch++) {
        int order[N];
        assert_int_equal(take_epoch(loader, 10, order), N);
        for (int i = 0; i < N; i++) assert_int_equal(order[i], i);
    }
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

static void defaults_hold(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = NULL;
    int order[N];
    assert_ok(clt_loader_create(&loader, d, NULL));
    assert_int_equal(clt_loader_batches(loader), 4);
    assert_int_equal(take_epoch(loader, 32, order), N);
    clt_loader_destroy(loader);
    loader = load(d, (clt_loader_options){.batch = 1000, .prefetch = 7});
    assert_int_equal(clt_loader_batches(loader), 1);
    assert_int_equal(take_epoch(loader, 1000, order), N);
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

static void drop_last_leaves_the_rest_out(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 10, .drop_last = true, .shuffle = true});
    int order[N];
    assert_int_equal(clt_loader_batches(loader), 10);
    assert_int_equal(take_epoch(loader, 10, order), 100);
    assert_each_once(order, 100);
    clt_loader_destroy(loader);
    (void)state;
    clt_dataset_destroy(d);
}

static void each_epoch_has_an_order_of_its_own(void **state) {
    clt_dataset *d = numbered();
    clt_loader *a = load(d, (clt_loader_options){.batch = 8, .shuffle = true, .seed = 5});
    clt_loader *b =
        load(d, (clt_loader_options){.batch = 20, .shuffle = true, .seed = 5, .prefetch = 1});
    clt_loader *c = load(d, (clt_loader_options){.batch = 8, .shuffle = true, .seed = 6});
    int before[N] = {0}, x[N], y[N], z[N];
    for (int epoch = 0; epoch < 4; epoch++) {
        assert_int_equal(take_epoch(a, 8, x), N);
        assert_int_equal(take_epoch(b, 20, y), N);
        assert_int_equal(take_epoch(c, 8, z), N);
        assert_each_once(x, N);
        assert_memory_equal(x, y, sizeof x); /* the batch size does not matter */
        assert_memory_not_equal(x, z, sizeof x);
        assert_memory_not_equal(x, before, sizeof x);
        memcpy(before, x, sizeof x);
    }
    clt_loader_destroy(a);
    clt_loader_destroy(b);
    clt_loader_destroy(c);
    clt_dataset_destroy(d);
    (void)state;
}

static void position_counts_batches_and_epochs(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 50, .seed = 77});
    clt_batch batch;
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 3; i++) {
            clt_loader_position at = clt_loader_get_position(loader);
            assert_true(at.seed == 77 && at.epoch == epoch && at.batch == i);
            assert_ok(clt_loader_next(loader, &batch));
        }
        assert_int_equal(clt_loader_get_position(loader).batch, 3);
        assert_int_equal(clt_loader_next(loader, &batch), CLT_END);
        assert_int_equal(clt_loader_get_position(loader).epoch, epoch + 1);
        assert_int_equal(clt_loader_get_position(loader).batch, 0);
    }
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

/* Whatever was done before: from a position on, the batches are those of a run that was not
 * interrupted. The END between epochs counts as a step. */
static void resumes_as_if_never_interrupted(void **state) {
    enum { STEPS = 40 };
    clt_dataset *d = numbered();
    clt_loader *whole = load(d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 3});
    clt_loader *other =
        load(d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 4, .prefetch = 3});
    clt_loader_position at[STEPS];
    int32_t labels[STEPS][10] = {{0}};
    clt_status statuses[STEPS];
    clt_batch batch;
    for (int i = 0; i < STEPS; i++) {
        at[i] = clt_loader_get_position(whole);
        statuses[i] = clt_loader_next(whole, &batch);
        if (statuses[i] == CLT_OK) memcpy(labels[i], batch.fields[1].data, (size_t)batch.samples * 4);
    }
    for (int from = 0; from < STEPS; from += 3) {
        assert_ok(clt_loader_set_position(other, at[from]));
        for (int i = from; i < STEPS && i < from + 15; i++) {
            assert_int_equal(clt_loader_next(other, &batch), statuses[i]);
            if (statuses[i] == CLT_OK)
                assert_memory_equal(batch.fields[1].data, labels[i], (size_t)batch.samples * 4);
        }
    }
    clt_loader_destroy(whole);
    clt_loader_destroy(other);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_positions_outside(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 50, .seed = 1});
    static const clt_loader_position bad[] = {{1, -1, 0}, {1, 0, -1}, {1, 0, 4}, {1, INT64_MAX, 0}};
    clt_batch batch;
    assert_ok(clt_loader_next(loader, &batch));
    for (int i = 0; i < 4; i++) assert_status(clt_loader_set_position(loader, bad[i]), CLT_E_RANGE);
    assert_int_equal(clt_loader_get_position(loader).batch, 1);
    assert_ok(clt_loader_next(loader, &batch)); /* undisturbed */
    assert_int_equal(*(const int32_t *)batch.fields[1].data, 50);
    assert_status(clt_loader_set_position(NULL, bad[0]), CLT_E_INVALID);
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

/* The batch at hand stays as it is while the thread gathers ahead as far as it may. */
static void a_batch_is_valid_until_the_next_call(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader = load(d, (clt_loader_options){.batch = 4, .prefetch = 1});
    clt_batch batch;
    for (int round = 0; round < 25; round++) {
        assert_ok(clt_loader_next(loader, &batch));
        for (int look = 0; look < 2000; look++)
            for (int i = 0; i < 4; i++)
                assert_int_equal(((const int32_t *)batch.fields[1].data)[i], round * 4 + i);
    }
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

static void may_be_destroyed_at_any_moment(void **state) {
    clt_dataset *d = numbered();
    for (int taken = 0; taken < 60; taken++) {
        clt_loader *loader =
            load(d, (clt_loader_options){.batch = 7, .shuffle = true, .prefetch = 1 + taken % 5});
        clt_batch batch;
        for (int i = 0; i < taken; i++) assert_true(clt_loader_next(loader, &batch) >= 0);
        clt_loader_destroy(loader);
    }
    clt_loader_destroy(NULL);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_options(void **state) {
    clt_dataset *d = numbered();
    clt_loader *loader;
    clt_batch batch;
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.batch = -1}), CLT_E_INVALID);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.prefetch = -1}), CLT_E_INVALID);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.prefetch = 100000}),
                  CLT_E_INVALID);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.batch = 104, .drop_last = true}),
                  CLT_E_INVALID);
    assert_detail("drop all of 103");
    assert_status(clt_loader_create(&loader, NULL, NULL), CLT_E_INVALID);
    assert_status(clt_loader_create(NULL, d, NULL), CLT_E_INVALID);
    assert_status(clt_loader_next(NULL, &batch), CLT_E_INVALID);
    assert_int_equal(clt_loader_batches(NULL), 0);
    clt_dataset_destroy(d);
    (void)state;
}

/* Whichever allocation fails: an error, and nothing is left behind. */
static void survives_failing_memory(void **state) {
    clt_dataset *d = numbered();
    clt_status status = CLT_E_NO_MEMORY;
    long at = 0;
    for (; status != CLT_OK; at++) {
        clt_loader *loader = NULL;
        watch_begin(at);
        status = clt_loader_create(&loader, d, &(clt_loader_options){.shuffle = true});
        if (status != CLT_OK) assert_int_equal(status, CLT_E_NO_MEMORY);
        clt_loader_destroy(loader);
        watch_end();
    }
    assert_true(at == 7); /* the loader, its threads, buffers, indices and ring, the order; then none failed */
    clt_dataset_destroy(d);
    (void)state;
}

/* ---- several ranks ---- */

enum { MOST_RANKS = 5 };

/* Takes `count` batches of all loaders and appends the samples as they lie in the whole batches. */
static int take_together(clt_loader **loaders, int ranks, int count, int *order) {
    clt_batch batch;
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int r = 0; r < ranks; r++) {
            assert_ok(clt_loader_next(loaders[r], &batch));
            assert_int_equal(batch.n_fields, 2);
            assert_int_equal(batch.fields[0].shape.dims[0], batch.samples);
            const float *x = batch.fields[0].data;
            for (int64_t k = 0; k < batch.samples; k++, n++) {
                order[n] = ((const int32_t *)batch.fields[1].data)[k];
                assert_true(x[k * ELEMENTS] == (float)order[n]);
            }
        }
    return n;
}

static void make_ranks(clt_loader **loaders, int ranks, const clt_dataset *d, clt_loader_options options) {
    for (int r = 0; r < ranks; r++) {
        options.rank = r;
        options.ranks = ranks;
        loaders[r] = load(d, options);
    }
}

static void destroy_ranks(clt_loader **loaders, int ranks) {
    for (int r = 0; r < ranks; r++) clt_loader_destroy(loaders[r]);
}

/* The pieces of all ranks together are the batches of one: for any number of ranks, and any shares. */
static void ranks_together_see_the_order_of_one(void **state) {
    static const int64_t shares[][MOST_RANKS] = {{10}, {3, 7}, {10, 0}, {0, 1, 9}, {4, 1, 4, 1}, {2, 2, 2, 2, 2}};
    static const int ranks_of[] = {1, 2, 2, 3, 4, 5};
    clt_dataset *d = numbered();
    clt_loader *alone = load(d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 9}), *loaders[MOST_RANKS];
    int wanted[2][N], got[N];
    clt_batch batch;
    for (int epoch = 0; epoch < 2; epoch++) assert_int_equal(take_epoch(alone, 10, wanted[epoch]), N);
    for (int c = 0; c < 12; c++) {
        int ranks = ranks_of[c / 2];
        make_ranks(loaders, ranks, d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 9,
                                                           .shares = c % 2 ? shares[c / 2] : NULL});
        for (int epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(clt_loader_batches(loaders[0]), 11);
            assert_int_equal(take_together(loaders, ranks, 11, got), N);
            assert_memory_equal(got, wanted[epoch], sizeof got);
            for (int r = 0; r < ranks; r++) assert_int_equal(clt_loader_next(loaders[r], &batch), CLT_END);
        }
        destroy_ranks(loaders, ranks);
    }
    clt_loader_destroy(alone);
    clt_dataset_destroy(d);
    (void)state;
}

/* 103 samples in batches of 48 leave 7, of which the shares 8, 24, 16 give 1, 3 and 3: 7 x 8/48, 7 x 32/48, rounded down. */
static void shares_cut_each_batch(void **state) {
    static const int64_t shares[] = {8, 24, 16}, wanted[][3] = {{8, 24, 16}, {8, 24, 16}, {1, 3, 3}};
    clt_dataset *d = numbered();
    clt_loader *loaders[3];
    clt_batch batch;
    make_ranks(loaders, 3, d, (clt_loader_options){.batch = 48, .shares = shares});
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < 3; r++) {
            assert_ok(clt_loader_next(loaders[r], &batch));
            assert_int_equal(batch.samples, wanted[i][r]);
        }
    destroy_ranks(loaders, 3);
    /* More ranks than samples: some have none. */
    make_ranks(loaders, 3, d, (clt_loader_options){.batch = 102});
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 3; r++) {
            assert_ok(clt_loader_next(loaders[r], &batch));
            assert_int_equal(batch.samples, i == 0 ? 34 : r == 2);
        }
    destroy_ranks(loaders, 3);
    clt_dataset_destroy(d);
    (void)state;
}

/* Stopped with four ranks, gone on with by three, then with other shares, then by one: each sample of the epoch once. */
static void goes_on_with_another_number_of_ranks(void **state) {
    static const int64_t shares[] = {9, 1, 2};
    clt_dataset *d = numbered();
    clt_loader_options options = {.batch = 12, .shuffle = true, .seed = 21};
    clt_loader *alone = load(d, options), *loaders[MOST_RANKS];
    int wanted[N], got[N];
    assert_int_equal(take_epoch(alone, 12, wanted), N);
    make_ranks(loaders, 4, d, options);
    int n = take_together(loaders, 4, 3, got);
    clt_loader_position at = clt_loader_get_position(loaders[2]);
    destroy_ranks(loaders, 4);
    make_ranks(loaders, 3, d, options);
    for (int r = 0; r < 3; r++) assert_ok(clt_loader_set_position(loaders[r], at));
    n += take_together(loaders, 3, 2, got + n);
    for (int r = 0; r < 3; r++) assert_ok(clt_loader_set_shares(loaders[r], r, 3, shares));
    n += take_together(loaders, 3, 1, got + n);
    assert_ok(clt_loader_set_shares(loaders[1], 0, 1, NULL));
    n += take_together(&loaders[1], 1, 3, got + n);
    assert_int_equal(n, N);
    assert_memory_equal(got, wanted, sizeof got);
    destroy_ranks(loaders, 3);
    clt_loader_destroy(alone);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_shares(void **state) {
    static const int64_t few[] = {3, 6}, many[] = {3, 8}, negative[] = {11, -1}, huge[] = {INT64_MAX, INT64_MAX};
    const clt_loader_options bad[] = {{.batch = 10, .rank = 1},
                                      {.batch = 10, .rank = 2, .ranks = 2},
                                      {.batch = 10, .rank = -1, .ranks = 2},
                                      {.batch = 10, .ranks = -2},
                                      {.batch = (int64_t)1 << 40, .ranks = 2},
                                      {.batch = 10, .ranks = 2, .shares = few},
                                      {.batch = 10, .ranks = 2, .shares = many},
                                      {.batch = 10, .ranks = 2, .shares = negative},
                                      {.batch = 10, .ranks = 2, .shares = huge}};
    clt_dataset *d = numbered();
    clt_loader *loader;
    clt_batch batch;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(clt_loader_create(&loader, d, &bad[i]), CLT_E_INVALID);
    loader = load(d, (clt_loader_options){.batch = 10});
    assert_ok(clt_loader_next(loader, &batch));
    assert_status(clt_loader_set_shares(loader, 0, 2, few), CLT_E_INVALID);
    assert_detail("9 samples");
    assert_int_equal(*(const int32_t *)batch.fields[1].data, 0); /* still there */
    assert_ok(clt_loader_next(loader, &batch));
    assert_int_equal(*(const int32_t *)batch.fields[1].data, 10);
    assert_status(clt_loader_set_shares(NULL, 0, 1, NULL), CLT_E_INVALID);
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_order_is_the_data_set_s),
        cmocka_unit_test(defaults_hold),
        cmocka_unit_test(drop_last_leaves_the_rest_out),
        cmocka_unit_test(each_epoch_has_an_order_of_its_own),
        cmocka_unit_test(position_counts_batches_and_epochs),
        cmocka_unit_test(resumes_as_if_never_interrupted),
        cmocka_unit_test(refuses_positions_outside),
        cmocka_unit_test(a_batch_is_valid_until_the_next_call),
        cmocka_unit_test(may_be_destroyed_at_any_moment),
        cmocka_unit_test(refuses_bad_options),
        cmocka_unit_test(ranks_together_see_the_order_of_one),
        cmocka_unit_test(draws_samples_by_their_weights),
        cmocka_unit_test(shares_cut_each_batch),
        cmocka_unit_test(goes_on_with_another_number_of_ranks),
        cmocka_unit_test(refuses_bad_shares),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
