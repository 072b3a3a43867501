#include "tests/faults/scenarios.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/experimental/bundle.h>
#include <cltrain/experimental/measure.h>
#include <cltrain/experimental/predict.h>
#include <cltrain/experimental/probe.h>
#include <cltrain/experimental/trial.h>

#include "runtime/device/cl.h"
#include "tests/faults/model.h"

const char *scenario_folder;

/* ---- opening, and what a device tells ---- */

static void add_info(digest *d, const clt_device_info *info) {
    digest_add_text(d, info->id);
    digest_add_text(d, info->name);
    digest_add_text(d, info->unusable);
    digest_add(d, &info->memory_bytes, sizeof info->memory_bytes);
    digest_add(d, &info->max_buffer_bytes, sizeof info->max_buffer_bytes);
    digest_add(d, &info->local_memory_bytes, sizeof info->local_memory_bytes);
    digest_add(d, &info->unified_memory, sizeof info->unified_memory);
}

static clt_status run_open(clt_device *device, digest *d) {
    clt_status status;
    clt_device_info *infos = NULL;
    size_t count = 0, chosen = 0;
    clt_device_facts facts = {0};
    bool wrong;
    TRY(clt_device_enumerate(&infos, &count));
    if (!count) {
        status = CLT_E_NO_DEVICE;
        goto done;
    }
    TRY(clt_device_select(infos, count, NULL, &chosen));
    add_info(d, &infos[chosen]);
    TRY(clt_device_open(&device, NULL));
    add_info(d, clt_device_get_info(device));
    if (clt_device_peak_bytes(device) < clt_device_bytes(device)) snprintf(d->words, sizeof d->words, "no peak");
    TRY(clt_device_get_facts(device, &facts, &wrong));
    digest_add(d, &facts, sizeof facts);
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

/* ---- bundles ---- */

static const clt_module bundled = {.text = "kernel void three(global float *x) { x[get_global_id(0)] = 3; }\n", .label = "three.cl", .separable = true};

static clt_status write_bundle(const char *folder) {
    clt_device *device = NULL;
    clt_status status;
    TRY(clt_device_open_with(&device, &(clt_settings){.program_cache = "off"}));
    TRY(clt_bundle_begin(device));
    TRY(clt_device_build_kernels(device, &bundled, 1, &(clt_wanted){0, "three"}, 1));
    TRY(clt_bundle_write(device, folder));
done:
    clt_device_close(device);
    return status;
}

static clt_status run_bundle(clt_device *device, digest *d) {
    char folder[4096];
    float x[4] = {0};
    clt_status status;
    clt_kernel *kernel = NULL;
    clt_memory *memory = NULL;
    snprintf(folder, sizeof folder, "%.3000s/bundle", scenario_folder);
    TRY(write_bundle(folder));
    TRY(clt_device_open_with(&device, &(clt_settings){.bundle = folder, .compiler = "never"}));
    TRY(clt_device_build_kernels(device, &bundled, 1, &(clt_wanted){0, "three"}, 1));
    TRY(clt_kernel_create(device, &bundled, "three", &kernel));
    TRY(clt_memory_create(device, sizeof x, &memory));
    TRY(clt_kernel_set_memory(kernel, 0, memory));
    TRY(clt_kernel_enqueue(kernel, 1, (size_t[]){4}, NULL));
    TRY(clt_memory_read(memory, 0, x, sizeof x));
    digest_add(d, x, sizeof x);
done:
    clt_memory_destroy(memory);
    clt_kernel_destroy(kernel);
    clt_device_close(device);
    return status;
}

/* ---- training ---- */

static clt_status run_mlp(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAM, .clip_norm = 0.5f, .seed = 5};
    clt_status status = model_create(&m, device, model_mlp, options, (clt_loader_options){0});
    if (status == CLT_OK) status = model_train(&m, 4);
    if (status == CLT_OK) status = model_evaluate(&m, d);
    if (status == CLT_OK) status = digest_add_mlp(d, &m);
    model_destroy(&m);
    return status;
}

