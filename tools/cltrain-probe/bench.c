/*
 * cltrain-probe bench: what a device can do at most, and what the ops of training make of it.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/survey/child.h"
#include "command.h"
#include "compare.h"
#include "hooks.h"
#include "report.h"
#include "tools/survey/document.h"
#include "tools/common/files.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/text.h"

typedef struct bench_options {
    shared_options shared;
    bool quick, full;
    const char *json, *csv, *html, *models, *shapes;
    double seconds, timeout;
    int64_t passes;
} bench_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "What is measured:"},
    {OPTION_FLAG, 0, "quick", NULL, offsetof(bench_options, quick), .help = "in less than a minute on most devices (default)"},
    {OPTION_FLAG, 0, "full", NULL, offsetof(bench_options, full), .help = "for some minutes, and each op by all backends that can"},
    {OPTION_TEXT, 0, "models", "NAMES", offsetof(bench_options, models), .aliases = "model",
     .help = "ops at the shapes of these models alone: mlp,convnet; none:\n"
             "the device's limits alone"},
    {OPTION_TEXT, 0, "shapes", "FILE", offsetof(bench_options, shapes),
     .help = "at the shapes of this file, as " PROGRAM " shapes writes\n"
             "them, in place of models"},
    {OPTION_POSITIVE, 0, "seconds", "SECONDS", offsetof(bench_options, seconds),
     .help = "for all of it, about (default 45; with --full 400)"},
    {OPTION_WHOLE, 0, "passes", "N", offsetof(bench_options, passes), .low = 1,
     .help = "1 to 5: compare needs 3 (default: 5, and up to 16 of rows\n"
             "whose best three differ by more than 3 %, while there is\n"
             "time)"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", offsetof(bench_options, timeout),
     .help = "what says nothing for longer has hung (default: a quarter of\n--seconds, of at least 10 and at most 60; 60 for the opening)"},
    DEVICE_ROWS,
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 0, "json", "FILE", offsetof(bench_options, json), .standard = "-", .help = "all of it, for compare, in FILE or on stdout"},
    {OPTION_TEXT, 0, "csv", "FILE", offsetof(bench_options, csv), .help = "the table; -: on stdout"},
    {OPTION_TEXT, 0, "html", "FILE", offsetof(bench_options, html), .help = "a page with the roofline; -: on stdout"},
    {OPTION_COUNTER, 'v', "verbose", NULL, SHARED_AT(verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " bench [options]\n"
                       "\n"
                       "Measures what a device can do at most (arithmetic, memory, launches, transfers, builds), and then the\n"
                       "ops of training at the shapes of models (default: all it knows). Each op is compared with the\n"
                       "reference before it is timed, and again afterwards. All rows are measured in %d passes, each row in\n"
                       "processes that may crash or hang. An op's time is held against the roofline, the least it could take by\n"
                       "the device's multiply-adds or memory; one that is faster is 'suspect', and no number to quote. What fits\n"
                       "the device's cache is held against no roofline of memory. A table is printed, where stdout has nothing else.\n",
           BENCH_PASSES);
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed, or a result was wrong; 2 usage error;\n130 Ctrl-C.\n");
}

/* ---- rows ---- */

static bool has_problem(const bench *b, const char *problem) {
    for (int i = 0; i < b->n_rows; i++)
        if (!b->rows[i].is_limit && strcmp(b->rows[i].shape.problem, problem) == 0) return true;
    return false;
}

static void add_row(bench *b, bench_row row) {
    char key[400];
    bench_key(&row, key);
    if (hook_has_row(key)) b->rows[b->n_rows++] = row;
}

/* What several models share is measured once. */
static int make_rows(bench *b, const shape_list *shapes) {
    b->rows = calloc((size_t)(CLT_LIMIT_COUNT_ + shapes->n), sizeof *b->rows);
    if (!b->rows) return run_error("no memory");
    for (int i = 0; i < CLT_LIMIT_COUNT_; i++)
        add_row(b, (bench_row){.is_limit = true, .limit = (clt_limit)i, .status = "ok"});
    for (int i = 0; i < shapes->n; i++)
        if (!has_problem(b, shapes->lines[i].problem))
            add_row(b, (bench_row){.shape = shapes->lines[i], .status = "ok", .nmse = -1, .nmse_after = -1});
    return 0;
}

static int read_shapes(const bench_options *o, shape_list *shapes) {
    if (o->shapes && o->models) return usage_error("--shapes is in place of --models");
    if (o->shapes) return shapes_add_file(shapes, o->shapes);
    if (o->models && strcmp(o->models, "none") == 0) return 0;
    return shapes_add_embedded(shapes, o->models);
}

/* ---- running ---- */

/* A table that is half empty looks like one that is done. */
static void tell_no_time(const bench *b) {
    int without = 0, ops = 0;
    for (int i = 0; i < b->n_rows; i++) {
        if (b->rows[i].is_limit || b->rows[i].asked[0]) continue;
        ops++;
        without += strcmp(b->rows[i].reason, BENCH_NO_TIME) == 0;
    }
    if (without && b->complete) message_line("%d of %d ops had no time: give it more --seconds", without, ops);
}

/* A file that compare is going to refuse, or to tell little of, looks like any other. */
static void tell_few_passes(const bench *b) {
    int few = 0, ok = 0;
    for (const bench_row *row = b->rows; row < b->rows + b->n_rows; row++) {
        if (row->asked[0] || strcmp(row->status, "ok") != 0) continue;
        ok++;
        few += bench_passes(row) < LEAST_PASSES;
    }
    if (few == 0 || !b->complete) return;
    message_line("compare can tell nothing of %d of the %d rows that are ok, measured in fewer than %d passes: %s", few, ok, LEAST_PASSES,
                 b->passes < LEAST_PASSES ? "give it more --passes"
                                          : "give it more --seconds, or run it once more if kernels had to be compiled");
}

