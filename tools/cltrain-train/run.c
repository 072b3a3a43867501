#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "agreement.h"
#include "balance.h"
#include "board.h"
#include "class_weights.h"
#include "finetune.h"
#include "lr_find.h"
#include "model_file.h"
#include "note.h"
#include "progress.h"
#include "recipe.h"
#include "scores.h"
#include "stages.h"
#include "stopwatch.h"
#include "system.h"

/* Not an exit code: a rank was lost, and the others are to go on. */
enum { RUN_LOST_ONE = -1 };

typedef struct run {
    const options *options;
    const data_parts *data;
    const task *made;
    clt_device *device;
    clt_trainer *trainer;
    clt_dataset *mixed[2]; /* of --mixup and --cutmix: training, and what is tested on the way */
    clt_dataset *mixed_last; /* the same of the test at the end */
    const clt_dataset *tested; /* what `test` loads */
    clt_loader *train, *test;
    clt_loader *last; /* of --validation: the test at the end, while `test` is of the validation part; NULL: there is no other */
    run_log *log;
    board *board; /* of --tensorboard */
    progress progress;
    stopwatch watch;
    report *report;
    double created;       /* when making the trainer began */
    int64_t limit_epochs; /* INT64_MAX where --steps rules */
    int64_t used_batches; /* of an epoch: a multiple of --accumulate */
    int64_t skipped;      /* steps, in metrics that were reset */
    note_counts before;   /* of the run that this one goes on with */
    bool ready;           /* to train: prepared on all ranks */
    bool resumed;         /* from a checkpoint */
    bool stepped;         /* a step was done in this run */
    double first_step_seconds; /* of the first step, in its own epoch; 0 behind that */
    bool timed;           /* an epoch was */
    file_identity saved;  /* what is in the place of --save */
    bool unsaved;         /* something happened since the last save */
    int64_t tested_at;    /* the step of report->test, or -1 */
    int64_t ended_epochs; /* whose end is reported, saved and tested */

    /* Several ranks do the same in the same order: what depends on one's clock, or on a signal that one got, is agreed at
     * steps that all know. */
    ranks *group;
    int64_t agree_at; /* the next such step */
    int signal;       /* that ends the run: everyone's */
    bool went_on; /* without a rank that was lost */
    balance balance;
} run;

/* ---- errors ---- */

/* Into the device's memory, or --memory-limit, of which the library speaks in the same words. `auto` has tried what there is. largest: the largest batch that fits; OPTION_UNSET: it
 * is not known. */
static int does_not_fit(const options *o, const char *doing, const char *why, int64_t largest) {
    char batch[48] = " with a smaller model", limit[64] = "";
    const char *several = largest && !o->pipeline ? ", of which --accumulate takes several for an update" : "";
    bool tried_all = o->recompute == CLT_RECOMPUTE_AUTO || o->recompute == CLT_RECOMPUTE_ALL, offloads = o->offload == CLT_OFFLOAD_AUTO || o->offload == CLT_OFFLOAD_ALL;
    if (largest < 0) snprintf(batch, sizeof batch, " with a smaller --batch");
    if (largest > 0) snprintf(batch, sizeof batch, " with a --batch of %lld", (long long)largest);
    if (o->memory_limit) snprintf(limit, sizeof limit, ", or a larger --memory-limit than %.24s", o->memory_limit);
    return run_error("%s: %s. Less is needed%s%s%s%s%s", doing, why, batch, several, tried_all ? "" : ", --recompute auto", offloads ? "" : ", --offload auto", limit);
}

/* Says what went wrong; or, if a rank was lost and the others may go on, nothing yet. */
static int failed(run *r, clt_status status, const char *doing) {
    if (r->options->on_failure == ON_FAILURE_SHRINK && ranks_lost_one(r->group, status)) return RUN_LOST_ONE;
    if (status == CLT_E_NONFINITE)
        return run_error("%s: %s. " DIVERGED "%s", doing, clt_error_detail(),
                         r->options->locate_nan ? "" : "; --locate-nan tells what made them");
    if (status == CLT_E_DEVICE_MEMORY) return does_not_fit(r->options, doing, clt_error_detail(), OPTION_UNSET);
    return library_error(status, doing);
}

/* What fails on one rank, which has said why, ends all. */
static int agree(run *r, int code) {
    int32_t worst = code;
    if (code == RUN_LOST_ONE || !r->group->comm) return code;
    clt_status status = ranks_max(r->group, &worst, 1);
    return code ? code : status < 0 ? failed(r, status, "training") : worst ? EXIT_FAILED : 0;
}

static int signal_caught(const run *r) {
    return r->group->comm ? r->signal : signals_caught();
}

/* ---- making it ready ---- */

/* Copying needs one. */
static int threads_of_data(const options *o) {
    enum { MOST = 8 };
    if (o->data_threads != OPTION_UNSET) return (int)o->data_threads;
    return data_has_images(&o->data_spec) ? processors(MOST) : 1;
}

/* What the loaders hand out: the data, or mixtures of them. */
static clt_status mix_data(run *r, const clt_dataset **train, const clt_dataset **test, const clt_dataset **last) {
    const options *o = r->options;
    clt_mix_options ways = {.mixup = o->mixup > 0 ? (float)o->mixup : 0, .cutmix = o->cutmix > 0 ? (float)o->cutmix : 0};
    *train = r->data->train, *test = r->tested, *last = r->data->validation ? r->data->test : NULL;
    if (!options_mix(o)) return CLT_OK;
    clt_status status = clt_dataset_mix(&r->mixed[0], *train, &ways);
    if (status >= 0) status = clt_dataset_mix(&r->mixed[1], *test, NULL); /* of the same fields, but not mixed */
    if (status >= 0 && *last) status = clt_dataset_mix(&r->mixed_last, *last, NULL);
    *train = r->mixed[0], *test = r->mixed[1], *last = r->mixed_last;
    return status;
}

