#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "option_table.h"
#include "tools/common/message.h"

enum { MOST_BYTES = 1 << 20 };

/* "--config FILE" or "--config=FILE"; the last of several. */
static const char *find_file(int argc, char **argv) {
    const char *file = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) file = argv[i] + 9;
        else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) file = argv[++i];
    }
    return file;
}

static int refuse(const char *path, const char *key, const char *why) {
    return usage_error("--config: %s: \"%s\": %s", path, key, why);
}

/* Options point into these. */
typedef struct kept {
    struct kept *next;
    char text[];
} kept;

static kept *all_kept;

static char *keep(size_t bytes) {
    kept *one = malloc(sizeof *one + bytes);
    if (!one) return NULL;
    one->next = all_kept;
    all_kept = one;
    return one->text;
}

/* As the command line would have it: "--key=value". NULL where there is no memory, or, with *why, where it cannot be said. */
static char *argument_of(const char *key, const json_t *value, const char **why) {
    char number[64];
    const char *text = json_string_value(value);
    *why = NULL;
    if (json_is_integer(value)) snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) snprintf(number, sizeof number, "%.17g", json_real_value(value));
    else if (!text && !json_is_true(value)) return *why = "expected a text, a number, true or false", NULL;
    if (json_is_number(value)) text = number;
    size_t bytes = strlen(key) + (text ? strlen(text) : 0) + 4;
    char *argument = keep(bytes);
    if (argument) snprintf(argument, bytes, text ? "--%s=%s" : "--%s", key, text);
    return argument;
}

static json_t *value_of(const option_row *row, const void *read) {
    const void *field = (const char *)read + row->offset;
    switch (row->kind) {
    case OPTION_FLAG: return json_boolean(*(const bool *)field);
    case OPTION_COUNTER: return json_true();
    case OPTION_WHOLE:
    case OPTION_SEED: return json_integer(*(const int64_t *)field);
    case OPTION_CHOICE: return json_string(row->choices[*(const int *)field]);
    case OPTION_TEXT:
    case OPTION_OPTIONAL: return json_string(*(const char *const *)field); /* NULL, which is left out: it is no UTF-8 */
    default: return json_real(*(const double *)field);
    }
}

json_t *config_write(const options *given) {
    options none = options_standard();
    json_t *object = json_object();
    for (int i = 0; i < option_row_count; i++) {
        const option_row *row = &option_rows[i];
        if (row->kind == OPTION_HEADING || strcmp(row->name, "config") == 0 || !option_given(row, given, &none)) continue;
        json_t *value = value_of(row, given);
        if (!value && given->log) warning("--log: --%s is no UTF-8: the log lacks it, and --config cannot repeat the run", row->name);
        json_object_set_new(object, row->name, value);
    }
    return object;
}

static int take_none(void *into, const char *text) {
    (void)into;
    return usage_error("--config: '%s' is no option", text);
}

static int read_option(options *into, const char *path, const char *key, const json_t *value) {
    const char *why;
    if (json_is_false(value) || json_is_null(value)) return 0;
    if (strcmp(key, "config") == 0) return refuse(path, key, "a file of options names no other");
    char *argument = argument_of(key, value, &why);
    if (!argument) return why ? refuse(path, key, why) : run_error("no memory for --config");
    int code = option_parse(option_rows, option_row_count, 1, &argument, into, take_none);
    return code ? refuse(path, key, "not an option, or not a value of it") : 0;
}

static int read_all(options *into, const char *path, json_t *root) {
    const char *key;
    json_t *value;
    if (!json_is_object(root)) return usage_error("--config: %s: expected a JSON object: {\"model\": \"convnet\", \"data\": \"digits\", \"epochs\": 5}", path);
    json_object_foreach(root, key, value) {
        int code = read_option(into, path, key, value);
        if (code) return code;
    }
    return 0;
}

/* The options of a line that begins a run; NULL: it is another line, or only a part of one. */
static json_t *options_of_line(const char *line) {
    static const char begin[] = "{\"event\":\"start\",";
    json_t *start = strncmp(line, begin, sizeof begin - 1) == 0 ? json_loads(line, 0, NULL) : NULL;
    json_t *config = json_incref(json_object_get(start, "config"));
    json_decref(start);
    return config;
}

/* Of a run that went on with another, in the same log, the options are those of the last part, which begins as the first part did. */
static json_t *join_parts(json_t *first, json_t *last) {
    if (!last) return first;
    json_t *resume = json_object_get(first, "resume");
    if (resume) json_object_set(last, "resume", resume);
    else json_object_del(last, "resume");
    json_decref(first);
    return last;
}

/* The options of a run, which its log has. NULL: it is no log. */
static json_t *load_log(const char *path) {
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    json_t *first = file && getline(&line, &capacity, file) > 0 ? options_of_line(line) : NULL, *last = NULL;
    while (first && getline(&line, &capacity, file) > 0) {
        json_t *found = options_of_line(line);
        if (found) json_decref(last), last = found;
    }
    free(line);
    if (file) fclose(file);
    return join_parts(first, last);
}

int config_read(options *into, int argc, char **argv) {
    json_error_t error;
    struct stat facts;
    const char *path = find_file(argc, argv);
    if (!path) return 0;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) return usage_error("--config: %s is not a regular file", path);
    json_t *root = load_log(path);
    if (!root && stat(path, &facts) == 0 && facts.st_size > MOST_BYTES) return usage_error("--config: %s is larger than 1 MiB", path);
    if (!root) root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root && error.line < 1) return usage_error("--config: %s", error.text);
    if (!root) return usage_error("--config: %s, line %d: %s", path, error.line, error.text);
    int code = read_all(into, path, root);
    json_decref(root);
    return code;
}
