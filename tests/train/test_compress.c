/* Training with compressed gradients: two ranks that are threads with a device each, on digits. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runtime/base/thread.h"
#include "runtime/train/trainer.h"
#include "comm/local/local.h"

enum { MOST_RANKS = 3, BATCH = 64, HIDDEN = 128, EPOCHS = 50, MOST_VALUES = 1 << 15 };

static clt_dataset *parts[2]; /* to train on, to test on */
static clt_device *devices[MOST_RANKS]; /* of the ranks: what is compiled for one job is there for the next */

static int open_all(void **state) {
    (void)state;
    clt_dataset *digits;
    assert_ok(clt_dataset_digits(&digits));
    assert_ok(clt_dataset_split(digits, (double[]){0.7, 0.3}, 2, 1, parts));
    clt_dataset_destroy(digits);
    for (int i = 0; i < MOST_RANKS; i++) assert_ok(clt_device_open(&devices[i], NULL));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    for (int i = 0; i < MOST_RANKS; i++) clt_device_close(devices[i]);
    for (int i = 0; i < 2; i++) clt_dataset_destroy(parts[i]);
    return 0;
}

/* ---- a rank ---- */

typedef struct job {
    clt_compress_options compress;
    clt_optimizer optimizer;
    float lr, momentum, clip_norm;
    int epochs, accumulate;
    size_t bucket_bytes;
    const char *checkpoint; /* saved and loaded again after the first epoch */
    clt_precision precision;
    float loss_scale; /* from then on; 0: as it was */
} job;

typedef struct rank {
    clt_comm *comm;
    int index, size;
    job job;
    clt_device *device;
    clt_graph *graph;
    clt_trainer *trainer;
    clt_loader *loader;
    clt_status status;
    char detail[512];
    clt_metrics metrics;
    clt_compress_report report;
    float values[MOST_VALUES];
    int n_values;
} rank;

static clt_status build(rank *r) {
    CLT_TRY(clt_graph_create(&r->graph));
    clt_tensor *x = clt_input(r->graph, "x", CLT_F32, CLT_SHAPE(BATCH / r->size, 1, 8, 8));
    clt_tensor *y = clt_input(r->graph, "y", CLT_I32, CLT_SHAPE(BATCH / r->size));
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(x), "fc1", HIDDEN));
    h = clt_linear(h, "fc2", 10);
    clt_train_options options = {.optimizer = r->job.optimizer,
                                 .lr = r->job.lr,
                                 .momentum = r->job.momentum,
                                 .clip_norm = r->job.clip_norm,
                                 .accumulate = r->job.accumulate,
                                 .seed = 1,
                                 .output = h,
                                 .comm = r->comm,
                                 .compress = r->job.compress,
                                 .precision = r->job.precision,
                                 .on_nonfinite = r->job.precision == CLT_PRECISION_F16 ? CLT_NONFINITE_SKIP : CLT_NONFINITE_IGNORE,
                                 .bucket_bytes = r->job.bucket_bytes};
    return clt_trainer_create(&r->trainer, r->device, clt_cross_entropy(h, y), &options);
}

static clt_status train_epoch(rank *r) {
    clt_batch batch;
    clt_status status;
    while ((status = clt_loader_next(r->loader, &batch)) == CLT_OK) CLT_TRY(clt_trainer_step(r->trainer, &batch));
    return status < 0 ? status : CLT_OK;
}

static clt_status test(rank *r) {
    clt_loader *loader;
    clt_batch batch;
    clt_status status;
    CLT_TRY(clt_loader_create(&loader, parts[1], &(clt_loader_options){.batch = BATCH, .rank = r->index, .ranks = r->size}));
    while ((status = clt_loader_next(loader, &batch)) == CLT_OK)
        if ((status = clt_trainer_evaluate(r->trainer, &batch)) < 0) break;
    clt_loader_destroy(loader);
    if (status < 0) return status;
    return clt_trainer_eval_metrics(r->trainer, &r->metrics, true);
}