static int make_loaders(run *r) {
    const options *o = r->options;
    int part = ranks_part(r->group, o), parts = ranks_parts(r->group, o);
    clt_loader_options train = {.batch = o->whole_batch, .shuffle = true, .drop_last = true, .seed = o->seed, .rank = part, .ranks = parts, .shares = o->each_share};
    clt_loader_options test = {.batch = o->whole_batch, .rank = part, .ranks = parts, .shares = o->each_share};
    train.threads = test.threads = threads_of_data(o);
    train.broken = options_skip_broken(o) ? CLT_BROKEN_SKIP : CLT_BROKEN_STOP;
    test.broken = options_skip_broken(o) ? CLT_BROKEN_LEAVE_OUT : CLT_BROKEN_STOP;
    double *weights = NULL;
    int code = o->balanced_sampling ? sample_weights_find(&weights, r->data->train) : 0;
    train.weights = weights;
    const clt_dataset *training, *testing, *last;
    r->tested = r->data->validation ? r->data->validation : r->data->test;
    clt_status status = code ? CLT_OK : mix_data(r, &training, &testing, &last);
    if (!code && status >= 0) status = clt_loader_create(&r->train, training, &train);
    free(weights);
    if (code) return code;
    if (status >= 0) status = clt_loader_create(&r->test, testing, &test);
    if (status >= 0 && last) status = clt_loader_create(&r->last, last, &test);
    return status < 0 ? library_error(status, "reading the data") : 0;
}

/* Says how much is missing, and which batch fits. Other ranks and stages have devices of their own, which nothing is known of. */
static int trainer_does_not_fit(const run *r, clt_train_options wanted) {
    char why[1024], reason[256];
    clt_step_memory memory;
    int64_t largest = OPTION_UNSET;
    snprintf(why, sizeof why, "%s", clt_error_detail());
    if (r->group->size > 1) return does_not_fit(r->options, "making the trainer", why, largest);
    if (clt_predict_memory(r->device, r->made->loss, &wanted, 0, &memory) == CLT_E_DEVICE_MEMORY) snprintf(why, sizeof why, "%s", clt_error_detail());
    wanted.accumulate = 1;
    if (clt_largest_batch(r->device, r->made->loss, &wanted, 0, &largest, reason) < 0 || largest >= r->options->batch) largest = OPTION_UNSET;
    return does_not_fit(r->options, "making the trainer", why, largest);
}

static int make_trainer(run *r) {
    clt_train_options wanted =
        recipe_train_options(r->options, clt_dataset_samples(r->data->train), r->made->output);
    wanted.comm = r->group->comm;
    wanted.preprocessing = r->data->preprocessing;
    wanted.model = r->options->model;
    wanted.tokenizer = r->data->tokenizer;
    r->created = now_seconds();
    if (ranks_lead(r->group) && !r->stepped) message_line("Preparing kernels: the first run on a device builds them, which takes longest.");
    clt_peaks *peaks = NULL;
    clt_status status = wanted.pipeline.stages > 1 && !wanted.pipeline.split ? stages_measure(r->group, r->device, &peaks) : CLT_OK;
    wanted.pipeline.peaks = peaks;
    if (status >= 0) status = clt_trainer_create(&r->trainer, r->device, r->made->loss, &wanted);
    free(peaks);
    if (status >= 0 && r->group->size > 1 && wanted.compress.method)
        status = clt_trainer_compress_report(r->trainer, &r->report->compress);
    if (status == CLT_E_DEVICE_MEMORY) return trainer_does_not_fit(r, wanted);
    return status < 0 ? failed(r, status, "making the trainer") : 0;
}

static bool only_tests(const options *o) {
    return o->epochs == 0 && o->steps == OPTION_UNSET && !o->save;
}

/* What the user called the file that is gone on from. */
static const char *option_of_file(const options *o) {
    return o->evaluate ? "--evaluate" : "--resume";
}

/* Files of earlier versions and of other programs do not tell what their model was trained on. */
static void tell_standardization(const run *r, const char *path) {
    if (r->data->standardized && !r->data->of_model && ranks_lead(r->group))
        warning("%s: %s tells no mean and deviation: those of %s are used, which fit only if it is the data that the model was trained on",
                option_of_file(r->options), path, r->options->data);
}

/* The last error. */
static bool is_of_alpha(void) {
    return strstr(clt_error_detail(), "adapters of alpha") != NULL;
}

static int initialize(run *r) {
    clt_status status = finetune_init(r->trainer, r->options, r->data->preprocessing, ranks_lead(r->group));
    if (status == CLT_E_MISMATCH && !r->options->init_matching && !is_of_alpha())
        return run_error("--init: %s. --init-matching takes the tensors that fit, and leaves the others at their first values", clt_error_detail());
    return status < 0 ? failed(r, status, r->options->init ? "--init" : "--lora") : 0;
}

/* By which a file has other tensors; NULL: by none that is known. */
static const char *options_that_differ(const options *o) {
    const char *detail = clt_error_detail();
    if (strstr(detail, "cltrain.optimizer.average.")) return "--ema has to be what it was";
    return o->lora || o->freeze || is_of_alpha() || strstr(detail, "cltrain.optimizer.") ? "--freeze and --lora have to be what they were" : NULL;
}

/* With which the last error's file has as many batches; 0: that is not what it is about. */
static int64_t batch_of_file(const run *r) {
    long long then, now, samples = (long long)clt_dataset_samples(r->data->train);
    const char *said = strstr(clt_error_detail(), "was trained with ");
    if (!said || sscanf(said, "was trained with %lld batches an epoch, not %lld", &then, &now) != 2 || then < 1 || then > samples) return 0;
    return samples / (samples / then) == then ? samples / then : 0;
}

/* Of rank 0, which reads the file: the others are told no more than that it failed. */
static clt_status all_know(const run *r, bool own, bool *any) {
    int32_t word = own;
    clt_status status = ranks_max(r->group, &word, 1);
    *any = word != 0;
    return status;
}

