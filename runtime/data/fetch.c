/* Samples, one at a time: copied from memory, or made by the function of a source. */
#include <string.h>

#include "runtime/data/data.h"
#include "runtime/data/preprocessing.h"

static clt_status check_source(const clt_dataset_source *source) {
    if (!source || !source->fetch) return clt_fail(CLT_E_INVALID, "clt_dataset_create: the source, or its fetch, is NULL");
    if (source->samples < 1) return clt_fail(CLT_E_INVALID, "clt_dataset_create: %lld samples; expected 1 or more", (long long)source->samples);
    if (source->n_fields < 1 || source->n_fields > CLT_MAX_FIELDS)
        return clt_fail(CLT_E_INVALID, "clt_dataset_create: %d fields; a data set has 1 to %d", source->n_fields, CLT_MAX_FIELDS);
    for (int i = 0; i < source->n_fields; i++)
        if (source->dtypes[i] != CLT_F32 && source->dtypes[i] != CLT_I32 && source->dtypes[i] != CLT_U8)
            return clt_fail(CLT_E_DTYPE, "clt_dataset_create: field %d is %s; expected f32, i32 or u8", i, clt_dtype_name(source->dtypes[i]));
    int last = source->n_fields - 1;
    bool labels = last > 0 && source->dtypes[last] == CLT_I32 && source->shapes[last].rank == 0;
    if (source->classes < 0 || (source->classes > 0 && !labels))
        return clt_fail(CLT_E_INVALID, "clt_dataset_create: %d classes; expected 0, or a last of several fields that is a label, i32 []", source->classes);
    return CLT_OK;
}

clt_status clt_dataset_create(clt_dataset **dataset, const clt_dataset_source *source) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_create: dataset is NULL");
    CLT_TRY(check_source(source));
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, source->samples));
    for (int i = 0; i < source->n_fields; i++) CLT_TRY_GOTO(clt_dataset_declare(d, source->dtypes[i], source->shapes[i]));
    d->source = *source;
    d->classes = source->classes;
    *dataset = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

clt_status clt_dataset_view(clt_dataset **part, const clt_dataset *from, const int64_t *order, int64_t count) {
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, count));
    for (int i = 0; i < from->n_fields; i++) CLT_TRY_GOTO(clt_dataset_declare(d, from->fields[i].dtype, from->fields[i].shape));
    CLT_TRY_GOTO(clt_indices_compose(&d->part, &from->part, from->samples, order, count));
    d->classes = from->classes;
    if (from->facts) CLT_TRY_GOTO(clt_preprocessing_copy(&d->facts, from->facts));
    CLT_TRY_GOTO(clt_moments_copy(&d->scaled, &from->scaled));
    CLT_TRY_GOTO(clt_moments_copy(&d->scaled_target, &from->scaled_target));
    d->source = from->source;
    d->source.destroy = NULL; /* the user is that of the data set that was split */
    *part = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

clt_status clt_dataset_expect_memory(const clt_dataset *dataset, const char *what) {
    if (!dataset->source.fetch) return CLT_OK;
    return clt_fail(CLT_E_UNSUPPORTED, "%s: a function makes these samples, which are not in memory: do it in the function, or in the graph", what);
}

static clt_status check_label(const clt_dataset *d, void *const *fields) {
    int32_t label;
    if (!d->classes) return CLT_OK;
    memcpy(&label, fields[d->n_fields - 1], sizeof label);
    if (label >= 0 && label < d->classes) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "label %d is not a class: expected an integer from 0 to %d", label, d->classes - 1);
}

/* Groups of elements, as many as there are moments, have one each. */
static void scale(const clt_moments *m, const clt_field *field, float *x) {
    size_t plane = m->n ? field->sample_bytes / sizeof *x / m->n : 0;
    for (size_t g = 0; g < m->n; g++) {
        double factor = 1 / m->deviation[g];
        for (size_t i = g * plane; i < (g + 1) * plane; i++) x[i] = (float)(((double)x[i] - m->mean[g]) * factor);
    }
}

