/*
 * Rows of a table that is larger than memory, in a file that nobody sees, from which samples are read when a batch needs them.
 */
#ifndef CLT_DATA_CSV_SPILL_H
#define CLT_DATA_CSV_SPILL_H

#include "runtime/base/file.h"
#include "runtime/data/csv_features.h"

enum { CLT_CSV_SPILL_ROWS = 4096 }; /* that are kept in memory at a time */

typedef struct clt_csv_spill {
    char *folder;
    clt_file_view view; /* of the file, which has no name any more: read piece by piece, not mapped */
    size_t row_elements;
    size_t rows;
    union {
        int32_t *label;
        float *target;
    } y; /* of all rows: in memory */
    size_t capacity;
    clt_csv_features features; /* taken over by clt_csv_spill_finish */
} clt_csv_spill;

/* Makes the file. CLT_E_IO, with the folder's name. */
clt_status clt_csv_spill_open(clt_csv_spill **spill, const char *folder);
void clt_csv_spill_close(clt_csv_spill *spill); /* NULL is fine */

/* Takes the rows over, which are none then. */
clt_status clt_csv_spill_add(clt_csv_spill *spill, clt_rows *rows);

/* The data set that has the spill, and the features, from then on. */
clt_status clt_csv_spill_finish(clt_csv_spill *spill, clt_csv_features *features, clt_dtype truth, int classes, clt_dataset **dataset);

#endif
