#include "hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TEXT = 120 };

/* Whether one of the hooks, with `;` between them, begins with the word; `text` becomes what follows in it. */
static bool asked(const char *word, char text[MOST_TEXT]) {
    const char *hook = getenv("CLTRAIN_PROBE_TEST");
    size_t length = strlen(word);
    for (; hook; hook = strchr(hook, ';') ? strchr(hook, ';') + 1 : NULL) {
        if (strncmp(hook, word, length) != 0) continue;
        snprintf(text, MOST_TEXT, "%.*s", (int)strcspn(hook + length, ";"), hook + length);
        return true;
    }
    return false;
}

bool hook_any(void) {
    return getenv("CLTRAIN_PROBE_TEST") != NULL;
}

bool hook_has_row(const char *name) {
    char text[MOST_TEXT], *rest = NULL;
    if (!asked("only ", text)) return true;
    for (const char *one = strtok_r(text, "|", &rest); one; one = strtok_r(NULL, "|", &rest))
        if (strstr(name, one)) return true;
    return false;
}

void hook_row(const char *name) {
    char text[MOST_TEXT];
    if (asked("crash ", text) && strstr(name, text)) abort();
    while (asked("hang ", text) && strstr(name, text)) pause();
}

void hook_measure(clt_measure_options *options) {
    char text[MOST_TEXT];
    if (asked("samples=", text)) options->most_samples = atoi(text);
}

static void slow_down(json_t *us, double factor) {
    for (size_t i = 0; i < json_array_size(us); i++)
        json_array_set_new(us, i, json_real(json_number_value(json_array_get(us, i)) * factor));
}

void hook_samples(const char *name, json_t *us) {
    char text[MOST_TEXT], *of;
    if (!asked("slow=", text)) return;
    double factor = strtod(text, &of);
    if (*of == ' ' && strstr(name, of + 1)) slow_down(us, factor);
}

bool hook_apart(void) {
    char text[MOST_TEXT];
    return asked("apart", text);
}
