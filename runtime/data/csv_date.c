#include "runtime/data/csv_date.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/base.h"

static const char digits[] = "0123456789", letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static bool is_month_number(const char *text, size_t n) {
    long month = strtol(text, NULL, 10);
    return n <= 2 && month >= 1 && month <= 12;
}

static bool is_numeric(const char *text) {
    enum { MOST = 3 };
    size_t n[MOST] = {0};
    const char *part[MOST];
    int parts = 0;
    char between = *text ? text[strspn(text, digits)] : 0;
    if (!between || !strchr("-/.", between)) return false;
    for (bool more = true; more; parts++) {
        if (parts == MOST) return false;
        part[parts] = text;
        n[parts] = strspn(text, digits);
        text += n[parts];
        more = *text == between;
        text += more;
    }
    if (parts == 2 && between == '.') return false; /* a number */
    if (parts == 2) return !*text && ((n[0] == 4 && is_month_number(part[1], n[1])) || (n[1] == 4 && is_month_number(part[0], n[0])));
    if (*text && !((*text == ' ' || *text == 'T') && strspn(text + 1, digits))) return false;
    bool short_year = n[2] == 2 && (between == '/' ? n[0] && n[0] <= 2 && n[1] && n[1] <= 2 : n[0] == 2 && n[1] == 2), first = n[0] == 4, last = n[2] == 4;
    size_t most = CLT_MAX(CLT_MAX(first ? 0 : n[0], n[1]), last ? 0 : n[2]), least = CLT_MIN(CLT_MIN(n[0], n[1]), n[2]);
    return short_year || (first != last && least > 0 && most <= 2);
}

/* One of the names, or its first three letters and maybe more. */
static bool is_one_of(const char *word, size_t n, const char *const *names) {
    for (; *names; names++)
        if (n >= 3 && n <= strlen(*names) && !strncasecmp(word, *names, n)) return true;
    return false;
}

static bool is_beside(const char *word, size_t n) {
    static const char *const words[] = {"am", "pm", "st", "nd", "rd", "th", "of", "t", "z", "utc", "gmt", NULL};
    for (const char *const *w = words; *w; w++)
        if (n == strlen(*w) && !strncasecmp(word, *w, n)) return true;
    return false;
}

static bool has_month_name(const char *text) {
    static const char *const months[] = {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december", NULL};
    static const char *const weekdays[] = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", NULL};
    int named = 0, numbers = 0;
    while (*text) {
        size_t number = strspn(text, digits), word = strspn(text, letters);
        if (number) numbers++;
        else if (word && is_one_of(text, word, months)) named++;
        else if (word ? !is_one_of(text, word, weekdays) && !is_beside(text, word) : !strchr(" ,-/.:+", *text)) return false;
        text += number ? number : word ? word : 1;
    }
    return named == 1 && numbers > 0;
}

bool clt_csv_is_date(const char *text) {
    return is_numeric(text) || has_month_name(text);
}
