/*
 * cltrain-probe model: what a model's training step takes on a device, of time and memory, predicted from times of its problems.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "forecast.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"

enum { MOST_RANKS = 64 };

typedef struct model_options {
    shared_options shared;
    const char *at, *times;
    bool offline, refresh, measure, problems;
    double seconds, timeout;
} model_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Model:"},
    {OPTION_TEXT, 'm', "model", "MODEL", SHARED_AT(model), .help = "the same as the word MODEL"},
    {OPTION_WHOLE, 'b', "batch", "N", SHARED_AT(batch), .low = 1, .aliases = "batch-size", .help = "samples a step (default 128; resnet18 64)"},
    {OPTION_TEXT, 0, "sample", "SIZES", SHARED_AT(sample), .help = "of a sample (default 3x32x32)"},
    {OPTION_TEXT, 0, "data", "SIZES", SHARED_AT(sample), .help = "the same"},
    {OPTION_WHOLE, 0, "classes", "N", SHARED_AT(classes), .low = 1, .help = "outputs (default 10)"},
    TRAINING_ROWS,
    {OPTION_WHOLE, 0, "ranks", "N", SHARED_AT(ranks), .low = 1,
     .help = "that train together: the memory of one of them (default 1). What\nthey exchange is not in the times"},
    {OPTION_CHOICE, 0, "shard", "WHAT", SHARED_AT(shard), .choices = shard_names,
     .help = "of which each rank keeps a part: none, optimizer, gradients or\nparameters"},
    {OPTION_HEADING, .help = "What is measured:"},
    {OPTION_TEXT, 0, "at", "N,N,...", offsetof(model_options, at),
     .help = "problems at these batches, whatever is known (default: at\n--batch, where not all is known)"},
    {OPTION_FLAG, 0, "refresh", NULL, offsetof(model_options, refresh), .help = "what is known is measured again"},
    {OPTION_FLAG, 0, "offline", NULL, offsetof(model_options, offline), .help = "nothing but peaks that are not known: what is known has to do"},
    {OPTION_FLAG, 0, "measure", NULL, offsetof(model_options, measure),
     .help = "also runs training steps as they are, by turns with the rest,\nand prints them beside the prediction"},
    {OPTION_POSITIVE, 0, "seconds", "SECONDS", offsetof(model_options, seconds), .help = "for all that, about (default 4)"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", offsetof(model_options, timeout),
     .help = "what says nothing for longer has hung (default 120)"},
    {OPTION_TEXT, 0, "times", "FILE", offsetof(model_options, times), .help = "the times of problems (default: in the cache)"},
    DEVICE_ROWS,
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_OPTIONAL, 0, "json", "FILE", SHARED_AT(json), .standard = "-", .help = "one JSON object on stdout, or in FILE"},
    {OPTION_FLAG, 0, "problems", NULL, offsetof(model_options, problems), .help = "prints every problem of the step, most time first"},
    {OPTION_COUNTER, 'v', "verbose", NULL, SHARED_AT(verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " model MODEL [options]\n"
                       "\n"
                       "Predicts a training step of MODEL (linear, logistic, mlp[:H1,...], convnet or resnet18) on a device: its\n"
                       "time, its memory, and the largest batch that fits. The time is the sum over the problems of the step, each\n"
                       "as the plan would have it: with its kernel, layouts and epilogue. A problem's time is, the best first:\n"
                       "  measured   its own, timed launch by launch in a step of such a model, now or earlier\n"
                       "  batches    interpolated between two other batch sizes of it\n"
                       "  batch      scaled from one other batch size, by arithmetic and bytes\n"
                       "  nearest    scaled likewise from the nearest problem of the kind\n"
                       "  roof       by the device's peaks, and how near known problems come to theirs\n"
                       "The output says how much of the time is which, and by how much it may be off in nine cases of ten: of what is\n"
                       "measured by how this step's launches were seen to differ, of the others by what estimates of their kind are\n"
                       "off by for problems that are known, when those are left out.\n"
                       "Times are kept, for each device, driver and version.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed, or the model does not fit; 2 usage error; 130 Ctrl-C.\n");
}

/* ---- the command line ---- */

static int read_batches(const char *text, forecast_question *q) {
    q->n_at = text ? number_sizes(text, ',', q->at, FORECAST_MOST_BATCHES) : 0;
    for (int i = 0; i < q->n_at; i++)
        if (q->at[i] > INT32_MAX) q->n_at = 0;
    if (text && !q->n_at) return usage_error("--at '%s': expected up to %d batches, such as 32,128", text, FORECAST_MOST_BATCHES);
    return 0;
}

