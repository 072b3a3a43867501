/* Opening what a SPEC names, splitting and standardizing it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_spec.h"
#include "tools/common/message.h"
#include "system.h"

#define TEST_FRACTION 0.2

/* In a folder: those of training first; those of idx may be compressed. */
static const char *const idx_names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte"};
static const char *const cifar10_names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                            "data_batch_5.bin", "test_batch.bin"};
static const char *const cifar100_names[] = {"train.bin", "test.bin"};
enum { IDX_FILES = sizeof idx_names / sizeof *idx_names, CIFAR10_FILES = sizeof cifar10_names / sizeof *cifar10_names };

/* FOLDER/NAME, or FOLDER/NAME.gz where `gzip` allows; false if neither can be read. */
static bool find_file(char path[2 * DATA_PATH_BYTES], const char *folder, const char *name,
                      bool gzip) {
    snprintf(path, 2 * DATA_PATH_BYTES, "%s/%s", folder, name);
    if (file_readable(path)) return true;
    snprintf(path, 2 * DATA_PATH_BYTES, "%s/%s.gz", folder, name);
    return gzip && file_readable(path);
}

/* What is split in memory is there twice. */
static bool wants_stream(const data_spec *spec, const char *path, int64_t most_bytes) {
    if (spec->stream >= 0) return spec->stream == 1;
    return spec->layout != LAYOUT_NHWC && most_bytes > 0 && file_bytes(path) > most_bytes;
}

/* *dataset stays NULL if an optional part has neither file. */
static int open_idx_part(clt_dataset **dataset, const data_spec *spec, const char *const names[2],
                         bool optional) {
    char images[2 * DATA_PATH_BYTES], labels[2 * DATA_PATH_BYTES];
    bool has_images = find_file(images, spec->path, names[0], true);
    bool has_labels = find_file(labels, spec->path, names[1], true);
    if (optional && !has_images && !has_labels) return 0;
    if (!has_images || !has_labels)
        return run_error("--data %s: no readable file %s or %s.gz in '%s'", spec->text,
                         names[has_images], names[has_images], spec->path);
    bool stream = wants_stream(spec, images, memory_bytes() / 8); /* a byte becomes four */
    if (stream) message_line("%s is read batch by batch.", images);
    clt_status status = (stream ? clt_dataset_idx_stream : clt_dataset_idx)(dataset, images, labels);
    return status < 0 ? library_error(status, "--data") : 0;
}

static int open_idx(data_parts *parts, const data_spec *spec) {
    int code = open_idx_part(&parts->train, spec, idx_names, false);
    return code ? code : open_idx_part(&parts->test, spec, idx_names + 2, true);
}

static int open_cifar10(data_parts *parts, const data_spec *spec) {
    enum { BATCHES = CIFAR10_FILES - 1 };
    char files[BATCHES][2 * DATA_PATH_BYTES], test[2 * DATA_PATH_BYTES];
    const char *paths[BATCHES], *test_path = test;
    int found = 0;
    for (int i = 0; i < BATCHES; i++) {
        if (!find_file(files[found], spec->path, cifar10_names[i], false)) continue;
        if (found < i)
            return run_error("--data %s: %s cannot be read in '%s', but %s can", spec->text, cifar10_names[found], spec->path,
                             cifar10_names[i]);
        paths[found] = files[found], found++;
    }
    if (!found)
        return run_error(
            "--data %s: none of data_batch_1.bin to data_batch_5.bin can be read in '%s'", spec->text,
            spec->path);
    clt_status status = clt_dataset_cifar10(&parts->train, paths, found);
    if (status >= 0 && find_file(test, spec->path, cifar10_names[BATCHES], false))
        status = clt_dataset_cifar10(&parts->test, &test_path, 1);
    return status < 0 ? library_error(status, "--data") : 0;
}

