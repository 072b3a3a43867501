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

/* A column. Each row has one f32 for it while the table is read: the number, a category, or NaN where it is missing. */
typedef struct clt_csv_feature {
    clt_csv_kind kind;
    clt_csv_labels categories;
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

/* Whether a field stands for a value that is not there. */
bool clt_csv_is_missing(const char *field);

/* The category of a text. CLT_E_FORMAT, without words, where the feature is numbers; CLT_E_RANGE: no category, or too many. */
clt_status clt_csv_features_text(clt_csv_feature *feature, const char *text, float *value);

/* Makes samples of the rows: categories become elements, missing values are filled. Sets what `facts` tells of them. */
clt_status clt_csv_features_finish(clt_csv_features *features, const clt_csv_columns *columns, clt_rows *rows, clt_preprocessing *facts);

#endif
