/*
 * IDX, the format of MNIST: a big-endian header of magic and dimensions, then
 * the bytes. http://yann.lecun.com/exdb/mnist
 */
#include "runtime/data/file_array.h"

/* 0x0000TTRR: type 08 is unsigned byte, RR the number of dimensions. */
enum { MAGIC_UBYTE = 0x0800, MOST_DIMS = 3 };

static uint32_t big_endian(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static clt_status read_header(clt_source *source, int n_dims, uint32_t *dims) {
    unsigned char header[4 * (1 + MOST_DIMS)];
    CLT_TRY(clt_source_read_exactly(source, header, 4 * (1 + (size_t)n_dims), "its header"));
    uint32_t magic = big_endian(header), wanted = MAGIC_UBYTE | (uint32_t)n_dims;
    if (magic != wanted)
        return clt_fail(CLT_E_FORMAT,
                        "%s: begins with 0x%08x, not 0x%08x as IDX %s of unsigned bytes do",
                        clt_source_path(source), magic, wanted, n_dims == 1 ? "labels" : "images");
    for (int i = 0; i < n_dims; i++) {
        dims[i] = big_endian(header + 4 * (1 + i));
        if (dims[i] == 0)
            return clt_fail(CLT_E_FORMAT, "%s: dimension %d is 0", clt_source_path(source), i);
    }
    return CLT_OK;
}

static size_t pixels_to_f32(const unsigned char *from, size_t count, void *to) {
    float *out = to;
    for (size_t i = 0; i < count; i++) out[i] = (float)from[i] / 255.0f;
    return count;
}

static size_t labels_to_i32(const unsigned char *from, size_t count, void *to) {
    int32_t *out = to;
    for (size_t i = 0; i < count; i++) out[i] = from[i];
    return count;
}

static clt_status read_images(clt_source *source, const uint32_t *dims, void **pixels) {
    uint64_t count;
    if (__builtin_mul_overflow((uint64_t)dims[0] * dims[1], (uint64_t)dims[2], &count))
        return clt_fail(CLT_E_FORMAT, "%s: its header tells of %u images of %u x %u",
                        clt_source_path(source), dims[0], dims[1], dims[2]);
    CLT_TRY(clt_source_read_array(source, count, 1, sizeof(float), pixels_to_f32, pixels));
    clt_status status = clt_source_expect_end(source);
    if (status < 0) {
        clt_free(*pixels);
        *pixels = NULL;
    }
    return status;
}

static clt_status read_both(clt_dataset *dataset, clt_source *images, const uint32_t *dims,
                            clt_source *labels) {
    void *pixels, *truth;
    CLT_TRY(read_images(images, dims, &pixels));
    CLT_TRY(clt_dataset_add(dataset, CLT_F32, CLT_SHAPE(1, dims[1], dims[2]), pixels));
    CLT_TRY(clt_source_read_array(labels, dims[0], 1, sizeof(int32_t), labels_to_i32, &truth));
    CLT_TRY(clt_dataset_add(dataset, CLT_I32, (clt_shape){0}, truth));
    CLT_TRY(clt_source_expect_end(labels));
    CLT_TRY(clt_dataset_count_classes(dataset));
    return clt_dataset_note_pixels(dataset, 255);
}

static clt_status check_counts(const char *images_path, uint32_t images, const char *labels_path, uint32_t labels) {
    return images == labels ? CLT_OK : clt_fail(CLT_E_FORMAT, "%s has %u images, but %s has %u labels", images_path, images, labels_path, labels);
}

clt_status clt_dataset_idx(clt_dataset **dataset, const char *images_path, const char *labels_path) {
    if (!dataset) return clt_fail(CLT_E_INVALID, "clt_dataset_idx: dataset is NULL");
    clt_source *images = NULL, *labels = NULL;
    clt_dataset *d = NULL;
    uint32_t dims[MOST_DIMS], label_count;
    clt_status status;
    CLT_TRY_GOTO(clt_source_open(&images, images_path));
    CLT_TRY_GOTO(clt_source_open(&labels, labels_path));
    CLT_TRY_GOTO(read_header(images, 3, dims));
    CLT_TRY_GOTO(read_header(labels, 1, &label_count));
    CLT_TRY_GOTO(check_counts(images_path, dims[0], labels_path, label_count));
    CLT_TRY_GOTO(clt_dataset_new(&d, dims[0]));
    CLT_TRY_GOTO(read_both(d, images, dims, labels));
    *dataset = d;
    d = NULL;
fail:
    clt_dataset_destroy(d);
    clt_source_close(labels);
    clt_source_close(images);
    return status;
}

/* ---- what stays in its files ---- */

typedef struct pair {
    const char *images_path, *labels_path;
    uint32_t images, labels;
} pair;

static clt_status open_images(clt_source *source, void *user, clt_file_array *array) {
    uint32_t dims[MOST_DIMS];
    CLT_TRY(read_header(source, MOST_DIMS, dims));
    ((pair *)user)->images = dims[0];
    array->samples = dims[0];
    array->sample = CLT_SHAPE(1, dims[1], dims[2]);
    array->item_bytes = 1;
    array->to_f32 = pixels_to_f32;
    return CLT_OK;
}

static clt_status open_labels(clt_source *source, void *user, clt_file_array *array) {
    pair *p = user;
    CLT_TRY(read_header(source, 1, &p->labels));
    array->samples = p->labels;
    array->item_bytes = 1;
    array->to_label = labels_to_i32;
    return CLT_OK;
}

static clt_status check_both(void *user) {
    const pair *p = user;
    return check_counts(p->images_path, p->images, p->labels_path, p->labels);
}

clt_status clt_dataset_idx_stream(clt_dataset **dataset, const char *images_path, const char *labels_path) {
    if (!dataset || !images_path || !labels_path) return clt_fail(CLT_E_INVALID, "clt_dataset_idx_stream: an argument is NULL");
    pair p = {.images_path = images_path, .labels_path = labels_path};
    clt_dataset *d;
    CLT_TRY(clt_dataset_file_arrays(&d, images_path, labels_path, open_images, open_labels, check_both, &p));
    clt_status status = clt_dataset_note_pixels(d, 255);
    if (status < 0) clt_dataset_destroy(d);
    else *dataset = d;
    return status;
}