static clt_status keep_values(rank *r) {
    for (size_t i = 0; i < r->graph->n_variables; i++) {
        const clt_variable *v = r->graph->variables[i];
        size_t n = (size_t)clt_shape_elements(&v->shape);
        if ((size_t)r->n_values + n > MOST_VALUES) return clt_fail(CLT_E_INVALID, "too many values");
        CLT_TRY(clt_trainer_get(r->trainer, v->name, r->values + r->n_values, n));
        r->n_values += (int)n;
    }
    return CLT_OK;
}

static clt_status run(rank *r) {
    CLT_TRY(build(r));
    CLT_TRY(clt_loader_create(&r->loader, parts[0],
                              &(clt_loader_options){.batch = BATCH, .shuffle = true, .rank = r->index, .ranks = r->size}));
    for (int epoch = 0; epoch < r->job.epochs; epoch++) {
        CLT_TRY(train_epoch(r));
        if (epoch > 0) continue;
        if (r->job.loss_scale > 0) CLT_TRY(clt_loss_scale_restore(r->trainer, r->job.loss_scale, 0));
        if (!r->job.checkpoint) continue;
        if (r->index == 0) CLT_TRY(clt_checkpoint_save(r->trainer, r->loader, r->job.checkpoint));
        CLT_TRY(clt_checkpoint_load(r->trainer, r->loader, r->job.checkpoint));
    }
    CLT_TRY(test(r));
    CLT_TRY(keep_values(r));
    if (r->job.compress.method && r->size > 1) CLT_TRY(clt_trainer_compress_report(r->trainer, &r->report));
    return CLT_OK;
}

static void *run_rank(void *argument) {
    rank *r = argument;
    r->status = run(r);
    snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    clt_trainer_destroy(r->trainer);
    clt_loader_destroy(r->loader);
    clt_graph_destroy(r->graph);
    clt_comm_destroy(r->comm);
    return NULL;
}

static void start_group(rank *ranks, int n, job wanted) {
    clt_comm *comms[MOST_RANKS];
    clt_thread threads[MOST_RANKS];
    assert_ok(clt_comm_create_local(comms, n, 60));
    for (int i = 0; i < n; i++) {
        ranks[i] = (rank){.comm = comms[i], .index = i, .size = n, .job = wanted, .device = devices[i]};
        assert_ok(clt_thread_start(&threads[i], run_rank, &ranks[i]));
    }
    for (int i = 0; i < n; i++) clt_thread_join(threads[i]);
}

static void run_group(rank *ranks, int n, job wanted) {
    start_group(ranks, n, wanted);
    for (int i = 0; i < n; i++) {
        if (ranks[i].status < 0) print_error("%s, rank %d: %s\n", clt_compression_name(wanted.compress.method), i, ranks[i].detail);
        assert_int_equal(ranks[i].status, CLT_OK);
        assert_int_equal(ranks[i].n_values, ranks[0].n_values);
        assert_memory_equal(ranks[i].values, ranks[0].values, (size_t)ranks[0].n_values * sizeof(float));
    }
}

static rank ranks[MOST_RANKS], again[MOST_RANKS];

static double largest_difference(const rank *a, const rank *b) {
    double difference = 0, largest = 0;
    for (int i = 0; i < a->n_values; i++) {
        difference = fmax(difference, fabs((double)a->values[i] - (double)b->values[i]));
        largest = fmax(largest, fabs((double)b->values[i]));
    }
    return difference / largest;
}

/* ---- tests ---- */

/* Those that leave out most come first: they are all that is trained for long, unless the program is run with "all". */
static const struct {
    clt_compress_options options;
    double fewer; /* bytes, at least */
} methods[] = {
    {{.method = CLT_COMPRESS_ONEBIT}, 27},
    {{.method = CLT_COMPRESS_TOPK}, 120},
    {{.method = CLT_COMPRESS_POWERSGD, .rank = 2}, 6},
    {{.method = CLT_COMPRESS_INT8}, 3.9},
    {{.method = CLT_COMPRESS_F16}, 2},
    {{.method = CLT_COMPRESS_BF16}, 2},
    {{.method = CLT_COMPRESS_TOPK, .ratio = 0.05f, .f32_values = true}, 16},
};
static size_t n_long = 2;

