/* Times of problems from those of others. */
#include <math.h>
#include <string.h>

#include "runtime/measure/times.h"

static double time_of(const clt_timing *t) {
    return CLT_MAX(t->us + t->gap_us, 0);
}

static double roofline_us(const clt_timing *t, const clt_peaks *peaks) {
    return 1e6 * CLT_MAX(t->flops / peaks->fma_flops, t->bytes / peaks->copy_bytes);
}

/* How much longer one takes than the other by the peaks, launches that move and compute next to nothing by their number. */
static double work_ratio(const clt_timing *wanted, const clt_timing *from, const clt_peaks *peaks) {
    const double launch_us = 1; /* so that ratios of next to nothing stay sensible */
    double x = roofline_us(wanted, peaks) + launch_us * CLT_MAX(wanted->launches, 1);
    return x / (roofline_us(from, peaks) + launch_us * CLT_MAX(from->launches, 1));
}

/* ---- the same problem at other batch sizes ---- */

/* Its nearest points on either side of the wanted size, and the next beyond them. */
typedef struct points {
    const clt_timing *below[2], *above[2];
    double below_at[2], above_at[2]; /* in wanted sizes */
    int n_below, n_above;
} points;

static void insert(const clt_timing *t, double at, bool nearer_is_more, const clt_timing **kept, double *kept_at, int *n) {
    int i = *n;
    while (i > 0 && (nearer_is_more ? at > kept_at[i - 1] : at < kept_at[i - 1])) i--;
    if (i == 2) return;
    if (i == 0 && *n > 0) kept[1] = kept[0], kept_at[1] = kept_at[0];
    kept[i] = t, kept_at[i] = at;
    *n = CLT_MIN(*n + 1, 2);
}

/* What an item is to the wanted problem: the same at another size? */
static bool is_point(const clt_timing *t, const clt_timing *wanted, const clt_timing *except, bool any_row, double *at, uint64_t *which) {
    if (t == except || (!any_row && strcmp(t->row, wanted->row))) return false;
    return clt_tune_ratio(wanted->problem, t->problem, at, which) && *which;
}

/* Those at which the same dimensions differ. */
static void find_points(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, bool any_row, uint64_t dimensions,
                        points *p) {
    *p = (points){.n_below = 0};
    for (size_t i = 0; i < list->n; i++) {
        const clt_timing *t = &list->items[i];
        double at;
        uint64_t which;
        if (!is_point(t, wanted, except, any_row, &at, &which) || which != dimensions) continue;
        if (at < 1) insert(t, at, true, p->below, p->below_at, &p->n_below);
        else insert(t, at, false, p->above, p->above_at, &p->n_above);
    }
}

/* Points on both sides are best, then two, then one. */
static int worth(const points *p) {
    return p->n_below && p->n_above ? 3 : CLT_MAX(p->n_below, p->n_above);
}

/* Widths may differ as well as batches: the dimension with the best points counts, of equals that of the newest. */
static void find_best_points(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, bool any_row, points *best) {
    *best = (points){.n_below = 0};
    for (size_t i = list->n; i-- > 0 && worth(best) < 3;) {
        double at;
        uint64_t which;
        points p;
        if (!is_point(&list->items[i], wanted, except, any_row, &at, &which)) continue;
        find_points(list, wanted, except, any_row, which, &p);
        if (worth(&p) > worth(best)) *best = p;
    }
}

static double on_line(const clt_timing *a, double at_a, const clt_timing *b, double at_b) {
    return time_of(a) + (1 - at_a) * (time_of(b) - time_of(a)) / (at_b - at_a);
}

/* Beyond all points a line of two is believed as long as it does not go far from proportion. */
static double beyond(const clt_timing *a, double at_a, const clt_timing *b, double at_b) {
    double proportional = time_of(a) / at_a, least = CLT_MIN(proportional, time_of(a)), most = CLT_MAX(proportional, time_of(a));
    return CLT_MAX(0.7 * least, CLT_MIN(on_line(a, at_a, b, at_b), 1.4 * most));
}

static bool from_points(const points *p, clt_estimate *e) {
    if (p->n_below && p->n_above) e->us = on_line(p->below[0], p->below_at[0], p->above[0], p->above_at[0]);
    else if (p->n_below == 2) e->us = beyond(p->below[0], p->below_at[0], p->below[1], p->below_at[1]);
    else if (p->n_above == 2) e->us = beyond(p->above[0], p->above_at[0], p->above[1], p->above_at[1]);
    else return false;
    e->source = CLT_TIMES_BATCHES;
    return true;
}

