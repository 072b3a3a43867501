#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "option_table.h"
#include "config.h"
#include "scores.h"
#include "system.h"

static int take_model(void *given, const char *text) {
    options *into = given;
    if (into->model_word)
        return usage_error("one MODEL expected, but there are '%s' and '%s'", into->model_word, text);
    into->model_word = text;
    return 0;
}

static void complete_on_failure(options *given) {
    const char *told = getenv("CLTRAIN_RUN_ON_FAILURE");
    if (given->on_failure == OPTION_UNSET)
        given->on_failure = told && strcmp(told, "continue") == 0 ? ON_FAILURE_SHRINK : ON_FAILURE_STOP;
}

/* --save may go on in the file that --resume begins with. */
static int check_files(const options *o) {
    enum { OUTPUTS = 5 };
    char path[2 * DATA_PATH_BYTES];
    file_use files[OUTPUTS + 1] = {{"--save", o->save, FILE_WRITTEN}, {"--export", o->export_to, FILE_WRITTEN}, {"--log", o->log, FILE_WRITTEN},
                                   {"--profile", o->profile, FILE_WRITTEN}, {"--json", o->json, FILE_OR_STDOUT}, {o->init ? "--init" : "--resume", o->init ? o->init : o->resume, FILE_READ}};
    int code = file_check_distinct(files, OUTPUTS);
    if (!code) code = file_check_distinct(files + 1, OUTPUTS);
    for (int i = 0; !code && data_spec_file(&o->data_spec, i, path); i++) {
        files[OUTPUTS] = (file_use){"--data", path, FILE_READ};
        code = file_check_distinct(files, OUTPUTS + 1);
    }
    return code;
}

/* As if nothing were given. */
static const options standard = {
    .data_threads = OPTION_UNSET,
    .broken_samples = OPTION_UNSET,
    .epochs = OPTION_UNSET,
    .steps = OPTION_UNSET,
    .stop_after = OPTION_UNSET,
    .batch = OPTION_UNSET,
    .accumulate = OPTION_UNSET,
    .loss = OPTION_UNSET,
    .optimizer = OPTION_UNSET,
    .on_failure = OPTION_UNSET,
    .on_nonfinite = OPTION_UNSET,
    .bucket_mb = NAN,
    .drift_steps = OPTION_UNSET,
    .schedule = OPTION_UNSET,
    .warmup = OPTION_UNSET,
    .decay_steps = OPTION_UNSET,
    .save_every = OPTION_UNSET,
    .test_every = OPTION_UNSET,
    .precision = OPTION_UNSET,
    .recompute = CLT_RECOMPUTE_AUTO,
    .offload = CLT_OFFLOAD_AUTO,
    .patience = OPTION_UNSET,
    .monitor = OPTION_UNSET,
    .lr = NAN,
    .validation = NAN,
    .mixup = NAN,
    .cutmix = NAN,
    .momentum = NAN,
    .weight_decay = NAN,
    .decay_factor = NAN,
    .min_lr = NAN,
    .clip_norm = NAN,
    .clip_value = NAN,
    .ema = NAN,
};

static bool is_of_training(const option_row *row) {
    static const char *const others[] = {"model", "device", "list-devices", "broken-samples", "from", "predict", "output", "test", "json", "quiet", "verbose", "help", "version"};
    for (size_t i = 0; row->kind != OPTION_HEADING && i < sizeof others / sizeof *others; i++)
        if (strcmp(row->name, others[i]) == 0) return false;
    return row->kind != OPTION_HEADING;
}

int options_monitor(const options *given) {
    return given->monitor == OPTION_UNSET ? MONITOR_LOSS : given->monitor;
}

bool options_skip_broken(const options *given) {
    return given->broken_samples == BROKEN_SKIP;
}

bool options_mix(const options *given) {
    return given->mixup > 0 || given->cutmix > 0;
}

clt_precision options_precision(const options *given) {
    return given->precision == OPTION_UNSET ? CLT_PRECISION_F32 : (clt_precision)given->precision;
}

options options_standard(void) {
    return standard;
}

static void complete_names(options *given) {
    if (!given->from_name) given->from_name = "--from";
    if (!given->data_name) given->data_name = given->predict ? "--predict" : "--test";
}

/* What only training needs is refused by name. */
static int check_training(const options *given) {
    for (int i = 0; i < option_row_count; i++)
        if (is_of_training(&option_rows[i]) && option_given(&option_rows[i], given, &standard))
            return usage_error("--%s is of training: it does not go with %s", option_rows[i].name, given->data_name);
    return 0;
}

