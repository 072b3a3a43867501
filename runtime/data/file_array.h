/*
 * Arrays that stay in their files, of which each sample is read when a batch needs it: for those that are larger than memory.
 */
#ifndef CLT_DATA_FILE_ARRAY_H
#define CLT_DATA_FILE_ARRAY_H

#include "runtime/base/file.h"
#include "runtime/base/source.h"
#include "runtime/data/data.h"

typedef struct clt_file_array {
    /* from the file's header */
    int64_t samples;
    clt_shape sample;
    size_t item_bytes;
    clt_convert *to_f32, *to_label; /* to_label: not NULL where the items are labels */

    char *path;
    uint64_t start; /* of the first item, in the file */
    size_t items;   /* of a sample */
    clt_file_view view;
} clt_file_array;

/* Reads a file's header up to the first item, and fills in what it tells. */
typedef clt_status clt_file_header(clt_source *source, void *user, clt_file_array *array);

/* Opens the file of x, and of y unless its path is NULL; `check` (may be NULL) compares the two. Labels are read at once. CLT_E_FORMAT for a file that has not the bytes
 * of which its header tells, CLT_E_UNSUPPORTED for a compressed one, and what `read` and `check` give. */
clt_status clt_dataset_file_arrays(clt_dataset **dataset, const char *x_path, const char *y_path, clt_file_header *read_x, clt_file_header *read_y, clt_status (*check)(void *user), void *user);

#endif
