/* PNG by libpng, whole rows. */
#include "runtime/data/images/image.h"

#ifdef CLT_WITH_PNG
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

typedef struct decoder {
    png_structp png;
    png_infop info;
    const unsigned char *bytes;
    size_t left;
    char message[128];
    clt_image *image;
    clt_status status;
    uint8_t *row; /* of a line that is wider than the box */
} decoder;

static void fail_decoding(png_structp png, png_const_charp message) {
    decoder *d = png_get_error_ptr(png);
    snprintf(d->message, sizeof d->message, "%s", message);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

static void read_bytes(png_structp png, png_bytep to, size_t count) {
    decoder *d = png_get_io_ptr(png);
    if (count > d->left) png_error(png, "the file ends early");
    memcpy(to, d->bytes, count);
    d->bytes += count;
    d->left -= count;
}

static void set_limits(png_structp png) {
    png_set_user_limits(png, CLT_IMAGE_MOST_SIDE, CLT_IMAGE_MOST_SIDE);
    png_set_chunk_cache_max(png, 100);
    png_set_chunk_malloc_max(png, 1 << 23);
}

static void ask_for_rgb(const decoder *d) {
    png_set_expand(d->png);
    png_set_scale_16(d->png);
    png_set_strip_alpha(d->png);
    png_set_gray_to_rgb(d->png);
}

static void fail_memory(decoder *d) {
    d->status = CLT_E_NO_MEMORY;
    longjmp(png_jmpbuf(d->png), 1);
}

/* An interlaced picture is there when all of it is. */
static void read_interlaced(decoder *d, int passes, int bottom) {
    clt_image *image = d->image;
    size_t bytes = (size_t)image->width * 3;
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < bottom; y++) png_read_row(d->png, image->rgb + (size_t)y * bytes, NULL);
}

static void read_rows(decoder *d, const clt_image_box *box) {
    clt_image *image = d->image;
    size_t bytes = (size_t)box->width * 3;
    d->row = clt_alloc((size_t)image->whole_width * 3);
    if (!d->row) fail_memory(d);
    for (int y = 0; y < box->y + box->height; y++) {
        png_read_row(d->png, d->row, NULL);
        if (y >= box->y) memcpy(image->rgb + (size_t)(y - box->y) * bytes, d->row + (size_t)box->x * 3, bytes);
    }
}

static clt_status decode(decoder *d, clt_image_choose *choose, void *user) {
    clt_image *image = d->image;
    set_limits(d->png);
    png_set_read_fn(d->png, d, read_bytes);
    png_read_info(d->png, d->info);
    CLT_TRY(clt_image_check_size(png_get_image_width(d->png, d->info), png_get_image_height(d->png, d->info)));
    image->whole_width = (int)png_get_image_width(d->png, d->info);
    image->whole_height = (int)png_get_image_height(d->png, d->info);
    clt_image_box box = choose(user, image->whole_width, image->whole_height);
    ask_for_rgb(d);
    int passes = png_set_interlace_handling(d->png);
    if (passes > 1) box = (clt_image_box){.width = image->whole_width, .height = image->whole_height};
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != (size_t)image->whole_width * 3) return clt_fail(CLT_E_FORMAT, "PNG data that do not become RGB");
    image->reduction = 1;
    image->x = box.x, image->y = box.y, image->width = box.width, image->height = box.height;
    CLT_TRY(clt_image_allocate(image));
    if (passes > 1) read_interlaced(d, passes, image->whole_height);
    else read_rows(d, &box);
    return CLT_OK;
}

clt_status clt_png_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    decoder d = {.bytes = bytes, .left = length, .image = image, .status = CLT_E_FORMAT};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, fail_decoding, ignore_warning);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    clt_status status;
    if (!d.info) status = clt_fail(CLT_E_NO_MEMORY, "libpng: out of memory");
    else if (!setjmp(png_jmpbuf(d.png))) status = decode(&d, choose, user);
    else if (d.status == CLT_E_NO_MEMORY) status = clt_fail(CLT_E_NO_MEMORY, "PNG: out of memory");
    else status = clt_fail(CLT_E_FORMAT, "damaged PNG data: %s", d.message);
    if (d.png) png_destroy_read_struct(&d.png, d.info ? &d.info : NULL, NULL);
    clt_free(d.row);
    if (status == CLT_OK) return CLT_OK;
    clt_free(image->rgb);
    *image = (clt_image){0};
    return status;
}
#else
clt_status clt_png_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    (void)image, (void)bytes, (void)length, (void)choose, (void)user;
    return clt_fail(CLT_E_UNSUPPORTED, "PNG: this library was built without libpng");
}
#endif
