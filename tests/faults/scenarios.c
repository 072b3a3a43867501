#include "tests/faults/scenarios.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/measure.h>
#include <cltrain/probe.h>

#include "runtime/base/thread.h"
#include "tests/comm/threads.h"

const char *scenario_folder;

#define TRY(expression)                 \
    do {                                \
        status = (expression);          \
        if (status < 0) goto done;      \
    } while (0)

static void add(digest *d, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    if (!d->hash) d->hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) d->hash = (d->hash ^ at[i]) * 1099511628211u;
}

static void add_text(digest *d, const char *text) {
    add(d, text, strlen(text) + 1);
}

static void path_of(char path[512], const char *name) {
    snprintf(path, 512, "%s/%s", scenario_folder, name);
}

/* ---- models ---- */

enum { BATCH = 8, CLASSES = 4, SAMPLES = 44 };

typedef struct model {
    clt_graph *graph;
    clt_tensor *output, *loss;
    clt_dataset *data;
    clt_loader *loader;
    clt_trainer *trainer;
} model;

static clt_tensor *mlp(clt_graph *g, clt_tensor **label) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, 6, 6));
    *label = clt_input(g, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_linear(clt_flatten(x), "fc1", 12));
    return clt_linear(clt_dropout(h, 0.25f), "fc2", CLASSES);
}

static clt_tensor *convnet(clt_graph *g, clt_tensor **label) {
    clt_tensor *x = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 1, 6, 6));
    *label = clt_input(g, "label", CLT_I32, CLT_SHAPE(BATCH));
    clt_tensor *h = clt_relu(clt_batch_norm(clt_conv2d(x, "conv", 8, .kernel = 3, .padding = 1), "bn"));
    return clt_linear(clt_flatten(clt_max_pool2d(h, .kernel = 2)), "fc", CLASSES);
}

typedef clt_tensor *(*make_model)(clt_graph *g, clt_tensor **label);

static clt_status model_create(model *m, clt_device *device, make_model make, clt_train_options options,
                               clt_loader_options loading) {
    clt_status status;
    clt_tensor *label;
    TRY(clt_dataset_synthetic(&m->data, CLT_SHAPE(1, 6, 6), CLASSES, SAMPLES, 3));
    loading.batch = loading.batch ? loading.batch : BATCH;
    loading.shuffle = true;
    TRY(clt_loader_create(&m->loader, m->data, &loading));
    TRY(clt_graph_create(&m->graph));
    m->output = make(m->graph, &label);
    m->loss = clt_cross_entropy(m->output, label);
    options.output = m->output;
    TRY(clt_trainer_create(&m->trainer, device, m->loss, &options));
done:
    return status;
}

static void model_destroy(model *m) {
    clt_trainer_destroy(m->trainer);
    clt_graph_destroy(m->graph);
    clt_loader_destroy(m->loader);
    clt_dataset_destroy(m->data);
}

/* So many batches, over the ends of epochs. */
static clt_status train(model *m, int batches) {
    clt_status status = CLT_OK;
    clt_batch batch;
    while (batches > 0) {
        TRY(clt_loader_next(m->loader, &batch));
        if (status == CLT_END) continue;
        TRY(clt_trainer_step(m->trainer, &batch));
        batches--;
    }
done:
    return status < 0 ? status : CLT_OK;
}

static clt_status add_values(digest *d, clt_trainer *t, const char *name, size_t count) {
    float values[1024];
    clt_status status = clt_trainer_get(t, name, values, count);
    if (status == CLT_OK) add(d, values, count * sizeof *values);
    return status;
}

static clt_status add_mlp(digest *d, model *m) {
    clt_status status;
    TRY(add_values(d, m->trainer, "fc1.weight", 36 * 12));
    TRY(add_values(d, m->trainer, "fc1.bias", 12));
    TRY(add_values(d, m->trainer, "fc2.weight", 12 * CLASSES));
done:
    return status;
}

static clt_status add_convnet(digest *d, model *m) {
    clt_status status;
    TRY(add_values(d, m->trainer, "conv.weight", 72));
    TRY(add_values(d, m->trainer, "bn.running_var", 8));
    TRY(add_values(d, m->trainer, "fc.weight", 72 * CLASSES));
done:
    return status;
}