static int open_cifar100(data_parts *parts, const data_spec *spec) {
    char path[2 * DATA_PATH_BYTES];
    if (!find_file(path, spec->path, cifar100_names[0], false))
        return run_error("--data %s: train.bin cannot be read in '%s'", spec->text, spec->path);
    clt_status status = clt_dataset_cifar100(&parts->train, path);
    if (status >= 0 && find_file(path, spec->path, cifar100_names[1], false)) status = clt_dataset_cifar100(&parts->test, path);
    return status < 0 ? library_error(status, "--data") : 0;
}

bool data_spec_file(const data_spec *spec, int i, char path[2 * DATA_PATH_BYTES]) {
    static const int counts[] = {[DATA_IDX] = 2 * IDX_FILES, [DATA_CIFAR10] = CIFAR10_FILES, [DATA_CIFAR100] = 2, [DATA_FOLDER] = 0, [DATA_TAR] = 0, [DATA_CSV] = 1, [DATA_NPY] = 2, [DATA_TEXT] = 2,
                                 [DATA_SYNTHETIC_REGRESSION] = 0};
    if (i >= counts[spec->source]) return false;
    if (spec->source == DATA_IDX)
        snprintf(path, 2 * DATA_PATH_BYTES, "%s/%s%s", spec->path, idx_names[i / 2], i % 2 ? ".gz" : "");
    else if (spec->source == DATA_CIFAR10) snprintf(path, 2 * DATA_PATH_BYTES, "%s/%s", spec->path, cifar10_names[i]);
    else if (spec->source == DATA_CIFAR100) snprintf(path, 2 * DATA_PATH_BYTES, "%s/%s", spec->path, cifar100_names[i]);
    else snprintf(path, 2 * DATA_PATH_BYTES, "%s", !i ? spec->path : spec->source == DATA_TEXT ? spec->tokenizer : spec->path_y);
    return true;
}

int data_check_task(const data_spec *spec, const clt_preprocessing *model, const char *option) {
    bool numbers = clt_preprocessing_classes(model) == 0;
    if (spec->task < 0 || spec->task == numbers) return 0;
    return usage_error("%s '%s': regression=%d, but the model predicts %s: leave it out", option, spec->text, spec->task, numbers ? "numbers" : "classes");
}

const char *data_spill_folder(const data_spec *spec) {
    const char *named = getenv("TMPDIR");
    if (!wants_stream(spec, spec->path, memory_bytes() / 4)) return NULL;
    return named && named[0] ? named : "/var/tmp";
}

static int open_csv(data_parts *parts, const data_spec *spec, bool regression, const clt_preprocessing *like) {
    clt_csv_options options = spec->csv;
    int code = like ? data_check_task(spec, like, "--data") : 0;
    if (code) return code;
    options.like = like;
    if (like) regression = clt_preprocessing_classes(like) == 0; /* the model has settled it */
    options.regression = spec->task < 0 ? regression : spec->task == 1;
    options.spill = data_spill_folder(spec);
    if (options.spill) message_line("%s is kept in a file in %s, and read batch by batch.", spec->path, options.spill);
    clt_status status = clt_dataset_csv(&parts->train, spec->path, &options);
    return status < 0 ? library_error(status, "--data") : 0;
}

/* llm.c's files of GPT-2's tokens */
enum { GPT2_VOCABULARY = 50257 };

static clt_status open_tokenizer(data_parts *parts, const data_spec *spec) {
    if (strcmp(spec->tokenizer, "gpt2") == 0) return CLT_OK;
    if (strcmp(spec->tokenizer, "bytes") == 0) return clt_tokenizer_bytes(&parts->tokenizer);
    if (strcmp(spec->tokenizer, "chars") == 0) return clt_tokenizer_chars_of(&parts->tokenizer, spec->path);
    return clt_tokenizer_load(&parts->tokenizer, spec->tokenizer);
}

