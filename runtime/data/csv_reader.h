/*
 * Fields and lines of a CSV file (RFC 4180), read as a stream.
 */
#ifndef CLT_DATA_CSV_READER_H
#define CLT_DATA_CSV_READER_H

#include "runtime/base/source.h"

typedef struct clt_csv_reader {
    clt_source *source;
    char separator;
    clt_status status;  /* the first failure of the source sticks */
    int64_t line;       /* of the next byte, from 1 */
    int64_t field_line; /* where the field at hand began */
    char *field;        /* the field at hand, NUL-terminated */
    size_t length, capacity;
    size_t next, end; /* in the buffer */
    unsigned char buffer[1 << 16];
} clt_csv_reader;

/* Opens a file, gzipped or not; a byte order mark of UTF-8 at its begin is passed over. */
clt_status clt_csv_open(clt_csv_reader **reader, const char *path, char separator);
void clt_csv_close(clt_csv_reader *reader); /* NULL is fine */

/* Whether there is another byte; also true if that cannot be read, which clt_csv_field tells. */
bool clt_csv_more(clt_csv_reader *reader);

/* Passes over the rest of a line. False: the file ended in it, or could not be read on. */
bool clt_csv_skip_line(clt_csv_reader *reader);

/* Reads the next field; *last if the record ends behind it. CLT_E_FORMAT names file and line. */
clt_status clt_csv_field(clt_csv_reader *reader, bool *last);

#endif
