/* Images in tar archives as a data set. */
#include <string.h>

#include "runtime/data/images/picture.h"
#include "runtime/data/images/tar_index.h"

typedef struct archives {
    clt_tar_index index;
    clt_image_folder_options options;
} archives;

static clt_status fetch_image(const archives *a, const clt_tar_sample *one, const clt_sample *sample, void *field) {
    const char *path = a->index.paths[one->shard];
    void *bytes = clt_alloc(one->bytes);
    if (!bytes) return clt_fail_memory(one->bytes);
    clt_status status = clt_file_view_read(&a->index.shards[one->shard], path, one->offset, bytes, one->bytes);
    if (status == CLT_OK) status = clt_picture_make(&a->options, bytes, one->bytes, sample, field);
    clt_free(bytes);
    return status < 0 ? clt_fail_context(status, "%s: %s: ", path, a->index.names.data + one->name) : CLT_OK;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const archives *a = user;
    const clt_tar_sample *one = &a->index.samples[sample->index];
    if (!a->options.no_label) memcpy(fields[1], &one->label, sizeof one->label);
    return fetch_image(a, one, sample, fields[0]);
}

static const char *name_of(void *user, int64_t index) {
    const archives *a = user;
    return a->index.names.data + a->index.samples[index].name;
}

static int32_t label_of(void *user, int64_t index) {
    return ((const archives *)user)->index.samples[index].label;
}

static void destroy(void *user) {
    archives *a = user;
    clt_tar_free(&a->index);
    clt_free(a);
}

static clt_status make_dataset(clt_dataset **dataset, archives *a, const clt_preprocessing *like) {
    static const clt_names none;
    int classes = a->options.no_label ? 0 : like ? CLT_MAX(like->classes, a->index.classes) : a->index.classes;
    clt_dataset_source source = {.samples = (int64_t)a->index.n, .classes = classes, .fetch = fetch, .label = label_of, .name = name_of, .user = a};
    clt_picture_describe(&a->options, &source);
    CLT_TRY(clt_dataset_create(dataset, &source));
    clt_status status = clt_picture_note(*dataset, like ? &like->class_names : &none);
    if (status == CLT_OK) (*dataset)->source.destroy = destroy;
    else clt_dataset_destroy(*dataset);
    return status;
}

clt_status clt_dataset_image_tar(clt_dataset **dataset, const char *const *paths, int n_paths, const clt_image_folder_options *options) {
    if (!dataset || !paths || n_paths < 1) return clt_fail(CLT_E_INVALID, "clt_dataset_image_tar: dataset or paths is NULL, or there is no path");
    archives *a = clt_calloc(1, sizeof *a);
    if (!a) return clt_fail_memory(sizeof *a);
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_picture_resolve(&a->options, options, "clt_dataset_image_tar"));
    CLT_TRY_GOTO(clt_tar_read(&a->index, paths, n_paths, !a->options.no_label));
    if (a->index.ignored) clt_log_message(CLT_LOG_WARNING, "%s: %lld samples have no image, and are left out", paths[0], (long long)a->index.ignored);
    if (a->index.absent && !(options && options->like))
        clt_log_message(CLT_LOG_WARNING, "%s: %d of the classes 0 to %d have no sample", paths[0], a->index.absent, a->index.classes - 1);
    CLT_TRY_GOTO(make_dataset(&d, a, options ? options->like : NULL));
    *dataset = d;
    return CLT_OK;
fail:
    destroy(a);
    return status;
}
