/*
 * What each column of a table is: an element of a sample, the label, or nothing.
 */
#ifndef CLT_DATA_CSV_COLUMNS_H
#define CLT_DATA_CSV_COLUMNS_H

#include "runtime/data/preprocessing.h"

enum { CLT_CSV_LABEL = -1, CLT_CSV_LEFT_OUT = -2, CLT_CSV_GROUP = -3 };

typedef struct clt_csv_columns {
    const char *path;     /* of the table, for messages */
    char *const *header;  /* names of the columns; NULL: they have none */
    int64_t n;
    int64_t *places;      /* of each column: which feature, from 0, or one of the above */
    int64_t features;
    int64_t *columns;     /* of each feature */
    int64_t *elements, *categories; /* of each feature of a model: its first element, and how many categories it has; 0: numbers */
    int64_t label;        /* its column, or -1 */
    bool *texts;          /* of each column: it is texts, whatever it looks like */
} clt_csv_columns;

/* `path`, `header` and `n` are given; options are read as <cltrain/data.h> says. */
clt_status clt_csv_columns_find(clt_csv_columns *columns, const clt_csv_options *options);
void clt_csv_columns_free(clt_csv_columns *columns);

/* Whether a line of n fields has the names of all columns that the model was trained on: then it is a header, though they may be numbers. */
bool clt_csv_columns_are_named(char *const *fields, int64_t n, const clt_preprocessing *like);

#endif