static int any_wrong(const bench *b) {
    int wrong = 0, ok = 0;
    for (int i = 0; i < b->n_rows; i++) {
        wrong += strcmp(b->rows[i].status, "wrong") == 0;
        ok += strcmp(b->rows[i].status, "ok") == 0;
    }
    if (b->lost[0]) return run_error("the device was lost in the middle of it: %s", b->why_lost);
    if (wrong) return run_error("%d result%s wrong", wrong, wrong == 1 ? " was" : "s were");
    return ok ? 0 : run_error("nothing could be measured: %s", b->rows[0].reason);
}

/* Where it goes: NULL files are not wanted. */
typedef struct bench_files {
    output json, csv, html;
} bench_files;

static int open_files(bench_files *f, const bench_options *o) {
    int code = file_refuse_another("--json", o->json, FILE_JSON);
    if (!code) code = file_refuse_another("--csv", o->csv, FILE_BENCH_TABLE);
    if (!code) code = file_refuse_another("--html", o->html, FILE_MARKUP);
    if (!code) code = output_open(&f->json, o->json);
    if (!code) code = output_open(&f->csv, o->csv);
    return code ? code : output_open(&f->html, o->html);
}

static int write_files(const bench *b, bench_files *f) {
    json_t *document = bench_json(b);
    json_t *written = document_as_written(document); /* so that the page is that of the file */
    int code = f->json.file ? document_write(document, f->json.file) : 0;
    if (!code && f->html.file) code = written ? report_write(f->html.file, (const json_t *const[]){written}, 1) : run_error("no memory");
    json_decref(document);
    json_decref(written);
    if (!code && f->csv.file) code = bench_write_csv(b, f->csv.file);
    if (!code) code = output_commit(&f->json);
    if (!code) code = output_commit(&f->csv);
    return code ? code : output_commit(&f->html);
}

/* Children whose memory drivers write over may say anything. */
static void clean_texts(bench *b) {
    for (bench_row *row = b->rows; row < b->rows + b->n_rows; row++) {
        char *const texts[] = {row->status, row->reason, row->problem, row->backend, row->parameters};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) text_clean(texts[i], "");
    }
}

static int report(bench *b, const bench_options *o, bench_files *f) {
    clean_texts(b);
    bench_place(b);
    int code = write_files(b, f);
    if (!code && !output_is_stdout(o->json) && !output_is_stdout(o->csv) && !output_is_stdout(o->html)) {
        bench_print(b, stdout);
        if (fflush(stdout) || ferror(stdout)) code = run_error("stdout cannot be written");
    }
    return code;
}

static int run_on_device(bench *b, const bench_options *o) {
    bench_files files = {.json.file = NULL};
    int code = open_files(&files, o);
    if (!code) {
        message_line("Measuring %s, for about %.3g s", b->device->info.name, b->seconds);
        bench_measure(b);
        code = report(b, o, &files);
        tell_no_time(b);
        if (o->json) tell_few_passes(b);
    }
    output_abort(&files.json);
    output_abort(&files.csv);
    output_abort(&files.html);
    if (!code && child_caught()) return EXIT_SIGNAL + child_caught();
    return code ? code : any_wrong(b);
}

enum { USUAL_TIMEOUT = 60 };

/* One row that hangs is to cost a part of the time, not all. */
static double row_timeout(double seconds) {
    const double least = 10;
    return seconds / 4 < least ? least : seconds / 4 > USUAL_TIMEOUT ? USUAL_TIMEOUT : seconds / 4;
}

int run_bench(int argc, char **argv) {
    bench_options o = {.shared = shared_options_unset(), .timeout = 0};
    shape_list shapes = {.n = 0};
    survey s;
    int code = option_parse(rows, ROWS, argc, argv, &o, refuse_word);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    if (o.quick && o.full) return usage_error("--quick or --full, not both");
    if (o.passes > BENCH_PASSES) return usage_error("--passes: at most %d", BENCH_PASSES);
    if (output_is_stdout(o.json) + output_is_stdout(o.csv) + output_is_stdout(o.html) > 1)
        return usage_error("stdout is for one of --json, --csv and --html");
    code = file_check_distinct((const file_use[]){{"--json", o.json, FILE_OR_STDOUT}, {"--csv", o.csv, FILE_OR_STDOUT},
                                                  {"--html", o.html, FILE_OR_STDOUT}, {"--shapes", o.shapes, FILE_READ}}, 4);
    if (code) return code;
    message_start(o.shared.verbose);
    child_show_errors(o.shared.verbose > 0);
    bench b = {.s = &s, .full = o.full, .seconds = o.seconds > 0 ? o.seconds : o.full ? 400 : 45};
    b.timeout = o.timeout > 0 ? o.timeout : row_timeout(b.seconds);
    b.opening_timeout = o.timeout > 0 ? o.timeout : USUAL_TIMEOUT;
    b.passes = o.passes ? (int)o.passes : BENCH_PASSES;
    b.most_passes = o.passes ? (int)o.passes : BENCH_MOST_PASSES;
    code = read_shapes(&o, &shapes);
    if (!code) code = make_rows(&b, &shapes);
    shapes_free(&shapes);
    if (!code) {
        child_catch_signals();
        code = survey_run(&s, false, b.opening_timeout < 30 ? b.opening_timeout : 30);
        if (!code) code = survey_choose(&s, o.shared.device, &b.device);
        if (!code) code = run_on_device(&b, &o);
        survey_free(&s);
    }
    free(b.rows);
    json_decref(b.table);
    return code;
}