static int open_text(data_parts *parts, const data_spec *spec) {
    clt_status status = open_tokenizer(parts, spec);
    clt_text_options options = {.tokenizer = parts->tokenizer, .context = spec->context};
    if (status >= 0) status = clt_dataset_text(&parts->train, &parts->test, spec->path, &options);
    parts->vocabulary = parts->tokenizer ? clt_tokenizer_vocabulary(parts->tokenizer) : GPT2_VOCABULARY;
    return status < 0 ? library_error(status, "--data") : 0;
}

static int open_folder(clt_dataset **dataset, const data_spec *spec, const char *path, bool augment, const clt_preprocessing *like) {
    clt_image_folder_options options = spec->images;
    options.augment = augment && options.augment;
    options.like = like;
    clt_status status = clt_dataset_image_folder(dataset, path, &options);
    return status < 0 ? library_error(status, "--data") : 0;
}

/* The classes of the training part are those of the test. */
static int open_test_folder(data_parts *parts, const data_spec *spec, const char *path) {
    clt_preprocessing *like;
    clt_status status = clt_preprocessing_of(&like, parts->train);
    if (status < 0) return library_error(status, "--data");
    int code = open_folder(&parts->test, spec, path, false, like);
    clt_preprocessing_destroy(like);
    return code;
}

/* DIR/train and DIR/val; or DIR alone, of which a part is held out, that is not augmented. */
static int open_images(data_parts *parts, const data_spec *spec, const clt_preprocessing *like) {
    static const char *const test_names[] = {"val", "valid", "validation", "test"};
    char train[2 * DATA_PATH_BYTES], test[2 * DATA_PATH_BYTES];
    snprintf(train, sizeof train, "%s/train", spec->path);
    if (!folder_exists(train)) {
        int code = open_folder(&parts->train, spec, spec->path, true, like);
        return code ? code : open_folder(&parts->plain, spec, spec->path, false, like);
    }
    int code = open_folder(&parts->train, spec, train, true, like);
    for (size_t i = 0; !code && !parts->test && i < sizeof test_names / sizeof *test_names; i++) {
        snprintf(test, sizeof test, "%s/%s", spec->path, test_names[i]);
        if (folder_exists(test)) code = open_test_folder(parts, spec, test);
    }
    return code || (parts->test && !spec->validation) ? code : open_folder(&parts->plain, spec, train, false, like);
}

/* "{000..099}": from, to, and how many digits. False: there is none. */
static bool find_range(const char *pattern, int64_t *from, int64_t *to, int *digits, size_t *front, const char **back) {
    long long low, high;
    int first = 0, last = 0, end = 0;
    const char *open = strchr(pattern, '{');
    if (!open || sscanf(open, "{%n%lld%n..%lld%n}", &first, &low, &last, &high, &end) != 2 || !end || open[end] != '}') return false;
    if (low < 0 || high < low || high - low >= 1000000) return false;
    *from = low, *to = high, *digits = last - first;
    *front = (size_t)(open - pattern);
    *back = open + end + 1;
    return true;
}

static int name_archives(char **paths, const char *pattern, int64_t *n) {
    int64_t from = 0, to = 0;
    int digits = 0;
    size_t front = strlen(pattern);
    const char *back = "";
    bool range = find_range(pattern, &from, &to, &digits, &front, &back);
    for (*n = 0; *n <= to - from; ++*n) {
        char path[2 * DATA_PATH_BYTES];
        if (range) snprintf(path, sizeof path, "%.*s%0*lld%s", (int)front, pattern, digits, (long long)(from + *n), back);
        else snprintf(path, sizeof path, "%s", pattern);
        paths[*n] = malloc(strlen(path) + 1);
        if (!paths[*n]) return run_error("no memory for the names of archives");
        strcpy(paths[*n], path);
    }
    return 0;
}

