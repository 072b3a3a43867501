/* Data sets whose samples a function makes, and the threads of a loader that call it. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/data/files.h"

#include <cltrain/data.h>
#include <cltrain/preprocessing.h>

enum { N = 103, WIDTH = 5, CLASSES = 7 };

/* What a sample is: of its index, and of the seed and the epoch, as if it were augmented. */
static float value(const clt_sample *s, int at) {
    return (float)((s->index * 31 + (int64_t)s->seed * 7 + s->epoch * 1009 + at * 3) % 9973);
}

typedef struct made {
    atomic_int calls, destroyed, inside, most_inside;
    _Atomic int64_t broken_from, broken_to; /* samples that cannot be had */
    clt_status status;              /* of these */
    int64_t bad_label;              /* the sample with a label that is not a class; -1: none */
    int meet;                       /* calls that wait for each other */
} made;

/* Returns when `meet` calls are inside at once: only threads get there. */
static void wait_for_others(made *m) {
    int inside = atomic_fetch_add(&m->inside, 1) + 1;
    for (int most = atomic_load(&m->most_inside); inside > most && !atomic_compare_exchange_weak(&m->most_inside, &most, inside);) {}
    while (atomic_load(&m->most_inside) < m->meet) sched_yield();
    atomic_fetch_sub(&m->inside, 1);
}

static clt_status make(void *user, const clt_sample *s, void *const *fields) {
    made *m = user;
    atomic_fetch_add(&m->calls, 1);
    if (m->meet) wait_for_others(m);
    if (s->index >= m->broken_from && s->index < m->broken_to) return m->status;
    for (int i = 0; i < WIDTH; i++) ((float *)fields[0])[i] = value(s, i);
    *(uint8_t *)fields[1] = (uint8_t)s->index;
    *(int32_t *)fields[2] = s->index == m->bad_label ? CLASSES : (int32_t)(s->index % CLASSES);
    return CLT_OK;
}

static void count_destroyed(void *user) {
    atomic_fetch_add(&((made *)user)->destroyed, 1);
}

static clt_dataset_source source_of(made *m) {
    return (clt_dataset_source){.samples = N,
                                .n_fields = 3,
                                .dtypes = {CLT_F32, CLT_U8, CLT_I32},
                                .shapes = {CLT_SHAPE(WIDTH), {0}, {0}},
                                .classes = CLASSES,
                                .fetch = make,
                                .destroy = count_destroyed,
                                .user = m};
}

static clt_dataset *create(made *m) {
    clt_dataset_source source = source_of(m);
    clt_dataset *d = NULL;
    assert_ok(clt_dataset_create(&d, &source));
    return d;
}

static clt_loader *load(const clt_dataset *d, clt_loader_options options) {
    clt_loader *loader = NULL;
    assert_ok(clt_loader_create(&loader, d, &options));
    return loader;
}

/* Appends all fields of the batches of an epoch; where it ends. */
static char *take_epoch(clt_loader *loader, char *at) {
    clt_batch batch;
    clt_status status;
    while ((status = clt_loader_next(loader, &batch)) == CLT_OK) {
        size_t n = (size_t)batch.samples, bytes[] = {n * WIDTH * sizeof(float), n, n * sizeof(int32_t)};
        for (int f = 0; f < 3; f++, at += bytes[f - 1]) memcpy(at, batch.fields[f].data, bytes[f]);
    }
    assert_int_equal(status, CLT_END);
    return at;
}

enum { EPOCH_BYTES = N * (WIDTH * 4 + 1 + 4) };

static void a_data_set_is_a_count_and_a_function(void **state) {
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m);
    assert_int_equal(clt_dataset_samples(d), N);
    assert_int_equal(clt_dataset_fields(d), 3);
    assert_int_equal(clt_dataset_classes(d), CLASSES);
    assert_int_equal(clt_dataset_dtype(d, 1), CLT_U8);
    assert_null(clt_dataset_array(d, 0).data);
    assert_int_equal(clt_dataset_array(d, 0).shape.dims[0], N);
    clt_sample s = {.index = 44, .seed = 3, .epoch = 2};
    float x[WIDTH];
    uint8_t index;
    int32_t label;
    assert_ok(clt_dataset_fetch(d, &s, (void *[]){x, &index, &label}));
    for (int i = 0; i < WIDTH; i++) assert_true(x[i] == value(&s, i));
    assert_int_equal(index, 44);
    assert_int_equal(label, 44 % CLASSES);
    s.index = N;
    assert_status(clt_dataset_fetch(d, &s, (void *[]){x, &index, &label}), CLT_E_RANGE);
    assert_int_equal(m.calls, 1);
    clt_dataset_destroy(d);
    assert_int_equal(m.destroyed, 1);
    (void)state;
}

