#include "options.h"

#include <limits.h>
#include <string.h>

#include "message.h"
#include "numbers.h"
#include "option_table.h"

/* What a row's value must be, in words. */
static void describe_value(const option_row *row, char *text, size_t bytes) {
    size_t used = 0;
    switch (row->kind) {
    case OPTION_WHOLE:
        snprintf(text, bytes, "a whole number from %d to %d", row->low, INT_MAX);
        break;
    case OPTION_SEED: snprintf(text, bytes, "a whole number, 0 or more"); break;
    case OPTION_POSITIVE: snprintf(text, bytes, "a number above 0"); break;
    case OPTION_NOT_NEGATIVE: snprintf(text, bytes, "a number, 0 or more"); break;
    case OPTION_FRACTION: snprintf(text, bytes, "a number from 0 to below 1"); break;
    case OPTION_CHOICE:
        for (int i = 0; row->choices[i] && used < bytes; i++) {
            const char *joint = i == 0 ? "" : row->choices[i + 1] ? ", " : " or ";
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", joint, row->choices[i]);
        }
        break;
    default: snprintf(text, bytes, "%s", row->argument ? row->argument : "nothing"); break;
    }
}

static bool read_choice(const option_row *row, const char *text, int *value) {
    for (int i = 0; row->choices[i]; i++) {
        if (strcmp(row->choices[i], text) != 0) continue;
        *value = i;
        return true;
    }
    return false;
}

static bool read_real(option_kind kind, const char *text, double *value) {
    double number;
    if (!number_real(text, &number)) return false;
    if (number < 0 || (kind == OPTION_POSITIVE && number == 0)) return false;
    if (kind == OPTION_FRACTION && number >= 1) return false;
    *value = number;
    return true;
}

static bool read_value(const option_row *row, const char *text, options *into) {
    char *field = (char *)into + row->offset;
    switch (row->kind) {
    case OPTION_FLAG: *(bool *)field = true; return true;
    case OPTION_COUNTER: ++*(int *)field; return true;
    case OPTION_WHOLE: return number_whole(text, row->low, INT_MAX, (int64_t *)field);
    case OPTION_SEED: return number_whole(text, 0, INT64_MAX, (int64_t *)field);
    case OPTION_CHOICE: return read_choice(row, text, (int *)field);
    case OPTION_TEXT:
    case OPTION_OPTIONAL: *(const char **)field = text; return text[0] != '\0';
    default: return read_real(row->kind, text, (double *)field);
    }
}

static const option_row *find_long(const char *name, size_t length) {
    for (int i = 0; i < option_row_count; i++) {
        const option_row *row = &option_rows[i];
        if (row->name && strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static const option_row *find_letter(char letter) {
    for (int i = 0; i < option_row_count; i++)
        if (option_rows[i].letter && option_rows[i].letter == letter) return &option_rows[i];
    return NULL;
}

/* Levenshtein's distance of two words of up to 31 letters; 99 for longer ones. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    int row[32];
    if (a_length > 31 || b_length > 31) return 99;
    for (size_t j = 0; j <= b_length; j++) row[j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

static int refuse_option(const char *text) {
    const char *word = text[1] == '-' ? text + 2 : text + 1, *nearest = NULL;
    size_t length = strcspn(word, "=");
    int least = 3; /* further words are no likely slips */
    for (int i = 0; i < option_row_count && length > 1; i++) {
        const char *name = option_rows[i].name;
        if (!name) continue;
        int d = distance(word, length, name, strlen(name));
        if (d < least) least = d, nearest = name;
    }
    if (nearest) return usage_error("unknown option '%s': did you mean --%s?", text, nearest);
    return usage_error("unknown option '%s'", text);
}

/* One option at argv[*i]; moves *i onto a value that is an argument of its own. */
static int parse_option(options *into, int argc, char **argv, int *i) {
    const char *text = argv[*i];
    bool is_long = text[1] == '-';
    size_t length = strcspn(text, "=");
    const option_row *row = is_long         ? find_long(text + 2, length - 2)
                            : length == 2 ? find_letter(text[1])
                                          : NULL;
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    char expected[128];
    if (!row) return refuse_option(text);
    describe_value(row, expected, sizeof expected);
    if (row->kind == OPTION_FLAG || row->kind == OPTION_COUNTER) {
        if (value) return usage_error("--%s takes no value, but has '%s'", row->name, value);
    } else if (!value && row->kind == OPTION_OPTIONAL) {
        value = row->standard;
    } else if (!value) {
        bool missing = *i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0;
        if (missing) return usage_error("--%s needs a value: expected %s", row->name, expected);
        value = argv[++*i];
    }
    if (read_value(row, value, into)) return 0;
    return usage_error("--%s '%s': expected %s", row->name, value, expected);
}

static int take_model(options *into, const char *text) {
    if (into->model)
        return usage_error("one MODEL expected, but there are '%s' and '%s'", into->model, text);
    into->model = text;
    return 0;
}

static int parse_arguments(options *into, int argc, char **argv) {
    bool words_only = false;
    for (int i = 1; i < argc; i++) {
        int code = 0;
        if (!words_only && strcmp(argv[i], "--") == 0)
            words_only = true;
        else if (!words_only && argv[i][0] == '-' && argv[i][1])
            code = parse_option(into, argc, argv, &i);
        else
            code = take_model(into, argv[i]);
        if (code) return code;
    }
    return 0;
}

static int check(options *given) {
    char problem[512];
    if (!given->model) return usage_error("no MODEL given: expected " MODEL_EXPECTED);
    if (!model_parse(&given->model_spec, given->model, problem, sizeof problem))
        return usage_error("%s", problem);
    if (!given->data) return usage_error("no --data SPEC given, such as --data digits");
    if (given->quiet && given->verbose)
        return usage_error("--quiet and --verbose exclude each other");
    if (given->save_every != OPTION_UNSET && !given->save)
        return usage_error("--save-every needs --save FILE");
    if (given->stop_after != OPTION_UNSET && given->steps != OPTION_UNSET)
        return usage_error("--stop-after and --steps exclude each other");
    return data_spec_parse(&given->data_spec, given->data);
}

int options_parse(options *into, int argc, char **argv) {
    *into = (options){
        .epochs = OPTION_UNSET,
        .steps = OPTION_UNSET,
        .stop_after = OPTION_UNSET,
        .batch = OPTION_UNSET,
        .accumulate = OPTION_UNSET,
        .optimizer = OPTION_UNSET,
        .schedule = OPTION_UNSET,
        .warmup = OPTION_UNSET,
        .decay_steps = OPTION_UNSET,
        .save_every = OPTION_UNSET,
        .lr = NAN,
        .momentum = NAN,
        .weight_decay = NAN,
        .decay_factor = NAN,
        .min_lr = NAN,
        .clip_norm = NAN,
        .clip_value = NAN,
    };
    int code = parse_arguments(into, argc, argv);
    if (code || into->help || into->version || into->list_devices) return code;
    return check(into);
}
