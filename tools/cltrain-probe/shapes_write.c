/*
 * cltrain-probe shapes: the problems of a model's training step as lines of text.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "on_device.h"
#include "shapes.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

typedef struct shapes_options {
    shared_options shared;
    double timeout;
} shapes_options;

static const option_row rows[] = {
    MODEL_ROWS,
    DEVICE_ROWS,
    TIMEOUT_ROW(offsetof(shapes_options, timeout), "a driver that says nothing for longer has hung (default 60)"),
    {OPTION_HEADING, .help = "Output:"},
    {OPTION_FLAG, 'h', "help", NULL, SHARED_AT(help), .help = "this text"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_help(void) {
    help_print(stdout, "Usage: " PROGRAM " shapes [MODEL] [options]\n"
                       "\n"
                       "Writes the problems of a training step of MODEL (as of cltrain-train; default convnet) to stdout, as 'bench --shapes' reads\n"
                       "them: PHASE COUNT PROBLEM. What is fused or has no text is left out, and how tensors lie: that is each\n"
                       "device's own choice.\n");
    option_print(rows, ROWS, stdout);
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error; 130 Ctrl-C.\n");
}

/* Where the problem stands in a step, by what the layers of this library's models make of it. */
static const char *phase_of(const char *problem) {
    bool is_matmul = strncmp(problem, "matmul ", 7) == 0;
    const char *first = is_matmul ? strchr(problem + 7, ' ') : NULL;
    if (is_matmul && first && first[-1] == 'T') return "weight-gradient";
    if (is_matmul) return strstr(problem, "^T ->") ? "forward" : "data-gradient";
    if (!strncmp(problem, "sgd", 3) || !strncmp(problem, "adam", 4)) return "update";
    if (!strncmp(problem, "conv2d_grad_input", 17)) return "data-gradient";
    if (!strncmp(problem, "conv2d_grad_weight", 18) || !strncmp(problem, "reduce r0", 9)) return "weight-gradient";
    return strstr(problem, "_grad") ? "backward" : "forward";
}

static void strip_layouts(const char *problem, char text[320]) {
    size_t n = 0;
    for (; *problem && n < 319; problem++) {
        if (strncmp(problem, ":nhwc", 5) == 0) problem += 5;
        if (!*problem) break;
        text[n++] = *problem;
    }
    text[n] = 0;
}

typedef struct writing {
    probe_model model;
    shape_list list;
    int code;
} writing;

/* ---- in the child ---- */

static bool visit(const clt_problem_info *p, void *user) {
    char problem[320];
    strip_layouts(p->problem, problem);
    if (clt_problem_check(problem) >= 0)
        document_line(user, json_pack("{s:s, s:i}", "problem", problem, "count", p->count));
    return true;
}

static clt_status ask(FILE *lines, clt_device *device, bool *wrong, void *user) {
    const probe_model *model = &((const writing *)user)->model;
    (void)wrong;
    clt_train_options training = {.output = model->output};
    return clt_probe_problems(device, model->loss, &training, visit, lines);
}

/* ---- in the parent ---- */

static void take(const json_t *told, void *user) {
    writing *w = user;
    shape_line line = {.count = told_whole(told, "count")};
    if (line.count < 1 || w->code) return;
    snprintf(line.problem, sizeof line.problem, "%s", document_string(told, "problem"));
    snprintf(line.phase, sizeof line.phase, "%s", phase_of(line.problem));
    if (clt_problem_check(line.problem) >= 0) w->code = shapes_add_line(&w->list, &line);
}

static int write_list(const writing *w) {
    printf("# Problems of a training step of %s, most work first.\n# Made by: cltrain-probe shapes\n", w->model.text);
    for (int i = 0; i < w->list.n; i++)
        printf("%-15s %2d %s\n", w->list.lines[i].phase, w->list.lines[i].count, w->list.lines[i].problem);
    return fflush(stdout) || ferror(stdout) ? run_error("stdout cannot be written") : 0;
}

static int write_shapes(const shapes_options *options, writing *w) {
    on_device o = {.ask = ask, .take = take, .user = w};
    int code = on_device_choose(&o, &options->shared, options->timeout);
    if (!code) {
        on_device_ask(&o);
        code = on_device_verdict(&o, w->code);
        if (!code) code = write_list(w);
    }
    on_device_free(&o);
    return code;
}

int run_shapes(int argc, char **argv) {
    shapes_options options = {.shared = shared_options_unset(), .timeout = 60};
    writing w = {.code = 0};
    int code = option_parse(rows, ROWS, argc, argv, &options, take_model);
    if (code) return code;
    if (options.shared.help) {
        print_help();
        return fflush(stdout) ? run_error("stdout cannot be written") : 0;
    }
    message_start(0);
    code = probe_model_build(&w.model, &options.shared, options.shared.model ? options.shared.model : "convnet");
    if (code) return code;
    code = write_shapes(&options, &w);
    shapes_free(&w.list);
    probe_model_free(&w.model);
    return code;
}
