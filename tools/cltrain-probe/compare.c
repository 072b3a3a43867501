/* cltrain-probe compare: two benches, offline. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "report.h"
#include "tools/common/files.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct compare_options {
    shared_options shared;
    const char *files[2];
    int n_files;
    double threshold; /* percent */
    const char *html;
} compare_options;

static const option_row rows[] = {
    {OPTION_HEADING, .help = "Comparing:"},
    {OPTION_POSITIVE, 0, "threshold", "PERCENT", offsetof(compare_options, threshold),
     .help = "smaller changes are none (default 5)"},
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_OPTIONAL, 0, "json", "FILE", SHARED_AT(json), .standard = "-", .help = "one JSON object on stdout, or in FILE"},
    {OPTION_TEXT, 0, "html", "FILE", offsetof(compare_options, html), .help = "both benches and their comparison as a page as well"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " compare A.json B.json [options]\n"
                       "\n"
                       "Compares two files of 'bench --json', the second with the first: what became faster, slower, broken,\n"
                       "appeared, or is gone. Samples are compared by their ranks, with a correction for the number of rows;\n"
                       "what the whole machine gained or lost between the two is taken out, up to a factor of 2, and told.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 the same or better; 1 something is slower or broken; 2 not comparable (another schema or\n"
                       "device, a file that is cut short or damaged, or nothing can be told of more than half of A's rows), or\n"
                       "usage error.\n");
}

/* ---- telling ---- */

static void print_pair(const pair *p) {
    const side *a = &p->sides[0], *b = &p->sides[1];
    printf("%-9s %-84s", change_names[p->change], p->key);
    if (comparison_has_both(p)) printf(" %12.2f %12.2f %+7.1f %%", a->time, b->time, 100 * (p->ratio - 1));
    else if (a->row && b->row) printf(" %s -> %s: %s", document_string(a->row, "status"), document_string(b->row, "status"), document_string(b->row, "reason"));
    else printf(" %s", document_string(a->row ? a->row : b->row, "status"));
    printf("\n");
}

static void print_thresholds(const comparison *c) {
    int noisy = 0;
    double most = 0;
    for (int i = 0; i < c->n; i++) {
        if (!comparison_has_both(&c->pairs[i])) continue;
        noisy += c->pairs[i].threshold > c->threshold;
        most = c->pairs[i].threshold > most ? c->pairs[i].threshold : most;
    }
    printf("Changes below %.1f %% are none", 100 * expm1(c->threshold));
    if (noisy) printf("; in %d row%s that differed more from pass to pass, up to %.1f %%", noisy, noisy == 1 ? "" : "s", 100 * expm1(most));
    printf(".\n");
}

static void print_text(const comparison *c) {
    static const change order[] = {BROKEN, SLOWER, FASTER, FIXED, APPEARED, GONE};
    bool any = false;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (int i = 0; i < c->n; i++) {
            if (c->pairs[i].change != order[k]) continue;
            if (!any) printf("%-9s %-84s %12s %12s %9s\n", "change", "row", "A us", "B us", "time");
            any = true;
            print_pair(&c->pairs[i]);
        }
    printf("%s%d rows in both: %d the same, %d faster, %d slower, %d broken, %d fixed; %d appeared, %d gone", any ? "\n" : "",
           c->both, comparison_count(c, SAME), comparison_count(c, FASTER), comparison_count(c, SLOWER), comparison_count(c, BROKEN), comparison_count(c, FIXED),
           comparison_count(c, APPEARED), comparison_count(c, GONE));
    if (comparison_count(c, INCONCLUSIVE)) printf("; %d of which nothing can be told, in fewer than %d passes or suspect", comparison_count(c, INCONCLUSIVE), LEAST_PASSES);
    printf("\n");
    print_thresholds(c);
    if (fabs(c->drift) > 0.01)
        printf("The machine as a whole was %.1f %% %s in B, which is taken out.\n", 100 * fabs(exp(c->drift) - 1),
               c->drift > 0 ? "slower" : "faster");
}

static int print_json(const comparison *c, const char *path) {
    json_t *document = comparison_json(c);
    int code = document_write_at(document, path);
    json_decref(document);
    return code;
}

/* ---- running ---- */

static int write_page(const comparison *c, FILE *file) {
    json_t *document = comparison_json(c);
    int code = report_write(file, (const json_t *const[]){document, c->documents[0], c->documents[1]}, 3);
    json_decref(document);
    return code;
}

static int tell(const comparison *c, const compare_options *o) {
    output page = {.file = NULL};
    int code = file_refuse_another("--html", o->html, FILE_MARKUP);
    if (!code) code = output_open(&page, o->html);
    if (!code && o->html) code = write_page(c, page.file);
    if (!code) code = output_commit(&page);
    output_abort(&page);
    if (code) return code;
    if (o->shared.json) code = print_json(c, o->shared.json);
    else print_text(c);
    if (fflush(stdout) || ferror(stdout)) code = run_error("stdout cannot be written");
    return code ? code : strcmp(comparison_verdict(c), "worse") == 0 ? EXIT_WORSE : 0;
}

static int compare(const compare_options *o) {
    json_t *documents[2] = {NULL, NULL};
    comparison c = {.n = 0};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) code = report_load(&documents[i], o->files[i]);
    if (!code) code = comparison_make(&c, (const json_t *const[]){documents[0], documents[1]}, o->threshold);
    if (c.why[0] && c.refused >= 0) run_error("%s: %s", o->files[c.refused], c.why);
    else if (c.why[0]) run_error("%s", c.why);
    if (!code) code = tell(&c, o);
    comparison_free(&c);
    for (int i = 0; i < 2; i++) json_decref(documents[i]);
    return code;
}

static int take_file(void *into, const char *text) {
    compare_options *o = into;
    if (o->n_files == 2) return usage_error("two files are compared; '%s' is one more", text);
    o->files[o->n_files++] = text;
    return 0;
}

int run_compare(int argc, char **argv) {
    compare_options o = {.shared = shared_options_unset(), .threshold = 5};
    int code = option_parse(rows, ROWS, argc, argv, &o, take_file);
    if (code) return code;
    if (o.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(0);
    if (o.n_files != 2) return usage_error("two files of 'bench --json' expected");
    if (output_is_stdout(o.html)) return usage_error("--html: a file expected; stdout has the comparison");
    code = file_check_distinct((const file_use[]){{"A", o.files[0], FILE_READ}, {"B", o.files[1], FILE_READ}, {"--html", o.html, FILE_WRITTEN}}, 3);
    if (code) return code;
    return compare(&o);
}
