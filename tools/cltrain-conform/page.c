/* A run as a page of HTML, made from its JSON: a column per device, failures first, each with the line that runs it again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"
#include "tools/survey/output.h"
#include "tools/survey/page.h"

static bool is_bad(const json_t *result) {
    return status_of(result) >= 2;
}

/* "1: name (platform)", as the text has it: a machine may have two of a name, or one through several drivers. */
static void device_name(const json_t *document, size_t i, char name[160]) {
    const json_t *devices = json_object_get(document, "devices"), *device = json_array_get(devices, i);
    int length = json_array_size(devices) > 1 ? snprintf(name, 160, "%zu: ", i) : 0;
    snprintf(name + length, 160 - (size_t)length, "%.90s (%.44s)", document_string(device, "name"), document_string(device, "platform"));
}

/* ---- devices ---- */

static void device_rows(FILE *page, const json_t *document) {
    static const page_column columns[] = {{"Device", NULL, false}, {"Status", NULL, false}, {"Passed", NULL, true}, {"Skipped", NULL, true},
                                          {"Failed", NULL, true},  {"Crashed", NULL, true}, {"Timed out", NULL, true}};
    size_t i;
    const json_t *device;
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(document, "devices"), i, device) {
        char name[160];
        device_name(document, i, name);
        page_row(page);
        page_cell_text(page, name);
        page_cell_badge(page, document_string(device, "status"));
        for (int s = 0; s < N_STATUS; s++) page_cell_number(page, page_json_number(json_object_get(device, "counts"), status_names[s]), 0);
        page_row_end(page);
    }
    page_table_end(page);
}

static void devices(FILE *page, const json_t *document) {
    size_t i;
    const json_t *device;
    page_section(page, "devices", "Devices");
    device_rows(page, document);
    fputs("<div class=\"cards\">\n", page);
    json_array_foreach(json_object_get(document, "devices"), i, device) page_device(page, device);
    fputs("</div>\n", page);
    page_section_end(page);
}

/* ---- drivers ---- */

static void drivers(FILE *page, const json_t *document) {
    static const page_column columns[] = {{"Driver", NULL, false}, {"Status", NULL, false}, {"Devices", NULL, true}, {"Why", NULL, false}};
    size_t i;
    const json_t *one, *all = json_object_get(document, "drivers");
    if (json_array_size(all) == 0) return;
    page_section(page, "drivers", "Drivers");
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(all, i, one) {
        page_row(page);
        page_cell_text(page, document_string(one, "icd"));
        page_cell_badge(page, document_string(one, "status"));
        page_cell_number(page, page_json_number(one, "devices"), 0);
        page_cell_text(page, document_string(one, "reason"));
        page_row_end(page);
    }
    page_table_end(page);
    page_section_end(page);
}

/* ---- failures ---- */

static void begin_failures(FILE *page) {
    static const page_column columns[] = {{"Status", NULL, false}, {"Case, why, and the line that runs it again", NULL, false},
                                          {"Row", NULL, false}, {"Device", NULL, false}};
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
}

static void failure(FILE *page, const char *id, const char *row, const json_t *result, const char *device) {
    const char *rerun = document_string(result, "rerun");
    page_row(page);
    page_cell_badge(page, document_string(result, "status"));
    fputs("<td class=\"wide\">", page);
    page_code(page, id);
    fputs("<small class=\"why\">", page);
    page_text(page, document_string(result, "reason"));
    fputs("</small>", page);
    if (rerun[0]) {
        fputs("<small>", page);
        page_code(page, rerun);
        fputs("</small>", page);
    }
    fputs("</td>", page);
    page_cell_text(page, row);
    page_cell_text(page, device);
    page_row_end(page);
}

/* Drivers are a failure where all of them were asked for. Returns how many rows the table has then. */
static int status_failures(FILE *page, const json_t *document, int n) {
    bool all = json_is_true(json_object_get(document, "all"));
    size_t i;
    const json_t *one;
    char text[300];
    json_array_foreach(json_object_get(document, "devices"), i, one) {
        if (!report_is_bad(document_string(one, "status"))) continue;
        if (n++ == 0) begin_failures(page);
        device_name(document, i, text);
        failure(page, "device", "", one, text);
    }
    json_array_foreach(json_object_get(document, "drivers"), i, one) {
        if (!all || !report_is_bad(document_string(one, "status"))) continue;
        if (n++ == 0) begin_failures(page);
        snprintf(text, sizeof text, "driver %.280s", document_string(one, "icd"));
        failure(page, text, "", one, "");
    }
    return n;
}

