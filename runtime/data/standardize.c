#include <math.h>

#include "runtime/base/shape.h"
#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

/* Values of a field that share a mean and a deviation: `plane` after `plane`, in each sample. */
typedef struct groups {
    const clt_dataset *dataset;
    const clt_field *field;
    int index; /* of the field */
    int64_t samples;
    size_t plane;
} groups;

/* An element alone, or a channel's plane. */
static groups of_features(const clt_dataset *d) {
    const clt_field *field = &d->fields[0];
    return (groups){d, field, 0, d->samples, field->shape.rank == 3 ? (size_t)(field->shape.dims[1] * field->shape.dims[2]) : 1};
}

/* All of them: a mean squared error is then one of the numbers as they were, but for a factor. */
static groups of_target(const clt_dataset *d) {
    const clt_field *field = &d->fields[d->n_fields - 1];
    return (groups){d, field, d->n_fields - 1, d->samples, field->sample_bytes / sizeof(float)};
}

static void measure_mean(clt_moments *m, const groups *of) {
    size_t at = 0;
    for (int64_t i = 0; i < of->samples; i++)
        for (size_t g = 0; g < m->n; g++)
            for (size_t p = 0; p < of->plane; p++) m->mean[g] += clt_field_number(of->field, at++);
    for (size_t g = 0; g < m->n; g++) m->mean[g] /= (double)of->samples * (double)of->plane;
}

/* Around the mean, in a second pass: no cancellation where the mean is large. */
static void measure_variance(clt_moments *m, const groups *of) {
    size_t at = 0;
    for (int64_t i = 0; i < of->samples; i++)
        for (size_t g = 0; g < m->n; g++)
            for (size_t p = 0; p < of->plane; p++) {
                double d = clt_field_number(of->field, at++) - m->mean[g];
                m->deviation[g] += d * d;
            }
    for (size_t g = 0; g < m->n; g++) m->deviation[g] /= (double)of->samples * (double)of->plane;
}

/* Names the first value of group g of n that is not finite. */
static clt_status fail_group(const groups *of, size_t n, size_t g) {
    const char *what = of->plane > 1 ? "channel" : "element";
    for (int64_t i = 0; of->field->data && i < of->samples; i++)
        for (size_t p = 0; p < of->plane; p++) {
            double value = clt_field_number(of->field, ((size_t)i * n + g) * of->plane + p);
            if (!isfinite(value)) return clt_fail(CLT_E_RANGE, "standardize: sample %lld, %s %zu of field %d: %g is not a finite number", (long long)i, what, g, of->index, value);
        }
    return clt_fail(CLT_E_RANGE, "standardize: %s %zu of field %d has values that are too large", what, g, of->index);
}

static clt_status take_roots(clt_moments *m, const groups *of) {
    for (size_t g = 0; g < m->n; g++) {
        double deviation = sqrt(m->deviation[g]);
        if (!isfinite(m->mean[g]) || !isfinite(deviation)) return fail_group(of, m->n, g);
        /* Less is the sums' rounding. */
        m->deviation[g] = deviation > 1e-12 * fabs(m->mean[g]) ? deviation : 1;
    }
    return CLT_OK;
}

/* What was standardized before is so by both. */
static void compose(clt_moments *m, const clt_moments *before) {
    for (size_t g = 0; g < before->n; g++) {
        m->mean[g] = before->mean[g] + before->deviation[g] * m->mean[g];
        m->deviation[g] *= before->deviation[g];
    }
}

/* From now on, samples are scaled as they are fetched. */
static clt_status scale_fetched(clt_moments *scaled, const clt_moments *m) {
    clt_moments both;
    if (!m->n) return CLT_OK;
    CLT_TRY(clt_moments_copy(&both, m));
    compose(&both, scaled);
    clt_free(scaled->mean);
    *scaled = both;
    return CLT_OK;
}

/* What is left is small, and needs no low part any more. */
static void scale_memory(clt_dataset *dataset, const groups *of, const clt_moments *m) {
    float *x = of->field->data;
    size_t at = 0;
    for (int64_t i = 0; m->n && i < of->samples; i++)
        for (size_t g = 0; g < m->n; g++) {
            double factor = 1 / m->deviation[g];
            for (size_t p = 0; p < of->plane; p++, at++) x[at] = (float)((clt_field_number(of->field, at) - m->mean[g]) * factor);
        }
    if (!m->n) return;
    clt_free(dataset->fields[of->index].low);
    dataset->fields[of->index].low = NULL;
}

static clt_status scale(clt_dataset *dataset, const groups *of, const clt_moments *m) {
    if (dataset->source.fetch) return scale_fetched(of->index ? &dataset->scaled_target : &dataset->scaled, m);
    scale_memory(dataset, of, m);
    return CLT_OK;
}

clt_status clt_dataset_scale(clt_dataset *dataset, const clt_moments *m) {
    groups features = of_features(dataset);
    return scale(dataset, &features, m);
}

static bool is_target(const clt_dataset *d) {
    return d->n_fields > 1 && !d->classes && d->fields[d->n_fields - 1].dtype == CLT_F32;
}

