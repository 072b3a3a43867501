/*
 * cltrain-probe list: every driver and device, what it can do, and why it cannot.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/survey/child.h"
#include "command.h"
#include "tools/survey/document.h"
#include "tools/survey/survey.h"
#include "tools/common/help.h"
#include "tools/common/message.h"

typedef struct list_options {
    shared_options shared;
    double timeout;
} list_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Device:"},
    {OPTION_TEXT, 0, "device", "NAME", SHARED_AT(device),
     .help = "that one alone: index, cpu, gpu, accelerator, pci:..., uuid:..., or a part of its name, vendor or platform (default: all)"},
    {OPTION_HEADING, .help = "Asking:"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", offsetof(list_options, timeout),
     .help = "a driver that says nothing for longer has hung (default 30)"},
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " list [options]\n"
                       "\n"
                       "Shows every OpenCL driver and device, with what it tells of itself, and what small kernels that are\n"
                       "built, run and compared show of it. Each driver is asked in a process of its own: one that crashes,\n"
                       "hangs or talks nonsense costs its own row only. The status of a row:\n"
                       "  ok            a kernel was built and run, and its result is right\n"
                       "  wrong         the result of a kernel is not what it should be\n"
                       "  unsupported   it lacks something that is needed, or has no device\n"
                       "  build-failed  its compiler refuses a kernel\n"
                       "  crashed       it ended its process, or a call failed\n"
                       "  timeout       it hung\n"
                       "  suspect       what it tells cannot be\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 no device can be used; 2 usage error.\n");
}

/* ---- JSON ---- */

static json_t *device_json(const survey *s, const survey_device *d) {
    json_t *o = survey_device_json(s, d, d->status, d->reason);
    if (d->probed) json_object_update(o, d->probed);
    return o;
}

/* only NULL: all. */
static int print_json(const survey *s, const survey_device *only, const char *path) {
    json_t *document = document_new("list"), *devices = json_array();
    for (int i = 0; i < s->n_devices; i++)
        if (!only || only == &s->devices[i]) json_array_append_new(devices, device_json(s, &s->devices[i]));
    json_object_set_new(document, "drivers", survey_drivers_json(s));
    json_object_set_new(document, "devices", devices);
    int code = document_write_at(document, path);
    json_decref(document);
    return code;
}

/* ---- text ---- */

static void print_size(const char *name, uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes;
    int unit = 0;
    while (size >= 1024 && unit < 6) size /= 1024, unit++;
    printf("  %-15s%.4g %s\n", name, size, units[unit]);
}

static void print_text(const char *name, const char *text) {
    json_t *clean = document_text(text);
    printf("  %-15s%s\n", name, clean ? json_string_value(clean) : "");
    json_decref(clean);
}

/* One a line, with why. */
static void print_lacks(const json_t *lacks) {
    const char *name;
    json_t *why;
    json_object_foreach((json_t *)lacks, name, why) printf("  %-15s%s: %s\n", "cannot", name, json_string_value(why));
}

static void print_capabilities(const json_t *probed, bool reasons) {
    const char *name;
    json_t *has;
    char yes[512] = "", no[512] = "";
    json_object_foreach(json_object_get(probed, "capabilities"), name, has) {
        char *to = json_is_true(has) ? yes : no;
        size_t used = strlen(to);
        snprintf(to + used, sizeof yes - used, "%s%s", used ? " " : "", name);
    }
    if (json_object_get(probed, "capabilities")) printf("  %-15s%s\n", "can", yes[0] ? yes : "nothing beyond OpenCL 1.2");
    if (reasons) print_lacks(json_object_get(probed, "lacks"));
    else if (no[0]) printf("  %-15s%s\n", "cannot", no);
}

static int number(const json_t *object, const char *key) {
    return (int)json_integer_value(json_object_get(object, key));
}

static void print_facts(const json_t *facts) {
    if (!facts) return;
    int sub_group = number(facts, "sub_group_size");
    uint64_t cache = (uint64_t)json_integer_value(json_object_get(facts, "cache_bytes"));
    printf("  %-15s%d halves, %d floats, %d doubles; ", "vectors", number(facts, "vector_width_f16"),
           number(facts, "vector_width_f32"), number(facts, "vector_width_f64"));
    if (sub_group > 0) printf("sub-groups of %d; ", sub_group);
    printf("work-groups of multiples of %d\n", number(facts, "work_group_multiple"));
    if (cache > 0) print_size("cache", cache);
    else print_text("cache", "not told");
}

static void print_device(const survey *s, const survey_device *d, bool verbose) {
    const clt_device_info *i = &d->info;
    char units[96];
    json_t *id = document_text(i->id);
    printf("%s: %s\n", id ? json_string_value(id) : "", d->status);
    json_decref(id);
    if (d->reason[0]) print_text("reason", d->reason);
    print_text("name", i->name);
    print_text("vendor", i->vendor);
    print_text("platform", i->platform);
    print_text("driver", i->driver);
    print_text("icd", s->drivers[d->driver].name);
    print_text("version", i->cl_version);
    printf("  %-15s%s%s\n", "class", document_type_name(i->type), i->unified_memory ? ", memory shared with the host" : "");
    snprintf(units, sizeof units, "%u at %u MHz; work-groups up to %llu", i->compute_units, i->clock_mhz,
             (unsigned long long)i->max_work_group_size);
    print_text("compute units", units);
    print_size("memory", i->memory_bytes);
    print_size("largest buffer", i->max_buffer_bytes);
    print_size("local memory", i->local_memory_bytes);
    print_facts(json_object_get(d->probed, "facts"));
    print_capabilities(d->probed, verbose);
    printf("\n");
}

static int print_all(const survey *s, const survey_device *only, bool verbose) {
    for (int i = 0; i < s->n_devices; i++)
        if (!only || only == &s->devices[i]) print_device(s, &s->devices[i], verbose);
    for (int i = 0; !only && i < s->n_drivers; i++) {
        const survey_driver *r = &s->driver_rows[i];
        if (strcmp(r->status, "ok") == 0) continue;
        printf("%s: %s\n", s->drivers[i].name, r->status);
        print_text("library", s->drivers[i].library);
        print_text("reason", r->reason);
        printf("\n");
    }
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- running ---- */

static bool any_usable(const survey *s) {
    for (int i = 0; i < s->n_devices; i++)
        if (strcmp(s->devices[i].status, "ok") == 0) return true;
    return false;
}

int run_list(int argc, char **argv) {
    list_options options = {.shared = shared_options_unset(), .timeout = 30};
    survey s;
    int code = option_parse(rows, ROWS, argc, argv, &options, refuse_word);
    if (code) return code;
    if (options.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(options.shared.verbose);
    child_show_errors(options.shared.verbose > 0);
    child_catch_signals();
    code = survey_run(&s, true, options.timeout);
    if (code) return code;
    const survey_device *only = NULL;
    if (options.shared.device) code = survey_choose(&s, options.shared.device, &only);
    if (!code) code = options.shared.json ? print_json(&s, only, options.shared.json) : print_all(&s, only, options.shared.verbose > 0);
    if (!code && child_caught()) code = EXIT_SIGNAL + child_caught();
    if (!code) code = survey_require_devices(&s);
    if (!code && only && strcmp(only->status, "ok")) code = run_error("the device cannot be used: see its reason");
    if (!code && !any_usable(&s)) code = run_error("no OpenCL device can be used: see the reasons");
    survey_free(&s);
    return code;
}
