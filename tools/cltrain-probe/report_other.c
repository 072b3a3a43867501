/* On a page: a comparison, checks of memory. */
#include <math.h>
#include <string.h>

#include "report.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* ---- a comparison ---- */

static const json_t *find_row(const json_t *bench, const char *key) {
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(bench, "results"), i, row) {
        if (strcmp(document_string(row, "key"), key) == 0) return row;
    }
    return NULL;
}

/* "ok → crashed: why", where both benches are at hand. */
static void tell_statuses(FILE *page, const char *key, const json_t *a, const json_t *b) {
    const json_t *old = find_row(a, key), *new = find_row(b, key);
    const char *reason = document_string(new ? new : old, "reason");
    if (!old && !new) return;
    fputs("<small class=\"why\">", page);
    page_text(page, old ? document_string(old, "status") : "not there");
    fputs(" \xe2\x86\x92 ", page);
    page_text(page, new ? document_string(new, "status") : "not there");
    if (reason[0]) fputs(": ", page), page_text(page, reason);
    fputs("</small>", page);
}

static void change_row(FILE *page, const json_t *row, const json_t *a, const json_t *b) {
    const char *key = document_string(row, "key");
    double old = page_json_number(row, "a_us"), new = page_json_number(row, "b_us");
    double percent = 100 * (page_json_number(row, "time_ratio") - 1);
    if (fabs(percent) < 0.05) percent = 0;
    page_row(page);
    page_cell_badge(page, document_string(row, "change"));
    fputs("<td class=\"wide\">", page);
    page_code(page, key);
    if (isnan(percent)) tell_statuses(page, key, a, b);
    fputs("</td>", page);
    page_cell_number(page, old, 1);
    page_cell_number(page, new, 1);
    fputs("<td class=\"number\">", page);
    if (percent > 0) fputc('+', page);
    page_number(page, percent, 1);
    fputs("</td>", page);
    page_row_end(page);
}

/* Returns how many rows changed so. */
static int change_rows(FILE *page, const json_t *rows, const char *change, const json_t *a, const json_t *b) {
    size_t i;
    const json_t *row;
    int n = 0;
    json_array_foreach(rows, i, row) {
        if (strcmp(document_string(row, "change"), change) != 0) continue;
        if (page) change_row(page, row, a, b);
        n++;
    }
    return n;
}

/* Worst first. */
static const char *const changes[] = {"broken", "slower", "faster", "fixed", "appeared", "gone", "neither", "inconclusive", "same"};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static void summary(FILE *page, const json_t *comparison) {
    const json_t *rows = json_object_get(comparison, "rows");
    double machine = 100 * (page_json_number(comparison, "machine_time_ratio") - 1);
    fputs("<p>B is ", page);
    page_badge(page, document_string(comparison, "verdict"));
    fputs(": of ", page);
    page_number(page, page_json_number(comparison, "compared"), 0);
    fputs(" rows in both", page);
    for (int i = 0; i < CHANGES; i++) {
        int n = change_rows(NULL, rows, changes[i], NULL, NULL);
        if (n) fprintf(page, ", %d %s", n, changes[i]);
    }
    fputs(".</p>\n<p class=\"note\">Changes below ", page);
    page_number(page, 100 * page_json_number(comparison, "threshold"), 1);
    fputs(" % are none, and larger ones in rows that differed more from pass to pass. A row\xe2\x80\x99s time is the best sample of "
          "the middle one of its three best passes. Of limits that are rates, the times are those of 10<sup>9</sup> operations or bytes.", page);
    if (fabs(machine) > 1) {
        fputs(" The machine as a whole was ", page);
        page_number(page, fabs(machine), 1);
        fprintf(page, " %% %s in B, which is taken out.", machine > 0 ? "slower" : "faster");
    }
    fputs("</p>\n", page);
}

static void name_files(FILE *page, const json_t *a, const json_t *b) {
    fputs("<p>A is ", page);
    page_text(page, document_string(a, "file"));
    fputs(", and B ", page);
    page_text(page, document_string(b, "file"));
    fputs(".</p>\n", page);
}

void report_no_comparison(FILE *page, const char *heading, const json_t *comparison) {
    page_section(page, "comparison", heading);
    fputs("<p>There is none: ", page);
    page_text(page, document_string(comparison, "why"));
    fputs(".</p>\n", page);
    page_section_end(page);
}

void report_comparison(FILE *page, const json_t *comparison, const json_t *a, const json_t *b) {
    static const page_column columns[] = {
        {"Change", NULL, false}, {"Row", NULL, false}, {"A", "\xc2\xb5s", true}, {"B", "\xc2\xb5s", true}, {"Time", "%", true}};
    const char *heading = "Comparison of B with A";
    if (document_string(comparison, "why")[0]) {
        report_no_comparison(page, heading, comparison);
        return;
    }
    page_section(page, "comparison", heading);
    name_files(page, a, b);
    summary(page, comparison);
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < CHANGES; i++) change_rows(page, json_object_get(comparison, "rows"), changes[i], a, b);
    page_table_end(page);
    page_section_end(page);
}

/* ---- memory and arithmetic ---- */

void report_verify(FILE *page, const json_t *verify) {
    const json_t *found = json_object_get(verify, "verify");
    double errors = page_json_number(found, "errors");
    page_section(page, "verify", "Memory and arithmetic");
    page_card(page, document_string(json_array_get(json_object_get(verify, "devices"), 0), "name"), errors == 0 ? "ok" : "wrong");
    page_fact_number(page, "errors", errors, "");
    page_fact_number(page, "rounds", page_json_number(found, "rounds"), "");
    page_fact_bytes(page, "checked", page_json_number(found, "checked_bytes"));
    page_fact_bytes(page, "held at once", page_json_number(found, "held_bytes"));
    page_fact_bytes(page, "largest buffer", page_json_number(found, "largest_buffer_bytes"));
    page_fact_number(page, "values", page_json_number(found, "values"), "");
    page_card_end(page);
    page_section_end(page);
}