static clt_status evaluate(model *m, digest *d) {
    clt_status status;
    clt_batch batch;
    clt_metrics metrics;
    float result[BATCH * CLASSES];
    TRY(clt_trainer_train_metrics(m->trainer, &metrics, true));
    add(d, &metrics.loss, sizeof metrics.loss);
    do TRY(clt_loader_next(m->loader, &batch));
    while (status == CLT_END || batch.samples != BATCH);
    TRY(clt_trainer_evaluate(m->trainer, &batch));
    TRY(clt_trainer_eval_metrics(m->trainer, &metrics, false));
    add(d, &metrics.loss, sizeof metrics.loss);
    add(d, &metrics.accuracy, sizeof metrics.accuracy);
    TRY(clt_trainer_predict(m->trainer, m->output, &batch, result, BATCH * CLASSES));
    add(d, result, sizeof result);
done:
    return status;
}

/* ---- opening, and what a device tells ---- */

static void add_info(digest *d, const clt_device_info *info) {
    add_text(d, info->id);
    add_text(d, info->name);
    add_text(d, info->unusable);
    add(d, &info->memory_bytes, sizeof info->memory_bytes);
    add(d, &info->max_buffer_bytes, sizeof info->max_buffer_bytes);
    add(d, &info->local_memory_bytes, sizeof info->local_memory_bytes);
    add(d, &info->unified_memory, sizeof info->unified_memory);
}

static clt_status run_open(clt_device *device, digest *d) {
    clt_status status;
    clt_device_info *infos = NULL;
    size_t count = 0;
    clt_device_facts facts = {0};
    bool wrong;
    TRY(clt_device_enumerate(&infos, &count));
    if (!count) {
        status = CLT_E_NO_DEVICE;
        goto done;
    }
    TRY(clt_device_open(&device, NULL));
    add_info(d, clt_device_get_info(device));
    TRY(clt_device_get_facts(device, &facts, &wrong));
    add(d, &facts, sizeof facts);
done:
    clt_device_infos_free(infos);
    clt_device_close(device);
    return status;
}

/* A capability is a matter of yes and no: a question that failed is answered with no, but not for good. */
static clt_status run_capabilities(clt_device *device, digest *d) {
    static const clt_capability asked[] = {CLT_CAP_FP16, CLT_CAP_FP64, CLT_CAP_BF16_STORAGE};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) d->words[i] = clt_device_has(device, asked[i]) ? '1' : '0';
    return CLT_OK;
}

/* ---- training ---- */

static clt_status run_mlp(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAM, .clip_norm = 0.5f, .seed = 5};
    clt_status status = model_create(&m, device, mlp, options, (clt_loader_options){0});
    if (status == CLT_OK) status = train(&m, 4);
    if (status == CLT_OK) status = evaluate(&m, d);
    if (status == CLT_OK) status = add_mlp(d, &m);
    model_destroy(&m);
    return status;
}

/* Batches of two sizes, and updates of two micro-batches each. */
static clt_status run_convnet(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAMW, .clip_value = 0.1f, .accumulate = 2, .seed = 5};
    clt_status status = model_create(&m, device, convnet, options, (clt_loader_options){0});
    if (status == CLT_OK) status = train(&m, 6);
    if (status == CLT_OK) status = evaluate(&m, d);
    if (status == CLT_OK) status = add_convnet(d, &m);
    model_destroy(&m);
    return status;
}

/* After an error the same call once more: it goes on and ends with the same bits, or says that it cannot. */
static clt_status step_again(clt_trainer *t, const clt_batch *batch) {
    clt_status status = clt_trainer_step(t, batch);
    return status < 0 ? clt_trainer_step(t, batch) : status;
}

static clt_status run_again(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_SGD, .momentum = 0.9f, .seed = 5};
    clt_batch batch;
    clt_status status;
    TRY(model_create(&m, device, convnet, options, (clt_loader_options){0}));
    for (int i = 0; i < 3; i++) {
        TRY(clt_loader_next(m.loader, &batch));
        TRY(step_again(m.trainer, &batch));
    }
    TRY(add_convnet(d, &m));
done:
    model_destroy(&m);
    return status;
}

/* ---- checkpoints ---- */

static const clt_train_options saved = {.optimizer = CLT_ADAM, .seed = 5};

