/* A folder of images as a data set: what is random is drawn from the seed, the epoch and the sample. */
#include <math.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/data/data.h"
#include "runtime/data/images/augment.h"
#include "runtime/data/images/listing.h"

enum { DEFAULT_SIZE = 224, MOST_SIZE = 4096, MOST_FILE_BYTES = 1 << 30 };

typedef struct folder {
    clt_listing listing;
    clt_image_folder_options options;
} folder;

/* ---- one image ---- */

/* What is done to one: a part of it becomes `size` x `size`. */
typedef struct change {
    const clt_image_folder_options *options;
    clt_random random;
    clt_image_box box;         /* that is read */
    double x, y, width, height; /* that becomes the result, of the file's pixels */
    bool clip;                  /* pixels outside of it are not looked at */
} change;

/* The largest that leaves a pixel for each of the result's. */
static int reduction_of(const change *c) {
    int reduction = 1;
    double least = fmin(c->width, c->height);
    while (!c->options->exact && reduction < 8 && least >= 2.0 * reduction * c->options->size) reduction *= 2;
    return reduction;
}

/* The centre of what the image is once its shorter side is options.resize: whole pixels there, as torchvision's Resize and CenterCrop. */
static void choose_centre(change *c, int width, int height) {
    const clt_image_folder_options *o = c->options;
    int shorter = CLT_MIN(width, height);
    int w = (int)((int64_t)o->resize * width / shorter), h = (int)((int64_t)o->resize * height / shorter);
    double x = (double)width / w, y = (double)height / h; /* a pixel there, of the file's */
    c->width = o->size * x;
    c->height = o->size * y;
    c->x = (double)lrint((w - o->size) / 2.0) * x;
    c->y = (double)lrint((h - o->size) / 2.0) * y;
    int left = CLT_MAX((int)(c->x - x) - 1, 0), top = CLT_MAX((int)(c->y - y) - 1, 0);
    int right = CLT_MIN((int)(c->x + c->width + x) + 2, width), bottom = CLT_MIN((int)(c->y + c->height + y) + 2, height);
    c->box = (clt_image_box){left, top, right - left, bottom - top, 1};
}

static clt_image_box choose(void *user, int width, int height) {
    change *c = user;
    if (c->options->augment) {
        c->box = clt_augment_crop(&c->random, width, height);
        c->x = c->box.x, c->y = c->box.y, c->width = c->box.width, c->height = c->box.height;
        c->clip = true;
    } else choose_centre(c, width, height);
    c->box.reduction = reduction_of(c);
    return c->box;
}

/* In the coordinates of the pixels that were decoded. */
static clt_resize_axis axis_of(const change *c, double first, double length, int begin, int there, int reduction) {
    clt_resize_axis axis = {.first = first / reduction - begin, .step = length / reduction / c->options->size, .high = there, .size = c->options->size};
    if (!c->clip) return axis;
    axis.low = CLT_MIN(CLT_MAX((int)floor(axis.first), 0), there - 1);
    axis.high = CLT_MAX(CLT_MIN((int)ceil(axis.first + length / reduction), there), axis.low + 1);
    return axis;
}

static clt_status make_planes(change *c, const clt_image *image, uint8_t *planes) {
    const clt_image_folder_options *o = c->options;
    bool mirror = o->augment && clt_random_uniform(&c->random) < 0.5;
    CLT_TRY(clt_image_resize(image, axis_of(c, c->x, c->width, image->x, image->width, image->reduction),
                             axis_of(c, c->y, c->height, image->y, image->height, image->reduction), mirror, planes));
    if (o->augment && o->jitter > 0) clt_augment_jitter(&c->random, o->jitter, planes, (size_t)o->size * (size_t)o->size);
    if (o->augment && o->erase > 0) clt_augment_erase(&c->random, o->erase, planes, o->size);
    return CLT_OK;
}

/* Epochs have numbers of their own: an image needs less than 2^24 blocks of them. */
static clt_random random_of(const clt_sample *sample) {
    clt_random random;
    clt_random_init(&random, sample->seed, CLT_RANDOM_STREAM(CLT_RANDOM_AUGMENT, sample->index));
    random.counter = (uint64_t)sample->epoch << 24;
    return random;
}

static clt_status fetch_file(const folder *f, const char *path, const clt_sample *sample, uint8_t *planes) {
    void *bytes = NULL;
    size_t length;
    clt_image image = {0};
    change c = {.options = &f->options, .random = random_of(sample)};
    CLT_TRY(clt_file_read(path, MOST_FILE_BYTES, &bytes, &length));
    clt_status status = clt_image_decode(&image, bytes, length, choose, &c);
    if (status == CLT_OK) status = make_planes(&c, &image, planes);
    clt_free(image.rgb);
    clt_free(bytes);
    return status < 0 ? clt_fail_context(status, "%s: ", path) : CLT_OK;
}

/* (x / 255 - mean) / deviation: see clt_model_normalize */
static const double mean[] = {0.485 * 255, 0.456 * 255, 0.406 * 255}, deviation[] = {0.229 * 255, 0.224 * 255, 0.225 * 255};

