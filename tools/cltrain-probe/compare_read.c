/*
 * What a comparison is made of: two benches, read row by row, and refused where they are no benches of one device or say what no
 * bench does. Files may have been cut, edited or mixed up since they were written.
 */
#include "compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

/* ---- rows of both ---- */

typedef struct pass_samples {
    double us[MOST_SAMPLES / LEAST_PASSES], best;
    int n;
} pass_samples;

static bool read_pass(pass_samples *pass, const json_t *list) {
    size_t i;
    const json_t *sample;
    *pass = (pass_samples){.best = INFINITY};
    if (!json_is_array(list) || json_array_size(list) > MOST_SAMPLES / LEAST_PASSES) return false;
    json_array_foreach(list, i, sample) {
        double us = json_number_value(sample);
        if (!json_is_number(sample) || !(us > 1e-9 && us < 1e15)) return false;
        pass->us[pass->n++] = us;
        pass->best = us < pass->best ? us : pass->best;
    }
    return true;
}

static int by_best(const void *a, const void *b) {
    double x = ((const pass_samples *)a)->best, y = ((const pass_samples *)b)->best;
    return (x > y) - (x < y);
}

/* How far sorted passes are above the best of them: as many of another bench may all be there. */
static double spread_of(const side *s, const pass_samples *passes) {
    double middle = log(passes[s->n_passes / 2].best / passes[0].best), most = log(passes[3 * s->n_passes / 4].best / passes[0].best);
    return 1.5 * middle > most ? 1.5 * middle : most;
}

static void keep_best(side *s, pass_samples *passes) {
    if (s->n_passes == 0) return;
    qsort(passes, (size_t)s->n_passes, sizeof *passes, by_best);
    s->time = passes[s->n_passes < LEAST_PASSES ? 0 : LEAST_PASSES / 2].best;
    s->spread = spread_of(s, passes);
    for (int p = 0; p < s->n_passes; p++)
        for (int i = 0; i < passes[p].n && s->n < MOST_SAMPLES; i++) s->us[s->n++] = passes[p].us[i];
    s->n_passes = s->n_passes < LEAST_PASSES ? s->n_passes : LEAST_PASSES;
    for (int p = 0; p < s->n_passes; p++) s->passes[p] = passes[p].best;
}

static bool read_samples(side *s, const json_t *list) {
    pass_samples passes[MOST_PASSES];
    size_t p;
    const json_t *pass;
    if (!json_is_array(list)) return false;
    json_array_foreach(list, p, pass) {
        if (s->n_passes == MOST_PASSES || !read_pass(&passes[s->n_passes], pass)) return false;
        s->n_passes += passes[s->n_passes].n > 0;
    }
    keep_best(s, passes);
    return !s->ok || s->n > 0;
}

/* The median that stands beside the samples is that of these samples; what is more than twice as far off was never written so. */
static bool is_their_median(const side *s, const json_t *times) {
    double told = json_number_value(json_object_get(times, "p50")), median = statistics_median(s->us, s->n);
    return s->n == 0 || !json_is_object(times) || (told <= 2 * median && median <= 2 * told);
}

/* A bench calls such a row wrong. */
static bool is_too_far_off(const json_t *check, const char *error) {
    const json_t *nmse = json_object_get(check, error), *limit = json_object_get(check, "limit");
    return json_is_number(nmse) && json_is_number(limit) && json_number_value(nmse) > json_number_value(limit);
}

/* NULL, or why this row is not what a bench writes. */
static const char *read_side(side *s, const json_t *row) {
    const json_t *check = json_object_get(row, "check");
    *s = (side){.row = row, .ok = strcmp(document_string(row, "status"), "ok") == 0};
    if (!read_samples(s, json_object_get(row, "samples_us"))) return "samples of a result are damaged";
    if (!is_their_median(s, json_object_get(row, "time_us"))) return "a result is damaged: its samples and its median contradict each other";
    if (s->ok && (is_too_far_off(check, "nmse") || is_too_far_off(check, "nmse_after")))
        return "a result is damaged: it is ok, with an error above its limit";
    return NULL;
}

