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

static clt_status take(const clt_dataset *from, const int64_t *order, int64_t count,
                       clt_dataset **part) {
    if (from->source.fetch) return clt_dataset_view(part, from, order, count);
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, count));
    for (int i = 0; i < from->n_fields; i++) CLT_TRY_GOTO(clt_dataset_take(d, from, i, order));
    d->classes = from->classes;
    if (from->facts) CLT_TRY_GOTO(clt_preprocessing_copy(&d->facts, from->facts));
    *part = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

/* The first part is order[0 … first - 1], the others follow. */
static clt_status take_all(const clt_dataset *from, const double *fractions, int n, const int64_t *order,
                           clt_dataset **parts) {
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

clt_status clt_dataset_split(const clt_dataset *dataset, const double *fractions, int n, uint64_t seed,
                             clt_dataset **parts) {
    if (!dataset || !fractions || n < 1 || !parts)
        return clt_fail(CLT_E_INVALID, "clt_dataset_split: no data set, or no parts to split it into");
    CLT_TRY(check_fractions(fractions, n));
    size_t bytes;
    if (!clt_mul_size((size_t)dataset->samples, sizeof(int64_t), &bytes))
        return clt_fail_memory(SIZE_MAX);
    int64_t *order = clt_alloc(bytes);
    if (!order) return clt_fail_memory(bytes);
    for (int i = 0; i < n; i++) parts[i] = NULL;
    clt_random random;
    clt_random_init(&random, seed, CLT_RANDOM_STREAM(CLT_RANDOM_SPLIT, 0));
    clt_random_permutation(&random, order, dataset->samples);
    clt_status status = take_all(dataset, fractions, n, order, parts);
    for (int i = 0; status < 0 && i < n; i++) {
        clt_dataset_destroy(parts[i]);
        parts[i] = NULL;
    }
    clt_free(order);
    return status;
}
