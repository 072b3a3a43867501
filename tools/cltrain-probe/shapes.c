/*
 * Shapes: the problems of models' training steps, read from lines of text.
 */
#include "shapes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tools/common/message.h"

enum { MOST_LINES = 4096, MOST_FILE = 1 << 20 };

/* ---- reading ---- */

int shapes_add_line(shape_list *list, const shape_line *line) {
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
    if (sscanf(text, "%23s %9d %n", line.phase, &line.count, &at) < 2 || !is_phase(line.phase) || line.count < 1)
        return usage_error("%s, line %d: expected PHASE COUNT PROBLEM, as in forward 1 matmul 8x4 16x4^T -> 8x16", source,
                           number);
    if ((size_t)snprintf(line.problem, sizeof line.problem, "%s", text + at) >= sizeof line.problem)
        return usage_error("%s, line %d is too long", source, number);
    if (clt_problem_check(line.problem) < 0) return usage_error("%s, line %d: %s", source, number, clt_error_detail());
    return shapes_add_line(list, &line);
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
