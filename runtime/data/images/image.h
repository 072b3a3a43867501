/*
 * Pictures from files, and what becomes of them before a network sees them: RGB, 8 bits a channel, row by row.
 */
#ifndef CLT_DATA_IMAGES_IMAGE_H
#define CLT_DATA_IMAGES_IMAGE_H

#include "runtime/base/base.h"

/* Of more pixels in all, or on a side, no file is read: a small one can tell of as many as it likes. */
enum { CLT_IMAGE_MOST_PIXELS = 100000000, CLT_IMAGE_MOST_SIDE = 65500 };

/* A box of a picture that is wanted, and how far it may be made smaller: any power of 2 up to `reduction`. */
typedef struct clt_image_box {
    int x, y, width, height;
    int reduction; /* 1, 2, 4 or 8 */
} clt_image_box;

/* What was decoded: at least the box, of a picture that is `reduction` times smaller than the file's. */
typedef struct clt_image {
    int x, y;          /* where it begins, in the smaller picture */
    int width, height;
    int reduction;
    int whole_width, whole_height; /* of the smaller picture */
    uint8_t *rgb;      /* height x width x 3; clt_free */
} clt_image;

/* Chooses the box, once the size is known. */
typedef clt_image_box clt_image_choose(void *user, int width, int height);

/* JPEG and PNG, told apart by their first bytes. Gray becomes RGB, transparency is dropped. CLT_E_FORMAT for files that are damaged, too large, or
 * of another kind; CLT_E_UNSUPPORTED for a kind that the library was built without. */
clt_status clt_image_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user);

clt_status clt_jpeg_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user);
clt_status clt_png_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user);

/* CLT_E_FORMAT for more pixels than are read. */
clt_status clt_image_check_size(uint64_t width, uint64_t height);

/* Memory for the pixels of an image whose place and size are set. */
clt_status clt_image_allocate(clt_image *image);

/* ---- resize.c ---- */

/* One direction of a change of size: output o has its centre at first + (o + 0.5) step, and reads nothing outside [low, high). */
typedef struct clt_resize_axis {
    double first, step;
    int low, high;
    int size; /* outputs */
} clt_resize_axis;

/* To 3 planes of y.size x x.size pixels, by a triangle filter as wide as the step (antialiased bilinear, as Pillow and torchvision have it); `mirror`: left and
 * right change places. Coordinates are those of the image's pixels as they lie in memory. */
clt_status clt_image_resize(const clt_image *image, clt_resize_axis x, clt_resize_axis y, bool mirror, uint8_t *planes);

#endif
