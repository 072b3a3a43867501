/*
 * The data set's inside, for the readers and the loader.
 */
#ifndef CLT_DATA_DATA_H
#define CLT_DATA_DATA_H

#include <cltrain/data.h>

#include "runtime/base/base.h"
#include "runtime/base/random.h"

typedef struct clt_field {
    clt_dtype dtype;
    clt_shape shape;     /* of one sample */
    size_t sample_bytes; /* of one sample; > 0 */
    void *data;          /* samples x sample_bytes */
} clt_field;

struct clt_dataset {
    int64_t samples; /* > 0 */
    int n_fields;
    clt_field fields[CLT_MAX_FIELDS];
    int classes;
    clt_preprocessing *facts; /* names and moments; NULL: none are known */
};

/* A data set without fields. CLT_E_FORMAT for no samples at all. */
clt_status clt_dataset_new(clt_dataset **dataset, int64_t samples);

/* Appends a field. `data` is what clt_alloc gave and belongs to the data set from then on, even
 * if this fails; NULL: memory for all samples is allocated, not cleared. */
clt_status clt_dataset_add(clt_dataset *dataset, clt_dtype dtype, clt_shape sample, void *data);

/* Once all fields are there and filled: counts the classes. CLT_E_RANGE for a label below 0. */
clt_status clt_dataset_count_classes(clt_dataset *dataset);

/* Field 0 is images whose pixels were from 0 to `most` and are divided by that: what a model of it does to others. */
clt_status clt_dataset_note_pixels(clt_dataset *dataset, double most);

/* Takes the last field away. */
void clt_dataset_drop_truth(clt_dataset *dataset);

/* Copies samples order[0] … order[count - 1] of a field to `to`. */
void clt_dataset_gather(const clt_dataset *dataset, int field, const int64_t *order, int64_t count,
                        void *to);

/* ---- rows.c: samples of f32 x and a truth of 4 bytes, appended as they are read ---- */

typedef struct clt_rows {
    size_t row_elements; /* of x; set by the caller */
    float *x;
    union {
        int32_t *label;
        float *target;
    } y;
    size_t rows, capacity;
} clt_rows;

/* Memory for `more` rows beyond the present ones. */
clt_status clt_rows_reserve(clt_rows *rows, size_t more);

/* Hands the memory over to a new data set: x of shape `sample`, y as label i32 [] or as f32 [1].
 * `classes`: how many there are, or 0 to count them. Rows are empty after, also on an error. */
clt_status clt_rows_finish(clt_rows *rows, clt_shape sample, clt_dtype truth, int classes,
                           clt_dataset **dataset);

void clt_rows_free(clt_rows *rows);

#endif
