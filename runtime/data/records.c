#include "runtime/data/records.h"

static clt_status add_record(clt_source *source, const clt_record_format *format,
                             const unsigned char *record, size_t index, clt_rows *rows) {
    int label = record[format->label_at];
    if (label >= format->classes)
        return clt_fail(CLT_E_RANGE, "%s: record %zu: label %d, not 0 to %d", clt_source_path(source),
                        index, label, format->classes - 1);
    float *x = rows->x + rows->rows * rows->row_elements;
    for (size_t i = 0; i < format->pixels; i++) {
        int pixel = record[format->pixels_at + i];
        if (pixel > format->pixel_most)
            return clt_fail(CLT_E_RANGE, "%s: record %zu: pixel %zu is %d, more than %d",
                            clt_source_path(source), index, i, pixel, format->pixel_most);
        x[i] = (float)pixel / (float)format->pixel_most;
    }
    rows->y.label[rows->rows++] = label;
    return CLT_OK;
}

/* Where the size is known, it must be a whole number of records, and memory is taken once. */
static clt_status check_size(clt_source *source, const clt_record_format *format, clt_rows *rows) {
    uint64_t left;
    if (!clt_source_left(source, &left)) return CLT_OK;
    if (left == 0 || left % format->bytes)
        return clt_fail(CLT_E_FORMAT, "%s: %llu bytes are not a whole number of records of %zu",
                        clt_source_path(source), (unsigned long long)left, format->bytes);
    if (left / format->bytes > SIZE_MAX) return clt_fail_memory(SIZE_MAX);
    return clt_rows_reserve(rows, (size_t)(left / format->bytes));
}

clt_status clt_records_read(clt_source *source, const clt_record_format *format, clt_rows *rows) {
    unsigned char record[CLT_RECORD_MOST_BYTES];
    CLT_TRY(check_size(source, format, rows));
    for (size_t index = 0;; index++) {
        size_t got;
        CLT_TRY(clt_source_read(source, record, format->bytes, &got));
        if (got == 0 && index > 0) return CLT_OK;
        if (got < format->bytes)
            return clt_fail(CLT_E_FORMAT, "%s: record %zu has %zu bytes, not %zu",
                            clt_source_path(source), index, got, format->bytes);
        CLT_TRY(clt_rows_reserve(rows, 1));
        CLT_TRY(add_record(source, format, record, index, rows));
    }
}

clt_status clt_records_finish(const clt_record_format *format, clt_rows *rows, clt_shape image, clt_dataset **dataset) {
    clt_dataset *d;
    CLT_TRY(clt_rows_finish(rows, image, CLT_I32, 0, &d));
    clt_status status = clt_dataset_note_pixels(d, format->pixel_most);
    if (status < 0) clt_dataset_destroy(d);
    else *dataset = d;
    return status;
}
