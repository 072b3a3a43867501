#include "runtime/data/data.h"

static clt_status resize(clt_rows *rows, size_t capacity) {
    size_t row_bytes, x_bytes, y_bytes;
    if (!clt_mul_size(rows->row_elements, sizeof(float), &row_bytes) ||
        !clt_mul_size(row_bytes, capacity, &x_bytes) ||
        !clt_mul_size(capacity, sizeof(int32_t), &y_bytes))
        return clt_fail_memory(SIZE_MAX);
    void *x = clt_realloc(rows->x, x_bytes);
    if (!x) return clt_fail_memory(x_bytes);
    rows->x = x;
    void *low = clt_realloc(rows->low, x_bytes);
    if (!low) return clt_fail_memory(x_bytes);
    rows->low = low;
    void *target_low = clt_realloc(rows->target_low, y_bytes);
    if (!target_low) return clt_fail_memory(y_bytes);
    rows->target_low = target_low;
    void *y = clt_realloc(rows->y.label, y_bytes);
    if (!y) return clt_fail_memory(y_bytes);
    rows->y.label = y;
    rows->capacity = capacity;
    return CLT_OK;
}

clt_status clt_rows_reserve(clt_rows *rows, size_t more) {
    if (more <= rows->capacity - rows->rows) return CLT_OK;
    if (more > SIZE_MAX / 4 - rows->rows) return clt_fail_memory(SIZE_MAX);
    return resize(rows, CLT_MAX(rows->rows + more, rows->capacity * 2));
}

static void take_low(clt_field *field, float **low, size_t count) {
    if (!*low || !clt_low_matters(*low, count)) return;
    field->low = *low;
    *low = NULL;
}

clt_status clt_rows_finish(clt_rows *rows, clt_shape sample, clt_dtype truth, int classes,
                           clt_dataset **dataset) {
    const clt_shape index = {0}, value = CLT_SHAPE(1);
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_dataset_new(&d, (int64_t)rows->rows));
    CLT_TRY_GOTO(resize(rows, rows->rows)); /* gives back what growing took too much */
    void *x = rows->x, *y = rows->y.label;
    rows->x = NULL;
    CLT_TRY_GOTO(clt_dataset_add(d, CLT_F32, sample, x));
    take_low(&d->fields[0], &rows->low, rows->rows * rows->row_elements);
    rows->y.label = NULL;
    CLT_TRY_GOTO(clt_dataset_add(d, truth, truth == CLT_I32 ? index : value, y));
    if (truth == CLT_F32) take_low(&d->fields[1], &rows->target_low, rows->rows);
    CLT_TRY_GOTO(clt_dataset_count_classes(d));
    if (classes) d->classes = classes;
    *dataset = d;
    clt_rows_free(rows);
    return CLT_OK;
fail:
    clt_dataset_destroy(d);
    clt_rows_free(rows);
    return status;
}

void clt_rows_free(clt_rows *rows) {
    clt_free(rows->x);
    clt_free(rows->low);
    clt_free(rows->target_low);
    clt_free(rows->y.label);
    *rows = (clt_rows){.row_elements = rows->row_elements};
}