static clt_status fetch_floats(const folder *f, const char *path, const clt_sample *sample, float *x) {
    size_t pixels = (size_t)f->options.size * (size_t)f->options.size;
    uint8_t *planes = clt_alloc(3 * pixels);
    if (!planes) return clt_fail_memory(3 * pixels);
    clt_status status = fetch_file(f, path, sample, planes);
    for (size_t c = 0; status == CLT_OK && c < 3; c++) {
        float factor = (float)(1 / deviation[c]), shift = (float)(-mean[c] / deviation[c]);
        for (size_t i = c * pixels; i < (c + 1) * pixels; i++) x[i] = planes[i] * factor + shift;
    }
    clt_free(planes);
    return status;
}

static clt_status fetch(void *user, const clt_sample *sample, void *const *fields) {
    const folder *f = user;
    const clt_listing *l = &f->listing;
    clt_text path = {0};
    clt_text_add(&path, "%s/%s", l->root, l->paths + l->starts[sample->index]);
    clt_status status = path.status;
    if (status == CLT_OK) status = f->options.floats ? fetch_floats(f, path.data, sample, fields[0]) : fetch_file(f, path.data, sample, fields[0]);
    if (!f->options.no_label) memcpy(fields[1], &l->labels[sample->index], sizeof *l->labels);
    clt_text_free(&path);
    return status;
}

static const char *name_of(void *user, int64_t index) {
    const clt_listing *l = &((const folder *)user)->listing;
    return l->paths + l->starts[index];
}

/* ---- the data set ---- */

static void destroy(void *user) {
    folder *f = user;
    clt_listing_free(&f->listing);
    clt_free(f);
}

static clt_status resolve(clt_image_folder_options *o) {
    if (!o->size) o->size = DEFAULT_SIZE;
    if (o->size < 1 || o->size > MOST_SIZE) return clt_fail(CLT_E_INVALID, "clt_dataset_image_folder: size %d; expected 1 to %d", o->size, MOST_SIZE);
    if (!o->resize) o->resize = o->size * 256 / 224;
    if (o->resize < o->size || o->resize > 4 * MOST_SIZE)
        return clt_fail(CLT_E_INVALID, "clt_dataset_image_folder: resize %d; expected %d (the size) to %d", o->resize, o->size, 4 * MOST_SIZE);
    if (!(o->jitter >= 0 && o->jitter <= 1) || !(o->erase >= 0 && o->erase <= 1))
        return clt_fail(CLT_E_INVALID, "clt_dataset_image_folder: jitter %g, erase %g; expected 0 to 1", (double)o->jitter, (double)o->erase);
    return CLT_OK;
}

static clt_status note_facts(clt_dataset *d, const clt_names *classes) {
    CLT_TRY(clt_preprocessing_of(&d->facts, d));
    clt_moments *m = &d->facts->moments;
    if (d->fields[0].dtype == CLT_F32) {
        CLT_TRY(clt_moments_make(m, 3));
        for (int c = 0; c < 3; c++) m->mean[c] = mean[c], m->deviation[c] = deviation[c];
    }
    return clt_names_copy(&d->facts->class_names, classes->items, classes->n);
}

/* The folder is the data set's to free once it has it. */
static clt_status make_dataset(clt_dataset **dataset, folder *f) {
    int64_t size = f->options.size;
    clt_dataset_source source = {.samples = f->listing.n,
                                 .n_fields = f->options.no_label ? 1 : 2,
                                 .dtypes = {f->options.floats ? CLT_F32 : CLT_U8, CLT_I32},
                                 .shapes = {CLT_SHAPE(3, size, size), {0}},
                                 .classes = f->options.no_label ? 0 : (int)f->listing.classes.n,
                                 .fetch = fetch,
                                 .name = name_of,
                                 .user = f};
    CLT_TRY(clt_dataset_create(dataset, &source));
    clt_status status = note_facts(*dataset, &f->listing.classes);
    if (status == CLT_OK) (*dataset)->source.destroy = destroy;
    else clt_dataset_destroy(*dataset);
    return status;
}

static clt_status check_built(void) {
#if defined CLT_WITH_JPEG || defined CLT_WITH_PNG
    return CLT_OK;
#else
    return clt_fail(CLT_E_UNSUPPORTED, "images: this library was built without libjpeg and libpng");
#endif
}

clt_status clt_dataset_image_folder(clt_dataset **dataset, const char *path, const clt_image_folder_options *options) {
    if (!dataset || !path) return clt_fail(CLT_E_INVALID, "clt_dataset_image_folder: dataset or folder is NULL");
    CLT_TRY(check_built());
    folder *f = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(sizeof *f);
    const clt_preprocessing *like = options ? options->like : NULL;
    clt_dataset *d = NULL;
    clt_status status;
    if (options) f->options = *options;
    f->options.like = NULL;
    CLT_TRY_GOTO(resolve(&f->options));
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
