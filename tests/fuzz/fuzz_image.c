/* A picture of which a part is read, then changed in size. */
#include "runtime/data/images/image.h"
#include "tests/fuzz/fuzz.h"

typedef struct wish {
    uint8_t bytes[5];
    bool large;
} wish;

/* Some part of it; of a very large one, which is what fuzz_begin would end the program for, a row. */
static clt_image_box choose(void *user, int width, int height) {
    wish *w = user;
    clt_image_box box = {.x = w->bytes[0] * (width - 1) / 255, .y = w->bytes[1] * (height - 1) / 255, .reduction = 1 << w->bytes[4] % 4};
    box.width = 1 + w->bytes[2] * (width - box.x - 1) / 255;
    box.height = 1 + w->bytes[3] * (height - box.y - 1) / 255;
    w->large = (int64_t)width * height > 1 << 20;
    if (w->large) box = (clt_image_box){.width = width, .height = 1, .reduction = 8};
    return box;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    wish w = {0};
    clt_image image;
    uint8_t planes[3 * 16 * 12];
    for (int i = 0; i < 5; i++) w.bytes[i] = fuzz_byte(&input);
    fuzz_begin(1 << 20); /* an interlaced picture, and a progressive one, is held whole */
    if (clt_image_decode(&image, input.data, input.size, choose, &w) < 0) return 0;
    FUZZ_CHECK(image.width > 0 && image.height > 0 && image.x >= 0 && image.x + image.width <= image.whole_width);
    clt_resize_axis x = {.first = -0.5, .step = (image.width + 1.0) / 16, .high = image.width, .size = 16};
    clt_resize_axis y = {.first = 0, .step = image.height / 12.0, .high = image.height, .size = 12};
    FUZZ_CHECK(clt_image_resize(&image, x, y, w.bytes[4] & 8, planes) == CLT_OK);
    clt_free(image.rgb);
    return 0;
}
