#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

#include <math.h>

static clt_status check_fractions(const double *fractions, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(fractions[i] > 0 && fractions[i] <= 1))
            return clt_fail(CLT_E_INVALID, "fraction %d of a split is %g, not in (0, 1]", i,
                            fractions[i]);
        sum += fractions[i];
    }
    if (sum > 1 + 1e-9) return clt_fail(CLT_E_INVALID, "the fractions of a split add up to %g", sum);
    return CLT_OK;
}

/* floor(fraction x samples), where 0.29 x 100 is 29 although the product of doubles is less. */
static int64_t part_samples(double fraction, int64_t samples, int64_t left) {
    int64_t part = (int64_t)floor(fraction * (double)samples * (1 + 1e-12));
    return CLT_MIN(part, left);
}

static clt_status take_samples(const clt_dataset *from, const int64_t *order, int64_t count, clt_dataset **part) {
    if (from->source.fetch) return clt_dataset_view(part, from, order, count);
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, count));
    for (int i = 0; i < from->n_fields; i++) CLT_TRY_GOTO(clt_dataset_take(d, from, i, order));
    CLT_TRY_GOTO(clt_indices_compose(&d->part, &from->part, from->samples, order, count));
    d->classes = from->classes;
    if (from->facts) CLT_TRY_GOTO(clt_preprocessing_copy(&d->facts, from->facts));
    *part = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

static clt_status take(const clt_dataset *from, const int64_t *order, int64_t count, clt_dataset **part) {
    CLT_TRY(take_samples(from, order, count, part));
    return from->groups ? clt_groups_take(&(*part)->groups, from->groups, order, count) : CLT_OK;
}

/* The first part is order[0 … first - 1], the others follow. */
static clt_status take_all(const clt_dataset *from, const double *fractions, int n, int64_t *order, clt_dataset **parts) {
    int64_t left = from->samples;
    for (int i = n - 1; i >= 0; i--) {
        int64_t count = i == 0 ? left : part_samples(fractions[i], from->samples, left);
        if (count < 1)
            return clt_fail(CLT_E_RANGE, "part %d of the split, %g of %lld samples, has none", i,
                            fractions[i], (long long)from->samples);
        left -= count;
        CLT_TRY(take(from, order + left, count, &parts[i]));
    }
    return CLT_OK;
}

/* ---- the same share of each class ---- */

/* Where the samples of each class begin, among samples sorted by their classes. */
static clt_status count_labels(const clt_dataset *d, int32_t *labels, int64_t *begins) {
    for (int64_t i = 0; i < d->samples; i++) {
        CLT_TRY(clt_dataset_label(d, i, &labels[i]));
        begins[labels[i] + 1]++;
    }
    for (int c = 0; c < d->classes; c++) begins[c + 1] += begins[c];
    return CLT_OK;
}

/* Of samples that are sorted by their classes, each in the order that was drawn, every (1 / fraction)-th goes to a part: of the last part first, then of
 * what is left. */
static void deal(const int64_t *sorted, int64_t samples, const double *fractions, int n, int32_t *part_of) {
    double left = 1;
    for (int64_t i = 0; i < samples; i++) part_of[i] = 0;
    for (int p = n - 1; p > 0; p--) {
        double share = fractions[p] / left;
        int64_t rest = 0;
        for (int64_t k = 0; k < samples; k++) {
            if (part_of[sorted[k]]) continue;
            rest++;
            if (floor((double)rest * share * (1 + 1e-12)) > floor((double)(rest - 1) * share * (1 + 1e-12))) part_of[sorted[k]] = p;
        }
        left -= fractions[p];
    }
}

/* The order that was drawn becomes that of parts, one after the other as take_all has them: the first, then the others. */
static int64_t gather_parts(const int64_t *order, int64_t samples, int n, const int32_t *part_of, int64_t *gathered, int64_t *counts) {
    int64_t at = 0;
    for (int p = 0; p < n; p++) {
        int64_t before = at;
        for (int64_t i = 0; i < samples; i++)
            if (part_of[order[i]] == p) gathered[at++] = order[i];
        counts[p] = at - before;
    }
    return at;
}

typedef struct strata {
    int32_t *labels, *part_of;
    int64_t *begins, *sorted, *counts;
} strata;

static void free_strata(strata *s) {
    clt_free(s->labels);
    clt_free(s->part_of);
    clt_free(s->begins);
    clt_free(s->sorted);
    clt_free(s->counts);
}