/* By each method training comes to the accuracy of that without, within a point. */
static void accuracy_is_kept(void **state) {
    (void)state;
    bool all = n_long == CLT_COUNT_OF(methods);
    static const job jobs[] = {{.optimizer = CLT_ADAMW, .lr = 3e-3f, .epochs = EPOCHS},
                               {.optimizer = CLT_SGD, .lr = 0.05f, .momentum = 0.9f, .epochs = EPOCHS}};
    for (size_t j = 0; j < (all ? CLT_COUNT_OF(jobs) : 1); j++) {
        run_group(ranks, 2, jobs[j]);
        double plain = ranks[0].metrics.accuracy;
        print_message("%-9s %.4f\n", j ? "sgd" : "adamw", plain);
        assert_true(plain > 0.95);
        for (size_t m = 0; m < n_long; m++) {
            job wanted = jobs[j];
            wanted.compress = methods[m].options;
            run_group(ranks, 2, wanted);
            const clt_compress_report *report = &ranks[0].report;
            double fewer = report->bytes_uncompressed / report->bytes;
            print_message("%-9s %.4f, %.2f times fewer bytes\n", clt_compression_name(wanted.compress.method),
                          ranks[0].metrics.accuracy, fewer);
            assert_true(ranks[0].metrics.accuracy > plain - 0.01);
            assert_true(fewer >= methods[m].fewer);
        }
    }
}

static job short_job(clt_compress_options compress) {
    return (job){.compress = compress, .optimizer = CLT_SGD, .lr = 0.05f, .epochs = 1};
}

static void a_second_run_has_the_same_bits(void **state) {
    (void)state;
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++) {
        run_group(ranks, 2, short_job(methods[m].options));
        run_group(again, 2, short_job(methods[m].options));
        assert_memory_equal(again[0].values, ranks[0].values, (size_t)ranks[0].n_values * sizeof(float));
    }
}

/* Where little or nothing is left out, compressed training is the other one. */
static void what_leaves_out_nothing_changes_nothing(void **state) {
    (void)state;
    static const struct {
        clt_compress_options options;
        double tolerance;
    } exact[] = {
        {{.method = CLT_COMPRESS_TOPK, .ratio = 1, .f32_values = true, .force = true}, 1e-5},
        {{.method = CLT_COMPRESS_F16}, 2e-3},
        {{.method = CLT_COMPRESS_INT8}, 1e-2},
        {{.method = CLT_COMPRESS_POWERSGD, .rank = 1}, 0.5},
        {{.method = CLT_COMPRESS_POWERSGD, .rank = 3}, 0.25},
    };
    run_group(again, 3, short_job((clt_compress_options){0}));
    for (size_t i = 0; i < CLT_COUNT_OF(exact); i++) {
        run_group(ranks, 3, short_job(exact[i].options));
        double difference = largest_difference(&ranks[0], &again[0]);
        print_message("%s: differs by %.2g\n", clt_compression_name(exact[i].options.method), difference);
        assert_true(difference <= exact[i].tolerance);
    }
}

/* With buckets, clipping and micro-batches it goes on to the same accuracy. */
static void goes_with_everything_else(void **state) {
    (void)state;
    for (size_t m = 0; m < n_long; m++) {
        job wanted = {.compress = methods[m].options, .optimizer = CLT_ADAMW, .lr = 3e-3f, .epochs = EPOCHS, .accumulate = 2,
                   .clip_norm = 1, .bucket_bytes = 8192};
        wanted.checkpoint = support_path("compressed.safetensors");
        run_group(ranks, 3, wanted);
        print_message("%-9s %.4f\n", clt_compression_name(wanted.compress.method), ranks[0].metrics.accuracy);
        assert_true(ranks[0].metrics.accuracy > 0.93);
    }
}