/* Two epochs, one after the other; what each sample is made of is there, too. */
static void threads_do_not_change_a_byte(void **state) {
    static char wanted[2][EPOCH_BYTES], got[2][EPOCH_BYTES];
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m);
    for (int threads = 0; threads <= 8; threads++) {
        char(*to)[EPOCH_BYTES] = threads ? got : wanted;
        clt_loader *loader = load(d, (clt_loader_options){.batch = 10, .shuffle = true, .seed = 5, .threads = threads, .prefetch = 1 + threads % 3});
        for (int epoch = 0; epoch < 2; epoch++) assert_true(take_epoch(loader, to[epoch]) == to[epoch] + EPOCH_BYTES);
        if (threads) assert_memory_equal(got, wanted, sizeof got);
        clt_loader_destroy(loader);
    }
    assert_memory_not_equal(wanted[0], wanted[1], EPOCH_BYTES);
    clt_dataset_destroy(d);
    (void)state;
}

/* As many calls as there are threads are inside at once, or the test hangs. */
static void threads_work_at_the_same_time(void **state) {
    static char bytes[EPOCH_BYTES];
    made m = {.bad_label = -1, .meet = 4};
    clt_dataset *d = create(&m);
    clt_loader *loader = load(d, (clt_loader_options){.batch = 50, .threads = 4});
    take_epoch(loader, bytes);
    clt_loader_destroy(loader);
    assert_int_equal(m.most_inside, 4);
    clt_dataset_destroy(d);
    (void)state;
}

/* The pieces of the ranks, one after the other, are the batch of one, field by field. */
static void take_ranks(clt_loader **loaders, int ranks, clt_batch *whole) {
    clt_batch piece;
    int64_t first = 0;
    for (int r = 0; r < ranks; r++) {
        assert_ok(clt_loader_next(loaders[r], &piece));
        for (int f = 0; f < 3; f++) {
            size_t bytes = f == 0 ? WIDTH * sizeof(float) : f == 1 ? 1 : sizeof(int32_t);
            assert_memory_equal(piece.fields[f].data, (const char *)whole->fields[f].data + (size_t)first * bytes, (size_t)piece.samples * bytes);
        }
        first += piece.samples;
    }
    assert_int_equal(first, whole->samples);
}

static void ranks_and_resuming_do_not_change_a_byte(void **state) {
    enum { BATCHES = 11, STEPS = 2 * (BATCHES + 1) };
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m);
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int from = 0; from < STEPS; from++) {
            clt_loader_options o = {.batch = 10, .shuffle = true, .seed = 8, .threads = 1 + (from + ranks) % 8};
            clt_loader *whole = load(d, o), *loaders[4];
            clt_loader_position at = {.seed = 8, .epoch = from / (BATCHES + 1), .batch = from % (BATCHES + 1)};
            assert_ok(clt_loader_set_position(whole, (clt_loader_position){.seed = 8}));
            clt_batch batch;
            for (int i = 0; i < from; i++) assert_true(clt_loader_next(whole, &batch) >= 0);
            for (o.rank = 0, o.ranks = ranks; o.rank < ranks; o.rank++) {
                o.threads = 1 + (o.rank + from) % 3;
                loaders[o.rank] = load(d, o);
                assert_ok(clt_loader_set_position(loaders[o.rank], at));
            }
            for (int i = 0; i < 3; i++) {
                clt_status status = clt_loader_next(whole, &batch);
                if (status == CLT_OK) take_ranks(loaders, ranks, &batch);
                for (int r = 0; status == CLT_END && r < ranks; r++) assert_int_equal(clt_loader_next(loaders[r], &(clt_batch){0}), CLT_END);
            }
            for (int r = 0; r < ranks; r++) clt_loader_destroy(loaders[r]);
            clt_loader_destroy(whole);
        }
    clt_dataset_destroy(d);
    (void)state;
}

