/* What steps that were timed come to: the model is in times.h. */
#include <math.h>
#include <stdlib.h>

#include "runtime/measure/times.h"

/* Fewer records have no quartiles; and quartiles of which nothing can be told by what lies between. */
enum { FEW = 4, FEW_WITHIN = 16 };

typedef struct total {
    double us;
    size_t record;
} total;

/* All of it, as it is worked out. */
typedef struct settling {
    const clt_records *r;
    total *totals;   /* the quickest record first */
    double *sorted;  /* of one part, by record */
    double *means, *variances; /* of each part over the records that are kept; relative */
    size_t begin, end; /* those: of the totals */
} settling;

static int by_time(const void *a, const void *b) {
    double x = ((const total *)a)->us, y = ((const total *)b)->us;
    return x < y ? -1 : x > y;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static const double *part_of(const settling *s, size_t record, size_t part) {
    return s->r->us + 2 * (record * s->r->n_parts + part);
}

static double *relative_of(double *sorted, size_t n, double mean) {
    for (size_t k = 0; k < n; k++) sorted[k] /= mean;
    return sorted;
}

/* How many at either end count as what they are next to. */
static size_t cut_of(size_t n) {
    return n < FEW_WITHIN ? 0 : n / 4;
}

/* Of a record, where the outer quarters count as the outermost of the middle half; that of the trimmed mean times the records. */
static double winsorized(double *x, size_t n) {
    size_t cut = cut_of(n);
    double mean = 0, square = 0, kept = 1 - 2 * (double)cut / (double)n;
    qsort(x, n, sizeof *x, ascending);
    for (size_t k = 0; k < cut; k++) x[k] = x[cut], x[n - 1 - k] = x[n - 1 - cut];
    for (size_t k = 0; k < n; k++) mean += x[k] / (double)n;
    for (size_t k = 0; k < n; k++) square += (x[k] - mean) * (x[k] - mean);
    return square / ((double)(n - 1) * kept * kept);
}

static void add_totals(settling *s) {
    size_t n = s->r->n;
    for (size_t k = 0; k < n; k++) {
        s->totals[k] = (total){.record = k};
        for (size_t i = 0; i < s->r->n_parts; i++) s->totals[k].us += part_of(s, k, i)[0] + part_of(s, k, i)[1];
    }
    qsort(s->totals, n, sizeof *s->totals, by_time);
    s->begin = n / 4;
    s->end = n - n / 4;
}

/* The mean of the sums. */
static double look_at_parts(settling *s) {
    double all = 0;
    for (size_t i = 0; i < s->r->n_parts; i++) {
        double sum = 0;
        for (size_t k = s->begin; k < s->end; k++) {
            const double *us = part_of(s, s->totals[k].record, i);
            sum += us[0] + us[1];
        }
        s->means[i] = sum / (double)(s->end - s->begin);
        all += s->means[i];
        for (size_t k = 0; k < s->r->n; k++) s->sorted[k] = part_of(s, k, i)[0] + part_of(s, k, i)[1];
        s->variances[i] = s->r->n >= FEW && s->means[i] > 0 ? winsorized(relative_of(s->sorted, s->r->n, s->means[i]), s->r->n) : 0;
    }
    return all;
}

/* Of too few records there is no telling how they differ: single steps differ more. */
static double step_variance(const clt_records *r) {
    double mean = r->sum_us / CLT_MAX(r->steps, 1), square = r->sum_square / CLT_MAX(r->steps, 1);
    return r->steps < 2 || mean <= 0 ? 1 : CLT_MAX(square / (mean * mean) - 1, 0) * r->steps / (r->steps - 1);
}

/* The variance of what is common. */
static double common_variance(const settling *s, double mean) {
    double own = 0, squares = 0;
    for (size_t k = 0; k < s->r->n; k++) s->sorted[k] = s->totals[k].us;
    double all = winsorized(relative_of(s->sorted, s->r->n, mean), s->r->n);
    for (size_t i = 0; i < s->r->n_parts; i++) {
        double share = CLT_MAX(s->means[i], 0) / mean;
        own += share * share * s->variances[i];
        squares += share * share;
    }
    double common = squares < 1 ? (all - own) / (1 - squares) : all;
    return CLT_MIN(CLT_MAX(common, 0), all);
}

static void set_times(const settling *s, size_t i, clt_timing *t) {
    double us = 0, gap_us = 0, runs = (double)(s->end - s->begin) * s->r->counts[i];
    for (size_t k = s->begin; k < s->end; k++) {
        const double *p = part_of(s, s->totals[k].record, i);
        us += p[0];
        gap_us += p[1];
    }
    /* Between steps there may be less than nothing, where the next begins before the last one's end. */
    t->us = CLT_MAX(us / runs, 0);
    t->gap_us = gap_us / runs + CLT_MIN(us / runs, 0);
}

static clt_status put_all(clt_timings *list, settling *s) {
    double mean = look_at_parts(s), kept = (double)(s->end - s->begin), common = step_variance(s->r);
    double degrees = s->r->n >= FEW ? (double)(s->r->n - 2 * cut_of(s->r->n)) - 1 : s->r->steps - 1, further = 1 + 1 / kept;
    if (s->r->n >= FEW && mean > 0) common = common_variance(s, mean);
    for (size_t i = 0; i < s->r->n_parts; i++) {
        clt_timing t = s->r->parts[i];
        set_times(s, i, &t);
        t.spread = sqrt(common * further);
        t.own = sqrt(CLT_MAX(s->variances[i] - common, 0) * further * s->r->counts[i]);
        t.degrees = CLT_MAX(degrees, 1);
        CLT_TRY(clt_timings_put(list, &t));
    }
    return CLT_OK;
}

clt_status clt_timings_settle(clt_timings *list, const clt_records *records) {
    size_t n = records->n, parts = records->n_parts;
    if (n == 0) return CLT_OK;
    settling s = {.r = records, .totals = clt_calloc(n, sizeof *s.totals), .sorted = clt_calloc(n, sizeof *s.sorted),
                  .means = clt_calloc(parts + 1, sizeof *s.means), .variances = clt_calloc(parts + 1, sizeof *s.variances)};
    clt_status status = CLT_OK;
    if (!s.totals || !s.sorted || !s.means || !s.variances) status = clt_fail_memory((n + parts) * sizeof *s.totals);
    if (status == CLT_OK) add_totals(&s);
    if (status == CLT_OK) status = put_all(list, &s);
    clt_free(s.totals);
    clt_free(s.sorted);
    clt_free(s.means);
    clt_free(s.variances);
    return status;
}
