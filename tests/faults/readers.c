#include "tests/faults/model.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "runtime/base/base.h"

/* ---- files, as others write them ---- */

static clt_status write_file(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (!file) return clt_fail(CLT_E_IO, "the test cannot write %s", path);
    fwrite(bytes, 1, length, file);
    fclose(file);
    return CLT_OK;
}

static clt_status write_gz(const char *path, const void *bytes, size_t length) {
    gzFile file = gzopen(path, "wb");
    if (!file) return clt_fail(CLT_E_IO, "the test cannot write %s", path);
    gzwrite(file, bytes, (unsigned)length);
    gzclose(file);
    return CLT_OK;
}

static clt_status write_csv(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return clt_fail(CLT_E_IO, "the test cannot write %s", path);
    fprintf(file, "a,b,\"c\",class\n");
    for (int i = 0; i < 40; i++) fprintf(file, "%d.5,%d,-%d,%d\n", i, i * i, i, i % 3);
    fclose(file);
    return CLT_OK;
}

/* Three images of 2 x 2, gzipped, and their labels. */
static clt_status write_idx(const char *images, const char *labels) {
    unsigned char pixels[16 + 12] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2};
    static const unsigned char classes[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 2};
    for (int i = 0; i < 12; i++) pixels[16 + i] = (unsigned char)(20 * i);
    clt_status status = write_gz(images, pixels, sizeof pixels);
    return status == CLT_OK ? write_file(labels, classes, sizeof classes) : status;
}

static clt_status write_cifar10(const char *path) {
    unsigned char records[2][3073];
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 3073; i++) records[r][i] = (unsigned char)(i ? i % 251 : r + 3);
    return write_file(path, records, sizeof records);
}

static clt_status write_npy(const char *path, const char *header, const void *values, size_t length) {
    char bytes[512] = "\x93NUMPY\1";
    size_t n = strlen(header);
    bytes[8] = (char)n;
    memcpy(bytes + 10, header, n);
    memcpy(bytes + 10 + n, values, length);
    return write_file(path, bytes, 10 + n + length);
}

static clt_status write_arrays(const char *x, const char *y) {
    static const double xs[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    static const int64_t ys[4] = {0, 1, 0, 2};
    clt_status status = write_npy(x, "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }\n", xs, sizeof xs);
    return status == CLT_OK ? write_npy(y, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }\n", ys, sizeof ys) : status;
}

/* ---- reading ---- */

static void add_dataset(digest *d, const clt_dataset *data) {
    int64_t facts[] = {clt_dataset_samples(data), clt_dataset_fields(data), clt_dataset_classes(data)};
    digest_add(d, facts, sizeof facts);
    for (int f = 0; f < clt_dataset_fields(data); f++) {
        clt_array all = clt_dataset_array(data, f);
        clt_shape shape = clt_dataset_shape(data, f);
        digest_add(d, all.data, (size_t)(clt_shape_elements(&shape) * facts[0]) * clt_dtype_bytes(clt_dataset_dtype(data, f)));
    }
}

static clt_status add_and_destroy(digest *d, clt_status status, clt_dataset **data) {
    if (status == CLT_OK) add_dataset(d, *data);
    clt_dataset_destroy(*data);
    *data = NULL;
    return status;
}

static clt_status read_images(digest *d) {
    clt_dataset *data = NULL;
    char images[512], labels[512], cifar[512];
    clt_status status;
    scenario_path(images, "images.gz");
    scenario_path(labels, "labels");
    scenario_path(cifar, "batch.bin");
    TRY(write_idx(images, labels));
    TRY(add_and_destroy(d, clt_dataset_idx(&data, images, labels), &data));
    TRY(write_cifar10(cifar));
    TRY(add_and_destroy(d, clt_dataset_cifar10(&data, (const char *const[]){cifar, cifar}, 2), &data));
done:
    return status;
}

/* What is made of nothing, or of what is in memory. */
static clt_status make_sets(digest *d) {
    static const float xs[3][2] = {{0, 1}, {2, 3}, {4, 5}};
    static const int32_t labels[3] = {1, 0, 1};
    const clt_array fields[] = {{CLT_F32, CLT_SHAPE(3, 2), (void *)xs}, {CLT_I32, CLT_SHAPE(3), (void *)labels}};
    clt_dataset *data = NULL;
    clt_status status;
    TRY(add_and_destroy(d, clt_dataset_from_arrays(&data, fields, 2), &data));
    TRY(add_and_destroy(d, clt_dataset_synthetic_regression(&data, 9, 3, 0.1f, 4), &data));
done:
    return status;
}

static clt_status read_arrays(digest *d) {
    clt_dataset *data = NULL;
    char x[512], y[512];
    clt_status status;
    scenario_path(x, "x.npy");
    scenario_path(y, "y.npy");
    TRY(write_arrays(x, y));
    TRY(add_and_destroy(d, clt_dataset_npy(&data, x, y), &data));
done:
    return status;
}

clt_status run_readers(clt_device *device, digest *d) {
    clt_status status;
    (void)device;
    TRY(read_images(d));
    TRY(read_arrays(d));
    TRY(make_sets(d));
done:
    return status;
}

/* ---- a table, parts of it, and a loader ---- */

static clt_status take_epoch(clt_loader *loader, digest *d) {
    clt_batch batch;
    clt_status status;
    while ((status = clt_loader_next(loader, &batch)) == CLT_OK)
        digest_add(d, batch.fields[0].data, (size_t)batch.samples * 3 * sizeof(float));
    return status < 0 ? status : CLT_OK;
}

/* From where it stood once more, and as one of two that share the batches. */
static clt_status move_about(clt_loader *loader, digest *d) {
    const int64_t shares[] = {1, 3};
    clt_loader_position start = clt_loader_get_position(loader);
    int64_t facts[] = {clt_loader_batches(loader), clt_loader_batch(loader)};
    clt_status status;
    digest_add(d, facts, sizeof facts);
    TRY(take_epoch(loader, d));
    TRY(clt_loader_set_position(loader, start));
    TRY(clt_loader_set_shares(loader, 1, 2, shares));
    TRY(take_epoch(loader, d));
done:
    return status;
}

clt_status run_data(clt_device *device, digest *d) {
    clt_dataset *table = NULL, *digits = NULL, *parts[2] = {NULL, NULL};
    clt_loader *loader = NULL;
    char path[512];
    clt_status status;
    (void)device;
    scenario_path(path, "table.csv");
    TRY(write_csv(path));
    TRY(clt_dataset_csv(&table, path, &(clt_csv_options){.label = "class"}));
    TRY(clt_dataset_digits(&digits));
    TRY(clt_dataset_split(table, (const double[]){0.75, 0.25}, 2, 9, parts));
    TRY(clt_dataset_standardize(parts[1], parts[0]));
    TRY(clt_loader_create(&loader, parts[1], &(clt_loader_options){.batch = 4, .shuffle = true}));
    TRY(move_about(loader, d));
done:
    clt_loader_destroy(loader);
    for (int i = 0; i < 2; i++) clt_dataset_destroy(parts[i]);
    clt_dataset_destroy(digits);
    clt_dataset_destroy(table);
    return status;
}