static int resume(run *r) {
    const char *path;
    clt_status status = model_file_find(r->options, r->group, &path);
    if (status < 0) return failed(r, status, "resuming");
    if (!path) return initialize(r);
    bool drawn = r->data->whole || r->data->validation;
    int code = agree(r, ranks_lead(r->group) ? note_check_split(path, r->report, drawn, drawn && only_tests(r->options)) : 0);
    if (code) return code;
    status = clt_checkpoint_load(r->trainer, r->train, path);
    /* Where training would go on, as many samples and the same optimizer are needed; weights are tested on any. */
    bool differs_all = false;
    if (status < 0 && only_tests(r->options) && all_know(r, status == CLT_E_MISMATCH, &differs_all) >= 0 && differs_all) {
        status = clt_weights_load(r->trainer, path);
        if (status >= 0) return tell_standardization(r, path), 0;
    }
    const char *differs = status == CLT_E_MISMATCH ? options_that_differ(r->options) : NULL;
    if (differs)
        return run_error("%s: %s. %s when the file was saved%s", option_of_file(r->options), clt_error_detail(), differs, is_of_alpha() ? "" : "; --init takes the file's weights alone");
    int64_t batch = status == CLT_E_MISMATCH ? batch_of_file(r) : 0;
    if (batch) return run_error("%s: %s; of these samples --batch %lld makes as many", option_of_file(r->options), clt_error_detail(), (long long)batch);
    if (status < 0) return failed(r, status, option_of_file(r->options));
    r->resumed = true;
    status = note_recall(path, clt_loader_get_position(r->train).epoch, r->group, r->report, &r->before);
    if (status < 0) return failed(r, status, "resuming");
    if (only_tests(r->options)) r->before = (note_counts){0};
    r->skipped = r->before.skipped;
    r->report->stopped_early = r->report->best_epoch && r->report->unimproved >= r->options->patience;
    /* Another seed holds out other samples: the test would see what was trained on. */
    uint64_t seed = clt_loader_get_position(r->train).seed;
    if (seed != (uint64_t)r->options->seed)
        return run_error("%s: %s was trained with --seed %llu, not %lld", option_of_file(r->options), path,
                         (unsigned long long)seed, (long long)r->options->seed);
    tell_standardization(r, path);
    r->report->steps = clt_trainer_steps(r->trainer);
    r->report->epochs = r->ended_epochs = clt_loader_get_position(r->train).epoch;
    message_line("Resumed from %s: %lld epoch%s and %lld step%s done before.", path,
                 (long long)r->report->epochs, PLURAL(r->report->epochs), (long long)r->report->steps,
                 PLURAL(r->report->steps));
    return 0;
}

static int open_board(run *r) {
    if (!r->options->tensorboard || !ranks_lead(r->group) || r->board) return 0;
    r->board = board_open(r->options->tensorboard);
    if (!r->board) return EXIT_FAILED;
    board_start(r->board, r->report, r->data, r->made->loss);
    return 0;
}

static int open_log(run *r) {
    int code = open_board(r);
    if (code) return code;
    if (!r->options->log || !ranks_lead(r->group) || r->log) return 0;
    r->log = run_log_open(r->options->log, r->resumed || r->stepped);
    if (!r->log) return EXIT_FAILED;
    run_log_start(r->log, r->report);
    return 0;
}

/* A file of another program is not replaced; of another model of this one's it is said. */
static int check_model(const char *option, const char *path, const options *o) {
    char model[256];
    if (!path || !file_readable(path) || (o->resume && strcmp(o->resume, path) == 0)) return 0;
    clt_status status = clt_weights_metadata(path, "cltrain.model", model, sizeof model);
    if (status == CLT_E_NOT_FOUND) return run_error("%s: %s is there, and does not tell which model it is of: it is not replaced. Choose another name, or delete it", option, path);
    if (status < 0 || strcmp(model, o->model) == 0) return 0; /* what is damaged, or empty, is no loss */
    warning("%s: %s held another model (%s), and is replaced", option, path, model);
    return 0;
}

/* What is written at the end only is found out now if it cannot be. */
static int open_outputs(run *r) {
    const options *o = r->options;
    if (!ranks_lead(r->group)) return 0;
    int code = file_check_replaceable("--save", o->save, FILE_SAFETENSORS);
    if (!code) code = check_model("--save", o->save, o);
    if (o->save) r->saved = file_identify(o->save);
    if (!code) code = file_check_replaceable("--export", o->export_to, o->export_to && model_is_onnx(o->export_to) ? FILE_ONNX : FILE_SAFETENSORS);
    if (!code && o->export_to && !model_is_onnx(o->export_to)) code = check_model("--export", o->export_to, o);
    if (!code && o->export_to && model_is_onnx(o->export_to) && r->made->onnx && clt_onnx_check_path(r->made->onnx, o->export_to) < 0)
        code = usage_error("--export: %s", clt_error_detail());
    if (!code) code = file_check_replaceable_in("--export-lora", o->export_lora, "adapter_model.safetensors");
    if (!code) code = file_check_replaceable("--profile", o->profile, FILE_JSON);
    if (!code) code = file_refuse_another("--json", o->json, FILE_JSON);
    return code ? code : open_log(r);
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
                   by_steps ? 0 : r->limit_epochs, r->log || r->board);
}

/* What differs was said. */
static int check_options(run *r) {
    clt_status status = agreement_check(r->options, r->group);
    if (status == CLT_E_MISMATCH && r->group->comm && clt_comm_state(r->group->comm) >= 0) return EXIT_USAGE;
    return status < 0 ? failed(r, status, "meeting the other ranks") : 0;
}

