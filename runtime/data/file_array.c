#include "runtime/data/file_array.h"

#include <math.h>
#include <string.h>

typedef struct arrays {
    clt_file_array x, y;
    int32_t *labels; /* NULL: y is targets, or there is none */
} arrays;

static void destroy(void *user) {
    arrays *a = user;
    clt_file_array *both[] = {&a->x, &a->y};
    for (int i = 0; i < 2; i++) {
        clt_file_view_close(&both[i]->view);
        clt_free(both[i]->path);
    }
    clt_free(a->labels);
    clt_free(a);
}

/* ---- samples ---- */

static clt_status read_items(const clt_file_array *a, uint64_t first, size_t count, clt_convert *convert, void *to) {
    void *raw = clt_alloc(count * a->item_bytes);
    if (!raw) return clt_fail_memory(count * a->item_bytes);
    clt_status status = clt_file_view_read(&a->view, a->path, a->start + first * a->item_bytes, raw, count * a->item_bytes);
    size_t done = status == CLT_OK ? convert(raw, count, to) : 0;
    clt_free(raw);
    if (status < 0 || done == count) return status;
    return clt_fail(CLT_E_RANGE, "%s: item %llu is out of range: expected labels from 0, or numbers that f32 can hold", a->path, (unsigned long long)(first + done));
}

static clt_status read_numbers(const clt_file_array *a, int64_t sample, void *to) {
    const float *values = to;
    CLT_TRY(read_items(a, (uint64_t)sample * a->items, a->items, a->to_f32, to));
    for (size_t i = 0; i < a->items; i++)
        if (!isfinite(values[i])) return clt_fail(CLT_E_RANGE, "%s: sample %lld (from 0), element %zu is %g: expected finite numbers", a->path, (long long)sample, i, (double)values[i]);
    return CLT_OK;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const arrays *a = user;
    CLT_TRY(read_numbers(&a->x, sample->index, fields[0]));
    if (a->labels) memcpy(fields[1], &a->labels[sample->index], sizeof *a->labels);
    else if (a->y.path) return read_numbers(&a->y, sample->index, fields[1]);
    return CLT_OK;
}

static int32_t label_of(void *user, int64_t index) {
    return ((const arrays *)user)->labels[index];
}

/* ---- opening ---- */

/* The file's size is held against its header. */
static clt_status find_start(clt_file_array *a, clt_source *source) {
    uint64_t left, size, bytes;
    a->items = (size_t)clt_shape_elements(&a->sample);
    if (!clt_source_left(source, &left)) return clt_fail(CLT_E_UNSUPPORTED, "%s: compressed, and so not read sample by sample: unpack it", a->path);
    CLT_TRY(clt_file_size(a->path, &size));
    bool huge = __builtin_mul_overflow((uint64_t)a->samples, (uint64_t)a->items, &bytes) || __builtin_mul_overflow(bytes, (uint64_t)a->item_bytes, &bytes);
    if (huge || left != bytes)
        return clt_fail(CLT_E_FORMAT, "%s: %llu bytes of data, where the header tells of %llu", a->path, (unsigned long long)left, (unsigned long long)bytes);
    a->start = size - left;
    return CLT_OK;
}

static clt_status open_array(clt_file_array *a, const char *path, clt_file_header *read, void *user) {
    clt_source *source;
    a->path = clt_strdup(path);
    if (!a->path) return clt_fail_memory(strlen(path) + 1);
    CLT_TRY(clt_source_open(&source, path));
    clt_status status = read(source, user, a);
    if (status == CLT_OK) status = find_start(a, source);
    clt_source_close(source);
    CLT_TRY(status);
    return clt_file_view_open(&a->view, path);
}

static clt_status read_labels(arrays *a, int *classes) {
    size_t n = (size_t)a->y.samples;
    a->labels = clt_alloc(n * sizeof *a->labels);
    if (!a->labels) return clt_fail_memory(n * sizeof *a->labels);
    CLT_TRY(read_items(&a->y, 0, n, a->y.to_label, a->labels));
    for (size_t i = 0; i < n; i++) *classes = CLT_MAX(*classes, a->labels[i] + 1);
    return CLT_OK;
}

static clt_status describe(arrays *a, clt_dataset_source *source) {
    source->samples = a->x.samples;
    source->shapes[0] = a->x.sample;
    source->n_fields = a->y.path ? 2 : 1;
    if (!a->y.path) return CLT_OK;
    if (!a->y.to_label) {
        source->shapes[1] = a->y.sample;
        return CLT_OK;
    }
    source->dtypes[1] = CLT_I32; /* of shape [] */
    source->label = label_of;
    return read_labels(a, &source->classes);
}

clt_status clt_dataset_file_arrays(clt_dataset **dataset, const char *x_path, const char *y_path, clt_file_header *read_x, clt_file_header *read_y, clt_status (*check)(void *user), void *user) {
    arrays *a = clt_calloc(1, sizeof *a);
    if (!a) return clt_fail_memory(sizeof *a);
    a->x.view.file = a->y.view.file = -1;
    clt_dataset_source source = {.dtypes = {CLT_F32, CLT_F32}, .fetch = fetch, .destroy = destroy, .user = a};
    clt_status status = open_array(&a->x, x_path, read_x, user);
    if (status == CLT_OK && y_path) status = open_array(&a->y, y_path, read_y, user);
    if (status == CLT_OK && y_path && check) status = check(user);
    if (status == CLT_OK) status = describe(a, &source);
    if (status == CLT_OK) status = clt_dataset_create(dataset, &source);
    if (status < 0) destroy(a);
    return status;
}
