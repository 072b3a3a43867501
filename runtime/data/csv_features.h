/*
 * Features of a table: numbers, texts that become an element for each category, and values that are missing.
 */
#ifndef CLT_DATA_CSV_FEATURES_H
#define CLT_DATA_CSV_FEATURES_H

#include "runtime/data/csv_columns.h"
#include "runtime/data/csv_labels.h"
#include "runtime/data/data.h"

enum { CLT_CSV_MOST_CATEGORIES = 100 };

typedef enum clt_csv_kind { CLT_CSV_UNKNOWN, CLT_CSV_NUMBERS, CLT_CSV_TEXTS } clt_csv_kind;

/* What is known of the numbers of a column, missing ones left out. */
typedef struct clt_csv_range {
    double sum, first; /* first: that of the first row, NaN if it is missing */
    double low, high;  /* of the other rows; infinite: there are none */
    bool rounded;      /* f32 does not have them all */
    size_t n;
} clt_csv_range;

extern const clt_csv_range clt_csv_no_range; /* of no numbers */

/* A column. Each row has one f32 for it while the table is read: the number, a category, or NaN where it is missing. */
typedef struct clt_csv_feature {
    clt_csv_kind kind;
    clt_csv_range range;
    clt_csv_labels categories;
    int32_t *ranks; /* of categories as they were read, in the order of their names; NULL: they have it already */
    double fill; /* in the place of a number that is missing; NaN: the mean of those that are there */
    bool lacks;  /* a value was missing */
    bool codes;  /* texts that may look like numbers */
} clt_csv_feature;

typedef struct clt_csv_features {
    clt_csv_feature *items;
    int64_t n;
    bool fills; /* missing numbers get the model's values, or the means; else there must be none */
} clt_csv_features;

/* For the columns that were found. */
clt_status clt_csv_features_begin(clt_csv_features *features, const clt_csv_columns *columns, const clt_csv_options *options);
void clt_csv_features_free(clt_csv_features *features);

/* A field without blanks around it: *field is moved, and its length given. */
size_t clt_csv_trim(const char **field);

/* Whether a field stands for a value that is not there. */
bool clt_csv_is_missing(const char *field);

/* The category of a text. CLT_E_FORMAT, without words, where the feature is numbers; CLT_E_RANGE: no category, or too many. */
clt_status clt_csv_features_text(clt_csv_feature *feature, const char *text, float *value);

/* Notes a value, x + low; `first`: it is that of the first row. */
void clt_csv_range_add(clt_csv_range *range, float x, float low, bool first);
/* The same of all features of these rows; `begins`: they are the first ones. */
void clt_csv_features_note(clt_csv_features *features, const clt_rows *rows, bool begins);

/* When all rows were read, `rows` of them: settles categories and what is put in the place of missing values, and sets what `facts` tells of samples. */
clt_status clt_csv_features_finish(clt_csv_features *features, const clt_csv_columns *columns, size_t rows, clt_preprocessing *facts);

/* Elements of a sample. */
int64_t clt_csv_features_elements(const clt_csv_features *features);

/* Makes a sample of a row, behind clt_csv_features_finish: categories become elements, missing values are filled. `low` and `from_low` may be NULL. */
void clt_csv_features_expand(const clt_csv_features *features, const float *from, const float *from_low, float *x, float *low);
/* The same of all rows, in their place. */
clt_status clt_csv_features_expand_all(const clt_csv_features *features, clt_rows *rows);

#endif
