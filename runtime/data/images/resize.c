/*
 * Changes of size by a triangle filter, in two passes: rows become shorter, then columns. Weights are integers of 22 bits,
 * and what lies between the passes is rounded to 8 bits, as in Pillow (Resample.c, Image.resize with BILINEAR).
 */
#include <math.h>
#include <string.h>

#include "runtime/data/images/image.h"

#if defined __SSE2__
#include <emmintrin.h>
#endif

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

/* ---- rows and columns ---- */

enum { BLOCK = 16 }; /* of a transposed matrix, in both directions */

static void transpose_part(const uint8_t *from, ptrdiff_t from_stride, size_t rows, size_t columns, uint8_t *to, size_t to_stride) {
    for (size_t y = 0; y < rows; y++)
        for (size_t x = 0; x < columns; x++) to[x * to_stride + y] = from[(ptrdiff_t)y * from_stride + (ptrdiff_t)x];
}

#if defined __SSE2__
/* A row and the one half of all rows behind it are interleaved, four times. */
static void transpose_block(const uint8_t *from, ptrdiff_t from_stride, uint8_t *to, size_t to_stride) {
    __m128i a[BLOCK], b[BLOCK];
    for (int y = 0; y < BLOCK; y++) a[y] = _mm_loadu_si128((const __m128i *)(const void *)(from + y * from_stride));
    for (int pass = 0; pass < 4; pass++) {
        for (int y = 0; y < BLOCK / 2; y++) {
            b[2 * y] = _mm_unpacklo_epi8(a[y], a[y + BLOCK / 2]);
            b[2 * y + 1] = _mm_unpackhi_epi8(a[y], a[y + BLOCK / 2]);
        }
        memcpy(a, b, sizeof a);
    }
    for (int x = 0; x < BLOCK; x++) _mm_storeu_si128((__m128i *)(void *)(to + (size_t)x * to_stride), a[x]);
}
#else
static void transpose_block(const uint8_t *from, ptrdiff_t from_stride, uint8_t *to, size_t to_stride) {
    transpose_part(from, from_stride, BLOCK, BLOCK, to, to_stride);
}
#endif

/* to[x][y] = from[y][x], of bytes; strides are in bytes, and that of `from` may be below 0. */
static void transpose(const uint8_t *from, ptrdiff_t from_stride, size_t rows, size_t columns, uint8_t *to, size_t to_stride) {
    for (size_t y = 0; y < rows; y += BLOCK)
        for (size_t x = 0; x < columns; x += BLOCK) {
            const uint8_t *at = from + (ptrdiff_t)y * from_stride + (ptrdiff_t)x;
            uint8_t *there = to + x * to_stride + y;
            if (y + BLOCK <= rows && x + BLOCK <= columns) transpose_block(at, from_stride, there, to_stride);
            else transpose_part(at, from_stride, CLT_MIN(BLOCK, rows - y), CLT_MIN(BLOCK, columns - x), there, to_stride);
        }
}

/* The columns that are needed, each as a row of [3, height]: what is done to columns is then done to rows, which vectors serve. */
static void turn(const clt_image *image, int left, int right, int top, int bottom, uint8_t *to) {
    size_t height = (size_t)(bottom - top);
    transpose(image->rgb + ((size_t)top * (size_t)image->width + (size_t)left) * 3, (ptrdiff_t)image->width * 3, height, (size_t)(right - left) * 3, to, height);
}

/* [width, 3, height] -> 3 planes [height, width] */
static void turn_back(const uint8_t *columns, size_t width, size_t height, bool mirror, uint8_t *planes) {
    ptrdiff_t column = 3 * (ptrdiff_t)height;
    for (size_t c = 0; c < 3; c++) {
        const uint8_t *first = columns + c * height;
        transpose(mirror ? first + (ptrdiff_t)(width - 1) * column : first, mirror ? -column : column, width, height, planes + c * height * width, width);
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