/* Batches of two sizes, and updates of two micro-batches each. */
static clt_status run_convnet(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAMW, .clip_value = 0.1f, .accumulate = 2, .seed = 5};
    clt_status status = model_create(&m, device, model_convnet, options, (clt_loader_options){0});
    if (status == CLT_OK) status = model_train(&m, 6);
    if (status == CLT_OK) status = model_evaluate(&m, d);
    if (status == CLT_OK) status = digest_add_convnet(d, &m);
    model_destroy(&m);
    return status;
}

/* As much as can be of forward is computed twice. */
static clt_status run_recompute(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_ADAMW, .recompute = CLT_RECOMPUTE_ALL, .seed = 5};
    clt_status status = model_create(&m, device, model_convnet, options, (clt_loader_options){0});
    if (status == CLT_OK) status = model_train(&m, 2);
    if (status == CLT_OK) status = digest_add_convnet(d, &m);
    model_destroy(&m);
    return status;
}

/* The optimizer's state, parameters and activations lie in the host's memory; a checkpoint reads them there. */
static clt_status run_offload(clt_device *device, digest *d) {
    model m = {0};
    char path[512];
    clt_train_options options = {.optimizer = CLT_ADAM, .offload = CLT_OFFLOAD_ALL, .seed = 5};
    scenario_path(path, "offload.safetensors");
    clt_status status = model_create(&m, device, model_mlp, options, (clt_loader_options){0});
    if (status == CLT_OK) status = model_train(&m, 2);
    if (status == CLT_OK) status = clt_checkpoint_save(m.trainer, m.loader, path);
    if (status == CLT_OK) status = clt_checkpoint_load(m.trainer, m.loader, path);
    if (status == CLT_OK) status = model_train(&m, 2);
    if (status == CLT_OK) status = digest_add_mlp(d, &m);
    model_destroy(&m);
    return status;
}

/* By transfers on a queue of their own, as where host and device have memory of their own. */
static clt_status run_offload_apart(clt_device *device, digest *d) {
    bool unified = device->info.unified_memory;
    device->info.unified_memory = false;
    clt_status status = run_offload(device, d);
    device->info.unified_memory = unified;
    return status;
}

/* After an error the same call once more: it goes on and ends with the same bits, or says that it cannot. */
#define TRY_AGAIN(expression)                       \
    do {                                            \
        status = (expression);                      \
        if (status < 0) status = (expression);      \
        if (status < 0) goto done;                  \
    } while (0)

static clt_status read_again(model *m, digest *d) {
    clt_metrics all[2] = {{0}};
    clt_status status;
    TRY_AGAIN(clt_trainer_train_metrics(m->trainer, &all[0], true));
    TRY_AGAIN(clt_trainer_eval_metrics(m->trainer, &all[1], true));
    for (int i = 0; i < 2; i++) {
        double told[] = {all[i].loss, all[i].accuracy, (double)all[i].samples, (double)all[i].skipped};
        digest_add(d, told, sizeof told);
    }
done:
    return status;
}

static clt_status run_again(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {.optimizer = CLT_SGD, .momentum = 0.9f, .seed = 5};
    clt_batch batch;
    clt_status status;
    TRY(model_create(&m, device, model_convnet, options, (clt_loader_options){0}));
    for (int i = 0; i < 3; i++) {
        TRY(clt_loader_next(m.loader, &batch));
        TRY_AGAIN(clt_trainer_step(m.trainer, &batch));
        TRY_AGAIN(clt_trainer_evaluate(m.trainer, &batch));
    }
    TRY(read_again(&m, d));
    TRY(digest_add_convnet(d, &m));
done:
    model_destroy(&m);
    return status;
}

