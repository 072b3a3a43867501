/*
 * cltrain-conform: does the library compute on these devices what it should? One list of cases, on any driver, by its user.
 */
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cltrain-conform/conform.h"
#include "tools/common/clock.h"
#include "tools/common/files.h"
#include "tools/common/folder.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"
#include "tools/common/streams.h"
#include "tools/survey/child.h"
#include "tools/survey/document.h"

#define PROGRAM "cltrain-conform"
const char program_name[] = PROGRAM;

#define AT(field) offsetof(conform_options, field)
static const option_row rows[] = {
    {OPTION_HEADING, .help = "Devices:"},
    {OPTION_TEXT, 0, "device", "NAME", AT(device),
     .help = "index, cpu, gpu, accelerator, pci:..., uuid:..., or a part of\nits name, vendor or platform (default: $CLTRAIN_DEVICE, else\nthe fastest class present)"},
    {OPTION_FLAG, 0, "all", NULL, AT(all), .help = "all devices, a column each; and what one leaves others take up"},
    {OPTION_WHOLE, 0, "jobs", "N", AT(jobs), .low = 1, .help = "children at once (default 1, at most 8)"},
    {OPTION_POSITIVE, 0, "timeout", "SECONDS", AT(timeout), .help = "what says nothing for longer has hung (default 120)"},
    {OPTION_HEADING, .help = "Cases:"},
    {OPTION_FLAG, 0, "quick", NULL, AT(quick), .help = "each op at a few shapes (the default)"},
    {OPTION_FLAG, 0, "full", NULL, AT(full), .help = "all shapes, and each backend for itself"},
    {OPTION_WHOLE, 0, "sample", "N", AT(sample), .low = 1, .help = "of each op and kind every Nth case alone in the rows but the reference"},
    {OPTION_WHOLE, 0, "sample-reference", "N", AT(sample_reference), .low = 1, .help = "the same for the reference row (1: all its cases)"},
    {OPTION_TEXT, 0, "ops", "PATTERN", AT(ops), .help = "those whose op or id matches, as file names do: 'conv*'"},
    {OPTION_TEXT, 0, "dtype", "TYPE", AT(dtype), .help = "those whose first operand is of that type: f32, f16, bf16, i32, u8"},
    {OPTION_TEXT, 0, "case", "ID[@ROW]", AT(one), .help = "one case, or those that match; in one row"},
    {OPTION_TEXT, 0, "onnx", "FOLDER", AT(onnx), .help = "ONNX's own test cases in its place: a folder of folders, each with\nmodel.onnx and test_data_set_0"},
    {OPTION_FLAG, 0, "list", NULL, AT(list), .help = "prints the cases, one a line: id, op, type, effort, builders"},
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 0, "json", "FILE", AT(json), .standard = "-", .help = "all of it (docs/cltrain-conform.schema.json), in FILE or on stdout"},
    {OPTION_TEXT, 0, "junit", "FILE", AT(junit), .help = "the same for CI servers"},
    {OPTION_TEXT, 0, "html", "FILE", AT(html), .help = "the same as a page; '-' is stdout"},
    {OPTION_COUNTER, 'v', "verbose", NULL, AT(verbose), .help = "what the library does, on stderr; twice: all of it"},
    {OPTION_FLAG, 'V', "version", NULL, AT(version), .help = "the version"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " [options]\n\n"
                       "Runs the library's ops, optimizers, small networks and whole trainings on a device, and says of each: is it\n"
                       "supported, is the value right (against double precision on the host), is the gradient right (against\n"
                       "differences), are the bits the same in another run, and is nothing written where it does not belong.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 all that is supported is right; 1 something is not, a device or\n(with --all) a driver failed, or nothing was run; 2 usage error; 130 Ctrl-C:\nwhat was found by then is told and written.\n");
}

static int refuse_word(void *into, const char *text) {
    (void)into;
    return usage_error("'%s' is not an option", text);
}

/* ---- which cases ---- */

static bool matches(const char *pattern, const test_case *one) {
    return fnmatch(pattern, one->op, 0) == 0 || fnmatch(pattern, one->id, 0) == 0;
}

static bool wanted(const conform_options *o, const char *one_id, const test_case *one) {
    if (one_id) return strcmp(one->id, one_id) == 0 || fnmatch(one_id, one->id, 0) == 0;
    if (one->full && !o->full) return false;
    if (o->ops && !matches(o->ops, one)) return false;
    return !o->dtype || strcmp(o->dtype, clt_dtype_name(one->dtype)) == 0;
}

