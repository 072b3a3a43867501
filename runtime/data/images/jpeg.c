/* JPEG by libjpeg-turbo: the box alone is computed, and as small as may be. */
#include "runtime/data/images/image.h"

#ifdef CLT_WITH_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* Scans of a progressive file: each costs a pass over all coefficients, and a file of a few kilobytes can have thousands. */
enum { MOST_SCANS = 200 };

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    char message[JMSG_LENGTH_MAX];
    clt_image *image;
    JSAMPLE *row; /* of a line whose channels are not RGB */
} decoder;

static void fail_decoding(j_common_ptr jpeg) {
    decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->message);
    longjmp(d->failed, 1);
}

/* Warnings are for data that are damaged, and whose pixels would be made up. Bytes too many between markers are harmless. */
static void judge_warning(j_common_ptr jpeg, int level) {
    decoder *d = jpeg->client_data;
    if (level >= 0 || d->message[0]) return;
    jpeg->err->num_warnings++;
    jpeg->err->format_message(jpeg, d->message);
}

static void print_nothing(j_common_ptr jpeg) {
    (void)jpeg;
}

static void count_scans(j_common_ptr jpeg) {
    decoder *d = jpeg->client_data;
    if (d->jpeg.input_scan_number <= MOST_SCANS) return;
    snprintf(d->message, sizeof d->message, "more than %d scans", MOST_SCANS);
    longjmp(d->failed, 1);
}

/* Of the smaller picture, with a margin whose neighbours the box's own pixels need not miss. */
static void place_image(decoder *d, const clt_image_box *box) {
    clt_image *image = d->image;
    int scale = image->reduction, margin = 2;
    int right = CLT_MIN((box->x + box->width + scale - 1) / scale + margin, (int)d->jpeg.output_width);
    int bottom = CLT_MIN((box->y + box->height + scale - 1) / scale + margin, (int)d->jpeg.output_height);
    image->whole_width = (int)d->jpeg.output_width;
    image->whole_height = (int)d->jpeg.output_height;
    image->x = CLT_MAX(box->x / scale - margin, 0);
    image->y = CLT_MAX(box->y / scale - margin, 0);
    image->width = right - image->x;
    image->height = bottom - image->y;
}

/* Adobe's files have the four inks inverted. */
static void ink_to_rgb(const decoder *d, uint8_t *to, int width) {
    bool inverted = d->jpeg.saw_Adobe_marker;
    for (int i = 0; i < width; i++)
        for (int c = 0; c < 3; c++) {
            int ink = d->row[4 * i + c], black = d->row[4 * i + 3];
            to[3 * i + c] = (uint8_t)(inverted ? (ink * black + 127) / 255 : ((255 - ink) * (255 - black) + 127) / 255);
        }
}

static void read_rows(decoder *d) {
    clt_image *image = d->image;
    JDIMENSION x = (JDIMENSION)image->x, width = (JDIMENSION)image->width;
    bool inks = d->jpeg.out_color_components == 4;
    if (width < d->jpeg.output_width) jpeg_crop_scanline(&d->jpeg, &x, &width); /* wider, to whole blocks */
    if (image->y > 0) jpeg_skip_scanlines(&d->jpeg, (JDIMENSION)image->y);
    image->x = (int)x;
    image->width = (int)width;
    if (clt_image_allocate(image) < 0 || (inks && !(d->row = clt_alloc((size_t)width * 4)))) {
        snprintf(d->message, sizeof d->message, "out of memory");
        longjmp(d->failed, 2);
    }
    for (int y = 0; y < image->height; y++) {
        uint8_t *to = image->rgb + (size_t)y * width * 3;
        JSAMPROW rows[] = {inks ? d->row : to};
        jpeg_read_scanlines(&d->jpeg, rows, 1);
        if (inks) ink_to_rgb(d, to, image->width);
    }
}

static clt_status decode(decoder *d, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    jpeg_mem_src(&d->jpeg, bytes, (unsigned long)length);
    jpeg_read_header(&d->jpeg, TRUE);
    CLT_TRY(clt_image_check_size(d->jpeg.image_width, d->jpeg.image_height));
    clt_image_box box = choose(user, (int)d->jpeg.image_width, (int)d->jpeg.image_height);
    bool inks = d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK;
    d->jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    d->jpeg.scale_num = 1;
    d->jpeg.scale_denom = (unsigned)box.reduction;
    d->image->reduction = box.reduction;
    jpeg_start_decompress(&d->jpeg);
    place_image(d, &box);
    read_rows(d);
    if (d->jpeg.err->num_warnings) return clt_fail(CLT_E_FORMAT, "damaged JPEG data: %s", d->message);
    return CLT_OK; /* what lies below the box is not looked at */
}

clt_status clt_jpeg_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    decoder d;
    memset(&d, 0, sizeof d);
    d.image = image;
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = fail_decoding;
    d.errors.emit_message = judge_warning;
    d.errors.output_message = print_nothing;
    clt_status status;
    int failed = setjmp(d.failed);
    if (!failed) {
        jpeg_create_decompress(&d.jpeg);
        d.progress.progress_monitor = count_scans;
        d.jpeg.progress = &d.progress;
        status = decode(&d, bytes, length, choose, user);
    } else if (failed == 2) status = clt_fail(CLT_E_NO_MEMORY, "%s", d.message);
    else status = clt_fail(CLT_E_FORMAT, "damaged JPEG data: %s", d.message);
    jpeg_destroy_decompress(&d.jpeg);
    clt_free(d.row);
    if (status == CLT_OK) return CLT_OK;
    clt_free(image->rgb);
    *image = (clt_image){0};
    return status;
}
#else
clt_status clt_jpeg_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    (void)image, (void)bytes, (void)length, (void)choose, (void)user;
    return clt_fail(CLT_E_UNSUPPORTED, "JPEG: this library was built without libjpeg");
}
#endif
