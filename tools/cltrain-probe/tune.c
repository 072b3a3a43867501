/*
 * cltrain-probe tune: a table on stdout that grows as problems are done, and a summary.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "on_device.h"
#include "tools/common/clock.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct tune_options {
    shared_options shared;
    double budget, timeout;
} tune_options;

static const option_row rows[] = {
    MODEL_ROWS,
    {OPTION_HEADING, .help = "Tuning:"},
    {OPTION_POSITIVE, 0, "budget", "SECONDS", offsetof(tune_options, budget),
     .help = "for all models together (default 60)"},
    TIMEOUT_ROW(offsetof(tune_options, timeout), "a driver that says nothing for the budget and so much longer\n"
                                                 "has hung (default 120)"),
    DEVICE_ROWS,
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " tune [MODEL] [options]\n"
                       "\n"
                       "Measures which rows and parameters are fastest for the steps of a model, each after its result\n"
                       "was compared with the reference's. What is found is kept below $XDG_CACHE_HOME/cltrain/tune, and\n"
                       "used from then on. A tuning that was stopped goes on where it was.\n"
                       "MODEL is one of cltrain-train's, such as gpt2:nano; without it mlp:1024,1024, convnet and resnet18\n"
                       "are tuned.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error; 130 Ctrl-C.\n");
}

/* ---- what comes of it ---- */

typedef struct tuning {
    const tune_options *options;
    on_device device;
    json_t *problems; /* for --json */
    bool begun;       /* the table has its head */
    double start, took;
    int measured, known, left, failed, better;
    double without_us, best_us; /* of all nodes of what has both */
    char unkept[400];           /* why tuning results cannot be stored; "": they can */
} tuning;

static bool is(const char *text, const char *word) {
    return strcmp(text, word) == 0;
}

/* ---- in the child ---- */

static bool tell(const clt_tune_result *r, void *user) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i}", "problem", r->problem, "outcome", r->outcome,
                            "default", r->without, "best", r->best, "count", r->count, "tried", r->tried, "failed",
                            r->failed);
    if (r->without_us > 0) json_object_set_new(row, "default_us", json_real(r->without_us));
    if (r->best_us > 0) {
        json_object_set_new(row, "best_us", json_real(r->best_us));
        json_object_set_new(row, "nmse", json_real(r->nmse));
    }
    if (r->without_us > 0 && r->best_us > 0)
        json_object_set_new(row, "gain", json_real(r->without_us / r->best_us));
    document_line(user, json_pack("{s:o}", "row", row));
    return true;
}

static clt_status tune_model(FILE *lines, clt_device *device, const shared_options *options, const char *name,
                             double seconds) {
    probe_model model;
    char doing[160];
    if (probe_model_build(&model, options, name)) return CLT_E_INVALID;
    snprintf(doing, sizeof doing, "tuning %s", model.text);
    document_line(lines, json_pack("{s:s, s:s, s:f}", "while", doing, "model", model.text, "seconds", seconds));
    clt_train_options training = {.output = model.output};
    clt_tune_options how = {.budget_seconds = seconds, .report = tell, .user = lines};
    clt_status status = clt_tune_model(device, model.loss, &training, &how);
    probe_model_free(&model);
    /* The device is not at fault. */
    if (status == CLT_E_IO) document_line(lines, json_pack("{s:o}", "unkept", document_text(clt_error_detail())));
    return status;
}

/* NULL behind the last one. */
static const char *model_at(const shared_options *options, int i) {
    static const char *const usual[] = {"mlp:1024,1024", "convnet", "resnet18"};
    if (options->model) return i == 0 ? options->model : NULL;
    return i < 3 ? usual[i] : NULL;
}

static clt_status ask(FILE *lines, clt_device *device, bool *wrong, void *user) {
    const tuning *t = user;
    const shared_options *shared = &t->options->shared;
    int n = 0;
    while (model_at(shared, n)) n++;
    clt_device_facts facts;
    document_line(lines, json_pack("{s:s}", "while", "running a small kernel"));
    clt_status status = clt_device_get_facts(device, &facts, wrong);
    double end = now_seconds() + t->options->budget;
    for (int i = 0; i < n && status == CLT_OK; i++) {
        /* What one model leaves is the next one's; the least is time to tell what is known. */
        double left = (end - now_seconds()) / (n - i);
        status = tune_model(lines, device, shared, model_at(shared, i), left > 1e-3 ? left : 1e-3);
    }
    return status == CLT_E_IO ? CLT_OK : status;
}

/* ---- in the parent ---- */

static void count(tuning *t, const json_t *r) {
    const char *outcome = document_string(r, "outcome");
    double without_us = told_number(r, "default_us"), best_us = told_number(r, "best_us");
    if (is(outcome, "measured")) t->measured++;
    else if (is(outcome, "known")) t->known++;
    else if (is(outcome, "no time left")) t->left++;
    else t->failed++;
    t->better += !is(document_string(r, "default"), document_string(r, "best"));
    if (without_us <= 0 || best_us <= 0) return;
    t->without_us += told_whole(r, "count") * without_us;
    t->best_us += told_whole(r, "count") * best_us;
}

