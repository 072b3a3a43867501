/*
 * Files of fixed-size records, each some pixels and a label of a byte.
 */
#ifndef CLT_DATA_RECORDS_H
#define CLT_DATA_RECORDS_H

#include "runtime/data/data.h"
#include "runtime/base/source.h"

enum { CLT_RECORD_MOST_BYTES = 4096 };

typedef struct clt_record_format {
    size_t bytes; /* of a record, the label's byte included */
    size_t label_at, pixels_at;
    size_t pixels;
    int pixel_most; /* 1.0 in the data set */
    int classes;
} clt_record_format;

/* Appends the records of a source to the rows. CLT_E_FORMAT if they are not whole, CLT_E_RANGE
 * for a label or pixel that is too large, with its record and byte. */
clt_status clt_records_read(clt_source *source, const clt_record_format *format, clt_rows *rows);

/* The rows become a data set of images, also on an error. */
clt_status clt_records_finish(const clt_record_format *format, clt_rows *rows, clt_shape image, clt_dataset **dataset);

#endif
