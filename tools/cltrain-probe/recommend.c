/*
 * cltrain-probe recommend: the devices present, ranked for a model, and how to share a batch among those that gain from
 * training together.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forecast.h"
#include "hooks.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/shares.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"

typedef struct recommend_options {
    shared_options shared;
    bool offline;
    double seconds, timeout;
} recommend_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Model:"},
    {OPTION_TEXT, 'm', "model", "MODEL", SHARED_AT(model), .help = "the same as the word MODEL"},
    {OPTION_WHOLE, 'b', "batch", "N", SHARED_AT(batch), .low = 1, .aliases = "batch-size", .help = "samples a step, of all devices together (default 128;\nresnet18 64)"},
    {OPTION_TEXT, 0, "sample", "SIZES", SHARED_AT(sample), .help = "of a sample (default 3x32x32)"},
    {OPTION_TEXT, 0, "data", "SIZES", SHARED_AT(sample), .help = "the same"},
    {OPTION_WHOLE, 0, "classes", "N", SHARED_AT(classes), .low = 1, .help = "outputs (default 10)"},
    TRAINING_ROWS,
    {OPTION_HEADING, .help = "What is measured:"},
    {OPTION_FLAG, 0, "offline", NULL, offsetof(recommend_options, offline), .help = "nothing but peaks that are not known"},
    {OPTION_POSITIVE, 0, "seconds", "SECONDS", offsetof(recommend_options, seconds), .help = "for each device, about (default 4)"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", offsetof(recommend_options, timeout),
     .help = "what says nothing for longer has hung (default 120)"},
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_OPTIONAL, 0, "json", "FILE", SHARED_AT(json), .standard = "-", .help = "one JSON object on stdout, or in FILE"},
    {OPTION_COUNTER, 'v', "verbose", NULL, SHARED_AT(verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " recommend MODEL [options]\n"
                       "\n"
                       "Predicts the training step of MODEL on every device present, as '" PROGRAM " model' does, ranks the devices,\n"
                       "and says which of them should train together, and with how much of a batch each, so that all take the same\n"
                       "time: what 'cltrain-run --devices' and 'cltrain-train --shares' take. Devices of one processor take\n"
                       "each other's time: only the best of them is among those. Where the batch does not fit, what lets it fit is\n"
                       "looked for: of --recompute and --offload, as far as they are not given, what costs the least time; else the\n"
                       "largest batch that fits counts. The exchange of gradients is not in the times;\n"
                       "'" PROGRAM " comm' measures it. The command that is printed trains on data that are made up, of such\n"
                       "samples, or on a text file: put your own there.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed, or no device can train the model; 2 usage error;\n130 Ctrl-C.\n");
}

/* ---- candidates ---- */

typedef struct candidate {
    const survey_device *device;
    forecast f;
    int64_t batch, largest;      /* batch: what was predicted; less than was asked for where that does not fit */
    int recompute, offload;      /* as asked for, or with what it fits */
    double step_us;              /* of that batch; 0: not known */
    double fixed_us, sample_us;  /* a step of n samples takes fixed + n sample */
    const struct candidate *like; /* a better one of the same processor */
    int64_t share;
} candidate;

typedef struct recommendation {
    const recommend_options *options;
    survey s;
    probe_model model;
    int64_t batch;
    candidate *candidates; /* the best first */
    int n;
    double together_us, best_us; /* of the whole batch; best: on the best device that can alone; 0: none can */
    int sharing;
} recommendation;

static bool usable(const candidate *c) {
    return c->step_us > 0;
}

static double samples_per_second(const candidate *c) {
    return usable(c) ? 1e6 * (double)c->batch / c->step_us : 0;
}

/* Two points of the prediction make the line. */
static void fit(candidate *c) {
    const json_t *small = json_array_get(json_object_get(c->f.told, "also"), 0);
    double few = json_number_value(json_object_get(small, "batch")), us = json_number_value(json_object_get(small, "step_us"));
    c->step_us = forecast_number(c->f.told, "predicted", "step_us");
    c->sample_us = c->step_us / (double)c->batch;
    c->fixed_us = 0;
    if (!(us > 0 && us < c->step_us && few < (double)c->batch)) return;
    double slope = (c->step_us - us) / ((double)c->batch - few), fixed = us - slope * few;
    if (fixed <= 0) return;
    c->sample_us = slope;
    c->fixed_us = fixed;
}

