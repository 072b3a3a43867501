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
#include <stdlib.h>
#include <string.h>

#include "statistics.h"
#include "tools/survey/document.h"

const char *const change_names[] = {"same", "faster", "slower", "broken", "appeared", "gone", "fixed", "neither", "inconclusive"};

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
 * machine did it. Where they did not, nothing is taken to be the machine's: it may be the build that is slower all over. Nor is more
 * than a factor of two: clocks do not differ so much, but units of damaged files do, and machines that are called the same. */
static void find_drift(comparison *c) {
    const double most = log(2) + 1e-9;
    int n_limits, n_ops;
    double limits = shift_of(c, true, &n_limits), ops = shift_of(c, false, &n_ops);
    bool together = n_limits >= 3 && n_ops >= 3 && fabs(ops - limits) < 0.5 * c->threshold;
    c->drift = together && fabs(ops) <= most ? ops : 0;
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
    p->change = !enough ? INCONCLUSIVE : !real ? SAME : shift > 0 ? SLOWER : FASTER;
}

/* Files of older versions say "timeout". */
static bool had_no_time(const side *s) {
    const char *status = document_string(s->row, "status");
    return strcmp(status, "not-run") == 0 || (strcmp(status, "timeout") == 0 && strstr(document_string(s->row, "reason"), "no time was left"));
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
        else p->change = a->ok ? BROKEN : b->ok ? FIXED : NEITHER;
        /* That a run had no time left, or was disturbed so much that a row cannot be believed, is no fault of the build. */
        if (p->change == BROKEN && had_no_time(b)) p->change = GONE;
        if (p->change == FIXED && had_no_time(a)) p->change = APPEARED;
        if ((p->change == BROKEN && is_suspect(b)) || (p->change == FIXED && is_suspect(a))) p->change = INCONCLUSIVE;
    }
}

int comparison_count(const comparison *c, change what) {
    int n = 0;
    for (int i = 0; i < c->n; i++) n += c->pairs[i].change == what;
    return n;
}

const char *comparison_verdict(const comparison *c) {
    if (comparison_count(c, SLOWER) + comparison_count(c, BROKEN) > 0) return "worse";
    return comparison_count(c, FASTER) + comparison_count(c, FIXED) > 0 ? "better" : "same";
}

/* Rows that were ok in A, and those of them of which it can be told what became of them in B. */
static int count_told(const comparison *c, bool limits_too, int *of) {
    int told = 0;
    *of = 0;
    for (int i = 0; i < c->n; i++) {
        const pair *p = &c->pairs[i];
        if (!p->sides[0].ok || (p->is_limit && !limits_too)) continue;
        *of += 1;
        told += comparison_has_both(p) && p->change != INCONCLUSIVE;
    }
    return told;
}

static bool any_in_both(const comparison *c) {
    for (int i = 0; i < c->n; i++)
        if (c->pairs[i].sides[0].row && c->pairs[i].sides[1].row) return true;
    return false;
}

/* "The same" is said of what was seen. What is broken is worse, however little else can be told. */
static int check_told(comparison *c) {
    int of, told = count_told(c, true, &of), of_ops, told_ops = count_told(c, false, &of_ops);
    if (comparison_count(c, BROKEN) > 0) return 0;
    if (!any_in_both(c)) return comparison_refuse(c, 1, "no row is there in both");
    if (c->both > 0 && told == 0)
        return comparison_refuse(c, 1, "no row was measured in %d passes of both: give bench more --seconds", LEAST_PASSES);
    if (told == 0 || 2 * told < of)
        return comparison_refuse(c, 1, "not comparable: of %d rows that are ok in the first bench, %d can be told of", of, told);
    if (of_ops > 0 && told_ops == 0)
        return comparison_refuse(c, 1, "not comparable: of %d ops that are ok in the first bench, none can be told of", of_ops);
    return 0;
}

int comparison_make(comparison *c, const json_t *const documents[2], double percent) {
    *c = (comparison){.documents = {documents[0], documents[1]}, .threshold = log1p(percent / 100)};
    int code = comparison_read(c);
    if (code) return code;
    judge(c);
    return check_told(c);
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
