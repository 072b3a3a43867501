/*
 * cltrain-probe verify: whether a device's memory and arithmetic hold.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "tools/common/clock.h"
#include "tools/survey/child.h"
#include "command.h"
#include "tools/survey/document.h"
#include "tools/survey/survey.h"
#include "tools/common/help.h"
#include "tools/common/message.h"

typedef struct verify_options {
    shared_options shared;
    double minutes, timeout;
    int64_t memory_mib;
} verify_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Verifying:"},
    {OPTION_POSITIVE, 0, "minutes", "N", offsetof(verify_options, minutes),
     .help = "again and again for so long (default: once)"},
    {OPTION_WHOLE, 0, "memory", "MIB", offsetof(verify_options, memory_mib), .low = 1,
     .help = "at most so much (default: nearly all of the device's; where\n"
             "that is the host's, half of what is free there)"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", offsetof(verify_options, timeout),
     .help = "what says nothing for longer has hung (default 300)"},
    DEVICE_ROWS,
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " verify [options]\n"
                       "\n"
                       "Takes the largest buffer that is to be had, then more until nearly all memory is held; writes patterns\n"
                       "that no two places share, and their complements, and reads them by kernels and from the host. Then\n"
                       "integer and floating point arithmetic on many work-items, held against the host's, bit by bit.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 all is right; 1 something is not, or it failed; 2 usage error;\n130 Ctrl-C.\n");
}

typedef struct verification {
    const verify_options *options;
    const survey *s;
    const survey_device *device;
    uint64_t most_bytes;
    clt_check_report report;
    int rounds;
    double start, took;
    char status[16], reason[400];
    bool finished;
} verification;

/* ---- how much ---- */

/* Of the host; 0: not known. */
static uint64_t free_host_bytes(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    if (file) fclose(file);
    return (uint64_t)kib * 1024;
}

/* A CPU's memory is the host's, which others need too. */
static uint64_t most_bytes(const verify_options *o, const clt_device_info *info) {
    bool shared = info->unified_memory || info->type == CLT_DEVICE_CPU;
    uint64_t bytes = info->memory_bytes / 100 * 95, left = free_host_bytes() / 2;
    if (shared && left && left < bytes) bytes = left;
    if (o->memory_mib == OPTION_UNSET) return bytes;
    return bytes < (uint64_t)o->memory_mib << 20 ? bytes : (uint64_t)o->memory_mib << 20;
}

/* ---- in the child ---- */

static void tell(FILE *lines, const clt_check_report *r, int rounds) {
    document_line(lines, json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:o}", "rounds", rounds, "checked",
                                   (json_int_t)r->checked_bytes, "largest", (json_int_t)r->largest_bytes, "together",
                                   (json_int_t)r->together_bytes, "values", (json_int_t)r->values, "errors",
                                   (json_int_t)r->errors, "first", document_text(r->first)));
}

static int in_child(FILE *lines, void *user) {
    const verification *v = user;
    clt_check_report report = {0};
    clt_device *device = NULL;
    double end = v->start + 60 * v->options->minutes;
    clt_status status = survey_open(v->s, v->device, NULL, &device);
    for (int round = 0; status == CLT_OK && (round == 0 || now_seconds() < end); round++) {
        uint32_t seed = 2654435761u * (uint32_t)(round + 1);
        status = clt_check_arithmetic(device, seed, &report);
        if (status == CLT_OK) tell(lines, &report, round);
        if (status == CLT_OK) status = clt_check_memory(device, v->most_bytes, seed, &report);
        if (status == CLT_OK) tell(lines, &report, round + 1);
    }
    json_t *done = json_pack("{s:s, s:o}", "finished", survey_error_status(status, false), "reason",
                             status < 0 ? document_text(clt_error_detail()) : json_null());
    document_line(lines, done);
    clt_device_close(device);
    return 0;
}

/* ---- in the parent ---- */

static uint64_t number(const json_t *told, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(told, key));
}

static bool take_line(const char *text, void *user) {
    verification *v = user;
    char line[160];
    json_t *told = json_loads(text, 0, NULL);
    document_clean(told);
    const char *finished = json_string_value(json_object_get(told, "finished"));
    const char *reason = json_string_value(json_object_get(told, "reason"));
    if (json_object_get(told, "rounds")) {
        clt_check_report *r = &v->report;
        *r = (clt_check_report){.checked_bytes = number(told, "checked"), .largest_bytes = number(told, "largest"),
                                .together_bytes = number(told, "together"), .values = number(told, "values"),
                                .errors = number(told, "errors")};
        const char *first = json_string_value(json_object_get(told, "first"));
        snprintf(r->first, sizeof r->first, "%s", first ? first : "");
        v->rounds = (int)number(told, "rounds");
        snprintf(line, sizeof line, "%d rounds, %.1f GiB checked, %llu errors", v->rounds,
                 (double)r->checked_bytes / (1 << 30), (unsigned long long)r->errors);
        if (isatty(STDERR_FILENO)) message_transient(line);
    }
    if (finished) {
        v->finished = true;
        snprintf(v->status, sizeof v->status, "%s", finished);
        snprintf(v->reason, sizeof v->reason, "%s", reason ? reason : "");
    }
    json_decref(told);
    return true;
}