static clt_status save(clt_device *device, const char *path) {
    model m = {0};
    clt_status status = model_create(&m, device, mlp, saved, (clt_loader_options){0});
    if (status == CLT_OK) status = train(&m, 2);
    if (status == CLT_OK) status = clt_checkpoint_save(m.trainer, m.loader, path);
    model_destroy(&m);
    return status;
}

static clt_status resume(clt_device *device, const char *path, digest *d) {
    model m = {0};
    char weights[512];
    path_of(weights, "weights.safetensors");
    clt_status status = model_create(&m, device, mlp, saved, (clt_loader_options){0});
    if (status == CLT_OK) status = clt_checkpoint_load(m.trainer, m.loader, path);
    if (status == CLT_OK) status = train(&m, 2);
    if (status == CLT_OK) status = clt_weights_save(m.trainer, weights);
    if (status == CLT_OK) status = add_mlp(d, &m);
    model_destroy(&m);
    return status;
}

static clt_status run_checkpoint(clt_device *device, digest *d) {
    char path[512];
    path_of(path, "checkpoint.safetensors");
    remove(path);
    clt_status status = save(device, path);
    return status == CLT_OK ? resume(device, path, d) : status;
}

/* A checkpoint that was there before a fault can be loaded after it: the old or the new one, whole. */
static clt_status run_overwrite(clt_device *device, digest *d) {
    char path[512];
    path_of(path, "overwritten.safetensors");
    clt_status status = save(device, path);
    if (status == CLT_OK) status = resume(device, path, d);
    return status;
}

/* ---- looking on ---- */

static clt_status run_profile(clt_device *device, digest *d) {
    model m = {0};
    clt_profile *profile = NULL;
    char path[512];
    size_t count;
    clt_status status;
    path_of(path, "trace.json");
    TRY(model_create(&m, device, mlp, saved, (clt_loader_options){0}));
    TRY(train(&m, 1));
    TRY(clt_profile_start(&profile, device));
    TRY(train(&m, 1));
    TRY(clt_profile_stop(profile));
    const clt_profile_row *rows = clt_profile_rows(profile, &count);
    for (size_t i = 0; i < count; i++)
        if (!(rows[i].seconds > 0)) snprintf(d->words, sizeof d->words, "%s took %g s", rows[i].op, rows[i].seconds);
    TRY(clt_profile_save_trace(profile, path));
    TRY(train(&m, 1));
    TRY(add_mlp(d, &m));
done:
    clt_profile_destroy(profile);
    model_destroy(&m);
    return status;
}

static clt_status run_limits(clt_device *device, digest *d) {
    /* One of each way of measuring. */
    static const clt_limit limits[] = {CLT_LIMIT_LAUNCH_WAITED, CLT_LIMIT_DOWNLOAD_PINNED, CLT_LIMIT_BUILD_CACHED};
    const clt_measure_options options = {.seconds = 1e-4, .most_samples = 1};
    clt_measurement m;
    clt_status status = CLT_OK;
    for (size_t i = 0; i < sizeof limits / sizeof *limits && status == CLT_OK; i++) {
        status = clt_measure_limit(device, limits[i], &options, &m);
        if (status == CLT_OK) add(d, &limits[i], sizeof limits[i]);
    }
    return status;
}

static clt_status run_checks(clt_device *device, digest *d) {
    clt_check_report report = {0};
    clt_status status;
    TRY(clt_check_memory(device, 4 << 20, 7, &report));
    TRY(clt_check_arithmetic(device, 7, &report));
    snprintf(d->words, sizeof d->words, "%llu errors in %llu values", (unsigned long long)report.errors,
             (unsigned long long)report.values);
done:
    return status;
}

/* ---- one function of a graph, on a device whose buffers are fenced ---- */