/* Of options that do nothing here. */
static void warn_of_options(const run *r) {
    const options *o = r->options;
    int64_t total = recipe_total_steps(o, clt_dataset_samples(r->data->train));
    if (total > 0 && o->warmup > total)
        warning("--warmup %lld is longer than the run's %lld steps: the learning rate does not reach --lr", (long long)o->warmup, (long long)total);
    if (o->balanced_sampling && o->class_weights && strcmp(o->class_weights, "balanced") == 0)
        warning("--balanced-sampling and --class-weights balanced both make up for rare classes: together they do it twice");
    const struct {
        const char *name;
        bool given;
    } of_ranks[] = {{"balance", o->balance}, {"sync-batch-norm", o->sync_batch_norm}, {"shard", o->shard != CLT_SHARD_NONE}, {"compress", o->compress != NULL}};
    for (size_t i = 0; i < sizeof of_ranks / sizeof of_ranks[0]; i++)
        if (of_ranks[i].given && !r->group->comm) warning("--%s does nothing: there is one rank", of_ranks[i].name);
}

static int prepare(run *r) {
    int code = check_options(r);
    if (!code) code = make_loaders(r);
    if (!code) code = make_trainer(r);
    if (!code) code = resume(r);
    clt_status status = code ? CLT_OK : note_keep(r->trainer, r->report, NULL);
    if (status < 0) code = failed(r, status, "making the trainer");
    if (!code) code = agree(r, open_outputs(r));
    if (code) return code;
    if (ranks_lead(r->group)) warn_of_options(r);
    set_limits(r);
    signals_catch();
    r->ready = true;
    return 0;
}

static void dismantle(run *r) {
    clt_trainer_destroy(r->trainer);
    clt_loader_destroy(r->last);
    clt_loader_destroy(r->test);
    clt_loader_destroy(r->train);
    clt_dataset_destroy(r->mixed_last);
    clt_dataset_destroy(r->mixed[1]);
    clt_dataset_destroy(r->mixed[0]);
    r->trainer = NULL;
    r->test = r->train = r->last = NULL;
    r->mixed[0] = r->mixed[1] = r->mixed_last = NULL;
}

static int prepare_anew(run *r) {
    dismantle(r);
    r->ready = r->resumed = r->stepped = false;
    r->report->steps = r->report->epochs = r->report->best_epoch = r->report->unimproved = r->ended_epochs = r->agree_at = 0;
    return prepare(r);
}

/* ---- checkpoints and tests ---- */

static double mean_of_both(const clt_metrics *a, double of_a, const clt_metrics *b, double of_b) {
    double sum = (a->samples ? (double)a->samples * of_a : 0) + (double)b->samples * of_b;
    return sum / (double)(a->samples + b->samples);
}

/* An epoch that another run has begun. */
static void add_metrics(clt_metrics *to, const clt_metrics *before) {
    if (!before->samples) return;
    to->loss = mean_of_both(to, to->loss, before, before->loss);
    to->accuracy = mean_of_both(to, to->accuracy, before, before->accuracy);
    to->mse = mean_of_both(to, to->mse, before, before->mse);
    to->samples += before->samples;
}

/* Metrics wait for the device, so the stopwatch may stop. */
static int read_train_metrics(run *r, clt_metrics *metrics, bool reset) {
    clt_status status = clt_trainer_train_metrics(r->trainer, metrics, reset);
    if (status < 0) return failed(r, status, "training");
    report_as_read(metrics, r->data->preprocessing);
    add_metrics(metrics, &r->before.epoch);
    r->report->skipped = r->skipped + metrics->skipped;
    r->report->loss_scale = metrics->loss_scale;
    if (reset) r->skipped = r->report->skipped;
    if (reset) r->before.epoch.samples = 0;
    if (metrics->samples == 0) *metrics = report_no_metrics();
    /* With steps that are skipped, there may be none that is not for a while; but not for an epoch. */
    else if (!isfinite(metrics->loss) && (reset || !metrics->skipped))
        return run_error("the loss is %s at step %lld. " DIVERGED, isnan(metrics->loss) ? "nan" : "infinite", (long long)r->report->steps);
    return 0;
}

/* Two runs with one file would lose the work of one of them: the second one to find that out takes another name. A file that somebody has taken away
 * meanwhile is none. */
static void choose_save_path(run *r) {
    const char *path = r->options->save;
    file_identity none = {0};
    if (r->report->elsewhere[0] || file_is_still(path, &r->saved) || file_is_still(path, &none)) return;
    snprintf(r->report->elsewhere, sizeof r->report->elsewhere, "%s.%ld", path, (long)getpid());
    warning("--save: another program has written %s since this run began, or saved last: it is left as it is, and this run saves %s", path, r->report->elsewhere);
    r->report->saved_to = r->report->elsewhere;
}

/* Stages of a pipeline have the same part of the data: what the first of them counts in it is counted. */
static bool counts_part(const run *r) {
    return !r->options->pipeline || clt_trainer_stage(r->trainer) == 0;
}

/* Of what ranks count in their parts of the data. */
static clt_status sum_of_parts(const run *r, int64_t *value) {
    if (!counts_part(r)) *value = 0;
    return ranks_sum(r->group, value);
}

/* Of all ranks, with those of the run before. */
static clt_status count_broken(run *r) {
    r->report->broken_samples = clt_loader_broken(r->train);
    clt_status status = sum_of_parts(r, &r->report->broken_samples);
    r->report->broken_samples += r->before.broken;
    return status;
}

/* The file tells what was counted; those of weights, which are written between, tell nothing that an interruption changes. */
static clt_status save_checkpoint(run *r, const char *path, const clt_metrics *epoch) {
    note_counts counts = r->before;
    counts.epoch = *epoch;
    counts.skipped = r->report->skipped;
    counts.broken = r->report->broken_samples;
    clt_status status = note_keep(r->trainer, r->report, &counts);
    if (status >= 0) status = clt_checkpoint_save(r->trainer, r->train, path);
    clt_status after = note_keep(r->trainer, r->report, NULL);
    return status < 0 ? status : after;
}

