#include "run.h"

#include <math.h>
#include <string.h>

#include "tools/common/message.h"
#include "progress.h"
#include "recipe.h"
#include "stopwatch.h"
#include "system.h"

typedef struct run {
    const options *options;
    const data_parts *data;
    clt_device *device;
    clt_trainer *trainer;
    clt_loader *train, *test;
    run_log *log;
    progress progress;
    stopwatch watch;
    report *report;
    double created;       /* when making the trainer began */
    int64_t limit_epochs; /* INT64_MAX where --steps rules */
    int64_t used_batches; /* of an epoch: a multiple of --accumulate */
    bool stepped;         /* a step was done in this run */
    bool unsaved;         /* something happened since the last save */
    int64_t tested_at;    /* the step of report->test, or -1 */
} run;

/* ---- making it ready ---- */

static int make_loaders(run *r) {
    const options *o = r->options;
    clt_loader_options train = {
        .batch = o->batch, .shuffle = true, .drop_last = true, .seed = o->seed};
    clt_loader_options test = {.batch = o->batch};
    clt_status status = clt_loader_create(&r->train, r->data->train, &train);
    if (status >= 0) status = clt_loader_create(&r->test, r->data->test, &test);
    return status < 0 ? library_error(status, "reading the data") : 0;
}

static int make_trainer(run *r, const task *made) {
    clt_train_options wanted =
        recipe_train_options(r->options, clt_dataset_samples(r->data->train), made->output);
    r->created = now_seconds();
    clt_status status = clt_trainer_create(&r->trainer, r->device, made->loss, &wanted);
    return status < 0 ? library_error(status, "making the trainer") : 0;
}

static int resume(run *r) {
    const char *path = r->options->resume;
    if (!path) return 0;
    clt_status status = clt_checkpoint_load(r->trainer, r->train, path);
    if (status < 0) return library_error(status, "--resume");
    /* Another seed holds out other samples: the test would see what was trained on. */
    uint64_t seed = clt_loader_get_position(r->train).seed;
    if (seed != (uint64_t)r->options->seed)
        return run_error("--resume: %s was trained with --seed %llu, not %lld", path,
                         (unsigned long long)seed, (long long)r->options->seed);
    r->report->steps = clt_trainer_steps(r->trainer);
    r->report->epochs = clt_loader_get_position(r->train).epoch;
    message_line("Resumed from %s: %lld epoch%s and %lld step%s done before.", path,
                 (long long)r->report->epochs, PLURAL(r->report->epochs), (long long)r->report->steps,
                 PLURAL(r->report->steps));
    return 0;
}

static int open_log(run *r) {
    if (!r->options->log) return 0;
    r->log = run_log_open(r->options->log, r->options->resume != NULL);
    if (!r->log) return EXIT_FAILED;
    run_log_start(r->log, r->report);
    return 0;
}

static void set_limits(run *r) {
    const options *o = r->options;
    int64_t epoch_steps = recipe_epoch_steps(o, clt_dataset_samples(r->data->train));
    bool by_steps = o->steps != OPTION_UNSET;
    r->limit_epochs = by_steps ? INT64_MAX : o->epochs;
    if (o->stop_after != OPTION_UNSET && o->stop_after < r->limit_epochs)
        r->limit_epochs = o->stop_after;
    r->used_batches = epoch_steps * o->accumulate;
    progress_start(&r->progress, r->report->steps,
                   by_steps ? o->steps : r->limit_epochs * epoch_steps,
                   by_steps ? 0 : r->limit_epochs, r->log != NULL);
}

/* ---- checkpoints and tests ---- */

/* Metrics wait for the device, so the stopwatch may stop. */
static int read_train_metrics(run *r, clt_metrics *metrics, bool reset) {
    clt_status status = clt_trainer_train_metrics(r->trainer, metrics, reset);
    if (status < 0) return library_error(status, "training");
    if (metrics->samples == 0) *metrics = report_no_metrics();
    else if (!isfinite(metrics->loss))
        return run_error("the loss is %f at step %lld: training diverged; a smaller --lr, "
                         "--clip-norm 1 or a --warmup may help", metrics->loss,
                         (long long)r->report->steps);
    return 0;
}

static int save(run *r) {
    clt_metrics metrics;
    /* A run that diverged must not replace a good file. */
    int code = read_train_metrics(r, &metrics, false);
    stopwatch_stop(&r->watch);
    if (code) return code;
    clt_status status = clt_checkpoint_save(r->trainer, r->train, r->options->save);
    if (status < 0) return library_error(status, "--save");
    r->unsaved = false;
    return 0;
}

/* Stops early on a signal, without a result. */
static int test(run *r) {
    clt_batch batch;
    clt_status status;
    if (r->tested_at == r->report->steps) return 0;
    r->report->test = report_no_metrics();
    while (!signals_caught() && (status = clt_loader_next(r->test, &batch)) != CLT_END) {
        if (status >= 0) status = clt_trainer_evaluate(r->trainer, &batch);
        if (status < 0) return library_error(status, "testing");
    }
    if (signals_caught()) return 0;
    status = clt_trainer_eval_metrics(r->trainer, &r->report->test, true);
    if (status < 0) return library_error(status, "testing");
    r->tested_at = r->report->steps;
    return 0;
}

/* ---- the loop ---- */