static clt_status run_trial(clt_device *device, digest *d) {
    clt_graph *g = NULL;
    clt_trial *trial = NULL;
    const char *const wrt[] = {"x", "fc.weight"};
    const clt_trial_options options = {.wrt = wrt, .n_wrt = 2};
    float x[BATCH * 6], weight[6 * CLASSES], seed[BATCH * CLASSES], y[BATCH * CLASSES];
    clt_status status;
    for (int i = 0; i < BATCH * 6; i++) x[i] = 0.1f * (float)(i % 11) - 0.5f;
    for (int i = 0; i < 6 * CLASSES; i++) weight[i] = 0.2f * (float)(i % 7) - 0.6f;
    for (int i = 0; i < BATCH * CLASSES; i++) seed[i] = 0.3f * (float)(i % 5);
    TRY(clt_device_fence(device));
    TRY(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 6));
    TRY(clt_trial_create(&trial, device, clt_softmax(clt_linear(in, "fc", CLASSES), 1), &options));
    TRY(clt_trial_set(trial, "x", x, sizeof x));
    TRY(clt_trial_set(trial, "fc.weight", weight, sizeof weight));
    TRY(clt_trial_set(trial, NULL, seed, sizeof seed));
    TRY(clt_trial_run(trial));
    TRY(clt_trial_get(trial, NULL, y, sizeof y));
    add(d, y, sizeof y);
    TRY(clt_trial_gradient(trial, "x", x, BATCH * 6));
    TRY(clt_trial_gradient(trial, "fc.weight", weight, 6 * CLASSES));
    add(d, x, sizeof x);
    add(d, weight, sizeof weight);
    TRY(clt_device_fence_check(device));
done:
    clt_trial_destroy(trial);
    clt_graph_destroy(g);
    return status;
}

/* ---- tuning ---- */

static clt_status run_problem(clt_device *device, digest *d) {
    static const char *const problems[] = {"conv2d k3 s1 p1 d1 g1 8x1x6x6 8x1x3x3 -> 8x8x6x6",
                                           "matmul 8x36 36x12 -> 8x12"};
    const clt_problem_options options = {.measure = {.seconds = 1e-4, .most_samples = 1}};
    clt_problem_measurement m;
    clt_status status = CLT_OK;
    for (size_t i = 0; i < sizeof problems / sizeof *problems && status == CLT_OK; i++) {
        status = clt_measure_problem(device, problems[i], &options, &m);
        if (status == CLT_OK) add_text(d, m.backend);
    }
    return status;
}

static clt_status run_tune(clt_device *device, digest *d) {
    model m = {0};
    const clt_tune_options tune = {.budget_seconds = 0.05};
    clt_status status;
    TRY(model_create(&m, device, mlp, saved, (clt_loader_options){0}));
    TRY(clt_tune_model(device, m.loss, &saved, &tune));
    TRY(train(&m, 1));
    TRY(add_mlp(d, &m));
done:
    model_destroy(&m);
    return status;
}

/* ---- what is not finite ---- */

/* The origin of what is not finite, named; then the weight as it was, and training goes on. */
static clt_status run_nonfinite(clt_device *device, digest *d) {
    model m = {0};
    const clt_train_options options = {.optimizer = CLT_ADAM, .on_nonfinite = CLT_NONFINITE_SKIP, .seed = 5};
    float weight[12], spoiled[12];
    clt_nonfinite_origin origin = {0};
    clt_batch batch;
    clt_status status;
    TRY(model_create(&m, device, mlp, options, (clt_loader_options){0}));
    TRY(train(&m, 1));
    TRY(clt_loader_next(m.loader, &batch));
    TRY(clt_trainer_get(m.trainer, "fc1.bias", weight, 12));
    memcpy(spoiled, weight, sizeof spoiled);
    spoiled[7] = NAN;
    TRY(clt_trainer_set(m.trainer, "fc1.bias", spoiled, 12));
    TRY(clt_trainer_locate_nonfinite(m.trainer, &batch, &origin));
    add_text(d, origin.words);
    TRY(clt_trainer_step(m.trainer, &batch)); /* is skipped */
    TRY(clt_trainer_set(m.trainer, "fc1.bias", weight, 12));
    TRY(train(&m, 2));
    TRY(add_mlp(d, &m));
done:
    model_destroy(&m);
    return status;
}

/* ---- a device that is watched ---- */

static clt_status run_watched(clt_device *device, digest *d) {
    clt_status status = clt_device_set_timeout(device, 60);
    if (status == CLT_OK) status = run_mlp(device, d);
    clt_status ended = clt_device_set_timeout(device, 0);
    return status < 0 ? status : ended;
}

/* ---- predicting ---- */

