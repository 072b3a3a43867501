/* A folder of images as a data set. */
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/data/images/listing.h"
#include "runtime/data/images/picture.h"

typedef struct folder {
    clt_listing listing;
    clt_image_folder_options options;
} folder;

static clt_status fetch_file(const folder *f, const char *path, const clt_sample *sample, void *field) {
    void *bytes = NULL;
    size_t length;
    CLT_TRY(clt_file_read(path, CLT_PICTURE_MOST_BYTES, &bytes, &length));
    clt_status status = clt_picture_make(&f->options, bytes, length, sample, field);
    clt_free(bytes);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const folder *f = user;
    const clt_listing *l = &f->listing;
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", l->root, l->paths.data + l->files[sample->index].path);
    clt_status status = path.status;
    if (status == CLT_OK) status = fetch_file(f, path.data, sample, fields[0]);
    if (!f->options.no_label) memcpy(fields[1], &l->files[sample->index].label, sizeof l->files->label);
    clt_text_free(&path);
    return status;
}

static const char *name_of(void *user, int64_t index) {
    const clt_listing *l = &((const folder *)user)->listing;
    return l->paths.data + l->files[index].path;
}

static int32_t label_of(void *user, int64_t index) {
    return ((const folder *)user)->listing.files[index].label;
}

static void destroy(void *user) {
    folder *f = user;
    clt_listing_free(&f->listing);
    clt_free(f);
}

/* The folder is the data set's to free once it has it. */
static clt_status make_dataset(clt_dataset **dataset, folder *f) {
    clt_dataset_source source = {.samples = (int64_t)f->listing.n, .classes = f->options.no_label ? 0 : (int)f->listing.classes.n, .fetch = fetch, .label = label_of, .name = name_of, .user = f};
    clt_picture_describe(&f->options, &source);
    CLT_TRY(clt_dataset_create(dataset, &source));
    clt_status status = clt_picture_note(*dataset, &f->listing.classes);
    if (status == CLT_OK) (*dataset)->source.destroy = destroy;
    else clt_dataset_destroy(*dataset);
    return status;
}

clt_status clt_dataset_image_folder(clt_dataset **dataset, const char *path, const clt_image_folder_options *options) {
    if (!dataset || !path) return clt_fail(CLT_E_INVALID, "clt_dataset_image_folder: dataset or folder is NULL");
    folder *f = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(sizeof *f);
    const clt_preprocessing *like = options ? options->like : NULL;
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_picture_resolve(&f->options, options, "clt_dataset_image_folder"));
    CLT_TRY_GOTO(clt_listing_read(&f->listing, path, like && like->class_names.n ? &like->class_names : NULL, f->options.no_label));
    if (f->listing.ignored)
        clt_log_message(CLT_LOG_WARNING, "%s: %lld files are not .jpg, .jpeg or .png, and are left out", path, (long long)f->listing.ignored);
    CLT_TRY_GOTO(make_dataset(&d, f));
    *dataset = d;
    return CLT_OK;
fail:
    destroy(f);
    return status;
}
