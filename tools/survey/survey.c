#include "tools/survey/survey.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/survey/child.h"
#include "tools/survey/document.h"
#include "tools/common/message.h"

enum { MOST_DEVICES = 256 };

/* ---- in the child ---- */

typedef struct task {
    survey *s;
    int driver;
    bool probe;
    int first; /* device to begin to probe with: those before were begun by a child that died */
    int started;    /* `first` when the child began */
    int begun;      /* device that is being probed, as the parent knows; -1: none yet */
    char what[64];  /* and what of it */
    bool listed;    /* all devices are told */
} task;

/* What no device is, of those that the library would open. "" for what may be one. */
static void find_nonsense(const clt_device_info *i, char reason[256]) {
    int major, minor;
    const char *texts[] = {i->name, i->vendor, i->driver, i->cl_version, i->platform};
    reason[0] = 0;
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (!document_text_clean(texts[k])) snprintf(reason, 256, "one of its names is not text");
    if (!i->name[0]) snprintf(reason, 256, "it has no name");
    if (sscanf(i->cl_version, "OpenCL %4d.%4d", &major, &minor) != 2)
        snprintf(reason, 256, "its version does not begin with \"OpenCL\" and a number");
    if (i->compute_units > 1u << 20)
        snprintf(reason, 256, "it claims %u compute units", i->compute_units);
    if (i->clock_mhz > 100000) snprintf(reason, 256, "it claims a clock of %u MHz", i->clock_mhz);
    /* Intel's emulator of FPGAs has 2^26. */
    if (i->max_work_group_size > 1u << 30)
        snprintf(reason, 256, "it claims work-groups of %llu", (unsigned long long)i->max_work_group_size);
    if (i->max_buffer_bytes > i->memory_bytes)
        snprintf(reason, 256, "it claims buffers of %llu bytes in a memory of %llu",
                 (unsigned long long)i->max_buffer_bytes, (unsigned long long)i->memory_bytes);
    if (i->memory_bytes > (uint64_t)1 << 50)
        snprintf(reason, 256, "it claims %llu bytes of memory", (unsigned long long)i->memory_bytes);
}

json_t *survey_device_json(const survey *s, const survey_device *which, const char *status, const char *reason) {
    json_t *o = document_device(&which->info);
    json_object_del(o, "unusable");
    json_object_set_new(o, "icd", document_text(s->drivers[which->driver].name));
    json_object_set_new(o, "status", json_string(status));
    json_object_set_new(o, "reason", reason[0] ? document_text(reason) : json_null());
    return o;
}

json_t *survey_drivers_json(const survey *s) {
    json_t *list = json_array();
    for (int i = 0; i < s->n_drivers; i++) {
        const survey_driver *r = &s->driver_rows[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:o, s:i, s:f}", "icd", document_text(s->drivers[i].name),
                                              "library", document_text(s->drivers[i].library), "status", r->status,
                                              "reason", r->reason[0] ? document_text(r->reason) : json_null(), "devices", r->n_devices, "seconds",
                                              r->seconds));
    }
    return list;
}

const char *survey_error_status(clt_status status, bool wrong) {
    if (wrong) return "wrong";
    switch (status) {
    case CLT_OK: return "ok";
    case CLT_E_BUILD: return "build-failed";
    case CLT_E_DEVICE:
    case CLT_E_DEVICE_LOST: return "crashed";
    case CLT_E_TIMEOUT: return "timeout";
    default: return "unsupported";
    }
}

static void tell_begin(FILE *lines, int i, const char *what) {
    document_line(lines, json_pack("{s:i, s:s}", "begin", i, "what", what));
}

static json_t *facts_json(const clt_device_facts *f) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:o}", "vector_width_f16", f->vector_width_f16,
                     "vector_width_f32", f->vector_width_f32, "vector_width_f64", f->vector_width_f64,
                     "sub_group_size", f->sub_group_size, "work_group_multiple", f->group_multiple, "cache_bytes",
                     (json_int_t)f->cache_bytes, "cl_c_version", document_text(f->cl_c_version));
}