/* With a step that is left out, and one that adds up two batches, both looked at behind them. */
static clt_status run_located(clt_device *device, digest *d) {
    model m = {0};
    clt_train_options options = {
        .optimizer = CLT_ADAM, .on_nonfinite = CLT_NONFINITE_SKIP, .locate_nonfinite = true, .accumulate = 2, .seed = 5};
    float weight[12], spoiled[12];
    clt_batch batch;
    clt_status status;
    TRY(model_create(&m, device, model_mlp, options, (clt_loader_options){0}));
    TRY(clt_loader_next(m.loader, &batch));
    TRY(clt_trainer_get(m.trainer, "fc1.bias", weight, 12));
    memcpy(spoiled, weight, sizeof spoiled);
    spoiled[7] = NAN;
    for (int i = 0; i < 4; i++) {
        TRY(clt_trainer_set(m.trainer, "fc1.bias", i == 0 ? spoiled : weight, 12));
        TRY_AGAIN(clt_trainer_step(m.trainer, &batch));
    }
    TRY(read_again(&m, d));
    TRY(digest_add_mlp(d, &m));
done:
    model_destroy(&m);
    return status;
}

/* ---- checkpoints ---- */

static const clt_train_options saved = {.optimizer = CLT_ADAM, .seed = 5};

static clt_status save(clt_device *device, const char *path) {
    model m = {0};
    clt_status status = model_create(&m, device, model_mlp, saved, (clt_loader_options){0});
    if (status == CLT_OK) status = model_train(&m, 2);
    if (status == CLT_OK) status = clt_checkpoint_save(m.trainer, m.loader, path);
    model_destroy(&m);
    return status;
}

static clt_status resume(clt_device *device, const char *path, digest *d) {
    model m = {0};
    char weights[512];
    scenario_path(weights, "weights.safetensors");
    clt_status status = model_create(&m, device, model_mlp, saved, (clt_loader_options){0});
    if (status == CLT_OK) status = clt_checkpoint_load(m.trainer, m.loader, path);
    if (status == CLT_OK) status = model_train(&m, 2);
    if (status == CLT_OK) status = clt_weights_save(m.trainer, weights);
    if (status == CLT_OK) status = digest_add_file(d, weights);
    if (status == CLT_OK) status = clt_weights_load_matching(m.trainer, weights, NULL, NULL);
    if (status == CLT_OK) status = digest_add_mlp(d, &m);
    model_destroy(&m);
    return status;
}

static clt_status run_checkpoint(clt_device *device, digest *d) {
    char path[512];
    scenario_path(path, "checkpoint.safetensors");
    remove(path);
    clt_status status = save(device, path);
    if (status == CLT_OK) status = digest_add_file(d, path);
    return status == CLT_OK ? resume(device, path, d) : status;
}

/* A checkpoint that was there before a fault can be loaded after it: the old or the new one, whole. */
static clt_status run_overwrite(clt_device *device, digest *d) {
    char path[512];
    scenario_path(path, "overwritten.safetensors");
    clt_status status = save(device, path);
    if (status == CLT_OK) status = digest_add_file(d, path);
    if (status == CLT_OK) status = resume(device, path, d);
    return status;
}

static clt_tensor *make_adapted(clt_graph *g, clt_tensor **label) {
    clt_tensor *output = model_mlp(g, label);
    clt_graph_set_trained(g, "*", false);
    clt_graph_add_lora(g, "fc?.weight", &(clt_lora_options){.rank = 2, .dropout = 0.25f}); /* an error is the graph's, too */
    return output;
}