int data_open_tar(clt_dataset **dataset, const char *pattern, const clt_image_folder_options *images, const char *option) {
    int64_t from = 0, to = 0, n = 0;
    int digits;
    size_t front;
    const char *back;
    find_range(pattern, &from, &to, &digits, &front, &back);
    char **paths = calloc((size_t)(to - from + 1), sizeof *paths);
    int code = paths ? name_archives(paths, pattern, &n) : run_error("no memory for the names of archives");
    clt_status status = code ? CLT_OK : clt_dataset_image_tar(dataset, (const char *const *)paths, (int)n, images);
    if (status < 0) code = library_error(status, option);
    for (int64_t i = 0; paths && i < n; i++) free(paths[i]);
    free(paths);
    return code;
}

/* The test part has as many classes as the training part. */
static int open_test_archives(data_parts *parts, const data_spec *spec, clt_image_folder_options images) {
    clt_preprocessing *like;
    clt_status status = clt_preprocessing_of(&like, parts->train);
    if (status < 0) return library_error(status, "--data");
    images.like = like;
    images.augment = false;
    int code = data_open_tar(&parts->test, spec->path_y, &images, "--data");
    clt_preprocessing_destroy(like);
    return code;
}

static int open_archives(data_parts *parts, const data_spec *spec, const clt_preprocessing *like) {
    clt_image_folder_options images = spec->images;
    images.like = like;
    int code = data_open_tar(&parts->train, spec->path, &images, "--data");
    if (!code && spec->path_y[0]) code = open_test_archives(parts, spec, images);
    if (code || (parts->test && !spec->validation)) return code;
    images.augment = false;
    return data_open_tar(&parts->plain, spec->path, &images, "--data");
}

/* Channels are few, and a last dimension that is much smaller than the others is theirs. */
static bool looks_channels_last(clt_shape s) {
    return s.rank == 3 && (s.dims[2] == 1 || s.dims[2] == 3 || s.dims[2] == 4) && s.dims[0] > s.dims[2] && s.dims[1] > s.dims[2];
}

/* The samples are still those of the file, in its order. */
static int check_finite(const clt_dataset *data, int field, const char *path) {
    clt_array array = clt_dataset_array(data, field);
    if (array.dtype != CLT_F32) return 0;
    const float *values = array.data;
    int64_t elements = 1;
    for (int i = 1; i < array.shape.rank; i++) elements *= array.shape.dims[i];
    for (int64_t i = 0; i < array.shape.dims[0] * elements; i++)
        if (!isfinite(values[i]))
            return run_error("--data: %s: sample %lld (from 0), element %lld is %g: expected finite numbers. Leave such samples out, or replace the values", path,
                             (long long)(i / elements), (long long)(i % elements), (double)values[i]);
    return 0;
}

clt_status data_read_npy(clt_dataset **dataset, const data_spec *spec, const char *path_y, bool *stream) {
    *stream = wants_stream(spec, spec->path, memory_bytes() / 4);
    clt_status status = (*stream ? clt_dataset_npy_stream : clt_dataset_npy)(dataset, spec->path, path_y);
    if (status >= 0 && *stream) message_line("%s is read batch by batch.", spec->path);
    return status;
}

static int open_npy(data_parts *parts, const data_spec *spec) {
    bool stream;
    clt_status status = data_read_npy(&parts->train, spec, spec->path_y, &stream);
    if (status < 0) return library_error(status, "--data");
    int code = stream ? 0 : check_finite(parts->train, 0, spec->path);
    if (!code && !stream) code = check_finite(parts->train, 1, spec->path_y);
    if (code) return code;
    clt_shape shape = clt_dataset_shape(parts->train, 0);
    if (spec->layout == LAYOUT_UNSAID && looks_channels_last(shape))
        return usage_error("--data: the samples of %s are %lld x %lld x %lld, which looks like images [height, width, channels]; expected "
                           "[channels, height, width]. Add layout=nhwc, or turn them in NumPy: np.save(\"X.npy\", x.transpose(0, 3, 1, 2)). "
                           "layout=nchw takes them as they are",
                           spec->path, (long long)shape.dims[0], (long long)shape.dims[1], (long long)shape.dims[2]);
    if (spec->layout == LAYOUT_NHWC) status = clt_dataset_channels_first(parts->train);
    return status < 0 ? library_error(status, "--data: layout=nhwc") : 0;
}