/* With the candidate's batch and what it spares memory by, and nothing else in the host's memory. */
static void ask(const recommendation *r, candidate *c, bool offline) {
    const recommend_options *o = r->options;
    shared_options options = o->shared;
    probe_model model;
    options.batch = c->batch, options.recompute = c->recompute, options.offload = c->offload ? c->offload : CLT_OFFLOAD_NONE;
    forecast_question q = {.s = &r->s, .device = c->device, .options = &options, .model = &model, .batch = c->batch,
                           .offline = offline, .seconds = o->seconds, .timeout = o->timeout};
    int64_t few = c->batch / 4 > 1 ? c->batch / 4 : 2; /* statistics of a batch may need two values */
    forecast_free(&c->f);
    if (probe_model_build(&model, &options, options.model)) {
        c->f = (forecast){.status = "unsupported", .told = json_object()};
        return;
    }
    if (few < c->batch) q.also[q.n_also++] = few;
    if (!offline) q.at[q.n_at++] = c->batch;
    if (!offline && few < c->batch) q.at[q.n_at++] = few;
    forecast_ask(&q, &c->f);
    c->f.question = NULL;
    c->largest = json_integer_value(json_object_get(c->f.told, "largest_batch"));
    if (strcmp(c->f.status, "ok") == 0) fit(c);
    probe_model_free(&model);
}

/* What spares memory, as options of the trainer. */
static void spare_text(const candidate *c, char text[64]) {
    snprintf(text, 64, "%s%s%s%s", c->recompute ? " --recompute " : "", c->recompute ? recompute_names[c->recompute] : "",
             c->offload ? " --offload " : "", c->offload ? offload_names[c->offload] : "");
}

/* Where the whole batch does not fit: of what spares memory, and was not ruled out, what takes the least time, or the first of about as much; or else what the largest
 * batch fits with. No step is measured for it. False: nothing fits. */
static bool ask_for_spare(const recommendation *r, candidate *c) {
    static const struct { int recompute, offload; } ways[] = {{CLT_RECOMPUTE_NONE, CLT_OFFLOAD_OPTIMIZER},
                                                              {CLT_RECOMPUTE_BLOCKS, CLT_OFFLOAD_NONE},
                                                              {CLT_RECOMPUTE_BLOCKS, CLT_OFFLOAD_OPTIMIZER},
                                                              {CLT_RECOMPUTE_ALL, CLT_OFFLOAD_NONE},
                                                              {CLT_RECOMPUTE_ALL, CLT_OFFLOAD_OPTIMIZER},
                                                              {CLT_RECOMPUTE_NONE, CLT_OFFLOAD_ACTIVATIONS},
                                                              {CLT_RECOMPUTE_NONE, CLT_OFFLOAD_ALL},
                                                              {CLT_RECOMPUTE_ALL, CLT_OFFLOAD_ALL}};
    const shared_options *given = &r->options->shared;
    candidate best = {.device = c->device}, large = *c;
    char text[64];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !child_caught(); i++) {
        candidate way = {.device = c->device, .batch = c->batch, .recompute = ways[i].recompute, .offload = ways[i].offload};
        if ((given->recompute && given->recompute != way.recompute) || (given->offload && given->offload != way.offload)) continue;
        ask(r, &way, true);
        bool better = usable(&way) && (!usable(&best) || way.step_us < 0.98 * best.step_us); /* transfers are measured, each time */
        if (way.largest > large.largest) large.recompute = way.recompute, large.offload = way.offload, large.largest = way.largest;
        forecast_free(better ? &best.f : &way.f);
        if (better) best = way;
    }
    if (usable(&best)) {
        forecast_free(&c->f);
        *c = best;
        spare_text(c, text);
        snprintf(c->f.reason, sizeof c->f.reason, "the batch fits with%s", text);
        return true;
    }
    c->recompute = large.recompute, c->offload = large.offload, c->largest = large.largest;
    return c->largest > 0;
}

