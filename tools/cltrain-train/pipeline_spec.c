#include "pipeline_spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"

static bool parse_count(const char *value, int64_t low, int *count) {
    int64_t number;
    if (!number_whole(value, low, 4096, &number)) return false;
    *count = (int)number;
    return true;
}

/* Names have colons between them, for commas are between keys. */
static bool parse_split(pipeline_spec *spec, const char *value) {
    if (!*value || snprintf(spec->split, sizeof spec->split, "%s", value) >= (int)sizeof spec->split) return false;
    for (char *at = spec->split; *at; at++)
        if (*at == ':') *at = ',';
    return true;
}

static bool parse_key(pipeline_spec *spec, const char *key, const char *value) {
    if (!strcmp(key, "stages")) return parse_count(value, 2, &spec->options.stages);
    if (!strcmp(key, "microbatches")) return parse_count(value, 1, &spec->options.microbatches);
    if (!strcmp(key, "chunks")) return parse_count(value, 1, &spec->options.chunks);
    if (!strcmp(key, "split")) return parse_split(spec, value);
    const char *name;
    for (int i = 0; !strcmp(key, "schedule") && (name = clt_pipeline_schedule_name((clt_pipeline_schedule)i)); i++) {
        spec->options.schedule = (clt_pipeline_schedule)i;
        if (!strcmp(value, name)) return true;
    }
    return false;
}

static bool parse(pipeline_spec *spec, char *text) {
    for (char *part = text, *next; part; part = next) {
        char *value = strchr(part, '=');
        next = strchr(part, ',');
        if (next) *next++ = '\0';
        if (!value) return false;
        *value++ = '\0';
        if (!parse_key(spec, part, value)) return false;
    }
    return true;
}

int pipeline_spec_parse(pipeline_spec *spec, const char *text) {
    char copy[512];
    *spec = (pipeline_spec){0};
    if (snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy && parse(spec, copy)) return 0;
    return usage_error("--pipeline '%s': expected some of stages=N from 2, microbatches=N from 1, schedule=1f1b|gpipe|zb-h1|interleaved, chunks=N from 1 and split=LAYER:LAYER:..., with commas between them", text);
}
