#include <string.h>

#include "runtime/data/images/image.h"

clt_status clt_image_check_size(uint64_t width, uint64_t height) {
    if (width < 1 || height < 1) return clt_fail(CLT_E_FORMAT, "an image of %llu x %llu pixels", (unsigned long long)width, (unsigned long long)height);
    if (width > CLT_IMAGE_MOST_SIDE || height > CLT_IMAGE_MOST_SIDE || width * height > CLT_IMAGE_MOST_PIXELS)
        return clt_fail(CLT_E_FORMAT, "an image of %llu x %llu pixels: more than the %d million that are read; make it smaller", (unsigned long long)width,
                        (unsigned long long)height, CLT_IMAGE_MOST_PIXELS / 1000000);
    return CLT_OK;
}

clt_status clt_image_allocate(clt_image *image) {
    size_t bytes = (size_t)image->width * (size_t)image->height * 3;
    image->rgb = clt_alloc(bytes);
    return image->rgb ? CLT_OK : clt_fail_memory(bytes);
}

clt_status clt_image_decode(clt_image *image, const void *bytes, size_t length, clt_image_choose *choose, void *user) {
    *image = (clt_image){0};
    if (length >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3)) return clt_jpeg_decode(image, bytes, length, choose, user);
    if (length >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8)) return clt_png_decode(image, bytes, length, choose, user);
    return clt_fail(CLT_E_FORMAT, "%s; expected JPEG or PNG", length ? "another kind of file" : "an empty file");
}