/* The largest batch that fits. */
static void ask_for_less(const recommendation *r, candidate *c) {
    char text[64];
    c->batch = c->largest;
    ask(r, c, r->options->offline);
    spare_text(c, text);
    if (usable(c))
        snprintf(c->f.reason, sizeof c->f.reason, "the batch does not fit; with%s one of %lld does", text[0] ? text : " nothing that spares memory", (long long)c->batch);
}

static void look_at(const recommendation *r, candidate *c) {
    c->batch = r->batch, c->recompute = r->options->shared.recompute, c->offload = r->options->shared.offload;
    if (strcmp(c->device->status, "ok")) {
        c->f = (forecast){.told = json_object()};
        snprintf(c->f.status, sizeof c->f.status, "%s", c->device->status);
        snprintf(c->f.reason, sizeof c->f.reason, "%s", c->device->reason);
        return;
    }
    message_line("Predicting %s on %s", r->model.text, c->device->info.name);
    ask(r, c, r->options->offline);
    bool fits = usable(c) || c->largest >= c->batch || !json_object_get(c->f.told, "largest_batch");
    if (!fits && ask_for_spare(r, c) && c->batch > c->largest) ask_for_less(r, c);
}

static int faster_first(const void *a, const void *b) {
    double x = samples_per_second(a), y = samples_per_second(b);
    return x > y ? -1 : x < y;
}

/* ---- the same processor under two drivers ---- */

static bool same_id(const char *a, const char *b) {
    size_t length = strcspn(a, "#");
    bool tells = strncmp(a, "pci:", 4) == 0 || strncmp(a, "uuid:", 5) == 0;
    return tells && length == strcspn(b, "#") && strncmp(a, b, length) == 0;
}

static bool same_processor(const clt_device_info *a, const clt_device_info *b) {
    if (hook_apart()) return false;
    return same_id(a->id, b->id) || (a->type == CLT_DEVICE_CPU && b->type == CLT_DEVICE_CPU);
}

static void find_likes(recommendation *r) {
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < i && !r->candidates[i].like; k++)
            if (usable(&r->candidates[k]) && same_processor(&r->candidates[i].device->info, &r->candidates[k].device->info))
                r->candidates[i].like = &r->candidates[k];
}

/* ---- shares ---- */

static bool may_share(const candidate *c) {
    return usable(c) && !c->like;
}

/* How many samples it does in that time, as far as they fit. */
static double samples_in(const candidate *c, double us) {
    double n = may_share(c) ? (us - c->fixed_us) / c->sample_us : 0;
    return n < 0 ? 0 : n > (double)c->largest ? (double)c->largest : n;
}

static double all_samples_in(const recommendation *r, double us) {
    double n = 0;
    for (int i = 0; i < r->n; i++) n += samples_in(&r->candidates[i], us);
    return n;
}

static double step_of(const candidate *c, int64_t samples) {
    return samples > 0 ? c->fixed_us + c->sample_us * (double)samples : 0;
}

/* The time in which all together do the batch, each its own part of it; 0: they cannot. */
static double common_time(const recommendation *r) {
    double low = 0, high = 1;
    while (all_samples_in(r, high) < (double)r->batch && high < 1e15) high *= 2;
    if (high >= 1e15) return 0;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (all_samples_in(r, middle) < (double)r->batch) low = middle;
        else high = middle;
    }
    return high;
}

/* Those worth a sample at least get whole ones. */
static int share_batch(recommendation *r) {
    double us = common_time(r), *weights = calloc((size_t)r->n + 1, sizeof *weights);
    int64_t *shares = calloc((size_t)r->n + 1, sizeof *shares);
    int *who = calloc((size_t)r->n + 1, sizeof *who), n = 0;
    if (!weights || !shares || !who) {
        free(weights), free(shares), free(who);
        return run_error("no memory");
    }
    for (int i = 0; us > 0 && i < r->n; i++) {
        double samples = samples_in(&r->candidates[i], us);
        if (samples < 0.5) continue;
        weights[n] = samples;
        who[n++] = i;
    }
    if (n > 0 && n <= r->batch) share_out(r->batch, weights, n, shares);
    for (int i = 0; i < n; i++) {
        candidate *c = &r->candidates[who[i]];
        c->share = shares[i];
        r->sharing += c->share > 0;
        r->together_us = fmax(r->together_us, step_of(c, c->share));
    }
    free(weights), free(shares), free(who);
    return 0;
}