static clt_status run_predict(clt_device *device, digest *d) {
    model m = {0};
    clt_times *times = NULL;
    clt_prediction p;
    clt_step_memory memory;
    clt_batch batch;
    int64_t largest;
    char reason[256], path[512];
    clt_status status;
    path_of(path, "times.jsonl");
    remove(path);
    TRY(model_create(&m, device, mlp, saved, (clt_loader_options){0}));
    TRY(clt_loader_next(m.loader, &batch));
    TRY(clt_times_open(&times, device, path));
    TRY(clt_times_measure(times, m.trainer, &batch, 1));
    TRY(clt_times_save(times));
    TRY(clt_predict_step(times, m.loss, &saved, BATCH, NULL, NULL, &p));
    add(d, &p.launches, sizeof p.launches);
    TRY(clt_predict_memory(device, m.loss, &saved, 3 * BATCH, &memory));
    add(d, &memory.total, sizeof memory.total);
    TRY(clt_largest_batch(device, m.loss, &saved, 1 << 20, &largest, reason));
    add(d, &largest, sizeof largest);
done:
    clt_times_close(times);
    model_destroy(&m);
    return status;
}

/* ---- ranks, threads with a device each ---- */

enum { RANKS = 2, MOST_RANKS = 3 };

typedef struct rank_thread {
    int rank, ranks;
    bool network;
    bool lose_one; /* rank 1 dies before its third step, and the others go on */
    clt_comm *comm;
    digest digest;
    clt_status status;
    char detail[1024];
    char store[600];
} rank_thread;

static clt_status join(rank_thread *r) {
    const clt_comm_options options = {.rank = r->rank, .size = r->ranks, .store = r->store, .job = "faults", .network = "127.0.0.1",
                                      .security = CLT_SECURITY_NONE, .connect_seconds = 3, .timeout_seconds = 20,
                                      .heartbeat_seconds = 5};
    return r->network ? clt_comm_create(&r->comm, &options) : CLT_OK;
}

static clt_status go_on_without(rank_thread *r, model *m) {
    clt_comm *survivors;
    clt_status status = clt_comm_shrink(r->comm, &survivors);
    if (status < 0) return status;
    status = clt_trainer_recover(m->trainer, m->loader, survivors);
    clt_comm_destroy(r->comm);
    r->comm = survivors;
    return status;
}

static clt_status train_on(rank_thread *r, model *m) {
    if (!r->lose_one) return train(m, 3);
    clt_status status = train(m, 2);
    if (status < 0) return status;
    if (r->rank == 1) return clt_test_group_lose(r->comm), CLT_END;
    status = train(m, 1);
    if (status == CLT_E_PEER) status = go_on_without(r, m);
    return status == CLT_OK ? train(m, 2) : status;
}

static clt_status train_together(rank_thread *r, clt_device *device) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAM, .clip_norm = 0.5f, .seed = 5, .comm = r->comm, .bucket_bytes = 512,
                                 .recoverable = r->lose_one};
    clt_metrics metrics;
    clt_loader_options loading = {.batch = BATCH * r->ranks, .rank = r->rank, .ranks = r->ranks};
    clt_status status = model_create(&m, device, mlp, options, loading);
    if (status == CLT_OK) status = train_on(r, &m);
    if (status == CLT_OK) status = clt_trainer_train_metrics(m.trainer, &metrics, true);
    if (status == CLT_OK) status = add_mlp(&r->digest, &m);
    model_destroy(&m);
    return status;
}

static void *run_rank(void *argument) {
    rank_thread *r = argument;
    clt_device *device = NULL;
    r->status = join(r);
    if (r->status == CLT_OK) r->status = clt_device_open(&device, NULL);
    if (r->status == CLT_OK) r->status = train_together(r, device);
    if (r->status < 0) snprintf(r->detail, sizeof r->detail, "%s", clt_error_detail());
    if (r->status < 0 && r->lose_one && r->comm) clt_test_group_lose(r->comm); /* nobody waits for it */
    clt_comm_destroy(r->comm);
    clt_device_close(device);
    return NULL;
}

static clt_status run_threads(rank_thread *ranks, digest *d) {
    clt_thread threads[MOST_RANKS];
    int started = 0, n = ranks[0].ranks;
    clt_status status = CLT_OK;
    for (; started < n && status == CLT_OK; started += status == CLT_OK)
        status = clt_thread_start(&threads[started], run_rank, &ranks[started]);
    for (int i = started; i < n; i++) {
        if (ranks[i].lose_one) clt_test_group_lose(ranks[i].comm);
        clt_comm_destroy(ranks[i].comm);
    }
    for (int i = 0; i < started; i++) clt_thread_join(threads[i]);
    for (int i = 0; i < started && status == CLT_OK; i++) {
        status = CLT_MIN(ranks[i].status, CLT_OK);
        if (status < 0) clt_fail_again(status, ranks[i].detail);
    }
    if (status == CLT_OK && ranks[0].digest.hash != ranks[n - 1].digest.hash)
        snprintf(d->words, sizeof d->words, "the ranks' bits differ");
    d->hash = ranks[0].digest.hash;
    return status;
}