static bool from_point(const points *p, const clt_timing *wanted, const clt_peaks *peaks, clt_estimate *e) {
    const clt_timing *from = p->n_below ? p->below[0] : p->n_above ? p->above[0] : NULL;
    if (!from) return false;
    *e = (clt_estimate){CLT_TIMES_BATCH, time_of(from) * work_ratio(wanted, from, peaks), from};
    return true;
}

static bool from_batches(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, const clt_peaks *peaks,
                         clt_times_source first, clt_estimate *e) {
    points same_row, any_row;
    find_best_points(list, wanted, except, false, &same_row);
    if (first <= CLT_TIMES_BATCHES && from_points(&same_row, e)) return true;
    if (from_point(&same_row, wanted, peaks, e)) return true;
    find_best_points(list, wanted, except, true, &any_row);
    if (first <= CLT_TIMES_BATCHES && from_points(&any_row, e)) return true;
    return from_point(&any_row, wanted, peaks, e);
}

/* ---- others ---- */

static bool from_nearest(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, const clt_peaks *peaks,
                         clt_estimate *e) {
    const double farthest = 6, other_row = 1; /* powers of two */
    const clt_timing *nearest = NULL;
    double least = farthest;
    for (size_t i = 0; i < list->n; i++) {
        const clt_timing *t = &list->items[i];
        if (t == except) continue;
        double distance = clt_tune_distance(wanted->problem, t->problem) + (strcmp(t->row, wanted->row) ? other_row : 0);
        if (distance >= least) continue;
        least = distance;
        nearest = t;
    }
    if (nearest) *e = (clt_estimate){CLT_TIMES_NEAREST, time_of(nearest) * work_ratio(wanted, nearest, peaks), nearest};
    return nearest != NULL;
}

static bool same_op(const clt_timing *a, const clt_timing *b) {
    size_t length = strcspn(a->problem, " ");
    return strcspn(b->problem, " ") == length && !strncmp(a->problem, b->problem, length);
}

/* What is known, of the same op or of the others, against its peaks. 0: nothing is. */
static double slowness(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, const clt_peaks *peaks,
                       bool of_others) {
    double us = 0, least = 0;
    for (size_t i = 0; i < list->n; i++) {
        const clt_timing *t = &list->items[i];
        if (t == except || t->launches == 0 || same_op(t, wanted) == of_others) continue;
        us += t->us;
        least += roofline_us(t, peaks);
    }
    return least > 0 ? us / least : 0;
}

static double mean_gap_us(const clt_timings *list, const clt_timing *except) {
    double gap = 0, launches = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (&list->items[i] == except || list->items[i].launches == 0) continue;
        gap += list->items[i].gap_us;
        launches += list->items[i].launches;
    }
    return launches > 0 ? CLT_MAX(gap / launches, 0) : 0;
}

static clt_estimate from_roofline(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, const clt_peaks *peaks,
                              clt_times_source first) {
    clt_times_source source = CLT_TIMES_ROOFLINE;
    double times = first <= CLT_TIMES_ROOFLINE ? slowness(list, wanted, except, peaks, false) : 0;
    if (times == 0) {
        source = CLT_TIMES_OTHERS;
        times = slowness(list, wanted, except, peaks, true);
    }
    if (times == 0) times = 1;
    return (clt_estimate){source, times * roofline_us(wanted, peaks) + wanted->launches * mean_gap_us(list, except), NULL};
}

static bool from_itself(const clt_timings *list, const clt_timing *wanted, const clt_timing *except, clt_estimate *e) {
    for (size_t i = list->n; i-- > 0;) {
        const clt_timing *t = &list->items[i];
        if (t == except || !clt_timing_same(t, wanted)) continue;
        *e = (clt_estimate){CLT_TIMES_MEASURED, time_of(t), t};
        return true;
    }
    return false;
}

clt_estimate clt_timings_estimate(const clt_timings *list, const clt_timing *wanted, const clt_peaks *peaks,
                                  clt_times_source first, const clt_timing *except) {
    clt_estimate e = {.from = NULL};
    if (first <= CLT_TIMES_MEASURED && from_itself(list, wanted, except, &e)) return e;
    if (wanted->launches == 0 && wanted->row[0]) return (clt_estimate){.source = CLT_TIMES_MEASURED}; /* it does nothing */
    if (first <= CLT_TIMES_BATCH && from_batches(list, wanted, except, peaks, first, &e)) return e;
    if (first <= CLT_TIMES_NEAREST && from_nearest(list, wanted, except, peaks, &e)) return e;
    return from_roofline(list, wanted, except, peaks, first);
}
