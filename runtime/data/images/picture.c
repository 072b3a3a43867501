/* What becomes of a picture: what is random is drawn from the seed, the epoch and the sample. */
#include "runtime/data/images/picture.h"

#include <math.h>

#include "runtime/base/imagenet.h"
#include "runtime/data/images/augment.h"
#include "runtime/data/images/image.h"

enum { DEFAULT_SIZE = 224, MOST_SIZE = 4096 };

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

static clt_status make_bytes(const clt_image_folder_options *options, const void *bytes, size_t length, const clt_sample *sample, uint8_t *planes) {
    clt_image image = {0};
    change c = {.options = options, .random = random_of(sample)};
    clt_status status = clt_image_decode(&image, bytes, length, choose, &c);
    if (status == CLT_OK) status = make_planes(&c, &image, planes);
    clt_free(image.rgb);
    return status;
}

/* (x / 255 - mean) / deviation: see clt_model_normalize */
static void normalize(const uint8_t *planes, size_t pixels, float *x) {
    for (size_t c = 0; c < 3; c++) {
        double mean = 255 * clt_imagenet_mean[c], deviation = 255 * clt_imagenet_deviation[c];
        float factor = (float)(1 / deviation), shift = (float)(-mean / deviation);
        for (size_t i = c * pixels; i < (c + 1) * pixels; i++) x[i] = planes[i] * factor + shift;
    }
}

clt_status clt_picture_make(const clt_image_folder_options *options, const void *bytes, size_t length, const clt_sample *sample, void *field) {
    size_t pixels = (size_t)options->size * (size_t)options->size;
    if (!options->floats) return make_bytes(options, bytes, length, sample, field);
    uint8_t *planes = clt_alloc(3 * pixels);
    if (!planes) return clt_fail_memory(3 * pixels);
    clt_status status = make_bytes(options, bytes, length, sample, planes);
    if (status == CLT_OK) normalize(planes, pixels, field);
    clt_free(planes);
    return status;
}

/* ---- options and facts ---- */

static clt_status check_built(void) {
#if defined CLT_WITH_JPEG || defined CLT_WITH_PNG
    return CLT_OK;
#else
    return clt_fail(CLT_E_UNSUPPORTED, "images: this library was built without libjpeg and libpng");
#endif
}

clt_status clt_picture_resolve(clt_image_folder_options *o, const clt_image_folder_options *given, const char *function) {
    CLT_TRY(check_built());
    *o = given ? *given : (clt_image_folder_options){0};
    o->like = NULL;
    if (!o->size) o->size = DEFAULT_SIZE;
    if (o->size < 1 || o->size > MOST_SIZE) return clt_fail(CLT_E_INVALID, "%s: size %d; expected 1 to %d", function, o->size, MOST_SIZE);
    if (!o->resize) o->resize = o->size * 256 / 224;
    if (o->resize < o->size || o->resize > 4 * MOST_SIZE)
        return clt_fail(CLT_E_INVALID, "%s: resize %d; expected %d (the size) to %d", function, o->resize, o->size, 4 * MOST_SIZE);
    if (!(o->jitter >= 0 && o->jitter <= 1) || !(o->erase >= 0 && o->erase <= 1))
        return clt_fail(CLT_E_INVALID, "%s: jitter %g, erase %g; expected 0 to 1", function, (double)o->jitter, (double)o->erase);
    return CLT_OK;
}

void clt_picture_describe(const clt_image_folder_options *options, clt_dataset_source *source) {
    source->n_fields = options->no_label ? 1 : 2;
    source->dtypes[0] = options->floats ? CLT_F32 : CLT_U8;
    source->dtypes[1] = CLT_I32;
    source->shapes[0] = CLT_SHAPE(3, options->size, options->size);
}

clt_status clt_picture_note(clt_dataset *d, const clt_names *classes) {
    CLT_TRY(clt_preprocessing_of(&d->facts, d));
    clt_moments *m = &d->facts->moments;
    if (d->fields[0].dtype == CLT_F32) {
        CLT_TRY(clt_moments_make(m, 3));
        for (int c = 0; c < 3; c++) m->mean[c] = 255 * clt_imagenet_mean[c], m->deviation[c] = 255 * clt_imagenet_deviation[c];
    }
    return clt_names_copy(&d->facts->class_names, classes->items, classes->n);
}