static void find_best_alone(recommendation *r) {
    for (int i = 0; i < r->n; i++)
        if (usable(&r->candidates[i]) && r->candidates[i].batch == r->batch &&
            (r->best_us == 0 || r->candidates[i].step_us < r->best_us))
            r->best_us = r->candidates[i].step_us;
}

/* ---- reasons ---- */

static double reference_share(const candidate *c) {
    double all = 0, reference = 0;
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(json_object_get(c->f.told, "predicted"), "problems"), i, p) {
        const char *row = json_string_value(json_object_get(p, "row"));
        double us = json_number_value(json_object_get(p, "us")) * json_number_value(json_object_get(p, "count"));
        all += us;
        if (row && (!strncmp(row, "reference", 9) || !strncmp(row, "workgroup", 9))) reference += us;
    }
    return all > 0 ? reference / all : 0;
}

static void add_reason(json_t *reasons, const char *format, ...) CLT_PRINTF(2, 3);
static void add_reason(json_t *reasons, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(reasons, document_text(text));
}

static void add_speed(const recommendation *r, const candidate *c, json_t *reasons) {
    double own = samples_per_second(c), best = samples_per_second(&r->candidates[0]);
    double roof = forecast_number(c->f.told, "predicted", "roof_us") / c->step_us, reference = reference_share(c);
    if (c == &r->candidates[0]) add_reason(reasons, "the fastest: %.0f samples a second", own);
    else add_reason(reasons, "%.0f samples a second, %.3g of the fastest", own, own / best);
    add_reason(reasons, "%.0f %% of what it would do if each op ran at its peaks", 100 * roof);
    if (reference > 0.3) add_reason(reasons, "%.0f %% of its time is in portable reference kernels", 100 * reference);
}

static json_t *reasons_of(const recommendation *r, const candidate *c) {
    json_t *reasons = json_array();
    if (c->f.reason[0]) add_reason(reasons, "%s", c->f.reason);
    if (usable(c)) add_speed(r, c, reasons);
    if (usable(c))
        add_reason(reasons, "takes %.0f MiB of %.0f; batches of up to %lld fit",
                   forecast_number(c->f.told, "memory", "total_bytes") / (1 << 20), json_number_value(json_object_get(c->f.told, "room_bytes")) / (1 << 20),
                   (long long)c->largest);
    if (usable(c) && c->like) add_reason(reasons, "the same processor as %s, which is faster", c->like->device->info.id);
    if (may_share(c) && c->share == 0 && r->sharing) add_reason(reasons, "its step's fixed part alone takes longer than the others take for all");
    return reasons;
}

/* ---- output ---- */

/* Data that the trainer makes up, of such samples: commands run as they stand, but for those of text, of which there has to be some. */
static void made_up_data(const recommendation *r, char data[320]) {
    const shared_options *o = &r->options->shared;
    const clt_shape *x = &r->model.shape;
    long long classes = (long long)r->model.classes, features = 1;
    long long samples = 2 * r->batch > 4096 ? 2 * (long long)r->batch : 4096;
    for (int i = 1; i < x->rank; i++) features *= (long long)x->dims[i];
    if (r->model.tokens) snprintf(data, 320, "text:FILE,context=%.200s", r->model.sample);
    else if (strcmp(o->model, "linear") == 0) snprintf(data, 320, "synthetic-regression:%lldx%lld", samples, features);
    else
        snprintf(data, 320, "synthetic:%.200s,classes=%lld,n=%lld", r->model.sample, classes < 2 ? 2 : classes,
                 samples);
}

/* As the launcher and the trainer take them; false if they do not go into a list. */
static bool make_lists(const recommendation *r, char devices[4096], char shares[1024]) {
    bool plain = true;
    devices[0] = shares[0] = 0;
    for (int i = 0; i < r->n; i++) {
        const candidate *c = &r->candidates[i];
        size_t d = strlen(devices), s = strlen(shares);
        if (c->share == 0) continue;
        plain &= !strchr(c->device->info.id, ',') && d + sizeof c->device->info.id + 2 < 4096 && s + 24 < 1024;
        if (!plain) return false;
        snprintf(devices + d, 4096 - d, "%s%s", d ? "," : "", c->device->info.id);
        snprintf(shares + s, 1024 - s, "%s%lld", s ? "," : "", (long long)c->share);
    }
    return true;
}

