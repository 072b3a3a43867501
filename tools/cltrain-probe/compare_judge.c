/*
 * Benches compared row by row.
 *
 * What else a machine is at only adds time: of each row the three best passes are looked at, by the best sample of each; a
 * row's time is the middle one of them. A row counts as changed only if all of these say so: its time differs by more than a
 * threshold; the ranks of the samples differ by more than chance, over all rows; and none of these passes of the one is like any
 * of the other. The threshold is three times what they differ by in the median row of one bench; for a row whose own passes
 * differ more, its own. A machine's clock moves all rows alike: where the device's limits and the ops moved alike, that is the
 * machine's, and is taken out. Where the limits moved apart from each other, the machine was another one to some rows than to
 * others, and the threshold is above that, too.
 */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"

const char *const change_names[] = {"same", "faster", "slower", "broken", "appeared", "gone", "mended", "neither", "untold"};

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

/* False where samples are not what a bench writes. */
static bool read_side(side *s, const json_t *row) {
    pass_samples passes[MOST_PASSES];
    size_t p;
    const json_t *pass, *list = json_object_get(row, "samples_us");
    *s = (side){.row = row, .ok = strcmp(document_string(row, "status"), "ok") == 0};
    if (!json_is_array(list)) return false;
    json_array_foreach(list, p, pass) {
        if (s->n_passes == MOST_PASSES || !read_pass(&passes[s->n_passes], pass)) return false;
        s->n_passes += passes[s->n_passes].n > 0;
    }
    keep_best(s, passes);
    return !s->ok || s->n > 0;
}

static pair *find_pair(comparison *c, const char *key) {
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->pairs[i].key, key) == 0) return &c->pairs[i];
    return NULL;
}

static int not_comparable(const char *path, const char *why) {
    run_error("%s: %s", path, why);
    return EXIT_NOT_COMPARABLE;
}

static int read_rows(comparison *c, int which, const char *path) {
    size_t i;
    const json_t *row, *results = json_object_get(c->documents[which], "results");
    pair *pairs = realloc(c->pairs, ((size_t)c->n + json_array_size(results) + 1) * sizeof *pairs);
    if (!pairs) return not_comparable(path, "there is no memory for it");
    c->pairs = pairs;
    json_array_foreach(results, i, row) {
        const char *key = document_string(row, "key");
        if (!key[0]) return not_comparable(path, "a result has no key");
        pair *p = find_pair(c, key);
        if (p && p->sides[which].row) return not_comparable(path, "a result stands there twice");
        if (!p) {
            p = &c->pairs[c->n++];
            *p = (pair){.key = key, .is_limit = strcmp(document_string(row, "kind"), "limit") == 0, .p = 1};
        }
        if (!read_side(&p->sides[which], row)) return not_comparable(path, "samples of a result are damaged");
    }
    return 0;
}

/* ---- whole documents ---- */

static int check_document(const json_t *d, const char *path) {
    if (strcmp(document_string(d, "kind"), "bench") != 0) return not_comparable(path, "it is no bench");
    if (!json_is_true(json_object_get(d, "complete"))) return not_comparable(path, "the bench was cut short");
    if (!json_is_array(json_object_get(d, "results")) || json_array_size(json_object_get(d, "results")) == 0)
        return not_comparable(path, "it has no results");
    if (json_array_size(json_object_get(d, "devices")) != 1) return not_comparable(path, "it names no device");
    return 0;
}

static const json_t *device_of(const comparison *c, int which) {
    return json_array_get(json_object_get(c->documents[which], "devices"), 0);
}

static int check_devices(const comparison *c) {
    static const char *const same[] = {"id", "name", "platform"}, *const told[] = {"driver"};
    const json_t *a = device_of(c, 0), *b = device_of(c, 1);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (strcmp(document_string(a, same[i]), document_string(b, same[i])) == 0) continue;
        run_error("not comparable: the device's %s is '%s' and '%s'", same[i], document_string(a, same[i]), document_string(b, same[i]));
        return EXIT_NOT_COMPARABLE;
    }
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(document_string(a, told[i]), document_string(b, told[i])) != 0)
            warning("the device's %s is '%s' and '%s'", told[i], document_string(a, told[i]), document_string(b, told[i]));
    const char *cpu_a = document_string(json_object_get(c->documents[0], "host"), "cpu");
    const char *cpu_b = document_string(json_object_get(c->documents[1], "host"), "cpu");
    if (strcmp(cpu_a, cpu_b) != 0) warning("the host is '%s' and '%s'", cpu_a, cpu_b);
    return 0;
}