static void judge(verification *v, const child_end *end) {
    if (!v->finished) {
        snprintf(v->status, sizeof v->status, "%s", child_status(end));
        snprintf(v->reason, sizeof v->reason, "%s", end->reason);
    }
    if (v->report.errors == 0) return;
    snprintf(v->status, sizeof v->status, "wrong");
    snprintf(v->reason, sizeof v->reason, "%llu errors; the first: %s", (unsigned long long)v->report.errors, v->report.first);
}

static int print_json(const verification *v) {
    const clt_check_report *r = &v->report;
    json_t *document = document_new("verify"), *device = survey_device_json(v->s, v->device, v->status, v->reason);
    json_t *more = json_pack("{s:[o], s:f, s:{s:i, s:I, s:I, s:I, s:I, s:I}}", "devices", device, "seconds", v->took, "verify",
                             "rounds", v->rounds, "checked_bytes", (json_int_t)r->checked_bytes, "largest_buffer_bytes",
                             (json_int_t)r->largest_bytes, "held_bytes", (json_int_t)r->together_bytes, "values",
                             (json_int_t)r->values, "errors", (json_int_t)r->errors);
    json_object_update(document, more);
    json_decref(more);
    int code = document_write_at(document, v->options->shared.json);
    json_decref(document);
    return code;
}

static int print_text(const verification *v) {
    const clt_device_info *i = &v->device->info;
    const clt_check_report *r = &v->report;
    const double mebibyte = 1 << 20;
    printf("%s (%s) [%s]: %s\n", i->name, i->platform, i->id, v->status);
    if (v->reason[0]) printf("  %-16s%s\n", "reason", v->reason);
    printf("  %-16s%.1f MiB (it tells %.1f MiB)\n", "largest buffer", (double)r->largest_bytes / mebibyte,
           (double)i->max_buffer_bytes / mebibyte);
    printf("  %-16s%.1f MiB (of %.1f MiB; asked for %.1f MiB)\n", "held at once", (double)r->together_bytes / mebibyte,
           (double)i->memory_bytes / mebibyte, (double)v->most_bytes / mebibyte);
    printf("  %-16s%.1f MiB of memory, %llu results\n", "compared", (double)r->checked_bytes / mebibyte,
           (unsigned long long)r->values);
    printf("  %-16s%llu\n", "errors", (unsigned long long)r->errors);
    printf("  %-16s%d, in %.1f s\n", "rounds", v->rounds, v->took);
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

static int verify(verification *v) {
    child_end end;
    child_job job = {.run = in_child, .line = take_line, .user = v, .silence_seconds = v->options->timeout};
    v->most_bytes = most_bytes(v->options, &v->device->info);
    v->start = now_seconds();
    message_line("Verifying %s with up to %.0f MiB", v->device->info.name, (double)v->most_bytes / (1 << 20));
    child_run(&job, 1, 1, &end);
    message_wipe();
    v->took = now_seconds() - v->start;
    judge(v, &end);
    int code = v->options->shared.json ? print_json(v) : print_text(v);
    if (!code && child_caught()) return EXIT_SIGNAL + child_caught();
    if (!code && strcmp(v->status, "ok") != 0) code = run_error("%s: %s: %s", v->device->info.name, v->status, v->reason);
    return code;
}

int run_verify(int argc, char **argv) {
    verify_options o = {.shared = shared_options_unset(), .timeout = 300, .memory_mib = OPTION_UNSET};
    survey s;
    int code = option_parse(rows, ROWS, argc, argv, &o, refuse_word);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(o.shared.verbose);
    child_show_errors(o.shared.verbose > 0);
    child_catch_signals();
    verification v = {.options = &o, .s = &s, .status = "ok"};
    code = survey_run(&s, false, o.timeout < 30 ? o.timeout : 30);
    if (code) return code;
    code = survey_choose(&s, o.shared.device, &v.device);
    if (!code) code = verify(&v);
    survey_free(&s);
    return code;
}
