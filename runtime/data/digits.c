/*
 * The UCI hand-written digits inside the library: see digits.README.md.
 */
#include "runtime/data/records.h"

/* Made by the build from digits.bin.gz. */
extern const unsigned char clt_embedded_digits[];
extern const size_t clt_embedded_digits_bytes;

enum { DIGITS_SAMPLES = 1797 };

static const clt_record_format digits = {
    .bytes = 65, .label_at = 64, .pixels_at = 0, .pixels = 64, .pixel_most = 16, .classes = 10};

clt_status clt_dataset_digits(clt_dataset **dataset) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_digits: dataset is NULL");
    clt_rows rows = {.row_elements = digits.pixels};
    clt_source *source;
    CLT_TRY(clt_source_open_memory(&source, "the embedded digits", clt_embedded_digits,
                                   clt_embedded_digits_bytes));
    clt_status status = clt_records_read(source, &digits, &rows);
    clt_source_close(source);
    if (status == CLT_OK && rows.rows != DIGITS_SAMPLES)
        status =
            clt_fail(CLT_E_FORMAT, "the embedded digits: %zu images, not %d", rows.rows, DIGITS_SAMPLES);
    if (status < 0) {
        clt_rows_free(&rows);
        return status;
    }
    return clt_records_finish(&digits, &rows, CLT_SHAPE(1, 8, 8), dataset);
}
