#include <math.h>

#include "runtime/base/shape.h"
#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

/* Elements of a sample that share a mean: one alone, or a channel's plane. */
static size_t group_elements(const clt_field *field) {
    return field->shape.rank == 3 ? (size_t)(field->shape.dims[1] * field->shape.dims[2]) : 1;
}

static size_t groups_of(const clt_field *field) {
    return field->sample_bytes / sizeof(float) / group_elements(field);
}

static void measure_mean(clt_moments *m, const clt_field *field, int64_t samples) {
    const float *x = field->data;
    size_t plane = group_elements(field);
    for (int64_t i = 0; i < samples; i++)
        for (size_t g = 0; g < m->n; g++)
            for (size_t p = 0; p < plane; p++) m->mean[g] += *x++;
    for (size_t g = 0; g < m->n; g++) m->mean[g] /= (double)samples * (double)plane;
}

/* Around the mean, in a second pass: no cancellation where the mean is large. */
static void measure_variance(clt_moments *m, const clt_field *field, int64_t samples) {
    const float *x = field->data;
    size_t plane = group_elements(field);
    for (int64_t i = 0; i < samples; i++)
        for (size_t g = 0; g < m->n; g++)
            for (size_t p = 0; p < plane; p++) {
                double d = *x++ - m->mean[g];
                m->deviation[g] += d * d;
            }
    for (size_t g = 0; g < m->n; g++) m->deviation[g] /= (double)samples * (double)plane;
}

static clt_status take_roots(clt_moments *m, bool channels) {
    for (size_t g = 0; g < m->n; g++) {
        double deviation = sqrt(m->deviation[g]);
        if (!isfinite(m->mean[g]) || !isfinite(deviation))
            return clt_fail(CLT_E_RANGE, "standardize: %s %zu of field 0 has values that are not finite", channels ? "channel" : "element", g);
        /* Two f32 that differ in the last bit are further apart: less is the sums' rounding. */
        m->deviation[g] = deviation > 1e-12 * fabs(m->mean[g]) ? deviation : 1;
    }
    return CLT_OK;
}

void clt_dataset_scale(clt_dataset *dataset, const clt_moments *m) {
    const clt_field *field = &dataset->fields[0];
    float *x = field->data;
    size_t plane = group_elements(field);
    for (int64_t i = 0; m->n && i < dataset->samples; i++)
        for (size_t g = 0; g < m->n; g++) {
            double scale = 1 / m->deviation[g];
            for (size_t p = 0; p < plane; p++, x++) *x = (float)((*x - m->mean[g]) * scale);
        }
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
    const clt_field *x = &like->fields[0];
    clt_preprocessing *facts = NULL;
    clt_moments m = {0};
    clt_status status;
    CLT_TRY_GOTO(clt_moments_make(&m, groups_of(x)));
    measure_mean(&m, x, like->samples);
    measure_variance(&m, x, like->samples);
    CLT_TRY_GOTO(take_roots(&m, x->shape.rank == 3));
    CLT_TRY_GOTO(clt_preprocessing_of(&facts, dataset));
    clt_dataset_scale(dataset, &m);
    for (size_t g = 0; g < facts->moments.n; g++) { /* of what was standardized before */
        m.mean[g] = facts->moments.mean[g] + facts->moments.deviation[g] * m.mean[g];
        m.deviation[g] *= facts->moments.deviation[g];
    }
    clt_free(facts->moments.mean);
    facts->moments = m;
    clt_preprocessing_destroy(dataset->facts);
    dataset->facts = facts;
    return CLT_OK;
fail:
    clt_free(m.mean);
    return status;
}