static clt_status make_strata(strata *s, const clt_dataset *d, int n) {
    size_t samples = (size_t)d->samples; /* whose order of as many int64_t is there */
    *s = (strata){clt_alloc(samples * sizeof *s->labels), clt_alloc(samples * sizeof *s->part_of), clt_calloc((size_t)d->classes + 2, sizeof *s->begins),
                  clt_alloc(samples * sizeof *s->sorted), clt_calloc((size_t)n, sizeof *s->counts)};
    return s->labels && s->part_of && s->begins && s->sorted && s->counts ? CLT_OK : clt_fail_memory(samples * sizeof *s->sorted);
}

static clt_status take_counted(const clt_dataset *from, const int64_t *order, const int64_t *counts, const double *fractions, int n, clt_dataset **parts) {
    int64_t at = 0;
    for (int p = 0; p < n; at += counts[p++]) {
        if (counts[p] < 1) return clt_fail(CLT_E_RANGE, "part %d of the split, %g of %lld samples, has none", p, fractions[p], (long long)from->samples);
        CLT_TRY(take(from, order + at, counts[p], &parts[p]));
    }
    return CLT_OK;
}

static clt_status sort_by_classes(strata *s, const clt_dataset *d, const int64_t *order) {
    CLT_TRY(count_labels(d, s->labels, s->begins));
    for (int64_t i = 0; i < d->samples; i++) s->sorted[s->begins[s->labels[order[i]]]++] = order[i];
    return CLT_OK;
}

/* `order` is overwritten. */
static clt_status take_strata(const clt_dataset *from, const double *fractions, int n, int64_t *order, clt_dataset **parts) {
    strata s;
    clt_status status = make_strata(&s, from, n);
    if (status == CLT_OK) status = sort_by_classes(&s, from, order);
    if (status == CLT_OK) {
        deal(s.sorted, from->samples, fractions, n, s.part_of);
        gather_parts(order, from->samples, n, s.part_of, s.sorted, s.counts);
        status = take_counted(from, s.sorted, s.counts, fractions, n, parts);
    }
    free_strata(&s);
    return status;
}

/* ---- groups ---- */

/* What no fraction names is the first part's. `order` is overwritten. */
static clt_status take_groups(const clt_dataset *from, const double *fractions, int n, int64_t *order, clt_dataset **parts) {
    strata s;
    double *shares = clt_alloc((size_t)n * sizeof *shares);
    clt_status status = make_strata(&s, from, n);
    if (!shares) status = clt_fail_memory((size_t)n * sizeof *shares);
    for (int p = 0; shares && p < n; p++) shares[p] = fractions[p];
    if (shares) shares[0] = 1;
    for (int p = 1; shares && p < n; p++) shares[0] -= fractions[p];
    if (status == CLT_OK) status = clt_groups_deal(from, order, shares, n, s.part_of);
    if (status == CLT_OK) {
        gather_parts(order, from->samples, n, s.part_of, s.sorted, s.counts);
        status = take_counted(from, s.sorted, s.counts, fractions, n, parts);
    }
    free_strata(&s);
    clt_free(shares);
    return status;
}

/* part_of[sample]: whether it is held out. */
static clt_status deal_fold(const clt_dataset *from, int fold, int folds, const int64_t *order, int32_t *part_of) {
    double *shares = clt_alloc((size_t)folds * sizeof *shares);
    if (!shares) return clt_fail_memory((size_t)folds * sizeof *shares);
    for (int p = 0; p < folds; p++) shares[p] = 1.0 / folds;
    clt_status status = clt_groups_deal(from, order, shares, folds, part_of);
    for (int64_t i = 0; status == CLT_OK && i < from->samples; i++) part_of[i] = part_of[i] == fold;
    clt_free(shares);
    return status;
}

/* ---- folds ---- */