static clt_status run_group(int n, bool lose_one, digest *d) {
    rank_thread ranks[MOST_RANKS];
    clt_comm *comms[MOST_RANKS];
    clt_status status = clt_test_group(comms, n, 20);
    if (status < 0) return status;
    for (int i = 0; i < n; i++) ranks[i] = (rank_thread){.rank = i, .ranks = n, .lose_one = lose_one, .comm = comms[i]};
    return run_threads(ranks, d);
}

static clt_status run_ranks(clt_device *device, digest *d) {
    (void)device;
    return run_group(RANKS, false, d);
}

static clt_status run_recover(clt_device *device, digest *d) {
    (void)device;
    return run_group(MOST_RANKS, true, d);
}

static clt_status run_network(clt_device *device, digest *d) {
    static int number;
    rank_thread ranks[RANKS];
    (void)device;
    number++;
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (rank_thread){.rank = i, .ranks = RANKS, .network = true};
        snprintf(ranks[i].store, sizeof ranks[i].store, "file://%s/store%d", scenario_folder, number);
    }
    return run_threads(ranks, d);
}

/* ---- data ---- */

static clt_status write_csv(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return clt_fail(CLT_E_IO, "the test cannot write %s", path);
    fprintf(file, "a,b,\"c\",class\n");
    for (int i = 0; i < 40; i++) fprintf(file, "%d.5,%d,-%d,%d\n", i, i * i, i, i % 3);
    fclose(file);
    return CLT_OK;
}

static clt_status run_data(clt_device *device, digest *d) {
    clt_dataset *table = NULL, *digits = NULL, *parts[2] = {NULL, NULL};
    clt_loader *loader = NULL;
    clt_batch batch;
    char path[512];
    clt_status status;
    (void)device;
    path_of(path, "table.csv");
    TRY(write_csv(path));
    TRY(clt_dataset_csv(&table, path, &(clt_csv_options){.label = "class"}));
    TRY(clt_dataset_digits(&digits));
    TRY(clt_dataset_split(table, (const double[]){0.75, 0.25}, 2, 9, parts));
    TRY(clt_dataset_standardize(parts[1], parts[0]));
    TRY(clt_loader_create(&loader, parts[1], &(clt_loader_options){.batch = 4, .shuffle = true}));
    while ((status = clt_loader_next(loader, &batch)) == CLT_OK)
        add(d, batch.fields[0].data, (size_t)batch.samples * 3 * sizeof(float));
done:
    clt_loader_destroy(loader);
    for (int i = 0; i < 2; i++) clt_dataset_destroy(parts[i]);
    clt_dataset_destroy(digits);
    clt_dataset_destroy(table);
    return status < 0 ? status : CLT_OK;
}

const scenario scenarios[] = {
    {"open", .opens = true, .run = run_open},
    {"capabilities", .cold = true, .mute = true, .run = run_capabilities},
    {"mlp", .run = run_mlp},
    {"convnet", .run = run_convnet},
    {"again", .run = run_again},
    {"build", .cold = true, .run = run_mlp},
    {"checkpoint", .run = run_checkpoint},
    {"overwrite", .run = run_overwrite},
    {"profile", .timed = true, .run = run_profile},
    {"limits", .slow = true, .timed = true, .run = run_limits},
    {"checks", .run = run_checks},
    {"problem", .timed = true, .run = run_problem},
    {"tune", .slow = true, .cold = true, .timed = true, .run = run_tune},
    {"nonfinite", .run = run_nonfinite},
    {"watched", .timed = true, .run = run_watched},
    {"trial", .run = run_trial},
    {"predict", .timed = true, .run = run_predict},
    {"ranks", .opens = true, .timed = true, .run = run_ranks},
    {"recover", .opens = true, .timed = true, .run = run_recover},
    {"network", .opens = true, .timed = true, .run = run_network},
    {"data", .run = run_data},
};
const size_t n_scenarios = sizeof scenarios / sizeof *scenarios;
