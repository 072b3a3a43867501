/*
 * The data set's inside, for the readers and the loader.
 */
#ifndef CLT_DATA_DATA_H
#define CLT_DATA_DATA_H

#include <cltrain/data.h>

#include "runtime/base/base.h"
#include "runtime/base/random.h"
#include "runtime/data/indices.h"
#include "runtime/data/preprocessing.h"

enum { CLT_MOST_CLASSES = 1 << 24 }; /* of labels in tables and archives: their numbers are exact in f32 */

typedef struct clt_field {
    clt_dtype dtype;
    clt_shape shape;     /* of one sample */
    size_t sample_bytes; /* of one sample; > 0 */
    void *data;          /* samples x sample_bytes; NULL: a function makes them */
    float *low;          /* f32: data + low are the numbers as they were read, see low.c; NULL: data are */
} clt_field;

/* Element `at` of all samples' of a field f32, as it was read. */
static inline double clt_field_number(const clt_field *field, size_t at) {
    double x = (double)((const float *)field->data)[at];
    return field->low ? x + (double)field->low[at] : x;
}

/* Samples of a table from `sample` on, until the next run begins, are of one line each, from `line` on. */
typedef struct clt_line_run {
    int64_t sample, line;
} clt_line_run;

typedef struct clt_lines {
    clt_line_run *runs; /* by rising samples; NULL: there are no lines */
    size_t n, capacity;
} clt_lines;

struct clt_dataset {
    int64_t samples; /* > 0 */
    int n_fields;
    clt_field fields[CLT_MAX_FIELDS];
    int classes;
    clt_dataset_source source; /* fetch NULL: samples are in memory */
    int64_t *groups;           /* one a sample: those of a group stay together in splits; NULL: there are none */
    clt_indices part;          /* which samples of the source, or of the data set that was split, these are; none: all */
    clt_lines lines;           /* of a table that was read */
    clt_moments scaled, scaled_target; /* taken off each sample that is fetched */
    clt_preprocessing *facts; /* names and moments; NULL: none are known */
};

/* A data set without fields. CLT_E_FORMAT for no samples at all. */
clt_status clt_dataset_new(clt_dataset **dataset, int64_t samples);

/* Appends a field. `data` is what clt_alloc gave and belongs to the data set from then on, even
 * if this fails; NULL: memory for all samples is allocated, not cleared. */
clt_status clt_dataset_add(clt_dataset *dataset, clt_dtype dtype, clt_shape sample, void *data);

/* A field whose samples a function makes. */
clt_status clt_dataset_declare(clt_dataset *dataset, clt_dtype dtype, clt_shape sample);

/* CLT_E_UNSUPPORTED, by the name of what would change values in memory, where a function makes the samples. */
clt_status clt_dataset_expect_memory(const clt_dataset *dataset, const char *what);

/* Once all fields are there and filled: counts the classes. CLT_E_RANGE for a label below 0. */
clt_status clt_dataset_count_classes(clt_dataset *dataset);

/* Field 0 is images whose pixels were from 0 to `most` and are divided by that: what a model of it does to others. */
clt_status clt_dataset_note_pixels(clt_dataset *dataset, double most);

/* Takes the last field away. */
void clt_dataset_drop_truth(clt_dataset *dataset);

/* ---- groups.c ---- */

/* groups[order[0 ... count - 1]]; order NULL: the first `count`. */
clt_status clt_groups_take(int64_t **part, const int64_t *groups, const int64_t *order, int64_t count);

/* part_of[sample]: which of n parts, of those fractions of the samples as near as may be, the sample's group goes to; groups are dealt as they come in
 * `order`, each to the part that lacks the most samples. CLT_E_RANGE for fewer groups than parts. */
clt_status clt_groups_deal(const clt_dataset *dataset, const int64_t *order, const double *fractions, int n, int32_t *part_of);

/* ---- fetch.c ---- */

/* The label of a sample of a data set with classes. */
clt_status clt_dataset_label(const clt_dataset *dataset, int64_t index, int32_t *label);

/* Samples order[0 ... count - 1] of a data set whose samples a function makes, which must outlive the part. */
clt_status clt_dataset_view(clt_dataset **part, const clt_dataset *from, const int64_t *order, int64_t count);

/* The next field of `part`: samples order[0 … part->samples - 1] of that field of `from`. */
clt_status clt_dataset_take(clt_dataset *part, const clt_dataset *from, int field, const int64_t *order);

/* ---- rows.c: samples of f32 x and a truth of 4 bytes, appended as they are read ---- */

typedef struct clt_rows {
    size_t row_elements; /* of x; set by the caller */
    float *x, *low;      /* numbers are x + low */
    union {
        int32_t *label;
        float *target;
    } y;
    float *target_low;
    size_t rows, capacity;
} clt_rows;

/* Memory for `more` rows beyond the present ones. */
clt_status clt_rows_reserve(clt_rows *rows, size_t more);

/* Hands the memory over to a new data set: x of shape `sample`, y as label i32 [] or as f32 [1].
 * `classes`: how many there are, or 0 to count them. Rows are empty after, also on an error. */
clt_status clt_rows_finish(clt_rows *rows, clt_shape sample, clt_dtype truth, int classes,
                           clt_dataset **dataset);

void clt_rows_free(clt_rows *rows);

/* ---- low.c: what f32 rounds off numbers ---- */

static inline float clt_low_of(double value) {
    double low = value - (double)(float)value;
    return low - low == 0 ? (float)low : 0; /* of what is missing, none */
}

/* How far apart numbers of f32 are, from one to the other; values that differ by less than so many of that cannot be told apart. */
enum { CLT_LOW_TOO_FEW = 1 << 4 };
double clt_low_step(double low, double high);

/* Whether there is any. */
bool clt_low_matters(const float *low, size_t count);

/* Values as f32; *low is NULL where f32 has them all. Both are the caller's to free. */
clt_status clt_low_split(const double *values, size_t count, float **x, float **low);

/* Of samples that are used as f32, not standardized: CLT_E_RANGE where f32 has too few numbers to tell those of a column apart; a warning
 * where it has few. */
clt_status clt_low_check(const clt_dataset *dataset);

#endif
