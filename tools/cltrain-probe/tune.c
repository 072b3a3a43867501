/*
 * cltrain-probe tune: a table on stdout that grows as problems are done, and a summary.
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "tools/common/message.h"

typedef struct tune_options {
    shared_options shared;
    double budget;
} tune_options;

static const option_row rows[] = {
    MODEL_ROWS,
    {OPTION_HEADING, .help = "Tuning:"},
    {OPTION_POSITIVE, 0, "budget", "SECONDS", offsetof(tune_options, budget),
     .help = "for all models together (default 60)"},
    DEVICE_ROWS,
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    printf("Usage: " PROGRAM " tune [options]\n"
           "\n"
           "Measures which rows and parameters are fastest for the steps of a model, each after its result\n"
           "was compared with the reference's. What is found is kept below $XDG_CACHE_HOME/cltrain/tune, and\n"
           "used from then on. A tuning that was stopped goes on where it was.\n"
           "Without --model: mlp:1024,1024, convnet and resnet18.\n");
    option_print(rows, ROWS, stdout);
    printf("\nExit status: 0 done; 1 it failed; 2 the command line makes no sense; 130 Ctrl-C.\n");
}

/* ---- what comes of it ---- */

typedef struct tuning {
    const tune_options *options;
    json_t *problems; /* for --json */
    bool begun;       /* the table has its head */
    int measured, known, left, failed, better;
    double without_us, best_us; /* of all nodes of what has both */
} tuning;

static volatile sig_atomic_t caught;

static void note_signal(int number) {
    caught = number;
}

static bool is(const char *text, const char *word) {
    return strcmp(text, word) == 0;
}

static void count(tuning *t, const clt_tune_result *r) {
    if (is(r->outcome, "measured")) t->measured++;
    else if (is(r->outcome, "known")) t->known++;
    else if (is(r->outcome, "no time left")) t->left++;
    else t->failed++;
    t->better += !is(r->without, r->best);
    if (r->without_us <= 0 || r->best_us <= 0) return;
    t->without_us += r->count * r->without_us;
    t->best_us += r->count * r->best_us;
}

static void print_row(tuning *t, const clt_tune_result *r) {
    char time[64] = "", error[32] = "";
    if (!t->begun)
        printf("%-76s %10s %10s %6s %8s %5s  %s\n", "problem", "default us", "best us", "gain", "error", "tried",
               "served by");
    t->begun = true;
    if (r->best_us > 0) {
        if (r->without_us > 0)
            snprintf(time, sizeof time, "%10.1f %10.1f %5.2fx", r->without_us, r->best_us, r->without_us / r->best_us);
        else snprintf(time, sizeof time, "%10s %10.1f %6s", "fails", r->best_us, "");
        snprintf(error, sizeof error, "%8.1e", r->nmse);
    }
    printf("%-76s %28s %8s %5d  %s", r->problem, time, error, r->tried, r->best);
    if (!is(r->outcome, "measured")) printf(" (%s)", r->outcome);
    if (r->failed) printf(" (%d failed)", r->failed);
    printf("\n");
    fflush(stdout);
}

static void keep_row(tuning *t, const clt_tune_result *r) {
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
    json_array_append_new(t->problems, row);
}

static bool report(const clt_tune_result *r, void *user) {
    tuning *t = user;
    count(t, r);
    if (t->options->shared.json) keep_row(t, r);
    else print_row(t, r);
    return !caught;
}

/* ---- running ---- */

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int tune_model(tuning *t, clt_device *device, const char *name, double seconds) {
    probe_model model;
    int code = probe_model_build(&model, &t->options->shared, name);
    if (code) return code;
    message_line("Tuning %s on %s, for %.0f s at most", model.text, clt_device_get_info(device)->name, seconds);
    clt_train_options training = {.output = model.output};
    clt_tune_options how = {.budget_seconds = seconds, .report = report, .user = t};
    clt_status status = clt_tune_model(device, model.loss, &training, &how);
    probe_model_free(&model);
    return status < 0 ? library_error(status, "tuning") : 0;
}

static int tune_all(tuning *t, clt_device *device) {
    static const char *const usual[] = {"mlp:1024,1024", "convnet", "resnet18"};
    const char *const *names = t->options->shared.model ? &t->options->shared.model : usual;
    int n = t->options->shared.model ? 1 : 3;
    double end = now_seconds() + t->options->budget;
    for (int i = 0; i < n && !caught; i++) {
        /* What one model leaves is the next one's; the least is time to tell what is known. */
        double left = (end - now_seconds()) / (n - i);
        int code = tune_model(t, device, names[i], left > 1e-3 ? left : 1e-3);
        if (code) return code;
    }
    return 0;
}

static int print_end(const tuning *t, const clt_device_info *device) {
    double gain = t->best_us > 0 ? t->without_us / t->best_us : 1;
    if (t->options->shared.json) {
        json_t *object = json_pack("{s:s, s:s, s:O, s:i, s:i, s:i, s:i, s:i, s:f}", "device", device->name, "driver",
                                   device->driver, "problems", t->problems, "measured", t->measured, "known", t->known,
                                   "no_time_left", t->left, "not_measurable", t->failed, "better", t->better, "gain",
                                   gain);
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(object);
    } else {
        printf("%d problem%s: %d measured, %d known before, %d without time, %d not measurable; %d better than the "
               "default; all together %.2fx\n",
               t->measured + t->known + t->left + t->failed, PLURAL(t->measured + t->known + t->left + t->failed),
               t->measured, t->known, t->left, t->failed, t->better, gain);
    }
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

static int tune_on_device(const tune_options *options) {
    clt_device *device;
    clt_status status = clt_device_open(&device, options->shared.device);
    if (status < 0) return library_error(status, "opening a device");
    tuning t = {.options = options, .problems = json_array()};
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = tune_all(&t, device);
    if (!code) code = print_end(&t, clt_device_get_info(device));
    json_decref(t.problems);
    clt_device_close(device);
    return !code && caught ? EXIT_SIGNAL + caught : code;
}

int run_tune(int argc, char **argv) {
    tune_options options = {.shared = shared_options_unset(), .budget = 60};
    probe_model model;
    int code = option_parse(rows, ROWS, argc, argv, &options, refuse_word);
    if (code) return code;
    if (options.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(options.shared.verbose);
    /* What makes no sense is refused before a device is opened. */
    code = probe_model_build(&model, &options.shared, options.shared.model ? options.shared.model : "convnet");
    if (code) return code;
    probe_model_free(&model);
    return tune_on_device(&options);
}