/* Adapters and the average of their values; the files of both, and who goes on from the folder. */
static clt_status run_lora(clt_device *device, digest *d) {
    model m = {0}, other = {0};
    clt_graph *graph = NULL;
    clt_predictor *p = NULL;
    char folder[512], merged[512], path[512];
    clt_status status;
    clt_train_options options = saved;
    options.average = 0.5f;
    scenario_path(folder, "lora");
    scenario_path(merged, "merged.safetensors");
    scenario_path(path, "lora/adapter_model.safetensors");
    TRY(model_create(&m, device, make_adapted, options, (clt_loader_options){0}));
    TRY(model_train(&m, 2));
    TRY(clt_trainer_use_average(m.trainer, true));
    TRY(clt_lora_save(m.trainer, folder));
    TRY(clt_weights_save(m.trainer, merged));
    TRY(clt_trainer_use_average(m.trainer, false));
    TRY(digest_add_file(d, path));
    TRY(digest_add_file(d, merged));
    TRY(digest_add_mlp(d, &m));
    TRY(model_create(&other, device, model_mlp, saved, (clt_loader_options){0}));
    clt_trainer_destroy(other.trainer);
    other.trainer = NULL;
    TRY(clt_graph_add_lora_of(other.graph, folder));
    TRY(clt_trainer_create(&other.trainer, device, other.loss, &saved));
    TRY(clt_lora_load(other.trainer, folder));
    TRY(model_train(&other, 1));
    TRY(digest_add_values(d, other.trainer, "fc1.lora_B.weight", 12 * 2));
    scenario_path(path, "adapted.safetensors");
    TRY(clt_checkpoint_save(m.trainer, NULL, path));
    TRY(clt_graph_create(&graph));
    clt_tensor *label, *output = model_mlp(graph, &label);
    TRY(clt_graph_add_lora_in(graph, path));
    TRY(clt_predictor_create(&p, device, output, &(clt_predictor_options){.weights = path}));
done:
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    model_destroy(&other);
    model_destroy(&m);
    return status;
}

static clt_status run_predictor(clt_device *device, digest *d) {
    enum { SAMPLES = 3 };
    static float x[SAMPLES * 36], y[SAMPLES * CLASSES];
    clt_graph *graph = NULL;
    clt_predictor *p = NULL;
    clt_tensor *label;
    char path[512];
    clt_status status;
    for (int i = 0; i < SAMPLES * 36; i++) x[i] = (float)(i % 7) / 7;
    scenario_path(path, "predicted.safetensors");
    TRY(save(device, path));
    TRY(clt_graph_create(&graph));
    TRY(clt_predictor_create(&p, device, model_mlp(graph, &label), &(clt_predictor_options){.weights = path}));
    for (int64_t samples = SAMPLES; samples > 0; samples -= 2) {
        clt_batch batch = {samples, 1, {{CLT_F32, CLT_SHAPE(samples, 1, 6, 6), x}}};
        TRY(clt_predictor_run(p, &batch, y, (size_t)samples * CLASSES));
        digest_add(d, y, (size_t)samples * CLASSES * sizeof *y);
    }
done:
    clt_predictor_destroy(p);
    clt_graph_destroy(graph);
    return status;
}

/* ---- looking on ---- */

static clt_status run_profile(clt_device *device, digest *d) {
    model m = {0};
    clt_profile *profile = NULL;
    char path[512];
    size_t count;
    clt_status status;
    scenario_path(path, "trace.json");
    TRY(model_create(&m, device, model_mlp, saved, (clt_loader_options){0}));
    TRY(model_train(&m, 1));
    TRY(clt_profile_start(&profile, device));
    TRY(model_train(&m, 1));
    TRY(clt_profile_stop(profile));
    const clt_profile_row *rows = clt_profile_rows(profile, &count);
    for (size_t i = 0; i < count; i++)
        if (!(rows[i].seconds > 0)) snprintf(d->words, sizeof d->words, "%s took %g s", rows[i].op, rows[i].seconds);
    clt_profile_totals totals = clt_profile_get_totals(profile);
    digest_add(d, &totals.runs, sizeof totals.runs);
    digest_add(d, &totals.launches, sizeof totals.launches);
    TRY(clt_profile_save_trace(profile, path));
    TRY(model_train(&m, 1));
    TRY(digest_add_mlp(d, &m));
done:
    clt_profile_destroy(profile);
    model_destroy(&m);
    return status;
}

