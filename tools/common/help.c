#include "tools/common/help.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum { WIDTH = 80, FAR_IN = 10 };

void help_words(FILE *file, int column, int printed, const char *words) {
    int at = printed;
    bool begins = true; /* a line, or the words of a row */
    words += strspn(words, " \n");
    while (*words) {
        int length = (int)strcspn(words, " \n");
        if (at + !begins + length > WIDTH && at > column) {
            at = fprintf(file, "\n%*s", column, "") - 1;
            begins = true;
        }
        at += fprintf(file, "%s%.*s", begins ? "" : " ", length, words);
        begins = false;
        words += length;
        words += strspn(words, " \n");
    }
    fputc('\n', file);
}

static int indent_of(const char *line) {
    return (int)strspn(line, " ");
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Where the words of a row begin; NULL: it has none. */
static const char *words_of(const char *row) {
    const char *end = row + strcspn(row, "\n"), *gap = row + indent_of(row);
    while (gap < end && strncmp(gap, "  ", 2) != 0) gap++;
    gap += strspn(gap, " ");
    return gap < end ? gap : NULL;
}

/* Without the lines that follow it at once, up to `end`: these are words, too. */
static void print_row(FILE *file, const char *row, const char *end) {
    char words[4096];
    const char *first = words_of(row), *name_end = first ? first : row + strcspn(row, "\n");
    while (first && name_end > row && name_end[-1] == ' ') name_end--;
    const char *from = first ? first : next_line(row);
    snprintf(words, sizeof words, "%.*s", (int)(end - from), from);
    int column = first && first - row < HELP_COLUMN ? (int)(first - row) : HELP_COLUMN, printed = fprintf(file, "%.*s", (int)(name_end - row), row);
    if (!words[strspn(words, " \n")]) {
        fputc('\n', file);
        return;
    }
    if (printed >= column) fputc('\n', file), printed = 0;
    help_words(file, column, printed + fprintf(file, "%*s", column - printed, ""), words);
}

void help_print(FILE *file, const char *format, ...) {
    char whole[8192];
    const char *text = whole;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    while (*text) {
        const char *end = next_line(text);
        bool is_row = indent_of(text) > 0;
        while (*end && *end != '\n' && (is_row ? indent_of(end) >= FAR_IN : indent_of(end) == 0)) end = next_line(end);
        if (*text == '\n') {
            fputc('\n', file);
            end = text + 1;
        } else if (is_row) print_row(file, text, end);
        else {
            char words[4096];
            snprintf(words, sizeof words, "%.*s", (int)(end - text), text);
            help_words(file, 0, 0, words);
        }
        text = end;
    }
}
