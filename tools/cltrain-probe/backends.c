/*
 * cltrain-probe backends: the table of a device, and what serves a model's problems.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "tools/common/message.h"

typedef struct backends_options {
    shared_options shared;
    const char *op;
} backends_options;

static const option_row rows[] = {
    MODEL_ROWS,
    {OPTION_HEADING, .help = "What is shown:"},
    {OPTION_TEXT, 0, "op", "NAME", offsetof(backends_options, op), .help = "that op alone: conv2d"},
    DEVICE_ROWS,
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    printf("Usage: " PROGRAM " backends [options]\n"
           "\n"
           "Prints the rows of the backend table on a device: of each op, in order of precedence, the last one\n"
           "wins where it fits; and for the steps of a model (default convnet) which row serves, and why:\n"
           "measured on this device, shipped with the library, taken from the nearest problem, the default, or\n"
           "the only one that fits.\n");
    option_print(rows, ROWS, stdout);
    printf("\nExit status: 0 done; 1 it failed; 2 the command line makes no sense.\n");
}

typedef struct listing {
    const backends_options *options;
    const clt_device_info *info;
    json_t *rows, *problems;
    char op[64]; /* the last one printed */
    int n;
    bool begun;
} listing;

static bool is_shown(const listing *l, const char *op) {
    return !l->options->op || strcmp(l->options->op, op) == 0;
}

/* ---- rows ---- */

static void print_row(listing *l, const clt_row_info *r) {
    bool again = strcmp(l->op, r->op) == 0;
    const clt_device_info *info = l->info;
    if (!l->begun) printf("%s (%s, driver %s)\n\n", info->name, info->platform, info->driver);
    if (!l->begun) printf("%-24s %-14s %s\n", "op", "backend", "needs");
    l->begun = true;
    snprintf(l->op, sizeof l->op, "%s", r->op);
    printf("%-24s %-14s %s", again ? "" : r->op, r->backend, r->needs[0] ? r->needs : "-");
    if (r->missing[0]) printf("; missing here: %s", r->missing);
    if (r->masked) printf("; masked by CLTRAIN_BACKENDS");
    if (r->parameters[0]) printf("; parameters %s", r->parameters);
    printf("\n");
}

static bool visit_row(const clt_row_info *r, void *user) {
    listing *l = user;
    if (!is_shown(l, r->op)) return true;
    l->n++;
    if (!l->options->shared.json) {
        print_row(l, r);
        return true;
    }
    json_array_append_new(l->rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "op", r->op, "backend", r->backend,
                                             "needs", r->needs, "missing", r->missing, "parameters", r->parameters,
                                             "masked", r->masked));
    return true;
}

/* ---- problems ---- */

/* Each reason once, with all rows that have it: "not reference, native: the layout of a tensor". */
static void print_refusal(const clt_problem_info *p, int first) {
    const char *why = p->rows[first].refusal;
    if (!why) return;
    for (int i = 0; i < first; i++)
        if (p->rows[i].refusal && strcmp(p->rows[i].refusal, why) == 0) return;
    printf("; not ");
    for (int i = first; i < p->n_rows; i++)
        if (p->rows[i].refusal && strcmp(p->rows[i].refusal, why) == 0)
            printf("%s%s", i == first ? "" : ", ", p->rows[i].backend);
    printf(": %s", why);
}

static void print_problem(listing *l, const clt_problem_info *p) {
    if (!l->begun) printf("%-76s %5s  %-10s %s\n", "problem", "count", "served by", "why");
    l->begun = true;
    printf("%-76s %5d  %-10s %s", p->problem, p->count, p->backend[0] ? p->backend : "-", p->why);
    if (p->from[0]) printf(" of %s", p->from);
    if (p->parameters[0]) printf("; %s", p->parameters);
    for (int i = 0; i < p->n_rows; i++) print_refusal(p, i);
    printf("\n");
}

static json_t *problem_json(const clt_problem_info *p) {
    json_t *candidates = json_array();
    for (int i = 0; i < p->n_rows; i++)
        json_array_append_new(candidates, json_pack("{s:s, s:s?}", "backend", p->rows[i].backend, "refusal",
                                                    p->rows[i].refusal));
    return json_pack("{s:s, s:s, s:i, s:f, s:s, s:s, s:s, s:s, s:o}", "problem", p->problem, "op", p->op, "count",
                     p->count, "gflop", p->gflop, "backend", p->backend, "parameters", p->parameters, "why", p->why,
                     "from", p->from, "rows", candidates);
}

static bool visit_problem(const clt_problem_info *p, void *user) {
    listing *l = user;
    if (!is_shown(l, p->op)) return true;
    if (l->options->shared.json) json_array_append_new(l->problems, problem_json(p));
    else print_problem(l, p);
    return true;
}

/* ---- running ---- */

static int list(listing *l, clt_device *device, const probe_model *model) {
    l->info = clt_device_get_info(device);
    clt_train_options training = {.output = model->output};
    clt_status status = clt_probe_rows(device, visit_row, l);
    if (status < 0) return library_error(status, "reading the table");
    if (l->n == 0) return usage_error("--op '%s': no such op", l->options->op);
    l->begun = false;
    if (!l->options->shared.json) printf("\n%s\n\n", model->text);
    status = clt_probe_problems(device, model->loss, &training, visit_problem, l);
    return status < 0 ? library_error(status, "looking at the model") : 0;
}

static int list_on_device(const backends_options *options, const probe_model *model) {
    clt_device *device;
    clt_status status = clt_device_open(&device, options->shared.device);
    if (status < 0) return library_error(status, "opening a device");
    listing l = {.options = options, .rows = json_array(), .problems = json_array()};
    int code = list(&l, device, model);
    if (!code && options->shared.json) {
        json_t *object = json_pack("{s:s, s:s, s:O, s:O}", "device", clt_device_get_info(device)->name, "model",
                                   model->text, "rows", l.rows, "problems", l.problems);
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
    }
    json_decref(l.rows);
    json_decref(l.problems);
    clt_device_close(device);
    return code;
}

int run_backends(int argc, char **argv) {
    backends_options options = {.shared = shared_options_unset()};
    probe_model model;
    int code = option_parse(rows, ROWS, argc, argv, &options, refuse_word);
    if (code) return code;
    if (options.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(options.shared.verbose);
    code = probe_model_build(&model, &options.shared, options.shared.model ? options.shared.model : "convnet");
    if (code) return code;
    code = list_on_device(&options, &model);
    probe_model_free(&model);
    return fflush(stdout) && !code ? run_error("stdout cannot be written") : code;
}