static int save(run *r) {
    clt_metrics metrics;
    /* A run that diverged must not replace a good file. */
    int code = read_train_metrics(r, &metrics, false);
    stopwatch_stop(&r->watch);
    if (code) return code;
    /* One file serves all; who has a part of what is in it gives that. */
    bool lead = ranks_lead(r->group), takes_part = lead || r->options->pipeline || r->options->shard != CLT_SHARD_NONE;
    clt_status status = clt_trainer_sync_buffers(r->trainer);
    if (status >= 0) status = count_broken(r);
    if (status < 0) return failed(r, status, "--save");
    if (lead) choose_save_path(r);
    status = takes_part ? save_checkpoint(r, lead ? r->report->saved_to : NULL, &metrics) : CLT_OK;
    code = agree(r, status < 0 ? library_error(status, "--save") : 0);
    if (lead) r->saved = file_identify(r->options->save);
    if (!code) r->unsaved = false;
    return code;
}

/* --ema: what is between two calls is of the average, not of the parameters. */
static int use_average(run *r, bool use) {
    clt_status status = r->options->ema > 0 ? clt_trainer_use_average(r->trainer, use) : CLT_OK;
    return status < 0 ? failed(r, status, "--ema") : 0;
}

/* Stops early on a signal, without a result. */
static int test_model(run *r) {
    clt_batch batch;
    clt_status status = clt_trainer_sync_buffers(r->trainer);
    r->report->test = report_no_metrics();
    if (status < 0) return failed(r, status, "testing");
    int64_t broken = clt_loader_broken(r->test);
    while (!signal_caught(r) && (status = clt_loader_next(r->test, &batch)) != CLT_END) {
        if (status >= 0 && batch.samples) status = clt_trainer_evaluate(r->trainer, &batch);
        if (status < 0) return failed(r, status, "testing");
    }
    if (signal_caught(r)) return 0;
    status = clt_trainer_eval_metrics(r->trainer, &r->report->test, true);
    r->report->broken_tested = clt_loader_broken(r->test) - broken;
    if (status >= 0) status = sum_of_parts(r, &r->report->broken_tested);
    if (status < 0) return failed(r, status, "testing");
    if (!r->report->test.samples) return run_error("testing: none of the %lld samples could be read", (long long)clt_dataset_samples(r->tested));
    report_as_read(&r->report->test, r->data->preprocessing);
    r->tested_at = r->report->steps;
    return 0;
}

/* Each rank has those of its part; then each has those of all. */
static clt_status gather_worst(const run *r, scores *s) {
    typedef struct part {
        worst_sample worst[SCORES_WORST];
        int n;
    } part;
    part *all = calloc((size_t)r->group->size, sizeof *all);
    if (!all) return CLT_E_NO_MEMORY;
    part *own = &all[r->group->rank];
    if (!counts_part(r)) s->n_worst = 0;
    memcpy(own->worst, s->worst, sizeof s->worst);
    own->n = s->n_worst;
    clt_status status = ranks_gather(r->group, all, sizeof *all);
    for (int i = 0; status >= 0 && i < r->group->size; i++)
        for (int k = 0; i != r->group->rank && k < all[i].n; k++) scores_keep_worst(s, all[i].worst[k]);
    free(all);
    return status;
}

/* As the user finds them: in the data, not in the part of them that is tested. */
static void take_worst(run *r, const scores *s) {
    r->report->n_worst = s->n_worst;
    for (int i = 0; i < s->n_worst; i++) {
        worst_sample *w = &r->report->worst[i];
        *w = s->worst[i];
        w->name = clt_dataset_sample_name(r->tested, w->index);
        w->index = clt_dataset_sample_index(r->tested, w->index);
        w->line = clt_dataset_sample_line(r->data->whole, w->index);
    }
}

/* One pass of its own, at the end. */
static int add_scores(run *r, scores *s, int64_t width) {
    clt_batch batch;
    clt_metrics counted;
    clt_status status = scores_begin(s, r->made->classification, width, clt_loader_batch(r->test), r->data->preprocessing);
    while (status >= 0 && (status = clt_loader_next(r->test, &batch)) != CLT_END)
        if (status >= 0 && batch.samples && (status = scores_add(s, r->trainer, &batch)) >= 0) board_add(r->board, &batch, s->output, width);
    if (!counts_part(r)) clt_evaluator_reset(s->evaluator);
    if (status >= 0) status = scores_result(s, r->group->comm, &r->report->scores);
    if (status >= 0) status = gather_worst(r, s);
    if (status >= 0) status = clt_trainer_eval_metrics(r->trainer, &counted, true); /* for the next test */
    free(r->report->confusion);
    r->report->confusion = status >= 0 ? scores_confusion(s, r->made->classification) : NULL;
    r->report->classes = r->made->classification ? (int)width : 0;
    if (status >= 0) take_worst(r, s);
    return status < 0 ? failed(r, status, "testing") : 0;
}

/* Not of tokens, whose classes are a vocabulary. */
static int score(run *r) {
    clt_shape output = clt_tensor_shape(r->made->output), truth = clt_dataset_shape(r->data->test, clt_dataset_fields(r->data->test) - 1);
    int64_t width = r->made->classification ? output.dims[1] : clt_shape_elements(&truth);
    scores s = {0};
    if (r->data->vocabulary || output.rank != 2 || width > SCORES_MOST_CLASSES || signal_caught(r)) return 0;
    int code = use_average(r, true);
    if (!code) code = add_scores(r, &s, width);
    scores_end(&s);
    return code ? code : use_average(r, false);
}

static int test(run *r) {
    if (r->tested_at == r->report->steps) return 0;
    int code = use_average(r, true);
    if (!code) code = test_model(r);
    return code ? code : use_average(r, false);
}

static int write_exports(run *r) {
    const options *o = r->options;
    clt_status status = CLT_OK;
    if (o->export_to && !model_is_onnx(o->export_to)) status = clt_weights_save(r->trainer, ranks_lead(r->group) ? o->export_to : NULL);
    else if (o->export_to)
        status = r->made->onnx ? clt_onnx_save(r->made->onnx, r->trainer, o->export_to) : clt_onnx_export(r->trainer, &r->made->output, 1, o->export_to, NULL);
    if (status < 0) return library_error(status, "--export");
    status = o->export_lora ? clt_lora_save(r->trainer, o->export_lora) : CLT_OK;
    r->report->exported = status >= 0;
    return status < 0 ? library_error(status, "--export-lora") : 0;
}

