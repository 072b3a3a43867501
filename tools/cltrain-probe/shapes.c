/*
 * cltrain-probe shapes: the problems of a model's training step as lines of text; and reading such lines.
 */
#include "shapes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "on_device.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

enum { MOST_LINES = 4096, MOST_FILE = 1 << 20 };

/* ---- reading ---- */

static int add_line(shape_list *list, const shape_line *line) {
    for (int i = 0; i < list->n; i++)
        if (!strcmp(list->lines[i].problem, line->problem) && !strcmp(list->lines[i].model, line->model)) return 0;
    if (list->n == MOST_LINES) return usage_error("more than %d problems", MOST_LINES);
    if (list->n % 64 == 0) {
        shape_line *lines = realloc(list->lines, (size_t)(list->n + 64) * sizeof *lines);
        if (!lines) return run_error("no memory");
        list->lines = lines;
    }
    list->lines[list->n++] = *line;
    return 0;
}

static bool is_phase(const char *word) {
    static const char *const phases[] = {"forward", "data-gradient", "weight-gradient", "backward", "update"};
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        if (strcmp(word, phases[i]) == 0) return true;
    return false;
}

static int read_line(shape_list *list, const char *model, const char *text, const char *source, int number) {
    shape_line line = {.count = 0};
    int at = 0;
    snprintf(line.model, sizeof line.model, "%s", model);
    if (sscanf(text, "%23s %d %n", line.phase, &line.count, &at) < 2 || !is_phase(line.phase) || line.count < 1)
        return usage_error("%s, line %d: expected PHASE COUNT PROBLEM, as in forward 1 matmul 8x4 16x4^T -> 8x16", source,
                           number);
    if ((size_t)snprintf(line.problem, sizeof line.problem, "%s", text + at) >= sizeof line.problem)
        return usage_error("%s, line %d is too long", source, number);
    if (clt_problem_check(line.problem) < 0) return usage_error("%s, line %d: %s", source, number, clt_error_detail());
    return add_line(list, &line);
}

int shapes_add(shape_list *list, const char *model, const char *text, const char *source) {
    char line[512];
    int number = 0, code = 0;
    while (*text && !code) {
        size_t length = strcspn(text, "\n");
        number++;
        if (length >= sizeof line) return usage_error("%s, line %d is too long", source, number);
        memcpy(line, text, length);
        line[length] = 0;
        line[strcspn(line, "\r")] = 0;
        text += length + (text[length] == '\n');
        const char *begin = line + strspn(line, " \t");
        if (*begin && *begin != '#') code = read_line(list, model, begin, source, number);
    }
    return code;
}

int shapes_add_file(shape_list *list, const char *path) {
    char model[64];
    const char *slash = strrchr(path, '/');
    snprintf(model, sizeof model, "%.63s", slash ? slash + 1 : path);
    model[strcspn(model, ".")] = 0;
    char *text = malloc(MOST_FILE + 1);
    FILE *file = text ? fopen(path, "r") : NULL;
    if (!file) {
        free(text);
        return run_error("%s cannot be read: %s", path, strerror(errno));
    }
    size_t length = fread(text, 1, MOST_FILE + 1, file);
    bool bad = ferror(file);
    fclose(file);
    text[length <= MOST_FILE ? length : MOST_FILE] = 0;
    int code = bad || length > MOST_FILE ? run_error("%s cannot be read, or is too large", path)
                                         : shapes_add(list, model, text, path);
    free(text);
    return code;
}

static bool is_listed(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0) return true;
    return false;
}

/* Every name that is asked for is there. */
static int check_names(const char *names) {
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        bool found = false;
        char known[256] = "";
        for (const shape_file *f = embedded_shapes; f->name; f++) {
            size_t used = strlen(known);
            found |= strlen(f->name) == length && strncmp(f->name, at, length) == 0;
            snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", f->name);
        }
        if (!found) return usage_error("no shapes of a model '%.*s': there are %s", (int)length, at, known);
    }
    return 0;
}

int shapes_add_embedded(shape_list *list, const char *names) {
    int code = names ? check_names(names) : 0;
    for (const shape_file *f = embedded_shapes; f->name && !code; f++)
        if (!names || is_listed(names, f->name)) code = shapes_add(list, f->name, f->text, f->name);
    return code;
}

void shapes_free(shape_list *list) {
    free(list->lines);
    *list = (shape_list){.n = 0};
}

/* ---- writing ---- */

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
    printf("Usage: " PROGRAM " shapes [options]\n"
           "\n"
           "Writes the problems of a model's training step (default convnet) to stdout, as 'bench --shapes' reads\n"
           "them: PHASE COUNT PROBLEM. What is fused or has no text is left out, and how tensors lie: that is each\n"
           "device's own choice.\n");
    option_print(rows, ROWS, stdout);
    printf("\nExit status: 0 done; 1 it failed; 2 the command line makes no sense; 130 Ctrl-C.\n");
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
    snprintf(line.problem, sizeof line.problem, "%s", told_text(told, "problem"));
    snprintf(line.phase, sizeof line.phase, "%s", phase_of(line.problem));
    if (clt_problem_check(line.problem) >= 0) w->code = add_line(&w->list, &line);
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
    int code = option_parse(rows, ROWS, argc, argv, &options, refuse_word);
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
