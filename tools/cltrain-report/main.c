/*
 * cltrain-report: runs of cltrain-train as a page: what they were, curves, the confusion matrix, and all values as tables. The page needs no network; its one
 * script, which draws the curves, is allowed by its hash.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cltrain/cltrain.h>

#include "runs.h"
#include "tools/common/files.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"
#include "tools/common/streams.h"
#include "tools/survey/document.h"
#include "tools/survey/output.h"
#include "tools/survey/page.h"

const char program_name[] = "cltrain-report";

/* Of report.js, as browsers reckon it: tests/tools/test_report.sh tells the right one. */
#define SCRIPT_HASH "sha256-GiyCv4bI54HzuY6h5no/+0FWWP3PkozG1oKmfTyXEYM="

extern const unsigned char report_script[], report_style[];
extern const size_t report_script_bytes, report_style_bytes;

enum { MOST_RUNS = 7 }; /* as many as there are colours */

typedef struct report_options {
    const char *files[MOST_RUNS], *html;
    int n;
    bool help, version;
} report_options;

#define AT(field) offsetof(report_options, field)

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 'o', "html", "FILE", AT(html), .aliases = "output", .help = "where the page goes (default: stdout)"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
    {OPTION_FLAG, 'V', "version", NULL, AT(version), .help = "the version"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int print_help(void) {
    help_print(stdout, "Usage: cltrain-report RUN.jsonl... --html FILE\n"
                       "\n"
                       "Makes a page of what cltrain-train --log has written of one run, or of up to 7: what they were, curves of\n"
                       "loss, accuracy, learning rate and speed, the confusion matrix, and all values. It works without a network.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 the page cannot be written; 2 a file is not a log, or usage error.\n");
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- the page ---- */

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* JSON within a script: what ends that, or begins a comment, is written as \u003c. */
static int put_data(FILE *page, const run *runs, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const run *r = &runs[i];
        json_t *name = document_text(file_name(r->path));
        json_array_append_new(list, json_pack("{s:o, s:s, s:O}", "name", name, "held_out", r->held_out, "records", r->records));
    }
    json_t *data = json_pack("{s:o}", "runs", list);
    int code = page_script(page, data, report_script, report_script_bytes);
    json_decref(data);
    return code;
}

static double of_part(const json_t *object, const char *part, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "%s_%s", part, name);
    return page_json_number(object, key);
}

/* The last that is known: of the end, or of the last epoch. */
static const json_t *outcome_of(const run *r) {
    size_t n = json_array_size(r->epochs);
    return r->end ? r->end : n ? json_array_get(r->epochs, n - 1) : r->start;
}

static void put_summary(FILE *page, const run *runs, int n) {
    static const page_column columns[] = {{"Run", NULL, false}, {"Model", NULL, false}, {"Data", NULL, false}, {"Steps", NULL, true}, {"Loss", NULL, true},
                                          {"Accuracy", NULL, true}, {"F1", NULL, true}, {"AUC", NULL, true}, {"R\xc2\xb2", NULL, true}, {"Speed", "samples/s", true}, {"Time", "s", true}, {"", NULL, false}};
    page_table(page, "Results on held-out data", columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < n; i++) {
        const run *r = &runs[i];
        const json_t *o = outcome_of(r);
        double steps = page_json_number(o, r->end ? "steps" : "step");
        const char *part = json_object_get(o, "test_loss") ? "test" : r->held_out; /* what decided on nothing, where it is known */
        page_row(page);
        page_cell_text(page, file_name(r->path));
        page_cell_text(page, document_string(r->start, "model"));
        page_cell_text(page, document_string(r->start, "data"));
        page_cell_number(page, steps, 0);
        page_cell_strong(page, of_part(o, part, "loss"), 4);
        page_cell_number(page, of_part(o, part, "accuracy"), 4);
        page_cell_number(page, of_part(o, part, "f1"), 4);
        page_cell_number(page, of_part(o, part, "auc"), 4);
        page_cell_number(page, of_part(o, part, "r2"), 4);
        page_cell_number(page, page_json_number(o, "samples_per_second"), 0);
        page_cell_number(page, page_json_number(o, "total_seconds"), 1);
        page_cell_text(page, !r->end ? "not over" : json_is_true(json_object_get(r->end, "interrupted")) ? "interrupted" : "done");
        page_row_end(page);
    }
    page_table_end(page);
}

/* As it was typed, but for what a shell would have taken away. */
static void put_command(FILE *page, const json_t *command) {
    char text[512] = "";
    size_t i, used = 0;
    const json_t *word;
    json_array_foreach(command, i, word) {
        const char *one = json_string_value(word);
        int n = snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", one ? one : "?");
        if (n < 0 || (used += (size_t)n) >= sizeof text) break;
    }
    page_fact(page, "command", text);
}