/* ---- judging ---- */

bool comparison_has_both(const pair *p) {
    return p->sides[0].ok && p->sides[1].ok;
}

/* Builds and transfers are no sign of how fast the device is. */
static bool is_of_host(const pair *p) {
    return p->is_limit && (strstr(p->key, "build") || strstr(p->key, "load"));
}

static bool is_build(const pair *p) {
    return p->is_limit && strstr(p->key, "build");
}

/* The logarithms of the ratios of times: of the limits, or of the ops. Returns how many. */
static int shifts_of(const comparison *c, bool limits, double logs[MOST_SAMPLES]) {
    int n = 0;
    for (int i = 0; i < c->n && n < MOST_SAMPLES; i++) {
        const pair *p = &c->pairs[i];
        if (comparison_has_both(p) && p->is_limit == limits && !is_of_host(p)) logs[n++] = log(p->sides[1].time / p->sides[0].time);
    }
    return n;
}

static double shift_of(const comparison *c, bool limits, int *count) {
    double logs[MOST_SAMPLES];
    *count = shifts_of(c, limits, logs);
    return *count ? statistics_median(logs, *count) : 0;
}

/* By how much the limits moved apart: two standard deviations, from the median deviation, which a few rows do not move. */
static double scatter_of(const comparison *c) {
    const double deviations = 2 * 1.4826;
    double logs[MOST_SAMPLES];
    int n = shifts_of(c, true, logs);
    if (n < 5) return 0;
    double middle = statistics_median(logs, n);
    for (int i = 0; i < n; i++) logs[i] = fabs(logs[i] - middle);
    return deviations * statistics_median(logs, n);
}

/* The limits are not touched by how good the kernels of ops are: where they moved with the ops, as far and no further, the
 * machine did it. Where they did not, nothing is taken to be the machine's: it may be the build that is slower all over. */
static void find_drift(comparison *c) {
    int n_limits, n_ops;
    double limits = shift_of(c, true, &n_limits), ops = shift_of(c, false, &n_ops);
    c->drift = n_limits >= 3 && n_ops >= 3 && fabs(ops - limits) < 0.5 * c->threshold ? ops : 0;
}

static void range_of(const side *s, double factor, double *least, double *most) {
    *least = INFINITY, *most = 0;
    for (int i = 0; i < s->n_passes; i++) {
        double us = s->passes[i] / factor;
        *least = us < *least ? us : *least;
        *most = us > *most ? us : *most;
    }
}

/* Whether the passes of both lie apart, by more than those of either differ. `shift` is the logarithm of what is to be told. */
static bool lie_apart(const side *a, const side *b, double factor, double shift) {
    double least[2], most[2];
    range_of(a, 1, &least[0], &most[0]);
    range_of(b, factor, &least[1], &most[1]);
    for (int s = 0; s < 2; s++)
        if (log(most[s] / least[s]) > fabs(shift)) return false;
    return least[0] > most[1] || least[1] > most[0];
}

/* What the best passes differ by in the median row, of the bench where that is more. */
static double noise_of(const comparison *c) {
    double noise = 0, logs[MOST_SAMPLES];
    for (int which = 0; which < 2; which++) {
        int n = 0;
        for (int i = 0; i < c->n && n < MOST_SAMPLES; i++) {
            double least, most;
            const side *s = &c->pairs[i].sides[which];
            if (!s->row || s->n_passes < LEAST_PASSES) continue;
            range_of(s, 1, &least, &most);
            logs[n++] = log(most / least);
        }
        double middle = n ? statistics_median(logs, n) : 0;
        noise = middle > noise ? middle : noise;
    }
    return noise;
}

/* Builds are not repeated until they settle, as other rows are: their best passes may all three have met a busy disk or compiler. */
static double own_threshold(const comparison *c, const pair *p) {
    double spread = p->sides[0].spread > p->sides[1].spread ? p->sides[0].spread : p->sides[1].spread;
    double least = is_build(p) ? 2 * c->threshold : c->threshold;
    return spread > least ? spread : least;
}

