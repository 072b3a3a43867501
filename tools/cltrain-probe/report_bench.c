/* A bench on a page: the roofline, the ops by backend, the device's limits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* ---- numbers that a bench writes: what is none becomes a dash ---- */

typedef struct op_times {
    double p10, p50, p90; /* NAN where they are not what a bench writes */
    bool few;             /* too few samples to tell a spread */
    double count;         /* of the samples; NAN: not told */
} op_times;

static bool is_time(double us) {
    return us > 1e-9 && us < 1e15;
}

static op_times read_times(const json_t *row) {
    const json_t *times = json_object_get(row, "time_us");
    op_times t = {.p10 = page_json_number(times, "p10"), .p50 = page_json_number(times, "p50"), .p90 = page_json_number(times, "p90"),
                  .count = page_json_number(times, "count")};
    bool right = is_time(t.p10) && is_time(t.p90) && t.p10 <= t.p50 && t.p50 <= t.p90 && !(t.count < 1);
    if (!right) return (op_times){.p10 = NAN, .p50 = NAN, .p90 = NAN, .count = NAN};
    t.few = t.count < 3;
    return t;
}

/* Operations or bytes of an op. */
static double read_amount(const json_t *row, const char *key) {
    double amount = page_json_number(row, key);
    return amount >= 0 && amount < 1e18 ? amount : NAN;
}

static bool is_ok(const json_t *row) {
    return strcmp(document_string(row, "status"), "ok") == 0;
}

/* The roofline of memory is none to what works from a cache. Files of older versions have it so placed: but for a cache, what is so much
 * faster than memory would be suspect there. */
static const char *read_bound(const json_t *row, double *fraction) {
    const double margin = 1.25, most = 1000; /* algorithms may save so much of the arithmetic that is counted */
    const json_t *roof = json_object_get(row, "roof");
    const char *bound = document_string(roof, "bound");
    *fraction = page_json_number(roof, "fraction");
    bool cached = strcmp(bound, "cache") == 0 || (strcmp(bound, "memory") == 0 && *fraction > margin && is_ok(row));
    if (cached || !is_ok(row) || !(*fraction > 0 && *fraction < most)) *fraction = NAN;
    return cached ? "cache" : bound;
}

/* ---- limits ---- */

typedef struct limit_group {
    const char *caption, *unit;
    const char *const *keys; /* NULL at its end */
    bool rate;               /* of 10^9 a sample's time is for; else the time itself is told, as milliseconds where long */
} limit_group;

static const char *const arithmetic[] = {"fma_f32", "fma_f16", "fma_f64", NULL};
static const char *const memory[] = {"copy", "triad", "read", "local", "upload_pinned", "upload_pageable", "download_pinned",
                                     "download_pageable", NULL};
static const char *const latency[] = {"launch_pipelined", "launch_waited", "build_cold", "build_cached", NULL};
static const limit_group groups[] = {
    {"Arithmetic", "GFLOP/s", arithmetic, true},
    {"Memory and transfers", "GB/s", memory, true},
    {"Latency", "\xc2\xb5s", latency, false},
};

static const json_t *find_limit(const json_t *bench, const char *name) {
    size_t i;
    const json_t *row;
    char key[64];
    snprintf(key, sizeof key, "limit %s", name);
    json_array_foreach(json_object_get(bench, "results"), i, row) {
        if (strcmp(document_string(row, "key"), key) == 0) return row;
    }
    return NULL;
}

static void limit_numbers(FILE *page, const json_t *row, bool rate) {
    op_times t = read_times(row);
    const double us[3] = {t.p50, t.few ? NAN : rate ? t.p90 : t.p10, t.few ? NAN : rate ? t.p10 : t.p90};
    for (int i = 0; i < 3; i++) {
        double value = rate ? 1e6 / us[i] : us[i];
        page_cell_number(page, value, value < 100 ? 2 : 0);
    }
}

static void limit_row(FILE *page, const json_t *row, const char *name, bool rate) {
    char words[64];
    snprintf(words, sizeof words, "%s", name);
    for (char *c = words; *c; c++) *c = *c == '_' ? ' ' : *c;
    page_row(page);
    fputs("<td class=\"nowrap\">", page);
    page_text(page, words);
    fputs("</td>", page);
    if (is_ok(row)) {
        limit_numbers(page, row, rate);
    } else {
        fputs("<td colspan=\"3\">", page);
        page_badge(page, document_string(row, "status"));
        fputs(" ", page);
        page_text(page, document_string(row, "reason"));
        fputs("</td>", page);
    }
    page_row_end(page);
}