/* The first sample of the batch that fails is told, whichever thread had it, and the position stays. */
static void a_sample_that_cannot_be_had_stops(void **state) {
    made m = {.broken_from = 33, .broken_to = 39, .status = CLT_E_FORMAT, .bad_label = -1};
    clt_dataset *d = create(&m);
    for (int threads = 1; threads <= 6; threads++) {
        clt_loader *loader = load(d, (clt_loader_options){.batch = 10, .threads = threads});
        clt_batch batch;
        for (int i = 0; i < 3; i++) assert_ok(clt_loader_next(loader, &batch));
        for (int again = 0; again < 2; again++) {
            assert_status(clt_loader_next(loader, &batch), CLT_E_FORMAT);
            assert_detail("sample 33: ");
            assert_int_equal(clt_loader_get_position(loader).batch, 3);
        }
        m.broken_to = 0; /* the file was mended */
        assert_ok(clt_loader_next(loader, &batch));
        assert_int_equal(*(const uint8_t *)batch.fields[1].data, 30);
        m.broken_to = 39;
        clt_loader_destroy(loader);
    }
    clt_dataset_destroy(d);
    (void)state;
}

static void a_label_must_be_a_class(void **state) {
    made m = {.bad_label = 12};
    clt_dataset *d = create(&m);
    clt_loader *loader = load(d, (clt_loader_options){.batch = 20});
    assert_status(clt_loader_next(loader, &(clt_batch){0}), CLT_E_RANGE);
    assert_detail("sample 12: label 7 is not a class");
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

/* Those behind them take their places, with any number of threads, and are counted with the batches that they are in. */
static void broken_samples_may_be_skipped(void **state) {
    made m = {.broken_from = 98, .broken_to = N, .status = CLT_E_IO, .bad_label = -1};
    clt_dataset *d = create(&m);
    for (int threads = 1; threads <= 4; threads++) {
        clt_loader *loader = load(d, (clt_loader_options){.batch = 10, .threads = threads, .broken = CLT_BROKEN_SKIP, .prefetch = 20});
        clt_batch batch;
        for (int i = 0; i < 11; i++) {
            assert_int_equal(clt_loader_broken(loader), i < 10 ? 0 : 2);
            assert_ok(clt_loader_next(loader, &batch));
        }
        assert_int_equal(clt_loader_broken(loader), 5);
        for (int i = 0; i < 3; i++) assert_int_equal(((const uint8_t *)batch.fields[1].data)[i], 0);
        assert_int_equal(batch.indices[batch.samples - 1], 0);
        clt_loader_destroy(loader);
    }
    m.broken_from = 0;
    clt_loader *loader = load(d, (clt_loader_options){.batch = 1, .broken = CLT_BROKEN_SKIP});
    assert_status(clt_loader_next(loader, &(clt_batch){0}), CLT_E_IO); /* not one that can be had */
    clt_loader_destroy(loader);
    m.status = CLT_E_NO_MEMORY, m.broken_to = 1;
    loader = load(d, (clt_loader_options){.batch = 1, .broken = CLT_BROKEN_SKIP});
    assert_status(clt_loader_next(loader, &(clt_batch){0}), CLT_E_NO_MEMORY); /* which is not the sample's fault */
    clt_loader_destroy(loader);
    clt_dataset_destroy(d);
    (void)state;
}

/* Whatever threads and ranks there are: the samples that can be had, each once and in their order, with their own indices. */
static void broken_samples_may_be_left_out(void **state) {
    made m = {.broken_from = 18, .broken_to = 31, .status = CLT_E_IO, .bad_label = -1}; /* all of the third batch, and parts of its neighbours */
    clt_dataset *d = create(&m);
    for (int threads = 1; threads <= 4; threads++)
        for (int ranks = 1; ranks <= 3; ranks++) {
            int64_t seen = 0, broken = 0;
            clt_loader *loaders[3];
            clt_batch batch;
            for (int r = 0; r < ranks; r++)
                loaders[r] = load(d, (clt_loader_options){.batch = 10, .threads = threads, .broken = CLT_BROKEN_LEAVE_OUT, .rank = r, .ranks = ranks});
            for (int b = 0; b < 11; b++)
                for (int r = 0; r < ranks; r++) {
                    assert_ok(clt_loader_next(loaders[r], &batch));
                    for (int f = 0; f < 3; f++) assert_int_equal(batch.fields[f].shape.dims[0], batch.samples);
                    for (int64_t i = 0; i < batch.samples; i++, seen++) {
                        if (seen == m.broken_from) seen = m.broken_to;
                        assert_int_equal(batch.indices[i], seen);
                        assert_int_equal(((const uint8_t *)batch.fields[1].data)[i], seen);
                    }
                }
            for (int r = 0; r < ranks; r++) {
                broken += clt_loader_broken(loaders[r]);
                clt_loader_destroy(loaders[r]);
            }
            assert_int_equal(seen, N);
            assert_int_equal(broken, m.broken_to - m.broken_from);
        }
    clt_dataset_destroy(d);
    (void)state;
}

/* Splits fetch from the whole, with the whole's indices; a split of a split, too. */
static void splits_are_views(void **state) {
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m), *parts[2], *halves[2];
    char seen[N] = {0};
    assert_ok(clt_dataset_split(d, (double[]){0.8, 0.2}, 2, 4, parts));
    assert_ok(clt_dataset_split(parts[0], (double[]){0.5, 0.5}, 2, 4, halves));
    clt_dataset *all[] = {parts[1], halves[0], halves[1]};
    for (int p = 0; p < 3; p++)
        for (int64_t i = 0; i < clt_dataset_samples(all[p]); i++) {
            clt_sample s = {.index = i, .seed = 1, .epoch = 6};
            float x[WIDTH];
            uint8_t index;
            int32_t label;
            assert_ok(clt_dataset_fetch(all[p], &s, (void *[]){x, &index, &label}));
            assert_int_equal(seen[index]++, 0);
            s.index = index;
            assert_true(x[2] == value(&s, 2));
            assert_int_equal(clt_dataset_classes(all[p]), CLASSES);
        }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    for (int p = 0; p < 2; p++) clt_dataset_destroy(halves[p]), clt_dataset_destroy(parts[p]);
    assert_int_equal(m.destroyed, 0);
    clt_dataset_destroy(d);
    assert_int_equal(m.destroyed, 1);
    (void)state;
}