static int export_weights(run *r) {
    const options *o = r->options;
    if ((!o->export_to && !o->export_lora) || (!ranks_lead(r->group) && !o->pipeline)) return 0;
    int code = use_average(r, true);
    if (!code) code = write_exports(r);
    return code ? code : use_average(r, false);
}

/* --patience, after the test of an epoch. */
static int compare_test(run *r) {
    int64_t patience = r->options->patience;
    int sign, monitor = options_monitor(r->options);
    if (patience == OPTION_UNSET || !r->report->test.samples) return 0;
    double now = scores_monitor(monitor, &r->report->test, &r->report->scores, &sign);
    if (monitor != MONITOR_LOSS && isnan(now)) return usage_error("--monitor %s: there is none of this model and these data", scores_monitored[monitor]);
    if (isfinite(now) && (!r->report->best_epoch || sign * now < sign * r->report->best_loss)) {
        r->report->best_loss = now;
        r->report->best_epoch = r->report->epochs;
        r->report->unimproved = 0;
        clt_status status = note_keep(r->trainer, r->report, NULL);
        return agree(r, status < 0 ? library_error(status, "--patience") : export_weights(r));
    }
    r->report->stopped_early = ++r->report->unimproved >= patience;
    return 0;
}

/* ---- shares ---- */

/* The batches that follow are cut as options->each_share says. */
static int share_anew(run *r) {
    const options *o = r->options;
    clt_loader_position first = {.seed = clt_loader_get_position(r->test).seed};
    clt_status status = clt_loader_set_shares(r->train, r->group->rank, r->group->size, o->each_share);
    if (status >= 0) status = clt_loader_set_shares(r->test, r->group->rank, r->group->size, o->each_share);
    if (status >= 0) status = clt_loader_set_position(r->test, first);
    if (status >= 0 && r->last) status = clt_loader_set_shares(r->last, r->group->rank, r->group->size, o->each_share);
    return status < 0 ? library_error(status, "sharing the data") : 0;
}

/* Those who are left share as they did before, in proportion. */
static clt_status share_what_is_left(run *r, int64_t own) {
    const ranks *group = r->group;
    double *weights = calloc((size_t)group->size, sizeof *weights);
    if (!weights) return CLT_E_NO_MEMORY;
    weights[group->rank] = (double)own;
    clt_status status = ranks_tell(group, weights);
    if (status >= 0) share_out(r->options->whole_batch, weights, group->size, r->options->each_share);
    free(weights);
    return status;
}

/* ---- the loop ---- */

/* Of the epoch so far, if a step of it was timed. The first step of all counts as the others: what it took longer is the kernels'. */
static void take_rate(run *r) {
    report *to = r->report;
    double first = r->first_step_seconds;
    r->first_step_seconds = 0;
    if (!isfinite(stopwatch_rate(&r->watch))) return;
    to->samples_per_second = stopwatch_rate(&r->watch);
    to->epoch_seconds = r->watch.seconds;
    if (!first) return;
    double step_seconds = (double)r->options->whole_batch / to->samples_per_second;
    to->epoch_seconds += step_seconds;
    to->kernel_seconds = fmax(0, first - step_seconds);
}

static int end_epoch(run *r) {
    clt_metrics metrics;
    int code = profiler_stop(&r->report->profile);
    if (!code) code = read_train_metrics(r, &metrics, true);
    stopwatch_stop(&r->watch);
    if (code) return code;
    r->report->epochs = clt_loader_get_position(r->train).epoch;
    /* A run that ended with an epoch's last batch is resumed with the end of that epoch. Metrics may also be lost with a rank. */
    if (!code && metrics.samples == 0 && !r->went_on) return 0;
    r->report->train = metrics;
    r->report->peak_device_bytes = clt_device_peak_bytes(r->device);
    take_rate(r);
    r->unsaved = true;
    bool saves = r->options->save && r->options->save_every == OPTION_UNSET, told = r->options->patience != OPTION_UNSET;
    if (!code && saves && !told) code = save(r);
    if (!code) code = test(r);
    if (!code && r->options->patience != OPTION_UNSET && !scores_monitor_is_counted(options_monitor(r->options))) code = score(r);
    if (!code) code = compare_test(r);
    if (!code && saves && told) code = save(r); /* whose file tells of this test */
    if (code) return code;
    progress_epoch(&r->progress, r->report);
    run_log_epoch(r->log, r->report, clt_trainer_lr(r->trainer));
    board_epoch(r->board, r->report, clt_trainer_lr(r->trainer), r->trainer, r->made->graph);
    if (!r->timed) progress_settle(&r->progress, r->report->steps);
    r->timed = true;
    r->watch = (stopwatch){0};
    return 0;
}

static int look(run *r) {
    clt_metrics metrics;
    int code = read_train_metrics(r, &metrics, false);
    if (code) return code;
    double rate = stopwatch_rate(&r->watch);
    r->report->peak_device_bytes = clt_device_peak_bytes(r->device);
    progress_show(&r->progress, r->report, &metrics, rate);
    run_log_progress(r->log, r->report, clt_trainer_lr(r->trainer), &metrics, rate);
    board_progress(r->board, r->report, clt_trainer_lr(r->trainer), &metrics, rate);
    return 0;
}

/* The first step is apart: it may build plans and fill caches. */
static clt_status first_step(run *r, const clt_batch *batch) {
    clt_status status = clt_trainer_step(r->trainer, batch);
    if (status >= 0) status = clt_trainer_wait(r->trainer);
    r->report->first_step_seconds = r->first_step_seconds = now_seconds() - r->created;
    if (status >= 0 && ranks_lead(r->group)) message_line("First step done after %.1f s, kernels included.", r->report->first_step_seconds);
    r->stepped = true;
    progress_settle(&r->progress, clt_trainer_steps(r->trainer));
    return status;
}

