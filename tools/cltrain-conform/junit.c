/* What came of it as JUnit's XML: a suite a device and row, and one for what could not be tested. */
#include <stdio.h>
#include <string.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/survey/output.h"

static void print_xml(FILE *file, const char *text) {
    for (; text && *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '&': fputs("&amp;", file); break;
        case '"': fputs("&quot;", file); break;
        default: fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
    }
}

static void print_junit_case(const conform *c, const device_column *column, int which, int r, FILE *file) {
    const json_t *result = *result_at(c, column, which, r);
    const char *reason = json_string_value(json_object_get(result, "reason"));
    int status = status_of(result);
    char line[RERUN_LINE];
    fprintf(file, "    <testcase classname=\"%s\" name=\"", c->cases.items[which].op);
    print_xml(file, c->cases.items[which].id);
    fprintf(file, "\" time=\"%.3f\">", json_number_value(json_object_get(result, "seconds")));
    if (status) {
        fprintf(file, status == 1 ? "<skipped message=\"" : status > 2 ? "<error message=\"" : "<failure message=\"");
        print_xml(file, reason);
        fprintf(file, "\">");
        rerun_line(c, column, &c->cases.items[which], &column->rows[r], line);
        text_clean(line, "");
        if (status > 1) print_xml(file, line);
        fprintf(file, status == 1 ? "</skipped>" : status > 2 ? "</error>" : "</failure>");
    }
    fprintf(file, "</testcase>\n");
}

static bool print_suite(const conform *c, const device_column *column, int r, FILE *file) {
    int counts[N_STATUS] = {0}, all = 0;
    for (int k = 0; k < c->cases.n; k++)
        if (*result_at(c, column, k, r)) counts[status_of(*result_at(c, column, k, r))]++, all++;
    if (!all) return false;
    fprintf(file, "  <testsuite name=\"");
    print_xml(file, column->device->info.id);
    fprintf(file, " %s\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n", column->rows[r].name, all, counts[2], counts[3] + counts[4], counts[1]);
    for (int k = 0; k < c->cases.n; k++)
        if (*result_at(c, column, k, r)) print_junit_case(c, column, k, r, file);
    fprintf(file, "  </testsuite>\n");
    return true;
}

static void print_coverage(const conform *c, const device_column *column, FILE *file) {
    const json_t *all = report_coverage(c, column);
    int counts[N_STATUS] = {0};
    for (size_t i = 0; i < json_array_size(all); i++) counts[status_of(json_array_get(all, i))]++;
    if (!json_array_size(all)) return;
    fprintf(file, "  <testsuite name=\"");
    print_xml(file, column->device->info.id);
    fprintf(file, " coverage\" tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\">\n", (int)json_array_size(all), counts[2], counts[1]);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        const char *words[] = {"", "skipped", "failure"};
        fprintf(file, "    <testcase classname=\"coverage\" name=\"%s\">", json_string_value(json_object_get(one, "op")));
        if (status_of(one)) {
            fprintf(file, "<%s message=\"", words[status_of(one)]);
            print_xml(file, json_string_value(json_object_get(one, "reason")));
            fprintf(file, "\"/>");
        }
        fprintf(file, "</testcase>\n");
    }
    fprintf(file, "  </testsuite>\n");
}

/* ---- devices and drivers that gave no cases ---- */

static void print_status_case(FILE *file, const char *what, const char *name, const char *status, const char *reason) {
    const char *tag = report_is_bad(status) ? "error" : "skipped";
    fprintf(file, "    <testcase classname=\"%s\" name=\"", what);
    print_xml(file, name);
    fprintf(file, "\">");
    if (strcmp(status, "ok") != 0) {
        fprintf(file, "<%s message=\"%s: ", tag, status);
        print_xml(file, reason);
        fprintf(file, "\"></%s>", tag);
    }
    fprintf(file, "</testcase>\n");
}

static void print_status_suite(FILE *file, const char *name, const char *status, const char *reason) {
    bool bad = report_is_bad(status);
    fprintf(file, "  <testsuite name=\"");
    print_xml(file, name);
    fprintf(file, " status\" tests=\"1\" failures=\"0\" errors=\"%d\" skipped=\"%d\">\n", bad, !bad);
    print_status_case(file, "device", name, status, reason);
    fprintf(file, "  </testsuite>\n");
}

static void print_column(const conform *c, const device_column *column, FILE *file) {
    const char *id = column->device->info.id;
    bool any = false;
    for (int r = 0; r < column->n_rows; r++) any |= print_suite(c, column, r, file);
    if (strcmp(column->status, "ok") != 0) print_status_suite(file, id, column->status, column->reason);
    else if (!any && c->complete) print_status_suite(file, id, "unsupported", "no case that is meant is run in its rows");
    print_coverage(c, column, file);
}

static void print_drivers(const survey *s, FILE *file) {
    int bad = 0, lacking = 0;
    for (int i = 0; i < s->n_drivers; i++) {
        bad += report_is_bad(s->driver_rows[i].status);
        lacking += strcmp(s->driver_rows[i].status, "unsupported") == 0;
    }
    fprintf(file, "  <testsuite name=\"drivers\" tests=\"%d\" failures=\"0\" errors=\"%d\" skipped=\"%d\">\n", s->n_drivers, bad, lacking);
    for (int i = 0; i < s->n_drivers; i++)
        print_status_case(file, "driver", s->drivers[i].name, s->driver_rows[i].status, s->driver_rows[i].reason);
    fprintf(file, "  </testsuite>\n");
}

int report_junit(const conform *c, FILE *file) {
    fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"%s\">\n", program_name);
    for (int i = 0; i < c->n_columns; i++) print_column(c, &c->columns[i], file);
    if (c->options->all && c->survey.n_drivers) print_drivers(&c->survey, file);
    if (!c->complete) print_status_suite(file, program_name, "timeout", "stopped before the end: cases that are not here were not run");
    fprintf(file, "</testsuites>\n");
    return fflush(file) || ferror(file) ? output_failed(file) : 0;
}