static json_t *together_json(const recommendation *r) {
    char devices[4096], shares[1024];
    if (r->sharing == 0) return json_null();
    bool plain = make_lists(r, devices, shares);
    return json_pack("{s:i, s:o, s:o, s:f, s:f, s:o}", "ranks", r->sharing, "devices", plain ? document_text(devices) : json_null(),
                     "shares", plain ? json_string(shares) : json_null(), "step_us", r->together_us, "samples_per_second",
                     1e6 * (double)r->batch / r->together_us, "gain",
                     r->best_us > 0 ? json_real(r->best_us / r->together_us) : json_null());
}

static json_t *candidate_json(const recommendation *r, const candidate *c, int rank) {
    const json_t *error = json_object_get(json_object_get(c->f.told, "predicted"), "error");
    return json_pack("{s:i, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "rank", rank, "device", document_text(c->device->info.id),
                     "status", c->f.status, "recompute", recompute_names[c->recompute], "offload", offload_names[c->offload], "batch", usable(c) ? json_integer(c->batch) : json_null(), "step_us",
                     usable(c) ? json_real(c->step_us) : json_null(), "samples_per_second",
                     usable(c) ? json_real(samples_per_second(c)) : json_null(), "error",
                     usable(c) && json_is_number(error) ? json_copy((json_t *)(uintptr_t)error) : json_null(), "largest_batch",
                     c->largest ? json_integer(c->largest) : json_null(), "share", (json_int_t)c->share, "reasons", reasons_of(r, c));
}

static int print_json(const recommendation *r) {
    json_t *document = document_new("recommend"), *devices = json_array(), *ranking = json_array();
    for (int i = 0; i < r->n; i++) {
        const survey_device *device = r->candidates[i].device;
        json_array_append_new(devices, survey_device_json(&r->s, device, device->status, device->reason));
        json_array_append_new(ranking, candidate_json(r, &r->candidates[i], i + 1));
    }
    json_object_set_new(document, "devices", devices);
    json_object_set_new(document, "model", forecast_model_json(&r->options->shared, &r->model, r->batch));
    json_object_set_new(document, "ranking", ranking);
    json_object_set_new(document, "together", together_json(r));
    int code = document_write_at(document, r->options->shared.json);
    json_decref(document);
    return code;
}

static void print_candidate(const recommendation *r, const candidate *c, int rank) {
    json_t *reasons = reasons_of(r, c), *reason;
    size_t i;
    printf("%d  %s (%s) [%s]: %s\n", rank, c->device->info.name, c->device->info.platform, c->device->info.id, c->f.status);
    if (usable(c)) printf("     %.3f ms a step of %lld\n", 1e-3 * c->step_us, (long long)c->batch);
    json_array_foreach(reasons, i, reason) printf("     %s\n", json_string_value(reason));
    json_decref(reasons);
}

/* The least that is offloaded by both. */
static int both(int a, int b) {
    if (a <= CLT_OFFLOAD_NONE || b <= CLT_OFFLOAD_NONE) return a > b ? a : b;
    return a == b ? a : CLT_OFFLOAD_ALL;
}

/* As it was asked for; nothing: the trainer chooses as this tool did. What one of the devices needs to fit goes for all. */
static void print_training(const recommendation *r) {
    const shared_options *o = &r->options->shared;
    candidate most = {.recompute = 0};
    char text[64];
    for (int i = 0; i < r->n; i++) {
        if (r->candidates[i].share == 0) continue;
        if (r->candidates[i].recompute > most.recompute) most.recompute = r->candidates[i].recompute;
        most.offload = both(most.offload, r->candidates[i].offload);
    }
    if (o->optimizer != OPTION_UNSET) printf(" --optimizer %s", optimizer_names[o->optimizer]);
    if (o->precision) printf(" --precision %s", precision_names[o->precision]);
    spare_text(&most, text);
    printf("%s\n", text);
}