static clt_status later_step(run *r, const clt_batch *batch) {
    stopwatch_go(&r->watch);
    r->watch.samples += r->options->whole_batch;
    return clt_trainer_step(r->trainer, batch);
}

/* Rank 0's clock says when all agree next, a few times a second, and whether there is something to look at. */
static int agree_on(run *r) {
    enum { SIGNAL, LOOK, STEPS, WORDS };
    int32_t words[WORDS] = {[SIGNAL] = signals_caught(), [STEPS] = 1};
    if (ranks_lead(r->group)) {
        double steps = 0.25 * stopwatch_rate(&r->watch) / (double)r->options->whole_batch;
        words[LOOK] = progress_due(&r->progress);
        words[STEPS] = steps >= 1 ? steps < 1000 ? (int32_t)steps : 1000 : 1;
    }
    clt_status status = ranks_max(r->group, words, WORDS);
    if (status < 0) return failed(r, status, "training");
    r->signal = words[SIGNAL];
    r->agree_at = r->report->steps + words[STEPS];
    return words[LOOK] ? look(r) : 0;
}

static int balance_shares(run *r) {
    if (!r->options->balance || !r->group->comm) return 0;
    bool changed = false;
    clt_status status = balance_step(&r->balance, r->group, r->options->each_share, r->options->whole_batch,
                                     clt_trainer_waited_seconds(r->trainer), &changed);
    if (status < 0) return failed(r, status, "--balance");
    return changed ? share_anew(r) : 0;
}

/* --test-every: the end of an epoch, and of the run, tests by itself. */
static int test_between(run *r) {
    clt_metrics metrics;
    int code = read_train_metrics(r, &metrics, false);
    stopwatch_stop(&r->watch);
    if (!code) code = test(r);
    if (code || !r->report->test.samples) return code; /* none: interrupted */
    progress_test(&r->progress, r->report, &metrics);
    run_log_test(r->log, r->report);
    board_test(r->board, r->report);
    return 0;
}

/* After an update. */
static int attend(run *r) {
    int64_t every = r->options->save_every, test_every = r->options->test_every;
    int code = balance_shares(r);
    if (!code && test_every != OPTION_UNSET && r->report->steps % test_every == 0) code = test_between(r);
    if (!code && every != OPTION_UNSET && r->report->steps % every == 0) code = save(r);
    if (code) return code;
    if (r->group->comm) return r->report->steps >= r->agree_at ? agree_on(r) : 0;
    return progress_due(&r->progress) ? look(r) : 0;
}

static int step(run *r, const clt_batch *batch) {
    int code = r->stepped ? profiler_before_step(&r->report->profile, r->device) : 0;
    if (code) return code;
    if (r->stepped && r->options->profile && r->options->pipeline) clt_trainer_time_turns(r->trainer, true);
    clt_status status = r->stepped ? later_step(r, batch) : first_step(r, batch);
    if (status < 0) return failed(r, status, "training");
    int64_t before = r->report->steps;
    r->report->steps = clt_trainer_steps(r->trainer);
    r->unsaved = true;
    code = profiler_after_step(&r->report->profile);
    bool updated = r->report->steps != before;
    if (!code && updated) code = attend(r);
    else if (!code && !r->group->comm && progress_due(&r->progress)) code = look(r);
    return code;
}

/* Only whole updates are done: what is between them is in no checkpoint. */
static bool finished(const run *r) {
    clt_loader_position at = clt_loader_get_position(r->train);
    if (at.epoch > r->ended_epochs) return false;
    if (at.batch % r->options->accumulate != 0 && at.batch < r->used_batches) return false;
    if (signal_caught(r) || r->report->stopped_early) return true;
    if (r->options->steps != OPTION_UNSET) return r->report->steps >= r->options->steps;
    return at.epoch >= r->limit_epochs;
}

/* What is next: the end of an epoch, if one of the ranks has not come through it, or a step. */
static int advance(run *r) {
    clt_batch batch;
    clt_loader_position at = clt_loader_get_position(r->train);
    if (at.epoch > r->ended_epochs) {
        int code = end_epoch(r);
        if (!code) r->ended_epochs = at.epoch;
        return code;
    }
    clt_status status = clt_loader_next(r->train, &batch);
    if (status < 0) return library_error(status, "reading the data");
    bool used = status != CLT_END && clt_loader_get_position(r->train).batch <= r->used_batches;
    return used ? step(r, &batch) : 0;
}

static int train(run *r) {
    if (finished(r) && r->limit_epochs > 0)
        message_line("Nothing is left to train: the model is only tested.");
    while (!finished(r)) {
        int code = advance(r);
        if (code) return code;
    }
    return 0;
}

/* --validation: what was looked at on the way is told, and the test is of the samples that nothing has looked at. */
static void turn_to_test(run *r) {
    if (!r->last) return;
    r->report->validation = r->report->test;
    r->report->broken_validated = r->report->broken_tested;
    r->report->held_out = "test";
    clt_loader_destroy(r->test);
    r->test = r->last;
    r->last = NULL;
    r->tested = r->data->test;
    r->tested_at = -1;
}

/* What each stage has and had. */
static int gather_stages(run *r) {
    stage_report *all = calloc((size_t)r->group->size, sizeof *all);
    if (!all) return run_error("no memory for a report of %d stages", r->group->size);
    stage_report *own = &all[r->group->rank];
    *own = (stage_report){.in_flight = clt_trainer_in_flight(r->trainer), .peak_device_bytes = clt_device_peak_bytes(r->device), .waited_seconds = clt_trainer_waited_seconds(r->trainer),
                          .parameters = clt_trainer_stage_parameters(r->trainer)};
    snprintf(own->device, sizeof own->device, "%.*s", (int)sizeof own->device - 1, clt_device_get_info(r->device)->name);
    clt_status status = ranks_gather(r->group, all, sizeof *all);
    if (status >= 0) status = stages_gather(r->group, r->trainer, &r->options->pipeline_spec.options, &r->report->timed);
    free(r->report->stages);
    r->report->stages = all;
    return status < 0 ? failed(r, status, "training") : 0;
}

