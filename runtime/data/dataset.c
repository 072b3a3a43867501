#include "runtime/data/data.h"
#include "runtime/base/shape.h"
#include "runtime/data/preprocessing.h"

#include <stdio.h>
#include <string.h>

clt_status clt_dataset_new(clt_dataset **dataset, int64_t samples) {
    if (samples < 1) return clt_fail(CLT_E_FORMAT, "a data set without samples");
    clt_dataset *d = clt_calloc(1, sizeof *d);
    if (!d) return clt_fail_memory(sizeof *d);
    d->samples = samples;
    *dataset = d;
    return CLT_OK;
}

/* Bytes of one sample and of all, or an error if there are none or too many. */
static clt_status measure(const clt_dataset *dataset, clt_dtype dtype, const clt_shape *sample,
                          size_t *sample_bytes, size_t *all_bytes) {
    int64_t elements = clt_shape_elements(sample);
    if (sample->rank >= CLT_MAX_RANK || elements < 1)
        return clt_fail(CLT_E_SHAPE, "a sample of rank %d with %lld elements; the rank may be up to %d",
                        sample->rank, (long long)elements, CLT_MAX_RANK - 1);
    if ((uint64_t)elements > SIZE_MAX || (uint64_t)dataset->samples > SIZE_MAX ||
        !clt_mul_size((size_t)elements, clt_dtype_bytes(dtype), sample_bytes) ||
        !clt_mul_size(*sample_bytes, (size_t)dataset->samples, all_bytes))
        return clt_fail_memory(SIZE_MAX);
    return CLT_OK;
}

clt_status clt_dataset_declare(clt_dataset *dataset, clt_dtype dtype, clt_shape sample) {
    size_t sample_bytes, all_bytes;
    if (dataset->n_fields == CLT_MAX_FIELDS) return clt_fail(CLT_E_INVALID, "a data set has at most %d fields", CLT_MAX_FIELDS);
    CLT_TRY(measure(dataset, dtype, &sample, &sample_bytes, &all_bytes));
    dataset->fields[dataset->n_fields++] = (clt_field){.dtype = dtype, .shape = sample, .sample_bytes = sample_bytes};
    return CLT_OK;
}

clt_status clt_dataset_add(clt_dataset *dataset, clt_dtype dtype, clt_shape sample, void *data) {
    clt_status status = clt_dataset_declare(dataset, dtype, sample);
    if (status < 0) {
        clt_free(data);
        return status;
    }
    clt_field *field = &dataset->fields[dataset->n_fields - 1];
    size_t bytes = field->sample_bytes * (size_t)dataset->samples; /* which fits: it was measured */
    field->data = data ? data : clt_alloc(bytes);
    if (field->data) return CLT_OK;
    dataset->n_fields--;
    return clt_fail_memory(bytes);
}

void clt_dataset_drop_truth(clt_dataset *dataset) {
    clt_field *truth = &dataset->fields[--dataset->n_fields];
    clt_free(truth->data);
    clt_free(truth->low);
    dataset->classes = 0;
}

clt_status clt_dataset_count_classes(clt_dataset *dataset) {
    const clt_field *field = &dataset->fields[dataset->n_fields - 1];
    dataset->classes = 0;
    if (dataset->n_fields < 2 || field->dtype != CLT_I32 || field->shape.rank != 0) return CLT_OK;
    const int32_t *labels = field->data;
    int32_t largest = 0;
    for (int64_t i = 0; i < dataset->samples; i++) {
        if (labels[i] < 0 || labels[i] == INT32_MAX)
            return clt_fail(CLT_E_RANGE, "label %d of sample %lld is not a class: expected an integer >= 0", labels[i], (long long)i);
        largest = CLT_MAX(largest, labels[i]);
    }
    dataset->classes = largest + 1;
    return CLT_OK;
}

static void gather(const char *from, size_t bytes, const int64_t *order, int64_t count, char *to) {
    for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * bytes, from + (size_t)order[i] * bytes, bytes);
}

clt_status clt_dataset_take(clt_dataset *part, const clt_dataset *from, int field, const int64_t *order) {
    const clt_field *f = &from->fields[field];
    CLT_TRY(clt_dataset_add(part, f->dtype, f->shape, NULL));
    clt_field *taken = &part->fields[field];
    gather(f->data, f->sample_bytes, order, part->samples, taken->data);
    if (!f->low) return CLT_OK;
    taken->low = clt_alloc((size_t)part->samples * f->sample_bytes);
    if (!taken->low) return clt_fail_memory((size_t)part->samples * f->sample_bytes);
    gather((const char *)f->low, f->sample_bytes, order, part->samples, (char *)taken->low);
    return CLT_OK;
}