static clt_status ask(FILE *lines, int i, clt_device *device, json_t *found, bool *wrong) {
    clt_device_facts facts;
    json_t *capabilities = json_object(), *lacks = json_object();
    for (int c = 0; c < CLT_CAP_COUNT_; c++) {
        const char *name = clt_capability_name((clt_capability)c);
        tell_begin(lines, i, name);
        const char *why = clt_device_lacks(device, (clt_capability)c);
        json_object_set_new(capabilities, name, json_boolean(!why));
        if (why) json_object_set_new(lacks, name, document_text(why));
    }
    json_object_set_new(found, "capabilities", capabilities);
    json_object_set_new(found, "lacks", lacks);
    tell_begin(lines, i, "running a small kernel");
    clt_status status = clt_device_get_facts(device, &facts, wrong);
    if (status == CLT_OK) json_object_set_new(found, "facts", facts_json(&facts));
    return status;
}

static json_t *with_hint(const char *detail, const driver *d) {
    char reason[512], hint[256];
    bool any = driver_hint(d, hint);
    snprintf(reason, sizeof reason, "%.140s%s%s", detail, any ? "; " : "", any ? hint : "");
    return document_text(any ? reason : detail);
}

static void probe_device(FILE *lines, int i, const clt_device_info *info, const driver *d) {
    char reason[256], selector[16];
    bool wrong = false;
    json_t *found = json_object();
    clt_device *device = NULL;
    clt_status status = CLT_OK;
    const char *verdict;
    tell_begin(lines, i, "opening it");
    find_nonsense(info, reason);
    snprintf(selector, sizeof selector, "%d", i);
    if (reason[0]) {
        verdict = "suspect";
    } else if (info->unusable[0]) {
        verdict = "unsupported";
        snprintf(reason, sizeof reason, "%s", info->unusable);
    } else {
        status = clt_device_open(&device, selector);
        if (status == CLT_OK) status = ask(lines, i, device, found, &wrong);
        verdict = survey_error_status(status, wrong);
        if (status < 0) snprintf(reason, sizeof reason, "%.255s", clt_error_detail());
    }
    json_object_set_new(found, "probed", json_integer(i));
    json_object_set_new(found, "status", json_string(verdict));
    json_t *told = status == CLT_E_BUILD ? with_hint(reason, d) : reason[0] ? document_text(reason) : json_null();
    json_object_set_new(found, "reason", told);
    tell_begin(lines, i, "closing it");
    document_line(lines, found);
    clt_device_close(device);
}

