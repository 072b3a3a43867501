#include <cltrain/experimental/profile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/device.h"
#include "runtime/exec/observer.h"
#include "runtime/ops/ops.h"

/* A node of a plan, copied: plans may be gone when the profile is read. */
typedef struct profile_item {
    char op[64], node[64], backend[32];
    char *shapes; /* "[5, 12], [12] -> [5, 12]" */
    clt_cost cost;
} profile_item;

/* Item 0 is what serves no node. */
struct clt_profile {
    clt_observer observer; /* first: what plans are given is the profile */
    clt_device *device;
    uint64_t serial; /* tells this profile's notes in plans from those of earlier ones */
    profile_item *items;
    size_t n_items, items_capacity;
    clt_timed_launch *launches;
    size_t n_launches;
    clt_profile_row *rows;
    size_t n_rows;
    clt_profile_totals totals;
    double start_seconds;
    bool stopped;
};

/* ---- tags of launches: run, item, whether a call of the op begins with it ---- */

enum { ITEM_BITS = 28 };

static int64_t make_tag(int64_t run, int item, bool begins) {
    return (run << ITEM_BITS | item) << 1 | begins;
}

static int tag_item(int64_t tag) {
    return (int)(tag >> 1 & ((1 << ITEM_BITS) - 1));
}

static int64_t tag_run(int64_t tag) {
    return tag >> (1 + ITEM_BITS);
}

/* ---- items ---- */

static char *shapes_of(const clt_tensor *node) {
    clt_text text = {0};
    char shape[CLT_SHAPE_TEXT];
    for (int i = 0; i < node->n_inputs; i++)
        clt_text_add(&text, "%s%s", i ? ", " : "", clt_shape_text(&node->inputs[i]->shape, shape));
    clt_text_add(&text, " -> %s", clt_shape_text(&node->shape, shape));
    char *copy = text.status == CLT_OK ? clt_strdup(clt_text_data(&text)) : NULL;
    clt_text_free(&text);
    return copy;
}

static clt_status add_item(clt_profile *profile, const clt_tensor *node, const char *backend) {
    CLT_TRY(clt_grow(&profile->items, &profile->items_capacity, profile->n_items, sizeof *profile->items));
    if (profile->n_items >> ITEM_BITS) return clt_fail(CLT_E_UNSUPPORTED, "the profile has too many nodes");
    profile_item *item = &profile->items[profile->n_items];
    char label[64];
    *item = (profile_item){.shapes = node ? shapes_of(node) : clt_strdup("")};
    if (!item->shapes) return clt_fail_memory(CLT_SHAPE_TEXT);
    snprintf(item->op, sizeof item->op, "%s", node ? clt_node_name(node) : "outside");
    snprintf(item->node, sizeof item->node, "%s", node ? clt_tensor_label(node, label) : "");
    snprintf(item->backend, sizeof item->backend, "%s", backend);
    if (node) item->cost = clt_node_cost(node);
    profile->n_items++;
    return CLT_OK;
}

/* ---- what plans tell ---- */

static void begin_run(clt_observer *observer) {
    ((clt_profile *)observer)->totals.runs++;
}

static clt_status note_launch(clt_observer *observer, clt_launch_origin *origin, const clt_launch_origin *previous) {
    clt_profile *profile = (clt_profile *)observer;
    bool begins = !previous || previous->node != origin->node;
    if (origin->observer != profile->serial) {
        if (begins) CLT_TRY(add_item(profile, origin->node, origin->row));
        origin->item = begins ? (int)profile->n_items - 1 : previous->item;
        origin->observer = profile->serial;
    }
    clt_device_time_tag(profile->device, make_tag(profile->totals.runs, origin->item, begins));
    return CLT_OK;
}

static void end_run(clt_observer *observer) {
    clt_device_time_tag(((clt_profile *)observer)->device, make_tag(0, 0, true));
}

/* ---- start and stop ---- */

