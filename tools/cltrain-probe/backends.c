/*
 * cltrain-probe backends: the table of a device, and what serves a model's problems.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "on_device.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct backends_options {
    shared_options shared;
    const char *op, *sources;
    double timeout;
} backends_options;

static const option_row rows[] = {
    MODEL_ROWS,
    {OPTION_HEADING, .help = "Training:"},
    TRAINING_ROWS,
    {OPTION_HEADING, .help = "What is shown:"},
    {OPTION_TEXT, 0, "op", "NAME", offsetof(backends_options, op), .help = "that op alone: conv2d"},
    {OPTION_TEXT, 0, "sources", "FOLDER", offsetof(backends_options, sources),
     .help = "write the kernels of a step there, each as a file of OpenCL C that\nstands by itself; --json says what they are"},
    DEVICE_ROWS,
    TIMEOUT_ROW(offsetof(backends_options, timeout), "a driver that says nothing for longer has hung (default 60)"),
    OUTPUT_ROWS,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " backends [MODEL] [options]\n"
                       "\n"
                       "Prints the rows of the backend table on a device: of each op, in order of precedence, the last one\n"
                       "wins where it fits; and for the steps of MODEL (as of cltrain-train; default convnet) which row serves, and why:\n"
                       "measured on this device, shipped with the library, taken from the nearest problem, the default, or\n"
                       "the only one that fits.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error; 130 Ctrl-C.\n");
}

typedef struct listing {
    const backends_options *options;
    const probe_model *model;
    json_t *rows, *problems, *kernels; /* as the child tells them, and as they are in the document */
    bool no_such_op;
} listing;

static bool is_shown(const listing *l, const char *op) {
    return !l->options->op || strcmp(l->options->op, op) == 0;
}

/* ---- in the child ---- */

typedef struct telling {
    const listing *l;
    FILE *lines;
    int n;
} telling;

static bool visit_row(const clt_row_info *r, void *user) {
    telling *t = user;
    if (!is_shown(t->l, r->op)) return true;
    t->n++;
    document_line(t->lines, json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:b}}", "row", "op", r->op, "backend", r->backend,
                                      "needs", r->needs, "missing", r->missing, "parameters", r->parameters, "masked",
                                      r->masked));
    return true;
}

static json_t *problem_json(const clt_problem_info *p) {
    json_t *candidates = json_array();
    for (int i = 0; i < p->n_rows; i++)
        json_array_append_new(candidates, json_pack("{s:s, s:s?}", "backend", p->rows[i].backend, "refusal",
                                                    p->rows[i].refusal));
    return json_pack("{s:s, s:s, s:i, s:f, s:f, s:s, s:s, s:s, s:s, s:o}", "problem", p->problem, "op", p->op, "count",
                     p->count, "gflop", p->gflop, "gbyte", p->gbyte, "backend", p->backend, "parameters", p->parameters, "why", p->why,
                     "from", p->from, "rows", candidates);
}

static bool visit_problem(const clt_problem_info *p, void *user) {
    telling *t = user;
    if (is_shown(t->l, p->op)) document_line(t->lines, json_pack("{s:o}", "problem", problem_json(p)));
    return true;
}

static json_t *sizes_json(const size_t sizes[3], int dims) {
    json_t *array = json_array();
    for (int i = 0; i < dims; i++) json_array_append_new(array, json_integer((json_int_t)sizes[i]));
    return array;
}

static bool visit_kernel(const clt_kernel_info *k, void *user) {
    telling *t = user;
    if (!is_shown(t->l, k->op)) return true;
    document_line(t->lines, json_pack("{s:{s:s, s:s, s:s, s:s, s:i, s:o, s:o, s:b}}", "kernel", "kernel", k->kernel, "op", k->op, "backend", k->backend,
                                      "source", k->source, "launches", k->launches, "items", sizes_json(k->items, k->dims), "group",
                                      sizes_json(k->group, k->dims), "fixed_group", k->fixed_group));
    return true;
}

static clt_status ask(FILE *lines, clt_device *device, bool *wrong, void *user) {
    telling t = {.l = user, .lines = lines};
    (void)wrong;
    const clt_train_options *training = &t.l->model->training;
    clt_status status = clt_probe_rows(device, visit_row, &t);
    if (status < 0) return status;
    if (t.n == 0) document_line(lines, json_pack("{s:b}", "no such op", 1));
    if (t.n == 0) return CLT_OK;
    status = clt_probe_problems(device, t.l->model->loss, training, visit_problem, &t);
    if (status < 0 || !t.l->options->sources) return status;
    return clt_probe_kernels(device, t.l->model->loss, training, visit_kernel, &t);
}

/* ---- in the parent ---- */

static void take(const json_t *told, void *user) {
    listing *l = user;
    json_t *row = json_object_get(told, "row"), *problem = json_object_get(told, "problem"), *kernel = json_object_get(told, "kernel");
    if (json_is_object(row)) json_array_append(l->rows, row);
    if (json_is_object(problem)) json_array_append(l->problems, problem);
    if (json_is_object(kernel)) json_array_append(l->kernels, kernel);
    l->no_such_op |= json_is_true(json_object_get(told, "no such op"));
}

