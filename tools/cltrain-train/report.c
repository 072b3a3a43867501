#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/recipes.h"
#include "tools/survey/document.h"
#include "option_table.h"
#include "recipe.h"

#define REAL_DIGITS JSON_REAL_PRECISION(10)

struct run_log {
    FILE *file;
    const char *path;
    bool broken;
};

clt_metrics report_no_metrics(void) {
    return (clt_metrics){.loss = NAN, .accuracy = NAN, .mse = NAN};
}

void report_as_read(clt_metrics *metrics, const clt_preprocessing *preprocessing) {
    double deviation = clt_preprocessing_target_deviation(preprocessing);
    metrics->loss *= deviation * deviation;
    metrics->mse *= deviation * deviation;
}

/* ---- JSON ---- */

/* JSON has no NaN and no infinity. */
static void set_real(json_t *object, const char *key, double value) {
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static void set_whole(json_t *object, const char *key, int64_t value) {
    json_object_set_new(object, key, json_integer(value));
}

/* Paths and device names may be no UTF-8, which JSON demands. */
static void set_text(json_t *object, const char *key, const char *value) {
    json_t *text = value ? json_string(value) : NULL;
    if (value && !text) {
        char *plain = malloc(strlen(value) + 1);
        if (plain) {
            for (size_t i = 0; i <= strlen(value); i++)
                plain[i] = (unsigned char)value[i] < 128 ? value[i] : '?';
            text = json_string(plain);
        }
        free(plain);
    }
    json_object_set_new(object, key, text ? text : json_null());
}

static void set_metrics(json_t *object, const char *part, const clt_metrics *metrics, const report *r) {
    char key[SCORES_KEY];
    set_real(object, scores_key(key, part, "loss"), metrics->loss);
    set_real(object, scores_key(key, part, r->classification ? "accuracy" : "mse"), r->classification ? metrics->accuracy : metrics->mse);
    if (r->tokens) set_real(object, scores_key(key, part, "perplexity"), exp(metrics->loss));
}

/* Of several: those that began, and how they share a batch. */
static void set_ranks(json_t *object, const report *r) {
    json_t *shares = json_array();
    for (int i = 0; i < r->ranks; i++) json_array_append_new(shares, json_integer(r->options->each_share[i]));
    set_whole(object, "ranks", r->ranks);
    set_text(object, "engine", r->engine);
    set_whole(object, "ranks_lost", r->options->ranks - r->ranks);
    json_object_set_new(object, "shares", shares);
}

static void set_pipeline(json_t *object, const report *r) {
    const clt_pipeline_options *o = &r->options->pipeline_spec.options;
    json_t *stages = json_array();
    for (int i = 0; r->stages && i < r->ranks; i++) {
        const stage_report *s = &r->stages[i];
        json_t *stage = json_object();
        set_text(stage, "device", s->device);
        set_whole(stage, "parameters", s->parameters);
        set_whole(stage, "peak_device_bytes", (int64_t)s->peak_device_bytes);
        set_whole(stage, "micro_batches_in_flight", s->in_flight);
        set_real(stage, "waited_seconds", s->waited_seconds);
        json_array_append_new(stages, stage);
    }
    set_text(object, "engine", r->engine);
    set_whole(object, "pipelines", o->stages ? r->ranks / o->stages : 1);
    set_text(object, "pipeline_schedule", clt_pipeline_schedule_name(o->schedule));
    set_whole(object, "microbatches", o->microbatches ? o->microbatches : 2 * o->stages);
    if (o->schedule == CLT_PIPELINE_INTERLEAVED) set_whole(object, "chunks", o->chunks ? o->chunks : 2);
    json_object_set_new(object, "stages", stages);
}

static void print_stages(FILE *file, const report *r) {
    for (int i = 0; r->stages && i < r->ranks; i++)
        fprintf(file, "  %-12s %lld parameter%s on %s, %.1f MiB at most, %d micro-batch%s in flight\n", i ? "" : "stages", (long long)r->stages[i].parameters,
                PLURAL(r->stages[i].parameters), r->stages[i].device, (double)r->stages[i].peak_device_bytes / (1024 * 1024), r->stages[i].in_flight, r->stages[i].in_flight == 1 ? "" : "es");
}

/* What an exchange of all gradients is like by itself, and what it would be without compression. */
static void set_compression(json_t *object, const report *r) {
    const clt_compress_report *c = &r->compress;
    if (!(c->bytes > 0)) return;
    set_text(object, "compress", clt_compression_name(r->options->compress_options.method));
    set_real(object, "compress_bytes", c->bytes);
    set_real(object, "compress_bytes_without", c->bytes_uncompressed);
    set_real(object, "compress_seconds", c->seconds);
    set_real(object, "compress_seconds_without", c->seconds_uncompressed);
}

static void print_compression(FILE *file, const report *r) {
    const clt_compress_report *c = &r->compress;
    if (!(c->bytes > 0)) return;
    double saved = 1e3 * (c->seconds_uncompressed - c->seconds);
    fprintf(file, "  %-12s %s: %.1f KiB a step instead of %.1f, %.1f times fewer; an exchange by itself takes\n"
                  "  %-12s %.2f ms instead of %.2f, %.2f ms are %s\n",
            "compression", clt_compression_name(r->options->compress_options.method), c->bytes / 1024,
            c->bytes_uncompressed / 1024, c->bytes_uncompressed / c->bytes, "", 1e3 * c->seconds,
            1e3 * c->seconds_uncompressed, saved < 0 ? -saved : saved, saved < 0 ? "lost" : "saved");
}

static void set_setup(json_t *object, const report *r) {
    const options *o = r->options;
    set_text(object, "model", o->model);
    set_text(object, "data", o->data);
    set_text(object, "device", r->device->name);
    set_text(object, "device_id", r->device->id);
    set_text(object, "platform", r->device->platform);
    set_whole(object, "parameters", r->parameters);
    if (o->ema > 0) set_real(object, "ema", o->ema);
    if (o->freeze || o->lora) set_whole(object, "trained_parameters", r->trained_parameters);
    set_whole(object, "train_samples", r->train_samples);
    set_whole(object, "test_samples", r->test_samples);
    if (r->validation_samples) set_whole(object, "validation_samples", r->validation_samples);
    json_object_set_new(object, "standardized", json_boolean(r->standardized));
    set_whole(object, "batch", o->whole_batch);
    if (o->ranks > 1 && !o->pipeline) set_ranks(object, r);
    if (o->pipeline) set_pipeline(object, r);
    set_whole(object, "accumulate", o->accumulate);
    set_text(object, "storage", precision_names[options_precision(o)]);
    if (o->recompute) set_text(object, "recompute", recompute_names[o->recompute]);
    if (o->offload) set_text(object, "offload", offload_names[o->offload]);
    if (o->memory_limit) set_text(object, "memory_limit", o->memory_limit);
    set_text(object, "optimizer", optimizer_names[o->optimizer]);
    set_real(object, "lr", o->lr);
    if (o->optimizer == CLT_SGD) set_real(object, "momentum", o->momentum);
    set_real(object, "weight_decay", o->weight_decay);
    set_text(object, "schedule", recipe_schedule_name(o->schedule));
    set_whole(object, "seed", o->seed);
    set_text(object, "version", clt_version());
}

static json_t *truth_json(const report *r, double value) {
    if (!isfinite(value)) return json_null();
    const char *name = r->classification ? clt_preprocessing_class(r->preprocessing, (int)value) : NULL;
    return name ? json_string(name) : r->classification ? json_integer((json_int_t)value) : json_real(value);
}

static void set_worst(json_t *object, const report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_worst; i++) {
        const worst_sample *w = &r->worst[i];
        json_t *sample = json_object();
        set_whole(sample, "sample", w->index);
        if (w->line) set_whole(sample, "line", w->line);
        if (w->name) json_object_set_new(sample, "name", document_text(w->name));
        json_object_set_new(sample, "truth", truth_json(r, w->truth));
        json_object_set_new(sample, "predicted", truth_json(r, w->predicted));
        set_real(sample, "loss", w->loss);
        json_array_append_new(list, sample);
    }
    if (r->n_worst) json_object_set(object, "test_worst", list);
    json_decref(list);
}

