#include "tools/common/option_parser.h"

#include <float.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/common/text.h"

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

static bool read_value(const option_row *row, const char *text, void *into) {
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

typedef struct table {
    const option_row *rows;
    int n;
} table;

/* One name in `names`, which stand apart by spaces; *names: what is behind it. */
static size_t next_name(const char **names) {
    *names += strspn(*names, " ");
    return strcspn(*names, " ");
}

/* Whatever stands between its words. */
static bool is_name(const char *name, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (name[i] != text[i] && !(name[i] == '-' && text[i] == '_')) return false;
    return true;
}

static bool is_called(const option_row *row, const char *text, size_t length) {
    const char *names = row->aliases ? row->aliases : "";
    if (row->name && strlen(row->name) == length && is_name(row->name, text, length)) return true;
    for (size_t n; (n = next_name(&names)) > 0; names += n)
        if (n == length && is_name(names, text, length)) return true;
    return false;
}

static const option_row *find_long(const table *all, const char *name, size_t length) {
    for (int i = 0; i < all->n; i++)
        if (is_called(&all->rows[i], name, length)) return &all->rows[i];
    return NULL;
}

static const option_row *find_letter(const table *all, char letter) {
    for (int i = 0; i < all->n; i++)
        if (all->rows[i].letter && all->rows[i].letter == letter) return &all->rows[i];
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

/* What torchrun has: of the other tools these are no options. cltrain-run has its own. */
static bool is_of_launcher(const char *word, size_t length) {
    static const char *const names[] = {"nproc-per-node", "nnodes", "node-rank", "master-addr", "master-port", "standalone", "max-restarts", "np"};
    for (size_t i = 0; strcmp(program_name, "cltrain-run") != 0 && i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && is_name(names[i], word, length)) return true;
    return false;
}

static int refuse_option(const table *all, const char *text) {
    const char *word = text[1] == '-' ? text + 2 : text + 1, *nearest = NULL;
    size_t length = strcspn(word, "=");
    int least = 3; /* further words are no likely slips */
    for (int i = 0; i < all->n && length > 1; i++) {
        const char *name = all->rows[i].name, *others = all->rows[i].aliases ? all->rows[i].aliases : "";
        if (!name) continue;
        int d = distance(word, length, name, strlen(name));
        for (size_t n; (n = next_name(&others)) > 0; others += n) {
            int other = distance(word, length, others, n);
            if (other < d) d = other;
        }
        if (d < least && 5 * d <= 2 * (int)length) least = d, nearest = name;
    }
    if (is_of_launcher(word, length)) return usage_error("unknown option '%s': cltrain-run starts several processes, cltrain-run --help tells how", text);
    if (nearest) return usage_error("unknown option '%s': did you mean --%s?", text, nearest);
    return usage_error("unknown option '%s'", text);
}

static bool takes_value(const option_row *row) {
    return row->kind != OPTION_FLAG && row->kind != OPTION_COUNTER;
}

/* "-vv": options of one letter, without values, in one argument. False: it is not that. */
static bool parse_letters(const table *all, void *into, const char *text) {
    if (text[1] == '-' || !text[2]) return false;
    for (const char *c = text + 1; *c; c++) {
        const option_row *row = find_letter(all, *c);
        if (!row || takes_value(row)) return false;
    }
    for (const char *c = text + 1; *c; c++) read_value(find_letter(all, *c), "", into);
    return true;
}

/* One option at argv[*i]; moves *i onto a value that is an argument of its own. */
static int parse_option(const table *all, void *into, int argc, char **argv, int *i) {
    const char *text = argv[*i], *name = text + 1 + (text[1] == '-');
    size_t length = strcspn(name, "=");
    const option_row *row = length > 1 || name > text + 1 ? find_long(all, name, length) : find_letter(all, name[0]);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    char expected[128], typed[64]; /* the name as it was typed, where it is another one than the table's */
    snprintf(typed, sizeof typed, "--%.*s", row && length > 1 ? (int)length : 0, name);
    if (!row && name == text + 1 && length > 1) { /* "-n4" */
        row = find_letter(all, name[0]);
        if (row && takes_value(row)) value = name + 1;
        else row = NULL;
    }
    if (!row) return parse_letters(all, into, text) ? 0 : refuse_option(all, text);
    if (!typed[2]) snprintf(typed, sizeof typed, "--%s", row->name);
    describe_value(row, expected, sizeof expected);
    if (!takes_value(row)) {
        if (value) return usage_error("%s takes no value, but has '%s'", typed, value);
    } else if (!value && row->kind == OPTION_OPTIONAL) {
        value = row->low && *i + 1 < argc && text_has_suffix(argv[*i + 1], ".json") ? argv[++*i] : row->standard;
    } else if (!value) {
        const char *next = *i + 1 < argc ? argv[*i + 1] : "--";
        bool missing = strncmp(next, "--", 2) == 0 || (row->standard && next[0] == '-' && next[1]);
        if (missing && !row->standard) return usage_error("%s needs a value: expected %s", typed, expected);
        value = missing ? row->standard : argv[++*i];
    }
    if (read_value(row, value, into)) return 0;
    bool real = row->kind == OPTION_POSITIVE || row->kind == OPTION_NOT_NEGATIVE;
    if (real && number_too_large(value)) return usage_error("%s '%s': expected at most %.3g", typed, value, (double)FLT_MAX);
    return usage_error("%s '%s': expected %s", typed, value, expected);
}

/* take_word NULL: up to the first word. *n: how many arguments were read. */
static int parse(const table *all, int argc, char **argv, void *into, int (*take_word)(void *into, const char *text), int *n) {
    bool words_only = false;
    for (*n = 0; *n < argc; ++*n) {
        int code = 0;
        const char *text = argv[*n];
        if (!words_only && strcmp(text, "--") == 0) words_only = true;
        else if (!words_only && text[0] == '-' && text[1]) code = parse_option(all, into, argc, argv, n);
        else if (!take_word) return 0;
        else code = take_word(into, text);
        if (code) return code;
    }
    return 0;
}

int option_parse(const option_row *rows, int n_rows, int argc, char **argv, void *into,
                 int (*take_word)(void *into, const char *text)) {
    int n;
    return parse(&(table){rows, n_rows}, argc, argv, into, take_word, &n);
}

int option_parse_front(const option_row *rows, int n_rows, int argc, char **argv, void *into, int *n) {
    return parse(&(table){rows, n_rows}, argc, argv, into, NULL, n);
}

/* ---- help ---- */

/* "  -d, --data SPEC         first line", further lines below it, in 80 columns. */
static void print_row(FILE *file, const option_row *row) {
    char left[64], letter[8] = "    ";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const char *before = !row->argument ? "" : row->kind == OPTION_OPTIONAL ? "[=" : row->standard ? " [" : " ";
    snprintf(left, sizeof left, "  %s--%s%s%s%s", letter, row->name, before, row->argument ? row->argument : "", row->standard ? "]" : "");
    help_words(file, HELP_COLUMN, fprintf(file, "%-*s ", HELP_COLUMN - 1, left), row->help);
}

/* "--name<TAB>a|b|c", of choices, or the argument's name: for tools/completion, whose scripts ask for it so. */
static void print_name_for_completion(FILE *file, const option_row *row, const char *dashes, const char *name, size_t length) {
    fprintf(file, "%s%.*s\t%s", dashes, (int)length, name, row->choices || !row->argument ? "" : row->argument);
    for (int k = 0; row->choices && row->choices[k]; k++) fprintf(file, "%s%s", k ? "|" : "", row->choices[k]);
    fprintf(file, "\n");
}

static void print_for_completion(FILE *file, const option_row *row) {
    const char *others = row->aliases ? row->aliases : "";
    print_name_for_completion(file, row, "--", row->name, strlen(row->name));
    for (size_t n; (n = next_name(&others)) > 0; others += n) print_name_for_completion(file, row, n > 2 ? "--" : "-", others, n);
    if (row->letter) print_name_for_completion(file, row, "-", &row->letter, 1);
}

void option_print(const option_row *rows, int n_rows, FILE *file) {
    bool completes = getenv("CLTRAIN_COMPLETION") != NULL;
    for (int i = 0; i < n_rows; i++) {
        if (completes && rows[i].kind != OPTION_HEADING) print_for_completion(file, &rows[i]);
        else if (rows[i].kind == OPTION_HEADING) fprintf(file, "\n%s\n", rows[i].help);
        else print_row(file, &rows[i]);
    }
}

bool option_given(const option_row *row, const void *read, const void *standard) {
    static const size_t sizes[] = {[OPTION_HEADING] = 0, [OPTION_FLAG] = sizeof(bool), [OPTION_COUNTER] = sizeof(int), [OPTION_WHOLE] = sizeof(int64_t),
                                   [OPTION_SEED] = sizeof(int64_t), [OPTION_POSITIVE] = sizeof(double), [OPTION_NOT_NEGATIVE] = sizeof(double),
                                   [OPTION_FRACTION] = sizeof(double), [OPTION_CHOICE] = sizeof(int), [OPTION_TEXT] = sizeof(char *), [OPTION_OPTIONAL] = sizeof(char *)};
    return memcmp((const char *)read + row->offset, (const char *)standard + row->offset, sizes[row->kind]) != 0;
}
