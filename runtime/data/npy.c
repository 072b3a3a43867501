/*
 * A data set from two .npy files.
 */
#include "runtime/base/halves.h"
#include "runtime/data/file_array.h"
#include "runtime/data/npy_header.h"

#include <math.h>
#include <string.h>

static uint32_t little_endian_32(const unsigned char *b) {
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint16_t little_endian_16(const unsigned char *b) {
    return (uint16_t)(b[0] | b[1] << 8);
}

static uint64_t little_endian_64(const unsigned char *b) {
    return little_endian_32(b) | (uint64_t)little_endian_32(b + 4) << 32;
}

static float item_f2(const unsigned char *from) {
    uint16_t bits = little_endian_16(from);
    float value;
    clt_f16_to_f32(&value, &bits, 1);
    return value;
}

static float item_f4(const unsigned char *from) {
    uint32_t bits = little_endian_32(from);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double item_f8(const unsigned char *from) {
    uint64_t bits = little_endian_64(from);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t item_i4(const unsigned char *from) {
    return (int32_t)little_endian_32(from);
}

static int64_t item_i8(const unsigned char *from) {
    return (int64_t)little_endian_64(from);
}

static int64_t item_u1(const unsigned char *from) {
    return *from;
}

static int64_t item_i1(const unsigned char *from) {
    return (int8_t)*from;
}

static int64_t item_i2(const unsigned char *from) {
    return (int16_t)little_endian_16(from);
}

static int64_t item_u2(const unsigned char *from) {
    return little_endian_16(from);
}

static int64_t item_u4(const unsigned char *from) {
    return little_endian_32(from);
}

#define TO_F32(name, item, item_bytes)                                                                  \
    static size_t name(const unsigned char *from, size_t count, void *to) {                             \
        float *out = to;                                                                                \
        for (size_t i = 0; i < count; i++) out[i] = (float)item(from + i * item_bytes);                 \
        return count;                                                                                   \
    }

#define TO_LABEL(name, item, item_bytes)                                                                \
    static size_t name(const unsigned char *from, size_t count, void *to) {                             \
        int32_t *out = to;                                                                              \
        for (size_t i = 0; i < count; i++) {                                                            \
            int64_t value = item(from + i * item_bytes);                                                \
            if (value < 0 || value >= INT32_MAX) return i;                                              \
            out[i] = (int32_t)value;                                                                    \
        }                                                                                               \
        return count;                                                                                   \
    }

#define TO_F64(name, item, item_bytes)                                                                  \
    static size_t name(const unsigned char *from, size_t count, void *to) {                             \
        double *out = to;                                                                               \
        for (size_t i = 0; i < count; i++) out[i] = (double)item(from + i * item_bytes);                \
        return count;                                                                                   \
    }

TO_F64(i4_to_f64, item_i4, 4)
TO_F64(u4_to_f64, item_u4, 4)
TO_F64(i8_to_f64, item_i8, 8)
TO_F32(f2_to_f32, item_f2, 2)
TO_F32(f4_to_f32, item_f4, 4)
TO_F32(i1_to_f32, item_i1, 1)
TO_F32(u1_to_f32, item_u1, 1)
TO_F32(i2_to_f32, item_i2, 2)
TO_F32(u2_to_f32, item_u2, 2)
TO_F32(u4_to_f32, item_u4, 4)
TO_F32(i4_to_f32, item_i4, 4)
TO_F32(i8_to_f32, item_i8, 8)
TO_LABEL(i1_to_label, item_i1, 1)
TO_LABEL(u1_to_label, item_u1, 1)
TO_LABEL(i2_to_label, item_i2, 2)
TO_LABEL(u2_to_label, item_u2, 2)
TO_LABEL(u4_to_label, item_u4, 4)
TO_LABEL(i4_to_label, item_i4, 4)
TO_LABEL(i8_to_label, item_i8, 8)

/* What is infinite stays so; what would become it is out of range. */
static size_t f8_to_f32(const unsigned char *from, size_t count, void *to) {
    float *out = to;
    for (size_t i = 0; i < count; i++) {
        double value = item_f8(from + i * 8);
        out[i] = (float)value;
        if (isinf(out[i]) && !isinf(value)) return i;
    }
    return count;
}

static size_t f8_to_f64(const unsigned char *from, size_t count, void *to) {
    double *out = to;
    for (size_t i = 0; i < count; i++) {
        out[i] = item_f8(from + i * 8);
        if (isinf((float)out[i]) && !isinf(out[i])) return i;
    }
    return count;
}

const clt_npy_kind clt_npy_kinds[] = {
    [CLT_NPY_F2] = {2, f2_to_f32, NULL, NULL},
    [CLT_NPY_F4] = {4, f4_to_f32, NULL, NULL},
    [CLT_NPY_F8] = {8, f8_to_f32, f8_to_f64, NULL},
    [CLT_NPY_B1] = {1, u1_to_f32, NULL, u1_to_label},
    [CLT_NPY_I1] = {1, i1_to_f32, NULL, i1_to_label},
    [CLT_NPY_U1] = {1, u1_to_f32, NULL, u1_to_label},
    [CLT_NPY_I2] = {2, i2_to_f32, NULL, i2_to_label},
    [CLT_NPY_U2] = {2, u2_to_f32, NULL, u2_to_label},
    [CLT_NPY_I4] = {4, i4_to_f32, i4_to_f64, i4_to_label},
    [CLT_NPY_U4] = {4, u4_to_f32, u4_to_f64, u4_to_label},
    [CLT_NPY_I8] = {8, i8_to_f32, i8_to_f64, i8_to_label},
};

/* Numbers of which f32 rounds some off. */
static clt_status add_wide(clt_dataset *dataset, clt_source *source, const clt_npy_header *header, clt_shape sample) {
    const clt_npy_kind *kind = &clt_npy_kinds[header->type];
    float *x, *low;
    void *values;
    CLT_TRY(clt_source_read_array(source, (uint64_t)header->elements, kind->bytes, sizeof(double), kind->to_f64, &values));
    clt_status status = clt_low_split(values, (size_t)header->elements, &x, &low);
    clt_free(values);
    CLT_TRY(status);
    status = clt_dataset_add(dataset, CLT_F32, sample, x);
    if (status < 0) clt_free(low);
    else dataset->fields[dataset->n_fields - 1].low = low;
    return status;
}

clt_shape clt_npy_sample(const clt_npy_header *header, bool numbers) {
    clt_shape sample = {.rank = header->shape.rank - 1};
    for (int i = 0; i < sample.rank; i++) sample.dims[i] = header->shape.dims[i + 1];
    return numbers && sample.rank == 0 ? CLT_SHAPE(1) : sample;
}

static clt_status add_array(clt_dataset *dataset, clt_source *source, const clt_npy_header *header,
                            clt_dtype dtype) {
    const clt_npy_kind *kind = &clt_npy_kinds[header->type];
    clt_shape sample = clt_npy_sample(header, dtype == CLT_F32);
    void *data;
    if (dtype == CLT_F32 && kind->to_f64) {
        CLT_TRY(add_wide(dataset, source, header, sample));
        return clt_source_expect_end(source);
    }
    CLT_TRY(clt_source_read_array(source, (uint64_t)header->elements, kind->bytes, 4,
                                  dtype == CLT_I32 ? kind->to_label : kind->to_f32, &data));
    CLT_TRY(clt_dataset_add(dataset, dtype, sample, data));
    return clt_source_expect_end(source);
}

clt_status clt_npy_check_pair(const char *x_path, const clt_npy_header *x, const char *y_path, const clt_npy_header *y) {
    int most = clt_npy_kinds[y->type].to_label ? 1 : 2;
    if (y->shape.rank > most)
        return clt_fail(CLT_E_SHAPE, "%s: %d dimensions; labels have 1, targets (floats) 1 or 2", y_path,
                        y->shape.rank);
    if (x->shape.dims[0] != y->shape.dims[0])
        return clt_fail(CLT_E_SHAPE, "%s has %lld samples, but %s has %lld", x_path,
                        (long long)x->shape.dims[0], y_path, (long long)y->shape.dims[0]);
    return CLT_OK;
}

/* `y` NULL: there is no truth, and the header is not touched. */
static clt_status read_headers(clt_source *x, clt_npy_header *x_header, const char *x_path, clt_source *y, clt_npy_header *y_header, const char *y_path) {
    CLT_TRY(clt_npy_read_header(x, x_header));
    if (!y) return CLT_OK;
    CLT_TRY(clt_npy_read_header(y, y_header));
    return clt_npy_check_pair(x_path, x_header, y_path, y_header);
}

clt_status clt_dataset_npy(clt_dataset **dataset, const char *x_path, const char *y_path) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_npy: dataset is NULL");
    clt_source *x = NULL, *y = NULL;
    clt_npy_header x_header, y_header;
    clt_dataset *d = NULL;
    clt_status status;
    CLT_TRY_GOTO(clt_source_open(&x, x_path));
    if (y_path) CLT_TRY_GOTO(clt_source_open(&y, y_path));
    CLT_TRY_GOTO(read_headers(x, &x_header, x_path, y, &y_header, y_path));
    CLT_TRY_GOTO(clt_dataset_new(&d, x_header.shape.dims[0]));
    CLT_TRY_GOTO(add_array(d, x, &x_header, CLT_F32));
    if (y) CLT_TRY_GOTO(add_array(d, y, &y_header, clt_npy_kinds[y_header.type].to_label ? CLT_I32 : CLT_F32));
    CLT_TRY_GOTO(clt_dataset_count_classes(d));
    *dataset = d;
    d = NULL;
fail:
    clt_dataset_destroy(d);
    clt_source_close(y);
    clt_source_close(x);
    return status;
}

/* ---- what stays in its files ---- */

typedef struct pair {
    const char *x_path, *y_path;
    clt_npy_header x, y;
} pair;

static clt_status read_either(clt_source *source, clt_npy_header *header, clt_file_array *array) {
    CLT_TRY(clt_npy_read_header(source, header));
    const clt_npy_kind *kind = &clt_npy_kinds[header->type];
    array->samples = header->shape.dims[0];
    array->sample = clt_npy_sample(header, true);
    array->item_bytes = kind->bytes;
    array->to_f32 = kind->to_f32;
    array->to_label = kind->to_label;
    return CLT_OK;
}

static clt_status read_x(clt_source *source, void *user, clt_file_array *array) {
    return read_either(source, &((pair *)user)->x, array);
}

static clt_status read_y(clt_source *source, void *user, clt_file_array *array) {
    return read_either(source, &((pair *)user)->y, array);
}

static clt_status check_both(void *user) {
    const pair *p = user;
    return clt_npy_check_pair(p->x_path, &p->x, p->y_path, &p->y);
}

clt_status clt_dataset_npy_stream(clt_dataset **dataset, const char *x_path, const char *y_path) {
    if (!dataset || !x_path) return clt_fail(CLT_E_INVALID, "clt_dataset_npy_stream: dataset or x_path is NULL");
    pair p = {.x_path = x_path, .y_path = y_path};
    return clt_dataset_file_arrays(dataset, x_path, y_path, read_x, read_y, check_both, &p);
}