static void set_skipped(json_t *object, const report *r) {
    set_whole(object, "skipped_steps", r->skipped);
    if (r->options->precision == CLT_PRECISION_F16) set_real(object, "loss_scale", (double)r->loss_scale);
}

static void set_outcome(json_t *object, const report *r) {
    char key[SCORES_KEY];
    set_whole(object, "epochs", r->epochs);
    set_whole(object, "steps", r->steps);
    set_skipped(object, r);
    if (r->options->ranks > 1) set_whole(object, "drifts", r->drifts);
    set_metrics(object, "train", &r->train, r);
    if (r->validation.samples) set_metrics(object, "validation", &r->validation, r);
    set_metrics(object, r->held_out, &r->test, r);
    scores_put_json(object, r->held_out, &r->scores);
    scores_put_confusion(object, r->confusion, r->classes, r->preprocessing);
    set_worst(object, r);
    if (r->options->patience != OPTION_UNSET) {
        set_whole(object, "best_epoch", r->best_epoch);
        set_real(object, scores_key(key, "best", scores_monitored[options_monitor(r->options)]), r->best_epoch ? r->best_loss : NAN);
        json_object_set_new(object, "stopped_early", json_boolean(r->stopped_early));
    }
    set_real(object, "samples_per_second", r->samples_per_second);
    set_real(object, "epoch_seconds", r->epoch_seconds);
    set_real(object, "first_step_seconds", r->first_step_seconds);
    if (data_has_images(&r->options->data_spec)) {
        set_real(object, "data_wait_seconds", r->data_wait_seconds);
        set_whole(object, "broken_samples", r->broken_samples);
        set_whole(object, scores_key(key, r->held_out, "broken_samples"), r->broken_tested);
        if (r->validation.samples)
            set_whole(object, scores_key(key, "validation", "broken_samples"), r->broken_validated);
    }
    set_real(object, "kernel_seconds", r->kernel_seconds);
    set_real(object, "total_seconds", r->total_seconds);
    set_whole(object, "peak_device_bytes", (int64_t)r->peak_device_bytes);
    if (r->options->ranks > 1) {
        set_whole(object, "bytes_sent", (int64_t)r->bytes_sent);
        set_real(object, "waited_seconds", r->waited_seconds);
        set_compression(object, r);
    }
    json_object_set_new(object, "interrupted", json_boolean(r->signal != 0));
    set_text(object, "checkpoint", r->saved_to);
}