static int check(const model_options *o) {
    if (!o->shared.model) return usage_error("no model given: expected one of cltrain-train's, such as convnet");
    if (o->offline && (o->at || o->measure || o->refresh))
        return usage_error("--offline measures nothing: not with --at, --measure or --refresh");
    if (o->shared.ranks > MOST_RANKS) return usage_error("--ranks: %d at most", MOST_RANKS);
    if (o->shared.shard && o->shared.ranks < 2) return usage_error("--shard %s needs --ranks N, 2 or more", shard_names[o->shared.shard]);
    return 0;
}

/* ---- output ---- */

static json_t *part_of(const forecast *f, const char *name) {
    json_t *part = json_object_get(f->told, name);
    return part ? json_incref(part) : json_null();
}

/* Predicted against measured, as a part of the latter; NAN: there is not both. */
static double off_by(const forecast *f) {
    double predicted = forecast_number(f->told, "predicted", "step_us"), measured = forecast_number(f->told, "measured", "step_us");
    return predicted > 0 && measured > 0 ? predicted / measured - 1 : NAN;
}

static int print_json(const forecast *f, const char *path) {
    const forecast_question *q = f->question;
    json_t *document = document_new("model"), *device = survey_device_json(q->s, q->device, q->device->status, q->device->reason);
    double off = off_by(f);
    json_t *more = json_pack("{s:[o], s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "devices", device, "model",
                             forecast_model_json(q->options, q->model, q->batch), "status", f->status, "reason",
                             f->reason[0] ? document_text(f->reason) : json_null(), "predicted", part_of(f, "predicted"), "memory",
                             part_of(f, "memory"), "largest_batch", part_of(f, "largest_batch"), "largest_reason",
                             part_of(f, "largest_reason"), "measured_at", part_of(f, "measured_at"), "measured",
                             part_of(f, "measured"), "predicted_to_measured", isnan(off) ? json_null() : json_real(1 + off));
    json_object_update(document, more);
    json_decref(more);
    int code = document_write_at(document, path);
    json_decref(document);
    return code;
}

static void print_problems(const json_t *problems) {
    size_t i;
    json_t *p;
    printf("\n%10s %5s  %-8s %-24s %s\n", "us", "count", "source", "row", "problem");
    json_array_foreach(problems, i, p)
        printf("%10.1f %5lld  %-8s %-24s %s\n", json_number_value(json_object_get(p, "us")),
               (long long)json_integer_value(json_object_get(p, "count")), json_string_value(json_object_get(p, "source")),
               json_string_value(json_object_get(p, "row")), json_string_value(json_object_get(p, "problem")));
}

static void print_step(const json_t *predicted) {
    const char *name;
    json_t *value, *error = json_object_get(predicted, "error");
    double us = json_number_value(json_object_get(predicted, "step_us"));
    printf("  %-16s%.3f ms", "step", 1e-3 * us);
    if (json_is_number(error) && json_number_value(error) < 1) printf(" ± %.1f %%", 100 * json_number_value(error));
    else if (json_is_number(error)) printf(", or %.1f times as long", 1 + json_number_value(error));
    else printf(", by how much it may be off is not known");
    printf("; %.0f samples/s; %.3f ms if each op ran at the device's peaks\n",
           json_number_value(json_object_get(predicted, "samples_per_second")),
           1e-3 * json_number_value(json_object_get(predicted, "roof_us")));
    printf("  %-16s", "taken from");
    const char *separator = "";
    json_object_foreach(json_object_get(predicted, "sources"), name, value) {
        if (json_number_value(value) < 5e-4) continue;
        printf("%s%.1f %% %s", separator, 100 * json_number_value(value), name);
        separator = ", ";
    }
    printf("\n");
}

static void print_memory(const forecast *f) {
    const double mib = 1 << 20;
    double host = forecast_number(f->told, "memory", "host_bytes");
    if (json_object_get(f->told, "memory"))
        printf("  %-16s%.1f MiB: %.1f activations, %.1f parameters and states, %.1f inputs\n", "memory",
               forecast_number(f->told, "memory", "total_bytes") / mib, forecast_number(f->told, "memory", "activations_bytes") / mib,
               forecast_number(f->told, "memory", "states_bytes") / mib, forecast_number(f->told, "memory", "inputs_bytes") / mib);
    if (host > 0)
        printf("  %-16s%.1f MiB: what is offloaded, brought and taken back in %.3f ms of the step\n", "host memory", host / mib,
               1e-3 * forecast_number(f->told, "predicted", "host_us"));
    if (json_object_get(f->told, "largest_batch"))
        printf("  %-16s%lld; %s\n", "largest batch", (long long)json_integer_value(json_object_get(f->told, "largest_batch")),
               json_string_value(json_object_get(f->told, "largest_reason")));
}