/* Brings report, checkpoint and exported weights up to the last step. */
static int finish(run *r) {
    clt_metrics metrics;
    const options *o = r->options;
    int code = profiler_stop(&r->report->profile), signal = signal_caught(r);
    if (!code) code = read_train_metrics(r, &metrics, false);
    stopwatch_stop(&r->watch);
    if (code) return code;
    clt_loader_position at = clt_loader_get_position(r->train);
    r->report->epochs = at.epoch + (at.batch >= r->used_batches);
    if (metrics.samples > 0) r->report->train = metrics;
    take_rate(r);
    /* A run that was interrupted before its first step has nothing that is worth a file. */
    if (o->save && r->unsaved && (r->stepped || !signal)) code = save(r);
    if (!code) code = test(r);
    if (!code) turn_to_test(r);
    if (!code) code = test(r);
    if (!code) code = score(r);
    if (!code && !signal && !r->report->best_epoch) code = export_weights(r); /* else it has the best */
    const char *wanted = o->export_to ? o->export_to : o->export_lora;
    if (r->resumed && r->report->best_epoch && wanted && note_is_of_best(wanted, r->report)) r->report->exported = true; /* before it was started again */
    if (!code && !signal && wanted && !r->report->exported && ranks_lead(r->group))
        warning("%s: %s is not written: epoch %lld, of the run before, is still the best", o->export_to ? "--export" : "--export-lora", wanted, (long long)r->report->best_epoch);
    r->report->peak_device_bytes = clt_device_peak_bytes(r->device);
    r->report->ranks = r->group->size;
    r->report->bytes_sent = ranks_bytes_sent(r->group);
    r->report->engine = clt_comm_engine(r->group->comm);
    r->report->data_wait_seconds = clt_loader_waited_seconds(r->train);
    r->report->waited_seconds = clt_trainer_waited_seconds(r->trainer);
    r->report->drifts = clt_trainer_drifts(r->trainer);
    if (!code && o->pipeline) code = gather_stages(r);
    r->report->signal = signal;
    clt_status status = code ? CLT_OK : count_broken(r);
    if (status < 0) code = failed(r, status, "training");
    if (code) return code;
    return signal ? EXIT_SIGNAL + signal : 0;
}

/* ---- ranks that are lost ---- */

/* All that those who are left must agree on. */
static int go_on_training(run *r) {
    clt_metrics none;
    int32_t ended = -(int32_t)r->ended_epochs; /* the least of all */
    clt_status status = clt_trainer_recover(r->trainer, r->train, r->group->comm);
    if (status >= 0) status = ranks_max(r->group, &ended, 1);
    if (status >= 0) status = clt_trainer_eval_metrics(r->trainer, &none, true);
    if (status < 0) return failed(r, status, "going on without a lost rank");
    r->ended_epochs = -ended;
    r->report->steps = clt_trainer_steps(r->trainer);
    r->agree_at = r->report->steps + 1;
    r->tested_at = -1;
    r->unsaved = r->went_on = true;
    if (r->options->save) r->saved = file_identify(r->options->save); /* rank 0 may be another one now */
    r->balance = (balance){0};
    int code = share_anew(r);
    return code ? code : open_log(r);
}

/* While one of them was not ready nobody has come through a step: then all begin anew. */
static int go_on_together(run *r, int64_t own_share) {
    int32_t unready = !r->ready;
    clt_status status = share_what_is_left(r, own_share);
    if (status >= 0) status = ranks_max(r->group, &unready, 1);
    if (status < 0) return failed(r, status, "going on without a lost rank");
    return unready ? prepare_anew(r) : go_on_training(r);
}

/* Another one may be lost meanwhile. */
static int go_on(run *r) {
    int code = RUN_LOST_ONE;
    int64_t own_share = r->options->each_share[r->group->rank];
    stopwatch_stop(&r->watch);
    while (code == RUN_LOST_ONE) {
        bool led = ranks_lead(r->group), all_train;
        clt_status status = ranks_go_on(r->group, true, &all_train);
        if (status < 0) return library_error(status, "going on without a lost rank");
        if (!all_train) return RANKS_MEET_ANEW;
        code = go_on_together(r, own_share);
        if (!code && ranks_lead(r->group) && !led) set_limits(r); /* shows the progress from now on */
    }
    return code;
}

static int train_to_the_end(run *r) {
    int code = train(r);
    return code ? code : finish(r);
}

/* In the place of training. */
static int find_rate(run *r) {
    lr_find found;
    int code = prepare(r);
    if (code) return code == RUN_LOST_ONE ? EXIT_FAILED : code;
    clt_status status = lr_find_run(&found, r->trainer, r->train);
    if (status < 0) return failed(r, status, "--lr-find");
    return ranks_lead(r->group) ? lr_find_print(&found, r->options->json) : 0;
}

static int run_all(run *r) {
    if (r->options->lr_find) return find_rate(r);
    for (int code = prepare(r);; code = go_on(r)) {
        if (!code) code = train_to_the_end(r);
        if (code != RUN_LOST_ONE) return code;
    }
}

int run_training(report *result, const options *given, const data_parts *data, const task *made,
                 clt_device *device, ranks *group) {
    run r = {.options = given, .data = data, .made = made, .device = device, .report = result, .unsaved = true,
             .tested_at = -1, .group = group};
    double start = now_seconds();
    result->saved_to = given->save;
    int code = run_all(&r);
    result->total_seconds = now_seconds() - start;
    if (r.ready && code != EXIT_FAILED) run_log_end(r.log, result);
    if (r.ready) board_end(r.board, result, data->preprocessing, code == 0);
    run_log_close(r.log);
    board_close(r.board);
    dismantle(&r);
    return code;
}