static int open_single(data_parts *parts, const data_spec *spec, uint64_t seed) {
    clt_status status = CLT_OK;
    if (spec->source == DATA_DIGITS) {
        status = clt_dataset_digits(&parts->train);
    } else if (spec->source == DATA_SYNTHETIC) {
        status = clt_dataset_synthetic(&parts->train, spec->shape, (int)spec->classes, spec->samples,
                                       seed);
    } else {
        status = clt_dataset_synthetic_regression(&parts->train, spec->samples, spec->features,
                                                  (float)spec->noise, seed);
    }
    return status < 0 ? library_error(status, "--data") : 0;
}

static int open_source(data_parts *parts, const data_spec *spec, bool regression, uint64_t seed, const clt_preprocessing *like) {
    switch (spec->source) {
    case DATA_IDX: return open_idx(parts, spec);
    case DATA_CIFAR10: return open_cifar10(parts, spec);
    case DATA_CIFAR100: return open_cifar100(parts, spec);
    case DATA_FOLDER: return open_images(parts, spec, like);
    case DATA_TAR: return open_archives(parts, spec, like);
    case DATA_CSV: return open_csv(parts, spec, regression, like);
    case DATA_NPY: return open_npy(parts, spec);
    case DATA_TEXT: return open_text(parts, spec);
    default: return open_single(parts, spec, seed);
    }
}

static clt_status split_by(const clt_dataset *whole, const data_spec *spec, double held_out, uint64_t seed, clt_dataset **pair) {
    const double fractions[] = {1 - held_out, held_out};
    return (spec->stratify ? clt_dataset_split_stratified : clt_dataset_split)(whole, fractions, 2, seed, pair);
}

static clt_status split(const clt_dataset *whole, const data_spec *spec, uint64_t seed, clt_dataset **pair) {
    if (spec->folds) return clt_dataset_fold(whole, spec->fold, spec->folds, seed, spec->stratify, &pair[0], &pair[1]);
    return split_by(whole, spec, TEST_FRACTION, seed, pair);
}

/* The test part of what is not augmented: the same samples. */
static clt_status split_plain(data_parts *parts, const data_spec *spec, uint64_t seed, clt_dataset **test) {
    clt_dataset *pair[2] = {NULL, NULL};
    if (!parts->plain) return CLT_OK;
    clt_status status = split(parts->plain, spec, seed, pair);
    if (status < 0) return status;
    parts->plain_first = pair[0];
    clt_dataset_destroy(*test);
    *test = pair[1];
    return CLT_OK;
}

/* What was read becomes `whole`, and two parts are made of it. */
static int hold_out(data_parts *parts, const data_spec *spec, uint64_t seed) {
    clt_dataset *pair[2] = {NULL, NULL};
    parts->whole = parts->train;
    parts->train = NULL;
    int64_t samples = clt_dataset_samples(parts->whole);
    if (samples < 5)
        return run_error(
            "--data %s: %lld samples; at least 5 are needed to hold out a fifth for the test",
            spec->text, (long long)samples);
    clt_status status = split(parts->whole, spec, seed, pair);
    if (status < 0) return library_error(status, "--data");
    parts->train = pair[0];
    parts->test = pair[1];
    status = split_plain(parts, spec, seed, &parts->test);
    return status < 0 ? library_error(status, "--data") : 0;
}