static void refuses_what_only_memory_can(void **state) {
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m), *digits = NULL;
    clt_preprocessing *of_digits = NULL;
    assert_status(clt_dataset_standardize_target(d, d), CLT_E_DTYPE); /* there are classes */
    assert_status(clt_dataset_channels_first(d), CLT_E_UNSUPPORTED);
    assert_detail("channels_first: a function makes these samples");
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(clt_preprocessing_of(&of_digits, digits));
    assert_true(clt_preprocessing_apply(of_digits, d) < 0);
    clt_preprocessing_destroy(of_digits);
    clt_dataset_destroy(digits);
    clt_dataset_destroy(d);
    (void)state;
}

/* As a copy of the samples in memory is, twice over; and so are views that are made after. */
static void is_standardized_as_it_is_fetched(void **state) {
    made m = {.bad_label = -1};
    clt_dataset *d = create(&m), *copy = NULL, *parts[2];
    static float x[N][WIDTH];
    int32_t y[N];
    for (int64_t i = 0; i < N; i++) {
        clt_sample s = {.index = i};
        uint8_t index;
        assert_ok(clt_dataset_fetch(d, &s, (void *[]){x[i], &index, &y[i]}));
    }
    assert_ok(clt_dataset_from_arrays(&copy, (clt_array[]){{CLT_F32, CLT_SHAPE(N, WIDTH), x}, {CLT_I32, CLT_SHAPE(N), y}}, 2));
    for (int twice = 0; twice < 2; twice++) {
        assert_ok(clt_dataset_standardize(copy, copy));
        assert_ok(clt_dataset_standardize(d, d));
    }
    assert_ok(clt_dataset_split(d, (double[]){0.5, 0.5}, 2, 1, parts));
    for (int p = 0; p < 3; p++) {
        const clt_dataset *one = p < 2 ? parts[p] : d;
        for (int64_t i = 0; i < clt_dataset_samples(one); i++) {
            clt_sample s = {.index = i};
            float got[WIDTH];
            uint8_t index;
            int32_t label;
            assert_ok(clt_dataset_fetch(one, &s, (void *[]){got, &index, &label}));
            const float *wanted = (const float *)clt_dataset_array(copy, 0).data + index * WIDTH;
            for (int k = 0; k < WIDTH; k++) assert_true(fabsf(got[k] - wanted[k]) < 1e-5f);
        }
    }
    clt_preprocessing *facts = NULL, *own = NULL;
    assert_ok(clt_preprocessing_of(&facts, copy));
    assert_ok(clt_preprocessing_of(&own, d));
    assert_true(clt_preprocessing_standardizes(own));
    for (int p = 0; p < 2; p++) clt_dataset_destroy(parts[p]);
    clt_dataset_destroy(d);
    d = create(&m);
    assert_ok(clt_preprocessing_apply(facts, d)); /* those of a model */
    clt_sample s = {.index = 7};
    float got[WIDTH];
    uint8_t index;
    int32_t label;
    assert_ok(clt_dataset_fetch(d, &s, (void *[]){got, &index, &label}));
    assert_true(fabsf(got[1] - ((const float *)clt_dataset_array(copy, 0).data)[7 * WIDTH + 1]) < 1e-5f);
    clt_preprocessing_destroy(facts);
    clt_preprocessing_destroy(own);
    clt_dataset_destroy(copy);
    clt_dataset_destroy(d);
    (void)state;
}