static void print_rows(const listing *l) {
    const char *last = "";
    size_t i;
    json_t *r;
    printf("%-24s %-14s %s\n", "op", "backend", "needs");
    json_array_foreach(l->rows, i, r) {
        const char *op = document_string(r, "op"), *needs = document_string(r, "needs");
        printf("%-24s %-14s %s", strcmp(last, op) ? op : "", document_string(r, "backend"), needs[0] ? needs : "-");
        if (document_string(r, "missing")[0]) printf("; missing here: %s", document_string(r, "missing"));
        if (json_is_true(json_object_get(r, "masked"))) printf("; masked by CLTRAIN_BACKENDS");
        if (document_string(r, "parameters")[0]) printf("; parameters %s", document_string(r, "parameters"));
        printf("\n");
        last = op;
    }
}

/* Each reason once, with all rows that have it: "not reference, native: the layout of a tensor". */
static void print_refusal(const json_t *candidates, size_t first) {
    const char *why = document_string(json_array_get(candidates, first), "refusal");
    if (!why[0]) return;
    for (size_t i = 0; i < first; i++)
        if (strcmp(document_string(json_array_get(candidates, i), "refusal"), why) == 0) return;
    printf("; not ");
    for (size_t i = first; i < json_array_size(candidates); i++)
        if (strcmp(document_string(json_array_get(candidates, i), "refusal"), why) == 0)
            printf("%s%s", i == first ? "" : ", ", document_string(json_array_get(candidates, i), "backend"));
    printf(": %s", why);
}

static void print_problem(const json_t *p) {
    const char *backend = document_string(p, "backend");
    const json_t *candidates = json_object_get(p, "rows");
    printf("%-76s %5d  %-10s %s", document_string(p, "problem"), told_whole(p, "count"), backend[0] ? backend : "-",
           document_string(p, "why"));
    if (document_string(p, "from")[0]) printf(" of %s", document_string(p, "from"));
    if (document_string(p, "parameters")[0]) printf("; %s", document_string(p, "parameters"));
    for (size_t i = 0; i < json_array_size(candidates); i++) print_refusal(candidates, i);
    printf("\n");
}

static int print_text(const listing *l, const clt_device_info *info) {
    size_t i;
    json_t *p;
    printf("%s (%s, driver %s)\n\n", info->name, info->platform, info->driver);
    print_rows(l);
    printf("\n%s\n\n", l->model->text);
    if (json_array_size(l->problems)) printf("%-76s %5s  %-10s %s\n", "problem", "count", "served by", "why");
    json_array_foreach(l->problems, i, p) print_problem(p);
    if (l->options->sources) printf("\n%zu kernels in %s\n", json_array_size(l->kernels), l->options->sources);
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

static int print_json(const listing *l, const on_device *o) {
    json_t *document = on_device_document(o, "backends");
    json_object_set_new(document, "model", json_string(l->model->text));
    json_object_set(document, "rows", l->rows);
    json_object_set(document, "problems", l->problems);
    if (l->options->sources) json_object_set(document, "kernels", l->kernels);
    int code = document_write_at(document, l->options->shared.json);
    json_decref(document);
    return code;
}

/* ---- sources ---- */

/* The file's name stands in the source's place then. */
static int write_source(json_t *kernel, const char *folder, size_t index) {
    char name[128], path[4096];
    output file;
    snprintf(name, sizeof name, "%03zu-%.80s.cl", index, document_string(kernel, "kernel"));
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return run_error("--sources %.60s…: the path is too long", folder);
    int code = output_open(&file, path);
    if (code) return code;
    if (fputs(document_string(kernel, "source"), file.file) == EOF) {
        code = output_failed(file.file);
        output_abort(&file);
        return code;
    }
    json_object_del(kernel, "source");
    json_object_set_new(kernel, "file", json_string(name));
    return output_commit(&file);
}

static int write_sources(const listing *l) {
    const char *folder = l->options->sources;
    size_t i;
    json_t *kernel;
    if (!folder) return 0;
    if (mkdir(folder, 0777) && errno != EEXIST) return run_error("%s cannot be made: %s", folder, strerror(errno));
    json_array_foreach(l->kernels, i, kernel) {
        int code = write_source(kernel, folder, i);
        if (code) return code;
    }
    return 0;
}

/* ---- running ---- */

static int show(const listing *l, const on_device *o) {
    int code = on_device_verdict(o, 0);
    if (code) return code;
    if (l->no_such_op) return usage_error("--op '%s': no such op", l->options->op);
    code = write_sources(l);
    if (code) return code;
    return l->options->shared.json ? print_json(l, o) : print_text(l, &o->device->info);
}

static int list_on_device(const backends_options *options, const probe_model *model) {
    listing l = {.options = options, .model = model, .rows = json_array(), .problems = json_array(), .kernels = json_array()};
    on_device o = {.ask = ask, .take = take, .user = &l};
    int code = on_device_choose(&o, &options->shared, options->timeout);
    if (!code) {
        on_device_ask(&o);
        code = show(&l, &o);
    }
    on_device_free(&o);
    json_decref(l.rows);
    json_decref(l.problems);
    json_decref(l.kernels);
    return code;
}

int run_backends(int argc, char **argv) {
    backends_options options = {.shared = shared_options_unset(), .timeout = 60};
    probe_model model;
    int code = option_parse(rows, ROWS, argc, argv, &options, take_model);
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
    return code;
}