static void print_row(tuning *t, const json_t *r) {
    char time[64] = "", error[32] = "";
    double without_us = told_number(r, "default_us"), best_us = told_number(r, "best_us");
    if (!t->begun)
        printf("%-76s %10s %10s %6s %8s %5s  %s\n", "problem", "default us", "best us", "gain", "error", "tried",
               "served by");
    t->begun = true;
    if (best_us > 0) {
        if (without_us > 0)
            snprintf(time, sizeof time, "%10.1f %10.1f %5.2fx", without_us, best_us, without_us / best_us);
        else snprintf(time, sizeof time, "%10s %10.1f %6s", "fails", best_us, "");
        snprintf(error, sizeof error, "%8.1e", told_number(r, "nmse"));
    }
    printf("%-76s %28s %8s %5d  %s", document_string(r, "problem"), time, error, told_whole(r, "tried"), document_string(r, "best"));
    if (!is(document_string(r, "outcome"), "measured")) printf(" (%s)", document_string(r, "outcome"));
    if (told_whole(r, "failed")) printf(" (%d failed)", told_whole(r, "failed"));
    printf("\n");
    fflush(stdout);
}

static void take(const json_t *told, void *user) {
    tuning *t = user;
    json_t *row = json_object_get(told, "row");
    double seconds = told_number(told, "seconds");
    if (document_string(told, "model")[0]) {
        message_line("Tuning %s on %s, for %.3g s at most", document_string(told, "model"), t->device.device->info.name, seconds);
        /* A problem may take all of it without a word. */
        if (seconds > 0 && seconds <= t->options->budget) t->device.silence_seconds = t->options->timeout + seconds;
    }
    if (document_string(told, "unkept")[0]) snprintf(t->unkept, sizeof t->unkept, "%s", document_string(told, "unkept"));
    if (!json_is_object(row)) return;
    count(t, row);
    if (t->options->shared.json) json_array_append(t->problems, row);
    else print_row(t, row);
}

static int problems_of(const tuning *t) {
    return t->measured + t->known + t->left + t->failed;
}

static int print_json(const tuning *t, double gain) {
    json_t *document = on_device_document(&t->device, "tune");
    json_t *more = json_pack("{s:b, s:f, s:O, s:i, s:i, s:i, s:i, s:i, s:f}", "complete", t->device.finished && !t->unkept[0], "seconds",
                             t->took, "problems", t->problems, "measured", t->measured, "known", t->known, "no_time_left",
                             t->left, "not_measurable", t->failed, "better", t->better, "gain", gain);
    json_object_update(document, more);
    json_decref(more);
    int code = document_write_at(document, t->options->shared.json);
    json_decref(document);
    return code;
}

static int print_end(const tuning *t) {
    double gain = t->best_us > 0 ? t->without_us / t->best_us : 1;
    if (t->options->shared.json) return print_json(t, gain);
    printf("%d problem%s: %d measured, %d known before, %d without time, %d not measurable; %d better than the "
           "default; all together %.2fx\n",
           problems_of(t), PLURAL(problems_of(t)), t->measured, t->known, t->left, t->failed, t->better, gain);
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* A device on which nothing can be measured is not tuned. */
static void judge(tuning *t) {
    on_device *o = &t->device;
    if (!is(o->status, "ok") || t->failed == 0 || t->measured + t->known > 0) return;
    snprintf(o->status, sizeof o->status, "unsupported");
    snprintf(o->reason, sizeof o->reason, "no problem could be measured: of %d none gave a right result", t->failed);
}

static int tune_on_device(const tune_options *options) {
    tuning t = {.options = options, .device = {.ask = ask, .take = take}, .problems = json_array()};
    t.device.user = &t;
    int code = on_device_choose(&t.device, &options->shared, options->timeout);
    if (!code) {
        t.start = now_seconds();
        on_device_ask(&t.device);
        t.took = now_seconds() - t.start;
        judge(&t);
        code = on_device_verdict(&t.device, print_end(&t));
        if (!code && t.unkept[0]) code = run_error("not tuned, since nothing could be kept: %s", t.unkept);
    }
    json_decref(t.problems);
    on_device_free(&t.device);
    return code;
}

/* What makes no sense is refused before a device is looked for. */
static int check_models(const tune_options *options) {
    const char *name;
    for (int i = 0; (name = model_at(&options->shared, i)); i++) {
        probe_model model;
        int code = probe_model_build(&model, &options->shared, name);
        if (code) return code;
        probe_model_free(&model);
    }
    return 0;
}

int run_tune(int argc, char **argv) {
    tune_options options = {.shared = shared_options_unset(), .budget = 60, .timeout = 120};
    int code = option_parse(rows, ROWS, argc, argv, &options, take_model);
    if (code) return code;
    if (options.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(options.shared.verbose);
    code = check_models(&options);
    return code ? code : tune_on_device(&options);
}