/* Ops that no case launched. Returns how many rows the table has then. */
static int coverage_failures(FILE *page, const json_t *document, int n) {
    size_t i, k;
    const json_t *device, *one;
    char name[160], id[160];
    json_array_foreach(json_object_get(document, "devices"), i, device)
        json_array_foreach(json_object_get(device, "coverage"), k, one) {
            if (!is_bad(one)) continue;
            if (n++ == 0) begin_failures(page);
            snprintf(id, sizeof id, "coverage/%.140s", document_string(one, "op"));
            device_name(document, i, name);
            failure(page, id, "", one, name);
        }
    return n;
}

static void failures(FILE *page, const json_t *document) {
    size_t i, k;
    char name[160];
    const json_t *one, *result;
    page_section(page, "failures", "Failures");
    int n = status_failures(page, document, 0);
    json_array_foreach(json_object_get(document, "cases"), i, one)
        json_array_foreach(json_object_get(one, "results"), k, result) {
            if (!is_bad(result)) continue;
            if (n++ == 0) begin_failures(page);
            device_name(document, (size_t)json_integer_value(json_object_get(result, "device")), name);
            failure(page, document_string(one, "id"), document_string(result, "row"), result, name);
        }
    n = coverage_failures(page, document, n);
    if (n) page_table_end(page);
    else fputs("<p>None.</p>\n", page);
    page_section_end(page);
}

/* ---- ops ---- */

typedef struct op_row {
    const char *op;
    int (*counts)[N_STATUS]; /* by device */
} op_row;

typedef struct op_list {
    op_row *rows;
    int n, n_devices;
} op_list;

static op_row *find_op(op_list *list, const char *op) {
    for (int i = list->n - 1; i >= 0; i--)
        if (strcmp(list->rows[i].op, op) == 0) return &list->rows[i];
    op_row *row = &list->rows[list->n];
    *row = (op_row){op, calloc((size_t)list->n_devices + 1, sizeof *row->counts)};
    if (!row->counts) return NULL;
    list->n++;
    return row;
}

static bool count_ops(op_list *list, const json_t *document) {
    size_t i, k;
    const json_t *one, *result, *cases = json_object_get(document, "cases");
    *list = (op_list){.rows = calloc(json_array_size(cases) + 1, sizeof *list->rows),
                      .n_devices = (int)json_array_size(json_object_get(document, "devices"))};
    if (!list->rows) return false;
    json_array_foreach(cases, i, one) {
        op_row *row = find_op(list, document_string(one, "op"));
        if (!row) return false;
        json_array_foreach(json_object_get(one, "results"), k, result) {
            json_int_t device = json_integer_value(json_object_get(result, "device"));
            if (device >= 0 && device < list->n_devices) row->counts[device][status_of(result)]++;
        }
    }
    return true;
}

static void op_cell(FILE *page, const int counts[N_STATUS]) {
    int bad = counts[2] + counts[3] + counts[4];
    fputs("<td class=\"number\">", page);
    if (counts[0] || counts[1] || bad) page_number(page, counts[0], 0);
    if (counts[1]) fprintf(page, "<br>%d ", counts[1]), page_badge(page, "skipped");
    if (bad) fprintf(page, "<br>%d ", bad), page_badge(page, "failed");
    fputs("</td>", page);
}

static bool op_table(FILE *page, const json_t *document, const op_list *list) {
    size_t i;
    const json_t *device;
    char (*names)[160] = calloc((size_t)list->n_devices + 1, sizeof *names);
    page_column *columns = calloc((size_t)list->n_devices + 1, sizeof *columns);
    if (names && columns) {
        columns[0] = (page_column){"Op", NULL, false};
        json_array_foreach(json_object_get(document, "devices"), i, device) {
            device_name(document, i, names[i]);
            columns[i + 1] = (page_column){names[i], "passed", true};
        }
        page_table(page, NULL, columns, list->n_devices + 1);
        for (int k = 0; k < list->n; k++) {
            page_row(page);
            page_cell_text(page, list->rows[k].op);
            for (int d = 0; d < list->n_devices; d++) op_cell(page, list->rows[k].counts[d]);
            page_row_end(page);
        }
        page_table_end(page);
    }
    bool done = names && columns;
    free(names), free(columns);
    return done;
}

static bool ops(FILE *page, const json_t *document) {
    op_list list;
    page_section(page, "ops", "Ops by device");
    bool done = count_ops(&list, document) && op_table(page, document, &list);
    for (int i = 0; i < list.n; i++) free(list.rows[i].counts);
    free(list.rows);
    page_section_end(page);
    return done;
}