/* places: of keys among the pairs. */
static pair *find_pair(comparison *c, const json_t *places, const char *key) {
    const json_t *place = json_object_get(places, key);
    return place ? &c->pairs[json_integer_value(place)] : NULL;
}

int comparison_refuse(comparison *c, int which, const char *format, ...) {
    va_list values;
    va_start(values, format);
    c->refused = which;
    vsnprintf(c->why, sizeof c->why, format, values);
    va_end(values);
    return EXIT_NOT_COMPARABLE;
}

static int read_rows(comparison *c, json_t *places, int which) {
    size_t i;
    const json_t *row, *results = json_object_get(c->documents[which], "results");
    pair *pairs = realloc(c->pairs, ((size_t)c->n + json_array_size(results) + 1) * sizeof *pairs);
    if (!pairs) return comparison_refuse(c, which, "there is no memory for it");
    c->pairs = pairs;
    json_array_foreach(results, i, row) {
        const char *key = document_string(row, "key");
        if (!key[0]) return comparison_refuse(c, which, "a result has no key");
        pair *p = find_pair(c, places, key);
        if (p && p->sides[which].row) return comparison_refuse(c, which, "a result stands there twice");
        if (!p) {
            if (json_object_set_new(places, key, json_integer(c->n)) < 0) return comparison_refuse(c, which, "there is no memory for it");
            p = &c->pairs[c->n++];
            *p = (pair){.key = key, .is_limit = strcmp(document_string(row, "kind"), "limit") == 0, .p = 1};
        }
        const char *why = read_side(&p->sides[which], row);
        if (why) return comparison_refuse(c, which, "%s: '%.200s'", why, key);
    }
    return 0;
}

/* ---- whole documents ---- */

static int check_document(comparison *c, int which) {
    const json_t *d = c->documents[which];
    if (strcmp(document_string(d, "kind"), "bench") != 0) return comparison_refuse(c, which, "it is not a bench");
    if (!json_is_true(json_object_get(d, "complete"))) return comparison_refuse(c, which, "the bench was cut short");
    if (!json_is_array(json_object_get(d, "results")) || json_array_size(json_object_get(d, "results")) == 0)
        return comparison_refuse(c, which, "it has no results");
    if (json_array_size(json_object_get(d, "devices")) != 1) return comparison_refuse(c, which, "it names no device");
    return 0;
}

static const json_t *device_of(const comparison *c, int which) {
    return json_array_get(json_object_get(c->documents[which], "devices"), 0);
}

static int check_devices(comparison *c) {
    static const char *const same[] = {"id", "name", "platform"}, *const told[] = {"driver"};
    const json_t *a = device_of(c, 0), *b = device_of(c, 1);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (strcmp(document_string(a, same[i]), document_string(b, same[i])) == 0) continue;
        return comparison_refuse(c, -1, "not comparable: the device's %s is '%.120s' and '%.120s'", same[i], document_string(a, same[i]),
                                 document_string(b, same[i]));
    }
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(document_string(a, told[i]), document_string(b, told[i])) != 0)
            warning("the device's %s is '%s' and '%s'", told[i], document_string(a, told[i]), document_string(b, told[i]));
    const char *cpu_a = document_string(json_object_get(c->documents[0], "host"), "cpu");
    const char *cpu_b = document_string(json_object_get(c->documents[1], "host"), "cpu");
    if (strcmp(cpu_a, cpu_b) != 0) warning("the host is '%s' and '%s'", cpu_a, cpu_b);
    return 0;
}

int comparison_read(comparison *c) {
    int code = 0;
    json_t *places = json_object();
    for (int i = 0; i < 2 && !code; i++) code = check_document(c, i);
    for (int i = 0; i < 2 && !code; i++) code = read_rows(c, places, i);
    json_decref(places);
    return code ? code : check_devices(c);
}
