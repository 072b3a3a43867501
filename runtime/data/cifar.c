/*
 * CIFAR-10 and CIFAR-100, binary version: a label, of CIFAR-100 behind that of its superclass, and 3 planes of 32 x 32 pixels a record.
 * https://www.cs.toronto.edu/~kriz/cifar.html
 */
#include "runtime/data/records.h"

static const clt_record_format cifar10 = {
    .bytes = 3073, .label_at = 0, .pixels_at = 1, .pixels = 3072, .pixel_most = 255, .classes = 10};
static const clt_record_format cifar100 = {
    .bytes = 3074, .label_at = 1, .pixels_at = 2, .pixels = 3072, .pixel_most = 255, .classes = 100};

static clt_status read_files(clt_dataset **dataset, const clt_record_format *format, const char *const *paths, int n_paths) {
    clt_rows rows = {.row_elements = format->pixels};
    for (int i = 0; i < n_paths; i++) {
        clt_source *source;
        clt_status status = clt_source_open(&source, paths[i]);
        if (status == CLT_OK) {
            status = clt_records_read(source, format, &rows);
            clt_source_close(source);
        }
        if (status < 0) {
            clt_rows_free(&rows);
            return status;
        }
    }
    return clt_records_finish(format, &rows, CLT_SHAPE(3, 32, 32), dataset);
}

clt_status clt_dataset_cifar10(clt_dataset **dataset, const char *const *paths, int n_paths) {
    if (!dataset || !paths || n_paths < 1) return clt_fail(CLT_E_INVALID, "clt_dataset_cifar10: %d files into %p", n_paths, (void *)dataset);
    return read_files(dataset, &cifar10, paths, n_paths);
}

clt_status clt_dataset_cifar100(clt_dataset **dataset, const char *path) {
    if (!dataset || !path) return clt_fail(CLT_E_INVALID, "clt_dataset_cifar100: an argument is NULL");
    return read_files(dataset, &cifar100, &path, 1);
}