clt_status clt_dataset_scale_target(clt_dataset *dataset, const clt_moments *m) {
    groups target = of_target(dataset);
    return is_target(dataset) ? scale(dataset, &target, m) : CLT_OK;
}

/* ---- samples that a function makes: read once for the mean, and once around it ---- */

typedef struct reader {
    const groups *of;
    void *fields[CLT_MAX_FIELDS];
} reader;

static void free_reader(reader *r) {
    for (int i = 0; i < CLT_MAX_FIELDS; i++) clt_free(r->fields[i]);
}

static clt_status make_reader(reader *r, const groups *of) {
    *r = (reader){.of = of};
    for (int i = 0; i < of->dataset->n_fields; i++) {
        r->fields[i] = clt_alloc(of->dataset->fields[i].sample_bytes);
        if (!r->fields[i]) return clt_fail_memory(of->dataset->fields[i].sample_bytes);
    }
    return CLT_OK;
}

/* Adds the values of each group, or their squares away from `mean`, to sums. */
static clt_status add_samples(reader *r, size_t n, const double *mean, double *sums) {
    for (int64_t i = 0; i < r->of->samples; i++) {
        CLT_TRY(clt_dataset_fetch(r->of->dataset, &(clt_sample){.index = i}, r->fields));
        const float *x = r->fields[r->of->index];
        for (size_t at = 0; at < n * r->of->plane; at++) {
            double value = (double)x[at], away = mean ? value - mean[at / r->of->plane] : 0;
            if (!isfinite(value)) return clt_fail(CLT_E_RANGE, "standardize: sample %lld, element %zu of field %d: %g is not a finite number", (long long)i, at, r->of->index, value);
            sums[at / r->of->plane] += mean ? away * away : value;
        }
    }
    for (size_t g = 0; g < n; g++) sums[g] /= (double)r->of->samples * (double)r->of->plane;
    return CLT_OK;
}

static clt_status measure_fetched(clt_moments *m, const groups *like) {
    reader r;
    clt_status status = make_reader(&r, like);
    if (status == CLT_OK) status = add_samples(&r, m->n, NULL, m->mean);
    if (status == CLT_OK) status = add_samples(&r, m->n, m->mean, m->deviation);
    free_reader(&r);
    return status;
}

/* The mean and deviation of `like`; the caller's to free. */
static clt_status measure(clt_moments *m, const groups *like) {
    CLT_TRY(clt_moments_make(m, like->field->sample_bytes / sizeof(float) / like->plane));
    if (like->dataset->source.fetch) {
        CLT_TRY(measure_fetched(m, like));
    } else {
        measure_mean(m, like);
        measure_variance(m, like);
    }
    return take_roots(m, like);
}

static void keep(clt_moments *kept, clt_moments *m) {
    compose(m, kept);
    clt_free(kept->mean);
    *kept = *m;
}

/* `own`: what of the data set is standardized as `like` is. */
static clt_status standardize(clt_dataset *dataset, const groups *own, const groups *like, bool target) {
    clt_preprocessing *facts = NULL;
    clt_moments m = {0};
    clt_status status;
    CLT_TRY_GOTO(measure(&m, like));
    CLT_TRY_GOTO(clt_preprocessing_of(&facts, dataset));
    CLT_TRY_GOTO(scale(dataset, own, &m));
    keep(target ? &facts->target_moments : &facts->moments, &m);
    clt_preprocessing_destroy(dataset->facts);
    dataset->facts = facts;
    return CLT_OK;
fail:
    clt_preprocessing_destroy(facts);
    clt_free(m.mean);
    return status;
}

static clt_status check(const clt_dataset *dataset, const clt_dataset *like) {
    if (!dataset || !like) return clt_fail(CLT_E_INVALID, "clt_dataset_standardize: a data set is NULL");
    const clt_field *a = &dataset->fields[0], *b = &like->fields[0];
    if (a->dtype != CLT_F32 || b->dtype != CLT_F32)
        return clt_fail(CLT_E_DTYPE, "standardize: field 0 is %s, not f32",
                        clt_dtype_name(a->dtype != CLT_F32 ? a->dtype : b->dtype));
    if (!clt_shape_equal(&a->shape, &b->shape))
        return clt_fail(CLT_E_SHAPE, "standardize: the samples of the two data sets differ in shape");
    return CLT_OK;
}

clt_status clt_dataset_standardize(clt_dataset *dataset, const clt_dataset *like) {
    CLT_TRY(check(dataset, like));
    groups own = of_features(dataset), measured = of_features(like);
    return standardize(dataset, &own, &measured, false);
}

static clt_status check_target(const clt_dataset *dataset, const clt_dataset *like) {
    if (!dataset || !like) return clt_fail(CLT_E_INVALID, "clt_dataset_standardize_target: a data set is NULL");
    if (is_target(dataset) && is_target(like)) return CLT_OK;
    return clt_fail(CLT_E_DTYPE, "clt_dataset_standardize_target: the last field is not numbers to predict (f32)");
}

clt_status clt_dataset_standardize_target(clt_dataset *dataset, const clt_dataset *like) {
    CLT_TRY(check_target(dataset, like));
    groups own = of_target(dataset), measured = of_target(like);
    return standardize(dataset, &own, &measured, true);
}