static int end_epoch(run *r) {
    clt_metrics metrics;
    int code = profiler_stop(&r->report->profile);
    if (!code) code = read_train_metrics(r, &metrics, true);
    stopwatch_stop(&r->watch);
    if (code) return code;
    r->report->epochs = clt_loader_get_position(r->train).epoch;
    /* A run that ended with an epoch's last batch is resumed with the end of that epoch. */
    if (!code && metrics.samples == 0) return 0;
    r->report->train = metrics;
    r->report->samples_per_second = stopwatch_rate(&r->watch);
    r->unsaved = true;
    if (!code && r->options->save && r->options->save_every == OPTION_UNSET) code = save(r);
    if (!code) code = test(r);
    if (code) return code;
    progress_epoch(&r->progress, r->report);
    run_log_epoch(r->log, r->report, clt_trainer_lr(r->trainer));
    return 0;
}

static int look(run *r) {
    clt_metrics metrics;
    int code = read_train_metrics(r, &metrics, false);
    if (code) return code;
    double rate = stopwatch_rate(&r->watch);
    progress_show(&r->progress, r->report->epochs + 1, r->report->steps, metrics.loss, rate);
    run_log_progress(r->log, r->report->steps, clt_trainer_lr(r->trainer), &metrics, rate);
    return 0;
}

/* The first step is apart: it may build plans and fill caches. */
static clt_status first_step(run *r, const clt_batch *batch) {
    clt_status status = clt_trainer_step(r->trainer, batch);
    if (status >= 0) status = clt_trainer_wait(r->trainer);
    r->report->first_step_seconds = now_seconds() - r->created;
    r->stepped = true;
    progress_settle(&r->progress, clt_trainer_steps(r->trainer));
    return status;
}

static clt_status later_step(run *r, const clt_batch *batch) {
    stopwatch_go(&r->watch);
    r->watch.samples += batch->samples;
    return clt_trainer_step(r->trainer, batch);
}

static int step(run *r, const clt_batch *batch) {
    int code = r->stepped ? profiler_before_step(&r->report->profile, r->device) : 0;
    if (code) return code;
    clt_status status = r->stepped ? later_step(r, batch) : first_step(r, batch);
    if (status < 0) return library_error(status, "training");
    int64_t before = r->report->steps, every = r->options->save_every;
    r->report->steps = clt_trainer_steps(r->trainer);
    r->unsaved = true;
    code = profiler_after_step(&r->report->profile);
    bool updated = r->report->steps != before;
    if (!code && updated && every != OPTION_UNSET && r->report->steps % every == 0) code = save(r);
    if (!code && progress_due(&r->progress)) code = look(r);
    return code;
}

/* Only whole updates are done: what is between them is in no checkpoint. */
static bool finished(const run *r, clt_loader_position at) {
    if (at.batch % r->options->accumulate != 0 && at.batch < r->used_batches) return false;
    if (signals_caught()) return true;
    if (r->options->steps != OPTION_UNSET) return r->report->steps >= r->options->steps;
    return at.epoch >= r->limit_epochs;
}

static int train(run *r) {
    clt_batch batch;
    clt_loader_position at = clt_loader_get_position(r->train);
    if (finished(r, at) && r->limit_epochs > 0)
        message_line("Nothing is left to train: the model is only tested.");
    while (!finished(r, at)) {
        int code = 0;
        clt_status status = clt_loader_next(r->train, &batch);
        if (status < 0) return library_error(status, "reading the data");
        at = clt_loader_get_position(r->train);
        if (status == CLT_END) code = end_epoch(r);
        else if (at.batch <= r->used_batches) code = step(r, &batch);
        if (code) return code;
    }
    return 0;
}

/* Brings report, checkpoint and exported weights up to the last step. */
static int finish(run *r) {
    clt_metrics metrics;
    const options *o = r->options;
    int code = profiler_stop(&r->report->profile), signal = signals_caught();
    if (!code) code = read_train_metrics(r, &metrics, false);
    stopwatch_stop(&r->watch);
    if (code) return code;
    clt_loader_position at = clt_loader_get_position(r->train);
    r->report->epochs = at.epoch + (at.batch >= r->used_batches);
    if (metrics.samples > 0) r->report->train = metrics;
    r->report->samples_per_second = stopwatch_rate(&r->watch);
    /* A run that was interrupted before its first step has nothing that is worth a file. */
    if (o->save && r->unsaved && (r->stepped || !signal)) code = save(r);
    if (!code) code = test(r);
    if (!code && o->export_to && !signal) {
        clt_status status = clt_weights_save(r->trainer, o->export_to);
        if (status < 0) code = library_error(status, "--export");
    }
    r->report->peak_device_bytes = clt_device_peak_bytes(r->device);
    r->report->signal = signal;
    if (code) return code;
    return signal ? EXIT_SIGNAL + signal : 0;
}

int run_training(report *result, const options *given, const data_parts *data, const task *made,
                 clt_device *device) {
    run r = {.options = given, .data = data, .device = device, .report = result, .unsaved = true,
             .tested_at = -1};
    double start = now_seconds();
    int code = make_loaders(&r);
    if (!code) code = make_trainer(&r, made);
    if (!code) code = resume(&r);
    if (!code) code = open_log(&r);
    if (!code) {
        set_limits(&r);
        signals_catch();
        code = train(&r);
        if (!code) code = finish(&r);
        result->total_seconds = now_seconds() - start;
        if (code != EXIT_FAILED) run_log_end(r.log, result);
    }
    run_log_close(r.log);
    clt_trainer_destroy(r.trainer);
    clt_loader_destroy(r.test);
    clt_loader_destroy(r.train);
    return code;
}