static int check_use_of_data(const options *given) {
    const char *name = given->data_name;
    bool array = given->data_spec.source == DATA_NPY;
    if (given->predict && given->data_spec.csv.missing == CLT_MISSING_DROP)
        return usage_error("%s: each line gets a prediction: missing=drop is for training and tests", name);
    if (given->test && array && !given->data_spec.path_y[0]) return usage_error("%s '%s': labels are needed, too: expected npy:X.npy,Y.npy", name, given->test);
    if (given->predict && array && !given->output) return usage_error("%s: an array needs --output FILE.npy, or FILE.csv for a table", name);
    return 0;
}

int options_check_use(options *given) {
    complete_names(given);
    if (given->predict && given->test) return usage_error("--predict and --test exclude each other");
    if (!given->from) return usage_error("%s needs %s FILE, which --save or --export has written", given->data_name, given->from_name);
    int code = check_training(given);
    if (code) return code;
    given->data = given->predict ? given->predict : given->test;
    code = data_spec_parse_new(&given->data_spec, given->data);
    if (!code) code = check_use_of_data(given);
    if (code) return code;
    if (given->test && given->output) return usage_error("--output is for predictions: a test prints a line, or an object with --json");
    if (given->predict && given->json) return usage_error("--json goes with training and tests: predictions are a table or an array");
    if (given->output && strcmp(given->output, "-") == 0) given->output = NULL;
    file_use files[] = {{"--output", given->output, FILE_WRITTEN}, {given->from_name, given->from, FILE_READ}, {given->data_name, given->data_spec.path, FILE_READ}};
    return file_check_distinct(files, 3);
}

/* "I/K", from 1. */
static int parse_fold(options *given) {
    int64_t fold, folds;
    char part[32];
    const char *slash = strchr(given->fold, '/');
    size_t length = slash ? (size_t)(slash - given->fold) : 0;
    snprintf(part, sizeof part, "%.*s", (int)(length < sizeof part ? length : 0), given->fold);
    if (!slash || !number_whole(slash + 1, 2, 1 << 20, &folds) || !number_whole(part, 1, folds, &fold))
        return usage_error("--fold '%s': expected I/K, such as 1/5: the first of 5 parts", given->fold);
    given->data_spec.fold = (int)fold - 1;
    given->data_spec.folds = (int)folds;
    return 0;
}

/* What is of ranks that have the whole model, or of plans that have the whole step. */
static int check_pipeline(options *given) {
    bool onnx = given->export_to && model_is_onnx(given->export_to);
    const struct {
        const char *name;
        bool said;
    } others[] = {{"shares", given->shares != NULL}, {"balance", given->balance}, {"sync-batch-norm", given->sync_batch_norm}, {"shard", given->shard > 0},
                  {"compress", given->compress != NULL}, {"accumulate", given->accumulate > 1}, {"on-failure shrink", given->on_failure == ON_FAILURE_SHRINK},
                  {"locate-nan", given->locate_nan}, {"lr-find", given->lr_find}, {"lora", given->lora != NULL}, {"export FILE.onnx", onnx}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].said) return usage_error("--pipeline and --%s exclude each other", others[i].name);
    return pipeline_spec_parse(&given->pipeline_spec, given->pipeline);
}