/* ---- skips ---- */

static void add_skip(json_t *reasons, const json_t *result) {
    const char *reason = document_string(result, "reason");
    if (status_of(result) != 1) return;
    json_object_set_new(reasons, reason, json_integer(json_integer_value(json_object_get(reasons, reason)) + 1));
}

/* Each reason once, with its count. */
static json_t *skips_of(const json_t *document, size_t which) {
    size_t i, k;
    const json_t *one, *result;
    json_t *reasons = json_object();
    json_array_foreach(json_object_get(document, "cases"), i, one)
        json_array_foreach(json_object_get(one, "results"), k, result) {
            if ((size_t)json_integer_value(json_object_get(result, "device")) == which) add_skip(reasons, result);
        }
    return reasons;
}

/* Of the library's ops, which are no cases. */
static json_t *uncovered(const json_t *device) {
    size_t i;
    const json_t *one;
    json_t *reasons = json_object();
    json_array_foreach(json_object_get(device, "coverage"), i, one) add_skip(reasons, one);
    return reasons;
}

static void skip_row(FILE *page, double count, const char *what, const char *reason) {
    page_row(page);
    page_cell_number(page, count, 0);
    fputs("<td class=\"wide\">", page);
    page_text(page, what);
    page_text(page, reason);
    fputs("</td>", page);
    page_row_end(page);
}

static void skips(FILE *page, const json_t *document) {
    static const page_column columns[] = {{"Results", NULL, true}, {"Why they were skipped", NULL, false}};
    size_t i, k;
    const json_t *device, *left;
    page_section(page, "skips", "Skips");
    json_array_foreach(json_object_get(document, "devices"), i, device) {
        char name[160], what[96];
        const char *reason;
        json_t *reasons = skips_of(document, i), *ops_of = uncovered(device), *count;
        device_name(document, i, name);
        page_table(page, name, columns, sizeof columns / sizeof columns[0]);
        json_object_foreach(reasons, reason, count) skip_row(page, (double)json_integer_value(count), "", reason);
        json_object_foreach(ops_of, reason, count)
            skip_row(page, (double)json_integer_value(count), "ops of the library that no case launches: ", reason);
        json_array_foreach(json_object_get(device, "rows_left_out"), k, left) {
            snprintf(what, sizeof what, "row %.60s is left out: ", document_string(left, "row"));
            skip_row(page, NAN, what, document_string(left, "reason"));
        }
        page_table_end(page);
        json_decref(reasons), json_decref(ops_of);
    }
    page_section_end(page);
}

/* ---- all of it ---- */

static void head(FILE *page, const json_t *document) {
    const json_t *counts = json_object_get(document, "counts");
    static const char *const told[N_STATUS] = {"passed", "skipped", "failed", "crashed", "timeout"};
    page_begin(page, "Conformance of OpenCL devices: cltrain-conform");
    fputs("<header>\n<h1>Conformance of OpenCL devices</h1>\n<p class=\"soft\">", page);
    page_text(page, document_string(document, "effort"));
    fputs(", ", page);
    page_number(page, page_json_number(document, "seconds"), 0);
    fputs(" s; <span class=\"together\">", page);
    page_text(page, document_string(document, "time_utc"));
    fputs("</span></p>\n<p>", page);
    if (!json_is_true(json_object_get(document, "complete"))) fputs("<strong>Stopped before the end.</strong> ", page);
    for (int i = 0; i < N_STATUS; i++) {
        double n = page_json_number(counts, told[i]);
        if (i && !(n > 0)) continue;
        fputs(i ? ", " : "", page);
        page_number(page, n, 0);
        fputc(' ', page);
        page_badge(page, told[i]);
    }
    fputs("</p>\n</header>\n", page);
}

static void environment(FILE *page, const json_t *document) {
    const char *name;
    json_t *value, *all = json_object_get(document, "environment");
    if (json_object_size(all) == 0) return;
    page_section(page, "environment", "In the environment");
    json_object_foreach(all, name, value) {
        fputs("<p class=\"code\">", page);
        page_text(page, name);
        fputc('=', page);
        page_text(page, json_string_value(value) ? json_string_value(value) : "");
        fputs("</p>\n", page);
    }
    page_section_end(page);
}

int report_html(const json_t *document, FILE *page) {
    head(page, document);
    failures(page, document);
    devices(page, document);
    drivers(page, document);
    bool done = ops(page, document);
    skips(page, document);
    environment(page, document);
    page_end(page, document);
    if (!done) return run_error("no memory");
    return fflush(page) || ferror(page) ? output_failed(page) : 0;
}
