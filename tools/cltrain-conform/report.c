/* What came of it: as text, as JSON, as JUnit's XML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/clock.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

extern char **environ;

/* ---- counts ---- */

json_t *report_coverage(const conform *c, const device_column *column) {
    return json_array_get(c->coverage, (size_t)(column - c->columns));
}

void report_count(const conform *c, const device_column *column, int counts[N_STATUS]) {
    memset(counts, 0, N_STATUS * sizeof *counts);
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows; r++) {
            const json_t *result = *result_at(c, column, k, r);
            if (result) counts[status_of(result)]++;
        }
}

void report_count_coverage(const conform *c, const device_column *column, int counts[N_STATUS]) {
    const json_t *coverage = report_coverage(c, column);
    memset(counts, 0, N_STATUS * sizeof *counts);
    for (size_t i = 0; i < json_array_size(coverage); i++) counts[status_of(json_array_get(coverage, i))]++;
}

bool report_is_bad(const char *status) {
    return strcmp(status, "ok") != 0 && strcmp(status, "unsupported") != 0;
}

/* ---- the line that runs a case again ---- */

/* A token, or a password in the address of a store: "redis://user:password@host". */
static bool is_secret(const char *variable) {
    const char *value = variable + strcspn(variable, "="), *token = strstr(variable, "TOKEN"), *host = strstr(value, "://");
    return (token && token < value) || (host && strchr(host, '@'));
}

static bool matters(const char *variable) {
    static const char *const prefixes[] = {"CLTRAIN_", "POCL_", "OCLGRIND_", "OCL_ICD_", "OPENCL_VENDOR", "RUSTICL_", "LP_",
                                           "CUDA_VISIBLE_", "ROCR_VISIBLE_", "HIP_VISIBLE_", "GPU_DEVICE_", "ZE_AFFINITY_",
                                           "CL_CONFIG_"};
    static const char *const others[] = {"CLTRAIN_DEVICE=", "POCL_CACHE_DIR="};
    if (is_secret(variable)) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(variable, others[i], strlen(others[i])) == 0) return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static void add_quoted(char line[RERUN_LINE], const char *text) {
    size_t used = strlen(line);
    for (; *text && used + 6 < RERUN_LINE; text++) {
        if (*text == '\'') used += (size_t)snprintf(line + used, RERUN_LINE - used, "'\\''");
        else line[used++] = *text;
    }
    line[used] = 0;
}

void rerun_line(const conform *c, const device_column *column, const test_case *one, const row_choice *row, char line[RERUN_LINE]) {
    const char *left_out = NULL; /* a variable for which there is no room */
    line[0] = 0;
    for (char **variable = environ; *variable; variable++) {
        size_t name = strcspn(*variable, "="), used = strlen(line);
        if (!matters(*variable)) continue;
        if (used + 2 * strlen(*variable) > RERUN_LINE / 2) {
            left_out = *variable;
            continue;
        }
        snprintf(line + used, RERUN_LINE - used, "%.*s='", (int)name, *variable);
        add_quoted(line, *variable + name + ((*variable)[name] == '='));
        snprintf(line + strlen(line), RERUN_LINE - strlen(line), "' ");
    }
    size_t used = strlen(line);
    bool others = one->handed || (one->compared && c->n_columns > 1);
    if (others) snprintf(line + used, RERUN_LINE - used, "%s --all --case '", program_name);
    else {
        snprintf(line + used, RERUN_LINE - used, "%s --device '", program_name);
        add_quoted(line, column->device->info.id);
        snprintf(line + strlen(line), RERUN_LINE - strlen(line), "' --case '");
    }
    /* What is taken up must have been left, and what differs from others is nothing alone. */
    used = strlen(line);
    if (one->handed) snprintf(line + used, RERUN_LINE - used, "*/%s'", strchr(one->id, '/') + 1);
    else if (one->compared) snprintf(line + used, RERUN_LINE - used, "%s'", one->id);
    else snprintf(line + used, RERUN_LINE - used, "%s@%s'", one->id, row->name);
    if (c->options->full) snprintf(line + strlen(line), RERUN_LINE - strlen(line), " --full");
    if (left_out)
        snprintf(line + strlen(line), RERUN_LINE - strlen(line), " # with %.*s as it was, which is too long to be told",
                 (int)strcspn(left_out, "="), left_out);
}