/* A simulator takes minutes for what a device does in a blink. */
static bool small_is_set(void) {
    const char *value = getenv("CLTRAIN_CONFORM_SMALL");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* How many selected cases of the same op there are before this one. */
static int ordinal_of(const conform *c, int which) {
    for (int i = which - 1; i >= 0; i--)
        if (c->selected[i] && strcmp(c->cases.items[i].op, c->cases.items[which].op) == 0) return c->ordinal[i] + 1;
    return 0;
}

static int select_cases(conform *c) {
    static char id[CASE_ID];
    const char *one = NULL;
    bool made = c->options->onnx ? cases_onnx(&c->cases, c->options->onnx) : cases_make(&c->cases);
    if (!made) return run_error("no memory");
    if (c->options->onnx && c->cases.n == 0) return run_error("no test case is in %s: expected folders with model.onnx", c->options->onnx);
    if (c->options->one) {
        const char *at = strrchr(c->options->one, '@');
        size_t length = at ? (size_t)(at - c->options->one) : strlen(c->options->one);
        if (length >= sizeof id) return usage_error("--case: no id is that long");
        snprintf(id, sizeof id, "%.*s", (int)length, c->options->one);
        one = id;
        c->only_row = at ? at + 1 : NULL;
    }
    c->selected = calloc((size_t)c->cases.n, sizeof *c->selected);
    c->ordinal = calloc((size_t)c->cases.n, sizeof *c->ordinal);
    if (!c->selected || !c->ordinal) return run_error("no memory");
    c->small = small_is_set();
    for (int i = 0; i < c->cases.n; i++) {
        c->selected[i] = wanted(c->options, one, &c->cases.items[i]);
        c->n_selected += c->selected[i];
        c->ordinal[i] = ordinal_of(c, i);
    }
    return c->n_selected ? 0 : usage_error("no case is meant by that: '" PROGRAM " --list --full' has them all");
}

static int print_list(const conform *c) {
    for (int i = 0; i < c->cases.n; i++) {
        const test_case *one = &c->cases.items[i];
        if (!c->selected[i]) continue;
        printf("%s\t%s\t%s\t%s\t%s\n", one->id, one->op, clt_dtype_name(one->dtype), one->full ? "full" : "quick", one->operation ? one->operation->builders : "-");
    }
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- which devices ---- */

static int add_column(conform *c, const survey_device *device) {
    device_column *column = &c->columns[c->n_columns];
    *column = (struct device_column){.device = device, .table = json_array(), .left_out = json_array()};
    snprintf(column->who, sizeof column->who, "device-%d", c->n_columns);
    snprintf(column->status, sizeof column->status, "%s", device->status);
    snprintf(column->reason, sizeof column->reason, "%s", device->reason);
    column->results = calloc((size_t)c->cases.n * MOST_ROWS, sizeof *column->results);
    c->n_columns++;
    return column->results && column->table ? 0 : run_error("no memory");
}

static int choose_devices(conform *c) {
    const survey_device *chosen;
    int code = survey_run(&c->survey, false, c->options->timeout < 30 ? c->options->timeout : 30);
    /* With all of them asked for, drivers without a device are told as those with one are. */
    if (!code && !(c->options->all && c->survey.n_drivers)) code = survey_require_devices(&c->survey);
    if (code) return code;
    c->columns = calloc((size_t)c->survey.n_devices + 1, sizeof *c->columns);
    if (!c->columns) return run_error("no memory");
    if (c->options->all) {
        for (int i = 0; i < c->survey.n_devices && !code; i++) code = add_column(c, &c->survey.devices[i]);
        return code;
    }
    code = survey_choose(&c->survey, c->options->device, &chosen);
    return code ? code : add_column(c, chosen);
}

/* ---- files of the run ---- */

static int make_folder(conform *c) {
    const char *base = getenv("TMPDIR");
    if ((size_t)snprintf(c->folder, sizeof c->folder, "%s/cltrain-conform-XXXXXX", base && base[0] ? base : "/tmp") >= sizeof c->folder)
        snprintf(c->folder, sizeof c->folder, "/tmp/cltrain-conform-XXXXXX");
    if (mkdtemp(c->folder)) return 0;
    c->folder[0] = 0;
    return run_error("no folder for checkpoints can be made below %s", base && base[0] ? base : "/tmp");
}

/* ---- all of it ---- */

static int sum_bad(const int counts[N_STATUS]) {
    return counts[2] + counts[3] + counts[4];
}

static int bad_drivers(const survey *s) {
    int bad = 0;
    for (int i = 0; i < s->n_drivers; i++) bad += report_is_bad(s->driver_rows[i].status);
    return bad;
}

static int verdict_code(const conform *c) {
    int bad = c->options->all ? bad_drivers(&c->survey) : 0, results = 0, counts[N_STATUS];
    for (int i = 0; i < c->n_columns; i++) {
        report_count(c, &c->columns[i], counts);
        for (int k = 0; k < N_STATUS; k++) results += counts[k];
        bad += sum_bad(counts) + report_is_bad(c->columns[i].status);
        report_count_coverage(c, &c->columns[i], counts);
        bad += sum_bad(counts);
    }
    if (!results) return run_error("no case was run: see the reasons");
    return bad ? EXIT_FAILED : 0;
}

typedef struct conform_files {
    output json, junit, html;
} conform_files;

static int open_files(conform_files *f, const conform_options *o) {
    int code = file_refuse_another("--json", o->json, FILE_JSON);
    if (!code) code = file_refuse_another("--junit", o->junit, FILE_MARKUP);
    if (!code) code = file_refuse_another("--html", o->html, FILE_MARKUP);
    if (!code) code = output_open(&f->json, o->json);
    if (!code) code = output_open(&f->junit, o->junit);
    return code ? code : output_open(&f->html, o->html);
}

static bool any_is_stdout(const conform_files *f) {
    return f->json.file == stdout || f->junit.file == stdout || f->html.file == stdout;
}

/* A file that could not be written whole stays as it was; the first error is kept. */
static void finish_file(output *o, int written, int *code) {
    int result = written ? written : output_commit(o);
    if (!*code) *code = result;
}

/* Each by itself: what becomes of one is nothing to the others. */
static int write_files(const conform *c, conform_files *f) {
    json_t *document = report_document(c);
    int code = 0;
    if (f->json.file) finish_file(&f->json, document_write(document, f->json.file), &code);
    if (f->html.file) finish_file(&f->html, report_html(document, f->html.file), &code);
    if (f->junit.file) finish_file(&f->junit, report_junit(c, f->junit.file), &code);
    json_decref(document);
    return code;
}

static int run_and_report(conform *c, conform_files *f) {
    const conform_options *o = c->options;
    bool has_text = !any_is_stdout(f);
    int code = conform_run(c);
    if (code) return code;
    if (c->complete) conform_compare(c);
    if (c->complete && !o->one && !o->ops && !o->dtype && !o->onnx) conform_cover(c);
    code = write_files(c, f);
    int printed = has_text ? report_text(c) : 0;
    if (!code) code = printed;
    if (!code && !c->complete) code = EXIT_SIGNAL + child_caught();
    return code ? code : verdict_code(c);
}

static void free_all(conform *c) {
    for (int i = 0; i < c->n_columns; i++) {
        device_column *column = &c->columns[i];
        for (int k = 0; column->results && k < c->cases.n * MOST_ROWS; k++) json_decref(column->results[k]);
        json_decref(column->table);
        json_decref(column->left_out);
        free(column->results);
    }
    free(c->columns);
    free(c->selected);
    free(c->ordinal);
    cases_onnx_free(&c->cases);
    free(c->cases.items);
    json_decref(c->coverage);
    survey_free(&c->survey);
}

static int run(conform *c) {
    conform_files files = {.json.file = NULL};
    int code = select_cases(c);
    if (code) return code;
    if (c->options->list) return print_list(c);
    code = open_files(&files, c->options);
    if (!code) code = choose_devices(c);
    if (!code) code = make_folder(c);
    if (!code) code = run_and_report(c, &files);
    if (c->folder[0]) folder_remove(c->folder);
    output_abort(&files.json), output_abort(&files.junit), output_abort(&files.html);
    return code;
}

int main(int argc, char **argv) {
    streams_keep();
    conform_options o = {.timeout = 120, .jobs = 1, .sample = 1, .sample_reference = 1};
    conform c = {.options = &o, .started = now_seconds(), .coverage = json_array()};
    int code = option_parse(rows, ROWS, argc - 1, argv + 1, &o, refuse_word);
    if (code) return code;
    if (o.help) print_help();
    if (o.version) printf(PROGRAM " %s\n", clt_version());
    if (o.help || o.version) return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    if (o.quick && o.full) return usage_error("--quick or --full, not both");
    if (o.all && o.device) return usage_error("--all or --device, not both");
    if (o.one && (o.sample > 1 || o.sample_reference > 1)) return usage_error("--case or --sample, not both");
    if (o.one && (o.ops || o.dtype)) return usage_error("--case or %s, not both", o.ops ? "--ops" : "--dtype");
    if (o.list && (o.json || o.junit || o.html))
        return usage_error("--list or %s, not both", o.json ? "--json" : o.junit ? "--junit" : "--html");
    if (o.jobs > 8) return usage_error("--jobs: at most 8");
    if (output_is_stdout(o.json) + output_is_stdout(o.junit) + output_is_stdout(o.html) > 1)
        return usage_error("stdout is for one of --json, --junit and --html");
    code = file_check_distinct((const file_use[]){{"--json", o.json, FILE_OR_STDOUT}, {"--junit", o.junit, FILE_OR_STDOUT},
                                                  {"--html", o.html, FILE_OR_STDOUT}}, 3);
    if (!code) code = streams_allow_many();
    if (code) return code;
    message_start(o.verbose);
    child_show_errors(o.verbose > 0);
    child_catch_signals();
    code = run(&c);
    free_all(&c);
    return code;
}