static clt_status make_sample(const clt_dataset *d, const clt_sample *sample, void *const *fields) {
    clt_sample whole = *sample;
    whole.index = clt_indices_at(&d->part, sample->index);
    clt_fail(CLT_OK, "its function returned an error"); /* what a function of the caller's leaves as it is */
    clt_status status = d->source.fetch(d->source.user, &whole, fields);
    if (status > CLT_OK) status = clt_fail(CLT_E_INVALID, "its function returned %d, which is no status of an error", (int)status);
    if (status == CLT_OK) status = check_label(d, fields);
    if (status == CLT_OK) scale(&d->scaled, &d->fields[0], fields[0]);
    if (status == CLT_OK) scale(&d->scaled_target, &d->fields[d->n_fields - 1], fields[d->n_fields - 1]);
    if (status == CLT_OK) return CLT_OK;
    const char *name = clt_dataset_sample_name(d, sample->index);
    if (!name || clt_text_contains(clt_error_detail(), name)) return clt_fail_context(status, "sample %lld: ", (long long)whole.index);
    return clt_fail_context(status, "sample %lld (%s): ", (long long)whole.index, name);
}

const char *clt_dataset_sample_name(const clt_dataset *d, int64_t index) {
    if (!d || index < 0 || index >= d->samples || !d->source.name) return NULL;
    return d->source.name(d->source.user, clt_indices_at(&d->part, index));
}

int64_t clt_dataset_sample_index(const clt_dataset *d, int64_t index) {
    return !d || index < 0 || index >= d->samples ? -1 : clt_indices_at(&d->part, index);
}

int64_t clt_dataset_sample_line(const clt_dataset *d, int64_t index) {
    if (!d || index < 0 || index >= d->samples || !d->lines.n) return 0;
    size_t low = 0, high = d->lines.n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (d->lines.runs[middle].sample <= index) low = middle;
        else high = middle;
    }
    return d->lines.runs[low].line + index - d->lines.runs[low].sample;
}

/* Of which nothing else tells the label. */
static clt_status fetch_label(const clt_dataset *d, int64_t index, int32_t *label) {
    void *fields[CLT_MAX_FIELDS] = {NULL};
    clt_status status = CLT_OK;
    for (int i = 0; status == CLT_OK && i < d->n_fields - 1; i++) {
        fields[i] = clt_alloc(d->fields[i].sample_bytes);
        if (!fields[i]) status = clt_fail_memory(d->fields[i].sample_bytes);
    }
    fields[d->n_fields - 1] = label;
    if (status == CLT_OK) status = clt_dataset_fetch(d, &(clt_sample){.index = index}, fields);
    for (int i = 0; i < d->n_fields - 1; i++) clt_free(fields[i]);
    return status;
}

clt_status clt_dataset_label(const clt_dataset *d, int64_t index, int32_t *label) {
    if (!d->source.fetch) *label = ((const int32_t *)d->fields[d->n_fields - 1].data)[index];
    else if (d->source.label) *label = d->source.label(d->source.user, clt_indices_at(&d->part, index));
    else return fetch_label(d, index, label);
    if (*label >= 0 && *label < d->classes) return CLT_OK;
    return clt_fail(CLT_E_RANGE, "sample %lld: label %d is not a class: expected an integer from 0 to %d", (long long)index, *label, d->classes - 1);
}

clt_status clt_dataset_labels(const clt_dataset *d, int32_t *labels) {
    if (!d || !labels) return clt_fail(CLT_E_INVALID, "clt_dataset_labels: an argument is NULL");
    if (!d->classes) return clt_fail(CLT_E_DTYPE, "clt_dataset_labels: the data set has no classes");
    for (int64_t i = 0; i < d->samples; i++) CLT_TRY(clt_dataset_label(d, i, &labels[i]));
    return CLT_OK;
}

clt_status clt_dataset_fetch(const clt_dataset *d, const clt_sample *sample, void *const *fields) {
    if (!d || !sample || !fields) return clt_fail(CLT_E_INVALID, "clt_dataset_fetch: an argument is NULL");
    if (sample->index < 0 || sample->index >= d->samples)
        return clt_fail(CLT_E_RANGE, "clt_dataset_fetch: sample %lld of %lld", (long long)sample->index, (long long)d->samples);
    if (d->source.fetch) return make_sample(d, sample, fields);
    for (int i = 0; i < d->n_fields; i++) {
        const clt_field *f = &d->fields[i];
        memcpy(fields[i], (const char *)f->data + (size_t)sample->index * f->sample_bytes, f->sample_bytes);
    }
    return CLT_OK;
}