/* What is kept of gradients is of no scale: another one from the second epoch on changes nothing. And the first is forgotten by none. */
static void the_scale_of_the_loss_changes_nothing(void **state) {
    (void)state;
    for (size_t m = 0; m < CLT_COUNT_OF(methods); m++) {
        job wanted = short_job(methods[m].options);
        wanted.epochs = 2;
        run_group(again, 2, wanted);
        wanted.precision = CLT_PRECISION_F16;
        run_group(ranks, 2, wanted);
        assert_true(fabs(ranks[0].metrics.loss - again[0].metrics.loss) < 0.02 * again[0].metrics.loss);
        wanted.loss_scale = 2048;
        run_group(again, 2, wanted);
        double difference = largest_difference(&again[0], &ranks[0]);
        print_message("%-9s differs by %.2g\n", clt_compression_name(wanted.compress.method), difference);
        assert_true(difference <= (wanted.compress.method <= CLT_COMPRESS_BF16 ? 1e-4 : 1e-3));
    }
}

static void nonsense_is_refused(void **state) {
    (void)state;
    clt_device *device;
    clt_graph *g;
    clt_trainer *t;
    assert_ok(clt_device_open(&device, NULL));
    assert_ok(clt_graph_create(&g));
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(4, 3));
    clt_tensor *loss = clt_mean(clt_linear(x, "fc", 2), CLT_ALL_AXES);
    static const struct {
        clt_compress_options options;
        const char *words;
    } cases[] = {{{.method = 99}, "compress.method"},
                 {{.method = CLT_COMPRESS_TOPK, .ratio = 1.5f}, "compress.ratio"},
                 {{.method = CLT_COMPRESS_TOPK, .ratio = NAN}, "compress.ratio"},
                 {{.method = CLT_COMPRESS_POWERSGD, .rank = 33}, "compress.rank"}};
    for (size_t i = 0; i < CLT_COUNT_OF(cases); i++) {
        assert_status(clt_trainer_create(&t, device, loss, &(clt_train_options){.compress = cases[i].options}), CLT_E_INVALID);
        assert_detail(cases[i].words);
    }
    clt_train_options both = {.shard = CLT_SHARD_OPTIMIZER, .compress = {.method = CLT_COMPRESS_INT8}};
    assert_status(clt_trainer_create(&t, device, loss, &both), CLT_E_INVALID);
    assert_detail("shard and compress");
    /* Alone there is nothing to compress. */
    clt_compress_report report;
    assert_ok(clt_trainer_create(&t, device, loss, &(clt_train_options){.compress = {.method = CLT_COMPRESS_TOPK}}));
    assert_status(clt_trainer_compress_report(t, &report), CLT_E_STATE);
    clt_trainer_destroy(t);
    clt_graph_destroy(g);
    clt_device_close(device);
}

/* By all ranks alike. */
static void more_bytes_than_none_are_refused(void **state) {
    (void)state;
    start_group(ranks, 2, short_job((clt_compress_options){.method = CLT_COMPRESS_TOPK, .ratio = 1, .f32_values = true}));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].status, CLT_E_INVALID);
        assert_non_null(strstr(ranks[i].detail, "compression by topk sends "));
        assert_non_null(strstr(ranks[i].detail, "from each of 2 ranks, none at all "));
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "all")) n_long = CLT_COUNT_OF(methods);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy_is_kept),
        cmocka_unit_test(a_second_run_has_the_same_bits),
        cmocka_unit_test(what_leaves_out_nothing_changes_nothing),
        cmocka_unit_test(goes_with_everything_else),
        cmocka_unit_test(the_scale_of_the_loss_changes_nothing),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(more_bytes_than_none_are_refused),
    };
    return cmocka_run_group_tests_name("compress", tests, open_all, close_all);
}