clt_status clt_profile_start(clt_profile **profile, clt_device *device) {
    static uint64_t serial; /* a device has one thread, but there may be several devices */
    if (!profile || !device) return clt_fail(CLT_E_INVALID, "clt_profile_start: an argument is NULL");
    if (clt_device_observer(device)) return clt_fail(CLT_E_STATE, "the device is being profiled already");
    clt_profile *p = clt_calloc(1, sizeof *p);
    if (!p) return clt_fail_memory(sizeof *p);
    p->observer = (clt_observer){begin_run, note_launch, end_run};
    p->device = device;
    p->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    clt_device_settle_programs(device); /* drivers that compile when binaries are asked for disturb the times */
    clt_status status = add_item(p, NULL, "");
    if (status == CLT_OK) status = clt_device_time_start(device);
    if (status < 0) {
        p->stopped = true;
        clt_profile_destroy(p);
        return status;
    }
    end_run(&p->observer); /* nothing runs: the mark is that */
    clt_device_set_observer(device, &p->observer);
    p->start_seconds = clt_seconds();
    *profile = p;
    return CLT_OK;
}

static clt_profile_row *row_of(clt_profile *profile, const profile_item *item) {
    for (size_t i = 0; i < profile->n_rows; i++)
        if (!strcmp(profile->rows[i].op, item->op) && !strcmp(profile->rows[i].backend, item->backend))
            return &profile->rows[i];
    clt_profile_row *row = &profile->rows[profile->n_rows++];
    memcpy(row->op, item->op, sizeof row->op);
    memcpy(row->backend, item->backend, sizeof row->backend);
    return row;
}