/* ---- text ---- */

enum { COLUMN_NAME = 300 };

/* Two devices may have one name. */
static void name_column(const conform *c, const device_column *column, char name[COLUMN_NAME]) {
    const char *own = column->device->info.name;
    if (c->n_columns > 1) snprintf(name, COLUMN_NAME, "%d: %s", (int)(column - c->columns), own);
    else snprintf(name, COLUMN_NAME, "%s", own);
}

static bool is_failure(int status) {
    return status >= 2;
}

static void print_failures(const conform *c, const device_column *column) {
    char line[RERUN_LINE], name[COLUMN_NAME];
    name_column(c, column, name);
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows; r++) {
            const json_t *result = *result_at(c, column, k, r);
            if (!result || !is_failure(status_of(result))) continue;
            rerun_line(c, column, &c->cases.items[k], &column->rows[r], line);
            printf("%s: %s@%s on %s\n    %s\n    %s\n", status_names[status_of(result)], c->cases.items[k].id,
                   column->rows[r].name, name, json_string_value(json_object_get(result, "reason")), line);
        }
    const json_t *coverage = report_coverage(c, column);
    for (size_t i = 0; i < json_array_size(coverage); i++) {
        const json_t *one = json_array_get(coverage, i);
        if (is_failure(status_of(one)))
            printf("failed: coverage/%s\n    %s\n", json_string_value(json_object_get(one, "op")), json_string_value(json_object_get(one, "reason")));
    }
}

/* Each reason once, with its count. */
static void print_skips(const conform *c, const device_column *column) {
    json_t *reasons = json_object();
    const char *reason;
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows; r++) {
            const json_t *result = *result_at(c, column, k, r);
            if (!result || status_of(result) != 1) continue;
            reason = json_string_value(json_object_get(result, "reason"));
            json_object_set_new(reasons, reason, json_integer(json_integer_value(json_object_get(reasons, reason)) + 1));
        }
    for (void *at = json_object_iter(reasons); at; at = json_object_iter_next(reasons, at))
        printf("  %6d skipped: %s\n", (int)json_integer_value(json_object_iter_value(at)), json_object_iter_key(at));
    for (size_t i = 0; i < json_array_size(column->left_out); i++) {
        const json_t *one = json_array_get(column->left_out, i);
        printf("  row %s is left out: %s\n", json_string_value(json_object_get(one, "row")), json_string_value(json_object_get(one, "reason")));
    }
    json_decref(reasons);
}

static void op_counts(const conform *c, const device_column *column, const char *op, int counts[N_STATUS]) {
    memset(counts, 0, N_STATUS * sizeof *counts);
    for (int k = 0; k < c->cases.n; k++)
        for (int r = 0; r < column->n_rows && strcmp(c->cases.items[k].op, op) == 0; r++) {
            const json_t *result = *result_at(c, column, k, r);
            if (result) counts[status_of(result)]++;
        }
}

static void print_cell(const int counts[N_STATUS]) {
    char cell[64];
    int bad = counts[2] + counts[3] + counts[4];
    if (counts[0] + counts[1] + bad == 0) snprintf(cell, sizeof cell, "-");
    else if (bad) snprintf(cell, sizeof cell, "%d, %d FAILED", counts[0], bad);
    else if (counts[1]) snprintf(cell, sizeof cell, "%d, %d skipped", counts[0], counts[1]);
    else snprintf(cell, sizeof cell, "%d", counts[0]);
    printf(" %-22s", cell);
}