/* --validation: of what is left for training. */
static int hold_out_validation(data_parts *parts, const data_spec *spec, uint64_t seed) {
    clt_dataset *pair[2] = {NULL, NULL}, *plain[2] = {NULL, NULL};
    const clt_dataset *unaugmented = parts->plain_first ? parts->plain_first : parts->plain;
    parts->first = parts->train;
    parts->train = NULL;
    clt_status status = split_by(parts->first, spec, spec->validation, seed, pair);
    parts->train = pair[0];
    parts->validation = pair[1];
    if (status >= 0 && unaugmented) status = split_by(unaugmented, spec, spec->validation, seed, plain);
    clt_dataset_destroy(plain[0]);
    if (plain[1]) {
        clt_dataset_destroy(parts->validation);
        parts->validation = plain[1];
    }
    return status < 0 ? library_error(status, "--validation") : 0;
}

/* Up to 256 samples of a data set, drawn; NULL: none can be. */
static clt_loader *draw(const clt_dataset *data, clt_batch *batch) {
    enum { SOME = 256 };
    int64_t samples = clt_dataset_samples(data);
    clt_loader *loader;
    if (clt_loader_create(&loader, data, &(clt_loader_options){.batch = samples < SOME ? samples : SOME, .shuffle = true}) < 0) return NULL;
    if (clt_loader_next(loader, batch) >= 0 && batch->samples > 0) return loader;
    clt_loader_destroy(loader);
    return NULL;
}

/* Of [n, channels, plane]: how far apart the values of a channel are, of that one in which they are farthest. */
static float range_of_channels(const float *x, int64_t n, int64_t channels, int64_t plane) {
    float range = 0;
    for (int64_t c = 0; c < channels; c++) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n * plane; i++) {
            float value = x[(i / plane * channels + c) * plane + i % plane];
            low = fminf(low, value);
            high = fmaxf(high, value);
        }
        range = fmaxf(range, high - low);
    }
    return range;
}

/* The mean magnitude of those of n samples in which it is large, if they are more than half; else 0. */
static float usual_magnitude(const float *x, int64_t n, int64_t elements) {
    const float large = 30;
    float sum = 0;
    int64_t above = 0;
    for (int64_t i = 0; i < n; i++) {
        float own = 0;
        for (int64_t e = 0; e < elements; e++) own += fabsf(x[i * elements + e]) / (float)elements;
        if (own > large) above++, sum += own;
    }
    return 2 * above > n ? sum / (float)above : 0;
}

/* Of images, also as rows: a table's columns may well differ little, or be large, in a part of it. */
void data_check_scale(const clt_dataset *data, const clt_preprocessing *model, const char *option, const char *what) {
    enum { FEW = 64 }; /* pixels, or rows */
    static const char question[] = "are they scaled otherwise, as pixels from 0 to 1 and from 0 to 255?";
    clt_batch batch;
    clt_loader *loader = clt_preprocessing_standardizes(model) ? draw(data, &batch) : NULL;
    if (!loader) return;
    const clt_array *x = &batch.fields[0];
    const int64_t *dims = x->shape.dims, n = batch.samples, elements = clt_shape_elements(&x->shape) / n;
    int64_t plane = x->shape.rank == 4 ? dims[2] * dims[3] : 1;
    if (x->dtype == CLT_F32 && elements >= FEW && (x->shape.rank == 4 ? plane : n) >= FEW) {
        float range = range_of_channels(x->data, n, elements / plane, plane), usual = usual_magnitude(x->data, n, elements);
        if (range > 0 && range < 0.08f)
            warning("%s: the values of %s differ by %.2g at most, where those that the model was trained on differ by 1 or more: %s", option, what, (double)range, question);
        if (usual > 0) warning("%s: the values of %s are about %.2g, where those that the model was trained on are about 1: %s", option, what, (double)usual, question);
    }
    clt_loader_destroy(loader);
}