static void put_numbers(FILE *page, const json_t *object, const char *const *keys, size_t n, bool zeros) {
    for (size_t i = 0; i < n; i++) {
        char text[32];
        double value = page_json_number(object, keys[i]);
        snprintf(text, sizeof text, "%.6g", value);
        if (isfinite(value) && (zeros || value > 0)) page_fact(page, keys[i], text);
    }
}

static void put_setup(FILE *page, const run *r) {
    static const char *const texts[] = {"model", "data", "device", "platform", "optimizer", "schedule", "version"};
    static const char *const numbers[] = {"parameters", "train_samples", "test_samples", "batch", "accumulate", "ranks", "lr", "momentum", "weight_decay", "seed"};
    static const char *const mishaps[] = {"skipped_steps", "broken_samples", "validation_broken_samples", "test_broken_samples"};
    page_card(page, file_name(r->path), "");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) page_fact(page, texts[i], document_string(r->start, texts[i]));
    put_numbers(page, r->start, numbers, sizeof numbers / sizeof numbers[0], true);
    put_command(page, json_object_get(r->start, "command"));
    if (r->end) page_fact_bytes(page, "memory", page_json_number(r->end, "peak_device_bytes"));
    if (r->end) put_numbers(page, r->end, mishaps, sizeof mishaps / sizeof mishaps[0], false);
    page_card_end(page);
}

static void put_epochs(FILE *page, const run *r) {
    static const page_column columns[] = {{"Epoch", NULL, true}, {"Step", NULL, true}, {"Learning rate", NULL, true}, {"Training loss", NULL, true}, {"Training accuracy", NULL, true},
                                          {"Held-out loss", NULL, true}, {"Held-out accuracy", NULL, true}, {"Speed", "samples/s", true}};
    size_t i;
    const json_t *e;
    fputs("<details><summary>", page);
    page_text(page, file_name(r->path));
    fprintf(page, ": %zu epochs</summary>\n", json_array_size(r->epochs));
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(r->epochs, i, e) {
        page_row(page);
        page_cell_number(page, page_json_number(e, "epoch"), 0);
        page_cell_number(page, page_json_number(e, "step"), 0);
        page_cell_number(page, page_json_number(e, "lr"), 6);
        page_cell_number(page, page_json_number(e, "train_loss"), 4);
        page_cell_number(page, page_json_number(e, "train_accuracy"), 4);
        page_cell_number(page, of_part(e, r->held_out, "loss"), 4);
        page_cell_number(page, of_part(e, r->held_out, "accuracy"), 4);
        page_cell_number(page, page_json_number(e, "samples_per_second"), 0);
        page_row_end(page);
    }
    page_table_end(page);
    fputs("</details>\n", page);
}

static void put_class(FILE *page, const json_t *names, size_t index) {
    const char *name = json_string_value(json_array_get(names, index));
    if (name) page_short(page, name);
    else fprintf(page, "%zu", index);
}

/* Rows are what samples are, columns what they were taken for. */
static void put_confusion(FILE *page, const run *r) {
    const json_t *matrix = json_object_get(r->end, "test_confusion"), *names = json_object_get(r->end, "classes"), *row;
    size_t n = json_array_size(matrix), i;
    if (!n) return;
    fputs("<div class=\"box\"><table><caption>", page);
    page_text(page, file_name(r->path));
    fputs("</caption><thead><tr><th scope=\"col\">is, predicted as</th>", page);
    for (size_t k = 0; k < n; k++) fputs("<th scope=\"col\" class=\"number\">", page), put_class(page, names, k), fputs("</th>", page);
    fputs("</tr></thead><tbody>\n", page);
    json_array_foreach(matrix, i, row) {
        fputs("<tr><th scope=\"row\">", page);
        put_class(page, names, i);
        fputs("</th>", page);
        for (size_t k = 0; k < n; k++) {
            double count = json_number_value(json_array_get(row, k));
            fprintf(page, "<td class=\"number%s\">%.0f</td>", i == k ? " hit" : count > 0 ? " miss" : "", count);
        }
        fputs("</tr>\n", page);
    }
    fputs("</tbody></table></div>\n", page);
}

/* A name, or a number. */
static void put_told(FILE *page, const json_t *value) {
    char number[32] = "?";
    const char *text = json_string_value(value);
    if (json_is_number(value)) snprintf(number, sizeof number, "%.6g", json_number_value(value));
    page_cell_text(page, text ? text : number);
}

/* By its name, its line in a table, or its number. */
static void put_sample(FILE *page, const json_t *sample) {
    char text[32];
    const json_t *name = json_object_get(sample, "name"), *line = json_object_get(sample, "line");
    snprintf(text, sizeof text, "line %lld", (long long)json_integer_value(line));
    if (name || !line) put_told(page, name ? name : json_object_get(sample, "sample"));
    else page_cell_text(page, text);
}

