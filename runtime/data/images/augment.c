#include "runtime/data/images/augment.h"

#include <math.h>

#include "runtime/data/indices.h"

enum { TRIES = 10 };

static double between(clt_random *random, double low, double high) {
    return low + (high - low) * clt_random_uniform(random);
}

/* The largest box of a shape that is still allowed. */
static clt_image_box largest_box(int width, int height) {
    double ratio = (double)width / height;
    clt_image_box box = {.width = width, .height = height, .reduction = 1};
    if (ratio < 3.0 / 4) box.height = CLT_MIN((int)lround(width / (3.0 / 4)), height);
    if (ratio > 4.0 / 3) box.width = CLT_MIN((int)lround(height * (4.0 / 3)), width);
    box.x = (width - box.width) / 2;
    box.y = (height - box.height) / 2;
    return box;
}

clt_image_box clt_augment_crop(clt_random *random, int width, int height) {
    for (int i = 0; i < TRIES; i++) {
        double area = between(random, 0.08, 1) * width * height, ratio = exp(between(random, log(3.0 / 4), log(4.0 / 3)));
        int w = (int)lround(sqrt(area * ratio)), h = (int)lround(sqrt(area / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        int y = (int)clt_random_below(random, (uint64_t)(height - h) + 1), x = (int)clt_random_below(random, (uint64_t)(width - w) + 1);
        return (clt_image_box){.x = x, .y = y, .width = w, .height = h, .reduction = 1};
    }
    return largest_box(width, height);
}

static inline uint8_t to_byte(float value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* ITU-R 601, as Pillow's and torchvision's gray. */
static inline float gray_of(const uint8_t *planes, size_t pixels, size_t i) {
    return 0.2989f * planes[i] + 0.587f * planes[pixels + i] + 0.114f * planes[2 * pixels + i];
}

/* factor x value + (1 - factor) x base */
static void blend(uint8_t *planes, size_t count, float factor, float base) {
    float constant = (1 - factor) * base;
    for (size_t i = 0; i < count; i++) planes[i] = to_byte(factor * planes[i] + constant);
}

static void change_contrast(uint8_t *planes, size_t pixels, float factor) {
    double sum = 0;
    for (size_t i = 0; i < pixels; i++) sum += (double)gray_of(planes, pixels, i);
    blend(planes, 3 * pixels, factor, (float)(sum / (double)pixels));
}

static void change_saturation(uint8_t *planes, size_t pixels, float factor) {
    for (size_t i = 0; i < pixels; i++) {
        float base = (1 - factor) * gray_of(planes, pixels, i);
        for (size_t c = 0; c < 3; c++) planes[c * pixels + i] = to_byte(factor * planes[c * pixels + i] + base);
    }
}

void clt_augment_jitter(clt_random *random, float jitter, uint8_t *planes, size_t pixels) {
    int64_t order[3] = {0};
    float factors[3];
    clt_indices_permute(&(clt_indices){.wide = order}, 3, random);
    for (int i = 0; i < 3; i++) factors[i] = (float)between(random, 1 - (double)jitter, 1 + (double)jitter);
    for (int i = 0; i < 3; i++) {
        float factor = factors[order[i]];
        if (order[i] == 0) blend(planes, 3 * pixels, factor, 0);
        else if (order[i] == 1) change_contrast(planes, pixels, factor);
        else change_saturation(planes, pixels, factor);
    }
}

/* An area of 0.02 to 0.33, log-uniformly 0.3 to 3.3 in shape. */
void clt_augment_erase(clt_random *random, float probability, uint8_t *planes, int size) {
    if (clt_random_uniform(random) >= (double)probability) return;
    for (int i = 0; i < TRIES; i++) {
        double area = between(random, 0.02, 0.33) * size * size, ratio = exp(between(random, log(0.3), log(3.3)));
        int h = (int)lround(sqrt(area * ratio)), w = (int)lround(sqrt(area / ratio));
        if (w < 1 || h < 1 || w >= size || h >= size) continue;
        int top = (int)clt_random_below(random, (uint64_t)(size - h) + 1), left = (int)clt_random_below(random, (uint64_t)(size - w) + 1);
        for (int c = 0; c < 3; c++)
            for (int y = top; y < top + h; y++)
                for (int x = left; x < left + w; x++) planes[(c * size + y) * size + x] = (uint8_t)clt_random_u32(random);
        return;
    }
}
