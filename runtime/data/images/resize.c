/*
 * Changes of size by a triangle filter, in two passes: rows become shorter, then columns. Weights are integers of 22 bits,
 * and what lies between the passes is rounded to 8 bits, as in Pillow (Resample.c, Image.resize with BILINEAR).
 */
#include <math.h>
#include <string.h>

#include "runtime/data/images/image.h"

enum { BITS = 22 };

typedef struct filter {
    int taps;     /* at most, of an output */
    int *first;   /* of each output: the first pixel that it reads */
    int *count;
    int32_t *weights; /* outputs x taps */
} filter;

static void free_filter(filter *f) {
    clt_free(f->first);
    clt_free(f->weights);
    *f = (filter){0};
}

static double weight_at(double pixel, double centre, double radius) {
    return fmax(1 - fabs(pixel + 0.5 - centre) / radius, 0);
}

/* Of the pixels within `radius` of the centre, those nearer count more. */
static void weigh(const filter *f, const clt_resize_axis *axis, int output, double radius) {
    double centre = axis->first + (output + 0.5) * axis->step, sum = 0;
    int first = CLT_MAX((int)floor(centre - radius + 0.5), axis->low), last = CLT_MIN((int)floor(centre + radius + 0.5), axis->high);
    first = CLT_MIN(first, axis->high - 1);
    int count = CLT_MIN(CLT_MAX(last - first, 1), f->taps);
    for (int i = 0; i < count; i++) sum += weight_at(first + i, centre, radius);
    if (!(sum > 0)) sum = count = 1; /* an axis' end, beyond which there is nothing */
    int32_t *weights = f->weights + (size_t)output * (size_t)f->taps;
    for (int i = 0; i < count; i++) weights[i] = count == 1 ? 1 << BITS : (int32_t)floor(weight_at(first + i, centre, radius) / sum * (1 << BITS) + 0.5);
    f->first[output] = first;
    f->count[output] = count;
}

static clt_status make_filter(filter *f, const clt_resize_axis *axis) {
    double radius = CLT_MAX(axis->step, 1.0);
    f->taps = (int)ceil(radius) * 2 + 1;
    size_t n = (size_t)axis->size;
    f->first = clt_alloc(2 * n * sizeof *f->first);
    f->weights = clt_alloc(n * (size_t)f->taps * sizeof *f->weights);
    if (!f->first || !f->weights) return clt_fail_memory(n * (size_t)f->taps * sizeof *f->weights);
    f->count = f->first + n;
    for (int o = 0; o < axis->size; o++) weigh(f, axis, o, radius);
    return CLT_OK;
}

static inline uint8_t round_sum(int32_t sum) {
    int32_t value = sum >> BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One row: RGB pixels in, three rows of `size` outputs out, a plane apart. */
static void shorten(const filter *f, const uint8_t *row, int size, bool mirror, uint8_t *to, size_t plane) {
    for (int o = 0; o < size; o++) {
        const int32_t *w = f->weights + o * f->taps;
        const uint8_t *p = row + 3 * f->first[o];
        int32_t r = 1 << (BITS - 1), g = r, b = r;
        for (int i = 0; i < f->count[o]; i++, p += 3) r += w[i] * p[0], g += w[i] * p[1], b += w[i] * p[2];
        uint8_t *out = to + (mirror ? size - 1 - o : o);
        out[0] = round_sum(r);
        out[plane] = round_sum(g);
        out[2 * plane] = round_sum(b);
    }
}

/* One output row of a plane: the weighted sum of rows of `width`. */
static void sum_rows(const uint8_t *rows, const int32_t *w, int count, int width, int32_t *sums, uint8_t *to) {
    for (int x = 0; x < width; x++) sums[x] = 1 << (BITS - 1);
    for (int i = 0; i < count; i++, rows += width)
        for (int x = 0; x < width; x++) sums[x] += w[i] * rows[x];
    for (int x = 0; x < width; x++) to[x] = round_sum(sums[x]);
}

clt_status clt_image_resize(const clt_image *image, clt_resize_axis x, clt_resize_axis y, bool mirror, uint8_t *planes) {
    filter fx = {0}, fy = {0};
    uint8_t *narrow = NULL;
    int32_t *sums = NULL;
    clt_status status;
    CLT_TRY_GOTO(make_filter(&fx, &x));
    CLT_TRY_GOTO(make_filter(&fy, &y));
    int top = fy.first[0], bottom = fy.first[y.size - 1] + fy.count[y.size - 1];
    size_t width = (size_t)x.size, plane = (size_t)(bottom - top) * width;
    narrow = clt_alloc(3 * plane);
    sums = clt_alloc(width * sizeof *sums);
    status = narrow && sums ? CLT_OK : clt_fail_memory(3 * plane);
    CLT_TRY_GOTO(status);
    for (int row = top; row < bottom; row++)
        shorten(&fx, image->rgb + (size_t)row * (size_t)image->width * 3, x.size, mirror, narrow + (size_t)(row - top) * width, plane);
    for (int c = 0; c < 3; c++)
        for (int o = 0; o < y.size; o++)
            sum_rows(narrow + (size_t)c * plane + (size_t)(fy.first[o] - top) * width, fy.weights + o * fy.taps, fy.count[o], x.size, sums,
                     planes + ((size_t)c * (size_t)y.size + (size_t)o) * width);
fail:
    clt_free(narrow);
    clt_free(sums);
    free_filter(&fx);
    free_filter(&fy);
    return status;
}