/* Of a driver that the loader says nothing of. */
static json_t *why_none(const driver *d) {
    char reason[512];
    const char *detail = clt_error_detail();
    void *library = d->library[0] ? dlopen(d->library, RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *error = d->library[0] && !library ? dlerror() : NULL;
    if (library) dlclose(library);
    if (!error) return with_hint(detail, d);
    snprintf(reason, sizeof reason, "its library cannot be loaded: %s", error);
    return document_text(reason);
}

static int in_child(FILE *lines, void *user) {
    const task *t = user;
    clt_device_info *infos;
    size_t count;
    driver_isolate(&t->s->drivers[t->driver]);
    unsetenv("CLTRAIN_DEVICE");
    clt_status status = clt_device_enumerate(&infos, &count);
    if (status < 0 || count == 0) {
        document_line(lines, json_pack("{s:o}", "none", why_none(&t->s->drivers[t->driver])));
        return 0;
    }
    for (size_t i = 0; i < count; i++) document_line(lines, json_pack("{s:o}", "device", document_device(&infos[i])));
    document_line(lines, json_pack("{s:b}", "listed", 1));
    for (size_t i = (size_t)t->first; t->probe && i < count; i++) probe_device(lines, (int)i, &infos[i], &t->s->drivers[t->driver]);
    clt_device_infos_free(infos);
    return 0;
}

/* ---- in the parent ---- */

static survey_device *device_of(survey *s, int owner, int index) {
    for (int i = 0; i < s->n_devices; i++)
        if (s->devices[i].driver == owner && s->devices[i].index == index) return &s->devices[i];
    return NULL;
}

static void set_status(char status[16], char reason[400], const char *word, const char *why) {
    snprintf(status, 16, "%s", word);
    snprintf(reason, 400, "%s", why ? why : "");
}

static void take_device(task *t, const json_t *told) {
    survey *s = t->s;
    survey_device *d = &s->devices[s->n_devices];
    if (t->listed || s->n_devices == MOST_DEVICES) return; /* by an earlier child */
    if (!document_read_device(told, &d->info)) return;
    d->driver = t->driver;
    d->index = s->driver_rows[t->driver].n_devices++;
    char nonsense[256];
    find_nonsense(&d->info, nonsense);
    if (nonsense[0]) set_status(d->status, d->reason, "suspect", nonsense);
    else set_status(d->status, d->reason, d->info.unusable[0] ? "unsupported" : "ok", d->info.unusable);
    s->n_devices++;
}

static void take_probed(task *t, json_t *told) {
    survey_device *d = device_of(t->s, t->driver, (int)json_integer_value(json_object_get(told, "probed")));
    const char *status = json_string_value(json_object_get(told, "status"));
    if (!d || !status) return;
    set_status(d->status, d->reason, status, json_string_value(json_object_get(told, "reason")));
    json_object_del(told, "probed");
    json_object_del(told, "status");
    json_object_del(told, "reason");
    json_decref(d->probed);
    d->probed = json_incref(told);
    t->first = d->index + 1;
}

static bool take_line(const char *text, void *user) {
    task *t = user;
    json_t *told = json_loads(text, 0, NULL);
    document_clean(told);
    if (json_object_get(told, "device")) take_device(t, json_object_get(told, "device"));
    if (json_object_get(told, "listed")) t->listed = true;
    if (json_object_get(told, "none"))
        set_status(t->s->driver_rows[t->driver].status, t->s->driver_rows[t->driver].reason, "unsupported",
                   json_string_value(json_object_get(told, "none")));
    if (json_object_get(told, "begin")) {
        t->begun = (int)json_integer_value(json_object_get(told, "begin"));
        snprintf(t->what, sizeof t->what, "%s", json_string_value(json_object_get(told, "what")));
    }
    if (json_object_get(told, "probed")) take_probed(t, told);
    json_decref(told);
    return true;
}

/* Devices whose turn never came: none of them is "ok" for want of being asked. */
static void leave_rest(const task *t, const char *status, const char *reason) {
    for (int i = t->first; i < t->s->driver_rows[t->driver].n_devices; i++) {
        survey_device *d = device_of(t->s, t->driver, i);
        if (d && strcmp(d->status, "ok") == 0) set_status(d->status, d->reason, status, reason);
    }
}

/* The device that was being probed, or the driver. */
static void blame(task *t, const child_end *end) {
    survey_driver *row = &t->s->driver_rows[t->driver];
    survey_device *d = device_of(t->s, t->driver, t->begun);
    /* What came after a device was told is the driver's own end. */
    if (!d || t->begun < t->first) {
        set_status(row->status, row->reason, child_status(end), end->reason);
        return;
    }
    char reason[400];
    snprintf(reason, sizeof reason, "%s: %.320s", t->what, end->reason);
    set_status(d->status, d->reason, child_status(end), reason);
    t->first = d->index + 1;
}

/* True if a child has to go on behind the device with which this one ended. */
static bool judge_end(task *t, const child_end *end) {
    survey_driver *row = &t->s->driver_rows[t->driver];
    row->seconds += end->seconds;
    if (end->outcome == CHILD_DONE) {
        if (t->probe) leave_rest(t, "unsupported", "it is not there any more");
        return false;
    }
    if (!t->listed || !t->probe) {
        char reason[400];
        snprintf(reason, sizeof reason, "while it was loaded and asked for devices: %.340s", end->reason);
        set_status(row->status, row->reason, child_status(end), reason);
        return false;
    }
    blame(t, end);
    if (t->first > t->started && t->first < row->n_devices && end->outcome != CHILD_STOPPED) return true;
    leave_rest(t, child_status(end), end->reason);
    return false;
}

/* Rounds: drivers whose child died over a device are asked again for those behind it. */
static void ask_drivers(survey *s, task *tasks, double seconds) {
    child_job jobs[64];
    child_end ends[64];
    bool *waiting = calloc((size_t)s->n_drivers + 1, sizeof *waiting);
    int which[64], n = s->n_drivers;
    for (int i = 0; waiting && i < n; i++) waiting[i] = !s->drivers[i].problem[0];
    while (waiting && n > 0) {
        n = 0;
        for (int i = 0; i < s->n_drivers; i++) {
            if (!waiting[i]) continue;
            which[n] = i;
            tasks[i].begun = -1;
            tasks[i].started = tasks[i].first;
            jobs[n++] = (child_job){.run = in_child, .line = take_line, .user = &tasks[i], .silence_seconds = seconds};
        }
        child_run(jobs, n, 4, ends);
        for (int k = 0; k < n; k++) waiting[which[k]] = judge_end(&tasks[which[k]], &ends[k]);
    }
    free(waiting);
}

static int by_driver(const void *a, const void *b) {
    const survey_device *x = a, *y = b;
    return x->driver != y->driver ? x->driver - y->driver : x->index - y->index;
}

/* The same id twice, from drivers that do not know of one another, is numbered as clt_device_enumerate does. */
static void number_equal_ids(survey *s) {
    for (int i = 0; i < s->n_devices; i++) {
        int number = 1;
        for (int k = i + 1; k < s->n_devices; k++) {
            char *id = s->devices[k].info.id;
            size_t length = strlen(id), room = sizeof s->devices[k].info.id;
            if (strcmp(s->devices[i].info.id, id) == 0) snprintf(id + length, room - length, "#%d", ++number);
        }
    }
}

int survey_run(survey *s, bool probe, double seconds) {
    *s = (survey){.n_drivers = 0};
    int n = drivers_find(&s->drivers, s->where);
    if (n < 0) return EXIT_FAILED;
    s->n_drivers = n;
    s->driver_rows = calloc((size_t)n + 1, sizeof *s->driver_rows);
    s->devices = calloc(MOST_DEVICES + 1, sizeof *s->devices);
    task *tasks = calloc((size_t)n + 1, sizeof *tasks);
    if (!s->driver_rows || !s->devices || !tasks) {
        free(tasks);
        survey_free(s);
        return run_error("no memory");
    }
    for (int i = 0; i < n; i++) {
        tasks[i] = (task){.s = s, .driver = i, .probe = probe, .begun = -1};
        const char *problem = s->drivers[i].problem;
        set_status(s->driver_rows[i].status, s->driver_rows[i].reason, problem[0] ? "unsupported" : "ok", problem);
    }
    ask_drivers(s, tasks, seconds);
    free(tasks);
    if (s->n_devices) qsort(s->devices, (size_t)s->n_devices, sizeof *s->devices, by_driver);
    number_equal_ids(s);
    /* What was found by then is worth telling only where that is all that was asked. */
    if (probe || !child_caught()) return 0;
    survey_free(s);
    return EXIT_SIGNAL + child_caught();
}

void survey_free(survey *s) {
    for (int i = 0; i < s->n_devices; i++) json_decref(s->devices[i].probed); /* NOLINT(clang-analyzer-core.NullDereference) */
    free(s->drivers);
    free(s->driver_rows);
    free(s->devices);
    *s = (survey){.n_drivers = 0};
}

int survey_require_devices(const survey *s) {
    if (s->n_devices) return 0;
    if (s->n_drivers == 0)
        return run_error("no OpenCL driver: %s holds no .icd file (is one installed? does OCL_ICD_VENDORS point elsewhere?)",
                         s->where);
    for (int i = 0; i < s->n_drivers; i++)
        if (s->driver_rows[i].reason[0])
            warning("%s: %s: %s", s->drivers[i].name, s->driver_rows[i].status, s->driver_rows[i].reason);
    return run_error("no OpenCL device: none of the %d driver%s in %s has one", s->n_drivers, PLURAL(s->n_drivers), s->where);
}

int survey_choose(const survey *s, const char *selector, const survey_device **chosen) {
    size_t place;
    int code = survey_require_devices(s);
    if (code) return code;
    clt_device_info *infos = calloc((size_t)s->n_devices, sizeof *infos);
    if (!infos) return run_error("no memory");
    for (int i = 0; i < s->n_devices; i++) {
        infos[i] = s->devices[i].info;
        char nonsense[256];
        find_nonsense(&infos[i], nonsense);
        if (nonsense[0] && !infos[i].unusable[0]) memcpy(infos[i].unusable, nonsense, sizeof nonsense);
    }
    clt_status status = clt_device_select(infos, (size_t)s->n_devices, selector, &place);
    free(infos);
    const char *told = selector && *selector ? NULL : getenv("CLTRAIN_DEVICE");
    if (status < 0) return library_error(status, told && *told ? "CLTRAIN_DEVICE" : "choosing a device");
    *chosen = &s->devices[place];
    return 0;
}

clt_status survey_open(const survey *s, const survey_device *which, const clt_settings *settings, clt_device **device) {
    char selector[16];
    clt_settings with = settings ? *settings : (clt_settings){.device = NULL};
    driver_isolate(&s->drivers[which->driver]);
    snprintf(selector, sizeof selector, "%d", which->index);
    with.device = selector;
    clt_status status = clt_device_open_with(device, &with);
    if (status == CLT_OK && strcmp(clt_device_get_info(*device)->name, which->info.name) == 0) return CLT_OK;
    if (status == CLT_OK) clt_device_close(*device);
    return status < 0 ? status : CLT_E_NO_DEVICE;
}