bool report_print_json(const report *r, FILE *file) {
    json_t *object = json_object();
    set_setup(object, r);
    set_outcome(object, r);
    bool done = json_dumpf(object, file, JSON_INDENT(2) | REAL_DIGITS) == 0;
    json_decref(object);
    fputc('\n', file);
    return fflush(file) == 0 && done;
}

/* ---- JSON lines ---- */

/* The last line of a run that was killed. */
static bool ends_within_line(const char *path) {
    struct stat facts;
    FILE *file = stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 ? fopen(path, "r") : NULL;
    bool within = file && fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';
    if (file) fclose(file);
    return within;
}

/* Two runs would write over each other's lines. Held until the file is closed, or its process ends; of a file system without locks nothing is known. */
static bool is_being_written(FILE *file) {
    struct stat facts;
    return fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode) && flock(fileno(file), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/* Not through a link to nothing: what it would make there may be another option's file. */
static FILE *open_log_file(const char *path, bool append, const char **why) {
    struct stat facts;
    *why = "it is a link to nothing";
    if (stat(path, &facts) && lstat(path, &facts) == 0) return NULL;
    *why = "it is there, and is not the log of an earlier run: it is not replaced. Choose another name, or delete it";
    if (file_is_another(path, FILE_LOG)) return NULL;
    FILE *file = file_open_in_place(path, O_CREAT | (append ? O_APPEND : 0), why);
    if (file && is_being_written(file)) {
        *why = "another run writes it";
        fclose(file);
        return NULL;
    }
    if (file && append && ends_within_line(path)) fputc('\n', file);
    if (file && !append && fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0)
        message_line("--log: %s was the log of an earlier run, and is replaced; --resume appends.", path);
    if (file && !append && ftruncate(fileno(file), 0)) clearerr(file); /* a pipe has no length */
    return file;
}

run_log *run_log_open(const char *path, bool append) {
    const char *why = "out of memory";
    run_log *log = calloc(1, sizeof *log);
    FILE *file = log ? open_log_file(path, append, &why) : NULL;
    if (!file) {
        run_error("--log: '%s' cannot be opened for writing: %s", path, why);
        free(log);
        return NULL;
    }
    *log = (run_log){.file = file, .path = path};
    return log;
}

static json_t *new_event(const char *name) {
    json_t *object = json_object();
    set_text(object, "event", name);
    return object;
}

/* Takes the object. */
static void write_event(run_log *log, json_t *object) {
    int failed = json_dumpf(object, log->file, JSON_COMPACT | REAL_DIGITS);
    if ((failed | (fputc('\n', log->file) == EOF) | fflush(log->file)) && !log->broken) {
        warning("--log: '%s' cannot be written", log->path);
        log->broken = true;
    }
    json_decref(object);
}

void run_log_start(run_log *log, const report *r) {
    if (!log) return;
    json_t *object = new_event("start");
    set_setup(object, r);
    json_t *command = json_array();
    for (int i = 0; i < r->options->argc; i++) json_array_append_new(command, document_text(r->options->argv[i]));
    json_object_set_new(object, "command", command);
    json_object_set(object, "config", r->options->as_given);
    set_whole(object, "steps", r->steps);
    write_event(log, object);
}

void run_log_progress(run_log *log, const report *r, double lr, const clt_metrics *train, double rate) {
    if (!log) return;
    json_t *object = new_event("progress");
    set_whole(object, "step", r->steps);
    set_real(object, "lr", lr);
    set_real(object, "train_loss", train->loss);
    set_skipped(object, r);
    set_real(object, "samples_per_second", rate);
    write_event(log, object);
}

void run_log_test(run_log *log, const report *r) {
    if (!log) return;
    json_t *object = new_event("test");
    set_whole(object, "step", r->steps);
    set_metrics(object, r->held_out, &r->test, r);
    write_event(log, object);
}

void run_log_epoch(run_log *log, const report *r, double lr) {
    if (!log) return;
    json_t *object = new_event("epoch");
    set_whole(object, "epoch", r->epochs);
    set_whole(object, "step", r->steps);
    set_skipped(object, r);
    set_real(object, "lr", lr);
    set_metrics(object, "train", &r->train, r);
    set_metrics(object, r->held_out, &r->test, r);
    scores_put_json(object, r->held_out, &r->scores);
    set_real(object, "samples_per_second", r->samples_per_second);
    set_real(object, "epoch_seconds", r->epoch_seconds);
    set_whole(object, "peak_device_bytes", (int64_t)r->peak_device_bytes);
    write_event(log, object);
}

void run_log_end(run_log *log, const report *r) {
    if (!log) return;
    json_t *object = new_event("end");
    set_outcome(object, r);
    write_event(log, object);
}

void run_log_close(run_log *log) {
    if (!log) return;
    if (fclose(log->file) != 0 && !log->broken) warning("--log: '%s' cannot be written", log->path);
    free(log);
}

/* ---- text ---- */

static void print_metrics(FILE *file, const char *part, const clt_metrics *metrics, const clt_evaluation *scored, const report *r) {
    if (metrics->samples == 0) return;
    fprintf(file, "  %-12s loss %.6g", part, metrics->loss);
    if (r->tokens) fprintf(file, ", perplexity %.4g", exp(metrics->loss));
    if (r->classification) fprintf(file, ", accuracy %.4f", metrics->accuracy);
    else fprintf(file, ", mean squared error %.6g", metrics->mse);
    if (scored) scores_print(file, scored);
    fprintf(file, "\n");
}

bool report_print_text(const report *r, FILE *file) {
    const options *o = r->options;
    fprintf(file, "%s on %s\n", o->model, o->data);
    fprintf(file, "  %-12s %s (%s)\n", "device", r->device->name, r->device->platform);
    fprintf(file, "  %-12s %lld epoch%s, %lld step%s%s", "trained", (long long)r->epochs,
            PLURAL(r->epochs), (long long)r->steps, PLURAL(r->steps),
            r->signal ? ", interrupted" : "");
    if (r->skipped) fprintf(file, ", %lld of them left out: gradients not finite", (long long)r->skipped);
    if (isfinite(r->samples_per_second))
        fprintf(file, "; %.*f samples/s", r->samples_per_second < 100, r->samples_per_second);
    fprintf(file, "\n");
    if (isfinite(r->first_step_seconds)) fprintf(file, "  %-12s first step after %.2f s", "start", r->first_step_seconds);
    if (isfinite(r->first_step_seconds) && isfinite(r->kernel_seconds)) fprintf(file, ", kernels %.2f s of it", r->kernel_seconds);
    if (isfinite(r->first_step_seconds)) fprintf(file, "\n");
    if (r->best_epoch) fprintf(file, "  %-12s epoch %lld, with %s %#.4g\n", "best", (long long)r->best_epoch, scores_monitored[options_monitor(r->options)], r->best_loss);
    print_metrics(file, "training", &r->train, NULL, r);
    print_metrics(file, "validation", &r->validation, NULL, r);
    print_metrics(file, r->held_out, &r->test, &r->scores, r);
    if (data_has_images(&o->data_spec)) fprintf(file, "  %-12s waited %.2f s for images", "data", r->data_wait_seconds);
    if (r->broken_samples) fprintf(file, "; %lld could not be read, and others took their places", (long long)r->broken_samples);
    if (r->broken_tested) fprintf(file, "; %lld of the %s are left out, for they could not be read", (long long)r->broken_tested, r->held_out);
    if (data_has_images(&o->data_spec)) fprintf(file, "\n");
    if (o->ranks > 1)
        fprintf(file, "  %-12s %d, %.1f MiB sent by rank 0, which waited %.2f s for others\n", "ranks", r->ranks,
                (double)r->bytes_sent / (1024 * 1024), r->waited_seconds);
    if (r->drifts) fprintf(file, "  %-12s ranks had other parameters than rank 0 %lld time%s, and took over its\n", "drifts", (long long)r->drifts, PLURAL(r->drifts));
    print_compression(file, r);
    print_stages(file, r);
    fprintf(file, "  %-12s %.1f MiB on the device at most\n", "memory",
            (double)r->peak_device_bytes / (1024 * 1024));
    if (o->save) fprintf(file, "  %-12s %s\n", "checkpoint", r->saved_to);
    if (r->exported && !r->signal && o->export_to) fprintf(file, "  %-12s %s\n", "weights", o->export_to);
    if (r->exported && !r->signal && o->export_lora) fprintf(file, "  %-12s %s\n", "adapters", o->export_lora);
    return fflush(file) == 0 && !ferror(file);
}
