/*
 * What each column of a table is: an element of a sample, the label, or nothing.
 */
#ifndef CLT_DATA_CSV_COLUMNS_H
#define CLT_DATA_CSV_COLUMNS_H

#include "runtime/data/preprocessing.h"

enum { CLT_CSV_LABEL = -1, CLT_CSV_LEFT_OUT = -2 };

typedef struct clt_csv_columns {
    const char *path;     /* of the table, for messages */
    char *const *header;  /* names of the columns; NULL: they have none */
    int64_t n;
    int64_t *places;      /* of each column: which element of a sample, from 0, or one of the above */
    int64_t features;     /* elements of a sample */
    int64_t label;        /* its column, or -1 */
} clt_csv_columns;

/* `path`, `header` and `n` are given; options are read as <cltrain/data.h> says. */
clt_status clt_csv_columns_find(clt_csv_columns *columns, const clt_csv_options *options);
void clt_csv_columns_free(clt_csv_columns *columns);

/* The names of a sample's elements, in their order; none without a header. */
clt_status clt_csv_columns_names(const clt_csv_columns *columns, clt_names *names);

#endif