static void judge_both(const comparison *c, pair *p) {
    const double error_rate = 0.01; /* of all rows together */
    const side *a = &p->sides[0], *b = &p->sides[1];
    double drift = is_of_host(p) ? 0 : c->drift, factor = exp(drift), scaled[MOST_SAMPLES];
    for (int i = 0; i < b->n; i++) scaled[i] = b->us[i] / factor;
    p->p = statistics_rank_test(a->us, a->n, scaled, b->n);
    double shift = log(b->time / a->time) - drift;
    p->ratio = b->time / factor / a->time;
    p->threshold = own_threshold(c, p);
    bool enough = a->n_passes >= LEAST_PASSES && b->n_passes >= LEAST_PASSES;
    bool real = enough && fabs(shift) > p->threshold && p->p * c->both < error_rate && lie_apart(a, b, factor, shift);
    p->change = !enough ? UNTOLD : !real ? SAME : shift > 0 ? SLOWER : FASTER;
}

static bool had_no_time(const side *s) {
    return strcmp(document_string(s->row, "status"), "timeout") == 0 && strstr(document_string(s->row, "reason"), "no time was left");
}

static bool is_suspect(const side *s) {
    return strcmp(document_string(s->row, "status"), "suspect") == 0;
}

static void judge(comparison *c) {
    for (int i = 0; i < c->n; i++) c->both += comparison_has_both(&c->pairs[i]);
    double noise = 3 * noise_of(c), scatter = scatter_of(c);
    c->noise = noise > scatter ? noise : scatter;
    c->threshold = c->noise > c->threshold ? c->noise : c->threshold;
    find_drift(c);
    for (int i = 0; i < c->n; i++) {
        pair *p = &c->pairs[i];
        const side *a = &p->sides[0], *b = &p->sides[1];
        if (comparison_has_both(p)) judge_both(c, p);
        else if (!a->row) p->change = APPEARED;
        else if (!b->row) p->change = GONE;
        else p->change = a->ok ? BROKEN : b->ok ? MENDED : NEITHER;
        /* That a run had no time left, or was disturbed so much that a row cannot be believed, is no fault of the build. */
        if (p->change == BROKEN && had_no_time(b)) p->change = GONE;
        if (p->change == MENDED && had_no_time(a)) p->change = APPEARED;
        if ((p->change == BROKEN && is_suspect(b)) || (p->change == MENDED && is_suspect(a))) p->change = UNTOLD;
    }
}

int comparison_count(const comparison *c, change what) {
    int n = 0;
    for (int i = 0; i < c->n; i++) n += c->pairs[i].change == what;
    return n;
}

const char *comparison_verdict(const comparison *c) {
    if (comparison_count(c, SLOWER) + comparison_count(c, BROKEN) > 0) return "worse";
    return comparison_count(c, FASTER) + comparison_count(c, MENDED) > 0 ? "better" : "same";
}

int comparison_make(comparison *c, const json_t *const documents[2], const char *const paths[2], double percent) {
    *c = (comparison){.documents = {documents[0], documents[1]}, .threshold = log1p(percent / 100)};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) code = check_document(documents[i], paths[i]);
    for (int i = 0; i < 2 && !code; i++) code = read_rows(c, i, paths[i]);
    if (!code) code = check_devices(c);
    if (code) return code;
    judge(c);
    bool worse = strcmp(comparison_verdict(c), "worse") == 0;
    if (c->both == 0 && !worse) return not_comparable(paths[1], "no row is there in both");
    if (c->both > 0 && comparison_count(c, SAME) + comparison_count(c, FASTER) == 0 && !worse)
        return not_comparable(paths[1], "no row was measured in 3 passes of both: give bench more --seconds");
    return 0;
}

void comparison_free(comparison *c) {
    free(c->pairs);
    c->pairs = NULL;
}

/* ---- JSON ---- */

static json_t *pair_json(const pair *p) {
    json_t *o = json_pack("{s:s, s:s}", "key", p->key, "change", change_names[p->change]);
    if (!comparison_has_both(p)) return o;
    json_t *more = json_pack("{s:f, s:f, s:f, s:f, s:f}", "a_us", p->sides[0].time, "b_us", p->sides[1].time, "time_ratio",
                             p->ratio, "p_value", p->p, "threshold", expm1(p->threshold));
    json_object_update(o, more);
    json_decref(more);
    return o;
}

json_t *comparison_json(const comparison *c) {
    json_t *document = document_new("compare"), *list = json_array();
    for (int i = 0; i < c->n; i++) json_array_append_new(list, pair_json(&c->pairs[i]));
    json_t *more = json_pack("{s:s, s:f, s:f, s:f, s:i, s:o}", "verdict", comparison_verdict(c), "machine_time_ratio",
                             exp(c->drift), "noise", expm1(c->noise), "threshold", expm1(c->threshold), "compared", c->both,
                             "rows", list);
    json_object_update(document, more);
    json_decref(more);
    return document;
}