static void print_table(const conform *c) {
    char name[COLUMN_NAME];
    int counts[N_STATUS];
    printf("%-20s", "passed");
    for (int i = 0; i < c->n_columns; i++) printf(" %-22.21s", c->columns[i].device->info.platform);
    printf("\n%-20s", "");
    for (int i = 0; i < c->n_columns; i++) {
        name_column(c, &c->columns[i], name);
        printf(" %-22.21s", name);
    }
    printf("\n");
    const char *last = "";
    for (int k = 0; k < c->cases.n; k++) {
        const char *op = c->cases.items[k].op;
        bool seen = false;
        for (int j = 0; j < k; j++) seen |= strcmp(c->cases.items[j].op, op) == 0;
        if (seen || strcmp(op, last) == 0) continue;
        bool any = false;
        for (int i = 0; i < c->n_columns; i++) {
            op_counts(c, &c->columns[i], op, counts);
            any |= counts[0] + counts[1] + counts[2] + counts[3] + counts[4] > 0;
        }
        if (!any) continue;
        printf("%-20s", last = op);
        for (int i = 0; i < c->n_columns; i++) op_counts(c, &c->columns[i], op, counts), print_cell(counts);
        printf("\n");
    }
}

static void print_device(const conform *c, const device_column *column) {
    const clt_device_info *info = &column->device->info;
    int counts[N_STATUS], all = 0;
    char name[COLUMN_NAME];
    report_count(c, column, counts);
    for (int i = 0; i < N_STATUS; i++) all += counts[i];
    name_column(c, column, name);
    printf("%s (%s) [%s], driver %s: ", name, info->platform, info->id, info->driver);
    if (strcmp(column->status, "ok") != 0) printf("%s: %s%s", column->status, column->reason, all ? "; " : "\n");
    if (all || strcmp(column->status, "ok") == 0)
        printf("%d passed, %d skipped, %d failed, %d crashed, %d timed out\n", counts[0], counts[1], counts[2], counts[3], counts[4]);
    print_skips(c, column);
    report_count_coverage(c, column, counts);
    if (counts[0] + counts[1] + counts[2])
        printf("  of the library's ops: %d launched by a case, %d not asked for, %d without a case\n", counts[0], counts[1], counts[2]);
}

static void print_drivers(const conform *c) {
    for (int i = 0; c->options->all && i < c->survey.n_drivers; i++) {
        const survey_driver *row = &c->survey.driver_rows[i];
        json_t *name = document_text(c->survey.drivers[i].name), *reason = document_text(row->reason);
        if (strcmp(row->status, "ok") != 0)
            printf("driver %s: %s: %s\n", json_string_value(name), row->status, json_string_value(reason));
        json_decref(name), json_decref(reason);
    }
}

