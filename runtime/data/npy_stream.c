/* A data set of .npy files that stay where they are. */
#include <math.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/shape.h"
#include "runtime/data/data.h"
#include "runtime/data/npy_header.h"

/* One file: its items, and where they begin. */
typedef struct array {
    char *path;
    clt_npy_header header;
    clt_file_view view;
    uint64_t start;
    size_t items; /* of a sample */
} array;

typedef struct stream {
    array x, y;
    int32_t *labels; /* NULL: y is targets, or there is none */
} stream;

static void destroy(void *user) {
    stream *s = user;
    array *both[] = {&s->x, &s->y};
    for (int i = 0; i < 2; i++) {
        clt_file_view_close(&both[i]->view);
        clt_free(both[i]->path);
    }
    clt_free(s->labels);
    clt_free(s);
}

/* ---- samples ---- */

static clt_status read_items(const array *a, uint64_t first, size_t count, clt_convert *convert, void *to) {
    const clt_npy_kind *kind = &clt_npy_kinds[a->header.type];
    void *raw = clt_alloc(count * kind->bytes);
    if (!raw) return clt_fail_memory(count * kind->bytes);
    clt_status status = clt_file_view_read(&a->view, a->path, a->start + first * kind->bytes, raw, count * kind->bytes);
    size_t done = status == CLT_OK ? convert(raw, count, to) : 0;
    clt_free(raw);
    if (status < 0 || done == count) return status;
    return clt_fail(CLT_E_RANGE, "%s: item %llu is out of range: expected labels from 0, or numbers that f32 can hold", a->path, (unsigned long long)(first + done));
}

static clt_status read_numbers(const array *a, int64_t sample, void *to) {
    const float *values = to;
    CLT_TRY(read_items(a, (uint64_t)sample * a->items, a->items, clt_npy_kinds[a->header.type].to_f32, to));
    for (size_t i = 0; i < a->items; i++)
        if (!isfinite(values[i])) return clt_fail(CLT_E_RANGE, "%s: sample %lld (from 0), element %zu is %g: expected finite numbers", a->path, (long long)sample, i, (double)values[i]);
    return CLT_OK;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const stream *s = user;
    CLT_TRY(read_numbers(&s->x, sample->index, fields[0]));
    if (s->labels) memcpy(fields[1], &s->labels[sample->index], sizeof *s->labels);
    else if (s->y.path) return read_numbers(&s->y, sample->index, fields[1]);
    return CLT_OK;
}

static int32_t label_of(void *user, int64_t index) {
    return ((const stream *)user)->labels[index];
}

/* ---- opening ---- */

/* The file's size is held against its header. */
static clt_status find_start(array *a, clt_source *source) {
    uint64_t left, size, bytes;
    CLT_TRY(clt_npy_read_header(source, &a->header));
    if (!clt_source_left(source, &left)) return clt_fail(CLT_E_UNSUPPORTED, "%s: compressed, and so not read sample by sample: unpack it", a->path);
    CLT_TRY(clt_file_size(a->path, &size));
    bytes = (uint64_t)a->header.elements * clt_npy_kinds[a->header.type].bytes;
    if (left != bytes) return clt_fail(CLT_E_FORMAT, "%s: %llu bytes of data, where the header tells of %llu", a->path, (unsigned long long)left, (unsigned long long)bytes);
    a->start = size - left;
    return CLT_OK;
}

static clt_status open_array(array *a, const char *path) {
    clt_source *source;
    a->path = clt_strdup(path);
    if (!a->path) return clt_fail_memory(strlen(path) + 1);
    CLT_TRY(clt_source_open(&source, path));
    clt_status status = find_start(a, source);
    clt_source_close(source);
    CLT_TRY(status);
    a->items = (size_t)(a->header.elements / a->header.shape.dims[0]);
    return clt_file_view_open(&a->view, path);
}

static clt_status read_labels(stream *s, int *classes) {
    size_t n = (size_t)s->y.header.shape.dims[0];
    s->labels = clt_alloc(n * sizeof *s->labels);
    if (!s->labels) return clt_fail_memory(n * sizeof *s->labels);
    CLT_TRY(read_items(&s->y, 0, n, clt_npy_kinds[s->y.header.type].to_label, s->labels));
    for (size_t i = 0; i < n; i++) *classes = CLT_MAX(*classes, s->labels[i] + 1);
    return CLT_OK;
}

static clt_status open_both(stream *s, const char *x_path, const char *y_path, clt_dataset_source *source) {
    CLT_TRY(open_array(&s->x, x_path));
    source->samples = s->x.header.shape.dims[0];
    source->shapes[0] = clt_npy_sample(&s->x.header, true);
    source->n_fields = 1;
    if (!y_path) return CLT_OK;
    CLT_TRY(open_array(&s->y, y_path));
    CLT_TRY(clt_npy_check_pair(x_path, &s->x.header, y_path, &s->y.header));
    source->n_fields = 2;
    if (!clt_npy_kinds[s->y.header.type].to_label) {
        source->shapes[1] = clt_npy_sample(&s->y.header, true);
        return CLT_OK;
    }
    source->dtypes[1] = CLT_I32;
    source->label = label_of;
    return read_labels(s, &source->classes);
}

clt_status clt_dataset_npy_stream(clt_dataset **dataset, const char *x_path, const char *y_path) {
    if (!dataset || !x_path) return clt_fail(CLT_E_INVALID, "clt_dataset_npy_stream: dataset or x_path is NULL");
    stream *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->x.view.file = s->y.view.file = -1;
    clt_dataset_source source = {.dtypes = {CLT_F32, CLT_F32}, .fetch = fetch, .destroy = destroy, .user = s};
    clt_status status = open_both(s, x_path, y_path, &source);
    if (status == CLT_OK) status = clt_dataset_create(dataset, &source);
    if (status < 0) destroy(s);
    return status;
}
