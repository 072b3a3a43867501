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

/* An output for each of `width` columns: the weighted sum of `count` rows of them. */
static inline __attribute__((always_inline)) void add_rows(const uint8_t *restrict rows, const int32_t *restrict w, int count, size_t width, int32_t *restrict sums,
                                                           uint8_t *restrict to) {
    for (size_t x = 0; x < width; x++) sums[x] = (1 << (BITS - 1)) + w[0] * rows[x];
    for (int i = 1; i < count; i++)
        for (size_t x = 0; x < width; x++) sums[x] += w[i] * rows[(size_t)i * width + x];
    for (size_t x = 0; x < width; x++) to[x] = round_sum(sums[x]);
}

typedef void add_rows_function(const uint8_t *rows, const int32_t *w, int count, size_t width, int32_t *sums, uint8_t *to);

static void add_rows_portable(const uint8_t *rows, const int32_t *w, int count, size_t width, int32_t *sums, uint8_t *to) {
    add_rows(rows, w, count, width, sums, to);
}

#if defined __x86_64__ && defined __GNUC__
__attribute__((target("avx2"))) static void add_rows_avx2(const uint8_t *rows, const int32_t *w, int count, size_t width, int32_t *sums, uint8_t *to) {
    add_rows(rows, w, count, width, sums, to);
}

static add_rows_function *fastest(void) {
    return __builtin_cpu_supports("avx2") ? add_rows_avx2 : add_rows_portable;
}
#else
static add_rows_function *fastest(void) {
    return add_rows_portable;
}
#endif

/* The columns that are needed, each as a row of [height, 3]: what is done to columns is then done to rows, which vectors serve. */
static void turn(const clt_image *image, int left, int right, int top, int bottom, uint8_t *to) {
    enum { BLOCK = 16 }; /* columns at a time, whose ends stay in the cache */
    size_t height = (size_t)(bottom - top);
    for (int first = left; first < right; first += BLOCK)
        for (int y = top; y < bottom; y++) {
            const uint8_t *from = image->rgb + ((size_t)y * (size_t)image->width + (size_t)first) * 3;
            for (int x = first; x < right && x < first + BLOCK; x++, from += 3) {
                uint8_t *at = to + (size_t)(x - left) * 3 * height + (size_t)(y - top);
                at[0] = from[0];
                at[height] = from[1];
                at[2 * height] = from[2];
            }
        }
}

/* [width, 3, height] -> 3 planes [height, width] */
static void turn_back(const uint8_t *columns, size_t width, size_t height, bool mirror, uint8_t *planes) {
    enum { BLOCK = 16 };
    for (size_t c = 0; c < 3; c++)
        for (size_t first = 0; first < height; first += BLOCK)
            for (size_t x = 0; x < width; x++) {
                const uint8_t *from = columns + (x * 3 + c) * height;
                uint8_t *to = planes + c * height * width + (mirror ? width - 1 - x : x);
                for (size_t y = first; y < height && y < first + BLOCK; y++) to[y * width] = from[y];
            }
}

clt_status clt_image_resize(const clt_image *image, clt_resize_axis x, clt_resize_axis y, bool mirror, uint8_t *planes) {
    filter fx = {0}, fy = {0};
    uint8_t *columns = NULL, *narrow = NULL, *rows = NULL;
    int32_t *sums = NULL;
    add_rows_function *add = fastest();
    clt_status status;
    CLT_TRY_GOTO(make_filter(&fx, &x));
    CLT_TRY_GOTO(make_filter(&fy, &y));
    int left = fx.first[0], right = fx.first[x.size - 1] + fx.count[x.size - 1];
    int top = fy.first[0], bottom = fy.first[y.size - 1] + fy.count[y.size - 1];
    size_t width = (size_t)x.size, height = (size_t)(bottom - top), column = 3 * height;
    columns = clt_alloc((size_t)(right - left) * column);
    narrow = clt_alloc(width * column);
    rows = clt_alloc(width * column);
    sums = clt_alloc(CLT_MAX(width, column) * sizeof *sums);
    status = columns && narrow && rows && sums ? CLT_OK : clt_fail_memory((size_t)(right - left) * column);
    CLT_TRY_GOTO(status);
    turn(image, left, right, top, bottom, columns);
    for (size_t o = 0; o < width; o++)
        add(columns + (size_t)(fx.first[o] - left) * column, fx.weights + o * (size_t)fx.taps, fx.count[o], column, sums, narrow + o * column);
    turn_back(narrow, width, height, mirror, rows);
    for (size_t c = 0; c < 3; c++)
        for (size_t o = 0; o < (size_t)y.size; o++)
            add(rows + (c * height + (size_t)(fy.first[o] - top)) * width, fy.weights + o * (size_t)fy.taps, fy.count[o], width, sums,
                planes + (c * (size_t)y.size + o) * width);
fail:
    clt_free(columns);
    clt_free(narrow);
    clt_free(rows);
    clt_free(sums);
    free_filter(&fx);
    free_filter(&fy);
    return status;
}