static void limit_table(FILE *page, const json_t *bench, const limit_group *group) {
    const page_column columns[] = {{"Limit", NULL, false}, {"Median", group->unit, true}, {"p10", group->unit, true}, {"p90", group->unit, true}};
    bool any = false;
    for (int i = 0; group->keys[i]; i++) {
        const json_t *row = find_limit(bench, group->keys[i]);
        if (!row) continue;
        if (!any) page_table(page, group->caption, columns, 4);
        any = true;
        limit_row(page, row, group->keys[i], group->rate);
    }
    if (any) page_table_end(page);
}

/* ---- ops ---- */

enum { MOST_BACKENDS = 8, BACKEND_NAME = 20 };

typedef struct op_table {
    char backends[MOST_BACKENDS][BACKEND_NAME];
    int n;
} op_table;

/* "native#2" is a row of native. */
static void backend_of(const json_t *row, char name[BACKEND_NAME]) {
    const char *text = document_string(row, "backend");
    snprintf(name, BACKEND_NAME, "%.*s", (int)strcspn(text, "#"), text);
}

static int find_backend(const op_table *t, const char *name) {
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->backends[i], name) == 0) return i;
    return -1;
}

static void add_backend(op_table *t, const json_t *row) {
    char name[BACKEND_NAME];
    backend_of(row, name);
    if (name[0] && find_backend(t, name) < 0 && t->n < MOST_BACKENDS) memcpy(t->backends[t->n++], name, sizeof name);
}

/* Past the most there may be, ops stand in no column, and have their backend below their name all the same. */
static void find_backends(op_table *t, const json_t *results) {
    size_t i;
    const json_t *row;
    *t = (op_table){.n = 0};
    json_array_foreach(results, i, row) {
        const json_t *others = json_object_get(row, "other_backends");
        add_backend(t, row);
        for (size_t k = 0; k < json_array_size(others); k++) add_backend(t, json_array_get(others, k));
    }
}

enum { FIXED_BEFORE = 3, FIXED_BEHIND = 5 };

static void begin_ops(FILE *page, const op_table *t) {
    page_column columns[FIXED_BEFORE + MOST_BACKENDS + FIXED_BEHIND] = {{"No.", NULL, true}, {"Op", NULL, false}, {"Status", NULL, false}};
    static const page_column behind[FIXED_BEHIND] = {
        {"Spread", "%", true}, {"Speed", "GFLOP/s", true}, {"Traffic", "GB/s", true}, {"Of roof", "%", true}, {"Bound", NULL, false}};
    int n = FIXED_BEFORE;
    for (int i = 0; i < t->n; i++) columns[n++] = (page_column){t->backends[i], "median \xc2\xb5s", true};
    memcpy(columns + n, behind, sizeof behind);
    page_table(page, NULL, columns, n + FIXED_BEHIND);
}

static void op_name(FILE *page, const json_t *row) {
    double count = page_json_number(row, "count");
    const char *problem = document_string(row, "problem"), *parameters = document_string(row, "parameters");
    fputs("<td class=\"wide\">", page);
    page_code(page, problem[0] ? problem : document_string(row, "key"));
    fputs("<small>", page);
    page_text(page, document_string(row, "phase"));
    if (count > 1) fputs(", \xc3\x97", page), page_number(page, count, 0);
    if (strchr(document_string(row, "backend"), '#') || parameters[0]) {
        fputs("; ", page);
        page_text(page, document_string(row, "backend"));
        fputs(parameters[0] ? " " : "", page);
        page_text(page, parameters);
    }
    fputs("</small>", page);
    if (document_string(row, "reason")[0]) {
        fputs("<small class=\"why\">", page);
        page_text(page, document_string(row, "reason"));
        fputs("</small>", page);
    }
    fputs("</td>", page);
}

/* What a backend makes of an op that another one serves in a run. */
static void other_cell(FILE *page, const json_t *row, const char *backend) {
    const json_t *others = json_object_get(row, "other_backends");
    for (size_t i = 0; i < json_array_size(others); i++) {
        const json_t *other = json_array_get(others, i);
        if (strcmp(document_string(other, "backend"), backend) != 0) continue;
        if (is_ok(other)) page_cell_number(page, read_times(other).p50, 1);
        else page_cell_note(page, document_string(other, "status"), document_string(other, "reason"));
        return;
    }
    page_cell_text(page, "");
}

