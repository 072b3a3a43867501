#include "runtime/data/csv_spill.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static clt_status fail_io(const clt_csv_spill *s, const char *what) {
    return clt_fail(CLT_E_IO, "%s: %s: %s", s->folder, what, strerror(errno));
}

static clt_status make_file(clt_csv_spill *s) {
    s->view.file = clt_file_open_unnamed(s->folder);
    return s->view.file < 0 ? fail_io(s, "no file can be made there") : CLT_OK;
}

clt_status clt_csv_spill_open(clt_csv_spill **spill, const char *folder) {
    clt_csv_spill *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(sizeof *s);
    s->view.file = -1;
    s->folder = clt_strdup(folder);
    clt_status status = s->folder ? make_file(s) : clt_fail_memory(strlen(folder) + 1);
    if (status < 0) clt_csv_spill_close(s);
    else *spill = s;
    return status;
}

void clt_csv_spill_close(clt_csv_spill *s) {
    if (!s) return;
    clt_file_view_close(&s->view);
    clt_csv_features_free(&s->features);
    clt_free(s->y.label);
    clt_free(s->folder);
    clt_free(s);
}

static clt_status write_all(const clt_csv_spill *s, const void *bytes, size_t length) {
    const char *next = bytes;
    while (length > 0) {
        ssize_t n = write(s->view.file, next, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_io(s, "cannot be written");
        next += n;
        length -= (size_t)n;
    }
    return CLT_OK;
}

clt_status clt_csv_spill_add(clt_csv_spill *s, clt_rows *rows) {
    s->row_elements = rows->row_elements;
    size_t bytes = rows->rows * rows->row_elements * sizeof *rows->x;
    CLT_TRY(write_all(s, rows->x, bytes));
    s->view.length += bytes;
    for (size_t r = 0; r < rows->rows; r++) {
        CLT_TRY(clt_grow(&s->y.label, &s->capacity, s->rows, sizeof *s->y.label));
        s->y.label[s->rows++] = rows->y.label[r]; /* or the target, whose bytes these are */
    }
    rows->rows = 0;
    return CLT_OK;
}

/* ---- samples ---- */

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const clt_csv_spill *s = user;
    size_t bytes = s->row_elements * sizeof(float);
    float *row = clt_alloc(bytes);
    if (!row) return clt_fail_memory(bytes);
    clt_status status = clt_file_view_read(&s->view, s->folder, (uint64_t)sample->index * bytes, row, bytes);
    if (status == CLT_OK) clt_csv_features_expand(&s->features, row, NULL, fields[0], NULL);
    if (status == CLT_OK) memcpy(fields[1], &s->y.label[sample->index], sizeof *s->y.label);
    clt_free(row);
    return status;
}

static int32_t label_of(void *user, int64_t index) {
    return ((const clt_csv_spill *)user)->y.label[index];
}

static void destroy(void *user) {
    clt_csv_spill_close(user);
}

static int count_classes(const clt_csv_spill *s) {
    int32_t most = -1;
    for (size_t r = 0; r < s->rows; r++) most = CLT_MAX(most, s->y.label[r]);
    return most + 1;
}

clt_status clt_csv_spill_finish(clt_csv_spill *s, clt_csv_features *features, clt_dtype truth, int classes, clt_dataset **dataset) {
    bool labels = truth == CLT_I32;
    s->features = *features;
    *features = (clt_csv_features){0};
    clt_dataset_source source = {.samples = (int64_t)s->rows, .n_fields = 2, .dtypes = {CLT_F32, truth}, .fetch = fetch, .destroy = destroy, .user = s};
    source.shapes[0] = CLT_SHAPE(clt_csv_features_elements(&s->features));
    if (!labels) source.shapes[1] = CLT_SHAPE(1);
    if (labels) source.classes = classes ? classes : count_classes(s), source.label = label_of;
    return clt_dataset_create(dataset, &source);
}
