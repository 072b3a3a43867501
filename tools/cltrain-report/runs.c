#include "runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

enum { MOST_FILE_BYTES = 1 << 28, MOST_LINE_BYTES = 1 << 24 };

static int refuse(const char *path, int line, const char *why) {
    if (line) run_error("%s, line %d: %s; expected what cltrain-train --log writes", path, line, why);
    else run_error("%s: %s; expected what cltrain-train --log writes", path, why);
    return EXIT_USAGE;
}

/* Steps from `step` on are done again. */
static void forget(json_t *records, double step) {
    for (size_t i = json_array_size(records); i-- > 0;)
        if (json_number_value(json_object_get(json_array_get(records, i), "step")) > step) json_array_remove(records, i);
}

static void take_start(run *r, json_t *event) {
    double done = json_number_value(json_object_get(event, "steps"));
    json_decref(r->start);
    json_decref(r->end);
    r->start = json_incref(event);
    r->end = NULL;
    forget(r->records, done);
    forget(r->epochs, done);
}

static int take_event(run *r, json_t *event, int line) {
    document_clean(event);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (!kind) return refuse(r->path, line, "no \"event\"");
    if (!strcmp(kind, "start")) return take_start(r, event), 0;
    if (!r->start) return refuse(r->path, line, "a run that does not begin with \"start\"");
    if (!strcmp(kind, "progress") || !strcmp(kind, "test") || !strcmp(kind, "epoch")) json_array_append(r->records, event);
    if (!strcmp(kind, "epoch")) json_array_append(r->epochs, event);
    if (!strcmp(kind, "epoch") && json_object_get(event, "validation_loss")) r->held_out = "validation";
    if (!strcmp(kind, "end")) {
        json_decref(r->end);
        r->end = json_incref(event);
    }
    return 0; /* others are of later versions */
}

/* `whole`: its end was there. */
static int take_line(run *r, const char *text, size_t length, bool whole, int line) {
    json_error_t error;
    if (!length || (length == 1 && text[0] == '\r')) return 0;
    if (length > MOST_LINE_BYTES) return refuse(r->path, line, "a line of more than 16 MiB");
    json_t *event = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!event && !whole) return 0;
    if (!json_is_object(event)) {
        json_decref(event);
        return refuse(r->path, line, "no JSON object");
    }
    int code = take_event(r, event, line);
    json_decref(event);
    return code;
}

static int read_whole(const char *path, char **text, size_t *length) {
    struct stat facts;
    *text = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return run_error("%s cannot be opened: %s", path, strerror(errno)), EXIT_USAGE;
    int code = fstat(fileno(file), &facts) || !S_ISREG(facts.st_mode) ? refuse(path, 0, "not a regular file")
               : facts.st_size > MOST_FILE_BYTES                      ? refuse(path, 0, "larger than 256 MiB")
                                                                       : 0;
    if (!code && !(*text = malloc((size_t)facts.st_size + 1))) code = run_error("no memory for %s", path);
    if (!code) *length = fread(*text, 1, (size_t)facts.st_size, file);
    if (!code && ferror(file)) code = run_error("%s cannot be read", path);
    fclose(file);
    return code;
}

int run_read(run *r, const char *path) {
    char *text;
    size_t length = 0;
    int line = 0, code = read_whole(path, &text, &length);
    *r = (run){.path = path, .held_out = "test", .records = json_array(), .epochs = json_array()};
    for (const char *at = text, *end = text + length; !code && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        code = take_line(r, at, (size_t)((stop ? stop : end) - at), stop != NULL, ++line);
        at = stop ? stop + 1 : end;
    }
    free(text);
    if (!code && !r->start) code = refuse(path, 0, "no run");
    if (code) run_free(r);
    return code;
}

void run_free(run *r) {
    json_decref(r->start);
    json_decref(r->records);
    json_decref(r->epochs);
    json_decref(r->end);
    *r = (run){.path = NULL};
}