static void remove_files(const char *folder) {
    char path[1024];
    struct dirent *entry;
    DIR *files = opendir(folder);
    if (!files) return;
    while ((entry = readdir(files))) {
        snprintf(path, sizeof path, "%s/%.255s", folder, entry->d_name);
        if (entry->d_name[0] != '.') remove(path);
    }
    closedir(files);
}

/* They are measured, and not what was remembered of the last time. */
static clt_status run_peaks(clt_device *device, digest *d) {
    clt_peaks peaks = {0};
    char path[512];
    const char *cache = getenv("XDG_CACHE_HOME");
    snprintf(path, sizeof path, "%s/cltrain/peaks", cache ? cache : "");
    remove_files(path);
    clt_status status = clt_device_peaks(device, &peaks);
    if (status == CLT_OK && !(peaks.fma_flops > 0 && peaks.copy_bytes > 0)) snprintf(d->words, sizeof d->words, "no peaks");
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
        if (status == CLT_OK) digest_add(d, &limits[i], sizeof limits[i]);
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

/* ---- one function of a graph, on a device whose buffers have red zones ---- */

static bool add_served(const char *op, const char *backend, void *user) {
    digest_add_text(user, op);
    digest_add_text(user, backend);
    return true;
}

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
    TRY(clt_device_enable_redzones(device));
    TRY(clt_graph_create(&g));
    clt_tensor *in = clt_input(g, "x", CLT_F32, CLT_SHAPE(BATCH, 6));
    TRY(clt_trial_create(&trial, device, clt_softmax(clt_linear(in, "fc", CLASSES), 1), &options));
    TRY(clt_trial_set(trial, "x", x, sizeof x));
    TRY(clt_trial_set(trial, "fc.weight", weight, sizeof weight));
    TRY(clt_trial_set(trial, NULL, seed, sizeof seed));
    TRY(clt_trial_run(trial));
    TRY(clt_trial_get(trial, NULL, y, sizeof y));
    digest_add(d, y, sizeof y);
    TRY(clt_trial_gradient(trial, "x", x, BATCH * 6));
    TRY(clt_trial_gradient(trial, "fc.weight", weight, 6 * CLASSES));
    digest_add(d, x, sizeof x);
    digest_add(d, weight, sizeof weight);
    TRY(clt_trial_rows(trial, add_served, d));
    TRY(clt_device_check_redzones(device));
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
        if (status == CLT_OK) digest_add_text(d, m.backend);
    }
    return status;
}

static clt_status run_tune(clt_device *device, digest *d) {
    model m = {0};
    const clt_tune_options tune = {.budget_seconds = 0.05};
    clt_status status;
    TRY(model_create(&m, device, model_mlp, saved, (clt_loader_options){0}));
    TRY(clt_tune_model(device, m.loss, &saved, &tune));
    TRY(model_train(&m, 1));
    TRY(digest_add_mlp(d, &m));
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
    TRY(model_create(&m, device, model_mlp, options, (clt_loader_options){0}));
    TRY(model_train(&m, 1));
    TRY(clt_loader_next(m.loader, &batch));
    TRY(clt_trainer_get(m.trainer, "fc1.bias", weight, 12));
    memcpy(spoiled, weight, sizeof spoiled);
    spoiled[7] = NAN;
    TRY(clt_trainer_set(m.trainer, "fc1.bias", spoiled, 12));
    TRY(clt_trainer_locate_nonfinite(m.trainer, &batch, &origin));
    digest_add_text(d, origin.words);
    TRY(clt_trainer_step(m.trainer, &batch)); /* is skipped */
    TRY(clt_trainer_set(m.trainer, "fc1.bias", weight, 12));
    TRY(model_train(&m, 2));
    TRY(digest_add_mlp(d, &m));
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
    scenario_path(path, "times.jsonl");
    remove(path);
    TRY(model_create(&m, device, model_mlp, saved, (clt_loader_options){0}));
    TRY(clt_loader_next(m.loader, &batch));
    TRY(clt_times_open(&times, device, path));
    TRY(clt_times_measure(times, m.trainer, &batch, 1));
    TRY(clt_times_save(times));
    TRY(digest_add_first_line(d, path)); /* the others hold what was timed */
    if (!clt_times_count(times)) snprintf(d->words, sizeof d->words, "nothing was timed");
    TRY(clt_predict_step(times, m.loss, &saved, BATCH, NULL, NULL, &p));
    digest_add(d, &p.launches, sizeof p.launches);
    TRY(clt_predict_memory(device, m.loss, &saved, 3 * BATCH, &memory));
    digest_add(d, &memory.total, sizeof memory.total);
    TRY(clt_largest_batch(device, m.loss, &saved, 1 << 20, &largest, reason));
    digest_add(d, &largest, sizeof largest);
done:
    clt_times_close(times);
    model_destroy(&m);
    return status;
}