static int check(options *given) {
    char problem[512];
    if (given->predict || given->test) return options_check_use(given);
    complete_on_failure(given);
    if (given->from || given->output) return usage_error("%s goes with --predict or --test", given->from ? "--from" : "--output");
    if (!given->model) return usage_error("no MODEL given: expected " MODEL_EXPECTED);
    if (!model_parse(&given->model_spec, given->model, problem, sizeof problem))
        return usage_error("%s", problem);
    if (!given->data) return usage_error("no --data SPEC given, such as --data digits");
    if (given->quiet && given->verbose)
        return usage_error("--quiet and --verbose exclude each other");
    if (given->device && given->devices) return usage_error("--device and --devices exclude each other");
    if (given->evaluate) {
        const char *other = given->resume ? "--resume" : given->init ? "--init" : given->save ? "--save" : given->export_to ? "--export" : NULL;
        if (other) return usage_error("--evaluate and %s exclude each other: nothing is trained", other);
        given->resume = given->evaluate;
        given->epochs = 0;
        given->steps = OPTION_UNSET;
    }
    if (given->resume && strcmp(given->resume, "auto") == 0) {
        if (!given->save) return usage_error("--resume auto needs --save FILE, from which training goes on if it is there");
        given->resume = file_readable(given->save) ? given->save : NULL;
    }
    if (given->lr_find) {
        const char *other = given->save ? "--save" : given->export_to ? "--export" : given->log ? "--log" : given->tensorboard ? "--tensorboard" : given->schedule != OPTION_UNSET ? "--schedule" : NULL;
        if (other) return usage_error("--lr-find and %s exclude each other: it trains nothing that lasts", other);
        given->schedule = CLT_SCHEDULE_CONSTANT;
        given->warmup = 0;
        given->on_nonfinite = given->precision == CLT_PRECISION_F16 ? CLT_NONFINITE_SKIP : CLT_NONFINITE_IGNORE;
    }
    if (given->offload_folder && given->offload == CLT_OFFLOAD_NONE) return usage_error("--offload-dir and --offload none exclude each other");
    if (given->init && given->resume) return usage_error("--init and --resume exclude each other: --resume goes on with a training, --init begins one");
    if (given->init_matching && !given->init) return usage_error("--init-matching needs --init FILE");
    if (given->ema > 0 && given->shard) return usage_error("--ema and --shard exclude each other");
    if (given->lora && given->freeze) return usage_error("--lora and --freeze exclude each other: with --lora nothing but adapters is trained");
    if (given->export_lora && !given->lora) return usage_error("--export-lora needs --lora");
    if (given->monitor != OPTION_UNSET && given->patience == OPTION_UNSET) return usage_error("--monitor needs --patience N, which it is the measure of");
    if (given->patience != OPTION_UNSET && given->steps != OPTION_UNSET) return usage_error("--patience counts epochs: it does not go with --steps");
    if (options_mix(given) && given->class_weights) return usage_error("--class-weights and --%s exclude each other", given->mixup > 0 ? "mixup" : "cutmix");
    if (given->clip_norm == 0 || given->clip_value == 0) warning("--clip-%s 0 clips nothing", given->clip_norm == 0 ? "norm" : "value");
    if (given->mixup > 1000 || given->cutmix > 1000) return usage_error("--%s: expected at most 1000", given->mixup > 1000 ? "mixup" : "cutmix");
    if (given->save_every != OPTION_UNSET && !given->save)
        return usage_error("--save-every needs --save FILE");
    if (given->precision == CLT_PRECISION_F16 && given->on_nonfinite != OPTION_UNSET && given->on_nonfinite != CLT_NONFINITE_SKIP)
        return usage_error("--precision f16 leaves out updates that overflow: it does not go with --on-nonfinite other than skip");
    if (given->memory_limit && !clt_settings_bytes(given->memory_limit)) return usage_error("--memory-limit %s: expected a size, such as 512M or 2G", given->memory_limit);
    if (given->on_nonfinite == OPTION_UNSET) given->on_nonfinite = given->precision == CLT_PRECISION_F16 ? CLT_NONFINITE_SKIP : CLT_NONFINITE_STOP;
    if (given->locate_nan && given->on_nonfinite == CLT_NONFINITE_IGNORE)
        return usage_error("--locate-nan and --on-nonfinite ignore exclude each other");
    if (given->shares && given->batch != OPTION_UNSET) return usage_error("--shares and --batch exclude each other");
    if (given->stop_after != OPTION_UNSET && given->steps != OPTION_UNSET)
        return usage_error("--stop-after and --steps exclude each other");
    int code = given->compress ? compress_spec_parse(&given->compress_options, given->compress) : 0;
    if (!code && given->pipeline) code = check_pipeline(given);
    if (!code && given->lora) code = lora_spec_parse(&given->lora_spec, given->lora);
    if (!code) code = data_spec_parse(&given->data_spec, given->data);
    given->data_spec.stratify = given->stratify;
    given->data_spec.validation = given->validation > 0 ? given->validation : 0;
    if (!code && given->fold) code = parse_fold(given);
    given->data_spec.images.floats = given->model_spec.id == MODEL_ONNX; /* which may have no use for u8 */
    if (!code && given->data_spec.source == DATA_NPY && !given->data_spec.path_y[0])
        code = usage_error("--data '%s': expected npy:X.npy,Y.npy[,layout=nchw|nhwc]", given->data);
    return code ? code : check_files(given);
}

int options_parse(options *into, int argc, char **argv) {
    *into = standard;
    into->argc = argc;
    into->argv = argv;
    int code = config_read(into, argc, argv);
    const char *model = into->model; /* of the file: a word goes over it */
    into->model = NULL;
    if (!code) code = option_parse(option_rows, option_row_count, argc - 1, argv + 1, into, take_model);
    if (!code && into->model && into->model_word && strcmp(into->model, into->model_word) != 0)
        code = usage_error("one MODEL expected, but there are '%s' and --model '%s'", into->model_word, into->model);
    if (into->model_word) into->model = into->model_word;
    if (!into->model) into->model = model;
    if (code || into->help || into->version || into->list_devices) return code;
    into->as_given = config_write(into);
    return check(into);
}

void options_free(options *given) {
    json_decref(given->as_given);
    given->as_given = NULL;
}