int report_text(const conform *c) {
    if (c->n_columns) print_table(c), printf("\n");
    for (int i = 0; i < c->n_columns; i++) {
        print_failures(c, &c->columns[i]);
        print_device(c, &c->columns[i]);
    }
    print_drivers(c);
    if (!c->complete) printf("stopped before the end: cases that are not counted were not run\n");
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- JSON ---- */

static json_t *counts_json(const int counts[N_STATUS]) {
    json_t *o = json_object();
    for (int i = 0; i < N_STATUS; i++) json_object_set_new(o, status_names[i], json_integer(counts[i]));
    return o;
}

static json_t *device_json(const conform *c, const device_column *column) {
    json_t *o = survey_device_json(&c->survey, column->device, column->status, column->reason), *rows = json_array();
    int counts[N_STATUS];
    report_count(c, column, counts);
    for (int r = 0; r < column->n_rows; r++) json_array_append_new(rows, json_string(column->rows[r].name));
    json_object_set_new(o, "rows", rows);
    json_object_set(o, "rows_left_out", column->left_out);
    json_object_set_new(o, "counts", counts_json(counts));
    report_count_coverage(c, column, counts);
    json_object_set_new(o, "coverage_counts", counts_json(counts));
    json_object_set_new(o, "coverage", report_coverage(c, column) ? json_incref(report_coverage(c, column)) : json_array());
    return o;
}

/* Of all rows on all devices: failed where one is, passed where one is and none failed. */
static void add_outcome(json_t *object, const json_t *results) {
    const json_t *result, *decides = NULL;
    const char *status = "skipped";
    size_t i;
    json_array_foreach(results, i, result) {
        bool failure = is_failure(status_of(result)), passed = status_of(result) == 0;
        if (strcmp(status, "failed") == 0 || !(failure || passed || !decides)) continue;
        status = failure ? "failed" : passed ? "passed" : status;
        decides = result;
    }
    json_object_set_new(object, "status", json_string(status));
    json_object_set(object, "reason", decides ? json_object_get(decides, "reason") : json_null());
}

static json_t *case_json(const conform *c, int which) {
    const test_case *one = &c->cases.items[which];
    json_t *results = json_array();
    char line[RERUN_LINE];
    for (int i = 0; i < c->n_columns; i++)
        for (int r = 0; r < c->columns[i].n_rows; r++) {
            const json_t *result = *result_at(c, &c->columns[i], which, r);
            if (!result) continue;
            json_t *copy = json_pack("{s:i, s:s}", "device", i, "row", c->columns[i].rows[r].name);
            json_object_update(copy, (json_t *)(uintptr_t)result);
            rerun_line(c, &c->columns[i], one, &c->columns[i].rows[r], line);
            if (is_failure(status_of(result))) json_object_set_new(copy, "rerun", document_text(line));
            json_array_append_new(results, copy);
        }
    json_t *object = json_pack("{s:s, s:s, s:s, s:b}", "id", one->id, "op", one->op, "dtype", clt_dtype_name(one->dtype), "full", one->full);
    add_outcome(object, results);
    json_object_set_new(object, "results", results);
    return object;
}

static json_t *environment_json(void) {
    json_t *o = json_object();
    for (char **variable = environ; *variable; variable++) {
        char name[128];
        size_t length = strcspn(*variable, "=");
        if (!matters(*variable) || length >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)length, *variable);
        bool path = strchr(*variable + length, '/'); /* what tells of the machine's folders stays out */
        json_object_set_new(o, name, path ? json_string("(a path)") : document_text(*variable + length + 1));
    }
    return o;
}

json_t *report_document(const conform *c) {
    json_t *document = document_new("conform"), *devices = json_array(), *cases = json_array();
    int total[N_STATUS] = {0}, counts[N_STATUS];
    for (int i = 0; i < c->n_columns; i++) {
        json_array_append_new(devices, device_json(c, &c->columns[i]));
        report_count(c, &c->columns[i], counts);
        for (int k = 0; k < N_STATUS; k++) total[k] += counts[k];
    }
    for (int k = 0; k < c->cases.n; k++)
        if (c->selected[k]) json_array_append_new(cases, case_json(c, k));
    json_object_set_new(document, "effort", json_string(c->options->full ? "full" : "quick"));
    if (c->options->sample > 1) json_object_set_new(document, "sample", json_integer(c->options->sample));
    if (c->options->sample_reference > 1) json_object_set_new(document, "sample_reference", json_integer(c->options->sample_reference));
    json_object_set_new(document, "all", json_boolean(c->options->all));
    json_object_set_new(document, "complete", json_boolean(c->complete));
    json_object_set_new(document, "environment", environment_json());
    json_object_set_new(document, "seconds", json_real(now_seconds() - c->started));
    json_object_set_new(document, "counts", counts_json(total));
    json_object_set_new(document, "drivers", survey_drivers_json(&c->survey));
    json_object_set_new(document, "devices", devices);
    json_object_set_new(document, "cases", cases);
    return document;
}