/* Every folds-th sample is held out: of those sorted by their classes, or of all as they were drawn. */
static clt_status take_fold(const clt_dataset *from, int fold, int folds, bool stratified, int64_t *order, clt_dataset **parts) {
    strata s;
    const double fractions[] = {1 - 1.0 / folds, 1.0 / folds};
    clt_status status = make_strata(&s, from, 2);
    if (status == CLT_OK && stratified) status = sort_by_classes(&s, from, order);
    if (status == CLT_OK && from->groups) status = deal_fold(from, fold, folds, order, s.part_of);
    if (status == CLT_OK) {
        for (int64_t k = 0; !from->groups && k < from->samples; k++) s.part_of[stratified ? s.sorted[k] : order[k]] = k % folds == fold;
        gather_parts(order, from->samples, 2, s.part_of, s.sorted, s.counts);
        status = take_counted(from, s.sorted, s.counts, fractions, 2, parts);
    }
    free_strata(&s);
    return status;
}

/* ---- all ---- */

static clt_status draw_order(const clt_dataset *dataset, uint64_t seed, int64_t **order) {
    size_t bytes;
    clt_random random;
    if (!clt_mul_size((size_t)dataset->samples, sizeof **order, &bytes)) return clt_fail_memory(SIZE_MAX);
    *order = clt_alloc(bytes);
    if (!*order) return clt_fail_memory(bytes);
    clt_random_init(&random, seed, CLT_RANDOM_STREAM(CLT_RANDOM_SPLIT, 0));
    clt_indices_permute(&(clt_indices){.wide = *order}, dataset->samples, &random);
    return CLT_OK;
}

/* Of a split that failed. */
static void drop_parts(clt_dataset **parts, int n) {
    for (int i = 0; i < n; i++) {
        clt_dataset_destroy(parts[i]);
        parts[i] = NULL;
    }
}

static clt_status check_groups(const clt_dataset *dataset, bool stratified) {
    if (!dataset->groups || !stratified) return CLT_OK;
    return clt_fail(CLT_E_UNSUPPORTED, "the data set has groups, which stay together: a split that is stratified cannot be made");
}

static clt_status split(const clt_dataset *dataset, const double *fractions, int n, uint64_t seed, bool stratified, clt_dataset **parts) {
    CLT_TRY(check_fractions(fractions, n));
    CLT_TRY(check_groups(dataset, stratified));
    int64_t *order;
    CLT_TRY(draw_order(dataset, seed, &order));
    for (int i = 0; i < n; i++) parts[i] = NULL;
    clt_status status = (dataset->groups ? take_groups : stratified ? take_strata : take_all)(dataset, fractions, n, order, parts);
    if (status < 0) drop_parts(parts, n);
    clt_free(order);
    return status;
}

clt_status clt_dataset_split(const clt_dataset *dataset, const double *fractions, int n, uint64_t seed, clt_dataset **parts) {
    if (!dataset || !fractions || n < 1 || !parts)
        return clt_fail(CLT_E_INVALID, "clt_dataset_split: no data set, or no parts to split it into");
    return split(dataset, fractions, n, seed, false, parts);
}

clt_status clt_dataset_split_stratified(const clt_dataset *dataset, const double *fractions, int n, uint64_t seed, clt_dataset **parts) {
    if (!dataset || !fractions || n < 1 || !parts)
        return clt_fail(CLT_E_INVALID, "clt_dataset_split_stratified: no data set, or no parts to split it into");
    if (!dataset->classes) return clt_fail(CLT_E_DTYPE, "clt_dataset_split_stratified: the data set has no classes");
    return split(dataset, fractions, n, seed, true, parts);
}

clt_status clt_dataset_fold(const clt_dataset *dataset, int fold, int folds, uint64_t seed, bool stratified, clt_dataset **train, clt_dataset **held_out) {
    if (!dataset || !train || !held_out) return clt_fail(CLT_E_INVALID, "clt_dataset_fold: no data set, or no parts to split it into");
    if (folds < 2 || folds > dataset->samples || fold < 0 || fold >= folds)
        return clt_fail(CLT_E_INVALID, "fold %d of %d of %lld samples: expected 0 or more, below 2 to as many folds as there are samples", fold, folds, (long long)dataset->samples);
    if (stratified && !dataset->classes) return clt_fail(CLT_E_DTYPE, "clt_dataset_fold: the data set has no classes to stratify by");
    CLT_TRY(check_groups(dataset, stratified));
    clt_dataset *parts[2] = {NULL, NULL};
    int64_t *order;
    CLT_TRY(draw_order(dataset, seed, &order));
    clt_status status = take_fold(dataset, fold, folds, stratified, order, parts);
    if (status < 0) drop_parts(parts, 2);
    else *train = parts[0], *held_out = parts[1];
    clt_free(order);
    return status;
}
