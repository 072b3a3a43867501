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

/* ---- the options of a run, which its log has: of each of its parts, where it went on with --resume ---- */

/* Of a line that begins a part, with "at": the steps done before; NULL: it is another line, or only a part of one. */
static json_t *options_of_line(const char *line) {
    static const char begin[] = "{\"event\":\"start\",";
    json_t *start = strncmp(line, begin, sizeof begin - 1) == 0 ? json_loads(line, 0, NULL) : NULL;
    json_t *config = json_incref(json_object_get(start, "config"));
    if (config) json_object_set(config, "at", json_object_get(start, "steps"));
    json_decref(start);
    return config;
}

static bool is_one_of(const char *key, const char *const *list) {
    while (*list && strcmp(*list, key) != 0) list++;
    return *list != NULL;
}

/* How long a part was, what it wrote and where it began: may be others in each. */
static const char *const lengths[] = {"epochs", "steps", "stop-after", NULL}, *const totals[] = {"epochs", "steps", NULL};
static const char *const free_of_part[] = {"epochs", "steps", "stop-after", "resume", "init", "init-matching", "at", "save", "save-every", "log", "json", "export", "export-lora",
                                           "tensorboard", "profile", "quiet", "verbose", "device", "data-threads", "test-every", NULL};

/* The first option of `a` that `b` has otherwise; NULL: none. A schedule of the learning rate may be one of the whole length. */
static const char *other_option(json_t *a, const json_t *b) {
    const char *key;
    json_t *value;
    bool scheduled = json_object_get(a, "schedule") != NULL;
    json_object_foreach(a, key, value) if ((!is_one_of(key, free_of_part) || (scheduled && is_one_of(key, totals))) && !json_equal(value, json_object_get(b, key))) return key;
    return NULL;
}

/* The next part of the same run: it ends where that does. */
static int add_part(const char *path, json_t *whole, json_t *part) {
    const char *other = other_option(whole, part);
    if (!other) other = other_option(part, whole);
    if (other) return usage_error("--config: %s: the parts of the run differ in \"%s\": no options repeat all of it. A file of the options of one part does that one", path, other);
    for (int i = 0; lengths[i]; i++) {
        json_t *value = json_object_get(part, lengths[i]);
        if (value) json_object_set(whole, lengths[i], value);
        else json_object_del(whole, lengths[i]);
    }
    return 0;
}

/* The whole begins as its first part did. */
static int settle_begin(const char *path, json_t *whole) {
    const char *resume = json_string_value(json_object_get(whole, "resume")), *save = json_string_value(json_object_get(whole, "save"));
    bool anew = json_integer_value(json_object_get(whole, "at")) == 0;
    if (resume && !anew && (strcmp(resume, "auto") == 0 || (save && strcmp(resume, save) == 0)))
        return usage_error("--config: %s: the run went on from a file that it has saved over: it cannot be repeated", path);
    if (resume && strcmp(resume, "auto") == 0) json_object_del(whole, "resume"); /* there was no file */
    json_object_del(whole, "at");
    return 0;
}

/* A part without steps before it is a run of its own, and takes the place of what is before it. *config NULL: it is no log. */
static int load_log(const char *path, json_t **config) {
    char *line = NULL;
    size_t capacity = 0;
    int code = 0;
    FILE *file = fopen(path, "r");
    json_t *part;
    *config = file && getline(&line, &capacity, file) > 0 ? options_of_line(line) : NULL;
    while (*config && !code && getline(&line, &capacity, file) > 0) {
        if (!(part = options_of_line(line))) continue;
        if (json_integer_value(json_object_get(part, "at")) == 0) {
            json_decref(*config);
            *config = part;
            continue;
        }
        code = add_part(path, *config, part);
        json_decref(part);
    }
    free(line);
    if (file) fclose(file);
    return *config && !code ? settle_begin(path, *config) : code;
}

int config_read(options *into, int argc, char **argv) {
    json_error_t error;
    struct stat facts;
    const char *path = find_file(argc, argv);
    if (!path) return 0;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) return usage_error("--config: %s is not a regular file", path);
    json_t *root;
    int code = load_log(path, &root);
    if (!code && !root && stat(path, &facts) == 0 && facts.st_size > MOST_BYTES) code = usage_error("--config: %s is larger than 1 MiB", path);
    if (!code && !root && !(root = json_load_file(path, JSON_REJECT_DUPLICATES, &error)))
        code = error.line < 1 ? usage_error("--config: %s", error.text) : usage_error("--config: %s, line %d: %s", path, error.line, error.text);
    if (!code) code = read_all(into, path, root);
    json_decref(root);
    return code;
}