static clt_status check_arrays(const clt_array *fields, int n_fields) {
    if (!fields || n_fields < 1 || n_fields > CLT_MAX_FIELDS)
        return clt_fail(CLT_E_INVALID, "%d fields; a data set has 1 to %d", n_fields, CLT_MAX_FIELDS);
    for (int i = 0; i < n_fields; i++) {
        const clt_array *f = &fields[i];
        if (f->dtype != CLT_F32 && f->dtype != CLT_I32 && f->dtype != CLT_U8 && f->dtype != CLT_I64)
            return clt_fail(CLT_E_DTYPE, "field %d is %s; a data set is made of f32, i32, u8 and i64", i,
                            clt_dtype_name(f->dtype));
        if (f->shape.rank < 1 || f->shape.rank > CLT_MAX_RANK || f->shape.dims[0] < 1)
            return clt_fail(CLT_E_SHAPE, "field %d has no dimension of samples", i);
        if (f->shape.dims[0] != fields[0].shape.dims[0])
            return clt_fail(CLT_E_SHAPE, "field %d has %lld samples, field 0 has %lld", i,
                            (long long)f->shape.dims[0], (long long)fields[0].shape.dims[0]);
        if (!f->data) return clt_fail(CLT_E_INVALID, "field %d has no data", i);
    }
    return CLT_OK;
}

static clt_shape sample_shape(const clt_shape *all) {
    clt_shape sample = {.rank = all->rank - 1};
    for (int i = 0; i < sample.rank; i++) sample.dims[i] = all->dims[i + 1];
    return sample;
}

static clt_status add_copy(clt_dataset *d, const clt_array *array, int index) {
    bool narrow = array->dtype == CLT_I64;
    char what[32];
    CLT_TRY(clt_dataset_add(d, narrow ? CLT_I32 : array->dtype, sample_shape(&array->shape), NULL));
    void *to = d->fields[index].data;
    snprintf(what, sizeof what, "field %d", index);
    if (narrow) return clt_narrow_i64(array->data, to, clt_shape_elements(&array->shape), what);
    memcpy(to, array->data, d->fields[index].sample_bytes * (size_t)d->samples);
    return CLT_OK;
}

clt_status clt_dataset_from_arrays(clt_dataset **dataset, const clt_array *fields, int n_fields) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_from_arrays: dataset is NULL");
    CLT_TRY(check_arrays(fields, n_fields));
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, fields[0].shape.dims[0]));
    for (int i = 0; i < n_fields; i++) {
        CLT_TRY_GOTO(add_copy(d, &fields[i], i));
    }
    CLT_TRY_GOTO(clt_dataset_count_classes(d));
    *dataset = d;
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    return status;
}

void clt_dataset_destroy(clt_dataset *dataset) {
    if (!dataset) return;
    for (int i = 0; i < dataset->n_fields; i++) {
        clt_free(dataset->fields[i].data);
        clt_free(dataset->fields[i].low);
    }
    clt_preprocessing_destroy(dataset->facts);
    clt_free(dataset->groups);
    clt_indices_free(&dataset->part);
    clt_free(dataset->lines.runs);
    clt_free(dataset->scaled.mean);
    clt_free(dataset->scaled_target.mean);
    if (dataset->source.destroy) dataset->source.destroy(dataset->source.user);
    clt_free(dataset);
}

int64_t clt_dataset_samples(const clt_dataset *dataset) {
    return dataset ? dataset->samples : 0;
}

int clt_dataset_fields(const clt_dataset *dataset) {
    return dataset ? dataset->n_fields : 0;
}

static const clt_field *find_field(const clt_dataset *dataset, int field) {
    return dataset && field >= 0 && field < dataset->n_fields ? &dataset->fields[field] : NULL;
}

clt_dtype clt_dataset_dtype(const clt_dataset *dataset, int field) {
    const clt_field *f = find_field(dataset, field);
    return f ? f->dtype : CLT_F32;
}

clt_shape clt_dataset_shape(const clt_dataset *dataset, int field) {
    const clt_field *f = find_field(dataset, field);
    return f ? f->shape : (clt_shape){.rank = -1};
}

int clt_dataset_classes(const clt_dataset *dataset) {
    return dataset ? dataset->classes : 0;
}

clt_array clt_dataset_array(const clt_dataset *dataset, int field) {
    const clt_field *f = find_field(dataset, field);
    if (!f) return (clt_array){.shape = {.rank = -1}};
    clt_array array = {.dtype = f->dtype, .shape = {.rank = f->shape.rank + 1}, .data = f->data};
    array.shape.dims[0] = dataset->samples;
    for (int i = 0; i < f->shape.rank; i++) array.shape.dims[i + 1] = f->shape.dims[i];
    return array;
}