/* Numbers to predict share one mean and deviation: of one that differs little beside the others, the errors hardly count. */
static void check_target_scales(const clt_dataset *standardized) {
    clt_batch batch;
    clt_loader *loader = draw(standardized, &batch);
    if (!loader) return;
    const clt_array *y = &batch.fields[batch.n_fields - 1];
    int64_t n = batch.samples, width = clt_shape_elements(&y->shape) / n;
    double least = INFINITY, most = 0;
    for (int64_t k = 0; y->dtype == CLT_F32 && k < width; k++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) mean += (double)((const float *)y->data)[i * width + k] / (double)n;
        for (int64_t i = 0; i < n; i++) squares += pow((double)((const float *)y->data)[i * width + k] - mean, 2) / (double)n;
        if (squares > 0) least = fmin(least, sqrt(squares));
        most = fmax(most, sqrt(squares));
    }
    if (least < 0.05 * most)
        warning("--data: one of the numbers to predict differs %.0f times as much as another, and they share one mean and deviation: errors of the smaller one hardly count. "
                "Bring them to one scale, or train a model for each", most / least);
    clt_loader_destroy(loader);
}

static int standardize_parts(data_parts *parts) {
    /* The training part last: the others are scaled by what it was before. */
    clt_dataset *all[] = {parts->test, parts->validation, parts->train};
    enum { PARTS = sizeof all / sizeof all[0] };
    bool numbers = !clt_dataset_classes(parts->train);
    clt_status status = CLT_OK;
    for (int i = 0; status >= 0 && i < PARTS; i++)
        if (all[i]) status = clt_dataset_standardize(all[i], parts->train);
    for (int i = 0; status >= 0 && numbers && i < PARTS; i++)
        if (all[i]) status = clt_dataset_standardize_target(all[i], parts->train);
    if (status < 0) return library_error(status, "--data");
    if (numbers) check_target_scales(parts->train);
    parts->standardized = true;
    return 0;
}

static int apply(data_parts *parts, const clt_preprocessing *like) {
    clt_status status = clt_preprocessing_apply(like, parts->test);
    if (status >= 0 && parts->validation) status = clt_preprocessing_apply(like, parts->validation);
    if (status >= 0) status = clt_preprocessing_apply(like, parts->train);
    if (status < 0) return library_error(status, "--data");
    parts->standardized = clt_preprocessing_standardizes(like);
    parts->of_model = true;
    return 0;
}

int data_open(data_parts *parts, const data_spec *spec, bool regression, bool standardize,
              uint64_t seed, const clt_preprocessing *like) {
    bool table = spec->source == DATA_CSV || spec->source == DATA_NPY;
    *parts = (data_parts){.table = spec->source == DATA_CSV};
    int code = open_source(parts, spec, regression, seed, like);
    if (!code && parts->test && (spec->folds || (spec->stratify && !(spec->validation > 0))))
        code = usage_error("%s: '%s' has a test part of its own: nothing is held out of the training part", spec->folds ? "--fold" : "--stratify", spec->text);
    if (!code && spec->validation && spec->source == DATA_TEXT) code = usage_error("--validation: the last tenth of a text is its validation part already");
    if (!code && !parts->test) code = hold_out(parts, spec, seed);
    if (!code && spec->validation) code = hold_out_validation(parts, spec, seed);
    if (!code && like) code = apply(parts, like);
    if (!code && like) data_check_scale(parts->train, like, "--data", spec->text);
    else if (!code && standardize && table) code = standardize_parts(parts);
    if (!code) {
        clt_status status = clt_preprocessing_of(&parts->preprocessing, parts->train);
        if (status < 0) code = library_error(status, "--data");
    }
    if (code) data_close(parts);
    return code;
}

void data_close(data_parts *parts) {
    clt_dataset_destroy(parts->test);
    clt_dataset_destroy(parts->train);
    clt_dataset_destroy(parts->validation);
    clt_dataset_destroy(parts->first);
    clt_dataset_destroy(parts->plain_first);
    clt_dataset_destroy(parts->whole);
    clt_dataset_destroy(parts->plain);
    clt_tokenizer_destroy(parts->tokenizer);
    clt_preprocessing_destroy(parts->preprocessing);
    *parts = (data_parts){0};
}