const scenario scenarios[] = {
    {"open", .opens = true, .run = run_open},
    {"bundle", .opens = true, .run = run_bundle},
    {"capabilities", .cold = true, .mute = true, .run = run_capabilities},
    {"mlp", .run = run_mlp},
    {"convnet", .run = run_convnet},
    {"recompute", .run = run_recompute},
    {"offload", .run = run_offload},
    {"apart", .run = run_offload_apart},
    {"again", .run = run_again},
    {"located", .run = run_located},
    {"build", .cold = true, .run = run_mlp},
    {"checkpoint", .run = run_checkpoint},
    {"overwrite", .run = run_overwrite},
    {"lora", .run = run_lora},
    {"predictor", .run = run_predictor},
    {"profile", .timed = true, .run = run_profile},
    {"limits", .dear = true, .slow = true, .timed = true, .run = run_limits},
    {"checks", .run = run_checks},
    {"problem", .timed = true, .run = run_problem},
    {"tune", .tries = true, .slow = true, .cold = true, .timed = true, .run = run_tune},
    {"nonfinite", .run = run_nonfinite},
    {"watched", .timed = true, .run = run_watched},
    {"trial", .run = run_trial},
    {"predict", .timed = true, .run = run_predict},
    {"ranks", .opens = true, .timed = true, .run = run_ranks},
    {"recover", .opens = true, .timed = true, .run = run_recover},
    {"network", .opens = true, .timed = true, .run = run_network},
    {"shard", .opens = true, .timed = true, .run = run_shard},
    {"shard_gradients", .opens = true, .timed = true, .run = run_shard_gradients},
    {"shard_parameters", .opens = true, .timed = true, .run = run_shard_parameters},
    {"f16", .opens = true, .dear = true, .timed = true, .run = run_f16},
    {"bf16", .opens = true, .dear = true, .timed = true, .run = run_bf16},
    {"int8", .opens = true, .timed = true, .run = run_int8},
    {"onebit", .opens = true, .dear = true, .timed = true, .run = run_onebit},
    {"topk", .opens = true, .dear = true, .timed = true, .run = run_topk},
    {"powersgd", .opens = true, .dear = true, .timed = true, .run = run_powersgd},
    {"self", .opens = true, .run = run_self},
    {"collectives", .opens = true, .timed = true, .run = run_collectives},
    {"wire", .opens = true, .timed = true, .run = run_wire},
    {"store", .opens = true, .timed = true, .run = run_store},
    {"ops", .dear = true, .run = run_ops},
    {"rows", .apart = true, .run = run_rows},
    {"peaks", .dear = true, .slow = true, .timed = true, .run = run_peaks},
    {"data", .run = run_data},
    {"readers", .run = run_readers},
};
const size_t n_scenarios = sizeof scenarios / sizeof *scenarios;