static void print_alone(const recommendation *r, const char *device, const char *data) {
    printf("\nOne device:\n  cltrain-train %s --data %s --device '%s' --batch %lld", r->options->shared.model, data, device,
           (long long)r->batch);
    print_training(r);
}

static void print_sharing(const recommendation *r, const char *devices, const char *shares, const char *data) {
    printf("\nTogether: %.3f ms a step, without the exchange of gradients", 1e-3 * r->together_us);
    if (r->best_us > 0) printf("; %.2f times as fast as the best alone", r->best_us / r->together_us);
    printf("\n  cltrain-run -n %d --devices '%s' -- cltrain-train %s --data %s --shares %s", r->sharing, devices,
           r->options->shared.model, data, shares);
    print_training(r);
}

static void print_together(const recommendation *r) {
    char devices[4096], shares[1024], data[320];
    if (r->sharing == 0) return;
    if (!make_lists(r, devices, shares)) {
        printf("\nAn id with a comma in it does not go into a list: choose other names of the devices\n");
        return;
    }
    made_up_data(r, data);
    if (r->sharing == 1) print_alone(r, devices, data);
    else print_sharing(r, devices, shares, data);
    printf(r->model.tokens ? "  (%s: put a text of your own there)\n" : "  (%s is made up: put your own --data there)\n", data);
}

static int print_text(const recommendation *r) {
    printf("%s with %s\n\n", r->model.text, optimizer_names[r->model.training.optimizer]);
    for (int i = 0; i < r->n; i++) print_candidate(r, &r->candidates[i], i + 1);
    print_together(r);
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- running ---- */

static void warn_of_times(const recommendation *r) {
    for (int i = 0; i < r->n; i++) {
        const char *unsaved = forecast_times_unsaved(&r->candidates[i].f);
        if (!unsaved) continue;
        warning("the times cannot be kept: %s", unsaved);
        return;
    }
}

static int fail_all(const recommendation *r) {
    bool any = false;
    for (int i = 0; i < r->n; i++) any |= usable(&r->candidates[i]);
    return run_error("no device can train %s%s", r->model.text, any ? "; with --accumulate an update takes as many samples in smaller batches" : "");
}

/* One after the other: devices of one machine would take each other's time. */
static int recommend(recommendation *r) {
    int code = survey_require_devices(&r->s);
    if (code) return code;
    r->candidates = calloc((size_t)r->s.n_devices, sizeof *r->candidates);
    if (!r->candidates) return run_error("no memory");
    for (r->n = 0; r->n < r->s.n_devices && !child_caught(); r->n++) {
        r->candidates[r->n].device = &r->s.devices[r->n];
        look_at(r, &r->candidates[r->n]);
    }
    if (child_caught()) return EXIT_SIGNAL + child_caught();
    qsort(r->candidates, (size_t)r->n, sizeof *r->candidates, faster_first);
    warn_of_times(r);
    find_likes(r);
    find_best_alone(r);
    code = share_batch(r);
    if (!code) code = r->options->shared.json ? print_json(r) : print_text(r);
    if (!code && r->sharing == 0) code = fail_all(r);
    return code;
}

int run_recommend(int argc, char **argv) {
    recommend_options o = {.shared = shared_options_unset(), .seconds = 4, .timeout = 120};
    recommendation r = {.options = &o};
    int code = option_parse(rows, ROWS, argc, argv, &o, take_model);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    if (!o.shared.model) return usage_error("no model given: expected one of cltrain-train's, such as convnet");
    code = probe_model_build(&r.model, &o.shared, o.shared.model);
    if (code) return code;
    r.batch = r.model.shape.dims[0];
    message_start(o.shared.verbose);
    child_show_errors(o.shared.verbose > 0);
    child_catch_signals();
    code = survey_run(&r.s, false, o.timeout < 30 ? o.timeout : 30);
    if (!code) {
        code = recommend(&r);
        for (int i = 0; i < r.n; i++) forecast_free(&r.candidates[i].f);
        free(r.candidates);
        survey_free(&r.s);
    }
    probe_model_free(&r.model);
    return code;
}