static int by_seconds(const void *a, const void *b) {
    const clt_profile_row *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* Drivers tell times that cannot be: shares of a step would be made of them. */
static clt_status check_times(const clt_profile *p) {
    const clt_device_info *info = clt_device_get_info(p->device);
    double all = 0;
    for (size_t i = 0; i < p->n_launches; i++) {
        const clt_timed_launch *launch = &p->launches[i];
        double seconds = launch->end_seconds - launch->start_seconds;
        if (seconds < 0)
            return clt_fail(CLT_E_DEVICE, "no profile: %s (driver %s) says that %s ended %g s before it began", info->name,
                            info->driver, launch->kernel, -seconds);
        all += seconds;
    }
    if (p->n_launches && !(all > 0 && all < 2 * p->totals.wall_seconds))
        return clt_fail(CLT_E_DEVICE, "no profile: %s (driver %s) says that launches took %g s, of %g s by the clock", info->name,
                        info->driver, all, p->totals.wall_seconds);
    return CLT_OK;
}

static clt_status sum_up(clt_profile *p) {
    const clt_peaks *peaks = &p->totals.peaks;
    p->rows = clt_calloc(p->n_items, sizeof *p->rows);
    if (!p->rows) return clt_fail_memory(p->n_items * sizeof *p->rows);
    for (size_t i = 0; i < p->n_launches; i++) {
        const clt_timed_launch *launch = &p->launches[i];
        const profile_item *item = &p->items[tag_item(launch->tag)];
        clt_profile_row *row = row_of(p, item);
        row->launches++;
        row->seconds += launch->end_seconds - launch->start_seconds;
        p->totals.device_seconds += launch->end_seconds - launch->start_seconds;
        if (!(launch->tag & 1)) continue;
        row->calls++;
        row->flops += item->cost.flops;
        row->bytes += item->cost.bytes;
        row->roofline_seconds += CLT_MAX(item->cost.flops / peaks->fma_flops, item->cost.bytes / peaks->copy_bytes);
    }
    for (size_t i = 0; i < p->n_rows; i++)
        p->rows[i].bound_by_compute = p->rows[i].flops / peaks->fma_flops > p->rows[i].bytes / peaks->copy_bytes;
    p->totals.launches = (int64_t)p->n_launches;
    qsort(p->rows, p->n_rows, sizeof *p->rows, by_seconds);
    return CLT_OK;
}

clt_status clt_profile_stop(clt_profile *profile) {
    if (!profile) return clt_fail(CLT_E_INVALID, "clt_profile_stop: the profile is NULL");
    if (profile->stopped) return CLT_OK;
    profile->stopped = true;
    clt_device_set_observer(profile->device, NULL);
    clt_status finished = clt_device_finish(profile->device);
    profile->totals.wall_seconds = clt_seconds() - profile->start_seconds;
    CLT_TRY(clt_device_time_stop(profile->device, &profile->launches, &profile->n_launches));
    CLT_TRY(finished);
    CLT_TRY(check_times(profile));
    CLT_TRY(clt_device_peaks(profile->device, &profile->totals.peaks));
    return sum_up(profile);
}

void clt_profile_destroy(clt_profile *profile) {
    if (!profile) return;
    clt_profile_stop(profile);
    for (size_t i = 0; i < profile->n_items; i++) clt_free(profile->items[i].shapes);
    clt_free(profile->items);
    clt_free(profile->launches);
    clt_free(profile->rows);
    clt_free(profile);
}

const clt_profile_row *clt_profile_rows(const clt_profile *profile, size_t *count) {
    if (count) *count = profile ? profile->n_rows : 0;
    return profile ? profile->rows : NULL;
}

clt_profile_totals clt_profile_get_totals(const clt_profile *profile) {
    return profile ? profile->totals : (clt_profile_totals){0};
}

/* ---- the trace: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ---- */

static void add_string(clt_text *text, const char *key, const char *value) {
    clt_text_add(text, "\"%s\":\"", key);
    for (const char *c = value; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        /* Names of devices may be no UTF-8, which JSON demands. */
        if (byte < 0x20 || byte >= 0x7f) clt_text_add(text, "?");
        else clt_text_add(text, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
    }
    clt_text_add(text, "\"");
}

static void add_name(clt_text *text, const char *what, int thread, const char *name) {
    clt_text_add(text, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{", what, thread);
    add_string(text, "name", name);
    clt_text_add(text, "}}");
}

static void add_span(clt_text *text, int thread, double start, double end) {
    clt_text_add(text, "\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", thread, 1e6 * start,
                 1e6 * CLT_MAX(end - start, 0));
}

static void add_launch(clt_text *text, const clt_profile *p, const clt_timed_launch *launch, double origin) {
    const profile_item *item = &p->items[tag_item(launch->tag)];
    clt_text_add(text, ",\n{");
    add_string(text, "name", item->op);
    clt_text_add(text, ",\"cat\":\"launch\",");
    add_span(text, 1, launch->start_seconds - origin, launch->end_seconds - origin);
    clt_text_add(text, ",\"args\":{");
    add_string(text, "node", item->node);
    clt_text_add(text, ",");
    add_string(text, "shapes", item->shapes);
    clt_text_add(text, ",");
    add_string(text, "kernel", launch->kernel);
    clt_text_add(text, ",");
    add_string(text, "row", item->backend);
    clt_text_add(text, "}}");
}

/* A span over the launches of each run, above them. */
static void add_runs(clt_text *text, const clt_profile *p, double origin) {
    for (size_t i = 0; i < p->n_launches;) {
        int64_t run = tag_run(p->launches[i].tag);
        size_t first = i++;
        if (run == 0) continue;
        while (i < p->n_launches && tag_run(p->launches[i].tag) == run) i++;
        clt_text_add(text, ",\n{\"name\":\"run %lld\",\"cat\":\"run\",", (long long)run);
        add_span(text, 0, p->launches[first].start_seconds - origin, p->launches[i - 1].end_seconds - origin);
        clt_text_add(text, "}");
    }
}

clt_status clt_profile_save_trace(const clt_profile *profile, const char *path) {
    clt_text text = {0};
    if (!profile || !path) return clt_fail(CLT_E_INVALID, "clt_profile_save_trace: an argument is NULL");
    if (!profile->rows) return clt_fail(CLT_E_STATE, "the profile has not been stopped");
    double origin = profile->n_launches ? profile->launches[0].start_seconds : 0;
    clt_text_add(&text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    add_name(&text, "process_name", 0, clt_device_get_info(profile->device)->name);
    clt_text_add(&text, ",\n");
    add_name(&text, "thread_name", 0, "runs");
    clt_text_add(&text, ",\n");
    add_name(&text, "thread_name", 1, "launches");
    add_runs(&text, profile, origin);
    for (size_t i = 0; i < profile->n_launches; i++) add_launch(&text, profile, &profile->launches[i], origin);
    clt_text_add(&text, "\n]}\n");
    clt_status status = text.status;
    if (status == CLT_OK) status = clt_file_write(path, clt_text_data(&text), text.length);
    clt_text_free(&text);
    return status;
}
