#include "runtime/data/data.h"

#include <math.h>

/* Elements of a sample that share a mean: one alone, or a channel's plane. */
typedef struct moments {
    size_t groups, plane; /* a sample has groups x plane elements */
    double *mean, *scale; /* of each group */
} moments;

static clt_status moments_make(moments *m, const clt_field *field) {
    size_t elements = field->sample_bytes / sizeof(float);
    m->groups = field->shape.rank == 3 ? (size_t)field->shape.dims[0] : elements;
    m->plane = elements / m->groups;
    m->mean = clt_calloc(m->groups, 2 * sizeof(double));
    if (!m->mean) return clt_fail_memory(2 * m->groups * sizeof(double));
    m->scale = m->mean + m->groups;
    return CLT_OK;
}

static void measure_mean(moments *m, const float *x, int64_t samples) {
    for (int64_t i = 0; i < samples; i++)
        for (size_t g = 0; g < m->groups; g++)
            for (size_t p = 0; p < m->plane; p++) m->mean[g] += *x++;
    for (size_t g = 0; g < m->groups; g++) m->mean[g] /= (double)samples * (double)m->plane;
}

/* Around the mean, in a second pass: no cancellation where the mean is large. */
static void measure_variance(moments *m, const float *x, int64_t samples) {
    for (int64_t i = 0; i < samples; i++)
        for (size_t g = 0; g < m->groups; g++)
            for (size_t p = 0; p < m->plane; p++) {
                double d = *x++ - m->mean[g];
                m->scale[g] += d * d;
            }
    for (size_t g = 0; g < m->groups; g++) m->scale[g] /= (double)samples * (double)m->plane;
}

static clt_status deviation_to_scale(moments *m) {
    for (size_t g = 0; g < m->groups; g++) {
        double deviation = sqrt(m->scale[g]);
        if (!isfinite(m->mean[g]) || !isfinite(deviation))
            return clt_fail(CLT_E_RANGE, "standardize: %s %zu of field 0 has values that are not finite",
                            m->plane > 1 ? "channel" : "element", g);
        /* Two f32 that differ in the last bit are further apart: less is the sums' rounding. */
        m->scale[g] = deviation > 1e-12 * fabs(m->mean[g]) ? 1 / deviation : 1;
    }
    return CLT_OK;
}

static void apply(const moments *m, float *x, int64_t samples) {
    for (int64_t i = 0; i < samples; i++)
        for (size_t g = 0; g < m->groups; g++)
            for (size_t p = 0; p < m->plane; p++, x++) *x = (float)((*x - m->mean[g]) * m->scale[g]);
}

static clt_status check(const clt_dataset *dataset, const clt_dataset *like) {
    if (!dataset || !like) return clt_fail(CLT_E_INVALID, "clt_dataset_standardize: a data set is NULL");
    const clt_field *a = &dataset->fields[0], *b = &like->fields[0];
    if (a->dtype != CLT_F32 || b->dtype != CLT_F32)
        return clt_fail(CLT_E_DTYPE, "standardize: field 0 is %s, not f32",
                        clt_dtype_name(a->dtype != CLT_F32 ? a->dtype : b->dtype));
    bool same = a->shape.rank == b->shape.rank;
    for (int i = 0; same && i < a->shape.rank; i++) same = a->shape.dims[i] == b->shape.dims[i];
    if (!same)
        return clt_fail(CLT_E_SHAPE, "standardize: the samples of the two data sets differ in shape");
    return CLT_OK;
}

clt_status clt_dataset_standardize(clt_dataset *dataset, const clt_dataset *like) {
    CLT_TRY(check(dataset, like));
    moments m = {0};
    CLT_TRY(moments_make(&m, &like->fields[0]));
    measure_mean(&m, like->fields[0].data, like->samples);
    measure_variance(&m, like->fields[0].data, like->samples);
    clt_status status = deviation_to_scale(&m);
    if (status == CLT_OK) apply(&m, dataset->fields[0].data, dataset->samples);
    clt_free(m.mean);
    return status;
}
