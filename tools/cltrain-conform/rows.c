/* The rows of a device: with what the library has to serve the cases, and which case is run in which. */
#include <stdio.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

static row_choice *add_row(device_column *column, const char *name) {
    row_choice *r = &column->rows[column->n_rows < MOST_ROWS ? column->n_rows++ : MOST_ROWS - 1];
    *r = (row_choice){.backend = false};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

static bool has_row(const device_column *column, const char *name) {
    for (int i = 0; i < column->n_rows; i++)
        if (strcmp(column->rows[i].name, name) == 0) return true;
    return false;
}

/* What a backend's rows lack, each thing once; "" if one of them lacks nothing. */
static void missing_of(const device_column *column, const char *backend, char missing[200]) {
    missing[0] = 0;
    for (size_t i = 0; i < json_array_size(column->table); i++) {
        const json_t *one = json_array_get(column->table, i);
        const char *lacks = json_string_value(json_object_get(one, "missing"));
        if (strncmp(json_string_value(json_object_get(one, "backend")), backend, strlen(backend))) continue;
        size_t used = strlen(missing);
        if (!strstr(missing, lacks)) snprintf(missing + used, 200 - used, "%s%s", used ? ", " : "", lacks);
        if (lacks[0]) continue;
        missing[0] = 0;
        return;
    }
}

static void leave_out(device_column *column, const char *name, const char *format, const char *what) {
    json_t *one = json_pack("{s:s}", "row", name);
    json_object_set_new(one, "reason", json_sprintf(format, what));
    for (size_t i = 0; i < json_array_size(column->left_out); i++)
        if (json_equal(json_array_get(column->left_out, i), one)) {
            json_decref(one);
            return;
        }
    json_array_append_new(column->left_out, one);
}

static void add_backend(device_column *column, const char *backend, bool full) {
    char missing[200];
    missing_of(column, backend, missing);
    if (missing[0]) {
        leave_out(column, backend, "the device has none of %s", missing);
        return;
    }
    if (!full) {
        leave_out(column, backend, "with --full%s", "");
        return;
    }
    row_choice *r = add_row(column, backend);
    r->backend = true;
    bool own = strcmp(backend, "workgroup") == 0; /* which serves beside the reference, in the other rows too */
    snprintf(r->backends, sizeof r->backends, "reference,workgroup%s%s", own ? "" : ",", own ? "" : backend);
    if (strcmp(backend, "matrix") == 0) r->precision = "f16";
}

void rows_make(device_column *column, bool full) {
    row_choice *r = add_row(column, "reference");
    snprintf(r->backends, sizeof r->backends, "reference");
    r->passes = "none";
    add_row(column, "default");
    bool cpu = column->device->info.type == CLT_DEVICE_CPU;
    add_row(column, cpu ? "gpu-class" : "cpu-class")->class_ = cpu ? "gpu" : "cpu";
    for (size_t i = 0; i < json_array_size(column->table); i++) {
        const char *backend = json_string_value(json_object_get(json_array_get(column->table, i), "backend"));
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(backend, "#"), backend);
        if (!has_row(column, name)) add_backend(column, name, full);
    }
}

/* Whether the row is asked for a sample alone, and the case is not in it. On a simulator, where they take half of the time, networks and trainings
 * are in the default row's. */
static bool left_out(const conform *c, const test_case *one, const row_choice *r) {
    int64_t sample = strcmp(r->name, "reference") == 0 ? c->options->sample_reference : c->options->sample;
    if (c->small && sample > 1 && !one->operation && strcmp(r->name, "default") != 0) return true;
    return c->ordinal[one - c->cases.items] % sample != 0;
}

/* What is no case of a single op needs fewer rows. */
bool row_runs(const conform *c, const test_case *one, const row_choice *r) {
    if (c->only_row && strcmp(c->only_row, r->name) != 0) return false;
    bool always = strcmp(r->name, "default") == 0;
    if (strcmp(one->op, "ranks") == 0 && !c->options->full && !c->only_row) return always; /* all is built once a rank */
    if (left_out(c, one, r)) return false;
    if (one->handed || strcmp(one->op, "resume") == 0) return always;
    if (r->class_ && !c->options->full && !c->only_row && !one->classes) return false;
    if (one->operation || strcmp(one->op, "network") == 0) return true;
    return always || strcmp(r->name, "reference") == 0 || ((one->compared || one->classes) && r->class_);
}

/* ---- a row that was asked for by name ---- */

static bool any_case_in(const conform *c, const row_choice *r) {
    for (int k = 0; k < c->cases.n; k++)
        if (c->selected[k] && row_runs(c, &c->cases.items[k], r)) return true;
    return false;
}

static const char *why_left_out(const device_column *column, const char *row) {
    for (size_t i = 0; i < json_array_size(column->left_out); i++) {
        const json_t *one = json_array_get(column->left_out, i);
        if (strcmp(document_string(one, "row"), row) == 0) return document_string(one, "reason");
    }
    return NULL;
}

static int no_such_row(const conform *c, const device_column *column) {
    char names[MOST_ROWS * 34] = "";
    for (int r = 0; r < column->n_rows; r++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", column->rows[r].name);
    }
    return usage_error("--case: %s has no row '%s'; it has %s", column->device->info.name, c->only_row, names);
}

int rows_require(const conform *c) {
    const device_column *left = NULL, *has = NULL, *last = NULL;
    for (int i = 0; c->only_row && i < c->n_columns; i++) {
        const device_column *column = &c->columns[i];
        if (strcmp(column->status, "ok") != 0) continue;
        for (int r = 0; r < column->n_rows; r++)
            if (any_case_in(c, &column->rows[r])) return 0;
        if (has_row(column, c->only_row)) has = column;
        if (why_left_out(column, c->only_row)) left = column;
        last = column;
    }
    if (!last) return 0; /* the devices' own reasons are told */
    if (has) return run_error("--case: no case that is meant is run in the row '%s'", c->only_row);
    if (!left) return no_such_row(c, last);
    return run_error("--case: the row '%s' is left out on %s: %s", c->only_row, left->device->info.name,
                     why_left_out(left, c->only_row));
}
