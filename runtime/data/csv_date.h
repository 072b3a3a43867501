/*
 * Texts that are dates: as categories they would tell nothing of a date that was not there.
 */
#ifndef CLT_DATA_CSV_DATE_H
#define CLT_DATA_CSV_DATE_H

#include <stdbool.h>

/* Numbers apart by - / or ., as 2024-03-31, 3/31/2024, 31.03.24 or 2024-03 are, and what stands behind a space or T, such as a time; or an English month's name
 * and numbers, as Mar 31, 2024 or Sun, 31 March 2024 12:30 PM. */
bool clt_csv_is_date(const char *text);

#endif