static void refuses_bad_sources(void **state) {
    made m = {.bad_label = -1};
    clt_dataset *d = NULL;
    clt_dataset_source s = source_of(&m);
    assert_status(clt_dataset_create(NULL, &s), CLT_E_INVALID);
    assert_status(clt_dataset_create(&d, NULL), CLT_E_INVALID);
    s.fetch = NULL;
    assert_status(clt_dataset_create(&d, &s), CLT_E_INVALID);
    s = source_of(&m), s.samples = 0;
    assert_status(clt_dataset_create(&d, &s), CLT_E_INVALID);
    s = source_of(&m), s.n_fields = CLT_MAX_FIELDS + 1;
    assert_status(clt_dataset_create(&d, &s), CLT_E_INVALID);
    s = source_of(&m), s.dtypes[1] = CLT_I64;
    assert_status(clt_dataset_create(&d, &s), CLT_E_DTYPE);
    s = source_of(&m), s.shapes[0].dims[0] = 0;
    assert_status(clt_dataset_create(&d, &s), CLT_E_SHAPE);
    s = source_of(&m), s.samples = INT64_MAX;
    assert_status(clt_dataset_create(&d, &s), CLT_E_NO_MEMORY);
    s = source_of(&m), s.dtypes[2] = CLT_F32;
    assert_status(clt_dataset_create(&d, &s), CLT_E_INVALID);
    assert_detail("7 classes");
    assert_int_equal(m.destroyed, 0);
    clt_loader *loader;
    d = create(&m);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.threads = -1}), CLT_E_INVALID);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.threads = 1000}), CLT_E_INVALID);
    assert_status(clt_loader_create(&loader, d, &(clt_loader_options){.broken = (clt_broken)7}), CLT_E_INVALID);
    clt_dataset_destroy(d);
    (void)state;
}

static void survives_failing_memory(void **state) {
    made m = {.bad_label = -1};
    clt_dataset_source source = source_of(&m);
    for (long at = 0;; at++) {
        clt_dataset *d = NULL, *parts[2] = {NULL, NULL};
        watch_begin(at);
        clt_status status = clt_dataset_create(&d, &source);
        if (status == CLT_OK) status = clt_dataset_split(d, (double[]){0.5, 0.5}, 2, 1, parts);
        for (int i = 0; i < 2; i++) clt_dataset_destroy(parts[i]);
        clt_dataset_destroy(d);
        watch_end();
        if (status == CLT_OK) break;
        assert_int_equal(status, CLT_E_NO_MEMORY);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_set_is_a_count_and_a_function),
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(threads_work_at_the_same_time),
        cmocka_unit_test(ranks_and_resuming_do_not_change_a_byte),
        cmocka_unit_test(a_sample_that_cannot_be_had_stops),
        cmocka_unit_test(a_label_must_be_a_class),
        cmocka_unit_test(broken_samples_may_be_skipped),
        cmocka_unit_test(broken_samples_may_be_left_out),
        cmocka_unit_test(splits_are_views),
        cmocka_unit_test(refuses_what_only_memory_can),
        cmocka_unit_test(is_standardized_as_it_is_fetched),
        cmocka_unit_test(refuses_bad_sources),
        cmocka_unit_test(survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