static int print_text(const forecast *f, bool problems) {
    const clt_device_info *i = &f->question->device->info;
    const json_t *predicted = json_object_get(f->told, "predicted"), *measured = json_object_get(f->told, "measured");
    printf("%s with %s on %s (%s) [%s]: %s\n", f->question->model->text, optimizer_names[f->question->model->training.optimizer], i->name,
           i->platform, i->id, f->status);
    if (f->reason[0]) printf("  %-16s%s\n", "reason", f->reason);
    if (predicted) print_step(predicted);
    if (measured)
        printf("  %-16s%.3f ms (p10 %.3f, p90 %.3f of %lld rounds); predicted is off by %+.1f %%\n", "measured",
               1e-3 * forecast_number(f->told, "measured", "step_us"), 1e-3 * forecast_number(f->told, "measured", "p10_us"),
               1e-3 * forecast_number(f->told, "measured", "p90_us"),
               (long long)json_integer_value(json_object_get(measured, "rounds")), 100 * off_by(f));
    print_memory(f);
    if (problems && predicted) print_problems(json_object_get(predicted, "problems"));
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- running ---- */

static int tell(const model_options *o, const forecast *f) {
    const char *refused = forecast_times_refused(f), *unsaved = forecast_times_unsaved(f);
    long long skipped = forecast_times_skipped(f);
    if (refused) return run_error("--times: %s", refused);
    if (skipped > 0)
        warning("%lld line%s of %s %s no times, and %s left out: cut off or damaged", skipped, PLURAL(skipped),
                o->times ? o->times : "the times that are kept", skipped == 1 ? "is" : "are", skipped == 1 ? "was" : "were");
    int code = o->shared.json ? print_json(f, o->shared.json) : print_text(f, o->problems);
    if (code) return code;
    if (child_caught()) return EXIT_SIGNAL + child_caught();
    if (strcmp(f->status, "ok")) return run_error("%s: %s: %s", f->question->device->info.name, f->status, f->reason);
    if (unsaved && o->times) return run_error("--times: %s", unsaved);
    if (unsaved) warning("the times cannot be kept: %s", unsaved);
    return 0;
}

/* The model's training becomes that of rank 0 of a group in this process, of which no other is there: steps are planned, and none is run. */
static int join_ranks(probe_model *model, const shared_options *o, clt_comm **comms) {
    if (o->ranks == 1) return 0;
    clt_status status = clt_comm_create_local(comms, (int)o->ranks, 0);
    if (status < 0) return library_error(status, "ranks");
    model->training.comm = comms[0];
    model->training.shard = (clt_shard)o->shard;
    return 0;
}

static int run_on_device(const model_options *o, const forecast_question *q) {
    forecast f;
    message_line("Predicting %s on %s", q->model->text, q->device->info.name);
    forecast_ask(q, &f);
    int code = tell(o, &f);
    forecast_free(&f);
    return code;
}

int run_model(int argc, char **argv) {
    model_options o = {.shared = shared_options_unset(), .seconds = 4, .timeout = 120};
    survey s;
    probe_model model;
    clt_comm *comms[MOST_RANKS] = {NULL};
    int code = option_parse(rows, ROWS, argc, argv, &o, take_model);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    forecast_question q = {.s = &s, .options = &o.shared, .model = &model, .offline = o.offline, .refresh = o.refresh,
                           .run = o.measure, .seconds = o.seconds, .timeout = o.timeout, .times = o.times};
    code = check(&o);
    if (!code) code = read_batches(o.at, &q);
    if (!code) code = probe_model_build(&model, &o.shared, o.shared.model);
    if (code) return code;
    code = join_ranks(&model, &o.shared, comms);
    q.batch = model.shape.dims[0];
    message_start(o.shared.verbose);
    child_show_errors(o.shared.verbose > 0);
    child_catch_signals();
    if (!code) code = survey_run(&s, false, o.timeout < 30 ? o.timeout : 30);
    if (!code) {
        code = survey_choose(&s, o.shared.device, &q.device);
        if (!code) code = run_on_device(&o, &q);
        survey_free(&s);
    }
    for (int i = 0; i < MOST_RANKS; i++) clt_comm_destroy(comms[i]);
    probe_model_free(&model);
    return code;
}