static void spread_cell(FILE *page, const op_times *t) {
    char samples[32];
    snprintf(samples, sizeof samples, "%.0f sample%s", t->count, t->count > 1 ? "s" : "");
    if (t->few) page_cell_note(page, samples, "too few to tell a spread");
    else page_cell_number(page, 100 * (t->p90 - t->p10) / t->p50, 0);
}

/* What is suspect is no number to quote. */
static void rate_cells(FILE *page, const json_t *row, double us) {
    double fraction;
    const char *bound = read_bound(row, &fraction);
    if (!is_ok(row)) us = NAN;
    page_cell_number(page, 1e-3 * read_amount(row, "flops") / us, 1);
    page_cell_number(page, 1e-3 * read_amount(row, "bytes") / us, 2);
    page_cell_number(page, 100 * fraction, 0);
    page_cell_text(page, bound);
}

static void op_row(FILE *page, const op_table *t, const json_t *row, int number) {
    op_times times = read_times(row);
    char backend[BACKEND_NAME];
    backend_of(row, backend);
    page_row(page);
    page_cell_number(page, number, 0);
    op_name(page, row);
    page_cell_badge(page, document_string(row, "status"));
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->backends[i], backend) == 0) page_cell_strong(page, times.p50, 1);
        else other_cell(page, row, t->backends[i]);
    }
    spread_cell(page, &times);
    rate_cells(page, row, times.p50);
    page_row_end(page);
}

static void model_row(FILE *page, const char *model, int columns) {
    fprintf(page, "<tr class=\"group\"><th colspan=\"%d\" scope=\"rowgroup\"><span>", columns);
    page_text(page, model);
    fputs("</span></th></tr>\n", page);
}

static void op_rows(FILE *page, const json_t *results) {
    size_t i;
    const json_t *row;
    const char *model = "";
    op_table table;
    int number = 0;
    find_backends(&table, results);
    json_array_foreach(results, i, row) {
        if (strcmp(document_string(row, "kind"), "op") != 0) continue;
        if (number == 0) begin_ops(page, &table);
        if (strcmp(model, document_string(row, "model")) != 0)
            model_row(page, document_string(row, "model"), FIXED_BEFORE + table.n + FIXED_BEHIND);
        model = document_string(row, "model");
        op_row(page, &table, row, ++number);
    }
    if (number) page_table_end(page);
    else fputs("<p>No op was measured.</p>\n", page);
}

/* How many rows have each status: "62 ok, 1 crashed". */
static void counts(FILE *page, const json_t *results) {
    static const char *const statuses[] = {"ok", "wrong", "build-failed", "crashed", "timeout", "suspect", "unsupported", "not-run"};
    size_t i, k;
    const json_t *row;
    bool any = false;
    fputs("<p>", page);
    for (k = 0; k < sizeof statuses / sizeof statuses[0]; k++) {
        int n = 0;
        json_array_foreach(results, i, row)
            n += strcmp(document_string(row, "kind"), "op") == 0 && strcmp(document_string(row, "status"), statuses[k]) == 0;
        if (n == 0) continue;
        fprintf(page, "%s%d ", any ? ", " : "", n);
        page_badge(page, statuses[k]);
        any = true;
    }
    fputs("</p>\n", page);
}

/* ---- all of it ---- */

static void section(FILE *page, const char *ids, const char *what, const char *name, const char *heading) {
    char id[64], text[128];
    snprintf(id, sizeof id, "%s%s", ids, what);
    snprintf(text, sizeof text, "%s%s%s", heading, name[0] ? ", " : "", name);
    page_section(page, id, text);
}

void report_bench(FILE *page, const json_t *bench, const char *ids, const char *name, json_t *rooflines) {
    const json_t *results = json_object_get(bench, "results");
    section(page, ids, "roofline", name, "Roofline");
    if (!json_is_true(json_object_get(bench, "complete"))) fputs("<p><strong>This bench was stopped before its end.</strong></p>\n", page);
    report_roofline(page, bench, rooflines);
    page_section_end(page);
    section(page, ids, "ops", name, "Ops by backend");
    counts(page, results);
    op_rows(page, results);
    page_section_end(page);
    section(page, ids, "limits", name, "Limits of the device");
    fputs("<div class=\"tables\">\n", page);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) limit_table(page, bench, &groups[i]);
    fputs("</div>\n", page);
    page_section_end(page);
}
