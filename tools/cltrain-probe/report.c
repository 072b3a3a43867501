/* cltrain-probe report: documents that other commands wrote, as a page of HTML; offline. */
#include "report.h"

#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "compare.h"
#include "tools/common/files.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

enum { MOST_FILES = 32 };
#define MOST_FILE_BYTES (256LL << 20)

typedef struct report_options {
    shared_options shared;
    const char *files[MOST_FILES];
    int n;
    const char *html;
    double threshold;
} report_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_TEXT, 0, "html", "FILE", offsetof(report_options, html), .help = "the page; -: on stdout (default)"},
    {OPTION_POSITIVE, 0, "threshold", "PERCENT", offsetof(report_options, threshold),
     .help = "of two benches: smaller changes are none (default 5)"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " report FILE.json... [options]\n"
                       "\n"
                       "Makes a page of HTML of files that list, bench, compare, verify, model and recommend wrote with --json: one\n"
                       "file, with nothing from elsewhere and no script but its own. Two benches of one device are compared, the second\n"
                       "with the first; the page says why where they cannot be. Nothing is measured.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 the page cannot be written; 2 a file is not a document of " PROGRAM ", or is cut\n"
                       "short, or usage error.\n");
}

/* ---- reading ---- */

static int refuse_file(const char *path, const char *why) {
    run_error("%s: %s", path, why);
    return EXIT_USAGE;
}

int report_load(json_t **document, const char *path) {
    json_error_t error;
    struct stat info;
    char why[JSON_ERROR_TEXT_LENGTH + 64];
    *document = NULL;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return refuse_file(path, "it is a directory");
    if (stat(path, &info) == 0 && info.st_size > MOST_FILE_BYTES) return refuse_file(path, "it is larger than 256 MiB");
    *document = json_load_file(path, 0, &error);
    if (!*document) {
        snprintf(why, sizeof why, "%s (line %d): it is cut short, or no JSON", error.text, error.line);
        return refuse_file(path, error.line < 0 ? error.text : why);
    }
    document_clean(*document);
    json_object_set_new(*document, "file", document_text(path)); /* pages name it */
    const char *schema = document_string(*document, "schema");
    if (strcmp(schema, PROGRAM "/1") == 0) return 0;
    snprintf(why, sizeof why, "its schema is '%.60s', not " PROGRAM "/1", schema);
    return refuse_file(path, why);
}

/* What a page of that kind is made of is there. */
static int check(const json_t *document, const char *path) {
    static const struct {
        const char *kind, *list;
    } known[] = {{"list", "devices"}, {"bench", "results"}, {"compare", "rows"}, {"verify", "verify"}, {"model", "model"}, {"recommend", "ranking"}};
    char why[96];
    const char *kind = document_string(document, "kind");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(kind, known[i].kind) != 0) continue;
        if (json_object_get(document, known[i].list)) return 0;
        snprintf(why, sizeof why, "it has no %s", known[i].list);
        return refuse_file(path, why);
    }
    snprintf(why, sizeof why, "its kind is '%.40s', of which there is no page", kind);
    return refuse_file(path, why);
}

/* ---- running ---- */

typedef struct loaded {
    json_t *documents[MOST_FILES + 1]; /* and what is found by comparing */
    int n;
} loaded;

static int load_all(loaded *l, const report_options *o) {
    for (int i = 0; i < o->n; i++) {
        int code = report_load(&l->documents[i], o->files[i]);
        l->n += l->documents[i] != NULL;
        if (!code) code = check(l->documents[i], o->files[i]);
        if (code) return code;
    }
    return 0;
}

static const char *device_id(const json_t *document) {
    return document_string(json_array_get(json_object_get(document, "devices"), 0), "id");
}

/* What stands on the page in the place of a comparison. */
static json_t *no_comparison(const char *kind, const char *why) {
    warning("no comparison: %s", why);
    return json_pack("{s:s, s:o}", "kind", kind, "why", document_text(why));
}

static json_t *compare_two(const json_t *const both[2], double threshold) {
    comparison c;
    char why[sizeof c.why + 8];
    json_t *found;
    if (comparison_make(&c, both, threshold) == 0) {
        found = comparison_json(&c);
    } else {
        snprintf(why, sizeof why, "%s%s", c.refused == 0 ? "A: " : c.refused == 1 ? "B: " : "", c.why);
        found = no_comparison("compare", why);
    }
    comparison_free(&c);
    return found;
}

/* Two benches of one device are compared; benches of several stand one below another. */
static void compare_benches(loaded *l, const report_options *o) {
    int benches = 0;
    const json_t *both[2];
    for (int i = 0; i < l->n; i++) {
        if (strcmp(document_string(l->documents[i], "kind"), "bench") != 0) continue;
        if (benches < 2) both[benches] = l->documents[i];
        benches++;
    }
    json_t *found = NULL;
    if (benches > 2) found = no_comparison("no comparison", "a comparison is of two benches, and these are more");
    else if (benches == 2 && strcmp(device_id(both[0]), device_id(both[1])) != 0)
        found = no_comparison("no comparison", "the two benches are of different devices");
    else if (benches == 2) found = compare_two(both, o->threshold);
    if (found) l->documents[l->n++] = found;
}

static int write_page(const loaded *l, const char *path) {
    output page = {.file = NULL};
    int code = file_refuse_another("--html", path, FILE_MARKUP);
    if (!code) code = output_open(&page, path);
    if (!code) code = report_write(page.file, (const json_t *const *)l->documents, l->n);
    if (!code) code = output_commit(&page);
    output_abort(&page);
    return code;
}

static int take_file(void *into, const char *text) {
    report_options *o = into;
    if (o->n == MOST_FILES) return usage_error("at most %d files; '%s' is one more", MOST_FILES, text);
    o->files[o->n++] = text;
    return 0;
}

static int check_distinct(const report_options *o) {
    file_use files[MOST_FILES + 1];
    for (int i = 0; i < o->n; i++) files[i] = (file_use){"FILE", o->files[i], FILE_READ};
    files[o->n] = (file_use){"--html", o->html, FILE_OR_STDOUT};
    return file_check_distinct(files, o->n + 1);
}

int run_report(int argc, char **argv) {
    report_options o = {.shared = shared_options_unset(), .threshold = 5, .html = "-"};
    loaded l = {.n = 0};
    int code = option_parse(rows, ROWS, argc, argv, &o, take_file);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(0);
    if (o.n == 0) return usage_error("files that other commands wrote with --json expected");
    code = check_distinct(&o);
    if (!code) code = load_all(&l, &o);
    if (!code) compare_benches(&l, &o);
    if (!code) code = write_page(&l, o.html);
    for (int i = 0; i < l.n; i++) json_decref(l.documents[i]);
    return code;
}