static void put_worst(FILE *page, const run *r) {
    static const page_column columns[] = {{"Sample", NULL, false}, {"Is", NULL, false}, {"Predicted as", NULL, false}, {"Loss", NULL, true}};
    const json_t *list = json_object_get(r->end, "test_worst"), *sample;
    size_t i;
    if (!json_array_size(list)) return;
    page_table(page, file_name(r->path), columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(list, i, sample) {
        page_row(page);
        put_sample(page, sample);
        put_told(page, json_object_get(sample, "truth"));
        put_told(page, json_object_get(sample, "predicted"));
        page_cell_number(page, page_json_number(sample, "loss"), 4);
        page_row_end(page);
    }
    page_table_end(page);
}

static bool has_worst(const run *runs, int n) {
    for (int i = 0; i < n; i++)
        if (json_array_size(json_object_get(runs[i].end, "test_worst"))) return true;
    return false;
}

static bool has_confusion(const run *runs, int n) {
    for (int i = 0; i < n; i++)
        if (json_array_size(json_object_get(runs[i].end, "test_confusion"))) return true;
    return false;
}

static int write_page(FILE *page, const run *runs, int n) {
    json_t *document = document_new("runs");
    json_object_del(document, "time_utc"); /* the page is of the run, wherever and whenever it is made: the same bytes each time */
    json_object_del(document, "host");
    page_begin_scripted(page, n == 1 ? "A training run" : "Training runs", SCRIPT_HASH, (const char *)report_style, report_style_bytes);
    fprintf(page, "<h1>%s</h1>\n", n == 1 ? "A training run" : "Training runs");
    put_summary(page, runs, n);
    page_section(page, "drawn", "Curves");
    fputs("<noscript><p>The curves are drawn by a script, which is not run here: all values are below.</p></noscript>\n<div id=\"curves\"></div>\n", page);
    page_section_end(page);
    if (has_confusion(runs, n)) {
        page_section(page, "confusion", "Confusion");
        for (int i = 0; i < n; i++) put_confusion(page, &runs[i]);
        page_section_end(page);
    }
    if (has_worst(runs, n)) {
        page_section(page, "worst", "Samples with the largest losses");
        for (int i = 0; i < n; i++) put_worst(page, &runs[i]);
        page_section_end(page);
    }
    page_section(page, "values", "Values");
    for (int i = 0; i < n; i++) put_epochs(page, &runs[i]);
    page_section_end(page);
    page_section(page, "setup", "What was run");
    fputs("<div class=\"cards\">\n", page);
    for (int i = 0; i < n; i++) put_setup(page, &runs[i]);
    fputs("</div>\n", page);
    page_section_end(page);
    int code = put_data(page, runs, n);
    page_end(page, document);
    json_decref(document);
    return code;
}

/* ---- the program ---- */

static int take_file(void *into, const char *text) {
    report_options *o = into;
    if (o->n == MOST_RUNS) return usage_error("'%s': at most %d runs stand on a page", text, MOST_RUNS);
    o->files[o->n++] = text;
    return 0;
}

static int make_page(const report_options *o, const run *runs) {
    output page = {.file = NULL};
    int code = file_refuse_another("--html", o->html, FILE_MARKUP);
    if (!code) code = output_open(&page, o->html ? o->html : "-");
    if (!code) code = write_page(page.file, runs, o->n);
    if (!code) code = output_commit(&page);
    output_abort(&page);
    return code;
}

int main(int argc, char **argv) {
    streams_keep();
    report_options o = {.n = 0};
    run runs[MOST_RUNS] = {{.path = NULL}};
    int code = option_parse(rows, ROWS, argc - 1, argv + 1, &o, take_file);
    if (code) return code;
    if (o.help) return print_help();
    if (o.version) return printf("cltrain-report %s\n", clt_version()), fflush(stdout) ? run_error("stdout cannot be written") : 0;
    if (!o.n) return usage_error("no RUN.jsonl given, such as cltrain-train --log run.jsonl writes");
    message_start(0);
    file_use files[MOST_RUNS + 1] = {{"--html", o.html, FILE_OR_STDOUT}};
    for (int i = 0; i < o.n; i++) files[i + 1] = (file_use){"RUN", o.files[i], FILE_READ};
    code = file_check_distinct(files, o.n + 1);
    for (int i = 0; !code && i < o.n; i++) code = run_read(&runs[i], o.files[i]);
    if (!code) code = make_page(&o, runs);
    for (int i = 0; i < o.n; i++) run_free(&runs[i]);
    return code;
}
